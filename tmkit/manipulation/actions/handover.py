"""Handover of an object from one arm to another, without a support.

The giving arm carries the object to an *exchange pose* that both arms reach. The taking arm moves
behind its grasp, approaches straight along its tool's z axis and closes its hand. From then on the
object is a child of the taking hand. The giving hand opens and retreats straight backwards. As in
picking and placing, straight lines are computed first, from the contact outwards. Then paths are
searched to their ends.

Both hands touch the object from the taker's approach to the giver's retreat, and at no other time.
Planner and plan validator use the same contact rules, :class:`tmkit.motion.CollisionRules`.

Invariants: as for :class:`tmkit.manipulation.ArmMotionPlanner`: every segment has passed the checks
that the plan validator repeats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument
from tmkit._support.elementary import cos, dot, norm, sin
from tmkit.manipulation.actions.basic_motions import ActionMotion, gripper_failure, refine_contacts
from tmkit.manipulation.actions.candidates import ActionContext, BuiltInCandidate
from tmkit.manipulation.actions.hand_state import empty_hand_failure, held_object_failure
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.manipulation.actions.primitives import NearPairs
from tmkit.manipulation.grasps.sampling import Grasp, grasp_contact_faults
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.values import Attachment, Configuration, SegmentKind
from tmkit.spatial import Pose

_SPIN_COUNT = 8
"""Number of rotations of the giving tool about its z axis."""

_TILTS = (0.0, math.pi / 6, -math.pi / 6)
"""Angles of the giving tool below the horizontal, in the order of trial [rad]."""

_MAX_OPPOSITION_COSINE = -0.9
"""Largest cosine between the tool z axes of the two hands."""


@dataclass(frozen=True)
class Handover(BuiltInCandidate):
    """Give a held object to another arm.

    Attributes:
        object: frame of the object, which is a child of the giver's hand.
        giver: name of the arm that holds it.
        taker: name of the arm that takes it.
        grasp: grasp of the taker.
        exchange: root_from_object at the exchange.
    """

    object: str
    giver: str
    taker: str
    grasp: Grasp
    exchange: Pose

    def __post_init__(self) -> None:
        check_argument(self.grasp, Grasp, "grasp", function="Handover")
        check_argument(self.exchange, Pose, "exchange", function="Handover")

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        del arm
        exchange = _Exchange(self, context.arm(self.giver), context.arm(self.taker), context, seed)
        return exchange.attempts()


def handovers(
    context: ActionContext, object: str, *, giver: str, taker: str, points: Iterable[ArrayLike]
) -> Iterator[Handover]:
    """Yield handovers at given points, with the hands opposite each other.

    The giving tool points from the giver's base towards the taker's, level first, then tilted. The
    taker grasps the side of the object that faces it.

    Args:
        context: scene and configuration before the action, samplers and arms.
        object: frame of the object, in the giver's hand.
        giver: name of the arm that holds the object.
        taker: name of the arm that takes the object.
        points: (3,) positions of the giver's tool in root axes, best first [m].
    """
    scene, q = context.scene, context.q
    giving, taking = context.arm(giver).robot, context.arm(taker).robot
    root = scene.root(object)
    bases = [scene.pose(arm.base, relative_to=root, q=q).translation for arm in (giving, taking)]
    across = (bases[1] - bases[0]) * np.array([1.0, 1.0, 0.0])
    # Bases at one position have no direction between them; any direction serves.
    across = across / norm(across) if norm(across) else np.eye(3)[0]
    tool_from_object = scene.pose(object, relative_to=giving.tool, q=q)
    ahead = tool_from_object.inverse().rotate([0.0, 0.0, 1.0])
    grasps = context.grasps(object, arm=taker)
    opposite_grasps = [
        grasp
        for grasp in grasps
        if dot(ahead, grasp.object_from_tool.rotate([0.0, 0.0, 1.0])) < _MAX_OPPOSITION_COSINE
    ]
    for point in points:
        position = np.asarray(point, dtype=float)
        for tilt in _TILTS:
            axis = cos(tilt) * across - np.array([0.0, 0.0, sin(tilt)])
            for index in range(_SPIN_COUNT):
                root_from_tool = _tool_pose(position, axis, index * math.tau / _SPIN_COUNT)
                exchange = root_from_tool @ tool_from_object
                for grasp in opposite_grasps:
                    yield Handover(object, giver, taker, grasp, exchange)


def _tool_pose(point: np.ndarray, axis: np.ndarray, spin: float) -> Pose:
    """Return root_from_tool at a point.

    Args:
        point: (3,) position in root axes [m].
        axis: (3,) unit vector along the tool's z axis, in root axes.
        spin: rotation about that axis [rad].
    """
    level = np.cross(axis, [0.0, 0.0, 1.0])
    level /= norm(level)
    x = cos(spin) * level + sin(spin) * np.cross(axis, level)
    return Pose.from_rotation_matrix(point, np.column_stack([x, np.cross(axis, x), axis]))


class _Exchange:
    """Motion planner of one handover."""

    def __init__(
        self,
        candidate: Handover,
        giver: ArmMotionPlanner,
        taker: ArmMotionPlanner,
        context: ActionContext,
        seed: int,
    ) -> None:
        self.candidate, self.seed = candidate, seed
        self.giver, self.taker = giver, taker
        self.scene, self.q = context.scene, context.q
        self.near_pairs: NearPairs = giver.primitives.near_pairs(self.scene, self.q)
        self.carried = giver.primitives.phase(
            self.scene, self.near_pairs, contact_object=candidate.object
        )
        self.approach_phase = taker.primitives.phase(
            self.scene, self.near_pairs, contact_object=candidate.object
        )

    def attempts(self) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions, and the failures of other attempts."""
        object, giver = self.candidate.object, self.giver
        phase = "handing over"
        failure = held_object_failure(
            self.scene, giver.robot, object=object, phase=phase
        ) or empty_hand_failure(self.scene, self.taker.robot, frame=object, phase=phase)
        if failure is not None:
            yield failure
            return
        if self.taker.robot.gripper_kind == "none":
            yield gripper_failure(self.taker.robot)
            return
        root_from_tool = self.candidate.exchange @ self.scene.pose(
            giver.robot.tool, relative_to=object, q=self.q
        )
        contacts = giver.primitives.contacts(
            self.carried, root_from_tool, q=self.q, seed=self.seed, label="reaching the exchange"
        )
        for contact in contacts:
            if isinstance(contact, MotionFailure):
                yield contact
            else:
                yield from self._refine_exchange(contact)

    def _refine_exchange(self, q_exchange: Configuration) -> Iterator[ActionMotion | MotionFailure]:
        """Return motions for one configuration (n_joints,) of the giver."""
        taker, scene, object = self.taker, self.scene, self.candidate.object
        q_open = scene.configuration(
            taker.robot.open_finger_values(self.candidate.grasp.opening), base=q_exchange
        )
        root_from_object = scene.pose(object, relative_to=scene.root(object), q=q_exchange)
        target = root_from_object @ self.candidate.grasp.object_from_tool
        contacts = taker.primitives.contacts(
            self.approach_phase,
            target,
            q=q_open,
            seed=self.seed,
            label="reaching the object in the other hand",
        )
        return refine_contacts(contacts, partial(self._exchange, q_exchange, q_open))

    def _exchange(
        self, q_exchange: Configuration, q_open: Configuration, q_take: Configuration
    ) -> ActionMotion:
        """Return the motion of both arms through one exchange.

        Args:
            q_exchange: (n_joints,) configuration with the giver at the exchange pose.
            q_open: (n_joints,) the same configuration with the taker's fingers open.
            q_take: (n_joints,) configuration with the taker at its grasp.

        Raises:
            PrimitiveFailedError: if a part of the motion is infeasible.
        """
        giver, taker = self.giver, self.taker
        scene, object = self.scene, self.candidate.object

        # Close the taker's fingers.
        width = self.candidate.grasp.width
        q_held = scene.configuration(taker.robot.finger_values(width), base=q_take)
        faults = grasp_contact_faults(scene, q_held, taker.robot, object=object)
        if faults:
            raise PrimitiveFailedError("grasp", faults[0], kind=FailureKind.GRIP)

        # Attach the object to the taker's hand.
        tip = taker.robot.tip
        change = Attachment(object, tip, scene.pose(object, relative_to=tip, q=q_held))
        scene_after = change.apply(scene, q_held)
        release_phase = giver.primitives.phase(scene_after, self.near_pairs, contact_object=object)

        # Compute the straight lines.
        approach = taker.primitives.tool_line(self.approach_phase, q_take, label="approach")
        taker.primitives.require_free_fingers(self.approach_phase, q_take, q_held, label="grasp")
        q_released = giver.open_fingers(release_phase, q_held, object)
        retreat = giver.primitives.tool_line(release_phase, q_released, label="retreat")

        # Search the paths to the lines.
        transfer = giver.primitives.plan_path(
            self.carried, self.q, q_exchange[None], seed=self.seed, label="transfer"
        )
        giver.require_payload(self.carried, transfer, object=object, label="transfer")
        taker.require_payload(release_phase, retreat, object=object, label="retreat")
        transit_phase = taker.primitives.phase(scene, self.near_pairs)
        taker.primitives.require_free_fingers(
            transit_phase, q_exchange, q_open, label="opening the hand"
        )
        transit = taker.primitives.plan_path(
            transit_phase, q_open, approach[-1][None], seed=self.seed, label="transit"
        )
        giver.primitives.require_torque_limits(self.carried, transfer, label="transfer")
        giver.primitives.require_torque_limits(release_phase, retreat, label="retreat")
        taker.primitives.require_torque_limits(transit_phase, transit, approach, label="transit")

        # Collect the segments in order of execution.
        giver_segment = partial(giver.segment, held=object)
        taker_segment = partial(taker.segment, held=object)
        lines, at_grasp = self.approach_phase, q_take[None]
        transfer_kind, at_release = SegmentKind.TRANSFER, q_held[None]
        segments = (
            giver_segment(transfer_kind, transfer, q=self.q, phase=self.carried),
            taker.segment(SegmentKind.TRANSIT, transit, q=q_open, held=None, phase=transit_phase),
            taker_segment(SegmentKind.APPROACH, approach[::-1], q=q_open, phase=lines),
            taker_segment(SegmentKind.GRASP, at_grasp, q=q_held, phase=lines, change=change),
            giver_segment(SegmentKind.RELEASE, at_release, q=q_released, phase=release_phase),
            giver_segment(SegmentKind.RETREAT, retreat, q=q_released, phase=release_phase),
        )
        point = scene.pose(object, relative_to=scene.root(object), q=q_exchange).translation
        choice = f"at ({', '.join(f'{number:.3f}' for number in point)})"
        return ActionMotion(segments, scene_after, retreat[-1], choice)
