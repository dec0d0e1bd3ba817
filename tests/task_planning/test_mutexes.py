"""The proof that a goal contradicts itself: never wrong, and found where it matters."""

from __future__ import annotations

from itertools import product
from typing import cast

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.pddl import Fact, Problem, parse_domain, parse_problem
from tmkit.task_planning import FastDownward
from tmkit.task_planning.sas import Pair, SasEffect, SasOperator, SasVariable
from tmkit.task_planning.translated_task import TranslatedTask, find_conflict, is_goal_impossible

State = tuple[int, ...]

BLOCKS = """
(define (domain blocks)
  (:requirements :typing)
  (:types block)
  (:predicates (on ?x ?y - block) (down ?x - block) (clear ?x - block) (held ?x - block) (free))
  (:action take :parameters (?x - block) :precondition (and (clear ?x) (down ?x) (free))
    :effect (and (held ?x) (not (clear ?x)) (not (down ?x)) (not (free))))
  (:action put :parameters (?x - block) :precondition (held ?x)
    :effect (and (not (held ?x)) (clear ?x) (down ?x) (free)))
  (:action stack :parameters (?x ?y - block) :precondition (and (held ?x) (clear ?y))
    :effect (and (not (held ?x)) (not (clear ?y)) (clear ?x) (on ?x ?y) (free)))
  (:action unstack :parameters (?x ?y - block) :precondition (and (on ?x ?y) (clear ?x) (free))
    :effect (and (held ?x) (clear ?y) (not (clear ?x)) (not (on ?x ?y)) (not (free)))))
"""


def translated(goal: str) -> TranslatedTask:
    """Return the translated task of three blocks on the table."""
    domain = parse_domain(BLOCKS)
    facts = " ".join(f"(down {name}) (clear {name})" for name in "abc")
    text = (
        f"(define (problem p) (:domain blocks) (:objects a b c - block) (:init {facts} (free))"
        f" (:goal {goal}))"
    )
    return FastDownward().translate(parse_problem(text, domain))


@pytest.mark.parametrize(
    "goal", ["(and (on a b) (on b a))", "(and (on a a))", "(and (held a) (free))"]
)
def test_contradictions_are_found(goal: str) -> None:
    """Goals with mutex facts, such as a block on itself, need no search."""
    assert is_goal_impossible(translated(goal))


@pytest.mark.parametrize(
    "goal",
    [
        "(and (on a b) (on b c))",
        "(held a)",
        "(or (on a b) (on b a))",
        "(and (on c a) (free))",
        "(and)",
    ],
)
def test_goals_that_can_be_reached_are_not_called_impossible(goal: str) -> None:
    """Facts of reachable states are possible, and derived facts are ignored."""
    assert not is_goal_impossible(translated(goal))


def test_no_answer_is_no_proof() -> None:
    """Three blocks in a circle contradict themselves, but no two of them do."""
    task = translated("(and (on a b) (on b c) (on c a))")
    assert not is_goal_impossible(task)
    assert not FastDownward().search(task).is_solved


def test_learned_constraints_prove_nothing() -> None:
    """Derived variables of learned constraints do not contribute to the proof."""
    task = translated("(and (on a b) (on b c))")
    action = task.action_of("stack a b")
    assert not is_goal_impossible(task.forbid(action, task.problem.init))
    assert is_goal_impossible(task.forbid(action, ()))


def test_a_task_that_was_not_finished_proves_nothing() -> None:
    """An incomplete translation proves nothing."""
    assert not is_goal_impossible(TranslatedTask.incomplete(cast(Problem, None)))


def literal(text: str) -> tuple[Fact, bool]:
    """Return ``on a b`` or ``not on a b`` as a literal."""
    words = text.split()
    wanted = words[0] != "not"
    return Fact.of(*words[not wanted :]), wanted


@pytest.mark.parametrize(
    ("wanted", "conflict"),
    [
        (["held c", "on a b", "on b a"], ["on a b", "on b a"]),
        (["on b c", "on a a"], ["on a a"]),
        (["free", "held a"], ["free", "held a"]),
        (["on a b", "not clear b", "clear b"], ["on a b", "clear b"]),
        (["not free", "down a", "down b", "down c", "on b a"], ["down b", "on b a"]),
        (["not free", "on a b", "not held a"], []),
        (["not free", "not clear a", "not clear b"], []),
        (["on a b", "on b c"], []),
        (["on a b", "on b c", "on c a"], []),
        ([], []),
    ],
)
def test_the_facts_that_exclude_each_other_are_named(
    wanted: list[str], conflict: list[str]
) -> None:
    """The conflict is one impossible fact, or the first mutex pair, or empty without a proof."""
    assert find_conflict(translated("(and)"), [literal(text) for text in wanted]) == tuple(
        map(literal, conflict)
    )


def test_facts_that_never_change_count() -> None:
    """A static fact keeps its initial value; the opposite literal is the conflict."""
    domain = parse_domain(BLOCKS.replace("(free))\n", "(free) (red ?x - block))\n", 1))
    text = (
        "(define (problem p) (:domain blocks) (:objects a b - block) (:init (red a) (down a)"
        " (free)) (:goal (and)))"
    )
    task = FastDownward().translate(parse_problem(text, domain))
    assert find_conflict(task, [literal("red a"), literal("not red b")]) == ()
    assert find_conflict(task, [literal("red a"), literal("red b")]) == (literal("red b"),)
    assert find_conflict(task, [literal("not red a")]) == (literal("not red a"),)


def test_a_task_that_was_not_finished_names_no_conflict() -> None:
    """An incomplete translation has no conflicts."""
    assert find_conflict(TranslatedTask.incomplete(cast(Problem, None)), [literal("on a a")]) == ()


SIZES = (2, 3, 2, 2)


@st.composite
def pairs(draw: st.DrawFn, *, most: int) -> tuple[Pair, ...]:
    """Values of some different variables."""
    chosen = draw(st.lists(st.sampled_from(range(len(SIZES))), max_size=most, unique=True))
    return tuple(
        (variable, draw(st.integers(0, SIZES[variable] - 1))) for variable in sorted(chosen)
    )


@st.composite
def operators(draw: st.DrawFn) -> SasOperator:
    """An operator over four variables, with conditional effects here and there."""
    effects = []
    for variable, after in draw(pairs(most=3)):
        before = draw(st.integers(-1, SIZES[variable] - 1))
        effects.append(
            SasEffect(draw(pairs(most=1)) if draw(st.booleans()) else (), variable, before, after)
        )
    touched = {effect.variable for effect in effects}
    prevail = tuple(pair for pair in draw(pairs(most=2)) if pair[0] not in touched)
    return SasOperator("move", prevail, tuple(effects), 1)


def successor(state: State, operator: SasOperator) -> State | None:
    """Return the state after an operator, ``None`` when it cannot be applied."""
    needs = [
        *operator.prevail,
        *((e.variable, e.before) for e in operator.effects if e.before >= 0),
    ]
    if any(state[variable] != value for variable, value in needs):
        return None
    after = list(state)
    for effect in operator.effects:
        if all(state[variable] == value for variable, value in effect.conditions):
            after[effect.variable] = effect.after
    return tuple(after)


def reachable(start: State, moves: list[SasOperator]) -> set[State]:
    """Return all reachable states."""
    states, waiting = {start}, [start]
    while waiting:
        state = waiting.pop()
        for move in moves:
            after = successor(state, move)
            if after is not None and after not in states:
                states.add(after)
                waiting.append(after)
    return states


@settings(max_examples=scaled_examples(3.0))
@given(
    st.lists(operators(), max_size=6),
    pairs(most=4),
    st.sampled_from(list(product(*map(range, SIZES)))),
)
def test_impossible_literals_hold_in_no_state(
    moves: list[SasOperator], goal: tuple[Pair, ...], place: State
) -> None:
    """If the proof succeeds, no reachable state satisfies the goal."""
    variables = tuple(
        SasVariable(f"v{n}", -1, tuple(f"Atom p{n}{k}()" for k in range(size)))
        for n, size in enumerate(SIZES)
    )
    task = TranslatedTask(cast(Problem, None), 0, variables, (), place, goal, tuple(moves), ())
    is_reached = any(
        all(state[v] == value for v, value in goal) for state in reachable(place, moves)
    )
    if is_goal_impossible(task):
        assert not is_reached
