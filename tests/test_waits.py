"""No test waits without a limit."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from support import processes
from support.processes import Process, run_process

TESTS = Path(__file__).parent


def test_programs_are_started_where_they_are_limited() -> None:
    """Only ``support.processes`` starts programs; benchmarks are run by hand."""
    starters = {
        f"subprocess.{name}" for name in ("Popen", "run", "call", "check_call", "check_output")
    }
    calls = []
    for path in TESTS.rglob("*.py"):
        if "benchmarks" not in path.parts and path != Path(processes.__file__):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
            calls += [
                f"{path}:{node.lineno}" for node in attributes if ast.unparse(node) in starters
            ]
    assert calls == []


def test_a_test_that_hangs_ends_its_process(tmp_path: Path) -> None:
    """The settings of the project end a wait without a limit, and show where it is."""
    (tmp_path / "test_hang.py").write_text(
        "import threading\ndef test(): threading.Event().wait()\n", encoding="utf-8"
    )
    settings = [
        "-c",
        str(TESTS.parent / "pyproject.toml"),
        "--rootdir",
        str(tmp_path),
        "-p",
        "no:cacheprovider",
    ]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *settings,
        "-o",
        "faulthandler_timeout=1",
        "test_hang.py",
    ]
    done = run_process(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Timeout" in done.stderr
    assert "test_hang.py" in done.stderr


def test_a_program_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read of its output ends; so does the program at the end of its block."""
    command = [sys.executable, "-c", "import time; time.sleep(3600)"]
    with Process(command) as process:
        assert process.poll() is None
    assert process.returncode == -9
    monkeypatch.setattr(processes, "HANG", 0.1)
    with Process(command, stdout=processes.subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b""
        assert process.wait() == -9
