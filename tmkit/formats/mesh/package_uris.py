"""Resolution of ``package://`` URIs, and back: docs/reference/scenes.md has the order of the places that are searched.

A URI that climbs out of its package by ``..`` is refused, and so is whatever lies outside the
folders that a scene may read. A path, or a folder found by looking upwards, is not trusted as
packages are that the user gave or installed. Folders are looked at upwards of the file, and for a
reader that makes notes also without NAME, since descriptions are moved about and copied with their
meshes. The way back, :meth:`PackageResolver.portable_uri`, gives a name that means the same file on
another computer.

Whatever a scene names by a path must really lie, symbolic links followed, in one of these
(docs/concepts/security.md and docs/reference/bad_input.md):

* the folder of a file that the user named, and the ROS package (``package.xml``) or git checkout
  that it is part of. The folder above it is another, since ``urdf/`` and ``meshes/`` are often side
  by side. But none of these is the root of the file system, the user's home, or a folder that holds
  it, unless the file itself lies there;
* a folder that the user allowed, or gave as ``package_path`` or ``ROS_PACKAGE_PATH``;
* any ROS package, what is installed in Python, and what travels with tmkit: there lie robots, not
  secrets.
"""

from __future__ import annotations

import importlib.util
import os
import posixpath
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from tmkit._support.data import data_roots
from tmkit._support.limits import IncludeStack, ReadingLimits, is_file, other_kind, see
from tmkit._support.source_location import Note, SourceLocation, did_you_mean, unheard
from tmkit.errors import FileFormatError, MissingFileError, SceneError
from tmkit.formats.reading_options import ReadingOptions

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
            around = (
                folder.parent,
                _marked_folder(folder, "package.xml"),
                _marked_folder(folder, ".git"),
            )
            found.update(
                (real_path(place), None)
                for place in around
                if place is not None and not is_wide(place)
            )
    return tuple(found)


def is_public(path: Path) -> bool:
    """Whether a real path is part of a ROS package or of what is installed in Python."""
    if any(below(path, site) is not None for site in sites()):
        return True
    package = _marked_folder(path.parent, "package.xml")
    if package is None or is_wide(package):
        return False
    see(package / "package.xml")
    return True


def is_wide(folder: Path) -> bool:
    """Whether a folder holds more than one project may see: the root, the home, or what holds it."""
    real, home = real_path(folder), real_path(Path(os.path.expanduser("~")))
    return real == Path(real.anchor) or below(home, real) is not None


def _marked_folder(folder: Path, mark: str) -> Path | None:
    """Return the nearest folder, this one or above it, that has an entry of that name."""
    return next(
        (place for place in (folder, *folder.parents) if os.path.lexists(place / mark)), None
    )


def sites() -> Iterator[Path]:
    """Yield the folders of installed Python packages."""
    for entry in sys.path:
        site = real_path(Path(entry))
        if site.name in _SITES:
            yield site


VISUAL_AS_COLLISION = "visual-as-collision"
MESH_CHOICES = ("load", "available", "skip", VISUAL_AS_COLLISION)
"""What becomes of the meshes of robot descriptions; see :func:`tmkit.formats.load_scene`."""

_INSTALLED_BY = {
    "example-robot-data": "pip install example-robot-data",
    "pybullet_data": "pip install pybullet",
}
_SLOW_READER = 5
"""Ratio of the numbers of includes by fast readers and by slow ones."""
_SCHEME = "package://"


def _ros_package_path() -> tuple[Path, ...]:
    """Return the folders of ``ROS_PACKAGE_PATH``, and of ``GZ_SIM_RESOURCE_PATH``, its like for models in SDF."""
    values = (os.environ.get(name, "") for name in ("ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH"))
    return tuple(Path(entry) for value in values for entry in value.split(os.pathsep) if entry)


@dataclass(frozen=True, slots=True)
class PackageResolver:
    """Finds the files that URIs name."""

    folders: tuple[Path, ...] = ()  # the user's own folders, searched first
    # those of ROS_PACKAGE_PATH and GZ_SIM_RESOURCE_PATH when the resolver was made
    ros_folders: tuple[Path, ...] = field(default_factory=_ros_package_path)
    # real paths of the folders that paths may lead to, besides those where everybody may read; when
    # empty, those around each naming file
    allowed: tuple[Path, ...] = ()
    limits: ReadingLimits = field(default_factory=ReadingLimits)
    # the folders of packages by name, searched before all others
    named: Mapping[str, Path] = field(default_factory=dict)
    meshes: str = "load"  # one of :data:`MESH_CHOICES`
    # is called with each path that is looked for, and each file that is found
    on_file: Callable[[Path], None] | None = None
    # texts by the real path of their file, which an editor has open: they count, not what is on the
    # disk
    unsaved: Mapping[Path, str] = field(default_factory=dict)
    # files that may be expanded by xacro, which runs them, with their arguments
    xacro: Mapping[Path, Mapping[str, str]] = field(default_factory=dict)
    # of the load, shared by all its readers
    includes: IncludeStack = field(default_factory=IncludeStack, compare=False)

    @classmethod
    def of(cls, reading: ReadingOptions) -> PackageResolver:
        """Return the resolver of a load, as far as it does not depend on the files."""
        meshes = reading.meshes
        if meshes not in MESH_CHOICES:
            known = ", ".join(f"'{choice}'" for choice in MESH_CHOICES)
            raise SceneError(
                f"meshes={meshes!r}: expected one of"
                f" {known}{did_you_mean(str(meshes), MESH_CHOICES)}"
            )
        named = {name: Path(folder) for name, folder in (reading.packages or {}).items()}
        for name, folder in named.items():
            if not os.path.isdir(folder):
                raise MissingFileError(
                    f"package '{name}': there is no folder '{folder}'",
                    path=str(folder),
                    nearest=None,
                )
        return cls(
            tuple(Path(folder) for folder in reading.package_path),
            allowed=tuple(real_path(Path(folder)) for folder in reading.allow_folders),
            named=named,
            meshes=meshes,
        )

    def find_scene(self, uri: str | os.PathLike[str]) -> Path | None:
        """Return the file of a ``package://`` URI, or of one that lost a slash as a ``Path``; else ``None``."""
        scheme, mark, rest = os.fspath(uri).partition(":/")
        if not mark or scheme != "package":
            return None
        whole = f"{_SCHEME}{rest.lstrip('/')}"
        try:
            return self.resolve(whole, folder=Path.cwd(), place=SourceLocation(whole))
        except FileFormatError as error:
            raise MissingFileError(str(error.data["reason"]), path=whole, nearest=None) from None

    def resolve(
        self, uri: str, *, folder: Path, place: SourceLocation, note: Note | None = None
    ) -> Path:
        """Return the existing file that ``uri`` names.

        Args:
            uri: ``package://NAME/rest``, ``file://PATH``, or a path, absolute or relative to
                ``folder``.
            folder: the folder of the file that names the URI.
            note: takes a note when the file is not where the URI says; without it, a package is not
                looked past.

        Raises:
            FileFormatError: no such file, and the message lists where it was looked for; or one
                outside the folders that a scene may read.
        """
        if "\0" in unquote(uri):
            raise place.error(f"{uri!r} is no name of a file: it has a NUL character")
        if uri.startswith(_SCHEME):
            return self._told(self._in_packages(uri, folder, place, note))
        scheme, colon, _ = uri.partition("://")
        if colon and scheme != "file":
            raise place.error(f"cannot read '{uri}'; expected package://, file:// or a path")
        path = folder / (
            unquote(uri.removeprefix("file://").removeprefix("localhost")) if colon else uri
        )
        if not colon and not is_file(path) and (found := self._upwards(uri, folder)) is not None:
            (note or unheard)(place, f"'{uri}' is not beside the file; {found} is taken")
            path = found
        if not uri or not is_file(path):
            # of other folders nothing is told
            if uri and self._may_read(path, folder) and (kind := other_kind(path)) is not None:
                raise place.error(
                    f"'{uri}' is {kind}, expected a file (looked for {self._told(path)})"
                )
            hint = _hint(self._told(path)) if self._may_read(path, folder) else ""
            raise place.error(f"there is no file '{uri}' (looked for {path}){hint}")
        if not self._may_read(path, folder):
            raise self._outside(uri, path, folder, place)
        return self._told(path)

    def count_include(self, place: SourceLocation, *, is_slow: bool = False) -> None:
        """Count a file that is included at a place of another.

        Args:
            place: the place.
            is_slow: whether the reader takes a millisecond or more a file, so that fewer are
                accepted.

        Raises:
            FileFormatError: if the load includes too many.
        """
        self.includes.add(self.limits.includes // (_SLOW_READER if is_slow else 1), place.error)

    def _told(self, path: Path) -> Path:
        if self.on_file is not None:
            self.on_file(path)
        return path

    def _upwards(self, path: str, folder: Path) -> Path | None:
        """Return the file of that relative path in the nearest folder above that may be read, ``None`` without one.

        Some descriptions name their meshes relative to the folder of data that they are part of.
        """
        if not path or Path(path).is_absolute() or _climbs(posixpath.normpath(path)):
            return None
        found = (above / path for above in real_path(folder).parents)
        return next(
            (file for file in found if is_file(file) and self._may_read(file, folder)), None
        )

    def _may_read(self, path: Path, folder: Path) -> bool:
        """Whether an existing file lies where files named in ``folder`` may lie."""
        real = real_path(path)
        given = (*self.named.values(), *self.folders, *self.ros_folders)
        trusted = (*(real_path(root) for root in given), *data_roots())
        return any(
            below(real, root) is not None for root in (*self._around(folder), *trusted)
        ) or is_public(real)

    def _around(self, folder: Path) -> tuple[Path, ...]:
        """Return the folders allowed, or by default those around the naming file."""
        return self.allowed or project_folders([folder / "_"])

    def _outside(
        self, uri: str, path: Path, folder: Path, place: SourceLocation
    ) -> FileFormatError:
        """Return the error for a file that exists where the scene must not read."""
        shown = ", ".join(str(root) for root in self._around(folder))
        reason = (
            f"'{uri}' leads to {real_path(path)}, outside the folders that this scene may read"
            f" ({shown})"
        )
        return place.error(
            f"{reason}; allow its folder by ReadingOptions(allow_folders=...), or --allow on the"
            " command line"
        )

    def resolve_mesh(
        self, uri: str, *, folder: Path, place: SourceLocation, note: Note | None = None
    ) -> Path:
        """Return the existing mesh file of a URI; as :meth:`resolve`, with errors of type MeshError."""
        try:
            return self.resolve(uri, folder=folder, place=place, note=note)
        except FileFormatError as error:
            raise place.mesh_error(str(error.data["reason"]), mesh=uri) from None

    def portable_uri(self, path: Path) -> str | None:
        """Return the ``package://`` URI by which other computers find this file, ``None`` when there is none."""
        real = real_path(path)
        for root in data_roots():
            if (found := below(real, root / "scenes" / "packages")) is not None and "/" in found:
                return f"{_SCHEME}{found}"
            if (found := below(real, root)) is not None and found.split("/")[0] in (
                "domains",
                "scenes",
            ):
                return f"{_SCHEME}tmkit/{found}"
        for name, root in _installed_around(real):
            if (found := below(real, root)) is not None:
                return f"{_SCHEME}{name}/{found}"
        for name, root in self.named.items():
            if (found := below(real, real_path(root))) is not None:
                return f"{_SCHEME}{name}/{found}"
        for root in (*self.folders, *self.ros_folders):
            found = below(real, real_path(root))
            if found is not None and "/" in found:
                return f"{_SCHEME}{found}"
        return None

    def find(self, uri: str) -> Path | None:
        """Return the file that a portable URI names here, ``None`` when it is not there or not a package URI."""
        name, rest = _split(uri)
        if not name or not rest or _climbs(rest):
            return None
        candidates = (root / rest for root in self._roots(name))
        return next((candidate for candidate in candidates if is_file(candidate)), None)

    def _in_packages(
        self, uri: str, folder: Path, place: SourceLocation, note: Note | None
    ) -> Path:
        name, rest = _split(uri)
        # as Bullet reads it
        if note and name and not rest and (bare := self._nearby(name, folder)) is not None:
            note(place, f"'{uri}' names no package; {bare} is taken")
            return bare
        if not name or not rest:
            raise place.error(f"'{uri}' is no package URI; expected package://NAME/FILE")
        if name == ".." or _climbs(rest):
            raise place.error(f"'{uri}' climbs out of its package")
        looked: list[Path] = []
        kind: str | None = None
        for root in self._roots(name):
            if is_file(root / rest):
                return root / rest
            looked.append(root)
        outside: Path | None = None
        for above in (real_path(folder), *real_path(folder).parents):
            root = above / name
            if is_file(root / rest):
                # the package that the naming file is part of, which really holds the file
                inside = [below(real_path(file), real_path(root)) for file in (folder, root / rest)]
                is_own = None not in inside and not is_wide(root)
                if is_own or self._may_read(root / rest, folder):
                    return root / rest
                outside = outside or root / rest
            kind = kind or (
                other_kind(root / rest) if self._may_read(root / rest, folder) else None
            )
            looked.append(root)
        for root in looked:
            see(root)
        found = any(os.path.isdir(root) for root in looked)
        if note and not found and (moved := self._nearby(rest, folder)) is not None:
            note(place, f"the package '{name}' was not found; {moved} is taken")
            return moved
        if outside is not None:
            raise self._outside(uri, outside, folder, place)
        if kind is not None:
            raise place.error(f"'{uri}' is {kind}, expected a file")
        raise place.error(f"there is no file '{uri}'; {_searched(name, rest, looked)}")

    def _nearby(self, rest: str, folder: Path) -> Path | None:
        """Return the file of a relative path beside the naming file, or in the nearest readable folder above."""
        beside = real_path(folder) / rest
        return (
            beside
            if is_file(beside) and self._may_read(beside, folder)
            else self._upwards(rest, folder)
        )

    def _roots(self, name: str) -> Iterator[Path]:
        """Yield the folders that may be the package ``name``, best first, apart from those around the naming file."""
        if name in self.named:
            yield self.named[name]
        for folder in (*self.folders, *self.ros_folders):
            yield folder / name
            if real_path(folder).name == name:
                yield folder
        if name == "tmkit":
            yield from data_roots()
        # with colours, and small
        yield from (root / "scenes" / "packages" / name for root in data_roots())
        yield from _installed(name)


def install_hint(uri: str) -> str:
    """Return the command that installs the package of a URI, as the begin of a sentence; empty if it is not known."""
    command = _INSTALLED_BY.get(_split(uri)[0])
    return f"{command}, or " if command else ""


def _split(uri: str) -> tuple[str, str]:
    """Return name and rest of a package URI; both empty when it is none. Extra slashes and escapes are undone."""
    if not uri.startswith(_SCHEME):
        return "", ""
    name, _, rest = unquote(uri.removeprefix(_SCHEME)).lstrip("/").partition("/")
    return name, posixpath.normpath(rest.lstrip("/")) if rest.strip("/") else ""


def _climbs(rest: str) -> bool:
    """Whether a normalised path leads out of the folder it starts in."""
    return rest == ".." or rest.startswith("../")


def _installed(name: str) -> Iterator[Path]:
    """Yield the folders of an installed Python package or distribution of this name, without importing it."""
    if name.isidentifier():
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        # without an origin it is only a folder on the path
        if spec is not None and spec.origin is not None:
            yield from (Path(place) for place in spec.submodule_search_locations or ())
    from importlib import metadata  # costs 20 ms, and few scenes need it

    try:
        distribution = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return
    for prefix in ("cmeel.prefix", "."):
        share = Path(str(distribution.locate_file(f"{prefix}/share/{name}")))
        if os.path.isdir(share):
            yield share


def _installed_around(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and folder of the installed packages that this file may belong to."""
    for site in sites():
        if (found := below(path, site)) is None:
            continue
        parts = found.split("/")
        if parts[:2] == ["cmeel.prefix", "share"] and len(parts) > 3:
            parts = parts[2:]
        for root in _installed(parts[0]):
            yield parts[0], real_path(root)


def _searched(name: str, rest: str, looked: Sequence[Path]) -> str:
    """Say shortly where a package was looked for, and what was nearly right."""
    # of packages, and not the packages
    parts = [root / "scenes" / "packages" / name for root in data_roots()]
    existing = [root for root in looked if os.path.isdir(root) and root not in parts]
    if existing:
        return f"the package '{name}' was found at {existing[0]}{_hint(existing[0] / rest)}"
    if name in _INSTALLED_BY:
        return (
            f"the package '{name}' is not installed: {_INSTALLED_BY[name]} (or give its folder:"
            f" --package {name}=DIR)"
        )
    shown = list(dict.fromkeys(str(root.parent) for root in looked))
    more = f" and {len(shown) - 6} folders above" if len(shown) > 6 else ""
    return (
        f"the package '{name}' was not found in {', '.join(shown[:6])}{more}, nor is a Python"
        f" package of that name installed; give its folder: --package {name}=DIR"
        f" (ReadingOptions(packages={{'{name}': DIR}}) in Python), or ROS_PACKAGE_PATH"
    )


def _hint(path: Path) -> str:
    """Return what of a missing path does exist: the nearest name in its folder, or that the folder is missing."""
    parent = path.parent
    try:
        names = sorted(entry.name for entry in parent.iterdir())
    except (OSError, ValueError):
        return f"; there is no folder {parent}"
    return did_you_mean(path.name, names)
