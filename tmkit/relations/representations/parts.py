"""What representations are made of: vectors, six-vectors, lines in space, unit quaternions.

Invariants: arrays are read-only; what a class holds was checked, or computed from what was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from tmkit.relations.representation import (
    ROTATION_TOLERANCE,
    Numbers,
    Vector,
    array_of,
    between_frames,
    frozen,
    in_reference,
    trusted,
)
from tmkit.relations.violations import SemanticError, Violation


class Plain:
    """What most representations share: no constraint, equality of their arrays."""

    relation: ClassVar[str]

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Create the representation from the numbers of its relation (:mod:`tmkit.relations.representation`).

        Args:
            numbers: the arrays; those that are kept as they are, vectors and rotation matrices, are not checked.
            like: one that settles what the numbers leave open; not used by most classes.
        """
        del like
        return cls._of(numbers)

    @classmethod
    def _of(cls, numbers: Numbers) -> Self:
        raise NotImplementedError

    def broken_by(self, coord: Any) -> Sequence[Violation]:
        """Return nothing: any coordinates will do."""
        del coord
        return ()


class Multiplied(Plain):
    """What is used by multiplying has to be expressed in its reference orientation frame."""

    what: ClassVar[str]

    def broken_by(self, coord: Any) -> Sequence[Violation]:
        """Return whether the coordinate frame is not the reference orientation frame."""
        return in_reference(coord, self.what)


class FrameToFrame(Plain):
    """What takes the coordinates in one frame to those in another relates these two frames, and is expressed there."""

    what: ClassVar[str]

    def broken_by(self, coord: Any) -> Sequence[Violation]:
        """Return whether it is not the pose of a frame relative to a frame, expressed there."""
        if coord.point == coord.ori and coord.ref_point == coord.ref_ori == coord.coord:
            return ()
        return [*between_frames(coord, self.what), *in_reference(coord, self.what)]


@dataclass(frozen=True, eq=False)
class Vector3(Plain):
    """Three numbers in a unit."""

    vector: Vector
    unit: ClassVar[str]
    called: ClassVar[str] = ""  # in messages; the relation by default

    def __init__(self, vector: ArrayLike) -> None:
        object.__setattr__(self, "vector", array_of(vector, (3,), self.called or self.relation, unit=self.unit))

    @property
    def numbers(self) -> Numbers:
        """The vector."""
        return (self.vector,)

    @classmethod
    def _of(cls, numbers: Numbers) -> Self:
        return trusted(cls, vector=numbers[0])


@dataclass(frozen=True, eq=False)
class Vector6(Plain):
    """Six numbers: a half of three, then another."""

    vector: Vector
    units: ClassVar[tuple[str, str]]

    def __init__(self, vector: ArrayLike) -> None:
        object.__setattr__(self, "vector", array_of(vector, (6,), self.relation))

    @classmethod
    def of_parts(cls, first: ArrayLike, second: ArrayLike) -> Self:
        """Create the representation from two vectors, each in its own unit.

        Args:
            first: linear velocity in m/s or force in N, (3,).
            second: angular velocity in rad/s or moment in N m, (3,).

        Raises:
            SemanticError: a part is no three finite numbers, or a quantity of another dimension.
        """
        units = cls.units
        parts = [
            array_of(part, (3,), cls.relation, unit=unit) for part, unit in zip((first, second), units, strict=True)
        ]
        return cls.of((parts[0], parts[1]))

    @property
    def numbers(self) -> Numbers:
        """The two halves."""
        return self.vector[:3], self.vector[3:]

    @classmethod
    def _of(cls, numbers: Numbers) -> Self:
        vector = np.empty(6)
        vector[:3], vector[3:] = numbers
        return trusted(cls, vector=frozen(vector))


class SecondFirst(Vector6):
    """Six numbers, those that stand second elsewhere first."""

    @property
    def numbers(self) -> Numbers:
        """The two halves, the second first."""
        return self.vector[3:], self.vector[:3]

    @classmethod
    def _of(cls, numbers: Numbers) -> Self:
        vector = np.empty(6)
        vector[3:], vector[:3] = numbers
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


_FARTHEST = 1e9  # metres; an axis farther away has no digits left


def line_of(bound: Vector, free: Vector, like: Line | None) -> tuple[Vector, Vector, float, float]:
    """Return direction, moment, intensity of the line vector ``bound``, and the part of ``free`` along it.

    Args:
        bound: (3,) line vector: angular velocity or force.
        free: (3,) free vector at the point of the relation: linear velocity or moment.
        like: a line whose direction is used if both vectors are zero; x by default.
    """
    size = float(np.linalg.norm(bound))
    if size == 0.0:
        along = float(np.linalg.norm(free))
        axis = free / along if along > 0.0 else like.direction if like is not None else np.array([1.0, 0.0, 0.0])
        return axis, np.zeros(3), 0.0, along
    direction = bound / size
    along = float(direction @ free)
    across = free - along * direction
    if float(np.linalg.norm(across)) > _FARTHEST * size:
        rule = f"the axis lies within {_FARTHEST:.0e} m"
        raise SemanticError.of("axis", [Violation(rule, "it is farther away: use a six-vector")])
    return direction, across / size, size, along


def unit_vector(values: ArrayLike, length: int, what: str) -> Vector:
    """Return a read-only unit vector.

    Args:
        values: the vector.
        length: its number of components.
        what: its name, for the error message.

    Raises:
        SemanticError: its norm is not 1.
    """
    made = array_of(values, (length,), what)
    norm = float(np.linalg.norm(made))
    if abs(norm - 1.0) > ROTATION_TOLERANCE:
        raise SemanticError.of(what, [Violation("its norm is 1", f"norm {norm:.9g}")])
    return made


def require_orthogonal(unit: Vector, other: Vector, *, which: str, what: str) -> None:
    """Refuse a vector that is not orthogonal to a unit vector.

    Args:
        unit: (n,) the unit vector.
        other: (n,) the vector, of any length.
        which: what the two are.
        what: what they make.

    Raises:
        SemanticError: they are not orthogonal; the message gives their product.
    """
    defect = abs(float(unit @ other))
    if defect > ROTATION_TOLERANCE * (1.0 + float(np.linalg.norm(other))):
        raise SemanticError.of(what, [Violation(f"{which} are orthogonal", f"their product is {defect:.3g}")])


def quaternion_product(a: Vector, b: Vector) -> Vector:
    """Return the Hamilton product of two quaternions (4,), vector part first.

    Args:
        a: (4,) each.
        b: (4,) each.
    """
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])
