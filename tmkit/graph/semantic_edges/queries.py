"""What a scene answers: any relation between its frames and bodies, in any point, axes and representation.

The core finds the numbers; where it has none, because a name is wrong or no path leads there, the reason is found here.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import EdgeNoise, Kinematics, SceneGraph, twist_path
from tmkit.errors import DisconnectedError
from tmkit.graph.semantic_edges.names import body_of, check_names, frames_on, is_on_reference
from tmkit.relations import (
    AngularVelocityCoord,
    AngularVelocityVector,
    Coord,
    HomogeneousMatrix,
    LinearVelocityCoord,
    LinearVelocityVector,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    PositionVector,
    Representation,
    RotationMatrix,
    RotationVector,
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
    TwistVector,
    VectorAndMatrix,
    VectorAndRotationVector,
    Violation,
    WrenchCoord,
    WrenchVector,
)
from tmkit.relations.representation import Numbers
from tmkit.spatial import GaussianTwist

__all__ = [
    "brought",
    "brought_covariance",
    "gaussian_twist",
    "orientation_of_frame",
    "position_of_frame",
    "relate",
    "transport",
    "uncertain_twist",
]

Vector = NDArray[np.float64]


@overload
def relate(
    scene: SceneGraph | Kinematics,
    coord: PositionCoord,
    *,
    representation: type[Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> SemanticPosition: ...


@overload
def relate(
    scene: SceneGraph | Kinematics,
    coord: OrientationCoord,
    *,
    representation: type[Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> SemanticOrientation: ...


@overload
def relate(
    scene: SceneGraph | Kinematics,
    coord: PoseCoord,
    *,
    representation: type[Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> SemanticPose: ...


@overload
def relate(
    scene: SceneGraph | Kinematics,
    coord: LinearVelocityCoord,
    *,
    representation: type[Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> SemanticLinearVelocity: ...


@overload
def relate(
    scene: SceneGraph | Kinematics,
    coord: AngularVelocityCoord,
    *,
    representation: type[Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> SemanticAngularVelocity: ...


@overload
def relate(
    scene: SceneGraph | Kinematics,
    coord: TwistCoord,
    *,
    representation: type[Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> SemanticTwist: ...


@overload
def relate(
    scene: SceneGraph | Kinematics,
    coord: Coord,
    *,
    representation: type[Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> SemanticRelation: ...


def relate(
    scene: SceneGraph | Kinematics,
    coord: Coord,
    *,
    representation: type[Representation] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> Any:
    """Return a relation that holds in a scene, with its numbers. O(depth log n), for twists and as much for each edge.

    Args:
        scene: the scene; or a scene at a configuration, ``scene.at(q, qd)``, which has q and qd of its own.
        coord: what is asked for: coordinates of a position, orientation, pose, linear velocity, angular velocity or
            twist, whose names are frames and bodies of the scene. The point of a velocity is a frame of the body, or
            of the reference body: the point that is there for the instant.
        representation: the form of the numbers; by default a position vector, a rotation matrix, vector and matrix
            (a rotation vector instead of the matrix where the axes are not those of the reference frame), or a
            six-vector.
        q: (n_joints,) configuration; needed where a joint is on the way.
        qd: (n_joints,) joint velocities: then velocities are those of the joints, not those of twist edges. O(n).

    Returns:
        The relation: a :class:`~tmkit.relations.SemanticPose` for a ``PoseCoord``, and so on.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body named; no poses, or no twists, lead from one to the other; or the
            representation cannot say what is asked.
        ConfigurationError: a joint is on the way and q is missing.
    """
    if isinstance(scene, Kinematics):
        at = scene
        scene, q, qd = at.scene, at.q, at.qd
    answer = _ANSWERS.get(type(coord))
    if answer is None:
        if not isinstance(coord, Coord):
            what = " ".join(repr(coord).split())[:80]
            repair = "such as PoseCoord('{g}|C', '{h}|D', '[h]')"
            raise SemanticError.of("relate", [Violation("it is asked by coordinates", what, repair=repair)])
        check_names(scene, coord)
        rule = "a scene relates positions, orientations, poses and velocities"
        raise SemanticError.of(f"relate({coord!r})", [Violation(rule, f"a {coord.relation}")])
    made, usual, elsewhere, from_numbers = answer
    try:
        numbers = from_numbers(scene, coord, q, qd)
    except DisconnectedError as error:
        check_names(scene, coord)
        violation = Violation("a path of poses leads there", str(error), repair="join the trees with add_pose")
        raise SemanticError.of(f"relate({coord!r})", [violation]) from error
    if representation is None:  # one that can say it
        representation = usual if elsewhere is None or coord.coord == coord.ref_ori else elsewhere  # type: ignore[union-attr]
        return made._known(coord, _held(representation, numbers))
    if getattr(representation, "relation", None) != made.coord_class.relation:
        rule = f"a representation of a {coord.relation}"
        what = getattr(representation, "__name__", None) or repr(representation)
        repair = f"such as {usual.__name__}, or omit it"
        raise SemanticError.of(f"relate({coord!r})", [Violation(rule, what, repair=repair)])
    return made._of(coord, _held(representation, numbers))


def _held(representation: Any, numbers: Vector) -> Any:
    """Return the core's numbers in a representation; of a pose they are one matrix, of a twist one vector."""
    attribute = _AS_IT_IS.get(representation)
    if attribute is not None:
        held = object.__new__(representation)
        held.__dict__[attribute] = numbers
        return held
    if representation is VectorAndMatrix:
        held = object.__new__(representation)
        fields = held.__dict__
        fields["vector"], fields["matrix"] = numbers[:3, 3], numbers[:3, :3]
        return held
    return representation.of(_parts(representation.relation, numbers))


def _parts(relation: str, numbers: Vector) -> Numbers:
    if relation == "Pose":
        return numbers[:3, 3], numbers[:3, :3]
    return (numbers[:3], numbers[3:]) if relation == "Twist" else (numbers,)


# ------------------------------------------------------------------------------------------------- numbers, by relation
# The scene is typed as Any: what the core keeps for this module is not in its published types.


def _position_numbers(scene: Any, c: PositionCoord, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
    del qd
    found = scene._related_position(c.point, c.body, c.ref_point, c.ref_body, c.coord, q)
    return _explained(scene, c) if found is None else found


def _orientation_numbers(scene: Any, c: OrientationCoord, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
    del qd
    found = scene._related_orientation(c.ori, c.body, c.ref_ori, c.ref_body, c.coord, q)
    return _explained(scene, c) if found is None else found


def _pose_numbers(scene: Any, c: PoseCoord, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
    del qd
    found = scene._related_pose(c.point, c.ori, c.body, c.ref_point, c.ref_ori, c.ref_body, c.coord, q)
    return _explained(scene, c) if found is None else found


def _twist_numbers(scene: Any, c: TwistCoord, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
    if qd is not None:
        return _joint_twist(scene, c, c.point, q, qd)
    found = scene._related_twist(c.point, c.body, c.ref_body, c.coord, q)
    return _explained(scene, c) if found is None else found


def _linear_numbers(scene: Any, c: LinearVelocityCoord, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
    if qd is not None:
        return _joint_twist(scene, c, c.point, q, qd)[:3]
    found = scene._related_twist(c.point, c.body, c.ref_body, c.coord, q, "v")
    return _explained(scene, c) if found is None else found


def _angular_numbers(scene: Any, c: AngularVelocityCoord, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
    if qd is not None:
        return _joint_twist(scene, c, None, q, qd)[3:]
    found = scene._related_twist(None, c.body, c.ref_body, c.coord, q, "w")
    return _explained(scene, c) if found is None else found


_ANSWERS: dict[type, Any] = {
    PositionCoord: (SemanticPosition, PositionVector, None, _position_numbers),
    OrientationCoord: (SemanticOrientation, RotationMatrix, RotationVector, _orientation_numbers),
    PoseCoord: (SemanticPose, VectorAndMatrix, VectorAndRotationVector, _pose_numbers),
    LinearVelocityCoord: (SemanticLinearVelocity, LinearVelocityVector, None, _linear_numbers),
    AngularVelocityCoord: (SemanticAngularVelocity, AngularVelocityVector, None, _angular_numbers),
    TwistCoord: (SemanticTwist, TwistVector, None, _twist_numbers),
}
_AS_IT_IS: dict[Any, str] = {  # which hold the core's array as it comes, and where
    PositionVector: "vector",
    RotationMatrix: "matrix",
    HomogeneousMatrix: "matrix",
    LinearVelocityVector: "vector",
    AngularVelocityVector: "vector",
    TwistVector: "vector",
}


def gaussian_twist(scene: SceneGraph, coord: TwistCoord, *, q: ArrayLike | None = None) -> GaussianTwist:
    """Return a twist that holds in a scene and how sure it is. O(t) for t twist edges, and a pose for each on the way.

    The errors of the twist edges on the way are moved to the point and into the axes that are asked for, and added up:
    those from different sources as squares, those from one source before they are squared. Where a twist edge stands
    at another frame than the point, or in other axes, the poses between count as well, with their own errors; so the
    covariance is all of what is not known of the six numbers, to first order.

    Args:
        scene: the scene.
        coord: what is asked for, as for :func:`relate`; joints do not move.
        q: (n_joints,) configuration; needed where a joint is on the way of a pose.

    Returns:
        The linear velocity of the point and the angular velocity, in the axes of the frame of expression; exact (a
        covariance of zero) where no error is on the way.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body named; no twists lead from one body to the other; or no coordinates
            of a twist.
        ConfigurationError: a joint is on the way and q is missing.
    """
    if not isinstance(coord, TwistCoord):
        what = " ".join(repr(coord).split())[:80]
        repair = "such as TwistCoord('g|C', 'D', '[g]')"
        raise SemanticError.of(
            "gaussian_twist", [Violation("it is asked by coordinates of a twist", what, repair=repair)]
        )
    vector, error = uncertain_twist(scene, coord, q=q)
    return GaussianTwist(vector, None if error is None else error.covariance)


def uncertain_twist(
    scene: SceneGraph, coord: TwistCoord, *, q: ArrayLike | None = None
) -> tuple[Vector, EdgeNoise | None]:
    """Return a twist (6,) [linear, angular] and its noise, None if it is exact.

    Args:
        scene: the scene.
        coord: coordinates of the twist.
        q: (n_joints,) configuration; needed if the scene has joints.

    Raises:
        UnknownNameError, SemanticError, ConfigurationError: as :func:`gaussian_twist`.
    """
    typed_apart: Any = scene
    try:
        found = typed_apart._uncertain_twist(coord.point, coord.body, coord.ref_body, coord.coord, q)
    except DisconnectedError as error:
        check_names(scene, coord)
        violation = Violation("a path of poses leads there", str(error), repair="join the trees with add_pose")
        raise SemanticError.of(f"relate({coord!r})", [violation]) from error
    vector, noise = (_explained(scene, coord), None) if found is None else found
    return vector, noise


def _explained(scene: SceneGraph, coord: Any) -> Vector:
    """Say why the core has no numbers: a name is wrong, or no path of twists leads there.

    Raises:
        UnknownNameError, SemanticError: the reason.
    """
    check_names(scene, coord)
    rule = f"a path of twists leads from body '{coord.ref_body}' to body '{coord.body}'"
    why, repair = "there is none", "add what is missing with add_twist, also where nothing moves; or ask with qd"
    there, back = (coord.body, coord.ref_body), (coord.ref_body, coord.body)
    if any(twist_path(scene, body, relative_to_body=other) for body, other in (there, back)):
        why = f"there is one, but poses do not join its frames to '{getattr(coord, 'point', coord.coord)}'"
        repair = "add what is missing with add_pose"
    raise SemanticError.of(f"relate({coord!r})", [Violation(rule, why, repair=repair)])


def _joint_twist(scene: SceneGraph, coord: Any, point: str | None, q: ArrayLike | None, qd: ArrayLike) -> Vector:
    """Return the velocity (6,) that the joints give."""
    check_names(scene, coord)
    if coord.body == coord.ref_body:
        return np.zeros(6)
    at = scene.at(q if q is not None else scene.zero_configuration(), qd)
    tree = scene.root(point if point is not None else coord.coord)
    ends = []
    for body in (coord.body, coord.ref_body):
        frame = next((f for f in frames_on(scene, body) if scene.root(f) == tree), None)
        if frame is None:
            rule = f"poses join a frame of body '{body}' to '{point or coord.coord}'"
            raise SemanticError.of(f"relate({coord!r})", [Violation(rule, "there is none")])
        ends.append(frame)
    moving = ends[0] if point is None or is_on_reference(scene, coord) else point
    twist = at.twist(moving, relative_to=ends[1], axes=coord.coord)
    if point is None or moving == point:
        return twist
    return np.concatenate([twist[:3] + np.cross(twist[3:], _way(scene, point, moving, coord.coord, q)), twist[3:]])


# ----------------------------------------------------------------------------------------------------------- transport


def transport(
    scene: SceneGraph, wrench: SemanticWrench, *, point: str, axes: str | None = None, q: ArrayLike | None = None
) -> SemanticWrench:
    """Return a wrench about another point of its body, in other axes.

    Args:
        scene: the scene, whose poses join the frames.
        wrench: the wrench.
        point: frame about whose origin the moment is wanted, on the body that the wrench acts on.
        axes: frame of expression; that of the wrench by default.
        q: (n_joints,) configuration, where a joint is on the way to the axes.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body, or no poses lead there.
    """
    c = wrench.coord
    to = c.coord if axes is None else axes
    coord = WrenchCoord._of(point, c.body, c.ref_body, to)
    check_names(scene, c)
    check_names(scene, coord)
    force, torque = wrench.numbers
    try:
        way = _way(scene, point, c.point, c.coord, q)
        turned = scene.pose(c.coord, relative_to=to, q=q)
    except DisconnectedError as error:
        raise SemanticError.of(f"transport({c!r})", [Violation("a path of poses leads there", str(error))]) from error
    moved = [turned.rotate(force), turned.rotate(torque - np.cross(way, force))]
    return SemanticWrench(coord, WrenchVector(np.concatenate(moved)))


def _way(scene: SceneGraph, point: str, ref_point: str, axes: str, q: ArrayLike | None) -> Vector:
    """Return the vector (3,) from one frame's origin to another's, in the axes of a third."""
    way = scene.pose(point, relative_to=ref_point, q=q).translation
    return np.array(way if axes == ref_point else scene.pose(ref_point, relative_to=axes, q=q).rotate(way))


def brought(
    scene: SceneGraph,
    numbers: tuple[Vector, ...],
    *,
    point: str,
    axes: str,
    to_point: str,
    to_axes: str,
    q: ArrayLike | None,
) -> tuple[Vector, Vector]:
    """Return the twist of a body at another point, expressed in other axes.

    Args:
        scene: the scene.
        numbers: linear (3,) in m/s and angular velocity (3,) in rad/s.
        point: frame whose origin ``numbers`` refer to.
        axes: frame in which ``numbers`` are expressed.
        to_point: frame whose origin the result refers to.
        to_axes: frame in which the result is expressed.
        q: (n_joints,) configuration; needed if the scene has joints.

    Raises:
        SemanticError: poses do not join the frames.
    """
    v, w = numbers
    try:
        if to_point != point:
            v = v + np.cross(w, _way(scene, to_point, point, axes, q))
        if to_axes != axes:
            turned = scene.pose(axes, relative_to=to_axes, q=q)
            v, w = turned.rotate(v), turned.rotate(w)
    except DisconnectedError as error:
        rule = f"poses join '{point}' and '{axes}' to '{to_point}' and '{to_axes}', so that a twist can be converted"
        raise SemanticError.of("twist", [Violation(rule, str(error))]) from error
    return v, w


def brought_covariance(
    scene: SceneGraph,
    covariance: Vector,
    *,
    point: str,
    axes: str,
    to_point: str,
    to_axes: str,
    q: ArrayLike | None,
) -> Vector:
    """Return the covariance (6, 6) of the result of :func:`brought`; unchanged if point and axes are unchanged.

    Args:
        scene: the scene.
        covariance: (6, 6) of [linear, angular].
        point: frame whose origin ``covariance`` refers to.
        axes: frame in which ``covariance`` is expressed.
        to_point: frame whose origin the result refers to.
        to_axes: frame in which the result is expressed.
        q: (n_joints,) configuration; needed if the scene has joints.
    """
    twist = GaussianTwist(np.zeros(6), covariance)
    if to_point != point:
        twist = twist.moved_to(_way(scene, to_point, point, axes, q))
    if to_axes != axes:
        twist = twist.turned(scene.pose(axes, relative_to=to_axes, q=q))
    return twist.covariance


def position_of_frame(
    scene: SceneGraph, point: str, ref_point: str, axes: str, q: ArrayLike | None
) -> SemanticPosition:
    """Return the position of a frame's origin relative to that of another frame.

    Args:
        scene: the scene.
        point: the frame.
        ref_point: the reference frame.
        axes: the frame of expression.
        q: (n_joints,) configuration; needed if the scene has joints.
    """
    coord = PositionCoord._of(point, body_of(scene, point), ref_point, body_of(scene, ref_point), axes)
    found: SemanticPosition = relate(scene, coord, q=q)
    return found


def orientation_of_frame(scene: SceneGraph, ori: str, ref_ori: str, q: ArrayLike | None) -> SemanticOrientation:
    """Return the orientation of a frame relative to another, expressed in the latter.

    Args:
        scene: the scene.
        ori: the frame.
        ref_ori: the reference frame.
        q: (n_joints,) configuration; needed if the scene has joints.
    """
    coord = OrientationCoord._of(ori, body_of(scene, ori), ref_ori, body_of(scene, ref_ori), ref_ori)
    found: SemanticOrientation = relate(scene, coord, q=q)
    return found
