"""Robot descriptions in files, and the robot arguments of the API.

A robot argument is a :class:`~tmkit.robots.Manipulator`, the name of a built-in one, or a TOML
file. It may also be an SRDF file with the group of the arm, ``FILE.srdf:ARM`` or
``FILE.srdf:ARM:HAND`` (:mod:`tmkit.robots.srdf_arms`), or a sequence of arms. The first arm acts by
default. :func:`find_manipulator` reads all of these and checks that the result fits the scene. A
TOML file has the keys of :class:`~tmkit.robots.Manipulator`. Keys of the hand are in the table
``[gripper]`` under shorter names.

Invariants: errors have the file, and the line if there is one. Unknown keys are errors. Arms have
different names and no joint in common, so a joint belongs to at most one arm.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument
from tmkit._support.data import data_path, resolve_name
from tmkit._support.output import write_text
from tmkit._support.source_location import did_you_mean
from tmkit._support.terminal import printable
from tmkit._support.toml_files import read_toml
from tmkit.errors import FileFormatError, RobotError, UnknownNameError
from tmkit.formats.registry import FORMATS
from tmkit.formats.srdf.format import SRDF
from tmkit.graph import SceneGraph
from tmkit.robots.manipulator import Manipulator

_KEYS = [item.name for item in fields(Manipulator)]
"""Attributes of a manipulator."""

_GRIPPER_KEYS = {
    name.removeprefix("gripper_"): name for name in _KEYS[_KEYS.index("gripper_kind") :]
}
"""Attributes of the hand by their keys in the table ``[gripper]`` of a file."""

_COMMENTS = {
    "name": "in messages and plans",
    "base": "the frame that the arm stands on",
    "tip": "the frame of the hand: what is grasped becomes its child",
    "tool": (
        "between the fingertips, or in a cup's middle: z away from the hand; fingers close along y"
    ),
    "joints": (
        "from the base to the tip; of a gripper, those that open and close it, without those that"
        " mimic them"
    ),
    "ready": "where plans start by default, with the work in reach; radians or metres",
    "velocity": "largest speeds, rad/s or m/s",
    "acceleration": "largest, rad/s^2 or m/s^2",
    "effort": "largest, N m or N, where they are not the scene's",
    "kind": '"parallel", "jaw" against a fixed finger, "suction", or "none" without a gripper',
    "open": "values of its joints, radians or metres",
    "closed": "their values when it is closed",
    "width_open": "metres between the open fingers",
    "width_closed": "metres between the closed fingers",
    "finger_depth": (
        "metres from the tool back to the palm: how deep an object reaches into the hand"
    ),
    "grip_force": "newtons of each finger, or of the vacuum; see the data sheet",
    "payload": "kg that the arm carries",
    "contact_links": "may touch what is grasped",
    "contact_tolerance": "metres that they may overlap with it",
    "widths": "metres between the fingers at equal steps of the joints from closed to open",
    "finger_depths": "metres from the tool back to the palm or a knuckle, at the same steps",
}
"""Comments on the keys of a written file."""


Robot: TypeAlias = str | Path | Manipulator
"""An arm: a built-in name, a file, or a description."""

Robots: TypeAlias = Robot | Sequence[Robot]
"""An arm or several."""


def load_manipulator(name: str | Path) -> Manipulator:
    """Load a robot description.

    Args:
        name: name of a built-in description in ``scenes/robots/``, or a path, which has a separator
            or suffix.

    Raises:
        MissingFileError: if the description does not exist. The error has the nearest name.
        RobotError: if the file is not TOML, or does not describe an arm.
    """
    check_argument(name, (str, Path), "name", function="load_manipulator")
    if _split_srdf(name) is not None:
        hint = "use tmkit.robots.manipulator_from_srdf(file, scene)"
        raise RobotError.at(
            name, f"an SRDF file describes an arm only together with a scene: {hint}"
        )
    path = resolve_name(name, "scenes/robots", suffixes=(".toml",))
    suffix = path.suffix.lower()
    if suffix != ".toml" and FORMATS.find_built_in(suffix.removeprefix(".")) is not None:
        suggestion = f"write a description of its arm: tmkit new robot {path}"
        raise RobotError.at(
            path, f"is a scene, where a robot description in TOML is expected; {suggestion}"
        )
    document, _ = read_toml(path, "a robot description", error=RobotError)
    gripper = document.pop("gripper", {})
    if not isinstance(gripper, Mapping):
        raise RobotError.at(path, "'gripper' must be a table")
    for key, value in gripper.items():
        if key not in _GRIPPER_KEYS:
            raise RobotError.at(
                path, f"unknown key '{key}' in table 'gripper'{did_you_mean(key, _GRIPPER_KEYS)}"
            )
        if _GRIPPER_KEYS[key] in document:
            raise RobotError.at(
                path,
                f"'{key}' is given in table 'gripper' and outside it as '{_GRIPPER_KEYS[key]}'",
            )
        document[_GRIPPER_KEYS[key]] = value
    try:
        return Manipulator.from_dict(document, source=str(path))
    except RecursionError:
        # The message of another error would contain the nested value.
        raise RobotError.at(path, "is nested too deeply to be a robot description") from None


def _split_srdf(name: str | Path) -> tuple[str, str | None, str | None] | None:
    """Return file, arm and hand of an SRDF argument, or None for other arguments.

    Args:
        name: ``FILE.srdf``, ``FILE.srdf:ARM``, ``FILE.srdf:ARM:HAND``, or any other argument.
    """
    (suffix,) = SRDF.suffixes
    file, mark, groups = str(name).rpartition(f"{suffix}:")
    if mark:
        arm, _, hand = groups.partition(":")
        return f"{file}{suffix}", arm, hand or None
    return (str(name), None, None) if str(name).endswith(suffix) else None


def write_manipulator(
    robot: Manipulator, path: str | os.PathLike[str], *, notes: Sequence[str] = ()
) -> None:
    """Write a description as a TOML file; :func:`load_manipulator` reads it back as an equal one.

    Args:
        robot: description to write.
        path: file to write. An existing file is replaced, and unchanged if writing fails.
        notes: comments at the beginning, a line each.

    Raises:
        OutputError: if the file cannot be written. An existing file is unchanged.
    """
    values = robot.to_dict()
    if not robot.gripper_joints:
        del values["gripper_joints"], values["gripper_open"], values["gripper_closed"]
    if not robot.is_two_fingered and not (robot.width_open or robot.width_closed):
        del values["width_open"], values["width_closed"]
    if robot.gripper_kind == "none":
        defaults = {item.name: item.default for item in fields(Manipulator)}
        for key in ("finger_depth", "grip_force", "contact_links", "contact_tolerance"):
            if getattr(robot, key) == defaults[key]:
                del values[key]
    lines = [f"# {printable(note, keep='')}" for note in notes]
    lines += [_line(key, values.pop(key)) for key in _KEYS[: _KEYS.index("ready")]]
    for key in _KEYS[_KEYS.index("ready") : _KEYS.index("gripper_kind")]:
        if table := values.pop(key, None):
            lines += [
                "",
                f"[{key}]  # {_COMMENTS[key]}",
                *(f"{_key(joint)} = {table[joint]!r}" for joint in table),
            ]
    lines += [
        "",
        "[gripper]",
        *(_line(key, values[name]) for key, name in _GRIPPER_KEYS.items() if name in values),
    ]
    write_text(Path(path), "\n".join(lines) + "\n")


def _line(key: str, value: Any) -> str:
    """Return a line of a TOML file."""
    text = repr(value)
    if isinstance(value, str):
        text = _text(value)
    elif isinstance(value, list):
        items = (_text(item) if isinstance(item, str) else repr(item) for item in value)
        text = f"[{', '.join(items)}]"
    elif isinstance(value, dict):
        text = (
            "{ "
            + ", ".join(f"{_key(joint)} = {number!r}" for joint, number in value.items())
            + " }"
        )
    return f"{key} = {text}" + (f"  # {_COMMENTS[key]}" if key in _COMMENTS else "")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    """Return a TOML string: JSON's escapes are TOML's, but for the character 127."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def resolve_robot(
    robot: Robot, scene: SceneGraph | None = None, *, function: str, name: str = "robot"
) -> Manipulator:
    """Return the description of a robot argument; a description is returned unchanged.

    Each call reads the file of a name, so a caller in a loop should load the description first.

    Args:
        robot: name, file or description of an arm.
        scene: scene in which a named arm must fit. Without it, SRDF files are rejected.
        function: name of the calling function, for messages.
        name: name of its parameter, for messages.

    Raises:
        ArgumentError: if the argument has another type.
        MissingFileError: if there is no such robot. The error has the nearest name.
        RobotError: if the description is invalid or does not fit the scene.
    """
    if isinstance(robot, Manipulator):
        return robot
    check_argument(
        robot,
        (str, Path),
        name,
        function=function,
        words="the name of a robot or a Manipulator",
        hint="tk.load_manipulator(name) returns one",
    )
    return load_manipulator(robot) if scene is None else find_manipulator(robot, scene)


def resolve_robots(
    robots: Robots, scene: SceneGraph | None = None, *, function: str, name: str = "robot"
) -> tuple[Manipulator, ...]:
    """Return the descriptions of an argument for one or several robots.

    The arguments and errors are those of :func:`resolve_robot`.
    """
    return tuple(
        resolve_robot(robot, scene, function=function, name=name) for robot in _items(robots)
    )


def _items(robots: Robots) -> tuple[Robot, ...]:
    """Return an argument for one or several robots as a tuple."""
    if isinstance(robots, str) or not isinstance(robots, Iterable):
        return (robots,)
    return tuple(robots)


def find_manipulator(robot: Robot, scene: SceneGraph) -> Manipulator:
    """Return the description of a robot argument, after checking that it fits a scene.

    Args:
        robot: description, argument of :func:`load_manipulator`, or ``FILE.srdf``,
            ``FILE.srdf:GROUP`` or ``FILE.srdf:GROUP:HAND`` for
            :func:`~tmkit.robots.manipulator_from_srdf`.
        scene: scene with the robot.

    Raises:
        RobotError: if the description is invalid or does not fit the scene.
        MissingFileError: if the file does not exist.
        UnknownNameError: if an SRDF file has no such group.
    """
    check_argument(robot, (str, Path, Manipulator), "robot", function="find_manipulator")
    srdf = None if isinstance(robot, Manipulator) else _split_srdf(robot)
    if srdf is not None:
        from tmkit.robots.srdf_arms import HandChoice, manipulator_from_srdf

        return manipulator_from_srdf(srdf[0], scene, group=srdf[1], hand=HandChoice(group=srdf[2]))
    description = robot if isinstance(robot, Manipulator) else load_manipulator(robot)
    if not set(description.joints) & set(scene.joint_names):
        raise _missing_robot_error(description, scene)
    source = (
        None
        if isinstance(robot, Manipulator)
        else str(resolve_name(robot, "scenes/robots", suffixes=(".toml",)))
    )
    try:
        description.check(scene, source=source)
    except UnknownNameError as error:
        raise RobotError.at(f"robot '{description.name}'", str(error)) from error
    return description


def _missing_robot_error(robot: Manipulator, scene: SceneGraph) -> FileFormatError:
    """Return the error for a robot without a joint in the scene, with the built-in robots in it."""
    paths = sorted(data_path("scenes/robots").glob("*.toml"))
    robot_names = [
        other.name
        for other in map(load_manipulator, paths)
        if set(other.joints) <= set(scene.joint_names)
    ]
    reason = f"the scene has none of its joints ({', '.join(robot.joints[:3])}, ...)"
    hint = (
        f"built-in robots in this scene: {', '.join(robot_names)}"
        if robot_names
        else "no built-in robot is in this scene"
    )
    return RobotError.at(f"robot '{robot.name}'", f"{reason}; {hint}")


def find_manipulators(robots: Robots, scene: SceneGraph) -> tuple[Manipulator, ...]:
    """Return the descriptions of robot arguments, after checking that they fit a scene.

    Args:
        robots: argument of :func:`find_manipulator`, or a sequence of arguments.
        scene: scene with the robots.

    Raises:
        RobotError: if a description is invalid or does not fit the scene, there is no arm, or two
            arms have one name or one joint in common.
        MissingFileError: if a file does not exist.
    """
    arms = tuple(find_manipulator(robot, scene) for robot in _items(robots))
    check_different(arms)
    return arms


def check_different(robots: Sequence[Manipulator]) -> None:
    """Check that arms have different names and joints.

    Args:
        robots: descriptions of arms.

    Raises:
        RobotError: if there is no arm, or two arms have one name or one joint in common.
    """
    if not robots:
        raise RobotError.at("robot", "give at least one arm")
    movers: dict[str, str] = {}
    for number, arm in enumerate(robots):
        if any(arm.name == other.name for other in robots[:number]):
            raise RobotError.at(
                "robot", f"two arms have the name '{arm.name}'; each needs a name of its own"
            )
        for joint in (*arm.joints, *arm.gripper_joints):
            if joint in movers:
                raise RobotError.at(
                    "robot",
                    f"the arms '{movers[joint]}' and '{arm.name}' both move joint '{joint}'",
                )
            movers[joint] = arm.name


def carrying_joints(scene: SceneGraph, robots: Sequence[Manipulator]) -> frozenset[str]:
    """Return the frames on joints of one robot that carry another, such as a mobile base.

    Args:
        scene: scene with the robots.
        robots: descriptions of all robots.
    """
    bases = {arm.name: (arm.base, *scene.ancestors(arm.base)) for arm in robots}
    frames = ((arm.name, scene.joint_frame(joint)) for arm in robots for joint in arm.joints)
    return frozenset(
        frame
        for name, frame in frames
        if any(frame in frames_above for other, frames_above in bases.items() if other != name)
    )


def home_configuration(
    robots: Sequence[Manipulator], scene: SceneGraph, *, base: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the configuration (n_joints,) with all arms at ``ready`` and all grippers open.

    Args:
        robots: descriptions of the arms.
        scene: scene with the arms.
        base: (n_joints,) values of the other joints. Defaults to 0.
    """
    values = {
        joint: value for arm in robots for joint, value in {**arm.ready, **arm.gripper_open}.items()
    }
    return scene.configuration(values, base=base)
