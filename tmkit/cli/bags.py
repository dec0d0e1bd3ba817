"""Commands about ROS 2 bags: ``tmkit bag info``, ``record`` and ``replay``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmkit.cli.common import (
    AllowFolders,
    AsJson,
    Packages,
    errors_about,
    load,
    note,
    reading_of,
    require_writable,
)
from tmkit.cli.completion import Kind, complete_names
from tmkit.cli.reporting import print_json, say
from tmkit.cli.serving import Settings, TransportName, WorldName, settings_of
from tmkit.world.service.zenoh.registration import ZENOH

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.world import Buffer, Client
    from tmkit.world.bags import BagReplay

app = typer.Typer(
    help="Record a served world to a ROS 2 bag, and replay bags; without ROS.", no_args_is_help=True
)
# messages that make one version of a served world, where they follow each other fast
_AT_ONCE = 100

Bag = Annotated[
    Path, typer.Argument(metavar="BAG", help="The folder of a bag, or a file .mcap or .db3.")
]
Token = Annotated[
    str,
    typer.Option(
        "--token", envvar="TMKIT_TOKEN", help="Of the client, where the server wants one."
    ),
]


@app.command()
def info(bag: Bag, as_json: AsJson = False) -> None:
    """List the topics of a bag, and which of them are replayed."""
    from tmkit.world.bags import read_bag_info

    found = read_bag_info(bag)
    if as_json:
        topics = [{**topic._asdict(), "is_replayed": topic.is_replayed} for topic in found.topics]
        print_json({"start": found.start, "end": found.end, "topics": topics})
        return
    count = sum(topic.messages for topic in found.topics)
    say(f"{count} messages in {found.end - found.start:.3f} s from {found.start:.3f} s")
    for topic in sorted(found.topics):
        more = (
            f" of frame '{topic.frame}'"
            if topic.frame
            else ""
            if topic.is_replayed
            else ", not replayed"
        )
        say(f"  {topic.name}: {topic.messages} of {topic.type}{more}")


@app.command()
def record(
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="The folder that is made.")],
    address: Annotated[
        str, typer.Option("--from", metavar="ADDRESS", help="Where the world is served.")
    ] = "tcp/127.0.0.1:7447",
    seconds: Annotated[
        float | None, typer.Option(min=0.0, help="End after so long; else by Ctrl-C.")
    ] = None,
    storage: Annotated[
        str, typer.Option(metavar="mcap|sqlite3", help="Kind of the files.")
    ] = "mcap",
    token: Token = "",
    world: WorldName = "world",
    transport: TransportName = ZENOH.name,
    setting: Settings = None,
) -> None:
    """Record a served world to a new bag, until Ctrl-C or for some seconds.

    Stamped poses become /tf, others /tf_static, histories of joints /joint_states.
    """
    from tmkit.errors import OutputError
    from tmkit.world import BagRecorder

    failures, versions = list[OutputError](), 0

    def write(scene: SceneGraph) -> None:
        nonlocal versions
        try:
            recorder.record(scene)
            versions += 1
        except OutputError as error:
            failures.append(error)

    with _connected(address, token, world, transport, setting) as client:
        with errors_about(address):
            replica = client.replica()
        with BagRecorder(bag, storage=storage) as recorder:  # type: ignore[arg-type]  # which checks it
            try:
                write(replica.scene)
                # in a thread of its own: no signal comes in the midst of a message
                replica.on_change(write)
                say(f"recording '{world}' at {address} to {bag}")
                end, told = None if seconds is None else time.monotonic() + seconds, ""
                while not failures and (end is None or time.monotonic() < end):
                    time.sleep(0.05 if end is None else max(0.0, min(0.05, end - time.monotonic())))
                    if (failure := replica.failure or "") != told:
                        note(f"{address}: {failure or 'the server answers again'}")
                        told = failure
            finally:
                replica.close()
                say(f"Recorded {versions} version{'s' * (versions != 1)} to {bag}")
    if failures:
        raise failures[0]


@app.command()
def replay(
    bag: Bag,
    scenes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENE...",
            help="With -o: the scene to begin with, such as a robot with its joints.",
            autocompletion=complete_names(Kind.SCENES),
        ),
    ] = None,
    into: Annotated[
        str | None, typer.Option("--into", metavar="ADDRESS", help="Replay into a served world.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the last version to a scene file."
        ),
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="Replay this one; repeatable.")
    ] = None,
    pose: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC=FRAME", help="The frame that poses of a topic are of; repeatable."
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Times the speed of the recording; 0: as fast as possible. Served: 1 if omitted.",
        ),
    ] = None,
    window: Annotated[
        float, typer.Option(min=0.0, help="Seconds of poses that are kept of each frame.")
    ] = 10.0,
    token: Token = "",
    world: WorldName = "world",
    transport: TransportName = ZENOH.name,
    setting: Settings = None,
    allow: AllowFolders = None,
    package: Packages = None,
) -> None:
    """Replay a bag into a served world (--into) or a scene file (-o)."""
    from tmkit.formats import convert_scene
    from tmkit.world import Buffer, play_bag

    if (into is None) == (output is None) or (into and scenes):
        raise typer.BadParameter(
            "expected either --into ADDRESS, or -o FILE with or without scenes", param_hint="BAG"
        )
    wrong = [text for text in pose or () if "=" not in text]
    if wrong:
        raise typer.BadParameter(
            f"'{wrong[0]}' is not of the form TOPIC=FRAME", param_hint="--pose"
        )
    options: dict[str, Any] = {"topics": tuple(topic) if topic else None}
    options["poses"] = dict(text.rpartition("=")[::2] for text in pose or ())
    if output is not None:
        require_writable(output)
        start = load(scenes, reading=reading_of(allow, package)) if scenes else None
        buffer = Buffer(window, scene=start)
        report = play_bag(bag, buffer, wait_until=_pace(rate or 0.0, lambda: None), **options)
        _tell(bag, buffer, report)
        for file in convert_scene(buffer.scene, output):
            say(f"Written to {file}")
        return
    assert into is not None
    with _connected(into, token, world, transport, setting) as client:
        with errors_about(into):
            buffer = Buffer(window, scene=client.scene())
        push = _pusher(client, buffer, into)
        report = play_bag(
            bag, buffer, wait_until=_pace(1.0 if rate is None else rate, push), **options
        )
        push()
    _tell(bag, buffer, report)


def _connected(
    address: str, token: str, world: str, transport: str, setting: list[str] | None
) -> Client:
    from tmkit.world import connect

    return connect(
        address, token=token, world=world, transport=transport, settings=settings_of(setting)
    )


def _pusher(client: Client, buffer: Buffer, address: str) -> Callable[[], None]:
    """Return a function that sends what is new in a buffer to the server, merged with what others have changed."""
    from tmkit.store import merge_scenes

    sent = buffer.scene

    def push() -> None:
        nonlocal sent
        now = buffer.scene
        if now is not sent:
            with errors_about(address):
                client.update(lambda scene: merge_scenes(sent, scene, now))
                sent = client.scene()  # with what others have changed
            buffer.update(lambda _: sent)

    return push


def _pace(rate: float, push: Callable[[], None]) -> Callable[[float], None]:
    """Return a function that waits until the time of a message, and sends what came before, many at once if need be."""
    begin: tuple[float, float] | None = None
    count = 0

    def wait_until(stamp: float) -> None:
        nonlocal begin, count
        count += 1
        begin = begin or (stamp, time.monotonic())
        due = begin[1] + (stamp - begin[0]) / rate if rate else 0.0
        if due > time.monotonic() or count % _AT_ONCE == 0:
            push()
            time.sleep(max(0.0, due - time.monotonic()))

    return wait_until


def _tell(bag: Path, buffer: Buffer, report: BagReplay) -> None:
    """Print what was replayed, and of each topic with refusals why the last was refused."""
    for topic, count in report.refused.items():
        reasons = [text for text in buffer.refusals if text.startswith(f"{topic}: ")]
        note(
            f"{bag}: {count} parts of messages were refused; the last:"
            f" {reasons[-1] if reasons else topic}"
        )
    if report.skipped:
        note(f"{bag}: not replayed: {', '.join(report.skipped)}")
    say(f"Replayed {sum(report.counts.values())} messages of {', '.join(sorted(report.counts))}")
