"""``tmkit serve --block``: function blocks by the names of their classes, with a configuration in TOML.

The modules are those that the command line names. A configuration has values only: it names no code.
"""

from __future__ import annotations

import dataclasses
import tomllib
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tmkit._support.named_code import named_module
from tmkit._support.toml_files import read_toml
from tmkit.errors import TmkitError, UnknownNameError

if TYPE_CHECKING:
    from tmkit.tamp import PlanningDomain
    from tmkit.world import BlockRunner, FunctionBlock, LiveScene


def block_runner(world: LiveScene, options: Sequence[str]) -> BlockRunner:
    """Return the runner of the blocks of options ``MODULE:CLASS=CONFIG``, each with its trigger.

    Raises:
        typer.BadParameter: an option that is no block; it is named.
    """
    from tmkit.world import BlockRunner

    blocks, triggers = [], {}
    for text in options:
        target, _, config = text.partition("=")
        try:
            kind = _class(target)
            values = _values(config)
            trigger = _trigger(values.pop("trigger", {}))
            block = kind(**_fields(kind, values))
        except TmkitError as error:
            raise typer.BadParameter(f"{target}: {error}", param_hint="--block") from None
        blocks.append(block)
        triggers[block.name] = trigger
    return BlockRunner(world, blocks, triggers=triggers)


def _class(target: str) -> type[FunctionBlock]:
    from tmkit.world import FunctionBlock

    module, name = named_module(target)
    found = getattr(module, name, None)
    if isinstance(found, type) and issubclass(found, FunctionBlock):
        return found
    kinds = {known: getattr(module, known) for known in dir(module)}
    raise UnknownNameError.of(
        "function block", name, (k for k, v in kinds.items() if isinstance(v, type) and issubclass(v, FunctionBlock))
    )


def _values(config: str) -> dict[str, Any]:
    """Return the values of an inline table of TOML, or of a file."""
    if not config.startswith("{"):
        return read_toml(Path(config), "the configuration of a function block")[0]
    try:
        values: dict[str, Any] = tomllib.loads(f"config = {config}")["config"]
    except tomllib.TOMLDecodeError as error:
        raise TmkitError(f"the configuration is not TOML: {error}") from None
    return values


def _trigger(value: Any) -> Any:
    from tmkit.world import After, Every, OnChange

    kinds = {"below": (OnChange, str), "after": (After, str), "every": (Every, float)}
    if value == {}:
        return OnChange()
    if not isinstance(value, dict) or len(value) != 1 or not kinds.keys() >= value.keys():
        raise TmkitError(f"trigger is one of {{below = FRAME}}, {{after = BLOCK}} and {{every = SECONDS}}, not {value}")
    ((name, given),) = value.items()
    kind, hint = kinds[name]
    return kind(_converted(f"trigger.{name}", given, hint))


def _fields(kind: type[FunctionBlock], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values as the fields of a class want them."""
    hints, known = typing.get_type_hints(kind), {one.name: one for one in dataclasses.fields(kind) if one.init}
    for name in values:
        if name not in known:
            raise UnknownNameError.of("configuration", name, known)
    lacking = [
        name for name, one in known.items()
        if name not in values and one.default is one.default_factory is dataclasses.MISSING
    ]  # fmt: skip
    if lacking:
        raise TmkitError(f"the configuration needs {', '.join(lacking)}")
    return {name: _converted(name, value, hints[name]) for name, value in values.items()}


def _domain(value: Any) -> PlanningDomain:
    """Return a built-in domain, by its name or ``{name = ..., robots = [...]}``. Others would run code of a folder."""
    from tmkit.robots import load_manipulator
    from tmkit.tamp import load_planning_domain

    given = value if isinstance(value, dict) else {"name": value}
    name, robots = given.get("name"), given.get("robots", ["panda"])
    if not isinstance(name, str) or not name.isidentifier() or not isinstance(robots, list):
        raise TmkitError(f"domain is a name or {{name = NAME, robots = [ROBOT, ...]}} of a built-in one, not {value!r}")
    return load_planning_domain(name, manipulator=[load_manipulator(str(robot)) for robot in robots])


def _converted(name: str, value: Any, hint: Any) -> Any:
    import msgspec

    from tmkit.tamp import PlanningDomain

    if hint is PlanningDomain:
        return _domain(value)
    try:
        return msgspec.convert(value, hint)
    except (msgspec.ValidationError, TypeError) as error:
        raise TmkitError(f"{name}: {error}") from None
