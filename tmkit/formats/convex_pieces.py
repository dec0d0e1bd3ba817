"""Decomposition of concave meshes into convex pieces, for planners and simulators.

A mesh or closed part whose hull is accurate within the bound becomes that hull. CoACD cuts other
parts (Wei, Liu, Ling and Su, "Approximate convex decomposition for 3D meshes with collision-aware
concavity and tree search", 2022). The threshold of CoACD bounds no distance, and a low one yields
unnecessary pieces. Each piece that lies outside the mesh by more than the bound is therefore cut in
two, across the axis that reduces the error most. If there are too many pieces, neighbours with an
accurate common hull are merged, and the bound is doubled, at most three times.

Invariants: the pieces contain every triangle of the mesh. No sample of their surfaces, spaced by a
few millimetres, lies farther outside the mesh than the bound. Equal meshes have equal pieces unless
CoACD exceeds its time limit. Pieces are cached on the disk.
"""

from __future__ import annotations

import logging
import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from heapq import heappop, heappush
from itertools import combinations, compress
from typing import Any

import numpy as np
import numpy.typing as npt

from tmkit._core import CollisionWorld
from tmkit._support.extras import require
from tmkit._support.signals import temporary_folder
from tmkit._support.subprocesses import tie_to_parent
from tmkit.errors import ShapeError
from tmkit.formats.mesh.solids import thicken_flat_mesh
from tmkit.formats.scene_cache import SceneCache, entry_key
from tmkit.graph import AttachedShape, Mesh, Prismatic, SceneGraph, Shape, Sphere

logger = logging.getLogger(__name__)

Array = npt.NDArray[np.float64]

MAX_ERROR = 0.001
"""Default of the largest distance of a piece from the mesh [m]."""

MAX_PIECES = 64
"""Default of the largest number of pieces of a mesh."""

_MAX_BOUND_FACTOR = 8.0
"""Largest multiple of the requested bound, for a mesh that needs too many pieces."""

_MAX_UNMERGED_FACTOR = 4
"""Ratio of the numbers of pieces before and after merging neighbours."""

_COACD_THRESHOLD = 0.05
"""Threshold of CoACD, its default."""

_MAX_COACD_TRIANGLES = 8000
"""Largest number of triangles of a part that CoACD cuts; more would take minutes."""

_COACD_TIME_FRACTION = 0.35
"""Fraction of the remaining time for CoACD, which may not terminate if parts overlap."""

_SAMPLE_SPACING = 0.006
"""Spacing of the samples of a piece [m]."""

INSIDE_WINDING = 0.5
"""Winding number above which a point is inside: 1 inside a closed mesh, 0 outside."""

_MAX_SURFACE_SAMPLES = 500_000
"""Largest number of samples of the mesh among which the nearest is searched."""

_PROBE_RADIUS = 1e-6
"""Radius of the sphere that measures distances to the mesh [m]."""

_PAIRS_AT_ONCE = 200_000
"""Number of pairs of points and triangles whose winding numbers are computed at once."""

_COACD_SCRIPT = """
import resource
import sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), int(sys.argv[2])))
import coacd
import numpy as np
coacd.set_log_level("error")
with np.load("meshes.npz") as file:
    arrays = [file[key] for key in file.files]
meshes = [coacd.Mesh(*pair) for pair in zip(arrays[::2], arrays[1::2], strict=True)]
settings = {"threshold": float(sys.argv[1]), "preprocess_mode": "off", "seed": 0}
parts = [vertices for mesh in meshes for vertices, _ in coacd.run_coacd(mesh, **settings)]
np.savez("parts.npz", *parts)
"""
"""Program that runs CoACD; its arguments are the threshold and the time limit [s]."""


def convex_pieces(
    mesh: Shape,
    *,
    max_error: float = MAX_ERROR,
    max_pieces: int = MAX_PIECES,
    time_limit: float = 120.0,
) -> tuple[Shape, ...]:
    """Return convex meshes whose union approximates a mesh.

    The first call takes seconds to a minute; later ones read the pieces from the disk.

    Args:
        mesh: triangles, which need not be watertight.
        max_error: largest distance of a piece outside the mesh [m]. If that needs too many pieces,
            the distance is multiplied by two to eight, with a warning in the log.
        max_pieces: largest number of pieces.
        time_limit: limit of the processor time [s].

    Raises:
        ShapeError: if the shape is not a mesh, or needs too many pieces or too much time.
        MissingExtraError: if the extra ``formats`` is not installed.
    """
    if mesh.kind != "mesh":
        raise ShapeError(f"only meshes are cut into pieces, not shapes of kind '{mesh.kind}'")
    cache = SceneCache.of_user()
    key = entry_key("pieces by parts", mesh.digest, max_error, max_pieces)
    entry = cache.get(key) if cache else None
    if entry is None:
        pieces, bound = _pieces_of(mesh, max_error, max_pieces, time_limit)
        scene = SceneGraph().add_frame(
            "pieces", "world", shapes=[AttachedShape(piece) for piece in pieces]
        )
        scene = scene.set_attributes("pieces", {"bound": bound})
        if cache:
            cache.put(key, scene, {}, ())
    else:
        scene = entry[0]
    if (bound := float(scene.attributes("pieces")["bound"])) > max_error:
        logger.warning(
            "%s is cut within %g mm: %g mm needs more pieces",
            _name(mesh),
            1e3 * bound,
            1e3 * max_error,
        )
    return tuple(attached.shape for attached in scene.shapes("pieces"))


def in_pieces(
    attached: AttachedShape,
    *,
    max_error: float = MAX_ERROR,
    max_pieces: int = MAX_PIECES,
    time_limit: float = 120.0,
) -> tuple[AttachedShape, ...]:
    """Return a mesh as visual shape, and its convex pieces as collision shapes.

    Args:
        attached: mesh on a frame.
        max_error: as for :func:`convex_pieces` [m].
        max_pieces: as for :func:`convex_pieces`.
        time_limit: as for :func:`convex_pieces` [s].
    """
    shape, pose = attached.shape, attached.pose
    visual = AttachedShape(
        shape, pose, color=attached.color, visual=attached.visual, collision=False
    )
    pieces = convex_pieces(shape, max_error=max_error, max_pieces=max_pieces, time_limit=time_limit)
    return (
        visual,
        *(AttachedShape(part, pose, visual=False, friction=attached.friction) for part in pieces),
    )


def _pieces_of(
    mesh: Shape, max_error: float, max_pieces: int, time_limit: float
) -> tuple[tuple[Shape, ...], float]:
    """Return the pieces of a mesh, and the bound of their distance from it [m]."""
    import trimesh

    require("coacd", "formats", "cutting a mesh into convex pieces needs")
    whole = trimesh.Trimesh(np.asarray(mesh.vertices), np.asarray(mesh.outward_faces), process=True)
    deadline = _cpu_time() + time_limit
    bound, limit = max_error, _MAX_UNMERGED_FACTOR * max_pieces
    measure = _HullError(mesh, whole.triangles, bound, deadline)
    accurate_hulls, pending_hulls = _initial_hulls(whole, measure, deadline)
    while True:
        while pending_hulls and len(pending_hulls) + len(accurate_hulls) <= limit:
            hull = pending_hulls.pop()
            if measure(hull) <= bound:
                accurate_hulls.append(hull)
            else:
                pending_hulls += min(
                    _cuts(whole, hull), key=lambda halves: round(sum(map(measure, halves)), 9)
                )
        if not pending_hulls or bound > max_error:
            accurate_hulls = _merge_neighbours(accurate_hulls, max_pieces, measure)
        if pending_hulls and len(pending_hulls) + len(accurate_hulls) <= limit:
            continue
        if not pending_hulls and len(accurate_hulls) <= max_pieces:
            pieces = tuple(
                solid(
                    np.asarray(hull.vertices),
                    np.asarray(hull.faces),
                    f"{mesh.source}#piece={number}",
                )
                for number, hull in enumerate(accurate_hulls)
            )
            return pieces, bound
        if bound >= _MAX_BOUND_FACTOR * max_error:
            raise ShapeError(
                f"{_name(mesh)} needs more than {max_pieces} convex pieces to be right within"
                f" {1e3 * bound:g} mm; allow a larger max_error, such as {2e3 * bound:g} mm, or"
                " more max_pieces"
            )
        bound *= 2.0
        measure = _HullError(mesh, whole.triangles, bound, deadline)


def _initial_hulls(whole: Any, measure: _HullError, deadline: float) -> tuple[list[Any], list[Any]]:
    """Return the accurate hulls of closed parts, and the hulls into which other parts are cut.

    Args:
        whole: the mesh.
        measure: error of a hull.
        deadline: end of the available processor time [s].
    """
    import trimesh

    hull_of_whole = trimesh.convex.convex_hull(whole)
    if measure(hull_of_whole) <= measure.bound:
        return [], [hull_of_whole]
    parts: list[Any] = list(whole.split(only_watertight=False))
    hulls = [
        _hull_of(part) if part.is_watertight else part if len(part.faces) == 1 else None
        for part in parts
    ]
    is_accurate = [hull is not None and measure(hull) <= measure.bound for hull in hulls]
    accurate_hulls = list(compress(hulls, is_accurate))
    other_parts = [part for part, flag in zip(parts, is_accurate, strict=True) if not flag]
    solid_parts = [part for part in other_parts if part.is_watertight and part.volume > 0.0]
    open_parts = [part for part in other_parts if not (part.is_watertight and part.volume > 0.0)]
    if open_parts:
        has_closed_part = bool(accurate_hulls or solid_parts)
        solid_parts.append(trimesh.util.concatenate(open_parts) if has_closed_part else whole)
    large_parts = [part for part in solid_parts if len(part.faces) > _MAX_COACD_TRIANGLES]
    small_parts = [part for part in solid_parts if len(part.faces) <= _MAX_COACD_TRIANGLES]
    pending_hulls = [hull for part in large_parts if (hull := _hull_of(part)) is not None]
    if small_parts:
        duration = _COACD_TIME_FRACTION * (deadline - _cpu_time())
        pending_hulls += _run_coacd(small_parts, duration)
    return accurate_hulls, pending_hulls


def _name(mesh: Shape) -> str:
    return mesh.source or "the mesh"


def solid(vertices: npt.ArrayLike, faces: npt.ArrayLike, source: str) -> Shape:
    """Return a hull as a shape; a flat hull gets a thickness.

    Args:
        vertices: (n, 3) corners [m].
        faces: (m, 3) indices of corners.
        source: name of the shape.
    """
    if (flat := thicken_flat_mesh(Mesh(vertices, faces))) is not None:
        hull = _hull_of(flat)
        vertices, faces = np.asarray(hull.vertices), np.asarray(hull.faces)
    return Mesh(vertices, faces, source=source)


def _run_coacd(meshes: list[Any], duration: float) -> list[Any]:
    """Return the hulls of the pieces by CoACD, or the hull of each mesh if CoACD fails.

    CoACD runs in a separate process, which can be stopped.

    Args:
        meshes: meshes to cut.
        duration: limit of the processor time [s].
    """
    import trimesh

    with temporary_folder("pieces") as folder:
        np.savez(
            folder / "meshes.npz",
            *(array for mesh in meshes for array in (mesh.vertices, mesh.faces)),
        )
        command = [
            sys.executable,
            "-P",
            "-c",
            _COACD_SCRIPT,
            str(_COACD_THRESHOLD),
            str(math.ceil(max(duration, 1.0))),
        ]
        if subprocess.run(
            tie_to_parent(command), cwd=folder, capture_output=True, check=False
        ).returncode:
            return [hull for mesh in meshes if (hull := _hull_of(mesh)) is not None]
        # A flat hull has no centre, as in _hull_of.
        with np.load(folder / "parts.npz") as parts, np.errstate(divide="ignore", invalid="ignore"):
            return [trimesh.convex.convex_hull(parts[key]) for key in reversed(parts.files)]


def _cpu_time() -> float:
    """Return the processor time of this process and of its finished child processes [s]."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def _merge_neighbours(hulls: list[Any], limit: int, measure: _HullError) -> list[Any]:
    """Return at most ``limit`` hulls, if neighbours have enough accurate common hulls.

    The pair that adds the least volume is merged first.

    Args:
        hulls: hulls to merge.
        limit: number of hulls at which merging ends.
        measure: error of a hull.
    """
    import trimesh
    from scipy.spatial import ConvexHull, QhullError

    pool, count, gap = dict(enumerate(hulls)), len(hulls), measure.bound
    queue: list[tuple[float, int, int]] = []

    def add_pairs(pairs: Iterable[tuple[int, int]]) -> None:
        for a, b in pairs:
            (low_a, high_a), (low_b, high_b) = pool[a].bounds, pool[b].bounds
            if np.all(low_a <= high_b + gap) and np.all(low_b <= high_a + gap):
                with suppress(QhullError):  # a flat hull has no volume
                    volume = ConvexHull(np.concatenate([pool[a].vertices, pool[b].vertices])).volume
                    heappush(queue, (round(volume - pool[a].volume - pool[b].volume, 15), a, b))

    if len(pool) > limit:
        add_pairs(combinations(pool, 2))
    while queue and len(pool) > limit:
        _, a, b = heappop(queue)
        if a not in pool or b not in pool:
            continue
        hull = trimesh.convex.convex_hull(np.concatenate([pool[a].vertices, pool[b].vertices]))
        if measure(hull) <= measure.bound:
            del pool[a], pool[b]
            pool[count] = hull
            add_pairs([(key, count) for key in pool if key != count])
            count += 1
    return list(pool.values())


def _cuts(whole: Any, hull: Any) -> Iterator[list[Any]]:
    """Yield, for each of three axes, the hulls of a mesh in both halves of a hull.

    The axes are the principal axes of the part of the mesh in the hull.
    """
    part = whole
    planes = np.unique(np.round(hull.face_normals, 6), axis=0, return_index=True)[1]
    for index in np.sort(planes).tolist():
        normal = hull.face_normals[index]
        part = part.slice_plane(hull.triangles_center[index] + 1e-7 * normal, -normal)
    points = np.asarray(part.vertices) if len(part.vertices) > 3 else np.asarray(hull.vertices)
    for axis in np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2]:
        along = points @ axis
        middle = axis * (along.min() + along.max()) / 2.0
        yield [
            half
            for sign in (1.0, -1.0)
            if (half := _hull_of(part.slice_plane(middle, sign * axis))) is not None
        ]


def _hull_of(part: Any) -> Any:
    """Return the hull of a part of a mesh, or None if it has no volume."""
    import trimesh
    from scipy.spatial import QhullError

    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # a flat hull has no centre
            return trimesh.convex.convex_hull(part.vertices)
    except (QhullError, ValueError, IndexError):
        return None


class _HullError:
    """Largest distance of a hull outside a mesh [m], or 0 if it is within the bound.

    Args:
        mesh: the mesh.
        triangles: (m, 3, 3) corners of its triangles [m].
        bound: distance below which a hull is accurate [m].
        deadline: processor time at which an error is raised [s].
    """

    def __init__(self, mesh: Shape, triangles: Array, bound: float, deadline: float) -> None:
        import trimesh
        from scipy.spatial import KDTree

        self.bound = bound
        self._triangles, self._deadline = triangles, deadline
        self._timeout_error = ShapeError(
            f"cutting {_name(mesh)} into convex pieces took too long; allow a larger max_error or"
            " time_limit"
        )
        surface: Any = trimesh.Trimesh(
            triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3), process=False
        )
        spacing = max(bound, math.sqrt(surface.area / _MAX_SURFACE_SAMPLES))
        self._surface_samples = KDTree(surface.subdivide_to_size(spacing, max_iter=30).vertices)
        exact_mesh = AttachedShape(mesh, level="exact")
        scene, parent = SceneGraph().add_frame("mesh", "world", shapes=[exact_mesh]), "world"
        for axis in np.eye(3):
            frame = f"along {axis}"
            scene = scene.add_frame(frame, parent, joint=Prismatic(axis))
            parent = frame
        self._probe = parent
        probe_shape = AttachedShape(Sphere(_PROBE_RADIUS))
        self._world = CollisionWorld(scene.set_shapes(parent, [probe_shape]))

    def __call__(self, hull: Any) -> float:
        self._require_time()
        fine_hull = hull.subdivide_to_size(_SAMPLE_SPACING, max_iter=30)
        samples = np.concatenate([fine_hull.vertices, fine_hull.triangles_center])
        points = np.unique(np.round(samples, 9), axis=0)
        distances = self._surface_samples.query(points)[0]
        candidates = np.argsort(-distances, kind="stable")
        candidates = candidates[: np.count_nonzero(distances > self.bound)]
        pair_count = len(candidates) * len(self._triangles)
        chunk_count = max(1, math.ceil(pair_count / _PAIRS_AT_ONCE))
        for chunk in np.array_split(points[candidates], chunk_count):
            self._require_time()
            is_outside = np.abs(windings(chunk, self._triangles)) < INSIDE_WINDING
            error = max(map(self._distance, chunk[is_outside]), default=0.0)
            if error > self.bound:
                return error
        return 0.0

    def _distance(self, point: Array) -> float:
        """Return the distance of a point (3,) from the mesh, 0 if it is not measured [m]."""
        result = self._world.distance("mesh", self._probe, point)
        return result.distance + _PROBE_RADIUS if result else 0.0

    def _require_time(self) -> None:
        """Raise an error after the deadline."""
        if _cpu_time() > self._deadline:
            raise self._timeout_error


def windings(points: npt.NDArray[Any], triangles: Array) -> npt.NDArray[Any]:
    """Return winding numbers (n,) of a mesh about points (Van Oosterom and Strackee, 1983).

    Args:
        points: (n, 3) [m].
        triangles: (m, 3, 3) corners [m].
    """
    # The axes of the array are corner, axis and triangle.
    corners = np.ascontiguousarray(triangles.transpose(1, 2, 0), dtype=np.float32)
    a, b, c = (
        [corners[k, i] - points[:, i, None].astype(np.float32) for i in range(3)] for k in range(3)
    )
    ab, bc, ca = (x[0] * y[0] + x[1] * y[1] + x[2] * y[2] for x, y in ((a, b), (b, c), (c, a)))
    la, lb, lc = (np.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]) for x in (a, b, c))
    volume = sum(a[i] * (b[i - 2] * c[i - 1] - b[i - 1] * c[i - 2]) for i in range(3))
    return np.asarray(
        np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb).sum(axis=1) / (2.0 * math.pi)
    )
