"""Registration of a file format, with suffixes, reader and writer.

The registration of a built-in format is in the module ``format`` of its folder. Other distributions
register formats by entry points (:mod:`tmkit.plug_ins`). The functions of a registration import the
reader and writer lazily.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from tmkit.errors import ConfigurationError, FileFormatError

if TYPE_CHECKING:
    from tmkit._support.source_location import Note
    from tmkit.formats.mesh.meshes import MeshLoader
    from tmkit.formats.spec.model import SceneSpecification
    from tmkit.graph import SceneGraph

_SUFFIX = re.compile(r"\.[a-z0-9_+-]+")
"""Form of a suffix."""


@dataclass(frozen=True)
class Reading:
    """Context of a load, for the reader of one file.

    Attributes:
        loader: loader of meshes; ``loader.packages`` is the resolver of file URIs, with the limits
            of the load.
        note: receives the location and the text of an import note.
        read_other: function that reads another scene file, such as an included one.
    """

    loader: MeshLoader
    note: Note
    read_other: Callable[[Path], SceneSpecification]

    def read_text(self, path: Path) -> str:
        """Return the text of a UTF-8 file, within the limits of the load.

        Raises:
            FileFormatError: if the file is too large or not in UTF-8.
        """
        from tmkit._support.limits import as_utf8, read_bytes

        error = functools.partial(FileFormatError.at, path)
        data = read_bytes(path, limit=self.loader.packages.limits.text_bytes)
        return as_utf8(data, error).decode()


Read: TypeAlias = "Callable[[Path, Reading], object]"
"""Reader of a format.

Returns a SceneGraph, a SceneSpecification, or RobotSemantics for a robot of another file.
"""

Write: TypeAlias = "Callable[[SceneGraph, str], Mapping[str, str | bytes]]"
"""Writer of a format.

Returns the contents of the named file, and of further files in its folder, by file name.
"""


@dataclass(frozen=True)
class Format:
    """Registration of a file format for scenes.

    Attributes:
        name: name of the format, for lists and messages.
        suffixes: suffixes in lower case with the dot. The entry point of a plug-in has the name of
            a suffix without its dot; a format with several suffixes has an entry point for each.
        read: function that reads a file, and raises a TmkitError with the path and, if possible,
            the line.
        write: function that writes a scene; None if the format is read only.
        written: suffixes for which the format is written; by default all.
        comparison: comparison by :func:`~tmkit.formats.convert_scene` of a scene with the written
            file: ``"exact"`` for equality, ``"rounded"`` for equality up to rounding, ``"none"``
            for a format that can store every scene.
        description: one line for ``tmkit list formats``.
        extra: required extra of tmkit; empty for none.
        module: module that is required for reading; empty for none.

    Raises:
        ConfigurationError: if a suffix does not have this form.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Read
    write: Write | None = None
    written: tuple[str, ...] | None = None
    comparison: Literal["exact", "rounded", "none"] = "exact"
    description: str = ""
    extra: str = ""
    module: str = ""

    def __post_init__(self) -> None:
        is_tuple = not isinstance(self.suffixes, str)
        if not (is_tuple and self.suffixes and all(map(_SUFFIX.fullmatch, self.suffixes))):
            expected = "expected a tuple of suffixes in lower case with the dot, such as ('.abc',)"
            raise ConfigurationError(
                f"format '{self.name}': suffixes={self.suffixes!r}; {expected}"
            )

    @property
    def keys(self) -> tuple[str, ...]:
        """Suffixes without their dots, which are the names of the entry points."""
        return tuple(suffix.removeprefix(".") for suffix in self.suffixes)

    @property
    def usage(self) -> str:
        """Suffixes as a text, for a list."""
        return " ".join(self.suffixes)

    @property
    def written_suffixes(self) -> tuple[str, ...]:
        """Suffixes for which the format is written."""
        if self.write is None:
            return ()
        return self.suffixes if self.written is None else self.written
