"""Failing file operations, one by one, in every command: outputs are old or complete."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.failing_runs import Run, Runner, built_library

import tmkit as tk
from tmkit._support.output import write_text

WRITING = ("open", "write", "fsync", "rename", "mkdir")
OLD = b"old"


@dataclass(frozen=True)
class Command:
    """A tested command: its arguments, its output files, and the most operations to try."""

    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    tried: int


COMMANDS = {
    "plan": Command(
        ("plan", "table.json", "blocks1", "--goal", "(holding a)", "-o", "new.json"),
        ("new.json",),
        2,
    ),
    "check": Command(("check", "plan.json"), (), 2),
    "simulate": Command(
        ("simulate", "plan.json", "--report", "r.json", "--picture", "p.png", "--record", "f.gif"),
        ("r.json", "p.png", "f.gif"),
        1,
    ),
    "convert": Command(("scene", "convert", "ball.urdf", "-o", "c.robray"), ("c.robray",), 6),
    "dump": Command(("scene", "dump", "table.json", "ball.urdf", "--log-file", "l.txt"), (), 2),
    "robot": Command(
        (
            "robot",
            "check",
            "table.json",
            "--samples",
            "20",
            "--base",
            "panda_link0",
            "--write-srdf",
            "r.srdf",
        ),
        ("r.srdf",),
        2,
    ),
}
BALL = """<robot name="ball"><link name="ball">
<visual><geometry><mesh filename="ball.obj"/></geometry></visual>
<collision><geometry><sphere radius="0.5"/></geometry></collision></link></robot>"""
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with inputs for the commands."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "temporary").mkdir()
    scene = tk.load_scene("panda_table", "blocks1")
    result = tk.plan(scene, goal="(holding a)")
    assert result.plan is not None
    tk.save_plan(result.plan, folder / "plan.json")
    tk.formats.write_json_scene(tk.load_scene("panda_table"), folder / "table.json")
    (folder / "ball.urdf").write_text(BALL, encoding="ascii")
    (folder / "ball.obj").write_text(OBJ, encoding="ascii")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Run commands in the folder."""
    library = built_library(tmp_path_factory.mktemp("library"))
    if library is None:
        pytest.skip("there is no C compiler for the library that makes file operations fail")
    runner = Runner(library, folder, folder / "temporary")
    yield runner
    runner.end()


@dataclass(frozen=True)
class Whole:
    """A command that nothing disturbs: how often it does each operation, and its outputs."""

    counts: dict[str, int]
    outputs: dict[str, bytes]


@pytest.fixture(scope="module")
def whole(run: Runner, folder: Path) -> dict[str, Whole]:
    """Run each command once."""
    contents = {}
    for name, command in COMMANDS.items():
        counts = folder.parent / f"counts-{name}"
        for output in command.outputs:
            (folder / output).write_bytes(OLD)
        ended = run(*command.arguments, count=counts)
        assert ended.code in (0, 1), ended
        done = counts.read_text(encoding="ascii") if counts.exists() else ""
        outputs = {output: (folder / output).read_bytes() for output in command.outputs}
        contents[name] = Whole({call: done.count(call[2]) for call in ("read", *WRITING)}, outputs)
    return contents


def spread(count: int, most: int) -> list[int]:
    """Return at most ``limit`` numbers from 1 to ``count``, with the first and the last."""
    return sorted({1 + round(i * (count - 1) / max(1, most - 1)) for i in range(min(count, most))})


def prepare(folder: Path, command: Command) -> set[str]:
    """Put old outputs there; return the names of all that is there."""
    for name in command.outputs:
        (folder / name).write_bytes(OLD)
    shutil.rmtree(folder / "temporary")
    (folder / "temporary").mkdir()
    return {path.name for path in folder.iterdir()}


def ended_well(ended: Run) -> bool:
    """Return whether a command ended as documented, with at most one error line and its place."""
    text = ended.out + ended.err
    lines = ended.err.strip().splitlines() or [""]
    # the line of the file that an error speaks of
    shown = all(line.startswith("    ") for line in lines[1:])
    is_clear = ended.code != 2 or (lines[0].startswith("error: ") and shown)
    return (
        ended.code in (0, 1, 2)
        and "Traceback" not in text
        and "Exception ignored" not in text
        and is_clear
    )


@pytest.mark.parametrize("call", ["read", *WRITING])
@pytest.mark.parametrize("name", COMMANDS)
def test_an_operation_that_fails(
    name: str, call: str, folder: Path, run: Runner, whole: dict[str, Whole]
) -> None:
    """Whichever operation fails, the command ends with 0, 1 or 2, and outputs are consistent."""
    command = COMMANDS[name]
    count, expected = whole[name].counts[call], whole[name].outputs
    prepared = prepare(folder, command)
    code = errno.EIO if call == "read" else errno.ENOSPC
    for number in spread(count, command.tried):
        stays = {"on": 1} if number == 1 else {}  # a disk that is full stays so
        ended = run(*command.arguments, call=call, at=number, errno=code, **stays)
        assert ended_well(ended), (call, number, ended)
        for output in command.outputs:
            content = (folder / output).read_bytes()
            assert content == expected[output] or (content == OLD and ended.code != 0), (
                call,
                number,
                output,
            )
        left = {path.name for path in folder.iterdir()} - prepared
        assert not [extra for extra in left if extra.startswith(".")], (call, number, left)
        names = [path.name for path in (folder / "temporary").iterdir()]
        # Where folders cannot be opened they cannot be emptied either; the next process sweeps them
        # up.
        assert all(call == "open" and "tmkit-" in left for left in names), (call, number, names)
        prepare(folder, command)


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
@pytest.mark.parametrize("name", ["convert"])
def test_a_kill_during_an_operation(
    name: str, call: str, folder: Path, run: Runner, whole: dict[str, Whole]
) -> None:
    """At any kill, each output is old or complete, and the next writer removes the remains."""
    command = COMMANDS[name]
    count, expected = whole[name].counts[call], whole[name].outputs
    prepared = prepare(folder, command)
    killed = 0
    for number in spread(count, 4):
        killed += run(*command.arguments, call=call, at=number, kill=1).code == -9
        for output in command.outputs:
            assert (folder / output).read_bytes() in (OLD, expected[output]), (call, number, output)
            write_text(folder / output, "next")
        left = {path.name for path in folder.iterdir()} - prepared
        assert not [
            extra for extra in left if any(f".{output}." in extra for output in command.outputs)
        ], left
        prepare(folder, command)
    assert killed == len(spread(count, 4)) > 0
