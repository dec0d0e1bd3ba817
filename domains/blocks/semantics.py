"""Semantics of the blocks domain in a scene.

A *block* is a frame of class ``movable``. A *location* is a cell of a grid of 0.1 m on a frame of class ``surface``,
named ``SURFACE__i__j`` for the cell centred i and j cells from the surface's origin along its x and y axes. The parent
of a block says what it stands on: another block, a surface (the location is the cell that holds the block's origin), or
the hand.

Blocks stand upright, their frame's z axis along that of what they stand on, and on its top. A block is put at the
middle of a location first, then elsewhere in its cell, turned by quarter turns first, and never over the surface's
edge.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Impossible, Place
from tmkit.motion import InverseKinematicsStatus, WristBound, inverse_kinematics, wrist_bound
from tmkit.pddl import Fact, GroundAction, State
from tmkit.robots import is_movable, movable_frames
from tmkit.spatial import Pose
from tmkit.spatial.elementary import cos, sin
from tmkit.tamp import DomainSemantics, Handled, Infeasibility, incremental, pddl_name
from tmkit.tamp.domains import (
    RELEASE_GAP,
    STANDING_TOLERANCE,
    pddl_names,
    pick_candidates,
    quat_xyzw_about_z,
    require_standing,
    shape_bounds,
    too_high,
    turns_nearest_first,
)

RESOLUTION = 0.1
"""Metres between neighbouring locations."""

_SAMPLES = 12  # placements away from the middle of a cell


class Semantics(DomainSemantics):
    """The meaning of the blocks domain for one arm.

    Args:
        manipulator: the arm that moves the blocks.
    """

    is_incremental = True

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return blocks and locations by PDDL name.

        Raises:
            SceneError: two frames of one name in PDDL, or a surface without a shape.
        """
        found = dict.fromkeys(self._blocks(scene), "block")
        for surface in scene.frames_of_class("surface"):
            for cell in _cells(scene, surface):
                name = _location(surface, cell)
                if name in found:
                    what = f"location '{name}' of surface '{surface}' has the name of another {found[name]} in PDDL"
                    raise SceneError(f"{what}; rename a frame", frame=surface)
                found[name] = "location"
        return found

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return the facts that hold in a scene.

        Raises:
            SceneError: a block whose parent is no object of the domain, two at one place, two in the hand, or one that
                lies, floats, or stands beside its parent.
        """
        del q
        facts: list[Fact] = []
        covered: dict[str, str] = {}
        held: str | None = None
        for name, frame in self._blocks(scene).items():
            fact = _standing(scene, frame, self.manipulator.tip)
            if fact.predicate == "holding":
                if held is not None:
                    raise SceneError(f"blocks '{held}' and '{name}' are both in the hand, which holds one", frame=frame)
                held = name
            else:
                below = fact.arguments[1]
                if below in covered:
                    where = "stand both on" if fact.predicate == "on" else "stand both at location"
                    raise SceneError(f"blocks '{covered[below]}' and '{name}' {where} '{below}'", frame=frame)
                covered[below] = name
            facts.append(fact)
        if held is None:
            facts.append(Fact.of("handempty"))
        clear = _clear(scene, tuple(objects))
        taken = {Fact.of("clear", name) for name in (*covered, held or "")}
        return State((clear - taken).union(facts))

    def goal_facts(self, scene: SceneGraph, objects: Mapping[str, str], stated: Sequence[str]) -> Iterator[Fact]:
        """Yield what each stated block is to stand on, or that the hand is to hold it.

        Its parent counts; where exactly it stands on another block, and whether it does so well, does not.

        Raises:
            SceneError: a block that has no support in the domain.
        """
        names = {frame: name for name, frame in self._blocks(scene).items()}
        for frame in stated:
            parent = scene.parent(frame)
            if parent == self.manipulator.tip:
                yield Fact.of("holding", names[frame])
            elif parent in names:
                yield Fact.of("on", names[frame], names[parent])
            else:
                location = _location_of(scene, frame, self.manipulator.tip)
                if location not in objects:
                    raise SceneError(f"the goal puts block '{frame}' at '{location}', which the start does not have")
                yield Fact.of("ontable", names[frame], location)

    def infeasibilities(self, goal_facts: Iterable[Fact], scene: SceneGraph) -> Iterator[Infeasibility]:
        """Yield the proof that a tower is higher than the arm reaches, for the lowest block that is."""
        blocks, q = self._blocks(scene), scene.zero_configuration()
        wanted = {fact.arguments[0]: fact for fact in goal_facts if fact.predicate == "on"}
        floors = [_lowest_top(scene, surface, q) for surface in scene.frames_of_class("surface")]
        towers: list[tuple[float, str]] = []
        for block, fact in wanted.items():
            under: list[str] = []
            while block in wanted and len(under) < len(blocks):
                block = wanted[block].arguments[1]
                under.append(blocks[block])
            if under and scene.parent(blocks[fact.arguments[0]]) != under[0]:
                height = sum(_height(scene, frame) - STANDING_TOLERANCE for frame in under)
                towers.append((min(floors, default=-math.inf) + height, fact.arguments[0]))
        for bottom, block in sorted(towers):
            arm, object = self.manipulator, blocks[block]
            found = too_high(scene, object, bottom=bottom - STANDING_TOLERANCE, fact=wanted[block], manipulator=arm)
            if found is not None:
                yield found
                return

    def handled(self, goal_facts: Iterable[Fact], scene: SceneGraph) -> Iterator[Handled]:
        """Yield blocks that are to be in the hand or on others, and are not."""
        blocks, tip = self._blocks(scene), self.manipulator.tip
        for fact in goal_facts:
            if fact.predicate in ("on", "holding"):
                object, *below = (blocks[name] for name in fact.arguments)
                if scene.parent(object) not in (*below, tip):
                    yield Handled(object, fact)

    def useful_objects(self, scene: SceneGraph, q: NDArray[np.float64]) -> frozenset[str]:
        """Return the blocks, the locations where they stand, and those that the arm reaches from above."""
        blocks = self._blocks(scene)
        useful = set(blocks)
        for frame in blocks.values():
            parent = scene.parent(frame)
            if parent is not None and "surface" in scene.classes(parent):
                useful.add(_location_of(scene, frame, self.manipulator.tip))
        heights = [_height(scene, frame) for frame in blocks.values()]
        middle = max(heights, default=0.0) / 2
        wrist = wrist_bound(scene, self.manipulator, q=q)
        for surface in scene.frames_of_class("surface"):
            root_from_surface = scene.pose(surface, relative_to=scene.root(surface), q=q)
            for cell in _cells(scene, surface):
                point = _cell_point(scene, surface, cell) + np.array([0.0, 0.0, middle])
                if self._reaches(scene, root_from_surface @ Pose(point), q, wrist):
                    useful.add(_location(surface, cell))
        return frozenset(useful)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of the block, or resting places for it, best first."""
        blocks = self._blocks(context.scene)
        block, target = action.arguments
        object = blocks[block]
        if action.name in ("pick-up", "unstack"):
            yield from pick_candidates(context, object, manipulator=self.manipulator)
        elif action.name == "stack":
            for pose in self._on_block(context, object, blocks[target]):
                yield Place(object, blocks[target], pose)
        else:
            surface, cell = _split(context.scene, target)
            poses = list(_in_cell(context, object, surface, cell))
            if not poses:
                yield Impossible(f"'{object}' would stand over the edge of '{surface}'")
            for pose in poses:
                yield Place(object, surface, pose)

    def _blocks(self, scene: SceneGraph) -> dict[str, str]:
        """Return the frames of the blocks by PDDL name, in insertion order."""
        return _block_names(scene)

    def _on_block(self, context: ActionContext, object: str, below: str) -> Iterator[Pose]:
        scene = context.scene
        height = _top(scene, below) - _bottom(scene, object) + RELEASE_GAP
        for turn in turns_nearest_first(context, object, below):
            yield Pose([0.0, 0.0, height], quat_xyzw_about_z(turn))

    def _reaches(self, scene: SceneGraph, root_from_point: Pose, q: NDArray[np.float64], wrist: WristBound) -> bool:
        """Return whether the arm brings its tool to a point, pointing down, in any of four directions."""
        for turn in range(4):
            down = Pose([0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0])
            target = Pose(root_from_point.translation, quat_xyzw_about_z(turn * math.pi / 2)) @ down
            if wrist.excess(target) > STANDING_TOLERANCE:
                continue
            found = inverse_kinematics(
                scene, self.manipulator.tool, target_pose=target, joints=self.manipulator.joints, q=q, restarts=10
            )
            if found.status is InverseKinematicsStatus.SOLVED:
                return True
        return False


@incremental
def _block_names(scene: SceneGraph) -> dict[str, str]:
    return pddl_names(movable_frames(scene), kind="blocks")


@incremental
def _clear(scene: SceneGraph, names: tuple[str, ...]) -> frozenset[Fact]:
    """Return the facts that hold of objects on which nothing stands."""
    del scene
    return frozenset(Fact.of("clear", name) for name in names)


@incremental
def _standing(scene: SceneGraph, frame: str, tip: str) -> Fact:
    """Return the fact that says what a block stands on, or that the hand holds it."""
    parent, name = scene.parent(frame), pddl_name(frame)
    if parent == tip:
        return Fact.of("holding", name)
    is_on_block = parent is not None and is_movable(scene, parent)
    below = pddl_name(str(parent)) if is_on_block else _location_of(scene, frame, tip)
    require_standing(scene, frame, kind="block")
    return Fact.of("on" if is_on_block else "ontable", name, below)


def _location_of(scene: SceneGraph, frame: str, tip: str) -> str:
    parent = scene.parent(frame)
    if parent is None or "surface" not in scene.classes(parent):
        surfaces = ", ".join(scene.frames_of_class("surface")) or "none"
        raise SceneError(
            f"block '{frame}' has parent '{parent}', which is no block, no surface (class 'surface': {surfaces}) "
            f"and not the hand '{tip}'",
            frame=frame,
        )
    x, y, _ = scene.local_pose(frame).translation
    cell = _cell_at(x, y)
    if cell not in _cells(scene, parent):
        raise SceneError(f"block '{frame}' stands at ({x:.3f}, {y:.3f}), beside the surface '{parent}'", frame=frame)
    return _location(parent, cell)


def _location(surface: str, cell: tuple[int, int]) -> str:
    return f"{pddl_name(surface)}__{cell[0]}__{cell[1]}"


def _split(scene: SceneGraph, location: str) -> tuple[str, tuple[int, int]]:
    name, i, j = location.rsplit("__", 2)
    surface = next(frame for frame in scene.frames_of_class("surface") if pddl_name(frame) == name)
    return surface, (int(i), int(j))


def _top(scene: SceneGraph, frame: str) -> float:
    return float(shape_bounds(scene, frame)[1][2])


def _lowest_top(scene: SceneGraph, surface: str, q: NDArray[np.float64]) -> float:
    """Return the height in the root at or above which objects stand on a surface; -inf when joints move it."""
    if any(scene.joint(frame).is_actuated for frame in (surface, *scene.ancestors(surface))):
        return -math.inf
    (x0, y0, _), (x1, y1, top) = shape_bounds(scene, surface)
    corners = [[x, y, top] for x in (x0, x1) for y in (y0, y1)]
    return float(scene.pose(surface, relative_to=scene.root(surface), q=q).apply(corners)[:, 2].min())


def _bottom(scene: SceneGraph, frame: str) -> float:
    return float(shape_bounds(scene, frame)[0][2])


def _height(scene: SceneGraph, frame: str) -> float:
    return _top(scene, frame) - _bottom(scene, frame)


@incremental
def _cells(scene: SceneGraph, surface: str) -> list[tuple[int, int]]:
    """Return the cells whose middle lies on a surface, row by row."""
    lower, upper = shape_bounds(scene, surface)
    rows, columns = (
        range(math.ceil(lower[axis] / RESOLUTION - 1e-9), math.floor(upper[axis] / RESOLUTION + 1e-9) + 1)
        for axis in (0, 1)
    )
    return [(i, j) for i in rows for j in columns]


def _cell_at(x: float, y: float) -> tuple[int, int]:
    return round(x / RESOLUTION), round(y / RESOLUTION)


def _cell_point(scene: SceneGraph, surface: str, cell: tuple[int, int]) -> NDArray[np.float64]:
    return np.array([cell[0] * RESOLUTION, cell[1] * RESOLUTION, _top(scene, surface)])


def _in_cell(context: ActionContext, object: str, surface: str, cell: tuple[int, int]) -> Iterator[Pose]:
    scene = context.scene
    middle = _cell_point(scene, surface, cell) + np.array([0.0, 0.0, RELEASE_GAP - _bottom(scene, object)])
    shifts = [(np.zeros(2), turn) for turn in turns_nearest_first(context, object, surface)]
    for k in range(_SAMPLES):
        shift = context.rng.uniform(-0.3 * RESOLUTION, 0.3 * RESOLUTION, size=2)
        turn = float(context.rng.uniform(-math.pi, math.pi))
        quarters = round(turn / (math.pi / 2)) * math.pi / 2  # a block as wide as a cell fits beside others only so
        shifts.append((shift, turn if k % 2 else quarters))
    for shift, turn in shifts:
        point = _moved_inside(scene, middle + np.array([*shift, 0.0]), turn, object=object, surface=surface)
        if _cell_at(point[0], point[1]) == cell:
            yield Pose(point, quat_xyzw_about_z(turn))


def _moved_inside(
    scene: SceneGraph, point: NDArray[np.float64], turn: float, *, object: str, surface: str
) -> NDArray[np.float64]:
    """Return the point (3,) on a surface nearest to ``point`` at which a turned block is not over the edge.

    Where the surface is smaller than the block, the block stands in its middle.
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
