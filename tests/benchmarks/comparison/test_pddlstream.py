"""PDDLStream in the arena: samples of its streams, plans in the whole scene, rejected input."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.comparison.arena import find_planner
from benchmarks.comparison.pddlstream import DOMAINS, PddlStream
from benchmarks.comparison.pddlstream_sampling import PddlStreamSampling, Rest

import tmkit as tk
from tmkit.errors import ConfigurationError
from tmkit.manipulation import MoveTo, Place, Sequence
from tmkit.pddl import GroundAction
from tmkit.plans import ObjectAt, Plan
from tmkit.spatial import Pose
from tmkit.tamp.version_tree import SceneVersion

_CHECKOUT = os.environ.get("TMKIT_PDDLSTREAM", "")
"""A checkout with submodules, for the tests with PDDLStream itself."""


def _tower(goal: str = "(on a b)") -> tk.PlanningProblem:
    return tk.PlanningProblem(tk.load_scene("panda_table", "blocks3"), goal=goal)


def test_samples_are_carried_out() -> None:
    """A pick and a stack that were sampled in an empty scene form a valid plan of the scene."""
    sampling = PddlStreamSampling(_tower(), tk.PlanningOptions(seed=1), 0)
    pick, stack = (sampling.actions[name] for name in ("pick-up", "stack"))
    init = sampling.facts.problem.init
    cell = next(
        fact.arguments[1]
        for fact in init
        if fact.predicate == "ontable" and fact.arguments[0] == "a"
    )
    (hold,) = next(sampling.grasps("a"))
    rest, below = sampling.rests["a"], sampling.rests["b"]
    (taken,) = next(sampling.ways(pick, "?l", False)("a", cell, rest, hold))
    (on_b,) = next(sampling.puts(stack, "?x", "?y")("a", "b", below))
    assert on_b.chain == (below, on_b)
    assert [*sampling.puts(stack, "?x", "?y")("a", "a", rest)] == []
    (put,) = next(sampling.ways(stack, "?y", True)("a", "b", on_b, hold))
    assert taken.items == {"a"}
    assert put.items == {"a", "b"}
    assert sampling.clears(taken, "b", below)
    over = Rest("b", "table", rest.pose)  # where the hand comes down
    assert not sampling.clears(taken, "b", over)
    plan = sampling.carried_out(
        [("pick-up", ("a", cell, rest, hold, taken)), ("stack--on", ("a", "b", on_b, hold, put))]
    )
    assert plan is not None
    assert [str(step.action) for step in plan.steps] == [f"(pick-up a {cell})", "(stack a b)"]
    assert tk.validate_plan(plan).is_valid


def test_sampled_motions_are_motions_of_the_whole_scene() -> None:
    """The motion starts at the start configuration, beside objects in contact with supports."""
    sampling = PddlStreamSampling(_tower(), tk.PlanningOptions(seed=1), 0)
    pick, stack = (sampling.actions[name] for name in ("pick-up", "stack"))
    init = sampling.facts.problem.init
    cell = next(
        fact.arguments[1]
        for fact in init
        if fact.predicate == "ontable" and fact.arguments[0] == "a"
    )
    (hold,), rest = next(sampling.grasps("a")), sampling.rests["a"]
    (taken,) = next(sampling.ways(pick, "?l", False)("a", cell, rest, hold))
    (on_b,) = next(sampling.puts(stack, "?x", "?y")("a", "b", sampling.rests["b"]))
    (put,) = next(sampling.ways(stack, "?y", True)("a", "b", on_b, hold))
    node, steps = sampling.tree.root, []
    for action, motion in (
        (GroundAction("pick-up", ("a", cell)), taken),
        (GroundAction("stack", ("a", "b")), put),
    ):
        back = Sequence((MoveTo(sampling.start, "the start"), motion))
        reached = sampling.tree.follow(node, action, back, seed=0, attempts=1)
        assert isinstance(reached, SceneVersion)
        assert reached.step is not None
        steps.append(reached.step)
        node = reached
    assert tk.validate_plan(
        sampling.context.plan_of(tuple(steps), sampling.context.domain)
    ).is_valid


def test_places_meet_continuous_goals() -> None:
    """Of an object that is wanted at a pose, places are sampled there."""
    scene = tk.load_scene("panda_table", "blocks3")
    wanted = ObjectAt(
        "a",
        Pose([0.1, 0.1, scene.local_pose("a").translation[2]]),
        relative_to="table",
        radians=None,
    )
    sampling = PddlStreamSampling(tk.PlanningProblem(scene, goal=wanted), tk.PlanningOptions(), 0)
    put = sampling.actions["put-down"]
    (rest,) = next(sampling.puts(put, "?x", "?l")("a", "table__1__1"))
    assert isinstance(rest.candidate, Place)
    assert sampling.meets("goal-0", "a", "table__1__1", rest)
    assert not sampling.meets("goal-0", "a", "table__1__1", sampling.rests["a"])


def test_what_is_not_read_is_refused(tmp_path: Path) -> None:
    """A folder that is no checkout, another algorithm, and domains with other actions."""
    with pytest.raises(
        ConfigurationError,
        match=r"is no checkout of PDDLStream with submodules: it has no pddlstream/",
    ):
        find_planner(f"pddlstream:{tmp_path}")
    with pytest.raises(
        ConfigurationError, match="PDDLStream has no algorithm 'fast': adaptive, binding"
    ):
        find_planner(f"pddlstream-fast:{tmp_path}")
    for file in ("pddlstream/algorithms/meta.py", "downward/src/translate/translate.py"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    planner = find_planner(f"pddlstream-focused:{tmp_path}")
    assert planner == PddlStream(str(tmp_path), "focused")
    drawer = tk.PlanningProblem(
        tk.load_scene("panda_drawer"), domain="drawer", goal="(open drawer)"
    )
    with pytest.raises(
        ConfigurationError, match=f"domain 'drawer' is not read for PDDLStream: {DOMAINS[0]}, "
    ):
        planner(drawer, tk.PlanningOptions())


@pytest.mark.skipif(not _CHECKOUT, reason="TMKIT_PDDLSTREAM names no checkout of PDDLStream")
@pytest.mark.parametrize(
    "goal", ["(and (on a b) (on b c))", ObjectAt("a", Pose(), relative_to="table", radians=None)]
)
def test_pddlstream_plans(goal: str | ObjectAt) -> None:
    """A tower, and an object at a pose, by PDDLStream itself."""
    scene = tk.load_scene("panda_table", "blocks3")
    if isinstance(goal, ObjectAt):
        goal = ObjectAt(
            "a",
            Pose([0.1, 0.1, scene.local_pose("a").translation[2]]),
            relative_to="table",
            radians=None,
        )
    planner = find_planner(f"pddlstream:{_CHECKOUT}")
    plan = planner(tk.PlanningProblem(scene, goal=goal), tk.PlanningOptions(time_limit=300.0))
    assert isinstance(plan, Plan)
    assert tk.validate_plan(plan).is_valid
    assert not Path("temp").exists()
