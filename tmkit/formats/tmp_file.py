"""Reader and writer of plan files of the original TMKit, ``.tmp`` (docs/reference/plan_files.md).

A file with one ``m`` and one ``p`` defines a configuration; see :func:`first_configuration`. This
module reads the lines; :mod:`tmkit.tamp.validation.tmp_plan` interprets them in a scene.

Invariants: a syntax error is reported with file, line and column. Written entries read back equal,
with bitwise equal numbers, in the number format of the original.
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
"""Form of a number."""

_STATEMENTS = {
    "a": "the name of an action and its arguments",
    "m": "the names of joints",
    "p": "numbers",
    "r": "a frame and its new parent",
}
"""Contents of a statement by its first letter."""


@dataclass(frozen=True, slots=True)
class TmpComment:
    """A comment on a separate line; ``text`` follows the ``#`` and a blank."""

    text: str
    place: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TmpAction:
    """An action; ``words`` are its name and its arguments."""

    words: tuple[str, ...]
    place: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Waypoint:
    """A configuration of the joints of a motion [rad or m]."""

    values: tuple[float, ...]
    place: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TmpMotion:
    """A motion through at least one waypoint, along straight lines in joint space.

    Attributes:
        joints: names without repetition; empty for a scene without joints.
        waypoints: waypoints in order.
        place: location of the motion in its file.
        joint_places: location of each joint name.
    """

    joints: tuple[str, ...]
    waypoints: tuple[Waypoint, ...]
    place: SourceLocation | None = field(default=None, compare=False)
    joint_places: tuple[SourceLocation, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class TmpReparent:
    """A change of a frame's parent that preserves its pose in the world."""

    frame: str
    parent: str
    place: SourceLocation | None = field(default=None, compare=False)
    parent_place: SourceLocation | None = field(default=None, compare=False)


TmpEntry = TmpComment | TmpAction | TmpMotion | TmpReparent


@dataclass(frozen=True, slots=True)
class TmpFile:
    """A plan file; ``path`` is its name for messages."""

    path: str
    entries: tuple[TmpEntry, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with its words, without comments, and the column of each word."""

    path: Path
    number: int
    text: str
    words: tuple[str, ...]
    columns: tuple[int, ...]

    def place(self, index: int = 0) -> SourceLocation:
        """Return the location of a word, or the end of the line for a larger index."""
        columns = (*self.columns, len(self.text.rstrip()) + 1)
        return SourceLocation(
            str(self.path), self.number, columns[min(index, len(columns) - 1)], self.text
        )


def read_tmp(path: str | Path, *, limits: ReadingLimits | None = None) -> TmpFile:
    """Read a plan file.

    Args:
        path: path of the file.
        limits: size limits.

    Raises:
        MissingFileError: if there is no such file.
        FileFormatError: if a line is not one of the five statements, or does not match the lines
            before it.
    """
    source = Path(path)
    if not os.path.exists(source):
        raise MissingFileError(f"there is no plan file '{source}'", path=str(source), nearest=None)
    try:
        data = read_bytes(source, limit=(limits or ReadingLimits()).text_bytes)
        text = as_utf8(data, partial(FileFormatError.at, source)).decode("utf-8")
    except UnicodeDecodeError as error:
        line_number = error.object[: error.start].count(b"\n") + 1
        raise FileFormatError.at(
            source, f"not UTF-8 text: byte {error.start} is not valid", line=line_number
        ) from error
    reader = _Reader()
    for number, line_text in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = _split_line(source, number, line_text)
        if line.words:
            reader.add(line)
        elif "#" in line_text:
            comment = line_text.lstrip().removeprefix("#").removeprefix(" ").rstrip()
            place = SourceLocation(str(source), number, line_text.index("#") + 1, line_text)
            reader.add_comment(TmpComment(comment, place))
    reader.finish_motion()
    return TmpFile(str(source), tuple(reader.entries))


def _split_line(path: Path, number: int, text: str) -> _Line:
    """Return the words of a line without its comment.

    A comment starts at a ``#`` at the start of the line or after a blank.
    """
    comment = re.search(r"(?:^|(?<=[ \t]))#", text)
    code = text if comment is None else text[: comment.start()]
    matches = list(re.finditer(r"[^ \t]+", code))
    words = tuple(match[0] for match in matches)
    return _Line(path, number, text, words, tuple(match.start() + 1 for match in matches))


@dataclass(slots=True)
class _Reader:
    """State of reading a file.

    Attributes:
        entries: entries so far. The current motion has no waypoints until the next statement.
        motion: index of the current motion, if any.
        waypoints: waypoints of the current motion.
    """

    entries: list[TmpEntry] = field(default_factory=list)
    motion: int | None = None
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
                raise line.place(1).error(f"expected {_STATEMENTS[kind]}")
            self.entries.append(TmpAction(words, line.place()))
        elif kind == "m":
            self.begin_motion(line)
        elif kind == "r":
            if len(words) != 2:
                raise line.place(min(len(words), 2) + 1).error(
                    f"expected {_STATEMENTS[kind]}, received {len(words)}"
                )
            self.entries.append(TmpReparent(words[0], words[1], line.place(1), line.place(2)))
        else:
            hint = did_you_mean(kind, _STATEMENTS)
            statements = ", ".join(
                f"'{letter}' ({content})" for letter, content in _STATEMENTS.items()
            )
            raise line.place().error(
                f"unknown statement '{kind}'{hint}; a line begins with {statements} or '#'"
            )

    def begin_motion(self, line: _Line) -> None:
        names: set[str] = set()
        for index, name in enumerate(line.words[1:], start=1):
            if name in names:
                raise line.place(index).error(f"the joint '{name}' is named twice")
            names.add(name)
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
        expected, received = len(motion.joints), len(values)
        if received != expected:
            motion_line = motion.place.line if motion.place is not None else None
            reason = (
                f"expected {expected} numbers for the joints of line {motion_line}, received"
                f" {received}"
            )
            if received < expected:
                reason += f"; the one for '{motion.joints[received]}' is missing"
            raise line.place(min(received, expected) + 1).error(reason)
        self.waypoints.append(Waypoint(values, line.place()))

    def finish_motion(self) -> None:
        """Store the waypoints of the current motion."""
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
    """Return the first motion of a file, and its first waypoint as joint values by name.

    The original uses this waypoint, the first ``p`` of the first ``m``, as start configuration.

    Raises:
        FileFormatError: if the file has no motion.
    """
    motion = next((entry for entry in file.entries if isinstance(entry, TmpMotion)), None)
    if motion is None:
        raise FileFormatError.at(
            file.path, "gives no configuration; expected lines 'm JOINT ...' and 'p VALUE ...'"
        )
    return motion, dict(zip(motion.joints, motion.waypoints[0].values, strict=True))


def tmp_text(entries: Iterable[TmpEntry], *, path: str | Path = "plan") -> str:
    """Return the text of a plan file.

    Args:
        entries: entries in order.
        path: name of the file, for messages.

    Raises:
        FileFormatError: if a name is empty or contains a blank or a ``#``, which the format cannot
            store.
    """
    lines: list[str] = []
    for entry in entries:
        if isinstance(entry, TmpComment):
            lines.append(f"# {' '.join(entry.text.split())}".rstrip())
        elif isinstance(entry, TmpAction):
            lines.append(_statement("a", entry.words, path))
        elif isinstance(entry, TmpReparent):
            lines.append(_statement("r", (entry.frame, entry.parent), path))
        else:
            lines.append(_statement("m", entry.joints, path))
            lines += [
                " ".join(("p", *map(_number_text, waypoint.values))) for waypoint in entry.waypoints
            ]
    return "".join(f"{line}\n" for line in lines)


def _statement(letter: str, names: Sequence[str], path: str | Path) -> str:
    """Return the line of a statement, and check its names."""
    for name in names:
        if not name or "#" in name or any(character.isspace() for character in name):
            raise FileFormatError.at(
                path, f"the name '{name}' cannot be written: a .tmp file has no quotes for it"
            )
    return " ".join((letter, *names))


def _number_text(value: float) -> str:
    """Return the shortest text that reads back to the same bits.

    Exponents have no plus sign, which the original does not read.
    """
    return repr(float(value)).replace("e+", "e")


def write_tmp(entries: Iterable[TmpEntry], path: str | Path) -> None:
    """Write a plan file completely or not at all.

    Args:
        entries: entries in order.
        path: path of the file.

    Raises:
        FileFormatError: if the format cannot store a name.
        OutputError: if the file cannot be written.
    """
    write_text(Path(path), tmp_text(entries, path=path))
