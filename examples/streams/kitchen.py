"""Push a bowl to its mark, pour cream, scoop sugar, dump it and stir: a sampler for each action.

It corresponds to `examples/kitchen` of PDDLStream, in which the samplers are learned and their
values are stubs. Here, they are drawn at random and planned for an arm with seven joints; any of
them may be replaced by a learned one (`examples/learned_placements.py`). Filling at a faucet and
stacking on a coaster are omitted. Contents are classes of frames; no liquid is simulated.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.manipulation import (
    ApplyEffects,
    Candidate,
    Grasp,
    MoveStraight,
    MoveTo,
    Pick,
    Place,
    Placement,
    Pour,
    Push,
    Sequence,
)
from tmkit.motion import lies_in_region
from tmkit.pddl import Not, State, make_domain, make_predicate
from tmkit.plans import ClassEffect
from tmkit.tamp import PlanningOptions, PlanResult, PythonDomain
from tmkit.tamp.streams import SceneView, StreamSemantics, grasps, placements, stream, stream_action

N_SAMPLES = 20
"""Number of values of a stream."""

CLEARANCE = 0.03
"""Height of the spoon above a bowl before and after a dip [m]."""

CONTENTS = ("cream", "sugar")
"""Classes of filled frames."""

on = make_predicate("on", "?b - bowl ?r - region")
holding = make_predicate("holding", "?o - portable")
hand_empty = make_predicate("handempty")
has = make_predicate("has", "?o - item ?c - content")
mixed = make_predicate("mixed", "?b - bowl")


@dataclass(frozen=True)
class Dip:
    """Motion of a spoon in a bowl.

    Attributes:
        above: pose of the spoon above the bowl, in the root.
        depth: length of the line down [m].
        strokes: (3,) translations at the bottom, in root axes [m].
    """

    above: tk.Pose
    depth: float
    strokes: tuple[tuple[float, float, float], ...] = ()

    def motion(self, spoon: str, *changes: ClassEffect) -> Sequence:
        """Return the candidate that dips a held spoon and changes classes."""
        up = (0.0, 0.0, self.depth)
        lines = [(0.0, 0.0, -self.depth), *self.strokes, up]
        parts = [MoveTo(self.above, "the bowl", frame=spoon), *map(MoveStraight, lines)]
        return Sequence((*parts, ApplyEffects(changes)), object=spoon)


def sample_dips(view: SceneView, bowl: str, height: float, radius: float) -> Iterator[Dip]:
    """Yield dips with a circle of strokes, or without strokes if the radius is 0.

    Args:
        view: scene version.
        bowl: frame of the bowl, whose origin is at its bottom.
        height: height of the spoon above the bottom of the bowl at the end of the dip [m].
        radius: radius of the circle [m].
    """
    corners = [
        radius * np.array([np.cos(a), np.sin(a), 0.0]) for a in np.linspace(0.0, 2 * np.pi, 9)
    ]
    strokes = tuple(tuple((end - start).tolist()) for start, end in pairwise(corners))
    top = max(s.pose.translation[2] + s.shape.bounds[1][2] for s in view.shapes(bowl))
    origin = view.pose(bowl).translation + corners[0] + [0.0, 0.0, top + CLEARANCE]
    for yaw in view.rng.uniform(-np.pi, np.pi, N_SAMPLES):
        above = tk.Pose.from_rpy(origin, [0.0, 0.0, yaw])
        yield Dip(above, top + CLEARANCE - height, strokes if radius else ())


@stream("?b - bowl", gives="?p - push", certifies="(push-to-mark ?b ?p)")
def sample_push(view: SceneView, b: str) -> Iterator[Push]:
    """Yield pushes of a bowl along one of its axes to the mark."""
    x, y, _ = view.pose("mark", relative_to=b).translation
    for offset in view.rng.normal(0.0, 0.005, N_SAMPLES):
        if abs(x) < 0.01:
            yield Push(b, (0.0, float(np.sign(y)), 0.0), abs(y) + offset)
        if abs(y) < 0.01:
            yield Push(b, (float(np.sign(x)), 0.0, 0.0), abs(x) + offset)


@stream("?c - cup ?b - bowl", gives="?p - pour", certifies="(pour ?c ?b ?p)")
def sample_pour(view: SceneView, c: str, b: str) -> Iterator[Pour]:
    """Yield pours away from the hand and sideways, with headings about that of the bowl."""
    x, y, _ = view.pose(view.robot.tool, relative_to=c).rotate([0.0, 0.0, 1.0])
    bowl = view.pose(b, relative_to=view.robot.base).translation
    hand, bearing = np.arctan2(y, x), np.arctan2(bowl[1], bowl[0])
    for offset, gap in view.rng.uniform([-0.8, 0.08], [0.8, 0.12], (N_SAMPLES, 2)).tolist():
        for side in (0.0, np.pi / 2, -np.pi / 2):
            lip, heading = float(hand + side), float(bearing + side + offset)
            yield Pour(c, b, lip, heading, gap=gap, contents="cream")


@stream("?b - bowl", gives="?d - dip", certifies="(scoop ?b ?d)")
def sample_scoop(view: SceneView, b: str) -> Iterator[Dip]:
    """Yield dips to the bottom of a bowl with a stroke forward."""
    for dip in sample_dips(view, b, height=0.015, radius=0.0):
        stroke = 0.02 * dip.above.rotate([1.0, 0.0, 0.0])
        yield Dip(dip.above, dip.depth, (tuple(stroke.tolist()), tuple((-stroke).tolist())))


@stream("?b - bowl", gives="?d - dip", certifies="(dump ?b ?d)")
def sample_dump(view: SceneView, b: str) -> Iterator[Dip]:
    """Yield short dips."""
    yield from sample_dips(view, b, height=0.04, radius=0.0)


@stream("?b - bowl", gives="?d - dip", certifies="(stir ?b ?d)")
def sample_stir(view: SceneView, b: str) -> Iterator[Dip]:
    """Yield dips with a circle."""
    yield from sample_dips(view, b, height=0.015, radius=float(view.rng.uniform(0.01, 0.025)))


@stream("?c - cup ?g - grasp", certifies="(holdable ?c ?g)")
def is_from_side(view: SceneView, c: str, g: Grasp) -> bool:
    """Accept horizontal grasps of a cup, with which it can be tilted."""
    return abs(float((view.pose(c) @ g.object_from_tool).rotation[2, 2])) < 0.1


@stream("?s - spoon ?g - grasp", certifies="(holdable ?s ?g)")
def is_from_above(view: SceneView, s: str, g: Grasp) -> bool:
    """Accept grasps of a spoon from above."""
    return float((view.pose(s) @ g.object_from_tool).rotation[2, 2]) < -0.9


@stream_action(
    "?b - bowl",
    needs=[on("?b", "table"), hand_empty()],
    adds=[on("?b", "mark")],
    deletes=[on("?b", "table")],
    given="(push-to-mark ?b ?p)",
)
def push(view: SceneView, p: Push) -> Candidate:
    """Push a bowl to the mark."""
    del view
    return p


@stream_action(
    "?c - cup",
    needs=[hand_empty()],
    adds=[holding("?c")],
    deletes=[hand_empty()],
    given="(grasp ?c ?g) (holdable ?c ?g)",
)
def take_cup(view: SceneView, c: str, g: Grasp) -> Candidate:
    """Pick a cup by its side."""
    del view
    return Pick(c, g)


@stream_action(
    "?s - spoon",
    needs=[hand_empty()],
    adds=[holding("?s")],
    deletes=[hand_empty()],
    given="(grasp ?s ?g) (holdable ?s ?g)",
)
def take_spoon(view: SceneView, s: str, g: Grasp) -> Candidate:
    """Pick a spoon from above."""
    del view
    return Pick(s, g)


@stream_action(
    "?o - portable",
    needs=[holding("?o")],
    adds=[hand_empty()],
    deletes=[holding("?o")],
    given="(placement ?o table ?p)",
)
def put(view: SceneView, o: str, p: Placement) -> Candidate:
    """Place an object on the table."""
    del view
    return Place.at(o, p)


@stream_action(
    "?c - cup ?b - bowl",
    needs=[holding("?c"), has("?c", "cream"), Not(has("?b", "cream"))],
    adds=[has("?b", "cream")],
    deletes=[has("?c", "cream")],
    given="(pour ?c ?b ?p)",
)
def pour(view: SceneView, p: Pour) -> Candidate:
    """Pour the cream of a cup into a bowl."""
    del view
    return p


@stream_action(
    "?s - spoon ?b - bowl",
    needs=[holding("?s"), has("?b", "sugar"), Not(has("?s", "sugar"))],
    adds=[has("?s", "sugar")],
    given="(scoop ?b ?d)",
)
def scoop(view: SceneView, s: str, d: Dip) -> Candidate:
    """Scoop sugar from a bowl."""
    del view
    return d.motion(s, ClassEffect(s, added=("sugar",)))


@stream_action(
    "?s - spoon ?b - bowl",
    needs=[holding("?s"), has("?s", "sugar"), Not(has("?b", "sugar"))],
    adds=[has("?b", "sugar")],
    deletes=[has("?s", "sugar")],
    given="(dump ?b ?d)",
)
def dump(view: SceneView, s: str, b: str, d: Dip) -> Candidate:
    """Dump the sugar of a spoon into a bowl."""
    del view
    return d.motion(s, ClassEffect(s, removed=("sugar",)), ClassEffect(b, added=("sugar",)))


@stream_action(
    "?s - spoon ?b - bowl",
    needs=[holding("?s"), on("?b", "mark"), has("?b", "cream"), has("?b", "sugar")],
    adds=[mixed("?b")],
    given="(stir ?b ?d)",
)
def stir(view: SceneView, s: str, b: str, d: Dip) -> Candidate:
    """Stir the contents of a bowl at the mark."""
    del view
    return d.motion(s, ClassEffect(b, added=("mixed",)))


class Kitchen(StreamSemantics):
    """Bowls, a cup and a spoon on a table with a mark."""

    domain = make_domain(
        "kitchen2d",
        types="spoon cup - portable portable bowl - item item region content",
        constants="table mark - region cream sugar - content",
        predicates=[on, holding, hand_empty, has, mixed],
        actions=[a.action for a in (push, take_cup, take_spoon, put, pour, scoop, dump, stir)],
    )
    streams = (
        grasps,
        placements,
        is_from_side,
        is_from_above,
        sample_push,
        sample_pour,
        sample_scoop,
        sample_dump,
        sample_stir,
    )
    stream_actions = (push, take_cup, take_spoon, put, pour, scoop, dump, stir)
    value_types = MappingProxyType({"push": Push, "pour": Pour, "dip": Dip})

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the bowls, cups and spoons."""
        kinds = ("bowl", "cup", "spoon")
        return {frame: kind for kind in kinds for frame in scene.frames_of_class(kind)}

    def state(
        self, scene: tk.SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]
    ) -> State:
        """Return the contents of all objects, the places of bowls, and the object in the hand."""
        held = [o for o in objects if scene.parent(o) == self.robot.tip]
        facts = [*map(holding.fact, held), *([] if held else [hand_empty.fact()])]
        for frame in objects:
            facts += [has.fact(frame, c) for c in CONTENTS if c in scene.classes(frame)]
        for bowl in scene.frames_of_class("bowl"):
            is_at_mark = lies_in_region(scene, bowl, "mark", q=q)
            facts.append(on.fact(bowl, "mark" if is_at_mark else "table"))
        return State([*facts, *map(mixed.fact, scene.frames_of_class("mixed"))])


def make_bowl(size: float, height: float, color: tuple[float, ...]) -> list[tk.AttachedShape]:
    """Return the floor and the walls of a square bowl [m], with the origin at its bottom."""
    floor = tk.AttachedShape(tk.Box([size, size, 0.008]), pose=tk.Pose([0, 0, 0.004]), color=color)
    shapes, offset = [floor], size / 2 - 0.003
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        wall = tk.Box([0.006, size, height] if x else [size, 0.006, height])
        pose = tk.Pose([x * offset, y * offset, height / 2])
        shapes.append(tk.AttachedShape(wall, pose=pose, color=color))
    return shapes


def make_spoon() -> list[tk.AttachedShape]:
    """Return the foot, the stem and the grip of an upright spoon, with the origin at its foot."""
    parts = (([0.03, 0.03, 0.03], 0.015), ([0.012, 0.012, 0.1], 0.08), ([0.03, 0.03, 0.03], 0.145))
    return [tk.AttachedShape(tk.Box(size), pose=tk.Pose([0, 0, z])) for size, z in parts]


def kitchen_scene() -> tk.SceneGraph:
    """Return the Panda at a table with a bowl, its mark, sugar, cream and a spoon."""
    scene, top = tk.load_scene("panda_table"), 0.025
    mark = tk.AttachedShape(tk.Box([0.2, 0.2, 0.002]), collision=False)
    cup = tk.AttachedShape(tk.Cylinder(0.03, 0.12), pose=tk.Pose([0.0, 0.0, 0.06]))
    white, red = (0.9, 0.9, 0.9, 1.0), (0.7, 0.3, 0.3, 1.0)
    scene = scene.add_frame(
        "mark", "table", pose=tk.Pose([-0.1, 0.1, top]), shapes=[mark], classes=["region"]
    )
    frames = (
        ("bowl", [-0.1, -0.08], make_bowl(0.11, 0.04, white), ("bowl",)),
        ("sugar_bowl", [0.05, -0.3], make_bowl(0.11, 0.04, red), ("bowl", "sugar")),
        ("cream_cup", [-0.1, 0.3], [cup], ("cup", "cream")),
        ("spoon", [-0.15, -0.35], make_spoon(), ("spoon",)),
    )
    for name, position, shapes, classes in frames:
        pose = tk.Pose([*position, top])
        scene = scene.add_frame(
            name, "table", pose=pose, joint=tk.Free(), shapes=shapes, classes=["movable", *classes]
        )
    return scene


def solve(seed: int, semantics: type[Kitchen] = Kitchen) -> PlanResult:
    """Return the plan that mixes cream and sugar in the bowl at the mark."""
    return tk.plan(
        kitchen_scene(),
        domain=PythonDomain(semantics.domain, semantics),
        goal="(and (mixed bowl) (handempty))",
        robot="panda",
        options=PlanningOptions(seed=seed, max_iterations=3, suggest=False),
    )


def main() -> None:
    """Plan, validate, and print the plan and the counts of the streams."""
    result = solve(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    assert result.plan is not None, result.explanation
    for step in result.plan.steps:
        print(step.action, step.choice)
    print(tk.validate_plan(result.plan, domain=PythonDomain(Kitchen.domain, Kitchen)))
    print(*result.diagnosis.streams, sep="\n")


if __name__ == "__main__":
    main()
