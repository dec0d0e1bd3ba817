"""Registration of a file format: its suffixes, its reader and its writer.

Each format has one in the module ``format`` of its folder; another distribution registers its own
by an entry point (:mod:`tmkit.plug_ins`). The functions of a registration import reader and writer
themselves.
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


@dataclass(frozen=True)
class Reading:
    """The load that a file is read for.

    Attributes:
        loader: loads meshes; ``loader.packages`` finds files by URI and has the limits of the load.
        note: takes the location and the text of an import note.
        read_other: reads another scene file, such as an included one.
    """

    loader: MeshLoader
    note: Note
    read_other: Callable[[Path], SceneSpecification]

    def read_text(self, path: Path) -> str:
        """Return the text of a file in UTF-8, within the limits of the load.

        Raises:
            FileFormatError: if the file is too large or not in UTF-8.
        """
        from tmkit._support.limits import as_utf8, read_bytes

        error = functools.partial(FileFormatError.at, path)
        data = read_bytes(path, limit=self.loader.packages.limits.text_bytes)
        return as_utf8(data, error).decode()


Read: TypeAlias = "Callable[[Path, Reading], object]"
"""A reader: returns a SceneGraph, a SceneSpecification, or the RobotSemantics of a robot of another file."""

Write: TypeAlias = "Callable[[SceneGraph, str], Mapping[str, str | bytes]]"
"""A writer: takes a scene and a file name; returns contents by file name, those of this file and of others beside."""


@dataclass(frozen=True)
class Format:
    """Registration of a file format for scenes.

    Attributes:
        name: the name, for lists and messages.
        suffixes: its suffixes, in lower case with the dot. The entry point of a plug-in has the
            name of a suffix without its dot; a format with several suffixes has an entry point for
            each.
        read: reads a file; raises a TmkitError that names the file, and the line where there is
            one.
        write: writes a scene; None if the format is only read.
        written: the suffixes that are written; by default all.
        comparison: what :func:`~tmkit.formats.convert_scene` requires of the file that it reads
            back: ``"exact"`` for an equal scene, ``"rounded"`` for one equal up to rounding,
            ``"none"`` for a format that holds every scene.
        description: one line for ``tmkit list formats``.
        extra: the extra of tmkit that it needs; empty for none.
        module: the module whose absence means that files cannot be read; empty for none.

    Raises:
        ConfigurationError: if a suffix is not of this form.
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
        if (
            isinstance(self.suffixes, str)
            or not self.suffixes
            or not all(map(_SUFFIX.fullmatch, self.suffixes))
        ):
            expected = "expected a tuple of suffixes in lower case with the dot, such as ('.abc',)"
            raise ConfigurationError(
                f"format '{self.name}': suffixes={self.suffixes!r}; {expected}"
            )

    @property
    def keys(self) -> tuple[str, ...]:
        """The suffixes without their dots: the names of its entry points."""
        return tuple(suffix.removeprefix(".") for suffix in self.suffixes)

    @property
    def usage(self) -> str:
        """The suffixes, for a list."""
        return " ".join(self.suffixes)

    @property
    def written_suffixes(self) -> tuple[str, ...]:
        """The suffixes that are written."""
        if self.write is None:
            return ()
        return self.suffixes if self.written is None else self.written
