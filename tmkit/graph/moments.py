"""Scene at a time: poses and motions of stamped edges, and joint values.

Any query at a stamp is a query of the version at that time (:func:`at_stamp`); see
``docs/concepts/arrays_and_time.md``. Edges without stamped poses keep their present poses and
errors.

**Errors of stamped poses.** A stamped pose with a covariance has an error independent of those at
other stamps. Between two stamps the errors are carried along the interpolation to first order
(``StampedPoses.gaussian_at``). The newest pose with a covariance shares its error with the edge,
unless the edge has another covariance. A pose without one has the error of the edge.

**Extrapolation.** After the newest stamped pose T, the twist V of twist edges may extend an edge by
the time dt to ``T exp(V dt)``. Its error is that of :mod:`tmkit.graph.semantic_edges.integration`.
White noise of the acceleration may be added, since a real twist is not constant (Bar-Shalom, Li and
Kirubarajan, *Estimation with applications to tracking and navigation*, 2001, section 6.2.2). With
the power spectral density s, the variance of each direction grows by ``s dt^3 / 3``. The noise
model is that of the acceleration, not of the twist, since finite forces do not change a velocity
abruptly. Between two poses, T seconds apart, the velocity is unknown. The same model then has the
variance ``s T^3 u^2 (1 - u)^2 / 3`` at the fraction u of T, which is zero at both ends.

**Joint histories.** The history of a joint is a frame of the class ``joint_history`` below the
frame that the joint moves. Its stamped poses store the values. A revolute or prismatic joint has
them as translations along x, one metre for a radian or metre; a continuous joint has them as
rotations about z. A history therefore has the limits and checks of stamped poses, follows a rename
of the joint, and is removed with its frame. Values between two stamps are interpolated linearly,
and for a continuous joint along the shorter arc.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import EdgeNoise, NoiseSource, SceneGraph, common_stamps, right_jacobian
from tmkit.errors import (
    ConfigurationError,
    DisconnectedError,
    NumberOverflowError,
    SceneError,
    StampError,
)
from tmkit.graph.observation_frames import free_name
from tmkit.graph.rigid import all_twist_driven_edges, twist_driven_edges
from tmkit.graph.traversal import edges_between, leading_joint
from tmkit.spatial import GaussianPose, Pose, adjoint

Array = NDArray[np.float64]

Maps = dict[NoiseSource, Array]
"""Map (6, dimension) of each noise source to an error."""

CLASS = "joint_history"
"""Class of the frames that are histories of joints."""


@dataclass(frozen=True, slots=True)
class When:
    """Time of a query, with the interpolation and extrapolation of stamped poses.

    Args:
        stamp: the time [s].
        policy: interpolation between two stamps, as for ``SceneGraph.pose``.
        extrapolate: time after its newest stamped pose up to which an edge is extrapolated by its
            twist edge [s].
        acceleration_noise: power spectral densities of the acceleration of edges that are
            extrapolated, or interpolated between two stamps, linear and angular [m^2/s^3,
            rad^2/s^3].

    Raises:
        SceneError: if ``extrapolate`` or ``acceleration_noise`` is negative or not finite.
    """

    stamp: float
    policy: str = "interpolated"
    extrapolate: float = 0.0
    acceleration_noise: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        values = (self.extrapolate, *self.acceleration_noise)
        if not all(math.isfinite(value) and value >= 0.0 for value in values):
            raise SceneError(
                "extrapolate and acceleration_noise must be finite numbers of at least 0, not"
                f" {self.extrapolate} and {self.acceleration_noise}"
            )


def at_stamp(
    scene: SceneGraph, stamp: float | When, *, frames: Iterable[str] | None = None
) -> SceneGraph:
    """Return the version in which stamped edges have their poses at a time.

    O(n), or O(log n + k) for each named frame with k stamped poses.

    Args:
        scene: the scene.
        stamp: the time [s], or :class:`When` with interpolation and extrapolation.
        frames: the frames whose edges change; by default all with stamped poses.

    Raises:
        UnknownNameError: if a frame or the policy is unknown.
        StampError: if the stamp is outside of the history of an edge, or no twist edge drives an
            extrapolated edge.
    """
    when = _to_when(stamp)
    with scene.edit() as edit:
        for frame, parent, newest in _edges_with_stamps(scene, frames):
            dt = when.stamp - newest
            is_extrapolated = 0.0 < dt <= when.extrapolate
            stamp = newest if is_extrapolated else when.stamp
            pose = _pose(scene, frame, parent, stamp, when.policy)
            own = _noise(scene, frame, stamp, when.policy)
            noise: EdgeNoise | Maps | None = own
            if is_extrapolated:
                twist, error = _twist(scene, frame, parent, dt)
                pose, noise = move_edge(pose, own, twist, error, dt, frame=frame)
            if any(when.acceleration_noise):
                cubed = dt**3 if is_extrapolated else _interpolation_growth(scene, frame, when)
                noise = noise if isinstance(noise, dict) else sum_errors((np.eye(6), noise))
                densities = np.repeat(when.acceleration_noise, 3)
                source = NoiseSource(6, f"acceleration of {frame}")
                noise[source] = np.diag(np.sqrt(densities * cubed / 3.0))
            edit.set_pose(frame, pose)
            edit.set_noise(frame, noise)
    return edit.finish()


def _interpolation_growth(scene: SceneGraph, frame: str, when: When) -> float:
    """Return T^3 u^2 (1 - u)^2 [s^3] between two stamps, else 0."""
    history = scene.stamped_poses(frame)
    stamps = np.zeros(0) if history is None else history.stamps
    is_between = len(stamps) > 1 and stamps[0] < when.stamp < stamps[-1]
    if not is_between or when.policy in ("closest", "preceding"):
        return 0.0
    start, end = segment(stamps, when.stamp)
    return (when.stamp - start) ** 2 * (end - when.stamp) ** 2 / (end - start)


def _to_when(stamp: float | When) -> When:
    return stamp if isinstance(stamp, When) else When(stamp)


def _edges_with_stamps(
    scene: SceneGraph, frames: Iterable[str] | None
) -> Iterator[tuple[str, str, float]]:
    """Yield (frame, parent, newest stamp) of each edge with stamped poses; inf for an empty one."""
    for frame in scene.frame_names if frames is None else frames:
        parent = scene.parent(frame)
        interval = None if parent is None else common_stamps(scene, frame, parent)
        if interval is not None and parent is not None and CLASS not in scene.classes(frame):
            yield frame, parent, interval[1] if interval[1] > -math.inf else math.inf


def _pose(scene: SceneGraph, frame: str, parent: str, stamp: float, policy: str) -> Pose:
    """Return the pose of a stamped edge at joint value 0, or raise StampError if there is none."""
    try:
        return scene.pose(frame, relative_to=parent, stamp=stamp, policy=policy)
    except ConfigurationError:  # the edge has a joint, which is at value 0 here
        history = scene.stamped_poses(frame)
        assert history is not None, "the edge has stamped poses"
        return history.at(stamp, policy=policy)


def _noise(scene: Any, frame: str, stamp: float, policy: str) -> EdgeNoise | None:
    """Return the error of a stamped edge at a time, None if it is exact."""
    return scene._stamped_noise(frame, stamp, policy)  # type: ignore[no-any-return]


def _twist(scene: Any, frame: str, parent: str, dt: float) -> tuple[Array, EdgeNoise | None]:
    """Return the twist of an edge and its noise by twist edges, or raise StampError."""
    result = None
    if _is_twist_driven(scene, frame):
        result = scene._uncertain_twist(frame, scene.body(frame), scene.body(parent), frame)
    if result is None:
        reason = (
            f"no twist edge leads over frame '{frame}', so its pose {dt:g} s after the newest is"
            " unknown"
        )
        repair = "add one with set_twist, such as the result of twist_from_stamps"
        raise StampError(f"{reason}; {repair}", frame=frame)
    return result  # type: ignore[no-any-return]


def _is_twist_driven(scene: SceneGraph, frame: str) -> bool:
    """Return whether twist edges drive the edge above a frame."""
    return bool(scene.twist_frames) and frame in twist_driven_edges(scene, frame)


def twists_between(scene: SceneGraph, start: str, end: str) -> list[tuple[str, str]]:
    """Return the twist edges on the path between two bodies, as frames before and after each.

    O(t depth) for t twist edges.
    """
    driven_edges = all_twist_driven_edges(scene)

    def tops(body: str) -> set[str]:
        """Return the topmost frames that joints and fixed edges connect to a body."""
        result = set()
        for frame in scene.frames_of_body(body):
            while frame not in driven_edges and (parent := scene.parent(frame)) is not None:
                frame = parent
            result.add(frame)
        return result

    # Collect the links between topmost frames, in both directions.
    links: list[tuple[list[tuple[str, str]], set[str], set[str]]] = []
    for head in scene.twist_frames:
        edge = scene.twist_edge(head)
        assert edge is not None, "it is among the frames with twists"
        candidates = scene.frames_of_body(edge[0])
        tail = next((frame for frame in candidates if scene.root(frame) == scene.root(head)), head)
        tail_tops, head_tops = tops(edge[0]), tops(scene.body(head))
        links.append(([(tail, head)], tail_tops, head_tops))
        links.append(([(head, tail)], head_tops, tail_tops))
    if len(scene.root_names) > 1:  # a body with frames in several trees joins these
        for name in scene.body_names:
            body_tops = tops(name)
            if len(body_tops) > 1:
                links.append(([], body_tops, body_tops))

    # Search breadth first for the end.
    paths: dict[str, list[tuple[str, str]]] = {top: [] for top in tops(start)}
    queue = [*paths]
    for frame in queue:
        for step, sources, targets in links:
            new_tops = targets.difference(paths) if frame in sources else ()
            paths |= dict.fromkeys(new_tops, paths[frame] + step)
            queue += new_tops
    return next((paths[top] for top in tops(end) if top in paths), [])


def move_edge(
    pose: Pose,
    noise: EdgeNoise | None,
    twist: Array,
    error: EdgeNoise | None,
    dt: float,
    *,
    frame: str,
) -> tuple[Pose, EdgeNoise | Maps | None]:
    """Return pose and noise of an edge after a constant twist.

    Args:
        pose: pose of the edge.
        noise: noise of the pose.
        twist: (6,) twist at the origin and in the axes of the frame [m/s, rad/s].
        error: noise of the twist.
        dt: duration [s].
        frame: name of the frame, for messages.

    Raises:
        NumberOverflowError: if the motion is not finite.
    """
    with np.errstate(over="ignore"):
        motion = twist * dt
    if not np.isfinite(motion).all():
        raise NumberOverflowError(
            f"the motion of '{frame}' in {dt:g} s is beyond the range of floating-point numbers"
        )
    new_noise: EdgeNoise | Maps | None = noise
    if error is not None or (noise is not None and motion.any()):
        to_new_axes = adjoint(Pose.exp(-motion))
        new_noise = sum_errors((to_new_axes, noise), (dt * right_jacobian(motion), error))
    return pose @ Pose.exp(motion), new_noise


def sum_errors(*parts: tuple[Array, EdgeNoise | Maps | None]) -> Maps:
    """Return the sum of errors, each multiplied by a (6, 6) matrix, source by source."""
    maps: Maps = {}
    for matrix, noise in parts:
        if noise is None:
            continue
        for source in noise if isinstance(noise, dict) else noise.sources:
            source_map = noise[source] if isinstance(noise, dict) else noise.map(source)
            maps[source] = maps.get(source, np.zeros((6, source.dimension))) + matrix @ source_map
    return maps


def moment(
    scene: SceneGraph,
    stamp: float | When,
    names: Iterable[str],
    *,
    bodies: tuple[str, str] | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> tuple[SceneGraph, ArrayLike | None, ArrayLike | None]:
    """Return the version at a time as far as a query requires it, with q and qd at that time.

    Args:
        scene: the scene.
        stamp: the time [s], or :class:`When`.
        names: the frames of the query.
        bodies: the two bodies of a query of relative motion.
        q: (n_joints,) configuration. Defaults to that of the histories of joints on the path.
        qd: (n_joints,) joint velocities. Defaults to those of the histories of joints on the path.
    """
    when = _to_when(stamp)
    first, *rest = dict.fromkeys(names)
    if bodies is not None:
        rest += [frame for body in bodies for frame in scene.frames_of_body(body)[:1]]
        steps = twists_between(scene, *bodies) if scene.twist_frames else []
        rest += [frame for step in steps for frame in step]

    # Collect the edges and joints on the paths.
    edges: dict[str, None] = {}
    is_disconnected = False
    joints: set[str] = set()
    try:
        for frame in dict.fromkeys(rest):
            edges |= dict.fromkeys(edges_between(scene, first, frame))
            joints |= driving_joints(scene, first, frame)
    except DisconnectedError:  # twist edges join the trees, or the query raises the error
        is_disconnected = bodies is not None
    edge_selection = None if is_disconnected else edges

    # Move the edges, and compute missing joint values.
    version = at_stamp(scene, when, frames=edge_selection)
    has_histories = bool(joints and scene.frames_of_class(CLASS))
    if has_histories and q is None:
        q = configuration(
            scene, when.stamp, joints=joints, policy=when.policy, extrapolate=when.extrapolate
        )
    if bodies is None:
        return version, q, qd
    if has_histories and qd is None:
        qd = joint_velocities(scene, when.stamp, joints=joints, policy=when.policy)
    with version.edit() as edit:
        for frame, parent, _ in _edges_with_stamps(scene, edge_selection):
            if not _is_twist_driven(scene, frame):
                motion = _twist_from_stamps(
                    scene, frame, version.local_pose(frame), when.stamp, when.policy
                )
                edit.set_twist(frame, motion, relative_to_body=scene.body(parent))
    return edit.finish(), q, qd


def _twist_from_stamps(
    scene: SceneGraph, frame: str, pose: Pose, stamp: float, policy: str
) -> Array:
    """Return the twist (6,) of an edge by its stamped poses, at its frame, or raise StampError."""
    history = scene.stamped_poses(frame)
    stamps = np.zeros(0) if history is None else history.stamps
    if history is None or len(stamps) < 2:
        message = (
            f"frame '{frame}' has {len(stamps)} stamped poses and no twist edge: its motion"
            " needs two"
        )
        raise StampError(message, frame=frame, stamp=stamp)
    if not stamps[0] <= stamp <= stamps[-1]:  # policy "clamped"
        return np.zeros(6)
    start, end = segment(stamps, stamp)
    start_pose, end_pose = history.at(start), history.at(end)
    twist = np.array((start_pose.inverse() @ end_pose).log()) / (end - start)
    if policy != "screw":  # the origin moves along a straight line
        velocity = (end_pose.translation - start_pose.translation) / (end - start)
        twist[:3] = pose.inverse().rotate(velocity)
    return twist


def gaussian_pose(
    scene: SceneGraph,
    frame: str,
    *,
    relative_to: str | None = None,
    stamp: float | When,
    q: ArrayLike | None = None,
) -> GaussianPose:
    """Return the pose of one frame relative to another at a time, with its covariance.

    Args:
        scene: the scene.
        frame: the frame.
        relative_to: the reference frame; the root of its tree if omitted.
        stamp: as for :func:`at_stamp`.
        q: (n_joints,) configuration. Defaults to that of the histories of the joints.

    Raises:
        UnknownNameError, DisconnectedError, ConfigurationError: if ``SceneGraph.gaussian_pose``
            raises it.
        StampError: if :func:`at_stamp` raises it.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    version, q, _ = moment(scene, stamp, (frame, reference), q=q)
    return version.gaussian_pose(frame, relative_to=reference, q=q)


def pose_through(
    scene: SceneGraph,
    frame: str,
    *,
    stamp: float,
    relative_to: str,
    relative_stamp: float,
    fixed: str,
    policy: str = "interpolated",
) -> Pose:
    """Return the pose of a frame at one time relative to another frame at another time.

    It corresponds to ``lookup_transform_full`` of tf2.

    Args:
        scene: the scene.
        frame: the frame.
        stamp: time of the frame [s].
        relative_to: the reference frame.
        relative_stamp: time of the reference frame [s].
        fixed: the frame that is fixed between the two times, such as the map.
        policy: interpolation between two stamps, as for ``SceneGraph.pose``.

    Raises:
        UnknownNameError, DisconnectedError, StampError: if ``SceneGraph.pose`` raises it, also for
            joints on the path.
    """

    def pose(target: str, reference: str, time: float) -> Pose:
        version, q, _ = moment(scene, When(time, policy), (target, reference))
        return version.pose(target, relative_to=reference, q=q)

    return pose(fixed, relative_to, relative_stamp) @ pose(frame, fixed, stamp)


def add_joint_values(
    scene: SceneGraph,
    values: Mapping[str, float],
    *,
    stamp: float,
    capacity: int | None = None,
    window: float | None = None,
) -> SceneGraph:
    """Return the version with further values of joints at a time. O(log n + capacity) for each.

    Values may come in any order of time.

    Args:
        scene: the scene.
        values: joint values by name [rad or m].
        stamp: time of the values on the clock of the other stamps [s].
        capacity: largest number of stored values for each joint. Defaults to the previous one,
            at first 32.
        window: largest time between the oldest and the newest value [s]. Defaults to the previous
            one, at first infinity.

    Raises:
        UnknownNameError: if a joint is unknown.
        ConfigurationError: if a joint mimics another, or a value is not finite.
        StampError: if the joint has a value at that stamp, the value would be dropped immediately,
            or the stamp is not finite.
    """
    scene.configuration(values)  # raises for invalid names and numbers
    holders = {joint: name for name, _, joint, _ in _histories(scene)}
    with scene.edit() as edit:
        for joint, value in values.items():
            frame = scene.joint_frame(joint)
            holder = holders.get(joint)
            if holder is None:
                holder = free_name(scene, f"{frame} values")
                edit.add_frame(holder, frame, classes=[CLASS])
            is_continuous = scene.joint(frame).type == "continuous"
            pose = Pose(np.array([value, 0.0, 0.0]))
            if is_continuous:
                pose = Pose.from_rpy([0, 0, 0], [0, 0, value])
            edit.add_stamped_pose(holder, pose, stamp=stamp, capacity=capacity, window=window)
    return edit.finish()


def joint_history(scene: SceneGraph, joint: str) -> tuple[Array, Array]:
    """Return the stored stamps (k,) [s] and values (k,) [rad or m] of a joint, sorted by stamp.

    Args:
        scene: the scene.
        joint: name of the joint. Values of a continuous joint are in [-pi, pi].

    Raises:
        UnknownNameError: if the joint is unknown.
    """
    frame = scene.joint_frame(joint)
    for holder, _, name, is_continuous in _histories(scene):
        if scene.parent(holder) != frame or name != joint:
            continue
        history = scene.stamped_poses(holder)
        if history is not None:
            values = [_value(pose, is_continuous) for pose in history.poses]
            return history.stamps, np.array(values)
    return np.zeros(0), np.zeros(0)


def configuration(
    scene: SceneGraph,
    stamp: float,
    *,
    joints: Iterable[str] | None = None,
    q: ArrayLike | None = None,
    policy: str = "interpolated",
    extrapolate: float = 0.0,
) -> Array:
    """Return the configuration (n_joints,) at a time [rad or m], by the histories of the joints.

    Values of continuous joints are in [-pi, pi]. O(log n) for each joint.

    Args:
        scene: the scene.
        stamp: the time [s].
        joints: the required joints; all if omitted. Other joints are 0 if q is omitted.
        q: (n_joints,) configuration with the values of joints without a history.
        policy: interpolation between two stamps, as for ``SceneGraph.pose``.
        extrapolate: time after its newest value up to which a joint is extrapolated, at the
            velocity between the last two values [s].

    Raises:
        StampError: if the stamp is outside of the history of a joint, or a joint has no history and
            q is omitted.
        ConfigurationError: if q has the wrong length.
    """
    values: dict[str, float] = {}
    required = scene.joint_names if joints is None else tuple(joints)
    for holder, frame, joint, is_continuous in _histories(scene):
        if joint not in required:
            continue
        try:
            pose = scene.pose(holder, relative_to=frame, stamp=stamp, policy=policy)
        except StampError as error:
            last = getattr(error, "newest", None)
            if last is None or not 0.0 < stamp - last <= extrapolate:
                message = str(error).replace(f"frame '{holder}'", f"joint '{joint}'")
                raise StampError(message.replace("pose", "value"), **error.data) from error
            change = _rate(scene, holder, frame, joint, last) * (stamp - last)
            step = Pose([change, 0, 0])
            if is_continuous:
                step = Pose.from_rpy([0, 0, 0], [0, 0, change])
            pose = scene.pose(holder, relative_to=frame, stamp=last) @ step
        values[joint] = _value(pose, is_continuous)
    missing_joints = [name for name in required if name not in values] if q is None else []
    if missing_joints:
        joint = missing_joints[0]
        message = f"joint '{joint}' has no history: add its values with add_joint_values, or pass q"
        raise StampError(message, joint=joint, stamp=stamp)
    return scene.configuration(values, base=q)


def joint_velocities(
    scene: SceneGraph,
    stamp: float,
    *,
    joints: Iterable[str] | None = None,
    policy: str = "interpolated",
) -> Array:
    """Return the joint velocities (n_joints,) at a time [rad/s or m/s], by finite differences.

    Joints without a history have velocity 0.

    Args:
        scene: the scene.
        stamp: the time [s]. At the stamp of a value, the velocity is that before the value.
        joints: the required joints; all with a history if omitted.
        policy: outside of the history, ``clamped`` gives 0. Any other policy gives the velocity
            between the nearest two values.

    Raises:
        StampError: if a joint has a single value.
    """
    required = scene.joint_names if joints is None else tuple(joints)
    velocities = {
        joint: _rate(scene, holder, frame, joint, stamp, policy)
        for holder, frame, joint, _ in _histories(scene)
        if joint in required
    }
    return scene.configuration(velocities)


def latest_values(scene: SceneGraph) -> tuple[Array, Array]:
    """Return the newest value of each joint and its stamp, each (n_joints,).

    A joint without a history has the value NaN and the stamp -inf. O(n_joints log capacity).

    Args:
        scene: the scene.
    """
    values = np.full(len(scene.joint_names), np.nan)
    stamps = np.full(len(scene.joint_names), -np.inf)
    columns = {name: index for index, name in enumerate(scene.joint_names)}
    for holder, _, joint, is_continuous in _histories(scene):
        history = scene.stamped_poses(holder)
        if history is not None and len(history):
            stamp = float(history.stamps[-1])
            values[columns[joint]] = _value(history.at(stamp), is_continuous)
            stamps[columns[joint]] = stamp
    return values, stamps


def driving_joints(scene: SceneGraph, a: str, b: str) -> set[str]:
    """Return the joints of the configuration that change the relative pose of two frames."""
    leaders = (leading_joint(scene, edge) for edge in edges_between(scene, a, b))
    return {joint for joint in leaders if joint is not None}


def segment(stamps: Array, stamp: float) -> tuple[float, float]:
    """Return the stamps (a, b) with a < stamp <= b, or the nearest two outside of the history."""
    index = min(max(int(stamps.searchsorted(stamp)), 1), len(stamps) - 1)
    return float(stamps[index - 1]), float(stamps[index])


def _rate(
    scene: SceneGraph, holder: str, frame: str, joint: str, stamp: float, policy: str = ""
) -> float:
    """Return the velocity of a joint at a time, or raise StampError."""
    history = scene.stamped_poses(holder)
    stamps = np.zeros(0) if history is None else history.stamps
    if len(stamps) < 2:
        raise StampError(
            f"joint '{joint}' has {len(stamps)} stamped values: its velocity needs two", joint=joint
        )
    if policy == "clamped" and not stamps[0] <= stamp <= stamps[-1]:
        return 0.0
    first, second = segment(stamps, stamp)
    twist = scene.twist_from_stamps(holder, relative_to=frame, first=first, second=second)
    return float(twist[0] + twist[5])  # one of the two is 0


def _histories(scene: SceneGraph) -> Iterator[tuple[str, str, str, bool]]:
    """Yield (history frame, frame of the joint, joint, is continuous) of each joint history."""
    for holder in scene.frames_of_class(CLASS):
        frame = scene.parent(holder)
        joint = None if frame is None else scene.joint(frame)
        if frame is not None and joint is not None and joint.name in scene.joint_names:
            yield holder, frame, joint.name, joint.type == "continuous"


def _value(pose: Pose, is_continuous: bool) -> float:
    """Return the joint value stored in a pose."""
    return float(pose.log()[5] if is_continuous else pose.translation[0])
