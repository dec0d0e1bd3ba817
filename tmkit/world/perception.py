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
from tmkit.world.blocks import Edit, Found, FunctionBlock, OutputFrame, newest_configuration

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
_SCORED = 2000  # points at most by which a plane is chosen; all that are left refine it
_PLANE = Pattern([Part("plane", ["plane"], shape="point_cloud")])
_SEGMENT = Pattern([Part("segment", ["segment"], shape="point_cloud")])


@dataclass(frozen=True)
class PlaneSegmentation(FunctionBlock):
    """Splits point clouds into planes, by RANSAC and least squares, and segments of the points beside them.

    A plane is a frame of the class ``plane`` under the frame of its cloud, with a cloud of its
    points. The origin is in the middle of these, z is along the normal to the side of the cloud's
    origin, and x is along the longer side of the rectangle of least area around them. A segment is
    a frame of the class ``segment`` in the middle of its points.

    A plane is connected. Its covariance is that of least squares, for points with independent
    errors of equal variance in all directions, without a common bias. The largest planes come
    first. Equal clouds and seed give equal output.

    Args:
        name, input_hook, output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        cloud: class of the frames whose point clouds are meant.
        distance: metres from a plane up to which a point belongs to it.
        min_points: of a plane.
        max_planes: of a cloud.
        noise: standard deviation of a coordinate of a point, metres; by default that of the points
            from their plane.
        gap: metres between points from which on they are in different parts; more than points of a
            surface are apart.
        min_segment: points of a segment; smaller ones are dropped.
        iterations: planes that are tried for each.
        seed: of the points that are tried.

    Raises:
        SceneError: a number out of range.

    Source: Fischler and Bolles, "Random sample consensus", Communications of the ACM 24, 1981.
    """

    outputs: ClassVar[Mapping[str, Pattern]] = {"planes": _PLANE, "segments": _SEGMENT}
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
        }
        numbers |= {
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

    def execute(self, scene: SceneGraph, found: Found) -> Edit:
        """Return the planes, the largest first, and the segments of all clouds."""
        made: list[OutputFrame] = []
        counts = {"plane": 0, "segment": 0}
        for match in found["cloud"]:
            frame = match["cloud"]
            points, first = _cloud(scene, frame)
            radius, stamp = first.shape.dimensions[0], first.stamp
            for kind, part, pose, covariance in self._parts(points):
                counts[kind] += 1
                local = PointCloud(pose.inverse().apply(part), radius=radius)
                made.append(
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
        return self.output(made)

    def _parts(self, points: Array) -> Iterator[tuple[str, Array, Pose, Array]]:
        """Yield kind, points, frame and its covariance of each part, all relative to the frame of the cloud."""
        is_left = np.ones(len(points), dtype=bool)
        variance = 0.0 if self.noise is None else self.noise**2
        for inliers in self._planes(points):
            part = points[inliers]
            pose = _plane_frame(part)
            local = np.asarray(pose.inverse().apply(part))
            if self.noise is None:
                variance = max(float(np.sum(local[:, 2] ** 2)) / (len(part) - 3), 1e-12)
            yield "plane", part, pose, _covariance_of_fit(local, variance)
            is_left[inliers] = False
        rest = points[is_left]
        for inliers in _components(rest, self.gap):
            if len(inliers) >= self.min_segment:
                part = rest[inliers]
                yield (
                    "segment",
                    part,
                    Pose(part.mean(axis=0)),
                    np.diag([variance / len(part)] * 3 + [0.0] * 3),
                )

    def _planes(self, points: Array) -> Iterator[Indices]:
        """Yield the points of one plane after the other."""
        random = np.random.default_rng(self.seed)
        left, found = np.arange(len(points)), 0
        while found < self.max_planes and len(left) >= self.min_points:
            inliers = left[self._best(points[left], random)]
            for _ in range(5):  # least squares, until the points stay the same
                if len(inliers) < self.min_points:
                    return
                middle, normal = _plane_of(points[inliers])
                again = left[np.abs((points[left] - middle) @ normal) <= self.distance]
                if np.array_equal(again, inliers):
                    break
                inliers = again
            part = inliers[next(_components(points[inliers], self.gap), np.arange(0))]
            if len(part) >= self.min_points:
                found += 1
                yield part
            left = np.setdiff1d(
                left, part if len(part) >= self.min_points else inliers, assume_unique=True
            )

    def _best(self, points: Array, random: np.random.Generator) -> NDArray[np.bool_]:
        """Return which points belong to the best of many planes through three points each."""
        scored = points[random.permutation(len(points))[:_SCORED]]
        a, b, c = points[random.integers(len(points), size=(3, self.iterations))]
        normals = np.cross(b - a, c - a)
        lengths = np.linalg.norm(normals, axis=1)
        is_plane = lengths > 1e-12
        if not is_plane.any():
            return np.zeros(len(points), dtype=bool)
        normals, a = normals[is_plane] / lengths[is_plane, None], a[is_plane]
        near = np.abs(scored @ normals.T - np.sum(a * normals, axis=1)) <= self.distance
        best = int(np.argmax(near.sum(axis=0)))
        inside: NDArray[np.bool_] = np.abs((points - a[best]) @ normals[best]) <= self.distance
        return inside


def _plane_of(points: Array) -> tuple[Array, Array]:
    """Return the middle and the normal of the plane with the least squares of distances."""
    middle = points.mean(axis=0)
    normal: Array = np.linalg.eigh(np.cov((points - middle).T))[1][:, 0]
    return middle, normal


def _plane_frame(points: Array) -> Pose:
    """Return the frame of the plane of points: z along its normal, towards the origin."""
    from scipy.spatial import ConvexHull

    middle, z = _plane_of(points)
    z = -z if z @ middle > 0.0 else z
    x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    axes = np.column_stack([x / np.linalg.norm(x), np.cross(z, x) / np.linalg.norm(x), z])
    flat = ((points - middle) @ axes)[:, :2]
    corners = flat[ConvexHull(flat).vertices]
    edges = np.diff(np.vstack([corners, corners[:1]]), axis=0)
    angles = np.arctan2(edges[:, 1], edges[:, 0])
    turned = np.stack(
        [corners @ [[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]] for t in angles]
    )
    sizes = np.ptp(turned, axis=1)
    best = int(np.argmin(np.round(sizes.prod(axis=1), 9)))
    angle = float(angles[best]) + (math.pi / 2.0 if sizes[best, 0] < sizes[best, 1] else 0.0)
    x = axes @ [math.cos(angle), math.sin(angle), 0.0]
    x = x * np.sign(x[int(np.argmax(np.abs(x)))])
    matrix = np.eye(4)
    matrix[:3] = np.column_stack([x, np.cross(z, x), z, middle])
    return Pose.from_matrix(matrix)


def _covariance_of_fit(local: Array, variance: float) -> Array:
    """Return the covariance of the frame of points (n, 3), in its axes, by their moments: that of a rigid fit."""
    x, y, z = local.T
    zero, one = np.zeros(len(local)), np.ones(len(local))
    rows = np.array(
        [
            [one, zero, zero, zero, z, -y],
            [zero, one, zero, -z, zero, x],
            [zero, zero, one, y, -x, zero],
        ]
    )
    information = np.einsum("kin,kjn->ij", rows, rows)
    covariance = variance * np.linalg.inv(information)
    return (covariance + covariance.T) / 2.0


def _components(points: Array, gap: float) -> Iterator[Indices]:
    """Yield the points of each connected part, the largest first; cells of the size of the gap stand for their points.

    Points up to ``gap`` apart are always connected, and those more than ``2 sqrt(3) gap`` apart
    never directly.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    if not len(points):
        return
    cells, cell_of = np.unique(np.floor(points / gap).astype(np.int64), axis=0, return_inverse=True)
    pairs = cKDTree(cells).query_pairs(1.75, output_type="ndarray")  # neighbours, by corners too
    graph = coo_array(
        (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(cells), len(cells))
    )
    labels = connected_components(graph, directed=False)[1][cell_of.ravel()]
    for label in np.argsort(-np.bincount(labels), kind="stable"):
        yield np.flatnonzero(labels == label)


@dataclass(frozen=True)
class TableRecognition(FunctionBlock):
    """Finds tables by their structure: a level plane of a table's size and height, with objects on it.

    A table is a frame of the class ``table`` under that of its plane, with a box as its plate. Its
    attribute ``objects`` has the frames of the segments on it, and ``height`` its height in metres
    above the root.

    Args:
        name, input_hook, output_hook: as for :class:`~tmkit.world.FunctionBlock`.
        size: least and largest length of both sides, metres.
        height: least and largest height above the origin of the root, metres.
        tilt: radians from level.
        gap: metres between the plane and the lowest point of an object on it.
        min_objects: on a table.
        thickness: of the plate, metres.
        up: direction against gravity, in the axes of the root.
    """

    inputs: ClassVar[Mapping[str, Pattern]] = {"plane": _PLANE, "segment": _SEGMENT}
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

    def execute(self, scene: SceneGraph, found: Found) -> Edit:
        """Return the tables among the planes."""
        q = newest_configuration(scene)
        up = np.asarray(self.up) / np.linalg.norm(self.up)
        at = scene.at(q)
        plates: dict[str, list[str]] = {}
        for match in found["plane"]:
            pose, bounds = at.pose(match["plane"]), _bounds(scene, match["plane"])
            sides = bounds[1, :2] - bounds[0, :2]
            is_level = float(pose.rotation[:, 2] @ up) >= math.cos(self.tilt)
            is_high = self.height[0] <= float(pose.translation @ up) <= self.height[1]
            if is_level and is_high and self.size[0] <= sides.min() and sides.max() <= self.size[1]:
                plates[match["plane"]] = []
        candidates = {frame for match in found["segment"] for frame in match.values()}
        plate = Part("plate", ["plane"], test=lambda _, frame: frame in plates)
        thing = Part("object", ["segment"], test=lambda _, frame: frame in candidates)
        on = [
            Above("object", "plate", tolerance=self.gap),
            Touching("object", "plate", tolerance=self.gap),
        ]
        pattern = Pattern([plate, thing], on)
        for pair in find_structure(scene, pattern, q=q, up=self.up):
            plates[pair["plate"]].append(pair["object"])
        made: list[OutputFrame] = []
        for plane, objects in plates.items():
            if len(objects) < self.min_objects:
                continue
            low, high = _bounds(scene, plane)
            box = Box([*(high - low)[:2], self.thickness])
            middle = (low + high) / 2.0
            top = AttachedShape(
                box, Pose([middle[0], middle[1], -self.thickness / 2.0]), color=[0.7, 0.5, 0.3, 1.0]
            )
            height = float(at.pose(plane).translation @ up)
            made.append(
                OutputFrame(
                    f"{self.name} {len(made) + 1}",
                    plane,
                    classes=["table"],
                    shapes=[top],
                    attributes={"objects": objects, "height": height},
                )
            )
        return self.output(made)


def _bounds(scene: SceneGraph, frame: str) -> Array:
    """Return the least and largest coordinates (2, 3) of the point clouds of a frame, in its axes."""
    points = _cloud(scene, frame)[0]
    return np.stack([points.min(axis=0), points.max(axis=0)])


def _cloud(scene: SceneGraph, frame: str) -> tuple[Array, AttachedShape]:
    """Return the points (n, 3) of the clouds of a frame, in its axes, and the first of the clouds."""
    clouds = [attached for attached in scene.shapes(frame) if attached.shape.kind == "point_cloud"]
    return (
        np.concatenate([attached.pose.apply(attached.shape.points) for attached in clouds]),
        clouds[0],
    )
