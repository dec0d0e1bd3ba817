"""Where joints were: histories of joint values, as part of the version.

The history of a joint is a frame of the class ``joint_history`` below the frame that the joint moves: its stamped poses
hold the values, along x for a revolute or prismatic joint (a metre for each radian or metre), as rotations about z for
a continuous one. So it has the limits and the refusals of stamped poses, follows a rename of the joint and goes with
its frame. Between two stamps a value is interpolated linearly, that of a continuous joint the short way round.

Invariants: functions of one version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import SceneGraph
from tmkit.errors import StampError
from tmkit.graph.traversal import edges_between
from tmkit.spatial import Pose

CLASS = "joint_history"
Vector = NDArray[np.float64]


def add_joint_values(
    scene: SceneGraph, values: Mapping[str, float], *, stamp: float, capacity: int | None = None,
    window: float | None = None,
) -> SceneGraph:  # fmt: skip
    """Return the version in which some joints have a further value of a time. O(log n + capacity) for each.

    Values may come in any order.

    Args:
        scene: the scene.
        values: radians or metres by joint name.
        stamp: seconds, on the clock of the other stamps.
        capacity: so many values of each of the joints are kept at most; as before if omitted, and at first 32.
        window: seconds that may lie between the oldest and the newest; as before if omitted, and at first without end.

    Raises:
        UnknownNameError: no such joint.
        ConfigurationError: a joint that mimics another, or a value that is not finite.
        StampError: a value of that stamp is there, or would be dropped at once; a stamp that is not finite.
    """
    scene.configuration(values)  # refuses names and numbers
    holders = {joint: name for name, _, joint, _ in _histories(scene)}
    with scene.edit() as edit:
        for joint, value in values.items():
            frame = scene.joint_frame(joint)
            holder = holders.get(joint)
            if holder is None:
                number, holder = 1, f"{frame} values"
                while holder in scene:
                    number, holder = number + 1, f"{frame} values ({number + 1})"
                edit.add_frame(holder, frame, classes=[CLASS])
            is_round = scene.joint(frame).type == "continuous"
            pose = Pose.from_rpy([0, 0, 0], [0, 0, value]) if is_round else Pose(np.array([value, 0.0, 0.0]))
            edit.add_stamped_pose(holder, pose, stamp=stamp, capacity=capacity, window=window)
    return edit.finish()


def joint_history(scene: SceneGraph, joint: str) -> tuple[Vector, Vector]:
    """Return the stamps (k,) and the values (k,) that are kept of a joint, ascending by stamp; of none, no numbers.

    Args:
        scene: the scene.
        joint: name of the joint; values of a continuous one are in [-pi, pi].

    Raises:
        UnknownNameError: no such joint.
    """
    frame = scene.joint_frame(joint)
    for holder, _, name, is_round in _histories(scene):
        known = scene.stamped_poses(holder) if scene.parent(holder) == frame and name == joint else None
        if known is not None:
            return known.stamps, np.array([_value(pose, is_round) for pose in known.poses])
    return np.zeros(0), np.zeros(0)


def configuration(
    scene: SceneGraph, stamp: float, *, joints: Iterable[str] | None = None, q: ArrayLike | None = None,
    policy: str = "interpolated", extrapolate: float = 0.0,
) -> Vector:  # fmt: skip
    """Return the configuration (n_joints,) at a time, by the histories of the joints. O(log n) for each.

    Radians and metres; of a continuous joint an angle in [-pi, pi].

    Args:
        scene: the scene.
        stamp: seconds.
        joints: the joints whose values are needed; all if omitted. Others are 0 where q is omitted.
        q: (n_joints,) the configuration that gives the values of joints without a history.
        policy: between two stamps, as for ``SceneGraph.pose``.
        extrapolate: so many seconds after the newest value of a joint it may go on at the speed between the last two.

    Raises:
        StampError: the stamp lies outside of the history of a joint; or a joint has none, and q is omitted.
        ConfigurationError: q has the wrong length.
    """
    values: dict[str, float] = {}
    needed = scene.joint_names if joints is None else tuple(joints)
    for holder, frame, joint, is_round in _histories(scene):
        if joint not in needed:
            continue
        try:
            pose = scene.pose(holder, relative_to=frame, stamp=stamp, policy=policy)
        except StampError as error:
            last = getattr(error, "newest", None)
            if last is None or not 0.0 < stamp - last <= extrapolate:
                message = str(error).replace(f"frame '{holder}'", f"joint '{joint}'").replace("pose", "value")
                raise StampError(message, **error.data) from error
            rate = _rate(scene, holder, frame, joint, last) * (stamp - last)
            step = Pose.from_rpy([0, 0, 0], [0, 0, rate]) if is_round else Pose([rate, 0, 0])
            pose = scene.pose(holder, relative_to=frame, stamp=last) @ step
        values[joint] = _value(pose, is_round)
    missing = next((name for name in needed if name not in values), None) if q is None else None
    if missing is not None:
        message = f"joint '{missing}' has no history: add its values with add_joint_values, or pass q"
        raise StampError(message, joint=missing, stamp=stamp)
    return scene.configuration(values, base=q)


def joint_velocities(
    scene: SceneGraph, stamp: float, *, joints: Iterable[str] | None = None, policy: str = "interpolated"
) -> Vector:
    """Return the joint velocities (n_joints,) at a time: differences of the values around it, else 0.

    Args:
        scene: the scene.
        stamp: seconds; at that of a value, the velocity is that before it.
        joints: the joints whose velocities are needed; all that have a history if omitted.
        policy: ``clamped`` stands still outside of the history; else as between the nearest two values.

    Raises:
        StampError: a joint has one value only.
    """
    needed = scene.joint_names if joints is None else tuple(joints)
    histories = [found for found in _histories(scene) if found[2] in needed]
    return scene.configuration(
        {joint: _rate(scene, holder, frame, joint, stamp, policy) for holder, frame, joint, _ in histories}
    )


def driving_joints(scene: SceneGraph, a: str, b: str) -> set[str]:
    """Return the joints on which the pose of two frames of one tree depends, without those that mimic."""
    found = [scene.joint(edge) for edge in edges_between(scene, a, b)]
    moving = [joint for joint in found if joint.type not in ("fixed", "free")]
    return {joint.name if joint.mimic is None else joint.mimic.joint for joint in moving}


def segment(stamps: Vector, stamp: float) -> tuple[float, float]:
    """Return the two stamps around a time, of which the second may be that time; the nearest two outside of all."""
    at = min(max(int(stamps.searchsorted(stamp)), 1), len(stamps) - 1)
    return float(stamps[at - 1]), float(stamps[at])


def _rate(scene: SceneGraph, holder: str, frame: str, joint: str, stamp: float, policy: str = "") -> float:
    known = scene.stamped_poses(holder)
    stamps = np.zeros(0) if known is None else known.stamps
    if len(stamps) < 2:
        raise StampError(f"joint '{joint}' has {len(stamps)} stamped values: its velocity needs two", joint=joint)
    if policy == "clamped" and not stamps[0] <= stamp <= stamps[-1]:
        return 0.0
    first, second = segment(stamps, stamp)
    twist = scene.twist_from_stamps(holder, relative_to=frame, first=first, second=second)
    return float(twist[0] + twist[5])  # one of them is 0


def _histories(scene: SceneGraph) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the frames that are histories, with frame and name of the joint, and whether it is a continuous one."""
    for holder in scene.frames_of_class(CLASS):
        frame = scene.parent(holder)
        joint = None if frame is None else scene.joint(frame)
        if frame is not None and joint is not None and joint.name in scene.joint_names:
            yield holder, frame, joint.name, joint.type == "continuous"


def _value(pose: Pose, is_round: bool) -> float:
    return float(pose.log()[5] if is_round else pose.translation[0])
