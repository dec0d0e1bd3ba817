"""Domain part for several arms that hand objects over to each other."""

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
from tmkit.robots.robot_files import Robot, resolve_robots
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.parts.regions import Regions, require_gripper

_FORWARD_DISTANCES = (0.6, 0.7, 0.5)
"""Distances of handover points in front of the midpoint of the two bases [m]."""

_HEIGHTS = (0.0, 0.15, -0.15, 0.3, 0.45, 0.6, 0.75)
"""Heights of handover points above the midpoint of the two bases [m]."""

_HANDOVER_CLEARANCE = 0.11
"""Distance from static shapes above which handover points are equivalent [m]."""


class TwoArms(Regions):
    """Two or more arms that act and hand objects over to each other.

    The domain does not state the regions that each arm reaches. The planner computes them, and
    plans a handover if needed. Hands meet between the bases of the two arms, on the side of the
    regions.

    Attributes:
        steps_aside: whether an arm that obstructs another moves to its ready configuration. With
            :class:`Home`, it is then at home, which PDDL does not predict.

    Args:
        robots: the arms, one or more.

    Raises:
        RobotError: if an arm has no gripper.
    """

    has_arms = True
    # An arm that stepped aside is at home, which PDDL does not predict.
    probabilistic_predicates = frozenset({"athome"})
    steps_aside: ClassVar[bool] = True
    pddl: ClassVar[str] = """
    (:requirements :typing :equality :negative-preconditions)
    (:types arm - object)
    (:action hand-over
      :parameters (?giver - arm ?taker - arm ?x - item)
      :precondition (and (holding ?giver ?x) (handempty ?taker) (not (= ?giver ?taker)))
      :effect (and (holding ?taker ?x) (handempty ?giver)
                   (not (holding ?giver ?x)) (not (handempty ?taker))))
    """

    def __init__(self, *robots: Robot) -> None:
        arms = resolve_robots(robots, function="TwoArms", name="robots")
        for arm in arms[1:]:
            require_gripper(arm)
        super().__init__(arms[0])
        self.arms = {pddl_name(arm.name): arm for arm in arms}

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield candidates of an action, each also after other arms have moved out of the way."""
        retreats = [
            MoveTo(arm.ready, "out of the way", arm=arm.name)
            for name, arm in self.arms.items()
            if name not in action.arguments and not self.is_ready(context.scene, context.q, name)
        ]
        for candidate in super().candidates(action, context):
            yield candidate
            has_motion = not isinstance(candidate, ApplyEffects | DeadEnd)
            if retreats and self.steps_aside and has_motion:
                object = getattr(candidate, "object", None)
                yield Sequence((*retreats, candidate), object=object)

    def do_hand_over(
        self, context: ActionContext, giver: Manipulator, taker: Manipulator, object: str
    ) -> Iterator[Candidate]:
        """Yield handovers, those with clearance around them first."""
        points = self._handover_points(context, giver, taker)
        yield from handovers(context, object, giver=giver.name, taker=taker.name, points=points)

    def _handover_points(
        self, context: ActionContext, giver: Manipulator, taker: Manipulator
    ) -> Iterable[NDArray[np.float64]]:
        """Return points (3,) at which hands may meet, in the root [m].

        They are in front of the midpoint of the two bases, on the side of the regions. Points with
        clearance around them come first, for example above a wall between the arms.
        """
        scene, q = context.scene, context.q
        root = scene.root(scene.frame_names[0])
        first = scene.pose(giver.base, relative_to=root, q=q).translation
        second = scene.pose(taker.base, relative_to=root, q=q).translation
        regions = [
            scene.pose(region, relative_to=root, q=q).translation
            for region in self.region_frames(scene)
        ]
        middle, baseline = (first + second) / 2, second - first
        forward = np.cross(baseline, [0.0, 0.0, 1.0])
        forward /= norm(forward) or 1.0
        if regions and dot(forward, np.mean(regions, axis=0) - middle) < 0.0:
            forward = -forward
        points = [
            middle + distance * forward + np.array([0.0, 0.0, height])
            for height in _HEIGHTS
            for distance in _FORWARD_DISTANCES
        ]
        distances = [self._static_distance(context.scene, q, point) for point in points]
        clearances = [min(_HANDOVER_CLEARANCE, round(distance, 3)) for distance in distances]
        order = sorted(range(len(points)), key=lambda k: -clearances[k])
        return [points[k] for k in order]

    def _static_distance(
        self, scene: SceneGraph, q: NDArray[np.float64], point: NDArray[np.float64]
    ) -> float:
        """Return the distance of a point in the root from the nearest box of a static shape [m]."""
        arms = {frame for arm in self.arms.values() for frame in scene.subtree(arm.base)}
        distance = np.inf
        for frame in scene.frame_names:
            if frame in arms:
                continue
            for attached in scene.shapes(frame):
                if attached.collision:
                    low, high = attached.shape.bounds
                    root_from_frame = scene.pose(frame, relative_to=scene.root(frame), q=q)
                    local = (root_from_frame @ attached.pose).inverse().apply(point)
                    outside = np.maximum(0.0, np.maximum(low - local, local - high))
                    distance = min(distance, norm(outside))
        return float(distance)
