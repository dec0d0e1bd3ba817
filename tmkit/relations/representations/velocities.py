"""The representations of velocities and twists as vectors, and of a twist as an axis.

Vectors and six-vectors may be expressed anywhere. The axis of a twist is a line, whose moment is about the point of the
twist. Six-vectors have the linear part first, as everywhere in tmkit; :class:`AngularFirstTwist` has the order of the
papers.

Invariants: ``Class.of(x.numbers).numbers`` are ``x.numbers`` to rounding, for every class of the same relation.
"""

from __future__ import annotations

from typing import Self

from tmkit.relations.representation import Numbers, frozen
from tmkit.relations.representations.parts import Line, SecondFirst, Vector3, Vector6, line_of


class LinearVelocityVector(Vector3):
    """A vector (3,), m/s."""

    relation = "LinearVelocity"
    unit = "m/s"


class AngularVelocityVector(Vector3):
    """A vector (3,), rad/s."""

    relation = "AngularVelocity"
    unit = "rad/s"


class TwistVector(Vector6):
    """A vector (6,): linear part in m/s, then angular part in rad/s."""

    relation = "Twist"
    units = ("m/s", "rad/s")


class AngularFirstTwist(SecondFirst):
    """A vector (6,) in the order of the papers: angular part in rad/s, then linear part in m/s."""

    relation = "Twist"
    units = ("m/s", "rad/s")


class InstantaneousScrewAxis(Line):
    """A twist as a turn about a line (``about``, rad/s) and a motion along it (``along``, m/s).

    The moment is about the point of the twist; a point of the axis has moment zero.
    """

    relation = "Twist"
    units = ("rad/s", "m/s")

    @property
    def numbers(self) -> Numbers:
        """``(v, w)``."""
        return frozen(self.along * self.direction + self.about * self.moment), frozen(self.about * self.direction)

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Create the representation from ``(v, w)``.

        Args:
            numbers: linear (3,) in m/s and angular velocity (3,) in rad/s.
            like: one whose direction is used for a zero velocity; x by default.
        """
        v, w = numbers
        direction, moment, about, along = line_of(w, v, like)
        return cls(direction, moment, about=about, along=along)
