"""Planners of OMPL: paths and errors."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from motion.test_motion_planner import wall_query

import tmkit as tk
from tmkit.errors import ConfigurationError, MissingExtraError, UnknownNameError
from tmkit.motion import MotionPlanner, PathStatus, RrtConnect
from tmkit.motion.motion_planner import search_verified
from tmkit.motion.ompl.planner import OMPL_PLANNERS, OmplPlanner


def test_unknown_planners_of_ompl_are_rejected() -> None:
    """The name of a planner and its numbers are checked in the constructor."""
    with pytest.raises(UnknownNameError, match="did you mean 'RRTConnect'"):
        OmplPlanner("RRTConect")
    with pytest.raises(ConfigurationError, match="step must be positive"):
        OmplPlanner(step=0.0)


def test_the_extra_is_named_without_ompl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OMPL, the message has the command of the installation."""
    monkeypatch.setitem(sys.modules, "ompl", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[planners\]'"):
        OmplPlanner().search(wall_query())


@pytest.mark.parametrize("name", OMPL_PLANNERS)
def test_ompl_finds_reproducible_paths(name: str) -> None:
    """Each planner finds a path around the wall, and the same path for the same seed."""
    pytest.importorskip("ompl")
    query = wall_query(seed=5, max_iterations=1500)
    planner: MotionPlanner = OmplPlanner(name)
    result = search_verified(planner, query)
    assert result.status is PathStatus.SOLVED
    search_verified(planner, wall_query(seed=6, max_iterations=1500))
    np.testing.assert_array_equal(search_verified(planner, query).path, result.path)


def test_another_seed_gives_another_path() -> None:
    """The seed of a query is the seed of OMPL's samplers."""
    pytest.importorskip("ompl")
    paths = [search_verified(OmplPlanner(), wall_query(seed=seed)).path for seed in range(4)]
    assert len({path.tobytes() for path in paths}) > 1


def test_ompl_uses_a_free_straight_line() -> None:
    """Without a wall, the path is a straight line."""
    pytest.importorskip("ompl")
    assert len(search_verified(OmplPlanner(), wall_query(goal=-0.2)).path) == 2


def test_ompl_reports_invalid_ends() -> None:
    """Ends in collision or outside limits have the statuses of the core."""
    pytest.importorskip("ompl")
    result = search_verified(OmplPlanner(), wall_query(goal=0.0))
    assert (result.status, search_verified(RrtConnect(), wall_query(goal=0.0)).status) == (
        PathStatus.GOAL_IN_COLLISION,
    ) * 2
    assert result.pair is not None
    assert "wall" in result.pair
    result = search_verified(OmplPlanner(), wall_query(goal=0.7))
    assert (result.status, result.joint) == (PathStatus.GOAL_OUT_OF_LIMITS, "y")


def test_ompl_ends_after_the_iterations() -> None:
    """Without a path, the search ends with its status."""
    pytest.importorskip("ompl")
    assert (
        search_verified(OmplPlanner(), wall_query(max_iterations=50, height=0.8)).status
        is PathStatus.NO_PATH
    )


def test_ompl_plans_for_a_panda() -> None:
    """A plan with OMPL is valid and reproducible."""
    pytest.importorskip("ompl")
    scene = tk.load_scene("panda_table", "blocks2")
    first, second = (
        tk.plan(scene, goal="(on a b)", options=tk.PlanningOptions(motion_planner=OmplPlanner()))
        for _ in range(2)
    )
    assert first.plan is not None
    assert second.plan is not None
    assert tk.validate_plan(first.plan).is_valid
    for step, repeated_step in zip(first.plan.steps, second.plan.steps, strict=True):
        for segment, other in zip(step.segments, repeated_step.segments, strict=True):
            np.testing.assert_array_equal(segment.path, other.path)
