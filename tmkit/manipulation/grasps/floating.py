"""A hand, or an object, that moves freely among bodies that stand still: collision checks of many poses as one batch.

The moving body is put on six joints of its own, so a pose is a configuration. A hand without its
arm answers in microseconds what inverse kinematics would answer in tenths of a millisecond: whether
the fingers fit at all.

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
"""Names of the joints, and of the frames, that carry the moving body."""

_AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 1), (0, 1, 0), (1, 0, 0))


def hand_alone(scene: SceneGraph, manipulator: Manipulator) -> SceneGraph | None:
    """Return the hand of an arm, without what it holds, as a scene of its own; None without shapes.

    A hand with fingers begins at the tip, one that sucks at the arm's last joint, since the flange
    is wider than the pad.
    """
    root = manipulator.tip
    if manipulator.gripper_kind == "suction":
        chain = (root, *scene.ancestors(root))
        root = next(
            (frame for frame in chain if scene.joint(frame).name in manipulator.joints), root
        )
    hand = scene.extract(root)
    for frame in movable_frames(hand):
        if frame in hand and frame != root:
            hand = hand.remove_frame(frame, subtree=True)
    has_shapes = any(
        attached.collision for frame in hand.frame_names for attached in hand.shapes(frame)
    )
    return hand if has_shapes else None


def bodies_at_rest(scene: SceneGraph, manipulator: Manipulator) -> SceneGraph | None:
    """Return a scene without an arm and without the shapes of movable objects; None for an arm that moves nothing."""
    chain = [*reversed(scene.ancestors(manipulator.tool)), manipulator.tool]
    links = [frame for frame in chain if scene.joint(frame).name in manipulator.joints]
    if not links:
        return None
    rest = scene.remove_frame(links[0], subtree=True)
    for frame in movable_frames(rest):
        rest = rest.set_shapes(frame, ())
    return rest


def with_floating_joints(
    bodies: SceneGraph, *, root: str, shapes: Sequence[AttachedShape] = ()
) -> SceneGraph:
    """Return bodies with six joints on which another moves freely.

    Args:
        root: frame of the bodies, relative to which the joints move it.
    """
    above = root
    with bodies.edit() as edit:
        for name, axis in zip(FLOATING_JOINTS, _AXES, strict=True):
            joint = (
                Prismatic(axis, name=name)
                if name in FLOATING_JOINTS[:3]
                else Continuous(axis, name=name)
            )
            edit.add_frame(
                name, above, joint=joint, shapes=shapes if name == FLOATING_JOINTS[-1] else ()
            )
            above = name
    return edit.finish()


class FloatingBody:
    """A body that moves freely among others that stand still.

    Args:
        root: frame of the bodies, relative to which poses are given.
        fixed: values of joints of the bodies, radians or metres by name; 0 by default.
        margin: metres that the body keeps.
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
        known = {joint: value for joint, value in (fixed or {}).items() if joint in names}
        self._base = np.asarray(self.scene.configuration(known), dtype=float)

    def fingers(self, values: Mapping[str, float]) -> NDArray[np.float64]:
        """Return a configuration (n_joints,) of the body's joints, radians or metres, for :meth:`collides`."""
        return np.asarray(self.scene.configuration(dict(values), base=self._base), dtype=float)

    def collides(
        self, poses: NDArray[np.float64], fingers: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Return for each pose (m,) whether the body collides there.

        Args:
            poses: (m, 6) x, y, z in metres and yaw, pitch, roll in radians of root_from_body.
            fingers: (m, n_joints) configurations of the body's joints; see :meth:`fingers`.
        """
        rows = np.array(fingers)
        rows[:, self._columns] = poses
        return np.asarray(self.world.in_collision_batch(rows))

    def contacts(
        self, poses: NDArray[np.float64], fingers: NDArray[np.float64]
    ) -> list[list[Contact]]:
        """Return for each pose (m,) what the body collides with there; arguments as for :meth:`collides`."""
        rows = np.array(fingers)
        rows[:, self._columns] = poses
        return self.world.contacts_batch(rows)

    def collides_at(self, pose: Pose) -> bool:
        """Return whether the body collides at root_from_body, its own joints at 0."""
        rows = np.array([[*pose.translation, *yaw_pitch_roll(pose.rotation)]])
        return bool(self.collides(rows, self._base[None])[0])


def yaw_pitch_roll(rotation: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return turns about z, then y, then x whose product is a rotation (3, 3)."""
    pitch = atan2(-rotation[2, 0], math.hypot(rotation[0, 0], rotation[1, 0]))
    if cos(pitch) < 1e-9:  # z and x turn about the same axis: all of it goes to z
        return atan2(-rotation[0, 1], rotation[1, 1]), pitch, 0.0
    return atan2(rotation[1, 0], rotation[0, 0]), pitch, atan2(rotation[2, 1], rotation[2, 2])
