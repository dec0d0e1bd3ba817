"""Forces, torques and wrenches with numbers."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from tmkit.relations import representations as reps, rules
from tmkit.relations.semantic.base import SemanticRelation, coord_of, cross
from tmkit.relations.semantic.constant import SemanticPosition
from tmkit.relations.semantic.velocities import SemanticTwist
from tmkit.relations.semantics import ForceCoord, TorqueCoord, WrenchCoord


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
