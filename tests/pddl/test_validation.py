"""A plan is judged by executing it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.task_problems import ground_actions, load

from tmkit.pddl import Fact, GroundAction, Not, State, validate_task_plan
from tmkit.pddl.formulas import Atom

PROBLEMS = {name: load(name) for name in ("places", "rooms", "lamps", "gripper")}
ACTIONS = {name: list(ground_actions(problem)) for name, problem in PROBLEMS.items()}
ACTIONS["gripper"] = [
    step for step in ACTIONS["gripper"] if len(set(step.arguments)) == len(step.arguments)
]

SWAP = tuple(
    GroundAction(name, arguments)
    for name, arguments in (
        ("unpile", ("c", "a")),
        ("lower", ("c", "right")),
        ("lift", ("b", "middle")),
        ("pile", ("b", "c")),
        ("lift", ("a", "left")),
        ("pile", ("a", "b")),
    )
)


def test_a_valid_plan_is_valid() -> None:
    """The known plan reaches the goal, with a state for every step and a cost of one each."""
    problem = load("places")
    validation = validate_task_plan(problem, SWAP)
    assert validation.is_valid
    assert (validation.failed_step, validation.failures, validation.message, validation.cost) == (
        None,
        (),
        "",
        6.0,
    )
    assert len(validation.states) == 7
    assert validation.states[0] == problem.init
    assert problem.holds(validation.final_state, problem.goal)


def test_the_first_failing_step_is_named_with_its_literals() -> None:
    """A step that cannot be done ends the execution, and every literal that fails is named."""
    validation = validate_task_plan(load("places"), (SWAP[0], *SWAP[2:]))
    assert not validation.is_valid
    assert validation.failed_step == 1
    assert validation.failures == (Atom("empty"),)
    assert validation.message == "step 2 of 5, (lift b middle): (empty) does not hold"
    assert len(validation.states) == 2


def test_negative_literals_are_told_in_words() -> None:
    """A negated condition that fails is reported as such."""
    validation = validate_task_plan(load("rooms"), [GroundAction("unlock", ("d1", "dock", "hall"))])
    assert validation.failures == (Not(Atom("open", ("d1",))),)
    assert "(open d1) holds, but must not" in validation.message


def test_goal_literals_that_fail_are_named() -> None:
    """A plan that ends too early names the part of the goal that is missing."""
    validation = validate_task_plan(load("places"), SWAP[:4])
    assert validation.failed_step is None
    assert validation.failures == (Atom("on", ("a", "b")),)
    assert validation.message == "the goal is not reached: (on a b) does not hold"


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (GroundAction("fling", ("a",)), "unknown action 'fling'"),
        (GroundAction("lift", ("a",)), "takes 2 arguments, but 1"),
        (GroundAction("lift", ("left", "a")), "must be of type block, but 'left' is of type place"),
    ],
)
def test_steps_that_make_no_sense_fail(step: GroundAction, reason: str) -> None:
    """A step that the domain does not have is a failed step, not an exception."""
    validation = validate_task_plan(load("places"), [step])
    assert (validation.is_valid, validation.failed_step) == (False, 0)
    assert reason in validation.message


def test_costs_are_added() -> None:
    """With a cost metric, the cost of a plan is the sum of the costs of its actions."""
    problem = load("rooms")
    steps = [
        GroundAction("drive", ("dock", "hall")),
        GroundAction("unlock", ("d3", "hall", "study")),
    ]
    assert validate_task_plan(problem, steps).cost == 3.5
    undefined = validate_task_plan(
        problem, [GroundAction("drive", ("dock", "hall")), GroundAction("drive", ("hall", "hall"))]
    )
    assert undefined.failed_step == 1


@settings(max_examples=scaled_examples(0.3))
@given(seed=st.integers(0, 10**6), name=st.sampled_from(["places", "rooms", "lamps", "gripper"]))
def test_validation_agrees_with_applying_steps(seed: int, name: str) -> None:
    """The validation of random steps equals their application one by one."""
    problem, random = PROBLEMS[name], Random(seed)
    steps: list[GroundAction] = []
    states: list[State] = [problem.init]
    for _ in range(6):
        choices = [step for step in ACTIONS[name] if not problem.why_not(states[-1], step)]
        if not choices:
            break
        steps.append(random.choice(choices))
        states.append(problem.apply(states[-1], steps[-1]))
    validation = validate_task_plan(problem, steps)
    assert validation.states == tuple(states)
    assert validation.failed_step is None
    assert validation.is_valid == problem.holds(states[-1], problem.goal)
    stuck = [step for step in ACTIONS[name] if problem.why_not(states[-1], step)]
    if stuck:
        failed = validate_task_plan(problem, [*steps, stuck[0]])
        assert failed.failed_step == len(steps)
        assert failed.failures == problem.why_not(states[-1], stuck[0])


def test_facts_added_by_a_plan_are_in_the_last_state() -> None:
    """The last state of a valid plan contains the facts that its last action adds."""
    assert Fact.of("on", "a", "b") in validate_task_plan(load("places"), SWAP).final_state
