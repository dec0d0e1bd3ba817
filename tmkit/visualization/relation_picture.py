"""Pictures of geometric relations: bodies, frames as triads, points, and arrows for what is said of them.

:func:`relation_drawing` looks at a scene from some direction and draws relations into it,
:func:`semantics_drawing` shows what the words of coordinates mean on two bodies of its own making.
The frame of expression has thick axes.

Labels are in the papers' notation (De Laet et al., "Geometric relations between rigid bodies (part
1)", 2013); axes are red, green and blue for x, y and z. Arrows of one kind have lengths in
proportion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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

_AXES = ("#d03a3a", "#3f9142", "#3260c4")
_BODIES = ("#6d7680", "#c97a1e", "#2f8f83", "#8454a8", "#a6475f", "#57823a")
_GREY = "#8a929b"
_COLORS = {
    "Position": "#1f5fa8",
    "Orientation": "#8454a8",
    "LinearVelocity": "#1d7f4e",
    "AngularVelocity": "#1d7f4e",
    "Force": "#b3261e",
    "Torque": "#b3261e",
}
_PARTS = {
    "Pose": ("Position", "Orientation"),
    "Twist": ("LinearVelocity", "AngularVelocity"),
    "Wrench": ("Force", "Torque"),
}
_TURNING = ("AngularVelocity", "Torque")
_SYMBOLS = {
    "Position": "p",
    "Orientation": "R",
    "LinearVelocity": "v",
    "AngularVelocity": "ω",
    "Force": "f",
    "Torque": "τ",
}
_ON_REFERENCE = {
    "ref_ori": Pose.from_rpy([-0.25, 0.1, -0.05], [0.0, 0.0, -0.35]),
    "ref_point": Pose([0.12, -0.3, -0.2]),
    "coord": Pose.from_rpy([-0.1, 0.1, 0.5], [0.25, 0.1, 1.0]),
}
_ON_BODY = {
    "ori": Pose.from_rpy([0.1, 0.3, 0.3], [0.7, -0.4, 0.2]),
    "point": Pose([-0.05, -0.25, -0.2]),
}
_APART = Pose([1.6, 0.2, 0.1])
_SIZE = 1.7  # metres
_VALUES = {"linear": [0.3, 0.1, 0.35], "angular": [-0.5, 0.2, 0.5]}
_WORDS = {
    "point": "point",
    "ori": "orientation frame",
    "body": "body",
    "ref_point": "reference point",
    "ref_ori": "reference orientation frame",
    "ref_body": "reference body",
    "coord": "expressed in",
}


@dataclass
class _Board:
    """The places of frames, their projection into the plane and the sizes of marks."""

    scene: SceneGraph
    places: dict[str, Pose]  # frame -> base_from_frame
    onto: Array  # (2, 3) projects the base's coordinates into the plane
    size: float  # metres, about the extent of what is drawn
    others: tuple[str, ...]  # frames that are drawn though nothing is said of them

    def flat(self, point: ArrayLike) -> Array:
        """Return a point (3,), or points (n, 3), of the base in the plane."""
        return np.asarray(np.asarray(point) @ self.onto.T)


@dataclass(frozen=True)
class Viewpoint:
    """Direction and size of a view of relations.

    Args:
        azimuth: angle about z, from x, of the direction from which the scene is seen [rad].
        elevation: angle of that direction above the plane of x and y [rad]; from above, x points to
            the right for the azimuth -pi / 2.
        size: length to which triads, outlines and arrows are in proportion [m]; the extent of the
            frames by default.
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
        scene: the scene; the points and frames that the relations name are frames of it, in one
            tree.
        relations: relations with numbers, or coordinates, of which the numbers that hold in the
            scene are drawn.
        q: (n_joints,) configuration, where joints are on the way.
        viewpoint: direction and size of the view; the defaults if omitted.
        frames: others that are drawn in grey, to tell where one is.
        title: above the drawing.
        caption: lines below it; the relations in the papers' notation by default.

    Raises:
        UnknownNameError: a frame that is not in the scene.
        SemanticError: coordinates of a force, of which a scene has no numbers; or a relation that
            does not hold there.
        DisconnectedError: the frames are in several trees.
        ConfigurationError: a joint is on the way and q is missing.
    """
    coords = [
        relation.coord if isinstance(relation, SemanticRelation) else relation
        for relation in relations
    ]
    board = _board(scene, coords, q=q, viewpoint=viewpoint or Viewpoint(), others=frames)
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
        relations: relations or coordinates, whose frames are in the scene.
        path: the PNG file.
        q: (n_joints,) configuration; needed if the scene has joints.

    Raises:
        OutputError: the file cannot be written, or its name does not end in ``.png``.
        MissingExtraError: the extra ``pictures`` is not installed.
    """
    return save_drawings([relation_drawing(scene, relations, q=q)], path, width=6.0)


def notation(coord: Coord) -> str:
    """Return coordinates as the papers write them: ``TwistCoord(e|C, D, [r])``."""
    return f"{type(coord).__name__}({', '.join(coord.notation())})"


def _board(
    scene: SceneGraph,
    coords: Sequence[Coord],
    *,
    q: ArrayLike | None,
    viewpoint: Viewpoint,
    others: Sequence[str],
) -> _Board:
    names = list(dict.fromkeys([*_roles(coords), *others]))
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
    return _Board(
        scene, places, np.array([right, up]), viewpoint.size or extent or 1.0, tuple(others)
    )


def _roles(coords: Sequence[Coord]) -> dict[str, dict[str, set[str]]]:
    """Return for each frame that is named the bodies that it is named on, and as what: point, ori; axes on none."""
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
    """Return the bodies that are named, reference bodies first."""
    return tuple(
        dict.fromkeys([coord.ref_body for coord in coords] + [coord.body for coord in coords])
    )


def _label_of(name: str, on: dict[str, set[str]]) -> str:
    forms = {("ori",): f"[{name}]|", ("point",): f"{name}|", ("ori", "point"): f"{{{name}}}|"}
    texts = [
        forms[named] + body
        for body, roles in on.items()
        if (named := tuple(sorted(roles - {"axes"})))
    ]
    return ", ".join(texts + [f"[{name}]"] * ("" in on))


def _body_marks(board: _Board, coords: Sequence[Coord]) -> Iterator[Mark]:
    """Yield a rounded outline about the frames of each body, and its name."""
    angles = np.linspace(0.0, 2 * np.pi, 24, endpoint=False)
    round_about = 0.19 * board.size * np.column_stack([np.cos(angles), np.sin(angles)])
    for number, body in enumerate(_bodies(coords)):
        frames = [name for name in board.places if board.scene.specification(name).body == body]
        if not frames:
            continue
        spots = [board.flat(board.places[name].translation) for name in frames]
        roles = _roles(coords)
        for name in frames:
            if any(role & {"ori", "axes"} for role in roles.get(name, {}).values()):
                spots += [board.flat(tip) for tip in _tips(board, name)]
        points = np.concatenate([spot + round_about for spot in spots])
        outline = points[ConvexHull(points).vertices]
        color = _BODIES[number % len(_BODIES)]
        yield Area(f"body {body}", outline, color)
        lowest = outline[np.argmin(outline[:, 1])]
        yield Label(
            f"body {body}", lowest, body, color, offset=(0.0, 8.0), anchor="center", size=11.0
        )


def _tips(board: _Board, name: str) -> list[Array]:
    place = board.places[name]
    return [place.apply(0.17 * board.size * axis) for axis in np.eye(3)]


def _frame_marks(board: _Board, coords: Sequence[Coord]) -> Iterator[Mark]:
    """Yield the marks of each frame that is named: a triad where its axes matter, a dot where its origin does."""
    middle = board.flat(np.mean([place.translation for place in board.places.values()], axis=0))
    roles = _roles(coords)
    for name, place in board.places.items():
        if name in board.others and name not in roles:
            at = board.flat(place.translation)
            yield Dot(f"frame {name}", at, _GREY)
            yield Label(f"frame {name}", at, name, _GREY, offset=(7.0, 7.0))
    for name, on in roles.items():
        at = board.flat(board.places[name].translation)
        is_axes = "" in on
        text = _label_of(name, on)
        if is_axes or any("ori" in roles for roles in on.values()):
            for tip, color in zip(_tips(board, name), _AXES, strict=True):
                points = np.array([at, board.flat(tip)])
                yield Line(
                    f"axes [{name}]", points, color, width=3.0 if is_axes else 1.5, has_head=True
                )
        if any("point" in roles for roles in on.values()):
            yield Dot(f"point {name}", at, size=6.0)
        is_left = at[0] <= middle[0]
        offset = (-7.0 if is_left else 7.0, -9.0)
        yield Label(text, at, text, offset=offset, anchor="right" if is_left else "left")


def _parts(
    scene: SceneGraph, relation: SemanticRelation | Coord, q: ArrayLike | None
) -> list[tuple[str, Coord, Array]]:
    """Return the arrows of a relation: kind, coordinates, and the vector in its axes where the arrow needs one."""
    coord = relation.coord if isinstance(relation, SemanticRelation) else relation
    kinds = _PARTS.get(coord.relation, (coord.relation,))
    if not isinstance(relation, SemanticRelation) and isinstance(
        coord, (ForceCoord, TorqueCoord, WrenchCoord)
    ):
        rule, repair = "forces are drawn from their numbers", f"give a Semantic{coord.relation}"
        raise rule_error("relation_drawing", rule, repr(coord), repair=repair)
    if kinds[0] in ("Position", "Orientation"):
        return [(kind, coord, np.zeros(3)) for kind in kinds]
    held = relation if isinstance(relation, SemanticRelation) else relate(scene, coord, q=q)
    return [
        (kind, coord, np.array(vector)) for kind, vector in zip(kinds, held.numbers, strict=True)
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
        bow = _bow(start, end, 0.28)
        middle = bow[len(bow) // 2]
        yield Line(meaning, bow, color, is_dashed=True, has_head=True)
        yield Label(meaning, middle, symbol, color, offset=(0.0, 8.0), anchor="center", size=11.0)
        return
    turned = board.places[coord.coord].rotate(vector)
    at = _where(board, coord)
    if "point" in coord.fields and kind in ("LinearVelocity", "Torque"):
        symbol = f"{symbol}({coord.point})"
    if kind in _TURNING:
        label = Label(meaning, np.zeros(2), symbol, color, offset=(6.0, 4.0), size=11.0)
        yield from _turning_marks(board, at, turned, label)
        return
    length = 0.55 * board.size / longest if longest > 0.0 else 0.0
    ends = board.flat(np.array([at, at + length * turned]))
    yield Line(meaning, ends, color, width=2.2, has_head=True)
    yield Label(meaning, ends[1], symbol, color, offset=(6.0, 5.0), size=11.0)


def _where(board: _Board, coord: Any) -> Array:
    """Return where a velocity or force is drawn: at its point, or in the middle of its body's frames."""
    if "point" in coord.fields:
        return np.array(board.places[coord.point].translation)
    frames = [name for name in board.places if board.scene.specification(name).body == coord.body]
    return np.asarray(np.mean([board.places[name].translation for name in frames], axis=0))


def _turning_marks(board: _Board, at: Array, vector: Array, label: Label) -> Iterator[Mark]:
    """Yield an axis and three quarters of a turn about it."""
    size = float(np.linalg.norm(vector))
    if size == 0.0:
        return
    axis = vector / size
    across = np.cross(axis, [1.0, 0.0, 0.0] if abs(axis[0]) < 0.9 else [0.0, 1.0, 0.0])
    across /= np.linalg.norm(across)
    other = np.cross(axis, across)
    angles = np.linspace(0.0, 1.6 * np.pi, 40)[:, None]
    middle = at + 0.14 * board.size * axis
    ring = board.flat(
        middle + 0.13 * board.size * (np.cos(angles) * across + np.sin(angles) * other)
    )
    stem = board.flat(np.array([at, at + 0.3 * board.size * axis]))
    yield Line(f"axis of {label.meaning}", stem, label.color, width=1.0, is_dashed=True)
    yield Line(label.meaning, ring, label.color, width=1.8, has_head=True)
    yield replace(label, at=stem[1])


def _bow(start: Array, end: Array, height: float) -> Array:
    """Return points (n, 2) of a bow that rises to its left by a share of its length."""
    along = end - start
    aside = np.array([-along[1], along[0]])
    t = np.linspace(0.06, 0.94, 24)[:, None]
    return np.asarray(start + t * along + 4 * height * t * (1 - t) * aside)


def semantics_drawing(coord: Coord, *, title: str | None = None) -> Drawing:
    """Draw the words of some coordinates, on two bodies that stand for any; the caption says what each word is.

    Args:
        coord: the coordinates, of any relation.
        title: above the drawing; the coordinates in the papers' notation by default.
    """
    scene = _two_bodies(coord)
    held: SemanticRelation | Coord = coord
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
            for number in _VALUES[kinds[part]]
        ]
        name = {"Twist": "TwistVector", "Wrench": "WrenchVector"}.get(
            coord.relation, f"{coord.relation}Vector"
        )
        held = from_dict({**to_dict(coord), "values": {"representation": name, "vector": numbers}})
    words = ", ".join(f"{_WORDS[name]} {getattr(coord, name)}" for name in coord.fields)
    title = notation(coord) if title is None else title
    return relation_drawing(
        scene, [held], viewpoint=Viewpoint(size=_SIZE), title=title, caption=(words,)
    )


def _two_bodies(coord: Coord) -> SceneGraph:
    """Return a scene with the frames that coordinates name, where they can be told apart."""
    on_body = {getattr(coord, name) for name in _ON_BODY if name in coord.fields}
    scene = SceneGraph(root=None)
    for body, places, middle in (
        (coord.ref_body, _ON_REFERENCE, Pose()),
        (coord.body, _ON_BODY, _APART),
    ):
        under = f"middle of {body}"
        if body in scene.body_names:  # a relation inside a body
            under = scene.frame_names[0]
        elif len(scene):
            scene = scene.add_body(body).add_frame(
                under, scene.frame_names[0], pose=middle, body=body
            )
        else:
            scene = scene.add_body(body).add_root(under, body=body)
        for role, place in places.items():
            name = getattr(coord, role, None)
            if name is not None and name not in scene and not (role == "coord" and name in on_body):
                at = middle @ place if under == scene.frame_names[0] else place
                scene = scene.add_frame(name, under, pose=at, body=body)
    return scene


def draw_semantics(coord: Coord, path: str | Path) -> Path:
    """Draw the points, frames and bodies of coordinates into a PNG file; see :func:`semantics_drawing`.

    Args:
        coord: coordinates of a relation.
        path: the PNG file.

    Raises:
        OutputError: the file cannot be written, or its name does not end in ``.png``.
        MissingExtraError: the extra ``pictures`` is not installed.
    """
    return save_drawings([semantics_drawing(coord)], path, width=6.0)
