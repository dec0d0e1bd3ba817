"""Semantics of the towers of Hanoi in a scene.

A *disc* is a frame of class ``movable``, a *place* one of class ``place``. The parent of a disc says what it lies on:
a place, another disc, or the hand. A disc fits on every place and on every disc that is wider than itself; how wide it
is, its collision shape says.

Discs are put down in the middle of what they come to lie on, in quarter turns, which is no difference to a disc, but
one to the arm.

Where something stands on a place that is no disc, it is a *rod*, and discs have holes: they are lifted straight up
until they are above it, and lowered straight down over it. A hand that comes from above to the middle of a disc would
meet the rod, so such grasps are tried last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Grasp, HandMotion, Impossible, Pick, Place
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import movable_frames
from tmkit.spatial.elementary import norm
from tmkit.tamp import incremental, pddl_name
from tmkit.tamp.domains import TabletopSemantics, pick_candidates, shape_bounds, standing_pose, turns_nearest_first

_WIDER = 1e-4  # metres that make a disc wider than another
_ABOVE_ROD = 0.015  # metres between a rod's top and the foot of a disc that is carried to it
_LEAST_LIFT = 0.06  # metres by which discs are lifted where there is no rod
_STEEP, _IN_THE_MIDDLE = -0.9, 0.01  # z of a direction from above; metres from a disc's axis


class Semantics(TabletopSemantics):
    """The meaning of the towers of Hanoi for one arm.

    Args:
        manipulator: the arm that moves the discs.
    """

    object_type, support_type, relation = "disc", "place", "on"

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return what lies on what, what fits on what, and what is held.

        Raises:
            SceneError: a disc whose parent is no object of the domain, two on one support, two in the hand, or one that
                leans, floats, or lies beside its parent.
        """
        del objects, q
        frames = self.frames(scene)
        names = {frame: name for name, frame in frames.items()}
        discs = movable_frames(scene)
        held, hand = self.held(scene)
        facts = [hand]
        covered: dict[str, str] = {}
        for disc in discs:
            if disc == held:
                continue
            below = self.checked_support_of(scene, disc)
            if below in covered:
                raise SceneError(f"discs '{covered[below]}' and '{disc}' lie both on '{below}'", frame=disc)
            covered[below] = disc
            facts.append(Fact.of("on", names[disc], names[below]))
        facts.extend(Fact.of("clear", name) for name, frame in frames.items() if frame not in covered and frame != held)
        for disc in discs:
            facts.extend(_fits(scene, disc, self))
        return State(facts)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of the disc, or turns in which to put it down, best first."""
        frames = self.frames(context.scene)
        disc, other = (frames[name] for name in action.arguments)
        if action.name == "take":
            lift = self._lift(context.scene, disc, context.scene.local_pose(disc).translation[2], other)
            picks = list(pick_candidates(context, disc, manipulator=self.manipulator))
            yield from (pick for pick in picks if isinstance(pick, Impossible))
            known = [replace(pick, motion=HandMotion(lift=lift)) for pick in picks if isinstance(pick, Pick)]
            yield from sorted(known, key=lambda pick: _is_over_middle(context, disc, pick.grasp))
        else:
            for turn in turns_nearest_first(context, disc, other):
                pose = standing_pose(context.scene, disc, other, point=(0.0, 0.0), turn=turn)
                lift = self._lift(context.scene, disc, pose.translation[2], other)
                yield Place(disc, other, pose, motion=HandMotion(lift=lift))

    def _lift(self, scene: SceneGraph, disc: str, height: float, below: str) -> float:
        """Return how far a disc at a height above what it lies on has to be lifted to come free of its rod."""
        place = next((frame for frame in (below, *scene.ancestors(below)) if "place" in scene.classes(frame)), below)
        foot = height + float(shape_bounds(scene, disc)[0][2])
        lifts = [_LEAST_LIFT]
        for rod in scene.children(place):
            if rod not in movable_frames(scene) and any(attached.collision for attached in scene.shapes(rod)):
                top = scene.pose(rod, relative_to=below).apply(shape_bounds(scene, rod)[1])[2]
                lifts.append(float(top) - foot + _ABOVE_ROD)
        return max(lifts)

    def is_support(self, scene: SceneGraph, frame: str) -> bool:
        """Return whether discs may lie on a frame: on a place or on a disc."""
        return super().is_support(scene, frame) or frame in movable_frames(scene)


@incremental
def _fits(scene: SceneGraph, disc: str, semantics: Semantics) -> tuple[Fact, ...]:
    """Return on what a disc fits: every place, and every disc that is wider."""
    discs, name = movable_frames(scene), pddl_name(disc)
    return tuple(
        Fact.of("fits", name, other)
        for other, frame in semantics.frames(scene).items()
        if frame not in discs or _width(scene, frame) > _width(scene, disc) + _WIDER
    )


def _is_over_middle(context: ActionContext, disc: str, grasp: Grasp) -> bool:
    """Return whether the hand comes from above to where the rod is."""
    scene = context.scene
    root_from_disc = scene.pose(disc, relative_to=scene.root(disc), q=context.q)
    is_steep = root_from_disc.rotate(grasp.object_from_tool.rotate([0.0, 0.0, 1.0]))[2] < _STEEP
    return bool(is_steep and norm(grasp.object_from_tool.translation[:2]) < _IN_THE_MIDDLE)


def _width(scene: SceneGraph, disc: str) -> float:
    lower, upper = shape_bounds(scene, disc)
    return float(upper[0] - lower[0])
