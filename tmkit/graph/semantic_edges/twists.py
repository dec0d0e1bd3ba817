"""Motions that a scene answers: twists, accelerations and momenta.

Twists follow from twist edges and joints, with their errors. For an acceleration the way from one
frame to another is walked edge by edge: each adds its motion to what the frames before it do
(Featherstone, *Rigid Body Dynamics Algorithms*, 2008, chapter 5). The twist of a joint is constant
in the axes of either of its frames, and so is that of a twist edge.
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
from tmkit.graph.semantic_edges.queries import disconnected_error, moment_of, raise_unrelated
from tmkit.relations import SemanticTwist, TwistCoord
from tmkit.relations.representations import TwistVector
from tmkit.relations.semantic.operations import Form, form_of
from tmkit.relations.violations import refusal
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
    """Return a twist that holds in a scene and its uncertainty. O(t) for t twist edges, and a pose for each on the way.

    The errors of the twist edges on the way are moved to the point and into the axes that are asked
    for, and added up. Those from different sources are added as squares, those from one source
    before they are squared. Where a twist edge stands at another frame than the point, or in other
    axes, the poses between count as well, with their own errors. So the covariance is all of what
    is not known of the six numbers, to first order. It is zero where no error is on the way.

    Args:
        scene: the scene.
        coord: what is asked for, as for :func:`relate`.
        q: (n_joints,) configuration; required if a joint is on the path of a pose.
        qd: (n_joints,) joint velocities, exact; as for :func:`relate`.
        stamp: as for :func:`relate`; differences of stamped poses are exact.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: a frame is not on the body named; nothing says how the one moves; no
            coordinates of a twist.
        ConfigurationError: if a joint is on the path and q is missing.
    """
    if not isinstance(coord, TwistCoord):
        what = " ".join(repr(coord).split())[:80]
        repair = "such as TwistCoord('g|C', 'D', '[g]')"
        raise refusal("gaussian_twist", "it takes coordinates of a twist", what, repair=repair)
    if stamp is not None:
        scene, q, qd = moment_of(scene, coord, stamp, q=q, qd=qd)
    vector, error = uncertain_twist(scene, coord, q=q, qd=qd)
    return GaussianTwist(vector, None if error is None else error.covariance)


def uncertain_twist(
    scene: SceneGraph, coord: TwistCoord, *, q: ArrayLike | None = None, qd: ArrayLike | None = None
) -> tuple[Vector, EdgeNoise | None]:
    """Return a twist (6,) [linear, angular] and its noise, None if exact; errors as :func:`gaussian_twist`."""
    typed_apart: Any = scene
    try:
        found = typed_apart._uncertain_twist(
            coord.point, coord.body, coord.ref_body, coord.coord, q, qd
        )
    except DisconnectedError as error:
        raise disconnected_error(scene, coord, error) from error
    vector, noise = (raise_unrelated(scene, coord, qd), None) if found is None else found
    return vector, noise


@dataclass(frozen=True, slots=True)
class Expression:
    """The point and the axes of the numbers of a motion.

    Args:
        at: the frame at whose origin the linear part of the moving body is; the moving frame if
            omitted.
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
    """Return how a frame moves relative to another, with its semantics; the bodies are those of the frames.

    Twist edges, moving joints and fixed edges count together, along the one way between the two
    bodies. O(depth), and O(t depth) with t twist edges. The linear velocity is in m/s, the angular
    one in rad/s.

    Args:
        scene: the scene; or a scene at a configuration, ``scene.at(q, qd)``, which has q and qd of
            its own. The writer may give its arrays, whose configuration is q if that is omitted and
            which take no stamp.
        frame: a frame of the body that moves.
        relative_to: a frame of the body relative to which it moves; the root of its tree if
            omitted.
        expression: the point and the axes of the numbers; ``frame`` and ``relative_to`` if omitted.
        q: (n_joints,) configuration; required if a joint is on the path.
        qd: (n_joints,) joint velocities, rad/s or m/s; without them joints and free edges say
            nothing of motion.
        stamp: as for :func:`relate`.

    Raises:
        UnknownNameError: if a frame is unknown.
        SemanticError: no poses lead to a frame, or nothing says how the one moves relative to the
            other.
        ConfigurationError: if a joint is on the path and q is missing.
        StampError: if the stamp is outside of the recorded times.
        SceneError: the arrays say nothing of how the one moves relative to the other, or are asked
            at a stamp.
    """
    at, axes = (None, None) if expression is None else (expression.at, expression.axes)
    if type(scene) is not SceneGraph and isinstance(scene, SceneArrays):
        if stamp is not None:
            raise SceneError("arrays have no twist at a stamp; freeze() them first")
        reference = scene.root(frame) if relative_to is None else relative_to
        turned = reference if axes is None else axes
        point = frame if at is None else at
        numbers = scene.twist(frame, relative_to=reference, at=point, axes=turned, q=q, qd=qd)
        coord = TwistCoord._of(point, scene.body(frame), scene.body(reference), turned)
        return SemanticTwist._valued(coord, TwistVector, numbers)
    if type(scene) is not SceneGraph and isinstance(scene, Kinematics):  # the quicker test first
        at_q = scene
        scene, q, given = at_q.scene, at_q.q, at_q.qd
        qd = given if given is not None and len(given) == len(q) else None
    if stamp is not None:
        ends = _ends(scene, frame, relative_to, axes)
        scene, q, qd = moment_of(scene, ends, stamp, q=q, qd=qd, also=at)
    core: Any = scene
    try:
        vector, body, ref_body = core._twist_of_frames(frame, relative_to, at, axes, q, qd)
    except DisconnectedError as error:
        raise disconnected_error(scene, _ends(scene, frame, relative_to, axes), error) from error
    if vector is None:
        raise_unrelated(scene, _ends(scene, frame, relative_to, axes), qd)
    if axes is None:
        axes = scene.root(frame) if relative_to is None else relative_to
    return SemanticTwist._formed(_form(frame if at is None else at, body, ref_body, axes), vector)


def _ends(scene: SceneGraph, frame: str, relative_to: str | None, axes: str | None) -> TwistCoord:
    reference = scene.root(frame) if relative_to is None else relative_to
    return TwistCoord._of(
        frame, scene.body(frame), scene.body(reference), reference if axes is None else axes
    )


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
    """Return the spatial acceleration (6,) of a body relative to another: linear (m/s^2), then angular (rad/s^2).

    Its linear part is the rate of change of the velocity at the place of the point;
    :func:`classical_acceleration` has that of the point fixed to the body. The names are those of
    :func:`tmkit.graph.twist`. Twist edges are constant. O((1 + t) depth), t twist edges.

    Args:
        scene: the scene.
        frame: a frame of the body that moves.
        q: (n_joints,) configuration [rad or m].
        qd: (n_joints,) joint velocities [rad/s or m/s].
        qdd: (n_joints,) joint accelerations [rad/s^2 or m/s^2].
        relative_to: a frame of the body relative to which it moves; the root of its tree if
            omitted.
        expression: the point and the axes of the numbers; ``frame`` and ``relative_to`` if omitted.

    Raises:
        UnknownNameError: if a frame is unknown.
        SemanticError: if nothing says how a frame on the way moves.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    _, change = _motion(scene, frame, reference, expression, q, qd, qdd)
    return _in_axes(scene, frame, reference, expression, q, change)


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
    """Return the acceleration (6,) of a body whose linear part is that of the point fixed to the body.

    The arguments and errors are those of :func:`acceleration`.

    Args:
        scene: the scene.
        frame: a frame of the body that moves.
        q: (n_joints,) configuration [rad or m].
        qd: (n_joints,) joint velocities [rad/s or m/s].
        qdd: (n_joints,) joint accelerations [rad/s^2 or m/s^2].
        relative_to: a frame of the body relative to which it moves; the root of its tree if
            omitted.
        expression: the point and the axes of the numbers; ``frame`` and ``relative_to`` if omitted.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    velocity, change = _motion(scene, frame, reference, expression, q, qd, qdd)
    change = change + np.concatenate([np.cross(velocity[3:], velocity[:3]), np.zeros(3)])
    return _in_axes(scene, frame, reference, expression, q, change)


def _motion(
    scene: SceneGraph,
    frame: str,
    reference: str,
    expression: Expression | None,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
) -> tuple[Vector, Vector]:
    """Return the twist (6,) and the spatial acceleration (6,) of a body at a point, in the axes of its frame."""
    point = frame if expression is None or expression.at is None else expression.at
    speeds, rates = joint_values(scene, qd, "qd"), joint_values(scene, qdd, "qdd")
    velocity, change = np.zeros(6), np.zeros(6)
    at, hops = reference, list[tuple[str, str, bool]]()
    for step in (
        twists_between(scene, scene.body(reference), scene.body(frame))
        if scene.twist_frames
        else []
    ):
        hops += [(*edge, False) for edge in itertools.pairwise(scene.path(at, step[0]))] + [
            (*step, True)
        ]
        at = step[1]
    hops += [(*edge, False) for edge in itertools.pairwise(scene.path(at, frame))]
    for before, after, is_constant in hops:
        back = adjoint(scene.pose(before, relative_to=after, q=q))
        own, gain = (
            np.concatenate(
                twist(
                    scene,
                    after,
                    relative_to=before,
                    expression=Expression(axes=after),
                    q=q,
                    qd=rate,
                ).numbers
            )
            for rate in (speeds, rates)
        )
        velocity = back @ velocity + own
        change = back @ change + (0.0 if is_constant else gain) + _bracket(velocity, own)
    to_point = adjoint(Pose(-scene.pose(point, relative_to=frame, q=q).translation))
    return to_point @ velocity, to_point @ change


def _in_axes(
    scene: SceneGraph,
    frame: str,
    reference: str,
    expression: Expression | None,
    q: ArrayLike,
    change: Vector,
) -> Vector:
    """Return an acceleration (6,) in the axes of a frame, turned into those of the expression."""
    axes = reference if expression is None or expression.axes is None else expression.axes
    turn = scene.pose(frame, relative_to=axes, q=q)
    return np.concatenate([turn.rotate(change[:3]), turn.rotate(change[3:])])


def momentum(
    scene: SceneGraph, frame: str, *, q: ArrayLike, qd: ArrayLike, about: str | None = None
) -> tuple[Vector, float]:
    """Return the momentum (6,) and the kinetic energy (J) of all bodies at and below a frame, relative to the root.

    Linear momentum (kg m/s), then angular momentum (kg m^2/s). O(n depth) for n frames below.

    Args:
        scene: the scene; bodies without inertia count for nothing.
        frame: the topmost frame, such as the base of a robot.
        q: (n_joints,) configuration [rad or m].
        qd: (n_joints,) joint velocities [rad/s or m/s].
        about: the frame about whose origin the angular part is, and in whose axes both are; the
            root if omitted.

    Raises:
        UnknownNameError: if a frame is unknown.
        SemanticError: nothing says how a body moves.
    """
    root, qd = scene.root(frame), joint_values(scene, qd, "qd")
    firsts = {scene.body(name): name for name in reversed(scene.subtree(frame))}
    total, energy = np.zeros(6), 0.0
    for name in firsts.values():
        inertia = scene.inertia(name)
        if inertia is None:
            continue
        vector = np.concatenate(
            twist(
                scene, name, relative_to=root, expression=Expression(axes=name), q=q, qd=qd
            ).numbers
        )
        linear = inertia.mass * (vector[:3] + np.cross(vector[3:], inertia.center))
        own = np.concatenate(
            [linear, inertia.matrix @ vector[3:] + np.cross(inertia.center, linear)]
        )
        energy += 0.5 * float(own @ vector)
        total += (
            adjoint(scene.pose(root if about is None else about, relative_to=name, q=q)).T @ own
        )
    return total, energy


def _bracket(a: Vector, b: Vector) -> Vector:
    """Return the rate of change of one twist that moves with another: ad(a) b."""
    return np.concatenate([np.cross(a[3:], b[:3]) + np.cross(a[:3], b[3:]), np.cross(a[3:], b[3:])])
