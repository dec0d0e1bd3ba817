"""Two versions of a scene beside each other in one scene, with the difference coloured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.graph import SceneGraph, diff
from tmkit.spatial import Pose
from tmkit.visualization.scene_model import scene_model
from tmkit.visualization.scene_nodes import TO_THE_RIGHT, bounds

_GREEN, _RED, _ORANGE = (0.16, 0.65, 0.30, 1.0), (0.86, 0.12, 0.12, 1.0), (0.95, 0.55, 0.10, 1.0)
_PALE = (0.88, 0.89, 0.90, 1.0)
_GAP = 1.05  # distance of the two, in widths


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Two versions in one scene.

    Attributes:
        scene: both, their names after ``before/`` and ``after/``.
        q: (n_joints,) configuration.
        paint: colours by frame.
        caption: what differs, in words.
    """

    scene: SceneGraph
    q: NDArray[np.float64]
    paint: Mapping[str, tuple[float, float, float, float]]
    caption: str


def side_by_side(before: SceneGraph, after: SceneGraph, *, q: ArrayLike | None = None) -> SideBySide:
    """Put two versions beside each other as the first view has it, coloured by what changed.

    Args:
        before: the version on the left.
        after: the version on the right.
        q: (n_joints,) configuration of both; zero by default. Joints that only one has are at zero.
    """
    at = before.zero_configuration() if q is None else np.asarray(q, dtype=float)
    values = dict(zip(before.joint_names, at.tolist(), strict=True))
    low, high = bounds(scene_model(before), before.at(at).poses)
    shift = Pose(_GAP * float((high - low) @ np.abs(TO_THE_RIGHT)) * TO_THE_RIGHT)
    both = SceneGraph().mount(before, "world", prefix="before/").mount(after, "world", prefix="after/", pose=shift)
    joints = {f"{side}/{name}": value for side in ("before", "after") for name, value in values.items()}
    difference = diff(before, after)
    paint = dict.fromkeys(both.frame_names, _PALE)
    names: dict[str, list[str]] = {"added": [], "removed": [], "changed": []}
    for frame in difference.frames:
        if frame.before is None and frame.after is not None:
            _paint(paint, after, frame.after.name, "after/", _GREEN)
            names["added"].append(frame.after.name)
        elif frame.after is None and frame.before is not None:
            _paint(paint, before, frame.before.name, "before/", _RED)
            names["removed"].append(frame.before.name)
        elif frame.after is not None and frame.before is not None:
            _paint(paint, before, frame.before.name, "before/", _ORANGE)
            _paint(paint, after, frame.after.name, "after/", _ORANGE)
            names["changed"].append(f"{frame.after.name} ({', '.join(frame.fields)})")
    caption = "; ".join(f"{kind}: {', '.join(some)}" for kind, some in names.items() if some) or "No difference"
    known = {name: value for name, value in joints.items() if name in both.joint_names}
    return SideBySide(both, both.configuration(known), paint, caption)


def _paint(
    paint: dict[str, tuple[float, float, float, float]], scene: SceneGraph, frame: str, prefix: str,
    color: tuple[float, float, float, float],
) -> None:  # fmt: skip
    for name in scene.subtree(frame):
        paint[prefix + name] = color
