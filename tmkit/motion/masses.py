"""Mass of rigid groups.

What the scene says counts; where it is silent, volume times a density, and a bounding box for the
moments of inertia.

Invariants: functions of the scene and the density alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import dot, product
from tmkit.errors import ShapeError
from tmkit.formats.mesh.solids import solid_inertia
from tmkit.graph import AttachedShape, Inertia, Mesh, SceneGraph
from tmkit.spatial import Pose

DENSITY = 500.0
"""kg/m^3 of objects of which the scene gives no mass."""

GRAVITY = 9.81
"""m/s^2, downwards along z of the root."""

_DEFAULT_LINK_MASS = 0.1  # kilograms of a moving link of which nothing is known, not even a shape


def ball_inertia(mass: float, radius: float) -> Inertia:
    """Return the inertia of a uniform sphere (kg, metres) about its center."""
    return Inertia(mass, matrix=0.4 * mass * radius * radius * np.eye(3))


def lumped_inertia(scene: SceneGraph, frames: Sequence[str], *, density: float) -> Inertia:
    """Return mass, centre and moments about it of rigidly joined frames as one body, in the axes of ``frames[0]``.

    Masses of the scene count; only when there are none at all do the collision shapes count with
    ``density`` (kg/m^3).

    Args:
        frames: frames that no moving joint parts, the reference first.
        density: kg/m^3, for a body without masses.
    """
    parts: list[tuple[float, NDArray[np.float64], NDArray[np.float64]]] = []
    bodies: set[str] = set()
    for frame in frames:
        inertia = scene.inertia(frame)
        if inertia is not None and inertia.mass > 0.0 and scene.body(frame) not in bodies:
            bodies.add(scene.body(frame))
            base_from_frame = scene.pose(frame, relative_to=frames[0])
            rotation = base_from_frame.rotation
            matrix = np.asarray(inertia.matrix, dtype=float)
            if not np.trace(matrix) > 0.0:  # a point counts as a small ball
                matrix = 0.4 * inertia.mass * 0.02 * 0.02 * np.eye(3)
            parts.append(
                (
                    inertia.mass,
                    base_from_frame.apply(inertia.center),
                    product(rotation, matrix, rotation.T),
                )
            )
    if not parts:
        parts = _parts_of_shapes(scene, frames, density)
    if not parts:
        return ball_inertia(_DEFAULT_LINK_MASS, 0.05)
    mass = sum(part[0] for part in parts)
    center = sum((part[0] * part[1] for part in parts), np.zeros(3)) / mass
    matrix = np.zeros((3, 3))
    for part_mass, part_center, part_matrix in parts:
        offset = part_center - center
        matrix += part_matrix + part_mass * (
            dot(offset, offset) * np.eye(3) - np.outer(offset, offset)
        )
    return Inertia(mass, center, matrix=matrix)


def _parts_of_shapes(
    scene: SceneGraph, frames: Sequence[str], density: float
) -> list[tuple[float, NDArray[np.float64], NDArray[np.float64]]]:
    """Return mass, centre and moments of each collision shape, taken as a box as large as its bounds.

    A mesh has its own centre of mass, for on that depends whether it stands.
    """
    parts = []
    for frame in frames:
        base_from_frame = scene.pose(frame, relative_to=frames[0])
        for attached in scene.shapes(frame):
            # no volume to weigh
            if not attached.collision or attached.shape.kind in ("plane", "point_cloud"):
                continue
            if not attached.shape.volume > 0.0:
                continue
            lower, upper = (np.asarray(bound, dtype=float) for bound in attached.shape.bounds)
            base_from_shape: Pose = base_from_frame @ attached.pose
            mass = density * attached.shape.volume
            squares = (upper - lower) ** 2
            moments = (
                mass
                / 12.0
                * np.diag(
                    [squares[1] + squares[2], squares[0] + squares[2], squares[0] + squares[1]]
                )
            )
            rotation = base_from_shape.rotation
            centre = solid_centre(attached.replace(pose=base_from_shape))
            parts.append((mass, centre, product(rotation, moments, rotation.T)))
    return parts


def solid_centre(attached: AttachedShape) -> NDArray[np.float64]:
    """Return the centre of mass (3,) of a solid of one density, in the frame that it is attached to."""
    return volume_and_centre(attached)[1]


def volume_and_centre(attached: AttachedShape) -> tuple[float, NDArray[np.float64]]:
    """Return cubic metres and centre (3,) of a solid of one density, in the frame that it is attached to."""
    shape = attached.shape
    lower, upper = shape.bounds
    if shape.kind in ("point_cloud", "height_field"):
        return float(np.prod(upper - lower)), attached.pose.apply((lower + upper) / 2)
    try:
        centre, _ = solid_inertia(shape, 1.0)
        # else some of a mesh's faces look inwards
        if np.all(centre >= lower) and np.all(centre <= upper):
            return float(shape.volume), attached.pose.apply(centre)
    except ShapeError:
        pass
    import trimesh

    hull = trimesh.convex.convex_hull(np.asarray(shape.vertices))
    convex = Mesh(np.asarray(hull.vertices), np.asarray(hull.faces))
    return float(convex.volume), attached.pose.apply(solid_inertia(convex, 1.0)[0])
