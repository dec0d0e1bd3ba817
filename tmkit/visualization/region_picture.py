"""A reachable region drawn from the top, the front and the side, with the robot's silhouette.

Each point is the tool in one configuration without a collision, coloured by how many of six
directions it reaches in its cube of space; yellow are those with the most, which lie on top. The
silhouette is made of the hulls of the projected collision shapes, so it shows what collides, not
what is drawn elsewhere.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from tmkit._support.output import write_files
from tmkit.visualization.drawing import require_plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tmkit.motion.reachable_region import ReachableRegion

_VIEWS = (("top", 0, 1), ("front", 1, 2), ("side", 0, 2))
_AXES = "xyz"
_DIRECTIONS = 6


def draw_region(region: ReachableRegion, path: str | Path, *, cell: float = 0.1) -> Path:
    """Draw where a tool comes, into a PNG file, and return its path.

    Args:
        region: what :func:`tmkit.motion.reachable_region` has found.
        path: the file.
        cell: edge of the cubes in which directions are counted, metres.

    Raises:
        OutputError: the file cannot be written, or its name does not end in ``.png``.
        MissingExtraError: the extra ``pictures`` is not installed.
    """
    target = require_plots(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    counts = region.directions_reached(cell)
    figure = Figure(figsize=(13.0, 4.9), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    shown = f"{len(counts)} of {region.samples} random configurations (the others collide)"
    figure.suptitle(f"{region.arm}: {region.tool} in {shown}")
    panels = figure.subplots(1, 3)
    for axes, view in zip(panels, _VIEWS, strict=True):
        _draw_view(axes, region, counts, view)
    ticks = range(1, int(counts.max(initial=1)) + 1)
    bar = figure.colorbar(panels[0].collections[0], ax=panels, ticks=ticks, shrink=0.8)
    bar.set_label(f"directions of the tool in a cube of {cell:g} m, of {_DIRECTIONS}")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_files({target: buffer.getvalue()})
    return target


def _draw_view(
    axes: Axes, region: ReachableRegion, counts: NDArray[np.int64], view: tuple[str, int, int]
) -> None:
    """Draw one projection: the points, the best last, and the silhouette over them."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm
    from matplotlib.patches import Polygon

    name, across, up = view
    order = np.argsort(counts, kind="stable")
    most = int(counts.max(initial=1))
    colors = colormaps["viridis"].resampled(most)
    norm = BoundaryNorm(np.arange(0.5, most + 1.0), most)
    x, y = region.positions[order][:, [across, up]].T
    axes.scatter(x, y, c=counts[order], s=2.0, linewidths=0.0, cmap=colors, norm=norm)
    for corners in region.outline:
        with contextlib.suppress(QhullError, ValueError):  # they lie on one line
            flat = corners[:, [across, up]]
            flat = np.asarray(flat[ConvexHull(flat).vertices])
            axes.add_patch(Polygon(flat, facecolor="#ffffffa0", edgecolor="black", linewidth=0.8))
    axes.set_title(name)
    axes.set_xlabel(f"{_AXES[across]} of '{region.frame}' (m)")
    axes.set_ylabel(f"{_AXES[up]} (m)")
    axes.set_aspect("equal", adjustable="datalim")
    axes.autoscale_view()
    axes.grid(visible=True, linewidth=0.3)
