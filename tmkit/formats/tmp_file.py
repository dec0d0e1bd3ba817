"""Plan files of the original TMKit, ``.tmp``: what their lines say (docs/reference/plan_files.md).

A file that holds one ``m`` and one ``p`` gives a configuration; see :func:`first_configuration`.
This module reads the lines; :mod:`tmkit.tamp.validation.tmp_plan` interprets them in a scene.

Invariants: whatever breaks the form is refused with file, line and column; what is written reads
back to the same entries, numbers bit for bit, and in the original's own number format.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tmkit._support.limits import ReadingLimits, as_utf8, read_bytes
from tmkit._support.output import write_text
from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit.errors import FileFormatError, MissingFileError

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eEdD][+-]?[0-9]+)?")
_KINDS = {
    "a": "the name of an action and its arguments",
    "m": "the names of joints",
    "p": "numbers",
    "r": "a frame and its new parent",
}


@dataclass(frozen=True, slots=True)
class TmpComment:
    """A line of its own that says nothing to the program; ``text`` is what follows the ``#`` and a blank."""

    text: str
    place: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TmpAction:
    """An action: its name and its arguments."""

    words: tuple[str, ...]
    place: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Waypoint:
    """A configuration of the joints of a motion, radians or metres."""

    values: tuple[float, ...]
    place: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TmpMotion:
    """A motion: joints and the waypoints, at least one, between which they move straight.

    Attributes:
        joints: names, each once; none for a scene without joints.
        waypoints: in order.
        joint_places: where each name stands.
    """

    joints: tuple[str, ...]
    waypoints: tuple[Waypoint, ...]
    place: SourceLocation | None = field(default=None, compare=False)
    joint_places: tuple[SourceLocation, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class TmpReparent:
    """A change of parent that keeps the pose in the world."""

    frame: str
    parent: str
    place: SourceLocation | None = field(default=None, compare=False)
    parent_place: SourceLocation | None = field(default=None, compare=False)


TmpEntry = TmpComment | TmpAction | TmpMotion | TmpReparent


@dataclass(frozen=True, slots=True)
class TmpFile:
    """A plan file: its name for messages, and its entries in order."""

    path: str
    entries: tuple[TmpEntry, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """One line: its words without comments, and where each begins."""

    path: Path
    number: int
    text: str
    words: tuple[str, ...]
    columns: tuple[int, ...]

    def place(self, index: int = 0) -> SourceLocation:
        """Return the place of a word, or that behind the last."""
        columns = (*self.columns, len(self.text.rstrip()) + 1)
        return SourceLocation(
            str(self.path), self.number, columns[min(index, len(columns) - 1)], self.text
        )


def read_tmp(path: str | Path, *, limits: ReadingLimits | None = None) -> TmpFile:
    """Read a plan file.

    Args:
        path: the file.
        limits: how large it may be.

    Raises:
        MissingFileError: no such file.
        FileFormatError: a line that is none of the five, or does not fit what stands before it.
    """
    source = Path(path)
    if not os.path.exists(source):
        raise MissingFileError(f"there is no plan file '{source}'", path=str(source), nearest=None)
    try:
        data = read_bytes(source, limit=(limits or ReadingLimits()).text_bytes)
        text = as_utf8(data, partial(FileFormatError.at, source)).decode("utf-8")
    except UnicodeDecodeError as error:
        broken = error.object[: error.start].count(b"\n") + 1
        raise FileFormatError.at(
            source, f"not UTF-8 text: byte {error.start} is not valid", line=broken
        ) from error
    reader = _Reader()
    for number, written in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = _line(source, number, written)
        if line.words:
            reader.add(line)
        elif "#" in written:
            comment = written.lstrip().removeprefix("#").removeprefix(" ").rstrip()
            place = SourceLocation(str(source), number, written.index("#") + 1, written)
            reader.add_comment(TmpComment(comment, place))
    reader.finish_motion()
    return TmpFile(str(source), tuple(reader.entries))


def _line(path: Path, number: int, text: str) -> _Line:
    """Return a line without its comment, which begins at a ``#`` before which nothing or a blank stands."""
    comment = re.search(r"(?:^|(?<=[ \t]))#", text)
    code = text if comment is None else text[: comment.start()]
    found = list(re.finditer(r"[^ \t]+", code))
    words = tuple(match[0] for match in found)
    return _Line(path, number, text, words, tuple(match.start() + 1 for match in found))


@dataclass(slots=True)
class _Reader:
    """The entries so far; a motion stands there without waypoints until it is known to be over."""

    entries: list[TmpEntry] = field(default_factory=list)
    motion: int | None = None  # index of the motion that the next waypoint belongs to
    waypoints: list[Waypoint] = field(default_factory=list)

    def add_comment(self, comment: TmpComment) -> None:
        self.entries.append(comment)

    def add(self, line: _Line) -> None:
        kind, words = line.words[0], line.words[1:]
        if kind == "p":
            self.add_waypoint(line)
            return
        self.finish_motion()
        if kind == "a":
            if not words:
                raise line.place(1).error(f"expected {_KINDS[kind]}")
            self.entries.append(TmpAction(words, line.place()))
        elif kind == "m":
            self.begin_motion(line)
        elif kind == "r":
            if len(words) != 2:
                raise line.place(min(len(words), 2) + 1).error(
                    f"expected {_KINDS[kind]}, received {len(words)}"
                )
            self.entries.append(TmpReparent(words[0], words[1], line.place(1), line.place(2)))
        else:
            near = did_you_mean(kind, _KINDS)
            known = ", ".join(f"'{letter}' ({meaning})" for letter, meaning in _KINDS.items())
            raise line.place().error(
                f"unknown statement '{kind}'{near}; a line begins with {known} or '#'"
            )

    def begin_motion(self, line: _Line) -> None:
        seen: set[str] = set()
        for index, name in enumerate(line.words[1:], start=1):
            if name in seen:
                raise line.place(index).error(f"the joint '{name}' is named twice")
            seen.add(name)
        places = tuple(line.place(index) for index in range(1, len(line.words)))
        self.motion = len(self.entries)
        self.entries.append(TmpMotion(line.words[1:], (), line.place(), places))

    def add_waypoint(self, line: _Line) -> None:
        motion = self.entries[self.motion] if self.motion is not None else None
        if not isinstance(motion, TmpMotion):
            raise line.place().error(
                "a waypoint belongs to a motion; expected a line 'm JOINT ...' before it"
            )
        values = tuple(_number(line, index) for index in range(1, len(line.words)))
        wanted, received = len(motion.joints), len(values)
        if received != wanted:
            said = motion.place.line if motion.place is not None else None
            missing = (
                f"; the one for '{motion.joints[received]}' is missing" if received < wanted else ""
            )
            reason = (
                f"expected {wanted} numbers for the joints of line {said}, received"
                f" {received}{missing}"
            )
            raise line.place(min(received, wanted) + 1).error(reason)
        self.waypoints.append(Waypoint(values, line.place()))

    def finish_motion(self) -> None:
        """Give the motion before its waypoints."""
        motion = self.entries[self.motion] if self.motion is not None else None
        if self.motion is None or not isinstance(motion, TmpMotion):
            return
        if not self.waypoints and motion.place is not None:
            raise motion.place.error(
                "a motion needs at least one waypoint; expected a line 'p VALUE ...' after it"
            )
        self.entries[self.motion] = replace(motion, waypoints=tuple(self.waypoints))
        self.motion, self.waypoints = None, []


def _number(line: _Line, index: int) -> float:
    word = line.words[index]
    value = float(re.sub("[dD]", "e", word)) if _NUMBER.fullmatch(word) else math.nan
    if not math.isfinite(value):
        raise line.place(index).error(f"expected a finite number, received '{word}'")
    return value


def first_configuration(file: TmpFile) -> tuple[TmpMotion, dict[str, float]]:
    """Return the motion that a file begins with, and where it begins: joint values by name.

    This is what the original takes for the configuration at the start: the first ``p`` of the first
    ``m``.

    Raises:
        FileFormatError: the file has no motion.
    """
    motion = next((entry for entry in file.entries if isinstance(entry, TmpMotion)), None)
    if motion is None:
        raise FileFormatError.at(
            file.path, "gives no configuration; expected lines 'm JOINT ...' and 'p VALUE ...'"
        )
    return motion, dict(zip(motion.joints, motion.waypoints[0].values, strict=True))


def tmp_text(entries: Iterable[TmpEntry], *, path: str | Path = "plan") -> str:
    """Return entries as the text of a plan file.

    Args:
        entries: what is to be written.
        path: the file's name, for messages.

    Raises:
        FileFormatError: a name that the format cannot hold, since it is empty or has a blank or a
            ``#`` in it.
    """
    lines: list[str] = []
    for entry in entries:
        if isinstance(entry, TmpComment):
            lines.append(f"# {' '.join(entry.text.split())}".rstrip())
        elif isinstance(entry, TmpAction):
            lines.append(_joined("a", entry.words, path))
        elif isinstance(entry, TmpReparent):
            lines.append(_joined("r", (entry.frame, entry.parent), path))
        else:
            lines.append(_joined("m", entry.joints, path))
            lines += [
                " ".join(("p", *map(_written, waypoint.values))) for waypoint in entry.waypoints
            ]
    return "".join(f"{line}\n" for line in lines)


def _joined(letter: str, names: Sequence[str], path: str | Path) -> str:
    for name in names:
        if not name or "#" in name or any(character.isspace() for character in name):
            raise FileFormatError.at(
                path, f"the name '{name}' cannot be written: a .tmp file has no quotes for it"
            )
    return " ".join((letter, *names))


def _written(value: float) -> str:
    """Return the shortest digits that read back to the same bits, without the plus sign that the original lacks."""
    return repr(float(value)).replace("e+", "e")


def write_tmp(entries: Iterable[TmpEntry], path: str | Path) -> None:
    """Write a plan file completely or not at all.

    Args:
        entries: its entries, in order.
        path: the file.

    Raises:
        FileFormatError: a name that the format cannot hold.
        OutputError: the file cannot be written.
    """
    write_text(Path(path), tmp_text(entries, path=path))
