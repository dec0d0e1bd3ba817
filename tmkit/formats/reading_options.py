"""Options for reading scene files: search folders, meshes, limits and permissions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tmkit._support.limits import ReadingLimits


@dataclass(frozen=True)
class ReadingOptions:
    """Search folders, meshes, limits and permissions of a load.

    Args:
        package_path: folders in which packages of ``package://`` URIs and ``$(find NAME)`` are
            searched first, by the names of their folders and in their ``package.xml``.
        packages: folders of packages by name, as ``{"ur_description": "/robots/ur"}``. They precede
            all others.
        meshes: meshes of robot descriptions (URDF, SDF) to read. ``"load"`` reads all, and a
            missing or invalid collision mesh is an error. ``"available"`` omits such meshes, with a
            note for each. ``"skip"`` reads no mesh, for kinematics. ``"visual-as-collision"`` reads
            all, and links with visual shapes but no collision shapes collide as their visual
            shapes.
        allow_folders: folders with meshes and includes that the files may read, in addition to
            their project folders, packages and installed data; see
            :mod:`tmkit.formats.mesh.package_uris`.
        limits: limits on the size of files and the depth of includes; the defaults if omitted.
        allow_xacro: expand ``.xacro`` files, which needs the extra ``formats``. **This runs their
            code with your rights.** A mapping contains values of their arguments by name, as in
            ``{"dof": "7"}``.
    """

    package_path: Sequence[str | os.PathLike[str]] = ()
    packages: Mapping[str, str | os.PathLike[str]] | None = None
    meshes: str = "load"
    allow_folders: Sequence[str | os.PathLike[str]] = ()
    limits: ReadingLimits | None = None
    allow_xacro: bool | Mapping[str, str] = False
