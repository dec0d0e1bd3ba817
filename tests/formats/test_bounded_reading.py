"""Readers end within limits of processor time and memory, on small and often invalid robots."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest
from support import bounded_reader
from support.effort import scaled_examples
from support.generated_robots import FORMATS, GeneratedJoint, GeneratedRobot, drawn_robot
from support.processes import run_process

SECONDS = 2.0
"""Processor time for one file [s]."""
MEGABYTES = 300.0
"""Memory for one file, on top of what the imports take."""


def outcomes(paths: list[Path]) -> dict[str, str]:
    """Return how reading each file ends, in a process with limits."""
    command = [
        sys.executable,
        bounded_reader.__file__,
        str(SECONDS),
        str(MEGABYTES),
        *map(str, paths),
    ]
    run = run_process(
        command, capture_output=True, text=True, check=False, timeout=SECONDS * len(paths) + 300
    )
    lines = [line.partition(" ")[::2] for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"{lines[-1:]}: {run.stderr[-2000:]}"
    assert len(lines) == len(paths)
    return dict(lines)


def write_robots(folder: Path, suffix: str, robots: list[GeneratedRobot]) -> list[Path]:
    """Write robots in a format; a robot in SRDF beside one in URDF."""
    paths = []
    for number, robot in enumerate(robots):
        if suffix == "srdf":
            (folder / f"r{number}.urdf").write_text(FORMATS["urdf"](robot), encoding="utf-8")
        paths.append(folder / f"r{number}.{suffix}")
        paths[-1].write_text(FORMATS[suffix](robot), encoding="utf-8")
    return paths


def robot_of(links: str, *joints: tuple[str, str, str]) -> GeneratedRobot:
    """Return a robot of links by letter (``w`` is ``world``), and joints of a kind between two."""
    names = {"w": "world"}
    robots = [
        GeneratedJoint(
            f"j{number}",
            kind,
            names.get(parent, parent),
            names.get(child, child),
            -1.0,
            1.0,
            "",
            1.0,
        )
        for number, (kind, parent, child) in enumerate(joints)
    ]
    return GeneratedRobot(
        tuple((names.get(letter, letter), False) for letter in links), tuple(robots)
    )


WORLDS = {
    "root": robot_of("wa", ("fixed", "w", "a")),
    "child": robot_of("aw", ("fixed", "a", "w")),
    "moving child": robot_of("aw", ("revolute", "a", "w")),
    "floating child": robot_of("aw", ("floating", "a", "w")),
    "between": robot_of("awb", ("fixed", "a", "w"), ("revolute", "w", "b")),
    "alone": robot_of("w"),
    "twice": robot_of("ww", ("fixed", "w", "w")),
    "its own child": robot_of("w", ("fixed", "w", "w")),
    "a cycle": robot_of("wab", ("fixed", "w", "a"), ("fixed", "a", "b"), ("fixed", "b", "w")),
}


@pytest.mark.parametrize("suffix", FORMATS)
def test_generated_robots_end(suffix: str, tmp_path: Path) -> None:
    """Reading ends in a scene or in an error that names the file; both occur."""
    if suffix in ("usda", "xml"):
        pytest.importorskip("pxr" if suffix == "usda" else "mujoco")
    random = Random(f"robots in {suffix}")
    robots = [*WORLDS.values(), *(drawn_robot(random) for _ in range(scaled_examples(5.0)))]
    ends = outcomes(write_robots(tmp_path, suffix, robots))
    assert {*ends.values()} == {"value", "error"}, [
        item for item in ends.items() if item[1] not in ("value", "error")
    ]


def test_the_limits_bind(tmp_path: Path) -> None:
    """A reader without an end, or with unlimited memory, is stopped."""
    program = (
        f"import sys; sys.path.insert(0, {str(Path(bounded_reader.__file__).parents[1])!r})\n"
        "from pathlib import Path; from support import bounded_reader\n"
        "calls = []\n"
        "def read(path):\n"
        "    calls.append(path)\n"
        "    while len(calls) > 1: {}\n"
        "bounded_reader.read = read\n"
        f"bounded_reader.read_bounded(1.0, 100.0, [Path({str(tmp_path)!r}) / 'x'])\n"
    )
    for fault, code in (("pass", -24), ("calls.extend(calls)", 1)):  # SIGXCPU, MemoryError
        run = run_process(
            [sys.executable, "-c", program.format(fault)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert run.returncode == code, run.stderr
        assert run.stdout == "x "
