"""Operate action: an arm moves a drawer or door by its handle.

The arm approaches the handle straight along the tool's z axis and closes its hand. Then the
mechanism's joint moves to its goal value while the tool keeps its pose relative to the handle.
Inverse kinematics closes the chain at small steps of the joint, each from the configuration of the
step before. A step is halved if the straight line in joint space between its ends deviates too far.
At the end the hand opens and retreats straight backwards.

No frame changes its parent: the objects in a drawer are its children and move with it. The joint's
value is part of the configuration, for planner, plan validator and plan files.

Invariants: as for :class:`tmkit.manipulation.ArmMotionPlanner`; along the path the tool deviates
from its pose at the handle by less than half of the validator's tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from tmkit._support.argument_errors import check_argument
from tmkit.errors import ConfigurationError
from tmkit.manipulation.actions.basic_motions import ActionMotion, gripper_failure, refine_contacts
from tmkit.manipulation.actions.candidates import ActionContext, BuiltInCandidate
from tmkit.manipulation.actions.hand_state import empty_hand_failure
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.manipulation.actions.primitives import LARGEST_JOINT_STEP, CollisionContext, NearPairs
from tmkit.manipulation.grasps.sampling import Grasp, grasp_contact_faults
from tmkit.motion import IkSettings, InverseKinematicsStatus, inverse_kinematics
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.values import Configuration, SegmentKind
from tmkit.robots.mechanisms import CLOSURE_ANGLE, CLOSURE_DISTANCE, mechanism_joint, moved_frames
from tmkit.spatial import Pose

_PRISMATIC_STEP = 0.005
"""Largest step of a prismatic joint between two configurations [m]."""

_REVOLUTE_STEP = 0.02
"""Largest step of a revolute joint between two configurations [rad]."""

_MAX_HALVINGS = 6
"""Maximum number of halvings of a step whose midpoint deviates."""

_POSITION_TOLERANCE = 1e-6
"""Position tolerance of inverse kinematics at each step [m]."""

_ROTATION_TOLERANCE = 1e-6
"""Rotation tolerance of inverse kinematics at each step [rad]."""

_GOAL_TOLERANCE = 1e-6
"""Distance of the joint from its goal value at which no motion is needed [m or rad]."""


@dataclass(frozen=True)
class OperateJoint(BuiltInCandidate):
    """Move a drawer or a door by its handle.

    Attributes:
        handle: frame of the handle, rigidly fixed to the frame on the joint.
        to: goal value of the joint [m or rad].
        grasp: grasp of the handle.
        joint: name of the joint. Defaults to the joint that moves the handle.
        arm: name of the arm. Defaults to the first arm.

    Raises:
        ConfigurationError: if the handle does not belong to the joint, when refined.
    """

    handle: str
    to: float
    grasp: Grasp
    joint: str | None = None
    arm: str | None = None

    def __post_init__(self) -> None:
        check_argument(self.grasp, Grasp, "grasp", function="OperateJoint")

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        joint = mechanism_joint(context.scene, self.handle, arms=arm.primitives.rules.arms)
        if joint is None or self.joint not in (None, joint):
            expected = "any joint but an arm's" if self.joint is None else f"joint '{self.joint}'"
            raise ConfigurationError(
                f"'{self.handle}' is not a handle of {expected}", joint=self.joint
            )
        operation = _Operation(self, arm, context, joint, seed)
        return operation.attempts()


class _Operation:
    """Motion planner of one operation of a drawer or door."""

    def __init__(
        self,
        candidate: OperateJoint,
        arm: ArmMotionPlanner,
        context: ActionContext,
        joint: str,
        seed: int,
    ) -> None:
        self.candidate, self.arm = candidate, arm
        self.joint, self.seed = joint, seed
        self.scene, self.q = context.scene, context.q
        self.entry = self.scene.joint_names.index(joint)

    def attempts(self) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions, and the failures of other attempts."""
        if self.arm.robot.gripper_kind == "none":
            yield gripper_failure(self.arm.robot)
            return
        fault = self._fault()
        if fault is not None:
            yield fault
            return
        scene, primitives, handle = self.scene, self.arm.primitives, self.candidate.handle
        q_open = scene.configuration(
            self.arm.robot.open_finger_values(self.candidate.grasp.opening), base=self.q
        )
        near_pairs = (*primitives.near_pairs(scene, self.q), *self._near_pairs_at_goal())
        phase = primitives.phase(scene, near_pairs, contact_object=handle)
        target = (
            scene.pose(handle, relative_to=scene.root(handle), q=self.q)
            @ self.candidate.grasp.object_from_tool
        )
        contacts = primitives.contacts(
            phase, target, q=q_open, seed=self.seed, label="reaching the handle"
        )
        yield from refine_contacts(contacts, partial(self._operate, phase, near_pairs, q_open))

    def _fault(self) -> MotionFailure | None:
        """Return the failure if the goal value is infeasible or the hand is not empty, or None."""
        to, phase = self.candidate.to, f"moving '{self.joint}'"
        lower, upper = self.scene.joint_limits[self.entry]
        if not lower <= to <= upper:
            cause = f"{to:.6g} is outside its limits from {lower:.6g} to {upper:.6g}"
            return MotionFailure(phase, cause, is_proved=True, kind=FailureKind.JOINT_LIMIT)
        if abs(to - float(self.q[self.entry])) <= _GOAL_TOLERANCE:
            return MotionFailure(phase, f"it is at {to:.6g} already", kind=FailureKind.NO_CHOICE)
        moving_frames = {*self.scene.subtree(self.scene.joint_frame(self.joint))}
        for contact in self.arm.primitives.rules.start_overlaps:
            if {contact.frame_a, contact.frame_b} & moving_frames:
                pair = (contact.frame_a, contact.frame_b)
                cause = f"'{pair[0]}' and '{pair[1]}' overlap at the start"
                return MotionFailure(
                    phase, cause, (pair,), is_proved=True, kind=FailureKind.COLLISION
                )
        arm, handle = self.arm.robot, self.candidate.handle
        return empty_hand_failure(self.scene, arm, frame=handle, phase=phase)

    def _near_pairs_at_goal(self) -> NearPairs:
        """Return the pairs of the mechanism with a fixed frame within the margin at the goal value.

        A closed door and its frame are such a pair.
        """
        primitives, scene = self.arm.primitives, self.scene
        q_goal = np.array(self.q)
        q_goal[self.entry] = self.candidate.to
        mechanism_frames = {*scene.subtree(scene.joint_frame(self.joint))}
        arm_frames = moved_frames(scene, *primitives.rules.arms)
        return tuple(
            pair
            for pair in primitives.rules.near_pairs(scene, q_goal, margin=PLANNING_MARGIN)
            for a, b in [(pair.frame_a, pair.frame_b)]
            if (a in mechanism_frames) != (b in mechanism_frames) and not {a, b} & arm_frames
        )

    def _operate(
        self,
        phase: CollisionContext,
        near_pairs: NearPairs,
        q_open: Configuration,
        q_grasp: Configuration,
    ) -> ActionMotion:
        """Return the motion through one configuration at the handle.

        Args:
            phase: scene and collision rules in which the hand may touch the handle.
            near_pairs: pairs that are exempt from the planning margin.
            q_open: (n_joints,) configuration before, with the fingers open.
            q_grasp: (n_joints,) configuration at the handle.

        Raises:
            PrimitiveFailedError: if a part of the motion is infeasible.
        """
        arm, primitives = self.arm.robot, self.arm.primitives
        scene, handle = self.scene, self.candidate.handle

        # Close the fingers on the handle.
        q_held = scene.configuration(arm.finger_values(self.candidate.grasp.width), base=q_grasp)
        faults = grasp_contact_faults(scene, q_held, arm, object=handle)
        if faults:
            raise PrimitiveFailedError("grasp", faults[0], kind=FailureKind.GRIP)

        # Compute the lines and the motion of the mechanism.
        approach = primitives.tool_line(phase, q_grasp, label="approach")
        primitives.require_free_fingers(phase, q_grasp, q_held, label="grasp")
        path = self._mechanism_path(phase, q_held)
        q_released = self.arm.open_fingers(phase, path[-1], handle)
        retreat = primitives.tool_line(phase, q_released, label="retreat")

        # Search the path to the approach.
        transit_phase = primitives.phase(scene, near_pairs)
        primitives.require_free_fingers(transit_phase, self.q, q_open, label="opening the hand")
        transit = primitives.plan_path(
            transit_phase, q_open, approach[-1][None], seed=self.seed, label="transit"
        )
        primitives.require_torque_limits(
            transit_phase, transit, approach, path, retreat, label="transit"
        )

        # Collect the segments in order of execution.
        joint = self.joint
        segment = partial(self.arm.segment, held=handle, phase=phase)
        segments = (
            self.arm.segment(
                SegmentKind.TRANSIT, transit, q=q_open, held=None, phase=transit_phase
            ),
            segment(SegmentKind.APPROACH, approach[::-1], q=q_open),
            segment(SegmentKind.GRASP, q_grasp[None], q=q_held),
            segment(SegmentKind.OPERATE, path, q=q_held, mechanism=joint),
            segment(SegmentKind.RELEASE, path[-1][None], q=q_released),
            segment(SegmentKind.RETREAT, retreat, q=q_released),
        )
        choice = f"{joint} to {self.candidate.to:.3f}, grasp {self.candidate.grasp.name}"
        return ActionMotion(segments, scene, retreat[-1], choice)

    def _mechanism_path(self, phase: CollisionContext, start: Configuration) -> Configuration:
        """Return the path of the joint to its goal value, with the handle in the hand.

        Args:
            phase: scene and collision rules of the path.
            start: (n_joints,) configuration with the fingers closed on the handle.

        Returns:
            (k, n_joints) path.

        Raises:
            PrimitiveFailedError: if the arm cannot follow the handle, or the path collides.
        """
        scene, tool, handle = self.scene, self.arm.robot.tool, self.candidate.handle
        handle_from_tool = scene.pose(tool, relative_to=handle, q=start)
        is_prismatic = scene.joint(scene.joint_frame(self.joint)).type == "prismatic"
        length = abs(self.candidate.to - float(start[self.entry]))
        count = max(1, math.ceil(length / (_PRISMATIC_STEP if is_prismatic else _REVOLUTE_STEP)))
        rows = [start]
        for value in np.linspace(float(start[self.entry]), self.candidate.to, count + 1)[1:]:
            rows += self._step(rows[-1], float(value), handle_from_tool, _MAX_HALVINGS)
        path: Configuration = np.array(rows)
        self.arm.primitives.require_valid_path(phase, path, label="moving the handle")
        return path

    def _step(
        self, start: Configuration, value: float, handle_from_tool: Pose, halvings: int
    ) -> list[Configuration]:
        """Return configurations up to a value of the joint, with little deviation of the tool.

        Args:
            start: (n_joints,) configuration before the step.
            value: value of the joint after the step [m or rad].
            handle_from_tool: pose of the tool relative to the handle.
            halvings: maximum number of halvings of the step.

        Raises:
            PrimitiveFailedError: if the arm cannot follow the handle.
        """
        scene, arm, handle = self.scene, self.arm.robot, self.candidate.handle
        q = np.array(start)
        q[self.entry] = value
        result = inverse_kinematics(
            scene,
            arm.tool,
            target_pose=scene.pose(handle, relative_to=scene.root(handle), q=q) @ handle_from_tool,
            joints=arm.joints,
            q=q,
            settings=IkSettings(
                restarts=0,
                position_tolerance=_POSITION_TOLERANCE,
                rotation_tolerance=_ROTATION_TOLERANCE,
            ),
        )
        if result.status is not InverseKinematicsStatus.SOLVED:
            raise PrimitiveFailedError(
                "moving the handle", "the arm cannot follow it", kind=FailureKind.STRAIGHT_LINE
            )
        end = np.array(result.q)
        if np.max(np.abs(end - start)) > LARGEST_JOINT_STEP:
            cause = "the arm would jump to another configuration"
            raise PrimitiveFailedError("moving the handle", cause, kind=FailureKind.STRAIGHT_LINE)
        midpoint = scene.pose(arm.tool, relative_to=handle, q=(start + end) / 2)
        distance, angle = handle_from_tool.distance(midpoint)
        if distance < CLOSURE_DISTANCE / 4 and angle < CLOSURE_ANGLE / 4:
            return [end]
        if halvings == 0:
            raise PrimitiveFailedError(
                "moving the handle", "the arm cannot follow it", kind=FailureKind.STRAIGHT_LINE
            )
        half = (float(start[self.entry]) + value) / 2
        first = self._step(start, half, handle_from_tool, halvings - 1)
        return [*first, *self._step(first[-1], value, handle_from_tool, halvings - 1)]
