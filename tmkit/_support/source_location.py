"""Locations in files, and notes about corrected or omitted content.

Every value that is read from a file has a :class:`SourceLocation`, whose
:meth:`~SourceLocation.error` returns an error with a caret under the location. A reader corrects or
omits small faults, which are common in robot descriptions and tolerated by other tools, with a
note. Each :class:`ImportNote` has its location in the file and is logged as a warning. The callback
of the caller (``load_scene(..., on_note=...)``) receives it, and may print, count or raise.

Invariant: one load emits equal notes about a line once, in the order of the reader.
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
    """Location in a file.

    Attributes:
        path: path of the file, from the user or an include.
        line: 1-based line; None for a format without lines.
        column: 1-based column; None if unknown.
        text: text of the line, without its end.
    """

    path: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    def error(self, reason: str) -> FileFormatError:
        """Return an error with a reason and this location."""
        return FileFormatError.at(
            self.path, reason, line=self.line, column=self.column, source_line=self.text
        )

    def mesh_error(self, reason: str, *, mesh: str) -> MeshError:
        """Return the error of a mesh file that is referenced at this location.

        Args:
            reason: fault of the mesh.
            mesh: mesh file, stored as ``mesh`` in the error.
        """
        data = {"mesh": mesh}
        return MeshError.at(
            self.path, reason, line=self.line, column=self.column, source_line=self.text, data=data
        )

    def __str__(self) -> str:
        if self.line is None:
            return self.path
        return f"{self.path}:{self.line}" + (f":{self.column}" if self.column is not None else "")


class _Location(Protocol):
    def error(self, reason: str) -> FileFormatError: ...


@contextmanager
def locate_errors(place: _Location) -> Iterator[None]:
    """Convert errors of a block to a :class:`FileFormatError` with a location."""
    try:
        yield
    except FileFormatError:
        raise
    except TmkitError as error:
        raise place.error(str(error)) from error


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return ``"; did you mean 'table'?"``, or an empty string if no candidate is similar.

    Args:
        name: unknown name.
        candidates: valid names.
    """
    nearest = nearest_name(name, candidates)
    return f"; did you mean '{nearest}'?" if nearest is not None else ""


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that is equal to an earlier one; None if all differ."""
    earlier_names = set()
    for name in names:
        if name in earlier_names:
            return name
        earlier_names.add(name)
    return None


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImportNote:
    """Note about content of a file that was corrected or omitted.

    Attributes:
        path: path of the file.
        line: 1-based line; None for a format without lines.
        text: description of the content and its correction.
    """

    path: str
    line: int | None
    text: str

    def __str__(self) -> str:
        return f"{SourceLocation(self.path, self.line)}: {self.text}"


Note = Callable[[SourceLocation, str], None]
"""Function that records a note, from a location and a text."""


@dataclass
class ImportLog:
    """Record of the notes of one load, which logs each note and passes it to a callback.

    Attributes:
        on_note: called with every note; an error of it ends the load.
    """

    on_note: Callable[[ImportNote], None] | None = None
    _notes: dict[ImportNote, None] = field(default_factory=dict)

    @property
    def notes(self) -> list[ImportNote]:
        """The recorded notes in order."""
        return list(self._notes)

    def note(self, place: SourceLocation, text: str) -> None:
        """Record and log a note, unless an equal note exists.

        Args:
            place: location in the file.
            text: text of the note.
        """
        note = ImportNote(place.path, place.line, text)
        if note in self._notes:
            return
        self._notes[note] = None
        logger.warning("%s", note)
        if self.on_note is not None:
            self.on_note(note)


def ignore_note(_place: SourceLocation, _text: str) -> None:
    """Ignore a note."""
