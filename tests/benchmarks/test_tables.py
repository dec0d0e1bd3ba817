"""The frame of the scripts that print tables."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from benchmarks.tables import (
    LiveTable,
    deliver,
    least_times,
    markdown_head,
    markdown_row,
    markdown_table,
    processor_time,
    table_parser,
)


def test_tables_have_a_rule_with_a_cell_for_each_title() -> None:
    """Cells are any values."""
    assert markdown_head("plan | s") == ["| plan | s |", "|---|---|"]
    assert markdown_head("plan") == ["| plan |", "|---|"]
    assert markdown_row(["a", 1, 0.5]) == "| a | 1 | 0.5 |"
    assert markdown_table(["plan", "s"], [("a", 1), ("b", 2)]) == [
        *markdown_head("plan | s"),
        "| a | 1 |",
        "| b | 2 |",
    ]


def test_a_page_is_written_or_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not both."""
    file = tmp_path / "page.md"
    parser = table_parser("A table.\n\nMore.")
    assert parser.description == "A table."
    deliver("page µ\n", parser.parse_args(["--out", str(file)]).out)
    assert file.read_text(encoding="utf-8") == "page µ\n"
    assert capsys.readouterr().out == ""
    deliver("page", parser.parse_args([]).out)
    assert capsys.readouterr().out == "page\n"


def test_a_live_table_is_printed_as_it_comes_and_written_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a file, nothing is written."""
    table = LiveTable(markdown_head("plan"))
    assert capsys.readouterr().out == "| plan |\n|---|\n"
    table.add("| a |", "| b |")
    assert capsys.readouterr().out == "| a |\n| b |\n"
    table.write(None)
    table.write(tmp_path / "table.md")
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == "| plan |\n|---|\n| a |\n| b |\n"


def test_times_are_of_the_processor_and_the_least_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that the calls move."""
    now, calls = [0.0], []

    def work(name: str, costs: list[float]) -> None:
        calls.append(name)
        now[0] += costs.pop(0)

    monkeypatch.setattr(time, "process_time", lambda: now[0])
    assert processor_time(lambda: work("a", [2.0])) == 2.0
    first, second = [3.0, 1.0, 2.0], [4.0, 8.0, 5.0]
    assert least_times([lambda: work("b", first), lambda: work("c", second)], 3) == [1.0, 4.0]
    assert calls == ["a", "b", "c", "c", "b", "b", "c"]
