"""The twists that a scene answers: of twist edges with their errors, of moving joints, at another point, in other axes.

A wrench is brought to another point like a twist, with force and moment in the places of angular and linear velocity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import EdgeNoise, SceneGraph
from tmkit.errors import DisconnectedError
from tmkit.graph.semantic_edges.names import check_names, explain, frames_on, is_on_reference, unjoined
from tmkit.relations import SemanticError, SemanticWrench, TwistCoord, Violation, WrenchCoord, WrenchVector
from tmkit.spatial import GaussianTwist

Vector = NDArray[np.float64]


def gaussian_twist(
    scene: SceneGraph, coord: TwistCoord, *, q: ArrayLike | None = None, qd: ArrayLike | None = None
) -> GaussianTwist:
    """Return a twist that holds in a scene and its uncertainty. O(t) for t twist edges, and a pose for each on the way.

    The errors of the twist edges on the way are moved to the point and into the axes that are asked for, and added up:
    those from different sources as squares, those from one source before they are squared. Where a twist edge stands
    at another frame than the point, or in other axes, the poses between count as well, with their own errors; so the
    covariance is all of what is not known of the six numbers, to first order.

    Args:
        scene: the scene.
        coord: what is asked for, as for :func:`relate`.
        q: (n_joints,) configuration; needed where a joint is on the way of a pose.
        qd: (n_joints,) joint velocities, exact; as for :func:`relate`.

    Returns:
        The linear velocity of the point and the angular velocity, in the axes of the frame of expression; exact (a
        covariance of zero) where no error is on the way.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on the body named; nothing says how the one moves relative to the other;
            or no coordinates of a twist.
        ConfigurationError: a joint is on the way and q is missing.
    """
    if not isinstance(coord, TwistCoord):
        what = " ".join(repr(coord).split())[:80]
        repair = "such as TwistCoord('g|C', 'D', '[g]')"
        raise SemanticError.of("gaussian_twist", [Violation("it takes coordinates of a twist", what, repair=repair)])
    vector, error = uncertain_twist(scene, coord, q=q, qd=qd)
    return GaussianTwist(vector, None if error is None else error.covariance)


def uncertain_twist(
    scene: SceneGraph, coord: TwistCoord, *, q: ArrayLike | None = None, qd: ArrayLike | None = None
) -> tuple[Vector, EdgeNoise | None]:
    """Return a twist (6,) [linear, angular] and its noise, None if it is exact.

    Args:
        scene: the scene.
        coord: coordinates of the twist.
        q, qd: (n_joints,) configuration and velocities, as for :func:`gaussian_twist`.

    Raises:
        UnknownNameError, SemanticError, ConfigurationError: as :func:`gaussian_twist`.
    """
    typed_apart: Any = scene
    try:
        found = typed_apart._uncertain_twist(coord.point, coord.body, coord.ref_body, coord.coord, q, qd)
    except DisconnectedError as error:
        raise unjoined(scene, coord, error) from error
    vector, noise = (explain(scene, coord, qd), None) if found is None else found
    return vector, noise


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
    scene: SceneGraph, numbers: tuple[Vector, ...], *, point: str, axes: str, to_point: str, to_axes: str,
    q: ArrayLike | None,
) -> tuple[Vector, Vector]:  # fmt: skip
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
        rule = f"poses join '{point}' and '{axes}' to '{to_point}' and '{to_axes}', as converting a twist requires"
        raise SemanticError.of("twist", [Violation(rule, str(error))]) from error
    return v, w


def brought_covariance(
    scene: SceneGraph, covariance: Vector, *, point: str, axes: str, to_point: str, to_axes: str, q: ArrayLike | None
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
