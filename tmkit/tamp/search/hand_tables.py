"""Collision tables of grasps for a hand without its arm, valid in all versions of a scene.

An object has *grasp options*: a grasp, possibly by the fingertips alone, with an opening of the
fingers. At a pose of the object, fixed bodies rule options out, and movable objects that collide
with the hand are *blockers*. Both are computed once for each pair of poses and reused in every
version of the scene.

Invariants: results depend only on shapes and poses. Blockers are bits, one for each movable object,
in the order of the start scene.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import atan2, dot, norm, norms
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import PickPlaceOptions
from tmkit.manipulation.grasps.floating import FloatingBody, extract_hand, static_bodies
from tmkit.manipulation.grasps.hand import HandCheck, yaw_pitch_roll
from tmkit.manipulation.grasps.values import FINGER_CLEARANCE, Grasp
from tmkit.manipulation.samplers import SeededSamplers
from tmkit.motion.regions.solids import reach
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.mechanisms import moved_frames, remove_movable
from tmkit.spatial import Pose

_REQUIRED_BACK_OFFSETS = (0.006, 0.012)
"""Distances behind the grasp at which the open hand must be free [m]."""

_FAR_BACK_OFFSETS = (0.06, 0.12, 0.2)
"""Distances behind the grasp at which the open hand should be free [m]."""

_ROOF_HEIGHT = 0.15
"""Height above the grasp up to which a collision of the closed hand indicates a roof [m]."""

_FINGERTIP_DEPTH = 0.004
"""Distance of the tool point from the edge of an object held by the fingertips [m]."""

_NARROW_CLEARANCE = 0.001
"""Distance between an object and either finger with a narrow opening [m]."""

_FINGER_ALLOWANCE = 0.05
"""Addition to the radius of a body, since its fingers may be open [m]."""

_KEY_DIGITS = 9
"""Decimal places to which poses are compared."""


@dataclass(frozen=True, eq=False)
class GraspOption:
    """A grasp with an opening of the fingers.

    Attributes:
        grasp: the grasp.
        opening: gripper width before the grasp [m]; None for fully open.
        approach: rounded approach axis, to vary the direction.
    """

    grasp: Grasp
    opening: float | None
    approach: tuple[int, ...]

    def motion(self, *, is_far: bool, has_roof: bool) -> PickPlaceOptions:
        """Return the motion of the hand to and from the grasp.

        Args:
            is_far: whether the lines are long, for example out of a shelf.
            has_roof: whether something is above the grasp, so the lift is short.
        """
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
    """Options of an object, with all checked hand poses relative to the object.

    Attributes:
        options: (n,) options.
        rotations: (n, 3, 3) rotation of the hand by option.
        offsets: (m, 3) position of the hand by hand pose [m].
        option: (m,) index of the option by hand pose.
        fingers: distinct finger joint values.
        finger: (m,) index into ``fingers`` by hand pose.
        is_required: (m,) whether a collision at the hand pose rules the option out.
        is_roof: (m,) whether the hand pose is raised by ``_ROOF_HEIGHT`` to detect a roof.
        is_far: (m,) whether the hand pose is far behind the grasp.
        angles: (n, 3) yaw, pitch and roll of the hand, by rotation of the object [rad].
    """

    options: tuple[GraspOption, ...]
    rotations: NDArray[np.float64]
    offsets: NDArray[np.float64]
    option: NDArray[np.intp]
    fingers: list[Mapping[str, float]]
    finger: NDArray[np.intp]
    is_required: NDArray[np.bool_]
    is_roof: NDArray[np.bool_]
    is_far: NDArray[np.bool_]
    angles: dict[tuple[float, ...], NDArray[np.float64]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class StaticClearance:
    """Clearance of all options of an object at one pose among the fixed bodies.

    Attributes:
        is_free: (n,) whether the hand is free.
        tightness: (n,) number of the three poses far behind the grasp at which it collides.
        has_roof: (n,) whether a body is above the hand.
    """

    is_free: NDArray[np.bool_]
    tightness: NDArray[np.intp]
    has_roof: NDArray[np.bool_]


class HandTables:
    """Collision tables of one arm's hand in all versions of a scene.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration at the start. Mechanisms are assumed to stay there.
        robot: arm with the hand.
        sampling: sampler of grasps.

    Attributes:
        objects: movable objects, in the order of their bits.
        is_usable: whether the arm has a hand with collision shapes, without which no table exists.
    """

    def __init__(
        self, scene: SceneGraph, q: Configuration, *, robot: Manipulator, sampling: SeededSamplers
    ) -> None:
        self.robot, self._sampling, self._start = robot, sampling, scene
        self.objects = tuple(movable_frames(scene))
        self._bits = {name: 1 << k for k, name in enumerate(self.objects)}
        hand, fixed_bodies = extract_hand(scene, robot), static_bodies(scene, robot)
        self.is_usable = hand is not None and fixed_bodies is not None
        if hand is None or fixed_bodies is None:
            return
        self._hand = hand
        self._hand_from_tool = hand.pose(
            robot.tool, relative_to=hand.root(robot.tool), q=hand.zero_configuration()
        )
        joints = {name: float(value) for name, value in zip(scene.joint_names, q, strict=True)}
        arm_frames = moved_frames(scene, robot)
        for name in self.objects:
            # An object in the hand is not a fixed body.
            if name in fixed_bodies and scene.parent(name) in arm_frames:
                fixed_bodies = fixed_bodies.remove_frame(name, subtree=True)
        root = fixed_bodies.root(fixed_bodies.frame_names[0])
        self._fixed_world = FloatingBody(fixed_bodies, hand, root=root, fixed=joints)
        self._tables: dict[object, _Table] = {}
        self._pair_worlds: dict[object, FloatingBody | None] = {}
        self._clearances: dict[object, StaticClearance] = {}
        self._blocked_options: dict[object, NDArray[np.bool_]] = {}
        self._overlaps: dict[object, bool] = {}
        self._radii: dict[object, float] = {}
        self._shape_numbers: dict[str, int] = {}
        self._numbers: dict[object, int] = {}
        self._hand_radius = _radius(hand)

    def names(self, bits: int) -> list[str]:
        """Return the objects of a set of bits."""
        return [name for name in self.objects if self._bits[name] & bits]

    def bit(self, name: str) -> int:
        """Return the bit of an object."""
        return self._bits[name]

    def options(self, name: str) -> tuple[GraspOption, ...]:
        """Return the grasp options of an object."""
        return self._table(name).options

    def static_clearance(self, name: str, pose: Pose) -> StaticClearance:
        """Return the clearance of an object's options at root_from_object among fixed bodies."""
        key = self._shape_number(name), pose_key(pose)
        if key not in self._clearances:
            table = self._table(name)
            rows = np.arange(len(table.option))
            is_colliding = self._check_collisions(self._fixed_world, table, pose, Pose(), rows)
            count = len(table.options)
            self._clearances[key] = StaticClearance(
                ~_any_by_option(count, table.option, is_colliding & table.is_required),
                np.bincount(table.option[is_colliding & table.is_far], minlength=count),
                _any_by_option(count, table.option, is_colliding & table.is_roof),
            )
        return self._clearances[key]

    def widest_option(
        self, name: str, option: int, pose: Pose, other_poses: Mapping[str, Pose]
    ) -> int:
        """Return the option of the same grasp with the widest opening that is free at a pose.

        Fingers that open by less than a millimetre may drag the object as they retreat.

        Args:
            name: frame of the object.
            option: index of an option that is free there.
            pose: root_from_object.
            other_poses: root_from_object of the other objects.
        """
        if self.options(name)[option].opening is None:
            return option
        is_free = self.static_clearance(name, pose).is_free
        return self.widest_free_option(
            name, option, is_free, self.blockers(name, pose, other_poses)
        )

    def widest_free_option(
        self, name: str, option: int, is_free: NDArray[np.bool_], blockers: Sequence[int]
    ) -> int:
        """Return :meth:`widest_option` for a known clearance and known blockers.

        Args:
            name: frame of the object.
            option: index of an option that is free there.
            is_free: (n,) result of :meth:`static_clearance`.
            blockers: result of :meth:`blockers`.
        """
        options = self.options(name)
        if options[option].opening is None:
            return option
        open_options = (
            k
            for k, candidate in enumerate(options)
            if candidate.grasp is options[option].grasp and candidate.opening is None
        )
        return next((k for k in open_options if is_free[k] and not blockers[k]), option)

    def blockers(self, name: str, pose: Pose, other_poses: Mapping[str, Pose]) -> list[int]:
        """Return the bits of the objects that collide with the hand, by option of an object.

        The bits are 0 for options that collide with fixed bodies
        (:attr:`StaticClearance.is_free`).

        Args:
            name: frame of the object.
            pose: root_from_object.
            other_poses: root_from_object of the other objects, except those in the hand.
        """
        bits = [0] * len(self.options(name))
        for other in self._find_near_objects(name, pose, other_poses):
            is_blocked = self._is_blocked_by(name, pose, other, other_poses[other])
            for option in np.flatnonzero(is_blocked).tolist():
                bits[option] |= self._bits[other]
        return bits

    def overlapping_objects(
        self, name: str, pose: Pose, other_poses: Mapping[str, Pose], *, support: str
    ) -> int:
        """Return the bits of the objects that overlap with an object at root_from_object.

        Args:
            name: frame of the object.
            pose: root_from_object.
            other_poses: root_from_object of the other objects.
            support: frame of the object's support, which is ignored.
        """
        bits = 0
        for other, other_pose in other_poses.items():
            if other not in (name, support) and self._overlaps_with(name, pose, other, other_pose):
                bits |= self._bits[other]
        return bits

    # ----------------------------------------------------------------------------- collision checks

    def _find_near_objects(
        self, name: str, pose: Pose, other_poses: Mapping[str, Pose]
    ) -> list[str]:
        """Return the other objects within reach of a hand at an object, by bounding spheres."""
        names = [other for other in other_poses if other != name]
        if not names:
            return names
        points = np.array([other_poses[other].translation for other in names])
        max_distances = (
            self._hand_radius
            + self._radius_of(name)
            + _ROOF_HEIGHT
            + np.array([self._radius_of(other) for other in names])
        )
        is_near = norms(points - pose.translation) <= max_distances
        return [names[index] for index in np.flatnonzero(is_near).tolist()]

    def _is_blocked_by(
        self, name: str, pose: Pose, other: str, other_pose: Pose
    ) -> NDArray[np.bool_]:
        """Return (n,) whether another object collides with the hand, by option of an object."""
        shapes, table = (self._shape_number(name), self._shape_number(other)), self._table(name)
        is_blocked = np.zeros(len(table.options), dtype=bool)
        key = shapes, pose_key(pose), pose_key(other_pose)
        if key not in self._blocked_options:
            world = self._pair_world("hand", other, self._hand)
            is_free = self.static_clearance(name, pose).is_free[table.option]
            rows = np.flatnonzero(table.is_required & is_free)
            if world is not None and len(rows):
                is_colliding = self._check_collisions(world, table, pose, other_pose, rows)
                is_blocked = _any_by_option(len(is_blocked), table.option[rows], is_colliding)
            self._blocked_options[key] = is_blocked
        return self._blocked_options[key]

    def _overlaps_with(self, name: str, pose: Pose, other: str, other_pose: Pose) -> bool:
        max_distance = self._radius_of(name) + self._radius_of(other)
        if norm(pose.translation - other_pose.translation) > max_distance:
            return False
        numbers = self._shape_number(name), self._shape_number(other)
        key = *numbers, pose_key(pose), pose_key(other_pose)
        if key not in self._overlaps:
            body = _extract_object(self._start, name)
            world = self._pair_world(self._shape_number(name), other, body)
            other_from_object = other_pose.inverse() @ pose
            self._overlaps[key] = world is not None and world.collides_at(other_from_object)
        return self._overlaps[key]

    def _check_collisions(
        self,
        world: FloatingBody,
        table: _Table,
        pose: Pose,
        reference: Pose,
        rows: NDArray[np.intp],
    ) -> NDArray[np.bool_]:
        """Return whether the hand collides with the bodies of a world.

        Args:
            world: the bodies.
            table: hand poses relative to the object.
            pose: root_from_object.
            reference: root_from_reference, the pose of the root frame of ``world``.
            rows: (k,) indices of the hand poses to check.

        Returns:
            (k,) flags.
        """
        if not len(rows):
            return np.zeros(0, dtype=bool)
        reference_from_object = reference.inverse() @ pose
        angles = _hand_angles(table, reference_from_object)
        points = np.array(reference_from_object.apply(table.offsets[rows]))
        up = np.asarray(reference.inverse().rotate([0.0, 0.0, 1.0]))
        points[table.is_roof[rows]] += _ROOF_HEIGHT * up
        fingers = np.array([world.finger_configuration(values) for values in table.fingers])
        return world.collides(
            np.hstack([points, angles[table.option[rows]]]), fingers[table.finger[rows]]
        )

    def _pair_world(self, body: object, other: str, moving_body: SceneGraph) -> FloatingBody | None:
        """Return the world of a moving body and one object, whose frame is the root.

        Args:
            body: key of the moving body.
            other: frame of the object.
            moving_body: the moving body.
        """
        key = body, self._shape_number(other)
        if key not in self._pair_worlds:
            object_scene = _extract_object(self._start, other)
            solid = SceneGraph("still").add_frame("still/object", "still")
            solid = solid.set_shapes("still/object", object_scene.shapes(other))
            self._pair_worlds[key] = FloatingBody(solid, moving_body, root="still")
        return self._pair_worlds[key]

    # ----------------------------------------------------------------------------- tables of grasps

    def _table(self, name: str) -> _Table:
        key = self._shape_number(name)
        if key not in self._tables:
            grasps = self._sampling.grasps(self._start, name, robot=self.robot)
            self._tables[key] = self._make_table(self._make_options(name, grasps))
        return self._tables[key]

    def _make_options(self, name: str, grasps: Sequence[Grasp]) -> list[GraspOption]:
        """Return the options: fully open, with narrow openings, then the same by the fingertips."""
        arm, options = self.robot, []
        fingertip_grasps: list[Grasp] = []
        if arm.is_two_fingered:
            fingertip_grasps = self._make_fingertip_grasps(name, grasps)
        for clearance, group in (
            (None, grasps),
            (_NARROW_CLEARANCE, grasps),
            (None, fingertip_grasps),
            (_NARROW_CLEARANCE, fingertip_grasps),
        ):
            for grasp in group:
                opening = grasp.opening if clearance is None else grasp.width + 2.0 * clearance
                if opening is not None and (
                    not arm.is_two_fingered or opening + 2.0 * FINGER_CLEARANCE > arm.width_open
                ):
                    continue
                axis = grasp.object_from_tool.rotate([0.0, 0.0, 1.0]).tolist()
                approach = tuple(round(2.0 * value) for value in axis)
                options.append(GraspOption(grasp, opening, approach))
        return options

    def _make_fingertip_grasps(self, name: str, grasps: Sequence[Grasp]) -> list[Grasp]:
        """Return grasps moved back so that the fingertips alone hold the object."""
        arm = self.robot
        solids = tuple(attached for attached in self._start.shapes(name) if attached.collision)
        fingertip_grasps: list[Grasp] = []
        for grasp in grasps:
            outward = -grasp.object_from_tool.rotate([0.0, 0.0, 1.0])
            depth = reach(solids, outward) - dot(outward, grasp.object_from_tool.translation)
            if depth > _FINGERTIP_DEPTH:
                pose = grasp.object_from_tool @ Pose([0.0, 0.0, _FINGERTIP_DEPTH - depth])
                fingertip_name = f"{grasp.name}, by the fingertips"
                fingertip_grasps.append(replace(grasp, object_from_tool=pose, name=fingertip_name))
        if not fingertip_grasps or not HandCheck.has_hand(self._start, arm):
            return fingertip_grasps
        check = HandCheck(self._start, solids, robot=arm)
        fingertip_grasps = check.close_jaw(fingertip_grasps)
        return list(itertools.compress(fingertip_grasps, check.are_feasible(fingertip_grasps)))

    def _make_table(self, options: Sequence[GraspOption]) -> _Table:
        """Return the hand poses of all options."""
        arm, tool_from_hand = self.robot, self._hand_from_tool.inverse()
        fingers: list[Mapping[str, float]] = [dict(arm.gripper_open)]
        indices_by_width: dict[float, int] = {}

        def index_of(width: float) -> int:
            if width not in indices_by_width:
                indices_by_width[width] = len(fingers)
                fingers.append(dict(arm.finger_values(width)))
            return indices_by_width[width]

        rotations = []
        rows: list[tuple[NDArray[np.float64], int, int, str]] = []
        for number, option in enumerate(options):
            grasp = option.grasp
            open_index = 0 if option.opening is None else index_of(option.opening)
            closed_index = index_of(grasp.width)
            rotations.append(np.asarray((grasp.object_from_tool @ tool_from_hand).rotation))
            for offset, finger, kind in (
                (0.0, open_index, "required"),
                (0.0, closed_index, "required"),
                *((offset, open_index, "required") for offset in _REQUIRED_BACK_OFFSETS),
                *((offset, open_index, "far") for offset in _FAR_BACK_OFFSETS),
                (0.0, closed_index, "roof"),
            ):
                pose = grasp.object_from_tool @ Pose([0.0, 0.0, -offset]) @ tool_from_hand
                rows.append((pose.translation, number, finger, kind))
        kinds = [kind for *_, kind in rows]
        return _Table(
            tuple(options),
            np.array(rotations).reshape(-1, 3, 3),
            np.array([position for position, *_ in rows]).reshape(-1, 3),
            np.array([number for _, number, _, _ in rows], dtype=int),
            fingers,
            np.array([finger for _, _, finger, _ in rows], dtype=int),
            np.array([kind == "required" for kind in kinds], dtype=bool),
            np.array([kind == "roof" for kind in kinds], dtype=bool),
            np.array([kind == "far" for kind in kinds], dtype=bool),
        )

    def _shape_number(self, name: str) -> int:
        """Return a number that is equal for objects with the same shapes and grasps."""
        if name not in self._shape_numbers:
            solids = tuple(
                (attached.shape, attached.pose, attached.level)
                for attached in self._start.shapes(name)
                if attached.collision
            )
            inertia = self._start.inertia(name)
            weight = () if inertia is None else (inertia.mass, *inertia.center.tolist())
            key = solids, weight, self._sampling.samplers.grasp_sampler(self._start, name)
            self._shape_numbers[name] = self._numbers.setdefault(key, len(self._numbers))
        return self._shape_numbers[name]

    def _radius_of(self, name: str) -> float:
        key = self._shape_number(name)
        if key not in self._radii:
            self._radii[key] = _radius(_extract_object(self._start, name))
        return self._radii[key]


def _hand_angles(table: _Table, reference_from_object: Pose) -> NDArray[np.float64]:
    """Return (n, 3) yaw, pitch and roll of the hand in a reference frame, by option [rad]."""
    quaternion = reference_from_object.quat_xyzw
    key = pose_key(Pose([0.0, 0.0, 0.0], quaternion))
    angles = table.angles.get(key)
    if angles is not None:
        return angles
    identity_key = pose_key(Pose())
    x, y, z, w = quaternion.tolist()
    if x == y == 0.0 and key != identity_key:
        # A rotation about z adds to the yaw.
        identity_angles = table.angles.get(identity_key)
        if identity_angles is None:
            identity_angles = np.array([yaw_pitch_roll(rotation) for rotation in table.rotations])
            table.angles[identity_key] = identity_angles
        angles = identity_angles + np.array([2.0 * atan2(z, w), 0.0, 0.0])
        angles[:, 0] -= math.tau * np.round(angles[:, 0] / math.tau)
    else:
        rotations = np.einsum("ij,kjl->kil", reference_from_object.rotation, table.rotations)
        angles = np.array([yaw_pitch_roll(rotation) for rotation in rotations])
    table.angles[key] = angles
    return angles


def _extract_object(scene: SceneGraph, name: str) -> SceneGraph:
    """Return the scene of one object without the movable objects on it."""
    return remove_movable(scene.extract(name), keep=(name,))


def _radius(scene: SceneGraph) -> float:
    """Return the radius of a sphere around the root that contains all collision shapes [m]."""
    root, radius, q = scene.root(scene.frame_names[0]), 0.0, scene.zero_configuration()
    for frame in scene.frame_names:
        root_from_frame = scene.pose(frame, relative_to=root, q=q)
        for attached in scene.shapes(frame):
            if attached.collision:
                (x0, y0, z0), (x1, y1, z1) = attached.shape.bounds
                corners = [[x, y, z] for x in (x0, x1) for y in (y0, y1) for z in (z0, z1)]
                points = root_from_frame.apply(attached.pose.apply(corners))
                radius = max(radius, float(norms(points).max()))
    return radius + _FINGER_ALLOWANCE


def pose_key(pose: Pose) -> tuple[float, ...]:
    """Return the rounded numbers of a pose as a key."""
    return tuple([round(number, _KEY_DIGITS) for number in pose.as_array().tolist()])


def _any_by_option(
    count: int, options: NDArray[np.intp], flags: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return (count,) whether any flag of each option is set.

    Args:
        count: number of options.
        options: (m,) option of each flag.
        flags: (m,) flags.
    """
    is_set = np.zeros(count, dtype=bool)
    is_set[options[flags]] = True
    return is_set
