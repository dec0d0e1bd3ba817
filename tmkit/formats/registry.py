"""Registry of scene file formats by suffix, built-in and installed."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tmkit._support.data import BUILT_IN_SCENES, resolve_name
from tmkit._support.limits import ReadingLimits
from tmkit.errors import MissingFileError, UnknownNameError
from tmkit.formats.format import Format
from tmkit.formats.mesh.package_uris import PackageResolver, XacroArguments, project_folders
from tmkit.formats.reading_options import ReadingOptions
from tmkit.plug_ins import InstalledRegistration, PlugInGroup


@functools.cache
def built_in_formats() -> tuple[Format, ...]:
    """Return the built-in formats, in the order in which messages list them."""
    from tmkit.formats.gltf.format import GLTF
    from tmkit.formats.json.format import JSON
    from tmkit.formats.mjcf.format import MJCF
    from tmkit.formats.robray.format import ROBRAY
    from tmkit.formats.rsg.format import RSG
    from tmkit.formats.sdf.format import SDF
    from tmkit.formats.srdf.format import SRDF
    from tmkit.formats.urdf.format import URDF
    from tmkit.formats.usd.format import USD
    from tmkit.formats.xacro.format import XACRO

    return (ROBRAY, RSG, URDF, SDF, MJCF, USD, GLTF, JSON, SRDF, XACRO)


FORMATS = PlugInGroup("tmkit.formats", "scene format", Format, built_in_formats)
"""Formats of scene files."""


def find_format(path: Path) -> InstalledRegistration[Format] | None:
    """Return the format of a file by its suffix, or None if there is none.

    The module of a plug-in is imported.

    Raises:
        PlugInError: if the plug-in of the suffix cannot be used.
    """
    suffix = path.suffix.lower()
    if not suffix:
        return None
    try:
        return FORMATS.find(suffix.removeprefix("."))
    except UnknownNameError:
        return None


def built_in_suffixes() -> tuple[str, ...]:
    """Return the suffixes of the built-in formats that can be read without a permission."""
    from tmkit.formats.xacro.format import XACRO

    return tuple(
        suffix for entry in built_in_formats() if entry is not XACRO for suffix in entry.suffixes
    )


def readable_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats, without importing plug-ins."""
    return (*built_in_suffixes(), *(f".{key}" for key in FORMATS.plug_in_keys()))


def written_suffixes() -> tuple[str, ...]:
    """Return the suffixes for which built-in formats are written."""
    return tuple(suffix for entry in built_in_formats() for suffix in entry.written_suffixes)


def locate_files(
    files: Sequence[str | os.PathLike[str]], reading: ReadingOptions
) -> tuple[list[Path], PackageResolver]:
    """Return the paths of scene files, and a resolver that may read their project folders.

    Args:
        files: names of built-in scenes, paths or ``package://`` URIs.
        reading: reading options.
    """
    resolver = PackageResolver.of(reading)
    paths = [resolver.find_scene(file) or _find_scene_file(file) for file in files]
    folders = (*project_folders(paths), *resolver.allowed_folders)
    limits = reading.limits or ReadingLimits()
    xacro: dict[Path, XacroArguments] = {}
    if reading.allow_xacro is not False:
        values = {} if reading.allow_xacro is True else reading.allow_xacro
        permitted = (path for path in paths if path.suffix.lower() == ".xacro" or path.is_dir())
        xacro = dict.fromkeys(permitted, XacroArguments(values))
    return paths, replace(resolver, allowed_folders=folders, limits=limits, xacro=xacro)


def _find_scene_file(name: str | os.PathLike[str]) -> Path:
    """Return the existing path of a scene file or folder, or of a built-in scene by its name."""
    try:
        return resolve_name(name, "scenes", suffixes=BUILT_IN_SCENES)
    except MissingFileError:
        if os.path.isdir(name):
            return Path(name)
        # The suffixes of all formats are slow to compute, and only the error contains them.
        return resolve_name(name, "scenes", suffixes=built_in_suffixes())
