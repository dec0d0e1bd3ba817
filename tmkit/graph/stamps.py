"""Stamps of attributes, and of the poses along a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tmkit._core import FrameSpecification, Group, SceneGraph, common_stamps
from tmkit.errors import StampError
from tmkit.graph.traversal import edges_between


@dataclass(frozen=True, slots=True)
class Stamped:
    """A value to set as an attribute, and when it was found: finite seconds on any clock."""

    value: Any
    stamp: float


def stamped_attributes(owner: FrameSpecification | Group) -> dict[str, Any]:
    """Return the attributes of a frame or a group as they can be set again, with their stamps."""
    stamps = owner.attribute_stamps
    return {key: Stamped(value, stamps[key]) if key in stamps else value for key, value in owner.attributes.items()}


def latest_common_stamp(scene: SceneGraph, frame: str, *, relative_to: str | None = None) -> float:
    """Return the newest stamp at which all stamped edges between two frames have a pose, in seconds. O(depth log n).

    It is the *latest common time* of ROS's tf2, a stamp for ``scene.pose``. Edges without stamped poses do not count.

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
    stamped = [(found.stamps, name) for name in sorted(edges) if (found := scene.stamped_poses(name)) is not None]
    if empty := [name for stamps, name in stamped if not len(stamps)]:
        raise StampError(f"frame '{empty[0]}' has no stamped pose yet")
    newest, last = min((stamps[-1], name) for stamps, name in stamped)
    oldest, first = max((stamps[0], name) for stamps, name in stamped)
    raise StampError(f"the newest pose of '{last}' is of {newest:g} s, the oldest of '{first}' of {oldest:g} s")
