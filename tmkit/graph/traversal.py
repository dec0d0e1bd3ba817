"""Walks through a scene graph, and the ways between two frames.

A scene is a forest: every frame has one parent, or none. So between two frames of one tree there is exactly one way: up
from the first to their nearest common ancestor, then down to the second. The poses that a relation composes, and the
joints that it depends on, are those along this way.

All functions are queries of one version and take names. Children come in insertion order, so a walk is in the same
order every time. A walk holds the frames that wait, never the whole tree, and no function recurses: a chain of a
hundred thousand frames is walked like any other. Ways cost O(depth log n) for the names, a step of a walk O(log n).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal

from tmkit._core import SceneGraph
from tmkit.errors import DisconnectedError, SceneError

__all__ = ["chain", "common_ancestor", "joints_between", "path", "walk"]


def walk(
    scene: SceneGraph,
    start: str,
    *,
    depth: int | None = None,
    until: Callable[[str], bool] | None = None,
    order: Literal["depth", "breadth"] = "depth",
) -> Iterator[str]:
    """Yield a frame and what hangs below it, parents before children, siblings in insertion order.

    Args:
        scene: the version that is walked; edits made meanwhile are other versions and do not matter.
        start: the first frame.
        depth: how many edges below ``start`` the walk goes: 0 yields ``start`` alone; without end when left out.
        until: a stop test: a frame for which it holds is yielded, and nothing below it is visited. It is asked once of
            each frame that is yielded, also of ``start``.
        order: ``depth`` finishes a subtree before its next sibling, ``breadth`` a level before the next.

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
    scene: SceneGraph, start: str, depth: int | None, until: Callable[[str], bool] | None, by_depth: bool
) -> Iterator[str]:
    waiting = deque([(start, 0)])
    while waiting:
        frame, level = waiting.pop() if by_depth else waiting.popleft()
        yield frame
        if (until is not None and until(frame)) or level == depth:
            continue
        children = scene.children(frame)
        waiting.extend((child, level + 1) for child in (reversed(children) if by_depth else children))


def common_ancestor(scene: SceneGraph, a: str, b: str) -> str:
    """Return the nearest frame that both ``a`` and ``b`` hang below, or are. O(depth log n).

    Raises:
        UnknownNameError: no such frame.
        DisconnectedError: the frames stand in different trees.
    """
    return _meeting(scene, a, b)[0][-1]


def path(scene: SceneGraph, a: str, b: str) -> tuple[str, ...]:
    """Return the frames on the way from ``a`` to ``b``, both included: up to the common ancestor, then down.

    O(depth log n). ``path(scene, b, a)`` is the same backwards; the way from a frame to itself is that frame.

    Raises:
        UnknownNameError: no such frame.
        DisconnectedError: the frames stand in different trees.
    """
    up, down = _meeting(scene, a, b)
    return (*up, *down)


def chain(scene: SceneGraph, base: str, tip: str) -> tuple[str, ...]:
    """Return the frames from ``base`` down to ``tip``, both included, where ``tip`` hangs below ``base`` or is it.

    O(depth log n).

    Raises:
        UnknownNameError: no such frame.
        SceneError: ``tip`` does not hang below ``base``.
    """
    frames = (tip, *scene.ancestors(tip))
    if base not in frames:
        scene.parent(base)  # an unknown name is refused as such
        raise SceneError(f"frame '{tip}' does not hang below '{base}'", base=base, tip=tip)
    return frames[frames.index(base) :: -1]


def joints_between(scene: SceneGraph, a: str, b: str) -> tuple[str, ...]:
    """Return the names of the joints on the way from ``a`` to ``b``, in its order: what their relation depends on.

    A joint that mimics another is named itself. Fixed and free edges have no joint that moves, so none is named.
    O(depth log n).

    Raises:
        UnknownNameError: no such frame.
        DisconnectedError: the frames stand in different trees.
    """
    up, down = _meeting(scene, a, b)
    joints = (scene.joint(frame) for frame in (*up[:-1], *down))  # the edge above the common ancestor is not on the way
    return tuple(joint.name for joint in joints if joint.is_actuated)


def _meeting(scene: SceneGraph, a: str, b: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the frames from ``a`` up to the common ancestor, which is the last, and those from there down to ``b``."""
    up, down = (a, *scene.ancestors(a)), (b, *scene.ancestors(b))
    if up[-1] != down[-1]:
        raise DisconnectedError(
            f"frames '{a}' and '{b}' stand in different trees, of '{up[-1]}' and '{down[-1]}'", target=b, reference=a
        )
    shared = 0  # frames that both have, counted from the root
    while shared < min(len(up), len(down)) and up[-1 - shared] == down[-1 - shared]:
        shared += 1
    return up[: len(up) - shared + 1], down[: len(down) - shared][::-1]
