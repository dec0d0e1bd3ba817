"""Integration of the twists of a scene over time, and twists between two versions.

Both functions operate on pose edges between two bodies. The twist of an edge is body-fixed. Its
motion over a time is therefore the exponential, and the twist between two poses is the logarithm
(De Laet et al., part 1, 2013). ``finite_difference(scene, integrate(scene, dt), dt)`` has the
twists of ``scene``. Errors are propagated source by source, to first order:
``docs/concepts/uncertainty.md`` has the formula.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import (
    EdgeNoise,
    Joint,
    SceneGraph,
    inverse_right_jacobian,
    path_noise,
    twist_noise,
)
from tmkit.errors import ConfigurationError, SceneError
from tmkit.graph.moments import Maps, move_edge, sum_errors, twists_between
from tmkit.graph.rigid import all_twist_driven_edges, joint_values
from tmkit.graph.semantic_edges.queries import UNKNOWN_MOTION_REPAIR, frame_on, unknown_motion_text
from tmkit.graph.semantic_edges.twists import uncertain_twist
from tmkit.relations import SemanticError, TwistCoord
from tmkit.relations.representation import nonzero_seconds, seconds
from tmkit.relations.violations import rule_error
from tmkit.spatial import Pose, adjoint

Array = NDArray[np.float64]


@overload
def integrate(scene: SceneGraph, dt: float) -> SceneGraph: ...
@overload
def integrate(
    scene: SceneGraph, dt: float, *, q: ArrayLike, qd: ArrayLike
) -> tuple[SceneGraph, Array]: ...
def integrate(
    scene: SceneGraph, dt: float, *, q: ArrayLike | None = None, qd: ArrayLike | None = None
) -> SceneGraph | tuple[SceneGraph, Array]:
    """Return the scene after a time of constant twists and constant joint velocities.

    Each pose edge between two bodies moves by the relative twist that twist edges state. A frame on
    a fixed or free edge without a twist moves with its parent. If a twist edge drives a joint, the
    twist gives the joint's velocity; other joints have their velocities in ``qd``. If several
    twists drive an edge, each is constant in its own frame. O(k t depth) for k driven edges and t
    twist edges.

    The covariances of the twists are added to those of the poses. Correlations are preserved:
    between edges moved by one twist, and between a twist and the moved poses.
    ``integrate(a).integrate(b)`` has the covariance of ``integrate(a + b)``. With q and qd, the new
    (n_joints,) configuration is returned too, without joint limits.

    Args:
        scene: the scene.
        dt: duration [s]; may be negative.
        q: (n_joints,) configuration. Without it joints do not move, since the configuration is not
            part of a scene.
        qd: (n_joints,) joint velocities [rad/s or m/s]; required with q.

    Raises:
        SemanticError: if poses do not join the bodies of a twist, or the twist of an edge between
            them is unknown. Also if a driven joint cannot move by the twist, or the motion of an
            edge is not stated.
        ConfigurationError: if a joint is on the path and q is omitted, only one of q and qd is
            passed, or one has the wrong length.
    """
    dt = seconds(dt)
    if (q is None) != (qd is None):
        raise ConfigurationError("integrate takes both q and qd, or neither")
    q_start = None if q is None else joint_values(scene, q, "q")
    velocities = None if qd is None else np.array(joint_values(scene, qd, "qd"))
    driven_edges = all_twist_driven_edges(scene)
    _require_stated_edges(scene, driven_edges)

    # Move each driven edge by its twist, and compute the velocities of driven joints.
    moved_edges: list[tuple[str, Pose, EdgeNoise | Maps | None]] = []
    errors: dict[str, SemanticError] = {}
    for frame, body, reference in _edges_between_bodies(
        scene, sorted(driven_edges, key=scene.frame_id)
    ):
        coord = TwistCoord._of(frame, body, reference, frame)
        try:
            twist, twist_error = uncertain_twist(scene, coord, q=q_start, qd=velocities)
        except SemanticError as error:
            errors[frame] = error
            continue
        joint = scene.joint(frame)
        if velocities is not None and joint.type not in ("fixed", "free"):
            if joint.mimic is None:
                index = scene.joint_names.index(joint.name)
                velocities[index] = _joint_velocity(joint, twist, frame)
            continue
        if twist_error is None and not twist.any():
            continue
        pose = scene.pose(frame, relative_to=_parent(scene, frame))
        pose, noise = move_edge(pose, scene.noise(frame), twist, twist_error, dt, frame=frame)
        moved_edges.append((frame, pose, noise))
    _require_known_twists(scene, errors)

    # Apply the motion.
    q_end = None
    if q_start is not None and velocities is not None:
        q_end = joint_values(scene, q_start + velocities * dt, "q")
    with scene.edit() as edit:
        for frame, pose, noise in moved_edges:
            result = _move_by_several_twists(scene, frame, dt, q_start, q_end)
            if result is not None:
                pose, noise = result
            edit.set_pose(frame, pose)
            edit.set_noise(frame, noise)
    version = edit.finish() if moved_edges else scene
    return version if q_end is None else (version, q_end)


class _UncertainPath:
    """Product of poses along a path, with the sum of their errors in the axes of its end."""

    def __init__(self) -> None:
        self.pose = Pose()
        self.error = Maps()

    def append(self, step: Pose, noise: EdgeNoise | Maps | None) -> None:
        """Append a pose with its noise."""
        self.pose = self.pose @ step
        self.error = sum_errors((adjoint(step.inverse()), self.error), (np.eye(6), noise))

    def append_path(self, scene: SceneGraph, start: str, end: str, q: Array | None) -> None:
        """Append the pose between two frames of a scene."""
        noise = path_noise(scene, end, relative_to=start, q=q)
        self.append(scene.pose(end, relative_to=start, q=q), noise)


def _move_by_several_twists(
    scene: SceneGraph, frame: str, dt: float, q_start: Array | None, q_end: Array | None
) -> tuple[Pose, Maps | None] | None:
    """Return pose and noise of an edge moved by several twist edges; None for a single twist."""
    parent = _parent(scene, frame)
    edge = scene.twist_edge(frame)
    if edge is not None and edge[0] == scene.body(parent):
        return None
    steps = twists_between(scene, scene.body(parent), scene.body(frame))
    if len(steps) == 1 and q_end is None:
        return None
    path, current = _UncertainPath(), parent
    for start, end in steps:
        edge = scene.twist_edge(end)
        is_forward = edge is not None and edge[0] == scene.body(start)
        head, tail = (end, start) if is_forward else (start, end)
        twist_edge = scene.twist_edge(head)
        assert twist_edge is not None, "one of the two frames has a twist edge"
        path.append_path(scene, current, start, q_end)
        pose = scene.pose(head, relative_to=tail, q=q_start)
        noise = path_noise(scene, head, relative_to=tail, q=q_start)
        twist, twist_error = np.asarray(twist_edge[1]), twist_noise(scene, head)
        step, step_noise = move_edge(pose, noise, twist, twist_error, dt, frame=head)
        if is_forward:
            path.append(step, step_noise)
        else:
            path.append(step.inverse(), sum_errors((-adjoint(step), step_noise)))
        current = end
    path.append_path(scene, current, frame, q_end)
    return path.pose, path.error or None


def _joint_velocity(joint: Joint, twist: Array, frame: str) -> float:
    """Return the velocity of a joint from the twist (6,) of its child, or raise SemanticError."""
    axis = np.array(joint.axis)
    unit = np.concatenate([axis, np.zeros(3)] if joint.type == "prismatic" else [np.zeros(3), axis])
    velocity = float(unit @ twist)
    tolerance = 1e-9 * (1.0 + float(np.abs(twist).max()))
    if not np.allclose(twist, velocity * unit, rtol=0.0, atol=tolerance):
        rule = f"the twist of frame '{frame}' is one of its joint '{joint.name}'"
        raise rule_error("integrate", rule, f"it is {twist.round(9).tolist()}")
    return velocity


def _require_stated_edges(scene: Any, driven_edges: set[str]) -> None:
    """Raise SemanticError if an edge has no stated motion and no twist edge drives it."""
    for edge in scene._unstated_edges():
        if edge not in driven_edges:
            rule = "the motion of every edge is stated"
            raise rule_error(
                "integrate", rule, unknown_motion_text(scene, edge), repair=UNKNOWN_MOTION_REPAIR
            )


def _require_known_twists(scene: SceneGraph, errors: dict[str, SemanticError]) -> None:
    """Raise SemanticError if a twist cannot be applied to the pose edges between its bodies.

    Args:
        scene: the scene.
        errors: error of each edge with an unknown twist.
    """
    for frame in scene.twist_frames:
        edge = scene.twist_edge(frame)
        assert edge is not None, "it is among the frames with twists"
        frames = [frame, *scene.ancestors(frame)]
        reference = frame_on(scene, edge[0], frames[-1])
        if reference is None:
            rule = f"poses join frame '{frame}' to body '{edge[0]}', as its twist requires"
            raise rule_error("integrate", rule, "no frame of that body is in its tree")
        reference_frames = [reference, *scene.ancestors(reference)]
        path = [f for f in frames if f not in reference_frames]
        path += [f for f in reference_frames if f not in frames]
        for step in path:
            if step in errors:
                raise errors[step]


def finite_difference(
    earlier: SceneGraph, later: SceneGraph, dt: float, *, frames: Iterable[str] | None = None
) -> SceneGraph:
    """Return the later of two versions with the constant twists of the motion between them.

    Each of the frames gets a twist edge, which is zero for an unmoved frame. The error of a twist
    follows from the errors of both poses. An error common to both poses cancels.

    Args:
        earlier: the earlier version.
        later: the version ``dt`` later. Every frame turned by less than half a turn.
        dt: duration [s]; not zero.
        frames: frames whose twists relative to the bodies of their parents are computed. Defaults
            to the frames that moved or have such a twist.

    Raises:
        UnknownNameError: if a frame is not in both versions.
        SceneError: if a frame is a root, has another parent than before, is on the body of its
            parent, or has a joint. Also if the rules of twist edges forbid the twist, as for a
            frame with a twist relative to another body.
        SemanticError: if dt is zero.
    """
    dt = nonzero_seconds(dt)
    names = _moving_frames(earlier, later) if frames is None else list(frames)
    with later.edit() as edit:
        for frame in names:
            _require_same_edge(earlier, later, frame)
            old_pose, new_pose = earlier.local_pose(frame), later.local_pose(frame)
            motion = np.zeros(6)
            if old_pose != new_pose:
                motion = np.array((old_pose.inverse() @ new_pose).log())
            edit.set_twist(frame, motion / dt, relative_to_body=later.body(_parent(later, frame)))
            jacobian = inverse_right_jacobian(motion) / dt
            noise = sum_errors(
                (jacobian, later.noise(frame)),
                (-jacobian @ adjoint(Pose.exp(-motion)), earlier.noise(frame)),
            )
            edit.set_twist_noise(frame, noise)
    return edit.finish()


def _moving_frames(earlier: SceneGraph, later: SceneGraph) -> list[str]:
    """Return the frames between two bodies that moved or have a twist relative to their parent."""
    frames = []
    for frame, _, reference in _edges_between_bodies(later, later.frame_names):
        if frame not in earlier or later.joint(frame).type not in ("fixed", "free"):
            continue
        edge = later.twist_edge(frame)
        has_twist = edge is not None and edge[0] == reference
        if has_twist or earlier.local_pose(frame) != later.local_pose(frame):
            frames.append(frame)
    return frames


def _require_same_edge(earlier: SceneGraph, later: SceneGraph, frame: str) -> None:
    """Raise SceneError if a frame has another parent than before, no parent, or a joint."""
    parent = later.parent(frame)
    if parent is None:
        raise SceneError(
            f"frame '{frame}' is a root, so it has no twist relative to a parent", frame=frame
        )
    if earlier.parent(frame) != parent:
        message = (
            f"frame '{frame}' has parent '{parent}', and had parent '{earlier.parent(frame)}'"
            " before, so no single twist leads from one pose to the other"
        )
        raise SceneError(message, frame=frame)
    joint = later.joint(frame)
    if joint.type not in ("fixed", "free"):
        raise SceneError(
            f"frame '{frame}' moves by joint '{joint.name}', whose velocity gives its twist",
            frame=frame,
        )


def _edges_between_bodies(scene: SceneGraph, frames: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return (frame, body, parent's body) of the edges above frames that join two bodies."""
    edges = [
        (f, scene.body(f), scene.body(p)) for f in frames if (p := scene.parent(f)) is not None
    ]
    return [edge for edge in edges if edge[1] != edge[2]]


def _parent(scene: SceneGraph, frame: str) -> str:
    parent = scene.parent(frame)
    if parent is None:
        raise SceneError(f"frame '{frame}' is a root", frame=frame)
    return parent
