"""Registration of xacro."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.errors import FileFormatError
from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.formats.mesh.package_uris import XacroArguments
    from tmkit.formats.spec.model import SceneSpecification
    from tmkit.formats.srdf.values import RobotSemantics

_SRDF_SUFFIX = ".srdf.xacro"
"""End of the name of a file that expands to SRDF; all others expand to URDF."""

PERMISSION_MESSAGE = (
    "a xacro file can run code and read any file; expand the file first, where you trust it: xacro"
    " FILE.xacro > FILE.urdf, or allow the expansion: --allow-xacro on the command line, or"
    " ReadingOptions(allow_xacro=True) in Python"
)
"""Reason for the rejection of a xacro file without permission."""


def _read(path: Path, reading: Reading) -> SceneSpecification | RobotSemantics:
    """Read a xacro file whose expansion the user allows.

    Raises:
        FileFormatError: if the expansion is not allowed, or the file is invalid.
    """
    permissions = reading.loader.packages.xacro
    if path not in permissions:
        raise FileFormatError.at(path, PERMISSION_MESSAGE)
    return read_expanded(path, permissions[path], reading)


def read_expanded(
    path: Path, arguments: XacroArguments, reading: Reading
) -> SceneSpecification | RobotSemantics:
    """Expand a xacro file, which runs its code, and read the result.

    Line numbers in messages about the result are those of the expanded text.

    Args:
        path: the file.
        arguments: values of its arguments.
        reading: context of the load.
    """
    from tmkit.formats.srdf.files import read_srdf_text
    from tmkit.formats.urdf.format import read_urdf_file
    from tmkit.formats.xacro.expansion import expand_xacro

    data = expand_xacro(path, arguments, reading.loader.packages, note=reading.note)
    expanded = path.with_name(f"{path.name} (expanded)")
    if path.name.lower().endswith(_SRDF_SUFFIX):
        return read_srdf_text(data, expanded, note=reading.note)
    return read_urdf_file(expanded, reading, data=data)


XACRO = Format(
    "xacro",
    (".xacro",),
    _read,
    description="URDF with macros; read only with --allow-xacro, because expansion runs code.",
    extra="formats",
    module="xacro",
)
"""The format xacro, whose files are read only with permission."""
