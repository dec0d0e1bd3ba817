"""One arm of a plan that is being executed: what it is told, what its hand holds, how well it follows.

Several arms share one simulation and one commanded configuration; each reads and writes its own
entries of it. The hand closes all the way on what it grasps, with the robot's grip force; a suction
cup switches its vacuum on. An arm that does not act goes on holding what it holds.

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

_TURNED = 0.02  # radians that a hand may turn before the contacts of its fingers are found anew
_GENTLE_FORCE = 5.0  # newtons of fingers around an object that a constraint holds


class ArmPlayer:
    """One arm in a simulation.

    Args:
        scene: the plan's first scene.
        q: (n_joints,) the commanded configuration, which all arms share.
        by_constraint: whether objects are fixed to the hand instead of being held.
    """

    def __init__(
        self,
        simulation: Simulation,
        scene: SceneGraph,
        manipulator: Manipulator,
        *,
        q: NDArray[np.float64],
        by_constraint: bool,
    ) -> None:
        self.manipulator = manipulator
        self.entries = manipulator.joint_indices(scene)
        self.speeds = manipulator.velocity_limits(scene)
        self.accelerations = manipulator.acceleration_limits(scene)
        self.holding: str | None = None
        by_suction = manipulator.gripper_kind == "suction" and not by_constraint
        self.cup = SuctionCup(simulation, manipulator) if by_suction else None
        self._simulation = simulation
        self._by_constraint = by_constraint
        self._q = q
        self._fingers = {name: scene.joint_names.index(name) for name in manipulator.gripper_joints}
        self.finger_goal = {name: float(q[entry]) for name, entry in self._fingers.items()}
        self.tracking = np.zeros(len(self.entries))
        # where the hand was when the contacts of its fingers were found
        self._gripped_at: Pose | None = None

    @property
    def position(self) -> NDArray[np.float64]:
        """(n_arm,) where the arm is told to be, radians or metres."""
        return self._q[self.entries].copy()

    def fingers(self) -> NDArray[np.float64]:
        """Return where the finger joints are (n_fingers,), radians or metres."""
        return self._simulation.q[list(self._fingers.values())]

    def touch_softly(self, names: Sequence[str]) -> None:
        """Let a suction cup meet these objects without pushing them."""
        if self.cup is not None:
            self.cup.touch_softly(list(names))

    def aim_fingers(self, values: Mapping[str, float]) -> None:
        """Set the goals of finger joints [rad or m]; others keep theirs."""
        self.finger_goal.update(values)

    def command_fingers(self) -> None:
        """Move the commanded finger values towards their goal, at the speed of the hand, and tell the fingers."""
        if not self._fingers:
            return
        settings = self._simulation.settings
        for name, entry in self._fingers.items():
            reach = (
                settings.gripper_speed * settings.time_step / self.manipulator.finger_lever(name)
            )
            missing = self.finger_goal[name] - self._q[entry]
            self._q[entry] += math.copysign(min(abs(missing), reach), missing)
        gentle = self._by_constraint and self.holding is not None
        force = _GENTLE_FORCE if gentle else self.manipulator.grip_force
        self._simulation.command_fingers(self._q, force=force, arm=self.manipulator.name)

    def take(self, name: str) -> str | None:
        """Hold an object, or a handle, on which the hand has closed; return what is wrong with it, if anything is."""
        self.holding = name
        if self._by_constraint:
            self._simulation.attach(name, self.manipulator.tip)
        return None if self.cup is None else self.cup.take(name)

    def renew_grip(self) -> None:
        """Have the contacts of the fingers found anew when the hand has turned since they were."""
        if self.holding is None or not self._fingers or self._by_constraint:
            self._gripped_at = None
            return
        hand = self._simulation.pose(self.manipulator.tip)
        if self._gripped_at is None or self._gripped_at.distance(hand)[1] > _TURNED:
            self._simulation.renew_contacts(self.holding, self.manipulator.contact_links)
            self._gripped_at = hand

    def let_go(self, name: str) -> None:
        """Let go of what the hand holds, before it opens."""
        self._gripped_at = None
        self.renew_grip()
        if self.cup is not None:
            self.cup.let_go()
        self._simulation.detach(name, self.manipulator.tip)
        self.holding = None
        for entry, value in zip(self._fingers.values(), self.fingers(), strict=True):
            # they were told to close all the way: from there they would open too late
            self._q[entry] = value

    def observe(self, joints: NDArray[np.float64]) -> tuple[str, float]:
        """Return the joint that is furthest behind what it is told, when joints are at (n_joints,), and how far."""
        behind = np.abs(joints[self.entries] - self._q[self.entries])
        self.tracking = np.maximum(self.tracking, behind)
        worst = int(np.argmax(behind))
        return self.manipulator.joints[worst], float(behind[worst])
