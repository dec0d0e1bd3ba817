"""Linear and angular velocities, twists, forces, torques and wrenches with numbers."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, Self, TypeVar, overload

import numpy as np

from tmkit._core import exp_each, log_each, right_jacobian
from tmkit.relations import representations as reps, rules, semantics as sem
from tmkit.relations.representation import Numbers, Vector, nonzero_seconds, seconds, skew
from tmkit.relations.semantic import values
from tmkit.relations.semantic.base import SemanticRelation, apply_binary, coord_of
from tmkit.relations.semantic.constant import SemanticOrientation, SemanticPose, SemanticPosition
from tmkit.relations.semantic.operations import Operation, apply_rule, plan_operation
from tmkit.relations.violations import checks_are_on, rule_error
from tmkit.spatial import Pose

_SHARED: dict[str, Operation] = {
    "compose": (operator.add, values.sum_jacobians),
    "inverse": (operator.neg, values.sum_jacobians),
    "change_coordinate_frame": (values.rotate_axes, values.rotated_axes_jacobians),
    "change_reference_body": (operator.add, values.sum_jacobians),
}
_Part = TypeVar("_Part", bound=SemanticRelation)
_TWIST: Operation = values.shift_twist, values.shifted_twist_jacobians


class _Vectors(SemanticRelation):
    """Base class of velocities and forces."""

    __slots__ = ()
    operations: ClassVar[dict[str, Operation]] = _SHARED

    def _change_point_with(self, by: SemanticPosition, free: Any, free_relation: str) -> Self:
        """Return the vector at another point: its sum with ``free x step``.

        Args:
            by: position of the new point relative to the old one.
            free: angular velocity of a linear velocity, or force of a torque.
            free_relation: name of the relation of ``free``.
        """
        coord_of(by, "Position")
        coord_of(free, free_relation)
        form, work, _ = plan_operation(
            type(self), "change_point", checks_are_on(), self._form, by._form, free._form
        )
        step, free_vector = by._value, free._value
        covariance = None
        if form.is_uncertain:
            terms = (skew(free_vector), by.covariance), (-skew(step), free.covariance)
            covariance = values.propagate_covariance(3, (None, self.covariance), *terms)
        return self._with_value(form, self._value + work(free_vector, step), covariance)


class _Six(_Vectors):
    """Base class of twists and wrenches."""

    __slots__ = ()
    dimension = 6

    @classmethod
    def _value_of(cls, representation: Any) -> Vector:
        if type(representation) in (reps.TwistVector, reps.WrenchVector):
            vector: Vector = representation.vector
            return vector
        return np.concatenate(representation.numbers, axis=-1)

    @classmethod
    def _numbers_of(cls, value: Vector) -> Numbers:
        return value[..., :3], value[..., 3:]

    @classmethod
    def _of_halves(cls, coord: Any, first: SemanticRelation, second: SemanticRelation) -> Self:
        jacobians = np.eye(6)[:, :3], np.eye(6)[:, 3:]
        return cls._of_parts(coord, cls.by_shape[6,], (first, second), jacobians)

    def _part(self, relation: type[_Part], coord: Any, part: slice) -> _Part:
        return relation(
            coord, self._value[..., part], covariance=self._propagate_covariance(3, np.eye(6)[part])
        )


class _Velocity(_Vectors):
    """Base class of velocities."""

    __slots__ = ()

    def change_reference_body(self, by: SemanticRelation | str) -> Self:
        """Return the velocity relative to another body.

        ``by`` is the velocity of the old reference body relative to the new one, at the same point
        and of the same kind. For rigidly joined bodies it may also be a position, orientation or
        pose between them, or the name of the new body. The rigid connection is not checked.

        Raises:
            SemanticError: if the operands do not chain.
        """
        if isinstance(by, type(self)):
            return apply_binary("change_reference_body", self, by)
        return self._with_coord(
            rules.change_ref_body(self.coord, by.coord if isinstance(by, SemanticRelation) else by)
        )


class SemanticLinearVelocity(_Velocity):
    """Velocity of a point with numbers: a vector (3,) [m/s], or a representation."""

    __slots__ = ()
    coord: sem.LinearVelocityCoord
    coord_class = sem.LinearVelocityCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(3,): reps.LinearVelocityVector}
    operations: ClassVar[dict[str, Operation]] = {
        **_SHARED,
        "change_point": (values.cross, values.sum_jacobians),
    }

    def change_point(self, by: SemanticPosition, angular: SemanticAngularVelocity) -> Self:
        """Return the velocity of another point of the body: ``v + w x a``.

        Args:
            by: position ``a`` of the new point relative to the old one, in the same axes.
            angular: angular velocity ``w`` between the same bodies, in the same axes.

        Raises:
            SemanticError: if the operands do not match.
        """
        return self._change_point_with(by, angular, "AngularVelocity")

    def integrate(self, dt: float) -> SemanticPosition:
        """Return the displacement of the point after a duration [s] of constant velocity.

        The frame of expression is fixed to the reference body.

        Raises:
            SemanticError: if the duration is not finite.
        """
        coord, dt = apply_rule(rules.integrate, self.coord), seconds(dt)
        covariance = self._propagate_covariance(3, dt * np.eye(3))
        return SemanticPosition._from_value(
            coord, reps.PositionVector, self._value * dt, covariance
        )


class SemanticAngularVelocity(_Velocity):
    """Angular velocity of a body with numbers: a vector (3,) [rad/s], or a representation."""

    __slots__ = ()
    coord: sem.AngularVelocityCoord
    coord_class = sem.AngularVelocityCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(3,): reps.AngularVelocityVector}

    def integrate(self, dt: float) -> SemanticOrientation:
        """Return the rotation of the body after a duration [s] of constant angular velocity.

        It is ``([r]|C, [r]|D, [r])``: the frame of expression, moved with the body, relative to
        itself before.

        Raises:
            SemanticError: if the duration is not finite.
        """
        coord, dt = apply_rule(rules.integrate, self.coord), seconds(dt)
        six = np.concatenate([np.zeros_like(self._value), self._value], axis=-1) * dt
        rotation = Pose.exp(six) if self.size is None else exp_each(six)
        covariance = (
            None
            if self.covariance is None
            else self._propagate_covariance(3, dt * right_jacobian(six))
        )
        return SemanticOrientation._from_value(coord, reps.RotationMatrix, rotation, covariance)


class SemanticTwist(_Six, _Velocity):
    """Twist with numbers: a vector (6,), linear then angular [m/s, rad/s], or a representation."""

    __slots__ = ()
    coord: sem.TwistCoord
    coord_class = sem.TwistCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(6,): reps.TwistVector}
    operations: ClassVar[dict[str, Operation]] = {
        **_SHARED,
        "change_point": _TWIST,
        "change_point_body": _TWIST,
    }

    @classmethod
    def of(cls, linear: SemanticLinearVelocity, angular: SemanticAngularVelocity) -> Self:
        """Create a twist from a linear and an angular velocity with independent errors.

        Its point is that of the linear velocity.

        Args:
            linear: velocity of a point of the body.
            angular: angular velocity of the same body, relative to the same body, expressed in the
                same frame.

        Raises:
            SemanticError: if their bodies, frames of expression or lengths of batches differ, or a
                batch has a covariance.
        """
        coord = rules.twist_of(
            coord_of(linear, "LinearVelocity"), coord_of(angular, "AngularVelocity")
        )
        return cls._of_halves(coord, linear, angular)

    @property
    def linear(self) -> SemanticLinearVelocity:
        """Linear velocity of the point."""
        return self._part(
            SemanticLinearVelocity, sem.LinearVelocityCoord._of(*self.coord[1:]), slice(3)
        )

    @property
    def angular(self) -> SemanticAngularVelocity:
        """Angular velocity of the body."""
        return self._part(
            SemanticAngularVelocity, sem.AngularVelocityCoord._of(*self.coord[2:]), slice(3, 6)
        )

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the twist at another point of the body: ``v + w x a``, and the same ``w``.

        ``by`` is the position ``a`` of the new point relative to the old one, in the axes of the
        twist.

        Raises:
            SemanticError: if ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return apply_binary("change_point", self, by)

    def change_point_body(self, by: SemanticPosition) -> Self:
        """Return the twist of a rigidly joined body at one of its points.

        ``by`` is the position of the new point, on the other body, relative to the old one, in the
        axes of the twist.

        Raises:
            SemanticError: if ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return apply_binary("change_point_body", self, by)

    def integrate(self, dt: float) -> SemanticPose:
        """Return the displacement of the body after a duration [s] of constant twist, as a matrix.

        For a twist ``(g|C, D, [g])`` it is ``({g}|C, {g}|D, [g])``: the frame relative to its
        former pose.

        Raises:
            SemanticError: if the point is not the origin of the frame of expression, or the
                duration is not finite.
        """
        coord, dt = apply_rule(rules.integrate, self.coord), seconds(dt)
        displacement = (
            Pose.exp(self._value * dt) if self.size is None else exp_each(self._value * dt)
        )
        covariance = (
            None
            if self.covariance is None
            else self._propagate_covariance(6, dt * right_jacobian(self._value * dt))
        )
        return SemanticPose._from_value(coord, reps.HomogeneousMatrix, displacement, covariance)

    def power(self, wrench: SemanticRelation) -> float | Vector:
        """Return the power of a wrench [W], a float or (N,), from the means.

        Raises:
            SemanticError: if the operands do not match.
        """
        coord_of(wrench, "Wrench")
        apply_rule(rules.dot, wrench.coord, self.coord)
        return _power(wrench._value, self._value)


class SemanticForce(_Vectors):
    """Force with numbers: a vector (3,) [N], or a representation."""

    __slots__ = ()
    coord: sem.ForceCoord
    coord_class = sem.ForceCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(3,): reps.ForceVector}


class SemanticTorque(_Vectors):
    """Torque with numbers: a vector (3,) [N m], or a representation."""

    __slots__ = ()
    coord: sem.TorqueCoord
    coord_class = sem.TorqueCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(3,): reps.TorqueVector}
    operations: ClassVar[dict[str, Operation]] = {
        **_SHARED,
        "change_point": (values.cross, values.sum_jacobians),
    }

    def change_point(self, by: SemanticPosition, force: SemanticForce) -> Self:
        """Return the moment about another point: ``t - a x f``.

        Args:
            by: position ``a`` of the new point relative to the old one, in the axes of the torque.
            force: force ``f`` between the same bodies, in the same axes.

        Raises:
            SemanticError: if the operands do not match.
        """
        return self._change_point_with(by, force, "Force")


class SemanticWrench(_Six):
    """Wrench with numbers: a vector (6,), force then moment [N, N m], or a representation."""

    __slots__ = ()
    coord: sem.WrenchCoord
    coord_class = sem.WrenchCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(6,): reps.WrenchVector}
    operations: ClassVar[dict[str, Operation]] = {
        **_SHARED,
        "change_point": (values.shift_wrench, values.shifted_wrench_jacobians),
    }

    @classmethod
    def of(cls, force: SemanticForce, torque: SemanticTorque) -> Self:
        """Create a wrench from a force and a torque with independent errors.

        Its point is that of the torque, about which the moment is.

        Args:
            force: force on a body.
            torque: torque on the same body, exerted by the same body, expressed in the same frame.

        Raises:
            SemanticError: if their bodies, frames of expression or lengths of batches differ, or a
                batch has a covariance.
        """
        coord = rules.wrench_of(coord_of(force, "Force"), coord_of(torque, "Torque"))
        return cls._of_halves(coord, force, torque)

    @property
    def force(self) -> SemanticForce:
        """Force of the wrench."""
        return self._part(SemanticForce, sem.ForceCoord._of(*self.coord[2:]), slice(3))

    @property
    def torque(self) -> SemanticTorque:
        """Moment of the wrench."""
        return self._part(SemanticTorque, sem.TorqueCoord._of(*self.coord[1:]), slice(3, 6))

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the wrench about another point of the body, with the moment ``t - a x f``.

        ``by`` is the position ``a`` of the new point relative to the old one, in the axes of the
        wrench.

        Raises:
            SemanticError: if ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return apply_binary("change_point", self, by)

    def dot(self, twist: SemanticTwist) -> float | Vector:
        """Return the power on a twist [W], a float or (N,), from the means.

        Raises:
            SemanticError: if bodies, points or frames of expression differ.
        """
        apply_rule(rules.dot, self.coord, coord_of(twist, "Twist"))
        return _power(self._value, twist._value)


def _power(wrench: Vector, twist: Vector) -> float | Vector:
    return (
        float(wrench @ twist) if wrench.ndim == twist.ndim == 1 else (wrench * twist).sum(axis=-1)
    )


@overload
def differentiate(
    before: SemanticPosition, later: SemanticPosition, dt: float
) -> SemanticLinearVelocity: ...
@overload
def differentiate(
    before: SemanticOrientation, later: SemanticOrientation, dt: float
) -> SemanticAngularVelocity: ...
@overload
def differentiate(
    before: SemanticPose, later: SemanticPose, dt: float, *, screw: bool = ...
) -> SemanticTwist: ...
def differentiate(
    before: SemanticRelation, later: SemanticRelation, dt: float, *, screw: bool = False
) -> SemanticRelation:
    """Return the constant velocity between two samples of a position, orientation or pose.

    It is the mean velocity of the point [m/s], the angular velocity of the body [rad/s], or its
    twist.

    Args:
        before: position, orientation or pose.
        later: same relation later, rotated by less than half a turn.
        dt: duration [s]. The frame of expression of a position is fixed to the reference body.
        screw: True for the twist at the origin and in the axes of the reference frame of a pose;
            False for those of the frame itself.

    Raises:
        SemanticError: if the relations differ, a pose is not between frames, or the duration is
            zero.
    """
    first = coord_of(before, "Pose")
    coord = rules.differentiate(first, coord_of(later, first.relation), screw=screw)
    if before.covariance is not None or later.covariance is not None:
        rule = "the operands are exact: the correlation of errors at two times is unknown"
        raise rule_error("differentiate", rule, "a covariance", repair="with_covariance(None)")
    first_value, last_value = before._value, later._value
    if isinstance(before, SemanticPosition):
        return SemanticLinearVelocity(coord, (last_value - first_value) / nonzero_seconds(dt))
    if screw or isinstance(before, SemanticOrientation):
        motion = values.product(last_value, values.inverse(first_value))
    else:
        motion = values.product(values.inverse(first_value), last_value)
    six = (motion.log() if isinstance(motion, Pose) else log_each(motion)) / nonzero_seconds(dt)
    if isinstance(before, SemanticOrientation):
        return SemanticAngularVelocity(coord, six[..., 3:])
    return SemanticTwist(coord, reps.TwistVector(six))
