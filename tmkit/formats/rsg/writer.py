"""Writer of complete scenes in RSG-DSL with its extensions.

Frames are written in the order of the scene, then groups and shapes. A frame without a pose, joint
or child is a geometric node or a node, and every other frame is a transform. A parent lists a frame
as a ``child``, unless a group below the parent lists it. Any other group lists it as a ``member``.

Invariant: the text reads back to an equal scene. Every number has the shortest digits with the same
bits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tmkit._core import Group
from tmkit.formats.json.frames import SourceList, attributes_to_dict, frame_to_dict, numbers_to_list
from tmkit.formats.json.shapes import shape_to_dict
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.rsg.grammar import SIZES
from tmkit.formats.rsg.nodes import HISTORY_CAPACITY, HISTORY_WINDOW
from tmkit.graph import AttachedShape, Fixed, FrameSpecification, SceneGraph, Shape
from tmkit.spatial import Pose


def rsg_from_scene(scene: SceneGraph, *, loader: MeshLoader | None = None) -> str:
    """Return a scene as text in RSG-DSL.

    Args:
        scene: scene to write.
        loader: loader that compares meshes with their source files. The text contains the arrays of
            a mesh that differs from its source.
    """
    return "".join(f"{line}\n" for line in _Writer(scene, loader or MeshLoader()).lines())


class _Writer:
    def __init__(self, scene: SceneGraph, loader: MeshLoader) -> None:
        self.scene = scene
        self.loader = loader
        self.groups = {name: scene.group(name) for name in scene.group_names}
        self.nodes = distinct_names(scene, self.groups)
        # Names of shapes by digest.
        self.shapes: dict[str, str] = {}
        self.contents: list[str] = []
        self.sources = SourceList()
        self.frames_above = self._frames_above()
        # Groups below each frame.
        self.groups_below: dict[str, list[str]] = {name: [] for name in scene.frame_names}
        for group in self.groups.values():
            for parent in group.parents:
                self.groups_below[parent].append(group.name)
        self.frames_in_groups = {
            frame
            for group in self.groups.values()
            for frame in group.frames
            if self.frames_above[group.name] == {scene.parent(frame)}
        }

    def lines(self) -> Iterator[str]:
        scene = self.scene
        yield from (f"root {quote_if_needed(name)}" for name in scene.root_names)
        for name in scene.frame_names:
            yield from self.frame(scene.specification(name))
        for group in self.groups.values():
            yield from self.group(group)
        yield from self.contents
        yield from (
            f"AllowCollision {quote_if_needed(a)} {quote_if_needed(b)} {json_text(reason)}"
            for a, b, reason in scene.allowed_pairs
        )
        yield from (f"Body {json_text(body)}" for body in scene.bodies_without_frames)
        if self.sources:
            yield f"NoiseSources {json_text(self.sources.to_list())}"

    def frame(self, frame: FrameSpecification) -> Iterator[str]:
        name = frame.name
        children = [
            child for child in self.scene.children(name) if child not in self.frames_in_groups
        ]
        has_motion = (
            frame.pose != Pose.identity() or frame.joint != Fixed() or frame.stamps is not None
        )
        is_leaf = not (
            has_motion
            or frame.noise is not None
            or self.scene.children(name)
            or self.groups_below[name]
        )
        if frame.parent is None:
            kind = "Group"
        elif not is_leaf:
            kind = "Transform"
        else:
            kind = "GeometricNode" if frame.shapes else "Node"
        yield f"{kind} {quote_if_needed(name)} {{"
        document = frame_to_dict(frame, self.sources)
        yield from _attribute_lines(frame)
        yield from (f"  isa {json_text(word)}" for word in frame.classes)
        if frame.body != name:
            yield f"  body {json_text(frame.body)}"
        yield from (f"  child {quote_if_needed(child)}" for child in children)
        yield from (
            f"  child {quote_if_needed(self.nodes[group])}" for group in self.groups_below[name]
        )
        if frame.joint != Fixed():
            yield f"  joint {json_text(document['joint'])}"
        for key in ("inertia", "twist", "noise"):
            if document.get(key) is not None:
                yield f"  {key} {json_text(document[key])}"
        yield from _motion_lines(frame)
        for part in frame.shapes:
            yield f"  geometry {quote_if_needed(self.shape(part.shape))}{_options_text(part)}"
        yield "}"

    def group(self, group: Group) -> Iterator[str]:
        frames_above = self.frames_above[group.name]
        node = self.nodes[group.name]
        yield f"Group {quote_if_needed(node)} {{"
        if node != group.name:
            yield f"  called {json_text(group.name)}"
        if not group.parents and not any(
            group.name in other.groups for other in self.groups.values()
        ):
            yield "  unplaced"
        yield from _attribute_lines(group)
        for frame in group.frames:
            parent = self.scene.parent(frame)
            yield (
                f"  {'child' if parent is not None and frames_above <= {parent} else 'member'}"
                f" {quote_if_needed(frame)}"
            )
        yield from (f"  child {quote_if_needed(self.nodes[child])}" for child in group.groups)
        yield "}"

    def shape(self, shape: Shape) -> str:
        """Return the name of a shape, and declare it at its first use."""
        if shape.digest not in self.shapes:
            kind = shape.kind.title().replace("_", "")
            name = self.shapes[shape.digest] = f"{shape.kind}_{len(self.shapes) + 1}"
            if kind in SIZES:
                sizes = zip(SIZES[kind], shape.dimensions, strict=True)
                self.contents.append(
                    f"{kind} {name} {{ {' '.join(f'{word} {size!r} m' for word, size in sizes)} }}"
                )
            else:
                kind = kind if kind in ("Mesh", "PointCloud") else "Shape"
                self.contents.append(
                    f"{kind} {name} data {json_text(shape_to_dict(shape, self.loader))}"
                )
        return self.shapes[shape.digest]

    def _frames_above(self) -> dict[str, set[str]]:
        """Return the frames above each group, as in the reader."""
        holders: dict[str, list[str]] = {name: [] for name in self.groups}
        for group in self.groups.values():
            for child in group.groups:
                holders[child].append(group.name)
        frames_above: dict[str, set[str]] = {}
        for start in self.groups:
            stack = [start]
            while stack:
                name = stack[-1]
                missing = [holder for holder in holders[name] if holder not in frames_above]
                if missing:
                    stack += missing
                    continue
                frames_above[name] = {*self.groups[name].parents}.union(
                    *(frames_above[holder] for holder in holders[name])
                )
                stack.pop()
        return frames_above


def distinct_names(scene: SceneGraph, groups: Iterable[str]) -> dict[str, str]:
    """Return a node name for each group, distinct from those of frames and other groups."""
    taken = {*scene.frame_names, *groups}
    names = {}
    for group in groups:
        name, number = group, 1
        while name in scene or (number > 1 and name in taken):
            number += 1
            name = f"{group} ({number})"
        taken.add(name)
        names[group] = name
    return names


def attribute_lines(values: Mapping[str, object], stamps: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines of attributes, one for each text of a list of texts.

    Args:
        values: values by key.
        stamps: time of values by key [s].
    """
    for key, value in values.items():
        is_list = (
            isinstance(value, list)
            and len(value) > 1
            and all(isinstance(item, str) for item in value)
        )
        stamp = f", TimeStamp ( {stamps[key]!r} s )" if key in stamps else ""
        for item in value if isinstance(value, list) and is_list else [value]:
            yield f"  Attribute ({json_text(key)}, {json_text(item)}{stamp})"


def _attribute_lines(owner: FrameSpecification | Group) -> Iterator[str]:
    document = attributes_to_dict(owner)
    yield from attribute_lines(document.get("attributes", {}), document.get("attribute_stamps", {}))


def _motion_lines(frame: FrameSpecification) -> Iterator[str]:
    """Yield the lines of the pose and the history of a frame."""
    rigid = []
    newest_covariance = np.zeros((6, 6))
    stamps = frame.stamps
    times = [] if stamps is None else numbers_to_list(stamps.stamps)
    if stamps is not None:
        window = None if stamps.window == float("inf") else stamps.window
        default = max(HISTORY_WINDOW, times[-1] - times[0]) if times else None
        if (stamps.capacity, window) != (max(HISTORY_CAPACITY, len(times)), default):
            yield f"  history {json_text({'capacity': stamps.capacity, 'window': window})}"
        rows = zip(times, stamps.poses, stamps.covariances, strict=True)
        for number, (time, pose, covariance) in enumerate(rows, 1):
            rigid.append(
                f"    RigidTransform t{number} {{ stamp TimeStamp ( {time!r} s ) value"
                f" {_pose_text(pose)}{_covariance_text(covariance)} }}"
            )
            if covariance is not None:
                newest_covariance = covariance
    newest = stamps.poses[-1] if stamps is not None and times else Pose.identity()
    # A reader gives the present pose the covariance of the newest pose with one.
    is_exact = frame.noise is None and newest_covariance.any()
    if frame.pose != newest or is_exact:
        covariance = np.zeros((6, 6)) if is_exact else None
        rigid.append(
            f"    RigidTransform t0 {{ value {_pose_text(frame.pose)}"
            f"{_covariance_text(covariance)} }}"
        )
    if rigid:
        yield from ("  transforms {", *rigid, "  }")


def _covariance_text(covariance: np.ndarray | None) -> str:
    """Return six variances if they are all, else 36 numbers."""
    if covariance is None:
        return ""
    variances = np.diag(covariance)
    numbers = variances if np.array_equal(np.diag(variances), covariance) else covariance
    return f" covariance {json_text(numbers_to_list(numbers))}"


def _pose_text(pose: Pose) -> str:
    """Return a matrix for an axis-aligned rotation, else position and quaternion."""
    rows = pose.rotation.tolist()
    x = numbers_to_list(pose.translation)
    is_axis_aligned = all(value in (0.0, 1.0, -1.0) for row in rows for value in row)
    if is_axis_aligned and Pose.from_rotation_matrix(x, rows) == pose:
        lines = [
            f"[{', '.join(map(repr, row))}, {end!r} m]" for row, end in zip(rows, x, strict=True)
        ]
        return f"HomogeneousTransformationMatrix ({', '.join([*lines, '[0.0, 0.0, 0.0, 1.0]'])})"
    quaternion = ", ".join(map(repr, numbers_to_list(pose.quat_xyzw)))
    return f"Pose ([{', '.join(map(repr, x))} m], [{quaternion}])"


def _options_text(part: AttachedShape) -> str:
    """Return the options of a shape on a frame."""
    options: dict[str, Any] = {}
    if part.pose != Pose.identity():
        options["pose"] = numbers_to_list(part.pose.as_array())
    if part.color is not None:
        options["color"] = numbers_to_list(part.color)
    options |= {key: False for key in ("visual", "collision") if not getattr(part, key)}
    options |= {
        key: value
        for key in ("level", "friction", "stamp")
        if (value := getattr(part, key)) is not None
    }
    if not options:
        return ""
    return f" {{ {' '.join(f'{key} {json_text(value)}' for key, value in options.items())} }}"


def json_text(value: object) -> str:
    """Return a value as JSON with sorted keys."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)


def quote_if_needed(name: str) -> str:
    """Return a name, as quoted text if it is not a word."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else json_text(name)
