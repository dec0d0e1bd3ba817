"""What of a hand touches what it holds: fingers that close from two sides, or a suction cup.

Fingers are where the joints of the hand end: of all frames that these joints move, and those that mimic them, the last
ones that have collision shapes. A cup has no joints; it is what is rigidly joined between tip and tool.

Invariants: frames come in the order of the scene; a distance does not depend on which finger is named first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from numpy.typing import ArrayLike

from tmkit._core import CollisionWorld
from tmkit.graph import SceneGraph
from tmkit.robots.chains import rigid_frames
from tmkit.robots.mechanisms import frames_on_joints, movable_frames


@dataclass(frozen=True, slots=True)
class Hand:
    """Fingers that open and close.

    Attributes:
        joints: joints of the hand's own.
        opened: their values when open, radians or metres.
        closed: their values when closed.
        width_open: metres between the fingers when open.
        width_closed: metres between them when closed.
        contact_links: frames that may touch what is held.
    """

    joints: tuple[str, ...]
    opened: Mapping[str, float]
    closed: Mapping[str, float]
    width_open: float
    width_closed: float
    contact_links: tuple[str, ...]

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a :class:`~tmkit.robots.Manipulator` with this hand."""
        return {
            "gripper_joints": self.joints, "gripper_open": self.opened, "gripper_closed": self.closed,
            "width_open": self.width_open, "width_closed": self.width_closed, "contact_links": self.contact_links,
        }  # fmt: skip


def finger_frames(scene: SceneGraph, joints: Sequence[str]) -> tuple[str, ...]:
    """Return the frames with collision shapes below the last joints of a hand, and joints that mimic them."""
    moved = frames_on_joints(scene, joints)
    last = [frame for frame in moved if not any(other in scene.subtree(frame) for other in moved if other != frame)]
    found = {below for frame in last for below in scene.subtree(frame) if any(s.collision for s in scene.shapes(below))}
    return tuple(frame for frame in scene.frame_names if frame in found)


def pair_distance(scene: SceneGraph, q: ArrayLike, *, frame_a: str, frame_b: str) -> float:
    """Return the metres between the collision shapes of two frames; negative when they overlap.

    Args:
        scene: the scene.
        q: (n_joints,) configuration.
        frame_a: one frame.
        frame_b: the other, also when the scene allows the two to touch.

    Returns:
        The signed distance; ``inf`` when one of them has no collision shape, or both move as one.
    """
    movable, scene = movable_frames(scene), scene.forbid_collision(frame_a, frame_b)
    every = CollisionWorld(scene, movable=movable).pairs
    others = {(i, j): -math.inf for i, j, _ in every if {i, j} != {frame_a, frame_b}}
    return float(CollisionWorld(scene, movable=movable, pair_margins=others).distance(q))


def finger_distance(scene: SceneGraph, values: dict[str, float], fingers: Sequence[str]) -> float:
    """Return the distance in metres between the fingers, rounded to 0.1 mm; ``inf`` if there are fewer than two.

    Args:
        values: radians or metres by joint; other joints at 0.
    """
    q = scene.configuration(values)
    nearest = min(
        (pair_distance(scene, q, frame_a=a, frame_b=b) for a, b in combinations(fingers, 2)), default=math.inf
    )
    return nearest if math.isinf(nearest) else max(0.0, round(nearest, 4))


def cup_frames(scene: SceneGraph, tip: str, tool: str | None) -> tuple[str, ...]:
    """Return the frames with collision shapes between a tip and a tool, which touch what a suction cup holds.

    Args:
        tool: frame of the tool; the tip by default.
    """
    frames = (tip,) if tool is None or tool not in scene else (tool, *scene.ancestors(tool))
    below = [frame for frame in rigid_frames(scene, tip) if frame in frames]
    return tuple(frame for frame in below if any(shape.collision for shape in scene.shapes(frame)))
