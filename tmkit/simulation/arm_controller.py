"""Controller of one arm during the execution of a plan: commands, held object and tracking error.

Several arms share one simulation and one commanded configuration. Each arm reads and writes its own
entries of it. Fingers close fully on an object, with the robot's grip force, and a suction cup
switches its vacuum on. An arm that does not act keeps its object.

Invariant: an entry of the commanded configuration belongs to one arm at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import SceneGraph
from tmkit.robots import Manipulator
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.suction import SuctionCup
from tmkit.spatial import Pose

_CONTACT_RENEWAL_ANGLE = 0.02
"""Rotation of the hand after which the contacts of its fingers are renewed [rad]."""

_CONSTRAINT_FINGER_FORCE = 5.0
"""Force of the fingers around an object that a constraint holds [N]."""


class ArmController:
    """Controller of an arm in a simulation.

    Args:
        simulation: simulation with the arm.
        scene: first scene of the plan.
        robot: arm and gripper.
        q: (n_joints,) commanded configuration, which all arms share.
        by_constraint: whether objects are fixed to the hand instead of held by contact.
    """

    def __init__(
        self,
        simulation: Simulation,
        scene: SceneGraph,
        robot: Manipulator,
        *,
        q: NDArray[np.float64],
        by_constraint: bool,
    ) -> None:
        self.robot = robot
        self.entries = robot.joint_indices(scene)
        self.speeds = robot.velocity_limits(scene)
        self.accelerations = robot.acceleration_limits(scene)
        self.holding: str | None = None
        by_suction = robot.gripper_kind == "suction" and not by_constraint
        self.cup = SuctionCup(simulation, robot) if by_suction else None
        self._simulation = simulation
        self._by_constraint = by_constraint
        self._q = q
        self._fingers = {name: scene.joint_names.index(name) for name in robot.gripper_joints}
        limits = scene.velocity_limits  # of the joint and those that mimic it; 0 for no limit
        self._finger_speeds = {
            name: float(limits[entry]) or math.inf for name, entry in self._fingers.items()
        }
        self.finger_goal = {name: float(q[entry]) for name, entry in self._fingers.items()}
        self.tracking = np.zeros(len(self.entries))
        # Pose of the hand at the last renewal of contacts.
        self._contact_pose: Pose | None = None

    @property
    def position(self) -> NDArray[np.float64]:
        """(n_arm,) commanded joint positions of the arm [rad or m]."""
        return self._q[self.entries].copy()

    def fingers(self) -> NDArray[np.float64]:
        """Return the simulated positions (n_fingers,) of the finger joints [rad or m]."""
        return self._simulation.q[list(self._fingers.values())]

    def soften_contacts(self, names: Sequence[str]) -> None:
        """Disable contacts of a suction cup with these objects."""
        if self.cup is not None:
            self.cup.soften_contacts(list(names))

    def set_finger_goals(self, values: Mapping[str, float]) -> None:
        """Set the goals of some finger joints [rad or m]."""
        self.finger_goal.update(values)

    def command_fingers(self) -> None:
        """Advance the commanded finger positions by one time step, and send them to the motors."""
        if not self._fingers:
            return
        settings = self._simulation.settings
        for name, entry in self._fingers.items():
            speed = settings.gripper_speed / self.robot.finger_lever(name)
            max_change = settings.time_step * min(speed, self._finger_speeds[name])
            error = self.finger_goal[name] - self._q[entry]
            self._q[entry] += math.copysign(min(abs(error), max_change), error)
        is_fixed = self._by_constraint and self.holding is not None
        force = _CONSTRAINT_FINGER_FORCE if is_fixed else self.robot.grip_force
        self._simulation.command_fingers(self._q, force=force, arm=self.robot.name)

    def take(self, name: str) -> str | None:
        """Hold an object or handle in the closed hand. Return the fault of the grasp, if any."""
        self.holding = name
        if self._by_constraint:
            self._simulation.attach(name, self.robot.tip)
        return None if self.cup is None else self.cup.take(name)

    def renew_contacts(self) -> None:
        """Renew the contacts of the fingers if the hand has rotated since the last renewal."""
        if self.holding is None or not self._fingers or self._by_constraint:
            self._contact_pose = None
            return
        hand = self._simulation.pose(self.robot.tip)
        if self._must_renew_contacts(hand):
            self._simulation.renew_contacts(self.holding, self.robot.contact_links)
            self._contact_pose = hand

    def _must_renew_contacts(self, hand: Pose) -> bool:
        """Return whether the hand has rotated since the last renewal of contacts."""
        if self._contact_pose is None:
            return True
        _, angle = self._contact_pose.distance(hand)
        return bool(angle > _CONTACT_RENEWAL_ANGLE)

    def release(self, name: str) -> None:
        """Release an object before the hand opens."""
        self._contact_pose = None
        self.renew_contacts()
        if self.cup is not None:
            self.cup.release()
        self._simulation.detach(name, self.robot.tip)
        self.holding = None
        for entry, value in zip(self._fingers.values(), self.fingers(), strict=True):
            # Start from the actual positions, because the commanded ones are fully closed.
            self._q[entry] = value

    def observe(self, joints: NDArray[np.float64]) -> tuple[str, float]:
        """Record the tracking errors at simulated positions (n_joints,), and return the largest.

        Returns:
            The joint with the largest error, and the error [rad or m].
        """
        errors = np.abs(joints[self.entries] - self._q[self.entries])
        self.tracking = np.maximum(self.tracking, errors)
        worst = int(np.argmax(errors))
        return self.robot.joints[worst], float(errors[worst])
