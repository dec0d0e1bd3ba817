"""Speed of the motion core: a Panda at a table with ten blocks, relative to pinocchio.

Run by hand: ``pytest tests/benchmarks/bench_motion.py --benchmark-enable --benchmark-only
--benchmark-group-by=group``. The results are the ratios; the times depend on the machine and on
its load.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pinocchio
import pytest
from benchmarks.tables import least_times
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture
from support.motion_scenes import ARM, BOXES, TIP, Query, blocks_scene, cubby_query, wall_query
from support.pinocchio_oracle import PinocchioOracle

from tmkit.graph import SceneGraph
from tmkit.motion import (
    CollisionWorld,
    PathConstraint,
    PathSettings,
    PathStatus,
    inverse_kinematics,
    recheck_path,
    search_path,
)

NEVER = {("panda_link0", name): -math.inf for name in BOXES}


@pytest.fixture(scope="module")
def scene() -> SceneGraph:
    """The arm, the table and the blocks."""
    return blocks_scene()


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
    return least_times([run], repeat)[0]


@pytest.mark.benchmark(group="state check")
def test_check(benchmark: BenchmarkFixture, world: CollisionWorld, qs: NDArray[np.float64]) -> None:
    """Collision checks of single configurations from Python."""
    benchmark(lambda: [world.is_in_collision(q) for q in qs])


@pytest.mark.benchmark(group="state check")
def test_check_batch(
    benchmark: BenchmarkFixture, world: CollisionWorld, qs: NDArray[np.float64]
) -> None:
    """All configurations in one call."""
    benchmark(world.in_collision_batch, qs)


@pytest.mark.benchmark(group="state check")
def test_check_beside_pinocchio(
    benchmark: BenchmarkFixture, world: CollisionWorld, qs: NDArray[np.float64]
) -> None:
    """Ratio of a collision check to pinocchio's broad phase, both called from Python in one run."""
    oracle = PinocchioOracle("panda", BOXES, world)
    manager = oracle.broad_phase()
    theirs = [oracle.configuration(q) for q in qs]
    ours = list(qs)
    other = process_time_of(
        lambda: [
            pinocchio.computeCollisions(oracle.model, oracle.data, manager, q, True) for q in theirs
        ]
    )
    own = process_time_of(lambda: [world.is_in_collision(q) for q in ours])
    benchmark.extra_info["ratio_to_pinocchio"] = own / other
    benchmark(lambda: [world.is_in_collision(q) for q in ours])
    print(f"\none check takes {own / other:.2f} of the time of pinocchio's broad phase")


@pytest.mark.benchmark(group="construction")
def test_construct_world(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """A world of a version whose hulls are known."""
    benchmark(CollisionWorld, scene, margin=0.001, pair_margins=NEVER)


@pytest.mark.benchmark(group="inverse kinematics")
def test_inverse_kinematics(
    benchmark: BenchmarkFixture, scene: SceneGraph, qs: NDArray[np.float64]
) -> None:
    """200 reachable random poses with up to 25 restarts."""
    targets = [scene.pose(TIP, relative_to="world", q=q) for q in qs[:200]]
    middle = scene.joint_limits.mean(axis=1)
    results = benchmark(
        lambda: [
            inverse_kinematics(scene, TIP, target_pose=t, joints=ARM, q=middle) for t in targets
        ]
    )
    assert all(result.status.name == "SOLVED" for result in results)


@pytest.mark.benchmark(group="versions")
def test_first_check_of_a_version(
    benchmark: BenchmarkFixture, scene: SceneGraph, qs: NDArray[np.float64]
) -> None:
    """Ratio of a check with a block in the hand, after one edit of the world, to a plain check."""
    world = CollisionWorld(scene, pair_margins=NEVER)
    versions = [scene.reparent(f"block{i % 10}", "panda_hand", q=q) for i, q in enumerate(qs)]
    held = world.moved_to(versions[0])
    pairs = list(zip(versions, qs, strict=True))
    plain = process_time_of(lambda: [world.is_in_collision(q) for q in qs], 15)
    first = process_time_of(
        lambda: [world.moved_to(version).is_in_collision(q) for version, q in pairs], 15
    )
    later = process_time_of(lambda: [held.is_in_collision(q) for q in qs], 15)
    benchmark.extra_info |= {"first_to_plain": first / plain, "later_to_plain": later / plain}
    benchmark(lambda: [world.moved_to(version).is_in_collision(q) for version, q in pairs])
    print(
        f"\nfirst check {first / plain:.2f}, later checks {later / plain:.2f} of the time of a"
        " plain check"
    )


@pytest.mark.benchmark(group="versions")
def test_move_world(
    benchmark: BenchmarkFixture, scene: SceneGraph, qs: NDArray[np.float64]
) -> None:
    """Only moving the world to versions that differ in one parent."""
    world = CollisionWorld(scene, pair_margins=NEVER)
    versions = [scene.reparent(f"block{i % 10}", "panda_hand", q=q) for i, q in enumerate(qs)]
    benchmark(lambda: [world.moved_to(version) for version in versions])


@pytest.mark.benchmark(group="path search")
@pytest.mark.parametrize("cuts", [0, 100])
@pytest.mark.parametrize("make_query", [wall_query, cubby_query])
def test_query(benchmark: BenchmarkFixture, make_query: Callable[[], Query], cuts: int) -> None:
    """The wall and the cubby, 20 seeds, with and without shortening."""
    query = make_query()
    world, plain = query.world(0.001), query.world(0.0)
    results = benchmark(
        lambda: [
            search_path(
                world,
                ARM,
                start=query.start,
                goals=query.goal,
                settings=PathSettings(seed=seed, shortcut_iterations=cuts),
            )
            for seed in range(20)
        ]
    )
    assert all(result.status is PathStatus.SOLVED for result in results)
    assert all(recheck_path(plain, result.path, tool_frame=TIP).is_ok for result in results)


@pytest.mark.benchmark(group="path search")
@pytest.mark.parametrize("degrees", [20.0, 5.0, 1.0])
def test_constrained_query(benchmark: BenchmarkFixture, degrees: float) -> None:
    """Ratio of a query with the hand upright within an angle to the query without constraints."""
    query = wall_query()
    world = query.world(0.001)
    upright = PathConstraint(
        "orientation", TIP, tolerance=math.radians(degrees), direction=(0.0, 0.0, -1.0)
    )

    def searches(*constraints: PathConstraint) -> list[PathStatus]:
        return [
            search_path(
                world,
                ARM,
                start=query.start,
                goals=query.goal,
                constraints=constraints,
                settings=PathSettings(seed=seed),
            ).status
            for seed in range(20)
        ]

    ratio = process_time_of(lambda: searches(upright)) / process_time_of(searches)
    benchmark.extra_info["ratio_to_unconstrained"] = ratio
    assert set(benchmark(searches, upright)) == {PathStatus.SOLVED}
    print(f"\nupright within {degrees:g} degrees takes {ratio:.1f} of the time without constraints")
