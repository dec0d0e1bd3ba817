"""The tree of a scene as text: one line a frame, drawn with lines that a terminal and a log both show.

world
├─ table (surface): box 0.8×1.2×0.05
│  └─ cup (movable): cylinder r 0.04 h 0.1
└─ arm [revolute -2 to 2 rad]
   └─ ... and 1,200 more frames
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from tmkit._core import SceneGraph
from tmkit.graph.display.outline import Describer, Row, count_of, outline_of


def tree_text(
    scene: SceneGraph, *, frame: str | None = None, depth: int | None = None, q: ArrayLike | None = None,
    max_frames: int = 200, max_children: int = 40,
) -> str:  # fmt: skip
    """Return the tree of a scene as text: names, joints with limits, classes, bodies and shapes.

    A body is named where it is not of the frame's own name, and a joint where it is not. Lengths are metres. O(n).

    Args:
        scene: the version that is shown.
        frame: the frame at the top; all roots by default.
        depth: levels below the top that are shown; 32 by default, and what lies deeper is counted.
        q: configuration (n_joints,): joints are shown with their values and frames with their place, in metres, in
            the axes of their root.
        max_frames: how many frames are shown at most, the upper levels first.
        max_children: how many children of one frame are shown at most.

    Raises:
        UnknownNameError: no such frame.
        ConfigurationError: q has the wrong length.
        SceneError: a negative depth, or a limit below 1.
    """
    shown = outline_of(scene, frame=frame, depth=depth, max_frames=max_frames, max_children=max_children)
    describer = Describer(scene, q)
    return "\n".join(_branches(row) + _line(describer, row) for row in shown.rows()) or "(no frames)"


def _branches(row: Row) -> str:
    if not row.continues:
        return ""
    above = "".join("│  " if more else "   " for more in row.continues[:-1])
    return above + ("├─ " if row.continues[-1] else "└─ ")


def _line(describer: Describer, row: Row) -> str:
    if row.frame is None:
        return f"... and {count_of('more frame', row.more)}"
    words = describer.words(row.frame)
    line = words.name
    line += f" [{words.joint}]" if words.joint else ""
    line += f" ({words.classes})" if words.classes else ""
    line += f" on {words.body}" if words.body else ""
    line += f": {words.shapes}" if words.shapes else ""
    return line + (f" at {words.place}" if words.place else "")
