"""Graph of a scene's edges: bodies as boxes, poses as solid and twists as dashed arrows.

The style is that of De Laet, Bruyninckx and De Schutter's scene graph of poses and twists (2013).
Rejected edges can be drawn as well, crossed out, with the reasons in the caption. :func:`try_edge`
returns the reason for which a scene rejects an edge.

Bodies form layers, each below the bodies of its reference frames. The bodies of a layer are ordered
from left to right by their edges. Edges that would overlap are curved. Complexity: O(n e) for n
frames and e edges, for graphs that are small enough to read.
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
"""(2,) point or (n, 2) points of the drawing."""

EdgeKind = Literal["pose", "twist"]
"""Kind of an edge."""

_BODY_COLOR = "#6d7680"
"""Colour of bodies."""

_POSE_COLOR = "#1f5fa8"
"""Colour of pose edges."""

_TWIST_COLOR = "#1d7f4e"
"""Colour of twist edges."""

_REJECTED_COLOR = "#c2262e"
"""Colour of rejected edges and nodes."""

_FRAME_COLOR = "#30363d"
"""Colour of frames."""

_BOX_COLOR = "#f0f1f2"
"""Background of the names of bodies."""

_HALF_HEIGHT = 0.27
"""Half of the height of a frame [units]."""

_FRAME_GAP = 0.35
"""Distance between frames, and from frames to the edge of their box [units]."""

_BOX_GAP = 0.75
"""Distance between the boxes of a layer [units]."""

_LAYER_DISTANCE = 2.1
"""Distance between layers [units]."""

_UNIT_SIZE = 0.6
"""Size of a unit [inch]."""

_EDGE_DISTANCE = 0.32
"""Smallest distance between the middles of two edges [units]."""

_CURVATURE_STEP = 0.16
"""Height of the flattest curved edge in units of its length."""

_MAX_CURVATURES = 12
"""Number of curvatures that are tried for an edge."""


@dataclass(frozen=True)
class Rejection:
    """Edge or node that a scene rejects.

    Attributes:
        kind: ``pose`` or ``twist`` for an edge, ``body`` or ``frame`` for a node.
        reason: message of the scene's error.
        head: end of the edge, or the node itself.
        tail: start of the edge, or None for a node.
        rule: name of the violated rule, such as ``PE3``, if it has one.
    """

    kind: Literal["pose", "twist", "body", "frame"]
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
) -> Rejection:
    """Return the reason for which a scene rejects an edge.

    Args:
        scene: the scene, which does not change.
        kind: ``pose`` or ``twist``.
        tail: reference of the edge.
        head: node with the pose or twist.
        value: pose or twist. Defaults to the identity or to zero.
        rule: name of the rule, if the scene's error has none.

    Raises:
        ValueError: if the scene accepts the edge.
    """
    if value is None:
        value = Pose() if kind == "pose" else np.zeros(6)
    try:
        add_edge(scene, kind, tail=tail, head=head, value=value)
    except TmkitError as error:
        return Rejection(kind, str(error), head, tail, getattr(error, "rule", rule))
    raise ValueError(f"the scene accepts a {kind} edge from {tail} to {head}, expected an error")


def semantics_graph_drawing(
    scene: SceneGraph,
    *,
    rejections: Sequence[Rejection] = (),
    places: Mapping[str, tuple[float, float]] | None = None,
    has_notation: bool = False,
    title: str = "",
) -> Drawing:
    """Draw the pose and twist edges of a scene, and rejected edges and nodes.

    Args:
        scene: the scene.
        rejections: edges and nodes to cross out and number, with their reasons in the caption.
        places: middle (x, y) of the box by body, where a frame with a short name has the size 0.9.
            Other bodies are placed automatically.
        has_notation: whether edges are labelled with their coordinates, in the papers' notation.
        title: title of the drawing.
    """
    board = _Layout(scene, places or {})
    marks: list[Mark] = [
        Area(f"body {body}", _rounded_box(*box), _BODY_COLOR) for body, box in board.boxes.items()
    ]
    parents = [(scene.parent(name), name) for name in scene.frame_names]
    twists = [(scene.twist_edge(name), name) for name in scene.twist_frames]
    edges = [
        ("pose", Node("frame", parent), name) for parent, name in parents if parent is not None
    ]
    edges += [("twist", Node("body", edge[0]), name) for edge, name in twists if edge is not None]
    for kind, tail, name in edges:
        text = _edge_coordinates(scene, kind, tail, name) if has_notation else ""
        color = _POSE_COLOR if kind == "pose" else _TWIST_COLOR
        marks += _arrow(board, kind, tail, Node("frame", name), text=text, color=color)
    for number, rejection in enumerate(rejections, start=1):
        marks += _rejection_marks(board, rejection, str(number))
    for body, box in board.boxes.items():
        meaning, offset = f"body {body}", (6.0, 8.0)
        marks.append(
            Label(meaning, box[0], body, _BODY_COLOR, offset=offset, background=_BOX_COLOR)
        )
    for name, middle in board.frames.items():
        marks += _frame_marks(f"frame {{{name}}}", middle, name, _FRAME_COLOR)
    reasons = [f"{item.rule}: {item.reason}" if item.rule else item.reason for item in rejections]
    caption = [f"{number}  {reason}" for number, reason in enumerate(reasons, start=1)]
    return Drawing(tuple(marks), title=title, caption=tuple(caption), largest_unit=_UNIT_SIZE)


def draw_semantics_graph(
    scene: SceneGraph, path: str | Path, *, rejections: Sequence[Rejection] = ()
) -> Path:
    """Draw the edges of a scene into a PNG file; see :func:`semantics_graph_drawing`.

    Args:
        scene: the scene.
        path: path of the PNG file.
        rejections: rejected edges and nodes to cross out.

    Raises:
        OutputError: if the file cannot be written, or its suffix is neither ``.png`` nor ``.svg``.
        MissingExtraError: if the extra ``pictures`` is not installed.
    """
    drawing = semantics_graph_drawing(scene, rejections=rejections)
    low, high = drawing.bounds
    width = float(np.clip(_UNIT_SIZE * (high[0] - low[0]) + 2 * MARGIN, 5.0, 40.0))
    return save_drawings([drawing], path, width=width)


class _Layout:
    """Layout of a graph.

    Attributes:
        boxes: (2, 2) lower and upper corner by body.
        frames: (2,) middle by frame.
    """

    def __init__(self, scene: SceneGraph, places: Mapping[str, tuple[float, float]]) -> None:
        frames_of: dict[str, list[str]] = {body: [] for body in scene.body_names}
        for name in scene.frame_names:
            frames_of[scene.specification(name).body].append(name)
        self.boxes: dict[str, Array] = {}
        self.frames: dict[str, Array] = {}
        self._curves: list[Array] = []
        sizes = {body: _box_size(frames) for body, frames in frames_of.items()}
        middles = _layer_bodies(scene, sizes)
        for body, frames in frames_of.items():
            middle = np.array(places.get(body, middles[body]))
            self.boxes[body] = np.array([middle - sizes[body] / 2, middle + sizes[body] / 2])
            left = self.boxes[body][0, 0] + _FRAME_GAP
            for name in frames:
                half = _half_width(name)
                self.frames[name] = np.array([left + half, middle[1]])
                left += 2 * half + _FRAME_GAP
        corners = np.concatenate(list(self.boxes.values())) if self.boxes else np.zeros((1, 2))
        self._isolated_place = np.array([corners[:, 0].min() + 0.6, corners[:, 1].min() - 1.2])

    def next_isolated_place(self) -> Array:
        """Return the place (2,) of the next frame or body without an edge."""
        place = self._isolated_place
        self._isolated_place = place + np.array([1.3, 0.0])
        return place

    def middle(self, node: Node) -> Array:
        """Return the middle (2,) of a node."""
        if node.kind == "frame":
            return self.frames[node.name]
        return np.asarray(self.boxes[node.name].mean(axis=0))

    def boundary_point(self, node: Node, target: Array) -> Array:
        """Return the point (2,) at which the line from a node's middle to a target leaves it."""
        middle = self.middle(node)
        direction = target - middle
        if node.kind == "frame":
            half = np.array([_half_width(node.name), _HALF_HEIGHT]) + 0.04
            reach = float(np.linalg.norm(direction / half))
        else:
            half = (self.boxes[node.name][1] - self.boxes[node.name][0]) / 2
            reach = float(np.max(np.abs(direction) / half))
        return np.asarray(middle + direction / max(reach, 1e-9))

    def add_curve(self, tail: Node, head: Node) -> Array:
        """Return points (n, 2) of a new curve between two nodes without overlap, if possible."""
        for number in range(_MAX_CURVATURES):
            curvature = _CURVATURE_STEP * ((number + 1) // 2) * (1 if number % 2 else -1)
            points = self._curve(tail, head, curvature)
            if not self._overlaps_curve(points) and not self._hits(points, (tail.name, head.name)):
                break
        self._curves.append(points)
        return points

    def _overlaps_curve(self, points: Array) -> bool:
        """Return whether the middle of a curve, or a third of it, is close to an earlier one."""
        inner = points[5:-5]
        for curve in self._curves:
            distances = np.linalg.norm(inner[:, None, :] - curve[None, :, :], axis=2).min(axis=1)
            is_close = distances < _EDGE_DISTANCE / 2
            middles = float(np.linalg.norm(points[len(points) // 2] - curve[len(curve) // 2]))
            if 3 * int(is_close.sum()) > len(inner) or middles < _EDGE_DISTANCE:
                return True
        return False

    def _curve(self, tail: Node, head: Node, curvature: float) -> Array:
        """Return points (n, 2) of a quadratic curve of a height in units of its length."""
        start, end = self.middle(tail), self.middle(head)
        chord = end - start
        control = (start + end) / 2 + 2 * curvature * np.array([-chord[1], chord[0]])
        start, end = self.boundary_point(tail, control), self.boundary_point(head, control)
        if curvature == 0.0:
            start, end = self.boundary_point(tail, end), self.boundary_point(head, start)
            control = (start + end) / 2
        t = np.linspace(0.0, 1.0, 25)[:, None]
        return np.asarray((1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end)

    def _hits(self, points: Array, ends: tuple[str, str]) -> bool:
        """Return whether a curve crosses a frame other than its ends."""
        frames = {name: middle for name, middle in self.frames.items() if name not in ends}
        is_inside = (
            np.abs(points - middle) < [_half_width(name), _HALF_HEIGHT]
            for name, middle in frames.items()
        )
        return any(bool(inside.all(axis=1).any()) for inside in is_inside)


def _half_width(name: str) -> float:
    """Return half of the width of a frame [units]."""
    return max(_HALF_HEIGHT, 0.066 * (len(name) + 2) + 0.05)


def _box_size(frames: Sequence[str]) -> Array:
    """Return the size (2,) of the box of a body with some frames [units]."""
    widths = [2 * _half_width(name) for name in frames] or [2 * _HALF_HEIGHT]
    width = sum(widths) + _FRAME_GAP * (len(widths) + 1)
    return np.array([width, 2 * _HALF_HEIGHT + 2 * _FRAME_GAP])


def _layer_bodies(scene: SceneGraph, sizes: Mapping[str, Array]) -> dict[str, Array]:
    """Return the middle (2,) of each body's box, in layers below its reference bodies."""
    references: dict[str, list[str]] = {body: [] for body in sizes}
    for name in scene.frame_names:
        body = scene.specification(name).body
        parent, twist = scene.parent(name), scene.twist_edge(name)
        bodies = [scene.specification(parent).body] if parent is not None else []
        bodies += [twist[0]] if twist is not None else []
        references[body] += [reference for reference in bodies if reference != body]
    layer = dict.fromkeys(sizes, 0)
    for _ in sizes:  # A path has at most as many bodies.
        for body, reference_bodies in references.items():
            for reference in reference_bodies:
                layer[body] = max(layer[body], min(layer[reference] + 1, len(sizes)))
    middles: dict[str, Array] = {}
    for depth in sorted(set(layer.values())):
        row = [body for body in sizes if layer[body] == depth]
        columns = {
            body: [middles[reference][0] for reference in references[body] if reference in middles]
            for body in row
        }
        row.sort(key=lambda body: float(np.mean(columns[body])) if columns[body] else 0.0)
        left = -(sum(sizes[body][0] for body in row) + _BOX_GAP * (len(row) - 1)) / 2
        for body in row:
            middles[body] = np.array([left + sizes[body][0] / 2, -_LAYER_DISTANCE * depth])
            left += sizes[body][0] + _BOX_GAP
    return middles


def _rounded_box(low: Array, high: Array, corner: float = 0.18) -> Array:
    """Return the outline (n, 2) of a box with rounded corners."""
    angles = np.linspace(0.0, np.pi / 2, 8)
    quarter = corner * np.column_stack([np.cos(angles), np.sin(angles)])
    # Middle, and cosine and sine of the rotation, of the quarter circle at each corner.
    left, bottom = low[0] + corner, low[1] + corner
    right, top = high[0] - corner, high[1] - corner
    corners = (
        ((right, top), (1, 0)),
        ((left, top), (0, 1)),
        ((left, bottom), (-1, 0)),
        ((right, bottom), (0, -1)),
    )
    arcs = []
    for middle, (cosine, sine) in corners:
        arcs.append(np.array(middle) + quarter @ np.array([[cosine, sine], [-sine, cosine]]))
    return np.concatenate(arcs)


def _frame_marks(meaning: str, middle: Array, text: str, color: str) -> list[Mark]:
    """Return the box and the name of a frame."""
    half = np.array([_half_width(text), _HALF_HEIGHT])
    outline = _rounded_box(middle - half, middle + half, corner=_HALF_HEIGHT)
    return [
        Area(meaning, outline, color),
        Label(meaning, middle, f"{{{text}}}", color, anchor="center"),
    ]


def _arrow(
    board: _Layout, kind: str, tail: Node, head: Node, *, text: str, color: str
) -> list[Mark]:
    """Return the curve of an edge, and its label if there is a text."""
    points = board.add_curve(tail, head)
    meaning = f"{kind} edge from {tail} to {head}"
    line = Line(meaning, points, color, width=1.7, is_dashed=kind.endswith("twist"), has_head=True)
    label = Label(
        meaning, points[len(points) // 2], text, color, offset=(0.0, 8.0), anchor="center", size=8.0
    )
    return [line, label] if text else [line]


def _edge_coordinates(scene: SceneGraph, kind: str, tail: Node, name: str) -> str:
    """Return the coordinates of an edge in the papers' notation."""
    body = scene.specification(name).body
    if kind == "twist":
        return f"TwistCoord({name}|{body}, {tail.name}, [{name}])"
    reference = f"{{{tail.name}}}|{scene.specification(tail.name).body}"
    return f"PoseCoord({{{name}}}|{body}, {reference}, [{tail.name}])"


def _rejection_marks(board: _Layout, rejection: Rejection, number: str) -> list[Mark]:
    """Return the marks of a rejected edge or node, with a cross and its number."""
    meaning, head = f"rejected {rejection.kind}", rejection.head
    if rejection.tail is not None:
        marks = _arrow(board, meaning, rejection.tail, head, text="", color=_REJECTED_COLOR)
        line = marks[0]
        assert isinstance(line, Line)
        position = line.points[len(line.points) // 2]
    else:
        meaning = f"{meaning} {head.name}"
        place = board.next_isolated_place()
        if rejection.kind == "frame":
            half = np.array([_half_width(head.name), _HALF_HEIGHT])
            marks = _frame_marks(meaning, place, head.name, _REJECTED_COLOR)
        else:
            half = np.array([0.5, 0.4])
            outline = _rounded_box(place - half, place + half)
            marks = [
                Area(meaning, outline, _REJECTED_COLOR),
                Label(meaning, place, head.name, _REJECTED_COLOR, anchor="center", size=11.0),
            ]
        position = place + half
    return [
        *marks,
        Cross(meaning, position),
        Label(meaning, position, number, _REJECTED_COLOR, offset=(9.0, 7.0), size=10.0),
    ]
