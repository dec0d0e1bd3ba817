"""``tmkit serve``: a world for clients in other processes and machines.

Function blocks of ``--block`` are of modules that the command line names; their configuration in
TOML names no code.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import tomllib
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmkit._support.extras import importing
from tmkit._support.named_code import named_module
from tmkit._support.toml_files import read_toml
from tmkit.cli.common import AllowFolders, Meshes, Packages, load, note, reading_of
from tmkit.cli.completion import Kind, complete_names
from tmkit.cli.reporting import say
from tmkit.errors import OutputError, TmkitError, UnknownNameError
from tmkit.world.service.zenoh.registration import ZENOH

if TYPE_CHECKING:
    from tmkit.tamp.domains.planning_domain import PlanningDomain
    from tmkit.world import BlockRunner, FunctionBlock, LiveScene

_LOOPBACK = re.compile(r"[\w-]+/(127\.[\d.]+|localhost|\[::1\])(:\d+)?([?#].*)?")

WorldName = Annotated[str, typer.Option("--world", metavar="NAME", help="Name of the world.")]
TransportName = Annotated[
    str, typer.Option("--transport", metavar="NAME", help="What carries messages.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--setting", metavar="PATH=VALUE", help="A setting of the transport; repeatable."),
]


def settings_of(texts: list[str] | None) -> dict[str, Any]:
    """Return the settings of a transport by path, out of ``PATH=VALUE`` texts; values are JSON, or else texts."""

    def value(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    return {text.partition("=")[0]: value(text.partition("=")[2]) for text in texts or ()}


def serve(
    scenes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENE...",
            autocompletion=complete_names(Kind.SCENES),
            help=(
                "Scene files or built-in names, merged in order: the first version, unless the log"
                " has one."
            ),
        ),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="ADDRESS", help="Where to listen; with other machines, --tokens."
        ),
    ] = "tcp/127.0.0.1:7447",
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Record all versions; go on from what it has."),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option("--tokens", metavar="FILE", help="Lines 'read TOKEN' and 'write TOKEN'."),
    ] = None,
    transport: TransportName = ZENOH.name,
    setting: Settings = None,
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
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:
    """Hold a world that others read, edit and follow; Ctrl-C ends it.

    Clients: tmkit.world.connect("tcp/127.0.0.1:7447"). Without --tokens only this machine is
        listened to.
    """
    import resource
    import time

    from tmkit.world import LiveScene, WorldServer
    from tmkit.world.service.access import read_tokens
    from tmkit.world.service.transport_registry import load_transport
    from tmkit.world.service.transports import require_port

    if transport == ZENOH.name:
        require_port(listen)
    if tokens is None and not _LOOPBACK.fullmatch(listen):
        reason = f"'{listen}' is open to other machines: --tokens FILE is needed"
        raise typer.BadParameter(reason, param_hint="--listen")
    roles = None if tokens is None else read_tokens(tokens)
    is_new = log is None or not log.exists()
    live = LiveScene(
        load(scenes, reading=reading_of(allow, package, meshes)) if scenes and is_new else None
    )
    runner = block_runner(live, block) if block else None
    carrier = load_transport(
        transport, listen, listen=True, world=world, settings=settings_of(setting)
    )
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    # each connection is a file
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    # threads of the service answer within milliseconds beside each other
    sys.setswitchinterval(0.0005)
    with WorldServer(carrier, live, log=log, tokens=roles) as server:
        if scenes and not is_new:
            note(
                f"{log}: the world goes on from version {server.version} of the log; the scene"
                " files are not used"
            )
        say(f"serving '{world}' at {listen}: {len(live.scene)} frames, version {server.version}")
        sys.stdout.flush()
        while server.failure is None:
            runner.step(0.2) if runner else time.sleep(0.2)
        raise OutputError(server.failure, path=str(log), reason=server.failure)


def block_runner(world: LiveScene, options: Sequence[str]) -> BlockRunner:
    """Return the runner of the blocks of options ``MODULE:CLASS=CONFIG``, each with its trigger."""
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
        "function block",
        name,
        (k for k, v in kinds.items() if isinstance(v, type) and issubclass(v, FunctionBlock)),
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
    ((name, given),) = value.items()
    kind, hint = kinds[name]
    return kind(_converted(f"trigger.{name}", given, hint))


def _fields(kind: type[FunctionBlock], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values as the fields of a class want them."""
    hints, known = (
        typing.get_type_hints(kind),
        {one.name: one for one in dataclasses.fields(kind) if one.init},
    )
    for name in values:
        if name not in known:
            raise UnknownNameError.of("configuration", name, known)
    lacking = [
        name
        for name, one in known.items()
        if name not in values and one.default is one.default_factory is dataclasses.MISSING
    ]
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
        raise TmkitError(
            "domain is a name or {name = NAME, robots = [ROBOT, ...]} of a built-in one, not"
            f" {value!r}"
        )
    return load_planning_domain(
        name, manipulator=[load_manipulator(str(robot)) for robot in robots]
    )


def _converted(name: str, value: Any, hint: Any) -> Any:
    with importing("msgspec", "world", "a served world needs"):
        import msgspec
    from tmkit.tamp.domains.planning_domain import PlanningDomain

    if hint is PlanningDomain:
        return _domain(value)
    try:
        return msgspec.convert(value, hint)
    except (msgspec.ValidationError, TypeError) as error:
        raise TmkitError(f"{name}: {error}") from None
