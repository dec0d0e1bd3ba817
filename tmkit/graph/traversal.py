"""Walks, chains and paths of a scene graph, with the stamps and errors along them.

A walk visits a frame and its descendants, down to a stop condition. A chain leads from a frame down
to one descendant. ``scene.path`` is the path between any two frames. Children come in insertion
order. A walk stores only the queue of frames, never the whole tree, and no function recurses. A
chain costs O(depth log n), a step of a walk O(log n).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import (
    FrameSpecification,
    Group,
    NoiseSource,
    Pose,
    SceneArrays,
    SceneGraph,
    common_stamps,
    path_noise,
    twist_noise,
)
from tmkit.errors import SceneError, StampError, UnknownNameError


def walk(
    scene: SceneGraph,
    start: str,
    *,
    depth: int | None = None,
    until: Callable[[str], bool] | None = None,
    order: Literal["depth", "breadth"] = "depth",
) -> Iterator[str]:
    """Yield a frame and its descendants, parents before children, siblings in insertion order.

    Args:
        scene: the version to walk; later edits make other versions and have no effect.
        start: the first frame.
        depth: number of edges below ``start`` to descend; 0 yields ``start`` alone. Unlimited by
            default.
        until: stop condition, called once for each yielded frame. The descendants of a frame for
            which it holds are skipped.
        order: ``depth`` finishes a subtree before its next sibling, ``breadth`` a level before the
            next.

    Raises:
        UnknownNameError: if a frame is unknown.
        SceneError: if the depth is negative, or the order has another value.
    """
    if depth is not None and depth < 0:
        raise SceneError(f"the depth of a walk must be a number of edges, not {depth}")
    if order not in ("depth", "breadth"):
        raise SceneError(f"the order of a walk must be 'depth' or 'breadth', not {order!r}")
    scene.parent(start)  # raise for an unknown name now, not at the first frame
    return _walk(scene, start, depth, until, order == "depth")


def _walk(
    scene: SceneGraph,
    start: str,
    depth: int | None,
    until: Callable[[str], bool] | None,
    by_depth: bool,
) -> Iterator[str]:
    queue = deque([(start, 0)])
    while queue:
        frame, level = queue.pop() if by_depth else queue.popleft()
        yield frame
        if (until is not None and until(frame)) or level == depth:
            continue
        children = scene.children(frame)
        queue.extend((child, level + 1) for child in (reversed(children) if by_depth else children))


def chain(scene: SceneGraph, base: str, tip: str) -> tuple[str, ...]:
    """Return the frames from ``base`` down to ``tip``, both included. O(depth log n).

    Args:
        scene: the scene.
        base: ``tip`` itself or one of its ancestors.
        tip: the last frame.

    Raises:
        UnknownNameError: if a frame is unknown.
        SceneError: if ``tip`` is not a descendant of ``base``.
    """
    frames = (tip, *scene.ancestors(tip))
    if base not in frames:
        scene.parent(base)  # raise UnknownNameError for an unknown name
        raise SceneError(f"frame '{tip}' is not a descendant of '{base}'", base=base, tip=tip)
    return frames[frames.index(base) :: -1]


def common_ancestor(scene: SceneGraph, a: str, b: str) -> str:
    """Return the nearest common ancestor of two frames, which may be one of them. O(depth log n).

    Args:
        scene: the scene.
        a: a frame.
        b: another frame of the same tree.

    Raises:
        UnknownNameError: if a frame is unknown.
        DisconnectedError: if the frames are in different trees.
    """
    path = scene.path(a, b)
    return next((frame for frame, step in pairwise(path) if scene.parent(frame) != step), path[-1])


def edges_between(scene: SceneGraph, start: str, end: str) -> list[str]:
    """Return the frames below the edges on the path between two frames, in its order."""
    return [
        frame if scene.parent(frame) == step else step
        for frame, step in pairwise(scene.path(start, end))
    ]


def joints_between(scene: SceneGraph, start: str, end: str) -> tuple[str, ...]:
    """Return the joints on the path between two frames, mimic joints included. O(depth log n).

    Args:
        scene: the scene.
        start: the first frame of the path.
        end: the last frame of the path.

    Returns:
        Names of the joints, in the order of the path.

    Raises:
        UnknownNameError: if a frame is unknown.
        DisconnectedError: if the frames are in different trees.
    """
    joints = (scene.joint(edge) for edge in edges_between(scene, start, end))
    return tuple(joint.name for joint in joints if joint.type not in ("fixed", "free"))


def leading_joint(scene: SceneGraph, frame: str) -> str | None:
    """Return the joint whose value moves the edge above a frame, through all mimic rules.

    O(mimic rules log n).

    Args:
        scene: the scene.
        frame: the frame.

    Returns:
        Name of a joint of the configuration; None for an edge that no value moves.

    Raises:
        UnknownNameError: if the frame is unknown.
    """
    joint = scene.joint(frame)
    while joint.mimic is not None:
        joint = scene.joint(scene.joint_frame(joint.mimic.joint))
    return joint.name if joint.is_actuated else None


def twist_path(
    scene: SceneGraph | SceneArrays, body: str, *, relative_to_body: str
) -> tuple[str, ...]:
    """Return the frames whose twist edges lead from one body to another.

    O(t log n) for t twist edges.

    Args:
        scene: the scene, or its arrays.
        body: the body to reach.
        relative_to_body: the body to start from.

    Returns:
        Names of the frames, nearest to ``body`` first; empty if there is no path.

    Raises:
        UnknownNameError: if a body is unknown.
    """
    for name in (relative_to_body, body):
        if isinstance(scene, SceneGraph):
            scene.frames_of_body(name)  # raise UnknownNameError for an unknown body
        elif name not in scene.body_names:
            raise UnknownNameError.of("body", name, scene.body_names)
    # by reference body: the frame of its twist edge, and the body of that frame
    links = dict[str, tuple[str, str]]()
    edges = [
        (frame, scene.body(frame), edge[0])
        for frame in scene.twist_frames
        if (edge := scene.twist_edge(frame))
    ]
    queue = [body]
    for current in queue:
        for frame, moving, reference in edges:
            if moving == current and reference != body and reference not in links:
                links[reference] = frame, current
                queue.append(reference)

    # Follow the links from the reference body back to the body.
    path, current = list[str](), relative_to_body
    while current in links:
        frame, current = links[current]
        path.append(frame)
    return tuple(reversed(path))


@dataclass(frozen=True, slots=True)
class Stamped:
    """Attribute value with the time of its measurement: finite seconds on any clock."""

    value: Any
    stamp: float


def stamped_attributes(owner: FrameSpecification | Group) -> dict[str, Any]:
    """Return the attributes of a frame or group with their stamps, as setters take them."""
    stamps = owner.attribute_stamps
    return {
        key: Stamped(value, stamps[key]) if key in stamps else value
        for key, value in owner.attributes.items()
    }


def latest_common_stamp(scene: SceneGraph, frame: str, *, relative_to: str | None = None) -> float:
    """Return the newest stamp [s] at which all stamped edges between two frames have a pose.

    It is the *latest common time* of ROS's tf2, a stamp for ``scene.pose``. Edges without stamped
    poses are ignored. O(depth log n).

    Args:
        scene: the scene.
        frame: the first frame.
        relative_to: the other frame; the root of its tree if omitted.

    Raises:
        UnknownNameError: if a frame is unknown.
        DisconnectedError: if the frames are in different trees.
        StampError: if no edge on the path has stamped poses, or two edges have no common time.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    interval = common_stamps(scene, frame, reference)
    if interval is None:
        raise StampError(f"no edge between '{frame}' and '{reference}' has stamped poses")
    if interval[0] <= interval[1]:
        return interval[1]

    # Find the edges that cause the error.
    edges = set(edges_between(scene, frame, reference))
    histories = [
        (poses.stamps, name)
        for name in sorted(edges)
        if (poses := scene.stamped_poses(name)) is not None
    ]
    if empty := [name for stamps, name in histories if not len(stamps)]:
        raise StampError(f"frame '{empty[0]}' has no stamped pose yet")
    newest, last = min((stamps[-1], name) for stamps, name in histories)
    oldest, first = max((stamps[0], name) for stamps, name in histories)
    raise StampError(
        f"the newest pose of '{last}' is of {newest:g} s, the oldest of '{first}' of {oldest:g} s"
    )


def contributions(
    scene: SceneGraph, frame: str, *, relative_to: str | None = None, q: ArrayLike | None = None
) -> tuple[tuple[NoiseSource, NDArray[np.float64]], ...]:
    """Return the contribution of each source to the covariance of a relative pose. O(depth log n).

    Args:
        scene: the scene.
        frame: the frame.
        relative_to: the reference frame; the root of its tree if omitted.
        q: (n_joints,) configuration [rad or m]; required if a joint is on the path.

    Returns:
        For each source on the path, in the order of the path down and then up, its (6, 6)
        contribution, in the axes of the frame. The contributions sum to the covariance. A source
        whose effects cancel is omitted.

    Raises:
        UnknownNameError: if a frame is unknown.
        DisconnectedError: if the frames are in different trees.
        ConfigurationError: if a joint is on the path and q is missing, or q has the wrong length.
    """
    noise = path_noise(scene, frame, relative_to=relative_to, q=q)
    maps = [] if noise is None else [(source, noise.map(source)) for source in noise.sources]
    return tuple((source, matrix @ matrix.T) for source, matrix in maps)


def joint_gaussian(
    scene: SceneGraph, pairs: Sequence[tuple[str, str]], *, q: ArrayLike | None = None
) -> tuple[tuple[Pose, ...], NDArray[np.float64]]:
    """Return several relative poses with the joint covariance of their errors.

    Args:
        scene: the scene.
        pairs: (frame, relative_to) of each.
        q: (n_joints,) configuration [rad or m]; optional if no joint is on a path.

    Returns:
        The m means, and (6 m, 6 m) the covariance of their stacked errors, each in its frame's
        axes; read-only.

    Raises:
        UnknownNameError: if a frame is unknown.
        DisconnectedError: if the frames are in different trees.
        ConfigurationError: if a joint is on a path and q is missing, or q has the wrong length or
            non-finite numbers.
    """
    means = tuple(scene.pose(frame, relative_to=reference, q=q) for frame, reference in pairs)
    maps: dict[NoiseSource, NDArray[np.float64]] = {}  # by source: (m, 6, dimension)
    for i, (frame, reference) in enumerate(pairs):
        if (noise := path_noise(scene, frame, relative_to=reference, q=q)) is not None:
            for source in noise.sources:
                blocks = maps.setdefault(source, np.zeros((len(pairs), 6, source.dimension)))
                blocks[i] = noise.map(source)
    size = 6 * len(pairs)
    columns = [blocks.reshape(size, -1) for blocks in maps.values()]
    matrix = np.hstack([np.empty((size, 0)), *columns])
    covariance = matrix @ matrix.T
    covariance.flags.writeable = False
    return means, covariance


def twist_covariance(scene: SceneGraph | SceneArrays, frame: str) -> NDArray[np.float64]:
    """Return the (6, 6) covariance of a frame's twist edge, at its origin and in its axes.

    It is zero for an exact or absent twist. O(log n).

    Args:
        scene: the scene, or its arrays.
        frame: the frame.

    Raises:
        UnknownNameError: if a frame is unknown.
    """
    noise = twist_noise(scene, frame)
    return np.zeros((6, 6)) if noise is None else noise.covariance
