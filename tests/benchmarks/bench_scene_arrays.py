"""Speed of the arrays of control loops: edits, poses, and kinematics against a plain C++ loop.

Run by hand: ``pytest tests/benchmarks/bench_scene_arrays.py --benchmark-enable --benchmark-only
-s``. The results are ratios: the floor is compiled here from ``floors.cpp``, with and without
vectors of two numbers, and measured in the same run, in turns with ours; the faster floor counts.
Our times include the call from Python.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from support.floors import REPEAT, Floor, compile_floors, floor_of_same_bits

from tmkit.graph import Fixed, Revolute, SceneArrays, SceneGraph
from tmkit.spatial import Pose

FRAMES = 128
MIXES = [0, 32, 127]


def least_times(*calls: Callable[[], object], rounds: int = 300, number: int = 20) -> list[float]:
    """Return the least time of one call of each, in seconds, taken in turns."""
    best = [math.inf] * len(calls)
    for _ in range(rounds):
        for which, call in enumerate(calls):
            began = time.perf_counter()
            for _ in range(number):
                call()
            best[which] = min(best[which], (time.perf_counter() - began) / number)
    return best


def tree(joints: int) -> SceneGraph:
    """Return 16 chains of eight frames, the first so many of them turning."""
    rng = np.random.default_rng(0)
    with SceneGraph().edit() as edit:
        for i in range(FRAMES - 1):
            joint = Revolute(rng.normal(size=3)) if i < joints else Fixed()
            pose = Pose.from_rpy(rng.uniform(-1, 1, 3), rng.uniform(-3, 3, 3))
            edit.add_frame(
                f"frame{i}", f"frame{i - 1}" if i % 8 else "world", pose=pose, joint=joint
            )
    return edit.finish()


@pytest.fixture(scope="module", params=MIXES)
def scene(request: pytest.FixtureRequest) -> SceneGraph:
    """Return a scene of 128 frames with so many revolute joints."""
    return tree(request.param)


@pytest.fixture(scope="module")
def floors(tmp_path_factory: pytest.TempPathFactory) -> list[ctypes.CDLL]:
    """Compile the floors, with and without vectors."""
    return compile_floors(tmp_path_factory.mktemp("floors"))


@pytest.fixture(scope="module")
def same_bits(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Compile the floor that computes the same bits."""
    return floor_of_same_bits(tmp_path_factory.mktemp("same_bits"))


def test_forward_beside_a_plain_loop(
    benchmark: BenchmarkFixture,
    scene: SceneGraph,
    floors: list[ctypes.CDLL],
    same_bits: ctypes.CDLL,
) -> None:
    """Ratio of forward kinematics to the floor, with equal bits except those of the C sines."""
    q = np.linspace(-1.0, 1.0, len(scene.joint_names))
    arrays, floor = SceneArrays(scene, 256), Floor(scene)
    ours, *loops = least_times(
        lambda: arrays.forward(q), *(floor.runner(library, q) for library in floors)
    )
    theirs = min(loops) / REPEAT
    assert np.allclose(arrays.poses, floor.poses[floor.rows], rtol=0.0, atol=1e-14)
    floor.runner(same_bits, q)()
    assert np.array_equal(arrays.poses, floor.poses[floor.rows])
    benchmark.extra_info["ratio_to_floor"] = ours / theirs
    benchmark(arrays.forward, q)
    print(
        f"\n{len(q)} of {FRAMES} frames turn: forward {ours * 1e6:.2f} us, {ours / theirs:.2f} of"
        " the plain loop"
    )


def test_reparent(benchmark: BenchmarkFixture) -> None:
    """Hand a frame to and fro, with all checks; half the moves mend the order."""
    arrays = SceneArrays(tree(32), 256)
    grasp = Pose([0, 0, 0.1])

    def both() -> None:
        arrays.reparent("frame126", "frame5", pose=grasp)
        arrays.reparent("frame126", "frame111", pose=grasp)

    (ours,) = least_times(both)
    benchmark(both)
    print(f"\na reparent takes {ours / 2 * 1e6:.3f} us at {FRAMES} frames")


def test_reparent_beside_the_persistent_scene(benchmark: BenchmarkFixture) -> None:
    """A reparent in place beside one that makes a new version."""
    scene = tree(32)
    arrays = SceneArrays(scene, 256)
    grasp, other = Pose([0, 0, 0.1]), Pose([0, 0, 0.2])

    def both() -> None:
        arrays.reparent("frame126", "frame5", pose=grasp)
        arrays.reparent("frame126", "frame5", pose=other)

    ours, theirs = least_times(both, lambda: scene.reparent("frame126", "frame5", pose=grasp))
    benchmark.extra_info["ratio_to_persistent"] = ours / 2 / theirs
    benchmark(both)
    print(f"\na reparent in place takes {ours / 2 / theirs:.2f} of the time of a new version")


def test_reparent_keeping_the_pose(benchmark: BenchmarkFixture) -> None:
    """Pick up a frame where it stands, and put it back."""
    arrays = SceneArrays(tree(32), 256)

    def both() -> None:
        arrays.reparent("frame126", "frame5")
        arrays.reparent("frame126", "frame111")

    benchmark(both)


def test_set_pose(benchmark: BenchmarkFixture) -> None:
    """Say where a frame stands, as a camera does."""
    arrays = SceneArrays(tree(32), 256)
    poses = [Pose([0, 0, 0.1]), Pose([0, 0, 0.2])]

    def both() -> None:
        for pose in poses:
            arrays.set_pose("frame126", pose)

    benchmark(both)


def test_pose(benchmark: BenchmarkFixture) -> None:
    """Read a pose that forward kinematics has computed."""
    arrays = SceneArrays(tree(127), 256)
    assert benchmark(arrays.pose, "frame126") == arrays.pose("frame126", relative_to="world")


def test_relative_pose(benchmark: BenchmarkFixture) -> None:
    """Ask for the pose of one hand relative to another, eight joints away from the root each."""
    scene = tree(127)
    arrays = SceneArrays(scene, 256)
    q = scene.zero_configuration()
    ours, theirs = least_times(
        lambda: arrays.pose("frame126", relative_to="frame7"),
        lambda: scene.pose("frame126", relative_to="frame7", q=q),
    )
    benchmark(arrays.pose, "frame126", relative_to="frame7")
    print(f"\na relative pose takes {ours / theirs:.2f} of the time of the persistent scene")


def test_write_poses(benchmark: BenchmarkFixture) -> None:
    """Copy all poses to an array that is there."""
    arrays = SceneArrays(tree(127), 256)
    assert benchmark(arrays.write_poses, np.zeros((FRAMES, 7))) == FRAMES
