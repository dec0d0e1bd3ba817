"""Faults of OBJ and STL files that trimesh does not report: it reads another mesh instead, or none.

OBJ: a corner that names vertex 0, or none that there is; corners counted back from the line, as ``f
-3 -2 -1``; lines of unequal notation (``f 1 2 3`` beside ``f 1/1 2/2 3/3``); indented lines. STL:
files whose size is not that of the triangles they count, and text that ends early.
"""

from __future__ import annotations

import re
from pathlib import Path

from tmkit._support.source_location import Note, SourceLocation
from tmkit.errors import MeshError

_INDENTED = re.compile(rb"(?m)^(?:[ \t]+(?=(?:v|vt|vn|f)[ \t])|(?=(?:v|vt|vn|f)(?:\t| [ \t])))")
_KEYWORD = re.compile(rb"(?m)^[ \t]*(v|vt|vn|f)[ \t]+")
_FACE = re.compile(rb"(?m)^f (.*)$")
# a sign, a word, the vertex 0, or a large number
_UNUSUAL = re.compile(rb"[^\d/\s]|(?<!\S)0+(?=[/\s])|\d{10}")
_NOTATIONS = (
    re.compile(rb"(?<!\S)\d+(?!\S)"),
    re.compile(rb"(?<!\S)\d+//?\d+(?!\S)"),
    re.compile(rb"(?<!\S)\d+/\d+/\d+(?!\S)"),
)

_HEADER = 84
"""Bytes of a binary STL file before its triangles; the last four count them."""

_TRIANGLE = 50
"""Bytes of a triangle in a binary STL file."""

_OUTER_LOOP = re.compile(rb"(?i)\bouter\s+loop\b")
_VERTEX = re.compile(rb"(?i)^\s*vertex\b(.*)$")


def plain_obj(path: Path, data: bytes) -> bytes:
    """Return the text of an OBJ file such that trimesh reads what it holds; usually the same.

    Raises:
        MeshError: if a corner of a face names no vertex.
    """
    if _INDENTED.search(data):
        data = _KEYWORD.sub(rb"\1 ", data)
    corners = b"\n".join(_FACE.findall(data)) + b"\n"
    has_notations = [notation.search(corners) is not None for notation in _NOTATIONS]
    return (
        obj_of_numbers(path, data) if _UNUSUAL.search(corners) or sum(has_notations) > 1 else data
    )


def obj_of_numbers(path: Path, data: bytes) -> bytes:
    """Return the text of an OBJ file whose faces have only numbers of vertices, counted from 1.

    Raises:
        MeshError: if a vertex has no three numbers, or a corner names no vertex; with the line.
    """
    lines = data.split(b"\n")
    total = sum(line.startswith(b"v ") for line in lines)
    seen, number = 0, 0
    while number < len(lines):
        first, line = number, lines[number].rstrip(b"\r")
        while line.endswith(b"\\") and number + 1 < len(lines):
            number += 1
            line = line[:-1] + b" " + lines[number].rstrip(b"\r")
            lines[number] = b""
        number += 1
        words = line.partition(b"#")[0].split()
        if line.startswith(b"v "):
            seen += 1
            _check_vertex(path, first + 1, words[1:])
        elif line.startswith(b"f "):
            found = [_vertex_named(path, first + 1, corner, seen, total) for corner in words[1:]]
            line = b"f " + b" ".join(map(str.encode, map(str, found))) if len(found) > 2 else b""
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


def _vertex_named(path: Path, line: int, corner: bytes, seen: int, total: int) -> int:
    """Return the number of the vertex that a corner names, where ``seen`` of ``total`` vertices precede it."""
    word = corner.partition(b"/")[0].decode("utf-8", errors="replace")
    try:
        number = int(word)
    except ValueError:
        reason = f"expected the number of a vertex, received '{word[:80]}'"
        raise MeshError.at(path, reason, line=line) from None
    if number < 0 and seen + number >= 0:
        return seen + number + 1
    if number < 0:
        raise MeshError.at(
            path, f"a face names vertex {number}, counted back, and {seen} precede it", line=line
        )
    if number == 0:
        raise MeshError.at(path, "a face names vertex 0; vertices are numbered from 1", line=line)
    if number > total:
        raise MeshError.at(path, f"a face names vertex {number}, and there are {total}", line=line)
    return number


def _counted(data: bytes) -> tuple[int, int]:
    """Return the triangles that a binary STL file counts, and its size in bytes by that."""
    count = int.from_bytes(data[_HEADER - 4 : _HEADER], "little") if len(data) >= _HEADER else 0
    return count, _HEADER + _TRIANGLE * count


def whole_stl(path: Path, data: bytes, *, note: Note) -> bytes:
    """Return the bytes of an STL file that belong to its triangles, with a note where more follow.

    Raises:
        MeshError: if the file holds fewer triangles than it counts, or text without its end.
    """
    count, size = _counted(data)
    if len(data) == size:
        return data
    if data.lstrip()[:5].lower() == b"solid" and (_OUTER_LOOP.search(data) or len(data) < _HEADER):
        if b"endsolid" not in data.lower():
            raise MeshError.at(
                path, "the text has no 'endsolid'; is the file cut off?", line=data.count(b"\n") + 1
            )
        return data
    if len(data) < _HEADER:
        raise MeshError.at(
            path, f"a binary STL file has at least {_HEADER} bytes, and this has {len(data)}"
        )
    counted = f"it counts {count} triangle{'' if count == 1 else 's'}, which end at byte {size}"
    if count == 0 or len(data) < size:
        raise MeshError.at(
            path, f"{counted}, and has {len(data)} bytes; is the file cut off, or its count wrong?"
        )
    note(
        SourceLocation(str(path)), f"{counted}; the {len(data) - size} bytes after them are ignored"
    )
    return data[:size]


def check_stl_text(path: Path, data: bytes, triangles: int) -> None:
    """Check that all triangles of an STL file in text were read; binary files pass.

    Raises:
        MeshError: if some were not, with the line of the first vertex without three numbers.
    """
    expected = len(_OUTER_LOOP.findall(data))
    if len(data) == _counted(data)[1] or triangles == expected:
        return
    check_stl_vertices(path, data)
    raise MeshError.at(
        path,
        f"{triangles} of its {expected} triangles can be read; is there an 'endsolid' for each?",
    )


def check_stl_vertices(path: Path, data: bytes) -> None:
    """Check the vertices of an STL file in text; binary files pass.

    Raises:
        MeshError: if a vertex has no three numbers, with its line.
    """
    is_text = len(data) != _counted(data)[1] and _OUTER_LOOP.search(data) is not None
    for number, line in enumerate(data.split(b"\n") if is_text else (), start=1):
        vertex = _VERTEX.match(line)
        if vertex is not None:
            _check_vertex(path, number, vertex[1].split())
