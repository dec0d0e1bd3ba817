"""Speed of the scene graph: edits and queries at several sizes, and the ratio to plain Python.

Run by hand: ``pytest tests/benchmarks/bench_scene_graph.py --benchmark-enable --benchmark-only
--benchmark-group-by=func``. The results are the growth with the
number of frames and the ratio to plain Python. Absolute times depend on the machine and its load.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from benchmarks.tables import least_times
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from tmkit.graph import Free, Revolute, SceneGraph, Unstated, add_fact
from tmkit.relations import PoseCoord, SemanticPose
from tmkit.spatial import Pose

SIZES = [64, 1000, 100_000]
LINKS = 8
Q = np.linspace(-1.0, 1.0, LINKS)


@pytest.fixture(scope="module", params=SIZES)
def scene(request: pytest.FixtureRequest) -> SceneGraph:
    """Return an arm of eight links, and free things on the world up to the size."""
    with SceneGraph().edit() as edit:
        parent = "world"
        for i in range(LINKS):
            place = Pose.from_rpy([0, 0, 0.3], [0.1 * i, 0, 0])
            edit.add_frame(
                f"link{i}", parent, pose=place, joint=Revolute([0, 1, 0], name=f"joint{i}")
            )
            parent = f"link{i}"
        for i in range(request.param - LINKS - 1):
            edit.add_frame(f"thing{i}", "world", pose=Pose([i, 0, 0]), joint=Free())
    return edit.finish()


def test_reparent(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Pick up a thing at a given pose."""
    grasp = Pose([0, 0, 0.1])
    assert benchmark(scene.reparent, "thing3", "link7", pose=grasp).parent("thing3") == "link7"


def test_reparent_keeping_the_pose(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Pick up a thing where it stands."""
    assert benchmark(scene.reparent, "thing3", "link7", q=Q).parent("thing3") == "link7"


@pytest.mark.parametrize("what", ["edge", "fact"])
def test_fact(benchmark: BenchmarkFixture, scene: SceneGraph, what: str) -> None:
    """Join a tree by an edge, and by a pose whose frames the scene finds: 7 and 4 times as long."""
    apart, pose = scene.add_body("New").add_root("new", body="New"), Pose([0, 0, 0.1])
    fact = SemanticPose(PoseCoord("{new}|New", "{thing3}|thing3", "[thing3]"), pose)
    if what == "edge":
        assert benchmark(apart.attach, "new", "thing3", pose=pose).parent("new") == "thing3"
    else:
        expected = apart.attach("new", "thing3", pose=pose, joint=Unstated())
        assert benchmark(add_fact, apart, fact) == expected


def test_add_and_remove(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Add a frame."""
    assert len(benchmark(scene.add_frame, "new", "thing3")) == len(scene) + 1


def test_remove(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Remove a frame from a version that was just made: the number of frames hardly counts."""
    numbers = iter(range(1_000_000_000))

    def version() -> tuple[tuple[SceneGraph, str], dict[str, object]]:
        return (scene.set_pose("thing4", Pose([next(numbers), 0, 1])), "thing3"), {}

    assert (
        len(benchmark.pedantic(SceneGraph.remove_frame, setup=version, rounds=200))
        == len(scene) - 1
    )


def test_children(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Ask a version that was just made for the children of a frame."""
    numbers = iter(range(1_000_000_000))

    def version() -> tuple[tuple[SceneGraph, str], dict[str, object]]:
        return (scene.reparent("thing4", "link7", pose=Pose([next(numbers), 0, 1])), "link7"), {}

    assert benchmark.pedantic(SceneGraph.children, setup=version, rounds=200) == ("thing4",)


def test_equality(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Compare a scene with one that went there and back."""
    back = scene.reparent("thing3", "link7", pose=Pose()).reparent(
        "thing3", "world", pose=scene.local_pose("thing3")
    )
    assert benchmark(SceneGraph.__eq__, scene, back)


def test_pose_along_eight_joints(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Ask for the pose of the last link relative to the world."""
    assert benchmark(scene.pose, "link7", relative_to="world", q=Q) == scene.at(Q).pose("link7")


def test_forward_kinematics(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Compute all poses."""
    assert benchmark(scene.at, Q).pose("link7") == scene.pose("link7", relative_to="world", q=Q)


def test_jacobian(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Compute the Jacobian of the last link from poses that are there."""
    assert benchmark(scene.at(Q).jacobian, "link7").shape == (6, LINKS)


def test_hash(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Hash the content."""
    assert benchmark(hash, scene) == hash(scene)


def test_pickle(benchmark: BenchmarkFixture, scene: SceneGraph) -> None:
    """Write a scene and read it back, as for another process."""
    if len(scene) > 10_000:
        pytest.skip("takes seconds at this size")
    assert benchmark(lambda: pickle.loads(pickle.dumps(scene))) == scene


# --- the same in plain Python


@dataclass(frozen=True)
class PlainFrame:
    """A frame of a scene that is a dict."""

    parent: str | None
    matrix: NDArray[np.float64]


@pytest.fixture(scope="module")
def plain(scene: SceneGraph) -> dict[str, PlainFrame]:
    """Return the scene at a configuration as a dict of matrices."""
    return {
        name: PlainFrame(
            scene.parent(name),
            (
                np.eye(4)
                if (above := scene.parent(name)) is None
                else scene.pose(name, relative_to=above, q=Q).as_matrix()
            ),
        )
        for name in scene.frame_names
    }


@pytest.mark.parametrize("count", [10, 50])
def test_poses_of_things(benchmark: BenchmarkFixture, scene: SceneGraph, count: int) -> None:
    """Poses of some things in one call, relative to a link, beside a loop in the same run.

    On a shared core, one call takes 0.20 of a loop for 10 things and 0.12 for 50, at all sizes.
    """
    things = [f"thing{number}" for number in range(count)]

    def loop() -> NDArray[np.float64]:
        poses = [scene.pose(name, relative_to="link7", q=Q).as_array() for name in things]
        return np.array(poses)

    def poses() -> NDArray[np.float64]:
        return scene.poses(things, relative_to="link7", q=Q)

    ours, theirs = least_times([poses, loop], 200)
    benchmark.extra_info["ratio_to_loop"] = ours / theirs
    assert benchmark(poses).tobytes() == loop().tobytes()
    print(f"\n{count} poses in one call take {ours / theirs:.2f} of the time of a loop")


def test_reparent_in_plain_python(
    benchmark: BenchmarkFixture, plain: dict[str, PlainFrame]
) -> None:
    """Copy the dict with one frame changed: the cost of an immutable scene without sharing."""
    matrix = Pose([0, 0, 0.1]).as_matrix()

    def reparent() -> dict[str, PlainFrame]:
        return {**plain, "thing3": replace(plain["thing3"], parent="link7", matrix=matrix)}

    assert benchmark(reparent)["thing3"].parent == "link7"


def test_pose_along_eight_joints_in_plain_python(
    benchmark: BenchmarkFixture, plain: dict[str, PlainFrame], scene: SceneGraph
) -> None:
    """Multiply eight matrices, which are already at the configuration."""

    def pose() -> NDArray[np.float64]:
        result, name = np.eye(4), "link7"
        while (parent := plain[name].parent) is not None:
            result, name = plain[name].matrix @ result, parent
        return result

    assert np.allclose(benchmark(pose), scene.at(Q).pose("link7").as_matrix())
