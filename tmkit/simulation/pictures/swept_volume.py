"""Picture of the swept volume of a plan, over the scene at the start.

The renderer has no transparency. Two pictures of one camera are therefore blended: the scene with
the cells as a solid body, and the scene without it. Bodies behind the cells remain visible.

Invariants: the bytes are a function of plan and cells. The physics is never run.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import AttachedShape, Mesh, SceneGraph
from tmkit.manipulation.swept_volume import SweptVolume
from tmkit.plans import Plan
from tmkit.simulation.camera import fit_camera
from tmkit.simulation.pictures.recording import check_output, write_picture
from tmkit.simulation.rendering.studio import Renderer, StillScene, render

_CELL_COLOR = (0.25, 0.45, 0.95, 1.0)
"""Red, green, blue and opacity of the cells before blending."""

_CELL_OPACITY = 0.45
"""Fraction of the picture with cells in the blend."""

_SIDES = tuple((axis, side) for axis in range(3) for side in (0, 1))
"""Sides of a cell: axis, and 0 for the lower or 1 for the upper side."""


def draw_swept_volume(
    plan: Plan,
    volume: SweptVolume,
    path: str | Path,
    *,
    width: int = 960,
    height: int = 640,
    renderer: Renderer = "auto",
) -> Path:
    """Draw the swept volume of a plan, half transparent, and return the path of the file.

    Args:
        plan: the plan.
        volume: swept volume of the plan, from :func:`tmkit.manipulation.swept_volume`.
        path: path of a ``.png`` or ``.jpg`` file.
        width: width of the picture [pixels].
        height: height of the picture [pixels].
        renderer: ``filament``, ``tiny``, or ``auto`` for the better one that is installed.

    Raises:
        OutputError: if the file cannot be written.
    """
    target = check_output(path, film=False)
    lower, upper = volume.bounds
    corners = np.array(list(itertools.product(*zip(lower, upper, strict=True))))
    still = StillScene(plan.scene, plan.q)
    camera = fit_camera(
        still, include=corners if len(volume.cells) else (), width=width, height=height
    )
    background = render(still, camera, renderer=renderer)
    foreground = render(_add_cells(plan.scene, volume), camera, q=plan.q, renderer=renderer)
    blend = (1.0 - _CELL_OPACITY) * background + _CELL_OPACITY * foreground
    return write_picture(target, np.rint(blend).astype(np.uint8))


def _add_cells(scene: SceneGraph, volume: SweptVolume) -> SceneGraph:
    """Return the scene with the cells as a fixed visible body without collisions."""
    if not len(volume.cells):
        return scene
    name = "swept volume"
    while name in scene:
        name += "'"
    vertices, faces = _boundary_mesh(volume.cells, volume.cell)
    part = AttachedShape(Mesh(vertices, faces), color=_CELL_COLOR, collision=False)
    return scene.add_frame(name, volume.frame, shapes=[part])


def _boundary_mesh(
    cells: NDArray[np.int64], cell: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return vertices (n, 3) and outward triangles (m, 3) of the sides without neighbour."""
    low = cells.min(axis=0) - 1
    filled = np.zeros(cells.max(axis=0) - low + 2, dtype=bool)
    filled[tuple((cells - low).T)] = True
    corners, faces = [np.zeros((0, 3))], [np.zeros((0, 3), dtype=np.int64)]
    count = 0
    for axis, side in _SIDES:
        is_exposed = filled & ~np.roll(filled, 1 - 2 * side, axis=axis)
        exposed_cells = np.argwhere(is_exposed) + low
        square = np.zeros((4, 3), dtype=np.int64)
        square[:, axis] = side
        square[:, (axis + 1) % 3], square[:, (axis + 2) % 3] = (0, 1, 1, 0), (0, 0, 1, 1)
        if side == 0:
            square = square[::-1]
        corners.append(((exposed_cells[:, None] + square) * cell).reshape(-1, 3))
        first = count + 4 * np.arange(len(exposed_cells))[:, None, None]
        faces.append((first + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3))
        count += 4 * len(exposed_cells)
    return np.concatenate(corners), np.concatenate(faces)
