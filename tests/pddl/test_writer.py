"""Writing PDDL and reading it again gives an equal value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from support.effort import scaled_examples
from support.task_problems import FEATURES, NAMES, formulas, load, samples

from tmkit.errors import TaskError
from tmkit.pddl import (
    Action,
    And,
    Problem,
    State,
    domain_to_pddl,
    load_domain,
    load_problem,
    parse_domain,
    parse_goal,
    parse_problem,
    problem_to_pddl,
)


def check_round_trip(problem: Problem) -> None:
    """Write a problem and its domain, read them, and compare."""
    domain = parse_domain(domain_to_pddl(problem.domain))
    assert domain == problem.domain
    assert parse_problem(problem_to_pddl(problem), domain) == problem


@pytest.mark.parametrize("name", [*NAMES, *(f"features/{name}" for name in FEATURES)])
def test_own_files_survive_the_round_trip(name: str) -> None:
    """Reading the text of built-in problems gives equal problems."""
    check_round_trip(load(name))


def test_samples_survive_the_round_trip() -> None:
    """Reading the text of published samples gives equal problems."""
    for domain_path, problem_path in samples():
        check_round_trip(load_problem(problem_path, load_domain(domain_path)))


@pytest.mark.parametrize("name", ["rooms", "lamps", "oddities"])
def test_random_formulas_survive_the_round_trip(name: str) -> None:
    """A random formula as a goal and as a precondition is read as it was written."""
    problem = load(name)

    @settings(max_examples=scaled_examples(0.2))
    @given(formula=formulas(problem, depth=4))
    def check(formula: And) -> None:
        assert parse_goal(str(formula), problem.domain, objects=problem.objects) == formula
        constants = {constant.name for constant in problem.domain.constants}
        if not any(f" {name}" in str(formula) for name in problem.objects.keys() - constants):
            domain = replace(problem.domain, actions=(Action("only", (), formula),))
            assert parse_domain(domain_to_pddl(domain)) == domain

    check()


@pytest.mark.parametrize("name", ["two words", "a(b)", "", ":x", "?x", "-x", "a;b", "-"])
def test_names_that_pddl_cannot_say_are_refused(name: str) -> None:
    """A name that would be read as something else is not written."""
    domain = load("places").domain
    problem = Problem("p", domain, objects={name: "block"}, init=State(), goal=And())
    with pytest.raises(TaskError, match="cannot be written as a PDDL name"):
        problem_to_pddl(problem)
