"""Options of a frozen dataclass, each declared once with its range, unit and help text.

A field made by :func:`option` contains its own description. :class:`CheckedOptions` validates it at
construction. File readers and command lines derive their keys and flags from it, so every list of
options exists once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeAlias

from tmkit._support.initialization import initialize
from tmkit._support.source_location import did_you_mean
from tmkit.errors import ArgumentError, ConfigurationError, UnknownNameError

OptionType: TypeAlias = type[int] | type[float] | type[bool] | type[str]


@dataclass(frozen=True, slots=True)
class OptionKind:
    """Type and valid values of an option.

    Attributes:
        type: int, float, bool, or str for one of ``choices`` or a name for ``find``.
        help: one sentence for the command line and the documentation.
        unit: unit of the number, in the plural; empty for counts.
        least: lower bound of the number.
        includes_least: whether the lower bound is valid.
        below: exclusive upper bound of the number.
        unlimited: word for None in a file and on the command line; empty if None stands for the
            default only.
        choices: valid names; in Python, a function is valid too.
        find: function that returns the object of a name, which may be that of a plug-in; None if
            the option takes no names of objects.
    """

    type: OptionType
    help: str
    unit: str = ""
    least: float = 0
    includes_least: bool = True
    below: float = math.inf
    unlimited: str = ""
    choices: tuple[str, ...] = ()
    find: Callable[[str], Any] | None = None

    @property
    def range(self) -> str:
        """Description of the valid values."""
        if self.choices:
            return f"{', '.join(map(repr, self.choices))} or a function"
        if self.type is bool:
            return "True or False"
        unit = f" {self.unit}" if self.unit else ""
        low = f"at least {self.least:g}{unit}" if self.includes_least else f"positive{unit}"
        return f"{low} and below {self.below:g}" if self.below < math.inf else low

    def validate(self, name: str, value: Any) -> Any:
        """Return a value converted to the option's type.

        Raises:
            ConfigurationError: if the value is invalid; it has attributes ``option`` and ``value``.
        """
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
        noun = ""
        try:
            if isinstance(value, bool) != (self.type is bool):
                raise TypeError
            number: Any = operator.index(value) if self.type is int else self.type(value)
            is_valid = self.type is bool or (
                (number >= self.least if self.includes_least else number > self.least)
                and (number < self.below or self.below == math.inf)
            )
        except (TypeError, ValueError, OverflowError):
            is_valid = False
            noun = {int: "a whole number, ", float: "a number, "}.get(self.type, "")
        if not is_valid:
            reason = f"{name} must be {noun}{self.range}, not {repr(value)[:60]}"
            raise ConfigurationError(reason, option=name, value=value)
        return number


def option(default: Any, help: str, *, type: OptionType = int, **range: Any) -> Any:
    """Return a dataclass field that is an option.

    Args:
        default: default value, which may be None.
        help: sentence for the command line and the documentation.
        type: type of the value.
        **range: other attributes of :class:`OptionKind`.
    """
    return field(default=default, metadata={"kind": OptionKind(type, help, **range)})


def option_kinds(options: type) -> dict[str, OptionKind]:
    """Return the fields made by :func:`option`, by name."""
    return {
        entry.name: entry.metadata["kind"] for entry in fields(options) if "kind" in entry.metadata
    }


def unknown_option(name: str, valid_names: Iterable[str]) -> str:
    """Return a message with the name of an unknown option and the nearest valid name."""
    names = list(valid_names)
    hint = did_you_mean(name, names) or f" (known: {', '.join(names)})"
    return f"unknown option '{name}'{hint}"


class CheckedOptions:
    """Base of frozen dataclasses of options that are validated at construction.

    Unknown names, wrong types and values out of range are rejected. ``repr`` shows the fields that
    differ from their defaults.
    """

    def __new__(cls, *_: Any, **kwargs: Any) -> Self:
        """Reject names of unknown fields."""
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
            if kind is None or (value is None and (entry.default is None or kind.unlimited)):
                continue
            initialize(self, **{entry.name: kind.validate(entry.name, value)})

    def __repr__(self) -> str:
        values = ((entry, getattr(self, entry.name)) for entry in fields(self))  # type: ignore[arg-type]  # as above
        arguments = (
            f"{entry.name}={value!r}"
            for entry, value in values
            if not _is_default(value, entry.default)
        )
        return f"{type(self).__name__}({', '.join(arguments)})"


def _is_default(value: Any, default: Any) -> bool:
    """Return whether a value is the default, or equal and of the same type."""
    return value is default or (type(value) is type(default) and bool(value == default))
