"""Speed of the motion core: a Panda before a table with ten blocks, as ratios to pinocchio where it can do the same.

Run by hand: ``pytest tests/benchmarks/bench_motion.py --benchmark-enable --benchmark-only --benchmark-group-by=group``.
The ratios are what counts; the times depend on the machine and on what else runs there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pinocchio
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture
from support.pinocchio_oracle import PinocchioOracle, add_boxes, robot_scene

from tmkit.graph import SceneGraph
from tmkit.motion import (
    CollisionWorld,
    PathStatus,
    inverse_kinematics,
    inverse_kinematics_solutions,
    recheck_path,
    search_path,
)
from tmkit.spatial import Pose

ARM = [f"panda_joint{i}" for i in range(1, 8)]
TIP = "panda_grasptarget"
BOXES = {"table": ((0.8, 1.2, 0.04), (0.7, 0.0, -0.03))} | {
    f"block{i}": ((0.05, 0.05, 0.05), (0.4 + 0.1 * (i % 5), -0.3 + 0.6 * (i // 5), 0.025)) for i in range(10)
}
WALL = {"wall": ((0.5, 0.04, 0.34), (0.55, 0.0, 0.22))}
NEVER = {("panda_link0", name): -math.inf for name in BOXES}


@pytest.fixture(scope="module")
def scene() -> SceneGraph:
    """The arm, the table and the blocks."""
    return add_boxes(robot_scene("panda"), BOXES)


@pytest.fixture(scope="module")
def world(scene: SceneGraph) -> CollisionWorld:
    """All pairs without a margin."""
    return CollisionWorld(scene, pair_margins=NEVER)


@pytest.fixture(scope="module")
def qs(scene: SceneGraph) -> NDArray[np.float64]:
    """Random configurations."""
    limits = scene.joint_limits
    return np.random.default_rng(2).uniform(limits[:, 0], limits[:, 1], (2000, len(limits)))


def process_time_of(run: Callable[[], object], repeat: int = 5) -> float:
    """The least CPU time of several runs, in seconds."""
    best = math.inf
    for _ in range(repeat):
        began = time.process_time()
        run()
        best = min(best, time.process_time() - began)
    return best


@pytest.mark.benchmark(group="state check")
def test_check(benchmark: BenchmarkFixture, world: CollisionWorld, qs: NDArray[np.float64]) -> None:
    """One configuration at a time from Python."""
    benchmark(lambda: [world.in_collision(q) for q in qs])


@pytest.mark.benchmark(group="state check")
def test_check_batch(benchmark: BenchmarkFixture, world: CollisionWorld, qs: NDArray[np.float64]) -> None:
    """All configurations in one call."""
    benchmark(world.in_collision_batch, qs)


@pytest.mark.benchmark(group="state check")
def test_check_beside_pinocchio(benchmark: BenchmarkFixture, world: CollisionWorld, qs: NDArray[np.float64]) -> None:
    """A check beside pinocchio's broad phase in the same run, both called from Python; the ratio is what counts."""
    oracle = PinocchioOracle("panda", BOXES, world)
    manager = oracle.broad_phase()
    theirs = [oracle.configuration(q) for q in qs]
    ours = list(qs)
    other = process_time_of(
        lambda: [pinocchio.computeCollisions(oracle.model, oracle.data, manager, q, True) for q in theirs]
    )
    own = process_time_of(lambda: [world.in_collision(q) for q in ours])
    benchmark.extra_info["ratio_to_pinocchio"] = own / other
    benchmark(lambda: [world.in_collision(q) for q in ours])
    print(f"\none check takes {own / other:.2f} of the time of pinocchio's broad phase")


@pytest.mark.benchmark(group="construction")
def test_construct_world(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """A world of a version whose hulls are known."""
    benchmark(CollisionWorld, scene, margin=0.001, pair_margins=NEVER)


@pytest.mark.benchmark(group="inverse kinematics")
def test_inverse_kinematics(benchmark: BenchmarkFixture, scene: SceneGraph, qs: NDArray[np.float64]) -> None:
    """200 reachable random poses with up to 25 restarts."""
    targets = [scene.pose(TIP, "world", q=q) for q in qs[:200]]
    middle = scene.joint_limits.mean(axis=1)
    results = benchmark(lambda: [inverse_kinematics(scene, TIP, target=t, joints=ARM, q=middle) for t in targets])
    assert all(result.status.name == "SOLVED" for result in results)


@pytest.mark.benchmark(group="path search")
@pytest.mark.parametrize("cuts", [0, 100])
def test_path_around_a_wall(benchmark: BenchmarkFixture, cuts: int) -> None:
    """From one side of a wall to the other, 20 seeds, with and without shortening."""
    scene = add_boxes(robot_scene("panda"), BOXES | WALL)
    world = CollisionWorld(scene, margin=0.001, pair_margins=NEVER)
    ready = scene.configuration({"panda_joint4": -1.8, "panda_joint6": 1.8, "panda_finger_joint1": 0.04})
    start, goal = (
        inverse_kinematics_solutions(
            scene, TIP, target=Pose([0.5, y, 0.15], [1, 0, 0, 0]), joints=ARM, q=ready, count=1, world=world
        ).configurations[0]
        for y in (-0.3, 0.3)
    )
    results = benchmark(
        lambda: [
            search_path(world, ARM, start=start, goals=goal, seed=seed, shortcut_iterations=cuts) for seed in range(20)
        ]
    )
    assert all(result.status is PathStatus.SOLVED for result in results)
    plain = CollisionWorld(scene, pair_margins=NEVER)
    passed = sum(recheck_path(plain, result.path, tool_frame=TIP).ok for result in results)
    benchmark.extra_info["rechecks_passed"] = f"{passed}/20"
