"""Scenes in glTF 2.0, read and written, for modellers and browsers.

Read, each node is a frame fixed to that of the node above, with its meshes as shapes; a node whose
name is taken has its number appended. The y-axis, which is up in glTF, becomes z; scales are
applied to the meshes. Written, each frame is a node with one node below it for each shape. What
glTF cannot express (joints, masses, exact shapes, meshes that single precision would round, ...) is
written into ``extras``: a scene in JSON without names, parents and poses, which are always those of
the nodes.
"""

from __future__ import annotations

import base64
import json
import struct
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tmkit._support.elementary import dot, product
from tmkit._support.limits import as_utf8, read_bytes
from tmkit._support.source_location import Note, SourceLocation
from tmkit.errors import FileFormatError
from tmkit.formats.json.frames import numbers_to_list
from tmkit.formats.json.scene import FORMAT, VERSION, scene_from_dict, scene_to_dict
from tmkit.formats.json.shapes import shape_key, shape_to_dict
from tmkit.formats.mesh.gltf import Document, read_chunks, transform
from tmkit.formats.mesh.materials import UNSPECIFIED, unpack_color
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.mesh.solids import frustum, mesh_of_cloud, mesh_of_field, solid_triangles
from tmkit.formats.spec.build import parents_first
from tmkit.graph import AttachedShape, Mesh, SceneGraph, Shape
from tmkit.spatial import Pose

Json = dict[str, Any]
EXTRAS = "tmkit"
UP = Pose((0.0, 0.0, 0.0), (0.5**0.5, 0.0, 0.0, 0.5**0.5))  # takes glTF's y to z
_DROPPED = ("animations", "cameras", "skins", "textures")
_ERRORS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
)


def read_gltf_scene(path: Path, *, loader: MeshLoader, note: Note) -> SceneGraph:
    """Read a ``.gltf`` or ``.glb`` file; an invalid or too large one, or buffers outside its folder, are refused."""
    limits = loader.packages.limits
    data = as_utf8(read_bytes(path, limit=limits.mesh_bytes), partial(FileFormatError.at, path))
    try:
        document, binary = read_chunks(path, data, limits)
        made = _scene(Document(path, document, binary, limits), loader)
    except FileFormatError:
        raise
    except _ERRORS as error:
        reason = f"{type(error).__name__}: {error}".split("\n")[0]
        raise FileFormatError.at(path, f"is no valid glTF 2.0: {reason}") from error
    for kind in _DROPPED:
        if document.get(kind):
            note(
                SourceLocation(str(path)),
                f"{len(document[kind])} {kind} have no part in a scene, and are omitted",
            )
    return scene_from_dict(made, source=str(path), loader=loader, folder=path.parent)


def _scene(file: Document, loader: MeshLoader) -> Json:
    ours: Json = dict(file.document.get("extras", {}).get(EXTRAS, {}))
    made = {
        "allowed": [],
        **ours,
        "format": FORMAT,
        "version": VERSION,
        "shapes": dict(ours.get("shapes", {})),
    }
    frames: dict[int | None, Json] = {None: {"name": None}}
    stretches: dict[int | None, Any] = {None: np.eye(3)}
    listed, taken, triangles = list[tuple[int, Json]](), {"world"}, 0
    for number, above, node in file.nodes():
        loader.packages.limits.refuse_frames(number, SourceLocation(str(file.path)).error)
        pose, stretches[number] = _placed(node, stretches[above])
        extras = node.get("extras") or {}
        for primitive in file.primitives(node["mesh"]) if "mesh" in node else ():
            triangles += file.corner_count(primitive) // 3
        if triangles > loader.packages.limits.mesh_triangles:
            raise ValueError(f"more than {loader.packages.limits.mesh_triangles} triangles")
        if f"{EXTRAS}_shape" in extras:
            frames[number] = frames[above]
            parts = _parts(
                file, node, stretches[number], extras[f"{EXTRAS}_shape"], made["shapes"], loader
            )
            frames[above].setdefault("shapes", []).extend({**part, "pose": pose} for part in parts)
            continue
        own = dict(extras.get(EXTRAS, {}))
        name = str(node.get("name") or f"node_{number}")
        if name in taken and not own:
            name = f"{name}_{number}"
        taken.add(name)
        if above is None:
            pose = numbers_to_list((UP @ Pose.from_array(pose)).as_array())
        parent = frames[above]["name"] or "world"
        usual: Json = {"body": name, "classes": [], "inertia": None, "joint": {"type": "fixed"}}
        frame = frames[number] = {
            **usual,
            **own,
            "name": name,
            "parent": parent,
            "pose": pose,
            "shapes": [],
        }
        if frame.pop("is_root", False):
            frame |= {"parent": None, "pose": [0.0] * 6 + [1.0]}
        identity = [0.0] * 6 + [1.0]
        parts = (
            _parts(file, node, stretches[number], {}, made["shapes"], loader)
            if "mesh" in node
            else []
        )
        frame["shapes"] = [{**part, "pose": identity} for part in parts]
        listed.append((frame.pop("index", number), frame))
    parents, names = ({frame[key] for _, frame in listed} for key in ("parent", "name"))
    if ("world" in parents and "world" not in names) or not (listed or ours):
        root: Json = {
            "body": "world",
            "classes": [],
            "inertia": None,
            "joint": {"type": "fixed"},
            "shapes": [],
        }
        listed.insert(0, (-1, {**root, "name": "world", "parent": None, "pose": [0.0] * 6 + [1.0]}))
    return {**made, "frames": [frame for _, frame in sorted(listed, key=lambda one: one[0])]}


def _placed(node: Json, stretch: Any) -> tuple[list[float], Any]:
    """Return the pose of a node, and the matrix (3, 3) of scales that is applied to what is in it."""
    if not {"matrix", "scale"} & node.keys() and (stretch == np.eye(3)).all():
        turn = numbers_to_list(node.get("rotation", (0.0, 0.0, 0.0, 1.0)))
        return [*numbers_to_list(node.get("translation", (0.0, 0.0, 0.0))), *turn], stretch
    matrix = transform(node)
    x, y = matrix[:3, 0], matrix[:3, 1]
    y = y * float(dot(x, x)) - x * float(dot(x, y))
    lengths = float(dot(x, x)) ** 0.5, float(dot(y, y)) ** 0.5
    if not min(lengths) > 0.0:
        raise ValueError(f"the node '{node.get('name', '')}' has a scale of 0")
    first, second = x / lengths[0], y / lengths[1]
    rotation = np.stack([first, second, np.cross(first, second)], axis=1)
    pose = Pose.from_rotation_matrix(product(stretch, matrix[:3, 3]), rotation)
    return numbers_to_list(pose.as_array()), product(rotation.T, stretch, matrix[:3, :3])


def _parts(
    file: Document, node: Json, stretch: Any, own: Json, shapes: Json, loader: MeshLoader
) -> list[Json]:
    """Return the shapes of a node, one a primitive, or the one that our writer gave."""
    usual = {"collision": True, "color": None, "friction": None, "visual": True}
    source = str(own.get("source", ""))
    own = {key: value for key, value in own.items() if key != "source"}
    is_plain = (stretch == np.eye(3)).all()
    if is_plain and own.get("shape") in shapes:
        return [{**usual, **own}]
    parts = []
    for primitive in file.primitives(node["mesh"]) if "mesh" in node else ():
        vertices, faces, color = (
            file.vertices(primitive),
            file.faces(primitive),
            file.color(primitive),
        )
        if not is_plain:
            vertices = product(vertices, stretch.T)
            faces = faces[:, ::-1] if np.linalg.det(stretch) < 0.0 else faces
        shape = Mesh(vertices, np.ascontiguousarray(faces), source=source)
        entry = shape_to_dict(shape, loader)
        key = shape_key(shape, entry)
        shapes.setdefault(key, entry)
        shown = {} if color == UNSPECIFIED else {"color": list(unpack_color(color))}
        parts.append({**usual, **shown, **own, "shape": key})
    return parts


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
            "asset": {"version": "2.0", "generator": "tmkit"},
            "scene": 0,
            "scenes": [{"nodes": []}],
            "nodes": [],
        }
        self.meshes: dict[tuple[str, Any], int] = {}
        self.rounded: set[str] = set()  # digests of shapes that meshes of glTF do not hold exactly
        self.kept: set[str] = set()  # keys of their entries

    def content(self, *, is_binary: bool) -> str | bytes:
        ours = scene_to_dict(self.scene)
        frames, shapes = {frame["name"]: frame for frame in ours.pop("frames")}, ours.pop("shapes")
        numbers: dict[str, int] = {}
        order = [*frames]
        for name in parents_first(order, lambda name: frames[name]["parent"]):
            numbers[name] = self.frame(frames[name], order.index(name), numbers)
        ours["shapes"] = {key: shapes[key] for key in shapes if key in self.kept}
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
        siblings = (
            self.document["scenes"][0]["nodes"] if above is None else self.document["nodes"][above]
        )
        if above is not None:
            siblings = siblings.setdefault("children", [])
        siblings.append(number)
        return number

    def frame(self, frame: Json, index: int, numbers: dict[str, int]) -> int:
        """Write a frame and its shapes; return the number of its node."""
        name, parent, pose, parts = (frame.pop(key) for key in ("name", "parent", "pose", "shapes"))
        extras = {**frame, "index": index} | ({"is_root": True} if parent is None else {})
        at, above = (
            (UP.inverse(), None) if parent is None else (Pose.from_array(pose), numbers[parent])
        )
        number = self.node(name, at, above, extras={EXTRAS: extras})
        for part, attached in zip(parts, self.scene.shapes(name), strict=True):
            own = {key: value for key, value in part.items() if key != "pose"} | {
                "source": attached.shape.source
            }
            mesh = {
                key: found for key, found in (("mesh", self.mesh(attached)),) if found is not None
            }
            if attached.shape.digest in self.rounded:
                self.kept.add(part["shape"])
            self.node(
                f"{name} {attached.shape.kind}",
                attached.pose,
                number,
                extras={f"{EXTRAS}_shape": own},
                **mesh,
            )
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
                is_linear = [
                    v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in color[:3]
                ]
                looks = {"baseColorFactor": [*is_linear, color[3]], "metallicFactor": 0.0}
                mode = {"alphaMode": "BLEND"} if color[3] < 1.0 else {}
                primitive["material"] = self.add(
                    "materials", {"pbrMetallicRoughness": looks, **mode}
                )
            self.meshes[key] = self.add("meshes", {"primitives": [primitive]})
        return self.meshes[key]

    def accessor(self, values: Any, component: int, kind: str, count: int, **more: Any) -> int:
        data = values.tobytes()
        view = self.add(
            "bufferViews", {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(data)}
        )
        self.data += data
        return self.add(
            "accessors",
            {"bufferView": view, "componentType": component, "type": kind, "count": count, **more},
        )


def _triangles(shape: Shape) -> tuple[Any, Any]:
    """Return vertices (n, 3) and faces (m, 3) of a shape as it is drawn."""
    if shape.kind in ("box", "sphere", "cylinder", "capsule"):
        return solid_triangles(shape, fineness=_FINENESS)
    if shape.kind == "plane":
        return _PLANE * np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]), np.array(
            [[0, 1, 2], [0, 2, 3]]
        )
    if shape.kind == "cone":
        shape = frustum(shape.dimensions[0], 0.0, shape.dimensions[1])
    makers = {"height_field": mesh_of_field, "point_cloud": mesh_of_cloud}
    mesh = makers[shape.kind](shape) if shape.kind in makers else shape
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def _padded(data: bytes, filler: bytes) -> bytes:
    return data + filler * (-len(data) % 4)
