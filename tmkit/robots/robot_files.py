"""Robot descriptions out of files, and whatever else names an arm.

Where an API takes a robot, it takes a :class:`~tmkit.robots.Manipulator`, the name of a built-in
one, or a TOML file. It also takes an SRDF file with the group that is the arm, ``FILE.srdf:ARM`` or
``FILE.srdf:ARM:HAND`` (:mod:`tmkit.robots.srdf_arms`), or a sequence of arms, of which the first
acts by default. :func:`find_manipulator` reads them all, and proves that what it found fits the
scene. A TOML file has the keys of :class:`~tmkit.robots.Manipulator`; what concerns the hand stands
in a table ``[gripper]`` under shorter names.

Invariants: what is wrong with a file is said with the file, and the line where there is one;
nothing in a file is passed over. Arms have different names and no joint in common, so a segment's
arm and a joint's mover are unambiguous.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
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
# In the table [gripper] of a file, and the attribute that each gives: from the kind on, all are the
# hand's.
_GRIPPER_KEYS = {
    name.removeprefix("gripper_"): name for name in _KEYS[_KEYS.index("gripper_kind") :]
}
_COMMENTS = {  # in files that are written
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
    "kind": '"parallel", "suction", or "none" for a mobile base',
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
}


Robots: TypeAlias = str | Path | Manipulator | Sequence[str | Path | Manipulator]
"""An arm or several: built-in names, files, or descriptions."""


def load_manipulator(name: str | Path) -> Manipulator:
    """Load a robot description.

    Args:
        name: a bare name is a built-in one, in ``scenes/robots/``; anything with a separator or
            suffix is a path.

    Raises:
        MissingFileError: no such description; the nearest name is given.
        RobotError: the file is not TOML, or does not describe an arm.
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
    except RecursionError:  # when a message would show a value
        raise RobotError.at(path, "is nested too deeply to be a robot description") from None


def _split_srdf(name: str | Path) -> tuple[str, str | None, str | None] | None:
    """Return file, arm and hand of ``FILE.srdf``, ``FILE.srdf:ARM`` or ``FILE.srdf:ARM:HAND``, else ``None``."""
    (suffix,) = SRDF.suffixes
    file, mark, groups = str(name).rpartition(f"{suffix}:")
    if mark:
        arm, _, hand = groups.partition(":")
        return f"{file}{suffix}", arm, hand or None
    return (str(name), None, None) if str(name).endswith(suffix) else None


def write_manipulator(
    manipulator: Manipulator, path: str | os.PathLike[str], *, notes: Sequence[str] = ()
) -> None:
    """Write a description as a TOML file; :func:`load_manipulator` reads it back as an equal one.

    Args:
        manipulator: the description.
        path: the file; replaced if it exists, unchanged if writing fails.
        notes: comments at the beginning, a line each.

    Raises:
        OutputError: the file cannot be written; whatever was there before is still there.
    """
    values = manipulator.to_dict()
    if not manipulator.gripper_joints:
        del values["gripper_joints"], values["gripper_open"], values["gripper_closed"]
    if manipulator.gripper_kind != "parallel" and not (
        manipulator.width_open or manipulator.width_closed
    ):
        del values["width_open"], values["width_closed"]
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
        text = f"[{', '.join(map(_text, value))}]"
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


def find_manipulator(robot: str | Path | Manipulator, scene: SceneGraph) -> Manipulator:
    """Return the description that ``robot`` is or names, proved to fit ``scene``.

    Args:
        robot: a description, what :func:`load_manipulator` takes, or ``FILE.srdf``,
            ``FILE.srdf:GROUP`` or ``FILE.srdf:GROUP:HAND``, which
            :func:`~tmkit.robots.manipulator_from_srdf` reads.
        scene: the scene that it is for.

    Raises:
        RobotError, MissingFileError: as :func:`load_manipulator`,
            :func:`~tmkit.robots.manipulator_from_srdf` and :meth:`Manipulator.check`.
        UnknownNameError: never for a description that fits.
    """
    check_argument(robot, (str, Path, Manipulator), "robot", function="find_manipulator")
    srdf = None if isinstance(robot, Manipulator) else _split_srdf(robot)
    if srdf is not None:
        from tmkit.robots.srdf_arms import HandChoice, manipulator_from_srdf

        return manipulator_from_srdf(srdf[0], scene, group=srdf[1], hand=HandChoice(group=srdf[2]))
    manipulator = robot if isinstance(robot, Manipulator) else load_manipulator(robot)
    if not set(manipulator.joints) & set(scene.joint_names):
        raise _no_such_robot(manipulator, scene)
    source = (
        None
        if isinstance(robot, Manipulator)
        else str(resolve_name(robot, "scenes/robots", suffixes=(".toml",)))
    )
    try:
        manipulator.check(scene, source=source)
    except UnknownNameError as error:
        raise RobotError.at(f"robot '{manipulator.name}'", str(error)) from error
    return manipulator


def _no_such_robot(manipulator: Manipulator, scene: SceneGraph) -> FileFormatError:
    """Return the error for a robot of which the scene has no joint; it lists the built-in robots that fit."""
    paths = sorted(data_path("scenes/robots").glob("*.toml"))
    fitting = [
        robot.name
        for robot in map(load_manipulator, paths)
        if set(robot.joints) <= set(scene.joint_names)
    ]
    reason = f"the scene has none of its joints ({', '.join(manipulator.joints[:3])}, ...)"
    known = (
        f"built-in robots in this scene: {', '.join(fitting)}"
        if fitting
        else "no built-in robot is in this scene"
    )
    return RobotError.at(f"robot '{manipulator.name}'", f"{reason}; {known}")


def find_manipulators(robots: Robots, scene: SceneGraph) -> tuple[Manipulator, ...]:
    """Return the descriptions that ``robots`` are or name, proved to fit ``scene`` and each other.

    Args:
        robots: what :func:`tmkit.robots.find_manipulator` takes, or a sequence of it.
        scene: the scene that they are for.

    Raises:
        RobotError, MissingFileError: as :func:`tmkit.robots.find_manipulator`.
        RobotError: no arm at all, two arms of one name, or two that move one joint.
    """
    several = (robots,) if isinstance(robots, str | Path | Manipulator) else tuple(robots)
    found = tuple(find_manipulator(robot, scene) for robot in several)
    check_different(found)
    return found


def check_different(manipulators: Sequence[Manipulator]) -> None:
    """Check that there is an arm, and that no two have one name or move one joint, else RobotError."""
    if not manipulators:
        raise RobotError.at("robot", "give at least one arm")
    movers: dict[str, str] = {}
    for number, arm in enumerate(manipulators):
        if any(arm.name == other.name for other in manipulators[:number]):
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


def carrying_joints(scene: SceneGraph, manipulators: Sequence[Manipulator]) -> frozenset[str]:
    """Return the frames on joints of one robot that carry another: those of a mobile base under an arm."""
    bases = {arm.name: (arm.base, *scene.ancestors(arm.base)) for arm in manipulators}
    frames = ((arm.name, scene.joint_frame(joint)) for arm in manipulators for joint in arm.joints)
    return frozenset(
        frame
        for name, frame in frames
        if any(frame in above for other, above in bases.items() if other != name)
    )


def home_configuration(
    manipulators: Sequence[Manipulator],
    scene: SceneGraph,
    *,
    base: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the configuration (n_joints,) with all arms at ``ready`` and all grippers open.

    Args:
        manipulators: the arms.
        scene: the scene.
        base: (n_joints,) values of the other joints; 0 by default.
    """
    values = {
        joint: value
        for arm in manipulators
        for joint, value in {**arm.ready, **arm.gripper_open}.items()
    }
    return scene.configuration(values, base=base)
