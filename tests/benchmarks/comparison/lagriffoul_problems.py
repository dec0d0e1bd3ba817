"""Problems of Lagriffoul et al. (IEEE RA-L 3(4), 2018): sticks carried between tables.

A problem is an XML file with poses, surfaces and the robot, meshes in a folder beside it, and a
PDDL problem whose goal counts. Problem 3, sorting in clutter, and problem 4, which is not
monotonic, are read; of the robot only where it begins. Meshes are taken as their bounds, as in
:mod:`benchmarks.comparison.tamp_problems`.

Invariants: the files are data; nothing is run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.comparison.tamp_problems import carrying_problem, empty_scene, lies_on
from numpy.typing import NDArray

from tmkit._support.xml import XmlElement, read_xml
from tmkit.batch.problems import FixedProblem
from tmkit.errors import FileFormatError, TaskError, TmkitError
from tmkit.formats.mesh.meshes import read_mesh
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.pddl.parsing.parser import read_pddl
from tmkit.pddl.parsing.source import Group, Source, Token
from tmkit.plans import ObjectAt
from tmkit.spatial import Pose
from tmkit.spatial.elementary import norm
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import Goal, PlanningProblem

_TOP = 0.002  # thickness of a surface [m]: tables of the files end so far below their surfaces
_WALL = 0.025  # thickness of the walls around the robot [m]

_TABLES = {"table1": (2.2, 0.0), "table2": (-2.2, 0.0), "table3": (0.0, 2.2), "table4": (0.0, -2.2)}
"""Positions of the tables of problem 3 [m]."""

_TABLE_SIZE = (1.5, 0.7)
"""Length and depth of a table [m]."""

_TABLE_HEIGHT = 0.766
"""Height of a table [m]."""

_STICK_SIZE = (0.04, 0.04, 0.2)
"""Size of a stick [m]."""

_SPACING = 0.09
"""Smallest distance between the axes of random sticks [m]."""

Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


class Objects(NamedTuple):
    """Objects and robot of a file.

    Attributes:
        nodes: element of each object, by its name.
        movable: names of the movable objects.
        base: pose of the base of the robot relative to the world.
    """

    nodes: dict[str, XmlElement]
    movable: set[str]
    base: Pose


def read_lagriffoul_problem(path: str | Path, goal: str | Path | None = None) -> PlanningProblem:
    """Return the problem of a file, for an arm on a mobile base.

    Args:
        path: the XML file.
        goal: the PDDL problem; by default the one in the same folder or the one above that has the
            same objects.

    Raises:
        FileFormatError: if a file is wrong, there is not one goal, or it has unsupported parts:
            objects on others.
        MeshError: if a mesh is missing or wrong.
    """
    file = Path(path)
    objects, movable, base = read_objects(file)
    source, atoms = pddl_goals(file, goal, [*objects], movable)
    scene = empty_scene()
    tables: list[str] = []
    points: dict[str, Pose] = {}
    for name in sorted(objects, key=lambda name: name in movable):
        node, pose = objects[name], pose_of(objects[name].required_child("pose"))
        bounds = _bounds(node, file)
        surface = None if name in movable else surface_bounds(node)
        if surface is not None:
            if is_point(surface):
                points[name] = pose
                continue
            scene = add_surface(scene, name, pose, surface, bounds)
            tables.append(name)
        elif name in movable:
            table = _table_below(scene, pose, tables)
            if table is None:
                raise node.place.error(f"'{name}' stands on no surface")
            local = scene.pose(table, relative_to="world").inverse() @ pose
            scene = scene.add_frame(
                name, table, pose=local, shapes=[bounding_box(bounds)], classes=["movable"]
            )
        else:
            shapes = [*_walls(bounds)] if _surrounds(bounds, pose, base) else [bounding_box(bounds)]
            scene = scene.add_frame(name, "world", pose=pose, shapes=shapes)
    goals: list[Goal] = [_goal(source, atom, [*objects], scene, tables, points) for atom in atoms]
    return carrying_problem(scene, base, goals)


def read_objects(file: Path) -> Objects:
    """Return the objects and the robot of a file.

    Raises:
        FileFormatError: if the file is wrong, or two objects have the same name.
    """
    top = read_xml(file, root="problem")
    nodes: dict[str, XmlElement] = {}
    movable: set[str] = set()
    for node in top.required_child("objects").children("obj"):
        name, moves = text_of(node, "name"), text_of(node, "moveable")
        if not name or name in nodes:
            reason = "a name that no other object has"
            raise node.place.error(f"<name>: expected {reason}, received '{name}'")
        if moves not in ("true", "false"):
            reason = f"<moveable> of '{name}': expected 'true' or 'false', received '{moves}'"
            raise node.place.error(reason)
        nodes[name] = node
        if moves == "true":
            movable.add(name)
    robot = top.required_child("robots").required_child("robot")
    return Objects(nodes, movable, pose_of(robot.required_child("basepose")))


def add_surface(
    scene: SceneGraph, name: str, pose: Pose, surface: Bounds, mesh: Bounds
) -> SceneGraph:
    """Return a scene with the top of a table, and the bounds of its mesh below.

    Args:
        scene: the scene.
        name: name of the table; what is below is ``NAME_below``.
        pose: pose of the table.
        surface: bounds of the surface in its frame [m].
        mesh: bounds of the mesh [m].
    """
    low, high = surface
    top_pose = pose @ Pose([*(low + high)[:2] / 2.0, high[2] - _TOP / 2.0])
    shapes = [AttachedShape(Box([*(high - low)[:2], _TOP]))]
    scene = scene.add_frame(name, "world", pose=top_pose, shapes=shapes, classes=["surface"])
    end = np.array([*mesh[1][:2], min(mesh[1][2], high[2] - _TOP)])
    if end[2] <= mesh[0][2]:
        return scene
    return scene.add_frame(
        f"{name}_below", "world", pose=pose, shapes=[bounding_box((mesh[0], end))]
    )


def random_sorting(number: int, count: int) -> PlanningProblem:
    """Return a sibling of problem 3: sticks at random places on two tables, of which most move.

    Half of the sticks go to a third table and a quarter to a fourth one; the others stay anywhere.

    Args:
        number: number of the sibling, the seed of its places.
        count: number of sticks.
    """
    rng = np.random.default_rng([number, count])
    scene = empty_scene()
    solid = [AttachedShape(Box([*_TABLE_SIZE, _TABLE_HEIGHT]))]
    for name, (x, y) in _TABLES.items():
        yaw = np.pi / 2.0 if y == 0.0 else 0.0
        pose = Pose.from_rpy([x, y, _TABLE_HEIGHT / 2.0], [0.0, 0.0, yaw])
        scene = scene.add_frame(name, "world", pose=pose, shapes=solid, classes=["surface"])
    bounds = (np.array([-2.75, -2.75, 0.0]), np.array([2.75, 2.75, 0.4]))
    scene = scene.add_frame("arena", "world", shapes=[*_walls(bounds)])
    places: list[tuple[int, NDArray[np.float64]]] = []
    while len(places) < count:
        table = int(rng.integers(2))
        place = rng.uniform(-0.5, 0.5, 2) * (np.array(_TABLE_SIZE) - 0.1)
        if all(other != table or norm(place - taken) > _SPACING for other, taken in places):
            places.append((table, place))
    goals: list[Goal] = []
    stick = [AttachedShape(Box(_STICK_SIZE))]
    for k, (table, place) in enumerate(places):
        pose = Pose([*place, (_TABLE_HEIGHT + _STICK_SIZE[2]) / 2.0])
        scene = scene.add_frame(
            f"stick{k}", f"table{table + 1}", pose=pose, shapes=stick, classes=["movable"]
        )
        if k % 4 < 3:
            goals.append(f"(on stick{k} {'table4' if k % 4 == 2 else 'table3'})")
    return carrying_problem(scene, Pose(), goals)


def stick_source(
    file: str, goal: str | None = None, options: PlanningOptions | None = None
) -> FixedProblem:
    """Return the problem of a file with its options, for batch files."""
    return FixedProblem(read_lagriffoul_problem(file, goal), options or PlanningOptions())


def pddl_goals(
    file: Path, goal: str | Path | None, names: list[str], movable: set[str]
) -> tuple[Source, list[Group]]:
    """Return the goals of the PDDL problem of a scene, with its text.

    Args:
        file: the XML file.
        goal: the PDDL problem, or None to search for the one with the objects of the scene.
        names: names of the objects of the scene.
        movable: names of those that are movable.

    Raises:
        FileFormatError: if there is not one such problem.
    """
    folders = (file.parent, file.parent.parent)
    predicates = (
        [path for folder in folders for path in sorted(folder.glob("*.pddl"))]
        if goal is None
        else [Path(goal)]
    )
    definitions: list[tuple[Source, list[Group]]] = []
    for path in predicates:
        text = re.sub(r";[^\n]*", "", read_pddl(path))
        text = re.sub(r"(?<=\s)-(?=[^\W\d])", "- ", text)  # the files write types as "-surface"
        # some files lack the last ones
        source = Source(str(path), text + ")" * (text.count("(") - text.count(")")))
        try:
            sections = {
                part.head: part
                for group in source.groups()
                for part in group.parts
                if isinstance(part, Group)
            }
        except TaskError:
            if goal is None:
                continue
            raise
        if not {":objects", ":goal"} <= {*sections}:
            continue
        wanted = sections[":goal"].parts[1:]
        if len(wanted) == 1 and isinstance(wanted[0], Group) and wanted[0].head == "and":
            wanted = wanted[0].parts[1:]
        atoms = [part for part in wanted if isinstance(part, Group) and part.head != "arm-empty"]
        objects = {
            pddl_word(part.text, names)
            for part in sections[":objects"].parts
            if isinstance(part, Token)
        }
        used = {pddl_word(word, names) for part in atoms for word in _words(part)}
        if goal is not None or (objects >= movable and None not in used):
            definitions.append((source, atoms))
    if len(definitions) != 1:
        listed = ", ".join(Path(source.name).name for source, _ in definitions) or "none"
        reason = f"expected one PDDL problem with the objects of the scene, found {listed}"
        raise FileFormatError.at(file, f"{reason}; name one as 'goal'")
    return definitions[0]


def _words(group: Group) -> Iterator[str]:
    """Yield the arguments of all atoms of a formula."""
    for part in group.parts[1:]:
        if isinstance(part, Group):
            yield from _words(part)
        elif isinstance(part, Token):
            yield part.text


def pddl_word(word: str, names: list[str]) -> str | None:
    """Return the name of a PDDL word: itself, its end, or with its initials.

    'red-tray' is for 'red_tray', 'a' for 'block_a', and 'bs1' for 'stick_blue1'.
    """
    if (name := word.replace("-", "_")) in names:
        return name
    ends = [name for name in names if name.rpartition("_")[2] == word]
    if len(ends) == 1:
        return ends[0]
    short = [
        name
        for name in names
        if sorted(word) == sorted(re.findall(r"(?<![a-z])[a-z]|\d", name.lower()))
    ]
    return short[0] if len(short) == 1 else None


def _goal(
    source: Source,
    atom: Group,
    names: list[str],
    scene: SceneGraph,
    tables: list[str],
    points: Mapping[str, Pose],
) -> Goal:
    words = [part.text for part in atom.parts if isinstance(part, Token)]
    if len(words) != len(atom.parts) or atom.head != "on-surface" or len(words) != 3:
        raise source.error(
            atom.first, f"'{atom.head}' is not read: expected (on-surface OBJECT SURFACE)"
        )
    item, surface = (pddl_word(word, names) for word in words[1:])
    if item is None or surface not in (*tables, *points):
        raise source.error(
            atom.first, f"expected an object and a surface of the scene, received {words[1:]}"
        )
    if surface in tables:
        return f"(on {item} {surface})"
    place = points[surface]
    table = _table_below(scene, place, tables)
    if table is None:
        raise source.error(atom.first, f"'{surface}' is on no surface")
    x, y, _ = place.translation
    height = scene.pose(item, relative_to=scene.parent(item)).translation[2]
    height += scene.pose(table, relative_to="world").translation[2]
    return ObjectAt(item, Pose([x, y, height], place.quat_xyzw), relative_to="world", radians=None)


def _table_below(scene: SceneGraph, pose: Pose, tables: list[str]) -> str | None:
    return next((table for table in tables if lies_on(scene, pose, table)), None)


def _surrounds(bounds: Bounds, pose: Pose, base: Pose) -> bool:
    base_position = (pose.inverse() @ base).translation[:2]
    return bool(np.all(bounds[0][:2] < base_position) and np.all(base_position < bounds[1][:2]))


def _walls(bounds: Bounds) -> Iterator[AttachedShape]:
    """Yield the four walls at the bounds of the scene around the robot."""
    for axis in range(2):
        for end, inwards in zip(bounds, (_WALL, -_WALL), strict=True):
            low, high = (bound.copy() for bound in bounds)
            low[axis], high[axis] = sorted((end[axis], end[axis] + inwards))
            yield bounding_box((low, high))


def bounding_box(bounds: Bounds) -> AttachedShape:
    """Return the box with these bounds [m]."""
    return AttachedShape(Box(bounds[1] - bounds[0]), pose=Pose((bounds[0] + bounds[1]) / 2.0))


def _bounds(node: XmlElement, file: Path) -> Bounds:
    """Return the bounds of an object's mesh."""
    vertices = mesh_vertices(node, file)
    return vertices.min(axis=0), vertices.max(axis=0)


def surface_bounds(node: XmlElement) -> Bounds | None:
    """Return the bounds of the poses on an object, equal for a point, or None without any [m]."""
    surface = node.child("sssp")
    if surface is None:
        return None
    low, high = (
        np.array([_number(surface, axis + end) for axis in "xyz"]) for end in ("min", "max")
    )
    return low, high


def is_point(surface: Bounds) -> bool:
    """Return whether the bounds of a surface are those of a point, or have no area."""
    return bool(np.any(surface[0][:2] == surface[1][:2]))


def mesh_vertices(node: XmlElement, file: Path) -> NDArray[np.float64]:
    """Return the (n, 3) vertices of an object's mesh [m], in a folder beside the file or above.

    Raises:
        FileFormatError: if the name of the mesh has a folder or wildcards.
        MeshError: if the mesh is missing or wrong.
    """
    mesh = text_of(node, "geom")
    if Path(mesh).name != mesh or re.search(r"[*?\[]", mesh):
        raise node.place.error(f"<geom>: expected the name of a mesh file, received '{mesh}'")
    folders = (file.parent, file.parent.parent)
    mesh_file = next(
        (path for folder in folders for path in sorted(folder.glob(f"*/{mesh}"))),
        file.parent / mesh,
    )
    return np.asarray(read_mesh(mesh_file).vertices)


def text_of(node: XmlElement, tag: str) -> str:
    """Return the text of a child of an element."""
    return (node.required_child(tag).element.text or "").strip()


def _number(node: XmlElement, tag: str) -> float:
    text = text_of(node, tag)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise node.place.error(f"<{tag}>: expected a finite number, received '{text}'")
    return number


def pose_of(node: XmlElement) -> Pose:
    """Return the pose of an element with the upper three rows of a matrix."""
    try:
        rows = np.array([float(word) for word in (node.element.text or "").split()]).reshape(3, 4)
        return Pose.from_matrix(np.vstack([rows, [0.0, 0.0, 0.0, 1.0]]))
    except (ValueError, TmkitError) as error:
        raise node.place.error(
            f"<{node.tag}>: expected three rows of a pose's matrix: {error}"
        ) from None
