"""Picture of a reachable region from the top, the front and the side, with the robot's silhouette.

Each point is the tool position of one configuration without collision. Its colour is the number of
directions, of six, in which the tool reaches the surrounding cube. Points with the most directions
are yellow and drawn last. The silhouette consists of the hulls of the projected collision shapes.
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
"""Name, horizontal axis and vertical axis of each projection."""

_AXIS_NAMES = "xyz"
"""Names of the axes."""

_DIRECTION_COUNT = 6
"""Number of directions of the tool that are distinguished."""


def draw_region(region: ReachableRegion, path: str | Path, *, cell: float = 0.1) -> Path:
    """Draw a reachable region into a PNG file, and return its path.

    Args:
        region: region of a tool, from :func:`tmkit.motion.reachable_region`.
        path: path of the file.
        cell: edge of the cubes in which directions are counted [m].

    Raises:
        OutputError: if the file cannot be written, or its suffix is not ``.png``.
        MissingExtraError: if the extra ``pictures`` is not installed.
    """
    target = require_plots(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    counts = region.directions_reached(cell)
    figure = Figure(figsize=(13.0, 4.9), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    samples = f"{len(counts)} of {region.samples} random configurations (the others collide)"
    figure.suptitle(f"{region.arm}: {region.tool} in {samples}")
    panels = figure.subplots(1, 3)
    for axes, view in zip(panels, _VIEWS, strict=True):
        _draw_view(axes, region, counts, view)
    ticks = range(1, int(counts.max(initial=1)) + 1)
    bar = figure.colorbar(panels[0].collections[0], ax=panels, ticks=ticks, shrink=0.8)
    bar.set_label(f"directions of the tool in a cube of {cell:g} m, of {_DIRECTION_COUNT}")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    write_files({target: buffer.getvalue()})
    return target


def _draw_view(
    axes: Axes, region: ReachableRegion, counts: NDArray[np.int64], view: tuple[str, int, int]
) -> None:
    """Draw one projection: the points, those with the most directions last, and the silhouette."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm
    from matplotlib.patches import Polygon

    name, horizontal, vertical = view
    order = np.argsort(counts, kind="stable")
    max_count = int(counts.max(initial=1))
    colors = colormaps["viridis"].resampled(max_count)
    norm = BoundaryNorm(np.arange(0.5, max_count + 1.0), max_count)
    x, y = region.positions[order][:, [horizontal, vertical]].T
    axes.scatter(x, y, c=counts[order], s=2.0, linewidths=0.0, cmap=colors, norm=norm)
    for corners in region.outline:
        with contextlib.suppress(QhullError, ValueError):  # Collinear points have no hull.
            flat = corners[:, [horizontal, vertical]]
            flat = np.asarray(flat[ConvexHull(flat).vertices])
            axes.add_patch(Polygon(flat, facecolor="#ffffffa0", edgecolor="black", linewidth=0.8))
    axes.set_title(name)
    axes.set_xlabel(f"{_AXIS_NAMES[horizontal]} of '{region.frame}' (m)")
    axes.set_ylabel(f"{_AXIS_NAMES[vertical]} (m)")
    axes.set_aspect("equal", adjustable="datalim")
    axes.autoscale_view()
    axes.grid(visible=True, linewidth=0.3)
