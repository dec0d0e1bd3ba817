"""Generator of C++ headers that build scenes, for programs without Python.

A header needs only the scene graph of tmkit's core.

Invariant: ``content_bytes()`` of the scene of a header equals that of the original.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tmkit._core import EdgeNoise
from tmkit.graph import AttachedShape, Joint, NoiseSource, SceneGraph, Shape
from tmkit.graph.attributes import attribute_text
from tmkit.graph.traversal import stamped_attributes
from tmkit.spatial import Pose

_JOINT_NUMBERS = ("lower", "upper", "velocity", "effort", "damping", "friction")
"""Names of the numbers of a joint."""


_CONDITION = '#if __cplusplus >= 202002L && __has_include("tmkit/scene_edit.hpp")'
"""Condition of a scene in a header with interfaces."""


def cpp_of_scene(scene: SceneGraph, *, name: str, source: str = "", interfaces: str = "") -> str:
    """Return the text of a header with a function ``scene()`` that builds a scene.

    Args:
        scene: the scene.
        name: namespace of the function.
        source: description of the scene, for the first line.
        interfaces: text of a header with interfaces of function blocks. The result begins with it,
            and needs tmkit for ``scene()`` alone.
    """
    title = " ".join((source or name).split())
    function = [*_Header(scene).function()]
    needs = [
        "// scene() needs the library tmkit_graph of tmkit's CMakeLists.txt, which needs the"
        " standard library alone."
    ]
    if interfaces:
        needs = ["", *needs, "// Without its headers and C++20, it is left out.", _CONDITION]
        opening = [*interfaces.splitlines(), *needs]
    else:
        opening = [
            f"// {title}: a scene, written by 'tmkit scene compile'.",
            *needs,
            "#pragma once",
        ]
        opening.append("")
    lines = [
        *opening,
        "#include <utility>",
        "#include <vector>",
        "",
        '#include "tmkit/scene_edit.hpp"',
        "",
        f"namespace {name} {{",
        "",
        *function,
        "",
        f"}}  // namespace {name}",
        *(["#endif"] if interfaces else []),
    ]
    return "".join(f"{line}\n" for line in lines)


class _Header:
    """Generator of the code of a scene.

    Attributes:
        scene: the scene.
        shapes: variable and expression of each shape, by digest and source.
        sources: variable of each noise source.
    """

    def __init__(self, scene: SceneGraph) -> None:
        self.scene = scene
        self.shapes: dict[str, tuple[str, str]] = {}
        self.sources: dict[NoiseSource, str] = {}

    def function(self) -> Iterator[str]:
        """Yield the lines of the function ``scene()``."""
        frames = [line for frame in self.scene.frame_names for line in self.frame(frame)]
        yield "inline tmkit::SceneGraph scene() {"
        yield "    using namespace tmkit;"
        for noise, variable in self.sources.items():
            expression = f"new NoiseSource({noise.dimension}, {_text(noise.label)})"
            yield f"    const Ref<const NoiseSource> {variable}({expression});"
        for variable, expression in self.shapes.values():
            yield f"    const auto {variable} = {expression};"
        yield "    std::vector<FrameSpecification> frames;"
        yield f"    frames.reserve({len(self.scene)});"
        yield from frames
        yield "    SceneEdit edit{SceneGraph()};"
        yield from (
            f"    edit.add_body({_text(body)});" for body in self.scene.bodies_without_frames
        )
        yield "    edit.add_frames(frames);"
        yield from (
            f"    edit.allow_collision({', '.join(map(_text, pair))});"
            for pair in self.scene.allowed_pairs
        )
        yield from (
            f"    edit.set_group({{{_text(group)}, {{}}, {{}}}});"
            for group in self.scene.group_names
        )
        for group in map(self.scene.group, self.scene.group_names):
            members = (group.frames, group.groups, group.parents)
            lists = ", ".join(_texts(names) for names in members)
            yield (
                f"    edit.set_group({{{_text(group.name)}, {lists},"
                f" {_attributes(stamped_attributes(group))}}});"
            )
        yield from ("    return std::move(edit).take();", "}")

    def frame(self, name: str) -> Iterator[str]:
        """Yield the lines of a frame."""
        frame = self.scene.specification(name)
        yield "    {"
        yield f"        FrameSpecification& f = frames.emplace_back();  // {json.dumps(name)}"
        yield f"        f.name = {_text(name)};"
        yield f"        f.parent = {_text(frame.parent or '')};"
        yield f"        f.body = {_text(frame.body)};"
        if frame.pose != Pose.identity():
            yield f"        f.pose = {_pose(frame.pose)};"
        yield from (f"        f.joint.{line};" for line in _joint(frame.joint))
        if frame.classes:
            yield f"        f.classes = {_texts(frame.classes)};"
        for part in frame.shapes:
            yield f"        f.shapes.push_back({self.shape_attachment(part)});"
        if frame.inertia is not None:
            numbers = f"{_list(frame.inertia.center)}, {_list(np.ravel(frame.inertia.matrix))}"
            yield f"        f.inertia = Inertia{{{_number(frame.inertia.mass)}, {numbers}}};"
        if frame.attributes:
            yield f"        f.attributes = {_attributes(stamped_attributes(frame))};"
        if frame.twist is not None:
            yield (
                f"        f.twist = TwistEdge{{{_text(frame.twist[0])}, {_list(frame.twist[1])},"
                " {}};"
            )
        if frame.stamps is not None:
            yield "        const Ref<StampedPoses> stamps(new StampedPoses);"
            yield f"        stamps->capacity = {frame.stamps.capacity};"
            yield f"        stamps->window = {_number(frame.stamps.window)};"
            for stamp, pose, covariance in zip(
                frame.stamps.stamps, frame.stamps.poses, frame.stamps.covariances, strict=True
            ):
                yield f"        stamps->entries.push_back({{{_number(stamp)}, {_pose(pose)}}});"
                if covariance is not None:
                    yield (
                        "        stamps->entries.back().covariance = Ref<const"
                        f" StampCovariance>(new StampCovariance({_covariance(covariance)}));"
                    )
            yield "        f.stamps = stamps;"
        for target, noise in (("f.noise", frame.noise), ("f.twist->noise", frame.twist_noise)):
            if noise is not None:
                yield from (f"        {line}" for line in self.noise(target, noise))
        yield "    }"

    def shape_attachment(self, part: AttachedShape) -> str:
        """Return the expression of a shape on a frame."""
        color = (0.7, 0.7, 0.7, 1.0) if part.color is None else part.color
        flags = [
            str(flag).lower() for flag in (part.color is not None, part.visual, part.collision)
        ]
        friction, stamp = (
            "{}" if value is None else _number(value) for value in (part.friction, part.stamp)
        )
        level = "{}" if part.level is None else f"CollisionLevel::{part.level}"
        arguments = [
            self.shape(part.shape),
            _pose(part.pose),
            _list(color),
            *flags,
            friction,
            level,
            stamp,
        ]
        return f"AttachedShape{{{', '.join(arguments)}}}"

    def shape(self, shape: Shape) -> str:
        """Return the variable of a shape."""
        key = f"{shape.digest}{shape.source}"
        if key not in self.shapes:
            self.shapes[key] = f"{shape.kind}_{len(self.shapes) + 1}", _shape(shape)
        return self.shapes[key][0]

    def noise(self, target: str, noise: EdgeNoise) -> Iterator[str]:
        """Yield the lines that assign the noise of an edge to a variable."""
        name = "twist_noise" if "twist" in target else "noise"
        yield f"const Ref<EdgeNoise> {name}(new EdgeNoise);"
        yield f"{name}->covariance = {_covariance(noise.covariance)};"
        column = 0
        for source in noise.sources:
            variable = self.sources.setdefault(source, f"noise_{len(self.sources) + 1}")
            yield f"{name}->terms.push_back({{{variable}, {column}}});"
            yield from (
                f"{name}->maps.push_back({_list(row)});" for row in np.transpose(noise.map(source))
            )
            column += source.dimension
        yield f"{target} = {name};"


def _covariance(matrix: np.ndarray) -> str:
    return f'Covariance::checked({_list(np.ravel(matrix))}, "covariance")'


def _joint(joint: Joint) -> Iterator[str]:
    """Yield the assignments to the fields of a joint."""
    if not joint.is_stated:
        yield "is_stated = false"
    if joint.type == "fixed":
        return
    yield f"type = JointType::{joint.type}"
    if not joint.is_actuated:
        return
    yield f"name = {_text(joint.name)}"
    yield f"axis = {_list(joint.axis)}"
    yield from (f"{key} = {_number(getattr(joint, key))}" for key in _JOINT_NUMBERS)
    if joint.mimic is not None:
        yield f"mimic = {_text(joint.mimic.joint)}"
        yield f"mimic_multiplier = {_number(joint.mimic.multiplier)}"
        yield f"mimic_offset = {_number(joint.mimic.offset)}"


def _shape(shape: Shape) -> str:
    """Return the expression of a shape."""
    if shape.kind == "plane":
        return "Shape::plane()"
    if shape.kind == "mesh":
        faces = ", ".join(map(str, np.ravel(shape.faces).tolist()))
        return f"Shape::mesh({_list(np.ravel(shape.vertices))}, {{{faces}}}, {_text(shape.source)})"
    sizes = [*map(_number, shape.dimensions)]
    if shape.kind == "point_cloud":
        return (
            f"Shape::point_cloud({_list(np.ravel(shape.points))}, {sizes[0]},"
            f" {_text(shape.source)})"
        )
    if shape.kind == "height_field":
        heights, columns = _list(np.ravel(shape.heights)), shape.heights.shape[1]
        return (
            f"Shape::height_field({heights}, {columns}, {{{sizes[0]}, {sizes[1]}}}, {sizes[2]},"
            f" {_text(shape.source)})"
        )
    return f"Shape::primitive(ShapeKind::{shape.kind}, {{{', '.join(sizes)}}})"


def _pose(pose: Pose) -> str:
    return f"Pose{{{_list(pose.translation)}, {_list(pose.quat_xyzw)}}}"


def _attributes(values: Mapping[str, Any]) -> str:
    pairs = [
        f"{{{_text(key)}, {_text(attribute_text(key, value))}}}"
        for key, value in sorted(values.items())
    ]
    return f"{{{', '.join(pairs)}}}"


def _texts(texts: Iterable[str]) -> str:
    return f"{{{', '.join(map(_text, texts))}}}"


def cpp_literal(text: str) -> str:
    """Return a text as a C++ literal of its UTF-8 bytes, with special bytes in octal."""
    escapes = {ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\077"}  # ?? begins a trigraph
    literal = "".join(
        escapes.get(byte, chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
        for byte in text.encode("utf-8")
    )
    return f'"{literal}"'


def _text(text: str) -> str:
    """Return a text as an expression that becomes a ``std::string``."""
    literal = cpp_literal(text)
    return f"std::string({literal}, {len(text.encode('utf-8'))})" if "\0" in text else literal


def _number(value: float) -> str:
    number = float(value)
    if np.isfinite(number):
        return repr(number)
    return f"{'-' if number < 0 else ''}JointNumbers::unlimited"


def _list(values: Iterable[Any]) -> str:
    return f"{{{', '.join(map(_number, values))}}}"
