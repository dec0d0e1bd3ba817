"""Feasibility of a grasp for the hand alone: the hand at that pose, the object, and nothing else.

The object is attached to the hand by six joints of its own, so hundreds of grasps are one batch for
the collision checker. By the rules of planner and plan checker, a grasp passes when

* the closed hand touches the object with every contact link, within the hand's contact tolerance,
  and with nothing else;
* the open hand, at the grasp and on the straight way to it, keeps clear of the object;
* the closing fingers neither turn nor push out the object. They would where it is thinner for a
  hand that is turned or shifted a little, as a pad that meets an edge presses beside the other, and
  pads on a wedge slide off. Friction has to bear that. Grasps that hardly tilt the object are taken
  alone where there are any.

Invariants: the result depends on the hand, the object's collision shapes and the grasp alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import dot
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.manipulation.grasps.floating import (
    FLOATING_JOINTS,
    hand_alone,
    with_floating_joints,
    yaw_pitch_roll as yaw_pitch_roll,
)
from tmkit.manipulation.grasps.holding import PAD_RADIUS, torsion_arm
from tmkit.manipulation.grasps.values import Grasp
from tmkit.motion import CollisionWorld
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.robots import Manipulator
from tmkit.spatial import Pose

# metres behind the grasp at which the open hand is checked
_APPROACH = tuple(0.01 * k for k in range(1, 9))
_OBJECT = FLOATING_JOINTS[-1]
# radians by which a hand is turned, metres that its fingers are away then
_TURN, _ROOM = 0.05, 0.002
# metres between object and fingers that open a little, and by which they go back
_NARROW, _BACK = 0.0025, 0.004
_FINE, _MOST = 0.002, 0.1  # radians to which a grasp is turned flush, and by which at most
# tangents of friction that pads need to hold what they press on beside each other
_SELDOM_TURNS, _TURNS = 0.15, 0.5


class HandCheck:
    """A hand (see :meth:`fits`) and an object, by its collision shapes, without the rest of the world."""

    def __init__(
        self, scene: SceneGraph, solids: Sequence[AttachedShape], *, manipulator: Manipulator
    ) -> None:
        self.manipulator = manipulator
        hand, tip = hand_alone(scene, manipulator), manipulator.tip
        assert hand is not None, "a hand that fits has shapes"
        self._tip_from_tool = hand.pose(
            manipulator.tool, relative_to=tip, q=hand.zero_configuration()
        )
        self._scene = with_floating_joints(hand, root=tip, shapes=tuple(solids))
        links, pairs = (
            set(manipulator.contact_links),
            [(a, b) for a, b, _ in CollisionWorld(self._scene).pairs],
        )
        unrelated = {pair: -math.inf for pair in pairs if _OBJECT not in pair}
        pressed = {
            pair: -manipulator.contact_tolerance
            for pair in pairs
            if _OBJECT in pair and links & {*pair}
        }
        self._open = CollisionWorld(self._scene, margin=PLANNING_MARGIN, pair_margins=unrelated)
        self._world = CollisionWorld(
            self._scene, margin=PLANNING_MARGIN, pair_margins=unrelated | pressed
        )

    @staticmethod
    def fits(scene: SceneGraph, manipulator: Manipulator) -> bool:
        """Return whether a scene contains the complete hand: tip, tool, contact links, finger joints, and shapes."""
        tip = manipulator.tip
        if tip not in scene or manipulator.tool not in scene:
            return False
        below = {tip, *scene.subtree(tip)}
        joints = {scene.joint(frame).name for frame in below}
        links = manipulator.contact_links
        return (
            bool(links)
            and {manipulator.tool, *links} <= below
            and set(manipulator.gripper_joints) <= joints
            and all(any(attached.collision for attached in scene.shapes(link)) for link in links)
        )

    def passed(self, grasps: Sequence[Grasp]) -> NDArray[np.bool_]:
        """Return for grasps (n) whether the hand can take them."""
        poses, widths = (
            [grasp.object_from_tool for grasp in grasps],
            [grasp.width for grasp in grasps],
        )
        free = np.ones(len(poses), dtype=bool)
        opened = [self.manipulator.open_finger_values(grasp.opening) for grasp in grasps]
        closed = [self.manipulator.finger_values(width) for width in widths]
        for fingers, back in (
            (opened, 0.0),
            (closed, 0.0),
            *((opened, back) for back in _APPROACH),
        ):
            left = np.flatnonzero(free).tolist()  # most that fail do so at the grasp itself
            if left:
                rows = [self._row(poses[i] @ Pose([0.0, 0.0, -back]), fingers[i]) for i in left]
                world = (
                    self._open
                    if fingers is opened and self.manipulator.gripper_kind == "parallel"
                    else self._world
                )
                free[left] = np.logical_not(world.in_collision_batch(np.array(rows)))
        for i in np.flatnonzero(free).tolist():
            row, links = self._row(poses[i], closed[i]), self.manipulator.contact_links
            contacts = (self._world.distance(link, _OBJECT, row) for link in links)
            tolerance = self.manipulator.contact_tolerance
            free[i] = all(
                contact is not None and contact.distance <= tolerance for contact in contacts
            )
        needed = [
            self._friction(poses[i], widths[i]) if free[i] else (math.inf, math.inf)
            for i in range(len(poses))
        ]
        tilting, all_ways = np.array(needed).reshape(-1, 2).T
        is_held = all_ways <= _TURNS
        is_flush = is_held & (tilting <= _SELDOM_TURNS)
        return is_flush if np.any(is_flush) else is_held

    def _friction(self, object_from_tool: Pose, width: float) -> tuple[float, float]:
        """Return tangents of friction that pads need as they close: against tilting alone, and against all ways to go.

        The tangent against tilting is how far beside each other they press, over their distance.
        The other is the greatest of three: that, the slope of the wedge that they press on, and a
        ratio of arms. These are the arm of their force about the line between them, and that of a
        pad's friction. Fingers of one joint; else 0.
        """
        if self.manipulator.gripper_kind != "parallel":
            return 0.0, 0.0

        def thinner(*moves: Pose) -> float:
            return max(
                0.0, whole - min(self._thickness(object_from_tool @ move, width) for move in moves)
            )

        whole = self._thickness(object_from_tool, width)
        tilted = thinner(*(_turned(turn) for turn in _turns(_TURN))) / (_TURN * max(whole, _ROOM))
        slid = thinner(*(Pose([x, 0.0, z]) for x, z in _turns(_ROOM))) / (2.0 * _ROOM)
        spun = thinner(
            *(Pose.from_rpy([0.0, 0.0, 0.0], [0.0, turn, 0.0]) for turn in (_TURN, -_TURN))
        )
        return tilted, max(tilted, slid, spun / (2.0 * _TURN * torsion_arm(PAD_RADIUS)))

    def settled(self, object_from_tool: Pose, width: float) -> tuple[Pose, float]:
        """Return a grasp turned and moved to where the closing fingers would turn and push the object, and its width.

        Contacts are sampled on a mesh, and its pieces are thicker; a pad that meets an edge turns
        the object until the object is as thin as it gets between the pads. Fingers of one joint;
        else as it is.
        """
        if self.manipulator.gripper_kind != "parallel":
            return object_from_tool, width
        best, step = (0.0, 0.0), _TURN / 2.0
        thinnest = self._thickness(object_from_tool, width)
        while step > _FINE:
            tried = [
                turn
                for x, z in _turns(step)
                if math.hypot(*(turn := (best[0] + x, best[1] + z))) < _MOST
            ]
            thickness, turn = min(
                (self._thickness(object_from_tool @ _turned(turn), width), turn) for turn in tried
            )
            if thickness < thinnest - _FINE * step * _ROOM:
                thinnest, best = thickness, turn
            else:
                step /= 2.0
        return self._fitted(object_from_tool @ _turned(best), width)

    def narrow(self, grasp: Grasp) -> Iterator[Grasp]:
        """Yield a grasp, and one a little further out, with the hand opened by no more than it needs.

        Pads are flat: in a hollow, as the hole of a ring, they meet it with their edges, so the
        grasp is wider.
        """
        for back, where in ((_BACK, "further out, "), (0.0, "")):
            pose, width = self._fitted(
                grasp.object_from_tool @ Pose([0.0, 0.0, -back]), grasp.width
            )
            opening = width + 2.0 * _NARROW
            if self.manipulator.width_closed <= width and opening <= self.manipulator.width_open:
                yield Grasp(
                    pose, width, f"{grasp.name}, {where}opened to {1e3 * opening:.0f} mm", opening
                )

    def _fitted(self, object_from_tool: Pose, width: float) -> tuple[Pose, float]:
        """Return a grasp moved to the middle between where the fingers meet the object, and its width."""
        low, high = self._sides(object_from_tool, width)
        return object_from_tool @ Pose([0.0, (low + high) / 2.0, 0.0]), high - low

    def _thickness(self, object_from_tool: Pose, width: float) -> float:
        low, high = self._sides(object_from_tool, width)
        return high - low

    def _sides(self, object_from_tool: Pose, width: float) -> tuple[float, float]:
        """Return where fingers a little wider apart than ``width`` would meet the object, metres along their axis."""
        opening = min(width + 2.0 * _ROOM, self.manipulator.width_open)
        row = self._row(object_from_tool, self.manipulator.finger_values(opening))
        gaps = [opening / 2.0, opening / 2.0]
        for link in self.manipulator.contact_links:
            if (contact := self._world.distance(link, _OBJECT, row)) is not None:
                side = int(dot(contact.normal, self._tip_from_tool.rotation[:, 1]) < 0.0)
                gaps[side] = min(gaps[side], contact.distance)
        return gaps[0] - opening / 2.0, opening / 2.0 - gaps[1]

    def _row(self, object_from_tool: Pose, fingers: dict[str, float]) -> NDArray[np.float64]:
        """Return the configuration in which the hand is at the object like this."""
        tip_from_object = self._tip_from_tool @ object_from_tool.inverse()
        values = [*tip_from_object.translation, *yaw_pitch_roll(tip_from_object.rotation)]
        return np.asarray(
            self._scene.configuration(
                {**dict(zip(FLOATING_JOINTS, values, strict=True)), **fingers}
            )
        )


def _turns(angle: float) -> tuple[tuple[float, float], ...]:
    return (angle, 0.0), (-angle, 0.0), (0.0, angle), (0.0, -angle)


def _turned(turn: tuple[float, float]) -> Pose:
    """Return a turn about the two axes of the tool across its closing direction, radians."""
    return Pose.from_rpy([0.0, 0.0, 0.0], [turn[0], 0.0, turn[1]])
