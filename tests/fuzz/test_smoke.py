"""Smoke test of the fuzzing harnesses: all run, and find nothing among their first inputs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.processes import run_process

HARNESSES = sorted(Path(__file__).parent.glob("fuzz_*.py"))


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda path: path.stem.removeprefix("fuzz_"))
def test_a_harness_finds_nothing_at_first(harness: Path, tmp_path: Path) -> None:
    """Sixty mutated inputs end in a value or in an error that names the file."""
    run = run_process(
        [
            sys.executable,
            harness,
            "--inputs",
            "60",
            "--seed",
            "3",
            "--timeout",
            "60",
            "--findings",
            tmp_path,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 findings" in run.stdout + run.stderr
