"""Scripts of the original TMKit: execution as Python 2, and the functions that they bind.

The original executes scripts in CLPython, a Python 2. Here Python 3 executes them unchanged:

* ``map``, ``filter``, ``zip`` and ``range`` return lists, and ``xrange`` and ``reduce`` exist;
* the division of two integers rounds down;
* ``aminopy`` and ``tmsmtpy`` are modules of this package, ``CL`` and ``TMSMT`` are empty.

A statement that Python 3 lacks, such as ``print x``, is an error with its line.

Invariants: a script changes no module of the process, and scripts do not share bindings.
"""

from __future__ import annotations

import ast
import builtins
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

from tmkit._support.source_location import did_you_mean
from tmkit.errors import (
    ConfigurationError,
    FileFormatError,
    SceneError,
    TaskError,
    TmkitError,
    UnknownNameError,
)
from tmkit.tamp.domains.tmsmt_scripts import aminopy, tmsmtpy
from tmkit.tamp.domains.tmsmt_scripts.tmsmtpy import PlanningFailureError

_DIVISION = "__divide__"
"""Name of the division of Python 2 in the namespace of a script."""

_REQUIRED_ROLES = ("scene_state", "goal_state", "scene_objects")
"""Roles of the functions that a script must bind by ``tmsmtpy.bind_ROLE(function)``."""

_ROLES = (*_REQUIRED_ROLES, "collision_constraint")
"""Roles of functions, beside the refinement of actions."""


_SCRIPT_ERRORS = (ConfigurationError, SceneError, UnknownNameError)
"""Errors of tmkit for which the script is the cause."""


@dataclass(frozen=True)
class Script:
    """An executed script.

    Attributes:
        path: its file.
        functions: bound functions by role.
        refinements: refinement functions by the name of the action, in capital letters.
        texts: all texts in the code, among which are the names of predicates and frames.
    """

    path: Path
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    refinements: dict[str, Callable[..., Any]] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a function of the script.

        Raises:
            PlanningFailureError: if the function reports that there is no motion.
            TaskError: if the function raises an error; the message has the line.
        """
        try:
            return function(*arguments)
        except PlanningFailureError:
            raise
        except Exception as error:
            if isinstance(error, TmkitError) and not isinstance(error, _SCRIPT_ERRORS):
                raise
            name = getattr(function, "__name__", "function")
            reason = f"{name}: {self.describe(error)}"
            raise TaskError.at(self.path, reason, line=self.line_of(error)) from error

    def bind_refinement(self, function: Callable[..., Any], operator: str) -> None:
        """Bind the refinement function of an action."""
        self.refinements[operator] = function

    def describe(self, error: Exception) -> str:
        """Return the message of an error, with the type of an error that is not tmkit's."""
        return str(error) if isinstance(error, TmkitError) else f"{type(error).__name__}: {error}"

    def line_of(self, error: Exception) -> int | None:
        """Return the innermost line of the script that an error passed, or None."""
        path = str(self.path)
        frames = traceback.extract_tb(error.__traceback__)
        return next((entry.lineno for entry in reversed(frames) if entry.filename == path), None)


def run_script(path: Path, source: bytes) -> Script:
    """Execute a script and return its bindings.

    Args:
        path: file of the script, for messages.
        source: text of the file.

    Raises:
        FileFormatError: if the text is not Python, raises an error, or lacks a binding; the message
            has the line.
    """
    script = Script(path)
    bindings = {f"bind_{role}": partial(script.functions.__setitem__, role) for role in _ROLES}
    modules = {
        "aminopy": _module("aminopy", aminopy.FUNCTIONS),
        "tmsmtpy": _module(
            "tmsmtpy",
            {**tmsmtpy.FUNCTIONS, **bindings, "bind_refine_operator": script.bind_refinement},
        ),
        "CL": _module("CL", {}),
        "TMSMT": _module("TMSMT", {}),
    }
    names = {"__name__": "__main__", "__file__": str(path), "__builtins__": _builtins(modules)}
    try:
        code = compile(_Division().visit(ast.parse(source, str(path))), str(path), "exec")
        exec(code, names)
    except SyntaxError as error:
        reason = f"{error.msg}; scripts are read as Python 3"
        raise FileFormatError.at(path, reason, line=error.lineno) from error
    except Exception as error:
        line = script.line_of(error)
        raise FileFormatError.at(path, script.describe(error), line=line) from error
    missing = [role for role in _REQUIRED_ROLES if role not in script.functions]
    if missing:
        raise FileFormatError.at(path, f"expected a call of tmsmtpy.bind_{missing[0]}(function)")
    return replace(script, texts=frozenset(_texts(code)))


def _module(name: str, contents: Mapping[str, Any]) -> ModuleType:
    """Return a module, with a hint for names that it lacks."""
    module = ModuleType(name)

    def raise_missing(attribute: str) -> NoReturn:
        hint = did_you_mean(attribute, contents)
        raise AttributeError(f"'{name}' of tmkit has no '{attribute}'{hint}")

    module.__dict__.update(contents, __getattr__=raise_missing)
    return module


def _builtins(modules: Mapping[str, ModuleType]) -> dict[str, Any]:
    """Return the built-in names of a script, which imports the given modules."""
    lists = {
        name: partial(_list_of, getattr(builtins, name))
        for name in ("map", "filter", "zip", "range")
    }
    names = {"xrange": range, "reduce": reduce, _DIVISION: _divide}
    return {**vars(builtins), **lists, **names, "__import__": partial(_import, modules)}


def _import(
    modules: Mapping[str, ModuleType],
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """Return a module of the package, or one of Python, as ``__import__`` does."""
    if name in modules:
        return modules[name]
    return __import__(name, globals, locals, fromlist or (), level)


def _list_of(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    return list(function(*arguments))


def _divide(a: Any, b: Any) -> Any:
    """Return the quotient of Python 2, which of two integers is the next lower integer."""
    return a // b if isinstance(a, int) and isinstance(b, int) else a / b


class _Division(ast.NodeTransformer):
    """Replacement of the operators ``/`` and ``/=`` by :func:`_divide`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Return the call for a division."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        call = ast.Call(ast.Name(_DIVISION, ast.Load()), [node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """Return the assignment for a division of a variable."""
        if not isinstance(node.op, ast.Div) or not isinstance(node.target, ast.Name):
            self.generic_visit(node)
            return node
        quotient = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        assignment = ast.Assign([node.target], self.visit_BinOp(quotient))
        return ast.fix_missing_locations(ast.copy_location(assignment, node))


def _texts(code: CodeType) -> Iterator[str]:
    """Yield the texts in code and in the functions that it defines."""
    values: list[object] = [*code.co_consts]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, CodeType):
            values.extend(value.co_consts)
        elif isinstance(value, tuple | frozenset):
            values.extend(value)
