"""Random problems of one kind each: the seed varies where things stand, the parameters how hard they are.

Each has a goal that can be reached; where the fewest actions are known, the problem says how many.

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
"""Metres: side of most blocks."""


@dataclass(frozen=True, eq=False)
class GeneratedProblem:
    """A scene with a goal.

    Attributes:
        scene: the scene.
        goal: the goal: PDDL, poses, regions.
        optimum: actions of the shortest plan; None where it is unknown.
        domain: the domain.
        robot: robots that plan.
    """

    scene: SceneGraph
    goal: str | Sequence[str | ContinuousGoal]
    optimum: int | None = None
    domain: str = "kitchen"
    robot: str | tuple[str, ...] = "panda"


def table_scene() -> SceneGraph:
    """Return a Panda at an empty table of 0.8 m x 1.2 m, on which objects may stand."""
    return load_scene("panda_table").set_classes("table", ("surface",))


def add_box(
    scene: SceneGraph,
    name: str,
    size: Sequence[float],
    at: Sequence[float],
    classes: Sequence[str] = (),
) -> SceneGraph:
    """Add a box that stands still, its middle at a point of the world."""
    return scene.add_frame(
        name,
        "world",
        pose=Pose(list(at)),
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
    turn: float = 0.0,
    support: str = "table",
) -> SceneGraph:
    """Put a block on a support, its middle over a point of the world."""
    top = (
        scene.pose(support, relative_to="world").translation[2]
        + scene.shapes(support)[0].shape.bounds[1][2]
    )
    pose = Pose([x, y, top + size[2] / 2], [0.0, 0.0, math.sin(turn / 2), math.cos(turn / 2)])
    local = scene.pose(support, relative_to="world").inverse() @ pose
    return scene.add_frame(
        name,
        support,
        pose=local,
        shapes=[AttachedShape(Box(list(size)), color=(0.3, 0.5, 0.8, 1.0))],
        classes=["movable"],
    )


def regrasp(*, seed: int = 0) -> GeneratedProblem:
    """A flat box in a narrow well, which only a hand from above reaches, wanted under a roof, reached from the side.

    Args:
        seed: of where things stand.
    """
    rng = np.random.default_rng(seed)
    x, y = 0.5 + 0.04 * rng.uniform(-1, 1), -0.3 + 0.04 * rng.uniform(-1, 1)
    scene = table_scene()
    tall = 0.12
    for k, (dx, dy, wide, deep) in enumerate(
        [
            (0.075, 0.0, 0.02, 0.2),
            (-0.075, 0.0, 0.02, 0.2),
            (0.0, 0.125, 0.17, 0.02),
            (0.0, -0.125, 0.17, 0.02),
        ]
    ):
        scene = add_box(scene, f"well{k}", (wide, deep, tall), (x + dx, y + dy, tall / 2))
    size = (0.04, 0.06, 0.1)
    scene = add_block(scene, "box", x, y, size=size)
    gx, gy = 0.55, 0.3
    for k, side in enumerate((-1, 1)):
        scene = add_box(scene, f"post{k}", (0.2, 0.02, 0.2), (gx + 0.05, gy + side * 0.13, 0.1))
    scene = add_box(scene, "roof", (0.2, 0.28, 0.02), (gx + 0.05, gy, 0.21))
    goal = ObjectAt(
        "box", Pose([gx, gy, size[2] / 2]), relative_to="world", metres=0.01, radians=0.1
    )
    return GeneratedProblem(scene, [goal], 4)


def blocked(*, gap: float = 0.01, seed: int = 0) -> GeneratedProblem:
    """A block with a neighbour on each side, wanted on a mat that has room for one.

    Args:
        gap: metres between them.
        seed: of where things stand.
    """
    rng = np.random.default_rng(seed)
    x, y = 0.5 + 0.05 * rng.uniform(-1, 1), 0.05 * rng.uniform(-1, 1)
    scene = add_box(table_scene(), "mat", (0.09, 0.09, 0.002), (0.5, 0.35, 0.001), ("region",))
    scene = add_block(scene, "target", x, y)
    for k, (dx, dy) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
        scene = add_block(scene, f"n{k}", x + dx * (CUBE + gap), y + dy * (CUBE + gap))
    return GeneratedProblem(scene, "(on target mat)", 6)


def swaps(blocks: int = 4, *, seed: int = 0) -> GeneratedProblem:
    """Blocks on one table, each wanted at a pose: the first two swap places, the others move to free ones.

    Args:
        blocks: how many, 2 to 16.
        seed: of where things stand.
    """
    rng = np.random.default_rng(seed)
    cells = [(0.35 + 0.1 * i, -0.35 + 0.1 * j) for i in range(4) for j in range(8)]
    order = [cells[k] for k in rng.permutation(len(cells)).tolist()]
    starts, goals = order[:blocks], [order[1], order[0], *order[blocks : 2 * blocks - 2]]
    scene = table_scene()
    for k, (x, y) in enumerate(starts):
        scene = add_block(scene, f"b{k}", x, y)
    wanted = [
        ObjectAt(f"b{k}", Pose([x, y, CUBE / 2]), relative_to="world", metres=0.01)
        for k, (x, y) in enumerate(goals)
    ]
    return GeneratedProblem(scene, wanted, 2 * blocks + 2)


def shelf(blocks: int = 3, *, in_front: bool = False, seed: int = 0) -> GeneratedProblem:
    """Blocks of 12 cm wanted in a shelf 25 cm high, the first at its back.

    Args:
        blocks: how many, 1 to 6.
        in_front: whether another one stands before the place of the first.
        seed: of where things stand.
    """
    rng = np.random.default_rng(seed)
    scene = table_scene()
    x, y, wide, deep, high = 0.62, 0.3, 0.42, 0.3, 0.25
    scene = add_box(scene, "board", (deep, wide, 0.02), (x, y, 0.01), ("region",))
    scene = add_box(
        scene, "shelf_back", (0.02, wide, high), (x + deep / 2 - 0.01, y, 0.02 + high / 2)
    )
    for k, side in enumerate((-1, 1)):
        scene = add_box(
            scene,
            f"shelf_side{k}",
            (deep, 0.02, high),
            (x, y + side * (wide / 2 + 0.01), 0.02 + high / 2),
        )
    scene = add_box(scene, "shelf_top", (deep, wide + 0.04, 0.02), (x, y, 0.03 + high))
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


def clutter(side: int = 3, *, gap: float = 0.03, seed: int = 0) -> GeneratedProblem:
    """A square of blocks with gaps between them; the middle one is wanted on a mat.

    Args:
        side: blocks along a side.
        gap: metres between them.
        seed: of where things stand.
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


def handover(objects: int = 2, wall: float = 0.2, *, seed: int = 0) -> GeneratedProblem:
    """Blocks on the right tray of a Baxter, wanted on the left one, behind a wall between the arms.

    Args:
        objects: how many, 1 to 4.
        wall: its height in metres.
        seed: changes nothing here but the search.
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


def towers(blocks: int = 5, *, seed: int = 0) -> GeneratedProblem:
    """Blocks on the table, wanted in towers of five.

    Args:
        blocks: how many, 2 to 25.
        seed: of which stands where.
    """
    scene, size = load_scene("panda_table"), 0.04
    cells = [(0.3 + 0.12 * i, -0.48 + 0.12 * j) for i in range(4) for j in range(9)]
    near = sorted((p for p in cells if 0.33 < math.hypot(*p) < 0.72), key=lambda p: math.hypot(*p))
    for k, place in enumerate(np.random.default_rng(seed).permutation(blocks).tolist()):
        scene = add_block(scene, f"b{k}", *near[place], size=(size, size, size))
    goal = f"(and {' '.join(f'(on b{k} b{k + 1})' for k in range(blocks - 1) if k % 5 != 4)})"
    return GeneratedProblem(scene, goal, 8 * blocks // 5, "blocks")


def cook(blocks: int = 3, *, seed: int = 0) -> GeneratedProblem:
    """Blocks on the floor around an iiwa with suction, each to be washed on the sink and cooked on the stove.

    Args:
        blocks: how many, 1 to 20.
        seed: of where things stand.
    """
    rng, size = np.random.default_rng(seed), (0.05, 0.05, 0.1)
    scene = load_scene("iiwa_kitchen")
    for region in ("stove", "sink"):  # wide enough for all of them
        low, high = scene.shapes(region)[0].shape.bounds
        scene = scene.set_shapes(
            region, [AttachedShape(Box([0.36, 0.36, float(high[2] - low[2])]))]
        )
    for k in range(blocks):
        side, rest = 1 if k % 2 else -1, k // 2
        angle = side * math.radians(90.0 + 14.0 * (rest % 5 - 2))
        away = 0.48 + 0.1 * (rest // 5) + 0.01 * rng.uniform(-1, 1)
        scene = add_block(
            scene,
            f"b{k}",
            away * math.cos(angle),
            away * math.sin(angle),
            size=size,
            support="floor",
        )
    goal = f"(and {' '.join(f'(cooked b{k})' for k in range(blocks))} (athome))"
    return GeneratedProblem(scene, goal, 6 * blocks + 1, "kitchen", "iiwa_flange")


def sussman4(robot: str = "panda", *, seed: int = 0) -> GeneratedProblem:
    """Four blocks on a table turned by 45 degrees before the right shoulder of a Baxter, wanted in one tower.

    Of two towers of two, as in the tutorial of the original TMKit. For another arm, ``panda`` or
    ``iiwa``, the table is as far from its shoulder, and the blocks are as large as its hand holds.
    """
    rng, size, tops, thick = np.random.default_rng(seed), 0.1, 0.055, 0.01
    if robot == "baxter":
        scene, shoulder = load_scene("baxter"), (0.1, -0.3)
        scene = add_box(scene, "curtain", (0.01, 5.0, 5.0), (-0.95, 0.0, 0.0))
        scene = add_box(scene, "bookshelf", (1.0, 0.01, 5.0), (0.0, -1.15, 0.0))
    else:
        scene, shoulder, size = load_scene(f"{robot}_table"), (0.0, 0.0), 0.06
        scene = scene.remove_frame("table", subtree=True)
    half = math.sin(-math.pi / 8)
    turn = [0.0, 0.0, half, math.sqrt(1.0 - half * half)]
    front = Pose([*shoulder, tops - thick / 2], turn) @ Pose([0.6, 0.0, 0.0])
    scene = scene.add_frame(
        "front_table",
        "world",
        pose=front,
        shapes=[AttachedShape(Box([0.75, 0.75, thick]))],
        classes=["surface"],
    )
    for name, below in (("a", (0.0, 0.0)), ("b", (0.0, -0.25)), ("c", "a"), ("d", "b")):
        if isinstance(below, str):
            support, at = below, [0.0, 0.0, size]
        else:
            dx, dy = rng.uniform(-0.02, 0.02, 2) if seed else (0.0, 0.0)
            support, at = "front_table", [below[0] + dx, below[1] + dy, (thick + size) / 2]
        scene = scene.add_frame(
            name,
            support,
            pose=Pose(at),
            shapes=[AttachedShape(Box([size] * 3))],
            classes=["movable"],
        )
    return GeneratedProblem(scene, "(and (on d a) (on a b) (on b c))", 10, "blocks", robot)


def lying(cylinders: int = 2, *, seed: int = 0) -> GeneratedProblem:
    """Cylinders that lie on the table, wanted upright elsewhere; a single one in a cubby of 20 cm.

    Args:
        cylinders: how many, 1 to 6.
        seed: of how they are turned.
    """
    rng, radius, length = np.random.default_rng(seed), 0.02, 0.12
    scene = table_scene()
    if cylinders == 1:
        x, y, wide = 0.6, 0.3, 0.2
        scene = add_box(scene, "board", (wide, wide, 0.02), (x, y, 0.01), ("region",))
        scene = add_box(
            scene, "cubby_back", (0.02, wide, wide), (x + wide / 2 - 0.01, y, 0.02 + wide / 2)
        )
        for k, side in enumerate((-1, 1)):
            middle = (x, y + side * (wide / 2 + 0.01), 0.02 + wide / 2)
            scene = add_box(scene, f"cubby_side{k}", (wide, 0.02, wide), middle)
        scene = add_box(scene, "cubby_top", (wide, wide + 0.04, 0.02), (x, y, 0.03 + wide))
    goal: list[str | ContinuousGoal] = ["(on c0 board)"] if cylinders == 1 else []
    for k in range(cylinders):
        turn, half = rng.uniform(0.0, math.pi), math.sqrt(0.5)
        lies = Pose([0.0, 0.0, 0.0], [0.0, 0.0, math.sin(turn / 2), math.cos(turn / 2)])
        lies = lies @ Pose([0.0, 0.0, 0.0], [half, 0.0, 0.0, half])
        at = Pose([0.35 + 0.13 * (k % 3), -0.3 + 0.15 * (k // 3), radius], lies.quat_xyzw)
        scene = scene.add_frame(
            f"c{k}",
            "table",
            pose=scene.pose("table", relative_to="world").inverse() @ at,
            shapes=[AttachedShape(Cylinder(radius, length))],
            classes=["movable"],
        )
        if cylinders > 1:
            place = Pose([0.35 + 0.1 * (k % 3), 0.15 + 0.12 * (k // 3), length / 2])
            goal.append(ObjectAt(f"c{k}", place, relative_to="world", metres=0.02))
    return GeneratedProblem(scene, goal, 2 * cylinders)


def tetromino(*, seed: int = 0) -> GeneratedProblem:
    """A bar and two squares of four cubes each, wanted in a tray with 3 cm more than they need.

    Args:
        seed: changes nothing here but the search.
    """
    del seed
    side, slack = 0.03, 0.03
    scene = table_scene()
    deep, wide, x, y = 3 * side + slack, 4 * side + slack, 0.5, 0.3
    scene = add_box(scene, "tray", (deep, wide, 0.002), (x, y, 0.001), ("region",))
    for k, (dx, dy, along, across) in enumerate(
        [
            (deep / 2 + 0.005, 0.0, 0.01, wide + 0.02),
            (-deep / 2 - 0.005, 0.0, 0.01, wide + 0.02),
            (0.0, wide / 2 + 0.005, deep, 0.01),
            (0.0, -wide / 2 - 0.005, deep, 0.01),
        ]
    ):
        scene = add_box(scene, f"rim{k}", (along, across, 0.02), (x + dx, y + dy, 0.01))
    square, bar = (
        [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)],
        [(float(k), 0.0) for k in range(4)],
    )
    for k, cells in enumerate((square, bar, square)):
        middle = np.mean(cells, axis=0)
        shapes = [
            AttachedShape(Box([side] * 3), pose=Pose([*(side * (np.array(cell) - middle)), 0.0]))
            for cell in cells
        ]
        at = scene.pose("table", relative_to="world").inverse() @ Pose(
            [0.32 + 0.17 * k, -0.25, side / 2]
        )
        scene = scene.add_frame(f"p{k}", "table", pose=at, shapes=shapes, classes=["movable"])
    return GeneratedProblem(scene, "(and (on p0 tray) (on p1 tray) (on p2 tray))", 6)


def mobile(*, seed: int = 0) -> GeneratedProblem:
    """Three blocks on three tables, wanted on a fourth: the base of the arm drives, no place is near to two tables.

    Args:
        seed: of where things stand.
    """
    rng = np.random.default_rng(seed)
    scene = load_scene("mobile_panda", "three_tables")
    for block in ("a", "b", "c"):
        x, y = rng.uniform(-0.22, 0.22, 2)
        scene = scene.set_pose(block, Pose([x, y, CUBE]))
    goal = "(and (on a south) (on b south) (on c south))"
    return GeneratedProblem(scene, goal, 12, "mobile_manipulation", ("panda", "panda_base"))


def scattered(
    objects: int = 4, *, size: float = CUBE, gap: float = 0.03, seed: int = 0
) -> GeneratedProblem:
    """Boxes and cylinders of different sizes anywhere on a table, some of them wanted on a mat.

    Args:
        objects: how many there are, at least 1; every third, and the first, is wanted on the mat.
        size: metres: of the largest; others are down to half as wide.
        gap: metres that are at least between them.
        seed: of the places.
    """
    rng = np.random.default_rng(seed)
    scene = add_box(table_scene(), "mat", (0.2, 0.3, 0.002), (0.5, 0.4, 0.001), ("region",))
    placed: list[tuple[float, float, float]] = []
    for k in range(objects):
        wide, tall = size * rng.uniform(0.5, 1.0), size * rng.uniform(0.8, 2.0)
        for _ in range(1000):
            x, y = rng.uniform(0.32, 0.62), rng.uniform(-0.45, 0.15)
            if all(
                math.hypot(x - a, y - b) > (wide + other) * math.sqrt(0.5) + gap
                for a, b, other in placed
            ):
                break
        else:
            raise ConfigurationError(
                f"{objects} objects of {size} m with gaps of {gap} m do not fit on the table"
            )
        placed.append((x, y, wide))
        name, turn = f"o{k}", rng.uniform(0.0, math.pi)
        scene = add_block(scene, name, x, y, size=(wide, wide, tall), turn=turn)
        if rng.random() < 0.3:
            scene = scene.set_shapes(
                name, [AttachedShape(Cylinder(wide / 2, tall), color=(0.8, 0.5, 0.2, 1.0))]
            )
    wanted = range(0, objects, 3)
    goal = f"(and {' '.join(f'(on o{k} mat)' for k in wanted)})"
    return GeneratedProblem(scene, goal, 2 * len(wanted))


GENERATORS: Mapping[str, Callable[..., GeneratedProblem]] = {
    made.__name__: made
    for made in (
        blocked,
        clutter,
        cook,
        handover,
        lying,
        mobile,
        regrasp,
        scattered,
        shelf,
        sussman4,
        swaps,
        tetromino,
        towers,
    )
}
"""The generators by name."""
