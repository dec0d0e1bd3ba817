"""Scenes in time: what a scene becomes when its twists act for a while, and the twists that lead from one to another.

Both go by pose edges between two bodies. The twist of an edge is body-fixed, so its motion over a time is the
exponential, and the twist of two poses the logarithm (De Laet et al., part 1, 2013): ``finite_difference(scene,
integrate(scene, dt), dt)`` has the twists of ``scene``.

Errors go along, source by source and to first order. The edge of poses T with the error xi and the twist V with the
error d comes to stand at ``T exp(V dt)`` with the error

    xi' = Ad(exp(-V dt)) xi + Jr(V dt) dt d

in the tangent of its frame. The error of a twist is the same for as long as the twist holds, so two steps of the same
sources are one step of both times, and what is learned of where a body came to says how it moves (``scene.condition``).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tmkit._core import EdgeNoise, NoiseSource, SceneGraph
from tmkit.errors import NumberOverflowError, SceneError
from tmkit.graph.semantic_edges.names import frame_on
from tmkit.graph.semantic_edges.twist_queries import uncertain_twist
from tmkit.relations import SemanticError, TwistCoord, Violation
from tmkit.relations.representation import elapsed, seconds
from tmkit.spatial import Pose, adjoint, inverse_right_jacobian, right_jacobian

Array = NDArray[np.float64]
Maps = dict[NoiseSource, Array]


def integrate(scene: SceneGraph, dt: float) -> SceneGraph:
    """Return the scene after a time in which every body moves by its twist, constantly.

    Each edge of poses between two bodies moves by the twist of the one relative to the other, where twist edges tell
    it. What has no twist relative to its parent goes along with that. Joints stay where they are: the configuration is
    not part of a scene. O(n) where there are twists.

    The covariances of the poses grow by those of the twists, and all correlations stay: of edges that one twist moves,
    and of the twist with what it has moved. ``integrate(a).integrate(b)`` has the covariance of ``integrate(a + b)``.

    Args:
        scene: the scene.
        dt: seconds; may be negative.

    Raises:
        SemanticError: a twist cannot act, as poses do not join its bodies or the twist of an edge between is not known.
        ConfigurationError: a joint is in the way of a pose.
    """
    dt = seconds(dt)
    moving = {scene.body(frame) for frame in scene.twist_frames}
    if not moving:
        return scene
    moved: list[tuple[str, Pose, EdgeNoise | Maps | None]] = []
    unknown: dict[str, SemanticError] = {}
    for frame, body, reference in _edges_between_bodies(scene, moving):
        coord = TwistCoord._of(frame, body, reference, frame)
        try:
            twist, error = uncertain_twist(scene, coord)
        except SemanticError as refusal:
            unknown[frame] = refusal
            continue
        if error is None and not twist.any():
            continue
        with np.errstate(over="ignore"):
            motion = twist * dt
        if not np.isfinite(motion).all():
            raise NumberOverflowError(
                f"the motion of '{frame}' in {dt:g} s is beyond the range of floating-point numbers"
            )
        pose = scene.pose(frame, relative_to=_parent(scene, frame)) @ Pose.exp(motion)
        noise: EdgeNoise | Maps | None = scene.noise(frame)
        if error is not None or (noise is not None and motion.any()):
            back = adjoint(Pose.exp(-motion))
            noise = _summed((back, scene.noise(frame)), (dt * right_jacobian(motion), error))
        moved.append((frame, pose, noise))
    _require_all_acted(scene, unknown)
    with scene.edit() as edit:
        for frame, pose, noise in moved:
            edit.set_pose(frame, pose)
            edit.set_noise(frame, noise)
    return edit.finish()


def _summed(*parts: tuple[Array, EdgeNoise | None]) -> Maps:
    """Return the sum of errors, each multiplied by a matrix (6, 6), source by source."""
    maps: Maps = {}
    for matrix, noise in parts:
        if noise is None:
            continue
        for source in noise.sources:
            maps[source] = maps.get(source, np.zeros((6, source.dimension))) + matrix @ noise.map(source)
    return maps


def _require_all_acted(scene: SceneGraph, unknown: dict[str, SemanticError]) -> None:
    """Refuse a twist that no edge of poses can show: one on the way between its bodies does not move.

    Raises:
        SemanticError: why that edge does not.
    """
    for frame in scene.twist_frames:
        edge = scene.twist_edge(frame)
        assert edge is not None, "it is among the frames with twists"
        above = [frame, *scene.ancestors(frame)]
        other = frame_on(scene, edge[0], above[-1])
        if other is None:
            rule = f"poses join frame '{frame}' to body '{edge[0]}', as its twist requires"
            raise SemanticError.of("integrate", [Violation(rule, "no frame of that body is in its tree")])
        below = [other, *scene.ancestors(other)]
        for between in [f for f in above if f not in below] + [f for f in below if f not in above]:
            if between in unknown:
                raise unknown[between]


def finite_difference(
    earlier: SceneGraph, later: SceneGraph, dt: float, *, frames: Iterable[str] | None = None
) -> SceneGraph:
    """Return the later of two versions with the constant twists that led there from the earlier one.

    Args:
        earlier: the scene as it was.
        later: the scene ``dt`` seconds later. No frame turned by half a turn or more.
        dt: seconds, not zero.
        frames: the frames whose twists relative to their parents' bodies are computed. By default those that have such
            a twist, and those that moved.

    Returns:
        The later scene, with a twist edge for each of the frames; one that did not move gets a zero twist. Its error is
        what the errors of both poses make of it: an error that is the same before and after the frame moved is none of
        the way that it went.

    Raises:
        UnknownNameError: a frame is not in both versions.
        SceneError: a frame is a child of something else than before, is a root, sits on the body that it is a child of,
            or has a joint; or the rules of twist edges forbid the edge, as where it has a twist relative to another
            body.
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
            noise = _summed((back, later.noise(frame)), (-back @ adjoint(Pose.exp(-motion)), earlier.noise(frame)))
            edit.set_twist_noise(frame, noise)
    return edit.finish()


def _that_moved(earlier: SceneGraph, later: SceneGraph) -> list[str]:
    chosen = []
    for frame, _, reference in _edges_between_bodies(later, None):
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
        raise SceneError(f"frame '{frame}' is a root: it moves relative to nothing that is known", frame=frame)
    if earlier.parent(frame) != parent:
        message = f"frame '{frame}' has parent '{parent}', and had parent '{earlier.parent(frame)}' before"
        raise SceneError(f"{message}: there is no one twist between", frame=frame)
    joint = later.joint(frame)
    if joint.type not in ("fixed", "free"):
        raise SceneError(f"frame '{frame}' moves by joint '{joint.name}', whose velocity gives its twist", frame=frame)


def _edges_between_bodies(scene: SceneGraph, bodies: set[str] | None) -> list[tuple[str, str, str]]:
    """Return frame, body and parent's body of the edges between two bodies, of which one is among those given."""
    edges = []
    for frame in scene.frame_names:
        parent = scene.parent(frame)
        if parent is None:
            continue
        body, reference = scene.body(frame), scene.body(parent)
        if body != reference and (bodies is None or body in bodies or reference in bodies):
            edges.append((frame, body, reference))
    return edges


def _parent(scene: SceneGraph, frame: str) -> str:
    parent = scene.parent(frame)
    if parent is None:
        raise SceneError(f"frame '{frame}' is a root", frame=frame)
    return parent
