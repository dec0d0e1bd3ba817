"""Faults and special cases of OBJ and STL files that trimesh reads wrongly without an error.

OBJ files:

* a corner with the vertex 0 or an undefined vertex;
* negative vertices, as in ``f -3 -2 -1``;
* mixed notations, as ``f 1 2 3`` and ``f 1/1 2/2 3/3``;
* indented lines.

STL files: binary files whose size differs from their triangle count, and incomplete text.
"""

from __future__ import annotations

import re
from pathlib import Path

from tmkit._support.source_location import Note, SourceLocation
from tmkit.errors import MeshError

_INDENTED = re.compile(rb"(?m)^(?:[ \t]+(?=(?:v|vt|vn|f)[ \t])|(?=(?:v|vt|vn|f)(?:\t| [ \t])))")
_KEYWORD = re.compile(rb"(?m)^[ \t]*(v|vt|vn|f)[ \t]+")
_FACE = re.compile(rb"(?m)^f (.*)$")
_UNUSUAL = re.compile(rb"[^\d/\s]|(?<!\S)0+(?=[/\s])|\d{10}")
"""Form of an unusual corner: a sign, a word, the vertex 0, or a large number."""

_NOTATIONS = (
    re.compile(rb"(?<!\S)\d+(?!\S)"),
    re.compile(rb"(?<!\S)\d+//?\d+(?!\S)"),
    re.compile(rb"(?<!\S)\d+/\d+/\d+(?!\S)"),
)
"""Forms of a corner in the three notations."""

_HEADER_SIZE = 84
"""Size of the header of a binary STL file, whose last four bytes are the triangle count [bytes]."""

_TRIANGLE_SIZE = 50
"""Size of a triangle in a binary STL file [bytes]."""

_OUTER_LOOP = re.compile(rb"(?i)\bouter\s+loop\b")
_VERTEX = re.compile(rb"(?i)^\s*vertex\b(.*)$")


def normalize_obj(path: Path, data: bytes) -> bytes:
    """Return the text of an OBJ file in the notation that trimesh reads; usually unchanged.

    Raises:
        MeshError: if a corner of a face refers to an undefined vertex.
    """
    if _INDENTED.search(data):
        data = _KEYWORD.sub(rb"\1 ", data)
    corners = b"\n".join(_FACE.findall(data)) + b"\n"
    has_notations = [notation.search(corners) is not None for notation in _NOTATIONS]
    return (
        normalize_obj_faces(path, data)
        if _UNUSUAL.search(corners) or sum(has_notations) > 1
        else data
    )


def normalize_obj_faces(path: Path, data: bytes) -> bytes:
    """Return the text of an OBJ file with only vertex numbers in its faces, counted from 1.

    Raises:
        MeshError: if a vertex does not have three numbers, or a corner refers to an undefined
            vertex. The error has the line.
    """
    lines = data.split(b"\n")
    total = sum(line.startswith(b"v ") for line in lines)
    count, number = 0, 0
    while number < len(lines):
        first, line = number, lines[number].rstrip(b"\r")
        while line.endswith(b"\\") and number + 1 < len(lines):
            number += 1
            line = line[:-1] + b" " + lines[number].rstrip(b"\r")
            lines[number] = b""
        number += 1
        words = line.partition(b"#")[0].split()
        if line.startswith(b"v "):
            count += 1
            _check_vertex(path, first + 1, words[1:])
        elif line.startswith(b"f "):
            vertices = [
                _vertex_number(path, first + 1, corner, count, total) for corner in words[1:]
            ]
            face = b"f " + b" ".join(map(str.encode, map(str, vertices)))
            line = face if len(vertices) > 2 else b""
        lines[first] = line
    return b"\n".join(lines)


def _check_vertex(path: Path, line: int, words: list[bytes]) -> None:
    try:
        numbers = [float(word) for word in words[:3]]
    except ValueError:
        numbers = []
    if len(numbers) < 3:
        received = b" ".join(words).decode("utf-8", errors="replace")[:80]
        raise MeshError.at(
            path, f"expected three numbers of a vertex, received '{received}'", line=line
        )


def _vertex_number(path: Path, line: int, corner: bytes, count: int, total: int) -> int:
    """Return the number of a corner's vertex, counted from 1.

    Args:
        path: path of the file.
        line: line number, for errors.
        corner: text of the corner.
        count: number of vertices before the line, from which negative numbers count back.
        total: number of vertices in the file.
    """
    word = corner.partition(b"/")[0].decode("utf-8", errors="replace")
    try:
        number = int(word)
    except ValueError:
        reason = f"expected the number of a vertex, received '{word[:80]}'"
        raise MeshError.at(path, reason, line=line) from None
    if number < 0 and count + number >= 0:
        return count + number + 1
    if number < 0:
        raise MeshError.at(
            path, f"a face names vertex {number}, counted back, and {count} precede it", line=line
        )
    if number == 0:
        raise MeshError.at(path, "a face names vertex 0; vertices are numbered from 1", line=line)
    if number > total:
        raise MeshError.at(path, f"a face names vertex {number}, and there are {total}", line=line)
    return number


def _triangle_count(data: bytes) -> tuple[int, int]:
    """Return the triangle count of a binary STL file, and the size that it implies [bytes]."""
    has_header = len(data) >= _HEADER_SIZE
    count = int.from_bytes(data[_HEADER_SIZE - 4 : _HEADER_SIZE], "little") if has_header else 0
    return count, _HEADER_SIZE + _TRIANGLE_SIZE * count


def trim_stl(path: Path, data: bytes, *, note: Note) -> bytes:
    """Return an STL file without bytes after its triangles, which cause a note.

    Raises:
        MeshError: if the file contains fewer triangles than its count, or incomplete text.
    """
    count, size = _triangle_count(data)
    if len(data) == size:
        return data
    is_text = data.lstrip()[:5].lower() == b"solid"
    if is_text and (_OUTER_LOOP.search(data) or len(data) < _HEADER_SIZE):
        if b"endsolid" not in data.lower():
            raise MeshError.at(
                path, "the text has no 'endsolid'; is the file cut off?", line=data.count(b"\n") + 1
            )
        return data
    if len(data) < _HEADER_SIZE:
        raise MeshError.at(
            path, f"a binary STL file has at least {_HEADER_SIZE} bytes, and this has {len(data)}"
        )
    size_text = f"it counts {count} triangle{'' if count == 1 else 's'}, which end at byte {size}"
    if count == 0 or len(data) < size:
        raise MeshError.at(
            path,
            f"{size_text}, and has {len(data)} bytes; is the file cut off, or its count wrong?",
        )
    note(
        SourceLocation(str(path)),
        f"{size_text}; the {len(data) - size} bytes after them are ignored",
    )
    return data[:size]


def check_stl_text(path: Path, data: bytes, triangles: int) -> None:
    """Check that all triangles of a text STL file were read; binary files pass.

    Args:
        path: path of the file.
        data: bytes of the file.
        triangles: number of triangles that were read.

    Raises:
        MeshError: if triangles are missing. The error has the line of the first vertex without
            three numbers.
    """
    expected = len(_OUTER_LOOP.findall(data))
    if len(data) == _triangle_count(data)[1] or triangles == expected:
        return
    check_stl_vertices(path, data)
    raise MeshError.at(
        path,
        f"{triangles} of its {expected} triangles can be read; is there an 'endsolid' for each?",
    )


def check_stl_vertices(path: Path, data: bytes) -> None:
    """Check the vertices of a text STL file; binary files pass.

    Raises:
        MeshError: if a vertex does not have three numbers. The error has the line.
    """
    is_text = len(data) != _triangle_count(data)[1] and _OUTER_LOOP.search(data) is not None
    for number, line in enumerate(data.split(b"\n") if is_text else (), start=1):
        vertex = _VERTEX.match(line)
        if vertex is not None:
            _check_vertex(path, number, vertex[1].split())
