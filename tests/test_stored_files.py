"""Files of all versions of the formats are read with the values of their creation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.stored_files import READERS, STORED

from tmkit.formats.mesh import meshes
from tmkit.formats.mesh.meshes import MeshArrays

FOLDERS = sorted(path for path in STORED.iterdir() if path.is_dir())
NEWEST = max(FOLDERS, key=lambda path: int(path.name))
STORED_FILES = [
    (folder, name)
    for folder in FOLDERS
    for name in sorted(json.loads((folder / "expected.json").read_text()))
]
NEEDED = {
    "bag_mcap": "rosbags",
    "bag_sqlite3": "rosbags",
    "dataset": "pyarrow",
    "results": "pyarrow",
}
"""Libraries without which a file cannot be read."""


def read(folder: Path, name: str, scratch: Path) -> Any:
    """Return the values of a file, read from a copy of its folder."""
    return json.loads(
        json.dumps(READERS[name](Path(shutil.copytree(folder, scratch / "copy")) / name))
    )


def assert_holds(received: Any, expected: Any, where: str) -> None:
    """Compare values, of which there may be more than there were, numbers to the 12th decimal."""
    if isinstance(expected, dict):
        assert isinstance(received, dict), where
        for key, value in expected.items():
            assert key in received, f"{where}.{key}"
            assert_holds(received[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert isinstance(received, list), where
        assert len(received) == len(expected), where
        for number, (actual, expected_value) in enumerate(zip(received, expected, strict=True)):
            assert_holds(actual, expected_value, f"{where}[{number}]")
    elif isinstance(expected, float):
        assert received == pytest.approx(expected, abs=1e-12), where
    else:
        assert received == expected, where


@pytest.mark.parametrize(
    ("folder", "name"), STORED_FILES, ids=[f"{f.name}/{name}" for f, name in STORED_FILES]
)
def test_a_stored_file_has_its_values(folder: Path, name: str, tmp_path: Path) -> None:
    """Whatever version wrote it."""
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    if name.endswith(".usda"):
        pytest.importorskip("pxr")
    assert_holds(
        read(folder, name, tmp_path), json.loads((folder / "expected.json").read_text())[name], name
    )


def test_every_format_is_stored() -> None:
    """The newest folder has a file for each reader, and each folder has a row in the table."""
    assert set(json.loads((NEWEST / "expected.json").read_text())) == set(READERS)
    table = (STORED / "README.md").read_text()
    assert [folder.name for folder in FOLDERS if f"| `{folder.name}` |" not in table] == []


@pytest.mark.parametrize(
    "name", ["scene.json", "scene.rsg", "scene.glb", "plan.json", "store", "world.log"]
)
def test_files_do_not_depend_on_the_reader_of_meshes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version with other arrays of the same mesh files reads files of this version."""
    merged, count = meshes._merge_vertices, []

    def reversed_vertices(arrays: MeshArrays) -> MeshArrays:
        version = merged(arrays)
        count.append(version)
        faces = (len(version.vertices) - 1 - version.faces).astype("int32")
        return MeshArrays(version.vertices[::-1].copy(), faces, version.colors)

    monkeypatch.setenv("TMKIT_CACHE", "off")
    monkeypatch.setattr(meshes, "_merge_vertices", reversed_vertices)
    assert_holds(
        read(NEWEST, name, tmp_path), json.loads((NEWEST / "expected.json").read_text())[name], name
    )
    if name not in ("store", "world.log"):  # which hold the arrays
        assert count
