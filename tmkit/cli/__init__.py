"""The ``tmkit`` command: thin, since every command calls one function of the library.

The user sees progress on the standard error, answers on the standard output, and an exit code. The
code 0 means done. The code 1 means that the answer is no: no plan, a check that failed, a
simulation that missed. The code 2 means bad input or usage, with a message and no traceback. The
code 3 means an internal error, with where to report it. The codes 129, 130 and 143 mean an end by a
signal (terminal closed, Ctrl-C, kill). What the system refuses (a full disk, too many open files)
is 2 as well. A standard output that cannot be written is 2 in the end, after the command has done
all else; one whose reader has gone (``| head -1``) changes nothing. With ``--json`` the standard
error holds one JSON object a line instead (:mod:`~tmkit.cli.events`).

The commands lie in modules by their noun (:mod:`~tmkit.cli.planning`, :mod:`~tmkit.cli.scenes`,
:mod:`~tmkit.cli.robots`), :mod:`~tmkit.cli.commands` puts them together, and
:mod:`~tmkit.cli.common` holds what they share. All of it is imported when :func:`main` runs, after
the signal handlers are set: Ctrl-C shows no traceback however early it comes.
"""

from __future__ import annotations

import atexit
import gc
import sys

from tmkit.cli.signals import EndingSignals, ExitCode

__all__ = ["ExitCode", "main"]

_COLLECTION_THRESHOLD = 200_000
"""Objects made between collections of garbage: those of a command's modules are many, and stay."""


def main() -> None:
    """Run the command and exit with a code that means something; no input shows a traceback."""
    from tmkit.cli.streams import StandardStreams

    threshold = gc.get_threshold()
    gc.set_threshold(_COLLECTION_THRESHOLD)
    atexit.register(gc.freeze)  # a last collection among all modules takes as long as a small plan
    wants_events = "--json" in sys.argv[1:]
    with StandardStreams() as streams, EndingSignals() as signals:
        try:
            code = _run(wants_events=wants_events)
        except SystemExit:  # how typer ends when the reader has closed the pipe: print nothing more
            code = ExitCode.DONE
        except BaseException as error:
            if signals.received is None and not isinstance(error, KeyboardInterrupt):
                raise
            code = ExitCode.INTERRUPTED
        if signals.received is not None or code == ExitCode.INTERRUPTED:
            code = signals.exit_code
        streams.flush()
        if streams.failure is not None and code in (ExitCode.DONE, ExitCode.NO):
            _tell_failure(
                f"the standard output cannot be written: {streams.failure}", as_event=wants_events
            )
            code = ExitCode.BAD_INPUT
        _tell_the_end(signals, code, as_event=wants_events)
    gc.set_threshold(*threshold)
    sys.exit(code)


def _run(*, wants_events: bool) -> int:
    """Run the command and return its exit code; what went wrong has been explained."""
    try:
        from tmkit.cli.commands import run
    except (ImportError, OSError, MemoryError) as error:
        _tell_failure(f"tmkit cannot be loaded: {error}", as_event=wants_events)
        return ExitCode.BAD_INPUT
    return run(wants_events=wants_events)


def _tell_failure(message: str, *, as_event: bool) -> None:
    if as_event:
        from tmkit.cli.events import write_event

        write_event(
            "error", {"type": "OutputError", "message": message, "file": None, "line": None}
        )
    else:
        print(f"error: {message}", file=sys.stderr)


def _tell_the_end(signals: EndingSignals, code: int, *, as_event: bool) -> None:
    """Say that a signal ended the command, and, to programs, that it has ended."""
    ended_by_signal = code >= ExitCode.HUNG_UP
    if as_event:
        from tmkit.cli.events import write_event

        if ended_by_signal:
            write_event(
                "error", {"type": "Interrupted", "message": signals.message, "signal": signals.name}
            )
        write_event("done", {"exit_code": int(code)})
    elif ended_by_signal:
        print(signals.message, file=sys.stderr)
