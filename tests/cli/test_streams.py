"""Standard streams and folders that fail: an exit code and one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.processes import run_process

TMKIT = f"{sys.executable} -m tmkit.cli"


def shell(line: str, folder: Path) -> tuple[int, str, str]:
    """Run a line of bash with ``TMKIT`` replaced; return exit code and outputs."""
    line = f"set -o pipefail; {line.replace('TMKIT', TMKIT)}"
    ended = run_process(
        ["bash", "-c", line], check=False, capture_output=True, text=True, cwd=folder
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    ("line", "message"),
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
def test_a_stream_that_fails(line: str, message: str, tmp_path: Path) -> None:
    """Lost output gives exit code 2 and one line, if there is a stream for it."""
    code, output, err = shell(line, tmp_path)
    assert (code, output) == (2, ""), (code, output, err)
    assert err.startswith(message)
    assert len(err.splitlines()) == bool(message)
    assert not list(tmp_path.iterdir())


def test_a_closed_reader_changes_nothing(tmp_path: Path) -> None:
    """The command continues, writes its output and ends with its own exit code."""
    code, output, err = shell("TMKIT scene dump panda_table | head -0", tmp_path)
    assert (code, output, err) == (0, "", "")
    code, output, err = shell("TMKIT scene convert panda_table -o scene.json | true", tmp_path)
    assert (code, output, err) == (0, "", "")
    assert (tmp_path / "scene.json").stat().st_size > 100


def test_an_incomplete_result_has_an_exit_code(tmp_path: Path) -> None:
    """The last event contains the exit code, the previous one the reason."""
    code, output, err = shell("TMKIT scene dump panda_table --json > /dev/full", tmp_path)
    assert (code, output) == (2, "")
    assert (
        '"message": "the standard output cannot be written: No space left on device"'
        in err.splitlines()[-2]
    )
    assert err.splitlines()[-1] == '{"event": "done", "exit_code": 2}'


@pytest.mark.parametrize("limit", ["0", "1"])
def test_files_that_may_not_grow(limit: str, tmp_path: Path) -> None:
    """Under ``ulimit -f`` planning fails with one line, without an output."""
    line = f"ulimit -f {limit}; TMKIT plan panda_table blocks1 --goal '(holding a)' -o plan.json"
    code, output, err = shell(line, tmp_path)
    assert (code, output) == (2, ""), (code, output, err)
    assert err.startswith("error: ")
    assert "temporary files" in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_no_file_replaces_a_closed_stream(tmp_path: Path) -> None:
    """With all three streams closed, printed text does not enter the output file."""
    code, *_ = shell("TMKIT scene convert panda_table -o scene.json <&- >&- 2>&-", tmp_path)
    assert code == 2  # no stream is left for the message
    code, *_ = shell("TMKIT scene convert panda_table -o again.json", tmp_path)
    assert (tmp_path / "scene.json").read_bytes() == (tmp_path / "again.json").read_bytes()


def test_a_spinner_is_for_terminals_alone(tmp_path: Path) -> None:
    """Notebooks set FORCE_COLOR; the output of their commands has no control characters."""
    line = (
        'FORCE_COLOR=1 TMKIT plan panda_table blocks1 --goal "(ontable a table__0__1)" -o plan.json'
    )
    code, output, err = shell(line, tmp_path)
    assert code == 0
    assert "\x1b" not in output + err
