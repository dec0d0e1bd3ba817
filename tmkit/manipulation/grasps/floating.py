"""Batched collision checks of a free-floating hand or object among static bodies.

The floating body has six joints, so a pose is a configuration. For a hand without its arm, a check
takes microseconds instead of the tenths of a millisecond of inverse kinematics.

Invariants: the result depends on the shapes, the poses and the joint values alone, with the same
    bits on every CPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit._core import Contact
from tmkit._support.elementary import atan2, cos
from tmkit.graph import AttachedShape, Continuous, Prismatic, SceneGraph
from tmkit.motion import CollisionWorld
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial import Pose

FLOATING_JOINTS = tuple(f"floating/{name}" for name in ("x", "y", "z", "yaw", "pitch", "roll"))
"""Names of the joints, and of the frames, of the floating body."""

_AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 1), (0, 1, 0), (1, 0, 0))
"""Axes of these joints."""


def extract_hand(scene: SceneGraph, robot: Manipulator) -> SceneGraph | None:
    """Return the hand of an arm without held objects, as a separate scene, or None without shapes.

    A hand with fingers starts at the tip. A suction cup starts at the arm's last joint, since the
    flange is wider than the pad.

    Args:
        scene: scene with the arm.
        robot: arm with the hand.
    """
    root = robot.tip
    if robot.gripper_kind == "suction":
        chain = (root, *scene.ancestors(root))
        root = next((frame for frame in chain if scene.joint(frame).name in robot.joints), root)
    hand = scene.extract(root)
    for frame in movable_frames(hand):
        if frame in hand and frame != root:
            hand = hand.remove_frame(frame, subtree=True)
    has_shapes = any(
        attached.collision for frame in hand.frame_names for attached in hand.shapes(frame)
    )
    return hand if has_shapes else None


def static_bodies(scene: SceneGraph, robot: Manipulator) -> SceneGraph | None:
    """Return a scene without an arm and without the shapes of movable objects.

    Args:
        scene: scene with the arm.
        robot: arm to remove.

    Returns:
        The scene, or None if no joint of the arm moves its tool.
    """
    chain = [*reversed(scene.ancestors(robot.tool)), robot.tool]
    links = [frame for frame in chain if scene.joint(frame).name in robot.joints]
    if not links:
        return None
    static_scene = scene.remove_frame(links[0], subtree=True)
    for frame in movable_frames(static_scene):
        static_scene = static_scene.set_shapes(frame, ())
    return static_scene


def with_floating_joints(
    bodies: SceneGraph, *, root: str, shapes: Sequence[AttachedShape] = ()
) -> SceneGraph:
    """Return bodies extended by six joints of a floating body.

    Args:
        bodies: scene of static bodies.
        root: frame of the bodies, relative to which the joints move the floating body.
        shapes: shapes of the floating body.
    """
    parent = root
    with bodies.edit() as edit:
        for name, axis in zip(FLOATING_JOINTS, _AXES, strict=True):
            joint = (
                Prismatic(axis, name=name)
                if name in FLOATING_JOINTS[:3]
                else Continuous(axis, name=name)
            )
            frame_shapes = shapes if name == FLOATING_JOINTS[-1] else ()
            edit.add_frame(name, parent, joint=joint, shapes=frame_shapes)
            parent = name
    return edit.finish()


class FloatingBody:
    """A floating body among static bodies.

    Args:
        bodies: scene of static bodies.
        body: scene of the floating body.
        root: frame of the bodies, relative to which poses are expressed.
        fixed: values of joints of the bodies by name [rad or m]. Defaults to 0.
        margin: clearance of the body [m].
    """

    def __init__(
        self,
        bodies: SceneGraph,
        body: SceneGraph,
        *,
        root: str,
        fixed: Mapping[str, float] | None = None,
        margin: float = PLANNING_MARGIN,
    ) -> None:
        self.scene = with_floating_joints(bodies, root=root).mount(body, FLOATING_JOINTS[-1])
        moving = {*self.scene.subtree(FLOATING_JOINTS[-1])}
        pairs = CollisionWorld(self.scene).pairs
        unrelated = {(a, b): -math.inf for a, b, _ in pairs if (a in moving) == (b in moving)}
        self.world = CollisionWorld(self.scene, margin=margin, pair_margins=unrelated)
        names = self.scene.joint_names
        self._columns = [names.index(name) for name in FLOATING_JOINTS]
        values = {joint: value for joint, value in (fixed or {}).items() if joint in names}
        self._base = np.asarray(self.scene.configuration(values), dtype=float)

    def finger_configuration(self, values: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the configuration (n_joints,) with joint values of the body, for :meth:`collides`.

        Args:
            values: joint values by name [rad or m].
        """
        return np.asarray(self.scene.configuration(dict(values), base=self._base), dtype=float)

    def collides(
        self, poses: NDArray[np.float64], fingers: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Return for each pose (m,) whether the body collides.

        Args:
            poses: (m, 6) x, y, z [m] and yaw, pitch, roll [rad] of root_from_body.
            fingers: (m, n_joints) configurations; see :meth:`finger_configuration`.
        """
        rows = np.array(fingers)
        rows[:, self._columns] = poses
        return np.asarray(self.world.in_collision_batch(rows))

    def contacts(
        self, poses: NDArray[np.float64], fingers: NDArray[np.float64]
    ) -> list[list[Contact]]:
        """Return for each pose (m,) the contacts of the body.

        Args:
            poses: (m, 6) x, y, z [m] and yaw, pitch, roll [rad] of root_from_body.
            fingers: (m, n_joints) configurations; see :meth:`finger_configuration`.
        """
        rows = np.array(fingers)
        rows[:, self._columns] = poses
        return self.world.contacts_batch(rows)

    def collides_at(self, pose: Pose) -> bool:
        """Return whether the body collides at a pose root_from_body, with its joints at 0."""
        rows = np.array([[*pose.translation, *yaw_pitch_roll(pose.rotation)]])
        return bool(self.collides(rows, self._base[None])[0])


def yaw_pitch_roll(rotation: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the angles [rad] about z, y and x of a rotation matrix (3, 3)."""
    pitch = atan2(-rotation[2, 0], math.hypot(rotation[0, 0], rotation[1, 0]))
    if cos(pitch) < 1e-9:
        # At the singularity, yaw and roll have the same axis; the angle is assigned to yaw.
        return atan2(-rotation[0, 1], rotation[1, 1]), pitch, 0.0
    return atan2(rotation[1, 0], rotation[0, 0]), pitch, atan2(rotation[2, 1], rotation[2, 2])
