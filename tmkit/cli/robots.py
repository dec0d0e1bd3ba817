"""Commands for robots: ``tmkit robot ...``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit._support.results import problem_count
from tmkit.cli.common import AsJson, SceneFileOptions, Scenes, Seed, load, note, require_writable
from tmkit.cli.completion import complete_robots
from tmkit.cli.option_groups import add_command
from tmkit.cli.reporting import print_json, progress, say, say_wrapped
from tmkit.cli.signals import ExitCode

if TYPE_CHECKING:
    from tmkit._support.source_location import ImportNote
    from tmkit.formats.moveit.configuration import MoveItConfiguration
    from tmkit.formats.srdf.values import RobotSemantics
    from tmkit.graph import SceneGraph
    from tmkit.robots import Manipulator
    from tmkit.robots.infer_arm import InferredArm
    from tmkit.robots.robot_check import JointRow, RobotReport
    from tmkit.tamp.trial_pick import TrialPick

app = typer.Typer(help="Check robots.", no_args_is_help=True)

_PICTURE_SAMPLES = 10
"""Sampled configurations of a picture for each checked one; they only need a collision test."""

_MAX_CHAINS_PRINTED = 4
"""Number of kinematic chains in the report."""


@app.callback()
def _group() -> None:
    pass


GroupOption = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP[:END_EFFECTOR]",
        help="The group of the arm, if a scene is an SRDF file or a MoveIt configuration.",
    ),
]


@dataclass(frozen=True)
class ArmOptions:
    """Description of the arm, or the frames of an inferred arm."""

    robot: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml|FILE.srdf[:GROUP[:HAND]]",
            help="The arm; by default it is inferred.",
            autocompletion=complete_robots,
        ),
    ] = None
    base: Annotated[
        str | None, typer.Option(metavar="FRAME", help="The base frame of an inferred arm.")
    ] = None
    tip: Annotated[
        str | None, typer.Option(metavar="FRAME", help="The hand frame of an inferred arm.")
    ] = None
    group: GroupOption = None


@dataclass(frozen=True)
class ArmChoice:
    """Frames of an arm that is inferred, and its group in an SRDF file.

    Attributes:
        base: frame that the arm stands on, or None.
        tip: frame of the hand, or None.
        tool: frame between the fingertips, or None.
        group: ``GROUP`` or ``GROUP:END_EFFECTOR`` of the SRDF file, or None.
        configuration: SRDF file among the scenes, with its package if any, or None.
    """

    base: str | None = None
    tip: str | None = None
    tool: str | None = None
    group: str | None = None
    configuration: MoveItConfiguration | None = None


@dataclass(frozen=True)
class SamplingOptions:
    """Number and seed of random configurations."""

    samples: Annotated[
        int, typer.Option(help="Number of random configurations that are checked.", min=1)
    ] = 2000
    seed: Seed = 0


@dataclass(frozen=True)
class CheckOutputs:
    """Files to write, and the trial pick."""

    write_srdf: Annotated[
        Path | None,
        typer.Option(metavar="OUT.srdf", help="Write the arm and the disabled collision pairs."),
    ] = None
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.png", help="Draw the reachable workspace (needs the extra 'pictures')."
        ),
    ] = None
    trial: Annotated[bool, typer.Option(help="Plan a trial pick of a cube of 2 to 4 cm.")] = True
    trial_picture: Annotated[
        Path | None,
        typer.Option(metavar="OUT.png", help="Draw the end of the trial pick, or its attempt."),
    ] = None


def check(
    scenes: Scenes,
    *,
    arm_options: ArmOptions,
    sampling: SamplingOptions,
    outputs: CheckOutputs,
    as_json: AsJson = False,
    files: SceneFileOptions,
) -> None:
    """Check whether a robot can move and, with a gripper, pick.

    The check covers joints, meshes, self-collisions, inverse kinematics, the hand and a trial pick.
    """
    from tmkit.robots import check_robot
    from tmkit.robots.robot_files import find_manipulator

    robot, base, tip = arm_options.robot, arm_options.base, arm_options.tip
    if robot is not None and any((base, tip, arm_options.group)):
        raise typer.BadParameter(
            "these are for an inferred arm, and --robot gives one",
            param_hint="--base / --tip / --group",
        )
    if outputs.picture is not None:
        from tmkit.visualization.drawing import require_plots

        require_plots(outputs.picture)
    for path in (outputs.write_srdf, outputs.picture, outputs.trial_picture):
        if path is not None:
            require_writable(path)
    notes: list[ImportNote] = []
    scene = load(scenes, reading=files.reading_options(), on_note=notes.append)
    seed = sampling.seed

    # Find or infer the arm, check it, and write its files.
    arm, inferred = None, None
    with progress("checking the robot"):
        if robot is not None:
            arm = find_manipulator(robot, scene)
        elif scene.joint_names:
            configuration = find_configuration(scenes, scene, arm_options.group, files)
            choice = ArmChoice(base, tip, None, arm_options.group, configuration)
            inferred = infer_robot_arm(scene, choice, name=name_of(scenes[0]), seed=seed)
            scene, arm = inferred.scene, inferred.robot
        report = check_robot(scene, arm, samples=sampling.samples, seed=seed, import_notes=notes)
        if arm is not None:
            _write_files(scene, arm, report, outputs, seed=seed)
        elif outputs.write_srdf or outputs.picture:
            note("no joint moves, so there is no arm to write or draw")
    lines, missing = (inferred.inferred, inferred.missing) if inferred is not None else ((), "")

    # Plan a trial pick with a complete arm.
    if outputs.trial and arm is not None and report.is_valid and not missing:
        trial_lines, missing, _ = pick_cube(scene, arm, seed=seed, picture=outputs.trial_picture)
        lines = (*lines, *trial_lines)
    if as_json:
        document = {
            "robot": None if arm is None else arm.to_dict(),
            "inferred": list(lines),
            "missing": missing,
        }
        print_json({**report.to_dict(), "ok": report.is_valid and not missing, **document})
    else:
        _print_report(report, arm, lines, missing)
    if not report.is_valid or missing:
        raise typer.Exit(ExitCode.NO)


def name_of(scene: str) -> str:
    """Return the name of a robot, from the name of its file or folder."""
    from tmkit.formats.registry import FORMATS

    path = Path(scene)
    if path.is_dir():
        return path.resolve().name
    # A xacro file may have the suffix of its result before its own.
    name = Path(path.stem)
    is_format = FORMATS.find_built_in(name.suffix.removeprefix(".").lower()) is not None
    return name.stem if is_format else name.name


def find_configuration(
    scenes: Sequence[str], scene: SceneGraph, group: str | None, files: SceneFileOptions
) -> MoveItConfiguration | None:
    """Return the MoveIt configuration or the SRDF file among the scenes, or None.

    An SRDF file without an arm only has pairs of links, and does not count.

    Args:
        scenes: names of scenes.
        scene: the merged scene.
        group: group that the user chooses, or None.
        files: options for reading the scenes.

    Raises:
        typer.BadParameter: if there is none, but a group is chosen.
    """
    from tmkit.formats.moveit.configuration import MoveItConfiguration, read_moveit_configuration
    from tmkit.formats.reading import read_specifications
    from tmkit.formats.srdf.format import is_srdf_file
    from tmkit.robots.srdf_arms import arm_groups

    reading = files.reading_options()
    folder = next((name for name in scenes if Path(name).is_dir()), None)
    if folder is not None:
        return read_moveit_configuration(folder, reading=reading)
    for name in filter(is_srdf_file, scenes):
        (semantics,) = read_specifications([name], reading=reading).semantics
        if group is not None or arm_groups(semantics, scene):
            return MoveItConfiguration(Path(name).parent, Path(scenes[0]), semantics, {}, (), {})
    if group is not None:
        raise typer.BadParameter(
            "no scene is an SRDF file or a MoveIt configuration", param_hint="--group"
        )
    return None


def infer_robot_arm(scene: SceneGraph, choice: ArmChoice, *, name: str, seed: int) -> InferredArm:
    """Infer the arm of a robot, which may have flat meshes; a check reports those.

    The SRDF file of the choice gives the arm, unless the choice has a tip and no group.

    Args:
        scene: scene with the robot.
        choice: frames of the arm, and its group.
        name: name of the description.
        seed: seed of the inference.
    """
    from tmkit.robots import infer_arm
    from tmkit.robots.configured_arms import find_srdf_arm, with_configuration
    from tmkit.robots.robot_check import without_flat_meshes

    configuration, arm = choice.configuration, None
    if configuration is not None and (choice.tip is None or choice.group is not None):
        group, _, end_effector = (choice.group or "").partition(":")
        arm = find_srdf_arm(
            configuration.semantics,
            scene,
            group=group or None,
            end_effector=end_effector or None,
            solved_groups=configuration.kinematics,
        )
        choice = replace(choice, base=choice.base or arm.base, tip=choice.tip or arm.tip)
    solid_scene = without_flat_meshes(scene)
    inferred = infer_arm(
        solid_scene, base=choice.base, tip=choice.tip, tool=choice.tool, name=name, seed=seed
    )
    if arm is not None and configuration is not None:
        inferred = with_configuration(inferred, arm, configuration)
    if solid_scene == scene:
        return inferred
    tool_frame = inferred.added_tool
    if tool_frame:
        pose = inferred.scene.local_pose(tool_frame)
        scene = scene.add_frame(tool_frame, inferred.robot.tip, pose=pose)
    return replace(inferred, scene=scene)


def pick_cube(
    scene: SceneGraph, arm: Manipulator, *, seed: int, picture: Path | None
) -> tuple[tuple[str, ...], str, TrialPick]:
    """Plan to pick a cube of 2 to 4 cm, and draw the final or the initial scene.

    Returns:
        Lines that report success or that the arm has no gripper, the reason of a failure or an
        empty text, and the trial.
    """
    from tmkit.tamp.trial_pick import TrialPickStatus, trial_pick

    with progress("planning a trial pick") as show:
        trial = trial_pick(scene, arm, seed=seed, on_progress=show)
    if picture is not None and trial.scene is not None:
        _draw_trial(trial, arm, picture)
    size = f"{100 * trial.size:g} cm"
    if trial.status is TrialPickStatus.PICKED:
        return (f"trial pick: '{arm.name}' picks a cube of {size}, looking down",), "", trial
    if trial.status is TrialPickStatus.NO_GRIPPER:
        return (f"trial pick: none, since {trial.reason}",), "", trial
    return (), f"the trial pick of a cube of {size} failed: {trial.reason}", trial


def _draw_trial(trial: TrialPick, arm: Manipulator, path: Path) -> None:
    """Draw the cube in the hand, or the initial scene of a trial without a plan."""
    from tmkit.simulation import Simulation, fit_camera, render, write_picture
    from tmkit.tamp.trial_pick import OBJECT

    plan = trial.result.plan if trial.result is not None else None
    scene = trial.scene if plan is None else plan.final_scene
    assert scene is not None
    q = plan.final_q if plan is not None else arm.ready_configuration(scene)
    with Simulation.from_scene(scene, q) as simulation:
        write_picture(path, render(simulation, fit_camera(simulation, focus=[OBJECT, arm.tip])))


def _write_files(
    scene: SceneGraph, arm: Manipulator, report: RobotReport, outputs: CheckOutputs, *, seed: int
) -> None:
    """Write the SRDF file and the picture of the reachable workspace, as far as they are set."""
    srdf, picture = outputs.write_srdf, outputs.picture
    if srdf is not None:
        from tmkit.formats.srdf import write_srdf

        write_srdf(_make_semantics(scene, arm, report), srdf)
    if picture is not None:
        from tmkit.motion import reachable_region
        from tmkit.robots.robot_check import without_flat_meshes
        from tmkit.visualization.region_picture import draw_region

        samples = _PICTURE_SAMPLES * report.samples
        region = reachable_region(without_flat_meshes(scene), arm, samples=samples, seed=seed)
        draw_region(region, picture)


def _print_report(
    report: RobotReport, arm: Manipulator | None, lines: Sequence[str], missing: str
) -> None:
    """Print the joints, chains, collision pairs, notes and problems of a robot.

    Args:
        lines: inferred properties and the result of the trial pick.
        missing: missing part of the arm, or an empty text.
    """
    width = max((len(row.name) for row in report.joints), default=0)
    for row in report.joints:
        say(_joint_line(row, width))
    for chain in report.chains[:_MAX_CHAINS_PRINTED]:
        say(f"  chain of {len(chain.joints)} joints from '{chain.base}' to '{chain.tip}'")
    if arm is not None:
        gripper = f"{arm.gripper_kind} gripper" if arm.gripper_kind != "none" else "no gripper"
        say(f"  arm of {len(arm.joints)} joints from '{arm.base}' to '{arm.tip}', {gripper}")
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
    say(_summary(report, missing))


def _summary(report: RobotReport, missing: str) -> str:
    """Return whether the robot can plan, with the numbers of the check, in one line."""
    outcome = problem_count(report)
    if report.is_valid and missing:
        outcome = "incomplete"
    numbers = f"{report.colliding} of {report.samples} configurations collide"
    if report.reach is not None:
        numbers += f", {report.reach.solved} of {report.reach.poses} poses reached"
    return f"{outcome}: {numbers}"


def _joint_line(row: JointRow, width: int) -> str:
    """Return a row of the joint table; a star marks a joint with notes."""
    unit = "m" if row.type == "prismatic" else "rad"
    limits = " to ".join(
        f"{value:8.3f}" if math.isfinite(value) else "    none" for value in (row.lower, row.upper)
    )
    speed = f"{row.velocity:7.3f} {unit}/s" if math.isfinite(row.velocity) else "no speed limit"
    return (
        f"{'*' if row.is_odd else ' '} {row.name:<{width}}  {row.type:<10} {limits} {unit:<3} "
        f" {speed}"
    )


def _make_semantics(scene: SceneGraph, arm: Manipulator, report: RobotReport) -> RobotSemantics:
    """Return SRDF groups and states of the arm and its hand, and the disabled collision pairs."""
    from tmkit.formats.srdf.values import (
        Chain,
        EndEffector,
        GroupState,
        LinkPair,
        RobotSemantics,
        SrdfGroup,
    )

    srdf_reasons = {"adjacent": "Adjacent", "always": "Always"}
    pairs = {
        (first, second): srdf_reasons.get(reason, reason)
        for first, second, reason in scene.allowed_pairs
    }
    pairs |= dict.fromkeys(report.always, "Always") | dict.fromkeys(report.never, "Never")
    groups = [SrdfGroup("arm", chains=(Chain(arm.base, arm.tip),))]
    states = [("ready", "arm", arm.ready)]
    if arm.gripper_joints:
        groups.append(SrdfGroup("hand", joints=arm.gripper_joints))
        states += [("open", "hand", arm.gripper_open), ("closed", "hand", arm.gripper_closed)]
    group_states = tuple(
        GroupState(name, group, tuple((joint, (value,)) for joint, value in values.items()))
        for name, group, values in states
    )
    hand = EndEffector("gripper", arm.tip, "hand", "arm")
    return RobotSemantics(
        arm.name,
        groups=tuple(groups),
        states=group_states,
        end_effectors=(hand,) if arm.gripper_joints else (),
        disabled=tuple(
            LinkPair(first, second, reason) for (first, second), reason in pairs.items()
        ),
    )


add_command(app, check)
