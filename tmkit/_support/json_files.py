"""Reading JSON files that may be wrong: each error has the file, the line and what is wrong there."""

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
    """Return the document of a JSON file and its text; a missing file is called ``what``, in a word or two."""
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
        key, at = _repeated_key(text)
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        shown = text.split("\n")[line - 1][:200]
        reason = f"the key '{key}' is given twice in one object"
        raise error.at(path, reason, line=line, column=column, source_line=shown) from None
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        raise error.at(path, f"is not JSON: not UTF-8 text: {failure.reason}", line=line) from None
    except json.JSONDecodeError as failure:
        shown = failure.doc.split("\n")[failure.lineno - 1][:200]
        reason = f"is not JSON: {failure.msg}"
        raise error.at(
            path, reason, line=failure.lineno, column=failure.colno, source_line=shown
        ) from None
    except RecursionError:
        raise error.at(path, "is not JSON: it is nested too deeply") from None
    except ValueError:
        raise error.at(path, "is not JSON: a number has more digits than can be read") from None


class _RepeatedKeyError(Exception):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of some keys and values, each key once."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise _RepeatedKeyError
    return table


def _repeated_key(text: str) -> tuple[str, int]:
    """Return the first key that is given twice in one object of a JSON text, and where."""
    keys: list[set[str]] = []
    last, at = "", 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[":
                keys.append(set())
            case "}" | "]":
                keys.pop()
            case ":":
                if last in keys[-1]:
                    return last, at
                keys[-1].add(last)
            case _:
                last, at = json.loads(token[0], strict=False), token.start()
    return "", 0
