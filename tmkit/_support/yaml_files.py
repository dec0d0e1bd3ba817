"""Reader of YAML files, with limits, whose errors have the file and the line.

The loader makes numbers, texts, truth values, lists and tables only, never objects of a class.
Aliases are rejected, since a small file with aliases can expand to any size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tmkit._support.extras import importing
from tmkit._support.limits import as_utf8, read_bytes
from tmkit.errors import FileFormatError

_MAX_BYTES = 2_000_000
"""Largest size of a file [B]."""

_MAX_NESTING = 64
"""Largest depth of nested lists and tables."""


def read_yaml(path: Path, kind: str, *, edit: Callable[[str], str] | None = None) -> Any:
    """Return the document of a YAML file.

    Args:
        path: the file.
        kind: noun with article for the content of the file, in messages.
        edit: function that changes the text before it is parsed, if given.

    Raises:
        FileFormatError: if the file cannot be read, is too large or too deeply nested, has an
            alias, or is not YAML.
        MissingExtraError: if PyYAML is not installed.
    """
    with importing("yaml", "formats", f"{path}: reading YAML needs"):
        import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = as_utf8(read_bytes(path, limit=_MAX_BYTES), partial(FileFormatError.at, path))
    depth = 0
    try:
        text = data.decode() if edit is None else edit(data.decode())
        for event in yaml.parse(text, Loader=loader):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                raise FileFormatError.at(path, "aliases of YAML are not read", line=line)
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_NESTING:
                raise FileFormatError.at(path, f"is nested too deeply to be {kind}", line=line)
        return yaml.load(text, Loader=loader)
    except FileFormatError:
        raise
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or " ".join(str(error).split())
        line = None if mark is None else mark.line + 1
        raise FileFormatError.at(path, f"is not YAML: {reason}", line=line) from None
