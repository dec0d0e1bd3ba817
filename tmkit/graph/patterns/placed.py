"""Scene at a configuration, with poses, heights and distances of frames with their shapes.

The geometry of a frame is the union of its shapes; a frame without shapes is a point. Meshes,
clouds and height fields are replaced by their convex hulls, and a plane by its half-space. A round
shape is a core with a radius (a point for a sphere, a segment for a capsule), so its distances are
exact. Distances and bodies are cached. The distance of two frames is symmetric.

Up is a direction in the axes of the root, by default z. Frames of different trees have no relative
pose: queries for two such frames raise an error. :meth:`PlacedScene.are_related` tests for it.

Distances are computed by the method of Gilbert, Johnson and Keerthi ("A fast procedure for
computing the distance between complex objects in three-dimensional space", IEEE J. Robotics and
Automation 4(2), 1988). The *support function* of a body returns its farthest point along a
direction. The support functions of two bodies give that of their difference, and the distance of
the difference from the origin is that of the bodies. The nearest point of a simplex of at most four
points is the best of all its subsets: fifteen small systems need no special cases. Degenerate
subsets are skipped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import AttachedShape, Kinematics, Pose, SceneGraph, Shape
from tmkit.errors import SceneError
from tmkit.spatial.plain import plain_numbers

Vector = NDArray[np.float64]

Support = Callable[[Vector], Vector]
"""Farthest point (3,) of a body along a direction (3,), which need not be a unit vector."""

_AXIS_TOLERANCE = 1e-9
"""Largest difference of cosines of two directions that count as parallel or perpendicular."""

_ITERATIONS = 100
"""Largest number of iterations of a distance computation."""

_GAP_TOLERANCE = 1e-9
"""Distance below which bodies touch [m], and relative precision of larger distances."""


@dataclass(frozen=True)
class _Body:
    """Convex body in the root's axes: a core with a radius around it, or a half-space.

    Attributes:
        core: support function of the core.
        radius: distance from the core up to which points belong to the body [m].
        center: (3,) center of the bounding sphere, or a point of the plane [m].
        reach: radius of the bounding sphere [m].
        normal: (3,) normal of a half-space, which has no core.
    """

    core: Support
    radius: float
    center: Vector
    reach: float
    normal: Vector | None = None

    def lowest(self, direction: Vector) -> float:
        """Return the smallest coordinate of the body along a unit vector."""
        if self.normal is None:
            return float(direction @ self.core(-direction)) - self.radius
        is_opposite = float(direction @ self.normal) < -1.0 + _AXIS_TOLERANCE
        return float(direction @ self.center) if is_opposite else -np.inf


class PlacedScene:
    """Scene at a configuration, the argument of relations.

    Args:
        scene: the version.
        q: (n_joints,) configuration; optional if the scene has no joints, or no pose is required.
        up: (3,) direction against gravity, in the axes of the root.

    Raises:
        SceneError: if ``up`` is not a finite non-zero vector.
    """

    def __init__(
        self, scene: SceneGraph, *, q: ArrayLike | None = None, up: ArrayLike = (0.0, 0.0, 1.0)
    ) -> None:
        direction = np.array(plain_numbers(up, "up", "1"))
        if direction.shape != (3,) or not 1e-9 < float(np.linalg.norm(direction)) < np.inf:
            raise SceneError(f"up must be a direction of three numbers, not {up!r}")
        self._scene, self._q = scene, q
        self._up: Vector = direction / np.linalg.norm(direction)
        self._kinematics: Kinematics | None = None
        self._roots: dict[str, str] = {}
        self._bodies: dict[str, tuple[_Body, ...]] = {}
        self._balls: Vector = np.zeros((0, 4))
        self._ball_rows: dict[str, int] = {}
        self._distances: dict[tuple[str, str], float] = {}

    @property
    def scene(self) -> SceneGraph:
        """The version of the scene."""
        return self._scene

    @property
    def kinematics(self) -> Kinematics:
        """The scene at the configuration.

        Raises:
            ConfigurationError: if the scene has joints and has no configuration.
        """
        if self._kinematics is None:
            self._kinematics = self._scene.at(self._q)
        return self._kinematics

    def are_related(self, a: str, b: str) -> bool:
        """Return whether two frames are in the same tree.

        Args:
            a, b: frames.
        """
        for frame in (a, b):
            if frame not in self._roots:
                self._roots[frame] = self._scene.root(frame)
        return self._roots[a] == self._roots[b]

    def pose(self, frame: str, *, relative_to: str) -> Pose:
        """Return the pose of a frame relative to another.

        Args:
            frame, relative_to: frames.

        Raises:
            DisconnectedError: if the frames are in different trees.
        """
        return self.kinematics.pose(frame, relative_to=relative_to)

    def direction(self, frame: str, axis: ArrayLike) -> Vector:
        """Return a direction (3,) of a frame in the axes of its root.

        Args:
            frame: a frame.
            axis: (3,) in the axes of the frame.
        """
        return self.kinematics.pose(frame).rotate(axis)

    def heights(self, frame: str) -> tuple[float, float]:
        """Return the smallest and the largest height of a frame's points along ``up`` [m]."""
        bodies = self._get_bodies(frame)
        lowest = min(body.lowest(self._up) for body in bodies)
        highest = max(-body.lowest(-self._up) for body in bodies)
        return lowest, highest

    def distance(self, a: str, b: str, *, limit: float = np.inf) -> float:
        """Return the distance of two frames' shapes [m], 0 if they touch or overlap.

        Args:
            a: one frame.
            b: the other frame, in the same tree.
            limit: largest exact distance [m]. Beyond it, any larger number may be returned.
        """
        first, second = min(a, b), max(a, b)
        distance = self._distances.get((first, second))
        if distance is None:
            bodies, other_bodies = self._get_bodies(first), self._get_bodies(second)
            distance = self._distance(bodies, other_bodies, limit=limit)
            if distance <= limit:
                self._distances[first, second] = distance
        return distance

    def are_near(self, frame: str, others: Sequence[str], *, limit: float) -> list[bool]:
        """Return for each of several frames whether its bounding sphere is near that of ``frame``.

        Args:
            frame: a frame.
            others: frames.
            limit: largest distance of the spheres [m].
        """
        for name in (frame, *others):
            if name not in self._ball_rows:
                self._add_ball(name)
        rows = np.fromiter(
            (self._ball_rows[name] for name in others), dtype=np.intp, count=len(others)
        )
        x, y, z, reach = self._balls[self._ball_rows[frame]]
        balls = self._balls[rows]
        squared = (balls[:, 0] - x) ** 2 + (balls[:, 1] - y) ** 2 + (balls[:, 2] - z) ** 2
        are_near: list[bool] = (np.sqrt(squared) <= balls[:, 3] + reach + limit).tolist()
        return are_near

    def horizontal_distance(self, a: str, b: str) -> float:
        """Return the distance of two frames' shapes projected along ``up`` [m], 0 if they overlap.

        Args:
            a, b: frames.
        """
        return min(
            self._horizontal_gap(x, y) for x in self._get_bodies(a) for y in self._get_bodies(b)
        )

    def horizontal_distance_of_center(self, a: str, b: str) -> float:
        """Return the distance of a's bounding box center to ``b``, projected along ``up`` [m].

        Args:
            a, b: frames.
        """
        center = _point_body(self._box_center(a))
        return min(self._horizontal_gap(center, body) for body in self._get_bodies(b))

    def _distance(self, first: Sequence[_Body], second: Sequence[_Body], *, limit: float) -> float:
        best = np.inf
        for x in first:
            for y in second:
                lower_bound = float(np.linalg.norm(x.center - y.center)) - x.reach - y.reach
                if lower_bound <= min(best, limit):
                    best = min(best, _body_gap(x, y))
        return best

    def _add_ball(self, frame: str) -> None:
        """Compute the center and radius of a ball around all shapes of a frame."""
        bodies = self._get_bodies(frame)
        center = np.mean([body.center for body in bodies], axis=0)
        reach = max(float(np.linalg.norm(body.center - center)) + body.reach for body in bodies)
        if len(self._ball_rows) == len(self._balls):
            self._balls = np.concatenate([self._balls, np.zeros((max(64, len(self._balls)), 4))])
        self._balls[len(self._ball_rows)] = (*center, reach)
        self._ball_rows[frame] = len(self._ball_rows)

    def _box_center(self, frame: str) -> Vector:
        pose = self.kinematics.pose(frame)
        shapes = [a for a in self._scene.shapes(frame) if a.shape.kind != "plane"]
        if not shapes:
            return pose.translation
        boxes = ((a.pose, itertools.product(*zip(*a.shape.bounds, strict=True))) for a in shapes)
        corners = np.concatenate([pose_in_frame.apply([*box]) for pose_in_frame, box in boxes])
        return pose.apply((corners.min(axis=0) + corners.max(axis=0)) / 2)

    def _horizontal_gap(self, first: _Body, second: _Body) -> float:
        for x, y in ((first, second), (second, first)):
            # The projection of a half-space is the whole plane, unless its surface is vertical.
            if x.normal is not None:
                is_vertical = abs(float(x.normal @ self._up)) < _AXIS_TOLERANCE
                return _body_gap(x, y) if is_vertical else 0.0
        distance = gap(self._project(first.core), self._project(second.core))
        return max(0.0, distance - first.radius - second.radius)

    def _project(self, core: Support) -> Support:
        """Return the support function of a body projected along ``up``."""
        up = self._up

        def support(direction: Vector) -> Vector:
            point = core(direction - up * (up @ direction))
            flat: Vector = point - up * (up @ point)
            return flat

        return support

    def _get_bodies(self, frame: str) -> tuple[_Body, ...]:
        if frame not in self._bodies:
            pose = self.kinematics.pose(frame)
            bodies = tuple(_shape_body(pose, attached) for attached in self._scene.shapes(frame))
            self._bodies[frame] = bodies or (_point_body(pose.translation),)
        return self._bodies[frame]


def _body_gap(x: _Body, y: _Body) -> float:
    """Return the distance of two bodies."""
    if x.normal is None and y.normal is not None:
        x, y = y, x
    if x.normal is not None:
        return max(0.0, y.lowest(x.normal) - float(x.normal @ x.center))
    return max(0.0, gap(x.core, y.core) - x.radius - y.radius)


def _point_body(point: Vector) -> _Body:
    return _Body(_point(point), 0.0, point, 0.0)


def _point(point: Vector) -> Support:
    return lambda _direction: point


def _shape_body(root_from_frame: Pose, attached: AttachedShape) -> _Body:
    """Return the convex body of a shape on a frame, in the root's axes."""
    root_from_shape = root_from_frame @ attached.pose
    rotation, translation = root_from_shape.rotation, root_from_shape.translation
    if attached.shape.kind == "plane":
        return _Body(_point(translation), 0.0, translation, np.inf, normal=rotation[:, 2])
    local, radius = _local_core(attached)
    lower, upper = attached.shape.bounds

    def core(direction: Vector) -> Vector:
        point: Vector = rotation @ local(rotation.T @ direction) + translation
        return point

    reach = float(np.linalg.norm(upper - lower)) / 2
    return _Body(core, radius, root_from_shape.apply((lower + upper) / 2), reach)


def _local_core(attached: AttachedShape) -> tuple[Support, float]:
    """Return the support function of a shape's core, in the shape's axes, and its radius [m]."""
    shape, sizes = attached.shape, attached.shape.dimensions
    if shape.kind == "sphere":
        return _point(np.zeros(3)), sizes[0]
    if shape.kind == "capsule":
        half = sizes[1] / 2
        return lambda d: np.array([0.0, 0.0, half if d[2] >= 0 else -half]), sizes[0]
    if shape.kind == "cylinder":
        return lambda d: _cylinder_point(d, *sizes), 0.0
    if shape.kind == "cone":
        return lambda d: _cone_point(d, *sizes), 0.0
    if shape.kind == "mesh":
        return _farthest_point(shape.vertices), 0.0
    if shape.kind == "point_cloud":
        return _farthest_point(shape.points), sizes[0]
    if shape.kind == "height_field":
        return _farthest_point(_field_points(shape)), 0.0
    lower, upper = shape.bounds
    return lambda d: np.where(d >= 0, upper, lower), 0.0


def _farthest_point(points: Vector) -> Support:
    return lambda d: points[int(np.argmax(points @ d))]


def _field_points(shape: Shape) -> Vector:
    """Return the points of a height field's surface, and the corners of its underside."""
    heights, (x, y, floor) = shape.heights, shape.dimensions
    columns = np.linspace(-x / 2, x / 2, heights.shape[1])
    rows = np.linspace(-y / 2, y / 2, heights.shape[0])
    surface = np.stack([*np.meshgrid(columns, rows), heights], axis=-1).reshape(-1, 3)
    underside = [[sx * x / 2, sy * y / 2, floor] for sx in (-1, 1) for sy in (-1, 1)]
    return np.concatenate([surface, underside])


def _circle_point(direction: Vector, radius: float) -> Vector:
    """Return the farthest point (2,) along a direction of a circle around the z axis."""
    length = float(np.hypot(direction[0], direction[1]))
    return np.zeros(2) if length == 0.0 else direction[:2] * (radius / length)


def _cylinder_point(direction: Vector, radius: float, length: float) -> Vector:
    """Return the farthest point of a cylinder around the z axis along a direction."""
    z = length / 2 if direction[2] >= 0 else -length / 2
    return np.append(_circle_point(direction, radius), z)


def _cone_point(direction: Vector, radius: float, length: float) -> Vector:
    """Return the farthest point of a cone with tip at +z along a direction: tip or rim."""
    tip = np.array([0.0, 0.0, length / 2])
    rim = np.append(_circle_point(direction, radius), -length / 2)
    return tip if float(direction @ tip) >= float(direction @ rim) else rim


def gap(a: Support, b: Support) -> float:
    """Return the distance of two convex bodies [m], 0 if they touch or overlap.

    The error is about a nanometre for polyhedra, and less than a micrometre for round bodies.
    """

    def support(direction: Vector) -> Vector:
        return a(direction) - b(-direction)

    simplex = [support(np.array([1.0, 0.0, 0.0]))]
    nearest = simplex[0]
    for _ in range(_ITERATIONS):
        squared = float(nearest @ nearest)
        if squared <= _GAP_TOLERANCE**2:
            return 0.0
        farther = support(-nearest)
        if squared - float(nearest @ farther) <= _GAP_TOLERANCE * max(squared, np.sqrt(squared)):
            return float(np.sqrt(squared))
        nearest, simplex = _nearest_point([*simplex, farther])
    return float(np.linalg.norm(nearest))


def _nearest_point(points: list[Vector]) -> tuple[Vector, list[Vector]]:
    """Return the point of a simplex nearest to the origin, and the vertices of its face."""
    best, best_squared, face = points[0], np.inf, points[:1]
    for size in range(1, len(points) + 1):
        for subset in itertools.combinations(points, size):
            candidate = _perpendicular_foot(subset)
            if candidate is not None and (squared := float(candidate @ candidate)) < best_squared:
                best, best_squared, face = candidate, squared, list(subset)
    return best, face


def _perpendicular_foot(points: tuple[Vector, ...]) -> Vector | None:
    """Return the foot of the perpendicular from the origin to a face; None if it is outside."""
    if len(points) == 1:
        return points[0]
    edges = np.array(points[1:]) - points[0]
    gram = edges @ edges.T
    scale = float(np.prod(np.diag(gram)))
    if abs(float(np.linalg.det(gram))) <= 1e-14 * scale:
        return None
    weights = np.linalg.solve(gram, -edges @ points[0])
    if np.any(weights < 0.0) or float(weights.sum()) > 1.0:
        return None
    foot: Vector = points[0] + weights @ edges
    return foot
