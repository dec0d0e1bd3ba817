"""The representations of forces, torques and wrenches: vectors, six-vectors, and the central axis of a wrench.

All may be expressed anywhere. Six-vectors have the force first, as everywhere in tmkit; :class:`MomentFirstWrench` has
the order of the papers.

Invariants: ``Class.of(x.numbers).numbers`` are ``x.numbers`` to rounding, for every class of the same relation.
"""

from __future__ import annotations

from typing import Self

from tmkit.relations.representation import Numbers, frozen
from tmkit.relations.representations.parts import Line, SecondFirst, Vector3, Vector6, line_of


class ForceVector(Vector3):
    """A vector (3,), N."""

    relation = "Force"
    unit = "N"


class TorqueVector(Vector3):
    """A vector (3,), N m."""

    relation = "Torque"
    unit = "N*m"


class WrenchVector(Vector6):
    """A vector (6,): force in N, then moment in N m."""

    relation = "Wrench"
    units = ("N", "N*m")


class MomentFirstWrench(SecondFirst):
    """A vector (6,) with the moment in N m first, then the force in N."""

    relation = "Wrench"
    units = ("N", "N*m")


class WrenchAxis(Line):
    """A wrench as a force along its central axis (``along``, N) and a moment about it (``about``, N m).

    The moment of the line is about the point of the wrench; a point of the axis has moment zero.
    """

    relation = "Wrench"
    units = ("N*m", "N")

    @property
    def numbers(self) -> Numbers:
        """``(f, t)``."""
        return frozen(self.along * self.direction), frozen(self.about * self.direction + self.along * self.moment)

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from ``(f, t)``.

        Args:
            numbers: force (3,) in N and moment (3,) in N m.
            like: one whose direction is used for a zero wrench; x by default.
        """
        f, t = numbers
        direction, moment, along, about = line_of(f, t, like)
        return cls(direction, moment, about=about, along=along)
