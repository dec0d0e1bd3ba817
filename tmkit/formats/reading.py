"""Reading scene files: which reader reads which, and how several files become one scene.

The files of one load are merged in order. A file may use names that another declares: parents are looked up when all
files have been read. Within one robray file, constants and classes are valid in that file and what it includes, not in
the other files of the load. A reader is imported when a file of its kind is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tmkit._support.limits import ReadingLimits
from tmkit._support.source_location import ImportLog, ImportNote, Note, did_you_mean, unheard
from tmkit.errors import ConfigurationError, FileFormatError, SceneError
from tmkit.formats.mesh.meshes import MeshLoader, MeshSpec
from tmkit.formats.mesh.package_uris import SCENE_SUFFIXES, USD_SUFFIXES, PackageResolver, located, project_folders
from tmkit.formats.spec.build import WORLD, build_scene, whole_name
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, FunctionBlockSpec, SceneSpecification
from tmkit.formats.spec.values import specification_of_scene
from tmkit.graph import SceneGraph

if TYPE_CHECKING:
    from tmkit.formats.srdf.values import RobotSemantics

_NEAR_IN_SPELLING = [suffix for suffix in SCENE_SUFFIXES if suffix != ".world"]  # a .blend is not meant to be one
_OTHER_TOOLS = {  # near in spelling to formats that are read, or what users of other tools try first
    ".xacro": "a xacro file can run code and read any file; expand the file first, where you trust it: "
    "xacro FILE.xacro > FILE.urdf, or allow that: load_scene(..., allow_xacro=True), tmkit scene ... --allow-xacro",
    **dict.fromkeys(
        (".stl", ".obj", ".dae", ".ply"),
        "this is a mesh; put it on a frame with tk.Mesh or refer to it from a scene file",
    ),
}


# Numbers of a file may overflow. What becomes infinite or no number is refused by the value that it is part of.
_UNWARNED = np.errstate(all="ignore")


@_UNWARNED
def read_draft(path: Path, unsaved: Mapping[Path, str], *, note: Note) -> SceneSpecification:
    """Read a file that an editor has open (``unsaved``: texts by real path), and build its scene without meshes."""
    resolver = PackageResolver.of((), meshes="skip")
    loader = MeshLoader(replace(resolver, allowed=project_folders([path]), unsaved=unsaved), note)
    draft = _read(path, loader, note, [])
    simple = replace(draft, frames=tuple(map(_without_meshes, draft.frames)))
    build_scene(_with_missing_parents([simple], note=note), loader=loader)
    return draft


def _without_meshes(frame: FrameSpec) -> FrameSpec:
    kept = tuple(part for part in frame.geometry if not isinstance(part.shape, MeshSpec))
    return frame if len(kept) == len(frame.geometry) else replace(frame, geometry=kept, inertia=None)


@_UNWARNED
def read_scene(paths: Sequence[Path], loader: MeshLoader, note: Note, *, complete: bool) -> SceneGraph:
    """Return the scene of some files."""
    semantics: list[RobotSemantics] = []
    if len(paths) == 1 and paths[0].suffix.lower() == ".json":
        from tmkit.formats.json.scene import read_json_scene

        return read_json_scene(paths[0], loader=loader, read_other=lambda other: _read(other, loader, note, semantics))
    if len(paths) == 1 and paths[0].suffix.lower() in (".gltf", ".glb"):
        from tmkit.formats.gltf.scene import read_gltf_scene

        return read_gltf_scene(paths[0], loader=loader, note=note)
    specs = [_read(path, loader, note, semantics) for path in paths]
    if not complete:
        specs = _with_missing_parents(specs, note=note)
    scene = build_scene(specs, loader=loader)
    _note_locked_leaders(scene, specs, note=note)
    if not semantics:
        return scene
    from tmkit.formats.srdf.values import with_semantics

    return with_semantics(scene, semantics, note=note)


def _note_locked_leaders(scene: SceneGraph, specs: Sequence[SceneSpecification], *, note: Note) -> None:
    """Note joints that can move by their own limits, and not by those of the joints that mimic them."""
    places = {frame.name: frame.joint.place or frame.place for spec in specs for frame in spec.frames}
    for frame, (lower, upper) in zip(scene.joint_frames, scene.joint_limits.tolist(), strict=True):
        joint = scene.joint(frame)
        if lower == upper and joint.lower < joint.upper:
            reason = f"the limits of the joints that mimic '{joint.name}' leave it only the value {lower:g}"
            note(places[frame], f"{reason}; it cannot move")


def _with_missing_parents(specs: Sequence[SceneSpecification], *, note: Note) -> list[SceneSpecification]:
    """Return what files say, with a root for each parent that none declares, and without pairs of unknown frames."""
    frames = [frame for spec in specs for frame in spec.frames]
    known = {WORLD, *(frame.name for frame in frames), *(alias for frame in frames for alias in frame.aliases)}
    added: dict[str, FrameSpec] = {}
    for frame in frames:
        parent = frame.parent
        if parent is None or parent in known or parent in added:
            continue
        place, hint = frame.parent_place or frame.place, did_you_mean(parent, sorted(known))
        note(place, f"'{parent}', the parent of '{frame.name}', is declared by no file and shown as a root{hint}")
        added[parent] = FrameSpec(name=parent, parent=None, place=place)
    completed = [replace(spec, allowed=_known_pairs(spec, known | {*added}, note)) for spec in specs]
    return [SceneSpecification(frames=tuple(added.values())), *completed]


def _known_pairs(spec: SceneSpecification, known: set[str], note: Note) -> tuple[AllowedPairSpec, ...]:
    kept = []
    for pair in spec.allowed:
        unknown = [name for name in (pair.first, pair.second) if name not in known and whole_name(name) not in known]
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
    package_path: Sequence[str | os.PathLike[str]] = (),
    packages: Mapping[str, str | os.PathLike[str]] | None = None,
    meshes: str = "load",
    allow_folders: Sequence[str | os.PathLike[str]] = (),
    limits: ReadingLimits | None = None,
    on_note: Callable[[ImportNote], None] | None = None,
) -> FileContents:
    """Read scene files separately, without building a scene; for the arguments and errors see :func:`load_scene`."""
    if not files:
        raise SceneError("at least one file is needed")
    note = ImportLog(on_note).note
    semantics: list[RobotSemantics] = []
    paths, resolver = located(files, package_path, packages, meshes, allow_folders, limits)
    loader = MeshLoader(resolver, note)
    specs = tuple(_read(path, loader, note, semantics) for path in paths)
    return FileContents(specs, tuple(semantics), loader, note)


@_UNWARNED
def read_function_blocks(
    *files: str | os.PathLike[str], allow_folders: Sequence[str | os.PathLike[str]] = ()
) -> tuple[FunctionBlockSpec, ...]:
    """Return the function blocks that scene files declare; only RSG-DSL has any.

    Args:
        *files: the files, as for :func:`load_scene`.
        allow_folders: folders that the files may import from.

    Raises:
        FileFormatError, MissingFileError: as :func:`load_scene`.
    """
    wanted = [file for file in files if str(file).lower().endswith(".rsg")]
    if not wanted:
        return ()
    paths, resolver = located(wanted, (), None, "skip", allow_folders, None)
    loader = MeshLoader(resolver)
    read = [_read(path, loader, unheard, []) for path in paths]
    return tuple(block for specification in read for block in specification.function_blocks)


def _read_description(path: Path, loader: MeshLoader, note: Note) -> SceneSpecification:
    """Read a file in URDF, xacro or SDF; xacro is expanded, and has lines of its expansion in messages."""
    from tmkit.formats.sdf.reader import read_sdf
    from tmkit.formats.urdf.always_colliding import with_always_colliding
    from tmkit.formats.urdf.reader import read_urdf
    from tmkit.formats.urdf.shapes import with_readable_meshes

    packages = loader.packages
    if path in packages.xacro:
        from tmkit.formats.urdf.reader import expanded

        data = expanded(path, packages.xacro[path], packages)
        robot = read_urdf(path.with_name(f"{path.name} (expanded)"), packages=packages, note=note, data=data)
    else:
        read = read_urdf if path.suffix.lower() == ".urdf" else read_sdf
        robot = read(path, packages=packages, note=note)
    robot = with_readable_meshes(robot, loader=loader, note=note)
    if packages.meshes != "skip":
        _note_visual_only(robot, note)
    used = {frame.parent for frame in robot.frames} | {frame.name for frame in robot.frames if frame.geometry}
    trees = sum(frame.parent == WORLD and frame.name in used for frame in robot.frames)
    is_robot = path.suffix.lower() not in (".sdf", ".world") or trees == 1
    return with_always_colliding(robot, loader=loader, note=note) if is_robot else robot


def _note_visual_only(robot: SceneSpecification, note: Note) -> None:
    """Note the links of a robot that are drawn and cannot collide."""
    from tmkit.formats.visual_only import visual_only_warning

    links = [frame for frame in robot.frames if frame.geometry and not any(part.collision for part in frame.geometry)]
    if links:
        note(links[0].place, visual_only_warning([frame.name for frame in links]))


def _read(path: Path, loader: MeshLoader, note: Note, semantics: list[RobotSemantics]) -> SceneSpecification:
    """Read one file by its suffix; what SRDF files say is added to ``semantics``, since it is about a whole scene."""
    try:
        return _read_by_suffix(path, loader, note, semantics)
    except FileFormatError:
        raise
    except (SceneError, ConfigurationError) as error:  # of values that no reader has checked by themselves
        raise FileFormatError.at(path, str(error)) from error


def _read_by_suffix(path: Path, loader: MeshLoader, note: Note, semantics: list[RobotSemantics]) -> SceneSpecification:
    suffix = path.suffix.lower()
    if suffix == ".robray":
        from tmkit.formats.robray.reader import read_robray

        return read_robray(
            path, packages=loader.packages, read_other=lambda other: _read(other, loader, note, semantics)
        )
    if suffix == ".rsg":
        from tmkit.formats.rsg.reader import read_rsg

        return read_rsg(path, loader=loader, read_other=lambda other: _read(other, loader, note, semantics), note=note)
    if suffix == ".xml":
        from tmkit.formats.mjcf.reader import read_mjcf

        model = read_mjcf(path, packages=loader.packages, note=note)
        _note_visual_only(model, note)
        return model
    if suffix in (".urdf", ".sdf", ".world") or path in loader.packages.xacro:
        return _read_description(path, loader, note)
    if suffix in USD_SUFFIXES:
        from tmkit.formats.usd.reader import read_usd

        return read_usd(path, packages=loader.packages, note=note)
    if suffix in (".gltf", ".glb"):
        from tmkit.formats.gltf.scene import read_gltf_scene

        return specification_of_scene(read_gltf_scene(path, loader=loader, note=note), path=str(path))
    if suffix == ".srdf":
        from tmkit.formats.srdf import read_srdf

        semantics.append(read_srdf(path, note=note))
        return SceneSpecification()
    if suffix == ".json":
        from tmkit.formats.json.scene import read_json_scene

        scene = read_json_scene(path, loader=loader, read_other=lambda other: _read(other, loader, note, semantics))
        return specification_of_scene(scene, path=str(path))
    other = _OTHER_TOOLS.get(suffix)
    if other is not None:
        raise FileFormatError.at(path, f"{other} (accepted: {', '.join(SCENE_SUFFIXES)})")
    if path.is_dir():
        raise FileFormatError.at(path, "is a folder; give a scene file in it")
    hint, accepted = did_you_mean(path.suffix, _NEAR_IN_SPELLING), ", ".join(SCENE_SUFFIXES)
    raise FileFormatError.at(path, f"unknown scene format '{path.suffix}'{hint} (accepted: {accepted})")
