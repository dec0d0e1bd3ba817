"""Notes: what a reader mended or omitted, instead of refusing the file.

Descriptions of robots in the wild are full of small slips that every tool forgives. Each becomes a :class:`ImportNote`
with its place in the file, is logged as a warning, and given to the program that asked for it (``load_scene(...,
on_note=...)``), which may print, count or raise.

Invariant: one load says the same thing about the same line once, in the order in which the readers meet it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from tmkit._support.source_location import SourceLocation

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
