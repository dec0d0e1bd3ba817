"""Pictures of what the words of coordinates mean, without a scene: two bodies that stand for any.

:func:`semantics_drawing` places the points and frames that some coordinates name on two bodies of its own making, apart
from each other where their names differ, and draws the relation between them
(:mod:`tmkit.visualization.relation_picture`). The caption says which word is what.
"""

from __future__ import annotations

from pathlib import Path

from tmkit.graph import SceneGraph
from tmkit.relations import SemanticRelation, from_dict, to_dict
from tmkit.relations.semantics import Coord
from tmkit.spatial import Pose
from tmkit.visualization.drawing import Drawing, save_drawings
from tmkit.visualization.relation_picture import PARTS, notation, relation_drawing

_ON_REFERENCE = {
    "ref_ori": Pose.from_rpy([-0.25, 0.1, -0.05], [0.0, 0.0, -0.35]),
    "ref_point": Pose([0.12, -0.3, -0.2]),
    "coord": Pose.from_rpy([-0.1, 0.1, 0.5], [0.25, 0.1, 1.0]),
}
_ON_BODY = {"ori": Pose.from_rpy([0.1, 0.3, 0.3], [0.7, -0.4, 0.2]), "point": Pose([-0.05, -0.25, -0.2])}
_APART = Pose([1.6, 0.2, 0.1])
_SIZE = 1.7  # metres
_VALUES = {"linear": [0.3, 0.1, 0.35], "angular": [-0.5, 0.2, 0.5]}


def semantics_drawing(coord: Coord, *, title: str | None = None) -> Drawing:
    """Draw what the words of some coordinates are, on two bodies that stand for any.

    Args:
        coord: the coordinates, of any relation.
        title: above the drawing; the coordinates in the papers' notation by default.

    Returns:
        A drawing whose caption says what each word is.
    """
    scene = _two_bodies(coord)
    held: SemanticRelation | Coord = coord
    if not any(name in coord.fields for name in ("ref_point", "ref_ori")):
        kinds = {"LinearVelocity": "linear", "AngularVelocity": "angular", "Force": "linear", "Torque": "angular"}
        numbers = [number for part in PARTS.get(coord.relation, (coord.relation,)) for number in _VALUES[kinds[part]]]
        name = {"Twist": "TwistVector", "Wrench": "WrenchVector"}.get(coord.relation, f"{coord.relation}Vector")
        held = from_dict({**to_dict(coord), "values": {"representation": name, "vector": numbers}})
    words = [f"{_WORDS[name]} {getattr(coord, name)}" for name in coord.fields]
    return relation_drawing(
        scene, [held], size=_SIZE, title=notation(coord) if title is None else title, caption=(", ".join(words),)
    )


_WORDS = {
    "point": "point", "ori": "orientation frame", "body": "body", "ref_point": "reference point",
    "ref_ori": "reference orientation frame", "ref_body": "reference body", "coord": "expressed in",
}  # fmt: skip


def _two_bodies(coord: Coord) -> SceneGraph:
    """Return a scene with the frames that coordinates name, where they can be told apart."""
    on_body = {getattr(coord, name) for name in _ON_BODY if name in coord.fields}
    scene = SceneGraph(root=None)
    for body, places, middle in ((coord.ref_body, _ON_REFERENCE, Pose()), (coord.body, _ON_BODY, _APART)):
        under = f"middle of {body}"
        if body in scene.body_names:  # a relation inside a body
            under = scene.frame_names[0]
        elif len(scene):
            scene = scene.add_body(body).add_frame(under, scene.frame_names[0], pose=middle, body=body)
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
        MissingExtraError: the extra ``viewer`` is not installed.
    """
    return save_drawings([semantics_drawing(coord)], path, width=6.0)
