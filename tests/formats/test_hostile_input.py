"""Hostile input: no crash, hang, exhausted memory, or access to other folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from formats.conftest import Loader

from tmkit._support.limits import ReadingLimits, read_bytes
from tmkit.errors import FileFormatError, MeshError
from tmkit.formats import ReadingOptions, load_scene, scene_from_dict, scene_to_dict
from tmkit.formats.json.scene import scene_dump

DEEP = 100_000
TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def mesh_frame(uri: str) -> str:
    """Return a frame whose shape is a mesh."""
    return f'frame f {{ geometry {{ mesh "{uri}"; }} }}'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create folders three deep, and meshes outside the readable folders of ``a/b/urdf``."""
    folder = tmp_path / "a" / "b" / "urdf"
    folder.mkdir(parents=True)
    for place in ("a/secret.obj", "a/b/meshes/ours.obj", "a/b/urdf/beside.obj"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(TRIANGLE)
    return folder


@pytest.mark.parametrize(
    "text",
    [
        "def x " + "(" * DEEP + "1" + ")" * DEEP + ";",
        "def x " + "- " * DEEP + "1;",
        "def x " + "2 ^ " * DEEP + "1;",
        "frame a { " * DEEP + "}" * DEEP,
        "frame a { translation " + "[" * DEEP,
        "/*" * DEEP,
    ],
    ids=["parentheses", "minus", "powers", "frames", "brackets", "comments"],
)
def test_deep_robray_is_rejected_or_read(load: Loader, text: str) -> None:
    """Nesting of depth 100,000 ends in a scene or in an error that names the file."""
    try:
        load(text)
    except FileFormatError as error:
        assert "main.robray:1" in str(error)  # noqa: PT017 - a value is as good


@pytest.mark.parametrize("suffix", [".urdf", ".srdf", ".json"])
def test_deep_xml_and_json_are_rejected(load: Loader, suffix: str) -> None:
    """XML and JSON of depth 100,000 are rejected."""
    text = "[" * DEEP if suffix == ".json" else "<robot name='r'>" + "<link>" * DEEP
    with pytest.raises(FileFormatError, match=rf"main{suffix}"):
        load(text, suffix=suffix)


@pytest.mark.parametrize("suffix", [".urdf", ".srdf"])
@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;&b;">',
        '<!ENTITY c SYSTEM "file:///etc/passwd">',
        '<!ENTITY % d SYSTEM "http://127.0.0.1:9/x.dtd"> %d; <!ENTITY c "">',
    ],
    ids=["expansion", "external", "network"],
)
def test_entities_are_rejected(load: Loader, suffix: str, declaration: str) -> None:
    """Entities neither grow nor read files."""
    with pytest.raises(FileFormatError, match=rf"main{suffix}"):
        load(f"<!DOCTYPE robot [{declaration}]><robot name='&c;'/>", suffix=suffix)


@pytest.mark.parametrize("number", ["1e999", "10^10^10", "1 / 0", "9" * 5000, "(-8)^(1/3)"])
def test_numbers_out_of_range_are_rejected(load: Loader, number: str) -> None:
    """Numbers that are not finite are rejected with their location."""
    with pytest.raises(FileFormatError, match=r"main.robray:1:\d+: "):
        load(f"def x {number};")


def test_a_long_integer_in_json_is_rejected(load: Loader) -> None:
    """A number of more digits than Python reads is no JSON of ours."""
    with pytest.raises(FileFormatError, match=r"main.json: is not JSON"):
        load(f'{{"version": {"9" * 5000}}}', suffix=".json")


@pytest.mark.parametrize(
    "uri",
    ["../meshes/ours.obj", "beside.obj", "{project}/beside.obj", "file://{project}/beside.obj"],
)
def test_ordinary_paths_are_read(project: Path, uri: str) -> None:
    """Meshes in the file's folder and in its siblings are read, by relative and absolute paths."""
    path = project / "x.robray"
    path.write_text(mesh_frame(uri.format(project=project)))
    assert "f" in load_scene(path)


@pytest.mark.parametrize(
    "uri",
    [
        "../../secret.obj",
        "{project}/../../secret.obj",
        "file://{project}/../../secret.obj",
        "package://a/secret.obj",
        "link.obj",
    ],
)
def test_paths_that_leave_the_folders_are_rejected_unless_allowed(project: Path, uri: str) -> None:
    """A mesh elsewhere is rejected in every spelling, until the user allows its folder."""
    path = project / "x.robray"
    secret = project.parents[1] / "secret.obj"
    (project / "link.obj").symlink_to(secret)
    path.write_text(mesh_frame(uri.format(project=project)))
    if not uri.startswith("package:"):  # a package is one by its name, when the file is part of it
        with pytest.raises(
            MeshError, match=r"x.robray:1:\d+: .* outside the folders that .* may read .*--allow"
        ):
            load_scene(path)
    assert "f" in load_scene(path, reading=ReadingOptions(allow_folders=[secret.parent]))


def test_a_package_named_after_a_system_folder_is_rejected(project: Path) -> None:
    """A package URI does not reach folders of the system by looking upwards."""
    path = project / "x.robray"
    path.write_text('include "package://etc/hostname"')
    with pytest.raises(FileFormatError, match=r"x.robray:1"):
        load_scene(path)


def test_circles_of_includes_are_rejected(project: Path) -> None:
    """A file that includes itself directly or indirectly is rejected."""
    path, other = project / "x.robray", project / "y.robray"
    (project / "link.robray").symlink_to(path)
    other.write_text('include "link.robray"')
    for uri in (
        "x.robray",
        "../urdf/x.robray",
        "y.robray",
        "link.robray",
        "package://urdf/x.robray",
    ):
        path.write_text(f'include "{uri}"')
        with pytest.raises(FileFormatError, match="the includes form a cycle"):
            load_scene(path)


def test_what_is_no_file_is_rejected(tmp_path: Path) -> None:
    """Pipes, folders, devices and links to themselves are rejected without waiting."""
    os.mkfifo(tmp_path / "pipe.robray")
    (tmp_path / "zero.robray").symlink_to("/dev/zero")
    (tmp_path / "folder.robray").mkdir()
    for name, reason in [("pipe", "pipe"), ("zero", "device"), ("folder", "directory")]:
        with pytest.raises(FileFormatError, match=rf"{name}.robray: cannot be read: .*{reason}"):
            load_scene(tmp_path / f"{name}.robray")


def test_files_beyond_the_limit_are_rejected(tmp_path: Path) -> None:
    """A sparse file of a terabyte is rejected before it is read; the limit can be raised."""
    path = tmp_path / "x.robray"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(
        FileFormatError, match=r"x.robray: is too large: .* MB, expected at most 4 MB"
    ):
        load_scene(path)
    path.write_text("frame a {}")
    with pytest.raises(FileFormatError, match="is too large"):
        load_scene(path, reading=ReadingOptions(limits=ReadingLimits(robray_bytes=5)))
    assert read_bytes(path, limit=10) == b"frame a {}"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("m.stl", b"\0" * 80 + b"\xff\xff\xff\xff" + b"\0" * 50),
        ("m.obj", b"v 0 0 0\nf 1 2 3\n"),
        ("m.obj", b"v nan 0 0\nv 1 inf 0\nv 0 0 1\nf 1 2 3\n"),
        ("m.obj", b"v 0 0\nv 1 0\nv 0 1\nf 1 3 2\n"),
        ("m.obj", b""),
        ("m.stl", b"solid\nendsolid\n"),
        ("m.dae", b"<!DOCTYPE a [<!ENTITY c SYSTEM 'file:///etc/passwd'>]><a>&c;</a>"),
        (
            "m.ply",
            b"ply\nformat ascii 1.0\nelement vertex 4000000000\nproperty float x\nend_header\n",
        ),
    ],
)
def test_broken_meshes_are_rejected(tmp_path: Path, name: str, data: bytes) -> None:
    """A mesh with a wrong size, undefined vertex or invalid number is rejected with the line."""
    (tmp_path / name).write_bytes(data)
    (tmp_path / "x.robray").write_text(mesh_frame(name))
    with pytest.raises(MeshError, match=rf"x.robray:1:\d+: .*{name}"):
        load_scene(tmp_path / "x.robray")


def test_a_chain_of_ten_thousand_frames(load: Loader) -> None:
    """A deep chain is loaded, dumped and written without recursion."""
    text = "\n".join(
        f"frame f{i} {{ parent {f'f{i - 1}' if i else 'world'}; }}" for i in range(10_000)
    )
    scene = load(text)
    assert len(scene_dump(scene)["frames"]) == 10_001
    assert scene_from_dict(scene_to_dict(scene)) == scene
