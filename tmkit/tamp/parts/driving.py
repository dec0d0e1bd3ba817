"""Driving: an arm on a mobile base that drives from region to region, and to stations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tmkit._support.elementary import atan2, cos, norm, sin
from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, MoveTo, Sequence
from tmkit.pddl import Fact, State
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.tabletop import shape_bounds
from tmkit.tamp.parts.arms import TwoArms
from tmkit.tamp.parts.regions import Arguments, Regions

_AT_STATION = 0.01  # metres and radians within which the base is at a station
_AT_SURFACE = 1.0  # metres from the edge of a surface within which the base is at it
_GAP = 0.03  # metres between the chassis and the edge of a surface, at least
# metres from an object to the base: where to begin, and how to go on
_NEAREST, _STEP, _STEPS = 0.45, 0.08, 3
_DIRECTIONS = 12


class Driving(Regions):
    """An arm on a mobile base, whose joints are two slides and a turn in the plane.

    It picks and places where it stands. A *station* (type ``location``) is a frame of class
    ``station``: a pose in the plane for the base. The base is at a station when it is at its pose,
    else at the nearest region. It drives to a region to one of several poses at its edge, with its
    front towards an object there, while the arm is at its ready configuration. Drives alone cost.

    Args:
        manipulator: the arm.
        base: the mobile base, with joints along x, along y and about z.
    """

    excludes = (TwoArms,)  # the base carries one arm
    pddl: ClassVar[str] = """
    (:requirements :typing :action-costs)
    (:types location - object region - location)
    (:predicates (at ?l - location))         ; the base is at ?l
    (:functions (total-cost) - number)
    (:action drive
      :parameters (?from - location ?to - location)
      :precondition (at ?from)
      :effect (and (at ?to) (not (at ?from)) (increase (total-cost) 1)))
    (:extend (pick place place-upside-down) :precondition (at ?r))
    """

    def __init__(self, manipulator: Manipulator, base: Manipulator) -> None:
        super().__init__(manipulator)
        self.base = base

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield also the stations."""
        yield from super().kinds(scene)
        yield "location", scene.frames_of_class("station")

    def facts_at(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield where the base is."""
        yield (self._location(scene, q),)

    def conflict_facts(
        self, frames: frozenset[str], state: State, scene: SceneGraph
    ) -> Iterable[Fact]:
        """Return where the objects of these frames are, and the base: on both depends what the arm reaches."""
        return (
            *super().conflict_facts(frames, state, scene),
            *(fact for fact in state if self.word(fact) == "at"),
        )

    def _location(self, scene: SceneGraph, q: Configuration) -> str:
        """Return the station or region that the base is at.

        Raises:
            SceneError: it is at none.
        """
        at = np.asarray(q)[self.base.joint_indices(scene)]
        for station in scene.frames_of_class("station"):
            x, y, yaw = self._planar(scene, station)
            if (
                max(abs(at[0] - x), abs(at[1] - y), abs(math.remainder(at[2] - yaw, math.tau)))
                <= _AT_STATION
            ):
                return station
        gaps = {surface: self._gap(scene, surface, at) for surface in self.region_frames(scene)}
        nearest = min(gaps, key=lambda surface: gaps[surface], default=None)
        if nearest is None or gaps[nearest] > _AT_SURFACE:
            where = (
                "there is none" if nearest is None else f"'{nearest}' is {gaps[nearest]:.2f} m away"
            )
            what = (
                f"the base '{self.base.tip}' is at no station and within {_AT_SURFACE:g} m of no"
                f" surface: {where}"
            )
            raise SceneError(what, frame=self.base.tip)
        return nearest

    def do_drive(self, context: ActionContext, here: str, there: str) -> Iterator[Candidate]:
        """Yield ways to a location: the arm folds to its ready configuration, then the base drives."""
        del here
        scene, arm = context.scene, self.manipulator
        now = context.q[self.base.joint_indices(scene)]
        if "station" in scene.classes(there):
            poses = [self._planar(scene, there)]
        else:
            poses = self._poses_at(context, there, now)
        folded = self.is_ready(scene, context.q, pddl_name(arm.name))
        for x, y, yaw in poses:
            yaw = float(now[2]) + math.remainder(yaw - now[2], math.tau)
            lower, upper = scene.joint_limits[scene.joint_names.index(self.base.joints[2])]
            yaw += math.tau * (int(yaw < lower) - int(yaw > upper))
            joints = dict(zip(self.base.joints, (x, y, yaw), strict=True))
            drive = MoveTo(joints, f"({x:.2f}, {y:.2f})", arm=self.base.name)
            yield (
                drive
                if folded
                else Sequence((MoveTo(arm.ready, "the carrying configuration"), drive))
            )

    def _poses_at(
        self, context: ActionContext, surface: str, now: NDArray[np.float64]
    ) -> list[tuple[float, float, float]]:
        """Return poses beside a surface with the front towards an object on it, or its middle: the nearest first."""
        scene, found = context.scene, []
        lower, upper = shape_bounds(scene, self.base.tip)
        radius = norm(np.maximum(np.abs(lower), np.abs(upper))[:2])
        objects = [item for item in movable_frames(scene) if scene.parent(item) == surface]
        turned = context.rng.uniform(0.0, math.tau / _DIRECTIONS)
        for target in objects if objects and not self.held(scene) else [surface]:
            centre = scene.pose(target, relative_to=self.base.base, q=context.q).translation
            for k in range(_DIRECTIONS):
                angle, distance = turned + math.tau * k / _DIRECTIONS, _NEAREST
                ahead = np.array([cos(angle), sin(angle)])
                while self._gap(scene, surface, centre[:2] - distance * ahead) < radius + _GAP:
                    distance += _STEP
                at = centre[:2] - (distance + _STEP * context.rng.uniform()) * ahead
                pose = (float(at[0]), float(at[1]), angle)
                there = scene.configuration(dict(zip(self.base.joints, pose, strict=True)))
                if self._location(scene, there) == surface:
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
