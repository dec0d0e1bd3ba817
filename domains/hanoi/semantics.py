"""What the words of the towers of Hanoi mean in a scene.

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

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.motion import Manipulator, movable_frames
from tmkit.planner import ActionContext, Candidate, Grasp, Impossible, Pick, Place
from tmkit.planner.domains.standing import (
    grasps_steepest_first,
    held_object,
    pddl_names,
    require_standing,
    shape_bounds,
    standing_pose,
    turns_nearest_first,
    why_no_grasp,
)
from tmkit.tasks import Fact, GroundAction, State

_WIDER = 1e-4  # metres that make a disc wider than another
_ABOVE_ROD = 0.015  # metres between a rod's top and the foot of a disc that is carried to it
_LEAST_LIFT = 0.06  # metres by which discs are lifted where there is no rod
_STEEP, _IN_THE_MIDDLE = -0.9, 0.01  # z of a direction from above; metres from a disc's axis


class Semantics:
    """The meaning of the towers of Hanoi for one arm.

    Args:
        manipulator: the arm that moves the discs.
    """

    def __init__(self, manipulator: Manipulator) -> None:
        self.manipulator = manipulator

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return discs and places by PDDL name.

        Raises:
            SceneError: two things of one name in PDDL.
        """
        places = scene.frames_of_class("place")
        return {name: "place" if frame in places else "disc" for name, frame in _frames(scene).items()}

    def state(self, scene: SceneGraph, objects: Mapping[str, str]) -> State:
        """Return what lies on what, what fits on what, and what is held.

        Raises:
            SceneError: a disc that lies on nothing the domain knows, two on one thing, two in the hand, or one that
                leans, floats, or lies beside what it hangs off.
        """
        del objects
        frames = _frames(scene)
        names = {frame: name for name, frame in frames.items()}
        discs = movable_frames(scene)
        held = held_object(scene, discs, manipulator=self.manipulator)
        facts = [Fact.of("handempty") if held is None else Fact.of("holding", names[held])]
        covered: dict[str, str] = {}
        for disc in discs:
            if disc == held:
                continue
            below = self._below(scene, disc, names)
            require_standing(scene, disc)
            if below in covered:
                raise SceneError(f"discs '{covered[below]}' and '{disc}' lie both on '{below}'", frame=disc)
            covered[below] = disc
            facts.append(Fact.of("on", names[disc], names[below]))
        facts.extend(Fact.of("clear", name) for name, frame in frames.items() if frame not in covered and frame != held)
        facts.extend(
            Fact.of("fits", names[disc], name)
            for disc in discs
            for name, frame in frames.items()
            if frame not in discs or _width(scene, frame) > _width(scene, disc) + _WIDER
        )
        return State(facts)

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterator[Fact]:
        """Yield what each stated disc is to lie on, or that the hand is to hold it.

        Raises:
            SceneError: a disc that hangs off nothing the domain knows.
        """
        del objects
        names = {frame: name for name, frame in _frames(scene).items()}
        for disc in stated:
            if scene.parent(disc) == self.manipulator.tip:
                yield Fact.of("holding", names[disc])
            else:
                yield Fact.of("on", names[disc], names[self._below(scene, disc, names)])

    def useful_objects(self, scene: SceneGraph, q: np.ndarray) -> frozenset[str]:
        """Return all objects: there are few."""
        del q
        return frozenset(_frames(scene))

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of the disc, or turns in which to put it down, best first."""
        frames = _frames(context.scene)
        disc, other = (frames[name] for name in action.arguments)
        if action.name == "take":
            grasps = grasps_steepest_first(context, disc, manipulator=self.manipulator)
            if not grasps:
                yield Impossible(why_no_grasp(disc, self.manipulator))
            lift = self._lift(context.scene, disc, context.scene.local_pose(disc).translation[2], other)
            for grasp in sorted(grasps, key=lambda grasp: _is_over_middle(context, disc, grasp)):
                yield Pick(disc, grasp, lift=lift)
        else:
            for turn in turns_nearest_first(context, disc, other):
                pose = standing_pose(context.scene, disc, other, point=(0.0, 0.0), turn=turn)
                lift = self._lift(context.scene, disc, pose.translation[2], other)
                yield Place(disc, other, pose, lift=lift)

    def _lift(self, scene: SceneGraph, disc: str, height: float, below: str) -> float:
        """Return how far a disc at a height above what it lies on has to be lifted to come free of its rod."""
        place = next((frame for frame in (below, *scene.ancestors(below)) if "place" in scene.classes(frame)), below)
        foot = height + float(shape_bounds(scene, disc)[0][2])
        lifts = [_LEAST_LIFT]
        for rod in scene.children(place):
            if rod not in movable_frames(scene) and any(attached.collision for attached in scene.shapes(rod)):
                top = scene.pose(rod, below).apply(shape_bounds(scene, rod)[1])[2]
                lifts.append(float(top) - foot + _ABOVE_ROD)
        return max(lifts)

    def _below(self, scene: SceneGraph, disc: str, names: Mapping[str, str]) -> str:
        parent = scene.parent(disc)
        if parent is None or parent not in names:
            places = ", ".join(scene.frames_of_class("place")) or "none"
            what = f"disc '{disc}' hangs off '{parent}', which is no disc, no place (class 'place': {places}) and not"
            raise SceneError(f"{what} the hand '{self.manipulator.tip}'", frame=disc)
        return parent


def _frames(scene: SceneGraph) -> dict[str, str]:
    """Return the frames of discs and places by PDDL name."""
    return pddl_names([*movable_frames(scene), *scene.frames_of_class("place")])


def _is_over_middle(context: ActionContext, disc: str, grasp: Grasp) -> bool:
    """Tell whether the hand comes from above to where the rod is."""
    scene = context.scene
    root_from_disc = scene.pose(disc, scene.root(disc), q=context.q)
    is_steep = root_from_disc.rotate(grasp.object_from_tool.rotate([0.0, 0.0, 1.0]))[2] < _STEEP
    return bool(is_steep and np.linalg.norm(grasp.object_from_tool.translation[:2]) < _IN_THE_MIDDLE)


def _width(scene: SceneGraph, disc: str) -> float:
    lower, upper = shape_bounds(scene, disc)
    return float(upper[0] - lower[0])
