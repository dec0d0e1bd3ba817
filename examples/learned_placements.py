"""Learned placement sampler: it is trained on the trials of earlier plans and halves the attempts.

A tray stands half below a board, where the hand has no room. A uniform sampler proposes placements
on the whole tray. Its trials, with their outcomes, train a logistic regression on the position on
the tray. The learned sampler proposes the most promising of a batch of uniform placements first.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.manipulation import Candidate, Grasp, Pick, Place, Placement
from tmkit.pddl import State, make_domain, make_predicate
from tmkit.spatial import Pose
from tmkit.tamp import PlanningOptions, PlanResult, PythonDomain
from tmkit.tamp.streams import SceneView, StreamSemantics, grasps, stream, stream_action

TRAY_SIZE = 0.44
"""Edge length of the square tray [m]."""

BATCH_SIZE = 32
"""Number of uniform placements among which the learned sampler takes the best first."""

on = make_predicate("on", "?b - block ?s - support")
holding = make_predicate("holding", "?b - block")
hand_empty = make_predicate("handempty")


def features(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return features (n, 6) of positions (n, 2) on the tray [m]: products up to degree 2."""
    x, y = (positions / TRAY_SIZE).T
    return np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1)


def fit(positions: NDArray[np.float64], successes: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the weights (6,) of a logistic regression with a small ridge, by Newton's method."""
    inputs, weights = features(positions), np.zeros(6)
    for _ in range(20):
        probabilities = 1.0 / (1.0 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (probabilities - successes) + 0.1 * weights
        spread = probabilities * (1.0 - probabilities)
        hessian = (inputs * spread[:, None]).T @ inputs + 0.1 * np.eye(6)
        weights -= np.linalg.solve(hessian, gradient)
    return weights


def placement(view: SceneView, block: str, position: NDArray[np.float64]) -> Placement:
    """Return the placement of a block at a position (2,) on the tray [m], in any of four turns."""
    (cube,), (board,) = view.shapes(block), view.shapes("tray")
    height = (cube.shape.dimensions[2] + board.shape.dimensions[2]) / 2
    pose = Pose([*position.tolist(), height])
    return Placement("tray", pose, f"at ({position[0]:.3f}, {position[1]:.3f})")


def draw(view: SceneView) -> NDArray[np.float64]:
    """Return uniform positions (32, 2) on the tray [m]."""
    limit = TRAY_SIZE / 2 - 0.03
    return view.rng.uniform(-limit, limit, (BATCH_SIZE, 2))


@stream("?b - block", gives="?p - placement", certifies="(placement ?b ?p)")
def uniform_places(view: SceneView, b: str) -> Iterator[Placement]:
    """Yield placements all over the tray."""
    while True:
        for position in draw(view):
            yield placement(view, b, position)


WEIGHTS = np.zeros(6)
"""(6,) weights of the learned sampler, which :func:`train` sets."""


@stream("?b - block", gives="?p - placement", certifies="(placement ?b ?p)")
def learned_places(view: SceneView, b: str) -> Iterator[Placement]:
    """Yield placements on the tray, the most promising of each batch first."""
    while True:
        positions = draw(view)
        for position in positions[np.argsort(-features(positions) @ WEIGHTS)]:
            yield placement(view, b, position)


@stream_action(
    "?b - block",
    needs=[on("?b", "table"), hand_empty()],
    adds=[holding("?b")],
    deletes=[on("?b", "table"), hand_empty()],
    given="(grasp ?b ?g)",
)
def pick(view: SceneView, b: str, g: Grasp) -> Candidate:
    """Pick a block with a grasp."""
    del view
    return Pick(b, g)


@stream_action(
    "?b - block",
    needs=[holding("?b")],
    adds=[on("?b", "tray"), hand_empty()],
    deletes=[holding("?b")],
    given="(placement ?b ?p)",
)
def place(view: SceneView, b: str, p: Placement) -> Candidate:
    """Place a block on the tray."""
    del view
    return Place.at(b, p)


class UniformTray(StreamSemantics):
    """Blocks on a table and a tray; places are drawn uniformly."""

    domain = make_domain(
        "tray",
        types="block support",
        constants="table tray - support",
        predicates=[on, holding, hand_empty],
        actions=[pick.action, place.action],
    )
    streams = (grasps, uniform_places)
    stream_actions = (pick, place)

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the blocks."""
        return dict.fromkeys(scene.frames_of_class("movable"), "block")

    def state(
        self, scene: tk.SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]
    ) -> State:
        """Return where each block is: its parent is the table, the tray or the hand."""
        del q
        held = [block for block in objects if scene.parent(block) == self.robot.tip]
        facts = [on.fact(b, str(scene.parent(b))) for b in objects if b not in held]
        return State([*facts, *map(holding.fact, held), *([] if held else [hand_empty.fact()])])


class LearnedTray(UniformTray):
    """The same domain with the learned sampler."""

    streams = (grasps, learned_places)


def tray_scene(seed: int) -> tk.SceneGraph:
    """Return the Panda at its table with two blocks at random, and the tray below the board."""
    rng = np.random.default_rng(seed)
    wood, glass = (0.55, 0.35, 0.2, 1.0), (0.4, 0.5, 0.6, 0.5)
    tray = tk.AttachedShape(tk.Box([TRAY_SIZE, TRAY_SIZE, 0.01]), color=wood)
    board = tk.AttachedShape(tk.Box([TRAY_SIZE * 0.5, TRAY_SIZE, 0.01]), color=glass)
    scene = tk.load_scene("panda_table")
    scene = scene.add_frame("tray", "table", pose=Pose([0.0, 0.28, 0.03]), shapes=[tray])
    offset = Pose([TRAY_SIZE * 0.25, 0.0, 0.09])
    scene = scene.add_frame("board", "tray", pose=offset, shapes=[board])
    for name, y in (("a", -0.35), ("b", -0.2)):
        x = rng.uniform(-0.15, 0.05)
        cube = tk.AttachedShape(tk.Box([0.04, 0.04, 0.05]))
        pose = Pose.from_rpy([x, y, 0.05], [0.0, 0.0, rng.uniform(-1.0, 1.0)])
        scene = scene.add_frame(
            name, "table", pose=pose, joint=tk.Free(), classes=["movable"], shapes=[cube]
        )
    return scene


def solve(semantics: type[UniformTray], seeds: Sequence[int]) -> tuple[int, list[PlanResult]]:
    """Return the number of attempts at placements over several scenes, and the results."""
    results = [
        tk.plan(
            tray_scene(seed),
            domain=PythonDomain(semantics.domain, semantics),
            goal="(and (on a tray) (on b tray))",
            robot="panda",
            options=PlanningOptions(seed=seed, max_iterations=4, suggest=False),
        )
        for seed in seeds
    ]
    trials = [trial for result in results for trial in result.trials]
    return sum(trial.stream != "grasps" for trial in trials), results


def train(results: Sequence[PlanResult]) -> None:
    """Set the weights of the learned sampler from the trials of the uniform one."""
    trials = [t for result in results for t in result.trials if t.stream == "uniform_places"]
    positions = np.array([t.value.support_from_object.translation[:2] for t in trials])
    WEIGHTS[:] = fit(positions, np.array([t.succeeded for t in trials]))


def main() -> None:
    """Train on twelve scenes, and count the attempts in twelve others."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "out", help="folder of the results"
    )
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    _, results = solve(UniformTray, range(12))
    train(results)
    uniform_count, _ = solve(UniformTray, range(100, 112))
    learned_count, results = solve(LearnedTray, range(100, 112))
    assert all(result.is_solved for result in results)
    print(
        f"attempts at placements in twelve new scenes: {uniform_count} uniform,"
        f" {learned_count} learned"
    )
    plan = results[0].plan
    assert plan is not None
    domain = PythonDomain(LearnedTray.domain, LearnedTray)
    print(tk.validate_plan(plan, domain=domain))
    print("see", tk.save_html(plan, out / "learned_placements.html"))


if __name__ == "__main__":
    main()
