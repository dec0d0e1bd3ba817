"""Path constraints: values, laws of constrained paths, statuses and errors."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from numpy.typing import NDArray
from support.effort import scaled_examples
from support.motion_scenes import ARM, TIP, wall_query
from support.pinocchio_oracle import robot_scene

from tmkit.errors import ConfigurationError, FileFormatError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.motion import (
    CollisionWorld,
    IkSettings,
    InverseKinematicsStatus,
    PathConstraint,
    PathQuery,
    PathResult,
    PathSettings,
    PathStatus,
    RrtConnect,
    inverse_kinematics,
    path_fault,
    search_path,
    time_path,
)
from tmkit.motion.motion_planner import search_verified
from tmkit.motion.ompl.planner import OmplPlanner
from tmkit.spatial import Pose

WALL = wall_query()
UPRIGHT = PathConstraint(
    "orientation", TIP, tolerance=math.radians(5.0), direction=(0.0, 0.0, -1.0)
)
PLANE = PathConstraint(
    "plane", TIP, tolerance=0.002, direction=(1.0, 0.0, 0.0), point=(0.5, 0.0, 0.0)
)
ROBOTS = {
    "panda": (robot_scene("panda"), ARM, TIP),
    "iiwa": (robot_scene("iiwa"), [f"lbr_iiwa_joint_{i}" for i in range(1, 8)], "lbr_iiwa_link_7"),
}


def around_wall(*constraints: PathConstraint, seed: int = 0, goals: Any = WALL.goal) -> PathResult:
    """Search for the path of the Panda around the wall."""
    world, settings = WALL.world(0.001), PathSettings(seed=seed)
    return search_path(
        world, ARM, start=WALL.start, goals=goals, constraints=constraints, settings=settings
    )


def by_matrices(scene: SceneGraph, constraint: PathConstraint, q: NDArray[np.float64]) -> float:
    """Return the angle or distance by homogeneous matrices, one pose at a time."""
    matrix = scene.pose(constraint.frame, q=q).as_matrix()
    normal = np.array(constraint.direction)
    if constraint.kind == "orientation":
        return math.acos(float(np.clip(matrix[:3, :3] @ constraint.axis @ normal, -1.0, 1.0)))
    offset = (matrix @ [*constraint.offset, 1.0])[:3] - constraint.point
    return (
        abs(float(offset @ normal))
        if constraint.kind == "plane"
        else float(np.linalg.norm(np.cross(offset, normal)))
    )


def fine_rows(path: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Return interpolated configurations along a path."""
    parts = [
        np.linspace(a, b, math.ceil(np.max(np.abs(b - a)) / step) + 1) for a, b in pairwise(path)
    ]
    return np.concatenate(parts)


@st.composite
def problems(
    draw: st.DrawFn,
) -> tuple[str, PathConstraint, NDArray[np.float64], NDArray[np.float64], int]:
    """Draw a robot, and a constraint with two configurations that satisfy it."""
    robot = draw(st.sampled_from(sorted(ROBOTS)))
    scene, joints, tip = ROBOTS[robot]
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    limits = scene.joint_limits
    start = rng.uniform(limits[:, 0], limits[:, 1])
    pose = scene.pose(tip, q=start)
    kind = draw(st.sampled_from(["orientation", "line", "plane"]))
    axis, offset = rng.normal(size=3), rng.uniform(-0.1, 0.1, 3)
    move = rng.uniform(-0.3, 0.3, 3)
    if kind == "orientation":
        direction = pose.as_matrix()[:3, :3] @ axis
        tolerance = draw(st.sampled_from([0.01, 0.1, 0.4]))
        turn = Pose.exp(
            [0, 0, 0, *(direction / np.linalg.norm(direction) * rng.uniform(-2.0, 2.0))]
        )
        target = Pose(pose.translation + move, (turn @ Pose([0, 0, 0], pose.quat_xyzw)).quat_xyzw)
    else:
        direction = rng.normal(size=3) if kind == "plane" else move
        tolerance = draw(st.sampled_from([0.0005, 0.01]))
        if kind == "plane":
            move = move - direction * (move @ direction) / (direction @ direction)
        moved = Pose(pose.translation + move, pose.quat_xyzw)
        target = moved @ Pose(offset) @ Pose.exp([0, 0, 0, *rng.uniform(-1, 1, 3)]) @ Pose(-offset)
    point = pose.apply(offset)
    constraint = PathConstraint(
        kind,
        tip,
        tolerance=tolerance,
        axis=tuple(axis),
        offset=tuple(offset),
        direction=tuple(direction),
        point=tuple(point),
    )
    result = inverse_kinematics(
        scene, tip, target_pose=target, joints=joints, q=start, settings=IkSettings(seed=1)
    )
    assume(result.status is InverseKinematicsStatus.SOLVED)
    return robot, constraint, start, result.q, draw(st.integers(0, 100))


@settings(
    max_examples=scaled_examples(0.4),
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(problems())
def test_every_interpolated_configuration_keeps_the_constraint(
    problem: tuple[str, PathConstraint, NDArray[np.float64], NDArray[np.float64], int],
) -> None:
    """A tenfold finer sampling and another formula confirm the constraint on random arms."""
    robot, constraint, start, goal, seed = problem
    scene, joints, _ = ROBOTS[robot]
    result = search_path(
        CollisionWorld(scene),
        joints,
        start=start,
        goals=goal,
        constraints=[constraint],
        settings=PathSettings(seed=seed, max_iterations=300),
    )
    if result.status is not PathStatus.SOLVED:
        assert result.status in (
            PathStatus.NO_PATH,
            PathStatus.START_IN_COLLISION,
            PathStatus.GOAL_IN_COLLISION,
        )
        return
    np.testing.assert_array_equal(result.path[0], start)
    np.testing.assert_array_equal(result.path[-1], goal)
    rows = fine_rows(result.path, 0.001)
    worst = max(by_matrices(scene, constraint, q) for q in rows)
    assert worst <= constraint.tolerance
    assert np.max(constraint.values(scene, rows)) == pytest.approx(worst, abs=1e-7)
    assert path_fault(scene, result.path, [constraint]) is None


@pytest.mark.parametrize("constraints", [(UPRIGHT,), (PLANE,), (PLANE, UPRIGHT)])
def test_a_constrained_path_goes_around_the_wall(constraints: tuple[PathConstraint, ...]) -> None:
    """Without constraints the hand tilts and swings out; with them it does not."""
    free = around_wall()
    fault = path_fault(WALL.scene, free.path, constraints)
    assert fault is not None
    assert ("tilts" if constraints[0] is UPRIGHT else "off its plane of 2 allowed") in fault
    for seed in range(3):
        result = around_wall(*constraints, seed=seed)
        assert result.status is PathStatus.SOLVED
        assert path_fault(WALL.scene, result.path, constraints, resolution=0.001) is None


def test_equal_queries_have_equal_bytes() -> None:
    """Constraints add no randomness, and an empty tuple of constraints has no effect."""
    assert around_wall(PLANE, UPRIGHT).path.tobytes() == around_wall(PLANE, UPRIGHT).path.tobytes()
    plain = search_path(WALL.world(0.001), ARM, start=WALL.start, goals=WALL.goal)
    assert around_wall().path.tobytes() == plain.path.tobytes()


def test_a_constrained_search_is_not_slow() -> None:
    """The time for each radian of a path is similar with and without constraints."""
    arm = [WALL.scene.joint_names.index(joint) for joint in ARM]
    for seed in range(3):
        free, constrained = around_wall(seed=seed), around_wall(PLANE, UPRIGHT, seed=seed)
        durations = [
            time_path(
                result.path[:, arm],
                np.full(7, 2.0),
                acceleration_limits=np.full(7, 8.0),
                rate=100.0,
            ).duration
            / result.length
            for result in (free, constrained)
        ]
        assert len(constrained.path) > 3 * len(free.path)
        assert durations[1] < 1.2 * durations[0]


def test_a_violated_start_or_goal_has_its_status() -> None:
    """A start or goal that violates the constraint has its status."""
    tilted = replace(UPRIGHT, direction=(0.0, math.sin(0.5), -math.cos(0.5)))
    assert around_wall(tilted).status is PathStatus.START_VIOLATES_CONSTRAINT
    assert tilted.fault(WALL.scene, WALL.start) == f"'{TIP}' tilts by 28.6 degrees of 5 allowed"
    turned = WALL.goal + np.eye(len(WALL.goal))[[WALL.scene.joint_names.index(ARM[5])]][0] * 0.3
    result = around_wall(UPRIGHT, goals=turned)
    assert result.status is PathStatus.GOAL_VIOLATES_CONSTRAINT
    assert len(result.path) == 0
    assert around_wall(UPRIGHT, goals=[turned, WALL.goal]).goal_index == 1


def test_values_are_known() -> None:
    """A right angle, and distances from a line and a plane, have known values."""
    scene = SceneGraph().add_frame("cup", "world", pose=Pose([3.0, 4.0, 5.0]))
    q = np.zeros((1, 0))
    tilt = PathConstraint("orientation", "cup", tolerance=0.1, axis=(2.0, 0.0, 0.0))
    assert tilt.values(scene, q) == pytest.approx([math.pi / 2])
    assert tilt.axis == (1.0, 0.0, 0.0)
    line = PathConstraint("line", "cup", tolerance=0.1, offset=(0.0, 0.0, -5.0))
    assert line.values(scene, q) == pytest.approx([5.0])
    assert line.fault(scene, q[0]) == "'cup' is 5000.0 mm off its line of 100 allowed"
    plane = PathConstraint(
        "plane", "cup", tolerance=1.0, direction=(0.0, 0.0, -2.0), point=(9.0, 9.0, 1.0)
    )
    assert plane.values(scene, q) == pytest.approx([4.0])
    assert replace(plane, point=(0.0, 0.0, 4.5)).fault(scene, q[0]) is None


@pytest.mark.parametrize(
    "constraint", [UPRIGHT, PLANE, replace(PLANE, kind="line", axis=(0.0, 0.0, 1.0))]
)
def test_a_constraint_survives_json(constraint: PathConstraint) -> None:
    """Constraints are equal after pickling, with equal hashes."""
    read = PathConstraint.from_dict(json.loads(json.dumps(constraint.to_dict())))
    assert read == constraint
    assert hash(read) == hash(constraint)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "upright"}, "upright"),
        ({"tolerance": 5.0}, r"tolerance must be an angle from 1e-4 to pi radians, not 5"),
        ({"tolerance": 30}, r"not 30; joint values are in radians: 30 degrees are 0.5236"),
        (
            {"kind": "line", "tolerance": 0.0},
            "tolerance must be at least 1e-4 m, and finite, not 0",
        ),
        ({"kind": "line", "tolerance": math.nan}, "not nan"),
        (
            {"direction": (0, 0, 0)},
            r"direction must be three finite numbers, not all 0, not \(0, 0, 0\)",
        ),
        ({"axis": (0, 1)}, r"axis must be three finite numbers, not all 0, not \(0, 1\)"),
        ({"offset": (0, math.inf, 1)}, r"offset must be three finite numbers, not \(0, inf, 1\)"),
    ],
)
def test_arguments_are_checked(change: dict[str, Any], message: str) -> None:
    """Messages have the received and the expected value."""
    with pytest.raises((ConfigurationError, UnknownNameError), match=message):
        PathConstraint(**({"kind": "orientation", "frame": "cup", "tolerance": 0.1} | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "orientatin"}, "unknown word 'orientatin'; did you mean 'orientation'"),
        ({"point": [0, 0, 0]}, "unknown key 'point'"),
        ({"axis": [0, 0]}, "axis: expected 3 numbers, received 2"),
        ({"tolerance": -1}, "tolerance must be an angle"),
    ],
)
def test_invalid_values_of_a_file_are_rejected(change: dict[str, Any], message: str) -> None:
    """A plan file may contain any values."""
    with pytest.raises(FileFormatError, match=message):
        PathConstraint.from_dict(UPRIGHT.to_dict() | change)


def test_invalid_constraints_of_a_search_are_rejected() -> None:
    """Too many constraints and unknown frames raise errors."""
    with pytest.raises(
        ConfigurationError, match="at most 6 constraints and 64 moving joints, not 7 and 7"
    ):
        around_wall(*[UPRIGHT] * 7)
    with pytest.raises(UnknownNameError, match="cup"):
        around_wall(replace(UPRIGHT, frame="cup"))
    with pytest.raises(
        ConfigurationError, match="constraints must be PathConstraint values, not 3"
    ):
        around_wall(3)  # type: ignore[arg-type]


def wall_query(**changes: Any) -> PathQuery:
    """Return the query around the wall for any planner."""
    query = PathQuery(
        WALL.world(0.001), tuple(ARM), WALL.start, WALL.goal[None], constraints=(UPRIGHT,)
    )
    return replace(query, **changes)


def test_planners_receive_the_constraints() -> None:
    """The core's planner keeps them, OMPL rejects them, and violations in paths are detected."""

    @dataclass(frozen=True)
    class Careless:
        def search(self, query: PathQuery) -> PathResult:
            return RrtConnect().search(replace(query, constraints=()))

    assert (
        search_verified(RrtConnect(), wall_query()).path.tobytes()
        == RrtConnect().search(wall_query()).path.tobytes()
    )
    with pytest.raises(ConfigurationError, match="OMPL's planners keep no path constraints"):
        OmplPlanner().search(wall_query())
    assert search_verified(Careless(), wall_query()).status is PathStatus.RECHECK_FAILED
    assert search_verified(Careless(), wall_query(constraints=())).status is PathStatus.SOLVED
