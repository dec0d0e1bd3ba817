"""Hands and states out of SRDF files: what an arm carries at its end, how that opens and closes, where joints are.

An *end effector* of an SRDF names a group, the link that carries it, and perhaps the arm's group. Its group is a hand
if it has joints that are not the arm's; some files name the arm itself there, which is none. What the joints are when
the hand is open and closed, the group's states say whose names have ``open`` and ``clos`` in them, or, if that is
asked for, the joints' limits: the ends at which the fingers are farther apart are the open ones. How far apart they
are is measured between their collision shapes, since SRDF has no word for it.

A *state* gives values to some joints of a group. It says where an arm is ready, or how far a hand is open, only if it
gives a value to every joint concerned, and none beyond its limits. States are written with few digits, and a value at a
limit may lie beyond it by the last of them: such a value is accepted as the limit.

Invariants: a value of a state that is returned lies within its joint's limits; a :class:`Hand` is farther open when
open than when closed, and both distances are finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tmkit._support.source_location import did_you_mean
from tmkit.errors import FileFormatError, RobotError, nearest_name
from tmkit.formats.srdf import EndEffector, GroupState, RobotSemantics, group_members
from tmkit.formats.srdf.groups import refused
from tmkit.graph import SceneGraph
from tmkit.robots.fingers import Hand, finger_distance, finger_frames

_TOLERANCE = 1e-6  # radians or metres: states are written with six digits


def state_named(semantics: RobotSemantics, group: str, *, wanted: str) -> GroupState:
    """Return a state of a group by name.

    Args:
        semantics: the SRDF.
        group: name of the group.
        wanted: name of the state.

    Raises:
        RobotError: the group has no such state; the message lists those that it has.
    """
    states = semantics.states_of(group)
    for state in states:
        if state.name == wanted:
            return state
    names = [state.name for state in states]
    known = f" (known: {', '.join(names)})" if names else "; it has none"
    raise RobotError.at(
        semantics.source, f"the group '{group}' has no state '{wanted}'{did_you_mean(wanted, names)}{known}"
    )


def state_values(
    semantics: RobotSemantics, scene: SceneGraph, *, state: GroupState, joints: Sequence[str]
) -> dict[str, float]:
    """Return the values of joints in a state, clamped to their limits, radians or metres.

    Args:
        semantics: the SRDF.
        scene: the scene.
        state: the state.
        joints: the joints, all of which the state must contain.

    Raises:
        RobotError: the state does not fit; said in its line.
    """
    reason = state_misfit(scene, state, joints=joints)
    if reason is not None:
        raise refused(state.place, semantics.source, reason)
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    values = state.joint_values
    return {joint: min(max(values[joint], float(limits[joint][0])), float(limits[joint][1])) for joint in joints}


def state_misfit(scene: SceneGraph, state: GroupState, *, joints: Sequence[str]) -> str | None:
    """Return why a state does not fit some joints; ``None`` if it does.

    Args:
        scene: the scene.
        state: the state.
        joints: the joints.
    """
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    values = state.joint_values
    for joint in joints:
        if joint not in values:
            near = nearest_name(joint, values)
            hint = f"; it names '{near}'" if near else ""
            return f"the state '{state.name}' has no value for joint '{joint}'{hint}"
        lower, upper = limits[joint]
        if not lower - _TOLERANCE <= values[joint] <= upper + _TOLERANCE:
            outside = f"outside its limits from {lower:.6g} to {upper:.6g}"
            return f"the state '{state.name}' puts joint '{joint}' at {values[joint]:.6g}, {outside}"
    return None


def end_effector_of(
    semantics: RobotSemantics, scene: SceneGraph, *, group: str, joints: Sequence[str], wanted: str | None
) -> EndEffector | None:
    """Return the end effector of an arm: the named one, or else the only one.

    Args:
        semantics: the SRDF.
        scene: the scene.
        group: name of the arm's group.
        joints: its joints.
        wanted: name of the end effector; needed if there are several.

    Raises:
        UnknownNameError: there is none of the name that is wanted.
        RobotError: the arm carries several.
    """
    if wanted is not None:
        return semantics.end_effector(wanted)
    carried = {scene.joint_frame(joints[-1]), *scene.subtree(scene.joint_frame(joints[-1]))}
    found = [effector for effector in semantics.end_effectors if effector.parent_group == group]
    found = found or [
        effector
        for effector in semantics.end_effectors
        if not effector.parent_group and (effector.parent_link in carried or effector.group == group)
    ]
    if len(found) > 1:
        names = ", ".join(effector.name for effector in found)
        raise RobotError.at(semantics.source, f"the arm '{group}' carries several end effectors ({names}); say which")
    return found[0] if found else None


def is_hand(semantics: RobotSemantics, scene: SceneGraph, *, effector: EndEffector, joints: Sequence[str]) -> bool:
    """Return whether the group of an end effector has joints that are not the arm's.

    Args:
        semantics: the SRDF.
        scene: the scene.
        effector: the end effector.
        joints: joints of the arm.

    Raises:
        RobotError: there is no such group.
    """
    if effector.group not in semantics.group_names:
        reason = f"the end effector '{effector.name}' is made of the unknown group '{effector.group}'"
        raise refused(effector.place, semantics.source, reason + did_you_mean(effector.group, semantics.group_names))
    return bool(set(group_members(semantics, scene, group=effector.group).joints) - set(joints))


def no_hand(semantics: RobotSemantics, group: str, *, effector: EndEffector | None) -> FileFormatError:
    """Return the error of an arm without a gripper that opens and closes.

    Args:
        semantics: the SRDF.
        group: name of the arm's group.
        effector: its end effector, if it has one.
    """
    if effector is None:
        reason = f"the group '{group}' carries no end effector"
    else:
        reason = f"the end effector '{effector.name}' of the group '{group}' has no joints of its own"
    place = effector.place if effector is not None else semantics.group(group).place
    suggestion = "gripper='suction' makes a suction cup of its tool, and hand= (FILE.srdf:GROUP:HAND) names the group"
    return refused(place, semantics.source, f"{reason}; {suggestion} that is a hand")


def hand_of(
    semantics: RobotSemantics, scene: SceneGraph, *, group: str, arm: Sequence[str], from_limits: bool,
    opened: str | None, closed: str | None,
) -> Hand:  # fmt: skip
    """Return the hand that a group is.

    Args:
        semantics: what the SRDF says.
        scene: the scene with the robot.
        group: the group.
        arm: joints that are not the hand's, though the group may name them.
        from_limits: whether joint limits will do where no states say how it opens and closes.
        opened: the state in which it is open; by default the first with ``open`` in its name.
        closed: the state in which it is closed; by default the first with ``clos`` in its name.

    Raises:
        RobotError: the group has no joints of its own, nothing says how it opens and closes, or its fingers do not.
    """
    members, place = group_members(semantics, scene, group=group), semantics.group(group).place
    joints = tuple(joint for joint in members.joints if joint not in arm and joint not in semantics.passive_joints)
    fingers = finger_frames(scene, joints)
    if not joints:
        raise refused(place, semantics.source, f"the group '{group}' has no joints that could open and close a hand")
    states = semantics.states_of(group)
    found = [_named(semantics, group, opened, "open"), _named(semantics, group, closed, "clos")]
    if found[0] is not None and found[1] is not None:
        values = [state_values(semantics, scene, state=state, joints=joints) for state in found if state is not None]
    elif from_limits:
        values = _limit_values(semantics, scene, joints)
    else:
        names = ", ".join(state.name for state in states) or "none"
        reason = f"the group '{group}' needs states that open and close the hand; it has: {names}"
        suggestion = "gripper='parallel' takes the joints' limits, gripper='suction' ignores the hand"
        raise refused(place, semantics.source, f"{reason}; {suggestion}")
    widths = [finger_distance(scene, state, fingers) for state in values]
    if from_limits and widths[0] < widths[1] and found[0] is None:
        values, widths = values[::-1], widths[::-1]
    if not (math.isfinite(widths[0]) and widths[0] > widths[1]):
        states_text = f"{_millimetres(widths[0])} apart when open and {_millimetres(widths[1])} when closed"
        reason = f"the fingers ({', '.join(fingers) or 'none with a collision shape'}) of the hand are {states_text}"
        raise refused(place, semantics.source, f"{reason}: this is no parallel gripper")
    return Hand(joints, values[0], values[1], widths[0], widths[1], fingers)


def _millimetres(width: float) -> str:
    return f"{width * 1000:.1f} mm" if math.isfinite(width) else "nowhere"


def _named(semantics: RobotSemantics, group: str, wanted: str | None, part: str) -> GroupState | None:
    """Return the state that is wanted, else the first whose name has a word in it."""
    states = semantics.states_of(group)
    if wanted is None:
        return next((state for state in states if part in state.name.lower()), None)
    return state_named(semantics, group, wanted=wanted)


def _limit_values(semantics: RobotSemantics, scene: SceneGraph, joints: Sequence[str]) -> list[dict[str, float]]:
    """Return the upper and the lower ends of the joints."""
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    for joint in joints:
        if not np.isfinite(limits[joint]).all():
            raise RobotError.at(
                semantics.source, f"joint '{joint}' of the hand has no limits that could open and close it"
            )
    return [{joint: float(limits[joint][end]) for joint in joints} for end in (1, 0)]
