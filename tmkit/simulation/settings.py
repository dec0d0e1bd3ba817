"""The numbers of the physics, and why they are what they are: docs/concepts/simulation.md, *Settings*.

Those of fingers and objects are the planner's (:mod:`tmkit.manipulation.grasps.holding`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from tmkit.errors import SimulationError
from tmkit.manipulation.grasps.holding import FINGER_FRICTION, OBJECT_FRICTION, PAD_RADIUS
from tmkit.motion.masses import DENSITY, GRAVITY


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicsSettings:
    """How a simulation is run.

    Attributes:
        time_step: seconds of one step of the physics.
        solver_iterations: iterations of the contact solver in each step.
        gravity: m/s^2, downwards along z of the root.
        density: kg/m^3 of objects and links of which the scene gives no mass.
        object_friction: friction coefficient of movable objects whose shapes give none.
        fixed_friction: friction coefficient of everything that never moves.
        robot_friction: friction coefficient of mechanisms, without the fingers.
        finger_friction: friction coefficient of a robot's contact links.
        pad_radius: metres; radius of the patch by which a contact link touches, for friction about
            the normal.
        slide_friction: newtons against which a drawer moves.
        hinge_friction: newton metres against which a door turns.
        position_gain: part of a joint's position error that its motor removes in one step.
        gripper_speed: m/s at which each finger opens and closes.
        settle_time: seconds that everything is given to settle after the plan, at least.
        settle_limit: seconds that everything is given to settle after the plan, at most.
    """

    time_step: float = 1.0 / 960.0
    solver_iterations: int = 300
    gravity: float = GRAVITY
    density: float = DENSITY
    object_friction: float = OBJECT_FRICTION
    fixed_friction: float = 0.7
    robot_friction: float = 0.5
    finger_friction: float = FINGER_FRICTION
    pad_radius: float = PAD_RADIUS
    slide_friction: float = 2.0
    hinge_friction: float = 0.2
    position_gain: float = 0.3
    gripper_speed: float = 0.1
    settle_time: float = 0.5
    settle_limit: float = 3.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not (math.isfinite(value) and value >= 0.0):
                raise SimulationError(
                    f"{item.name} must be a finite number that is not negative, not {value}"
                )
        for name in ("time_step", "solver_iterations", "density", "position_gain", "gripper_speed"):
            if not getattr(self, name) > 0:
                raise SimulationError(f"{name} must be positive, not {getattr(self, name)}")

    def joint_friction(self, joint_type: str) -> float:
        """Return the friction of a joint that no motor holds, in newtons or newton metres, by the joint's type."""
        return self.slide_friction if joint_type == "prismatic" else self.hinge_friction
