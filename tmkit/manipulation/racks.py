"""Racks: pegs, posts and other supports without a level top.

A frame of class ``rack`` supports an object that *rests*: no small motion that lowers its centre of
mass is free of collisions, independently of friction. Placements hang an object with its centre of
mass below the centre of a bar, near its ends, or below the upper end of a post. Its rotation about
the bar is the one with the lowest centre of mass. Goals may specify other poses.

Invariants: the results depend on the shapes and poses of object and rack alone. A placement rests,
and the object is released 0.4 mm above contact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.elementary import circle, cos, dot, norm, sin
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.manipulation.grasps.floating import FloatingBody, yaw_pitch_roll
from tmkit.motion.masses import centre_of_mass
from tmkit.motion.regions.polygons import CACHE_SIZE
from tmkit.motion.regions.solids import Solids, reach, solids_of, solids_under
from tmkit.spatial import Pose

RACK = "rack"
"""Class of frames that support objects without a level top."""

_RELEASE_CLEARANCE = 4e-4
"""Height above contact at which an object is released [m]."""

_BAR_ASPECT_RATIO = 2.0
"""Smallest ratio of length to width of a bar."""

_ROTATION_COUNT = 24
"""Number of rotations about a bar in the coarse search."""

_ROTATION_TOLERANCE = 0.004
"""Resolution of the refined rotation about a bar [rad]."""

_MAX_CANDIDATES = 32
"""Maximum number of poses per bar that are refined and checked."""

_END_DISTANCE = 0.025
"""Distance from the ends of a level bar at which objects hang, in addition to its centre [m]."""

_DEPTH_TOLERANCE = 0.003
"""Largest difference of a pose's depth from the lowest pose found so far on the bar [m]."""

_POST_SLOPE = 0.5
"""Smallest sine of the slope of a post; bars below are level."""

_SEARCH_STEP = 0.002
"""Distance between two positions of a line search [m]."""

_MAX_DROP = 0.002
"""Largest height above contact of an object at rest [m]."""

_DROP_COUNT = 65
"""Number of heights at which contact is searched."""

_REST_TEST_DESCENT = 2e-4
"""Distance by which the small motions of the rest test lower the centre of mass [m]."""

_DIRECTION_COUNT = 16
"""Number of horizontal directions of the rest test."""

_TILTS = (0.0, 0.02, 0.05)
"""Tilts of the rest test [rad]."""

_SHIFTS = np.arange(-8, 9) * 1e-3
"""Horizontal shifts of the rest test [m]."""

_LIFT_HEIGHT = 0.03
"""Smallest lift off a post, and largest lift before a removal along a bar [m]."""

_SIDES = [
    [
        np.array(side)
        for side in itertools.product((-1.0, 0.0, 1.0), repeat=3)
        if np.count_nonzero(side) == count
    ]
    for count in (1, 2, 3)
]
"""Directions of an object from face to edge to corner, grouped by the number of axes."""

_UP = np.array([0.0, 0.0, 1.0])
"""(3,) vertical direction in root axes."""

Vector = NDArray[np.float64]


def rests(scene: SceneGraph, object: str, *, q: ArrayLike | None = None) -> bool:
    """Return whether an object rests on its parent: no lower pose nearby is free of collisions.

    Args:
        scene: scene with the object on its support.
        object: frame of the object.
        q: (n_joints,) configuration. May be None if no joint is between object, parent and root.
    """
    rack, root_from_support = _rack_solids(scene, str(scene.parent(object)), q)
    contact = _RackContact(rack, *_object_solids(scene, object, q))
    return contact.is_at_rest(root_from_support @ scene.local_pose(object))


def rack_placements(
    scene: SceneGraph, object: str, support: str, *, q: ArrayLike | None
) -> Iterator[tuple[Pose, str]]:
    """Yield poses support_from_object at which an object rests on a rack, with their names.

    The lowest pose of each bar comes first.

    Args:
        scene: scene with object and rack. The object may have any parent.
        object: frame of the object.
        support: frame of the rack, whose bars are its long shapes.
        q: (n_joints,) configuration. May be None if no joint is between object, rack and root.
    """
    rack, root_from_support = _rack_solids(scene, support, q)
    for pose in _rest_poses(rack, *_object_solids(scene, object, q)):
        x, y, z = pose.translation
        yield root_from_support.inverse() @ pose, f"on '{support}' at ({x:.3f}, {y:.3f}, {z:.3f})"


def removal_translations(
    scene: SceneGraph,
    object: str,
    support: str,
    pose: Pose,
    *,
    q: ArrayLike | None,
    ignored: Collection[str] = (),
) -> tuple[Vector, Vector | None]:
    """Return the translations that remove an object from a rack.

    The object is lifted first. On level bars, the lift is small and ends halfway to a bar above,
    and a translation along a bar follows.

    Args:
        scene: scene with object and rack.
        object: frame of the object.
        support: frame of the rack.
        pose: support_from_object.
        q: (n_joints,) configuration. May be None if no joint is between the root and these frames.
        ignored: frames that are not obstacles, such as those of the arm.

    Returns:
        (3,) lift, and the (3,) translation along a level bar or None, in root axes [m].
    """
    rack, root_from_support = _rack_solids(scene, support, q)
    excluded = {*scene.subtree(object), *ignored, support}
    obstacles = tuple(
        itertools.chain.from_iterable(
            _rack_solids(scene, frame, q)[0] for frame in scene.frame_names if frame not in excluded
        )
    )
    contact = _RackContact(rack, *_object_solids(scene, object, q), obstacles)
    start = root_from_support @ pose
    room, distance_off = contact.free_travel(start, start.translation, _UP)
    directions = [
        sign * axis
        for _, axis, _ in _bars(rack)
        for sign in (1.0, -1.0)
        if abs(axis[2]) < _POST_SLOPE
    ]
    height = min(_LIFT_HEIGHT, 0.5 * room) if directions else max(_LIFT_HEIGHT, distance_off or 0.0)
    lift = height * _UP

    # Select the shortest translation along a bar.
    removals = []
    for direction in directions:
        _, distance = contact.free_travel(start, start.translation + lift, direction)
        if distance is not None:
            removals.append((distance, direction))
    distance, direction = min(removals, key=lambda removal: removal[0], default=(0.0, _UP))
    return lift, distance * direction if distance else None


class _RackContact:
    """Collision checks of a floating object with a rack.

    Args:
        rack: solids of the rack, in root axes.
        object: solids of the object, in its axes.
        centre: (3,) centre of mass in the object's axes [m], as the bytes of an array.
        obstacles: other solids, in root axes.
    """

    def __init__(self, rack: Solids, object: Solids, centre: bytes, obstacles: Solids = ()) -> None:
        self.centre = np.frombuffer(centre)
        high, low = (
            np.array([sign * reach(object, sign * axis) for axis in np.eye(3)])
            for sign in (1.0, -1.0)
        )
        self.radius = norm(np.maximum(high - self.centre, self.centre - low))
        rack_size = max(norm(np.subtract(*part.shape.bounds)) for part in rack)
        self.max_travel = 2.0 * self.radius + rack_size
        box = AttachedShape(Box(high - low), Pose((low + high) / 2.0))
        bodies = SceneGraph("rack/root").add_frame(
            "rack/rack", "rack/root", shapes=(*rack, *obstacles)
        )
        body = SceneGraph("rack/object")
        self._bodies = [
            FloatingBody(
                bodies, body.set_shapes("rack/object", shapes), root="rack/root", margin=0.0
            )
            for shapes in (object, (box,))
        ]

    def collides(
        self, orientation: Pose, positions: ArrayLike, *, as_box: bool = False
    ) -> NDArray[np.bool_]:
        """Return whether the object, or its bounding box, collides at each position.

        Args:
            orientation: pose whose rotation the object has.
            positions: (n, 3) positions in root axes [m].
            as_box: whether to check the bounding box instead of the solids.

        Returns:
            (n,) booleans.
        """
        body, points = self._bodies[as_box], np.asarray(positions, dtype=float)
        angles = np.tile(yaw_pitch_roll(orientation.rotation), (len(points), 1))
        fingers = np.tile(body.finger_configuration({}), (len(points), 1))
        return body.collides(np.hstack([points, angles]), fingers)

    def free_travel(
        self, orientation: Pose, start: Vector, direction: Vector
    ) -> tuple[float, float | None]:
        """Return the free distance along a line, and the distance at which the object is off.

        Args:
            orientation: pose whose rotation the object has.
            start: (3,) start position in root axes [m].
            direction: (3,) unit vector in root axes.

        Returns:
            Free distance [m], and the smallest distance in it at which the bounding box is off the
            rack [m], or None.
        """
        distances = np.arange(_SEARCH_STEP, self.max_travel, _SEARCH_STEP)
        positions = start + distances[:, None] * direction
        is_blocked = self.collides(orientation, positions)
        free_count = int(np.argmax(is_blocked)) if is_blocked.any() else len(distances)
        is_off = ~self.collides(orientation, positions, as_box=True)[:free_count]
        indices = np.flatnonzero(is_off)
        return free_count * _SEARCH_STEP, float(distances[indices[0]]) if len(indices) else None

    def is_at_rest(self, pose: Pose) -> bool:
        """Return whether an object at a pose is in contact, and no small descent is free."""
        drops = np.linspace(0.0, _MAX_DROP, _DROP_COUNT)
        is_blocked = self.collides(pose, pose.translation - drops[:, None] * _UP)
        if is_blocked[0] or not is_blocked.any():
            return False
        pose = Pose([0.0, 0.0, -drops[int(np.argmax(is_blocked)) - 1]]) @ pose
        centre = pose.apply(self.centre)
        angles = np.arange(_DIRECTION_COUNT) * (math.tau / _DIRECTION_COUNT)
        for x, y in circle(angles).tolist():
            direction, tilt_axis = np.array([x, y, 0.0]), np.array([-y, x, 0.0])
            shifts = _SHIFTS[:, None] * direction - _REST_TEST_DESCENT * _UP
            for tilt in _TILTS:
                tilted = Pose(centre) @ _rotation(tilt_axis, tilt) @ Pose(-centre) @ pose
                if not self.collides(tilted, tilted.translation + shifts).all():
                    return False
        return True

    def hanging_depth(self, orientation: Pose, anchor: Vector) -> float:
        """Return the depth of the centre of mass of a hanging object below a point.

        Args:
            orientation: pose whose rotation the object has.
            anchor: (3,) point on the bar in root axes [m].

        Returns:
            Depth [m]. -1 if the bar does not support the object.
        """
        start = anchor - orientation.rotate(self.centre)
        depths = np.arange(0.0, self.radius + _SEARCH_STEP, _SEARCH_STEP)
        is_blocked = self.collides(orientation, start - depths[:, None] * _UP)
        contact_indices = np.flatnonzero(~is_blocked[:-1] & is_blocked[1:])
        if not len(contact_indices):
            return -1.0
        depth = float(depths[contact_indices[-1]])
        for step in (_SEARCH_STEP / 16.0, _SEARCH_STEP / 256.0):
            depths = depth + step * np.arange(1, 17)
            is_blocked = self.collides(orientation, start - depths[:, None] * _UP)
            depth += step * int(np.argmax(is_blocked))
        return depth - _RELEASE_CLEARANCE

    def refine_rotation(
        self, orientation: Pose, axis: Vector, anchor: Vector, angle: float
    ) -> tuple[float, Pose]:
        """Return the largest depth near a rotation about a bar, and the orientation there.

        Args:
            orientation: pose whose rotation the object has at angle 0.
            axis: (3,) unit vector along the bar in root axes.
            anchor: (3,) point on the bar in root axes [m].
            angle: start of the search [rad].

        Returns:
            Depth [m] and orientation.
        """
        step = math.tau / _ROTATION_COUNT
        while step > _ROTATION_TOLERANCE:
            step /= 2.0
            angles = (angle, angle + step, angle - step)
            depths = [
                self.hanging_depth(_rotation(axis, value) @ orientation, anchor) for value in angles
            ]
            angle = angles[depths.index(max(depths))]
        refined = _rotation(axis, angle) @ orientation
        return self.hanging_depth(refined, anchor), refined


@lru_cache(maxsize=CACHE_SIZE)
def _rest_poses(rack: Solids, object: Solids, centre: bytes) -> tuple[Pose, ...]:
    """Return poses root_from_object of an object at rest on a rack, the lowest of each bar first.

    Args:
        rack: solids of the rack, in root axes.
        object: solids of the object, in its axes.
        centre: (3,) centre of mass in the object's axes [m], as the bytes of an array.
    """
    contact = _RackContact(rack, object, centre)
    poses: list[Pose] = []
    for middle, axis, length in _bars(rack):
        is_post = abs(axis[2]) >= _POST_SLOPE
        anchor = middle
        if is_post:
            anchor = middle + 0.5 * length * math.copysign(1.0, axis[2]) * axis
        bar_poses = _bar_poses(contact, anchor, -_UP if is_post else axis, is_post=is_post)
        poses += bar_poses

        # Hang the object near the ends of a long level bar as well.
        if not is_post and length > 3.0 * _END_DISTANCE:
            for sign in (1.0, -1.0):
                shift = Pose(sign * (0.5 * length - _END_DISTANCE) * axis)
                candidates = [shift @ pose for pose in bar_poses]
                poses += [pose for pose in candidates if contact.is_at_rest(pose)]
    return tuple(poses)


def _bar_poses(contact: _RackContact, anchor: Vector, axis: Vector, *, is_post: bool) -> list[Pose]:
    """Return poses root_from_object of an object at rest at one point of a bar or post.

    Args:
        contact: rack and object.
        anchor: (3,) point on the bar in root axes [m].
        axis: (3,) unit vector in root axes about which the object is rotated.
        is_post: whether the bar is a post.
    """
    poses: list[Pose] = []
    max_depth = 0.0
    # Try edges and corners of the object only if no pose with a face is at rest.
    for sides in _SIDES:
        candidates: list[tuple[float, float, Pose]] = []
        for side in sides:
            orientation = _rotation_between(side / norm(side), axis)
            candidates += _coarse_rotations(contact, orientation, anchor, axis, is_post=is_post)
        candidates.sort(key=lambda candidate: -round(candidate[0], 4))
        for depth, angle, orientation in candidates[:_MAX_CANDIDATES]:
            if is_post:
                rotated = _rotation(axis, angle) @ orientation
            else:
                depth, rotated = contact.refine_rotation(orientation, axis, anchor, angle)
            position = anchor - depth * _UP - rotated.rotate(contact.centre)
            pose = Pose(position, rotated.quat_xyzw)
            if depth > max_depth - _DEPTH_TOLERANCE and contact.is_at_rest(pose):
                poses.append(pose)
                max_depth = max(max_depth, depth)
        if poses:
            break
    return poses


def _coarse_rotations(
    contact: _RackContact, orientation: Pose, anchor: Vector, axis: Vector, *, is_post: bool
) -> list[tuple[float, float, Pose]]:
    """Return the rotations about an axis with locally largest depth.

    Args:
        contact: rack and object.
        orientation: pose whose rotation the object has at angle 0.
        anchor: (3,) point on the bar in root axes [m].
        axis: (3,) unit vector in root axes about which the object is rotated.
        is_post: whether the bar is a post, so that all rotations have one depth.

    Returns:
        Depth [m], angle [rad] and orientation at angle 0 of each rotation.
    """
    count = _ROTATION_COUNT
    if is_post:
        rotated = _rotation(axis, 0.0) @ orientation
        depths = [contact.hanging_depth(rotated, anchor)] * count
    else:
        depths = [
            contact.hanging_depth(_rotation(axis, k * math.tau / count) @ orientation, anchor)
            for k in range(count)
        ]
    return [
        (depths[k], k * math.tau / count, orientation)
        for k in range(0, count, 3 if is_post else 1)
        if depths[k] >= max(0.0, depths[k - 1], depths[(k + 1) % count])
    ]


def _bars(rack: Solids) -> Iterator[tuple[Vector, Vector, float]]:
    """Yield centre (3,) [m], direction (3,) and length [m] of the long shapes of a rack."""
    for attached in rack:
        lower, upper = attached.shape.bounds
        sizes = upper - lower
        longest = int(np.argmax(sizes))
        if sizes[longest] >= _BAR_ASPECT_RATIO * np.max(np.delete(sizes, longest)):
            centre = attached.pose.apply((lower + upper) / 2.0)
            yield centre, attached.pose.rotate(np.eye(3)[longest]), sizes[longest]


def _rack_solids(scene: SceneGraph, support: str, q: ArrayLike | None) -> tuple[Solids, Pose]:
    """Return the solids of a frame in root axes, and root_from_support."""
    pose = scene.pose(support, relative_to=scene.root(support), q=q)
    solids = solids_of(scene, support)
    return tuple(attached.replace(pose=pose @ attached.pose) for attached in solids), pose


def _object_solids(scene: SceneGraph, object: str, q: ArrayLike | None) -> tuple[Solids, bytes]:
    """Return the solids of an object in its axes, and the bytes of its (3,) centre of mass [m]."""
    return solids_under(scene, object, q=q), centre_of_mass(scene, object, q=q).tobytes()


def _rotation(axis: Vector, angle: float) -> Pose:
    """Return the rotation about a unit vector (3,) by an angle [rad]."""
    return Pose([0.0, 0.0, 0.0], [*(sin(angle / 2.0) * axis), cos(angle / 2.0)])


def _rotation_between(direction: Vector, target: Vector) -> Pose:
    """Return a rotation of a unit vector (3,) to another."""
    cosine = dot(direction, target)
    if cosine < -0.999999:
        unit = np.roll(np.eye(3), 1, axis=0)[int(np.argmax(np.abs(direction)))]
        perpendicular = np.cross(direction, unit)
        return _rotation(perpendicular / norm(perpendicular), math.pi)
    return Pose([0.0, 0.0, 0.0], [*np.cross(direction, target), 1.0 + cosine])
