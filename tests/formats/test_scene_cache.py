"""Cached scenes equal the scenes of their files, after any change of files and entries."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import pickle
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.effort import scaled_examples
from support.processes import Process, run_process

from tmkit._support.source_location import ImportNote
from tmkit.errors import FileFormatError
from tmkit.formats import ReadingOptions, load_scene, scene_cache
from tmkit.formats.mesh import meshes
from tmkit.formats.scene_cache import SceneCache
from tmkit.graph import Box, SceneGraph

OBJ = (
    "mtllib cube.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf"
    " 2 3 4\n"
)
MTL = "newmtl red\nKd {} 0 0\n"
URDF = """<robot name="r"><link name="base"><visual><geometry><mesh filename="{mesh}"/>
</geometry></visual></link>
<link name="hand"/><joint name="j" type="revolute"><parent link="base"/><child link="hand"/>
<axis xyz="0 0 2"/></joint>
</robot>"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SceneCache:
    """Return an empty cache, for which files count as settled at once."""
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(scene_cache, "_SETTLING_TIME", 0)
    folder = tmp_path / "robot"
    folder.mkdir()
    write(folder / "cube.obj", OBJ)
    write(folder / "cube.mtl", MTL.format(1))
    write(folder / "r.urdf", URDF.format(mesh="cube.obj"))
    return SceneCache(tmp_path / "cache")


def write(path: Path, text: str, *, seconds: int = 1_000_000_000) -> None:
    """Write a file that changed at a time."""
    path.write_text(text)
    os.utime(path, (seconds, seconds))


def load_with_notes(path: Path) -> tuple[SceneGraph, list[ImportNote]]:
    """Return a scene and the notes of its load."""
    notes: list[ImportNote] = []
    return load_scene(path / "robot" / "r.urdf", on_note=notes.append), notes


def test_the_second_load_reads_no_file(
    cache: SceneCache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Scene and notes are the same; the notes are logged again."""
    first, notes = load_with_notes(tmp_path)
    assert len(cache.entries()) == 1
    assert notes
    monkeypatch.setattr(meshes, "read_bytes", lambda *_, **__: pytest.fail("a mesh was read"))
    caplog.clear()
    second, again = load_with_notes(tmp_path)
    assert (second, second.digest(), again) == (first, first.digest(), notes)
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [str(note) for note in notes]


def test_built_in_scenes_come_back_equal(cache: SceneCache) -> None:
    """With meshes of installed packages, classes, joints and pairs that may touch."""
    for names in (["panda_table", "blocks3"], ["baxter_table"], ["ur5_table"]):
        first = load_scene(*names)
        second = load_scene(*names)
        assert (second, second.digest()) == (first, first.digest())
    assert len(cache.entries()) == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cube.obj", OBJ.replace("v 1 0 0", "v 2 0 0")),
        ("cube.mtl", MTL.format(0)),
        ("r.urdf", URDF.format(mesh="cube.obj").replace("hand", "tool")),
    ],
)
@pytest.mark.usefixtures("cache")
def test_a_changed_file_is_read(tmp_path: Path, name: str, text: str) -> None:
    """A change of any file is detected, even if the size is the same."""
    load_with_notes(tmp_path)
    write(tmp_path / "robot" / name, text, seconds=1_000_000_001)
    changed_scene, _ = load_with_notes(tmp_path)
    os.environ["TMKIT_CACHE"] = "off"
    assert changed_scene == load_with_notes(tmp_path)[0]


def test_a_file_that_appears_nearer_is_read(cache: SceneCache, tmp_path: Path) -> None:
    """The cache of a mesh in a folder above is invalid once the description's folder has one."""
    write(tmp_path / "robot" / "r.urdf", URDF.format(mesh="parts/cube.obj"))
    for folder in (tmp_path / "parts", tmp_path / "robot" / "parts"):
        folder.mkdir()
    write(tmp_path / "parts" / "cube.obj", OBJ)
    far_scene, _ = load_with_notes(tmp_path)
    write(tmp_path / "robot" / "parts" / "cube.obj", OBJ.replace("v 1 0 0", "v 3 0 0"))
    near_scene, _ = load_with_notes(tmp_path)
    assert [scene.shapes("base")[0].shape.vertices.max() for scene in (far_scene, near_scene)] == [
        1.0,
        3.0,
    ]
    assert len(cache.entries()) == 1


def test_files_that_changed_just_now_are_not_trusted(
    cache: SceneCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recent or decreasing file times are not trusted, because a second change could be hidden."""
    monkeypatch.setattr(scene_cache, "_SETTLING_TIME", 3_600_000_000_000)
    write(tmp_path / "robot" / "cube.obj", OBJ)
    load_with_notes(tmp_path)
    assert cache.entries() == []


@settings(
    max_examples=scaled_examples(0.4), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_entry_is_replaced(
    cache: SceneCache, tmp_path: Path, data: st.DataObject
) -> None:
    """A damaged entry counts as missing, and the next load stores it again."""
    first, notes = load_with_notes(tmp_path)
    [(_, size, path)] = cache.entries()
    whole = path.read_bytes()
    at = data.draw(st.integers(0, size - 1))
    byte = data.draw(st.integers(1, 255))
    path.write_bytes(
        data.draw(
            st.sampled_from([whole[:at], whole[:at] + bytes([whole[at] ^ byte]) + whole[at + 1 :]])
        )
    )
    assert load_with_notes(tmp_path) == (first, notes)
    assert path.read_bytes() == whole


def test_an_entry_runs_no_code(cache: SceneCache, tmp_path: Path) -> None:
    """Not even one whose digest is right."""

    class Harm:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {tmp_path / 'harm'}",)

    first, _ = load_with_notes(tmp_path)
    [(_, _, path)] = cache.entries()
    for rest in (pickle.dumps(Harm()), pickle.dumps(({}, [])) + pickle.dumps(Harm())):
        path.write_bytes(hashlib.blake2b(rest, digest_size=32).digest() + rest)
        assert load_with_notes(tmp_path)[0] == first
    assert not (tmp_path / "harm").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_entries_of_others_and_links_are_not_taken(cache: SceneCache, tmp_path: Path) -> None:
    """A folder that others may write to holds no scenes of theirs for us."""
    load_with_notes(tmp_path)
    [(_, _, path)] = cache.entries()
    key = path.stem
    os.chown(path, 12345, 12345)
    assert cache.get(key) is None
    path.rename(tmp_path / "elsewhere")
    os.chown(tmp_path / "elsewhere", 0, 0)
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.get(key) is None


def test_a_full_folder_loses_what_was_not_used_longest(cache: SceneCache) -> None:
    """New entries stay."""
    small = SceneCache(cache.folder, limit=1200)
    scene = SceneGraph()
    for number in range(6):
        small.put(f"{number:032x}", scene, {}, [])
        for at, (_, _, path) in enumerate(small.entries()):
            os.utime(path, (1000 + at, 1000 + at))
    ages = [int(path.stem, 16) for _, _, path in small.entries()]
    assert sum(size for _, size, _ in small.entries()) <= 1200
    assert ages == list(range(6 - len(ages), 6))
    assert 1 <= len(ages) < 6


def test_two_processes_share_a_folder(cache: SceneCache, tmp_path: Path) -> None:
    """They begin together; both load the same scene, and one entry stays."""
    program = (
        "import tmkit as tk; from tmkit.formats import scene_cache; "
        "scene_cache._SETTLING_TIME = 0; "
        f"print(tk.load_scene({str(tmp_path / 'robot' / 'r.urdf')!r}).digest())"
    )
    running = [
        Process([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    digests = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert digests == {f"{load_with_notes(tmp_path)[0].digest()}\n".encode()}
    assert [path.suffix for _, _, path in cache.entries()] == [".scene"]


def test_it_can_be_off_cleared_or_impossible(
    cache: SceneCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then scenes are read; a folder that cannot be made is no error."""
    first, _ = load_with_notes(tmp_path)
    assert len(cache.entries()) == 1
    cache.clear()
    assert cache.entries() == []
    monkeypatch.setenv("TMKIT_CACHE", "off")
    assert load_with_notes(tmp_path)[0] == first
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path / "file" / "cache"))
    assert load_with_notes(tmp_path)[0] == first
    shutil.rmtree(cache.folder)
    assert cache.entries() == []
    monkeypatch.delenv("TMKIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_of_user = SceneCache.of_user()
    assert cache_of_user is not None
    assert cache_of_user.folder == tmp_path / "tmkit"


def test_other_code_is_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The readers are part of the name."""
    before = scene_cache.entry_key("a")
    assert before == scene_cache.entry_key("a")
    assert before != scene_cache.entry_key("b")
    monkeypatch.setattr(scene_cache, "_code_signatures", lambda: [("reader.py", (1, 2, 3))])
    assert before != scene_cache.entry_key("a")
    monkeypatch.undo()
    # another library, or another version
    monkeypatch.setattr(scene_cache, "site_folders", lambda: [Path("site-packages")])
    assert before != scene_cache.entry_key("a")


def test_a_full_disk_leaves_nothing(
    cache: SceneCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scene is loaded all the same."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tmkit.formats.scene_cache.os.replace", full)
    first, _ = load_with_notes(tmp_path)
    assert list(cache.folder.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setenv("TMKIT_CACHE", "off")
    assert load_with_notes(tmp_path)[0] == first


# --- every kind of file in place of an entry, its folder, and the folders above
# --------------------------------------


def entry_of(scene: object, key: str, files: object = (), notes: object = ()) -> bytes:
    """Return the bytes of an entry with a digest that fits."""
    rest = pickle.dumps((key, dict(files), list(notes))) + pickle.dumps(scene)  # type: ignore[call-overload]
    return hashlib.blake2b(rest, digest_size=32).digest() + rest


def as_fifo(path: Path, _: bytes) -> None:
    """Make a pipe that nobody writes to."""
    os.mkfifo(path)


def as_folder(path: Path, _: bytes) -> None:
    """Make a folder."""
    path.mkdir()


def as_link_to_a_copy(path: Path, data: bytes) -> None:
    """Make a link to the entry itself."""
    path.with_name("copy").write_bytes(data)
    path.symlink_to("copy")


def as_link_to_a_fifo(path: Path, _: bytes) -> None:
    """Make a link to a pipe."""
    os.mkfifo(path.with_name("fifo"))
    path.symlink_to("fifo")


def as_link_to_itself(path: Path, _: bytes) -> None:
    """Make a link that leads nowhere."""
    path.symlink_to(path.name)


def as_link_to_a_device(path: Path, _: bytes) -> None:
    """Make a link to a device without end."""
    path.symlink_to("/dev/zero")


def as_socket(path: Path, _: bytes) -> None:
    """Make a socket."""
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(path.parent, os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{here}/{path.name}")  # an address has 107 bytes at most
        finally:
            os.close(here)


def as_device(path: Path, _: bytes) -> None:
    """Make a device without end."""
    if os.getuid() != 0:
        pytest.skip("only root makes devices")
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no devices can be made here")


def as_file_of_another(path: Path, data: bytes) -> None:
    """Write the entry as a file of another user."""
    if os.getuid() != 0:
        pytest.skip("only root gives files away")
    path.write_bytes(data)
    os.chown(path, 12345, 12345)


def as_file_that_others_write(path: Path, data: bytes) -> None:
    """Write the entry as a file that others may change."""
    path.write_bytes(data)
    path.chmod(0o666)


def as_huge_file(path: Path, data: bytes) -> None:
    """Write the entry with a hole of 10 TB behind it."""
    path.write_bytes(data)
    os.truncate(path, 10**13)


def as_file(data: Callable[[bytes, str], bytes]) -> Callable[[Path, bytes], None]:
    """Return a function that writes bytes computed from an entry and its name."""

    def write_data(path: Path, whole: bytes) -> None:
        path.write_bytes(data(whole, path.stem))

    return write_data


SCENE = SceneGraph().add_frame("wrong", "world")
ENTRIES: dict[str, Callable[[Path, bytes], None]] = {
    "fifo": as_fifo,
    "folder": as_folder,
    "link to a copy": as_link_to_a_copy,
    "link to a fifo": as_link_to_a_fifo,
    "link to itself": as_link_to_itself,
    "link to a device": as_link_to_a_device,
    "socket": as_socket,
    "device": as_device,
    "file of another": as_file_of_another,
    "file that others write": as_file_that_others_write,
    "huge file": as_huge_file,
    "empty": as_file(lambda _whole, _key: b""),
    "truncated": as_file(lambda whole, _key: whole[:-1]),
    "text": as_file(lambda _whole, _key: b"no pickle" * 9),
    "no scene": as_file(lambda _whole, key: entry_of([1], key)),
    "a shape": as_file(lambda _whole, key: entry_of(Box([1, 1, 1]), key)),
    "none": as_file(lambda _whole, key: entry_of(None, key)),
    "an array": as_file(lambda _whole, key: entry_of(np.zeros(3), key)),
    "another entry": as_file(lambda _whole, _key: entry_of(SCENE, "0" * 32)),
    "notes of another kind": as_file(lambda _whole, key: entry_of(SCENE, key, notes=[1])),
    "files of another kind": as_file(lambda _whole, key: entry_of(SCENE, key, files={3: ()})),
}


def loads_in_time(path: Path, cache: SceneCache) -> str:
    """Return the digest that another process loads, which is killed if it waits."""
    program = (
        "import tmkit as tk; from tmkit.formats import scene_cache; "
        "scene_cache._SETTLING_TIME = 0; "
        f"print(tk.load_scene({str(path / 'robot' / 'r.urdf')!r}).digest())"
    )
    environment = {**os.environ, "TMKIT_CACHE": str(cache.folder)}
    done = run_process(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("kind", ENTRIES)
def test_whatever_stands_for_an_entry_is_not_taken(
    kind: str, cache: SceneCache, tmp_path: Path
) -> None:
    """It counts as missing, at once, and only a folder stays where the next entry would be."""
    first, notes = load_with_notes(tmp_path)
    [(_, _, path)] = cache.entries()
    whole = path.read_bytes()
    path.unlink()
    ENTRIES[kind](path, whole)
    assert cache.get(path.stem) is None
    assert load_with_notes(tmp_path) == (first, notes)
    again = cache.get(path.stem)
    assert (again is None) == (kind == "folder")
    assert again is None or again == (first, notes)


@pytest.mark.parametrize(
    "kind", ["fifo", "link to a fifo", "link to itself", "link to a device", "socket", "text"]
)
@pytest.mark.parametrize("above", [0, 1])
def test_whatever_stands_for_the_folder_is_no_cache(
    kind: str, above: int, cache: SceneCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scenes are read, and nothing is kept."""
    first, _ = load_with_notes(tmp_path)
    place = tmp_path / "place"
    ENTRIES[kind](place, b"")
    folder = place.joinpath(*["inner"] * above)
    monkeypatch.setenv("TMKIT_CACHE", str(folder))
    assert load_with_notes(tmp_path)[0] == first
    assert SceneCache(folder).entries() == []
    assert stat.S_IFMT(place.lstat().st_mode) != stat.S_IFDIR


def test_a_process_does_not_wait_for_a_fifo(cache: SceneCache, tmp_path: Path) -> None:
    """Not for a writer of the entry, and not for one of the folder."""
    first = loads_in_time(tmp_path, cache)
    [(_, _, path)] = cache.entries()
    path.unlink()
    os.mkfifo(path)
    assert loads_in_time(tmp_path, cache) == first
    os.mkfifo(tmp_path / "fifo")
    assert loads_in_time(tmp_path, SceneCache(tmp_path / "fifo")) == first


def test_a_folder_that_is_a_link_is_used(
    cache: SceneCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users put caches on other disks."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path / "link"))
    first, _ = load_with_notes(tmp_path)
    monkeypatch.setattr(meshes, "read_bytes", lambda *_, **__: pytest.fail("a mesh was read"))
    assert load_with_notes(tmp_path)[0] == first
    assert cache.entries() == []


# --- every kind of change of an input

XML = """<mujoco><worldbody><body name="b"><geom type="box" size="{} 1 1"/></body></worldbody>
</mujoco>"""
SDF = """<sdf version="1.9"><world name="w"><include><uri>part.sdf</uri></include></world></sdf>"""
PART = """<sdf version="1.9"><model name="m"><link name="l"><collision name="c"><geometry><box>
<size>{} 1 1</size></box>
</geometry></collision></link></model></sdf>"""
ROBRAY = "frame part {{ translation [{}, 0, 0]; }}\n"
USDA = '#usda 1.0\n(\n subLayers = [@./layer.usda@]\n metersPerUnit = 1\n upAxis = "Z"\n)\n'
LAYER = '#usda 1.0\ndef Cube "c" {{\n double size = {}\n}}\n'
GLTF_BUFFER = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype="<f4")


def gltf() -> str:
    """Return a mesh whose vertices are in a file beside it."""
    return json.dumps(
        {
            "asset": {"version": "2.0"},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": [{"mesh": 0}],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
            "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
            "bufferViews": [{"buffer": 0, "byteLength": 36}],
            "buffers": [{"uri": "part.bin", "byteLength": 36}],
        }
    )


def robot_with(mesh: str) -> str:
    """Return a URDF with a mesh, so that its load is kept."""
    return URDF.format(mesh=mesh)


def two_contents(text: str) -> tuple[bytes, bytes]:
    """Return two contents of one length that differ in a number."""
    return text.format(1).encode(), text.format(2).encode()


INPUTS: dict[str, tuple[str, tuple[bytes, bytes], dict[str, str], tuple[str, ...]]] = {
    "mesh": ("cube.obj", (OBJ.encode(), OBJ.replace("v 1 0 0", "v 2 0 0").encode()), {}, ()),
    "material": ("cube.mtl", two_contents(MTL), {}, ()),
    "description": (
        "r.urdf",
        (
            URDF.format(mesh="cube.obj").encode(),
            URDF.format(mesh="cube.obj").replace("0 0 2", "0 2 0").encode(),
        ),
        {},
        (),
    ),
    "buffer of a mesh": (
        "part.bin",
        (GLTF_BUFFER.tobytes(), (2 * GLTF_BUFFER).tobytes()),
        {
            "p.gltf": gltf(),
            "p.urdf": (
                robot_with("p.gltf")
                .replace('"r"', '"p"')
                .replace('"base"', '"p1"')
                .replace('"hand"', '"p2"')
                .replace('"j"', '"p3"')
            ),
        },
        ("p.urdf",),
    ),
    "second file": ("b.xml", two_contents(XML), {}, ("b.xml",)),
    "included SDF": ("part.sdf", two_contents(PART), {"w.sdf": SDF}, ("w.sdf",)),
    "included robray": (
        "part.robray",
        two_contents(ROBRAY),
        {"w.robray": 'include "part.robray"\n'},
        ("w.robray",),
    ),
    "layer of USD": ("layer.usda", two_contents(LAYER), {"s.usda": USDA}, ("s.usda",)),
}
"""A file that changes, its two contents, other files, and those that are loaded after the robot."""


def in_place(path: Path, data: bytes) -> None:
    """Write over a file without making it anew, and put its times back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def by_map(path: Path, data: bytes) -> None:
    """Write over a file through memory."""
    before = path.stat()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:] = data
        mapped.flush()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def by_rename(path: Path, data: bytes) -> None:
    """Put another file with the same times in the place."""
    before = path.stat()
    path.with_name("new").write_bytes(data)
    os.utime(path.with_name("new"), ns=(before.st_atime_ns, before.st_mtime_ns))
    path.with_name("new").replace(path)


def by_link(path: Path, data: bytes) -> None:
    """Put a link to another file in the place."""
    by_rename(path, data)
    path.rename(path.with_name(f"real_{path.name}"))
    path.symlink_to(f"real_{path.name}")


def by_folder(path: Path, data: bytes) -> None:
    """Put another folder in the place of the one that holds the file."""
    copy = path.parent.with_name("copy")
    shutil.copytree(path.parent, copy)
    in_place(copy / path.name, data)
    path.parent.rename(path.parent.with_name("old"))
    copy.rename(path.parent)


CHANGES = [in_place, by_map, by_rename, by_link, by_folder]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", INPUTS)
def test_every_change_of_an_input_is_read(
    name: str,
    change: Callable[[Path, bytes], None],
    cache: SceneCache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one that keeps size and time of the file."""
    file, (old, new), others, more = INPUTS[name]
    pytest.importorskip({"b.xml": "mujoco", "layer.usda": "pxr"}.get(file, "numpy"))
    robot = tmp_path / "robot"
    for other, text in others.items():
        write(robot / other, text)
    (robot / file).write_bytes(old)
    os.utime(robot / file, (1_000_000_000, 1_000_000_000))
    paths = [robot / "r.urdf", *(robot / one for one in more)]
    first = load_scene(*paths)
    assert len(cache.entries()) == 1
    assert load_scene(*paths) == first
    change(robot / file, new)
    second = load_scene(*paths)
    monkeypatch.setenv("TMKIT_CACHE", "off")
    assert second == load_scene(*paths)
    assert second != first


def test_a_change_while_files_are_read_is_not_kept(
    cache: SceneCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that comes in the place of another during a load has files whose times are old."""
    merged, robot = meshes._merge_vertices, tmp_path / "robot"

    def replace_folder(arrays: meshes.MeshArrays) -> meshes.MeshArrays:
        if not robot.with_name("old").exists():
            by_folder(robot / "cube.obj", OBJ.replace("v 1 0 0", "v 2 0 0").encode())
        return merged(arrays)

    monkeypatch.setattr(meshes, "_merge_vertices", replace_folder)
    first, _ = load_with_notes(tmp_path)
    second, _ = load_with_notes(tmp_path)
    assert [scene.shapes("base")[0].shape.vertices.max() for scene in (first, second)] == [1.0, 2.0]


def test_a_package_that_is_none_any_more_is_not_read(cache: SceneCache, tmp_path: Path) -> None:
    """A mesh outside the scene's folders may be read as part of a ROS package only."""
    package = tmp_path / "far" / "away" / "pack"
    package.mkdir(parents=True)
    write(package / "package.xml", "<package/>")
    write(package / "cube.obj", OBJ)
    scene = tmp_path / "near" / "deep" / "r.urdf"
    scene.parent.mkdir(parents=True)
    write(scene, URDF.format(mesh=str(package / "cube.obj")).replace("visual", "collision"))
    load_scene(scene)
    assert len(cache.entries()) == 1
    (package / "package.xml").unlink()
    with pytest.raises(FileFormatError, match="outside the folders that this scene may read"):
        load_scene(scene)


def test_xacro_is_expanded_each_time(cache: SceneCache, tmp_path: Path) -> None:
    """The cache cannot track the files that xacro reads."""
    pytest.importorskip("xacro")
    robot = tmp_path / "robot"
    body = URDF.format(mesh="cube.obj").replace(
        'name="r"', 'name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"'
    )
    (robot / "r.xacro").write_text(
        body.replace("<link", f'<xacro:include filename="{robot}/more.xacro"/><link', 1)
    )
    scenes = []
    for name in ("one", "two"):
        joint = (
            f'<joint name="more" type="fixed"><parent link="base"/><child link="{name}"/></joint>'
        )
        (robot / "more.xacro").write_text(f'<robot><link name="{name}"/>{joint}</robot>')
        scenes.append(
            load_scene(
                robot / "r.xacro", complete=False, reading=ReadingOptions(allow_xacro=True)
            ).frame_names
        )
    assert ["one" in scenes[0], "two" in scenes[1]] == [True, True]
    assert cache.entries() == []
