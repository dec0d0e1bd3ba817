"""Reading JSON that may be wrong: every access says what it expects and where it looked.

A :class:`JsonNode` is a value of a JSON document together with its way from the top
(``frames[3].joint``), which the error about a missing or wrong value names. Its line is computed
only if there is an error: :func:`with_line` follows the way through the text once more.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tmkit._support.source_location import did_you_mean
from tmkit.errors import FileFormatError

_BLANKS = re.compile(r"[ \t\n\r]*")
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value as ``json`` gives it, the file or a name for it, and the way to the value from the top."""

    value: Any
    path: str
    way: str = ""

    def error(self, reason: str) -> FileFormatError:
        """Return the error that says ``reason`` about this value."""
        return FileFormatError.at(
            self.path, f"{self.way or 'the document'}: {reason}", data={"way": self.way}
        )

    def get(self, key: str) -> JsonNode:
        """Return the value of a key that must be there."""
        table = self.table()
        if key not in table:
            raise self.error(f"needs the key '{key}'{did_you_mean(key, table)}")
        return JsonNode(table[key], self.path, f"{self.way}.{key}" if self.way else key)

    def table(self) -> dict[str, Any]:
        """Return the value as an object."""
        if not isinstance(self.value, dict):
            raise self.error(f"expected an object, received {_kind(self.value)}")
        return self.value

    def items(self) -> Iterator[JsonNode]:
        """Yield the items of a list."""
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, received {_kind(self.value)}")
        for index, item in enumerate(self.value):
            yield JsonNode(item, self.path, f"{self.way}[{index}]")

    def only(self, *keys: str) -> None:
        """Refuse keys that are not among ``keys``."""
        for key in self.table():
            if key not in keys:
                raise self.error(
                    f"unknown key '{key}'{did_you_mean(key, keys)} (known:"
                    f" {', '.join(sorted(keys))})"
                )

    def text(self) -> str:
        """Return the value as a text."""
        if not isinstance(self.value, str):
            raise self.error(f"expected a text, received {_kind(self.value)}")
        if any("\ud800" <= letter <= "\udfff" for letter in self.value):
            raise self.error(f"{self.value!r} has half a character (a surrogate), which is no text")
        return self.value

    def name(self) -> str:
        """Return the value as a text that is not empty."""
        text = self.text()
        if not text:
            raise self.error("expected a name, received an empty text")
        return text

    def flag(self) -> bool:
        """Return the value as true or false."""
        if not isinstance(self.value, bool):
            raise self.error(f"expected true or false, received {_kind(self.value)}")
        return self.value

    def number(self) -> float:
        """Return the value as a finite number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.error(f"expected a finite number, received {_kind(self.value)}")
        try:
            number = float(self.value)
        except OverflowError:
            raise self.error(
                "expected a finite number, received an integer beyond the largest float"
            ) from None
        if not math.isfinite(number):
            raise self.error(f"expected a finite number, received {_kind(self.value)}")
        return number

    def integer(self) -> int:
        """Return a whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.error(f"expected a whole number, received {self.value!r}")
        return self.value

    def limit(self, unlimited: float) -> float:
        """Return the value as a number, ``unlimited`` for null."""
        return unlimited if self.value is None else self.number()

    def numbers(self, length: int) -> list[float]:
        """Return the value as a list of so many finite numbers."""
        items = list(self.items())
        if len(items) != length:
            raise self.error(
                f"expected {length} number{'' if length == 1 else 's'}, received {len(items)}"
            )
        return [item.number() for item in items]

    def one_of(self, choices: Sequence[str]) -> str:
        """Return the value as one of these words."""
        word = self.text()
        if word not in choices:
            raise self.error(
                f"unknown word '{word}'{did_you_mean(word, choices)} (known: {', '.join(choices)})"
            )
        return word


def with_line(error: FileFormatError, text: str) -> FileFormatError:
    """Return an error of a :class:`JsonNode` with line and column of the value, if it has none and they are found."""
    way = error.data.get("way")
    at = _position(text, way) if way and error.data.get("line") is None else None
    if at is None:
        return error
    line, begin = text.count("\n", 0, at) + 1, text.rfind("\n", 0, at) + 1
    more = {
        key: value
        for key, value in error.data.items()
        if key not in ("path", "line", "column", "reason")
    }
    source_line = text[begin : text.find("\n", at) if "\n" in text[at:] else len(text)]
    return type(error).at(
        error.data["path"],
        error.data["reason"],
        line=line,
        column=at - begin + 1,
        source_line=source_line,
        data=more,
    )


def _position(text: str, way: str) -> int | None:
    """Return where in a text the value stands to which a way leads, ``None`` when it cannot be followed."""
    at = _BLANKS.match(text, 0).end()  # type: ignore[union-attr]  # it matches the empty text
    try:
        for number, key in _STEP.findall(way):
            at = _entered(text, at, int(number) if number else key)
    except (ValueError, IndexError, StopIteration, RecursionError):
        return None
    return at


def _entered(text: str, at: int, step: int | str) -> int:
    """Return where the value of a key, or the item of an index, of the value at ``at`` stands."""

    def after_blanks(index: int) -> int:
        return _BLANKS.match(text, index).end()  # type: ignore[union-attr]  # it matches the empty text

    if text[at] != ("[" if isinstance(step, int) else "{"):
        raise ValueError
    decoder, at, count = json.JSONDecoder(), after_blanks(at + 1), 0
    while True:
        found: int | str = count
        if isinstance(step, str):
            found, at = decoder.raw_decode(text, at)
            at = after_blanks(after_blanks(at) + 1)  # behind the colon
        if found == step:
            return at
        _, at = decoder.raw_decode(text, at)
        at, count = after_blanks(at), count + 1
        if text[at] != ",":
            raise ValueError
        at = after_blanks(at + 1)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {
        dict: "an object",
        list: "a list",
        str: f"the text {value!r}",
        bool: str(value).lower(),
    }
    return names.get(type(value), str(value))
