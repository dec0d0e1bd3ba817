"""Engines of unified-planning: numeric plans, forbidden actions, limits and rejections."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.kitchen import ROBOT, kitchen

import tmkit as tk
from tmkit.errors import TaskError, TaskPlannerError
from tmkit.pddl import Fact, GroundAction, Problem, parse_domain, parse_problem, validate_task_plan
from tmkit.task_planning import TaskPlanStatus, UnifiedPlanner

pytest.importorskip("up_tamer")

DOMAIN = """(define (domain robots) (:requirements :typing :numeric-fluents) (:types place robot)
  (:predicates (at ?r - robot ?p - place) (road ?p ?q - place))
  (:functions (battery ?r - robot) (distance ?p ?q - place) (trips))
  (:action drive :parameters (?r - robot ?p ?q - place)
    :precondition (and (at ?r ?p) (road ?p ?q) (>= (battery ?r) (* 2 (distance ?p ?q))))
    :effect (and (at ?r ?q) (not (at ?r ?p)) (decrease (battery ?r) (* 2 (distance ?p ?q)))
      (increase (trips) 1)))
  (:action charge :parameters (?r - robot) :precondition (< (battery ?r) 10) :effect (assign
    (battery ?r) 10)))"""
NUMBERS = " ".join(f"(= (distance {p} {q}) {2 * (p != q)})" for p in "ab" for q in "ab")
PROBLEM = f"""(define (problem trip) (:domain robots) (:objects a b - place r - robot)
  (:init (at r a) (road a b) (road b a) (= (battery r) 5) (= (trips) 0) {NUMBERS})
  (:goal (and (at r a) (>= (trips) 2))))"""
CHARGE = GroundAction("charge", ("r",))


def task(goal: str = "(and (at r a) (>= (trips) 2))") -> Problem:
    """Return the task of a robot with a battery."""
    return parse_problem(
        PROBLEM.replace("(and (at r a) (>= (trips) 2))", goal), parse_domain(DOMAIN)
    )


def test_numbers_are_planned_with() -> None:
    """The plan charges, and is the same again."""
    planner = UnifiedPlanner("tamer")
    result = planner.solve(task())
    assert result.is_solved, result.message
    assert CHARGE in result.steps
    assert validate_task_plan(task(), result.steps).is_valid
    assert planner.solve(task()) == result


def test_forbidden_actions_are_not_done() -> None:
    """A robot charges at the place that is not forbidden; without one there is no plan."""
    planner = UnifiedPlanner("tamer")
    prepared = planner.prepare(task())
    for place, other in (("a", "b"), ("b", "a")):
        result = planner.search(prepared.forbid(CHARGE, [Fact.of("at", "r", place)]))
        assert result.is_solved, result.message
        validation = validate_task_plan(task(), result.steps)
        charged = [
            state
            for step, state in zip(result.steps, validation.states, strict=False)
            if step == CHARGE
        ]
        assert charged
        assert all(Fact.of("at", "r", other) in state for state in charged)
    assert not prepared.forbidden
    assert not planner.search(prepared.forbid(CHARGE, ()), time_limit=20.0).is_solved


def test_the_time_limit_ends_the_engine() -> None:
    """A search at its time limit is neither an error nor a proof."""
    result = UnifiedPlanner("tamer").search(
        UnifiedPlanner("tamer").prepare(task("(>= (trips) 100000)")), time_limit=0.01
    )
    assert result.status is TaskPlanStatus.LIMIT


def test_bad_engines_and_tasks_are_named() -> None:
    """An engine that is not there, a task that it does not take, and a context that is none."""
    with pytest.raises(
        TaskPlannerError, match=r"has no engine 'tame' here; install it .known: .*tamer"
    ):
        UnifiedPlanner("tame").prepare(task())
    nested = parse_domain(DOMAIN.replace("place robot", "place robot - thing thing"))
    with pytest.raises(
        TaskPlannerError, match="engine 'tamer' lacks HIERARCHICAL_TYPING, which task 'trip' needs"
    ):
        UnifiedPlanner("tamer").prepare(parse_problem(PROBLEM, nested))
    partial = parse_problem(PROBLEM.replace("(= (trips) 0)", ""), parse_domain(DOMAIN))
    with pytest.raises(TaskPlannerError, match="lacks UNDEFINED_INITIAL_NUMERIC"):
        UnifiedPlanner("tamer").prepare(partial)
    with pytest.raises(TaskError, match=r"context \(at r c\): unknown object 'c'"):
        UnifiedPlanner("tamer").prepare(task()).forbid(CHARGE, [Fact.of("at", "r", "c")])


def test_numbers_are_planned_with_motions(tmp_path: Path) -> None:
    """Water is filled in before each wash; the plan with numbers is written and validated."""
    text = tk.data_path("domains/kitchen/domain.pddl").read_text(encoding="utf-8")
    fill = (
        "(:functions (water)) (:action fill :precondition (< (water) 1) :effect (assign (water) 1))"
    )
    text = text.replace("(:action pick", f"{fill} (:action pick", 1)
    text = text.replace("(washes ?r))", "(washes ?r) (>= (water) 1))")
    text = text.replace(":effect (clean ?x))", ":effect (and (clean ?x) (decrease (water) 1)))")
    domain, problem = tmp_path / "domain.pddl", tmp_path / "problem.pddl"
    domain.write_text(text, encoding="utf-8")
    goal = "(:init (= (water) 0)) (:goal (and (clean b0) (clean b1)))"
    problem.write_text(f"(define (problem wash) (:domain kitchen) {goal})", encoding="utf-8")
    planner = UnifiedPlanner("tamer")
    result = tk.solve(
        tk.PlanningProblem(
            kitchen(2), domain=domain, semantics="kitchen", goal=problem, robots=ROBOT
        ),
        tk.PlanningOptions(task_planner=planner),
    )
    assert result.plan is not None, result.explanation
    assert [step.action.name for step in result.plan.steps].count("fill") == 2
    tk.save_plan(result.plan, tmp_path / "plan.json")
    read = tk.load_plan(tmp_path / "plan.json")
    assert tk.validate_plan(read).is_valid
    dry = replace(read, steps=tuple(step for step in read.steps if step.action.name != "fill"))
    assert any(
        "(>= (water) 1) does not hold" in problem for problem in tk.validate_plan(dry).problems
    )
