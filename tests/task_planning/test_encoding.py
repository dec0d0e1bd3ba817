"""The form of a problem that Fast Downward reads means the same as the problem."""

from __future__ import annotations

from random import Random

import pytest
from support.task_problems import ground_actions, load, random_state

from tmkit.pddl import parse_domain, parse_problem
from tmkit.pddl.evaluation import Interpretation
from tmkit.task_planning.encoding import encode


@pytest.mark.parametrize("name", ["deep-effects", "nested-effects"])
def test_nested_effects_change_the_same_when_encoded(name: str) -> None:
    """In random states, every action has the same effects before and after splitting."""
    problem = load(f"features/{name}")
    encoding = encode(problem)
    encoded = parse_problem(encoding.problem_text, parse_domain(encoding.domain_text))
    random = Random(name)
    for _ in range(60):
        state = random_state(problem, random)
        for action in ground_actions(problem):
            first, second = (
                Interpretation(task, state).change(
                    task.domain.action(action.name).effect, task.binding_of(action)[1]
                )
                for task in (problem, encoded)
            )
            assert (first.added, first.deleted - first.added) == (
                second.added,
                second.deleted - second.added,
            )
