"""Stacking problems of Lagriffoul et al.: problem 1, towers of Hanoi, and problem 2, blocks world.

The robot does not drive in these files. Discs of problem 1 have a knob above and a hollow below,
and nest over pegs and over each other; their meshes are read as rings of boxes, from their corners.
A Panda on a stand takes them. The cubes of problem 2 are as wide as its hand opens, so an iiwa with
a suction cup takes them from above. Objects are let down onto their supports, which end up to 1 cm
below them in the files; where the start of the PDDL problem differs, the poses count. A goal may
have alternatives.

Invariants: the files are data; nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from benchmarks.comparison.lagriffoul_problems import (
    add_surface,
    bounding_box,
    is_point,
    mesh_vertices,
    pddl_goals,
    pddl_word,
    pose_of,
    read_lagriffoul_problem,
    read_objects,
    surface_bounds,
)
from numpy.typing import NDArray

from tmkit._support.source_location import did_you_mean, locate_errors
from tmkit._support.xml import XmlElement
from tmkit.formats import load_scene
from tmkit.graph import AttachedShape, Box, Cylinder, SceneGraph
from tmkit.manipulation import ActionContext, Candidate, Pick, PickPlaceOptions, Place
from tmkit.pddl import Fact
from tmkit.pddl.parsing.source import Group, Source, Token
from tmkit.robots import Manipulator, load_manipulator, movable_frames
from tmkit.spatial import Pose
from tmkit.spatial.elementary import norm
from tmkit.tamp import parts
from tmkit.tamp.domains.infeasibility import Infeasibility
from tmkit.tamp.domains.semantics import RestFault, pddl_name
from tmkit.tamp.domains.tabletop import (
    RELEASE_GAP,
    STANDING_TOLERANCE,
    pick_candidates,
    quat_xyzw_about_z,
    shape_bounds,
    turns_nearest_first,
)
from tmkit.tamp.problem import PlanningProblem

_SIDES = 12
"""Number of sides of a disc, as of its mesh."""

_KNOB_CLEARANCE = 0.015
"""Height of the bottom of a carried disc above a knob [m]."""

_MIN_WIDTH_DIFFERENCE = 1e-4
"""Smallest difference of width between discs that fit on each other [m]."""

_PLATE = (0.12, 0.12, 0.004)
"""Size of the plate between a peg and the table, which ends below the pegs [m]."""

_MAX_SHIFT = 0.005
"""Largest horizontal distance of an object from the axis of its support [m]."""

_MAX_GAP = 0.02
"""Largest height of an object above its support in a file [m]."""

_PANDA_STAND = Pose([0.2, 0.0, 0.77])
"""Pose of the Panda relative to the base of the PR2: level with the pegs' feet."""

_IIWA_STAND = Pose([0.0, 0.0, 1.27])
"""Pose of the iiwa relative to the base of the PR2: between the heights of the trays."""

_IIWA_TURN = -np.pi / 2.0
"""Angle of the first joint at the start, beside the plate above the table [rad]."""


class NestedDiscs(parts.Slots):
    """Discs on pegs and on wider discs, over their knobs.

    The last shape of a disc or peg is its knob, and the next disc is on the top of the others.
    """

    region_classes = ("peg",)
    pddl: ClassVar[str] = """
    (:types item peg - region)
    (:predicates (fits ?x - item ?r - region))   ; ?r is a peg, or a disc larger than ?x
    (:extend (pick) :precondition (free ?x) :effect (not (free ?x)))
    (:extend (place) :precondition (fits ?x ?r) :effect (free ?x))
    """

    def kinds(self, scene: SceneGraph) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield discs and pegs."""
        yield "item", movable_frames(scene)
        yield "peg", scene.frames_of_class("peg")

    def region_frames(self, scene: SceneGraph) -> tuple[str, ...]:
        """Return pegs and discs."""
        return (*super().region_frames(scene), *movable_frames(scene))

    def facts_free(self, scene: SceneGraph) -> Iterator[tuple[str, ...]]:
        """Yield the pegs."""
        yield from ((peg,) for peg in scene.frames_of_class("peg"))

    def place_facts(self, scene: SceneGraph, object: str) -> Iterator[Fact]:
        """Also yield that a disc in no hand is free."""
        yield from super().place_facts(scene, object)
        if scene.parent(object) not in self.hands:
            yield self.fact("free", object)

    def facts_fits(self, scene: SceneGraph) -> Iterator[tuple[str, ...]]:
        """Yield the supports of each disc: every peg, and every wider disc."""
        widths = {disc: _width(scene, disc) for disc in movable_frames(scene)}
        for disc, width in widths.items():
            yield from ((disc, peg) for peg in scene.frames_of_class("peg"))
            for other, other_width in widths.items():
                if other_width > width + _MIN_WIDTH_DIFFERENCE:
                    yield disc, other

    def infeasibilities(
        self, goal_facts: Iterable[Fact], scene: SceneGraph
    ) -> Iterator[Infeasibility]:
        """Also yield the proof that the widest disc cannot leave its peg.

        While it moves to another peg, the second widest disc is the lowest on a third peg. They
        must not overlap there, before and after the move.
        """
        facts = tuple(goal_facts)
        yield from super().infeasibilities(facts, scene)
        widths = {disc: _width(scene, disc) for disc in movable_frames(scene)}
        if len({*widths.values()}) < max(2, len(widths)):
            return
        widest, second = sorted(widths, key=lambda disc: -widths[disc])[:2]
        start, pegs = str(scene.parent(widest)), scene.frames_of_class("peg")
        fact = next((fact for fact in facts if _moves_to_peg(fact, widest, pegs, start)), None)
        if fact is None or start not in pegs:
            return
        least = (widths[widest] + widths[second]) / 2.0

        def overlap(peg: str, other: str) -> bool:
            offset = scene.pose(other, relative_to=peg).translation
            return abs(offset[2]) <= STANDING_TOLERANCE and norm(offset[:2]) < least

        others = [peg for peg in pegs if peg != start]
        moves = [(goal, third) for goal in others for third in others if third != goal]
        if all(overlap(start, third) or overlap(goal, third) for goal, third in moves):
            cause = (
                f"'{widest}' cannot leave '{start}': '{second}' is then on a third peg, and they"
                f" overlap unless their pegs are {least * 1000:.1f} mm apart"
            )
            yield Infeasibility(cause, (fact,), (widest, second))

    def rest_fault(self, scene: SceneGraph, object: str) -> RestFault | None:
        """Return the reason why a disc floats above the disc or peg below, or None."""
        parent = str(scene.parent(object))
        if parent in self.hands:
            return None
        gap = float(scene.local_pose(object).translation[2]) - seat_height(scene, parent)
        if abs(gap) <= STANDING_TOLERANCE:
            return None
        return RestFault(f"{self.label(object)} is {gap * 1000:.0f} mm above '{parent}'", gap)

    def do_pick(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Candidate]:
        """Yield grasps, after which a disc is lifted off the knob."""
        motion = _lift_over_knob(context.scene, region)
        for candidate in pick_candidates(context, object, robot=arm):
            if isinstance(candidate, Pick):
                yield Pick(object, candidate.grasp, arm=candidate.arm, motion=motion)
            else:
                yield candidate

    def places(
        self, context: ActionContext, arm: Manipulator, object: str, region: str
    ) -> Iterator[Place]:
        """Yield quarter turns in which a disc is lowered over a knob."""
        motion = _lift_over_knob(context.scene, region)
        height = seat_height(context.scene, region) + RELEASE_GAP
        for turn in turns_nearest_first(context, object, region):
            pose = Pose([0.0, 0.0, height], quat_xyzw_about_z(turn))
            yield Place(object, region, pose, arm=self.arm_name(arm), motion=motion)


HANOI = parts.compose_domain(
    "lagriffoul_hanoi", [NestedDiscs], words={"item": "disc", "region": "object", "free": "clear"}
)
"""Domain of problem 1."""

BLOCKSWORLD = parts.compose_domain(
    "lagriffoul_blocksworld",
    [parts.Stacking],
    words={"item": "block", "region": "surface", "on": "on-surface", "stacked": "on"},
)
"""Domain of problem 2, with the predicates of the files."""


class _Movable(NamedTuple):
    """Movable object of a file.

    Attributes:
        name: name.
        pose: pose in the file.
        shapes: shapes.
        node: element of the file.
    """

    name: str
    pose: Pose
    shapes: list[AttachedShape]
    node: XmlElement


def read_problem(path: str | Path, goal: str | Path | None = None) -> PlanningProblem:
    """Return the problem of a file of any of the problems 1 to 4.

    Args:
        path: the XML file.
        goal: the PDDL problem; by default the one in the same folder or the one above that has the
            same objects.

    Raises:
        FileFormatError: if a file is wrong, or there is not one goal.
        MeshError: if a mesh is missing or wrong.
    """
    file = Path(path)
    objects, movable, base = read_objects(file)
    if not any(objects[name].child("sssp") for name in movable):
        return read_lagriffoul_problem(file, goal)

    # Discs are hollow below.
    solids: dict[str, list[AttachedShape]] = {}
    for name in sorted(movable):
        vertices = mesh_vertices(objects[name], file)
        with locate_errors(objects[name].place):
            solids[name] = _solid(vertices)
    is_hanoi = any(len(shapes) > 1 for shapes in solids.values())
    stand = base @ (_PANDA_STAND if is_hanoi else _IIWA_STAND)
    scene = load_scene("panda_alone" if is_hanoi else "iiwa_table")
    if not is_hanoi:
        scene = scene.remove_frame("table", subtree=True)
    supports: dict[str, Pose] = {}  # as in the file
    for name in sorted(objects.keys() - movable):
        node = objects[name]
        pose = stand.inverse() @ pose_of(node.required_child("pose"))
        bounds = surface_bounds(node)
        vertices = mesh_vertices(node, file)
        extent = vertices.min(axis=0), vertices.max(axis=0)
        if bounds is not None and is_point(bounds):
            plate = AttachedShape(Box(_PLATE), pose=Pose([0.0, 0.0, -_PLATE[2] / 2.0]))
            shapes = [plate, _knob(vertices, 0.0)]
            scene = scene.add_frame(name, "world", pose=pose, shapes=shapes, classes=["peg"])
            supports[name] = pose
        elif bounds is not None and not is_hanoi:
            scene = add_surface(scene, name, pose, bounds, extent)
            supports[name] = scene.pose(name, relative_to="world")
        else:
            scene = scene.add_frame(name, "world", pose=pose, shapes=[bounding_box(extent)])
    movables = [
        _Movable(
            name,
            stand.inverse() @ pose_of(objects[name].required_child("pose")),
            shapes,
            objects[name],
        )
        for name, shapes in solids.items()
    ]
    for each in sorted(movables, key=lambda each: (each.pose.translation[2], each.name)):
        scene = _let_down(scene, each, supports, is_hanoi=is_hanoi)
        supports[each.name] = each.pose
    source, groups = pddl_goals(file, goal, [*objects], movable)
    goals = [_goal_text(source, group, [*objects]) for group in groups]
    arm = load_manipulator("panda" if is_hanoi else "iiwa")
    q = arm.ready_configuration(scene)
    if not is_hanoi:
        q = scene.configuration({arm.joints[0]: _IIWA_TURN}, base=q)
    return PlanningProblem(scene, q, HANOI if is_hanoi else BLOCKSWORLD, goals, arm.name)


def seat_height(scene: SceneGraph, frame: str) -> float:
    """Return the height of the bottom of a disc on another or on a peg, in its frame [m].

    Args:
        scene: the scene.
        frame: frame of the disc or peg below.
    """
    shapes = scene.shapes(frame)[:-1]
    return max(float(s.pose.translation[2] + s.shape.bounds[1][2]) for s in shapes)


def _width(scene: SceneGraph, disc: str) -> float:
    """Return the distance of parallel sides of a disc [m]."""
    return float(np.ptp(shape_bounds(scene, disc), axis=0)[0])


def _moves_to_peg(fact: Fact, disc: str, pegs: tuple[str, ...], start: str) -> bool:
    if fact.predicate != "on" or fact.arguments[0] != pddl_name(disc):
        return False
    return fact.arguments[1] in [pddl_name(peg) for peg in pegs if peg != start]


def _lift_over_knob(scene: SceneGraph, below: str) -> PickPlaceOptions:
    knob = float(shape_bounds(scene, below)[1][2]) - seat_height(scene, below)
    return PickPlaceOptions(lift_distance=knob + _KNOB_CLEARANCE)


def _solid(vertices: NDArray[np.float64]) -> list[AttachedShape]:
    """Return the shapes of an object: a disc with a hollow and a knob, the knob last, or a box."""
    radii = np.linalg.norm(vertices[:, :2], axis=1)
    heights = np.unique(vertices[:, 2].round(6))
    rings = [(z, radii[np.isclose(vertices[:, 2], z)]) for z in heights]
    radius, knob_radius = radii.max(), rings[-1][1].max()
    if knob_radius > 0.9 * radius:
        return [bounding_box((vertices.min(axis=0), vertices.max(axis=0)))]
    top = max(z for z, around in rings if around.max() > 0.9 * radius)
    hollow = max((z for z, _ in rings if 0.0 < z < top), default=0.0)
    hole = next((around.max() for z, around in rings if z == hollow > 0.0), 0.0)
    half = np.pi / _SIDES
    near, far = (length * np.cos(half) for length in (hole, radius))
    side = Box([far - near, 2.0 * radius * np.sin(half), top])
    ring = [
        AttachedShape(
            side,
            pose=Pose.from_rpy([0.0, 0.0, 0.0], [0.0, 0.0, 2.0 * half * k])
            @ Pose([(near + far) / 2.0, 0.0, top / 2.0]),
        )
        for k in range(_SIDES)
    ]
    lid = AttachedShape(Cylinder(hole, top - hollow), pose=Pose([0.0, 0.0, (top + hollow) / 2.0]))
    return [*ring, lid, _knob(vertices, float(top))]


def _knob(vertices: NDArray[np.float64], bottom: float) -> AttachedShape:
    """Return the cylinder from a height to the top of a mesh."""
    top = float(vertices[:, 2].max())
    radius = float(np.linalg.norm(vertices[vertices[:, 2] == top][:, :2], axis=1).max())
    return AttachedShape(
        Cylinder(radius, top - bottom), pose=Pose([0.0, 0.0, (top + bottom) / 2.0])
    )


def _let_down(
    scene: SceneGraph, movable: _Movable, supports: dict[str, Pose], *, is_hanoi: bool
) -> SceneGraph:
    """Return the scene with an object on the top of the support below it.

    Raises:
        FileFormatError: if there is none.
    """
    bottom = min(float(s.pose.translation[2] + s.shape.bounds[0][2]) for s in movable.shapes)
    for support, support_pose in reversed(supports.items()):
        local = support_pose.inverse() @ movable.pose
        lower, upper = shape_bounds(scene, support)
        top = seat_height(scene, support) if is_hanoi else float(upper[2])
        is_surface = "surface" in scene.classes(support)
        is_above = (
            np.all((lower <= local.translation)[:2] & (local.translation <= upper)[:2])
            if is_surface
            else norm(local.translation[:2]) < _MAX_SHIFT
        )
        if is_above and abs(local.translation[2] + bottom - top) < _MAX_GAP:
            pose = Pose([*local.translation[:2], top - bottom], local.quat_xyzw)
            return scene.add_frame(
                movable.name, support, pose=pose, shapes=movable.shapes, classes=["movable"]
            )
    raise movable.node.place.error(f"'{movable.name}' stands on none of {', '.join(supports)}")


def _goal_text(source: Source, group: Group, names: list[str]) -> str:
    """Return a goal with the names of the scene.

    Raises:
        FileFormatError: if it has other words than those of the files, or an unknown name.
    """
    if group.head in ("and", "or"):
        inner = (part for part in group.parts[1:] if isinstance(part, Group))
        return f"({group.head} {' '.join(_goal_text(source, part, names) for part in inner)})"
    words = [part for part in group.parts[1:] if isinstance(part, Token)]
    if group.head not in ("on", "on-surface") or len(words) != 2:
        raise source.error(
            group.first, "expected 'and', 'or', (on OBJECT OBJECT) or (on-surface OBJECT SURFACE)"
        )
    frames: list[str] = []
    for word in words:
        frame = pddl_word(word.text, names)
        if frame is None:
            raise source.error(word, f"no object '{word.text}'{did_you_mean(word.text, names)}")
        frames.append(frame)
    return f"({group.head} {frames[0]} {frames[1]})"
