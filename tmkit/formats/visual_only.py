"""Warning about links with visual shapes but no collision shape, which motions ignore."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tmkit._support.source_location import Note
from tmkit.formats.mesh.package_uris import VISUAL_AS_COLLISION
from tmkit.formats.spec.model import SceneSpecification
from tmkit.graph import SceneGraph

_MAX_LISTED_LINKS = 8
"""Largest number of links in a message."""


def visual_only_frames(scene: SceneGraph, frames: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the frames with visual shapes and without collision shapes, in the scene's order.

    Args:
        scene: the scene.
        frames: candidates; all frames if omitted.
    """
    shapes_by_frame = (
        (name, scene.shapes(name)) for name in scene.frame_names if frames is None or name in frames
    )
    return tuple(
        name
        for name, shapes in shapes_by_frame
        if shapes and not any(shape.collision for shape in shapes)
    )


def visual_only_warning(names: Sequence[str]) -> str:
    """Return the warning that links cannot collide, with the option that changes it."""
    links = ", ".join(f"'{name}'" for name in names[:_MAX_LISTED_LINKS])
    if len(names) > _MAX_LISTED_LINKS:
        links += f" and {len(names) - _MAX_LISTED_LINKS} more"
    return (
        f"links with visual shapes but no collision shape, which cannot collide: {links}; to"
        f" collide with their visual shapes: --meshes {VISUAL_AS_COLLISION}"
        f" (ReadingOptions(meshes='{VISUAL_AS_COLLISION}') in Python)"
    )


def note_visual_only(robot: SceneSpecification, note: Note) -> None:
    """Note the links of a robot with visual shapes but no collision shape."""
    links = [
        frame
        for frame in robot.frames
        if frame.geometry and not any(part.collision for part in frame.geometry)
    ]
    if links:
        note(links[0].place, visual_only_warning([frame.name for frame in links]))
