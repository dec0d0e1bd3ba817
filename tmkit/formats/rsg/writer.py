"""Scenes in RSG-DSL: everything that a scene is; what the language cannot say, its extensions do.

Frames are written in the order of the scene, groups and shapes behind them. A frame without a pose,
joint or child of its own is a geometric node or a node, every other a transform. Its parent names
it as a child, unless a group does that is below its parent; a group that is elsewhere names it as a
``member``.

Invariant: what is written reads back to an equal scene; every number has the shortest digits that
    give the same bits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tmkit._core import Group
from tmkit.formats.json.frames import SourceList, attributes_to_dict, frame_to_dict, numbers_to_list
from tmkit.formats.json.shapes import shape_to_dict
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.rsg.nodes import HISTORY_CAPACITY, HISTORY_WINDOW
from tmkit.graph import AttachedShape, Fixed, FrameSpecification, SceneGraph, Shape
from tmkit.spatial import Pose

_SIZES = {
    "box": ("sizeX", "sizeY", "sizeZ"),
    "sphere": ("radius",),
    "cylinder": ("radius", "height"),
    "cone": ("radius", "height"),
    "capsule": ("radius", "height"),
}


def rsg_from_scene(scene: SceneGraph, *, loader: MeshLoader | None = None) -> str:
    """Return a scene as text in RSG-DSL; arrays are written unless the loader finds the same in a mesh's source."""
    return "".join(f"{line}\n" for line in _Writer(scene, loader or MeshLoader()).lines())


class _Writer:
    def __init__(self, scene: SceneGraph, loader: MeshLoader) -> None:
        self.scene = scene
        self.loader = loader
        self.groups = {name: scene.group(name) for name in scene.group_names}
        self.nodes = _distinct(scene, self.groups)
        self.shapes: dict[str, str] = {}  # names by digest
        self.contents: list[str] = []
        self.sources = SourceList()
        self.above = self._frames_above()
        # groups below frames
        self.below: dict[str, list[str]] = {name: [] for name in scene.frame_names}
        for group in self.groups.values():
            for parent in group.parents:
                self.below[parent].append(group.name)
        self.in_groups = {
            frame
            for group in self.groups.values()
            for frame in group.frames
            if self.above[group.name] == {scene.parent(frame)}
        }

    def lines(self) -> Iterator[str]:
        scene = self.scene
        yield from (f"root {_name(name)}" for name in scene.root_names)
        for name in scene.frame_names:
            yield from self.frame(scene.specification(name))
        for group in self.groups.values():
            yield from self.group(group)
        yield from self.contents
        yield from (
            f"AllowCollision {_name(a)} {_name(b)} {_json(reason)}"
            for a, b, reason in scene.allowed_pairs
        )
        yield from (f"Body {_json(body)}" for body in scene.bodies_without_frames)
        if self.sources:
            yield f"NoiseSources {_json(self.sources.to_list())}"

    def frame(self, frame: FrameSpecification) -> Iterator[str]:
        name = frame.name
        children = [child for child in self.scene.children(name) if child not in self.in_groups]
        has_motion = (
            frame.pose != Pose.identity() or frame.joint != Fixed() or frame.stamps is not None
        )
        is_leaf = not (
            has_motion or frame.noise is not None or self.scene.children(name) or self.below[name]
        )
        kind = "Group" if frame.parent is None else "Transform" if not is_leaf else "GeometricNode"
        kind = "Node" if kind == "GeometricNode" and not frame.shapes else kind
        yield f"{kind} {_name(name)} {{"
        document = frame_to_dict(frame, self.sources)
        yield from _attributes(frame)
        yield from (f"  isa {_json(word)}" for word in frame.classes)
        if frame.body != name:
            yield f"  body {_json(frame.body)}"
        yield from (f"  child {_name(child)}" for child in children)
        yield from (f"  child {_name(self.nodes[group])}" for group in self.below[name])
        if frame.joint != Fixed():
            yield f"  joint {_json(document['joint'])}"
        for key in ("inertia", "twist", "noise"):
            if document.get(key) is not None:
                yield f"  {key} {_json(document[key])}"
        yield from _motion(frame)
        for part in frame.shapes:
            yield f"  geometry {_name(self.shape(part.shape))}{_options(part)}"
        yield "}"

    def group(self, group: Group) -> Iterator[str]:
        above = self.above[group.name]
        node = self.nodes[group.name]
        yield f"Group {_name(node)} {{"
        if node != group.name:
            yield f"  called {_json(group.name)}"
        if not group.parents and not any(
            group.name in other.groups for other in self.groups.values()
        ):
            yield "  unplaced"
        yield from _attributes(group)
        for frame in group.frames:
            parent = self.scene.parent(frame)
            yield (
                f"  {'child' if parent is not None and above <= {parent} else 'member'}"
                f" {_name(frame)}"
            )
        yield from (f"  child {_name(self.nodes[one])}" for one in group.groups)
        yield "}"

    def shape(self, shape: Shape) -> str:
        """Return the name of a shape, which is declared once."""
        if shape.digest not in self.shapes:
            kind = shape.kind.title().replace("_", "")
            name = self.shapes[shape.digest] = f"{shape.kind}_{len(self.shapes) + 1}"
            if shape.kind in _SIZES:
                sizes = zip(_SIZES[shape.kind], shape.dimensions, strict=True)
                self.contents.append(
                    f"{kind} {name} {{ {' '.join(f'{word} {size!r} m' for word, size in sizes)} }}"
                )
            else:
                kind = kind if kind in ("Mesh", "PointCloud") else "Shape"
                self.contents.append(
                    f"{kind} {name} data {_json(shape_to_dict(shape, self.loader))}"
                )
        return self.shapes[shape.digest]

    def _frames_above(self) -> dict[str, set[str]]:
        """Return the frames that each group is below, as the reader finds them."""
        holders: dict[str, list[str]] = {name: [] for name in self.groups}
        for group in self.groups.values():
            for one in group.groups:
                holders[one].append(group.name)
        above: dict[str, set[str]] = {}
        for start in self.groups:
            waiting = [start]
            while waiting:
                name = waiting[-1]
                missing = [holder for holder in holders[name] if holder not in above]
                if missing:
                    waiting += missing
                    continue
                above[name] = {*self.groups[name].parents}.union(
                    *(above[holder] for holder in holders[name])
                )
                waiting.pop()
        return above


def _distinct(scene: SceneGraph, groups: Iterable[str]) -> dict[str, str]:
    """Return for each group a name that no frame and no other group has."""
    taken = {*scene.frame_names, *groups}
    found = {}
    for group in groups:
        name, number = group, 1
        while name in scene or (number > 1 and name in taken):
            number += 1
            name = f"{group} ({number})"
        taken.add(name)
        found[group] = name
    return found


def _attributes(owner: FrameSpecification | Group) -> Iterator[str]:
    document = attributes_to_dict(owner)
    stamps = document.get("attribute_stamps", {})
    for key, value in document.get("attributes", {}).items():
        several = (
            isinstance(value, list)
            and len(value) > 1
            and all(isinstance(one, str) for one in value)
        )
        stamp = f", TimeStamp ( {stamps[key]!r} s )" if key in stamps else ""
        for one in value if several else [value]:
            yield f"  Attribute ({_json(key)}, {_json(one)}{stamp})"


def _motion(frame: FrameSpecification) -> Iterator[str]:
    """Yield where a frame is, and was."""
    rigid = []
    stamps = frame.stamps
    times = [] if stamps is None else numbers_to_list(stamps.stamps)
    if stamps is not None:
        window = None if stamps.window == float("inf") else stamps.window
        default = max(HISTORY_WINDOW, times[-1] - times[0]) if times else None
        if (stamps.capacity, window) != (max(HISTORY_CAPACITY, len(times)), default):
            yield f"  history {_json({'capacity': stamps.capacity, 'window': window})}"
        for number, (time, pose) in enumerate(zip(times, stamps.poses, strict=True), 1):
            rigid.append(
                f"    RigidTransform t{number} {{ stamp TimeStamp ( {time!r} s ) value"
                f" {_pose(pose)} }}"
            )
    newest = stamps.poses[-1] if stamps is not None and times else Pose.identity()
    if frame.pose != newest:
        rigid.append(f"    RigidTransform t0 {{ value {_pose(frame.pose)} }}")
    if rigid:
        yield from ("  transforms {", *rigid, "  }")


def _pose(pose: Pose) -> str:
    """Return a matrix where its rotation is of ones and zeros, else position and quaternion."""
    rows = pose.rotation.tolist()
    x = numbers_to_list(pose.translation)
    plain = all(value in (0.0, 1.0, -1.0) for row in rows for value in row)
    if plain and Pose.from_rotation_matrix(x, rows) == pose:
        lines = [
            f"[{', '.join(map(repr, row))}, {end!r} m]" for row, end in zip(rows, x, strict=True)
        ]
        return f"HomogeneousTransformationMatrix ({', '.join([*lines, '[0.0, 0.0, 0.0, 1.0]'])})"
    quaternion = ", ".join(map(repr, numbers_to_list(pose.quat_xyzw)))
    return f"Pose ([{', '.join(map(repr, x))} m], [{quaternion}])"


def _options(part: AttachedShape) -> str:
    """Return what is said of a shape on a frame beside its content."""
    given: dict[str, Any] = {}
    if part.pose != Pose.identity():
        given["pose"] = numbers_to_list(part.pose.as_array())
    if part.color is not None:
        given["color"] = numbers_to_list(part.color)
    given |= {key: False for key in ("visual", "collision") if not getattr(part, key)}
    given |= {
        key: value
        for key in ("level", "friction", "stamp")
        if (value := getattr(part, key)) is not None
    }
    return (
        f" {{ {' '.join(f'{key} {_json(value)}' for key, value in given.items())} }}"
        if given
        else ""
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)


def _name(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else _json(name)
