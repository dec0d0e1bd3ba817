"""Reader of scene files, which selects readers by suffix and merges several files into one scene.

The files of a load are merged in order. A file may use names that another declares, since parents
are resolved after all files have been read. Constants and classes of a robray file are valid in the
file and its includes, not in the other files of the load. Readers are imported on demand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tmkit._support.source_location import ImportLog, ImportNote, Note, did_you_mean, ignore_note
from tmkit.errors import (
    ConfigurationError,
    FileFormatError,
    MissingExtraError,
    MissingFileError,
    PlugInError,
    SceneError,
    TmkitError,
)
from tmkit.formats.format import Reading
from tmkit.formats.mesh.meshes import MESH_SUFFIXES, MeshLoader, MeshSpec
from tmkit.formats.mesh.package_uris import PackageResolver, project_folders
from tmkit.formats.moveit.robot_files import is_configuration_package
from tmkit.formats.reading_options import ReadingOptions
from tmkit.formats.registry import find_format, locate_files, readable_suffixes
from tmkit.formats.rsg.format import RSG
from tmkit.formats.spec.build import WORLD, build_scene, link_of_part
from tmkit.formats.spec.model import (
    AllowedPairSpec,
    FrameSpec,
    FunctionBlockSpec,
    SceneSpecification,
)
from tmkit.formats.spec.values import specification_of_scene
from tmkit.graph import SceneGraph

if TYPE_CHECKING:
    from tmkit.formats.srdf.values import RobotSemantics

_UNSUGGESTED_SUFFIX = ".world"
"""Suffix that errors do not suggest, since names such as .blend only look similar."""


# Numbers of a file may overflow. Every value rejects numbers that are not finite.
_NO_FLOAT_WARNINGS = np.errstate(all="ignore")


@_NO_FLOAT_WARNINGS
def read_unsaved_file(path: Path, unsaved: Mapping[Path, str], *, note: Note) -> SceneSpecification:
    """Return the specification of a file that an editor has open, and check its scene.

    The scene is built without meshes.

    Args:
        path: path of the file.
        unsaved: texts of open files by real path.
        note: receives import notes.
    """
    resolver = PackageResolver.of(ReadingOptions(meshes="skip"))
    loader = MeshLoader(
        replace(resolver, allowed_folders=project_folders([path]), unsaved=unsaved), note
    )
    specification = _read(path, loader, note, [])
    frames = tuple(map(_without_meshes, specification.frames))
    simplified = replace(specification, frames=frames)
    build_scene(_with_missing_parents([simplified], note=note), loader=loader)
    return specification


def _without_meshes(frame: FrameSpec) -> FrameSpec:
    """Return a frame without meshes, and then without inertia, which may depend on them."""
    parts = tuple(part for part in frame.geometry if not isinstance(part.shape, MeshSpec))
    if len(parts) == len(frame.geometry):
        return frame
    return replace(frame, geometry=parts, inertia=None)


@_NO_FLOAT_WARNINGS
def read_scene(
    paths: Sequence[Path], loader: MeshLoader, note: Note, *, complete: bool
) -> SceneGraph:
    """Return the scene of files; for ``complete`` see :func:`load_scene`."""
    semantics: list[RobotSemantics] = []
    if len(paths) == 1:
        result = _read_by_suffix(paths[0], loader, note, semantics)
        if isinstance(result, SceneGraph):  # a specification would lose groups
            return result
        specs = [_specification_of(result, paths[0], semantics)]
    else:
        specs = [_read(path, loader, note, semantics) for path in paths]
    if not complete:
        specs = _with_missing_parents(specs, note=note)
    scene = build_scene(specs, loader=loader)
    _note_locked_leaders(scene, specs, note=note)
    if not semantics:
        return scene
    from tmkit.formats.srdf.values import allow_disabled_pairs

    return allow_disabled_pairs(scene, semantics, note=note)


def _note_locked_leaders(
    scene: SceneGraph, specs: Sequence[SceneSpecification], *, note: Note
) -> None:
    """Note joints that cannot move because of the limits of joints that mimic them."""
    places = {
        frame.name: frame.joint.place or frame.place for spec in specs for frame in spec.frames
    }
    for frame, (lower, upper) in zip(scene.joint_frames, scene.joint_limits.tolist(), strict=True):
        joint = scene.joint(frame)
        if lower == upper and joint.lower < joint.upper:
            reason = (
                f"the limits of the joints that mimic '{joint.name}' leave it only the value"
                f" {lower:g}"
            )
            note(places[frame], f"{reason}; it cannot move")


def _with_missing_parents(
    specs: Sequence[SceneSpecification], *, note: Note
) -> list[SceneSpecification]:
    """Return specifications with a root for each undeclared parent.

    Allowed pairs of unknown frames are removed.
    """
    frames = [frame for spec in specs for frame in spec.frames]
    names = {
        WORLD,
        *(frame.name for frame in frames),
        *(alias for frame in frames for alias in frame.aliases),
    }
    new_roots: dict[str, FrameSpec] = {}
    for frame in frames:
        parent = frame.parent
        if parent is None or parent in names or parent in new_roots:
            continue
        place, hint = frame.parent_place or frame.place, did_you_mean(parent, sorted(names))
        note(
            place,
            f"'{parent}', the parent of '{frame.name}', is declared by no file and shown as a"
            f" root{hint}",
        )
        new_roots[parent] = FrameSpec(name=parent, parent=None, place=place)
    all_names = names | {*new_roots}
    return [
        SceneSpecification(frames=tuple(new_roots.values())),
        *(replace(spec, allowed=_pairs_of_frames(spec, all_names, note)) for spec in specs),
    ]


def _pairs_of_frames(
    spec: SceneSpecification, names: set[str], note: Note
) -> tuple[AllowedPairSpec, ...]:
    """Return the allowed pairs whose frames are declared, and note the others."""
    pairs = []
    for pair in spec.allowed:
        unknown_names = [
            name
            for name in (pair.first, pair.second)
            if name not in names and link_of_part(name) not in names
        ]
        if unknown_names:
            note(pair.place, f"'{unknown_names[0]}' is declared by no file, so the pair is ignored")
        else:
            pairs.append(pair)
    return tuple(pairs)


@dataclass(frozen=True)
class FileContents:
    """Contents of scene files.

    Attributes:
        specifications: frames and allowed pairs of each file, in order; empty for SRDF files.
        semantics: contents of SRDF files, including included ones.
        loader: loader of meshes.
        note: receives import notes.
    """

    specifications: tuple[SceneSpecification, ...]
    semantics: tuple[RobotSemantics, ...]
    loader: MeshLoader
    note: Note


@_NO_FLOAT_WARNINGS
def read_specifications(
    files: Sequence[str | os.PathLike[str]],
    *,
    reading: ReadingOptions | None = None,
    on_note: Callable[[ImportNote], None] | None = None,
) -> FileContents:
    """Read scene files separately, without building a scene.

    Args:
        files: as for :func:`load_scene`.
        reading: as for :func:`load_scene`.
        on_note: as for :func:`load_scene`.

    Raises:
        FileFormatError: if a file is invalid.
        MissingFileError: if a file is missing.
    """
    if not files:
        raise SceneError("at least one file is needed")
    note = ImportLog(on_note).note
    semantics: list[RobotSemantics] = []
    paths, resolver = locate_files(files, reading or ReadingOptions())
    loader = MeshLoader(resolver, note)
    specs = tuple(_read(path, loader, note, semantics) for path in paths)
    return FileContents(specs, tuple(semantics), loader, note)


@_NO_FLOAT_WARNINGS
def read_function_blocks(
    *files: str | os.PathLike[str], reading: ReadingOptions | None = None
) -> tuple[FunctionBlockSpec, ...]:
    """Return the function blocks of scene files; only RSG-DSL files have any.

    Args:
        *files: as for :func:`load_scene`.
        reading: search folders of imports; no mesh is read.

    Raises:
        FileFormatError: if a file is invalid.
        MissingFileError: if a file is missing.
    """
    rsg_files = [file for file in files if str(file).lower().endswith(RSG.suffixes)]
    if not rsg_files:
        return ()
    paths, resolver = locate_files(rsg_files, replace(reading or ReadingOptions(), meshes="skip"))
    loader = MeshLoader(resolver)
    specs = [_read(path, loader, ignore_note, []) for path in paths]
    return tuple(block for spec in specs for block in spec.function_blocks)


def _read(
    path: Path, loader: MeshLoader, note: Note, semantics: list[RobotSemantics]
) -> SceneSpecification:
    """Return the specification of a file; see :func:`_specification_of` for ``semantics``."""
    return _specification_of(_read_by_suffix(path, loader, note, semantics), path, semantics)


def _specification_of(
    result: SceneGraph | SceneSpecification | RobotSemantics,
    path: Path,
    semantics: list[RobotSemantics],
) -> SceneSpecification:
    """Return the specification of a reader's result.

    The content of an SRDF file is appended to ``semantics``; its specification is empty.
    """
    if isinstance(result, SceneSpecification):
        return result
    if isinstance(result, SceneGraph):
        return specification_of_scene(result, path=str(path))
    semantics.append(result)
    return SceneSpecification()


def _read_by_suffix(
    path: Path, loader: MeshLoader, note: Note, semantics: list[RobotSemantics]
) -> SceneGraph | SceneSpecification | RobotSemantics:
    """Return the result of :data:`~tmkit.formats.format.Read` for the file's suffix.

    A folder is the configuration package of a robot, whose SRDF is appended to ``semantics``.
    """
    if path.is_dir() and is_configuration_package(path):
        from tmkit.formats.moveit.configuration import read_moveit_scene

        reading = Reading(loader, note, lambda file: _read(file, loader, note, semantics))
        specification, configuration = read_moveit_scene(path, reading)
        semantics.append(configuration.semantics)
        return specification
    try:
        entry = None if path.is_dir() and not path.suffix else find_format(path)
    except PlugInError as error:
        raise FileFormatError.at(path, str(error)) from error
    if entry is None:
        raise _unknown_format_error(path)
    reading = Reading(loader, note, lambda file: _read(file, loader, note, semantics))
    try:
        result = entry.value.read(path, reading)
    except FileFormatError:
        raise
    except (SceneError, ConfigurationError) as error:
        # The core rejects combinations of values that the reader does not check.
        raise FileFormatError.at(path, str(error)) from error
    except (MissingExtraError, MissingFileError, MemoryError):
        raise
    except Exception as error:
        if not entry.distribution:
            raise
        failure = error if isinstance(error, TmkitError) else entry.error_of(error)
        raise FileFormatError.at(path, str(failure)) from error
    if isinstance(result, SceneGraph | SceneSpecification):
        return result
    from tmkit.formats.srdf.values import RobotSemantics

    if isinstance(result, RobotSemantics):
        return result
    failure = entry.failure(
        f"returns {repr(result)[:60]}, expected a SceneGraph or a SceneSpecification"
    )
    raise FileFormatError.at(path, str(failure))


def _unknown_format_error(path: Path) -> FileFormatError:
    """Return the error for a file with an unknown suffix."""
    suffixes = readable_suffixes()
    accepted = ", ".join(suffixes)
    if path.suffix.lower() in MESH_SUFFIXES:
        reason = "this is a mesh; put it on a frame with tk.Mesh or refer to it from a scene file"
        return FileFormatError.at(path, f"{reason} (accepted: {accepted})")
    if path.is_dir():
        return FileFormatError.at(
            path,
            "is a folder, but no configuration package of MoveIt (.setup_assistant, config/*.srdf);"
            " give a scene file in it",
        )
    candidates = [suffix for suffix in suffixes if suffix != _UNSUGGESTED_SUFFIX]
    hint = did_you_mean(path.suffix, candidates)
    return FileFormatError.at(
        path, f"unknown scene format '{path.suffix}'{hint} (accepted: {accepted})"
    )
