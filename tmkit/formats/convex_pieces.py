"""Concave meshes in convex pieces: what planner, checker and simulators take instead of the hull.

A mesh whose hull is right within the bound is that hull, and so is each closed part of a mesh.
CoACD cuts the rest (Wei, Liu, Ling and Su, "Approximate convex decomposition for 3D meshes with
collision-aware concavity and tree search", 2022). Its threshold bounds no distance, and lowering it
makes many pieces where few are needed. So each piece that lies outside the mesh by more than the
bound is cut in two across the axis that helps most, until none does. Where that makes too many,
neighbours whose hull is right are made one, and the bound is doubled, three times at most.

Invariants: the pieces hold every triangle of the mesh, and no point of their surfaces, tried every
few millimetres, is farther outside the mesh than the bound. The same mesh has the same pieces,
unless CoACD ran out of time; they are remembered on the disk.
"""

from __future__ import annotations

import logging
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from heapq import heappop, heappush
from itertools import combinations, compress
from typing import Any

import numpy as np
import numpy.typing as npt

from tmkit._core import CollisionWorld
from tmkit._support.extras import require
from tmkit._support.signals import temporary_folder
from tmkit._support.subprocesses import tied
from tmkit.errors import ShapeError
from tmkit.formats.mesh.solids import thicken_flat_mesh
from tmkit.formats.scene_cache import SceneCache, entry_key
from tmkit.graph import AttachedShape, Mesh, Prismatic, SceneGraph, Shape, Sphere

logger = logging.getLogger(__name__)

Array = npt.NDArray[np.float64]

MAX_ERROR = 0.001  # metres by which a piece lies outside the mesh at most
MAX_PIECES = 64
"""Most pieces of a mesh."""
_COARSEST = 8.0  # times the bound that is asked for, where that needs too many pieces
_MOST_BEFORE = 4  # times as many pieces may there be before neighbours are merged
_THRESHOLD = 0.05  # of CoACD, its default
_MOST_OF_COACD = 8000  # triangles of a part that it cuts: more take minutes
_COACD_SHARE = 0.35  # of the time that it gets: with parts that overlap it does not end
_SPACING = 0.006  # metres between the points of a piece at which its distance is tried
# around a point inside a mesh the triangles wind once, around one outside not at all
_WINDING = 0.5
_MOST_POINTS = 500_000  # of the surface among which the nearest is looked for
_BALL = 1e-6  # metres of the ball by which distances are measured
_AT_ONCE = 200_000  # points times triangles
_COACD = """
import resource
import sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), int(sys.argv[2])))
import coacd
import numpy as np
coacd.set_log_level("error")
with np.load("meshes.npz") as read:
    arrays = [read[key] for key in read.files]
given = [coacd.Mesh(*pair) for pair in zip(arrays[::2], arrays[1::2], strict=True)]
settings = {"threshold": float(sys.argv[1]), "preprocess_mode": "off", "seed": 0}
np.savez("parts.npz", *(vertices for mesh in given for vertices, _ in coacd.run_coacd(mesh, **settings)))
"""


def convex_pieces(
    mesh: Shape,
    *,
    max_error: float = MAX_ERROR,
    max_pieces: int = MAX_PIECES,
    time_limit: float = 120.0,
) -> tuple[Shape, ...]:
    """Return convex meshes that together are a mesh. Seconds to a minute the first time, then read from the disk.

    Args:
        mesh: triangles, which need not be watertight.
        max_error: metres by which a piece may lie outside the mesh; two to eight times as many,
            with a warning in the log, where that needs too many pieces.
        max_pieces: pieces at most.
        time_limit: seconds of processor time after which a mesh is given up.

    Raises:
        ShapeError: not a mesh, or too many pieces or seconds would be needed.
        MissingExtraError: the extra ``formats`` is not installed.
    """
    if mesh.kind != "mesh":
        raise ShapeError(f"only meshes are cut into pieces, not shapes of kind '{mesh.kind}'")
    cache, key = (
        SceneCache.of_user(),
        entry_key("pieces by parts", mesh.digest, max_error, max_pieces),
    )
    found = cache.get(key) if cache else None
    if found is None:
        pieces, bound = _pieces_of(mesh, max_error, max_pieces, time_limit)
        scene = SceneGraph().add_frame(
            "pieces", "world", shapes=[AttachedShape(piece) for piece in pieces]
        )
        scene = scene.set_attributes("pieces", {"bound": bound})
        if cache:
            cache.put(key, scene, {}, ())
    else:
        scene = found[0]
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
    """Return a mesh as it is drawn, and its pieces by which it collides.

    Args:
        attached: the mesh.
        max_error: as for :func:`convex_pieces` [m].
        max_pieces: as for :func:`convex_pieces`.
        time_limit: as for :func:`convex_pieces` [s].
    """
    shape, pose = attached.shape, attached.pose
    drawn = AttachedShape(
        shape, pose, color=attached.color, visual=attached.visual, collision=False
    )
    pieces = convex_pieces(shape, max_error=max_error, max_pieces=max_pieces, time_limit=time_limit)
    return (
        drawn,
        *(AttachedShape(part, pose, visual=False, friction=attached.friction) for part in pieces),
    )


def _pieces_of(
    mesh: Shape, max_error: float, max_pieces: int, time_limit: float
) -> tuple[tuple[Shape, ...], float]:
    """Return the pieces of a mesh, and the metres within which they are right."""
    import trimesh

    require("coacd", "formats", "cutting a mesh into convex pieces needs")
    whole = trimesh.Trimesh(np.asarray(mesh.vertices), np.asarray(mesh.outward_faces), process=True)
    bound, deadline = max_error, _spent() + time_limit
    measure = _Error(mesh, whole.triangles, bound, deadline)

    def is_right(hull: Any) -> bool:
        return measure(hull) <= bound

    done: list[Any] = []
    pending: list[Any] = [trimesh.convex.convex_hull(whole)]
    if not is_right(pending[0]):  # closed parts that are convex stay as they are
        parts: list[Any] = list(whole.split(only_watertight=False))
        hulls = [
            _hull_of(part) if part.is_watertight else part if len(part.faces) == 1 else None
            for part in parts
        ]
        is_done = [hull is not None and is_right(hull) for hull in hulls]
        done = list(compress(hulls, is_done))
        rest = [part for part, is_made in zip(parts, is_done, strict=True) if not is_made]
        closed = [part for part in rest if part.is_watertight and part.volume > 0.0]
        if opened := [part for part in rest if not (part.is_watertight and part.volume > 0.0)]:
            closed.append(trimesh.util.concatenate(opened) if done or closed else whole)
        simple = [part for part in closed if len(part.faces) <= _MOST_OF_COACD]
        pending = [
            hull
            for part in closed
            if len(part.faces) > _MOST_OF_COACD and (hull := _hull_of(part)) is not None
        ]
        pending += _first_cuts(simple, _COACD_SHARE * (deadline - _spent())) if simple else []
    while True:
        while pending and len(pending) + len(done) <= _MOST_BEFORE * max_pieces:
            hull = pending.pop()
            if is_right(hull):
                done.append(hull)
            else:
                pending += min(
                    _cuts(whole, hull), key=lambda halves: round(sum(map(measure, halves)), 9)
                )
        if not pending or bound > max_error:
            done = _merged(done, max_pieces, bound, is_right)
        if pending and len(pending) + len(done) <= _MOST_BEFORE * max_pieces:
            continue
        if not pending and len(done) <= max_pieces:
            return (
                tuple(
                    solid(
                        np.asarray(hull.vertices),
                        np.asarray(hull.faces),
                        f"{mesh.source}#piece={number}",
                    )
                    for number, hull in enumerate(done)
                ),
                bound,
            )
        if bound >= _COARSEST * max_error:
            raise ShapeError(
                f"{_name(mesh)} needs more than {max_pieces} convex pieces to be right within"
                f" {1e3 * bound:g} mm; allow a larger max_error, such as {2e3 * bound:g} mm, or"
                " more max_pieces"
            )
        bound *= 2.0
        measure = _Error(mesh, whole.triangles, bound, deadline)


def _name(mesh: Shape) -> str:
    return mesh.source or "the mesh"


def solid(vertices: npt.ArrayLike, faces: npt.ArrayLike, source: str) -> Shape:
    """Return a hull as a shape; one that is flat, as of a wall without thickness, gets some.

    Args:
        vertices: (n, 3) corners [m].
        faces: (m, 3) indices of corners.
        source: name of the shape.
    """
    if (flat := thicken_flat_mesh(Mesh(vertices, faces))) is not None:
        hull = _hull_of(flat)
        vertices, faces = np.asarray(hull.vertices), np.asarray(hull.faces)
    return Mesh(vertices, faces, source=source)


def _first_cuts(meshes: list[Any], seconds: float) -> list[Any]:
    """Return the hulls that CoACD makes, in a process of its own, which can be stopped; one each if it fails."""
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
            _COACD,
            str(_THRESHOLD),
            str(math.ceil(max(seconds, 1.0))),
        ]
        if subprocess.run(tied(command), cwd=folder, capture_output=True, check=False).returncode:
            return [hull for mesh in meshes if (hull := _hull_of(mesh)) is not None]
        # as in _hull_of
        with np.load(folder / "parts.npz") as parts, np.errstate(divide="ignore", invalid="ignore"):
            return [trimesh.convex.convex_hull(parts[key]) for key in reversed(parts.files)]


def _spent() -> float:
    """Return the seconds of the processor's time of this process and of those that it started and that ended."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def _merged(hulls: list[Any], most: int, near: float, is_right: Callable[[Any], bool]) -> list[Any]:
    """Return hulls of which neighbours are made one, those first that add the least volume, until there are few."""
    import trimesh
    from scipy.spatial import ConvexHull, QhullError

    pool, number = dict(enumerate(hulls)), len(hulls)
    queue: list[tuple[float, int, int]] = []

    def offer(pairs: Iterable[tuple[int, int]]) -> None:
        for a, b in pairs:
            (low, high), (other_low, other_high) = pool[a].bounds, pool[b].bounds
            if np.all(low <= other_high + near) and np.all(other_low <= high + near):
                with suppress(QhullError):  # flat ones
                    volume = ConvexHull(np.concatenate([pool[a].vertices, pool[b].vertices])).volume
                    heappush(queue, (round(volume - pool[a].volume - pool[b].volume, 15), a, b))

    if len(pool) > most:
        offer(combinations(pool, 2))
    while queue and len(pool) > most:
        _, a, b = heappop(queue)
        if a not in pool or b not in pool:
            continue
        hull = trimesh.convex.convex_hull(np.concatenate([pool[a].vertices, pool[b].vertices]))
        if is_right(hull):
            del pool[a], pool[b]
            pool[number] = hull
            offer([(other, number) for other in pool if other != number])
            number += 1
    return list(pool.values())


def _cuts(whole: Any, hull: Any) -> Iterator[list[Any]]:
    """Yield the hulls of what a mesh has in either half of a hull, cut across each of its three axes."""
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
    """Return the hull of a part of a mesh, None where it has no volume."""
    import trimesh
    from scipy.spatial import QhullError

    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # a flat hull has no centre
            return trimesh.convex.convex_hull(part.vertices)
    except (QhullError, ValueError, IndexError):
        return None


class _Error:
    """How far outside a mesh a hull reaches at most, metres; 0 if that is within the bound."""

    def __init__(self, mesh: Shape, triangles: Array, bound: float, deadline: float) -> None:
        import trimesh
        from scipy.spatial import KDTree

        self._triangles, self._bound, self._deadline = triangles, bound, deadline
        self._late = ShapeError(
            f"cutting {_name(mesh)} into convex pieces took too long; allow a larger max_error or"
            " time_limit"
        )
        surface: Any = trimesh.Trimesh(
            triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3), process=False
        )
        spacing = max(bound, math.sqrt(surface.area / _MOST_POINTS))
        self._near = KDTree(surface.subdivide_to_size(spacing, max_iter=30).vertices)
        scene, above = (
            SceneGraph().add_frame("mesh", "world", shapes=[AttachedShape(mesh, level="exact")]),
            "world",
        )
        for axis in np.eye(3):
            frame = f"along {axis}"
            scene, above = scene.add_frame(frame, above, joint=Prismatic(axis)), frame
        self._ball = above
        self._world = CollisionWorld(scene.set_shapes(above, [AttachedShape(Sphere(_BALL))]))

    def __call__(self, hull: Any) -> float:
        if _spent() > self._deadline:
            raise self._late
        fine = hull.subdivide_to_size(_SPACING, max_iter=30)
        points = np.unique(
            np.round(np.concatenate([fine.vertices, fine.triangles_center]), 9), axis=0
        )
        near = self._near.query(points)[0]
        order = np.argsort(-near, kind="stable")[: np.count_nonzero(near > self._bound)]
        for chunk in np.array_split(
            points[order], max(1, math.ceil(len(order) * len(self._triangles) / _AT_ONCE))
        ):
            if _spent() > self._deadline:
                raise self._late
            outside = chunk[np.abs(windings(chunk, self._triangles)) < _WINDING]
            away = [self._world.distance("mesh", self._ball, point) for point in outside]
            worst = max((found.distance + _BALL for found in away if found), default=0.0)
            if worst > self._bound:
                return worst
        return 0.0


def windings(points: npt.NDArray[Any], triangles: Array) -> npt.NDArray[Any]:
    """Return winding numbers (n,) of a mesh about points (Van Oosterom and Strackee, 1983).

    Args:
        points: (n, 3) [m].
        triangles: (m, 3, 3) corners [m].
    """
    # by corner, axis and triangle
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
