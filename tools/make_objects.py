"""Objects of scenes/objects from exact convex pieces: ``python tools/make_objects.py``.

Bodies of revolution are polygons of the r-z plane turned about z in sectors: each sector of a
polygon is a convex piece, or all sectors together where the polygon touches the axis. The
visual shape is their surface: triangles of the pieces, without those that two pieces share.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import trimesh

from tmkit.formats import write_json_scene
from tmkit.graph import AttachedShape, Box, Free, Inertia, Mesh, SceneGraph
from tmkit.motion.masses import lumped_inertia
from tmkit.spatial import Pose

FOLDER = Path(__file__).resolve().parents[1] / "scenes" / "objects"
SECTORS = 16
FRICTION = 0.7

Polygon = Sequence[tuple[float, float]]


def hull(points: np.ndarray) -> Mesh:
    """Return the convex hull of points, in whole tenths of a millimetre."""
    mesh = trimesh.convex.convex_hull(np.round(points, 4))
    return Mesh(np.asarray(mesh.vertices), np.asarray(mesh.faces))


def union(pieces: list[Mesh]) -> Mesh:
    """Return the triangles of pieces whose centres are outside of all other pieces."""
    triangles: list[np.ndarray] = []
    planes = [
        trimesh.Trimesh(np.asarray(piece.vertices), np.asarray(piece.faces)) for piece in pieces
    ]
    for number, piece in enumerate(planes):
        middles = piece.triangles_center
        hidden = np.zeros(len(middles), dtype=bool)
        for other in planes[:number] + planes[number + 1 :]:
            heights = np.einsum("ij,kj->ki", other.face_normals, middles) - np.einsum(
                "ij,ij->i", other.face_normals, other.triangles_center
            )
            hidden |= heights.max(axis=1) < 1e-5
        triangles += list(piece.triangles[~hidden])
    corners, index = np.unique(
        np.round(np.array(triangles).reshape(-1, 3), 6), axis=0, return_inverse=True
    )
    return Mesh(corners, index.reshape(-1, 3))


def turn_profile(polygon: Polygon, sectors: int = SECTORS) -> list[Mesh]:
    """Return the convex pieces of a convex polygon (r, z) that is turned about z."""
    angles = np.arange(sectors + 1) * math.tau / sectors
    rings = [
        np.array([[r * math.cos(angle), r * math.sin(angle), z] for r, z in polygon])
        for angle in angles
    ]
    if min(r for r, _ in polygon) == 0.0:
        return [hull(np.concatenate(rings))]
    return [hull(np.concatenate([first, second])) for first, second in itertools.pairwise(rings)]


def bent(points: Sequence[tuple[float, float]], *, width: float, thickness: float) -> list[Mesh]:
    """Return the convex pieces of a strip of a width along x that follows points (y, z)."""
    middle = np.array(points)
    along = np.gradient(middle, axis=0)
    across = np.column_stack([-along[:, 1], along[:, 0]]) / np.linalg.norm(along, axis=1)[:, None]
    sides = [middle + sign * thickness / 2 * across for sign in (1.0, -1.0)]
    corners = [
        np.array([[x, *side[k]] for side in sides for x in (-width / 2, width / 2)])
        for k in range(len(points))
    ]
    return [hull(np.concatenate(pair)) for pair in itertools.pairwise(corners)]


def mug() -> list[Mesh]:
    """Return a mug of 7 cm and its handle towards y."""
    ys, zs = (
        [0.033, 0.050, 0.064, 0.068, 0.064, 0.050, 0.033],
        [0.078, 0.080, 0.070, 0.052, 0.034, 0.024, 0.026],
    )
    handle = bent(list(zip(ys, zs, strict=True)), width=0.012, thickness=0.008)
    wall = turn_profile([(0.030, 0.0), (0.035, 0.0), (0.035, 0.095), (0.030, 0.095)])
    return [*wall, *turn_profile([(0.0, 0.0), (0.030, 0.0), (0.030, 0.006), (0.0, 0.006)]), *handle]


def bowl() -> list[Mesh]:
    """Return a bowl of 13 cm."""
    low = [(0.026, 0.004), (0.034, 0.0), (0.052, 0.022), (0.047, 0.025)]
    high = [(0.047, 0.025), (0.052, 0.022), (0.065, 0.055), (0.060, 0.055)]
    return [
        *turn_profile([(0.0, 0.0), (0.034, 0.0), (0.026, 0.004), (0.0, 0.004)]),
        *turn_profile(low),
        *turn_profile(high),
    ]


def bottle() -> list[Mesh]:
    """Return a bottle of 6 cm and its neck."""
    return [
        *turn_profile([(0.0, 0.0), (0.03, 0.0), (0.03, 0.12), (0.0, 0.12)]),
        *turn_profile([(0.0, 0.12), (0.03, 0.12), (0.013, 0.155), (0.0, 0.155)]),
        *turn_profile([(0.0, 0.155), (0.013, 0.155), (0.013, 0.19), (0.0, 0.19)]),
    ]


def pan() -> list[Mesh]:
    """Return a pan of 16 cm and its handle towards y."""
    wall = turn_profile([(0.066, 0.0), (0.07, 0.0), (0.08, 0.045), (0.076, 0.045)])
    handle = hull(
        np.array([[x, y, z] for x in (-0.01, 0.01) for y in (0.077, 0.21) for z in (0.028, 0.040)])
    )
    return [*turn_profile([(0.0, 0.0), (0.066, 0.0), (0.066, 0.004), (0.0, 0.004)]), *wall, handle]


def box() -> list[tuple[list[float], list[float]]]:
    """Return sides and middles of the walls of an open box of 12 cm x 7 cm x 6 cm."""
    return [
        ([0.12, 0.07, 0.005], [0.0, 0.0, 0.0025]),
        *(([0.12, 0.005, 0.055], [0.0, sign * 0.0325, 0.0325]) for sign in (1.0, -1.0)),
        *(([0.005, 0.06, 0.055], [sign * 0.0575, 0.0, 0.0325]) for sign in (1.0, -1.0)),
    ]


def lid() -> list[tuple[list[float], list[float]]]:
    """Return sides and middles of a lid for the box, with a grip."""
    return [([0.12, 0.07, 0.005], [0.0, 0.0, 0.0025]), ([0.03, 0.015, 0.02], [0.0, 0.0, 0.015])]


def add(
    scene: SceneGraph, name: str, shapes: list[AttachedShape], mass: float, parent: str, pose: Pose
) -> SceneGraph:
    """Return a scene with an object of one density."""
    bare = SceneGraph().add_frame(name, "world", shapes=shapes)
    inertia = lumped_inertia(bare, (name,), density=500.0)
    share = mass / inertia.mass
    inertia = Inertia(
        mass, np.round(inertia.center, 6), matrix=np.round(share * np.asarray(inertia.matrix), 9)
    )
    classes = ["movable", name, *(["surface"] if name == "box" else [])]
    added = scene.add_frame(name, parent, pose=pose, joint=Free(), classes=classes, shapes=shapes)
    return added.set_inertia(name, inertia)


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    meshes = {
        "mug": (mug(), 0.25, [0.80, 0.25, 0.20, 1.0]),
        "bowl": (bowl(), 0.2, [0.25, 0.45, 0.75, 1.0]),
        "bottle": (bottle(), 0.3, [0.30, 0.60, 0.35, 1.0]),
        "pan": (pan(), 0.5, [0.35, 0.35, 0.38, 1.0]),
    }
    for name, (pieces, mass, color) in meshes.items():
        drawn = AttachedShape(union(pieces), color=color, collision=False)
        solid = [
            AttachedShape(piece, visual=False, friction=FRICTION, level="hull") for piece in pieces
        ]
        shapes = [drawn, *solid]
        write_json_scene(
            add(SceneGraph(), name, shapes, mass, "world", Pose()), FOLDER / f"{name}.json"
        )
    scene = SceneGraph()
    for name, parts, mass, pose, color in (
        ("box", box(), 0.15, Pose(), [0.75, 0.60, 0.40, 1.0]),
        ("lid", lid(), 0.08, Pose([0.0, 0.0, 0.06]), [0.60, 0.45, 0.30, 1.0]),
    ):
        shapes = [
            AttachedShape(Box(size), Pose(middle), color=color, friction=FRICTION)
            for size, middle in parts
        ]
        scene = add(scene, name, shapes, mass, "world" if name == "box" else "box", pose)
    write_json_scene(scene, FOLDER / "box.json")


if __name__ == "__main__":
    main()
