"""A picture of the space that a plan sweeps, over the scene in which the plan starts.

The renderer has no transparency, so two pictures of one camera are mixed: the scene with the cells
as a solid of their own, and without. What lies behind the cells shows through them.

Invariants: the bytes are a function of plan and cells; the physics is never run.
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

_COLOR = (0.25, 0.45, 0.95, 1.0)
_OPACITY = 0.45
_SIDES = tuple((axis, side) for axis in range(3) for side in (0, 1))


def draw_swept_volume(
    plan: Plan,
    volume: SweptVolume,
    path: str | Path,
    *,
    width: int = 960,
    height: int = 640,
    renderer: Renderer = "auto",
) -> Path:
    """Draw the space that a plan sweeps, half transparent over the scene at the start; return the path of the file.

    Args:
        plan: the plan.
        volume: what :func:`tmkit.manipulation.swept_volume` has found for it.
        path: a ``.png`` or ``.jpg``.
        width: pixels.
        height: pixels.
        renderer: what draws: ``filament``, ``tiny``, or the better that is there.

    Raises:
        OutputError: the file cannot be written.
    """
    target = check_output(path, film=False)
    lower, upper = volume.bounds
    corners = np.array(list(itertools.product(*zip(lower, upper, strict=True))))
    still = StillScene(plan.scene, plan.q)
    camera = fit_camera(
        still, include=corners if len(volume.cells) else (), width=width, height=height
    )
    without = render(still, camera, renderer=renderer)
    covered = render(_with_cells(plan.scene, volume), camera, q=plan.q, renderer=renderer)
    mixed = (1.0 - _OPACITY) * without + _OPACITY * covered
    return write_picture(target, np.rint(mixed).astype(np.uint8))


def _with_cells(scene: SceneGraph, volume: SweptVolume) -> SceneGraph:
    """Return the scene with the cells as a fixed body that is seen and never touched."""
    if not len(volume.cells):
        return scene
    name = "swept volume"
    while name in scene:
        name += "'"
    vertices, faces = _skin(volume.cells, volume.cell)
    part = AttachedShape(Mesh(vertices, faces), color=_COLOR, collision=False)
    return scene.add_frame(name, volume.frame, shapes=[part])


def _skin(cells: NDArray[np.int64], cell: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return corners (n, 3) and triangles (m, 3), facing outwards, of the sides of cells that have no neighbour."""
    low = cells.min(axis=0) - 1
    filled = np.zeros(cells.max(axis=0) - low + 2, dtype=bool)
    filled[tuple((cells - low).T)] = True
    corners, faces = [np.zeros((0, 3))], [np.zeros((0, 3), dtype=np.int64)]
    count = 0
    for axis, side in _SIDES:
        open_side = filled & ~np.roll(filled, 1 - 2 * side, axis=axis)
        at = np.argwhere(open_side) + low
        square = np.zeros((4, 3), dtype=np.int64)
        square[:, axis] = side
        square[:, (axis + 1) % 3], square[:, (axis + 2) % 3] = (0, 1, 1, 0), (0, 0, 1, 1)
        if side == 0:
            square = square[::-1]
        corners.append(((at[:, None] + square) * cell).reshape(-1, 3))
        first = count + 4 * np.arange(len(at))[:, None, None]
        faces.append((first + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3))
        count += 4 * len(at)
    return np.concatenate(corners), np.concatenate(faces)
