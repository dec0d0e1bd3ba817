"""Plans lose the actions that their goal does not need, and nothing else."""

from __future__ import annotations

import itertools
import random

from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.pddl import GroundAction, parse_domain, parse_problem, validate_task_plan
from tmkit.task_planning.schedule import without_redundant_steps

DOMAIN = parse_domain("""
(define (domain rooms)
  (:requirements :typing :negative-preconditions)
  (:types room thing)
  (:predicates (at ?r - room) (in ?x - thing ?r - room) (carried ?x - thing) (lit ?r - room))
  (:action go :parameters (?a ?b - room) :precondition (at ?a) :effect (and (not (at ?a)) (at ?b)))
  (:action take :parameters (?x - thing ?r - room) :precondition (and (at ?r) (in ?x ?r))
    :effect (and (carried ?x) (not (in ?x ?r))))
  (:action drop :parameters (?x - thing ?r - room) :precondition (and (at ?r) (carried ?x))
    :effect (and (in ?x ?r) (not (carried ?x))))
  (:action light :parameters (?r - room) :precondition (and (at ?r) (not (lit ?r))) :effect
    (lit ?r)))
""")
PROBLEM = parse_problem(
    """
(define (problem p) (:domain rooms)
  (:objects a b c - room x y - thing)
  (:init (at a) (in x a) (in y b))
  (:goal (and (in x c) (at c))))
""",
    DOMAIN,
)


def steps(*texts: str) -> tuple[GroundAction, ...]:
    """Return ground actions from their words."""
    return tuple(GroundAction(text.split()[0], tuple(text.split()[1:])) for text in texts)


def test_redundant_steps_are_removed() -> None:
    """A light, a detour with something carried there and back: all go; what carries x stays."""
    plan = steps("light a", "take x a", "go a b", "take y b", "drop y b", "go b c", "drop x c")
    assert without_redundant_steps(PROBLEM, plan) == steps(
        "take x a", "go a b", "go b c", "drop x c"
    )


def test_necessary_steps_remain() -> None:
    """A plan without a step too many is returned as it is."""
    plan = steps("take x a", "go a c", "drop x c")
    assert without_redundant_steps(PROBLEM, plan) == plan


def test_constraints_hold_in_what_is_left() -> None:
    """A step is kept if a remaining action is forbidden in the state without it."""
    plan = steps("take x a", "light a", "go a c", "drop x c")
    lit = next(iter(PROBLEM.apply(PROBLEM.init, plan[1]).facts - PROBLEM.init.facts))

    def only_when_lit(action: GroundAction, state: object) -> bool:
        return action.name != "go" or lit in state  # type: ignore[operator]

    assert without_redundant_steps(PROBLEM, plan, is_allowed=only_when_lit) == plan
    assert without_redundant_steps(PROBLEM, plan) == steps("take x a", "go a c", "drop x c")


@given(st.data())
def test_the_remaining_steps_are_a_plan(data: st.DataObject) -> None:
    """Of random walks that end at the goal a subsequence remains that is a plan."""
    actions = [
        *(f"go {a} {b}" for a in "abc" for b in "abc" if a != b),
        *(f"{do} {x} {r}" for do in ("take", "drop") for x in "xy" for r in "abc"),
        *(f"light {r}" for r in "abc"),
    ]
    state, walk = PROBLEM.init, []
    for _ in range(data.draw(st.integers(0, 15))):
        possible = [action for action in steps(*actions) if not PROBLEM.why_not(state, action)]
        walk.append(data.draw(st.sampled_from(possible)))
        state = PROBLEM.apply(state, walk[-1])
    here = next(fact.arguments[0] for fact in state if fact.predicate == "at")
    x = next((fact for fact in state if fact.arguments[0] == "x"), None)
    assert x is not None
    ending = []
    if x.predicate == "in" and x.arguments[1] != "c":
        room = x.arguments[1]
        ending = [
            *([f"go {here} {room}"] if here != room else []),
            f"take x {room}",
            f"go {room} c",
            "drop x c",
        ]
    elif x.predicate == "carried":
        ending = [*([f"go {here} c"] if here != "c" else []), "drop x c"]
    elif here != "c":
        ending = [f"go {here} c"]
    plan = (*walk, *steps(*ending))
    assert validate_task_plan(PROBLEM, plan).is_valid
    left = without_redundant_steps(PROBLEM, plan)
    assert validate_task_plan(PROBLEM, left).is_valid
    rest = iter(plan)
    assert all(action in rest for action in left)


@given(st.integers(0, 10**6), st.integers(0, 300))
@settings(max_examples=scaled_examples(0.2))
def test_nothing_that_is_left_can_be_left_out(seed: int, length: int) -> None:
    """Random walks of more than 300 actions keep no action with removable dependants."""
    left = without_redundant_steps(PROBLEM, walk(seed, length))
    assert validate_task_plan(PROBLEM, left).is_valid
    for index in range(len(left)):
        assert not validate_task_plan(PROBLEM, (*left[:index], *left[index + 1 :])).is_valid
        assert not validate_task_plan(PROBLEM, without_dependents(left, index)).is_valid


def test_a_long_plan_of_needed_actions_stays() -> None:
    """Of 100 rooms each has to be gone to and lit."""
    rooms = [f"r{number}" for number in range(100)]
    goal = " ".join(f"(lit {room})" for room in rooms)
    objects = f"(:objects {' '.join(rooms)} - room)"
    text = f"(define (problem p) (:domain rooms) {objects} (:init (at r0)) (:goal (and {goal})))"
    moves = [(f"light {room}", f"go {room} {after}") for room, after in itertools.pairwise(rooms)]
    needed = steps(*(word for pair in moves for word in pair), f"light {rooms[-1]}")
    problem = parse_problem(text, DOMAIN)
    detour = steps("light r0", "go r0 r1", "go r1 r0")
    assert without_redundant_steps(problem, needed) == needed
    assert without_redundant_steps(problem, (*detour, *needed[1:])) == needed


def walk(seed: int, length: int) -> tuple[GroundAction, ...]:
    """Return random actions, at least so many, up to one that reaches the goal."""
    actions = steps(
        *(f"go {a} {b}" for a in "abc" for b in "abc" if a != b),
        *(f"{do} {x} {r}" for do in ("take", "drop") for x in "xy" for r in "abc"),
        *(f"light {r}" for r in "abc"),
    )
    rng, state, sequence = random.Random(seed), PROBLEM.init, list[GroundAction]()
    while len(sequence) < length or not PROBLEM.holds(state, PROBLEM.goal):
        sequence.append(
            rng.choice([action for action in actions if not PROBLEM.why_not(state, action)])
        )
        state = PROBLEM.apply(state, sequence[-1])
    return tuple(sequence)


def without_dependents(plan: tuple[GroundAction, ...], index: int) -> tuple[GroundAction, ...]:
    """Return a plan without an action and all that can no longer be done."""
    state, remaining = PROBLEM.init, list[GroundAction]()
    for number, action in enumerate(plan):
        if number != index and not PROBLEM.why_not(state, action):
            state = PROBLEM.apply(state, action)
            remaining.append(action)
    return tuple(remaining)
