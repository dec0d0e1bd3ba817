"""Scenes in time: what a scene becomes when its twists act for a while, and the twists that lead from one to another.

Both go by pose edges between two bodies. The twist of an edge is body-fixed. So its motion over a
time is the exponential, and the twist of two poses the logarithm (De Laet et al., part 1, 2013).
``finite_difference(scene, integrate(scene, dt), dt)`` has the twists of ``scene``. Errors go along,
source by source and to first order: ``docs/concepts/uncertainty.md`` has the formula.
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
from tmkit.graph.semantic_edges.queries import UNKNOWN_MOTION_REPAIR, frame_on, unknown_motion
from tmkit.graph.semantic_edges.twists import uncertain_twist
from tmkit.relations import SemanticError, TwistCoord
from tmkit.relations.representation import elapsed, seconds
from tmkit.relations.violations import refusal
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
    """Return the scene after a time in which every body moves by its twist, constantly, and joints at their speed.

    Each edge of poses between two bodies moves by the twist of the one relative to the other, where
    twist edges tell it. A frame on a fixed or free edge without a twist goes along with its parent.
    Where a twist edge leads over a joint, the joint moves as the twist says; other joints move as
    ``qd`` says. Of an edge that several of these move, each acts by itself: twists stay constant in
    their own frames. O(k t depth) for k such edges and t twist edges.

    The covariances of the poses grow by those of the twists, and all correlations stay: of edges
    that one twist moves, and of the twist with what it has moved. ``integrate(a).integrate(b)`` has
    the covariance of ``integrate(a + b)``. Where q and qd are passed, the configuration (n_joints,)
    is returned as well; limits of joints are not applied.

    Args:
        scene: the scene.
        dt: seconds; may be negative.
        q: (n_joints,) configuration. Without it joints stay where they are: the configuration is
            not part of a scene.
        qd: (n_joints,) joint velocities, rad/s or m/s; passed with q.

    Raises:
        SemanticError: a twist cannot act, as poses do not join its bodies or the twist of an edge
            between is not known. Also if the joint in its way cannot have it, or the motion of an
            edge is not stated.
        ConfigurationError: a joint is in the way and q is omitted; only one of q and qd is passed;
            or a wrong length.
    """
    dt = seconds(dt)
    if (q is None) != (qd is None):
        raise ConfigurationError("integrate takes both q and qd, or neither")
    after = None if q is None else joint_values(scene, q, "q")
    rates = None if qd is None else np.array(joint_values(scene, qd, "qd"))
    told = all_twist_driven_edges(scene)
    _require_stated_edges(scene, told)
    moved: list[tuple[str, Pose, EdgeNoise | Maps | None]] = []
    unknown: dict[str, SemanticError] = {}
    for frame, body, reference in _edges_between_bodies(scene, sorted(told, key=scene.frame_id)):
        coord = TwistCoord._of(frame, body, reference, frame)
        try:
            twist, error = uncertain_twist(scene, coord, q=after, qd=rates)
        except SemanticError as refusal:
            unknown[frame] = refusal
            continue
        joint = scene.joint(frame)
        if rates is not None and joint.type not in ("fixed", "free"):
            if joint.mimic is None:
                rates[scene.joint_names.index(joint.name)] = _joint_velocity(joint, twist, frame)
            continue
        if error is None and not twist.any():
            continue
        pose = scene.pose(frame, relative_to=_parent(scene, frame))
        moved.append((frame, *move_edge(pose, scene.noise(frame), twist, error, dt, frame=frame)))
    _require_all_acted(scene, unknown)
    then = None if after is None or rates is None else joint_values(scene, after + rates * dt, "q")
    with scene.edit() as edit:
        for frame, pose, noise in moved:
            if (several := _moved_by_several(scene, frame, dt, after, then)) is not None:
                pose, noise = several
            edit.set_pose(frame, pose)
            edit.set_noise(frame, noise)
    made = edit.finish() if moved else scene
    return made if then is None else (made, then)


def _moved_by_several(
    scene: SceneGraph, frame: str, dt: float, q: Array | None, then: Array | None
) -> tuple[Pose, Maps | None] | None:
    """Return pose and noise of an edge after a time in which all twist edges on its way act; None if one alone does."""
    at = parent = _parent(scene, frame)
    edge = scene.twist_edge(frame)
    if edge is not None and edge[0] == scene.body(parent):
        return None
    steps = twists_between(scene, scene.body(parent), scene.body(frame))
    if len(steps) == 1 and then is None:
        return None
    pose, error = Pose(), Maps()

    def go(own: Pose, noise: EdgeNoise | Maps | None) -> None:
        nonlocal pose, error
        pose, error = pose @ own, sum_errors((adjoint(own.inverse()), error), (np.eye(6), noise))

    for before, behind in steps:
        edge = scene.twist_edge(behind)
        is_head = edge is not None and edge[0] == scene.body(before)
        head, other = (behind, before) if is_head else (before, behind)
        told = scene.twist_edge(head)
        assert told is not None, "one of the two has it"
        go(
            scene.pose(before, relative_to=at, q=then),
            path_noise(scene, before, relative_to=at, q=then),
        )
        now = (
            scene.pose(head, relative_to=other, q=q),
            path_noise(scene, head, relative_to=other, q=q),
        )
        step, noise = move_edge(*now, np.asarray(told[1]), twist_noise(scene, head), dt, frame=head)
        go(*((step, noise) if is_head else (step.inverse(), sum_errors((-adjoint(step), noise)))))
        at = behind
    go(scene.pose(frame, relative_to=at, q=then), path_noise(scene, frame, relative_to=at, q=then))
    return pose, error or None


def _joint_velocity(joint: Joint, twist: Array, frame: str) -> float:
    """Return the velocity of a joint whose child moves by a twist, in its axes and origin, or raise SemanticError."""
    axis = np.array(joint.axis)
    unit = np.concatenate([axis, np.zeros(3)] if joint.type == "prismatic" else [np.zeros(3), axis])
    velocity = float(unit @ twist)
    if not np.allclose(
        twist, velocity * unit, rtol=0.0, atol=1e-9 * (1.0 + float(np.abs(twist).max()))
    ):
        rule = f"the twist of frame '{frame}' is one of its joint '{joint.name}'"
        raise refusal("integrate", rule, f"it is {twist.round(9).tolist()}")
    return velocity


def _require_stated_edges(scene: Any, told: set[str]) -> None:
    """Refuse edges over which no twist edge leads and whose motion is not stated."""
    for edge in scene._unstated_edges():
        if edge not in told:
            rule = "the motion of every edge is stated"
            raise refusal(
                "integrate", rule, unknown_motion(scene, edge), repair=UNKNOWN_MOTION_REPAIR
            )


def _require_all_acted(scene: SceneGraph, unknown: dict[str, SemanticError]) -> None:
    """Refuse a twist that no edge of poses can show: one on the way between its bodies does not move."""
    for frame in scene.twist_frames:
        edge = scene.twist_edge(frame)
        assert edge is not None, "it is among the frames with twists"
        above = [frame, *scene.ancestors(frame)]
        other = frame_on(scene, edge[0], above[-1])
        if other is None:
            rule = f"poses join frame '{frame}' to body '{edge[0]}', as its twist requires"
            raise refusal("integrate", rule, "no frame of that body is in its tree")
        below = [other, *scene.ancestors(other)]
        for between in [f for f in above if f not in below] + [f for f in below if f not in above]:
            if between in unknown:
                raise unknown[between]


def finite_difference(
    earlier: SceneGraph, later: SceneGraph, dt: float, *, frames: Iterable[str] | None = None
) -> SceneGraph:
    """Return the later of two versions with the constant twists that led there from the earlier one.

    Each of the frames has a twist edge; of one that did not move it is zero. Its error is what the
    errors of both poses make of it: an error that is the same before and after the frame moved is
    none of the way that it went.

    Args:
        earlier: the scene as it was.
        later: the scene ``dt`` seconds later. No frame turned by half a turn or more.
        dt: seconds, not zero.
        frames: whose twists relative to their parents' bodies are computed; by default with such a
            twist, or moved.

    Raises:
        UnknownNameError: a frame is not in both versions.
        SceneError: a frame is a child of something else than before, is a root, sits on the body
            that it is a child of, or has a joint. Also if the rules of twist edges forbid it, as
            where it has one relative to another body.
        SemanticError: no time went by.
    """
    dt = elapsed(dt)
    chosen = _that_moved(earlier, later) if frames is None else list(frames)
    with later.edit() as edit:
        for frame in chosen:
            _require_same_edge(earlier, later, frame)
            before, after = earlier.local_pose(frame), later.local_pose(frame)
            motion = np.zeros(6) if before == after else np.array((before.inverse() @ after).log())
            edit.set_twist(frame, motion / dt, relative_to_body=later.body(_parent(later, frame)))
            back = inverse_right_jacobian(motion) / dt
            noise = sum_errors(
                (back, later.noise(frame)),
                (-back @ adjoint(Pose.exp(-motion)), earlier.noise(frame)),
            )
            edit.set_twist_noise(frame, noise)
    return edit.finish()


def _that_moved(earlier: SceneGraph, later: SceneGraph) -> list[str]:
    chosen = []
    for frame, _, reference in _edges_between_bodies(later, later.frame_names):
        if frame not in earlier or later.joint(frame).type not in ("fixed", "free"):
            continue
        edge = later.twist_edge(frame)
        has_twist = edge is not None and edge[0] == reference
        if has_twist or earlier.local_pose(frame) != later.local_pose(frame):
            chosen.append(frame)
    return chosen


def _require_same_edge(earlier: SceneGraph, later: SceneGraph, frame: str) -> None:
    parent = later.parent(frame)
    if parent is None:
        raise SceneError(
            f"frame '{frame}' is a root: it moves relative to nothing that is known", frame=frame
        )
    if earlier.parent(frame) != parent:
        message = (
            f"frame '{frame}' has parent '{parent}', and had parent '{earlier.parent(frame)}'"
            " before"
        )
        raise SceneError(f"{message}: there is no one twist between", frame=frame)
    joint = later.joint(frame)
    if joint.type not in ("fixed", "free"):
        raise SceneError(
            f"frame '{frame}' moves by joint '{joint.name}', whose velocity gives its twist",
            frame=frame,
        )


def _edges_between_bodies(scene: SceneGraph, frames: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return frame, body and parent's body of the edges above some frames that are between two bodies."""
    edges = [
        (f, scene.body(f), scene.body(p)) for f in frames if (p := scene.parent(f)) is not None
    ]
    return [edge for edge in edges if edge[1] != edge[2]]


def _parent(scene: SceneGraph, frame: str) -> str:
    parent = scene.parent(frame)
    if parent is None:
        raise SceneError(f"frame '{frame}' is a root", frame=frame)
    return parent
