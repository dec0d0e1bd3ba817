"""Representations of velocities and forces: vectors, six-vectors, lines in space, and rates.

The moment of a line is about the point of the twist or wrench. With coordinates this point must lie
on the line, so the moment is zero and the line is located by the point.

A rate is a velocity as the derivative of the matrix, quaternion or Euler angles of an orientation
or pose. It stores that orientation or pose. With its coordinates, it also checks that the velocity
is expressed in its reference frame.

Invariants: ``Class.of(x.numbers, like=x).numbers`` are ``x.numbers`` to rounding, for every class
    of the same relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.initialization import initialize
from tmkit.relations.representation import (
    ROTATION_TOLERANCE,
    Numbers,
    Plain,
    Vector,
    Vector3,
    array_of,
    from_arrays,
    quaternion_product,
    require_orthogonal,
    rotation_class,
    rotation_of,
    skew,
    unit_vector,
)
from tmkit.relations.representations.poses import EulerAngles, HomogeneousMatrix
from tmkit.relations.semantics import OrientationCoord, PoseCoord
from tmkit.relations.violations import SemanticError, Violation, rule_error
from tmkit.spatial.plain import read_only

if TYPE_CHECKING:
    from tmkit.relations.semantics import Coord, TwistCoord, WrenchCoord

_MAX_DISTANCE = 1e9
"""Largest distance of an axis, beyond which rounding removes all digits [m]."""


@dataclass(frozen=True, eq=False)
class Vector6(Plain):
    """Vector (6,) of two halves."""

    vector: Vector
    is_settled = True
    dimensions = 1
    units: ClassVar[tuple[str, str]]
    halves: ClassVar[tuple[slice, slice]] = (slice(3), slice(3, 6))
    _units: ClassVar[str]  # of each of the six numbers

    def __init_subclass__(cls) -> None:
        units = cls.units if cls.halves[0] == slice(3) else cls.units[::-1]
        cls._units = " ".join(unit for unit in units for _ in range(3))

    def __init__(self, vector: ArrayLike) -> None:
        numbers = array_of(vector, (6,), self.relation, unit=self._units, is_batch=True)
        initialize(self, vector=numbers)

    @classmethod
    def of_parts(cls, first: ArrayLike, second: ArrayLike) -> Self:
        """Create the representation from two vectors, each in its own unit.

        Args:
            first: (3,) linear velocity [m/s] or force [N].
            second: (3,) angular velocity [rad/s] or moment [N m].

        Raises:
            SemanticError: if a part is not three finite numbers, or has another physical dimension.
        """
        parts = zip((first, second), cls.units, strict=True)
        return cls.of(tuple(array_of(part, (3,), cls.relation, unit=unit) for part, unit in parts))

    def _numbers(self) -> Numbers:
        first, second = self.halves
        return self.vector[..., first], self.vector[..., second]

    @classmethod
    def _of(cls, numbers: Numbers, _like: Self | None, /) -> Self:
        vector = np.empty((*numbers[0].shape[:-1], 6))
        first, second = cls.halves
        vector[..., first], vector[..., second] = numbers
        return from_arrays(cls, {"vector": read_only(vector)})


@dataclass(frozen=True, eq=False)
class Line(Plain):
    """Line with an intensity about it and one along it.

    ``Class.of(relation.numbers)`` computes the line of any twist or wrench. The point of a relation
    in this form is on the line, where the velocity or moment is parallel to it. The component
    across the line is at most 1e-6 of the component along it plus the other part times 1 m. The
    line of a pure translation or moment has no place, so any point is on it.

    Args:
        direction: (3,) unit vector along the line.
        moment: (3,) cross product of a point of the line, relative to the point of the relation,
            and the direction [m].
        about: intensity about the line: angular velocity [rad/s], or moment of a wrench [N m].
        along: intensity along the line: linear velocity [m/s], or force of a wrench [N].
    """

    direction: Vector
    moment: Vector
    about: float
    along: float
    units: ClassVar[tuple[str, str]]  # about the line, and along it
    what: ClassVar[str]
    # True if the line vector is the intensity about the line, and the second of the numbers.
    is_turn: ClassVar[bool]

    def __init__(
        self, direction: ArrayLike, moment: ArrayLike, *, about: float, along: float
    ) -> None:
        initialize(
            self,
            direction=unit_vector(direction, 3, "direction of an axis"),
            moment=array_of(moment, (3,), "moment of an axis", unit="m"),
            about=float(array_of(about, (), "intensity about an axis", unit=self.units[0])),
            along=float(array_of(along, (), "intensity along an axis", unit=self.units[1])),
        )
        require_orthogonal(
            self.direction, self.moment, pair="direction and moment of a line", what="axis"
        )

    @property
    def point(self) -> Vector:
        """Point (3,) of the axis nearest to the point of the relation, relative to it."""
        return read_only(np.cross(self.direction, self.moment))

    def find_violations(self, coord: Coord) -> Sequence[Violation]:  # type: ignore[override]  # depends on the numbers
        """Return a violation if the point of a twist or wrench is not on the line."""
        coord = cast("TwistCoord | WrenchCoord", coord)
        bound, free = self._intensities()
        distance = float(np.linalg.norm(self.moment))
        if abs(bound) * distance <= ROTATION_TOLERANCE * (abs(bound) + abs(free)):
            return ()
        nearest = ", ".join(f"{value:.6g}" for value in self.point + 0.0)
        repair = (
            f"change the point with change_point; the nearest point of the axis is at [{nearest}] m"
            f" from {coord.point} in the axes of {coord.coord}; or use a six-vector, which allows"
            " any point"
        )
        rule = f"{self.what} passes through the point of the {self.relation.lower()}"
        return [Violation(rule, f"point {coord.point}", f"the axis {distance:.6g} m away", repair)]

    def _intensities(self) -> tuple[float, float]:
        """Return the intensity of the line vector, and that of the other part."""
        return (self.about, self.along) if self.is_turn else (self.along, self.about)

    def _numbers(self) -> Numbers:
        bound, free = self._intensities()
        line = read_only(bound * self.direction)
        moment = read_only(free * self.direction + bound * self.moment)
        return (moment, line) if self.is_turn else (line, moment)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        bound, free = numbers[::-1] if cls.is_turn else numbers
        size = float(np.linalg.norm(bound))
        if size == 0.0:
            along = float(np.linalg.norm(free))
            direction = np.array([1.0, 0.0, 0.0]) if like is None else like.direction
            if along > 0.0:
                direction = free / along
            moment = np.zeros(3)
        else:
            direction = bound / size
            along = float(direction @ free)
            across = free - along * direction
            if float(np.linalg.norm(across)) > _MAX_DISTANCE * size:
                rule = f"the axis lies within {_MAX_DISTANCE:.0e} m"
                raise rule_error("axis", rule, "it is farther away: use a six-vector")
            moment = across / size
        if cls.is_turn:
            return cls(direction, moment, about=size, along=along)
        return cls(direction, moment, about=along, along=size)


class LinearVelocityVector(Vector3):
    """Vector (3,) [m/s]."""

    relation = "LinearVelocity"
    unit = "m/s"


class AngularVelocityVector(Vector3):
    """Vector (3,) [rad/s]."""

    relation = "AngularVelocity"
    unit = "rad/s"


class TwistVector(Vector6):
    """Vector (6,): linear part [m/s], then angular part [rad/s]."""

    relation = "Twist"
    units = ("m/s", "rad/s")


class AngularFirstTwist(Vector6):
    """Vector (6,) in the order of the papers: angular part [rad/s], then linear part [m/s]."""

    relation = "Twist"
    units = ("m/s", "rad/s")
    halves = (slice(3, 6), slice(3))


class InstantaneousScrewAxis(Line):
    """Twist as rotation about a line (``about`` [rad/s]) and motion along it (``along`` [m/s]).

    The point of the twist lies on the line.
    """

    relation = "Twist"
    what = "an instantaneous screw axis"
    units = ("rad/s", "m/s")
    is_turn = True


class ForceVector(Vector3):
    """Vector (3,) [N]."""

    relation = "Force"
    unit = "N"


class TorqueVector(Vector3):
    """Vector (3,) [N m]."""

    relation = "Torque"
    unit = "N*m"


class WrenchVector(Vector6):
    """Vector (6,): force [N], then moment [N m]."""

    relation = "Wrench"
    units = ("N", "N*m")


class MomentFirstWrench(Vector6):
    """Vector (6,): moment [N m], then force [N]."""

    relation = "Wrench"
    units = ("N", "N*m")
    halves = (slice(3, 6), slice(3))


class WrenchAxis(Line):
    """Wrench as a force along its central axis (``along`` [N]) and a moment (``about`` [N m]).

    The point of the wrench lies on the axis.
    """

    relation = "Wrench"
    what = "the axis of a wrench"
    units = ("N*m", "N")
    is_turn = False


class _Rate(Plain):
    what: str
    coord_of: OrientationCoord | PoseCoord | None

    def find_violations(self, coord: Any) -> Sequence[Violation]:  # type: ignore[override]  # depends on the stored pose
        """Return violations if a velocity is not that of the stored orientation or pose.

        The velocity must be expressed in its reference orientation frame.
        """
        constant, what = self.coord_of, self.what
        if constant is None:
            return []
        violations = []
        pairs = [
            ("body", constant.body, "body"),
            ("ref_body", constant.ref_body, "reference body"),
            ("coord", constant.ref_ori, ""),
        ]
        if isinstance(constant, PoseCoord):
            pairs.append(("point", constant.point, "point"))
        for name, expected, label in pairs:
            actual = getattr(coord, name)
            if actual == expected:
                continue
            if label:
                rule = f"{what} is that of its pose"
                sides = f"{label} {actual}", f"{label} {expected} of the pose"
            else:
                rule = f"{what} is expressed in the reference orientation frame of its orientation"
                sides = f"coordinate frame {actual}", f"reference orientation frame {expected}"
            violations.append(Violation(rule, *sides))
        return violations


@dataclass(frozen=True, eq=False)
class RotationMatrixRate(_Rate):
    """Derivative (3, 3) of a rotation matrix, with the matrix: ``Rdot = [w] R``.

    Attributes:
        matrix: (3, 3) rotation matrix.
        rate: (3, 3) derivative [1/s].
        coord_of: coordinates of the orientation; if given, the velocity must be that of this
            orientation.
    """

    matrix: Vector
    rate: Vector
    coord_of: OrientationCoord | None = None
    relation = "AngularVelocity"
    what = "the derivative of a rotation matrix"

    def __init__(
        self, matrix: ArrayLike, rate: ArrayLike, *, coord_of: OrientationCoord | None = None
    ) -> None:
        rotation = rotation_of(matrix, "rotation matrix")
        initialize(
            self,
            matrix=rotation,
            rate=array_of(rate, (3, 3), self.what, unit="1/s"),
            coord_of=coord_of,
        )
        _require_skew(self.rate @ self.matrix.T, self.what)

    def _numbers(self) -> Numbers:
        return (_unskew(self.rate @ self.matrix.T),)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        matrix = like.matrix if like is not None else np.eye(3)
        return cls(
            matrix, skew(numbers[0]) @ matrix, coord_of=like.coord_of if like is not None else None
        )


@dataclass(frozen=True, eq=False)
class QuaternionRate(_Rate):
    """Derivative (4,) of a unit quaternion, with the quaternion: ``qdot = 0.5 (w, 0) q``.

    Args:
        quat_xyzw: (4,) unit quaternion [x, y, z, w].
        rate_xyzw: (4,) derivative, orthogonal to the quaternion [1/s].
        coord_of: coordinates of the orientation; if given, the velocity must be that of this
            orientation.
    """

    quat_xyzw: Vector
    rate_xyzw: Vector
    coord_of: OrientationCoord | None = None
    relation = "AngularVelocity"
    what = "the derivative of a unit quaternion"

    def __init__(
        self,
        quat_xyzw: ArrayLike,
        rate_xyzw: ArrayLike,
        *,
        coord_of: OrientationCoord | None = None,
    ) -> None:
        quat = unit_vector(quat_xyzw, 4, "unit quaternion")
        initialize(
            self,
            quat_xyzw=quat,
            rate_xyzw=array_of(rate_xyzw, (4,), self.what, unit="1/s"),
            coord_of=coord_of,
        )
        pair = "a unit quaternion and its derivative"
        require_orthogonal(self.quat_xyzw, self.rate_xyzw, pair=pair, what=self.what)

    def _numbers(self) -> Numbers:
        conjugate = self.quat_xyzw * [-1.0, -1.0, -1.0, 1.0]
        return (read_only(2.0 * quaternion_product(self.rate_xyzw, conjugate)[:3]),)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        quat = like.quat_xyzw if like is not None else np.array([0.0, 0.0, 0.0, 1.0])
        rate = 0.5 * quaternion_product(np.array([*numbers[0], 0.0]), quat)
        return cls(quat, rate, coord_of=like.coord_of if like is not None else None)


@dataclass(frozen=True, eq=False)
class EulerAngleRates(_Rate):
    """Derivatives (3,) of Euler angles [rad/s], with the angles.

    Args:
        angles: Euler angles.
        rates: (3,) derivatives in the order of the sequence [rad/s].
        coord_of: coordinates of the orientation; if given, the velocity must be that of this
            orientation.
    """

    angles: EulerAngles
    rates: Vector
    coord_of: OrientationCoord | None = None
    relation = "AngularVelocity"
    what = "a set of Euler angle rates"

    def __init__(
        self, angles: EulerAngles, rates: ArrayLike, *, coord_of: OrientationCoord | None = None
    ) -> None:
        initialize(
            self,
            angles=angles,
            rates=array_of(rates, (3,), self.what, unit="rad/s"),
            coord_of=coord_of,
        )

    def _numbers(self) -> Numbers:
        return (read_only(_rate_axes(self.angles) @ self.rates),)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        if like is None:
            raise rule_error(
                cls.what, "rates need the angles of an orientation", "no angles were given"
            )
        axes = _rate_axes(like.angles)
        if abs(float(np.linalg.det(axes))) < ROTATION_TOLERANCE:
            rule = "rates are determined only if no two axes of the angles coincide"
            raise rule_error(cls.what, rule, f"sequence {like.angles.sequence}")
        return cls(like.angles, np.linalg.solve(axes, numbers[0]), coord_of=like.coord_of)


@dataclass(frozen=True, eq=False)
class PoseMatrixRate(_Rate):
    """Derivative (4, 4) of a homogeneous matrix, with the matrix.

    It represents the twist of the frame at its own origin.

    Attributes:
        matrix: (4, 4) homogeneous matrix.
        rate: (4, 4) derivative [m/s, 1/s].
        coord_of: coordinates of the pose; if given, the twist must be that of its point, in its
            reference axes.
    """

    matrix: Vector
    rate: Vector
    coord_of: PoseCoord | None = None
    relation = "Twist"
    what = "the derivative of a homogeneous matrix"

    def __init__(
        self, matrix: ArrayLike, rate: ArrayLike, *, coord_of: PoseCoord | None = None
    ) -> None:
        pose = HomogeneousMatrix(matrix)
        initialize(
            self,
            matrix=pose.matrix,
            rate=array_of(rate, (4, 4), self.what, unit="1/s 1/s 1/s m/s"),
            coord_of=coord_of,
        )
        if self.rate[3].any():
            raise rule_error(self.what, "its last row is zero", np.array2string(self.rate[3]))
        _require_skew(self.rate[:3, :3] @ self.matrix[:3, :3].T, self.what)
        if coord_of is not None:
            violations = pose.find_violations(coord_of)
            if violations:
                raise SemanticError.of(self.what, violations)

    def _numbers(self) -> Numbers:
        return self.rate[:3, 3], _unskew(self.rate[:3, :3] @ self.matrix[:3, :3].T)

    @classmethod
    def _of(cls, numbers: Numbers, like: Self | None, /) -> Self:
        matrix = like.matrix if like is not None else np.eye(4)
        rate = np.zeros((4, 4))
        rate[:3, 3], rate[:3, :3] = numbers[0], skew(numbers[1]) @ matrix[:3, :3]
        return cls(matrix, rate, coord_of=like.coord_of if like is not None else None)


def _unskew(m: Vector) -> Vector:
    return read_only(0.5 * np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]))


def _require_skew(m: Vector, what: str) -> None:
    defect = float(np.abs(m + m.T).max())
    if defect > ROTATION_TOLERANCE * (1.0 + float(np.abs(m).max())):
        raise rule_error(what, "Rdot R^T is skew-symmetric", f"it differs by {defect:.3g}")


def _rate_axes(angles: EulerAngles) -> Vector:
    """Return the rotation axes (3, 3) of Euler angle rates, as columns in the reference frame."""
    sequence, values = angles.sequence, angles.angles
    is_fixed = sequence.islower()  # fixed axes are moving axes in the opposite order
    order = (2, 1, 0) if is_fixed else (0, 1, 2)
    rotation, axes = np.eye(3), np.zeros((3, 3))
    for i in order:
        letter = "xyz".index(sequence[i].lower())
        axes[:, i] = rotation[:, letter]
        rotation = (
            rotation @ rotation_class().from_rotvec(np.eye(3)[letter] * values[i]).as_matrix()
        )
    return axes
