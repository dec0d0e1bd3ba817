"""Relations with numbers: what is related to what, in which frame it is expressed, and how far it is.

``SemanticPose(PoseCoord("{g}|C", "{h}|D", "[h]"), matrix)`` holds a representation as it was given and gives back
exactly that. Operations check the semantics of their operands (:mod:`tmkit.relations.rules`), compute, and check that
the result can be represented as the operand was: the inverse of a homogeneous matrix, expressed where the matrix was,
is refused; ``inverse2`` is what one wants. :meth:`SemanticRelation.in_representation` changes the representation.

Plain arrays are taken for the representation that their shape suggests: (3, 3) a rotation matrix, (4,) a unit
quaternion, (3,) a vector, (4, 4) a homogeneous matrix, (6,) a six-vector with its linear part first, a
:class:`tmkit.Pose` a vector and a quaternion. Numbers are in SI units; quantities of pint are converted.

Invariants: values are immutable. With the checks on, no value exists whose representation its coordinates do not allow.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tmkit.relations import representations as reps
from tmkit.relations import representations_motion as motion
from tmkit.relations import rules
from tmkit.relations.representation import Numbers, Representation, Vector, frozen, rotations
from tmkit.relations.semantics import (
    AngularVelocityCoord,
    ForceCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.violations import SemanticError, Violation, checks_are_on
from tmkit.spatial import Pose

__all__ = [
    "SemanticAngularVelocity",
    "SemanticForce",
    "SemanticLinearVelocity",
    "SemanticOrientation",
    "SemanticPose",
    "SemanticPosition",
    "SemanticRelation",
    "SemanticTorque",
    "SemanticTwist",
    "SemanticWrench",
]

_Representation = TypeVar("_Representation", bound=Representation)


class SemanticRelation:
    """Base of all relations with numbers.

    Attributes:
        coord: what is related to what, and the frame of expression.
        representation: the numbers, as they were given or as an operation gives them.
    """

    __slots__ = ("coord", "representation")
    coord_class: ClassVar[type]
    by_shape: ClassVar[dict[tuple[int, ...], Any]]
    coord: Any
    representation: Any

    def __init__(self, coord: Any, values: Representation | ArrayLike | Pose) -> None:
        """Give numbers to coordinates.

        Args:
            coord: the coordinates, of the class that belongs to this relation.
            values: a representation, or an array or pose that suggests one.

        Raises:
            SemanticError: the representation is not one of this relation, or its constraint does not hold.
        """
        if not isinstance(coord, self.coord_class):
            rule = f"a {type(self).__name__} has coordinates of class {self.coord_class.__name__}"
            raise SemanticError.of(type(self).__name__, [Violation(rule, repr(coord))])
        self._fill(coord, self._represented(values))

    def _fill(self, coord: Any, representation: Any) -> None:
        if checks_are_on():
            broken = representation.broken_by(coord)
            if broken:
                raise SemanticError.of(f"{type(representation).__name__} for {coord!r}", broken)
        object.__setattr__(self, "coord", coord)
        object.__setattr__(self, "representation", representation)

    @classmethod
    def _of(cls, coord: Any, representation: Any) -> Self:
        made = object.__new__(cls)
        made._fill(coord, representation)
        return made

    def _represented(self, values: Any) -> Any:
        relation = self.coord_class.relation  # type: ignore[attr-defined]
        if isinstance(values, Representation):
            if values.relation == relation:
                return values
            rule = f"a representation of a {relation}"
            raise SemanticError.of(type(self).__name__, [Violation(rule, type(values).__name__)])
        if isinstance(values, Pose):
            values_of_pose = self.by_shape.get(())
            if values_of_pose is not None:
                return values_of_pose(values)
        shape = np.shape(getattr(values, "magnitude", values))
        chosen = self.by_shape.get(shape) if shape else None
        if chosen is None:
            shapes = ", ".join(str(known) for known in self.by_shape if known)
            rule = f"the numbers of a {relation} have one of the shapes {shapes}"
            raise SemanticError.of(type(self).__name__, [Violation(rule, f"shape {shape}")])
        return chosen(values)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; '{name}' was to be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.coord, self.representation)

    def __repr__(self) -> str:
        notation = ", ".join(map(repr, self.coord.notation()))
        return f"{type(self).__name__}({notation}; {type(self.representation).__name__})"

    @property
    def numbers(self) -> Numbers:
        """The arrays behind the representation; see :mod:`tmkit.relations.representation`."""
        numbers: Numbers = self.representation.numbers
        return numbers

    def in_representation(self, representation: type[_Representation], *, like: Any = None) -> _Representation:
        """Return the numbers in another representation.

        Args:
            representation: its class.
            like: one whose settings are taken over: the sequence of Euler angles, the orientation of rates.

        Raises:
            SemanticError: the representation cannot say this relation.
        """
        if not hasattr(representation, "relation") or representation.relation != self.coord.relation:
            rule = f"a representation of a {self.coord.relation}"
            raise SemanticError.of("in_representation", [Violation(rule, representation.__name__)])
        if type(self.representation) is representation and like is None:
            given: _Representation = self.representation
            return given
        made = representation.of(self.numbers, like=like)
        broken = made.broken_by(self.coord) if checks_are_on() else ()
        if broken:
            raise SemanticError.of(f"{representation.__name__} for {self.coord!r}", broken)
        return made

    def represented_by(self, representation: type[Representation], *, like: Any = None) -> Self:
        """Return the same relation held in another representation.

        Raises:
            SemanticError: the representation cannot say this relation.
        """
        return self._of(self.coord, self.in_representation(representation, like=like))

    def _result(self, coord: Any, *numbers: Vector) -> Self:
        """Return a relation with other coordinates and numbers, in the representation of this one."""
        representation = self.representation
        made = type(representation).of(tuple(map(frozen, numbers)), like=representation)
        return self._of(coord, made)

    # -------------------------------------------------------------------------------------- what all relations can do

    def inverse(self) -> Self:
        """Return the relation the other way round, expressed in the same frame.

        Raises:
            SemanticError: the representation does not allow it, as a matrix does not; see ``inverse2``.
        """
        coord = rules.inverse(self.coord, is_matrix=False)
        return self._result(coord, *self._inverted())

    def _inverted(self) -> Numbers:
        return tuple(-number for number in self.numbers)

    def compose(self, other: Self) -> Self:
        """Return the composition with another relation of the same kind, whichever comes first in the chain.

        Forces, torques and wrenches are added. With the checks off, operands are taken in the order given.

        Raises:
            SemanticError: the two do not chain.
        """
        if not isinstance(other, type(self)):
            rule = f"a {self.coord.relation} is composed with another"
            raise SemanticError.of("compose", [Violation(rule, type(other).__name__)])
        coord, swapped = rules.compose(self.coord, other.coord)
        first, second = (other, self) if swapped else (self, other)
        return self._result(coord, *first._chained(second))

    def _chained(self, other: Self) -> Numbers:
        return tuple(a + b for a, b in zip(self.numbers, other.numbers, strict=True))

    def change_coordinate_frame(self, by: SemanticOrientation) -> Self:
        """Return the relation expressed in another frame.

        Args:
            by: the orientation of the frame of expression relative to the new one, expressed in the new one.

        Raises:
            SemanticError: ``by`` speaks of another frame, or the representation does not allow it.
        """
        coord = rules.change_coord(self.coord, by.coord, is_matrix=False)
        turned = by.numbers[0]
        return self._result(coord, *self._turned(turned))

    def _turned(self, turned: Vector) -> Numbers:
        return tuple(turned @ number for number in self.numbers)


class _Constant(SemanticRelation):
    """What positions, orientations and poses have in common."""

    __slots__ = ()

    def change_reference_body(self, body: str) -> Self:
        """Return the relation relative to another body, rigidly joined to its reference body; that is not checked."""
        return self._of(rules.change_ref_body(self.coord, body=body), self.representation)


class SemanticPosition(_Constant):
    """A position with numbers."""

    __slots__ = ()
    coord: PositionCoord
    coord_class = PositionCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(3,): reps.PositionVector}

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the position of another point of the same body; ``by`` is its position relative to the old one.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return self._result(rules.change_point(self.coord, by.coord), self.numbers[0] + by.numbers[0])

    def change_point_body(self, by: SemanticPosition) -> Self:
        """Return the position of a point of a rigidly joined body.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return self._result(rules.change_point_body(self.coord, by.coord), self.numbers[0] + by.numbers[0])

    def change_reference_point(self, by: SemanticPosition) -> Self:
        """Return the position relative to another point; ``by`` is that of the old reference point relative to it.

        Raises:
            SemanticError: ``by`` does not end at the reference point, or is expressed elsewhere.
        """
        return self._result(rules.change_ref_point(self.coord, by.coord), self.numbers[0] + by.numbers[0])

    def change_reference_point_body(self, by: SemanticPosition) -> Self:
        """Return the position relative to a point of a rigidly joined body.

        Raises:
            SemanticError: ``by`` does not end at the reference point, or is expressed elsewhere.
        """
        return self._result(rules.change_ref_point_body(self.coord, by.coord), self.numbers[0] + by.numbers[0])

    def differentiate(self, later: SemanticPosition, dt: float) -> SemanticLinearVelocity:
        """Return the mean velocity (m/s) over ``dt`` seconds; the frame of expression is fixed to the reference body.

        Raises:
            SemanticError: the two are not the same relation.
        """
        coord = rules.differentiate(self.coord, later.coord)
        return SemanticLinearVelocity(coord, (later.numbers[0] - self.numbers[0]) / dt)


class SemanticOrientation(_Constant):
    """An orientation with numbers."""

    __slots__ = ()
    coord: OrientationCoord
    coord_class = OrientationCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {
        (3, 3): reps.RotationMatrix,
        (4,): reps.UnitQuaternion,
        (3,): reps.RotationVector,
    }

    def _inverted(self) -> Numbers:
        return (self.numbers[0].T,)

    def _chained(self, other: Self) -> Numbers:
        (first,), (second,) = self.numbers, other.numbers
        is_own = self.coord.coord == self.coord.ref_ori and other.coord.coord == other.coord.ref_ori
        return (second @ first if is_own else first @ second,)

    def _turned(self, turned: Vector) -> Numbers:
        return (turned @ self.numbers[0] @ turned.T,)

    def inverse2(self) -> Self:
        """Return the orientation the other way round, expressed in its own reference frame.

        Raises:
            SemanticError: it is not expressed in its reference orientation frame.
        """
        return self._result(rules.inverse2(self.coord), self.numbers[0].T)

    def change_orientation_frame(self, by: SemanticOrientation) -> Self:
        """Return the orientation of another frame of the same body; ``by`` is its orientation relative to the old one.

        Raises:
            SemanticError: ``by`` does not begin at the orientation frame.
        """
        return self._result(rules.change_ori(self.coord, by.coord), self.numbers[0] @ by.numbers[0])

    def change_reference_orientation_frame(self, by: SemanticOrientation) -> Self:
        """Return the orientation relative to another frame; ``by`` is that of the old reference relative to it.

        Raises:
            SemanticError: ``by`` does not end at the reference orientation frame.
        """
        return self._result(rules.change_ref_ori(self.coord, by.coord), by.numbers[0] @ self.numbers[0])

    def differentiate(self, later: SemanticOrientation, dt: float) -> SemanticAngularVelocity:
        """Return the constant angular velocity (rad/s) that leads there in ``dt`` seconds, less than half a turn.

        Raises:
            SemanticError: the two are not the same relation.
        """
        coord = rules.differentiate(self.coord, later.coord)
        turned = rotations().from_matrix(later.numbers[0] @ self.numbers[0].T)
        return SemanticAngularVelocity(coord, turned.as_rotvec() / dt)


class SemanticPose(_Constant):
    """A pose with numbers."""

    __slots__ = ()
    coord: PoseCoord
    coord_class = PoseCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {
        (4, 4): reps.HomogeneousMatrix,
        (): reps.VectorAndQuaternion.of_pose,
    }

    @classmethod
    def of(cls, position: SemanticPosition, orientation: SemanticOrientation) -> Self:
        """Make a pose of a position and an orientation, held as vector and matrix.

        Raises:
            SemanticError: they speak of different bodies or frames of expression.
        """
        coord = rules.pose_of(position.coord, orientation.coord)
        return cls(coord, reps.VectorAndMatrix(position.numbers[0], orientation.numbers[0]))

    @property
    def position(self) -> SemanticPosition:
        """The position in it."""
        return SemanticPosition(rules.position_of(self.coord), reps.PositionVector(self.numbers[0]))

    @property
    def orientation(self) -> SemanticOrientation:
        """The orientation in it, as a matrix where it may be one, else as a rotation vector."""
        coord = rules.orientation_of(self.coord)
        chosen = reps.RotationMatrix if coord.coord == coord.ref_ori else reps.RotationVector
        return SemanticOrientation(coord, chosen.of((self.numbers[1],)))

    def _inverted(self) -> Numbers:
        p, turned = self.numbers
        return -p, turned.T

    def _chained(self, other: Self) -> Numbers:
        (p1, q1), (p2, q2) = self.numbers, other.numbers
        return p2 + q2 @ p1, q2 @ q1

    def _turned(self, turned: Vector) -> Numbers:
        p, q = self.numbers
        return turned @ p, turned @ q @ turned.T

    def inverse2(self) -> Self:
        """Return the pose the other way round, expressed in its own reference frame.

        Raises:
            SemanticError: it is not expressed in its reference orientation frame.
        """
        p, q = self.numbers
        return self._result(rules.inverse2(self.coord), -(q.T @ p), q.T)

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the pose with another point of the same body; ``by`` is its position relative to the old one.

        Raises:
            SemanticError: ``by`` does not begin at the point, or the representation does not allow it.
        """
        p, q = self.numbers
        return self._result(rules.change_point(self.coord, by.coord), p + by.numbers[0], q)

    def change_reference_point(self, by: SemanticPosition) -> Self:
        """Return the pose relative to another point; ``by`` is the position of the old reference point relative to it.

        Raises:
            SemanticError: ``by`` does not end at the reference point, or the representation does not allow it.
        """
        p, q = self.numbers
        return self._result(rules.change_ref_point(self.coord, by.coord), p + by.numbers[0], q)

    def change_orientation_frame(self, by: SemanticOrientation) -> Self:
        """Return the pose with another orientation frame; ``by`` is its orientation relative to the old one.

        Raises:
            SemanticError: ``by`` does not begin at the orientation frame, or the representation does not allow it.
        """
        p, q = self.numbers
        return self._result(rules.change_ori(self.coord, by.coord), p, q @ by.numbers[0])

    def change_reference_orientation_frame(self, by: SemanticOrientation) -> Self:
        """Return the pose relative to another orientation frame, expressed there.

        Raises:
            SemanticError: ``by`` does not end at the reference orientation frame, or the representation does not
                allow it.
        """
        p, q = self.numbers
        return self._result(rules.change_ref_ori(self.coord, by.coord), by.numbers[0] @ p, by.numbers[0] @ q)

    def differentiate(self, later: SemanticPose, dt: float, *, screw: bool = False) -> SemanticTwist:
        """Return the constant twist that leads there in ``dt`` seconds.

        Args:
            later: the same pose later, turned by less than half a turn.
            dt: seconds.
            screw: whether to give the twist of the reference frame's origin in its axes, instead of the frame's own.

        Raises:
            SemanticError: the two are not the same relation, or no poses between frames.
        """
        coord = rules.differentiate(self.coord, later.coord, screw=screw)
        now, then = _pose(self.numbers), _pose(later.numbers)
        moved = then @ now.inverse() if screw else now.inverse() @ then
        return SemanticTwist(coord, motion.TwistVector(_logarithm(moved) / dt))


class SemanticLinearVelocity(SemanticRelation):
    """The velocity of a point with numbers."""

    __slots__ = ()
    coord: LinearVelocityCoord
    coord_class = LinearVelocityCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(3,): motion.LinearVelocityVector}

    def change_point(self, by: SemanticPosition, angular: SemanticAngularVelocity) -> Self:
        """Return the velocity of another point of the body: ``v + w x a``.

        Raises:
            SemanticError: the operands do not belong together.
        """
        coord = rules.change_point(self.coord, by.coord, angular.coord)
        return self._result(coord, self.numbers[0] + _cross(angular.numbers[0], by.numbers[0]))

    def integrate(self, dt: float) -> SemanticPosition:
        """Return the way of the point in ``dt`` seconds; the frame of expression is fixed to the reference body."""
        return SemanticPosition(rules.integrate(self.coord), self.numbers[0] * dt)


class SemanticAngularVelocity(SemanticRelation):
    """The angular velocity of a body with numbers."""

    __slots__ = ()
    coord: AngularVelocityCoord
    coord_class = AngularVelocityCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(3,): motion.AngularVelocityVector}

    def integrate(self, dt: float) -> SemanticOrientation:
        """Return the orientation after ``dt`` seconds, relative to before, of the frame of expression."""
        turned = rotations().from_rotvec(self.numbers[0] * dt).as_matrix()
        return SemanticOrientation(rules.integrate(self.coord), reps.RotationMatrix(turned))


class SemanticTwist(SemanticRelation):
    """A twist with numbers."""

    __slots__ = ()
    coord: TwistCoord
    coord_class = TwistCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(6,): motion.TwistVector}

    @property
    def linear(self) -> SemanticLinearVelocity:
        """The velocity of its point."""
        c = self.coord
        return SemanticLinearVelocity(LinearVelocityCoord._of(c.point, c.body, c.ref_body, c.coord), self.numbers[0])

    @property
    def angular(self) -> SemanticAngularVelocity:
        """The angular velocity of its body."""
        c = self.coord
        return SemanticAngularVelocity(AngularVelocityCoord._of(c.body, c.ref_body, c.coord), self.numbers[1])

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the twist at another point of the body: ``v + w x a``.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        v, w = self.numbers
        return self._result(rules.change_point(self.coord, by.coord), v + _cross(w, by.numbers[0]), w)

    def change_point_body(self, by: SemanticPosition) -> Self:
        """Return the twist at a point of a rigidly joined body.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        v, w = self.numbers
        return self._result(rules.change_point_body(self.coord, by.coord), v + _cross(w, by.numbers[0]), w)

    def change_reference_body(self, by: SemanticTwist) -> Self:
        """Return the twist relative to another body; ``by`` is the twist of the old reference body relative to it.

        Raises:
            SemanticError: the two do not chain.
        """
        coord = rules.change_ref_body(self.coord, by.coord)
        return self._result(coord, *self._chained_any(by))

    def _chained_any(self, other: SemanticTwist) -> Numbers:
        return tuple(a + b for a, b in zip(self.numbers, other.numbers, strict=True))

    def integrate(self, dt: float) -> SemanticPose:
        """Return the pose after ``dt`` seconds relative to before, as a homogeneous matrix.

        Raises:
            SemanticError: its point and its frame of expression are not of one frame.
        """
        coord = rules.integrate(self.coord)
        v, w = self.numbers
        moved = Pose.exp(np.concatenate([v, w]) * dt)
        return SemanticPose(coord, reps.HomogeneousMatrix(moved.as_matrix()))

    def power(self, wrench: SemanticWrench) -> float:
        """Return the power (W) of a wrench.

        Raises:
            SemanticError: the two do not belong together.
        """
        return wrench.dot(self)


class SemanticForce(SemanticRelation):
    """A force with numbers."""

    __slots__ = ()
    coord: ForceCoord
    coord_class = ForceCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(3,): motion.ForceVector}


class SemanticTorque(SemanticRelation):
    """A torque with numbers."""

    __slots__ = ()
    coord: TorqueCoord
    coord_class = TorqueCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(3,): motion.TorqueVector}

    def change_point(self, by: SemanticPosition, force: SemanticForce) -> Self:
        """Return the moment about another point: ``t - a x f``.

        Raises:
            SemanticError: the operands do not belong together.
        """
        coord = rules.change_point(self.coord, by.coord, force.coord)
        return self._result(coord, self.numbers[0] - _cross(by.numbers[0], force.numbers[0]))


class SemanticWrench(SemanticRelation):
    """A wrench with numbers."""

    __slots__ = ()
    coord: WrenchCoord
    coord_class = WrenchCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(6,): motion.WrenchVector}

    @property
    def force(self) -> SemanticForce:
        """The force in it."""
        c = self.coord
        return SemanticForce(ForceCoord._of(c.body, c.ref_body, c.coord), self.numbers[0])

    @property
    def torque(self) -> SemanticTorque:
        """The moment in it."""
        c = self.coord
        return SemanticTorque(TorqueCoord._of(c.point, c.body, c.ref_body, c.coord), self.numbers[1])

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the wrench about another point of the body: the moment is ``t - a x f``.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        f, t = self.numbers
        return self._result(rules.change_point(self.coord, by.coord), f, t - _cross(by.numbers[0], f))

    def dot(self, twist: SemanticTwist) -> float:
        """Return the power (W) of the wrench on a twist.

        Raises:
            SemanticError: they speak of different bodies or points, or are expressed in different frames.
        """
        rules.dot(self.coord, twist.coord)
        (f, t), (v, w) = self.numbers, twist.numbers
        return float(f @ v + t @ w)


def _cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product of two vectors (3,); numpy's is ten times slower for single ones."""
    a0, a1, a2 = a.tolist()
    b0, b1, b2 = b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def _pose(numbers: Numbers) -> Pose:
    return Pose.from_rotation_matrix(numbers[0], numbers[1])


def _logarithm(pose: Pose) -> Vector:
    """Return the six-vector (6,), linear part first, whose exponential a pose is."""
    return np.array(pose.log())
