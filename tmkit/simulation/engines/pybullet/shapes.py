"""Scene shapes as pybullet shapes: docs/concepts/shapes.md, *Shapes in simulation*.

The margin of a millimetre by which pybullet surrounds a hull is taken away: a block with a mesh
lies as deep as one that is a box. In a URDF file, the way of mechanisms, it cannot be. There meshes
and cylinders are that much smaller, but for those thinner than 3 mm, so that a simulated arm
touches where the planned one does. Height fields that stand still are the triangles of their skin:
pybullet's own cannot stand beside other shapes on one body, and cut their cells along another
diagonal. Point clouds that stand still are a cube around each ball, as triangles, since pybullet
takes no more than 16 shapes a body. Pybullet has no triangles that move, so on what moves these and
meshes of level ``exact`` become hulls, and a plane is refused.

pybullet reads meshes from files only, so they are written into the simulation's private folder, one
file a shape however often it occurs. What is drawn keeps all its faces; what collides is the hull.
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

_SHAPES_OF_BODY = 16  # that pybullet takes
DEFAULT_COLOR = (0.62, 0.65, 0.70, 1.0)

# metres, by which pybullet surrounds the hulls of a URDF file, whatever it is told
_URDF_MARGIN = 0.001
_LEAST_DEPTH = 0.0015  # metres, of a hull that can be made smaller by that

MOST_POINTS = 50_000  # of a point cloud that is simulated or drawn

_DRAWN_PLANE = 20.0  # metres from side to side
_CYLINDER_SIDES = 24  # a multiple of 8: sides face the directions of grasps
_CONE_SIDES = 48
_WITH_LEVELS = ("mesh", "point_cloud", "height_field")


@dataclass(frozen=True)
class PlacedShape:
    """A shape with its pose in the body that it becomes part of (``body_from_shape``), and the frame it came from."""

    attached: AttachedShape
    pose: Pose
    frame: str


class ShapeBuilder:
    """Makes collision and visual shapes for one pybullet connection, with mesh files in a folder."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine, self._folder = engine, folder
        self._written: dict[str, str] = {}

    def collision(self, shapes: Sequence[PlacedShape], *, still: bool) -> int:
        """Return a collision shape that joins ``shapes``, or -1 when none of them collides."""
        chosen = [placed for placed in shapes if placed.attached.collision]
        if not chosen:
            return -1
        if len(chosen) > _SHAPES_OF_BODY and all(
            _is_hull(placed, still=still) for placed in chosen
        ):
            made = {"shapeType": self._engine.GEOM_MESH, "fileName": self._group_file(chosen)}
            return self._made(self._engine.createCollisionShape(**made), chosen, "collide")
        _require_few(chosen, "collide")
        index = self._engine.createCollisionShapeArray(
            **self._arrays(chosen, visual=False, still=still),
            collisionFramePositions=[list(placed.pose.translation) for placed in chosen],
            collisionFrameOrientations=[list(placed.pose.quat_xyzw) for placed in chosen],
        )
        return self._made(index, chosen, "collide")

    def visual(self, shapes: Sequence[PlacedShape]) -> int:
        """Return a visual shape that joins ``shapes``, each in its colour, or -1 when none of them is visible."""
        chosen = _few_to_draw([placed for placed in shapes if placed.attached.visual])
        if not chosen:
            return -1
        index = self._engine.createVisualShapeArray(
            **self._arrays(chosen, visual=True, still=True),
            visualFramePositions=[list(placed.pose.translation) for placed in chosen],
            visualFrameOrientations=[list(placed.pose.quat_xyzw) for placed in chosen],
            rgbaColors=[list(placed.attached.color or DEFAULT_COLOR) for placed in chosen],
        )
        return self._made(index, chosen, "be drawn")

    def _made(self, index: int, chosen: Sequence[PlacedShape], purpose: str) -> int:
        if index < 0:
            frames = ", ".join(sorted({placed.frame for placed in chosen}))
            raise SimulationError(
                f"the physics engine could not make the shape of '{frames}' that is to {purpose}"
            )
        return index

    def _arrays(
        self, shapes: Sequence[PlacedShape], *, visual: bool, still: bool
    ) -> dict[str, list[Any]]:
        """Return the parallel arrays in which pybullet takes several shapes at once."""
        rows = [self._described(placed, visual=visual, still=still) for placed in shapes]
        return {key: [row[key] for row in rows] for key in rows[0]}

    def _described(self, placed: PlacedShape, *, visual: bool, still: bool) -> dict[str, Any]:
        bullet, shape = self._engine, placed.attached.shape
        nothing = [0.0, 0.0, 0.0]
        made: dict[str, Any] = {
            "radii": 0.0,
            "halfExtents": nothing,
            "lengths": 0.0,
            "fileNames": "",
        }
        made["meshScales"] = [1.0, 1.0, 1.0]
        if not visual:
            made |= {"planeNormals": [0.0, 0.0, 1.0], "flags": 0}
        if shape.kind == "box":
            return made | {
                "shapeTypes": bullet.GEOM_BOX,
                "halfExtents": [0.5 * size for size in shape.dimensions],
            }
        if shape.kind == "sphere":
            return made | {"shapeTypes": bullet.GEOM_SPHERE, "radii": shape.dimensions[0]}
        if shape.kind == "capsule" or (shape.kind == "cylinder" and visual):
            kind = bullet.GEOM_CAPSULE if shape.kind == "capsule" else bullet.GEOM_CYLINDER
            return made | {
                "shapeTypes": kind,
                "radii": shape.dimensions[0],
                "lengths": shape.dimensions[1],
            }
        if shape.kind == "plane" and not visual:
            if not still:
                raise SimulationError(
                    f"frame '{placed.frame}': a plane cannot be simulated on a body that moves"
                )
            return made | {"shapeTypes": bullet.GEOM_PLANE}
        if not visual and _is_triangles(placed, still=still):
            made["flags"] = bullet.GEOM_FORCE_CONCAVE_TRIMESH
        file = self._mesh_file(placed, visual=visual, still=still)
        return made | {"shapeTypes": bullet.GEOM_MESH, "fileNames": file}

    def _group_file(self, shapes: Sequence[PlacedShape]) -> str:
        """Write convex pieces in one file, a group each: pybullet reads them as one shape of many hulls."""
        path, count, lines = self._folder / f"pieces{len(self._written)}.obj", 1, []
        for number, placed in enumerate(shapes):
            vertices, faces = hull(triangles_of(placed.attached.shape)[0], placed.frame)
            lines += [
                f"o piece{number}",
                *(f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in placed.pose.apply(vertices)),
            ]
            lines += [f"f {a + count} {b + count} {c + count}" for a, b, c in faces]
            count += len(vertices)
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
        self._written[path.name] = str(path)
        return str(path)

    def _mesh_file(self, placed: PlacedShape, *, visual: bool, still: bool) -> str:
        shape = placed.attached.shape
        if shape.kind == "point_cloud" and len(shape.points) > MOST_POINTS:
            shape = _downsampled(shape, placed, visual=visual)
        boxed = not visual and placed.attached.level == "box" and shape.kind in _WITH_LEVELS
        detail = (
            "box" if boxed else "all" if visual or _is_triangles(placed, still=still) else "hull"
        )
        key = f"{shape.digest}-{detail}"
        if key not in self._written:
            vertices, faces = bounding_box(shape) if boxed else triangles_of(shape)
            if detail != "all":
                vertices, faces = hull(vertices, placed.frame)
            path = self._folder / f"shape{len(self._written)}.obj"
            _write_obj(path, vertices, faces)
            self._written[key] = str(path)
        return self._written[key]


def _few_to_draw(shapes: list[PlacedShape]) -> list[PlacedShape]:
    """Return shapes as they are, or joined by colour where they are more than pybullet draws of a body."""
    if len(shapes) <= _SHAPES_OF_BODY:
        return shapes
    by_color: dict[Any, list[PlacedShape]] = {}
    for placed in shapes:
        color = placed.attached.color or DEFAULT_COLOR
        if color not in by_color and len(by_color) == _SHAPES_OF_BODY:
            # more colours than it draws: the first stands for the rest
            color = next(iter(by_color))
        by_color.setdefault(color, []).append(placed)
    joined = []
    for color, parts in by_color.items():
        vertices, faces, count = [], [], 0
        for placed in parts:
            own, corners = drawn_triangles(placed.attached.shape)
            vertices.append(np.asarray(placed.pose.apply(own), dtype=float))
            faces.append(corners + count)
            count += len(own)
        mesh = AttachedShape(
            Mesh(np.concatenate(vertices), np.concatenate(faces)), color=color, collision=False
        )
        joined.append(PlacedShape(mesh, Pose.identity(), parts[0].frame))
    return joined


def _require_few(chosen: Sequence[PlacedShape], purpose: str) -> None:
    """Refuse more shapes than pybullet takes in a body: it would crash."""
    if len(chosen) > _SHAPES_OF_BODY:
        frames = ", ".join(sorted({placed.frame for placed in chosen}))
        raise SimulationError(
            f"'{frames}' has {len(chosen)} shapes that are to {purpose}, but the physics engine"
            f" takes at most {_SHAPES_OF_BODY} a body; join some in one mesh"
        )


def _is_hull(placed: PlacedShape, *, still: bool) -> bool:
    """Whether a shape collides as the hull of a mesh."""
    shape = placed.attached.shape
    return (
        shape.kind == "mesh"
        and placed.attached.level != "box"
        and not _is_triangles(placed, still=still)
    )


def _is_triangles(placed: PlacedShape, *, still: bool) -> bool:
    """Whether a shape collides by its triangles and not by its hull."""
    kind, level = placed.attached.shape.kind, placed.attached.level
    return (
        still
        and level != "box"
        and (kind in ("point_cloud", "height_field") or (kind == "mesh" and level == "exact"))
    )


def _downsampled(shape: Shape, placed: PlacedShape, *, visual: bool) -> Shape:
    """Return as many points of a large cloud as can be drawn; none may be missing where they collide one by one."""
    if not visual and placed.attached.level != "box":
        raise SimulationError(
            f"frame '{placed.frame}': a cloud of {len(shape.points)} points cannot be simulated,"
            f" expected at most {MOST_POINTS}; thin it out, or attach it with level='box'"
        )
    if not visual:
        return shape
    return PointCloud(
        shape.points[:: -(-len(shape.points) // MOST_POINTS)], radius=shape.dimensions[0]
    )


def bounding_box(shape: Shape) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the corners (8, 3) of the box around a shape, and no faces."""
    corners = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=float)
    lower, upper = shape.bounds
    return lower + corners * np.maximum(upper - lower, 1e-6), np.zeros((0, 3), dtype=np.int64)


def drawn_triangles(
    shape: Shape, *, fineness: int = 4
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return vertices (n, 3) and faces (m, 3) of a shape as it is drawn, round where it is round.

    Args:
        fineness: how often the sides of balls are divided; others that are round are as fine.
    """
    if shape.kind in ("box", "sphere", "cylinder", "capsule"):
        return solid_triangles(shape, fineness=fineness)
    if shape.kind == "point_cloud" and len(shape.points) > MOST_POINTS:
        kept = np.linspace(0, len(shape.points) - 1, MOST_POINTS).astype(int)
        shape = PointCloud(shape.points[kept], radius=float(shape.dimensions[0]))
    return triangles_of(shape)


def triangles_of(shape: Shape) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return vertices (n, 3) and faces (m, 3) of a shape as it collides: cylinders as prisms."""
    if shape.kind == "plane":
        corners = (
            0.5
            * _DRAWN_PLANE
            * np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
        )
        return corners, np.array([[0, 1, 2], [0, 2, 3]], dtype=np.int64)
    mesh = mesh_of_field(shape) if shape.kind == "height_field" else shape
    mesh = mesh_of_cloud(shape) if shape.kind == "point_cloud" else mesh
    if mesh.kind == "mesh":
        return np.asarray(mesh.vertices, dtype=float), np.asarray(
            mesh.outward_faces, dtype=np.int64
        )
    if shape.kind == "cylinder":
        return _prism(*shape.dimensions)
    radius, length = shape.dimensions
    turns = [2.0 * math.pi * i / _CONE_SIDES for i in range(_CONE_SIDES)]
    rim = [[radius * math.cos(turn), radius * math.sin(turn), -0.5 * length] for turn in turns]
    vertices = np.array([*rim, [0.0, 0.0, 0.5 * length], [0.0, 0.0, -0.5 * length]])
    tip, center = _CONE_SIDES, _CONE_SIDES + 1
    faces = []
    for i in range(_CONE_SIDES):
        after = (i + 1) % _CONE_SIDES
        faces += [[i, after, tip], [after, i, center]]
    return vertices, np.array(faces, dtype=np.int64)


def _prism(radius: float, length: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return a prism around a cylinder: its sides touch the mantle where they face the axes and the diagonals.

    A fingertip is a soft patch, a simulated one is hard. On a true mantle it would touch along a
    line, of which the engine keeps a point or two, and what is held would swing. A side of a few
    millimetres stands for the patch.
    """
    turns = (np.arange(_CYLINDER_SIDES) + 0.5) * (2.0 * math.pi / _CYLINDER_SIDES)
    rim = (
        radius
        / math.cos(math.pi / _CYLINDER_SIDES)
        * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    )
    ends = [
        np.column_stack([rim, np.full(_CYLINDER_SIDES, height)])
        for height in (-0.5 * length, 0.5 * length)
    ]
    vertices = np.concatenate(ends)
    return vertices, hull(vertices, "")[1]


def hull(
    vertices: NDArray[np.float64], frame: str
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the convex hull of points (n, 3); an error names the frame."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(vertices)
    except (QhullError, ValueError) as error:
        raise SimulationError(
            f"frame '{frame}': its mesh has no convex hull with a volume"
        ) from error
    used = np.unique(hull.simplices)
    renumbered = np.full(len(vertices), -1, dtype=np.int64)
    renumbered[used] = np.arange(len(used))
    corners = vertices[hull.simplices]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    flipped = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0.0
    faces = hull.simplices.astype(np.int64)
    faces[flipped] = faces[flipped][:, ::-1]
    return vertices[used], renumbered[faces]


@lru_cache(maxsize=512)
def inset_hull(shape: Shape) -> Shape:
    """Return the hull of a mesh or cylinder without the margin that pybullet adds again; itself where that is thin."""
    from scipy.optimize import linprog
    from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError

    if shape.kind == "cylinder":
        radius, length = shape.dimensions
        is_thick = min(radius, 0.5 * length) > _LEAST_DEPTH
        return Cylinder(radius - _URDF_MARGIN, length - 2.0 * _URDF_MARGIN) if is_thick else shape
    try:
        planes = ConvexHull(np.asarray(shape.vertices, dtype=float)).equations
        # the deepest point is as far from all planes as can be
        depths = np.insert(planes[:, :3], 3, 1.0, axis=1)
        deepest = linprog(
            [0.0, 0.0, 0.0, -1.0], A_ub=depths, b_ub=-planes[:, 3], bounds=(None, None)
        ).x
        if deepest is None or deepest[3] <= _LEAST_DEPTH:
            return shape
        planes[:, 3] += _URDF_MARGIN
        return Mesh(*hull(HalfspaceIntersection(planes, deepest[:3]).intersections, ""))
    except (QhullError, ValueError, SimulationError):  # flat, or nearly so
        return shape


def _write_obj(path: Path, vertices: NDArray[np.float64], faces: NDArray[np.int64]) -> None:
    """Write triangles with one normal a face: flat sides are drawn flat."""
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
