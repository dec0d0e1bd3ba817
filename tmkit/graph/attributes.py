"""Attributes of frames and groups as immutable maps.

The core stores each value as canonical JSON text: equality, digests and pickles need no Python. Users receive a
persistent map; equal attributes, whatever the frame, version or scene, are one map while it is among the last used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pyrsistent import PMap, freeze, pmap, thaw

from tmkit.graph.traversal import Stamped

_encoded = json.JSONEncoder(sort_keys=True, allow_nan=False, default=thaw).encode


@lru_cache(maxsize=1024)
def attribute_map(text: str) -> PMap[str, Any]:
    """Return a JSON object as an immutable map, lists and objects in it too; its keys may hold control characters."""
    values: dict[str, Any] = json.loads(text, strict=False)
    return pmap({key: freeze(value) if isinstance(value, (list, dict)) else value for key, value in values.items()})


def plain_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a map of attributes as dicts and lists, in the order of their keys: that of a ``PMap`` is of hashes."""
    plain: dict[str, Any] = json.loads(_encoded(values), strict=False)
    return plain


def attribute_text(value: object) -> str:
    """Return a JSON value, or an immutable one made of it, as canonical text; ``@`` and the stamp follow if stamped."""
    if isinstance(value, Stamped):
        return f"{_encoded(value.value)}@{_encoded(value.stamp + 0.0)}"
    return _encoded(value)
