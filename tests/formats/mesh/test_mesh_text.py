"""OBJ and STL files with faults that trimesh ignores are rejected or corrected."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import numpy as np
import pytest

from tmkit._support.source_location import SourceLocation
from tmkit.errors import MeshError
from tmkit.formats.mesh.meshes import MeshArrays, MeshLoader, MeshSpec, read_mesh

_VERTICES = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
_FACES = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]


def _read(tmp_path: Path, name: str, content: str | bytes) -> tuple[MeshArrays, list[str]]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    notes: list[str] = []

    def note(place: SourceLocation, text: str) -> None:
        notes.append(text)

    return read_mesh(path, note=note), notes


@pytest.mark.parametrize("corner", ["{}", "{}/1", "{}//1", "{}/1/1"])
@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ("0", "a face names vertex 0; vertices are numbered from 1"),
        ("00", "a face names vertex 0; vertices are numbered from 1"),
        ("-0", "a face names vertex 0; vertices are numbered from 1"),
        ("5", "a face names vertex 5, and there are 4"),
        ("-5", "a face names vertex -5, counted back, and 4 precede it"),
        ("4294967297", "a face names vertex 4294967297, and there are 4"),
        ("18446744073709551617", "a face names vertex 18446744073709551617, and there are 4"),
        ("1.5", "expected the number of a vertex, received '1.5'"),
        ("x", "expected the number of a vertex, received 'x'"),
    ],
)
@pytest.mark.parametrize("corner_index", range(3))
def test_a_corner_that_names_no_vertex_is_rejected(
    corner: str, index: str, reason: str, corner_index: int, tmp_path: Path
) -> None:
    """In any place of a face and in any notation, with file and line."""
    face = " ".join(corner.format(index if k == corner_index else k + 1) for k in range(3))
    text = (
        f"{_VERTICES}vt 0 0\nvn 0 0 1\nf {corner.format(1)} {corner.format(2)}"
        f" {corner.format(3)}\nf {face}\n"
    )
    with pytest.raises(MeshError, match=rf"m\.obj:8: {reason}"):
        _read(tmp_path, "m.obj", text)


def test_a_vertex_without_three_numbers_is_rejected_with_its_line(tmp_path: Path) -> None:
    """A word, or too few."""
    for vertex in ("v 1 2 x", "v 1 2"):
        with pytest.raises(
            MeshError,
            match=rf"m\.obj:3: expected three numbers of a vertex, received '{vertex[2:]}'",
        ):
            _read(tmp_path, "m.obj", f"v 0 0 0\nv 1 0 0\n{vertex}\nf 1 2 3\n")


def _faces(notation: str, *, back: bool) -> str:
    number = (lambda k: k - 4) if back else (lambda k: k + 1)
    return "".join(
        "f " + " ".join(notation.format(number(k)) for k in face) + "\n" for face in _FACES
    )


@pytest.mark.parametrize("notation", ["{}", "{0}/1", "{}//1", "{0}/1/1"])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n", " # a comment\n", "\t \n"])
def test_notations_are_the_same_mesh(notation: str, back: bool, end: str, tmp_path: Path) -> None:
    """Counted from the first vertex, or back from the line, with comments and blanks."""
    text = f"{_VERTICES}vt 0 0\nvn 0 0 1\n{_faces(notation, back=back).replace(chr(10), end)}"
    mesh, _ = _read(tmp_path, "m.obj", text)
    triangles = {tuple(map(tuple, mesh.vertices[face].tolist())) for face in mesh.faces}
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    assert triangles == {tuple(map(tuple, corners[face].tolist())) for face in np.array(_FACES)}


def test_corners_counted_back_mean_the_vertices_before_the_line(tmp_path: Path) -> None:
    """Not those at the end of the file."""
    second = "v 5 0 0\nv 6 0 0\nv 5 1 0\n"
    mesh, _ = _read(
        tmp_path, "m.obj", f"v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\n{second}f -3 -2 -1\n"
    )
    assert sorted(mesh.vertices[:, 0].tolist()) == [0, 0, 1, 5, 5, 6]


@pytest.mark.parametrize(
    "text",
    [
        f"{_VERTICES}f 1/1 2/1 3/1\nf 1 2 3 4 1 2\nvt 0 0\n",
        f"  {_VERTICES}\tf 1 2 3\n f 1 2 4\n",
        _VERTICES.replace("v ", "v\t") + "f\t1 2 3\nf 1 2 4\n",
        f"{_VERTICES}f 1 2 \\\n3\nf 1 2 4\n",
    ],
)
def test_unequal_notations_and_indented_lines_lose_no_face(text: str, tmp_path: Path) -> None:
    """All four vertices are used."""
    mesh, _ = _read(tmp_path, "m.obj", text)
    assert len(mesh.vertices) == 4


# --- STL

_TRIANGLES = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, k]] for k in range(3)], dtype="<f4")


def _binary(count: int, *, header: bytes = b"", trailing: bytes = b"", triangles: int = 3) -> bytes:
    body = b"".join(
        struct.pack("<3f", 0, 0, 1) + triangle.tobytes() + b"\0\0"
        for triangle in _TRIANGLES[:triangles]
    )
    return header.ljust(80, b"\0") + struct.pack("<I", count) + body + trailing


def _text(triangles: int = 3) -> str:
    facets = [
        "facet normal 0 0 1\nouter loop\n"
        + "".join(f"vertex {x} {y} {z}\n" for x, y, z in triangle.tolist())
        + "endloop\nendfacet\n"
        for triangle in _TRIANGLES[:triangles]
    ]
    return f"solid s\n{''.join(facets)}endsolid s\n"


@pytest.mark.parametrize("header", [b"", b"solid of a program", b"  SOLID facet outer"])
@pytest.mark.parametrize("trailing", [b"\0", b"\n", b"x" * 49, b"y" * 50, b"solid"])
def test_bytes_after_the_triangles_are_ignored_with_a_note(
    header: bytes, trailing: bytes, tmp_path: Path
) -> None:
    """The triangle count determines the size, as in other tools."""
    mesh, notes = _read(tmp_path, "m.stl", _binary(3, header=header, trailing=trailing))
    assert len(mesh.faces) == 3
    assert notes == [
        f"it counts 3 triangles, which end at byte 234; the {len(trailing)} bytes after them are"
        " ignored"
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            _binary(4),
            "it counts 4 triangles, which end at byte 284, and has 234 bytes; is the file cut off",
        ),
        (_binary(0), "it counts 0 triangles, which end at byte 84, and has 234 bytes"),
        (_binary(3)[:-1], "it counts 3 triangles, which end at byte 234, and has 233 bytes"),
        (_binary(1)[:100], "it counts 1 triangle, which end at byte 134, and has 100 bytes"),
        (
            _binary(2**32 - 1),
            "it counts 4294967295 triangles, which end at byte 214748364834, and has 234 bytes",
        ),
        (b"", "at least 84 bytes, and this has 0"),
        (b"\0" * 83, "at least 84 bytes, and this has 83"),
        (_text()[:-11].encode(), "23: the text has no 'endsolid'; is the file cut off"),
        (b"solid s\n", "the text has no 'endsolid'"),
        (
            _text().replace("vertex 0.0 1.0 1.0", "vertex 0.0 x 1.0").encode(),
            "13: expected three numbers of a vertex",
        ),
        (
            (_text() + _text()[:-11]).encode(),
            "3 of its 6 triangles can be read; is there an 'endsolid' for each",
        ),
        (b"solid s\nendsolid s\n".ljust(100), "it counts 538976288 triangles|the mesh is empty"),
    ],
)
def test_an_stl_file_with_another_size_is_rejected(
    data: bytes, reason: str, tmp_path: Path
) -> None:
    """With the count and the size, or the line."""
    with pytest.raises(MeshError, match=rf"m\.stl:? ?.*{reason}"):
        _read(tmp_path, "m.stl", data)


def test_text_and_binary_are_the_same(tmp_path: Path) -> None:
    """Also with a header that begins as text does."""
    for content in (
        _text(),
        _text().upper(),
        _text() + "\n\n",
        _binary(3),
        _binary(3, header=b"solid facet outer loop"),
    ):
        mesh, notes = _read(tmp_path, "m.stl", content)
        assert (len(mesh.faces), notes) == (3, [])


def test_the_note_comes_from_loading(tmp_path: Path) -> None:
    """Through the loader of a scene."""
    (tmp_path / "m.stl").write_bytes(_binary(3, trailing=b"more"))
    notes = list[str]()
    loader = MeshLoader(note=lambda place, text: notes.append(f"{place}: {text}"))
    loader.load(MeshSpec(tmp_path / "m.stl"))
    assert "the 4 bytes after them are ignored" in notes[0]
    assert list(itertools.islice(notes, 1, None)) == []
