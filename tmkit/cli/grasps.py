"""Command for grasps from files: ``tmkit object grasps``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmkit.cli.common import AsJson, SceneFileOptions, load
from tmkit.cli.completion import complete_robots, complete_scenes
from tmkit.cli.reporting import print_json, progress, say_wrapped
from tmkit.cli.signals import ExitCode

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.manipulation.grasp_files.values import PublishedGrasps


@dataclass(frozen=True)
class GraspFrames:
    """Object of the grasps, and the frames of their poses."""

    object: Annotated[
        str | None, typer.Option(metavar="FRAME", help="The object, if several are movable.")
    ] = None
    frame: Annotated[
        str | None,
        typer.Option(
            metavar="FRAME",
            help="What the poses are relative to, e.g. a camera; by default the object.",
        ),
    ] = None
    gripper_frame: Annotated[
        str | None,
        typer.Option(
            metavar="FRAME",
            help="For MoveIt: the frame of the robot whose poses these are, e.g. panda_link8.",
        ),
    ] = None
    object_id: Annotated[
        int | None,
        typer.Option(metavar="N", help="The number of the object, if the file has several."),
    ] = None


def grasps(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Grasps of GraspNet (.npy, .npz), ACRONYM (.h5, .json) or MoveIt (.yaml, .json).",
        ),
    ],
    scenes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCENE]",
            help="Scene files with the object and the arm; without, only the file is read.",
            autocompletion=complete_scenes,
        ),
    ] = None,
    *,
    frames: GraspFrames,
    robot: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE", help="The arm with the hand.", autocompletion=complete_robots
        ),
    ] = "panda",
    files: SceneFileOptions,
    as_json: AsJson = False,
) -> None:
    """Read grasps of an object from a file, and check them with the hand of an arm.

    'tmkit plan --grasps OBJECT=FILE' plans with them. The exit code is 1 if none is feasible.
    """
    from tmkit.manipulation import load_grasps
    from tmkit.manipulation.grasp_files.loading import read_grasps
    from tmkit.robots.robot_files import find_manipulator

    if not scenes:
        _print_report(_file_report(read_grasps(file)), as_json=as_json)
        return
    scene = load(scenes, reading=files.reading_options())
    arm = find_manipulator(robot, scene)
    loaded = load_grasps(
        file,
        scene,
        _only_movable(scene) if frames.object is None else frames.object,
        frame=frames.frame,
        gripper_frame=frames.gripper_frame,
        object_id=frames.object_id,
        q=arm.ready_configuration(scene),
    )
    with progress("checking the grasps"):
        check = loaded.check(scene, robot=arm)
    widths = [1e3 * grasp.width for grasp in check.feasible]
    report = {
        "file": loaded.summary,
        "hand": f"'{arm.tip}' of '{arm.name}', {1e3 * arm.width_open:.0f} mm open",
        "feasible": len(check.feasible),
        "check": check.summary,
    }
    if widths:
        report["width in mm"] = f"{min(widths):.1f} to {max(widths):.1f}"
    _print_report(report, as_json=as_json)
    if not check.feasible:
        raise typer.Exit(ExitCode.NO)


def _only_movable(scene: SceneGraph) -> str:
    """Return the only movable object of a scene.

    Raises:
        typer.BadParameter: if there is none, or several.
    """
    from tmkit.robots import movable_frames

    names = movable_frames(scene)
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise typer.BadParameter(
            f"name one of the movable objects: {listed}", param_hint="--object"
        )
    return names[0]


def _file_report(published: PublishedGrasps) -> dict[str, Any]:
    """Return the content of a file, by property."""
    grasps = published.grasps
    openings = [1e3 * grasp.opening for grasp in grasps if grasp.opening is not None]
    references = sorted({grasp.reference for grasp in grasps} - {""})
    ids = sorted({grasp.object_id for grasp in grasps if grasp.object_id is not None})
    scores = [grasp.score for grasp in grasps]
    report: dict[str, Any] = {
        "format": published.publisher,
        "grasps": len(grasps),
        "poses": "of the fingertips" if published.has_fingertip_frames else "of a robot's frame",
        "relative to": ", ".join(references) or "not stated: the object, or --frame",
        "scores": f"{min(scores):.3g} to {max(scores):.3g}",
    }
    if openings:
        report["open fingers in mm"] = f"{min(openings):.1f} to {max(openings):.1f}"
    if ids:
        report["object ids"] = ids
    if published.notes:
        report["notes"] = list(published.notes)
    return report


def _print_report(report: dict[str, Any], *, as_json: bool) -> None:
    """Print a report as lines or as JSON."""
    if as_json:
        print_json(report)
        return
    for key, value in report.items():
        text = "; ".join(map(str, value)) if isinstance(value, list) else value
        say_wrapped(f"  {key}: {text}")
