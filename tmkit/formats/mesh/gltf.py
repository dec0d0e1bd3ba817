"""Geometry of glTF 2.0 files, binary (``.glb``) or as JSON (``.gltf``).

Only what a shape needs is read: the triangles of the default scene, each moved by the nodes above
it, and the plain colours of materials. Textures, cameras, animations and skins are not looked at,
so no picture is ever opened. A buffer is inside the file, in a ``data:`` URI, or in a file in the
folder of the file or below it; any other URI is refused. Units are metres. As for COLLADA, the
up-axis is *not* applied: descriptions with glTF visuals and other collision meshes have both in one
frame.

Invariants: before an array is made, the triangles of all instances are counted against the limit;
    nodes form a tree.
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

_MAGIC, _JSON, _BINARY = b"glTF", b"JSON", b"BIN\0"
_TYPES = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_TRIANGLES, _STRIP, _FAN = 4, 5, 6

Array = npt.NDArray[np.float64]
Part = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64], int]


def read_gltf(path: Path, data: bytes, limits: ReadingLimits, submesh: str = "") -> list[Part]:
    """Return vertices in metres, faces, transform (4, 4) and colour of all meshes, or of those of one name."""
    try:
        document, binary = chunks(path, data, limits)
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


def chunks(path: Path, data: bytes, limits: ReadingLimits) -> tuple[dict[str, Any], bytes]:
    """Return the JSON document and the binary chunk, which may be empty."""
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
            text, binary = (text or chunk, binary) if kind == _JSON else (text, binary or chunk)
            position += 8 + length
    if len(text) > limits.text_bytes:
        raise MeshError.at(
            path, f"the mesh has {len(text)} bytes of JSON, expected at most {limits.text_bytes}"
        )
    document = json.loads(text.decode("utf-8-sig"))
    if not isinstance(document, dict):
        raise MeshError.at(path, "the mesh cannot be read: its JSON is no object")
    return document, binary


class Document:
    """A glTF document, of which arrays are made when they are needed."""

    def __init__(
        self, path: Path, document: dict[str, Any], binary: bytes, limits: ReadingLimits
    ) -> None:
        self.path, self.document, self.binary, self.limits = path, document, binary, limits
        self.buffers: dict[int, bytes] = {}

    def parts(self, submesh: str = "") -> list[Part]:
        """Return the meshes of the default scene, or those of a name, each as often as it is used."""
        used = [
            (part, matrix)
            for number, matrix in self._instances()
            for part in self.primitives(number, submesh)
        ]
        count, most = (
            sum(self.corners(primitive) for primitive, _ in used),
            self.limits.mesh_triangles,
        )
        if count > 3 * most:
            raise MeshError.at(
                self.path, f"the mesh has {count // 3} triangles, expected at most {most}"
            )
        return [
            (self.vertices(primitive), self.faces(primitive), matrix, self.color(primitive))
            for primitive, matrix in used
        ]

    def color(self, primitive: dict[str, Any]) -> int:
        """Return the plain colour of a primitive's material."""
        try:
            looks = self.document["materials"][primitive["material"]].get(
                "pbrMetallicRoughness", {}
            )
            color = pack_color(looks.get("baseColorFactor", (1.0,) * 4), is_linear=True)
            return UNSPECIFIED if "baseColorTexture" in looks else color
        except (LookupError, TypeError, AttributeError):
            return UNSPECIFIED

    def _instances(self) -> Iterator[tuple[int, Array]]:
        """Yield the meshes that nodes of the default scene place, with their transforms, parents first."""
        matrices: dict[int | None, Array] = {None: np.eye(4)}
        for number, above, node in self.nodes():
            matrix = matrices[number] = product(matrices[above], transform(node))
            if "mesh" in node:
                yield node["mesh"], matrix

    def nodes(self) -> Iterator[tuple[int, int | None, dict[str, Any]]]:
        """Yield the nodes of the default scene with their numbers and those of their parents, parents first."""
        nodes, scenes = self.document.get("nodes", []), self.document.get("scenes", [])
        if scenes:
            roots = scenes[self._index(self.document.get("scene", 0), scenes)].get("nodes", [])
        else:
            inner = {child for node in nodes for child in node.get("children", ())}
            roots = [number for number in range(len(nodes)) if number not in inner]
        waiting: list[tuple[int, int | None]] = [(root, None) for root in reversed(roots)]
        parents: dict[int, int | None] = {}
        while waiting:
            number, above = waiting.pop()
            if number in parents:
                around = [above]
                while around[-1] not in (None, number):
                    around.append(parents[around[-1]])
                if around[-1] is None:
                    raise ValueError(f"node {number} has several parents")
                loop = " -> ".join(map(str, [*around[::-1], number]))
                raise ValueError(
                    f"node {number} has several parents, nodes are below themselves: {loop}"
                )
            parents[number] = above
            node = nodes[self._index(number, nodes)]
            yield number, above, node
            waiting.extend((child, number) for child in reversed(node.get("children", ())))

    def primitives(self, number: int, submesh: str = "") -> list[dict[str, Any]]:
        """Return the primitives of a mesh that are triangles; none where a ``submesh`` of another name is wanted."""
        meshes, found = self.document["meshes"], []
        mesh = meshes[self._index(number, meshes)]
        for primitive in mesh["primitives"] if submesh in ("", mesh.get("name")) else ():
            compressed = [name for name in primitive.get("extensions", ()) if "compression" in name]
            if compressed:
                raise MeshError.at(
                    self.path, f"the mesh is compressed by {compressed[0]}, which is not read"
                )
            if primitive.get("mode", _TRIANGLES) in (_TRIANGLES, _STRIP, _FAN):
                found.append(primitive)
        return found

    def corners(self, primitive: dict[str, Any]) -> int:
        """Return how many numbers of corners or vertices a primitive has, whichever are more."""
        accessors = self.document["accessors"]
        numbers = [
            primitive["attributes"]["POSITION"],
            *([primitive["indices"]] if "indices" in primitive else ()),
        ]
        factor = 1 if primitive.get("mode", _TRIANGLES) == _TRIANGLES else 3
        counts = [accessors[self._index(number, accessors)]["count"] for number in numbers]
        if not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError("an accessor's count is no natural number")
        return factor * int(max(counts))

    def vertices(self, primitive: dict[str, Any]) -> Array:
        """Return the vertices (n, 3) of a primitive."""
        return self._array(primitive["attributes"]["POSITION"], 3).astype(np.float64)

    def faces(self, primitive: dict[str, Any]) -> npt.NDArray[np.int64]:
        """Return the triangles (m, 3) of a primitive."""
        if "indices" in primitive:
            corners = self._array(primitive["indices"], 1).reshape(-1).astype(np.int64)
        else:
            corners = np.arange(self.corners({**primitive, "mode": _TRIANGLES}), dtype=np.int64)
        mode = primitive.get("mode", _TRIANGLES)
        if mode == _TRIANGLES:
            return corners[: len(corners) // 3 * 3].reshape(-1, 3)
        if mode == _FAN:
            return np.stack(
                [np.full(max(len(corners) - 2, 0), corners[0]), corners[1:-1], corners[2:]], axis=1
            )
        strip = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=1)
        strip[1::2] = strip[1::2, [1, 0, 2]]  # every other triangle faces the other way
        return strip

    def _array(self, number: int, width: int) -> npt.NDArray[Any]:
        """Return what an accessor describes, (count, width); numpy proves that it lies inside its buffer."""
        accessors, views = self.document["accessors"], self.document["bufferViews"]
        accessor = accessors[self._index(number, accessors)]
        if "sparse" in accessor or accessor["type"] != ("VEC3" if width == 3 else "SCALAR"):
            raise ValueError(f"accessor {number} is sparse or of another type")
        view = views[self._index(accessor["bufferView"], views)]
        kind = np.dtype(_TYPES[accessor["componentType"]])
        start, stride = view.get("byteOffset", 0), view.get("byteStride", width * kind.itemsize)
        bytes_of_view = memoryview(self._buffer(view["buffer"]))[start : start + view["byteLength"]]
        values: npt.NDArray[Any] = np.ndarray(
            (accessor["count"], width),
            kind,
            bytes_of_view,
            offset=accessor.get("byteOffset", 0),
            strides=(stride, kind.itemsize),
        )
        if accessor.get("normalized") and kind.kind in "iu":
            return np.maximum(values / np.iinfo(kind).max, -1.0)
        return values

    def _buffer(self, number: int) -> bytes:
        """Return a buffer: the binary chunk, a ``data:`` URI, or a file in the folder of this one or below."""
        if number not in self.buffers:
            buffers = self.document["buffers"]
            uri = buffers[self._index(number, buffers)].get("uri")
            self.buffers[number] = self.binary if uri is None else self._named(uri)
        return self.buffers[number]

    def _named(self, uri: str) -> bytes:
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
    def _index(number: Any, of: list[Any]) -> int:
        """Return a number that names an entry of a list."""
        if type(number) is not int or not 0 <= number < len(of):
            raise ValueError(f"an entry {number!r} is named, of {len(of)}")
        return number


def transform(node: dict[str, Any]) -> Array:
    """Return the transform (4, 4) of a node relative to the node above it."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T
    x, y, z, w = (float(value) for value in node.get("rotation", (0.0, 0.0, 0.0, 1.0)))
    length = math.hypot(x, y, z, w)
    x, y, z, w = (
        (x / length, y / length, z / length, w / length) if length > 0.0 else (0.0, 0.0, 0.0, 1.0)
    )
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    matrix = np.eye(4)
    matrix[:3, :3] = turn * np.array(node.get("scale", (1.0, 1.0, 1.0)), dtype=np.float64)
    matrix[:3, 3] = node.get("translation", (0.0, 0.0, 0.0))
    return matrix
