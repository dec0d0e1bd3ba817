"""What moved between two versions of a scene.

The difference of two versions says which edges changed (:func:`tmkit.graph.diff`). A frame may have moved only when its
own edge or one above it did, so only descendants of changed edges are compared, and of that only what stands elsewhere
is named: a frame that was taken from a shelf and put back has not moved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import SceneGraph, diff
from tmkit.errors import ConfigurationError, SceneError
from tmkit.spatial import Pose
from tmkit.spatial.plain import plain_number

_EDGE_FIELDS = {"parent", "pose", "joint"}
_WORTH_A_SWEEP = 8  # frames whose poses a sweep gives in the time of one pose that is computed alone


def moved_frames(
    a: SceneGraph, b: SceneGraph, *, q: ArrayLike | None = None, metres: float = 0.0, radians: float = 0.0
) -> tuple[str, ...]:
    """Return the frames of both versions that stand elsewhere relative to their root in ``b`` than in ``a``.

    Frames are matched by id, so one that was renamed is still the same; names are those in ``b``, in insertion order. A
    frame that came to stand in another tree has moved. O(depth log n) for each frame below a change; O(n) at most.

    Args:
        a: the one version.
        b: the other, made from ``a`` or from the same scene as ``a``.
        q: configuration (n_joints,) of both; may be omitted if they have no joints.
        metres: a frame whose origin is no farther off has not moved, ...
        radians: ... when it is not turned by more than this, either.

    Raises:
        SceneError: the versions have different joints: one configuration does not fit both.
        ConfigurationError: q is missing or has the wrong length.
    """
    if a.joint_names != b.joint_names:
        raise SceneError("the two versions have different joints, so one configuration does not speak of both")
    if q is None and b.joint_names:
        raise ConfigurationError("the scenes have joints, so moved_frames() needs a configuration q")
    values = b.configuration({}, base=q)  # refuses another length
    metres, radians = plain_number(metres, "metres"), plain_number(radians, "radians")
    candidates: dict[str, int] = {}  # frames below changed edges, with their ids
    for frame in diff(a, b).frames:
        if frame.before is None or frame.after is None or _EDGE_FIELDS.isdisjoint(frame.fields):
            continue
        if frame.after.name not in candidates:
            candidates |= {name: b.frame_id(name) for name in b.subtree(frame.after.name)}
    before, after = (_poses(scene, values, len(candidates)) for scene in (a, b))
    moved: list[tuple[int, str]] = []
    for name, number in candidates.items():
        old_name = a.frame_of_id(number)
        if old_name is None:
            continue
        is_elsewhere = a.frame_id(a.root(old_name)) != b.frame_id(b.root(name))
        if not is_elsewhere:
            distance, angle = before(old_name).distance(after(name))
            is_elsewhere = distance > metres or angle > radians
        if is_elsewhere:
            moved.append((number, name))
    return tuple(name for _, name in sorted(moved))


def _poses(scene: SceneGraph, q: NDArray[np.float64], count: int) -> Callable[[str], Pose]:
    """Return root_from_frame by name: one sweep over all frames where ``count`` of them are wanted and that is less."""
    if count * _WORTH_A_SWEEP > len(scene):
        return scene.at(q).pose
    return lambda name: scene.pose(name, relative_to=scene.root(name), q=q)
