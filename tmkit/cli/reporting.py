"""Progress and logs of a running command, as text on a terminal or as events for programs.

As text, a :class:`Reporter` shows a progress line (only on a terminal) and prints log records. For
programs, both are events (:mod:`~tmkit.cli.events`). Records are shown from the level WARNING, with
``-v`` from INFO, and with ``-vv`` from DEBUG. ``--log-file`` writes all records with times.
``--quiet`` shows no progress.

Invariants: only the loggers ``tmkit`` and ``py.warnings`` have handlers, and only inside
:meth:`Reporter.open`, which restores the loggers.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from tmkit._support.progress import Progress
from tmkit._support.terminal import printable
from tmkit.cli.events import write_event
from tmkit.cli.signals import ExitCode
from tmkit.cli.streams import DroppingFile, text_file
from tmkit.errors import OutputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""Lowest level of the shown records, by verbosity."""

_RECORD_FORMAT = "%(levelname)s %(name)s: %(message)s"
"""Format of a record on a terminal."""

_FILE_RECORD_FORMAT = f"%(asctime)s {_RECORD_FORMAT}"
"""Format of a record in a log file."""

_current: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


class Work:
    """Display of the progress of some work; pass it as ``on_progress``.

    Args:
        show_text: function that shows a line of text.
        show_progress: function that shows the state of the work.
    """

    def __init__(
        self, show_text: Callable[[str], None], show_progress: Callable[[Progress], None]
    ) -> None:
        self._show_text, self._show_progress = show_text, show_progress

    def update(self, text: str) -> None:
        """Show another line on a terminal; events stay unchanged."""
        self._show_text(text)

    def __call__(self, progress: Progress) -> None:
        """Show the state of the work."""
        self._show_progress(progress)


class Reporter:
    """Progress and logs of one command, as text or as events."""

    def __init__(self, *, as_events: bool) -> None:
        self.as_events = as_events
        self._console = None if as_events else _console()
        self._verbosity = 0
        self._is_quiet = False
        self._handlers: list[logging.Handler] = []
        self._log: tuple[Path, DroppingFile] | None = None
        self._shown: logging.Handler = _EventHandler() if as_events else _ConsoleHandler(self.print)
        self._shown.setFormatter(logging.Formatter(None if as_events else _RECORD_FORMAT))
        self._shown.setLevel(_LEVELS[0])

    def increase_verbosity(self, times: int) -> None:
        """Show records of lower levels."""
        self._verbosity = min(self._verbosity + times, len(_LEVELS) - 1)
        self._shown.setLevel(_LEVELS[self._verbosity])
        self._set_level()

    def hide_progress(self) -> None:
        """Show no progress."""
        self._is_quiet = True

    def open_log(self, path: Path) -> None:
        """Write all records to a new file.

        Raises:
            OutputError: if the file cannot be written.
        """
        try:
            raw = DroppingFile(path, "w")
        except OSError as error:
            raise _log_error(path, error) from None
        self._log = (path, raw)
        handler = logging.StreamHandler(text_file(raw))
        handler.setFormatter(logging.Formatter(_FILE_RECORD_FORMAT))
        self._add(handler)

    def print(self, text: str) -> None:
        """Print text on the standard error; on a terminal, lines break between words."""
        if self._console is None:
            typer.echo(printable(text), err=True)
        else:
            self._console.print(printable(text), markup=False, emoji=False)

    @property
    def log_failure(self) -> OutputError | None:
        """Error that made the log file incomplete, or None."""
        if self._log is None or self._log[1].failure is None:
            return None
        return _log_error(self._log[0], self._log[1].failure)

    @contextmanager
    def open(self) -> Iterator[Reporter]:
        """Receive log records and become the :func:`current_reporter`, inside the block."""
        token = _current.set(self)
        original_level = logging.getLogger("tmkit").level
        if self.as_events:
            logging.captureWarnings(True)  # Python prints warnings between the events otherwise
        self._add(self._shown)
        try:
            yield self
        finally:
            _current.reset(token)
            if self.as_events:
                logging.captureWarnings(False)
            for handler in self._handlers:
                for logger in _loggers():
                    logger.removeHandler(handler)
                handler.close()
            if self._log is not None:
                self._log[1].close()
            logging.getLogger("tmkit").setLevel(original_level)

    @contextmanager
    def progress(self, text: str) -> Iterator[Work]:
        """Show the name of some work until the block ends."""
        if self._is_quiet:
            yield Work(_discard, _discard)
        elif self.as_events:
            write_event(
                "progress", {"phase": text, "step": 0, "steps": 0, "seconds": 0.0, "text": text}
            )
            yield Work(_discard, _write_progress)
        elif self._console is None:
            yield Work(_discard, _discard)
        else:
            line = _LiveLine(text)
            with self._console.status(line):
                yield Work(line.show, line.show)

    def _add(self, handler: logging.Handler) -> None:
        self._handlers.append(handler)
        for logger in _loggers():
            logger.addHandler(handler)
        self._set_level()

    def _set_level(self) -> None:
        """Set the level of the library to the lowest level of the handlers."""
        logging.getLogger("tmkit").setLevel(
            min(handler.level or logging.DEBUG for handler in self._handlers)
        )


def current_reporter() -> Reporter:
    """Return the reporter of the running command, or a new one without a command."""
    return _current.get() or Reporter(as_events=False)


def _console() -> Console | None:
    """Return the console of a terminal; None for a file or pipe, or without the package rich."""
    # Notebooks set FORCE_COLOR, and rich would print each frame of the spinner there.
    if not os.isatty(2):
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True, highlight=False, force_terminal=True)


def _log_error(path: Path, error: OSError) -> OutputError:
    """Return the error of a log file that cannot be written."""
    reason = error.strerror or str(error)
    return OutputError(f"{path}: cannot be written: {reason}", path=str(path), reason=reason)


def _loggers() -> tuple[logging.Logger, ...]:
    """Return the loggers whose records are shown."""
    return logging.getLogger("tmkit"), logging.getLogger("py.warnings")


def _discard(_: object) -> None:
    """Discard a line or a state."""


def _write_progress(progress: Progress) -> None:
    """Write the state of some work as an event."""
    values = {field.name: getattr(progress, field.name) for field in fields(progress)}
    write_event("progress", {**values, "text": str(progress)})


class _LiveLine:
    """A progress line whose seconds count between two states; the terminal redraws it."""

    def __init__(self, text: str) -> None:
        self.show(text)

    def show(self, content: str | Progress) -> None:
        """Show a text or a state."""
        self._content, self._start = content, time.monotonic()

    def __rich__(self) -> Text:
        from rich.text import Text

        content, seconds = self._content, time.monotonic() - self._start
        if isinstance(content, str):
            return Text(printable(f"{content}, {seconds:.1f} s"))
        return Text(printable(str(replace(content, seconds=content.seconds + seconds))))


class _ConsoleHandler(logging.Handler):
    """Handler that prints records above the progress line."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        # A plain warning needs no name of a logger.
        is_plain = record.levelno == logging.WARNING and not record.exc_info
        text = f"warning: {record.getMessage()}" if is_plain else self.format(record)
        self._show(text)


class _EventHandler(logging.Handler):
    """Handler that writes records as events."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.format(record)  # sets exc_text
        traceback = {"traceback": record.exc_text} if record.exc_text else {}
        write_event(
            "log",
            {
                "level": record.levelname,
                "logger": record.name,
                "message": record.getMessage(),
                **traceback,
            },
        )


@contextmanager
def progress(text: str) -> Iterator[Work]:
    """Show the name of some work on the standard error, until the block ends.

    Yields:
        The display to pass as ``on_progress``.
    """
    with current_reporter().progress(text) as work:
        yield work


def print_json(document: object) -> None:
    """Print the result of a command as JSON."""
    typer.echo(json.dumps(document, indent=1))


def say(text: str) -> None:
    """Print lines of text without the control characters that names from files may contain."""
    typer.echo(printable(text))


def say_wrapped(text: str) -> None:
    """Print sentences, wrapped to the width of a terminal with their indentation."""
    if sys.stdout.isatty():
        width, lines = shutil.get_terminal_size().columns, text.splitlines()
        indents = [" " * (len(line) - len(line.lstrip())) for line in lines]
        wrapped = [
            textwrap.fill(
                line,
                width,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            for line, indent in zip(lines, indents, strict=True)
        ]
        text = "\n\n".join(wrapped)
    say(text)


def fail(message: str) -> NoReturn:
    """Print the reason for a negative result, and exit with its code."""
    say_wrapped(message)
    raise typer.Exit(ExitCode.NO)
