"""Outline of a scene: the displayed frames with their descriptions, and the tree as text.

A scene may be a hundred thousand frames wide or deep. An :class:`Outline` therefore takes frames
level by level from the top, up to a number of children for each frame and a total number. It counts
the omitted frames below each displayed frame. This takes one pass over the reversed subtree, where
children come before parents. O(n).

Names come from files and may contain any characters: :func:`clean` removes control sequences.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from tmkit._core import AttachedShape, Fixed, Joint, SceneGraph, Shape
from tmkit._support.terminal import printable
from tmkit.errors import SceneError

DEFAULT_DEPTH = 32
"""Number of displayed levels by default."""

_LONGEST_NAME = 60
"""Largest number of displayed characters of a name."""

_SHAPES_SHOWN = 3
"""Largest number of displayed shapes of a frame."""

_CLASSES_SHOWN = 6
"""Largest number of displayed classes of a frame."""


@dataclass(frozen=True)
class Row:
    """Line of an outline: a frame, or the number of omitted frames.

    Attributes:
        frame: the frame; None for omitted frames.
        parent: the frame above.
        more: number of omitted frames.
        continues: for each level from the first below the top, whether more siblings follow.
    """

    frame: str | None
    parent: str | None
    more: int
    continues: tuple[bool, ...]

    @property
    def level(self) -> int:
        """Number of edges below the top."""
        return len(self.continues)


@dataclass(frozen=True)
class Outline:
    """Displayed frames of a scene.

    Attributes:
        tops: frames at the top.
        children: displayed children by frame.
        more: number of omitted frames below a frame; None stands for the level of the tops.
    """

    tops: tuple[str, ...]
    children: dict[str, tuple[str, ...]]
    more: dict[str | None, int]

    def rows(self) -> Iterator[Row]:
        """Yield the lines from top to bottom; omitted frames follow the displayed children."""
        stack = self._rows_below(None, self.tops, ())
        while stack:
            row = stack.pop()
            yield row
            if row.frame is not None:
                children = self.children.get(row.frame, ())
                stack += self._rows_below(row.frame, children, row.continues)

    def _rows_below(
        self, parent: str | None, frames: Sequence[str], continues: tuple[bool, ...]
    ) -> list[Row]:
        """Return the lines directly below a frame, the last first."""
        more = self.more.get(parent, 0)
        entries: list[str | None] = [*frames, *([None] if more else [])]
        rows = []
        for index, frame in enumerate(entries):
            flags = () if parent is None else (*continues, index < len(entries) - 1)
            rows.append(Row(frame, parent, more if frame is None else 0, flags))
        return rows[::-1]


def outline_of(
    scene: SceneGraph, *, frame: str | None, depth: int | None, max_frames: int, max_children: int
) -> Outline:
    """Return the outline of a scene, or of the subtree of a frame.

    Args:
        scene: the scene.
        frame: the frame at the top; None for all roots.
        depth: number of levels below the top; None for :data:`DEFAULT_DEPTH`.
        max_frames: largest number of displayed frames.
        max_children: largest number of displayed children of one frame.
    """
    if depth is not None and depth < 0:
        raise SceneError(f"depth must be a number of levels, not {depth}")
    for name, limit in (("max_frames", max_frames), ("max_children", max_children)):
        if limit < 1:
            raise SceneError(f"{name} must be at least 1, not {limit}")
    tops = scene.root_names if frame is None else (frame,)
    sizes = _subtree_sizes(scene, tops)
    more: dict[str | None, int] = {}
    children: dict[str, tuple[str, ...]] = {}
    rest = max_frames

    def take(parent: str | None, frames: Sequence[str]) -> tuple[str, ...]:
        """Return the displayed ones of sibling frames, and count the others."""
        nonlocal rest
        count = min(len(frames), max_children, rest)
        rest -= count
        if count < len(frames):
            more[parent] = sum(sizes[name] for name in frames[count:])
        return tuple(frames[:count])

    displayed_tops = take(None, tops)
    queue = deque((name, 0) for name in displayed_tops)
    while queue:
        name, level = queue.popleft()
        all_children = scene.children(name)
        if level == (DEFAULT_DEPTH if depth is None else depth):
            if all_children:
                more[name] = sizes[name] - 1
            continue
        children[name] = take(name, all_children)
        queue.extend((child, level + 1) for child in children[name])
    return Outline(displayed_tops, children, more)


def _subtree_sizes(scene: SceneGraph, tops: Sequence[str]) -> dict[str, int]:
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
class FrameDescription:
    """Texts that describe a frame; each may be empty, and names are clean.

    Attributes:
        joint: type, name if it differs from the frame's, limits and value of the joint.
        body: name of the body, if it differs from the frame's.
        position: position in the root's axes [m].
    """

    name: str
    joint: str
    classes: str
    body: str
    shapes: str
    position: str


class Describer:
    """Descriptions of the frames of a scene.

    Args:
        scene: the scene.
        q: (n_joints,) configuration for joint values and positions, which are omitted without it.
    """

    def __init__(self, scene: SceneGraph, q: ArrayLike | None = None) -> None:
        self._scene, self._kinematics = scene, None if q is None else scene.at(q)
        values: list[float] = [] if self._kinematics is None else self._kinematics.q.tolist()
        self.values = dict(zip(scene.joint_names, values, strict=False))
        """Joint values by name [rad or m]; empty without a configuration."""

    def describe(self, frame: str) -> FrameDescription:
        """Return the description of a frame."""
        scene = self._scene
        body, classes, position = scene.body(frame), scene.classes(frame), ""
        class_texts = [clean(name) for name in classes[:_CLASSES_SHOWN]]
        if len(classes) > _CLASSES_SHOWN:
            class_texts.append("...")
        if self._kinematics is not None:
            coordinates = map(number, self._kinematics.pose(frame).translation)
            position = f"({', '.join(coordinates)})"
        return FrameDescription(
            clean(frame),
            self._describe_joint(frame),
            ", ".join(class_texts),
            clean(body) if body != frame else "",
            _describe_shapes(scene.shapes(frame)),
            position,
        )

    def _describe_joint(self, frame: str) -> str:
        joint = self._scene.joint(frame)
        if joint == Fixed():
            return ""
        if not joint.is_actuated:
            return joint.type if joint.is_stated else "motion unknown"
        texts = [joint.type, *([clean(joint.name)] if joint.name != frame else [])]
        if joint.mimic is not None:
            texts.append(f"mimics {clean(joint.mimic.joint)}")
        elif joint.type != "continuous":
            texts.append(f"{number(joint.lower)} to {number(joint.upper)} {unit_of(joint)}")
        if self._kinematics is not None:
            texts.append(f"= {number(self._value(joint))}")
        return " ".join(texts)

    def _value(self, joint: Joint) -> float:
        """Return the value of a joint, through all mimic rules."""
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
    """Return a name on one line without control sequences, truncated to 60 characters."""
    cut = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    return printable(cut, keep="")


def number(value: float) -> str:
    """Return a number with four significant digits, without a negative zero."""
    return f"{round(value, 6) + 0.0:.4g}"


def count_of(what: str, count: int, *, plural: str = "") -> str:
    """Return ``1 frame``, ``2 frames``, ``1,000 frames``; the plural has an s by default."""
    return f"{count:,} {what if count == 1 else plural or what + 's'}"


def _describe_shapes(shapes: Sequence[AttachedShape]) -> str:
    counts = Counter(_describe_shape(attached.shape) for attached in shapes)
    texts = [
        f"{text} ({count}x)" if count > 1 else text
        for text, count in list(counts.items())[:_SHAPES_SHOWN]
    ]
    return ", ".join(texts + ["..."] * (len(counts) > _SHAPES_SHOWN))


def _describe_shape(shape: Shape) -> str:
    sizes = [number(size) for size in shape.dimensions]
    if shape.kind == "box":
        return f"box {'×'.join(sizes)}"
    if shape.kind == "height_field":
        return f"height field {'×'.join(sizes[:2])}"
    if shape.kind == "point_cloud":
        return f"cloud of {count_of('point', len(shape.points))}"
    labels = [f"{letter} {size}" for letter, size in zip("rh", sizes, strict=False)]
    return " ".join([shape.kind, *labels])


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

    The names of bodies and joints are included if they differ from the frame's. O(n).

    Args:
        scene: the version to display.
        frame: the frame at the top; all roots by default.
        depth: number of displayed levels below the top, by default 32. Deeper frames are counted.
        q: (n_joints,) configuration, for joint values [rad or m] and positions of frames in the
            root's axes [m].
        max_frames: largest number of displayed frames, the upper levels first.
        max_children: largest number of displayed children of one frame.

    Raises:
        UnknownNameError: if a frame is unknown.
        ConfigurationError: if q has the wrong length.
        SceneError: if the depth is negative, or a limit is below 1.
    """
    outline = outline_of(
        scene, frame=frame, depth=depth, max_frames=max_frames, max_children=max_children
    )
    describer = Describer(scene, q)
    lines = [_branches(row) + _row_text(describer, row) for row in outline.rows()]
    return "\n".join(lines) or "(no frames)"


def _branches(row: Row) -> str:
    """Return the tree lines before a row."""
    if not row.continues:
        return ""
    ancestors = "".join("│  " if more else "   " for more in row.continues[:-1])
    return ancestors + ("├─ " if row.continues[-1] else "└─ ")


def _row_text(describer: Describer, row: Row) -> str:
    """Return the text of a row."""
    if row.frame is None:
        return f"... and {count_of('more frame', row.more)}"
    description = describer.describe(row.frame)
    line = description.name
    line += f" [{description.joint}]" if description.joint else ""
    line += f" ({description.classes})" if description.classes else ""
    line += f" on {description.body}" if description.body else ""
    line += f": {description.shapes}" if description.shapes else ""
    return line + (f" at {description.position}" if description.position else "")
