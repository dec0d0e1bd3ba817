"""Where in a file something was written: every value read from a file keeps its :class:`SourceLocation`.

Its :meth:`SourceLocation.error` makes the error with a caret under the spot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
        return FileFormatError.at(self.path, reason, line=self.line, column=self.column, source_line=self.text)

    def mesh_error(self, reason: str, *, mesh: str) -> MeshError:
        """Return the error of a mesh file that is referenced at this location.

        Args:
            reason: what is wrong.
            mesh: the file, as the attribute ``mesh`` of the error.
        """
        return MeshError.at(self.path, reason, line=self.line, column=self.column, source_line=self.text, mesh=mesh)

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
