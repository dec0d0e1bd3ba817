"""Stores under kills, with several processes, damage and files of strangers."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support import store_jobs
from support.effort import scaled_examples
from support.processes import Process
from support.store_jobs import scene_version

from tmkit.errors import StoreDamageError, StoreError, TmkitError, UnknownNameError
from tmkit.graph import Mesh, SceneGraph
from tmkit.spatial import Pose
from tmkit.store import Store
from tmkit.store.versions import StoreLimits

TETRAHEDRON = (
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]],
)


def started(*arguments: object) -> Process:
    """Start a job of :mod:`support.store_jobs` in another process."""
    environment = os.environ | {"PYTHONPATH": str(Path(store_jobs.__file__).parents[1])}
    command = [sys.executable, store_jobs.__file__, *map(str, arguments)]
    return Process(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_kills_during_writes_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Twelve processes are killed at random moments, and each next one reads complete versions."""
    chance, acknowledged = random.Random(19), {}
    for _ in range(12):
        process = started("write", tmp_path, len(acknowledged))
        assert process.stdout is not None
        for _ in range(chance.randint(1, 12)):
            number, known = process.stdout.readline().split()
            acknowledged[int(number)] = known
        for _ in range(chance.randint(0, 200_000)):  # some of the way to the next one
            pass
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].split()
        acknowledged |= {
            int(number): known
            for number, known in zip(rest[::2], rest[1::2], strict=False)
            if known[63:]
        }
        store = Store(tmp_path)
        assert store.find_damage() == ()
        history = {version.id: int(version.message) for version in store.log()}
        assert set(acknowledged.values()) <= set(history)
        for known, number in history.items():
            # one that was stored, but its process could not say so
            acknowledged.setdefault(number, known)
            assert store.get(known) == scene_version(number)
        store.close()
    store = Store(tmp_path)
    store.gc()
    assert store.find_damage() == ()
    assert not [name for name in os.listdir(tmp_path / "blobs") if name.startswith("half")]


def test_processes_share_a_store(tmp_path: Path) -> None:
    """Four processes write to a shared branch and one each during gc, and no edit is lost."""
    Store(tmp_path).put(SceneGraph())
    jobs = [started("add", tmp_path, name, 15) for name in "abcd"]
    store = Store(tmp_path)
    while any(job.poll() is None for job in jobs):
        store.gc()
    assert [job.communicate()[0] + str(job.returncode) for job in jobs] == ["0", "0", "0", "0"]
    names = {f"{name}{k}" for name in "abcd" for k in range(15)}
    assert {*store.get("main").frame_names} == names | {"world"}
    assert len([*store.log("main")]) == 61
    assert {*store.branches} == {"main", *(f"mine/{name}" for name in "abcd")}
    assert store.find_damage() == ()


def test_threads_and_forks_share_a_store(tmp_path: Path) -> None:
    """Each thread writes to its branch, and a forked child writes by its own connection."""
    store = Store(tmp_path)

    def put(branch: str) -> None:
        for k in range(20):
            store.put(SceneGraph().add_frame("a", "world", pose=Pose([k, 0, 0])), branch)

    threads = [threading.Thread(target=put, args=(name,)) for name in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len([*store.log(name)]) for name in "xyz"] == [20, 20, 20]
    child = os.fork()
    if child == 0:
        try:
            put("child")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.get("child") == store.get("x")
    assert store.find_damage() == ()


def stored(path: Path) -> tuple[Store, str, str, str]:
    """A store of a version with a mesh, its id and its child's, and the name of the blob."""
    mesh = Mesh(*TETRAHEDRON)
    scene = SceneGraph().add_frame("a", "world", shapes=[mesh])
    store = Store(path)
    first = store.put(scene)
    second = store.put(scene.set_pose("a", Pose([1, 0, 0])))
    store.close()
    return Store(path), first, second, mesh.digest


def change(path: Path, statement: str, *values: object) -> None:
    """Change the database behind a store's back."""
    with sqlite3.connect(path / "versions.sqlite") as connection:
        connection.execute(statement, values)
    connection.close()


def test_damaged_entries_are_named(tmp_path: Path) -> None:
    """Errors name changed or missing headers, bodies and blobs; intact versions are readable."""
    for number, (column, word) in enumerate(
        [("header", "its header has another"), ("body", "its body has another")]
    ):
        store, first, second, _ = stored(tmp_path / str(number))
        row = store._database.query(
            f"SELECT {column} FROM versions WHERE id=?", bytes.fromhex(second)
        )[0][0]
        torn = row[:-1] + bytes([row[-1] ^ 1])
        change(
            store.path, f"UPDATE versions SET {column}=? WHERE id=?", torn, bytes.fromhex(second)
        )
        with pytest.raises(StoreDamageError, match=f"version {second}: .*{word} digest") as caught:
            store.get("main")
        assert caught.value.entry == f"version {second}"
        assert store.get(first).frame_names == ("world", "a")
        assert len(store.find_damage()) == 1
    store, first, second, blob = stored(tmp_path / "blob")
    path = tmp_path / "blob" / "blobs" / blob
    whole = path.read_bytes()
    for data, reason in [
        (whole[:-1], "its header is invalid or does not fit its length"),
        (
            whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
            "its content has the digest|not finite",
        ),
        (whole[:-4] + b"\xff\xff\xff\x7f", "names vertex 2147483647"),
        (b"x" * 10, "expected a regular file of 64 to"),
        (b"x" * 100, "its header is invalid or does not fit"),
    ]:
        path.write_bytes(data)
        with pytest.raises(StoreDamageError, match=f"blob {blob}: it is damaged: .*({reason})"):
            Store(store.path).get(first)
        assert all(f"blob {blob}" in line for line in Store(store.path).find_damage())
        with pytest.raises(StoreDamageError, match=f"blob {blob}: "):
            Store(store.path).put(
                SceneGraph().add_frame("b", "world", shapes=[Mesh(*TETRAHEDRON)]), "new"
            )
    path.unlink()
    with pytest.raises(StoreDamageError, match=f"blob {blob}: it cannot be read: No such file"):
        Store(store.path).get(first)
    change(store.path, "DELETE FROM versions WHERE id=?", bytes.fromhex(first))
    with pytest.raises(StoreDamageError, match=f"version {first}: it is missing"):
        Store(store.path).get(second)
    change(store.path, "DELETE FROM versions")
    assert Store(store.path).find_damage()[0].startswith("branch 'main': version")


def test_a_blob_is_not_read_through_a_link(tmp_path: Path) -> None:
    """Links in place of blobs, their folder or the database are rejected."""
    store, first, _, blob = stored(tmp_path / "s")
    store.close()
    secret = tmp_path / "secret"
    (tmp_path / "s" / "blobs" / blob).rename(secret)
    (tmp_path / "s" / "blobs" / blob).symlink_to(secret)
    with pytest.raises(StoreDamageError, match=f"blob {blob}: it cannot be read"):
        Store(tmp_path / "s").get(first)
    (tmp_path / "s" / "blobs" / "garbage").symlink_to(secret)
    Store(tmp_path / "s").gc()
    assert secret.exists()
    assert os.listdir(tmp_path / "s" / "blobs") == [blob]
    (tmp_path / "s" / "blobs").rename(tmp_path / "elsewhere")
    (tmp_path / "s" / "blobs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="expected a folder, received a link"):
        Store(tmp_path / "s")
    (tmp_path / "s" / "blobs").unlink()
    (tmp_path / "s" / "versions.sqlite").rename(tmp_path / "database")
    (tmp_path / "s" / "versions.sqlite").symlink_to(tmp_path / "database")
    with pytest.raises(StoreError, match="expected a regular file, received a link"):
        Store(tmp_path / "s")


def test_databases_of_strangers(tmp_path: Path) -> None:
    """Other files, other schemas, triggers, views, later formats and damaged pages are rejected."""
    stored(tmp_path / "good")[0].close()
    good = (tmp_path / "good" / "versions.sqlite").read_bytes()

    def refused(name: str, data: bytes, match: str, *statements: str) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "versions.sqlite").write_bytes(data)
        for statement in statements:
            change(tmp_path / name, statement)
        with pytest.raises(StoreError, match=match):
            Store(tmp_path / name).put(SceneGraph().add_frame("q", "world"))

    refused("garbage", os.urandom(5000), "file is not a database")
    refused("other", b"", "it is not the database of a store", "CREATE TABLE t (a)")
    trigger = "CREATE TRIGGER t AFTER INSERT ON versions BEGIN DELETE FROM branches; END"
    refused("trigger", good, "it is not the database of a store", trigger)
    refused(
        "view", good, "it is not the database of a store", "CREATE VIEW v AS SELECT * FROM branches"
    )
    refused("later", good, "it has format 2; this tmkit reads format 1", "PRAGMA user_version=2")
    refused("id", good, "an id is not 32 bytes", "UPDATE branches SET id='text'")
    chance = random.Random(7)
    for number in range(60):
        data = bytearray(good)
        for _ in range(chance.choice([1, 20, 500])):
            data[chance.randrange(100, len(data))] = chance.randrange(256)
        folder = tmp_path / f"turned{number}"
        shutil.copytree(tmp_path / "good", folder)
        (folder / "versions.sqlite").write_bytes(data)
        try:
            store = Store(folder)
            store.get("main")
            store.put(SceneGraph(), "new")
            assert isinstance(store.find_damage(), tuple)
        except TmkitError:
            pass


def forged(path: Path, body: bytes, **changed: object) -> Store:
    """Return a store whose one version has a body that a stranger wrote, with all digests right."""
    scene = SceneGraph()
    store = Store(path)
    known = bytes.fromhex(store.put(scene))
    header = msgspec.msgpack.decode(store._database.query("SELECT header FROM versions")[0][0])
    header[4] = hashlib.sha256(body).digest()
    header[3] = bytes.fromhex(str(changed.get("fingerprint", scene.fingerprint)))
    data = msgspec.msgpack.encode(header)
    new = hashlib.sha256(data).digest()
    store.close()
    change(path, "UPDATE versions SET id=?, header=?, body=? WHERE id=?", new, data, body, known)
    change(path, "UPDATE branches SET id=?", new)
    return Store(path)


POSE = [0.0, 0, 0, 0, 0, 0, 1]
ROOT = [1, None, ["world", None, POSE]]
ATTACHED = [POSE, None, True, True, None, None, None]
NOISE = [b"\0" * 288, [[0, b"\0" * 48]]]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (5, "Expected `array`, got `int`"),
        ([[[1, None, ["a", None, POSE[:6]]]]], "Expected `array` of length 7"),
        ([[[1, None, ["a", None, [float("nan")] * 7]]]], "finite"),
        ([[[1, None, ["a", None, [0.0] * 7]]]], "no rotation"),
        ([[[0, None, ["a", None, POSE]]]], "needs an id"),
        ([[[2**31 + 1, None, ["a", None, POSE]]]], "needs an id"),
        ([[[-5, None, ["a", None, POSE]]]], "frame_id|FrameDifference"),
        ([[[1, None, None]]], "before, after or both"),
        ([[[1, "ghost", None]]], "unknown frame 'ghost'"),
        ([[ROOT, [2, None, ["b", "ghost", POSE]]]], "unknown frame 'ghost'"),
        ([[ROOT, ROOT]], "'world'"),
        ([[ROOT, [2, None, ["b", "b", POSE]]]], "own ancestor|unknown frame"),
        ([[ROOT, [2, None, ["b", "world", POSE, None, None, [], [[-1, *ATTACHED]]]]]], ">= 0"),
        ([[ROOT, [2, None, ["b", "world", POSE, None, None, [], [[3, *ATTACHED]]]]]], "range"),
        ([[ROOT], [["box", [1.0, 2.0]]]], "positional argument|box|size"),
        ([[ROOT], [["box", [-1.0, 2.0, 1.0]]]], "positive"),
        ([[ROOT], [["exec", [1.0]]]], "there is no shape of kind 'exec'"),
        ([[ROOT], [["../../../etc/passwd", "source"]]], "its name is not a digest"),
        ([[ROOT], [], [[b"k", 10**9, ""]]], "no dimension from 1 to 100000"),
        ([[ROOT, [2, None, ["b", "world", POSE, None, None, [], [], None, "{"]]]], "Expecting"),
        (
            [[ROOT, [2, None, ["b", "world", POSE, None, None, [], [], None, "[" * 100_000]]]],
            "recursion",
        ),
        (
            [[ROOT, [2, None, ["b", "world", POSE, None, None, [], [], None, "[1]"]]]],
            "not enough values",
        ),
        (
            [[ROOT, [2, None, ["b", "world", POSE, None, None, [], [], [1.0, b"abc", b""]]]]],
            "buffer size|multiple",
        ),
        (
            [
                [
                    ROOT,
                    [
                        2,
                        None,
                        ["b", "world", POSE, None, None, [], [], None, None, None, None, NOISE],
                    ],
                ]
            ],
            "range",
        ),
        ([[ROOT], [], [], [["world", "ghost", None, "x"]]], "unknown frame 'ghost'"),
        ([[ROOT], [], [], [], [["g", [["ghost"], [], [], None]]]], "unknown frame 'ghost'"),
        ([[ROOT], [], [], [], [["g", [[], ["g"], [], None]]]], "group"),
        (
            [
                [
                    ROOT,
                    [
                        2,
                        None,
                        ["b", "world", POSE, None, [99, [0, 0, 1], 0, 0, 0, 0, 0, 0, "", None]],
                    ],
                ]
            ],
            "joint type",
        ),
    ],
)
def test_records_of_strangers(tmp_path: Path, record: object, reason: str) -> None:
    """Every invalid record with valid digests raises an error with its id."""
    store = forged(tmp_path, msgspec.msgpack.encode(record))
    with pytest.raises(
        StoreDamageError,
        match=f"version {store.branches['main']}: it is damaged: .*({reason})|blob .*",
    ):
        store.get("main")
    assert len(store.find_damage()) == 1


def test_a_record_must_have_its_fingerprint(tmp_path: Path) -> None:
    """The scene must have the fingerprint of the header, and not too many frames."""
    body = msgspec.msgpack.encode([[ROOT]])
    assert forged(tmp_path / "a", body).get("main") == SceneGraph()
    with pytest.raises(StoreDamageError, match="its content has another fingerprint"):
        forged(tmp_path / "b", body, fingerprint="00" * 16).get("main")
    many = [ROOT, *([2 + k, None, [f"f{k}", "world", POSE]] for k in range(30))]
    store = forged(tmp_path / "c", msgspec.msgpack.encode([many]))
    with pytest.raises(StoreDamageError, match="more than 20 frames"):
        Store(store.path, limits=StoreLimits(frames=20)).get("main")


@given(st.data())
@settings(
    max_examples=scaled_examples(1.5), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_records_give_a_scene_or_a_store_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Bodies of random bytes and real bodies with changed bytes."""
    with_all = Store(tmp_path_factory.mktemp("real"))
    with_all.put(
        scene_version(1).add_frame("m", "f1", pose=Pose([1, 2, 3])).set_attribute("m", "a", [1])
    )
    body = bytearray(with_all._database.query("SELECT body FROM versions")[0][0][:1500])
    if data.draw(st.booleans()):
        body = bytearray(data.draw(st.binary(max_size=60)))
    for _ in range(data.draw(st.integers(0, 5)) if body else 0):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    store = forged(tmp_path_factory.mktemp("forged"), bytes(body))
    try:
        store.get("main")
    except (StoreDamageError, UnknownNameError):
        assert store.find_damage()
    store.close()
    with_all.close()
