"""Solids that a format has and another lacks, as closed convex meshes."""

from __future__ import annotations

import numpy as np

from tmkit.graph import Mesh, Shape

__all__ = ["SIDES", "frustum"]

SIDES = 64  # circles become polygons of so many corners


def frustum(bottom: float, top: float, height: float) -> Shape:
    """Return a cone, or a cone without its tip, centred along z.

    The circles are inscribed polygons of :data:`SIDES` corners, which stand 0.12 % of the radius inside at most.

    Args:
        bottom: radius at ``-height / 2`` in metres, above 0.
        top: radius at ``+height / 2``, 0 for a pointed cone.
        height: metres.
    """
    angles = 2.0 * np.pi * np.arange(SIDES) / SIDES
    circle = np.stack([np.cos(angles), np.sin(angles), np.zeros(SIDES)], axis=1)
    half = np.array([0.0, 0.0, 0.5 * height])
    here, after = np.arange(SIDES), (np.arange(SIDES) + 1) % SIDES
    low, tip = np.full(SIDES, SIDES), np.full(SIDES, SIDES + 1)
    vertices = [bottom * circle - half, [-half], [half]]
    faces = [np.stack([low, after, here], axis=1)]
    if top == 0.0:
        faces.append(np.stack([here, after, tip], axis=1))
    else:
        above, beyond = here + SIDES + 2, after + SIDES + 2
        vertices.append(top * circle + half)
        faces += [np.stack(corners, axis=1) for corners in ([here, after, beyond], [here, beyond, above])]
        faces.append(np.stack([tip, above, beyond], axis=1))
    return Mesh(np.concatenate(vertices), np.concatenate(faces).astype(np.int32))
