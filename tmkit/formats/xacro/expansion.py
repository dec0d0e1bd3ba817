"""Expansion of xacro files to the text of a URDF or SRDF file.

The program xacro of ROS (extra ``formats``) expands a file. Its expressions are Python and its
includes read any file, so the caller needs the permission of the user. ``$(find NAME)`` returns the
folder of a package by the rules of :meth:`PackageResolver.find_package`.

Unlike xacro, the attributes of the root element may use arguments whose defaults the file declares
below them.

xacro has global state and prints to the standard error. A lock therefore admits one expansion at a
time, and warnings become import notes. An exception becomes one error with the innermost file. The
error has the line in which the text of the fault first occurs, if any.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.dom.minidom import Element
from xml.parsers.expat import ErrorString, ExpatError

from tmkit._support.extras import importing
from tmkit._support.source_location import Note, SourceLocation, did_you_mean
from tmkit.errors import FileFormatError, MissingFileError
from tmkit.formats.mesh.package_uris import PackageResolver, XacroArguments
from tmkit.formats.mesh.ros_packages import package_around

_LOCK = threading.Lock()
"""Lock of xacro's global state."""

_ARGUMENT = re.compile(r"\$\(\s*arg\s+(\S+?)\s*\)")
"""Use of an argument."""

_EXPRESSION = re.compile(r"when evaluating expression '(.*)'", re.DOTALL)
"""Expression in a message of xacro."""

_UNKNOWN_MACRO = re.compile(r"unknown macro name: (\S+)")
"""Message of xacro about a macro."""

_TAGS = re.compile(r"<(?:xacro:)?arg\s[^>]*>", re.DOTALL)
"""Declaration of an argument in a xacro file or a launch file in XML."""

_ATTRIBUTE = r"""\b{}\s*=\s*["']([^"']*)["']"""
"""Attribute of a tag, by name."""

_LAUNCH_ARGUMENT = re.compile(
    r"""DeclareLaunchArgument\(\s*["'](\w+)["'][^()]*?default_value\s*=\s*["']([^"']*)["']"""
)
"""Declaration of an argument with a default in a launch file in Python."""

_DEFAULT_SUFFIXES = (".xacro", ".launch", ".launch.py", ".launch.xml")
"""Suffixes of the files that are searched for the defaults of arguments."""

_MAX_FILES = 500
"""Largest number of files that are searched for defaults."""

_MAX_LISTED_NAMES = 24
"""Largest number of names of a folder in a message."""

_MAX_BYTES = 1_000_000
"""Number of bytes of a file that are searched for a text."""


class _Arguments(dict[str, str]):
    """Values by argument, which record the names that a file declares or uses."""

    def __init__(self, arguments: XacroArguments) -> None:
        super().__init__(arguments.values)
        self._declared = arguments.declared

    def __contains__(self, name: object) -> bool:
        self._declared.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self._declared.add(name)
        return super().__getitem__(name)


def expand_xacro(
    path: Path, arguments: XacroArguments, packages: PackageResolver, *, note: Note
) -> bytes:
    """Return the text to which a xacro file expands, which runs code of the file.

    Args:
        path: the file.
        arguments: values of its arguments; the names that it declares are added.
        packages: resolver of package names.
        note: receives the warnings of xacro.

    Raises:
        FileFormatError: if the expansion fails. The error has the innermost file and, if possible,
            the line.
        MissingExtraError: if xacro is not installed.
    """
    with importing("xacro", "formats", f"{path}: expanding xacro needs"):
        import xacro
        import xacro.color
        import xacro.substitution_args

    values = _Arguments(arguments)
    with _expansion(xacro, partial(_find_package, xacro, packages), note):
        try:
            xacro.init_stacks(str(path))
            document = xacro.parse(None, str(path))
            _declare_root_arguments(document.documentElement, values)
            xacro.process_doc(document, mappings=values)
            return str(document.toprettyxml(indent="  ")).encode()
        except Exception as error:  # an expression may raise any exception
            file = Path((xacro.filestack or [None])[-1] or path)
            raise _expansion_error(error, file, values) from None


def _declare_root_arguments(root: Element, values: _Arguments) -> None:
    """Set the arguments in attributes of the root to the defaults that its children declare.

    xacro evaluates these attributes first, and files such as those of Universal Robots declare the
    arguments below.
    """
    attributes = " ".join(value for _, value in root.attributes.items())
    for name in dict.fromkeys(_ARGUMENT.findall(attributes)):
        for child in root.getElementsByTagName("xacro:arg"):
            default = child.getAttribute("default")
            is_literal = child.hasAttribute("default") and "$" not in default
            if child.getAttribute("name") == name and child.parentNode is root and is_literal:
                dict.setdefault(values, name, default)


def _find_package(xacro: ModuleType, packages: PackageResolver, name: str) -> str:
    """Return the folder of a package that the file on top of xacro's stack names."""
    file = Path((xacro.filestack or [None])[-1] or "_")
    return str(packages.find_package(name, file.parent))


@contextmanager
def _expansion(xacro: ModuleType, find: Any, note: Note) -> Iterator[None]:
    """Replace the search of packages and the output of xacro during a block.

    Args:
        xacro: module of the program.
        find: function from the name of a package to its folder.
        note: receives warnings.
    """

    def _record(*words: object, **_colours: object) -> None:
        place = SourceLocation(str((xacro.filestack or [None])[-1]))
        note(place, " ".join(map(str, words)))

    arguments = xacro.substitution_args
    functions: Sequence[tuple[Any, str, Any]] = (
        (arguments, "_eval_find", find),
        (xacro.color, "message", _record),
        (xacro, "print_location", lambda: None),
    )
    with _LOCK:
        previous = [getattr(owner, name) for owner, name, _ in functions]
        previous_find = arguments._eval_dict["find"]
        try:
            for owner, name, function in functions:
                setattr(owner, name, function)
            arguments._eval_dict["find"] = find
            yield
        finally:
            for (owner, name, _), function in zip(functions, previous, strict=True):
                setattr(owner, name, function)
            arguments._eval_dict["find"] = previous_find
            xacro.substitution_args_context["arg"] = {}


def _expansion_error(error: Exception, file: Path, values: _Arguments) -> FileFormatError:
    """Return the error of an expansion, in one line.

    Args:
        error: exception of xacro.
        file: innermost file.
        values: values of the arguments at the failure.
    """
    causes = [error]
    while isinstance(inner := getattr(causes[-1], "exc", None), Exception):
        causes.append(inner)
    cause = causes[-1]
    if type(cause).__name__ == "ArgException":
        return _missing_argument_error(str(cause), file, values)
    if isinstance(cause, ExpatError):
        reason = f"is not XML: {ErrorString(cause.code)}"
        return _error_at(file, reason, line=cause.lineno)
    if isinstance(cause, MissingFileError):
        name = str(cause.data["path"])
        return _error_at(file, f"$(find {name}): {cause}", token=name)
    if isinstance(cause, OSError) and cause.filename is not None:
        name = os.path.basename(str(cause.filename))
        return _error_at(file, _reason_of_failure(cause), token=name)
    text = " ".join(str(cause).split()) or type(cause).__name__
    if isinstance(cause, KeyError):
        text = f"there is no {text}"
    expressions = [
        match[1]
        for item in causes
        if (match := _EXPRESSION.search(str(getattr(item, "suffix", "")))) is not None
    ]
    if expressions:
        expression = expressions[-1].strip()
        whole = f"${{{expression}}}"
        return _error_at(file, f"xacro: {text} in '{whole}'", token=whole)
    macro = _UNKNOWN_MACRO.search(text)
    token = f"<{macro[1]}" if macro is not None else text
    return _error_at(file, f"xacro: {text}", token=token)


def _reason_of_failure(error: OSError) -> str:
    """Return the reason of a file that cannot be read, with the names beside a missing one."""
    path = Path(os.path.normpath(str(error.filename)))
    parts = [path, *path.parents]
    missing = [part for part in parts if not part.exists()]
    if not missing:
        return f"'{path}' cannot be read: {error.strerror}"
    folder, name = missing[-1].parent, missing[-1].name
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        names = []
    hint = did_you_mean(name, names)
    hint += f" (it has: {', '.join(names)})" if 0 < len(names) <= _MAX_LISTED_NAMES else ""
    return f"there is no file '{path}': {folder} has no '{name}'{hint}"


def _error_at(
    file: Path, reason: str, *, token: str = "", line: int | None = None
) -> FileFormatError:
    """Return the error of a file, with a line if possible.

    Args:
        file: the file.
        reason: the reason.
        token: text whose first line is that of the error.
        line: 1-based line, instead of that of a text.
    """
    lines = _text_of(file).split("\n")
    if line is None and token:
        line = next((number for number, text in enumerate(lines, 1) if token in text), None)
    source_line = lines[line - 1].strip("\r") if line is not None and line <= len(lines) else None
    return FileFormatError.at(file, reason, line=line, source_line=source_line)


def _missing_argument_error(name: str, file: Path, values: _Arguments) -> FileFormatError:
    """Return the error for arguments without values, with their defaults in other files.

    Args:
        name: name of the argument that xacro needs first.
        file: file that uses it.
        values: values of the other arguments.
    """
    text = _text_of(file)
    declared = {_attribute(tag, "name") for tag in _TAGS.findall(text)}
    names = dict.fromkeys([name, *_ARGUMENT.findall(text)])
    missing = [item for item in names if item == name or item not in {*values.keys(), *declared}]
    listed = " and ".join(f"'{item}'" for item in missing)
    plural = len(missing) > 1
    options = " ".join(f"--xacro {item}:=VALUE" for item in missing)
    entries = ", ".join(f"'{item}': VALUE" for item in missing)
    reason = (
        f"the argument{'s' * plural} {listed} {'have' if plural else 'has'} no value: give"
        f" {options} (ReadingOptions(allow_xacro={{{entries}}}) in Python)"
    )
    defaults = _defaults_elsewhere(missing, file)
    if defaults:
        reason += "; defaults elsewhere are " + ", ".join(
            f"{item}:={value} in {place}" for item, (value, place) in defaults.items()
        )
    return _error_at(file, reason, token=f"$(arg {name})")


def _defaults_elsewhere(names: Sequence[str], file: Path) -> dict[str, tuple[str, SourceLocation]]:
    """Return defaults of arguments, with their locations, in other files of the package."""
    folder = package_around(file.parent) or file.parent
    candidates = [
        Path(place, name)
        for place, folders, files in os.walk(folder)
        for name in sorted(files)
        if folders.sort() is None and name.endswith(_DEFAULT_SUFFIXES)
    ]
    defaults: dict[str, tuple[str, SourceLocation]] = {}
    for candidate in candidates[:_MAX_FILES]:
        text = _text_of(candidate)
        declarations = [
            (_attribute(tag[0], "name"), _attribute(tag[0], "default"), tag.start())
            for tag in _TAGS.finditer(text)
        ]
        declarations += [
            (match[1], match[2], match.start()) for match in _LAUNCH_ARGUMENT.finditer(text)
        ]
        for name, value, start in declarations:
            if name in names and value and name not in defaults:
                line = text.count("\n", 0, start) + 1
                defaults[name] = value, SourceLocation(str(candidate), line)
    return {name: defaults[name] for name in names if name in defaults}


def _attribute(tag: str, name: str) -> str:
    """Return the value of an attribute in the text of a tag, or an empty text."""
    match = re.search(_ATTRIBUTE.format(name), tag)
    return "" if match is None else match[1]


def _text_of(file: Path) -> str:
    """Return the beginning of a file as text, or an empty text if it cannot be read."""
    try:
        with open(file, "rb") as stream:
            return stream.read(_MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
