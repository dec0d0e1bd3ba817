"""Scenes that show a goal: target poses of some objects, read over the scene at the start.

What the files declare and the start has too is *stated*: it gets the parent and pose of the goal.
What they declare anew is added. All else stays, except that an object which a stated one would
carry along becomes a child of the root: the goal does not say where it should be. Pairs that the
goal's files, SRDF among them, allow to collide may do so in the goal.

Invariants: only movable frames (class ``movable`` or ``moveable``) change their place; the start
    scene is untouched.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from tmkit._support.source_location import ImportNote, did_you_mean, reported
from tmkit.formats.mesh.meshes import MeshLoader
from tmkit.formats.reading import read_specifications
from tmkit.formats.reading_options import ReadingOptions
from tmkit.formats.spec.build import add_allowed, add_specified_frame, frames_by_name
from tmkit.formats.spec.model import FrameSpec
from tmkit.formats.spec.values import zero_pose_of
from tmkit.graph import SceneEdit, SceneGraph
from tmkit.spatial import Pose

_MOVABLE = frozenset({"movable", "moveable"})
_POSE_TOLERANCE = 1e-6  # metres and radians: what stands still may be written with less digits


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
    start: SceneGraph,
    *files: str | os.PathLike[str],
    reading: ReadingOptions | None = None,
    on_note: Callable[[ImportNote], None] | None = None,
) -> GoalScene:
    """Load files that show a goal, over the scene at the start.

    Args:
        start: the scene at the start; frames that the files name and do not declare are looked up
            in it.
        *files: as for :func:`load_scene`; a whole scene will do, with the robot or without.
        reading: as for :func:`load_scene`.
        on_note: as for :func:`load_scene`.

    Raises:
        MissingFileError: a file is not there; the message names the nearest that is.
        FileFormatError: a file is wrong, moves what is not movable, or names an undeclared parent.
        MeshError: a mesh is missing or broken.
    """
    read = read_specifications(files, reading=reading, on_note=on_note)
    goal = frames_by_name(frame for spec in read.specifications for frame in spec.frames)
    stated = tuple(
        name for name, frame in goal.items() if name in start and _is_movable(name, start, frame)
    )
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
        from tmkit.formats.srdf.values import allow_disabled_pairs

        scene = allow_disabled_pairs(scene, read.semantics, note=read.note)
    return GoalScene(scene, stated)


def _is_movable(name: str, start: SceneGraph, frame: FrameSpec) -> bool:
    return (
        bool(_MOVABLE & {*start.classes(name), *frame.classes}) and start.parent(name) is not None
    )


def _require_unmoved(frame: FrameSpec, start: SceneGraph) -> None:
    """Refuse a goal that wants the furniture elsewhere."""
    if frame.parent is None:
        return
    distances = start.local_pose(frame.name).distance(zero_pose_of(frame))
    if frame.parent != start.parent(frame.name) or max(distances) > _POSE_TOLERANCE:
        raise frame.place.error(
            f"the goal moves '{frame.name}', which is of no class 'movable' or 'moveable' and so"
            " stays"
        )


def _require_parent(frame: FrameSpec, start: SceneGraph, goal: dict[str, FrameSpec]) -> None:
    if frame.parent is None or frame.parent in goal or frame.parent in start:
        return
    hint = did_you_mean(frame.parent, [*goal, *start.frame_names])
    reason = (
        f"the frame '{frame.name}' has the parent '{frame.parent}', which neither goal nor start"
        f" has{hint}"
    )
    raise (frame.parent_place or frame.place).error(reason)


def _take_off(edit: SceneEdit, start: SceneGraph, stated: tuple[str, ...]) -> None:
    """Make stated objects, and those that they would carry along, children of their root."""
    carried = [
        frame
        for frame in start.frame_names
        if start.parent(frame) in stated
        and frame not in stated
        and _MOVABLE & {*start.classes(frame)}
    ]
    for frame in (*stated, *carried):
        edit.reparent(frame, start.root(frame), pose=Pose.identity())


def _put(
    edit: SceneEdit, goal: dict[str, FrameSpec], stated: tuple[str, ...], loader: MeshLoader
) -> None:
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
