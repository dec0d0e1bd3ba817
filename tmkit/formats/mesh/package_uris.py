"""Resolution of ``package://`` URIs and paths to files, within the folders that a scene may read.

docs/reference/scenes.md lists the searched folders in their order. The folders above the naming
file are searched too, and the ROS packages around it by the names in their ``package.xml``
(:mod:`tmkit.formats.mesh.ros_packages`). With import notes, the folders above are also searched
without the package name, since descriptions are often moved or copied with their meshes. A URI that
leaves its package by ``..`` is rejected. The inverse, :meth:`PackageResolver.portable_uri`, returns
a URI that other computers resolve to the same file.

A file that a scene refers to by a path must lie, with symbolic links followed, in one of these
folders (docs/reference/bad_input.md):

* the folder of a file that the user named, its parent, and its ROS package (``package.xml``) or
  git checkout. The parent is included since ``urdf/`` and ``meshes/`` are often siblings. The root
  of the file system, the user's home and folders that contain it are excluded, unless the file
  lies directly in them;
* a folder that the user allowed, or gave as ``package_path`` or ``ROS_PACKAGE_PATH``;
* a ROS package, an installed Python package, or the data of tmkit, which are public.

A folder that is found above the naming file is trusted only under these rules, unlike packages that
the user gave or installed.
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
from tmkit._support.limits import IncludeStack, ReadingLimits, is_file, other_kind, record_access
from tmkit._support.source_location import Note, SourceLocation, did_you_mean, ignore_note
from tmkit.errors import FileFormatError, MissingFileError, SceneError
from tmkit.formats.mesh.ros_packages import find_package_around, find_package_below
from tmkit.formats.reading_options import ReadingOptions

_SITES = ("site-packages", "dist-packages")
"""Names of the folders of installed Python packages."""


def path_below(path: Path, folder: Path) -> str | None:
    """Return the path relative to a folder, with forward slashes, or ``None`` if it is elsewhere.

    Args:
        path: absolute path.
        folder: absolute path of the folder.
    """
    try:
        return path.relative_to(folder).as_posix()
    except ValueError:
        return None


def real_path(path: Path) -> Path:
    """Return the path with symbolic links resolved; a cycle of links stays as it is."""
    return Path(os.path.realpath(path))


def project_folders(files: Iterable[Path]) -> tuple[Path, ...]:
    """Return the real paths of the folders that a load of these files may read."""
    folders: dict[Path, None] = {}
    for file in files:
        for folder in dict.fromkeys((Path(os.path.abspath(file)).parent, real_path(file).parent)):
            folders[real_path(folder)] = None
            candidates = (
                folder.parent,
                _folder_with_entry(folder, "package.xml"),
                _folder_with_entry(folder, ".git"),
            )
            folders.update(
                (real_path(candidate), None)
                for candidate in candidates
                if candidate is not None and not is_beyond_project(candidate)
            )
    return tuple(folders)


def is_public(path: Path) -> bool:
    """Return whether a real path is part of a ROS package or of an installed Python package."""
    if any(path_below(path, site) is not None for site in site_folders()):
        return True
    package = _folder_with_entry(path.parent, "package.xml")
    if package is None or is_beyond_project(package):
        return False
    record_access(package / "package.xml")
    return True


def is_beyond_project(folder: Path) -> bool:
    """Return whether a folder is too large for a project: the root, the home, or a folder above."""
    real, home = real_path(folder), real_path(Path(os.path.expanduser("~")))
    return real == Path(real.anchor) or path_below(home, real) is not None


def _folder_with_entry(folder: Path, name: str) -> Path | None:
    """Return the nearest folder with an entry of this name, from this folder upwards."""
    candidates = (folder, *folder.parents)
    return next((place for place in candidates if os.path.lexists(place / name)), None)


def site_folders() -> Iterator[Path]:
    """Yield the folders of installed Python packages."""
    for entry in sys.path:
        site = real_path(Path(entry))
        if site.name in _SITES:
            yield site


VISUAL_AS_COLLISION = "visual-as-collision"
"""Choice of meshes for which visual shapes replace missing collision shapes."""

MESH_CHOICES = ("load", "available", "skip", VISUAL_AS_COLLISION)
"""Treatments of the meshes of robot descriptions; see :class:`tmkit.formats.ReadingOptions`."""

_INSTALL_COMMANDS = {
    "example-robot-data": "pip install example-robot-data",
    "pybullet_data": "pip install pybullet",
}
"""Commands that install packages of robots, by package."""

_SLOW_READER_FACTOR = 5
"""Ratio of the include limits of fast and slow readers."""

_SCHEME = "package://"
"""Start of a package URI."""


def _ros_package_path() -> tuple[Path, ...]:
    """Return the folders of packages in ``ROS_PACKAGE_PATH``, of Gazebo and of ROS 2."""
    variables = (
        ("ROS_PACKAGE_PATH", ""),
        ("GZ_SIM_RESOURCE_PATH", ""),
        ("AMENT_PREFIX_PATH", "share"),
    )
    return tuple(
        Path(entry, subfolder)
        for variable, subfolder in variables
        for entry in os.environ.get(variable, "").split(os.pathsep)
        if entry
    )


@dataclass(frozen=True, slots=True)
class XacroArguments:
    """Values of the arguments of a xacro file, as ``name:=value`` of the program xacro.

    Attributes:
        values: value by name.
        declared: names that the expanded files declare or use. Expansions add to them.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set, compare=False)


@dataclass(frozen=True, slots=True)
class PackageResolver:
    """Resolver of URIs and paths to files.

    Attributes:
        folders: folders given by the user, searched first.
        ros_folders: folders of ``ROS_PACKAGE_PATH``, ``GZ_SIM_RESOURCE_PATH`` and
            ``AMENT_PREFIX_PATH``, by default at the creation of the resolver.
        allowed_folders: real paths of readable folders, in addition to public ones. If empty, the
            project folders of each naming file.
        limits: limits of the load.
        package_folders: folders of packages by name, searched before all others.
        meshes: one of :data:`MESH_CHOICES`.
        on_file: called with the path of each searched and each resolved file.
        unsaved: texts of files that an editor has open, by real path. They replace the files on the
            disk.
        xacro: arguments by file, for files that may be expanded by xacro, which runs their code.
        includes: include stack of the load, shared by all its readers.
    """

    folders: tuple[Path, ...] = ()
    ros_folders: tuple[Path, ...] = field(default_factory=_ros_package_path)
    allowed_folders: tuple[Path, ...] = ()
    limits: ReadingLimits = field(default_factory=ReadingLimits)
    package_folders: Mapping[str, Path] = field(default_factory=dict)
    meshes: str = "load"
    on_file: Callable[[Path], None] | None = None
    unsaved: Mapping[Path, str] = field(default_factory=dict)
    xacro: Mapping[Path, XacroArguments] = field(default_factory=dict)
    includes: IncludeStack = field(default_factory=IncludeStack, compare=False)
    _packages: dict[tuple[str, Path], Path | None] = field(
        default_factory=dict, compare=False, repr=False
    )

    @classmethod
    def of(cls, reading: ReadingOptions) -> PackageResolver:
        """Return the resolver of reading options, without the folders of the files."""
        meshes = reading.meshes
        if meshes not in MESH_CHOICES:
            choices = ", ".join(f"'{choice}'" for choice in MESH_CHOICES)
            raise SceneError(
                f"meshes={meshes!r}: expected one of"
                f" {choices}{did_you_mean(str(meshes), MESH_CHOICES)}"
            )
        packages = {name: Path(folder) for name, folder in (reading.packages or {}).items()}
        for name, folder in packages.items():
            if not os.path.isdir(folder):
                raise MissingFileError(
                    f"package '{name}': there is no folder '{folder}'",
                    path=str(folder),
                    nearest=None,
                )
        return cls(
            tuple(Path(folder) for folder in reading.package_path),
            allowed_folders=tuple(real_path(Path(folder)) for folder in reading.allow_folders),
            package_folders=packages,
            meshes=meshes,
        )

    def find_scene(self, uri: str | os.PathLike[str]) -> Path | None:
        """Return the file of a ``package://`` URI, or ``None`` for any other path.

        A URI with one slash, as the class ``Path`` writes it, is accepted.
        """
        scheme, separator, rest = os.fspath(uri).partition(":/")
        if not separator or scheme != "package":
            return None
        package_uri = f"{_SCHEME}{rest.lstrip('/')}"
        try:
            return self.resolve(package_uri, folder=Path.cwd(), place=SourceLocation(package_uri))
        except FileFormatError as error:
            reason = str(error.data["reason"])
            raise MissingFileError(reason, path=package_uri, nearest=None) from None

    def resolve(
        self, uri: str, *, folder: Path, place: SourceLocation, note: Note | None = None
    ) -> Path:
        """Return the existing file that ``uri`` names.

        Args:
            uri: ``package://NAME/rest``, ``file://PATH``, or a path, absolute or relative to
                ``folder``.
            folder: folder of the naming file.
            place: location of the URI in the naming file.
            note: receives a note if the file is elsewhere than the URI. Without it, only the
                folders of the package are searched.

        Raises:
            FileFormatError: if no file exists, with the searched folders in the message, or if the
                file is outside the folders that a scene may read.
        """
        if "\0" in unquote(uri):
            raise place.error(f"{uri!r} is not a file name: it has a NUL character")
        if uri.startswith(_SCHEME):
            return self._report(self._resolve_in_packages(uri, folder, place, note))
        scheme, colon, _ = uri.partition("://")
        if colon and scheme != "file":
            raise place.error(f"cannot read '{uri}'; expected package://, file:// or a path")
        path = folder / (
            unquote(uri.removeprefix("file://").removeprefix("localhost")) if colon else uri
        )
        if not colon and not is_file(path) and (file := self._find_above(uri, folder)) is not None:
            (note or ignore_note)(place, f"'{uri}' is not beside the file; {file} is taken")
            path = file
        if not uri or not is_file(path):
            # An error must not describe folders that the scene must not read.
            if uri and self._may_read(path, folder) and (kind := other_kind(path)) is not None:
                raise place.error(
                    f"'{uri}' is {kind}, expected a file (looked for {self._report(path)})"
                )
            hint = _nearest_name_hint(self._report(path)) if self._may_read(path, folder) else ""
            raise place.error(f"there is no file '{uri}' (looked for {path}){hint}")
        if not self._may_read(path, folder):
            raise self._permission_error(uri, path, folder, place)
        return self._report(path)

    def count_include(self, place: SourceLocation, *, is_slow: bool = False) -> None:
        """Count an included file.

        Args:
            place: location of the include.
            is_slow: whether the reader takes a millisecond or more for a file, which lowers the
                limit.

        Raises:
            FileFormatError: if the load includes too many files.
        """
        factor = _SLOW_READER_FACTOR if is_slow else 1
        self.includes.add(self.limits.includes // factor, place.error)

    def _report(self, path: Path) -> Path:
        """Call ``on_file`` with a path, and return the path."""
        if self.on_file is not None:
            self.on_file(path)
        return path

    def _find_above(self, path: str, folder: Path) -> Path | None:
        """Return the readable file of a relative path in the nearest folder above, if any.

        Some descriptions refer to meshes relative to a folder above their own.
        """
        if not path or Path(path).is_absolute() or _leaves_folder(posixpath.normpath(path)):
            return None
        candidates = (parent / path for parent in real_path(folder).parents)
        return next(
            (file for file in candidates if is_file(file) and self._may_read(file, folder)), None
        )

    def _may_read(self, path: Path, folder: Path) -> bool:
        """Return whether files in ``folder`` may refer to a file."""
        real = real_path(path)
        user_folders = (*self.package_folders.values(), *self.folders, *self.ros_folders)
        readable_folders = (
            *self._project_folders(folder),
            *(real_path(root) for root in user_folders),
            *data_roots(),
        )
        return any(path_below(real, root) is not None for root in readable_folders) or is_public(
            real
        )

    def _project_folders(self, folder: Path) -> tuple[Path, ...]:
        """Return the allowed folders, or by default the project folders of the naming file."""
        return self.allowed_folders or project_folders([folder / "_"])

    def _permission_error(
        self, uri: str, path: Path, folder: Path, place: SourceLocation
    ) -> FileFormatError:
        """Return the error for an existing file that the scene must not read."""
        readable_folders = ", ".join(str(root) for root in self._project_folders(folder))
        reason = (
            f"'{uri}' leads to {real_path(path)}, outside the folders that this scene may read"
            f" ({readable_folders})"
        )
        return place.error(
            f"{reason}; allow its folder by ReadingOptions(allow_folders=...), or --allow on the"
            " command line"
        )

    def resolve_mesh(
        self, uri: str, *, folder: Path, place: SourceLocation, note: Note | None = None
    ) -> Path:
        """Return the existing mesh file of a URI.

        Args:
            uri: as for :meth:`resolve`.
            folder: as for :meth:`resolve`.
            place: as for :meth:`resolve`.
            note: as for :meth:`resolve`.

        Raises:
            MeshError: if :meth:`resolve` raises an error.
        """
        try:
            return self.resolve(uri, folder=folder, place=place, note=note)
        except FileFormatError as error:
            raise place.mesh_error(str(error.data["reason"]), mesh=uri) from None

    def portable_uri(self, path: Path) -> str | None:
        """Return a ``package://`` URI by which other computers find this file, if any."""
        real = real_path(path)
        for root in data_roots():
            relative = path_below(real, root / "scenes" / "packages")
            if relative is not None and "/" in relative:
                return f"{_SCHEME}{relative}"
            relative = path_below(real, root)
            if relative is not None and relative.split("/")[0] in ("domains", "scenes"):
                return f"{_SCHEME}tmkit/{relative}"
        for name, root in _installed_packages_around(real):
            if (relative := path_below(real, root)) is not None:
                return f"{_SCHEME}{name}/{relative}"
        for name, root in self.package_folders.items():
            if (relative := path_below(real, real_path(root))) is not None:
                return f"{_SCHEME}{name}/{relative}"
        for root in (*self.folders, *self.ros_folders):
            relative = path_below(real, real_path(root))
            if relative is not None and "/" in relative:
                return f"{_SCHEME}{relative}"
        return None

    def find(self, uri: str) -> Path | None:
        """Return the existing file of a portable URI, or ``None`` if there is none."""
        name, rest = _split_uri(uri)
        if not name or not rest or _leaves_folder(rest):
            return None
        candidates = (root / rest for root in self._candidate_folders(name))
        return next((candidate for candidate in candidates if is_file(candidate)), None)

    def _resolve_in_packages(
        self, uri: str, folder: Path, place: SourceLocation, note: Note | None
    ) -> Path:
        """Return the existing file of a package URI; for the arguments see :meth:`resolve`."""
        name, rest = _split_uri(uri)
        # Bullet reads a URI without a package as a path.
        if note and name and not rest and (file := self._find_nearby(name, folder)) is not None:
            note(place, f"'{uri}' names no package; {file} is taken")
            return file
        if not name or not rest:
            raise place.error(f"'{uri}' is not a package URI; expected package://NAME/FILE")
        if name == ".." or _leaves_folder(rest):
            raise place.error(f"'{uri}' leads out of its package")
        searched_folders: list[Path] = []
        kind: str | None = None
        for root in self._candidate_folders(name):
            if is_file(root / rest):
                return root / rest
            searched_folders.append(root)
        forbidden_file: Path | None = None
        for parent in (real_path(folder), *real_path(folder).parents):
            root = parent / name
            if is_file(root / rest):
                # The naming file may read its own package, if that really contains the file.
                is_in_package = [
                    path_below(real_path(file), real_path(root)) is not None
                    for file in (folder, root / rest)
                ]
                is_own_package = all(is_in_package) and not is_beyond_project(root)
                if is_own_package or self._may_read(root / rest, folder):
                    return root / rest
                forbidden_file = forbidden_file or root / rest
            kind = kind or (
                other_kind(root / rest) if self._may_read(root / rest, folder) else None
            )
            searched_folders.append(root)
        if (package := self._package_by_manifest(name, folder)) is not None:
            if is_file(package / rest) and self._may_read(package / rest, folder):
                return package / rest
            searched_folders.insert(0, package)
        for root in searched_folders:
            record_access(root)
        has_package = any(os.path.isdir(root) for root in searched_folders)
        if note and not has_package and (file := self._find_nearby(rest, folder)) is not None:
            note(place, f"the package '{name}' was not found; {file} is taken")
            return file
        if forbidden_file is not None:
            raise self._permission_error(uri, forbidden_file, folder, place)
        if kind is not None:
            raise place.error(f"'{uri}' is {kind}, expected a file")
        reason = _describe_search(name, rest, searched_folders)
        raise place.error(f"there is no file '{uri}'; {reason}")

    def find_package(self, name: str, folder: Path) -> Path:
        """Return the folder of a package, for ``$(find NAME)`` in a xacro file.

        Args:
            name: name of the package.
            folder: folder of the naming file.

        Raises:
            MissingFileError: if there is no such package. The error has the searched folders.
        """
        by_manifest = self._package_by_manifest(name, folder)
        above = (place / name for place in (real_path(folder), *real_path(folder).parents))
        candidates: list[Path] = [
            *self._user_candidates(name),
            *([] if by_manifest is None else [by_manifest]),
            *(place for place in above if not is_beyond_project(place)),
            *_candidates_of_installation(name),
        ]
        for place in candidates:
            if os.path.isdir(place):
                return place
        raise MissingFileError(_describe_search(name, "", candidates), path=name, nearest=None)

    def _package_by_manifest(self, name: str, folder: Path) -> Path | None:
        """Return the package of a name in the user's folders, or around a folder, or None."""
        key = (name, folder)
        if key not in self._packages:
            user_folders = (*self.folders, *self.ros_folders)
            packages = (find_package_below(name, root) for root in user_folders)
            package = next((place for place in packages if place is not None), None)
            self._packages[key] = package or find_package_around(name, folder)
        return self._packages[key]

    def _find_nearby(self, rest: str, folder: Path) -> Path | None:
        """Return the file of a relative path in a folder, or in the nearest readable one above."""
        file = real_path(folder) / rest
        if is_file(file) and self._may_read(file, folder):
            return file
        return self._find_above(rest, folder)

    def _candidate_folders(self, name: str) -> Iterator[Path]:
        """Yield the possible folders of a package in search order, without folders above a file."""
        yield from self._user_candidates(name)
        yield from _candidates_of_installation(name)

    def _user_candidates(self, name: str) -> Iterator[Path]:
        """Yield the possible folders of a package that the user or the environment gives."""
        if name in self.package_folders:
            yield self.package_folders[name]
        for folder in (*self.folders, *self.ros_folders):
            yield folder / name
            if real_path(folder).name == name:
                yield folder


def install_hint(uri: str) -> str:
    """Return the start of a sentence that installs the package of a URI; empty if unknown."""
    command = _INSTALL_COMMANDS.get(_split_uri(uri)[0])
    return f"{command}, or " if command else ""


def _split_uri(uri: str) -> tuple[str, str]:
    """Return package and file of a package URI, both empty for any other URI.

    Escapes are decoded, and extra slashes removed.
    """
    if not uri.startswith(_SCHEME):
        return "", ""
    name, _, rest = unquote(uri.removeprefix(_SCHEME)).lstrip("/").partition("/")
    return name, posixpath.normpath(rest.lstrip("/")) if rest.strip("/") else ""


def _leaves_folder(path: str) -> bool:
    """Return whether a normalised relative path leads out of its folder."""
    return path == ".." or path.startswith("../")


def _candidates_of_installation(name: str) -> Iterator[Path]:
    """Yield the possible folders of a package in the data of tmkit and in Python packages."""
    if name == "tmkit":
        yield from data_roots()
    # The meshes of tmkit are small and have colours.
    yield from (root / "scenes" / "packages" / name for root in data_roots())
    yield from _python_package_folders(name)


def _python_package_folders(name: str) -> Iterator[Path]:
    """Yield the folders of an installed Python package or distribution, without importing it."""
    if name.isidentifier():
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        # A spec without an origin is only a folder on the path.
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


def _installed_packages_around(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and folder of the installed packages that may contain a file."""
    for site in site_folders():
        if (relative := path_below(path, site)) is None:
            continue
        parts = relative.split("/")
        if parts[:2] == ["cmeel.prefix", "share"] and len(parts) > 3:
            parts = parts[2:]
        for root in _python_package_folders(parts[0]):
            yield parts[0], real_path(root)


def _describe_search(name: str, rest: str, searched_folders: Sequence[Path]) -> str:
    """Return where a package was searched, or the nearest match in an existing package.

    Args:
        name: name of the package.
        rest: path of the file in the package.
        searched_folders: folders in search order.
    """
    # tmkit contains parts of packages, which do not prove an installation.
    partial_packages = [root / "scenes" / "packages" / name for root in data_roots()]
    packages = [
        root for root in searched_folders if os.path.isdir(root) and root not in partial_packages
    ]
    if packages:
        hint = _nearest_name_hint(packages[0] / rest)
        return f"the package '{name}' was found at {packages[0]}{hint}"
    if name in _INSTALL_COMMANDS:
        return (
            f"the package '{name}' is not installed: {_INSTALL_COMMANDS[name]} (or give its folder:"
            f" --package {name}=DIR)"
        )
    parents = list(dict.fromkeys(str(root.parent) for root in searched_folders))
    more = f" and {len(parents) - 6} folders above" if len(parents) > 6 else ""
    return (
        f"the package '{name}' was not found in {', '.join(parents[:6])}{more}, nor is a Python"
        f" package of that name installed; give its folder: --package {name}=DIR"
        f" (ReadingOptions(packages={{'{name}': DIR}}) in Python), or ROS_PACKAGE_PATH"
    )


def _nearest_name_hint(path: Path) -> str:
    """Return a hint about a missing path: the nearest name in its folder, or a missing folder."""
    parent = path.parent
    try:
        names = sorted(entry.name for entry in parent.iterdir())
    except (OSError, ValueError):
        return f"; there is no folder {parent}"
    return did_you_mean(path.name, names)
