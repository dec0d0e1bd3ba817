"""Base class of all relations with numbers.

A relation stores its numbers in two forms, each computed from the other on first use. These are the
*representation*, as given by the user, and the *value*, as used in arithmetic: vectors, or poses of
the core.

Invariants: values are immutable. With enabled checks, the coordinates of a relation allow its
    representation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.units import magnitudes
from tmkit.errors import SceneError
from tmkit.relations.representation import Numbers, Representation, Vector
from tmkit.relations.semantic.operations import (
    OPERANDS,
    Form,
    Operation,
    batch_size,
    form_of,
    plan_operation,
    require_representable,
)
from tmkit.relations.semantic.values import Value, propagate_covariance
from tmkit.relations.semantics import Coord, Semantics
from tmkit.relations.violations import (
    SemanticError,
    Violation,
    are_checked,
    checks_are_on,
    rule_error,
)
from tmkit.spatial import GaussianPose, Pose
from tmkit.spatial.covariances import check_covariance
from tmkit.spatial.plain import read_only

_Representation = TypeVar("_Representation", bound=Representation)
_Relation = TypeVar("_Relation", bound="SemanticRelation")


class SemanticRelation:
    """Base class of all relations with numbers.

    Numbers may be a batch: arrays with an additional first dimension, for relations with equal
    coordinates.

    Attributes:
        coord: semantics and frame of expression.
        representation: numbers, in the representation of the argument or of the operation.
    """

    __slots__ = ("_covariance", "_representation", "_state")
    coord_class: ClassVar[type]
    by_shape: ClassVar[dict[tuple[int | str, ...], Any]]
    operations: ClassVar[dict[str, Operation]]
    dimension: ClassVar[int] = 3  # of a covariance
    _state: tuple[Form, Value]  # a value of None is computed on first use
    _representation: Any
    _covariance: Any

    def __init__(
        self,
        coord: Any,
        values: Representation | ArrayLike | Pose | GaussianPose,
        *,
        covariance: ArrayLike | None = None,
    ) -> None:
        """Create a relation from coordinates and numbers.

        Args:
            coord: coordinates, of the class of this relation.
            values: representation, or an array or pose whose shape selects one; or a batch, with
                one more dimension.
            covariance: (3, 3) or (6, 6) of the error. Of a pose it is in the axes of the frame,
                ``T = mean @ Exp(xi)``, of other relations in the axes of expression. Exact by
                default.

        Raises:
            SemanticError: if the class or a constraint of the representation, or the covariance,
                does not fit this relation.
        """
        if not isinstance(coord, self.coord_class):
            raise SemanticError.of(type(self).__name__, [self._coordinates_violation(coord)])
        if isinstance(values, GaussianPose):
            covariance = values.covariance if covariance is None else covariance
            values = values.mean
        representation = self._choose_representation(values)
        if checks_are_on():
            require_representable(representation, coord)
        spread = (
            None
            if covariance is None
            else self._check_covariance(coord, representation, covariance)
        )
        cls = type(representation)
        kind = cls if getattr(cls, "is_settled", False) else None
        size = getattr(representation, "size", None)
        self._set_state(
            form_of(coord, kind, size, spread is not None),
            None,
            covariance=spread,
            representation=representation,
        )

    def _set_state(
        self,
        form: Form,
        value: Value,
        *,
        covariance: Vector | None = None,
        representation: Any = None,
    ) -> Self:
        """Set the state of a new relation; without a representation, the value determines it."""
        self._state, self._covariance = (form, value), covariance
        if representation is not None:
            self._representation = representation
        return self

    def _check_covariance(self, coord: Any, representation: Any, covariance: ArrayLike) -> Vector:
        """Return a covariance as a read-only array, after a check."""
        if getattr(representation, "size", None) is not None:
            raise rule_error(type(self).__name__, "a covariance is that of one relation", "a batch")
        if hasattr(coord, "ref_ori") and coord.coord != coord.ref_ori:
            rule = "a covariance is that of a relation expressed in its reference orientation frame"
            sides = (
                f"coordinate frame {coord.coord}",
                f"reference orientation frame {coord.ref_ori}",
            )
            raise rule_error(type(self).__name__, rule, *sides)
        try:
            return read_only(np.array(check_covariance(covariance, self.dimension)))
        except SceneError as error:
            raise rule_error(type(self).__name__, "a covariance of its error", str(error)) from None

    def _coordinates_violation(self, coord: object) -> Violation:
        """Return the violation of coordinates of another class, with a repair."""
        expected = self.coord_class.__name__
        repair = f"make it first: {_EXAMPLES[expected]}"
        if isinstance(coord, Semantics) and f"{coord.relation}Coord" == expected:
            words = repr(coord).replace("Semantics(", "Coord(").removesuffix(")")
            repair = f"add the frame of expression: {words}, '[r]')"
        elif isinstance(coord, Coord):
            repair = f"use a Semantic{coord.relation}"
        what = " ".join(repr(coord).split())
        return Violation(
            f"a {type(self).__name__} has coordinates of class {expected}", what[:80], repair=repair
        )

    @classmethod
    def _of(cls, coord: Any, representation: Any, covariance: Vector | None = None) -> Self:
        if checks_are_on():
            require_representable(representation, coord)
        kind = type(representation) if getattr(type(representation), "is_settled", False) else None
        form = form_of(coord, kind, getattr(representation, "size", None), covariance is not None)
        relation: Self = _new(cls)
        return relation._set_state(form, None, covariance=covariance, representation=representation)

    @classmethod
    def _of_parts(
        cls, coord: Any, kind: Any, parts: Sequence[SemanticRelation], jacobians: Sequence[Vector]
    ) -> Self:
        """Create a relation from two relations with independent errors.

        A part that is one relation belongs to all of the batch of the other.

        Args:
            coord: coordinates of the result.
            kind: class of its representation, whose numbers are those of the parts.
            parts: relations with one array of numbers each.
            jacobians: derivative of the error of the result by that of each part.

        Raises:
            SemanticError: if the lengths of batches differ, or a batch has a covariance.
        """
        size = batch_size(f"{cls.__name__}.of", *(part._form for part in parts))
        covariance = None
        if any(part._form.is_uncertain for part in parts):
            if size is not None:
                raise rule_error(
                    f"{cls.__name__}.of", "a covariance is that of one relation", "a batch"
                )
            covariances = [part.covariance for part in parts]
            covariance = propagate_covariance(
                cls.dimension, *zip(jacobians, covariances, strict=True)
            )
        numbers = [part.numbers[0] for part in parts]
        if size is not None:
            numbers = [
                array if part.size is not None else read_only(np.stack([array] * size))
                for part, array in zip(parts, numbers, strict=True)
            ]
        return cls(coord, kind.of(tuple(numbers)), covariance=covariance)

    @classmethod
    def _from_representation(cls, coord: Any, representation: Any) -> Self:
        """Create one relation, not a batch, from valid coordinates and representation."""
        kind = type(representation)
        relation: Self = _new(cls)
        return relation._set_state(
            form_of(coord, kind if kind.is_settled else None, None, False),
            None,
            representation=representation,
        )

    @classmethod
    def _from_value(
        cls, coord: Any, kind: Any, value: Value, covariance: Vector | None = None
    ) -> Self:
        """Create a relation from a value and a representation class that allows it."""
        size = len(value) if isinstance(value, np.ndarray) and value.ndim > 1 else None
        return cls._from_form(form_of(coord, kind, size, covariance is not None), value, covariance)

    @classmethod
    def _from_form(cls, form: Form, value: Value, covariance: Vector | None = None) -> Self:
        relation: Self = _new(cls)
        return relation._set_state(form, value, covariance=covariance)

    def _choose_representation(self, values: Any) -> Any:
        relation = self.coord_class.relation  # type: ignore[attr-defined]
        if isinstance(values, Representation):
            if values.relation == relation:
                return values
            raise rule_error(
                type(self).__name__, f"a representation of a {relation}", type(values).__name__
            )
        if isinstance(values, Pose) and () in self.by_shape:
            return self.by_shape[()](values)
        shape = np.shape(magnitudes(values))
        # The keys are the shapes of one relation, of a batch, and of representations of batches
        # only.
        keys = shape, shape[1:], ("N", *shape[1:])
        create = next((self.by_shape[key] for key in keys if key and key in self.by_shape), None)
        if create is None:
            shapes = ", ".join(str(key).replace("'", "") for key in self.by_shape if key)
            rule = f"the numbers of a {relation} have one of the shapes {shapes}"
            repair = f"or use a representation of a {relation}"
            if relation == "Pose":
                repair = (
                    "or use a tmkit.Pose, VectorAndQuaternion(vector, quat_xyzw),"
                    " VectorAndMatrix(vector, matrix)"
                )
            raise rule_error(type(self).__name__, rule, f"shape {shape}", repair=repair)
        return create(values)

    @property
    def _form(self) -> Form:
        return self._state[0]

    @property
    def _value(self) -> Value:
        form, value = self._state
        if value is None:
            value = self._value_of(self._representation)
            self._state = form, value
        return value

    def _reject_assignment(self, _: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable")

    coord: Any = property(lambda self: self._state[0].coord, _reject_assignment)
    representation: Any = property(lambda self: self._representation, _reject_assignment)

    @property
    def covariance(self) -> Vector | None:
        """Covariance (3, 3) or (6, 6) of the error, in :attr:`covariance_axes`; None if exact."""
        return self._covariance if self._form.is_uncertain else None

    @property
    def covariance_axes(self) -> str:
        """Frame of the covariance: that of the pose or orientation, else of expression."""
        coord = self._form.coord
        return str(getattr(coord, "ori", coord.coord))

    def with_covariance(self, covariance: ArrayLike | None) -> Self:
        """Return the same relation with another covariance; None makes it exact.

        Raises:
            SemanticError: if the matrix is not a covariance, or a covariance is undefined here.
        """
        return type(self)(self.coord, self.representation, covariance=covariance)

    @property
    def size(self) -> int | None:
        """Number of relations in a batch; None for one relation."""
        return self._form.size

    def __getitem__(self, index: Any) -> Self:
        """Return one relation of a batch, or several for a slice."""
        if self._form.size is None:
            raise TypeError(f"this {type(self).__name__} is one, not a batch")
        value = self._value[index]
        form = form_of(self.coord, self._form.kind, len(value) if value.ndim > 1 else None, False)
        return self._with_value(form, Pose.from_array(value) if value.shape == (7,) else value)

    def __getattr__(self, name: str) -> Any:
        """Compute the representation on first use; raise AttributeError for other names."""
        if name == "_representation":
            form, value = self._state
            self._representation = form.kind.of(tuple(map(read_only, self._numbers_of(value))))
            return self._representation
        kind, relation = type(self).__name__, type(self).coord_class.__name__.removesuffix("Coord")
        if name.startswith("_"):
            raise AttributeError(f"a {kind} has no '{name}'")
        if name in type(self).coord_class.fields:  # type: ignore[attr-defined]
            raise AttributeError(f"the names of a {kind} are in its coordinates: use .coord.{name}")
        if any(name in getattr(cls, "__dict__", {}) for cls in _all_relations(SemanticRelation)):
            hidden = ("by_shape", "coord_class", "of")
            members = ", ".join(
                item for item in sorted(dir(type(self))) if item[0] != "_" and item not in hidden
            )
            raise AttributeError(
                f"there is no {name} of relation {relation}; a {kind} has {members}"
            )
        hint = "its numbers are in .representation as they were given, in .numbers as plain arrays"
        raise AttributeError(
            f"a {kind} has no '{name}'; {hint}; .in_representation(...) gives them in another form"
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} is not an array: its numbers are in .representation and"
            " .numbers"
        )

    def _raise_no_operator(self, other: object) -> NoReturn:
        del other
        raise TypeError(
            f"a {type(self).__name__} is not added, subtracted or multiplied: a.compose(b) composes"
            " two of one kind, a.inverse() inverts one, and change_point, change_coordinate_frame"
            " and similar methods change its semantics"
        )

    __add__ = __sub__ = __mul__ = __matmul__ = __rmul__ = __rmatmul__ = _raise_no_operator

    def __neg__(self) -> NoReturn:
        self._raise_no_operator(None)

    def __eq__(self, other: object) -> bool:
        """Return whether coordinates, representation class, numbers and covariance are equal."""
        if not isinstance(other, SemanticRelation):
            return NotImplemented
        is_alike = self.coord == other.coord and (self.covariance is None) == (
            other.covariance is None
        )
        if not is_alike or type(self.representation) is not type(other.representation):
            return False
        pairs: list[Any] = [
            *zip(self.numbers, other.numbers, strict=True),
            (self.covariance, other.covariance),
        ]
        return all(a is b or np.array_equal(a, b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash((type(self), self.coord))

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_relation, (type(self), self.coord, self.representation, self.covariance)

    def __repr__(self) -> str:
        notation = ", ".join(map(repr, self.coord.notation()))
        kind, size = type(self.representation).__name__, self._form.size
        if size is not None:
            return f"{type(self).__name__}({notation}; {size} of {kind})"
        text = " ".join(map(_format_numbers, self.numbers))
        if self._form.is_uncertain:
            deviations = _format_numbers(np.sqrt(np.diag(self._covariance)))
            text += f"; standard deviations {deviations} in [{self.covariance_axes}]"
        return f"{type(self).__name__}({notation}; {kind} {text})"

    @property
    def numbers(self) -> Numbers:
        """Arrays of the relation; see :mod:`tmkit.relations.representation`."""
        numbers: Numbers = self.representation.numbers
        return numbers

    def in_representation(
        self, representation: type[_Representation], *, like: _Representation | None = None
    ) -> _Representation:
        """Return the numbers in another representation.

        Args:
            representation: class of the representation.
            like: representation whose settings are copied: the sequence of Euler angles, the
                orientation of rates.

        Raises:
            SemanticError: if the representation cannot represent this relation.
        """
        if (
            not isinstance(representation, type)
            or getattr(representation, "relation", "") != self.coord.relation
        ):
            rule = f"a representation of a {self.coord.relation} is given by its class"
            actual = (
                representation.__name__
                if isinstance(representation, type)
                else repr(representation)[:60]
            )
            raise rule_error("in_representation", rule, actual)
        if type(self.representation) is representation and like is None:
            current: _Representation = self.representation
            return current
        converted = representation.of(self.numbers, like=like)
        if checks_are_on():
            require_representable(converted, self.coord)
        return converted

    def with_representation(
        self, representation: type[Representation], *, like: Representation | None = None
    ) -> Self:
        """Return the relation with its numbers in another representation.

        Args:
            representation: class of the representation.
            like: representation whose settings are copied, as for :meth:`in_representation`.

        Raises:
            SemanticError: if the representation cannot represent this relation.
        """
        return self._of(
            self.coord, self.in_representation(representation, like=like), self.covariance
        )

    @classmethod
    def _value_of(cls, representation: Any) -> Value:
        return representation.numbers[0]

    @classmethod
    def _numbers_of(cls, value: Value) -> Numbers:
        return (value,)

    def _with_value(self, form: Form, value: Value, covariance: Vector | None = None) -> Self:
        """Return a relation with another form and value, in the representation of this relation."""
        representation = None
        if form.kind is None:
            like = self.representation
            representation = type(like).of(
                tuple(map(read_only, self._numbers_of(value))), like=like
            )
            if checks_are_on():
                require_representable(representation, form.coord)
        relation: Self = _new(type(self))
        return relation._set_state(
            form, value, covariance=covariance, representation=representation
        )

    def _apply_unary(self, operation: str) -> Self:
        """Return the result of an operation with one operand."""
        form, work, jacobians = plan_operation(type(self), operation, checks_are_on(), self._form)
        covariance = None
        if form.is_uncertain and jacobians is not None:
            covariance = propagate_covariance(
                self.dimension, (jacobians(self._value)[0], self._covariance)
            )
        return self._with_value(form, work(self._value), covariance)

    def _propagate_covariance(self, dimension: int, jacobian: Vector) -> Vector | None:
        """Return the covariance of a function of this relation; None if it is exact."""
        if not self._form.is_uncertain:
            return None
        return propagate_covariance(dimension, (jacobian, self._covariance))

    def _with_coord(self, coord: Any) -> Self:
        """Return the same numbers with other coordinates."""
        return self._of(coord, self.representation, self.covariance)

    def inverse(self) -> Self:
        """Return the inverse of the relation, expressed in the same frame.

        Raises:
            SemanticError: if the representation does not allow the result, as a matrix does not;
                see ``inverse2``.
        """
        try:
            return self._apply_unary("inverse")
        except SemanticError as error:
            repair = "use inverse2, which expresses the result in its own reference frame"
            violations = [replace(violation, repair=repair) for violation in error.violations]
            raise SemanticError.of(f"inverse({self.coord!r})", violations) from None

    def compose(self, other: Self) -> Self:
        """Return the composition with another relation of the same kind, in either order.

        If this relation is C relative to D, the other is D relative to E or B relative to C.
        Velocities must be at one point and in the same axes. Forces, torques and wrenches are
        added. With disabled checks, the order of the operands counts. The errors of both are
        assumed independent.

        Raises:
            SemanticError: if the operands do not chain.
        """
        return apply_binary("compose", self, other)

    def change_coordinate_frame(self, by: SemanticRelation) -> Self:
        """Return the relation expressed in another frame.

        ``by`` is the orientation of the frame of expression relative to the new one, expressed in
        the new one.

        Raises:
            SemanticError: if ``by`` is of another frame, the representation does not allow the
                result, or a pose or orientation has a covariance.
        """
        return apply_binary("change_coordinate_frame", self, by)


_new: Any = object.__new__


def apply_binary(operation: str, first: _Relation, by: SemanticRelation) -> _Relation:
    """Return the result of an operation with two operands; a short function for speed."""
    try:
        (x, value), (y, by_value) = first._state, by._state
    except AttributeError:
        coord_of(by, OPERANDS.get(operation, first.coord.relation))
        raise
    kind = type(first)
    form, work, jacobians = plan_operation(kind, operation, are_checked(), x, y)
    if value is None:
        value = first._value
    if by_value is None:
        by_value = by._value
    if form.is_plain:
        relation: _Relation = _new(kind)
        # A call of a method would take a tenth of the operation's time.
        relation._state = form, work(value, by_value)
        return relation
    covariance = None
    if form.is_uncertain and jacobians is not None:
        own_jacobian, by_jacobian = jacobians(value, by_value)
        covariance = propagate_covariance(
            kind.dimension, (own_jacobian, first.covariance), (by_jacobian, by.covariance)
        )
    return first._with_value(form, work(value, by_value), covariance)


def _make_relation(
    cls: type[SemanticRelation], coord: Any, representation: Any, covariance: Any
) -> SemanticRelation:
    """Return an unpickled relation."""
    return cls(coord, representation, covariance=covariance)


def require_one(relation: SemanticRelation, operation: str) -> None:
    """Raise SemanticError if a relation is a batch."""
    if relation.size is not None:
        what, repair = f"a batch of {relation.size}", "select one by its index"
        raise rule_error(operation, "it takes one relation", what, repair=repair)


def coord_of(operand: object, relation: str) -> Any:
    """Return the coordinates of a relation with numbers.

    Raises:
        SemanticError: if the operand has no numbers; the message has the expected relation.
    """
    if isinstance(operand, SemanticRelation):
        return operand.coord
    repair = f"add coordinates: Semantic{relation}({_EXAMPLES[f'{relation}Coord']}, numbers)"
    if isinstance(operand, Coord):
        repair = (
            f"add numbers: Semantic{operand.relation}(coordinates, numbers), or use apply on"
            " coordinates alone"
        )
    what = " ".join(repr(operand).split())[:80]
    raise rule_error("operand", "an operand is a relation with numbers", what, repair=repair)


_EXAMPLES = {
    "PositionCoord": "PositionCoord('e|C', 'f|D', '[r]')",
    "OrientationCoord": "OrientationCoord('[a]|C', '[b]|D', '[b]')",
    "PoseCoord": "PoseCoord('{g}|C', '{h}|D', '[h]')",
    **{
        f"{name}Coord": f"{name}Coord('e|C', 'D', '[r]')"
        for name in ("LinearVelocity", "Twist", "Torque", "Wrench")
    },
    **{f"{name}Coord": f"{name}Coord('C', 'D', '[r]')" for name in ("AngularVelocity", "Force")},
}


def _all_relations(base: type) -> list[type]:
    """Return a class and all its subclasses."""
    children: list[type] = base.__subclasses__()
    return [base, *(cls for child in children for cls in _all_relations(child))]


def _format_numbers(numbers: Vector) -> str:
    """Return the text of an array with six digits; of a rotation matrix its quaternion."""
    if numbers.shape == (3, 3):
        matrix = np.eye(4)
        matrix[:3, :3] = numbers
        return f"quat_xyzw={_format_numbers(Pose.from_matrix(matrix).as_array()[3:])}"
    return f"[{', '.join(f'{value:.6g}' for value in numbers.ravel() + 0.0)}]"
