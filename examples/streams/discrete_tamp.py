"""Blocks on a line with a finite list of poses.

It corresponds to `examples/discrete_tamp` of PDDLStream: one block goes to a pose where another one
stands. There, poses and configurations are objects of PDDL, and a separate action moves the arm.
Here, they are values, and a pick or a place includes the motion to it, which is checked for
collisions. The pose of the goal is a site of its own, since a PDDL goal cannot name values.
"""

import sys
from collections.abc import Iterator, Mapping

import numpy as np
from gantry import ROBOT, SIZE, make_line, top_grasp
from numpy.typing import NDArray

import tmkit as tk
from tmkit.manipulation import Candidate, Grasp, Pick, Place, Placement
from tmkit.pddl import State, make_domain, make_predicate
from tmkit.tamp import PlanningOptions, PlanResult, PythonDomain
from tmkit.tamp.streams import SceneView, StreamSemantics, stream, stream_action

POSES = tuple(0.06 * number for number in range(9))
"""Positions of blocks on the line [m]. The first three are occupied at the start."""

GOAL = POSES[1]
"""Position of the goal [m]."""

at = make_predicate("at", "?b - block ?s - site")
holding = make_predicate("holding", "?b - block")
hand_empty = make_predicate("handempty")


def position(pose: tk.Pose) -> float:
    """Return the position of a pose on the line [m]."""
    return float(pose.translation[0])


@stream("?s - site", gives="?p - placement", certifies="(pose ?s ?p)")
def sample_pose(view: SceneView, s: str) -> Iterator[Placement]:
    """Yield the pose of the goal, or all other poses of the line."""
    del view
    for x in [GOAL] if s == "goal" else [x for x in POSES if x != GOAL]:
        yield Placement("line", tk.Pose([x, 0.0, SIZE / 2]), f"at {x:.2f} m")


@stream("?b - block ?p - placement", certifies="(free ?b ?p)")
def is_free(view: SceneView, b: str, p: Placement) -> bool:
    """Accept a pose without another block."""
    others = [position(view.local_pose(o)) for o in view.children("line") if o != b]
    return all(abs(x - position(p.support_from_object)) > SIZE for x in others)


@stream("?p - placement", cost="(distance ?p)")
def distance(view: SceneView, p: Placement) -> float:
    """Return the distance of a pose from the arm [m]."""
    return abs(position(p.support_from_object) - position(view.pose("cup")))


@stream_action(
    "?b - block ?s - site",
    needs=[at("?b", "?s"), hand_empty()],
    adds=[holding("?b")],
    deletes=[at("?b", "?s"), hand_empty()],
    given="(grasp ?b ?g)",
)
def pick(view: SceneView, b: str, g: Grasp) -> Candidate:
    """Pick a block."""
    del view
    return Pick(b, g)


@stream_action(
    "?b - block ?s - site",
    needs=[holding("?b")],
    adds=[at("?b", "?s"), hand_empty()],
    deletes=[holding("?b")],
    given="(pose ?s ?p) (free ?b ?p)",
    costs="(distance ?p)",
)
def place(view: SceneView, b: str, p: Placement) -> Candidate:
    """Place a block at a free pose."""
    del view
    return Place.at(b, p)


class DiscreteTamp(StreamSemantics):
    """Blocks at the goal, on the rest of the line or in the hand."""

    domain = make_domain(
        "discrete-tamp",
        types="block site",
        constants="line goal - site",
        predicates=[at, holding, hand_empty],
        actions=[pick.action, place.action],
    )
    streams = (top_grasp, sample_pose, is_free, distance)
    stream_actions = (pick, place)

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the blocks."""
        return dict.fromkeys(scene.frames_of_class("movable"), "block")

    def state(
        self, scene: tk.SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]
    ) -> State:
        """Return the site of each block, and the block in the hand."""
        del q
        held = [block for block in objects if scene.parent(block) == self.robot.tip]
        sites = {
            block: "goal" if abs(position(scene.local_pose(block)) - GOAL) < 1e-6 else "line"
            for block in objects
            if block not in held
        }
        facts = [*map(holding.fact, held), *([] if held else [hand_empty.fact()])]
        return State([*facts, *(at.fact(block, site) for block, site in sites.items())])


def solve(seed: int, semantics: type[DiscreteTamp] = DiscreteTamp) -> PlanResult:
    """Return the plan that brings the first block to the pose of the second one."""
    return tk.plan(
        make_line({"a": POSES[0], "b": POSES[1], "c": POSES[2]}),
        domain=PythonDomain(semantics.domain, semantics),
        goal="(at a goal)",
        robot=ROBOT,
        options=PlanningOptions(seed=seed, max_iterations=12, improve=6, suggest=False),
    )


def main() -> None:
    """Plan, validate, and print the plan and the counts of the streams."""
    result = solve(seed=int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    assert result.plan is not None, result.explanation
    for step in result.plan.steps:
        print(step.action, step.choice, f"{step.value_cost:.2f} m")
    domain = PythonDomain(DiscreteTamp.domain, DiscreteTamp)
    print(tk.validate_plan(result.plan, domain=domain))
    print(*result.diagnosis.streams, sep="\n")


if __name__ == "__main__":
    main()
