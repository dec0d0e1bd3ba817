"""Velocities of points, of bodies, and twists; forces, torques and wrenches; with numbers."""

from __future__ import annotations

from typing import Any, ClassVar, Self, overload

import numpy as np

from tmkit.relations import representations as reps, rules
from tmkit.relations.representation import Numbers, elapsed, frozen, rotations, seconds
from tmkit.relations.semantic.base import SemanticRelation, coord_of, cross
from tmkit.relations.semantic.constant import SemanticOrientation, SemanticPose, SemanticPosition
from tmkit.relations.semantics import (
    AngularVelocityCoord,
    ForceCoord,
    LinearVelocityCoord,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
)
from tmkit.spatial import Pose


class _Velocity(SemanticRelation):
    """What velocities have in common."""

    __slots__ = ()

    def change_reference_body(self, by: SemanticRelation | str) -> Self:
        """Return the velocity relative to another body.

        Args:
            by: the velocity of the old reference body relative to the new one, at the same point and of the same kind;
                or, where the two are rigidly joined, a position, orientation or pose of one relative to the other, or
                the name of the new body. That they are joined is not checked.

        Raises:
            SemanticError: the two do not chain.
        """
        coord = rules.change_ref_body(self.coord, by.coord if isinstance(by, SemanticRelation) else by)
        if isinstance(by, type(self)):
            return self._result(coord, *self._chained(by))
        return self._of(coord, self.representation)


class SemanticLinearVelocity(_Velocity):
    """The velocity of a point with numbers: a vector (3,) in m/s, or a representation."""

    __slots__ = ()
    coord: LinearVelocityCoord
    coord_class = LinearVelocityCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(3,): reps.LinearVelocityVector}

    def change_point(self, by: SemanticPosition, angular: SemanticAngularVelocity) -> Self:
        """Return the velocity of another point of the body: ``v + w x a``.

        Args:
            by: ``a``: the position of the new point relative to the old one, in the same axes.
            angular: ``w``: the angular velocity of the same body relative to the same body, in the same axes.

        Raises:
            SemanticError: the operands do not belong together.
        """
        coord = rules.change_point(self.coord, coord_of(by, "Position"), coord_of(angular, "AngularVelocity"))
        return self._result(coord, self.numbers[0] + cross(angular.numbers[0], by.numbers[0]))

    def integrate(self, dt: float) -> SemanticPosition:
        """Return the way of the point in a time in which its velocity stays the same.

        Args:
            dt: seconds. The frame of expression is fixed to the reference body meanwhile.

        Raises:
            SemanticError: no finite time.
        """
        return SemanticPosition(rules.integrate(self.coord), self.numbers[0] * seconds(dt))


class SemanticAngularVelocity(_Velocity):
    """The angular velocity of a body with numbers: a vector (3,) in rad/s, or a representation."""

    __slots__ = ()
    coord: AngularVelocityCoord
    coord_class = AngularVelocityCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(3,): reps.AngularVelocityVector}

    def integrate(self, dt: float) -> SemanticOrientation:
        """Return how the body has turned after a time in which its angular velocity stays the same.

        Args:
            dt: seconds.

        Returns:
            ``([r]|C, [r]|D, [r])``: the frame of expression as it goes along with the body, relative to itself before.

        Raises:
            SemanticError: no finite time.
        """
        turned = rotations().from_rotvec(self.numbers[0] * seconds(dt)).as_matrix()
        return SemanticOrientation(rules.integrate(self.coord), reps.RotationMatrix.of((frozen(turned),)))


class SemanticTwist(_Velocity):
    """A twist with numbers: a vector (6,), linear part (m/s) then angular part (rad/s), or a representation."""

    __slots__ = ()
    coord: TwistCoord
    coord_class = TwistCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(6,): reps.TwistVector}

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
        """Return the twist at another point of the body: ``v + w x a``, and the same ``w``.

        Args:
            by: ``a``: the position of the new point relative to the old one, in the axes of the twist.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        v, w = self.numbers
        return self._result(rules.change_point(self.coord, coord_of(by, "Position")), v + cross(w, by.numbers[0]), w)

    def change_point_body(self, by: SemanticPosition) -> Self:
        """Return the twist of a rigidly joined body at a point of it.

        Args:
            by: the position of the new point, on the other body, relative to the old one, in the axes of the twist.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        coord = rules.change_point(self.coord, coord_of(by, "Position"), keeps_body=False)
        v, w = self.numbers
        return self._result(coord, v + cross(w, by.numbers[0]), w)

    def integrate(self, dt: float) -> SemanticPose:
        """Return how the body has moved after a time in which its twist stays the same, as a homogeneous matrix.

        Args:
            dt: seconds.

        Returns:
            For a twist ``(g|C, D, [g])`` the pose ``({g}|C, {g}|D, [g])``: the frame as it goes along with the body,
            relative to where it was.

        Raises:
            SemanticError: its point and its frame of expression are not of one frame, or no finite time.
        """
        coord = rules.integrate(self.coord)
        v, w = self.numbers
        moved = Pose.exp(np.concatenate([v, w]) * seconds(dt))
        return SemanticPose(coord, reps.HomogeneousMatrix.of((moved.translation, moved.rotation)))

    def power(self, wrench: SemanticRelation) -> float:
        """Return the power (W) of a wrench.

        Raises:
            SemanticError: the two do not belong together.
        """
        rules.dot(coord_of(wrench, "Wrench"), self.coord)
        (f, t), (v, w) = wrench.numbers, self.numbers
        return float(f @ v + t @ w)


class SemanticForce(SemanticRelation):
    """A force with numbers: a vector (3,) in N, or a representation."""

    __slots__ = ()
    coord: ForceCoord
    coord_class = ForceCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(3,): reps.ForceVector}


class SemanticTorque(SemanticRelation):
    """A torque with numbers: a vector (3,) in N m, or a representation."""

    __slots__ = ()
    coord: TorqueCoord
    coord_class = TorqueCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(3,): reps.TorqueVector}

    def change_point(self, by: SemanticPosition, force: SemanticForce) -> Self:
        """Return the moment about another point: ``t - a x f``.

        Args:
            by: ``a``: the position of the new point relative to the old one, in the axes of the torque.
            force: ``f``: the force on the same body by the same body, in the same axes.

        Raises:
            SemanticError: the operands do not belong together.
        """
        coord = rules.change_point(self.coord, coord_of(by, "Position"), coord_of(force, "Force"))
        return self._result(coord, self.numbers[0] - cross(by.numbers[0], force.numbers[0]))


class SemanticWrench(SemanticRelation):
    """A wrench with numbers: a vector (6,), force (N) then moment (N m), or a representation."""

    __slots__ = ()
    coord: WrenchCoord
    coord_class = WrenchCoord
    by_shape: ClassVar[dict[tuple[int, ...], Any]] = {(6,): reps.WrenchVector}

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
        """Return the wrench about another point of the body: the moment is ``t - a x f``, the force the same.

        Args:
            by: ``a``: the position of the new point relative to the old one, in the axes of the wrench.

        Raises:
            SemanticError: ``by`` does not begin at the point, or is expressed elsewhere.
        """
        f, t = self.numbers
        return self._result(rules.change_point(self.coord, coord_of(by, "Position")), f, t - cross(by.numbers[0], f))

    def dot(self, twist: SemanticTwist) -> float:
        """Return the power (W) of the wrench on a twist.

        Raises:
            SemanticError: they speak of different bodies or points, or are expressed in different frames.
        """
        rules.dot(self.coord, coord_of(twist, "Twist"))
        (f, t), (v, w) = self.numbers, twist.numbers
        return float(f @ v + t @ w)


@overload
def differentiate(before: SemanticPosition, later: SemanticPosition, dt: float) -> SemanticLinearVelocity: ...
@overload
def differentiate(before: SemanticOrientation, later: SemanticOrientation, dt: float) -> SemanticAngularVelocity: ...
@overload
def differentiate(before: SemanticPose, later: SemanticPose, dt: float, *, screw: bool = ...) -> SemanticTwist: ...
def differentiate(before: Any, later: Any, dt: float, *, screw: bool = False) -> SemanticRelation:
    """Return the constant velocity that leads from one position, orientation or pose to another.

    Args:
        before: a position, an orientation or a pose.
        later: the same relation later; turned by less than half a turn.
        dt: seconds. The frame of expression of a position is fixed to the reference body meanwhile.
        screw: of a pose: whether to give the twist of the reference frame's origin in its axes, instead of the frame's
            own.

    Returns:
        The mean velocity (m/s) of the point, the angular velocity (rad/s) of the body, or its twist.

    Raises:
        SemanticError: the two are not the same relation, no poses between frames, or no time went by.
    """
    first = coord_of(before, "Pose")
    coord = rules.differentiate(first, coord_of(later, first.relation), screw=screw)
    if isinstance(before, SemanticPosition):
        return SemanticLinearVelocity(coord, (later.numbers[0] - before.numbers[0]) / elapsed(dt))
    if isinstance(before, SemanticOrientation):
        turned = rotations().from_matrix(later.numbers[0] @ before.numbers[0].T)
        return SemanticAngularVelocity(coord, turned.as_rotvec() / elapsed(dt))
    now, then = _pose(before.numbers), _pose(later.numbers)
    moved = then @ now.inverse() if screw else now.inverse() @ then
    return SemanticTwist(coord, reps.TwistVector(np.array(moved.log()) / elapsed(dt)))


def _pose(numbers: Numbers) -> Pose:
    return Pose.from_rotation_matrix(numbers[0], numbers[1])
