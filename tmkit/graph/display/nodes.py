"""Frames and groups as one graph, with ids, attributes, translations and histories: the drawing of a robot scene graph.

Source: Blumenthal and Bruyninckx, "Towards a Domain Specific Language for a Scene Graph based Robotic World Model",
2014, figure 4.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tmkit._core import Pose, SceneGraph
from tmkit.errors import SceneError
from tmkit.graph.attributes import attribute_text
from tmkit.graph.display.outline import Describer, Row, clean, count_of, number
from tmkit.graph.display.svg import JOINT_COLOURS, Box, picture_of, short_label
from tmkit.graph.nodes import SceneNode, uuid_of

_TRANSFORM, _GEOMETRIC, _GROUP = "#fff0b8", "#cdebc6", "#e9edf3"
_KINDS = (("frame", _TRANSFORM), ("frame with shapes", _GEOMETRIC), ("group", _GROUP))
_LONGEST_LINE = 44


def graph_svg(scene: SceneGraph, *, start: str | SceneNode | None = None, max_nodes: int = 200) -> str:
    """Return a drawing of frames and groups with what they hold, as the text of an SVG file.

    Each node has the start of its UUID in square brackets and its attributes in round ones; a frame also its
    translation ``T`` relative to its parent, in metres in the axes of the parent, unless it is the parent's pose, and
    the number of poses in its history (``Updates``). A frame hangs on the group that contains it where that is below
    the frame's parent; dashed lines lead from what else contains a node. O(n + members of groups).

    Args:
        scene: the version that is drawn.
        start: the node on the left, or the name of a frame; by default all roots, and all groups below nothing.
        max_nodes: how many nodes are drawn at most, those near the start first; the others are counted.

    Raises:
        UnknownNameError: no such frame or group.
        SceneError: a limit below 1, or a node of another kind.
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
    stack: list[tuple[SceneNode, str | None, int]] = [(node, None, 0) for node in reversed(tops[:max_nodes])]
    while stack:
        node, parent, level = stack.pop()
        key = ":".join(node)
        boxes.append(_box(scene, node, Row(key, parent, 0, (False,) * level), describer))
        drawn = [child for child in below.get(node, []) if child in shown]
        left_out = len(below.get(node, [])) - len(drawn)
        if left_out:
            words, row = count_of("more node", left_out), Row(None, key, left_out, (False,) * (level + 1))
            boxes.append(Box(row, f"... and {words}", "", "#6b7280", (), words))
        stack += [(child, key, level + 1) for child in reversed(drawn)]
    dashed = [(":".join(holder), ":".join(node)) for holder, node in others if holder in shown and node in shown]
    return picture_of(boxes, dashed, kinds=_KINDS)


def _holders(scene: SceneGraph) -> tuple[dict[SceneNode, SceneNode | None], list[tuple[SceneNode, SceneNode]]]:
    """Return what each node hangs on, and what else contains it."""
    held_by: dict[SceneNode, list[str]] = {}
    groups = {name: scene.group(name) for name in scene.group_names}
    for name, group in groups.items():
        members: list[SceneNode] = [
            *(("frame", frame) for frame in group.frames),
            *(("group", g) for g in group.groups),
        ]
        for member in members:
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

    def hang(node: SceneNode, holders: list[SceneNode]) -> None:
        above[node] = holders[0] if holders else None
        others.extend((holder, node) for holder in holders[1:])

    for name in scene.frame_names:
        frame: SceneNode = ("frame", name)
        parent, holding = scene.parent(name), held_by.get(frame, [])
        between = [group for group in holding if is_below(group, parent)][:1]
        rest: list[SceneNode] = [("group", group) for group in holding if group not in between]
        if between:
            hang(frame, [("group", between[0]), *rest])
        elif parent is not None:
            hang(frame, [("frame", parent), *rest])
        else:
            above[frame] = None
            others.extend((group, frame) for group in rest)
    for name, group in groups.items():
        outer: list[SceneNode] = [("group", holder) for holder in held_by.get(("group", name), [])]
        hang(("group", name), [*outer, *(("frame", parent) for parent in group.parents)])
    return above, others


def _box(scene: SceneGraph, node: SceneNode, row: Row, describer: Describer) -> Box:
    kind, name = node
    uuid = str(uuid_of(scene, node))
    if kind == "group":
        group = scene.group(name)
        said = f"group {clean(name)}; {uuid}"
        details = [f"[{uuid[:8]}]", *_lines(group.attributes)]
        return Box(row, short_label(name), "", JOINT_COLOURS["fixed"], (), said, tuple(details), _GROUP)
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
    said = "; ".join(part for part in (words.name, uuid, words.joint, words.classes, words.shapes) if part)
    colour = JOINT_COLOURS.get(scene.joint(name).type, JOINT_COLOURS["fixed"])
    fill = _GEOMETRIC if scene.shapes(name) else _TRANSFORM
    return Box(row, short_label(name), "", colour, (), said, tuple(details), fill)


def _lines(attributes: Mapping[str, Any]) -> list[str]:
    """Return a line for each attribute; a repeated key has one for each of its values."""
    lines = []
    for key in sorted(attributes):
        value = attributes[key]
        for one in value if isinstance(value, Sequence) and not isinstance(value, str) else [value]:
            text = f"{key} = {one if isinstance(one, str) else attribute_text(one)}"
            lines.append(f"({clean(text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + '…')})")
    return lines
