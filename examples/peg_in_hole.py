"""Put a peg into a hole: straight, with clearance to the walls, and released on the bottom."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    Candidate,
    MoveStraight,
    MoveTo,
    OpenHand,
    Pick,
    Sequence,
    Touch,
)
from tmkit.pddl import GroundAction, Not, State, make_action, make_domain, make_predicate
from tmkit.tamp import DomainSemantics, PythonDomain

PEG_SIZE = (0.02, 0.02, 0.1)
"""Size of the peg [m]."""

CLEARANCE = 0.002
"""Distance between the peg and each wall of the hole [m]."""

DEPTH = 0.04
"""Depth of the hole [m]."""

LAST_PART = 0.005
"""Distance of the peg from the bottom at which the guarded motion starts [m]."""

holding = make_predicate("holding", "?p - peg")
inserted = make_predicate("inserted", "?p - peg ?h - hole")
pick = make_action("pick", "?p - peg", needs=[Not(holding("?p"))], adds=[holding("?p")], deletes=[])
insert = make_action(
    "insert",
    "?p - peg ?h - hole",
    needs=[holding("?p")],
    adds=[inserted("?p", "?h")],
    deletes=[holding("?p")],
)


class InsertionSemantics(DomainSemantics):
    """A peg is inserted into the frame of class `hole` that is its parent."""

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return pegs and holes."""
        pegs = dict.fromkeys(scene.frames_of_class("movable"), "peg")
        return pegs | dict.fromkeys(scene.frames_of_class("hole"), "hole")

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]) -> State:
        """Return the place of each peg."""
        del q
        facts = []
        for peg in scene.frames_of_class("movable"):
            parent = str(scene.parent(peg))
            if parent == self.robot.tip:
                facts.append(holding.fact(peg))
            elif objects.get(parent) == "hole":
                facts.append(inserted.fact(peg, parent))
        return State(facts)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield grasps of a peg, or insertions with the peg turned about its axis."""
        peg = action.arguments[0]
        if action.name == pick.name:
            for grasp in context.grasps(peg):
                yield Pick(peg, grasp)
            return
        hole = action.arguments[1]
        pose = context.scene.pose(hole, q=context.q)  # at the bottom, z out of the hole
        height = PEG_SIZE[2] / 2
        for turn in np.linspace(0.0, 1.5 * np.pi, 4):
            above = pose @ tk.Pose.from_rpy([0.0, 0.0, height + DEPTH + 0.02], [0.0, 0.0, turn])
            inside = pose @ tk.Pose([0.0, 0.0, height + LAST_PART])
            yield Sequence(
                (
                    MoveTo(above, f"above {hole}", frame=peg),
                    MoveStraight(inside.translation - above.translation),  # keeps its clearance
                    Touch(hole, by=pose.rotate([0.0, 0.0, -2.0 * LAST_PART])),
                    OpenHand(parent=hole),
                    MoveStraight(by=tk.Pose([0.0, 0.0, -0.1])),
                ),
                object=peg,
            )


DOMAIN = PythonDomain(
    make_domain(
        "insertion", types="peg hole", predicates=[holding, inserted], actions=[pick, insert]
    ),
    InsertionSemantics,
)


def fixture(clearance: float = CLEARANCE) -> list[tk.AttachedShape]:
    """Return a block with a square hole, made of a bottom and four walls.

    Args:
        clearance: distance between the peg and each wall [m].
    """
    wall, inner = 0.02, PEG_SIZE[0] + 2.0 * clearance
    outer, offset = inner + 2.0 * wall, (inner + wall) / 2
    bottom = tk.AttachedShape(tk.Box([outer, outer, 0.01]), tk.Pose([0.0, 0.0, -0.005]))
    sides = [
        tk.AttachedShape(tk.Box(size), tk.Pose([x * offset, y * offset, DEPTH / 2]))
        for x, y, size in (
            (1.0, 0.0, [wall, outer, DEPTH]),
            (-1.0, 0.0, [wall, outer, DEPTH]),
            (0.0, 1.0, [inner, wall, DEPTH]),
            (0.0, -1.0, [inner, wall, DEPTH]),
        )
    ]
    return [bottom, *sides]


def insertion_scene(clearance: float = CLEARANCE) -> SceneGraph:
    """Return a Panda with a peg and a fixture with a hole on the table.

    Args:
        clearance: distance between the peg and each wall [m].
    """
    scene = tk.load_scene("panda_table")
    scene = scene.add_frame(
        "hole",
        "table",
        pose=tk.Pose([-0.1, -0.2, 0.035]),
        shapes=fixture(clearance),
        classes=["hole"],
    )
    peg = tk.AttachedShape(tk.Box(PEG_SIZE), color=(0.1, 0.4, 0.8, 1.0))
    return scene.add_frame(
        "peg", "table", pose=tk.Pose([-0.1, 0.2, 0.075]), shapes=[peg], classes=["movable"]
    )


def main() -> None:
    """Plan, validate and simulate the insertion."""
    scene = insertion_scene()
    result = tk.plan(scene, domain=DOMAIN, goal="(inserted peg hole)", robot="panda", seed=0)
    assert result.plan is not None, result.explanation
    for step in result.plan.steps:
        print(step.action, [segment.kind.value for segment in step.segments])
    print(tk.validate_plan(result.plan, domain=DOMAIN))
    report = tk.simulate(result.plan)
    print("simulation succeeded:", report.is_successful, *report.notes)


if __name__ == "__main__":
    main()
