"""Numeric effects: reading, writing, execution, states, and planners without support."""

from __future__ import annotations

import pickle

import pytest

from tmkit.errors import TaskError, TaskPlannerError
from tmkit.pddl import (
    Fact,
    GroundAction,
    Problem,
    State,
    domain_to_pddl,
    parse_domain,
    parse_problem,
    problem_to_pddl,
    validate_task_plan,
)
from tmkit.pddl.formulas import ChangeNumber, EffectAnd, FunctionTerm, Number
from tmkit.task_planning import FastDownward

DOMAIN = """(define (domain robots) (:requirements :typing :numeric-fluents) (:types place robot)
  (:predicates (at ?r - robot ?p - place))
  (:functions (battery ?r - robot) (distance ?p ?q - place) (trips))
  (:action drive :parameters (?r - robot ?p ?q - place)
    :precondition (and (at ?r ?p) (>= (battery ?r) (* 2 (distance ?p ?q))))
    :effect (and (at ?r ?q) (not (at ?r ?p))
      (decrease (battery ?r) (* 2 (distance ?p ?q))) (increase (trips) 1)))
  (:action charge :parameters (?r - robot)
    :effect (and (assign (battery ?r) 10) (scale-up (trips) 2)))
  (:action halve :parameters (?r - robot)
    :effect (and (scale-down (battery ?r) (trips)) (increase (battery ?r) 0))))"""
PROBLEM = """(define (problem trip) (:domain robots) (:objects a b - place r s - robot)
  (:init (at r a) (= (battery r) 5) (= (distance a b) 2) (= (distance b a) 2) (= (trips) 0))
  (:goal (and (at r a) (>= (trips) 3) (< (battery r) 7))))"""
DRIVE, BACK, CHARGE = (
    GroundAction("drive", ("r", "a", "b")),
    GroundAction("drive", ("r", "b", "a")),
    GroundAction("charge", ("r",)),
)


def task() -> Problem:
    """Return the task of a robot with a battery."""
    return parse_problem(PROBLEM, parse_domain(DOMAIN))


def test_states_have_the_numbers_that_changed() -> None:
    """Each step's numbers follow from those before it."""
    validation = validate_task_plan(task(), [DRIVE, CHARGE, BACK])
    assert validation.is_valid, validation.message
    battery, trips = Fact.of("battery", "r"), Fact.of("trips")
    assert [dict(state.values) for state in validation.states] == [
        {},
        {battery: 1.0, trips: 1.0},
        {battery: 10.0, trips: 2.0},
        {battery: 6.0, trips: 3.0},
    ]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([DRIVE, BACK], r"step 2 of 2, .drive r b a.: .>= .battery r. .* does not hold"),
        (
            [DRIVE, CHARGE],
            r"the goal is not reached: .at r a. does not hold; .>= .trips. 3. does not hold",
        ),
        ([GroundAction("halve", ("r",))], r"step 1 of 1, .halve r.: it gives .battery r. no value"),
        ([GroundAction("halve", ("s",))], r"it gives .battery s. no value"),
    ],
)
def test_plans_that_break_numbers_are_invalid(steps: list[GroundAction], message: str) -> None:
    """Low batteries, missed goals, divisions by zero and undefined numbers fail a plan."""
    validation = validate_task_plan(task(), steps)
    assert not validation.is_valid
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(validation.message)


def test_applying_without_a_value_is_an_error() -> None:
    """The error names action and function."""
    with pytest.raises(TaskError, match=r"\(halve s\) gives \(battery s\) no value"):
        task().apply(task().init, GroundAction("halve", ("s",)))


def test_written_and_read_again() -> None:
    """The text of a domain and problem has the effects as they were."""
    domain = parse_domain(DOMAIN)
    effect = domain.action("charge").effect
    assert isinstance(effect, EffectAnd)
    assert ChangeNumber("assign", FunctionTerm("battery", ("?r",)), Number(10)) in effect.parts
    assert parse_domain(domain_to_pddl(domain)) == domain
    assert parse_problem(problem_to_pddl(task()), domain) == task()


def test_states_are_values_with_their_numbers() -> None:
    """States differ by numbers, survive pickling, and show them."""
    state = task().apply(task().init, DRIVE)
    facts = State(state)
    assert state != facts
    assert state == facts.change(values={Fact.of("battery", "r"): 1.0, Fact.of("trips"): 1.0})
    assert pickle.loads(pickle.dumps(state)) == state
    assert hash(pickle.loads(pickle.dumps(state))) == hash(state)
    assert repr(state) == "State((at r b) (= (battery r) 1) (= (trips) 1))"
    assert state.change(add=[Fact.of("at", "s", "a")]).values == state.values


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("(assign (battery ?r) 10)", "(assign (batery ?r) 10)", "unknown function 'batery'"),
        (
            "(assign (battery ?r) 10)",
            "(assign (battery ?r) (charge ?r))",
            "unknown function 'charge'",
        ),
        (
            "(assign (battery ?r) 10)",
            "(assign (total-cost) 10)",
            r"\(total-cost\) may only be increased",
        ),
    ],
)
def test_effects_on_unknown_numbers_are_refused(old: str, new: str, reason: str) -> None:
    """The function is named with line and column."""
    with pytest.raises(TaskError, match=rf"domain:9:\d+: {reason}"):
        parse_domain(DOMAIN.replace(old, new), source="domain")


def test_fast_downward_refuses_numbers() -> None:
    """The error names action and number, and the planner that takes them."""
    with pytest.raises(
        TaskPlannerError,
        match=r"action 'drive': .* the numeric comparison .*battery.*UnifiedPlanner",
    ):
        FastDownward().prepare(task())
