"""The representations of velocities and forces: vectors, six-vectors, and lines in space.

The moment of a line is about the point of the twist or wrench: a point of the axis has moment zero.

Invariants: ``Class.of(x.numbers).numbers`` are ``x.numbers`` to rounding, for every class of the same relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from tmkit.relations.representation import Numbers, Vector, array_of, frozen, trusted
from tmkit.relations.representations.parts import Plain, require_orthogonal, unit_vector
from tmkit.relations.violations import SemanticError, Violation

_FARTHEST = 1e9  # metres; an axis farther away has no digits left


@dataclass(frozen=True, eq=False)
class Vector3(Plain):
    """Three numbers in a unit."""

    vector: Vector
    unit: ClassVar[str]
    is_settled: ClassVar[bool] = True
    dimensions = 1
    called: ClassVar[str] = ""  # in messages; the relation by default

    def __init__(self, vector: ArrayLike) -> None:
        self.__dict__.update(vector=array_of(vector, (3,), self.called or self.relation, unit=self.unit, is_batch=True))

    @property
    def numbers(self) -> Numbers:
        """The vector."""
        return (self.vector,)

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return trusted(cls, vector=numbers[0])


@dataclass(frozen=True, eq=False)
class Vector6(Plain):
    """Six numbers: a half of three, then another."""

    vector: Vector
    is_settled = True
    dimensions = 1
    units: ClassVar[tuple[str, str]]
    halves: ClassVar[tuple[slice, slice]] = (slice(3), slice(3, 6))

    def __init__(self, vector: ArrayLike) -> None:
        object.__setattr__(self, "vector", array_of(vector, (6,), self.relation, is_batch=True))

    @classmethod
    def of_parts(cls, first: ArrayLike, second: ArrayLike) -> Self:
        """Create the representation from two vectors, each in its own unit.

        Args:
            first: linear velocity in m/s or force in N, (3,).
            second: angular velocity in rad/s or moment in N m, (3,).

        Raises:
            SemanticError: a part is no three finite numbers, or a quantity of another dimension.
        """
        parts = zip((first, second), cls.units, strict=True)
        return cls.of(tuple(array_of(part, (3,), cls.relation, unit=unit) for part, unit in parts))

    @property
    def numbers(self) -> Numbers:
        """The two halves."""
        first, second = self.halves
        return self.vector[..., first], self.vector[..., second]

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        vector = np.empty((*numbers[0].shape[:-1], 6))
        first, second = cls.halves
        vector[..., first], vector[..., second] = numbers
        return trusted(cls, vector=frozen(vector))


@dataclass(frozen=True, eq=False)
class Line(Plain):
    """A line with an intensity about it and one along it.

    Args:
        direction: (3,) unit vector along the line.
        moment: (3,) metres: a point of the line, relative to the point of the relation, times the direction.
        about: magnitude of the line vector: rad/s of a velocity, N of a force.
        along: magnitude of the free vector along the line: m/s of a velocity, N m of a force.
    """

    direction: Vector
    moment: Vector
    about: float
    along: float
    units: ClassVar[tuple[str, str]]  # about the line, and along it
    is_turn: ClassVar[bool]  # whether the line vector is the intensity about the line, and the second of the numbers

    def __init__(self, direction: ArrayLike, moment: ArrayLike, *, about: float, along: float) -> None:
        object.__setattr__(self, "direction", unit_vector(direction, 3, "direction of an axis"))
        object.__setattr__(self, "moment", array_of(moment, (3,), "moment of an axis", unit="m"))
        object.__setattr__(self, "about", float(array_of(about, (), "intensity about an axis", unit=self.units[0])))
        object.__setattr__(self, "along", float(array_of(along, (), "intensity along an axis", unit=self.units[1])))
        require_orthogonal(self.direction, self.moment, which="direction and moment of a line", what="axis")

    @property
    def point(self) -> Vector:
        """The point (3,) of the axis nearest to the point of the relation, relative to it."""
        return frozen(np.cross(self.direction, self.moment))

    @property
    def numbers(self) -> Numbers:
        """``(v, w)`` or ``(f, t)``."""
        bound, free = (self.about, self.along) if self.is_turn else (self.along, self.about)
        line, other = frozen(bound * self.direction), frozen(free * self.direction + bound * self.moment)
        return (other, line) if self.is_turn else (line, other)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        bound, free = numbers[::-1] if cls.is_turn else numbers
        size = float(np.linalg.norm(bound))
        if size == 0.0:
            along = float(np.linalg.norm(free))
            axis = free / along if along > 0.0 else like.direction if like is not None else np.array([1.0, 0.0, 0.0])
            direction, moment = axis, np.zeros(3)
        else:
            direction = bound / size
            along = float(direction @ free)
            across = free - along * direction
            if float(np.linalg.norm(across)) > _FARTHEST * size:
                rule = f"the axis lies within {_FARTHEST:.0e} m"
                raise SemanticError.of("axis", [Violation(rule, "it is farther away: use a six-vector")])
            moment = across / size
        if cls.is_turn:
            return cls(direction, moment, about=size, along=along)
        return cls(direction, moment, about=along, along=size)


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


class AngularFirstTwist(Vector6):
    """A vector (6,) in the order of the papers: angular part in rad/s, then linear part in m/s."""

    relation = "Twist"
    units = ("m/s", "rad/s")
    halves = (slice(3, 6), slice(3))


class InstantaneousScrewAxis(Line):
    """A twist as a turn about a line (``about``, rad/s) and a motion along it (``along``, m/s)."""

    relation = "Twist"
    units = ("rad/s", "m/s")
    is_turn = True


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


class MomentFirstWrench(Vector6):
    """A vector (6,) with the moment in N m first, then the force in N."""

    relation = "Wrench"
    units = ("N", "N*m")
    halves = (slice(3, 6), slice(3))


class WrenchAxis(Line):
    """A wrench as a force along its central axis (``along``, N) and a moment about it (``about``, N m)."""

    relation = "Wrench"
    units = ("N*m", "N")
    is_turn = False
