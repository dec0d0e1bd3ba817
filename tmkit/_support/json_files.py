"""Reader of JSON files, whose errors have the file, the line and the fault."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from tmkit._support.limits import as_utf8, read_bytes
from tmkit.errors import FileFormatError, MissingFileError

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]')
"""Texts and the marks of the structure of JSON."""


def read_json(
    path: Path, *, limit: int, error: type[FileFormatError] = FileFormatError, what: str = ""
) -> tuple[Any, str]:
    """Return the document of a JSON file and its text.

    Args:
        path: file.
        limit: largest size of the file [B].
        error: type of the errors.
        what: kind of the file in the message about a missing file. By default, a missing file is
            an ``error``.

    Raises:
        FileFormatError: if the file is not JSON, or has a key twice in an object.
        MissingFileError: if there is no such file, and ``what`` is not empty.
    """
    if what and not os.path.exists(path):
        raise MissingFileError(f"there is no {what} file '{path}'", path=str(path), nearest=None)
    data = as_utf8(
        read_bytes(path, limit=limit, error=lambda reason: error.at(path, reason)),
        lambda reason: error.at(path, f"is not JSON: it {reason}"),
    )
    try:
        text = data.decode(json.detect_encoding(data))
        return json.loads(text, object_pairs_hook=_object), text
    except _RepeatedKeyError:
        key, start = _find_repeated_key(text)
        line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
        source_line = text.split("\n")[line - 1][:200]
        reason = f"the key '{key}' is given twice in one object"
        raise error.at(path, reason, line=line, column=column, source_line=source_line) from None
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        raise error.at(path, f"is not JSON: not UTF-8 text: {failure.reason}", line=line) from None
    except json.JSONDecodeError as failure:
        source_line = failure.doc.split("\n")[failure.lineno - 1][:200]
        reason = f"is not JSON: {failure.msg}"
        raise error.at(
            path, reason, line=failure.lineno, column=failure.colno, source_line=source_line
        ) from None
    except RecursionError:
        raise error.at(path, "is not JSON: it is nested too deeply") from None
    except ValueError:
        raise error.at(path, "is not JSON: a number has more digits than can be read") from None


class _RepeatedKeyError(Exception):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping of pairs, or raise an error if a key is repeated."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise _RepeatedKeyError
    return table


def _find_repeated_key(text: str) -> tuple[str, int]:
    """Return the first key that is repeated in one object of a JSON text, and its offset."""
    keys: list[set[str]] = []
    last, start = "", 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[":
                keys.append(set())
            case "}" | "]":
                keys.pop()
            case ":":
                if last in keys[-1]:
                    return last, start
                keys[-1].add(last)
            case _:
                last, start = json.loads(token[0], strict=False), token.start()
    return "", 0
