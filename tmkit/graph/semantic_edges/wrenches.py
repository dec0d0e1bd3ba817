"""Wrenches of force-torque sensors and payloads.

Wrenches are transported to another point and into other axes (Murray, Li, Sastry, "A mathematical
introduction to robotic manipulation", section 2.5). The bias of the sensor and the weight of its
payload are subtracted. The bias of a force-torque sensor is an attribute of the sensor's frame, so
versions, files and arrays include it. Like masses, the biases of a rigid group are added.
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
from tmkit.relations.violations import rule_error
from tmkit.spatial.plain import plain_numbers

Vector = NDArray[np.float64]

BIAS = "wrench_bias"
"""Attribute of a frame that stores the bias of its sensor."""

_SixVector = TypeVar("_SixVector", rel.SemanticTwist, rel.SemanticWrench)


def set_wrench_bias(
    scene: SceneGraph, frame: str, bias: rel.SemanticWrench | rel.Representation | ArrayLike | None
) -> SceneGraph:
    """Return the scene with the bias of a force-torque sensor: its reading without a load.

    Args:
        scene: the scene.
        frame: the frame of the sensor.
        bias: (6,) force [N] and moment [N m] about the origin of the frame, in its axes; or a
            wrench with its own point and axes. None removes the bias.

    Raises:
        UnknownNameError: if a frame is unknown.
        SemanticError: if the numbers are not those of one wrench, or the body of the wrench is not
            in the rigid group of the frame.
    """
    if bias is None:
        return scene.set_attributes(frame, scene.attributes(frame).discard(BIAS))
    vector = _vector(transport(scene, _reading(scene, frame, bias), point=frame, axes=frame))
    if vector.ndim != 1:
        raise rule_error("set_wrench_bias", "it takes one wrench", f"a batch of {len(vector)}")
    return scene.set_attribute(frame, BIAS, vector.tolist())


def wrench_bias(scene: SceneGraph, frame: str) -> rel.SemanticWrench:
    """Return the sum of the biases of a frame's rigid group, about its origin and in its axes.

    O(r log n) for r frames of the group.

    Args:
        scene: the scene.
        frame: the frame.

    Raises:
        UnknownNameError: if a frame is unknown.
    """
    total = np.zeros(6)
    for name in rigid_frames(scene, frame):
        if (bias := scene.attributes(name).get(BIAS)) is not None:
            local_bias = _reading(scene, name, list(bias))
            total += _vector(transport(scene, local_bias, point=frame, axes=frame))
    return _reading(scene, frame, total)


def payload_wrench(
    scene: SceneGraph | Kinematics, frame: str, *, gravity: ArrayLike, q: ArrayLike | None = None
) -> rel.SemanticWrench:
    """Return the weight of a sensor's payload, about the origin of its frame and in its axes.

    The payload is all bodies with an inertia on the frame or below it, also beyond joints. O(n) for
    n frames.

    Args:
        scene: the scene, or a scene at a configuration.
        frame: the frame of the sensor.
        gravity: (3,) gravity in the axes of the root, such as ``[0, 0, -9.81]`` [m/s^2].
        q: (n_joints,) configuration; required if the scene has joints.

    Raises:
        UnknownNameError: if a frame is unknown.
        SceneError: if gravity is not three finite numbers.
        ConfigurationError: if q is missing or has the wrong length.
    """
    kinematics = scene if isinstance(scene, Kinematics) else scene.at(q)
    vector = plain_numbers(gravity, "gravity", "m/s^2")
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise SceneError(
            f"gravity must be three finite numbers, not {np.array2string(vector, threshold=8)}"
        )
    scene = kinematics.scene
    payload = masses(kinematics, scene.subtree(frame))
    return _reading(scene, frame, weight(kinematics, frame, vector, payload))


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
    """Return the external wrench from the reading of a force-torque sensor.

    The bias is subtracted, and with ``gravity`` the weight of the payload. Inertial forces of the
    payload remain. O(r log n) for r frames of the sensor's rigid group; with gravity O(n).

    Args:
        scene: the scene, or a scene at a configuration.
        frame: the frame of the sensor.
        reading: (6,) force [N] and moment [N m] about the origin of the frame, in its axes; or
            (N, 6) readings. A wrench has its own point and axes.
        at: frame of the sensor's rigid group whose origin is the point of the moment; ``frame`` if
            omitted.
        axes: the frame of expression; ``frame`` if omitted.
        gravity: (3,) gravity in the axes of the root [m/s^2], for :func:`payload_wrench`. If
            omitted, the weight of the payload is not subtracted.
        q: (n_joints,) configuration; required for gravity if the scene has joints, and if a joint
            is on the path to ``axes``.

    Raises:
        UnknownNameError: if a frame is unknown.
        SemanticError: if the numbers are not those of a wrench, or the frames are not in one rigid
            group.
        ConfigurationError: if q is missing or has the wrong length.
    """
    if isinstance(scene, Kinematics):
        q, scene = scene.q, scene.scene
    total = transport(scene, _reading(scene, frame, reading), point=frame, axes=frame, q=q)
    offset = _vector(wrench_bias(scene, frame))
    if gravity is not None:
        offset = offset + _vector(payload_wrench(scene, frame, gravity=gravity, q=q))
    net = rel.SemanticWrench(total.coord, _vector(total) - offset, covariance=total.covariance)
    point, to_axes = frame if at is None else at, frame if axes is None else axes
    return transport(scene, net, point=point, axes=to_axes, q=q)


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
        point: frame about whose origin the moment is, on the body of the wrench, or on a body that
            is rigidly joined to it (:func:`tmkit.graph.is_rigid`). The result acts on that body.
        axes: frame of expression; that of the wrench by default.
        q: (n_joints,) configuration; required if a joint is on the path to ``axes``.

    Raises:
        UnknownNameError: if a frame or body is unknown.
        SemanticError: if a frame is not on the body, the bodies are not rigidly joined, or no path
            of poses exists.
    """
    c, body = wrench.coord, scene.body(point)
    to_axes = c.coord if axes is None else axes
    check_names(scene, c)
    check_names(scene, rel.WrenchCoord._of(point, body, c.ref_body, to_axes))
    if body == c.body:
        return convert_frame(scene, wrench, point=point, axes=to_axes, q=q)
    edge = loose_edge(scene, c.point, point)
    if edge is not None:
        rule = (
            f"body '{body}' of '{point}' is rigidly joined to body '{c.body}', on which the wrench"
            " acts"
        )
        if scene.joint(edge).is_stated:
            raise rule_error(
                f"transport({c!r})", rule, f"frame '{edge}' is not fixed to its parent"
            )
        cause = unknown_motion_text(scene, edge)
        raise rule_error(f"transport({c!r})", rule, cause, repair=UNKNOWN_MOTION_REPAIR)
    on_body = wrench._with_coord(rel.WrenchCoord._of(c.point, body, c.ref_body, c.coord))
    return convert_frame(scene, on_body, point=point, axes=to_axes, q=q)


def convert_frame(
    scene: SceneGraph, relation: _SixVector, *, point: str, axes: str, q: ArrayLike | None
) -> _SixVector:
    """Return a twist or wrench at another point of its body and in other axes, by exact poses."""
    result, c = relation, relation.coord
    try:
        if point != c.point:
            offset = scene.pose(point, relative_to=c.point, q=q).translation
            if c.coord != c.point:
                offset = scene.pose(c.point, relative_to=c.coord, q=q).rotate(offset)
            position = rel.PositionCoord._of(point, c.body, c.point, c.body, c.coord)
            result = result.change_point(rel.SemanticPosition(position, offset))
        if axes != c.coord:
            rotation = scene.pose(c.coord, relative_to=axes, q=q).rotation
            bodies = scene.body(c.coord), scene.body(axes)
            orientation = rel.OrientationCoord._of(c.coord, bodies[0], axes, bodies[1], axes)
            result = result.change_coordinate_frame(rel.SemanticOrientation(orientation, rotation))
    except DisconnectedError as error:
        rule = (
            f"poses join '{c.point}' and '{c.coord}' to '{point}' and '{axes}', as converting it"
            " requires"
        )
        raise rule_error(repr(c), rule, str(error)) from error
    return result


def masses(kinematics: Kinematics, frames: Iterable[str]) -> dict[str, tuple[float, Vector]]:
    """Return mass [kg] and center (3,) in the root's axes [m] of each frame with an inertia."""
    result = {}
    for name in frames:
        inertia = kinematics.scene.specification(name).inertia
        if inertia is not None:
            result[name] = (inertia.mass, kinematics.pose(name).apply(inertia.center))
    return result


def weight(
    kinematics: Kinematics, frame: str, gravity: Vector, masses: Mapping[str, tuple[float, Vector]]
) -> Vector:
    """Return the wrench (6,) of gravity on the masses at and below a frame, at its origin.

    Args:
        kinematics: the scene at a configuration.
        frame: the frame, in whose axes the wrench is.
        gravity: (3,) gravity in the axes of the root [m/s^2].
        masses: mass and center by frame, as of :func:`masses`.
    """
    pose, force, torque = kinematics.pose(frame), np.zeros(3), np.zeros(3)
    for name in kinematics.scene.subtree(frame):
        if name in masses:
            mass, center = masses[name]
            mass_force = mass * gravity
            force = force + mass_force
            torque = torque + np.cross(center - pose.translation, mass_force)
    return np.concatenate([pose.rotation.T @ force, pose.rotation.T @ torque])


def _reading(
    scene: SceneGraph, frame: str, numbers: rel.SemanticWrench | rel.Representation | ArrayLike
) -> rel.SemanticWrench:
    """Return the numbers as a wrench at a frame and in its axes; a wrench is returned unchanged."""
    if isinstance(numbers, rel.SemanticWrench):
        return numbers
    body, ref_body = scene.body(frame), scene.body(scene.root(frame))
    return rel.SemanticWrench(rel.WrenchCoord._of(frame, body, ref_body, frame), numbers)


def _vector(wrench: rel.SemanticWrench) -> Vector:
    """Return (6,) or (N, 6) numbers of a wrench: force, then moment."""
    return np.concatenate(wrench.numbers, axis=-1)
