"""Scenes as JSON: everything a scene is, and nothing of the computer it was written on.

``scene_from_json(scene_to_json(scene)) == scene``: numbers are written so that they read back to the same bits,
frames in insertion order, and unlimited limits as null. Keys are sorted, so that the same scene has the same bytes.

Shapes are listed once each under their content digest; :mod:`tmkit.formats.json_shapes` says how.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmkit.errors import CycleError, DuplicateNameError, FileFormatError, TmkitError, UnknownNameError
from tmkit.files.output import write_bytes, write_text
from tmkit.files.reading import read_bytes
from tmkit.formats.json_noise import SourceList, noise_from_json, sources_from_json
from tmkit.formats.json_poses import numbers_to_json, pose_from_json, stamps_from_json, stamps_to_json
from tmkit.formats.json_reading import JsonNode, with_line
from tmkit.formats.json_shapes import arrays_as_files, shape_from_json, shape_to_json
from tmkit.formats.meshes import MeshLoader
from tmkit.graph import (
    AttachedShape,
    Continuous,
    Fixed,
    FrameSpecification,
    Free,
    Group,
    Inertia,
    Joint,
    Mimic,
    NoiseSource,
    Prismatic,
    Revolute,
    SceneGraph,
    Shape,
)

__all__ = ["FORMAT", "VERSION", "read_json_scene", "scene_from_json", "scene_to_json", "write_json_scene"]

FORMAT = "tmkit-scene"
VERSION = 1

_FRAME_KEYS = (
    "attributes",
    "body",
    "classes",
    "inertia",
    "joint",
    "name",
    "parent",
    "pose",
    "shapes",
    "stamps",
    "twist",
)
COLLISION_LEVELS = ("box", "hull", "exact")
JOINT_TYPES = ("fixed", "revolute", "continuous", "prismatic", "free")

Json = dict[str, Any]


def scene_to_json(scene: SceneGraph, *, loader: MeshLoader | None = None) -> Json:
    """Return the scene as a JSON document.

    Args:
        scene: the scene.
        loader: looks up whether a mesh's source still holds the same content; give one that has read the meshes already
            to save reading them again.

    Returns:
        Objects, lists, texts, numbers, booleans and null only, with sorted keys; it holds no absolute path.
    """
    loader = loader if loader is not None else MeshLoader()
    shapes: dict[str, Json] = {}
    frames = []
    sources = SourceList()
    for name in scene.frame_names:
        frame = scene.specification(name)
        for part in frame.shapes:
            if part.shape.digest not in shapes:
                shapes[part.shape.digest] = shape_to_json(part.shape, loader)
        frames.append(_frame_to_json(frame, sources))
    document: Json = {
        "allowed": [list(pair) for pair in scene.allowed_pairs],
        "format": FORMAT,
        "frames": frames,
        "shapes": dict(sorted(shapes.items())),
        "version": VERSION,
    }
    if scene.group_names:  # said only where there is something to say, as attributes are
        document["groups"] = {name: _group_to_json(scene.group(name)) for name in scene.group_names}
    if sources:
        document["noise_sources"] = sources.to_json()
    if scene.bare_bodies:
        document["bodies"] = list(scene.bare_bodies)
    return document


def scene_from_json(
    document: Mapping[str, Any],
    *,
    source: str = "scene",
    loader: MeshLoader | None = None,
    folder: Path | None = None,
) -> SceneGraph:
    """Return the scene of a JSON document.

    Args:
        document: what :func:`scene_to_json` made.
        source: the file, or a name for it, for messages.
        loader: loads the meshes that are written by their source.
        folder: where files of points and heights are looked for; without one, the document may name none.

    Raises:
        FileFormatError: the document is of another format or version, incomplete or inconsistent, or a mesh is
            missing or has changed since.
    """
    loader = loader if loader is not None else MeshLoader()
    top = JsonNode(document, source)
    if top.get("format").value != FORMAT:
        raise top.get("format").error(f"expected '{FORMAT}', received {top.get('format').value!r}")
    if top.get("version").value != VERSION or isinstance(top.get("version").value, bool):
        reason = f"this tmkit reads version {VERSION} of the format, received {top.get('version').value!r}"
        raise top.get("version").error(reason)
    top.only("allowed", "bodies", "format", "frames", "groups", "noise_sources", "shapes", "version")
    listed = top.get("shapes")
    shapes = {digest: shape_from_json(digest, listed, loader, folder=folder) for digest in listed.table()}
    nodes = list(top.get("frames").items())
    loader.packages.limits.refuse_frames(len(nodes), top.get("frames").error)
    sources = sources_from_json(top.get("noise_sources")) if "noise_sources" in document else []
    frames = [_frame_from_json(node, shapes, sources) for node in nodes]
    allowed: list[tuple[str, str, str]] = []
    for pair in top.get("allowed").items():
        words = [item.text() for item in pair.items()]
        if len(words) != 3:
            raise pair.error(f"expected two frames and a reason, received {len(words)} items")
        allowed.append((words[0], words[1], words[2]))
    bare = [item.name() for item in top.get("bodies").items()] if "bodies" in document else []
    try:
        scene = SceneGraph.from_frames(frames, allowed=allowed, bare_bodies=bare)
    except TmkitError as error:
        raise _blamed(top, error).error(str(error)) from error
    return _with_groups(scene, top.get("groups")) if "groups" in document else scene


def _blamed(top: JsonNode, error: TmkitError) -> JsonNode:
    """Return the value that makes a scene impossible, as far as the core's error tells: a name twice, unknown, ..."""
    kind, name = error.data.get("kind"), error.data.get("name")
    nodes = list(top.get("frames").items())
    if isinstance(error, CycleError):
        return next((node.get("parent") for node in nodes if node.value["name"] == error.data["frame"]), top)
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
        loader: see :func:`scene_to_json`.
        arrays_beside: write the numbers of point clouds and height fields as ``.npy`` files beside the scene, named by
            their digests, instead of into it.

    Raises:
        OutputError: the file cannot be written.
    """
    document = scene_to_json(scene, loader=loader)
    if arrays_beside:
        for name, data in arrays_as_files(document["shapes"]).items():
            write_bytes(Path(path).with_name(name), data)
    write_text(Path(path), json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_json_scene(path: Path, *, loader: MeshLoader | None = None) -> SceneGraph:
    """Read a JSON scene file.

    Raises:
        FileFormatError: the file cannot be read, is no JSON, or is no scene.
    """
    loader = loader if loader is not None else MeshLoader()
    data = read_bytes(path, limit=loader.packages.limits.json_bytes)
    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        lines = error.doc.split("\n")
        raise FileFormatError.at(
            path,
            f"no JSON: {error.msg}",
            line=error.lineno,
            column=error.colno,
            source_line=lines[error.lineno - 1][:200],
        ) from None
    except RecursionError:
        raise FileFormatError.at(path, "no JSON of a scene: it is nested too deeply") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise FileFormatError.at(path, f"no JSON: not UTF-8 text: {error.reason}", line=line) from None
    except ValueError:
        raise FileFormatError.at(path, "no JSON of a scene: a number has more digits than can be read") from None
    try:
        return scene_from_json(document, source=str(path), loader=loader, folder=path.parent)
    except FileFormatError as error:
        raise with_line(error, data.decode(json.detect_encoding(data), errors="replace")) from error.__cause__


def _limit(value: float) -> float | None:
    """Return a limit, ``None`` for infinity."""
    return value if math.isfinite(value) else None


def _joint_to_json(joint: Joint) -> Json:
    if joint.type in ("fixed", "free"):
        return {"type": joint.type}
    mimic = joint.mimic
    return {
        "axis": numbers_to_json(joint.axis),
        "damping": joint.damping,
        "effort": _limit(joint.effort),
        "friction": joint.friction,
        "lower": _limit(joint.lower),
        "mimic": None
        if mimic is None
        else {"joint": mimic.joint, "multiplier": mimic.multiplier, "offset": mimic.offset},
        "name": joint.name,
        "type": joint.type,
        "upper": _limit(joint.upper),
        "velocity": _limit(joint.velocity),
    }


def _joint_from_json(node: JsonNode) -> Joint:
    kind = node.get("type").one_of(JOINT_TYPES)
    if kind in ("fixed", "free"):
        node.only("type")
        return Fixed() if kind == "fixed" else Free()
    node.only("axis", "damping", "effort", "friction", "lower", "mimic", "name", "type", "upper", "velocity")
    rule = node.get("mimic")
    mimic = None
    if rule.value is not None:
        multiplier, offset = rule.get("multiplier").number(), rule.get("offset").number()
        mimic = Mimic(rule.get("joint").text(), multiplier=multiplier, offset=offset)
    axis, name = node.get("axis").numbers(3), node.get("name").text()
    velocity, effort = node.get("velocity").limit(math.inf), node.get("effort").limit(math.inf)
    damping, friction = node.get("damping").number(), node.get("friction").number()
    lower, upper = node.get("lower").limit(-math.inf), node.get("upper").limit(math.inf)
    try:
        if kind == "continuous":
            return Continuous(
                axis, velocity=velocity, effort=effort, damping=damping, friction=friction, name=name, mimic=mimic
            )
        make = Revolute if kind == "revolute" else Prismatic
        return make(
            axis,
            lower=lower,
            upper=upper,
            velocity=velocity,
            effort=effort,
            damping=damping,
            friction=friction,
            name=name,
            mimic=mimic,
        )
    except TmkitError as error:
        raise node.error(str(error)) from error


def _inertia_to_json(inertia: Inertia | None) -> Json | None:
    if inertia is None:
        return None
    return {"center": numbers_to_json(inertia.center), "mass": inertia.mass, "matrix": numbers_to_json(inertia.matrix)}


def _inertia_from_json(node: JsonNode) -> Inertia | None:
    if node.value is None:
        return None
    node.only("center", "mass", "matrix")
    matrix = np.reshape(node.get("matrix").numbers(9), (3, 3))
    try:
        return Inertia(node.get("mass").number(), node.get("center").numbers(3), matrix=matrix)
    except TmkitError as error:
        raise node.error(str(error)) from error


def _attached_to_json(part: AttachedShape) -> Json:
    level = {} if part.level is None else {"level": part.level}
    return level | {
        "collision": part.collision,
        "color": None if part.color is None else numbers_to_json(part.color),
        "friction": part.friction,
        "pose": numbers_to_json(part.pose.as_array()),
        "shape": part.shape.digest,
        "visual": part.visual,
    }


def _attached_from_json(node: JsonNode, shapes: Mapping[str, Shape]) -> AttachedShape:
    node.only("collision", "color", "friction", "level", "pose", "shape", "visual")
    digest = node.get("shape").text()
    if digest not in shapes:
        raise node.get("shape").error(f"no shape of digest '{digest}' in 'shapes'")
    color = None if node.get("color").value is None else node.get("color").numbers(4)
    visual, collision = node.get("visual").flag(), node.get("collision").flag()
    friction = None if node.get("friction").value is None else node.get("friction").number()
    level = node.get("level").one_of(COLLISION_LEVELS) if "level" in node.table() else None
    pose = pose_from_json(node.get("pose"))
    try:
        return AttachedShape(
            shapes[digest], pose, color=color, visual=visual, collision=collision, friction=friction, level=level
        )
    except TmkitError as error:
        raise node.error(str(error)) from error


def _group_to_json(group: Group) -> Json:
    return {"frames": list(group.frames), "groups": list(group.groups)}


def _with_groups(scene: SceneGraph, node: JsonNode) -> SceneGraph:
    """Return the scene with the groups of a document, which may hold each other in any order."""
    edit = scene.edit()
    for name in node.table():
        node.get(name).only("frames", "groups")
        try:
            edit.set_group(name)
        except TmkitError as error:
            raise node.error(str(error)) from error
    for name in node.table():
        members = {kind: [item.text() for item in node.get(name).get(kind).items()] for kind in ("frames", "groups")}
        try:
            edit.set_group(name, frames=members["frames"], groups=members["groups"])
        except TmkitError as error:
            raise node.get(name).error(str(error)) from error
    return edit.finish()


def _frame_to_json(frame: FrameSpecification, sources: SourceList) -> Json:
    document: Json = {"attributes": frame.attributes} if frame.attributes else {}
    if frame.noise is not None:
        document["noise"] = sources.noise_to_json(frame.noise)
    if frame.twist is not None:
        reference, vector = frame.twist
        document["twist"] = {"reference": reference, "vector": numbers_to_json(vector)}
    if frame.stamps is not None:
        document["stamps"] = stamps_to_json(frame.stamps)
    return document | {
        "body": frame.body,
        "classes": list(frame.classes),
        "inertia": _inertia_to_json(frame.inertia),
        "joint": _joint_to_json(frame.joint),
        "name": frame.name,
        "parent": frame.parent,
        "pose": numbers_to_json(frame.pose.as_array()),
        "shapes": [_attached_to_json(part) for part in frame.shapes],
    }


def _frame_from_json(node: JsonNode, shapes: Mapping[str, Shape], sources: list[NoiseSource]) -> FrameSpecification:
    known = ("attributes", "body", "classes", "inertia", "joint", "name", "noise", "parent", "pose", "shapes", "stamps")
    node.only(*known, "twist")
    parent = node.get("parent")
    return FrameSpecification(
        node.get("name").name(),
        None if parent.value is None else parent.name(),
        pose=pose_from_json(node.get("pose")),
        joint=_joint_from_json(node.get("joint")),
        body=node.get("body").name(),
        classes=[item.text() for item in node.get("classes").items()],
        shapes=[_attached_from_json(item, shapes) for item in node.get("shapes").items()],
        inertia=_inertia_from_json(node.get("inertia")),
        attributes=node.get("attributes").table() if "attributes" in node.table() else None,
        twist=_twist_from_json(node.get("twist")) if "twist" in node.table() else None,
        stamps=stamps_from_json(node.get("stamps")) if "stamps" in node.table() else None,
        noise=noise_from_json(node.get("noise"), sources) if "noise" in node.table() else None,
    )


def _twist_from_json(node: JsonNode) -> tuple[str, Sequence[float]]:
    node.only("reference", "vector")
    return node.get("reference").name(), node.get("vector").numbers(6)
