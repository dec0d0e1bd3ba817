"""Search for the robot and the SRDF file of a MoveIt configuration package.

The setup assistant of MoveIt 1 names both files in ``.setup_assistant``. Packages of MoveIt 2 have
them in ``config``. Others name the robot in a launch file, or only depend on its package. The SRDF
is one of these, the first that exists:

1. the file in ``.setup_assistant``;
2. the ``.srdf`` or ``.srdf.xacro`` file in ``config``, ``srdf``, the folder itself, or below.

The robot is one of these:

1. a ``.urdf`` or ``.urdf.xacro`` file in ``config``, ``urdf`` or the folder itself;
2. the file in ``.setup_assistant``, with its xacro arguments;
3. the file that a launch file ``planning_context.launch`` loads;
4. a file in ``urdf`` or ``robots`` of a description package on which the package depends.

Where several files are possible, the one with the name of the robot is taken, or that of an
argument of xacro. Without the permission to expand xacro, plain files precede.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tmkit._support.limits import is_file, record_access
from tmkit._support.source_location import SourceLocation
from tmkit._support.yaml_files import read_yaml
from tmkit.errors import FileFormatError, MissingFileError
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.xacro.format import PERMISSION_MESSAGE

SETUP_ASSISTANT = ".setup_assistant"
"""File of the setup assistant, which names the robot."""

_SRDF_SUFFIXES = (".srdf", ".srdf.xacro")
"""Ends of the names of SRDF files."""

_ROBOT_SUFFIXES = (".urdf", ".urdf.xacro")
"""Ends of the names of robot files."""

_MACRO = re.compile(r"^_|macro")
"""Part of the names of files with macros, which are not robots."""

_CONFIGURATION_SUFFIX = re.compile(r"_(moveit|move_it)(_config)?$")
"""End of the name of a configuration package."""

_LAUNCHED_ROBOT = re.compile(r"\$\(find ([\w.-]+)\)/([\w./-]+\.(?:urdf|xacro))\b")
"""Robot file in a launch file."""

_ARGUMENT = re.compile(r"(\w+):=([^\s'\"$]+)")
"""Argument of xacro with a constant value."""

_DEPENDENCY = re.compile(r"<\w*depend>\s*([\w.-]*description[\w.-]*)\s*</")
"""Description package on which a package depends."""

_MAX_TEXT = 1_000_000
"""Number of characters of a launch file or manifest that are searched."""


@dataclass(frozen=True)
class RobotFiles:
    """Robot and SRDF file of a configuration package.

    Attributes:
        robot: URDF or xacro file.
        srdf: SRDF or xacro file.
        arguments: arguments of xacro that the package gives, by name.
    """

    robot: Path
    srdf: Path
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Search:
    """Search in one package.

    Attributes:
        folder: folder of the package.
        packages: resolver of package names.
        values: arguments of xacro that the user gives.
        is_xacro_allowed: whether xacro files may be expanded.
    """

    folder: Path
    packages: PackageResolver
    values: Mapping[str, str]
    is_xacro_allowed: bool

    @property
    def name(self) -> str:
        """Name of the robot in that of the package."""
        return _CONFIGURATION_SUFFIX.sub("", self.folder.resolve().name)

    def select(self, files: Iterable[Path], name: str) -> Path | None:
        """Return the best of several files, or None without any.

        Raises:
            FileFormatError: if several files are possible.
        """
        candidates = sorted({file for file in files if not _MACRO.search(file.name)})
        if not self.is_xacro_allowed and any(file.suffix != ".xacro" for file in candidates):
            candidates = [file for file in candidates if file.suffix != ".xacro"]
        names = {name, self.name, *self.values.values()}
        tests = (
            lambda stem: stem in self.values.values(),
            lambda stem: stem == name,
            lambda stem: stem == self.name,
            lambda stem: any(stem.startswith(f"{other}_") for other in names if other),
        )
        for test in tests:
            matches = [file for file in candidates if test(file_stem(file))]
            if matches and len({file_stem(file) for file in matches}) == 1:
                # MoveIt 2 expands the xacro file where both exist.
                return max(matches, key=lambda file: file.suffix == ".xacro")
        if len(candidates) > 1:
            listed = ", ".join(os.path.relpath(file, self.folder) for file in candidates)
            raise FileFormatError.at(
                self.folder,
                f"several files are possible: {listed}; choose one by an argument with its name,"
                f" as --xacro robot_model:={file_stem(candidates[-1])}, or give the robot and its"
                " SRDF as two files",
            )
        return candidates[0] if candidates else None


def is_configuration_package(folder: Path) -> bool:
    """Return whether a folder is a MoveIt configuration package."""
    if is_file(folder / SETUP_ASSISTANT):
        return True
    return next(_files_below(folder, _SRDF_SUFFIXES, ("config", "srdf", ".")), None) is not None


def find_robot_files(
    folder: Path, packages: PackageResolver, values: Mapping[str, str] | None
) -> RobotFiles:
    """Return the robot and the SRDF file of a MoveIt configuration package.

    Args:
        folder: folder of the package.
        packages: resolver of package names.
        values: arguments of xacro by name, or None if xacro is not allowed.

    Raises:
        FileFormatError: if a file is missing or ambiguous, or needs xacro, which is not allowed.
    """
    search = _Search(folder, packages, values or {}, is_xacro_allowed=values is not None)
    setup = _setup(folder)
    srdf = _find_srdf(search, setup)
    robot, arguments = _find_robot(search, setup, file_stem(srdf))
    for file in (robot, srdf):
        readable_file(packages, file)
        if file.suffix == ".xacro" and values is None:
            raise FileFormatError.at(file, PERMISSION_MESSAGE)
    return RobotFiles(robot, srdf, arguments)


def readable_file(packages: PackageResolver, file: Path) -> Path:
    """Return a file that a package has under its own name.

    Raises:
        FileFormatError: if it is a link to a file that the package may not read.
    """
    return packages.resolve(file.name, folder=file.parent, place=SourceLocation(str(file.parent)))


def _setup(folder: Path) -> dict[str, Any]:
    """Return the sections of the file of the setup assistant, by name in upper case."""
    file = folder / SETUP_ASSISTANT
    if not is_file(file):
        return {}
    document = next(iter(read_yaml(file)), None)
    top = document.get("moveit_setup_assistant_config") if isinstance(document, dict) else None
    sections = top.items() if isinstance(top, dict) else ()
    return {str(key).upper(): value for key, value in sections if isinstance(value, dict)}


def _find_srdf(search: _Search, setup: Mapping[str, Any]) -> Path:
    """Return the SRDF file of a package."""
    folder = search.folder
    named = _file_at(search, str(setup.get("SRDF", {}).get("relative_path", "")))
    files = [*_files_below(folder, _SRDF_SUFFIXES, ("config", "srdf", "."))]
    files = files or [*_files_below(folder, _SRDF_SUFFIXES, ("config", "srdf"), depth=2)]
    plain = [file for file in files if file.suffix != ".xacro"]
    if named is not None and (search.is_xacro_allowed or named.suffix != ".xacro" or not plain):
        return named
    srdf = search.select(files, search.name)
    if srdf is None:
        raise FileFormatError.at(
            folder, "is not a configuration package of MoveIt: it has no SRDF file (config/*.srdf)"
        )
    return srdf


def _find_robot(
    search: _Search, setup: Mapping[str, Any], name: str
) -> tuple[Path, Mapping[str, str]]:
    """Return the robot file of a package, and the arguments of xacro that the package gives."""
    candidates = [*_robot_candidates(search, setup, name)]
    plain = [entry for entry in candidates if entry[0].suffix != ".xacro"]
    if not search.is_xacro_allowed and plain:
        return plain[0]
    if candidates:
        return candidates[0]
    manifest = search.folder / "package.xml"
    dependencies = list(dict.fromkeys(_DEPENDENCY.findall(_text(manifest))))
    places = "config/*.urdf, .setup_assistant, launch/planning_context.launch"
    hint = f"; its packages were not found: {', '.join(dependencies)}" if dependencies else ""
    raise FileFormatError.at(
        search.folder,
        f"names no robot file that exists ({places}){hint}; give the folder of a package by"
        " --package NAME=DIR, or give the robot and its SRDF as two files",
    )


def _robot_candidates(
    search: _Search, setup: Mapping[str, Any], name: str
) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Yield the possible robot files with their arguments, in order; see the module."""
    folder = search.folder
    section = setup.get("URDF", {})
    arguments = dict(_ARGUMENT.findall(str(section.get("xacro_args", ""))))
    own = search.select(_files_below(folder, _ROBOT_SUFFIXES, ("config", "urdf", ".")), name)
    if own is not None:
        yield own, arguments
    relative_path = str(section.get("relative_path", ""))
    file = _file_in_package(search, str(section.get("package", "")), relative_path)
    if file is not None:
        yield file, arguments
    launch = _text(folder / "launch" / "planning_context.launch")
    for line in launch.splitlines():
        for package, path in _LAUNCHED_ROBOT.findall(line):
            file = None if ".srdf" in path else _file_in_package(search, package, path)
            if file is not None:
                yield file, dict(_ARGUMENT.findall(line))
    for package in dict.fromkeys(_DEPENDENCY.findall(_text(folder / "package.xml"))):
        root = _package(search, package)
        if root is None:
            continue
        files = _files_below(root, _ROBOT_SUFFIXES, ("urdf", "robots", "."))
        file = search.select(files, name)
        if file is not None:
            yield file, arguments


def _package(search: _Search, name: str) -> Path | None:
    """Return the folder of a package, or None if it is not found."""
    try:
        return search.packages.find_package(name, search.folder) if name else None
    except MissingFileError:
        return None


def _file_in_package(search: _Search, package: str, path: str) -> Path | None:
    """Return an existing file of another package that the configuration may read, or None."""
    return _file_at(search, f"package://{package}/{path}") if package and path else None


def _file_at(search: _Search, uri: str) -> Path | None:
    """Return an existing file that the configuration may read, or None."""
    try:
        place = SourceLocation(str(search.folder))
        return search.packages.resolve(uri, folder=search.folder, place=place) if uri else None
    except FileFormatError:
        return None


def _files_below(
    folder: Path, suffixes: tuple[str, ...], subfolders: Iterable[str], *, depth: int = 1
) -> Iterator[Path]:
    """Yield the files with these suffixes in subfolders, or at most ``depth`` levels down."""
    for subfolder in subfolders:
        level = [folder / subfolder]
        for _ in range(depth):
            below: list[Path] = []
            for place in level:
                record_access(place)
                try:
                    entries = sorted(os.scandir(place), key=lambda entry: entry.name)
                except OSError:
                    continue
                yield from (
                    Path(entry.path)
                    for entry in entries
                    if entry.name.endswith(suffixes) and entry.is_file()
                )
                below += (Path(entry.path) for entry in entries if entry.is_dir())
            level = below


def file_stem(file: Path) -> str:
    """Return the name of a file before its first suffix."""
    return file.name.partition(".")[0]


def _text(file: Path) -> str:
    """Return the beginning of a file as text, or an empty text if it cannot be read."""
    record_access(file)
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read(_MAX_TEXT)
    except (OSError, ValueError):
        return ""
