"""Declared semantics: a decorator that checks what goes in and what comes out, and poses whose frames are types.

A declaration is coordinates in which some names are variables: names that begin with a question
mark. A variable stands for one name throughout a call, in arguments and result: one declaration
serves all bodies::

    @declares(pose=PoseCoord("{?g}|?C", "{?h}|?D", "[?h]"), returns=PoseCoord("{?h}|?D", "{?g}|?C", "[?g]"))
    def turned_round(pose: SemanticPose) -> SemanticPose:
        return pose.inverse2()

With the checks off, the function is called as it is.

``FramedPose[Hand, Table]`` is the pose of the hand relative to the table, of which a type checker
finds products of frames that do not meet; a frame is a class that is never made::

    class World(Frame, name="world", body="floor"): ...

    grasp = FramedPose(Hand, Table, tk.Pose([0, 0, 0.1]))  # FramedPose[Hand, Table]
    grasp @ FramedPose(Table, World, tk.Pose())            # FramedPose[Hand, World]; the other order is an error
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

from tmkit.relations.semantic.base import SemanticRelation
from tmkit.relations.semantic.constant import SemanticPose
from tmkit.relations.semantics import PoseCoord, Semantics
from tmkit.relations.violations import SemanticError, Violation, checks_are_on, rule_error
from tmkit.spatial import Pose

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def declares(
    *, returns: Semantics | None = None, **arguments: Semantics
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Return a decorator that checks the semantics of a function's arguments and result.

    Args:
        returns: what the result is; not checked by default.
        arguments: what the arguments are, by name; others are not checked.

    Raises:
        TypeError: when decorated: no semantics or coordinates are declared, or there is no argument
            of such a name.
    """
    for name, declared in {**arguments, "returns": returns}.items():
        if not isinstance(declared, Semantics) and not (name == "returns" and declared is None):
            example = "PoseCoord('{?g}|?C', '{?h}|?D', '[?h]')"
            raise TypeError(
                f"'{name}' is declared by coordinates or semantics, such as {example}, not by"
                f" {declared!r}"
            )

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        signature = inspect.signature(function)
        for name in arguments:
            if name not in signature.parameters:
                raise TypeError(f"{function.__name__} has no argument '{name}' to declare")

        @functools.wraps(function)
        def checked(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            if not checks_are_on():
                return function(*args, **kwargs)
            bound: dict[str, str] = {}
            given = signature.bind(*args, **kwargs).arguments
            broken: list[Violation] = []
            for name, declared in arguments.items():
                broken += (
                    _find_mismatches(f"argument {name}", declared, given[name], bound)
                    if name in given
                    else []
                )
            if not broken:
                result = function(*args, **kwargs)
                broken = (
                    _find_mismatches("the result", returns, result, bound)
                    if returns is not None
                    else []
                )
            if broken:
                raise SemanticError.of(function.__name__, broken)
            return result

        return checked

    return decorate


def _find_mismatches(
    what: str, declared: Semantics, value: Any, bound: dict[str, str]
) -> list[Violation]:
    """Return where a value is not what was declared; variables are bound on the way."""
    coord = value.coord if isinstance(value, SemanticRelation) else value
    if getattr(coord, "relation", None) != declared.relation:
        return [Violation(f"{what} is a {declared.relation}", type(value).__name__)]
    broken = []
    for name in declared.fields:
        wanted, given = getattr(declared, name), getattr(coord, name, None)
        if given is None:
            broken.append(Violation(f"{what} has a {name}", repr(coord)))
            continue
        expected = bound.setdefault(wanted, given) if wanted.startswith("?") else wanted
        if expected != given:
            shown = f"{wanted}, which is {expected}" if wanted.startswith("?") else wanted
            broken.append(Violation(f"{what} has the declared {name}", given, shown))
    return broken


class Frame:
    """Base of frames as types; the keywords ``name`` and ``body`` are the name of the class by default.

    Attributes:
        name: name of the frame.
        body: name of the body that it is fixed to.
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
    """The pose of a frame relative to another, both known to the type checker.

    Args:
        target: the frame.
        reference: the frame relative to which it is, and in whose axes.
        values: a pose, a homogeneous matrix (4, 4), or a relation between just these frames.

    Raises:
        SemanticError: the numbers are no pose, or a relation of other frames.
    """

    __slots__ = ("reference", "relation", "target")

    def __init__(self, target: type[_Target], reference: type[_Reference], values: Any) -> None:
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
        """The numbers, reference_from_target."""
        return self.relation.pose

    def __repr__(self) -> str:
        return f"FramedPose({self.target.__name__}, {self.reference.__name__}, {self.pose!r})"
