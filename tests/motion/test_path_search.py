"""Path search, straight lines and rechecks: laws, statuses, determinism and attributes."""

from __future__ import annotations

import math
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.pinocchio_oracle import add_boxes, robot_scene

from tmkit._core import RecheckStatus, StraightLineStatus
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import AttachedShape, Box, Prismatic, SceneGraph, Sphere
from tmkit.motion import (
    CollisionWorld,
    IkSettings,
    InverseKinematicsStatus,
    PathResult,
    PathSettings,
    PathStatus,
    StraightLineSettings,
    inverse_kinematics_solutions,
    recheck_path,
    search_path,
    straight_line,
)
from tmkit.spatial import Pose

ARM = [f"panda_joint{i}" for i in range(1, 8)]
TIP = "panda_grasptarget"
DOWN = [1.0, 0.0, 0.0, 0.0]
BOXES = {
    "table": ((0.8, 1.2, 0.04), (0.7, 0.0, -0.03)),
    "wall": ((0.5, 0.04, 0.34), (0.55, 0.0, 0.17)),
    "block0": ((0.05, 0.05, 0.05), (0.5, -0.45, 0.025)),
    "block1": ((0.05, 0.05, 0.05), (0.6, 0.2, 0.025)),
}


@pytest.fixture(scope="module")
def scene() -> SceneGraph:
    """Return a Panda at a table with a wall."""
    return add_boxes(robot_scene("panda"), BOXES)


@pytest.fixture(scope="module")
def world(scene: SceneGraph) -> CollisionWorld:
    """Return the world of a planner: 1 mm of margin, and contact of base and table allowed."""
    return CollisionWorld(scene, margin=0.001, pair_margins={("panda_link0", "table"): -math.inf})


@pytest.fixture(scope="module")
def plain(scene: SceneGraph) -> CollisionWorld:
    """Return the world of the validator, without margin."""
    return CollisionWorld(scene, pair_margins={("panda_link0", "table"): -math.inf})


def grasps(
    scene: SceneGraph, world: CollisionWorld, position: list[float], count: int = 3
) -> NDArray[np.float64]:
    """Return free configurations with the open hand above a point, fingers down."""
    q = scene.configuration(
        {"panda_joint4": -1.8, "panda_joint6": 1.8, "panda_finger_joint1": 0.04}
    )
    result = inverse_kinematics_solutions(
        world,
        TIP,
        target_pose=Pose(position, DOWN),
        joints=ARM,
        q=q,
        settings=IkSettings(max_solutions=count),
    )
    assert result.status is InverseKinematicsStatus.SOLVED
    return result.configurations


@pytest.fixture(scope="module")
def start(scene: SceneGraph, world: CollisionWorld) -> NDArray[np.float64]:
    """Return a configuration beside the wall."""
    return grasps(scene, world, [0.5, -0.3, 0.1])[0]


@pytest.fixture(scope="module")
def goals(scene: SceneGraph, world: CollisionWorld) -> NDArray[np.float64]:
    """Return configurations on the other side of the wall."""
    return grasps(scene, world, [0.5, 0.3, 0.1])


def room(*, closed: bool = False) -> CollisionWorld:
    """Return a ball on two slides, and a wall with a gap at one end or without a gap."""
    scene = SceneGraph().add_frame("x", "world", joint=Prismatic([1, 0, 0], lower=-1, upper=1))
    joint = Prismatic([0, 1, 0], lower=-1, upper=1)
    scene = scene.add_frame("ball", "x", joint=joint, shapes=[AttachedShape(Sphere(0.05))])
    wall = Box([0.1, 2.4 if closed else 1.7, 0.5])
    pose = Pose([0, 0 if closed else -0.25, 0])
    return CollisionWorld(scene.add_frame("wall", "world", pose=pose, shapes=[AttachedShape(wall)]))


@pytest.mark.parametrize("seed", range(5))
def test_a_path_is_free_and_passes_the_recheck(
    world: CollisionWorld,
    plain: CollisionWorld,
    start: NDArray[np.float64],
    goals: NDArray[np.float64],
    seed: int,
) -> None:
    """A path has the start and a goal as ends, keeps limits and fixed joints, and is valid."""
    goals = np.stack([goals[0] + 10.0, goals[0]])  # the first is outside the limits
    result = search_path(world, ARM, start=start, goals=goals, settings=PathSettings(seed=seed))
    assert result.status is PathStatus.SOLVED
    np.testing.assert_array_equal(result.path[0], start)
    assert result.goal_index == 1
    np.testing.assert_array_equal(result.path[-1], goals[1])
    limits = world.scene.joint_limits
    assert np.all(result.path >= limits[:, 0])
    assert np.all(result.path <= limits[:, 1])
    assert np.all(result.path[:, 7] == start[7])
    assert result.length == pytest.approx(
        np.linalg.norm(np.diff(result.path, axis=0), axis=1).sum()
    )
    assert result.iterations > 0
    assert result.checks > 0
    assert result.pair is None
    assert result.joint is None
    assert "wall" in {name for a, b, _ in result.blocking_pairs for name in (a, b)}
    counts = [count for _, _, count in result.blocking_pairs]
    assert counts == sorted(counts, reverse=True)
    check = recheck_path(plain, result.path, tool_frame=TIP)
    assert check.is_ok
    assert check.status is RecheckStatus.OK
    assert (check.segment, check.pair, check.joint, check.q) == (-1, None, None, None)
    for a, b in zip(result.path[:-1], result.path[1:], strict=True):
        assert plain.is_edge_free(a, b, resolution=0.003)
    with pytest.raises(ValueError, match="read-only"):
        result.path[0, 0] = 1.0


def test_paths_are_reproducible_in_many_threads(
    world: CollisionWorld, start: NDArray[np.float64], goals: NDArray[np.float64]
) -> None:
    """Paths depend on the arguments only, also with other threads; seeds lead to other paths."""

    def search(seed: int) -> bytes:
        return search_path(
            world, ARM, start=start, goals=goals[0], settings=PathSettings(seed=seed)
        ).path.tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(search, [3] * 8))) == 1
    assert len({search(seed) for seed in range(4)}) > 1


def test_shortcuts_do_not_lengthen_paths(
    world: CollisionWorld, start: NDArray[np.float64], goals: NDArray[np.float64]
) -> None:
    """Shortcuts do not increase the length of a path."""
    for seed in range(5):
        raw = search_path(
            world,
            ARM,
            start=start,
            goals=goals[0],
            settings=PathSettings(seed=seed, shortcut_iterations=0),
        )
        short = search_path(
            world, ARM, start=start, goals=goals[0], settings=PathSettings(seed=seed)
        )
        assert short.length <= raw.length + 1e-12


def test_a_single_goal_may_be_one_row() -> None:
    """A goal (n,) is equal to a goal (1, n). A free straight line is the path."""
    world = room()
    first = search_path(world, ["x", "ball"], start=[-0.5, 0], goals=[-0.5, 0.5])
    second = search_path(world, ["x", "ball"], start=[-0.5, 0], goals=[[-0.5, 0.5]])
    assert first.status is second.status is PathStatus.SOLVED
    assert first.path.tolist() == second.path.tolist() == [[-0.5, 0], [-0.5, 0.5]]
    assert first.iterations == 0
    assert first.blocking_pairs == ()
    assert repr(first) == "PathResult(SOLVED, 2 waypoints, length=0.5, 0 iterations)"


def test_each_failure_has_its_cause() -> None:
    """Failures have the pair in collision, the joint outside limits, or the blocking frame."""
    world = room()

    def search(start: list[float], goals: object, **options: Any) -> PathResult:
        settings = PathSettings(**options)
        return search_path(world, ["x", "ball"], start=start, goals=goals, settings=settings)

    blocked = search([0, 0], [[0.5, 0]])
    assert (blocked.status, blocked.pair) == (PathStatus.START_IN_COLLISION, ("ball", "wall"))
    assert blocked.path.shape == (0, 2)
    assert blocked.goal_index == -1
    assert repr(blocked) == "PathResult(START_IN_COLLISION, pair=('ball', 'wall'), 0 iterations)"
    blocked = search([0.5, 0], [[0, 0], [4, 0]])
    assert (blocked.status, blocked.pair) == (PathStatus.GOAL_IN_COLLISION, ("ball", "wall"))
    outside = search([0.5, 1.2], [[0.5, 0]])
    assert (outside.status, outside.joint) == (PathStatus.START_OUT_OF_LIMITS, "ball")
    outside = search([0.5, 0], [[4, 0]])
    assert (outside.status, outside.joint) == (PathStatus.GOAL_OUT_OF_LIMITS, "x")
    world = room(closed=True)
    given_up = search([-0.5, 0], [0.5, 0], max_iterations=100)
    assert given_up.status is PathStatus.NO_PATH
    assert given_up.iterations == 100
    assert [pair[:2] for pair in given_up.blocking_pairs] == [("ball", "wall")]
    stopped = search([-0.5, 0], [0.5, 0], max_iterations=10**9, time_limit=0.05)
    assert stopped.status is PathStatus.TIME_LIMIT
    assert stopped.iterations < 10**9


@pytest.mark.parametrize("thickness", [1e-2, 1e-3, 1e-5])
def test_a_proved_path_avoids_thin_walls(thickness: float) -> None:
    """A plate between two samples blocks a path only with a proof."""
    scene = SceneGraph().add_frame("x", "world", joint=Prismatic([1, 0, 0], lower=-1, upper=1))
    scene = scene.add_frame(
        "ball", "x", joint=Prismatic([0, 1, 0], lower=-1, upper=1), shapes=[Sphere(1e-3)]
    )
    plate = Box([thickness, 1.4, 0.5])
    world = CollisionWorld(
        scene.add_frame("plate", "world", pose=Pose([11 / 64, 0, 0]), shapes=[plate])
    )
    start, goal = [-0.5, 0.0], [0.5, 0.0]
    through = search_path(
        world,
        ["x", "ball"],
        start=start,
        goals=goal,
        settings=PathSettings(resolution=0.1, proved=False),
    )
    np.testing.assert_array_equal(through.path, [[-0.5, 0], [0.5, 0]])
    around = search_path(
        world, ["x", "ball"], start=start, goals=goal, settings=PathSettings(resolution=0.1)
    )
    assert around.status is PathStatus.SOLVED
    assert ("ball", "plate") in {pair[:2] for pair in around.blocking_pairs}
    assert recheck_path(world, around.path, resolution=1e-4).is_ok


def test_a_motion_with_contact_at_its_ends_is_proved() -> None:
    """A ball near the floor moves along it. Below the resolution of GJK it makes a detour."""
    scene = SceneGraph().add_frame(
        "floor", "world", pose=Pose([0, 0, -0.1]), shapes=[Box([4, 4, 0.2])]
    )
    scene = scene.add_frame("x", "world", joint=Prismatic([1, 0, 0], lower=-1, upper=1))
    scene = scene.add_frame(
        "ball", "x", joint=Prismatic([0, 0, 1], lower=0, upper=1), shapes=[Sphere(0.05)]
    )
    world = CollisionWorld(scene)
    up = search_path(world, ["x", "ball"], start=[0, 0.05 + 2e-6], goals=[0, 0.5])
    np.testing.assert_array_equal(up.path, [[0, 0.05 + 2e-6], [0, 0.5]])
    for gap, is_straight in ((4e-6, True), (1.5e-6, False)):
        along = search_path(world, ["x", "ball"], start=[0, 0.05 + gap], goals=[0.5, 0.05 + gap])
        assert along.status is PathStatus.SOLVED
        assert (len(along.path) == 2) is is_straight


def test_recheck_reports_the_first_failure() -> None:
    """The recheck has segment, fraction, pair and configuration, or the joint outside limits."""
    world = room()
    path = [[-0.5, 0.8], [-0.5, 0.0], [0.5, 0.0], [0.5, 0.5]]
    check = recheck_path(world, path)
    assert not check.is_ok
    assert (check.status, check.segment, check.pair) == (
        RecheckStatus.COLLISION,
        1,
        ("ball", "wall"),
    )
    assert check.fraction == pytest.approx(0.4, abs=0.005)
    assert check.q is not None
    assert world.is_in_collision(check.q)
    assert repr(check).startswith("RecheckResult(COLLISION, segment=1, fraction=0.4")
    outside = recheck_path(world, [[-0.5, 0.8], [-0.5, 1.2]])
    assert (outside.status, outside.joint, outside.segment) == (
        RecheckStatus.OUT_OF_LIMITS,
        "ball",
        0,
    )
    assert recheck_path(world, np.zeros((0, 2))).is_ok
    fine = recheck_path(world, path[:2], tool_frame="ball", tool_travel=0.0005)
    assert fine.checks >= 1600
    assert recheck_path(world, path[:2]).checks < 300


def test_straight_line_stays_on_the_line(
    scene: SceneGraph, world: CollisionWorld, start: NDArray[np.float64]
) -> None:
    """The tip ends at the target and stays near the line, also between rows."""
    above = scene.pose(TIP, relative_to="world", q=start)
    target = Pose(above.translation + np.array([0.02, -0.05, 0.2]), above.quat_xyzw)
    line = straight_line(world, TIP, start=start, target_pose=target, joints=ARM)
    assert line.status is StraightLineStatus.SOLVED
    assert line.fraction == 1.0
    assert line.pair is None
    assert line.joint is None
    assert line.checks > len(line.path)
    np.testing.assert_array_equal(line.path[0], start)
    assert scene.pose(TIP, relative_to="world", q=line.path[-1]).distance(target)[0] < 1e-5
    along = (target.translation - above.translation) / np.linalg.norm(
        target.translation - above.translation
    )
    for a, b in zip(line.path[:-1], line.path[1:], strict=True):
        for fraction in (0.25, 0.5, 0.75):
            tip = scene.pose(TIP, relative_to="world", q=a + fraction * (b - a))
            assert np.linalg.norm(np.cross(tip.translation - above.translation, along)) < 0.0005
            assert tip.distance(above)[1] < 0.01
    assert repr(line).startswith("StraightLineResult(SOLVED, ")


def test_straight_line_in_the_tool_frame(scene: SceneGraph, start: NDArray[np.float64]) -> None:
    """The target may be relative to any frame, as 10 cm back along the axis of the hand."""
    target = scene.pose(TIP, relative_to="panda_link0", q=start) @ Pose([0, 0, -0.1])
    line = straight_line(
        scene, TIP, start=start, target_pose=target, joints=ARM, relative_to="panda_link0"
    )
    assert line.status is StraightLineStatus.SOLVED
    moved = scene.pose(TIP, relative_to="world", q=start).inverse() @ scene.pose(
        TIP, relative_to="world", q=line.path[-1]
    )
    assert moved.translation == pytest.approx([0, 0, -0.1], abs=1e-5)


def test_straight_line_failures_have_their_cause(
    scene: SceneGraph, world: CollisionWorld, start: NDArray[np.float64]
) -> None:
    """A collision has the pair, a limit or jump has the joint, and the path ends before it."""
    here = scene.pose(TIP, relative_to="world", q=start)
    through_wall = straight_line(
        world, TIP, start=start, target_pose=Pose([0.5, 0.3, 0.1], DOWN), joints=ARM
    )
    assert through_wall.status is StraightLineStatus.COLLISION
    assert through_wall.pair is not None
    assert "wall" in through_wall.pair
    assert 0.1 < through_wall.fraction < 0.9
    assert not world.in_collision_batch(through_wall.path).any()
    line = straight_line(
        scene,
        TIP,
        start=start,
        target_pose=Pose(here.translation + np.array([0, -2, 0]), DOWN),
        joints=ARM,
    )
    assert line.status in (StraightLineStatus.UNREACHABLE, StraightLineStatus.JOINT_LIMIT)
    assert 0 < line.fraction < 0.6
    slides = room().scene
    limit = straight_line(
        slides, "ball", start=[0, 0], target_pose=Pose([0, 1.5, 0]), joints=["x", "ball"]
    )
    assert (limit.status, limit.joint) == (StraightLineStatus.JOINT_LIMIT, "ball")
    assert limit.fraction == pytest.approx(2 / 3, abs=0.01)
    jump = straight_line(
        slides,
        "ball",
        start=[0, 0],
        target_pose=Pose([0, 0.9, 0]),
        joints=["x", "ball"],
        settings=StraightLineSettings(position_step=0.5),
    )
    assert (jump.status, jump.joint) == (StraightLineStatus.JOINT_JUMP, "ball")


def test_invalid_arguments_are_rejected(scene: SceneGraph) -> None:
    """Wrong shapes, unknown names and invalid options raise errors."""
    world = room()
    good: dict[str, object] = {"start": [0.5, 0], "goals": [[0.5, 0.1]]}

    def search(joints: list[str], **changes: object) -> object:
        return search_path(world, joints, **(good | changes))

    with pytest.raises(UnknownNameError, match="did you mean 'ball'"):
        search(["bal"])
    with pytest.raises(ConfigurationError, match="at least one joint"):
        search([])
    with pytest.raises(ConfigurationError, match="goals must have shape"):
        search(["x"], goals=[[0.5, 0, 0]])
    with pytest.raises(ConfigurationError, match="at least one configuration"):
        search(["x"], goals=np.zeros((0, 2)))
    with pytest.raises(ConfigurationError):
        search(["x"], goals=3.0)
    with pytest.raises(ConfigurationError, match="start must hold 2 numbers"):
        search(["x"], start=[1.0])
    with pytest.raises(ConfigurationError, match="path must have shape"):
        recheck_path(world, [0.0, 0.0])
    with pytest.raises(UnknownNameError, match="did you mean 'ball'"):
        recheck_path(world, [[0.0, 0.0]], tool_frame="balls")


def test_other_threads_run_during_a_search() -> None:
    """The core releases the interpreter during a search."""
    world = room(closed=True)

    def ticks_during(iterations: int) -> int:
        done, ticks = threading.Event(), 0

        def search() -> None:
            search_path(
                world,
                ["x", "ball"],
                start=[-0.5, 0],
                goals=[0.5, 0],
                settings=PathSettings(max_iterations=iterations),
            )
            done.set()

        thread = threading.Thread(target=search)
        thread.start()
        while not done.wait(0.001):
            ticks += 1
        thread.join()
        return ticks

    assert any(ticks_during(10**digits) > 20 for digits in range(4, 8))


def test_interrupt_ends_a_search() -> None:
    """Ctrl-C raises KeyboardInterrupt during a search that would take hours."""
    world = room(closed=True)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        search_path(
            world,
            ["x", "ball"],
            start=[-0.5, 0],
            goals=[0.5, 0],
            settings=PathSettings(max_iterations=10**12),
        )
    timer.join()
