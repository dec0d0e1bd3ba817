"""Probabilities of geometric facts about frames in a scene.

Semantics of domains that plan under uncertainty ask these functions: ``P(on(a, b)) >= 0.95`` is
``stands_on(scene, "a", "b", q=q).is_at_least(0.95)``. Each takes the covariance of a relative pose
from the scene, in which common errors cancel (:meth:`SceneGraph.gaussian_pose`), and the rest from
:mod:`tmkit.tamp.uncertainty.probability`. What is not linear enough is sampled from the scene,
seeded.

:func:`sample_scene` goes the other way: it draws one exact scene from all that an uncertain one
holds possible, for simulating what comes of a plan.

Invariants: the same arguments give the same bits. First order, unless the answer says that it was
    sampled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import EdgeNoise, path_noise, sample_poses, twist_noise
from tmkit._support.elementary import dot, norm, product
from tmkit.graph import NoiseSource, SceneGraph
from tmkit.motion import CollisionWorld
from tmkit.plans.values import Configuration
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_numbers
from tmkit.tamp.domains.tabletop import shape_bounds
from tmkit.tamp.uncertainty.probability import (
    Probability,
    angle_within,
    clearance_at_least,
    inside_box,
    inside_ellipsoid,
    inside_slabs,
    sampled_probability,
    share_of,
)

_SAMPLES = 20_000
_EXACT_TURN = 1e-16  # rad^2 of a turn that counts as none


def point_distribution(
    scene: SceneGraph,
    frame: str,
    *,
    relative_to: str | None = None,
    q: Configuration | None = None,
    point: ArrayLike = (0.0, 0.0, 0.0),
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean (3,) and covariance (3, 3) of a point of one frame in another, to first order.

    Args:
        scene: the scene.
        frame: the frame whose point it is.
        relative_to: the frame in whose axes the answer is; the root of its tree if omitted.
        q: (n_joints,) configuration; may be omitted if no joint is on the path.
        point: (3,) metres, in the frame.
    """
    known = scene.gaussian_pose(frame, relative_to=relative_to, q=q)
    at = plain_numbers(point, "point")
    rotation = known.mean.rotation
    x, y, z = at
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    jacobian = product(rotation, np.hstack([np.eye(3), -across]))
    return np.asarray(known.mean.apply(at)), product(jacobian, known.covariance, jacobian.T)


def point_inside(
    scene: SceneGraph,
    frame: str,
    *,
    relative_to: str | None = None,
    lower: ArrayLike,
    upper: ArrayLike,
    q: Configuration | None = None,
    point: ArrayLike = (0.0, 0.0, 0.0),
) -> Probability:
    """Return the probability that a point of one frame lies in a box along the axes of another.

    Args:
        scene: the scene.
        frame: the frame whose point it is.
        relative_to: the frame of the box; the root of its tree if omitted.
        lower: (3,) metres, lower corner; minus infinity for none.
        upper: (3,) metres, upper corner; infinity for none.
        q: (n_joints,) configuration; may be omitted if no joint is on the path.
        point: (3,) metres, in the frame.
    """
    mean, covariance = point_distribution(scene, frame, relative_to=relative_to, q=q, point=point)
    return inside_box(mean, covariance, lower=lower, upper=upper)


def stands_on(
    scene: SceneGraph, object: str, support: str, *, q: Configuration | None = None
) -> Probability:
    """Return the probability that the middle of an object is above the top of what it stands on.

    The top is the rectangle around the support's collision shapes; how high and how upright the
    object stands is not asked.

    Args:
        scene: the scene.
        object: frame of the object.
        support: frame of what it stands on.
        q: (n_joints,) configuration; may be omitted if no joint is on the path.

    Raises:
        SceneError: the support has no collision shape.
    """
    lower, upper = shape_bounds(scene, support)
    mean, covariance = point_distribution(scene, object, relative_to=support, q=q)
    return inside_box(mean[:2], covariance[:2, :2], lower=lower[:2], upper=upper[:2])


def footprint_inside(
    scene: SceneGraph,
    object: str,
    *,
    relative_to: str | None = None,
    lower: ArrayLike,
    upper: ArrayLike,
    q: Configuration | None = None,
    seed: int = 0,
) -> Probability:
    """Return the probability that the whole of an object lies above a rectangle along the axes of a frame.

    When the object's turn is exact the rectangle shrinks by the object's extent, which leaves a
    closed form or a quadrature. When it is not, poses are sampled.

    Args:
        scene: the scene.
        object: frame of the object; the box around its collision shapes counts.
        relative_to: the frame of the rectangle; the root of its tree if omitted.
        lower: (2,) metres, lower corner in x and y of ``relative_to``.
        upper: (2,) metres, upper corner.
        q: (n_joints,) configuration; may be omitted if no joint is on the path.
        seed: of the samples.

    Raises:
        SceneError: the object has no collision shape.
    """
    bounds = np.array(shape_bounds(scene, object))
    corners = np.array(
        [[x, y, z] for x in bounds[:, 0] for y in bounds[:, 1] for z in bounds[:, 2]]
    )
    low, high = plain_numbers(lower, "lower"), plain_numbers(upper, "upper")
    known = scene.gaussian_pose(object, relative_to=relative_to, q=q)
    if float(np.max(np.diag(known.covariance)[3:])) <= _EXACT_TURN:
        offsets = product(corners, known.mean.rotation.T)
        mean, covariance = point_distribution(scene, object, relative_to=relative_to, q=q)
        low, high = low - offsets[:, :2].min(axis=0), high - offsets[:, :2].max(axis=0)
        if np.any(low > high):
            return Probability(0.0)
        return inside_box(mean[:2], covariance[:2, :2], lower=low, upper=high)
    poses = sample_poses(scene, object, relative_to=relative_to, count=_SAMPLES, seed=seed, q=q)
    inside = np.ones(_SAMPLES, dtype=bool)
    for x, y in (_points(poses, corner)[:, :2].T for corner in corners):
        inside &= (x >= low[0]) & (x <= high[0]) & (y >= low[1]) & (y <= high[1])
    return share_of(inside)


def _points(poses: NDArray[np.float64], point: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a point (3,) at each of several poses (count, 7)."""
    vector, scalar = poses[:, 3:6], poses[:, 6:7]
    twice = 2.0 * np.cross(vector, point)
    return np.asarray(poses[:, :3] + point + scalar * twice + np.cross(vector, twice))


def pose_probability(
    scene: SceneGraph,
    frame: str,
    *,
    relative_to: str | None = None,
    directions: ArrayLike,
    tolerances: ArrayLike,
    q: Configuration | None = None,
    seed: int = 0,
) -> Probability:
    """Return the probability that a pose is as expected within tolerances: that a hand finds what it reaches for.

    Args:
        scene: the scene.
        frame: the frame whose pose it is.
        relative_to: the frame from which it is reached for, such as the base of an arm; the root of
            its tree if omitted.
        directions: (m, 6) rows that take the error [rho, theta], in metres and radians in the axes
            of the frame, to a number.
        tolerances: (m,) greatest absolute value of each number, metres or radians.
        q: (n_joints,) configuration; may be omitted if no joint is on the path.
        seed: of the samples, should they be needed.
    """
    limits = plain_numbers(tolerances, "tolerances")
    covariance = scene.gaussian_pose(frame, relative_to=relative_to, q=q).covariance
    return inside_slabs(
        np.zeros(6), covariance, directions=directions, lower=-limits, upper=limits, seed=seed
    )


def turned_within(
    scene: SceneGraph,
    frame: str,
    *,
    relative_to: str | None = None,
    limit: float,
    axis: ArrayLike | None = None,
    q: Configuration | None = None,
) -> Probability:
    """Return the probability that a frame is turned by at most ``limit`` from where it is expected.

    Args:
        scene: the scene.
        frame: the frame whose pose it is.
        relative_to: the frame that it is relative to; the root of its tree if omitted.
        limit: radians.
        axis: (3,) in the frame: the turn about this axis alone counts; the whole turn by default.
        q: (n_joints,) configuration; may be omitted if no joint is on the path.
    """
    turn = scene.gaussian_pose(frame, relative_to=relative_to, q=q).covariance[3:, 3:]
    if axis is None:
        return inside_ellipsoid(np.zeros(3), turn, centre=np.zeros(3), axes=limit * np.eye(3))
    along = plain_numbers(axis, "axis")
    along = along / norm(along)
    return angle_within(float(product(along, turn, along)), limit)


def clears_at(
    scene: SceneGraph,
    world: CollisionWorld,
    q: Configuration,
    *,
    frame_a: str,
    frame_b: str,
    margin: float = 0.0,
) -> Probability:
    """Return the probability that two frames keep a margin at a configuration, to first order; closed form.

    The distance varies with the relative error of the two along the normal at their nearest points.

    Args:
        scene: the scene of ``world``.
        world: where distances are asked for.
        q: (n_joints,) configuration.
        frame_a: a frame with collision shapes.
        frame_b: another.
        margin: metres that are to be kept.
    """
    found = _distance_and_maps(scene, world, q, frame_a, frame_b)
    if found is None:
        return Probability(1.0)
    distance, maps = found
    return clearance_at_least(distance, sum(dot(row, row) for row in maps.values()), margin=margin)


def clears_along(
    scene: SceneGraph,
    world: CollisionWorld,
    path: NDArray[np.float64],
    *,
    pairs: Sequence[tuple[str, str]],
    margin: float = 0.0,
    seed: int = 0,
    count: int = _SAMPLES,
) -> Probability:
    """Return the probability that pairs of frames keep a margin along a path: at all of its configurations.

    Each distance is linear in the noise sources, so one sample of the sources is one world for the
    whole path: a corridor is not met by a new error at each step. With a single distance the answer
    is a closed form.

    Args:
        scene: the scene of ``world``.
        world: where distances are asked for.
        path: (k, n_joints) configurations, as close together as the answer is to be fine.
        pairs: the frames to keep apart.
        margin: metres that are to be kept.
        seed: of the samples.
        count: of the samples.
    """
    rows = [
        found
        for q in path
        for a, b in pairs
        if (found := _distance_and_maps(scene, world, q, a, b)) is not None
    ]
    if not rows:
        return Probability(1.0)
    if len(rows) == 1:
        return clearance_at_least(
            rows[0][0], sum(dot(row, row) for row in rows[0][1].values()), margin=margin
        )
    sources = list(dict.fromkeys(source for _, maps in rows for source in maps))
    maps = np.array(
        [
            np.concatenate([own.get(s, np.zeros(s.dimension)) for s in sources] or [np.zeros(0)])
            for _, own in rows
        ]
    )
    distances = np.array([distance for distance, _ in rows])
    if not maps.size or not np.any(maps):
        return Probability(float(np.all(distances >= margin)))
    size = maps.shape[1]
    return sampled_probability(
        np.zeros(size),
        np.eye(size),
        lambda w: np.asarray((distances + product(w, maps.T) >= margin).all(axis=1)),
        seed=seed,
        count=count,
    )


def _distance_and_maps(
    scene: SceneGraph, world: CollisionWorld, q: Configuration, frame_a: str, frame_b: str
) -> tuple[float, dict[NoiseSource, NDArray[np.float64]]] | None:
    """Return the distance of two frames and how it varies with each source; None when they do not count as a pair."""
    contact = world.distance(frame_a, frame_b, q)
    if contact is None:
        return None
    root = scene.root(frame_a)
    normal = np.asarray(contact.normal, dtype=float)
    maps: dict[NoiseSource, NDArray[np.float64]] = {}
    # the normal leads from the first to the second
    first, second = ((frame_a, -1.0), (frame_b, 1.0))
    for (frame, sign), point in ((first, contact.point_a), (second, contact.point_b)):
        noise = path_noise(scene, frame, relative_to=root, q=q)
        if noise is None:
            continue
        root_from_frame = scene.pose(frame, relative_to=root, q=q)
        # the normal in the axes of the frame
        turned = root_from_frame.inverse().rotate(sign * normal)
        at = root_from_frame.inverse().apply(np.asarray(point, dtype=float))
        row = np.concatenate([turned, np.cross(at, turned)])
        for source in noise.sources:
            maps[source] = maps.get(source, np.zeros(source.dimension)) + product(
                row, noise.map(source)
            )
    return float(contact.distance), maps


def sample_scene(scene: SceneGraph, *, seed: int) -> SceneGraph:
    """Return one exact scene drawn from all that an uncertain scene holds possible.

    Every noise source is drawn once and moves each frame that it reaches, so what is correlated
    stays so. Joint noise is drawn too: it moves the frame behind its joint. So are twists.

    Args:
        scene: the uncertain scene.
        seed: the same seed gives the same world.
    """
    random = np.random.default_rng(seed)
    drawn: dict[NoiseSource, NDArray[np.float64]] = {}

    def drawn_error(noise: EdgeNoise | None) -> NDArray[np.float64]:
        error = np.zeros(6)
        if noise is None:
            return error
        for source in noise.sources:
            if source not in drawn:
                drawn[source] = random.standard_normal(source.dimension)
            error += product(noise.map(source), drawn[source])
        return error

    with scene.edit() as edit:
        for frame in scene.noisy_frames:
            edit.set_pose(
                frame, scene.local_pose(frame) @ Pose.exp(drawn_error(scene.noise(frame)))
            )
            edit.set_covariance(frame, None)
        for frame in scene.twist_frames:
            edge = scene.twist_edge(frame)
            if edge is not None:
                edit.set_twist(
                    frame,
                    edge[1] + drawn_error(twist_noise(scene, frame)),
                    relative_to_body=edge[0],
                )
    return edit.finish()
