"""Holding capacity of a closed hand: one model of friction, the same for planner, checker and simulator.

Coulomb friction bears a force across a contact up to ``mu N``; ``mu`` is the product of the
coefficients of the two surfaces. A fingertip is soft and touches by a patch, so it also bears a
moment about the line through the contact: of a round patch of radius ``R`` under even pressure ``mu
N * integral of r * 2 pi r dr / (pi R^2) = mu N * 2/3 R``.

A hand with two fingers that press with F newtons each thus holds ``2 mu F`` newtons across the line
between its fingers, and ``2 mu F * 2/3 R`` newton metres about it. It holds both at once as long as
the squares of the two shares sum up to no more than one (Howe and Cutkosky, "Practical force-motion
models for sliding manipulation", 1996). Moments across that line the fingers bear as a pair, by
their distance.

A vacuum of V newtons, in a cup of radius R, is pulled at by T along the axis: that leaves ``N = V -
T`` to press the rim on. The object comes off when N is gone, slides when the force across exceeds
``mu N``, and peels off when the bending moment exceeds ``N R``. The load of what is carried is its
weight, and :data:`SWING` of it for its acceleration.

Invariants: functions of their arguments alone. A share of 1 is all that a hand can hold.
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
"""Friction coefficient of objects of which the scene gives none."""

FINGER_FRICTION = 1.0
"""Friction coefficient of fingertips and cups of which the scene gives none."""

PAD_RADIUS = 0.006
"""Metres: radius of the patch by which a fingertip touches. Pads are some 2 cm wide; this much of one is on an object
also where it is held 5 mm from an edge or, tilted, 7 mm from a corner."""

SWING = 0.25
"""Share of its weight by which an object may pull more while it is carried: tools are accelerated by some 2 m/s^2."""

Vector = NDArray[np.float64]


def torsion_arm(pad_radius: float) -> float:
    """Return the metres that, times the force of friction of a pad, are the moment that it bears about its normal."""
    return 2.0 / 3.0 * pad_radius


def vacuum_overload(
    force: Vector, moment: Vector, *, axis: Vector, vacuum: float, friction: float, radius: float
) -> tuple[float, str]:
    """Return which share of what a suction cup can hold a load is, and in words what it does.

    Args:
        force: (3,) newtons of the object on the cup.
        moment: (3,) newton metres of it about the middle of the rim.
        axis: (3,) unit vector from the cup to the object, expressed like the load.
        vacuum: newtons.
        friction: coefficient of the rim.
        radius: metres of the rim; 0 where nothing is known of it, and no moment peels it off.
    """
    pull = dot(force, axis)
    across = norm(force - pull * axis)
    bending = norm(moment - dot(moment, axis) * axis)
    pressing = vacuum - pull
    if pressing <= 0.0:
        return (
            max(pull / vacuum, math.nextafter(1.0, 2.0)) if vacuum else math.inf
        ), f"it pulls with {pull:.0f} N"
    shares = [(_ratio(across, friction * pressing), f"it shears with {across:.0f} N")]
    if radius > 0.0:
        shares.append((bending / (pressing * radius), f"it bends the cup with {bending:.2f} N m"))
    return max((pull / vacuum, f"it pulls with {pull:.0f} N"), *shares)


@dataclass(frozen=True, eq=False)
class Load:
    """An object as a load of a hand.

    Attributes:
        manipulator: the arm whose hand holds it.
        mass: kg.
        centre: (3,) metres from the tool point to its centre of mass, in the tool frame.
        friction: coefficient of its surface times that of the fingers; of a cup, of the cup alone.
        rim: metres, radius of a suction cup's rim; 0 for fingers.
    """

    manipulator: Manipulator
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
        manipulator: Manipulator,
        tool_from_object: Pose,
        rim: float,
    ) -> Load:
        """Return an object of a scene, with its descendants, at tool_from_object, as a load; ``rim`` is in metres."""
        frames = tuple(dict.fromkeys((object, *scene.subtree(object))))
        inertia = lumped_inertia(scene, frames, density=DENSITY)
        centre = np.asarray(tool_from_object.apply(inertia.center), dtype=float)
        fingers = [
            _friction(scene, (link,), FINGER_FRICTION)
            for link in manipulator.contact_links
            if link in scene
        ]
        friction = FINGER_FRICTION
        if manipulator.gripper_kind != "suction":
            friction = min(fingers, default=FINGER_FRICTION) * _friction(
                scene, frames, OBJECT_FRICTION
            )
        return cls(manipulator, inertia.mass, centre, friction, rim)

    @property
    def without_grip(self) -> str | None:
        """Why the hand holds nothing of any mass, or None."""
        if self.friction == 0.0:
            grip = "the cup" if self.manipulator.gripper_kind == "suction" else "the fingers"
            return f"its friction with {grip} is 0"
        if self.manipulator.grip_force == 0.0:
            return f"the grip force of arm '{self.manipulator.name}' is 0 N"
        return None

    @property
    def weight(self) -> float:
        """Newtons, with what is added for acceleration."""
        return (1.0 + SWING) * GRAVITY * self.mass

    @property
    def overweight(self) -> str | None:
        """Why the arm does not carry it however it is held, or None."""
        if self.mass <= self.manipulator.payload:
            return None
        return (
            f"its mass is {self.mass:.3g} kg, and arm '{self.manipulator.name}' carries"
            f" {self.manipulator.payload:g} kg"
        )

    def share(self, down: Vector) -> tuple[float, str]:
        """Return the share of what the hand can hold that the load is, and in words what it does.

        Args:
            down: (3,) unit vector of gravity in the tool frame.
        """
        force = self.weight * down
        moment = np.cross(self.centre, force)
        if self.manipulator.gripper_kind != "suction":
            return self._pinched(math.hypot(force[0], force[2]), abs(float(moment[1])))
        return vacuum_overload(
            force,
            moment,
            axis=np.array([0.0, 0.0, 1.0]),
            vacuum=self.manipulator.grip_force,
            friction=self.friction,
            radius=self.rim,
        )

    def largest_share(self) -> float:
        """Return a share that the load does not exceed, whichever way the hand is turned."""
        weight = self.weight
        if self.manipulator.gripper_kind != "suction":
            return self._pinched(weight, weight * math.hypot(self.centre[0], self.centre[2]))[0]
        pressing = self.manipulator.grip_force - weight
        if pressing <= 0.0:
            return math.inf
        bending = weight * norm(self.centre) / (pressing * self.rim) if self.rim > 0.0 else 0.0
        return max(
            weight / self.manipulator.grip_force, _ratio(weight, self.friction * pressing), bending
        )

    def _pinched(self, force: float, moment: float) -> tuple[float, str]:
        """Return the share of a force across the line between the fingers and a moment about it."""
        bears = 2.0 * self.friction * self.manipulator.grip_force
        said = f"{force:.1f} N and {moment:.2f} N m about the fingers"
        if bears == 0.0:
            return math.inf, said
        return math.hypot(force / bears, moment / (bears * torsion_arm(PAD_RADIUS))), said


def _ratio(load: float, capacity: float) -> float:
    """Return the share of a capacity that a load is; infinite if the capacity is 0 and the load is not."""
    if capacity > 0.0:
        return load / capacity
    return math.inf if load > 0.0 else 0.0


def _friction(scene: SceneGraph, frames: Iterable[str], default: float) -> float:
    """Return the friction of frames that are one body: the largest that a shape gives, as the simulator takes it."""
    given = [
        attached.friction
        for frame in frames
        for attached in scene.shapes(frame)
        if attached.friction is not None
    ]
    return max(given, default=default)
