"""What moved between two versions of a scene.

The difference of two versions says which edges changed (:func:`tmkit.graph.diff`). A frame may have moved only when its
own edge or one above it did, so only what hangs below changed edges is looked at, and of that only what stands
elsewhere is named: a frame that was taken from a shelf and put back has not moved.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from tmkit._core import Kinematics, SceneGraph, diff
from tmkit.errors import SceneError

__all__ = ["moved_frames"]

_EDGE_FIELDS = {"parent", "pose", "joint"}


def moved_frames(
    a: SceneGraph, b: SceneGraph, *, q: ArrayLike | None = None, metres: float = 0.0, radians: float = 0.0
) -> tuple[str, ...]:
    """Return the frames of both versions that stand elsewhere relative to their root in ``b`` than in ``a``.

    Frames are matched by id, so one that was renamed is still the same; names are those in ``b``, in insertion order. A
    frame that came to stand in another tree has moved. O(changes log n + frames below them), after forward kinematics.

    Args:
        a: the one version.
        b: the other, made from ``a`` or from the same scene as ``a``.
        q: configuration (n_joints,) of both; may be left out when they have no joints.
        metres: a frame whose origin is no farther off has not moved, ...
        radians: ... when it is not turned by more than this, either.

    Raises:
        SceneError: the versions have different joints, so that one configuration does not speak of both.
        ConfigurationError: q is missing or has the wrong length.
    """
    if a.joint_names != b.joint_names:
        raise SceneError("the two versions have different joints, so one configuration does not speak of both")
    moved: dict[int, str] = {}
    before, after = a.at(q), b.at(q)
    seen: set[str] = set()
    for frame in diff(a, b).frames:
        if frame.before is None or frame.after is None or _EDGE_FIELDS.isdisjoint(frame.fields):
            continue
        for name in b.subtree(frame.after.name) if frame.after.name not in seen else ():
            seen.add(name)
            number = b.frame_id(name)
            old_name = a.frame_of_id(number)
            if old_name is not None and _stands_elsewhere(before, old_name, after, name, metres, radians):
                moved[number] = name
    return tuple(name for _, name in sorted(moved.items()))


def _stands_elsewhere(
    before: Kinematics, old_name: str, after: Kinematics, name: str, metres: float, radians: float
) -> bool:
    a, b = before.scene, after.scene
    if a.frame_id(a.root(old_name)) != b.frame_id(b.root(name)):
        return True
    distance, angle = before.pose(old_name).distance(after.pose(name))
    return distance > metres or angle > radians
