"""Progress and logs while a command runs: on a terminal for people, or as events for programs.

For people a :class:`Reporter` shows a line that changes (only on a terminal) and log records as
lines; for programs both are events (:mod:`~tmkit.cli.events`). Log records are shown from WARNING
on, from INFO with ``-v``, and from DEBUG with ``-vv``. ``--log-file`` takes all, with times.
``--quiet`` shows no progress.

Invariants: handlers are on the loggers ``tmkit`` and ``py.warnings`` only, and only inside
:meth:`Reporter.open`; afterwards logging is as it was before.
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
_LINE = "%(levelname)s %(name)s: %(message)s"
_LINE_OF_FILE = "%(asctime)s " + _LINE

_current: ContextVar[Reporter | None] = ContextVar("reporter", default=None)


class Work:
    """A piece of work that is shown while it is done; pass it as ``on_progress``."""

    def __init__(self, show: Callable[[str], None], tell: Callable[[Progress], None]) -> None:
        self._show, self._tell = show, tell

    def update(self, text: str) -> None:
        """Show another line; for people only."""
        self._show(text)

    def __call__(self, progress: Progress) -> None:
        """Show how far it is."""
        self._tell(progress)


class Reporter:
    """Shows progress and logs of one command, as events for programs or to people."""

    def __init__(self, *, as_events: bool) -> None:
        self.as_events = as_events
        self._console = None if as_events else _console()
        self._verbosity = 0
        self._is_quiet = False
        self._handlers: list[logging.Handler] = []
        self._log: tuple[Path, DroppingFile] | None = None
        self._shown: logging.Handler = _EventHandler() if as_events else _ConsoleHandler(self.print)
        self._shown.setFormatter(logging.Formatter(None if as_events else _LINE))
        self._shown.setLevel(_LEVELS[0])

    def be_more_verbose(self, times: int) -> None:
        """Show more of the log."""
        self._verbosity = min(self._verbosity + times, len(_LEVELS) - 1)
        self._shown.setLevel(_LEVELS[self._verbosity])
        self._set_level()

    def be_quiet(self) -> None:
        """Show no progress."""
        self._is_quiet = True

    def log_to(self, path: Path) -> None:
        """Write all of the log to a file, which is begun anew."""
        try:
            raw = DroppingFile(path, "w")
        except OSError as error:
            raise _log_error(path, error) from None
        self._log = (path, raw)
        handler = logging.StreamHandler(text_file(raw))
        handler.setFormatter(logging.Formatter(_LINE_OF_FILE))
        self._add(handler)

    def print(self, text: str) -> None:
        """Print text for people on the standard error; a terminal gets lines that end between words."""
        if self._console is None:
            typer.echo(printable(text), err=True)
        else:
            self._console.print(printable(text), markup=False, emoji=False)

    @property
    def log_failure(self) -> OutputError | None:
        """Why the file of the log is not complete; ``None`` when it is, or there is none."""
        if self._log is None or self._log[1].failure is None:
            return None
        return _log_error(self._log[0], self._log[1].failure)

    @contextmanager
    def open(self) -> Iterator[Reporter]:
        """Listen to the loggers, and be the :func:`current_reporter`, inside the block."""
        token = _current.set(self)
        before = logging.getLogger("tmkit").level
        if self.as_events:
            logging.captureWarnings(True)  # or Python would print them between the events
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
            logging.getLogger("tmkit").setLevel(before)

    @contextmanager
    def progress(self, text: str) -> Iterator[Work]:
        """Show that something is being done."""
        if self._is_quiet:
            yield Work(_nothing, _nothing)
        elif self.as_events:
            write_event(
                "progress", {"phase": text, "step": 0, "steps": 0, "seconds": 0.0, "text": text}
            )
            yield Work(_nothing, _write_progress)
        elif self._console is None:
            yield Work(_nothing, _nothing)
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
        """Let the library make the records that a handler wants, and no others."""
        logging.getLogger("tmkit").setLevel(
            min(handler.level or logging.DEBUG for handler in self._handlers)
        )


def current_reporter() -> Reporter:
    """Return the reporter of the command that runs; a new one outside of commands."""
    return _current.get() or Reporter(as_events=False)


def _console() -> Console | None:
    """Return the console of a terminal; None for a file or pipe, or where rich, which typer brings, is missing."""
    # rich would let notebooks, which set FORCE_COLOR, show every turn of the spinner
    if not os.isatty(2):
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True, highlight=False, force_terminal=True)


def _log_error(path: Path, error: OSError) -> OutputError:
    reason = error.strerror or str(error)
    return OutputError(f"{path}: cannot be written: {reason}", path=str(path), reason=reason)


def _loggers() -> tuple[logging.Logger, ...]:
    return logging.getLogger("tmkit"), logging.getLogger("py.warnings")


def _nothing(_: object) -> None:
    pass


def _write_progress(progress: Progress) -> None:
    values = {field.name: getattr(progress, field.name) for field in fields(progress)}
    write_event("progress", {**values, "text": str(progress)})


class _LiveLine:
    """A line of progress, whose seconds go on between two reports; the terminal draws it several times a second."""

    def __init__(self, text: str) -> None:
        self.show(text)

    def show(self, shown: str | Progress) -> None:
        self._shown, self._since = shown, time.monotonic()

    def __rich__(self) -> Text:
        from rich.text import Text

        shown, seconds = self._shown, time.monotonic() - self._since
        if isinstance(shown, str):
            return Text(printable(f"{shown}, {seconds:.1f} s"))
        return Text(printable(str(replace(shown, seconds=shown.seconds + seconds))))


class _ConsoleHandler(logging.Handler):
    """Prints records above the line that shows progress."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        # for people, who need no logger's name
        is_plain = record.levelno == logging.WARNING and not record.exc_info
        text = f"warning: {record.getMessage()}" if is_plain else self.format(record)
        self._show(text)


class _EventHandler(logging.Handler):
    """Writes records as events."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.format(record)  # works out the text of the exception
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
    """Show that something is done, on the standard error; functions take what is given as ``on_progress``."""
    with current_reporter().progress(text) as work:
        yield work


def print_json(document: object) -> None:
    """Print the one JSON document that a command answers with."""
    typer.echo(json.dumps(document, indent=1))


def say(text: str) -> None:
    """Print a line or more for a person; names in it come from files, and the terminal obeys none of them."""
    typer.echo(printable(text))


def say_wrapped(text: str) -> None:
    """Print sentences for a person, on a terminal as paragraphs of its width, with their indentation."""
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
    """Print why the answer is no, and end with that exit code."""
    say_wrapped(message)
    raise typer.Exit(ExitCode.NO)
