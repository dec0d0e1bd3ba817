"""Differential kinematics: joint velocities for a twist, within the limits of the joints.

The twist says what it is of: the point, the body that moves, that relative to which it moves, and
the axes. So does the Jacobian, and the one cannot be used with the other by mistake.

Limits: of all joint velocities whose motion has the direction of the twist, a linear program finds
those that are nearest to its magnitude and respect the limits. The direction is kept, so the tool
slows down on its path rather than leaving it; each limit holds exactly. Where several are left, as
of a redundant arm, the ones nearest to a given motion are taken, by a bounded least-squares
problem.

Invariants: functions of their arguments.
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

_NEAREST = 1e-7  # weight of the wanted motion of the joints against that of the tool
_WHOLE = 1.0 - 1e-7  # share of a twist that counts as all of it


@dataclass(frozen=True, eq=False)
class TwistJacobian:
    """How a twist depends on joint velocities.

    Attributes:
        coord: what it is the twist of, relative to what, at which point and in which axes.
        joints: names of the joints, by column.
        matrix: (6, n) m/s and rad/s per unit of joint velocity: linear rows first.
    """

    coord: TwistCoord
    joints: tuple[str, ...]
    matrix: NDArray[np.float64]

    def twist(self, qd: ArrayLike) -> SemanticTwist:
        """Return the twist that joint velocities give.

        Args:
            qd: (n,) velocities of ``joints``, rad/s or m/s.
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
        status: whether they give the twist, a share of it, or nothing of it.
        qd: (n_joints,) velocities of all joints of the scene; of those that may not move, zero.
        share: of the twist, between 0 and 1.
    """

    status: VelocityIkStatus
    qd: NDArray[np.float64]
    share: float


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
    """Return the Jacobian of the twist that :func:`tmkit.graph.twist` gives: that of the joints, not of twist edges.

    O(depth + n_joints).

    Args:
        scene: the scene.
        frame: a frame of the body that moves.
        q: (n_joints,) configuration, radians or metres.
        relative_to: a frame of the body relative to which it moves, such as the hand of another
            arm; the root of its tree if omitted.
        at: the frame at whose origin the linear velocity is; ``frame`` if omitted.
        axes: the frame of expression; ``relative_to`` if omitted.
        joints: the columns; all joints of the scene if omitted.

    Raises:
        UnknownNameError: no such frame or joint.
        DisconnectedError: the frames are in different trees.
        SemanticError: the motion of an edge between the frames is not stated.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    point, turned = frame if at is None else at, reference if axes is None else axes
    coord = TwistCoord._of(point, scene.body(frame), scene.body(reference), turned)
    for other in (reference, point):
        if scene.root(other) != scene.root(frame):
            raise DisconnectedError(
                f"no poses join '{other}' to '{frame}'", frame=frame, relative_to=other
            )
    require_stated_motion(scene, frame, reference, "twist_jacobian")
    state = scene.at(q)
    rows = [
        state.jacobian(on, point=state.pose(point, relative_to=on).translation, axes=turned)
        for on in (frame, reference)
    ]
    matrix = np.array(rows[0] - rows[1])
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
    near: ArrayLike | None = None,
) -> VelocityIkResult:
    """Return joint velocities that move a body by a twist, within the limits of the joints.

    Velocities respect the velocity limits of the scene and, with ``dt``, bring no joint beyond its
    range in that time. Where the limits do not allow the whole twist, it is slowed down and keeps
    its direction. Twist edges of the scene count: what moves by them is made up for.

    Args:
        scene: the scene.
        twist: the twist; its names are frames and bodies of the scene, its point is on one of them.
        q: (n_joints,) configuration, radians or metres.
        joints: the joints that may move; all if omitted.
        dt: seconds for which the velocities are held.
        near: (n_joints,) the motion to be near to where several give the twist, rad/s or m/s; none
            if omitted.

    Raises:
        UnknownNameError: a frame, body or joint that is not there.
        DisconnectedError: the bodies have no frames that poses join to the point.
        SemanticError: the motion of an edge between the bodies is not stated.
        ConfigurationError: a time that is not positive.
    """
    if dt is not None and not dt > 0.0:
        raise ConfigurationError(f"velocities are held for a positive time, not {dt} s")
    c = twist.coord
    frame, reference = (_frame_on(scene, body, c.point) for body in (c.body, c.ref_body))
    names = scene.joint_names if joints is None else tuple(joints)
    columns = _columns(scene, names)
    values, wish = (
        np.zeros(len(scene.joint_names)) if v is None else scene.configuration({}, base=v)
        for v in (q, near)
    )
    jacobian = twist_jacobian(
        scene, frame, q=values, relative_to=reference, at=c.point, axes=c.coord, joints=names
    ).matrix
    still = twist_of(
        scene,
        frame,
        relative_to=reference,
        expression=Expression(c.point, c.coord),
        q=values,
        qd=np.zeros_like(values),
    )
    wanted = np.concatenate(twist.numbers) - np.concatenate(still.numbers)
    low, high = _bounds(scene, values, columns, dt)
    share, qd = _scaled(jacobian, wanted, low, high, wish[columns])
    found = np.zeros(len(values))
    found[columns] = qd
    status = VelocityIkStatus.SOLVED if share >= _WHOLE else VelocityIkStatus.SLOWED
    return VelocityIkResult(
        status if share > 1.0 - _WHOLE else VelocityIkStatus.STOPPED, found, share
    )


def _scaled(
    jacobian: NDArray[np.float64],
    wanted: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    wish: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64]]:
    """Return the largest share of a twist that bounded velocities give, and those of them nearest to a wish."""
    from scipy.optimize import linprog, lsq_linear  # slow to import

    count, share = jacobian.shape[1], 1.0
    if (size := float(np.abs(wanted).max())) > 0.0:
        cost = np.append(np.zeros(count), -1.0)
        bounds = [*zip(low, high, strict=True), (0.0, 1.0)]
        solved = linprog(
            cost, A_eq=np.column_stack([jacobian, -wanted]) / size, b_eq=np.zeros(6), bounds=bounds
        )
        share = 0.0 if solved.x is None else float(solved.x[-1])
    stacked = np.vstack([jacobian, _NEAREST * np.eye(count)])
    target = np.concatenate([share * wanted, _NEAREST * wish])
    free = high > low
    qd = low.copy()
    if np.any(free):
        rest = target - stacked[:, ~free] @ qd[~free]
        qd[free] = lsq_linear(stacked[:, free], rest, (low[free], high[free]), "bvls", 1e-14).x
    return share, np.clip(qd, low, high)


def _bounds(
    scene: SceneGraph, q: NDArray[np.float64], columns: NDArray[np.intp], dt: float | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and largest velocity of each joint: standing still is always among them."""
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


def _frame_on(scene: SceneGraph, body: str, point: str) -> str:
    """Return a frame of a body in the tree of a point, the point itself if that is one."""
    if scene.body(point) == body:
        return point
    tree = scene.root(point)
    found = next((f for f in scene.frames_of_body(body) if scene.root(f) == tree), None)
    if found is None:
        raise DisconnectedError(
            f"no frame of body '{body}' is joined to '{point}' by poses", frame=point
        )
    return found
