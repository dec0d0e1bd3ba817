"""``tmkit serve``: a world for clients in other processes and machines."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tmkit.cli.common import AllowFolders, Meshes, Packages, load, note, say
from tmkit.cli.completion import Kind, complete_names
from tmkit.errors import OutputError

_LOOPBACK = re.compile(r"[\w-]+/(127\.[\d.]+|localhost|\[::1\])(:\d+)?([?#].*)?")

WorldName = Annotated[str, typer.Option("--world", metavar="NAME", help="Name of the world.")]
TransportName = Annotated[str, typer.Option("--transport", metavar="NAME", help="What carries messages.")]
Settings = Annotated[
    list[str] | None, typer.Option("--setting", metavar="PATH=VALUE", help="A setting of the transport; repeatable.")
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
            metavar="SCENE...", autocompletion=complete_names(Kind.SCENES),
            help="Scene files or built-in names, merged in order: the first version, unless the log has one.",
        ),
    ] = None,
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS", help="Where to listen; with other machines, --tokens.")
    ] = "tcp/127.0.0.1:7447",
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="Record all versions; go on from what it has.")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option("--tokens", metavar="FILE", help="Lines 'read TOKEN' and 'write TOKEN'.")
    ] = None,
    transport: TransportName = "zenoh",
    setting: Settings = None,
    world: WorldName = "world",
    block: Annotated[
        list[str] | None,
        typer.Option(
            "--block", metavar="MODULE:CLASS=CONFIG",
            help="Run a function block, of a module or FILE.py, when its inputs change, or by its trigger; repeatable. "
            "CONFIG: a file of TOML, or {name = ..., input_hook = ..., trigger = {every = 0.1}}.",
        ),
    ] = None,
    allow: AllowFolders = None,
    package: Packages = None,
    meshes: Meshes = "load",
) -> None:  # fmt: skip
    """Hold a world that others read, edit and follow; Ctrl-C ends it.

    Clients: tmkit.world.connect("tcp/127.0.0.1:7447"). Without --tokens only this machine is listened to.
    """
    import time

    from tmkit.cli.blocks import block_runner
    from tmkit.world import LiveScene, WorldServer, load_transport, read_tokens

    if tokens is None and not _LOOPBACK.fullmatch(listen):
        reason = f"'{listen}' is open to other machines: --tokens FILE is needed"
        raise typer.BadParameter(reason, param_hint="--listen")
    roles = None if tokens is None else read_tokens(tokens)
    is_new = log is None or not log.exists()
    live = LiveScene(load(scenes, allow=allow, packages=package, meshes=meshes) if scenes and is_new else None)
    runner = block_runner(live, block) if block else None
    carrier = load_transport(transport, listen, listen=True, world=world, settings=settings_of(setting))
    sys.setswitchinterval(0.0005)  # threads of the service answer within milliseconds beside each other
    with WorldServer(carrier, live, log=log, tokens=roles) as server:
        if scenes and not is_new:
            note(f"{log}: the world goes on from version {server.version} of the log; the scene files are not used")
        say(f"serving '{world}' at {listen}: {len(live.scene)} frames, version {server.version}")
        sys.stdout.flush()
        while server.failure is None:
            runner.step(0.2) if runner else time.sleep(0.2)
        raise OutputError(server.failure, path=str(log), reason=server.failure)
