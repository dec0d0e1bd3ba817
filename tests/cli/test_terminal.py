"""Output on a terminal: progress lines, colours, narrow windows, and examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.commands import commands_by_path, parse_command
from support.terminal import on_terminal

from tmkit.cli import reporting
from tmkit.cli.commands import EXAMPLES
from tmkit.tamp import ImprovementProgress, PlanningProgress

PLAN = ("plan", "panda_table", "blocks2", "--goal")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*[349][0-7](?:;\d+)*m")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_progress_is_a_line_that_changes(tmp_path: Path) -> None:
    """It has phase, task plan, motion and seconds, in colour unless NO_COLOR is set."""
    run = on_terminal(*PLAN, "(on a b)", folder=tmp_path)
    assert run.code == 0
    assert re.search(r"planning, \d+\.\d s: task plan 1, motion \d/2", run.text)
    assert COLOUR.search(run.text)
    assert run.text.rstrip().endswith("2. (stack a b)")
    plain = on_terminal(*PLAN, "(on a b)", folder=tmp_path, NO_COLOR="1")
    assert "planning, " in plain.text
    assert not COLOUR.search(plain.text)


def test_the_seconds_of_a_line_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two reports the seconds grow with the clock, for texts and for states."""
    now = [100.0]
    monkeypatch.setattr(reporting.time, "monotonic", lambda: now[0])
    line = reporting._LiveLine("reading the scene")
    now[0] += 2.5
    assert line.__rich__().plain == "reading the scene, 2.5 s"
    line.show(PlanningProgress("motion", 1, 4, 7.0, 3, 57, "cost 4, paths 2.00 rad"))
    now[0] += 1.5
    assert (
        line.__rich__().plain
        == "planning, 8.5 s: task plan 3, motion 1/4, attempt 57; best cost 4, paths 2.00 rad"
    )
    line.show(ImprovementProgress("improve", 6, 0, 9.0, 3, 60, "cost 3, paths 1.00 rad", 3.0, 1.0))
    assert (
        line.__rich__().plain == "improving, 9.0 s: best cost 3, paths 1.00 rad, after 6 iterations"
    )


def test_a_narrow_terminal_gets_whole_words(tmp_path: Path) -> None:
    """With 40 columns no line is longer, and none ends inside a word."""
    for arguments, code in (
        ((*PLAN, "(on a a)"), 1),
        (("plan", "panda_tabel", "--goal", "(on a b)"), 2),
    ):
        run = on_terminal(*arguments, folder=tmp_path, columns=40)
        assert run.code == code
        answer = CONTROL.sub("", run.text.split("\x1b[?25h")[-1])
        whole = on_terminal(*arguments, folder=tmp_path, columns=400)
        expected = CONTROL.sub("", whole.text.split("\x1b[?25h")[-1])
        assert answer.split() == expected.split()
        lines = answer.splitlines()
        assert len(lines) > 1
        assert max(map(len, lines)) <= 40


def test_every_command_has_examples_that_parse() -> None:
    """Each example has valid options and arguments, and the help ends with the examples."""
    commands = commands_by_path()
    assert set(EXAMPLES) == {"", *commands}
    for path, examples in EXAMPLES.items():
        for example in examples:
            named = parse_command(example.removeprefix("source <(").removesuffix(")"))
            assert path in ("", named)
            if path:
                assert commands[path].epilog.endswith("\n\n".join(examples))
