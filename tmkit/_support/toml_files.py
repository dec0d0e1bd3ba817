"""Reader of TOML files, whose errors have the file, the line and the expected content."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tmkit._support.limits import ReadingLimits, as_utf8, read_bytes
from tmkit.errors import FileFormatError

_MAX_CANDIDATES = 64
"""Largest number of lines with the name of a key that are tried."""


def read_toml(
    path: Path, kind: str, *, error: type[FileFormatError] = FileFormatError
) -> tuple[dict[str, Any], str]:
    """Return the document of a TOML file and its text.

    Args:
        path: file.
        kind: noun with article for the content of the file, in messages.
        error: type of the errors.

    Raises:
        FileFormatError: if the file cannot be read, or is not TOML.
    """
    data = read_bytes(
        path, limit=ReadingLimits().toml_bytes, error=lambda reason: error.at(path, reason)
    )
    data = as_utf8(data, partial(error.at, path))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as failure:
        line = failure.object[: failure.start].count(b"\n") + 1
        raise error.at(path, f"is not UTF-8 text: {failure.reason}", line=line) from None
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as failure:
        raise _syntax_error(path, text, str(failure), error) from None
    except RecursionError:
        raise error.at(path, f"is nested too deeply to be {kind}") from None
    except ValueError:
        raise error.at(path, f"is not {kind}: a number has more digits than can be read") from None


def _syntax_error(
    path: Path, text: str, reason: str, error: type[FileFormatError]
) -> FileFormatError:
    """Return the error for a text that is not TOML.

    The message of the parser ends with the location.
    """
    match = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", reason)
    if match is None:
        return error.at(path, f"is not TOML: {reason}")
    lines = text.split("\n")
    fault = reason[: match.start()]
    if match[1] is None:
        line, column = len(lines), len(lines[-1]) + 1
        fault += " at the end of the file"
    else:
        line, column = int(match[1]), int(match[2])
    source_line = lines[line - 1].rstrip("\r")[:200]
    reason = f"is not TOML: {fault}"
    return error.at(path, reason, line=line, column=column, source_line=source_line)


def line_of_key(text: str, keys: Sequence[str | int]) -> int | None:
    """Return the 1-based line of a TOML text that defines a key, or its innermost parent.

    The line is the last one that contains the name and is preceded by a TOML text without the key.
    """
    lines = text.split("\n")
    for length in range(len(keys), 0, -1):
        name = next((key for key in reversed(keys[:length]) if isinstance(key, str)), "")
        candidates = [number for number, line in enumerate(lines) if name in line]
        for number in reversed(candidates[:_MAX_CANDIDATES]):
            if _lacks("\n".join(lines[:number]), keys[:length]):
                return number + 1
    return None


def _lacks(text: str, keys: Sequence[str | int]) -> bool:
    """Return whether a text is TOML without a value."""
    try:
        value: Any = tomllib.loads(text)
        for key in keys:
            value = value[key]
    except (KeyError, IndexError, TypeError):
        return True
    except (ValueError, RecursionError):
        return False
    return False
