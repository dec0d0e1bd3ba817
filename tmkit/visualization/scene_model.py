"""Visual model of a scene: coloured triangle meshes by frame, as nodes of a viser scene.

Every frame with shapes is a node ``/bodies/NAME`` with its visual shapes, and ``/collision/NAME``
with its collision shapes. The frames' axes are one batched node ``/frames``. The page's script
moves the nodes; see ``viewer.js``. Each distinct mesh is computed once.

Edges sharper than 40 degrees stay sharp: their vertices are doubled, because viewers average the
normals of the faces at a vertex. Complexity: linear in the faces of the distinct shapes, which are
compared by digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import AttachedShape, SceneGraph
from tmkit.simulation.camera import NEIGHBOURHOOD
from tmkit.simulation.engines.pybullet.shapes import drawn_triangles
from tmkit.simulation.pieces import Pieces, partition
from tmkit.spatial import Pose

if TYPE_CHECKING:
    import viser

Role = Literal["visual", "collision"]
"""Role of a shape."""

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, in [0, 1]."""

Triangles = tuple[NDArray[np.float32], NDArray[np.uint32]]
"""(v, 3) vertices [m] and (f, 3) faces."""

_CREASE_ANGLE = np.radians(40.0)
"""Angle between faces from which on an edge is sharp [rad]."""

_MAX_FULL_FACES = 4000
"""Number of faces from which on a mesh is reduced."""

_SURFACE_COLOR = (0.79, 0.72, 0.62, 1.0)
"""Default colour of surfaces and regions."""

_DEFAULT_COLOR = (0.85, 0.87, 0.89, 1.0)
"""Default colour of other fixed frames and robots."""

_COLLISION_COLOR = (1.0, 0.55, 0.1, 0.45)
"""Colour of collision shapes."""

_OBJECT_COLORS = (
    (0.83, 0.24, 0.21, 1.0),
    (0.18, 0.50, 0.76, 1.0),
    (0.95, 0.70, 0.18, 1.0),
    (0.27, 0.62, 0.33, 1.0),
    (0.56, 0.36, 0.68, 1.0),
    (0.90, 0.48, 0.20, 1.0),
    (0.20, 0.66, 0.66, 1.0),
    (0.75, 0.45, 0.55, 1.0),
)
"""Default colours of movable objects, in order."""

_VIEW_DIRECTION = np.array([0.80, -0.90, 0.62])
"""(3,) direction from the scene to the camera, in front of the robot, to its right and above."""

RIGHT_DIRECTION = np.array([0.90, 0.80, 0.0]) / np.hypot(0.90, 0.80)
"""(3,) horizontal direction to the right in the picture."""

_FIELD_OF_VIEW = np.radians(42.0)
"""Vertical opening angle of the camera [rad]."""

_MIN_ASPECT = 1.25
"""Smallest ratio of width and height of a window with the whole scene in view."""

_MAX_PIECE_SIZE = 4.0
"""Largest size of a piece that affects the view [m]."""

_CLOSED_KINDS = ("box", "sphere", "cylinder", "cone", "capsule")
"""Kinds of shapes of which only front faces are drawn."""

_AMBIENT_INTENSITY = 0.4
"""Intensity of ambient light relative to the default of viser, which hides shadows."""


@dataclass(frozen=True)
class ScenePiece:
    """Visual or collision shape of a frame.

    Attributes:
        frame: frame of the shape.
        mesh: index of its mesh in the model.
        pose: frame_from_piece.
        color: red, green, blue and opacity, in [0, 1].
        role: role of the shape.
        is_closed: whether its faces have outward normals and enclose a volume.
    """

    frame: str
    mesh: int
    pose: Pose
    color: Color
    role: Role
    is_closed: bool


@dataclass(frozen=True, eq=False)
class SceneModel:
    """Frames of a scene in the order of their poses, its distinct meshes, and its shapes.

    Attributes:
        frames: frames in the order of their poses.
        meshes: distinct meshes.
        pieces: shapes.
        parts: fixed and moving frames.
    """

    frames: tuple[str, ...]
    meshes: tuple[Triangles, ...]
    pieces: tuple[ScenePiece, ...]
    parts: Pieces


def scene_model(
    scene: SceneGraph, *, cell: float = 0.0, paint: Mapping[str, Color] | None = None
) -> SceneModel:
    """Return the model of a scene.

    Args:
        scene: the scene.
        cell: size of the cubes in which vertices of large meshes are merged [m].
        paint: colours by frame, instead of those of the scene.
    """
    numbers: dict[str, int] = {}
    meshes: list[Triangles] = []
    pieces: list[ScenePiece] = []
    movable = {name: i for i, name in enumerate(scene.frames_of_class("movable"))}
    for frame in scene.frame_names:
        for attached in scene.shapes(frame):
            digest = attached.shape.digest
            if digest not in numbers:
                numbers[digest] = len(meshes)
                mesh = drawn_triangles(attached.shape, fineness=3)
                meshes.append(_split_creases(*_merge_vertices(*mesh, cell)))
            for role in _roles(attached):
                color = (paint or {}).get(frame) or attached.color or _color(scene, frame, movable)
                color = _COLLISION_COLOR if role == "collision" else color
                is_closed = attached.shape.kind in _CLOSED_KINDS
                pieces.append(
                    ScenePiece(frame, numbers[digest], attached.pose, color, role, is_closed)
                )
    return SceneModel(tuple(scene.frame_names), tuple(meshes), tuple(pieces), partition(scene))


def _roles(attached: AttachedShape) -> list[Role]:
    """Return the roles of a shape."""
    roles: list[Role] = ["visual"] if attached.visual else []
    return [*roles, "collision"] if attached.collision and attached.shape.kind != "plane" else roles


def _color(scene: SceneGraph, frame: str, movable: dict[str, int]) -> Color:
    """Return the default colour of a frame."""
    if frame in movable:
        return _OBJECT_COLORS[movable[frame] % len(_OBJECT_COLORS)]
    is_surface = {"surface", "region"} & set(scene.classes(frame))
    return _SURFACE_COLOR if is_surface else _DEFAULT_COLOR


def _merge_vertices(
    vertices: NDArray[np.float64], faces: NDArray[np.int64], cell: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return a mesh with the vertices in each cell of a grid merged, without degenerate faces."""
    if cell <= 0.0 or len(faces) < _MAX_FULL_FACES:
        return vertices, faces
    _, first, number = np.unique(
        np.round(vertices / cell), axis=0, return_index=True, return_inverse=True
    )
    merged = number.reshape(-1)[faces]
    is_proper = (
        (merged[:, 0] != merged[:, 1])
        & (merged[:, 1] != merged[:, 2])
        & (merged[:, 2] != merged[:, 0])
    )
    return vertices[first], merged[is_proper]


def _split_creases(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> Triangles:
    """Return a mesh with doubled vertices at sharp edges, so that only smooth faces share them."""
    import trimesh
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if len(faces) == 0:
        return vertices.astype(np.float32), faces.astype(np.uint32)
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    mesh.merge_vertices()
    smooth = mesh.face_adjacency[mesh.face_adjacency_angles < _CREASE_ANGLE]
    links = coo_matrix((np.ones(len(smooth)), smooth.T), shape=(len(mesh.faces), len(mesh.faces)))
    _, part = connected_components(links, directed=False)
    corners = np.stack([np.repeat(part, 3), mesh.faces.reshape(-1)], axis=1)
    unique, number = np.unique(corners, axis=0, return_inverse=True)
    return mesh.vertices[unique[:, 1]].astype(np.float32), number.reshape(-1, 3).astype(np.uint32)


def _node_name(frame: str) -> str:
    """Return the name of a frame as a node of viser, which separates levels by slashes."""
    return frame.replace("/", "\N{DIVISION SLASH}")


def add_nodes(
    scene: viser.SceneApi, model: SceneModel, poses: NDArray[np.float64]
) -> dict[int, Any]:
    """Add the nodes of a model.

    Args:
        scene: scene of viser.
        model: model to add.
        poses: (n, 7) poses of the frames x, y, z, qx, qy, qz, qw.

    Returns:
        Handles of the visual pieces by index.
    """
    handles: dict[int, Any] = {}
    index = {name: i for i, name in enumerate(model.frames)}
    scene.configure_environment_map(environment_intensity=_AMBIENT_INTENSITY)
    scene.add_frame("/bodies", show_axes=False)
    scene.add_frame("/collision", show_axes=False, visible=False)
    groups = {"visual": "/bodies", "collision": "/collision"}
    for frame, role in dict.fromkeys((piece.frame, piece.role) for piece in model.pieces):
        x = poses[index[frame]]
        scene.add_frame(
            f"{groups[role]}/{_node_name(frame)}",
            show_axes=False,
            position=x[:3],
            wxyz=x[[6, 3, 4, 5]],
        )
    for number, piece in enumerate(model.pieces):
        vertices, faces = model.meshes[piece.mesh]
        handle = scene.add_mesh_simple(
            f"{groups[piece.role]}/{_node_name(piece.frame)}/{number}",
            vertices,
            faces,
            color=np.rint(255.0 * np.array(piece.color[:3])).astype(np.uint8),
            opacity=piece.color[3] if piece.color[3] < 1.0 else None,
            # Both sides of a face would cast its shadow onto itself.
            side="front" if piece.is_closed else "double",
            cast_shadow=piece.role == "visual",
            receive_shadow=piece.role == "visual",
            position=piece.pose.translation,
            wxyz=piece.pose.quat_xyzw[[3, 0, 1, 2]],
        )
        if piece.role == "visual":
            handles[number] = handle
    scene.add_batched_axes(
        "/frames",
        poses[:, [6, 3, 4, 5]],
        poses[:, :3],
        axes_length=0.06,
        axes_radius=0.0025,
        visible=False,
    )
    return handles


def model_document(model: SceneModel) -> dict[str, Any]:
    """Return the frames with nodes, and boxes around their pieces for hovering, as plain values."""
    index = {name: i for i, name in enumerate(model.frames)}
    boxes = []
    for piece in model.pieces:
        vertices = model.meshes[piece.mesh][0]
        if piece.role == "visual" and len(vertices):
            pose = (*piece.pose.translation, *piece.pose.quat_xyzw)
            bounds = (*vertices.min(axis=0), *vertices.max(axis=0))
            boxes.append(
                [index[piece.frame], *(round(float(value), 5) for value in (*pose, *bounds))]
            )
    bodies = dict.fromkeys(piece.frame for piece in model.pieces)
    return {"bodies": [[index[name], _node_name(name)] for name in bodies], "boxes": boxes}


def bounds(model: SceneModel, poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower and upper corner (2, 3) of the visual shapes, or of a unit cube [m]."""
    points = _corners(model, poses, set(model.frames))
    return _box(points) if len(points) else np.array([[-0.5] * 3, [0.5] * 3])


def view_bounds(model: SceneModel, poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower and upper corner (2, 3) of moving frames and their neighbourhood [m].

    A scene in which nothing moves has the bounds of all its visual shapes.
    """
    box, parts = bounds(model, poses), model.parts
    moving = {frame for piece in (*parts.mechanisms, *parts.objects) for frame in piece.frames}
    points = _corners(model, poses, moving)
    if not len(points):
        return box
    low, high = _box(points)
    return np.clip(box, low - NEIGHBOURHOOD, high + NEIGHBOURHOOD)


def _box(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower and upper corner (2, 3) of points (n, 3)."""
    return np.stack([points.min(axis=0), points.max(axis=0)])


def _corners(
    model: SceneModel, poses: NDArray[np.float64], frames: set[str]
) -> NDArray[np.float64]:
    """Return the corners (n, 3) of boxes around the visual shapes of frames, in the root [m]."""
    index = {name: i for i, name in enumerate(model.frames)}
    points = [np.zeros((0, 3))]
    for piece in model.pieces:
        vertices = model.meshes[piece.mesh][0]
        if piece.role == "visual" and len(vertices) and piece.frame in frames:
            corners = np.array([vertices.min(axis=0), vertices.max(axis=0)], dtype=float)
            if np.max(corners[1] - corners[0]) < _MAX_PIECE_SIZE:
                box = corners[[[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], [0, 1, 2]]
                pose = Pose.from_array(poses[index[piece.frame]]) @ piece.pose
                points.append(np.asarray(pose.apply(box)))
    return np.concatenate(points)


def set_view(
    server: viser.ViserServer, model: SceneModel, poses: NDArray[np.float64], *, moves: bool = True
) -> None:
    """Set the floor below a scene, and cameras with its moving frames in view.

    Args:
        server: server of viser.
        model: model of the scene.
        poses: (n, 7) poses of the frames x, y, z, qx, qy, qz, qw.
        moves: whether to move the cameras of open pages as well.
    """
    low, high = view_bounds(model, poses)
    floor = float(bounds(model, poses)[0, 2])
    center, radius = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
    direction = _VIEW_DIRECTION / np.linalg.norm(_VIEW_DIRECTION)
    corners = np.array([[(low, high)[i >> k & 1][k] for k in range(3)] for i in range(8)]) - center
    axes = np.stack([RIGHT_DIRECTION / _MIN_ASPECT, np.cross(direction, RIGHT_DIRECTION)])
    extent = np.abs(corners @ axes.T).max(axis=1)
    distances = extent / np.tan(0.5 * _FIELD_OF_VIEW) + corners @ direction
    distance = 1.05 * float(np.max(distances))
    server.initial_camera.fov = float(_FIELD_OF_VIEW)
    cameras: list[Any] = [server.initial_camera]
    for camera in cameras + [client.camera for client in server.get_clients().values() if moves]:
        # Set the position first, because a client keeps its direction relative to the target.
        camera.position = center + direction * distance
        camera.look_at = center
    side = 2.0 * np.ceil(2.0 * radius)
    server.scene.add_grid(
        "/floor",
        width=side,
        height=side,
        cell_size=0.25,
        section_size=1.0,
        plane="xy",
        shadow_opacity=0.2,
        cell_color=(215, 221, 227),
        section_color=(190, 199, 208),
        position=(round(center[0]), round(center[1]), floor - 1e-3),
        infinite_grid=False,
    )
