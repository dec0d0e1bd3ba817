"""Velocities of points, of bodies, and twists; forces, torques and wrenches; with numbers."""

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
    """What velocities and forces have in common."""

    __slots__ = ()
    operations: ClassVar[dict[str, Operation]] = _SHARED

    def _change_point_with(self, by: SemanticPosition, free: Any, wanted: str) -> Self:
        """Return the sum of this vector and the cross product of a free one and a step, with another point."""
        coord_of(by, "Position"), coord_of(free, wanted)
        form, work, _ = plan_operation(
            type(self), "change_point", checks_are_on(), self._form, by._form, free._form
        )
        step, other = by._value, free._value
        covariance = None
        if form.is_uncertain:
            terms = (skew(other), by.covariance), (-skew(step), free.covariance)
            covariance = values.propagate_covariance(3, (None, self.covariance), *terms)
        return self._with_value(form, self._value + work(other, step), covariance)


class _Six(_Vectors):
    """What twists and wrenches have in common."""

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

    def _part(self, made: type[_Part], coord: Any, part: slice) -> _Part:
        return made(
            coord, self._value[..., part], covariance=self._propagate_covariance(3, np.eye(6)[part])
        )


class _Velocity(_Vectors):
    """What velocities have in common."""

    __slots__ = ()

    def change_reference_body(self, by: SemanticRelation | str) -> Self:
        """Return the velocity relative to another body.

        ``by`` is the velocity of the old reference body relative to the new one, at the same point
        and of the same kind. Where the two are rigidly joined, it may be a position, orientation or
        pose of one relative to the other, or the name of the new body. That they are joined is not
        checked.

        Raises:
            SemanticError: the two do not chain.
        """
        if isinstance(by, type(self)):
            return apply_binary("change_reference_body", self, by)
        return self._with_coord(
            rules.change_ref_body(self.coord, by.coord if isinstance(by, SemanticRelation) else by)
        )


class SemanticLinearVelocity(_Velocity):
    """The velocity of a point with numbers: a vector (3,) in m/s, or a representation."""

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
            by: ``a``: the position of the new point relative to the old one, in the same axes.
            angular: ``w``: the angular velocity of the same body relative to the same body, in the
                same axes.

        Raises:
            SemanticError: the operands do not belong together.
        """
        return self._change_point_with(by, angular, "AngularVelocity")

    def integrate(self, dt: float) -> SemanticPosition:
        """Return the way of the point in a time (seconds) in which its velocity stays the same.

        The frame of expression is fixed to the reference body meanwhile.

        Raises:
            SemanticError: no finite time.
        """
        coord, dt = apply_rule(rules.integrate, self.coord), seconds(dt)
        covariance = self._propagate_covariance(3, dt * np.eye(3))
        return SemanticPosition._from_value(
            coord, reps.PositionVector, self._value * dt, covariance
        )


class SemanticAngularVelocity(_Velocity):
    """The angular velocity of a body with numbers: a vector (3,) in rad/s, or a representation."""

    __slots__ = ()
    coord: sem.AngularVelocityCoord
    coord_class = sem.AngularVelocityCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(3,): reps.AngularVelocityVector}

    def integrate(self, dt: float) -> SemanticOrientation:
        """Return how the body has turned after a time (seconds) in which its angular velocity stays the same.

        It is ``([r]|C, [r]|D, [r])``: the frame of expression, moved with the body, relative to
        itself before.

        Raises:
            SemanticError: no finite time.
        """
        coord, dt = apply_rule(rules.integrate, self.coord), seconds(dt)
        six = np.concatenate([np.zeros_like(self._value), self._value], axis=-1) * dt
        turned = Pose.exp(six) if self.size is None else exp_each(six)
        covariance = (
            None
            if self.covariance is None
            else self._propagate_covariance(3, dt * right_jacobian(six))
        )
        return SemanticOrientation._from_value(coord, reps.RotationMatrix, turned, covariance)


class SemanticTwist(_Six, _Velocity):
    """A twist with numbers: a vector (6,), linear part (m/s) then angular part (rad/s), or a representation."""

    __slots__ = ()
    coord: sem.TwistCoord
    coord_class = sem.TwistCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(6,): reps.TwistVector}
    operations: ClassVar[dict[str, Operation]] = {
        **_SHARED,
        "change_point": _TWIST,
        "change_point_body": _TWIST,
    }

    @property
    def linear(self) -> SemanticLinearVelocity:
        """The velocity of its point."""
        return self._part(
            SemanticLinearVelocity, sem.LinearVelocityCoord._of(*self.coord[1:]), slice(3)
        )

    @property
    def angular(self) -> SemanticAngularVelocity:
        """The angular velocity of its body."""
        return self._part(
            SemanticAngularVelocity, sem.AngularVelocityCoord._of(*self.coord[2:]), slice(3, 6)
        )

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the twist at another point of the body: ``v + w x a``, and the same ``w``.

        ``by`` is ``a``: the position of the new point relative to the old one, in the axes of the
        twist.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return apply_binary("change_point", self, by)

    def change_point_body(self, by: SemanticPosition) -> Self:
        """Return the twist of a rigidly joined body at a point of it.

        ``by`` is the position of the new point, on the other body, relative to the old one, in the
        axes of the twist.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return apply_binary("change_point_body", self, by)

    def integrate(self, dt: float) -> SemanticPose:
        """Return how the body has moved after a time (seconds) with a constant twist, as a homogeneous matrix.

        For a twist ``(g|C, D, [g])`` it is ``({g}|C, {g}|D, [g])``: the frame relative to where it
        was.

        Raises:
            SemanticError: its point and its frame of expression are not of one frame, or no finite
                time.
        """
        coord, dt = apply_rule(rules.integrate, self.coord), seconds(dt)
        moved = Pose.exp(self._value * dt) if self.size is None else exp_each(self._value * dt)
        covariance = (
            None
            if self.covariance is None
            else self._propagate_covariance(6, dt * right_jacobian(self._value * dt))
        )
        return SemanticPose._from_value(coord, reps.HomogeneousMatrix, moved, covariance)

    def power(self, wrench: SemanticRelation) -> float | Vector:
        """Return the power (W) of a wrench; of a batch (N,), of uncertain ones that of the means.

        Raises:
            SemanticError: the two do not belong together.
        """
        coord_of(wrench, "Wrench")
        apply_rule(rules.dot, wrench.coord, self.coord)
        return _power(wrench._value, self._value)


class SemanticForce(_Vectors):
    """A force with numbers: a vector (3,) in N, or a representation."""

    __slots__ = ()
    coord: sem.ForceCoord
    coord_class = sem.ForceCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(3,): reps.ForceVector}


class SemanticTorque(_Vectors):
    """A torque with numbers: a vector (3,) in N m, or a representation."""

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
            by: ``a``: the position of the new point relative to the old one, in the axes of the
                torque.
            force: ``f``: the force on the same body by the same body, in the same axes.

        Raises:
            SemanticError: the operands do not belong together.
        """
        return self._change_point_with(by, force, "Force")


class SemanticWrench(_Six):
    """A wrench with numbers: a vector (6,), force (N) then moment (N m), or a representation."""

    __slots__ = ()
    coord: sem.WrenchCoord
    coord_class = sem.WrenchCoord
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]] = {(6,): reps.WrenchVector}
    operations: ClassVar[dict[str, Operation]] = {
        **_SHARED,
        "change_point": (values.shift_wrench, values.shifted_wrench_jacobians),
    }

    @property
    def force(self) -> SemanticForce:
        """The force in it."""
        return self._part(SemanticForce, sem.ForceCoord._of(*self.coord[2:]), slice(3))

    @property
    def torque(self) -> SemanticTorque:
        """The moment in it."""
        return self._part(SemanticTorque, sem.TorqueCoord._of(*self.coord[1:]), slice(3, 6))

    def change_point(self, by: SemanticPosition) -> Self:
        """Return the wrench about another point of the body: the moment is ``t - a x f``, the force the same.

        ``by`` is ``a``: the position of the new point relative to the old one, in the axes of the
        wrench.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        return apply_binary("change_point", self, by)

    def dot(self, twist: SemanticTwist) -> float | Vector:
        """Return the power (W) of the wrench on a twist; of a batch (N,), of uncertain ones that of the means.

        Raises:
            SemanticError: they speak of different bodies or points, or are expressed in different
                frames.
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
    """Return the constant velocity that leads from one position, orientation or pose to another.

    It is the mean velocity (m/s) of the point, the angular velocity (rad/s) of the body, or its
    twist.

    Args:
        before: a position, an orientation or a pose.
        later: the same relation later; turned by less than half a turn.
        dt: seconds. The frame of expression of a position is fixed to the reference body meanwhile.
        screw: of a pose: whether to give the twist at the reference frame's origin in its axes, not
            the frame's own.

    Raises:
        SemanticError: the two are not the same relation, no poses between frames, or no time went
            by.
    """
    first = coord_of(before, "Pose")
    coord = rules.differentiate(first, coord_of(later, first.relation), screw=screw)
    if before.covariance is not None or later.covariance is not None:
        rule = (
            "what is differentiated is exact: how its errors at two times belong together is not"
            " known"
        )
        raise rule_error("differentiate", rule, "a covariance", repair="with_covariance(None)")
    now, then = before._value, later._value
    if isinstance(before, SemanticPosition):
        return SemanticLinearVelocity(coord, (then - now) / nonzero_seconds(dt))
    own = (
        values.product(then, values.inverse(now))
        if screw
        else values.product(values.inverse(now), then)
    )
    if isinstance(before, SemanticOrientation):
        own = values.product(then, values.inverse(now))
    six = (own.log() if isinstance(own, Pose) else log_each(own)) / nonzero_seconds(dt)
    if isinstance(before, SemanticOrientation):
        return SemanticAngularVelocity(coord, six[..., 3:])
    return SemanticTwist(coord, reps.TwistVector(six))
