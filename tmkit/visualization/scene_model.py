"""Drawn model of a scene: triangle meshes with colours, by frame, each mesh once, as nodes of a viser scene.

Every frame with shapes is a node ``/bodies/NAME``, with what is seen below it, and
``/collision/NAME``, with what collides. The frames' axes are one batched node ``/frames``. The
page's script moves the nodes; see ``viewer.js``. Edges sharper than 40 degrees stay sharp: their
vertices are doubled, since viewers average the normals of the faces that meet in a vertex.
Complexity: linear in the faces of the distinct shapes; shapes are compared by digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import AttachedShape, SceneGraph
from tmkit.simulation.engines.pybullet.shapes import drawn_triangles
from tmkit.spatial import Pose

if TYPE_CHECKING:
    import viser

Role = Literal["visual", "collision"]
Color = tuple[float, float, float, float]
Triangles = tuple[NDArray[np.float32], NDArray[np.uint32]]

_CREASE = np.radians(40.0)
_LARGE = 4000  # faces above which a mesh is reduced
_SURFACE, _OTHER, _COLLISION = (
    (0.79, 0.72, 0.62, 1.0),
    (0.85, 0.87, 0.89, 1.0),
    (1.0, 0.55, 0.1, 0.45),
)
_OBJECTS = (
    (0.83, 0.24, 0.21, 1.0),
    (0.18, 0.50, 0.76, 1.0),
    (0.95, 0.70, 0.18, 1.0),
    (0.27, 0.62, 0.33, 1.0),
    (0.56, 0.36, 0.68, 1.0),
    (0.90, 0.48, 0.20, 1.0),
    (0.20, 0.66, 0.66, 1.0),
    (0.75, 0.45, 0.55, 1.0),
)
# from the work to the camera: the robot's right front, a little above
_VIEW = np.array([0.80, -0.90, 0.62])
TO_THE_RIGHT = np.array([0.90, 0.80, 0.0]) / np.hypot(0.90, 0.80)  # in the picture, horizontal
_FIELD_OF_VIEW = np.radians(42.0)
_ASPECT = 1.25  # least width of a window in heights in which all is seen
_FAR = 4.0  # metres across above which a piece does not count for the view


@dataclass(frozen=True)
class ScenePiece:
    """One shape of a frame, as it is drawn."""

    frame: str
    mesh: int  # index in the model
    pose: Pose  # frame_from_piece
    color: Color  # red, green, blue, alpha from 0 to 1
    role: Role


@dataclass(frozen=True, eq=False)
class SceneModel:
    """What is drawn of a version: frames in the order of poses; distinct meshes, (v, 3) metres and (f, 3)."""

    frames: tuple[str, ...]
    meshes: tuple[Triangles, ...]
    pieces: tuple[ScenePiece, ...]


def scene_model(
    scene: SceneGraph, *, cell: float = 0.0, paint: Mapping[str, Color] | None = None
) -> SceneModel:
    """Return what is drawn of a scene, with ``paint`` as colours, and vertices in cubes of ``cell`` metres joined."""
    numbers: dict[str, int] = {}
    meshes: list[Triangles] = []
    pieces: list[ScenePiece] = []
    movable = {name: i for i, name in enumerate(scene.frames_of_class("movable"))}
    for frame in scene.frame_names:
        for attached in scene.shapes(frame):
            digest = attached.shape.digest
            if digest not in numbers:
                numbers[digest] = len(meshes)
                meshes.append(
                    _creased(*_clustered(*drawn_triangles(attached.shape, fineness=3), cell))
                )
            for role in _roles(attached):
                color = (paint or {}).get(frame) or attached.color or _color(scene, frame, movable)
                color = _COLLISION if role == "collision" else color
                pieces.append(ScenePiece(frame, numbers[digest], attached.pose, color, role))
    return SceneModel(tuple(scene.frame_names), tuple(meshes), tuple(pieces))


def _roles(attached: AttachedShape) -> list[Role]:
    roles: list[Role] = ["visual"] if attached.visual else []
    return [*roles, "collision"] if attached.collision and attached.shape.kind != "plane" else roles


def _color(scene: SceneGraph, frame: str, movable: dict[str, int]) -> Color:
    if frame in movable:
        return _OBJECTS[movable[frame] % len(_OBJECTS)]
    return _SURFACE if {"surface", "region"} & set(scene.classes(frame)) else _OTHER


def _clustered(
    vertices: NDArray[np.float64], faces: NDArray[np.int64], cell: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Join the vertices in each cell of a grid, and drop the faces that vanish."""
    if cell <= 0.0 or len(faces) < _LARGE:
        return vertices, faces
    _, first, number = np.unique(
        np.round(vertices / cell), axis=0, return_index=True, return_inverse=True
    )
    joined = number.reshape(-1)[faces]
    kept = (
        (joined[:, 0] != joined[:, 1])
        & (joined[:, 1] != joined[:, 2])
        & (joined[:, 2] != joined[:, 0])
    )
    return vertices[first], joined[kept]


def _creased(vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> Triangles:
    """Double the vertices at sharp edges: a vertex is shared by the faces that are joined by flat edges only."""
    import trimesh
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    if len(faces) == 0:
        return vertices.astype(np.float32), faces.astype(np.uint32)
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    mesh.merge_vertices()
    smooth = mesh.face_adjacency[mesh.face_adjacency_angles < _CREASE]
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
    """Add the nodes of a model, its frames at poses (n, 7), and return the handles of its visual pieces by index."""
    handles: dict[int, Any] = {}
    index = {name: i for i, name in enumerate(model.frames)}
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
            side="double",
            cast_shadow=piece.role == "visual",
            receive_shadow=piece.role == "visual",
            position=piece.pose.translation,
            wxyz=piece.pose.quat_xyzw[[3, 0, 1, 2]],
        )
        if piece.role == "visual":
            handles[number] = handle
    turns, places = poses[:, [6, 3, 4, 5]], poses[:, :3]
    scene.add_batched_axes(
        "/frames", turns, places, axes_length=0.06, axes_radius=0.0025, visible=False
    )
    return handles


def model_document(model: SceneModel) -> dict[str, Any]:
    """Return which frames are nodes, and the boxes around their pieces for hovering, as plain values for the page."""
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


def bounds(
    model: SceneModel, poses: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and highest corner (3,) of what is seen, metres; a cube of a metre if that is nothing."""
    index = {name: i for i, name in enumerate(model.frames)}
    points = []
    for piece in model.pieces:
        vertices = model.meshes[piece.mesh][0]
        if piece.role == "visual" and len(vertices):
            corners = np.array([vertices.min(axis=0), vertices.max(axis=0)], dtype=float)
            if np.max(corners[1] - corners[0]) < _FAR:
                mixed = corners[[[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], [0, 1, 2]]
                points.append(
                    np.asarray(
                        (Pose.from_array(poses[index[piece.frame]]) @ piece.pose).apply(mixed)
                    )
                )
    every = np.concatenate(points) if points else np.array([[-0.5] * 3, [0.5] * 3])
    return every.min(axis=0), every.max(axis=0)


def set_view(
    server: viser.ViserServer,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    *,
    moves: bool = True,
) -> None:
    """Put a floor below what is seen, and the cameras, with ``moves`` also those in use, where they see all of it."""
    center, radius = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
    toward = _VIEW / np.linalg.norm(_VIEW)
    corners = np.array([[(low, high)[i >> k & 1][k] for k in range(3)] for i in range(8)]) - center
    axes = np.stack([TO_THE_RIGHT / _ASPECT, np.cross(toward, TO_THE_RIGHT)])
    across = np.abs(corners @ axes.T).max(axis=1)
    distance = 1.05 * float(np.max(across / np.tan(0.5 * _FIELD_OF_VIEW) + corners @ toward))
    server.initial_camera.fov = float(_FIELD_OF_VIEW)
    cameras: list[Any] = [server.initial_camera]
    for camera in cameras + [client.camera for client in server.get_clients().values() if moves]:
        # first: a client keeps its direction where it is to look
        camera.position = center + toward * distance
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
        position=(round(center[0]), round(center[1]), low[2] - 1e-3),
        infinite_grid=False,
    )
