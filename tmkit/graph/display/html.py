"""A scene in a notebook: a line of numbers, the tree to open and close, the joints, and the drawing.

Plain HTML with styles in place: no script, no style sheet, nothing that reaches beyond the cell;
colours are those of the page. Whatever comes from the scene goes through :func:`_escaped`.
"""

from __future__ import annotations

import html

from numpy.typing import ArrayLike

from tmkit._core import SceneGraph
from tmkit.graph.display.outline import Describer, clean, count_of, number, outline_of, unit_of
from tmkit.graph.display.svg import tree_svg

_OPEN_LEVELS = 2  # of the tree that are unfolded at first
_JOINTS_SHOWN = 100
_FRAMES_DRAWN = 60
_LIST = 'style="list-style:none;margin:0;padding-left:1.2em"'
_FAINT = 'style="opacity:0.65"'
_CELL = 'style="text-align:left;padding:0 1em 0 0"'


def tree_html(
    scene: SceneGraph, *, q: ArrayLike | None = None, max_frames: int = 200, max_children: int = 40
) -> str:
    """Return what a notebook shows for a scene, as HTML: numbers, tree, joints, and a drawing of the upper frames.

    Args:
        scene: the version that is shown.
        q: configuration (n_joints,): joints are shown with their values and frames with their place
            in metres.
        max_frames: how many frames of the tree are shown at most, the upper levels first.
        max_children: how many children of one frame are shown at most.

    Raises:
        ConfigurationError: if q has the wrong length.
        SceneError: if a limit is below 1.
    """
    describer = Describer(scene, q)
    parts = [
        f"<div><b>SceneGraph</b>: {_numbers(scene)}</div>",
        _folded("Frames", _tree(scene, describer, max_frames, max_children), is_open=True),
    ]
    if scene.joint_names:
        parts.append(_folded("Joints", _joints(scene, describer)))
    if len(scene):
        drawing = tree_svg(scene, max_frames=_FRAMES_DRAWN, max_children=20)
        parts.append(_folded("Drawing", f'<div style="overflow-x:auto">{drawing}</div>'))
    return f'<div style="line-height:1.4">{"".join(parts)}</div>'


def _numbers(scene: SceneGraph) -> str:
    numbers = [
        count_of("frame", len(scene)),
        count_of("joint", len(scene.joint_names)),
        count_of("body", len(scene.body_names), plural="bodies"),
    ]
    if len(scene.root_names) != 1:
        numbers.append(count_of("tree", len(scene.root_names)))
    movable = len(scene.frames_of_class("movable"))
    return ", ".join(numbers + [f"{movable:,} movable"] * (movable > 0))


def _folded(title: str, content: str, *, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{title}</summary>{content}</details>"


def _tree(scene: SceneGraph, describer: Describer, max_frames: int, max_children: int) -> str:
    shown = outline_of(
        scene, frame=None, depth=None, max_frames=max_frames, max_children=max_children
    )
    parts = [f"<ul {_LIST}>"]
    level = 0
    for row in shown.rows():
        while level > row.level:
            parts.append("</ul></details></li>")
            level -= 1
        if row.frame is None:
            parts.append(f"<li {_FAINT}>... and {count_of('more frame', row.more)}</li>")
            continue
        line = _line(describer, row.frame)
        if shown.children.get(row.frame) or row.frame in shown.more:
            is_open = " open" if row.level < _OPEN_LEVELS else ""
            parts.append(f"<li><details{is_open}><summary>{line}</summary><ul {_LIST}>")
            level += 1
        else:
            parts.append(f"<li>{line}</li>")
    return "".join([*parts, "</ul></details></li>" * level, "</ul>"])


def _line(describer: Describer, frame: str) -> str:
    words = describer.words(frame)
    line = f"<b>{_escaped(words.name)}</b>"
    line += f" <i>{_escaped(words.joint)}</i>" if words.joint else ""
    line += f" ({_escaped(words.classes)})" if words.classes else ""
    rest = [
        f"on {words.body}" if words.body else "",
        words.shapes,
        f"at {words.place}" if words.place else "",
    ]
    said = "; ".join(_escaped(part) for part in rest if part)
    return line + (f" <span {_FAINT}>{said}</span>" if said else "")


def _joints(scene: SceneGraph, describer: Describer) -> str:
    names, frames, values = scene.joint_names, scene.joint_frames, describer.values
    rows = [
        ["", "joint", "type", "frame", "lower", "upper", "velocity", *(["value"] if values else [])]
    ]
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
    for place, row in enumerate(rows):
        tag = "td" if place else "th"
        lines.append(
            f"<tr>{''.join(f'<{tag} {_CELL}>{_escaped(cell)}</{tag}>' for cell in row)}</tr>"
        )
    left = len(names) - _JOINTS_SHOWN
    more = f"<div {_FAINT}>... and {count_of('more joint', left)}</div>" if left > 0 else ""
    return f"<table>{''.join(lines)}</table>{more}"


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)
