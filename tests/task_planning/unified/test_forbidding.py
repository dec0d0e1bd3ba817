"""Many forbidden actions for an engine of unified-planning, without a slower translation."""

from __future__ import annotations

import pytest

from tmkit.pddl import Fact, GroundAction, parse_domain, parse_problem, validate_task_plan
from tmkit.task_planning import TaskPlanStatus, UnifiedPlanner

pytest.importorskip("unified_planning")

DOMAIN = """(define (domain roads) (:requirements :typing) (:types place)
  (:predicates (at ?p - place) (road ?p ?q - place) (lit ?p - place))
  (:action drive :parameters (?p ?q - place) :precondition (and (at ?p) (road ?p ?q))
    :effect (and (at ?q) (not (at ?p))))
  (:action light :parameters (?p - place) :precondition (at ?p) :effect (lit ?p)))"""
PLACES = [f"p{number}" for number in range(8)]
ROADS = " ".join(f"(road {p} {q})" for p in PLACES for q in PLACES if p != q)


def test_forty_contexts_of_one_action_are_kept() -> None:
    """Roads from unlit places are forbidden but those of one way; then those of that way, too."""
    problem = parse_problem(
        f"(define (problem way) (:domain roads) (:objects {' '.join(PLACES)} - place)"
        f" (:init (at p0) (lit p3) {ROADS}) (:goal (at p7)))",
        parse_domain(DOMAIN),
    )
    planner = UnifiedPlanner("fast-downward")
    prepared = planner.prepare(problem)
    route = [("p0", "p2"), ("p2", "p5"), ("p5", "p7")]
    for start in PLACES:
        for end in PLACES:
            if start != end and (start, end) not in route:
                prepared = prepared.forbid(
                    GroundAction("drive", (start, end)),
                    [Fact.of("at", start), Fact.of("lit", "p3")],
                )
    result = planner.search(prepared)
    assert [step.arguments for step in result.steps if step.name == "drive"] == route
    assert validate_task_plan(problem, result.steps).is_valid
    closed = prepared.forbid(GroundAction("drive", route[1]), ())
    assert planner.search(closed).status is TaskPlanStatus.UNSOLVABLE
