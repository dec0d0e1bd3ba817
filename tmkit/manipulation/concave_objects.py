"""Convex decomposition of a scene's concave meshes, for planning, checks and simulation.

The convex hull of a mug has neither cavity nor handle. A hand then has no wall to grasp, and no
object fits inside. Planning therefore replaces the meshes of objects and of their supports by
convex pieces (:mod:`tmkit.formats.quick_pieces`). In MoveIt and Drake, this is the task of the
model's author.

A mesh is replaced if it collides, has no explicit level, and its hull fills a recess into which a
finger fits. Its frame has a class or is below a movable frame, which excludes the links of robots.
A mesh of the level ``"hull"`` keeps its hull.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tmkit.formats.quick_pieces import mesh_name, needs_pieces, with_quick_pieces
from tmkit.graph import SceneGraph
from tmkit.robots import movable_frames


def with_convex_pieces(scene: SceneGraph, *, frames: Collection[str] | None = None) -> SceneGraph:
    """Return a scene whose concave meshes collide as convex pieces, as in :func:`tmkit.plan`.

    The decomposition of a mesh takes about a second, once, since pieces are cached on the disk. The
    scene itself is returned if it has no such mesh.

    Args:
        scene: scene with meshes.
        frames: names of the frames to process. Defaults to the frames with a class and those below
            movable frames.
    """
    return with_quick_pieces(scene, _object_frames(scene) if frames is None else frames)


def with_shapes_of(scene: SceneGraph, planned: SceneGraph) -> SceneGraph:
    """Return a scene in which meshes that differ from a planned scene are decomposed.

    Args:
        scene: scene with meshes.
        planned: scene with the same frames, whose meshes may be decomposed.
    """
    frames = [frame for frame in _object_frames(scene) if frame in planned]
    return with_convex_pieces(
        scene, frames=[frame for frame in frames if scene.shapes(frame) != planned.shapes(frame)]
    )


def hull_fault(scene: SceneGraph, object: str) -> str | None:
    """Return a message if an object collides as the convex hull of a concave mesh, or else None.

    Args:
        scene: scene with the object.
        object: frame of the object.

    Returns:
        Message with the mesh and the remedy.
    """
    for part in scene.shapes(object):
        if not part.collision or part.shape.kind != "mesh" or part.level not in (None, "hull"):
            continue
        if not needs_pieces(part.shape):
            continue
        remedy = (
            "remove its level 'hull'"
            if part.level == "hull"
            else "make an object of it with `tmkit object add` (extra 'formats')"
        )
        return f"{mesh_name(part, object)} is concave and collides as its convex hull: {remedy}"
    return None


def _object_frames(scene: SceneGraph) -> Iterator[str]:
    """Yield the frames with a class and those below movable frames."""
    movable = {frame for object in movable_frames(scene) for frame in scene.subtree(object)}
    return (frame for frame in scene.frame_names if frame in movable or scene.classes(frame))
