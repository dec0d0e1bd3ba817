"""Shapes in JSON scenes, and their files of points and heights.

The key of a shape is the digest of its content, or the digest of its entry if the entry has the
SHA-256 of a file. Reading compares the digests and so detects files that have changed. A key that
is not a digest (32 hexadecimal digits) is a name from a handwritten file, and is not compared.

* A mesh is stored by the ``package://`` URI of its file if the file still has the bytes that were
  read, and by its arrays otherwise. The entry has the SHA-256 of the file and of the files it
  refers to, by name. Reading compares these checksums instead of the arrays, which another version
  may read differently. In a handwritten file, a mesh may be a ``file`` in the folder of the scene,
  with a ``scale`` (1 by default).
* A point cloud has a ``radius`` and ``points``. A height field has a ``size``, a ``floor`` (null or
  omitted: the default of :func:`~tmkit.graph.HeightField`) and ``heights``, with the number of
  ``columns``.
* Arrays are base64 of little-endian 64-bit floats and 32-bit integers. Points and heights may also
  be lists of rows, or a ``file`` in the folder of the scene.
* Files of points are ``.npy`` (n, 3), ``.ply`` (its vertices) or ``.xyz`` (a line for each point,
  its first three numbers; ``#`` begins a comment).
* Files of heights are ``.npy`` (rows, columns), the first row at the least y as in
  :func:`~tmkit.graph.HeightField`, or ``.png``. A ``.png`` is a grey image of 8 or 16 bits, a map
  with y upwards, whose *last* line has the least y. Black and white are the ends of the ``range``
  of the scene.

Sizes are checked before data are unpacked, so a small file cannot request a large memory.
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
from tmkit._support.signals import defer_interrupts
from tmkit._support.source_location import SourceLocation, locate_errors
from tmkit.errors import FileFormatError, MeshError
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.mesh.meshes import MeshLoader, MeshSpec, checksums_of_text, mesh_of_source
from tmkit.formats.mesh.package_uris import install_hint, path_below, real_path
from tmkit.formats.spec.values import primitive
from tmkit.graph import HeightField, Mesh, Plane, PointCloud, Shape

Array = npt.NDArray[np.float64]
Json = dict[str, Any]
_ArrayReader = Callable[[Path, bytes], Array]
_T = TypeVar("_T")

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
"""Kinds of shapes."""

_DIGEST = re.compile("[0-9a-f]{32}")
"""Form of a key that is a digest."""

_CHECKSUMS = "sha256"
"""Key of the SHA-256 of files by name, in the entry of a mesh."""


def read_points(path: Path, *, limits: ReadingLimits | None = None) -> Array:
    """Return the points (n, 3) of a ``.npy``, ``.ply`` or ``.xyz`` file [m].

    Raises:
        FileFormatError: if the file has other data, too many points or numbers that are not finite.
    """
    limits = limits or ReadingLimits()
    readers: dict[str, _ArrayReader] = {
        ".npy": read_npy,
        ".ply": _read_ply,
        ".xyz": partial(_read_xyz, limits=limits),
    }
    read = _reader_by_suffix(path, "points", readers)
    points = read(path, read_bytes(path, limit=limits.mesh_bytes))
    if points.ndim != 2 or points.shape[1] != 3 or not len(points):
        raise FileFormatError.at(
            path, f"expected points of shape (n, 3), at least one, received shape {points.shape}"
        )
    return _require_finite(points, path, "points", limits)


def read_heights(
    path: Path, *, span: tuple[float, float] | None, limits: ReadingLimits | None = None
) -> Array:
    """Return the heights (rows, columns) of a ``.npy`` or ``.png`` file [m].

    The first row has the least y.

    Args:
        path: path of the file.
        span: heights of black and of white in a ``.png`` file [m]; None for a ``.npy`` file.
        limits: size limits. Defaults to the usual ones.

    Raises:
        FileFormatError: if the file has other data, too many heights or numbers that are not
            finite, or if ``span`` does not match the suffix.
    """
    limits = limits or ReadingLimits()
    readers: dict[str, _ArrayReader] = {
        ".npy": read_npy,
        ".png": partial(_read_png, span=span, limits=limits),
    }
    read = _reader_by_suffix(path, "heights", readers)
    if (span is not None) != (path.suffix.lower() == ".png"):
        expectation = (
            "needs a range of heights, from black to white"
            if span is None
            else "holds metres and takes no range"
        )
        raise FileFormatError.at(path, f"this kind of file {expectation}")
    heights = read(path, read_bytes(path, limit=limits.mesh_bytes))
    if heights.ndim != 2 or min(heights.shape) < 2:
        reason = (
            "expected heights of shape (rows, columns), at least 2 of each, received shape"
            f" {heights.shape}"
        )
        raise FileFormatError.at(path, reason)
    return _require_finite(heights, path, "heights", limits)


def npy_bytes(values: npt.ArrayLike) -> bytes:
    """Return the ``.npy`` file of an array of floats; equal arrays have equal bytes."""
    file = io.BytesIO()
    np.lib.format.write_array(
        file, np.ascontiguousarray(values, dtype="<f8"), version=(1, 0), allow_pickle=False
    )
    return file.getvalue()


def _reader_by_suffix(
    path: Path, content: str, readers: Mapping[str, _ArrayReader]
) -> _ArrayReader:
    """Return the reader of a file's suffix; ``content`` names the data, for the error."""
    if path.suffix.lower() not in readers:
        raise FileFormatError.at(
            path, f"{content} in a file of kind '{path.suffix}'; expected {', '.join(readers)}"
        )
    return readers[path.suffix.lower()]


def _require_finite(values: Array, path: Path, content: str, limits: ReadingLimits) -> Array:
    """Return values, in C order, and check their number and that all are finite."""
    count = len(values) if content == "points" else values.size
    if count > limits.points:
        raise FileFormatError.at(
            path, f"it holds {count} {content}, expected at most {limits.points}"
        )
    invalid_rows = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(invalid_rows):
        raise FileFormatError.at(
            path, f"row {invalid_rows[0] + 1} of its {content} has a number that is not finite"
        )
    return np.ascontiguousarray(values)


def read_npy(path: Path, data: bytes) -> Array:
    """Return the array of a NumPy file, whose header must match the size of the file.

    Args:
        path: path of the file, for messages.
        data: content of the file.

    Raises:
        FileFormatError: if the content is not an array of real numbers.
    """
    file = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers of Python 2 cause warnings
            version = np.lib.format.read_magic(file)
            readers = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }
            if version not in readers:
                raise ValueError(f"version {version[0]}.{version[1]} is not known")
            shape, by_columns, dtype = readers[version](file)
    except Exception as error:
        # The header is parsed as Python, so an invalid file can raise any exception.
        raise FileFormatError.at(path, f"no NumPy file: {_first_line(error)}") from None
    if dtype.kind not in "fiu":
        raise FileFormatError.at(
            path, f"expected an array of real numbers, received one of type {dtype}"
        )
    received, expected = len(data) - file.tell(), math.prod(shape) * dtype.itemsize
    if received != expected:
        raise FileFormatError.at(path, f"expected {expected} bytes of numbers, received {received}")
    values = np.frombuffer(data, dtype=dtype, offset=file.tell()).reshape(
        shape, order="F" if by_columns else "C"
    )
    return values.astype(np.float64)


def _read_xyz(path: Path, data: bytes, limits: ReadingLimits) -> Array:
    """Return the first three numbers of each line of a text."""
    rows = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        words = line.partition(b"#")[0].split()
        if not words:
            continue
        try:
            x, y, z = (float(word) for word in words[:3])
        except ValueError:
            quotation = line[:80].decode("utf-8", errors="replace").strip()
            raise FileFormatError.at(
                path, f"expected three numbers, received '{quotation}'", line=number
            ) from None
        rows.append((x, y, z))
        if len(rows) > limits.points:
            raise FileFormatError.at(
                path, f"it holds more than {limits.points} points, which is the limit"
            )
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _read_ply(path: Path, data: bytes) -> Array:
    """Return the vertices of a PLY file."""
    with defer_interrupts():  # trimesh catches all exceptions, including interrupts
        import trimesh

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scene = trimesh.load_scene(
                    io.BytesIO(data), file_type="ply", process=False, skip_materials=True
                )
            parts = [
                np.asarray(part.vertices, dtype=np.float64) for part in scene.geometry.values()
            ]
        except MemoryError:
            raise
        except Exception as error:  # an invalid file can raise any exception
            raise FileFormatError.at(
                path, f"the points cannot be read: {_first_line(error)}"
            ) from error
    return np.concatenate(parts) if parts else np.zeros((0, 3))


def _read_png(
    path: Path, data: bytes, span: tuple[float, float] | None, limits: ReadingLimits
) -> Array:
    """Return the heights of a grey image, from the bottom upwards."""
    with importing("PIL", "pictures", f"{path}: reading PNG needs"):
        from PIL import Image
    assert span is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the size is checked here
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
        # The readers of Pillow can raise any exception for an invalid file.
        raise FileFormatError.at(
            path, f"the picture cannot be read: {_first_line(error)}"
        ) from error
    low, high = span
    return low + (high - low) * (pixels[::-1] / white)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


def shape_key(shape: Shape, entry: Json) -> str:
    """Return the key of a shape's entry."""
    return _digest_of_entry(entry) if _CHECKSUMS in entry else shape.digest


def _digest_of_entry(entry: Json) -> str:
    return sha256_of(json.dumps(entry, sort_keys=True).encode())[:32]


def shape_to_dict(shape: Shape, loader: MeshLoader) -> Json:
    """Return a shape as a JSON object, with arrays in base64."""
    if shape.kind == "mesh":
        return _mesh_to_dict(shape, loader)
    if shape.kind == "plane":
        return {"kind": "plane"}
    if shape.kind == "point_cloud":
        (radius,) = shape.dimensions
        return _with_source(
            {"kind": "point_cloud", "points": _to_base64(shape.points, "<f8"), "radius": radius},
            shape,
        )
    if shape.kind == "height_field":
        x, y, floor = shape.dimensions
        grid = {"columns": shape.heights.shape[1], "heights": _to_base64(shape.heights, "<f8")}
        return _with_source({"floor": floor, "kind": "height_field", "size": [x, y]} | grid, shape)
    return {"dimensions": list(shape.dimensions), "kind": shape.kind}


def extract_array_files(shapes: dict[str, Json]) -> dict[str, bytes]:
    """Replace the arrays of point clouds and height fields by references to ``.npy`` files.

    Args:
        shapes: entries of shapes by digest, modified in place.

    Returns:
        Contents of the files by name.
    """
    files = {}
    for digest, shape in shapes.items():
        key = {"point_cloud": "points", "height_field": "heights"}.get(shape["kind"])
        if key is not None:
            name = f"{key}_{digest}.npy"
            values = np.frombuffer(base64.b64decode(shape.pop(key)), dtype="<f8")
            files[name] = npy_bytes(values.reshape(-1, shape.pop("columns", 3)))
            shape["file"] = name
            shape.pop("source", None)
    return files


def shape_from_dict(
    key: str, shapes: JsonNode, loader: MeshLoader, *, folder: Path | None
) -> Shape:
    """Return the shape of an entry.

    Args:
        key: key of the entry, its digest or a name.
        shapes: all entries of the document.
        loader: loader of meshes.
        folder: folder of referenced files, or None if the document must not refer to files.
    """
    node = shapes.get(key)
    kind = node.get("kind").one_of(_KINDS)
    with locate_errors(node):
        shape = _shape_of_kind(kind, node, loader, folder)
    if not _DIGEST.fullmatch(key):
        return shape
    if _CHECKSUMS in node.table():
        if (received := _digest_of_entry(node.table())) != key:
            raise node.error(
                f"it was changed by hand: the entry has the digest {received}, expected {key}"
            )
    elif shape.digest != key:
        fault = "it is damaged"
        if shape.source:
            name = f"the {kind.replace('_', ' ')} '{shape.source}'"
            fault = f"{name} has changed since the scene was written"
        raise node.error(f"{fault}: its content has the digest {shape.digest}, expected {key}")
    return shape


def _shape_of_kind(kind: str, node: JsonNode, loader: MeshLoader, folder: Path | None) -> Shape:
    if kind == "mesh":
        return _mesh_from_dict(node, loader, folder)
    if kind == "point_cloud":
        return _cloud_from_dict(node, loader, folder)
    if kind == "height_field":
        return _field_from_dict(node, loader, folder)
    if kind == "plane":
        node.require_keys_among("kind")
        return Plane()
    node.require_keys_among("dimensions", "kind")
    return primitive(kind, node.get("dimensions").numbers({"box": 3, "sphere": 1}.get(kind, 2)))


def _mesh_to_dict(shape: Shape, loader: MeshLoader) -> Json:
    source = _portable_source(shape)
    if checksums := _checksums_of_files(shape, source, loader):
        return {"kind": "mesh", _CHECKSUMS: checksums, "source": source}
    return {
        "faces": _to_base64(shape.faces, "<i4"),
        "kind": "mesh",
        "source": source,
        "vertices": _to_base64(shape.vertices, "<f8"),
    }


def _to_base64(values: npt.ArrayLike, dtype: str) -> str:
    return base64.b64encode(np.asarray(values, dtype=dtype).tobytes()).decode("ascii")


def _with_source(entry: Json, shape: Shape) -> Json:
    source = _portable_source(shape)
    return entry | {"source": source} if source else entry


def _portable_source(shape: Shape) -> str:
    """Return the source of a shape, without folders unless it is a package URI."""
    source = shape.source
    return (
        source if source.startswith("package://") else source.replace("\\", "/").rpartition("/")[2]
    )


def _checksums_of_files(shape: Shape, source: str, loader: MeshLoader) -> dict[str, str]:
    """Return the SHA-256 of the files of a mesh by name, empty if they differ from the shape.

    Args:
        shape: the mesh.
        source: portable source of the mesh.
        loader: resolver and reader of the files.
    """
    mesh = mesh_of_source(source, loader.packages) if source else None
    if mesh is None:
        return {}
    try:
        if shape.checksums:
            checksums = _checksums_by_name(mesh, shape.checksums)
            is_same = all(
                loader.checksum(path) == checksums[name] for name, path in _paths(mesh, checksums)
            )
            return checksums if is_same else {}
        reloaded = loader.load(mesh)  # a mesh without checksums may equal the file
    except FileFormatError:
        return {}
    is_same = reloaded.digest == shape.digest
    return _checksums_by_name(mesh, reloaded.checksums) if is_same else {}


def _checksums_by_name(mesh: MeshSpec, checksums: str) -> dict[str, str]:
    """Return the checksums of a mesh by name, the first under the file's name in the source."""
    files = list(checksums_of_text(checksums).items())
    return {mesh.path.name: files[0][1], **dict(files[1:])} if files else {}


def _paths(mesh: MeshSpec, checksums: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return names and paths of the files of a mesh, the mesh file first."""
    folder = real_path(mesh.path).parent
    return [(name, mesh.path if name == mesh.path.name else folder / name) for name in checksums]


def _load_unchanged_mesh(node: JsonNode, mesh: MeshSpec, loader: MeshLoader) -> Shape:
    """Return the mesh of a file, and check the SHA-256 of all its files against the entry."""
    files = node.get(_CHECKSUMS)
    checksums = {name: files.get(name).text() for name in files.table()}

    def require_equal(path: Path, received: str, expected: str) -> None:
        if received != expected:
            reason = f"the file {path} has the SHA-256 {received}, expected {expected}"
            source = node.get("source").text()
            raise node.error(
                f"the mesh '{source}' has changed since the scene was written: {reason}"
            )

    folder = real_path(mesh.path).parent
    try:
        for name, path in _paths(mesh, {mesh.path.name: "", **checksums}):
            is_inside = path == mesh.path or path_below(real_path(path), folder) is not None
            received = loader.checksum(path) if is_inside else "none"
            require_equal(path, received, checksums.get(name, "none"))
        shape = loader.load(mesh)
    except MeshError as error:
        raise node.error(str(error)) from error
    for name, received in _checksums_by_name(mesh, shape.checksums).items():
        require_equal(folder / name, received, checksums.get(name, "none"))
    return shape


def _mesh_from_dict(node: JsonNode, loader: MeshLoader, folder: Path | None) -> Shape:
    if "file" in node.table():
        node.require_keys_among("file", "kind", "scale")
        scale = node.get("scale").number() if "scale" in node.table() else 1.0

        def read(path: Path, *, limits: ReadingLimits) -> Shape:
            del limits  # the loader has limits
            return loader.load(MeshSpec(path, (scale, scale, scale)))

        return _read_referenced_file(node.get("file"), loader, folder, read)[0]
    source = node.get("source").text()
    if "vertices" not in node.table():
        node.require_keys_among("kind", _CHECKSUMS, "source")
        mesh = mesh_of_source(source, loader.packages)
        if mesh is None:
            hint = install_hint(source)
            raise node.error(
                f"the mesh '{source}' is not installed here; {hint}give its folder by package_path"
            )
        return (
            _load_unchanged_mesh(node, mesh, loader)
            if _CHECKSUMS in node.table()
            else loader.load(mesh)
        )
    node.require_keys_among("faces", "kind", "source", "vertices")
    vertices = np.frombuffer(_from_base64(node.get("vertices"), 24), dtype="<f8").reshape(-1, 3)
    faces = np.frombuffer(_from_base64(node.get("faces"), 12), dtype="<i4").reshape(-1, 3)
    return Mesh(vertices.astype(np.float64), faces.astype(np.int32), source=source)


def _cloud_from_dict(node: JsonNode, loader: MeshLoader, folder: Path | None) -> Shape:
    radius = node.get("radius").number()
    if "file" in node.table():
        node.require_keys_among("file", "kind", "radius")
        points, name = _read_referenced_file(node.get("file"), loader, folder, read_points)
        return PointCloud(points, radius=radius, source=name)
    node.require_keys_among("kind", "points", "radius", "source")
    return PointCloud(_rows(node.get("points"), 3), radius=radius, source=_source(node))


def _field_from_dict(node: JsonNode, loader: MeshLoader, folder: Path | None) -> Shape:
    size = node.get("size").numbers(2)
    floor = node.get("floor").number() if node.table().get("floor") is not None else None
    if "file" in node.table():
        node.require_keys_among("file", "floor", "kind", "range", "size")
        low_high = node.get("range").numbers(2) if "range" in node.table() else None
        span = (low_high[0], low_high[1]) if low_high is not None else None
        read = partial(read_heights, span=span)
        heights, name = _read_referenced_file(node.get("file"), loader, folder, read)
        return HeightField(heights, size=size, floor=floor, source=name)
    node.require_keys_among("columns", "floor", "heights", "kind", "size", "source")
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


def _read_referenced_file(
    node: JsonNode, loader: MeshLoader, folder: Path | None, read: Callable[..., _T]
) -> tuple[_T, str]:
    """Return the data of a file that a scene refers to, and the file's name without folders.

    Args:
        node: path or URI of the file.
        loader: resolver of the file, with the limits.
        folder: folder of the scene file, or None if the scene is not a file.
        read: function that reads the file, with the arguments ``path`` and ``limits=``.
    """
    uri = node.text()
    if folder is None:
        raise node.error(f"a scene that is not a file cannot refer to the file '{uri}'")
    try:
        path = loader.packages.resolve(uri, folder=folder, place=SourceLocation(node.path))
    except FileFormatError as error:
        raise node.error(str(error.data["reason"])) from None
    try:
        return read(path, limits=loader.packages.limits), path.name
    except FileFormatError as error:
        raise node.error(str(error)) from error


def _rows(node: JsonNode, columns: int | None) -> Array:
    """Return rows of numbers, from a list of lists of equal length or from base64.

    Args:
        node: list or text.
        columns: length of a row; required for base64, optional for a list.
    """
    if isinstance(node.value, str):
        columns = columns or 1
        numbers = np.frombuffer(_from_base64(node, 8 * columns), dtype="<f8")
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


def _from_base64(node: JsonNode, row_bytes: int) -> bytes:
    """Return the bytes of a base64 text, in complete rows of ``row_bytes``."""
    try:
        data = base64.b64decode(node.text(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise node.error(f"expected base64: {error}") from None
    if len(data) % row_bytes:
        raise node.error(f"expected rows of {row_bytes} bytes, received {len(data)} bytes")
    return data
