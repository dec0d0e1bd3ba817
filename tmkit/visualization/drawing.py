"""Drawings in a plane as values: marks with a meaning, rendered into a PNG or SVG file.

A :class:`Drawing` consists of a title, marks and a caption, and is made without matplotlib. Each
mark has a ``meaning``, so that a test reads the drawing instead of its pixels. Rendering fits one
or more drawings side by side into a picture, each with equal scales. Text, lines and dots have a
fixed size.

Invariant: the bytes of a picture are a function of its drawings alone, for one version of
    matplotlib.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tmkit._support.extras import require
from tmkit._support.output import write_files
from tmkit.errors import OutputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def require_plots(path: str | Path, *, suffixes: tuple[str, ...] = (".png",)) -> Path:
    """Check that a plot can be drawn into a file, without drawing it.

    Args:
        path: path of the file.
        suffixes: allowed suffixes.

    Raises:
        OutputError: if the suffix is not allowed.
        MissingExtraError: if the extra ``pictures`` is not installed.
    """
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        reason = f"a plot must end in {' or '.join(suffixes)}"
        raise OutputError(f"{target}: cannot be written: {reason}", path=str(target), reason=reason)
    require("matplotlib", "pictures", f"{target}: drawing plots needs")
    return target


Points = NDArray[np.float64]
"""(n, 2) points in the plane."""


@dataclass(frozen=True, eq=False)
class Mark:
    """Element of a drawing.

    Attributes:
        meaning: object that the mark represents, in the notation of the papers: ``{g}|C``.
    """

    meaning: str


@dataclass(frozen=True, eq=False)
class Area(Mark):
    """Filled polygon.

    Attributes:
        outline: (n, 2) corners.
        color: colour of the edge. The area has a light shade of it.
        is_dashed: whether the edge is dashed.
    """

    outline: Points
    color: str
    is_dashed: bool = False


@dataclass(frozen=True, eq=False)
class Line(Mark):
    """Polyline, with or without an arrow head.

    Attributes:
        points: (n, 2) vertices.
        color: colour.
        width: width [pt].
        is_dashed: whether the line is dashed.
        has_head: whether the line ends in an arrow head.
    """

    points: Points
    color: str
    width: float = 1.6
    is_dashed: bool = False
    has_head: bool = False


@dataclass(frozen=True, eq=False)
class Dot(Mark):
    """Point.

    Attributes:
        center: (2,) position.
        color: colour.
        size: diameter [pt].
    """

    center: Points
    color: str = "black"
    size: float = 5.0


@dataclass(frozen=True, eq=False)
class Cross(Mark):
    """Cross over a rejected element.

    Attributes:
        center: (2,) position.
        color: colour.
    """

    center: Points
    color: str = "#c2262e"


@dataclass(frozen=True, eq=False)
class Label(Mark):
    """Text.

    Attributes:
        point: (2,) reference point.
        text: text.
        color: colour.
        offset: (x, y) translation from the reference point [pt].
        anchor: part of the text at the translated point.
        size: font size [pt].
        background: colour behind the text, if any.
    """

    point: Points
    text: str
    color: str = "black"
    offset: tuple[float, float] = (0.0, 0.0)
    anchor: Literal["left", "center", "right"] = "left"
    size: float = 9.0
    background: str = ""


@dataclass(frozen=True, eq=False)
class Drawing:
    """Marks, the first at the bottom, with a title above and a caption below.

    Attributes:
        marks: elements of the drawing.
        title: one line.
        caption: lines, which are wrapped.
        largest_unit: largest size of a unit of the plane [inch].
    """

    marks: tuple[Mark, ...]
    title: str = ""
    caption: tuple[str, ...] = ()
    largest_unit: float = np.inf

    @property
    def bounds(self) -> tuple[Points, Points]:
        """Lower and upper corner (2,) of all marks."""
        corners = [_extent(mark) for mark in self.marks]
        points = np.concatenate(corners) if corners else np.zeros((1, 2))
        return points.min(axis=0), points.max(axis=0)

    def meanings(self, kind: type[Mark] = Mark) -> tuple[str, ...]:
        """Return the meanings of the marks of a kind, in drawing order."""
        return tuple(mark.meaning for mark in self.marks if isinstance(mark, kind))


def _extent(mark: Mark) -> Points:
    """Return points (n, 2) that span a mark without its text."""
    if isinstance(mark, Area):
        return mark.outline
    if isinstance(mark, Line):
        return mark.points
    if isinstance(mark, Label):
        return np.reshape(mark.point, (1, 2))
    assert isinstance(mark, (Dot, Cross))
    return np.reshape(mark.center, (1, 2))


def save_drawings(
    drawings: Sequence[Drawing],
    path: str | Path,
    *,
    columns: int = 3,
    width: float = 4.0,
    dots_per_inch: int = 100,
) -> Path:
    """Render drawings in rows and columns into a PNG or SVG file, and return its path.

    Args:
        drawings: drawings, row by row.
        path: path of the file.
        columns: number of drawings in a row.
        width: width of one drawing [inch]. Its height follows from the marks.
        dots_per_inch: resolution.

    Raises:
        OutputError: if the file cannot be written, or its suffix is neither ``.png`` nor ``.svg``.
        MissingExtraError: if the extra ``pictures`` is not installed.
    """
    target = require_plots(path, suffixes=(".png", ".svg"))
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = max(1, min(columns, len(drawings)))
    rows = [drawings[start : start + count] for start in range(0, len(drawings), count)] or [()]
    heights = [max((_height(drawing, width) for drawing in row), default=1.0) for row in rows]
    figure = Figure(figsize=(width * count, sum(heights)), dpi=dots_per_inch)
    FigureCanvasAgg(figure)
    top = 1.0
    for row, height in zip(rows, heights, strict=True):
        fraction = height / sum(heights)
        top -= fraction
        for number, drawing in enumerate(row):
            axes = figure.add_axes((number / count, top, 1 / count, fraction))
            _render(axes, drawing, width, height)
    buffer = io.BytesIO()
    is_svg = target.suffix.lower() == ".svg"
    with rc_context({"svg.hashsalt": "tmkit"}):  # Without a salt, ids are random.
        figure.savefig(
            buffer,
            format=target.suffix[1:].lower(),
            metadata={"Date" if is_svg else "Software": None},
        )
    write_files({target: buffer.getvalue()})
    return target


MARGIN = 0.42
"""Margin around the marks of a drawing, for text that exceeds them [inch]."""

_MAX_HEIGHT = 30.0
"""Largest height of a drawing with a limited unit [inch]."""

_TITLE_HEIGHT = 0.25
"""Height of the title [inch]."""

_CAPTION_LINE_HEIGHT = 0.165
"""Height of a line of the caption [inch]."""

_CAPTION_LETTERS_PER_INCH = 14.5
"""Number of letters of a caption in one inch."""


def _lines(drawing: Drawing, width: float) -> list[str]:
    """Return the wrapped lines of the caption."""
    letters = max(20, int((width - 0.3) * _CAPTION_LETTERS_PER_INCH))
    return [
        line
        for text in drawing.caption
        for line in textwrap.wrap(text, letters, subsequent_indent="    ")
    ]


def _height(drawing: Drawing, width: float) -> float:
    """Return the height of a drawing of a given width [inch]."""
    low, high = drawing.bounds
    size = np.maximum(high - low, 1e-9)
    unit = min((width - 2 * MARGIN) / size[0], drawing.largest_unit)
    max_height = 1.1 * width if np.isinf(drawing.largest_unit) else _MAX_HEIGHT
    body = float(np.clip(unit * size[1], 0.6, max_height))
    title = _TITLE_HEIGHT if drawing.title else 0.0
    return body + 2 * MARGIN + title + _CAPTION_LINE_HEIGHT * len(_lines(drawing, width))


def _render(axes: Axes, drawing: Drawing, width: float, height: float) -> None:
    """Render a drawing into axes of its size, so that an inch is an inch of the picture."""
    lines = _lines(drawing, width)
    head = _TITLE_HEIGHT if drawing.title else 0.0
    foot = _CAPTION_LINE_HEIGHT * len(lines)
    room = np.array([width - 2 * MARGIN, height - 2 * MARGIN - head - foot])
    low, high = drawing.bounds
    size = np.maximum(high - low, 1e-9)
    scale = max(float(np.max(size / room)), 1.0 / drawing.largest_unit)  # [units / inch]
    middle = (low + high) / 2
    left = middle[0] - scale * width / 2
    bottom = middle[1] - scale * (room[1] / 2 + MARGIN + foot)
    axes.set_xlim(left, left + scale * width)
    axes.set_ylim(bottom, bottom + scale * height)
    axes.set_axis_off()
    for mark in drawing.marks:
        _draw(axes, mark)
    if drawing.title:
        axes.text(
            0.5,
            1 - 0.2 / height,
            drawing.title,
            transform=axes.transAxes,
            ha="center",
            va="center",
            fontsize=10,
        )
    for number, line in enumerate(lines):
        y = (foot - _CAPTION_LINE_HEIGHT * (number + 0.4)) / height
        axes.text(
            0.15 / width, y, line, transform=axes.transAxes, ha="left", va="center", fontsize=8
        )


def _draw(axes: Axes, mark: Mark) -> None:
    """Draw a mark."""
    if isinstance(mark, Area):
        _draw_area(axes, mark)
    elif isinstance(mark, Line):
        _draw_line(axes, mark)
    elif isinstance(mark, Dot):
        x, y = mark.center
        axes.plot([x], [y], "o", color=mark.color, markersize=mark.size)
    elif isinstance(mark, Cross):
        x, y = mark.center
        axes.plot([x], [y], "x", color=mark.color, markersize=9.0, markeredgewidth=2.4)
    elif isinstance(mark, Label):
        box = {"facecolor": mark.background, "edgecolor": "none", "pad": 0.8}
        axes.annotate(
            mark.text.replace("$", r"\$"),
            xy=(float(mark.point[0]), float(mark.point[1])),
            xytext=mark.offset,
            textcoords="offset points",
            ha=mark.anchor,
            va="center",
            fontsize=mark.size,
            color=mark.color,
            bbox=box if mark.background else None,
        )


def _draw_area(axes: Axes, area: Area) -> None:
    """Draw a filled polygon."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Polygon

    polygon = Polygon(
        area.outline,
        closed=True,
        facecolor=to_rgba(area.color, 0.10),
        edgecolor=area.color,
        linewidth=1.2,
        linestyle=(0, (4, 3)) if area.is_dashed else "solid",
    )
    axes.add_patch(polygon)


def _draw_line(axes: Axes, line: Line) -> None:
    """Draw a polyline, and its arrow head as a solid annotation."""
    axes.plot(
        *line.points.T,
        color=line.color,
        linewidth=line.width,
        linestyle=(0, (5, 3)) if line.is_dashed else "solid",
        solid_capstyle="round",
    )
    if not line.has_head:
        return
    end = line.points[-1]
    # The shaft of the annotation is short, so that it covers no dashes.
    fraction = 0.08 if len(line.points) == 2 else 1.0
    start = end + fraction * (line.points[-2] - end)
    arrow = {
        "arrowstyle": "-|>,head_width=0.22,head_length=0.45",
        "color": line.color,
        "linewidth": line.width,
        "shrinkA": 0.0,
        "shrinkB": 0.0,
    }
    axes.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=arrow)
