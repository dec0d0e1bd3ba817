"""Problems of unified-planning: round trips, and rejection of unsupported features."""

from __future__ import annotations

from typing import Any

import pytest

import tmkit as tk
from tmkit.errors import TaskError
from tmkit.pddl import (
    GroundAction,
    Problem,
    load_problem,
    parse_domain,
    parse_problem,
    schedule_fault,
    validate_task_plan,
)
from tmkit.pddl.validation import TimedAction
from tmkit.task_planning.unified.conversion import problem_from_unified, problem_to_unified

shortcuts = pytest.importorskip("unified_planning.shortcuts")
examples = pytest.importorskip("unified_planning.test.examples")

EXAMPLES = examples.get_example_problems()
EXPRESSIBLE = (
    "basic",
    "basic_conditional",
    "basic_numeric",
    "complex_conditional",
    "basic_without_negative_preconditions",
    "basic_nested_conjunctions",
    "basic_exists",
    "basic_forall",
    "basic_with_costs",
    "basic_with_object_constant",
    "robot_no_negative_preconditions",
    "robot_loader",
    "robot_loader_mod",
    "robot_loader_adv",
    "charge_discharge",
    "hierarchical_blocks_world",
    "safe_road",
    "robot_locations_connected_without_battery",
    "hierarchical_blocks_world_exists",
    "hierarchical_blocks_world_object_as_root",
    "locations_connected_cost_minimize",
    "temporal_conditional",
    "matchcellar",
    "matchcellar_static_duration",
    "robot_with_static_fluents_duration",
)
REAL = ("basic_numeric", "matchcellar_static_duration", "robot_with_static_fluents_duration")
OURS = (
    "blocks/ceiling3",
    "drawer/empty",
    "handover/across",
    "hanoi/hanoi3",
    "kitchen/cook2",
    "mobile_manipulation/fetch3",
    "pour/tea",
    "push/rack",
    "rearrangement/swap",
    "sorting/sort8",
)


def is_valid(task: Problem, plan: Any) -> bool:
    """Tell whether a plan of unified-planning, in time or not, is one."""
    if not hasattr(plan, "timed_actions"):
        return validate_task_plan(task, steps_of(plan)).is_valid
    times = ((float(start), float(length or 0)) for start, _, length in plan.timed_actions)
    steps = [step_of(action) for _, action, _ in plan.timed_actions]
    return not schedule_fault(
        task, [TimedAction(t, step, d) for step, (t, d) in zip(steps, times, strict=True)]
    )


def steps_of(plan: Any) -> list[GroundAction]:
    """Return the steps of a plan of unified-planning."""
    return [*map(step_of, plan.actions)]


def step_of(step: Any) -> GroundAction:
    """Return an action of a plan of unified-planning."""
    return GroundAction(
        step.action.name.lower(),
        tuple(str(parameter).lower() for parameter in step.actual_parameters),
    )


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_examples_go_there_and_back(name: str) -> None:
    """A round trip keeps the task, lower-case problems and the validity of example plans."""
    example = EXAMPLES[name]
    task = problem_from_unified(example.problem)
    back = problem_to_unified(task)
    assert problem_from_unified(back) == task
    # whole numbers become real ones, real durations that are whole become whole ones
    if name not in REAL:
        assert back.kind == example.problem.kind
        assert str(example.problem) != str(example.problem).lower() or back == example.problem
    for plan in example.valid_plans:
        assert is_valid(task, plan)
    for plan in example.invalid_plans:
        assert not is_valid(task, plan)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in EXPRESSIBLE])
def test_other_examples_are_rejected_by_feature(name: str) -> None:
    """The message has each feature that this package lacks, as unified-planning calls it."""
    problem = EXAMPLES[name].problem
    with pytest.raises(TaskError, match=r"unified-planning problem '.*': tmkit has no ") as caught:
        problem_from_unified(problem)
    if name != "hierarchical_blocks_world_with_object":
        named = str(caught.value).partition("tmkit has no ")[2].split(", ")
        assert named
        assert set(named) <= set(problem.kind.features)


def our_problem(name: str) -> Problem:
    """Return a task of ours, with objects as far as its file has them."""
    domain, file = name.split("/")
    text = tk.data_path(f"domains/{domain}/domain.pddl").read_text(encoding="utf-8")
    path = tk.data_path(f"domains/{domain}/problems/{file}.pddl")
    return load_problem(path, parse_domain(text))


@pytest.mark.filterwarnings("ignore:Name .* already defined")
@pytest.mark.parametrize("name", OURS)
def test_our_tasks_go_there_and_back(name: str) -> None:
    """Actions, predicates, facts and objects are equal; the domain has the name of the problem."""
    environment = shortcuts.unified_planning.environment.Environment()
    environment.error_used_name = False  # kitchens have a predicate and an action 'clean'
    ours = our_problem(name)
    task = problem_from_unified(problem_to_unified(ours, environment))
    assert problem_from_unified(problem_to_unified(task, environment)) == task
    assert task.domain.actions == ours.domain.actions
    assert task.domain.predicates == ours.domain.predicates
    assert (task.init, set(task.objects.items())) == (ours.init, set(ours.objects.items()))


DOMAIN = """(define (domain d) (:requirements :adl) (:types t s) (:predicates (p ?x - t)
  (q ?x - object) %s)
  (:functions (total-cost)) (:action a :parameters (?x - t) :precondition (p ?x) :effect %s))"""
PROBLEM = (
    "(define (problem e) (:domain d) (:objects x - %s) (:init) (:goal (exists (?x - t) (p ?x))))"
)


@pytest.mark.parametrize(
    ("more", "effect", "kind", "reason"),
    [
        (
            "(r ?x - t)) (:derived (r ?x - t) (p ?x)",
            "(not (p ?x))",
            "t",
            "has no derived predicates",
        ),
        (
            "(r ?x - (either t s))",
            "(not (p ?x))",
            "t",
            "has no objects of several types: .either t s",
        ),
        (
            "",
            "(when (p ?x) (increase (total-cost) 1))",
            "t",
            "has no costs with conditions or quantifiers: .increase",
        ),
        ("(t)", "(not (p ?x))", "t", "unified-planning rejects it: .*t"),
    ],
)
def test_unsupported_constructs_are_rejected(
    more: str, effect: str, kind: str, reason: str
) -> None:
    """The message names the unsupported construct."""
    task = parse_problem(PROBLEM % kind, parse_domain(DOMAIN % (more, effect)))
    with pytest.raises(TaskError, match=reason):
        problem_to_unified(task)


def test_objects_in_numbers_of_goals() -> None:
    """Objects that only numbers of the goal name are objects, not constants."""
    text = (
        "(define (domain d) (:types c) (:functions (n ?c - c)) (:action up :parameters (?c - c)"
        " :effect %s))"
    )
    instance = (
        "(:objects a b - c) (:init (= (n a) 0) (= (n b) 0)) (:goal (and (< (+ (n a) 1) (n b)) (= (n"
        " b) 2)))"
    )
    domain = parse_domain(text % "(increase (n ?c) 1)")
    task = parse_problem(f"(define (problem e) (:domain d) {instance})", domain)
    back = problem_from_unified(problem_to_unified(task))
    assert (back.objects, back.domain.constants) == (task.objects, ())
    assert problem_from_unified(problem_to_unified(back)) == back
    assert validate_task_plan(back, [GroundAction("up", ("b",))] * 2).is_valid


def test_division_by_zero_is_rejected() -> None:
    """unified-planning cannot compute the features of the task."""
    action = "(:action a :precondition (> (/ 1 (f)) 0) :effect (p))"
    domain = parse_domain(f"(define (domain d) (:predicates (p)) (:functions (f)) {action})")
    instance = "(define (problem e) (:domain d) (:init (= (f) 0)) (:goal (p)))"
    with pytest.raises(TaskError, match=r"e\.pddl: unified-planning rejects it: .*zero"):
        problem_to_unified(parse_problem(instance, domain, source="e.pddl"))


def test_formulas_and_numbers() -> None:
    """Quantifiers, comparisons and costs with functions mean the same on both sides."""
    text = """(define (domain d) (:requirements :adl :action-costs) (:predicates (p ?x) (q ?x))
      (:functions (d ?x - object) - number (total-cost) - number)
      (:action a :parameters (?x - object)
        :precondition (and (imply (q ?x) (p ?x)) (forall (?y - object) (or (p ?y) (<= (d ?x)
          (+ 1 (* 2.5 (d ?y)))))))
        :effect (and (when (q ?x) (not (p ?x))) (forall (?z - object) (q ?z)) (increase
          (total-cost) (d ?x)))))"""
    goal = (
        "(define (problem e) (:domain d) (:objects u v) (:init (p u) (= (d u) 0.5) (= (d v) 2))"
        " (:goal (q v))"
    )
    task = parse_problem(f"{goal} (:metric minimize (total-cost)))", parse_domain(text))
    exported = problem_to_unified(task)
    assert str(exported.quality_metrics[0]) == "minimize actions-cost: {'a': d(x), 'default': None}"
    back = problem_from_unified(exported)
    assert problem_from_unified(problem_to_unified(back)) == back
    assert (back.init, back.values, back.domain.functions) == (
        task.init,
        task.values,
        task.domain.functions,
    )
    action = GroundAction("a", ("u",))
    assert back.apply(back.init, action) == task.apply(task.init, action)
    assert validate_task_plan(back, [action]).cost == validate_task_plan(task, [action]).cost == 0.5
    assert not validate_task_plan(back, [GroundAction("a", ("v",))] * 2).is_valid
    assert not validate_task_plan(task, [GroundAction("a", ("v",))] * 2).is_valid


def test_bad_names_and_values_are_rejected() -> None:
    """A name that PDDL lacks, and an effect whose value is no constant, are named."""
    problem = shortcuts.Problem("a name")
    with pytest.raises(TaskError, match="'a name' cannot be a name in PDDL"):
        problem_from_unified(problem)
    problem = shortcuts.Problem("p")
    x = problem.add_fluent("x", default_initial_value=False)
    y = problem.add_fluent("y", default_initial_value=False)
    action = shortcuts.InstantaneousAction("a")
    action.add_effect(x, y)
    problem.add_action(action)
    with pytest.raises(TaskError, match="no facts whose truth is that of a formula: x := y"):
        problem_from_unified(problem)
