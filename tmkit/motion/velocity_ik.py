"""Differential kinematics: joint velocities for a twist, within the limits of the joints.

The coordinates of the twist define its point, its body, the reference body and the axes. Those of
the Jacobian are equal, so a twist and a Jacobian in different coordinates cannot be combined.

A linear program maximizes the fraction of the twist over all joint velocities within the limits.
The direction of the twist is kept, so the tool slows down instead of leaving its path. A redundant
arm has several solutions. A bounded least-squares problem selects the one nearest to given nominal
velocities.

Invariants: all results depend only on the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import SceneGraph
from tmkit._support.results import Result
from tmkit.errors import ConfigurationError, DisconnectedError, UnknownNameError
from tmkit.graph import Expression, twist as twist_of
from tmkit.graph.semantic_edges.queries import require_stated_motion
from tmkit.relations import SemanticTwist, TwistCoord
from tmkit.spatial.plain import plain_numbers

_NOMINAL_WEIGHT = 1e-7
"""Weight of the nominal joint velocities relative to the twist."""

_MIN_TWIST = 1e-200
"""Size of a twist up to which it is zero: a smaller one cannot be normalised [m/s, rad/s]."""

_FULL_FRACTION = 1.0 - 1e-7
"""Fraction of a twist that counts as the full twist."""


@dataclass(frozen=True, eq=False)
class TwistJacobian:
    """Jacobian of a twist by joint velocities.

    Attributes:
        coord: coordinates of the twist: body, reference body, point and axes.
        joints: names of the joints, by column.
        matrix: (6, n) linear rows [m/s], then angular rows [rad/s], per unit of joint velocity.
    """

    coord: TwistCoord
    joints: tuple[str, ...]
    matrix: NDArray[np.float64]

    def twist(self, qd: ArrayLike) -> SemanticTwist:
        """Return the twist of joint velocities.

        Args:
            qd: (n,) velocities of ``joints`` [rad/s or m/s].
        """
        return SemanticTwist(self.coord, self.matrix @ plain_numbers(qd, "qd"))


class VelocityIkStatus(StrEnum):
    """Outcome of differential kinematics."""

    SOLVED = "solved"
    SLOWED = "slowed down by limits"
    STOPPED = "stopped by limits"


@dataclass(frozen=True, eq=False)
class VelocityIkResult(Result):
    """Joint velocities for a twist.

    Attributes:
        status: whether they achieve the full twist, a fraction of it, or none of it.
        qd: (n_joints,) velocities of all joints of the scene, 0 for those that must not move.
        fraction: achieved fraction of the twist, between 0 and 1.
    """

    status: VelocityIkStatus
    qd: NDArray[np.float64]
    fraction: float


def twist_jacobian(
    scene: SceneGraph,
    frame: str,
    *,
    q: ArrayLike,
    relative_to: str | None = None,
    at: str | None = None,
    axes: str | None = None,
    joints: Sequence[str] | None = None,
) -> TwistJacobian:
    """Return the Jacobian of the twist that :func:`tmkit.graph.twist` returns.

    Twist edges are ignored. O(depth + n_joints).

    Args:
        scene: the scene.
        frame: a frame of the moving body.
        q: (n_joints,) configuration [rad or m].
        relative_to: a frame of the reference body, such as the hand of another arm. Defaults to the
            root of the tree of ``frame``.
        at: frame whose origin is the point of the linear velocity. Defaults to ``frame``.
        axes: frame of expression. Defaults to ``relative_to``.
        joints: joints of the columns. Defaults to all joints of the scene.

    Raises:
        UnknownNameError: if a frame or joint does not exist.
        DisconnectedError: if the frames are in different trees.
        SemanticError: if the motion of an edge between the frames is unknown.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    origin, expression = frame if at is None else at, reference if axes is None else axes
    coord = TwistCoord._of(origin, scene.body(frame), scene.body(reference), expression)
    for other in (reference, origin):
        if scene.root(other) != scene.root(frame):
            raise DisconnectedError(
                f"no poses join '{other}' to '{frame}'", frame=frame, relative_to=other
            )
    require_stated_motion(scene, frame, reference, "twist_jacobian")
    state = scene.at(q)
    frame_matrix, reference_matrix = (
        state.jacobian(
            name, point=state.pose(origin, relative_to=name).translation, axes=expression
        )
        for name in (frame, reference)
    )
    matrix = np.array(frame_matrix - reference_matrix)
    if joints is not None:
        matrix = matrix[:, _columns(scene, joints)]
    return TwistJacobian(coord, scene.joint_names if joints is None else tuple(joints), matrix)


def velocity_ik(
    scene: SceneGraph,
    twist: SemanticTwist,
    *,
    q: ArrayLike,
    joints: Sequence[str] | None = None,
    dt: float | None = None,
    nominal_qd: ArrayLike | None = None,
) -> VelocityIkResult:
    """Return joint velocities that move a body by a twist, within the limits of the joints.

    Velocities respect the velocity limits of the scene. With ``dt``, no joint exceeds its range in
    that time. If the limits do not allow the full twist, it is scaled down. The joints compensate
    for the motion of twist edges of the scene.

    Args:
        scene: the scene.
        twist: the twist, in coordinates of frames and bodies of the scene.
        q: (n_joints,) configuration [rad or m].
        joints: joints that may move. Defaults to all.
        dt: time for which the velocities are constant [s].
        nominal_qd: (n_joints,) preferred velocities among several solutions [rad/s or m/s].
            Defaults to 0.

    Raises:
        UnknownNameError: if a frame, body or joint does not exist.
        DisconnectedError: if no poses connect the bodies to the point.
        SemanticError: if the motion of an edge between the bodies is unknown.
        ConfigurationError: if ``dt`` is not positive.
    """
    if dt is not None and not dt > 0.0:
        raise ConfigurationError(f"velocities are held for a positive time, not {dt} s")
    coord = twist.coord
    bodies = (coord.body, coord.ref_body)
    frame, reference = (_frame_of_body(scene, body, coord.point) for body in bodies)
    names = scene.joint_names if joints is None else tuple(joints)
    columns = _columns(scene, names)
    values = scene.configuration({}, base=q)
    nominal = np.zeros(len(scene.joint_names))
    if nominal_qd is not None:
        nominal = scene.configuration({}, base=nominal_qd)
    jacobian = twist_jacobian(
        scene,
        frame,
        q=values,
        relative_to=reference,
        at=coord.point,
        axes=coord.coord,
        joints=names,
    ).matrix
    twist_at_rest = twist_of(
        scene,
        frame,
        relative_to=reference,
        expression=Expression(coord.point, coord.coord),
        q=values,
        qd=np.zeros_like(values),
    )
    target = np.concatenate(twist.numbers) - np.concatenate(twist_at_rest.numbers)
    low, high = _bounds(scene, values, columns, dt)
    fraction, velocities = _solve(jacobian, target, low, high, nominal[columns])
    qd = np.zeros(len(values))
    qd[columns] = velocities
    status = VelocityIkStatus.SLOWED
    if fraction >= _FULL_FRACTION:
        status = VelocityIkStatus.SOLVED
    if not fraction > 1.0 - _FULL_FRACTION:
        status = VelocityIkStatus.STOPPED
    return VelocityIkResult(status, qd, fraction)


def _solve(
    jacobian: NDArray[np.float64],
    target: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    nominal: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64]]:
    """Return the largest achievable fraction of a twist, and velocities that achieve it.

    Args:
        jacobian: (6, n) Jacobian.
        target: (6,) twist.
        low: (n,) smallest velocities.
        high: (n,) largest velocities.
        nominal: (n,) preferred velocities.
    """
    from scipy.optimize import linprog, lsq_linear  # slow to import

    count, fraction = jacobian.shape[1], 1.0
    if (size := float(np.abs(target).max())) > _MIN_TWIST:
        cost = np.append(np.zeros(count), -1.0)
        bounds = [*zip(low, high, strict=True), (0.0, 1.0)]
        equations = np.column_stack([jacobian, -target]) / size
        solution = linprog(cost, A_eq=equations, b_eq=np.zeros(6), bounds=bounds)
        fraction = 0.0 if solution.x is None else float(solution.x[-1])
    rows = np.vstack([jacobian, _NOMINAL_WEIGHT * np.eye(count)])
    values = np.concatenate([fraction * target, _NOMINAL_WEIGHT * nominal])
    is_free = high > low
    qd = low.copy()
    if np.any(is_free):
        values = values - rows[:, ~is_free] @ qd[~is_free]
        limits = (low[is_free], high[is_free])
        qd[is_free] = lsq_linear(rows[:, is_free], values, limits, "bvls", 1e-14).x
    return fraction, np.clip(qd, low, high)


def _bounds(
    scene: SceneGraph, q: NDArray[np.float64], columns: NDArray[np.intp], dt: float | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the smallest and largest velocity of each joint; 0 is always allowed."""
    limits = scene.velocity_limits[columns]
    high = np.where(limits > 0.0, limits, np.inf)
    low = -high
    if dt is not None:
        lower, upper = scene.joint_limits[columns].T
        low = np.minimum(np.maximum(low, (lower - q[columns]) / dt), 0.0)
        high = np.maximum(np.minimum(high, (upper - q[columns]) / dt), 0.0)
    return low, high


def _columns(scene: SceneGraph, joints: Sequence[str]) -> NDArray[np.intp]:
    names = scene.joint_names
    missing = next((joint for joint in joints if joint not in names), None)
    if missing is not None:
        raise UnknownNameError.of("joint", missing, names)
    return np.array([names.index(joint) for joint in joints], dtype=np.intp)


def _frame_of_body(scene: SceneGraph, body: str, point: str) -> str:
    """Return a frame of a body in the tree of a point, if possible the point itself."""
    if scene.body(point) == body:
        return point
    tree = scene.root(point)
    frame = next((name for name in scene.frames_of_body(body) if scene.root(name) == tree), None)
    if frame is None:
        raise DisconnectedError(
            f"no frame of body '{body}' is joined to '{point}' by poses", frame=point
        )
    return frame
