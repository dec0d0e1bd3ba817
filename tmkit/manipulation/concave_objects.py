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

import logging
from collections.abc import Collection, Iterator

from tmkit.formats.quick_pieces import needs_pieces, quick_pieces
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.robots import movable_frames

logger = logging.getLogger(__name__)


def with_convex_pieces(scene: SceneGraph, *, frames: Collection[str] | None = None) -> SceneGraph:
    """Return a scene whose concave meshes collide as convex pieces, as in :func:`tmkit.plan`.

    The decomposition of a mesh takes about a second, once, since pieces are cached on the disk. The
    scene itself is returned if it has no such mesh.

    Args:
        scene: scene with meshes.
        frames: names of the frames to process. Defaults to the frames with a class and those below
            movable frames.
    """
    for frame in _object_frames(scene) if frames is None else frames:
        shapes = scene.shapes(frame)
        if any(_is_concave(part) for part in shapes):
            scene = scene.set_shapes(
                frame, [piece for part in shapes for piece in _decompose(part, frame)]
            )
    return scene


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
        return f"{_name(part, object)} is concave and collides as its convex hull: {remedy}"
    return None


def _object_frames(scene: SceneGraph) -> Iterator[str]:
    """Yield the frames with a class and those below movable frames."""
    movable = {frame for object in movable_frames(scene) for frame in scene.subtree(object)}
    return (frame for frame in scene.frame_names if frame in movable or scene.classes(frame))


def _is_concave(part: AttachedShape) -> bool:
    """Return whether a shape is a colliding mesh that needs convex pieces."""
    return (
        part.collision
        and part.level is None
        and part.shape.kind == "mesh"
        and needs_pieces(part.shape)
    )


def _decompose(part: AttachedShape, frame: str) -> tuple[AttachedShape, ...]:
    """Return a shape, or a concave mesh for display with its colliding convex pieces."""
    if not _is_concave(part):
        return (part,)
    pieces, error = quick_pieces(part.shape)
    if not pieces:
        logger.warning(
            "%s needs too many convex pieces and collides as its convex hull; `tmkit object add`"
            " makes closer ones",
            _name(part, frame),
        )
        return (part,)
    logger.info(
        "%s collides in %d convex pieces, within %.2g mm",
        _name(part, frame),
        len(pieces),
        1e3 * error,
    )
    mesh = part.replace(collision=False, friction=None, level=None)
    hulls = (
        AttachedShape(piece, part.pose, visual=False, friction=part.friction, level="hull")
        for piece in pieces
    )
    return (mesh, *(hull.replace(stamp=part.stamp) for hull in hulls))


def _name(part: AttachedShape, frame: str) -> str:
    """Return the name of a mesh for messages."""
    if part.shape.source:
        return f"the mesh '{part.shape.source}' of '{frame}'"
    return f"the mesh of '{frame}'"
