"""Holding capacity of a closed hand: the friction model of planner, plan validator and simulator.

Coulomb friction bears a tangential force up to ``mu N`` at a contact, where ``mu`` is the product
of the coefficients of the two surfaces. A soft fingertip has a contact patch, so it also bears a
moment about the contact normal. A round patch of radius ``R`` under even pressure bears::

    mu N * integral of r * 2 pi r dr / (pi R^2) = mu N * 2/3 R

A hand with two fingers of force ``F`` thus bears a force of ``2 mu F`` across the line between its
fingers. It bears a moment of ``2 mu F * 2/3 R`` about this line. It bears both if the squares of
the two load fractions sum up to at most one (Howe and Cutkosky, "Practical force-motion models for
sliding manipulation", 1996). The two fingers together bear moments across the line, by their
distance.

A suction cup of radius ``R`` with a vacuum force ``V`` and a pull ``T`` along its axis presses its
rim on with ``N = V - T``. The object comes off if ``N`` is not positive, slides if the force across
exceeds ``mu N``, and peels off if the bending moment exceeds ``N R``. The load of a carried object
is its weight, increased by :data:`DYNAMIC_LOAD_FRACTION` for its acceleration.

Invariants: functions of their arguments alone. A load fraction of 1 is the capacity of the hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import dot, norm
from tmkit.graph import SceneGraph
from tmkit.motion.masses import DENSITY, GRAVITY, lumped_inertia
from tmkit.robots import Manipulator
from tmkit.spatial import Pose

OBJECT_FRICTION = 0.7
"""Default friction coefficient of objects."""

FINGER_FRICTION = 1.0
"""Default friction coefficient of fingertips and cups."""

PAD_RADIUS = 0.006
"""Radius of the contact patch of a fingertip [m].

Pads are about 2 cm wide. A patch of this size is on the object even if the fingertip is 5 mm from
an edge or, tilted, 7 mm from a corner.
"""

DYNAMIC_LOAD_FRACTION = 0.25
"""Dynamic load of a carried object as a fraction of its weight, for accelerations of 2 m/s^2."""

Vector = NDArray[np.float64]


def torsion_arm(pad_radius: float) -> float:
    """Return the ratio of a pad's friction moment about its normal to its friction force [m].

    Args:
        pad_radius: radius of the contact patch [m].
    """
    return 2.0 / 3.0 * pad_radius


def vacuum_overload(
    force: Vector, moment: Vector, *, axis: Vector, vacuum: float, friction: float, radius: float
) -> tuple[float, str]:
    """Return a load as a fraction of the capacity of a suction cup, with a description.

    Args:
        force: (3,) force of the object on the cup [N].
        moment: (3,) moment of the object about the centre of the rim [N m].
        axis: (3,) unit vector from the cup to the object, in the axes of the load.
        vacuum: vacuum force [N].
        friction: friction coefficient of the rim.
        radius: radius of the rim [m]. If 0, the radius is unknown and peeling is not checked.

    Returns:
        Load fraction, and description of the critical load.
    """
    pull = dot(force, axis)
    across = norm(force - pull * axis)
    bending = norm(moment - dot(moment, axis) * axis)
    normal_force = vacuum - pull
    if normal_force <= 0.0:
        fraction = max(pull / vacuum, math.nextafter(1.0, 2.0)) if vacuum else math.inf
        return fraction, f"it pulls with {pull:.0f} N"
    loads = [
        (pull / vacuum, f"it pulls with {pull:.0f} N"),
        (_load_fraction(across, friction * normal_force), f"it shears with {across:.0f} N"),
    ]
    if radius > 0.0:
        fraction = bending / (normal_force * radius)
        loads.append((fraction, f"it bends the cup with {bending:.2f} N m"))
    return max(loads)


@dataclass(frozen=True, eq=False)
class Load:
    """An object as a load of a hand.

    Attributes:
        robot: arm with the hand.
        mass: mass of the object [kg].
        centre: (3,) centre of mass in the tool frame [m].
        friction: friction coefficient of the object times that of the fingers. For a suction cup,
            the coefficient of the cup alone.
        rim: radius of a suction cup's rim [m]. 0 for fingers.
    """

    robot: Manipulator
    mass: float
    centre: Vector
    friction: float
    rim: float = 0.0

    @classmethod
    def of(
        cls,
        scene: SceneGraph,
        object: str,
        *,
        robot: Manipulator,
        tool_from_object: Pose,
        rim: float,
    ) -> Load:
        """Return an object of a scene, with its descendants, as a load.

        Args:
            scene: scene with the object.
            object: frame of the object.
            robot: arm with the hand.
            tool_from_object: pose of the object relative to the tool.
            rim: radius of a suction cup's rim [m].
        """
        frames = tuple(dict.fromkeys((object, *scene.subtree(object))))
        inertia = lumped_inertia(scene, frames, density=DENSITY)
        centre = np.asarray(tool_from_object.apply(inertia.center), dtype=float)
        finger_frictions = [
            _friction(scene, (link,), FINGER_FRICTION)
            for link in robot.contact_links
            if link in scene
        ]
        friction = FINGER_FRICTION
        if robot.gripper_kind != "suction":
            finger_friction = min(finger_frictions, default=FINGER_FRICTION)
            friction = finger_friction * _friction(scene, frames, OBJECT_FRICTION)
        return cls(robot, inertia.mass, centre, friction, rim)

    @property
    def grip_fault(self) -> str | None:
        """Message if the hand has no grip on an object of any mass, or None."""
        if self.friction == 0.0:
            grip = "the cup" if self.robot.gripper_kind == "suction" else "the fingers"
            return f"its friction with {grip} is 0"
        if self.robot.grip_force == 0.0:
            return f"the grip force of arm '{self.robot.name}' is 0 N"
        return None

    @property
    def weight(self) -> float:
        """Weight with the dynamic load [N]."""
        return (1.0 + DYNAMIC_LOAD_FRACTION) * GRAVITY * self.mass

    @property
    def payload_fault(self) -> str | None:
        """Message if the object exceeds the payload of the arm, or None."""
        if self.mass <= self.robot.payload:
            return None
        return (
            f"its mass is {self.mass:.3g} kg, and arm '{self.robot.name}' carries"
            f" {self.robot.payload:g} kg"
        )

    def load_fraction(self, down: Vector) -> tuple[float, str]:
        """Return the load as a fraction of the hand's capacity, with a description.

        Args:
            down: (3,) unit vector of gravity in the tool frame.
        """
        force = self.weight * down
        moment = np.cross(self.centre, force)
        if self.robot.gripper_kind != "suction":
            return self._friction_load(math.hypot(force[0], force[2]), abs(float(moment[1])))
        return vacuum_overload(
            force,
            moment,
            axis=np.array([0.0, 0.0, 1.0]),
            vacuum=self.robot.grip_force,
            friction=self.friction,
            radius=self.rim,
        )

    def max_load_fraction(self) -> float:
        """Return an upper bound of the load fraction over all orientations of the hand."""
        weight = self.weight
        if self.robot.gripper_kind != "suction":
            moment = weight * math.hypot(self.centre[0], self.centre[2])
            fraction, _ = self._friction_load(weight, moment)
            return fraction
        vacuum = self.robot.grip_force
        normal_force = vacuum - weight
        if normal_force <= 0.0:
            return math.inf
        bending = weight * norm(self.centre) / (normal_force * self.rim) if self.rim > 0.0 else 0.0
        shear = _load_fraction(weight, self.friction * normal_force)
        return max(weight / vacuum, shear, bending)

    def _friction_load(self, force: float, moment: float) -> tuple[float, str]:
        """Return a load as a fraction of the friction of two fingers, with a description.

        Args:
            force: force across the line between the fingers [N].
            moment: moment about that line [N m].
        """
        capacity = 2.0 * self.friction * self.robot.grip_force
        description = f"{force:.1f} N and {moment:.2f} N m about the fingers"
        if capacity == 0.0:
            return math.inf, description
        moment_fraction = moment / (capacity * torsion_arm(PAD_RADIUS))
        return math.hypot(force / capacity, moment_fraction), description


def _load_fraction(load: float, capacity: float) -> float:
    """Return load / capacity, infinite if only the capacity is 0."""
    if capacity > 0.0:
        return load / capacity
    return math.inf if load > 0.0 else 0.0


def _friction(scene: SceneGraph, frames: Iterable[str], default: float) -> float:
    """Return the friction coefficient of one body, the largest of its shapes, as in the simulator.

    Args:
        scene: scene with the body.
        frames: frames of the body.
        default: coefficient if no shape has one.
    """
    coefficients = [
        attached.friction
        for frame in frames
        for attached in scene.shapes(frame)
        if attached.friction is not None
    ]
    return max(coefficients, default=default)
