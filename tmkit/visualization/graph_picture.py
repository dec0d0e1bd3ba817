"""A scene's edges as a graph: bodies as boxes with their frames inside, poses as solid arrows, twists as dashed ones.

As in the figures of De Laet, Bruyninckx and De Schutter's scene graph of poses and twists (2013).
What was refused may be drawn along, crossed out, with the reason below: :func:`try_edge` tries an
edge and says what the scene says.

Bodies are laid out in layers: each below those that its frames refer to, those of a layer from left
to right in the order in which the edges reach them. Edges that would lie on each other are bent.
Complexity: O(n e) for n frames and e edges, which is meant for pictures that can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.errors import TmkitError
from tmkit.graph import SceneGraph, add_edge
from tmkit.graph.semantic_edges.edges import Node
from tmkit.spatial import Pose
from tmkit.visualization.drawing import (
    MARGIN,
    Area,
    Cross,
    Drawing,
    Label,
    Line,
    Mark,
    save_drawings,
)

Array = NDArray[np.float64]
EdgeKind = Literal["pose", "twist"]

_BODY, _POSE, _TWIST, _REFUSED = "#6d7680", "#1f5fa8", "#1d7f4e", "#c2262e"
_SHADE = "#f0f1f2"  # what a box is filled with
_HALF_HEIGHT = 0.27  # of a frame
_GAP = 0.35  # between frames, and from them to the edge of their box
_ROOM = 0.75  # between boxes of a layer
_LAYER = 2.1  # between layers
_INCHES = 0.6  # a unit is drawn
_APART = 0.32  # between the middles of two edges
_BOW = 0.16  # how far edges between the same nodes bend apart, as a share of their length


@dataclass(frozen=True)
class Refused:
    """Something that a scene did not take.

    Attributes:
        what: ``pose`` or ``twist`` for an edge, ``body`` or ``frame`` for a node.
        reason: what the scene said.
        rule: its name, such as ``PE3``, if it has one.
        tail: where the edge would have begun; None for a node.
        head: where it would have ended; for a node the node itself.
    """

    what: Literal["pose", "twist", "body", "frame"]
    reason: str
    head: Node
    tail: Node | None = None
    rule: str = ""


def try_edge(
    scene: SceneGraph,
    kind: EdgeKind,
    *,
    tail: Node,
    head: Node,
    value: Pose | ArrayLike | None = None,
    rule: str = "",
) -> Refused:
    """Return why a scene refuses an edge.

    Args:
        scene: the scene, which is not changed.
        kind: ``pose`` or ``twist``.
        tail: the reference.
        head: what stands, or moves, relative to it.
        value: of the edge; none of a pose or of a twist by default.
        rule: the name of the rule, where the scene's error does not have it.

    Raises:
        ValueError: the scene takes the edge.
    """
    if value is None:
        value = Pose() if kind == "pose" else np.zeros(6)
    try:
        add_edge(scene, kind, tail=tail, head=head, value=value)
    except TmkitError as error:
        return Refused(kind, str(error), head, tail, getattr(error, "rule", rule))
    raise ValueError(
        f"the scene takes a {kind} edge from {tail} to {head}: there is nothing to be refused"
    )


def semantics_graph_drawing(
    scene: SceneGraph,
    *,
    refused: Sequence[Refused] = (),
    places: Mapping[str, tuple[float, float]] | None = None,
    has_notation: bool = False,
    title: str = "",
) -> Drawing:
    """Draw the pose edges and the twist edges of a scene, and what it refused.

    Args:
        scene: the scene.
        refused: edges and nodes that are drawn crossed out, numbered, their reasons in the caption.
        places: body -> (x, y) of the middle of its box; a frame with a short name takes 0.9. Others
            are laid out.
        has_notation: whether edges are labelled with what they hold, in the papers' notation.
        title: above the drawing.
    """
    board = _Layout(scene, places or {})
    marks: list[Mark] = [
        Area(f"body {body}", _outline(*box), _BODY) for body, box in board.boxes.items()
    ]
    parents = [(scene.parent(name), name) for name in scene.frame_names]
    twists = [(scene.twist_edge(name), name) for name in scene.twist_frames]
    edges = [
        ("pose", Node("frame", parent), name) for parent, name in parents if parent is not None
    ]
    edges += [("twist", Node("body", held[0]), name) for held, name in twists if held is not None]
    for kind, tail, name in edges:
        text = _held(scene, kind, tail, name) if has_notation else ""
        marks += _arrow(
            board,
            kind,
            tail,
            Node("frame", name),
            text=text,
            color=_POSE if kind == "pose" else _TWIST,
        )
    for number, edge in enumerate(refused, start=1):
        marks += _refusal(board, edge, str(number))
    for body, box in board.boxes.items():
        marks.append(
            Label(f"body {body}", box[0], body, _BODY, offset=(6.0, 8.0), background=_SHADE)
        )
    for name, at in board.frames.items():
        marks += _frame(f"frame {{{name}}}", at, name, "#30363d")
    reasons = [f"{edge.rule}: {edge.reason}" if edge.rule else edge.reason for edge in refused]
    caption = [f"{number}  {reason}" for number, reason in enumerate(reasons, start=1)]
    return Drawing(tuple(marks), title=title, caption=tuple(caption), largest_unit=_INCHES)


def draw_semantics_graph(
    scene: SceneGraph, path: str | Path, *, refused: Sequence[Refused] = ()
) -> Path:
    """Draw the edges of a scene into a PNG file; see :func:`semantics_graph_drawing`.

    Args:
        scene: the scene.
        path: the PNG file.
        refused: rejected relations, drawn as well; none by default.

    Raises:
        OutputError: the file cannot be written, or its name ends neither in ``.png`` nor in
            ``.svg``.
        MissingExtraError: the extra ``pictures`` is not installed.
    """
    drawing = semantics_graph_drawing(scene, refused=refused)
    low, high = drawing.bounds
    width = float(np.clip(_INCHES * (high[0] - low[0]) + 2 * MARGIN, 5.0, 40.0))
    return save_drawings([drawing], path, width=width)


class _Layout:
    """Boxes (2, 2: lower and upper corner) of bodies, middles (2,) of frames, ways taken, where strays go."""

    def __init__(self, scene: SceneGraph, places: Mapping[str, tuple[float, float]]) -> None:
        on: dict[str, list[str]] = {body: [] for body in scene.body_names}
        for name in scene.frame_names:
            on[scene.specification(name).body].append(name)
        self.boxes: dict[str, Array] = {}
        self.frames: dict[str, Array] = {}
        self._taken: list[Array] = []
        sizes = {body: _box_size(frames) for body, frames in on.items()}
        middles = _layered(scene, sizes)
        for body, frames in on.items():
            middle = np.array(places.get(body, middles[body]))
            self.boxes[body] = np.array([middle - sizes[body] / 2, middle + sizes[body] / 2])
            at = self.boxes[body][0, 0] + _GAP
            for name in frames:
                half = _half_width(name)
                self.frames[name] = np.array([at + half, middle[1]])
                at += 2 * half + _GAP
        corners = (
            np.concatenate([*self.boxes.values(), np.zeros((0, 2))])
            if self.boxes
            else np.zeros((1, 2))
        )
        self._stray = np.array([corners[:, 0].min() + 0.6, corners[:, 1].min() - 1.2])

    def next_stray(self) -> Array:
        """Return where the next frame or body without an edge goes (2,)."""
        at, self._stray = self._stray, self._stray + np.array([1.3, 0.0])
        return at

    def middle(self, node: Node) -> Array:
        return (
            self.frames[node.name]
            if node.kind == "frame"
            else np.asarray(self.boxes[node.name].mean(axis=0))
        )

    def edge_of(self, node: Node, towards: Array) -> Array:
        """Return where the straight way from the middle of a node to a place leaves the node."""
        middle = self.middle(node)
        way = towards - middle
        if node.kind == "frame":
            half = np.array([_half_width(node.name), _HALF_HEIGHT]) + 0.04
            reach = float(np.linalg.norm(way / half))
        else:
            half = (self.boxes[node.name][1] - self.boxes[node.name][0]) / 2
            reach = float(np.max(np.abs(way) / half))
        return np.asarray(middle + way / max(reach, 1e-9))

    def way(self, tail: Node, head: Node) -> Array:
        """Return points (n, 2) of a way from one node to another that lies on no frame and on no way before it."""
        for number in range(12):
            bend = _BOW * ((number + 1) // 2) * (1 if number % 2 else -1)
            points = self._bent(tail, head, bend)
            if not self._lies_on_another(points) and not self._hits(points, (tail.name, head.name)):
                break
        self._taken.append(points)
        return points

    def _lies_on_another(self, points: Array) -> bool:
        """Return whether the middle of a way, or a third of it, is too near to a way before it."""
        inner = points[5:-5]
        for taken in self._taken:
            near = (
                np.linalg.norm(inner[:, None, :] - taken[None, :, :], axis=2).min(axis=1)
                < _APART / 2
            )
            middles = float(np.linalg.norm(points[len(points) // 2] - taken[len(taken) // 2]))
            if 3 * int(near.sum()) > len(inner) or middles < _APART:
                return True
        return False

    def _bent(self, tail: Node, head: Node, bend: float) -> Array:
        """Return points (n, 2) of a way whose middle is aside by a share of its length."""
        start, end = self.middle(tail), self.middle(head)
        along = end - start
        control = (start + end) / 2 + 2 * bend * np.array([-along[1], along[0]])
        start, end = self.edge_of(tail, control), self.edge_of(head, control)
        if bend == 0.0:
            start, end = self.edge_of(tail, end), self.edge_of(head, start)
            control = (start + end) / 2
        t = np.linspace(0.0, 1.0, 25)[:, None]
        return np.asarray((1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end)

    def _hits(self, points: Array, ends: tuple[str, str]) -> bool:
        """Return whether a way leads through a frame that it does not join."""
        others = {name: at for name, at in self.frames.items() if name not in ends}
        inside = (
            np.abs(points - at) < [_half_width(name), _HALF_HEIGHT] for name, at in others.items()
        )
        return any(bool(near.all(axis=1).any()) for near in inside)


def _half_width(name: str) -> float:
    return max(_HALF_HEIGHT, 0.066 * (len(name) + 2) + 0.05)


def _box_size(frames: Sequence[str]) -> Array:
    widths = [2 * _half_width(name) for name in frames] or [2 * _HALF_HEIGHT]
    return np.array([sum(widths) + _GAP * (len(widths) + 1), 2 * _HALF_HEIGHT + 2 * _GAP])


def _layered(scene: SceneGraph, sizes: Mapping[str, Array]) -> dict[str, Array]:
    """Return the middle of each body's box: bodies in layers, below those that they refer to."""
    above: dict[str, list[str]] = {body: [] for body in sizes}
    for name in scene.frame_names:
        body = scene.specification(name).body
        parent, held = scene.parent(name), scene.twist_edge(name)
        refers = [scene.specification(parent).body] if parent is not None else []
        above[body] += [
            other for other in refers + ([held[0]] if held is not None else []) if other != body
        ]
    layer = dict.fromkeys(sizes, 0)
    for _ in sizes:  # as many times as a way can be long
        for body, others in above.items():
            layer[body] = max(
                [layer[body], *(min(layer[other] + 1, len(sizes)) for other in others)]
            )
    middles: dict[str, Array] = {}
    for depth in sorted(set(layer.values())):
        row = [body for body in sizes if layer[body] == depth]
        known = {
            body: [middles[other][0] for other in above[body] if other in middles] for body in row
        }
        row.sort(key=lambda body: float(np.mean(known[body])) if known[body] else 0.0)
        at = -(sum(sizes[body][0] for body in row) + _ROOM * (len(row) - 1)) / 2
        for body in row:
            middles[body] = np.array([at + sizes[body][0] / 2, -_LAYER * depth])
            at += sizes[body][0] + _ROOM
    return middles


def _outline(low: Array, high: Array, corner: float = 0.18) -> Array:
    """Return the outline of a box with round corners."""
    angles = np.linspace(0.0, np.pi / 2, 8)
    quarter = corner * np.column_stack([np.cos(angles), np.sin(angles)])
    turned = []
    for number, (x, y) in enumerate(
        ((high[0], high[1]), (low[0], high[1]), (low[0], low[1]), (high[0], low[1]))
    ):
        cosine, sine = ((1, 0), (0, 1), (-1, 0), (0, -1))[number]
        inside = np.array(
            [
                x - corner if number in (0, 3) else x + corner,
                y - corner if number < 2 else y + corner,
            ]
        )
        turned.append(inside + quarter @ np.array([[cosine, sine], [-sine, cosine]]))
    return np.concatenate(turned)


def _frame(meaning: str, at: Array, text: str, color: str) -> list[Mark]:
    half = np.array([_half_width(text), _HALF_HEIGHT])
    return [
        Area(meaning, _outline(at - half, at + half, corner=_HALF_HEIGHT), color),
        Label(meaning, at, f"{{{text}}}", color, anchor="center"),
    ]


def _arrow(
    board: _Layout, kind: str, tail: Node, head: Node, *, text: str, color: str
) -> list[Mark]:
    points = board.way(tail, head)
    meaning = f"{kind} edge from {tail} to {head}"
    line = Line(meaning, points, color, width=1.7, is_dashed=kind.endswith("twist"), has_head=True)
    label = Label(
        meaning, points[len(points) // 2], text, color, offset=(0.0, 8.0), anchor="center", size=8.0
    )
    return [line, label] if text else [line]


def _held(scene: SceneGraph, kind: str, tail: Node, name: str) -> str:
    """Return what an edge holds, in the papers' notation."""
    body = scene.specification(name).body
    if kind == "twist":
        return f"TwistCoord({name}|{body}, {tail.name}, [{name}])"
    return (
        f"PoseCoord({{{name}}}|{body}, {{{tail.name}}}|{scene.specification(tail.name).body},"
        f" [{tail.name}])"
    )


def _refusal(board: _Layout, edge: Refused, number: str) -> list[Mark]:
    """Draw what was refused, a cross over it and its number beside that."""
    meaning = f"refused {edge.what}"
    if edge.tail is None:
        at = board.next_stray()
        meaning = f"{meaning} {edge.head.name}"
        if edge.what == "frame":
            made = _frame(meaning, at, edge.head.name, _REFUSED)
            at = at + np.array([_half_width(edge.head.name), _HALF_HEIGHT])
        else:
            half = np.array([0.5, 0.4])
            made = [
                Area(meaning, _outline(at - half, at + half), _REFUSED),
                Label(meaning, at, edge.head.name, _REFUSED, anchor="center", size=11.0),
            ]
            at = at + half
    else:
        made = _arrow(board, f"refused {edge.what}", edge.tail, edge.head, text="", color=_REFUSED)
        line = made[0]
        assert isinstance(line, Line)
        at = line.points[len(line.points) // 2]
    return [
        *made,
        Cross(meaning, at),
        Label(meaning, at, number, _REFUSED, offset=(9.0, 7.0), size=10.0),
    ]
