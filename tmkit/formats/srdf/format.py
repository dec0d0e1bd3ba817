"""Registration of SRDF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tmkit.formats.format import Format, Reading

if TYPE_CHECKING:
    from tmkit.formats.srdf.values import RobotSemantics


def _read(path: Path, reading: Reading) -> RobotSemantics:
    from tmkit.formats.srdf.files import read_srdf

    return read_srdf(path, note=reading.note)


SRDF = Format(
    "SRDF", (".srdf",), _read, description="Groups and allowed pairs of a robot of another file."
)
"""The format SRDF."""


def is_srdf_file(name: str) -> bool:
    """Return whether a name is that of an SRDF file, or of a xacro file of one."""
    (suffix,) = SRDF.suffixes
    return name.lower().endswith((suffix, f"{suffix}.xacro"))
