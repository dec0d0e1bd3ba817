"""Semantics of the handover domain in a scene.

An *arm* is one of the arms that plan together, an object (PDDL type ``item``) a frame of class ``movable``, a *place*
one of class ``surface`` or ``region``. An object is at the place that is its parent, or held by the arm whose tip is
its parent.

The domain does not state which arm reaches which place: the planner computes it, and plans a handover where needed.
Hands meet between the bases of the two arms, in front of them, where the places are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    Candidate,
    Grasp,
    Handover,
    Pick,
    Place,
    Placement,
    PlacementSettings,
    handovers,
    placements_on_surface,
)
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial.elementary import dot, norm
from tmkit.tamp import DomainSemantics, pddl_name
from tmkit.tamp.domains import no_grasp

PLACE_CLASSES = ("surface", "region")
"""Classes that mark a frame as a place."""

_AHEAD = (0.6, 0.7, 0.5)  # metres before the middle of the two bases at which hands meet
_DOWNWARDS = -0.5  # z of the tool's axis below which a hand comes from above
_ABOVE = (0.0, 0.15, -0.15, 0.3, 0.45, 0.6, 0.75)  # metres above the middle of the two bases
_ROOM = 0.11  # metres around hands and object that should be free where they meet


class Semantics(DomainSemantics):
    """The meaning of the handover domain.

    Args:
        manipulators: the arms, one or more.
    """

    is_incremental = True

    def __init__(self, *manipulators: Manipulator) -> None:
        super().__init__(manipulators[0])
        self.manipulators = {pddl_name(arm.name): arm for arm in manipulators}

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return arms, objects and places by PDDL name.

        Raises:
            SceneError: two frames of one name in PDDL.
        """
        found: dict[str, str] = {}
        kinds = (("arm", list(self.manipulators)), ("item", movable_frames(scene)), ("place", _places(scene)))
        for kind, frames in kinds:
            for frame in frames:
                name = pddl_name(frame)
                if name in found:
                    what = f"the {kind} '{frame}' has the name of another {found[name]} in PDDL: '{name}'"
                    raise SceneError(f"{what}; rename one", frame=frame)
                found[name] = kind
        return found

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return where each object is, and which hands are empty.

        Raises:
            SceneError: an object that is at no place and in no hand, or two in one hand.
        """
        del objects, q
        places = {frame: pddl_name(frame) for frame in _places(scene)}
        holders = {arm.tip: name for name, arm in self.manipulators.items()}
        facts: list[Fact] = []
        busy: dict[str, str] = {}
        for object in movable_frames(scene):
            parent = scene.parent(object)
            if parent in holders:
                arm = holders[parent]
                if arm in busy:
                    raise SceneError(f"'{busy[arm]}' and '{object}' are both in the hand of '{arm}'", frame=object)
                busy[arm] = object
                facts.append(Fact.of("holding", arm, pddl_name(object)))
            elif parent in places:
                facts.append(Fact.of("at", pddl_name(object), places[parent]))
            else:
                known = ", ".join(places) or "none"
                raise SceneError(
                    f"object '{object}' has parent '{parent}', which is no place (class {' or '.join(PLACE_CLASSES)}: "
                    f"{known}) and no hand",
                    frame=object,
                )
        facts.extend(Fact.of("empty", arm) for arm in self.manipulators if arm not in busy)
        return State(facts)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps, placements, or exchanges, best first."""
        frames = {pddl_name(frame): frame for frame in (*movable_frames(context.scene), *_places(context.scene))}
        if action.name == "hand-over":
            giver, taker = (self.manipulators[name].name for name in action.arguments[:2])
            yield from self._handovers(context, frames[action.arguments[2]], giver=giver, taker=taker)
            return
        arm, object, place = self.manipulators[action.arguments[0]].name, *(frames[n] for n in action.arguments[1:])
        if action.name == "pick":
            grasps = self._grasps(context, object, arm)
            if not grasps:
                yield no_grasp(context.scene, object, manipulator=context.arm(arm).manipulator)
            for grasp in grasps:
                yield Pick(object, grasp, arm)
        else:
            for placement in self._placements(context, object, place, arm):
                yield Place.at(object, placement, arm=arm)

    def _grasps(self, context: ActionContext, object: str, arm: str) -> list[Grasp]:
        """Return the grasps of an object: from above first."""
        root_from_object = context.scene.pose(object, relative_to=context.scene.root(object), q=context.q)

        def steepness(grasp: Grasp) -> float:
            return round(float((root_from_object @ grasp.object_from_tool).rotate([0.0, 0.0, 1.0])[2]), 3)

        return sorted(context.grasps(object, arm=arm), key=steepness)

    def _placements(self, context: ActionContext, object: str, place: str, arm: str) -> Iterator[Placement]:
        """Yield where an object may rest, on whichever side the hand can come to from above."""
        scene, q, manipulator = context.scene, context.q, context.arm(arm).manipulator
        root_from_place = scene.pose(place, relative_to=scene.root(place), q=q)
        object_from_tool = scene.pose(manipulator.tool, relative_to=object, q=q)
        settings = PlacementSettings(is_packed=False, any_face=True)
        for placement in placements_on_surface(
            scene, object, place, q=q, rng=context.rng, manipulator=manipulator, settings=settings
        ):
            tool = root_from_place @ placement.support_from_object @ object_from_tool
            if float(tool.rotate([0.0, 0.0, 1.0])[2]) < _DOWNWARDS:
                yield placement

    def _handovers(self, context: ActionContext, object: str, *, giver: str, taker: str) -> Iterator[Handover]:
        yield from handovers(context, object, giver=giver, taker=taker, points=self._points(context, giver, taker))

    def _points(self, context: ActionContext, giver: str, taker: str) -> Iterable[NDArray[np.float64]]:
        """Return where hands may meet: before the middle of the two bases, on the side on which the places are.

        Points with room around them come first: above a wall between the arms, for example.
        """
        scene, q = context.scene, context.q
        root = scene.root(scene.frame_names[0])
        first, second = (
            scene.pose(context.arm(arm).manipulator.base, relative_to=root, q=q).translation for arm in (giver, taker)
        )
        places = [scene.pose(place, relative_to=root, q=q).translation for place in _places(scene)]
        middle, across = (first + second) / 2, second - first
        ahead = np.cross(across, [0.0, 0.0, 1.0])
        ahead /= norm(ahead) or 1.0
        if places and dot(ahead, np.mean(places, axis=0) - middle) < 0.0:
            ahead = -ahead
        points = [middle + distance * ahead + np.array([0.0, 0.0, height]) for height in _ABOVE for distance in _AHEAD]
        near = [self._nearest(context, point) for point in points]
        return [points[k] for k in sorted(range(len(points)), key=lambda k: -min(_ROOM, round(near[k], 3)))]

    def _nearest(self, context: ActionContext, point: NDArray[np.float64]) -> float:
        """Return the metres from a point of the root to the nearest box around a shape that stands still."""
        scene, q = context.scene, context.q
        arms = {frame for arm in self.manipulators.values() for frame in scene.subtree(arm.base)}
        least = np.inf
        for frame in scene.frame_names:
            if frame in arms:
                continue
            for attached in scene.shapes(frame):
                if attached.collision:
                    low, high = attached.shape.bounds
                    at = (scene.pose(frame, relative_to=scene.root(frame), q=q) @ attached.pose).inverse().apply(point)
                    least = min(least, norm(np.maximum(0.0, np.maximum(low - at, at - high))))
        return float(least)


def _places(scene: SceneGraph) -> tuple[str, ...]:
    """Return the places in insertion order."""
    found = {frame for name in PLACE_CLASSES for frame in scene.frames_of_class(name)}
    return tuple(frame for frame in scene.frame_names if frame in found)
