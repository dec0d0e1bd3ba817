"""Forces that a scene answers: wrenches of sensors and payloads.

Wrenches are moved to another point and into other axes (Murray, Li, Sastry, "A mathematical
introduction to robotic manipulation", section 2.5). They are freed from the bias of a sensor and
the weight of what it carries. The bias of a force-torque sensor is an attribute of the sensor's
frame, so it is part of versions, files and arrays; like masses, the biases of frames that move as
one add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit import relations as rel
from tmkit._core import Kinematics, SceneGraph
from tmkit.errors import DisconnectedError, SceneError
from tmkit.graph.rigid import loose_edge, rigid_frames
from tmkit.graph.semantic_edges.queries import (
    UNKNOWN_MOTION_REPAIR,
    check_names,
    unknown_motion_text,
)
from tmkit.relations.violations import refusal
from tmkit.spatial.plain import plain_numbers

Vector = NDArray[np.float64]
BIAS = "wrench_bias"  # the attribute of a frame
_Six = TypeVar("_Six", rel.SemanticTwist, rel.SemanticWrench)


def set_wrench_bias(
    scene: SceneGraph, frame: str, bias: rel.SemanticWrench | rel.Representation | ArrayLike | None
) -> SceneGraph:
    """Return the scene in which the force-torque sensor at a frame has a bias: what it reads without any load.

    Args:
        scene: the scene.
        frame: the frame of the sensor.
        bias: (6,) force in N, then moment in N m, about the origin of the frame, in its axes; or a
            wrench that says about which point and in which axes it is. None: no bias.

    Raises:
        UnknownNameError: if a frame is unknown.
        SemanticError: not the numbers of one wrench, or a wrench on a body that does not move as
            one with the frame.
    """
    if bias is None:
        return scene.set_attributes(frame, scene.attributes(frame).discard(BIAS))
    vector = _vector(transport(scene, _reading(scene, frame, bias), point=frame, axes=frame))
    if vector.ndim != 1:
        raise refusal("set_wrench_bias", "it takes one wrench", f"a batch of {len(vector)}")
    return scene.set_attribute(frame, BIAS, vector.tolist())


def wrench_bias(scene: SceneGraph, frame: str) -> rel.SemanticWrench:
    """Return the sum of the biases of all that moves as one with a frame, about its origin and in its axes.

    O(r log n) for r such frames.

    Args:
        scene: the scene.
        frame: the frame.

    Raises:
        UnknownNameError: if a frame is unknown.
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

    It carries the bodies whose inertia is on the frame or below it, also beyond joints. O(n) for n
    frames.

    Args:
        scene: the scene, or a scene at a configuration.
        frame: the frame of the sensor.
        gravity: (3,) m/s^2 in the axes of the root, such as ``[0, 0, -9.81]``.
        q: (n_joints,) configuration; required if the scene has joints.

    Raises:
        UnknownNameError: if a frame is unknown.
        SceneError: gravity is not three finite numbers.
        ConfigurationError: if q is missing or has the wrong length.
    """
    at = scene if isinstance(scene, Kinematics) else scene.at(q)
    pull = plain_numbers(gravity, "gravity")
    if pull.shape != (3,) or not np.isfinite(pull).all():
        raise SceneError(
            f"gravity must be three finite numbers, not {np.array2string(pull, threshold=8)}"
        )
    return _reading(at.scene, frame, weight(at, frame, pull, masses(at, at.scene.subtree(frame))))


def wrench(
    scene: SceneGraph | Kinematics,
    frame: str,
    reading: rel.SemanticWrench | rel.Representation | ArrayLike,
    *,
    at: str | None = None,
    axes: str | None = None,
    gravity: ArrayLike | None = None,
    q: ArrayLike | None = None,
) -> rel.SemanticWrench:
    """Return the wrench behind the reading of a force-torque sensor: without its bias, and without what it carries.

    Inertial forces of the payload stay in it. O(r log n) for r frames rigidly joined to the sensor,
    with gravity O(n).

    Args:
        scene: the scene, or a scene at a configuration.
        frame: the frame of the sensor.
        reading: (6,) force in N, then moment in N m, about the origin of the frame, in its axes, or
            (N, 6) readings. A wrench has its own point and axes.
        at: the frame about whose origin the moment is wanted, which moves as one with the sensor;
            ``frame`` if omitted.
        axes: the frame of expression; ``frame`` if omitted.
        gravity: (3,) m/s^2 in the axes of the root, to take :func:`payload_wrench` off; it is not
            taken off if omitted.
        q: (n_joints,) configuration; needed for gravity if the scene has joints, and where one is
            on the way to axes.

    Raises:
        UnknownNameError: if a frame is unknown.
        SemanticError: not the numbers of a wrench, or frames that do not move as one.
        ConfigurationError: if q is missing or has the wrong length.
    """
    if isinstance(scene, Kinematics):
        q, scene = scene.q, scene.scene
    seen = transport(scene, _reading(scene, frame, reading), point=frame, axes=frame, q=q)
    off = _vector(wrench_bias(scene, frame))
    if gravity is not None:
        off = off + _vector(payload_wrench(scene, frame, gravity=gravity, q=q))
    left = rel.SemanticWrench(seen.coord, _vector(seen) - off, covariance=seen.covariance)
    return transport(
        scene, left, point=frame if at is None else at, axes=frame if axes is None else axes, q=q
    )


def transport(
    scene: SceneGraph,
    wrench: rel.SemanticWrench,
    *,
    point: str,
    axes: str | None = None,
    q: ArrayLike | None = None,
) -> rel.SemanticWrench:
    """Return a wrench about another point, in other axes, with its covariance.

    Args:
        scene: the scene, whose poses join the frames.
        wrench: the wrench, or a batch.
        point: frame about whose origin the moment is wanted, on the body that the wrench acts on,
            or on one that moves as one with it (:func:`tmkit.graph.is_rigid`): then the result is
            of that body.
        axes: frame of expression; that of the wrench by default.
        q: (n_joints,) configuration, where a joint is on the way to the axes.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: a frame is not on the body, the bodies do not move as one, or no poses lead
            there.
    """
    c, body = wrench.coord, scene.body(point)
    to = c.coord if axes is None else axes
    check_names(scene, c)
    check_names(scene, rel.WrenchCoord._of(point, body, c.ref_body, to))
    if body != c.body and (loose := loose_edge(scene, c.point, point)) is not None:
        rule = (
            f"body '{body}' of '{point}' moves as one with body '{c.body}', on which the wrench"
            " acts"
        )
        if scene.joint(loose).is_stated:
            raise refusal(f"transport({c!r})", rule, f"frame '{loose}' is not fixed to its parent")
        raise refusal(
            f"transport({c!r})",
            rule,
            unknown_motion_text(scene, loose),
            repair=UNKNOWN_MOTION_REPAIR,
        )
    made = (
        wrench
        if body == c.body
        else wrench._renamed(rel.WrenchCoord._of(c.point, body, c.ref_body, c.coord))
    )
    return convert_frame(scene, made, point=point, axes=to, q=q)


def convert_frame(
    scene: SceneGraph, relation: _Six, *, point: str, axes: str, q: ArrayLike | None
) -> _Six:
    """Return a twist or wrench at the origin of another frame of its body, in the axes of another, by exact poses."""
    made, c = relation, relation.coord
    try:
        if point != c.point:
            way = scene.pose(point, relative_to=c.point, q=q).translation
            way = (
                way
                if c.coord == c.point
                else scene.pose(c.point, relative_to=c.coord, q=q).rotate(way)
            )
            made = made.change_point(
                rel.SemanticPosition(
                    rel.PositionCoord._of(point, c.body, c.point, c.body, c.coord), way
                )
            )
        if axes != c.coord:
            turn = scene.pose(c.coord, relative_to=axes, q=q).rotation
            ends = rel.OrientationCoord._of(
                c.coord, scene.body(c.coord), axes, scene.body(axes), axes
            )
            made = made.change_coordinate_frame(rel.SemanticOrientation(ends, turn))
    except DisconnectedError as error:
        rule = (
            f"poses join '{c.point}' and '{c.coord}' to '{point}' and '{axes}', as converting it"
            " requires"
        )
        raise refusal(repr(c), rule, str(error)) from error
    return made


def masses(at: Kinematics, frames: Iterable[str]) -> dict[str, tuple[float, Vector]]:
    """Return mass and centre, in the root, of the bodies whose inertia is said on one of some frames."""
    found = {}
    for name in frames:
        inertia = at.scene.specification(name).inertia
        if inertia is not None:
            found[name] = (inertia.mass, at.pose(name).apply(inertia.center))
    return found


def weight(
    at: Kinematics, frame: str, gravity: Vector, masses: Mapping[str, tuple[float, Vector]]
) -> Vector:
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
