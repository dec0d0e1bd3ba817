"""Reader of goal scenes, which define target poses of objects relative to a start scene.

Frames of the start that the files declare are *stated*: they get the parent and pose of the goal.
New frames are added, and other frames stay. An object on a stated object becomes a child of the
root, since the goal does not define its pose. Pairs that the files, including SRDF files, allow to
collide may collide in the goal.

Invariants: only movable frames (class ``movable`` or ``moveable``) change parent or pose; the start
    scene is not modified.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from tmkit._support.source_location import ImportNote, did_you_mean, locate_errors
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.reading import read_specifications
from tmkit.formats.reading_options import ReadingOptions
from tmkit.formats.spec.build import add_allowed, add_specified_frame, find_frame, frames_by_name
from tmkit.formats.spec.model import FrameSpec
from tmkit.formats.spec.values import zero_pose_of
from tmkit.graph import SceneEdit, SceneGraph
from tmkit.spatial import Pose

_MOVABLE = frozenset({"movable", "moveable"})
"""Classes of a movable frame."""

_POSE_TOLERANCE = 1e-6
"""Largest deviation of a fixed frame, whose numbers a goal file may round [m or rad]."""


@dataclass(frozen=True)
class GoalScene:
    """A scene that defines a goal.

    Attributes:
        scene: start scene with the goal frames at their goals.
        goal_frames: movable frames of the start with a goal, in the order of the files.
    """

    scene: SceneGraph
    goal_frames: tuple[str, ...]


def load_goal_scene(
    start: SceneGraph,
    *files: str | os.PathLike[str],
    reading: ReadingOptions | None = None,
    on_note: Callable[[ImportNote], None] | None = None,
) -> GoalScene:
    """Load the files of a goal scene.

    Args:
        start: start scene, which contains the frames that the files use without a declaration.
        *files: as for :func:`load_scene`; a complete scene is accepted, with or without the robot.
        reading: as for :func:`load_scene`.
        on_note: as for :func:`load_scene`.

    Raises:
        MissingFileError: if a file is missing; the message contains the nearest existing name.
        FileFormatError: if a file is invalid, moves a frame that is not movable, or has an
            undeclared parent.
        MeshError: if a mesh is missing or invalid.
    """
    contents = read_specifications(files, reading=reading, on_note=on_note)
    goal = frames_by_name(frame for spec in contents.specifications for frame in spec.frames)
    goal_frames = tuple(
        name for name, frame in goal.items() if name in start and _is_movable(name, start, frame)
    )
    goal = {name: _with_own_parent(frame, start, goal) for name, frame in goal.items()}
    for name, frame in goal.items():
        if name in start and name not in goal_frames:
            _require_unmoved(frame, start)
        _require_parent(frame, start, goal)
    with start.edit() as edit:
        _detach_objects(edit, start, goal_frames)
        _place_objects(edit, goal, goal_frames, contents.loader)
        add_allowed(edit, contents.specifications)
    scene = edit.finish()
    if contents.semantics:
        from tmkit.formats.srdf.values import allow_disabled_pairs

        scene = allow_disabled_pairs(scene, contents.semantics, note=contents.note)
    return GoalScene(scene, goal_frames)


def _is_movable(name: str, start: SceneGraph, frame: FrameSpec) -> bool:
    return (
        bool(_MOVABLE & {*start.classes(name), *frame.classes}) and start.parent(name) is not None
    )


def _with_own_parent(frame: FrameSpec, start: SceneGraph, goal: dict[str, FrameSpec]) -> FrameSpec:
    """Return a frame whose parent has the name of the start scene.

    The parent may be named by a joint. The start scene does not store the names of fixed joints, so
    a frame that stays has its parent there.
    """
    parent = frame.parent
    if parent is None or parent in goal or parent in start:
        return frame
    own_parent = find_frame(start, parent)
    if own_parent is None and frame.name in start and not _is_movable(frame.name, start, frame):
        own_parent = start.parent(frame.name)
    return frame if own_parent is None else replace(frame, parent=own_parent)


def _require_unmoved(frame: FrameSpec, start: SceneGraph) -> None:
    """Reject a goal that moves a frame that is not movable."""
    if frame.parent is None:
        return
    distances = start.local_pose(frame.name).distance(zero_pose_of(frame))
    if frame.parent != start.parent(frame.name) or max(distances) > _POSE_TOLERANCE:
        raise frame.place.error(
            f"the goal moves '{frame.name}', which is of no class 'movable' or 'moveable' and so"
            " stays"
        )


def _require_parent(frame: FrameSpec, start: SceneGraph, goal: dict[str, FrameSpec]) -> None:
    """Reject a frame whose parent is neither in the goal nor in the start."""
    if frame.parent is None or frame.parent in goal or frame.parent in start:
        return
    hint = did_you_mean(frame.parent, [*goal, *start.frame_names])
    reason = (
        f"the frame '{frame.name}' has the parent '{frame.parent}', which neither goal nor start"
        f" has{hint}"
    )
    raise (frame.parent_place or frame.place).error(reason)


def _detach_objects(edit: SceneEdit, start: SceneGraph, goal_frames: tuple[str, ...]) -> None:
    """Make goal frames, and movable frames on them, children of their root."""
    children = [
        frame
        for frame in start.frame_names
        if start.parent(frame) in goal_frames
        and frame not in goal_frames
        and _MOVABLE & {*start.classes(frame)}
    ]
    for frame in (*goal_frames, *children):
        edit.reparent(frame, start.root(frame), pose=Pose.identity())


def _place_objects(
    edit: SceneEdit, goal: dict[str, FrameSpec], goal_frames: tuple[str, ...], loader: MeshLoader
) -> None:
    """Add new frames, parents first, and move goal frames to their goals."""
    pending = [
        frame for name, frame in goal.items() if name in goal_frames or name not in edit.scene
    ]
    while pending:
        ready = [frame for frame in pending if frame.parent is None or frame.parent in edit.scene]
        for frame in ready:
            if frame.name not in edit.scene:
                add_specified_frame(edit, frame, loader)
        if not ready:  # all parents are declared, so a cycle is the only cause
            raise pending[0].place.error(f"the parents of '{pending[0].name}' form a cycle")
        pending = [frame for frame in pending if frame not in ready]
    for name in goal_frames:
        frame = goal[name]
        with locate_errors(frame.place):
            edit.reparent(name, frame.parent or edit.scene.root(name), pose=zero_pose_of(frame))
