"""The table of PDDL domains: plans, proofs and rejections of both planners."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.ipc_table import example_tasks, run_lama, run_tmkit, tasks_of
from benchmarks.pddl_table import Pair

_DOMAIN = """(define (domain lamp) (:requirements :strips {requirement})
(:predicates (on) (broken))
(:action switch :parameters () :precondition (not (broken)) :effect (on)))"""

_PROBLEM = "(define (problem {name}) (:domain lamp) (:init {init}) (:goal (on)))"


def _write(folder: Path, *, requirement: str = "", init: str = "", name: str = "p") -> Pair:
    domain, problem = folder / "domain.pddl", folder / f"{name}.pddl"
    domain.write_text(_DOMAIN.format(requirement=requirement), encoding="utf-8")
    problem.write_text(_PROBLEM.format(name=name, init=init), encoding="utf-8")
    return Pair(domain, problem)


@pytest.mark.parametrize(
    ("init", "status"), [("", "solved"), ("(broken)", "unsolvable")], ids=["plan", "no plan"]
)
def test_both_planners_agree(init: str, status: str, tmp_path: Path) -> None:
    """On a plan of one action, and on a proof that there is none."""
    pair = _write(tmp_path, requirement=":negative-preconditions", init=init)
    for attempt in (run_tmkit(pair, "fast-downward", 60.0), run_lama(pair, 60.0)):
        assert attempt.status == status
        assert attempt.actions == (1 if status == "solved" else None)
        assert attempt.seconds > 0.0


def test_an_unknown_requirement_is_named(tmp_path: Path) -> None:
    """In the reason of each planner."""
    pair = _write(tmp_path, requirement=":telepathy")
    for attempt in (run_tmkit(pair, "fast-downward", 60.0), run_lama(pair, 60.0)):
        assert attempt.status == "rejected"
        assert ":telepathy" in attempt.reason


def test_the_limit_of_processor_time_ends_a_planner(tmp_path: Path) -> None:
    """The start of the program takes longer than this limit."""
    assert run_tmkit(_write(tmp_path), "fast-downward", 0.01).status == "limit"


def test_problems_are_taken_by_size(tmp_path: Path) -> None:
    """The smallest and the largest of three, under the name of the domain's folder."""
    folder = tmp_path / "lamp"
    folder.mkdir()
    for number in range(3):
        _write(folder, name=f"p{number}", init="(broken)" * number)
    tasks = [*tasks_of(folder, (0.0, 1.0))]
    assert [(task.collection, task.domain, task.name) for task in tasks] == [
        (tmp_path.name, "lamp", "p0"),
        (tmp_path.name, "lamp", "p2"),
    ]


def test_examples_of_unified_planning_are_written_or_refused(tmp_path: Path) -> None:
    """Both kinds occur, and none is lost."""
    pytest.importorskip("unified_planning")
    examples = [*example_tasks(tmp_path)]
    written = [example for example in examples if not isinstance(example, tuple)]
    assert 40 < len(written) < len(examples)
    assert all(task.pair.domain.exists() and task.pair.problem.exists() for task in written)
    refused = [example for example in examples if isinstance(example, tuple)]
    assert all(reason.startswith("not PDDL: ") for _, reason in refused)
