"""Fast decomposition of a concave mesh into convex pieces, in about a second.

::

      mesh       cut until accurate   neighbours merged
    |      |       | |    | |            |      |
    |      |       |-|    |-|            |      |
    |______|       |_|_||_|_|            |______|

As in V-HACD (Mamou, 2016), a part whose convex hull lies too far outside the mesh is cut by the
plane after which the hulls have the least volume. Neighbours with an accurate common hull are
merged. :mod:`tmkit.formats.convex_pieces` needs ten seconds to minutes for fewer, more accurate
pieces.

The error of a hull is the radius of the largest ball about a point of the hull that does not touch
the mesh. Over the opening of a cavity, the error is half the width of the opening, so
:data:`FINGER_ROOM` determines whether a finger fits.

Invariants: the pieces contain every triangle of the mesh. No sample of a piece, spaced by a few
millimetres, lies outside the mesh by more than the error. Work is limited by counts, never by time,
and computed without BLAS and LAPACK: equal meshes have equal pieces on every CPU. Pieces are cached
on the disk.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tmkit._support.elementary import eigen, norms, product
from tmkit.formats.convex_pieces import INSIDE_WINDING, MAX_PIECES, solid, windings
from tmkit.formats.scene_cache import SceneCache, entry_key
from tmkit.graph import AttachedShape, SceneGraph, Shape

logger = logging.getLogger(__name__)

Array = npt.NDArray[np.float64]

FINGER_ROOM = 0.005
"""Largest error of a hull that replaces its mesh [m], since fingers are at least 1 cm wide."""

_ERROR_FRACTION = 0.01
"""Largest error of a piece, as a fraction of the diagonal of the mesh's box."""

_MIN_ERROR = 0.001
"""Smallest value of that bound [m]."""

_MAX_BOUND_FACTOR = 8
"""Largest multiple of that bound, for a mesh that needs too many pieces."""

_MAX_PARTS = 192
"""Largest number of parts before neighbours are merged."""

_MAX_SURFACE_SAMPLES = 200_000
"""Largest number of samples of the mesh among which the nearest is searched."""

_MAX_TRIANGLES = 4000
"""Number of triangles of a mesh above which close vertices are joined to compute its inside."""

_MAX_POINTS = 600
"""Number of points of a part above which close points are joined to choose a cut."""

_SPACINGS = (16.0, 3.0)
"""Spacings of the samples of a hull, as multiples of the error; most wrong hulls fail the first."""

_PAIRS_AT_ONCE = 400_000
"""Number of pairs of points and triangles whose winding numbers are computed at once."""

_CUT_FRACTIONS = (0.5, 0.3, 0.7)
"""Positions of the cuts across an axis, as fractions of the part's extent."""

_MAX_FACE_PLANES = 8
"""Largest number of planes of flat faces along which a part is cut."""

_LARGE_FACE_FRACTION = 0.05
"""Fraction of a part's area above which a flat face is large."""

_BALANCE_WEIGHT = 0.05
"""Weight of the volume difference of the halves, which selects among cuts of equal volume."""

_PLANE_TOLERANCE = 1e-5
"""Largest difference of the offsets of equal planes [m]."""

_VERTEX_TOLERANCE = 1e-9
"""Largest distance of a vertex that lies on a plane [m]."""


@functools.lru_cache(maxsize=256)
def needs_pieces(mesh: Shape) -> bool:
    """Return whether the hull of a mesh closes a recess for a finger (:data:`FINGER_ROOM`)."""
    part = _Part.of(_triangles(mesh))
    return (
        part is not None
        and not part.is_convex()
        and not _HullTest(part.triangles, FINGER_ROOM).is_accurate(part.hull)
    )


def quick_pieces(mesh: Shape) -> tuple[tuple[Shape, ...], float]:
    """Return convex pieces of a mesh, and the bound of their error [m].

    The bound is 1 % of the diagonal of the mesh's box, and larger if that needs too many pieces.
    There is no piece if the mesh has no volume, or needs too many pieces at eight times that bound.

    Args:
        mesh: triangles, which need not be closed.
    """
    cache, key = SceneCache.of_user(), entry_key("quick pieces", mesh.digest)
    entry = cache.get(key) if cache else None
    if entry is None:
        hulls, error = _decompose(_triangles(mesh))
        shapes = [
            solid(hull.corners, hull.faces, f"{mesh.source}#piece={k}")
            for k, hull in enumerate(hulls)
        ]
        scene = SceneGraph().add_frame(
            "pieces", "world", shapes=[AttachedShape(shape) for shape in shapes]
        )
        scene = scene.set_attributes("pieces", {"error": error})
        if cache:
            cache.put(key, scene, {}, ())
    else:
        scene = entry[0]
    error = float(scene.attributes("pieces")["error"])
    return tuple(part.shape for part in scene.shapes("pieces")), error


def _triangles(mesh: Shape) -> Array:
    """Return the triangles (n, 3, 3) of a mesh with a positive area, which face outwards."""
    triangles = np.asarray(mesh.vertices, dtype=float)[np.asarray(mesh.outward_faces)]
    return triangles[norms(_double_areas(triangles)) > 0.0]


def _double_areas(triangles: Array) -> Array:
    return np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])


@dataclass(frozen=True)
class _Hull:
    """A convex hull.

    Attributes:
        corners: (n, 3) corners [m].
        faces: (m, 3) indices of corners.
        planes: (m, 4) outward normals and negative offsets of the faces.
        volume: volume [m^3].
    """

    corners: Array
    faces: npt.NDArray[np.int64]
    planes: Array
    volume: float

    @classmethod
    def of(cls, points: Array) -> _Hull | None:
        """Return the hull of points (n, 3), or None if they lie in a plane."""
        from scipy.spatial import ConvexHull, QhullError

        try:
            hull = ConvexHull(points)
        except (QhullError, ValueError):
            return None
        number = np.zeros(len(points), dtype=np.int64)
        number[hull.vertices] = np.arange(len(hull.vertices))
        faces = number[hull.simplices]
        corners = points[hull.vertices]
        normals = hull.equations[:, :3]
        is_inward = np.einsum("ij,ij->i", _double_areas(corners[faces]), normals) < 0.0
        faces[is_inward] = faces[is_inward, ::-1]
        return cls(corners, faces, hull.equations, float(hull.volume))


@dataclass(frozen=True)
class _Part:
    """Clipped triangles (n, 3, 3) of a mesh, and their hull."""

    triangles: Array
    hull: _Hull

    @classmethod
    def of(cls, triangles: Array, *, thickness: float = 0.0) -> _Part | None:
        """Return the part of triangles, or None if it has no volume.

        Args:
            triangles: (n, 3, 3) corners [m].
            thickness: thickness on the inside of a flat part, such as the floor of a cavity in a
                block [m].
        """
        if not len(triangles):
            return None
        hull = _Hull.of(_join_points(triangles.reshape(-1, 3))[0])
        if hull is None and thickness > 0.0:
            normal = np.sum(_double_areas(triangles), axis=0)
            if not (length := float(norms(normal))) > 0.0:
                return None
            below = triangles - thickness / length * normal
            hull = _Hull.of(_join_points(np.concatenate([triangles, below]).reshape(-1, 3))[0])
        return None if hull is None else cls(triangles, hull)

    def is_convex(self) -> bool:
        """Return whether each triangle lies on the hull."""
        centers, planes = self.triangles.mean(axis=1), self.hull.planes
        chunk_size = max(1, _PAIRS_AT_ONCE // len(planes))
        for chunk in np.array_split(centers, math.ceil(len(centers) / chunk_size)):
            heights = np.max(product(chunk, planes[:, :3].T) + planes[:, 3], axis=1)
            if not heights.min() > -_MIN_ERROR:
                return False
        return True


def _join_points(points: Array, cell: float = 0.0) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return one point of each cell, and for each point the index of the point of its cell.

    Args:
        points: (n, 3) points [m].
        cell: side of a cell [m]; by default a millionth of the extent, which joins equal points.
    """
    low = points.min(axis=0)
    extent = float(np.max(points - low))
    numbers = np.round((points - low) / max(cell, 1e-6 * extent, 1e-12)).astype(np.int64)
    sizes = numbers.max(axis=0) + 1
    keys = (numbers[:, 0] * sizes[1] + numbers[:, 1]) * sizes[2] + numbers[:, 2]
    first, index = np.unique(keys, return_index=True, return_inverse=True)[1:]
    return points[first], index.ravel()


def _decompose(triangles: Array) -> tuple[list[_Hull], float]:
    """Return the hulls of the pieces of a mesh, and the bound of their error [m]."""
    whole = _Part.of(triangles)
    if whole is None:
        return [], 0.0
    diagonal = float(norms(np.ptp(triangles.reshape(-1, 3), axis=0)))
    min_bound = max(_MIN_ERROR, _ERROR_FRACTION * diagonal)
    test = _HullTest(triangles, min_bound)
    parts = [whole] if test.is_accurate(whole.hull) else _closed_parts(whole)
    accurate_hulls: list[_Hull] = []
    while True:
        hulls, parts = _cut_parts(parts, test, _MAX_PARTS - len(accurate_hulls))
        accurate_hulls = _merge_neighbours([*accurate_hulls, *hulls], test)
        if not parts and len(accurate_hulls) <= MAX_PIECES:
            return accurate_hulls, test.bound
        if test.bound >= _MAX_BOUND_FACTOR * min_bound:
            return [], test.bound
        test = _HullTest(triangles, 2.0 * test.bound)


def _cut_parts(parts: list[_Part], test: _HullTest, limit: int) -> tuple[list[_Hull], list[_Part]]:
    """Cut parts until their hulls are accurate, the largest first.

    Args:
        parts: parts to cut.
        test: test of hulls.
        limit: number of parts at which cutting ends.

    Returns:
        Accurate hulls, and the parts that are not accurate when cutting ends.
    """
    pending: list[tuple[float, int, _Part]] = []
    count = 0

    def add(part: _Part) -> None:
        nonlocal count
        heappush(pending, (-part.hull.volume, count, part))
        count += 1

    for part in parts:
        add(part)
    accurate_hulls: list[_Hull] = []
    other_parts: list[_Part] = []
    while pending:
        part = heappop(pending)[2]
        if test.is_accurate(part.hull):
            accurate_hulls.append(part.hull)
        elif len(pending) + len(accurate_hulls) + len(other_parts) >= limit:
            other_parts.append(part)
        else:
            for half in _halves(part, 0.5 * test.bound):
                add(half)
    return accurate_hulls, other_parts


def _closed_parts(whole: _Part) -> list[_Part]:
    """Return the closed parts of a mesh that share no vertex; all open parts form one part."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    corners = _join_points(whole.triangles.reshape(-1, 3))[1].reshape(-1, 3)
    sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    size = int(corners.max()) + 1
    links = coo_array((np.ones(len(sides)), (sides[:, 0], sides[:, 1])), shape=(size, size))
    count, labels = connected_components(links, directed=False)
    if not 1 < count <= MAX_PIECES:
        return [whole]
    triangle_labels = labels[corners[:, 0]]
    sorted_sides = np.sort(sides, axis=1)
    keys, use_counts = np.unique(sorted_sides[:, 0] * size + sorted_sides[:, 1], return_counts=True)
    is_open = np.bincount(labels[keys[use_counts % 2 == 1] // size], minlength=count) > 0
    groups = [triangle_labels == label for label in np.flatnonzero(~is_open)]
    if is_open.any():
        groups.append(is_open[triangle_labels])
    parts = [_Part.of(whole.triangles[group]) for group in groups]
    return [part for part in parts if part is not None]


def _halves(part: _Part, thickness: float) -> list[_Part]:
    """Return the parts on both sides of the best plane; flat parts get a thickness [m]."""
    points, ends = _outline(part)
    best: tuple[float, Array, float] | None = None
    for normal, offset, balance in _planes(part, points):
        heights = product(points, normal) - offset
        first, last = heights[ends[:, 0]], heights[ends[:, 1]]
        is_crossed = (first > 0.0) != (last > 0.0)
        fraction = (first[is_crossed] / (first[is_crossed] - last[is_crossed]))[:, None]
        starts, stops = points[ends[is_crossed, 0]], points[ends[is_crossed, 1]]
        crossings = (1.0 - fraction) * starts + fraction * stops
        hulls = [
            _Hull.of(np.concatenate([points[side], crossings]))
            for side in (heights >= -_VERTEX_TOLERANCE, heights <= _VERTEX_TOLERANCE)
        ]
        above, below = (0.0 if hull is None else hull.volume for hull in hulls)
        cost = round((above + below + balance * abs(above - below)) / part.hull.volume, 9)
        if best is None or cost < best[0]:
            best = cost, normal, offset
    if best is None:
        return []
    _, normal, offset = best
    halves = (
        _Part.of(_clip_triangles(part.triangles, sign * normal, sign * offset), thickness=thickness)
        for sign in (1.0, -1.0)
    )
    return [half for half in halves if half is not None]


def _outline(part: _Part) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return points (n, 3) of a part, and the indices (m, 2) of the ends of triangle sides.

    Close points are joined if there are too many.
    """
    corners = part.triangles.reshape(-1, 3)
    points, index = _join_points(corners)
    if len(points) > _MAX_POINTS:
        extent = float(np.ptp(points, axis=0).max())
        # The number of cells on the six sides of a box is the limit.
        points, index = _join_points(corners, extent / math.sqrt(_MAX_POINTS / 6.0))
    index = index.reshape(-1, 3)
    sides = np.sort(np.concatenate([index[:, [0, 1]], index[:, [1, 2]], index[:, [2, 0]]]), axis=1)
    sides = sides[sides[:, 0] != sides[:, 1]]
    keys = np.unique(sides[:, 0] * len(points) + sides[:, 1])
    return points, np.stack([keys // len(points), keys % len(points)], axis=1)


def _planes(part: _Part, points: Array) -> Iterator[tuple[Array, float, float]]:
    """Yield the normal (3,), the offset [m] and the balance weight of candidate cuts.

    Planes of flat faces, such as the floor of a box, precede planes across axes. The weight of a
    large face is zero.
    """
    normals = _double_areas(part.triangles)
    areas = norms(normals)
    total = float(np.sum(areas))
    largest = np.argsort(-np.round(areas, 15), kind="stable")[: 4 * _MAX_POINTS]
    areas, normals = areas[largest], normals[largest] / areas[largest, None]
    heights = np.einsum("ij,ij->i", normals, part.triangles[largest, 0])
    normal_cells, height_cells = np.round(100.0 * normals), np.round(heights / _PLANE_TOLERANCE)
    cells = np.column_stack([normal_cells, height_cells]).astype(np.int64) + 1000
    keys = (cells[:, 0] * 2000 + cells[:, 1]) * 2000 + cells[:, 2]
    keys = keys * 2_000_000_000 + cells[:, 3]
    first, index = np.unique(keys, return_index=True, return_inverse=True)[1:]
    plane_areas = np.bincount(index.ravel(), weights=areas)
    count = 0
    for number in np.argsort(-np.round(plane_areas, 15), kind="stable").tolist():
        k = int(first[number])
        distances = product(points, normals[k]) - heights[k]
        if distances.max() > _MIN_ERROR and distances.min() < -_MIN_ERROR:
            is_large = plane_areas[number] > _LARGE_FACE_FRACTION * total
            yield normals[k], float(heights[k]), 0.0 if is_large else _BALANCE_WEIGHT
            count += 1
        if count == _MAX_FACE_PLANES:
            break
    offsets = points - points.mean(axis=0)
    axes = (*np.eye(3), *eigen(product(offsets.T, offsets))[1].T)
    for axis, fractions in zip(
        axes, (*(_CUT_FRACTIONS,) * 3, *(_CUT_FRACTIONS[:1],) * 3), strict=True
    ):
        heights = product(points, axis)
        low, high = float(heights.min()), float(heights.max())
        yield from (
            (axis, low + fraction * (high - low), _BALANCE_WEIGHT) for fraction in fractions
        )


def _clip_triangles(triangles: Array, normal: Array, offset: float) -> Array:
    """Return the parts (m, 3, 3) of triangles above a plane.

    A triangle in the plane belongs to the side of the mesh, opposite to its outward normal.

    Args:
        triangles: (n, 3, 3) corners [m].
        normal: (3,) normal of the plane.
        offset: offset of the plane along its normal [m].
    """
    heights = np.einsum("ijk,k->ij", triangles, normal) - offset
    heights[np.abs(heights) < _VERTEX_TOLERANCE] = 0.0
    highest, lowest = heights.max(axis=1), heights.min(axis=1)
    is_flat = (highest == 0.0) & (lowest == 0.0)
    is_behind = np.einsum("ij,j->i", _double_areas(triangles), normal) < 0.0
    parts = [triangles[(lowest >= 0.0) & (highest > 0.0)], triangles[is_flat & is_behind]]
    is_cut = (highest > 0.0) & (lowest < 0.0)
    triangles, heights = triangles[is_cut], heights[is_cut]
    for above in (1, 2):
        is_case = np.count_nonzero(heights > 0.0, axis=1) == above
        apex = (
            np.argmax(heights[is_case], axis=1)
            if above == 1
            else np.argmin(heights[is_case], axis=1)
        )
        rows = np.arange(len(apex))
        a, b, c = (triangles[is_case][rows, (apex + k) % 3] for k in range(3))
        height_a, height_b, height_c = (heights[is_case][rows, (apex + k) % 3] for k in range(3))
        on_left = a + (height_a / (height_a - height_b))[:, None] * (b - a)
        on_right = a + (height_a / (height_a - height_c))[:, None] * (c - a)
        if above == 1:
            parts.append(np.stack([a, on_left, on_right], axis=1))
        else:
            parts += [np.stack([on_left, b, c], axis=1), np.stack([on_left, c, on_right], axis=1)]
    return np.concatenate(parts)


def _merge_neighbours(hulls: list[_Hull], test: _HullTest) -> list[_Hull]:
    """Return hulls after merging neighbours with an accurate common hull.

    The pair that adds the least volume is merged first.
    """
    pool, count = dict(enumerate(hulls)), len(hulls)
    queue: list[tuple[float, int, int, _Hull]] = []

    def add_pairs(pairs: Iterator[tuple[int, int]]) -> None:
        for a, b in pairs:
            corners_a, corners_b = pool[a].corners, pool[b].corners
            gap = np.maximum(
                corners_a.min(axis=0) - corners_b.max(axis=0),
                corners_b.min(axis=0) - corners_a.max(axis=0),
            )
            if gap.max() > test.bound:
                continue
            hull = _Hull.of(np.concatenate([corners_a, corners_b]))
            if hull is not None:
                new_volume = round(hull.volume - pool[a].volume - pool[b].volume, 15)
                heappush(queue, (new_volume, a, b, hull))

    add_pairs(combinations(pool, 2))
    while queue:
        _, a, b, hull = heappop(queue)
        if a in pool and b in pool and test.is_accurate(hull):
            del pool[a], pool[b]
            pool[count] = hull
            add_pairs((key, count) for key in pool if key != count)
            count += 1
    return list(pool.values())


class _HullTest:
    """Test that a hull does not lie outside a mesh by more than a bound.

    Args:
        triangles: (n, 3, 3) triangles of the mesh [m].
        bound: largest error of a hull [m].
    """

    def __init__(self, triangles: Array, bound: float) -> None:
        from scipy.spatial import KDTree

        self.bound = bound
        area = 0.5 * float(np.sum(norms(_double_areas(triangles))))
        spacing = max(0.5 * bound, math.sqrt(2.0 * area / _MAX_SURFACE_SAMPLES))
        self._samples = KDTree(_sample_triangles(triangles, spacing), balanced_tree=False)
        # Half the diagonal of a cell is less than the least distance at which a point is tested.
        self._cell = 0.75 * bound
        self._triangles = _simplify_mesh(triangles, 0.25 * bound)
        self._is_inside: dict[tuple[float, ...], bool] = {}

    def is_accurate(self, hull: _Hull) -> bool:
        """Return whether no sample of a hull lies outside the mesh by more than the bound."""
        triangles = hull.corners[hull.faces]
        return all(
            self._are_within(_sample_triangles(triangles, spacing * self.bound))
            for spacing in _SPACINGS
        )

    def _are_within(self, points: Array) -> bool:
        """Return whether no point (n, 3) lies outside the mesh by more than the bound."""
        distances = self._samples.query(points, distance_upper_bound=self.bound)[0]
        far_points = points[np.isinf(distances)]
        keys = list({tuple(cell): None for cell in np.round(far_points / self._cell).tolist()})
        if not all(self._is_inside.get(key, True) for key in keys):
            return False
        new_keys = [key for key in keys if key not in self._is_inside]
        chunk_size = max(1, _PAIRS_AT_ONCE // len(self._triangles))
        for begin in range(0, len(new_keys), chunk_size):
            chunk = new_keys[begin : begin + chunk_size]
            numbers = windings(self._cell * np.array(chunk), self._triangles)
            is_inside = np.abs(numbers) >= INSIDE_WINDING
            self._is_inside.update(zip(chunk, is_inside.tolist(), strict=True))
            if not all(self._is_inside[key] for key in chunk):
                return False
        return True


def _sample_triangles(triangles: Array, spacing: float) -> Array:
    """Return the corners of triangles, and the centres of triangles that are halved to a spacing.

    Args:
        triangles: (m, 3, 3) corners [m].
        spacing: longest side of a triangle that is not halved [m].

    Returns:
        (n, 3) points [m].
    """
    samples = [triangles[:, k] for k in range(3)]
    while len(triangles):
        lengths = norms(triangles[:, [1, 2, 0]] - triangles)
        longest = np.argmax(lengths, axis=1)
        rows = np.arange(len(triangles))
        is_small = lengths[rows, longest] <= spacing
        samples.append(triangles[is_small].mean(axis=1))
        rows, longest = rows[~is_small], longest[~is_small]
        a, b, c = (triangles[rows, (longest + k) % 3] for k in range(3))
        middle = 0.5 * (a + b)
        triangles = np.concatenate(
            [np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)]
        )
    return np.concatenate(samples)


def _simplify_mesh(triangles: Array, cell: float) -> Array:
    """Return fewer triangles of a large mesh by joining vertices in the same cell.

    The winding number about a point stays the same if no triangle sweeps over it.

    Args:
        triangles: (n, 3, 3) corners [m].
        cell: side of a cell [m].
    """
    if len(triangles) <= _MAX_TRIANGLES:
        return triangles
    points, index = _join_points(triangles.reshape(-1, 3), cell)
    index = index.reshape(-1, 3)
    is_triangle = (
        (index[:, 0] != index[:, 1]) & (index[:, 1] != index[:, 2]) & (index[:, 2] != index[:, 0])
    )
    return np.asarray(points[index[is_triangle]])


def with_quick_pieces(scene: SceneGraph, frames: Iterable[str]) -> SceneGraph:
    """Return a scene in which the concave meshes of some frames collide as convex pieces.

    The scene itself is returned if they have no such mesh.

    Args:
        scene: scene with meshes.
        frames: names of the frames.
    """
    for frame in frames:
        shapes = scene.shapes(frame)
        if any(_is_concave(part) for part in shapes):
            scene = scene.set_shapes(
                frame, [piece for part in shapes for piece in _part_in_pieces(part, frame)]
            )
    return scene


def _is_concave(part: AttachedShape) -> bool:
    """Return whether a shape is a colliding mesh that needs convex pieces."""
    return (
        part.collision
        and part.level is None
        and part.shape.kind == "mesh"
        and needs_pieces(part.shape)
    )


def _part_in_pieces(part: AttachedShape, frame: str) -> tuple[AttachedShape, ...]:
    """Return a shape, or a concave mesh for display with its colliding convex pieces."""
    if not _is_concave(part):
        return (part,)
    pieces, error = quick_pieces(part.shape)
    if not pieces:
        logger.warning(
            "%s needs too many convex pieces and collides as its convex hull; `tmkit object add`"
            " makes closer ones",
            mesh_name(part, frame),
        )
        return (part,)
    logger.info(
        "%s collides in %d convex pieces, within %.2g mm",
        mesh_name(part, frame),
        len(pieces),
        1e3 * error,
    )
    mesh = part.replace(collision=False, friction=None, level=None)
    hulls = (
        AttachedShape(piece, part.pose, visual=False, friction=part.friction, level="hull")
        for piece in pieces
    )
    return (mesh, *(hull.replace(stamp=part.stamp) for hull in hulls))


def mesh_name(part: AttachedShape, frame: str) -> str:
    """Return the name of a mesh for messages."""
    if part.shape.source:
        return f"the mesh '{part.shape.source}' of '{frame}'"
    return f"the mesh of '{frame}'"
