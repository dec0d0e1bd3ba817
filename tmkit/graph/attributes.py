"""Attributes of frames and groups: which values they may have, and the immutable maps in which they are returned.

The core stores each value as canonical JSON text: equality, digests and pickles need no Python.
Users receive a persistent map; equal attributes, whatever the frame, version or scene, are one map
while it is among the last used.

Every value passes :func:`attribute_text`, whether a method, a file, a pickle, a store, a log or a
message sets it. A value that is accepted can therefore be written and read by all of them.
"""

from __future__ import annotations

import json
import math
import reprlib
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pyrsistent import PMap, PVector, freeze, pmap

from tmkit.errors import SceneError
from tmkit.graph.traversal import Stamped

MAX_DEPTH = 64
"""Largest number of lists and dicts inside each other in a value."""

_MOST_DIGITS = 640
"""Decimal digits of an integer: Python reads as many, whatever limit it is given."""

_INTEGERS = range(1 - 10**_MOST_DIGITS, 10**_MOST_DIGITS)

_LONGEST_SHOWN = 200
"""Characters of a key that an error shows."""

_DEEPEST_SHOWN = 10_000
"""Largest depth that an error shows."""

_LARGEST_STAMP = sys.float_info.max
"""Largest finite stamp [s]."""

_EXPECTED = "text, a finite number, true, false, None, or lists and dicts of these"
"""Values of attributes, for messages."""

_encoded = json.JSONEncoder(allow_nan=False, check_circular=False).encode


@lru_cache(maxsize=1024)
def attribute_map(text: str) -> PMap[str, Any]:
    """Return a JSON object as an immutable map, lists and objects in it too; its keys may hold control characters."""
    values: dict[str, Any] = json.loads(text, strict=False)
    return pmap(
        {
            key: freeze(value) if isinstance(value, (list, dict)) else value
            for key, value in values.items()
        }
    )


def plain_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a map of attributes as dicts and lists, in the order of their keys: that of a ``PMap`` is of hashes."""
    return {key: plain_attribute(key, values[key]) for key in sorted(values)}


def plain_attribute(key: str, value: object) -> Any:
    """Return a value of an attribute as Python's JSON types, with sorted keys.

    Args:
        key: the attribute, for messages.
        value: text, a number, True, False, None, or lists, tuples, dicts, vectors and maps of
            these.

    Raises:
        SceneError: if a value has another type, is nested more than :data:`MAX_DEPTH` deep, is not
            finite, is an integer of more than 640 digits, or is text with an unpaired surrogate.
            The same holds for keys of dicts.
    """
    return _plain(key, value, 0)


def attribute_text(key: str, value: object) -> str:
    """Return a value as canonical JSON text; ``@`` and the stamp follow if stamped.

    Args:
        key: the attribute, for messages.
        value: as of :func:`plain_attribute`, or one :class:`~tmkit.graph.Stamped`.

    Raises:
        SceneError: as :func:`plain_attribute`, or if the stamp is not a finite number.
    """
    plain, stamp = value_and_stamp(key, value)
    return _encoded(plain) if stamp is None else f"{_encoded(plain)}@{_encoded(stamp)}"


def value_and_stamp(key: str, value: object) -> tuple[Any, float | None]:
    """Return the value that :func:`plain_attribute` returns, and its stamp in seconds, None without one.

    Args:
        key: the attribute, for messages.
        value: as of :func:`attribute_text`.

    Raises:
        SceneError: as :func:`attribute_text`.
    """
    if not isinstance(value, Stamped):
        return _plain(key, value, 0), None
    is_time = isinstance(value.stamp, float | int) and abs(value.stamp) <= _LARGEST_STAMP
    if not is_time:
        raise _rejected(key, f"must be {_EXPECTED}, with a finite stamp, not {reprlib.repr(value)}")
    return _plain(key, value.value, 0), float(value.stamp) + 0.0


def _plain(key: str, value: Any, depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _plain_text(key, value)
    if isinstance(value, int):
        number = int.__int__(value)  # of a subclass, too
        if number not in _INTEGERS:
            raise _rejected(
                key,
                f"has an integer of {number.bit_length()} bits; expected at most {_MOST_DIGITS}"
                " digits",
            )
        return number
    if isinstance(value, float) and math.isfinite(value):
        return float.__float__(value)
    if not isinstance(value, list | tuple | dict | PVector | PMap):
        raise _rejected(key, f"must be {_EXPECTED}, not {reprlib.repr(value)}")
    if depth == MAX_DEPTH:
        more = _nesting(value)
        nesting = f"{depth + more:,}" if more < _DEEPEST_SHOWN else f"more than {_DEEPEST_SHOWN:,}"
        raise _rejected(
            key,
            f"is nested {nesting} deep; expected at most {MAX_DEPTH} lists and dicts in each other",
        )
    if not isinstance(value, dict | PMap):
        return [_plain(key, item, depth + 1) for item in value]
    items = {_plain_text(key, name, "the keys of a dict"): item for name, item in value.items()}
    return {name: _plain(key, items[name], depth + 1) for name in sorted(items)}


def _nesting(value: Any) -> int:
    """Return the depth of a list or dict, at most :data:`_DEEPEST_SHOWN`, since it may contain itself."""
    depth, level = 0, {id(value): value}
    while level and depth < _DEEPEST_SHOWN:
        depth += 1
        items = (
            item
            for one in level.values()
            for item in (one.values() if isinstance(one, dict | PMap) else one)
        )
        level = {
            id(item): item
            for item in items
            if isinstance(item, list | tuple | dict | PVector | PMap)
        }
    return depth


def _plain_text(key: str, value: object, owner: str = "a text") -> str:
    if not isinstance(value, str):
        raise _rejected(key, f"needs text for {owner}, not {reprlib.repr(value)}")
    text = str.__str__(value)  # of a subclass, too
    try:
        text.encode()
    except UnicodeEncodeError as error:
        surrogate = ascii(text[error.start])
        raise _rejected(
            key, f"has an unpaired surrogate, {surrogate}, at character {error.start} of {owner}"
        ) from None
    return text


def _rejected(key: str, reason: str) -> SceneError:
    shown = key if len(key) <= _LONGEST_SHOWN else f"{key[:_LONGEST_SHOWN]}..."
    return SceneError(f"attribute '{shown}' {reason}")
