"""Scenes as glTF 2.0, for modellers and browsers: a node for each frame, and one below it for each shape.

What glTF has no word for is in ``extras``, see :mod:`tmkit.formats.gltf.reader`. A mesh whose numbers single precision
would round is there too.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import numpy as np

from tmkit.formats.gltf.reader import EXTRAS, UP
from tmkit.formats.json.frames import numbers_to_list
from tmkit.formats.json.scene import scene_to_dict
from tmkit.formats.mesh.frustum import frustum, mesh_of_cloud, mesh_of_field, solid_triangles
from tmkit.formats.spec.build import parents_first
from tmkit.graph import AttachedShape, SceneGraph, Shape
from tmkit.spatial import Pose

Json = dict[str, Any]
_PLANE = 10.0  # half the side of a plane that is drawn, metres
_FINENESS = 2


def gltf_from_scene(scene: SceneGraph, *, is_binary: bool) -> str | bytes:
    """Return the content of a ``.glb`` file if ``is_binary``, else of a ``.gltf`` file with its buffer inside."""
    return _Writer(scene).content(is_binary=is_binary)


class _Writer:
    """Collects nodes, meshes and numbers."""

    def __init__(self, scene: SceneGraph) -> None:
        self.scene, self.data = scene, bytearray()
        self.document: Json = {
            "asset": {"version": "2.0", "generator": "tmkit"}, "scene": 0, "scenes": [{"nodes": []}], "nodes": [],
        }  # fmt: skip
        self.meshes: dict[tuple[str, Any], int] = {}
        self.rounded: set[str] = set()  # digests of shapes that meshes of glTF do not hold exactly

    def content(self, *, is_binary: bool) -> str | bytes:
        ours = scene_to_dict(self.scene)
        frames, shapes = {frame["name"]: frame for frame in ours.pop("frames")}, ours.pop("shapes")
        numbers: dict[str, int] = {}
        order = [*frames]
        for name in parents_first(order, lambda name: frames[name]["parent"]):
            numbers[name] = self.frame(frames[name], order.index(name), numbers)
        ours["shapes"] = {digest: shapes[digest] for digest in shapes if digest in self.rounded}
        del ours["format"], ours["version"]
        self.document["extras"] = {EXTRAS: ours}
        self.document["buffers"] = [{"byteLength": len(self.data)}]
        if not is_binary:
            text = base64.b64encode(self.data).decode("ascii")
            self.document["buffers"][0]["uri"] = f"data:application/octet-stream;base64,{text}"
        if not self.data:
            del self.document["buffers"]
        text = json.dumps(self.document, sort_keys=True, allow_nan=False)
        if not is_binary:
            return text
        parts = [
            (b"JSON", _padded(text.encode(), b" ")),
            *([(b"BIN\0", _padded(bytes(self.data), b"\0"))] if self.data else []),
        ]
        body = b"".join(struct.pack("<I4s", len(part), kind) + part for kind, part in parts)
        return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body

    def add(self, kind: str, entry: Json) -> int:
        """Add an entry to a list of the document; return its number."""
        listed = self.document.setdefault(kind, [])
        listed.append(entry)
        return len(listed) - 1

    def node(self, name: str, pose: Pose, above: int | None, **more: Any) -> int:
        entry = {"name": name, "translation": numbers_to_list(pose.translation), **more}
        number = self.add("nodes", entry | {"rotation": numbers_to_list(pose.quat_xyzw)})
        siblings = self.document["scenes"][0]["nodes"] if above is None else self.document["nodes"][above]
        if above is not None:
            siblings = siblings.setdefault("children", [])
        siblings.append(number)
        return number

    def frame(self, frame: Json, index: int, numbers: dict[str, int]) -> int:
        """Write a frame and its shapes; return the number of its node."""
        name, parent, pose, parts = (frame.pop(key) for key in ("name", "parent", "pose", "shapes"))
        extras = {**frame, "index": index} | ({"is_root": True} if parent is None else {})
        at, above = (UP.inverse(), None) if parent is None else (Pose.from_array(pose), numbers[parent])
        number = self.node(name, at, above, extras={EXTRAS: extras})
        for part, attached in zip(parts, self.scene.shapes(name), strict=True):
            own = {key: value for key, value in part.items() if key != "pose"} | {"source": attached.shape.source}
            mesh = {key: found for key, found in (("mesh", self.mesh(attached)),) if found is not None}
            self.node(f"{name} {attached.shape.kind}", attached.pose, number, extras={f"{EXTRAS}_shape": own}, **mesh)
        return number

    def mesh(self, part: AttachedShape) -> int | None:
        """Return the number of the mesh of a shape in its colour, ``None`` for one beyond single precision."""
        color = None if part.color is None else tuple(numbers_to_list(part.color))
        key = (part.shape.digest, color)
        if key not in self.meshes:
            vertices, faces = _triangles(part.shape)
            with np.errstate(over="ignore"):
                single = vertices.astype("<f4")
            if part.shape.kind != "mesh" or not np.array_equal(single.astype(np.float64), vertices):
                self.rounded.add(part.shape.digest)
            if not np.isfinite(single).all():
                return None
            bounds = {"min": single.min(axis=0).tolist(), "max": single.max(axis=0).tolist()}
            points = self.accessor(single, 5126, "VEC3", len(single), **bounds)
            corners = self.accessor(faces.astype("<u4"), 5125, "SCALAR", faces.size)
            primitive: Json = {"attributes": {"POSITION": points}, "indices": corners}
            if color is not None:
                linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in color[:3]]
                looks = {"baseColorFactor": [*linear, color[3]], "metallicFactor": 0.0}
                mode = {"alphaMode": "BLEND"} if color[3] < 1.0 else {}
                primitive["material"] = self.add("materials", {"pbrMetallicRoughness": looks, **mode})
            self.meshes[key] = self.add("meshes", {"primitives": [primitive]})
        return self.meshes[key]

    def accessor(self, values: Any, component: int, kind: str, count: int, **more: Any) -> int:
        data = values.tobytes()
        view = self.add("bufferViews", {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(data)})
        self.data += data
        return self.add(
            "accessors", {"bufferView": view, "componentType": component, "type": kind, "count": count, **more}
        )


def _triangles(shape: Shape) -> tuple[Any, Any]:
    """Return vertices (n, 3) and faces (m, 3) of a shape as it is drawn."""
    if shape.kind in ("box", "sphere", "cylinder", "capsule"):
        return solid_triangles(shape, fineness=_FINENESS)
    if shape.kind == "plane":
        return _PLANE * np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]])
    if shape.kind == "cone":
        shape = frustum(shape.dimensions[0], 0.0, shape.dimensions[1])
    makers = {"height_field": mesh_of_field, "point_cloud": mesh_of_cloud}
    mesh = makers[shape.kind](shape) if shape.kind in makers else shape
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def _padded(data: bytes, filler: bytes) -> bytes:
    return data + filler * (-len(data) % 4)
