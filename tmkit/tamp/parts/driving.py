"""Domain part for an arm on a mobile base that drives between regions and stations."""

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
from tmkit.robots import movable_frames
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.tabletop import shape_bounds
from tmkit.tamp.parts.arms import TwoArms
from tmkit.tamp.parts.regions import Arguments, Regions

_STATION_TOLERANCE = 0.01
"""Largest distance and angle from a station at which the base is at it [m, rad]."""

_SURFACE_DISTANCE = 1.0
"""Largest distance from the edge of a surface at which the base is at it [m]."""

_MIN_GAP = 0.03
"""Smallest distance between the chassis and the edge of a surface [m]."""

_MIN_OBJECT_DISTANCE = 0.45
"""Smallest distance of the base from an object [m]."""

_DISTANCE_STEP = 0.08
"""Step by which the distance from an object increases [m]."""

_N_DIRECTIONS = 12
"""Number of directions in which the base faces an object."""


class Driving(Regions):
    """An arm on a mobile base, with two prismatic joints and a revolute one in the plane.

    It picks and places from its current base pose. A *station* (type ``location``) is a frame of
    class ``station``: a pose of the base in the plane. The base is at a station when it has its
    pose, else at the nearest region. It drives to a region to one of several poses at its edge,
    with its front towards an object there, while the arm is at its ready configuration. Only drives
    have costs.

    Args:
        robot: the arm.
        base: mobile base, with joints along x, along y and about z.
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

    def __init__(self, robot: Robot, base: Robot) -> None:
        super().__init__(robot)
        self.base = resolve_robot(base, function="Driving", name="base")

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Also yield the stations."""
        yield from super().kinds(scene)
        yield "location", scene.frames_of_class("station")

    def facts_at(self, scene: SceneGraph, q: Configuration) -> Arguments:
        """Yield the location of the base."""
        yield (self._location(scene, q),)

    def conflict_facts(
        self, frames: frozenset[str], state: State, scene: SceneGraph
    ) -> Iterable[Fact]:
        """Return the facts about the places of these objects and of the base.

        Both determine the configurations that the arm can reach.
        """
        return (
            *super().conflict_facts(frames, state, scene),
            *(fact for fact in state if self.fragment_predicate(fact) == "at"),
        )

    def _location(self, scene: SceneGraph, q: Configuration) -> str:
        """Return the station or region of the base.

        Raises:
            SceneError: if the base is at no location.
        """
        pose = np.asarray(q)[self.base.joint_indices(scene)]
        for station in scene.frames_of_class("station"):
            x, y, yaw = self._planar(scene, station)
            angle = abs(math.remainder(pose[2] - yaw, math.tau))
            if max(abs(pose[0] - x), abs(pose[1] - y), angle) <= _STATION_TOLERANCE:
                return station
        gaps = {surface: self._gap(scene, surface, pose) for surface in self.region_frames(scene)}
        nearest = min(gaps, key=lambda surface: gaps[surface], default=None)
        if nearest is None or gaps[nearest] > _SURFACE_DISTANCE:
            distance = "there is none"
            if nearest is not None:
                distance = f"'{nearest}' is {gaps[nearest]:.2f} m away"
            raise SceneError(
                f"the base '{self.base.tip}' is at no station and within {_SURFACE_DISTANCE:g} m of"
                f" no surface: {distance}",
                frame=self.base.tip,
            )
        return nearest

    def do_drive(self, context: ActionContext, start: str, goal: str) -> Iterator[Candidate]:
        """Yield drives to a location, after the arm folds to its ready configuration."""
        del start
        scene, arm = context.scene, self.robot
        current_pose = context.q[self.base.joint_indices(scene)]
        if "station" in scene.classes(goal):
            poses = [self._planar(scene, goal)]
        else:
            poses = self._poses_at(context, goal, current_pose)
        is_folded = self.is_ready(scene, context.q, pddl_name(arm.name))
        for x, y, yaw in poses:
            yaw = float(current_pose[2]) + math.remainder(yaw - current_pose[2], math.tau)
            lower, upper = scene.joint_limits[scene.joint_names.index(self.base.joints[2])]
            yaw += math.tau * (int(yaw < lower) - int(yaw > upper))
            joints = dict(zip(self.base.joints, (x, y, yaw), strict=True))
            drive = MoveTo(joints, f"({x:.2f}, {y:.2f})", arm=self.base.name)
            fold = MoveTo(arm.ready, "the carrying configuration")
            yield drive if is_folded else Sequence((fold, drive))

    def _poses_at(
        self, context: ActionContext, surface: str, current_pose: NDArray[np.float64]
    ) -> list[tuple[float, float, float]]:
        """Return base poses beside a surface, nearest to the target first.

        The front points towards an object on the surface, or towards its middle.

        Args:
            context: scene and configuration before the action.
            surface: frame of the surface.
            current_pose: (3,) x, y and yaw of the base [m, rad].
        """
        scene, candidates = context.scene, []
        lower, upper = shape_bounds(scene, self.base.tip)
        radius = norm(np.maximum(np.abs(lower), np.abs(upper))[:2])
        objects = [item for item in movable_frames(scene) if scene.parent(item) == surface]
        offset = context.rng.uniform(0.0, math.tau / _N_DIRECTIONS)
        for target in objects if objects and not self.held(scene) else [surface]:
            centre = scene.pose(target, relative_to=self.base.base, q=context.q).translation
            for k in range(_N_DIRECTIONS):
                angle, distance = offset + math.tau * k / _N_DIRECTIONS, _MIN_OBJECT_DISTANCE
                direction = np.array([cos(angle), sin(angle)])
                while (
                    self._gap(scene, surface, centre[:2] - distance * direction) < radius + _MIN_GAP
                ):
                    distance += _DISTANCE_STEP
                position = (
                    centre[:2] - (distance + _DISTANCE_STEP * context.rng.uniform()) * direction
                )
                pose = (float(position[0]), float(position[1]), angle)
                q = scene.configuration(dict(zip(self.base.joints, pose, strict=True)))
                if self._location(scene, q) == surface:
                    travel = round(norm(position - current_pose[:2]), 6)
                    candidates.append((round(distance, 6), travel, pose))
        return [pose for *_, pose in sorted(candidates)]

    def _planar(self, scene: SceneGraph, frame: str) -> tuple[float, float, float]:
        """Return x, y and yaw of a frame, in the frame in which the base drives [m, rad]."""
        pose = scene.pose(frame, relative_to=self.base.base)
        x_axis = pose.rotate([1.0, 0.0, 0.0])
        return float(pose.translation[0]), float(pose.translation[1]), atan2(x_axis[1], x_axis[0])

    def _gap(self, scene: SceneGraph, surface: str, position: NDArray[np.float64]) -> float:
        """Return the distance of a point from the rectangle around a surface, 0 inside [m].

        Args:
            scene: the scene.
            surface: frame of the surface.
            position: (2,) or longer, x and y in the frame in which the base drives [m].
        """
        lower, upper = shape_bounds(scene, surface)
        point = scene.pose(self.base.base, relative_to=surface).apply(
            [position[0], position[1], 0.0]
        )[:2]
        return norm(np.maximum(0.0, np.maximum(lower[:2] - point, point - upper[:2])))
