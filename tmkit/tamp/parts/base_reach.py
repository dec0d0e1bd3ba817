"""Base poses from which an arm reaches the contact of a pick or place among the fixed bodies.

::

    base pose --> chassis and ready arm free? --> inverse kinematics at the contact, free?

Movable objects do not count: the attempted motion reports those in its way.

Invariants: the same arguments give the same result; no path is searched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, Pick, Place
from tmkit.motion import CollisionWorld, IkSettings, inverse_kinematics_solutions
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator
from tmkit.robots.mechanisms import remove_movable
from tmkit.spatial import Pose

BasePose = tuple[float, float, float]
"""x, y and yaw of a base in the frame in which it drives [m, rad]."""

_IK_SEED = 0
"""Seed of inverse kinematics."""


class BaseReach:
    """Reach of an arm from poses of the mobile base that carries it.

    Args:
        context: scene and configuration before the action, and the arms.
        arm: the arm.
        base: the mobile base.
    """

    def __init__(self, context: ActionContext, arm: Manipulator, base: Manipulator) -> None:
        self._context, self._arm, self._base = context, arm, base
        self._fixed: tuple[SceneGraph, CollisionWorld] | None = None
        self._is_free: dict[BasePose, bool] = {}

    def contact_point(self, candidate: Candidate) -> NDArray[np.float64]:
        """Return the point (3,) of the object's origin at the contact, in the driving frame [m]."""
        scene, q = self._context.scene, self._context.q
        pose = self._root_from_object(candidate)
        assert pose is not None, "only picks and places have a contact"
        root = scene.root(self._base.base)
        point = scene.pose(root, relative_to=self._base.base, q=q).apply(pose.translation)
        return np.asarray(point)

    def is_free(self, pose: BasePose) -> bool:
        """Return whether the base with the ready arm is within limits and free at a pose.

        Args:
            pose: pose of the base.
        """
        if pose not in self._is_free:
            scene, world = self._static_world()
            q = self._configuration(scene, pose, self._arm.ready)
            lower, upper = scene.joint_limits[self._base.joint_indices(scene)].T
            is_within = bool(np.all(lower <= pose) and np.all(pose <= upper))
            self._is_free[pose] = is_within and not world.is_in_collision(q)
        return self._is_free[pose]

    def reaches(self, candidate: Candidate, pose: Sequence[float] | NDArray[np.float64]) -> bool:
        """Return whether the arm reaches the contact of a candidate from a base pose.

        True for candidates other than picks and places.

        Args:
            candidate: pick, place or other candidate.
            pose: (3,) pose of the base.
        """
        root_from_object = self._root_from_object(candidate)
        if root_from_object is None:
            return True
        scene, world = self._static_world()
        result = inverse_kinematics_solutions(
            world,
            self._arm.tool,
            target_pose=root_from_object @ self._object_from_tool(candidate),
            joints=self._arm.joints,
            q=self._configuration(scene, pose, self._arm.gripper_open),
            settings=IkSettings(max_solutions=1, seed=_IK_SEED),
        )
        return result.q is not None

    def _root_from_object(self, candidate: Candidate) -> Pose | None:
        """Return the pose of the object at the contact; None without one."""
        scene, q = self._context.scene, self._context.q
        if isinstance(candidate, Pick):
            return scene.pose(candidate.object, relative_to=scene.root(candidate.object), q=q)
        if isinstance(candidate, Place) and self._arm.tip in scene.ancestors(candidate.object):
            support = candidate.support
            return scene.pose(support, relative_to=scene.root(support), q=q) @ candidate.pose
        return None

    def _object_from_tool(self, candidate: Candidate) -> Pose:
        if isinstance(candidate, Pick):
            return candidate.grasp.object_from_tool
        assert isinstance(candidate, Place)
        return self._context.scene.pose(
            self._arm.tool, relative_to=candidate.object, q=self._context.q
        )

    def _static_world(self) -> tuple[SceneGraph, CollisionWorld]:
        """Return the scene without movable objects, and its collision world.

        As in a motion, pairs that are near each other before the action may stay so.
        """
        if self._fixed is None:
            scene = remove_movable(self._context.scene)
            rules = self._context.arm(self._arm.name).primitives.rules
            q = self._configuration(scene, self._current_pose(), {})
            world = rules.world(
                scene,
                rules.allowed_contacts(scene),
                margin=PLANNING_MARGIN,
                near_pairs=rules.near_pairs(scene, q, margin=PLANNING_MARGIN),
            )
            self._fixed = scene, world
        return self._fixed

    def _current_pose(self) -> NDArray[np.float64]:
        """Return the pose (3,) of the base before the action."""
        return self._context.q[self._base.joint_indices(self._context.scene)]

    def _configuration(
        self,
        scene: SceneGraph,
        pose: Sequence[float] | NDArray[np.float64],
        values: Mapping[str, float],
    ) -> Configuration:
        """Return the configuration (n_joints,) with the base at a pose and some joint values."""
        names = self._context.scene.joint_names
        current = {
            name: float(value)
            for name, value in zip(names, self._context.q, strict=True)
            if name in scene.joint_names
        }
        base = dict(zip(self._base.joints, map(float, pose), strict=True))
        return np.asarray(scene.configuration({**current, **values, **base}))
