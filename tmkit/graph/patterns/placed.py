"""A scene at a configuration, as relations ask about it: places, heights and distances of frames with their shapes.

A frame is as large as all its shapes together; one without shapes is a point. Meshes, clouds and
height fields count as their convex hulls, a plane as all that lies behind it. A round thing is its
core and a radius (a sphere a point, a capsule a segment), which makes its distances exact.
Distances and bodies are computed once and cached; distances of the same two frames are the same
both ways.

Up is a direction in the axes of the root, world Z unless said otherwise. Frames of different trees
have no places relative to each other: queries about two such frames are refused;
:meth:`PlacedScene.are_related` tests for it.

Distances are by the method of Gilbert, Johnson and Keerthi ("A fast procedure for computing the
distance between complex objects in three-dimensional space", IEEE J. Robotics and Automation 4(2),
1988): the *support functions* of two bodies, their farthest points along a direction, give that of
their difference, whose distance from the origin is theirs. The nearest point of a simplex of at
most four points is found by trying every subset: fifteen small systems have no special cases, and
degenerate subsets are omitted.
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
_ALIKE = 1e-9  # of directions: their cosine is this near to that of equal ones, or of a right angle


@dataclass(frozen=True)
class _Body:
    """A convex body in the root's axes: the farthest point of its core along a direction, and what lies around it.

    With a ``normal`` it is all that lies behind a plane, of which ``center`` is a point; then it
    has no core.
    """

    core: Support
    radius: float  # all points this near to the core belong to the body
    center: Vector
    reach: float  # no point of the body is farther from the center
    normal: Vector | None = None

    def lowest(self, direction: Vector) -> float:
        """Return the least coordinate of a point of the body along a unit vector."""
        if self.normal is None:
            return float(direction @ self.core(-direction)) - self.radius
        return (
            float(direction @ self.center)
            if float(direction @ self.normal) < -1.0 + _ALIKE
            else -np.inf
        )


class PlacedScene:
    """A scene at a configuration; relations are asked with one.

    Args:
        scene: the version.
        q: configuration (n_joints,); may be omitted if the scene has no joints, or no place is
            needed.
        up: (3,) direction against gravity, in the axes of the root.

    Raises:
        SceneError: if ``up`` is not a finite non-zero vector.
    """

    def __init__(
        self, scene: SceneGraph, *, q: ArrayLike | None = None, up: ArrayLike = (0.0, 0.0, 1.0)
    ) -> None:
        direction = np.array(plain_numbers(up, "up"))
        if direction.shape != (3,) or not 1e-9 < float(np.linalg.norm(direction)) < np.inf:
            raise SceneError(f"up is a direction of three numbers, not {up!r}")
        self._scene, self._q = scene, q
        self._up: Vector = direction / np.linalg.norm(direction)
        self._at: Kinematics | None = None
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
            ConfigurationError: the scene has joints and no configuration was given.
        """
        if self._at is None:
            self._at = self._scene.at(self._q)
        return self._at

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
        """Return an axis of a frame in the axes of its root, (3,).

        Args:
            frame: a frame.
            axis: (3,) in the axes of the frame.
        """
        return self.kinematics.pose(frame).rotate(axis)

    def heights(self, frame: str) -> tuple[float, float]:
        """Return how high the lowest and the highest point of a frame are, in metres along ``up``."""
        bodies = self._bodies_of(frame)
        return min(body.lowest(self._up) for body in bodies), max(
            -body.lowest(-self._up) for body in bodies
        )

    def distance(self, a: str, b: str, *, limit: float = np.inf) -> float:
        """Return the distance of the nearest points of two frames in metres, 0 where they touch or overlap.

        Args:
            a: one frame.
            b: the other, in the same tree.
            limit: distances beyond it are not computed: any number beyond it may be returned.
        """
        first, second = min(a, b), max(a, b)
        known = self._distances.get((first, second))
        if known is None:
            known = self._distance(self._bodies_of(first), self._bodies_of(second), limit=limit)
            if known <= limit:
                self._distances[first, second] = known
        return known

    def are_near(self, frame: str, others: Sequence[str], *, limit: float) -> list[bool]:
        """Return for each of several frames whether its bounding sphere is near that of ``frame``.

        Args:
            frame: a frame.
            others: frames.
            limit: maximal distance of the spheres in metres.
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
        near: list[bool] = (np.sqrt(squared) <= balls[:, 3] + reach + limit).tolist()
        return near

    def horizontal_distance(self, a: str, b: str) -> float:
        """Return the distance in metres of two frames' shapes projected along ``up``; 0 if the projections overlap.

        Args:
            a, b: frames.
        """
        return min(
            self._gap_of_shadows(x, y) for x in self._bodies_of(a) for y in self._bodies_of(b)
        )

    def horizontal_distance_of_center(self, a: str, b: str) -> float:
        """Return the distance in metres, projected along ``up``, of the center of the bounding box of ``a`` from ``b``.

        Args:
            a, b: frames.
        """
        center = _body_of_point(self._center_of(a))
        return min(self._gap_of_shadows(center, body) for body in self._bodies_of(b))

    def _distance(self, first: Sequence[_Body], second: Sequence[_Body], *, limit: float) -> float:
        best = np.inf
        for x in first:
            for y in second:
                at_least = float(np.linalg.norm(x.center - y.center)) - x.reach - y.reach
                if at_least <= min(best, limit):
                    best = min(best, _gap_of(x, y))
        return best

    def _add_ball(self, frame: str) -> None:
        """Compute a ball around all shapes of a frame: middle and radius."""
        bodies = self._bodies_of(frame)
        center = np.mean([body.center for body in bodies], axis=0)
        reach = max(float(np.linalg.norm(body.center - center)) + body.reach for body in bodies)
        if len(self._ball_rows) == len(self._balls):
            self._balls = np.concatenate([self._balls, np.zeros((max(64, len(self._balls)), 4))])
        self._balls[len(self._ball_rows)] = (*center, reach)
        self._ball_rows[frame] = len(self._ball_rows)

    def _center_of(self, frame: str) -> Vector:
        pose = self.kinematics.pose(frame)
        shapes = [a for a in self._scene.shapes(frame) if a.shape.kind != "plane"]
        if not shapes:
            return pose.translation
        boxes = ((a.pose, itertools.product(*zip(*a.shape.bounds, strict=True))) for a in shapes)
        corners = np.concatenate([at.apply([*corners]) for at, corners in boxes])
        return pose.apply((corners.min(axis=0) + corners.max(axis=0)) / 2)

    def _gap_of_shadows(self, first: _Body, second: _Body) -> float:
        for x, y in ((first, second), (second, first)):
            # the shadow of what lies behind a plane is everything, unless that is upright
            if x.normal is not None:
                return _gap_of(x, y) if abs(float(x.normal @ self._up)) < _ALIKE else 0.0
        return max(
            0.0,
            gap(self._shadow(first.core), self._shadow(second.core)) - first.radius - second.radius,
        )

    def _shadow(self, core: Support) -> Support:
        """Return the support function of a body pressed flat along ``up``."""
        up = self._up

        def support(direction: Vector) -> Vector:
            point = core(direction - up * (up @ direction))
            flat: Vector = point - up * (up @ point)
            return flat

        return support

    def _bodies_of(self, frame: str) -> tuple[_Body, ...]:
        if frame not in self._bodies:
            pose = self.kinematics.pose(frame)
            bodies = tuple(_body_of(pose, attached) for attached in self._scene.shapes(frame))
            self._bodies[frame] = bodies or (_body_of_point(pose.translation),)
        return self._bodies[frame]


def _gap_of(x: _Body, y: _Body) -> float:
    """Return the distance of two bodies."""
    if x.normal is None and y.normal is not None:
        x, y = y, x
    if x.normal is not None:
        return max(0.0, y.lowest(x.normal) - float(x.normal @ x.center))
    return max(0.0, gap(x.core, y.core) - x.radius - y.radius)


def _body_of_point(point: Vector) -> _Body:
    return _Body(_point(point), 0.0, point, 0.0)


def _point(point: Vector) -> Support:
    return lambda _direction: point


def _body_of(root_from_frame: Pose, attached: AttachedShape) -> _Body:
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
    """Return the support function of a shape's core in the shape's own axes, and the radius around it in metres."""
    shape, sizes = attached.shape, attached.shape.dimensions
    if shape.kind == "sphere":
        return _point(np.zeros(3)), sizes[0]
    if shape.kind == "capsule":
        half = sizes[1] / 2
        return lambda d: np.array([0.0, 0.0, half if d[2] >= 0 else -half]), sizes[0]
    if shape.kind == "cylinder":
        return (
            lambda d: np.append(
                _on_circle(d, sizes[0]), sizes[1] / 2 if d[2] >= 0 else -sizes[1] / 2
            ),
            0.0,
        )
    if shape.kind == "cone":
        return lambda d: _on_cone(d, *sizes), 0.0
    if shape.kind == "mesh":
        return _farthest_of(shape.vertices), 0.0
    if shape.kind == "point_cloud":
        return _farthest_of(shape.points), sizes[0]
    if shape.kind == "height_field":
        return _farthest_of(_corners_of_field(shape)), 0.0
    lower, upper = shape.bounds
    return lambda d: np.where(d >= 0, upper, lower), 0.0


def _farthest_of(points: Vector) -> Support:
    return lambda d: points[int(np.argmax(points @ d))]


def _corners_of_field(shape: Shape) -> Vector:
    """Return the points of a height field's surface, and the corners of its underside."""
    heights, (x, y, floor) = shape.heights, shape.dimensions
    columns, rows = (
        np.linspace(-x / 2, x / 2, heights.shape[1]),
        np.linspace(-y / 2, y / 2, heights.shape[0]),
    )
    surface = np.stack([*np.meshgrid(columns, rows), heights], axis=-1).reshape(-1, 3)
    under = [[sx * x / 2, sy * y / 2, floor] for sx in (-1, 1) for sy in (-1, 1)]
    return np.concatenate([surface, under])


def _on_circle(direction: Vector, radius: float) -> Vector:
    """Return the point (2,) of a circle around the z axis that is farthest along a direction."""
    length = float(np.hypot(direction[0], direction[1]))
    return np.zeros(2) if length == 0.0 else direction[:2] * (radius / length)


def _on_cone(direction: Vector, radius: float, length: float) -> Vector:
    """Return the point of a cone, its tip at +z, that is farthest along a direction: the tip, or one of the rim."""
    tip = np.array([0.0, 0.0, length / 2])
    rim = np.append(_on_circle(direction, radius), -length / 2)
    return tip if float(direction @ tip) >= float(direction @ rim) else rim


Support = Callable[[Vector], Vector]
"""The farthest point (3,) of a body along a direction (3,), which need not be a unit vector."""

_ITERATIONS = 100
_PRECISION = 1e-9  # metres: bodies nearer than this touch; relative to their distance otherwise


def gap(a: Support, b: Support) -> float:
    """Return the distance of two convex bodies in metres, 0 where they touch or overlap.

    Exact to about a nanometre for bodies with corners; what is round converges to within a
    micrometre.
    """

    def support(direction: Vector) -> Vector:
        return a(direction) - b(-direction)

    simplex = [support(np.array([1.0, 0.0, 0.0]))]
    nearest = simplex[0]
    for _ in range(_ITERATIONS):
        squared = float(nearest @ nearest)
        if squared <= _PRECISION**2:
            return 0.0
        farther = support(-nearest)
        if squared - float(nearest @ farther) <= _PRECISION * max(squared, np.sqrt(squared)):
            return float(np.sqrt(squared))
        nearest, simplex = _nearest_to_origin([*simplex, farther])
    return float(np.linalg.norm(nearest))


def _nearest_to_origin(points: list[Vector]) -> tuple[Vector, list[Vector]]:
    """Return the point nearest to the origin of the hull of up to four points, and the points that it lies between."""
    best, best_squared, between = points[0], np.inf, points[:1]
    for size in range(1, len(points) + 1):
        for subset in itertools.combinations(points, size):
            candidate = _foot(subset)
            if candidate is not None and (squared := float(candidate @ candidate)) < best_squared:
                best, best_squared, between = candidate, squared, list(subset)
    return best, between


def _foot(points: tuple[Vector, ...]) -> Vector | None:
    """Return the foot of the perpendicular from the origin to the plane of points, None where it lies outside them."""
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
