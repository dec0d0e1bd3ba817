"""Options of a frozen dataclass: each declared once, with its range, its unit and its help.

A field made by :func:`option` describes itself: :class:`CheckedOptions` validates it at
construction, a file reader and a command line derive their keys and flags from it, so no list of
options is written twice.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeAlias

from tmkit._support.initialization import initialize
from tmkit._support.source_location import did_you_mean
from tmkit.errors import ArgumentError, ConfigurationError, UnknownNameError

OptionType: TypeAlias = type[int] | type[float] | type[bool] | type[str]


@dataclass(frozen=True, slots=True)
class OptionKind:
    """The values that an option takes."""

    type: OptionType  # int, float, bool, or str for one of choices or a name that is found
    help: str  # one sentence for the command line and the documentation
    unit: str = ""  # unit of the number, in the plural; empty for counts
    least: float = 0  # smallest number; of a float, numbers must be above it unless includes_least
    includes_least: bool = True  # whether the smallest number is allowed
    below: float = math.inf  # number that the value must be below
    # word for None in a file and on the command line; empty if None stands for the default only
    unlimited: str = ""
    choices: tuple[str, ...] = ()  # the names that are valid; in Python, a function is too
    # returns the object of a name, which may be that of a plug-in; None if the option takes no
    # names of objects
    find: Callable[[str], Any] | None = None

    @property
    def range(self) -> str:
        """The valid values in words."""
        if self.choices:
            return f"{', '.join(map(repr, self.choices))} or a function"
        if self.type is bool:
            return "True or False"
        unit = f" {self.unit}" if self.unit else ""
        low = f"at least {self.least:g}{unit}" if self.includes_least else f"positive{unit}"
        return f"{low} and below {self.below:g}" if self.below < math.inf else low

    def checked(self, name: str, value: Any) -> Any:
        """Return a value as the option's type; an error has the attributes ``option`` and ``value``."""
        if self.choices:
            if not callable(value) and not (isinstance(value, str) and value in self.choices):
                hint = did_you_mean(value, self.choices) if isinstance(value, str) else ""
                reason = f"{name} must be {self.range}, not {repr(value)[:60]}{hint}"
                raise ConfigurationError(reason, option=name, value=value)
            return value
        if self.find is not None:
            try:
                return self.find(value) if isinstance(value, str) else value
            except UnknownNameError as error:
                raise ConfigurationError(str(error), option=name, value=value) from error
        try:
            if isinstance(value, bool) != (self.type is bool):
                raise TypeError
            number: Any = operator.index(value) if self.type is int else self.type(value)
            in_range = self.type is bool or (
                (number >= self.least if self.includes_least else number > self.least)
                and (number < self.below or self.below == math.inf)
            )
            noun = ""
        except (TypeError, ValueError, OverflowError):
            in_range, noun = (
                False,
                {int: "a whole number, ", float: "a number, "}.get(self.type, ""),
            )
        if not in_range:
            reason = f"{name} must be {noun}{self.range}, not {repr(value)[:60]}"
            raise ConfigurationError(reason, option=name, value=value)
        return number


def option(default: Any, help: str, *, type: OptionType = int, **range: Any) -> Any:
    """Return a dataclass field with a default, which may be None, and a range as :class:`OptionKind` has it."""
    return field(default=default, metadata={"kind": OptionKind(type, help, **range)})


def option_kinds(options: type) -> dict[str, OptionKind]:
    """Return the fields made by :func:`option`, by name."""
    return {
        entry.name: entry.metadata["kind"] for entry in fields(options) if "kind" in entry.metadata
    }


def unknown_option(name: str, known: Iterator[str] | Any) -> str:
    """Return the reason that names an unknown option and the nearest valid name."""
    names = list(known)
    return f"unknown option '{name}'" + (
        did_you_mean(name, names) or f" (known: {', '.join(names)})"
    )


class CheckedOptions:
    """Base of frozen dataclasses of options: unknown names, types and ranges are refused at construction.

    The representation has the fields that differ from their defaults.
    """

    def __new__(cls, *_: Any, **kwargs: Any) -> Self:
        """Refuse names that are no field."""
        names = [entry.name for entry in fields(cls)]  # type: ignore[arg-type]  # each subclass is a dataclass
        for name in kwargs:
            if name not in names:
                reason = unknown_option(name, names)
                raise ArgumentError(
                    f"{cls.__name__}(): {reason}", function=cls.__name__, argument=name
                )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for entry in fields(self):  # type: ignore[arg-type]  # each subclass is a dataclass
            kind: OptionKind | None = entry.metadata.get("kind")
            value = getattr(self, entry.name)
            if kind is not None and not (
                value is None and (entry.default is None or kind.unlimited)
            ):
                initialize(self, **{entry.name: kind.checked(entry.name, value)})

    def __repr__(self) -> str:
        values = ((entry, getattr(self, entry.name)) for entry in fields(self))  # type: ignore[arg-type]  # as above
        shown = (
            f"{entry.name}={value!r}"
            for entry, value in values
            if not _is_same(value, entry.default)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_same(value: Any, default: Any) -> bool:
    """Return whether a value is the default, or equal and of the same type."""
    return value is default or (type(value) is type(default) and bool(value == default))
