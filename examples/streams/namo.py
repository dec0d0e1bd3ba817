"""Navigation among movable obstacles: a base clears the boxes that block its way.

A base with a lift and a suction cup in front has to reach a region behind walls. Boxes block the
passages. A stream draws configurations in the region, and ``drive`` searches a path to one. A path
that fails names the boxes in its way, so the planner learns that ``drive`` needs another of their
places. ``clear`` lifts a box with a grasp from the side and puts it out of the way.

In the example ``namo`` of PDDLStream the trajectory is a value of a stream ahead of all boxes, and
derived predicates list the boxes that it crosses. Here paths are searched in the current version of
the scene, and the failure of a search has the boxes in its way.
"""

import argparse
from collections.abc import Iterator, Mapping
from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.manipulation import (
    ApplyEffects,
    Candidate,
    Grasp,
    MoveTo,
    Pick,
    Place,
    Placement,
    Sequence,
)
from tmkit.pddl import Not, State, make_domain, make_predicate
from tmkit.plans import ClassEffect
from tmkit.spatial import Pose
from tmkit.tamp import PlanningOptions, PlanResult, PythonDomain
from tmkit.tamp.streams import SceneView, StreamSemantics, grasps, stream, stream_action

BOX_SIZE = (0.4, 0.4, 0.3)
"""Size of a box [m]."""

BOX_MASS = 1.5
"""Mass of a box [kg]; more of it would tear the box off the cup."""

FIELD_SIZE = (5.0, 3.0)
"""Size of the field along x and y [m]."""

GOAL_SIZE = 0.8
"""Edge length of the goal region [m]."""

DOOR_WIDTH = 0.8
"""Width of a passage [m]."""

FAMILIES = ("door", "doors", "rooms", "corridor")
"""Families of random maps."""

N_PLACES = 40
"""Number of places out of the way that are drawn for a box."""

DOOR_DISTANCE = 0.8
"""Smallest distance of these places from a door [m]."""

GOAL_DISTANCE = 1.3
"""Smallest distance of these places from the goal, in which the base must not end [m]."""

BASE = tk.Manipulator(
    "base",
    base="field",
    tip="cup",
    tool="cup_rim",
    joints=("base_x", "base_y", "base_yaw", "lift"),
    ready={"base_x": 0.0, "base_y": 0.0, "base_yaw": 0.0, "lift": 0.0},
    gripper_kind="suction",
    grip_force=200.0,
    payload=20.0,
    contact_links=("cup",),
)

inside = make_predicate("inside", "?r - region")
blocking = make_predicate("blocking", "?b - box")


@stream("?r - region", gives="?q - configuration", certifies="(stop ?r ?q)")
def stops(view: SceneView, r: str) -> Iterator[NDArray[np.float64]]:
    """Yield configurations of the base in a region, at random."""
    x, y, _ = view.pose(r).translation
    for _ in range(4):
        dx, dy = view.rng.uniform(-GOAL_SIZE / 4, GOAL_SIZE / 4, 2)
        yield np.array([x + dx, y + dy, view.rng.uniform(-pi, pi), 0.0])


@stream("?b - box ?g - grasp", certifies="(level ?b ?g)")
def from_the_side(view: SceneView, b: str, g: Grasp) -> bool:
    """Accept grasps with a level tool: the cup is in front of the base, with its x axis up."""
    rotation = (view.pose(b) @ g.object_from_tool).rotation
    return bool(rotation[2, 0] > 0.99)


@stream("?b - box", gives="?p - placement", certifies="(aside ?b ?p)")
def places_aside(view: SceneView, b: str) -> Iterator[Placement]:
    """Yield places on the floor that are away from all doors and from the goal."""
    distances = dict.fromkeys(view.frames_of_class("door"), DOOR_DISTANCE)
    distances["goal"] = GOAL_DISTANCE
    centres = {name: view.pose(name).translation[:2] for name in distances}
    limits = np.array(FIELD_SIZE) / 2 - BOX_SIZE[0]
    height = view.local_pose(b).translation[2]
    for _ in range(N_PLACES):
        point = view.rng.uniform(-limits, limits)
        gaps = {name: np.linalg.norm(point - centre) for name, centre in centres.items()}
        if all(gaps[name] > distance for name, distance in distances.items()):
            turn = view.rng.uniform(-pi, pi)
            pose = Pose.from_rpy([*point.tolist(), height], [0.0, 0.0, turn])
            yield Placement("floor", pose, f"at ({point[0]:.1f}, {point[1]:.1f})")


@stream_action("?r - region", needs=[Not(inside("?r"))], adds=[inside("?r")], given="(stop ?r ?q)")
def drive(view: SceneView, r: str, q: NDArray[np.float64]) -> Candidate:
    """Drive to a region."""
    del view
    return MoveTo(q, r)


@stream_action(
    "?b - box",
    needs=[blocking("?b"), Not(inside("goal"))],
    deletes=[blocking("?b")],
    given="(grasp ?b ?g) (level ?b ?g) (aside ?b ?p)",
)
def clear(view: SceneView, b: str, g: Grasp, p: Placement) -> Candidate:
    """Carry a box out of the way."""
    del view
    moved = ApplyEffects((ClassEffect(b, added=("moved",)),))
    return Sequence((Pick(b, g), Place.at(b, p), moved), object=b)


class Namo(StreamSemantics):
    """A base among boxes; a box blocks until it is moved."""

    domain = make_domain(
        "namo",
        types="region box",
        constants="goal - region",
        predicates=[inside, blocking],
        actions=[drive.action, clear.action],
    )
    streams = (stops, grasps, from_the_side, places_aside)
    stream_actions = (drive, clear)

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the boxes."""
        return dict.fromkeys(scene.frames_of_class("movable"), "box")

    def state(
        self, scene: tk.SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]
    ) -> State:
        """Return whether the base is in the goal, and the boxes that are where they were."""
        offset = scene.pose("base_yaw", relative_to="goal", q=q).translation[:2]
        facts = [blocking.fact(box) for box in objects if "moved" not in scene.classes(box)]
        is_inside = bool(np.all(np.abs(offset) < GOAL_SIZE / 2))
        return State([*facts, *([inside.fact("goal")] if is_inside else [])])


DOMAIN = PythonDomain(Namo.domain, Namo)


def add_wall(scene: tk.SceneGraph, x: float, doors: list[float]) -> tk.SceneGraph:
    """Return a scene with a wall across the field, and a passage at each of some y [m]."""
    half, depth = FIELD_SIZE[1] / 2, 0.1
    edges = [-half, *(y + side * DOOR_WIDTH / 2 for y in doors for side in (-1, 1)), half]
    for number, (low, high) in enumerate(zip(edges[::2], edges[1::2], strict=True)):
        wall = tk.AttachedShape(tk.Box([depth, high - low, 0.5]), color=(0.6, 0.6, 0.6, 1.0))
        pose = Pose([x, (low + high) / 2, 0.25])
        scene = scene.add_frame(f"wall{x:.1f}_{number}", "field", pose=pose, shapes=[wall])
    for y in doors:
        name, pose = f"door{x:.1f}_{y:.2f}", Pose([x, y, 0.0])
        scene = scene.add_frame(name, "field", pose=pose, classes=["door"])
    return scene


def add_box(scene: tk.SceneGraph, name: str, x: float, y: float, turn: float) -> tk.SceneGraph:
    """Return a scene with a box on the floor."""
    box = tk.AttachedShape(tk.Box(BOX_SIZE), color=(0.75, 0.55, 0.3, 1.0))
    pose = Pose.from_rpy([x, y, BOX_SIZE[2] / 2], [0.0, 0.0, turn])
    scene = scene.add_frame(
        name, "floor", pose=pose, joint=tk.Free(), classes=["movable"], shapes=[box]
    )
    return scene.set_inertia(name, tk.Inertia(BOX_MASS))


def base_scene() -> tk.SceneGraph:
    """Return the base at the left of an empty field, and the goal at the right."""
    half_x, half_y = FIELD_SIZE[0] / 2, FIELD_SIZE[1] / 2
    floor = tk.AttachedShape(tk.Box([*FIELD_SIZE, 0.1]), Pose([0.0, 0.0, -0.05]))
    scene = tk.SceneGraph().add_frame("field", "world")
    scene = scene.add_frame("floor", "field", classes=["surface"], shapes=[floor])
    x = tk.Prismatic([1, 0, 0], lower=-half_x, upper=half_x, velocity=0.5)
    y = tk.Prismatic([0, 1, 0], lower=-half_y, upper=half_y, velocity=0.5)
    yaw = tk.Revolute([0, 0, 1], lower=-2 * pi, upper=2 * pi, velocity=1.0)
    lift = tk.Prismatic([0, 0, 1], lower=0.0, upper=0.3, velocity=0.2)
    body = tk.AttachedShape(tk.Cylinder(0.2, 0.3), Pose([0.0, 0.0, 0.17]))
    cup = tk.AttachedShape(tk.Cylinder(0.03, 0.08))
    scene = scene.add_frame("base_x", "field", joint=x).add_frame("base_y", "base_x", joint=y)
    scene = scene.add_frame("base_yaw", "base_y", joint=yaw, shapes=[body])
    scene = scene.add_frame("lift", "base_yaw", joint=lift)
    forwards = Pose.from_rotation_matrix(
        [0.25, 0.0, 0.15], np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])
    )
    scene = scene.add_frame("cup", "lift", pose=forwards, shapes=[cup])
    scene = scene.add_frame("cup_rim", "cup", pose=Pose([0.0, 0.0, 0.04]))
    mark = tk.AttachedShape(tk.Box([GOAL_SIZE, GOAL_SIZE, 0.002]), collision=False)
    pose = Pose([half_x - 0.6, 0.0, 0.001])
    return scene.add_frame("goal", "field", pose=pose, shapes=[mark])


def random_map(family: str, seed: int) -> tk.SceneGraph:
    """Return a random map of a family.

    Args:
        family: ``door`` is a wall with a blocked passage, ``doors`` one with two, ``rooms`` are two
            walls with a blocked passage each, and ``corridor`` has two boxes in a row.
        seed: seed of the map.
    """
    rng = np.random.default_rng(seed)
    sides = rng.permutation([-1.0, 1.0])
    near, far = (float(side * rng.uniform(0.5, 0.8)) for side in sides)
    walls = {
        "door": {0.2: [near]},
        "doors": {0.2: sorted([near, far])},
        "rooms": {-0.3: [near], 1.1: [far]},
        "corridor": {-0.3: [near], 0.6: [near]},
    }
    scene, number = base_scene(), 0
    for x, doors in walls[family].items():
        scene = add_wall(scene, x, doors)
        for y in doors:
            offset, turn = rng.uniform(-0.05, 0.05, 2), rng.uniform(-0.3, 0.3)
            scene = add_box(scene, f"box{number}", x + offset[0], y + offset[1], turn)
            number += 1
    if family == "corridor":
        for side in (-1, 1):
            wall = tk.AttachedShape(tk.Box([0.8, 0.1, 0.5]), color=(0.6, 0.6, 0.6, 1.0))
            pose = Pose([0.15, near + side * (DOOR_WIDTH / 2 + 0.05), 0.25])
            scene = scene.add_frame(f"side{side}", "field", pose=pose, shapes=[wall])
    return scene


def solve(scene: tk.SceneGraph, *, seed: int) -> PlanResult:
    """Return the result of planning to reach the goal from the left of the field."""
    start = scene.configuration({"base_x": -FIELD_SIZE[0] / 2 + 0.6})
    options = PlanningOptions(seed=seed, max_iterations=4, suggest=False)
    return tk.plan(scene, start, domain=DOMAIN, goal="(inside goal)", robot=BASE, options=options)


def main() -> None:
    """Plan on a map of each family, and validate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of maps and of planning")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder of the results"
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        result = solve(random_map(family, arguments.seed), seed=arguments.seed)
        print(family)
        assert result.plan is not None, result.explanation
        for step in result.plan.steps:
            print(" ", step.action, step.choice)
        for use in result.diagnosis.streams:
            print(" ", use)
        print(" ", tk.validate_plan(result.plan, domain=DOMAIN))
        print("  see", tk.save_html(result.plan, arguments.out / f"namo_{family}.html"))


if __name__ == "__main__":
    main()
