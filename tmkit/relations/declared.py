"""Declared semantics: checks of arguments and results, and poses with frames as type parameters.

A declaration consists of coordinates. Names that begin with a question mark are variables. A
variable denotes one name throughout a call, in arguments and result, so one declaration applies to
all bodies::

    @declares(
        pose=PoseCoord("{?g}|?C", "{?h}|?D", "[?h]"),
        returns=PoseCoord("{?h}|?D", "{?g}|?C", "[?g]"),
    )
    def invert(pose: SemanticPose) -> SemanticPose:
        return pose.inverse2()

With disabled checks, the function is called directly.

``FramedPose[Hand, Table]`` is the pose of the hand relative to the table. A type checker rejects
products of frames that do not match. A frame is a class without instances::

    class World(Frame, name="world", body="floor"): ...

    grasp = FramedPose(Hand, Table, tk.Pose([0, 0, 0.1]))  # FramedPose[Hand, Table]
    grasp @ FramedPose(Table, World, tk.Pose())  # FramedPose[Hand, World]; the reverse is an error
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, cast

from numpy.typing import ArrayLike

from tmkit.relations.semantic.base import SemanticRelation
from tmkit.relations.semantic.constant import SemanticPose
from tmkit.relations.semantics import PoseCoord, Semantics
from tmkit.relations.violations import SemanticError, Violation, checks_are_on, rule_error
from tmkit.spatial import Pose

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Declaration:
    """Decorator that checks the semantics of a function's arguments and result.

    Args:
        arguments: semantics of the arguments, by name.
        result: semantics of the result, or None.
    """

    def __init__(self, arguments: dict[str, Semantics], result: Semantics | None) -> None:
        self._arguments, self._result = arguments, result

    def __call__(self, function: _Function) -> _Function:
        """Return the function with checks of its arguments and result.

        Raises:
            TypeError: if a declared argument is unknown.
        """
        signature = inspect.signature(function)
        for name in self._arguments:
            if name not in signature.parameters:
                raise TypeError(f"{function.__name__} has no argument '{name}' to declare")

        @functools.wraps(function)
        def check_call(*args: object, **kwargs: object) -> Any:
            if not checks_are_on():
                return function(*args, **kwargs)
            bindings: dict[str, str] = {}
            values = signature.bind(*args, **kwargs).arguments
            self._check_arguments(function.__name__, values, bindings)
            result = function(*args, **kwargs)
            self._check_result(function.__name__, result, bindings)
            return result

        return cast("_Function", check_call)

    def _check_arguments(
        self, function: str, values: dict[str, object], bindings: dict[str, str]
    ) -> None:
        """Raise SemanticError if arguments differ from their declarations."""
        violations: list[Violation] = []
        for name, declared in self._arguments.items():
            if name in values:
                what = f"argument {name}"
                violations += _find_mismatches(what, declared, values[name], bindings)
        if violations:
            raise SemanticError.of(function, violations)

    def _check_result(self, function: str, value: object, bindings: dict[str, str]) -> None:
        """Raise SemanticError if the result differs from its declaration."""
        if self._result is None:
            return
        violations = _find_mismatches("the result", self._result, value, bindings)
        if violations:
            raise SemanticError.of(function, violations)


def declares(*, returns: Semantics | None = None, **arguments: Semantics) -> _Declaration:
    """Return a decorator that checks the semantics of a function's arguments and result.

    Args:
        returns: semantics of the result; not checked by default.
        arguments: semantics of the arguments, by name; other arguments are not checked.

    Raises:
        TypeError: if a declaration is neither semantics nor coordinates, or an argument is unknown;
            raised at decoration.
    """
    for name, declared in {**arguments, "returns": returns}.items():
        if not isinstance(declared, Semantics) and not (name == "returns" and declared is None):
            example = "PoseCoord('{?g}|?C', '{?h}|?D', '[?h]')"
            raise TypeError(
                f"'{name}' is declared by coordinates or semantics, such as {example}, not by"
                f" {declared!r}"
            )
    return _Declaration(arguments, returns)


def _find_mismatches(
    what: str, declared: Semantics, value: object, bindings: dict[str, str]
) -> list[Violation]:
    """Return the differences of a value from its declaration, and bind variables."""
    coord = value.coord if isinstance(value, SemanticRelation) else value
    if getattr(coord, "relation", None) != declared.relation:
        return [Violation(f"{what} is a {declared.relation}", type(value).__name__)]
    violations = []
    for name in declared.fields:
        pattern, actual = getattr(declared, name), getattr(coord, name, None)
        if actual is None:
            violations.append(Violation(f"{what} has a {name}", repr(coord)))
            continue
        is_variable = pattern.startswith("?")
        expected = bindings.setdefault(pattern, actual) if is_variable else pattern
        if expected != actual:
            text = f"{pattern}, which is {expected}" if is_variable else pattern
            violations.append(Violation(f"{what} has the declared {name}", actual, text))
    return violations


class Frame:
    """Base class of frames as types; ``name`` and ``body`` default to the name of the class.

    Attributes:
        name: name of the frame.
        body: name of the body to which the frame is fixed.
    """

    name: ClassVar[str]
    body: ClassVar[str]

    def __init_subclass__(cls, *, name: str = "", body: str = "") -> None:
        cls.name = name or cls.__name__
        cls.body = body or cls.name


_Target = TypeVar("_Target", bound=Frame)
_Reference = TypeVar("_Reference", bound=Frame)
_Next = TypeVar("_Next", bound=Frame)


class FramedPose(Generic[_Target, _Reference]):
    """Pose of a frame relative to another, with both frames as type parameters.

    Args:
        target: frame.
        reference: frame relative to which, and in whose axes, the pose is expressed.
        values: pose, homogeneous matrix (4, 4), or relation between these two frames.

    Raises:
        SemanticError: if the numbers are not a pose, or the relation is between other frames.
    """

    __slots__ = ("reference", "relation", "target")

    def __init__(
        self,
        target: type[_Target],
        reference: type[_Reference],
        values: Pose | ArrayLike | SemanticPose,
    ) -> None:
        coord = PoseCoord.from_names(
            point=target.name,
            ori=target.name,
            body=target.body,
            ref_point=reference.name,
            ref_ori=reference.name,
            ref_body=reference.body,
            coord=reference.name,
        )
        if isinstance(values, SemanticPose) and values.coord != coord:
            rule = f"it is the pose of {target.__name__} relative to {reference.__name__}"
            raise rule_error("FramedPose", rule, repr(values.coord), repr(coord))
        self.relation = values if isinstance(values, SemanticPose) else SemanticPose(coord, values)
        self.target, self.reference = target, reference

    def __matmul__(self, other: FramedPose[_Reference, _Next]) -> FramedPose[_Target, _Next]:
        """Return the pose of this target relative to the other reference."""
        return FramedPose(self.target, other.reference, self.relation.compose(other.relation))

    def inverse(self) -> FramedPose[_Reference, _Target]:
        """Return the inverse pose."""
        return FramedPose(self.reference, self.target, self.relation.inverse2())

    @property
    def pose(self) -> Pose:
        """Pose reference_from_target."""
        return self.relation.pose

    def __repr__(self) -> str:
        return f"FramedPose({self.target.__name__}, {self.reference.__name__}, {self.pose!r})"
