"""Planners by the protocol: their queries, and which of their results are accepted."""

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


def query(
    *, seed: int = 0, max_iterations: int = 2000, goal: float = 0.3, height: float = 0.3
) -> PathQuery:
    """Return the way of the gantry's hand around a wall, from one side of the table to the other."""
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
class Told:
    """Answers with the path that it was told, and remembers at which resolutions it was asked."""

    path: NDArray[np.float64]
    resolutions: list[float] = field(default_factory=list)

    def search(self, query: PathQuery) -> PathResult:
        """Return the path."""
        self.resolutions.append(query.resolution)
        return PathResult(PathStatus.SOLVED, self.path)


def test_a_query_leads_from_arm_to_whole_configurations_and_back() -> None:
    """What moves is replaced, what does not stays as at the start, for one configuration or many."""
    asked = query()
    rows = np.arange(8.0).reshape(2, 4)
    full = asked.to_full(rows)
    assert full.shape == (2, 5)
    assert full[:, asked.world.scene.joint_names.index("finger")].tolist() == [0.03, 0.03]
    np.testing.assert_array_equal(asked.to_arm(full), rows)
    np.testing.assert_array_equal(asked.to_full(rows[0]), full[0])
    np.testing.assert_array_equal(
        asked.limits, asked.world.scene.joint_limits[list(asked.joint_indices)]
    )


def test_a_query_answers_questions_about_collisions() -> None:
    """The ends are free, the straight way through the wall is not."""
    asked = query()
    start, goal = asked.to_arm(asked.start), asked.to_arm(asked.goals[0])
    assert asked.is_free(start)
    assert asked.is_free(goal)
    assert not asked.is_free((start + goal) / 2)
    assert not asked.is_edge_free(start, goal)


def test_the_default_is_the_cores_search() -> None:
    """``RrtConnect`` gives the path that ``search_path`` gives, bit for bit."""
    asked = query(seed=3)
    direct = search_path(
        asked.world,
        JOINTS,
        start=asked.start,
        goals=asked.goals,
        settings=PathSettings(seed=3, max_iterations=2000),
    )
    found = search_verified(RrtConnect(), asked)
    assert found.status is PathStatus.SOLVED
    np.testing.assert_array_equal(found.path, direct.path)


def test_a_path_that_fails_the_fine_check_is_none() -> None:
    """A planner that goes straight through the wall is asked again, finer, and not believed; the pair is named."""
    asked = query()
    planner = Told(np.array([asked.start, asked.to_full(asked.to_arm(asked.goals[0]))]))
    found = search_verified(planner, asked)
    assert planner.resolutions == [0.01, 0.005, 0.0025, 0.00125]
    assert found.status is PathStatus.RECHECK_FAILED
    assert found.path.shape == (0, 5)
    assert found.pair is not None
    assert "wall" in found.pair


def test_a_path_without_a_check_to_pass_is_accepted() -> None:
    """Without a fine check the planner's path is returned, with its length."""
    asked = replace(query(), check=None)
    path = np.array([asked.start, asked.to_full(asked.to_arm(asked.goals[0]))])
    result = search_verified(Told(path), asked)
    assert np.array_equal(result.path, path)
    assert not result.path.flags.writeable
    assert result.length == np.linalg.norm(path[1] - path[0])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda path: path[:, :4], r"Told must have shape \(k, 5\), not \(2, 4\)"),
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
def test_a_path_that_is_none_is_a_mistake_of_the_planner(edit: object, message: str) -> None:
    """Wrong shapes, ends and joints are named with the planner."""
    asked = query()
    path = np.array([asked.start, asked.to_full(asked.to_arm(asked.goals[0]))])
    with pytest.raises(ConfigurationError, match=message):
        search_verified(Told(edit(path)), asked)  # type: ignore[operator]


class Straight:
    """Goes straight, or says that there is no way; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[PathQuery] = []

    def search(self, query: PathQuery) -> PathResult:
        """Return the straight way."""
        self.asked.append(query)
        start, goal = query.to_arm(query.start), query.to_arm(query.goals[0])
        return (
            query.path_result([start, goal])
            if query.is_edge_free(start, goal)
            else query.no_path_result()
        )


def test_plans_are_made_with_the_planner_given() -> None:
    """All searched paths of a plan are the planner's; the same planner gives the same plan."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    planner = Straight()
    result = tk.plan(
        scene, goal="(on a b)", robot=GANTRY, options=tk.PlanningOptions(motion_planner=planner)
    )
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    transits = [step.segments[0] for step in result.plan.steps]
    assert all(len(segment.path) == 2 for segment in transits)
    assert len(planner.asked) >= 2
    assert all(asked.joints == JOINTS and asked.check is not None for asked in planner.asked)


def test_without_a_fine_check_the_core_searches_likewise() -> None:
    """``RrtConnect`` searches without a fine check too; the answer of a query is in whole, read-only configurations."""
    asked = replace(query(seed=3), check=None)
    found = RrtConnect().search(asked)
    same = search_path(
        asked.world,
        asked.joints,
        start=asked.start,
        goals=asked.goals,
        settings=PathSettings(seed=3, max_iterations=asked.max_iterations),
    )
    assert found.status is same.status is PathStatus.SOLVED
    assert found.path is not None
    np.testing.assert_array_equal(found.path, same.path)
    solved = asked.path_result(asked.to_arm(found.path))
    assert solved.path is not None
    assert solved.status is PathStatus.SOLVED
    np.testing.assert_array_equal(solved.path, found.path)
    assert not solved.path.flags.writeable
    coarse = PathCheck(asked.world)
    middle = np.array([asked.start, asked.goals[0]])
    assert not coarse.run(middle).is_ok
