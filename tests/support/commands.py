"""The command line in this process, without the seconds in which another one imports it all."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from tmkit import cli

__all__ = ["Outcome", "tmkit"]


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
