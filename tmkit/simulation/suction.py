"""A suction cup under physics: it holds what its rim seals on, as long as the vacuum is strong enough.

A cup is soft and a simulated one is hard: a tenth of a millimetre would make it press with hundreds
of newtons. Hence the cup does not collide with the object that it handles. The object is held when
every point of the rim is at its surface, within the hand's ``contact_tolerance``. A rigid
constraint joins the two, whose load, smoothed over a hundredth of a second, is compared with what a
vacuum bears (:mod:`tmkit.manipulation.grasps.holding`). A cup that is pushed gives way: an object
that is set down a little too deep is held as it is then.

Invariants: nothing is held that is not sealed; what is let go is not taken again before the next
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

_PROBE_RANGE = 0.02  # metres beyond which no distance is asked for
_SMOOTHING = 0.01  # seconds


class SuctionCup:
    """The cup of a robot with a suction gripper in a simulation."""

    def __init__(self, simulation: Simulation, robot: Manipulator) -> None:
        self._simulation = simulation
        self._robot = robot
        self._rim = cup_rim(simulation.scene, robot)
        self._radius = float(np.max(np.linalg.norm(self._rim[:, :2], axis=1)))
        self._soft: list[str] = []
        self._held: str | None = None
        self._load = np.zeros(6)
        self._share = min(1.0, simulation.settings.time_step / _SMOOTHING)

    @property
    def held(self) -> str | None:
        """The object that the cup holds now."""
        return self._held

    def touch_softly(self, names: list[str]) -> None:
        """Let the cup meet these objects, and what it holds, without pushing them; others it collides with."""
        wanted = list(dict.fromkeys([*names, *([self._held] if self._held else [])]))
        for name in (*self._soft, *wanted):
            if (name in wanted) != (name in self._soft):
                self._simulation.set_contact(
                    name, self._robot.contact_links, enabled=name not in wanted
                )
        self._soft = wanted

    def gap(self, name: str) -> float:
        """Return the metres by which the rim is off an object's surface, or in it, where it is so most."""
        simulation, root_from_tool = self._simulation, self._simulation.pose(self._robot.tool)
        points = [root_from_tool.apply(point) for point in self._rim]
        return max(abs(simulation.distance_to(name, point, reach=_PROBE_RANGE)) for point in points)

    def take(self, name: str) -> str | None:
        """Switch the vacuum on: hold the object when the rim seals on it, else say why not."""
        gap = self.gap(name)
        if gap > self._robot.contact_tolerance:
            off = (
                f"{1000.0 * gap:.1f} mm"
                if math.isfinite(gap)
                else f"more than {1000.0 * _PROBE_RANGE:.0f} mm"
            )
            return f"the cup does not seal on '{name}': its rim is {off} off"
        self._simulation.attach(name, self._robot.tip)
        self._held, self._load = name, np.zeros(6)
        return None

    def let_go(self) -> None:
        """Switch the vacuum off."""
        if self._held is not None:
            self._simulation.detach(self._held, self._robot.tip)
            self._held = None

    def look(self) -> str | None:
        """Take the load of this step into account; let go and say why when it is more than the vacuum can bear."""
        if self._held is None:
            return None
        self._load += self._share * (
            self._simulation.load(self._held, on=self._robot.tip, at=self._robot.tool) - self._load
        )
        if self._is_pushed():  # the object is held as it is now, and so without load
            self._simulation.detach(self._held, self._robot.tip)
            self._simulation.attach(self._held, self._robot.tip)
            self._load = np.zeros(6)
            return None
        share, what = self._overload(self._load[3:])
        if share <= 1.0:
            return None
        lost = self._held
        self.let_go()
        return (
            f"the cup lost '{lost}': {what}, the vacuum pulls with {self._robot.grip_force:.0f} N"
        )

    def _overload(self, moment: NDArray[np.float64]) -> tuple[float, str]:
        """Return which share of what the vacuum bears the load is, with a moment (3,), and in words what it does."""
        return vacuum_overload(
            self._load[:3],
            moment,
            axis=self._axis(),
            vacuum=self._robot.grip_force,
            friction=self._simulation.settings.finger_friction,
            radius=self._radius,
        )

    def _is_pushed(self) -> bool:
        """Whether the object is pushed on so hard, or so much to one side, that a soft cup would give way."""
        push = -float(self._load[:3] @ self._axis())
        if push <= 0.0 or self._overload(np.zeros(3))[0] > 1.0:
            return False
        return push > self._robot.grip_force or self._overload(self._load[3:])[0] > 1.0

    def _axis(self) -> NDArray[np.float64]:
        return np.asarray(self._simulation.pose(self._robot.tool).rotate([0.0, 0.0, 1.0]))
