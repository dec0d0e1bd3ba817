"""Service: edits and queries, replicas and filters, access, limits, faults and garbage."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.effort import scaled_examples
from support.faulty_transport import FaultyTransport
from support.scene_edits import edits
from support.scene_model import SceneModel

from tmkit.errors import (
    ArgumentError,
    FileFormatError,
    MissingFileError,
    SceneError,
    ServiceError,
    TimeLimitError,
)
from tmkit.graph import Box, Mesh, NoiseSource, Revolute, SceneGraph
from tmkit.spatial import GaussianPose, Pose
from tmkit.store.encoding import DifferenceWriter
from tmkit.world import Client, InProcessTransport, LiveScene, ServiceLimits, WorldServer
from tmkit.world.service import messages as m
from tmkit.world.service.access import read_tokens
from tmkit.world.service.client import WorldChange

COVARIANCE = np.diag([1e-4, 2e-4, 3e-4, 1e-5, 2e-5, 3e-5])
TETRAHEDRON = Mesh(
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
)
READ, WRITE, OTHER = "r" * 16, "w" * 16, "o" * 16


@pytest.fixture
def served() -> Iterator[tuple[WorldServer, Client]]:
    """Yield a server of a table, and a client."""
    transport = InProcessTransport()
    with WorldServer(
        transport, SceneGraph().add_frame("table", "world", pose=Pose([1, 0, 0]))
    ) as server:
        yield server, Client(transport)


def another(client: Client, **options: Any) -> Client:
    """Return another client of the same server."""
    return Client(client._transport, **options)


def test_clients_edit_as_scenes_are_edited(served: tuple[WorldServer, Client]) -> None:
    """Each edit does what the method of a scene of that name does."""
    server, client = served
    q = [0.5]
    expected = server.live.scene
    pose, more = Pose([0, 1, 0]), {"classes": ["movable"], "shapes": [Box([1, 2, 3])]}
    for name in ("cup", "pan"):
        expected = expected.add_frame(name, "table", pose=GaussianPose(pose, COVARIANCE), **more)
        expected = expected.set_attribute(name, "a", [1])
        client.add_frame(name, "table", pose=GaussianPose(pose, COVARIANCE), **more)
        client.set_attribute(name, "a", [1])
    joint = Revolute([0, 0, 1], lower=-1.0, upper=1.0)
    expected = (
        expected.add_frame("door", "world", joint=joint)
        .add_root("map")
        .add_frame("knob", "door", body="door")
    )
    client.add_frame("door", "world", joint=joint)
    client.add_frame("map", None)
    client.add_frame("knob", "door", body="door")
    expected = expected.set_pose("cup", Pose([3, 0, 0])).set_covariance("cup", 2 * COVARIANCE)
    client.set_pose("cup", Pose([3, 0, 0]), covariance=2 * COVARIANCE)
    for stamp in (1.0, 2.0):
        expected = expected.add_stamped_pose("pan", Pose([stamp, 0, 0]), stamp=stamp)
        client.add_stamped_pose("pan", Pose([stamp, 0, 0]), stamp=stamp)
    expected = expected.reparent("cup", "door", q=q).reparent("pan", "cup", pose=Pose([1, 1, 1]))
    with client.edit() as edit:
        edit.reparent("cup", "door", q=q)
        edit.reparent("pan", "cup", pose=Pose([1, 1, 1]))
    expected = (
        expected.rename_frame("cup", "mug")
        .set_classes("mug", ["x", "y"])
        .set_attribute("mug", "k", [1])
    )
    client.update(lambda scene: scene.rename_frame("cup", "mug").set_classes("mug", ["x", "y"]))
    client.set_attribute("mug", "k", [1])
    expected = (
        expected.remove_frame("pan").add_shape("mug", TETRAHEDRON).allow_collision("mug", "table")
    )
    client.remove_frame("pan")
    client.update(lambda scene: scene.add_shape("mug", TETRAHEDRON).allow_collision("mug", "table"))
    assert server.live.scene == expected
    assert client.scene() == expected
    assert client.server_status().fingerprint == expected.fingerprint
    assert another(client).scene() == expected
    assert client.scene(client.server_status().version) == expected


def test_queries_are_those_of_the_scene(served: tuple[WorldServer, Client]) -> None:
    """Poses with covariance over paths, and facts of the tree, are what the scene itself says."""
    server, client = served
    server.live.update(
        lambda scene: (
            scene.add_frame("arm", "table", joint=Revolute([0, 0, 1]))
            .add_frame(
                "hand", "arm", pose=GaussianPose(Pose([0, 0, 1]), COVARIANCE), classes=["tool"]
            )
            .set_attribute("hand", "k", {"a": [1]})
        )
    )
    scene = server.live.scene
    found = client.gaussian_pose("hand", relative_to="table", q=[0.3])
    expected = scene.gaussian_pose("hand", relative_to="table", q=[0.3])
    assert (found.mean, found.covariance.tolist()) == (expected.mean, expected.covariance.tolist())
    assert client.pose("hand", q=[0.3]) == scene.pose("hand", q=[0.3])
    assert len(client.gaussian_poses([("hand", "arm"), ("table", None)])) == 2
    client.add_frame("bee", "world")
    for stamp in (1.0, 2.0):
        client.add_stamped_pose("bee", Pose([stamp, 0, 0]), stamp=stamp, covariance=COVARIANCE)
    assert client.pose("bee", stamp=1.5) == Pose([1.5, 0, 0])
    then = client.gaussian_pose("bee", stamp=1.5)
    assert then.mean == Pose([1.5, 0, 0])
    np.testing.assert_allclose(then.covariance, COVARIANCE / 2, rtol=1e-12)  # independent errors
    looks = {
        name: client.look(name, "hand")
        for name in ("exists", "parent", "ancestors", "root", "body", "classes")
    }
    assert looks == {
        "exists": True,
        "parent": "arm",
        "ancestors": ["arm", "table", "world"],
        "root": "world",
        "body": "hand",
        "classes": ["tool"],
    }
    assert client.look("exists", "ghost") is False
    assert client.look("children", "world") == ["table", "bee"]
    assert (client.look("roots"), client.look("joints"), client.look("class", "tool")) == (
        ["world"],
        ["arm"],
        ["hand"],
    )
    assert client.look("attributes", "hand") == {"k": {"a": [1]}}
    assert client.specification("hand").noise is not None
    for call in (lambda: client.pose("ghost"), lambda: client.look("parent", "ghost")):
        with pytest.raises(ServiceError, match="unknown frame 'ghost'") as caught:
            call()
        assert caught.value.kind == "unknown"  # type: ignore[attr-defined]
    with pytest.raises(ServiceError, match="unknown query 'mood'; expected one of exists, "):
        client.look("mood")


def test_an_edit_is_whole_or_not_at_all(served: tuple[WorldServer, Client]) -> None:
    """One rejected operation rejects all of its edit, with the reason of the scene."""
    server, client = served
    before = server.live.scene
    with pytest.raises(ServiceError, match="already there") as caught, client.edit() as edit:  # noqa: PT012
        edit.set_pose("table", Pose([9, 9, 9]))
        edit.add_frame("world", None)
    assert caught.value.kind == "edit"  # type: ignore[attr-defined]
    with pytest.raises(ServiceError, match="is a root, which has no parent"):
        client.reparent("world", "table")
    with pytest.raises(ArgumentError, match="expected a Pose, not list"):
        client.set_pose("table", [0, 0, 1])
    assert server.live.scene is before
    assert client.server_status().counts == {"edits": 2, "messages": 2, "refused: edit": 2}
    with pytest.raises(RuntimeError), client.edit() as edit:
        raise RuntimeError
    assert client.server_status().version == 0
    with pytest.raises(
        SceneError, match=r"attribute 'k' must be text, a finite number.* not Ellipsis"
    ):
        client.set_attribute("table", "k", ...)
    with pytest.raises(ArgumentError, match="this cannot be sent: "):
        client.add_stamped_pose("table", Pose(), stamp=2**70)


def test_edits_for_another_version_are_rejected(served: tuple[WorldServer, Client]) -> None:
    """An edit for an earlier version is rejected; an edit of the same frame conflicts."""
    server, client = served
    scene, seen = client.scene(), client.server_status().version
    other = another(client)
    other.add_frame("fork", "table")
    with (
        pytest.raises(
            ServiceError, match="made for version 0; the world is at version 1"
        ) as caught,
        client.edit(version=seen) as edit,
    ):
        edit.set_pose("table", Pose())
    assert caught.value.kind == "conflict"  # type: ignore[attr-defined]
    calls = []

    def edit_late(scene: SceneGraph) -> SceneGraph:
        if not calls:
            other.set_pose("table", Pose([5, 0, 0]))  # while the client makes its edit
        calls.append(scene.local_pose("table").translation[0])
        return scene.set_pose("table", scene.local_pose("table") @ Pose([1, 0, 0]))

    client.update(edit_late)
    assert calls == [1.0, 5.0]
    assert server.live.scene.local_pose("table") == Pose([6, 0, 0])
    calls.clear()

    def edit_alike(scene: SceneGraph) -> SceneGraph:
        if not calls:
            other.set_attribute("table", "n", 1)
        calls.append(scene.attributes("table").get("n", 0))
        return scene.set_attribute("table", "n", scene.attributes("table").get("n", 0) + 1)

    client.update(edit_alike)  # both changed it alike, and still each counts
    assert (calls, server.live.scene.attributes("table")["n"]) == ([0, 1], 2)
    with pytest.raises(ServiceError, match="others have changed table since version 1"):
        client._request(
            m.Edit([m.Change(1, msgspec.msgpack.encode([[[2, "table", None]]]))], server.world),
            m.Done,
        )
    calls.clear()
    client.update(
        lambda scene: (
            calls.append(0),
            other.add_frame(f"f{len(calls)}", "table"),
            scene.add_root("r"),
        )[2]
    )
    assert len(calls) == 1  # merged: nobody else changed that
    assert "r" in server.live.scene and "f1" in server.live.scene  # noqa: PT018
    with pytest.raises(ServiceError, match="made for version"):
        client.update(
            lambda scene: (
                calls.append(0),
                other.add_frame(f"f{len(calls)}", "table"),
                scene.add_root("s"),
            )[2],
            is_exact=True,
        )
    assert len(calls) == 21
    assert scene.frame_names == ("world", "table")


def test_shapes_that_a_server_forgot_are_sent_again() -> None:
    """A client sends a mesh once, and again if the server has discarded it."""
    transport = InProcessTransport()
    client = Client(transport)
    with WorldServer(transport) as server:
        for name in "ab":
            client.add_frame(name, "world", shapes=[TETRAHEDRON])
            assert server.live.scene.shapes(name)[0].shape == TETRAHEDRON
            client.remove_frame(name)
            server._uploads.clear()
    transport = InProcessTransport()
    said = refused("unknown", "unknown shape of digest .*; send it before the change")
    with WorldServer(transport, limits=ServiceLimits(upload_bytes=0)), said:
        Client(transport).add_frame("a", "world", shapes=[TETRAHEDRON])


def test_a_counter_of_many_threads_loses_no_step(served: tuple[WorldServer, Client]) -> None:
    """Read, add and write by several clients: each step is there in the end."""
    server, client = served

    def count() -> None:
        own = another(client)
        for _ in range(8):
            own.update(
                lambda s: s.set_attribute("table", "n", s.attributes("table").get("n", 0) + 1)
            )

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.live.scene.attributes("table")["n"] == 24


def test_replicas_follow_and_edit(served: tuple[WorldServer, Client]) -> None:
    """A replica has each last version, is a live scene, and sends its edits to the server."""
    server, client = served
    with client.replica() as replica, another(client).replica(rate=1000.0) as slow:
        assert isinstance(replica, LiveScene)
        source = NoiseSource(6, "shared")
        for k in range(20):
            server.live.update(
                lambda scene, k=k: scene.add_frame(f"f{k}", "table", shapes=[TETRAHEDRON])
            )
            another(client).set_pose(f"f{k}", Pose([k, 0, 0]))
        for name in ("f1", "f2"):
            server.live.update(
                lambda scene, name=name: scene.set_noise(name, {source: 0.1 * np.eye(6)})
            )
        made = replica.update(lambda scene: scene.set_pose("f1", Pose([0, 0, 7])))
        assert made.local_pose("f1") == server.live.scene.local_pose("f1") == Pose([0, 0, 7])
        for one in (replica, slow):
            scene = one.wait_for(server.version)
            assert scene == server.live.scene
            assert scene.fingerprint == server.server_status().fingerprint
            difference = scene.gaussian_pose("f1", relative_to="f2").covariance
            assert np.allclose(
                difference, server.live.scene.gaussian_pose("f1", relative_to="f2").covariance
            )
    server.live.update(lambda scene: scene.remove_frame("table", subtree=True))
    assert "table" in replica.scene


@given(st.data())
@settings(
    max_examples=scaled_examples(0.4), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_edits_reach_all(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Client, server, follower and recovered log equal the scene after any edits."""
    log = tmp_path_factory.mktemp("log") / "log"
    transport, model = InProcessTransport(), SceneModel()
    expected = SceneGraph()
    with WorldServer(transport, expected, log=log) as server:
        client, follower = Client(transport), Client(transport)
        for _ in range(data.draw(st.integers(1, 6))):
            edit = data.draw(edits(model))
            try:
                after = expected.edit()
                edit.apply_to(after)
                expected, model = after.finish(), edit.apply_to_model(model)
            except Exception:
                continue
            try:
                client.update(lambda scene, edit=edit: edit.apply_to(scene))
            except ServiceError as error:
                if "a frame takes the name of another" not in str(error):
                    raise
                server.live.update(lambda _, expected=expected: expected)
            assert server.live.scene == expected
            if data.draw(st.booleans()):
                assert follower.scene() == expected
        assert follower.scene().fingerprint == expected.fingerprint
    with WorldServer(InProcessTransport(), log=log) as server:
        assert server.live.scene == expected
        assert server.live.scene.fingerprint == expected.fingerprint


def test_nobody_sees_a_version_before_it_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a version is being recorded, clients receive the one before."""
    transport = InProcessTransport()
    with WorldServer(transport, log=tmp_path / "log") as server:
        client, seen, keep = Client(transport), list[int](), server._transport.append

        def look(record: bytes, *, is_restart: bool = False) -> None:
            seen.append(server.version)
            keep(record, is_restart=is_restart)

        monkeypatch.setattr(server._transport, "append", look)
        client.add_frame("a", "world")
        server.live.update(lambda scene: scene.add_frame("b", "world"))
        assert (seen, client.server_status().version) == ([0, 1], 2)


def test_a_log_stays_short_and_so_do_its_shapes(tmp_path: Path) -> None:
    """The log of a long-lived world has the size of the world, without old meshes."""

    def tetrahedron(size: int) -> Mesh:
        return Mesh([[0, 0, 0], [size, 0, 0], [0, 1, 0], [0, 0, 1]], TETRAHEDRON.faces)

    log, transport, limits = tmp_path / "log", InProcessTransport(), ServiceLimits(log_bytes=2_000)
    sizes, counts, forgotten = list[int](), list[int](), tetrahedron(1000)
    with WorldServer(transport, log=log, limits=limits) as server:
        client = Client(transport)
        client.add_frame("old", "world", shapes=[forgotten])
        client.remove_frame("old")
        for size in range(1, 301):
            client.add_frame(f"f{size}", "world", shapes=[tetrahedron(size)])
            if size > 5:
                client.remove_frame(f"f{size - 5}")
            sizes.append(log.stat().st_size)
            counts.append(len([*(tmp_path / "log.blobs").iterdir()]))
        server._uploads.clear()
        # sent again, for the server has forgotten it
        client.add_frame("new", "world", shapes=[forgotten])
        expected = server.live.scene
    assert max(sizes) < 20_000
    assert max(counts) < 130
    for _ in range(2):
        with WorldServer(InProcessTransport(), log=log, limits=limits) as server:
            assert server.live.scene == expected
    assert forgotten.digest in {path.name for path in (tmp_path / "log.blobs").iterdir()}


def test_what_cannot_be_recorded_is_not_made(tmp_path: Path) -> None:
    """A local edit with a shape too large for the log is rejected; others succeed."""
    transport, limits = InProcessTransport(), ServiceLimits(message_bytes=1_000)
    with WorldServer(transport, log=tmp_path / "log", limits=limits) as server:
        client = Client(transport)
        client.add_frame("a", "world")
        large = Mesh(np.random.default_rng(1).random((100, 3)), TETRAHEDRON.faces)
        with refused(
            "edit", "version 2 cannot be recorded: shape .* has 2512 bytes; a blob has at most 1000"
        ):
            server.live.update(lambda scene: scene.add_shape("a", large))
        assert (server.failure, server.version) == (None, 1)
        client.add_frame("b", "world")
    with WorldServer(InProcessTransport(), log=tmp_path / "log") as server:
        assert server.live.scene.frame_names == ("world", "a", "b")
        assert server.live.scene.shapes("a") == ()


def test_a_log_without_its_shapes_is_an_error(tmp_path: Path) -> None:
    """A missing shape is named; an unusable log stays unchanged and unlocked."""
    log = tmp_path / "log"
    scene = SceneGraph().add_frame("a", "world", shapes=[TETRAHEDRON])
    WorldServer(InProcessTransport(), scene, log=log).close()
    with WorldServer(InProcessTransport(), log=log) as server:
        assert server.live.scene == scene
    blob = tmp_path / "log.blobs" / TETRAHEDRON.digest
    data = blob.read_bytes()
    blob.unlink()
    for _ in range(2):
        with pytest.raises(
            ServiceError, match=f"log cannot be used: blob {TETRAHEDRON.digest}: it cannot be read"
        ):
            WorldServer(InProcessTransport(), log=log)
    blob.write_bytes(data)
    with WorldServer(InProcessTransport(), log=log) as server:
        assert server.live.scene == scene
    with pytest.raises(
        ServiceError, match=r"new cannot be used: shape .* has 208 bytes; a blob has at most 100"
    ):
        WorldServer(
            InProcessTransport(),
            scene,
            log=tmp_path / "new",
            limits=ServiceLimits(message_bytes=100),
        )


# --- following


def taken(changes: Iterator[WorldChange], known: dict[str, Any]) -> WorldChange:
    """Take the next change into what is known."""
    change = next(changes)
    if change.is_reset:
        known.clear()
    for name in change.removed:
        del known[name]
    known.update({frame.name: DifferenceWriter().frame(frame) for frame in change.frames})
    return change


def test_followers_see_what_their_filters_say(served: tuple[WorldServer, Client]) -> None:
    """After each change, the frames of a follower equal those of its filter in the scene."""
    server, client = served
    filters: list[dict[str, Any]] = [
        {},
        {"subtree": "table"},
        {"classes": ["a", "b"]},
        {"near": ("center", 2.0)},
        {"subtree": "table", "classes": ["a"], "near": ("center", 3.0)},
        {"subtree": "nowhere"},
        {"near": ("none", 1)},
    ]
    chance = np.random.default_rng(3)
    server.live.update(lambda scene: scene.add_frame("center", "world"))
    followers = [
        (asked, another(client).follow(timeout=60.0, **asked), dict[str, Any]())
        for asked in filters
    ]
    first = [taken(changes, known) for _, changes, known in followers]
    assert all(change.is_reset for change in first)
    for k in range(40):
        kind, last, letter = (
            int(chance.integers(5)),
            client.look("frames")[-1],
            "abc"[chance.integers(3)],
        )
        x, y = chance.uniform(-3, 3, 2)
        match kind:
            case 0 | 1:
                client.add_frame(f"f{k}", "table", pose=Pose([x, y, 0]), classes=["a"])
            case 2:
                client.set_pose("center", Pose([x, y, 0]))
            case 3:
                client.update(
                    lambda scene, last=last, letter=letter: scene.set_classes(last, [letter])
                )
            case 4 if len(server.live.scene) > 4:
                client.remove_frame(last)
        for asked, changes, known in followers:
            wanted = expected(server.live.scene, asked)
            while known != wanted:
                assert not taken(changes, known).is_reset


def expected(scene: SceneGraph, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the frames for which a filter holds, by its definition."""
    found = {}
    for name in scene.frame_names:
        center, distance = asked.get("near", ("", 0.0))
        subtree, classes = asked.get("subtree"), asked.get("classes")
        if subtree and name != subtree and subtree not in scene.ancestors(name):
            continue
        if classes and not {*classes} & {*scene.classes(name)}:
            continue
        if center and (
            center not in scene
            or np.linalg.norm(scene.pose(name, relative_to=center).translation) > distance
        ):
            continue
        found[name] = DifferenceWriter().frame(scene.specification(name))
    return found


def test_a_rate_skips_versions_and_tells_the_last(served: tuple[WorldServer, Client]) -> None:
    """A follower with a rate gets fewer changes than there are versions, and the last of them."""
    _, client = served
    follower = another(client).follow(rate=50.0, timeout=60.0)
    next(follower)
    for k in range(200):
        client.set_pose("table", Pose([k, 0, 0]))
    changes = []
    for change in follower:
        changes.append(change)
        if change.version == 200:
            break
    assert changes[-1].frames[0].pose == Pose([199, 0, 0])
    assert len(changes) < 200
    assert [*another(client).follow(classes=["none"], timeout=0.01)] == [
        WorldChange(200, True, (), ())
    ]


def test_who_begins_anew_is_told(served: tuple[WorldServer, Client]) -> None:
    """After a server is replaced, clients get whole scenes, and old versions are rejected."""
    server, client = served
    old, follower = client.scene(), another(client).follow(timeout=60.0)
    next(follower)
    replica = another(client).replica()
    transport: Any = client._transport
    other = WorldServer(InProcessTransport(), SceneGraph().add_frame("new", "world"))
    transport.serve(other._receive)
    # which releases those who wait
    server.live.update(lambda scene: scene.add_frame("last", "world"))
    assert client.scene().frame_names == ("world", "new")
    changes = (change for change in follower if change.is_reset)
    assert [frame.name for frame in next(changes).frames] == ["world", "new"]
    while replica.scene.frame_names != ("world", "new"):
        assert replica.wait(replica.scene, 60.0) is not None
    replica.close()
    with pytest.raises(ServiceError, match="of another world: the server has restarted") as caught:
        client._request(m.Edit([m.Change(0, b"")], server.world), m.Done)
    assert caught.value.kind == "gone"  # type: ignore[attr-defined]
    assert old.frame_names == ("world", "table")
    other.close()


# --- access, limits, garbage


def refused(kind: str, match: str) -> Any:
    """Return a context that expects a rejection."""
    return pytest.raises(ServiceError, match=match, check=lambda error: error.data["kind"] == kind)


def test_tokens_and_roles(tmp_path: Path) -> None:
    """Without a token nothing is answered; the role read cannot edit, the role write can."""
    file = tmp_path / "tokens"
    file.write_text(f"# ours\nread {READ}\nwrite {WRITE}  # the robot\n\n")
    transport = InProcessTransport()
    with WorldServer(transport, tokens=read_tokens(file)) as server:
        for token, reason in [
            ("", "a token is required"),
            ("x" * 16, "this token is unknown"),
            ("r", "unknown"),
        ]:
            with refused("token", reason):
                Client(transport, token=token).server_status()
        reader = Client(transport, token=READ)
        assert reader.scene() == SceneGraph()
        for call in (
            lambda: reader.add_frame("a", "world"),
            lambda: reader.update(lambda scene: scene.add_root("a")),
            lambda: reader.add_frame("a", "world", shapes=[TETRAHEDRON]),
        ):
            with refused("role", "this token has the role read; edits need the role write"):
                call()
        assert server.live.scene == SceneGraph()
        Client(transport, token=WRITE).add_frame("a", "world")
        assert reader.look("exists", "a")
        counts = reader.server_status().counts
        assert (counts["refused: token"], counts["refused: role"], counts["edits"]) == (3, 3, 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("read short", ":1: expected 'read' or 'write' and a token of 16"),
        (f"\nadmin {READ}", ":2: expected 'read' or 'write'"),
        (f"read {READ} more", ":1: expected"),
        ("# nothing", "contains no token"),
        (b"\xff\xfe", "expected a text in UTF-8"),
    ],
)
def test_files_of_tokens_are_checked(tmp_path: Path, text: str | bytes, reason: str) -> None:
    """An invalid line is named; the token itself is not shown."""
    file = tmp_path / "tokens"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileFormatError, match=reason) as caught:
        read_tokens(file)
    assert READ not in str(caught.value)
    with pytest.raises(MissingFileError, match="none: No such file"):
        read_tokens(tmp_path / "none")


def test_limits_are_kept() -> None:
    """Messages, operations, frames, uploads, waiting requests and rates are bounded."""
    transport = InProcessTransport()
    limits = ServiceLimits(
        message_bytes=5_000,
        operations=10,
        frames=5,
        followers=2,
        kept_versions=3,
        upload_bytes=1_000,
        requests_per_second=1e9,
    )
    with WorldServer(transport, limits=limits) as server:
        client = Client(transport)
        with refused("size", r"the message has 10\d\d\d bytes, more than the limit of 5000"):
            client.set_attribute("world", "k", "x" * 10_000)
        with (
            refused("size", "11 operations in one request, more than the limit of 10"),
            client.edit() as edit,
        ):
            for _ in range(11):
                edit.set_attribute("world", "k", None)
        with refused("size", "11 operations"):
            client.gaussian_poses([("world", None)] * 11)
        for k in range(4):
            client.add_frame(f"f{k}", "world")
        with refused("size", "the world would have 6 frames; at most 5"):
            client.add_frame("f4", "world")
        with refused("gone", "version 0 is not stored; the world is at version 4"):
            client.scene(0)
        assert len(client.scene(3)) == 4
        for k in range(20):
            client._request(m.PutBlob(m_blob(k)), m.Done)
        assert sum(size for _, size in server._uploads.values()) <= 1_000
        with server._followers._news:
            server._followers._waiters += [server_waiter() for _ in range(2)]
        with refused("busy", "2 requests wait for changes"):
            client._request(m.Follow(server.world, 4, 0.0), m.Changes)
    slow = ServiceLimits(requests_per_second=5.0)
    with WorldServer(transport, tokens={READ: "read", WRITE: "write"}, limits=slow):
        flood, other = Client(transport, token=READ), Client(transport, token=WRITE)
        with refused("rate", "too many requests or bytes a second"):
            for _ in range(1_000):
                flood.look("roots")
        other.add_frame("a", "world")  # has a rate of its own


def test_followers_of_one_token_leave_room_for_others() -> None:
    """A token with too many waiting requests is rejected; they end with the next change."""
    transport, limits = InProcessTransport(), ServiceLimits(followers=30, followers_per_token=20)
    with WorldServer(
        transport, tokens={READ: "read", OTHER: "read", WRITE: "write"}, limits=limits
    ) as server:

        def follow(token: str, count: int) -> tuple[list[str], list[bytes]]:
            """Send waiting requests; return the kinds of rejections, and later replies."""
            answers: list[bytes] = []
            for number in range(count):
                body = ["follow", server.world, server.version, 60.0, 60.0]
                session = number.to_bytes(16, "big")  # which does not help
                server._receive(
                    msgspec.msgpack.encode([1, token, session, number, body]), answers.append
                )
            kinds = [msgspec.msgpack.decode(answer)[2][1] for answer in answers]
            answers.clear()
            return kinds, answers

        kinds, answers = follow(READ, 1_000)
        assert kinds == ["busy"] * 980
        with refused("busy", "20 requests of this token or session wait for changes"):
            Client(transport, token=READ)._request(m.Follow(server.world, 0, 1.0), m.Changes)
        other = Client(transport, token=OTHER)
        with other.replica() as replica:
            Client(transport, token=WRITE).add_frame("a", "world")
            assert replica.wait_for(1, 60.0) == server.live.scene
        for _ in range(60_000):
            if len(answers) == 20:
                break
            time.sleep(0.001)
        assert {msgspec.msgpack.decode(answer)[2][0] for answer in answers} == {"changes"}
        assert follow(READ, 30)[0] == follow(OTHER, 11)[0] * 10 == ["busy"] * 10


def m_blob(size: int) -> bytes:
    """Return the blob of a mesh."""
    from tmkit.store.blobs import blob_of_shape

    return blob_of_shape(
        Mesh([[0, 0, 0], [1 + size, 0, 0], [0, 1, 0], [0, 0, 1]], TETRAHEDRON.faces)
    )


def server_waiter() -> Any:
    """Return a request that waits for long."""
    from tmkit.world.service.access import Waiter

    return Waiter(0, m.Follow(b"", 0, 60.0, 60.0), [].append)


ROT = [0.0, 0, 0, 0, 0, 0, 1]


def raw(*body: Any, token: str = "", form: Any = 1, number: Any = 0) -> bytes:
    """Return the bytes of a request."""
    return msgspec.msgpack.encode([form, token, b"s" * 16, number, *body])


@pytest.mark.parametrize(
    ("message", "kind", "reason"),
    [
        (b"", "format", "no request: "),
        (b"GET / HTTP/1.1\r\n\r\n", "format", "no request: Expected `array`"),
        (b"\xff" * 1000, "format", "no request"),
        (
            msgspec.msgpack.encode([1]),
            "format",
            "no request: Expected `array` of at least length 5, got 1",
        ),
        (raw(["status"], form=2), "version", "the message has format 2; expected format 1"),
        (raw(["status"], form="1"), "format", "Expected `int`, got `str`"),
        (raw(["status"], number=-1), "format", "Expected `int` >= 0"),
        (raw(["run", "rm -rf"]), "format", "Invalid value 'run'"),
        (raw(["__reduce__"]), "format", "Invalid value"),
        (raw(["edit", [["exec", "x"]]]), "format", "Invalid value 'exec'"),
        (raw(["edit", [["pose", "world", [0.0] * 6]]]), "format", "length 7"),
        (raw(["edit", [["pose", "world", [0.0] * 7]]]), "edit", "no rotation"),
        (raw(["edit", [["pose", "world", [float("nan")] * 7]]]), "edit", "finite"),
        (
            raw(["edit", [["pose", "table", [0.0, 0, 0, 0, 0, 0, 1], b"x" * 287]]]),
            "format",
            "length >= 288",
        ),
        (
            raw(["edit", [["pose", "table", [0.0, 0, 0, 0, 0, 0, 1], b"\xff" * 288]]]),
            "edit",
            "finite|symmetric",
        ),
        (raw(["edit", [["attribute", "table", "k", b"bytes"]]]), "edit", "must be text, a finite"),
        (
            raw(["edit", [["attribute", "table", "k", msgspec.Raw(b"\x91" * 5_000 + b"\x01")]]]),
            "format",
            "recursion",
        ),
        (raw(["edit", [["change", 0, b"\xff"]]]), "gone", "of another world"),
        (raw(["edit", [["change", -1, b"\xff"]]]), "edit", "MessagePack|Expected"),
        (
            raw(["edit", [["change", -1, msgspec.msgpack.encode([[[1, None, ["a", "z", ROT]]]])]]]),
            "unknown",
            "'z'",
        ),
        (raw(["put blob", b"x" * 10]), "edit", "expected 64 bytes or more"),
        (raw(["put blob", b"x" * 100]), "edit", "header"),
        (
            raw(["get blob", "../../../etc/passwd"]),
            "unknown",
            "unknown shape of digest '../../../etc/passwd'",
        ),
        (raw(["follow", b"", -1, 1e9]), "format", "<= 60"),
        (raw(["follow", b"", -1, float("nan")]), "format", ">= 0|<= 60"),
        (
            raw(["follow", b"", -1, 0.0, 0.0, ["table", [], ["table", 1.0], [1.0, 2.0]]]),
            "edit",
            "configuration|q has",
        ),
        (raw(["poses", [["table", None, True, ["q"]]]]), "format", "Expected `float`"),
        (raw(["fetch", 77]), "gone", "version 77 is not stored"),
    ],
)
def test_garbage_is_rejected_with_a_reason(
    served: tuple[WorldServer, Client], message: bytes, kind: str, reason: str
) -> None:
    """Whatever comes in is answered by a refusal that says why, counted, and changes nothing."""
    server, client = served
    before = server.live.scene
    answer = client._transport.request(message, timeout=60.0)
    assert answer is not None
    form, _, (tag, found, text) = msgspec.msgpack.decode(answer)
    assert (form, tag, found) == (1, "refused", kind), text
    with pytest.raises(ServiceError, match=reason):
        raise ServiceError(text, kind=found)
    assert server.live.scene is before
    assert client.server_status().counts[f"refused: {kind}"] == 1


@given(st.data())
@settings(
    max_examples=scaled_examples(3), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_bytes_are_answered(served: tuple[WorldServer, Client], data: st.DataObject) -> None:
    """Random bytes and damaged requests get replies, without internal errors of the server."""
    server, client = served
    messages = [
        raw(
            [
                "edit",
                [["pose", "table", [0.0, 0, 0, 0, 0, 0, 1], b"\0" * 288], ["remove", "x", True]],
                b"",
                None,
            ]
        ),
        raw(["follow", server.world, 0, 0.0, 0.0, ["table", ["a"], ["table", 1.0], None]]),
        raw(["poses", [["table", "world", True, None, None]]]),
        raw(["look", "parent", "table"]),
    ]
    message = bytearray(data.draw(st.sampled_from(messages) | st.binary(max_size=60)))
    for _ in range(data.draw(st.integers(0, 4))):
        if message:
            message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    answers: list[bytes] = []
    server._receive(bytes(message), answers.append)
    client.look("roots")
    assert not server.server_status().counts.get("refused: internal")
    with server._followers._news:
        server._followers._waiters.clear()


def test_garbage_from_a_server_is_an_error() -> None:
    """An invalid reply or scene raises ServiceError in a client."""
    transport = InProcessTransport()
    client = Client(transport, timeout=0.05, retry=0.01)
    with pytest.raises(TimeLimitError, match=r"the server has not answered for 0.05 s"):
        client.server_status()
    answers: Iterator[bytes] = itertools.cycle(
        [b"\xff", msgspec.msgpack.encode([1, -1, ["refused", 3, 4]])]
    )
    transport.serve(lambda _, reply: reply(next(answers)))
    for _ in range(2):
        with pytest.raises(ServiceError, match="the answer is invalid"):
            client.server_status()
    whole = msgspec.msgpack.encode([1, -1, ["whole", b"w", 1, b"\x91\x05"]])
    transport.serve(lambda _, reply: reply(whole))
    with pytest.raises(ServiceError, match="the record of the server is invalid"):
        client.scene()


def test_listeners_that_raise_disturb_no_client(served: tuple[WorldServer, Client]) -> None:
    """An edit is acknowledged once despite a failing listener; a replica reports the error."""
    server, client = served
    server.live._listeners = (lambda _: 1 / 0, *server.live._listeners)  # before the server's own
    with client.replica() as replica:
        replica.on_change(lambda _: 1 / 0)
        for k in range(3):
            client.add_frame(f"listened {k}", "table")
            replica.wait_for(server.version, 30.0)
        assert replica.scene == client.scene() == server.live.scene
        assert "raised ZeroDivisionError" in str(replica.failure)


# --- faults


def test_edits_over_a_bad_network_happen_once(served: tuple[WorldServer, Client]) -> None:
    """With lost, late, repeated and reordered messages, each edit is made once."""
    server, client = served
    server.live.update(lambda scene: scene.add_frame("n0", "table").add_frame("n1", "table"))
    faulty = [FaultyTransport(client._transport, seed, rate=0.6) for seed in range(2)]
    replica = Client(
        FaultyTransport(client._transport, 7, rate=0.6), retry=0.05, timeout=60.0
    ).replica()

    def move(number: int) -> None:
        own = Client(faulty[number], retry=0.05, timeout=60.0)
        for _ in range(60):
            own.reparent(
                f"n{number}",
                "table",
                pose=server.live.scene.local_pose(f"n{number}") @ Pose([1, 0, 0]),
            )

    threads = [threading.Thread(target=move, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scene = server.live.scene
    assert [scene.local_pose(f"n{k}").translation[0] for k in range(2)] == [60.0, 60.0]
    assert server.version == 121
    assert min(min(one.counts.values()) for one in faulty) > 0
    assert replica.wait_for(121, 60.0).fingerprint == scene.fingerprint
    replica.close()
