"""Queries of relations between frames and bodies, for any point, axes and representation.

The core computes the numbers. If it has none, since a name is wrong or no path exists, this module
determines the reason.

The point of a velocity is fixed to the moving body, and may be named by a frame of the reference
body. Then it is the point of the moving body that coincides with that frame's origin at this
instant. Queries therefore include the inverse of a twist, which has the same point, and the screw
twist ``(h|C, D, [h])`` of De Laet et al., part 1.
"""

from __future__ import annotations

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
from tmkit.relations.representation import from_arrays
from tmkit.relations.semantic.base import SemanticRelation, require_one
from tmkit.relations.semantics import Coord
from tmkit.relations.violations import Violation, rule_error

OnConflict = Literal["reject", "invert"]


def frame_on(scene: SceneGraph, body: str, tree_frame: str) -> str | None:
    """Return the first frame of a body in the tree of another frame; None if there is none."""
    root = scene.root(tree_frame)
    return next((frame for frame in scene.frames_of_body(body) if scene.root(frame) == root), None)


def coord_of(relation: object, kind: type[SemanticRelation], operation: str) -> Any:
    """Return the coordinates of a relation, or raise SemanticError for another class or a batch."""
    if isinstance(relation, kind):
        require_one(relation, operation)
        return relation.coord
    value = " ".join(repr(relation).split())[:80]
    repair = (
        f"add the semantics of the numbers: {kind.__name__}({kind.coord_class.__name__}(...),"
        " numbers)"
    )
    raise rule_error(operation, f"it takes a {kind.__name__}", value, repair=repair)


def require_conflict_option(on_conflict: str) -> None:
    """Raise UnknownNameError if the value of ``on_conflict`` is unknown."""
    if on_conflict not in ("reject", "invert"):
        raise UnknownNameError.of("on_conflict", on_conflict, ("reject", "invert"))


def is_on_reference(scene: SceneGraph, coord: Any) -> bool:
    """Return whether the point of a velocity is a frame of the reference body."""
    is_velocity = isinstance(coord, (TwistCoord, LinearVelocityCoord))
    return (
        is_velocity and coord.body != coord.ref_body and scene.body(coord.point) == coord.ref_body
    )


def check_names(scene: SceneGraph, coord: Coord) -> None:
    """Check that the frames and bodies of coordinates exist, and that the frames are on the bodies.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: if a frame is on another body.
    """
    violations = []
    for names, body in ((("point", "ori"), coord.body), (("ref_point", "ref_ori"), coord.ref_body)):
        last_frame = None
        for name in names:
            frame = getattr(coord, name, None)
            if frame is None or frame == last_frame:
                continue
            if name == "point" and is_on_reference(scene, coord):
                continue
            last_frame, actual = frame, scene.body(frame)
            if actual != body:
                rule = f"the {name} is a frame on the body that is named"
                sides = f"frame '{frame}' is on body '{actual}'", f"body '{body}' is named"
                violations.append(Violation(rule, *sides))
        if last_frame is None or violations:
            scene.frames_of_body(body)  # raise for an unknown body
    if coord.coord not in scene:
        raise UnknownNameError.of("frame", coord.coord, scene.frame_names)
    if violations:
        raise SemanticError.of(repr(coord), violations)


def path_error(scene: SceneGraph, coord: Coord, error: DisconnectedError) -> SemanticError:
    """Return the error of coordinates with frames of different trees, or raise that of a name."""
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


def unknown_motion_text(scene: SceneGraph, edge: str) -> str:
    """Return the message for the edge above a frame without a stated motion."""
    ends = f"'{edge}' and its parent '{scene.parent(edge)}'"
    return (
        f"the motion of the edge between {ends} is unknown, since its pose alone does not state it"
    )


def require_stated_motion(scene: Any, frame: str, reference: str, operation: str) -> None:
    """Raise SemanticError if an edge between two frames of one tree has no stated motion."""
    if (edge := scene._unstated_edge(frame, reference)) is not None:
        rule = f"the motion of every edge between '{frame}' and '{reference}' is stated"
        raise rule_error(
            operation, rule, unknown_motion_text(scene, edge), repair=UNKNOWN_MOTION_REPAIR
        )


def raise_unrelated(scene: SceneGraph, coord: Coord, qd: object = None) -> NoReturn:
    """Raise the error of a velocity that the scene does not determine.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: if a frame is on another body, or no path of twists exists.
    """
    check_names(scene, coord)
    rule = f"a path of twists leads from body '{coord.ref_body}' to body '{coord.body}'"
    cause, repair = _missing_path_cause(scene, coord, qd)
    raise rule_error(f"relate({coord!r})", rule, cause, repair=repair)


def _missing_path_cause(scene: SceneGraph, coord: Any, qd: object) -> tuple[str, str]:
    """Return the cause and the repair of a missing path of twists between two bodies."""
    core: Any = scene
    body, ref_body = coord.body, coord.ref_body
    point = getattr(coord, "point", coord.coord)
    frame, ref_frame = frame_on(scene, body, point), frame_on(scene, ref_body, point)
    if frame is None or ref_frame is None:
        is_joined = twist_path(scene, body, relative_to_body=ref_body) or twist_path(
            scene, ref_body, relative_to_body=body
        )
        if is_joined:
            cause = f"there is one, but poses do not join its frames to '{point}'"
            return cause, "add them with add_pose"
        return "nor do poses", "join the trees with add_pose, or add a twist with add_twist"
    edge = core._unstated_edge(frame, ref_frame)
    if edge is not None:
        return unknown_motion_text(scene, edge), UNKNOWN_MOTION_REPAIR
    if not twist_driven_edges(scene, frame).isdisjoint(scene.path(frame, ref_frame)):
        outside_body = _outside_body(scene, point)
        if outside_body:
            return (
                f"twist edges lead there by way of body '{outside_body}', which no poses join",
                f"join '{outside_body}' with add_pose, or add a twist with add_twist",
            )
    joints = joints_between(scene, frame, ref_frame)
    if joints and qd is None:
        cause = f"joint '{joints[0]}' is between them"
        return cause, "pass q and qd, or add a twist with add_twist"
    repair = "add the missing twist with add_twist, also if it is zero; or pass qd"
    return "there is none", repair


def _outside_body(scene: SceneGraph, frame: str) -> str | None:
    """Return a body outside of the tree of a frame on a path of twist edges."""
    for head in scene.twist_frames:
        edge = scene.twist_edge(head)
        assert edge is not None, "it is among the frames with twists"
        ends = scene.body(head), edge[0]
        missing_bodies = [body for body in ends if frame_on(scene, body, frame) is None]
        if len(missing_bodies) == 1:
            return missing_bodies[0]
    for body in scene.body_names:
        roots = {scene.root(body_frame) for body_frame in scene.frames_of_body(body)}
        if len(roots) > 1 and scene.root(frame) in roots:
            return body
    return None


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
    """Return a relation of a scene, with its numbers.

    The result is a :class:`~tmkit.relations.SemanticPose` for a ``PoseCoord``, and so on.
    O(depth log n), and the same again for each edge on the path of a twist.

    Args:
        scene: the scene; or a scene at a configuration, ``scene.at(q, qd)``, with its q and qd.
        coord: coordinates of a position, orientation, pose, linear velocity, angular velocity or
            twist, with names of the scene's frames and bodies. The point of a velocity is a frame
            of the body or of the reference body; the latter names the coincident point of the body.
        representation: form of the numbers. Defaults to a position vector, a rotation matrix, a
            vector and matrix, or a six-vector. For axes other than those of the reference frame, a
            rotation is a rotation vector by default.
        q: (n_joints,) configuration; required if a joint is on the path.
        qd: (n_joints,) joint velocities. On the path of a velocity, twist edges give the motion of
            frames. Elsewhere joints move by ``qd``, and free edges do not move; without ``qd`` the
            motion of both is unknown. Fixed edges never move. The motion of an edge with a pose
            only, as ``add_pose`` makes it, is unknown.
        stamp: the time [s], or :class:`When`, for stamped poses and joint histories
            (:func:`~tmkit.graph.at_stamp`). Defaults to the present.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: if a frame is not on its body, or the representation does not allow the
            result. Also if no path of poses joins the frames, or the relative motion is not stated.
        ConfigurationError: if a joint is on the path and q is missing.
        StampError: if the stamp is outside of the recorded times.
    """
    if type(scene) is not SceneGraph and isinstance(scene, Kinematics):  # the faster test first
        kinematics = scene
        scene, q, qd = kinematics.scene, kinematics.q, kinematics.qd
    query: Any = _QUERIES.get(type(coord))
    if query is None:
        if not isinstance(coord, Coord):
            value = " ".join(repr(coord).split())[:80]
            repair = "such as PoseCoord('{g}|C', '{h}|D', '[h]')"
            raise rule_error("relate", "it takes coordinates", value, repair=repair)
        check_names(scene, coord)
        rule = "a scene relates positions, orientations, poses and velocities"
        raise rule_error(f"relate({coord!r})", rule, f"a {coord.relation}")
    relation, default, turned_default, compute = query
    if stamp is not None:
        scene, q, qd = moment_of(scene, coord, stamp, q=q, qd=qd)
    try:
        numbers = compute(scene, coord, q, qd)
    except DisconnectedError as error:
        raise path_error(scene, coord, error) from error
    if representation is None and turned_default is None:
        return relation._from_value(coord, default, numbers)
    if representation is None:
        is_in_reference_axes = coord.coord == coord.ref_ori  # type: ignore[union-attr]
        representation = default if is_in_reference_axes else turned_default
        return relation._from_representation(coord, wrap_numbers(representation, numbers))
    if getattr(representation, "relation", None) != relation.coord_class.relation:
        rule = f"a representation of a {coord.relation}"
        value = getattr(representation, "__name__", None) or repr(representation)
        repair = f"such as {default.__name__}, or omit it"
        raise rule_error(f"relate({coord!r})", rule, value, repair=repair)
    return relation._of(coord, wrap_numbers(representation, numbers))


def moment_of(
    scene: SceneGraph,
    coord: Coord,
    stamp: float | When,
    *,
    q: ArrayLike | None,
    qd: ArrayLike | None,
    extra_frame: str | None = None,
) -> tuple[SceneGraph, ArrayLike | None, ArrayLike | None]:
    """Return the version at a time as far as a relation requires it, with q and qd at that time.

    Args:
        scene: the scene.
        coord: coordinates of the relation.
        stamp: the time [s], or :class:`When`.
        q: (n_joints,) configuration; see :func:`~tmkit.graph.moments.moment`.
        qd: (n_joints,) joint velocities.
        extra_frame: a further frame of the query.
    """
    check_names(scene, coord)
    names = [
        getattr(coord, name, coord.coord)
        for name in ("point", "ori", "ref_point", "ref_ori", "coord")
    ]
    names += [] if extra_frame is None else [extra_frame]
    bodies = (coord.body, coord.ref_body) if isinstance(coord, _VELOCITIES) else None
    return moment(scene, stamp, names, bodies=bodies, q=q, qd=qd)


def wrap_numbers(representation: Any, numbers: Vector) -> Any:
    """Return the core's numbers in a representation, without a copy.

    Args:
        representation: class of the result.
        numbers: (4, 4) for a pose, (6,) for a twist, otherwise the array of the representation.
    """
    attribute = _ARRAY_ATTRIBUTES.get(representation)
    if attribute is not None:
        return from_arrays(representation, {attribute: numbers})
    if representation is representations.VectorAndMatrix:
        return from_arrays(representation, {"vector": numbers[:3, 3], "matrix": numbers[:3, :3]})
    if representation.relation == "Pose":
        return representation.of((numbers[:3, 3], numbers[:3, :3]))
    return representation.of(
        (numbers[:3], numbers[3:]) if representation.relation == "Twist" else (numbers,)
    )


# --------------------------------------------------------------------------- numbers, by relation
# The scene is typed as Any, since the core's private functions are not in its published types.

_VELOCITIES = (rel.LinearVelocityCoord, rel.AngularVelocityCoord, rel.TwistCoord)
"""Coordinates of motions."""

_LINEAR_PART = slice(3)
"""Linear part of a twist."""

_ANGULAR_PART = slice(3, 6)
"""Angular part of a twist."""


def _position(scene: Any, c: Any, q: ArrayLike | None, _: ArrayLike | None) -> Vector:
    numbers: Vector | None = scene._related_position(
        c.point, c.body, c.ref_point, c.ref_body, c.coord, q
    )
    return raise_unrelated(scene, c) if numbers is None else numbers


def _orientation(scene: Any, c: Any, q: ArrayLike | None, _: ArrayLike | None) -> Vector:
    numbers: Vector | None = scene._related_orientation(
        c.ori, c.body, c.ref_ori, c.ref_body, c.coord, q
    )
    return raise_unrelated(scene, c) if numbers is None else numbers


def _pose(scene: Any, c: Any, q: ArrayLike | None, _: ArrayLike | None) -> Vector:
    numbers: Vector | None = scene._related_pose(
        c.point, c.ori, c.body, c.ref_point, c.ref_ori, c.ref_body, c.coord, q
    )
    return raise_unrelated(scene, c) if numbers is None else numbers


def _twist(scene: Any, c: Any, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
    point = None if isinstance(c, rel.AngularVelocityCoord) else c.point
    q = scene.zero_configuration() if q is None and qd is not None else q
    numbers: Vector | None = scene._related_twist(point, c.body, c.ref_body, c.coord, q, qd)
    return raise_unrelated(scene, c, qd) if numbers is None else numbers


def _linear_velocity(scene: Any, c: Any, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
    return _twist(scene, c, q, qd)[_LINEAR_PART]


def _angular_velocity(scene: Any, c: Any, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
    return _twist(scene, c, q, qd)[_ANGULAR_PART]


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
        _linear_velocity,
    ),
    rel.AngularVelocityCoord: (
        rel.SemanticAngularVelocity,
        representations.AngularVelocityVector,
        None,
        _angular_velocity,
    ),
    rel.TwistCoord: (rel.SemanticTwist, representations.TwistVector, None, _twist),
}
"""Relation, default representation, that for turned axes, and function of the numbers."""

_ARRAY_ATTRIBUTES: dict[Any, str] = {
    representations.PositionVector: "vector",
    representations.RotationMatrix: "matrix",
    representations.HomogeneousMatrix: "matrix",
    representations.LinearVelocityVector: "vector",
    representations.AngularVelocityVector: "vector",
    representations.TwistVector: "vector",
}
"""Attribute of the representations that store the core's array unchanged."""
