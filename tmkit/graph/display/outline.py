"""Outline of a scene: the frames that are shown and their descriptions; the tree as text, one line a frame.

A scene may be a hundred thousand frames wide, or deep. So an :class:`Outline` takes frames level by
level from the top, so many children of each and so many frames in all. It counts for each frame
shown how many below it are not, in one pass over the subtree from its end, where children come
before parents. O(n).

Names come from files and may hold anything: :func:`clean` leaves nothing that a terminal would
obey.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from tmkit._core import AttachedShape, Fixed, Joint, SceneGraph, Shape
from tmkit._support.terminal import printable
from tmkit.errors import SceneError

DEEPEST = 32  # levels that are shown when no depth is asked for
_LONGEST_NAME = 60
_SHAPES_SHOWN = 3
_CLASSES_SHOWN = 6


@dataclass(frozen=True)
class Row:
    """One line of an outline: a frame, or in its place the number of those omitted.

    ``parent`` is the frame above; ``continues`` tells of each level, from the first below the top,
    whether more siblings follow there.
    """

    frame: str | None
    parent: str | None
    more: int
    continues: tuple[bool, ...]

    @property
    def level(self) -> int:
        """How many edges below the top."""
        return len(self.continues)


@dataclass(frozen=True)
class Outline:
    """The frames at the top, the children of each, and how many below each (None: of the tops) are not shown."""

    tops: tuple[str, ...]
    children: dict[str, tuple[str, ...]]
    more: dict[str | None, int]

    def rows(self) -> Iterator[Row]:
        """Yield the lines from top to bottom; what was omitted below a frame comes last of its children."""
        waiting = self._rows_below(None, self.tops, ())
        while waiting:
            row = waiting.pop()
            yield row
            if row.frame is not None:
                waiting += self._rows_below(
                    row.frame, self.children.get(row.frame, ()), row.continues
                )

    def _rows_below(
        self, parent: str | None, frames: Sequence[str], continues: tuple[bool, ...]
    ) -> list[Row]:
        """Return the lines right below a frame, the last first."""
        more = self.more.get(parent, 0)
        entries: list[str | None] = [*frames, *([None] if more else [])]
        rows = []
        for place, frame in enumerate(entries):
            flags = () if parent is None else (*continues, place < len(entries) - 1)
            rows.append(Row(frame, parent, more if frame is None else 0, flags))
        return rows[::-1]


def outline_of(
    scene: SceneGraph, *, frame: str | None, depth: int | None, max_frames: int, max_children: int
) -> Outline:
    """Return the outline of a scene, or of the subtree of a frame.

    ``depth`` counts levels below the top, as many as are readable when None; ``max_children`` those
    of one frame.
    """
    if depth is not None and depth < 0:
        raise SceneError(f"depth is a number of levels, not {depth}")
    for name, limit in (("max_frames", max_frames), ("max_children", max_children)):
        if limit < 1:
            raise SceneError(f"{name} is at least 1, not {limit}")
    tops = scene.root_names if frame is None else (frame,)
    sizes = _sizes(scene, tops)
    more: dict[str | None, int] = {}
    children: dict[str, tuple[str, ...]] = {}
    left = max_frames

    def take(parent: str | None, frames: Sequence[str]) -> tuple[str, ...]:
        """Take of sibling frames as many as may be shown, and count the others."""
        nonlocal left
        taken = min(len(frames), max_children, left)
        left -= taken
        if taken < len(frames):
            more[parent] = sum(sizes[name] for name in frames[taken:])
        return tuple(frames[:taken])

    shown = take(None, tops)
    waiting = deque((name, 0) for name in shown)
    while waiting:
        name, level = waiting.popleft()
        below = scene.children(name)
        if level == (DEEPEST if depth is None else depth):
            if below:
                more[name] = sizes[name] - 1
            continue
        children[name] = take(name, below)
        waiting.extend((child, level + 1) for child in children[name])
    return Outline(shown, children, more)


def _sizes(scene: SceneGraph, tops: Sequence[str]) -> dict[str, int]:
    """Return the number of frames in the subtree of each frame below the tops."""
    sizes: dict[str, int] = {}
    for top in tops:
        for name in reversed(scene.subtree(top)):
            sizes[name] = size = sizes.get(name, 0) + 1
            if name != top:
                parent = scene.parent(name)
                assert parent is not None  # only a top may be a root
                sizes[parent] = sizes.get(parent, 0) + size
    return sizes


@dataclass(frozen=True)
class FrameWords:
    """What is said of one frame, each in words that may be empty; names are clean."""

    name: str
    joint: str  # type, name where it is not the frame's, limits, value
    classes: str
    body: str  # where it is not of the frame's own name
    shapes: str
    place: str  # metres, in the root's axes


class Describer:
    """Says what there is to say of the frames of a scene, with joint values and places when given a configuration."""

    def __init__(self, scene: SceneGraph, q: ArrayLike | None = None) -> None:
        self._scene, self._at = scene, None if q is None else scene.at(q)
        values: list[float] = [] if self._at is None else self._at.q.tolist()
        self.values = dict(zip(scene.joint_names, values, strict=False))
        """Values of the joints that have an entry in the configuration, radians or metres; empty without one."""

    def words(self, frame: str) -> FrameWords:
        """Return what is said of a frame."""
        scene = self._scene
        body, classes, place = scene.body(frame), scene.classes(frame), ""
        shown = [clean(name) for name in classes[:_CLASSES_SHOWN]] + ["..."] * (
            len(classes) > _CLASSES_SHOWN
        )
        if self._at is not None:
            place = f"({', '.join(number(value) for value in self._at.pose(frame).translation)})"
        return FrameWords(
            clean(frame),
            self._joint_words(frame),
            ", ".join(shown),
            clean(body) if body != frame else "",
            _shapes_words(scene.shapes(frame)),
            place,
        )

    def _joint_words(self, frame: str) -> str:
        joint = self._scene.joint(frame)
        if not joint.is_actuated:
            return "" if joint == Fixed() else joint.type if joint.is_stated else "motion unknown"
        words = [joint.type, *([clean(joint.name)] if joint.name != frame else [])]
        if joint.mimic is not None:
            words.append(f"mimics {clean(joint.mimic.joint)}")
        elif joint.type != "continuous":
            words.append(f"{number(joint.lower)} to {number(joint.upper)} {unit_of(joint)}")
        if self._at is not None:
            words.append(f"= {number(self._value(joint))}")
        return " ".join(words)

    def _value(self, joint: Joint) -> float:
        """Return the value of a joint; one that mimics follows its leader, which may mimic in turn."""
        multiplier, offset = 1.0, 0.0
        while joint.mimic is not None:
            offset += multiplier * joint.mimic.offset
            multiplier *= joint.mimic.multiplier
            joint = self._scene.joint(self._scene.joint_frame(joint.mimic.joint))
        return multiplier * self.values[joint.name] + offset


def unit_of(joint: Joint) -> str:
    """Return the unit of a joint's value."""
    return "m" if joint.type == "prismatic" else "rad"


def clean(name: str) -> str:
    """Return a name on one line, without anything that a terminal or page would obey, cut when it is long."""
    cut = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    return printable(cut, keep="")


def number(value: float) -> str:
    """Return a number to four digits, and no negative zero."""
    return f"{round(value, 6) + 0.0:.4g}"


def count_of(what: str, count: int, *, plural: str = "") -> str:
    """Return ``1 frame``, ``2 frames``, ``1,000 frames``; the plural has an s where none is given."""
    return f"{count:,} {what if count == 1 else plural or what + 's'}"


def _shapes_words(shapes: Sequence[AttachedShape]) -> str:
    counts = Counter(_shape_words(attached.shape) for attached in shapes)
    shown = [
        f"{words} ({count}x)" if count > 1 else words
        for words, count in list(counts.items())[:_SHAPES_SHOWN]
    ]
    return ", ".join(shown + ["..."] * (len(counts) > _SHAPES_SHOWN))


def _shape_words(shape: Shape) -> str:
    sizes = [number(size) for size in shape.dimensions]
    if shape.kind == "box":
        return f"box {'×'.join(sizes)}"
    if shape.kind == "height_field":
        return f"height field {'×'.join(sizes[:2])}"
    if shape.kind == "point_cloud":
        return f"cloud of {count_of('point', len(shape.points))}"
    return (
        f"{shape.kind}"
        f" {' '.join(f'{letter} {size}' for letter, size in zip('rh', sizes, strict=False))}".rstrip()
    )


def tree_text(
    scene: SceneGraph,
    *,
    frame: str | None = None,
    depth: int | None = None,
    q: ArrayLike | None = None,
    max_frames: int = 200,
    max_children: int = 40,
) -> str:
    """Return the tree of a scene as text: names, joints with limits, classes, bodies and shapes.

    A body is named where it is not of the frame's own name, and a joint where it is not. Lengths
    are metres. O(n).

    Args:
        scene: the version that is shown.
        frame: the frame at the top; all roots by default.
        depth: levels below the top that are shown; 32 by default, and what lies deeper is counted.
        q: configuration (n_joints,): joints are shown with their values, frames with their place
            (m, root's axes).
        max_frames: how many frames are shown at most, the upper levels first.
        max_children: how many children of one frame are shown at most.

    Raises:
        UnknownNameError: if a frame is unknown.
        ConfigurationError: if q has the wrong length.
        SceneError: if the depth is negative, or a limit is below 1.
    """
    shown = outline_of(
        scene, frame=frame, depth=depth, max_frames=max_frames, max_children=max_children
    )
    describer = Describer(scene, q)
    return (
        "\n".join(_branches(row) + _line(describer, row) for row in shown.rows()) or "(no frames)"
    )


def _branches(row: Row) -> str:
    above = "".join("│  " if more else "   " for more in row.continues[:-1])
    return above + ("├─ " if row.continues[-1] else "└─ ") if row.continues else ""


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
