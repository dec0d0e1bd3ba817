"""Several arms: what an arm cannot carry all the way changes hands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import dot, norm
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import (
    ActionContext,
    ApplyEffects,
    Candidate,
    DeadEnd,
    MoveTo,
    Sequence,
)
from tmkit.manipulation.actions.handover import handovers
from tmkit.pddl import GroundAction
from tmkit.robots import Manipulator
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.parts.regions import Regions

_AHEAD = (0.6, 0.7, 0.5)  # metres before the middle of the two bases at which hands meet
_ABOVE = (0.0, 0.15, -0.15, 0.3, 0.45, 0.6, 0.75)  # metres above the middle of the two bases
_ROOM = 0.11  # metres around hands and object that should be free where they meet


class TwoArms(Regions):
    """Arms, two or more, that act and hand objects over to each other.

    The domain does not state which arm reaches which region: the planner computes it, and plans a
    handover where needed. Hands meet between the bases of the two arms, in front of them, where the
    regions are.

    Attributes:
        steps_aside: whether an arm that is in the way of another goes to its ready configuration.
            With :class:`Home`, it is at home then, which the PDDL does not predict.

    Args:
        manipulators: the arms, one or more.
    """

    has_arms = True
    # those of arms that stepped aside hold beyond what is predicted
    probabilistic_predicates = frozenset({"athome"})
    steps_aside: ClassVar[bool] = True
    pddl: ClassVar[str] = """
    (:requirements :typing :equality :negative-preconditions)
    (:types arm - object)
    (:action hand-over
      :parameters (?giver - arm ?taker - arm ?x - item)
      :precondition (and (holding ?giver ?x) (handempty ?taker) (not (= ?giver ?taker)))
      :effect (and (holding ?taker ?x) (handempty ?giver) (not (holding ?giver ?x)) (not (handempty ?taker))))
    """

    def __init__(self, *manipulators: Manipulator) -> None:
        super().__init__(manipulators[0])
        self.arms = {pddl_name(arm.name): arm for arm in manipulators}

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield ways to carry out an action, each also after the other arms have gone out of its way."""
        away = [
            arm
            for name, arm in self.arms.items()
            if name not in action.arguments and not self.is_ready(context.scene, context.q, name)
        ]
        aside = [MoveTo(arm.ready, "out of the way", arm=arm.name) for arm in away]
        for candidate in super().candidates(action, context):
            yield candidate
            if aside and self.steps_aside and not isinstance(candidate, ApplyEffects | DeadEnd):
                yield Sequence((*aside, candidate), object=getattr(candidate, "object", None))

    def do_hand_over(
        self, context: ActionContext, giver: Manipulator, taker: Manipulator, object: str
    ) -> Iterator[Candidate]:
        """Yield exchanges, those with room around them first."""
        points = self._points(context, giver, taker)
        yield from handovers(context, object, giver=giver.name, taker=taker.name, points=points)

    def _points(
        self, context: ActionContext, giver: Manipulator, taker: Manipulator
    ) -> Iterable[NDArray[np.float64]]:
        """Return where hands may meet: before the middle of the two bases, on the side on which the regions are.

        Points with room around them come first: above a wall between the arms, for example.
        """
        scene, q = context.scene, context.q
        root = scene.root(scene.frame_names[0])
        first, second = (
            scene.pose(arm.base, relative_to=root, q=q).translation for arm in (giver, taker)
        )
        regions = [
            scene.pose(region, relative_to=root, q=q).translation
            for region in self.region_frames(scene)
        ]
        middle, across = (first + second) / 2, second - first
        ahead = np.cross(across, [0.0, 0.0, 1.0])
        ahead /= norm(ahead) or 1.0
        if regions and dot(ahead, np.mean(regions, axis=0) - middle) < 0.0:
            ahead = -ahead
        points = [
            middle + distance * ahead + np.array([0.0, 0.0, height])
            for height in _ABOVE
            for distance in _AHEAD
        ]
        near = [self._nearest(context.scene, q, point) for point in points]
        return [
            points[k]
            for k in sorted(range(len(points)), key=lambda k: -min(_ROOM, round(near[k], 3)))
        ]

    def _nearest(
        self, scene: SceneGraph, q: NDArray[np.float64], point: NDArray[np.float64]
    ) -> float:
        """Return the metres from a point of the root to the nearest box around a shape that stands still."""
        arms = {frame for arm in self.arms.values() for frame in scene.subtree(arm.base)}
        least = np.inf
        for frame in scene.frame_names:
            if frame in arms:
                continue
            for attached in scene.shapes(frame):
                if attached.collision:
                    low, high = attached.shape.bounds
                    at = (
                        (scene.pose(frame, relative_to=scene.root(frame), q=q) @ attached.pose)
                        .inverse()
                        .apply(point)
                    )
                    least = min(least, norm(np.maximum(0.0, np.maximum(low - at, at - high))))
        return float(least)
