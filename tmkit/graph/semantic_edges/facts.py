"""Facts about a scene, in whatever order they come: the graph chooses the edges.

A pose of one frame relative to another joins two trees, wherever in them the frames are: the tree of the one is hung
under the other, by its root where that is on the same body, else by the frame itself, which becomes the root of its
tree (``scene.make_root``): edges are turned round, and nothing moves. A twist becomes an edge to whichever of the two
bodies the rules allow. What a scene knows already is compared with what it says: within the tolerance or, with
covariances, the gate, nothing changes, or both are fused; beyond it the fact is refused with the way between the frames
and the numbers, unless it says what has moved.

Invariants: scenes are values. Facts that agree give scenes that answer alike, whatever their order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import Measurement, SceneGraph, innovation, joints_between, path_noise
from tmkit.errors import SceneError
from tmkit.graph.semantic_edges.names import check_names, coord_of
from tmkit.graph.semantic_edges.poses import pose_between_frames
from tmkit.graph.semantic_edges.queries import relate
from tmkit.graph.semantic_edges.twists import add_twist
from tmkit.relations import SemanticError, SemanticPose, SemanticTwist
from tmkit.spatial import Pose, adjoint, checked_covariance, chi_square_quantile

_EXACT = 1e-9  # metres, radians, and per second: by which exact facts agree


def add_fact(
    scene: SceneGraph, fact: SemanticPose | SemanticTwist, *, covariance: ArrayLike | None = None,
    q: ArrayLike | None = None, moves: str | None = None, gate: float = 0.999,
) -> SceneGraph:  # fmt: skip
    """Return the scene in which a fact holds: a pose or a twist between any two frames, in any order of facts.

    O(depth log n); where edges are turned round, that many edits more.

    Args:
        scene: the scene, which has the frames on the bodies that the fact names.
        fact: the pose or the twist; at any points and in any axes that poses join.
        covariance: (6, 6) of its error: of a pose in the axes of its frame, [metres, radians]; of a twist at its point
            and in its axes, m/s and rad/s. None: exact.
        q: (n_joints,) configuration in which it holds; needed where joints are on the way.
        moves: of a pose between frames that poses join already: the frame that has moved relative to its parent so that
            it holds. By default nothing has, and the fact must agree with the scene.
        gate: the probability with which a fact that agrees passes where there are covariances.

    Raises:
        UnknownNameError: a frame or body that is not there.
        SemanticError: a frame is not on its body, no poses lead to its points and axes, or it is no pose or twist.
        SceneError: it contradicts what the scene says; or neither tree can be hung under the other, as joints are above
            both frames; or the rules of edges forbid it.
    """
    if isinstance(fact, SemanticTwist):
        return _with_twist(scene, fact, covariance, q)
    check_names(scene, coord_of(fact, SemanticPose, "add_fact"))
    between = pose_between_frames(scene, fact, q)
    frame, reference = between.coord.ori, between.coord.ref_ori
    pose = Pose.from_rotation_matrix(*between.numbers)
    error = None if covariance is None else checked_covariance(covariance, 6, what=f"the covariance of '{frame}'")
    if scene.root(frame) != scene.root(reference):
        return _joined(scene, frame, reference, pose, error)
    if moves is not None:
        return _moved(scene, frame, reference, pose, error, moves=moves, q=q)
    return _agreeing(scene, frame, reference, pose, error, q=q, gate=gate)


# ------------------------------------------------------------------------------------------------------------- poses


def _joined(scene: SceneGraph, frame: str, reference: str, pose: Pose, error: NDArray[np.float64] | None) -> SceneGraph:
    """Return the scene in which the tree of a frame hangs under another's, or the other way round."""
    back = None if error is None else adjoint(pose) @ error @ adjoint(pose).T
    ways = [(frame, reference, pose, error), (reference, frame, pose.inverse(), back)]
    ways.sort(key=lambda way: (not _is_on_body_of_root(scene, way[0]), len(scene.ancestors(way[0]))))
    blocked = []
    for head, tail, place, spread in ways:
        root = scene.root(head)
        if _is_on_body_of_root(scene, head):
            inside = scene.pose(root, relative_to=head)
            turned = adjoint(inside.inverse())
            spread = None if spread is None else turned @ spread @ turned.T
            made = scene.attach(root, tail, pose=place @ inside)
        else:
            joints = joints_between(scene, root, head)
            if joints:
                blocked.append(f"joint '{joints[-1]}' is above '{head}'")
                continue
            made, root = scene.make_root(head).attach(head, tail, pose=place), head
        return made if spread is None else made.set_covariance(root, spread)
    message = f"the trees of '{frame}' and '{reference}' cannot be hung together there: {' and '.join(blocked)}"
    raise SceneError(message, frame=frame)


def _is_on_body_of_root(scene: SceneGraph, frame: str) -> bool:
    return scene.body(frame) == scene.body(scene.root(frame))


def _moved(
    scene: SceneGraph, frame: str, reference: str, pose: Pose, error: NDArray[np.float64] | None, *, moves: str,
    q: ArrayLike | None,
) -> SceneGraph:  # fmt: skip
    """Return the scene in which the edge above a frame on the way has another pose, so that a fact holds."""
    way = scene.path(frame, reference)
    parent = scene.parent(moves)
    if parent is None or moves not in way or parent not in way:
        choices = [name for name in way if scene.parent(name) in way]
        named = ", ".join(f"'{name}'" for name in choices)
        raise SceneError(
            f"the edge above '{moves}' is not between '{frame}' and '{reference}': {named} are", frame=moves
        )
    is_up = way.index(moves) < way.index(parent)  # from the frame up, else down to the reference
    near, far = (frame, reference) if is_up else (reference, frame)
    near_from_far = pose.inverse() if is_up else pose
    inside = scene.pose(moves, relative_to=near, q=q)
    outside = scene.pose(parent, relative_to=far, q=q)
    wanted = (inside.inverse() @ near_from_far @ outside).inverse()
    now = scene.pose(moves, relative_to=parent, q=q)
    local = scene.local_pose(moves) @ now.inverse() @ wanted if scene.joint(moves).type in ("fixed", "free") else None
    if local is None:
        raise SceneError(f"'{moves}' moves by its joint: its value, and no pose, says where it is", frame=moves)
    made = scene.set_pose(moves, local)
    if error is None:
        return made.set_covariance(moves, None)
    in_frame = error if is_up else adjoint(pose) @ error @ adjoint(pose).T
    turned = adjoint(inside.inverse())
    return made.set_covariance(moves, turned @ in_frame @ turned.T)


def _agreeing(
    scene: SceneGraph, frame: str, reference: str, pose: Pose, error: NDArray[np.float64] | None, *,
    q: ArrayLike | None, gate: float,
) -> SceneGraph:  # fmt: skip
    """Return the scene with a fact that it knows already: fused with it, where it has a covariance."""
    known = scene.pose(frame, relative_to=reference, q=q)
    metres, radians = known.distance(pose)
    if error is None or not error.any():
        if max(metres, radians) <= _EXACT * (1.0 + math.hypot(*pose.translation)):
            return scene
        verdict = "an exact fact agrees to 1e-9"
    else:
        measurement = Measurement.of_pose(frame, pose, relative_to=reference, covariance=error)
        found, most = innovation(scene, measurement, q=q), chi_square_quantile(gate, 6)
        if found.squared_mahalanobis <= most:
            is_exact = path_noise(scene, frame, relative_to=reference, q=q) is None
            return scene if is_exact else scene.condition(measurement, q=q)
        verdict = f"its squared Mahalanobis distance is {found.squared_mahalanobis:.4g} of {most:.4g}"
    way = " - ".join(scene.path(frame, reference))
    raise SceneError(
        f"the pose of '{frame}' relative to '{reference}' contradicts the scene by {metres:.4g} m and {radians:.4g} "
        f"rad, along {way} ({verdict}); say what has moved with moves=",
        frame=frame,
    )


# ------------------------------------------------------------------------------------------------------------ twists


def _with_twist(
    scene: SceneGraph, fact: SemanticTwist, covariance: ArrayLike | None, q: ArrayLike | None
) -> SceneGraph:
    """Return the scene with a twist edge, from whichever body may have it; what twist edges say already must agree."""
    check_names(scene, coord_of(fact, SemanticTwist, "add_fact"))
    vector, told = np.concatenate(fact.numbers), ""
    if scene.twist_frames:
        try:
            known = np.concatenate(relate(scene, fact.coord, q=q).numbers)
        except SemanticError:  # nothing says it yet
            known = np.full(6, np.nan)
        if np.max(np.abs(known - vector)) <= _EXACT * (1.0 + np.max(np.abs(vector))):
            return scene
        told = "" if np.isnan(known).any() else f"; the scene says {known.tolist()}, the fact {vector.tolist()}"
    try:
        return add_twist(scene, fact, covariance=covariance, q=q, on_conflict="invert")
    except SceneError as refusal:
        if isinstance(refusal, SemanticError) or not told:
            raise
        raise SceneError(f"{refusal}{told}", **refusal.data) from refusal
