"""Geometry of glTF 2.0 files, binary (``.glb``) or JSON (``.gltf``).

The reader extracts the triangles of the default scene, transformed by their nodes, and the plain
colours of materials. It ignores textures, cameras, animations and skins, so it never opens an
image. A buffer is in the file, in a ``data:`` URI, or in a file in the same folder or below; other
URIs are rejected. The unit of length is [m]. As for COLLADA, the up-axis is *not* applied, since
descriptions with glTF visuals and other collision meshes have both in one frame.

Invariants: the triangles of all instances are counted and compared with the limit before arrays
    are created; nodes form a tree.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from tmkit._support.elementary import product
from tmkit._support.limits import ReadingLimits, read_bytes
from tmkit.errors import MeshError
from tmkit.formats.mesh.materials import UNSPECIFIED, pack_color
from tmkit.formats.mesh.package_uris import path_below, real_path

_MAGIC = b"glTF"
"""First bytes of a binary file."""

_JSON_CHUNK = b"JSON"
"""Type of the chunk with the JSON document."""

_TYPES = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
"""NumPy types by component type."""

_TRIANGLES_MODE = 4
"""Mode of a primitive of separate triangles."""

_STRIP_MODE = 5
"""Mode of a triangle strip."""

_FAN_MODE = 6
"""Mode of a triangle fan."""

_IDENTITY = (0.0, 0.0, 0.0, 1.0)
"""Quaternion of the identity, x y z w."""

Array = npt.NDArray[np.float64]
Part = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64], int]
"""A mesh: (n, 3) vertices, (m, 3) faces, (4, 4) transform and colour."""


def read_gltf(path: Path, data: bytes, limits: ReadingLimits, submesh: str = "") -> list[Part]:
    """Return the meshes of a glTF file [m].

    Args:
        path: path of the file.
        data: bytes of the file.
        limits: size limits.
        submesh: name of the meshes; empty for all.

    Raises:
        MeshError: if the file is invalid or exceeds a limit.
    """
    try:
        document, binary = read_chunks(path, data, limits)
        return Document(path, document, binary, limits).parts(submesh)
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
        struct.error,
    ) as error:
        reason = f"{type(error).__name__}: {error}".split("\n")[0]
        raise MeshError.at(path, f"the mesh cannot be read: no valid glTF 2.0: {reason}") from error


def read_chunks(path: Path, data: bytes, limits: ReadingLimits) -> tuple[dict[str, Any], bytes]:
    """Return the JSON document and the binary chunk, which may be empty.

    Raises:
        MeshError: if the file is of another version, incomplete or too large.
    """
    text, binary = data, b""
    if data[:4] == _MAGIC:
        version, position = struct.unpack_from("<I", data, 4)[0], 12
        if version != 2:
            raise MeshError.at(path, f"the mesh is glTF of version {version}, expected 2")
        text = b""
        while position + 8 <= len(data):
            length, kind = struct.unpack_from("<I4s", data, position)
            chunk = data[position + 8 : position + 8 + length]
            if len(chunk) < length:
                raise MeshError.at(
                    path, "the mesh cannot be read: the file ends before its last chunk"
                )
            if kind == _JSON_CHUNK:
                text = text or chunk
            else:
                binary = binary or chunk
            position += 8 + length
    if len(text) > limits.text_bytes:
        raise MeshError.at(
            path, f"the mesh has {len(text)} bytes of JSON, expected at most {limits.text_bytes}"
        )
    document = json.loads(text.decode("utf-8-sig"))
    if not isinstance(document, dict):
        raise MeshError.at(path, "the mesh cannot be read: its JSON is not an object")
    return document, binary


class Document:
    """A glTF document, whose arrays are created on demand."""

    def __init__(
        self, path: Path, document: dict[str, Any], binary: bytes, limits: ReadingLimits
    ) -> None:
        self.path, self.limits = path, limits
        self.document, self.binary = document, binary
        self.buffers: dict[int, bytes] = {}

    def parts(self, submesh: str = "") -> list[Part]:
        """Return all instances of the meshes of the default scene, or of those of one name.

        Raises:
            MeshError: if the instances have too many triangles.
        """
        instances = [
            (primitive, matrix)
            for number, matrix in self._instances()
            for primitive in self.primitives(number, submesh)
        ]
        count = sum(self.corner_count(primitive) for primitive, _ in instances)
        limit = self.limits.mesh_triangles
        if count > 3 * limit:
            raise MeshError.at(
                self.path, f"the mesh has {count // 3} triangles, expected at most {limit}"
            )
        return [
            (self.vertices(primitive), self.faces(primitive), matrix, self.color(primitive))
            for primitive, matrix in instances
        ]

    def color(self, primitive: dict[str, Any]) -> int:
        """Return the plain colour of a primitive's material, or ``UNSPECIFIED``."""
        try:
            material = self.document["materials"][primitive["material"]]
            reflectance = material.get("pbrMetallicRoughness", {})
            color = pack_color(reflectance.get("baseColorFactor", (1.0,) * 4), is_linear=True)
            return UNSPECIFIED if "baseColorTexture" in reflectance else color
        except (LookupError, TypeError, AttributeError):
            return UNSPECIFIED

    def _instances(self) -> Iterator[tuple[int, Array]]:
        """Yield the meshes of the default scene's nodes with their (4, 4) transforms."""
        matrices: dict[int | None, Array] = {None: np.eye(4)}
        for number, parent, node in self.nodes():
            matrix = matrices[number] = product(matrices[parent], transform(node))
            if "mesh" in node:
                yield node["mesh"], matrix

    def nodes(self) -> Iterator[tuple[int, int | None, dict[str, Any]]]:
        """Yield index, parent index and value of the nodes of the default scene, parents first.

        Raises:
            ValueError: if a node has several parents.
        """
        nodes, scenes = self.document.get("nodes", []), self.document.get("scenes", [])
        if scenes:
            roots = scenes[self._index(self.document.get("scene", 0), scenes)].get("nodes", [])
        else:
            children = {child for node in nodes for child in node.get("children", ())}
            roots = [number for number in range(len(nodes)) if number not in children]
        pending: list[tuple[int, int | None]] = [(root, None) for root in reversed(roots)]
        parents: dict[int, int | None] = {}
        while pending:
            number, parent = pending.pop()
            if number in parents:
                ancestors = [parent]
                while ancestors[-1] not in (None, number):
                    ancestors.append(parents[ancestors[-1]])
                if ancestors[-1] is None:
                    raise ValueError(f"node {number} has several parents")
                cycle = " -> ".join(map(str, [*ancestors[::-1], number]))
                raise ValueError(
                    f"node {number} has several parents, nodes are below themselves: {cycle}"
                )
            parents[number] = parent
            node = nodes[self._index(number, nodes)]
            yield number, parent, node
            pending.extend((child, number) for child in reversed(node.get("children", ())))

    def primitives(self, number: int, submesh: str = "") -> list[dict[str, Any]]:
        """Return the triangle primitives of a mesh.

        Args:
            number: index of the mesh.
            submesh: required name of the mesh, whose primitives are omitted otherwise; empty for
                any name.

        Raises:
            MeshError: if the mesh is compressed.
        """
        meshes, primitives = self.document["meshes"], []
        mesh = meshes[self._index(number, meshes)]
        for primitive in mesh["primitives"] if submesh in ("", mesh.get("name")) else ():
            extensions = [name for name in primitive.get("extensions", ()) if "compression" in name]
            if extensions:
                raise MeshError.at(
                    self.path, f"the mesh is compressed by {extensions[0]}, which is not supported"
                )
            if primitive.get("mode", _TRIANGLES_MODE) in (_TRIANGLES_MODE, _STRIP_MODE, _FAN_MODE):
                primitives.append(primitive)
        return primitives

    def corner_count(self, primitive: dict[str, Any]) -> int:
        """Return an upper bound of the number of corners and vertices of a primitive."""
        accessors = self.document["accessors"]
        numbers = [
            primitive["attributes"]["POSITION"],
            *([primitive["indices"]] if "indices" in primitive else ()),
        ]
        factor = 1 if primitive.get("mode", _TRIANGLES_MODE) == _TRIANGLES_MODE else 3
        counts = [accessors[self._index(number, accessors)]["count"] for number in numbers]
        if not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError("an accessor's count is not a natural number")
        return factor * int(max(counts))

    def vertices(self, primitive: dict[str, Any]) -> Array:
        """Return the vertices (n, 3) of a primitive."""
        return self._array(primitive["attributes"]["POSITION"], 3).astype(np.float64)

    def faces(self, primitive: dict[str, Any]) -> npt.NDArray[np.int64]:
        """Return the triangles (m, 3) of a primitive."""
        if "indices" in primitive:
            corners = self._array(primitive["indices"], 1).reshape(-1).astype(np.int64)
        else:
            count = self.corner_count({**primitive, "mode": _TRIANGLES_MODE})
            corners = np.arange(count, dtype=np.int64)
        mode = primitive.get("mode", _TRIANGLES_MODE)
        if mode == _TRIANGLES_MODE:
            return corners[: len(corners) // 3 * 3].reshape(-1, 3)
        if mode == _FAN_MODE:
            return np.stack(
                [np.full(max(len(corners) - 2, 0), corners[0]), corners[1:-1], corners[2:]], axis=1
            )
        strip = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=1)
        strip[1::2] = strip[1::2, [1, 0, 2]]  # every other triangle faces the other way
        return strip

    def _array(self, number: int, width: int) -> npt.NDArray[Any]:
        """Return the array (count, width) of an accessor; NumPy checks the bounds of the buffer.

        Raises:
            ValueError: if the accessor is invalid, sparse or of another type.
        """
        accessors, views = self.document["accessors"], self.document["bufferViews"]
        accessor = accessors[self._index(number, accessors)]
        if "sparse" in accessor or accessor["type"] != ("VEC3" if width == 3 else "SCALAR"):
            raise ValueError(f"accessor {number} is sparse or of another type")
        view = views[self._index(accessor["bufferView"], views)]
        kind = np.dtype(_TYPES[accessor["componentType"]])
        start, stride = view.get("byteOffset", 0), view.get("byteStride", width * kind.itemsize)
        view_bytes = memoryview(self._buffer(view["buffer"]))[start : start + view["byteLength"]]
        values: npt.NDArray[Any] = np.ndarray(
            (accessor["count"], width),
            kind,
            view_bytes,
            offset=accessor.get("byteOffset", 0),
            strides=(stride, kind.itemsize),
        )
        if accessor.get("normalized") and kind.kind in "iu":
            return np.maximum(values / np.iinfo(kind).max, -1.0)
        return values

    def _buffer(self, number: int) -> bytes:
        """Return the bytes of a buffer: the binary chunk or the data of a URI."""
        if number not in self.buffers:
            buffers = self.document["buffers"]
            uri = buffers[self._index(number, buffers)].get("uri")
            self.buffers[number] = self.binary if uri is None else self._read_uri(uri)
        return self.buffers[number]

    def _read_uri(self, uri: str) -> bytes:
        """Return the bytes of a ``data:`` URI, or of a file in the same folder or below.

        Raises:
            MeshError: if the file is elsewhere or cannot be read.
            ValueError: if a ``data:`` URI is invalid.
        """
        if uri.startswith("data:"):
            try:
                return base64.b64decode(uri.partition(",")[2], validate=True)
            except binascii.Error as error:
                raise ValueError(f"a buffer's data: URI is not base64: {error}") from None
        folder = real_path(self.path).parent
        file = real_path(folder / unquote(uri))
        if "://" in uri or path_below(file, folder) is None:
            raise MeshError.at(
                self.path, f"the mesh names the buffer '{uri}', which is outside its folder"
            )
        return read_bytes(
            file, limit=self.limits.mesh_bytes, error=lambda reason: MeshError.at(file, reason)
        )

    @staticmethod
    def _index(number: Any, entries: list[Any]) -> int:
        """Return a number, which must be the index of an entry."""
        if type(number) is not int or not 0 <= number < len(entries):
            raise ValueError(f"the index {number!r} is invalid, of {len(entries)} entries")
        return number


def transform(node: dict[str, Any]) -> Array:
    """Return the (4, 4) transform of a node relative to its parent."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T
    quaternion = [float(value) for value in node.get("rotation", _IDENTITY)]
    if len(quaternion) != 4:
        raise ValueError(f"a rotation has 4 numbers, received {len(quaternion)}")
    length = math.hypot(*quaternion)
    x, y, z, w = [value / length for value in quaternion] if length > 0.0 else _IDENTITY
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    matrix = np.eye(4)
    matrix[:3, :3] = rotation * np.array(node.get("scale", (1.0, 1.0, 1.0)), dtype=np.float64)
    matrix[:3, 3] = node.get("translation", (0.0, 0.0, 0.0))
    return matrix
