"""Operating a mechanism: the hand takes a handle and moves a drawer or door by it.

The arm approaches the handle straight along the tool's z axis and closes its hand. Then the
mechanism's joint goes from its value to the wanted one while the tool keeps its pose relative to
the handle. Inverse kinematics closes the chain at small steps of the joint, each from the
configuration of the last one. Where the straight line in joint space between two steps strays, a
step is put between. At the end the hand opens and leaves straight backwards.

Nothing changes its parent: the objects in a drawer are its children and move along. The joint's
value is in the configuration, where planner, checker and plan files find it.

Invariants: as for :class:`tmkit.manipulation.ArmMotionPlanner`; along the path the tool strays from
its place at the handle by less than half of what the checker allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from tmkit.errors import ConfigurationError
from tmkit.manipulation.actions.candidates import ActionContext, BuiltInCandidate
from tmkit.manipulation.actions.pick_place import ActionMotion, ArmMotionPlanner, motions_at
from tmkit.manipulation.actions.primitives import LARGEST_JOINT_STEP, CollisionContext, FramePairs
from tmkit.manipulation.grasps.sampling import Grasp, grasp_contact_faults
from tmkit.motion import IkSettings, InverseKinematicsStatus, inverse_kinematics
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.values import Configuration, SegmentKind
from tmkit.robots.mechanisms import CLOSURE_ANGLE, CLOSURE_DISTANCE, mechanism_joint, moved_frames
from tmkit.spatial import Pose

_SLIDE_STEP, _TURN_STEP = 0.005, 0.02  # metres and radians of the joint between steps, at most
_HALVINGS = 6  # of a step whose middle strays
# metres and radians of inverse kinematics at each step
_POSITION_TOLERANCE, _ROTATION_TOLERANCE = 1e-6, 1e-6
_THERE = 1e-6  # metres or radians from the wanted value at which there is nothing to do


@dataclass(frozen=True)
class OperateJoint(BuiltInCandidate):
    """Move a drawer or a door by its handle.

    Attributes:
        handle: frame of the handle, rigidly joined to the frame on the joint.
        to: where the joint is to go, metres or radians.
        grasp: how to hold the handle.
        joint: the joint; by default the one that carries the handle.
        arm: name of the arm; the first by default.

    Raises:
        ConfigurationError: when refined, the handle is none of the joint.
    """

    handle: str
    to: float
    grasp: Grasp
    joint: str | None = None
    arm: str | None = None

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        carrying = mechanism_joint(context.scene, self.handle, arms=arm.primitives.rules.arms)
        if carrying is None or self.joint not in (None, carrying):
            wanted = f"joint '{self.joint}'" if self.joint is not None else "any joint but an arm's"
            raise ConfigurationError(f"'{self.handle}' is no handle of {wanted}", joint=self.joint)
        operation = _Operation(self, arm, context, carrying, seed)
        return operation.attempts()


class _Operation:
    """One drawer or door being moved."""

    def __init__(
        self,
        candidate: OperateJoint,
        arm: ArmMotionPlanner,
        context: ActionContext,
        joint: str,
        seed: int,
    ) -> None:
        self.candidate, self.arm, self.joint, self.seed = candidate, arm, joint, seed
        self.scene, self.q = context.scene, context.q
        self.entry = self.scene.joint_names.index(joint)

    def attempts(self) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions and failures."""
        fault = self._fault()
        if fault is not None:
            yield fault
            return
        scene, primitives, handle = self.scene, self.arm.primitives, self.candidate.handle
        q_open = scene.configuration(
            self.arm.manipulator.opened(self.candidate.grasp.opening), base=self.q
        )
        near = (*primitives.near_pairs(scene, self.q), *self._near_at_end())
        phase = primitives.phase(scene, near, contact_object=handle)
        target = (
            scene.pose(handle, relative_to=scene.root(handle), q=self.q)
            @ self.candidate.grasp.object_from_tool
        )
        contacts = primitives.contacts(
            phase, target, q=q_open, seed=self.seed, label="reaching the handle"
        )
        yield from motions_at(contacts, partial(self._operate, phase, near, q_open))

    def _fault(self) -> MotionFailure | None:
        """Return why the joint cannot go there, whatever the arm does."""
        to, phase = self.candidate.to, f"moving '{self.joint}'"
        lower, upper = self.scene.joint_limits[self.entry]
        if not lower <= to <= upper:
            cause = f"{to:.6g} is outside its limits from {lower:.6g} to {upper:.6g}"
            return MotionFailure(phase, cause, is_proved=True, kind=FailureKind.JOINT_LIMIT)
        if abs(to - float(self.q[self.entry])) <= _THERE:
            return MotionFailure(phase, f"it is at {to:.6g} already", kind=FailureKind.NO_CHOICE)
        moved = {*self.scene.subtree(self.scene.joint_frame(self.joint))}
        for parked in self.arm.primitives.rules.parked:
            if {parked.frame_a, parked.frame_b} & moved:
                pair = (parked.frame_a, parked.frame_b)
                cause = f"'{pair[0]}' and '{pair[1]}' overlap at the start"
                return MotionFailure(
                    phase, cause, (pair,), is_proved=True, kind=FailureKind.COLLISION
                )
        return None

    def _near_at_end(self) -> FramePairs:
        """Return what the mechanism comes near to where the joint goes, such as the frame of a closed door."""
        primitives, scene = self.arm.primitives, self.scene
        end = np.array(self.q)
        end[self.entry] = self.candidate.to
        moved, arms = (
            {*scene.subtree(scene.joint_frame(self.joint))},
            moved_frames(scene, *primitives.rules.arms),
        )
        return tuple(
            (a, b)
            for a, b in primitives.rules.near_pairs(scene, end, margin=PLANNING_MARGIN)
            if (a in moved) != (b in moved) and not {a, b} & arms
        )

    def _operate(
        self,
        phase: CollisionContext,
        near: FramePairs,
        q_open: Configuration,
        q_grasp: Configuration,
    ) -> ActionMotion:
        arm, primitives, scene, handle = (
            self.arm.manipulator,
            self.arm.primitives,
            self.scene,
            self.candidate.handle,
        )
        q_held = scene.configuration(arm.finger_values(self.candidate.grasp.width), base=q_grasp)
        faults = grasp_contact_faults(scene, q_held, arm, object=handle)
        if faults:
            raise PrimitiveFailedError("grasp", faults[0], kind=FailureKind.GRIP)
        away = primitives.tool_line(phase, q_grasp, label="approach")
        primitives.require_free_fingers(phase, q_grasp, q_held, label="grasp")
        moved = self._moved(phase, q_held)
        q_let = self.arm.released(phase, moved[-1], handle)
        back = primitives.tool_line(phase, q_let, label="retreat")
        free = primitives.phase(scene, near)
        primitives.require_free_fingers(free, self.q, q_open, label="opening the hand")
        transit = primitives.plan_path(
            free, q_open, away[-1][None], seed=self.seed, label="transit"
        )
        primitives.require_torque_limits(free, transit, away, moved, back, label="transit")
        make, joint = self.arm.segment, self.joint
        segments = (
            make(SegmentKind.TRANSIT, transit, q=q_open, held=None, phase=free),
            make(SegmentKind.APPROACH, away[::-1], q=q_open, held=handle, phase=phase),
            make(SegmentKind.GRASP, q_grasp[None], q=q_held, held=handle, phase=phase),
            make(SegmentKind.OPERATE, moved, q=q_held, held=handle, phase=phase, mechanism=joint),
            make(SegmentKind.RELEASE, moved[-1][None], q=q_let, held=handle, phase=phase),
            make(SegmentKind.RETREAT, back, q=q_let, held=handle, phase=phase),
        )
        choice = f"{joint} to {self.candidate.to:.3f}, grasp {self.candidate.grasp.name}"
        return ActionMotion(segments, scene, back[-1], choice)

    def _moved(self, phase: CollisionContext, start: Configuration) -> Configuration:
        """Return the path (k, n_joints) along which the tool holds the handle and the joint goes to its value."""
        scene, tool, handle = self.scene, self.arm.manipulator.tool, self.candidate.handle
        handle_from_tool = scene.pose(tool, relative_to=handle, q=start)
        slides = scene.joint(scene.joint_frame(self.joint)).type == "prismatic"
        length = abs(self.candidate.to - float(start[self.entry]))
        count = max(1, math.ceil(length / (_SLIDE_STEP if slides else _TURN_STEP)))
        rows = [start]
        for value in np.linspace(float(start[self.entry]), self.candidate.to, count + 1)[1:]:
            rows += self._bridge(rows[-1], float(value), handle_from_tool, _HALVINGS)
        path: Configuration = np.array(rows)
        self.arm.primitives.require_valid_path(phase, path, label="moving the handle")
        return path

    def _bridge(
        self, before: Configuration, value: float, handle_from_tool: Pose, halvings: int
    ) -> list[Configuration]:
        """Return configurations from ``before`` to a value of the joint, so close that the tool does not stray."""
        scene, arm, handle = self.scene, self.arm.manipulator, self.candidate.handle
        at = np.array(before)
        at[self.entry] = value
        found = inverse_kinematics(
            scene,
            arm.tool,
            target_pose=scene.pose(handle, relative_to=scene.root(handle), q=at) @ handle_from_tool,
            joints=arm.joints,
            q=at,
            settings=IkSettings(
                restarts=0,
                position_tolerance=_POSITION_TOLERANCE,
                rotation_tolerance=_ROTATION_TOLERANCE,
            ),
        )
        if found.status is not InverseKinematicsStatus.SOLVED:
            raise PrimitiveFailedError(
                "moving the handle", "the arm cannot follow it", kind=FailureKind.STRAIGHT_LINE
            )
        after = np.array(found.q)
        if np.max(np.abs(after - before)) > LARGEST_JOINT_STEP:
            cause = "the arm would jump to another configuration"
            raise PrimitiveFailedError("moving the handle", cause, kind=FailureKind.STRAIGHT_LINE)
        middle = scene.pose(arm.tool, relative_to=handle, q=(before + after) / 2)
        metres, radians = handle_from_tool.distance(middle)
        if metres < CLOSURE_DISTANCE / 4 and radians < CLOSURE_ANGLE / 4:
            return [after]
        if halvings == 0:
            raise PrimitiveFailedError(
                "moving the handle", "the arm cannot follow it", kind=FailureKind.STRAIGHT_LINE
            )
        half = (float(before[self.entry]) + value) / 2
        first = self._bridge(before, half, handle_from_tool, halvings - 1)
        return [*first, *self._bridge(first[-1], value, handle_from_tool, halvings - 1)]
