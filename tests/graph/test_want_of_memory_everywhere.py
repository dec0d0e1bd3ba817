"""Core operations under an ``operator new`` that fails on the k-th call, for every k."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from support.processes import run_process

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="module")
def failing_new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the library whose ``operator new`` can be told to fail."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip(
            "the library that makes allocations fail needs g++ and a loader with LD_PRELOAD"
        )
    library = tmp_path_factory.mktemp("failing_new") / "failing_new.so"
    source = SUPPORT / "failing_new.cpp"
    run_process(
        [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-o", library, source], check=True
    )
    return library


@pytest.mark.parametrize("kind", ["scene", "edit", "arrays", "world", "values"])
def test_each_allocation_that_fails_is_a_memory_error(failing_new: Path, kind: str) -> None:
    """Any failed allocation raises MemoryError, changes nothing, and can be repeated."""
    environment = os.environ | {"LD_PRELOAD": str(failing_new), "PYTHONPATH": str(SUPPORT.parent)}
    program = [sys.executable, "-m", "support.starved_operations", str(failing_new), f"{kind}."]
    done = run_process(program, capture_output=True, text=True, check=False, env=environment)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) == 1, done.stdout
    assert lines[0].startswith("tried "), done.stdout
