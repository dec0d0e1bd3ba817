"""Loading scenes: which reader reads which file, and how several files become one scene.

The files of one load are merged in order. What one declares another may name: parents are looked up when everything has
been read. Within one robray file, constants and classes hold for itself and what it includes; they do not leak into the
other files of the load.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tmkit.data import resolve_name
from tmkit.errors import FileFormatError, SceneError, nearest_name
from tmkit.files.remarks import Note, Remark, RemarkLog
from tmkit.formats.building import build_scene
from tmkit.formats.drafts import SceneDraft
from tmkit.formats.json_scene import read_json_scene
from tmkit.formats.meshes import MeshLoader
from tmkit.formats.packages import PackageResolver
from tmkit.formats.robray import read_robray
from tmkit.formats.scene_drafts import draft_of_scene
from tmkit.formats.urdf import read_urdf
from tmkit.formats.urdf_collisions import with_always_colliding
from tmkit.graph import SceneGraph

__all__ = ["SCENE_SUFFIXES", "load_scene", "read_drafts"]

SCENE_SUFFIXES = (".robray", ".urdf", ".json")


def load_scene(
    *files: str | os.PathLike[str],
    package_path: Sequence[str | os.PathLike[str]] = (),
    on_remark: Callable[[Remark], None] | None = None,
) -> SceneGraph:
    """Load scene files and merge them, in order, into one scene.

    Args:
        *files: each a bare name of a scene of ours (``"panda_table"``) or a path to a ``.robray``, ``.urdf`` or
            ``.json`` file.
        package_path: folders in which packages of ``package://`` URIs are looked for first.
        on_remark: called with everything that a reader mended or left out instead of refusing the file, such as a
            joint without limits; the same is logged as a warning. ``remarks.append`` collects them in a list.

    Returns:
        The scene, with the root ``world``.

    Raises:
        MissingFileError: a file is not there; the message names the nearest that is.
        FileFormatError: a file is wrong, or two files declare the same frame or joint; the message names file, line and
            what was expected.
        MeshError: a mesh is missing or broken.
    """
    if not files:
        raise SceneError("load_scene needs at least one file")
    packages = PackageResolver.of(package_path)
    loader = MeshLoader(packages)
    paths = [resolve_name(file, "scenes", suffixes=SCENE_SUFFIXES) for file in files]
    if len(paths) == 1 and paths[0].suffix.lower() == ".json":
        return read_json_scene(paths[0], loader=loader)
    remarks = RemarkLog(on_remark)
    drafts = [_read(path, loader, remarks.note) for path in paths]
    return build_scene(drafts, loader=loader)


def read_drafts(
    files: Sequence[str | os.PathLike[str]],
    *,
    package_path: Sequence[str | os.PathLike[str]] = (),
    on_remark: Callable[[Remark], None] | None = None,
) -> tuple[list[SceneDraft], MeshLoader]:
    """Return what files say, each by itself, and a loader for their meshes; see :func:`load_scene`."""
    if not files:
        raise SceneError("at least one file is needed")
    loader = MeshLoader(PackageResolver.of(package_path))
    note = RemarkLog(on_remark).note
    return [_read(resolve_name(file, "scenes", suffixes=SCENE_SUFFIXES), loader, note) for file in files], loader


def _read(path: Path, loader: MeshLoader, note: Note) -> SceneDraft:
    """Read one file by its suffix."""
    suffix = path.suffix.lower()
    if suffix == ".robray":
        return read_robray(path, packages=loader.packages, read_other=lambda other: _read(other, loader, note))
    if suffix == ".urdf":
        return with_always_colliding(read_urdf(path, packages=loader.packages, note=note), loader=loader)
    if suffix == ".json":
        return draft_of_scene(read_json_scene(path, loader=loader), path=str(path))
    near = nearest_name(path.suffix, SCENE_SUFFIXES)
    hint = f"; did you mean '{near}'?" if near is not None else ""
    accepted = ", ".join(SCENE_SUFFIXES)
    raise FileFormatError.at(path, f"unknown scene format '{path.suffix}'{hint} (accepted: {accepted})")
