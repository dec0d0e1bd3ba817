"""Reading scene files: which reader reads which, how several files become one scene, and scenes that show a goal.

The files of one load are merged in order. A file may use names that another declares: parents are looked up when all
files have been read. Within one robray file, constants and classes are valid in that file and what it includes, not in
the other files of the load. A reader is imported when a file of its kind is read.

A *goal scene* gives target poses of some objects. Its files are read over the start scene. What they declare and the
start has too is *stated*: it gets the parent and pose of the goal. What they declare anew is added. All else stays,
except that an object which a stated one would carry along becomes a child of the root: the goal does not say where it
should be. Pairs that the goal's files, SRDF among them, allow to collide may do so in the goal.

Invariants: only movable frames (class ``movable`` or ``moveable``) change their place; the start scene is untouched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit._support.limits import ReadingLimits
from tmkit._support.source_location import ImportLog, ImportNote, Note, did_you_mean, reported, unheard
from tmkit.errors import FileFormatError, SceneError
from tmkit.formats.mesh.meshes import MeshLoader, MeshSpec
from tmkit.formats.mesh.package_uris import SCENE_SUFFIXES, USD_SUFFIXES, PackageResolver, located, project_folders
from tmkit.formats.spec.build import WORLD, add_allowed, add_specified_frame, build_scene, frames_by_name, whole_name
from tmkit.formats.spec.model import AllowedPairSpec, FrameSpec, FunctionBlockSpec, SceneSpecification
from tmkit.formats.spec.values import specification_of_scene, zero_pose_of
from tmkit.graph import SceneEdit, SceneGraph
from tmkit.spatial import Pose

if TYPE_CHECKING:
    from tmkit.formats.srdf import RobotSemantics

_NEAR_IN_SPELLING = [suffix for suffix in SCENE_SUFFIXES if suffix != ".world"]  # a .blend is not meant to be one
_OTHER_TOOLS = {  # near in spelling to formats that are read, or what users of other tools try first
    ".xacro": "a xacro file can run code and read any file; expand the file first, where you trust it: "
    "xacro FILE.xacro > FILE.urdf, or allow that: load_scene(..., allow_xacro=True), tmkit scene ... --allow-xacro",
    **dict.fromkeys(
        (".stl", ".obj", ".dae", ".ply"),
        "this is a mesh; put it on a frame with tk.Mesh or refer to it from a scene file",
    ),
}


def read_draft(path: Path, unsaved: Mapping[Path, str], *, note: Note) -> SceneSpecification:
    """Read a file that an editor has open (``unsaved``: texts by real path), and build its scene without meshes."""
    resolver = PackageResolver.of((), meshes="skip")
    loader = MeshLoader(replace(resolver, allowed=project_folders([path]), unsaved=unsaved))
    draft = _read(path, loader, note, [])
    simple = replace(draft, frames=tuple(map(_without_meshes, draft.frames)))
    build_scene(_with_missing_parents([simple], note=note), loader=loader)
    return draft


def _without_meshes(frame: FrameSpec) -> FrameSpec:
    kept = tuple(part for part in frame.geometry if not isinstance(part.shape, MeshSpec))
    return frame if len(kept) == len(frame.geometry) else replace(frame, geometry=kept, inertia=None)


def read_scene(paths: Sequence[Path], loader: MeshLoader, note: Note, *, complete: bool) -> SceneGraph:
    """Return the scene of some files."""
    if len(paths) == 1 and paths[0].suffix.lower() == ".json":
        from tmkit.formats.json.scene import read_json_scene

        return read_json_scene(paths[0], loader=loader)
    if len(paths) == 1 and paths[0].suffix.lower() in (".gltf", ".glb"):
        from tmkit.formats.gltf.scene import read_gltf_scene

        return read_gltf_scene(paths[0], loader=loader, note=note)
    semantics: list[RobotSemantics] = []
    specs = [_read(path, loader, note, semantics) for path in paths]
    if not complete:
        specs = _with_missing_parents(specs, note=note)
    scene = build_scene(specs, loader=loader)
    if not semantics:
        return scene
    from tmkit.formats.srdf.values import with_semantics

    return with_semantics(scene, semantics, note=note)


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


def read_specifications(
    files: Sequence[str | os.PathLike[str]], *, package_path: Sequence[str | os.PathLike[str]] = (),
    packages: Mapping[str, str | os.PathLike[str]] | None = None, meshes: str = "load",
    allow_folders: Sequence[str | os.PathLike[str]] = (), limits: ReadingLimits | None = None,
    on_note: Callable[[ImportNote], None] | None = None,
) -> FileContents:  # fmt: skip
    """Read scene files separately, without building a scene; for the arguments and errors see :func:`load_scene`."""
    if not files:
        raise SceneError("at least one file is needed")
    note = ImportLog(on_note).note
    semantics: list[RobotSemantics] = []
    paths, resolver = located(files, package_path, packages, meshes, allow_folders, limits)
    loader = MeshLoader(resolver)
    specs = tuple(_read(path, loader, note, semantics) for path in paths)
    return FileContents(specs, tuple(semantics), loader, note)


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
    from tmkit.formats.urdf.reader import read_urdf
    from tmkit.formats.urdf.shapes import with_always_colliding, with_readable_meshes

    packages = loader.packages
    if path in packages.xacro:
        from tmkit.formats.urdf.reader import expanded

        data = expanded(path, packages.xacro[path], packages)
        robot = read_urdf(path.with_name(f"{path.name} (expanded)"), packages=packages, note=note, data=data)
    else:
        read = read_urdf if path.suffix.lower() == ".urdf" else read_sdf
        robot = read(path, packages=packages, note=note)
    robot = with_readable_meshes(robot, loader=loader, note=note)
    used = {frame.parent for frame in robot.frames} | {frame.name for frame in robot.frames if frame.geometry}
    trees = sum(frame.parent == WORLD and frame.name in used for frame in robot.frames)
    is_robot = path.suffix.lower() not in (".sdf", ".world") or trees == 1
    return with_always_colliding(robot, loader=loader, note=note) if is_robot else robot


def _read(path: Path, loader: MeshLoader, note: Note, semantics: list[RobotSemantics]) -> SceneSpecification:
    """Read one file by its suffix; what SRDF files say is added to ``semantics``, since it is about a whole scene."""
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

        return read_mjcf(path, packages=loader.packages, note=note)
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

        return specification_of_scene(read_json_scene(path, loader=loader), path=str(path))
    other = _OTHER_TOOLS.get(suffix)
    if other is not None:
        raise FileFormatError.at(path, f"{other} (accepted: {', '.join(SCENE_SUFFIXES)})")
    if path.is_dir():
        raise FileFormatError.at(path, "is a folder; give a scene file in it")
    hint, accepted = did_you_mean(path.suffix, _NEAR_IN_SPELLING), ", ".join(SCENE_SUFFIXES)
    raise FileFormatError.at(path, f"unknown scene format '{path.suffix}'{hint} (accepted: {accepted})")


_MOVABLE = frozenset({"movable", "moveable"})
_TOLERANCE = 1e-6  # metres and radians: what stands still may be written with less digits


@dataclass(frozen=True)
class GoalScene:
    """A scene that shows a goal.

    Attributes:
        scene: the start scene with the stated objects where the goal wants them.
        stated: the movable frames of the start whose place the goal states, in its order.
    """

    scene: SceneGraph
    stated: tuple[str, ...]


def load_goal_scene(
    start: SceneGraph, *files: str | os.PathLike[str], package_path: Sequence[str | os.PathLike[str]] = (),
    packages: Mapping[str, str | os.PathLike[str]] | None = None, meshes: str = "load",
    allow_folders: Sequence[str | os.PathLike[str]] = (), limits: ReadingLimits | None = None,
    on_note: Callable[[ImportNote], None] | None = None,
) -> GoalScene:  # fmt: skip
    """Load files that show a goal, over the scene at the start.

    Args:
        start: the scene at the start; frames that the files name and do not declare are looked up in it.
        *files: as for :func:`load_scene`; a whole scene will do, with the robot or without.
        package_path: folders in which packages of ``package://`` URIs are looked for first.
        packages: as for :func:`load_scene`.
        meshes: as for :func:`load_scene`.
        allow_folders: as for :func:`load_scene`.
        limits: as for :func:`load_scene`.
        on_note: as for :func:`load_scene`.

    Raises:
        MissingFileError: a file is not there; the message names the nearest that is.
        FileFormatError: a file is wrong, moves what is not movable, or names an undeclared parent.
        MeshError: a mesh is missing or broken.
    """
    read = read_specifications(
        files, package_path=package_path, packages=packages, meshes=meshes, allow_folders=allow_folders, limits=limits,
        on_note=on_note,
    )  # fmt: skip
    goal = frames_by_name(frame for spec in read.specifications for frame in spec.frames)
    stated = tuple(name for name, frame in goal.items() if name in start and _is_movable(name, start, frame))
    for name, frame in goal.items():
        if name in start and name not in stated:
            _require_unmoved(frame, start)
        _require_parent(frame, start, goal)
    with start.edit() as edit:
        _take_off(edit, start, stated)
        _put(edit, goal, stated, read.loader)
        add_allowed(edit, read.specifications)
    scene = edit.finish()
    if read.semantics:
        from tmkit.formats.srdf.values import with_semantics

        scene = with_semantics(scene, read.semantics, note=read.note)
    return GoalScene(scene, stated)


def _is_movable(name: str, start: SceneGraph, frame: FrameSpec) -> bool:
    return bool(_MOVABLE & {*start.classes(name), *frame.classes}) and start.parent(name) is not None


def _require_unmoved(frame: FrameSpec, start: SceneGraph) -> None:
    """Refuse a goal that wants the furniture elsewhere."""
    if frame.parent is None:
        return
    distances = start.local_pose(frame.name).distance(zero_pose_of(frame))
    if frame.parent != start.parent(frame.name) or max(distances) > _TOLERANCE:
        raise frame.place.error(
            f"the goal moves '{frame.name}', which is of no class 'movable' or 'moveable' and so stays"
        )


def _require_parent(frame: FrameSpec, start: SceneGraph, goal: dict[str, FrameSpec]) -> None:
    if frame.parent is None or frame.parent in goal or frame.parent in start:
        return
    hint = did_you_mean(frame.parent, [*goal, *start.frame_names])
    reason = f"the frame '{frame.name}' has the parent '{frame.parent}', which neither goal nor start has{hint}"
    raise (frame.parent_place or frame.place).error(reason)


def _take_off(edit: SceneEdit, start: SceneGraph, stated: tuple[str, ...]) -> None:
    """Make stated objects, and those that they would carry along, children of their root."""
    carried = [
        frame
        for frame in start.frame_names
        if start.parent(frame) in stated and frame not in stated and _MOVABLE & {*start.classes(frame)}
    ]
    for frame in (*stated, *carried):
        edit.reparent(frame, start.root(frame), pose=Pose.identity())


def _put(edit: SceneEdit, goal: dict[str, FrameSpec], stated: tuple[str, ...], loader: MeshLoader) -> None:
    """Add what is new and put stated objects in their place, parents first."""
    waiting = [frame for name, frame in goal.items() if name in stated or name not in edit.scene]
    while waiting:
        ready = [frame for frame in waiting if frame.parent is None or frame.parent in edit.scene]
        for frame in ready:
            if frame.name not in edit.scene:
                add_specified_frame(edit, frame, loader)
        if not ready:  # parents are known to exist, so they wait for each other
            raise waiting[0].place.error(f"the parents of '{waiting[0].name}' form a cycle")
        waiting = [frame for frame in waiting if frame not in ready]
    for name in stated:
        frame = goal[name]
        with reported(frame.place):
            edit.reparent(name, frame.parent or edit.scene.root(name), pose=zero_pose_of(frame))
