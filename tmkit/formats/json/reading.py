"""Checked access to the values of a JSON document.

A :class:`JsonNode` is a value of a JSON document with its key path from the top
(``frames[3].joint``). An error about a missing or wrong value contains the key path and the
expected type. The line is computed only for an error: :func:`with_line` follows the key path
through the text.
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
    """A value of a JSON document.

    Attributes:
        value: value as the module ``json`` returns it.
        path: path of the file, or another name of the document.
        key_path: keys and indices from the top to the value, empty for the document itself.
    """

    value: Any
    path: str
    key_path: str = ""

    def error(self, reason: str) -> FileFormatError:
        """Return an error about this value."""
        return FileFormatError.at(
            self.path,
            f"{self.key_path or 'the document'}: {reason}",
            data={"key_path": self.key_path},
        )

    def get(self, key: str) -> JsonNode:
        """Return the value of a required key."""
        table = self.table()
        if key not in table:
            raise self.error(f"needs the key '{key}'{did_you_mean(key, table)}")
        return JsonNode(table[key], self.path, f"{self.key_path}.{key}" if self.key_path else key)

    def table(self) -> dict[str, Any]:
        """Return the value as an object."""
        if not isinstance(self.value, dict):
            raise self.error(f"expected an object, received {_describe(self.value)}")
        return self.value

    def items(self) -> Iterator[JsonNode]:
        """Yield the items of a list."""
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, received {_describe(self.value)}")
        for index, item in enumerate(self.value):
            yield JsonNode(item, self.path, f"{self.key_path}[{index}]")

    def require_keys_among(self, *keys: str) -> None:
        """Reject keys that are not among ``keys``."""
        for key in self.table():
            if key not in keys:
                raise self.error(
                    f"unknown key '{key}'{did_you_mean(key, keys)} (known:"
                    f" {', '.join(sorted(keys))})"
                )

    def text(self) -> str:
        """Return the value as a text."""
        if not isinstance(self.value, str):
            raise self.error(f"expected a text, received {_describe(self.value)}")
        if any("\ud800" <= letter <= "\udfff" for letter in self.value):
            raise self.error(f"{self.value!r} contains half a character (a surrogate)")
        return self.value

    def name(self) -> str:
        """Return the value as a non-empty text."""
        text = self.text()
        if not text:
            raise self.error("expected a name, received an empty text")
        return text

    def flag(self) -> bool:
        """Return the value as a boolean."""
        if not isinstance(self.value, bool):
            raise self.error(f"expected true or false, received {_describe(self.value)}")
        return self.value

    def number(self) -> float:
        """Return the value as a finite number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.error(f"expected a finite number, received {_describe(self.value)}")
        try:
            number = float(self.value)
        except OverflowError:
            raise self.error(
                "expected a finite number, received an integer beyond the largest float"
            ) from None
        if not math.isfinite(number):
            raise self.error(f"expected a finite number, received {_describe(self.value)}")
        return number

    def integer(self) -> int:
        """Return the value as an integer."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.error(f"expected a whole number, received {self.value!r}")
        return self.value

    def limit(self, unlimited: float) -> float:
        """Return the value as a number, ``unlimited`` for null."""
        return unlimited if self.value is None else self.number()

    def numbers(self, length: int) -> list[float]:
        """Return the value as a list of finite numbers of this length."""
        items = list(self.items())
        if len(items) != length:
            raise self.error(
                f"expected {length} number{'' if length == 1 else 's'}, received {len(items)}"
            )
        return [item.number() for item in items]

    def one_of(self, choices: Sequence[str]) -> str:
        """Return the value, which must be one of the choices."""
        word = self.text()
        if word not in choices:
            raise self.error(
                f"unknown word '{word}'{did_you_mean(word, choices)} (known: {', '.join(choices)})"
            )
        return word


def with_line(error: FileFormatError, text: str) -> FileFormatError:
    """Return an error of a :class:`JsonNode` with line and column of the value.

    An error that has a line already, or whose value is not in the text, stays as it is.

    Args:
        error: error with the key path of a value.
        text: text of the document.
    """
    key_path = error.data.get("key_path")
    has_line = error.data.get("line") is not None
    index = _index_of_value(text, key_path) if key_path and not has_line else None
    if index is None:
        return error
    line, begin = text.count("\n", 0, index) + 1, text.rfind("\n", 0, index) + 1
    data = {
        key: value
        for key, value in error.data.items()
        if key not in ("path", "line", "column", "reason")
    }
    source_line = text[begin : text.find("\n", index) if "\n" in text[index:] else len(text)]
    return type(error).at(
        error.data["path"],
        error.data["reason"],
        line=line,
        column=index - begin + 1,
        source_line=source_line,
        data=data,
    )


def _index_of_value(text: str, key_path: str) -> int | None:
    """Return the index in a text of the value at a key path, or ``None`` if there is no value."""
    index = _skip_blanks(text, 0)
    try:
        for number, key in _STEP.findall(key_path):
            index = _index_of_child(text, index, int(number) if number else key)
    except (ValueError, IndexError, StopIteration, RecursionError):
        return None
    return index


def _skip_blanks(text: str, index: int) -> int:
    """Return the index of the first character from an index on that is not blank."""
    return _BLANKS.match(text, index).end()  # type: ignore[union-attr]  # matches the empty text


def _index_of_child(text: str, index: int, step: int | str) -> int:
    """Return the index in a text of a child value.

    Args:
        text: text of the document.
        index: index of the parent value, an object or a list.
        step: key of the child in an object, or index of the child in a list.
    """
    if text[index] != ("[" if isinstance(step, int) else "{"):
        raise ValueError
    decoder, index, count = json.JSONDecoder(), _skip_blanks(text, index + 1), 0
    while True:
        child: int | str = count
        if isinstance(step, str):
            child, index = decoder.raw_decode(text, index)
            colon = _skip_blanks(text, index)
            index = _skip_blanks(text, colon + 1)
        if child == step:
            return index
        _, index = decoder.raw_decode(text, index)
        index, count = _skip_blanks(text, index), count + 1
        if text[index] != ",":
            raise ValueError
        index = _skip_blanks(text, index + 1)


def _describe(value: object) -> str:
    """Return a short description of a value for messages."""
    if value is None:
        return "null"
    descriptions = {
        dict: "an object",
        list: "a list",
        str: f"the text {value!r}",
        bool: str(value).lower(),
    }
    return descriptions.get(type(value), str(value))
