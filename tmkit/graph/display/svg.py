"""The tree of a scene as a drawing, a box a frame, from the roots on the left to the leaves on the right; groups too.

Each frame has a strip as high as its box, or as all the strips of its children, whichever is more;
each box stands in the middle of its strip, so boxes never overlap. The columns are as wide as the
widest box of their level. Two passes over the outline, without recursion. Plain SVG 1.1 with
attributes only, on a white ground; the tooltip of a box (``<title>``) says all that there is to say
of the frame. Source of the drawing of frames and groups: Blumenthal and Bruyninckx, "Towards a
Domain Specific Language for a Scene Graph based Robotic World Model", 2014, figure 4.
"""

from __future__ import annotations

import html
import itertools
import unicodedata
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tmkit._core import Pose, SceneGraph
from tmkit.errors import SceneError
from tmkit.graph.attributes import attribute_text
from tmkit.graph.display.outline import Describer, Row, clean, count_of, number, outline_of
from tmkit.graph.nodes import SceneNode, members_of, nodes_of, uuid_of

JOINT_COLOURS = {
    "fixed": "#8a8f98",
    "revolute": "#1f6fd0",
    "continuous": "#7b3fc4",
    "prismatic": "#13875a",
    "free": "#d0661f",
}
_MOVABLE, _PLAIN, _INK, _FAINT, _BAR = "#ffe9b0", "#f2f4f7", "#1d2430", "#6b7280", "#b03060"
_FONTS = "ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace"
_LETTER = 7.3  # pixels: the width of a letter of the names' font
_SMALL_LETTER = 5.5
_PADDING, _GAP, _COLUMN_GAP, _MARGIN = 9, 8, 44, 16
_LINE = 12  # pixels: from one line of details to the next
_LEGEND_HEIGHT = 34
_LONGEST_LABEL = 28
_DASHES = ' stroke-dasharray="5 4"'


@dataclass(frozen=True)
class Box:
    """A box of the drawing and its position; pixels. ``row.frame`` is its key."""

    row: Row
    label: str
    note: str  # the second line: the joint
    colour: str
    classes: tuple[str, ...]
    tooltip: str
    details: tuple[str, ...] = ()  # more lines
    fill: str = ""  # instead of that of its classes
    strip: float = 0.0
    top: float = 0.0  # of the strip
    x: float = 0.0

    @property
    def width(self) -> float:
        """Pixels."""
        small = max((_columns(text) for text in (self.note, *self.details)), default=0)
        return 2 * _PADDING + max(_LETTER * _columns(self.label), _SMALL_LETTER * small)

    @property
    def height(self) -> float:
        """Pixels."""
        return (36.0 if self.note else 24.0) + _LINE * len(self.details)

    @property
    def middle(self) -> float:
        """Pixels from the top."""
        return self.top + self.strip / 2


def tree_svg(
    scene: SceneGraph,
    *,
    frame: str | None = None,
    depth: int | None = None,
    max_frames: int = 200,
    max_children: int = 40,
) -> str:
    """Return a drawing of the tree of a scene, as the text of an SVG file.

    Lines are coloured by the type of joint; movable frames and surfaces are marked; what is omitted
    is counted. O(n).

    Args:
        scene: the version that is drawn.
        frame: the frame on the left; all roots by default.
        depth: levels beside it that are drawn; 32 by default.
        max_frames: how many frames are drawn at most, those near the roots first.
        max_children: how many children of one frame are drawn at most.

    Raises:
        UnknownNameError: if a frame is unknown.
        SceneError: if the depth is negative, or a limit is below 1.
    """
    shown = outline_of(
        scene, frame=frame, depth=depth, max_frames=max_frames, max_children=max_children
    )
    describer = Describer(scene)
    boxes = [_box_of(scene, row, describer) for row in shown.rows()]
    return picture_of(boxes)


def picture_of(
    boxes: list[Box],
    others: Sequence[tuple[str, str]] = (),
    *,
    kinds: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the drawing of boxes in outline order, with more edges, dashed; ``kinds`` are a legend of fills."""
    boxes = _lay_out(boxes)
    legend = _legend_of_kinds(kinds) if kinds else _legend(boxes)
    right = max([box.x + box.width for box in boxes] + [_MARGIN + legend[1]])
    bottom = max([box.top + box.strip for box in boxes], default=float(_MARGIN))
    width, height = right + _MARGIN, bottom + _LEGEND_HEIGHT + _MARGIN
    by_key = {box.row.frame: box for box in boxes if box.row.frame is not None}
    lines = [_edge(by_key[box.row.parent], box) for box in boxes if box.row.parent in by_key]
    lines += [_edge(by_key[above], by_key[below], is_other=True) for above, below in others]
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONTS}">'
        ),
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *lines,
        *(_drawn(box) for box in boxes),
        (
            f'<g transform="translate({_MARGIN}'
            f' {bottom + _LEGEND_HEIGHT / 2 + 4:.1f})">{legend[0]}</g>'
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _box_of(scene: SceneGraph, row: Row, describer: Describer) -> Box:
    if row.frame is None:
        return Box(
            row, f"... and {row.more:,} more", "", _FAINT, (), count_of("more frame", row.more)
        )
    words, joint = describer.words(row.frame), scene.joint(row.frame)
    note = joint.type if joint.type != "fixed" else ""
    if joint.is_actuated and joint.name != row.frame:
        note += f" {short_label(joint.name)}"
    said = [
        words.name,
        words.joint,
        words.classes,
        f"on {words.body}" if words.body else "",
        words.shapes,
    ]
    tooltip = "; ".join(part for part in said if part)
    return Box(
        row,
        short_label(row.frame),
        note,
        JOINT_COLOURS.get(joint.type, _FAINT),
        scene.classes(row.frame),
        tooltip,
    )


def short_label(name: str) -> str:
    """Return a name as it fits a box."""
    shown = clean(name)
    return shown if len(shown) <= _LONGEST_LABEL else shown[: _LONGEST_LABEL - 1] + "…"


def _columns(text: str) -> int:
    """Return how many letters wide a text is; some scripts take two each."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _lay_out(boxes: Sequence[Box]) -> list[Box]:
    """Return the boxes with their positions.

    Args:
        boxes: in the order of the outline, which has parents before children and siblings from top
            to bottom.
    """
    index_of: dict[str | None, int] = {
        box.row.frame: index for index, box in enumerate(boxes) if box.row.frame is not None
    }
    parents = [index_of.get(box.row.parent) for box in boxes]
    inner = [0.0] * len(boxes)  # heights of the strips of the children
    strips = [0.0] * len(boxes)
    for index, box in reversed([*enumerate(boxes)]):
        strips[index] = max(box.height + _GAP, inner[index])
        above = parents[index]
        if above is not None:
            inner[above] += strips[index]
    tops, next_tops, end = [0.0] * len(boxes), [0.0] * len(boxes), float(_MARGIN)
    for index, above in enumerate(parents):
        if above is None:
            tops[index], end = end, end + strips[index]
        else:
            tops[index] = next_tops[above]
            next_tops[above] += strips[index]
        next_tops[index] = tops[index] + (strips[index] - (inner[index] or strips[index])) / 2
    widths = [0.0] * (max((box.row.level for box in boxes), default=0) + 1)
    for box in boxes:
        widths[box.row.level] = max(widths[box.row.level], box.width)
    lefts = [
        *itertools.accumulate((width + _COLUMN_GAP for width in widths), initial=float(_MARGIN))
    ]
    return [
        replace(box, strip=strip, top=top, x=lefts[box.row.level])
        for box, strip, top in zip(boxes, strips, tops, strict=True)
    ]


def _edge(above: Box, box: Box, *, is_other: bool = False) -> str:
    """Return the line from a box to one of its children, or to something else that it contains."""
    x, y1, y2 = above.x + above.width, above.middle, box.middle
    if is_other:
        end = box.x if box.x >= x else box.x + box.width
        bend = max(x, end) + _COLUMN_GAP / 2
        path = (
            f"M {x:.1f} {y1:.1f} C {bend:.1f} {y1:.1f} {bend if end != box.x else x:.1f} {y2:.1f}"
            f" {end:.1f} {y2:.1f}"
        )
        return f'<path d="{path}" fill="none" stroke="{_FAINT}" stroke-width="1.4"{_DASHES}/>'
    bend = x + _COLUMN_GAP / 2  # right beside the parent: lines of several colours part at once
    path = (
        f"M {x:.1f} {y1:.1f} C {bend:.1f} {y1:.1f} {bend:.1f} {y2:.1f} {x + _COLUMN_GAP:.1f}"
        f" {y2:.1f} H {box.x:.1f}"
    )
    dashes = _DASHES if box.colour in (JOINT_COLOURS["free"], _FAINT) else ""
    return (
        f'<path d="{path}" fill="none" stroke="{box.colour}"'
        f' stroke-width="{2.2 if box.note else 1.4}"{dashes}/>'
    )


def _drawn(box: Box) -> str:
    x, y, middle = box.x, box.middle - box.height / 2, box.x + box.width / 2
    title = f"<title>{html.escape(box.tooltip)}</title>"
    if box.row.frame is None:
        return f"<g>{title}{_text(x + 5, box.middle + 4, box.label, _FAINT, anchor='start')}</g>"
    fill = box.fill or (_MOVABLE if "movable" in box.classes else _PLAIN)
    parts = [title, _rectangle(x, y, box.width, box.height, fill, box.colour)]
    if "surface" in box.classes:
        parts.append(_bar(x, y + box.height, box.width))
    parts.append(_text(middle, y + 16, box.label, _INK))
    if box.note:
        parts.append(_text(middle, y + 29, box.note, box.colour, size=9))
    for row, text in enumerate(box.details):
        parts.append(
            _text(
                middle,
                y + box.height - 8 - _LINE * (len(box.details) - 1 - row),
                text,
                _INK,
                size=9,
            )
        )
    return f"<g>{''.join(parts)}</g>"


def _rectangle(x: float, y: float, width: float, height: float, fill: str, stroke: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} rx="5" fill="{fill}" stroke="{stroke}" stroke-width="1.2"/>'


def _bar(x: float, y: float, width: float) -> str:
    return _line(x + 4, y, x + width - 4, _BAR, width=3.5)


def _line(x1: float, y: float, x2: float, colour: str, *, width: float, dashes: str = "") -> str:
    place = f'x1="{x1:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y:.1f}"'
    return f'<line {place} stroke="{colour}" stroke-width="{width}"{dashes}/>'


def _text(
    x: float, y: float, text: str, colour: str, *, size: int = 12, anchor: str = "middle"
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}">{html.escape(text)}</text>'


def _legend(boxes: list[Box]) -> tuple[str, float]:
    """Return what the colours that occur mean, and its width."""
    colours = {box.colour for box in boxes if box.row.parent is not None}
    x, parts = 0.0, []
    for name, colour in JOINT_COLOURS.items():
        if colour in colours:
            parts.append(
                _line(x, 0, x + 22, colour, width=2.2, dashes=_DASHES if name == "free" else "")
            )
            x += _named(parts, x, name)
    for name in ("movable", "surface"):
        if any(name in box.classes for box in boxes):
            parts.append(
                _rectangle(
                    x, -7, 22, 14, _MOVABLE if name == "movable" else _PLAIN, JOINT_COLOURS["fixed"]
                )
            )
            parts += [_bar(x, 7, 22)] if name == "surface" else []
            x += _named(parts, x, name)
    return "".join(parts), x


def _legend_of_kinds(kinds: Sequence[tuple[str, str]]) -> tuple[str, float]:
    x, parts = 0.0, []
    for name, fill in kinds:
        parts.append(_rectangle(x, -7, 22, 14, fill, JOINT_COLOURS["fixed"]))
        x += _named(parts, x, name)
    return "".join(parts), x


def _named(parts: list[str], x: float, name: str) -> float:
    """Add the name of a sign that begins at x; return the width of both."""
    parts.append(_text(x + 28, 4, name, _INK, size=11, anchor="start"))
    return 28 + 6.7 * len(name) + 18


_TRANSFORM, _GEOMETRIC, _GROUP = "#fff0b8", "#cdebc6", "#e9edf3"
_KINDS = (("frame", _TRANSFORM), ("frame with shapes", _GEOMETRIC), ("group", _GROUP))
_LONGEST_LINE = 44


def graph_svg(
    scene: SceneGraph, *, start: str | SceneNode | None = None, max_nodes: int = 200
) -> str:
    """Return a drawing of frames and groups with what they hold, as the text of an SVG file.

    Each node has the start of its UUID in square brackets and its attributes in round ones. A frame
    also has its translation ``T`` relative to its parent, in metres in the axes of the parent,
    unless it is the parent's pose, and the number of poses in its history (``Updates``). A frame
    hangs on the group that contains it where that is below the frame's parent; dashed lines lead
    from what else contains a node. O(n + members of groups).

    Args:
        scene: the version that is drawn.
        start: the node on the left, or the name of a frame; by default all roots, and all groups
            below nothing.
        max_nodes: how many nodes are drawn at most, those near the start first; the others are
            counted.

    Raises:
        UnknownNameError: if a frame or group is unknown.
        SceneError: if the limit is below 1, or the node has another kind.
    """
    if max_nodes < 1:
        raise SceneError(f"max_nodes is at least 1, not {max_nodes}")
    above, others = _holders(scene)
    below: dict[SceneNode | None, list[SceneNode]] = {}
    for node, holder in above.items():
        below.setdefault(holder, []).append(node)
    tops = below.get(None, [])
    if start is not None:
        uuid_of(scene, start)  # which refuses an unknown node
        tops = [("frame", start) if isinstance(start, str) else start]
    shown: dict[SceneNode, None] = dict.fromkeys(tops[:max_nodes])
    waiting = deque(shown)
    while waiting:  # level by level
        taken = below.get(waiting.popleft(), [])[: max_nodes - len(shown)]
        shown.update(dict.fromkeys(taken))
        waiting.extend(taken)
    describer = Describer(scene)
    boxes: list[Box] = []
    stack: list[tuple[SceneNode, str | None, int]] = [
        (node, None, 0) for node in reversed(tops[:max_nodes])
    ]
    while stack:
        node, parent, level = stack.pop()
        key = ":".join(node)
        boxes.append(_box(scene, node, Row(key, parent, 0, (False,) * level), describer))
        drawn = [child for child in below.get(node, []) if child in shown]
        left_out = len(below.get(node, [])) - len(drawn)
        if left_out:
            words, row = (
                count_of("more node", left_out),
                Row(None, key, left_out, (False,) * (level + 1)),
            )
            boxes.append(Box(row, f"... and {words}", "", "#6b7280", (), words))
        stack += [(child, key, level + 1) for child in reversed(drawn)]
    dashed = [
        (":".join(holder), ":".join(node))
        for holder, node in others
        if holder in shown and node in shown
    ]
    return picture_of(boxes, dashed, kinds=_KINDS)


def _holders(
    scene: SceneGraph,
) -> tuple[dict[SceneNode, SceneNode | None], list[tuple[SceneNode, SceneNode]]]:
    """Return what each node hangs on, and what else contains it."""
    held_by: dict[SceneNode, list[str]] = {}
    groups = {name: scene.group(name) for name in scene.group_names}
    for name, group in groups.items():
        for member in members_of(group):
            held_by.setdefault(member, []).append(name)

    def is_below(name: str, frame: str | None) -> bool:
        """Return whether a group, or a group that contains it, is below a frame."""
        chain = dict.fromkeys([name])
        for outer in (waiting := [name]):
            inside = [holder for holder in held_by.get(("group", outer), []) if holder not in chain]
            chain.update(dict.fromkeys(inside))
            waiting += inside
        return any(frame in groups[outer].parents for outer in chain)

    above: dict[SceneNode, SceneNode | None] = {}
    others: list[tuple[SceneNode, SceneNode]] = []

    def hang(node: SceneNode, holder: list[SceneNode], rest: list[SceneNode]) -> None:
        above[node] = holder[0] if holder else None
        others.extend((other, node) for other in rest)

    for name in scene.frame_names:
        frame: SceneNode = ("frame", name)
        parent, holding = scene.parent(name), held_by.get(frame, [])
        between = [group for group in holding if is_below(group, parent)][:1]
        rest: list[SceneNode] = [("group", group) for group in holding if group not in between]
        first: list[SceneNode] = [("group", group) for group in between] or nodes_of(
            [parent] if parent else [], ()
        )
        hang(frame, first, rest)
    for name, group in groups.items():
        outer: list[SceneNode] = [("group", holder) for holder in held_by.get(("group", name), [])]
        outer += nodes_of(group.parents, ())
        hang(("group", name), outer[:1], outer[1:])
    return above, others


def _box(scene: SceneGraph, node: SceneNode, row: Row, describer: Describer) -> Box:
    kind, name = node
    uuid = str(uuid_of(scene, node))
    if kind == "group":
        group = scene.group(name)
        said = f"group {clean(name)}; {uuid}"
        details = [f"[{uuid[:8]}]", *_lines(group.attributes)]
        return Box(
            row, short_label(name), "", JOINT_COLOURS["fixed"], (), said, tuple(details), _GROUP
        )
    words = describer.words(name)
    details = [f"[{uuid[:8]}]", *_lines(scene.attributes(name))]
    pose, history = scene.specification(name).pose, scene.stamped_poses(name)
    if words.shapes:
        details.append(words.shapes)
    if history is not None or pose != Pose():
        x, y, z = pose.translation
        details.append(f"T = ({number(x)}, {number(y)}, {number(z)})")
    if history is not None:
        details.append(f"Updates: {len(history)}")
    said = "; ".join(
        part for part in (words.name, uuid, words.joint, words.classes, words.shapes) if part
    )
    colour = JOINT_COLOURS.get(scene.joint(name).type, JOINT_COLOURS["fixed"])
    fill = _GEOMETRIC if scene.shapes(name) else _TRANSFORM
    return Box(row, short_label(name), "", colour, (), said, tuple(details), fill)


def _lines(attributes: Mapping[str, Any]) -> list[str]:
    """Return a line for each attribute; a repeated key has one for each of its values."""
    lines = []
    for key in sorted(attributes):
        value = attributes[key]
        for one in value if isinstance(value, Sequence) and not isinstance(value, str) else [value]:
            text = f"{key} = {one if isinstance(one, str) else attribute_text(key, one)}"
            lines.append(
                f"({clean(text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + '…')})"
            )
    return lines
