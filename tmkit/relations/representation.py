"""Coordinate representations: numbers of a relation, and the constraint that they put on its meaning.

Each representation says what it requires (:meth:`Representation.find_violations`), and every operation
checks its results again. Behind all representations of a relation stand the same *numbers*: arrays
from which each is made, and which each gives. Of a position, velocity or force they are its vector,
of a twist ``(v, w)``, of a wrench ``(f, t)``, of a pose ``(p, Q)``. Of an orientation they are
``(Q,)``, the rotation that takes the reference axes to the axes, as a matrix in the coordinate
frame. Expressed in the reference orientation frame it is the rotation matrix. SI units.

Invariants: a representation holds read-only arrays of finite numbers; a matrix that is no rotation
    is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.initialization import initialize
from tmkit.relations.violations import SemanticError, Violation, rule_error

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

Vector = NDArray[np.float64]
Numbers = tuple[Vector, ...]
"""The arrays behind a representation, as the table above says."""

ROTATION_TOLERANCE = 1e-6
"""How far ``R R^T`` may be from the identity, and a norm from 1, in what is given."""


@runtime_checkable
class Representation(Protocol):
    """Numbers for a relation, in one of several forms.

    Attributes:
        relation: name of the relation that it represents.
    """

    relation: ClassVar[str]

    @property
    def numbers(self) -> Numbers:
        """The arrays behind it."""
        ...

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from the arrays.

        Args:
            numbers: the arrays.
            like: one whose settings are taken over, such as the sequence of Euler angles.

        Raises:
            SemanticError: the numbers cannot be represented so.
        """
        ...

    def find_violations(self, coord: Any) -> Sequence[Violation]:
        """Return what keeps a relation with these coordinates from being represented so."""
        ...


def array_of(
    values: ArrayLike, shape: tuple[int, ...], what: str, *, unit: str = "", is_batch: bool = False
) -> Vector:
    """Return a read-only copy of an array of finite numbers in SI units, or raise SemanticError.

    A quantity of :mod:`pint` is converted to ``unit``, dimensionless by default. With ``is_batch``
    one more dimension in front is accepted; ``what`` they are is said in messages.
    """
    try:
        values = _convert_units(values, unit, what)
        if isinstance(values, str) or np.asarray(values).dtype.kind in "US":
            raise ValueError("text")
        array = np.array(values, dtype=float)
    except SemanticError:
        raise
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
    """Return a time in seconds, given so or as a quantity of :mod:`pint`; SemanticError where it is no finite time."""
    return (
        dt if type(dt) is float and math.isfinite(dt) else float(array_of(dt, (), "time", unit="s"))
    )


def nonzero_seconds(dt: float) -> float:
    """Return a time in seconds that may be divided by; SemanticError where it is zero or not finite."""
    made = seconds(dt)
    if made == 0.0:
        raise rule_error("differentiate", "time goes by between the two", "0 s")
    return made


def _convert_units(quantity: Any, unit: str, what: str) -> Any:
    """Return the numbers of a quantity in a unit, or of a list that may hold some; anything else as it is."""
    if isinstance(quantity, (list, tuple)):
        return [_convert_units(value, unit, what) for value in quantity]
    if not (hasattr(quantity, "magnitude") and hasattr(quantity, "to")):
        return quantity
    try:
        return quantity.to(unit or "dimensionless").magnitude
    except Exception as error:  # whatever the library of units raises for a wrong dimension
        rule = f"it is given in {unit or 'plain numbers'}, or what converts to it"
        raise rule_error(what, rule, f"{type(error).__name__}: {error}") from error


def rotation_class() -> type[Rotation]:
    """Return scipy's class of rotations, which is imported when it is first needed: it costs more than all of tmkit."""
    from scipy.spatial.transform import Rotation

    return Rotation


def rotation_of(values: ArrayLike, what: str) -> Vector:
    """Return a read-only rotation matrix (3, 3), or a batch (N, 3, 3); a SemanticError gives the defect."""
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
    """Make a representation from read-only arrays that are known to be right, such as products of rotations."""
    made = object.__new__(cls)
    initialize(made, **arrays)
    return made


class Plain:
    """What most representations share: no constraint, equality of their arrays."""

    relation: ClassVar[str]
    # whether the class alone, not its numbers, says which coordinates it allows
    is_settled: ClassVar[bool] = False
    dimensions: ClassVar[int] = 0  # of the array of one relation; 0 where there are no batches

    @property
    def size(self) -> int | None:
        """The number of relations in a batch; None where this is one."""
        array = next(iter(vars(self).values()))
        return len(array) if 0 < self.dimensions < array.ndim else None

    @property
    def numbers(self) -> Numbers:
        """The arrays behind it, as :mod:`tmkit.relations.representation` lists them."""
        return self._numbers()

    def _numbers(self) -> Numbers:
        raise NotImplementedError

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Create the representation from the numbers of its relation (:mod:`tmkit.relations.representation`).

        Args:
            numbers: the arrays; those that are kept as they are, vectors and rotation matrices, are
                not checked.
            like: one that settles what the numbers leave open. It gives the sequence of Euler
                angles (ZYX by default) and the axis of what does not turn or is zero (x by
                default). It gives the orientation or pose of a rate (the identity by default, but
                the angles of Euler angle rates have to be given).

        Raises:
            SemanticError: the numbers do not determine it (two axes of Euler angles coincide), or
                are out of range.
        """
        return cls._of(numbers, like)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        raise NotImplementedError

    @classmethod
    def find_violations(cls, coord: Any) -> Sequence[Violation]:
        """Return nothing: any coordinates will do."""
        del coord
        return ()


class Multiplied(Plain):
    """What is used by multiplying has to be expressed in its reference orientation frame."""

    what: ClassVar[str]

    @classmethod
    def find_violations(cls, coord: Any) -> Sequence[Violation]:
        """Return whether the coordinate frame is not the reference orientation frame."""
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
    """What relates a frame to a frame: its points are the origins of its orientation frames."""

    what: ClassVar[str]

    @classmethod
    def find_violations(cls, coord: Any) -> Sequence[Violation]:
        """Return whether it is not the pose of a frame relative to a frame."""
        broken = []
        for which, point, ori in (
            ("", coord.point, coord.ori),
            ("reference ", coord.ref_point, coord.ref_ori),
        ):
            if point != ori:
                repair = (
                    f"use vector and matrix, which allow any {which}point:"
                    " with_representation(VectorAndMatrix)"
                )
                rule = (
                    f"the {which}point of {cls.what} is the origin of its {which}orientation frame"
                )
                broken.append(
                    Violation(
                        rule, f"{which}point {point}", f"{which}orientation frame {ori}", repair
                    )
                )
        return broken


class FrameToFrame(OfFrames, Multiplied):
    """What takes the coordinates in one frame to those in another relates these two frames, and is expressed there."""

    @classmethod
    def find_violations(cls, coord: Any) -> Sequence[Violation]:
        """Return whether it is not the pose of a frame relative to a frame, expressed there."""
        if coord.point == coord.ori and coord.ref_point == coord.ref_ori == coord.coord:
            return ()
        return [*super().find_violations(coord), *super(OfFrames, cls).find_violations(coord)]


@dataclass(frozen=True, eq=False)
class Vector3(Plain):
    """Three numbers in a unit."""

    vector: Vector
    unit: ClassVar[str]
    is_settled: ClassVar[bool] = True
    dimensions = 1
    called: ClassVar[str] = ""  # in messages; the relation by default

    def __init__(self, vector: ArrayLike) -> None:
        initialize(
            self,
            vector=array_of(
                vector, (3,), self.called or self.relation, unit=self.unit, is_batch=True
            ),
        )

    def _numbers(self) -> Numbers:
        return (self.vector,)

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        return from_arrays(cls, {"vector": numbers[0]})


def unit_vector(values: ArrayLike, length: int, what: str) -> Vector:
    """Return a read-only unit vector (length,), or vectors (N, length); SemanticError where a norm is not 1."""
    made = array_of(values, (length,), what, is_batch=length == 4)
    norms = np.atleast_1d(np.linalg.norm(made, axis=-1))
    wrong = norms[np.abs(norms - 1.0) > ROTATION_TOLERANCE]
    if len(wrong):
        raise rule_error(what, "its norm is 1", f"norm {wrong[0]:.9g}")
    return made


def require_orthogonal(unit: Vector, other: Vector, *, which: str, what: str) -> None:
    """Refuse a vector of any length that is not orthogonal to a unit vector; the SemanticError gives their product."""
    defect = abs(float(unit @ other))
    if defect > ROTATION_TOLERANCE * (1.0 + float(np.linalg.norm(other))):
        raise rule_error(what, f"{which} are orthogonal", f"their product is {defect:.3g}")


def skew(v: Vector) -> Vector:
    """Return the matrix (3, 3) of the cross product with a vector."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def quaternion_product(a: Vector, b: Vector) -> Vector:
    """Return the Hamilton product of two quaternions (4,), vector part first."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])
