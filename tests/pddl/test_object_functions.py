"""Object functions: equivalence to predicates, and rejected uses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tmkit.errors import TaskError
from tmkit.pddl import (
    Domain,
    Fact,
    GroundAction,
    Problem,
    domain_to_pddl,
    parse_domain,
    parse_problem,
    validate_task_plan,
)
from tmkit.task_planning import FastDownward

DOMAIN = """(define (domain linear-blocks) (:requirements :typing :object-fluents)
  (:types block place)
  (:constants table - place)
  (:predicates (red ?x - block))
  (:functions (weight ?x - block) - number
    (position ?x - block) (goal-place ?x - block) - place (moves))
  (:action move :parameters (?x - block ?p - place)
    :precondition (and (not (= (position ?x) ?p)) (<= (weight ?x) 3))
    :effect (assign (position ?x) ?p))
  (:action bring :parameters (?x - block)
    :precondition (not (= (position ?x) (goal-place ?x)))
    :effect (when (= table (position ?x)) (and (red ?x) (assign (position ?x) undefined)))))"""
PROBLEM = """(define (problem p) (:domain linear-blocks) (:objects a b - block shelf - place)
  (:init (= (position a) table) (= (position b) shelf)
    (= (goal-place a) shelf) (= (goal-place b) shelf) (= (weight a) 1) (= (weight b) 4))
  (:goal (and (= (position a) (goal-place a)) (= (position b) shelf))))"""


def domain(old: str = "", new: str = "") -> Domain:
    """Return the domain, with a part of its text replaced."""
    return parse_domain(DOMAIN.replace(old, new), source="linear")


def test_they_are_predicates_with_the_value_last() -> None:
    """Facts, goals and effects equal those of the predicate; a new value replaces the old one."""
    task = parse_problem(PROBLEM, domain())
    assert Fact.of("position", "a", "table") in task.init
    assert [function.name for function in task.domain.functions] == ["weight", "moves"]
    moved = task.apply(task.init, GroundAction("move", ("a", "shelf")))
    assert {fact for fact in moved if fact.predicate == "position"} == {
        Fact.of("position", "a", "shelf"),
        Fact.of("position", "b", "shelf"),
    }
    assert task.holds(moved, task.goal)
    assert not task.holds(task.init, task.goal)
    lost = task.apply(task.init, GroundAction("bring", ("a",)))
    assert Fact.of("red", "a") in lost
    assert not [
        fact for fact in lost if fact.arguments[:1] == ("a",) and fact.predicate == "position"
    ]
    heavy = validate_task_plan(task, [GroundAction("move", ("b", "table"))])
    assert "(<= (weight b) 3) does not hold" in heavy.message


def test_functions_may_be_arguments_of_functions() -> None:
    """The value of a function stands for itself in conditions, sums and effects, however deep."""
    text = """(define (domain walk) (:types walker place) (:predicates (lit ?p - place))
      (:functions (spot ?w - walker) - place (after ?p - place) - place
        (height ?p - place) - number)
      (:action step :parameters (?w - walker)
        :precondition (and (not (= (spot ?w) (after (spot ?w)))) (lit (after (spot ?w)))
          (<= (height (after (spot ?w))) (+ 1 (height (spot ?w)) 2 1)))
        :effect (and (assign (spot ?w) (after (spot ?w))) (not (lit (spot ?w))))))"""
    init = "(= (spot w) a) (= (after a) b) (= (after b) c) (= (after c) c) (lit a) (lit b) (lit c)"
    numbers = "(= (height a) 0) (= (height b) 4) (= (height c) %d)"
    parsed = (
        f"(:domain walk) (:objects w - walker a b c - place) (:init {init} {numbers}) (:goal (="
        " (after (spot w)) c))"
    )
    step = GroundAction("step", ("w",))
    task = parse_problem(f"(define (problem p) {parsed % 8})", parse_domain(text))
    once = task.apply(task.init, step)
    assert {str(fact) for fact in once if fact.predicate != "after"} == {
        "(spot w b)",
        "(lit b)",
        "(lit c)",
    }
    assert task.holds(once, task.goal)
    assert not task.holds(task.init, task.goal)
    assert not task.why_not(once, step)
    assert task.why_not(task.apply(once, step), step)
    steep = parse_problem(f"(define (problem p) {parsed % 9})", parse_domain(text))
    assert steep.why_not(once, step)
    assert parse_domain(domain_to_pddl(task.domain)) == task.domain


def test_they_are_written_as_predicates() -> None:
    """The text that is written has the same meaning."""
    assert parse_domain(domain_to_pddl(domain())) == domain()


def test_fast_downward_plans_with_them() -> None:
    """The plan moves the block that is elsewhere."""
    task = parse_problem(PROBLEM, domain("(<= (weight ?x) 3)", ""))
    assert FastDownward().solve(task).steps == (GroundAction("move", ("a", "shelf")),)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("(assign (position ?x) ?p)", "(assign (position ?x) ?q)", "unknown variable '\\?q'"),
        (
            "(assign (position ?x) ?p)",
            "(assign (position ?x) (red ?x))",
            "expected an object or a variable",
        ),
        (
            "(assign (position ?x) ?p)",
            "(assign (position ?x) ?x)",
            "must be of type place, but '\\?x' is",
        ),
        (
            "(assign (position ?x) ?p)",
            "(assign (position ?p) ?p)",
            "must be of type block, but '\\?p' is",
        ),
        ("(assign (position ?x) ?p)", "(increase (position ?x) 1)", "unknown function 'position'"),
        ("(not (= (position ?x) ?p))", "(= (positio ?x) ?p)", "unexpected '\\?p'"),
        ("(not (= (position ?x) ?p))", "(= (red ?x) ?p)", "unexpected '\\?p'"),
        ("(not (= (position ?x) ?p))", "(< (position ?x) 3)", "unknown function 'position'"),
        ("- place (moves)", "- plac (moves)", "unknown type 'plac'"),
        (
            "(:predicates (red ?x - block))",
            "(:predicates (position ?x))",
            "predicate 'position' is declared twice",
        ),
    ],
)
def test_misuse_is_refused(old: str, new: str, reason: str) -> None:
    """With the place in the text."""
    with pytest.raises(TaskError, match=rf"linear:\d+:\d+: .*{reason}"):
        domain(old, new)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "(= (position a) table)",
            "(= (position a) table) (= (position a) shelf)",
            r"\(position a\) is given",
        ),
        ("(= (position a) table)", "(= (position a) tabel)", "unknown object 'tabel'"),
        (
            "(= (position a) table)",
            "(= (position a) (goal-place a))",
            "expected an object as the value",
        ),
    ],
)
def test_wrong_values_at_the_start_are_refused(old: str, new: str, reason: str) -> None:
    """With the place in the text."""
    with pytest.raises(TaskError, match=rf"problem:\d+:\d+: {reason}"):
        parse_problem(PROBLEM.replace(old, new), domain())


def test_undefined_values_are_left_out() -> None:
    """A function may have no value, at the start too."""
    task = parse_problem(
        PROBLEM.replace("(= (position a) table)", "(= (position a) undefined)"), domain()
    )
    assert not [
        fact for fact in task.init if fact.predicate == "position" and fact.arguments[0] == "a"
    ]


ORIGINAL = """(define (domain linear) (:types place - object block - object) (:predicates)
  (:constants nothing - block)
  (:functions (position ?b - block) - place (last) - block)
  (:derived (occupied ?p - place) (exists (?b - block) (= ?p (position ?b))))
  (:action transfer :parameters (?b - block ?p - place)
    :precondition (and (not (occupied ?p)) (not (= ?b (last))))
    :effect (and (= (position ?b) ?p) (= ?b (last))))
  (:action slide :parameters (?b - block ?p - place)
    :precondition (not (occupied ?p)) :uncontrollable t
    :effect (= (position ?b) ?p)))"""


def test_the_dialect_of_the_original_tmkit_is_read() -> None:
    """Derived predicates need no declaration, values may come first, the world may act."""
    task = parse_problem(
        """(define (problem swap) (:domain linear) (:objects a b - block p q r - place)
        (:init (= p (position a)) (= (position b) q))
        (:goal (and (= q (position a)) (= p (position b)))))""",
        parse_domain(ORIGINAL),
    )
    assert [action.name for action in task.domain.actions] == ["transfer"]
    assert [action.name for action in task.domain.uncontrollable_actions] == ["slide"]
    assert {str(fact) for fact in task.init} == {"(position a p)", "(position b q)"}
    planner = FastDownward()
    result = planner.solve(task)
    assert "'slide' defeats every plan; (slide nothing r) can happen at the start" in result.message
    domain = replace(task.domain, uncontrollable_actions=())
    task = Problem(task.name, domain, objects=task.objects, init=task.init, goal=task.goal)
    steps = planner.search(planner.prepare(task)).steps
    assert len(steps) == 3
    assert validate_task_plan(task, steps).is_valid
    with pytest.raises(TaskError, match="unknown predicate 'occupid'"):
        parse_domain(
            ORIGINAL.replace("(:predicates)", "(:predicates (occupied ?p - place))").replace(
                "(occupied ?p - place) (ex", "(occupid ?p - place) (ex"
            )
        )
