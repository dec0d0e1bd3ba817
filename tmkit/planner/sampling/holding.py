"""What a closed hand can hold: one model of friction, the same for planner and simulator.

Coulomb friction bears a force across a contact up to ``mu N``; ``mu`` is the product of the coefficients of the two
surfaces. A fingertip is soft and touches by a patch, so it also bears a moment about the line through the contact. Of a
round patch of radius ``R`` under even pressure each ring of radius r bears its share times r, which sums up to::

    mu N * integral of r * 2 pi r dr / (pi R^2) = mu N * 2/3 R

A hand with two fingers that press with F newtons each thus holds ``2 mu F`` newtons, and ``2 mu F * 2/3 R`` newton
metres about the line between its fingers.

Invariants: functions of their arguments alone.
"""

from __future__ import annotations

__all__ = ["DENSITY", "FINGER_FRICTION", "GRAVITY", "OBJECT_FRICTION", "PAD_RADIUS", "torsion_arm"]

OBJECT_FRICTION = 0.7
"""Friction coefficient of objects of which the scene gives none."""

FINGER_FRICTION = 1.0
"""Friction coefficient of fingertips and cups of which the scene gives none."""

PAD_RADIUS = 0.006
"""Metres: radius of the patch by which a fingertip touches. Pads are some 2 cm wide; this much of one is on an object
also where it is held 5 mm from an edge or, tilted, 7 mm from a corner."""

DENSITY = 500.0
"""kg/m^3 of objects of which the scene gives no mass."""

GRAVITY = 9.81
"""m/s^2, downwards along z of the root."""


def torsion_arm(pad_radius: float) -> float:
    """Return the metres that, times the force of friction of a pad, are the moment that it bears about its normal."""
    return 2.0 / 3.0 * pad_radius
