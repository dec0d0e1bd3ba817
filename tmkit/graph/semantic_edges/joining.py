"""Joining of two trees by a pose: the choice of the child and of the frame of the new edge.

The tree of the one frame is hung under the other, by its root where that is on the same body, else
by the frame itself, which becomes the root of its tree. Trees that share a body are joined inside
that, where the pose puts its frames. Of several that they share only one can join them: edges
between the others are cut and told again afterwards.

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


class Told(NamedTuple):
    """What a fact says of two frames: reference_from_frame, of which a position or an orientation is a part."""

    frame: str
    reference: str
    pose: Pose
    kind: Kind = "pose"
    # (6, 6) in the axes of the frame; zeros in the part that is not said
    error: NDArray[np.float64] | None = None
    stamp: float | None = None
    tags: tuple[str, ...] = ()
    joint: Joint = Unstated()  # of the edge that the pose makes

    def reversed(self) -> Told:
        """Return a pose as that of the reference relative to the frame."""
        turned = adjoint(self.pose)
        error = None if self.error is None else turned @ self.error @ turned.T
        return Told(self.reference, self.frame, self.pose.inverse(), error=error, joint=self.joint)


def observed(scene: SceneGraph, told: Told) -> SceneGraph:
    """Return the scene with a fact as an observation."""
    return add_observation(
        scene,
        told.frame,
        told.pose,
        relative_to=told.reference,
        kind=told.kind,
        evidence=Evidence(told.error, told.stamp, told.tags),
    )


def joined(
    scene: SceneGraph, told: Told, q: ArrayLike | None, *, is_kept: bool = True
) -> SceneGraph:
    """Return the scene in which the tree of a frame is below another's, or the reverse.

    Args:
        scene: the scene.
        told: the pose between the frames.
        q: configuration, where joints are on the way inside a tree.
        is_kept: whether a fact with a covariance, stamp or tags is an observation beside its edge,
            of the same error: so policies choose among all, whichever came first.
    """
    hung = told
    try:
        made, top = _hung(scene, told)
    except SceneError as refusal:
        if refusal.data.get("rule") != "PE6":
            raise
        found = _inside(scene, told, q, refusal)
        if isinstance(found, SceneGraph):
            return found
        hung = found
        made, top = _hung(scene, hung)
    is_kept = is_kept and not (told.error is None and told.stamp is None and not told.tags)
    made = observed(made, told) if is_kept else made
    if told.error is None:
        return made
    by = None if hung is told and top == told.frame else _edge_from_fact(scene, told, hung, top, q)
    if not is_kept:
        return made.set_covariance(top, told.error if by is None else by @ told.error @ by.T)
    error = made.noise(made.frames_of_class(CLASS)[-1])
    assert error is not None, "it was told with one"
    moved = (
        error
        if by is None
        else EdgeNoise({source: by @ error.map(source) for source in error.sources})
    )
    return made.set_noise(top, moved)


def _edge_from_fact(
    scene: SceneGraph, told: Told, hung: Told, top: str, q: ArrayLike | None
) -> NDArray[np.float64]:
    """Return the map (6, 6) of the error of a fact to that of the edge above ``top``."""
    is_turned = scene.root(top) != scene.root(hung.frame)
    by = adjoint(scene.pose(hung.frame, relative_to=told.frame, q=q).inverse())
    by = -adjoint(hung.pose) @ by if is_turned else by
    end = hung.reference if is_turned else hung.frame
    return adjoint(scene.pose(top, relative_to=end, q=q).inverse()) @ by


def _hung(scene: SceneGraph, told: Told) -> tuple[SceneGraph, str]:
    """Return the joined scene, and the frame that hangs by the new edge."""
    if scene.parent(told.frame) is None:
        return (
            scene.attach(told.frame, told.reference, pose=told.pose, joint=told.joint),
            told.frame,
        )
    ways = [told, told.reversed()]
    ways.sort(
        key=lambda way: (not _is_on_body_of_root(scene, way.frame), len(scene.ancestors(way.frame)))
    )
    blocked = []
    for way in ways:
        root = scene.root(way.frame)
        if _is_on_body_of_root(scene, way.frame):
            inside = scene.pose(root, relative_to=way.frame)
            return scene.attach(root, way.reference, pose=way.pose @ inside, joint=told.joint), root
        joints = joints_between(scene, root, way.frame)
        if not joints:
            turned = scene.make_root(way.frame)
            return (
                turned.attach(way.frame, way.reference, pose=way.pose, joint=told.joint),
                way.frame,
            )
        blocked.append(f"joint '{joints[-1]}' is above '{way.frame}'")
    message = f"the trees of '{told.frame}' and '{told.reference}' cannot be hung together there"
    raise SceneError(f"{message}: {' and '.join(blocked)}", frame=told.frame)


def _is_on_body_of_root(scene: SceneGraph, frame: str) -> bool:
    return scene.body(frame) == scene.body(scene.root(frame))


def _inside(
    scene: SceneGraph, told: Told, q: ArrayLike | None, refusal: SceneError
) -> Told | SceneGraph:
    """Return what a pose between trees says of the frames of a body that they share; or, if of several, the whole."""
    a, b = (
        {scene.body(f): f for f in reversed(scene.subtree(scene.root(end)))}
        for end in (told.frame, told.reference)
    )
    own = scene.body(told.frame), scene.body(told.reference)
    body, *others = sorted((body for body in a if body in b), key=lambda body: body not in own)
    for other, tops in ((other, tops) for other in others for tops in (a, b)):
        way = scene.path(tops[body], tops[other])
        for name, above in ((name, scene.parent(name)) for name in way):
            if (
                above not in way
                or scene.body(name) == scene.body(above)
                or joints_between(scene, name, above)
            ):
                continue
            spread = scene.edge_covariance(name)
            again = Told(
                name, above, scene.local_pose(name), error=spread if spread.any() else None
            )
            return joined(joined(cut(scene, name), told, q), again, q, is_kept=False)

    def implied(body: str) -> Pose:
        outer = scene.pose(told.reference, relative_to=b[body], q=q)
        return outer @ told.pose @ scene.pose(a[body], relative_to=told.frame, q=q)

    if others:
        metres, radians = implied(others[0]).distance(Pose())
        loop = f"'{a[others[0]]}' - '{told.frame}' - '{told.reference}' - '{b[others[0]]}'"
        numbers = (
            f"the loop {loop} puts frames of body '{others[0]}' {metres:.4g} m and {radians:.4g}"
            " rad apart"
        )
        message = f"{refusal}; {numbers}, and joints are between it and body '{body}' in both trees"
        raise SceneError(message, **refusal.data) from refusal
    return Told(a[body], b[body], implied(body))


def cut(scene: SceneGraph, frame: str) -> SceneGraph:
    """Return the scene in which a frame, with all below it, is a tree of its own; all else stays as it was."""
    old = scene.specification(frame)
    new = old.replace(parent=None, pose=Pose(), joint=Fixed(), stamps=None, noise=None)
    return scene.apply(SceneDifference([FrameDifference(scene.frame_id(frame), old, new)]))
