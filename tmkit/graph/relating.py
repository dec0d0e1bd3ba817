"""Geometric relations in a scene: what is put in and asked says what it means, and is refused where it cannot be.

A frame of a scene is a point and an orientation frame of its name, on its body. So a relation of
:mod:`tmkit.relations` whose names are frames and bodies of the scene can be asked for (:func:`relate`) in any point,
axes and representation; a pose can be added as the edge that joins two trees (:func:`add_pose`), a twist as a twist
edge (:func:`add_twist`). What is given at another point or in other axes than an edge is kept in is converted by the
poses of the scene, and refused with the reason where these are not known.

The rules of edges are those of De Laet, Bellens, Bruyninckx and De Schutter, "Geometric relations between rigid bodies:
from semantics to software", in a form that can be decided; ``docs/relations.md`` lists them. The core keeps them; here
are the conversions and the queries.

Invariants: scenes are values; each function returns another or leaves all as it was. A relation is known in a scene
when a path leads to it: of pose edges for poses, of twist edges for velocities (a zero twist is stored, not implied),
joined at the common ancestor of both bodies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import Fixed, Joint, SceneGraph
from tmkit.errors import CycleError, DisconnectedError, SceneError, UnknownNameError
from tmkit.relations import (
    AngularVelocityCoord,
    Coord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    Representation,
    SemanticAngularVelocity,
    SemanticError,
    SemanticLinearVelocity,
    SemanticOrientation,
    SemanticPose,
    SemanticPosition,
    SemanticRelation,
    SemanticTwist,
    SemanticWrench,
    TwistCoord,
    VectorAndMatrix,
    Violation,
    WrenchCoord,
)
from tmkit.relations.representations import (
    AngularVelocityVector,
    LinearVelocityVector,
    PositionVector,
    RotationVector,
    TwistVector,
    WrenchVector,
)
from tmkit.relations.rules import orientation_of
from tmkit.spatial import Pose

__all__ = [
    "Node",
    "add_edge",
    "add_pose",
    "add_twist",
    "integrated",
    "relate",
    "set_pose",
    "set_twist",
    "transport",
]

Vector = NDArray[np.float64]
OnConflict = Literal["refuse", "invert"]


@dataclass(frozen=True)
class Node:
    """A node of the graph: a frame or a body.

    Attributes:
        kind: ``frame`` or ``body``.
        name: its name.
    """

    kind: Literal["frame", "body"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'"


# ------------------------------------------------------------------------------------------------------------- poses


def add_pose(
    scene: SceneGraph,
    pose: SemanticPose,
    *,
    joint: Joint = Fixed(),  # noqa: B008 - a value
    q: ArrayLike | None = None,
    on_conflict: OnConflict = "refuse",
) -> SceneGraph:
    """Return the scene with the pose of one frame relative to another as an edge.

    The frame must be the root of its tree; where it hangs off the same reference frame already, its pose is changed.

    Args:
        scene: the scene, which has both frames on the bodies that the pose names.
        pose: the pose; where it does not relate a frame to a frame, it is converted by the poses of the scene.
        joint: how the frame moves relative to its reference, at value 0 in this pose.
        q: (n_joints,) configuration for the conversion, where a joint is on the way.
        on_conflict: whether a pose that is refused is to be tried the other way round.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body that the pose names; or the conversion is not possible.
        SceneError: the frame has another parent; a body would have two paths; or the pose would move inside a body.
        CycleError: the reference frame hangs off the frame.
    """
    _check_names(scene, pose.coord)
    between = _between_frames(scene, pose, q)
    frame, reference = between.coord.ori, between.coord.ref_ori
    try:
        return _with_pose_edge(scene, frame, reference, _pose_of(between), joint)
    except SceneError:
        if on_conflict != "invert":
            raise
    turned = between.inverse2()
    if joint.type != "fixed":
        message = f"a pose with a joint cannot be turned round: frame '{frame}' has a parent already"
        raise SceneError(message, frame=frame)
    return _with_pose_edge(scene, reference, frame, _pose_of(turned), joint)


def set_pose(scene: SceneGraph, pose: SemanticPose, *, q: ArrayLike | None = None) -> SceneGraph:
    """Return the scene in which the edge between two frames has another pose.

    Args:
        scene: the scene.
        pose: the pose of a frame relative to its parent, or of the parent relative to the frame.
        q: (n_joints,) configuration for the conversion, where a joint is on the way.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body that the pose names; or the conversion is not possible.
        SceneError: there is no such edge, or it is inside a body, where poses are constant.
    """
    _check_names(scene, pose.coord)
    between = _between_frames(scene, pose, q)
    if scene.parent(between.coord.ref_ori) == between.coord.ori:
        between = between.inverse2()
    frame, reference = between.coord.ori, between.coord.ref_ori
    if scene.parent(frame) != reference:
        raise SceneError(f"there is no edge between '{frame}' and '{reference}' whose pose could be set", frame=frame)
    return scene.set_pose(frame, _pose_of(between))


def _with_pose_edge(scene: SceneGraph, frame: str, reference: str, pose: Pose, joint: Joint) -> SceneGraph:
    if frame == reference:
        raise CycleError(f"frame '{frame}' cannot hang off itself", frame=frame, parent=reference)
    parent = scene.parent(frame)
    if parent == reference:
        return scene.set_pose(frame, pose)
    if parent is not None:
        message = f"frame '{frame}' hangs off '{parent}' already, and has one parent only"
        raise SceneError(message, frame=frame, parent=parent)
    return scene.attach(frame, reference, pose=pose, joint=joint)


def _between_frames(scene: SceneGraph, pose: SemanticPose, q: ArrayLike | None) -> SemanticPose:
    """Return a pose as that of its orientation frame relative to its reference orientation frame, expressed there."""
    made = SemanticPose(pose.coord, pose.representation)
    c = made.coord
    if c.coord != c.ref_ori:
        axes = _orientation(scene, c.coord, c.ref_ori, q)
        position = pose.position.change_coordinate_frame(axes)
        orientation = pose.orientation.change_coordinate_frame(axes)
        made = SemanticPose.of(position, orientation)
    else:
        made = made.represented_by(VectorAndMatrix)
    c = made.coord
    if c.ref_point != c.ref_ori:
        made = made.change_reference_point(_position(scene, c.ref_point, c.ref_ori, c.coord, q))
    if c.point != c.ori:  # the way from the point to the frame's origin, in the axes of the reference frame
        way = scene.pose(c.ori, c.point, q=q).translation
        turned = made.numbers[1] @ scene.pose(c.point, c.ori, q=q).rotate(way)
        step = SemanticPosition(PositionCoord._of(c.ori, c.body, c.point, c.body, c.coord), PositionVector(turned))
        made = made.change_point(step)
    return made


def _pose_of(pose: SemanticPose) -> Pose:
    return Pose.from_rotation_matrix(*pose.numbers)


# ------------------------------------------------------------------------------------------------------------ twists


def add_twist(
    scene: SceneGraph, twist: SemanticTwist, *, q: ArrayLike | None = None, on_conflict: OnConflict = "refuse"
) -> SceneGraph:
    """Return the scene with the twist of a frame's body relative to another body as an edge.

    The edge leads to the frame that is the twist's point. Where it is there already, its value is changed.

    Args:
        scene: the scene, which has the frame on the body that the twist names.
        twist: the twist, in any axes that the poses of the scene join to the frame.
        q: (n_joints,) configuration for the conversion, where a joint is on the way.
        on_conflict: whether a twist that is refused is to be tried the other way round: as that of a frame of the
            reference body.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: the frame is not on the body, or no poses lead to the axes in which the twist is given.
        SceneError: the rules of twist edges forbid it; see :meth:`SceneGraph.set_twist`.
    """
    c = twist.coord
    _check_names(scene, c)
    _require_body(scene, c.ref_body)
    at_frame = _brought(scene, twist.numbers, point=c.point, axes=c.coord, to_point=c.point, to_axes=c.point, q=q)
    try:
        return scene.set_twist(c.point, c.ref_body, np.concatenate(at_frame))
    except SceneError:
        if on_conflict != "invert":
            raise
        reason = f"the twist of '{c.point}' relative to body '{c.ref_body}' is refused, and cannot be turned round"
        for frame in _frames_on(scene, c.ref_body):
            if scene.root(frame) == scene.root(c.point):
                break
        else:
            raise SceneError(f"{reason}: no frame of that body is joined to '{c.point}' by poses") from None
    v, w = _brought(scene, at_frame, point=c.point, axes=c.point, to_point=frame, to_axes=frame, q=q)
    return scene.set_twist(frame, c.body, -np.concatenate([v, w]))


def set_twist(scene: SceneGraph, twist: SemanticTwist, *, q: ArrayLike | None = None) -> SceneGraph:
    """Return the scene in which a twist edge that is there has another value.

    Raises:
        SceneError: there is no such edge.
        SemanticError: as for :func:`add_twist`.
    """
    c = twist.coord
    _check_names(scene, c)
    edge = scene.twist_edge(c.point)
    if edge is None or edge[0] != c.ref_body:
        known = f"it is relative to '{edge[0]}'" if edge else "it has none"
        raise SceneError(
            f"frame '{c.point}' has no twist relative to body '{c.ref_body}' to set: {known}", frame=c.point
        )
    return add_twist(scene, twist, q=q)


def integrated(scene: SceneGraph, dt: float) -> SceneGraph:
    """Return the scene after a time in which every frame with a twist edge moves by it, constantly.

    A frame moves relative to its parent; its twist must be known relative to the parent's body.

    Args:
        scene: the scene.
        dt: seconds.

    Raises:
        SemanticError: a twist relative to a parent's body is not known, or a joint is in the way of a pose.
    """
    moved: list[tuple[str, Pose]] = []
    for frame in scene.twist_frames:
        parent = scene.parent(frame)
        if parent is None:
            continue
        coord = TwistCoord._of(frame, _body(scene, frame), _body(scene, parent), frame)
        if coord.body == coord.ref_body:
            continue
        v, w = _twist_numbers(scene, coord, None)
        moved.append((frame, scene.pose(frame, parent) @ Pose.exp(np.concatenate([v, w]) * dt)))
    with scene.edit() as edit:
        for frame, pose in moved:
            edit.set_pose(frame, pose)
    return edit.finish()


# ------------------------------------------------------------------------------------------------- edges of any kind


def add_edge(
    scene: SceneGraph, kind: Literal["pose", "twist"], *, tail: Node, head: Node, value: Pose | ArrayLike
) -> SceneGraph:
    """Return the scene with an edge between two nodes of any kind, where there may be one.

    Args:
        scene: the scene.
        kind: ``pose`` or ``twist``.
        tail: the reference: a frame for a pose, a body for a twist.
        head: the frame that stands, or moves, relative to it.
        value: tail_from_head; or (6,) the twist of the head's body relative to the tail, at the head's origin, in its
            axes.

    Raises:
        SemanticError: an edge of this kind does not join nodes of these kinds.
        SceneError: the rules forbid it.
    """
    wanted = {"pose": ("frame", "frame"), "twist": ("body", "frame")}.get(kind)
    if wanted is None:
        raise UnknownNameError.of("kind of edge", kind, ("pose", "twist"))
    if (tail.kind, head.kind) != wanted:
        rules = {
            "pose": "a pose edge joins two frames",
            "twist": "a twist edge joins a body and a frame of another body",
        }
        raise SemanticError.of(f"add_edge({kind})", [Violation(rules[kind], f"tail {tail}", f"head {head}")])
    if isinstance(value, Pose):
        if kind == "twist":
            raise SemanticError.of("add_edge(twist)", [Violation("a twist edge holds six numbers", repr(value))])
        return _with_pose_edge(scene, head.name, tail.name, value, Fixed())
    if kind == "pose":
        raise SemanticError.of("add_edge(pose)", [Violation("a pose edge holds a pose", repr(value)[:80])])
    return scene.set_twist(head.name, tail.name, value)


# ----------------------------------------------------------------------------------------------------------- queries


def relate(
    scene: SceneGraph,
    coord: Coord,
    *,
    representation: type[Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> Any:
    """Return a relation that holds in a scene, with its numbers.

    Args:
        scene: the scene.
        coord: what is asked for: coordinates of a position, orientation, pose, linear velocity, angular velocity or
            twist, whose names are frames and bodies of the scene.
        representation: the form of the numbers; when left out a position vector, a rotation matrix (a rotation vector
            where the axes are not those of the reference frame), vector and matrix, or a six-vector.
        q: (n_joints,) configuration; needed where a joint is on the way.
        qd: (n_joints,) joint velocities: then velocities are those of the joints, not those of twist edges.

    Returns:
        The relation: a :class:`~tmkit.relations.SemanticPose` for a ``PoseCoord``, and so on.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body named; no poses, or no twists, lead from one to the other; or the
            representation cannot say what is asked.
        ConfigurationError: a joint is on the way and q is missing.
    """
    _check_names(scene, coord)
    made: SemanticRelation
    try:
        if isinstance(coord, PositionCoord):
            made = SemanticPosition(coord, PositionVector(_way(scene, coord.point, coord.ref_point, coord.coord, q)))
        elif isinstance(coord, OrientationCoord):
            made = _oriented(scene, coord, q)
        elif isinstance(coord, PoseCoord):
            vector = _way(scene, coord.point, coord.ref_point, coord.coord, q)
            numbers = vector, _oriented(scene, orientation_of(coord), q).numbers[0]
            made = SemanticPose(coord, (representation or VectorAndMatrix).of(numbers))
        elif isinstance(coord, TwistCoord):
            made = SemanticTwist(coord, TwistVector(np.concatenate(_twist_numbers(scene, coord, q, qd))))
        elif isinstance(coord, LinearVelocityCoord):
            at = TwistCoord._of(coord.point, coord.body, coord.ref_body, coord.coord)
            made = SemanticLinearVelocity(coord, LinearVelocityVector(_twist_numbers(scene, at, q, qd)[0]))
        elif isinstance(coord, AngularVelocityCoord):
            at = TwistCoord._of(_any_frame(scene, coord.body), coord.body, coord.ref_body, coord.coord)
            made = SemanticAngularVelocity(coord, AngularVelocityVector(_twist_numbers(scene, at, q, qd)[1]))
        else:
            rule = "a scene knows positions, orientations, poses and velocities"
            raise SemanticError.of(f"relate({coord!r})", [Violation(rule, f"a {coord.relation}")])
    except DisconnectedError as error:
        raise SemanticError.of(f"relate({coord!r})", [Violation("a path of poses leads there", str(error))]) from error
    if representation is None or isinstance(made.representation, representation):
        return made
    return made.represented_by(representation)


def transport(
    scene: SceneGraph, wrench: SemanticWrench, *, point: str, axes: str | None = None, q: ArrayLike | None = None
) -> SemanticWrench:
    """Return a wrench about another point of its body, in other axes.

    Args:
        scene: the scene, whose poses join the frames.
        wrench: the wrench.
        point: frame about whose origin the moment is wanted, on the body that the wrench acts on.
        axes: frame of expression; that of the wrench when left out.
        q: (n_joints,) configuration, where a joint is on the way to the axes.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body, or no poses lead there.
    """
    c = wrench.coord
    to = c.coord if axes is None else axes
    coord = WrenchCoord._of(point, c.body, c.ref_body, to)
    _check_names(scene, c)
    _check_names(scene, coord)
    force, torque = wrench.numbers
    way = _way(scene, point, c.point, c.coord, q)
    turned = scene.pose(c.coord, to, q=q)
    moved = [turned.rotate(force), turned.rotate(torque - np.cross(way, force))]
    return SemanticWrench(coord, WrenchVector(np.concatenate(moved)))


# ---------------------------------------------------------------------------------------------------------- in numbers


def _way(scene: SceneGraph, point: str, ref_point: str, axes: str, q: ArrayLike | None) -> Vector:
    """Return the vector (3,) from one frame's origin to another's, in the axes of a third."""
    way = scene.pose(point, ref_point, q=q).translation
    return np.array(way if axes == ref_point else scene.pose(ref_point, axes, q=q).rotate(way))


def _oriented(scene: SceneGraph, coord: OrientationCoord, q: ArrayLike | None) -> SemanticOrientation:
    matrix = scene.pose(coord.ori, coord.ref_ori, q=q).rotation
    if coord.coord == coord.ref_ori:
        return SemanticOrientation(coord, matrix)
    axes = scene.pose(coord.ref_ori, coord.coord, q=q).rotation
    return SemanticOrientation(coord, RotationVector.of((axes @ matrix @ axes.T,)))


def _position(scene: SceneGraph, point: str, ref_point: str, axes: str, q: ArrayLike | None) -> SemanticPosition:
    coord = PositionCoord._of(point, _body(scene, point), ref_point, _body(scene, ref_point), axes)
    found: SemanticPosition = relate(scene, coord, q=q)
    return found


def _orientation(scene: SceneGraph, ori: str, ref_ori: str, q: ArrayLike | None) -> SemanticOrientation:
    coord = OrientationCoord._of(ori, _body(scene, ori), ref_ori, _body(scene, ref_ori), ref_ori)
    found: SemanticOrientation = relate(scene, coord, q=q)
    return found


def _brought(
    scene: SceneGraph,
    numbers: tuple[Vector, ...],
    *,
    point: str,
    axes: str,
    to_point: str,
    to_axes: str,
    q: ArrayLike | None,
) -> tuple[Vector, Vector]:
    """Return linear and angular velocity of a body at another point, in other axes."""
    v, w = numbers
    try:
        if to_point != point:
            v = v + np.cross(w, _way(scene, to_point, point, axes, q))
        if to_axes != axes:
            turned = scene.pose(axes, to_axes, q=q)
            v, w = turned.rotate(v), turned.rotate(w)
    except DisconnectedError as error:
        rule = f"poses join '{point}' and '{axes}' to '{to_point}' and '{to_axes}', so that a twist can be converted"
        raise SemanticError.of("twist", [Violation(rule, str(error))]) from error
    return v, w


def _twist_numbers(
    scene: SceneGraph, coord: TwistCoord, q: ArrayLike | None, qd: ArrayLike | None = None
) -> tuple[Vector, Vector]:
    """Return linear and angular velocity, from the joints or from the twist edges."""
    if coord.body == coord.ref_body:
        return np.zeros(3), np.zeros(3)
    _require_body(scene, coord.ref_body)
    if qd is not None:
        return _joint_twist(scene, coord, q, qd)
    up, down = _edges_up(scene, coord.body), _edges_up(scene, coord.ref_body)
    common = next((body for body in up if body in down), None)
    if common is None:
        rule = f"a path of twists leads from body '{coord.ref_body}' to body '{coord.body}'"
        raise SemanticError.of(f"relate({coord!r})", [Violation(rule, "there is none")])
    total = [np.zeros(3), np.zeros(3)]
    for sign, edges in ((1.0, up[common]), (-1.0, down[common])):
        for frame in edges:
            edge = scene.twist_edge(frame)
            assert edge is not None, "a path consists of edges"
            numbers = np.array(edge[1][:3]), np.array(edge[1][3:])
            v, w = _brought(scene, numbers, point=frame, axes=frame, to_point=coord.point, to_axes=coord.coord, q=q)
            total[0] = total[0] + sign * v
            total[1] = total[1] + sign * w
    return total[0], total[1]


def _edges_up(scene: SceneGraph, body: str) -> dict[str, tuple[str, ...]]:
    """Return for each body above the frames whose edges lead to it, nearest first, in order of distance."""
    steps: dict[str, list[tuple[str, str]]] = {}
    for frame in scene.twist_frames:
        edge = scene.twist_edge(frame)
        if edge is not None:
            steps.setdefault(_body(scene, frame), []).append((frame, edge[0]))
    found: dict[str, tuple[str, ...]] = {body: ()}
    waiting = [body]
    while waiting:
        here = waiting.pop(0)
        for frame, above in steps.get(here, []):
            if above not in found:
                found[above] = (*found[here], frame)
                waiting.append(above)
    return found


def _joint_twist(scene: SceneGraph, coord: TwistCoord, q: ArrayLike | None, qd: ArrayLike) -> tuple[Vector, Vector]:
    """Return the velocity that the joints give, by the Jacobians of both bodies at the point."""
    at = scene.at(q if q is not None else scene.zero_configuration())
    velocity = np.array(qd, dtype=float)
    frame = next((f for f in _frames_on(scene, coord.ref_body) if scene.root(f) == scene.root(coord.point)), None)
    if frame is None:
        rule = f"poses join a frame of body '{coord.ref_body}' to '{coord.point}'"
        raise SemanticError.of(f"relate({coord!r})", [Violation(rule, "there is none")])
    moving = at.jacobian(coord.point) @ velocity
    point_in_reference = at.pose(coord.point, frame).translation
    reference = at.jacobian(frame, point=point_in_reference) @ velocity
    relative = moving - reference
    axes = at.pose(scene.root(coord.point), coord.coord)
    return axes.rotate(relative[:3]), axes.rotate(relative[3:])


# ------------------------------------------------------------------------------------------------------------- names


def _body(scene: SceneGraph, frame: str) -> str:
    return scene.specification(frame).body


def _frames_on(scene: SceneGraph, body: str) -> Iterator[str]:
    return (frame for frame in scene.frame_names if _body(scene, frame) == body)


def _any_frame(scene: SceneGraph, body: str) -> str:
    _require_body(scene, body)
    frame = next(_frames_on(scene, body), None)
    if frame is None:
        raise SemanticError.of("relate", [Violation("the body has a frame", f"body '{body}' has none")])
    return frame


def _require_body(scene: SceneGraph, body: str) -> None:
    if body not in scene.body_names:
        raise UnknownNameError.of("body", body, scene.body_names)


def _check_names(scene: SceneGraph, coord: Any) -> None:
    """Refuse coordinates whose frames are not on the bodies that they name."""
    broken = []
    for names, body in ((("point", "ori"), "body"), (("ref_point", "ref_ori"), "ref_body")):
        on = getattr(coord, body)
        for name in names:
            frame = getattr(coord, name, None)
            if frame is None:
                continue
            actual = _body(scene, frame)
            if actual != on:
                rule = f"the {name} is a frame on the body that is named"
                violation = Violation(rule, f"frame '{frame}' is on body '{actual}'", f"body '{on}' is named")
                broken.extend([violation] if violation not in broken else [])
        _require_body(scene, on)
    if coord.coord not in scene:
        raise UnknownNameError.of("frame", coord.coord, scene.frame_names)
    if broken:
        raise SemanticError.of(repr(coord), broken)
