"""Links that are drawn but have no collision shape: to plan with them is to plan through them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tmkit._support.source_location import Note
from tmkit.formats.mesh.package_uris import VISUAL_AS_COLLISION
from tmkit.formats.spec.model import SceneSpecification
from tmkit.graph import SceneGraph

_MOST_NAMED = 8
"""Links that a message names."""


def visual_only_frames(scene: SceneGraph, frames: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the frames with visual shapes and without collision shapes, in the scene's order.

    Args:
        scene: the scene.
        frames: the frames to look at; all if omitted.
    """
    shapes = (
        (name, scene.shapes(name)) for name in scene.frame_names if frames is None or name in frames
    )
    return tuple(
        name for name, parts in shapes if parts and not any(part.collision for part in parts)
    )


def visual_only_warning(names: Sequence[str]) -> str:
    """Return a sentence that these links cannot collide, and how to load them such that they can."""
    named = ", ".join(f"'{name}'" for name in names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return (
        f"links with visual shapes but no collision shape, which cannot collide: {named}{more}; to"
        f" collide with their visual shapes: --meshes {VISUAL_AS_COLLISION}"
        f" (ReadingOptions(meshes='{VISUAL_AS_COLLISION}') in Python)"
    )


def note_visual_only(robot: SceneSpecification, note: Note) -> None:
    """Note the links of a robot that are drawn and cannot collide."""
    links = [
        frame
        for frame in robot.frames
        if frame.geometry and not any(part.collision for part in frame.geometry)
    ]
    if links:
        note(links[0].place, visual_only_warning([frame.name for frame in links]))
