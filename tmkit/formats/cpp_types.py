"""Table of C++ types for the data types of function blocks.

A file in TOML has one table for each ``PointCloudType`` or ``MeshType``::

    [PointCloudPCL]
    type = "pcl::PointCloud<pcl::PointXYZ>"
    shared_ptr = "pcl::PointCloud<pcl::PointXYZ>::Ptr"
    include = ["pcl/point_cloud.h", "pcl/point_types.h"]
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit._support.toml_files import line_of_key, read_toml
from tmkit.formats.cpp_names import type_fault

_KEYS = ("type", "shared_ptr", "include")
"""Keys of the table of a type."""

_HEADER = re.compile(r"<[\w./+-]+>|\"[\w./+-]+\"|[\w./+-]+", re.ASCII)
"""Name of a header, with or without brackets or quotes."""


@dataclass(frozen=True)
class CppType:
    """Type of C++ for a data type.

    Attributes:
        place: location of the table.
        type: type expression, or None for that of the scene file.
        shared_ptr: type expression of the shared pointer that blocks exchange, or None.
        includes: headers to include, each in brackets or quotes.
    """

    place: SourceLocation
    type: str | None
    shared_ptr: str | None
    includes: tuple[str, ...]


def read_cpp_types(path: str | os.PathLike[str]) -> dict[str, CppType]:
    """Return the C++ types of a file in TOML by the name of the data type.

    Raises:
        FileFormatError: if the file cannot be read or is invalid.
    """
    document, text = read_toml(Path(path), "a table of C++ types")
    return {
        name: _cpp_type(
            name, table, SourceLocation(str(path), line_of_key(text, [name])), str(path), text
        )
        for name, table in document.items()
    }


def _cpp_type(name: str, table: Any, place: SourceLocation, path: str, text: str) -> CppType:
    if not isinstance(table, dict):
        raise place.error(f"'{name}': expected a table such as [{name}] with a 'type'")
    for key, value in table.items():
        key_place = SourceLocation(path, line_of_key(text, [name, key]))
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS)
            raise key_place.error(f"{name}: unknown key '{key}', expected {', '.join(_KEYS)}{hint}")
        texts = value if key == "include" and isinstance(value, list) else [value]
        for item in texts:
            if not isinstance(item, str):
                raise key_place.error(f"{name}.{key}: expected a text, got {item!r:.40}")
            if key == "include" and _HEADER.fullmatch(item) is None:
                raise key_place.error(f"{name}.include: {item!r:.80} is not a header name")
            if key != "include" and (fault := type_fault(item)) is not None:
                raise key_place.error(f"{name}.{key}: {item!r:.80} {fault}")
    include = table.get("include", [])
    headers = [include] if isinstance(include, str) else include
    return CppType(
        place,
        table.get("type"),
        table.get("shared_ptr"),
        tuple(header if header[0] in '<"' else f"<{header}>" for header in headers),
    )
