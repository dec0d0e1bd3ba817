"""Files of the settings of execution, in TOML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tmkit._support.source_location import did_you_mean
from tmkit._support.toml_files import line_of_key, read_toml
from tmkit.errors import FileFormatError
from tmkit.formats.json.reading import JsonNode

_Settings = TypeVar("_Settings")


def read_settings(path: Path, kind: str, *, read: Callable[[JsonNode], _Settings]) -> _Settings:
    """Return the settings of a TOML file.

    Args:
        path: file.
        kind: noun with article for the content of the file, in messages.
        read: function that reads the document.

    Raises:
        FileFormatError: if the file cannot be read, or ``read`` rejects a value; with its line.
    """
    document, text = read_toml(path, kind)
    try:
        return read(JsonNode(document, str(path)))
    except FileFormatError as error:
        line = line_of_key(text, str(error.data.get("key_path", "")).split("."))
        raise FileFormatError.at(path, error.data["reason"], line=line) from None


def require_keys(node: JsonNode, *keys: str) -> None:
    """Reject other keys, with the place of the key.

    Raises:
        FileFormatError: if the table has another key.
    """
    for key in node.table():
        if key not in keys:
            expected = f"expected {', '.join(keys)}"
            raise node.get(key).error(f"unknown key{did_you_mean(key, keys)} ({expected})")


def read_positive(node: JsonNode) -> float:
    """Return a positive number.

    Raises:
        FileFormatError: if the value is another one.
    """
    number = node.number()
    if number <= 0.0:
        raise node.error(f"expected a positive number, received {number:g}")
    return number
