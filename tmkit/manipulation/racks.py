"""Racks: pegs on which objects hang, posts over which they stand, and whatever else holds them but a level top.

A frame of class ``rack`` holds an object that *rests*: no small motion that lowers its centre of
mass is free, whatever the friction. Placements hang an object with its centre of mass below the
middle of a bar, or near its ends, or below the upper end of a post. Turned about the bar, it is as
low as it gets. Other poses are for goals to give.

Invariants: the results depend on the shapes and poses of object and rack alone. A placement rests,
and is let go 0.4 mm above contact.
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
from tmkit.manipulation.placements.stable_faces import centre_of_mass
from tmkit.motion.regions.polygons import REMEMBERED
from tmkit.motion.regions.solids import Solids, reach, solids_of, solids_under
from tmkit.spatial import Pose

RACK = "rack"
"""Class of frames that hold objects otherwise than on level tops."""

_CLEARANCE = 4e-4  # metres above contact at which an object is let go
_BAR = 2.0  # times as long as wide a shape is to be a bar
_TURNS, _FINE = 24, 0.004  # turns about a bar that are tried; radians to which the best are refined
_MOST = 32  # ways to rest on one bar that are looked at
_FROM_END = 0.025  # metres from the ends of a level bar where objects hang besides its middle
_NEARLY = 0.003  # metres by which other ways may hang higher than the lowest
_LEVEL = 0.5  # sine of the slope of a bar, from which on it is a post
_STEP = 0.002  # metres between heights that are tried
_AIR, _DROPS = 0.002, 65  # metres above contact at which it rests, and heights that are tried
# metres that small motions lower, their directions, radians
_LOWER, _WAYS, _TILTS = 2e-4, 16, (0.0, 0.02, 0.05)
_SHIFTS = np.arange(-8, 9) * 1e-3  # metres
_LIFT = 0.03  # metres by which an object is lifted at least, and at most where it goes along a bar
_SIDES = [
    [
        np.array(side)
        for side in itertools.product((-1.0, 0.0, 1.0), repeat=3)
        if np.count_nonzero(side) == count
    ]
    for count in (1, 2, 3)
]
_UP = np.array([0.0, 0.0, 1.0])

Vector = NDArray[np.float64]


def rests(scene: SceneGraph, object: str, *, q: ArrayLike | None = None) -> bool:
    """Return whether an object stays where it is on its parent: whether no place near by that is lower is free.

    Args:
        scene: the scene.
        object: frame of the object.
        q: (n_joints,) configuration; None where no joint is between object, parent and root.
    """
    solids, root_from_support = _fixed(scene, str(scene.parent(object)), q)
    return _Held(solids, *_body(scene, object, q)).rests(
        root_from_support @ scene.local_pose(object)
    )


def rack_placements(
    scene: SceneGraph, object: str, support: str, *, q: ArrayLike | None
) -> Iterator[tuple[Pose, str]]:
    """Yield poses support_from_object in which an object rests on a rack, with names; the lowest of each bar first.

    Args:
        scene: the scene; the object's parent does not matter.
        object: frame of the object.
        support: frame of the rack, whose bars are its long shapes.
        q: (n_joints,) configuration; None where no joint is between object, rack and root.
    """
    solids, root_from_support = _fixed(scene, support, q)
    for pose in _resting(solids, *_body(scene, object, q)):
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
    """Return by what (3,) an object is lifted on a rack and then shifted straight off it, in the axes of the root.

    On level bars it is lifted a little, to the middle of its room where a bar is above it, and goes
    along them.

    Args:
        scene: the scene.
        object: frame of the object.
        support: frame of the rack.
        pose: support_from_object.
        q: (n_joints,) configuration; None where no joint is between what stands there and the root.
        ignored: frames that are not in its way, such as those of the arm.
    """
    solids, root_from_support = _fixed(scene, support, q)
    near = {*scene.subtree(object), *ignored, support}
    others = [_fixed(scene, frame, q)[0] for frame in scene.frame_names if frame not in near]
    held, start = (
        _Held(solids, *_body(scene, object, q), tuple(itertools.chain(*others))),
        root_from_support @ pose,
    )
    room, end = held.way(start, start.translation, _UP)
    level = [
        sign * axis for _, axis, _ in _bars(solids) for sign in (1.0, -1.0) if abs(axis[2]) < _LEVEL
    ]
    raised = (min(_LIFT, 0.5 * room) if level else max(_LIFT, end or 0.0)) * _UP
    ends = [
        (end, way)
        for way in level
        if (end := held.way(start, start.translation + raised, way)[1]) is not None
    ]
    end, way = min(ends, key=lambda one: one[0], default=(0.0, _UP))
    return raised, end * way if end else None


class _Held:
    """A rack and an object by their solids, the rack's in the axes of the root."""

    def __init__(self, rack: Solids, object: Solids, centre: bytes, others: Solids = ()) -> None:
        self.centre = np.frombuffer(centre)
        high, low = (
            np.array([sign * reach(object, sign * axis) for axis in np.eye(3)])
            for sign in (1.0, -1.0)
        )
        self.radius = norm(np.maximum(high - self.centre, self.centre - low))
        self.far = 2.0 * self.radius + max(norm(np.subtract(*part.shape.bounds)) for part in rack)
        box = AttachedShape(Box(high - low), Pose((low + high) / 2.0))
        bodies = SceneGraph("rack/root").add_frame(
            "rack/rack", "rack/root", shapes=(*rack, *others)
        )
        body = SceneGraph("rack/object")
        self._bodies = [
            FloatingBody(
                bodies, body.set_shapes("rack/object", shapes), root="rack/root", margin=0.0
            )
            for shapes in (object, (box,))
        ]

    def collides(
        self, turned: Pose, places: ArrayLike, *, as_box: bool = False
    ) -> NDArray[np.bool_]:
        """Return whether the object, or the box around it, meets the rack at places (n, 3), turned like a pose."""
        body, at = self._bodies[as_box], np.asarray(places, dtype=float)
        poses = np.hstack([at, np.tile(yaw_pitch_roll(turned.rotation), (len(at), 1))])
        return body.collides(poses, np.tile(body.fingers({}), (len(at), 1)))

    def way(self, turned: Pose, start: Vector, along: Vector) -> tuple[float, float | None]:
        """Return how far it is free along a direction (3,), and from where on its box is off the rack, metres."""
        far = np.arange(_STEP, self.far, _STEP)
        places = start + far[:, None] * along
        is_met = self.collides(turned, places)
        room = int(np.argmax(is_met)) if is_met.any() else len(far)
        off = np.flatnonzero(~self.collides(turned, places, as_box=True)[:room])
        return room * _STEP, float(far[off[0]]) if len(off) else None

    def rests(self, pose: Pose) -> bool:
        """Return whether it is in contact, and no small motion from there that lowers the centre of mass is free."""
        drops = np.linspace(0.0, _AIR, _DROPS)
        is_met = self.collides(pose, pose.translation - drops[:, None] * _UP)
        if is_met[0] or not is_met.any():
            return False
        pose = Pose([0.0, 0.0, -drops[int(np.argmax(is_met)) - 1]]) @ pose
        middle = pose.apply(self.centre)
        for x, y in circle(np.arange(_WAYS) * (math.tau / _WAYS)).tolist():
            along, tilt = np.array([x, y, 0.0]), np.array([-y, x, 0.0])
            for angle in _TILTS:
                turned = Pose(middle) @ _about(tilt, angle) @ Pose(-middle) @ pose
                shifts = _SHIFTS[:, None] * along - _LOWER * _UP
                if not self.collides(turned, turned.translation + shifts).all():
                    return False
        return True

    def hung(self, turned: Pose, above: Vector) -> float:
        """Return how far below a point (3,) the centre of mass hangs, turned so; -1 where nothing holds it."""
        start = above - turned.rotate(self.centre)
        depths = np.arange(0.0, self.radius + _STEP, _STEP)
        is_met = self.collides(turned, start - depths[:, None] * _UP)
        ends = np.flatnonzero(~is_met[:-1] & is_met[1:])
        if not len(ends):
            return -1.0
        free = float(depths[ends[-1]])
        for step in (_STEP / 16.0, _STEP / 256.0):
            finer = free + step * np.arange(1, 17)
            free += step * int(np.argmax(self.collides(turned, start - finer[:, None] * _UP)))
        return free - _CLEARANCE

    def lowest(self, first: Pose, about: Vector, above: Vector, angle: float) -> tuple[float, Pose]:
        """Return depth and turn where an object hangs lowest, near an angle about a bar."""
        half = math.tau / _TURNS
        while half > _FINE:
            half /= 2.0
            angles = (angle, angle + half, angle - half)
            angle = max(angles, key=lambda one: self.hung(_about(about, one) @ first, above))
        turned = _about(about, angle) @ first
        return self.hung(turned, above), turned


@lru_cache(maxsize=REMEMBERED)
def _resting(rack: Solids, object: Solids, centre: bytes) -> tuple[Pose, ...]:
    """Return poses root_from_object in which an object rests on a rack, the lowest on each bar first."""
    held = _Held(rack, object, centre)
    found: list[Pose] = []
    for middle, axis, length in _bars(rack):
        is_post = abs(axis[2]) >= _LEVEL
        about = -_UP if is_post else axis
        above = middle + (0.5 * length * math.copysign(1.0, axis[2]) * axis if is_post else 0.0)
        lowest, number = 0.0, len(found)
        for sides in _SIDES:  # what hangs askew only where nothing else holds it
            coarse: list[tuple[float, float, Pose]] = []
            for side in sides:
                first = _turned(side / norm(side), about)
                turns = [
                    _about(about, k * math.tau / _TURNS) @ first
                    for k in range(1 if is_post else _TURNS)
                ]
                depths = [held.hung(turn, above) for turn in turns] * (_TURNS // len(turns))
                best = (
                    k
                    for k in range(0, _TURNS, 3 if is_post else 1)
                    if depths[k] >= max(0.0, depths[k - 1], depths[(k + 1) % _TURNS])
                )
                coarse += [(depths[k], k * math.tau / _TURNS, first) for k in best]
            for depth, angle, first in sorted(coarse, key=lambda one: -round(one[0], 4))[:_MOST]:
                turned = _about(about, angle) @ first
                if not is_post:
                    depth, turned = held.lowest(first, about, above, angle)
                pose = Pose(above - depth * _UP - turned.rotate(held.centre), turned.quat_xyzw)
                if depth > lowest - _NEARLY and held.rests(pose):
                    found.append(pose)
                    lowest = max(lowest, depth)
            if len(found) > number:
                break
        by = (
            [sign * (0.5 * length - _FROM_END) * axis for sign in (1.0, -1.0)]
            if length > 3.0 * _FROM_END
            else []
        )
        shifted = [Pose(move) @ pose for move in by if not is_post for pose in found[number:]]
        found += [pose for pose in shifted if held.rests(pose)]
    return tuple(found)


def _bars(rack: Solids) -> Iterator[tuple[Vector, Vector, float]]:
    """Yield middle (3,), direction (3,) and length of the long shapes of a rack."""
    for attached in rack:
        lower, upper = attached.shape.bounds
        sizes = upper - lower
        along = int(np.argmax(sizes))
        if sizes[along] >= _BAR * np.max(np.delete(sizes, along)):
            yield (
                attached.pose.apply((lower + upper) / 2.0),
                attached.pose.rotate(np.eye(3)[along]),
                sizes[along],
            )


def _fixed(scene: SceneGraph, support: str, q: ArrayLike | None) -> tuple[Solids, Pose]:
    """Return the solids of a rack in the axes of the root, and root_from_support."""
    pose = scene.pose(support, relative_to=scene.root(support), q=q)
    return (
        tuple(
            attached.replace(pose=pose @ attached.pose) for attached in solids_of(scene, support)
        ),
        pose,
    )


def _body(scene: SceneGraph, object: str, q: ArrayLike | None) -> tuple[Solids, bytes]:
    return solids_under(scene, object, q=q), centre_of_mass(scene, object, q=q).tobytes()


def _about(axis: Vector, angle: float) -> Pose:
    return Pose([0.0, 0.0, 0.0], [*(sin(angle / 2.0) * axis), cos(angle / 2.0)])


def _turned(direction: Vector, towards: Vector) -> Pose:
    """Return a rotation that brings a unit vector (3,) to another."""
    along = dot(direction, towards)
    if along < -0.999999:
        other = np.cross(
            direction, np.roll(np.eye(3), 1, axis=0)[int(np.argmax(np.abs(direction)))]
        )
        return _about(other / norm(other), math.pi)
    return Pose([0.0, 0.0, 0.0], [*np.cross(direction, towards), 1.0 + along])
