"""Representations of the numbers of a relation, and the coordinates that they allow.

A representation checks the coordinates (:meth:`Representation.find_violations`), and each operation
checks its result again. All representations of a relation convert to and from the same *numbers*,
which are arrays in SI units:

* position, linear and angular velocity, force, torque: the vector;
* twist ``(v, w)``, wrench ``(f, t)``, pose ``(p, Q)``;
* orientation ``(Q,)``: the rotation from the reference axes to the axes, as a matrix in the
  coordinate frame. Expressed in the reference orientation frame it is the rotation matrix.

Invariants: a representation has read-only arrays of finite numbers; a matrix that is not a rotation
is rejected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.initialization import initialize
from tmkit._support.units import UnitError, si_numbers
from tmkit.relations.violations import Violation, rule_error

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

    from tmkit.relations.semantics import Coord, OrientationCoord, PoseCoord

Vector = NDArray[np.float64]
Numbers = tuple[Vector, ...]
"""Arrays of a relation, as in the list of the module."""

ROTATION_TOLERANCE = 1e-6
"""Largest accepted difference of ``R R^T`` from the identity, and of a norm from 1."""


@runtime_checkable
class Representation(Protocol):
    """Numbers of a relation in one of several forms.

    Attributes:
        relation: name of the represented relation.
    """

    relation: ClassVar[str]

    @property
    def numbers(self) -> Numbers:
        """Arrays of the relation."""
        ...

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Create a representation from the arrays of a relation.

        Args:
            numbers: arrays of the relation.
            like: representation whose settings are copied, such as the sequence of Euler angles.

        Raises:
            SemanticError: if the representation cannot represent the numbers.
        """
        ...

    def find_violations(self, coord: Coord) -> Sequence[Violation]:
        """Return the rules that a relation with these coordinates violates in this form."""
        ...


def array_of(
    values: ArrayLike, shape: tuple[int, ...], what: str, *, unit: str = "", is_batch: bool = False
) -> Vector:
    """Return a read-only copy of an array of finite numbers in SI units.

    Args:
        values: numbers in SI units, or quantities of :mod:`pint`.
        shape: expected shape.
        what: name of the numbers in messages.
        unit: SI unit of all numbers, or of each along the last axis; without a unit by default.
        is_batch: True to accept an additional first dimension.

    Raises:
        SemanticError: if the values are not finite numbers of this shape or unit.
    """
    try:
        values = si_numbers(values, unit, what)
        if isinstance(values, str) or np.asarray(values).dtype.kind in "US":
            raise ValueError("text")
        array = np.array(values, dtype=float)
    except UnitError as error:
        raise rule_error(error.argument, f"it is {error.expected}", error.received) from error
    except (TypeError, ValueError):
        raise rule_error(what, f"it has numbers of shape {shape}", repr(values)[:80]) from None
    if array.shape != shape and not (
        is_batch and array.shape[1:] == shape and array.ndim > len(shape)
    ):
        raise rule_error(what, f"it has shape {shape}", f"shape {array.shape}")
    if not np.isfinite(array).all():
        raise rule_error(what, "its numbers are finite", np.array2string(array.ravel()))
    array.flags.writeable = False
    return array


def seconds(dt: float) -> float:
    """Return a finite duration [s], from a number or a quantity of :mod:`pint`."""
    if type(dt) is float and math.isfinite(dt):
        return dt
    return float(array_of(dt, (), "time", unit="s"))


def nonzero_seconds(dt: float) -> float:
    """Return a finite, nonzero duration [s]."""
    duration = seconds(dt)
    if duration == 0.0:
        raise rule_error("differentiate", "the time between the two is not zero", "0 s")
    return duration


def rotation_class() -> type[Rotation]:
    """Return scipy's class of rotations; its import takes longer than that of tmkit."""
    from scipy.spatial.transform import Rotation

    return Rotation


def rotation_of(values: ArrayLike, what: str) -> Vector:
    """Return a read-only rotation matrix (3, 3), or a batch (N, 3, 3).

    Raises:
        SemanticError: if a matrix is not a rotation; the message has the defect.
    """
    matrix = array_of(values, (3, 3), what, is_batch=True)
    defect = float(np.abs(matrix @ matrix.swapaxes(-1, -2) - np.eye(3)).max(initial=0.0))
    determinant, text = float(np.linalg.det(matrix).min(initial=np.inf)), ""
    if defect > ROTATION_TOLERANCE:
        text = f"R R^T differs from the identity by {defect:.3g}"
    elif determinant < 0.0:
        text = f"it is left-handed: its determinant is {determinant:.6g}"
    if text:
        raise rule_error(what, "a rotation matrix is orthonormal and right-handed", text)
    return matrix


_Made = TypeVar("_Made")


def from_arrays(cls: type[_Made], arrays: Mapping[str, Vector]) -> _Made:
    """Create a representation from valid read-only arrays, without a check."""
    representation = object.__new__(cls)
    initialize(representation, **arrays)
    return representation


class Plain:
    """Base class of most representations, which allows all coordinates."""

    relation: ClassVar[str]
    # True if the class alone, without the numbers, determines the allowed coordinates.
    is_settled: ClassVar[bool] = False
    dimensions: ClassVar[int] = 0  # of the array of one relation; 0 if batches are not allowed

    @property
    def size(self) -> int | None:
        """Number of relations in a batch; None for one relation."""
        array = next(iter(vars(self).values()))
        return len(array) if 0 < self.dimensions < array.ndim else None

    @property
    def numbers(self) -> Numbers:
        """Arrays of the relation, as in the list of :mod:`tmkit.relations.representation`."""
        return self._numbers()

    def _numbers(self) -> Numbers:
        raise NotImplementedError

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Create the representation from the numbers of a relation.

        Args:
            numbers: arrays of the relation. Vectors and rotation matrices that are stored unchanged
                are not checked.
            like: representation with the settings that the numbers do not determine. They are the
                sequence of Euler angles (ZYX by default), and the axis of a zero rotation or vector
                (x by default). Of a rate they are the orientation or pose (the identity by
                default; Euler angle rates have no default).

        Raises:
            SemanticError: if the numbers do not determine the representation, as where two axes of
                Euler angles coincide, or are out of range.
        """
        return cls._of(numbers, like)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        raise NotImplementedError

    @classmethod
    def find_violations(cls, coord: Coord) -> Sequence[Violation]:
        """Return no violations: all coordinates are allowed."""
        del coord
        return ()


class Multiplied(Plain):
    """Base class of multiplied operators, expressed in their reference orientation frame."""

    what: ClassVar[str]

    @classmethod
    def find_violations(cls, coord: Coord) -> Sequence[Violation]:
        """Return a violation if the coordinate frame is not the reference orientation frame."""
        coord = cast("OrientationCoord | PoseCoord", coord)
        if coord.coord == coord.ref_ori:
            return []
        free = (
            "FiniteScrew or VectorAndRotationVector"
            if coord.relation == "Pose"
            else "a rotation vector"
        )
        repair = f"express it there, or use a representation that allows it ({free})"
        sides = f"coordinate frame {coord.coord}", f"reference orientation frame {coord.ref_ori}"
        return [
            Violation(f"{cls.what} is expressed in its reference orientation frame", *sides, repair)
        ]


class OfFrames(Plain):
    """Base class of poses between frames, whose points are the frames' origins."""

    what: ClassVar[str]

    @classmethod
    def find_violations(cls, coord: Coord) -> Sequence[Violation]:
        """Return violations if the relation is not between two frames."""
        coord = cast("PoseCoord", coord)
        violations = []
        sides = (("", coord.point, coord.ori), ("reference ", coord.ref_point, coord.ref_ori))
        for side, point, ori in sides:
            if point != ori:
                rule = f"the {side}point of {cls.what} is the origin of its {side}orientation frame"
                left, right = f"{side}point {point}", f"{side}orientation frame {ori}"
                repair = (
                    f"use vector and matrix, which allow any {side}point:"
                    " with_representation(VectorAndMatrix)"
                )
                violations.append(Violation(rule, left, right, repair))
        return violations


class FrameToFrame(OfFrames, Multiplied):
    """Base class of coordinate transforms between two frames, expressed in the reference frame."""

    @classmethod
    def find_violations(cls, coord: Coord) -> Sequence[Violation]:
        """Return violations if the pose is not between two frames and expressed in the latter."""
        coord = cast("PoseCoord", coord)
        if coord.point == coord.ori and coord.ref_point == coord.ref_ori == coord.coord:
            return ()
        return [*super().find_violations(coord), *super(OfFrames, cls).find_violations(coord)]


@dataclass(frozen=True, eq=False)
class Vector3(Plain):
    """Vector (3,) in a unit."""

    vector: Vector
    unit: ClassVar[str]
    is_settled: ClassVar[bool] = True
    dimensions = 1
    label: ClassVar[str] = ""  # name in messages; the relation by default

    def __init__(self, vector: ArrayLike) -> None:
        initialize(
            self,
            vector=array_of(
                vector, (3,), self.label or self.relation, unit=self.unit, is_batch=True
            ),
        )

    def _numbers(self) -> Numbers:
        return (self.vector,)

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return from_arrays(cls, {"vector": numbers[0]})


def unit_vector(values: ArrayLike, length: int, what: str) -> Vector:
    """Return a read-only unit vector (length,), or vectors (N, length).

    Raises:
        SemanticError: if a norm is not 1.
    """
    vectors = array_of(values, (length,), what, is_batch=length == 4)
    norms = np.atleast_1d(np.linalg.norm(vectors, axis=-1))
    invalid_norms = norms[np.abs(norms - 1.0) > ROTATION_TOLERANCE]
    if len(invalid_norms):
        raise rule_error(what, "its norm is 1", f"norm {invalid_norms[0]:.9g}")
    return vectors


def require_orthogonal(unit: Vector, vector: Vector, *, pair: str, what: str) -> None:
    """Raise SemanticError if a vector is not orthogonal to a unit vector.

    Args:
        unit: unit vector.
        vector: vector of any length.
        pair: description of both vectors in the message.
        what: name of the representation in the message.
    """
    defect = abs(float(unit @ vector))
    if defect > ROTATION_TOLERANCE * (1.0 + float(np.linalg.norm(vector))):
        raise rule_error(what, f"{pair} are orthogonal", f"their product is {defect:.3g}")


def skew(v: Vector) -> Vector:
    """Return the matrix (3, 3) of the cross product with a vector."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def quaternion_product(a: Vector, b: Vector) -> Vector:
    """Return the Hamilton product of two quaternions (4,), vector part first."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])
