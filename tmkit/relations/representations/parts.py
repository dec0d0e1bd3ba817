"""What representations are made of: constraints on their coordinates, unit vectors, quaternions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from tmkit.relations.representation import ROTATION_TOLERANCE, Numbers, Vector, array_of
from tmkit.relations.violations import SemanticError, Violation


class Plain:
    """What most representations share: no constraint, equality of their arrays."""

    relation: ClassVar[str]
    is_settled: ClassVar[bool] = False  # whether the class alone, not its numbers, says which coordinates it allows
    dimensions: ClassVar[int] = 0  # of the array of one relation; 0 where there are no batches

    @property
    def size(self) -> int | None:
        """The number of relations in a batch; None where this is one."""
        array = next(iter(vars(self).values()))
        return len(array) if 0 < self.dimensions < array.ndim else None

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Create the representation from the numbers of its relation (:mod:`tmkit.relations.representation`).

        Args:
            numbers: the arrays; those that are kept as they are, vectors and rotation matrices, are not checked.
            like: one that settles what the numbers leave open: the sequence of Euler angles (ZYX by default), the axis
                of what does not turn or is zero (x by default), the orientation or pose of a rate (the identity by
                default, but the angles of Euler angle rates have to be given).

        Raises:
            SemanticError: the numbers do not determine it, as where two axes of Euler angles coincide, or are out of
                its range.
        """
        return cls._of(numbers, like)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        raise NotImplementedError

    @classmethod
    def broken_by(cls, coord: Any) -> Sequence[Violation]:
        """Return nothing: any coordinates will do."""
        del coord
        return ()


class Multiplied(Plain):
    """What is used by multiplying has to be expressed in its reference orientation frame."""

    what: ClassVar[str]

    @classmethod
    def broken_by(cls, coord: Any) -> Sequence[Violation]:
        """Return whether the coordinate frame is not the reference orientation frame."""
        if coord.coord == coord.ref_ori:
            return []
        free = "FiniteScrew or VectorAndRotationVector" if coord.relation == "Pose" else "a rotation vector"
        return [
            Violation(
                f"{cls.what} is expressed in its reference orientation frame",
                f"coordinate frame {coord.coord}",
                f"reference orientation frame {coord.ref_ori}",
                f"express it there, or use a representation that allows it ({free})",
            )
        ]


class OfFrames(Plain):
    """What relates a frame to a frame: its points are the origins of its orientation frames."""

    what: ClassVar[str]

    @classmethod
    def broken_by(cls, coord: Any) -> Sequence[Violation]:
        """Return whether it is not the pose of a frame relative to a frame."""
        broken = []
        for which, point, ori in (("", coord.point, coord.ori), ("reference ", coord.ref_point, coord.ref_ori)):
            if point != ori:
                repair = f"use vector and matrix, which allow any {which}point: represented_by(VectorAndMatrix)"
                rule = f"the {which}point of {cls.what} is the origin of its {which}orientation frame"
                broken.append(Violation(rule, f"{which}point {point}", f"{which}orientation frame {ori}", repair))
        return broken


class FrameToFrame(OfFrames, Multiplied):
    """What takes the coordinates in one frame to those in another relates these two frames, and is expressed there."""

    @classmethod
    def broken_by(cls, coord: Any) -> Sequence[Violation]:
        """Return whether it is not the pose of a frame relative to a frame, expressed there."""
        if coord.point == coord.ori and coord.ref_point == coord.ref_ori == coord.coord:
            return ()
        return [*super().broken_by(coord), *super(OfFrames, cls).broken_by(coord)]


def unit_vector(values: ArrayLike, length: int, what: str) -> Vector:
    """Return a read-only unit vector (length,), or vectors (N, length); SemanticError where a norm is not 1."""
    made = array_of(values, (length,), what, is_batch=length == 4)
    norms = np.atleast_1d(np.linalg.norm(made, axis=-1))
    wrong = np.abs(norms - 1.0) > ROTATION_TOLERANCE
    if wrong.any():
        norm = float(norms[wrong][0])
        raise SemanticError.of(what, [Violation("its norm is 1", f"norm {norm:.9g}")])
    return made


def require_orthogonal(unit: Vector, other: Vector, *, which: str, what: str) -> None:
    """Refuse a vector of any length that is not orthogonal to a unit vector; the SemanticError gives their product."""
    defect = abs(float(unit @ other))
    if defect > ROTATION_TOLERANCE * (1.0 + float(np.linalg.norm(other))):
        raise SemanticError.of(what, [Violation(f"{which} are orthogonal", f"their product is {defect:.3g}")])


def quaternion_product(a: Vector, b: Vector) -> Vector:
    """Return the Hamilton product of two quaternions (4,), vector part first."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])
