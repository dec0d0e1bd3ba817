"""PDDLStream in the arena: samples of its streams, plans in the whole scene, rejected input."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest
from benchmarks.comparison.arena import find_planner
from benchmarks.comparison.pddlstream import DECLARATIONS, DOMAINS, PddlStream
from benchmarks.comparison.pddlstream_fair import FairDeclaration
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


def _at(frame: str, x: float, y: float) -> ObjectAt:
    height = tk.load_scene("panda_table", "blocks3").local_pose(frame).translation[2]
    return ObjectAt(frame, Pose([x, y, height]), relative_to="table", radians=None)


def _fair(goal: str | ObjectAt = "(on a b)") -> FairDeclaration:
    problem = tk.PlanningProblem(tk.load_scene("panda_table", "blocks3"), goal=goal)
    return FairDeclaration(problem, tk.PlanningOptions(seed=1), 0)


def test_fair_places_are_at_the_goal_and_elsewhere() -> None:
    """One stream yields places that meet the goal, the other many that do not."""
    declared = _fair(_at("a", 0.1, 0.1))
    put = declared.actions["put-down"]
    at_goal = declared.places(put, "?x", "?l", is_goal=True)("goal-0", "a", "table")
    (rest,) = next(at_goal)
    assert declared.meets("goal-0", "a", "table", rest)
    elsewhere = declared.places(put, "?x", "?l", is_goal=False)("a", "table")
    rests = [rest for (rest,) in islice(elsewhere, 60)]
    assert len({(rest.argument, str(rest.pose)) for rest in rests}) == 60
    assert len({rest.argument for rest in rests}) > 10
    assert sum(declared.meets("goal-0", "a", "table", rest) for rest in rests) < 6


def test_fair_problems_have_surfaces_in_place_of_cells() -> None:
    """Cells are not objects of PDDLStream, but arguments of the plan's actions."""
    declared = _fair()
    named = {value for fact in declared._init() for value in fact if isinstance(value, str)}
    assert "table" in named
    assert not [name for name in named if name.startswith("table__")]
    put = declared.actions["put-down"]
    (rest,) = next(declared.places(put, "?x", "?l", is_goal=False)("a", "table"))
    assert str(declared.ground("put-down", ("a", "table", rest))) == f"(put-down a {rest.argument})"
    start = declared.rests["a"]
    cell = next(
        fact.arguments[1]
        for fact in declared.facts.problem.init
        if fact.predicate == "ontable" and fact.arguments[0] == "a"
    )
    assert str(declared.ground("pick-up", ("a", "table", start))) == f"(pick-up a {cell})"
    kept = _fair(f"(ontable a {cell})")
    assert cell not in kept.cells["table"]
    assert kept._place(cell) == cell


def test_fair_tests_are_split_into_place_hand_and_motion() -> None:
    """An object in the place, beside it, in the way of the arm, and far away."""
    declared = _fair()
    pick = declared.actions["pick-up"]
    start, other = declared.rests["a"], declared.rests["b"]

    def place_beside(x: float, y: float) -> Rest:
        return Rest("b", other.support, Pose([x, y, 0.0]) @ start.pose)

    far = place_beside(-0.15, 0.3)
    overlapping = place_beside(0.03, 0.0)
    beside = [place_beside(0.052, 0.0), place_beside(0.0, 0.052)]  # where a finger is
    assert declared.is_rest_free("a", start, "b", far)
    assert not declared.is_rest_free("a", start, "b", overlapping)
    assert declared.is_rest_free("a", start, "a", Rest("a", "table", overlapping.pose))
    (hold, reach) = next(declared.picks(pick, "?l")("a", "table", start))
    assert declared.is_hand_free("a", start, hold, "b", far)
    assert [declared.is_hand_free("a", start, hold, "b", rest) for rest in beside].count(False) == 1
    assert declared.is_motion_free(reach, "b", far)
    assert declared.is_motion_free(reach, "a", start)
    assert not declared.is_motion_free(reach, "b", overlapping)


def test_fair_samples_are_carried_out() -> None:
    """A pick and a place on another object that were sampled apart form a valid plan."""
    declared = _fair()
    pick, stack = (declared.actions[name] for name in ("pick-up", "stack"))
    rest, below = declared.rests["a"], declared.rests["b"]
    (hold, taken) = next(declared.picks(pick, "?l")("a", "table", rest))
    (on_b,) = next(declared.places(stack, "?x", "?y", is_goal=False)("a", "b", below))
    (put,) = next(declared.drops(stack, "?y")("a", "b", on_b, hold))
    assert declared.is_rest_free("a", on_b, "b", below)
    plan = declared.carried_out(
        [
            ("pick-up", ("a", "table", rest, hold, taken)),
            ("stack--on", ("a", "b", on_b, hold, put, below)),
        ]
    )
    assert plan is not None
    assert tk.validate_plan(plan).is_valid


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
    stock = find_planner(f"pddlstream-stock-binding:{tmp_path}")
    assert stock == PddlStream(str(tmp_path), "binding", "stock")
    assert find_planner(f"pddlstream-stock:{tmp_path}") == PddlStream(
        str(tmp_path), "adaptive", "stock"
    )
    with pytest.raises(ConfigurationError, match="unknown declaration 'good': fair, stock"):
        PddlStream(str(tmp_path), declaration="good")
    drawer = tk.PlanningProblem(
        tk.load_scene("panda_drawer"), domain="drawer", goal="(open drawer)"
    )
    with pytest.raises(
        ConfigurationError, match=f"domain 'drawer' is not read for PDDLStream: {DOMAINS[0]}, "
    ):
        planner(drawer, tk.PlanningOptions())


@pytest.mark.skipif(not _CHECKOUT, reason="TMKIT_PDDLSTREAM names no checkout of PDDLStream")
@pytest.mark.parametrize("declaration", DECLARATIONS)
@pytest.mark.parametrize("goal", ["(and (on a b) (on b c))", _at("a", 0.1, 0.1)], ids=str)
def test_pddlstream_plans(goal: str | ObjectAt, declaration: str) -> None:
    """A tower, and an object at a pose, by PDDLStream itself."""
    planner = PddlStream(_CHECKOUT, declaration=declaration)
    problem = tk.PlanningProblem(tk.load_scene("panda_table", "blocks3"), goal=goal)
    plan = planner(problem, tk.PlanningOptions(time_limit=300.0))
    assert isinstance(plan, Plan)
    assert tk.validate_plan(plan).is_valid
    assert not Path("temp").exists()


@pytest.mark.skipif(not _CHECKOUT, reason="TMKIT_PDDLSTREAM names no checkout of PDDLStream")
def test_two_objects_change_places() -> None:
    """A swap of two poses needs a free place, which the fair declaration samples."""
    scene = tk.load_scene("panda_table", "blocks3")
    places = {name: scene.local_pose(name).translation for name in "ab"}
    goals = [_at("a", *places["b"][:2]), _at("b", *places["a"][:2])]
    problem = tk.PlanningProblem(scene, goal=goals)
    plan = PddlStream(_CHECKOUT)(problem, tk.PlanningOptions(time_limit=300.0))
    assert isinstance(plan, Plan)
    assert len(plan.steps) == 6
    assert tk.validate_plan(plan).is_valid
