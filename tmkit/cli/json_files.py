"""Small JSON files that options name: read with care, and whatever is wrong with one is said of that file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tmkit._support.limits import ReadingLimits, read_bytes
from tmkit.errors import FileFormatError, MissingFileError, TmkitError


def read_json_file(path: Path, *, what: str) -> Any:
    """Return the document in a file.

    Args:
        path: the file.
        what: what it is, in a word, for the message that it is not there.

    Raises:
        MissingFileError: no such file.
        FileFormatError: it is too long, or is not JSON; the message says where.
    """
    try:
        if not os.path.exists(path):
            raise MissingFileError(f"there is no {what} file '{path}'", path=str(path), nearest=None)
        return json.loads(read_bytes(path, limit=ReadingLimits().text_bytes).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise FileFormatError.at(path, f"is not UTF-8 text: {error}") from None
    except json.JSONDecodeError as error:
        raise FileFormatError.at(path, f"is not JSON: {error.msg}", line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise FileFormatError.at(path, "is nested too deeply") from None
    except TmkitError:
        raise
    except ValueError:
        raise FileFormatError.at(path, "a number has more digits than can be read") from None
