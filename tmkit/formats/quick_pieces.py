"""Convex pieces of a concave mesh in about a second, for objects whose author prepared none.

::

      mesh        cut until right     neighbours merged
    |      |       | |    | |            |      |
    |      |       |-|    |-|            |      |
    |______|       |_|_||_|_|            |______|

As in V-HACD (Mamou, 2016), a part whose convex hull lies too far outside the mesh is cut by the
plane after which the hulls have the least volume. Neighbours whose common hull is right are merged.
:mod:`tmkit.formats.convex_pieces` makes fewer and closer pieces, in ten seconds to minutes.

Whether a hull is right is a distance: the radius of the largest ball about a point of the hull that
misses the mesh. Over the mouth of a cavity it is half the width of the mouth, so
:data:`FINGER_ROOM` decides whether a finger fits.

Invariants: the pieces contain every triangle of the mesh. No point of a piece, tried every few
millimetres, lies outside the mesh by more than the error. Work is limited by counts, never by time,
and computed without BLAS and LAPACK: the same mesh has the same pieces on every CPU. They are kept
on the disk with loaded scenes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tmkit._support.elementary import eigen, norms, product
from tmkit.formats.convex_pieces import MAX_PIECES, solid, windings
from tmkit.formats.scene_cache import SceneCache, entry_key
from tmkit.graph import AttachedShape, SceneGraph, Shape

Array = npt.NDArray[np.float64]

FINGER_ROOM = 0.005
"""Distance of a hull from its mesh below which the hull is kept [m]: a finger is 1 cm wide or more."""

_ERROR_FRACTION = 0.01
"""Largest distance of a piece from the mesh, as a fraction of the diagonal of the mesh's box."""
_LEAST_ERROR = 0.001
"""Least value of that distance [m]."""
_COARSEST = 8
"""Largest multiple of that distance, for a mesh that needs too many pieces."""
_MAX_PARTS = 192
"""Most parts before neighbours are merged."""
_MAX_SAMPLES = 200_000
"""Most samples of the surface among which the nearest one is searched."""
_MAX_TRIANGLES = 4000
"""Triangles of a mesh above which vertices that lie close together are joined to find its inside."""
_MAX_POINTS = 600
"""Points of a part above which those that lie close together are joined to choose a cut."""
_SPACINGS = (16.0, 3.0)
"""Spacings of the samples of a hull, as multiples of the error: first a few, which most wrong hulls fail."""
_INSIDE = 0.5
"""Winding number above which a point is inside."""
_PAIRS_AT_ONCE = 400_000
"""Points times triangles whose winding numbers are computed at once."""
_FRACTIONS = (0.5, 0.3, 0.7)
"""Cuts across an axis of the mesh, as fractions of the part's extent."""
_FACES = 8
"""Planes of the largest flat faces of a part along which it is cut."""
_LARGE_FACE = 0.05
"""Fraction of a part's area above which a flat face is large."""
_BALANCE = 0.05
"""Weight of the difference of the halves' volumes, which chooses between cuts that save the same volume."""
_SAME_PLANE = 1e-5
"""Difference of the offsets of planes that count as one [m]."""
_ON_PLANE = 1e-9
"""Distance below which a vertex lies on a plane [m]."""


@functools.lru_cache(maxsize=256)
def needs_pieces(mesh: Shape) -> bool:
    """Return whether the convex hull of a mesh fills a recess into which a finger fits (:data:`FINGER_ROOM`)."""
    part = _Part.of(_triangles(mesh))
    return (
        part is not None
        and not part.is_convex()
        and not _Error(part.triangles, FINGER_ROOM).is_right(part.hull)
    )


def quick_pieces(mesh: Shape) -> tuple[tuple[Shape, ...], float]:
    """Return convex pieces of a mesh, and the largest distance of a piece from the mesh [m].

    The distance is 1 % of the diagonal of the mesh's box, and more where that needs too many
    pieces. There is no piece if the mesh has no volume, or needs too many pieces at eight times
    that distance.

    Args:
        mesh: triangles, which need not be closed.
    """
    cache, key = SceneCache.of_user(), entry_key("quick pieces", mesh.digest)
    found = cache.get(key) if cache else None
    if found is None:
        hulls, error = _cut(_triangles(mesh))
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
        scene = found[0]
    return tuple(part.shape for part in scene.shapes("pieces")), float(
        scene.attributes("pieces")["error"]
    )


def _triangles(mesh: Shape) -> Array:
    """Return the triangles (n, 3, 3) of a mesh with an area, seen counter-clockwise from outside."""
    triangles = np.asarray(mesh.vertices, dtype=float)[np.asarray(mesh.outward_faces)]
    return triangles[norms(_doubled_areas(triangles)) > 0.0]


def _doubled_areas(triangles: Array) -> Array:
    return np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])


@dataclass(frozen=True)
class _Hull:
    """A convex hull: corners (n, 3), faces (m, 3) of their indices, volume [m^3]."""

    corners: Array
    faces: npt.NDArray[np.int64]
    planes: Array
    volume: float

    @classmethod
    def of(cls, points: Array) -> _Hull | None:
        """Return the hull of points (n, 3), None if they lie in a plane."""
        from scipy.spatial import ConvexHull, QhullError

        try:
            hull = ConvexHull(points)
        except (QhullError, ValueError):
            return None
        number = np.zeros(len(points), dtype=np.int64)
        number[hull.vertices] = np.arange(len(hull.vertices))
        faces = number[hull.simplices]
        corners = points[hull.vertices]
        is_turned = (
            np.einsum("ij,ij->i", _doubled_areas(corners[faces]), hull.equations[:, :3]) < 0.0
        )
        faces[is_turned] = faces[is_turned, ::-1]
        return cls(corners, faces, hull.equations, float(hull.volume))


@dataclass(frozen=True)
class _Part:
    """Triangles (n, 3, 3) of a mesh, clipped, and their hull."""

    triangles: Array
    hull: _Hull

    @classmethod
    def of(cls, triangles: Array, *, thickness: float = 0.0) -> _Part | None:
        """Return the part of some triangles; None if it has no volume.

        Args:
            triangles: (n, 3, 3) corners [m].
            thickness: thickness that flat parts get, as the floor of a cavity in a block, on the
                inside [m].
        """
        if not len(triangles):
            return None
        hull = _Hull.of(_joined(triangles.reshape(-1, 3))[0])
        if hull is None and thickness > 0.0:
            normal = np.sum(_doubled_areas(triangles), axis=0)
            if not (length := float(norms(normal))) > 0.0:
                return None
            below = triangles - thickness / length * normal
            hull = _Hull.of(_joined(np.concatenate([triangles, below]).reshape(-1, 3))[0])
        return None if hull is None else cls(triangles, hull)

    def is_convex(self) -> bool:
        """Return whether each triangle lies on the hull."""
        middles = self.triangles.mean(axis=1)
        at_once = max(1, _PAIRS_AT_ONCE // len(self.hull.planes))
        return all(
            np.max(product(chunk, self.hull.planes[:, :3].T) + self.hull.planes[:, 3], axis=1).min()
            > -_LEAST_ERROR
            for chunk in np.array_split(middles, math.ceil(len(middles) / at_once))
        )


def _joined(points: Array, cell: float = 0.0) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return one of the points (n, 3) in each cell, and for each point the index of the one in its cell.

    Args:
        points: (n, 3) [m].
        cell: side of a cell [m]; by default a millionth of the extent, in which equal points lie.
    """
    low = points.min(axis=0)
    extent = float(np.max(points - low))
    numbers = np.round((points - low) / max(cell, 1e-6 * extent, 1e-12)).astype(np.int64)
    sizes = numbers.max(axis=0) + 1
    keys = (numbers[:, 0] * sizes[1] + numbers[:, 1]) * sizes[2] + numbers[:, 2]
    first, index = np.unique(keys, return_index=True, return_inverse=True)[1:]
    return points[first], index.ravel()


def _cut(triangles: Array) -> tuple[list[_Hull], float]:
    """Return the hulls of the pieces of a mesh, and the error within which they are right."""
    whole = _Part.of(triangles)
    if whole is None:
        return [], 0.0
    diagonal = float(norms(np.ptp(triangles.reshape(-1, 3), axis=0)))
    least = max(_LEAST_ERROR, _ERROR_FRACTION * diagonal)
    error = _Error(triangles, least)
    parts = [whole] if error.is_right(whole.hull) else _closed_parts(whole)
    done: list[_Hull] = []
    while True:
        hulls, parts = _cut_parts(parts, error, _MAX_PARTS - len(done))
        done = _merged([*done, *hulls], error)
        if not parts and len(done) <= MAX_PIECES:
            return done, error.bound
        if error.bound >= _COARSEST * least:
            return [], error.bound
        error = _Error(triangles, 2.0 * error.bound)


def _cut_parts(parts: list[_Part], error: _Error, limit: int) -> tuple[list[_Hull], list[_Part]]:
    """Return right hulls that parts are cut into, and the parts that are wrong still when there are too many."""
    pending: list[tuple[float, int, _Part]] = []
    count = 0

    def add(part: _Part) -> None:
        nonlocal count
        heappush(pending, (-part.hull.volume, count, part))
        count += 1

    for part in parts:
        add(part)
    done: list[_Hull] = []
    wrong: list[_Part] = []
    while pending:
        part = heappop(pending)[2]
        if error.is_right(part.hull):
            done.append(part.hull)
        elif len(pending) + len(done) + len(wrong) >= limit:
            wrong.append(part)
        else:
            for half in _halves(part, 0.5 * error.bound):
                add(half)
    return done, wrong


def _closed_parts(whole: _Part) -> list[_Part]:
    """Return the closed parts of a mesh that share no vertex, those that are open together."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    corners = _joined(whole.triangles.reshape(-1, 3))[1].reshape(-1, 3)
    sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    size = int(corners.max()) + 1
    links = coo_array((np.ones(len(sides)), (sides[:, 0], sides[:, 1])), shape=(size, size))
    count, labels = connected_components(links, directed=False)
    if not 1 < count <= MAX_PIECES:
        return [whole]
    of_triangle = labels[corners[:, 0]]
    ordered = np.sort(sides, axis=1)
    keys, uses = np.unique(ordered[:, 0] * size + ordered[:, 1], return_counts=True)
    is_open = np.bincount(labels[keys[uses % 2 == 1] // size], minlength=count) > 0
    groups = [of_triangle == label for label in np.flatnonzero(~is_open)]
    if is_open.any():
        groups.append(is_open[of_triangle])
    parts = [_Part.of(whole.triangles[group]) for group in groups]
    return [part for part in parts if part is not None]


def _halves(part: _Part, thickness: float) -> list[_Part]:
    """Return the parts on either side of the best plane; flat ones get a thickness [m]."""
    points, ends = _outline(part)
    best: tuple[float, Array, float] | None = None
    for normal, offset, balance in _planes(part, points):
        heights = product(points, normal) - offset
        first, last = heights[ends[:, 0]], heights[ends[:, 1]]
        is_crossed = (first > 0.0) != (last > 0.0)
        share = (first[is_crossed] / (first[is_crossed] - last[is_crossed]))[:, None]
        crossings = (1.0 - share) * points[ends[is_crossed, 0]] + share * points[
            ends[is_crossed, 1]
        ]
        hulls = [
            _Hull.of(np.concatenate([points[side], crossings]))
            for side in (heights >= -_ON_PLANE, heights <= _ON_PLANE)
        ]
        above, below = (0.0 if hull is None else hull.volume for hull in hulls)
        badness = round((above + below + balance * abs(above - below)) / part.hull.volume, 9)
        if best is None or badness < best[0]:
            best = badness, normal, offset
    if best is None:
        return []
    clipped = (_clip(part.triangles, sign * best[1], sign * best[2]) for sign in (1.0, -1.0))
    halves = (_Part.of(triangles, thickness=thickness) for triangles in clipped)
    return [half for half in halves if half is not None]


def _outline(part: _Part) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return points (n, 3) of a part and the indices (m, 2) of those that a side of a triangle joins, not too many."""
    corners = part.triangles.reshape(-1, 3)
    points, index = _joined(corners)
    if len(points) > _MAX_POINTS:
        extent = float(np.ptp(points, axis=0).max())
        # cells on the six sides of a box
        points, index = _joined(corners, extent / math.sqrt(_MAX_POINTS / 6.0))
    index = index.reshape(-1, 3)
    sides = np.sort(np.concatenate([index[:, [0, 1]], index[:, [1, 2]], index[:, [2, 0]]]), axis=1)
    sides = sides[sides[:, 0] != sides[:, 1]]
    keys = np.unique(sides[:, 0] * len(points) + sides[:, 1])
    return points, np.stack([keys // len(points), keys % len(points)], axis=1)


def _planes(part: _Part, points: Array) -> Iterator[tuple[Array, float, float]]:
    """Yield normals (3,) and offsets of planes to cut a part along, and the weight of its balance.

    Planes of large flat faces come first, as the floor of a box, whose weight is zero; then planes
    across axes.
    """
    normals = _doubled_areas(part.triangles)
    areas = norms(normals)
    total = float(np.sum(areas))
    largest = np.argsort(-np.round(areas, 15), kind="stable")[: 4 * _MAX_POINTS]
    areas, normals = areas[largest], normals[largest] / areas[largest, None]
    heights = np.einsum("ij,ij->i", normals, part.triangles[largest, 0])
    keys = (
        np.column_stack([np.round(100.0 * normals), np.round(heights / _SAME_PLANE)]).astype(
            np.int64
        )
        + 1000
    )
    keys = ((keys[:, 0] * 2000 + keys[:, 1]) * 2000 + keys[:, 2]) * 2_000_000_000 + keys[:, 3]
    first, index = np.unique(keys, return_index=True, return_inverse=True)[1:]
    sums = np.bincount(index.ravel(), weights=areas)
    count = 0
    for number in np.argsort(-np.round(sums, 15), kind="stable").tolist():
        k = int(first[number])
        beyond = product(points, normals[k]) - heights[k]
        if beyond.max() > _LEAST_ERROR and beyond.min() < -_LEAST_ERROR:
            yield (
                normals[k],
                float(heights[k]),
                0.0 if sums[number] > _LARGE_FACE * total else _BALANCE,
            )
            count += 1
        if count == _FACES:
            break
    offsets = points - points.mean(axis=0)
    axes = (*np.eye(3), *eigen(product(offsets.T, offsets))[1].T)
    for axis, fractions in zip(axes, (*(_FRACTIONS,) * 3, *(_FRACTIONS[:1],) * 3), strict=True):
        heights = product(points, axis)
        low, high = float(heights.min()), float(heights.max())
        yield from ((axis, low + fraction * (high - low), _BALANCE) for fraction in fractions)


def _clip(triangles: Array, normal: Array, offset: float) -> Array:
    """Return the triangles (m, 3, 3) of some of which a plane cuts off the part below it.

    A triangle in the plane belongs to the side on which the mesh lies, behind its outward normal.
    """
    heights = np.einsum("ijk,k->ij", triangles, normal) - offset
    heights[np.abs(heights) < _ON_PLANE] = 0.0
    highest, lowest = heights.max(axis=1), heights.min(axis=1)
    is_flat = (highest == 0.0) & (lowest == 0.0)
    is_behind = np.einsum("ij,j->i", _doubled_areas(triangles), normal) < 0.0
    kept = [triangles[(lowest >= 0.0) & (highest > 0.0)], triangles[is_flat & is_behind]]
    is_cut = (highest > 0.0) & (lowest < 0.0)
    triangles, heights = triangles[is_cut], heights[is_cut]
    for above in (1, 2):
        is_meant = np.count_nonzero(heights > 0.0, axis=1) == above
        apex = (
            np.argmax(heights[is_meant], axis=1)
            if above == 1
            else np.argmin(heights[is_meant], axis=1)
        )
        rows = np.arange(len(apex))
        (a, b, c), (high, left, right) = (
            [values[is_meant][rows, (apex + k) % 3] for k in range(3)]
            for values in (triangles, heights)
        )
        on_left, on_right = (
            a + (high / (high - other))[:, None] * (end - a)
            for end, other in ((b, left), (c, right))
        )
        if above == 1:
            kept.append(np.stack([a, on_left, on_right], axis=1))
        else:
            kept += [np.stack([on_left, b, c], axis=1), np.stack([on_left, c, on_right], axis=1)]
    return np.concatenate(kept)


def _merged(hulls: list[_Hull], error: _Error) -> list[_Hull]:
    """Return hulls of which neighbours are merged while the common hull is right, those first that add least volume."""
    pool, count = dict(enumerate(hulls)), len(hulls)
    queue: list[tuple[float, int, int, _Hull]] = []

    def offer(pairs: Iterator[tuple[int, int]]) -> None:
        for a, b in pairs:
            one, other = pool[a].corners, pool[b].corners
            gap = np.maximum(
                one.min(axis=0) - other.max(axis=0), other.min(axis=0) - one.max(axis=0)
            )
            if (
                gap.max() <= error.bound
                and (hull := _Hull.of(np.concatenate([one, other]))) is not None
            ):
                heappush(
                    queue, (round(hull.volume - pool[a].volume - pool[b].volume, 15), a, b, hull)
                )

    offer(combinations(pool, 2))
    while queue:
        _, a, b, hull = heappop(queue)
        if a in pool and b in pool and error.is_right(hull):
            del pool[a], pool[b]
            pool[count] = hull
            offer((other, count) for other in pool if other != count)
            count += 1
    return list(pool.values())


class _Error:
    """Test of hulls against a mesh: none may lie outside it by more than a bound."""

    def __init__(self, triangles: Array, bound: float) -> None:
        from scipy.spatial import KDTree

        self.bound = bound
        area = 0.5 * float(np.sum(norms(_doubled_areas(triangles))))
        self._near = KDTree(
            _samples(triangles, max(0.5 * bound, math.sqrt(2.0 * area / _MAX_SAMPLES))),
            balanced_tree=False,
        )
        # half its diagonal is less than the least distance at which a point is tested
        self._cell = 0.75 * bound
        self._triangles = _simplified(triangles, 0.25 * bound)
        self._inside: dict[tuple[float, ...], bool] = {}

    def is_right(self, hull: _Hull) -> bool:
        """Return whether no sample of a hull lies outside the mesh by more than the bound."""
        triangles = hull.corners[hull.faces]
        return all(self._holds(_samples(triangles, spacing * self.bound)) for spacing in _SPACINGS)

    def _holds(self, points: Array) -> bool:
        """Return whether no point (n, 3) lies outside the mesh by more than the bound."""
        far = points[np.isinf(self._near.query(points, distance_upper_bound=self.bound)[0])]
        keys = list({tuple(cell): None for cell in np.round(far / self._cell).tolist()})
        if not all(self._inside.get(key, True) for key in keys):
            return False
        new = [key for key in keys if key not in self._inside]
        at_once = max(1, _PAIRS_AT_ONCE // len(self._triangles))
        for begin in range(0, len(new), at_once):
            chunk = new[begin : begin + at_once]
            turns = windings(self._cell * np.array(chunk), self._triangles)
            self._inside.update(zip(chunk, (np.abs(turns) >= _INSIDE).tolist(), strict=True))
            if not all(self._inside[key] for key in chunk):
                return False
        return True


def _samples(triangles: Array, spacing: float) -> Array:
    """Return points (n, 3) of triangles: their corners, and the middles after their sides were halved to a spacing."""
    kept = [triangles[:, k] for k in range(3)]
    while len(triangles):
        lengths = norms(triangles[:, [1, 2, 0]] - triangles)
        longest = np.argmax(lengths, axis=1)
        rows = np.arange(len(triangles))
        is_small = lengths[rows, longest] <= spacing
        kept.append(triangles[is_small].mean(axis=1))
        rows, longest = rows[~is_small], longest[~is_small]
        a, b, c = (triangles[rows, (longest + k) % 3] for k in range(3))
        middle = 0.5 * (a + b)
        triangles = np.concatenate(
            [np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)]
        )
    return np.concatenate(kept)


def _simplified(triangles: Array, cell: float) -> Array:
    """Return fewer triangles of a large mesh: vertices in one cell [m] are joined.

    The winding number about a point stays the same if no vertex passes it.
    """
    if len(triangles) <= _MAX_TRIANGLES:
        return triangles
    points, index = _joined(triangles.reshape(-1, 3), cell)
    index = index.reshape(-1, 3)
    is_kept = (
        (index[:, 0] != index[:, 1]) & (index[:, 1] != index[:, 2]) & (index[:, 2] != index[:, 0])
    )
    return np.asarray(points[index[is_kept]])
