"""Flags of a command for the fields of :class:`tmkit.tamp.PlanningOptions`, which are listed there alone."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, get_type_hints

import typer

from tmkit._support.options import OptionKind, option_kinds
from tmkit.errors import ConfigurationError
from tmkit.tamp.options import PlanningOptions

PlanningFlags = Annotated[
    dict[str, Any], typer.Option(help="Values of the flags that are given, by field of the options.")
]

_METAVARS = {int: "N", float: "X", bool: None}


def with_planning_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has a flag for each number and truth value of the planning options.

    Args:
        command: has a parameter ``options``, which gets the values of the flags that are given, by field.
    """
    kinds = option_kinds(PlanningOptions)

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in kinds}
        options = {name: _value(name, text, kinds[name]) for name, text in given.items() if text is not None}
        command(**arguments, options=options)

    hints = get_type_hints(command, include_extras=True)
    hints |= {name: _annotation(name, kind) for name, kind in kinds.items()}
    del hints["options"]
    plain = inspect.signature(command).parameters
    defaults = {name: plain[name].default if name in plain else None for name in hints if name != "return"}
    keyword = inspect.Parameter.KEYWORD_ONLY
    shown = [inspect.Parameter(name, keyword, default=defaults[name], annotation=hints[name]) for name in defaults]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = hints
    del run.__wrapped__  # set by wraps; typer would look for hints there
    return run


def with_options(options: PlanningOptions, given: dict[str, Any]) -> PlanningOptions:
    """Return options with the values that flags give, by field.

    Raises:
        typer.BadParameter: a value outside its range; the message has the flag.
    """
    try:
        return replace(options, **given)
    except ConfigurationError as error:
        raise typer.BadParameter(error.message, param_hint=_flag(error.data["option"])) from None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _annotation(name: str, kind: OptionKind) -> Any:
    """Return the annotation from which typer makes a flag; it has no default, which only the dataclass has."""
    flag = f"{_flag(name)}/--no-{name.replace('_', '-')}" if kind.type is bool else _flag(name)
    metavar = f"N|{kind.unlimited}" if kind.unlimited else "|".join(kind.choices) or _METAVARS[kind.type]
    shown = typer.Option(flag, metavar=metavar, help=kind.help, show_default=False)
    value_type = str if kind.unlimited else kind.type
    return Annotated[value_type | None, shown]


def _value(name: str, text: Any, kind: OptionKind) -> Any:
    """Return the value of a flag that also takes the word for no limit."""
    if not kind.unlimited:
        return text
    if text != kind.unlimited and not text.isdecimal():
        raise typer.BadParameter(f"'{text}' is neither a number nor '{kind.unlimited}'", param_hint=_flag(name))
    return None if text == kind.unlimited else int(text)
