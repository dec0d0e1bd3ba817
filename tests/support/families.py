"""Random families of planning problems: a benchmark on which no search was tuned.

An instance is drawn from its family's key and its number alone. Its objects are in reach at their
starts and goals with one grasp that is free at both, and far enough from each other that a hand
fits between them where it has to. An arrangement without these properties is rejected, and the next
one of the same generator is drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import tmkit as tk
from tmkit.batch.generated_problems import add_block, add_box, table_scene
from tmkit.errors import ConfigurationError
from tmkit.graph import AttachedShape, Box, Cylinder, Inertia, SceneGraph
from tmkit.manipulation import Grasp, grasps_of
from tmkit.motion import CollisionWorld, IkSettings, inverse_kinematics_solutions
from tmkit.plans import ObjectAt
from tmkit.plans.continuous_goals import ContinuousGoal
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.robot_files import home_configuration
from tmkit.spatial import Pose
from tmkit.tamp import PythonDomain
from tmkit.tamp.parts import Stacking, compose_domain

__all__ = ["FAMILIES", "Family", "FamilyInstance", "Reach", "with_yaw"]

_DRAWS = 300
"""Arrangements drawn for one instance before the family counts as faulty."""

_RETREAT = 0.08
"""Straight distance from a grasp that has to be free, backwards along the tool [m]."""

_CLEARANCE = 0.004
"""Smallest distance at the start from an object to all but its parent and its children [m]."""

_SHALLOWER = 0.012
"""Distance by which the tool is further out in a shallow grasp [m]."""

_SPREAD = 0.006
"""Free distance between each finger and the object before a grasp [m]."""

_POSE_TOLERANCE = 0.01
"""Tolerance of the position of an object that is wanted at a pose [m]."""

_NEAREST = 0.34
"""Smallest horizontal distance of an object from the base of an arm at a table [m]."""

_SIDE_GAP = 0.002
"""Distance between objects side by side [m]."""

_SIDE_BY_SIDE = 0.05
"""Distance between the centres of two small objects over a region [m]."""

Point = tuple[float, float]


@dataclass(frozen=True, eq=False)
class FamilyInstance:
    """A planning problem of a family.

    Attributes:
        name: name of the family.
        number: number of the instance.
        scene: scene at the start.
        goal: PDDL text, or poses and PDDL text.
        domain: name of the domain.
        robot: the arm, or several.
        known_steps: fewest steps known, by construction or as a lower bound; plans are compared
            with it.
        objects: objects that have to move in every plan.
    """

    name: str
    number: int
    scene: SceneGraph
    goal: str | Sequence[str | ContinuousGoal]
    domain: str | PythonDomain
    robot: str | Manipulator | tuple[str | Manipulator, ...]
    known_steps: int
    objects: tuple[str, ...]

    def problem(self) -> tk.PlanningProblem:
        """Return the problem as the planner takes it."""
        return tk.PlanningProblem(self.scene, domain=self.domain, goal=self.goal, robots=self.robot)


@dataclass(frozen=True, eq=False)
class Draft:
    """An arrangement that a generator has drawn: an instance without its name and number."""

    scene: SceneGraph
    goal: str | Sequence[str | ContinuousGoal]
    domain: str | PythonDomain
    robot: str | Manipulator | tuple[str | Manipulator, ...]
    known_steps: int
    objects: tuple[str, ...]


class RejectedError(Exception):
    """An arrangement that may not be feasible."""


@dataclass(frozen=True)
class Family:
    """A family of random problems.

    Attributes:
        name: name in the table.
        key: first part of the seed of each instance.
        draw: generator of one arrangement, which raises :class:`RejectedError` for one that may not
            be feasible.
        size: argument of the generator, such as the number of objects.
    """

    name: str
    key: int
    draw: Callable[[np.random.Generator, int], Draft]
    size: int

    def instance(self, number: int) -> FamilyInstance:
        """Return the instance of a number, at least 0.

        Raises:
            ConfigurationError: if the generator rejects all of its arrangements.
        """
        rng = np.random.default_rng([self.key, number])
        for _ in range(_DRAWS):
            try:
                draft = self.draw(rng, self.size)
            except RejectedError:
                continue
            if not are_objects_apart(draft):
                continue
            return FamilyInstance(self.name, number, **vars(draft))
        raise ConfigurationError(
            f"family '{self.name}' has no feasible arrangement for number {number}"
        )


def are_objects_apart(draft: Draft) -> bool:
    """Return whether each object at the start is clear of all but its parent and its children."""
    scene = draft.scene
    robots = draft.robot if isinstance(draft.robot, tuple) else (draft.robot,)
    arms = [tk.load_manipulator(robot) if isinstance(robot, str) else robot for robot in robots]
    movable = set(movable_frames(scene))
    world = CollisionWorld(scene, movable=sorted(movable), margin=_CLEARANCE)
    pairs = [
        (contact.frame_a, contact.frame_b)
        for contact in world.contacts(home_configuration(arms, scene))
    ]
    return all(
        scene.parent(a) == b or scene.parent(b) == a
        for a, b in pairs
        if a in movable or b in movable
    )


class Reach:
    """Poses at which the hand of an arm takes objects of a scene.

    Args:
        scene: the scene.
        robot: name or description of the arm.
        others: other arms of the scene, which are at their ready configurations.
        joints: values of other joints [rad or m]; 0 by default.
    """

    def __init__(
        self,
        scene: SceneGraph,
        robot: str | Manipulator,
        others: Sequence[str | Manipulator] = (),
        joints: Mapping[str, float] = {},
    ) -> None:
        self.scene = scene
        self.joints = joints
        self.robot, *self.others = (
            tk.load_manipulator(arm) if isinstance(arm, str) else arm for arm in (robot, *others)
        )

    def grasps(self, object: str) -> list[Grasp]:
        """Return the grasps of an object, and the same with the object less deep in the hand."""
        grasps = list(grasps_of(self.scene, object, robot=self.robot))
        if self.robot.gripper_joints:
            grasps += [
                replace(
                    grasp, object_from_tool=grasp.object_from_tool @ Pose([0.0, 0.0, -_SHALLOWER])
                )
                for grasp in grasps
            ]
        return grasps

    def free_grasps(
        self, object: str, pose: Pose, grasps: Iterable[Grasp], *, absent: Collection[str] = ()
    ) -> Iterable[Grasp]:
        """Yield the grasps that are reached and left without a collision.

        Args:
            object: frame of the object, which is taken out of the scene.
            pose: world_from_object.
            grasps: grasps of the object.
            absent: other objects that are taken out of the scene.
        """
        rest = self.scene
        for frame in (object, *absent):
            if frame in rest:
                rest = rest.remove_frame(frame, subtree=True)
        world = CollisionWorld(rest)
        for grasp in grasps:
            if self._is_free(world, pose @ grasp.object_from_tool, grasp):
                yield grasp

    def _is_free(self, world: CollisionWorld, tool: Pose, grasp: Grasp) -> bool:
        """Return whether the arm gets to a pose of the tool and straight back from there."""
        robot, rest = self.robot, world.scene
        ready = home_configuration(
            [robot, *self.others], rest, base=rest.configuration(self.joints)
        )
        if robot.gripper_joints:
            width = min(robot.width_open, grasp.width + 2.0 * _SPREAD)
            ready = rest.configuration(robot.finger_values(width), base=ready)
        for retreat in (0.0, _RETREAT):
            solutions = inverse_kinematics_solutions(
                world,
                robot.tool,
                target_pose=tool @ Pose([0.0, 0.0, -retreat]),
                joints=list(robot.joints),
                q=ready,
                settings=IkSettings(max_solutions=1, restarts=12),
            )
            if len(solutions.configurations) == 0:
                return False
        return True

    def is_reachable(self, object: str, *, absent: Collection[str] = ()) -> bool:
        """Return whether the hand takes an object where it is."""
        pose = self.scene.pose(object, relative_to="world", q=self.scene.configuration(self.joints))
        return any(True for _ in self.free_grasps(object, pose, self.grasps(object), absent=absent))

    def find_transfer(
        self, object: str, goals: Iterable[Pose], *, absent: Collection[str] = ()
    ) -> Pose | None:
        """Return the first pose that one grasp reaches from the object's pose, or None.

        Args:
            object: frame of the object.
            goals: world_from_object of each pose.
            absent: other objects that are taken out of the scene.
        """
        start = self.scene.pose(object, relative_to="world")
        grasps = list(self.free_grasps(object, start, self.grasps(object), absent=absent))
        for goal in goals:
            if any(True for _ in self.free_grasps(object, goal, grasps, absent=absent)):
                return goal
        return None


def with_yaw(x: float, y: float, z: float, turn: float = 0.0) -> Pose:
    """Return an upright pose [m, rad]."""
    return Pose([x, y, z], [0.0, 0.0, math.sin(turn / 2), math.cos(turn / 2)])


def draw_table(rng: np.random.Generator, *, turn: float = 0.4) -> SceneGraph:
    """Return the table scene of a Panda whose base is turned at random, by at most `turn` [rad]."""
    return table_scene().set_pose("panda_link0", with_yaw(0.0, 0.0, 0.0, rng.uniform(-turn, turn)))


def draw_points(
    rng: np.random.Generator,
    radii: Sequence[float],
    *,
    gap: float,
    max_radius: float = 0.68,
    side: int = 0,
) -> list[Point]:
    """Return points on the table in front of an arm at the origin, apart from each other.

    Args:
        rng: source of random numbers.
        radii: radius of the object at each point [m].
        gap: smallest distance between the circles [m].
        max_radius: largest distance from the arm [m].
        side: 1 for points on the left, -1 for points on the right, 0 for both.

    Raises:
        RejectedError: if a point has no room.
    """
    points: list[Point] = []
    for radius in radii:
        for _ in range(300):
            point = (float(rng.uniform(0.24, max_radius)), float(rng.uniform(-0.56, 0.56)))
            if point[1] * side < 0.0:
                continue
            circles = zip(points, radii, strict=False)
            if _NEAREST < math.hypot(*point) < max_radius and all(
                math.dist(point, other) > radius + size + gap for other, size in circles
            ):
                points.append(point)
                break
        else:
            raise RejectedError
    return points


def count_displaced(wanted: Mapping[str, str], below: Mapping[str, str]) -> int:
    """Return the number of blocks that every plan has to move.

    Args:
        wanted: the block on which each block of a goal tower has to be.
        below: the block on which each block is at the start, if any.
    """
    above = {lower: upper for upper, lower in below.items()}
    moved: set[str] = set()
    while True:
        displaced = {upper for upper, lower in below.items() if lower in moved}
        for upper, lower in wanted.items():
            if below.get(upper) != lower or lower in moved:
                displaced.add(upper)
                if below.get(upper) != lower and lower in above:
                    displaced.add(above[lower])
        if displaced <= moved:
            return len(moved)
        moved |= displaced


def draw_towers(rng: np.random.Generator, size: int) -> Draft:
    """Draw blocks in piles of one to three, some of which form a tower of three to five."""
    scene = draw_table(rng)
    cells = [(0.3 + 0.1 * i, 0.1 * j) for i in range(5) for j in range(-5, 6)]
    cells = [cell for cell in cells if 0.33 < math.hypot(*cell) < 0.7]
    side = float(rng.uniform(0.036, 0.045))
    names = [f"b{k}" for k in range(size)]
    piles: list[list[str]] = []
    for name in names:
        low = [pile for pile in piles if len(pile) < 3]
        if low and rng.random() < (0.25 if size <= 20 else 0.45):
            low[int(rng.integers(len(low)))].append(name)
        else:
            piles.append([name])
    if len(piles) > len(cells) - 8:
        raise RejectedError
    below: dict[str, str] = {}
    for pile, cell in zip(piles, rng.permutation(len(cells)).tolist(), strict=False):
        x, y = (float(value) for value in np.array(cells[cell]) + rng.uniform(-0.008, 0.008, 2))
        support = "table"
        for name in pile:
            scene = add_block(scene, name, x, y, size=(side,) * 3, angle=0.0, support=support)
            if support != "table":
                below[name] = support
            support = name
    towers = 1 if size <= 10 else int(rng.integers(1, 1 + size // 10))
    order = [names[k] for k in rng.permutation(size).tolist()]
    wanted: dict[str, str] = {}
    for _ in range(towers):
        height = int(rng.integers(3, 6))
        tower, order = order[:height], order[height:]
        wanted.update(itertools.pairwise(tower))
    displaced = count_displaced(wanted, below)
    if displaced < 2:
        raise RejectedError
    reach = Reach(scene, "panda")
    if not all(
        reach.is_reachable(name, absent=[other for other in names if other != name])
        for name in names
    ):
        raise RejectedError
    goal = f"(and {' '.join(f'(on {upper} {lower})' for upper, lower in wanted.items())})"
    must = tuple(upper for upper, lower in wanted.items() if below.get(upper) != lower)
    return Draft(scene, goal, "blocks", "panda", 2 * displaced, must)


def count_in_rows(sides: Sequence[float], width: float, depth: float) -> int:
    """Return the number of squares that fit into a rectangle in rows, the smallest first [m].

    A row is filled with the largest of the chosen squares that fit. It is the best that is known,
    not an upper bound.
    """
    for count in range(len(sides), 0, -1):
        left, used = sorted(sides)[:count], 0.0
        while left:
            row: list[float] = []
            for side in sorted(left, reverse=True):
                if sum(row) + side + _SIDE_GAP * len(row) <= width:
                    row.append(side)
                    left.remove(side)
            used += row[0] + (_SIDE_GAP if used else 0.0)
        if used <= depth:
            return count
    return 0


def draw_cook(rng: np.random.Generator, size: int) -> Draft:
    """Draw objects on the floor around an iiwa, each of which has to be washed and cooked."""
    scene = tk.load_scene("iiwa_kitchen")
    scene = scene.set_pose("lbr_iiwa_link_0", with_yaw(0.0, 0.0, 0.0, rng.uniform(-0.3, 0.3)))
    names = [f"b{k}" for k in range(size)]
    sizes = [(float(rng.uniform(0.045, 0.055)), float(rng.uniform(0.07, 0.12))) for _ in names]
    points: list[Point] = []
    for wide, _ in sizes:
        for _ in range(400):
            distance, angle = rng.uniform(0.42, 0.68), math.radians(rng.uniform(48.0, 132.0))
            side = 1 if rng.random() < 0.5 else -1
            point = (float(distance * math.cos(angle)), float(side * distance * math.sin(angle)))
            if all(math.dist(point, other) > wide * 1.42 + 0.03 for other in points):
                points.append(point)
                break
        else:
            raise RejectedError
    for name, point, (wide, tall) in zip(names, points, sizes, strict=True):
        scene = add_block(
            scene,
            name,
            *point,
            size=(wide, wide, tall),
            angle=rng.uniform(0, math.pi),
            support="floor",
        )
    reach = Reach(scene, "iiwa_flange")
    if not all(reach.is_reachable(name) for name in names):
        raise RejectedError
    low, high = scene.shapes("stove")[0].shape.bounds
    capacity = count_in_rows(
        [wide for wide, _ in sizes], float(high[0] - low[0]), float(high[1] - low[1])
    )
    goal = f"(and {' '.join(f'(cooked {name})' for name in names)} (athome))"
    length = 6 * size + 1 + 2 * max(0, size - capacity)
    return Draft(scene, goal, "kitchen", "iiwa_flange", length, tuple(names))


def draw_fetch(rng: np.random.Generator, size: int) -> Draft:
    """Draw a turned block of objects with gaps of 1.2 to 4 cm, one of which is wanted on a mat."""
    scene = draw_table(rng)
    side = int(rng.choice((-1, 1)))
    mat = (float(rng.uniform(0.4, 0.52)), side * float(rng.uniform(0.36, 0.44)))
    scene = add_box(scene, "mat", (0.13, 0.13, 0.002), (*mat, 0.001), ("region",))
    columns = round(math.sqrt(size))
    rows = math.ceil(size / columns)
    turn = float(rng.uniform(0.0, math.pi / 2))
    center = np.array([rng.uniform(0.46, 0.52), -side * rng.uniform(0.08, 0.16)])
    rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    boxes: list[tuple[float, float, float, float]] = []
    v = 0.0
    for row in range(rows):
        sizes = rng.uniform(
            [0.03, 0.03, 0.05], [0.055, 0.055, 0.12], (min(columns, size - row * columns), 3)
        )
        depth = float(sizes[:, 1].max())
        u = 0.0
        for wide, deep, _ in sizes:
            boxes.append((u + wide / 2, v + depth / 2, float(wide), float(deep)))
            u += wide + rng.uniform(0.012, 0.04)
        v += depth + rng.uniform(0.012, 0.04)
    middle = np.mean([box[:2] for box in boxes], axis=0)
    names = [f"c{k}" for k in range(size)]
    for name, (u, v, wide, deep) in zip(names, boxes, strict=True):
        x, y = rotation @ (np.array([u, v]) - middle) + center
        tall = float(rng.uniform(0.05, 0.11))
        scene = add_block(scene, name, float(x), float(y), size=(wide, deep, tall), angle=turn)
    reach = Reach(scene, "panda")
    if not all(
        reach.is_reachable(name, absent=[other for other in names if other != name])
        for name in names
    ):
        raise RejectedError
    target = names[int(rng.integers(size))]
    length = count_fetch(reach, target, names)
    return Draft(scene, f"(on {target} mat)", "kitchen", "panda", length, (target,))


def count_fetch(reach: Reach, target: str, names: Sequence[str]) -> int:
    """Return the steps to fetch an object of a cluttered place by removing as few as possible.

    Raises:
        RejectedError: if no order of taking objects out frees the target.
    """
    if reach.is_reachable(target):
        return 2
    obstacles = sorted(
        (n for n in names if n != target), key=lambda n: distance_between(reach.scene, target, n)
    )
    nearest = obstacles[:8]
    for count in (1, 2, 3):
        for removed in itertools.combinations(nearest, count):
            if (
                reach.is_reachable(target, absent=removed)
                and count_removed(reach, removed) == count
            ):
                return 2 + 2 * count
    raise RejectedError


def count_removed(reach: Reach, objects: Sequence[str]) -> int:
    """Return how many of some objects can be taken out of a scene one after the other."""
    removed: list[str] = []
    while True:
        left = [name for name in objects if name not in removed]
        free = next((name for name in left if reach.is_reachable(name, absent=removed)), None)
        if free is None:
            return len(removed)
        removed.append(free)


def distance_between(scene: SceneGraph, first: str, second: str) -> float:
    """Return the distance between the origins of two frames [m]."""
    return float(np.linalg.norm(scene.pose(first, relative_to=second).translation))


def draw_shelf(rng: np.random.Generator, size: int) -> Draft:
    """Draw a shelf and objects before it, half of which have goals at poses in the shelf.

    The goal of the others is anywhere in the shelf.

    The poses are drawn first, from the back to the front; each is reached with the deeper ones in
    place.
    """
    scene = draw_table(rng)
    side = int(rng.choice((-1, 1)))
    x, y = float(rng.uniform(0.54, 0.6)), side * float(rng.uniform(0.24, 0.3))
    deep, wide = float(rng.uniform(0.22, 0.28)), float(rng.uniform(0.37, 0.43)) + 0.08 * (size > 4)
    board, inside = float(rng.uniform(0.02, 0.06)), float(rng.uniform(0.22, 0.3))
    scene = add_shelf(scene, (x, y), (deep, wide, inside), board=board)
    names = [f"b{k}" for k in range(size)]
    sizes = draw_sizes(rng, size, [0.04, 0.04, 0.09], [0.055, 0.055, 0.14])
    points = draw_points(rng, [0.04] * size, gap=0.045, side=-side)
    wanted = size // 2
    spots = [
        (x + deep / 2 - float(rng.uniform(0.05, 0.08)), y + float(v))
        for v in np.linspace(-wide / 2 + 0.125, wide / 2 - 0.125, wanted)
    ]
    front = [(x - deep / 2 + 0.06, y + float(v)) for v in np.linspace(-wide / 3, wide / 3, 5)]
    poses = [
        [with_yaw(*place, board + box[2] / 2) for place in ([spots[k]] if k < wanted else front)]
        for k, box in enumerate(sizes)
    ]
    scene, goals = put_before(rng, scene, points, sizes, poses)
    goal: list[str | ContinuousGoal] = [
        ObjectAt(name, pose, relative_to="world", metres=_POSE_TOLERANCE, radians=None)
        for name, pose in zip(names, goals[:wanted], strict=False)
    ]
    goal.extend(f"(on {name} board)" for name in names[wanted:])
    return Draft(scene, goal, "kitchen", "panda", 2 * size, tuple(names))


def put_before(
    rng: np.random.Generator,
    scene: SceneGraph,
    points: Sequence[Point],
    sizes: Sequence[tuple[float, float, float]],
    goals: Sequence[Sequence[Pose]],
) -> tuple[SceneGraph, list[Pose]]:
    """Add boxes at starts from which one grasp carries each to a goal.

    The boxes added earlier are then at their goals.

    Args:
        rng: source of random numbers.
        scene: the scene.
        points: start of each box on the table [m].
        sizes: edges of each box [m].
        goals: world_from_object of the possible goals of each box, which may also be turned by
            quarter turns.

    Returns:
        The scene with the boxes at their starts, and the goal of each.

    Raises:
        RejectedError: if no turn of a box has such a grasp.
    """
    placed, chosen = scene, []
    for k, (point, size, poses) in enumerate(zip(points, sizes, goals, strict=True)):
        name = f"b{k}"
        turned = [
            pose @ with_yaw(0.0, 0.0, 0.0, math.pi / 2 * quarter)
            for pose in poses
            for quarter in range(4)
        ]
        for _ in range(10):
            turn = float(rng.uniform(-math.pi, math.pi))
            started = add_block(placed, name, *point, size=size, angle=turn)
            pose = Reach(started, "panda").find_transfer(name, turned)
            if pose is not None:
                break
        else:
            raise RejectedError
        scene = add_block(scene, name, *point, size=size, angle=turn)
        placed = started.set_pose(name, started.pose("table", relative_to="world").inverse() @ pose)
        chosen.append(pose)
    return scene, chosen


def draw_narrow(rng: np.random.Generator, size: int) -> Draft:
    """Draw a shelf one object wide and objects before it; the goal is a row in the shelf."""
    scene = draw_table(rng)
    side = int(rng.choice((-1, 1)))
    deep, wide = 0.1 * size + float(rng.uniform(0.0, 0.03)), float(rng.uniform(0.25, 0.29))
    x, y = float(rng.uniform(0.66, 0.7)) - deep / 2, side * float(rng.uniform(0.15, 0.25))
    board = float(rng.uniform(0.02, 0.06))
    scene = add_shelf(scene, (x, y), (deep, wide, float(rng.uniform(0.24, 0.3))), board=board)
    names = [f"b{k}" for k in range(size)]
    sizes = draw_sizes(rng, size, [0.04, 0.04, 0.09], [0.055, 0.055, 0.14])
    points = draw_points(rng, [0.04] * size, gap=0.05, side=-side)
    spots = [
        (x + deep / 2 - 0.05 - 0.095 * k, y + float(rng.uniform(-0.01, 0.01))) for k in range(size)
    ]
    poses = [[with_yaw(*spot, board + box[2] / 2)] for spot, box in zip(spots, sizes, strict=True)]
    scene, goals = put_before(rng, scene, points, sizes, poses)
    goal = [
        ObjectAt(name, pose, relative_to="world", metres=_POSE_TOLERANCE, radians=None)
        for name, pose in zip(names, goals, strict=True)
    ]
    return Draft(scene, goal, "kitchen", "panda", 2 * size, tuple(names))


def draw_sizes(
    rng: np.random.Generator, count: int, low: Sequence[float], high: Sequence[float]
) -> list[tuple[float, float, float]]:
    """Return edges of boxes between two limits [m]."""
    return [(float(x), float(y), float(z)) for x, y, z in rng.uniform(low, high, (count, 3))]


def draw_behind(rng: np.random.Generator, size: int) -> Draft:
    """Draw a narrow shelf with an object to be put on a mat, and others in the only approach."""
    scene = draw_table(rng)
    side = int(rng.choice((-1, 1)))
    deep, wide = 0.1 * (size + 1) + 0.02, float(rng.uniform(0.25, 0.29))
    x, y = float(rng.uniform(0.64, 0.68)) - deep / 2, side * float(rng.uniform(0.1, 0.22))
    board = float(rng.uniform(0.02, 0.06))
    scene = add_shelf(scene, (x, y), (deep, wide, float(rng.uniform(0.24, 0.3))), board=board)
    mat = (float(rng.uniform(0.4, 0.5)), -side * float(rng.uniform(0.25, 0.4)))
    scene = add_box(scene, "mat", (0.13, 0.13, 0.002), (*mat, 0.001), ("region",))
    names = ["target", *(f"c{k}" for k in range(size))]
    for k, (name, box) in enumerate(
        zip(names, draw_sizes(rng, size + 1, [0.04, 0.04, 0.09], [0.055, 0.055, 0.14]), strict=True)
    ):
        position = (x + deep / 2 - 0.05 - 0.095 * k, y + float(rng.uniform(-0.015, 0.015)))
        scene = add_block(
            scene, name, *position, size=box, angle=float(rng.uniform(-0.15, 0.15)), support="board"
        )
    reach = Reach(scene, "panda")
    obstacles = names[1:]
    if any(reach.is_reachable("target", absent=obstacles[k + 1 :]) for k in range(size)):
        raise RejectedError
    tall = scene.shapes("target")[0].shape.bounds[1][2]
    goals = [with_yaw(*mat, 0.002 + tall, math.tau / 8 * k) for k in range(8)]
    if (
        reach.find_transfer("target", goals, absent=obstacles) is None
        or count_removed(reach, obstacles) < size
    ):
        raise RejectedError
    return Draft(scene, "(on target mat)", "kitchen", "panda", 2 + 2 * size, ("target",))


def add_shelf(
    scene: SceneGraph, corner: Point, inside: tuple[float, float, float], *, board: float
) -> SceneGraph:
    """Add a shelf that is open towards the arm.

    Args:
        scene: the scene.
        corner: middle of the board in the world [m].
        inside: depth, width and height of the free space [m].
        board: thickness of the board, a region [m].
    """
    (x, y), (deep, wide, high) = corner, inside
    scene = add_box(scene, "board", (deep, wide, board), (x, y, board / 2), ("region",))
    back = (x + deep / 2 + 0.01, y, board + high / 2)
    scene = add_box(scene, "shelf_back", (0.02, wide, high), back)
    for name, sign in (("shelf_right", -1), ("shelf_left", 1)):
        middle = (x, y + sign * (wide / 2 + 0.01), board + high / 2)
        scene = add_box(scene, name, (deep, 0.02, high), middle)
    return add_box(scene, "shelf_top", (deep, wide + 0.04, 0.02), (x, y, board + high + 0.01))


def draw_permutation(rng: np.random.Generator, size: int) -> Draft:
    """Draw objects on a table that are wanted at each other's places, turned at random."""
    return permute(rng, draw_table(rng), "panda", [f"b{k}" for k in range(size)])


def draw_xarm(rng: np.random.Generator, size: int) -> Draft:
    """Draw the same for an xArm 6 with its gripper."""
    scene = tk.load_scene("xarm_table")
    scene = scene.set_pose("link_base", with_yaw(0.0, 0.0, 0.0, rng.uniform(-0.4, 0.4)))
    return permute(rng, scene, "xarm", [f"b{k}" for k in range(size)], max_radius=0.55)


def permute(
    rng: np.random.Generator,
    scene: SceneGraph,
    robot: str,
    names: Sequence[str],
    *,
    max_radius: float = 0.68,
) -> Draft:
    """Add boxes that are wanted at each other's places."""
    size = len(names)
    gap = 0.045 if size <= 10 else 0.032
    points = draw_points(rng, [0.034] * size, gap=gap, max_radius=max_radius)
    starts: list[Pose] = []
    heights: list[float] = []
    for name, point in zip(names, points, strict=True):
        wide, tall = float(rng.uniform(0.038, 0.048)), float(rng.uniform(0.04, 0.09))
        scene = add_block(
            scene, name, *point, size=(wide, wide, tall), angle=rng.uniform(0, math.pi)
        )
        starts.append(scene.pose(name, relative_to="world"))
        heights.append(tall)
    order = rng.permutation(size).tolist()
    reach = Reach(scene, robot)
    goal: list[str | ContinuousGoal] = []
    for k, place in enumerate(order):
        if place == k:
            continue
        turn = float(rng.uniform(-math.pi / 4, math.pi / 4))
        x, y = points[place]
        pose = with_yaw(x, y, heights[k] / 2, turn)
        if not reach.find_transfer(names[k], [pose], absent=[n for n in names if n != names[k]]):
            raise RejectedError
        goal.append(
            ObjectAt(names[k], pose, relative_to="world", metres=_POSE_TOLERANCE, radians=0.1)
        )
    cycles = count_cycles(order)
    moved = tuple(names[k] for k, place in enumerate(order) if place != k)
    if not moved:
        raise RejectedError
    return Draft(scene, goal, "kitchen", robot, 2 * len(moved) + 2 * cycles, moved)


def count_cycles(order: Sequence[int]) -> int:
    """Return the number of cycles of a permutation that have at least two elements."""
    seen: set[int] = set()
    cycles = 0
    for start in range(len(order)):
        if start in seen or order[start] == start:
            continue
        cycles += 1
        place = start
        while place not in seen:
            seen.add(place)
            place = order[place]
    return cycles


def draw_mobile(rng: np.random.Generator, size: int) -> Draft:
    """Draw objects on four tables around a Panda on a mobile base, each wanted on another table."""
    scene = tk.load_scene("mobile_panda", "three_tables")
    tables = ("north", "east", "west", "south")
    for table, angle in zip(tables, (0.5 * math.pi, 0.0, math.pi, -0.5 * math.pi), strict=True):
        z = float(scene.pose(table, relative_to="world").translation[2])
        distance, angle = rng.uniform(1.5, 1.8), angle + rng.uniform(-0.12, 0.12)
        scene = scene.set_pose(
            table,
            with_yaw(
                distance * math.cos(angle), distance * math.sin(angle), z, rng.uniform(-0.3, 0.3)
            ),
        )
    for block in ("a", "b", "c"):
        scene = scene.remove_frame(block)
    names = [f"b{k}" for k in range(size)]
    places: list[tuple[str, Point]] = []
    while len(places) < size:
        table, point = (
            tables[int(rng.integers(4))],
            (float(rng.uniform(-0.2, 0.2)), float(rng.uniform(-0.2, 0.2))),
        )
        if all(table != other or math.dist(point, position) > 0.15 for other, position in places):
            places.append((table, point))
    goal, trips = [], []
    for name, (table, point) in zip(names, places, strict=True):
        position = scene.pose(table, relative_to="world").apply([*point, 0.0])
        side = float(rng.uniform(0.04, 0.055))
        box = (side, side, float(rng.uniform(0.04, 0.1)))
        turn = float(rng.uniform(-math.pi, math.pi))
        scene = add_block(
            scene, name, float(position[0]), float(position[1]), size=box, angle=turn, support=table
        )
        wanted = str(rng.choice([other for other in tables if other != table]))
        goal.append(f"(on {name} {wanted})")
        trips.append((table, wanted))
    length = 2 * size + count_drives(trips)
    robot = ("panda", "panda_base")
    return Draft(
        scene, f"(and {' '.join(goal)})", "mobile_manipulation", robot, length, tuple(names)
    )


def count_drives(trips: Sequence[tuple[str, str]]) -> int:
    """Return the fewest drives that make each trip once, from a place that is at no end of them."""
    parts: list[set[str]] = []
    for trip in trips:
        joined = set(trip)
        for part in [part for part in parts if part & joined]:
            parts.remove(part)
            joined |= part
        parts.append(joined)
    starts = 0
    for part in parts:
        surplus = (
            sum(a == place for a, _ in trips) - sum(b == place for _, b in trips) for place in part
        )
        starts += max(1, sum(max(0, number) for number in surplus))
    return len(trips) + starts


def draw_handover(rng: np.random.Generator, size: int) -> Draft:
    """Draw objects on the trays of a Baxter, each wanted on the other tray, beyond a wall."""
    scene = tk.load_scene("baxter_trays").remove_frame("a")
    wall = float(rng.uniform(0.15, 0.4))
    box = Box([float(rng.uniform(0.35, 0.5)), 0.04, wall])
    pose = Pose(
        [-0.1 + float(rng.uniform(-0.03, 0.03)), float(rng.uniform(-0.04, 0.04)), 0.05 + wall / 2]
    )
    scene = scene.add_frame("wall", "table", pose=pose, shapes=[AttachedShape(box)])
    places: list[tuple[str, Point]] = []
    while len(places) < size:
        tray = str(rng.choice(["left_tray", "right_tray"]))
        point = (float(rng.uniform(-0.08, 0.08)), float(rng.uniform(-0.08, 0.08)))
        if all(tray != other or math.dist(point, position) > 0.1 for other, position in places):
            places.append((tray, point))
    names, goal = [f"b{k}" for k in range(size)], []
    for name, (tray, point) in zip(names, places, strict=True):
        side = float(rng.uniform(0.045, 0.055))
        center = scene.pose(tray, relative_to="world").translation
        turn = float(rng.uniform(-math.pi, math.pi))
        x, y = float(center[0]) + point[0], float(center[1]) + point[1]
        scene = add_block(scene, name, x, y, size=(side,) * 3, angle=turn, support=tray)
        goal.append(f"(at {name} {'right_tray' if tray == 'left_tray' else 'left_tray'})")
    robot = ("baxter", "baxter_left")
    return Draft(scene, f"(and {' '.join(goal)})", "handover", robot, 3 * size, tuple(names))


def draw_regrasp(rng: np.random.Generator, size: int) -> Draft:
    """Draw a box in a well, reached from above, with a goal under a roof, reached from the side."""
    del size
    scene = draw_table(rng, turn=0.25)
    side = int(rng.choice((-1, 1)))
    x, y = float(rng.uniform(0.44, 0.54)), -side * float(rng.uniform(0.25, 0.33))
    wide, deep, tall = (
        float(value) for value in rng.uniform([0.035, 0.055, 0.09], [0.045, 0.065, 0.11])
    )
    room = (wide + float(rng.uniform(0.08, 0.1)), deep + float(rng.uniform(0.14, 0.18)))
    high = tall + float(rng.uniform(0.01, 0.02))
    for name, sign in (("a", -1), ("b", 1)):
        position = (x + sign * (room[0] / 2 + 0.01), y, high / 2)
        scene = add_box(scene, f"well_x{name}", (0.02, room[1], high), position)
        position = (x, y + sign * (room[1] / 2 + 0.01), high / 2)
        scene = add_box(scene, f"well_y{name}", (room[0] + 0.04, 0.02, high), position)
    scene = add_block(scene, "box", x, y, size=(wide, deep, tall))
    gx, gy = float(rng.uniform(0.5, 0.57)), side * float(rng.uniform(0.26, 0.32))
    above = tall + float(rng.uniform(0.08, 0.11))
    for name, sign in (("post_a", -1), ("post_b", 1)):
        scene = add_box(scene, name, (0.2, 0.02, above), (gx + 0.05, gy + sign * 0.13, above / 2))
    scene = add_box(scene, "roof", (0.2, 0.28, 0.02), (gx + 0.05, gy, above + 0.01))
    reach, goal = Reach(scene, "panda"), with_yaw(gx, gy, tall / 2)
    grasps = reach.grasps("box")
    at_start = list(reach.free_grasps("box", scene.pose("box", relative_to="world"), grasps))
    at_goal = list(reach.free_grasps("box", goal, grasps))
    if not at_start or not at_goal or any(grasp in at_start for grasp in at_goal):
        raise RejectedError
    between = [with_yaw(0.45, 0.03 * side, tall / 2, math.pi / 4 * k) for k in range(8)]
    if not any(
        any(True for _ in reach.free_grasps("box", pose, at_start))
        and any(True for _ in reach.free_grasps("box", pose, at_goal))
        for pose in between
    ):
        raise RejectedError
    wanted = ObjectAt("box", goal, relative_to="world", metres=_POSE_TOLERANCE, radians=0.1)
    return Draft(scene, [wanted], "kitchen", "panda", 4, ("box",))


def draw_drawer(rng: np.random.Generator, size: int) -> Draft:
    """Draw blocks in a closed drawer and on the table, each wanted in one of the two."""
    scene = tk.load_scene("panda_drawer").remove_frame("a").remove_frame("b")
    cabinet = scene.local_pose("cabinet").translation
    x, y = float(cabinet[0] + rng.uniform(0.0, 0.03)), float(cabinet[1] + rng.uniform(-0.05, 0.05))
    scene = scene.set_pose("cabinet", with_yaw(x, y, float(cabinet[2]), rng.uniform(-0.08, 0.08)))
    names = [f"b{k}" for k in range(size)]
    starts = [str(rng.choice(["drawer", "table"])) for _ in names]
    wanted = [str(rng.choice(["drawer", "table"])) for _ in names]
    moved = tuple(name for name, a, b in zip(names, starts, wanted, strict=True) if a != b)
    if not moved or starts.count("drawer") > 2 or wanted.count("drawer") > 2:
        raise RejectedError
    points: list[Point] = []
    while len(points) < size:
        point = (
            float(rng.uniform(0.34, 0.52)),
            float(rng.choice((-1, 1)) * rng.uniform(0.29, 0.45)),
        )
        if all(math.dist(point, other) > 0.11 for other in points):
            points.append(point)
    bays = iter(rng.permutation([-0.065, 0.065]).tolist())
    for name, start, point in zip(names, starts, points, strict=True):
        side = float(rng.uniform(0.04, 0.05))
        block = add_block(
            scene, name, *point, size=(side,) * 3, angle=float(rng.uniform(-math.pi, math.pi))
        )
        if start == "drawer":
            pose = with_yaw(
                float(rng.uniform(-0.02, 0.02)),
                next(bays),
                0.005 + side / 2,
                rng.uniform(-0.2, 0.2),
            )
            block = scene.add_frame(
                name, "drawer", pose=pose, shapes=block.shapes(name), classes=["movable"]
            )
        scene = block
    reach = Reach(scene, "panda", joints={"drawer_slide": 0.2})
    if not all(reach.is_reachable(name) for name in names):
        raise RejectedError
    facts = [f"(in {name} {place})" for name, place in zip(names, wanted, strict=True)]
    is_closed = bool(rng.random() < 0.5)
    if is_closed:
        facts.append("(closed drawer)")
    length = 2 * len(moved) + 1 + is_closed
    return Draft(scene, f"(and {' '.join(facts)})", "drawer", "panda", length, moved)


def draw_two_arms(rng: np.random.Generator, size: int) -> Draft:
    """Draw two Pandas that face each other over a table, and objects for the tray of each."""
    other = tk.load_manipulator("panda").with_prefix("far_")
    distance = float(rng.uniform(1.15, 1.25))
    scene = draw_table(rng).mount(
        tk.load_scene("panda_alone"),
        "world",
        prefix="far_",
        pose=with_yaw(distance, 0.0, 0.0, math.pi),
    )
    side = int(rng.choice((-1, 1)))
    trays = {"near_tray": (0.38, 0.36 * side), "far_tray": (distance - 0.38, -0.36 * side)}
    for tray, position in trays.items():
        scene = add_box(scene, tray, (0.2, 0.2, 0.004), (*position, 0.002), ("region",))
    names = [f"b{k}" for k in range(size)]
    points: list[Point] = []
    while len(points) < size:
        point = (float(rng.uniform(0.3, distance - 0.3)), float(rng.uniform(-0.4, 0.4)))
        if all(math.dist(point, position) > 0.11 for position in points) and all(
            math.dist(point, position) > 0.2 for position in trays.values()
        ):
            points.append(point)
    for name, point in zip(names, points, strict=True):
        edge = float(rng.uniform(0.04, 0.05))
        scene = add_block(
            scene, name, *point, size=(edge,) * 3, angle=float(rng.uniform(-math.pi, math.pi))
        )
    arms = (Reach(scene, "panda", [other]), Reach(scene, other, ["panda"]))
    goal, length = [], 0
    for name in names:
        tray = str(rng.choice(list(trays)))
        goal.append(f"(at {name} {tray})")
        height = scene.shapes(name)[0].shape.bounds[1][2] + 0.004
        poses = [with_yaw(*trays[tray], height, math.pi / 4 * k) for k in range(8)]
        if not any(arm.is_reachable(name) for arm in arms):
            raise RejectedError
        length += 2 if any(arm.find_transfer(name, poses) is not None for arm in arms) else 3
    return Draft(
        scene, f"(and {' '.join(goal)})", "handover", ("panda", other), length, tuple(names)
    )


def is_on_table(scene: SceneGraph, object: str, pose: Pose) -> bool:
    """Return whether the box around an object at world_from_object lies within the table's edge."""
    low, high = scene.shapes(object)[0].shape.bounds
    corners = [[x, y, low[2]] for x in (low[0], high[0]) for y in (low[1], high[1])]
    table = scene.pose("table", relative_to="world", q=scene.zero_configuration())
    least, most = scene.shapes("table")[0].shape.bounds
    points = table.inverse().apply(pose.apply(corners))[:, :2]
    return bool(np.all(points >= least[:2]) and np.all(points <= most[:2]))


def draw_shapes(rng: np.random.Generator, size: int) -> Draft:
    """Draw tall, flat, heavy, light and round objects on a table, each with a free goal place."""
    scene = draw_table(rng)
    kinds = {"tall": (0.035, 0.035, 0.17), "flat": (0.11, 0.05, 0.02), "heavy": (0.06, 0.06, 0.06)}
    masses = {"tall": 0.3, "flat": 0.15, "heavy": 1.8, "light": 0.02, "round": 0.2}
    points = draw_points(rng, [0.045] * (2 * size), gap=0.03)
    reach_goals: list[tuple[str, Pose]] = []
    for k in range(size):
        kind = str(rng.choice(list(masses)))
        name = f"{kind}{k}"
        box = tuple(
            float(edge * rng.uniform(0.9, 1.1)) for edge in kinds.get(kind, (0.04, 0.04, 0.05))
        )
        turn = float(rng.uniform(-math.pi, math.pi))
        scene = add_block(scene, name, *points[k], size=box, angle=turn).set_inertia(
            name, Inertia(masses[kind])
        )
        if kind == "round":
            scene = scene.set_shapes(name, [AttachedShape(Cylinder(box[0] / 2, box[2]))])
        reach_goals.append(
            (name, with_yaw(*points[size + k], box[2] / 2, float(rng.uniform(-math.pi, math.pi))))
        )
    starts = [
        (name, scene.pose(name, relative_to="world", q=scene.zero_configuration()))
        for name, _ in reach_goals
    ]
    if not all(is_on_table(scene, name, pose) for name, pose in (*starts, *reach_goals)):
        raise RejectedError
    reach = Reach(scene, "panda")
    if any(reach.find_transfer(name, [pose]) is None for name, pose in reach_goals):
        raise RejectedError
    goal = [
        ObjectAt(name, pose, relative_to="world", metres=_POSE_TOLERANCE, radians=0.1)
        for name, pose in reach_goals
    ]
    return Draft(scene, goal, "kitchen", "panda", 2 * size, tuple(name for name, _ in reach_goals))


def draw_packing(rng: np.random.Generator, size: int) -> Draft:
    """Draw boxes before a mat with room for all of them in one row, with 4 to 7 mm between them."""
    scene = draw_table(rng)
    side = int(rng.choice((-1, 1)))
    sizes = draw_sizes(rng, size, [0.03, 0.04, 0.05], [0.045, 0.055, 0.09])
    gap = float(rng.uniform(0.004, 0.007))
    length = sum(box[0] for box in sizes) + gap * (size + 1)
    x, y = float(rng.uniform(0.42, 0.56)), side * float(rng.uniform(0.2, 0.32))
    turn = float(rng.uniform(-0.5, 0.5)) + math.pi / 2
    mat = with_yaw(x, y, 0.002, turn)
    shape = AttachedShape(Box([length, 0.062, 0.004]))
    scene = scene.add_frame("mat", "world", pose=mat, shapes=[shape], classes=["region"])
    points = draw_points(rng, [0.04] * size, gap=0.05, side=-side)
    poses, u = [], -length / 2 + gap
    for box in sizes:
        poses.append([mat @ Pose([u + box[0] / 2, 0.0, 0.002 + box[2] / 2])])
        u += box[0] + gap
    placed, names = scene, [f"b{k}" for k in range(size)]
    for name, point, box, (pose,) in zip(names, points, sizes, poses, strict=True):
        yaw = float(rng.uniform(-math.pi, math.pi))
        scene = add_block(scene, name, *point, size=box, angle=yaw)
        started = add_block(placed, name, *point, size=box, angle=yaw)
        goals = [pose, pose @ with_yaw(0.0, 0.0, 0.0, math.pi)]
        if Reach(started, "panda").find_transfer(name, goals) is None:
            raise RejectedError
        placed = started.set_pose(name, started.pose("table", relative_to="world").inverse() @ pose)
    goal = f"(and {' '.join(f'(on {name} mat)' for name in names)})"
    return Draft(scene, goal, "kitchen", "panda", 2 * size, tuple(names))


def draw_stacked(rng: np.random.Generator, size: int) -> Draft:
    """Draw piles of two or three objects, of which some of the lowest are wanted on a mat."""
    scene = draw_table(rng)
    side = int(rng.choice((-1, 1)))
    mat = (float(rng.uniform(0.42, 0.5)), side * float(rng.uniform(0.36, 0.42)))
    scene = add_box(scene, "mat", (0.16, 0.16, 0.002), (*mat, 0.001), ("region",))
    points = draw_points(rng, [0.035] * size, gap=0.05, max_radius=0.6, side=-side)
    piles: list[list[str]] = []
    for k, point in enumerate(points):
        support, pile, turn = "table", [], float(rng.uniform(-math.pi, math.pi))
        for level in range(int(rng.integers(2, 4))):
            name = f"b{k}_{level}"
            box = (float(rng.uniform(0.042, 0.05)),) * 2 + (float(rng.uniform(0.035, 0.05)),)
            scene = add_block(scene, name, *point, size=box, angle=turn, support=support)
            pile.append(name)
            support = name
        piles.append(pile)
    wanted = [pile for pile in piles if rng.random() < 0.5] or [piles[0]]
    wanted = wanted[:2]
    reach = Reach(scene, "panda")
    if not all(reach.is_reachable(name) for pile in piles for name in pile):
        raise RejectedError
    goal = f"(and {' '.join(f'(on {pile[0]} mat)' for pile in wanted)})"
    length = sum(2 * len(pile) for pile in wanted)
    domain = compose_domain("kitchen", [Stacking])
    return Draft(
        scene, goal, domain, "panda", length, tuple(name for pile in wanted for name in pile)
    )


def draw_obstructed(rng: np.random.Generator, size: int) -> Draft:
    """Draw an object that is wanted in a region hardly larger, with others over it or beside it.

    The region is a plate or an area of the table. Arm and table are drawn, too.
    """
    robot = str(rng.choice(["panda", "xarm", "iiwa"]))
    scene = tk.load_scene(f"{robot}_table").set_classes("table", ["surface"])
    deep, wide = float(rng.uniform(0.45, 0.8)), float(rng.uniform(0.7, 1.2))
    scene = scene.set_shapes("table", [AttachedShape(Box([deep, wide, 0.05]))])
    scene = scene.set_pose("table", Pose([0.2 + deep / 2, 0.0, -0.025]))
    max_radius = min(0.62, 0.16 + deep)
    target, region = draw_points(rng, [0.05, 0.1], gap=0.05, max_radius=max_radius)
    box = [float(edge) for edge in rng.uniform([0.045, 0.04, 0.04], [0.075, 0.05, 0.09])]
    length, width = (edge + float(rng.uniform(0.003, 0.03)) for edge in box[:2])
    is_plate = bool(rng.random() < 0.5)
    height = float(rng.uniform(0.006, 0.012)) if is_plate else 0.0
    mat = with_yaw(*region, height / 2, float(rng.uniform(-math.pi, math.pi)))
    shape = AttachedShape(Box([length, width, height or 0.001]), collision=is_plate)
    pose = scene.pose("table", relative_to="world").inverse() @ mat
    scene = scene.add_frame("mat", "table", pose=pose, shapes=[shape], classes=["region"])
    names, points = [f"c{k}" for k in range(size)], list[Point]()
    for name in names:
        edges = [float(edge) for edge in rng.uniform([0.03, 0.03, 0.03], [0.04, 0.04, 0.08])]
        for _ in range(30):
            u, v = (float(edge) for edge in rng.uniform(-1, 1, 2) * (length / 2, width / 2) * 1.5)
            is_on_mat = is_plate and abs(u) < length / 2 and abs(v) < width / 2
            is_beside = abs(u) > length / 2 + 0.03 or abs(v) > width / 2 + 0.03
            is_apart = all(math.dist((u, v), point) > _SIDE_BY_SIDE for point in points)
            if is_apart and (is_on_mat or is_beside or not is_plate):
                break
        else:
            raise RejectedError
        points.append((u, v))
        x, y, _ = mat.apply([u, v, 0.0]).tolist()
        scene = add_block(
            scene,
            name,
            x,
            y,
            size=edges,
            angle=float(rng.uniform(-math.pi, math.pi)),
            support="mat" if is_on_mat else "table",
        )
    scene = add_block(scene, "target", *target, size=box, angle=float(rng.uniform(0, math.pi)))
    corners = np.array([length - box[0], width - box[1]]) / 2.1
    goals = [
        mat @ with_yaw(float(u), float(v), height / 2 + box[2] / 2 + 1e-3, turn)
        for u, v in itertools.product(*((0.0, -edge, edge) for edge in corners))
        for turn in (0.0, math.pi)
    ]
    obstructing = min((objects_over(scene, "target", goal, names) for goal in goals), key=len)
    frames = ["target", *names]
    poses = [scene.pose(name, relative_to="world") for name in frames]
    reach = Reach(scene, robot)
    if (
        not obstructing
        or not all(itertools.starmap(partial(is_on_table, scene), zip(frames, poses, strict=True)))
        or count_removed(reach, names) < len(names)
        or reach.find_transfer("target", goals, absent=names) is None
    ):
        raise RejectedError
    steps = 2 + 2 * len(obstructing)
    return Draft(scene, "(on target mat)", "kitchen", robot, steps, ("target",))


def objects_over(
    scene: SceneGraph, object: str, pose: Pose, others: Collection[str]
) -> tuple[str, ...]:
    """Return the other objects that collide with an object at world_from_object."""
    world_from_parent = scene.pose(str(scene.parent(object)), relative_to="world")
    moved = scene.set_pose(object, world_from_parent.inverse() @ pose)
    contacts = CollisionWorld(moved, movable=[object, *others]).contacts(moved.zero_configuration())
    pairs = [{contact.frame_a, contact.frame_b} for contact in contacts]
    return tuple(other for other in others if {object, other} in pairs)


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family("towers10", 1, draw_towers, 10),
        Family("towers20", 2, draw_towers, 20),
        Family("towers30", 3, draw_towers, 30),
        Family("towers40", 4, draw_towers, 40),
        Family("cook16", 5, draw_cook, 16),
        Family("cook24", 6, draw_cook, 24),
        Family("cook30", 7, draw_cook, 30),
        Family("fetch12", 8, draw_fetch, 12),
        Family("fetch25", 9, draw_fetch, 25),
        Family("shelf4", 10, draw_shelf, 4),
        Family("shelf6", 11, draw_shelf, 6),
        Family("permute10", 12, draw_permutation, 10),
        Family("permute20", 13, draw_permutation, 20),
        Family("mobile2", 14, draw_mobile, 2),
        Family("mobile6", 15, draw_mobile, 6),
        Family("handover3", 16, draw_handover, 3),
        Family("regrasp", 17, draw_regrasp, 1),
        Family("drawer3", 18, draw_drawer, 3),
        Family("two_arms4", 19, draw_two_arms, 4),
        Family("narrow3", 20, draw_narrow, 3),
        Family("behind1", 21, draw_behind, 1),
        Family("behind2", 22, draw_behind, 2),
        Family("shapes5", 23, draw_shapes, 5),
        Family("xarm6", 24, draw_xarm, 6),
        Family("packing5", 25, draw_packing, 5),
        Family("stacked4", 26, draw_stacked, 4),
        Family("obstructed2", 27, draw_obstructed, 2),
        Family("obstructed4", 28, draw_obstructed, 4),
    )
}
"""The families by name."""
