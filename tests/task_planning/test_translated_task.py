"""Translated tasks: exact text output, and constraints that hold in all plans."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.task_problems import (
    DATA,
    NAMES,
    all_facts,
    blocks_world,
    ground_actions,
    load,
    shortest_plan,
)

from tmkit.errors import TaskError, TaskPlannerError
from tmkit.pddl import (
    Fact,
    GroundAction,
    Problem,
    State,
    load_domain,
    parse_domain,
    parse_goal,
    validate_task_plan,
)
from tmkit.pddl.formulas import Atom
from tmkit.task_planning import FastDownward, TaskPlanStatus
from tmkit.task_planning.translated_task import TranslatedTask

PLANNER = FastDownward(follow_up_searches=())


@cache
def translated(name: str) -> TranslatedTask:
    """Return the translation of one of our own problems, or of a small blocks world."""
    if name == "blocks":
        domain = load_domain(DATA / "places" / "domain.pddl")
        return PLANNER.translate(blocks_world(domain, blocks=3, places=3, seed=4))
    if name == "few rooms":
        return PLANNER.translate(few_rooms())
    return PLANNER.translate(load(name))


def few_rooms() -> Problem:
    """Return the problem ``rooms`` with one parcel, three places and two doors."""
    whole = load("rooms")
    objects = {
        name: types for name, types in whole.objects.items() if name not in ("box", "study", "d3")
    }
    facts = (fact for fact in whole.init if {"box", "study", "d3"}.isdisjoint(fact.arguments))
    return Problem(
        "few",
        whole.domain,
        objects=objects,
        init=State(facts).change(delete=[Fact.of("open", "d2")]),
        goal=parse_goal("(parcel-at letter dock) (robot-at hall)", whole.domain, objects=objects),
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_task_is_written_as_it_was_read(name: str) -> None:
    """Reading and writing the translator's format gives the same bytes, patched or not."""
    task = translated(name)
    text = task.to_text()
    assert TranslatedTask.from_text(text, task.problem, names=task.names) == task
    assert TranslatedTask.from_text(text, task.problem).to_text() == text
    steps = PLANNER.search(task).steps
    patched = task.forbid(steps[0], task.problem.init)
    assert TranslatedTask.from_text(patched.to_text(), task.problem).to_text() == patched.to_text()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected 'begin_version', found ''"),
        ("begin_version\n2\nend_version\n", "expected '3', found '2'"),
        ("begin_version\n3\nend_version\nbegin_metric\n", "invalid literal"),
        ("begin_version\n3\nend_version", "it ends too early"),
    ],
)
def test_text_in_another_format_is_rejected(text: str, reason: str) -> None:
    """Another version, or a file that ends too early, is rejected."""
    with pytest.raises(
        TaskPlannerError, match=f"the translator's output cannot be read: ({reason})"
    ):
        TranslatedTask.from_text(text, load("places"))


ForbiddenAction = tuple[GroundAction, frozenset[Fact]]


def is_forbidden(state: State, action: GroundAction, constraints: list[ForbiddenAction]) -> bool:
    """Tell whether a constraint forbids the action in the state."""
    return any(action == forbidden and context <= state.facts for forbidden, context in constraints)


def some_constraints(problem: Problem, random: Random, count: int) -> list[ForbiddenAction]:
    """Return constraints on actions of random walks, in random contexts of their states."""
    constraints: list[ForbiddenAction] = []
    steps = list(ground_actions(problem))
    while len(constraints) < count:
        state = problem.init
        for _ in range(random.randrange(4)):
            state = problem.apply(
                state, random.choice([s for s in steps if not problem.why_not(state, s)])
            )
        action = random.choice([step for step in steps if not problem.why_not(state, step)])
        size = random.choice([0, 1, 2, 3, len(state)]) if random.random() < 0.9 else 0
        context = set(random.sample(sorted(state), min(size, len(state))))
        if random.random() < 0.1:
            context.add(random.choice(all_facts(problem)))
        constraints.append((action, frozenset(context)))
    return constraints


@pytest.mark.parametrize(
    "planner",
    [PLANNER, replace(PLANNER, encoding="axioms"), FastDownward.optimal()],
    ids=["auto", "axioms", "split"],
)
@pytest.mark.parametrize("name", ["blocks", "few rooms"])
@settings(max_examples=scaled_examples(0.1))
@given(seed=st.integers(0, 10**6))
def test_forbidding_is_exact(planner: FastDownward, name: str, seed: int) -> None:
    """Under random constraints, plans exist and are valid as in breadth-first search."""
    task, random = replace(translated(name), encoding=planner.encoding), Random(seed)
    problem = task.problem
    constraints = some_constraints(problem, random, random.choice([1, 3, 10, 30]))
    patched = task
    for action, context in constraints:
        patched = patched.forbid(action, context)
    result = planner.search(patched, time_limit=600.0)
    expected = shortest_plan(
        problem, allowed=lambda state, action: not is_forbidden(state, action, constraints)
    )
    assert result.is_solved == (expected is not None)
    assert (
        name == "few rooms" or planner.encoding != "split" or len(result.steps) == (expected or 0)
    )
    assert result.status in (TaskPlanStatus.SOLVED, TaskPlanStatus.UNSOLVABLE)
    validation = validate_task_plan(problem, result.steps)
    assert validation.is_valid == result.is_solved
    for state, action in zip(validation.states, result.steps, strict=False):
        assert not is_forbidden(state, action, constraints)


@pytest.mark.parametrize("name", ["blocks", *NAMES])
@settings(max_examples=scaled_examples(0.1))
@given(seed=st.integers(0, 10**6))
def test_another_state_needs_no_translation(name: str, seed: int) -> None:
    """From another state, reachable or not, the result is that of a new translation."""
    problem, random = translated(name).problem, Random(seed)
    state, steps = problem.init, list(ground_actions(problem))
    for _ in range(random.randrange(6)):
        applicable = [step for step in steps if not problem.why_not(state, step)]
        state = problem.apply(state, random.choice(applicable)) if applicable else state
    reached = state
    for fact in random.sample(all_facts(problem), random.choice([0, 0, 1, 2])):
        state = state.change(delete=[fact]) if fact in state else state.change(add=[fact])
    moved = translated(name).at_state(state)
    assert state != reached or moved is not None
    if moved is None:
        return
    action, context = random.choice(steps), random.sample(sorted(state), min(2, len(state)))
    anew = PLANNER.translate(moved.problem)
    assert moved.problem.init == state
    for ours, theirs in (
        (moved, anew),
        (moved.forbid(action, context), anew.forbid(action, context)),
    ):
        result, expected = (PLANNER.search(task, time_limit=600.0) for task in (ours, theirs))
        assert result.status == expected.status
        assert not result.is_solved or validate_task_plan(moved.problem, result.steps).is_valid


def test_a_state_with_constants_changed_needs_a_translation() -> None:
    """A changed static fact, or two mutex facts, require a new translation."""
    task = translated("blocks")
    init = task.problem.init
    held = next(fact for fact in init if task.value_of(fact))
    constant = [fact for fact in init if task.value_of(fact) is None]
    assert all(task.at_state(init.change(delete=[fact])) is None for fact in constant)
    assert task.at_state(init) == task
    alternatives = [
        fact
        for fact in all_facts(task.problem)
        if task.value_of(fact) and task.value_of(fact)[0] == task.value_of(held)[0]
    ]
    assert task.at_state(init.change(add=alternatives)) is None
    with pytest.raises(TaskError, match="nowhere"):
        task.at_state(init.change(add=[Fact.of("nowhere", "a")]))


def test_learning_goes_on_until_there_is_no_plan() -> None:
    """Forbidding the first step of every plan gives other plans and finally a proof."""
    task = translated("blocks")
    constraints: list[ForbiddenAction] = []
    for _ in range(60):
        result = PLANNER.search(task)
        if not result.is_solved:
            break
        validation = validate_task_plan(task.problem, result.steps)
        index = len(constraints) % len(result.steps)
        state, action = validation.states[index], result.steps[index]
        assert not is_forbidden(state, action, constraints)
        constraints.append((action, frozenset(state)))
        task = task.forbid(action, state)
    for step in ground_actions(task.problem):
        task = task.forbid(step, ())
    assert task.operators == ()
    assert PLANNER.search(task).status is TaskPlanStatus.UNSOLVABLE


def test_patching_leaves_the_old_task_alone() -> None:
    """A task is a value: forbidding gives a new one."""
    task = replace(translated("places"), encoding="axioms")
    before = task.to_text()
    step = PLANNER.search(task).steps[0]
    patched = task.forbid(step, [Fact.of("clear", "c")])
    assert task.to_text() == before
    assert len(patched.variables) == len(task.variables) + 1
    assert hash(patched) != hash(task)


def test_one_context_has_one_variable() -> None:
    """Two actions with the same context share its variable; a repeated constraint is ignored."""
    task, context = (
        replace(translated("places"), encoding="axioms"),
        [Fact.of("clear", "c"), Fact.of("clear", "b")],
    )
    once = task.forbid(GroundAction("unpile", ("c", "a")), context)
    twice = once.forbid(GroundAction("lift", ("b", "middle")), reversed(context))
    assert len(twice.variables) == len(once.variables) == len(task.variables) + 1
    assert once.forbid(GroundAction("unpile", ("c", "a")), context) == once


def test_facts_that_never_change_are_judged_by_the_initial_state() -> None:
    """A fact without a variable holds always, if it holds initially, and else never."""
    task = translated("rooms")
    load_box = GroundAction("load", ("box", "study"))
    never = task.forbid(load_box, [Fact.of("door-between", "d1", "kitchen", "hall")])
    assert never == task
    static = Fact.of("door-between", "d1", "dock", "hall")
    always = task.forbid(load_box, [static])
    assert always == task.forbid(load_box, [])
    assert len(always.operators) < len(task.operators)
    both = [static, Fact.of("open", "d3")]
    assert task.forbid(load_box, both).blocked == task.forbid(load_box, both[1:]).blocked


def test_facts_that_the_goal_does_not_need_can_be_a_context() -> None:
    """A context may contain a fact without any condition, which the plan then removes first."""
    domain = parse_domain(
        "(define (domain d) (:predicates (seen) (done))"
        " (:action forget :effect (not (seen))) (:action finish :effect (done)))"
    )
    problem = Problem("p", domain, objects={}, init=State([Fact("seen")]), goal=Atom("done"))
    task = PLANNER.translate(problem)
    finish = GroundAction("finish")
    assert PLANNER.search(task).steps == (finish,)
    assert PLANNER.search(task.forbid(finish, [Fact("seen")])).steps == (
        GroundAction("forget"),
        finish,
    )


def test_contradictory_contexts_change_nothing() -> None:
    """A context of two mutex facts forbids nothing."""
    task = translated("places")
    facts = [Fact.of("held", "a"), Fact.of("held", "b")]
    assert PLANNER.search(task.forbid(GroundAction("unpile", ("c", "a")), facts)).is_solved


def test_actions_that_cannot_be_done_may_be_forbidden() -> None:
    """A well-formed action without operators is forbidden without effect."""
    task = translated("places")
    assert task.forbid(GroundAction("pile", ("a", "a")), [Fact.of("clear", "a")]).operators != ()


@pytest.mark.parametrize(
    ("action", "context", "reason"),
    [
        (GroundAction("fling", ("a",)), [], "unknown action 'fling'"),
        (
            GroundAction("lift", ("a", "left")),
            [Fact.of("over", "a")],
            r"context \(over a\): unknown predicate 'over'",
        ),
        (GroundAction("lift", ("a", "left")), [Fact.of("clear", "z")], "unknown object 'z'"),
    ],
)
def test_constraints_on_unknown_objects_are_rejected(
    action: GroundAction, context: list[Fact], reason: str
) -> None:
    """An action, predicate or object unknown to the problem is an error."""
    with pytest.raises(TaskError, match=reason):
        translated("places").forbid(action, context)


def test_derived_facts_are_no_context() -> None:
    """A context consists of basic facts."""
    with pytest.raises(TaskError, match="predicate 'passage' is derived"):
        translated("rooms").forbid(
            GroundAction("load", ("box", "study")), [Fact.of("passage", "dock", "hall")]
        )


def test_taking_apart_needs_no_axioms() -> None:
    """Split operators keep their names, need no new variable, and splitting is idempotent."""
    task = FastDownward.optimal().prepare(load("places"))
    step = PLANNER.search(task).steps[0]
    once = task.forbid(step, task.problem.init)
    assert once.axioms == task.axioms == ()
    assert once.variables == task.variables
    assert {operator.name for operator in once.operators} <= {
        operator.name for operator in task.operators
    }
    assert once.forbid(step, task.problem.init) == once
    assert len(once.forbid(step, ()).operators) < len(task.operators)


@pytest.mark.parametrize("name", ["places", "gripper", "rooms", "lamps", "oddities"])
def test_optimal_plans_are_as_cheap_as_any(name: str) -> None:
    """The optimal planner solves every example problem, also with axioms, at its best cost."""
    problem = load(name)
    result = FastDownward.optimal().solve(problem, time_limit=600.0)
    assert result.is_solved
    assert validate_task_plan(problem, result.steps).is_valid
    assert result.cost <= FastDownward().solve(problem, time_limit=600.0).cost


def test_optimal_search_learns() -> None:
    """Forbidding steps in their states gives optimal plans, ordered by cost, until none exists."""
    task = FastDownward.optimal().prepare(translated("blocks").problem)
    constraints: list[ForbiddenAction] = []
    cost = 0.0
    for _ in range(8):
        result = FastDownward.optimal().search(task)
        expected = shortest_plan(
            task.problem, allowed=lambda state, action: not is_forbidden(state, action, constraints)
        )
        assert (result.cost if result.is_solved else None) == expected
        if expected is None:
            break
        assert result.cost >= cost
        cost = result.cost
        states = validate_task_plan(task.problem, result.steps).states
        index = len(constraints) % len(result.steps)
        constraints.append((result.steps[index], frozenset(states[index])))
        task = task.forbid(*constraints[-1])
