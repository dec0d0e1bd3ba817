"""Twists, accelerations and momenta of a scene.

Twists follow from twist edges and joints, with their errors. An acceleration is the sum over the
edges of the path between two frames (Featherstone, *Rigid Body Dynamics Algorithms*, 2008, chapter
5). The twist of a joint at constant velocity is constant in the axes of both of its frames, and so
is that of a twist edge.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import EdgeNoise, Kinematics, SceneArrays, SceneGraph
from tmkit.errors import DisconnectedError, SceneError
from tmkit.graph.moments import When, twists_between
from tmkit.graph.rigid import joint_values
from tmkit.graph.semantic_edges.queries import moment_of, path_error, raise_unrelated
from tmkit.relations import SemanticTwist, TwistCoord
from tmkit.relations.representations import TwistVector
from tmkit.relations.semantic.operations import Form, form_of
from tmkit.relations.violations import rule_error
from tmkit.spatial import GaussianTwist, Pose, adjoint

Vector = NDArray[np.float64]


def gaussian_twist(
    scene: SceneGraph,
    coord: TwistCoord,
    *,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    stamp: float | When | None = None,
) -> GaussianTwist:
    """Return a twist of a scene with its covariance, to first order.

    The errors of the twist edges on the path are transformed to the point and axes of ``coord`` and
    added. Errors of different sources are independent; errors of one source are correlated. The
    errors of the poses between a twist edge and the point or axes are included. The covariance is
    zero if no edge on the path has an error. O(t) for t twist edges, and a pose for each on the
    path.

    Args:
        scene: the scene.
        coord: coordinates of the twist, as for :func:`relate`.
        q: (n_joints,) configuration; required if a joint is on the path of a pose.
        qd: (n_joints,) joint velocities, exact; as for :func:`relate`.
        stamp: as for :func:`relate`; differences of stamped poses are exact.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: if a frame is not on its body, the relative motion is not stated, or the
            coordinates are not those of a twist.
        ConfigurationError: if a joint is on the path and q is missing.
    """
    if not isinstance(coord, TwistCoord):
        value = " ".join(repr(coord).split())[:80]
        repair = "such as TwistCoord('g|C', 'D', '[g]')"
        raise rule_error("gaussian_twist", "it takes coordinates of a twist", value, repair=repair)
    if stamp is not None:
        scene, q, qd = moment_of(scene, coord, stamp, q=q, qd=qd)
    vector, error = uncertain_twist(scene, coord, q=q, qd=qd)
    return GaussianTwist(vector, None if error is None else error.covariance)


def uncertain_twist(
    scene: SceneGraph, coord: TwistCoord, *, q: ArrayLike | None = None, qd: ArrayLike | None = None
) -> tuple[Vector, EdgeNoise | None]:
    """Return a twist (6,) [linear, angular] and its noise, None if exact.

    Raises the errors of :func:`gaussian_twist`.
    """
    core: Any = scene
    try:
        result = core._uncertain_twist(coord.point, coord.body, coord.ref_body, coord.coord, q, qd)
    except DisconnectedError as error:
        raise path_error(scene, coord, error) from error
    vector, noise = (raise_unrelated(scene, coord, qd), None) if result is None else result
    return vector, noise


@dataclass(frozen=True, slots=True)
class Expression:
    """Point and axes of the numbers of a motion.

    Args:
        at: frame whose origin is the point of the linear part; the moving frame if omitted.
        axes: the frame of expression; the reference frame if omitted.
    """

    at: str | None = None
    axes: str | None = None


def twist(
    scene: SceneGraph | Kinematics | SceneArrays,
    frame: str,
    *,
    relative_to: str | None = None,
    expression: Expression | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    stamp: float | When | None = None,
) -> SemanticTwist:
    """Return the twist of a frame's body relative to that of another frame [m/s, rad/s].

    The path between the bodies may consist of twist edges, moving joints and fixed edges. O(depth),
    and O(t depth) with t twist edges.

    Args:
        scene: the scene; or a scene at a configuration, ``scene.at(q, qd)``, with its q and qd.
            Scene arrays are accepted too: their configuration is the default of q, and they take no
            stamp.
        frame: a frame of the moving body.
        relative_to: a frame of the reference body; the root of its tree if omitted.
        expression: the point and the axes of the numbers; ``frame`` and ``relative_to`` if omitted.
        q: (n_joints,) configuration; required if a joint is on the path.
        qd: (n_joints,) joint velocities [rad/s or m/s]. Without them the motion of joints and free
            edges is unknown.
        stamp: as for :func:`relate`.

    Raises:
        UnknownNameError: if a frame is unknown.
        SemanticError: if no path of poses leads to a frame, or the relative motion is not stated.
        ConfigurationError: if a joint is on the path and q is missing.
        StampError: if the stamp is outside of the recorded times.
        SceneError: if the relative motion is not stated in arrays, or arrays come with a stamp.
    """
    point, axes = (None, None) if expression is None else (expression.at, expression.axes)
    if type(scene) is not SceneGraph and isinstance(scene, SceneArrays):
        if stamp is not None:
            raise SceneError("arrays have no twist at a stamp; freeze() them first")
        reference = scene.root(frame) if relative_to is None else relative_to
        to_axes = reference if axes is None else axes
        point = frame if point is None else point
        numbers = scene.twist(frame, relative_to=reference, at=point, axes=to_axes, q=q, qd=qd)
        coord = TwistCoord._of(point, scene.body(frame), scene.body(reference), to_axes)
        return SemanticTwist._from_value(coord, TwistVector, numbers)
    if type(scene) is not SceneGraph and isinstance(scene, Kinematics):  # the faster test first
        kinematics = scene
        scene, q, qd = kinematics.scene, kinematics.q, kinematics.qd
        qd = qd if qd is not None and len(qd) == len(q) else None
    if stamp is not None:
        coord = _frame_coord(scene, frame, relative_to, axes)
        scene, q, qd = moment_of(scene, coord, stamp, q=q, qd=qd, extra_frame=point)
    core: Any = scene
    try:
        vector, body, ref_body = core._twist_of_frames(frame, relative_to, point, axes, q, qd)
    except DisconnectedError as error:
        coord = _frame_coord(scene, frame, relative_to, axes)
        raise path_error(scene, coord, error) from error
    if vector is None:
        raise_unrelated(scene, _frame_coord(scene, frame, relative_to, axes), qd)
    if axes is None:
        axes = scene.root(frame) if relative_to is None else relative_to
    form = _form(frame if point is None else point, body, ref_body, axes)
    return SemanticTwist._from_form(form, vector)


def _frame_coord(
    scene: SceneGraph, frame: str, relative_to: str | None, axes: str | None
) -> TwistCoord:
    """Return the coordinates of the twist between two frames."""
    reference = scene.root(frame) if relative_to is None else relative_to
    to_axes = reference if axes is None else axes
    return TwistCoord._of(frame, scene.body(frame), scene.body(reference), to_axes)


@functools.lru_cache(maxsize=4096)
def _form(point: str, body: str, ref_body: str, axes: str) -> Form:
    return form_of(TwistCoord._of(point, body, ref_body, axes), TwistVector, None, False)


def acceleration(
    scene: SceneGraph,
    frame: str,
    *,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    relative_to: str | None = None,
    expression: Expression | None = None,
) -> Vector:
    """Return the spatial acceleration (6,) of a body: linear, then angular [m/s^2, rad/s^2].

    Its linear part is the rate of change of the velocity at a fixed position in space;
    :func:`classical_acceleration` returns that of a point fixed to the body. Twist edges are
    constant. O((1 + t) depth) for t twist edges.

    Args:
        scene: the scene.
        frame: a frame of the moving body.
        q: (n_joints,) configuration [rad or m].
        qd: (n_joints,) joint velocities [rad/s or m/s].
        qdd: (n_joints,) joint accelerations [rad/s^2 or m/s^2].
        relative_to: a frame of the reference body; the root of its tree if omitted.
        expression: the point and the axes of the numbers; ``frame`` and ``relative_to`` if omitted.

    Raises:
        UnknownNameError: if a frame is unknown.
        SemanticError: if the motion of an edge on the path is not stated.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    _, acceleration = _motion(scene, frame, reference, expression, q, qd, qdd)
    return _change_axes(scene, frame, reference, expression, q, acceleration)


def classical_acceleration(
    scene: SceneGraph,
    frame: str,
    *,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    relative_to: str | None = None,
    expression: Expression | None = None,
) -> Vector:
    """Return the acceleration (6,) of a body, with the linear part of a point fixed to the body.

    The arguments and errors are those of :func:`acceleration`.

    Args:
        scene: the scene.
        frame: a frame of the moving body.
        q: (n_joints,) configuration [rad or m].
        qd: (n_joints,) joint velocities [rad/s or m/s].
        qdd: (n_joints,) joint accelerations [rad/s^2 or m/s^2].
        relative_to: a frame of the reference body; the root of its tree if omitted.
        expression: the point and the axes of the numbers; ``frame`` and ``relative_to`` if omitted.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    velocity, acceleration = _motion(scene, frame, reference, expression, q, qd, qdd)
    centripetal = np.cross(velocity[3:], velocity[:3])
    acceleration = acceleration + np.concatenate([centripetal, np.zeros(3)])
    return _change_axes(scene, frame, reference, expression, q, acceleration)


def _motion(
    scene: SceneGraph,
    frame: str,
    reference: str,
    expression: Expression | None,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
) -> tuple[Vector, Vector]:
    """Return the twist (6,) and spatial acceleration (6,) at a point, in the axes of the frame."""
    point = frame if expression is None or expression.at is None else expression.at
    velocities, accelerations = joint_values(scene, qd, "qd"), joint_values(scene, qdd, "qdd")

    def edge_twist(start: str, end: str, rates: Vector) -> Vector:
        axes = Expression(axes=end)
        relation = twist(scene, end, relative_to=start, expression=axes, q=q, qd=rates)
        return np.concatenate(relation.numbers)

    # Collect the edges of the path: pose edges, and twist edges of constant twist.
    current, edges = reference, list[tuple[str, str, bool]]()
    steps = []
    if scene.twist_frames:
        steps = twists_between(scene, scene.body(reference), scene.body(frame))
    for start, end in steps:
        edges += [(a, b, False) for a, b in itertools.pairwise(scene.path(current, start))]
        edges.append((start, end, True))
        current = end
    edges += [(a, b, False) for a, b in itertools.pairwise(scene.path(current, frame))]

    # Add the motion of each edge.
    velocity, acceleration = np.zeros(6), np.zeros(6)
    for start, end, is_constant in edges:
        to_end = adjoint(scene.pose(start, relative_to=end, q=q))
        relative = edge_twist(start, end, velocities)
        change = edge_twist(start, end, accelerations)
        velocity = to_end @ velocity + relative
        acceleration = to_end @ acceleration + (0.0 if is_constant else change)
        acceleration = acceleration + _bracket(velocity, relative)
    to_point = adjoint(Pose(-scene.pose(point, relative_to=frame, q=q).translation))
    return to_point @ velocity, to_point @ acceleration


def _change_axes(
    scene: SceneGraph,
    frame: str,
    reference: str,
    expression: Expression | None,
    q: ArrayLike,
    acceleration: Vector,
) -> Vector:
    """Return an acceleration (6,) in the axes of the expression, from those of a frame."""
    axes = reference if expression is None or expression.axes is None else expression.axes
    pose = scene.pose(frame, relative_to=axes, q=q)
    return np.concatenate([pose.rotate(acceleration[:3]), pose.rotate(acceleration[3:])])


def momentum(
    scene: SceneGraph, frame: str, *, q: ArrayLike, qd: ArrayLike, about: str | None = None
) -> tuple[Vector, float]:
    """Return momentum (6,) and kinetic energy of all bodies at and below a frame, in the root.

    O(n depth) for n frames below.

    Args:
        scene: the scene; bodies without inertia are ignored.
        frame: the topmost frame, such as the base of a robot.
        q: (n_joints,) configuration [rad or m].
        qd: (n_joints,) joint velocities [rad/s or m/s].
        about: frame whose origin is the point of the angular momentum, and whose axes both parts
            have; the root if omitted.

    Returns:
        (6,) linear momentum [kg m/s] and angular momentum [kg m^2/s], and the energy [J].

    Raises:
        UnknownNameError: if a frame is unknown.
        SemanticError: if the motion of a body is not stated.
    """
    root, qd = scene.root(frame), joint_values(scene, qd, "qd")
    firsts = {scene.body(name): name for name in reversed(scene.subtree(frame))}
    total, energy = np.zeros(6), 0.0
    for name in firsts.values():
        inertia = scene.inertia(name)
        if inertia is None:
            continue
        expression = Expression(axes=name)
        relation = twist(scene, name, relative_to=root, expression=expression, q=q, qd=qd)
        vector = np.concatenate(relation.numbers)
        linear = inertia.mass * (vector[:3] + np.cross(vector[3:], inertia.center))
        angular = inertia.matrix @ vector[3:] + np.cross(inertia.center, linear)
        body_momentum = np.concatenate([linear, angular])
        energy += 0.5 * float(body_momentum @ vector)
        body_from_point = scene.pose(root if about is None else about, relative_to=name, q=q)
        total += adjoint(body_from_point).T @ body_momentum
    return total, energy


def _bracket(a: Vector, b: Vector) -> Vector:
    """Return the Lie bracket ad(a) b: the rate of change of twist b when it moves with twist a."""
    return np.concatenate([np.cross(a[3:], b[:3]) + np.cross(a[:3], b[3:]), np.cross(a[3:], b[3:])])
