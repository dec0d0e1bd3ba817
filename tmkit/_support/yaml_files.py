"""Reader of YAML files, with limits, whose errors have the file and the line.

The loader makes numbers, texts, truth values, lists and tables only, never objects of a class.
Aliases are rejected, since a few lines of them can stand for gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tmkit._support.extras import importing
from tmkit._support.limits import ReadingLimits, as_utf8, read_bytes
from tmkit.errors import FileFormatError

_MAX_NESTING = 32
"""Largest depth of nested lists and tables."""


def read_yaml(path: Path, *, edit: Callable[[str], str] | None = None) -> list[Any]:
    """Return the documents of a YAML file; most files have one.

    Args:
        path: the file.
        edit: function that changes the text before it is parsed, if given.

    Raises:
        FileFormatError: if the file cannot be read, is too large or too deeply nested, has an
            alias, or is not YAML.
        MissingExtraError: if PyYAML is not installed.
    """
    with importing("yaml", "formats", f"{path}: reading YAML files needs"):
        import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = read_bytes(path, limit=ReadingLimits().text_bytes)
    data = as_utf8(data, partial(FileFormatError.at, path))
    depth = 0
    try:
        text = data.decode() if edit is None else edit(data.decode())
        for event in yaml.parse(text, Loader=loader):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                raise FileFormatError.at(path, "aliases (*NAME) are not accepted", line=line)
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _MAX_NESTING:
                reason = f"collections are nested more than {_MAX_NESTING} deep"
                raise FileFormatError.at(path, reason, line=line)
        return list(yaml.load_all(text, Loader=loader))
    except FileFormatError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or " ".join(str(error).split())
        line = None if mark is None else mark.line + 1
        raise FileFormatError.at(path, f"is not YAML: {reason}", line=line) from None
