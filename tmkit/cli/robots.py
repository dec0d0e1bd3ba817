"""Commands about robots: ``tmkit robot ...``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit.cli.common import (
    AllowFolders,
    AsJson,
    Meshes,
    Packages,
    Scenes,
    Seed,
    load,
    note,
    reading_of,
    require_writable,
)
from tmkit.cli.completion import Kind, complete_names
from tmkit.cli.reporting import print_json, progress, say, say_wrapped
from tmkit.cli.signals import ExitCode

if TYPE_CHECKING:
    from tmkit._support.source_location import ImportNote
    from tmkit.formats.srdf.values import RobotSemantics
    from tmkit.graph import SceneGraph
    from tmkit.robots import Manipulator
    from tmkit.robots.infer_arm import InferredArm
    from tmkit.robots.robot_check import JointRow, RobotReport
    from tmkit.tamp.trial_pick import TrialPick

app = typer.Typer(help="Check robots.", no_args_is_help=True)

# configurations of the picture for each that is checked: they are only tested for collisions
_PICTURE_SAMPLES = 10


@app.callback()
def _group() -> None:
    pass


@app.command()
def check(
    scenes: Scenes,
    robot: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml|FILE.srdf[:GROUP[:HAND]]",
            help="The arm; by default it is inferred.",
            autocompletion=complete_names(Kind.ROBOTS),
        ),
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="FRAME", help="The base frame of an inferred arm.")
    ] = None,
    tip: Annotated[
        str | None, typer.Option(metavar="FRAME", help="The hand frame of an inferred arm.")
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Number of random configurations that are checked.", min=1)
    ] = 2000,
    seed: Seed = 0,
    write_srdf: Annotated[
        Path | None,
        typer.Option(metavar="OUT.srdf", help="Write the arm and the disabled collision pairs."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.png", help="Draw the reachable workspace (needs the extra 'pictures')."
        ),
    ] = None,
    trial: Annotated[bool, typer.Option(help="Plan a trial pick of a cube of 4 cm.")] = True,
    trial_picture: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Draw the end of the trial pick, or its attempt."),
    ] = None,
    as_json: AsJson = False,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Check whether a robot can pick: joints, meshes, self-collisions, inverse kinematics, hand, a trial pick."""
    from tmkit.robots import check_robot, find_manipulator

    if robot is not None and (base is not None or tip is not None):
        raise typer.BadParameter(
            "these are for a guessed arm, and --robot gives one", param_hint="--base / --tip"
        )
    if picture is not None:
        from tmkit.visualization.drawing import require_plots

        require_plots(picture)
    for path in (write_srdf, picture, trial_picture):
        if path is not None:
            require_writable(path)
    notes: list[ImportNote] = []
    scene = load(scenes, reading=reading_of(allow, package, meshes), on_note=notes.append)
    inferred = None
    with progress("checking the robot"):
        if robot is None and scene.joint_names:
            inferred = inferred_arm(scene, base=base, tip=tip, name=Path(scenes[0]).stem, seed=seed)
            scene = inferred.scene
        arm = inferred.manipulator if inferred is not None else None
        arm = find_manipulator(robot, scene) if robot is not None else arm
        report = check_robot(scene, arm, samples=samples, seed=seed, import_notes=notes)
        if arm is not None:
            _write(scene, arm, report, srdf=write_srdf, picture=picture, seed=seed)
        elif write_srdf or picture:
            note("no joint moves, so there is no arm to write or draw")
    lines, missing = (inferred.inferred, inferred.missing) if inferred is not None else ((), "")
    if trial and arm is not None and report.is_valid and not missing:
        picked, missing, _ = pick_a_cube(scene, arm, seed=seed, picture=trial_picture)
        lines = (*lines, *picked)
    if as_json:
        answer = {
            "robot": None if arm is None else arm.to_dict(),
            "inferred": list(lines),
            "missing": missing,
        }
        print_json({**report.to_dict(), "ok": report.is_valid and not missing, **answer})
    else:
        _print(report, arm, lines, missing)
    if not report.is_valid or missing:
        raise typer.Exit(ExitCode.NO)


def inferred_arm(
    scene: SceneGraph,
    *,
    base: str | None,
    tip: str | None,
    tool: str | None = None,
    name: str,
    seed: int,
) -> InferredArm:
    """Infer the arm of a robot, also of one with flat meshes, on which a check reports."""
    from tmkit.robots import infer_arm
    from tmkit.robots.robot_check import without_flat_meshes

    found = infer_arm(
        without_flat_meshes(scene), base=base, tip=tip, tool=tool, name=name, seed=seed
    )
    added = found.added_tool
    if added:
        scene = scene.add_frame(added, found.manipulator.tip, pose=found.scene.local_pose(added))
    return replace(found, scene=scene)


def pick_a_cube(
    scene: SceneGraph, arm: Manipulator, *, seed: int, picture: Path | None
) -> tuple[tuple[str, ...], str, TrialPick]:
    """Plan to pick a cube of 4 cm, and draw the end or the attempt; return that it worked, or what is missing."""
    from tmkit.tamp.trial_pick import TrialPickStatus, trial_pick

    with progress("planning a trial pick") as show:
        tried = trial_pick(scene, arm, seed=seed, on_progress=show)
    if picture is not None and tried.scene is not None:
        _draw_trial(tried, arm, picture)
    if tried.status is TrialPickStatus.PICKED:
        return (f"trial pick: '{arm.name}' picks a cube of 4 cm, looking down",), "", tried
    return (), f"the trial pick of a cube of 4 cm failed: {tried.reason}", tried


def _draw_trial(tried: TrialPick, arm: Manipulator, path: Path) -> None:
    """Draw the cube in the hand, or where it was to be picked."""
    from tmkit.simulation import Simulation, fit_camera, render, write_picture
    from tmkit.tamp.trial_pick import OBJECT

    plan = tried.result.plan if tried.result is not None else None
    scene = tried.scene if plan is None else plan.final_scene
    assert scene is not None
    q = plan.final_q if plan is not None else arm.ready_configuration(scene)
    with Simulation.from_scene(scene, q) as simulation:
        write_picture(path, render(simulation, fit_camera(simulation, focus=[OBJECT, arm.tip])))


def _write(
    scene: SceneGraph,
    arm: Manipulator,
    report: RobotReport,
    *,
    srdf: Path | None,
    picture: Path | None,
    seed: int,
) -> None:
    if srdf is not None:
        from tmkit.formats.srdf import write_srdf

        write_srdf(_semantics(scene, arm, report), srdf)
    if picture is not None:
        from tmkit.motion import reachable_region
        from tmkit.robots.robot_check import without_flat_meshes
        from tmkit.visualization.region_picture import draw_region

        samples = _PICTURE_SAMPLES * report.samples
        draw_region(
            reachable_region(without_flat_meshes(scene), arm, samples=samples, seed=seed), picture
        )


def _print(
    report: RobotReport, arm: Manipulator | None, lines: Sequence[str], missing: str
) -> None:
    width = max((len(row.name) for row in report.joints), default=0)
    for row in report.joints:
        say(_line(row, width))
    for chain in report.chains[:4]:
        say(f"  chain of {len(chain.joints)} joints from '{chain.base}' to '{chain.tip}'")
    if arm is not None:
        say(
            f"  arm of {len(arm.joints)} joints from '{arm.base}' to '{arm.tip}',"
            f" {arm.gripper_kind} gripper"
        )
    for first, second in report.always:
        say(f"  always in collision: {first} and {second}")
    say(f"  {len(report.never)} checked pairs never collided")
    for text in report.notes:
        say(f"  note: {text}")
    for problem in report.problems:
        say_wrapped(f"  problem: {problem}")
    for line in lines:
        say(f"  {line if line.startswith('trial') else f'inferred: {line}'}")
    if missing:
        say_wrapped(f"  missing: {missing}")
    say(repr(report))


def _line(row: JointRow, width: int) -> str:
    """Return a line of the table of joints, an odd one with a star."""
    unit = "m" if row.type == "prismatic" else "rad"
    limits = " to ".join(
        f"{value:8.3f}" if math.isfinite(value) else "    none" for value in (row.lower, row.upper)
    )
    speed = f"{row.velocity:7.3f} {unit}/s" if math.isfinite(row.velocity) else "no speed limit"
    return (
        f"{'*' if row.is_odd else ' '} {row.name:<{width}}  {row.type:<10} {limits} {unit:<3} "
        f" {speed}"
    )


def _semantics(scene: SceneGraph, arm: Manipulator, report: RobotReport) -> RobotSemantics:
    """Return the arm and its hand as groups with states, and the pairs that need no check."""
    from tmkit.formats.srdf.values import (
        Chain,
        EndEffector,
        GroupState,
        LinkPair,
        RobotSemantics,
        SrdfGroup,
    )

    words = {"adjacent": "Adjacent", "always": "Always"}
    pairs = {
        (first, second): words.get(reason, reason) for first, second, reason in scene.allowed_pairs
    }
    pairs |= dict.fromkeys(report.always, "Always") | dict.fromkeys(report.never, "Never")
    groups = [SrdfGroup("arm", chains=(Chain(arm.base, arm.tip),))]
    states = [("ready", "arm", arm.ready)]
    if arm.gripper_joints:
        groups.append(SrdfGroup("hand", joints=arm.gripper_joints))
        states += [("open", "hand", arm.gripper_open), ("closed", "hand", arm.gripper_closed)]
    return RobotSemantics(
        arm.name,
        groups=tuple(groups),
        states=tuple(
            GroupState(name, group, tuple((joint, (value,)) for joint, value in values.items()))
            for name, group, values in states
        ),
        end_effectors=(
            (EndEffector("gripper", arm.tip, "hand", "arm"),) if arm.gripper_joints else ()
        ),
        disabled=tuple(
            LinkPair(first, second, reason) for (first, second), reason in pairs.items()
        ),
    )
