"""Suction cup under physics: a rigid constraint that exists while the vacuum carries the load.

A real cup is soft, and a simulated one is rigid: 0.1 mm of penetration would cause hundreds of
N. Hence the cup does not collide with the object that it handles. The cup holds an object if
every point of the rim is at its surface, within the hand's ``contact_tolerance``.

A rigid constraint joins the two. Its load, smoothed over 10 ms, is compared with the capacity of
the vacuum (:mod:`tmkit.manipulation.grasps.holding`). A pushed cup yields: the constraint is made
again at the current pose of the object.

Invariants: the cup holds only sealed objects. A released object is held again only after another
    grasp.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tmkit.manipulation.grasps.holding import vacuum_overload
from tmkit.manipulation.grasps.sampling import cup_rim
from tmkit.robots import Manipulator
from tmkit.simulation.engines.pybullet.world import Simulation

_PROBE_RANGE = 0.02
"""Range of distance queries between rim and object [m]."""

_LOAD_TIME_CONSTANT = 0.01
"""Time constant of the low-pass filter of the load [s]."""


class SuctionCup:
    """Cup of a suction gripper in a simulation.

    Args:
        simulation: simulation with the robot.
        robot: arm with the suction gripper.
    """

    def __init__(self, simulation: Simulation, robot: Manipulator) -> None:
        self._simulation = simulation
        self._robot = robot
        self._rim = cup_rim(simulation.scene, robot)
        self._radius = float(np.max(np.linalg.norm(self._rim[:, :2], axis=1)))
        self._soft_objects: list[str] = []
        self._held: str | None = None
        self._load = np.zeros(6)
        self._filter_gain = min(1.0, simulation.settings.time_step / _LOAD_TIME_CONSTANT)

    @property
    def held(self) -> str | None:
        """Object in the cup, or None."""
        return self._held

    def soften_contacts(self, names: list[str]) -> None:
        """Disable contacts of the cup with some objects and the held one, and enable all others."""
        soft_objects = list(dict.fromkeys([*names, *([self._held] if self._held else [])]))
        for name in (*self._soft_objects, *soft_objects):
            if (name in soft_objects) != (name in self._soft_objects):
                self._simulation.set_contact(
                    name, self._robot.contact_links, enabled=name not in soft_objects
                )
        self._soft_objects = soft_objects

    def gap(self, name: str) -> float:
        """Return the largest distance of the rim from an object's surface, on either side [m]."""
        simulation, root_from_tool = self._simulation, self._simulation.pose(self._robot.tool)
        points = [root_from_tool.apply(point) for point in self._rim]
        return max(abs(simulation.distance_to(name, point, reach=_PROBE_RANGE)) for point in points)

    def take(self, name: str) -> str | None:
        """Switch the vacuum on. Return None if the rim seals on the object, else the fault."""
        gap = self.gap(name)
        if gap > self._robot.contact_tolerance:
            distance = (
                f"{1000.0 * gap:.1f} mm"
                if math.isfinite(gap)
                else f"more than {1000.0 * _PROBE_RANGE:.0f} mm"
            )
            return f"the cup does not seal on '{name}': its rim is {distance} off"
        self._simulation.attach(name, self._robot.tip)
        self._held, self._load = name, np.zeros(6)
        return None

    def release(self) -> None:
        """Switch the vacuum off."""
        if self._held is not None:
            self._simulation.detach(self._held, self._robot.tip)
            self._held = None

    def check_load(self) -> str | None:
        """Add the load of this time step, and release an object that is too heavy.

        Returns:
            The fault if the load exceeds the capacity of the vacuum, else None.
        """
        if self._held is None:
            return None
        self._load += self._filter_gain * (
            self._simulation.load(self._held, on=self._robot.tip, at=self._robot.tool) - self._load
        )
        if self._is_pushed():  # The new constraint starts without load.
            self._simulation.detach(self._held, self._robot.tip)
            self._simulation.attach(self._held, self._robot.tip)
            self._load = np.zeros(6)
            return None
        ratio, load_text = self._overload(self._load[3:])
        if ratio <= 1.0:
            return None
        name = self._held
        self.release()
        force = f"{self._robot.grip_force:.0f} N"
        return f"the cup lost '{name}': {load_text}, the vacuum pulls with {force}"

    def _overload(self, moment: NDArray[np.float64]) -> tuple[float, str]:
        """Return the ratio of load and capacity with a moment (3,) [N m], and its description."""
        return vacuum_overload(
            self._load[:3],
            moment,
            axis=self._axis(),
            vacuum=self._robot.grip_force,
            friction=self._simulation.settings.finger_friction,
            radius=self._radius,
        )

    def _is_pushed(self) -> bool:
        """Return whether the object is pushed so hard or eccentrically that a soft cup yields."""
        push = -float(self._load[:3] @ self._axis())
        if push <= 0.0 or self._overload(np.zeros(3))[0] > 1.0:
            return False
        return push > self._robot.grip_force or self._overload(self._load[3:])[0] > 1.0

    def _axis(self) -> NDArray[np.float64]:
        """Return the (3,) tool z axis relative to the root."""
        return np.asarray(self._simulation.pose(self._robot.tool).rotate([0.0, 0.0, 1.0]))
