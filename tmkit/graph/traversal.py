"""Walks through a scene graph, and the stamps and errors of what lies along them.

A walk goes down from a frame, and stops where it is told to; a chain leads from a frame down to
another. The way between any two frames is ``scene.path``. Children come in insertion order. A walk
holds the frames that wait, never the whole tree, and nothing recurses. A chain costs O(depth log
n), a step of a walk O(log n).
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
        scene: the version that is walked; edits made meanwhile are other versions and do not
            matter.
        start: the first frame.
        depth: how many edges below ``start`` the walk goes: 0 yields ``start`` alone; without end
            by default.
        until: a stop test, asked once of each frame that is yielded: nothing below one for which it
            holds is visited.
        order: ``depth`` finishes a subtree before its next sibling, ``breadth`` a level before the
            next.

    Raises:
        UnknownNameError: no such frame.
        SceneError: a negative depth, or an order that is neither.
    """
    if depth is not None and depth < 0:
        raise SceneError(f"the depth of a walk is a number of edges, not {depth}")
    if order not in ("depth", "breadth"):
        raise SceneError(f"the order of a walk is 'depth' or 'breadth', not {order!r}")
    scene.parent(start)  # an unknown name is refused now, not when the first frame is asked for
    return _walk(scene, start, depth, until, order == "depth")


def _walk(
    scene: SceneGraph,
    start: str,
    depth: int | None,
    until: Callable[[str], bool] | None,
    by_depth: bool,
) -> Iterator[str]:
    waiting = deque([(start, 0)])
    while waiting:
        frame, level = waiting.pop() if by_depth else waiting.popleft()
        yield frame
        if (until is not None and until(frame)) or level == depth:
            continue
        children = scene.children(frame)
        waiting.extend(
            (child, level + 1) for child in (reversed(children) if by_depth else children)
        )


def chain(scene: SceneGraph, base: str, tip: str) -> tuple[str, ...]:
    """Return the frames from ``base`` down to ``tip``, both included.

    O(depth log n).

    Args:
        scene: the scene.
        base: ``tip`` itself or one of its ancestors.
        tip: the last frame.

    Raises:
        UnknownNameError: no such frame.
        SceneError: ``tip`` is not a descendant of ``base``.
    """
    frames = (tip, *scene.ancestors(tip))
    if base not in frames:
        scene.parent(base)  # an unknown name is refused as such
        raise SceneError(f"frame '{tip}' is not a descendant of '{base}'", base=base, tip=tip)
    return frames[frames.index(base) :: -1]


def common_ancestor(scene: SceneGraph, a: str, b: str) -> str:
    """Return the nearest frame that is an ancestor of both frames, or one of them. O(depth log n).

    Args:
        scene: the scene.
        a: a frame.
        b: another frame of the same tree.

    Raises:
        UnknownNameError: no such frame.
        DisconnectedError: the frames are in different trees.
    """
    path = scene.path(a, b)
    return next((at for at, after in pairwise(path) if scene.parent(at) != after), path[-1])


def edges_between(scene: SceneGraph, start: str, end: str) -> list[str]:
    """Return the frames below the edges on the path between two frames, in its order."""
    return [
        at if scene.parent(at) == after else after for at, after in pairwise(scene.path(start, end))
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
        UnknownNameError: no such frame.
        DisconnectedError: the frames are in different trees.
    """
    joints = (scene.joint(edge) for edge in edges_between(scene, start, end))
    return tuple(joint.name for joint in joints if joint.type not in ("fixed", "free"))


def leading_joint(scene: SceneGraph, frame: str) -> str | None:
    """Return the joint of the configuration whose value moves the edge above a frame, through all mimic rules.

    Args:
        scene: the scene.
        frame: the frame.

    Returns:
        Name of the joint; None for an edge that no value moves. O(mimic rules log n).

    Raises:
        UnknownNameError: if there is no such frame.
    """
    joint = scene.joint(frame)
    while joint.mimic is not None:
        joint = scene.joint(scene.joint_frame(joint.mimic.joint))
    return joint.name if joint.is_actuated else None


def twist_path(
    scene: SceneGraph | SceneArrays, body: str, *, relative_to_body: str
) -> tuple[str, ...]:
    """Return the frames whose twist edges lead from one body to another. O(t log n) for t twist edges.

    Args:
        scene: the scene; or its arrays, for the writer.
        body: the body to reach.
        relative_to_body: the body to start from.

    Returns:
        Names of the frames, nearest to ``body`` first; none when there is no path.

    Raises:
        UnknownNameError: no such body.
    """
    for name in (relative_to_body, body):
        if isinstance(scene, SceneGraph):
            scene.frames_of_body(name)  # it is there
        elif name not in scene.body_names:
            raise UnknownNameError.of("body", name, scene.body_names)
    # of a body above: the frame of its edge, and its body
    reached, waiting = dict[str, tuple[str, str]](), [body]
    edges = [
        (frame, scene.body(frame), edge[0])
        for frame in scene.twist_frames
        if (edge := scene.twist_edge(frame))
    ]
    for below in waiting:
        for frame, moving, reference in edges:
            if moving == below and reference != body and reference not in reached:
                reached[reference] = frame, below
                waiting.append(reference)
    path, at = list[str](), relative_to_body
    while at in reached:
        frame, at = reached[at]
        path.append(frame)
    return tuple(reversed(path))


@dataclass(frozen=True, slots=True)
class Stamped:
    """A value to set as an attribute, and when it was found: finite seconds on any clock."""

    value: Any
    stamp: float


def stamped_attributes(owner: FrameSpecification | Group) -> dict[str, Any]:
    """Return the attributes of a frame or a group as they can be set again, with their stamps."""
    stamps = owner.attribute_stamps
    return {
        key: Stamped(value, stamps[key]) if key in stamps else value
        for key, value in owner.attributes.items()
    }


def latest_common_stamp(scene: SceneGraph, frame: str, *, relative_to: str | None = None) -> float:
    """Return the newest stamp at which all stamped edges between two frames have a pose, in seconds. O(depth log n).

    It is the *latest common time* of ROS's tf2, a stamp for ``scene.pose``. Edges without stamped
    poses do not count.

    Args:
        scene: the scene.
        frame: the first frame.
        relative_to: the other frame; the root of its tree if omitted.

    Raises:
        UnknownNameError: no such frame.
        DisconnectedError: the frames are in different trees.
        StampError: no edge on the path has stamped poses, or two have none at a common time.
    """
    other = scene.root(frame) if relative_to is None else relative_to
    known = common_stamps(scene, frame, other)
    if known is None:
        raise StampError(f"no edge between '{frame}' and '{other}' has stamped poses")
    if known[0] <= known[1]:
        return known[1]
    edges = set(edges_between(scene, frame, other))  # which of them is the reason
    stamped = [
        (found.stamps, name)
        for name in sorted(edges)
        if (found := scene.stamped_poses(name)) is not None
    ]
    if empty := [name for stamps, name in stamped if not len(stamps)]:
        raise StampError(f"frame '{empty[0]}' has no stamped pose yet")
    newest, last = min((stamps[-1], name) for stamps, name in stamped)
    oldest, first = max((stamps[0], name) for stamps, name in stamped)
    raise StampError(
        f"the newest pose of '{last}' is of {newest:g} s, the oldest of '{first}' of {oldest:g} s"
    )


def contributions(
    scene: SceneGraph, frame: str, *, relative_to: str | None = None, q: ArrayLike | None = None
) -> tuple[tuple[NoiseSource, NDArray[np.float64]], ...]:
    """Return the share of each source in the covariance of a relative pose. O(depth log n).

    Args:
        scene: the scene.
        frame: the frame.
        relative_to: the frame relative to which its pose is; the root of its tree if omitted.
        q: (n_joints,) configuration, radians or metres; needed where a joint is on the path.

    Returns:
        For each source on the path, in the order of the path down and then up, its (6, 6) share, in
        the axes of the frame: the shares sum to the covariance. A source whose effects cancel has
        none.

    Raises:
        UnknownNameError: no such frame.
        DisconnectedError: the frames are in different trees.
        ConfigurationError: a joint is on the path and q is missing, or q has the wrong length.
    """
    noise = path_noise(scene, frame, relative_to=relative_to, q=q)
    maps = [] if noise is None else [(source, noise.map(source)) for source in noise.sources]
    return tuple((source, matrix @ matrix.T) for source, matrix in maps)


def joint_gaussian(
    scene: SceneGraph, pairs: Sequence[tuple[str, str]], *, q: ArrayLike | None = None
) -> tuple[tuple[Pose, ...], NDArray[np.float64]]:
    """Return several relative poses with the covariance of all their errors together.

    Args:
        scene: the scene.
        pairs: (frame, relative_to) of each.
        q: (n_joints,) configuration, radians or metres; optional when no joint is on a path.

    Returns:
        The m means, and (6 m, 6 m) the covariance of their stacked errors, each in its frame's
        axes; read-only.

    Raises:
        UnknownNameError: no such frame.
        DisconnectedError: the frames are in different trees.
        ConfigurationError: a joint is on a path and q is missing, or q has the wrong length or
            non-finite numbers.
    """
    means = tuple(scene.pose(frame, relative_to=other, q=q) for frame, other in pairs)
    maps: dict[NoiseSource, NDArray[np.float64]] = {}  # of each source to all errors
    for i, (frame, other) in enumerate(pairs):
        if (noise := path_noise(scene, frame, relative_to=other, q=q)) is not None:
            for source in noise.sources:
                maps.setdefault(source, np.zeros((len(pairs), 6, source.dimension)))[i] = noise.map(
                    source
                )
    size = 6 * len(pairs)
    stacked = np.hstack(
        [np.empty((size, 0)), *(of_one.reshape(size, -1) for of_one in maps.values())]
    )
    covariance = stacked @ stacked.T
    covariance.flags.writeable = False
    return means, covariance


def twist_covariance(scene: SceneGraph | SceneArrays, frame: str) -> NDArray[np.float64]:
    """Return the covariance (6, 6) of a frame's twist edge, at its origin and in its axes. O(log n).

    Zeros when exact or absent.

    Args:
        scene: the scene; or its arrays, for the writer.
        frame: the frame.

    Raises:
        UnknownNameError: no such frame.
    """
    noise = twist_noise(scene, frame)
    return np.zeros((6, 6)) if noise is None else noise.covariance
