"""Time limits in Python code: they stop growth and change nothing else."""

from __future__ import annotations

import itertools
import sys

import pytest
from support.processes import run_process
from support.task_problems import load

from tmkit._support.time_limits import check_time, time_limit
from tmkit.errors import TimeLimitError
from tmkit.pddl import Problem, parse_problem, validate_task_plan
from tmkit.tamp.domains.infeasibility import necessary_facts
from tmkit.task_planning import FastDownward, TaskPlanStatus
from tmkit.task_planning.z3.step_bounds import Exploration

MANY = " ".join(f"?v{i}" for i in range(12))


class Polls:
    """A clock that goes on by one second whenever it is looked at."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> float:
        """Return the seconds."""
        self.count += 1
        return float(self.count)


def places_problem(goal: str, blocks: int = 10) -> Problem:
    """Return the problem with blocks that all stand on one place and are clear."""
    names = [f"b{i}" for i in range(blocks)]
    facts = " ".join(f"(at {name} p) (clear {name})" for name in names)
    text = (
        f"(define (problem many) (:domain places) (:objects {' '.join(names)} - block p - place)"
        f" (:init {facts} (empty)) (:goal {goal}))"
    )
    return parse_problem(text, load("places").domain)


def test_a_limit_stops_and_is_gone_behind_its_block() -> None:
    """Checks count down, an inner block ends with the outer one, and no limit acts outside."""
    check_time()
    clock = Polls()
    with pytest.raises(TimeLimitError, match="the time is up"), time_limit(5, clock=clock):  # noqa: PT012  # the count
        for _ in range(10):
            with time_limit(1000):
                check_time()
    assert 5 <= clock.count <= 12
    check_time()


@pytest.mark.parametrize(
    ("goal", "holds"),
    [
        (f"(forall ({MANY} - block) (and (clear ?v0) (clear ?v11)))", True),
        (
            (
                f"(forall ({MANY} - block) (or (on ?v0 ?v1) (held ?v2) (held ?v3) (on ?v4 ?v5)"
                " (held ?v11)))"
            ),
            False,
        ),
        (
            (
                f"(exists ({MANY} - block) (and (clear ?v3) (or (clear ?v9) (held ?v1)) (not (held"
                " ?v11))))"
            ),
            True,
        ),
        (f"(forall ({MANY} - block) (imply (and (clear ?v0) (held ?v11)) (held ?v5)))", True),
        (
            "(and "
            + "".join(f"(forall (?x{i} - block) " for i in range(12))
            + "(clear ?x11)"
            + ")" * 13,
            True,
        ),
    ],
)
def test_quantifiers_over_a_dozen_variables_are_judged_at_once(goal: str, holds: bool) -> None:
    """A quantifier costs its dependent variables only: 10^12 combinations are not enumerated."""
    problem, clock = places_problem(goal), Polls()
    with time_limit(20_000, clock=clock):
        assert problem.holds(problem.init, problem.goal) is holds
        assert validate_task_plan(problem, []).is_valid is holds
    facts = necessary_facts(problem)
    assert len(facts) <= 10


def test_what_cannot_be_judged_at_once_is_stopped() -> None:
    """Variables that hang together take as long as they take, until the limit."""
    equal = " ".join(f"(= ?v{i} ?v{j})" for i, j in itertools.combinations(range(12), 2))
    # more variables than blocks: two are the same
    problem = places_problem(f"(forall ({MANY} - block) (or {equal}))")
    with pytest.raises(TimeLimitError), time_limit(1000, clock=Polls()):
        problem.holds(problem.init, problem.goal)


def test_all_that_grows_looks_at_the_time() -> None:
    """Translation, search and execution end at an expired limit, each with its own result."""
    problem = load("places")
    task = FastDownward().translate(problem)
    assert not FastDownward().translate(problem, time_limit=-1.0).is_complete
    assert FastDownward().search(task, time_limit=-1.0).status is TaskPlanStatus.LIMIT
    solved = FastDownward().solve(problem)
    for work in (
        lambda: validate_task_plan(problem, solved.steps),
        task.to_text,
        task.is_goal_impossible,
        lambda: Exploration(task).expand(10),
    ):
        with pytest.raises(TimeLimitError), time_limit(-1.0):
            work()
        work()


def test_planning_for_a_hard_goal_ends_in_time() -> None:
    """The whole command ends soon after its limit; the guard is a hundred times as long."""
    goal = f"(forall ({MANY} - block) (or {' '.join(f'(on ?v{i} ?v{i + 1})' for i in range(11))}))"
    command = [
        sys.executable,
        "-m",
        "tmkit.cli",
        "plan",
        "panda_table",
        "blocks5",
        "--goal",
        goal,
        "--time-limit",
        "1",
    ]
    done = run_process(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1, done.stderr
    assert "within the limits; there may be one" in done.stdout
