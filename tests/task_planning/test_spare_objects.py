"""Objects added to a prepared task: results equal those of a new translation."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.task_problems import NAMES, ground_actions, load

from tmkit.errors import TaskError
from tmkit.pddl import Fact, Problem, State, parse_domain, parse_problem, validate_task_plan
from tmkit.pddl.substitution import atoms_of
from tmkit.task_planning import FastDownward, TaskPlanStatus
from tmkit.task_planning.encoding import copy_of
from tmkit.task_planning.protocol import ExtensibleTask

PLANNER = FastDownward()

DISHES = parse_domain("""(define (domain dishes)
      (:types dish place - object  cup - dish)
      (:predicates (at ?d - dish ?p - place) (clean ?d - dish) (on ?d - dish ?e - dish) (tidy)
        (free ?d - dish))
      (:derived (free ?d - dish) (not (exists (?e - dish) (on ?e ?d))))
      (:derived (tidy) (forall (?d - dish) (exists (?p - place) (at ?d ?p))))
      (:action wash :parameters (?d - dish) :precondition (free ?d) :effect (clean ?d))
      (:action put :parameters (?d - dish ?p - place)
        :precondition (and (free ?d) (forall (?e - dish) (imply (on ?d ?e) (clean ?d))))
        :effect (and (at ?d ?p) (forall (?e - dish) (not (on ?d ?e))))))""")
TASK = parse_problem(
    """(define (problem p) (:domain dishes) (:objects plate bowl - dish sink shelf - place)
      (:init (on bowl plate) (at plate sink)) (:goal (and (tidy) (forall (?d - dish)
        (clean ?d)))))""",
    DISHES,
)


def without(problem: Problem, object: str) -> Problem:
    """Return a problem without an object and all that is about it."""
    init = State(fact for fact in problem.init if object not in fact.arguments)
    objects = {name: types for name, types in problem.objects.items() if name != object}
    return copy_of(problem, objects=objects, init=init)


@pytest.mark.parametrize("name", ["dishes", *NAMES])
@settings(max_examples=scaled_examples(0.1))
@given(seed=st.integers(0, 10**6))
def test_an_object_that_comes_needs_no_translation(name: str, seed: int) -> None:
    """Before it comes, the task is as without it; afterwards as with it, from whatever state."""
    problem, random = TASK if name == "dishes" else load(name), Random(seed)
    named = {term for atom, _ in atoms_of(problem.goal) for term in atom.terms}
    later = [
        object
        for object, types in problem.objects.items()
        if object not in named
        and len(types) == 1
        and not any(object in term.arguments for term in problem.values)
    ]
    if not later or any(function.parameters for function in problem.domain.functions):
        return
    object = random.choice(later)
    (kind,) = problem.objects[object]
    small = without(problem, object)
    task = PLANNER.prepare(small, spare={kind: random.choice([1, 2])})
    first, plain = PLANNER.search(task, time_limit=600.0), PLANNER.solve(small, time_limit=600.0)
    assert first.status == plain.status
    assert not first.is_solved or validate_task_plan(small, first.steps).is_valid
    state, steps = problem.init, list(ground_actions(problem))
    for _ in range(random.randrange(4)):
        applicable = [step for step in steps if not problem.why_not(state, step)]
        state = problem.apply(state, random.choice(applicable)) if applicable else state
    grown = task.with_object(object, kind, state)
    if grown is None:  # a fact about others is the same in all states without it
        return
    full = copy_of(problem, init=state)
    action, context = random.choice(steps), random.sample(sorted(state), min(2, len(state)))
    anew = PLANNER.prepare(full)
    for ours, theirs in (
        (grown, anew),
        (grown.forbid(action, context), anew.forbid(action, context)),
    ):
        result, expected = (PLANNER.search(each, time_limit=600.0) for each in (ours, theirs))
        assert result.status == expected.status
        assert not result.is_solved or validate_task_plan(full, result.steps).is_valid


def test_quantifiers_range_over_what_has_come() -> None:
    """A goal over all dishes includes an added cup, but no absent spare object."""
    task = PLANNER.prepare(TASK, spare={"cup": 2})
    assert isinstance(task, ExtensibleTask)
    assert len(PLANNER.search(task).steps) == 3  # wash the bowl, put it away, wash the plate
    state = TASK.init.change(add=[Fact.of("on", "Cup", "bowl")])
    grown = task.with_object("Cup", "cup", state)
    assert grown is not None
    result = PLANNER.search(grown)
    assert next(str(step) for step in result.steps if "Cup" in step.arguments) == "(wash Cup)"
    assert len(result.steps) == 5
    two = grown.with_object("mug", "cup", state.change(add=[Fact.of("on", "mug", "Cup")]))
    assert two is not None
    assert len(PLANNER.search(two).steps) == 7
    assert two.with_object("third", "cup", state) is None
    assert len(PLANNER.search(task).steps) == 3  # a task is a value
    assert task.with_object("bread", "place", TASK.init) is None


def test_invalid_spare_objects_are_rejected() -> None:
    """A type that is not there, an object that is, a fact about nothing, and costs of objects."""
    with pytest.raises(TaskError, match="unknown type of a spare object 'cop'; did you mean 'cup'"):
        PLANNER.prepare(TASK, spare={"cop": 1})
    task = PLANNER.prepare(TASK, spare={"cup": 1})
    with pytest.raises(TaskError, match="object 'bowl' already exists"):
        task.with_object("bowl", "cup", TASK.init)
    with pytest.raises(TaskError, match="glass"):
        task.with_object("cup1", "cup", TASK.init.change(add=[Fact.of("clean", "glass")]))
    priced = parse_domain(
        """(define (domain priced) (:types thing) (:predicates (done ?x - thing)) (:functions
          (total-cost) (price ?x))
          (:action buy :parameters (?x - thing) :effect (and (done ?x) (increase (total-cost)
            (price ?x)))))"""
    )
    problem = parse_problem(
        """(define (problem p) (:domain priced) (:objects a - thing) (:init (= (price a) 1))
          (:goal (done a))
          (:metric minimize (total-cost)))""",
        priced,
    )
    with pytest.raises(TaskError, match="function 'price' has no values for spare objects"):
        PLANNER.prepare(problem, spare={"thing": 1})


def test_an_absent_object_proves_nothing_wrong() -> None:
    """A goal that needs an absent object has no plan."""
    domain = parse_domain(
        """(define (domain doors) (:types key door) (:predicates (opens ?k - key ?d - door)
          (open ?d - door))
          (:action unlock :parameters (?k - key ?d - door) :precondition (opens ?k ?d) :effect
            (open ?d)))"""
    )
    text = (
        "(define (problem p) (:domain doors) (:objects front - door) (:init) (:goal (open front)))"
    )
    task = PLANNER.prepare(parse_problem(text, domain), spare={"key": 1})
    assert PLANNER.search(task).status is TaskPlanStatus.UNSOLVABLE
    grown = task.with_object("brass", "key", State([Fact.of("opens", "brass", "front")]))
    assert grown is not None
    assert [str(step) for step in PLANNER.search(grown).steps] == ["(unlock brass front)"]
