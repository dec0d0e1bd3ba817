"""Standard streams and folders that fail: the command ends with a clear code and one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.processes import run_process

TMKIT = f"{sys.executable} -m tmkit.cli"


def shell(line: str, folder: Path) -> tuple[int, str, str]:
    """Run a line of bash with ``TMKIT`` put in; return exit code, standard output and standard error."""
    line = f"set -o pipefail; {line.replace('TMKIT', TMKIT)}"
    ended = run_process(
        ["bash", "-c", line], check=False, capture_output=True, text=True, cwd=folder
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "TMKIT scene dump panda_table > /dev/full",
            "error: the standard output cannot be written: No space left on device",
        ),
        (
            "TMKIT scene dump panda_table >&-",
            "error: the standard output cannot be written: Bad file descriptor",
        ),
        (
            "TMKIT --version > /dev/full",
            "error: the standard output cannot be written: No space left on device",
        ),
        ("TMKIT scene dump nosuch 2> /dev/full", ""),
        ("TMKIT scene dump nosuch 2>&- <&-", ""),
        (
            "TMKIT scene dump panda_table --log-file /dev/full > /dev/null",
            "error: /dev/full: cannot be written: No space",
        ),
    ],
)
def test_a_stream_that_fails(line: str, said: str, tmp_path: Path) -> None:
    """What cannot be printed ends with exit code 2 and one line, if there is anywhere to put it."""
    code, out, err = shell(line, tmp_path)
    assert (code, out) == (2, ""), (code, out, err)
    assert err.startswith(said)
    assert len(err.splitlines()) == bool(said)
    assert not list(tmp_path.iterdir())


def test_a_reader_that_goes_changes_nothing(tmp_path: Path) -> None:
    """The command goes on without a word, writes its output, and ends with its own exit code."""
    code, out, err = shell("TMKIT scene dump panda_table | head -0", tmp_path)
    assert (code, out, err) == (0, "", "")
    code, out, err = shell("TMKIT scene convert panda_table -o scene.json | true", tmp_path)
    assert (code, out, err) == (0, "", "")
    assert (tmp_path / "scene.json").stat().st_size > 100


def test_an_answer_is_complete_or_the_code_says_so(tmp_path: Path) -> None:
    """For programs, too: the last line of the standard error has the exit code, the one before it the reason."""
    code, out, err = shell("TMKIT scene dump panda_table --json > /dev/full", tmp_path)
    assert (code, out) == (2, "")
    assert (
        '"message": "the standard output cannot be written: No space left on device"'
        in err.splitlines()[-2]
    )
    assert err.splitlines()[-1] == '{"event": "done", "exit_code": 2}'


@pytest.mark.parametrize("limit", ["0", "1"])
def test_files_that_may_not_grow(limit: str, tmp_path: Path) -> None:
    """Under ``ulimit -f`` planning is refused in one line, and no output is begun."""
    line = f"ulimit -f {limit}; TMKIT plan panda_table blocks1 --goal '(holding a)' -o plan.json"
    code, out, err = shell(line, tmp_path)
    assert (code, out) == (2, ""), (code, out, err)
    assert err.startswith("error: ")
    assert "temporary files" in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_nothing_that_is_opened_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """With all three streams closed, the output is whole: nothing that is printed gets into it."""
    code, *_ = shell("TMKIT scene convert panda_table -o scene.json <&- >&- 2>&-", tmp_path)
    assert code == 2  # where it was written to could not be said
    code, *_ = shell("TMKIT scene convert panda_table -o again.json", tmp_path)
    assert (tmp_path / "scene.json").read_bytes() == (tmp_path / "again.json").read_bytes()


def test_a_spinner_is_for_terminals_alone(tmp_path: Path) -> None:
    """A notebook sets FORCE_COLOR for the commands of its cells; what they print has no control characters."""
    line = (
        'FORCE_COLOR=1 TMKIT plan panda_table blocks1 --goal "(ontable a table__0__1)" -o plan.json'
    )
    code, out, err = shell(line, tmp_path)
    assert code == 0
    assert "\x1b" not in out + err
