"""Which folders a scene may make tmkit read: docs/concepts/security.md and docs/reference/bad_input.md.

Whatever a scene names by a path must really lie, symbolic links followed, in one of these:

* the folder of a file that the user named, the folder above it (descriptions are often laid out as ``urdf/`` and
  ``meshes/`` side by side), and the ROS package (``package.xml``) or git checkout that it is part of; but none of
  these is the root of the file system, the user's home, or a folder that holds it, unless the file itself lies there;
* a folder that the user allowed, or gave as ``package_path`` or ``ROS_PACKAGE_PATH``;
* any ROS package, what is installed in Python, and what travels with tmkit: there lie robots, not secrets.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_SITES = ("site-packages", "dist-packages")  # what folders of installed Python packages are called


def below(path: Path, folder: Path) -> str | None:
    """Return an absolute path relative to a folder with forward slashes, ``None`` if it is not below it."""
    try:
        return path.relative_to(folder).as_posix()
    except ValueError:
        return None


def real_path(path: Path) -> Path:
    """Return the path with symbolic links followed as far as they lead; a circle of links stays as it is."""
    return Path(os.path.realpath(path))


def project_folders(files: Iterable[Path]) -> tuple[Path, ...]:
    """Return the real paths of the folders that a load may read, because the files that the user named lie there."""
    found: dict[Path, None] = {}
    for file in files:
        for folder in dict.fromkeys((Path(os.path.abspath(file)).parent, real_path(file).parent)):
            found[real_path(folder)] = None
            around = (folder.parent, _marked_folder(folder, "package.xml"), _marked_folder(folder, ".git"))
            found.update((real_path(place), None) for place in around if place is not None and not is_wide(place))
    return tuple(found)


def is_public(path: Path) -> bool:
    """Whether a real path is part of a ROS package or of what is installed in Python."""
    if any(below(path, site) is not None for site in sites()):
        return True
    package = _marked_folder(path.parent, "package.xml")
    return package is not None and not is_wide(package)


def is_wide(folder: Path) -> bool:
    """Whether a folder holds more than one project may see: the root, the home, or what holds it."""
    real, home = real_path(folder), real_path(Path(os.path.expanduser("~")))
    return real == Path(real.anchor) or below(home, real) is not None


def _marked_folder(folder: Path, mark: str) -> Path | None:
    """Return the nearest folder, this one or above it, that has an entry of that name."""
    return next((place for place in (folder, *folder.parents) if os.path.lexists(place / mark)), None)


def sites() -> Iterator[Path]:
    """Yield the folders of installed Python packages."""
    for entry in sys.path:
        site = real_path(Path(entry))
        if site.name in _SITES:
            yield site
