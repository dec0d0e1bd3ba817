"""Arms of robots that have an SRDF file or a MoveIt configuration package.

The SRDF defines the arm: group, base, end effector and named postures. The hand is inferred from
its shapes, as for any robot (:mod:`tmkit.robots.infer_arm`), since an SRDF has neither its tool
frame nor its widths. The package adds accelerations and the names of controllers. ::

    arm = find_srdf_arm(configuration.semantics, scene)          # or group="left_arm"
    inferred = infer_arm(scene, base=arm.base, tip=arm.tip)
    inferred = with_configuration(inferred, arm, configuration)

Without a choice of the user, the arm is the group with the only end effector, or with the only
solver of inverse kinematics. Of nested groups, such as an arm with and without a torso, it is the
smallest with six joints or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from itertools import pairwise

from tmkit._core import CollisionWorld
from tmkit.errors import RobotError
from tmkit.formats.moveit.configuration import MoveItConfiguration
from tmkit.formats.srdf.values import RobotSemantics, group_members
from tmkit.graph import SceneGraph
from tmkit.robots.infer_arm import InferredArm
from tmkit.robots.srdf_arms import SrdfArm, arm_groups, srdf_arm

_SIX_JOINTS = 6
"""Number of joints with which a hand reaches any pose."""


def find_srdf_arm(
    semantics: RobotSemantics,
    scene: SceneGraph,
    *,
    group: str | None = None,
    end_effector: str | None = None,
    solved_groups: Sequence[str] = (),
) -> SrdfArm:
    """Return the arm of an SRDF file.

    Args:
        semantics: content of the file.
        scene: scene with the robot.
        group: group of the arm. Defaults to the only one, as the module describes.
        end_effector: end effector of the arm. Required if it carries several.
        solved_groups: groups with a solver of inverse kinematics.

    Raises:
        RobotError: if several groups or end effectors are possible, or the scene lacks a name.
        UnknownNameError: if a group or end effector is unknown. The error lists all names.
    """
    if group is None and end_effector is None:
        group = _default_group(semantics, scene, solved_groups)
    try:
        arm = srdf_arm(semantics, scene, group=group, end_effector=end_effector)
    except RobotError as error:
        if "say which" not in error.message:
            raise
        reason = f"{error.data['reason']}; choose one by --group GROUP or GROUP:END_EFFECTOR"
        raise RobotError.at(semantics.source, reason) from None
    return replace(arm, tip=_tip_with_hand(scene, arm))


def _default_group(
    semantics: RobotSemantics, scene: SceneGraph, solved_groups: Sequence[str]
) -> str | None:
    """Return the group of nested or solved groups that is the arm, or None."""
    names = arm_groups(semantics, scene)
    solved = [name for name in names if name in solved_groups]
    joints = {
        name: [
            joint
            for joint in group_members(semantics, scene, group=name).joints
            if joint not in semantics.passive_joints
        ]
        for name in solved or names
    }
    groups = sorted(joints, key=lambda name: len(joints[name]))
    is_nested = all(
        set(joints[small]) <= set(joints[large])
        and _last(scene, joints[small]) == _last(scene, joints[large])
        for small, large in pairwise(groups)
    )
    if not groups or not is_nested:
        return None
    return next((name for name in groups if len(joints[name]) >= _SIX_JOINTS), groups[-1])


def _last(scene: SceneGraph, joints: Sequence[str]) -> str:
    """Return the joint that is farthest from the root."""
    return max(joints, key=lambda joint: len(scene.ancestors(scene.joint_frame(joint))))


def _tip_with_hand(scene: SceneGraph, arm: SrdfArm) -> str:
    """Return the tip of an arm, or the last joint's frame if only that carries a hand.

    Some files have a tool frame as the tip, beside the hand.
    """
    last = scene.joint_frame(arm.joints[-1])
    moving = [frame for frame in scene.subtree(last) if scene.joint(frame).type != "fixed"]
    below_tip = set(scene.subtree(arm.tip))
    has_hand = any(frame != last for frame in moving)
    return last if has_hand and below_tip.isdisjoint(moving) else arm.tip


def with_configuration(
    inferred: InferredArm, arm: SrdfArm, configuration: MoveItConfiguration
) -> InferredArm:
    """Return an inferred arm with the joints, posture and limits of a configuration.

    The ready posture is the first state without a collision of the arm, or the first state. Without
    a state, it stays as inferred.

    Args:
        inferred: arm that was inferred between the base and the tip of ``arm``.
        arm: arm of the SRDF file.
        configuration: package, or the SRDF file alone.
    """
    robot, scene = inferred.robot, inferred.scene
    source = configuration.semantics.source.rpartition("/")[2].removesuffix(" (expanded)")
    lines = [f"arm: {len(arm.joints)} joints from '{arm.base}' to '{arm.tip}', group '{arm.group}'"]
    lines[0] += f" of {source}"
    lines += inferred.inferred[1:]
    ready = {joint: robot.ready[joint] for joint in arm.joints if joint in robot.ready}
    state = _free_state(scene, arm, robot.gripper_open)
    if state is not None:
        ready = dict(arm.states[state])
        lines.append(f"ready: the state '{state}' of {source}")
    accelerations = {
        joint: limits.acceleration
        for joint, limits in configuration.limits.items()
        if joint in arm.joints and limits.acceleration is not None
    }
    if accelerations:
        lines.append(f"accelerations: those of {_count(accelerations)} in joint_limits.yaml")
    lines += [
        f"controller: '{name}' of {_count(joints)}"
        for name, joints in configuration.controllers.items()
    ]
    if set(ready) != set(arm.joints):  # the inferred chain has fewer joints
        return replace(inferred, inferred=tuple(lines))
    robot = replace(robot, joints=arm.joints, ready=ready, acceleration=accelerations)
    return replace(inferred, robot=robot, inferred=tuple(lines))


def _count(joints: Sized) -> str:
    """Return a number of joints with the noun."""
    return f"{len(joints)} joint{'' if len(joints) == 1 else 's'}"


def _free_state(scene: SceneGraph, arm: SrdfArm, open_values: Mapping[str, float]) -> str | None:
    """Return the first state without a collision of the arm, or the first state, or None."""
    moving = {frame for joint in arm.joints for frame in scene.subtree(scene.joint_frame(joint))}
    world = CollisionWorld(scene)
    for name, values in arm.states.items():
        contacts = world.contacts(scene.configuration({**values, **open_values}))
        if not any(moving & {contact.frame_a, contact.frame_b} for contact in contacts):
            return name
    return next(iter(arm.states), None)
