"""Pictures of geometric relations: bodies, frames as triads, points, and arrows for quantities.

:func:`relation_drawing` draws relations into a view of a scene. :func:`semantics_drawing` shows the
meaning of coordinates on two example bodies. The axes of the coordinate frame are thick.

Labels have the papers' notation (De Laet et al., "Geometric relations between rigid bodies (part
1)", 2013). Axes are red, green and blue for x, y and z. The lengths of arrows of one kind are
proportional.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull

from tmkit.graph import SceneGraph, relate
from tmkit.relations import from_dict, to_dict
from tmkit.relations.semantic.base import SemanticRelation
from tmkit.relations.semantics import Coord, ForceCoord, TorqueCoord, WrenchCoord
from tmkit.relations.violations import rule_error
from tmkit.spatial import Pose
from tmkit.visualization.drawing import Area, Dot, Drawing, Label, Line, Mark, save_drawings

Array = NDArray[np.float64]
"""Points or vectors."""

_AXIS_COLORS = ("#d03a3a", "#3f9142", "#3260c4")
"""Colours of the axes x, y and z."""

_BODY_COLORS = ("#6d7680", "#c97a1e", "#2f8f83", "#8454a8", "#a6475f", "#57823a")
"""Colours of bodies, in order."""

_CONTEXT_COLOR = "#8a929b"
"""Colour of frames that no relation names."""

_COLORS = {
    "Position": "#1f5fa8",
    "Orientation": "#8454a8",
    "LinearVelocity": "#1d7f4e",
    "AngularVelocity": "#1d7f4e",
    "Force": "#b3261e",
    "Torque": "#b3261e",
}
"""Colour by kind of arrow."""

_PARTS = {
    "Pose": ("Position", "Orientation"),
    "Twist": ("LinearVelocity", "AngularVelocity"),
    "Wrench": ("Force", "Torque"),
}
"""Kinds of arrows by composite relation."""

_ROTATIONAL_KINDS = ("AngularVelocity", "Torque")
"""Kinds that are drawn as a turn about an axis."""

_SYMBOLS = {
    "Position": "p",
    "Orientation": "R",
    "LinearVelocity": "v",
    "AngularVelocity": "ω",
    "Force": "f",
    "Torque": "τ",
}
"""Symbol by kind of arrow."""

_REFERENCE_POSES = {
    "ref_ori": Pose.from_rpy([-0.25, 0.1, -0.05], [0.0, 0.0, -0.35]),
    "ref_point": Pose([0.12, -0.3, -0.2]),
    "coord": Pose.from_rpy([-0.1, 0.1, 0.5], [0.25, 0.1, 1.0]),
}
"""Poses of example frames relative to the reference body, by role."""

_BODY_POSES = {
    "ori": Pose.from_rpy([0.1, 0.3, 0.3], [0.7, -0.4, 0.2]),
    "point": Pose([-0.05, -0.25, -0.2]),
}
"""Poses of example frames relative to the body, by role."""

_BODY_OFFSET = Pose([1.6, 0.2, 0.1])
"""Pose of the example body relative to the reference body."""

_EXAMPLE_SIZE = 1.7
"""Size of the view of the example bodies [m]."""

_EXAMPLE_VALUES = {"linear": [0.3, 0.1, 0.35], "angular": [-0.5, 0.2, 0.5]}
"""(3,) example values of vectors."""

_ROLE_NAMES = {
    "point": "point",
    "ori": "orientation frame",
    "body": "body",
    "ref_point": "reference point",
    "ref_ori": "reference orientation frame",
    "ref_body": "reference body",
    "coord": "expressed in",
}
"""Names of the fields of coordinates in captions."""


@dataclass
class _Board:
    """Poses of frames, their projection into the plane and the scale of marks.

    Attributes:
        scene: the scene.
        places: base_from_frame by frame.
        projection: (2, 3) projection of the base's coordinates into the plane.
        size: approximate extent of the drawing [m].
        context: frames to draw although no relation names them.
    """

    scene: SceneGraph
    places: dict[str, Pose]
    projection: Array
    size: float
    context: tuple[str, ...]

    def flat(self, point: ArrayLike) -> Array:
        """Return the projection (2,) or (n, 2) of points (3,) or (n, 3) of the base."""
        return np.asarray(np.asarray(point) @ self.projection.T)


@dataclass(frozen=True)
class Viewpoint:
    """Direction and size of a view of relations.

    Args:
        azimuth: angle of the view direction about z, from x [rad]. From above, x points to the
            right for the azimuth -pi / 2.
        elevation: angle of the view direction above the plane of x and y [rad].
        size: length that scales triads, outlines and arrows [m]. Defaults to the extent of the
            frames.
    """

    azimuth: float = math.radians(-65.0)
    elevation: float = math.radians(22.0)
    size: float | None = None


def relation_drawing(
    scene: SceneGraph,
    relations: Sequence[SemanticRelation | Coord],
    *,
    q: ArrayLike | None = None,
    viewpoint: Viewpoint | None = None,
    frames: Sequence[str] = (),
    title: str = "",
    caption: Sequence[str] | None = None,
) -> Drawing:
    """Draw relations between frames of a scene.

    Args:
        scene: the scene, which contains all points and frames of the relations in one tree.
        relations: relations with numbers, or coordinates with the numbers that the scene gives
            them.
        q: (n_joints,) configuration. Needed if joints are between the frames.
        viewpoint: direction and size of the view.
        frames: further frames, drawn in grey for orientation.
        title: title of the drawing.
        caption: lines below the drawing. Defaults to the relations in the papers' notation.

    Raises:
        UnknownNameError: if a frame is not in the scene.
        SemanticError: if the coordinates are those of a force, of which a scene has no numbers, or
            if a relation does not hold in the scene.
        DisconnectedError: if the frames are in several trees.
        ConfigurationError: if joints are between the frames and ``q`` is omitted.
    """
    coords = [
        relation.coord if isinstance(relation, SemanticRelation) else relation
        for relation in relations
    ]
    board = _board(scene, coords, q=q, viewpoint=viewpoint or Viewpoint(), context=frames)
    arrows = [part for relation in relations for part in _parts(scene, relation, q)]
    longest: dict[str, float] = {}
    for kind, _, vector in arrows:
        longest[kind] = max(longest.get(kind, 0.0), float(np.linalg.norm(vector)))
    marks = [*_body_marks(board, coords), *_frame_marks(board, coords)]
    for kind, coord, vector in arrows:
        marks.extend(_part_marks(board, kind, coord, vector, longest[kind]))
    lines = tuple(map(notation, coords)) if caption is None else tuple(caption)
    return Drawing(tuple(marks), title=title, caption=lines)


def draw_relations(
    scene: SceneGraph,
    relations: Sequence[SemanticRelation | Coord],
    path: str | Path,
    *,
    q: ArrayLike | None = None,
) -> Path:
    """Draw relations between frames of a scene into a PNG file; see :func:`relation_drawing`.

    Args:
        scene: the scene.
        relations: relations or coordinates of frames of the scene.
        path: path of the PNG file.
        q: (n_joints,) configuration. Needed if the scene has joints.

    Raises:
        OutputError: if the file cannot be written, or its suffix is not ``.png``.
        MissingExtraError: if the extra ``pictures`` is not installed.
    """
    return save_drawings([relation_drawing(scene, relations, q=q)], path, width=6.0)


def notation(coord: Coord) -> str:
    """Return coordinates in the papers' notation: ``TwistCoord(e|C, D, [r])``."""
    return f"{type(coord).__name__}({', '.join(coord.notation())})"


def _board(
    scene: SceneGraph,
    coords: Sequence[Coord],
    *,
    q: ArrayLike | None,
    viewpoint: Viewpoint,
    context: Sequence[str],
) -> _Board:
    """Return the poses of all frames to draw, and their projection."""
    names = list(dict.fromkeys([*_roles(coords), *context]))
    for body in _bodies(coords):
        if not any(scene.specification(name).body == body for name in names):
            names += [
                frame for frame in scene.frame_names if scene.specification(frame).body == body
            ]
    base = scene.root(names[0])
    places = {name: scene.pose(name, relative_to=base, q=q) for name in names}
    corners = np.array([place.translation for place in places.values()])
    extent = float(np.linalg.norm(corners.max(axis=0) - corners.min(axis=0)))
    azimuth, elevation = viewpoint.azimuth, viewpoint.elevation
    right = [-math.sin(azimuth), math.cos(azimuth), 0.0]
    rise = math.sin(elevation)
    up = [-rise * math.cos(azimuth), -rise * math.sin(azimuth), math.cos(elevation)]
    projection, size = np.array([right, up]), viewpoint.size or extent or 1.0
    return _Board(scene, places, projection, size, tuple(context))


def _roles(coords: Sequence[Coord]) -> dict[str, dict[str, set[str]]]:
    """Return the roles (point, ori or axes) by body, by frame. The body of axes is empty."""
    roles: dict[str, dict[str, set[str]]] = {}
    for coord in coords:
        for name in ("point", "ref_point", "ori", "ref_ori"):
            if name in coord.fields:
                body = coord.ref_body if name.startswith("ref_") else coord.body
                roles.setdefault(getattr(coord, name), {}).setdefault(body, set()).add(
                    name.removeprefix("ref_")
                )
        roles.setdefault(coord.coord, {}).setdefault("", set()).add("axes")
    return roles


def _bodies(coords: Sequence[Coord]) -> tuple[str, ...]:
    """Return the bodies of coordinates, reference bodies first."""
    return tuple(
        dict.fromkeys([coord.ref_body for coord in coords] + [coord.body for coord in coords])
    )


def _label_of(name: str, on: dict[str, set[str]]) -> str:
    """Return the label of a frame with some roles on bodies."""
    forms = {("ori",): f"[{name}]|", ("point",): f"{name}|", ("ori", "point"): f"{{{name}}}|"}
    texts = [
        forms[key] + body for body, roles in on.items() if (key := tuple(sorted(roles - {"axes"})))
    ]
    return ", ".join(texts + [f"[{name}]"] * ("" in on))


def _body_marks(board: _Board, coords: Sequence[Coord]) -> Iterator[Mark]:
    """Yield a rounded outline around the frames of each body, and its name."""
    angles = np.linspace(0.0, 2 * np.pi, 24, endpoint=False)
    circle = 0.19 * board.size * np.column_stack([np.cos(angles), np.sin(angles)])
    for number, body in enumerate(_bodies(coords)):
        frames = [name for name in board.places if board.scene.specification(name).body == body]
        if not frames:
            continue
        centers = [board.flat(board.places[name].translation) for name in frames]
        roles = _roles(coords)
        for name in frames:
            if any(role & {"ori", "axes"} for role in roles.get(name, {}).values()):
                centers += [board.flat(tip) for tip in _tips(board, name)]
        points = np.concatenate([center + circle for center in centers])
        outline = points[ConvexHull(points).vertices]
        color = _BODY_COLORS[number % len(_BODY_COLORS)]
        yield Area(f"body {body}", outline, color)
        lowest = outline[np.argmin(outline[:, 1])]
        yield Label(
            f"body {body}", lowest, body, color, offset=(0.0, 8.0), anchor="center", size=11.0
        )


def _tips(board: _Board, name: str) -> list[Array]:
    """Return the ends (3,) of the axes of a triad."""
    place = board.places[name]
    return [place.apply(0.17 * board.size * axis) for axis in np.eye(3)]


def _frame_marks(board: _Board, coords: Sequence[Coord]) -> Iterator[Mark]:
    """Yield the marks of each frame: a triad for axes, a dot for a point, and its label."""
    middle = board.flat(np.mean([place.translation for place in board.places.values()], axis=0))
    roles = _roles(coords)
    for name, place in board.places.items():
        if name in board.context and name not in roles:
            position = board.flat(place.translation)
            yield Dot(f"frame {name}", position, _CONTEXT_COLOR)
            yield Label(f"frame {name}", position, name, _CONTEXT_COLOR, offset=(7.0, 7.0))
    for name, on in roles.items():
        position = board.flat(board.places[name].translation)
        is_axes = "" in on
        width = 3.0 if is_axes else 1.5
        text = _label_of(name, on)
        if is_axes or any("ori" in roles for roles in on.values()):
            for tip, color in zip(_tips(board, name), _AXIS_COLORS, strict=True):
                points = np.array([position, board.flat(tip)])
                yield Line(f"axes [{name}]", points, color, width=width, has_head=True)
        if any("point" in roles for roles in on.values()):
            yield Dot(f"point {name}", position, size=6.0)
        is_left = position[0] <= middle[0]
        offset = (-7.0 if is_left else 7.0, -9.0)
        anchor: Literal["left", "right"] = "right" if is_left else "left"
        yield Label(text, position, text, offset=offset, anchor=anchor)


def _parts(
    scene: SceneGraph, relation: SemanticRelation | Coord, q: ArrayLike | None
) -> list[tuple[str, Coord, Array]]:
    """Return kind, coordinates and vector of the arrows of a relation."""
    coord = relation.coord if isinstance(relation, SemanticRelation) else relation
    kinds = _PARTS.get(coord.relation, (coord.relation,))
    is_force = isinstance(coord, (ForceCoord, TorqueCoord, WrenchCoord))
    if is_force and not isinstance(relation, SemanticRelation):
        rule, repair = "forces are drawn from their numbers", f"give a Semantic{coord.relation}"
        raise rule_error("relation_drawing", rule, repr(coord), repair=repair)
    if kinds[0] in ("Position", "Orientation"):
        return [(kind, coord, np.zeros(3)) for kind in kinds]
    values = relation if isinstance(relation, SemanticRelation) else relate(scene, coord, q=q)
    return [
        (kind, coord, np.array(vector)) for kind, vector in zip(kinds, values.numbers, strict=True)
    ]


def _part_marks(
    board: _Board, kind: str, coord: Any, vector: Array, longest: float
) -> Iterator[Mark]:
    """Yield one arrow and its symbol."""
    color, meaning, symbol = _COLORS[kind], f"{kind} of {notation(coord)}", _SYMBOLS[kind]
    if kind == "Position":
        start, end = (
            board.flat(board.places[getattr(coord, name)].translation)
            for name in ("ref_point", "point")
        )
        yield Line(meaning, np.array([start, end]), color, width=1.8, has_head=True)
        yield Label(
            meaning, start + 0.55 * (end - start), symbol, color, offset=(4.0, 9.0), size=11.0
        )
        return
    if kind == "Orientation":
        start, end = (
            board.flat(board.places[getattr(coord, name)].translation)
            for name in ("ref_ori", "ori")
        )
        bow = _arc(start, end, 0.28)
        middle = bow[len(bow) // 2]
        yield Line(meaning, bow, color, is_dashed=True, has_head=True)
        yield Label(meaning, middle, symbol, color, offset=(0.0, 8.0), anchor="center", size=11.0)
        return
    vector_in_base = board.places[coord.coord].rotate(vector)
    position = _origin_of_arrow(board, coord)
    if "point" in coord.fields and kind in ("LinearVelocity", "Torque"):
        symbol = f"{symbol}({coord.point})"
    if kind in _ROTATIONAL_KINDS:
        label = Label(meaning, np.zeros(2), symbol, color, offset=(6.0, 4.0), size=11.0)
        yield from _rotation_marks(board, position, vector_in_base, label)
        return
    length = 0.55 * board.size / longest if longest > 0.0 else 0.0
    ends = board.flat(np.array([position, position + length * vector_in_base]))
    yield Line(meaning, ends, color, width=2.2, has_head=True)
    yield Label(meaning, ends[1], symbol, color, offset=(6.0, 5.0), size=11.0)


def _origin_of_arrow(board: _Board, coord: Any) -> Array:
    """Return the origin (3,) of a velocity or force: its point, or the middle of its body."""
    if "point" in coord.fields:
        return np.array(board.places[coord.point].translation)
    frames = [name for name in board.places if board.scene.specification(name).body == coord.body]
    return np.asarray(np.mean([board.places[name].translation for name in frames], axis=0))


def _rotation_marks(board: _Board, position: Array, vector: Array, label: Label) -> Iterator[Mark]:
    """Yield the axis of a rotation, and four fifths of a circle around it."""
    size = float(np.linalg.norm(vector))
    if size == 0.0:
        return
    axis = vector / size
    first = np.cross(axis, [1.0, 0.0, 0.0] if abs(axis[0]) < 0.9 else [0.0, 1.0, 0.0])
    first /= np.linalg.norm(first)
    second = np.cross(axis, first)
    angles = np.linspace(0.0, 1.6 * np.pi, 40)[:, None]
    middle = position + 0.14 * board.size * axis
    circle = np.cos(angles) * first + np.sin(angles) * second
    ring = board.flat(middle + 0.13 * board.size * circle)
    stem = board.flat(np.array([position, position + 0.3 * board.size * axis]))
    yield Line(f"axis of {label.meaning}", stem, label.color, width=1.0, is_dashed=True)
    yield Line(label.meaning, ring, label.color, width=1.8, has_head=True)
    yield replace(label, point=stem[1])


def _arc(start: Array, end: Array, height: float) -> Array:
    """Return points (n, 2) of an arc to the left of a chord, with a height in chord lengths."""
    chord = end - start
    normal = np.array([-chord[1], chord[0]])
    t = np.linspace(0.06, 0.94, 24)[:, None]
    return np.asarray(start + t * chord + 4 * height * t * (1 - t) * normal)


def semantics_drawing(coord: Coord, *, title: str | None = None) -> Drawing:
    """Draw the meaning of coordinates on two example bodies. The caption has the role of each name.

    Args:
        coord: coordinates of any relation.
        title: title of the drawing. Defaults to the coordinates in the papers' notation.
    """
    scene = _example_scene(coord)
    relation: SemanticRelation | Coord = coord
    if not any(name in coord.fields for name in ("ref_point", "ref_ori")):
        kinds = {
            "LinearVelocity": "linear",
            "AngularVelocity": "angular",
            "Force": "linear",
            "Torque": "angular",
        }
        numbers = [
            number
            for part in _PARTS.get(coord.relation, (coord.relation,))
            for number in _EXAMPLE_VALUES[kinds[part]]
        ]
        composites = {"Twist": "TwistVector", "Wrench": "WrenchVector"}
        name = composites.get(coord.relation, f"{coord.relation}Vector")
        values = {"representation": name, "vector": numbers}
        relation = from_dict({**to_dict(coord), "values": values})
    roles = ", ".join(f"{_ROLE_NAMES[name]} {getattr(coord, name)}" for name in coord.fields)
    title = notation(coord) if title is None else title
    viewpoint = Viewpoint(size=_EXAMPLE_SIZE)
    return relation_drawing(scene, [relation], viewpoint=viewpoint, title=title, caption=(roles,))


def _example_scene(coord: Coord) -> SceneGraph:
    """Return a scene with the distinct frames of coordinates."""
    on_body = {getattr(coord, name) for name in _BODY_POSES if name in coord.fields}
    scene = SceneGraph(root=None)
    for body, places, middle in (
        (coord.ref_body, _REFERENCE_POSES, Pose()),
        (coord.body, _BODY_POSES, _BODY_OFFSET),
    ):
        parent = f"middle of {body}"
        if body in scene.body_names:  # The relation is between frames of one body.
            parent = scene.frame_names[0]
        elif len(scene):
            scene = scene.add_body(body).add_frame(
                parent, scene.frame_names[0], pose=middle, body=body
            )
        else:
            scene = scene.add_body(body).add_root(parent, body=body)
        for role, place in places.items():
            name = getattr(coord, role, None)
            if name is not None and name not in scene and not (role == "coord" and name in on_body):
                pose = middle @ place if parent == scene.frame_names[0] else place
                scene = scene.add_frame(name, parent, pose=pose, body=body)
    return scene


def draw_semantics(coord: Coord, path: str | Path) -> Path:
    """Draw points, frames and bodies of coordinates into a PNG file; see :func:`semantics_drawing`.

    Args:
        coord: coordinates of a relation.
        path: path of the PNG file.

    Raises:
        OutputError: if the file cannot be written, or its suffix is not ``.png``.
        MissingExtraError: if the extra ``pictures`` is not installed.
    """
    return save_drawings([semantics_drawing(coord)], path, width=6.0)
