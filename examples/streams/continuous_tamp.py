"""Blocks on a line with regions, in which poses are sampled.

It corresponds to `examples/continuous_tamp` of PDDLStream, with four of its problems: two blocks
into a tight region, a region that another block occupies, a disjunctive goal, and cooking on a
stove. The arm ends in its first configuration. There, poses, grasps and configurations are objects
of PDDL, and a separate action moves the arm. Here, they are values, and a pick or a place includes
the motion to it, which is checked for collisions.
"""

import sys
from collections.abc import Iterator, Mapping

import numpy as np
from gantry import ROBOT, SIZE, make_line, top_grasp
from numpy.typing import NDArray

import tmkit as tk
from tmkit.manipulation import ApplyEffects, Candidate, Grasp, Pick, Place, Placement
from tmkit.pddl import State, make_domain, make_predicate
from tmkit.plans import ArmAt
from tmkit.tamp import PlanningOptions, PlanResult, PythonDomain
from tmkit.tamp.streams import SceneView, StreamSemantics, stream, stream_action

REGIONS = {"red": (0.20, 0.32), "green": (0.34, 0.42), "stove": (-0.5, -0.4), "ground": (-0.5, 0.5)}
"""Lower and upper end of each region on the line [m]; the ground contains the others."""

N_SAMPLES = 40
"""Number of poses of a block in a region."""

PROBLEMS = {
    "tight": ({"a": 0.0, "b": -0.1}, "(and (in a red) (in b red))"),
    "blocked": ({"a": 0.0, "b": 0.26, "c": -0.1}, "(in a red)"),
    "dual": ({"a": 0.0, "b": -0.1}, "(and (or (in a red) (in a green)) (in b green))"),
    "cook": ({"a": 0.0, "b": -0.45}, "(and (cooked a) (in a red))"),
}
"""Positions of the blocks [m] and goal of each problem."""

inside = make_predicate("in", "?b - block ?r - region")
holding = make_predicate("holding", "?b - block")
cooked = make_predicate("cooked", "?b - block")
hand_empty = make_predicate("handempty")


def interval(x: float) -> tuple[float, float]:
    """Return the ends of a block at a position [m]."""
    return x - SIZE / 2, x + SIZE / 2


def smallest_region(x: float) -> str | None:
    """Return the first region that contains a block at a position [m], or None."""
    lower, upper = interval(x)
    return next((r for r, (start, end) in REGIONS.items() if start <= lower and upper <= end), None)


def position(pose: tk.Pose) -> float:
    """Return the position of a pose on the line [m]."""
    return float(pose.translation[0])


@stream("?b - block ?r - region", gives="?p - placement", certifies="(pose ?b ?p)")
def sample_region(view: SceneView, r: str) -> Iterator[Placement]:
    """Yield poses in a region."""
    lower, upper = REGIONS[r]
    for x in view.rng.uniform(lower + SIZE / 2, upper - SIZE / 2, N_SAMPLES):
        yield Placement("line", tk.Pose([x, 0.0, SIZE / 2]), f"at {x:.2f} m")


@stream("?p - placement ?r - region", certifies="(contained ?p ?r)")
def is_contained(view: SceneView, p: Placement, r: str) -> bool:
    """Accept a pose in a region and in no smaller one."""
    del view
    return smallest_region(position(p.support_from_object)) == r


@stream("?b - block ?p - placement", certifies="(free ?b ?p)")
def is_free(view: SceneView, b: str, p: Placement) -> bool:
    """Accept a pose without another block."""
    others = [position(view.local_pose(o)) for o in view.children("line") if o != b]
    return all(abs(x - position(p.support_from_object)) > SIZE + 0.003 for x in others)


@stream("?p - placement", cost="(distance ?p)")
def distance(view: SceneView, p: Placement) -> float:
    """Return the distance of a pose from the arm [m]."""
    return abs(position(p.support_from_object) - position(view.pose("cup")))


@stream_action(
    "?b - block ?r - region",
    needs=[inside("?b", "?r"), hand_empty()],
    adds=[holding("?b")],
    deletes=[inside("?b", "?r"), hand_empty()],
    given="(grasp ?b ?g)",
)
def pick(view: SceneView, b: str, g: Grasp) -> Candidate:
    """Pick a block."""
    del view
    return Pick(b, g)


@stream_action(
    "?b - block ?r - region",
    needs=[holding("?b")],
    adds=[inside("?b", "?r"), hand_empty()],
    deletes=[holding("?b")],
    given="(pose ?b ?p) (contained ?p ?r) (free ?b ?p)",
    costs="(distance ?p)",
)
def place(view: SceneView, b: str, p: Placement) -> Candidate:
    """Place a block in a region."""
    del view
    return Place.at(b, p)


@stream_action("?b - block", needs=[inside("?b", "stove")], adds=[cooked("?b")])
def cook(view: SceneView) -> Candidate:
    """Cook a block on the stove."""
    del view
    return ApplyEffects(())


class ContinuousTamp(StreamSemantics):
    """Blocks in regions or in the hand."""

    domain = make_domain(
        "continuous-tamp",
        types="block region",
        constants=" ".join(REGIONS) + " - region",
        predicates=[inside, holding, cooked, hand_empty],
        actions=[pick.action, place.action, cook.action],
    )
    streams = (top_grasp, sample_region, is_contained, is_free, distance)
    stream_actions = (pick, place, cook)
    stored_predicates = frozenset({"cooked"})

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the blocks."""
        return dict.fromkeys(scene.frames_of_class("movable"), "block")

    def state(
        self, scene: tk.SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]
    ) -> State:
        """Return the smallest region of each block, and the block in the hand."""
        del q
        held = [block for block in objects if scene.parent(block) == self.robot.tip]
        facts = [*map(holding.fact, held), *([] if held else [hand_empty.fact()])]
        for block in objects:
            region = smallest_region(position(scene.local_pose(block)))
            if block not in held and region is not None:
                facts.append(inside.fact(block, region))
        return State(facts)


def solve(problem: str, seed: int, semantics: type[ContinuousTamp] = ContinuousTamp) -> PlanResult:
    """Return the plan of a problem."""
    positions, goal = PROBLEMS[problem]
    return tk.plan(
        make_line(positions),
        domain=PythonDomain(semantics.domain, semantics),
        goal=[goal, ArmAt(ROBOT.ready)],
        robot=ROBOT,
        options=PlanningOptions(seed=seed, max_iterations=12, improve=6, suggest=False),
    )


def main() -> None:
    """Plan all problems, validate, and print the plans and the counts of the streams."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for problem in PROBLEMS:
        result = solve(problem, seed)
        assert result.plan is not None, result.explanation
        print(problem, f"with cost {result.plan.cost:.2f}")
        for step in result.plan.steps:
            print(" ", step.action, step.choice, f"{step.value_cost:.2f} m")
        domain = PythonDomain(ContinuousTamp.domain, ContinuousTamp)
        print(tk.validate_plan(result.plan, domain=domain))
        print(*result.diagnosis.streams, sep="\n")


if __name__ == "__main__":
    main()
