"""Preferences of goals: compilation, cheapest plans and rejected inputs."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

import tmkit as tk
from tmkit.errors import TaskError
from tmkit.pddl import Problem, parse_domain, parse_problem, validate_task_plan
from tmkit.task_planning import FastDownward

DOMAIN = """(define (domain shop) (:types item) (:functions (total-cost) - number)
  (:predicates (have ?x - item) (happy))
  (:action buy :parameters (?x - item) :effect (and (have ?x) (increase (total-cost) 3))))"""


def shop(goal: str, metric: str = "", items: str = "a b c") -> Problem:
    """Return the task to buy, at 3 a piece."""
    text = (
        f"(define (problem p) (:domain shop) (:objects {items} - item) (:init) (:goal {goal})"
        f" {metric})"
    )
    return parse_problem(text, parse_domain(DOMAIN), source="p")


def test_what_the_metric_omits_is_worth_nothing() -> None:
    """A preference without a price is left out, named or not; the domain is the given one."""
    problem = shop(
        "(and (have a) (preference p1 (have b)) (preference (have c)))",
        "(:metric minimize (total-cost))",
    )
    assert str(problem.goal) == "(and (have a) (and) (and))"
    assert problem.domain == parse_domain(DOMAIN)


@settings(max_examples=scaled_examples(0.05), deadline=None)
@given(st.lists(st.integers(0, 6), min_size=3, max_size=3), st.integers(0, 2))
def test_the_cheapest_plan_keeps_what_is_worth_its_price(prices: list[int], wanted: int) -> None:
    """The cost of the best plan is the minimum over all sets of purchases."""
    terms = " ".join(f"(* {price} (is-violated p{n}))" for n, price in enumerate(prices))
    soft = " ".join(f"(preference p{n} (have {item}))" for n, item in enumerate("abc"))
    hard = " ".join(f"(have {item})" for item in "abc"[:wanted])
    problem = shop(f"(and {hard} {soft})", f"(:metric minimize (+ (total-cost) {terms}))")
    best = min(
        sum(3 if bought else price for bought, price in zip(choice, prices, strict=True))
        for choice in product([True, False], repeat=3)
        if all(choice[:wanted])
    )
    result = FastDownward.optimal().solve(problem)
    assert result.cost == best
    assert validate_task_plan(problem, result.steps).cost == best


def test_each_object_is_forgone_by_itself() -> None:
    """A preference in forall has a price for each object; prices of a repeated name add up."""
    metric = "(:metric minimize (+ (* 2 (is-violated all)) (total-cost)))"
    each = FastDownward.optimal().solve(
        shop("(forall (?x - item) (preference all (have ?x)))", metric)
    )
    assert sorted(map(str, each.steps)) == ["(forgo--all a)", "(forgo--all b)", "(forgo--all c)"]
    assert each.cost == 6.0
    twice = shop("(and (preference all (have a)) (preference all (have b)))", metric)
    assert [action.name for action in twice.domain.actions] == [
        "buy",
        "forgo--all",
        "forgo--all--2",
    ]
    assert FastDownward.optimal().solve(twice).cost == 4.0


@pytest.mark.parametrize(
    ("goal", "metric", "message"),
    [
        (
            "(or (happy) (preference p (happy)))",
            "",
            r"p:1:\d+: a preference inside 'or' is not supported",
        ),
        ("(preference p)", "", r"p:1:\d+: unknown predicate 'preference'"),
        ("(preference p q (happy))", "", r"p:1:\d+: expected \(preference NAME FORMULA\)"),
        ("(preference p (preference q (happy)))", "", "a preference inside a preference"),
        (
            "(preference p (happyy))",
            "(+ (total-cost) (is-violated p))",
            "unknown predicate 'happyy'; did you mean 'happy'",
        ),
        (
            "(preference p1 (happy))",
            "(+ (total-cost) (is-violated p2))",
            "unknown preference 'p2'; did you mean 'p1'",
        ),
        (
            "(preference p (happy))",
            "(+ (total-cost) (* -1 (is-violated p)))",
            "the price of preference 'p' is negative",
        ),
        (
            "(preference p (happy))",
            "(is-violated p)",
            r"the domain has costs, so the metric has to add \(total-cost\)",
        ),
        (
            "(preference p (happy))",
            "(- (total-cost) (is-violated p))",
            r"expected \(total-cost\), \(is-violated",
        ),
    ],
)
def test_faults_are_named_with_their_place(goal: str, metric: str, message: str) -> None:
    """An invalid preference is rejected with the place and the reason."""
    with pytest.raises(TaskError, match=message):
        shop(goal, f"(:metric minimize {metric})" if metric else "")


def test_a_task_with_motions_has_none(tmp_path: Path) -> None:
    """A problem file with preferences for a scene is rejected by name."""
    path = tmp_path / "soft.pddl"
    path.write_text(
        "(define (problem p) (:domain blocks) (:init) (:goal (preference p1 (on a b)))"
        " (:metric minimize (is-violated p1)))"
    )
    with pytest.raises(
        TaskError, match=r"soft.pddl: preferences are for tasks without motions, as of 'tmkit task'"
    ):
        tk.plan(tk.load_scene("panda_table", "blocks3"), domain="blocks", goal=path)
