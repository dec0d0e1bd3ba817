"""Options of reading scene files: where packages and meshes are sought, and what the files may do."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tmkit._support.limits import ReadingLimits


@dataclass(frozen=True)
class ReadingOptions:
    """Where the files of a scene are sought, which meshes are read, and what the files may do.

    Args:
        package_path: folders in which packages of ``package://`` URIs are looked for first.
        packages: the folders of packages by name, as ``{"ur_description": "/robots/ur"}``, before
            all others.
        meshes: the meshes of robot descriptions (URDF, SDF) to read. ``"load"`` reads all, and a
            collision mesh that is missing or broken is an error. ``"available"`` leaves such meshes
            out, with a note each. ``"skip"`` reads no mesh, for kinematics.
            ``"visual-as-collision"`` reads all, and links that have visual shapes but no collision
            shapes collide as their visual shapes.
        allow_folders: folders that the files may name meshes and includes in, besides those around
            the files themselves, packages, and what is installed; see
            :mod:`tmkit.formats.mesh.package_uris`.
        limits: limits on the size of files and the depth of includes; the defaults if omitted.
        allow_xacro: expand those of the files that are ``.xacro`` files to URDF, by the extra
            ``formats``. **That runs their code with your rights.** A mapping has the values of
            their arguments by name.
    """

    package_path: Sequence[str | os.PathLike[str]] = ()
    packages: Mapping[str, str | os.PathLike[str]] | None = None
    meshes: str = "load"
    allow_folders: Sequence[str | os.PathLike[str]] = ()
    limits: ReadingLimits | None = None
    allow_xacro: bool | Mapping[str, str] = False
