"""Inference of a robot's arm and hand from links and joints, with confidence and evidence.

The end of each chain of joints is searched for a hand, or for a suction cup by the names of its
links. Of several arms the best is selected: one with a hand first, then the longest. A tool frame
is added if there is none.

The result is for people to confirm: each line has its evidence and a confidence, high, medium or
low. A hand of many joints is recognised but not supported.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from tmkit._core import CollisionWorld
from tmkit._support.elementary import acos, cos
from tmkit._support.results import Result
from tmkit.errors import RobotError, UnknownNameError
from tmkit.formats.quick_pieces import with_quick_pieces
from tmkit.formats.visual_only import visual_only_frames
from tmkit.graph import SceneGraph
from tmkit.robots import hands
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.mechanisms import (
    ARM_JOINTS,
    JointChain,
    chain_between,
    frames_on_joints,
    joint_chains,
    rigid_frames,
)
from tmkit.robots.ready_posture import middle_posture, ready_posture
from tmkit.robots.unsupported_hands import has_several_cups, other_fingers, parts_beside
from tmkit.spatial import Pose

_MAX_FINGER_JOINTS = 4
"""Largest number of joints of a finger."""

_MAX_ARMS = 8
"""Largest number of arms that are searched for a hand."""

_MIN_TOOL_COSINE = cos(math.radians(15.0))
"""Smallest cosine of the angle between an axis of a given tool and of the inferred one."""

_CUP_CLEARANCE = 0.05
"""Distance behind a suction cup within which other parts of the robot are beside it [m]."""

_CONFIDENCES = ("low", "medium", "high")
"""Levels of confidence."""

SUCTION_WORDS = ("suction", "vacuum", "cup", "sucker", "epick")
"""Words in the names of suction cups."""


class InferredArmStatus(StrEnum):
    """Completeness of an inferred arm."""

    COMPLETE = "complete"
    HAND_MISSING = "hand missing"


@dataclass(frozen=True, slots=True)
class InferredArm(Result):
    """Inferred arm with its evidence.

    Attributes:
        scene: scene, with an additional tool frame if the robot has none.
        robot: description of the arm. Without a hand or a cup, its gripper kind is ``none``.
        inferred: inferred values with confidence and evidence, one line each.
        missing: reason why the arm cannot pick, in one sentence. Empty with a hand or a cup.
        added_tool: name of the added tool frame. Empty if the robot has one.
        confidence: confidence in the hand: ``high``, ``medium``, or ``low``. Empty without a hand.
        other_tips: tips of other arms.
        other_tools: frames with the name of a tool but another position or other axes.
    """

    scene: SceneGraph
    robot: Manipulator
    inferred: tuple[str, ...]
    missing: str
    added_tool: str = ""
    confidence: str = ""
    other_tips: tuple[str, ...] = ()
    other_tools: tuple[str, ...] = ()

    @property
    def status(self) -> InferredArmStatus:
        """Completeness: ``COMPLETE`` with a hand or a cup."""
        return InferredArmStatus.HAND_MISSING if self.missing else InferredArmStatus.COMPLETE

    def without_gripper(self) -> InferredArm:
        """Return the complete arm whose gripper kind is ``none``; its tool frame stays."""
        arm = self.robot
        robot = Manipulator(
            arm.name,
            arm.base,
            arm.tip,
            arm.tool,
            arm.joints,
            arm.ready,
            gripper_kind="none",
            acceleration=arm.acceleration,
        )
        inferred = (*self.inferred, "gripper: none, as given")
        return replace(self, robot=robot, inferred=inferred, missing="", confidence="")

    def __repr__(self) -> str:
        arm = self.robot
        return (
            f"InferredArm({self.status.value}, {len(arm.joints)} joints from '{arm.base}' to"
            f" '{arm.tip}')"
        )


def infer_arm(
    scene: SceneGraph,
    *,
    base: str | None = None,
    tip: str | None = None,
    tool: str | None = None,
    name: str = "robot",
    seed: int = 0,
) -> InferredArm:
    """Infer the arm of a robot.

    Args:
        scene: scene with the robot, preferably without other moving bodies.
        base: frame at the base of the arm. Defaults to the parent of its first joint's frame.
        tip: frame of the hand. Defaults to that of the best arm.
        tool: grasp frame. Defaults to a frame between the fingertips, which is added if the robot
            has none.
        name: name of the description.
        seed: seed of the configurations from which the ready posture is selected.

    Raises:
        UnknownNameError: if a frame is unknown.
        RobotError: if no joint moves between the frames, or the tool is not rigidly fixed to the
            tip.
    """
    for frame in (base, tip, tool):
        if frame is not None and frame not in scene:
            raise UnknownNameError.of("frame", frame, scene.frame_names)
    tips = _tips(scene, base)
    if tip is not None:
        relatives = {tip, *scene.ancestors(tip), *scene.subtree(tip)}
        tips = [tip, *(end for end in tips if end not in relatives)]
    if not tips:
        raise RobotError.at(
            "robot", "no joint moves" + (f" below '{base}'" if base is not None else "")
        )

    # Select the best arm.
    chains = [chain_between(scene, base, end) for end in tips[:_MAX_ARMS]]
    arms = _with_hands(scene, chains, base=base, tip=tip)
    visual_only = visual_only_frames(
        scene, {frame for chain in chains for frame in scene.subtree(chain.tip)}
    )
    if visual_only and not any(hand for _, hand in arms):
        # Many vendors give the links of a hand visual shapes alone.
        colliding_scene = _with_visual_collisions(scene, visual_only)
        colliding_arms = _with_hands(colliding_scene, chains, base=base, tip=tip)
        if any(hand for _, hand in colliding_arms):
            scene, arms = colliding_scene, colliding_arms
        else:
            visual_only = ()
    else:
        visual_only = ()

    def rank(arm: tuple[JointChain, hands.InferredHand | None]) -> tuple[bool, bool, int]:
        """Return the sort key of an arm: hand, suction cup, number of joints."""
        return arm[1] is not None, _has_cup(scene, arm[0].tip), len(arm[0].joints)

    chain, hand = max(arms, key=rank) if tip is None else arms[0]
    if base is None:
        armed_chains = [arm for arm, arm_hand in arms if arm_hand is not None]
        short_chain = _exclude_shared_joints(
            scene, chain, [arm for arm in armed_chains if arm.tip != chain.tip]
        )
        open_values = hand.opened if hand is not None else {}
        if _is_free(scene, short_chain, open_values, seed) or not _is_free(
            scene, chain, open_values, seed
        ):
            chain = short_chain
    if tool is not None and tool not in rigid_frames(scene, chain.tip):
        raise RobotError.at(
            "robot", f"the tool '{tool}' is not rigidly joined to the tip '{chain.tip}'"
        )
    other_tips = tuple(
        arm.tip
        for arm, arm_hand in arms
        if arm.tip != chain.tip
        and (arm_hand is not None or (hand is None and len(arm.joints) > ARM_JOINTS))
    )
    inferred = [f"arm: {len(chain.joints)} joints from '{chain.base}' to '{chain.tip}'"]
    if visual_only:
        links = ", ".join(map(repr, visual_only[:4]))
        inferred.append(f"collisions: {links} had no collision shapes, and collide as they look")
    if other_tips:
        tip_names = ", ".join(map(repr, other_tips[:4]))
        inferred[0] += f"; other arms end at {tip_names}, choose by --tip"
    if hand is None:
        result = _arm_without_hand(scene, chain, inferred, tool=tool, name=name, seed=seed)
    else:
        if hand.kind == "jaw":
            # The hull of a palm with a fixed finger would fill the space between the fingers.
            scene = with_quick_pieces(_without_hulls(scene, hand.contact_links), hand.contact_links)
            hand = hands.infer_hand(scene, chain.tip, chain.joints) or hand
        result = _arm_with_hand(scene, chain, hand, inferred, tool=tool, name=name, seed=seed)
    return replace(result, other_tips=other_tips)


def _with_hands(
    scene: SceneGraph, chains: Sequence[JointChain], *, base: str | None, tip: str | None
) -> list[tuple[JointChain, hands.InferredHand | None]]:
    """Return arms with their hands, or None for an arm without one.

    If no arm has a hand or the name of a cup, the last joint of an arm may be a jaw without the
    name of one. The arm then ends before that joint.

    Args:
        scene: scene with the robot.
        chains: joints of the arms.
        base: given base of the arm, or None.
        tip: given tip of the arm, or None.
    """
    arms = [(chain, hands.infer_hand(scene, chain.tip, chain.joints)) for chain in chains]
    if tip is not None or any(
        hand is not None or _has_cup(scene, chain.tip) for chain, hand in arms
    ):
        return arms
    for chain in chains:
        last = scene.joint_frame(chain.joints[-1])
        palm = scene.parent(last)
        if palm is None or len(chain.joints) <= ARM_JOINTS or not _has_finger_limits(scene, last):
            continue
        shorter = chain_between(scene, base, palm)
        hand = hands.infer_hand(scene, palm, shorter.joints)
        if hand is not None:
            arms.append((shorter, hand))
    return arms


def _with_visual_collisions(scene: SceneGraph, frames: Sequence[str]) -> SceneGraph:
    """Return a scene in which some frames collide as their visual shapes."""
    for frame in frames:
        shapes = [part.replace(collision=True) for part in scene.shapes(frame)]
        scene = scene.set_shapes(frame, shapes)
    # As in a URDF file, links on both sides of a joint may overlap.
    for frame in frames:
        for other in (*scene.children(frame), scene.parent(frame)):
            if other is not None and any(part.collision for part in scene.shapes(other)):
                scene = scene.allow_collision(frame, other, reason="adjacent")
    return scene


def _without_hulls(scene: SceneGraph, frames: Sequence[str]) -> SceneGraph:
    """Return a scene in which no mesh of some frames has the level of its hull, as in MJCF."""
    for frame in frames:
        shapes = [
            part.replace(level=None) if part.level == "hull" and part.shape.kind == "mesh" else part
            for part in scene.shapes(frame)
        ]
        scene = scene.set_shapes(frame, shapes)
    return scene


def _is_free(
    scene: SceneGraph, chain: JointChain, open_values: Mapping[str, float], seed: int
) -> bool:
    """Return whether a chain has a ready configuration without collisions of its links.

    Args:
        scene: scene with the robot.
        chain: joints of the arm.
        open_values: joint values of the open hand.
        seed: seed of random configurations.
    """
    moving = {frame for joint in chain.joints for frame in scene.subtree(scene.joint_frame(joint))}
    values = middle_posture(scene, joints=chain.joints, other_values=open_values, seed=seed)
    q = scene.configuration({**values, **open_values})
    contacts = CollisionWorld(scene).contacts(q)
    return not any(moving & {contact.frame_a, contact.frame_b} for contact in contacts)


def _exclude_shared_joints(
    scene: SceneGraph, chain: JointChain, other_chains: list[JointChain]
) -> JointChain:
    """Return a chain without the joints of other arms with hands, such as those of a torso."""
    shared = {joint for other_chain in other_chains for joint in other_chain.joints}
    joints = tuple(joint for joint in chain.joints if joint not in shared)
    if not joints or len(joints) == len(chain.joints):
        return chain
    return JointChain(str(scene.parent(scene.joint_frame(joints[0]))), chain.tip, joints)


def _tips(scene: SceneGraph, base: str | None) -> list[str]:
    """Return the tips of all chains, without the fingers beyond them, the longest arm first."""
    lengths: dict[str, int] = {}
    for chain in joint_chains(scene):
        path = [scene.joint_frame(joint) for joint in chain.joints]
        if base is not None and base not in (path[0], *scene.ancestors(path[-1])):
            continue
        counts = range(min(ARM_JOINTS, len(path)), len(path))
        count = next((k for k in counts if _is_hand_after(scene, path, k)), len(path))
        lengths.setdefault(path[count - 1], count)
    return sorted(lengths, key=lambda tip: -lengths[tip])


def _is_hand_after(scene: SceneGraph, path: list[str], count: int) -> bool:
    """Return whether the frames after the first joints of a path are a hand.

    A hand has several branches, or its few joints have the name and the limits of a finger.

    Args:
        scene: scene with the robot.
        path: frames of the chain's joints.
        count: number of joints of the arm.
    """
    children = [
        child for frame in rigid_frames(scene, path[count - 1]) for child in scene.children(frame)
    ]
    branches = [child for child in children if scene.joint(child).is_actuated]
    words = (*hands.FINGER_WORDS, "thumb", "index")
    finger_count = sum(hands.has_word(child, words) for child in branches)
    is_short = len(path) - count <= _MAX_FINGER_JOINTS
    if len(branches) > 1 and (is_short or finger_count > 1):
        return True
    if not is_short:
        return False
    next_frame = path[count]
    names = [scene.joint(next_frame).name]
    # The name of an earlier link may be that of the gripper's body, which a wrist joint rotates.
    if count == len(path) - 1:
        names.append(next_frame)
    has_finger_name = any(hands.has_word(name, hands.FINGER_WORDS) for name in names)
    return has_finger_name and _has_finger_limits(scene, next_frame)


def _has_finger_limits(scene: SceneGraph, frame: str) -> bool:
    """Return whether the joint of a frame has limits at most 180 degrees apart, unlike a wrist."""
    joint = scene.joint(frame)
    return bool(
        np.isfinite([joint.lower, joint.upper]).all() and joint.upper - joint.lower < np.pi + 0.1
    )


def _has_cup(scene: SceneGraph, tip: str) -> bool:
    """Return whether a frame fixed to the tip has the name of a suction cup."""
    return any(hands.has_word(frame, SUCTION_WORDS) for frame in rigid_frames(scene, tip))


def _arm_with_hand(
    scene: SceneGraph,
    chain: JointChain,
    hand: hands.InferredHand,
    inferred: list[str],
    *,
    tool: str | None,
    name: str,
    seed: int,
) -> InferredArm:
    """Return an arm with an inferred hand.

    Args:
        scene: scene with the robot.
        chain: joints of the arm.
        hand: inferred hand.
        inferred: lines of inferred values, to which those of the hand are appended.
        tool: tool frame, or None.
        name: name of the description.
        seed: seed of random configurations.
    """
    confidence = _CONFIDENCES[2 - (len(hand.evidence) == 1) - (hand.width_closed > 0.002)]
    kind = "parallel gripper" if hand.kind == "parallel" else "jaw against a fixed finger"
    inferred.append(f"hand: {kind}, confidence {confidence} ({'; '.join(hand.evidence)})")
    frames = [
        frame for frame in rigid_frames(scene, chain.tip) if hands.has_word(frame, hands.TOOL_NAMES)
    ]
    matches = [frame for frame in frames if _is_tool_frame(scene, frame, chain.tip, hand.tool)]
    added_tool = ""
    if tool is not None:
        pose = scene.pose(tool, relative_to=chain.tip, q=scene.configuration({}))
        inferred.append(f"tool: '{tool}', as given{_tool_difference(tool, pose, hand)}")
        hand = hands.measure_hand(scene, chain.tip, hand, tool=pose) or hand
    elif matches:
        tool = matches[0]
        pose = scene.pose(tool, relative_to=chain.tip, q=scene.configuration({}))
        hand = hands.measure_hand(scene, chain.tip, hand, tool=pose) or hand
        inferred.append(
            f"tool: '{tool}', confidence high (its name, between the fingertips, y as the fingers"
            " close)"
        )
    else:
        tool = added_tool = _unused_name(scene, f"{chain.tip}_tool")
        scene = scene.add_frame(added_tool, chain.tip, pose=hand.tool)
        mismatch = f"; '{frames[0]}' has another place or other axes" if frames else ""
        inferred.append(
            f"tool: between the fingertips, where the robot has no frame{mismatch}; added as"
            f" '{added_tool}'"
        )
    inferred.append(_tool_direction(scene, chain.tip, tool))
    hand_frames = _frames_of_hand(scene, hand)
    inferred += _beside_lines(scene, chain, tool, hand_frames=hand_frames, depth=0.0)
    extra = other_fingers(scene, chain.tip, hand)
    missing = ""
    if extra:
        names = ", ".join(
            repr(frame) for frame in (*(frames[-1] for frames in hand.fingers), *extra)
        )
        missing = (
            f"the hand at '{chain.tip}' has {2 + len(extra)} fingers, {names}, and hands that close"
            " two fingers, or a jaw on a fixed finger, are supported: describe two fingers that"
            " close on each other in a file for --robot, and keep the others out of the way by"
            " fixed joints"
        )
    arm = Manipulator(
        name,
        chain.base,
        chain.tip,
        tool,
        chain.joints,
        ready_posture(scene, joints=chain.joints, tool=tool, other_values=hand.opened, seed=seed),
        finger_depth=hand.depth,
        **hand.attributes(),
    )
    return InferredArm(
        scene,
        arm,
        tuple(inferred),
        missing,
        added_tool,
        confidence,
        other_tools=tuple(frames) if added_tool else (),
    )


def _arm_without_hand(
    scene: SceneGraph,
    chain: JointChain,
    inferred: list[str],
    *,
    tool: str | None,
    name: str,
    seed: int,
) -> InferredArm:
    """Return an arm with a suction cup if a link has the name of one, else without a gripper.

    An arm without a gripper is incomplete.

    Args:
        scene: scene with the robot.
        chain: joints of the arm.
        inferred: lines of inferred values, to which those of the hand are appended.
        tool: tool frame, or None.
        name: name of the description.
        seed: seed of random configurations.
    """
    cup_links = [
        frame for frame in rigid_frames(scene, chain.tip) if hands.has_word(frame, SUCTION_WORDS)
    ]
    cups_with_shape = [
        frame for frame in cup_links if any(part.collision for part in scene.shapes(frame))
    ]
    cup = cups_with_shape[-1] if cups_with_shape else chain.tip
    tool_frames = [
        frame for frame in rigid_frames(scene, cup) if hands.has_word(frame, hands.TOOL_NAMES)
    ]
    tool = tool or (tool_frames or cup_links[-1:] or [chain.tip])[0]
    joints = hands.hand_joints(scene, chain.tip, chain.joints)
    missing = ""
    contact_links = hands.cup_frames(scene, cup, tool) if cup_links else ()
    if cup_links:
        inferred.append(f"hand: suction cup, confidence medium (the name of '{cup_links[-1]}')")
        missing = _suction_fault(scene, chain.tip, cups_with_shape, tool)
        inferred += _beside_lines(
            scene, chain, tool, hand_frames=contact_links, depth=_CUP_CLEARANCE
        )
    elif len(joints) > hands.MAX_JOINTS:
        missing = (
            f"the hand at '{chain.tip}' has {len(joints)} joints; only hands that close"
            f" two fingers by at most {hands.MAX_JOINTS} are inferred: describe two of its fingers"
            " in a file for --robot"
        )
    elif joints:
        missing = (
            f"the joints {', '.join(joints)} below '{chain.tip}' close no two collision shapes on"
            " each other by at least 1 cm, nor one on a fixed finger: give the fingers shapes with"
            " a gap between them, or mimic tags where they are coupled"
        )
    else:
        missing = (
            f"no gripper found: below '{chain.tip}' nothing opens and closes, and no link is named"
            " after a suction cup; mount one by 'tmkit new robot --hand' (parallel_gripper,"
            " suction_cup, a file), describe an arm without a gripper by '--hand none', or choose"
            " an arm by --tip"
        )
    if not missing:
        inferred.append(_tool_direction(scene, chain.tip, tool))
    arm = Manipulator(
        name,
        chain.base,
        chain.tip,
        tool,
        chain.joints,
        ready_posture(scene, joints=chain.joints, tool=tool, other_values={}, seed=seed),
        gripper_kind="suction" if cup_links else "none",
        contact_links=contact_links,
    )
    confidence = "medium" if cup_links else ""
    return InferredArm(scene, arm, tuple(inferred), missing, confidence=confidence)


def _suction_fault(scene: SceneGraph, tip: str, cups: Sequence[str], tool: str) -> str:
    """Return the reason why a suction gripper is not supported, or an empty text.

    Args:
        scene: scene with the robot.
        tip: frame of the hand.
        cups: frames of the gripper, with collision shapes.
        tool: frame of the tool.
    """
    if not cups or not has_several_cups(scene, cups, tool):
        return ""
    return (
        f"the suction gripper at '{tip}' has several cups, and grippers of one cup are supported:"
        " load the robot without it and mount one by --hand suction_cup, or describe one of its"
        " cups in a file for --robot"
    )


def _frames_of_hand(scene: SceneGraph, hand: hands.InferredHand) -> frozenset[str]:
    """Return the frames of a hand: its fingers, and all that its joints move."""
    moved = frames_on_joints(scene, hand.joints)
    frames = {frame for root in moved for frame in scene.subtree(root)}
    return frozenset(frames.union(*hand.fingers))


def _beside_lines(
    scene: SceneGraph, chain: JointChain, tool: str, *, hand_frames: Collection[str], depth: float
) -> tuple[str, ...]:
    """Return a line with the parts of the robot beside its hand, or none.

    Args:
        scene: scene with the robot.
        chain: joints of the arm.
        tool: frame of the tool.
        hand_frames: frames of the hand.
        depth: distance behind the tool beyond which parts are not beside it [m].
    """
    last = scene.joint_frame(chain.joints[-1])
    parts = parts_beside(scene, last, tool, hand_frames=hand_frames, depth=depth)
    if not parts:
        return ()
    names = ", ".join(
        f"'{frame}' (ends {1000 * abs(distance):.0f} mm"
        f" {'in front of' if distance > 0.0 else 'behind'} the tool)"
        for frame, distance in list(parts.items())[:4]
    )
    return (
        f"warning: beside the hand is {names}, which may touch what the hand reaches for; remove it"
        " from the file if the robot does not have it",
    )


def _tool_difference(tool: str, pose: Pose, hand: hands.InferredHand) -> str:
    """Return how a given tool differs from the inferred one, as the end of a line.

    Args:
        tool: name of the given tool.
        pose: tip_from_tool of the given tool.
        hand: inferred hand.

    Raises:
        RobotError: if its axes, or its place across the fingers, are not those of a tool.
    """
    difference = hand.tool.inverse() @ pose
    rotation = difference.rotation
    # Both closing directions of a parallel hand are right, as both of its fingers move.
    closing = rotation[1, 1] if hand.kind == "jaw" else abs(rotation[1, 1])
    advice = "leave --tool out: a frame between the fingertips is found or added"
    for cosine, axis, should in (
        (rotation[2, 2], "z", "point from the palm to the fingertips"),
        (closing, "y", "be the direction in which the fingers close"),
    ):
        if cosine < _MIN_TOOL_COSINE:
            angle = math.degrees(acos(min(max(float(cosine), -1.0), 1.0)))
            raise RobotError.at(
                "robot",
                f"the {axis} axis of the tool '{tool}' must {should}, and is {angle:.0f}"
                f" degrees away from it; {advice}",
            )
    x, y, z = (1000.0 * np.asarray(difference.translation)).tolist()
    if abs(y) > 1000.0 * hands.MAX_TOOL_OFFSET:
        place = "the surface of the fixed finger" if hand.kind == "jaw" else "the middle of both"
        raise RobotError.at(
            "robot",
            f"the tool '{tool}' is {abs(y):.1f} mm beside {place} in the closing direction;"
            f" {advice}",
        )
    places = [
        f"{abs(z):.0f} mm {'in front of' if z > 0.0 else 'behind'} the point between the fingertips"
        if abs(z) > 1.0
        else "",
        f"{abs(x):.0f} mm to the side" if abs(x) > 1.0 else "",
    ]
    places = [place for place in places if place]
    return f": {' and '.join(places)}" if places else ""


def _is_tool_frame(scene: SceneGraph, frame: str, tip: str, tool: Pose) -> bool:
    """Return whether a frame is near an inferred tool, with aligned axes.

    Args:
        scene: scene with the robot.
        frame: candidate frame.
        tip: frame of the hand.
        tool: tip_from_tool of the inferred hand.
    """
    pose = tool.inverse() @ scene.pose(frame, relative_to=tip, q=scene.configuration({}))
    x, y, z = pose.translation
    is_near = abs(z) < 0.04 and math.hypot(x, y) < 0.02
    return bool(is_near and pose.rotation[2, 2] > 0.9 and abs(pose.rotation[1, 1]) > 0.9)


def _tool_direction(scene: SceneGraph, tip: str, tool: str) -> str:
    """Return a line with the direction of the tool's z axis, in the axes of the tip."""
    z = np.asarray(scene.pose(tool, relative_to=tip, q=scene.configuration({})).rotation)[:, 2]
    axis = int(np.argmax(np.abs(z)))
    direction = str(np.round(z, 2).tolist())
    if abs(z[axis]) > 0.99:
        direction = f"{'+' if z[axis] > 0 else '-'}{'xyz'[axis]}"
    return f"tool z, which must point away from the hand, points along {direction} of '{tip}'"


def _unused_name(scene: SceneGraph, name: str) -> str:
    """Return a name that the scene does not use, by appending a number if necessary."""
    names = (name, *(f"{name}{number}" for number in range(2, len(scene) + 3)))
    return next(candidate for candidate in names if candidate not in scene)
