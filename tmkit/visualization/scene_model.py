"""What is drawn of a scene: triangle meshes with their colours, by frame, each mesh once.

A :class:`SceneModel` is plain numbers, ready for any renderer. Visual shapes keep the colours that the scene gives
them; what has none is coloured by its class. Edges sharper than 40 degrees stay sharp: their vertices are doubled,
since viewers average the normals of the faces that meet in a vertex.

Complexity: linear in the faces of the distinct shapes; shapes are compared by digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import AttachedShape, SceneGraph, Shape
from tmkit.spatial import Pose

Role = Literal["visual", "collision"]
Color = tuple[float, float, float, float]
Triangles = tuple[NDArray[np.float32], NDArray[np.uint32]]

_CREASE = np.radians(40.0)
_LARGE = 4000  # faces above which a mesh is reduced
_PLANE = 10.0  # metres from side to side of a drawn half space
_SURFACE, _OTHER, _COLLISION = (0.79, 0.72, 0.62, 1.0), (0.85, 0.87, 0.89, 1.0), (1.0, 0.55, 0.1, 0.45)
_OBJECTS = (
    (0.83, 0.24, 0.21, 1.0), (0.18, 0.50, 0.76, 1.0), (0.95, 0.70, 0.18, 1.0), (0.27, 0.62, 0.33, 1.0),
    (0.56, 0.36, 0.68, 1.0), (0.90, 0.48, 0.20, 1.0), (0.20, 0.66, 0.66, 1.0), (0.75, 0.45, 0.55, 1.0),
)  # fmt: skip


@dataclass(frozen=True)
class ScenePiece:
    """One shape of a frame, as it is drawn.

    Attributes:
        frame: the frame that carries it.
        mesh: index of its mesh in the model.
        pose: frame_from_piece.
        color: red, green, blue, alpha from 0 to 1.
        role: whether it is what is seen or what collides.
    """

    frame: str
    mesh: int
    pose: Pose
    color: Color
    role: Role


@dataclass(frozen=True, eq=False)
class SceneModel:
    """What is drawn of one version of a scene.

    Attributes:
        frames: names of all frames, in the order of the scene's poses.
        meshes: (v, 3) vertices in metres and (f, 3) faces, each distinct mesh once.
        pieces: the shapes.
    """

    frames: tuple[str, ...]
    meshes: tuple[Triangles, ...]
    pieces: tuple[ScenePiece, ...]


def scene_model(scene: SceneGraph, *, cell: float = 0.0, paint: Mapping[str, Color] | None = None) -> SceneModel:
    """Return what is drawn of a scene.

    Args:
        scene: the scene.
        paint: colours of frames, instead of those of their shapes.
        cell: vertices of meshes that lie in one cube with this edge (metres) become one; 0 keeps all.
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
                meshes.append(_creased(*_clustered(*triangles(attached.shape), cell)))
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


def triangles(shape: Shape) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return vertices (v, 3) in metres, in the shape's axes, and faces (f, 3) that show a shape.

    Args:
        shape: the shape; of a plane, a square around its origin is shown.
    """
    import trimesh

    from tmkit.formats.mesh.frustum import mesh_of_cloud, mesh_of_field

    size = shape.dimensions
    if shape.kind == "mesh":
        return np.asarray(shape.vertices), np.asarray(shape.faces, dtype=np.int64)
    if shape.kind in ("height_field", "point_cloud"):
        return triangles(mesh_of_field(shape) if shape.kind == "height_field" else mesh_of_cloud(shape))
    if shape.kind == "box":
        mesh = trimesh.creation.box(size)
    elif shape.kind == "sphere":
        mesh = trimesh.creation.icosphere(subdivisions=3, radius=size[0])
    elif shape.kind == "cylinder":
        mesh = trimesh.creation.cylinder(size[0], size[1], sections=48)
    elif shape.kind == "capsule":
        mesh = trimesh.creation.capsule(size[1], size[0], count=[24, 24])
        mesh.apply_translation(-mesh.bounds.mean(axis=0))
    elif shape.kind == "cone":
        mesh = trimesh.creation.cone(size[0], size[1], sections=48)
        mesh.apply_translation([0.0, 0.0, -0.5 * size[1]])
    else:
        mesh = trimesh.creation.box([_PLANE, _PLANE, 1e-3])
    return np.asarray(mesh.vertices), np.asarray(mesh.faces, dtype=np.int64)


def _clustered(
    vertices: NDArray[np.float64], faces: NDArray[np.int64], cell: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Join the vertices in each cell of a grid, and drop the faces that vanish."""
    if cell <= 0.0 or len(faces) < _LARGE:
        return vertices, faces
    _, first, number = np.unique(np.round(vertices / cell), axis=0, return_index=True, return_inverse=True)
    joined = number.reshape(-1)[faces]
    kept = (joined[:, 0] != joined[:, 1]) & (joined[:, 1] != joined[:, 2]) & (joined[:, 2] != joined[:, 0])
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
