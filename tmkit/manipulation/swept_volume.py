"""The space that a plan sweeps: cubes of a grid through which the arms pass, and what they carry, push and pull.

It is sampled along each segment, at configurations so close that nothing moves by more than half a
cell between two of them. It is sampled inside and on each collision shape that moves (its convex
hull) at points so close that no cell inside a shape is missed. A cell is swept when a point was in
it.

Invariants: a function of the plan and the size of the cells alone. Whatever is swept is nearer to a
point that was looked at than 0.7 of a cell's edge, so nothing is missed that is farther inside. A
cell counts whole, so the volume is rather too large than too small, by about half a cell around
everything. O(samples * points) time, in chunks; a Panda's plan of four actions takes a few seconds
at the default size.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import norms
from tmkit._support.results import Displayed
from tmkit.errors import ConfigurationError
from tmkit.graph import AttachedShape, PointCloud, SceneGraph
from tmkit.graph.traversal import leading_joint
from tmkit.motion.reachable_region import hull_points
from tmkit.plans.values import Plan
from tmkit.robots.hands import pair_distance
from tmkit.robots.mechanisms import MOVABLE_CLASSES
from tmkit.spatial.plain import plain_numbers

# radians or metres: between configurations at which it is looked how far things move
_JOINT_STEP = 0.05
_MOST_POINTS = 2_000_000  # that are in memory at a time
_OFFSET, _BITS = 1 << 20, 21  # cells are packed into one number
_NAME = "swept volume"


@dataclass(frozen=True, slots=True, eq=False)
class SweptVolume(Displayed):
    """Cells of a grid that a plan sweeps.

    Attributes:
        frame: the frame in which everything is expressed: the root of the plan's scene.
        cell: edge of the cells, metres; cell ``(i, j, k)`` begins at ``cell * (i, j, k)``.
        cells: (n, 3) integers, sorted.
        frames: the frames of which some shape moved, in the order of the scene.
        samples: configurations at which it was looked.
    """

    frame: str
    cell: float
    cells: NDArray[np.int64]
    frames: tuple[str, ...]
    samples: int

    def __repr__(self) -> str:
        return f"SweptVolume({len(self.cells)} cells of {self.cell:g} m, {self.volume:.3f} m^3)"

    @property
    def volume(self) -> float:
        """Cubic metres of all cells together."""
        return len(self.cells) * self.cell**3

    @property
    def centres(self) -> NDArray[np.float64]:
        """The middle (n, 3) of each cell, metres."""
        return np.asarray(self.cell * (self.cells + 0.5), dtype=np.float64)

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lower and the upper corner (3,) of the box around all cells, metres; both zero when nothing moves."""
        if not len(self.cells):
            return np.zeros(3), np.zeros(3)
        return self.cell * self.cells.min(axis=0), self.cell * (self.cells.max(axis=0) + 1)

    def contains(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Tell for each point (..., 3) of the root, in metres, whether it is in a cell that is swept.

        Raises:
            ConfigurationError: points of another shape.
        """
        given = plain_numbers(points, "points")
        if given.shape[-1:] != (3,):
            raise ConfigurationError(
                f"expected points of three numbers, received an array of shape {given.shape}"
            )
        indices = np.floor(given.reshape(-1, 3) / self.cell)
        is_near = np.all(np.abs(indices) < _OFFSET, axis=1)
        keys = _packed(np.where(is_near[:, None], indices, 0.0).astype(np.int64))
        found: NDArray[np.bool_] = np.isin(keys, _packed(self.cells)) & is_near
        return found.reshape(given.shape[:-1])

    def distance(self, scene: SceneGraph, frame: str, *, q: ArrayLike | None = None) -> float:
        """Return the metres between the swept cells and the collision shapes of a frame; negative where they overlap.

        Each cell counts as the ball around it, so the answer is rather too small than too large: by
        1.8 edges of a cell at most, where it can be too large by 0.7.

        Args:
            scene: a scene with the same root.
            frame: the frame.
            q: (n_joints,) configuration; all zeros by default.

        Returns:
            The distance; infinite when nothing is swept, or the frame has no collision shape.
        """
        if not len(self.cells) or not any(part.collision for part in scene.shapes(frame)):
            return float("inf")
        cloud = PointCloud(self.centres, radius=self.cell * np.sqrt(3.0) / 2.0)
        name = _NAME
        while name in scene:
            name += "'"
        with_cloud = scene.add_frame(
            name, self.frame, classes=MOVABLE_CLASSES[:1], shapes=[AttachedShape(cloud)]
        )
        at = scene.zero_configuration() if q is None else q
        return pair_distance(with_cloud, at, frame_a=name, frame_b=frame)

    def touches(
        self, scene: SceneGraph, frame: str, *, q: ArrayLike | None = None, clearance: float = 0.0
    ) -> bool:
        """Return whether a frame's collision shapes are nearer to the swept volume than a clearance.

        Args:
            scene: the scene.
            frame: the frame.
            q: (n_joints,) configuration; needed if the scene has joints.
            clearance: metres.
        """
        return self.distance(scene, frame, q=q) < clearance


def swept_volume(plan: Plan, *, cell: float = 0.02) -> SweptVolume:
    """Find the space that a plan's arms sweep, with what they carry.

    Args:
        plan: the plan.
        cell: edge of the cells, metres.

    Raises:
        ConfigurationError: a cell without an extent.
    """
    if not 0.0 < cell < np.inf:
        raise ConfigurationError(
            f"expected cells with a positive edge, received {cell}", received=cell
        )
    found = [np.zeros(0, dtype=np.int64)]
    names: dict[str, None] = {}
    samples = 0
    for scene, rows in _motions(plan):
        clouds = {
            frame: points
            for frame in _moving(scene, rows)
            if len(points := _points_of(scene, frame, cell / 2.0))
        }
        dense = _dense(scene, rows, clouds, cell / 2.0)
        samples += len(dense)
        names.update(dict.fromkeys(clouds))
        poses = scene.poses_batch(dense)
        column = {frame: index for index, frame in enumerate(scene.frame_names)}
        for frame, points in clouds.items():
            found.append(_cells(points, poses[:, column[frame]], cell))
    keys = np.unique(np.concatenate(found))
    cells = np.stack(
        [(keys >> (_BITS * shift)) % (1 << _BITS) - _OFFSET for shift in (2, 1, 0)], axis=1
    )
    cells.flags.writeable = False
    root = plan.scene.root(plan.robots[0].tool)
    ordered = tuple(frame for frame in plan.scene.frame_names if frame in names)
    return SweptVolume(root, cell, cells, ordered, samples)


def _motions(plan: Plan) -> Iterator[tuple[SceneGraph, NDArray[np.float64]]]:
    """Yield for each segment its version of the scene and its configurations (k, n_joints), the one before first."""
    scene, q = plan.scene, plan.q
    for step in plan.steps:
        for segment in step.segments:
            after, end = segment.end(scene, q)
            rows = np.tile(end, (len(segment.path) + 1, 1))
            rows[1:, [scene.joint_names.index(joint) for joint in segment.joint_names]] = (
                segment.path
            )
            rows[0] = q
            yield scene, rows
            scene, q = after, end
        scene, q = step.scene, step.q


def _moving(scene: SceneGraph, rows: NDArray[np.float64]) -> list[str]:
    """Return the frames that are children of a joint which moves along a path, in the order of the scene."""
    names = {scene.joint_names[column] for column in np.flatnonzero(np.ptp(rows, axis=0)).tolist()}
    movers = [frame for frame in scene.frame_names if leading_joint(scene, frame) in names]
    moved = {below for frame in movers for below in scene.subtree(frame)}
    return [frame for frame in scene.frame_names if frame in moved]


def _dense(
    scene: SceneGraph,
    rows: NDArray[np.float64],
    clouds: dict[str, NDArray[np.float64]],
    step: float,
) -> NDArray[np.float64]:
    """Return configurations along a path between which no point moves by more than a step in metres."""
    coarse = _refined(rows, np.ceil(np.abs(np.diff(rows, axis=0)).max(axis=1) / _JOINT_STEP))
    poses = scene.poses_batch(coarse)
    column = {frame: index for index, frame in enumerate(scene.frame_names)}
    travel = np.zeros(len(coarse) - 1)
    for frame, points in clouds.items():
        corners = np.array(
            list(itertools.product(*zip(points.min(axis=0), points.max(axis=0), strict=True)))
        )
        placed = _placed(corners, poses[:, column[frame]])
        travel = np.maximum(travel, norms(np.diff(placed, axis=0)).max(axis=1))
    return _refined(coarse, np.ceil(travel / step))


def _refined(rows: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows with as many steps between neighbours as the counts say, at least one."""
    pieces = [
        start + np.linspace(0.0, 1.0, max(1, int(count)), endpoint=False)[:, None] * (end - start)
        for start, end, count in zip(rows[:-1], rows[1:], counts, strict=True)
    ]
    return np.concatenate([*pieces, rows[-1:]])


def _points_of(scene: SceneGraph, frame: str, spacing: float) -> NDArray[np.float64]:
    """Return points (n, 3) in and on the collision shapes of a frame, no farther apart than the spacing."""
    found = [np.zeros((0, 3))]
    for part in scene.shapes(frame):
        corners = hull_points(part.shape) if part.collision else np.zeros((0, 3))
        if len(corners):
            found.append(np.asarray(part.pose.apply(_filled(corners, spacing)), dtype=np.float64))
    return np.concatenate(found)


def _filled(corners: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Return the corners of a hull and a grid of points inside it."""
    from scipy.spatial import ConvexHull, QhullError

    lower, upper = corners.min(axis=0), corners.max(axis=0)
    counts = np.ceil((upper - lower) / spacing).astype(int) + 1
    axes = [
        np.linspace(low, high, count) for low, high, count in zip(lower, upper, counts, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    try:
        planes = ConvexHull(corners).equations
    except (QhullError, ValueError):  # flat: the grid of its box is as flat
        return np.concatenate([corners, grid])
    inside = np.ones(len(grid), dtype=bool)
    for plane in planes:
        inside &= grid @ plane[:3] + plane[3] <= 1e-9
    return np.concatenate([corners, grid[inside]])


def _placed(points: NDArray[np.float64], poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points (m, n, 3) at each of m poses (m, 7)."""
    from scipy.spatial.transform import Rotation

    turns = Rotation.from_quat(poses[:, 3:]).as_matrix()
    return np.asarray(np.einsum("mij,nj->mni", turns, points) + poses[:, None, :3])


def _cells(
    points: NDArray[np.float64], poses: NDArray[np.float64], cell: float
) -> NDArray[np.int64]:
    """Return the packed cells that points meet at poses."""
    chunk = max(1, _MOST_POINTS // len(points))
    found = [
        np.unique(
            _packed(np.floor(_placed(points, poses[first : first + chunk]) / cell).astype(np.int64))
        )
        for first in range(0, len(poses), chunk)
    ]
    return np.unique(np.concatenate(found))


def _packed(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for each cell (..., 3); the order of cells is kept."""
    moved = cells + _OFFSET
    packed: NDArray[np.int64] = (
        (moved[..., 0] << (2 * _BITS)) | (moved[..., 1] << _BITS) | moved[..., 2]
    )
    return packed
