"""Domain part for places by coordinates: cells of a grid on surfaces, which no frame marks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.candidates import ActionContext, Candidate, DeadEnd, Place
from tmkit.motion import IkSettings, InverseKinematicsStatus, inverse_kinematics
from tmkit.motion.reach_bound import WristBound, wrist_bound
from tmkit.pddl import Fact
from tmkit.plans.values import Configuration
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial import Pose
from tmkit.spatial.elementary import cos, sin
from tmkit.tamp.domains.semantics import RestFault, pddl_name
from tmkit.tamp.domains.tabletop import (
    RELEASE_GAP,
    STANDING_TOLERANCE,
    quat_xyzw_about_z,
    require_above,
    shape_bounds,
    standing_fault,
    turns_nearest_first,
)
from tmkit.tamp.domains.traced_scene import incremental
from tmkit.tamp.parts.access import Access
from tmkit.tamp.parts.arms import TwoArms
from tmkit.tamp.parts.driving import Driving
from tmkit.tamp.parts.handling import Pushing
from tmkit.tamp.parts.standing import Slots
from tmkit.tamp.parts.treatments import Orientation, Treatment

_N_SAMPLES = 12
"""Number of placements away from the centre of a cell."""

_MAX_SHIFT = 0.3
"""Largest shift of such a placement along an axis, as a fraction of the cell."""

_IK_SETTINGS = IkSettings(restarts=10)
"""Settings of inverse kinematics for relevant cells."""


class Cells(Slots):
    """Regions are the cells of a grid on each surface, for one object each.

    The centre of the cell ``SURFACE__i__j`` is i and j cells from the origin of a frame of class
    ``surface``, along its x and y axes. An object is in the cell that contains the origin of its
    frame. It is placed at the centre of a cell first, then elsewhere in it. Quarter turns are tried
    first, and the object never extends over the edge of the surface.

    Attributes:
        resolution: distance between the centres of neighbouring cells [m].
    """

    # These parts require regions to be frames.
    excludes = (Access, Driving, Orientation, Pushing, Treatment, TwoArms)
    region_classes = ("surface",)
    resolution: ClassVar[float] = 0.1

    def region_frames(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the cells of all surfaces.

        Raises:
            SceneError: if a cell has the name of a frame, or a surface has no shape.
        """
        return _all_cells(scene, self.resolution)

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the cell in which an object stands.

        Raises:
            SceneError: if the object stands on no surface, or beside it.
        """
        if scene.parent(object) not in scene.frames_of_class("surface"):
            return super().region_of(scene, object)
        cell = self._cell_of(scene, object)
        require_above(scene, object, kind=self.words.get("item", ""))
        return cell

    def rest_fault(self, scene: SceneGraph, object: str) -> RestFault | None:
        """Return the reason why an object on a surface leans, floats, or is sunk in, or None."""
        if scene.parent(object) not in scene.frames_of_class("surface"):
            return super().rest_fault(scene, object)
        return standing_fault(scene, object, kind=self.words.get("item", ""))

    def goal_region(self, scene: SceneGraph, object: str, objects: Mapping[str, str]) -> str | None:
        """Return the cell of the start in which an object of a goal scene is.

        The exact pose does not count.
        """
        if scene.parent(object) not in scene.frames_of_class("surface"):
            return super().region_of(scene, object)
        cell = self._cell_of(scene, object)
        if pddl_name(cell) not in objects:
            raise SceneError(
                f"the goal puts '{object}' at '{pddl_name(cell)}', which the start does not have"
            )
        return cell

    def places_for(self, fact: Fact, scene: SceneGraph) -> tuple[str, ...]:
        """Return nothing: a cell is not a frame."""
        del fact, scene
        return ()

    def relevant_objects(self, scene: SceneGraph, q: NDArray[np.float64]) -> frozenset[str]:
        """Return all objects, their cells, and the cells that an arm reaches from above."""
        objects, cells = movable_frames(scene), self.region_frames(scene)
        relevant = set(super().relevant_objects(scene, q)).difference(map(pddl_name, cells))
        for object in objects:
            if scene.parent(object) in scene.frames_of_class("surface"):
                relevant.add(pddl_name(self._cell_of(scene, object)))
        heights = [
            float(np.ptp([bound[2] for bound in shape_bounds(scene, object)])) for object in objects
        ]
        offset = np.array([0.0, 0.0, max(heights, default=0.0) / 2])
        arms = [(arm, wrist_bound(scene, arm, q=q)) for arm in self.arms.values()]
        for cell in cells:
            surface, point = self._cell_centre(scene, cell)
            root_from_surface = scene.pose(surface, relative_to=scene.root(surface), q=q)
            target = root_from_surface @ Pose(point + offset)
            if any(_is_reachable(scene, target, q, arm, wrist) for arm, wrist in arms):
                relevant.add(pddl_name(cell))
        return frozenset(relevant)

    def scene_facts(self, scene: SceneGraph, objects: Mapping[str, str]) -> frozenset[Fact]:
        """Return these facts; only cells that are objects of the planning run are free."""
        return _facts_of_objects(scene, self, tuple(objects))

    def do_place(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield places in a cell, its centre first."""
        surface, _ = self._cell_centre(context.scene, region)
        poses = list(self._poses_in_cell(context, object, region))
        if not poses:
            yield DeadEnd(f"'{object}' would stand over the edge of '{surface}'")
        for pose in poses:
            yield Place(object, surface, pose, arm=self.arm_name(arm))

    def _cell_of(self, scene: SceneGraph, object: str) -> str:
        """Return the cell that contains the origin of an object on a surface.

        Raises:
            SceneError: if there is no such cell.
        """
        surface = str(scene.parent(object))
        x, y, _ = scene.local_pose(object).translation.tolist()
        is_finite = max(abs(x), abs(y)) / self.resolution < math.inf
        name = _cell_name(surface, *self._cell_indices(x, y)) if is_finite else ""
        if name not in _cells(scene, surface, self.resolution):
            position = f"({x:.3f}, {y:.3f})"
            raise SceneError(
                f"{self.label(object)} stands at {position}, beside the surface '{surface}'",
                frame=object,
            )
        return name

    def _cell_indices(self, x: float, y: float) -> tuple[int, int]:
        return round(x / self.resolution), round(y / self.resolution)

    def _cell_centre(self, scene: SceneGraph, cell: str) -> tuple[str, NDArray[np.float64]]:
        """Return the surface of a cell, and the (3,) centre of the cell on its top [m]."""
        surface, i, j = cell.rsplit("__", 2)
        top = float(shape_bounds(scene, surface)[1][2])
        return surface, np.array([int(i) * self.resolution, int(j) * self.resolution, top])

    def _poses_in_cell(self, context: ActionContext, object: str, cell: str) -> Iterator[Pose]:
        scene = context.scene
        surface, point = self._cell_centre(scene, cell)
        bottom = float(shape_bounds(scene, object)[0][2])
        centre = point + np.array([0.0, 0.0, RELEASE_GAP - bottom])
        shifts = [(np.zeros(2), turn) for turn in turns_nearest_first(context, object, surface)]
        for k in range(_N_SAMPLES):
            bound = _MAX_SHIFT * self.resolution
            shift = context.rng.uniform(-bound, bound, size=2)
            turn = float(context.rng.uniform(-math.pi, math.pi))
            # A block as wide as a cell fits beside others only in quarter turns.
            quarters = round(turn / (math.pi / 2)) * math.pi / 2
            shifts.append((shift, turn if k % 2 else quarters))
        for shift, turn in shifts:
            position = _clamp_to_surface(
                scene, centre + np.array([*shift, 0.0]), turn, object=object, surface=surface
            )
            if _cell_name(surface, *self._cell_indices(position[0], position[1])) == cell:
                yield Pose(position, quat_xyzw_about_z(turn))


def _cell_name(surface: str, i: int, j: int) -> str:
    return f"{surface}__{i}__{j}"


@incremental
def _all_cells(scene: SceneGraph, resolution: float) -> tuple[str, ...]:
    cells: list[str] = []
    for surface in scene.frames_of_class("surface"):
        cells += _cells(scene, surface, resolution)
    for cell in cells:
        if cell in scene:
            reason = f"frame '{cell}' has the name of a cell of a surface; rename it"
            raise SceneError(reason, frame=cell)
    return tuple(cells)


@incremental
def _facts_of_objects(scene: SceneGraph, part: Cells, objects: tuple[str, ...]) -> frozenset[Fact]:
    facts, names = Slots.scene_facts(part, scene, {}), {*objects}
    cells = (cell for cell in part.region_frames(scene) if pddl_name(cell) not in names)
    return facts.difference(part.fact("free", cell) for cell in cells)


@incremental
def _cells(scene: SceneGraph, surface: str, resolution: float) -> dict[str, None]:
    """Return the cells whose centre lies on a surface, row by row."""
    lower, upper = shape_bounds(scene, surface)
    first = [math.ceil(value / resolution - 1e-9) for value in lower[:2]]
    last = [math.floor(value / resolution + 1e-9) for value in upper[:2]]
    rows, columns = (range(a, b + 1) for a, b in zip(first, last, strict=True))
    return {_cell_name(surface, i, j): None for i in rows for j in columns}


def _is_reachable(
    scene: SceneGraph, root_from_point: Pose, q: Configuration, arm: Manipulator, wrist: WristBound
) -> bool:
    """Return whether an arm reaches a point from above, in any of four turns."""
    for turn in range(4):
        down = Pose([0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0])
        target = Pose(root_from_point.translation, quat_xyzw_about_z(turn * math.pi / 2)) @ down
        if wrist.excess(target) > STANDING_TOLERANCE:
            continue
        result = inverse_kinematics(
            scene, arm.tool, target_pose=target, joints=arm.joints, q=q, settings=_IK_SETTINGS
        )
        if result.status is InverseKinematicsStatus.SOLVED:
            return True
    return False


def _clamp_to_surface(
    scene: SceneGraph, point: NDArray[np.float64], turn: float, *, object: str, surface: str
) -> NDArray[np.float64]:
    """Return the point (3,) nearest to ``point`` at which a turned object is not over the edge.

    If the surface is smaller than the object, the object is centred.
    """
    lower, upper = (bound[:2] for bound in shape_bounds(scene, surface))
    sine, cosine = sin(turn), cos(turn)
    low, high = shape_bounds(scene, object)
    corners = np.array([[x, y] for x in (low[0], high[0]) for y in (low[1], high[1])])
    rotated = corners @ np.array([[cosine, sine], [-sine, cosine]])
    first, last = lower - rotated.min(axis=0), upper - rotated.max(axis=0)
    centre = (first + last) / 2
    clamped = np.clip(point[:2], np.minimum(first, centre), np.maximum(last, centre))
    return np.array([*clamped, point[2]])
