"""Handing over: an object goes from one arm's hand to another's without being put down.

The giving arm carries the object to an *exchange pose* that both arms reach. The taking arm moves
behind its grasp, approaches straight along its tool's z axis and closes its hand; from then on the
object belongs to it. The giving hand opens and leaves straight backwards. As in picking and
placing, the straight lines are computed first, from the contact outwards, and only then are paths
searched to their ends.

Both hands touch the object from the taker's approach to the giver's retreat, and at no other time;
the rules of contact (:class:`tmkit.motion.CollisionRules`) say so to planner and checker alike.

Invariants: as for :class:`tmkit.manipulation.ArmMotionPlanner`: what is yielded has passed, in
every segment, the recheck that a plan's checker will repeat.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.elementary import cos, dot, norm, sin
from tmkit.manipulation.actions.candidates import ActionContext, BuiltInCandidate
from tmkit.manipulation.actions.pick_place import ActionMotion, ArmMotionPlanner, motions_at
from tmkit.manipulation.actions.primitives import FramePairs
from tmkit.manipulation.grasps.sampling import Grasp, grasp_contact_faults
from tmkit.plans.failures import FailureKind, MotionFailure, PrimitiveFailedError
from tmkit.plans.values import Attachment, Configuration, SegmentKind
from tmkit.spatial import Pose

_SPINS = 8  # turns of the giving tool about its axis that are tried
# radians by which the giving tool may point below or above the horizontal
_TILTS = (0.0, math.pi / 6, -math.pi / 6)


@dataclass(frozen=True)
class Handover(BuiltInCandidate):
    """Give a held object to another arm.

    Attributes:
        object: frame of the object, which is a child of the giver's hand.
        giver: name of the arm that holds it.
        taker: name of the arm that takes it.
        grasp: how the taker holds it.
        exchange: root_from_object, where it changes hands.
    """

    object: str
    giver: str
    taker: str
    grasp: Grasp
    exchange: Pose

    def _motions(
        self, arm: ArmMotionPlanner, context: ActionContext, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        del arm
        exchange = _Exchange(self, context.arm(self.giver), context.arm(self.taker), context, seed)
        return exchange.attempts()


def handovers(
    context: ActionContext, object: str, *, giver: str, taker: str, points: Iterable[ArrayLike]
) -> Iterator[Handover]:
    """Yield handovers at given points, the hands opposite each other.

    The giving tool points from the giver's base towards the taker's, level first, then tilted; the
    taker takes the side of the object that faces it.

    Args:
        context: where the action is to be carried out.
        object: frame of the object, in the giver's hand.
        giver: name of the arm that holds it.
        taker: name of the arm that takes it.
        points: (3,) points of the root at which the giver's tool may be, best first.
    """
    scene, q = context.scene, context.q
    giving, taking = context.arm(giver).manipulator, context.arm(taker).manipulator
    root = scene.root(object)
    bases = [scene.pose(arm.base, relative_to=root, q=q).translation for arm in (giving, taking)]
    across = (bases[1] - bases[0]) * np.array([1.0, 1.0, 0.0])
    # of bases in one place any direction
    across = across / norm(across) if norm(across) else np.eye(3)[0]
    tool_from_object = scene.pose(object, relative_to=giving.tool, q=q)
    ahead = tool_from_object.inverse().rotate([0.0, 0.0, 1.0])
    grasps = context.grasps(object, arm=taker)
    facing = [
        grasp
        for grasp in grasps
        if dot(ahead, grasp.object_from_tool.rotate([0.0, 0.0, 1.0])) < -0.9
    ]
    for point in points:
        for tilt in _TILTS:
            axis = cos(tilt) * across - np.array([0.0, 0.0, sin(tilt)])
            for spin in range(_SPINS):
                exchange = (
                    _tool(np.asarray(point, dtype=float), axis, spin * math.tau / _SPINS)
                    @ tool_from_object
                )
                for grasp in facing:
                    yield Handover(object, giver, taker, grasp, exchange)


def _tool(point: np.ndarray, axis: np.ndarray, spin: float) -> Pose:
    """Return root_from_tool at a point, its z axis along ``axis`` and turned about it."""
    level = np.cross(axis, [0.0, 0.0, 1.0])
    level /= norm(level)
    x = cos(spin) * level + sin(spin) * np.cross(axis, level)
    return Pose.from_rotation_matrix(point, np.column_stack([x, np.cross(axis, x), axis]))


class _Exchange:
    """One handover in the making."""

    def __init__(
        self,
        candidate: Handover,
        giver: ArmMotionPlanner,
        taker: ArmMotionPlanner,
        context: ActionContext,
        seed: int,
    ) -> None:
        self.candidate, self.giver, self.taker, self.seed = candidate, giver, taker, seed
        self.scene, self.q = context.scene, context.q
        self.near: FramePairs = giver.primitives.near_pairs(self.scene, self.q)
        self.carried = giver.primitives.phase(
            self.scene, self.near, contact_object=candidate.object
        )
        self.before = taker.primitives.phase(self.scene, self.near, contact_object=candidate.object)

    def attempts(self) -> Iterator[ActionMotion | MotionFailure]:
        """Yield motions and failures."""
        object, giver = self.candidate.object, self.giver
        if self.scene.parent(object) != giver.manipulator.tip:
            cause = f"'{object}' is not in the hand of '{self.candidate.giver}'"
            yield MotionFailure("handing over", cause, kind=FailureKind.NO_CHOICE)
            return
        root_from_tool = self.candidate.exchange @ self.scene.pose(
            giver.manipulator.tool, relative_to=object, q=self.q
        )
        what = "reaching the exchange"
        for q in giver.primitives.contacts(
            self.carried, root_from_tool, q=self.q, seed=self.seed, label=what
        ):
            if isinstance(q, MotionFailure):
                yield q
            else:
                yield from self._taken_at(q)

    def _taken_at(self, q_exchange: Configuration) -> Iterator[ActionMotion | MotionFailure]:
        """Return motions for one configuration of the giver."""
        taker, scene, object = self.taker, self.scene, self.candidate.object
        q_open = scene.configuration(
            taker.manipulator.opened(self.candidate.grasp.opening), base=q_exchange
        )
        root_from_object = scene.pose(object, relative_to=scene.root(object), q=q_exchange)
        target = root_from_object @ self.candidate.grasp.object_from_tool
        what = "reaching what the other hand holds"
        contacts = taker.primitives.contacts(
            self.before, target, q=q_open, seed=self.seed, label=what
        )
        return motions_at(contacts, partial(self._exchange, q_exchange, q_open))

    def _exchange(
        self, q_exchange: Configuration, q_open: Configuration, q_take: Configuration
    ) -> ActionMotion:
        giver, taker, scene, object = self.giver, self.taker, self.scene, self.candidate.object
        width = self.candidate.grasp.width
        q_held = scene.configuration(taker.manipulator.finger_values(width), base=q_take)
        faults = grasp_contact_faults(scene, q_held, taker.manipulator, object=object)
        if faults:
            raise PrimitiveFailedError("grasp", faults[0], kind=FailureKind.GRIP)
        tip = taker.manipulator.tip
        change = Attachment(object, tip, scene.pose(object, relative_to=tip, q=q_held))
        taken = change.applied(scene, q_held)
        both = giver.primitives.phase(taken, self.near, contact_object=object)
        away = taker.primitives.tool_line(self.before, q_take, label="approach")
        taker.primitives.require_free_fingers(self.before, q_take, q_held, label="grasp")
        q_let = giver.released(both, q_held, object)
        back = giver.primitives.tool_line(both, q_let, label="retreat")
        transfer = giver.primitives.plan_path(
            self.carried, self.q, q_exchange[None], seed=self.seed, label="transfer"
        )
        giver.require_payload(self.carried, transfer, object=object, label="transfer")
        taker.require_payload(both, back, object=object, label="retreat")
        free = taker.primitives.phase(scene, self.near)
        taker.primitives.require_free_fingers(free, q_exchange, q_open, label="opening the hand")
        transit = taker.primitives.plan_path(
            free, q_open, away[-1][None], seed=self.seed, label="transit"
        )
        giver.primitives.require_torque_limits(self.carried, transfer, label="transfer")
        giver.primitives.require_torque_limits(both, back, label="retreat")
        taker.primitives.require_torque_limits(free, transit, away, label="transit")
        segments = (
            giver.segment(
                SegmentKind.TRANSFER, transfer, q=self.q, held=object, phase=self.carried
            ),
            taker.segment(SegmentKind.TRANSIT, transit, q=q_open, held=None, phase=free),
            taker.segment(
                SegmentKind.APPROACH, away[::-1], q=q_open, held=object, phase=self.before
            ),
            taker.segment(
                SegmentKind.GRASP,
                q_take[None],
                q=q_held,
                held=object,
                phase=self.before,
                change=change,
            ),
            giver.segment(SegmentKind.RELEASE, q_held[None], q=q_let, held=object, phase=both),
            giver.segment(SegmentKind.RETREAT, back, q=q_let, held=object, phase=both),
        )
        point = scene.pose(object, relative_to=scene.root(object), q=q_exchange).translation
        return ActionMotion(
            segments, taken, back[-1], f"at ({', '.join(f'{number:.3f}' for number in point)})"
        )
