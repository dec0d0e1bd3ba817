"""Joining of two trees by a pose: the child and the frame of the new edge.

One tree is attached below a frame of the other. The new edge leads to the root of that tree, if the
root is on the same body as the frame of the pose. Otherwise the frame becomes the root of its tree
first. Trees that share a body are joined by an edge inside that body. If they share several bodies,
one of them joins the trees; edges between the others are removed and then added again.

Invariants: no pose changes; frames of one body in one tree are joined by fixed edges between them
    (rule PE6).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import (
    EdgeNoise,
    Fixed,
    FrameDifference,
    Joint,
    SceneDifference,
    SceneGraph,
    Unstated,
)
from tmkit.errors import SceneError
from tmkit.graph.observation_frames import CLASS, Evidence, Kind, add_observation
from tmkit.graph.traversal import joints_between
from tmkit.spatial import Pose, adjoint


class FrameFact(NamedTuple):
    """Pose, position or orientation of one frame relative to another.

    Attributes:
        pose: reference_from_frame, with an identity in the part that ``kind`` excludes.
        error: (6, 6) covariance in the axes of the frame, zero in the excluded part.
        joint: joint of the edge that the fact makes.
    """

    frame: str
    reference: str
    pose: Pose
    kind: Kind = "pose"
    error: NDArray[np.float64] | None = None
    stamp: float | None = None
    tags: tuple[str, ...] = ()
    joint: Joint = Unstated()

    def inverse(self) -> FrameFact:
        """Return the pose of the reference relative to the frame."""
        matrix = adjoint(self.pose)
        error = None if self.error is None else matrix @ self.error @ matrix.T
        return FrameFact(
            self.reference, self.frame, self.pose.inverse(), error=error, joint=self.joint
        )


def store_observation(scene: SceneGraph, fact: FrameFact) -> SceneGraph:
    """Return the scene with a fact as an observation."""
    return add_observation(
        scene,
        fact.frame,
        fact.pose,
        relative_to=fact.reference,
        kind=fact.kind,
        evidence=Evidence(fact.error, fact.stamp, fact.tags),
    )


def join_trees(
    scene: SceneGraph, fact: FrameFact, q: ArrayLike | None, *, is_observed: bool = True
) -> SceneGraph:
    """Return the scene with the trees of two frames joined, by an edge in either direction.

    Args:
        scene: the scene.
        fact: the pose between the frames.
        q: (n_joints,) configuration; required if joints are on the path inside a tree.
        is_observed: whether a fact with a covariance, stamp or tags is also stored as an
            observation, with the same error as the edge. Policies can then choose among all facts,
            regardless of their order.
    """
    attached_fact = fact
    try:
        version, top = _attach_tree(scene, fact)
    except SceneError as error:
        if error.data.get("rule") != "PE6":
            raise
        result = _shared_body_fact(scene, fact, q, error)
        if isinstance(result, SceneGraph):
            return result
        attached_fact = result
        version, top = _attach_tree(scene, attached_fact)

    # Store the observation.
    has_evidence = fact.error is not None or fact.stamp is not None or bool(fact.tags)
    is_observed = is_observed and has_evidence
    if is_observed:
        version = store_observation(version, fact)
    if fact.error is None:
        return version

    # Set the error of the new edge, which shares its source with the observation.
    matrix = np.eye(6)
    is_same_edge = attached_fact is fact and top == fact.frame
    if not is_same_edge:
        matrix = _edge_from_fact(scene, fact, attached_fact, top, q)
    if not is_observed:
        covariance = fact.error if is_same_edge else matrix @ fact.error @ matrix.T
        return version.set_covariance(top, covariance)
    noise = version.noise(version.frames_of_class(CLASS)[-1])
    assert noise is not None, "the fact has an error"
    if not is_same_edge:
        noise = EdgeNoise({source: matrix @ noise.map(source) for source in noise.sources})
    return version.set_noise(top, noise)


def _edge_from_fact(
    scene: SceneGraph, fact: FrameFact, attached_fact: FrameFact, top: str, q: ArrayLike | None
) -> NDArray[np.float64]:
    """Return the map (6, 6) from the error of a fact to that of the edge above ``top``.

    Args:
        scene: the scene before the trees are joined.
        fact: the fact.
        attached_fact: the equivalent fact that made the edge.
        top: frame below the edge.
        q: (n_joints,) configuration.
    """
    is_inverted = scene.root(top) != scene.root(attached_fact.frame)
    matrix = adjoint(scene.pose(attached_fact.frame, relative_to=fact.frame, q=q).inverse())
    matrix = -adjoint(attached_fact.pose) @ matrix if is_inverted else matrix
    end = attached_fact.reference if is_inverted else attached_fact.frame
    return adjoint(scene.pose(top, relative_to=end, q=q).inverse()) @ matrix


def _attach_tree(scene: SceneGraph, fact: FrameFact) -> tuple[SceneGraph, str]:
    """Return the joined scene, and the frame below the new edge, or raise SceneError."""
    frame, joint = fact.frame, fact.joint
    if scene.parent(frame) is None:
        return scene.attach(frame, fact.reference, pose=fact.pose, joint=joint), frame

    # Prefer a frame on the body of its root, then the frame nearer to its root.
    directions = [fact, fact.inverse()]
    directions.sort(
        key=lambda d: (not _is_on_body_of_root(scene, d.frame), len(scene.ancestors(d.frame)))
    )
    obstacles = []
    for direction in directions:
        frame = direction.frame
        root = scene.root(frame)
        if _is_on_body_of_root(scene, frame):
            pose = direction.pose @ scene.pose(root, relative_to=frame)
            return scene.attach(root, direction.reference, pose=pose, joint=joint), root
        joints = joints_between(scene, root, frame)
        if not joints:
            rerooted_scene = scene.make_root(frame)
            pose = direction.pose
            return rerooted_scene.attach(frame, direction.reference, pose=pose, joint=joint), frame
        obstacles.append(f"joint '{joints[-1]}' is above '{frame}'")
    message = f"the trees of '{fact.frame}' and '{fact.reference}' cannot be joined there"
    raise SceneError(f"{message}: {' and '.join(obstacles)}", frame=fact.frame)


def _is_on_body_of_root(scene: SceneGraph, frame: str) -> bool:
    return scene.body(frame) == scene.body(scene.root(frame))


def _shared_body_fact(
    scene: SceneGraph, fact: FrameFact, q: ArrayLike | None, error: SceneError
) -> FrameFact | SceneGraph:
    """Return the pose between frames of a shared body that follows from a fact.

    If the trees share several bodies, return the joined scene, or raise SceneError if joints are
    between these bodies.
    """
    tops, reference_tops = (
        {scene.body(f): f for f in reversed(scene.subtree(scene.root(end)))}
        for end in (fact.frame, fact.reference)
    )
    fact_bodies = scene.body(fact.frame), scene.body(fact.reference)
    shared_bodies = [body for body in tops if body in reference_tops]
    body, *further_bodies = sorted(shared_bodies, key=lambda body: body not in fact_bodies)
    for other_body in further_bodies:
        for tree_tops in (tops, reference_tops):
            edge = _separating_edge(scene, tree_tops[body], tree_tops[other_body])
            if edge is None:
                continue
            # Remove the edge, join the trees, and add the edge again.
            name, parent = edge
            covariance = scene.edge_covariance(name)
            edge_error = covariance if covariance.any() else None
            edge_fact = FrameFact(name, parent, scene.local_pose(name), error=edge_error)
            version = join_trees(detach_tree(scene, name), fact, q)
            return join_trees(version, edge_fact, q, is_observed=False)

    def pose_of_body(body: str) -> Pose:
        outer = scene.pose(fact.reference, relative_to=reference_tops[body], q=q)
        return outer @ fact.pose @ scene.pose(tops[body], relative_to=fact.frame, q=q)

    if further_bodies:
        other = further_bodies[0]
        distance, angle = pose_of_body(other).distance(Pose())
        loop = f"'{tops[other]}' - '{fact.frame}' - '{fact.reference}' - '{reference_tops[other]}'"
        message = (
            f"{error}; the loop {loop} puts frames of body '{other}' {distance:.4g} m and"
            f" {angle:.4g} rad apart, and joints are between it and body '{body}' in both trees"
        )
        raise SceneError(message, **error.data) from error
    return FrameFact(tops[body], reference_tops[body], pose_of_body(body))


def _separating_edge(scene: SceneGraph, start: str, end: str) -> tuple[str, str] | None:
    """Return (frame, parent) of the first edge without a joint between two bodies on a path."""
    path = scene.path(start, end)
    for name in path:
        parent = scene.parent(name)
        if parent is None or parent not in path or scene.body(name) == scene.body(parent):
            continue
        if not joints_between(scene, name, parent):
            return name, parent
    return None


def detach_tree(scene: SceneGraph, frame: str) -> SceneGraph:
    """Return the scene in which a frame is the root of its subtree; all else is unchanged."""
    old = scene.specification(frame)
    new = old.replace(parent=None, pose=Pose(), joint=Fixed(), stamps=None, noise=None)
    return scene.apply(SceneDifference([FrameDifference(scene.frame_id(frame), old, new)]))
