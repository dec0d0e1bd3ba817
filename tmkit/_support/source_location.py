"""Locations in files: every value that is read from a file keeps its :class:`SourceLocation`.

Its :meth:`SourceLocation.error` makes the error with a caret under the spot. Notes are what a
reader mended or omitted, instead of refusing the file. Descriptions of robots in the wild are full
of small slips that every tool forgives. Each becomes a :class:`ImportNote` with its place in the
file, is logged as a warning, and given to the program that asked for it (``load_scene(...,
on_note=...)``), which may print, count or raise.

Invariant: one load says the same thing about the same line once, in the order in which the readers
    meet it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from tmkit.errors import FileFormatError, MeshError, TmkitError, nearest_name


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A spot in a file.

    Attributes:
        path: the file, as the user named it or as an include led to it.
        line: 1-based, ``None`` when the format has no lines to speak of.
        column: 1-based, ``None`` when only the line is known.
        text: the whole line, without its end.
    """

    path: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    def error(self, reason: str) -> FileFormatError:
        """Return the error that says ``reason`` and points here."""
        return FileFormatError.at(
            self.path, reason, line=self.line, column=self.column, source_line=self.text
        )

    def mesh_error(self, reason: str, *, mesh: str) -> MeshError:
        """Return the error of a mesh file that is referenced at this location.

        Args:
            reason: what is wrong.
            mesh: the file, as the attribute ``mesh`` of the error.
        """
        data = {"mesh": mesh}
        return MeshError.at(
            self.path, reason, line=self.line, column=self.column, source_line=self.text, data=data
        )

    def __str__(self) -> str:
        if self.line is None:
            return self.path
        return f"{self.path}:{self.line}" + (f":{self.column}" if self.column is not None else "")


class _Place(Protocol):
    def error(self, reason: str) -> FileFormatError: ...


@contextmanager
def reported(place: _Place) -> Iterator[None]:
    """Report whatever the core refuses at a place of a file, as a :class:`FileFormatError`."""
    try:
        yield
    except FileFormatError:
        raise
    except TmkitError as error:
        raise place.error(str(error)) from error


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ``"; did you mean 'table'?"``, or an empty string if no candidate is similar.

    Args:
        name: the unknown name.
        candidates: the valid names.
    """
    near = nearest_name(name, candidates)
    return f"; did you mean '{near}'?" if near is not None else ""


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that is the same as an earlier one, or ``None`` if all differ."""
    seen = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImportNote:
    """Something in a file that was mended or omitted.

    Attributes:
        path: the file.
        line: 1-based, ``None`` when the format has no lines to speak of.
        text: what was found and what became of it, for a person.
    """

    path: str
    line: int | None
    text: str

    def __str__(self) -> str:
        return f"{SourceLocation(self.path, self.line)}: {self.text}"


# What a reader calls to make a note: where, and what.
Note = Callable[[SourceLocation, str], None]


@dataclass
class ImportLog:
    """Takes the notes of one load: logs each and hands it on.

    Attributes:
        on_note: is called with every note; what it raises ends the load.
    """

    on_note: Callable[[ImportNote], None] | None = None
    _seen: dict[ImportNote, None] = field(default_factory=dict)

    @property
    def notes(self) -> list[ImportNote]:
        """The notes so far, in order."""
        return list(self._seen)

    def note(self, place: SourceLocation, text: str) -> None:
        """Record and log a note, unless this load has recorded the same one.

        Args:
            place: the location that it concerns.
            text: the note.
        """
        note = ImportNote(place.path, place.line, text)
        if note in self._seen:
            return
        self._seen[note] = None
        logger.warning("%s", note)
        if self.on_note is not None:
            self.on_note(note)


def unheard(_place: SourceLocation, _text: str) -> None:
    """Ignore a note."""
