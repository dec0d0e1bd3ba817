"""Loaded scenes that are kept on the disk equal what reading gives, whatever happens to files and entries."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.processes import Process

from tmkit._support.source_location import ImportNote
from tmkit.formats import load_scene, scene_cache
from tmkit.formats.mesh import meshes
from tmkit.formats.scene_cache import SceneCache
from tmkit.graph import SceneGraph

OBJ = "mtllib cube.mtl\nusemtl red\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
MTL = "newmtl red\nKd {} 0 0\n"
URDF = """<robot name="r"><link name="base"><visual><geometry><mesh filename="{mesh}"/></geometry></visual></link>
<link name="hand"/><joint name="j" type="revolute"><parent link="base"/><child link="hand"/><axis xyz="0 0 2"/></joint>
</robot>"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SceneCache:
    """A cache of its own, and files that changed long ago."""
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path / "cache"))
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


def loaded(path: Path) -> tuple[SceneGraph, list[ImportNote]]:
    """Return a scene and the notes of its load."""
    notes: list[ImportNote] = []
    return load_scene(path / "robot" / "r.urdf", on_note=notes.append), notes


def test_the_second_load_reads_no_file(
    cache: SceneCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Scene and notes are the same; the notes are logged again."""
    first, notes = loaded(tmp_path)
    assert len(cache.entries()) == 1
    assert notes
    monkeypatch.setattr(meshes, "read_bytes", lambda *_, **__: pytest.fail("a mesh was read"))
    caplog.clear()
    second, again = loaded(tmp_path)
    assert (second, second.digest, again) == (first, first.digest, notes)
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert said == [str(note) for note in notes]


def test_built_in_scenes_come_back_equal(cache: SceneCache) -> None:
    """With meshes of installed packages, classes, joints and pairs that may touch."""
    for names in (["panda_table", "blocks3"], ["baxter_table"], ["ur5_table"]):
        first = load_scene(*names)
        second = load_scene(*names)
        assert (second, second.digest) == (first, first.digest)
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
    """Whatever file it is, also when it keeps its size."""
    loaded(tmp_path)
    write(tmp_path / "robot" / name, text, seconds=1_000_000_001)
    changed, _ = loaded(tmp_path)
    os.environ["TMKIT_CACHE"] = "off"
    assert changed == loaded(tmp_path)[0]


def test_a_file_that_appears_nearer_is_read(cache: SceneCache, tmp_path: Path) -> None:
    """A mesh found in a folder above is not taken any more once there is one beside the description."""
    write(tmp_path / "robot" / "r.urdf", URDF.format(mesh="parts/cube.obj"))
    for folder in (tmp_path / "parts", tmp_path / "robot" / "parts"):
        folder.mkdir()
    write(tmp_path / "parts" / "cube.obj", OBJ)
    far, _ = loaded(tmp_path)
    write(tmp_path / "robot" / "parts" / "cube.obj", OBJ.replace("v 1 0 0", "v 3 0 0"))
    near, _ = loaded(tmp_path)
    assert [scene.shapes("base")[0].shape.vertices.max() for scene in (far, near)] == [1.0, 3.0]
    assert len(cache.entries()) == 1


def test_files_that_changed_just_now_are_not_trusted(cache: SceneCache, tmp_path: Path) -> None:
    """A second change within a tick of the file system's clock would not show."""
    (tmp_path / "robot" / "cube.obj").write_text(OBJ)
    loaded(tmp_path)
    assert cache.entries() == []


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_entry_is_replaced(cache: SceneCache, tmp_path: Path, data: st.DataObject) -> None:
    """Cut anywhere or with any byte changed, it counts as missing, and the next load is kept again."""
    first, notes = loaded(tmp_path)
    [(_, size, path)] = cache.entries()
    whole = path.read_bytes()
    at = data.draw(st.integers(0, size - 1))
    byte = data.draw(st.integers(1, 255))
    path.write_bytes(data.draw(st.sampled_from([whole[:at], whole[:at] + bytes([whole[at] ^ byte]) + whole[at + 1 :]])))
    assert loaded(tmp_path) == (first, notes)
    assert path.read_bytes() == whole


def test_an_entry_runs_no_code(cache: SceneCache, tmp_path: Path) -> None:
    """Not even one whose digest is right."""

    class Harm:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {tmp_path / 'harm'}",)

    first, _ = loaded(tmp_path)
    [(_, _, path)] = cache.entries()
    for rest in (pickle.dumps(Harm()), pickle.dumps(({}, [])) + pickle.dumps(Harm())):
        path.write_bytes(hashlib.blake2b(rest, digest_size=32).digest() + rest)
        assert loaded(tmp_path)[0] == first
    assert not (tmp_path / "harm").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_entries_of_others_and_links_are_not_taken(cache: SceneCache, tmp_path: Path) -> None:
    """A folder that others may write to holds no scenes of theirs for us."""
    loaded(tmp_path)
    [(_, _, path)] = cache.entries()
    key = path.stem
    os.chown(path, 12345, 12345)
    assert cache.get(key) is None
    path.rename(tmp_path / "elsewhere")
    os.chown(tmp_path / "elsewhere", 0, 0)
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.get(key) is None


def test_a_full_folder_loses_what_was_not_used_longest(cache: SceneCache) -> None:
    """What is new stays."""
    small = SceneCache(cache.folder, limit=1200)
    scene = SceneGraph()
    for number in range(6):
        small.put(f"{number:032x}", scene, [], [])
        for at, (_, _, path) in enumerate(small.entries()):
            os.utime(path, (1000 + at, 1000 + at))
    kept = [int(path.stem, 16) for _, _, path in small.entries()]
    assert sum(size for _, size, _ in small.entries()) <= 1200
    assert kept == list(range(6 - len(kept), 6))
    assert 1 <= len(kept) < 6


def test_two_processes_share_a_folder(cache: SceneCache, tmp_path: Path) -> None:
    """They begin together; both load the same scene, and one entry stays."""
    program = f"import tmkit as tk; print(tk.load_scene({str(tmp_path / 'robot' / 'r.urdf')!r}).digest)"
    running = [
        Process([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(2)
    ]
    digests = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert digests == {f"{loaded(tmp_path)[0].digest}\n".encode()}
    assert [path.suffix for _, _, path in cache.entries()] == [".scene"]


def test_it_can_be_off_cleared_or_impossible(
    cache: SceneCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then scenes are read; a folder that cannot be made is no error."""
    first, _ = loaded(tmp_path)
    assert len(cache.entries()) == 1
    cache.clear()
    assert cache.entries() == []
    monkeypatch.setenv("TMKIT_CACHE", "off")
    assert loaded(tmp_path)[0] == first
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TMKIT_CACHE", str(tmp_path / "file" / "cache"))
    assert loaded(tmp_path)[0] == first
    shutil.rmtree(cache.folder)
    assert cache.entries() == []
    monkeypatch.delenv("TMKIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = SceneCache.of_user()
    assert found is not None
    assert found.folder == tmp_path / "tmkit"


def test_other_code_is_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The readers are part of the name."""
    before = scene_cache.key_of("a")
    assert before == scene_cache.key_of("a")
    assert before != scene_cache.key_of("b")
    monkeypatch.setattr(scene_cache, "_code", lambda: [("reader.py", (1, 2, 3))])
    assert before != scene_cache.key_of("a")
    monkeypatch.undo()
    monkeypatch.setattr(scene_cache, "sites", lambda: [Path("site-packages")])  # another library, or another version
    assert before != scene_cache.key_of("a")


def test_a_full_disk_leaves_nothing(cache: SceneCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scene is loaded all the same."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tmkit.formats.scene_cache.os.replace", full)
    first, _ = loaded(tmp_path)
    assert list(cache.folder.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setenv("TMKIT_CACHE", "off")
    assert loaded(tmp_path)[0] == first
