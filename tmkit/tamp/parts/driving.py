"""Domain part for an arm on a mobile base that drives between regions and stations."""

from __future__ import annotations

import itertools
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
from tmkit.robots.robot_files import Robot, resolve_robot
from tmkit.spatial import Pose
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.tabletop import footprint, shape_bounds
from tmkit.tamp.parts.arms import TwoArms
from tmkit.tamp.parts.base_reach import BasePose, BaseReach
from tmkit.tamp.parts.regions import Arguments, Regions

_STATION_TOLERANCE = 0.01
"""Largest distance and angle from a station at which the base is at it [m, rad]."""

_SURFACE_DISTANCE = 1.0
"""Largest distance from the edge of a surface at which the base is at it [m]."""

_MIN_GAP = 0.03
"""Smallest distance between the chassis and the edge of a surface [m]."""

_MIN_CLOSE_GAP = 0.01
"""The same for an object that the arm does not reach from there [m]."""

_MIN_OBJECT_DISTANCE = 0.45
"""Smallest distance of the base from an object [m]."""

_DISTANCE_STEP = 0.08
"""Step by which the distance from an object increases [m]."""

_SURFACE_RINGS = 2
"""Number of distances from the target at which the base may stand beside a surface."""

_FLOOR_RINGS = 5
"""Number of distances from the target at which the base may stand on a floor."""

_DISTANCE_TOLERANCE = 0.005
"""Tolerance of the smallest distance from a surface [m]."""

_N_BASE_POSES = 6
"""Number of base poses that are tried for a contact."""

_N_CONTACT_POINTS = 6
"""Number of places that a drive is tried for."""

_N_DIRECTIONS = 12
"""Number of directions in which the base faces an object."""

_N_CLOSE_DIRECTIONS = 48
"""The same for an object that the arm does not reach from these."""


class Driving(Regions):
    """An arm on a mobile base, with two prismatic joints and a revolute one in the plane.

    A pick or place that the arm does not reach from the current base pose begins with a drive to a
    pose from which it does (:mod:`tmkit.tamp.parts.base_reach`). A *station* (type ``location``) is
    a frame of class ``station``: a pose of the base in the plane. The base is at a station when it
    has its pose, else at the nearest region. It drives to a region to one of several poses at its
    edge, with its front towards an object there, while the arm is at its ready configuration. Only
    drives have costs.

    A *floor* is a solid region below the chassis, on which the base drives. The base is at the
    floor when it is at no other region.

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
        floors = self._floors(scene)
        floor = next((name for name in floors if self._gap(scene, name, pose) <= 0.0), None)
        surfaces = [name for name in self.region_frames(scene) if name not in floors]
        gaps = {surface: self._gap(scene, surface, pose) for surface in surfaces}
        nearest = min(gaps, key=lambda surface: gaps[surface], default=None)
        if floor is not None:
            is_beside = nearest is not None and gaps[nearest] <= self._work_distance(scene)
            return str(nearest) if is_beside else floor
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
        scene = context.scene
        current_pose = context.q[self.base.joint_indices(scene)]
        if "station" in scene.classes(goal):
            poses = [self._planar(scene, goal)]
        else:
            reach = BaseReach(context, self.robot, self.base)
            poses = [
                pose for pose in self._poses_at(context, goal, current_pose) if reach.is_free(pose)
            ]
        for pose in poses:
            motions = self._drive_to(context, pose)
            yield motions[0] if len(motions) == 1 else Sequence(motions)

    def _drive_to(
        self, context: ActionContext, pose: tuple[float, float, float]
    ) -> tuple[MoveTo, ...]:
        """Return the motions to a pose of the base, before which the arm folds.

        Args:
            context: scene and configuration before the action.
            pose: x, y and yaw of the base [m, rad].
        """
        scene, arm, (x, y, yaw) = context.scene, self.robot, pose
        current_yaw = float(context.q[self.base.joint_indices(scene)][2])
        yaw = current_yaw + math.remainder(yaw - current_yaw, math.tau)
        lower, upper = scene.joint_limits[scene.joint_names.index(self.base.joints[2])]
        yaw += math.tau * (int(yaw < lower) - int(yaw > upper))
        joints = dict(zip(self.base.joints, (x, y, yaw), strict=True))
        drive = MoveTo(joints, f"({x:.2f}, {y:.2f})", arm=self.base.name)
        if self.is_ready(scene, context.q, pddl_name(arm.name)):
            return (drive,)
        return MoveTo(arm.ready, "the carrying configuration"), drive

    def do_pick(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield grasps, after a drive where the arm does not reach them from the current pose."""
        yield from self._work_at(
            context, arm, region, super().do_pick(context, arm, object, region)
        )

    def do_place(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield places, after a drive where the arm does not reach them from the current pose."""
        yield from self._work_at(
            context, arm, region, super().do_place(context, arm, object, region)
        )

    def _work_at(
        self, context: ActionContext, arm: Manipulator, region: str, candidates: Iterable[Candidate]
    ) -> Iterator[Candidate]:
        """Yield the candidates in reach of the base pose, and others after a drive.

        A base pose suits a candidate if the arm reaches its contact among the fixed bodies. Poses
        near the contact come first. If no candidate has such a pose, poses closer to the region are
        tried, and at last all candidates are yielded without a drive.

        Args:
            context: scene and configuration before the action.
            arm: the arm.
            region: frame of the surface or floor.
            candidates: picks or places at the region.
        """
        reach = BaseReach(context, arm, self.base)
        current_pose = context.q[self.base.joint_indices(context.scene)]
        far_candidates: list[Candidate] = []
        is_reached = False
        for candidate in candidates:
            if reach.reaches(candidate, current_pose):
                is_reached = True
                yield candidate
            else:
                far_candidates.append(candidate)

        for is_close in (False, True):
            for sequence in self._after_drives(
                context, reach, region, far_candidates, is_close=is_close
            ):
                is_reached = True
                yield sequence
            if is_reached:
                return
        yield from far_candidates

    def _after_drives(
        self,
        context: ActionContext,
        reach: BaseReach,
        region: str,
        candidates: Iterable[Candidate],
        *,
        is_close: bool,
    ) -> Iterator[Candidate]:
        """Yield candidates after drives to base poses from which the arm reaches them.

        Args:
            context: scene and configuration before the action.
            reach: reach of the arm.
            region: frame of the surface or floor.
            candidates: picks or places at the region.
            is_close: whether to try the poses nearest to the region, in more directions.
        """
        current_pose = context.q[self.base.joint_indices(context.scene)]

        # Each candidate is tried from one pose first, and from the other poses later.
        base_poses: dict[bytes, list[BasePose]] = {}
        for shift in range(_N_BASE_POSES):
            for number, candidate in enumerate(candidates):
                point = reach.contact_point(candidate)
                key = point[:2].tobytes()
                if key not in base_poses:
                    if len(base_poses) == _N_CONTACT_POINTS:
                        continue
                    rings = self._poses_around(
                        context, region, point, current_pose, is_close=is_close
                    )
                    poses = (pose for *_, pose in sorted(rings) if reach.is_free(pose))
                    base_poses[key] = [*itertools.islice(poses, _N_BASE_POSES)]
                if shift >= len(base_poses[key]):
                    continue
                pose = base_poses[key][(number + shift) % len(base_poses[key])]
                if reach.reaches(candidate, pose):
                    motions = self._drive_to(context, pose)
                    object = getattr(candidate, "object", None)
                    yield Sequence((*motions, candidate), object=object)

    def _poses_at(
        self, context: ActionContext, surface: str, current_pose: NDArray[np.float64]
    ) -> list[tuple[float, float, float]]:
        """Return base poses beside a surface or on a floor, nearest to the target first.

        The front points towards an object on the surface, or towards its middle.

        Args:
            context: scene and configuration before the action.
            surface: frame of the surface.
            current_pose: (3,) x, y and yaw of the base [m, rad].
        """
        scene = context.scene
        candidates: list[tuple[float, float, tuple[float, float, float]]] = []
        objects = [item for item in movable_frames(scene) if scene.parent(item) == surface]
        if objects and not self.held(scene):
            targets = [(item, np.zeros(3)) for item in objects]
        else:
            targets = [(surface, np.mean(_bounds(scene, surface), axis=0))]
        for frame, middle in targets:
            point = scene.pose(frame, relative_to=self.base.base, q=context.q).apply(middle)
            candidates += self._poses_around(context, surface, point, current_pose)
        return [pose for *_, pose in sorted(candidates)]

    def _poses_around(
        self,
        context: ActionContext,
        surface: str,
        point: NDArray[np.float64],
        current_pose: NDArray[np.float64],
        *,
        is_close: bool = False,
    ) -> Iterator[tuple[float, float, tuple[float, float, float]]]:
        """Yield base poses at a surface or on a floor around a point that the front points towards.

        Args:
            context: scene and configuration before the action.
            surface: frame of the surface or floor.
            point: (2,) or longer, x and y in the frame in which the base drives [m].
            current_pose: (3,) x, y and yaw of the base [m, rad].
            is_close: whether the outline of the chassis counts, not its bounds, in more directions.

        Yields:
            Distance from the point, distance from the current pose [m], and the pose.
        """
        scene = context.scene
        clearance = self._radius(scene) + _MIN_GAP
        if is_close:
            clearance = self._outline_radius(scene) + _MIN_CLOSE_GAP
        is_floor = surface in self._floors(scene)
        n_directions = _N_CLOSE_DIRECTIONS if is_close else _N_DIRECTIONS
        offset = context.rng.uniform(0.0, math.tau / n_directions)
        for k in range(n_directions):
            angle = offset + math.tau * k / n_directions
            direction = np.array([cos(angle), sin(angle)])
            least = _MIN_OBJECT_DISTANCE
            if not is_floor:
                least = self._clear_distance(scene, surface, point, direction, clearance)
            for ring in range(_FLOOR_RINGS if is_floor else _SURFACE_RINGS):
                step = ring - context.rng.uniform() if ring else 0.0
                distance = least + _DISTANCE_STEP * step
                position = point[:2] - distance * direction
                pose = (float(position[0]), float(position[1]), angle)
                q = scene.configuration(dict(zip(self.base.joints, pose, strict=True)))
                if self._location(scene, q) == surface:
                    travel = round(norm(position - current_pose[:2]), 6)
                    yield round(distance, 6), travel, pose

    def _clear_distance(
        self,
        scene: SceneGraph,
        surface: str,
        point: NDArray[np.float64],
        direction: NDArray[np.float64],
        clearance: float,
    ) -> float:
        """Return the smallest distance from a point at which the base is clear of a surface [m].

        Args:
            scene: the scene.
            surface: frame of the surface.
            point: (2,) or longer, x and y in the frame in which the base drives [m].
            direction: (2,) unit vector from the base to the point.
            clearance: distance of the base's centre from the surface [m].
        """
        inside, outside = _MIN_OBJECT_DISTANCE, _MIN_OBJECT_DISTANCE
        while self._gap(scene, surface, point[:2] - outside * direction) < clearance:
            inside, outside = outside, outside + _DISTANCE_STEP
        while outside - inside > _DISTANCE_TOLERANCE:
            middle = 0.5 * (inside + outside)
            if self._gap(scene, surface, point[:2] - middle * direction) < clearance:
                inside = middle
            else:
                outside = middle
        return outside

    def _floors(self, scene: SceneGraph) -> list[str]:
        """Return the solid regions below the chassis, smallest first."""
        q = scene.zero_configuration()
        bottom = scene.pose(self.base.tip, relative_to=self.base.base, q=q).translation[2]
        bottom += shape_bounds(scene, self.base.tip)[0][2]
        areas = {}
        for region in self.region_frames(scene):
            if not _is_solid(scene, region):
                continue
            lower, upper = shape_bounds(scene, region)
            top = scene.pose(region, relative_to=self.base.base, q=q).apply(upper)[2]
            if top <= bottom:
                areas[region] = float(np.prod((upper - lower)[:2]))
        return sorted(areas, key=lambda region: areas[region])

    def _radius(self, scene: SceneGraph) -> float:
        """Return the radius of the circle around the bounds of the chassis [m]."""
        lower, upper = shape_bounds(scene, self.base.tip)
        return norm(np.maximum(np.abs(lower), np.abs(upper))[:2])

    def _outline_radius(self, scene: SceneGraph) -> float:
        """Return the radius of the circle around the outline of the chassis [m]."""
        corners = footprint(scene, self.base.tip, Pose())
        return max(map(norm, corners))

    def _work_distance(self, scene: SceneGraph) -> float:
        """Return the largest distance of base poses at a surface from it [m]."""
        clearance = self._radius(scene) + _MIN_GAP + 2.0 * _DISTANCE_STEP
        return max(clearance, _MIN_OBJECT_DISTANCE + _DISTANCE_STEP)

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
        lower, upper = _bounds(scene, surface)
        point = scene.pose(self.base.base, relative_to=surface).apply(
            [position[0], position[1], 0.0]
        )[:2]
        return norm(np.maximum(0.0, np.maximum(lower[:2] - point, point - upper[:2])))


def _bounds(scene: SceneGraph, region: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of the box around a region, which may be a marked area [m]."""
    return shape_bounds(scene, region, only_solid=_is_solid(scene, region))


def _is_solid(scene: SceneGraph, region: str) -> bool:
    """Return whether a region has collision shapes, or is a marked area."""
    return any(attached.collision for attached in scene.shapes(region))
