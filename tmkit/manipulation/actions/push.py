"""Pushing: the closed hand slides an object along a straight line on its support.

For objects that no hand can grasp where they are: plates that lie flat, boxes wider than the hand.
The fingers close, come down beside the object from behind, touch a flat face, and move on
perpendicularly to it. All fingers touch the face, side by side, and the line goes through the
object's centre of mass. This is a stable push, in which the object keeps its pose in the hand by
friction (Lynch and Mason, "Stable pushing", 1996). The motion is quasi-static: slower than other
segments (:mod:`tmkit.plans.execution`), so the object stops with the hand.

Along the push the object is a child of the hand for the collision check; at its end it is a child
of its support again, by the segment's :class:`~tmkit.plans.values.Attachment`.

Invariants: as for :class:`tmkit.manipulation.ArmMotionPlanner`; a plan's checker repeats
    :func:`push_faults`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import dot, norm
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, BuiltInCandidate
from tmkit.manipulation.actions.pick_place import ActionMotion, ArmMotionPlanner, motions_at
from tmkit.manipulation.grasps.holding import OBJECT_FRICTION
from tmkit.manipulation.placements.stable_faces import centre_of_mass
from tmkit.motion.regions.solids import reach, solids_of
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.values import Attachment, Configuration, SegmentKind
from tmkit.robots import Manipulator
from tmkit.robots.hands import pair_distance, reason_without_distance
from tmkit.spatial import Pose

_GAP = 1e-4  # metres between fingers and face when the push begins
_TOUCHES = 5e-4  # metres within which a finger is at the face
_PROBE = 0.005  # metres by which the object is moved on to measure the face's slope
_PERPENDICULAR = 0.995  # least cosine between the direction and the normal of the face
_OFF_CENTRE = 0.005  # metres that the line may pass beside the centre of mass
_LEVEL = 0.001  # metres that the hand may rise or sink
_CLEARANCE = 0.01  # metres of the tool point above the support, at least
_BESIDE = 0.03  # metres behind the face at which a configuration beside the object is computed
_BEHIND, _ABOVE = 0.03, 0.1  # metres from where the hand comes, and to where it leaves
_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Push(BuiltInCandidate):
    """Push an object in a straight line on the support that it rests on.

    Attributes:
        object: frame of the object.
        direction: (3,) horizontal direction in the axes of the object, perpendicular to the flat
            face that is pushed.
        distance: metres.
        arm: name of the arm; the first by default.
    """

    object: str
    direction: tuple[float, float, float]
    distance: float
    arm: str | None = None

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        return _Pushing(self, arm, context, seed).attempts()


class _Pushing:
    """One object being pushed."""

    def __init__(
        self, candidate: Push, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> None:
        self.object, self.distance, self.arm, self.seed = (
            candidate.object,
            candidate.distance,
            arm,
            seed,
        )
        self.scene, self.q, self.primitives = context.scene, context.q, arm.primitives
        root_from_object = self.scene.pose(
            self.object, relative_to=self.scene.root(self.object), q=self.q
        )
        self.ahead = root_from_object.rotate(candidate.direction) / norm(
            np.asarray(candidate.direction)
        )
        self.support = str(self.scene.parent(self.object))

    def attempts(self) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions and failures."""
        scene, primitives, arm = self.scene, self.primitives, self.arm.manipulator
        self.q_closed = scene.configuration(dict(arm.gripper_closed), base=self.q)
        self.near = primitives.near_pairs(scene, self.q)
        self.before = primitives.phase(
            scene, self.near, contact_object=self.object, support=self.support
        )
        for turn in (1.0, -1.0):
            beside = self._beside(turn)
            if beside is None:
                yield MotionFailure(
                    "push", f"'{self.object}' is too flat for the fingers", kind=FailureKind.GRIP
                )
                return
            what = "reaching the face"
            contacts = primitives.contacts(
                self.before, beside, q=self.q_closed, seed=self.seed, label=what
            )
            yield from motions_at(contacts, self._push)

    def _beside(self, turn: float) -> Pose | None:
        """Return root_from_tool behind the face: the hand points down, its x axis along or against the direction."""
        scene, object = self.scene, self.object
        root_from_object = scene.pose(object, relative_to=scene.root(object), q=self.q)
        into, solids = root_from_object.inverse().rotate, solids_of(scene, object)
        centre = root_from_object.apply(centre_of_mass(scene, object, q=self.q))
        height = float(root_from_object.translation[2])
        top, bottom = height + reach(solids, into(_UP)), height - reach(solids, into(-_UP))
        low = max(bottom + _CLEARANCE, top - self.arm.manipulator.finger_depth)
        if low > top:
            return None
        face = reach(solids, into(-self.ahead)) + dot(
            self.ahead, centre - root_from_object.translation
        )
        point = centre - (face + _BESIDE) * self.ahead
        axes = np.stack([turn * self.ahead, np.cross(-_UP, turn * self.ahead), -_UP], axis=1)
        return Pose.from_rotation_matrix([point[0], point[1], low], axes)

    def _push(self, q_beside: Configuration) -> ActionMotion:
        scene, primitives, arm, object = (
            self.scene,
            self.primitives,
            self.arm.manipulator,
            self.object,
        )
        gap = min(
            pair_distance(scene, q_beside, frame_a=link, frame_b=object)
            for link in arm.contact_links
        )
        if math.isinf(gap):
            reason = reason_without_distance(scene, arm.contact_links[0], object)
            raise PrimitiveFailedError("push", reason, kind=FailureKind.GRIP, q=q_beside)
        touching = primitives.translation(
            self.before, q_beside, (gap - _GAP) * self.ahead, label="approach"
        )[-1]
        away = _ABOVE * _UP - _BEHIND * self.ahead
        coming = primitives.translation(self.before, touching, away, label="approach")
        phase = primitives.phase(
            pushed_scene(scene, touching, arm, object=object),
            self.near,
            contact_object=object,
            support=self.support,
        )
        path = primitives.translation(phase, touching, self.distance * self.ahead, label="push")
        faults = push_faults(scene, path, arm, object=object)
        if faults:
            raise PrimitiveFailedError("push", faults[0], kind=FailureKind.GRIP, q=touching)
        local = scene.local_pose(object)
        root_from_support = scene.pose(self.support, relative_to=scene.root(self.support), q=self.q)
        by = root_from_support.inverse().rotate(self.distance * self.ahead)
        change = Attachment(object, self.support, Pose(local.translation + by, local.quat_xyzw))
        after = change.applied(scene, path[-1])
        left = primitives.phase(after, self.near, contact_object=object, support=self.support)
        leaving = primitives.translation(left, path[-1], away, label="retreat")
        free = primitives.phase(scene, self.near)
        primitives.require_free_fingers(free, self.q, self.q_closed, label="closing the hand")
        transit = primitives.plan_path(
            free, self.q_closed, coming[-1][None], seed=self.seed, label="transit"
        )
        make, q = self.arm.segment, self.q_closed
        segments = (
            make(SegmentKind.TRANSIT, transit, q=q, held=None, phase=free),
            make(SegmentKind.APPROACH, coming[::-1], q=q, held=object, phase=self.before),
            make(SegmentKind.PUSH, path, q=q, held=object, phase=phase, change=change),
            make(SegmentKind.RETREAT, leaving, q=q, held=object, phase=left),
        )
        x, y = self.distance * self.ahead[:2]
        return ActionMotion(segments, after, leaving[-1], f"by ({x:.3f}, {y:.3f})")


def pushed_scene(
    scene: SceneGraph, q: Configuration, arm: Manipulator, *, object: str
) -> SceneGraph:
    """Return the scene along a push that begins at ``q``: the object keeps its pose in the hand."""
    return Attachment(object, arm.tip, scene.pose(object, relative_to=arm.tip, q=q)).applied(
        scene, q
    )


def push_faults(
    scene: SceneGraph, path: Configuration, arm: Manipulator, *, object: str
) -> list[str]:
    """Return why an object would not stay in place before the fingers along a push, on its support; none if it would.

    Args:
        scene: the scene before the push, with the object on its support.
        path: (k, n_joints) configurations of the push, along a straight line of the tool.
    """
    root, start = scene.root(object), path[0]
    first, last = (
        scene.pose(arm.tool, relative_to=root, q=q).translation for q in (start, path[-1])
    )
    way = last - first
    length = norm(way)
    if abs(way[2]) > _LEVEL or length <= abs(way[2]):
        return [f"the hand does not move along '{scene.parent(object)}'"]
    ahead: NDArray[np.float64] = np.array([way[0], way[1], 0.0]) / norm(way[:2])
    root_from_object = scene.pose(object, relative_to=root, q=start)
    centre = root_from_object.apply(centre_of_mass(scene, object, q=start))
    into, solids = root_from_object.inverse().rotate, solids_of(scene, object)
    moved = scene.reparent(object, root, pose=Pose(_PROBE * ahead) @ root_from_object)
    faults = []
    for link in arm.contact_links:
        gap = pair_distance(scene, start, frame_a=link, frame_b=object)
        if (
            pair_distance(moved, start, frame_a=link, frame_b=object) - gap
            < _PERPENDICULAR * _PROBE
        ):
            faults.append(f"'{link}' does not push perpendicularly to a face of '{object}'")
        elif math.isinf(gap):
            faults.append(reason_without_distance(scene, link, object))
        elif gap > _TOUCHES:
            faults.append(
                f"'{link}' is {gap * 1000:.1f} mm away from '{object}', which all fingers should"
                " touch"
            )
    beside = abs(dot(np.cross(_UP, ahead), first - centre))
    if beside > _OFF_CENTRE:
        faults.append(
            f"the line passes {beside * 1000:.1f} mm beside the centre of mass of '{object}', which"
            " would turn"
        )
    base = reach(solids, into(ahead)) - dot(ahead, centre - root_from_object.translation)
    height = first[2] - (root_from_object.translation[2] - reach(solids, into(-_UP)))
    if height * OBJECT_FRICTION > base:
        faults.append(
            f"'{object}' would tip: it is pushed {height * 1000:.0f} mm high, with"
            f" {base * 1000:.0f} mm ahead"
        )
    return [*faults, *_fall(scene, centre + way, start, object)]


def _fall(
    scene: SceneGraph, centre: NDArray[np.float64], q: Configuration, object: str
) -> Iterator[str]:
    """Yield that the centre of mass leaves the support, by the box around that."""
    support = str(scene.parent(object))
    at = scene.pose(support, relative_to=scene.root(support), q=q).inverse().apply(centre)
    solids = solids_of(scene, support)
    axes = np.eye(3)[:2]
    if any(
        sign * dot(axis, at) >= reach(solids, sign * axis) for axis in axes for sign in (1.0, -1.0)
    ):
        yield f"'{object}' would fall off '{support}': its centre of mass leaves it"
