"""Scenes in glTF 2.0: each node is a frame fixed to that of the node above, with its meshes as shapes.

Names that are taken get the number of the node. The y-axis, which is up in glTF, becomes z. Scales are applied to the
meshes. What our writer puts into ``extras`` (joints, masses, exact shapes, ...) is a scene in JSON without the names,
parents and poses, which are always those of the nodes.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from tmkit._support.elementary import dot, product
from tmkit._support.import_notes import Note
from tmkit._support.limits import read_bytes
from tmkit._support.source_location import SourceLocation
from tmkit.errors import FileFormatError
from tmkit.formats.json.frames import numbers_to_list
from tmkit.formats.json.scene import FORMAT, VERSION, scene_from_dict
from tmkit.formats.json.shapes import shape_to_dict
from tmkit.formats.mesh.gltf import Document, chunks, transform
from tmkit.formats.mesh.materials import OPEN, unpacked
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.graph import Mesh, SceneGraph
from tmkit.spatial import Pose

Json = dict[str, Any]
EXTRAS = "tmkit"
UP = Pose((0.0, 0.0, 0.0), (0.5**0.5, 0.0, 0.0, 0.5**0.5))  # takes glTF's y to z
_DROPPED = ("animations", "cameras", "skins", "textures")
_ERRORS = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, struct.error)


def read_gltf_scene(path: Path, *, loader: MeshLoader, note: Note) -> SceneGraph:
    """Read a ``.gltf`` or ``.glb`` file.

    Raises:
        FileFormatError: it is no valid glTF, too large, or names a buffer outside its folder.
    """
    limits = loader.packages.limits
    data = read_bytes(path, limit=limits.mesh_bytes)
    try:
        document, binary = chunks(path, data, limits)
        made = _scene(Document(path, document, binary, limits), loader)
    except FileFormatError:
        raise
    except _ERRORS as error:
        reason = f"{type(error).__name__}: {error}".split("\n")[0]
        raise FileFormatError.at(path, f"is no valid glTF 2.0: {reason}") from error
    for kind in _DROPPED:
        if document.get(kind):
            note(SourceLocation(str(path)), f"{len(document[kind])} {kind} have no part in a scene, and are left out")
    return scene_from_dict(made, source=str(path), loader=loader, folder=path.parent)


def _scene(file: Document, loader: MeshLoader) -> Json:
    """Return the scene as a JSON document."""
    ours: Json = dict(file.document.get("extras", {}).get(EXTRAS, {}))
    made = {"allowed": [], **ours, "format": FORMAT, "version": VERSION, "shapes": dict(ours.get("shapes", {}))}
    frames: dict[int | None, Json] = {None: {"name": None}}
    stretches: dict[int | None, Any] = {None: np.eye(3)}
    listed, taken, triangles = list[tuple[int, Json]](), {"world"}, 0
    for number, above, node in file.nodes():
        loader.packages.limits.refuse_frames(number, SourceLocation(str(file.path)).error)
        pose, stretches[number] = _placed(node, stretches[above])
        extras = node.get("extras") or {}
        for primitive in file.primitives(node["mesh"]) if "mesh" in node else ():
            triangles += file.corners(primitive) // 3
        if triangles > loader.packages.limits.mesh_triangles:
            raise ValueError(f"more than {loader.packages.limits.mesh_triangles} triangles")
        if f"{EXTRAS}_shape" in extras:
            frames[number] = frames[above]
            parts = _parts(file, node, stretches[number], extras[f"{EXTRAS}_shape"], made["shapes"], loader)
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
        frame = frames[number] = {**usual, **own, "name": name, "parent": parent, "pose": pose, "shapes": []}
        if frame.pop("is_root", False):
            frame |= {"parent": None, "pose": [0.0] * 6 + [1.0]}
        identity = [0.0] * 6 + [1.0]
        parts = _parts(file, node, stretches[number], {}, made["shapes"], loader) if "mesh" in node else []
        frame["shapes"] = [{**part, "pose": identity} for part in parts]
        listed.append((frame.pop("index", number), frame))
    parents, names = ({frame[key] for _, frame in listed} for key in ("parent", "name"))
    if ("world" in parents and "world" not in names) or not (listed or ours):
        root: Json = {"body": "world", "classes": [], "inertia": None, "joint": {"type": "fixed"}, "shapes": []}
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


def _parts(file: Document, node: Json, stretch: Any, own: Json, shapes: Json, loader: MeshLoader) -> list[Json]:
    """Return the shapes of a node, one a primitive, or the one that our writer gave."""
    usual = {"collision": True, "color": None, "friction": None, "visual": True}
    source = str(own.get("source", ""))
    own = {key: value for key, value in own.items() if key != "source"}
    is_plain = (stretch == np.eye(3)).all()
    if is_plain and own.get("shape") in shapes:
        return [{**usual, **own}]
    parts = []
    for primitive in file.primitives(node["mesh"]) if "mesh" in node else ():
        vertices, faces, color = file.vertices(primitive), file.faces(primitive), file.color(primitive)
        if not is_plain:
            vertices = product(vertices, stretch.T)
            faces = faces[:, ::-1] if np.linalg.det(stretch) < 0.0 else faces
        shape = Mesh(vertices, np.ascontiguousarray(faces).astype(np.int32), source=source)
        shapes.setdefault(shape.digest, shape_to_dict(shape, loader))
        shown = {} if color == OPEN else {"color": list(unpacked(color))}
        parts.append({**usual, **shown, **own, "shape": shape.digest})
    return parts
