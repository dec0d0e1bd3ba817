"""Scene shapes as pybullet shapes: docs/concepts/conventions.md, *Shapes*.

pybullet surrounds a hull by a margin of 1 mm, which is removed, so that a mesh block rests at the
same height as a box. URDF files of mechanisms cannot remove it. There, meshes and cylinders are
reduced by the margin, unless they are thinner than 3 mm. A simulated arm thus makes contact at the
planned position.

Fixed height fields are triangle meshes. A height field of pybullet cannot share a body with other
shapes, and divides its cells along the other diagonal. Fixed point clouds are triangle meshes with
one cube for each ball, because pybullet allows at most 16 shapes for each body. pybullet has no
moving triangle meshes. On a moving body, these shapes and meshes of level ``exact`` become hulls,
and a plane is rejected.

pybullet reads meshes only from files. They are written into the simulation's private folder, one
file for each distinct shape. Visual shapes have all faces, and collision shapes are hulls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SimulationError
from tmkit.formats.mesh.solids import mesh_of_cloud, mesh_of_field, solid_triangles
from tmkit.graph import AttachedShape, Cylinder, Mesh, PointCloud, Shape
from tmkit.simulation.engines.pybullet.engine import Engine
from tmkit.spatial import Pose

_MAX_SHAPES = 16
"""Largest number of shapes of a body in pybullet."""

DEFAULT_COLOR = (0.62, 0.65, 0.70, 1.0)
"""Red, green, blue and opacity of shapes without colour."""

_URDF_MARGIN = 0.001
"""Margin that pybullet always adds to the hulls of a URDF file [m]."""

_MIN_INSET_DEPTH = 0.0015
"""Smallest inner radius of a hull that is reduced by the margin [m]."""

MAX_POINTS = 50_000
"""Largest number of points of a simulated or drawn point cloud."""

_DRAWN_PLANE_SIZE = 20.0
"""Side of the square that represents a plane [m]."""

_CYLINDER_SIDES = 24
"""Sides of a prism for a cylinder, a multiple of 8 so that sides face the grasp directions."""

_CONE_SIDES = 48
"""Sides of a pyramid for a cone."""

_KINDS_WITH_LEVELS = ("mesh", "point_cloud", "height_field")
"""Kinds of shapes for which the level of detail matters."""


@dataclass(frozen=True)
class PlacedShape:
    """A shape with its pose in a body (``body_from_shape``), and its original frame."""

    attached: AttachedShape
    pose: Pose
    frame: str


class ShapeBuilder:
    """Builder of collision and visual shapes for one pybullet connection.

    Args:
        engine: connection to pybullet.
        folder: folder for mesh files.
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine, self._folder = engine, folder
        self._files: dict[str, str] = {}

    def collision(self, shapes: Sequence[PlacedShape], *, is_fixed: bool) -> int:
        """Return a collision shape that joins all colliding shapes, or -1 if there are none."""
        parts = [placed for placed in shapes if placed.attached.collision]
        if not parts:
            return -1
        are_hulls = all(_is_hull(placed, is_fixed=is_fixed) for placed in parts)
        if len(parts) > _MAX_SHAPES and are_hulls:
            index = self._engine.createCollisionShape(
                shapeType=self._engine.GEOM_MESH, fileName=self._group_file(parts)
            )
            return self._require_index(index, parts, "collide")
        _require_few(parts, "collide")
        index = self._engine.createCollisionShapeArray(
            **self._arrays(parts, visual=False, is_fixed=is_fixed),
            collisionFramePositions=[list(placed.pose.translation) for placed in parts],
            collisionFrameOrientations=[list(placed.pose.quat_xyzw) for placed in parts],
        )
        return self._require_index(index, parts, "collide")

    def visual(self, shapes: Sequence[PlacedShape]) -> int:
        """Return a visual shape that joins all visible shapes, or -1 if there are none."""
        parts = _merge_by_color([placed for placed in shapes if placed.attached.visual])
        if not parts:
            return -1
        index = self._engine.createVisualShapeArray(
            **self._arrays(parts, visual=True, is_fixed=True),
            visualFramePositions=[list(placed.pose.translation) for placed in parts],
            visualFrameOrientations=[list(placed.pose.quat_xyzw) for placed in parts],
            rgbaColors=[list(placed.attached.color or DEFAULT_COLOR) for placed in parts],
        )
        return self._require_index(index, parts, "be drawn")

    def _require_index(self, index: int, parts: Sequence[PlacedShape], purpose: str) -> int:
        """Return the index of a shape.

        Raises:
            SimulationError: if the index is negative, because the engine rejected the shape.
        """
        if index < 0:
            frames = ", ".join(sorted({placed.frame for placed in parts}))
            raise SimulationError(
                f"the physics engine could not make the shape of '{frames}' that is to {purpose}"
            )
        return index

    def _arrays(
        self, shapes: Sequence[PlacedShape], *, visual: bool, is_fixed: bool
    ) -> dict[str, list[Any]]:
        """Return the arguments of several shapes as parallel arrays."""
        rows = [self._arguments(placed, visual=visual, is_fixed=is_fixed) for placed in shapes]
        return {key: [row[key] for row in rows] for key in rows[0]}

    def _arguments(self, placed: PlacedShape, *, visual: bool, is_fixed: bool) -> dict[str, Any]:
        """Return the arguments of one shape.

        Raises:
            SimulationError: if the shape is a plane on a moving body.
        """
        bullet, shape = self._engine, placed.attached.shape
        arguments: dict[str, Any] = {
            "radii": 0.0,
            "halfExtents": [0.0, 0.0, 0.0],
            "lengths": 0.0,
            "fileNames": "",
            "meshScales": [1.0, 1.0, 1.0],
        }
        if not visual:
            arguments |= {"planeNormals": [0.0, 0.0, 1.0], "flags": 0}
        if shape.kind == "box":
            return arguments | {
                "shapeTypes": bullet.GEOM_BOX,
                "halfExtents": [0.5 * size for size in shape.dimensions],
            }
        if shape.kind == "sphere":
            return arguments | {"shapeTypes": bullet.GEOM_SPHERE, "radii": shape.dimensions[0]}
        if shape.kind == "capsule" or (shape.kind == "cylinder" and visual):
            kind = bullet.GEOM_CAPSULE if shape.kind == "capsule" else bullet.GEOM_CYLINDER
            return arguments | {
                "shapeTypes": kind,
                "radii": shape.dimensions[0],
                "lengths": shape.dimensions[1],
            }
        if shape.kind == "plane" and not visual:
            if not is_fixed:
                raise SimulationError(
                    f"frame '{placed.frame}': a plane cannot be simulated on a body that moves"
                )
            return arguments | {"shapeTypes": bullet.GEOM_PLANE}
        if not visual and _is_triangles(placed, is_fixed=is_fixed):
            arguments["flags"] = bullet.GEOM_FORCE_CONCAVE_TRIMESH
        file = self._mesh_file(placed, visual=visual, is_fixed=is_fixed)
        return arguments | {"shapeTypes": bullet.GEOM_MESH, "fileNames": file}

    def _group_file(self, shapes: Sequence[PlacedShape]) -> str:
        """Write convex pieces as groups of one file, which pybullet reads as a compound shape."""
        path, count, lines = self._folder / f"pieces{len(self._files)}.obj", 1, []
        for number, placed in enumerate(shapes):
            vertices, faces = hull(triangles_of(placed.attached.shape)[0], placed.frame)
            lines += [
                f"o piece{number}",
                *(f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in placed.pose.apply(vertices)),
            ]
            lines += [f"f {a + count} {b + count} {c + count}" for a, b, c in faces]
            count += len(vertices)
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
        self._files[path.name] = str(path)
        return str(path)

    def _mesh_file(self, placed: PlacedShape, *, visual: bool, is_fixed: bool) -> str:
        """Return the path of the mesh file of a shape, written once for equal shapes."""
        shape = placed.attached.shape
        if shape.kind == "point_cloud" and len(shape.points) > MAX_POINTS:
            shape = _reduce_cloud(shape, placed, visual=visual)
        if visual or _is_triangles(placed, is_fixed=is_fixed):
            detail = "all"
        elif placed.attached.level == "box" and shape.kind in _KINDS_WITH_LEVELS:
            detail = "box"
        else:
            detail = "hull"
        key = f"{shape.digest}-{detail}"
        if key not in self._files:
            vertices, faces = bounding_box(shape) if detail == "box" else triangles_of(shape)
            if detail != "all":
                vertices, faces = hull(vertices, placed.frame)
            path = self._folder / f"shape{len(self._files)}.obj"
            _write_obj(path, vertices, faces)
            self._files[key] = str(path)
        return self._files[key]


def _merge_by_color(shapes: list[PlacedShape]) -> list[PlacedShape]:
    """Return the shapes, merged by colour if they exceed pybullet's number for a body."""
    if len(shapes) <= _MAX_SHAPES:
        return shapes
    by_color: dict[Any, list[PlacedShape]] = {}
    for placed in shapes:
        color = placed.attached.color or DEFAULT_COLOR
        if color not in by_color and len(by_color) == _MAX_SHAPES:
            # Replace excess colours by the first one.
            color = next(iter(by_color))
        by_color.setdefault(color, []).append(placed)
    merged = []
    for color, parts in by_color.items():
        vertices, faces, count = [], [], 0
        for placed in parts:
            corners, triangles = drawn_triangles(placed.attached.shape)
            vertices.append(np.asarray(placed.pose.apply(corners), dtype=float))
            faces.append(triangles + count)
            count += len(corners)
        mesh = AttachedShape(
            Mesh(np.concatenate(vertices), np.concatenate(faces)), color=color, collision=False
        )
        merged.append(PlacedShape(mesh, Pose.identity(), parts[0].frame))
    return merged


def _require_few(parts: Sequence[PlacedShape], purpose: str) -> None:
    """Raise an error if a body has more shapes than pybullet allows, because it would crash."""
    if len(parts) > _MAX_SHAPES:
        frames = ", ".join(sorted({placed.frame for placed in parts}))
        raise SimulationError(
            f"'{frames}' has {len(parts)} shapes that are to {purpose}, but the physics engine"
            f" takes at most {_MAX_SHAPES} a body; join some in one mesh"
        )


def _is_hull(placed: PlacedShape, *, is_fixed: bool) -> bool:
    """Return whether a shape collides as the hull of a mesh."""
    shape = placed.attached.shape
    return (
        shape.kind == "mesh"
        and placed.attached.level != "box"
        and not _is_triangles(placed, is_fixed=is_fixed)
    )


def _is_triangles(placed: PlacedShape, *, is_fixed: bool) -> bool:
    """Return whether a shape collides by its triangles, not by its hull."""
    kind, level = placed.attached.shape.kind, placed.attached.level
    if not is_fixed or level == "box":
        return False
    return kind in ("point_cloud", "height_field") or (kind == "mesh" and level == "exact")


def _reduce_cloud(shape: Shape, placed: PlacedShape, *, visual: bool) -> Shape:
    """Return a large cloud with few enough points to draw.

    Raises:
        SimulationError: if the points collide individually, so that none can be omitted.
    """
    if not visual and placed.attached.level != "box":
        raise SimulationError(
            f"frame '{placed.frame}': a cloud of {len(shape.points)} points cannot be simulated,"
            f" expected at most {MAX_POINTS}; thin it out, or attach it with level='box'"
        )
    if not visual:
        return shape
    stride = -(-len(shape.points) // MAX_POINTS)
    return PointCloud(shape.points[::stride], radius=shape.dimensions[0])


def bounding_box(shape: Shape) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the corners (8, 3) of the box around a shape, and no faces."""
    corners = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=float)
    lower, upper = shape.bounds
    return lower + corners * np.maximum(upper - lower, 1e-6), np.zeros((0, 3), dtype=np.int64)


def drawn_triangles(
    shape: Shape, *, fineness: int = 4
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return vertices (n, 3) and faces (m, 3) of a shape for drawing, with smooth round sides.

    Args:
        shape: the shape.
        fineness: number of subdivisions of spheres. Other round shapes have the same resolution.
    """
    if shape.kind in ("box", "sphere", "cylinder", "capsule"):
        return solid_triangles(shape, fineness=fineness)
    if shape.kind == "point_cloud" and len(shape.points) > MAX_POINTS:
        indices = np.linspace(0, len(shape.points) - 1, MAX_POINTS).astype(int)
        shape = PointCloud(shape.points[indices], radius=float(shape.dimensions[0]))
    return triangles_of(shape)


def triangles_of(shape: Shape) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return vertices (n, 3) and faces (m, 3) for collisions, with cylinders as prisms."""
    if shape.kind == "plane":
        half = 0.5 * _DRAWN_PLANE_SIZE
        corners = [[-half, -half, 0.0], [half, -half, 0.0], [half, half, 0.0], [-half, half, 0.0]]
        return np.array(corners), np.array([[0, 1, 2], [0, 2, 3]], dtype=np.int64)
    mesh = mesh_of_field(shape) if shape.kind == "height_field" else shape
    mesh = mesh_of_cloud(shape) if shape.kind == "point_cloud" else mesh
    if mesh.kind == "mesh":
        faces = np.asarray(mesh.outward_faces, dtype=np.int64)
        return np.asarray(mesh.vertices, dtype=float), faces
    if shape.kind == "cylinder":
        return _prism(*shape.dimensions)
    radius, length = shape.dimensions
    angles = [2.0 * math.pi * i / _CONE_SIDES for i in range(_CONE_SIDES)]
    rim = [[radius * math.cos(angle), radius * math.sin(angle), -0.5 * length] for angle in angles]
    vertices = np.array([*rim, [0.0, 0.0, 0.5 * length], [0.0, 0.0, -0.5 * length]])
    tip, center = _CONE_SIDES, _CONE_SIDES + 1
    cone_faces = []
    for i in range(_CONE_SIDES):
        j = (i + 1) % _CONE_SIDES
        cone_faces += [[i, j, tip], [j, i, center]]
    return vertices, np.array(cone_faces, dtype=np.int64)


def _prism(radius: float, length: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return a prism around a cylinder. Its sides touch the mantle at the axes and diagonals.

    A real fingertip is a soft patch, and a simulated one is hard. It would touch a mantle along
    a line, of which the engine keeps one or two points, so that a held object would swing. A side
    of a few millimetres represents the patch.
    """
    angles = (np.arange(_CYLINDER_SIDES) + 0.5) * (2.0 * math.pi / _CYLINDER_SIDES)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rim = radius / math.cos(math.pi / _CYLINDER_SIDES) * directions
    ends = [
        np.column_stack([rim, np.full(_CYLINDER_SIDES, height)])
        for height in (-0.5 * length, 0.5 * length)
    ]
    vertices = np.concatenate(ends)
    return vertices, hull(vertices, "")[1]


def hull(
    vertices: NDArray[np.float64], frame: str
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the convex hull of points (n, 3): vertices (k, 3) and outward faces (m, 3).

    Args:
        vertices: the points.
        frame: frame of the shape, for error messages.

    Raises:
        SimulationError: if the hull has no volume.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        result = ConvexHull(vertices)
    except (QhullError, ValueError) as error:
        raise SimulationError(
            f"frame '{frame}': its mesh has no convex hull with a volume"
        ) from error
    used = np.unique(result.simplices)
    new_index = np.full(len(vertices), -1, dtype=np.int64)
    new_index[used] = np.arange(len(used))
    corners = vertices[result.simplices]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    is_inward = np.einsum("ij,ij->i", normals, result.equations[:, :3]) < 0.0
    faces = result.simplices.astype(np.int64)
    faces[is_inward] = faces[is_inward][:, ::-1]
    return vertices[used], new_index[faces]


@lru_cache(maxsize=512)
def inset_hull(shape: Shape) -> Shape:
    """Return the hull of a shape reduced by pybullet's margin, or a thin shape itself."""
    from scipy.optimize import linprog
    from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError

    if shape.kind == "cylinder":
        radius, length = shape.dimensions
        is_thick = min(radius, 0.5 * length) > _MIN_INSET_DEPTH
        return Cylinder(radius - _URDF_MARGIN, length - 2.0 * _URDF_MARGIN) if is_thick else shape
    try:
        planes = ConvexHull(np.asarray(shape.vertices, dtype=float)).equations
        # The deepest point maximises the distance from all planes.
        depths = np.insert(planes[:, :3], 3, 1.0, axis=1)
        deepest = linprog(
            [0.0, 0.0, 0.0, -1.0], A_ub=depths, b_ub=-planes[:, 3], bounds=(None, None)
        ).x
        if deepest is None or deepest[3] <= _MIN_INSET_DEPTH:
            return shape
        planes[:, 3] += _URDF_MARGIN
        return Mesh(*hull(HalfspaceIntersection(planes, deepest[:3]).intersections, ""))
    except (QhullError, ValueError, SimulationError):  # A flat shape has no hull.
        return shape


def _write_obj(path: Path, vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> None:
    """Write triangles with one normal for each face, so that flat sides are drawn flat."""
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = normals / np.where(lengths > 0.0, lengths, 1.0)
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in vertices]
    lines += [f"vn {x:.6g} {y:.6g} {z:.6g}" for x, y, z in normals]
    lines += [
        f"f {a + 1}//{i + 1} {b + 1}//{i + 1} {c + 1}//{i + 1}" for i, (a, b, c) in enumerate(faces)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
