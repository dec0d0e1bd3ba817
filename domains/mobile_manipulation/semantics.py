"""Semantics of the mobile manipulation domain in a scene at a configuration.

Two robots plan together: an arm, and the mobile base that carries it, whose joints are two slides and a turn in the
plane. An object (PDDL type ``item``) is a frame of class ``movable``, a *surface* one of class ``surface``, a *station*
(type ``location``) one of class ``station``: a pose in the plane for the base. The base is at a station when it is at
its pose, else at the nearest surface. It drives to a surface to one of several poses at its edge, with its front
towards an object there, while the arm is at its ready configuration. Objects are put down upright.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, MoveTo, Place, Sequence
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial.elementary import atan2, cos, norm, sin
from tmkit.tamp import pddl_name
from tmkit.tamp.domains import TabletopSemantics, pick_candidates, shape_bounds

_AT_STATION = 0.01  # metres and radians within which the base is at a station
_AT_SURFACE = 1.0  # metres from the edge of a surface within which the base is at it
_GAP = 0.03  # metres between the chassis and the edge of a surface, at least
_NEAREST, _STEP, _STEPS = 0.45, 0.08, 3  # metres from an object to the base: where to begin, and how to go on
_DIRECTIONS = 12
_READY = 1e-6  # radians within which the arm is at its ready configuration


class Semantics(TabletopSemantics):
    """The meaning of the mobile manipulation domain.

    Args:
        manipulator: the arm.
        base: the mobile base, with joints along x, along y and about z.
    """

    object_type, support_type, relation = "item", "surface", "on"

    def __init__(self, manipulator: Manipulator, base: Manipulator) -> None:
        super().__init__(manipulator)
        self.base = base

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return objects, surfaces and stations by PDDL name."""
        return {**super().objects(scene), **dict.fromkeys(self._stations(scene), "location")}

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return where the base and each object is.

        Raises:
            SceneError: a base that is nowhere, an object that is on no surface and not in the hand, or two in the hand.
        """
        del objects
        names = {frame: name for name, frame in self.frames(scene).items()}
        held, hand = self.held(scene)
        on = [(names[i], self.checked_support_of(scene, i)) for i in movable_frames(scene) if i != held]
        facts = [Fact.of("on", item, names[surface]) for item, surface in on]
        return State([hand, Fact.of("at", self._location(scene, q)), *facts])

    def placement_facts(self, frames: frozenset[str], state: State, scene: SceneGraph) -> Iterable[Fact]:
        """Return where the objects of these frames are, and the base: on both depends what the arm reaches."""
        return (*super().placement_facts(frames, state, scene), *(fact for fact in state if fact.predicate == "at"))

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield poses of the base, grasps or placements, best first."""
        scene = context.scene
        if action.name == "drive":
            yield from self._drives(context, action.arguments[1])
            return
        item, surface = (self.frames(scene)[name] for name in action.arguments)
        if action.name == "pick":
            yield from pick_candidates(context, item, manipulator=self.manipulator)
        else:
            for placement in context.placements(item, surface):
                yield Place.at(item, placement)

    def _stations(self, scene: SceneGraph) -> dict[str, str]:
        return {pddl_name(frame): frame for frame in scene.frames_of_class("station")}

    def _location(self, scene: SceneGraph, q: NDArray[np.float64]) -> str:
        """Return the PDDL name of the station or surface that the base is at.

        Raises:
            SceneError: it is at none.
        """
        at = np.asarray(q)[self.base.joint_indices(scene)]
        for name, station in self._stations(scene).items():
            x, y, yaw = self._planar(scene, station)
            if max(abs(at[0] - x), abs(at[1] - y), abs(math.remainder(at[2] - yaw, math.tau))) <= _AT_STATION:
                return name
        gaps = {surface: self._gap(scene, surface, at) for surface in scene.frames_of_class("surface")}
        nearest = min(gaps, key=lambda surface: gaps[surface], default=None)
        if nearest is None or gaps[nearest] > _AT_SURFACE:
            where = "there is none" if nearest is None else f"'{nearest}' is {gaps[nearest]:.2f} m away"
            what = f"the base '{self.base.tip}' is at no station and within {_AT_SURFACE:g} m of no surface: {where}"
            raise SceneError(what, frame=self.base.tip)
        return pddl_name(nearest)

    def _drives(self, context: ActionContext, location: str) -> Iterator[Candidate]:
        """Yield ways to a location: the arm folds to its ready configuration, then the base drives."""
        scene, arm = context.scene, self.manipulator
        now = context.q[self.base.joint_indices(scene)]
        station = self._stations(scene).get(location)
        if station is None:
            poses = self._poses_at(context, self.frames(scene)[location], now)
        else:
            poses = [self._planar(scene, station)]
        entries = arm.joint_indices(scene)
        folded = np.max(np.abs(context.q[entries] - [arm.ready[joint] for joint in arm.joints])) < _READY
        for x, y, yaw in poses:
            yaw = float(now[2]) + math.remainder(yaw - now[2], math.tau)
            lower, upper = scene.joint_limits[scene.joint_names.index(self.base.joints[2])]
            yaw += math.tau * (int(yaw < lower) - int(yaw > upper))
            there = dict(zip(self.base.joints, (x, y, yaw), strict=True))
            drive = MoveTo(there, f"({x:.2f}, {y:.2f})", arm=self.base.name)
            yield drive if folded else Sequence((MoveTo(arm.ready, "the carrying configuration"), drive))

    def _poses_at(
        self, context: ActionContext, surface: str, now: NDArray[np.float64]
    ) -> list[tuple[float, float, float]]:
        """Return poses beside a surface with the front towards an object on it, or its middle: the nearest first."""
        scene, found = context.scene, []
        lower, upper = shape_bounds(scene, self.base.tip)
        radius = norm(np.maximum(np.abs(lower), np.abs(upper))[:2])
        objects = [item for item in movable_frames(scene) if scene.parent(item) == surface]
        turned = context.rng.uniform(0.0, math.tau / _DIRECTIONS)
        for target in objects if objects and self.held(scene)[0] is None else [surface]:
            centre = scene.pose(target, relative_to=self.base.base, q=context.q).translation
            for k in range(_DIRECTIONS):
                angle, distance = turned + math.tau * k / _DIRECTIONS, _NEAREST
                ahead = np.array([cos(angle), sin(angle)])
                while self._gap(scene, surface, centre[:2] - distance * ahead) < radius + _GAP:
                    distance += _STEP
                at = centre[:2] - (distance + _STEP * context.rng.uniform()) * ahead
                pose = (float(at[0]), float(at[1]), angle)
                there = scene.configuration(dict(zip(self.base.joints, pose, strict=True)))
                if self._location(scene, there) == pddl_name(surface):
                    found.append((round(distance, 6), round(norm(at - now[:2]), 6), pose))
        return [pose for *_, pose in sorted(found)]

    def _planar(self, scene: SceneGraph, frame: str) -> tuple[float, float, float]:
        """Return x, y and the turn about z of a frame, in metres and radians in the frame that the base drives in."""
        pose = scene.pose(frame, relative_to=self.base.base)
        ahead = pose.rotate([1.0, 0.0, 0.0])
        return float(pose.translation[0]), float(pose.translation[1]), atan2(ahead[1], ahead[0])

    def _gap(self, scene: SceneGraph, surface: str, at: NDArray[np.float64]) -> float:
        """Return the metres from a point (x, y) to the rectangle around a surface; 0 inside."""
        lower, upper = shape_bounds(scene, surface)
        point = scene.pose(self.base.base, relative_to=surface).apply([at[0], at[1], 0.0])[:2]
        return norm(np.maximum(0.0, np.maximum(lower[:2] - point, point - upper[:2])))
