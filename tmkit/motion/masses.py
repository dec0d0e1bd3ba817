"""Mass of rigid groups.

The masses of the scene are used where it defines any. Otherwise the mass is volume times density,
with the moments of inertia of a bounding box.

Invariants: all results depend only on the scene and the density.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import dot, product
from tmkit.errors import ShapeError
from tmkit.formats.mesh.solids import solid_inertia
from tmkit.graph import AttachedShape, Inertia, Mesh, SceneGraph
from tmkit.motion.regions.solids import solids_under

DENSITY = 500.0
"""Density of objects without a mass in the scene [kg/m^3]."""

GRAVITY = 9.81
"""Gravitational acceleration, along the negative z axis of the root [m/s^2]."""

_DEFAULT_LINK_MASS = 0.1
"""Mass of a moving link without inertia and without a shape [kg]."""

_DEFAULT_LINK_RADIUS = 0.05
"""Radius of the ball that replaces such a link [m]."""

_POINT_MASS_RADIUS = 0.02
"""Radius of the ball whose moments are used for a mass without moments of inertia [m]."""

_Part = tuple[float, NDArray[np.float64], NDArray[np.float64]]


def ball_inertia(mass: float, radius: float) -> Inertia:
    """Return the inertia of a uniform sphere of a mass [kg] and radius [m] about its center."""
    return Inertia(mass, matrix=0.4 * mass * radius * radius * np.eye(3))


def lumped_inertia(scene: SceneGraph, frames: Sequence[str], *, density: float) -> Inertia:
    """Return the total inertia of rigidly connected frames.

    The center of mass and the moments about it are in the axes of ``frames[0]``. Collision shapes
    are used only if the scene defines no mass for any of the frames.

    Args:
        scene: the scene.
        frames: frames without a moving joint between them, the reference first.
        density: density of a body without masses [kg/m^3].
    """
    parts: list[_Part] = []
    bodies: set[str] = set()
    for frame in frames:
        inertia = scene.inertia(frame)
        if inertia is None or not inertia.mass > 0.0 or scene.body(frame) in bodies:
            continue
        bodies.add(scene.body(frame))
        base_from_frame = scene.pose(frame, relative_to=frames[0])
        rotation = base_from_frame.rotation
        moments = np.asarray(inertia.matrix, dtype=float)
        if not np.trace(moments) > 0.0:
            moments = 0.4 * inertia.mass * _POINT_MASS_RADIUS * _POINT_MASS_RADIUS * np.eye(3)
        center = base_from_frame.apply(inertia.center)
        parts.append((inertia.mass, center, product(rotation, moments, rotation.T)))
    if not parts:
        parts = _parts_of_shapes(scene, frames, density)
    if not parts:
        return ball_inertia(_DEFAULT_LINK_MASS, _DEFAULT_LINK_RADIUS)
    mass = sum(part[0] for part in parts)
    center = sum((part[0] * part[1] for part in parts), np.zeros(3)) / mass
    matrix = np.zeros((3, 3))
    for part_mass, part_center, part_moments in parts:
        offset = part_center - center
        steiner = dot(offset, offset) * np.eye(3) - np.outer(offset, offset)
        matrix += part_moments + part_mass * steiner
    return Inertia(mass, center, matrix=matrix)


def _parts_of_shapes(scene: SceneGraph, frames: Sequence[str], density: float) -> list[_Part]:
    """Return the mass, centre and moments of each collision shape, in the axes of ``frames[0]``.

    The moments are those of the bounding box. A mesh has its own centre of mass, since its
    stability depends on it.
    """
    parts = []
    for frame in frames:
        base_from_frame = scene.pose(frame, relative_to=frames[0])
        for attached in scene.shapes(frame):
            # Planes and point clouds have no volume.
            if not attached.collision or attached.shape.kind in ("plane", "point_cloud"):
                continue
            if not attached.shape.volume > 0.0:
                continue
            lower, upper = (np.asarray(bound, dtype=float) for bound in attached.shape.bounds)
            base_from_shape = base_from_frame @ attached.pose
            mass = density * attached.shape.volume
            x, y, z = (upper - lower) ** 2
            moments = mass / 12.0 * np.diag([y + z, x + z, x + y])
            rotation = base_from_shape.rotation
            centre = solid_centre(attached.replace(pose=base_from_shape))
            parts.append((mass, centre, product(rotation, moments, rotation.T)))
    return parts


def solid_centre(attached: AttachedShape) -> NDArray[np.float64]:
    """Return the centre of mass (3,) of a solid of uniform density, in the frame of its parent."""
    return volume_and_centre(attached)[1]


def volume_and_centre(attached: AttachedShape) -> tuple[float, NDArray[np.float64]]:
    """Return the volume and centre of mass (3,) of a solid of uniform density.

    Returns:
        volume [m^3], and centre in the frame to which the shape is attached [m].
    """
    shape = attached.shape
    lower, upper = shape.bounds
    if shape.kind in ("point_cloud", "height_field"):
        return float(np.prod(upper - lower)), attached.pose.apply((lower + upper) / 2)
    try:
        centre, _ = solid_inertia(shape, 1.0)
        # The centre lies outside the bounds if some faces of a mesh point inwards.
        if np.all(centre >= lower) and np.all(centre <= upper):
            return float(shape.volume), attached.pose.apply(centre)
    except ShapeError:
        pass
    import trimesh

    hull = trimesh.convex.convex_hull(np.asarray(shape.vertices))
    convex = Mesh(np.asarray(hull.vertices), np.asarray(hull.faces))
    return float(convex.volume), attached.pose.apply(solid_inertia(convex, 1.0)[0])


def centre_of_mass(
    scene: SceneGraph, object: str, *, q: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the centre of mass (3,) of an object and its descendants, in its axes [m].

    Args:
        scene: scene with the object.
        object: frame of the object.
        q: (n_joints,) configuration. May be None if the object has no joints.
    """
    masses: list[tuple[float, NDArray[np.float64]]] = []
    for frame in scene.subtree(object):
        inertia = scene.inertia(frame)
        if inertia is not None and inertia.mass > 0.0:
            centre = scene.pose(frame, relative_to=object, q=q).apply(inertia.center)
            masses.append((inertia.mass, centre))
    if not masses:
        masses = [volume_and_centre(attached) for attached in solids_under(scene, object, q=q)]
    total = sum(mass for mass, _ in masses)
    return sum((mass * centre for mass, centre in masses), np.zeros(3)) / total
