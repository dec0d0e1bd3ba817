"""Physical parameters of a simulation, with their reasons in docs/concepts/simulation.md.

The parameters of fingers and objects are those of the planner
(:mod:`tmkit.manipulation.grasps.holding`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from tmkit.errors import SimulationError
from tmkit.manipulation.grasps.holding import FINGER_FRICTION, OBJECT_FRICTION, PAD_RADIUS
from tmkit.motion.masses import DENSITY, GRAVITY


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicsSettings:
    """Physical parameters of a simulation.

    Attributes:
        time_step: time step of the physics [s].
        solver_iterations: iterations of the contact solver in each step.
        gravity: gravitational acceleration along the root's negative z axis [m/s^2].
        density: density of objects and links of which the scene gives no mass [kg/m^3].
        object_friction: friction coefficient of movable objects whose shapes give none.
        fixed_friction: friction coefficient of fixed bodies.
        robot_friction: friction coefficient of mechanisms, without the fingers.
        finger_friction: friction coefficient of a robot's contact links.
        pad_radius: radius of the contact patch of a contact link, for friction about the normal
            [m].
        slide_friction: friction of a drawer [N].
        hinge_friction: friction of a door [N m].
        position_gain: fraction of a joint's position error that its motor removes in one step.
        gripper_speed: speed at which each finger opens and closes [m/s].
        settle_time: shortest time for all bodies to settle after the plan [s].
        settle_limit: longest time for all bodies to settle after the plan [s].
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
                    f"{item.name} must be a finite number that is not negative, got {value}"
                )
        for name in ("time_step", "solver_iterations", "density", "position_gain", "gripper_speed"):
            if not getattr(self, name) > 0:
                raise SimulationError(f"{name} must be positive, got {getattr(self, name)}")

    def joint_friction(self, joint_type: str) -> float:
        """Return the friction of a joint without motor, by the joint's type [N or N m]."""
        return self.slide_friction if joint_type == "prismatic" else self.hinge_friction
