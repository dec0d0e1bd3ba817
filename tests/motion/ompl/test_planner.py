"""OMPL's planners: what they find, and what they refuse."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from motion.test_motion_planner import query

import tmkit as tk
from tmkit.errors import ConfigurationError, MissingExtraError, UnknownNameError
from tmkit.motion import MotionPlanner, PathStatus, RrtConnect
from tmkit.motion.motion_planner import search_verified
from tmkit.motion.ompl.planner import OMPL_PLANNERS, OmplPlanner


def test_ompl_planners_that_are_not_offered_are_refused() -> None:
    """A planner's name is checked when it is said, and so are numbers."""
    with pytest.raises(UnknownNameError, match="did you mean 'RRTConnect'"):
        OmplPlanner("RRTConect")
    with pytest.raises(ConfigurationError, match="step must be positive"):
        OmplPlanner(step=0.0)


def test_without_ompl_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where OMPL is not installed, the message says how to get it."""
    monkeypatch.setitem(sys.modules, "ompl", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[planners\]'"):
        OmplPlanner().search(query())


@pytest.mark.parametrize("name", OMPL_PLANNERS)
def test_ompl_finds_a_way_and_finds_it_again(name: str) -> None:
    """Each planner that is offered finds the way around the wall, and the same one for the same seed."""
    pytest.importorskip("ompl")
    asked = query(seed=5, max_iterations=1500)
    planner: MotionPlanner = OmplPlanner(name)
    found = search_verified(planner, asked)
    assert found.status is PathStatus.SOLVED
    search_verified(planner, query(seed=6, max_iterations=1500))
    np.testing.assert_array_equal(search_verified(planner, asked).path, found.path)


def test_another_seed_gives_another_path() -> None:
    """The seed of a query reaches OMPL's samplers."""
    pytest.importorskip("ompl")
    paths = [search_verified(OmplPlanner(), query(seed=seed)).path for seed in range(4)]
    assert len({path.tobytes() for path in paths}) > 1


def test_ompl_goes_straight_where_it_can() -> None:
    """Without a wall there is nothing to search."""
    pytest.importorskip("ompl")
    assert len(search_verified(OmplPlanner(), query(goal=-0.2)).path) == 2


def test_ompl_says_which_end_is_wrong() -> None:
    """Ends that collide or are outside the limits are told like the core tells them."""
    pytest.importorskip("ompl")
    found = search_verified(OmplPlanner(), query(goal=0.0))
    assert (found.status, search_verified(RrtConnect(), query(goal=0.0)).status) == (
        PathStatus.GOAL_IN_COLLISION,
    ) * 2
    assert found.pair is not None
    assert "wall" in found.pair
    found = search_verified(OmplPlanner(), query(goal=0.7))
    assert (found.status, found.joint) == (PathStatus.GOAL_OUT_OF_LIMITS, "y")


def test_ompl_ends_after_the_iterations() -> None:
    """Where there is no way the search ends, and says so."""
    pytest.importorskip("ompl")
    assert (
        search_verified(OmplPlanner(), query(max_iterations=50, height=0.8)).status
        is PathStatus.NO_PATH
    )


def test_ompl_plans_for_a_panda() -> None:
    """A whole plan with OMPL passes its check, and is the same again."""
    pytest.importorskip("ompl")
    scene = tk.load_scene("panda_table", "blocks2")
    first, second = (
        tk.plan(scene, goal="(on a b)", options=tk.PlanningOptions(motion_planner=OmplPlanner()))
        for _ in range(2)
    )
    assert first.plan is not None
    assert second.plan is not None
    assert tk.validate_plan(first.plan).is_valid
    for one, two in zip(first.plan.steps, second.plan.steps, strict=True):
        for segment, other in zip(one.segments, two.segments, strict=True):
            np.testing.assert_array_equal(segment.path, other.path)
