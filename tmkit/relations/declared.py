"""Functions with declared semantics: a decorator that checks what goes in and what comes out.

A declaration is coordinates in which some names are variables: names that begin with a question mark. A variable stands
for one name throughout a call, in arguments and result: one declaration serves all bodies::

    @declares(pose=PoseCoord("{?g}|?C", "{?h}|?D", "[?h]"), returns=PoseCoord("{?h}|?D", "{?g}|?C", "[?g]"))
    def turned_round(pose: SemanticPose) -> SemanticPose:
        return pose.inverse2()

Invariants: with the checks off, the function is called as it is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tmkit.relations.semantic import SemanticRelation
from tmkit.relations.semantics import Semantics
from tmkit.relations.violations import SemanticError, Violation, checks_are_on

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
        TypeError: what is declared is no semantics or coordinates, or the function has no argument of such a name;
            raised when it is decorated.
    """
    for name, declared in {**arguments, "returns": returns}.items():
        if not isinstance(declared, Semantics) and not (name == "returns" and declared is None):
            example = "PoseCoord('{?g}|?C', '{?h}|?D', '[?h]')"
            raise TypeError(f"'{name}' is declared by coordinates or semantics, such as {example}, not by {declared!r}")

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
            broken = [
                violation
                for name, declared in arguments.items()
                if name in given
                for violation in _mismatches(f"argument {name}", declared, given[name], bound)
            ]
            if broken:
                raise SemanticError.of(function.__name__, broken)
            result = function(*args, **kwargs)
            broken = _mismatches("the result", returns, result, bound) if returns is not None else []
            if broken:
                raise SemanticError.of(function.__name__, broken)
            return result

        return checked

    return decorate


def _mismatches(what: str, declared: Semantics, value: Any, bound: dict[str, str]) -> list[Violation]:
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
