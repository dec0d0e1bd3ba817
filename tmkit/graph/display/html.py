"""HTML of a scene for notebooks: counts, a collapsible tree, the joints and a drawing.

The output is plain HTML with inline styles: no script, no style sheet, no effect outside of the
cell, and the colours of the page. All texts of the scene are escaped by :func:`_escape`.
"""

from __future__ import annotations

import html

from numpy.typing import ArrayLike

from tmkit._core import SceneGraph
from tmkit.graph.display.outline import Describer, clean, count_of, number, outline_of, unit_of
from tmkit.graph.display.svg import tree_svg

_OPEN_LEVELS = 2
"""Number of levels of the tree that are expanded at first."""

_JOINTS_SHOWN = 100
"""Largest number of joints in the table."""

_FRAMES_DRAWN = 60
"""Largest number of frames in the drawing."""

_LIST_STYLE = 'style="list-style:none;margin:0;padding-left:1.2em"'
_FAINT_STYLE = 'style="opacity:0.65"'
_CELL_STYLE = 'style="text-align:left;padding:0 1em 0 0"'


def tree_html(
    scene: SceneGraph, *, q: ArrayLike | None = None, max_frames: int = 200, max_children: int = 40
) -> str:
    """Return the HTML of a scene: counts, tree, joints, and a drawing of the upper frames.

    Args:
        scene: the version to display.
        q: (n_joints,) configuration, for joint values [rad or m] and positions of frames [m].
        max_frames: largest number of displayed frames of the tree, the upper levels first.
        max_children: largest number of displayed children of one frame.

    Raises:
        ConfigurationError: if q has the wrong length.
        SceneError: if a limit is below 1.
    """
    describer = Describer(scene, q)
    parts = [
        f"<div><b>SceneGraph</b>: {_counts(scene)}</div>",
        _details_element(
            "Frames", _tree_list(scene, describer, max_frames, max_children), is_open=True
        ),
    ]
    if scene.joint_names:
        parts.append(_details_element("Joints", _joint_table(scene, describer)))
    if len(scene):
        drawing = tree_svg(scene, max_frames=_FRAMES_DRAWN, max_children=20)
        parts.append(_details_element("Drawing", f'<div style="overflow-x:auto">{drawing}</div>'))
    return f'<div style="line-height:1.4">{"".join(parts)}</div>'


def _counts(scene: SceneGraph) -> str:
    counts = [
        count_of("frame", len(scene)),
        count_of("joint", len(scene.joint_names)),
        count_of("body", len(scene.body_names), plural="bodies"),
    ]
    if len(scene.root_names) != 1:
        counts.append(count_of("tree", len(scene.root_names)))
    n_movable = len(scene.frames_of_class("movable"))
    if n_movable:
        counts.append(f"{n_movable:,} movable")
    return ", ".join(counts)


def _details_element(title: str, content: str, *, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{title}</summary>{content}</details>"


def _tree_list(scene: SceneGraph, describer: Describer, max_frames: int, max_children: int) -> str:
    outline = outline_of(
        scene, frame=None, depth=None, max_frames=max_frames, max_children=max_children
    )
    parts = [f"<ul {_LIST_STYLE}>"]
    level = 0
    for row in outline.rows():
        while level > row.level:
            parts.append("</ul></details></li>")
            level -= 1
        if row.frame is None:
            parts.append(f"<li {_FAINT_STYLE}>... and {count_of('more frame', row.more)}</li>")
            continue
        line = _frame_line(describer, row.frame)
        if outline.children.get(row.frame) or row.frame in outline.more:
            is_open = " open" if row.level < _OPEN_LEVELS else ""
            parts.append(f"<li><details{is_open}><summary>{line}</summary><ul {_LIST_STYLE}>")
            level += 1
        else:
            parts.append(f"<li>{line}</li>")
    return "".join([*parts, "</ul></details></li>" * level, "</ul>"])


def _frame_line(describer: Describer, frame: str) -> str:
    description = describer.describe(frame)
    line = f"<b>{_escape(description.name)}</b>"
    line += f" <i>{_escape(description.joint)}</i>" if description.joint else ""
    line += f" ({_escape(description.classes)})" if description.classes else ""
    parts = [
        f"on {description.body}" if description.body else "",
        description.shapes,
        f"at {description.position}" if description.position else "",
    ]
    details = "; ".join(_escape(part) for part in parts if part)
    return line + (f" <span {_FAINT_STYLE}>{details}</span>" if details else "")


def _joint_table(scene: SceneGraph, describer: Describer) -> str:
    names, frames, values = scene.joint_names, scene.joint_frames, describer.values
    rows = [["", "joint", "type", "frame", "lower", "upper", "velocity"]]
    if values:
        rows[0].append("value")
    for index, (name, frame) in enumerate(zip(names[:_JOINTS_SHOWN], frames, strict=False)):
        joint = scene.joint(frame)
        unit = unit_of(joint)
        row = [str(index), clean(name), joint.type, clean(frame)]
        row += [
            f"{number(joint.lower)} {unit}",
            f"{number(joint.upper)} {unit}",
            f"{number(joint.velocity)} {unit}/s",
        ]
        rows.append(row + ([f"{number(values[name])} {unit}"] if values else []))
    lines = []
    for index, row in enumerate(rows):
        tag = "td" if index else "th"
        cells = [f"<{tag} {_CELL_STYLE}>{_escape(cell)}</{tag}>" for cell in row]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    table = f"<table>{''.join(lines)}</table>"
    n_omitted = len(names) - _JOINTS_SHOWN
    if n_omitted <= 0:
        return table
    return f"{table}<div {_FAINT_STYLE}>... and {count_of('more joint', n_omitted)}</div>"


def _escape(text: str) -> str:
    return html.escape(text, quote=True)
