"""What all relations with numbers have in common: coordinates, a representation, inverse, composition, change of axes.

Operations check the semantics of their operands (:mod:`tmkit.relations.rules`), compute, and check that the result can
be represented as the operand was.

Invariants: values are immutable. With the checks on, no value exists whose representation its coordinates do not allow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tmkit.relations import rules
from tmkit.relations.representation import Numbers, Representation, Vector, frozen
from tmkit.relations.semantics import Coord, Semantics
from tmkit.relations.violations import SemanticError, Violation, checks_are_on
from tmkit.spatial import Pose

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
            raise SemanticError.of(type(self).__name__, [self._no_coordinates(coord)])
        self._fill(coord, self._represented(values))

    def _fill(self, coord: Any, representation: Any) -> None:
        if checks_are_on():
            broken = representation.broken_by(coord)
            if broken:
                raise SemanticError.of(f"{type(representation).__name__} for {coord!r}", broken)
        _set_coord(self, coord)
        _set_representation(self, representation)

    def _no_coordinates(self, coord: object) -> Violation:
        """Return why something is not the coordinates of this relation, and what to give."""
        wanted = self.coord_class.__name__
        repair = f"make it first: {_EXAMPLES[wanted]}"
        if isinstance(coord, Semantics) and f"{coord.relation}Coord" == wanted:
            words = repr(coord).replace("Semantics(", "Coord(").removesuffix(")")
            repair = f"add the frame of expression: {words}, '[r]')"
        elif isinstance(coord, Coord):
            repair = f"use a Semantic{coord.relation}"
        what = " ".join(repr(coord).split())
        return Violation(f"a {type(self).__name__} has coordinates of class {wanted}", what[:80], repair=repair)

    @classmethod
    def _of(cls, coord: Any, representation: Any) -> Self:
        made = object.__new__(cls)
        made._fill(coord, representation)
        return made

    @classmethod
    def _known(cls, coord: Any, representation: Any) -> Self:
        """Make one of what is known to belong together."""
        made = object.__new__(cls)
        _set_coord(made, coord)
        _set_representation(made, representation)
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
            repair = f"or say what they are by a representation of a {relation}"
            if relation == "Pose":
                repair = "or give a tmkit.Pose, VectorAndQuaternion(vector, quat_xyzw), VectorAndMatrix(vector, matrix)"
            raise SemanticError.of(type(self).__name__, [Violation(rule, f"shape {shape}", repair=repair)])
        return chosen(values)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; '{name}' was to be set")

    def __getattr__(self, name: str) -> NoReturn:
        """Say where that is which people look for here."""
        kind, relation = type(self).__name__, type(self).coord_class.__name__.removesuffix("Coord")
        if name.startswith("_"):
            raise AttributeError(f"a {kind} has no '{name}'")
        if name in type(self).coord_class.fields:  # type: ignore[attr-defined]
            raise AttributeError(f"a {kind} has its names in its coordinates: use .coord.{name}")
        if any(name in getattr(other, "__dict__", {}) for other in _all_relations(SemanticRelation)):
            hidden = ("by_shape", "coord_class", "of")
            can = ", ".join(item for item in sorted(dir(type(self))) if item[0] != "_" and item not in hidden)
            raise AttributeError(f"there is no {name} of relation {relation}; a {kind} has {can}")
        hint = "its numbers are in .representation as they were given, in .numbers as plain arrays"
        raise AttributeError(f"a {kind} has no '{name}'; {hint}; .in_representation(...) gives them in another form")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is no array: its numbers are in .representation and .numbers")

    def _no_operator(self, other: object) -> NoReturn:
        del other
        raise TypeError(
            f"a {type(self).__name__} is not added, subtracted or multiplied: a.compose(b) composes two of one kind, "
            "a.inverse() turns one round, and change_point, change_coordinate_frame and their like bring one elsewhere"
        )

    __add__ = __sub__ = __mul__ = __matmul__ = __rmul__ = __rmatmul__ = _no_operator

    def __neg__(self) -> NoReturn:
        self._no_operator(None)

    def __eq__(self, other: object) -> bool:
        """Whether coordinates, the kind of representation and the numbers are the same, exactly."""
        if not isinstance(other, SemanticRelation):
            return NotImplemented
        if self.coord != other.coord or type(self.representation) is not type(other.representation):
            return False
        return all(np.array_equal(a, b) for a, b in zip(self.numbers, other.numbers, strict=True))

    def __hash__(self) -> int:
        return hash((type(self), self.coord))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.coord, self.representation)

    def __repr__(self) -> str:
        notation = ", ".join(map(repr, self.coord.notation()))
        shown = " ".join(map(_shown, self.numbers))
        return f"{type(self).__name__}({notation}; {type(self.representation).__name__} {shown})"

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
        if not isinstance(representation, type) or getattr(representation, "relation", "") != self.coord.relation:
            rule = f"a representation of a {self.coord.relation} is given by its class"
            given_name = representation.__name__ if isinstance(representation, type) else repr(representation)[:60]
            raise SemanticError.of("in_representation", [Violation(rule, given_name)])
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

        Args:
            representation: its class.
            like: one whose settings are taken over, as for :meth:`in_representation`.

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
        try:
            return self._result(coord, *self._inverted())
        except SemanticError as error:
            repair = "use inverse2, which expresses the result in its own reference frame"
            broken = [replace(violation, repair=repair) for violation in error.violations]
            raise SemanticError.of(f"inverse({self.coord!r})", broken) from None

    def _inverted(self) -> Numbers:
        return tuple(-number for number in self.numbers)

    def compose(self, other: Self) -> Self:
        """Return the composition with another relation of the same kind, whichever comes first in the chain.

        Forces, torques and wrenches are added. With the checks off, operands are taken in the order given.

        Args:
            other: a relation of the same kind: where this one says C relative to D, one that says D relative to E, or
                one that says B relative to C; velocities at one point, and in one set of axes.

        Raises:
            SemanticError: the two do not chain.
        """
        if not isinstance(other, type(self)):
            coord_of(other, self.coord.relation)
            rule = f"a {self.coord.relation} is composed with another"
            raise SemanticError.of("compose", [Violation(rule, type(other).__name__)])
        coord, swapped = rules.compose(self.coord, other.coord)
        first, second = (other, self) if swapped else (self, other)
        return self._result(coord, *first._chained(second))

    def _chained(self, other: Self) -> Numbers:
        return tuple(a + b for a, b in zip(self.numbers, other.numbers, strict=True))

    def change_coordinate_frame(self, by: SemanticRelation) -> Self:
        """Return the relation expressed in another frame.

        Args:
            by: the orientation of the frame of expression relative to the new one, expressed in the new one.

        Raises:
            SemanticError: ``by`` speaks of another frame, or the representation does not allow it.
        """
        coord = rules.change_coord(self.coord, coord_of(by, "Orientation"), is_matrix=False)
        turned = by.numbers[0]
        return self._result(coord, *self._turned(turned))

    def _turned(self, turned: Vector) -> Numbers:
        return tuple(turned @ number for number in self.numbers)


_set_coord, _set_representation = (  # past __setattr__
    vars(SemanticRelation)[name].__set__ for name in ("coord", "representation")
)


def coord_of(operand: object, relation: str) -> Any:
    """Return the coordinates of an operand.

    Args:
        operand: a relation with numbers.
        relation: name of the expected relation, for the error message.

    Raises:
        SemanticError: it is no relation with numbers.
    """
    if isinstance(operand, SemanticRelation):
        return operand.coord
    repair = f"say what they mean: Semantic{relation}({_EXAMPLES[f'{relation}Coord']}, numbers)"
    if isinstance(operand, Coord):
        repair = f"give it numbers: Semantic{operand.relation}(coordinates, numbers), or use apply on coordinates alone"
    what = " ".join(repr(operand).split())[:80]
    raise SemanticError.of("operand", [Violation("an operand is a relation with numbers", what, repair=repair)])


_EXAMPLES = {
    "PositionCoord": "PositionCoord('e|C', 'f|D', '[r]')",
    "OrientationCoord": "OrientationCoord('[a]|C', '[b]|D', '[b]')",
    "PoseCoord": "PoseCoord('{g}|C', '{h}|D', '[h]')",
    **{f"{name}Coord": f"{name}Coord('e|C', 'D', '[r]')" for name in ("LinearVelocity", "Twist", "Torque", "Wrench")},
    **{f"{name}Coord": f"{name}Coord('C', 'D', '[r]')" for name in ("AngularVelocity", "Force")},
}


def _all_relations(base: type) -> list[type]:
    """Return a class and all that are made from it."""
    found = [base]
    children: list[type] = base.__subclasses__()
    for child in children:
        found += _all_relations(child)
    return found


def cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product of two vectors (3,); numpy's is ten times slower for single ones.

    Args:
        a: (3,) each.
        b: (3,) each.
    """
    a0, a1, a2 = a.tolist()
    b0, b1, b2 = b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def _shown(numbers: Vector) -> str:
    """Return an array to six digits; a rotation matrix as its quaternion."""
    if numbers.shape == (3, 3):
        matrix = np.eye(4)
        matrix[:3, :3] = numbers
        return f"quat_xyzw={_shown(Pose.from_matrix(matrix).as_array()[3:])}"
    return f"[{', '.join(f'{value:.6g}' for value in numbers.ravel() + 0.0)}]"
