"""Every error tmkit raises, and the data that it carries.

An error tells the user what to do next: it states what was received, what would have been accepted
and, for a name, the nearest valid one; the same facts are attributes, for programs. Every class
derives from :class:`TmkitError` and from the builtin that fits (``ValueError``, ``KeyError``, ...):
callers may catch either.

Invariants: errors survive pickling (planners run in processes), whatever their attributes;
``str(error)`` is the plain message. An expected failure (no plan, unreachable pose, time-out) is
never an error but a result value.

This is the lowest layer of the package: it imports nothing of tmkit.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Self

__all__ = [
    "ArgumentError",
    "BlockError",
    "CapacityError",
    "CollisionError",
    "ConcurrentWriteError",
    "ConfigurationError",
    "CostError",
    "CycleError",
    "DisconnectedError",
    "DuplicateNameError",
    "FileFormatError",
    "ListenerError",
    "LogDamageError",
    "MergeConflictError",
    "MeshError",
    "MissingExtraError",
    "MissingFileError",
    "NumberOverflowError",
    "OutputError",
    "PickledStateError",
    "PlanFileError",
    "PlugInError",
    "RobotError",
    "SamplerError",
    "SceneError",
    "SemanticsMismatchError",
    "ServiceError",
    "ShapeError",
    "SimulationError",
    "StampError",
    "StoreDamageError",
    "StoreError",
    "TaskError",
    "TaskPlannerError",
    "TimeLimitError",
    "TmkitError",
    "UnknownNameError",
    "WorkerError",
    "install_command",
    "nearest_name",
]

_LONGEST_NAME = 200  # characters that are compared
_LONGEST_REASON = 600  # characters of a reason that are shown; a file may hold a name of a megabyte
_SHOWN_COLUMNS = 120  # of a line of a file


def nearest_name(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most like ``name``, or ``None`` when none is near.

    Args:
        name: the name that was received.
        candidates: the names that would have been accepted.

    Returns:
        The nearest candidate with a similarity of at least 0.5 (ratio of matching blocks), case
        ignored, other than the name itself. Names of more than 200 characters are near to none, as
        comparing takes time that grows with the square of the length.
    """
    if len(name) > _LONGEST_NAME:
        return None
    others = (
        candidate
        for candidate in candidates
        if candidate != name and len(candidate) <= _LONGEST_NAME
    )
    by_lower = {candidate.lower(): candidate for candidate in others}
    found = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None


class TmkitError(Exception):
    """Base of all errors of tmkit.

    Args:
        message: what went wrong, for a person.
        **data: the same as facts; each becomes an attribute of the error.

    Attributes:
        message: the message.
        data: the facts by name, read-only by convention.
    """

    def __init__(self, message: str, /, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data: Mapping[str, Any] = data
        for key, value in data.items():
            setattr(self, key, value)

    def name_source(self, source: str) -> None:
        """Begin the message with a source, such as the path of a file, unless it contains the source."""
        if source not in self.message:
            self.message = f"{source}: {self.message}"

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.message, dict(self.data))


def _restore(cls: type[TmkitError], message: str, data: dict[str, Any]) -> TmkitError:
    """Make the error again from its pickled parts."""
    return cls(message, **data)


class ArgumentError(TmkitError, TypeError):
    """An argument of a wrong type, or a call that does not fit the signature.

    Attributes: ``function``; of one wrong argument also ``argument``, ``expected`` and ``received``
        (names of types).
    """


class SceneError(TmkitError, ValueError):
    """An edit or value that would make a scene inconsistent: a negative size, a NaN, a zero quaternion, a bad limit."""


class ShapeError(SceneError):
    """A shape that cannot exist: a size that is not positive, faces that name no vertex, a hull with no volume."""


class CycleError(SceneError):
    """An edit that would make a frame its own ancestor. Attributes: ``frame``, ``parent``."""


class DuplicateNameError(SceneError):
    """A frame, joint or body of that name is already there. Attributes: ``kind``, ``name``."""


class DisconnectedError(SceneError):
    """Two frames are in different trees: no relation between them is known. Attributes: ``frame``, ``relative_to``."""


class StampError(SceneError):
    """A time at which nothing is known of a frame's pose, or a stamped pose that its history cannot take.

    Attributes: ``frame``, ``stamp``; of a time outside of a history also ``oldest`` and ``newest``.
    """


class NumberOverflowError(SceneError, OverflowError):
    """A result that is beyond the range of floating-point numbers, which would be infinite or no number at all."""


class PickledStateError(TmkitError, ValueError):
    """A pickled state is damaged: an entry is missing, of another type, or refers to what is not there."""


class CapacityError(TmkitError, OverflowError):
    """A preallocated store is full. Attributes: ``kind``, ``capacity``."""


class ConcurrentWriteError(TmkitError, RuntimeError):
    """Two threads wrote at once to what has room for one writer."""


class UnknownNameError(TmkitError, KeyError):
    """No frame, joint, body, file or object of that name. Attributes: ``kind``, ``name``, ``nearest``."""

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return self.message

    @classmethod
    def of(
        cls, kind: str, name: str, candidates: Iterable[str], *, where: str = ""
    ) -> UnknownNameError:
        """Create the error of an unknown name.

        Args:
            kind: what the name denotes, e.g. ``frame``.
            name: the unknown name.
            candidates: the valid names; the nearest is suggested, and up to 12 are listed, of more
                the 6 shortest.
            where: prefix of the message, such as a file and a line.
        """
        names = list(candidates)
        near = nearest_name(name, names)
        message = f"{where + ': ' if where else ''}unknown {kind} '{name}'"
        if near is not None:
            message += f"; did you mean '{near}'?"
        if names and len(names) <= 12:
            message += f" (known: {', '.join(sorted(names))})"
        elif names and near is None:
            shortest = sorted(names, key=lambda known: (len(known), known))[:6]
            message += f" (known: {', '.join(shortest)} and {len(names) - 6} more)"
        elif not names:
            message += f"; there is no {kind} at all"
        return cls(message, kind=kind, name=name, nearest=near)


class ConfigurationError(TmkitError, ValueError):
    """A configuration that is missing, of the wrong shape, not finite or outside the joint limits.

    Attributes where they apply: ``joint``, ``value``, ``lower``, ``upper``, ``expected``,
    ``received``.
    """


class CollisionError(TmkitError, ValueError):
    """A configuration in collision where a free one is required. Attributes: ``pairs`` of frame names."""


class FileFormatError(TmkitError, ValueError):
    """A file that does not say what its format requires.

    Attributes: ``path`` (str), ``line`` and ``column`` (1-based int or ``None``), ``reason``.
    """

    @classmethod
    def at(
        cls,
        path: object,
        reason: str,
        *,
        line: int | None = None,
        column: int | None = None,
        source_line: str | None = None,
        data: Mapping[str, object] | None = None,
    ) -> Self:
        """Build the error ``path:line:column: reason``, with the line and a caret under the column when given.

        Of a long line only what is around the column is shown, and a long reason is cut in its
        middle. Characters that cannot be printed are shown as the replacement character.

        Args:
            path: the file.
            reason: what is wrong.
            line: location, from 1; None if unknown.
            column: location, from 1; None if unknown.
            source_line: text of the line, quoted in the message if given.
            data: attributes of the error.
        """
        reason = _cut(reason, _LONGEST_REASON)
        place = str(path)
        if line is not None:
            place += f":{line}"
            if column is not None:
                place += f":{column}"
        message = f"{place}: {reason}"
        if source_line is not None:
            shown, before = _cropped(source_line, column)
            message += f"\n    {shown}"
            if column is not None:
                indent = "".join("\t" if c == "\t" else " " for c in shown[:before]).ljust(before)
                message += f"\n    {indent}^"
        return cls(message, path=str(path), line=line, column=column, reason=reason, **(data or {}))


def _cut(text: str, length: int) -> str:
    """Return a text without its middle when it is longer than ``length``."""
    if len(text) <= length:
        return text
    return f"{text[: length * 2 // 3]} ... {text[-length // 3 :]}"


def _cropped(line: str, column: int | None) -> tuple[str, int]:
    """Return what is shown of a line, and how many characters of that stand before the column."""
    line = "".join(
        letter if letter.isprintable() or letter == "\t" else "\ufffd" for letter in line
    )
    before = column - 1 if column is not None else 0
    if len(line) <= _SHOWN_COLUMNS:
        return line, min(before, len(line))
    begin = max(0, min(before - _SHOWN_COLUMNS // 2, len(line) - _SHOWN_COLUMNS))
    end = begin + _SHOWN_COLUMNS
    head, tail = "..." if begin else "", "..." if end < len(line) else ""
    return f"{head}{line[begin:end]}{tail}", len(head) + min(before - begin, _SHOWN_COLUMNS)


class MeshError(FileFormatError):
    """A mesh file that is missing, unreadable or empty."""


class RobotError(FileFormatError):
    """A robot description that does not fit its scene: an unknown tip frame, a joint that is not on the chain, ..."""


class PlanFileError(FileFormatError):
    """A plan file that is broken, of another version, or whose robot, scene or domain has changed since."""


class MissingFileError(TmkitError, FileNotFoundError):
    """A file, folder or data name that is not there. Attributes: ``path``, ``nearest``."""


class OutputError(TmkitError, OSError):
    """An output that cannot be written. Attributes: ``path``, ``reason``."""


class TaskError(FileFormatError):
    """A PDDL domain, problem or goal that is wrong: syntax, arity, type, unknown name."""


class TimeLimitError(TmkitError, TimeoutError):
    """Work was stopped because its time was up; see :func:`tmkit._support.time_limits.time_limit`."""


class TaskPlannerError(TmkitError, RuntimeError):
    """A task planner that could not be run or ended in an error of its own. Attributes: ``command``, ``output``."""


class SemanticsMismatchError(TmkitError, RuntimeError):
    """The state derived from a scene differs from the state PDDL predicts.

    Attributes: ``action``, and the facts ``missing`` (predicted, not derived) and ``unexpected``
        (the other way).
    """


class SamplerError(TmkitError, RuntimeError):
    """A sampler of grasps or placements that fails, or gives what is none. Attributes: ``sampler``, its name."""


class CostError(TmkitError, RuntimeError):
    """A cost function that fails, or gives what is no cost. Attributes: ``cost``, its name, and ``action``."""


class WorkerError(TmkitError, RuntimeError):
    """A process that worked for this one was killed or broke before its result. Attributes: ``output``, its words."""


class BlockError(TmkitError, RuntimeError):
    """A function block that fails, breaks its interface, or does not fit the others. Attribute: ``block``, its name."""

    @classmethod
    def of(cls, block: str, reason: str) -> BlockError:
        """Build the error.

        Args:
            block: its name.
            reason: what is wrong, with the verb.
        """
        return cls(f"function block '{block}' {reason}", block=block)


class ListenerError(TmkitError, RuntimeError):
    """Listeners of a live scene raised; the version was made, and all others were called. Attribute: ``listeners``."""


class SimulationError(TmkitError, RuntimeError):
    """The physics simulation could not be built or run."""


class StoreError(TmkitError, ValueError):
    """A store of scene versions refuses an operation, or cannot be opened."""


class StoreDamageError(StoreError):
    """An entry of a store is missing or damaged. Attribute: ``entry``, such as ``version 12ab...``."""

    @classmethod
    def of(cls, entry: str, reason: str) -> StoreDamageError:
        """Build the error.

        Args:
            entry: what is damaged, e.g. ``blob 12ab``.
            reason: what is wrong with it.
        """
        return cls(f"{entry}: {reason}", entry=entry)


class MergeConflictError(StoreError):
    """Two versions change the same thing differently. Attribute: ``conflicts``, each with its name and both edits."""


class ServiceError(TmkitError, RuntimeError):
    """The service of a world refuses a request, or cannot be reached.

    Attribute: ``kind``: ``format``, ``version``, ``token``, ``role``, ``size``, ``rate``, ``busy``,
    ``repeated``, ``edit``, ``conflict``, ``unknown``, ``gone`` or ``internal`` of a refusal;
    ``transport`` or ``log``.
    """


class LogDamageError(ServiceError):
    """A record of the log of a service is damaged that had been acknowledged. Attributes: ``path``, ``offset``."""

    @classmethod
    def of(cls, path: object, offset: int) -> LogDamageError:
        """Build the error.

        Args:
            path: the log.
            offset: of the damaged record, bytes.
        """
        message = (
            f"{path}: the record at offset {offset} is damaged, and later ones are whole; restore"
            f" the file from a copy, or cut it there and lose what came later: truncate -s {offset}"
            f" {path}"
        )
        return cls(message, kind="log", path=str(path), offset=offset)


class PlugInError(TmkitError, ImportError):
    """A plug-in that cannot be loaded, fails, or claims a taken name. Attributes: ``name``, ``distribution``."""

    @classmethod
    def of(cls, name: str, distribution: str, reason: str) -> PlugInError:
        """Build the error.

        Args:
            name: the name of the entry point.
            distribution: the distribution that it comes from.
            reason: what is wrong, with the verb.
        """
        message = f"the plug-in '{name}' of the distribution '{distribution}' {reason}"
        return cls(message, name=name, distribution=distribution)


class MissingExtraError(TmkitError, ImportError):
    """An optional dependency is absent. Attributes: ``extra``, ``module``."""

    @classmethod
    def of(cls, need: str, extra: str, module: str, *, hint: str = "") -> MissingExtraError:
        """Build the error for what needs an extra of tmkit.

        Args:
            need: what needs it, with the verb, e.g. ``plot.png: drawing plots needs``.
            extra: the extra of ``pyproject.toml``.
            module: the module that is missing.
            hint: what to do instead, appended to the message.
        """
        message = f"{need} the extra '{extra}': {install_command(extra)}{hint}"
        return cls(message, extra=extra, module=module)


def install_command(extra: str) -> str:
    """Return the command that installs an extra, run in a clone: the name ``tmkit`` on PyPI is another project's."""
    return f"pip install -e '.[{extra}]' in the folder of tmkit's sources"
