"""Reading scene files: which reader reads which, and how several files become one scene.

The files of one load are merged in order. A file may use names that another declares: parents are
looked up when all files have been read. Within one robray file, constants and classes are valid in
that file and what it includes, not in the other files of the load. A reader is imported when a file
of its kind is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tmkit._support.source_location import ImportLog, ImportNote, Note, did_you_mean, unheard
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
from tmkit.formats.reading_options import ReadingOptions
from tmkit.formats.registry import find_format, located, readable_suffixes
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

_FAR_IN_SPELLING = ".world"
"""A suffix that is not suggested: a .blend is not meant to be one."""


# Numbers of a file may overflow. What becomes infinite or no number is refused by the value that it
# is part of.
_UNWARNED = np.errstate(all="ignore")


@_UNWARNED
def read_draft(path: Path, unsaved: Mapping[Path, str], *, note: Note) -> SceneSpecification:
    """Read a file that an editor has open (``unsaved``: texts by real path), and build its scene without meshes."""
    resolver = PackageResolver.of(ReadingOptions(meshes="skip"))
    loader = MeshLoader(
        replace(resolver, allowed_folders=project_folders([path]), unsaved=unsaved), note
    )
    draft = _read(path, loader, note, [])
    simple = replace(draft, frames=tuple(map(_without_meshes, draft.frames)))
    build_scene(_with_missing_parents([simple], note=note), loader=loader)
    return draft


def _without_meshes(frame: FrameSpec) -> FrameSpec:
    kept = tuple(part for part in frame.geometry if not isinstance(part.shape, MeshSpec))
    return (
        frame if len(kept) == len(frame.geometry) else replace(frame, geometry=kept, inertia=None)
    )


@_UNWARNED
def read_scene(
    paths: Sequence[Path], loader: MeshLoader, note: Note, *, complete: bool
) -> SceneGraph:
    """Return the scene of some files."""
    semantics: list[RobotSemantics] = []
    if len(paths) == 1:
        result = _read_by_suffix(paths[0], loader, note, semantics)
        if isinstance(result, SceneGraph):  # whole: specifications have no groups
            return result
        specs = [_specified(result, paths[0], semantics)]
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
    """Note joints that can move by their own limits, and not by those of the joints that mimic them."""
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
    """Return what files say, with a root for each parent that none declares, and without pairs of unknown frames."""
    frames = [frame for spec in specs for frame in spec.frames]
    known = {
        WORLD,
        *(frame.name for frame in frames),
        *(alias for frame in frames for alias in frame.aliases),
    }
    added: dict[str, FrameSpec] = {}
    for frame in frames:
        parent = frame.parent
        if parent is None or parent in known or parent in added:
            continue
        place, hint = frame.parent_place or frame.place, did_you_mean(parent, sorted(known))
        note(
            place,
            f"'{parent}', the parent of '{frame.name}', is declared by no file and shown as a"
            f" root{hint}",
        )
        added[parent] = FrameSpec(name=parent, parent=None, place=place)
    completed = [
        replace(spec, allowed=_known_pairs(spec, known | {*added}, note)) for spec in specs
    ]
    return [SceneSpecification(frames=tuple(added.values())), *completed]


def _known_pairs(
    spec: SceneSpecification, known: set[str], note: Note
) -> tuple[AllowedPairSpec, ...]:
    kept = []
    for pair in spec.allowed:
        unknown = [
            name
            for name in (pair.first, pair.second)
            if name not in known and link_of_part(name) not in known
        ]
        if unknown:
            note(pair.place, f"'{unknown[0]}' is declared by no file, so the pair is ignored")
        else:
            kept.append(pair)
    return tuple(kept)


@dataclass(frozen=True)
class FileContents:
    """What scene files say."""

    # frames and allowed pairs of each file, in order; those of SRDF files are empty
    specifications: tuple[SceneSpecification, ...]
    semantics: tuple[RobotSemantics, ...]  # what SRDF files say, included ones too
    loader: MeshLoader
    note: Note


@_UNWARNED
def read_specifications(
    files: Sequence[str | os.PathLike[str]],
    *,
    reading: ReadingOptions | None = None,
    on_note: Callable[[ImportNote], None] | None = None,
) -> FileContents:
    """Read scene files separately, without building a scene; for the arguments and errors see :func:`load_scene`."""
    if not files:
        raise SceneError("at least one file is needed")
    note = ImportLog(on_note).note
    semantics: list[RobotSemantics] = []
    paths, resolver = located(files, reading or ReadingOptions())
    loader = MeshLoader(resolver, note)
    specs = tuple(_read(path, loader, note, semantics) for path in paths)
    return FileContents(specs, tuple(semantics), loader, note)


@_UNWARNED
def read_function_blocks(
    *files: str | os.PathLike[str], reading: ReadingOptions | None = None
) -> tuple[FunctionBlockSpec, ...]:
    """Return the function blocks that scene files declare; only RSG-DSL has any.

    Args:
        *files: the files, as for :func:`load_scene`.
        reading: where imports are sought; no mesh is read.

    Raises:
        FileFormatError, MissingFileError: as :func:`load_scene`.
    """
    wanted = [file for file in files if str(file).lower().endswith(RSG.suffixes)]
    if not wanted:
        return ()
    paths, resolver = located(wanted, replace(reading or ReadingOptions(), meshes="skip"))
    loader = MeshLoader(resolver)
    read = [_read(path, loader, unheard, []) for path in paths]
    return tuple(block for specification in read for block in specification.function_blocks)


def _read(
    path: Path, loader: MeshLoader, note: Note, semantics: list[RobotSemantics]
) -> SceneSpecification:
    """Read one file by its suffix, into a specification; for ``semantics`` see :func:`_specified`."""
    return _specified(_read_by_suffix(path, loader, note, semantics), path, semantics)


def _specified(
    result: SceneGraph | SceneSpecification | RobotSemantics,
    path: Path,
    semantics: list[RobotSemantics],
) -> SceneSpecification:
    """Return the specification of a reader's result; an SRDF file is appended to ``semantics``, having no frames."""
    if isinstance(result, SceneSpecification):
        return result
    if isinstance(result, SceneGraph):
        return specification_of_scene(result, path=str(path))
    semantics.append(result)
    return SceneSpecification()


def _read_by_suffix(
    path: Path, loader: MeshLoader, note: Note, semantics: list[RobotSemantics]
) -> SceneGraph | SceneSpecification | RobotSemantics:
    """Return the result of the reader of a file's suffix, as its format's :data:`~tmkit.formats.format.Read`."""
    try:
        found = None if path.is_dir() and not path.suffix else find_format(path)
    except PlugInError as error:
        raise FileFormatError.at(path, str(error)) from error
    if found is None:
        raise _unknown_format(path)
    reading = Reading(loader, note, lambda other: _read(other, loader, note, semantics))
    try:
        result = found.value.read(path, reading)
    except FileFormatError:
        raise
    except (SceneError, ConfigurationError) as error:
        # of values that no reader has checked by themselves
        raise FileFormatError.at(path, str(error)) from error
    except (MissingExtraError, MissingFileError, MemoryError):
        raise
    except Exception as error:
        if not found.distribution:
            raise
        failure = error if isinstance(error, TmkitError) else found.error_of(error)
        raise FileFormatError.at(path, str(failure)) from error
    if isinstance(result, SceneGraph | SceneSpecification):
        return result
    from tmkit.formats.srdf.values import RobotSemantics

    if isinstance(result, RobotSemantics):
        return result
    failure = found.failure(
        f"returns {repr(result)[:60]}, expected a SceneGraph or a SceneSpecification"
    )
    raise FileFormatError.at(path, str(failure))


def _unknown_format(path: Path) -> FileFormatError:
    """Return the error for a file whose suffix no format has."""
    suffixes = readable_suffixes()
    accepted = ", ".join(suffixes)
    if path.suffix.lower() in MESH_SUFFIXES:
        reason = "this is a mesh; put it on a frame with tk.Mesh or refer to it from a scene file"
        return FileFormatError.at(path, f"{reason} (accepted: {accepted})")
    if path.is_dir():
        return FileFormatError.at(path, "is a folder; give a scene file in it")
    hint = did_you_mean(path.suffix, [suffix for suffix in suffixes if suffix != _FAR_IN_SPELLING])
    return FileFormatError.at(
        path, f"unknown scene format '{path.suffix}'{hint} (accepted: {accepted})"
    )
