"""Cost of the semantics of relations: tables of operations, of queries and of scene rules.

Run by hand: ``python tests/benchmarks/relations_table.py [--out
docs/results/tables/relations.md]``; as a benchmark of pytest: ``pytest
tests/benchmarks/relations_table.py --benchmark-enable --benchmark-only``. Each operation is timed
with its checks, with the checks off, and beside the same arithmetic on plain arrays. Times are the
best of many short bursts, all kinds in turn, so that other load slows none more than the others;
the results are the ratios.
"""

from __future__ import annotations

import gc
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pytest
from benchmarks.tables import deliver, markdown_head, table_parser
from pytest_benchmark.fixture import BenchmarkFixture

from tmkit.graph import Evidence, Free, Revolute, SceneArrays, SceneGraph, add_fact, relate, twist
from tmkit.relations import (
    AngularVelocityCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticTwist,
    SemanticWrench,
    TwistCoord,
    WrenchCoord,
    checks_off,
)
from tmkit.relations.representations import HomogeneousMatrix, VectorAndMatrix as Loose
from tmkit.spatial import Pose

BURST, ROUNDS, COUNT = 100, 300, 1000
Work = Callable[[], object]

TURN = Pose.from_rpy([0.1, 0.2, 0.3], [0.4, -0.5, 0.6])
MATRIX, R = TURN.as_matrix(), TURN.rotation
ERROR = 1e-4 * np.eye(6)
SIX, V, W, STEP = np.arange(6.0), np.arange(3.0), np.arange(3.0, 6.0), np.array([0.1, -0.2, 0.3])


@dataclass(frozen=True)
class Operation:
    """An operation, and the same arithmetic on plain arrays."""

    name: str
    meant: Work
    bare: Work


def cross(a: Any, b: Any) -> Any:
    """Return the cross product of two vectors (3,), as the operations do."""
    a0, a1, a2 = a.tolist()
    b0, b1, b2 = b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def invert(matrix: Any) -> Any:
    """Return the inverse of a homogeneous matrix."""
    inverse = np.empty((4, 4))
    inverse[:3, :3] = matrix[:3, :3].T
    inverse[:3, 3] = -(matrix[:3, :3].T @ matrix[:3, 3])
    inverse[3] = 0.0, 0.0, 0.0, 1.0
    return inverse


def operations() -> list[Operation]:
    """Return the operations that are timed."""
    position = SemanticPosition(PositionCoord("e|C", "g|E", "[r]"), V)
    second = SemanticPosition(PositionCoord("g|E", "f|D", "[r]"), W)
    step = SemanticPosition(PositionCoord("e2|C", "e|C", "[r]"), STEP)
    turn = SemanticOrientation(OrientationCoord("[r]|X", "[s]|Y", "[s]"), R)
    first = SemanticOrientation(OrientationCoord("[a]|C", "[g]|E", "[g]"), R)
    then = SemanticOrientation(OrientationCoord("[g]|E", "[b]|D", "[b]"), R)
    pose = SemanticPose(PoseCoord("{a}|C", "{g}|E", "[g]"), MATRIX)
    above = SemanticPose(PoseCoord("{g}|E", "{b}|D", "[b]"), MATRIX)
    loose = pose.with_representation(Loose)
    displacement = SemanticPosition(PositionCoord("p|C", "a|C", "[g]"), STEP)
    twist = SemanticTwist(TwistCoord("e|C", "E", "[r]"), SIX)
    below = SemanticTwist(TwistCoord("e|E", "D", "[r]"), SIX)
    fixed = SemanticTwist(TwistCoord("g|C", "D", "[g]"), SIX / 9)
    wrench = SemanticWrench(WrenchCoord("e|C", "E", "[r]"), SIX)
    return [
        Operation("position: compose", lambda: position.compose(second), lambda: V + W),
        Operation("position: change point", lambda: position.change_point(step), lambda: V + STEP),
        Operation(
            "position: change coordinate frame",
            lambda: position.change_coordinate_frame(turn),
            lambda: R @ V,
        ),
        Operation("orientation: compose", lambda: first.compose(then), lambda: R @ R),
        Operation("orientation: inverse2", lambda: first.inverse2(), lambda: R.T.copy()),
        Operation(
            "pose: compose, as matrices", lambda: pose.compose(above), lambda: MATRIX @ MATRIX
        ),
        Operation("pose: inverse2, as a matrix", lambda: pose.inverse2(), lambda: invert(MATRIX)),
        Operation("pose: change point", lambda: loose.change_point(displacement), lambda: V + STEP),
        Operation("twist: compose", lambda: twist.compose(below), lambda: SIX + SIX),
        Operation(
            "twist: change point",
            lambda: twist.change_point(step),
            lambda: np.concatenate([SIX[:3] + cross(SIX[3:], STEP), SIX[3:]]),
        ),
        Operation(
            "twist: change coordinate frame",
            lambda: twist.change_coordinate_frame(turn),
            lambda: np.concatenate([R @ SIX[:3], R @ SIX[3:]]),
        ),
        Operation(
            "twist: integrate",
            lambda: fixed.integrate(0.1),
            lambda: Pose.exp(SIX / 9 * 0.1).as_matrix(),
        ),
        Operation(
            "wrench: change point",
            lambda: wrench.change_point(step),
            lambda: np.concatenate([SIX[:3], SIX[3:] - cross(STEP, SIX[:3])]),
        ),
        Operation("wrench and twist: power", lambda: wrench.dot(twist), lambda: float(SIX @ SIX)),
    ]


def batches() -> list[Operation]:
    """Return the timed operations on a batch of 1,000, and their arithmetic on plain arrays."""
    random = np.random.default_rng(1)
    six, steps, matrices = (
        random.normal(size=(COUNT, 6)),
        random.normal(size=(COUNT, 3)),
        np.tile(MATRIX, (COUNT, 1, 1)),
    )
    rows = np.tile(TURN.as_array(), (COUNT, 1))
    pose = SemanticPose(PoseCoord("{a}|C", "{g}|E", "[g]"), rows)
    above = SemanticPose(PoseCoord("{g}|E", "{b}|D", "[b]"), rows)
    twist = SemanticTwist(TwistCoord("e|C", "E", "[r]"), six)
    below = SemanticTwist(TwistCoord("e|E", "D", "[r]"), six)
    step = SemanticPosition(PositionCoord("e2|C", "e|C", "[r]"), steps)
    turn = SemanticOrientation(OrientationCoord("[r]|X", "[s]|Y", "[s]"), R)
    return [
        Operation("poses: compose", lambda: pose.compose(above), lambda: matrices @ matrices),
        Operation(
            "poses: compose with one", lambda: pose.compose(above[0]), lambda: MATRIX @ matrices
        ),
        Operation("poses: inverse2", lambda: pose.inverse2(), lambda: np.linalg.inv(matrices)),
        Operation("twists: compose", lambda: twist.compose(below), lambda: six + six),
        Operation(
            "twists: change point",
            lambda: twist.change_point(step),
            lambda: np.hstack([six[:, :3] + np.cross(six[:, 3:], steps), six[:, 3:]]),
        ),
        Operation(
            "twists: change coordinate frame",
            lambda: twist.change_coordinate_frame(turn),
            lambda: np.hstack([six[:, :3] @ R.T, six[:, 3:] @ R.T]),
        ),
    ]


def arm(*, twists: bool) -> SceneGraph:
    """Return an arm of eight links on a base, a hand of two frames and a table with 20 objects."""
    scene = SceneGraph(root=None).add_body("World").add_frame("world", body="World")
    for i in range(8):
        joint = Revolute([0, 1, 0], name=f"joint{i}")
        scene = scene.add_frame(
            f"link{i}", f"link{i - 1}" if i else "world", pose=Pose([0, 0, 0.3]), joint=joint
        )
    scene = scene.add_frame("tool", "link7", pose=Pose([0, 0, 0.1]), body="link7").add_frame(
        "table", "world"
    )
    for i in range(20):
        scene = scene.add_frame(f"thing{i}", "table", pose=Pose([0.1 * i, 0, 0]))
        if twists:
            scene = scene.set_twist(f"thing{i}", SIX, relative_to_body="table")
    return scene


def queries(scene: SceneGraph) -> tuple[Work, dict[str, Work]]:
    """Return a plain pose and the queries with full semantics between the same two frames."""
    q = np.linspace(-1, 1, 8)
    full = PoseCoord("{thing3}|thing3", "{tool}|link7", "[tool]")
    position, turned = PositionCoord("thing3|thing3", "tool|link7", "[tool]"), OrientationCoord
    twist, linear = TwistCoord("thing3|thing3", "table", "[tool]"), LinearVelocityCoord
    orientation = turned("[thing3]|thing3", "[tool]|link7", "[tool]")
    velocity = linear("thing3|thing3", "table", "[tool]")
    spin = AngularVelocityCoord("thing3", "table", "[tool]")
    return lambda: scene.pose("thing3", relative_to="tool", q=q), {
        "pose, as vector and matrix": lambda: relate(scene, full, q=q),
        "pose, as a homogeneous matrix": lambda: relate(
            scene, full, q=q, representation=HomogeneousMatrix
        ),
        "pose, by the method of the scene": lambda: relate(scene, full, q=q),
        "position": lambda: relate(scene, position, q=q),
        "orientation": lambda: relate(scene, orientation, q=q),
        "twist": lambda: relate(scene, twist, q=q),
        "linear velocity": lambda: relate(scene, velocity, q=q),
        "angular velocity": lambda: relate(scene, spin, q=q),
    }


def moving(*, twists: bool) -> SceneGraph:
    """Return a chain of eight edges, alternately a joint and a fixed or free edge with a twist."""
    scene, parent = SceneGraph(), "world"
    for i in range(8):
        joint = Revolute([0, 0, 1]) if i % 2 == 0 else Free() if twists else None
        scene = scene.add_frame(
            f"l{i}", parent, pose=Pose([0.1, 0, 0.2]), **({} if joint is None else {"joint": joint})
        )
        if twists and i % 2:
            scene = scene.set_twist(f"l{i}", SIX, relative_to_body=parent)
        parent = f"l{i}"
    return scene


def spread(frames: int) -> SceneGraph:
    """Return a number of frames in a tree, and a cup in another tree."""
    with SceneGraph().edit() as edit:
        for k in range(frames - 2):
            edit.add_frame(f"f{k}", "world" if k < 10 else f"f{k // 3}", pose=Pose([0.1 * k, 0, 0]))
    return edit.finish().add_root("cup")


def motions_and_facts() -> dict[str, Work]:
    """Return queries of twists, and facts that join a tree."""
    q, qd, pose = np.full(4, 0.1), np.full(4, 0.2), Pose([1, 2, 3])
    fixed, free = moving(twists=False), moving(twists=True)
    arrays, few, many = SceneArrays(free), spread(128), spread(100_000)
    fact = SemanticPose(PoseCoord("{cup}|cup", "{f120}|f120", "[f120]"), pose)
    return {
        "`graph.twist` over 8 edges, 4 of them joints, 4 fixed": lambda: twist(
            fixed, "l7", q=q, qd=qd
        ),
        "the same, 4 of them with twist edges": lambda: twist(free, "l7", q=q, qd=qd),
        "the same of `SceneArrays`, six numbers": lambda: arrays.twist("l7", q=q, qd=qd),
        "`add_fact`, an exact pose that joins a tree, 128 frames": lambda: add_fact(few, fact),
        "the same, 100,000 frames": lambda: add_fact(many, fact),
        "the same with a covariance, kept as an observation, 128 frames": lambda: add_fact(
            few, fact, evidence=Evidence(covariance=ERROR)
        ),
        "the same without a relation: `attach`, 128 frames": lambda: few.attach(
            "cup", "f120", pose=pose
        ),
        "`reparent`, 128 frames, none of this in use": lambda: few.reparent(
            "f120", "f90", pose=pose
        ),
        "`pose` over 8 edges, none of this in use": lambda: fixed.pose("l7", q=q),
    }


def best(work: dict[str, Work], *, rounds: int = ROUNDS) -> dict[str, float]:
    """Return the time of each work item, the best of many short interleaved bursts [us]."""
    best_times = dict.fromkeys(work, np.inf)
    gc.disable()
    for _ in range(rounds):
        for name, piece in work.items():
            began = time.perf_counter()
            for _ in range(BURST):
                piece()
            best_times[name] = min(best_times[name], (time.perf_counter() - began) / BURST * 1e6)
    gc.enable()
    return best_times


def measure_operations() -> list[tuple[str, float, float, float]]:
    """Return name and times [us] of an operation: arithmetic, without checks, and with checks."""
    rows = []
    for operation in operations():
        checked = bare = unchecked = np.inf
        for _ in range(6):
            times = best({"bare": operation.bare, "on": operation.meant}, rounds=ROUNDS // 6)
            with checks_off():
                unchecked = min(
                    unchecked, best({"off": operation.meant}, rounds=ROUNDS // 6)["off"]
                )
            bare, checked = min(bare, times["bare"]), min(checked, times["on"])
        rows.append((operation.name, bare, unchecked, checked))
    return rows


def measure_edits() -> dict[str, float]:
    """Return microseconds of edits, in scenes with and without twists."""
    still, moving = arm(twists=False), arm(twists=True)
    grasp = Pose([0, 0, 0.1])
    # the second tree holds one body, so that the rules look at all that they have to
    return best(
        {
            "reparent": lambda: still.reparent("thing3", "tool", pose=grasp),
            "reparent, twenty twists in the scene": lambda: moving.reparent(
                "thing3", "tool", pose=grasp
            ),
            "set_pose": lambda: still.set_pose("thing3", grasp),
            "set_pose, twenty twists in the scene": lambda: moving.set_pose("thing3", grasp),
            "set_twist on one of twenty": lambda: moving.set_twist(
                "thing3", SIX, relative_to_body="table"
            ),
        }
    )


def page() -> str:
    """Measure, and return the results as a Markdown page."""
    rows = measure_operations()
    table = [
        *markdown_head(
            "operation | arithmetic | checks off | checks on | checks cost | on / arithmetic"
        ),
        *(
            f"| {name} | {bare:.2f} µs | {unchecked:.2f} µs | {checked:.2f} µs |"
            f" {checked - unchecked:.2f} µs | {checked / bare:.1f} |"
            for name, bare, unchecked, checked in rows
        ),
    ]
    most = max(checked - unchecked for _, _, unchecked, checked in rows)
    many = [
        (
            operation.name,
            *(
                took * 1e3 / COUNT
                for took in best({"m": operation.meant, "b": operation.bare}, rounds=20).values()
            ),
        )
        for operation in batches()
    ]
    batch_table = [
        *markdown_head("operation | each | arithmetic of numpy, each | ratio"),
        *(
            f"| {name} | {meant:.1f} ns | {bare:.1f} ns | {meant / bare:.2f} |"
            for name, meant, bare in many
        ),
    ]
    plain, query_rows = queries(arm(twists=True))
    times = best({"plain": plain, **query_rows})
    query_table = [
        *markdown_head("query | time | more than `pose()`"),
        f"| `scene.pose(...)`, without semantics | {times['plain']:.2f} µs | |",
        *(
            f"| {name} | {times[name]:.2f} µs | {times[name] - times['plain']:.2f} µs |"
            for name in query_rows
        ),
    ]
    edits = measure_edits()
    moved = best(motions_and_facts())
    edit_table = [
        "| edit | time |",
        "|---|---|",
        *(f"| {name} | {took:.2f} µs |" for name, took in edits.items()),
    ]
    motion_table = [
        "| work | time |",
        "|---|---|",
        *(f"| {name} | {took:.2f} µs |" for name, took in moved.items()),
    ]
    parts = [
        "# Cost of relations with semantics",
        wrap(
            "The result of the checks of an operation depends on the coordinates alone and is"
            f" cached: checks cost at most {most:.2f} µs. An operation is that look-up, one call"
            " of the arithmetic and one new object. The core composes poses, faster than numpy"
            " multiplies two matrices."
        ),
        "\n".join(table),
        f"## Batches of {COUNT:,}",
        "\n".join(batch_table),
        "## Queries of a scene",
        wrap(
            "Over eleven edges, from an object on a table to the tool of an arm. The core"
            " computes the numbers and checks the names in one call; the rest is the construction"
            " of the relation."
        ),
        "\n".join(query_table),
        "## Twists and facts",
        "\n".join(motion_table),
        "## Consistency rules of a scene",
        wrap(
            "A reparent checks for cycles, for bodies that would have two paths, and for parts of"
            " one body that would move; a build of the core without these three checks is faster"
            " by 0.07 µs, an eighth. Twists are checked only in scenes that have some, and by an"
            " edit of poses only if it joins two parts of one body."
        ),
        "\n".join(edit_table),
        wrap(
            "Written by `python tests/benchmarks/relations_table.py --out"
            " docs/results/tables/relations.md`. Times are those of a call from Python, the best"
            " of many short bursts on two shared cores."
        ),
    ]
    return "\n\n".join(parts) + "\n"


def wrap(text: str) -> str:
    """Return a paragraph in lines."""
    return textwrap.fill(text, width=118, break_long_words=False, break_on_hyphens=False)


# --- as benchmarks of pytest


@pytest.mark.parametrize("operation", operations(), ids=lambda operation: operation.name)
def test_operation(benchmark: BenchmarkFixture, operation: Operation) -> None:
    """An operation with its checks."""
    benchmark(operation.meant)


@pytest.mark.parametrize("operation", operations(), ids=lambda operation: operation.name)
def test_arithmetic(benchmark: BenchmarkFixture, operation: Operation) -> None:
    """The same on plain arrays."""
    benchmark(operation.bare)


@pytest.mark.parametrize("name", list(queries(arm(twists=True))[1]))
def test_query(benchmark: BenchmarkFixture, name: str) -> None:
    """A query with full semantics."""
    benchmark(queries(arm(twists=True))[1][name])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the page or write it."""
    parser = table_parser(__doc__)
    chosen = parser.parse_args(arguments)
    text = page()
    deliver(text, chosen.out)


if __name__ == "__main__":
    main()
