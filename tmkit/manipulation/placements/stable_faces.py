"""Stable faces: the ways in which an object can rest on a level surface.

An object stays on a facet of its convex hull if its centre of mass is above the inside of that
facet. How far inside is the face's *margin*: the object falls over when its support is narrower by
so much. Round solids have no facets where they are round. A cylinder stands on its caps, and a
cylinder, a capsule or a ball may also lie, in any of a few turns about its axis, and *rolls* then.
The masses of the scene give the centre of mass. Where it gives none, the solids are of one density,
and a mesh that encloses no volume is as heavy as its hull.

Invariants: each face's outline holds the point below the centre of mass, by the margin asked for at
least (unless it rolls). Faces are in a fixed order, the most stable first, and equal solids have
equal faces. A round mesh has 64 at most, of the largest facets.
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
from tmkit.motion.masses import volume_and_centre
from tmkit.motion.regions.polygons import ConvexPolygon
from tmkit.motion.regions.solids import reach, solid_points, solids_under
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers

LEAST_MARGIN = 0.002
"""Metres by which the centre of mass must be inside a face for the face to count."""

_BARELY = 0.1  # of the margin that counts where no face has more
_COPLANAR = cos(1e-3)  # of the angle between the normals of triangles of one facet
_SAME_HEIGHT = 1e-5  # metres between the corners of one facet, across it
_ROUND_WITHIN = 1e-4  # metres by which a round object's height may differ from turn to turn
_MOST, _AT_ONCE = 64, 4_000_000  # faces of an object; points times directions
_MOST_KNOWN = 512  # objects whose faces are kept
_ROLLS = 8  # turns about the axis in which a round object may lie
# solids whose hull's triangles are no facets (a cone's cap apart)
_ROUND = ("sphere", "capsule", "cone")

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StableFace:
    """A way of resting.

    Attributes:
        rotation: surface_from_object without translation: turns the face downwards.
        outline: the face, about the object's origin, in the x and y of the surface.
        centre: (2,) the point below the centre of mass, in the same coordinates.
        height: metres of the object's origin above the surface.
        margin: metres of that point from the edge of the face; 0 where the object rolls.
        is_rolling: whether it is round there.
        name: in words: the object's direction that points up.
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
        """Whether the object's z axis points up, within a degree."""
        return float(self.rotation.rotation[2, 2]) >= cos(math.radians(1.0))


def stable_faces(
    scene: SceneGraph,
    object: str,
    *,
    q: ArrayLike | None = None,
    least_margin: float = LEAST_MARGIN,
) -> tuple[StableFace, ...]:
    """Return the ways in which an object can rest, with its descendants, the most stable first.

    Args:
        scene: the scene.
        object: frame of the object.
        q: (n_joints,) configuration; None where the object has no joints.
        least_margin: metres that the centre of mass must be inside a face; a tenth of it where no
            face has that, as those of rounded meshes, on which the object may rock.

    Raises:
        SceneError: the object has no collision shape, or a plane.
        UnknownNameError: no such frame.
    """
    solids = solids_under(scene, object, q=q)
    if not solids or any(attached.shape.kind == "plane" for attached in solids):
        what = "has no collision shape" if not solids else "has a plane"
        raise SceneError(f"object '{object}' {what}, so it cannot rest on anything", frame=object)
    found = _ordered_faces(solids, centre_of_mass(scene, object, q=q).tobytes())
    kept = tuple(face for face in found if face.is_rolling or face.margin >= least_margin)
    return kept or tuple(face for face in found if face.margin >= _BARELY * least_margin)


@functools.lru_cache(maxsize=_MOST_KNOWN)
def _ordered_faces(solids: tuple[AttachedShape, ...], mass_centre: bytes) -> tuple[StableFace, ...]:
    """Return the faces of solids, the most stable first; of the centre of mass (3,) all bits count."""
    centre = np.frombuffer(mass_centre)

    def instability(face: StableFace) -> tuple[bool, float]:
        height = face.height + float(face.rotation.rotate(centre)[2])  # of the centre of mass
        # of the tangent by which it falls over
        return face.is_rolling, -round(face.margin / max(1e-9, height), 9)

    return tuple(sorted(_faces(solids, centre), key=instability))


def resting_height(
    scene: SceneGraph, object: str, down: ArrayLike, *, tolerance: float = 0.05
) -> float | None:
    """Return the metres of an object's origin above a level surface on which it rests, None where it would tip over.

    Args:
        scene: the scene.
        object: frame of the object, without joints below it.
        down: (3,) unit vector in the object's frame that points down.
        tolerance: radians by which the object may lean.

    Raises:
        SceneError: as for :func:`stable_faces`.
    """
    towards = plain_numbers(down, "down")
    for face in stable_faces(scene, object):
        height = (
            reach(solids_under(scene, object, q=None), towards) if face.is_rolling else face.height
        )
        leans = dot(towards, face.rotation.inverse().rotate([0.0, 0.0, -1.0])) < cos(tolerance)
        if not leans or (face.is_rolling and abs(height - face.height) <= _ROUND_WITHIN):
            return height
    return None


def centre_of_mass(scene: SceneGraph, object: str, *, q: ArrayLike | None = None) -> Vector:
    """Return the centre of mass (3,) of an object and its descendants, in its frame.

    Args:
        q: (n_joints,) configuration; needed if the scene has joints.
    """
    masses: list[tuple[float, Vector]] = []
    for frame in scene.subtree(object):
        inertia = scene.inertia(frame)
        if inertia is not None and inertia.mass > 0.0:
            masses.append(
                (inertia.mass, scene.pose(frame, relative_to=object, q=q).apply(inertia.center))
            )
    if not masses:
        masses = [volume_and_centre(attached) for attached in solids_under(scene, object, q=q)]
    total = sum(mass for mass, _ in masses)
    return sum((mass * centre for mass, centre in masses), np.zeros(3)) / total


def _faces(solids: tuple[AttachedShape, ...], centre: Vector) -> Iterator[StableFace]:
    kind, axes = solids[0].shape.kind, solids[0].pose.rotation
    if len(solids) == 1 and kind == "box":
        for normal in (sign * axis for axis in axes.T[::-1] for sign in (-1.0, 1.0)):
            yield _face(solids, centre, normal)
        return
    if len(solids) > 1 or kind not in ("cylinder", *_ROUND):
        for normal in _under(_facet_normals(solids), solids, centre):
            yield _face(solids, centre, normal)
        return
    if kind in ("cylinder", "cone"):
        for sign in (-1.0, 1.0) if kind == "cylinder" else (-1.0,):
            yield _face(solids, centre, sign * axes[:, 2])
    if kind == "sphere":
        for normal in (sign * axis for axis in axes.T[::-1] for sign in (-1.0, 1.0)):
            yield _face(solids, centre, normal, is_rolling=True)
    elif kind != "cone":
        for k in range(_ROLLS):
            angle = k * math.tau / _ROLLS
            yield _face(
                solids, centre, cos(angle) * axes[:, 0] + sin(angle) * axes[:, 1], is_rolling=True
            )


def _face(
    solids: tuple[AttachedShape, ...], centre: Vector, down: Vector, *, is_rolling: bool = False
) -> StableFace:
    """Return the face on which an object rests when a direction of its frame points down."""
    rotation = _turned_down(down)
    height = reach(solids, down)
    points = np.concatenate([solid_points(attached) for attached in solids])
    depths = product(points, down)
    lowest = points[depths >= float(np.max(depths)) - _SAME_HEIGHT]
    outline = ConvexPolygon.around(rotation.apply(lowest)[:, :2])
    below = rotation.apply(centre)[:2]
    margin = 0.0 if is_rolling else float(outline.depth(below)[0])
    return StableFace(
        rotation, outline, below, height, margin, is_rolling, f"{_direction(-down)} up"
    )


def _facet_normals(solids: Sequence[AttachedShape]) -> Vector:
    """Return the outward normals (n, 3) of the facets of the hull, those that touch round solids omitted."""
    from scipy.spatial import ConvexHull, QhullError

    clouds = [solid_points(attached) for attached in solids]
    is_round = np.concatenate(
        [
            np.full(len(cloud), attached.shape.kind in _ROUND)
            for attached, cloud in zip(solids, clouds, strict=True)
        ]
    )
    try:
        hull = ConvexHull(np.concatenate(clouds))
    except QhullError:
        return np.empty((0, 3))  # flat as paper: nothing that physics could put down
    corners = hull.points[hull.simplices]
    areas = norms(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    order = np.lexsort((*np.round(hull.equations.T, 6), -np.round(areas, 12)))
    normals = hull.equations[order[~np.any(is_round[hull.simplices[order]], axis=1)], :3]
    found, count = np.empty_like(normals), 0
    for normal in normals:
        if np.all(product(found[:count], normal) < _COPLANAR):
            found[count], count = normal, count + 1
    return found[:count]


def _under(downs: Vector, solids: Sequence[AttachedShape], centre: Vector) -> Vector:
    """Return those of some directions (n, 3) on whose face the centre of mass may be inside, :data:`_MOST` at most.

    A face's margin is no more than what its box has around that point. BLAS computes it: its last
    bits do not matter.
    """
    points, bounds = np.concatenate([solid_points(attached) for attached in solids]), []
    for down in np.array_split(downs, math.ceil(len(downs) * len(points) / _AT_ONCE)):
        depths = down @ points.T
        rows, touching = np.nonzero(
            depths >= depths.max(axis=1, keepdims=True) - 2.0 * _SAME_HEIGHT
        )
        first = np.cross(down, np.eye(3)[np.argmin(np.abs(down), axis=1)])
        first /= norms(first)[:, None]
        axes, starts = (
            np.stack([first, np.cross(down, first)], axis=1),
            np.flatnonzero(np.diff(rows, prepend=-1)),
        )
        away = np.einsum("nij,nj->ni", axes[rows], points[touching] - centre)
        room = np.minimum(np.maximum.reduceat(away, starts), -np.minimum.reduceat(away, starts))
        bounds.append(room.min(axis=1))
    bound = np.concatenate(bounds) if bounds else np.empty(0)
    best = np.argsort(-np.round(bound, 9), kind="stable")[
        : min(_MOST, np.count_nonzero(bound > 0.0))
    ]
    return downs[np.sort(best)]


def _turned_down(down: Vector) -> Pose:
    """Return the smallest rotation that brings a direction to -z; half a turn about x for +z."""
    if down[2] > 1.0 - 1e-12:
        return Pose([0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0])
    axis = np.cross(down, [0.0, 0.0, -1.0])
    return Pose([0.0, 0.0, 0.0], [*axis, 1.0 - float(down[2])])


def _direction(direction: Vector) -> str:
    """Return a direction of the object's frame in words."""
    along = int(np.argmax(np.abs(direction)))
    if abs(direction[along]) > _COPLANAR:
        return f"{'+' if direction[along] > 0.0 else '-'}{'xyz'[along]}"
    return "(" + ", ".join(f"{number + 0.0:.2f}" for number in np.round(direction, 2)) + ")"
