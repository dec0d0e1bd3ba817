"""The ``tmkit`` command line. Each command calls one function of the library.

The standard error shows progress, the standard output shows results. The exit codes are:

* 0: success.
* 1: a negative result, such as no plan, a failed check or a failed simulation.
* 2: invalid input or usage, or an error of the system, such as a full disk.
* 3: an internal error, whose message names the issue tracker.
* 129, 130, 143: a signal (closed terminal, Ctrl-C, termination).

Invalid input gives a message and no traceback. If the standard output cannot be written, the
command continues to its end and exits with 2. A closed pipe (``| head -1``) has no effect. With
``--json`` the standard error contains one JSON object per line (:mod:`~tmkit.cli.events`).

A module contains the commands of one noun (:mod:`~tmkit.cli.planning`, :mod:`~tmkit.cli.scenes`,
:mod:`~tmkit.cli.robots`). :mod:`~tmkit.cli.commands` registers them, and :mod:`~tmkit.cli.common`
contains shared options and checks. :func:`main` sets the signal handlers before it imports these
modules, so that an early Ctrl-C prints no traceback.
"""

from __future__ import annotations

import atexit
import gc
import sys

from tmkit.cli.signals import EndingSignals, ExitCode

__all__ = ["ExitCode", "main"]

_COLLECTION_THRESHOLD = 200_000
"""Number of new objects per garbage collection; modules create many objects that stay."""


def main() -> None:
    """Run the command of ``sys.argv`` and exit with its exit code."""
    from tmkit.cli.streams import StandardStreams

    threshold = gc.get_threshold()
    gc.set_threshold(_COLLECTION_THRESHOLD)
    atexit.register(gc.freeze)  # the collection at exit takes as long as a small plan
    as_events = "--json" in sys.argv[1:]
    with StandardStreams() as streams, EndingSignals() as signals:
        try:
            code = _run(signals, as_events=as_events)
        except SystemExit:  # typer raises it when the reader has closed the pipe
            code = ExitCode.DONE
        except BaseException as error:
            if signals.received is None and not isinstance(error, KeyboardInterrupt):
                raise
            code = ExitCode.INTERRUPTED
        if signals.received is not None or code == ExitCode.INTERRUPTED:
            code = signals.exit_code
        streams.flush()
        if streams.failure is not None and code in (ExitCode.DONE, ExitCode.NO):
            _print_failure(
                f"the standard output cannot be written: {streams.failure}", as_event=as_events
            )
            code = ExitCode.BAD_INPUT
        _print_end(signals, code, as_event=as_events)
    gc.set_threshold(*threshold)
    sys.exit(code)


def _run(signals: EndingSignals, *, as_events: bool) -> int:
    """Run the command, print its errors and return its exit code."""
    try:
        from tmkit.cli.commands import run
    except (ImportError, OSError, MemoryError) as error:
        _print_failure(f"tmkit cannot be loaded: {error}", as_event=as_events)
        return ExitCode.BAD_INPUT
    signals.raise_postponed()  # a short command could end before the next attempt
    return run(as_events=as_events)


def _print_failure(message: str, *, as_event: bool) -> None:
    """Print an error as text, or as an event."""
    if as_event:
        from tmkit.cli.events import write_event

        write_event(
            "error", {"type": "OutputError", "message": message, "file": None, "line": None}
        )
    else:
        print(f"error: {message}", file=sys.stderr)


def _print_end(signals: EndingSignals, code: int, *, as_event: bool) -> None:
    """Print the signal that ended the command, if any, and the last event."""
    has_signal = code >= ExitCode.HUNG_UP
    if as_event:
        from tmkit.cli.events import write_event

        if has_signal:
            write_event(
                "error", {"type": "Interrupted", "message": signals.message, "signal": signals.name}
            )
        write_event("done", {"exit_code": int(code)})
    elif has_signal:
        print(signals.message, file=sys.stderr)
