"""Scenes as JSON: everything a scene is, and nothing of the computer it was written on.

``scene_from_dict(scene_to_dict(scene)) == scene``: numbers read back to the same bits, frames are
in insertion order, and unlimited limits are null. Keys are sorted: the same scene has the same
bytes.
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
from tmkit._support.source_location import SourceLocation, reported
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
from tmkit.formats.json.shapes import arrays_as_files, shape_from_dict, shape_key, shape_to_dict
from tmkit.formats.mesh.meshes import MESH_SUFFIXES, MeshLoader
from tmkit.formats.spec.build import build_scene
from tmkit.formats.spec.model import SceneSpecification
from tmkit.formats.spec.parts import PIECES
from tmkit.formats.spec.values import (
    completed,
    mesh_specification,
    spec_of_pose,
    specification_of_scene,
)
from tmkit.graph import SceneGraph
from tmkit.spatial import Pose

FORMAT = "tmkit-scene"
VERSION = 2
"""Version of the format. Version 1 had no checksums of mesh files, and the digests of their content instead."""

Json = dict[str, Any]


def scene_to_dict(scene: SceneGraph, *, loader: MeshLoader | None = None) -> Json:
    """Return the scene as a JSON document.

    Args:
        scene: the scene.
        loader: compares meshes with their files, by SHA-256.

    Returns:
        Objects, lists, texts, numbers, booleans and null only, with sorted keys; it holds no
        absolute path.
    """
    loader = loader if loader is not None else MeshLoader()
    shapes: dict[str, Json] = {}
    keys: dict[tuple[str, str, str], str] = {}
    frames = []
    sources = SourceList()
    for name in scene.frame_names:
        frame = scene.specification(name)
        described = frame_to_dict(frame, sources)
        for part, attached in zip(frame.shapes, described["shapes"], strict=True):
            shape = part.shape
            # equal meshes may be of different files
            told_apart = (shape.digest, shape.source, shape.checksums)
            if told_apart not in keys:
                entry = shape_to_dict(shape, loader)
                keys[told_apart] = key = shape_key(shape, entry)
                shapes.setdefault(key, entry)
            attached["shape"] = keys[told_apart]
        frames.append(described)
    document: Json = {
        "allowed": [list(pair) for pair in scene.allowed_pairs],
        "format": FORMAT,
        "frames": frames,
        "shapes": dict(sorted(shapes.items())),
        "version": VERSION,
    }
    if scene.group_names:  # said only where there is something to say, as attributes are
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
        document: what :func:`scene_to_dict` made.
        source: the file, or a name for it, for messages.
        loader: loads the meshes that are written by their source.
        folder: where files of points and heights are looked for; without one, the document may name
            none.

    Raises:
        FileFormatError: the document is of another format or version, incomplete or inconsistent,
            or a mesh is missing or has changed since.
    """
    loader = loader if loader is not None else MeshLoader()
    top = JsonNode(document, source)
    if top.get("format").value != FORMAT:
        raise top.get("format").error(f"expected '{FORMAT}', received {top.get('format').value!r}")
    version = top.get("version").value
    if version not in range(1, VERSION + 1) or isinstance(version, bool):
        reason = f"this tmkit reads versions 1 to {VERSION} of the format, received {version!r}"
        raise top.get("version").error(reason)
    top.only(
        "allowed", "bodies", "format", "frames", "groups", "noise_sources", "shapes", "version"
    )
    listed = top.get("shapes")
    shapes = {
        digest: shape_from_dict(digest, listed, loader, folder=folder) for digest in listed.table()
    }
    nodes = list(top.get("frames").items())
    loader.packages.limits.refuse_frames(len(nodes), top.get("frames").error)
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
    bare = [item.name() for item in top.get("bodies").items()] if "bodies" in document else []
    try:
        scene = SceneGraph.from_frames(frames, allowed=allowed, bodies_without_frames=bare)
    except TmkitError as error:
        raise _blamed(top, error).error(str(error)) from error
    return _with_groups(scene, top.get("groups")) if "groups" in document else scene


def _blamed(top: JsonNode, error: TmkitError) -> JsonNode:
    """Return the value that makes a scene impossible, as far as the core's error tells: a name twice, unknown, ..."""
    kind, name = error.data.get("kind"), error.data.get("name")
    nodes = list(top.get("frames").items())
    if isinstance(error, CycleError):
        frame, joint = error.data.get("frame"), error.data.get("joint")
        mimics = (
            node.get("joint").get("mimic")
            for node in nodes
            if _inside(node.value, ("joint", "name")) == joint
        )
        if joint is not None:
            return next(mimics, top)
        return next((node.get("parent") for node in nodes if node.value["name"] == frame), top)
    if isinstance(error, DuplicateNameError):
        where: tuple[str, ...] = ("name",) if kind == "frame" else ("joint", "name")
    elif isinstance(error, UnknownNameError):
        where = ("parent",) if kind == "frame" else ("joint", "mimic", "joint")
    else:
        return top
    found = [node for node in nodes if _inside(node.value, where) == name]
    if found:
        node = found[-1]
        for key in where:
            node = node.get(key)
        return node
    return next((pair for pair in top.get("allowed").items() if name in pair.value), top)


def _inside(value: Any, keys: tuple[str, ...]) -> Any:
    """Return what is found by keys within keys, ``None`` when it is not there."""
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
    """Write the scene as a JSON file; the file is there completely or not at all.

    Args:
        scene: the scene.
        path: the file.
        loader: see :func:`scene_to_dict`.
        arrays_beside: write the numbers of point clouds and height fields as ``.npy`` files beside
            the scene, named by their digests, instead of into it.

    Raises:
        OutputError: the file cannot be written.
    """
    document = scene_to_dict(scene, loader=loader)
    arrays = arrays_as_files(document["shapes"]) if arrays_beside else {}
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
    """Read a JSON scene file, by a loader with default settings if omitted.

    Args:
        path: the file.
        loader: loads its meshes.
        read_other: reads scene files that it includes, which are refused by default.
    """
    loader = loader if loader is not None else MeshLoader()
    document, text = read_json(path, limit=loader.packages.limits.json_bytes)
    included = (
        document.pop("include", None)
        if read_other is not None and isinstance(document, dict)
        else None
    )
    try:
        scene = scene_from_dict(document, source=str(path), loader=loader, folder=path.parent)
        if included is None or read_other is None:
            return scene
        nodes = [*JsonNode(included, str(path), "include").items()]
        _refuse_repeated_files(nodes)
        others = [_included(node, path.parent, loader, read_other) for node in nodes]
        return build_scene([specification_of_scene(scene, path=str(path)), *others], loader=loader)
    except FileFormatError as error:
        raise with_line(error, text) from error.__cause__


def _refuse_repeated_files(nodes: Sequence[JsonNode]) -> None:
    """Refuse a file that is included twice before any is read: its frames would have the same names."""
    seen = set()
    for node in nodes:
        name = node.get("file")
        if name.name() in seen:
            raise name.error(
                f"'{name.name()}' is included twice, and its frames would have the same names"
            )
        seen.add(name.name())


def _included(
    node: JsonNode,
    folder: Path,
    loader: MeshLoader,
    read_other: Callable[[Path], SceneSpecification],
) -> SceneSpecification:
    """Return the scene of a file that is included, whose frames get a place, and are told what they are."""
    node.only("file", "frames")
    place = SourceLocation(f"{node.path} ({node.way})")
    file = loader.packages.resolve(node.get("file").name(), folder=folder, place=place)
    if (suffix := file.suffix.lower()) not in (".urdf", ".sdf", *MESH_SUFFIXES):
        raise node.get("file").error("only URDF, SDF and meshes are included")
    scene = mesh_specification(file, place) if suffix in MESH_SUFFIXES else read_other(file)
    frames = {frame.name: frame for frame in scene.frames}
    changes = node.get("frames")
    changes.only(*frames)
    for name in changes.table():
        change, spec = changes.get(name), frames[name]
        change.only("classes", "friction", "level", "mass", "parent", "pose")
        told = {key: change.get(key) for key in change.table()}
        if "parent" in told:
            spec = replace(spec, parent=told["parent"].name(), parent_place=place)
        if "pose" in told:
            spec = replace(spec, pose=spec_of_pose(pose_from_dict(told["pose"])))
        frames[name] = completed(
            spec,
            classes=[item.text() for item in told["classes"].items()] if "classes" in told else (),
            mass=told["mass"].number() if "mass" in told else None,
            friction=told["friction"].number() if "friction" in told else None,
            level=told["level"].one_of((*COLLISION_LEVELS, PIECES)) if "level" in told else None,
            mass_place=place,
        )
    return replace(scene, frames=tuple(frames.values()))


def scene_dump(scene: SceneGraph) -> Json:
    """Return ``{"frames": [...]}``, one entry a frame in insertion order, for other programs, not for reading back.

    Each has ``name``, ``parent`` (null for a root), ``body``, ``type`` (fixed, revolute,
    continuous, prismatic, free; fixed for a root). It has ``translation`` (metres) and
    ``quat_xyzw`` of parent_from_frame at joint value 0. It has ``classes`` and ``joint`` (null when
    nothing moves, else ``axis``, ``lower``, ``upper`` and ``name``; null for no limit). Its
    ``geometry`` is a list of ``shape``, ``dimensions`` and ``pose`` (``translation``, ``quat_xyzw``
    of frame_from_shape).
    """
    return {"frames": [_dumped(scene, name) for name in scene.frame_names]}


def _dumped(scene: SceneGraph, name: str) -> Json:
    joint = scene.joint(name)
    values = joint_to_dict(joint)
    described = {key: values[key] for key in ("axis", "lower", "upper", "name") if key in values}
    shapes = [
        {
            "shape": part.shape.kind,
            "dimensions": list(part.shape.dimensions),
            "pose": _dumped_pose(part.pose),
        }
        for part in scene.shapes(name)
    ]
    return {
        "name": name,
        "parent": scene.parent(name),
        "body": scene.body(name),
        "type": joint.type,
        **_dumped_pose(scene.local_pose(name)),
        "joint": described or None,
        "classes": list(scene.classes(name)),
        "geometry": shapes,
    }


def _dumped_pose(pose: Pose) -> Json:
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
    """Return the scene with the groups of a document, which may hold each other in any order."""
    edit = scene.edit()
    for name in node.table():
        node.get(name).only("attribute_stamps", "attributes", "frames", "groups", "parents")
        with reported(node):
            edit.set_group(name)
    for name in node.table():
        group = node.get(name)
        kinds = ["frames", "groups", *(["parents"] if "parents" in group.table() else [])]
        members = {kind: [item.text() for item in group.get(kind).items()] for kind in kinds}
        attributes = attributes_from_dict(group)
        with reported(group):
            edit.set_group(name, **members, attributes=attributes)
    return edit.finish()
