"""Arms out of SRDF files: docs/reference/robots.md, *Arms from SRDF*.

* **joints**: the joints of a group that move, from base to tip; they must lie on one path.
* **base**: where the group's chain begins, else the frame that carries the first joint.
* **tip**: the link that carries the end effector, else where the chain ends, else the frame that
  the last joint moves.
* **hand**: the joints of the end effector's group, open and closed in the states with these words
  in their names, or at the joints' limits if that is asked for. The ends at which the fingers are
  farther apart are the open ones. Some files name the arm itself as the end effector's group: then
  there is no hand, unless one is given.
* **tool**: given, or the one frame that is rigidly joined to the tip and has ``tcp``, ``grasp`` or
  ``tool`` in its name; a suction cup may also be the tip itself.
* **ready**: the state that is named, else the first called ``ready``, ``home``, ``default``, ...
  that gives all joints values within their limits, else the middle of the limits.

A state counts if it gives a value to every joint concerned, and none beyond its limits, but for the
last of the few digits that states are written with. Such a value is taken as the limit. What is
chosen without being asked for is logged. What does not fit is refused in the line of the file that
says it.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
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
from tmkit.robots.hands import TOOL_NAMES, Hand, cup_frames, finger_distance, finger_frames
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.mechanisms import rigid_frames

logger = logging.getLogger(__name__)

READY_NAMES = ("ready", "home", "default", "neutral", "rest", "start", "init")
_STATE_TOLERANCE = 1e-6  # radians or metres: states are written with six digits
# from here on an unknown name is a slip for a joint next to the others, not that of a fixed joint
_LIKENESS = 0.8


@dataclass(frozen=True, kw_only=True)
class HandChoice:
    """Choice of the hand of an arm in an SRDF file, as far as the file does not state it.

    Args:
        end_effector: the end effector that the arm carries; may be omitted if it carries only one.
        group: the group of its hand, if no end effector says it; without states its joints go to
            their limits.
        tool: the grasp frame, rigidly joined to the frame that carries the end effector; may be
            omitted if only one such frame has ``tcp``, ``grasp`` or ``tool`` in its name, and for a
            suction cup.
        gripper: ``"parallel"``: a hand without states opens and closes to its joints' limits.
            ``"suction"``: the tool is a suction cup, whatever the hand. By default: a parallel hand
            with states.
        opened: the state in which the hand is open; by default the first with ``open`` in its name.
        closed: the state in which it is closed; by default the first with ``clos`` in its name.
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
    """Make the description of an arm that an SRDF file speaks of.

    What is omitted is found in the file, as far as it says it; the beginning of this module tells
    how.

    Args:
        srdf: the file, or what :func:`tmkit.formats.srdf.read_srdf` has read.
        scene: a scene with the robot.
        group: the group that is the arm; may be omitted if only one can be.
        hand: end effector, hand, tool frame and kind of gripper; as the file states them by
            default.
        ready: the state in which plans start; by default the first called ``ready``, ``home``,
            ``default``, ... that fits, else the middle of the joints' limits.
        name: of the description; by default the robot's and the group's.

    Raises:
        RobotError: the file does not say enough, or names what the scene lacks; with the line and
            fitting names.
        UnknownNameError: no such group or end effector; the error lists those that there are.
        FileFormatError, MissingFileError: as :func:`tmkit.formats.srdf.read_srdf`.
    """
    semantics = srdf if isinstance(srdf, RobotSemantics) else read_srdf(srdf)
    choice = HandChoice() if hand is None else hand
    gripper, tool = choice.gripper, choice.tool
    if gripper not in (None, "parallel", "suction"):
        raise RobotError.at(semantics.source, f"gripper '{gripper}' is none of parallel, suction")
    group = group if group is not None else _only_arm(semantics, scene, choice.end_effector)
    members = _actuated(semantics, group_members(semantics, scene, group=group))
    joints = _path(semantics, scene, group, members)
    effector = _end_effector_of(
        semantics, scene, group=group, joints=joints, wanted=choice.end_effector
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
    tip = _tip(semantics, scene, group, joints, effector)
    fingers = None
    own: dict[str, Any] = {"gripper_kind": "suction", "contact_links": cup_frames(scene, tip, tool)}
    if gripper != "suction":
        if fingers_group is None:
            raise _no_hand(semantics, group, effector=effector)
        states = {"opened": choice.opened, "closed": choice.closed}
        fingers = _hand_of(
            semantics, scene, fingers_group, joints, from_limits=from_limits, **states
        )
        own = fingers.attributes()
    arm = Manipulator(
        name=name or f"{semantics.name or 'robot'}:{group}",
        base=_base(semantics, scene, group, joints),
        tip=tip,
        tool=tool if tool is not None else _tool(semantics, scene, group, tip, fingers),
        joints=joints,
        ready=_ready(semantics, scene, group, joints, ready),
        **own,
    )
    arm.check(scene, source=semantics.source)
    return arm


def arm_groups(semantics: RobotSemantics, scene: SceneGraph) -> tuple[str, ...]:
    """Return the groups that can be arms: at least two actuated joints, all on one chain. O(groups * frames)."""
    found = []
    for name in semantics.group_names:
        try:
            joints = _actuated(semantics, group_members(semantics, scene, group=name)).joints
        except FileFormatError:
            continue
        if len(joints) >= 2 and _strays(scene, joints) is None:
            found.append(name)
    return tuple(found)


def _actuated(semantics: RobotSemantics, members: GroupMembers) -> GroupMembers:
    """Return the members of a group without its passive joints, which no plan moves, as in MoveIt's trajectories."""
    joints = tuple(joint for joint in members.joints if joint not in semantics.passive_joints)
    return replace(members, joints=joints)


def _only_arm(semantics: RobotSemantics, scene: SceneGraph, end_effector: str | None) -> str:
    """Return the group that must be meant when none is given."""
    arms = arm_groups(semantics, scene)
    if end_effector is not None:
        effector = semantics.end_effector(end_effector)
        for name in (effector.parent_group, effector.group):
            if name in arms:
                return name
    if len(semantics.groups) == 1:
        return semantics.groups[0].name
    if len(arms) == 1:
        return arms[0]
    armed = {
        name
        for effector in semantics.end_effectors
        for name in (effector.parent_group, effector.group)
    } & {*arms}
    if len(armed) == 1:
        return armed.pop()
    if not semantics.groups:
        raise RobotError.at(
            semantics.source, "there is no group, so the joints of the arm are not defined"
        )
    listed = ", ".join(arms or semantics.group_names)
    what = (
        f"groups that may be arms: {listed}"
        if arms
        else f"none of its groups ({listed}) is an arm in this scene"
    )
    raise RobotError.at(semantics.source, f"say which group is the arm; {what}")


def _depth(scene: SceneGraph, frame: str) -> int:
    return len(scene.ancestors(frame))


def _strays(scene: SceneGraph, joints: Sequence[str]) -> str | None:
    """Return a joint that does not lie on one path with the others, ``None`` when all do."""
    frames = sorted(
        (scene.joint_frame(joint) for joint in joints), key=lambda frame: _depth(scene, frame)
    )
    above = {frames[-1], *scene.ancestors(frames[-1])}
    return next((scene.joint(frame).name for frame in frames if frame not in above), None)


def _path(
    semantics: RobotSemantics, scene: SceneGraph, group: str, members: GroupMembers
) -> tuple[str, ...]:
    """Return the moving joints of a group from base to tip, none of them omitted."""
    place, source = semantics.group(group).place, semantics.source
    if not members.joints:
        if not members.unnamed:
            passive = " and is not passive" if semantics.passive_joints else ""
            raise srdf_error(place, source, f"the group '{group}' has no joint that moves{passive}")
        hint = did_you_mean(members.unnamed[0], scene.joint_names)
        reason = (
            f"the group '{group}' has no movable joint in this scene, which has no"
            f" '{members.unnamed[0]}'"
        )
        raise srdf_error(place, source, reason + hint)
    stray = _strays(scene, members.joints)
    if stray is not None:
        arms = ", ".join(arm_groups(semantics, scene)) or "none"
        reason = (
            f"the group '{group}' is no arm: joint '{stray}' is not on the path from the base to"
            " the tip"
        )
        raise srdf_error(place, source, f"{reason}; groups that may be arms: {arms}")
    joints = tuple(
        sorted(members.joints, key=lambda joint: _depth(scene, scene.joint_frame(joint)))
    )
    for unnamed in members.unnamed:
        near = nearest_name(unnamed, _others_on_line(scene, joints))
        if near is not None and SequenceMatcher(None, unnamed, near).ratio() >= _LIKENESS:
            reason = (
                f"the group '{group}' names the joint '{unnamed}', which the scene does not have"
            )
            raise srdf_error(place, source, f"{reason}; did you mean '{near}'?")
        logger.warning(
            "%s: group '%s': no joint '%s' moves; it is taken for a fixed one",
            source,
            group,
            unnamed,
        )
    return joints


def _others_on_line(scene: SceneGraph, joints: Sequence[str]) -> list[str]:
    """Return the joints of the configuration above, between and below the joints of an arm."""
    last = scene.joint_frame(joints[-1])
    near = {scene.joint(frame).name for frame in (*scene.ancestors(last), *scene.subtree(last))}
    return [joint for joint in scene.joint_names if joint in near and joint not in joints]


def _base(semantics: RobotSemantics, scene: SceneGraph, group: str, joints: Sequence[str]) -> str:
    """Return the frame that the arm stands on."""
    above = scene.ancestors(scene.joint_frame(joints[0]))
    return next(
        (chain.base for chain in semantics.group(group).chains if chain.base in above), above[0]
    )


def _tip(
    semantics: RobotSemantics,
    scene: SceneGraph,
    group: str,
    joints: Sequence[str],
    effector: EndEffector | None,
) -> str:
    """Return the frame of the hand."""
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
    """Return the grasp frame when none is given."""
    rigid = rigid_frames(scene, tip)
    named = [frame for frame in rigid if any(word in frame.lower() for word in TOOL_NAMES)]
    if len(named) == 1:
        logger.info(
            "%s: group '%s': the tool is taken to be '%s'", semantics.source, group, named[0]
        )
        return named[0]
    if hand is None:
        return tip
    listed = ", ".join(rigid)
    reason = f"say which frame is the tool of the arm '{group}', the point between the fingertips"
    raise RobotError.at(semantics.source, f"{reason}; rigidly joined to its tip are: {listed}")


def _ready(
    semantics: RobotSemantics,
    scene: SceneGraph,
    group: str,
    joints: Sequence[str],
    wanted: str | None,
) -> dict[str, float]:
    """Return a comfortable configuration of the arm."""
    if wanted is not None:
        return _state_values(
            semantics, scene, state=_state_named(semantics, group, wanted=wanted), joints=joints
        )
    states = semantics.states_of(group)
    for state in [state for word in READY_NAMES for state in states if word in state.name.lower()]:
        reason = _state_misfit(scene, state, joints=joints)
        if reason is None:
            logger.info(
                "%s: group '%s': ready is the state '%s'", semantics.source, group, state.name
            )
            return _state_values(semantics, scene, state=state, joints=joints)
        logger.warning(
            "%s: group '%s' is not made ready by it: %s",
            state.place or semantics.source,
            group,
            reason,
        )
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    middle = {
        joint: float(np.mean(limits[joint])) if np.isfinite(limits[joint]).all() else 0.0
        for joint in joints
    }
    return {
        joint: min(max(value, float(limits[joint][0])), float(limits[joint][1]))
        for joint, value in middle.items()
    }


def _state_named(semantics: RobotSemantics, group: str, *, wanted: str) -> GroupState:
    states = {state.name: state for state in reversed(semantics.states_of(group))}
    if wanted in states:
        return states[wanted]
    names = [*states][::-1]
    known = f" (known: {', '.join(names)})" if names else "; it has none"
    reason = f"the group '{group}' has no state '{wanted}'{did_you_mean(wanted, names)}{known}"
    raise RobotError.at(semantics.source, reason)


def _state_values(
    semantics: RobotSemantics, scene: SceneGraph, *, state: GroupState, joints: Sequence[str]
) -> dict[str, float]:
    """Return the values of joints in a state, clamped to their limits, radians or metres."""
    reason = _state_misfit(scene, state, joints=joints)
    if reason is not None:
        raise srdf_error(state.place, semantics.source, reason)
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    values = state.joint_values
    return {
        joint: min(max(values[joint], float(limits[joint][0])), float(limits[joint][1]))
        for joint in joints
    }


def _state_misfit(scene: SceneGraph, state: GroupState, *, joints: Sequence[str]) -> str | None:
    """Return why a state does not fit some joints; ``None`` if it does."""
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    values = state.joint_values
    for joint in joints:
        if joint not in values:
            near = nearest_name(joint, values)
            hint = f"; it names '{near}'" if near else ""
            return f"the state '{state.name}' has no value for joint '{joint}'{hint}"
        lower, upper = limits[joint]
        if not lower - _STATE_TOLERANCE <= values[joint] <= upper + _STATE_TOLERANCE:
            outside = f"outside its limits from {lower:.6g} to {upper:.6g}"
            return (
                f"the state '{state.name}' puts joint '{joint}' at {values[joint]:.6g}, {outside}"
            )
    return None


def _end_effector_of(
    semantics: RobotSemantics,
    scene: SceneGraph,
    *,
    group: str,
    joints: Sequence[str],
    wanted: str | None,
) -> EndEffector | None:
    """Return the end effector of an arm: the named one, or else the only one."""
    if wanted is not None:
        return semantics.end_effector(wanted)
    carried = {scene.joint_frame(joints[-1]), *scene.subtree(scene.joint_frame(joints[-1]))}
    found = [effector for effector in semantics.end_effectors if effector.parent_group == group]
    found = found or [
        effector
        for effector in semantics.end_effectors
        if not effector.parent_group
        and (effector.parent_link in carried or effector.group == group)
    ]
    if len(found) > 1:
        names = ", ".join(effector.name for effector in found)
        raise RobotError.at(
            semantics.source,
            f"the arm '{group}' carries several end effectors ({names}); say which",
        )
    return found[0] if found else None


def _is_hand(
    semantics: RobotSemantics, scene: SceneGraph, *, effector: EndEffector, joints: Sequence[str]
) -> bool:
    """Return whether the group of an end effector has joints that are not the arm's."""
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


def _no_hand(
    semantics: RobotSemantics, group: str, *, effector: EndEffector | None
) -> FileFormatError:
    """Return the error of an arm without a gripper that opens and closes."""
    reason, place = f"the group '{group}' carries no end effector", semantics.group(group).place
    if effector is not None:
        reason = (
            f"the end effector '{effector.name}' of the group '{group}' has no joints of its own"
        )
        place = effector.place
    suggestion = (
        "HandChoice(gripper='suction') makes a suction cup of its tool, and HandChoice(group=...) "
    )
    suggestion += "(FILE.srdf:GROUP:HAND) names the group"
    return srdf_error(place, semantics.source, f"{reason}; {suggestion} that is a hand")


def _hand_of(
    semantics: RobotSemantics,
    scene: SceneGraph,
    group: str,
    arm: Sequence[str],
    *,
    from_limits: bool,
    opened: str | None,
    closed: str | None,
) -> Hand:
    """Return the hand that a group is; with ``from_limits``, joint limits will do where no states say how it opens."""
    members = _actuated(semantics, group_members(semantics, scene, group=group))
    place = semantics.group(group).place
    joints = tuple(joint for joint in members.joints if joint not in arm)
    fingers = finger_frames(scene, joints)
    if not joints:
        raise srdf_error(
            place,
            semantics.source,
            f"the group '{group}' has no joints that could open and close a hand",
        )
    states = semantics.states_of(group)
    found = [_named(semantics, group, opened, "open"), _named(semantics, group, closed, "clos")]
    if found[0] is not None and found[1] is not None:
        values = [
            _state_values(semantics, scene, state=state, joints=joints)
            for state in found
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
        raise srdf_error(place, semantics.source, f"{reason}; {suggestion}")
    widths = [finger_distance(scene, state, fingers) for state in values]
    if from_limits and widths[0] < widths[1] and found[0] is None:
        values, widths = values[::-1], widths[::-1]
    if not (math.isfinite(widths[0]) and widths[0] > widths[1]):
        states_text = (
            f"{_millimetres(widths[0])} apart when open and {_millimetres(widths[1])} when closed"
        )
        reason = (
            f"the fingers ({', '.join(fingers) or 'none with a collision shape'}) of the hand are"
            f" {states_text}"
        )
        raise srdf_error(place, semantics.source, f"{reason}: this is no parallel gripper")
    return Hand(joints, values[0], values[1], widths[0], widths[1], fingers)


def _millimetres(width: float) -> str:
    return f"{width * 1000:.1f} mm" if math.isfinite(width) else "nowhere"


def _named(
    semantics: RobotSemantics, group: str, wanted: str | None, part: str
) -> GroupState | None:
    """Return the state that is wanted, else the first whose name has a word in it."""
    if wanted is not None:
        return _state_named(semantics, group, wanted=wanted)
    return next((state for state in semantics.states_of(group) if part in state.name.lower()), None)


def _limit_values(
    semantics: RobotSemantics, scene: SceneGraph, joints: Sequence[str]
) -> list[dict[str, float]]:
    """Return the upper and the lower ends of the joints."""
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    for joint in joints:
        if not np.isfinite(limits[joint]).all():
            reason = f"joint '{joint}' of the hand has no limits that could open and close it"
            raise RobotError.at(semantics.source, reason)
    return [{joint: float(limits[joint][end]) for joint in joints} for end in (1, 0)]
