"""SVG drawings of the tree of a scene, and of its frames and groups as a graph.

A box stands for a frame, with the roots on the left and the leaves on the right. Each frame has a
strip that is as high as its box or as the strips of its children together. The box is centred in
its strip, so boxes never overlap. A column is as wide as the widest box of its level. The layout
takes two passes over the outline, without recursion.

The output is plain SVG 1.1 with attributes only, on a white background. The tooltip of a box
(``<title>``) has the complete description of the frame. Source of the graph drawing: Blumenthal and
Bruyninckx, "Towards a Domain Specific Language for a Scene Graph based Robotic World Model", 2014,
figure 4.
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
"""Colour of the edge and the outline of a frame, by type of joint."""

_MOVABLE_FILL = "#ffe9b0"
"""Fill of movable frames."""

_PLAIN_FILL = "#f2f4f7"
"""Fill of other frames in a tree."""

_FRAME_FILL = "#fff0b8"
"""Fill of frames without shapes in a graph."""

_SHAPES_FILL = "#cdebc6"
"""Fill of frames with shapes in a graph."""

_GROUP_FILL = "#e9edf3"
"""Fill of groups."""

_TEXT_COLOUR = "#1d2430"
"""Colour of labels."""

_FAINT_COLOUR = "#6b7280"
"""Colour of notes, and of edges without a known joint type."""

_BAR_COLOUR = "#b03060"
"""Colour of the bar below surfaces."""

_NODE_LEGEND = (("frame", _FRAME_FILL), ("frame with shapes", _SHAPES_FILL), ("group", _GROUP_FILL))
"""Legend of a graph."""

_FONTS = "ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace"

_LETTER_WIDTH = 7.3
"""Width of a letter of a label [px]."""

_SMALL_LETTER_WIDTH = 5.5
"""Width of a letter of a note or detail [px]."""

_LEGEND_LETTER_WIDTH = 6.7
"""Width of a letter of the legend [px]."""

_BOX_PADDING = 9
"""Distance of a label from the sides of its box [px]."""

_ROW_GAP = 8
"""Vertical distance of boxes [px]."""

_COLUMN_GAP = 44
"""Horizontal distance of columns [px]."""

_DRAWING_MARGIN = 16
"""Distance of the drawing from its border [px]."""

_LINE_HEIGHT = 12
"""Distance of two lines of details [px]."""

_LEGEND_HEIGHT = 34
"""Height of the legend [px]."""

_LONGEST_LABEL = 28
"""Largest number of characters of a label."""

_LONGEST_LINE = 44
"""Largest number of characters of an attribute."""

_DASHES = ' stroke-dasharray="5 4"'


@dataclass(frozen=True)
class Box:
    """Box of a drawing; lengths in pixels.

    Attributes:
        row: line of the outline; ``row.frame`` is the key of the box.
        note: second line of text: the joint.
        details: further lines of text.
        fill: colour instead of that of its classes.
        strip: height of its strip.
        top: y coordinate of the top of its strip.
        x: x coordinate of its left side.
    """

    row: Row
    label: str
    note: str
    colour: str
    classes: tuple[str, ...]
    tooltip: str
    details: tuple[str, ...] = ()
    fill: str = ""
    strip: float = 0.0
    top: float = 0.0
    x: float = 0.0

    @property
    def width(self) -> float:
        """Width [px]."""
        small = max((_columns(text) for text in (self.note, *self.details)), default=0)
        return 2 * _BOX_PADDING + max(
            _LETTER_WIDTH * _columns(self.label), _SMALL_LETTER_WIDTH * small
        )

    @property
    def height(self) -> float:
        """Height [px]."""
        return (36.0 if self.note else 24.0) + _LINE_HEIGHT * len(self.details)

    @property
    def middle(self) -> float:
        """Y coordinate of the middle [px]."""
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

    Edges are coloured by the type of joint. Movable frames and surfaces are marked, and omitted
    frames are counted. O(n).

    Args:
        scene: the version to draw.
        frame: the frame on the left; all roots by default.
        depth: number of levels below it; 32 by default.
        max_frames: largest number of drawn frames, the upper levels first.
        max_children: largest number of drawn children of one frame.

    Raises:
        UnknownNameError: if a frame is unknown.
        SceneError: if the depth is negative, or a limit is below 1.
    """
    outline = outline_of(
        scene, frame=frame, depth=depth, max_frames=max_frames, max_children=max_children
    )
    describer = Describer(scene)
    boxes = [_tree_box(scene, row, describer) for row in outline.rows()]
    return render_svg(boxes)


def render_svg(
    boxes: list[Box],
    dashed_edges: Sequence[tuple[str, str]] = (),
    *,
    fills: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the drawing of boxes as the text of an SVG file.

    Args:
        boxes: boxes in the order of the outline.
        dashed_edges: keys of boxes joined by additional edges.
        fills: (name, colour) of a legend of fills. Defaults to a legend of joints and classes.
    """
    boxes = _lay_out(boxes)
    legend, legend_width = _legend_of_fills(fills) if fills else _legend(boxes)
    right = max([box.x + box.width for box in boxes] + [_DRAWING_MARGIN + legend_width])
    bottom = max([box.top + box.strip for box in boxes], default=float(_DRAWING_MARGIN))
    width, height = right + _DRAWING_MARGIN, bottom + _LEGEND_HEIGHT + _DRAWING_MARGIN
    by_key = {box.row.frame: box for box in boxes if box.row.frame is not None}
    lines = [_edge_element(by_key[b.row.parent], b) for b in boxes if b.row.parent in by_key]
    lines += [_dashed_edge_element(by_key[a], by_key[b]) for a, b in dashed_edges]
    legend_y = bottom + _LEGEND_HEIGHT / 2 + 4
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONTS}">'
        ),
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *lines,
        *(_box_element(box) for box in boxes),
        f'<g transform="translate({_DRAWING_MARGIN} {legend_y:.1f})">{legend}</g>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _tree_box(scene: SceneGraph, row: Row, describer: Describer) -> Box:
    """Return the box of a row of the tree."""
    if row.frame is None:
        tooltip = count_of("more frame", row.more)
        return Box(row, f"... and {row.more:,} more", "", _FAINT_COLOUR, (), tooltip)
    description, joint = describer.describe(row.frame), scene.joint(row.frame)
    note = joint.type if joint.type != "fixed" else ""
    if joint.is_actuated and joint.name != row.frame:
        note += f" {short_label(joint.name)}"
    texts = [
        description.name,
        description.joint,
        description.classes,
        f"on {description.body}" if description.body else "",
        description.shapes,
    ]
    tooltip = "; ".join(text for text in texts if text)
    return Box(
        row,
        short_label(row.frame),
        note,
        JOINT_COLOURS.get(joint.type, _FAINT_COLOUR),
        scene.classes(row.frame),
        tooltip,
    )


def short_label(name: str) -> str:
    """Return a name truncated to the length of a label."""
    label = clean(name)
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"


def _columns(text: str) -> int:
    """Return the width of a text in columns; a wide East Asian character takes two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _lay_out(boxes: Sequence[Box]) -> list[Box]:
    """Return the boxes with their positions.

    Args:
        boxes: boxes in the order of the outline: parents before children, siblings from top to
            bottom.
    """
    index_of: dict[str | None, int] = {
        box.row.frame: index for index, box in enumerate(boxes) if box.row.frame is not None
    }
    parents = [index_of.get(box.row.parent) for box in boxes]

    # Compute the heights of the strips, children before parents.
    inner = [0.0] * len(boxes)  # total height of the children's strips
    strips = [0.0] * len(boxes)
    for index, box in reversed([*enumerate(boxes)]):
        strips[index] = max(box.height + _ROW_GAP, inner[index])
        parent = parents[index]
        if parent is not None:
            inner[parent] += strips[index]

    # Stack the strips, parents before children.
    tops, next_tops, end = [0.0] * len(boxes), [0.0] * len(boxes), float(_DRAWING_MARGIN)
    for index, parent in enumerate(parents):
        if parent is None:
            tops[index], end = end, end + strips[index]
        else:
            tops[index] = next_tops[parent]
            next_tops[parent] += strips[index]
        next_tops[index] = tops[index] + (strips[index] - (inner[index] or strips[index])) / 2

    # Compute the columns.
    widths = [0.0] * (max((box.row.level for box in boxes), default=0) + 1)
    for box in boxes:
        widths[box.row.level] = max(widths[box.row.level], box.width)
    steps = (width + _COLUMN_GAP for width in widths)
    lefts = [*itertools.accumulate(steps, initial=float(_DRAWING_MARGIN))]
    return [
        replace(box, strip=strip, top=top, x=lefts[box.row.level])
        for box, strip, top in zip(boxes, strips, tops, strict=True)
    ]


def _dashed_edge_element(holder: Box, box: Box) -> str:
    """Return the dashed line from a box to a box that it also contains."""
    x, y1, y2 = holder.x + holder.width, holder.middle, box.middle
    end = box.x if box.x >= x else box.x + box.width
    bend = max(x, end) + _COLUMN_GAP / 2
    second_bend = bend if end != box.x else x
    path = f"M {x:.1f} {y1:.1f} C {bend:.1f} {y1:.1f} {second_bend:.1f} {y2:.1f} {end:.1f} {y2:.1f}"
    style = f'stroke="{_FAINT_COLOUR}" stroke-width="1.4"{_DASHES}'
    return f'<path d="{path}" fill="none" {style}/>'


def _edge_element(parent: Box, box: Box) -> str:
    """Return the line from a box to one of its children."""
    x, y1, y2 = parent.x + parent.width, parent.middle, box.middle
    bend = x + _COLUMN_GAP / 2  # next to the parent, so lines of different colours separate early
    path = (
        f"M {x:.1f} {y1:.1f} C {bend:.1f} {y1:.1f} {bend:.1f} {y2:.1f} {x + _COLUMN_GAP:.1f}"
        f" {y2:.1f} H {box.x:.1f}"
    )
    dashes = _DASHES if box.colour in (JOINT_COLOURS["free"], _FAINT_COLOUR) else ""
    width = 2.2 if box.note else 1.4
    return f'<path d="{path}" fill="none" stroke="{box.colour}" stroke-width="{width}"{dashes}/>'


def _box_element(box: Box) -> str:
    x, y, middle = box.x, box.middle - box.height / 2, box.x + box.width / 2
    title = f"<title>{html.escape(box.tooltip)}</title>"
    if box.row.frame is None:
        label = _text_element(x + 5, box.middle + 4, box.label, _FAINT_COLOUR, anchor="start")
        return f"<g>{title}{label}</g>"
    fill = box.fill or (_MOVABLE_FILL if "movable" in box.classes else _PLAIN_FILL)
    parts = [title, _rectangle_element(x, y, box.width, box.height, fill, box.colour)]
    if "surface" in box.classes:
        parts.append(_bar_element(x, y + box.height, box.width))
    parts.append(_text_element(middle, y + 16, box.label, _TEXT_COLOUR))
    if box.note:
        parts.append(_text_element(middle, y + 29, box.note, box.colour, size=9))
    for row, text in enumerate(box.details):
        baseline = y + box.height - 8 - _LINE_HEIGHT * (len(box.details) - 1 - row)
        parts.append(_text_element(middle, baseline, text, _TEXT_COLOUR, size=9))
    return f"<g>{''.join(parts)}</g>"


def _rectangle_element(
    x: float, y: float, width: float, height: float, fill: str, stroke: str
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} rx="5" fill="{fill}" stroke="{stroke}" stroke-width="1.2"/>'


def _bar_element(x: float, y: float, width: float) -> str:
    return _line_element(x + 4, y, x + width - 4, _BAR_COLOUR, width=3.5)


def _line_element(
    x1: float, y: float, x2: float, colour: str, *, width: float, dashes: str = ""
) -> str:
    place = f'x1="{x1:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y:.1f}"'
    return f'<line {place} stroke="{colour}" stroke-width="{width}"{dashes}/>'


def _text_element(
    x: float, y: float, text: str, colour: str, *, size: int = 12, anchor: str = "middle"
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}">{html.escape(text)}</text>'


def _legend(boxes: list[Box]) -> tuple[str, float]:
    """Return the legend of the colours in a drawing, and its width [px]."""
    colours = {box.colour for box in boxes if box.row.parent is not None}
    x, parts = 0.0, []
    for name, colour in JOINT_COLOURS.items():
        if colour in colours:
            dashes = _DASHES if name == "free" else ""
            parts.append(_line_element(x, 0, x + 22, colour, width=2.2, dashes=dashes))
            x += _add_legend_label(parts, x, name)
    for name, fill in (("movable", _MOVABLE_FILL), ("surface", _PLAIN_FILL)):
        if any(name in box.classes for box in boxes):
            parts.append(_rectangle_element(x, -7, 22, 14, fill, JOINT_COLOURS["fixed"]))
            parts += [_bar_element(x, 7, 22)] if name == "surface" else []
            x += _add_legend_label(parts, x, name)
    return "".join(parts), x


def _legend_of_fills(fills: Sequence[tuple[str, str]]) -> tuple[str, float]:
    """Return a legend of fills, and its width [px]."""
    x, parts = 0.0, []
    for name, fill in fills:
        parts.append(_rectangle_element(x, -7, 22, 14, fill, JOINT_COLOURS["fixed"]))
        x += _add_legend_label(parts, x, name)
    return "".join(parts), x


def _add_legend_label(parts: list[str], x: float, name: str) -> float:
    """Add the label of a symbol that begins at x; return the width of both [px]."""
    parts.append(_text_element(x + 28, 4, name, _TEXT_COLOUR, size=11, anchor="start"))
    return 28 + _LEGEND_LETTER_WIDTH * len(name) + 18


def graph_svg(
    scene: SceneGraph, *, start: str | SceneNode | None = None, max_nodes: int = 200
) -> str:
    """Return a drawing of frames, groups and their members, as the text of an SVG file.

    Each node has the first digits of its UUID in square brackets and its attributes in round ones.
    A frame also has its translation ``T`` in the axes of its parent [m], unless its pose is the
    identity. ``Updates`` is the number of poses in its history. A frame is drawn below a group that
    contains it, if that group is below the frame's parent. Dashed lines lead from further holders
    of a node. O(n + members of groups).

    Args:
        scene: the version to draw.
        start: the node on the left, or the name of a frame; by default all roots, and all groups
            without a holder.
        max_nodes: largest number of drawn nodes, the upper levels first. The others are counted.

    Raises:
        UnknownNameError: if a frame or group is unknown.
        SceneError: if the limit is below 1, or the node has another kind.
    """
    if max_nodes < 1:
        raise SceneError(f"max_nodes must be at least 1, not {max_nodes}")
    holders, further_holders = _holders(scene)
    members: dict[SceneNode | None, list[SceneNode]] = {}
    for node, holder in holders.items():
        members.setdefault(holder, []).append(node)
    tops = members.get(None, [])
    if start is not None:
        uuid_of(scene, start)  # raise for an unknown node
        tops = [("frame", start) if isinstance(start, str) else start]

    # Select the nodes, level by level.
    selection: dict[SceneNode, None] = dict.fromkeys(tops[:max_nodes])
    queue = deque(selection)
    while queue:
        children = members.get(queue.popleft(), [])[: max_nodes - len(selection)]
        selection.update(dict.fromkeys(children))
        queue.extend(children)

    # Make the boxes in the order of the outline.
    describer = Describer(scene)
    boxes: list[Box] = []
    stack: list[tuple[SceneNode, str | None, int]] = [
        (node, None, 0) for node in reversed(tops[:max_nodes])
    ]
    while stack:
        node, parent, level = stack.pop()
        key = ":".join(node)
        boxes.append(_graph_box(scene, node, Row(key, parent, 0, (False,) * level), describer))
        children = [child for child in members.get(node, []) if child in selection]
        n_omitted = len(members.get(node, [])) - len(children)
        if n_omitted:
            text = count_of("more node", n_omitted)
            row = Row(None, key, n_omitted, (False,) * (level + 1))
            boxes.append(Box(row, f"... and {text}", "", _FAINT_COLOUR, (), text))
        stack += [(child, key, level + 1) for child in reversed(children)]
    dashed_edges = [
        (":".join(holder), ":".join(node))
        for holder, node in further_holders
        if holder in selection and node in selection
    ]
    return render_svg(boxes, dashed_edges, fills=_NODE_LEGEND)


def _holders(
    scene: SceneGraph,
) -> tuple[dict[SceneNode, SceneNode | None], list[tuple[SceneNode, SceneNode]]]:
    """Return the holder by node, None at the top, and (holder, node) of all further holders."""
    groups_of: dict[SceneNode, list[str]] = {}
    groups = {name: scene.group(name) for name in scene.group_names}
    for name, group in groups.items():
        for member in members_of(group):
            groups_of.setdefault(member, []).append(name)

    def is_below(name: str, frame: str | None) -> bool:
        """Return whether a group, or a group that contains it, is below a frame."""
        chain = dict.fromkeys([name])
        for outer in (queue := [name]):
            further = [group for group in groups_of.get(("group", outer), []) if group not in chain]
            chain.update(dict.fromkeys(further))
            queue += further
        return any(frame in groups[outer].parents for outer in chain)

    holders: dict[SceneNode, SceneNode | None] = {}
    further_holders: list[tuple[SceneNode, SceneNode]] = []

    def set_holders(node: SceneNode, first: list[SceneNode], rest: list[SceneNode]) -> None:
        holders[node] = first[0] if first else None
        further_holders.extend((holder, node) for holder in rest)

    for name in scene.frame_names:
        frame: SceneNode = ("frame", name)
        parent, frame_groups = scene.parent(name), groups_of.get(frame, [])
        inner_groups = [group for group in frame_groups if is_below(group, parent)][:1]
        rest: list[SceneNode] = [
            ("group", group) for group in frame_groups if group not in inner_groups
        ]
        first: list[SceneNode] = [("group", group) for group in inner_groups]
        set_holders(frame, first or nodes_of([parent] if parent else [], ()), rest)
    for name, group in groups.items():
        outer: list[SceneNode] = [("group", g) for g in groups_of.get(("group", name), [])]
        outer += nodes_of(group.parents, ())
        set_holders(("group", name), outer[:1], outer[1:])
    return holders, further_holders


def _graph_box(scene: SceneGraph, node: SceneNode, row: Row, describer: Describer) -> Box:
    """Return the box of a node of the graph."""
    kind, name = node
    uuid = str(uuid_of(scene, node))
    colour = JOINT_COLOURS["fixed"]
    if kind == "group":
        group = scene.group(name)
        tooltip = f"group {clean(name)}; {uuid}"
        details = [f"[{uuid[:8]}]", *_attribute_lines(group.attributes)]
        return Box(row, short_label(name), "", colour, (), tooltip, tuple(details), _GROUP_FILL)
    description = describer.describe(name)
    details = [f"[{uuid[:8]}]", *_attribute_lines(scene.attributes(name))]
    pose, history = scene.specification(name).pose, scene.stamped_poses(name)
    if description.shapes:
        details.append(description.shapes)
    if history is not None or pose != Pose():
        x, y, z = pose.translation
        details.append(f"T = ({number(x)}, {number(y)}, {number(z)})")
    if history is not None:
        details.append(f"Updates: {len(history)}")
    texts = [description.name, uuid, description.joint, description.classes, description.shapes]
    tooltip = "; ".join(text for text in texts if text)
    colour = JOINT_COLOURS.get(scene.joint(name).type, colour)
    fill = _SHAPES_FILL if scene.shapes(name) else _FRAME_FILL
    return Box(row, short_label(name), "", colour, (), tooltip, tuple(details), fill)


def _attribute_lines(attributes: Mapping[str, Any]) -> list[str]:
    """Return a line for each attribute; a list has a line for each of its values."""
    lines = []
    for key in sorted(attributes):
        value = attributes[key]
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        for item in value if is_list else [value]:
            text = f"{key} = {item if isinstance(item, str) else attribute_text(key, item)}"
            if len(text) > _LONGEST_LINE:
                text = text[: _LONGEST_LINE - 1] + "…"
            lines.append(f"({clean(text)})")
    return lines
