"""Acknowledged edits are visible to others and survive a kill; rejected ones have no effect."""

from __future__ import annotations

import datetime
import json
import math
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.effort import scaled_examples

from tmkit.errors import FileFormatError, PickledStateError, SceneError, ServiceError, TmkitError
from tmkit.formats import load_scene, scene_to_dict
from tmkit.graph import Box, FrameSpecification, Mesh, NoiseSource, SceneArrays, SceneGraph, Stamped
from tmkit.spatial import Pose
from tmkit.store import Store
from tmkit.world import Client, InProcessTransport, ServiceLimits, WorldServer
from tmkit.world.service import messages as m

Json = dict[str, Any]


def nested(depth: int, value: Any = 1) -> Any:
    """Return a value inside so many lists and dicts."""
    for level in range(depth):
        value = {"k": value} if level % 3 == 2 else [value]
    return value


def cycle() -> list[Any]:
    """Return a list that contains itself."""
    found: list[Any] = [1]
    found.append({"k": found})
    return found


# By name: a value, and the reason for which it is rejected, none if it is accepted.
VALUES: dict[str, tuple[Any, str]] = {
    "zero below": (-0.0, ""),
    "largest float": (1.7976931348623157e308, ""),
    "smallest float": (5e-324, ""),
    "float that is whole": (1.0, ""),
    "true": (True, ""),
    "none": (None, ""),
    "least of 64 bits": (-(2**63), ""),
    "largest of 64 bits": (2**64 - 1, ""),
    "integers of 65 bits": ([2**64, -(2**63) - 1], ""),
    "integers inside": ({"a": [2**70, {"b": -(2**100)}]}, ""),
    "longest integers": ([10**640 - 1, 1 - 10**640], ""),
    "text of controls": ("\0\n\x1f\x7f\u2028\"\\'", ""),
    "text outside the first plane": ("\U0001f600", ""),
    "long text": ("x" * 1_000_000, ""),
    "stamp sign": ("@1.0", ""),
    "keys": ({"": 1, "a\0b": 2, "\u00e9": 3, "@": 4}, ""),
    "tuple": ((1, (2, 3)), ""),
    "numpy float": (np.float64(0.1), ""),
    "numpy text": (np.str_("a"), ""),
    "stamped": (Stamped({"k": [1]}, 2.5), ""),
    "at the limit": (nested(64), ""),
    "beyond the limit": (nested(65), "nested 65 deep; expected at most 64"),
    "dicts beyond the limit": (nested(66, {}), "nested 67 deep; expected at most 64"),
    "beyond Python's encoder": (nested(450), "nested 450 deep; expected at most 64"),
    "beyond Python's stack": (nested(5_000), "nested 5,000 deep; expected at most 64"),
    "cycle": (cycle(), "nested more than 10,000 deep; expected at most 64"),
    "integer of 641 digits": ([-(10**640)], "an integer of 2127 bits; expected at most 640 digits"),
    "integer of many digits": (10**5_000, "an integer of 16610 bits"),
    "nan": (math.nan, "must be text, a finite number.* not nan"),
    "infinity inside": ([{"k": -math.inf}], "must be text, a finite number.* not -inf"),
    "surrogate": ("a\ud800", "an unpaired surrogate, '.ud800', at character 1 of a text"),
    "two surrogates": ("\ud83d\ude00", "an unpaired surrogate"),
    "surrogate in a key": ({"\udc00": 1}, "an unpaired surrogate, .* of the keys of a dict"),
    "number as a key": ({1: 2}, "needs text for the keys of a dict, not 1"),
    "keys of two types": ({"1": 1, 1: 2}, "needs text for the keys of a dict, not 1"),
    "none as a key": ([{None: 2}], "needs text for the keys of a dict, not None"),
    "bytes": (b"bytes", "must be text, a finite number.* not b'bytes'"),
    "bytes inside": ([bytearray(3)], "must be text, a finite number"),
    "set": ({1, 2}, "must be text, a finite number"),
    "numpy integer": (np.int64(3), "must be text, a finite number.* not np.int64"),
    "numpy array": (np.zeros(2), "must be text, a finite number"),
    "date": (datetime.date(2020, 1, 1), "must be text, a finite number"),
    "complex": (1j, "must be text, a finite number"),
    "stamped inside": ([Stamped(1, 2.0)], "must be text, a finite number"),
    "stamped without end": (
        Stamped(1, math.inf),
        r"must be text, a finite number.* not Stamped\(value=1, stamp=inf\)",
    ),
}


def made(drawn: tuple[str, Any]) -> Any:
    """Return a value that was drawn."""
    kind, value = drawn
    return VALUES[value][0] if kind == "named" else nested(value) if kind == "nested" else value


def plain(value: Any) -> Any:
    """Return a value as JSON reads it back."""
    return json.loads(json.dumps(value.value if isinstance(value, Stamped) else value))


def bits(value: Any) -> str:
    """Return a text that is the same for the same value, of the same type, only."""
    return json.dumps(value, sort_keys=True)


# --- each value, each way in


def put_in_store(value: Any, folder: Path) -> Any:
    """Write an attribute to a store and read it from another one."""
    with Store(folder / "store") as store:
        version = store.put(SceneGraph().set_attribute("world", "k", value))
    with Store(folder / "store") as store:
        return store.get(version).attributes("world")["k"]


def put_in_file(value: Any, folder: Path) -> Any:
    """Write an attribute to a JSON scene file, as another program does, and read it."""
    document = scene_to_dict(SceneGraph().set_attribute("world", "k", 0))
    if isinstance(value, Stamped):
        document["frames"][0]["attribute_stamps"] = {"k": value.stamp}
    document["frames"][0]["attributes"]["k"] = value.value if isinstance(value, Stamped) else value
    path = folder / "scene.json"
    path.write_text(json.dumps(document))
    return load_scene(str(path)).attributes("world")["k"]


def put_in_world(edit: Callable[[Client, Any], object]) -> Callable[[Any, Path], Any]:
    """Return a function that sets an attribute and reads it from the log of a killed server."""

    def put(value: Any, folder: Path) -> Any:
        transport = InProcessTransport()
        with WorldServer(transport, SceneGraph().set_group("g"), log=folder / "log") as server:
            client, other = Client(transport), Client(transport)
            try:
                edit(client, value)
            finally:
                other.set_attribute("world", "after", 1)
                assert client.look("attributes", "world")["after"] == 1
                assert_recorded(server, folder)
            scene = other.scene()
            return {**scene.attributes("world"), **scene.group("g").attributes}["k"]

    return put


def assert_recorded(server: WorldServer, folder: Path) -> None:
    """Check that a server that goes on from what is on disk now has the same world."""
    copy = Path(tempfile.mkdtemp(dir=folder))
    for path in folder.glob("log*"):
        if path.is_dir():
            shutil.copytree(path, copy / path.name)
        else:
            shutil.copy(path, copy / path.name)
    with WorldServer(InProcessTransport(), log=copy / "log") as again:
        assert again.live.scene == server.live.scene
        assert again.version == server.version
    shutil.rmtree(copy)


WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "set_attribute": lambda value, _: (
        SceneGraph().set_attribute("world", "k", value).attributes("world")["k"]
    ),
    "set_attributes": lambda value, _: (
        SceneGraph().set_attributes("world", {"k": value}).attributes("world")["k"]
    ),
    "specification": lambda value, _: (
        FrameSpecification("a", None).replace(attributes={"k": value}).attributes["k"]
    ),
    "group": lambda value, _: (
        SceneGraph().set_group("g", attributes={"k": value}).group("g").attributes["k"]
    ),
    "group attribute": lambda value, _: (
        SceneGraph().set_group("g").set_group_attribute("g", "k", value).group("g").attributes["k"]
    ),
    "edit": lambda value, _: edited(value),
    "arrays": lambda value, _: in_arrays(value),
    "store": put_in_store,
    "client": put_in_world(lambda client, value: client.set_attribute("world", "k", value)),
    "client's batch": put_in_world(lambda client, value: batched(client, value)),
    "client's update": put_in_world(
        lambda client, value: client.update(
            lambda scene: scene.set_group_attribute("g", "k", value)
        )
    ),
    "client's other scene": put_in_world(
        lambda client, value: client.update(
            lambda _: SceneGraph().set_attribute("world", "k", value).set_group("g")
        )
    ),
}
"""Ways to set attribute ``k``; each returns the value that is there then."""


def edited(value: Any) -> Any:
    """Set an attribute by an edit of many steps."""
    with SceneGraph().edit() as edit:
        edit.set_attribute("world", "k", value)
    return edit.finish().attributes("world")["k"]


def in_arrays(value: Any) -> Any:
    """Set an attribute in arrays."""
    arrays = SceneArrays(SceneGraph())
    arrays.set_attribute("world", "k", value)
    return arrays.freeze().attributes("world")["k"]


def batched(client: Client, value: Any) -> None:
    """Set an attribute in an edit of several operations, of which none is made alone."""
    with client.edit() as edit:
        edit.set_attribute("world", "first", 1)
        edit.set_attribute("world", "k", value)
        edit.set_attribute("world", "last", 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", VALUES)
def test_values_are_answered_alike(name: str, way: str, tmp_path: Path) -> None:
    """All methods accept the same values exactly, and reject others for the same reason."""
    value, reason = VALUES[name]
    if reason:
        with pytest.raises(SceneError, match=f"attribute 'k' .*{reason}"):
            WAYS[way](value, tmp_path)
    else:
        found = SceneGraph().set_attribute("world", "k", WAYS[way](value, tmp_path))
        assert found.attributes("world")["k"] == plain(value)
        assert client_text(found) == bits(plain(value))


def client_text(scene: SceneGraph) -> str:
    """Return the attribute as another client reads it."""
    transport = InProcessTransport()
    with WorldServer(transport, scene):
        return bits(Client(transport).look("attributes", "world")["k"])


def json_of(value: Any) -> str:
    """Return a value as JSON of another program, empty if JSON cannot express it."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return ""


# Those that have another meaning in JSON: json.dumps writes text for keys, and a pair of surrogates
# is a character.
FILES = [
    name
    for name, (value, _) in VALUES.items()
    if json_of(value)
    and "as a key" not in name
    and name not in ("keys of two types", "two surrogates")
]


@pytest.mark.parametrize("name", FILES)
def test_files_are_answered_alike(name: str, tmp_path: Path) -> None:
    """Foreign scene files are accepted or rejected as in Python; the error has its location."""
    value, reason = VALUES[name]
    if reason:
        with pytest.raises(
            FileFormatError, match=rf"scene.json:\d+:\d+: frames\[0\].attributes.k: .*{reason}"
        ):
            put_in_file(value, tmp_path)
    else:
        assert put_in_file(value, tmp_path) == plain(value)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10**5 + "]" * 10**5,
        "[" * 450 + "]" * 450,
        "1" * 641,
        "1" * 5_000,
        "NaN",
        "1e999",
        '"\\ud800"',
        "[1",
    ],
)
def test_texts_in_files_are_checked(text: str, tmp_path: Path) -> None:
    """The error of an invalid attribute of a frame or group names the file."""
    for owner in ("frames", "groups"):
        scene = SceneGraph().set_attribute("world", "k", 0 if owner == "groups" else 7)
        scene = scene.set_group("g", attributes={"k": 0 if owner == "frames" else 7})
        path = tmp_path / f"{owner}.json"
        path.write_text(json.dumps(scene_to_dict(scene)).replace('"k": 7', f'"k": {text}'))
        with pytest.raises(FileFormatError, match=rf"{owner}.json\S*: "):
            load_scene(str(path))


MESSAGES = [
    (b"\x91" * depth + b"\xc0", f"nested {depth} deep; expected at most 64")
    for depth in (65, 450, 900)
] + [
    (b"\x91" * 5_000 + b"\xc0", "recursion"),
    (b"\xcb\x7f\xf8" + bytes(6), "must be text, a finite number.* not nan"),
    (b"\xa3\xed\xa0\x80", "Invalid UTF-8|utf-8"),
    (b"\xc4\x01a", "must be text, a finite number.* not b'a'"),
    (b"\x81\x01\x02", "needs text for the keys of a dict, not 1"),
    (b"\xd4\x05a", "no extension type 5"),
    (b"\xd4\x01a", "invalid literal for int"),
    (b"\xc8\x02\x81\x01" + b"1" * 641, "an integer of 2127 bits; expected at most 640 digits"),
    (b"\xc8\x17\x70\x01" + b"1" * 6_000, "an integer of 3319 bits"),
    (b"\xd6\xff\x00\x00\x00\x00", "must be text, a finite number.* not datetime"),
]


@pytest.mark.parametrize(("value", "reason"), MESSAGES, ids=range(len(MESSAGES)))
def test_messages_are_answered_alike(value: bytes, reason: str) -> None:
    """A client of another program receives the reason, and the world stays as it is."""
    transport = InProcessTransport()
    with WorldServer(transport) as server:
        with pytest.raises(ServiceError, match=reason):
            Client(transport)._request(
                m.Edit([m.SetAttribute("world", "k", msgspec.Raw(value))]), m.Done
            )
        assert (server.version, server.live.scene) == (0, SceneGraph())
    with WorldServer(transport):
        Client(transport)._request(
            m.Edit([m.SetAttribute("world", "k", msgspec.Raw(b"\xcf" + b"\xff" * 8))]), m.Done
        )
        assert Client(transport).look("attributes", "world") == {"k": 2**64 - 1}


@pytest.mark.parametrize(
    "text",
    ["[" * 65 + "]" * 65, "[" * 10**5 + "]" * 10**5, "1" * 641, "1" * 5_000, '"\\ud800"', "x"],
)
def test_damaged_pickles_are_errors(text: str) -> None:
    """The text of an attribute in a pickled scene is checked as any other."""

    def damaged(state: Any) -> Any:
        if isinstance(state, list | tuple):
            return type(state)(map(damaged, state))
        return text if state == "[7]" else state

    state = (
        SceneGraph()
        .set_attribute("world", "k", [7])
        .set_group("g", attributes={"k": 1})
        .__getstate__()
    )  # type: ignore[attr-defined]
    with pytest.raises(PickledStateError, match="this pickled state is damaged"):
        SceneGraph.__new__(SceneGraph).__setstate__(damaged(state))  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", ["", "\ud800", "a\ud800b"])
def test_keys_are_checked(key: str, tmp_path: Path) -> None:
    """A key is text that is not empty, for a scene and for a client."""
    put = put_in_world(lambda client, value: client.set_attribute("world", key, value))
    for call in (
        lambda: SceneGraph().set_attribute("world", key, 1),
        lambda: SceneGraph().set_attributes("world", {key: 1}),
        lambda: SceneGraph().set_group("g", attributes={key: 1}),
        lambda: put(1, tmp_path),
    ):
        with pytest.raises(TmkitError):
            call()


# --- any edits, by two clients

TETRAHEDRON = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(), max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
ANY_VALUE = st.tuples(st.just("named"), st.sampled_from([*VALUES])) | st.tuples(
    st.just("json"), JSON_VALUES
)
# not the values: hypothesis cannot show all of them
ANY_VALUE |= st.tuples(st.just("nested"), st.integers(60, 1_200))
FRAMES = st.sampled_from(["world", "a", "b", "c"])
KEYS = st.sampled_from(["k", "l"]) | st.text(st.characters(), max_size=3)
CLIENTS = st.integers(0, 1)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class AcknowledgedEdits(RuleBasedStateMachine):
    """Server with a log, two clients, and a model of attributes and places."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())

    @initialize()
    def begin(self) -> None:
        """Serve a world of frames a and b and an empty group."""
        self.transport = InProcessTransport()
        scene = SceneGraph().add_frame("a", "world").add_frame("b", "world").set_group("g")
        limits = ServiceLimits(log_bytes=3_000, message_bytes=3_000_000)
        self.server = WorldServer(self.transport, scene, log=self.folder / "log", limits=limits)
        self.clients = [Client(self.transport), Client(self.transport)]
        self.attributes: dict[str, Json] = {"world": {}, "a": {}, "b": {}}
        self.group: Json = {}
        self.places = {"a": 0.0, "b": 0.0}
        self.edits = 0

    def edit(self, change: Callable[[], object], model: Callable[[], None]) -> None:
        """Make an edit, and change the model if it is acknowledged."""
        before = self.server.live.scene, self.server.version
        try:
            change()
        except TmkitError:
            assert (self.server.live.scene, self.server.version) == before
        else:
            model()

    @rule(client=CLIENTS, frame=FRAMES, key=KEYS, drawn=ANY_VALUE)
    def set_attribute(self, client: int, frame: str, key: str, drawn: tuple[str, Any]) -> None:
        """Set an attribute by one message."""
        value = made(drawn)
        self.edit(
            lambda: self.clients[client].set_attribute(frame, key, value),
            lambda: self.attributes[frame].update({key: plain(value)}),
        )

    @rule(client=CLIENTS, frame=FRAMES, drawn=st.lists(ANY_VALUE, min_size=1, max_size=3))
    def batch(self, client: int, frame: str, drawn: list[tuple[str, Any]]) -> None:
        """Set several attributes and a pose, all or none."""
        values = [made(one) for one in drawn]
        self.edits += 1

        def change() -> None:
            with self.clients[client].edit() as edit:
                edit.set_pose("a", Pose([self.edits, 0, 0]))
                for number, value in enumerate(values):
                    edit.set_attribute(frame, f"k{number}", value)

        def model() -> None:
            self.places["a"] = self.edits
            self.attributes[frame].update(
                {f"k{number}": plain(value) for number, value in enumerate(values)}
            )

        self.edit(change, model)

    @rule(client=CLIENTS, name=FRAMES, key=KEYS, drawn=ANY_VALUE, has_mesh=st.booleans())
    def add_frame(
        self, client: int, name: str, key: str, drawn: tuple[str, Any], has_mesh: bool
    ) -> None:
        """Add a frame with an attribute."""
        value = made(drawn)
        self.edits += 1
        corners = [[0, 0, 0], [self.edits, 0, 0], [0, 1, 0], [0, 0, 1]]
        shapes = [Mesh(corners, TETRAHEDRON) if has_mesh else Box([1, 1, 1])]

        def model() -> None:
            self.attributes[name], self.places[name] = {key: plain(value)}, 0.0

        def change() -> None:
            with self.clients[client].edit() as edit:
                edit.add_frame(name, "world", shapes=shapes)
                edit.set_attribute(name, key, value)

        self.edit(change, model)

    @rule(client=CLIENTS, name=st.sampled_from(["a", "b", "c"]))
    def remove_frame(self, client: int, name: str) -> None:
        """Remove a frame."""

        def model() -> None:
            del self.attributes[name], self.places[name]

        self.edit(lambda: self.clients[client].remove_frame(name), model)

    @rule(client=CLIENTS, key=KEYS, drawn=ANY_VALUE)
    def set_group(self, client: int, key: str, drawn: tuple[str, Any]) -> None:
        """Set an attribute of the group by a difference."""
        value = made(drawn)
        self.edit(
            lambda: self.clients[client].update(
                lambda scene: scene.set_group_attribute("g", key, value)
            ),
            lambda: self.group.update({key: plain(value)}),
        )

    @rule(client=CLIENTS, key=KEYS, drawn=ANY_VALUE)
    def replace(self, client: int, key: str, drawn: tuple[str, Any]) -> None:
        """Put another scene in the place of the world."""
        value = made(drawn)

        def model() -> None:
            self.attributes = {"world": {key: plain(value)}, "a": {}}
            self.group, self.places = {}, {"a": 0.0}

        def scene(_: SceneGraph) -> SceneGraph:
            return (
                SceneGraph()
                .set_attribute("world", key, value)
                .add_frame("a", "world")
                .set_group("g")
            )

        self.edit(lambda: self.clients[client].update(scene), model)

    @rule(frame=FRAMES, key=KEYS, drawn=ANY_VALUE)
    def edit_here(self, frame: str, key: str, drawn: tuple[str, Any]) -> None:
        """Set an attribute in the process of the server."""
        value = made(drawn)
        self.edit(
            lambda: self.server.live.update(lambda scene: scene.set_attribute(frame, key, value)),
            lambda: self.attributes[frame].update({key: plain(value)}),
        )

    @rule(dimension=st.sampled_from([6, 100_001]))
    def edit_noise_here(self, dimension: int) -> None:
        """Give a frame an error of a source that is, or is not, too large for a record."""
        noise = np.zeros((6, dimension))
        noise[0, 0] = 0.1
        self.edit(
            lambda: self.server.live.update(
                lambda scene: scene.set_noise("a", {NoiseSource(dimension): noise})
            ),
            lambda: None,
        )

    @rule(client=CLIENTS, drawn=ANY_VALUE, room=st.integers(0, 300))
    def edit_on_a_full_disk(self, client: int, drawn: tuple[str, Any], room: int) -> None:
        """Set an attribute while the log may grow by some bytes only."""
        value = made(drawn)
        with file_size_limit((self.folder / "log").stat().st_size + room):
            self.edit(
                lambda: self.clients[client].set_attribute("world", "full", value),
                lambda: self.attributes["world"].update({"full": plain(value)}),
            )

    @rule(client=CLIENTS, drawn=ANY_VALUE)
    def edit_with_failing_listeners(self, client: int, drawn: tuple[str, Any]) -> None:
        """Set an attribute while other listeners raise, before the server's own and after it."""
        value = made(drawn)
        known = self.server.live._listeners
        self.server.live._listeners = (lambda _: [][0], *known, lambda _: {}["none"])
        try:
            self.edit(
                lambda: self.clients[client].set_attribute("world", "heard", value),
                lambda: self.attributes["world"].update({"heard": plain(value)}),
            )
        finally:
            self.server.live._listeners = known

    @rule(client=CLIENTS, drawn=ANY_VALUE)
    def edit_that_another_recorder_rejects(self, client: int, drawn: tuple[str, Any]) -> None:
        """An edit that is in the log already when another recorder rejects it."""
        value = made(drawn)

        class Rejecting:
            def record(self, _: SceneGraph) -> None:
                raise ServiceError("no", kind="edit")

            def discard(self) -> None:
                raise AssertionError("it recorded nothing")

        before = self.server.live.scene
        with self.server.live.record_by(Rejecting()), pytest.raises(TmkitError):
            self.clients[client].set_attribute("world", "rejected", value)
        assert self.server.live.scene is before

    @rule()
    def kill(self) -> None:
        """Go on with another server, from what is on disk."""
        assert_recorded(self.server, self.folder)

    @invariant()
    def everyone_has_the_model(self) -> None:
        """Both clients read the model, and the server can record."""
        if not hasattr(self, "server"):
            return
        assert self.server.failure is None
        scenes = [client.scene() for client in self.clients]
        assert scenes[0] == scenes[1] == self.server.live.scene
        names = set(scenes[0].frame_names)
        assert names == self.attributes.keys()
        for name, expected in self.attributes.items():
            for client in self.clients:
                assert bits(client.look("attributes", name)) == bits(expected)
        assert scenes[0].group("g").attributes == self.group
        for name, place in self.places.items():
            assert self.clients[0].pose(name).translation[0] == place

    def teardown(self) -> None:
        """Kill the server once more, and end it."""
        if hasattr(self, "server"):
            assert_recorded(self.server, self.folder)
            self.server.close()
        shutil.rmtree(self.folder)


TestAcknowledgedEdits = AcknowledgedEdits.TestCase
TestAcknowledgedEdits.settings = settings(
    max_examples=scaled_examples(0.4), stateful_step_count=15, deadline=None
)
