"""The command line in this process, without the seconds in which another one imports it all."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from tmkit import cli
from tmkit.cli.commands import command_line
from tmkit.cli.reporting import Reporter

__all__ = ["Outcome", "commands_by_path", "parse_command", "tmkit"]

_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
"""Base class of usage errors, which typer does not export."""


@dataclass(frozen=True)
class Outcome:
    """Result of a command."""

    code: int
    out: str
    err: str


def tmkit(folder: Path, *arguments: str, **environment: str) -> Outcome:
    """Run a command in a folder, with more variables of the environment."""
    stdout, stderr = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    )
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["tmkit", *arguments])
        for name, value in environment.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    texts = [stream.buffer.getvalue().decode() for stream in (stdout, stderr)]
    return Outcome(int(ended.value.code or 0), *texts)


def commands_by_path() -> dict[str, Any]:
    """Return the commands without subcommands, by their words after ``tmkit``."""
    return dict(_leaves(command_line()))


def _leaves(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, entry in inner.items():
        yield from _leaves(entry, f"{path} {name}".strip())


def parse_command(line: str) -> str:
    """Return the words of a command of ``tmkit``, whose options and arguments are valid.

    Raises:
        ValueError: if there is no such command, or an option or argument is invalid.
    """
    program, *words = shlex.split(line)
    commands = commands_by_path()
    fitting = [name for name in commands if words[: len(name.split())] == name.split()]
    if program != "tmkit" or not fitting:
        raise ValueError(f"no command of tmkit: {line}")
    with Reporter(as_events=False).open():
        try:
            commands[fitting[0]].make_context(fitting[0], words[len(fitting[0].split()) :])
        except _USAGE_ERROR as error:
            raise ValueError(f"{line}: {error}") from error
    return fitting[0]
