"""Walks through a scene graph.

A walk goes down from a frame, and stops where it is told to; a chain leads from a frame down to another. The way
between any two frames is ``scene.path``. Children come in insertion order. A walk holds the frames that wait, never the
whole tree, and nothing recurses. A chain costs O(depth log n), a step of a walk O(log n).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal

from tmkit._core import SceneGraph
from tmkit.errors import SceneError


def walk(
    scene: SceneGraph, start: str, *, depth: int | None = None, until: Callable[[str], bool] | None = None,
    order: Literal["depth", "breadth"] = "depth",
) -> Iterator[str]:  # fmt: skip
    """Yield a frame and its descendants, parents before children, siblings in insertion order.

    Args:
        scene: the version that is walked; edits made meanwhile are other versions and do not matter.
        start: the first frame.
        depth: how many edges below ``start`` the walk goes: 0 yields ``start`` alone; without end by default.
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
