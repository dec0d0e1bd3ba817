"""Perception: function blocks for planes, segments and tables in point clouds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tmkit._core import AttachedShape, Box, PointCloud, SceneGraph
from tmkit.errors import SceneError
from tmkit.graph.patterns import Above, Part, Pattern, Touching
from tmkit.graph.patterns.pattern import find_structure
from tmkit.spatial import Pose
from tmkit.world.blocks import Edit, FunctionBlock, Matches, OutputFrame, newest_configuration

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
_MAX_SCORED_POINTS = 2000
"""Largest number of points that score a candidate plane; all remaining points refine it."""

_PLANE_PATTERN = Pattern([Part("plane", ["plane"], shape="point_cloud")])
"""Frames of planes."""

_SEGMENT_PATTERN = Pattern([Part("segment", ["segment"], shape="point_cloud")])
"""Frames of segments."""


@dataclass(frozen=True)
class PlaneSegmentation(FunctionBlock):
    """Segmentation of point clouds into planes (RANSAC and least squares) and remaining segments.

    A plane is a frame of the class ``plane`` under the frame of its cloud, with a cloud of its
    points. Its origin is the mean of these points. Its z axis is the normal on the side of the
    cloud's origin. Its x axis is along the longer side of their rectangle of least area. A segment
    is a frame of the class ``segment`` at the mean of its points.

    A plane is connected. Its covariance is that of least squares, for points with independent
    errors of equal variance in all directions, without a common bias. The largest planes come
    first. Equal clouds and seed give equal output.

    Args:
        name: as for :class:`~tmkit.world.FunctionBlock`.
        input_hook: as for :class:`~tmkit.world.FunctionBlock`.
        output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        cloud: class of the frames with the point clouds.
        distance: largest distance of a point from its plane [m].
        min_points: smallest number of points of a plane.
        max_planes: largest number of planes in a cloud.
        noise: standard deviation of a coordinate of a point [m]. Defaults to that of the points
            relative to their plane.
        gap: distance from which on points are in different parts [m]. It must exceed the spacing
            of the points on a surface.
        min_segment: smallest number of points of a segment.
        iterations: number of candidates for each plane.
        seed: seed of the candidates.

    Raises:
        SceneError: if a number is out of range.

    Source: Fischler and Bolles, "Random sample consensus", Communications of the ACM 24, 1981.
    """

    outputs: ClassVar[Mapping[str, Pattern]] = {
        "planes": _PLANE_PATTERN,
        "segments": _SEGMENT_PATTERN,
    }
    cloud: str = field(default="cloud", kw_only=True)
    distance: float = field(default=0.01, kw_only=True)
    min_points: int = field(default=300, kw_only=True)
    max_planes: int = field(default=4, kw_only=True)
    noise: float | None = field(default=None, kw_only=True)
    gap: float = field(default=0.02, kw_only=True)
    min_segment: int = field(default=30, kw_only=True)
    iterations: int = field(default=500, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = {
            "distance": self.distance,
            "gap": self.gap,
            "noise": 1.0 if self.noise is None else self.noise,
            "min_points": self.min_points - 3,
            "min_segment": self.min_segment,
            "iterations": self.iterations,
        }
        for name, value in numbers.items():
            if not 0.0 < value < math.inf:
                raise SceneError(
                    f"function block '{self.name}': {name} is out of range: {getattr(self, name)}"
                )

    @property
    def inputs(self) -> Mapping[str, Pattern]:
        """Frames with point clouds."""
        return {"cloud": Pattern([Part("cloud", [self.cloud], shape="point_cloud")])}

    def execute(self, scene: SceneGraph, matches: Matches) -> Edit:
        """Return the planes, the largest first, and the segments of all clouds."""
        frames: list[OutputFrame] = []
        counts = {"plane": 0, "segment": 0}
        for match in matches["cloud"]:
            frame = match["cloud"]
            points, first = _join_clouds(scene, frame)
            radius, stamp = first.shape.dimensions[0], first.stamp
            for kind, part, pose, covariance in self._parts(points):
                counts[kind] += 1
                local = PointCloud(pose.inverse().apply(part), radius=radius)
                frames.append(
                    OutputFrame(
                        f"{self.name} {kind} {counts[kind]}",
                        frame,
                        pose,
                        covariance,
                        [kind],
                        [AttachedShape(local, collision=False).replace(stamp=stamp)],
                        {"points": len(part)},
                    )
                )
        return self.output(frames)

    def _parts(self, points: Array) -> Iterator[tuple[str, Array, Pose, Array]]:
        """Yield kind, points, frame and covariance of each part, relative to the cloud's frame."""
        is_remaining = np.ones(len(points), dtype=bool)
        variance = 0.0 if self.noise is None else self.noise**2
        for inliers in self._planes(points):
            part = points[inliers]
            pose = _plane_frame(part)
            local = np.asarray(pose.inverse().apply(part))
            if self.noise is None:
                variance = max(float(np.sum(local[:, 2] ** 2)) / (len(part) - 3), 1e-12)
            yield "plane", part, pose, _fit_covariance(local, variance)
            is_remaining[inliers] = False
        remaining = points[is_remaining]
        for inliers in _components(remaining, self.gap):
            if len(inliers) >= self.min_segment:
                part = remaining[inliers]
                covariance = np.diag([variance / len(part)] * 3 + [0.0] * 3)
                yield "segment", part, Pose(part.mean(axis=0)), covariance

    def _planes(self, points: Array) -> Iterator[Indices]:
        """Yield the indices of the points of each plane."""
        random = np.random.default_rng(self.seed)
        remaining, count = np.arange(len(points)), 0
        while count < self.max_planes and len(remaining) >= self.min_points:
            inliers = remaining[self._find_inliers(points[remaining], random)]
            for _ in range(5):  # least squares, until the points stay the same
                if len(inliers) < self.min_points:
                    return
                center, normal = _fit_plane(points[inliers])
                distances = np.abs((points[remaining] - center) @ normal)
                refined = remaining[distances <= self.distance]
                if np.array_equal(refined, inliers):
                    break
                inliers = refined
            part = inliers[next(_components(points[inliers], self.gap), np.arange(0))]
            is_plane = len(part) >= self.min_points
            if is_plane:
                count += 1
                yield part
            remaining = np.setdiff1d(remaining, part if is_plane else inliers, assume_unique=True)

    def _find_inliers(self, points: Array, random: np.random.Generator) -> NDArray[np.bool_]:
        """Return a mask (n,) of the points of the best of many planes through three points."""
        sample = points[random.permutation(len(points))[:_MAX_SCORED_POINTS]]
        a, b, c = points[random.integers(len(points), size=(3, self.iterations))]
        normals = np.cross(b - a, c - a)
        lengths = np.linalg.norm(normals, axis=1)
        is_plane = lengths > 1e-12
        if not is_plane.any():
            return np.zeros(len(points), dtype=bool)
        normals, a = normals[is_plane] / lengths[is_plane, None], a[is_plane]
        is_inlier = np.abs(sample @ normals.T - np.sum(a * normals, axis=1)) <= self.distance
        best = int(np.argmax(is_inlier.sum(axis=0)))
        inside: NDArray[np.bool_] = np.abs((points - a[best]) @ normals[best]) <= self.distance
        return inside


def _fit_plane(points: Array) -> tuple[Array, Array]:
    """Return the center and the normal of the least-squares plane of points."""
    center = points.mean(axis=0)
    normal: Array = np.linalg.eigh(np.cov((points - center).T))[1][:, 0]
    return center, normal


def _plane_frame(points: Array) -> Pose:
    """Return the frame of the plane of points, with z along its normal towards the origin."""
    from scipy.spatial import ConvexHull

    center, z = _fit_plane(points)
    z = -z if z @ center > 0.0 else z
    x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    axes = np.column_stack([x / np.linalg.norm(x), np.cross(z, x) / np.linalg.norm(x), z])
    projection = ((points - center) @ axes)[:, :2]
    corners = projection[ConvexHull(projection).vertices]
    edges = np.diff(np.vstack([corners, corners[:1]]), axis=0)
    angles = np.arctan2(edges[:, 1], edges[:, 0])
    rotations = [[[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]] for t in angles]
    sizes = np.ptp(np.stack([corners @ rotation for rotation in rotations]), axis=1)
    best = int(np.argmin(np.round(sizes.prod(axis=1), 9)))
    angle = float(angles[best]) + (math.pi / 2.0 if sizes[best, 0] < sizes[best, 1] else 0.0)
    x = axes @ [math.cos(angle), math.sin(angle), 0.0]
    x = x * np.sign(x[int(np.argmax(np.abs(x)))])
    matrix = np.eye(4)
    matrix[:3] = np.column_stack([x, np.cross(z, x), z, center])
    return Pose.from_matrix(matrix)


def _fit_covariance(local: Array, variance: float) -> Array:
    """Return the covariance (6, 6) of a rigid fit to points (n, 3), in the axes of their frame."""
    x, y, z = local.T
    zeros, units = np.zeros(len(local)), np.ones(len(local))
    rows = np.array(
        [
            [units, zeros, zeros, zeros, z, -y],
            [zeros, units, zeros, -z, zeros, x],
            [zeros, zeros, units, y, -x, zeros],
        ]
    )
    information = np.einsum("kin,kjn->ij", rows, rows)
    covariance = variance * np.linalg.inv(information)
    return (covariance + covariance.T) / 2.0


def _components(points: Array, gap: float) -> Iterator[Indices]:
    """Yield the indices of each connected part of points, the largest first.

    Points are grouped by cells of the size of the gap. Points up to ``gap`` apart are always
    connected, and those more than ``2 sqrt(3) gap`` apart never directly.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    if not len(points):
        return
    cells, cell_of = np.unique(np.floor(points / gap).astype(np.int64), axis=0, return_inverse=True)
    pairs = cKDTree(cells).query_pairs(1.75, output_type="ndarray")  # corner neighbours too
    graph = coo_array(
        (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(cells), len(cells))
    )
    labels = connected_components(graph, directed=False)[1][cell_of.ravel()]
    for label in np.argsort(-np.bincount(labels), kind="stable"):
        yield np.flatnonzero(labels == label)


@dataclass(frozen=True)
class TableRecognition(FunctionBlock):
    """Recognition of tables: level planes of a table's size and height, with objects on them.

    A table is a frame of the class ``table`` under that of its plane, with a box as its plate. Its
    attribute ``objects`` has the frames of the segments on it, and ``height`` its height above the
    root [m].

    Args:
        name: as for :class:`~tmkit.world.FunctionBlock`.
        input_hook: as for :class:`~tmkit.world.FunctionBlock`.
        output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        size: least and largest length of both sides [m].
        height: least and largest height above the origin of the root [m].
        tilt: largest angle from level [rad].
        gap: largest distance between the plane and the lowest point of an object on it [m].
        min_objects: smallest number of objects on a table.
        thickness: thickness of the plate [m].
        up: direction against gravity, in the axes of the root.
    """

    inputs: ClassVar[Mapping[str, Pattern]] = {"plane": _PLANE_PATTERN, "segment": _SEGMENT_PATTERN}
    outputs: ClassVar[Mapping[str, Pattern]] = {
        "tables": Pattern([Part("table", ["table"], shape="box")])
    }
    size: tuple[float, float] = field(default=(0.3, 3.0), kw_only=True)
    height: tuple[float, float] = field(default=(0.3, 1.2), kw_only=True)
    tilt: float = field(default=0.1, kw_only=True)
    gap: float = field(default=0.03, kw_only=True)
    min_objects: int = field(default=1, kw_only=True)
    thickness: float = field(default=0.02, kw_only=True)
    up: tuple[float, float, float] = field(default=(0.0, 0.0, 1.0), kw_only=True)

    def execute(self, scene: SceneGraph, matches: Matches) -> Edit:
        """Return the tables among the planes."""
        q = newest_configuration(scene)
        up = np.asarray(self.up) / np.linalg.norm(self.up)
        kinematics = scene.at(q)
        plates: dict[str, list[str]] = {}
        for match in matches["plane"]:
            pose, bounds = kinematics.pose(match["plane"]), _bounds(scene, match["plane"])
            sides = bounds[1, :2] - bounds[0, :2]
            is_level = float(pose.rotation[:, 2] @ up) >= math.cos(self.tilt)
            is_high = self.height[0] <= float(pose.translation @ up) <= self.height[1]
            if is_level and is_high and self.size[0] <= sides.min() and sides.max() <= self.size[1]:
                plates[match["plane"]] = []
        candidates = {frame for match in matches["segment"] for frame in match.values()}
        plate = Part("plate", ["plane"], test=lambda _, frame: frame in plates)
        item = Part("object", ["segment"], test=lambda _, frame: frame in candidates)
        relations = [
            Above("object", "plate", tolerance=self.gap),
            Touching("object", "plate", tolerance=self.gap),
        ]
        pattern = Pattern([plate, item], relations)
        for pair in find_structure(scene, pattern, q=q, up=self.up):
            plates[pair["plate"]].append(pair["object"])
        tables: list[OutputFrame] = []
        for plane, objects in plates.items():
            if len(objects) < self.min_objects:
                continue
            low, high = _bounds(scene, plane)
            box = Box([*(high - low)[:2], self.thickness])
            x, y, _ = (low + high) / 2.0
            top = AttachedShape(
                box, Pose([x, y, -self.thickness / 2.0]), color=[0.7, 0.5, 0.3, 1.0]
            )
            height = float(kinematics.pose(plane).translation @ up)
            tables.append(
                OutputFrame(
                    f"{self.name} {len(tables) + 1}",
                    plane,
                    classes=["table"],
                    shapes=[top],
                    attributes={"objects": objects, "height": height},
                )
            )
        return self.output(tables)


def _bounds(scene: SceneGraph, frame: str) -> Array:
    """Return the bounds (2, 3) of the point clouds of a frame, in its axes."""
    points = _join_clouds(scene, frame)[0]
    return np.stack([points.min(axis=0), points.max(axis=0)])


def _join_clouds(scene: SceneGraph, frame: str) -> tuple[Array, AttachedShape]:
    """Return the points (n, 3) of the clouds of a frame, in its axes, and the first cloud."""
    clouds = [attached for attached in scene.shapes(frame) if attached.shape.kind == "point_cloud"]
    return (
        np.concatenate([attached.pose.apply(attached.shape.points) for attached in clouds]),
        clouds[0],
    )
