"""Problems of PDDLStream's author for an arm on a base: objects to be carried between tables.

`pybullet-planning <https://github.com/caelan/pybullet-planning>`_ has them as
``problems/json/*.json`` (Garrett et al., FFRob and HBF). Of a file, boxes, cylinders and spheres
are read, meshes as their bounds, as its own reader does; tables, regions on them, and goals that
objects are held, on tables, in regions or at poses, and that the base is where it begins. The name
of a group (``green`` for ``green1`` and ``green2``) is for any object of it. The robot, a PR2 in
the file, is that of a built-in scene, whose base begins where the file has it.

Invariants: the files are data; nothing is run.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tmkit._support.json_files import read_json
from tmkit._support.limits import ReadingLimits
from tmkit.batch.problems import FixedProblem
from tmkit.formats import load_scene
from tmkit.formats.json.reading import JsonNode
from tmkit.graph import AttachedShape, Box, Cylinder, SceneGraph, Shape, Sphere
from tmkit.plans import ObjectAt, ObjectIn
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import Goal, PlanningProblem

_ROBOTS, _DOMAIN = ("panda", "panda_base"), "mobile_manipulation"
_NOT_READ = ("goal_cleaned", "goal_cooked", "goal_stackings", "floor_object_names")
_KINDS = ("box", "cylinder", "sphere", "trimesh")
_START = "dock"
"""Station at which the base begins."""
_FLOOR = -1e-3  # height of floors [m]: boxes that end below are floors for the base
_ON = 0.02  # distance between an object and its support's top [m]


def read_tamp_problem(path: str | Path) -> PlanningProblem:
    """Return the problem of a file for a mobile arm; washing, cooking and stacking are unsupported.

    Raises:
        FileFormatError: if the file has another structure, or a goal that is not read.
    """
    document, _ = read_json(Path(path), limit=ReadingLimits().text_bytes)
    top = JsonNode(document, str(path))
    task = top.get("task")
    for key in _NOT_READ:
        if task.table().get(key):
            raise task.get(key).error(
                "is not read: objects can be held, on tables, in regions and at poses"
            )
    tables = {node.name() for node in task.get("table_names").items()}
    movable = {node.name() for node in task.get("object_names").items()}
    scene = empty_scene()
    bodies = sorted(top.get("bodies").items(), key=lambda node: node.get("name").name() in movable)
    for node in bodies:
        scene = _with_body(scene, node, tables, movable)
    for node in task.get("regions").items():
        scene = _with_region(scene, node, tables)
    return carrying_problem(scene, _pose(_only(top.get("robots"))), [*_goals(task, scene, tables)])


def carrying_source(file: str, options: PlanningOptions | None = None) -> FixedProblem:
    """Return the problem of a file with its options, for batch files."""
    return FixedProblem(read_tamp_problem(file), options or PlanningOptions())


def empty_scene() -> SceneGraph:
    """Return the arm on its base, with nothing around."""
    return load_scene("mobile_panda")


def carrying_problem(scene: SceneGraph, base: Pose, goals: list[Goal]) -> PlanningProblem:
    """Return the problem of an arm on a base that begins at a pose in the plane."""
    x, y = base.translation[:2]
    scene = scene.add_frame(_START, "world", pose=Pose([x, y, 0.0]), classes=["station"])
    q = load_manipulator(_ROBOTS[0]).ready_configuration(scene)
    q = scene.configuration({"base_x": x, "base_y": y}, base=q)
    return PlanningProblem(scene, q, _DOMAIN, goals, _ROBOTS)


def _with_body(
    scene: SceneGraph, node: JsonNode, tables: set[str], movable: set[str]
) -> SceneGraph:
    name, pose = node.get("name").name(), _pose(node)
    link = _only(node.get("links"))
    shapes = [AttachedShape(_shape(entry, node), pose=_pose(entry)) for entry in link.items()]
    if not shapes:
        raise link.error("expected at least one shape")
    shapes = [
        entry for entry in shapes if entry.pose.translation[2] > _FLOOR or name in tables | movable
    ]
    if name not in tables | movable:
        return scene.add_frame(name, "world", pose=pose, shapes=shapes)
    middle = shapes[0].pose  # of the table's top, or of the object
    shapes = [AttachedShape(entry.shape, pose=middle.inverse() @ entry.pose) for entry in shapes]
    pose, parent = pose @ middle, "world"
    if name in movable:
        low = pose @ Pose([0.0, 0.0, shapes[0].shape.bounds[0][2]])
        parent = next((table for table in sorted(tables) if lies_on(scene, low, table)), "")
        if not parent:
            raise node.error(f"'{name}' is on none of the tables")
        pose = scene.pose(parent, relative_to="world").inverse() @ pose
    kind = "movable" if name in movable else "surface"
    return scene.add_frame(name, parent, pose=pose, shapes=shapes, classes=[kind])


def lies_on(scene: SceneGraph, low: Pose, table: str) -> bool:
    """Return whether a world point is on top of the first shape of a table, a centred box."""
    position = (scene.pose(table, relative_to="world").inverse() @ low).translation
    least, most = scene.shapes(table)[0].shape.bounds
    return bool(
        np.all(least[:2] <= position[:2])
        and np.all(position[:2] <= most[:2])
        and abs(position[2] - most[2]) < _ON
    )


def _with_region(scene: SceneGraph, node: JsonNode, tables: set[str]) -> SceneGraph:
    """Mark an area of a table, whose outline is the box around the points of the file."""
    points = np.array([point.numbers(2) for point in node.get("hull").items()])
    if len(points) < 3:
        raise node.get("hull").error(f"expected at least 3 points, received {len(points)}")
    low, high = points.min(axis=0), points.max(axis=0)
    pose = _pose(node) @ Pose([*(low + high) / 2.0, 0.0])
    table = next((table for table in sorted(tables) if lies_on(scene, pose, table)), None)
    if table is None:
        raise node.error("is on none of the tables")
    marked = AttachedShape(Box([*(high - low), 1e-3]), collision=False)
    local = scene.pose(table, relative_to="world").inverse() @ pose
    return scene.add_frame(node.get("name").name(), table, pose=local, shapes=[marked])


def _goals(task: JsonNode, scene: SceneGraph, tables: set[str]) -> list[Goal]:
    goals: list[Goal] = []
    movable = [node.name() for node in task.get("object_names").items()]
    for name in task.get("goal_regions").table():
        node = task.get("goal_regions").get(name)
        region = node.name()
        if region in tables:
            goals.append(_any_of(_members(name, movable, node), f"on {{}} {region}"))
        elif name in movable:
            goals.append(ObjectIn(name, region))
        else:
            raise node.error(f"'{name}' is not an object; for a region, a group is not read")
    if task.table().get("goal_holding"):
        holding = task.get("goal_holding")
        held = [holding] if isinstance(holding.value, str) else holding.items()
        goals += [_any_of(_members(each.name(), movable, each), "holding {}") for each in held]
    if task.table().get("goal_config"):
        if task.get("goal_config").value != "initial":
            raise task.get("goal_config").error(
                "is not read: the base can return to where it begins ('initial')"
            )
        goals.append(f"(at {_START})")
    for name in task.get("goal_poses").table():
        wanted = task.get("goal_poses").get(name)
        pose = scene.pose(name, relative_to="world")
        # w, x, y, z, and where the origin of the file's body is, which stands as it did
        if wanted.value != "initial":
            w, x, y, z, *place = wanted.numbers(7)
            pose = Pose([place[0], place[1], pose.translation[2]], [x, y, z, w])
        goals.append(ObjectAt(name, pose, relative_to="world"))
    if not goals:
        raise task.error("has no goal that is read")
    return goals


def _members(name: str, movable: list[str], node: JsonNode) -> list[str]:
    """Return the object of a name, or the objects of a group."""
    members = [name] if name in movable else [each for each in movable if each.startswith(name)]
    if not members:
        raise node.error(
            f"'{name}' is not an object and not the beginning of one: {', '.join(movable)}"
        )
    return members


def _any_of(members: list[str], fact: str) -> str:
    """Return the goal that a fact holds for any of some objects."""
    facts = [f"({fact.format(member)})" for member in members]
    return facts[0] if len(facts) == 1 else f"(or {' '.join(facts)})"


def _shape(node: JsonNode, body: JsonNode) -> Shape:
    kind = node.get("type").one_of(_KINDS)
    if kind == "trimesh":
        return Box([2.0 * size for size in body.get("aabb").get("extents").numbers(3)])
    if kind == "box":
        return Box([2.0 * size for size in node.get("extents").numbers(3)])
    radius = node.get("radius").number()
    return (
        Sphere(radius)
        if kind == "sphere"
        else Cylinder(radius=radius, length=node.get("height").number())
    )


def _only(node: JsonNode) -> JsonNode:
    entries = [*node.items()]
    if len(entries) != 1:
        raise node.error(f"expected one, received {len(entries)}")
    return entries[0]


def _pose(node: JsonNode) -> Pose:
    place, turn = node.get("point"), node.get("quat")
    return Pose(
        [place.get(axis).number() for axis in "xyz"], [turn.get(axis).number() for axis in "xyzw"]
    )
