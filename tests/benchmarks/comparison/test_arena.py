"""The arena: suites that ship can be read, and plans of others are checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.comparison.arena import arena_table, load_suite, run_arena, suite_names

from tmkit.batch.problems import Batch
from tmkit.errors import ConfigurationError, MissingFileError, UnknownNameError
from tmkit.tamp.problem import problem_file_of

pytest.importorskip("distributed")


@pytest.mark.parametrize("name", suite_names())
def test_suites_that_ship_can_be_read(name: str) -> None:
    """Each has several kinds of problems, whose scenes, goals and parameters are right."""
    batch = load_suite(name)
    assert len(batch.entries) > 2
    for entry in batch.entries:
        assert entry.source.digest
        problem, _ = entry.source.problem(entry.seeds[0])
        assert all(
            (file := problem_file_of(goal)) is None or file.is_file() for goal in problem.goals
        )
    assert batch.options.check


def test_planners_of_others_are_judged_by_their_plans(tmp_path: Path) -> None:
    """A planner that gives up has no plan, and one whose plans collide has no valid plan."""
    batch = load_suite("geometry")
    entries = [entry for entry in batch.entries if entry.name == "swaps"][:1]
    planners = [
        "benchmarks.comparison.other_planner:first_goal_only",
        "benchmarks.comparison.other_planner:through_the_table",
    ]
    rows = run_arena(
        {"swaps": Batch(tuple(entries), batch.options)},
        tmp_path,
        planners=["tmkit", *planners],
        seeds=2,
        simulate=False,
        workers=1,
    )
    assert [(row.planner, row.runs, row.solved, row.invalid) for row in rows] == [
        ("tmkit", 2, 2, 0),
        (planners[0], 2, 1, 0),
        (planners[1], 2, 0, 2),
    ]
    assert rows[0].actions == 6
    assert rows[0].ends_well is None
    assert rows[2].seconds is None
    assert [row.failure for row in rows] == ["", "no plan", ""]
    table = (tmp_path / "arena.md").read_text(encoding="utf-8")
    assert table == arena_table(rows)
    assert "| swaps | swaps[parameters.blocks=2] | tmkit | 2 of 2 |" in table


def test_what_is_no_planner_or_suite_is_refused(tmp_path: Path) -> None:
    """Before anything is planned."""
    batch = load_suite("hanoi")
    for name, match in (
        (
            "nowhere:plan",
            (
                r"no planner 'nowhere:plan': the module cannot be imported: ModuleNotFoundError: No"
                r" module named 'nowhere'"
            ),
        ),
        ("benchmarks.comparison.other_planner:plan", r"has no attribute 'plan'"),
        (
            "benchmarks.comparison.other_planner:NO_PLANNER",
            r"cannot be called with a problem and options",
        ),
        ("nonsense", r"there is no planner 'nonsense': expected MODULE:NAME or FILE.py:NAME"),
    ):
        with pytest.raises(ConfigurationError, match=match):
            run_arena({"hanoi": batch}, tmp_path, planners=[name])
    with pytest.raises(UnknownNameError, match=r"did you mean 'hanoi'\?"):
        load_suite("hanoy")
    with pytest.raises(MissingFileError, match=r"there is no file 'hanoi\.toml'"):
        load_suite("hanoi.toml")
