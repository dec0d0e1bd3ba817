"""Which files a load of scenes begins with, and where what they name may lie."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tmkit._support.data import resolve_name
from tmkit._support.limits import ReadingLimits
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.mesh.sandbox import project_folders

USD_SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
SCENE_SUFFIXES = (
    ".robray",
    ".rsg",
    ".urdf",
    ".sdf",
    ".world",
    ".xml",
    *USD_SUFFIXES,
    ".gltf",
    ".glb",
    ".json",
    ".srdf",
)


def located(
    files: Sequence[str | os.PathLike[str]], package_path: Sequence[str | os.PathLike[str]],
    packages: Mapping[str, str | os.PathLike[str]] | None, meshes: str, allow_folders: Sequence[str | os.PathLike[str]],
    limits: ReadingLimits | None,
) -> tuple[list[Path], PackageResolver]:  # fmt: skip
    """Return the files that the user named, and a resolver that may read what lies around them."""
    trusted = PackageResolver.of(package_path, allow_folders=allow_folders, packages=packages, meshes=meshes)
    paths = [trusted.find_scene(file) or resolve_name(file, "scenes", suffixes=SCENE_SUFFIXES) for file in files]
    allowed = (*project_folders(paths), *trusted.allowed)
    return paths, replace(trusted, allowed=allowed, limits=limits or ReadingLimits())
