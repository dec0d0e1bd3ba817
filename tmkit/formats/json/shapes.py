"""Shapes in JSON scenes, and the files of points and heights that they may name.

A shape stands under the digest of its content, or of its entry if the entry names a file by its
SHA-256. It is checked when it is read: a file that changed in between is noticed. A key that is no
digest (32 hexadecimal digits) is a name chosen by the author of a handwritten file, and is not
checked.

* A mesh is written by the ``package://`` URI of its file if that still has the bytes it was read
  from, else with its arrays. The SHA-256 of the file is beside the URI, and of the files that it
  names, by name: they are compared on reading, and not the arrays, which another version may read
  differently. By hand, it may be a ``file`` beside the scene with a ``scale`` (1 by default).
* A point cloud has a ``radius`` and ``points``, a height field a ``size``, a ``floor`` (null or
  omitted: the default of :func:`~tmkit.graph.HeightField`) and ``heights``, with the number of
  ``columns``.
* Arrays are base64 of little-endian 64-bit floats and 32-bit integers. Points and heights may also
  be lists of rows, or a ``file`` beside the scene. Points come from ``.npy`` (n, 3), ``.ply`` (its
  vertices) or ``.xyz`` (a line for each point, its first three numbers; ``#`` begins a comment).
  Heights come from ``.npy`` (rows, columns), the first row at the least y as in
  :func:`~tmkit.graph.HeightField`. Or they come from ``.png`` in grey of 8 or 16 bits, a map with y
  upwards, whose *last* line is the one of least y. Black and white are the ends of the ``range``
  that the scene gives.

Sizes are checked before anything is unpacked: a small file cannot request a large memory.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
import re
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tmkit._support.extras import importing
from tmkit._support.limits import ReadingLimits, read_bytes, sha256_of
from tmkit._support.signals import interrupts_kept
from tmkit._support.source_location import SourceLocation, reported
from tmkit.errors import FileFormatError, MeshError
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.mesh.meshes import MeshLoader, MeshSpec, checksums_of_text, mesh_of_source
from tmkit.formats.mesh.package_uris import below, install_hint, real_path
from tmkit.formats.spec.values import primitive
from tmkit.graph import HeightField, Mesh, Plane, PointCloud, Shape

Array = npt.NDArray[np.float64]
_Reader = Callable[[Path, bytes], Array]


def read_points(path: Path, *, limits: ReadingLimits | None = None) -> Array:
    """Return the points (n, 3), metres, of a ``.npy``, ``.ply`` or ``.xyz`` file; refuse what is not finite."""
    limits = limits or ReadingLimits()
    readers: dict[str, _Reader] = {".npy": _npy, ".ply": _ply, ".xyz": partial(_xyz, limits=limits)}
    points = _reader_of(path, "points", readers)(path, read_bytes(path, limit=limits.mesh_bytes))
    if points.ndim != 2 or points.shape[1] != 3 or not len(points):
        raise FileFormatError.at(
            path, f"expected points of shape (n, 3), at least one, received shape {points.shape}"
        )
    return _checked(points, path, "points", limits)


def read_heights(
    path: Path, *, span: tuple[float, float] | None, limits: ReadingLimits | None = None
) -> Array:
    """Return the heights (rows, columns), metres, of a ``.npy`` or ``.png`` file, the first row at the least y.

    ``span`` has the heights of black and of white in a picture; ``None`` for numbers, which are
    metres.
    """
    limits = limits or ReadingLimits()
    read = _reader_of(
        path, "heights", {".npy": _npy, ".png": partial(_png, span=span, limits=limits)}
    )
    if (span is not None) != (path.suffix.lower() == ".png"):
        wanted = (
            "needs a range of heights, from black to white"
            if span is None
            else "holds metres and takes no range"
        )
        raise FileFormatError.at(path, f"this kind of file {wanted}")
    heights = read(path, read_bytes(path, limit=limits.mesh_bytes))
    if heights.ndim != 2 or min(heights.shape) < 2:
        reason = (
            "expected heights of shape (rows, columns), at least 2 of each, received shape"
            f" {heights.shape}"
        )
        raise FileFormatError.at(path, reason)
    return _checked(heights, path, "heights", limits)


def npy_bytes(values: npt.ArrayLike) -> bytes:
    """Return the ``.npy`` file of an array of floats; the same bytes for the same array."""
    file = io.BytesIO()
    np.lib.format.write_array(
        file, np.ascontiguousarray(values, dtype="<f8"), version=(1, 0), allow_pickle=False
    )
    return file.getvalue()


def _reader_of(path: Path, what: str, readers: Mapping[str, _Reader]) -> _Reader:
    if path.suffix.lower() not in readers:
        raise FileFormatError.at(
            path, f"{what} in a file of kind '{path.suffix}'; expected {', '.join(readers)}"
        )
    return readers[path.suffix.lower()]


def _checked(values: Array, path: Path, what: str, limits: ReadingLimits) -> Array:
    """Return numbers that are finite and not too many."""
    count = len(values) if what == "points" else values.size
    if count > limits.points:
        raise FileFormatError.at(path, f"it holds {count} {what}, expected at most {limits.points}")
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise FileFormatError.at(
            path, f"row {bad[0] + 1} of its {what} has a number that is not finite"
        )
    return np.ascontiguousarray(values)


def _npy(path: Path, data: bytes) -> Array:
    """Return the array of a NumPy file, whose header must fit the size of the file."""
    file = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            version = np.lib.format.read_magic(file)
            readers = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }
            if version not in readers:
                raise ValueError(f"version {version[0]}.{version[1]} is not known")
            shape, by_columns, dtype = readers[version](file)
    except Exception as error:
        # a header is parsed as Python: whatever that raises means that the file is broken
        raise FileFormatError.at(path, f"no NumPy file: {_first_line(error)}") from None
    if dtype.kind not in "fiu":
        raise FileFormatError.at(
            path, f"expected an array of real numbers, received one of type {dtype}"
        )
    found, expected = len(data) - file.tell(), math.prod(shape) * dtype.itemsize
    if found != expected:
        raise FileFormatError.at(path, f"expected {expected} bytes of numbers, received {found}")
    values = np.frombuffer(data, dtype=dtype, offset=file.tell()).reshape(
        shape, order="F" if by_columns else "C"
    )
    return values.astype(np.float64)


def _xyz(path: Path, data: bytes, limits: ReadingLimits) -> Array:
    rows = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        words = line.partition(b"#")[0].split()
        if not words:
            continue
        try:
            x, y, z = (float(word) for word in words[:3])
        except ValueError:
            shown = line[:80].decode("utf-8", errors="replace").strip()
            raise FileFormatError.at(
                path, f"expected three numbers, received '{shown}'", line=number
            ) from None
        rows.append((x, y, z))
        if len(rows) > limits.points:
            raise FileFormatError.at(
                path, f"it holds more than {limits.points} points, expected at most so many"
            )
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _ply(path: Path, data: bytes) -> Array:
    """Return the vertices of a PLY file."""
    with interrupts_kept():  # trimesh catches everything, interrupts included
        import trimesh

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loaded = trimesh.load_scene(
                    io.BytesIO(data), file_type="ply", process=False, skip_materials=True
                )
            parts = [
                np.asarray(part.vertices, dtype=np.float64) for part in loaded.geometry.values()
            ]
        except MemoryError:
            raise
        except Exception as error:  # whatever the reader raises means that the file is broken
            raise FileFormatError.at(
                path, f"the points cannot be read: {_first_line(error)}"
            ) from error
    return np.concatenate(parts) if parts else np.zeros((0, 3))


def _png(path: Path, data: bytes, span: tuple[float, float] | None, limits: ReadingLimits) -> Array:
    """Return the heights of a grey picture, from the bottom upwards."""
    with importing("PIL", "pictures", f"{path}: reading PNG needs"):
        from PIL import Image
    assert span is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the size is looked at here
            image = Image.open(io.BytesIO(data), formats=["PNG"])
            if image.width * image.height > limits.points:
                size = f"{image.width} x {image.height} heights"
                raise FileFormatError.at(path, f"it holds {size}, expected at most {limits.points}")
            if image.mode not in ("L", "I", "I;16", "I;16B"):
                raise FileFormatError.at(
                    path, f"expected a picture in grey, received one of mode {image.mode}"
                )
            white = 255.0 if image.mode == "L" else 65535.0
            pixels = np.asarray(image, dtype=np.float64)
    except (FileFormatError, MemoryError):
        raise
    except Exception as error:
        # whatever the many readers behind Pillow raise means that the file is broken
        raise FileFormatError.at(
            path, f"the picture cannot be read: {_first_line(error)}"
        ) from error
    low, high = span
    return low + (high - low) * (pixels[::-1] / white)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


_KINDS = (
    "box",
    "capsule",
    "cone",
    "cylinder",
    "height_field",
    "mesh",
    "plane",
    "point_cloud",
    "sphere",
)
_DIGEST = re.compile("[0-9a-f]{32}")
_CHECKSUMS = "sha256"
"""Key of the SHA-256 of files by name, in the entry of a mesh."""

_Read = TypeVar("_Read")
Json = dict[str, Any]


def shape_key(shape: Shape, entry: Json) -> str:
    """Return the key under which the entry of a shape stands."""
    return _digest_of_entry(entry) if _CHECKSUMS in entry else shape.digest


def _digest_of_entry(entry: Json) -> str:
    return sha256_of(json.dumps(entry, sort_keys=True).encode())[:32]


def shape_to_dict(shape: Shape, loader: MeshLoader) -> Json:
    """Return a shape as a JSON object; arrays are inline."""
    if shape.kind == "mesh":
        return _mesh_to_dict(shape, loader)
    if shape.kind == "plane":
        return {"kind": "plane"}
    if shape.kind == "point_cloud":
        (radius,) = shape.dimensions
        return _with_source(
            {"kind": "point_cloud", "points": _text(shape.points, "<f8"), "radius": radius}, shape
        )
    if shape.kind == "height_field":
        x, y, floor = shape.dimensions
        grid = {"columns": shape.heights.shape[1], "heights": _text(shape.heights, "<f8")}
        return _with_source({"floor": floor, "kind": "height_field", "size": [x, y]} | grid, shape)
    return {"dimensions": list(shape.dimensions), "kind": shape.kind}


def arrays_as_files(shapes: dict[str, Json]) -> dict[str, bytes]:
    """Replace the arrays of clouds and fields in shapes as JSON, by digest, in place; return the files by name."""
    files = {}
    for digest, shape in shapes.items():
        what = {"point_cloud": "points", "height_field": "heights"}.get(shape["kind"])
        if what is not None:
            name = f"{what}_{digest}.npy"
            values = np.frombuffer(base64.b64decode(shape.pop(what)), dtype="<f8")
            files[name] = npy_bytes(values.reshape(-1, shape.pop("columns", 3)))
            shape["file"] = name
            shape.pop("source", None)
    return files


def shape_from_dict(
    digest: str, shapes: JsonNode, loader: MeshLoader, *, folder: Path | None
) -> Shape:
    """Return a shape; ``folder`` is where files are looked for, ``None`` when there are none."""
    node = shapes.get(digest)
    kind = node.get("kind").one_of(_KINDS)
    with reported(node):
        shape = _read(kind, node, loader, folder)
    if not _DIGEST.fullmatch(digest):
        return shape
    if _CHECKSUMS in node.table():
        if (received := _digest_of_entry(node.table())) != digest:
            raise node.error(
                f"it was changed by hand: the entry has the digest {received}, expected {digest}"
            )
    elif shape.digest != digest:
        changed = (
            f"the {kind.replace('_', ' ')} '{shape.source}' has changed since the scene was written"
        )
        what = changed if shape.source else "it is broken"
        raise node.error(f"{what}: its content has the digest {shape.digest}, expected {digest}")
    return shape


def _read(kind: str, node: JsonNode, loader: MeshLoader, folder: Path | None) -> Shape:
    if kind == "mesh":
        return _mesh_from_dict(node, loader, folder)
    if kind == "point_cloud":
        return _cloud_from_dict(node, loader, folder)
    if kind == "height_field":
        return _field_from_dict(node, loader, folder)
    if kind == "plane":
        node.only("kind")
        return Plane()
    node.only("dimensions", "kind")
    return primitive(kind, node.get("dimensions").numbers({"box": 3, "sphere": 1}.get(kind, 2)))


def _mesh_to_dict(shape: Shape, loader: MeshLoader) -> Json:
    source = _portable(shape.source)
    if checksums := _checksums_of_files(shape, source, loader):
        return {"kind": "mesh", _CHECKSUMS: checksums, "source": source}
    return {
        "faces": _text(shape.faces, "<i4"),
        "kind": "mesh",
        "source": source,
        "vertices": _text(shape.vertices, "<f8"),
    }


def _text(values: npt.ArrayLike, dtype: str) -> str:
    return base64.b64encode(np.asarray(values, dtype=dtype).tobytes()).decode("ascii")


def _with_source(shape: Json, of: Shape) -> Json:
    source = _portable(of.source)
    return shape | {"source": source} if source else shape


def _portable(source: str) -> str:
    """Return a source without folders, unless it is a package URI."""
    return (
        source if source.startswith("package://") else source.replace("\\", "/").rpartition("/")[2]
    )


def _checksums_of_files(shape: Shape, source: str, loader: MeshLoader) -> dict[str, str]:
    """Return the SHA-256 of the files that a mesh would be read from again, by name; empty if there are none here."""
    mesh = mesh_of_source(source, loader.packages) if source else None
    if mesh is None:
        return {}
    try:
        if shape.checksums:
            checksums = _named(mesh, shape.checksums)
            is_same = all(
                loader.checksum(path) == checksums[name] for name, path in _paths(mesh, checksums)
            )
            return checksums if is_same else {}
        again = loader.load(mesh)  # arrays without checksums may be those of the file
    except FileFormatError:
        return {}
    return _named(mesh, again.checksums) if again.digest == shape.digest else {}


def _named(mesh: MeshSpec, checksums: str) -> dict[str, str]:
    """Return the checksums of a mesh by name, the first under the name that the source has for the file."""
    files = list(checksums_of_text(checksums).items())
    return {mesh.path.name: files[0][1], **dict(files[1:])} if files else {}


def _paths(mesh: MeshSpec, checksums: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return names and paths of the files of a mesh, its own first."""
    folder = real_path(mesh.path).parent
    return [(name, mesh.path if name == mesh.path.name else folder / name) for name in checksums]


def _checked_mesh(node: JsonNode, mesh: MeshSpec, loader: MeshLoader) -> Shape:
    """Return the mesh of a file, which must have the SHA-256 of its entry, as must the files that it names."""
    files = node.get(_CHECKSUMS)
    expected = {name: files.get(name).text() for name in files.table()}

    def refuse_changed(path: Path, received: str, wanted: str) -> None:
        if received != wanted:
            reason = f"the file {path} has the SHA-256 {received}, expected {wanted}"
            source = node.get("source").text()
            raise node.error(
                f"the mesh '{source}' has changed since the scene was written: {reason}"
            )

    folder = real_path(mesh.path).parent
    try:
        for name, path in _paths(mesh, {mesh.path.name: "", **expected}):
            is_inside = path == mesh.path or below(real_path(path), folder) is not None
            refuse_changed(
                path, loader.checksum(path) if is_inside else "none", expected.get(name, "none")
            )
        shape = loader.load(mesh)
    except MeshError as error:
        raise node.error(str(error)) from error
    for name, checksum in _named(mesh, shape.checksums).items():
        refuse_changed(folder / name, checksum, expected.get(name, "none"))
    return shape


def _mesh_from_dict(node: JsonNode, loader: MeshLoader, folder: Path | None) -> Shape:
    if "file" in node.table():
        node.only("file", "kind", "scale")
        scale = node.get("scale").number() if "scale" in node.table() else 1.0

        def read(path: Path, *, limits: ReadingLimits) -> Shape:
            del limits  # the loader has them
            return loader.load(MeshSpec(path, (scale, scale, scale)))

        return _from_file(node.get("file"), loader, folder, read)[0]
    source = node.get("source").text()
    if "vertices" not in node.table():
        node.only("kind", _CHECKSUMS, "source")
        mesh = mesh_of_source(source, loader.packages)
        if mesh is None:
            hint = install_hint(source)
            raise node.error(
                f"the mesh '{source}' is not installed here; {hint}give its folder by package_path"
            )
        return (
            _checked_mesh(node, mesh, loader) if _CHECKSUMS in node.table() else loader.load(mesh)
        )
    node.only("faces", "kind", "source", "vertices")
    vertices = np.frombuffer(_bytes(node.get("vertices"), 24), dtype="<f8").reshape(-1, 3)
    faces = np.frombuffer(_bytes(node.get("faces"), 12), dtype="<i4").reshape(-1, 3)
    return Mesh(vertices.astype(np.float64), faces.astype(np.int32), source=source)


def _cloud_from_dict(node: JsonNode, loader: MeshLoader, folder: Path | None) -> Shape:
    radius = node.get("radius").number()
    if "file" in node.table():
        node.only("file", "kind", "radius")
        points, name = _from_file(node.get("file"), loader, folder, read_points)
        return PointCloud(points, radius=radius, source=name)
    node.only("kind", "points", "radius", "source")
    return PointCloud(_rows(node.get("points"), 3), radius=radius, source=_source(node))


def _field_from_dict(node: JsonNode, loader: MeshLoader, folder: Path | None) -> Shape:
    size = node.get("size").numbers(2)
    floor = node.get("floor").number() if node.table().get("floor") is not None else None
    if "file" in node.table():
        node.only("file", "floor", "kind", "range", "size")
        low_high = node.get("range").numbers(2) if "range" in node.table() else None
        span = (low_high[0], low_high[1]) if low_high is not None else None
        heights, name = _from_file(
            node.get("file"), loader, folder, partial(read_heights, span=span)
        )
        return HeightField(heights, size=size, floor=floor, source=name)
    node.only("columns", "floor", "heights", "kind", "size", "source")
    columns = None
    if isinstance(node.get("heights").value, str):
        number = node.get("columns").number()
        columns = int(number) if number.is_integer() else 0
        if columns < 1:
            raise node.get("columns").error(
                f"expected a whole number of at least 1, received {number:g}"
            )
    return HeightField(
        _rows(node.get("heights"), columns), size=size, floor=floor, source=_source(node)
    )


def _source(node: JsonNode) -> str:
    return node.get("source").text() if "source" in node.table() else ""


def _from_file(
    node: JsonNode, loader: MeshLoader, folder: Path | None, read: Callable[..., _Read]
) -> tuple[_Read, str]:
    """Return what a file holds that a scene names, and its name without folders."""
    uri = node.text()
    if folder is None:
        raise node.error(f"a scene that is not a file of its own cannot name the file '{uri}'")
    try:
        path = loader.packages.resolve(uri, folder=folder, place=SourceLocation(node.path))
    except FileFormatError as error:
        raise node.error(str(error.data["reason"])) from None
    try:
        return read(path, limits=loader.packages.limits), path.name
    except FileFormatError as error:
        raise node.error(str(error)) from error


def _rows(node: JsonNode, columns: int | None) -> Array:
    """Return rows of numbers: a list of lists of one length, or base64, whose ``columns`` must be known."""
    if isinstance(node.value, str):
        columns = columns or 1
        numbers = np.frombuffer(_bytes(node, 8 * columns), dtype="<f8")
        return numbers.reshape(-1, columns).astype(np.float64)
    rows: list[list[float]] = []
    for item in node.items():
        length = columns if columns is not None else len(list(item.items()))
        if rows and length != len(rows[0]):
            raise item.error(
                f"expected {len(rows[0])} numbers, as in the first row, received {length}"
            )
        rows.append(item.numbers(length))
    return np.array(rows, dtype=np.float64).reshape(len(rows), columns or (-1 if rows else 0))


def _bytes(node: JsonNode, row: int) -> bytes:
    """Return bytes written in base64, whole rows of so many."""
    try:
        data = base64.b64decode(node.text(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise node.error(f"expected base64: {error}") from None
    if len(data) % row:
        raise node.error(f"expected rows of {row} bytes, received {len(data)} bytes")
    return data
