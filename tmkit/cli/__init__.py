"""The ``tmkit`` command: thin, since every command calls one function of the library.

What the user sees: progress on the standard error, answers on the standard output, and an exit code that means
something: 0 done; 1 the answer is no (no plan, a check that failed, a simulation that missed); 2 bad input or usage,
with a message and no traceback; 3 an internal error, with where to report it; 130 interrupted.

The commands lie in modules by their noun (:mod:`~tmkit.cli.planning`, :mod:`~tmkit.cli.scenes`,
:mod:`~tmkit.cli.robots`), :mod:`~tmkit.cli.commands` puts them together, and :mod:`~tmkit.cli.common` holds what they
share. They are imported when :func:`main` runs, so that it is there to answer whatever happens meanwhile.
"""

from __future__ import annotations

import os
import sys
from enum import IntEnum

__all__ = ["ExitCode", "main"]


class ExitCode(IntEnum):
    """What the exit codes mean."""

    DONE = 0
    NO = 1
    BAD_INPUT = 2
    INTERNAL = 3
    INTERRUPTED = 130


def main() -> None:
    """Run the command and exit with a code that means something; no input shows a traceback."""
    try:
        code = _run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except SystemExit:  # how typer ends when nobody reads on: say nothing more
        code = ExitCode.DONE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ExitCode.DONE
    if code == ExitCode.INTERRUPTED:
        print("interrupted", file=sys.stderr)
    sys.exit(code)


def _run() -> int:
    """Run the command and return its exit code; what went wrong has been explained."""
    from tmkit.cli.commands import app, explain

    try:
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, SystemExit, BrokenPipeError):
        raise
    except BaseException as error:
        return explain(error)
    return code if isinstance(code, int) else ExitCode.DONE
