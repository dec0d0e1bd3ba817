"""Swept volume of a plan: grid cells that the arms and their objects pass through.

Configurations are sampled along each segment, so densely that no point moves by more than half a
cell between two of them. Points are sampled inside and on the convex hull of each moving collision
shape, so densely that no cell inside a shape is missed. A cell is swept if it contains a sampled
point.

Invariants: the result depends on the plan and the cell size alone. Every swept point is within 0.7
of a cell's edge of a sampled point. Cells count as a whole, so the volume is overestimated by about
half a cell around every shape. O(samples * points) time, in chunks; a Panda's plan of four actions
takes a few seconds at the default size.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.argument_errors import check_argument, plan_hint
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

_JOINT_STEP = 0.05
"""Joint distance between the configurations at which travel is measured [rad or m]."""

_MAX_POINTS_IN_MEMORY = 2_000_000
"""Number of points transformed at a time."""

_INDEX_OFFSET = 1 << 20
"""Offset that makes cell indices positive, for packing into one number."""

_INDEX_BITS = 21
"""Bits of one cell index in a packed number."""

_CLOUD_FRAME = "swept volume"
"""Name of the frame of the swept cells in distance queries."""


@dataclass(frozen=True, slots=True, eq=False)
class SweptVolume(Displayed):
    """Cells of a grid that a plan sweeps.

    Attributes:
        frame: root of the plan's scene, in which all cells are expressed.
        cell: edge of the cells [m]. Cell ``(i, j, k)`` starts at ``cell * (i, j, k)``.
        cells: (n, 3) integers, sorted.
        frames: frames with a moving shape, in the order of the scene.
        samples: number of sampled configurations.
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
        """Total volume of all cells [m^3]."""
        return len(self.cells) * self.cell**3

    @property
    def centres(self) -> NDArray[np.float64]:
        """(n, 3) centres of the cells, in root axes [m]."""
        return np.asarray(self.cell * (self.cells + 0.5), dtype=np.float64)

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper corner (3,) of the bounding box [m], both zero without cells."""
        if not len(self.cells):
            return np.zeros(3), np.zeros(3)
        return self.cell * self.cells.min(axis=0), self.cell * (self.cells.max(axis=0) + 1)

    def contains(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Return whether each point is in a swept cell.

        Args:
            points: (..., 3) positions in root axes [m].

        Returns:
            (...) booleans.

        Raises:
            ConfigurationError: if points have another shape.
        """
        array = plain_numbers(points, "points", "m")
        if array.shape[-1:] != (3,):
            raise ConfigurationError(
                f"expected points of three numbers, received an array of shape {array.shape}"
            )
        indices = np.floor(array.reshape(-1, 3) / self.cell)
        is_in_range = np.all(np.abs(indices) < _INDEX_OFFSET, axis=1)
        keys = _pack_cells(np.where(is_in_range[:, None], indices, 0.0).astype(np.int64))
        is_swept: NDArray[np.bool_] = np.isin(keys, _pack_cells(self.cells)) & is_in_range
        return is_swept.reshape(array.shape[:-1])

    def distance(self, scene: SceneGraph, frame: str, *, q: ArrayLike | None = None) -> float:
        """Return the signed distance between the swept cells and a frame's shapes [m].

        Each cell counts as its circumscribed ball. The distance is too small by at most 1.8 edges
        of a cell, or too large by at most 0.7 edges.

        Args:
            scene: scene with the same root.
            frame: frame with collision shapes.
            q: (n_joints,) configuration. Defaults to zeros.

        Returns:
            The distance, negative in case of overlap. Infinite if no cell is swept or the frame has
            no collision shape.
        """
        if not len(self.cells) or not any(part.collision for part in scene.shapes(frame)):
            return float("inf")
        cloud = PointCloud(self.centres, radius=self.cell * np.sqrt(3.0) / 2.0)
        name = _CLOUD_FRAME
        while name in scene:
            name += "'"
        with_cloud = scene.add_frame(
            name, self.frame, classes=MOVABLE_CLASSES[:1], shapes=[AttachedShape(cloud)]
        )
        configuration = scene.zero_configuration() if q is None else q
        return pair_distance(with_cloud, configuration, frame_a=name, frame_b=frame)

    def touches(
        self, scene: SceneGraph, frame: str, *, q: ArrayLike | None = None, clearance: float = 0.0
    ) -> bool:
        """Return whether a frame's shapes are nearer to the swept volume than a clearance.

        Args:
            scene: scene with the same root.
            frame: frame with collision shapes.
            q: (n_joints,) configuration. Defaults to zeros.
            clearance: smallest distance that is not a contact [m].
        """
        return self.distance(scene, frame, q=q) < clearance


def swept_volume(plan: Plan, *, cell: float = 0.02) -> SweptVolume:
    """Compute the volume that a plan's arms and their objects sweep.

    Args:
        plan: plan whose motions are sampled.
        cell: edge of the cells [m].

    Raises:
        ConfigurationError: if the edge is not positive and finite.
    """
    check_argument(plan, Plan, "plan", function="swept_volume", hint=plan_hint(plan))
    if not 0.0 < cell < np.inf:
        raise ConfigurationError(
            f"expected cells with a positive edge, received {cell}", received=cell
        )
    key_arrays = [np.zeros(0, dtype=np.int64)]
    moving: set[str] = set()
    samples = 0
    for scene, rows in _motions(plan):
        clouds = {
            frame: points
            for frame in _moving_frames(scene, rows)
            if len(points := _sample_points(scene, frame, cell / 2.0))
        }
        configurations = _sample_path(scene, rows, clouds, cell / 2.0)
        samples += len(configurations)
        moving.update(clouds)
        poses = scene.poses_batch(configurations)
        column = {frame: index for index, frame in enumerate(scene.frame_names)}
        for frame, points in clouds.items():
            key_arrays.append(_cell_keys(points, poses[:, column[frame]], cell))
    cells = _unpack_cells(np.unique(np.concatenate(key_arrays)))
    cells.flags.writeable = False
    root = plan.scene.root(plan.robots[0].tool)
    frames = tuple(frame for frame in plan.scene.frame_names if frame in moving)
    return SweptVolume(root, cell, cells, frames, samples)


def _motions(plan: Plan) -> Iterator[tuple[SceneGraph, NDArray[np.float64]]]:
    """Yield the scene and the configurations (k, n_joints) of each segment, from its start on."""
    scene, q = plan.scene, plan.q
    for step in plan.steps:
        for segment in step.segments:
            end_scene, end = segment.end(scene, q)
            rows = np.tile(end, (len(segment.path) + 1, 1))
            rows[1:, [scene.joint_names.index(joint) for joint in segment.joint_names]] = (
                segment.path
            )
            rows[0] = q
            yield scene, rows
            scene, q = end_scene, end
        scene, q = step.scene, step.q


def _moving_frames(scene: SceneGraph, rows: NDArray[np.float64]) -> list[str]:
    """Return the frames below a joint that moves along a path (k, n_joints), in scene order."""
    joints = {scene.joint_names[column] for column in np.flatnonzero(np.ptp(rows, axis=0)).tolist()}
    driven = [frame for frame in scene.frame_names if leading_joint(scene, frame) in joints]
    moving = {descendant for frame in driven for descendant in scene.subtree(frame)}
    return [frame for frame in scene.frame_names if frame in moving]


def _sample_path(
    scene: SceneGraph,
    rows: NDArray[np.float64],
    clouds: dict[str, NDArray[np.float64]],
    step: float,
) -> NDArray[np.float64]:
    """Return configurations along a path, between which no point moves by more than a step.

    Args:
        scene: scene of the path.
        rows: (k, n_joints) path.
        clouds: (n, 3) points by frame [m].
        step: largest distance of a point between two configurations [m].
    """
    coarse = _subdivide(rows, np.ceil(np.abs(np.diff(rows, axis=0)).max(axis=1) / _JOINT_STEP))
    poses = scene.poses_batch(coarse)
    column = {frame: index for index, frame in enumerate(scene.frame_names)}
    travel = np.zeros(len(coarse) - 1)
    for frame, points in clouds.items():
        corners = np.array(
            list(itertools.product(*zip(points.min(axis=0), points.max(axis=0), strict=True)))
        )
        positions = _transform(corners, poses[:, column[frame]])
        travel = np.maximum(travel, norms(np.diff(positions, axis=0)).max(axis=1))
    return _subdivide(coarse, np.ceil(travel / step))


def _subdivide(rows: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a path (k, n) with ``counts`` (k - 1,) steps between neighbours, at least one."""
    pieces = [
        start + np.linspace(0.0, 1.0, max(1, int(count)), endpoint=False)[:, None] * (end - start)
        for start, end, count in zip(rows[:-1], rows[1:], counts, strict=True)
    ]
    return np.concatenate([*pieces, rows[-1:]])


def _sample_points(scene: SceneGraph, frame: str, spacing: float) -> NDArray[np.float64]:
    """Return points (n, 3) in and on the collision shapes of a frame, ``spacing`` apart [m]."""
    clouds = [np.zeros((0, 3))]
    for part in scene.shapes(frame):
        corners = hull_points(part.shape) if part.collision else np.zeros((0, 3))
        if len(corners):
            points = part.pose.apply(_fill_hull(corners, spacing))
            clouds.append(np.asarray(points, dtype=np.float64))
    return np.concatenate(clouds)


def _fill_hull(corners: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Return the corners (n, 3) of a hull and the points of a grid inside it [m]."""
    from scipy.spatial import ConvexHull, QhullError

    lower, upper = corners.min(axis=0), corners.max(axis=0)
    counts = np.ceil((upper - lower) / spacing).astype(int) + 1
    axes = [
        np.linspace(low, high, count) for low, high, count in zip(lower, upper, counts, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    try:
        planes = ConvexHull(corners).equations
    except (QhullError, ValueError):
        # A flat hull has no volume, and the grid of its bounding box is as flat.
        return np.concatenate([corners, grid])
    inside = np.ones(len(grid), dtype=bool)
    for plane in planes:
        inside &= grid @ plane[:3] + plane[3] <= 1e-9
    return np.concatenate([corners, grid[inside]])


def _transform(points: NDArray[np.float64], poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points (n, 3) transformed by each pose (m, 7), as (m, n, 3)."""
    from scipy.spatial.transform import Rotation

    rotations = Rotation.from_quat(poses[:, 3:]).as_matrix()
    return np.asarray(np.einsum("mij,nj->mni", rotations, points) + poses[:, None, :3])


def _cell_keys(
    points: NDArray[np.float64], poses: NDArray[np.float64], cell: float
) -> NDArray[np.int64]:
    """Return the packed cells that contain points (n, 3) transformed by poses (m, 7)."""
    chunk = max(1, _MAX_POINTS_IN_MEMORY // len(points))
    key_arrays = []
    for first in range(0, len(poses), chunk):
        positions = _transform(points, poses[first : first + chunk])
        cells = np.floor(positions / cell).astype(np.int64)
        key_arrays.append(np.unique(_pack_cells(cells)))
    return np.unique(np.concatenate(key_arrays))


def _pack_cells(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for each cell (..., 3), in the order of the cells."""
    indices = cells + _INDEX_OFFSET
    keys: NDArray[np.int64] = (
        (indices[..., 0] << (2 * _INDEX_BITS)) | (indices[..., 1] << _INDEX_BITS) | indices[..., 2]
    )
    return keys


def _unpack_cells(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cells (n, 3) of packed numbers (n,)."""
    indices = [(keys >> (_INDEX_BITS * shift)) % (1 << _INDEX_BITS) for shift in (2, 1, 0)]
    return np.stack(indices, axis=1) - _INDEX_OFFSET
