"""Objects of MoveIt's planning scene, in the scene of a live world.

Messages are applied as MoveIt does. A collision object becomes a frame of its id, with its shapes,
and with subframes ``id/name`` below. Objects of the world are below the root of the scene, and
attached objects below their link. Movable objects stand on the surface below them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit._core import (
    AttachedShape,
    Box,
    Cone,
    Cylinder,
    Fixed,
    Free,
    Mesh,
    Plane,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit._support.closing import Closing
from tmkit._support.limits import ReadingLimits
from tmkit.errors import SceneError, TmkitError, UnknownNameError
from tmkit.spatial import Pose
from tmkit.world.buffer import Buffer
from tmkit.world.detections import rest_on_support
from tmkit.world.messages import pose_of
from tmkit.world.ros2.node import Delivery, RosNode


class _Operation(IntEnum):
    """Operation of a collision object."""

    ADD = 0
    REMOVE = 1
    APPEND = 2
    MOVE = 3


_ORIGIN = "planning_scene"
"""Attribute of the frames of collision objects: ``world`` or ``attached``."""

_MAX_TRIANGLES = ReadingLimits().mesh_triangles
"""Largest number of triangles of a mesh."""

_PRIMITIVES: Mapping[int, tuple[str, int, Callable[..., Shape]]] = {
    1: ("box", 3, lambda x, y, z: Box([x, y, z])),
    2: ("sphere", 1, Sphere),
    3: ("cylinder", 2, lambda height, radius: Cylinder(radius, height)),
    4: ("cone", 2, lambda height, radius: Cone(radius, height)),
}
"""Name, number of dimensions and shape of a primitive, by its type."""


def apply_planning_scene(
    scene: SceneGraph,
    message: object,
    *,
    q: NDArray[np.float64] | None = None,
    classes: Mapping[str, Sequence[str]] | None = None,
) -> tuple[SceneGraph, tuple[str, ...]]:
    """Return a scene with the objects of a planning scene, and the faults of objects.

    A faulty object is as before. If the message is not a difference, objects of earlier messages
    that it lacks are removed. Octomaps, padding, scales and allowed collisions are ignored.

    Args:
        scene: scene with the links of the robot.
        message: ``moveit_msgs/PlanningScene``.
        q: (n_joints,) configuration. Defaults to the zero configuration.
        classes: classes of new objects, by id.
    """
    update = _Update(scene, message, q, classes or {})
    update.apply()
    return update.scene, tuple(update.faults)


class PlanningSceneSource(Closing):
    """Subscription that applies ``moveit_msgs/PlanningScene`` messages to a live world.

    Use it as a context manager, or call :meth:`close`. Objects are placed at the newest values of
    the joints by :meth:`Buffer.set_joint_states`.

    Args:
        buffer: live world with the links of the robot.
        topic: topic of planning scenes, complete or as differences.
        classes: classes of new objects by id, such as ``{"cup": ["movable"]}``.

    Raises:
        MissingExtraError: if rclpy or moveit_msgs of ROS 2 cannot be imported.
    """

    def __init__(
        self,
        buffer: Buffer,
        *,
        topic: str = "/monitored_planning_scene",
        classes: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._buffer, self._topic, self._classes = buffer, topic, classes
        self._faults: deque[str] = deque(maxlen=100)
        self._ros = RosNode("tmkit_planning_scene")
        self._ros.subscribe(
            "moveit_msgs.msg.PlanningScene", topic, self._receive, delivery=Delivery.RELIABLE
        )
        self._ros.start()

    @property
    def rejections(self) -> tuple[str, ...]:
        """Reasons of the last 100 rejections of objects."""
        return tuple(self._faults)

    def close(self) -> None:
        """End the subscription."""
        self._ros.close()

    def _receive(self, message: Any) -> None:
        """Apply a message."""
        q = self._buffer.latest_configuration().q

        def edit(scene: SceneGraph) -> SceneGraph:
            values = np.where(np.isfinite(q), q, scene.zero_configuration())
            version, faults = apply_planning_scene(scene, message, q=values, classes=self._classes)
            self._faults.extend(f"{self._topic}: {fault}" for fault in faults)
            return version

        self._buffer.update(edit)


class _Update:
    """Application of one message: the scene so far, and the faults of its objects."""

    def __init__(
        self,
        scene: SceneGraph,
        message: Any,
        q: NDArray[np.float64] | None,
        classes: Mapping[str, Sequence[str]],
    ) -> None:
        self.scene, self.faults = scene, list[str]()
        self._message, self._classes = message, classes
        self._q = scene.zero_configuration() if q is None else q
        self._root = scene.root_names[0]
        self._transforms = {
            transform.child_frame_id.removeprefix("/"): transform
            for transform in message.fixed_frame_transforms
        }

    def apply(self) -> None:
        """Apply all objects, each as a whole or not at all."""
        message, state = self._message, self._message.robot_state
        names = {entry.id for entry in message.world.collision_objects}
        attached = {entry.object.id for entry in state.attached_collision_objects}
        for name in self._own("world") if not message.is_diff else ():
            if name not in names | attached:
                self._remove(name)
        for name in self._own("attached") if not (message.is_diff and state.is_diff) else ():
            if name not in names | attached:
                self._remove(name)
        moved = [
            entry.id
            for entry in message.world.collision_objects
            if self._try(entry.id, partial(self._apply_object, entry))
        ]
        for entry in state.attached_collision_objects:
            self._try(entry.object.id, partial(self._apply_attached, entry))
        self._rest([name for name in moved if name in self.scene])

    def _try(self, name: str, apply: Callable[[], None]) -> bool:
        """Apply an object; if it is faulty, restore the scene and add the fault."""
        before = self.scene
        try:
            apply()
        except TmkitError as error:
            self.scene = before
            self.faults.append(f"object '{name}': {error}")
            return False
        return True

    def _own(self, origin: str) -> list[str]:
        """Return the objects of earlier messages in the world, or attached."""
        scene = self.scene
        return [name for name in scene.frame_names if scene.attributes(name).get(_ORIGIN) == origin]

    def _remove(self, name: str) -> None:
        self.scene = self.scene.remove_frame(name, subtree=True)

    def _apply_object(self, entry: Any) -> None:
        """Apply an object of the world."""
        operation = _operation(entry)
        if operation == _Operation.REMOVE:
            for name in [entry.id] if entry.id else self._own("world"):
                if name not in self.scene:
                    raise UnknownNameError.of("object", name, self._own("world"))
                self._remove(name)
            return
        if operation == _Operation.ADD and not _count_shapes(entry):
            raise SceneError("it has no shapes")
        if operation != _Operation.ADD and entry.id not in self.scene:
            raise UnknownNameError.of("object", entry.id, self._own("world"))
        self._place(entry, self._root, "world", operation)

    def _apply_attached(self, entry: Any) -> None:
        """Attach an object to a link, or detach it."""
        body, operation = entry.object, _operation(entry.object)
        if operation == _Operation.REMOVE:
            for name in [body.id] if body.id else self._own("attached"):
                if name not in self._own("attached"):
                    raise UnknownNameError.of("attached object", name, self._own("attached"))
                self.scene = self.scene.reparent(name, self._root, q=self._q)
                self.scene = self.scene.set_attribute(name, _ORIGIN, "world")
                self._rest([name])
            return
        if operation == _Operation.MOVE:
            raise SceneError("an attached object cannot be moved")
        if entry.link_name not in self.scene:
            raise UnknownNameError.of("link", entry.link_name, self.scene.frame_names)
        if not _count_shapes(body):
            if body.id not in self.scene:
                raise SceneError("it has no shapes, and no object of the world has its id")
            self.scene = self.scene.reparent(body.id, entry.link_name, q=self._q)
            self.scene = self.scene.set_attribute(body.id, _ORIGIN, "attached")
        else:
            self._place(body, entry.link_name, "attached", operation)
        for link in entry.touch_links:
            if link not in self.scene:
                raise UnknownNameError.of("link", link, self.scene.frame_names)
            if link != body.id:
                self.scene = self.scene.allow_collision(body.id, link, reason="attached")

    def _place(self, entry: Any, parent: str, origin: str, operation: int) -> None:
        """Add, extend or move an object below a parent."""
        scene, name = self.scene, entry.id
        if not name:
            raise SceneError("an object needs an id")
        pose, shapes = _read_geometry(entry)
        parent_from_header = self._header_pose(entry.header, parent)
        pose = parent_from_header @ pose
        if name in scene:
            frames = (name, *scene.ancestors(name), *scene.subtree(name))
            kinds = {scene.joint(frame).type for frame in frames if scene.parent(frame)}
            if _ORIGIN not in scene.attributes(name) and kinds - {"fixed", "free"}:
                raise SceneError("a frame of the robot has this name")
        if name not in scene:
            scene = scene.add_frame(name, parent, pose=pose, joint=Free())
            scene = scene.set_classes(name, self._classes.get(name, ()))
        elif operation == _Operation.APPEND:
            shapes = [*scene.shapes(name), *shapes]
        else:
            scene = scene.reparent(name, parent, pose=pose)
        if operation == _Operation.MOVE:
            shapes = _shapes_at_poses(scene.shapes(name), entry)
        color = next((item.color for item in self._message.object_colors if item.id == name), None)
        if color is not None:
            rgba = [color.r, color.g, color.b, color.a]
            shapes = [part.replace(color=rgba) for part in shapes]
        scene = scene.set_shapes(name, shapes).set_attribute(name, _ORIGIN, origin)
        if len(entry.subframe_names) != len(entry.subframe_poses):
            raise SceneError(
                f"{len(entry.subframe_names)} subframes have {len(entry.subframe_poses)} poses"
            )
        for label, subframe in zip(entry.subframe_names, entry.subframe_poses, strict=True):
            frame = f"{name}/{label}"
            local = pose_of(subframe.position, subframe.orientation)
            if frame in scene:
                scene = scene.set_pose(frame, local)
            else:
                scene = scene.add_frame(
                    frame, name, pose=local, joint=Fixed(), body=scene.body(name)
                )
        self.scene = scene

    def _header_pose(self, header: Any, parent: str) -> Pose:
        """Return parent_from_header.

        Raises:
            UnknownNameError: if the frame is unknown.
        """
        frame, pose = header.frame_id.removeprefix("/"), Pose()
        passed = set[str]()
        while frame and frame not in self.scene:
            transform = self._transforms.get(frame)
            if transform is None or frame in passed:
                names = (*self.scene.frame_names, *self._transforms)
                raise UnknownNameError.of("frame", frame, names)
            passed.add(frame)
            parts = transform.transform
            pose = pose_of(parts.translation, parts.rotation) @ pose
            frame = transform.header.frame_id.removeprefix("/")
        frame = frame or self._root
        return self.scene.pose(frame, relative_to=parent, q=self._q) @ pose

    def _rest(self, names: list[str]) -> None:
        """Set movable objects of the world on the surfaces below them, the lowest first."""
        scene = self.scene
        movable = [
            name
            for name in names
            if "movable" in scene.classes(name) and scene.attributes(name).get(_ORIGIN) == "world"
        ]
        poses = {name: scene.pose(name, q=self._q) for name in movable}
        for name in sorted(movable, key=lambda name: float(poses[name].translation[2])):
            self.scene = rest_on_support(self.scene, name, poses[name], self._q)


def _operation(entry: Any) -> int:
    """Return the operation of a collision object, a byte in ROS.

    Raises:
        SceneError: if it is unknown.
    """
    value = entry.operation
    number = value[0] if isinstance(value, bytes) else int(value)
    if number not in list(_Operation):
        raise SceneError(f"unknown operation {number}")
    return number


def _count_shapes(entry: Any) -> int:
    return len(entry.primitives) + len(entry.meshes) + len(entry.planes)


def _shape_poses(entry: Any) -> Iterator[tuple[Any, Pose]]:
    """Yield each shape message with its pose in the object; identity by default.

    Raises:
        SceneError: if there are more poses than shapes.
        InvalidArgumentException: if a pose is not valid.
    """
    for kind in ("primitive", "mesh", "plane"):
        messages = getattr(entry, "meshes" if kind == "mesh" else f"{kind}s")
        poses = getattr(entry, f"{kind}_poses")
        if len(poses) > len(messages):
            raise SceneError(f"{len(messages)} {kind} shapes have {len(poses)} poses")
        for index, message in enumerate(messages):
            pose = Pose()
            if index < len(poses):
                pose = pose_of(poses[index].position, poses[index].orientation)
            yield message, pose


def _read_geometry(entry: Any) -> tuple[Pose, list[AttachedShape]]:
    """Return header_from_object and the shapes of an object.

    As in MoveIt, the pose of a single shape is that of the object, if the latter is not set.
    """
    pose = pose_of(entry.pose.position, entry.pose.orientation)
    parts = [(_read_shape(message), local) for message, local in _shape_poses(entry)]
    if len(parts) == 1 and pose == Pose():
        shape, pose = parts[0]
        parts = [(shape, Pose())]
    return pose, [AttachedShape(shape, local @ offset) for (shape, offset), local in parts]


def _shapes_at_poses(shapes: Sequence[AttachedShape], entry: Any) -> list[AttachedShape]:
    """Return shapes at the poses of a message, if it has any."""
    poses = [*entry.primitive_poses, *entry.mesh_poses, *entry.plane_poses]
    if poses and len(poses) != len(shapes):
        raise SceneError(f"{len(poses)} poses move {len(shapes)} shapes")
    local_poses = [pose_of(pose.position, pose.orientation) for pose in poses]
    return [
        part.replace(pose=local)
        for part, local in zip(shapes, local_poses or [part.pose for part in shapes], strict=True)
    ]


def _read_shape(message: Any) -> tuple[Shape, Pose]:
    """Return a shape, and its pose in the axes of the message.

    Raises:
        SceneError: if it is not valid.
    """
    if hasattr(message, "coef"):
        normal, distance = np.array(message.coef[:3], dtype=float), float(message.coef[3])
        length = float(np.linalg.norm(normal))
        if not (0.0 < length < np.inf and np.isfinite(distance)):
            raise SceneError(f"a plane needs a finite normal, got {[*message.coef]}")
        z = normal / length
        x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
        x /= np.linalg.norm(x)
        rotation = np.column_stack([x, np.cross(z, x), z])
        return Plane(), Pose.from_rotation_matrix(-distance / length * z, rotation)
    if hasattr(message, "triangles"):
        if len(message.triangles) > _MAX_TRIANGLES:
            raise SceneError(
                f"a mesh has {len(message.triangles)} triangles, more than {_MAX_TRIANGLES}"
            )
        vertices = [[point.x, point.y, point.z] for point in message.vertices]
        faces = [[*triangle.vertex_indices] for triangle in message.triangles]
        return Mesh(np.reshape(vertices, (-1, 3)), np.reshape(faces, (-1, 3))), Pose()
    if message.type not in _PRIMITIVES:
        raise SceneError(f"primitives of type {message.type} are not supported")
    name, count, make = _PRIMITIVES[message.type]
    if len(message.dimensions) != count:
        raise SceneError(f"a {name} has {count} dimensions, got {[*message.dimensions]}")
    return make(*message.dimensions), Pose()
