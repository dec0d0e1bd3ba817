"""Feasibility of a grasp for the hand and the object alone.

The object is attached to the hand by six joints, so hundreds of grasps are one batch for the
collision checker. By the rules of planner and plan validator, a grasp is feasible if

* the closed hand touches the object with every finger, within the hand's contact tolerance, and
  with no link other than the contact links;
* the open hand, at the grasp and on the straight approach, is free of collisions with the object;
* friction keeps the closing fingers from rotating or displacing the object. They tend to do so if
  the object is thinner for a hand at a slightly different pose. A pad at an edge presses beside the
  opposite pad and rotates the object; pads on a wedge slide off.

If some grasps tilt the object hardly at all, all others are rejected.

Invariants: the result depends on the hand, the object's collision shapes and the grasp alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import dot
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.manipulation.grasps.floating import (
    FLOATING_JOINTS,
    extract_hand,
    with_floating_joints,
    yaw_pitch_roll as yaw_pitch_roll,
)
from tmkit.manipulation.grasps.holding import PAD_RADIUS, torsion_arm
from tmkit.manipulation.grasps.values import Grasp
from tmkit.motion import CollisionWorld
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.robots import Manipulator
from tmkit.robots.hands import fingers_of
from tmkit.robots.mechanisms import moved_frames
from tmkit.spatial import Pose

_APPROACH_DISTANCES = tuple(0.01 * k for k in range(1, 9))
"""Distances behind the grasp at which the open hand is checked [m]."""

_OBJECT = FLOATING_JOINTS[-1]
"""Frame of the object."""

_PROBE_ANGLE = 0.05
"""Rotation of the hand by which the resistance to tilting is measured [rad]."""

_PROBE_DISTANCE = 0.002
"""Shift of the hand for the same purpose, and distance of its fingers from the object [m]."""

_NARROW_CLEARANCE = 0.0025
"""Distance between the object and the fingers of a partly opened hand [m]."""

_NARROW_RETREAT = 0.004
"""Distance of a narrow grasp behind the original grasp [m]."""

_SETTLE_RESOLUTION = 0.002
"""Resolution of the rotation of a settled grasp [rad]."""

_MAX_SETTLE_ANGLE = 0.1
"""Largest rotation of a settled grasp [rad]."""

_BISECTIONS = 14
"""Number of halvings of the range of a jaw, to a hundredth of a millimetre."""

_MAX_CLOSING_STEPS = 30
"""Largest number of steps in which the fingers close."""

_CLOSING_RESOLUTION = 1e-4
"""Change of the width below which the fingers are closed [m]."""

_FLUSH_FRICTION = 0.15
"""Largest friction coefficient needed against tilting in a grasp that is flush."""

_MAX_FRICTION = 0.5
"""Largest friction coefficient needed in any feasible grasp."""


class HandCheck:
    """Feasibility check of grasps for a hand and an object, without the rest of the world.

    Args:
        scene: scene with the complete hand; see :meth:`has_hand`.
        solids: collision shapes of the object.
        robot: arm with the hand.
    """

    def __init__(
        self, scene: SceneGraph, solids: Sequence[AttachedShape], *, robot: Manipulator
    ) -> None:
        self.robot = robot
        hand, tip = extract_hand(scene, robot), robot.tip
        assert hand is not None, "a complete hand has shapes"
        self._tip_from_tool = hand.pose(robot.tool, relative_to=tip, q=hand.zero_configuration())
        self._scene = with_floating_joints(hand, root=tip, shapes=tuple(solids))
        links = set(robot.contact_links)
        self._fingers = fingers_of(self._scene, robot.contact_links)
        moving = moved_frames(self._scene, robot)
        self._moving_links = tuple(link for link in robot.contact_links if link in moving)
        pairs = [(a, b) for a, b, _ in CollisionWorld(self._scene).pairs]
        unrelated = {pair: -math.inf for pair in pairs if _OBJECT not in pair}
        contact_margins = {
            pair: -robot.contact_tolerance for pair in pairs if _OBJECT in pair and links & {*pair}
        }
        # The fixed finger of a jaw touches the object before the jaw closes.
        fixed_margins = {
            pair: margin
            for pair, margin in contact_margins.items()
            if robot.gripper_kind == "jaw" and moving.isdisjoint(pair)
        }
        self._open_world = CollisionWorld(
            self._scene, margin=PLANNING_MARGIN, pair_margins=unrelated | fixed_margins
        )
        self._world = CollisionWorld(
            self._scene, margin=PLANNING_MARGIN, pair_margins=unrelated | contact_margins
        )

    @staticmethod
    def has_hand(scene: SceneGraph, robot: Manipulator) -> bool:
        """Return whether a scene contains the complete hand of an arm.

        A complete hand has tip, tool, contact links with collision shapes, and finger joints.

        Args:
            scene: scene that may contain the arm.
            robot: arm with the hand.
        """
        tip = robot.tip
        if tip not in scene or robot.tool not in scene:
            return False
        hand_frames = {tip, *scene.subtree(tip)}
        joints = {scene.joint(frame).name for frame in hand_frames}
        links = robot.contact_links
        return (
            bool(links)
            and {robot.tool, *links} <= hand_frames
            and set(robot.gripper_joints) <= joints
            and all(any(attached.collision for attached in scene.shapes(link)) for link in links)
        )

    def are_feasible(self, grasps: Sequence[Grasp]) -> NDArray[np.bool_]:
        """Return for each grasp (n,) whether it is feasible for the hand."""
        poses = [grasp.object_from_tool for grasp in grasps]
        widths = [grasp.width for grasp in grasps]
        is_free = np.ones(len(poses), dtype=bool)
        open_values = [self.robot.open_finger_values(grasp.opening) for grasp in grasps]
        closed_values = [self.robot.finger_values(width) for width in widths]
        open_world = self._open_world if self.robot.is_two_fingered else self._world

        # Check the grasp first, where most candidates fail, then the approach.
        checks = [(open_values, open_world, 0.0), (closed_values, self._world, 0.0)]
        checks += [(open_values, open_world, distance) for distance in _APPROACH_DISTANCES]
        for values, world, distance in checks:
            indices = np.flatnonzero(is_free).tolist()
            if indices:
                retreat = Pose([0.0, 0.0, -distance])
                rows = [self._configuration(poses[i] @ retreat, values[i]) for i in indices]
                is_free[indices] = np.logical_not(world.in_collision_batch(np.array(rows)))
        for i in np.flatnonzero(is_free).tolist():
            is_free[i] = self._is_in_contact(self._configuration(poses[i], closed_values[i]))

        frictions = [
            self._friction_demand(poses[i], widths[i]) if is_free[i] else (math.inf, math.inf)
            for i in range(len(poses))
        ]
        tilt_friction, max_friction = np.array(frictions).reshape(-1, 2).T
        is_held = max_friction <= _MAX_FRICTION
        is_flush = is_held & (tilt_friction <= _FLUSH_FRICTION)
        return is_flush if np.any(is_flush) else is_held

    def _is_in_contact(self, row: NDArray[np.float64]) -> bool:
        """Return whether all fingers touch the object in a configuration (n_joints,)."""
        tolerance = self.robot.contact_tolerance
        return all(self._distance(finger, row) <= tolerance for finger in self._fingers)

    def _distance(self, links: Sequence[str], row: NDArray[np.float64]) -> float:
        """Return the smallest distance of links to the object in a configuration [m]."""
        contacts = (self._world.distance(link, _OBJECT, row) for link in links)
        return min((contact.distance for contact in contacts if contact), default=math.inf)

    def close_jaw(self, grasps: Sequence[Grasp]) -> list[Grasp]:
        """Return grasps with the widths at which a jaw touches the object.

        The fingers of a jaw are not parallel, so the jaw touches the object beside the tool point.
        Other hands keep the widths. O(number of grasps) distances.

        Args:
            grasps: grasps of the object.
        """
        if self.robot.gripper_kind != "jaw":
            return list(grasps)
        return [
            replace(grasp, width=self._touching_width(grasp.object_from_tool)) for grasp in grasps
        ]

    def _touching_width(self, object_from_tool: Pose) -> float:
        """Return the smallest width at which the jaw does not overlap with the object [m]."""
        low, high = self.robot.width_closed, self.robot.width_open
        for _ in range(_BISECTIONS):
            width = (low + high) / 2.0
            row = self._configuration(object_from_tool, self.robot.finger_values(width))
            is_overlapping = self._distance(self._moving_links, row) < 0.0
            low, high = (width, high) if is_overlapping else (low, width)
        return high

    def _friction_demand(self, object_from_tool: Pose, width: float) -> tuple[float, float]:
        """Return the friction coefficients that closing pads need.

        The first resists tilting: the offset between the forces of the two pads, divided by their
        distance. The second is the largest of three values: the first, the slope of the wedge
        between the pads, and the ratio of two lever arms. These are the arm of the pads' force
        about the line between them, and the arm of a pad's friction.

        Args:
            object_from_tool: pose of the tool relative to the object.
            width: distance between the fingers [m].

        Returns:
            Friction against tilting alone, and against all motions. 0 for a suction cup.
        """
        if not self.robot.is_two_fingered:
            return 0.0, 0.0
        thickness = self._thickness(object_from_tool, width)

        def thickness_loss(displacements: list[Pose]) -> float:
            """Return the largest loss of thickness by displacements of the hand [m]."""
            poses = (object_from_tool @ displacement for displacement in displacements)
            return max(0.0, thickness - min(self._thickness(pose, width) for pose in poses))

        tilts = [_tilt(angles) for angles in _neighbours(_PROBE_ANGLE)]
        shifts = [Pose([x, 0.0, z]) for x, z in _neighbours(_PROBE_DISTANCE)]
        spins = [
            Pose.from_rpy([0.0, 0.0, 0.0], [0.0, angle, 0.0])
            for angle in (_PROBE_ANGLE, -_PROBE_ANGLE)
        ]
        lever = _PROBE_ANGLE * max(thickness, _PROBE_DISTANCE)
        tilt_friction = thickness_loss(tilts) / lever
        wedge_slope = thickness_loss(shifts) / (2.0 * _PROBE_DISTANCE)
        arm_ratio = thickness_loss(spins) / (2.0 * _PROBE_ANGLE * torsion_arm(PAD_RADIUS))
        return tilt_friction, max(tilt_friction, wedge_slope, arm_ratio)

    def settle(self, object_from_tool: Pose, width: float) -> tuple[Pose, float]:
        """Return a grasp at the pose to which the closing fingers move the object.

        Contacts are sampled on a mesh, whose pieces are thicker. A pad at an edge rotates the
        object until its thickness between the pads is minimal.

        Args:
            object_from_tool: pose of the tool relative to the object.
            width: distance between the fingers [m].

        Returns:
            object_from_tool and width of the settled grasp. Unchanged for a suction cup.
        """
        if not self.robot.is_two_fingered:
            return object_from_tool, width
        best, step = (0.0, 0.0), _PROBE_ANGLE / 2.0
        min_thickness = self._thickness(object_from_tool, width)
        while step > _SETTLE_RESOLUTION:
            candidates = [(best[0] + x, best[1] + z) for x, z in _neighbours(step)]
            thickness, angles = min(
                (self._thickness(object_from_tool @ _tilt(angles), width), angles)
                for angles in candidates
                if math.hypot(*angles) < _MAX_SETTLE_ANGLE
            )
            if thickness < min_thickness - _SETTLE_RESOLUTION * step * _PROBE_DISTANCE:
                min_thickness, best = thickness, angles
            else:
                step /= 2.0
        return self._centre_grasp(object_from_tool @ _tilt(best), width)

    def close(self, object_from_tool: Pose) -> tuple[Pose, float] | None:
        """Return the grasp to which the fingers close from a pose of the open hand.

        Each finger closes up to its distance from the object, again until both are in contact. The
        first contact moves the object, so the grasp is centred between the contacts.

        Args:
            object_from_tool: pose of the tool relative to the object.

        Returns:
            object_from_tool and width [m], or None if the object is not between the fingers.
        """
        pose, width = object_from_tool, self.robot.width_open
        for _ in range(_MAX_CLOSING_STEPS):
            pose, closed_width = self._centre_grasp(pose, width)
            if not self.robot.width_closed < closed_width < self.robot.width_open:
                return None
            is_closed, width = width - closed_width < _CLOSING_RESOLUTION, closed_width
            if is_closed:
                return pose, width
        return None

    def narrow_grasps(self, grasp: Grasp) -> Iterator[Grasp]:
        """Yield a grasp 4 mm further out, and the grasp itself, with a partly opened hand.

        Pads are flat. In a cavity such as the hole of a ring, their edges touch the object, so the
        grasp is wider.

        Args:
            grasp: grasp with a fully opened hand.
        """
        for distance, prefix in ((_NARROW_RETREAT, "further out, "), (0.0, "")):
            retreated = grasp.object_from_tool @ Pose([0.0, 0.0, -distance])
            pose, width = self._centre_grasp(retreated, grasp.width)
            opening = width + 2.0 * _NARROW_CLEARANCE
            if self.robot.width_closed <= width and opening <= self.robot.width_open:
                name = f"{grasp.name}, {prefix}opened to {1e3 * opening:.0f} mm"
                yield Grasp(pose, width, name, opening)

    def _centre_grasp(self, object_from_tool: Pose, width: float) -> tuple[Pose, float]:
        """Return a grasp centred between the contacts of both fingers, and its width [m]."""
        low, high = self._contact_offsets(object_from_tool, width)
        offset = (low + high) / 2.0 - self.robot.finger_offset(high - low)
        return object_from_tool @ Pose([0.0, offset, 0.0]), high - low

    def _thickness(self, object_from_tool: Pose, width: float) -> float:
        """Return the distance between the contacts of both fingers [m]."""
        low, high = self._contact_offsets(object_from_tool, width)
        return high - low

    def _contact_offsets(self, object_from_tool: Pose, width: float) -> tuple[float, float]:
        """Return the contacts of both fingers with the object, along the tool's y axis [m].

        Args:
            object_from_tool: pose of the tool relative to the object.
            width: distance between the fingers [m]; contacts 2 mm beyond are detected.
        """
        opening = min(width + 2.0 * _PROBE_DISTANCE, self.robot.width_open)
        row = self._configuration(object_from_tool, self.robot.finger_values(opening))
        gaps = [opening / 2.0, opening / 2.0]
        for link in self.robot.contact_links:
            if (contact := self._world.distance(link, _OBJECT, row)) is not None:
                side = int(dot(contact.normal, self._tip_from_tool.rotation[:, 1]) < 0.0)
                gaps[side] = min(gaps[side], contact.distance)
        middle = self.robot.finger_offset(opening)
        return middle - opening / 2.0 + gaps[0], middle + opening / 2.0 - gaps[1]

    def _configuration(
        self, object_from_tool: Pose, fingers: dict[str, float]
    ) -> NDArray[np.float64]:
        """Return the configuration (n_joints,) of the hand at a grasp.

        Args:
            object_from_tool: pose of the tool relative to the object.
            fingers: finger joint values by name [rad or m].
        """
        tip_from_object = self._tip_from_tool @ object_from_tool.inverse()
        values = [*tip_from_object.translation, *yaw_pitch_roll(tip_from_object.rotation)]
        joint_values = dict(zip(FLOATING_JOINTS, values, strict=True)) | fingers
        return np.asarray(self._scene.configuration(joint_values))


def _neighbours(step: float) -> tuple[tuple[float, float], ...]:
    """Return the four points at a distance from the origin, along both axes."""
    return (step, 0.0), (-step, 0.0), (0.0, step), (0.0, -step)


def _tilt(angles: tuple[float, float]) -> Pose:
    """Return the rotation about the tool's x and z axes by two angles [rad]."""
    return Pose.from_rpy([0.0, 0.0, 0.0], [angles[0], 0.0, angles[1]])
