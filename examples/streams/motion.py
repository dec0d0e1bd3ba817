"""Point robot among obstacles: a roadmap of sampled configurations, with their distances as costs.

It corresponds to `examples/motion` of PDDLStream. There, an action moves between two sampled
configurations, which are objects of PDDL. Here, vertices are objects whose configurations are
values: the task planner decides on the number of vertices, and the refinement selects samples.
"""

import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.graph import change_task_facts
from tmkit.manipulation import Candidate, MoveTo
from tmkit.pddl import State, make_domain, make_predicate
from tmkit.tamp import PlanningOptions, PlanResult, PythonDomain
from tmkit.tamp.streams import SceneView, StreamSemantics, stream, stream_action

RADIUS = 0.02
"""Radius of the robot [m]."""

MAX_DISTANCE = 0.6
"""Largest length of an edge of the roadmap [m]."""

N_SAMPLES = 40
"""Number of samples of a vertex."""

N_VIA = 4
"""Number of vertices between the start and the goal."""

REGIONS = {"room": ([0.0, 0.0], [1.0, 1.0]), "green": ([0.8, 0.8], [1.0, 1.0])}
"""Corners of the regions in the plane [m]."""

OBSTACLES = (([0.5, 0.5], [0.3, 0.3]), ([0.85, 0.45], [0.3, 0.1]))
"""Centres and sizes of the obstacles [m]."""

ROBOT = tk.Manipulator(
    "point",
    base="world",
    tip="point",
    tool="point",
    joints=("x", "y"),
    ready={"x": 0.1, "y": 0.1},
    gripper_kind="none",
)

at = make_predicate("at", "?v - vertex")
adjacent = make_predicate("adjacent", "?v ?w - vertex")


@stream("?w - vertex", gives="?q - configuration", certifies="(sample ?w ?q)")
def sample_region(view: SceneView, w: str) -> Iterator[NDArray[np.float64]]:
    """Yield configurations in the region of a vertex."""
    lower, upper = REGIONS["green" if w == "green" else "room"]
    yield from view.rng.uniform(lower, upper, (N_SAMPLES, 2))


@stream("?q - configuration", certifies="(connected ?q)")
def connect(view: SceneView, q: NDArray[np.float64]) -> bool:
    """Accept a configuration that a short free edge connects with the current one."""
    length = float(np.linalg.norm(q - view.q))
    points = view.q + np.linspace(0.0, 1.0, 2 + int(100 * length))[:, None] * (q - view.q)
    for obstacle in view.frames_of_class("obstacle"):
        (box,) = view.shapes(obstacle)
        centre = view.pose(obstacle).translation[:2]
        outside = np.abs(points - centre) - np.array(box.shape.dimensions[:2]) / 2
        if np.any(np.max(outside, axis=1) < RADIUS + 0.01):
            return False
    return length <= MAX_DISTANCE


@stream("?q - configuration", cost="(distance ?q)")
def distance(view: SceneView, q: NDArray[np.float64]) -> float:
    """Return the distance from the current configuration [m]."""
    return float(np.linalg.norm(q - view.q))


@stream_action(
    "?v ?w - vertex",
    needs=[at("?v"), adjacent("?v", "?w")],
    adds=[at("?w")],
    deletes=[at("?v")],
    given="(sample ?w ?q) (connected ?q)",
    costs="(distance ?q)",
)
def move(view: SceneView, q: NDArray[np.float64], w: str) -> Candidate:
    """Move to a sample of the next vertex."""
    del view
    return MoveTo(q, w)


class Roadmap(StreamSemantics):
    """Vertices of a path: the start, vertices anywhere in the room, and one in the goal region."""

    domain = make_domain("motion", types="vertex", predicates=[at, adjacent], actions=[move.action])
    streams = (sample_region, connect, distance)
    stream_actions = (move,)
    stored_predicates = frozenset({"at"})
    moving_actions = frozenset({"move"})

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the vertices in the order of the path."""
        del scene
        return dict.fromkeys(["start", *(f"via{i}" for i in range(N_VIA)), "green"], "vertex")

    def state(
        self, scene: tk.SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]
    ) -> State:
        """Return the pairs of adjacent vertices: via points in order, each followed by the goal."""
        del scene, q
        *path, goal = objects
        pairs = [*pairwise(path), *((vertex, goal) for vertex in path)]
        return State(adjacent.fact(v, w) for v, w in pairs)


def room() -> tk.SceneGraph:
    """Return the robot at the start vertex among its obstacles."""
    scene = tk.SceneGraph()
    scene = scene.add_frame("x", "world", joint=tk.Prismatic([1, 0, 0], lower=0.0, upper=1.0))
    ball = tk.AttachedShape(tk.Sphere(RADIUS))
    joint = tk.Prismatic([0, 1, 0], lower=0.0, upper=1.0)
    scene = scene.add_frame("y", "x", joint=joint).add_frame("point", "y", shapes=[ball])
    for number, (centre, size) in enumerate(OBSTACLES):
        box = tk.AttachedShape(tk.Box([*size, 0.1]))
        pose = tk.Pose([*centre, 0.0])
        scene = scene.add_frame(
            f"obstacle{number}", "world", pose=pose, shapes=[box], classes=["obstacle"]
        )
    return change_task_facts(scene, ["(at start)"])


def solve(seed: int, improve: int = 0, semantics: type[Roadmap] = Roadmap) -> PlanResult:
    """Return the plan to the goal region after some iterations of improvement."""
    return tk.plan(
        room(),
        domain=PythonDomain(semantics.domain, semantics),
        goal="(at green)",
        robot=ROBOT,
        options=PlanningOptions(seed=seed, max_iterations=8, improve=improve, suggest=False),
    )


def main() -> None:
    """Plan, improve the plan, and print both."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for improve in (0, 60):
        result = solve(seed, improve)
        assert result.plan is not None, result.explanation
        for step in result.plan.steps:
            print(step.action, f"{step.value_cost:.2f} m", step.q.round(2))
        print(f"cost {result.plan.cost:.2f} after {improve} iterations of improvement")
        print(tk.validate_plan(result.plan, domain=PythonDomain(Roadmap.domain, Roadmap)))
    print(*result.diagnosis.streams, sep="\n")


if __name__ == "__main__":
    main()
