"""Actions with several outcomes: what they are read as, and acting with plans that hope."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import TaskError
from tmkit.pddl import GroundAction, Problem, State, domain_to_pddl, parse_domain, parse_problem
from tmkit.task_planning import TaskPlanStatus, execute_with_replanning
from tmkit.task_planning.fast_downward import possible_states

DISHES = """(define (domain dishes) (:requirements :strips :typing :non-deterministic)
  (:types dish)
  (:predicates (clean ?d - dish) (wet ?d - dish) (broken ?d - dish))
  (:action wash :parameters (?d - dish) :precondition (not (broken ?d))
    :effect (and (wet ?d) (oneof (clean ?d) (and) (and (broken ?d) (not (clean ?d))))))
  (:action dry :parameters (?d - dish) :precondition (wet ?d) :effect (not (wet ?d))))"""


def dishes(count: int = 2) -> Problem:
    """Return the task to have dishes clean and dry."""
    names = [f"d{n}" for n in range(count)]
    goal = " ".join(f"(clean {name}) (not (wet {name}))" for name in names)
    text = (
        f"(define (problem p) (:domain dishes) (:objects {' '.join(names)} - dish) (:init) (:goal"
        f" (and {goal})))"
    )
    return parse_problem(text, parse_domain(DISHES))


def test_each_outcome_is_an_action() -> None:
    """Outcomes are numbered in the order of the file, and each has its own effect."""
    domain = dishes().domain
    assert [action.name for action in domain.actions] == ["wash--1", "wash--2", "wash--3", "dry"]
    assert domain.outcomes("wash") == domain.outcomes("wash--2") == domain.actions[:3]
    assert domain.outcomes("dry") == domain.actions[3:]
    assert [str(action.effect) for action in domain.actions[:2]] == [
        "(and (wet ?d) (clean ?d))",
        "(and (wet ?d))",
    ]


def test_chances_are_outcomes() -> None:
    """Each probabilistic effect is an outcome, and also no effect if the sum is below one."""
    text = """(define (domain d) (:requirements :probabilistic-effects) (:predicates (a) (b) (c))
      (:action all :effect (probabilistic 0.25 (a) 0.75 (b) 0 (c)))
      (:action some :effect (and (c) (probabilistic 0.1 (a) 0.2 (probabilistic 1/2 (b))))))"""
    effects = [str(action.effect) for action in parse_domain(text.replace("1/2", ".5")).actions]
    assert effects == ["(a)", "(b)", "(and (c) (a))", "(and (c) (b))", "(and (c))", "(and (c))"]


def test_choices_multiply_and_nest() -> None:
    """Two choices of two give four outcomes; a nested choice, also conditional, one more."""
    text = """(define (domain d) (:predicates (a) (b) (c) (e))
      (:action two :effect (and (oneof (a) (b)) (oneof (c) (e))))
      (:action nested :effect (oneof (a) (oneof (b) (and (c) (e)))))
      (:action given :effect (when (a) (oneof (b) (c))))
      (:action single :effect (oneof (a))))"""
    domain = parse_domain(text)
    effects = {action.name: str(action.effect) for action in domain.actions}
    assert [effects[f"two--{n}"] for n in range(1, 5)] == [
        f"(and ({x}) ({y}))" for x, y in product("ab", "ce")
    ]
    assert [effects[f"nested--{n}"] for n in range(1, 4)] == ["(a)", "(b)", "(and (c) (e))"]
    assert [effects[f"given--{n}"] for n in range(1, 3)] == ["(when (a) (b))", "(when (a) (c))"]
    assert effects["single"] == "(a)"


@pytest.mark.parametrize(
    ("effect", "message"),
    [
        ("(oneof)", r"d:2:\d+: expected the outcomes of 'oneof'"),
        ("(oneof p)", r"d:2:\d+: unexpected 'p'; expected the effect of an outcome"),
        ("(forall (?x) (oneof (p) (q)))", r"d:2:\d+: outcomes inside 'forall' are not supported"),
        ("(probabilistic 0.8 (p) 0.3 (q))", r"d:2:\d+: chances add up to 1.1; expected at most 1"),
        ("(probabilistic (p) 0.8)", r"d:2:\d+: expected \(probabilistic CHANCE EFFECT...\)"),
        ("(probabilistic -0.5 (p))", r"d:2:\d+: expected \(probabilistic CHANCE EFFECT...\)"),
        ("(probabilistic 0.5 p)", r"d:2:\d+: unexpected 'p'; expected the effect of an outcome"),
        (f"(and {'(oneof (p) (q)) ' * 7})", r"d:2:\d+: an action has at most 64 outcomes"),
        ("(oneof (p) (r))", r"d:2:\d+: unknown predicate 'r'"),
    ],
)
def test_faults_are_named_with_their_place(effect: str, message: str) -> None:
    """An unreadable outcome is rejected with its place and reason."""
    with pytest.raises(TaskError, match=message):
        parse_domain(
            f"(define (domain d) (:predicates (p) (q))\n (:action a :effect {effect}))", source="d"
        )


def test_a_name_of_an_outcome_is_taken() -> None:
    """An action with the name of another's outcome is declared twice."""
    text = (
        "(define (domain d) (:predicates (p) (q)) (:action a--2 :effect (p)) (:action a :effect"
        " (oneof (p) (q))))"
    )
    with pytest.raises(TaskError, match="action 'a--2' is declared twice"):
        parse_domain(text)


def test_outcomes_are_written_as_actions() -> None:
    """The text of the domain has an action for each outcome, and reading it restores them."""
    domain = dishes().domain
    read = parse_domain(domain_to_pddl(domain))
    assert [(a.name, a.effect) for a in read.actions] == [
        (a.name, a.effect) for a in domain.actions
    ]


@settings(max_examples=scaled_examples(0.1), deadline=None)
@given(st.integers(0, 1000))
def test_the_goal_is_reached_or_proved_lost(seed: int) -> None:
    """With random outcomes, each state is possible, and the end is the goal or a broken dish."""
    problem, lots = dishes(), random.Random(seed)

    def act(state: State, action: GroundAction) -> State:
        assert action.name in ("wash", "dry")
        return lots.choice(possible_states(problem, state, action))

    done = execute_with_replanning(problem, act)
    for before, action, after in zip(done.states, done.actions, done.states[1:], strict=False):
        assert after in possible_states(problem, before, action)
    is_lost = any(fact.predicate == "broken" for fact in done.states[-1])
    assert done.status is (TaskPlanStatus.UNSOLVABLE if is_lost else TaskPlanStatus.SOLVED)
    assert problem.holds(done.states[-1], problem.goal) is not is_lost


def test_bad_luck_ends() -> None:
    """If the expected outcome never occurs, the limit of actions ends the execution."""
    problem = dishes(1)
    done = execute_with_replanning(
        problem,
        lambda s, a: possible_states(problem, s, a)[-2 % 3 if "wash" in a.name else 0],
        max_actions=4,
    )
    assert done.status is TaskPlanStatus.LIMIT
    assert done.message == "the goal does not hold after 4 actions"
    assert len(done.actions) == 4
