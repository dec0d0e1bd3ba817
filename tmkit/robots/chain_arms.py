"""Arms of chains of joints, for robots without a description.

The arm of a frame moves all joints between the frame and its root. Its hand holds any object that
is attached to it, without fingers: forces and payloads have no limits.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.graph import SceneGraph
from tmkit.robots.manipulator import Manipulator
from tmkit.robots.mechanisms import movable_frames

_UNLIMITED_FORCE = 1e9
"""Force or effort that no motion needs [N or N m]."""


def chain_arms(
    scene: SceneGraph, frames: Iterable[str], *, q: ArrayLike | None = None
) -> tuple[Manipulator, ...]:
    """Return the arms whose hands are among some frames, one for each chain of joints.

    Movable objects are not hands. A frame above another is part of the same arm.

    Args:
        scene: scene with the robot.
        frames: frames in the order of the arms.
        q: (n_joints,) ready configuration [rad or m]. Defaults to zero, or the nearest limit.
    """
    movable = {*movable_frames(scene)}
    chains = {name: _chain(scene, name) for name in frames if name not in movable}
    chains = {name: joints for name, joints in chains.items() if joints}
    above = {ancestor for name in chains for ancestor in scene.ancestors(name)}
    start = np.zeros(len(scene.joint_names)) if q is None else np.array(q, dtype=float)
    return tuple(
        _arm(scene, tip, joints, start) for tip, joints in chains.items() if tip not in above
    )


def _chain(scene: SceneGraph, tip: str) -> tuple[str, ...]:
    """Return the joints that move a frame, the first at the root."""
    path = (tip, *scene.ancestors(tip))
    joints = [scene.joint(frame) for frame in reversed(path)]
    return tuple(joint.name for joint in joints if joint.is_actuated and joint.mimic is None)


def _arm(
    scene: SceneGraph, tip: str, joints: tuple[str, ...], q: NDArray[np.float64]
) -> Manipulator:
    """Return the arm of a chain of joints to a tip, with the ready configuration ``q``."""
    rows = zip(scene.joint_names, q, scene.joint_limits, strict=True)
    values = {name: float(min(max(value, low), high)) for name, value, (low, high) in rows}
    return Manipulator(
        name=tip,
        base=scene.parent(scene.joint_frame(joints[0])) or tip,
        tip=tip,
        tool=tip,
        joints=joints,
        ready={joint: values[joint] for joint in joints},
        effort=dict.fromkeys(joints, _UNLIMITED_FORCE),
        gripper_kind="suction",
        grip_force=_UNLIMITED_FORCE,
    )
