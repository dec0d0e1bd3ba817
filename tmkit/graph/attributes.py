"""Attributes of frames and groups: validation of values, and immutable maps for users.

The core stores each value as canonical JSON text, so equality, digests and pickles need no Python.
Users receive a persistent map. Equal attributes share one map while it is in the cache, also across
frames, versions and scenes.

Every value passes :func:`attribute_text`, from a method, a file, a pickle, a store, a log or a
message. An accepted value can therefore be written and read by all of them.
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
"""Largest nesting depth of lists and dicts in a value."""

_MAX_DIGITS = 640
"""Largest number of decimal digits of an integer, which Python reads under any limit."""

_INTEGERS = range(1 - 10**_MAX_DIGITS, 10**_MAX_DIGITS)
"""Accepted integers."""

_MAX_SHOWN_KEY = 200
"""Largest number of characters of a key in an error."""

_MAX_SHOWN_DEPTH = 10_000
"""Largest nesting depth in an error."""

_MAX_STAMP = sys.float_info.max
"""Largest finite stamp [s]."""

_EXPECTED = "text, a finite number, true, false, None, or lists and dicts of these"
"""Accepted values of attributes, for messages."""

_encode = json.JSONEncoder(allow_nan=False, check_circular=False).encode


@lru_cache(maxsize=1024)
def attribute_map(text: str) -> PMap[str, Any]:
    """Return a JSON object as an immutable map, recursively; keys may have control characters."""
    values: dict[str, Any] = json.loads(text, strict=False)
    return pmap(
        {
            key: freeze(value) if isinstance(value, (list, dict)) else value
            for key, value in values.items()
        }
    )


def plain_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as dicts and lists, sorted by key, since the order of a ``PMap`` varies."""
    return {key: plain_attribute(key, values[key]) for key in sorted(values)}


def plain_attribute(key: str, value: object) -> Any:
    """Return a value of an attribute as Python's JSON types, with sorted keys.

    Args:
        key: the attribute, for messages.
        value: text, a number, True, False, None, or lists, tuples, dicts, vectors and maps of
            these.

    Raises:
        SceneError: if a value has another type, is nested more than :data:`MAX_DEPTH` deep, or is
            not finite. Also if it is an integer of more than 640 digits, or text with an unpaired
            surrogate. The same holds for keys of dicts.
    """
    return _to_plain(key, value, 0)


def attribute_text(key: str, value: object) -> str:
    """Return a value as canonical JSON text; ``@`` and the stamp follow if stamped.

    Args:
        key: the attribute, for messages.
        value: as for :func:`plain_attribute`, or a :class:`~tmkit.graph.Stamped` value.

    Raises:
        SceneError: if :func:`plain_attribute` raises it, or the stamp is not a finite number.
    """
    plain, stamp = value_and_stamp(key, value)
    return _encode(plain) if stamp is None else f"{_encode(plain)}@{_encode(stamp)}"


def value_and_stamp(key: str, value: object) -> tuple[Any, float | None]:
    """Return the value as :func:`plain_attribute` does, and its stamp [s] or None.

    Args:
        key: the attribute, for messages.
        value: as for :func:`attribute_text`.

    Raises:
        SceneError: if :func:`attribute_text` raises it.
    """
    if not isinstance(value, Stamped):
        return _to_plain(key, value, 0), None
    is_time = isinstance(value.stamp, float | int) and abs(value.stamp) <= _MAX_STAMP
    if not is_time:
        raise _attribute_error(
            key, f"must be {_EXPECTED}, with a finite stamp, not {reprlib.repr(value)}"
        )
    return _to_plain(key, value.value, 0), float(value.stamp) + 0.0


def _to_plain(key: str, value: Any, depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _plain_text(key, value)
    if isinstance(value, int):
        number = int.__int__(value)  # also for a subclass
        if number not in _INTEGERS:
            raise _attribute_error(
                key,
                f"has an integer of {number.bit_length()} bits; expected at most {_MAX_DIGITS}"
                " digits",
            )
        return number
    if isinstance(value, float) and math.isfinite(value):
        return float.__float__(value)
    if not isinstance(value, list | tuple | dict | PVector | PMap):
        raise _attribute_error(key, f"must be {_EXPECTED}, not {reprlib.repr(value)}")
    if depth == MAX_DEPTH:
        more = _nesting(value)
        nesting = (
            f"{depth + more:,}" if more < _MAX_SHOWN_DEPTH else f"more than {_MAX_SHOWN_DEPTH:,}"
        )
        raise _attribute_error(
            key,
            f"is nested {nesting} deep; expected at most {MAX_DEPTH} lists and dicts in each other",
        )
    if not isinstance(value, dict | PMap):
        return [_to_plain(key, item, depth + 1) for item in value]
    items = {_plain_text(key, name, "the keys of a dict"): item for name, item in value.items()}
    return {name: _to_plain(key, items[name], depth + 1) for name in sorted(items)}


def _nesting(value: Any) -> int:
    """Return the depth of a list or dict, at most 10,000, since it may contain itself."""
    depth, level = 0, {id(value): value}
    while level and depth < _MAX_SHOWN_DEPTH:
        depth += 1
        items = (
            item
            for container in level.values()
            for item in (container.values() if isinstance(container, dict | PMap) else container)
        )
        level = {
            id(item): item
            for item in items
            if isinstance(item, list | tuple | dict | PVector | PMap)
        }
    return depth


def _plain_text(key: str, value: object, owner: str = "a text") -> str:
    if not isinstance(value, str):
        raise _attribute_error(key, f"needs text for {owner}, not {reprlib.repr(value)}")
    text = str.__str__(value)  # also for a subclass
    try:
        text.encode()
    except UnicodeEncodeError as error:
        surrogate = ascii(text[error.start])
        raise _attribute_error(
            key, f"has an unpaired surrogate, {surrogate}, at character {error.start} of {owner}"
        ) from None
    return text


def _attribute_error(key: str, reason: str) -> SceneError:
    shown = key if len(key) <= _MAX_SHOWN_KEY else f"{key[:_MAX_SHOWN_KEY]}..."
    return SceneError(f"attribute '{shown}' {reason}")
