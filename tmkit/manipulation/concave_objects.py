"""Concave meshes of a scene in convex pieces, for planning, checks and simulation.

The convex hull of a mug has neither cavity nor handle, so a hand finds no wall to hold and nothing
fits inside. Planning therefore replaces the meshes of objects, and of frames on which objects are
placed, by convex pieces (:mod:`tmkit.formats.quick_pieces`). MoveIt and Drake leave that to the
author of the model.

Replaced is a mesh that collides, has no level of its own, and whose hull fills a recess into which
a finger fits. Its frame has a class, or is below a movable frame: links of robots have neither. A
mesh of the level ``"hull"`` stays its hull.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

from tmkit.formats.quick_pieces import needs_pieces, quick_pieces
from tmkit.graph import AttachedShape, SceneGraph
from tmkit.robots import movable_frames

logger = logging.getLogger(__name__)


def with_convex_pieces(scene: SceneGraph, *, frames: Collection[str] | None = None) -> SceneGraph:
    """Return a scene whose concave meshes collide in convex pieces, as :func:`tmkit.plan` makes it.

    A mesh takes about a second, once: pieces are kept in the cache on the disk. The scene itself is
    returned if it has no such mesh.

    Args:
        scene: the scene.
        frames: names of the frames to look at; by default those with a class and those below
            movable frames.
    """
    for frame in _object_frames(scene) if frames is None else frames:
        shapes = scene.shapes(frame)
        if any(_is_concave(part) for part in shapes):
            scene = scene.set_shapes(
                frame, [piece for part in shapes for piece in _in_pieces(part, frame)]
            )
    return scene


def with_shapes_of(scene: SceneGraph, planned: SceneGraph) -> SceneGraph:
    """Return a scene whose concave meshes are in pieces where another has other shapes, as one that was planned with.

    Args:
        scene: the scene.
        planned: the scene with the same frames.
    """
    frames = [frame for frame in _object_frames(scene) if frame in planned]
    return with_convex_pieces(
        scene, frames=[frame for frame in frames if scene.shapes(frame) != planned.shapes(frame)]
    )


def hull_fault(scene: SceneGraph, object: str) -> str | None:
    """Return that an object is planned as the convex hull of a concave mesh, and the remedy; None if it is not.

    Args:
        scene: the scene.
        object: frame of the object.
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
    below = {frame for object in movable_frames(scene) for frame in scene.subtree(object)}
    return (frame for frame in scene.frame_names if frame in below or scene.classes(frame))


def _is_concave(part: AttachedShape) -> bool:
    return (
        part.collision
        and part.level is None
        and part.shape.kind == "mesh"
        and needs_pieces(part.shape)
    )


def _in_pieces(part: AttachedShape, frame: str) -> tuple[AttachedShape, ...]:
    """Return a shape, or a concave mesh that does not collide with the pieces that do."""
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
    return (
        mesh,
        *(
            AttachedShape(
                piece, part.pose, visual=False, friction=part.friction, level="hull"
            ).replace(stamp=part.stamp)
            for piece in pieces
        ),
    )


def _name(part: AttachedShape, frame: str) -> str:
    return (
        f"the mesh '{part.shape.source}' of '{frame}'"
        if part.shape.source
        else f"the mesh of '{frame}'"
    )
