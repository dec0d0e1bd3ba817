"""The arm of a robot of which only links and joints are known, with the inferred values and their confidence.

The end of each chain of joints is searched for a hand, for a suction cup by the names of its links,
or for neither. Of several arms the best is taken: one with a hand, then the longest. A frame for
the tool is added where there is none.

The result is for people to confirm: every line names its evidence and a confidence, high, medium or
low. A jaw against a fixed finger is recognised but not supported, and so is a hand of many joints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from tmkit._core import CollisionWorld
from tmkit._support.elementary import norms
from tmkit._support.results import Result
from tmkit.errors import RobotError, UnknownNameError
from tmkit.formats.urdf.always_colliding import random_configurations
from tmkit.graph import SceneGraph
from tmkit.robots import hands
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.mechanisms import (
    ARM_JOINTS,
    JointChain,
    chain_between,
    joint_chains,
    rigid_frames,
)
from tmkit.spatial import Pose

_DEPTH = 4  # joints of a finger at most
_MOST_ARMS = 8
_TRIES = 500  # configurations of which one that is free becomes ready

SUCTION_WORDS = ("suction", "vacuum", "cup", "sucker", "epick")


class InferredArmStatus(StrEnum):
    """Whether an arm can pick as inferred."""

    COMPLETE = "complete"
    HAND_MISSING = "hand missing"


@dataclass(frozen=True, slots=True)
class InferredArm(Result):
    """An arm, and what speaks for it.

    Attributes:
        scene: the scene, with a frame for the tool where the robot has none.
        manipulator: the arm; without a hand, a suction cup at its tip stands for one.
        inferred: what was inferred, with confidence and evidence, a line each.
        missing: why the arm cannot pick, in one sentence; empty when it has a hand or a cup.
        added_tool: the frame that was added for the tool, empty when there was one.
        confidence: in the hand: ``high``, ``medium``, or ``low``; empty when there is none.
        other_tips: the ends of other arms.
        other_tools: frames with the name of a tool that is elsewhere or has other axes.
    """

    scene: SceneGraph
    manipulator: Manipulator
    inferred: tuple[str, ...]
    missing: str
    added_tool: str = ""
    confidence: str = ""
    other_tips: tuple[str, ...] = ()
    other_tools: tuple[str, ...] = ()

    @property
    def status(self) -> InferredArmStatus:
        """Whether the arm has a hand or a cup."""
        return InferredArmStatus.HAND_MISSING if self.missing else InferredArmStatus.COMPLETE

    def __repr__(self) -> str:
        arm = self.manipulator
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
        scene: the robot, best without anything else that moves.
        base: the frame that the arm stands on; by default the one that carries its first joint.
        tip: the frame of its hand; by default that of the best arm.
        tool: the grasp frame; by default one between the fingertips, which is added where the robot
            has none.
        name: of the description.
        seed: of the random configurations, which matter only when the middle of the limits
            collides.

    Raises:
        UnknownNameError: no such frame.
        RobotError: no joint moves between the frames, or the tool is not rigidly joined to the tip.
    """
    for frame in (base, tip, tool):
        if frame is not None and frame not in scene:
            raise UnknownNameError.of("frame", frame, scene.frame_names)
    tips = _tips(scene, base)
    if tip is not None:
        line = {tip, *scene.ancestors(tip), *scene.subtree(tip)}
        tips = [tip, *(end for end in tips if end not in line)]
    if not tips:
        raise RobotError.at(
            "robot", "no joint moves" + (f" below '{base}'" if base is not None else "")
        )
    arms = [chain_between(scene, base, end) for end in tips[:_MOST_ARMS]]
    found = [(chain, hands.infer_hand(scene, chain.tip, chain.joints)) for chain in arms]
    best = max(
        found, key=lambda one: (one[1] is not None, _has_cup(scene, one[0].tip), len(one[0].joints))
    )
    chain, hand = best if tip is None else found[0]
    if base is None:
        own = _own(
            scene,
            chain,
            [one for one, other in found if other is not None and one.tip != chain.tip],
        )
        opened = hand.opened if hand is not None else {}
        chain = (
            own
            if _is_free(scene, own, opened, seed) or not _is_free(scene, chain, opened, seed)
            else chain
        )
    if tool is not None and tool not in rigid_frames(scene, chain.tip):
        raise RobotError.at(
            "robot", f"the tool '{tool}' is not rigidly joined to the tip '{chain.tip}'"
        )
    others = tuple(
        one.tip
        for one, other in found
        if one.tip != chain.tip
        and (other is not None or (hand is None and len(one.joints) > ARM_JOINTS))
    )
    inferred = [f"arm: {len(chain.joints)} joints from '{chain.base}' to '{chain.tip}'"]
    if others:
        inferred[0] += f"; other arms end at {', '.join(map(repr, others[:4]))}, choose by --tip"
    if hand is None:
        arm = _without_hand(scene, chain, inferred, tool=tool, name=name, seed=seed)
    else:
        arm = _with_hand(scene, chain, hand, inferred, tool=tool, name=name, seed=seed)
    return replace(arm, other_tips=others)


def _is_free(scene: SceneGraph, chain: JointChain, opened: Mapping[str, float], seed: int) -> bool:
    """Whether a chain has a ready configuration in which nothing that it moves collides."""
    moved = {frame for joint in chain.joints for frame in scene.subtree(scene.joint_frame(joint))}
    q = scene.configuration({**_ready(scene, chain, opened, seed), **opened})
    return not any(
        moved & {contact.frame_a, contact.frame_b} for contact in CollisionWorld(scene).contacts(q)
    )


def _own(scene: SceneGraph, chain: JointChain, others: list[JointChain]) -> JointChain:
    """Return a chain without the joints that also move other arms with hands, as those of a torso do."""
    shared = {joint for other in others for joint in other.joints}
    own = tuple(joint for joint in chain.joints if joint not in shared)
    if not own or len(own) == len(chain.joints):
        return chain
    return JointChain(str(scene.parent(scene.joint_frame(own[0]))), chain.tip, own)


def _tips(scene: SceneGraph, base: str | None) -> list[str]:
    """Return the ends of all chains without the fingers beyond them, the longest arm first."""
    ends: dict[str, int] = {}
    for chain in joint_chains(scene):
        path = [scene.joint_frame(joint) for joint in chain.joints]
        if base is not None and base not in (path[0], *scene.ancestors(path[-1])):
            continue
        count = next(
            (
                k
                for k in range(min(ARM_JOINTS, len(path)), len(path))
                if _carries_hand(scene, path, k)
            ),
            None,
        )
        count = len(path) if count is None else count
        ends.setdefault(path[count - 1], count)
    return sorted(ends, key=lambda end: -ends[end])


def _carries_hand(scene: SceneGraph, path: list[str], count: int) -> bool:
    """Whether what follows the first joints of a path is a hand: short, and branching, called so, or a jaw."""
    carried = [
        child for frame in rigid_frames(scene, path[count - 1]) for child in scene.children(frame)
    ]
    moving = [child for child in carried if scene.joint(child).is_actuated]
    fingers = sum(
        hands.named_like(child, (*hands.FINGER_WORDS, "thumb", "index")) for child in moving
    )
    if len(moving) > 1 and (len(path) - count <= _DEPTH or fingers > 1):
        return True
    if len(path) - count > _DEPTH:
        return False
    following = path[count]
    names = [scene.joint(following).name]
    # an earlier link called a gripper may be its body, which a wrist turns
    if count == len(path) - 1:
        names.append(following)
    called = any(hands.named_like(name, hands.FINGER_WORDS) for name in names)
    return called and _moves_little(scene, following)


def _moves_little(scene: SceneGraph, frame: str) -> bool:
    """Whether the joint of a frame is limited, as that of a finger is; a wrist turns further than half a turn."""
    joint = scene.joint(frame)
    return bool(
        np.isfinite([joint.lower, joint.upper]).all() and joint.upper - joint.lower < np.pi + 0.1
    )


def _has_cup(scene: SceneGraph, tip: str) -> bool:
    return any(hands.named_like(frame, SUCTION_WORDS) for frame in rigid_frames(scene, tip))


def _with_hand(
    scene: SceneGraph,
    chain: JointChain,
    hand: hands.InferredHand,
    inferred: list[str],
    *,
    tool: str | None,
    name: str,
    seed: int,
) -> InferredArm:
    """Return the arm with fingers."""
    sure = 2 - (len(hand.evidence) == 1) - (hand.width_closed > 0.002)
    confidence = ("low", "medium", "high")[sure]
    inferred.append(f"hand: parallel gripper, confidence {confidence} ({'; '.join(hand.evidence)})")
    frames = [
        frame
        for frame in rigid_frames(scene, chain.tip)
        if hands.named_like(frame, hands.TOOL_NAMES)
    ]
    fitting = [frame for frame in frames if _fits(scene, frame, chain.tip, hand.tool)]
    added = ""
    if tool is not None:
        inferred.append(f"tool: '{tool}', as given")
    elif fitting:
        tool = fitting[0]
        inferred.append(
            f"tool: '{tool}', confidence high (its name, between the fingertips, y as the fingers"
            " close)"
        )
    else:
        tool = added = _new_name(scene, f"{chain.tip}_tool")
        scene = scene.add_frame(added, chain.tip, pose=hand.tool)
        turned = f"; '{frames[0]}' has another place or other axes" if frames else ""
        inferred.append(
            f"tool: between the fingertips, where the robot has no frame{turned}; added as"
            f" '{added}'"
        )
    inferred.append(_direction(scene, chain.tip, tool))
    arm = Manipulator(
        name,
        chain.base,
        chain.tip,
        tool,
        chain.joints,
        _ready(scene, chain, hand.opened, seed),
        finger_depth=hand.depth,
        **hand.attributes(),
    )
    return InferredArm(
        scene,
        arm,
        tuple(inferred),
        "",
        added,
        confidence,
        other_tools=tuple(frames) if added else (),
    )


def _without_hand(
    scene: SceneGraph,
    chain: JointChain,
    inferred: list[str],
    *,
    tool: str | None,
    name: str,
    seed: int,
) -> InferredArm:
    """Return the arm with a cup at its tip, and what is missing unless a link is called so."""
    called = [
        frame for frame in rigid_frames(scene, chain.tip) if hands.named_like(frame, SUCTION_WORDS)
    ]
    cup = next(
        (
            frame
            for frame in reversed(called)
            if any(part.collision for part in scene.shapes(frame))
        ),
        chain.tip,
    )
    named = [
        frame for frame in rigid_frames(scene, cup) if hands.named_like(frame, hands.TOOL_NAMES)
    ]
    tool = tool or (named or called[-1:] or [chain.tip])[0]
    joints = hands.hand_joints(scene, chain.tip, chain.joints)
    missing = ""
    if called:
        inferred.append(f"hand: suction cup, confidence medium (the name of '{called[-1]}')")
    elif len(joints) > hands.MOST_JOINTS:
        missing = (
            f"the hand at '{chain.tip}' has {len(joints)} joints of its own; only hands that close"
            f" two fingers by at most {hands.MOST_JOINTS} are inferred: describe two of its fingers"
            " in a file for --robot"
        )
    elif len(joints) == 1:
        is_named = hands.named_like(joints[0], hands.FINGER_WORDS)
        sure = "medium (its name)" if is_named else "low (the only joint at the end)"
        inferred.append(
            f"hand: one jaw, '{joints[0]}', against a fixed finger of '{chain.tip}', confidence"
            f" {sure}"
        )
        missing = (
            f"the jaw '{joints[0]}' moves against a finger that is fixed to '{chain.tip}', which is"
            " not supported: objects are centred between two fingers that move"
        )
    elif joints:
        missing = (
            f"the joints {', '.join(joints)} below '{chain.tip}' close no two collision shapes on"
            " each other by at least 1 cm: give the fingers shapes with a gap between them, or"
            " mimic tags where they are coupled"
        )
    else:
        missing = (
            f"no gripper found: below '{chain.tip}' nothing opens and closes, and no link is named"
            " after a suction cup; mount one by 'tmkit new robot --hand' (parallel_gripper,"
            " suction_cup, a file), or choose an arm by --tip"
        )
    if not missing:
        inferred.append(_direction(scene, chain.tip, tool))
    arm = Manipulator(
        name,
        chain.base,
        chain.tip,
        tool,
        chain.joints,
        _ready(scene, chain, {}, seed),
        gripper_kind="suction",
        contact_links=hands.cup_frames(scene, cup, tool),
    )
    return InferredArm(scene, arm, tuple(inferred), missing, confidence="medium" if called else "")


def _fits(scene: SceneGraph, frame: str, tip: str, inferred: Pose) -> bool:
    """Whether a frame stands where the tool should: 4 cm along z and 2 cm across, axes within 25 degrees."""
    pose = inferred.inverse() @ scene.pose(frame, relative_to=tip, q=scene.configuration({}))
    x, y, z = pose.translation
    turn = pose.rotation
    return bool(
        abs(z) < 0.04 and math.hypot(x, y) < 0.02 and turn[2, 2] > 0.9 and abs(turn[1, 1]) > 0.9
    )


def _direction(scene: SceneGraph, tip: str, tool: str) -> str:
    """Say which way the tool looks, in the axes of the tip."""
    z = np.asarray(scene.pose(tool, relative_to=tip, q=scene.configuration({})).rotation)[:, 2]
    axis = int(np.argmax(np.abs(z)))
    way = (
        f"{'+' if z[axis] > 0 else '-'}{'xyz'[axis]}"
        if abs(z[axis]) > 0.99
        else str(np.round(z, 2).tolist())
    )
    return f"tool z, which must point away from the hand, points along {way} of '{tip}'"


def _new_name(scene: SceneGraph, wanted: str) -> str:
    names = (wanted, *(f"{wanted}{number}" for number in range(2, len(scene) + 3)))
    return next(name for name in names if name not in scene)


def _ready(
    scene: SceneGraph, chain: JointChain, opened: Mapping[str, float], seed: int
) -> dict[str, float]:
    """Return a collision-free configuration of the arm near the middle of the joint limits, with the hand open."""
    limits = np.asarray(scene.joint_limits, dtype=np.float64).reshape(-1, 2)
    middle = np.where(np.isfinite(limits).all(axis=1, keepdims=True), limits, 0.0).mean(axis=1)
    middle = np.clip(middle, limits[:, 0], limits[:, 1])
    moving = [scene.joint_names.index(joint) for joint in chain.joints]
    others = np.tile(scene.configuration(opened), (_TRIES, 1))
    drawn = random_configurations(scene, _TRIES, seed=seed)
    nearest = np.argsort(norms((drawn - middle)[:, moving]), kind="stable")
    others[:, moving] = np.vstack([middle, drawn[nearest]])[:_TRIES][:, moving]
    rounded = np.clip(np.round(others, 6), limits[:, 0], limits[:, 1])
    free = ~CollisionWorld(scene).in_collision_batch(rounded)
    chosen = rounded[int(np.argmax(free))]  # the middle itself when none is free
    return {joint: float(chosen[entry]) for joint, entry in zip(chain.joints, moving, strict=True)}
