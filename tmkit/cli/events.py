"""Events of a command on the standard error, for programs: JSON lines, one object a line.

Every object has ``event``: ``progress`` (what is being done), ``log`` (one record of a logger),
``error`` or ``done``. An ``error`` has the reason why the command ends, and the facts of the error
as fields of their own. The last line is ``done``, with the exit code. docs/reference/events.md
lists the fields.

Invariants: each line is written whole and at once, in ASCII, and is JSON in the strict sense:
numbers that JSON does not know become strings. A standard error that is no longer read ends no
command.
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
    with suppress(OSError, ValueError, AttributeError):  # it is closed, or there is none
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def error_fields(error: TmkitError) -> dict[str, object]:
    """Return an error's fields: its class, message, file and line, and whatever else it holds."""
    data = {name: value for name, value in error.data.items() if name not in ("path", "line")}
    return {
        **data,
        "type": type(error).__name__,
        "message": str(error),
        "file": error.data.get("path"),
        "line": error.data.get("line"),
    }


def _plain(value: object) -> Any:
    """Return a value in JSON's types; other types become their text."""
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
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return _plain(value.tolist())
    return str(value)
