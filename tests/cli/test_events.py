"""Events on the standard error and JSON documents on the standard output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.commands import tmkit
from support.processes import HANG, Process

TMKIT = [sys.executable, "-m", "tmkit.cli"]
PLAN = ("plan", "panda_table", "blocks2")


def events_of(text: str) -> list[dict[str, Any]]:
    """Return the events; each line is one event, and only the last is ``done``."""
    events = [json.loads(line) for line in text.splitlines()]
    assert [event["event"] for event in events].index("done") == len(events) - 1
    return events


def run(*arguments: str, folder: Path) -> tuple[int, str, list[dict[str, Any]]]:
    """Run a command; return its exit code, its standard output and its events."""
    done = tmkit(folder, *arguments)
    events = events_of(done.err)
    assert events[-1] == {"event": "done", "exit_code": done.code}
    return done.code, done.out, events


def test_a_plan(tmp_path: Path) -> None:
    """All progress events have the same fields, and -vv adds log events."""
    code, output, events = run("-v", *PLAN, "--goal", "(on a b)", "--json", "-v", folder=tmp_path)
    assert (code, json.loads(output)["status"]) == (0, "solved")
    progress = [event for event in events if event["event"] == "progress"]
    assert all({"phase", "step", "steps", "seconds", "text"} <= set(event) for event in progress)
    assert {"task", "motion"} <= {event["phase"] for event in progress}
    logs = [event for event in events if event["event"] == "log"]
    assert logs
    assert all(
        event["level"] in ("DEBUG", "INFO") and event["logger"].startswith("tmkit.")
        for event in logs
    )


def test_quiet_omits_progress(tmp_path: Path) -> None:
    """The only event is ``done``."""
    _, _, events = run(
        "scene", "dump", "blocks2", "panda_table", "--json", "--quiet", folder=tmp_path
    )
    assert [event["event"] for event in events] == ["done"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((*PLAN, "--goal", "(on a", "--json"), {"type": "TaskError", "line": 1, "column": 1}),
        (
            ("check", "no.json", "--json"),
            {"type": "MissingFileError", "file": "no.json", "line": None},
        ),
        (("check", "bad.json", "--json"), {"type": "PlanFileError", "file": "bad.json", "line": 2}),
        (("plan", "--json", "--gaol"), {"type": "UsageError", "file": None, "line": None}),
    ],
)
def test_invalid_input(
    tmp_path: Path, arguments: tuple[str, ...], expected: dict[str, object]
) -> None:
    """An error event contains class, message, place and data; the standard output is empty."""
    (tmp_path / "bad.json").write_text('{\n"format" 1}', encoding="utf-8")
    code, output, events = run(*arguments, folder=tmp_path)
    assert (code, output) == (2, "")
    [error] = [event for event in events if event["event"] == "error"]
    assert error["message"]
    assert {name: error[name] for name in expected} == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("as_json", [True, False])
def test_a_signal_ends_a_command(tmp_path: Path, number: signal.Signals, as_json: bool) -> None:
    """Each signal gives its exit code and one message, without files or processes left."""
    goal = "(and (on a b) (on b c) (on c a))"
    process = Process(
        [
            *TMKIT,
            "plan",
            "panda_table",
            "blocks4",
            "--goal",
            goal,
            "-o",
            "plan.json",
            "--time-limit",
            "3600",
            *(["--json"] if as_json else []),
        ],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + HANG
    while (
        not (running := children.read_text(encoding="ascii").split())
        and time.monotonic() < deadline
    ):
        time.sleep(0.01)
    process.send_signal(number)
    process.send_signal(number)  # after two signals, it still removes its files
    output, err = process.communicate(timeout=HANG)
    message = {
        signal.SIGINT: "interrupted",
        signal.SIGTERM: "terminated",
        signal.SIGHUP: "hung up",
    }[number]
    assert (process.returncode, output) == (128 + number, "")
    if as_json:
        *_, error, done = events_of(err)
        assert error == {
            "event": "error",
            "type": "Interrupted",
            "message": message,
            "signal": number.name,
        }
        assert done["exit_code"] == 128 + number
    else:
        assert err == f"{message}\n"
    assert list(tmp_path.iterdir()) == []
    assert not [child for child in running if Path(f"/proc/{child}").exists()]


def test_an_interrupt_during_imports(tmp_path: Path) -> None:
    """Ctrl-C prints no traceback during an import of a running command."""
    for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
        program = (
            "import sys; sys.argv[:] = ['tmkit', *sys.argv[1:]]; import tmkit.cli;"
            " print(flush=True); tmkit.cli.main()"
        )
        process = Process(
            [sys.executable, "-c", program, *PLAN, "--goal", "(on a b)"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.02 + delay)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG)
        assert (process.returncode, err) in ((130, "interrupted\n"), (0, ""))


def test_a_log_file(tmp_path: Path) -> None:
    """The file contains the whole log, and the plan is the same as without it."""
    for name, options in (("one", ["--log-file", "log.txt"]), ("two", [])):
        code, _, _ = run(
            *PLAN, "--goal", "(on a b)", "-o", f"{name}.json", "--json", *options, folder=tmp_path
        )
        assert code == 0
    assert "INFO tmkit.tamp.search.version_search: " in (tmp_path / "log.txt").read_text(
        encoding="utf-8"
    )
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
