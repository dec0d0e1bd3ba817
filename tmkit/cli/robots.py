"""Commands about robots: ``tmkit robot ...``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit.cli import ExitCode
from tmkit.cli.common import (
    AllowFolders,
    AsJson,
    Meshes,
    Packages,
    Scenes,
    Seed,
    load,
    note,
    print_json,
    progress,
    require_writable,
)

if TYPE_CHECKING:
    from tmkit.files.remarks import Remark
    from tmkit.graph import SceneGraph
    from tmkit.motion import JointRow, Manipulator, RobotReport
    from tmkit.srdf import RobotSemantics

__all__ = ["app"]

app = typer.Typer(help="Look at robots.", no_args_is_help=True)

_PICTURE_SAMPLES = 10
"""Configurations of the picture for each that is checked: it only asks whether they are free."""


@app.callback()
def _group() -> None:
    pass


@app.command()
def check(
    scenes: Scenes,
    robot: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE.toml|FILE.srdf[:GROUP[:HAND]]", help="The arm; left out, it is guessed."),
    ] = None,
    base: Annotated[str | None, typer.Option(metavar="FRAME", help="The frame that a guessed arm stands on.")] = None,
    tip: Annotated[str | None, typer.Option(metavar="FRAME", help="The frame of a guessed arm's hand.")] = None,
    samples: Annotated[int, typer.Option(help="Random configurations to look at.", min=1)] = 2000,
    seed: Seed = 0,
    write_robot: Annotated[
        Path | None, typer.Option(metavar="OUT.toml", help="Write the arm's description, to be mended by hand.")
    ] = None,
    write_srdf: Annotated[
        Path | None, typer.Option(metavar="OUT.srdf", help="Write the arm and the pairs that need no check.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="OUT.png", help="Draw where the tool comes (needs the extra 'viewer').")
    ] = None,
    as_json: AsJson = False,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Say whether a robot is fit for planning: joints, meshes, collisions with itself, inverse kinematics."""
    from tmkit.motion import check_robot

    if robot is not None and (base is not None or tip is not None):
        raise typer.BadParameter("these are for a guessed arm, and --robot gives one", param_hint="--base / --tip")
    _require_outputs(write_robot, write_srdf, picture)
    remarks: list[Remark] = []
    scene = load(scenes, allow=allow, packages=package, meshes=meshes, on_remark=remarks.append)
    with progress("checking the robot"):
        arm = _arm(scene, robot, base=base, tip=tip, name=Path(scenes[0]).stem, seed=seed)
        report = check_robot(scene, arm, samples=samples, seed=seed, remarks=remarks)
        if arm is not None:
            _write(scene, arm, report, robot=write_robot, srdf=write_srdf, picture=picture, seed=seed)
        elif write_robot or write_srdf or picture:
            note("no joint moves, so there is no arm to write or draw")
    if as_json:
        print_json({**report.to_dict(), "robot": None if arm is None else arm.to_dict()})
    else:
        _print(report, arm)
    if not report.ok:
        raise typer.Exit(ExitCode.NO)


def _require_outputs(robot: Path | None, srdf: Path | None, picture: Path | None) -> None:
    """Refuse outputs before the work is done."""
    if picture is not None:
        from tmkit.viewer import require_plots

        require_plots(picture)
    for path in (robot, srdf, picture):
        if path is not None:
            require_writable(path)
    if robot is not None and robot.suffix != ".toml":
        raise typer.BadParameter(f"'{robot}' does not end in .toml", param_hint="--write-robot")


def _arm(
    scene: SceneGraph, robot: str | None, *, base: str | None, tip: str | None, name: str, seed: int
) -> Manipulator | None:
    """Return the arm that is given or guessed, ``None`` when nothing moves."""
    from tmkit.motion import find_manipulator, guess_manipulator
    from tmkit.motion.robot_remarks import without_flat_meshes

    if robot is not None:
        return find_manipulator(robot, scene)
    if not scene.joint_names:
        return None
    return guess_manipulator(without_flat_meshes(scene), base=base, tip=tip, name=name, seed=seed)


def _write(
    scene: SceneGraph,
    arm: Manipulator,
    report: RobotReport,
    *,
    robot: Path | None,
    srdf: Path | None,
    picture: Path | None,
    seed: int,
) -> None:
    """Write what is wanted."""
    if robot is not None:
        from tmkit.motion import write_manipulator

        write_manipulator(arm, robot)
    if srdf is not None:
        from tmkit.srdf import write_srdf

        write_srdf(_semantics(scene, arm, report), srdf)
    if picture is not None:
        from tmkit.motion import reachable_region
        from tmkit.motion.robot_remarks import without_flat_meshes
        from tmkit.viewer import draw_region

        samples = _PICTURE_SAMPLES * report.samples
        draw_region(reachable_region(without_flat_meshes(scene), arm, samples=samples, seed=seed), picture)


def _print(report: RobotReport, arm: Manipulator | None) -> None:
    """Print a report for people."""
    width = max((len(row.name) for row in report.joints), default=0)
    for row in report.joints:
        typer.echo(_line(row, width))
    for chain in report.chains[:4]:
        typer.echo(f"  chain of {len(chain.joints)} joints from '{chain.base}' to '{chain.tip}'")
    if arm is not None:
        typer.echo(f"  arm of {len(arm.joints)} joints from '{arm.base}' to '{arm.tip}', {arm.gripper_kind} gripper")
    for first, second in report.always:
        typer.echo(f"  always in collision: {first} and {second}")
    typer.echo(f"  {len(report.never)} checked pairs never collided")
    for remark in report.remarks:
        typer.echo(f"  remark: {remark}")
    for problem in report.problems:
        typer.echo(f"  problem: {problem}")
    typer.echo(repr(report))


def _line(row: JointRow, width: int) -> str:
    """Return a line of the table of joints, an odd one with a star."""
    unit = "m" if row.type == "prismatic" else "rad"
    limits = " to ".join(f"{value:8.3f}" if math.isfinite(value) else "    none" for value in (row.lower, row.upper))
    speed = f"{row.velocity:7.3f} {unit}/s" if math.isfinite(row.velocity) else "no speed limit"
    return f"{'*' if row.is_odd else ' '} {row.name:<{width}}  {row.type:<10} {limits} {unit:<3}  {speed}"


def _semantics(scene: SceneGraph, arm: Manipulator, report: RobotReport) -> RobotSemantics:
    """Return the arm and its hand as groups with states, and the pairs that need no check."""
    from tmkit.srdf import Chain, EndEffector, Group, GroupState, LinkPair, RobotSemantics

    words = {"adjacent": "Adjacent", "always": "Always"}
    pairs = {(first, second): words.get(reason, reason) for first, second, reason in scene.allowed_pairs}
    pairs |= dict.fromkeys(report.always, "Always") | dict.fromkeys(report.never, "Never")
    groups = [Group("arm", chains=(Chain(arm.base, arm.tip),))]
    states = [("ready", "arm", arm.ready)]
    if arm.gripper_joints:
        groups.append(Group("hand", joints=arm.gripper_joints))
        states += [("open", "hand", arm.gripper_open), ("closed", "hand", arm.gripper_closed)]
    return RobotSemantics(
        arm.name,
        groups=tuple(groups),
        states=tuple(
            GroupState(name, group, tuple((joint, (value,)) for joint, value in values.items()))
            for name, group, values in states
        ),
        end_effectors=(EndEffector("gripper", arm.tip, "hand", "arm"),) if arm.gripper_joints else (),
        disabled=tuple(LinkPair(first, second, reason) for (first, second), reason in pairs.items()),
    )
