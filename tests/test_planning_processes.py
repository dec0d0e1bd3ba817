"""Planning beside other processes: equal bytes, and no partial output at any end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.processes import HANG, Process, run_process

import tmkit as tk
from tmkit.cli import ExitCode

TMKIT = [sys.executable, "-m", "tmkit.cli"]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
HARD = "(and (on a b) (on b c) (on c a))"  # the task planner searches for long

# Plans among learned constraints, several skeletons and improvements, twice, and saves both.
PLANNER = """
import sys
from support.blocks import blocks_scene, with_box
from support.gantry import GANTRY
import tmkit as tk

scene = blocks_scene({"b": (1, 1), "a": "b", "c": (2, 1)}, table=0.4)
scene = with_box(scene, "lid", (-0.25, -0.25, 0.16), (0.25, 0.04, 0.17))
for name in sys.argv[1:]:
    options = tk.PlanningOptions(seed=5, improve=4, max_iterations=16)
    result = tk.plan(scene, goal="(on b c)", robot=GANTRY, options=options)
    assert result.statistics.skeletons > 1
    tk.save_plan(result.plan, name)
"""


def planner(folder: Path, *names: str, hash_seed: str) -> Process:
    """Start a process that plans once for each name."""
    tests = str(Path(__file__).parent)
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": tests}
    return Process([sys.executable, "-c", PLANNER, *names], cwd=folder, env=environment)


def test_one_seed_is_one_plan_twice_at_once_and_under_load(tmp_path: Path) -> None:
    """Twice in one process, in two with other hash seeds, and under load: equal bytes."""
    busy = [Process([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        processes = [
            planner(tmp_path, "1.json", "2.json", hash_seed="1"),
            planner(tmp_path, "3.json", hash_seed="2"),
        ]
        assert [process.wait(timeout=HANG) for process in processes] == [0, 0]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    first = (tmp_path / "1.json").read_bytes()
    assert [(tmp_path / f"{number}.json").read_bytes() == first for number in (2, 3)] == [
        True,
        True,
    ]


def descendants(process: int) -> list[int]:
    """Return the processes that a process has started, and that these have."""
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    except OSError:
        return []
    children = [int(word) for word in text.split()]
    return [*children, *(below for child in children for below in descendants(child))]


def is_running(process: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        return (
            Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            != "Z"
        )
    except OSError:
        return False


def searching(process: Process, folder: Path, count: int) -> list[int]:
    """Return the processes that a command has started, once it searches for actions."""
    until = time.monotonic() + HANG
    while time.monotonic() < until:
        started = descendants(process.pid)
        if len(started) >= count and any(
            "task.sas" in files for _, _, files in os.walk(folder / "temporary")
        ):
            return started
        time.sleep(0.02)
    raise AssertionError("the task planner does not begin")


@LINUX
@pytest.mark.parametrize(
    ("number", "count"),
    [(signal.SIGINT, 2), (signal.SIGTERM, 1), (signal.SIGKILL, 1), (signal.SIGKILL, 2)],
)
def test_however_planning_ends_nothing_is_half_done(
    tmp_path: Path, number: signal.Signals, count: int
) -> None:
    """The former plan stays whole, processes end, and the next run removes the remains."""
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    (tmp_path / "plan.json").write_text("the old plan", encoding="utf-8")
    command = [*TMKIT, "plan", "panda_table", "blocks4", "-o", "plan.json"]
    process = Process(
        [*command, "--goal", HARD, "--workers", str(count), "--time-limit", "3600"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        started = searching(process, tmp_path, count)
    finally:
        process.send_signal(number)
        out, err = process.communicate(timeout=HANG)
    codes = {
        signal.SIGINT: ExitCode.INTERRUPTED,
        signal.SIGTERM: ExitCode.TERMINATED,
        signal.SIGKILL: -signal.SIGKILL,
    }
    assert process.returncode == codes[number], err
    assert out == ""
    until = time.monotonic() + HANG
    while any(map(is_running, started)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(is_running, started))
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == "the old plan"
    assert {path.name for path in tmp_path.iterdir()} == {"plan.json", "temporary"}
    if number != signal.SIGKILL:
        assert not list((tmp_path / "temporary").iterdir())
        return
    assert list((tmp_path / "temporary").iterdir())
    again = [
        *TMKIT,
        "plan",
        "panda_table",
        "blocks1",
        "--goal",
        "(holding a)",
        "--max-iterations",
        "8",
        "-o",
        "plan.json",
    ]
    run_process(
        [*again, "-o", "plan.json"], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert not list((tmp_path / "temporary").iterdir())
    assert tk.load_plan(tmp_path / "plan.json").goal == "(holding a)"
