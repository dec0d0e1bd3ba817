"""Motions and forces that a scene answers: twists, accelerations and momenta, wrenches of sensors and payloads.

Twists follow from twist edges and joints, with their errors. For an acceleration the way from one frame to another is
walked edge by edge: each adds its motion to what the frames before it do (Featherstone, *Rigid Body Dynamics
Algorithms*, 2008, chapter 5). The twist of a joint is constant in the axes of either of its frames, and so is that of a
twist edge.

Wrenches are moved to another point and into other axes (Murray, Li, Sastry, "A mathematical introduction to robotic
manipulation", section 2.5), and freed from the bias of a sensor and the weight of what it carries. The bias of a
force-torque sensor is an attribute of the sensor's frame, so it is part of versions, files and arrays; like masses, the
biases of frames that move as one add up.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit import relations as rel
from tmkit._core import EdgeNoise, Kinematics, SceneArrays, SceneGraph
from tmkit.errors import DisconnectedError, SceneError
from tmkit.graph.moments import twists_between
from tmkit.graph.rigid import joint_values, loose_edge, rigid_frames
from tmkit.graph.semantic_edges.queries import check_names, explain, moment_of, unjoined
from tmkit.relations import SemanticTwist, TwistCoord, TwistVector
from tmkit.relations.semantic.operations import Form, form_of
from tmkit.relations.violations import SemanticError, Violation
from tmkit.spatial import GaussianTwist, Pose, adjoint
from tmkit.spatial.plain import plain_numbers

Vector = NDArray[np.float64]


def gaussian_twist(
    scene: SceneGraph, coord: TwistCoord, *, q: ArrayLike | None = None, qd: ArrayLike | None = None,
    stamp: float | None = None, policy: str = "interpolated", extrapolate: float = 0.0,
) -> GaussianTwist:  # fmt: skip
    """Return a twist that holds in a scene and its uncertainty. O(t) for t twist edges, and a pose for each on the way.

    The errors of the twist edges on the way are moved to the point and into the axes that are asked for, and added up:
    those from different sources as squares, those from one source before they are squared. Where a twist edge stands at
    another frame than the point, or in other axes, the poses between count as well, with their own errors; so the
    covariance is all of what is not known of the six numbers, to first order; zero where no error is on the way.

    Args:
        scene: the scene.
        coord: what is asked for, as for :func:`relate`.
        q: (n_joints,) configuration; needed where a joint is on the way of a pose.
        qd: (n_joints,) joint velocities, exact; as for :func:`relate`.
        stamp: as for :func:`relate`; differences of stamped poses are exact.
        policy, extrapolate: likewise.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body named; nothing says how the one moves; no coordinates of a twist.
        ConfigurationError: a joint is on the way and q is missing.
    """
    if not isinstance(coord, TwistCoord):
        what = " ".join(repr(coord).split())[:80]
        repair = "such as TwistCoord('g|C', 'D', '[g]')"
        raise SemanticError.of("gaussian_twist", [Violation("it takes coordinates of a twist", what, repair=repair)])
    if stamp is not None:
        scene, q, qd = moment_of(scene, coord, stamp, q=q, qd=qd, policy=policy, extrapolate=extrapolate)
    vector, error = uncertain_twist(scene, coord, q=q, qd=qd)
    return GaussianTwist(vector, None if error is None else error.covariance)


def uncertain_twist(
    scene: SceneGraph, coord: TwistCoord, *, q: ArrayLike | None = None, qd: ArrayLike | None = None
) -> tuple[Vector, EdgeNoise | None]:
    """Return a twist (6,) [linear, angular] and its noise, None if exact; errors as :func:`gaussian_twist`."""
    typed_apart: Any = scene
    try:
        found = typed_apart._uncertain_twist(coord.point, coord.body, coord.ref_body, coord.coord, q, qd)
    except DisconnectedError as error:
        raise unjoined(scene, coord, error) from error
    vector, noise = (explain(scene, coord, qd), None) if found is None else found
    return vector, noise


def twist(
    scene: SceneGraph | Kinematics | SceneArrays, frame: str, *, relative_to: str | None = None, at: str | None = None,
    axes: str | None = None, q: ArrayLike | None = None, qd: ArrayLike | None = None, stamp: float | None = None,
    policy: str = "interpolated", extrapolate: float = 0.0,
) -> SemanticTwist:  # fmt: skip
    """Return how a frame moves relative to another, with its semantics; the bodies are those of the frames.

    Twist edges, moving joints and fixed edges count together, along the one way between the two bodies. O(depth), and
    O(t depth) with t twist edges. The linear velocity is in m/s, the angular one in rad/s.

    Args:
        scene: the scene; or a scene at a configuration, ``scene.at(q, qd)``, which has q and qd of its own; or its
            arrays, for the writer, whose configuration is q if that is omitted and which take no stamp.
        frame: a frame of the body that moves.
        relative_to: a frame of the body relative to which it moves; the root of its tree if omitted.
        at: the frame at whose origin the linear velocity of the moving body is; ``frame`` if omitted.
        axes: the frame in whose axes the numbers are; ``relative_to`` if omitted.
        q: (n_joints,) configuration; needed where a joint is on the way.
        qd: (n_joints,) joint velocities, rad/s or m/s; without them joints and free edges say nothing of motion.
        stamp, policy, extrapolate: as for :func:`relate`.

    Raises:
        UnknownNameError: no such frame.
        SemanticError: no poses lead to a frame, or nothing says how the one moves relative to the other.
        ConfigurationError: a joint is on the way and q is missing.
        StampError: the stamp lies outside of what is known.
        SceneError: the arrays say nothing of how the one moves relative to the other, or are asked at a stamp.
    """
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
        scene, q, qd = moment_of(scene, ends, stamp, q=q, qd=qd, policy=policy, extrapolate=extrapolate, also=at)
    core: Any = scene
    try:
        vector, body, ref_body = core._twist_of_frames(frame, relative_to, at, axes, q, qd)
    except DisconnectedError as error:
        raise unjoined(scene, _ends(scene, frame, relative_to, axes), error) from error
    if vector is None:
        explain(scene, _ends(scene, frame, relative_to, axes), qd)
    if axes is None:
        axes = scene.root(frame) if relative_to is None else relative_to
    return SemanticTwist._formed(_form(frame if at is None else at, body, ref_body, axes), vector)


def _ends(scene: SceneGraph, frame: str, relative_to: str | None, axes: str | None) -> TwistCoord:
    reference = scene.root(frame) if relative_to is None else relative_to
    return TwistCoord._of(frame, scene.body(frame), scene.body(reference), reference if axes is None else axes)


@functools.lru_cache(maxsize=4096)
def _form(point: str, body: str, ref_body: str, axes: str) -> Form:
    return form_of(TwistCoord._of(point, body, ref_body, axes), TwistVector, None, False)


def acceleration(
    scene: SceneGraph, frame: str, *, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, relative_to: str | None = None,
    at: str | None = None, axes: str | None = None, is_classical: bool = False,
) -> Vector:  # fmt: skip
    """Return the acceleration (6,) of a frame's body relative to another body: linear (m/s^2), then angular (rad/s^2).

    The names are those of :func:`tmkit.graph.twist`. Twist edges are constant. O((1 + t) depth), t twist edges.

    Args:
        scene: the scene.
        frame: a frame of the body that moves.
        q: (n_joints,) configuration, radians or metres.
        qd: (n_joints,) velocities.
        qdd: (n_joints,) accelerations.
        relative_to: a frame of the body relative to which it moves; the root of its tree if omitted.
        at: the frame at whose origin the linear part is; ``frame`` if omitted.
        axes: the frame of expression; ``relative_to`` if omitted.
        is_classical: whether the linear part is that of the point that is fixed to the body. By default the
            acceleration is spatial: how the velocity at the place where the point is changes.

    Raises:
        UnknownNameError: no such frame.
        SemanticError: nothing says how a frame on the way moves.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    point, turned = frame if at is None else at, reference if axes is None else axes
    speeds, rates = joint_values(scene, qd, "qd"), joint_values(scene, qdd, "qdd")
    velocity, change = np.zeros(6), np.zeros(6)
    at, hops = reference, list[tuple[str, str, bool]]()
    for step in twists_between(scene, scene.body(reference), scene.body(frame)) if scene.twist_frames else []:
        hops += [(*edge, False) for edge in itertools.pairwise(scene.path(at, step[0]))] + [(*step, True)]
        at = step[1]
    hops += [(*edge, False) for edge in itertools.pairwise(scene.path(at, frame))]
    for before, after, is_constant in hops:
        back = adjoint(scene.pose(before, relative_to=after, q=q))
        own, gain = (
            np.concatenate(twist(scene, after, relative_to=before, axes=after, q=q, qd=rate).numbers)
            for rate in (speeds, rates)
        )
        velocity = back @ velocity + own
        change = back @ change + (0.0 if is_constant else gain) + _bracket(velocity, own)
    to_point = adjoint(Pose(-scene.pose(point, relative_to=frame, q=q).translation))
    velocity, change = to_point @ velocity, to_point @ change
    if is_classical:
        change = change + np.concatenate([np.cross(velocity[3:], velocity[:3]), np.zeros(3)])
    turn = scene.pose(frame, relative_to=turned, q=q)
    return np.concatenate([turn.rotate(change[:3]), turn.rotate(change[3:])])


def momentum(
    scene: SceneGraph, frame: str, *, q: ArrayLike, qd: ArrayLike, about: str | None = None
) -> tuple[Vector, float]:
    """Return the momentum (6,) and the kinetic energy (J) of all bodies at and below a frame, relative to the root.

    Linear momentum (kg m/s), then angular momentum (kg m^2/s). O(n depth) for n frames below.

    Args:
        scene: the scene; bodies without inertia count for nothing.
        frame: the topmost frame, such as the base of a robot.
        q: (n_joints,) configuration, radians or metres.
        qd: (n_joints,) velocities.
        about: the frame about whose origin the angular part is, and in whose axes both are; the root if omitted.

    Raises:
        UnknownNameError: no such frame.
        SemanticError: nothing says how a body moves.
    """
    root, qd = scene.root(frame), joint_values(scene, qd, "qd")
    firsts = {scene.body(name): name for name in reversed(scene.subtree(frame))}
    total, energy = np.zeros(6), 0.0
    for name in firsts.values():
        inertia = scene.inertia(name)
        if inertia is None:
            continue
        vector = np.concatenate(twist(scene, name, relative_to=root, axes=name, q=q, qd=qd).numbers)
        linear = inertia.mass * (vector[:3] + np.cross(vector[3:], inertia.center))
        own = np.concatenate([linear, inertia.matrix @ vector[3:] + np.cross(inertia.center, linear)])
        energy += 0.5 * float(own @ vector)
        total += adjoint(scene.pose(root if about is None else about, relative_to=name, q=q)).T @ own
    return total, energy


def _bracket(a: Vector, b: Vector) -> Vector:
    """Return the rate of change of one twist that moves with another: ad(a) b."""
    return np.concatenate([np.cross(a[3:], b[:3]) + np.cross(a[:3], b[3:]), np.cross(a[3:], b[3:])])


BIAS = "wrench_bias"  # the attribute of a frame
_Six = TypeVar("_Six", rel.SemanticTwist, rel.SemanticWrench)


def set_wrench_bias(
    scene: SceneGraph, frame: str, bias: rel.SemanticWrench | rel.Representation | ArrayLike | None
) -> SceneGraph:
    """Return the scene in which the force-torque sensor at a frame has a bias: what it reads without any load.

    Args:
        scene: the scene.
        frame: the frame of the sensor.
        bias: (6,) force in N, then moment in N m, about the origin of the frame, in its axes; or a wrench that says
            about which point and in which axes it is. None: no bias.

    Raises:
        UnknownNameError: no such frame.
        SemanticError: not the numbers of one wrench, or a wrench on a body that does not move as one with the frame.
    """
    if bias is None:
        return scene.set_attributes(frame, scene.attributes(frame).discard(BIAS))
    vector = _vector(transport(scene, _reading(scene, frame, bias), point=frame, axes=frame))
    if vector.ndim != 1:
        raise SemanticError.of("set_wrench_bias", [Violation("it takes one wrench", f"a batch of {len(vector)}")])
    return scene.set_attribute(frame, BIAS, vector.tolist())


def wrench_bias(scene: SceneGraph, frame: str) -> rel.SemanticWrench:
    """Return the sum of the biases of all that moves as one with a frame, about its origin and in its axes.

    O(r log n) for r such frames.

    Args:
        scene: the scene.
        frame: the frame.

    Raises:
        UnknownNameError: no such frame.
    """
    total = np.zeros(6)
    for name in rigid_frames(scene, frame):
        if (bias := scene.attributes(name).get(BIAS)) is not None:
            own = _reading(scene, name, list(bias))
            total += _vector(transport(scene, own, point=frame, axes=frame))
    return _reading(scene, frame, total)


def payload_wrench(
    scene: SceneGraph | Kinematics, frame: str, *, gravity: ArrayLike, q: ArrayLike | None = None
) -> rel.SemanticWrench:
    """Return the weight of what a sensor carries, about the origin of its frame and in its axes.

    It carries the bodies whose inertia is on the frame or below it, also beyond joints. O(n) for n frames.

    Args:
        scene: the scene, or a scene at a configuration.
        frame: the frame of the sensor.
        gravity: (3,) m/s^2 in the axes of the root, such as ``[0, 0, -9.81]``.
        q: (n_joints,) configuration; needed if the scene has joints.

    Raises:
        UnknownNameError: no such frame.
        SceneError: gravity is not three finite numbers.
        ConfigurationError: q is missing or does not fit.
    """
    at = scene if isinstance(scene, Kinematics) else scene.at(q)
    pull = plain_numbers(gravity, "gravity")
    if pull.shape != (3,) or not np.isfinite(pull).all():
        raise SceneError(f"gravity must be three finite numbers, not {np.array2string(pull, threshold=8)}")
    return _reading(at.scene, frame, weight(at, frame, pull, masses(at, at.scene.subtree(frame))))


def wrench(
    scene: SceneGraph | Kinematics, frame: str, reading: rel.SemanticWrench | rel.Representation | ArrayLike, *,
    at: str | None = None, axes: str | None = None, gravity: ArrayLike | None = None, q: ArrayLike | None = None,
) -> rel.SemanticWrench:  # fmt: skip
    """Return the wrench behind the reading of a force-torque sensor: without its bias, and without what it carries.

    Inertial forces of the payload stay in it. O(r log n) for r frames rigidly joined to the sensor, with gravity O(n).

    Args:
        scene: the scene, or a scene at a configuration.
        frame: the frame of the sensor.
        reading: (6,) force in N, then moment in N m, about the origin of the frame, in its axes, or (N, 6) readings; or
            a wrench that says about which point and in which axes it is.
        at: the frame about whose origin the moment is wanted, which moves as one with the sensor; ``frame`` if omitted.
        axes: the frame of expression; ``frame`` if omitted.
        gravity: (3,) m/s^2 in the axes of the root, to take :func:`payload_wrench` off; it is not taken off if omitted.
        q: (n_joints,) configuration; needed for gravity if the scene has joints, and where one is on the way to axes.

    Raises:
        UnknownNameError: no such frame.
        SemanticError: not the numbers of a wrench, or frames that do not move as one.
        ConfigurationError: q is missing or does not fit.
    """
    if isinstance(scene, Kinematics):
        q, scene = scene.q, scene.scene
    seen = transport(scene, _reading(scene, frame, reading), point=frame, axes=frame, q=q)
    off = _vector(wrench_bias(scene, frame))
    if gravity is not None:
        off = off + _vector(payload_wrench(scene, frame, gravity=gravity, q=q))
    left = rel.SemanticWrench(seen.coord, _vector(seen) - off, covariance=seen.covariance)
    return transport(scene, left, point=frame if at is None else at, axes=frame if axes is None else axes, q=q)


def transport(
    scene: SceneGraph, wrench: rel.SemanticWrench, *, point: str, axes: str | None = None, q: ArrayLike | None = None
) -> rel.SemanticWrench:
    """Return a wrench about another point, in other axes, with its covariance.

    Args:
        scene: the scene, whose poses join the frames.
        wrench: the wrench, or a batch.
        point: frame about whose origin the moment is wanted, on the body that the wrench acts on, or on one that moves
            as one with it (:func:`tmkit.graph.is_rigid`): then the result is of that body.
        axes: frame of expression; that of the wrench by default.
        q: (n_joints,) configuration, where a joint is on the way to the axes.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body, the bodies do not move as one, or no poses lead there.
    """
    c, body = wrench.coord, scene.body(point)
    to = c.coord if axes is None else axes
    check_names(scene, c)
    check_names(scene, rel.WrenchCoord._of(point, body, c.ref_body, to))
    if body != c.body and (loose := loose_edge(scene, c.point, point)) is not None:
        rule = f"body '{body}' of '{point}' moves as one with body '{c.body}', on which the wrench acts"
        raise SemanticError.of(f"transport({c!r})", [Violation(rule, f"frame '{loose}' is not fixed to its parent")])
    made = wrench if body == c.body else wrench._renamed(rel.WrenchCoord._of(c.point, body, c.ref_body, c.coord))
    return brought(scene, made, point=point, axes=to, q=q)


def brought(scene: SceneGraph, relation: _Six, *, point: str, axes: str, q: ArrayLike | None) -> _Six:
    """Return a twist or wrench at the origin of another frame of its body, in the axes of another, by exact poses."""
    made, c = relation, relation.coord
    try:
        if point != c.point:
            way = scene.pose(point, relative_to=c.point, q=q).translation
            way = way if c.coord == c.point else scene.pose(c.point, relative_to=c.coord, q=q).rotate(way)
            made = made.change_point(
                rel.SemanticPosition(rel.PositionCoord._of(point, c.body, c.point, c.body, c.coord), way)
            )
        if axes != c.coord:
            turn = scene.pose(c.coord, relative_to=axes, q=q).rotation
            ends = rel.OrientationCoord._of(c.coord, scene.body(c.coord), axes, scene.body(axes), axes)
            made = made.change_coordinate_frame(rel.SemanticOrientation(ends, turn))
    except DisconnectedError as refusal:
        rule = f"poses join '{c.point}' and '{c.coord}' to '{point}' and '{axes}', as converting it requires"
        raise SemanticError.of(repr(c), [Violation(rule, str(refusal))]) from refusal
    return made


def masses(at: Kinematics, frames: Iterable[str]) -> dict[str, tuple[float, Vector]]:
    """Return mass and centre, in the root, of the bodies whose inertia is said on one of some frames."""
    found = {}
    for name in frames:
        inertia = at.scene.specification(name).inertia
        if inertia is not None:
            found[name] = (inertia.mass, at.pose(name).apply(inertia.center))
    return found


def weight(at: Kinematics, frame: str, gravity: Vector, masses: Mapping[str, tuple[float, Vector]]) -> Vector:
    """Return the wrench (6,) of gravity on the masses at a frame and below, at its origin and in its axes."""
    here, force, torque = at.pose(frame), np.zeros(3), np.zeros(3)
    for name in at.scene.subtree(frame):
        if name in masses:
            mass, center = masses[name]
            pull = mass * gravity
            force, torque = force + pull, torque + np.cross(center - here.translation, pull)
    return np.concatenate([here.rotation.T @ force, here.rotation.T @ torque])


def _reading(
    scene: SceneGraph, frame: str, numbers: rel.SemanticWrench | rel.Representation | ArrayLike
) -> rel.SemanticWrench:
    if isinstance(numbers, rel.SemanticWrench):
        return numbers
    return rel.SemanticWrench(
        rel.WrenchCoord._of(frame, scene.body(frame), scene.body(scene.root(frame)), frame), numbers
    )


def _vector(wrench: rel.SemanticWrench) -> Vector:
    return np.concatenate(wrench.numbers, axis=-1)
