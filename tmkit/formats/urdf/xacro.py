"""Files of macros (xacro), expanded by xacrodoc (extra ``xacro``): only files that the user names, if that is allowed.

Expressions of xacro are Python, and its includes read any file: whoever expands a file runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tmkit.errors import FileFormatError, install_command
from tmkit.formats.mesh.package_uris import PackageResolver


def expanded(path: Path, arguments: Mapping[str, str], packages: PackageResolver) -> bytes:
    """Return the URDF that a file expands to; ``$(find NAME)`` finds packages that the user gave or around the file.

    Args:
        arguments: values of ``<xacro:arg>``, by name.

    Raises:
        FileFormatError: xacro refuses the file, or xacrodoc is not installed.
    """
    try:
        from xacrodoc import XacroDoc, packages as found
    except ImportError:
        reason = f"xacro files are expanded by xacrodoc, which is not installed: {install_command('xacro')}"
        raise FileFormatError.at(path, reason) from None
    found.reset()
    found.update_package_cache(packages.named)
    found.look_in([str(folder) for folder in (*packages.folders, *packages.ros_folders)])
    try:
        text: str = XacroDoc.from_file(path, subargs=dict(arguments), resolve_packages=False).dom.toprettyxml(
            indent="  "
        )
    except Exception as error:  # whatever an expression raises
        raise FileFormatError.at(path, f"xacro refuses the file: {type(error).__name__}: {error}") from error
    finally:
        found.reset()
    return text.encode()
