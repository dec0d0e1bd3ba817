"""Module ``aminopy`` of scripts: transforms, and read-only views of a scene.

Quaternions have the order xyzw. Values are read by attribute or by subscript: ``frame.name`` or
``frame["name"]``. The original has no root frame, so a view hides the frame ``world``, and the
parent of a frame on it is ``""``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from tmkit._support.elementary import cos, sin
from tmkit._support.source_location import did_you_mean
from tmkit.formats.spec.build import WORLD, find_frame
from tmkit.graph import AttachedShape, SceneGraph, Shape
from tmkit.plans.values import Configuration
from tmkit.robots.mechanisms import MOVABLE_CLASSES
from tmkit.spatial import Pose

JointValues = Mapping[str, float]
"""Joint values of a scene by joint [rad or m], which are the configurations of scripts."""

_SHAPE_KINDS = ("box", "sphere", "cylinder", "cone", "grid", "text", "mesh")
"""Kinds of shapes in the original."""

_DIMENSIONS = {
    "sphere": ("radius",),
    "cylinder": ("radius", "height"),
    "cone": ("start_radius", "height"),
}
"""Names of the dimensions of shapes, except for those of a box."""


class Vector(tuple[float, ...]):
    """Numbers with the operations of a vector."""

    __slots__ = ()

    def __new__(cls, numbers: Iterable[float]) -> Vector:
        """Return the vector of some numbers."""
        return super().__new__(cls, map(float, numbers))

    def __add__(self, other: Iterable[float]) -> Vector:  # type: ignore[override]
        return type(self)(a + b for a, b in zip(self, other, strict=True))

    def __sub__(self, other: Iterable[float]) -> Vector:
        return type(self)(a - b for a, b in zip(self, other, strict=True))

    def __getattr__(self, name: str) -> float:
        if name not in ("x", "y", "z", "w")[: len(self)]:
            raise AttributeError(f"a vector of {len(self)} numbers has no '{name}'")
        return self["xyzw".index(name)]


class Quaternion(Vector):
    """Quaternion in the order xyzw."""

    __slots__ = ()

    def __mul__(self, other: Sequence[float]) -> Quaternion:  # type: ignore[override]
        a, b, c, d = self
        x, y, z, w = other
        return Quaternion(
            (
                d * x + a * w + b * z - c * y,
                d * y - a * z + b * w + c * x,
                d * z + a * y - b * x + c * w,
                d * w - a * x - b * y - c * z,
            )
        )


class _View:
    """Object whose attributes are also read by subscript."""

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


@dataclass(frozen=True)
class Transform(_View):
    """Rotation and translation [m]."""

    rotation: Quaternion
    translation: Vector

    @classmethod
    def of(cls, pose: Pose) -> Transform:
        """Return the transform of a pose."""
        return cls(Quaternion(pose.quat_xyzw), Vector(pose.translation))

    @property
    def pose(self) -> Pose:
        """Pose of the transform."""
        return Pose(list(self.translation), list(self.rotation))

    def __mul__(self, other: Transform) -> Transform:
        return Transform.of(self.pose @ other.pose)


@dataclass(frozen=True)
class ShapeView(_View):
    """Shape with its dimensions as attributes [m]."""

    shape: Shape

    def __getattr__(self, name: str) -> Any:
        kind, dimensions = self.shape.kind, self.shape.dimensions
        values: dict[str, Any] = dict(zip(_DIMENSIONS.get(kind, ()), dimensions, strict=False))
        if kind == "box":
            values["dimension"] = Vector(dimensions)
        elif kind == "cone":
            values["end_radius"] = 0.0
        if name not in values:
            raise AttributeError(f"a {kind} has no '{name}'{did_you_mean(name, values)}")
        return values[name]


@dataclass(frozen=True)
class GeometryView(_View):
    """Geometry of a frame."""

    part: AttachedShape

    @property
    def shape(self) -> ShapeView:
        """Shape of the geometry."""
        return ShapeView(self.part.shape)


@dataclass(frozen=True)
class FrameView(_View):
    """Frame of a scene."""

    graph: SceneGraph
    name: str

    @property
    def parent(self) -> str:
        """Name of the parent, or an empty text for the root."""
        parent = self.graph.parent(self.name)
        return "" if parent is None or parent == WORLD else parent

    @property
    def tf(self) -> Transform:
        """Pose in the parent, of a joint at zero."""
        return Transform.of(self.graph.local_pose(self.name))

    @property
    def geometry(self) -> list[GeometryView]:
        """All geometry of the frame."""
        return [GeometryView(part) for part in self.graph.shapes(self.name)]

    @property
    def collision(self) -> list[GeometryView]:
        """Geometry for collisions."""
        return [geometry for geometry in self.geometry if geometry.part.collision]


@dataclass(frozen=True)
class SceneView:
    """Scene as scripts read it.

    Attributes:
        graph: scene of tmkit.
        hidden: frames that the view does not have.
    """

    graph: SceneGraph
    hidden: frozenset[str] = frozenset({WORLD})

    @property
    def names(self) -> list[str]:
        """Names of the frames, sorted."""
        return sorted({*self.graph.frame_names} - self.hidden)

    def __getitem__(self, name: str) -> FrameView:
        frame = find_frame(self.graph, name)
        if frame is None or frame in self.hidden:
            raise NameError(f"the scene has no frame '{name}'{did_you_mean(name, self.names)}")
        return FrameView(self.graph, frame)

    def configuration(self, values: JointValues) -> Configuration:
        """Return the configuration (n_joints,) of joint values."""
        return self.graph.configuration(dict(values))

    def joint_values(self, q: Configuration) -> dict[str, float]:
        """Return the values of a configuration (n_joints,) by joint."""
        return dict(zip(self.graph.joint_names, map(float, q), strict=True))


@dataclass(frozen=True)
class Chain:
    """Joints from the root of a scene to a frame."""

    scene: SceneView
    tip: str


def vec(*numbers: float) -> Vector:
    """Return the vector of some numbers."""
    return Vector(numbers)


def quat(rotation: float | Sequence[float]) -> Quaternion:
    """Return a rotation as a quaternion; a number is the quaternion with this scalar part."""
    if isinstance(rotation, int | float):
        return Quaternion((0.0, 0.0, 0.0, rotation))
    x, y, z, w = rotation
    return Quaternion((x, y, z, w))


def _axis_rotation(axis: int, angle: float) -> Quaternion:
    """Return the rotation about an axis, by its index, by an angle [rad]."""
    vector = [0.0, 0.0, 0.0]
    vector[axis] = sin(angle / 2.0)
    return Quaternion((*vector, cos(angle / 2.0)))


def tf(value: Transform | Sequence[float]) -> Transform:
    """Return the transform of a translation, of a rotation, or of the numbers of both."""
    if isinstance(value, Transform):
        return value
    if len(value) == 3:
        return tf2(1, value)
    return tf2(value[:4], value[4:] or (0.0, 0.0, 0.0))


def tf2(rotation: float | Sequence[float], translation: Iterable[float]) -> Transform:
    """Return the transform of a rotation and a translation [m]."""
    x, y, z = translation
    return Transform(quat(rotation), Vector((x, y, z)))


def rotation(transform: Transform) -> Quaternion:
    """Return the rotation of a transform."""
    return transform.rotation


def translation(transform: Transform) -> Vector:
    """Return the translation of a transform [m]."""
    return transform.translation


def mul(*factors: Any) -> Any:
    """Return the product of numbers, vectors, quaternions and transforms, from left to right."""
    return reduce(_product, factors)


def _product(first: Any, second: Any) -> Any:
    if isinstance(first, Quaternion) and not isinstance(second, Quaternion):
        return Vector(Pose([0.0, 0.0, 0.0], list(first)).rotate(list(second)))
    if isinstance(first, Transform) and not isinstance(second, Transform):
        return Vector(first.pose.apply(list(second)))
    if isinstance(first, int | float) and not isinstance(second, int | float):
        return type(second)(first * number for number in second)
    return first * second


def inverse(value: Quaternion | Transform) -> Quaternion | Transform:
    """Return the inverse of a quaternion or transform."""
    if isinstance(value, Transform):
        return Transform.of(value.pose.inverse())
    square = math.fsum(number * number for number in value)
    return Quaternion((*(-number / square for number in value[:3]), value[3] / square))


def scene_chain(scene: SceneView, root: str, tip: str) -> Chain:
    """Return the chain from a frame to another; an empty root is that of the scene."""
    if root:
        scene[root]
    return Chain(scene, scene[tip].name)


def map_frames(function: Callable[[FrameView], Any], scene: SceneView) -> list[Any]:
    """Return the results of a function for all frames, sorted by name."""
    return [function(scene[name]) for name in scene.names]


def frame_isa(frame: FrameView, type: str) -> bool:
    """Return whether a frame has a class; ``moveable`` and ``movable`` are the same."""
    classes = MOVABLE_CLASSES if type in MOVABLE_CLASSES else (type,)
    return not {*frame.graph.classes(frame.name)}.isdisjoint(classes)


def frame_fixed_tf(frame: FrameView) -> Transform:
    """Return the pose of a frame in its parent, of a joint at zero."""
    return frame.tf


def scene_tf_abs(scene: SceneView, values: JointValues, name: str) -> Transform:
    """Return the pose of a frame in the world."""
    return Transform.of(scene.graph.pose(scene[name].name, q=scene.configuration(values)))


def scene_tf_rel(scene: SceneView, values: JointValues, parent: str, child: str) -> Transform:
    """Return the pose of a frame relative to another."""
    frame, reference = scene[child].name, scene[parent].name
    q = scene.configuration(values)
    return Transform.of(scene.graph.pose(frame, relative_to=reference, q=q))


def _is_kind(kind: str, shape: ShapeView) -> bool:
    return shape.shape.kind == kind


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f"{axis}angle": partial(_axis_rotation, index) for index, axis in enumerate("xyz")},
    **{f"shape_is_{kind}": partial(_is_kind, kind) for kind in _SHAPE_KINDS},
    "frame_fixed_tf": frame_fixed_tf,
    "frame_isa": frame_isa,
    "inverse": inverse,
    "map_frames": map_frames,
    "mul": mul,
    "quat": quat,
    "rotation": rotation,
    "scene_chain": scene_chain,
    "scene_tf_abs": scene_tf_abs,
    "scene_tf_rel": scene_tf_rel,
    "tf": tf,
    "tf2": tf2,
    "translation": translation,
    "vec": vec,
    "vec3": Vector,
}
"""Contents of the module by name."""
