"""Places by coordinates: the cells of a grid on surfaces, where a domain speaks of places that no frame marks."""

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
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.domains.tabletop import (
    RELEASE_GAP,
    STANDING_TOLERANCE,
    quat_xyzw_about_z,
    require_standing,
    shape_bounds,
    turns_nearest_first,
)
from tmkit.tamp.domains.traced_scene import incremental
from tmkit.tamp.parts.access import Access
from tmkit.tamp.parts.arms import TwoArms
from tmkit.tamp.parts.driving import Driving
from tmkit.tamp.parts.handling import Pushing
from tmkit.tamp.parts.standing import Slots
from tmkit.tamp.parts.treatments import Orientation, Treatment

_SAMPLES = 12  # placements away from the middle of a cell


class Cells(Slots):
    """Regions are the cells of a grid on each surface, with room for one object each.

    The cell ``SURFACE__i__j`` is centred i and j cells from the origin of a frame of class
    ``surface``, along its x and y axes; an object is in the cell that holds its frame's origin. It
    is put at the middle of a cell first, then elsewhere in it, turned by quarter turns first, and
    never over the edge of the surface.

    Attributes:
        resolution: metres between the middles of neighbouring cells.
    """

    # these look at the frames of regions
    excludes = (Access, Driving, Orientation, Pushing, Treatment, TwoArms)
    region_classes = ("surface",)
    resolution: ClassVar[float] = 0.1

    def region_frames(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return the cells of all surfaces.

        Raises:
            SceneError: one has the name of a frame, or a surface has no shape.
        """
        return _all_cells(scene, self.resolution)

    def region_of(self, scene: SceneGraph, object: str) -> str | None:
        """Return the cell in which an object stands.

        Raises:
            SceneError: it stands on no surface, or not as it should.
        """
        if scene.parent(object) not in scene.frames_of_class("surface"):
            return super().region_of(scene, object)
        cell = self._cell_of(scene, object)
        require_standing(scene, object, kind=self.words.get("item", ""))
        return cell

    def goal_region(self, scene: SceneGraph, object: str, objects: Mapping[str, str]) -> str | None:
        """Return the cell of the start in which an object of a goal scene is; whether it stands well does not count."""
        if scene.parent(object) not in scene.frames_of_class("surface"):
            return super().region_of(scene, object)
        cell = self._cell_of(scene, object)
        if pddl_name(cell) not in objects:
            raise SceneError(
                f"the goal puts '{object}' at '{pddl_name(cell)}', which the start does not have"
            )
        return cell

    def places_for(self, fact: Fact, scene: SceneGraph) -> tuple[str, ...]:
        """Return nothing: a cell is no frame."""
        del fact, scene
        return ()

    def relevant_objects(self, scene: SceneGraph, q: NDArray[np.float64]) -> frozenset[str]:
        """Return all objects, the cells where they stand, and those that an arm reaches from above."""
        objects, cells = movable_frames(scene), self.region_frames(scene)
        useful = set(super().relevant_objects(scene, q)).difference(map(pddl_name, cells))
        for object in objects:
            if scene.parent(object) in scene.frames_of_class("surface"):
                useful.add(pddl_name(self._cell_of(scene, object)))
        heights = [
            float(np.ptp([bound[2] for bound in shape_bounds(scene, object)])) for object in objects
        ]
        middle = np.array([0.0, 0.0, max(heights, default=0.0) / 2])
        arms = [(arm, wrist_bound(scene, arm, q=q)) for arm in self.arms.values()]
        for cell in cells:
            surface, point = self._middle(scene, cell)
            root_from_surface = scene.pose(surface, relative_to=scene.root(surface), q=q)
            at = root_from_surface @ Pose(point + middle)
            if any(_reaches(scene, at, q, arm, wrist) for arm, wrist in arms):
                useful.add(pddl_name(cell))
        return frozenset(useful)

    def kept_facts(self, scene: SceneGraph, objects: Mapping[str, str]) -> frozenset[Fact]:
        """Return these facts; of the cells, those that are objects of the planning run are free."""
        return _of_objects(scene, self, tuple(objects))

    def do_place(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield places in a cell, its middle first."""
        surface, _ = self._middle(context.scene, region)
        poses = list(self._in_cell(context, object, region))
        if not poses:
            yield DeadEnd(f"'{object}' would stand over the edge of '{surface}'")
        for pose in poses:
            yield Place(object, surface, pose, arm=arm.name if len(self.arms) > 1 else None)

    def _cell_of(self, scene: SceneGraph, object: str) -> str:
        """Return the cell that holds the origin of an object on a surface."""
        surface = str(scene.parent(object))
        x, y, _ = scene.local_pose(object).translation.tolist()
        is_near = max(abs(x), abs(y)) / self.resolution < math.inf
        name = _named(surface, *self._at(x, y)) if is_near else ""
        if name not in _cells(scene, surface, self.resolution):
            what = (
                f"{self.named(object)} stands at ({x:.3f}, {y:.3f}), beside the surface '{surface}'"
            )
            raise SceneError(what, frame=object)
        return name

    def _at(self, x: float, y: float) -> tuple[int, int]:
        return round(x / self.resolution), round(y / self.resolution)

    def _middle(self, scene: SceneGraph, cell: str) -> tuple[str, NDArray[np.float64]]:
        """Return the surface of a cell, and the middle of the cell (3,) on its top."""
        surface, i, j = cell.rsplit("__", 2)
        top = float(shape_bounds(scene, surface)[1][2])
        return surface, np.array([int(i) * self.resolution, int(j) * self.resolution, top])

    def _in_cell(self, context: ActionContext, object: str, cell: str) -> Iterator[Pose]:
        scene = context.scene
        surface, point = self._middle(scene, cell)
        bottom = float(shape_bounds(scene, object)[0][2])
        middle = point + np.array([0.0, 0.0, RELEASE_GAP - bottom])
        shifts = [(np.zeros(2), turn) for turn in turns_nearest_first(context, object, surface)]
        for k in range(_SAMPLES):
            shift = context.rng.uniform(-0.3 * self.resolution, 0.3 * self.resolution, size=2)
            turn = float(context.rng.uniform(-math.pi, math.pi))
            # a block as wide as a cell fits beside others only so
            quarters = round(turn / (math.pi / 2)) * math.pi / 2
            shifts.append((shift, turn if k % 2 else quarters))
        for shift, turn in shifts:
            moved = _moved_inside(
                scene, middle + np.array([*shift, 0.0]), turn, object=object, surface=surface
            )
            if _named(surface, *self._at(moved[0], moved[1])) == cell:
                yield Pose(moved, quat_xyzw_about_z(turn))


def _named(surface: str, i: int, j: int) -> str:
    return f"{surface}__{i}__{j}"


@incremental
def _all_cells(scene: SceneGraph, resolution: float) -> tuple[str, ...]:
    found: list[str] = []
    for surface in scene.frames_of_class("surface"):
        found += _cells(scene, surface, resolution)
    for cell in found:
        if cell in scene:
            raise SceneError(
                f"frame '{cell}' has the name of a cell of a surface; rename it", frame=cell
            )
    return tuple(found)


@incremental
def _of_objects(scene: SceneGraph, part: Cells, objects: tuple[str, ...]) -> frozenset[Fact]:
    facts, known = Slots.kept_facts(part, scene, {}), {*objects}
    cells = (cell for cell in part.region_frames(scene) if pddl_name(cell) not in known)
    return facts.difference(part.fact("free", cell) for cell in cells)


@incremental
def _cells(scene: SceneGraph, surface: str, resolution: float) -> dict[str, None]:
    """Return the cells whose middle lies on a surface, row by row."""
    lower, upper = shape_bounds(scene, surface)
    rows, columns = (
        range(
            math.ceil(lower[axis] / resolution - 1e-9),
            math.floor(upper[axis] / resolution + 1e-9) + 1,
        )
        for axis in (0, 1)
    )
    return {_named(surface, i, j): None for i in rows for j in columns}


def _reaches(
    scene: SceneGraph, root_from_point: Pose, q: Configuration, arm: Manipulator, wrist: WristBound
) -> bool:
    """Return whether an arm brings its tool to a point, pointing down, in any of four directions."""
    for turn in range(4):
        down = Pose([0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0])
        target = Pose(root_from_point.translation, quat_xyzw_about_z(turn * math.pi / 2)) @ down
        if wrist.excess(target) > STANDING_TOLERANCE:
            continue
        found = inverse_kinematics(
            scene,
            arm.tool,
            target_pose=target,
            joints=arm.joints,
            q=q,
            settings=IkSettings(restarts=10),
        )
        if found.status is InverseKinematicsStatus.SOLVED:
            return True
    return False


def _moved_inside(
    scene: SceneGraph, point: NDArray[np.float64], turn: float, *, object: str, surface: str
) -> NDArray[np.float64]:
    """Return the point (3,) on a surface nearest to ``point`` at which a turned object is not over the edge.

    Where the surface is smaller than the object, it stands in the middle.
    """
    lower, upper = (bound[:2] for bound in shape_bounds(scene, surface))
    sine, cosine = sin(turn), cos(turn)
    low, high = shape_bounds(scene, object)
    corners = np.array([[x, y] for x in (low[0], high[0]) for y in (low[1], high[1])])
    turned = corners @ np.array([[cosine, sine], [-sine, cosine]])
    first, last = lower - turned.min(axis=0), upper - turned.max(axis=0)
    middle = (first + last) / 2
    inside = np.clip(point[:2], np.minimum(first, middle), np.maximum(last, middle))
    return np.array([*inside, point[2]])
