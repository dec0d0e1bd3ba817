"""Reader and writer of scenes in glTF 2.0, for modelling programs and browsers.

Each node becomes a frame that is fixed to the frame of the node above, with its meshes as shapes. A
node whose name is in use has its number appended. The y axis, which points up in glTF, becomes z.
Scales are applied to meshes.

The writer makes a node for each frame, and one node below it for each shape. It stores the rest of
the scene in ``extras``, as a scene in JSON without names, parents and poses. These are joints,
masses, exact shapes, meshes that single precision would round, and so on. Names, parents and poses
are always those of the nodes.
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
"""Key in ``extras`` of the properties of a frame or a scene."""

_SHAPE_EXTRAS = f"{EXTRAS}_shape"
"""Key in ``extras`` of the properties of a shape."""

UP = Pose((0.0, 0.0, 0.0), (0.5**0.5, 0.0, 0.0, 0.5**0.5))
"""Rotation from the y axis of glTF to the z axis of a scene."""

_IDENTITY = [0.0] * 6 + [1.0]
"""Identity as translation and quaternion xyzw."""

_OMITTED_KEYS = ("animations", "cameras", "skins", "textures")
"""Keys of the document without a counterpart in a scene."""

_ERRORS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
)
"""Errors that an invalid document raises."""


def read_gltf_scene(path: Path, *, loader: MeshLoader, note: Note) -> SceneGraph:
    """Read a ``.gltf`` or ``.glb`` file.

    Args:
        path: the file.
        loader: loader of meshes, with the limits of the load.
        note: receiver of import notes.

    Raises:
        FileFormatError: if the file is invalid or too large, or a buffer is outside its folder.
    """
    limits = loader.packages.limits
    data = as_utf8(read_bytes(path, limit=limits.mesh_bytes), partial(FileFormatError.at, path))
    try:
        document, binary = read_chunks(path, data, limits)
        scene = _Reader(Document(path, document, binary, limits), loader).scene()
    except FileFormatError:
        raise
    except _ERRORS as error:
        reason = f"{type(error).__name__}: {error}".split("\n")[0]
        raise FileFormatError.at(path, f"is not valid glTF 2.0: {reason}") from error
    for key in _OMITTED_KEYS:
        if document.get(key):
            text = f"{len(document[key])} {key} have no part in a scene, and are omitted"
            note(SourceLocation(str(path)), text)
    return scene_from_dict(scene, source=str(path), loader=loader, folder=path.parent)


class _Reader:
    """Conversion of a glTF document to a scene in JSON.

    Args:
        file: the document.
        loader: loader of meshes, with the limits of the load.
    """

    def __init__(self, file: Document, loader: MeshLoader) -> None:
        self.file, self.loader = file, loader
        self.extras: Json = dict(file.document.get("extras", {}).get(EXTRAS, {}))
        self.shapes: Json = dict(self.extras.get("shapes", {}))
        self.frames: dict[int | None, Json] = {None: {"name": None}}  # by number of the node
        self.scales: dict[int | None, Any] = {None: np.eye(3)}  # (3, 3) by number of the node
        self.indexed_frames = list[tuple[int, Json]]()
        self.names = {"world"}
        self.n_triangles = 0

    def scene(self) -> Json:
        """Return the scene in JSON.

        Raises:
            FileFormatError: if there are too many frames.
            ValueError: if there are too many triangles, or the document is invalid.
        """
        for number, above, node in self.file.nodes():
            self.add_node(number, above, node)
        frames = self.indexed_frames
        names = {frame["name"] for _, frame in frames}
        parents = {frame["parent"] for _, frame in frames}
        is_empty = not frames and not self.extras
        if ("world" in parents and "world" not in names) or is_empty:
            frames = [(-1, _frame("world", None, _IDENTITY)), *frames]
        return {
            "allowed": [],
            **self.extras,
            "format": FORMAT,
            "version": VERSION,
            "shapes": self.shapes,
            "frames": [frame for _, frame in sorted(frames, key=lambda item: item[0])],
        }

    def add_node(self, number: int, above: int | None, node: Json) -> None:
        """Add the frame or the shapes of a node.

        Args:
            number: number of the node.
            above: number of the node above, or None.
            node: the node.
        """
        place = SourceLocation(str(self.file.path))
        self.loader.packages.limits.check_frame_count(number, place.error)
        pose, scale = _split_transform(node, self.scales[above])
        self.scales[number] = scale
        self.count_triangles(node)
        extras = node.get("extras") or {}
        if _SHAPE_EXTRAS in extras:
            frame = self.frames[number] = self.frames[above]
            parts = self.parts(node, scale, extras[_SHAPE_EXTRAS])
            frame.setdefault("shapes", []).extend({**part, "pose": pose} for part in parts)
            return

        # Add a frame, with the properties of the writer if there are any.
        properties = dict(extras.get(EXTRAS, {}))
        name = str(node.get("name") or f"node_{number}")
        if name in self.names and not properties:
            name = f"{name}_{number}"
        self.names.add(name)
        if above is None:
            pose = numbers_to_list((UP @ Pose.from_array(pose)).as_array())
        parent = self.frames[above]["name"] or "world"
        if properties.pop("is_root", False):
            parent, pose = None, _IDENTITY
        index = properties.pop("index", number)
        frame = _frame(name, parent, pose, properties)
        parts = self.parts(node, scale, {}) if "mesh" in node else []
        frame["shapes"] = [{**part, "pose": _IDENTITY} for part in parts]
        self.frames[number] = frame
        self.indexed_frames.append((index, frame))

    def count_triangles(self, node: Json) -> None:
        """Count the triangles of a node.

        Raises:
            ValueError: if there are too many.
        """
        limit = self.loader.packages.limits.mesh_triangles
        for primitive in self.file.primitives(node["mesh"]) if "mesh" in node else ():
            self.n_triangles += self.file.corner_count(primitive) // 3
        if self.n_triangles > limit:
            raise ValueError(f"more than {limit} triangles")

    def parts(self, node: Json, scale: Any, properties: Json) -> list[Json]:
        """Return the shapes of a node, either one for each primitive or the shape of the writer.

        Args:
            node: the node.
            scale: (3, 3) scales of the node and the nodes above.
            properties: properties of the shape by the writer.
        """
        defaults = {"collision": True, "color": None, "friction": None, "visual": True}
        source = str(properties.get("source", ""))
        properties = {key: value for key, value in properties.items() if key != "source"}
        is_unscaled = (scale == np.eye(3)).all()
        if is_unscaled and properties.get("shape") in self.shapes:
            return [{**defaults, **properties}]
        parts = []
        for primitive in self.file.primitives(node["mesh"]) if "mesh" in node else ():
            vertices, faces = self.file.vertices(primitive), self.file.faces(primitive)
            color = self.file.color(primitive)
            if not is_unscaled:
                vertices = product(vertices, scale.T)
                faces = faces[:, ::-1] if np.linalg.det(scale) < 0.0 else faces
            shape = Mesh(vertices, np.ascontiguousarray(faces), source=source)
            entry = shape_to_dict(shape, self.loader)
            key = shape_key(shape, entry)
            self.shapes.setdefault(key, entry)
            colors = {} if color == UNSPECIFIED else {"color": list(unpack_color(color))}
            parts.append({**defaults, **colors, **properties, "shape": key})
        return parts


def _frame(
    name: str, parent: str | None, pose: list[float], properties: Json | None = None
) -> Json:
    """Return a fixed frame without shapes in JSON, with other properties where given."""
    defaults: Json = {"body": name, "classes": [], "inertia": None, "joint": {"type": "fixed"}}
    identity = {"name": name, "parent": parent, "pose": pose, "shapes": []}
    return {**defaults, **(properties or {}), **identity}


def _split_transform(node: Json, scale: Any) -> tuple[list[float], Any]:
    """Return the pose of a node, and the scales that apply to its content.

    Args:
        node: the node.
        scale: (3, 3) scales of the nodes above.

    Returns:
        Translation and quaternion xyzw, and the (3, 3) scales.

    Raises:
        ValueError: if a scale is 0.
    """
    if not {"matrix", "scale"} & node.keys() and (scale == np.eye(3)).all():
        quat_xyzw = numbers_to_list(node.get("rotation", (0.0, 0.0, 0.0, 1.0)))
        translation = numbers_to_list(node.get("translation", (0.0, 0.0, 0.0)))
        return [*translation, *quat_xyzw], scale
    matrix = transform(node)
    x, y = matrix[:3, 0], matrix[:3, 1]
    y = y * float(dot(x, x)) - x * float(dot(x, y))
    lengths = float(dot(x, x)) ** 0.5, float(dot(y, y)) ** 0.5
    if not min(lengths) > 0.0:
        raise ValueError(f"the node '{node.get('name', '')}' has a scale of 0")
    first, second = x / lengths[0], y / lengths[1]
    rotation = np.stack([first, second, np.cross(first, second)], axis=1)
    pose = Pose.from_rotation_matrix(product(scale, matrix[:3, 3]), rotation)
    return numbers_to_list(pose.as_array()), product(rotation.T, scale, matrix[:3, :3])


_PLANE_HALF_SIDE = 10.0
"""Half the side of the square that represents a plane [m]."""

_MESH_FINENESS = 2
"""Fineness of the triangles that represent round shapes."""

_FLOAT32_COMPONENT = 5126
"""Component type of 32-bit floats in an accessor."""

_UINT32_COMPONENT = 5125
"""Component type of unsigned 32-bit integers in an accessor."""


def gltf_from_scene(scene: SceneGraph, *, is_binary: bool) -> str | bytes:
    """Return a scene as the content of a ``.gltf`` file with its buffer inside, or of a ``.glb``.

    Args:
        scene: the scene.
        is_binary: whether the content is that of a ``.glb`` file.
    """
    return _Writer(scene).content(is_binary=is_binary)


class _Writer:
    """Document and buffer of a scene.

    Attributes:
        data: the buffer.
        document: the document.
        meshes: number of the mesh by digest and colour of the shape.
        inexact_shapes: digests of shapes that meshes of glTF do not represent exactly.
        inexact_keys: keys of these shapes in the JSON of the scene.
    """

    def __init__(self, scene: SceneGraph) -> None:
        self.scene, self.data = scene, bytearray()
        self.document: Json = {
            "asset": {"version": "2.0", "generator": "tmkit"},
            "scene": 0,
            "scenes": [{"nodes": []}],
            "nodes": [],
        }
        self.meshes: dict[tuple[str, Any], int] = {}
        self.inexact_shapes: set[str] = set()
        self.inexact_keys: set[str] = set()

    def content(self, *, is_binary: bool) -> str | bytes:
        """Return the content of the file."""
        extras = scene_to_dict(self.scene)
        frames = {frame["name"]: frame for frame in extras.pop("frames")}
        shapes = extras.pop("shapes")
        index = {name: number for number, name in enumerate(frames)}
        numbers: dict[str, int] = {}
        for name in parents_first(frames, lambda name: frames[name]["parent"]):
            numbers[name] = self.add_frame(frames[name], index[name], numbers)
        extras["shapes"] = {key: shapes[key] for key in shapes if key in self.inexact_keys}
        del extras["format"], extras["version"]
        self.document["extras"] = {EXTRAS: extras}
        self.document["buffers"] = [{"byteLength": len(self.data)}]
        if not is_binary:
            text = base64.b64encode(self.data).decode("ascii")
            self.document["buffers"][0]["uri"] = f"data:application/octet-stream;base64,{text}"
        if not self.data:
            del self.document["buffers"]
        text = json.dumps(self.document, sort_keys=True, allow_nan=False)
        if not is_binary:
            return text
        parts = [(b"JSON", _pad(text.encode(), b" "))]
        if self.data:
            parts.append((b"BIN\0", _pad(bytes(self.data), b"\0")))
        body = b"".join(struct.pack("<I4s", len(part), kind) + part for kind, part in parts)
        return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body

    def add_entry(self, kind: str, entry: Json) -> int:
        """Add an entry to a list of the document and return its number."""
        entries = self.document.setdefault(kind, [])
        entries.append(entry)
        return len(entries) - 1

    def add_node(self, name: str, pose: Pose, above: int | None, **properties: Any) -> int:
        """Add a node and return its number.

        Args:
            name: name of the node.
            pose: pose relative to the node above.
            above: number of the node above, or None.
            properties: other properties of the node.
        """
        entry = {"name": name, "translation": numbers_to_list(pose.translation), **properties}
        number = self.add_entry("nodes", entry | {"rotation": numbers_to_list(pose.quat_xyzw)})
        if above is None:
            siblings = self.document["scenes"][0]["nodes"]
        else:
            siblings = self.document["nodes"][above].setdefault("children", [])
        siblings.append(number)
        return number

    def add_frame(self, frame: Json, index: int, numbers: dict[str, int]) -> int:
        """Add the nodes of a frame and its shapes, and return the number of its node.

        Args:
            frame: the frame in JSON, from which the function removes properties.
            index: position in the order of frames.
            numbers: number of the node by name of the frame, for the frames above.
        """
        name, parent = frame.pop("name"), frame.pop("parent")
        pose, parts = Pose.from_array(frame.pop("pose")), frame.pop("shapes")
        extras = {**frame, "index": index}
        above = None
        if parent is None:
            extras["is_root"] = True
            pose = UP.inverse()
        else:
            above = numbers[parent]
        number = self.add_node(name, pose, above, extras={EXTRAS: extras})
        for part, attached in zip(parts, self.scene.shapes(name), strict=True):
            properties = {key: value for key, value in part.items() if key != "pose"}
            properties["source"] = attached.shape.source
            node: Json = {"extras": {_SHAPE_EXTRAS: properties}}
            mesh = self.mesh(attached)
            if mesh is not None:
                node["mesh"] = mesh
            if attached.shape.digest in self.inexact_shapes:
                self.inexact_keys.add(part["shape"])
            self.add_node(f"{name} {attached.shape.kind}", attached.pose, number, **node)
        return number

    def mesh(self, part: AttachedShape) -> int | None:
        """Return the number of the mesh of a shape in its colour, and add it if it is new.

        Returns:
            None if single precision cannot represent the vertices.
        """
        color = None if part.color is None else tuple(numbers_to_list(part.color))
        key = (part.shape.digest, color)
        if key not in self.meshes:
            vertices, faces = _triangles(part.shape)
            with np.errstate(over="ignore"):
                single = vertices.astype("<f4")
            if part.shape.kind != "mesh" or not np.array_equal(single.astype(np.float64), vertices):
                self.inexact_shapes.add(part.shape.digest)
            if not np.isfinite(single).all():
                return None
            bounds = {"min": single.min(axis=0).tolist(), "max": single.max(axis=0).tolist()}
            positions = self.add_accessor(single, _FLOAT32_COMPONENT, "VEC3", len(single), **bounds)
            corners = self.add_accessor(
                faces.astype("<u4"), _UINT32_COMPONENT, "SCALAR", faces.size
            )
            primitive: Json = {"attributes": {"POSITION": positions}, "indices": corners}
            if color is not None:
                primitive["material"] = self.add_material(color)
            self.meshes[key] = self.add_entry("meshes", {"primitives": [primitive]})
        return self.meshes[key]

    def add_material(self, color: tuple[float, ...]) -> int:
        """Add a material of an sRGB colour with alpha and return its number."""
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in color[:3]]
        properties = {"baseColorFactor": [*linear, color[3]], "metallicFactor": 0.0}
        mode = {"alphaMode": "BLEND"} if color[3] < 1.0 else {}
        return self.add_entry("materials", {"pbrMetallicRoughness": properties, **mode})

    def add_accessor(
        self, values: Any, component: int, kind: str, count: int, **properties: Any
    ) -> int:
        """Add an array to the buffer and return the number of its accessor.

        Args:
            values: the array.
            component: component type of glTF.
            kind: type of an element, "VEC3" or "SCALAR".
            count: number of elements.
            properties: other properties of the accessor.
        """
        data = values.tobytes()
        view: Json = {"buffer": 0, "byteOffset": len(self.data), "byteLength": len(data)}
        number = self.add_entry("bufferViews", view)
        self.data += data
        accessor = {"bufferView": number, "componentType": component, "type": kind, "count": count}
        return self.add_entry("accessors", {**accessor, **properties})


def _triangles(shape: Shape) -> tuple[Any, Any]:
    """Return the (n, 3) vertices and (m, 3) faces that represent a shape [m]."""
    if shape.kind in ("box", "sphere", "cylinder", "capsule"):
        return solid_triangles(shape, fineness=_MESH_FINENESS)
    if shape.kind == "plane":
        corners = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
        return _PLANE_HALF_SIDE * corners, np.array([[0, 1, 2], [0, 2, 3]])
    if shape.kind == "cone":
        shape = frustum(shape.dimensions[0], 0.0, shape.dimensions[1])
    elif shape.kind == "height_field":
        shape = mesh_of_field(shape)
    elif shape.kind == "point_cloud":
        shape = mesh_of_cloud(shape)
    return np.asarray(shape.vertices), np.asarray(shape.faces)


def _pad(data: bytes, filler: bytes) -> bytes:
    """Return data with a length that is a multiple of 4."""
    return data + filler * (-len(data) % 4)
