"""The command ``tmkit serve``: a world for clients in other processes and machines.

The command line names the modules of function blocks (``--block``). Their TOML configuration cannot
name code.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import time
import tomllib
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import typer

from tmkit._support.extras import importing
from tmkit._support.named_code import import_named_module
from tmkit._support.toml_files import read_toml
from tmkit.cli.common import SceneFileOptions, load, note
from tmkit.cli.completion import complete_scenes
from tmkit.cli.reporting import say
from tmkit.errors import OutputError, TmkitError, UnknownNameError
from tmkit.world.service.zenoh.registration import ZENOH

if TYPE_CHECKING:
    from tmkit.tamp.domains.planning_domain import PlanningDomain
    from tmkit.world import BlockRunner, FunctionBlock, LiveScene

_LOOPBACK = re.compile(r"[\w-]+/(127\.[\d.]+|localhost|\[::1\])(:\d+)?([?#].*)?")
"""Addresses that only processes of this machine can connect to."""

_STEP_PERIOD = 0.2
"""Time between two checks for a failure of the server [s]."""

_THREAD_SWITCH_INTERVAL = 0.0005
"""Interval of Python's thread switches [s], so that concurrent requests take milliseconds."""

WorldName = Annotated[str, typer.Option("--world", metavar="NAME", help="Name of the world.")]
TransportName = Annotated[
    str, typer.Option("--transport", metavar="NAME", help="What carries messages.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--setting", metavar="PATH=VALUE", help="A setting of the transport; repeatable."),
]


@dataclass(frozen=True)
class ServerOptions:
    """Address, log file and access rights of a server."""

    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="ADDRESS", help="Where to listen; with other machines, --tokens."
        ),
    ] = "tcp/127.0.0.1:7447"
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Record all versions; go on from what it has."),
    ] = None
    tokens: Annotated[
        Path | None,
        typer.Option("--tokens", metavar="FILE", help="Lines 'read TOKEN' and 'write TOKEN'."),
    ] = None


@dataclass(frozen=True)
class TransportOptions:
    """Transport of the messages, and its settings."""

    transport: TransportName = ZENOH.name
    setting: Settings = None


def parse_settings(texts: list[str] | None) -> dict[str, Any]:
    """Parse ``PATH=VALUE`` texts to the settings of a transport, by path.

    A value that is not JSON is text.
    """
    settings: dict[str, Any] = {}
    for text in texts or ():
        path, _, value = text.partition("=")
        try:
            settings[path] = json.loads(value)
        except ValueError:
            settings[path] = value
    return settings


def serve(
    scenes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENE...",
            autocompletion=complete_scenes,
            help=(
                "Scene files or built-in names, merged in order: the first version, unless the log"
                " has one."
            ),
        ),
    ] = None,
    *,
    server: ServerOptions,
    transport: TransportOptions,
    world: WorldName = "world",
    block: Annotated[
        list[str] | None,
        typer.Option(
            "--block",
            metavar="MODULE:CLASS=CONFIG",
            help=(
                "Run a function block, of a module or FILE.py, when its inputs change, or by its"
                " trigger; repeatable. "
                "CONFIG: a file of TOML, or {name = ..., input_hook = ..., trigger = {every ="
                " 0.1}}."
            ),
        ),
    ] = None,
    files: SceneFileOptions,
) -> None:
    """Serve a world that clients read, edit and follow; Ctrl-C ends it.

    Clients: tmkit.world.connect("tcp/127.0.0.1:7447"). Without --tokens only this machine can
    connect.
    """
    import resource

    from tmkit.world import LiveScene, WorldServer
    from tmkit.world.service.access import read_tokens
    from tmkit.world.service.transport_registry import load_transport
    from tmkit.world.service.transports import require_port

    address, log = server.listen, server.log
    if transport.transport == ZENOH.name:
        require_port(address)
    if server.tokens is None and not _LOOPBACK.fullmatch(address):
        reason = f"'{address}' is open to other machines: --tokens FILE is needed"
        raise typer.BadParameter(reason, param_hint="--listen")
    roles = None if server.tokens is None else read_tokens(server.tokens)

    # Create the world, its function blocks and its transport.
    is_new = log is None or not log.exists()
    live = LiveScene(load(scenes, reading=files.reading_options()) if scenes and is_new else None)
    runner = make_block_runner(live, block) if block else None
    carrier = load_transport(
        transport.transport,
        address,
        listen=True,
        world=world,
        settings=parse_settings(transport.setting),
    )

    # Each connection needs a file descriptor.
    _, max_descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max_descriptors, max_descriptors))
    sys.setswitchinterval(_THREAD_SWITCH_INTERVAL)
    with WorldServer(carrier, live, log=log, tokens=roles) as world_server:
        version = world_server.version
        if scenes and not is_new:
            note(
                f"{log}: the world goes on from version {version} of the log; the scene files are"
                " not used"
            )
        say(f"serving '{world}' at {address}: {len(live.scene)} frames, version {version}")
        sys.stdout.flush()
        while world_server.failure is None:
            runner.step(_STEP_PERIOD) if runner else time.sleep(_STEP_PERIOD)
        failure = world_server.failure
        raise OutputError(failure, path=str(log), reason=failure)


def make_block_runner(world: LiveScene, options: Sequence[str]) -> BlockRunner:
    """Return the runner of the blocks of ``MODULE:CLASS=CONFIG`` texts, with their triggers."""
    from tmkit.world import BlockRunner

    blocks, triggers = [], {}
    for text in options:
        target, _, config = text.partition("=")
        try:
            kind = _find_block_class(target)
            values = _read_config(config)
            trigger = _parse_trigger(values.pop("trigger", {}))
            block = kind(**_convert_fields(kind, values))
        except TmkitError as error:
            raise typer.BadParameter(f"{target}: {error}", param_hint="--block") from None
        blocks.append(block)
        triggers[block.name] = trigger
    return BlockRunner(world, blocks, triggers=triggers)


def _find_block_class(target: str) -> type[FunctionBlock]:
    """Return the class of function blocks that ``MODULE:CLASS`` names."""
    module, name = import_named_module(target)
    value = getattr(module, name, None)
    if _is_block_class(value):
        return value
    blocks = [entry for entry in dir(module) if _is_block_class(getattr(module, entry))]
    raise UnknownNameError.of("function block", name, blocks)


def _is_block_class(value: object) -> TypeGuard[type[FunctionBlock]]:
    """Return whether a value is a class of function blocks."""
    from tmkit.world import FunctionBlock

    return isinstance(value, type) and issubclass(value, FunctionBlock)


def _read_config(config: str) -> dict[str, Any]:
    """Return the values of an inline TOML table or of a TOML file."""
    if not config.startswith("{"):
        return read_toml(Path(config), "the configuration of a function block")[0]
    try:
        values: dict[str, Any] = tomllib.loads(f"config = {config}")["config"]
    except tomllib.TOMLDecodeError as error:
        raise TmkitError(f"the configuration is not TOML: {error}") from None
    return values


def _parse_trigger(value: Any) -> Any:
    """Return the trigger of a function block.

    Raises:
        TmkitError: if the value is not a table of one known key.
    """
    from tmkit.world import After, OnChange
    from tmkit.world.block_runner import Every

    kinds = {"below": (OnChange, str), "after": (After, str), "every": (Every, float)}
    if value == {}:
        return OnChange()
    if not isinstance(value, dict) or len(value) != 1 or not kinds.keys() >= value.keys():
        raise TmkitError(
            "trigger is one of {below = FRAME}, {after = BLOCK} and {every = SECONDS}, not"
            f" {value}"
        )
    ((name, argument),) = value.items()
    kind, hint = kinds[name]
    return kind(_convert(f"trigger.{name}", argument, hint))


def _convert_fields(kind: type[FunctionBlock], values: dict[str, Any]) -> dict[str, Any]:
    """Convert the values of a configuration to the types of the fields of a class.

    Raises:
        TmkitError: if a field is unknown, missing or of another type.
    """
    hints = typing.get_type_hints(kind)
    block_fields = {entry.name: entry for entry in dataclasses.fields(kind) if entry.init}
    for name in values:
        if name not in block_fields:
            raise UnknownNameError.of("configuration", name, block_fields)
    missing = [
        name
        for name, entry in block_fields.items()
        if name not in values and entry.default is entry.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise TmkitError(f"the configuration needs {', '.join(missing)}")
    return {name: _convert(name, value, hints[name]) for name, value in values.items()}


def _load_domain(value: Any) -> PlanningDomain:
    """Return a built-in domain, by its name or ``{name = ..., robots = [...]}``.

    Other domains are rejected because their folders contain code.
    """
    from tmkit.robots import load_manipulator
    from tmkit.tamp import load_planning_domain

    table = value if isinstance(value, dict) else {"name": value}
    name, robots = table.get("name"), table.get("robots", ["panda"])
    if not isinstance(name, str) or not name.isidentifier() or not isinstance(robots, list):
        raise TmkitError(
            "domain is a name or {name = NAME, robots = [ROBOT, ...]} of a built-in one, not"
            f" {value!r}"
        )
    return load_planning_domain(name, robot=[load_manipulator(str(robot)) for robot in robots])


def _convert(name: str, value: Any, hint: Any) -> Any:
    """Convert a value of a configuration to the type of its field."""
    with importing("msgspec", "world", "a served world needs"):
        import msgspec
    from tmkit.tamp.domains.planning_domain import PlanningDomain

    if hint is PlanningDomain:
        return _load_domain(value)
    try:
        return msgspec.convert(value, hint)
    except (msgspec.ValidationError, TypeError) as error:
        raise TmkitError(f"{name}: {error}") from None
