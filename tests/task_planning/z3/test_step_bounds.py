"""Bounds and proofs without a planner: never too high, never wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from support.effort import scaled_examples
from support.task_problems import DATA, NAMES, blocks_world, load, shortest_plan, small_problems

from tmkit.pddl import (
    And,
    Fact,
    GroundAction,
    Problem,
    load_domain,
    parse_domain,
    parse_goal,
    parse_problem,
)
from tmkit.pddl.formulas import Or
from tmkit.task_planning import FastDownward
from tmkit.task_planning.translated_task import TranslatedTask
from tmkit.task_planning.z3.planner import interchangeable_objects
from tmkit.task_planning.z3.step_bounds import Exploration, least_steps

PLANNER = FastDownward()
PLACES = load_domain(DATA / "places" / "domain.pddl")


def translated(problem: Problem) -> TranslatedTask:
    """Return the translation of a problem."""
    return PLANNER.translate(problem, time_limit=600.0)


@settings(max_examples=scaled_examples(0.5))
@given(problem=small_problems())
def test_bounds_are_never_too_high_and_exploring_is_exact(problem: Problem) -> None:
    """No plan is shorter than the bound, and an exploration finds the length of the shortest."""
    task, expected = translated(problem), shortest_plan(problem)
    exploration = Exploration(task)
    while not (exploration.is_goal_reached or exploration.is_exhausted):
        assert expected is None or exploration.depth <= expected
        exploration.expand(3)
    assert exploration.is_goal_reached == (expected is not None)
    bound = least_steps(task)
    if expected is not None:
        assert exploration.depth == expected
        assert bound is not None
        assert bound <= expected


@pytest.mark.parametrize("blocks", range(1, 7))
def test_the_bound_counts_landmarks(blocks: int) -> None:
    """A move needs two actions, also by the bound."""
    problem = blocks_world(PLACES, blocks=blocks, places=blocks, seed=blocks)
    held = [fact.arguments[0] for fact in problem.init if fact.predicate == "on"]
    goal = " ".join(
        f"(at {name} p{index})" for index, name in enumerate(f"b{i}" for i in range(blocks))
    )
    formula = parse_goal(f"(and {goal})", PLACES, objects=problem.objects)
    moved = Problem("p", PLACES, objects=problem.objects, init=problem.init, goal=formula)
    bound = least_steps(translated(moved))
    assert bound is not None
    assert bound >= 2 * len(held)


def test_restored_facts_count() -> None:
    """An initial goal fact that all plans delete is counted again."""
    problem = load("places")
    for goal in ("(held a)", "(and (on b c) (empty))", "(and (empty) (clear c) (on a b))"):
        formula = parse_goal(goal, problem.domain, objects=problem.objects)
        changed = Problem(
            "p", problem.domain, objects=problem.objects, init=problem.init, goal=formula
        )
        bound, expected = least_steps(translated(changed)), shortest_plan(changed)
        assert bound is not None
        assert expected is not None
        assert bound <= expected
    domain = parse_domain(
        "(define (domain d) (:predicates (home) (seen ?x)) (:action look :parameters (?x) :effect"
        " (and (seen ?x) (not (home)))) (:action return :effect (home)))"
    )
    text = (
        "(define (problem p) (:domain d) (:objects a b) (:init (home)) (:goal (and (home) (seen a)"
        " (seen b))))"
    )
    assert least_steps(translated(parse_problem(text, domain))) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_goal_that_holds_needs_no_step(name: str) -> None:
    """Of a goal that holds, and of one out of reach, the bound is exact."""
    problem = load(name)
    empty, never = (
        Problem("p", problem.domain, objects=problem.objects, init=problem.init, goal=goal)
        for goal in (And(), Or())
    )
    assert least_steps(translated(empty)) == 0
    assert least_steps(translated(never)) is None


def test_free_places_are_interchangeable() -> None:
    """Empty places are interchangeable until a constraint distinguishes them."""
    problem = load("places")
    objects = {**problem.objects, "p1": "place", "p2": "place", "p3": "place"}
    init = problem.init.change(add=[Fact.of("clear", name) for name in ("p1", "p2", "p3")])
    wide = Problem("p", problem.domain, objects=objects, init=init, goal=problem.goal)
    groups = interchangeable_objects(wide)
    assert ("p1", "p2", "p3") in [
        tuple(name for name in group if name.startswith("p")) for group in groups
    ]
    lower = GroundAction("lower", ("a", "p2"))
    about_one = [(lower, frozenset({Fact.of("held", "a")}))]
    assert any(
        {"p1", "p3"} <= set(group) and "p2" not in group
        for group in interchangeable_objects(wide, about_one)
    )
    about_none = [(GroundAction("unpile", ("c", "a")), frozenset(init))]
    assert interchangeable_objects(wide, about_none) == groups


def test_goal_objects_are_not_interchangeable() -> None:
    """An object that the goal mentions, in whatever way, is in no group."""
    problem = blocks_world(PLACES, blocks=1, places=4, seed=0)
    for goal in ("(at b0 p1)", "(not (= p1 p2))", "(exists (?b - block) (at ?b p1))"):
        formula = parse_goal(goal, PLACES, objects=problem.objects)
        changed = Problem("p", PLACES, objects=problem.objects, init=problem.init, goal=formula)
        assert not any("p1" in group for group in interchangeable_objects(changed))
    assert any("p1" in group or "p2" in group for group in interchangeable_objects(problem))
