"""Generators of random problems, each for one kind of problem.

The seed varies the poses of objects, and the parameters vary the difficulty. Each problem has a
reachable goal. The length of the shortest plan is stored where it is known.

Invariants: the same seed and parameters give the same problem.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tmkit.errors import ConfigurationError
from tmkit.formats import load_scene
from tmkit.graph import AttachedShape, Box, Cylinder, SceneGraph
from tmkit.plans import ObjectAt
from tmkit.plans.continuous_goals import ContinuousGoal
from tmkit.spatial import Pose

CUBE = 0.05
"""Side of most blocks [m]."""


@dataclass(frozen=True, eq=False)
class GeneratedProblem:
    """A scene with a goal.

    Attributes:
        scene: scene at the start.
        goal: goal in PDDL, or goals in PDDL, poses and regions.
        optimum: number of actions of the shortest plan; None if unknown.
        domain: name of the domain.
        robot: names of the arms that act.
    """

    scene: SceneGraph
    goal: str | Sequence[str | ContinuousGoal]
    optimum: int | None = None
    domain: str = "kitchen"
    robot: str | tuple[str, ...] = "panda"


def table_scene() -> SceneGraph:
    """Return a scene with a Panda at an empty table of 0.8 m x 1.2 m, which can support objects."""
    return load_scene("panda_table").set_classes("table", ("surface",))


def add_box(
    scene: SceneGraph,
    name: str,
    size: Sequence[float],
    position: Sequence[float],
    classes: Sequence[str] = (),
) -> SceneGraph:
    """Add a fixed box.

    Args:
        scene: scene.
        name: frame of the box.
        size: (3,) size [m].
        position: (3,) center, in the world frame [m].
        classes: classes of the frame.
    """
    return scene.add_frame(
        name,
        "world",
        pose=Pose(list(position)),
        shapes=[AttachedShape(Box(list(size)))],
        classes=list(classes),
    )


def add_block(
    scene: SceneGraph,
    name: str,
    x: float,
    y: float,
    *,
    size: Sequence[float] = (CUBE, CUBE, CUBE),
    angle: float = 0.0,
    support: str = "table",
) -> SceneGraph:
    """Add a movable block on a support.

    Args:
        scene: scene.
        name: frame of the block.
        x, y: center, in the world frame [m].
        size: (3,) size [m].
        angle: rotation about the vertical axis [rad].
        support: frame of the support.
    """
    world_from_support = scene.pose(support, relative_to="world")
    top = world_from_support.translation[2] + scene.shapes(support)[0].shape.bounds[1][2]
    pose = Pose([x, y, top + size[2] / 2], _rotation_about_z(angle))
    return scene.add_frame(
        name,
        support,
        pose=world_from_support.inverse() @ pose,
        shapes=[AttachedShape(Box(list(size)), color=(0.3, 0.5, 0.8, 1.0))],
        classes=["movable"],
    )


def _rotation_about_z(angle: float) -> list[float]:
    """Return the quaternion (x, y, z, w) of a rotation about the z axis by an angle [rad]."""
    return [0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2)]


def regrasp_problem(*, seed: int = 0) -> GeneratedProblem:
    """Return a problem of moving a box from a narrow well to a place under a roof.

    Only a grasp from above reaches the well, and only a grasp from the side reaches the goal.

    Args:
        seed: seed of the poses.
    """
    rng = np.random.default_rng(seed)
    x, y = 0.5 + 0.04 * rng.uniform(-1, 1), -0.3 + 0.04 * rng.uniform(-1, 1)
    scene = table_scene()
    height = 0.12
    walls = [
        ((0.075, 0.0), (0.02, 0.2)),
        ((-0.075, 0.0), (0.02, 0.2)),
        ((0.0, 0.125), (0.17, 0.02)),
        ((0.0, -0.125), (0.17, 0.02)),
    ]
    for k, ((dx, dy), extent) in enumerate(walls):
        scene = add_box(scene, f"well{k}", (*extent, height), (x + dx, y + dy, height / 2))
    size = (0.04, 0.06, 0.1)
    scene = add_block(scene, "box", x, y, size=size)
    goal_x, goal_y = 0.55, 0.3
    for k, side in enumerate((-1, 1)):
        position = (goal_x + 0.05, goal_y + side * 0.13, 0.1)
        scene = add_box(scene, f"post{k}", (0.2, 0.02, 0.2), position)
    scene = add_box(scene, "roof", (0.2, 0.28, 0.02), (goal_x + 0.05, goal_y, 0.21))
    goal = ObjectAt(
        "box", Pose([goal_x, goal_y, size[2] / 2]), relative_to="world", metres=0.01, radians=0.1
    )
    return GeneratedProblem(scene, [goal], 4)


def blocked_problem(*, gap: float = 0.01, seed: int = 0) -> GeneratedProblem:
    """Return a problem of moving a block between four neighbours to a mat for one block.

    Args:
        gap: distance between the block and its neighbours [m].
        seed: seed of the poses.
    """
    rng = np.random.default_rng(seed)
    x, y = 0.5 + 0.05 * rng.uniform(-1, 1), 0.05 * rng.uniform(-1, 1)
    scene = add_box(table_scene(), "mat", (0.09, 0.09, 0.002), (0.5, 0.35, 0.001), ("region",))
    scene = add_block(scene, "target", x, y)
    for k, (dx, dy) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
        scene = add_block(scene, f"n{k}", x + dx * (CUBE + gap), y + dy * (CUBE + gap))
    return GeneratedProblem(scene, "(on target mat)", 6)


def swaps_problem(blocks: int = 4, *, seed: int = 0) -> GeneratedProblem:
    """Return a problem of moving blocks on a table to goal poses.

    The first two blocks swap their poses, and the others move to free poses.

    Args:
        blocks: number of blocks, 2 to 16.
        seed: seed of the poses.
    """
    rng = np.random.default_rng(seed)
    cells = [(0.35 + 0.1 * i, -0.35 + 0.1 * j) for i in range(4) for j in range(8)]
    order = [cells[k] for k in rng.permutation(len(cells)).tolist()]
    starts, goals = order[:blocks], [order[1], order[0], *order[blocks : 2 * blocks - 2]]
    scene = table_scene()
    for k, (x, y) in enumerate(starts):
        scene = add_block(scene, f"b{k}", x, y)
    pose_goals = [
        ObjectAt(f"b{k}", Pose([x, y, CUBE / 2]), relative_to="world", metres=0.01)
        for k, (x, y) in enumerate(goals)
    ]
    return GeneratedProblem(scene, pose_goals, 2 * blocks + 2)


def shelf_problem(blocks: int = 3, *, in_front: bool = False, seed: int = 0) -> GeneratedProblem:
    """Return a problem of moving blocks 12 cm high to a shelf 25 cm high, the first to its back.

    Args:
        blocks: number of blocks, 1 to 6.
        in_front: true for a further block in front of the goal of the first.
        seed: seed of the poses.
    """
    rng = np.random.default_rng(seed)
    x, y = 0.62, 0.3
    scene = _add_compartment(table_scene(), "shelf", (x, y), (0.3, 0.42, 0.25))
    size = (0.05, 0.05, 0.12)
    for k in range(blocks):
        dx, dy = 0.01 * rng.uniform(-1, 1, size=2)
        scene = add_block(
            scene, f"b{k}", 0.35 + 0.12 * (k % 3) + dx, -0.15 - 0.13 * (k // 3) + dy, size=size
        )
    back = ObjectAt(
        "b0", Pose([x + 0.06, y, 0.02 + size[2] / 2]), relative_to="world", metres=0.015
    )
    goal: list[str | ContinuousGoal] = [back, *(f"(on b{k} board)" for k in range(1, blocks))]
    if in_front:
        scene = add_block(scene, "front", x - 0.06, y, size=size, support="board")
    return GeneratedProblem(scene, goal, 2 * blocks + (2 if in_front else 0))


def _add_compartment(
    scene: SceneGraph, name: str, center: tuple[float, float], size: tuple[float, float, float]
) -> SceneGraph:
    """Add a compartment that is open towards the arm, with a board as its floor.

    Args:
        scene: scene.
        name: prefix of the frames of the walls.
        center: (2,) center, in the world frame [m].
        size: (3,) interior depth, width and height [m].
    """
    (x, y), (depth, width, height) = center, size
    middle = 0.02 + height / 2
    scene = add_box(scene, "board", (depth, width, 0.02), (x, y, 0.01), ("region",))
    back = (x + depth / 2 - 0.01, y, middle)
    scene = add_box(scene, f"{name}_back", (0.02, width, height), back)
    for k, side in enumerate((-1, 1)):
        position = (x, y + side * (width / 2 + 0.01), middle)
        scene = add_box(scene, f"{name}_side{k}", (depth, 0.02, height), position)
    return add_box(scene, f"{name}_top", (depth, width + 0.04, 0.02), (x, y, 0.03 + height))


def clutter_problem(side: int = 3, *, gap: float = 0.03, seed: int = 0) -> GeneratedProblem:
    """Return a problem of moving the middle block of a square of blocks to a mat.

    Args:
        side: number of blocks along a side.
        gap: distance between blocks [m].
        seed: seed of the poses.
    """
    rng = np.random.default_rng(seed)
    x, y = 0.5 + 0.03 * rng.uniform(-1, 1), -0.1 + 0.03 * rng.uniform(-1, 1)
    scene = add_box(table_scene(), "mat", (0.12, 0.12, 0.002), (0.5, 0.4, 0.001), ("region",))
    middle = side // 2
    for i in range(side):
        for j in range(side):
            name = "target" if (i, j) == (middle, middle) else f"c{i}{j}"
            step = CUBE + gap
            scene = add_block(scene, name, x + (i - middle) * step, y + (j - middle) * step)
    return GeneratedProblem(scene, "(on target mat)", 2)


def handover_problem(objects: int = 2, wall: float = 0.2, *, seed: int = 0) -> GeneratedProblem:
    """Return a problem of moving blocks between the trays of a Baxter, past a wall.

    The right arm takes each block from the right tray, and the left arm puts it on the left tray.

    Args:
        objects: number of blocks, 1 to 4.
        wall: height of the wall between the arms [m].
        seed: has no effect on the problem.
    """
    del seed
    scene = load_scene("baxter_trays")
    scene = scene.add_frame(
        "wall",
        "table",
        pose=Pose([-0.1, 0.0, 0.05 + wall / 2]),
        shapes=[AttachedShape(Box([0.5, 0.04, wall]))],
    )
    height, names = float(scene.local_pose("a").translation[2]), "abcd"[:objects]
    for name, (x, y) in zip(names, itertools.product((-0.06, 0.06), repeat=2), strict=False):
        if name == "a":
            scene = scene.set_pose(name, Pose([x, y, height]))
        else:
            scene = scene.add_frame(
                name,
                "right_tray",
                pose=Pose([x, y, height]),
                shapes=scene.shapes("a"),
                classes=["movable"],
            )
    goal = f"(and {' '.join(f'(at {name} left_tray)' for name in names)})"
    return GeneratedProblem(scene, goal, 3 * objects, "handover", ("baxter", "baxter_left"))


def towers_problem(blocks: int = 5, *, seed: int = 0) -> GeneratedProblem:
    """Return a problem of stacking the blocks on a table to towers of five.

    Args:
        blocks: number of blocks, 2 to 25.
        seed: seed of the poses.
    """
    scene, size = load_scene("panda_table"), 0.04
    cells = [(0.3 + 0.12 * i, -0.48 + 0.12 * j) for i in range(4) for j in range(9)]
    reachable_cells = [cell for cell in cells if 0.33 < math.hypot(*cell) < 0.72]
    reachable_cells.sort(key=lambda cell: math.hypot(*cell))
    for k, index in enumerate(np.random.default_rng(seed).permutation(blocks).tolist()):
        scene = add_block(scene, f"b{k}", *reachable_cells[index], size=(size, size, size))
    goal = f"(and {' '.join(f'(on b{k} b{k + 1})' for k in range(blocks - 1) if k % 5 != 4)})"
    return GeneratedProblem(scene, goal, 8 * blocks // 5, "blocks")


def cook_problem(blocks: int = 3, *, seed: int = 0) -> GeneratedProblem:
    """Return a problem of washing blocks in a sink and cooking them on a stove.

    The blocks lie on the floor around an iiwa with a suction cup.

    Args:
        blocks: number of blocks, 1 to 20.
        seed: seed of the poses.
    """
    rng, size = np.random.default_rng(seed), (0.05, 0.05, 0.1)
    scene = load_scene("iiwa_kitchen")
    for region in ("stove", "sink"):  # enlarged to support all blocks
        low, high = scene.shapes(region)[0].shape.bounds
        scene = scene.set_shapes(
            region, [AttachedShape(Box([0.36, 0.36, float(high[2] - low[2])]))]
        )
    for k in range(blocks):
        side, index = 1 if k % 2 else -1, k // 2
        angle = side * math.radians(90.0 + 14.0 * (index % 5 - 2))
        radius = 0.48 + 0.1 * (index // 5) + 0.01 * rng.uniform(-1, 1)
        x, y = radius * math.cos(angle), radius * math.sin(angle)
        scene = add_block(scene, f"b{k}", x, y, size=size, support="floor")
    goal = f"(and {' '.join(f'(cooked b{k})' for k in range(blocks))} (athome))"
    return GeneratedProblem(scene, goal, 6 * blocks + 1, "kitchen", "iiwa_flange")


def sussman4_problem(robot: str = "panda", *, seed: int = 0) -> GeneratedProblem:
    """Return a problem of stacking four blocks of two towers to one tower.

    This is the problem in the tutorial of the original TMKit. A table, rotated by 45 degrees, is in
    front of the right shoulder of a Baxter. For other arms, the table has the same distance from
    the shoulder, and the blocks are smaller, to fit the hand.

    Args:
        robot: ``baxter``, ``panda`` or ``iiwa``.
        seed: seed of the poses.
    """
    rng, size = np.random.default_rng(seed), 0.1
    table_top, thickness = 0.055, 0.01
    if robot == "baxter":
        scene, shoulder = load_scene("baxter"), (0.1, -0.3)
        scene = add_box(scene, "curtain", (0.01, 5.0, 5.0), (-0.95, 0.0, 0.0))
        scene = add_box(scene, "bookshelf", (1.0, 0.01, 5.0), (0.0, -1.15, 0.0))
    else:
        scene, shoulder, size = load_scene(f"{robot}_table"), (0.0, 0.0), 0.06
        scene = scene.remove_frame("table", subtree=True)
    sine = math.sin(-math.pi / 8)
    rotation = [0.0, 0.0, sine, math.sqrt(1.0 - sine * sine)]
    table_pose = Pose([*shoulder, table_top - thickness / 2], rotation) @ Pose([0.6, 0.0, 0.0])
    scene = scene.add_frame(
        "front_table",
        "world",
        pose=table_pose,
        shapes=[AttachedShape(Box([0.75, 0.75, thickness]))],
        classes=["surface"],
    )
    # Position on the table, or block below.
    supports: dict[str, str | tuple[float, float]]
    supports = {"a": (0.0, 0.0), "b": (0.0, -0.25), "c": "a", "d": "b"}
    for name, place in supports.items():
        if isinstance(place, str):
            support, position = place, [0.0, 0.0, size]
        else:
            dx, dy = rng.uniform(-0.02, 0.02, 2) if seed else (0.0, 0.0)
            support = "front_table"
            position = [place[0] + dx, place[1] + dy, (thickness + size) / 2]
        scene = scene.add_frame(
            name,
            support,
            pose=Pose(position),
            shapes=[AttachedShape(Box([size] * 3))],
            classes=["movable"],
        )
    return GeneratedProblem(scene, "(and (on d a) (on a b) (on b c))", 10, "blocks", robot)


def lying_problem(cylinders: int = 2, *, seed: int = 0) -> GeneratedProblem:
    """Return a problem of setting lying cylinders upright, or a single one in a cubby of 20 cm.

    Args:
        cylinders: number of cylinders, 1 to 6.
        seed: seed of the orientations.
    """
    rng, radius, length = np.random.default_rng(seed), 0.02, 0.12
    scene = table_scene()
    if cylinders == 1:
        scene = _add_compartment(scene, "cubby", (0.6, 0.3), (0.2, 0.2, 0.2))
    goal: list[str | ContinuousGoal] = ["(on c0 board)"] if cylinders == 1 else []
    for k in range(cylinders):
        angle, half = rng.uniform(0.0, math.pi), math.sqrt(0.5)
        rotation = Pose([0.0, 0.0, 0.0], _rotation_about_z(angle))
        rotation = rotation @ Pose([0.0, 0.0, 0.0], [half, 0.0, 0.0, half])
        position = [0.35 + 0.13 * (k % 3), -0.3 + 0.15 * (k // 3), radius]
        pose = Pose(position, rotation.quat_xyzw)
        scene = scene.add_frame(
            f"c{k}",
            "table",
            pose=scene.pose("table", relative_to="world").inverse() @ pose,
            shapes=[AttachedShape(Cylinder(radius, length))],
            classes=["movable"],
        )
        if cylinders > 1:
            goal_pose = Pose([0.35 + 0.1 * (k % 3), 0.15 + 0.12 * (k // 3), length / 2])
            goal.append(ObjectAt(f"c{k}", goal_pose, relative_to="world", metres=0.02))
    return GeneratedProblem(scene, goal, 2 * cylinders)


def tetromino_problem(*, seed: int = 0) -> GeneratedProblem:
    """Return a problem of moving a bar and two squares of four cubes each into a tray.

    The tray is 3 cm longer and wider than the pieces.

    Args:
        seed: has no effect on the problem.
    """
    del seed
    side, slack = 0.03, 0.03
    scene = table_scene()
    x, y = 0.5, 0.3
    depth, width = 3 * side + slack, 4 * side + slack
    scene = add_box(scene, "tray", (depth, width, 0.002), (x, y, 0.001), ("region",))
    rims = [
        ((depth / 2 + 0.005, 0.0), (0.01, width + 0.02)),
        ((-depth / 2 - 0.005, 0.0), (0.01, width + 0.02)),
        ((0.0, width / 2 + 0.005), (depth, 0.01)),
        ((0.0, -width / 2 - 0.005), (depth, 0.01)),
    ]
    for k, ((dx, dy), extent) in enumerate(rims):
        scene = add_box(scene, f"rim{k}", (*extent, 0.02), (x + dx, y + dy, 0.01))
    square = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    bar = [(float(k), 0.0) for k in range(4)]
    table_from_world = scene.pose("table", relative_to="world").inverse()
    for k, cells in enumerate((square, bar, square)):
        center = np.mean(cells, axis=0)
        shapes = [
            AttachedShape(Box([side] * 3), pose=Pose([*(side * (np.array(cell) - center)), 0.0]))
            for cell in cells
        ]
        pose = table_from_world @ Pose([0.32 + 0.17 * k, -0.25, side / 2])
        scene = scene.add_frame(f"p{k}", "table", pose=pose, shapes=shapes, classes=["movable"])
    return GeneratedProblem(scene, "(and (on p0 tray) (on p1 tray) (on p2 tray))", 6)


def mobile_problem(*, seed: int = 0) -> GeneratedProblem:
    """Return a problem of moving the blocks of three tables to a fourth with a mobile base.

    The arm reaches only one table from each pose of the base.

    Args:
        seed: seed of the poses.
    """
    rng = np.random.default_rng(seed)
    scene = load_scene("mobile_panda", "three_tables")
    for block in ("a", "b", "c"):
        x, y = rng.uniform(-0.22, 0.22, 2)
        scene = scene.set_pose(block, Pose([x, y, CUBE]))
    goal = "(and (on a south) (on b south) (on c south))"
    return GeneratedProblem(scene, goal, 12, "mobile_manipulation", ("panda", "panda_base"))


def scattered_problem(
    objects: int = 4, *, size: float = CUBE, gap: float = 0.03, seed: int = 0
) -> GeneratedProblem:
    """Return a problem of moving a third of the boxes and cylinders on a table to a mat.

    Args:
        objects: number of objects, at least 1. The first and every third after it have a goal.
        size: largest width of an object [m]. The smallest width is half of that.
        gap: smallest distance between objects [m].
        seed: seed of the poses and sizes.

    Raises:
        ConfigurationError: if the objects do not fit on the table.
    """
    rng = np.random.default_rng(seed)
    scene = add_box(table_scene(), "mat", (0.2, 0.3, 0.002), (0.5, 0.4, 0.001), ("region",))
    footprints: list[tuple[float, float, float]] = []  # center and width
    for k in range(objects):
        width, height = size * rng.uniform(0.5, 1.0), size * rng.uniform(0.8, 2.0)
        for _ in range(1000):
            x, y = rng.uniform(0.32, 0.62), rng.uniform(-0.45, 0.15)
            if all(
                math.hypot(x - a, y - b) > (width + c) * math.sqrt(0.5) + gap
                for a, b, c in footprints
            ):
                break
        else:
            raise ConfigurationError(
                f"{objects} objects of {size} m with gaps of {gap} m do not fit on the table"
            )
        footprints.append((x, y, width))
        name, angle = f"o{k}", rng.uniform(0.0, math.pi)
        scene = add_block(scene, name, x, y, size=(width, width, height), angle=angle)
        if rng.random() < 0.3:
            cylinder = Cylinder(width / 2, height)
            scene = scene.set_shapes(name, [AttachedShape(cylinder, color=(0.8, 0.5, 0.2, 1.0))])
    goal_indices = range(0, objects, 3)
    goal = f"(and {' '.join(f'(on o{k} mat)' for k in goal_indices)})"
    return GeneratedProblem(scene, goal, 2 * len(goal_indices))


GENERATORS: Mapping[str, Callable[..., GeneratedProblem]] = {
    "blocked": blocked_problem,
    "clutter": clutter_problem,
    "cook": cook_problem,
    "handover": handover_problem,
    "lying": lying_problem,
    "mobile": mobile_problem,
    "regrasp": regrasp_problem,
    "scattered": scattered_problem,
    "shelf": shelf_problem,
    "sussman4": sussman4_problem,
    "swaps": swaps_problem,
    "tetromino": tetromino_problem,
    "towers": towers_problem,
}
"""Generators by name."""
