"""Arms from SRDF files: docs/reference/robots.md, *Arms from SRDF*.

* **joints**: the actuated joints of a group, from base to tip, on one path.
* **base**: base of the group's chain, or else the parent of the first joint's frame.
* **tip**: parent link of the end effector, or else the tip of the chain, or else the frame that the
  last joint moves.
* **hand**: the joints of the end effector's group, open and closed in the states with these words
  in their names, or at the joints' limits if requested. The fingers are farther apart at the open
  end. In some files the arm is the end effector's group. Such an arm has no hand, unless the caller
  selects one.
* **tool**: argument, or the one frame rigidly fixed to the tip with ``tcp``, ``grasp`` or ``tool``
  in its name. The tool of a suction cup may also be the tip.
* **ready**: argument, or the first state called ``ready``, ``home``, ``default``, ... with values
  of all joints within their limits, or else a posture with the tool down
  (:mod:`tmkit.robots.ready_posture`).

A state is valid if it has a value for every joint and no value is beyond its limits, except for
rounding of the last digit. Such a value is replaced by the limit. Choices that the caller did not
request are logged. Errors have the line of the file.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from tmkit._support.source_location import did_you_mean
from tmkit.errors import FileFormatError, RobotError, nearest_name
from tmkit.formats.srdf import read_srdf
from tmkit.formats.srdf.values import (
    EndEffector,
    GroupMembers,
    GroupState,
    RobotSemantics,
    group_members,
    srdf_error,
)
from tmkit.graph import SceneGraph
from tmkit.robots.hands import (
    TOOL_NAMES,
    Hand,
    cup_frames,
    finger_distance,
    finger_frames,
    with_lever_widths,
)
from tmkit.robots.manipulator import GRIPPER_KINDS, Manipulator
from tmkit.robots.mechanisms import rigid_frames
from tmkit.robots.ready_posture import ready_posture

logger = logging.getLogger(__name__)

READY_NAMES = ("ready", "home", "default", "neutral", "rest", "start", "init")
"""Words in the names of ready states, in the order of preference."""

_STATE_TOLERANCE = 1e-6
"""Largest distance of a state's value from the limits, since states have six digits [rad or m]."""

_MIN_SIMILARITY = 0.8
"""Similarity above which an unknown joint name is a misspelled actuated joint, not a fixed one."""


@dataclass(frozen=True, kw_only=True)
class HandChoice:
    """Choice of the hand of an arm in an SRDF file, where the file does not define it.

    Args:
        end_effector: name of the end effector. Required if the arm carries several.
        group: group of the hand, if no end effector has it. Without states, its joints open and
            close to their limits.
        tool: grasp frame, rigidly fixed to the parent link of the end effector. Not required for a
            suction cup, or if exactly one such frame has ``tcp``, ``grasp`` or ``tool`` in its
            name.
        gripper: ``"parallel"`` for a hand without states, which opens and closes to its joints'
            limits. ``"suction"`` for a suction cup at the tool, instead of any hand. ``"none"`` for
            an arm that moves without a gripper. Defaults to a parallel hand with states.
        opened: state of the open hand. Defaults to the first with ``open`` in its name.
        closed: state of the closed hand. Defaults to the first with ``clos`` in its name.
    """

    end_effector: str | None = None
    group: str | None = None
    tool: str | None = None
    gripper: str | None = None
    opened: str | None = None
    closed: str | None = None


def manipulator_from_srdf(
    srdf: str | os.PathLike[str] | RobotSemantics,
    scene: SceneGraph,
    *,
    group: str | None = None,
    hand: HandChoice | None = None,
    ready: str | None = None,
    name: str | None = None,
) -> Manipulator:
    """Return the description of an arm in an SRDF file.

    The docstring of this module describes the defaults.

    Args:
        srdf: file, or the result of :func:`tmkit.formats.srdf.read_srdf`.
        scene: scene with the robot.
        group: group of the arm. Required if several groups may be arms.
        hand: end effector, hand, tool frame and kind of gripper. Defaults to those of the file.
        ready: state in which plans start. Defaults to the first valid one called ``ready``,
            ``home``, ``default``, ..., or else a posture with the tool down, in front of the robot.
        name: name of the description. Defaults to the names of robot and group.

    Raises:
        RobotError: if the file is incomplete, or the scene lacks a name in it. The error has the
            line and similar names.
        UnknownNameError: if a group or end effector is unknown. The error lists all names.
        FileFormatError: if the file is malformed; see :func:`tmkit.formats.srdf.read_srdf`.
        MissingFileError: if the file does not exist.
    """
    semantics = srdf if isinstance(srdf, RobotSemantics) else read_srdf(srdf)
    choice = HandChoice() if hand is None else hand
    gripper, tool = choice.gripper, choice.tool
    if gripper is not None and gripper not in GRIPPER_KINDS:
        kinds = ", ".join(GRIPPER_KINDS)
        raise RobotError.at(semantics.source, f"gripper kind '{gripper}' is none of {kinds}")
    group = group if group is not None else _only_arm(semantics, scene, choice.end_effector)
    members = _exclude_passive_joints(semantics, group_members(semantics, scene, group=group))
    _warn_of_passive_joints(semantics, scene, group)
    joints = _path(semantics, scene, group, members)
    effector = _find_end_effector(
        semantics, scene, group=group, joints=joints, requested_name=choice.end_effector
    )
    fingers_group = choice.group
    if (
        fingers_group is None
        and effector is not None
        and _is_hand(semantics, scene, effector=effector, joints=joints)
    ):
        from_limits, fingers_group = gripper == "parallel", effector.group
    else:
        from_limits = fingers_group is not None
    for used_group in filter(None, (group, fingers_group)):
        _warn_of_mimic_states(semantics, scene, used_group)
    tip = _tip(semantics, scene, group, joints, effector)
    fingers = None
    hand_attributes: dict[str, Any] = {"gripper_kind": gripper}
    if gripper == "suction":
        hand_attributes["contact_links"] = cup_frames(scene, tip, tool)
    elif gripper != "none":
        if fingers_group is None:
            raise _missing_hand_error(semantics, group, effector=effector)
        states = {"opened": choice.opened, "closed": choice.closed}
        fingers = _hand(semantics, scene, fingers_group, joints, from_limits=from_limits, **states)
        hand_attributes = fingers.attributes()
    tool = tool if tool is not None else _tool(semantics, scene, group, tip, fingers)
    if fingers is not None and tool in scene:
        fingers = with_lever_widths(scene, tip, tool, fingers)
        hand_attributes = fingers.attributes()
    ready_values = _ready(semantics, scene, group, joints, ready)
    if ready_values is None and tool in scene:
        opened = fingers.opened if fingers is not None else {}
        ready_values = ready_posture(scene, joints=joints, tool=tool, other_values=opened)
    arm = Manipulator(
        name=name or f"{semantics.name or 'robot'}:{group}",
        base=_base(semantics, scene, group, joints),
        tip=tip,
        tool=tool,
        joints=joints,
        ready=ready_values or dict.fromkeys(joints, 0.0),
        **hand_attributes,
    )
    arm.check(scene, source=semantics.source)
    return arm


@dataclass(frozen=True)
class SrdfArm:
    """Arm of an SRDF file, without its hand.

    Attributes:
        group: name of the group.
        base: frame at the base of the arm.
        tip: parent link of the end effector, or the last frame of the group.
        joints: joints from base to tip.
        states: values by joint of each state in which plans may start, by its name, the preferred
            first [rad or m].
    """

    group: str
    base: str
    tip: str
    joints: tuple[str, ...]
    states: Mapping[str, Mapping[str, float]]


def srdf_arm(
    semantics: RobotSemantics,
    scene: SceneGraph,
    *,
    group: str | None = None,
    end_effector: str | None = None,
) -> SrdfArm:
    """Return the arm of a group, without its hand.

    Args:
        semantics: content of an SRDF file.
        scene: scene with the robot.
        group: name of the group. Required if several groups may be arms.
        end_effector: name of the end effector. Required if the arm carries several.

    Raises:
        RobotError: if the file is incomplete, or the scene lacks a name in it.
        UnknownNameError: if the group or the end effector is unknown.
    """
    group = group if group is not None else _only_arm(semantics, scene, end_effector)
    members = _exclude_passive_joints(semantics, group_members(semantics, scene, group=group))
    joints = _path(semantics, scene, group, members)
    effector = _find_end_effector(
        semantics, scene, group=group, joints=joints, requested_name=end_effector
    )
    base = _base(semantics, scene, group, joints)
    tip = _tip(semantics, scene, group, joints, effector)
    states = _ready_states(semantics, scene, group, joints)
    return SrdfArm(group, base, tip, joints, {state.name: values for state, values in states})


def arm_groups(semantics: RobotSemantics, scene: SceneGraph) -> tuple[str, ...]:
    """Return the groups that may be arms: two or more actuated joints, all on one chain.

    O(groups * frames).

    Args:
        semantics: content of an SRDF file.
        scene: scene with the robot.
    """
    matches = []
    for name in semantics.group_names:
        try:
            joints = _exclude_passive_joints(
                semantics, group_members(semantics, scene, group=name)
            ).joints
        except FileFormatError:
            continue
        if len(joints) >= 2 and _joint_off_path(scene, joints) is None:
            matches.append(name)
    return tuple(matches)


def _exclude_passive_joints(semantics: RobotSemantics, members: GroupMembers) -> GroupMembers:
    """Return the members of a group without its passive joints, as in MoveIt's trajectories."""
    joints = tuple(joint for joint in members.joints if joint not in semantics.passive_joints)
    return replace(members, joints=joints)


def _warn_of_passive_joints(semantics: RobotSemantics, scene: SceneGraph, group: str) -> None:
    """Log the passive joints of an arm that do not follow another joint."""
    for joint in group_members(semantics, scene, group=group).joints:
        if joint in semantics.passive_joints and joint in scene.joint_names:
            logger.warning(
                "%s: group '%s': joint '%s' is passive, so the arm does not move it: it keeps its"
                " value",
                *(semantics.source, group, joint),
            )


def _warn_of_mimic_states(semantics: RobotSemantics, scene: SceneGraph, group: str) -> None:
    """Log the states of a group in which a joint has another value than its mimic rule gives."""
    joints = [scene.joint(frame) for frame in scene.frame_names]
    rules = {joint.name: joint.mimic for joint in joints if joint.mimic is not None}
    for state in semantics.states_of(group):
        values = state.joint_values
        for joint, value in values.items():
            rule = rules.get(joint)
            if rule is None or rule.joint not in values:
                continue
            expected = rule.multiplier * values[rule.joint] + rule.offset
            if abs(value - expected) > _STATE_TOLERANCE:
                logger.warning(
                    "%s: the state '%s' of group '%s' puts joint '%s' at %.6g, but it mimics '%s':"
                    " it will be at %.6g",
                    *(state.place or semantics.source, state.name, group, joint, value),
                    *(rule.joint, expected),
                )


def _only_arm(semantics: RobotSemantics, scene: SceneGraph, end_effector: str | None) -> str:
    """Return the only group that may be the arm.

    Args:
        semantics: content of an SRDF file.
        scene: scene with the robot.
        end_effector: name of the arm's end effector, or None.

    Raises:
        RobotError: if there are several such groups, or none.
    """
    arm_names = arm_groups(semantics, scene)
    if end_effector is not None:
        effector = semantics.end_effector(end_effector)
        for name in (effector.parent_group, effector.group):
            if name in arm_names:
                return name
    if len(semantics.groups) == 1:
        return semantics.groups[0].name
    if len(arm_names) == 1:
        return arm_names[0]
    effector_groups = {
        name
        for effector in semantics.end_effectors
        for name in (effector.parent_group, effector.group)
    } & {*arm_names}
    if len(effector_groups) == 1:
        return effector_groups.pop()
    if not semantics.groups:
        raise RobotError.at(
            semantics.source, "there is no group, so the joints of the arm are not defined"
        )
    group_names = ", ".join(arm_names or semantics.group_names)
    reason = (
        f"groups that may be arms: {group_names}"
        if arm_names
        else f"none of its groups ({group_names}) is an arm in this scene"
    )
    raise RobotError.at(semantics.source, f"say which group is the arm; {reason}")


def _depth(scene: SceneGraph, frame: str) -> int:
    """Return the number of ancestors of a frame."""
    return len(scene.ancestors(frame))


def _joint_off_path(scene: SceneGraph, joints: Sequence[str]) -> str | None:
    """Return a joint that is not on one path with the others, or None if all are."""
    frames = sorted(
        (scene.joint_frame(joint) for joint in joints), key=lambda frame: _depth(scene, frame)
    )
    ancestors = {frames[-1], *scene.ancestors(frames[-1])}
    return next((scene.joint(frame).name for frame in frames if frame not in ancestors), None)


def _path(
    semantics: RobotSemantics, scene: SceneGraph, group: str, members: GroupMembers
) -> tuple[str, ...]:
    """Return the actuated joints of a group from base to tip.

    Args:
        semantics: content of an SRDF file.
        scene: scene with the robot.
        group: name of the group.
        members: members of the group.

    Raises:
        RobotError: if the group has no actuated joint, or its joints are not on one path.
    """
    location, source = semantics.group(group).place, semantics.source
    if not members.joints:
        if not members.unnamed:
            passive = " and is not passive" if semantics.passive_joints else ""
            raise srdf_error(
                location, source, f"the group '{group}' has no joint that moves{passive}"
            )
        hint = did_you_mean(members.unnamed[0], scene.joint_names)
        reason = (
            f"the group '{group}' has no movable joint in this scene, which has no"
            f" '{members.unnamed[0]}'"
        )
        raise srdf_error(location, source, reason + hint)
    joint_off_path = _joint_off_path(scene, members.joints)
    if joint_off_path is not None:
        arm_names = ", ".join(arm_groups(semantics, scene)) or "none"
        reason = (
            f"the group '{group}' is not an arm: joint '{joint_off_path}' is not on the path from"
            " the base to the tip"
        )
        raise srdf_error(location, source, f"{reason}; groups that may be arms: {arm_names}")
    joints = tuple(
        sorted(members.joints, key=lambda joint: _depth(scene, scene.joint_frame(joint)))
    )
    for unnamed in members.unnamed:
        nearest = nearest_name(unnamed, _others_on_line(scene, joints))
        if (
            nearest is not None
            and not _has_word_more(unnamed, nearest)
            and SequenceMatcher(None, unnamed, nearest).ratio() >= _MIN_SIMILARITY
        ):
            reason = (
                f"the group '{group}' names the joint '{unnamed}', which the scene does not have"
            )
            raise srdf_error(location, source, f"{reason}; did you mean '{nearest}'?")
        logger.warning(
            "%s: group '%s': no joint '%s' moves; it is taken for a fixed one",
            source,
            group,
            unnamed,
        )
    return joints


def _has_word_more(name: str, other: str) -> bool:
    """Return whether a name is another one with a word before or after it, so no misspelling."""
    return name.endswith(f"_{other}") or name.startswith(f"{other}_")


def _others_on_line(scene: SceneGraph, joints: Sequence[str]) -> list[str]:
    """Return the joints of the configuration above, between and below the joints of an arm."""
    last = scene.joint_frame(joints[-1])
    nearest = {scene.joint(frame).name for frame in (*scene.ancestors(last), *scene.subtree(last))}
    return [joint for joint in scene.joint_names if joint in nearest and joint not in joints]


def _base(semantics: RobotSemantics, scene: SceneGraph, group: str, joints: Sequence[str]) -> str:
    """Return the frame at the base of an arm."""
    ancestors = scene.ancestors(scene.joint_frame(joints[0]))
    return next(
        (chain.base for chain in semantics.group(group).chains if chain.base in ancestors),
        ancestors[0],
    )


def _tip(
    semantics: RobotSemantics,
    scene: SceneGraph,
    group: str,
    joints: Sequence[str],
    effector: EndEffector | None,
) -> str:
    """Return the frame of the hand.

    Args:
        semantics: content of an SRDF file.
        scene: scene with the robot.
        group: group of the arm.
        joints: joints of the arm.
        effector: end effector of the arm, or None.

    Raises:
        RobotError: if the end effector is not rigidly fixed to the arm.
    """
    last = scene.joint_frame(joints[-1])
    rigid = rigid_frames(scene, last)
    if effector is not None:
        if effector.parent_link in rigid:
            return effector.parent_link
        if effector.parent_link in scene:
            reason = (
                f"'{effector.parent_link}', which is not rigidly joined to the arm's last frame"
                f" '{last}'"
            )
            between = (
                scene.joint(frame).name
                for frame in (effector.parent_link, *scene.ancestors(effector.parent_link))
            )
            passive = next((name for name in between if name in semantics.passive_joints), None)
            reason += f": the joint '{passive}' is passive" if passive is not None else ""
        else:
            hint = did_you_mean(effector.parent_link, scene.frame_names)
            reason = f"'{effector.parent_link}', which the scene does not have{hint}"
        where = f"the end effector '{effector.name}' is on {reason}"
        raise srdf_error(effector.place, semantics.source, where)
    ends = [chain.tip for chain in semantics.group(group).chains if chain.tip in rigid]
    return ends[-1] if ends else last


def _tool(
    semantics: RobotSemantics, scene: SceneGraph, group: str, tip: str, hand: Hand | None
) -> str:
    """Return the only frame with the name of a tool, or the tip of an arm without a hand.

    Raises:
        RobotError: if an arm with a hand has several such frames, or none.
    """
    rigid = rigid_frames(scene, tip)
    named = [frame for frame in rigid if any(word in frame.lower() for word in TOOL_NAMES)]
    if len(named) == 1:
        logger.info(
            "%s: group '%s': the tool is taken to be '%s'", semantics.source, group, named[0]
        )
        return named[0]
    if hand is None:
        return tip
    group_names = ", ".join(rigid)
    reason = f"say which frame is the tool of the arm '{group}', the point between the fingertips"
    raise RobotError.at(semantics.source, f"{reason}; rigidly joined to its tip are: {group_names}")


def _ready(
    semantics: RobotSemantics,
    scene: SceneGraph,
    group: str,
    joints: Sequence[str],
    requested_name: str | None,
) -> dict[str, float] | None:
    """Return the joint values of the requested or the first ready state, or None [rad or m].

    Args:
        semantics: content of an SRDF file.
        scene: scene with the robot.
        group: group of the arm.
        joints: joints of the arm.
        requested_name: name of the state, or None.
    """
    if requested_name is not None:
        return _state_values(
            semantics,
            scene,
            state=_state_by_name(semantics, group, requested_name=requested_name),
            joints=joints,
        )
    for state, values in _ready_states(semantics, scene, group, joints):
        logger.info("%s: group '%s': ready is the state '%s'", semantics.source, group, state.name)
        return values
    return None


def _ready_states(
    semantics: RobotSemantics, scene: SceneGraph, group: str, joints: Sequence[str]
) -> Iterator[tuple[GroupState, dict[str, float]]]:
    """Yield the states in which plans of a group may start, with values by joint [rad or m].

    The preferred state is the first. States that do not fit are omitted with a warning.
    """
    states = semantics.states_of(group)
    for state in [state for word in READY_NAMES for state in states if word in state.name.lower()]:
        reason = _state_fault(scene, state, joints=joints)
        if reason is None:
            yield state, _state_values(semantics, scene, state=state, joints=joints)
        else:
            logger.warning(
                "%s: group '%s' is not made ready by it: %s",
                state.place or semantics.source,
                group,
                reason,
            )


def _state_by_name(semantics: RobotSemantics, group: str, *, requested_name: str) -> GroupState:
    """Return a state of a group.

    Raises:
        RobotError: if the group has no state of this name.
    """
    states = {state.name: state for state in reversed(semantics.states_of(group))}
    if requested_name in states:
        return states[requested_name]
    names = [*states][::-1]
    hint = did_you_mean(requested_name, names)
    hint += f" (known: {', '.join(names)})" if names else "; it has none"
    reason = f"the group '{group}' has no state '{requested_name}'{hint}"
    raise RobotError.at(semantics.source, reason)


def _state_values(
    semantics: RobotSemantics, scene: SceneGraph, *, state: GroupState, joints: Sequence[str]
) -> dict[str, float]:
    """Return the values of joints in a state, clamped to their limits [rad or m].

    Raises:
        RobotError: if the state is invalid for these joints.
    """
    reason = _state_fault(scene, state, joints=joints)
    if reason is not None:
        raise srdf_error(state.place, semantics.source, reason)
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    values = state.joint_values
    return {
        joint: min(max(values[joint], float(limits[joint][0])), float(limits[joint][1]))
        for joint in joints
    }


def _state_fault(scene: SceneGraph, state: GroupState, *, joints: Sequence[str]) -> str | None:
    """Return a message if a state is invalid for some joints, or else None."""
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    values = state.joint_values
    for joint in joints:
        if joint not in values:
            nearest = nearest_name(joint, values)
            hint = f"; it names '{nearest}'" if nearest else ""
            return f"the state '{state.name}' has no value for joint '{joint}'{hint}"
        lower, upper = limits[joint]
        if not lower - _STATE_TOLERANCE <= values[joint] <= upper + _STATE_TOLERANCE:
            outside = f"outside its limits from {lower:.6g} to {upper:.6g}"
            return (
                f"the state '{state.name}' puts joint '{joint}' at {values[joint]:.6g}, {outside}"
            )
    return None


def _find_end_effector(
    semantics: RobotSemantics,
    scene: SceneGraph,
    *,
    group: str,
    joints: Sequence[str],
    requested_name: str | None,
) -> EndEffector | None:
    """Return the requested end effector of an arm, or else the only one, or None.

    Raises:
        RobotError: if the arm carries several end effectors.
    """
    if requested_name is not None:
        return semantics.end_effector(requested_name)
    carried = {scene.joint_frame(joints[-1]), *scene.subtree(scene.joint_frame(joints[-1]))}
    matches = [effector for effector in semantics.end_effectors if effector.parent_group == group]
    matches = matches or [
        effector
        for effector in semantics.end_effectors
        if not effector.parent_group
        and (effector.parent_link in carried or effector.group == group)
    ]
    if len(matches) > 1:
        names = ", ".join(effector.name for effector in matches)
        raise RobotError.at(
            semantics.source,
            f"the arm '{group}' carries several end effectors ({names}); say which",
        )
    return matches[0] if matches else None


def _is_hand(
    semantics: RobotSemantics, scene: SceneGraph, *, effector: EndEffector, joints: Sequence[str]
) -> bool:
    """Return whether the group of an end effector has joints in addition to those of the arm."""
    if effector.group not in semantics.group_names:
        reason = (
            f"the end effector '{effector.name}' is made of the unknown group '{effector.group}'"
        )
        raise srdf_error(
            effector.place,
            semantics.source,
            reason + did_you_mean(effector.group, semantics.group_names),
        )
    return bool(set(group_members(semantics, scene, group=effector.group).joints) - set(joints))


def _missing_hand_error(
    semantics: RobotSemantics, group: str, *, effector: EndEffector | None
) -> FileFormatError:
    """Return the error for an arm without a gripper that opens and closes."""
    reason, location = (
        f"the group '{group}' carries no end effector",
        semantics.group(group).place,
    )
    if effector is not None:
        reason = (
            f"the end effector '{effector.name}' of the group '{group}' has no joints of its own"
        )
        location = effector.place
    suggestion = (
        "HandChoice(gripper='suction') makes a suction cup of its tool, HandChoice(gripper='none')"
        " describes an arm without a gripper, and HandChoice(group=...) (FILE.srdf:GROUP:HAND)"
        " names the group"
    )
    return srdf_error(location, semantics.source, f"{reason}; {suggestion} that is a hand")


def _hand(
    semantics: RobotSemantics,
    scene: SceneGraph,
    group: str,
    arm: Sequence[str],
    *,
    from_limits: bool,
    opened: str | None,
    closed: str | None,
) -> Hand:
    """Return the hand of a group.

    Args:
        semantics: content of an SRDF file.
        scene: scene with the robot.
        group: group of the hand.
        arm: joints of the arm.
        from_limits: whether a hand without states opens and closes to its joints' limits.
        opened: name of the state of the open hand, or None.
        closed: name of the state of the closed hand, or None.

    Raises:
        RobotError: if the group is not a parallel gripper.
    """
    members = _exclude_passive_joints(semantics, group_members(semantics, scene, group=group))
    location = semantics.group(group).place
    joints = tuple(joint for joint in members.joints if joint not in arm)
    fingers = finger_frames(scene, joints)
    if not joints:
        raise srdf_error(
            location,
            semantics.source,
            f"the group '{group}' has no joints that could open and close a hand",
        )
    states = semantics.states_of(group)
    matches = [
        _find_state(semantics, group, opened, "open"),
        _find_state(semantics, group, closed, "clos"),
    ]
    if matches[0] is not None and matches[1] is not None:
        values = [
            _state_values(semantics, scene, state=state, joints=joints)
            for state in matches
            if state is not None
        ]
    elif from_limits:
        values = _limit_values(semantics, scene, joints)
    else:
        names = ", ".join(state.name for state in states) or "none"
        reason = f"the group '{group}' needs states that open and close the hand; it has: {names}"
        suggestion = (
            "gripper='parallel' takes the joints' limits, gripper='suction' ignores the hand"
        )
        raise srdf_error(location, semantics.source, f"{reason}; {suggestion}")
    widths = [finger_distance(scene, state, fingers) for state in values]
    if from_limits and widths[0] < widths[1] and matches[0] is None:
        values, widths = values[::-1], widths[::-1]
    if not (math.isfinite(widths[0]) and widths[0] > widths[1]):
        states_text = (
            f"{_millimetres(widths[0])} apart when open and {_millimetres(widths[1])} when closed"
        )
        reason = (
            f"the fingers ({', '.join(fingers) or 'none with a collision shape'}) of the hand are"
            f" {states_text}"
        )
        raise srdf_error(location, semantics.source, f"{reason}: this is not a parallel gripper")
    return Hand(joints, values[0], values[1], widths[0], widths[1], fingers)


def _millimetres(width: float) -> str:
    """Return a width [m] as text in millimetres."""
    return f"{width * 1000:.1f} mm" if math.isfinite(width) else "nowhere"


def _find_state(
    semantics: RobotSemantics, group: str, requested_name: str | None, part: str
) -> GroupState | None:
    """Return the requested state, or else the first whose name contains a word, or None."""
    if requested_name is not None:
        return _state_by_name(semantics, group, requested_name=requested_name)
    return next((state for state in semantics.states_of(group) if part in state.name.lower()), None)


def _limit_values(
    semantics: RobotSemantics, scene: SceneGraph, joints: Sequence[str]
) -> list[dict[str, float]]:
    """Return the upper and the lower limits of joints, by joint [rad or m].

    Raises:
        RobotError: if a joint has no limits.
    """
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    for joint in joints:
        if not np.isfinite(limits[joint]).all():
            reason = f"joint '{joint}' of the hand has no limits that could open and close it"
            raise RobotError.at(semantics.source, reason)
    return [{joint: float(limits[joint][end]) for joint in joints} for end in (1, 0)]
