"""Commands whose options are grouped in dataclasses.

A command is a plain function of at most seven parameters. Options that belong together are the
fields of one frozen dataclass, which several commands can share::

    @dataclass(frozen=True)
    class VideoOptions:
        record: Annotated[Path | None, typer.Option(metavar="FILE.mp4", help="The video.")] = None
        rate: Annotated[float, typer.Option(metavar="HZ", help="Frames per second.")] = 30.0

    def simulate(plan: PlanFile, video: VideoOptions) -> None: ...

    add_command(app, simulate)  # tmkit simulate PLAN --record FILE.mp4 --rate HZ

:func:`add_command` registers the function with typer. Each field becomes an option, in the order of
the parameters and of the fields, and the function receives an instance of the dataclass. A
``__post_init__`` may check the values and raise :class:`typer.BadParameter`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_origin, get_type_hints

import typer


def add_command(app: typer.Typer, function: Callable[..., None], name: str | None = None) -> None:
    """Register a function, some of whose parameters are groups of options, as a command.

    Args:
        app: command or group of commands.
        function: command, whose arguments are the values of options and instances of groups.
        name: name of the command. Defaults to the name of the function.

    Raises:
        TypeError: if a group is not frozen, if a field has no ``Annotated`` type or a default
            factory, or if two options have the same name.
    """
    groups, options = _read_parameters(function)

    @functools.wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def call(**values: Any) -> None:
        arguments: dict[str, Any] = {}
        for parameter, group in groups.items():
            members = [entry.name for entry in fields(group)]
            arguments[parameter] = group(**{member: values.pop(member) for member in members})
        function(**arguments, **values)

    call.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # typer reads it
    del call.__wrapped__  # set by wraps; typer would read the signature there
    app.command(name)(call)


def _read_parameters(
    function: Callable[..., None],
) -> tuple[dict[str, type], list[inspect.Parameter]]:
    """Return the groups of a function by parameter, and its options, including those of groups.

    Raises:
        TypeError: if a group is invalid, or two options have the same name.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and is_dataclass(hint):
            groups[parameter.name] = hint
            options.extend(_group_options(hint))
        else:
            options.append(_option(parameter.name, hint, parameter.default))
    names = [option.name for option in options]
    for name in names:
        if names.count(name) > 1:
            raise TypeError(f"{function.__qualname__}: two options have the name '{name}'")

    return groups, options


def _group_options(group: Any) -> Iterator[inspect.Parameter]:
    """Yield one option for each field of a dataclass.

    Raises:
        TypeError: if the class is not frozen or a field is not an option.
    """
    if not group.__dataclass_params__.frozen:
        raise TypeError(f"{group.__qualname__}: a group of options must be a frozen dataclass")
    hints = get_type_hints(group, include_extras=True)
    for entry in fields(group):
        place = f"{group.__qualname__}.{entry.name}"
        if get_origin(hints[entry.name]) is not Annotated:
            raise TypeError(
                f"{place}: expected Annotated[..., typer.Option(...)], got {entry.type}"
            )
        if entry.default_factory is not MISSING:
            raise TypeError(f"{place}: an option has a default, not a default factory")
        default = inspect.Parameter.empty if entry.default is MISSING else entry.default
        yield _option(entry.name, hints[entry.name], default)


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return an option as a keyword of the function that typer calls."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=annotation)
