"""Queries of relations between frames and bodies of a scene, in any point, axes and representation.

The core finds the numbers; where it has none, because a name is wrong or no path leads there, the
reason is found here.

The point of a velocity is fixed to the body that moves, and may be named by a frame of the
reference body as well. Then it is the point of the body that is, for the instant, where that
frame's origin is. So the inverse of a twist, which keeps its point, can be asked for, and the screw
twist ``(h|C, D, [h])`` of De Laet et al., part 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit import relations as rel
from tmkit._core import Kinematics, SceneGraph
from tmkit.errors import DisconnectedError, UnknownNameError
from tmkit.graph.moments import When, moment
from tmkit.graph.rigid import twist_driven_edges
from tmkit.graph.traversal import joints_between, twist_path
from tmkit.relations import LinearVelocityCoord, SemanticError, TwistCoord, representations
from tmkit.relations.representation import trusted
from tmkit.relations.semantic.base import SemanticRelation, require_one
from tmkit.relations.semantics import Coord
from tmkit.relations.violations import Violation, refusal

OnConflict = Literal["refuse", "invert"]


def frame_on(scene: SceneGraph, body: str, beside: str) -> str | None:
    """Return the first frame of a body in the tree of another frame; None if it has none there."""
    tree = scene.root(beside)
    return next((frame for frame in scene.frames_of_body(body) if scene.root(frame) == tree), None)


def coord_of(relation: object, kind: type[SemanticRelation], operation: str) -> Any:
    """Return the coordinates of a relation of a class; SemanticError where it is none of it, or a batch."""
    if isinstance(relation, kind):
        require_one(relation, operation)
        return relation.coord
    what = " ".join(repr(relation).split())[:80]
    repair = (
        f"say what the numbers mean: {kind.__name__}({kind.coord_class.__name__}(...), numbers)"
    )
    raise refusal(operation, f"it takes a {kind.__name__}", what, repair=repair)


def require_conflict_option(on_conflict: str) -> None:
    """Check the option for conflicts."""
    if on_conflict not in ("refuse", "invert"):
        raise UnknownNameError.of("on_conflict", on_conflict, ("refuse", "invert"))


def is_on_reference(scene: SceneGraph, coord: Any) -> bool:
    """Return whether the point of a velocity is a frame of the reference body."""
    is_velocity = isinstance(coord, (TwistCoord, LinearVelocityCoord))
    return (
        is_velocity and coord.body != coord.ref_body and scene.body(coord.point) == coord.ref_body
    )


def check_names(scene: SceneGraph, coord: Coord) -> None:
    """Check that frames and bodies of coordinates are there, and that the frames are on these bodies."""
    broken = []
    for names, on in ((("point", "ori"), coord.body), (("ref_point", "ref_ori"), coord.ref_body)):
        seen = None
        for name in names:
            frame = getattr(coord, name, None)
            if (
                frame is None
                or frame == seen
                or (name == "point" and is_on_reference(scene, coord))
            ):
                continue
            seen, actual = frame, scene.body(frame)
            if actual != on:
                rule = f"the {name} is a frame on the body that is named"
                violation = Violation(
                    rule, f"frame '{frame}' is on body '{actual}'", f"body '{on}' is named"
                )
                broken.append(violation)
        if seen is None or broken:
            scene.frames_of_body(on)  # it is there
    if coord.coord not in scene:
        raise UnknownNameError.of("frame", coord.coord, scene.frame_names)
    if broken:
        raise SemanticError.of(repr(coord), broken)


def unjoined(scene: SceneGraph, coord: Coord, error: DisconnectedError) -> SemanticError:
    """Return the error of coordinates whose frames no poses join, or raise that of a wrong name."""
    check_names(scene, coord)
    violation = Violation(
        "a path of poses leads there", str(error), repair="join the trees with add_pose"
    )
    return SemanticError.of(f"relate({coord!r})", [violation])


UNKNOWN_MOTION_REPAIR = (
    "add a twist with add_twist, or state a joint with set_joint (Fixed() if nothing moves there),"
    " or join the frames with attach, mount or reparent"
)
"""Ways to state the motion of an edge."""


def unknown_motion(scene: SceneGraph, edge: str) -> str:
    """Return the message for the edge above a frame whose motion is not stated."""
    ends = f"'{edge}' and its parent '{scene.parent(edge)}'"
    return (
        f"the motion of the edge between {ends} is unknown, since its pose alone does not state it"
    )


def require_stated_motion(scene: Any, frame: str, reference: str, operation: str) -> None:
    """Raise SemanticError if the motion of an edge between two frames of one tree is not stated."""
    if (edge := scene._unstated_edge(frame, reference)) is not None:
        rule = f"the motion of every edge between '{frame}' and '{reference}' is stated"
        raise refusal(operation, rule, unknown_motion(scene, edge), repair=UNKNOWN_MOTION_REPAIR)


def explain(scene: SceneGraph, coord: Coord, qd: object = None) -> NoReturn:
    """Say why the core has no numbers: a name is wrong, or nothing says how one body moves relative to the other."""
    check_names(scene, coord)
    core: Any = scene
    rule = f"a path of twists leads from body '{coord.ref_body}' to body '{coord.body}'"
    why, repair = (
        "there is none",
        "add what is missing with add_twist, also where nothing moves; or pass qd",
    )
    there, back = (coord.body, coord.ref_body), (coord.ref_body, coord.body)
    beside = getattr(coord, "point", coord.coord)
    a, b = (frame_on(scene, body, beside) for body in there)
    if a is None or b is None:
        why, repair = "nor do poses", "join the trees with add_pose, or add a twist with add_twist"
        if any(twist_path(scene, body, relative_to_body=other) for body, other in (there, back)):
            why, repair = (
                f"there is one, but poses do not join its frames to '{beside}'",
                "add them with add_pose",
            )
    elif (edge := core._unstated_edge(a, b)) is not None:
        why, repair = unknown_motion(scene, edge), UNKNOWN_MOTION_REPAIR
    elif not twist_driven_edges(scene, a).isdisjoint(scene.path(a, b)) and (
        body := _way_out(scene, beside)
    ):
        why = f"twist edges lead there by way of body '{body}', which no poses join"
        repair = f"join '{body}' with add_pose, or add a twist with add_twist"
    elif (joints := joints_between(scene, a, b)) and qd is None:
        why, repair = (
            f"joint '{joints[0]}' is between them",
            "pass q and qd, or add a twist with add_twist",
        )
    raise refusal(f"relate({coord!r})", rule, why, repair=repair)


def _way_out(scene: SceneGraph, frame: str) -> str | None:
    """Return a body by way of which twist edges lead out of the tree of a frame: one that has frames elsewhere."""
    for head in scene.twist_frames:
        edge = scene.twist_edge(head)
        assert edge is not None, "it is among the frames with twists"
        ends = scene.body(head), edge[0]
        missing = [body for body in ends if frame_on(scene, body, frame) is None]
        if len(missing) == 1:
            return missing[0]
    roots = {
        body: {scene.root(on) for on in scene.frames_of_body(body)} for body in scene.body_names
    }
    return next(
        (body for body, trees in roots.items() if len(trees) > 1 and scene.root(frame) in trees),
        None,
    )


Vector = NDArray[np.float64]
_Scene = SceneGraph | Kinematics


@overload
def relate(
    scene: _Scene,
    coord: rel.PositionCoord,
    *,
    representation: type[rel.Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    stamp: float | When | None = None,
) -> rel.SemanticPosition: ...
@overload
def relate(
    scene: _Scene,
    coord: rel.OrientationCoord,
    *,
    representation: type[rel.Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    stamp: float | When | None = None,
) -> rel.SemanticOrientation: ...
@overload
def relate(
    scene: _Scene,
    coord: rel.PoseCoord,
    *,
    representation: type[rel.Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    stamp: float | When | None = None,
) -> rel.SemanticPose: ...
@overload
def relate(
    scene: _Scene,
    coord: rel.LinearVelocityCoord,
    *,
    representation: type[rel.Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    stamp: float | When | None = None,
) -> rel.SemanticLinearVelocity: ...
@overload
def relate(
    scene: _Scene,
    coord: rel.AngularVelocityCoord,
    *,
    representation: type[rel.Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    stamp: float | When | None = None,
) -> rel.SemanticAngularVelocity: ...
@overload
def relate(
    scene: _Scene,
    coord: rel.TwistCoord,
    *,
    representation: type[rel.Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    stamp: float | When | None = None,
) -> rel.SemanticTwist: ...
@overload
def relate(
    scene: _Scene,
    coord: Coord,
    *,
    representation: type[rel.Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    stamp: float | When | None = None,
) -> SemanticRelation: ...
def relate(
    scene: _Scene,
    coord: Coord,
    *,
    representation: type[rel.Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    stamp: float | When | None = None,
) -> Any:
    """Return a relation that holds in a scene, with its numbers. O(depth log n), for twists and as much for each edge.

    It is a :class:`~tmkit.relations.SemanticPose` for a ``PoseCoord``, and so on.

    Args:
        scene: the scene; or a scene at a configuration, ``scene.at(q, qd)``, which has q and qd of
            its own.
        coord: what is asked for: coordinates of a position, orientation, pose, linear velocity,
            angular velocity or twist, whose names are frames and bodies of the scene. The point of
            a velocity is a frame of the body, or of the reference body: the point that is there for
            the instant.
        representation: the form of the numbers; by default a position vector, a rotation matrix,
            vector and matrix (a rotation vector where the axes are not those of the reference
            frame), or a six-vector.
        q: (n_joints,) configuration; required if a joint is on the path.
        qd: (n_joints,) joint velocities. Twist edges say how frames on the way of a velocity move;
            elsewhere joints move as ``qd`` says, and free edges do not; without it both say
            nothing. Fixed edges never move. The motion of an edge that has a pose only, as
            ``add_pose`` makes it, is unknown.
        stamp: the time [s], or :class:`When`: by stamped poses and histories of joints
            (:func:`~tmkit.graph.at_stamp`); now if omitted.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: if a frame is not on the body named, or the representation does not allow the
            result. Also if no poses lead from one to the other, or the motion of one relative to
            the other is not stated.
        ConfigurationError: if a joint is on the path and q is missing.
        StampError: if the stamp is outside of the recorded times.
    """
    if type(scene) is not SceneGraph and isinstance(scene, Kinematics):  # the quicker test first
        at = scene
        scene, q, qd = at.scene, at.q, at.qd
    query: Any = _QUERIES.get(type(coord))
    if query is None:
        if not isinstance(coord, Coord):
            what = " ".join(repr(coord).split())[:80]
            repair = "such as PoseCoord('{g}|C', '{h}|D', '[h]')"
            raise rel.SemanticError.of(
                "relate", [Violation("it takes coordinates", what, repair=repair)]
            )
        check_names(scene, coord)
        rule = "a scene relates positions, orientations, poses and velocities"
        raise rel.SemanticError.of(f"relate({coord!r})", [Violation(rule, f"a {coord.relation}")])
    made, usual, elsewhere, from_numbers = query
    if stamp is not None:
        scene, q, qd = moment_of(scene, coord, stamp, q=q, qd=qd)
    try:
        numbers = from_numbers(scene, coord, q, qd)
    except DisconnectedError as error:
        raise unjoined(scene, coord, error) from error
    if representation is None and elsewhere is None:
        return made._valued(coord, usual, numbers)
    if representation is None:  # one that can say it
        representation = usual if elsewhere is None or coord.coord == coord.ref_ori else elsewhere  # type: ignore[union-attr]
        return made._known(coord, held(representation, numbers))
    if getattr(representation, "relation", None) != made.coord_class.relation:
        rule = f"a representation of a {coord.relation}"
        what = getattr(representation, "__name__", None) or repr(representation)
        repair = f"such as {usual.__name__}, or omit it"
        raise rel.SemanticError.of(f"relate({coord!r})", [Violation(rule, what, repair=repair)])
    return made._of(coord, held(representation, numbers))


def moment_of(
    scene: SceneGraph,
    coord: Coord,
    stamp: float | When,
    *,
    q: ArrayLike | None,
    qd: ArrayLike | None,
    also: str | None = None,
) -> tuple[SceneGraph, ArrayLike | None, ArrayLike | None]:
    """Return the version of a time, as far as a relation and one more frame need it, with q and qd of then."""
    check_names(scene, coord)
    names = [
        getattr(coord, name, coord.coord)
        for name in ("point", "ori", "ref_point", "ref_ori", "coord")
    ]
    names += [] if also is None else [also]
    bodies = (coord.body, coord.ref_body) if isinstance(coord, _VELOCITIES) else None
    return moment(scene, stamp, names, bodies=bodies, q=q, qd=qd)


def held(representation: Any, numbers: Vector) -> Any:
    """Return the core's numbers, not copied, in a representation; a pose is one matrix, a twist one vector."""
    attribute = _AS_IT_IS.get(representation)
    if attribute is not None:
        return trusted(representation, {attribute: numbers})
    if representation is representations.VectorAndMatrix:
        return trusted(representation, {"vector": numbers[:3, 3], "matrix": numbers[:3, :3]})
    if representation.relation == "Pose":
        return representation.of((numbers[:3, 3], numbers[:3, :3]))
    return representation.of(
        (numbers[:3], numbers[3:]) if representation.relation == "Twist" else (numbers,)
    )


# ----------------------------------------------------------------------------- numbers, by relation
# The scene is typed as Any: what the core keeps for this module is not in its published types.

_VELOCITIES = (rel.LinearVelocityCoord, rel.AngularVelocityCoord, rel.TwistCoord)
_LINEAR, _ANGULAR = slice(3), slice(3, 6)
_Numbers = Callable[[Any, Any, ArrayLike | None, ArrayLike | None], Vector]


def _position(scene: Any, c: Any, q: ArrayLike | None, _: ArrayLike | None) -> Vector:
    found: Vector | None = scene._related_position(
        c.point, c.body, c.ref_point, c.ref_body, c.coord, q
    )
    return explain(scene, c) if found is None else found


def _orientation(scene: Any, c: Any, q: ArrayLike | None, _: ArrayLike | None) -> Vector:
    found: Vector | None = scene._related_orientation(
        c.ori, c.body, c.ref_ori, c.ref_body, c.coord, q
    )
    return explain(scene, c) if found is None else found


def _pose(scene: Any, c: Any, q: ArrayLike | None, _: ArrayLike | None) -> Vector:
    found: Vector | None = scene._related_pose(
        c.point, c.ori, c.body, c.ref_point, c.ref_ori, c.ref_body, c.coord, q
    )
    return explain(scene, c) if found is None else found


def _by_twists(part: slice | None = None) -> _Numbers:
    """Return the function of a velocity's numbers: a part of a twist, or all of it."""

    def numbers(scene: Any, coord: Any, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
        point = None if part is _ANGULAR else coord.point
        q = scene.zero_configuration() if q is None and qd is not None else q
        found: Vector | None = scene._related_twist(
            point, coord.body, coord.ref_body, coord.coord, q, qd
        )
        if found is None:
            explain(scene, coord, qd)
        return found if part is None else found[part]

    return numbers


_QUERIES: dict[type, Any] = {
    rel.PositionCoord: (rel.SemanticPosition, representations.PositionVector, None, _position),
    rel.OrientationCoord: (
        rel.SemanticOrientation,
        representations.RotationMatrix,
        representations.RotationVector,
        _orientation,
    ),
    rel.PoseCoord: (
        rel.SemanticPose,
        representations.VectorAndMatrix,
        representations.VectorAndRotationVector,
        _pose,
    ),
    rel.LinearVelocityCoord: (
        rel.SemanticLinearVelocity,
        representations.LinearVelocityVector,
        None,
        _by_twists(_LINEAR),
    ),
    rel.AngularVelocityCoord: (
        rel.SemanticAngularVelocity,
        representations.AngularVelocityVector,
        None,
        _by_twists(_ANGULAR),
    ),
    rel.TwistCoord: (rel.SemanticTwist, representations.TwistVector, None, _by_twists()),
}
_AS_IT_IS: dict[Any, str] = {  # which hold the core's array as it comes, and where
    representations.PositionVector: "vector",
    representations.RotationMatrix: "matrix",
    representations.HomogeneousMatrix: "matrix",
    representations.LinearVelocityVector: "vector",
    representations.AngularVelocityVector: "vector",
    representations.TwistVector: "vector",
}
