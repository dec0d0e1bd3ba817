"""Paths of the domains and scenes in the package.

In a checkout (also an editable install) the folders ``domains/`` and ``scenes/`` lie beside the
package; in a wheel they lie inside it, under ``data_files/``. :func:`data_path` searches the
checkout first, then every folder that Python searches for the modules of this package. An editable
install may have two such folders. :func:`resolve_name` distinguishes a bare name of built-in data
(``"blocks"``) from a path of the user. A path has a separator or a suffix, or is a
``pathlib.Path``.

Invariants: results do not depend on the working directory, except for a user's relative path; a
    returned path exists.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from tmkit.errors import MissingFileError, nearest_name

__all__ = ["BUILT_IN_SCENES", "data_path", "data_roots", "is_bare", "is_built_in", "resolve_name"]


BUILT_IN_SCENES = (".robray", ".json")
"""Suffixes of the scenes that are distributed with tmkit."""

_SUFFIXES_BY_FOLDER = {"scenes": BUILT_IN_SCENES, "scenes/robots": (".toml",), "domains": ()}
"""Suffixes of built-in data, by folder; empty for folders of folders."""

_MAX_NAMES_IN_MESSAGE = 12
"""Number of built-in names up to which an error message lists them."""


def data_roots() -> tuple[Path, ...]:
    """Return the folders that may hold ``domains/`` and ``scenes/``, in order of the search."""
    package = Path(__file__).resolve().parents[1]
    roots = [package.parent] if (package.parent / "pyproject.toml").is_file() else []
    spec = importlib.util.find_spec(__name__.partition(".")[0])
    places = (
        [Path(place) for place in spec.submodule_search_locations or ()] if spec is not None else []
    )
    for place in [*places, package]:
        root = place.resolve() / "data_files"
        if root.is_dir() and root not in roots:
            roots.append(root)
    return tuple(roots)


def data_path(name: str) -> Path:
    """Return the absolute path of a file or folder that is distributed with tmkit.

    Args:
        name: name with forward slashes, as ``"domains/blocks"`` or
            ``"scenes/panda_table.robray"``.

    Raises:
        MissingFileError: if tmkit has no data of that name; the message has the nearest name.
    """
    parts = PurePosixPath(name).parts
    if parts and ".." not in parts and not PurePosixPath(name).is_absolute():
        for root in data_roots():
            candidate = root.joinpath(*parts)
            if os.path.exists(candidate):
                return candidate
    entries = {
        f"{kind}/{entry}"
        for root in data_roots()
        for kind in ("domains", "scenes")
        for entry in _names_in(root / kind)
    }
    nearest = nearest_name(name, sorted(entry for entry in entries if "/." not in entry))
    hint = f"; did you mean '{nearest}'?" if nearest is not None else ""
    raise MissingFileError(f"tmkit has no data named '{name}'{hint}", path=name, nearest=nearest)


def resolve_name(
    name: str | os.PathLike[str], kind_folder: str, *, suffixes: Sequence[str] = ()
) -> Path:
    """Return the existing path of a domain, scene or robot; a path is returned unchanged.

    Args:
        name: bare name of built-in data, or a path: a text with a separator or suffix, or a
            ``pathlib.Path``.
        kind_folder: built-in folder that is searched for a bare name, as ``"scenes"``.
        suffixes: suffixes of a bare name; the first existing file is returned. If empty, the name
            is that of a folder.

    Raises:
        MissingFileError: if there is no such file; the message has the most similar name of a
            readable format.
    """
    if isinstance(name, str) and is_bare(name):
        return _built_in_path(name, kind_folder, suffixes)
    path = Path(name)
    if os.path.exists(path):
        return path
    readable = suffixes or (path.suffix,)
    nearest = nearest_name(
        path.name,
        [name for name in _names_in(path.parent) if Path(name).suffix.lower() in readable],
    )
    hint = f"; did you mean '{path.parent / nearest}'?" if nearest is not None else ""
    raise MissingFileError(f"there is no file '{path}'{hint}", path=str(path), nearest=nearest)


def is_built_in(name: str, kind_folder: str, *, suffix: str = "") -> bool:
    """Return whether a name is that of a built-in domain or scene; False for a path.

    Args:
        name: name, which may come from an untrusted source.
        kind_folder: as for :func:`resolve_name`.
        suffix: suffix of the files. By default, only folders match.
    """
    return is_bare(name) and name in _built_in_names(kind_folder, (suffix,))


def is_bare(name: str) -> bool:
    """Return whether a text is a bare name, without separator and suffix."""
    separators = {"/", os.sep, os.altsep or "/"}
    has_separator = any(mark in name for mark in separators)
    return bool(name) and not has_separator and not Path(name).suffix and name not in ".."


def _built_in_path(name: str, kind_folder: str, suffixes: Sequence[str]) -> Path:
    """Return the path of the built-in file or folder ``name``."""
    endings = tuple(suffixes) or ("",)
    for root in data_roots():
        for ending in endings:
            candidate = root / kind_folder / f"{name}{ending}"
            if os.path.exists(candidate):
                return candidate
    names = sorted(set(_built_in_names(kind_folder, endings)))
    nearest = nearest_name(name, names)
    folders = (
        folder
        for folder, folder_suffixes in _SUFFIXES_BY_FOLDER.items()
        if name in _built_in_names(folder, folder_suffixes or ("",))
    )
    message = f"tmkit has no '{name}' in {kind_folder}"
    if (folder := next(folders, None)) is not None:
        message += f", only in {folder}"
    elif nearest is not None:
        message += f"; did you mean '{nearest}'?"
    if len(names) > _MAX_NAMES_IN_MESSAGE:
        message += f" (all: tmkit list {kind_folder})"
    elif names:
        message += f" (known: {', '.join(names)})"
    message += f"; for a file of your own give a path with a separator or suffix, as './{name}'"
    raise MissingFileError(message, path=name, nearest=nearest)


def _built_in_names(kind_folder: str, endings: Sequence[str]) -> Iterator[str]:
    """Yield the bare names of all built-in entries of a folder."""
    for root in data_roots():
        for entry in _names_in(root / kind_folder):
            for ending in endings:
                if not entry.startswith((".", "_")) and entry.endswith(ending):
                    yield entry.removesuffix(ending)
                    break


def _names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder; empty if it cannot be read."""
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
