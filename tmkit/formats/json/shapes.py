"""Shapes in JSON scenes.

A shape stands under its content digest, which is checked when it is read: a file that changed in between is noticed. A
key that is no digest (32 hexadecimal digits) is a name chosen by the author of a handwritten file, and is not checked.

* A mesh is written by the ``package://`` URI it came from when that still leads to the same content, else with its
  arrays.
* A point cloud has a ``radius`` and ``points``, a height field a ``size``, a ``floor`` (null or omitted: the default
  of :func:`~tmkit.graph.HeightField`) and ``heights``, with the number of ``columns``.
* Arrays are base64 of little-endian 64-bit floats and 32-bit integers. Points and heights may also be lists of rows,
  or be replaced by a ``file`` beside the scene (see :mod:`tmkit.formats.mesh.array_files`); for a picture of heights,
  ``range`` has the heights of black and white.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tmkit._support.source_location import SourceLocation, reported
from tmkit.errors import FileFormatError
from tmkit.formats.json.reading import JsonNode
from tmkit.formats.mesh.array_files import npy_bytes, read_heights, read_points
from tmkit.formats.mesh.meshes import MeshLoader, mesh_of_source
from tmkit.formats.mesh.package_uris import install_hint
from tmkit.formats.spec.values import primitive
from tmkit.graph import HeightField, Mesh, Plane, PointCloud, Shape

_KINDS = ("box", "capsule", "cone", "cylinder", "height_field", "mesh", "plane", "point_cloud", "sphere")
_DIGEST = re.compile("[0-9a-f]{32}")

Json = dict[str, Any]
Array = npt.NDArray[np.float64]


def shape_to_dict(shape: Shape, loader: MeshLoader) -> Json:
    """Return a shape as a JSON object; arrays are inline."""
    if shape.kind == "mesh":
        return _mesh_to_dict(shape, loader)
    if shape.kind == "plane":
        return {"kind": "plane"}
    if shape.kind == "point_cloud":
        (radius,) = shape.dimensions
        return _with_source({"kind": "point_cloud", "points": _text(shape.points, "<f8"), "radius": radius}, shape)
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


def shape_from_dict(digest: str, shapes: JsonNode, loader: MeshLoader, *, folder: Path | None) -> Shape:
    """Return a shape.

    Args:
        folder: where files are looked for, or ``None`` when there are none.
    """
    node = shapes.get(digest)
    kind = node.get("kind").one_of(_KINDS)
    with reported(node):
        shape = _read(kind, node, loader, folder)
    if _DIGEST.fullmatch(digest) and shape.digest != digest:
        changed = f"the {kind.replace('_', ' ')} '{shape.source}' has changed since the scene was written"
        what = changed if shape.source else "it is broken"
        raise node.error(f"{what}: its content has the digest {shape.digest}, expected {digest}")
    return shape


def _read(kind: str, node: JsonNode, loader: MeshLoader, folder: Path | None) -> Shape:
    if kind == "mesh":
        return _mesh_from_dict(node, loader)
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
    if source:
        try:
            found = _from_source(source, loader)
        except FileFormatError:
            found = None
        if found is not None and found.digest == shape.digest:
            return {"kind": "mesh", "source": source}
    return {
        "faces": _text(shape.faces, "<i4"), "kind": "mesh", "source": source, "vertices": _text(shape.vertices, "<f8"),
    }  # fmt: skip


def _text(values: npt.ArrayLike, dtype: str) -> str:
    """Return an array as base64."""
    return base64.b64encode(np.asarray(values, dtype=dtype).tobytes()).decode("ascii")


def _with_source(shape: Json, of: Shape) -> Json:
    """Return a cloud or a field with its source, if that is known."""
    source = _portable(of.source)
    return shape | {"source": source} if source else shape


def _portable(source: str) -> str:
    """Return a source without folders, unless it is a package URI."""
    return source if source.startswith("package://") else source.replace("\\", "/").rpartition("/")[2]


def _from_source(source: str, loader: MeshLoader) -> Shape | None:
    """Return the mesh that a source names, ``None`` when it leads nowhere here."""
    mesh = mesh_of_source(source, loader.packages)
    return None if mesh is None else loader.load(mesh)


def _mesh_from_dict(node: JsonNode, loader: MeshLoader) -> Shape:
    source = node.get("source").text()
    if "vertices" not in node.table():
        node.only("kind", "source")
        found = _from_source(source, loader)
        if found is None:
            hint = install_hint(source)
            raise node.error(f"the mesh '{source}' is not installed here; {hint}give its folder by package_path")
        return found
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
        heights, name = _from_file(node.get("file"), loader, folder, partial(read_heights, span=span))
        return HeightField(heights, size=size, floor=floor, source=name)
    node.only("columns", "floor", "heights", "kind", "size", "source")
    columns = None
    if isinstance(node.get("heights").value, str):
        number = node.get("columns").number()
        columns = int(number) if number.is_integer() else 0
        if columns < 1:
            raise node.get("columns").error(f"expected a whole number of at least 1, received {number:g}")
    return HeightField(_rows(node.get("heights"), columns), size=size, floor=floor, source=_source(node))


def _source(node: JsonNode) -> str:
    return node.get("source").text() if "source" in node.table() else ""


def _from_file(
    node: JsonNode, loader: MeshLoader, folder: Path | None, read: Callable[..., Array]
) -> tuple[Array, str]:
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
            raise item.error(f"expected {len(rows[0])} numbers, as in the first row, received {length}")
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
