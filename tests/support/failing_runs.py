"""Commands with failing file operations, each in a process forked after all imports.

Run as a program with the library of ``failing_io.c`` preloaded, it reads one job a line from the
standard input: the arguments of the command and environment variables, in JSON. It returns
exit code, standard output and error.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from support.processes import Process, run_process

SOURCE = Path(__file__).with_name("failing_io.c")
MODULES = (
    "tmkit.cli.commands",
    "tmkit.tamp.validation.check",
    "tmkit.tamp.validation.tmp_plan",
    "tmkit.tamp.planning",
    "tmkit.plans.plan_file",
    "tmkit.simulation.engines.pybullet.world",
    "tmkit.simulation.pictures.recording",
    "tmkit.task_planning.fast_downward",
    "tmkit.robots.robot_check",
    "tmkit.formats.conversion",
    "tmkit.formats.scene_check",
    "PIL.Image",
    "trimesh",
    "scipy.spatial",
    "tmkit.simulation.execution",
)


class Run(NamedTuple):
    """End of a command: its exit code (negative for a signal) and its output."""

    code: int
    out: str
    err: str


def built_library(folder: Path) -> Path | None:
    """Return the library, ``None`` where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / "failing_io.so"
    run_process([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


class Runner:
    """Runs commands in a folder, with temporary files in another."""

    def __init__(self, library: Path, folder: Path, temporary: Path) -> None:
        environment = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "TMPDIR": str(temporary),
            "COLUMNS": "200",
        }
        environment["FAIL_UNDER"] = str(folder)
        environment["PYTHONPATH"] = str(Path(__file__).parents[1])
        self._process = Process(
            [sys.executable, __file__],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, **failure: object) -> Run:
        """Run a command; ``call="write", at=3`` stands for the variables of the library."""
        variables = {f"FAIL_{name.upper()}": str(value) for name, value in failure.items()}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([arguments, variables]) + "\n")
        self._process.stdin.flush()
        return Run(*json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def _serve() -> None:
    for module in MODULES:
        importlib.import_module(module)
    from tmkit.simulation.engines.pybullet.quiet import load_pybullet

    load_pybullet()
    gc.freeze()  # so that collections in children copy no memory that they share
    for line in sys.stdin:
        arguments, variables = json.loads(line)
        sys.stdout.write(json.dumps(_run_forked(arguments, variables)) + "\n")
        sys.stdout.flush()


def _run_forked(arguments: list[str], variables: dict[str, str]) -> tuple[int, str, str]:
    """Run a command in a child of this process."""
    pipes = [os.memfd_create(name) for name in ("out", "err")]
    child = os.fork()
    if child == 0:
        _command(arguments, variables, pipes)
    _, status = os.waitpid(child, 0)
    texts = []
    for pipe in pipes:
        os.lseek(pipe, 0, os.SEEK_SET)
        with os.fdopen(pipe, "rb") as file:
            texts.append(file.read().decode(errors="replace"))
    return os.waitstatus_to_exitcode(status), texts[0], texts[1]


def _command(arguments: list[str], variables: dict[str, str], pipes: list[int]) -> Any:
    """Be the command, and never return."""
    code = 99
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, pipe in enumerate(pipes, start=1):
            os.dup2(pipe, number)
        from tmkit.cli import main

        sys.argv = ["tmkit", *arguments]
        os.environ.update(variables)
        os.environ["FAIL_NOW"] = "1"
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 98
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os.environ.pop("FAIL_NOW", None)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
