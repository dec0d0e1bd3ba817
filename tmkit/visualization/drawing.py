"""Drawings in a plane as values: marks with a meaning, that are looked at, tested, and rendered into a PNG or SVG file.

What is drawn is decided without matplotlib: a :class:`Drawing` is a title, marks and a caption.
Each mark has a ``meaning``: a test reads a drawing instead of its pixels. Rendering fits one or
more drawings side by side into a picture, each with equal scales; text has a fixed size, lines and
dots a fixed width.

Invariant: the bytes of a picture are a function of its drawings alone (for one version of
    matplotlib).
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
    """Check that a plot can be drawn into a file of this name, without drawing it.

    Args:
        path: the file.
        suffixes: how its name may end.

    Raises:
        OutputError: the name ends otherwise.
        MissingExtraError: the extra ``pictures`` is not installed.
    """
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        reason = f"a plot must end in {' or '.join(suffixes)}"
        raise OutputError(f"{target}: cannot be written: {reason}", path=str(target), reason=reason)
    require("matplotlib", "pictures", f"{target}: drawing plots needs")
    return target


Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Mark:
    """Something drawn.

    Attributes:
        meaning: what it stands for, in the notation where there is one: ``{g}|C``.
    """

    meaning: str


@dataclass(frozen=True, eq=False)
class Area(Mark):
    """A filled outline.

    Attributes:
        outline: (n, 2) its corners.
        color: of its edge; it is filled with a light shade of it.
        is_dashed: whether its edge is dashed.
    """

    outline: Points
    color: str
    is_dashed: bool = False


@dataclass(frozen=True, eq=False)
class Line(Mark):
    """A line, with or without a head.

    Attributes:
        points: (n, 2) where it runs.
        color: its color.
        width: in points of print.
        is_dashed: whether it is dashed.
        has_head: whether it ends in an arrow head.
    """

    points: Points
    color: str
    width: float = 1.6
    is_dashed: bool = False
    has_head: bool = False


@dataclass(frozen=True, eq=False)
class Dot(Mark):
    """A point.

    Attributes:
        at: (2,) where it is.
        color: its color.
        size: diameter in points of print.
    """

    at: Points
    color: str = "black"
    size: float = 5.0


@dataclass(frozen=True, eq=False)
class Cross(Mark):
    """A cross over what is refused.

    Attributes:
        at: (2,) its centre.
        color: its color.
    """

    at: Points
    color: str = "#c2262e"


@dataclass(frozen=True, eq=False)
class Label(Mark):
    """Text.

    Attributes:
        at: (2,) the point that it belongs to.
        text: what is written.
        color: its color.
        offset: (x, y) from the point, in points of print.
        anchor: which part of the text is there.
        size: in points of print.
        background: color behind it, if any.
    """

    at: Points
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
        marks: what is drawn.
        title: one line.
        caption: lines, broken where they are too long.
        largest_unit: how many inches a unit of the plane is drawn at most.
    """

    marks: tuple[Mark, ...]
    title: str = ""
    caption: tuple[str, ...] = ()
    largest_unit: float = np.inf

    @property
    def bounds(self) -> tuple[Points, Points]:
        """The lower and the upper corner (2,) of all marks."""
        corners = [_extent(mark) for mark in self.marks]
        points = np.concatenate(corners) if corners else np.zeros((1, 2))
        return points.min(axis=0), points.max(axis=0)

    def meanings(self, kind: type[Mark] = Mark) -> tuple[str, ...]:
        """Return what the marks of a kind stand for, in the order in which they are drawn."""
        return tuple(mark.meaning for mark in self.marks if isinstance(mark, kind))


def _extent(mark: Mark) -> Points:
    if isinstance(mark, Area):
        return mark.outline
    if isinstance(mark, Line):
        return mark.points
    assert isinstance(mark, (Dot, Cross, Label))
    return np.reshape(mark.at, (1, 2))


def save_drawings(
    drawings: Sequence[Drawing],
    path: str | Path,
    *,
    columns: int = 3,
    width: float = 4.0,
    dots_per_inch: int = 100,
) -> Path:
    """Render drawings beside and below each other into a PNG or SVG file, and return its path.

    Args:
        drawings: the drawings, row by row.
        path: the file.
        columns: drawings in a row.
        width: of one drawing, inches; its height follows from what is drawn.
        dots_per_inch: how fine.

    Raises:
        OutputError: the file cannot be written, or its name ends neither in ``.png`` nor in
            ``.svg``.
        MissingExtraError: the extra ``pictures`` is not installed.
    """
    target = require_plots(path, suffixes=(".png", ".svg"))
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = max(1, min(columns, len(drawings)))
    rows = [drawings[start : start + across] for start in range(0, len(drawings), across)] or [()]
    heights = [max((_height(drawing, width) for drawing in row), default=1.0) for row in rows]
    figure = Figure(figsize=(width * across, sum(heights)), dpi=dots_per_inch)
    FigureCanvasAgg(figure)
    top = 1.0
    for row, height in zip(rows, heights, strict=True):
        share = height / sum(heights)
        top -= share
        for number, drawing in enumerate(row):
            _render(
                figure.add_axes((number / across, top, 1 / across, share)), drawing, width, height
            )
    buffer = io.BytesIO()
    is_svg = target.suffix.lower() == ".svg"
    with rc_context({"svg.hashsalt": "tmkit"}):  # without it ids are random
        figure.savefig(
            buffer,
            format=target.suffix[1:].lower(),
            metadata={"Date" if is_svg else "Software": None},
        )
    write_files({target: buffer.getvalue()})
    return target


MARGIN = 0.42  # inches around what is drawn, for text that sticks out
_HIGHEST = 30.0  # inches
_TEXT = 0.165  # inches that a line of a caption takes
_LETTERS = 14.5  # letters of a caption that fit into an inch


def _lines(drawing: Drawing, width: float) -> list[str]:
    letters = max(20, int((width - 0.3) * _LETTERS))
    return [
        line
        for text in drawing.caption
        for line in textwrap.wrap(text, letters, subsequent_indent="    ")
    ]


def _height(drawing: Drawing, width: float) -> float:
    """Return how many inches high a drawing is when it is so wide."""
    low, high = drawing.bounds
    size = np.maximum(high - low, 1e-9)
    unit = min((width - 2 * MARGIN) / size[0], drawing.largest_unit)
    highest = 1.1 * width if np.isinf(drawing.largest_unit) else _HIGHEST
    body = float(np.clip(unit * size[1], 0.6, highest))
    return (
        body + 2 * MARGIN + (0.25 if drawing.title else 0.0) + _TEXT * len(_lines(drawing, width))
    )


def _render(axes: Axes, drawing: Drawing, width: float, height: float) -> None:
    """Draw into axes that fill their place, an inch of the drawing being an inch of the picture."""
    lines = _lines(drawing, width)
    head, foot = (0.25 if drawing.title else 0.0), _TEXT * len(lines)
    room = np.array([width - 2 * MARGIN, height - 2 * MARGIN - head - foot])
    low, high = drawing.bounds
    size = np.maximum(high - low, 1e-9)
    scale = max(float(np.max(size / room)), 1.0 / drawing.largest_unit)  # units an inch
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
        above = (foot - _TEXT * (number + 0.4)) / height
        axes.text(
            0.15 / width, above, line, transform=axes.transAxes, ha="left", va="center", fontsize=8
        )


def _draw(axes: Axes, mark: Mark) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Polygon

    if isinstance(mark, Area):
        style = (0, (4, 3)) if mark.is_dashed else "solid"
        look = {
            "facecolor": to_rgba(mark.color, 0.10),
            "edgecolor": mark.color,
            "linewidth": 1.2,
            "linestyle": style,
        }
        axes.add_patch(Polygon(mark.outline, closed=True, **look))
    elif isinstance(mark, Line):
        style = (0, (5, 3)) if mark.is_dashed else "solid"
        axes.plot(
            *mark.points.T,
            color=mark.color,
            linewidth=mark.width,
            linestyle=style,
            solid_capstyle="round",
        )
        if mark.has_head:
            end = mark.points[-1]
            # dashes stay dashes
            before = end + (0.08 if len(mark.points) == 2 else 1.0) * (mark.points[-2] - end)
            head = {
                "arrowstyle": "-|>,head_width=0.22,head_length=0.45",
                "color": mark.color,
                "linewidth": mark.width,
            }
            axes.annotate(
                "",
                xy=tuple(end),
                xytext=tuple(before),
                arrowprops={**head, "shrinkA": 0.0, "shrinkB": 0.0},
            )
    elif isinstance(mark, Dot):
        axes.plot([mark.at[0]], [mark.at[1]], "o", color=mark.color, markersize=mark.size)
    elif isinstance(mark, Cross):
        axes.plot(
            [mark.at[0]], [mark.at[1]], "x", color=mark.color, markersize=9.0, markeredgewidth=2.4
        )
    elif isinstance(mark, Label):
        axes.annotate(
            mark.text.replace("$", r"\$"),
            xy=(float(mark.at[0]), float(mark.at[1])),
            xytext=mark.offset,
            textcoords="offset points",
            ha=mark.anchor,
            va="center",
            fontsize=mark.size,
            color=mark.color,
            bbox=(
                {"facecolor": mark.background, "edgecolor": "none", "pad": 0.8}
                if mark.background
                else None
            ),
        )
