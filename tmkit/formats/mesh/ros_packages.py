"""ROS packages around a file, found by their ``package.xml``.

Vendors ship several packages in one clone. Users keep several clones in one workspace. ::

    src/                    workspace
      ur_description/         clone with one package
      ur_driver/              clone
        ur_moveit_config/       package of the naming file
        ur_controllers/         its sibling

The search goes upwards from the folder of the naming file. From each folder it goes two levels
down. It ends at the folder that contains the clone. Without a clone it ends three levels above the
package, and without a package two levels above the folder. The root of the file system, the user's
home, and folders in which every user may write, such as ``/tmp``, are not searched.

The name of a package is that in its ``package.xml``, which may differ from that of its folder. Only
the names are read. The order is deterministic: the nearest folders first, then by name.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from tmkit._support.limits import record_access

_MANIFEST = "package.xml"
"""Name of the file that makes a folder a ROS package."""

_NAME = re.compile(rb"<name>\s*([^<\s]+)\s*</name>")
"""Name of the package in its manifest."""

_MANIFEST_BYTES = 65_536
"""Number of bytes of a manifest that are searched for the name."""

_LEVELS_ABOVE_PACKAGE = 3
"""Number of folders above a package that are searched, outside a clone."""

_LEVELS_ABOVE_FOLDER = 2
"""Number of folders above a folder that are searched, outside a package."""

_SEARCH_DEPTH = 2
"""Number of levels below a folder that are searched."""

_MAX_FOLDERS = 2000
"""Largest number of folders that are searched for one package."""


def package_name(folder: Path) -> str | None:
    """Return the name of the package in a folder, or None if it is not a package."""
    try:
        with open(folder / _MANIFEST, "rb") as file:
            match = _NAME.search(file.read(_MANIFEST_BYTES))
    except (OSError, ValueError):
        return None
    return None if match is None else match[1].decode("utf-8", "replace")


def package_around(folder: Path) -> Path | None:
    """Return the folder of the innermost package that contains a folder, or None."""
    return next(
        (place for place in (folder, *folder.parents) if os.path.isfile(place / _MANIFEST)), None
    )


def find_package_below(name: str, folder: Path) -> Path | None:
    """Return the folder of a package in a folder, or at most two levels below it, or None."""
    return next((place for other, place in _packages_below([folder]) if other == name), None)


def find_package_around(name: str, folder: Path) -> Path | None:
    """Return the nearest folder of a package around a folder, or None.

    O(folders around), at most 2000 of them.

    Args:
        name: name of the package.
        folder: folder of the naming file.
    """
    packages = _packages_below(_search_folders(folder))
    return next((place for other, place in packages if other == name), None)


def _search_folders(folder: Path) -> list[Path]:
    """Return the folders whose content is searched for packages, from a folder upwards."""
    real = Path(os.path.realpath(folder))
    ancestors = [real, *real.parents]
    clone = next((place for place in ancestors if os.path.lexists(place / ".git")), None)
    package = package_around(real)
    if clone is not None:
        levels = ancestors.index(clone) + 1
    elif package is not None:
        levels = ancestors.index(package) + _LEVELS_ABOVE_PACKAGE
    else:
        levels = _LEVELS_ABOVE_FOLDER
    folders = []
    for place in ancestors[: levels + 1]:
        if _is_shared(place):
            break
        folders.append(place)
    return folders


def _is_shared(folder: Path) -> bool:
    """Return whether a folder is the root, the home or above, or writable for every user."""
    home = os.path.realpath(os.path.expanduser("~"))
    if folder == Path(folder.anchor) or Path(home).is_relative_to(folder):
        return True
    try:
        return bool(os.stat(folder).st_mode & stat.S_IWOTH)
    except OSError:
        return True


def _packages_below(folders: list[Path]) -> Iterator[tuple[str, Path]]:
    """Yield name and folder of the packages in folders, or two levels below, the nearest first.

    Folders in a package are not searched.
    """
    visited: set[Path] = set()
    for top in folders:
        level = [top]
        for depth in range(_SEARCH_DEPTH + 1):
            below = []
            for folder in level:
                if folder in visited:
                    continue
                if len(visited) >= _MAX_FOLDERS:
                    return
                visited.add(folder)
                record_access(folder / _MANIFEST)
                name = package_name(folder)
                if name is not None:
                    yield name, folder
                if depth < _SEARCH_DEPTH and (name is None or folder == top):
                    record_access(folder)
                    below += _subfolders(folder)
            level = below


def _subfolders(folder: Path) -> list[Path]:
    """Return the visible folders in a folder, sorted by name."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=True)
            )
    except OSError:
        return []
    return [folder / name for name in names]
