"""Push action: the closed hand slides an object along a straight line on its support.

A push moves objects that no hand can grasp at their pose: flat plates, boxes wider than the hand.
The fingers close, approach the object from behind, touch a flat face, and move on perpendicularly
to it. All fingers touch the face, side by side, and the line passes through the object's centre of
mass. This is a stable push, in which the object keeps its pose in the hand by friction (Lynch and
Mason, "Stable pushing", 1996). The motion is quasi-static: slower than other segments
(:mod:`tmkit.plans.execution`), so the object stops with the hand.

Along the push the object is a child of the hand for the collision check. At the end it is a child
of its support again, by the segment's :class:`~tmkit.plans.values.Attachment`.

Invariants: as for :class:`tmkit.manipulation.ArmMotionPlanner`; the plan validator repeats
    :func:`push_faults`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import dot, norm
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.basic_motions import ActionMotion, refine_contacts
from tmkit.manipulation.actions.candidates import ActionContext, BuiltInCandidate
from tmkit.manipulation.actions.hand_state import free_object_failure
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.manipulation.grasps.holding import OBJECT_FRICTION
from tmkit.motion.masses import centre_of_mass
from tmkit.motion.regions.solids import reach, solids_of
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.values import Attachment, Configuration, SegmentKind
from tmkit.robots import Manipulator
from tmkit.robots.hands import pair_distance, reason_without_distance
from tmkit.spatial import Pose

_START_GAP = 1e-4
"""Distance between fingers and face at the start of the push [m]."""

_CONTACT_TOLERANCE = 5e-4
"""Largest distance of a finger in contact with the face [m]."""

_PROBE_DISTANCE = 0.005
"""Displacement of the object by which the slope of the face is measured [m]."""

_MIN_NORMAL_COSINE = 0.995
"""Smallest cosine between the push direction and the normal of the face."""

_MAX_CENTRE_OFFSET = 0.005
"""Largest distance between the line of the push and the centre of mass [m]."""

_MAX_RISE = 0.001
"""Largest vertical motion of the hand along the push [m]."""

_MIN_TOOL_CLEARANCE = 0.01
"""Smallest height of the tool point above the support [m]."""

_CONTACT_IK_DISTANCE = 0.03
"""Distance behind the face of the pose for which inverse kinematics is solved [m]."""

_RETREAT_DISTANCE = 0.03
"""Distance behind the face at which the approach starts and the retreat ends [m]."""

_RETREAT_HEIGHT = 0.1
"""Height above the push at which the approach starts and the retreat ends [m]."""

_UP = np.array([0.0, 0.0, 1.0])
"""(3,) vertical direction in root axes."""


@dataclass(frozen=True)
class Push(BuiltInCandidate):
    """Push an object in a straight line on its support.

    Attributes:
        object: frame of the object.
        direction: (3,) horizontal direction in the axes of the object, perpendicular to the flat
            face that is pushed.
        distance: length of the push [m].
        arm: name of the arm. Defaults to the first arm.
    """

    object: str
    direction: tuple[float, float, float]
    distance: float
    arm: str | None = None

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        return _PushPlanner(self, arm, context, seed).attempts()


class _PushPlanner:
    """Motion planner of one push."""

    def __init__(
        self, candidate: Push, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> None:
        self.object, self.distance = candidate.object, candidate.distance
        self.arm, self.seed = arm, seed
        self.scene, self.q, self.primitives = context.scene, context.q, arm.primitives
        root_from_object = self.scene.pose(
            self.object, relative_to=self.scene.root(self.object), q=self.q
        )
        self.ahead = root_from_object.rotate(candidate.direction) / norm(
            np.asarray(candidate.direction)
        )
        self.support = str(self.scene.parent(self.object))

    def attempts(self) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions, and the failures of other attempts."""
        scene, primitives, arm = self.scene, self.primitives, self.arm.robot
        if not arm.contact_links:
            cause = f"the arm '{arm.name}' has no contact links to push with"
            yield MotionFailure("push", cause, kind=FailureKind.NO_CHOICE)
            return
        failure = free_object_failure(
            scene, primitives.rules.arms, object=self.object, phase="push"
        )
        if failure is not None:
            yield failure
            return
        self.q_closed = scene.configuration(dict(arm.gripper_closed), base=self.q)
        self.near_pairs = primitives.near_pairs(scene, self.q)
        self.contact_phase = primitives.phase(
            scene, self.near_pairs, contact_object=self.object, support=self.support
        )
        for side in (1.0, -1.0):
            root_from_tool = self._tool_behind_face(side)
            if root_from_tool is None:
                yield MotionFailure(
                    "push", f"'{self.object}' is too flat for the fingers", kind=FailureKind.GRIP
                )
                return
            contacts = primitives.contacts(
                self.contact_phase,
                root_from_tool,
                q=self.q_closed,
                seed=self.seed,
                label="reaching the face",
            )
            yield from refine_contacts(contacts, self._push)

    def _tool_behind_face(self, side: float) -> Pose | None:
        """Return root_from_tool behind the face, with the hand pointing down.

        Args:
            side: 1 for a tool x axis along the push, -1 for one against it.

        Returns:
            The pose, or None if the object is too flat for the fingers.
        """
        scene, object = self.scene, self.object
        root_from_object = scene.pose(object, relative_to=scene.root(object), q=self.q)
        to_object_axes, solids = root_from_object.inverse().rotate, solids_of(scene, object)
        centre = root_from_object.apply(centre_of_mass(scene, object, q=self.q))
        height = float(root_from_object.translation[2])
        top, bottom = (
            height + reach(solids, to_object_axes(_UP)),
            height - reach(solids, to_object_axes(-_UP)),
        )
        low = max(bottom + _MIN_TOOL_CLEARANCE, top - self.arm.robot.finger_depth)
        if low > top:
            return None
        face = reach(solids, to_object_axes(-self.ahead)) + dot(
            self.ahead, centre - root_from_object.translation
        )
        point = centre - (face + _CONTACT_IK_DISTANCE) * self.ahead
        x_axis = side * self.ahead
        axes = np.stack([x_axis, np.cross(-_UP, x_axis), -_UP], axis=1)
        return Pose.from_rotation_matrix([point[0], point[1], low], axes)

    def _push(self, q_behind: Configuration) -> ActionMotion:
        """Return the motion that starts from a configuration (n_joints,) behind the face.

        Raises:
            PrimitiveFailedError: if a part of the motion is infeasible.
        """
        scene, primitives = self.scene, self.primitives
        arm, object = self.arm.robot, self.object

        # Move the fingers to the face.
        gap = min(
            pair_distance(scene, q_behind, frame_a=link, frame_b=object)
            for link in arm.contact_links
        )
        if math.isinf(gap):
            reason = reason_without_distance(scene, arm.contact_links[0], object)
            raise PrimitiveFailedError("push", reason, kind=FailureKind.GRIP, q=q_behind)
        q_contact = primitives.translation(
            self.contact_phase, q_behind, (gap - _START_GAP) * self.ahead, label="approach"
        )[-1]
        offset = _RETREAT_HEIGHT * _UP - _RETREAT_DISTANCE * self.ahead
        approach = primitives.translation(self.contact_phase, q_contact, offset, label="approach")

        # Push the object.
        phase = primitives.phase(
            scene_during_push(scene, q_contact, arm, object=object),
            self.near_pairs,
            contact_object=object,
            support=self.support,
        )
        path = primitives.translation(phase, q_contact, self.distance * self.ahead, label="push")
        faults = push_faults(scene, path, arm, object=object)
        if faults:
            raise PrimitiveFailedError("push", faults[0], kind=FailureKind.GRIP, q=q_contact)

        # Put the object back on its support, and retreat.
        support_from_object = scene.local_pose(object)
        root_from_support = scene.pose(self.support, relative_to=scene.root(self.support), q=self.q)
        displacement = root_from_support.inverse().rotate(self.distance * self.ahead)
        pose = Pose(support_from_object.translation + displacement, support_from_object.quat_xyzw)
        change = Attachment(object, self.support, pose)
        scene_after = change.apply(scene, path[-1])
        retreat_phase = primitives.phase(
            scene_after, self.near_pairs, contact_object=object, support=self.support
        )
        retreat = primitives.translation(retreat_phase, path[-1], offset, label="retreat")

        # Search the path to the approach.
        transit_phase = primitives.phase(scene, self.near_pairs)
        primitives.require_free_fingers(
            transit_phase, self.q, self.q_closed, label="closing the hand"
        )
        transit = primitives.plan_path(
            transit_phase, self.q_closed, approach[-1][None], seed=self.seed, label="transit"
        )

        # Collect the segments in order of execution.
        segment = partial(self.arm.segment, q=self.q_closed)
        segments = (
            segment(SegmentKind.TRANSIT, transit, held=None, phase=transit_phase),
            segment(SegmentKind.APPROACH, approach[::-1], held=object, phase=self.contact_phase),
            segment(SegmentKind.PUSH, path, held=object, phase=phase, change=change),
            segment(SegmentKind.RETREAT, retreat, held=object, phase=retreat_phase),
        )
        x, y = self.distance * self.ahead[:2]
        return ActionMotion(segments, scene_after, retreat[-1], f"by ({x:.3f}, {y:.3f})")


def scene_during_push(
    scene: SceneGraph, q: Configuration, arm: Manipulator, *, object: str
) -> SceneGraph:
    """Return the scene during a push, in which the object is a child of the hand.

    Args:
        scene: scene before the push, with the object on its support.
        q: (n_joints,) configuration at the start of the push.
        arm: arm that pushes.
        object: frame of the object.
    """
    tip_from_object = scene.pose(object, relative_to=arm.tip, q=q)
    return Attachment(object, arm.tip, tip_from_object).apply(scene, q)


def push_faults(
    scene: SceneGraph, path: Configuration, arm: Manipulator, *, object: str
) -> list[str]:
    """Return the reasons why an object would not keep its pose at the fingers along a push.

    Args:
        scene: scene before the push, with the object on its support.
        path: (k, n_joints) configurations of the push, along a straight line of the tool.
        arm: arm that pushes.
        object: frame of the object.

    Returns:
        One message for each fault. Empty if the push is stable.
    """
    root, start = scene.root(object), path[0]
    first, last = (
        scene.pose(arm.tool, relative_to=root, q=q).translation for q in (start, path[-1])
    )
    line = last - first
    length = norm(line)
    if abs(line[2]) > _MAX_RISE or length <= abs(line[2]):
        return [f"the hand does not move along '{scene.parent(object)}'"]
    ahead: NDArray[np.float64] = np.array([line[0], line[1], 0.0]) / norm(line[:2])
    root_from_object = scene.pose(object, relative_to=root, q=start)
    centre = root_from_object.apply(centre_of_mass(scene, object, q=start))
    to_object_axes, solids = root_from_object.inverse().rotate, solids_of(scene, object)
    probe_scene = scene.reparent(
        object, root, pose=Pose(_PROBE_DISTANCE * ahead) @ root_from_object
    )
    faults = []
    for link in arm.contact_links:
        gap = pair_distance(scene, start, frame_a=link, frame_b=object)
        probe_gap = pair_distance(probe_scene, start, frame_a=link, frame_b=object)
        if probe_gap - gap < _MIN_NORMAL_COSINE * _PROBE_DISTANCE:
            faults.append(f"'{link}' does not push perpendicularly to a face of '{object}'")
        elif math.isinf(gap):
            faults.append(reason_without_distance(scene, link, object))
        elif gap > _CONTACT_TOLERANCE:
            faults.append(
                f"'{link}' is {gap * 1000:.1f} mm away from '{object}', which all fingers should"
                " touch"
            )
    offset = abs(dot(np.cross(_UP, ahead), first - centre))
    if offset > _MAX_CENTRE_OFFSET:
        faults.append(
            f"the line passes {offset * 1000:.1f} mm beside the centre of mass of '{object}', which"
            " would turn"
        )
    base = reach(solids, to_object_axes(ahead)) - dot(ahead, centre - root_from_object.translation)
    height = first[2] - (root_from_object.translation[2] - reach(solids, to_object_axes(-_UP)))
    if height * OBJECT_FRICTION > base:
        faults.append(
            f"'{object}' would tip: it is pushed {height * 1000:.0f} mm high, with"
            f" {base * 1000:.0f} mm ahead"
        )
    return [*faults, *_support_faults(scene, centre + line, start, object)]


def _support_faults(
    scene: SceneGraph, centre: NDArray[np.float64], q: Configuration, object: str
) -> Iterator[str]:
    """Yield a message if the centre of mass leaves the bounding box of the support.

    Args:
        scene: scene before the push.
        centre: (3,) centre of mass after the push, in root axes [m].
        q: (n_joints,) configuration.
        object: frame of the object.
    """
    support = str(scene.parent(object))
    point = scene.pose(support, relative_to=scene.root(support), q=q).inverse().apply(centre)
    solids = solids_of(scene, support)
    directions = [sign * axis for axis in np.eye(3)[:2] for sign in (1.0, -1.0)]
    if any(dot(axis, point) >= reach(solids, axis) for axis in directions):
        yield f"'{object}' would fall off '{support}': its centre of mass leaves it"
