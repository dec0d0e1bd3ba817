"""Reading JSON files that may be wrong: each error has the file, the line and what is wrong there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tmkit._support.limits import read_bytes
from tmkit.errors import FileFormatError, MissingFileError


def read_json(
    path: Path, *, limit: int, error: type[FileFormatError] = FileFormatError, what: str = ""
) -> tuple[Any, str]:
    """Return the document of a JSON file and its text; a missing file is called ``what``, in a word or two."""
    if what and not os.path.exists(path):
        raise MissingFileError(f"there is no {what} file '{path}'", path=str(path), nearest=None)
    data = read_bytes(path, limit=limit, error=lambda reason: error.at(path, reason))
    try:
        text = data.decode(json.detect_encoding(data))
        return json.loads(text), text
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        raise error.at(path, f"is not JSON: not UTF-8 text: {failure.reason}", line=line) from None
    except json.JSONDecodeError as failure:
        shown = failure.doc.split("\n")[failure.lineno - 1][:200]
        reason = f"is not JSON: {failure.msg}"
        raise error.at(path, reason, line=failure.lineno, column=failure.colno, source_line=shown) from None
    except RecursionError:
        raise error.at(path, "is not JSON: it is nested too deeply") from None
    except ValueError:
        raise error.at(path, "is not JSON: a number has more digits than can be read") from None
