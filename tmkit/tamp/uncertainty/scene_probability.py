"""Probabilities of geometric facts about frames in a scene.

Semantics of domains that plan under uncertainty call these functions: ``P(on(a, b)) >= 0.95`` is
``stands_on(scene, "a", "b", q=q).is_at_least(0.95)``. Each function reads the covariance of a
relative pose from the scene, in which common errors cancel (:meth:`SceneGraph.gaussian_pose`). It
then evaluates :mod:`tmkit.tamp.uncertainty.probability`. Strongly nonlinear cases are sampled from
the scene with a seed.

:func:`sample_scene` draws one exact scene from the distribution of an uncertain one, to simulate
the execution of a plan.

Invariants: equal arguments give bitwise equal results, of first order unless their method is
    sampling.
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

_SAMPLE_COUNT = 20_000
"""Number of sampled poses."""

_MAX_EXACT_VARIANCE = 1e-16
"""Variance of a rotation up to which it counts as exact [rad^2]."""


def point_distribution(
    scene: SceneGraph,
    frame: str,
    *,
    relative_to: str | None = None,
    q: Configuration | None = None,
    point: ArrayLike = (0.0, 0.0, 0.0),
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the (3,) mean and (3, 3) covariance of a point in another frame, to first order.

    Args:
        scene: scene.
        frame: frame of the point.
        relative_to: frame whose axes the result uses. Defaults to the root of its tree.
        q: (n_joints,) configuration. Optional if no joint is on the path.
        point: (3,) point, in the frame [m].
    """
    pose = scene.gaussian_pose(frame, relative_to=relative_to, q=q)
    coordinates = plain_numbers(point, "point", "m")
    rotation = pose.mean.rotation
    x, y, z = coordinates
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    jacobian = product(rotation, np.hstack([np.eye(3), -skew]))
    covariance = product(jacobian, pose.covariance, jacobian.T)
    return np.asarray(pose.mean.apply(coordinates)), covariance


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
        scene: scene.
        frame: frame of the point.
        relative_to: frame of the box. Defaults to the root of its tree.
        lower: (3,) lower corner; entries may be minus infinity [m].
        upper: (3,) upper corner; entries may be infinity [m].
        q: (n_joints,) configuration. Optional if no joint is on the path.
        point: (3,) point, in the frame [m].
    """
    mean, covariance = point_distribution(scene, frame, relative_to=relative_to, q=q, point=point)
    return inside_box(mean, covariance, lower=lower, upper=upper)


def stands_on(
    scene: SceneGraph, object: str, support: str, *, q: Configuration | None = None
) -> Probability:
    """Return the probability that the origin of an object is above the top of its support.

    The top is the rectangle around the support's collision shapes. Height and tilt of the object
    are ignored.

    Args:
        scene: scene.
        object: frame of the object.
        support: frame of the support.
        q: (n_joints,) configuration. Optional if no joint is on the path.

    Raises:
        SceneError: if the support has no collision shape.
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
    """Return the probability that a whole object lies above a rectangle along the axes of a frame.

    If the rotation of the object is exact, the rectangle shrinks by the extent of the object, which
    gives a closed form or a quadrature. Otherwise, poses are sampled.

    Args:
        scene: scene.
        object: frame of the object, whose extent is the box around its collision shapes.
        relative_to: frame of the rectangle. Defaults to the root of its tree.
        lower: (2,) lower corner, in x and y of ``relative_to`` [m].
        upper: (2,) upper corner [m].
        q: (n_joints,) configuration. Optional if no joint is on the path.
        seed: seed of the samples, if any.

    Raises:
        SceneError: if the object has no collision shape.
    """
    bounds = np.array(shape_bounds(scene, object))
    corners = np.array(
        [[x, y, z] for x in bounds[:, 0] for y in bounds[:, 1] for z in bounds[:, 2]]
    )
    low, high = plain_numbers(lower, "lower", "m"), plain_numbers(upper, "upper", "m")
    pose = scene.gaussian_pose(object, relative_to=relative_to, q=q)
    if float(np.max(np.diag(pose.covariance)[3:])) <= _MAX_EXACT_VARIANCE:
        offsets = product(corners, pose.mean.rotation.T)
        mean, covariance = point_distribution(scene, object, relative_to=relative_to, q=q)
        low, high = low - offsets[:, :2].min(axis=0), high - offsets[:, :2].max(axis=0)
        if np.any(low > high):
            return Probability(0.0)
        return inside_box(mean[:2], covariance[:2, :2], lower=low, upper=high)
    poses = sample_poses(
        scene, object, relative_to=relative_to, count=_SAMPLE_COUNT, seed=seed, q=q
    )
    inside = np.ones(_SAMPLE_COUNT, dtype=bool)
    for x, y in (_transform_point(poses, corner)[:, :2].T for corner in corners):
        inside &= (x >= low[0]) & (x <= high[0]) & (y >= low[1]) & (y <= high[1])
    return share_of(inside)


def _transform_point(poses: NDArray[np.float64], point: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (count, 3) images of a (3,) point under (count, 7) poses."""
    vector, scalar = poses[:, 3:6], poses[:, 6:7]
    doubled_product = 2.0 * np.cross(vector, point)
    return np.asarray(
        poses[:, :3] + point + scalar * doubled_product + np.cross(vector, doubled_product)
    )


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
    """Return the probability that the error of a pose is within tolerances, as for a grasp.

    Args:
        scene: scene.
        frame: frame with the pose.
        relative_to: reference frame, such as the base of an arm. Defaults to the root of its tree.
        directions: (m, 6) rows that map the error [rho, theta], in the axes of the frame [m, rad],
            to a number.
        tolerances: (m,) largest absolute value of each number [m or rad].
        q: (n_joints,) configuration. Optional if no joint is on the path.
        seed: seed of the samples, if any.
    """
    limits = plain_numbers(tolerances, "tolerances")
    covariance = scene.gaussian_pose(frame, relative_to=relative_to, q=q).covariance
    return inside_slabs(
        np.zeros(6), covariance, directions=directions, lower=-limits, upper=limits, seed=seed
    )


def rotation_within(
    scene: SceneGraph,
    frame: str,
    *,
    relative_to: str | None = None,
    limit: float,
    axis: ArrayLike | None = None,
    q: Configuration | None = None,
) -> Probability:
    """Return the probability that the rotation error of a frame is at most ``limit``.

    Args:
        scene: scene.
        frame: frame with the pose.
        relative_to: reference frame. Defaults to the root of its tree.
        limit: largest angle [rad].
        axis: (3,) axis, in the frame, about which rotation counts. By default, the angle of the
            whole rotation counts.
        q: (n_joints,) configuration. Optional if no joint is on the path.
    """
    turn = scene.gaussian_pose(frame, relative_to=relative_to, q=q).covariance[3:, 3:]
    if axis is None:
        return inside_ellipsoid(np.zeros(3), turn, centre=np.zeros(3), axes=limit * np.eye(3))
    along = plain_numbers(axis, "axis", "1")
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
    """Return the probability that two frames keep a margin at a configuration, to first order.

    The distance varies with the relative error of the two along the normal at their nearest points,
    which gives a closed form.

    Args:
        scene: scene of ``world``.
        world: collision world, which computes distances.
        q: (n_joints,) configuration.
        frame_a: frame with collision shapes.
        frame_b: other frame with collision shapes.
        margin: smallest accepted distance [m].
    """
    noisy_distance = _distance_and_maps(scene, world, q, frame_a, frame_b)
    if noisy_distance is None:
        return Probability(1.0)
    distance, maps = noisy_distance
    return clearance_at_least(distance, sum(dot(row, row) for row in maps.values()), margin=margin)


def clears_along(
    scene: SceneGraph,
    world: CollisionWorld,
    path: NDArray[np.float64],
    *,
    pairs: Sequence[tuple[str, str]],
    margin: float = 0.0,
    seed: int = 0,
    count: int = _SAMPLE_COUNT,
) -> Probability:
    """Return the probability that pairs of frames keep a margin at all configurations of a path.

    Each distance is linear in the noise sources, so one sample of the sources is one world for the
    whole path, with the same error at each configuration. A single distance has a closed form.

    Args:
        scene: scene of ``world``.
        world: collision world, which computes distances.
        path: (k, n_joints) configurations, whose spacing is the resolution of the result.
        pairs: pairs of frames.
        margin: smallest accepted distance [m].
        seed: seed of the samples.
        count: number of samples.
    """
    rows = [
        row
        for q in path
        for a, b in pairs
        if (row := _distance_and_maps(scene, world, q, a, b)) is not None
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
    """Return the distance of two frames and its derivative by each noise source.

    The result is None if the world does not check the pair.
    """
    contact = world.distance(frame_a, frame_b, q)
    if contact is None:
        return None
    root = scene.root(frame_a)
    normal = np.asarray(contact.normal, dtype=float)
    maps: dict[NoiseSource, NDArray[np.float64]] = {}
    # The normal points from the first frame to the second.
    first, second = ((frame_a, -1.0), (frame_b, 1.0))
    for (frame, sign), point in ((first, contact.point_a), (second, contact.point_b)):
        noise = path_noise(scene, frame, relative_to=root, q=q)
        if noise is None:
            continue
        root_from_frame = scene.pose(frame, relative_to=root, q=q)
        # Normal and point in the axes of the frame.
        local_normal = root_from_frame.inverse().rotate(sign * normal)
        local_point = root_from_frame.inverse().apply(np.asarray(point, dtype=float))
        row = np.concatenate([local_normal, np.cross(local_point, local_normal)])
        for source in noise.sources:
            maps[source] = maps.get(source, np.zeros(source.dimension)) + product(
                row, noise.map(source)
            )
    return float(contact.distance), maps


def sample_scene(scene: SceneGraph, *, seed: int) -> SceneGraph:
    """Return one exact scene drawn from the distribution of an uncertain scene.

    Every noise source is drawn once and moves each frame that depends on it, which preserves
    correlations. Joint noise, which moves the frame behind its joint, and twists are drawn too.

    Args:
        scene: uncertain scene.
        seed: seed of the draw; equal seeds give equal scenes.
    """
    random = np.random.default_rng(seed)
    samples: dict[NoiseSource, NDArray[np.float64]] = {}

    def draw_error(noise: EdgeNoise | None) -> NDArray[np.float64]:
        error = np.zeros(6)
        if noise is None:
            return error
        for source in noise.sources:
            if source not in samples:
                samples[source] = random.standard_normal(source.dimension)
            error += product(noise.map(source), samples[source])
        return error

    with scene.edit() as edit:
        for frame in scene.noisy_frames:
            error = Pose.exp(draw_error(scene.noise(frame)))
            edit.set_pose(frame, scene.local_pose(frame) @ error)
            edit.set_covariance(frame, None)
        for frame in scene.twist_frames:
            edge = scene.twist_edge(frame)
            if edge is not None:
                edit.set_twist(
                    frame, edge[1] + draw_error(twist_noise(scene, frame)), relative_to_body=edge[0]
                )
    return edit.finish()
