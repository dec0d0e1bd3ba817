"""Commands about robots: ``tmkit robot ...``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit.cli import ExitCode
from tmkit.cli.common import AsJson, Scenes, Seed, load, print_json, progress, require_writable

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.motion import RobotReport
    from tmkit.srdf import RobotSemantics

__all__ = ["app"]

app = typer.Typer(help="Look at robots.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def check(
    scenes: Scenes,
    robot: Annotated[
        str | None, typer.Option(metavar="NAME|FILE.toml|FILE.srdf[:GROUP]", help="The arm; left out, it is guessed.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Random configurations to look at.", min=1)] = 2000,
    seed: Seed = 0,
    write_srdf: Annotated[
        Path | None, typer.Option(metavar="OUT.srdf", help="Write the chain and the pairs that need no check.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a robot is fit for planning: joints, meshes, collisions with itself, inverse kinematics."""
    from tmkit.motion import check_robot, find_manipulator

    if write_srdf is not None:
        require_writable(write_srdf)
    scene = load(scenes)
    arm = find_manipulator(robot, scene) if robot is not None else None
    with progress("checking the robot"):
        report = check_robot(scene, arm, samples=samples, seed=seed)
    if write_srdf is not None:
        from tmkit.srdf import write_srdf as write

        write(_semantics(scene, report), write_srdf)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(ExitCode.NO)


def _print(report: RobotReport) -> None:
    """Print a report for people."""
    for chain in report.chains[:4]:
        typer.echo(f"  chain of {len(chain.joints)} joints from '{chain.base}' to '{chain.tip}'")
    for first, second in report.always:
        typer.echo(f"  always in collision: {first} and {second}")
    typer.echo(f"  {len(report.never)} checked pairs never collided")
    for remark in report.remarks:
        typer.echo(f"  remark: {remark}")
    for problem in report.problems:
        typer.echo(f"  problem: {problem}")
    typer.echo(repr(report))


def _semantics(scene: SceneGraph, report: RobotReport) -> RobotSemantics:
    """Return the longest chain as a group, and the pairs that need no check."""
    from tmkit.srdf import Chain, Group, LinkPair, RobotSemantics

    words = {"adjacent": "Adjacent", "always": "Always"}
    pairs = {(first, second): words.get(reason, reason) for first, second, reason in scene.allowed_pairs}
    pairs |= dict.fromkeys(report.always, "Always") | dict.fromkeys(report.never, "Never")
    chains = report.chains[:1]
    return RobotSemantics(
        "robot",
        groups=tuple(Group("arm", chains=(Chain(chain.base, chain.tip),)) for chain in chains),
        disabled=tuple(LinkPair(first, second, reason) for (first, second), reason in pairs.items()),
    )
