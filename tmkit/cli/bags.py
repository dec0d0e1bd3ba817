"""Commands for ROS 2 bags: ``tmkit bag info``, ``record`` and ``replay``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmkit.cli.common import AsJson, FileOptions, errors_about, load, note, require_writable
from tmkit.cli.completion import complete_scenes
from tmkit.cli.option_groups import add_command
from tmkit.cli.reporting import print_json, say
from tmkit.cli.serving import Settings, TransportName, WorldName, parse_settings
from tmkit.errors import OutputError
from tmkit.world.service.zenoh.registration import ZENOH

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.world import BagRecorder, Buffer, Client
    from tmkit.world.bags import BagReplay

app = typer.Typer(
    help="Record a served world to a ROS 2 bag, and replay bags; without ROS.", no_args_is_help=True
)

_MESSAGES_PER_VERSION = 100
"""Largest number of messages in one version of a served world, where they follow fast."""

_POLLING_PERIOD = 0.05
"""Time between two checks for a failure or the end of a recording [s]."""

Bag = Annotated[
    Path, typer.Argument(metavar="BAG", help="The folder of a bag, or a file .mcap or .db3.")
]
Token = Annotated[
    str,
    typer.Option(
        "--token", envvar="TMKIT_TOKEN", help="Token of the client, if the server needs one."
    ),
]


@dataclass(frozen=True)
class ConnectionOptions:
    """Connection to a served world."""

    token: Token = ""
    world: WorldName = "world"
    transport: TransportName = ZENOH.name
    setting: Settings = None

    def connect(self, address: str) -> Client:
        """Connect to the server at an address."""
        from tmkit.world import connect

        return connect(
            address,
            token=self.token,
            world=self.world,
            transport=self.transport,
            settings=parse_settings(self.setting),
        )


@dataclass(frozen=True)
class ReplayTarget:
    """Served world or scene file that receives the messages of a bag."""

    into: Annotated[
        str | None, typer.Option("--into", metavar="ADDRESS", help="Replay into a served world.")
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the last version to a scene file."
        ),
    ] = None


@dataclass(frozen=True)
class ReplayOptions:
    """Topics to replay, replay rate and length of the pose history."""

    topic: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="Replay this one; repeatable.")
    ] = None
    pose: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC=FRAME", help="The frame that poses of a topic are of; repeatable."
        ),
    ] = None
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Times the speed of the recording; 0: as fast as possible. Served: 1 if omitted.",
        ),
    ] = None
    window: Annotated[
        float, typer.Option(min=0.0, help="Seconds of poses that are kept of each frame.")
    ] = 10.0


def info(bag: Bag, as_json: AsJson = False) -> None:
    """List the topics of a bag, and which of them are replayed."""
    from tmkit.world.bags import read_bag_info

    content = read_bag_info(bag)
    if as_json:
        topics = [{**topic._asdict(), "is_replayed": topic.is_replayed} for topic in content.topics]
        print_json({"start": content.start, "end": content.end, "topics": topics})
        return
    count = sum(topic.messages for topic in content.topics)
    say(f"{count} messages in {content.end - content.start:.3f} s from {content.start:.3f} s")
    for topic in sorted(content.topics):
        suffix = "" if topic.is_replayed else ", not replayed"
        if topic.frame:
            suffix = f" of frame '{topic.frame}'"
        say(f"  {topic.name}: {topic.messages} of {topic.type}{suffix}")


def record(
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="The folder that is made.")],
    *,
    address: Annotated[
        str, typer.Option("--from", metavar="ADDRESS", help="Where the world is served.")
    ] = "tcp/127.0.0.1:7447",
    seconds: Annotated[
        float | None, typer.Option(min=0.0, help="End after so long; else by Ctrl-C.")
    ] = None,
    storage: Annotated[
        str, typer.Option(metavar="mcap|sqlite3", help="Kind of the files.")
    ] = "mcap",
    connection: ConnectionOptions,
) -> None:
    """Record a served world to a new bag, until Ctrl-C or for some seconds.

    Stamped poses become /tf, others /tf_static, histories of joints /joint_states.
    """
    from tmkit.world import BagRecorder

    with connection.connect(address) as client:
        with errors_about(address):
            replica = client.replica()
        with BagRecorder(bag, storage=storage) as recorder:  # type: ignore[arg-type]  # which checks it
            recording = _Recording(recorder)
            try:
                recording.add(replica.scene)
                # The replica calls from its own thread, so no signal interrupts a message.
                replica.on_change(recording.add)
                say(f"recording '{connection.world}' at {address} to {bag}")
                end = None if seconds is None else time.monotonic() + seconds
                reported_failure = ""
                while not recording.failures and (end is None or time.monotonic() < end):
                    remaining = _POLLING_PERIOD if end is None else end - time.monotonic()
                    time.sleep(max(0.0, min(_POLLING_PERIOD, remaining)))
                    failure = replica.failure or ""
                    if failure != reported_failure:
                        note(f"{address}: {failure or 'the server answers again'}")
                        reported_failure = failure
            finally:
                replica.close()
                versions = recording.versions
                say(f"Recorded {versions} version{'s' * (versions != 1)} to {bag}")
    if recording.failures:
        raise recording.failures[0]


class _Recording:
    """Versions of a world that are written to a bag.

    Attributes:
        versions: number of versions in the bag.
        failures: errors of the versions that could not be written.
    """

    def __init__(self, recorder: BagRecorder) -> None:
        self._recorder = recorder
        self.versions = 0
        self.failures: list[OutputError] = []

    def add(self, scene: SceneGraph) -> None:
        """Write a version, or store its error."""
        try:
            self._recorder.record(scene)
            self.versions += 1
        except OutputError as error:
            self.failures.append(error)


def replay(
    bag: Bag,
    scenes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCENE...",
            help="With -o: the scene to begin with, such as a robot with its joints.",
            autocompletion=complete_scenes,
        ),
    ] = None,
    *,
    target: ReplayTarget,
    options: ReplayOptions,
    connection: ConnectionOptions,
    files: FileOptions,
) -> None:
    """Replay a bag into a served world (--into) or a scene file (-o)."""
    from tmkit.formats import convert_scene
    from tmkit.world import Buffer, play_bag

    if (target.into is None) == (target.output is None) or (target.into and scenes):
        raise typer.BadParameter(
            "expected either --into ADDRESS, or -o FILE with or without scenes", param_hint="BAG"
        )
    poses = options.pose or ()
    malformed = [text for text in poses if "=" not in text]
    if malformed:
        raise typer.BadParameter(
            f"'{malformed[0]}' is not of the form TOPIC=FRAME", param_hint="--pose"
        )
    selection: dict[str, Any] = {"topics": tuple(options.topic) if options.topic else None}
    selection["poses"] = dict(text.rpartition("=")[::2] for text in poses)
    if target.output is not None:
        require_writable(target.output)
        start = load(scenes, reading=files.reading_options()) if scenes else None
        buffer = Buffer(options.window, scene=start)
        pace = _Pace(options.rate or 0.0)
        report = play_bag(bag, buffer, wait_until=pace.wait_until, **selection)
        _print_report(bag, buffer, report)
        for file in convert_scene(buffer.scene, target.output):
            say(f"Written to {file}")
        return
    assert target.into is not None
    with connection.connect(target.into) as client:
        with errors_about(target.into):
            buffer = Buffer(options.window, scene=client.scene())
        updates = _WorldUpdates(client, buffer, target.into)
        pace = _Pace(1.0 if options.rate is None else options.rate, updates.push)
        report = play_bag(bag, buffer, wait_until=pace.wait_until, **selection)
        updates.push()
    _print_report(bag, buffer, report)


class _WorldUpdates:
    """Updates of a served world from a buffer, merged with the changes of other clients."""

    def __init__(self, client: Client, buffer: Buffer, address: str) -> None:
        self._client, self._buffer, self._address = client, buffer, address
        self._pushed_scene = buffer.scene

    def push(self) -> None:
        """Send the changes of the buffer since the last call, and receive those of others."""
        from tmkit.store import merge_scenes

        base, scene = self._pushed_scene, self._buffer.scene
        if scene is base:
            return
        with errors_about(self._address):
            self._client.update(lambda served: merge_scenes(base, served, scene))
            merged = self._client.scene()
        self._pushed_scene = merged
        self._buffer.update(lambda _: merged)


class _Pace:
    """Waiting times between the messages of a bag.

    Args:
        rate: speed relative to the recording; 0 never waits.
        push: called before each wait, and after every hundredth message.
    """

    def __init__(self, rate: float, push: Callable[[], None] | None = None) -> None:
        self._rate, self._push = rate, push
        self._start: tuple[float, float] | None = None
        self._count = 0

    def wait_until(self, stamp: float) -> None:
        """Wait until the message of a time stamp [s] is due."""
        self._count += 1
        self._start = self._start or (stamp, time.monotonic())
        first_stamp, start = self._start
        due = start + (stamp - first_stamp) / self._rate if self._rate else 0.0
        if due > time.monotonic() or self._count % _MESSAGES_PER_VERSION == 0:
            if self._push is not None:
                self._push()
            time.sleep(max(0.0, due - time.monotonic()))


def _print_report(bag: Path, buffer: Buffer, report: BagReplay) -> None:
    """Print the counts of a replay, and the last reason of each topic with rejected messages."""
    for topic, count in report.rejected.items():
        reasons = [text for text in buffer.rejections if text.startswith(f"{topic}: ")]
        note(
            f"{bag}: {count} parts of messages were rejected; the last:"
            f" {reasons[-1] if reasons else topic}"
        )
    if report.skipped:
        note(f"{bag}: not replayed: {', '.join(report.skipped)}")
    say(f"Replayed {sum(report.counts.values())} messages of {', '.join(sorted(report.counts))}")


add_command(app, info)
add_command(app, record)
add_command(app, replay)
