"""Motion planners by the protocol: their queries, and the check of their results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from support.blocks import blocks_scene, with_box
from support.gantry import GANTRY, JOINTS

import tmkit as tk
from tmkit.errors import ConfigurationError
from tmkit.motion import (
    CollisionWorld,
    PathQuery,
    PathResult,
    PathSettings,
    PathStatus,
    RrtConnect,
    search_path,
)
from tmkit.motion.motion_planner import PathCheck, search_verified


def wall_query(
    *, seed: int = 0, max_iterations: int = 2000, goal: float = 0.3, height: float = 0.3
) -> PathQuery:
    """Return the query of moving the gantry's hand around a wall."""
    scene = with_box(blocks_scene({}), "wall", (-0.5, -0.02, 0.0), (0.5, 0.02, height))
    start = scene.configuration({"x": 0.0, "y": -0.3, "z": 0.6, "finger": 0.03})
    end = scene.configuration({"x": 0.0, "y": goal, "z": 0.6})
    never = {("wall", "table"): -1.0}
    check = PathCheck(CollisionWorld(scene, pair_margins=never), tool_frame="tool")
    world = CollisionWorld(scene, margin=0.001, pair_margins=never)
    return PathQuery(
        world, JOINTS, start, end[None], seed=seed, max_iterations=max_iterations, check=check
    )


@dataclass(frozen=True)
class FixedPathPlanner:
    """Planner that returns fixed paths, and records the resolutions of its queries."""

    path: NDArray[np.float64]
    resolutions: list[float] = field(default_factory=list)

    def search(self, query: PathQuery) -> PathResult:
        """Return the path."""
        self.resolutions.append(query.resolution)
        return PathResult(PathStatus.SOLVED, self.path)


def test_a_query_converts_between_arm_and_full_configurations() -> None:
    """The joints of the arm are replaced, and the others keep their start values."""
    query = wall_query()
    rows = np.arange(8.0).reshape(2, 4)
    full = query.to_full(rows)
    assert full.shape == (2, 5)
    assert full[:, query.world.scene.joint_names.index("finger")].tolist() == [0.03, 0.03]
    np.testing.assert_array_equal(query.to_arm(full), rows)
    np.testing.assert_array_equal(query.to_full(rows[0]), full[0])
    np.testing.assert_array_equal(
        query.limits, query.world.scene.joint_limits[list(query.joint_indices)]
    )


def test_a_query_checks_collisions() -> None:
    """The ends are free, and the straight line through the wall is not."""
    query = wall_query()
    start, goal = query.to_arm(query.start), query.to_arm(query.goals[0])
    assert query.is_free(start)
    assert query.is_free(goal)
    assert not query.is_free((start + goal) / 2)
    assert not query.is_edge_free(start, goal)


def test_the_default_is_the_search_of_the_core() -> None:
    """``RrtConnect`` has the same path as ``search_path``, bit for bit."""
    query = wall_query(seed=3)
    direct = search_path(
        query.world,
        JOINTS,
        start=query.start,
        goals=query.goals,
        settings=PathSettings(seed=3, max_iterations=2000),
    )
    result = search_verified(RrtConnect(), query)
    assert result.status is PathStatus.SOLVED
    np.testing.assert_array_equal(result.path, direct.path)


def test_a_path_that_fails_the_fine_check_is_rejected() -> None:
    """A path through the wall leads to a finer query, then to a failure with the pair."""
    query = wall_query()
    planner = FixedPathPlanner(np.array([query.start, query.to_full(query.to_arm(query.goals[0]))]))
    result = search_verified(planner, query)
    assert planner.resolutions == [0.01, 0.005, 0.0025, 0.00125]
    assert result.status is PathStatus.RECHECK_FAILED
    assert result.path.shape == (0, 5)
    assert result.pair is not None
    assert "wall" in result.pair


def test_a_path_is_accepted_without_a_check() -> None:
    """Without a fine check, the result is the planner's path with its length."""
    query = replace(wall_query(), check=None)
    path = np.array([query.start, query.to_full(query.to_arm(query.goals[0]))])
    result = search_verified(FixedPathPlanner(path), query)
    assert np.array_equal(result.path, path)
    assert not result.path.flags.writeable
    assert result.length == np.linalg.norm(path[1] - path[0])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda path: path[:, :4], r"FixedPathPlanner must have shape \(k, 5\), not \(2, 4\)"),
        (lambda path: path[:0], "must have shape"),
        (lambda path: path * np.nan, "path holds nan; only finite numbers"),
        (lambda path: path[1:], "does not begin at the start"),
        (lambda path: path[:1], "does not end at a goal"),
        (
            lambda path: np.add(path, [[0.0] * 5, [0.0, 0.0, 0.0, 0.0, 0.01]]),
            "moves joints that are not in query.joints",
        ),
    ],
)
def test_invalid_paths_of_a_planner_raise_errors(edit: object, message: str) -> None:
    """Errors of shapes, ends and joints have the name of the planner."""
    query = wall_query()
    path = np.array([query.start, query.to_full(query.to_arm(query.goals[0]))])
    with pytest.raises(ConfigurationError, match=message):
        search_verified(FixedPathPlanner(edit(path)), query)  # type: ignore[operator]


class StraightLinePlanner:
    """Planner that returns a straight line or no path, and records its queries."""

    def __init__(self) -> None:
        self.queries: list[PathQuery] = []

    def search(self, query: PathQuery) -> PathResult:
        """Return the straight line."""
        self.queries.append(query)
        start, goal = query.to_arm(query.start), query.to_arm(query.goals[0])
        return (
            query.path_result([start, goal])
            if query.is_edge_free(start, goal)
            else query.no_path_result()
        )


def test_plans_use_the_given_planner() -> None:
    """All searched paths of a plan are from the planner, and plans are reproducible."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    planner = StraightLinePlanner()
    result = tk.plan(
        scene, goal="(on a b)", robot=GANTRY, options=tk.PlanningOptions(motion_planner=planner)
    )
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    transits = [step.segments[0] for step in result.plan.steps]
    assert all(len(segment.path) == 2 for segment in transits)
    assert len(planner.queries) >= 2
    assert all(query.joints == JOINTS and query.check is not None for query in planner.queries)


def test_the_core_searches_without_a_fine_check() -> None:
    """``RrtConnect`` needs no fine check, and paths are read-only full configurations."""
    query = replace(wall_query(seed=3), check=None)
    result = RrtConnect().search(query)
    same = search_path(
        query.world,
        query.joints,
        start=query.start,
        goals=query.goals,
        settings=PathSettings(seed=3, max_iterations=query.max_iterations),
    )
    assert result.status is same.status is PathStatus.SOLVED
    assert result.path is not None
    np.testing.assert_array_equal(result.path, same.path)
    solved = query.path_result(query.to_arm(result.path))
    assert solved.path is not None
    assert solved.status is PathStatus.SOLVED
    np.testing.assert_array_equal(solved.path, result.path)
    assert not solved.path.flags.writeable
    coarse = PathCheck(query.world)
    middle = np.array([query.start, query.goals[0]])
    assert not coarse.run(middle).is_ok
