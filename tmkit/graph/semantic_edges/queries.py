"""What a scene answers: any relation between its frames and bodies, in any point, axes and representation.

The core finds the numbers; where it has none, because a name is wrong or no path leads there, the reason is found here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit import relations as rel
from tmkit._core import Kinematics, SceneGraph
from tmkit.errors import DisconnectedError
from tmkit.graph.moments import moment
from tmkit.graph.semantic_edges.names import check_names, explain, unjoined
from tmkit.relations.representation import Numbers

Vector = NDArray[np.float64]
_Scene = SceneGraph | Kinematics


class _Options(TypedDict, total=False):
    representation: type[rel.Representation] | None
    q: ArrayLike | None
    qd: ArrayLike | None
    stamp: float | None
    policy: str
    extrapolate: float


@overload
def relate(scene: _Scene, coord: rel.PositionCoord, **options: Unpack[_Options]) -> rel.SemanticPosition: ...
@overload
def relate(scene: _Scene, coord: rel.OrientationCoord, **options: Unpack[_Options]) -> rel.SemanticOrientation: ...
@overload
def relate(scene: _Scene, coord: rel.PoseCoord, **options: Unpack[_Options]) -> rel.SemanticPose: ...
@overload
def relate(
    scene: _Scene, coord: rel.LinearVelocityCoord, **options: Unpack[_Options]
) -> rel.SemanticLinearVelocity: ...
@overload
def relate(
    scene: _Scene, coord: rel.AngularVelocityCoord, **options: Unpack[_Options]
) -> rel.SemanticAngularVelocity: ...
@overload
def relate(scene: _Scene, coord: rel.TwistCoord, **options: Unpack[_Options]) -> rel.SemanticTwist: ...
@overload
def relate(scene: _Scene, coord: rel.Coord, **options: Unpack[_Options]) -> rel.SemanticRelation: ...
def relate(
    scene: SceneGraph | Kinematics, coord: rel.Coord, *, representation: type[rel.Representation] | None = None,
    q: ArrayLike | None = None, qd: ArrayLike | None = None, stamp: float | None = None, policy: str = "interpolated",
    extrapolate: float = 0.0,
) -> Any:  # fmt: skip
    """Return a relation that holds in a scene, with its numbers. O(depth log n), for twists and as much for each edge.

    It is a :class:`~tmkit.relations.SemanticPose` for a ``PoseCoord``, and so on.

    Args:
        scene: the scene; or a scene at a configuration, ``scene.at(q, qd)``, which has q and qd of its own.
        coord: what is asked for: coordinates of a position, orientation, pose, linear velocity, angular velocity or
            twist, whose names are frames and bodies of the scene. The point of a velocity is a frame of the body, or
            of the reference body: the point that is there for the instant.
        representation: the form of the numbers; by default a position vector, a rotation matrix, vector and matrix
            (a rotation vector instead of the matrix where the axes are not those of the reference frame), or a
            six-vector.
        q: (n_joints,) configuration; needed where a joint is on the way.
        qd: (n_joints,) joint velocities. Twist edges say how frames on the way of a velocity move; elsewhere joints
            move as ``qd`` says, free edges do not, and fixed edges never do. Without it, joints and free edges say
            nothing.
        stamp: seconds: at this time, by stamped poses, their differences and the histories of joints
            (:func:`~tmkit.graph.at_stamp`); now if omitted.
        policy, extrapolate: as for :func:`~tmkit.graph.at_stamp`.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body named; no poses lead from one to the other, or nothing says how the
            one moves relative to the other; or the representation cannot say what is asked.
        ConfigurationError: a joint is on the way and q is missing.
        StampError: the stamp lies outside of what is known.
    """
    if type(scene) is not SceneGraph and isinstance(scene, Kinematics):  # the quicker test first
        at = scene
        scene, q, qd = at.scene, at.q, at.qd
    query = _QUERIES.get(type(coord))
    if query is None:
        if not isinstance(coord, rel.Coord):
            what = " ".join(repr(coord).split())[:80]
            repair = "such as PoseCoord('{g}|C', '{h}|D', '[h]')"
            raise rel.SemanticError.of("relate", [rel.Violation("it takes coordinates", what, repair=repair)])
        check_names(scene, coord)
        rule = "a scene relates positions, orientations, poses and velocities"
        raise rel.SemanticError.of(f"relate({coord!r})", [rel.Violation(rule, f"a {coord.relation}")])
    made, usual, elsewhere, from_numbers = query
    if stamp is not None:
        scene, q, qd = moment_of(scene, coord, stamp, q=q, qd=qd, policy=policy, extrapolate=extrapolate)
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
        raise rel.SemanticError.of(f"relate({coord!r})", [rel.Violation(rule, what, repair=repair)])
    return made._of(coord, held(representation, numbers))


def moment_of(
    scene: SceneGraph, coord: Any, stamp: float, *, q: ArrayLike | None, qd: ArrayLike | None, policy: str,
    extrapolate: float, also: str | None = None,
) -> tuple[SceneGraph, ArrayLike | None, ArrayLike | None]:  # fmt: skip
    """Return the version of a time, as far as a relation and one more frame need it, with q and qd of then."""
    check_names(scene, coord)
    names = [getattr(coord, name, coord.coord) for name in ("point", "ori", "ref_point", "ref_ori", "coord")]
    names += [] if also is None else [also]
    bodies = (coord.body, coord.ref_body) if isinstance(coord, _VELOCITIES) else None
    return moment(scene, stamp, names, bodies=bodies, q=q, qd=qd, policy=policy, extrapolate=extrapolate)


def held(representation: Any, numbers: Vector) -> Any:
    """Return the core's numbers, not copied, in a representation; a pose is one matrix, a twist one vector."""
    attribute = _AS_IT_IS.get(representation)
    if attribute is not None:
        held = object.__new__(representation)
        held.__dict__[attribute] = numbers
        return held
    if representation is rel.VectorAndMatrix:
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

_VELOCITIES = (rel.LinearVelocityCoord, rel.AngularVelocityCoord, rel.TwistCoord)
_LINEAR, _ANGULAR = slice(3), slice(3, 6)
_Numbers = Callable[[Any, Any, ArrayLike | None, ArrayLike | None], Vector]


def _position(scene: Any, c: Any, q: ArrayLike | None, _: ArrayLike | None) -> Vector:
    found: Vector | None = scene._related_position(c.point, c.body, c.ref_point, c.ref_body, c.coord, q)
    return explain(scene, c) if found is None else found


def _orientation(scene: Any, c: Any, q: ArrayLike | None, _: ArrayLike | None) -> Vector:
    found: Vector | None = scene._related_orientation(c.ori, c.body, c.ref_ori, c.ref_body, c.coord, q)
    return explain(scene, c) if found is None else found


def _pose(scene: Any, c: Any, q: ArrayLike | None, _: ArrayLike | None) -> Vector:
    found: Vector | None = scene._related_pose(c.point, c.ori, c.body, c.ref_point, c.ref_ori, c.ref_body, c.coord, q)
    return explain(scene, c) if found is None else found


def _by_twists(part: slice | None = None) -> _Numbers:
    """Return the function of a velocity's numbers: a part of a twist, or all of it."""

    def numbers(scene: Any, coord: Any, q: ArrayLike | None, qd: ArrayLike | None) -> Vector:
        point = None if part is _ANGULAR else coord.point
        q = scene.zero_configuration() if q is None and qd is not None else q
        found: Vector | None = scene._related_twist(point, coord.body, coord.ref_body, coord.coord, q, qd)
        if found is None:
            explain(scene, coord, qd)
        return found if part is None else found[part]

    return numbers


_QUERIES: dict[type, Any] = {
    rel.PositionCoord: (rel.SemanticPosition, rel.PositionVector, None, _position),
    rel.OrientationCoord: (rel.SemanticOrientation, rel.RotationMatrix, rel.RotationVector, _orientation),
    rel.PoseCoord: (rel.SemanticPose, rel.VectorAndMatrix, rel.VectorAndRotationVector, _pose),
    rel.LinearVelocityCoord: (rel.SemanticLinearVelocity, rel.LinearVelocityVector, None, _by_twists(_LINEAR)),
    rel.AngularVelocityCoord: (rel.SemanticAngularVelocity, rel.AngularVelocityVector, None, _by_twists(_ANGULAR)),
    rel.TwistCoord: (rel.SemanticTwist, rel.TwistVector, None, _by_twists()),
}  # fmt: skip
_AS_IT_IS: dict[Any, str] = {  # which hold the core's array as it comes, and where
    rel.PositionVector: "vector", rel.RotationMatrix: "matrix", rel.HomogeneousMatrix: "matrix",
    rel.LinearVelocityVector: "vector", rel.AngularVelocityVector: "vector", rel.TwistVector: "vector",
}  # fmt: skip
