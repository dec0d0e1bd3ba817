"""Paths of the domains and scenes in the package.

In a checkout (also an editable install) the folders ``domains/`` and ``scenes/`` lie beside the
package; in a wheel they lie inside it, under ``data_files/``. :func:`data_path` looks in the
checkout first, and then in every folder that Python searches for the modules of this package, which
an editable install may make two. :func:`resolve_name` is the one place that tells a bare name
(``"blocks"``), which is a built-in one, from a path of the user's own: anything with a separator or
a suffix, and any ``pathlib.Path``.

Invariants: nothing here depends on the working directory except a user's own relative path; a
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
"""Suffixes of the scenes that travel with tmkit."""

_KINDS = {"scenes": BUILT_IN_SCENES, "scenes/robots": (".toml",), "domains": ()}


def data_roots() -> tuple[Path, ...]:
    """Return the folders that may hold ``domains/`` and ``scenes/``, in the order in which they are searched."""
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
    """Return the absolute path, which exists, of a file or folder that travels with tmkit.

    Args:
        name: the name with forward slashes, as ``"domains/blocks"`` or
            ``"scenes/panda_table.robray"``.

    Raises:
        MissingFileError: nothing of that name travels with tmkit; the message names the nearest
            that does.
    """
    parts = PurePosixPath(name).parts
    if parts and ".." not in parts and not PurePosixPath(name).is_absolute():
        for root in data_roots():
            candidate = root.joinpath(*parts)
            if os.path.exists(candidate):
                return candidate
    found = {
        f"{kind}/{entry}"
        for root in data_roots()
        for kind in ("domains", "scenes")
        for entry in _names_in(root / kind)
    }
    near = nearest_name(name, sorted(entry for entry in found if "/." not in entry))
    hint = f"; did you mean '{near}'?" if near is not None else ""
    raise MissingFileError(f"tmkit has no data named '{name}'{hint}", path=name, nearest=near)


def resolve_name(
    name: str | os.PathLike[str], kind_folder: str, *, suffixes: Sequence[str] = ()
) -> Path:
    """Return the existing path that a user's name of a domain, scene or robot stands for; a path as it was given.

    Args:
        name: a bare name, which is a built-in one, or a path: anything with a separator or suffix,
            or a ``pathlib.Path``.
        kind_folder: the built-in folder that is searched for a bare name, as ``"scenes"``.
        suffixes: what to append to a bare name, the first that exists wins; empty means a folder of
            that very name.

    Raises:
        MissingFileError: there is no such file; the message gives the most similar name of a
            readable format.
    """
    if isinstance(name, str) and is_bare(name):
        return _ours(name, kind_folder, suffixes)
    path = Path(name)
    if os.path.exists(path):
        return path
    readable = suffixes or (path.suffix,)
    near = nearest_name(
        path.name,
        [name for name in _names_in(path.parent) if Path(name).suffix.lower() in readable],
    )
    hint = f"; did you mean '{path.parent / near}'?" if near is not None else ""
    raise MissingFileError(f"there is no file '{path}'{hint}", path=str(path), nearest=near)


def is_built_in(name: str, kind_folder: str, *, suffix: str = "") -> bool:
    """Return whether a name is that of a built-in domain or scene; no path is, wherever it leads.

    Args:
        name: the name, from anybody.
        kind_folder: as for :func:`resolve_name`.
        suffix: of the files; by default only names of folders count.
    """
    return is_bare(name) and name in _known(kind_folder, (suffix,))


def is_bare(name: str) -> bool:
    """Whether the text is a plain name: no separator and no suffix."""
    separators = {"/", os.sep, os.altsep or "/"}
    return (
        bool(name)
        and not any(mark in name for mark in separators)
        and not Path(name).suffix
        and name not in ".."
    )


def _ours(name: str, kind_folder: str, suffixes: Sequence[str]) -> Path:
    """Return the path of the built-in file or folder ``name``."""
    endings = tuple(suffixes) or ("",)
    for root in data_roots():
        for ending in endings:
            candidate = root / kind_folder / f"{name}{ending}"
            if os.path.exists(candidate):
                return candidate
    known = sorted(set(_known(kind_folder, endings)))
    near = nearest_name(name, known)
    message = f"tmkit has no '{name}' in {kind_folder}"
    if (
        other := next(
            (kind for kind in _KINDS if name in _known(kind, _KINDS[kind] or ("",))), None
        )
    ) is not None:
        message += f", only in {other}"
    elif near is not None:
        message += f"; did you mean '{near}'?"
    if known:
        message += (
            f" (known: {', '.join(known)})"
            if len(known) <= 12
            else f" (all: tmkit list {kind_folder})"
        )
    message += f"; for a file of your own give a path with a separator or suffix, as './{name}'"
    raise MissingFileError(message, path=name, nearest=near)


def _known(kind_folder: str, endings: Sequence[str]) -> Iterator[str]:
    """Yield the bare names of all built-in entries of a folder."""
    for root in data_roots():
        for entry in _names_in(root / kind_folder):
            for ending in endings:
                if not entry.startswith((".", "_")) and entry.endswith(ending):
                    yield entry.removesuffix(ending)
                    break


def _names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder, none when it cannot be read."""
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
