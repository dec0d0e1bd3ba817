"""Stable faces of an object on a level surface.

An object is stable on a facet of its convex hull if its centre of mass projects to the inside of
that facet. The distance to the edge is the face's *margin*: the object tips over if its support is
narrower by this distance. Round solids have no facets on their round sides. A cylinder is stable on
its caps. A cylinder, a capsule or a ball may also lie at any of a few rotations about its axis, and
*rolls* there. The centre of mass comes from the masses of the scene. Without masses, the solids
have equal density, and a mesh without volume has that of its hull.

Invariants: each face's outline contains the projected centre of mass, by at least the requested
margin (unless it rolls). Faces are in a fixed order, the most stable first, and equal solids have
equal faces. A round mesh has at most 64, of the largest facets.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import cos, dot, norms, product, sin
from tmkit.errors import SceneError
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.motion.masses import centre_of_mass
from tmkit.motion.regions.polygons import ConvexPolygon
from tmkit.motion.regions.solids import reach, solid_points, solids_under
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers

LEAST_MARGIN = 0.002
"""Smallest distance of the projected centre of mass from the edge of a stable face [m]."""

_REDUCED_MARGIN_FRACTION = 0.1
"""Fraction of the margin that suffices if no face has the margin."""

_COPLANAR_COSINE = cos(1e-3)
"""Smallest cosine between the normals of triangles of one facet."""

_FACET_TOLERANCE = 1e-5
"""Largest distance of a corner from the plane of its facet [m]."""

_ROUNDNESS_TOLERANCE = 1e-4
"""Largest variation of a round object's height with its rotation [m]."""

_MAX_FACES = 64
"""Maximum number of faces of an object."""

_MAX_PRODUCTS = 4_000_000
"""Number of products of points and directions in memory."""

_CACHE_SIZE = 512
"""Number of objects whose faces are cached."""

_ROLL_COUNT = 8
"""Number of rotations about the axis at which a round object may lie."""

_ROUND_KINDS = ("sphere", "capsule", "cone")
"""Shapes whose hull has triangles that are not facets, apart from the cap of a cone."""

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StableFace:
    """Stable orientation of an object on a level surface.

    Attributes:
        rotation: surface_from_object without translation, with the face downwards.
        outline: outline of the face, about the object's origin, in the surface's x and y [m].
        centre: (2,) projected centre of mass, in the same coordinates [m].
        height: height of the object's origin above the surface [m].
        margin: distance of the projected centre of mass from the edge of the face [m]. 0 if the
            object rolls.
        is_rolling: whether the object is round at its contact.
        name: direction of the object that points up.
    """

    rotation: Pose
    outline: ConvexPolygon
    centre: Vector
    height: float
    margin: float
    is_rolling: bool
    name: str

    @property
    def is_upright(self) -> bool:
        """True if the object's z axis points up, within 1 degree."""
        return float(self.rotation.rotation[2, 2]) >= cos(math.radians(1.0))


def stable_faces(
    scene: SceneGraph,
    object: str,
    *,
    q: ArrayLike | None = None,
    least_margin: float = LEAST_MARGIN,
) -> tuple[StableFace, ...]:
    """Return the stable faces of an object with its descendants, the most stable first.

    Args:
        scene: scene with the object.
        object: frame of the object.
        q: (n_joints,) configuration. May be None if the object has no joints.
        least_margin: smallest distance of the projected centre of mass from the edge of a face [m].
            A tenth of it suffices if no face has this margin. Faces of rounded meshes are an
            example, on which the object may rock.

    Raises:
        SceneError: if the object has no collision shape, or a plane.
        UnknownNameError: if the frame is unknown.
    """
    solids = solids_under(scene, object, q=q)
    if not solids or any(attached.shape.kind == "plane" for attached in solids):
        fault = "has no collision shape" if not solids else "has a plane"
        raise SceneError(f"object '{object}' {fault}, so it cannot rest on anything", frame=object)
    faces = _rank_faces(solids, centre_of_mass(scene, object, q=q).tobytes())
    stable = tuple(face for face in faces if face.is_rolling or face.margin >= least_margin)
    reduced_margin = _REDUCED_MARGIN_FRACTION * least_margin
    return stable or tuple(face for face in faces if face.margin >= reduced_margin)


@functools.lru_cache(maxsize=_CACHE_SIZE)
def _rank_faces(solids: tuple[AttachedShape, ...], mass_centre: bytes) -> tuple[StableFace, ...]:
    """Return the faces of solids, the most stable first.

    Args:
        solids: collision shapes of an object.
        mass_centre: (3,) centre of mass [m], as the bytes of an array.
    """
    centre = np.frombuffer(mass_centre)

    def instability(face: StableFace) -> tuple[bool, float]:
        """Return the sort key: the negative tangent of the angle at which the object tips over."""
        centre_height = face.height + float(face.rotation.rotate(centre)[2])
        return face.is_rolling, -round(face.margin / max(1e-9, centre_height), 9)

    return tuple(sorted(_faces(solids, centre), key=instability))


def resting_height(
    scene: SceneGraph, object: str, down: ArrayLike, *, tolerance: float = 0.05
) -> float | None:
    """Return the height of an object's origin above a level surface on which it rests [m].

    Args:
        scene: scene with the object.
        object: frame of the object, without joints below it.
        down: (3,) unit vector in the object's axes that points down.
        tolerance: largest tilt of the object [rad].

    Returns:
        The height, or None if the object would tip over.

    Raises:
        SceneError: if the object has no collision shape, or a plane.
    """
    direction = plain_numbers(down, "down", "1")
    for face in stable_faces(scene, object):
        height = face.height
        if face.is_rolling:
            height = reach(solids_under(scene, object, q=None), direction)
        face_down = face.rotation.inverse().rotate([0.0, 0.0, -1.0])
        is_aligned = not dot(direction, face_down) < cos(tolerance)
        is_round = face.is_rolling and abs(height - face.height) <= _ROUNDNESS_TOLERANCE
        if is_aligned or is_round:
            return height
    return None


def _faces(solids: tuple[AttachedShape, ...], centre: Vector) -> Iterator[StableFace]:
    """Yield the faces of solids with a centre of mass (3,), stable or not."""
    kind, axes = solids[0].shape.kind, solids[0].pose.rotation
    if len(solids) == 1 and kind == "box":
        for normal in (sign * axis for axis in axes.T[::-1] for sign in (-1.0, 1.0)):
            yield _face(solids, centre, normal)
        return
    if len(solids) > 1 or kind not in ("cylinder", *_ROUND_KINDS):
        for normal in _select_normals(_facet_normals(solids), solids, centre):
            yield _face(solids, centre, normal)
        return
    if kind in ("cylinder", "cone"):
        for sign in (-1.0, 1.0) if kind == "cylinder" else (-1.0,):
            yield _face(solids, centre, sign * axes[:, 2])
    if kind == "sphere":
        for normal in (sign * axis for axis in axes.T[::-1] for sign in (-1.0, 1.0)):
            yield _face(solids, centre, normal, is_rolling=True)
    elif kind != "cone":
        for k in range(_ROLL_COUNT):
            angle = k * math.tau / _ROLL_COUNT
            normal = cos(angle) * axes[:, 0] + sin(angle) * axes[:, 1]
            yield _face(solids, centre, normal, is_rolling=True)


def _face(
    solids: tuple[AttachedShape, ...], centre: Vector, down: Vector, *, is_rolling: bool = False
) -> StableFace:
    """Return the face on which an object rests with a direction of its axes pointing down.

    Args:
        solids: collision shapes of the object.
        centre: (3,) centre of mass [m].
        down: (3,) unit vector.
        is_rolling: whether the object is round at its contact.
    """
    rotation = _rotation_down(down)
    height = reach(solids, down)
    points = np.concatenate([solid_points(attached) for attached in solids])
    depths = product(points, down)
    lowest = points[depths >= float(np.max(depths)) - _FACET_TOLERANCE]
    outline = ConvexPolygon.around(rotation.apply(lowest)[:, :2])
    projection = rotation.apply(centre)[:2]
    margin = 0.0 if is_rolling else float(outline.depth(projection)[0])
    name = f"{_direction_name(-down)} up"
    return StableFace(rotation, outline, projection, height, margin, is_rolling, name)


def _facet_normals(solids: Sequence[AttachedShape]) -> Vector:
    """Return the outward normals (n, 3) of the hull's facets, except those of round solids."""
    from scipy.spatial import ConvexHull, QhullError

    clouds = [solid_points(attached) for attached in solids]
    is_round = np.concatenate(
        [
            np.full(len(cloud), attached.shape.kind in _ROUND_KINDS)
            for attached, cloud in zip(solids, clouds, strict=True)
        ]
    )
    try:
        hull = ConvexHull(np.concatenate(clouds))
    except QhullError:
        # An object without thickness has no facets.
        return np.empty((0, 3))
    corners = hull.points[hull.simplices]
    areas = norms(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    order = np.lexsort((*np.round(hull.equations.T, 6), -np.round(areas, 12)))
    normals = hull.equations[order[~np.any(is_round[hull.simplices[order]], axis=1)], :3]
    distinct, count = np.empty_like(normals), 0
    for normal in normals:
        if np.all(product(distinct[:count], normal) < _COPLANAR_COSINE):
            distinct[count], count = normal, count + 1
    return distinct[:count]


def _select_normals(normals: Vector, solids: Sequence[AttachedShape], centre: Vector) -> Vector:
    """Return the normals of at most 64 faces that may contain the projected centre of mass.

    The margin of a face is bounded by that of its bounding rectangle. BLAS computes the bounds,
    since their last bits do not matter.

    Args:
        normals: (n, 3) outward normals.
        solids: collision shapes of the object.
        centre: (3,) centre of mass [m].

    Returns:
        (k, 3) normals, in their original order.
    """
    points, bounds = np.concatenate([solid_points(attached) for attached in solids]), []
    chunk_count = math.ceil(len(normals) * len(points) / _MAX_PRODUCTS)
    for chunk in np.array_split(normals, chunk_count):
        depths = chunk @ points.T
        threshold = depths.max(axis=1, keepdims=True) - 2.0 * _FACET_TOLERANCE
        rows, contact_indices = np.nonzero(depths >= threshold)
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        x_axes = np.cross(chunk, np.eye(3)[np.argmin(np.abs(chunk), axis=1)])
        x_axes /= norms(x_axes)[:, None]
        axes = np.stack([x_axes, np.cross(chunk, x_axes)], axis=1)
        offsets = np.einsum("nij,nj->ni", axes[rows], points[contact_indices] - centre)
        upper = np.maximum.reduceat(offsets, starts)
        lower = np.minimum.reduceat(offsets, starts)
        bounds.append(np.minimum(upper, -lower).min(axis=1))
    bound = np.concatenate(bounds) if bounds else np.empty(0)
    count = min(_MAX_FACES, np.count_nonzero(bound > 0.0))
    best = np.argsort(-np.round(bound, 9), kind="stable")[:count]
    return normals[np.sort(best)]


def _rotation_down(down: Vector) -> Pose:
    """Return the smallest rotation of a direction (3,) to -z, or 180 degrees about x for +z."""
    if down[2] > 1.0 - 1e-12:
        return Pose([0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0])
    axis = np.cross(down, [0.0, 0.0, -1.0])
    return Pose([0.0, 0.0, 0.0], [*axis, 1.0 - float(down[2])])


def _direction_name(direction: Vector) -> str:
    """Return the name of a direction (3,) of the object's axes."""
    axis = int(np.argmax(np.abs(direction)))
    if abs(direction[axis]) > _COPLANAR_COSINE:
        return f"{'+' if direction[axis] > 0.0 else '-'}{'xyz'[axis]}"
    return "(" + ", ".join(f"{number + 0.0:.2f}" for number in np.round(direction, 2)) + ")"
