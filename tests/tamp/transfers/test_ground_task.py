"""The task in finite-domain variables: applicable actions and relaxed plans, against PDDL itself."""

from __future__ import annotations

import random

import pytest
from support.task_problems import ground_actions

from tmkit.pddl import Problem, State, parse_domain, parse_problem
from tmkit.tamp.transfers.ground_task import GroundTask
from tmkit.task_planning import FastDownward

BLOCKS = """
(define (domain towers) (:requirements :strips)
  (:predicates (on ?x ?y) (table ?x) (clear ?x) (held ?x) (empty))
  (:action take :parameters (?x) :precondition (and (table ?x) (clear ?x) (empty))
    :effect (and (held ?x) (not (table ?x)) (not (clear ?x)) (not (empty))))
  (:action put :parameters (?x) :precondition (held ?x)
    :effect (and (table ?x) (clear ?x) (empty) (not (held ?x))))
  (:action stack :parameters (?x ?y) :precondition (and (held ?x) (clear ?y))
    :effect (and (on ?x ?y) (clear ?x) (empty) (not (held ?x)) (not (clear ?y))))
  (:action unstack :parameters (?x ?y) :precondition (and (on ?x ?y) (clear ?x) (empty))
    :effect (and (held ?x) (clear ?y) (not (on ?x ?y)) (not (clear ?x)) (not (empty)))))
"""
TASK = """
(define (problem three) (:domain towers) (:objects a b c)
  (:init (table a) (table b) (on c a) (clear b) (clear c) (empty)) (:goal (and (on a b) (on b c))))
"""


@pytest.fixture(scope="module")
def problem() -> Problem:
    """The Sussman anomaly."""
    return parse_problem(TASK, domain=parse_domain(BLOCKS))


@pytest.fixture(scope="module")
def ground(problem: Problem) -> GroundTask:
    """Its translation."""
    return GroundTask(FastDownward().prepare(problem))


def walk(problem: Problem, ground: GroundTask, *, seed: int, steps: int) -> list[State]:
    """Return the states of a random walk, checking on the way that both agree on what may be done and what follows."""
    rng, state, states = random.Random(seed), problem.init, [problem.init]
    for _ in range(steps):
        values = ground.values(state)
        indices = ground.applicable(values)
        assert {ground.actions[i] for i in indices} == {
            action for action in ground_actions(problem) if not problem.why_not(state, action)
        }
        index = rng.choice(indices)
        state = problem.apply(state, ground.actions[index])
        assert ground.apply(index, values) == ground.values(state)
        states.append(state)
    return states


@pytest.mark.parametrize("seed", range(10))
def test_applicable_actions_and_their_effects_are_those_of_pddl(
    problem: Problem, ground: GroundTask, seed: int
) -> None:
    """Applicable actions and their effects are those of pddl."""
    walk(problem, ground, seed=seed, steps=20)


def test_a_relaxed_plan_is_no_longer_than_the_shortest_plan_and_none_at_the_goal(
    problem: Problem, ground: GroundTask
) -> None:
    """A relaxed plan is no longer than the shortest plan and none at the goal."""
    start = ground.relaxed_plan(ground.values(problem.init))
    assert start is not None
    assert 1 <= start.cost <= 6  # the shortest plan has six actions
    state = problem.init
    for step in FastDownward().search(FastDownward().prepare(problem)).steps:
        state = problem.apply(state, step)
    values = ground.values(state)
    assert ground.is_goal(values)
    assert ground.relaxed_plan(values) is not None
    assert ground.relaxed_plan(values).cost == 0  # type: ignore[union-attr]


def test_every_first_action_of_a_relaxed_plan_is_applicable(problem: Problem, ground: GroundTask) -> None:
    """Every first action of a relaxed plan is applicable."""
    for state in walk(problem, ground, seed=3, steps=30):
        values = ground.values(state)
        relaxed = ground.relaxed_plan(values)
        assert relaxed is not None
        assert ground.is_goal(values) or ground.applicable(values, relaxed.actions)


def test_there_is_no_relaxed_plan_where_a_fact_is_out_of_reach(problem: Problem) -> None:
    """There is no relaxed plan where a fact is out of reach."""
    lone = parse_problem(TASK.replace("(table b)", "").replace("(clear b)", ""), domain=parse_domain(BLOCKS))
    ground = GroundTask(FastDownward().prepare(lone))
    assert ground.relaxed_plan(ground.values(lone.init)) is None


def test_derived_variables_follow_the_basic_ones() -> None:
    """Derived variables follow the basic ones."""
    above = BLOCKS.replace(":strips", ":strips :derived-predicates").replace(
        "(empty))\n  (:action take", "(empty) (above ?x ?y))\n"
        "  (:derived (above ?x ?y) (or (on ?x ?y) (exists (?z) (and (on ?x ?z) (above ?z ?y)))))\n  (:action take", 1,
    )  # fmt: skip
    above = above.replace(
        ":derived-predicates", ":derived-predicates :disjunctive-preconditions :existential-preconditions"
    )
    task = TASK.replace("(and (on a b) (on b c))", "(above a c)")
    problem = parse_problem(task, domain=parse_domain(above))
    ground = GroundTask(FastDownward().prepare(problem))
    for state in walk(problem, ground, seed=1, steps=60):
        assert ground.is_goal(ground.values(state)) == problem.holds(state, problem.goal)
