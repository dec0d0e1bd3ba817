"""Lossless, portable JSON documents of scenes.

``scene_from_dict(scene_to_dict(scene)) == scene``: numbers read back to the same bits, frames are
in insertion order, and unlimited limits are null. Keys are sorted, so equal scenes have equal
bytes. A document contains no absolute path.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tmkit._core import Group
from tmkit._support.json_files import read_json
from tmkit._support.output import write_files
from tmkit._support.source_location import SourceLocation, locate_errors
from tmkit.errors import (
    CycleError,
    DuplicateNameError,
    FileFormatError,
    TmkitError,
    UnknownNameError,
)
from tmkit.formats.json.frames import (
    COLLISION_LEVELS,
    SourceList,
    attributes_from_dict,
    attributes_to_dict,
    frame_from_dict,
    frame_to_dict,
    joint_to_dict,
    numbers_to_list,
    pose_from_dict,
    sources_from_dict,
)
from tmkit.formats.json.reading import JsonNode, with_line
from tmkit.formats.json.shapes import extract_array_files, shape_from_dict, shape_key, shape_to_dict
from tmkit.formats.mesh.meshes import MESH_SUFFIXES, MeshLoader
from tmkit.formats.spec.build import build_scene
from tmkit.formats.spec.model import SceneSpecification
from tmkit.formats.spec.parts import PIECES
from tmkit.formats.spec.values import (
    extend_frame,
    mesh_specification,
    spec_of_pose,
    specification_of_scene,
)
from tmkit.graph import SceneGraph
from tmkit.spatial import Pose

FORMAT = "tmkit-scene"
"""Name of the format, the value of the key ``format``."""

VERSION = 2
"""Version of the format. Version 1 had content digests instead of checksums of mesh files."""

Json = dict[str, Any]


def scene_to_dict(scene: SceneGraph, *, loader: MeshLoader | None = None) -> Json:
    """Return the scene as a JSON document.

    Args:
        scene: the scene.
        loader: compares meshes with their files, by SHA-256.

    Returns:
        Objects, lists, texts, numbers, booleans and null only, with sorted keys and without
        absolute paths.
    """
    loader = loader if loader is not None else MeshLoader()
    shapes: dict[str, Json] = {}
    keys: dict[tuple[str, str, str], str] = {}
    frames = []
    sources = SourceList()
    for name in scene.frame_names:
        frame = scene.specification(name)
        frame_document = frame_to_dict(frame, sources)
        for part, attached in zip(frame.shapes, frame_document["shapes"], strict=True):
            shape = part.shape
            # Equal meshes may come from different files.
            identity = (shape.digest, shape.source, shape.checksums)
            if identity not in keys:
                entry = shape_to_dict(shape, loader)
                keys[identity] = key = shape_key(shape, entry)
                shapes.setdefault(key, entry)
            attached["shape"] = keys[identity]
        frames.append(frame_document)
    document: Json = {
        "allowed": [list(pair) for pair in scene.allowed_pairs],
        "format": FORMAT,
        "frames": frames,
        "shapes": dict(sorted(shapes.items())),
        "version": VERSION,
    }
    if scene.group_names:
        document["groups"] = {name: _group_to_dict(scene.group(name)) for name in scene.group_names}
    if sources:
        document["noise_sources"] = sources.to_list()
    if scene.bodies_without_frames:
        document["bodies"] = list(scene.bodies_without_frames)
    return document


def scene_from_dict(
    document: Mapping[str, Any],
    *,
    source: str = "scene",
    loader: MeshLoader | None = None,
    folder: Path | None = None,
) -> SceneGraph:
    """Return the scene of a JSON document.

    Args:
        document: document as :func:`scene_to_dict` returns it.
        source: path or name of the document, for messages.
        loader: loader of the meshes that are stored by their source.
        folder: folder of the files of points and heights. Without one, the document must not refer
            to any.

    Raises:
        FileFormatError: if the document is of another format or version, incomplete or
            inconsistent, or if a mesh is missing or has changed since.
    """
    loader = loader if loader is not None else MeshLoader()
    top = JsonNode(document, source)
    if top.get("format").value != FORMAT:
        raise top.get("format").error(f"expected '{FORMAT}', received {top.get('format').value!r}")
    version = top.get("version").value
    if version not in range(1, VERSION + 1) or isinstance(version, bool):
        reason = f"this tmkit reads versions 1 to {VERSION} of the format, received {version!r}"
        raise top.get("version").error(reason)
    top.require_keys_among(
        "allowed", "bodies", "format", "frames", "groups", "noise_sources", "shapes", "version"
    )
    entries = top.get("shapes")
    shapes = {key: shape_from_dict(key, entries, loader, folder=folder) for key in entries.table()}
    nodes = list(top.get("frames").items())
    loader.packages.limits.check_frame_count(len(nodes), top.get("frames").error)
    sources = sources_from_dict(top.get("noise_sources")) if "noise_sources" in document else []
    frames = [
        frame_from_dict(node, shapes, sources, in_file=folder is not None, note=loader.note)
        for node in nodes
    ]
    allowed: list[tuple[str, str, str]] = []
    for pair in top.get("allowed").items():
        words = [item.text() for item in pair.items()]
        if len(words) != 3:
            raise pair.error(f"expected two frames and a reason, received {len(words)} items")
        allowed.append((words[0], words[1], words[2]))
    bodies = [item.name() for item in top.get("bodies").items()] if "bodies" in document else []
    try:
        scene = SceneGraph.from_frames(frames, allowed=allowed, bodies_without_frames=bodies)
    except TmkitError as error:
        raise _faulty_value(top, error).error(str(error)) from error
    return _with_groups(scene, top.get("groups")) if "groups" in document else scene


def _faulty_value(top: JsonNode, error: TmkitError) -> JsonNode:
    """Return the value that causes an error of the core, such as an unknown or repeated name.

    Returns the whole document if the data of the error do not identify the value.
    """
    kind, name = error.data.get("kind"), error.data.get("name")
    nodes = list(top.get("frames").items())
    if isinstance(error, CycleError):
        frame, joint = error.data.get("frame"), error.data.get("joint")
        mimics = (
            node.get("joint").get("mimic")
            for node in nodes
            if _value_at(node.value, ("joint", "name")) == joint
        )
        if joint is not None:
            return next(mimics, top)
        return next((node.get("parent") for node in nodes if node.value["name"] == frame), top)
    if isinstance(error, DuplicateNameError):
        keys: tuple[str, ...] = ("name",) if kind == "frame" else ("joint", "name")
    elif isinstance(error, UnknownNameError):
        keys = ("parent",) if kind == "frame" else ("joint", "mimic", "joint")
    else:
        return top
    matches = [node for node in nodes if _value_at(node.value, keys) == name]
    if matches:
        node = matches[-1]
        for key in keys:
            node = node.get(key)
        return node
    return next((pair for pair in top.get("allowed").items() if name in pair.value), top)


def _value_at(value: Any, keys: tuple[str, ...]) -> Any:
    """Return the value at nested keys, or ``None`` if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def write_json_scene(
    scene: SceneGraph,
    path: str | os.PathLike[str],
    *,
    loader: MeshLoader | None = None,
    arrays_beside: bool = False,
) -> None:
    """Write a scene as a JSON file, completely or not at all.

    Args:
        scene: the scene.
        path: path of the file.
        loader: see :func:`scene_to_dict`.
        arrays_beside: write the arrays of point clouds and height fields as ``.npy`` files in the
            same folder, named by their digests, instead of into the file.

    Raises:
        OutputError: if the file cannot be written.
    """
    document = scene_to_dict(scene, loader=loader)
    arrays = extract_array_files(document["shapes"]) if arrays_beside else {}
    target = Path(path)
    write_files(
        {
            **{target.with_name(name): data for name, data in arrays.items()},
            target: json_text(document),
        }
    )


def json_text(document: Json) -> str:
    """Return the text of a document, with sorted keys."""
    return json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"


def read_json_scene(
    path: Path,
    *,
    loader: MeshLoader | None = None,
    read_other: Callable[[Path], SceneSpecification] | None = None,
) -> SceneGraph:
    """Read a JSON scene file.

    Args:
        path: path of the file.
        loader: loader of meshes. Defaults to a loader with default settings.
        read_other: function that reads included scene files. By default, includes are rejected.
    """
    loader = loader if loader is not None else MeshLoader()
    document, text = read_json(path, limit=loader.packages.limits.json_bytes)
    includes = None
    if read_other is not None and isinstance(document, dict):
        includes = document.pop("include", None)
    try:
        scene = scene_from_dict(document, source=str(path), loader=loader, folder=path.parent)
        if includes is None or read_other is None:
            return scene
        nodes = [*JsonNode(includes, str(path), "include").items()]
        _reject_repeated_includes(nodes)
        specifications = [
            specification_of_scene(scene, path=str(path)),
            *(_read_include(node, path.parent, loader, read_other) for node in nodes),
        ]
        return build_scene(specifications, loader=loader)
    except FileFormatError as error:
        raise with_line(error, text) from error.__cause__


def _reject_repeated_includes(nodes: Sequence[JsonNode]) -> None:
    """Reject a file that is included twice, before any is read.

    The frames of both would have the same names.
    """
    names = set()
    for node in nodes:
        file = node.get("file")
        if file.name() in names:
            raise file.error(
                f"'{file.name()}' is included twice, and its frames would have the same names"
            )
        names.add(file.name())


def _read_include(
    node: JsonNode,
    folder: Path,
    loader: MeshLoader,
    read_other: Callable[[Path], SceneSpecification],
) -> SceneSpecification:
    """Return the specification of an included file, with the changes to its frames.

    Args:
        node: entry of the include, with the file and the changes by frame.
        folder: folder of the including file.
        loader: resolver of the included file.
        read_other: function that reads the included file.
    """
    node.require_keys_among("file", "frames")
    place = SourceLocation(f"{node.path} ({node.key_path})")
    file = loader.packages.resolve(node.get("file").name(), folder=folder, place=place)
    if (suffix := file.suffix.lower()) not in (".urdf", ".sdf", *MESH_SUFFIXES):
        raise node.get("file").error("only URDF, SDF and meshes are included")
    scene = mesh_specification(file, place) if suffix in MESH_SUFFIXES else read_other(file)
    frames = {frame.name: frame for frame in scene.frames}
    changes = node.get("frames")
    changes.require_keys_among(*frames)
    for name in changes.table():
        change, spec = changes.get(name), frames[name]
        change.require_keys_among("classes", "friction", "level", "mass", "parent", "pose")
        values = {key: change.get(key) for key in change.table()}
        if "parent" in values:
            spec = replace(spec, parent=values["parent"].name(), parent_place=place)
        if "pose" in values:
            spec = replace(spec, pose=spec_of_pose(pose_from_dict(values["pose"])))
        levels = (*COLLISION_LEVELS, PIECES)
        frames[name] = extend_frame(
            spec,
            classes=[item.text() for item in values["classes"].items()]
            if "classes" in values
            else (),
            mass=values["mass"].number() if "mass" in values else None,
            friction=values["friction"].number() if "friction" in values else None,
            level=values["level"].one_of(levels) if "level" in values else None,
            mass_place=place,
        )
    return replace(scene, frames=tuple(frames.values()))


def scene_dump(scene: SceneGraph) -> Json:
    """Return the frames of a scene as a list for other programs, which tmkit does not read back.

    The result is ``{"frames": [...]}``, with an entry for each frame in insertion order:

    * ``name``, ``parent`` (null for a root), ``body``;
    * ``type``: fixed, revolute, continuous, prismatic or free; fixed for a root;
    * ``translation`` [m] and ``quat_xyzw`` of parent_from_frame at joint value 0;
    * ``classes``;
    * ``joint``: null if fixed, else ``axis``, ``lower``, ``upper`` (null if unlimited), ``name``;
    * ``geometry``: a list of ``shape``, ``dimensions`` and ``pose`` (``translation`` and
      ``quat_xyzw`` of frame_from_shape).
    """
    return {"frames": [_dump_frame(scene, name) for name in scene.frame_names]}


def _dump_frame(scene: SceneGraph, name: str) -> Json:
    joint = scene.joint(name)
    values = joint_to_dict(joint)
    joint_dump = {key: values[key] for key in ("axis", "lower", "upper", "name") if key in values}
    shapes = [
        {
            "shape": part.shape.kind,
            "dimensions": list(part.shape.dimensions),
            "pose": _dump_pose(part.pose),
        }
        for part in scene.shapes(name)
    ]
    return {
        "name": name,
        "parent": scene.parent(name),
        "body": scene.body(name),
        "type": joint.type,
        **_dump_pose(scene.local_pose(name)),
        "joint": joint_dump or None,
        "classes": list(scene.classes(name)),
        "geometry": shapes,
    }


def _dump_pose(pose: Pose) -> Json:
    return {
        "translation": numbers_to_list(pose.translation),
        "quat_xyzw": numbers_to_list(pose.quat_xyzw),
    }


def _group_to_dict(group: Group) -> Json:
    parents = {"parents": [*group.parents]} if group.parents else {}
    return (
        {"frames": [*group.frames], "groups": [*group.groups]} | parents | attributes_to_dict(group)
    )


def _with_groups(scene: SceneGraph, node: JsonNode) -> SceneGraph:
    """Return the scene with the groups of a document, which may contain each other in any order."""
    edit = scene.edit()
    for name in node.table():
        node.get(name).require_keys_among(
            "attribute_stamps", "attributes", "frames", "groups", "parents"
        )
        with locate_errors(node):
            edit.set_group(name)
    for name in node.table():
        group = node.get(name)
        kinds = ["frames", "groups", *(["parents"] if "parents" in group.table() else [])]
        members = {kind: [item.text() for item in group.get(kind).items()] for kind in kinds}
        attributes = attributes_from_dict(group)
        with locate_errors(group):
            edit.set_group(name, **members, attributes=attributes)
    return edit.finish()
