"""Exceptions of tmkit, with machine-readable data.

The message of an error contains the received value, the accepted values and, for a name, the
nearest valid one. The same facts are attributes, for programs. Every class derives from
:class:`TmkitError` and from the built-in class that fits (``ValueError``, ``KeyError``, ...), so
callers may catch either.

Invariants: errors survive pickling with all attributes, since planners run in processes.
``str(error)`` is the plain message. An expected failure (no plan, unreachable pose, time-out) is
a result value, never an error.

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
    "ExecutionError",
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
    "UnknownClassWarning",
    "UnknownNameError",
    "WorkerError",
    "install_command",
    "nearest_name",
]

_MAX_COMPARED_LENGTH = 200
"""Length of the longest name that is compared with others [characters]."""

_MAX_REASON_LENGTH = 600
"""Length of the longest reason in a message [characters]; a file may contain huge names."""

_MAX_LINE_WIDTH = 120
"""Width of the longest quotation from a line of a file [characters]."""


def nearest_name(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most similar to ``name``, or ``None`` if no candidate is similar.

    Args:
        name: received name.
        candidates: accepted names.

    Returns:
        The nearest candidate other than the name itself, with a similarity of at least 0.5 (ratio
        of matching blocks). Case is ignored. Names of more than 200 characters are not compared,
        since the time of a comparison grows with the square of the length.
    """
    if len(name) > _MAX_COMPARED_LENGTH:
        return None
    by_lower_case = {
        candidate.lower(): candidate
        for candidate in candidates
        if candidate != name and len(candidate) <= _MAX_COMPARED_LENGTH
    }
    matches = difflib.get_close_matches(name.lower(), list(by_lower_case), n=1, cutoff=0.5)
    return by_lower_case[matches[0]] if matches else None


class UnknownClassWarning(UserWarning):
    """A query for the frames of a class that no frame has, while a similar class exists.

    :meth:`tmkit.SceneGraph.frames_of_class` emits it. Python shows it once for each text and line.
    """


class TmkitError(Exception):
    """Base of all errors of tmkit.

    Args:
        message: description of the error, for users.
        **data: the same facts for programs; each becomes an attribute of the error.

    Attributes:
        message: description of the error.
        data: facts by name, read-only by convention.
    """

    def __init__(self, message: str, /, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data: Mapping[str, Any] = data
        for key, value in data.items():
            setattr(self, key, value)

    def name_source(self, source: str) -> None:
        """Prefix the message with a source, such as a file path, unless it contains the source."""
        if source not in self.message:
            self.message = f"{source}: {self.message}"

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.message, dict(self.data))


def _restore(cls: type[TmkitError], message: str, data: dict[str, Any]) -> TmkitError:
    """Create an error from its pickled parts."""
    return cls(message, **data)


class ArgumentError(TmkitError, TypeError):
    """An argument of a wrong type, or a call that does not match the signature.

    Attributes: ``function``; for a single wrong argument also ``argument``, ``expected`` and
        ``received`` (names of types).
    """


class SceneError(TmkitError, ValueError):
    """An edit or value that would make a scene inconsistent.

    Examples: a negative size, a NaN, a zero quaternion, an invalid limit.
    """


class ShapeError(SceneError):
    """An invalid shape.

    Examples: a size that is not positive, faces with undefined vertices, a hull without volume.
    """


class CycleError(SceneError):
    """An edit that would make a frame its own ancestor. Attributes: ``frame``, ``parent``."""


class DuplicateNameError(SceneError):
    """The name of an existing frame, joint or body. Attributes: ``kind``, ``name``."""


class DisconnectedError(SceneError):
    """Two frames of different trees, whose relation is undefined.

    Attributes: ``frame``, ``relative_to``.
    """


class StampError(SceneError):
    """A time without a pose of the frame, or a stamped pose that its history cannot store.

    Attributes: ``frame``, ``stamp``; for a time outside a history also ``oldest`` and ``newest``.
    """


class NumberOverflowError(SceneError, OverflowError):
    """A result beyond the range of floating-point numbers, which would be infinite or NaN."""


class PickledStateError(TmkitError, ValueError):
    """A damaged pickled state: an entry is missing, of another type, or an invalid reference."""


class CapacityError(TmkitError, OverflowError):
    """A full preallocated store. Attributes: ``kind``, ``capacity``."""


class ConcurrentWriteError(TmkitError, RuntimeError):
    """Simultaneous writes of two threads to an object that supports one writer."""


class UnknownNameError(TmkitError, KeyError):
    """An unknown name of a frame, joint, body, file or object.

    Attributes: ``kind``, ``name``, ``nearest``.
    """

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return self.message

    @classmethod
    def of(
        cls, kind: str, name: str, candidates: Iterable[str], *, where: str = ""
    ) -> UnknownNameError:
        """Create the error of an unknown name.

        Args:
            kind: kind of the named object, e.g. ``frame``.
            name: unknown name.
            candidates: valid names. The message suggests the nearest. It lists up to 12 names, and
                the 6 shortest if there are more.
            where: prefix of the message, such as a file and a line.
        """
        names = list(candidates)
        nearest = nearest_name(name, names)
        message = f"{where + ': ' if where else ''}unknown {kind} '{name}'"
        if nearest is not None:
            message += f"; did you mean '{nearest}'?"
        if names and len(names) <= 12:
            message += f" (known: {', '.join(sorted(names))})"
        elif names and nearest is None:
            shortest = sorted(names, key=lambda candidate: (len(candidate), candidate))[:6]
            message += f" (known: {', '.join(shortest)} and {len(names) - 6} more)"
        elif not names:
            message += f"; there is no {kind} at all"
        return cls(message, kind=kind, name=name, nearest=nearest)


class ConfigurationError(TmkitError, ValueError):
    """A configuration that is missing, of the wrong shape, not finite or outside the joint limits.

    Attributes where they apply: ``joint``, ``value``, ``lower``, ``upper``, ``expected``,
    ``received``.
    """


class CollisionError(TmkitError, ValueError):
    """A configuration in collision where a collision-free one is required.

    Attributes: ``pairs`` of frame names.
    """


class FileFormatError(TmkitError, ValueError):
    """A file that violates its format.

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
        """Create the error ``path:line:column: reason``, with the line and a caret if given.

        A long line is cropped around the column, and a long reason is shortened in its middle.
        Characters that cannot be printed become the replacement character.

        Args:
            path: path of the file.
            reason: description of the fault.
            line: line number, from 1; None if unknown.
            column: column number, from 1; None if unknown.
            source_line: text of the line, quoted in the message if given.
            data: attributes of the error.
        """
        reason = _shorten_middle(reason, _MAX_REASON_LENGTH)
        place = str(path)
        if line is not None:
            place += f":{line}"
            if column is not None:
                place += f":{column}"
        message = f"{place}: {reason}"
        if source_line is not None:
            quotation, offset = _crop_line(source_line, column)
            message += f"\n    {quotation}"
            if column is not None:
                prefix = quotation[:offset]
                indent = "".join("\t" if c == "\t" else " " for c in prefix).ljust(offset)
                message += f"\n    {indent}^"
        return cls(message, path=str(path), line=line, column=column, reason=reason, **(data or {}))


def _shorten_middle(text: str, length: int) -> str:
    """Return a text, without its middle if it is longer than ``length``."""
    if len(text) <= length:
        return text
    return f"{text[: length * 2 // 3]} ... {text[-length // 3 :]}"


def _crop_line(line: str, column: int | None) -> tuple[str, int]:
    """Return the printable part of a line around a column, and the column's offset in it."""
    line = "".join(
        letter if letter.isprintable() or letter == "\t" else "\ufffd" for letter in line
    )
    offset = column - 1 if column is not None else 0
    if len(line) <= _MAX_LINE_WIDTH:
        return line, min(offset, len(line))
    begin = max(0, min(offset - _MAX_LINE_WIDTH // 2, len(line) - _MAX_LINE_WIDTH))
    end = begin + _MAX_LINE_WIDTH
    head = "..." if begin else ""
    tail = "..." if end < len(line) else ""
    return f"{head}{line[begin:end]}{tail}", len(head) + min(offset - begin, _MAX_LINE_WIDTH)


class MeshError(FileFormatError):
    """A mesh file that is missing, unreadable or empty."""


class RobotError(FileFormatError):
    """A robot description that does not match its scene.

    Examples: an unknown tip frame, a joint outside the chain.
    """


class PlanFileError(FileFormatError):
    """A plan file that is invalid, of another version, or older than its robot, scene or domain."""


class MissingFileError(TmkitError, FileNotFoundError):
    """A file, folder or data name that does not exist. Attributes: ``path``, ``nearest``."""


class OutputError(TmkitError, OSError):
    """An output that cannot be written. Attributes: ``path``, ``reason``."""


class TaskError(FileFormatError):
    """An invalid PDDL domain, problem or goal: syntax, arity, type, unknown name."""


class TimeLimitError(TmkitError, TimeoutError):
    """An exceeded time limit; see :func:`tmkit._support.time_limits.time_limit`."""


class TaskPlannerError(TmkitError, RuntimeError):
    """A task planner that could not be run or failed. Attributes: ``command``, ``output``."""


class SemanticsMismatchError(TmkitError, RuntimeError):
    """A difference between the state derived from a scene and the state that PDDL predicts.

    Attributes: ``action``, and the facts ``missing`` (predicted, not derived) and ``unexpected``
        (derived, not predicted).
    """


class SamplerError(TmkitError, RuntimeError):
    """A sampler of grasps or placements that fails, or returns a value of another type.

    Attributes: ``sampler``, its name.
    """


class CostError(TmkitError, RuntimeError):
    """A cost function that fails, or returns an invalid cost.

    Attributes: ``cost``, its name, and ``action``.
    """


class WorkerError(TmkitError, RuntimeError):
    """A worker process that was killed or failed before its result. Attributes: ``output``."""


class BlockError(TmkitError, RuntimeError):
    """A function block that fails, violates its interface, or does not match the others.

    Attribute: ``block``, its name.
    """

    @classmethod
    def of(cls, block: str, reason: str) -> BlockError:
        """Create the error.

        Args:
            block: name of the function block.
            reason: description of the fault, which starts with a verb.
        """
        return cls(f"function block '{block}' {reason}", block=block)


class ListenerError(TmkitError, RuntimeError):
    """Exceptions of listeners of a live scene.

    The version was created, and all other listeners were called. Attribute: ``listeners``.
    """


class SimulationError(TmkitError, RuntimeError):
    """A physics simulation that could not be built or run."""


class ExecutionError(TmkitError, RuntimeError):
    """A failure of a robot during the execution of a plan, after which it was stopped.

    Attributes where they apply: ``step`` and ``segment``, the numbers of the step and of its
    segment that failed, from 1; ``report``, of type :class:`tmkit.plans.ExecutionReport`.
    """


class StoreError(TmkitError, ValueError):
    """A store of scene versions that rejects an operation, or cannot be opened."""


class StoreDamageError(StoreError):
    """A missing or damaged entry of a store. Attribute: ``entry``, such as ``version 12ab...``."""

    @classmethod
    def of(cls, entry: str, reason: str) -> StoreDamageError:
        """Create the error.

        Args:
            entry: name of the damaged entry, e.g. ``blob 12ab``.
            reason: description of the damage.
        """
        return cls(f"{entry}: {reason}", entry=entry)


class MergeConflictError(StoreError):
    """Conflicting changes of two versions.

    Attribute: ``conflicts``, each with its name and both edits.
    """


class ServiceError(TmkitError, RuntimeError):
    """A request that the service of a world rejects, or a service that cannot be reached.

    Attribute: ``kind``. Rejections: ``format``, ``version``, ``token``, ``role``, ``size``,
    ``rate``, ``busy``, ``repeated``, ``edit``, ``conflict``, ``unknown``, ``gone``, ``internal``.
    Other failures: ``transport``, ``log``.
    """


class LogDamageError(ServiceError):
    """A damaged record of a service's log that had been acknowledged.

    Attributes: ``path``, ``offset``.
    """

    @classmethod
    def of(cls, path: object, offset: int) -> LogDamageError:
        """Create the error.

        Args:
            path: path of the log.
            offset: offset of the damaged record [bytes].
        """
        message = (
            f"{path}: the record at offset {offset} is damaged, and later records are intact;"
            f" restore the file from a copy, or cut it there and lose the later records:"
            f" truncate -s {offset} {path}"
        )
        return cls(message, kind="log", path=str(path), offset=offset)


class PlugInError(TmkitError, ImportError):
    """A plug-in that cannot be loaded, fails, or has the name of another.

    Attributes: ``name``, ``distribution``.
    """

    @classmethod
    def of(cls, name: str, distribution: str, reason: str) -> PlugInError:
        """Create the error.

        Args:
            name: name of the entry point.
            distribution: distribution that contains the entry point.
            reason: description of the fault, which starts with a verb.
        """
        message = f"the plug-in '{name}' of the distribution '{distribution}' {reason}"
        return cls(message, name=name, distribution=distribution)


class MissingExtraError(TmkitError, ImportError):
    """A missing optional dependency. Attributes: ``extra``, ``module``."""

    @classmethod
    def of(cls, need: str, extra: str, module: str, *, hint: str = "") -> MissingExtraError:
        """Create the error for an operation that needs an extra of tmkit.

        Args:
            need: operation with its verb, e.g. ``plot.png: drawing plots needs``.
            extra: name of the extra in ``pyproject.toml``.
            module: name of the missing module.
            hint: alternative, appended to the message.
        """
        message = f"{need} the extra '{extra}': {install_command(extra)}{hint}"
        return cls(message, extra=extra, module=module)


def install_command(extra: str) -> str:
    """Return the command that installs an extra from a clone of the sources.

    The name ``tmkit`` on PyPI belongs to another project.
    """
    return f"pip install -e '.[{extra}]' in the folder of tmkit's sources"
