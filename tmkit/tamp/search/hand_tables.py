"""Tables of free grasps of a hand without its arm, kept for all versions of a scene.

An object has *grasp options*: a grasp, perhaps by the fingertips alone, with an opening of the
fingers. What stands still rules an option out at a pose; a movable object in its way is a
*blocker*. Both are computed once for each pair of poses, whatever else a version of the scene has
changed.

Invariants: functions of the shapes and poses alone. Blockers are bits, one for each movable object,
in the order of the start scene.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import atan2, dot, norm, norms
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import PickPlaceOptions
from tmkit.manipulation.grasps.floating import FloatingBody, bodies_at_rest, hand_alone
from tmkit.manipulation.grasps.hand import HandCheck, yaw_pitch_roll
from tmkit.manipulation.grasps.values import FINGER_CLEARANCE, Grasp
from tmkit.manipulation.samplers import SeededSamplers
from tmkit.motion.regions.solids import reach
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose

_BACK = (0.006, 0.012)  # metres behind the grasp at which the open hand must be free
_FAR = (0.06, 0.12, 0.2)  # metres behind it at which it should be
_HIGH = 0.15  # metres above the grasp at which there is no roof, if the closed hand is free there
# metres from the edge of an object at which the tool point is where fingertips hold it
_FINGERTIP = 0.004
_NARROW = 0.001  # metres between an object and either finger where there is little room
_KEPT = 9  # digits to which poses are compared


@dataclass(frozen=True, eq=False)
class GraspOption:
    """A way of taking an object.

    Attributes:
        opening: metres between the open fingers; None for fully open.
        approach: number of the direction that the hand comes from, for variety.
    """

    grasp: Grasp
    opening: float | None
    approach: tuple[int, ...]

    def motion(self, *, is_far: bool, has_roof: bool) -> PickPlaceOptions:
        """Return how the hand comes and leaves: on long ways, as out of a shelf, or under a roof, without lifting."""
        if is_far:
            return PickPlaceOptions(
                approach_distance=0.2,
                lift_distance=0.02,
                post_grasp_retreat=0.2,
                gripper_opening=self.opening,
                min_fraction=0.1,
            )
        return PickPlaceOptions(
            lift_distance=0.02 if has_roof else None, gripper_opening=self.opening, min_fraction=0.2
        )


@dataclass(frozen=True, eq=False)
class _Table:
    """The options of an object with all poses of the hand that they need, relative to the object."""

    options: tuple[GraspOption, ...]
    rotations: NDArray[np.float64]  # (n, 3, 3) one for each option, of the hand
    offsets: NDArray[np.float64]  # (m, 3) positions of the hand
    option: NDArray[np.intp]  # (m,) option of each pose
    fingers: list[Mapping[str, float]]
    finger: NDArray[np.intp]  # (m,) index into them
    is_needed: NDArray[np.bool_]  # (m,) whether the option is ruled out when the pose is not free
    is_roof: NDArray[np.bool_]  # (m,) whether the pose looks for a roof; then it is raised by _HIGH
    far: NDArray[np.bool_]  # (m,) whether the pose is far back
    # (n, 3) by turn of the object
    angles: dict[tuple[float, ...], NDArray[np.float64]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class AtRest:
    """What holds of the options of an object at one pose, as far as what stands still decides.

    Attributes:
        is_free: (n,) whether the hand is free.
        tightness: (n,) at how many of three poses further back it is not free.
        has_roof: (n,) whether something is above it.
    """

    is_free: NDArray[np.bool_]
    tightness: NDArray[np.intp]
    has_roof: NDArray[np.bool_]


class HandTables:
    """Tables of one arm's hand in the versions of a scene.

    Args:
        q: (n_joints,) configuration at the start; mechanisms are taken to stay as they are.

    Attributes:
        objects: the movable objects, in the order of their bits.
        is_usable: whether the arm has a hand with collision shapes; without, nothing is known of
            it.
    """

    def __init__(
        self,
        scene: SceneGraph,
        q: Configuration,
        *,
        manipulator: Manipulator,
        sampling: SeededSamplers,
    ) -> None:
        self.manipulator, self._sampling, self._start = manipulator, sampling, scene
        self.objects = tuple(movable_frames(scene))
        self._bits = {name: 1 << k for k, name in enumerate(self.objects)}
        hand, rest = hand_alone(scene, manipulator), bodies_at_rest(scene, manipulator)
        self.is_usable = hand is not None and rest is not None
        if hand is None or rest is None:
            return
        self._hand = hand
        self._hand_from_tool = hand.pose(
            manipulator.tool, relative_to=hand.root(manipulator.tool), q=hand.zero_configuration()
        )
        joints = {name: float(value) for name, value in zip(scene.joint_names, q, strict=True)}
        moved = moved_frames(scene, manipulator)
        for name in self.objects:  # what is held now is no part of what stands still
            if name in rest and scene.parent(name) in moved:
                rest = rest.remove_frame(name, subtree=True)
        self._still = FloatingBody(rest, hand, root=rest.root(rest.frame_names[0]), fixed=joints)
        self._tables: dict[object, _Table] = {}
        self._pairs: dict[object, FloatingBody] = {}
        self._at_rest: dict[object, AtRest] = {}
        self._blocked: dict[object, NDArray[np.bool_]] = {}
        self._overlaps: dict[object, bool] = {}
        self._radii: dict[object, float] = {}
        self._shapes: dict[str, int] = {}
        self._numbers: dict[object, int] = {}
        self._hand_radius = _radius(hand)

    def names(self, bits: int) -> list[str]:
        """Return the objects of some bits."""
        return [name for name in self.objects if self._bits[name] & bits]

    def bit(self, name: str) -> int:
        """Return the bit of an object."""
        return self._bits[name]

    def options(self, name: str) -> tuple[GraspOption, ...]:
        """Return the ways of taking an object."""
        return self._table(name).options

    def at_rest(self, name: str, pose: Pose) -> AtRest:
        """Return what holds of an object's options at root_from_object as far as what stands still decides."""
        key = self._shape(name), digits(pose)
        if key not in self._at_rest:
            table = self._table(name)
            hits = self._hits(self._still, table, pose, Pose(), np.arange(len(table.option)))
            count = len(table.options)
            self._at_rest[key] = AtRest(
                ~_any_of(count, table.option, hits & table.is_needed),
                np.bincount(table.option[hits & table.far], minlength=count),
                _any_of(count, table.option, hits & table.is_roof),
            )
        return self._at_rest[key]

    def widest(self, name: str, option: int, pose: Pose, others: Mapping[str, Pose]) -> int:
        """Return the option of the same grasp with the widest opening that is free at a pose.

        Fingers that open by less than a millimetre may take an object with them as they leave.

        Args:
            option: index of an option that is free there.
            pose: root_from_object.
            others: root_from_object of the other objects.
        """
        if self.options(name)[option].opening is None:
            return option
        return self.widest_of(
            name, option, self.at_rest(name, pose).is_free, self.blockers(name, pose, others)
        )

    def widest_of(
        self, name: str, option: int, free: NDArray[np.bool_], blockers: Sequence[int]
    ) -> int:
        """Return what :meth:`widest` does, for what :meth:`at_rest` and :meth:`blockers` give.

        Args:
            option: index of an option that is free there.
            free: for each option whether it is free of what stands still.
            blockers: for each option the objects in its way.
        """
        options = self.options(name)
        if options[option].opening is None:
            return option
        same = (
            k
            for k, other in enumerate(options)
            if other.grasp is options[option].grasp and other.opening is None
        )
        return next((k for k in same if free[k] and not blockers[k]), option)

    def blockers(self, name: str, pose: Pose, others: Mapping[str, Pose]) -> list[int]:
        """Return for each option of an object the bits of the objects that are in the hand's way.

        It is 0 for options that are not free of what stands still, :attr:`AtRest.is_free`.

        Args:
            pose: root_from_object.
            others: root_from_object of the other objects, those in the hand excepted.
        """
        found = [0] * len(self.options(name))
        for other in self._near(name, pose, others):
            other_pose = others[other]
            for index in np.flatnonzero(self._blocked_by(name, pose, other, other_pose)).tolist():
                found[index] |= self._bits[other]
        return found

    def _near(self, name: str, pose: Pose, others: Mapping[str, Pose]) -> list[str]:
        """Return the other objects that a hand at an object may meet, by their distance."""
        names = [other for other in others if other != name]
        if not names:
            return names
        points = np.array([others[other].translation for other in names])
        reach = (
            self._hand_radius
            + self._radius(name)
            + _HIGH
            + np.array([self._radius(other) for other in names])
        )
        is_near = norms(points - pose.translation) <= reach
        return [names[index] for index in np.flatnonzero(is_near).tolist()]

    def overlapping(
        self, name: str, pose: Pose, others: Mapping[str, Pose], *, support: str
    ) -> int:
        """Return the bits of the objects that overlap with an object at root_from_object, its support excepted."""
        found = 0
        for other, other_pose in others.items():
            if other not in (name, support) and self._overlap(name, pose, other, other_pose):
                found |= self._bits[other]
        return found

    # --------------------------------------------------------------------------------------- tables

    def _blocked_by(self, name: str, pose: Pose, other: str, other_pose: Pose) -> NDArray[np.bool_]:
        shapes, table = (self._shape(name), self._shape(other)), self._table(name)
        none = np.zeros(len(table.options), dtype=bool)
        key = shapes, digits(pose), digits(other_pose)
        if key not in self._blocked:
            world = self._pair("hand", other, self._hand)
            rows = np.flatnonzero(table.is_needed & self.at_rest(name, pose).is_free[table.option])
            if world is not None and len(rows):
                hits = self._hits(world, table, pose, other_pose, rows)
                none = _any_of(len(none), table.option[rows], hits)
            self._blocked[key] = none
        return self._blocked[key]

    def _overlap(self, name: str, pose: Pose, other: str, other_pose: Pose) -> bool:
        if norm(pose.translation - other_pose.translation) > self._radius(name) + self._radius(
            other
        ):
            return False
        key = self._shape(name), self._shape(other), digits(pose), digits(other_pose)
        if key not in self._overlaps:
            world = self._pair(self._shape(name), other, _alone(self._start, name))
            other_from_object = other_pose.inverse() @ pose
            is_met = world is not None and world.collides_at(other_from_object)
            self._overlaps[key] = is_met
        return self._overlaps[key]

    def _hits(
        self,
        world: FloatingBody,
        table: _Table,
        pose: Pose,
        reference: Pose,
        rows: NDArray[np.intp],
    ) -> NDArray[np.bool_]:
        """Return for these poses of the hand whether each is met by the bodies of a world, whose root is at a pose."""
        reference_from_object = reference.inverse() @ pose
        turn = reference_from_object.rotation
        turned = digits(Pose([0.0, 0.0, 0.0], reference_from_object.quat_xyzw))
        angles = table.angles.get(turned)
        if angles is None:
            x, y, z, w = reference_from_object.quat_xyzw.tolist()
            if x == y == 0.0 and turned != (none := digits(Pose())):  # about z: it adds to the yaw
                base = table.angles.get(none)
                if base is None:
                    base = table.angles[none] = np.array(
                        [yaw_pitch_roll(rotation) for rotation in table.rotations]
                    )
                angles = base + np.array([2.0 * atan2(z, w), 0.0, 0.0])
                angles[:, 0] -= math.tau * np.round(angles[:, 0] / math.tau)
            else:
                rotations = np.einsum("ij,kjl->kil", turn, table.rotations)
                angles = np.array([yaw_pitch_roll(rotation) for rotation in rotations])
            table.angles[turned] = angles
        if not len(rows):
            return np.zeros(0, dtype=bool)
        points = np.array(reference_from_object.apply(table.offsets[rows]))
        points[table.is_roof[rows]] += _HIGH * np.asarray(
            reference.inverse().rotate([0.0, 0.0, 1.0])
        )
        fingers = np.array([world.fingers(values) for values in table.fingers])
        return world.collides(
            np.hstack([points, angles[table.option[rows]]]), fingers[table.finger[rows]]
        )

    def _pair(self, body: object, other: str, moving: SceneGraph) -> FloatingBody | None:
        """Return the world of a moving body and one object, whose frame is the root; None without shapes."""
        key = body, self._shape(other)
        if key not in self._pairs:
            alone = _alone(self._start, other)
            solid = SceneGraph("still").add_frame("still/object", "still")
            solid = solid.set_shapes("still/object", alone.shapes(other))
            self._pairs[key] = FloatingBody(solid, moving, root="still")
        return self._pairs[key]

    def _table(self, name: str) -> _Table:
        key = self._shape(name)
        if key not in self._tables:
            self._tables[key] = self._made(
                name, self._sampling.grasps(self._start, name, manipulator=self.manipulator)
            )
        return self._tables[key]

    def _made(self, name: str, grasps: Sequence[Grasp]) -> _Table:
        """Return the table of grasps: fully open first, then with little room, then by the fingertips alone."""
        arm, options = self.manipulator, []
        has_fingers = arm.gripper_kind != "suction"
        solids = tuple(attached for attached in self._start.shapes(name) if attached.collision)
        tips: list[Grasp] = []
        for grasp in grasps if has_fingers else ():
            outward = -grasp.object_from_tool.rotate([0.0, 0.0, 1.0])
            depth = reach(solids, outward) - dot(outward, grasp.object_from_tool.translation)
            if depth > _FINGERTIP:
                pose = grasp.object_from_tool @ Pose([0.0, 0.0, _FINGERTIP - depth])
                tips.append(
                    replace(grasp, object_from_tool=pose, name=f"{grasp.name}, by the fingertips")
                )
        if tips and HandCheck.fits(self._start, arm):
            check = HandCheck(self._start, solids, manipulator=arm)
            tips = [
                grasp for grasp, is_good in zip(tips, check.passed(tips), strict=True) if is_good
            ]
        for room, chosen in ((None, grasps), (_NARROW, grasps), (None, tips), (_NARROW, tips)):
            for grasp in chosen:
                opening = grasp.opening if room is None else grasp.width + 2.0 * room
                if opening is not None and (
                    not has_fingers or opening + 2.0 * FINGER_CLEARANCE > arm.width_open
                ):
                    continue
                axis = grasp.object_from_tool.rotate([0.0, 0.0, 1.0]).tolist()
                options.append(
                    GraspOption(grasp, opening, tuple(round(2.0 * value) for value in axis))
                )
        return self._rows(options)

    def _rows(self, options: Sequence[GraspOption]) -> _Table:
        arm = self.manipulator
        fingers: list[Mapping[str, float]] = [dict(arm.gripper_open)]
        known: dict[float, int] = {}
        offsets, option, finger, needed, roof, far = [], [], [], [], [], []

        def index_of(width: float) -> int:
            if width not in known:
                known[width] = len(fingers)
                fingers.append(dict(arm.finger_values(width)))
            return known[width]

        rotations = []
        for number, choice in enumerate(options):
            opened = 0 if choice.opening is None else index_of(choice.opening)
            closed = index_of(choice.grasp.width)
            tip = choice.grasp.object_from_tool @ self._hand_from_tool.inverse()
            rotations.append(np.asarray(tip.rotation))
            for back, at, kind in (
                (0.0, opened, "needed"),
                (0.0, closed, "needed"),
                *((back, opened, "needed") for back in _BACK),
                *((back, opened, "far") for back in _FAR),
                (0.0, closed, "roof"),
            ):
                pose = (
                    choice.grasp.object_from_tool
                    @ Pose([0.0, 0.0, -back])
                    @ self._hand_from_tool.inverse()
                )
                offsets.append(pose.translation)
                option.append(number)
                finger.append(at)
                needed.append(kind == "needed")
                roof.append(kind == "roof")
                far.append(kind == "far")
        return _Table(
            tuple(options),
            np.array(rotations).reshape(-1, 3, 3),
            np.array(offsets).reshape(-1, 3),
            np.array(option, dtype=int),
            fingers,
            np.array(finger, dtype=int),
            np.array(needed, dtype=bool),
            np.array(roof, dtype=bool),
            np.array(far, dtype=bool),
        )

    def _shape(self, name: str) -> int:
        """Return a number that is the same for objects of the same shapes and grasps."""
        if name not in self._shapes:
            solids = tuple(
                (a.shape, a.pose, a.level) for a in self._start.shapes(name) if a.collision
            )
            inertia = self._start.inertia(name)
            weight = () if inertia is None else (inertia.mass, *inertia.center.tolist())
            key = solids, weight, self._sampling.samplers.grasp_sampler(self._start, name)
            self._shapes[name] = self._numbers.setdefault(key, len(self._numbers))
        return self._shapes[name]

    def _radius(self, name: str) -> float:
        key = self._shape(name)
        if key not in self._radii:
            self._radii[key] = _radius(_alone(self._start, name))
        return self._radii[key]


def _alone(scene: SceneGraph, name: str) -> SceneGraph:
    """Return an object as a scene of its own, without what stands on it."""
    found = scene.extract(name)
    for frame in movable_frames(found):
        if frame in found and frame != name:
            found = found.remove_frame(frame, subtree=True)
    return found


def _radius(scene: SceneGraph) -> float:
    """Return the radius in metres of a ball around a scene's root frame that contains all its collision shapes."""
    root, largest, q = scene.root(scene.frame_names[0]), 0.0, scene.zero_configuration()
    for frame in scene.frame_names:
        at = scene.pose(frame, relative_to=root, q=q)
        for attached in scene.shapes(frame):
            if attached.collision:
                (x0, y0, z0), (x1, y1, z1) = attached.shape.bounds
                corners = [[x, y, z] for x in (x0, x1) for y in (y0, y1) for z in (z0, z1)]
                largest = max(largest, float(norms(at.apply(attached.pose.apply(corners))).max()))
    return largest + 0.05  # the fingers may be open


def digits(pose: Pose) -> tuple[float, ...]:
    """Return the numbers of a pose, rounded, as a key."""
    return tuple([round(number, _KEPT) for number in pose.as_array().tolist()])


def _any_of(count: int, owner: NDArray[np.intp], flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each of so many owners whether one of its flags is set."""
    found = np.zeros(count, dtype=bool)
    found[owner[flags]] = True
    return found
