"""Problem sources that a batch file names as ``MODULE:NAME``.

::

    [[problems]]
    source = "my_problems:Towers"      # Towers(height=4).problem(seed)
    parameters = { height = 4 }

The name refers to code, and a batch file runs no code without permission. A module is imported only
if the caller allows the same text, as ``tmkit batch FILE --allow-source my_problems:Towers``.

Invariants: no module is imported for a name that the caller has not allowed. A source is checked
before a batch starts.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias, TypeGuard

from tmkit._support.named_code import import_named_object
from tmkit.batch.problems import ProblemSource
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
"""Form of the name of a source: a dotted module, a colon and a name."""


_SourceFactory: TypeAlias = Callable[..., Any]
"""Class or function of the user that creates a problem source."""


def import_source(name: str, allowed: Collection[str]) -> _SourceFactory:
    """Import the class or function ``MODULE:NAME``, if it is allowed.

    Args:
        name: name of an object in an importable module.
        allowed: names that the caller allows.

    Raises:
        ConfigurationError: if the name is not allowed or of another form, or the module cannot be
            imported.
        UnknownNameError: if the module has no such name; the message has the nearest name.
    """
    if _NAME.fullmatch(name) is None or name.rpartition(":")[0].endswith(".py"):
        raise ConfigurationError(
            f"expected MODULE:NAME, a module that Python can import, received '{name}'"
        )
    if name not in allowed:
        raise ConfigurationError(
            f"'{name}' is code, which a batch file runs only with permission; if you trust it,"
            f" allow it by --allow-source {name} on the command line, or by"
            f" allow_sources=['{name}'] of load_batch"
        )
    factory = import_named_object(name, kind="problem source")
    if not callable(factory):
        raise ConfigurationError(
            f"'{name}' is not a problem source: expected a class or a function, received"
            f" {factory!r}"
        )
    return factory  # type: ignore[no-any-return]  # it is callable


def make_source(
    name: str, factory: _SourceFactory, arguments: Mapping[str, Any], seed: int
) -> ProblemSource:
    """Call a class or function with keyword arguments, and check the resulting problem source.

    Args:
        name: name in messages.
        factory: class or function.
        arguments: keyword arguments.
        seed: seed of the problem that is created for the check.

    Raises:
        UnknownNameError: if an argument has no parameter; the message has the nearest name.
        ConfigurationError: if the call or the problem raises an error, or its result is not a
            problem source.
    """
    _check_names(factory, arguments)
    try:
        source = factory(**arguments)
    except Exception as error:  # any error of the user's code
        raise ConfigurationError(f"'{name}' cannot be created: {_describe(error)}") from error
    if not _is_source(source):
        raise ConfigurationError(
            f"'{name}' is not a problem source: expected a method 'problem' and a text 'digest',"
            f" received {source!r}"
        )
    try:
        problem = source.problem(seed)
    except Exception as error:  # any error of the user's code
        raise ConfigurationError(
            f"the problem of seed {seed} of '{name}': {_describe(error)}"
        ) from error
    match problem:
        case (PlanningProblem(), PlanningOptions()):
            return source
    raise ConfigurationError(
        f"'{name}' is not a problem source: expected a PlanningProblem and PlanningOptions of"
        f" 'problem', received {problem!r}"
    )


def _check_names(factory: _SourceFactory, arguments: Mapping[str, Any]) -> None:
    """Raise UnknownNameError if an argument has no parameter of the same name."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # a compiled function, whose call raises the error
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in arguments:
        if name not in parameters:
            raise UnknownNameError.of("parameter", name, list(parameters))


def _is_source(value: object) -> TypeGuard[ProblemSource]:
    """Return whether a value, which is not a class, has the members of :class:`ProblemSource`."""
    try:
        digest = getattr(value, "digest", None)
    except Exception:  # any error of the user's property
        return False
    has_problem = callable(getattr(value, "problem", None))
    return not isinstance(value, type) and has_problem and isinstance(digest, str)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
