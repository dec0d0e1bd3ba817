"""Events of a command on the standard error, as JSON lines for programs.

Each line is one object with the key ``event``: ``progress``, ``log`` (a record of a logger),
``error`` or ``done``. An ``error`` contains the reason why the command ends, and the data of the
error as fields. The last line is ``done``, with the exit code. docs/reference/events.md lists the
fields.

Invariants: each line is written atomically, in ASCII, and is strict JSON: numbers without a JSON
form become strings. A closed standard error does not end the command.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tmkit.errors import TmkitError


def write_event(event: str, fields: Mapping[str, object]) -> None:
    """Write one event to the standard error."""
    line = json.dumps({"event": event, **_plain(fields)}, allow_nan=False)
    with suppress(OSError, ValueError, AttributeError):  # the stream is closed or missing
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def error_fields(error: TmkitError) -> dict[str, object]:
    """Return the fields of an error: class, message, file, line and its data."""
    data = {name: value for name, value in error.data.items() if name not in ("path", "line")}
    return {
        **data,
        "type": type(error).__name__,
        "message": str(error),
        "file": error.data.get("path"),
        "line": error.data.get("line"),
    }


def _plain(value: object) -> Any:
    """Convert a value to the types of JSON; other types become text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, set | frozenset):
        return sorted(_plain(entry) for entry in map(str, value))
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy
        return _plain(value.tolist())
    return str(value)
