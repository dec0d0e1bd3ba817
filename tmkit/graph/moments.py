"""A scene as it was at a time: edges at their stamped poses, how they moved then, and where joints were.

All that a scene answers is answered at a stamp by the version of that moment (:func:`at_stamp`),
see ``docs/concepts/arrays_and_time.md``. Edges without stamped poses stay where they are; their
errors are those of now.

**After the newest** stamped pose T a twist V with the error d, that of twist edges, leads on for
the time dt when that is allowed: to ``T exp(V dt)``, with the error of
:mod:`tmkit.graph.semantic_edges.integration`. A twist is never constant, so white noise of the
acceleration may be added (Bar-Shalom, Li and Kirubarajan, *Estimation with applications to tracking
and navigation*, 2001, section 6.2.2). With the power spectral density s, the variance of each
direction grows by ``s dt^3 / 3``. It is noise of the acceleration, and not of the twist, as no
force moves a body by jumps.

The history of a joint is a frame of the class ``joint_history`` below the frame that the joint
moves. Its stamped poses hold the values, along x for a revolute or prismatic joint (a metre for
each radian or metre), as rotations about z for a continuous one. So it has the limits and the
refusals of stamped poses, follows a rename of the joint and goes with its frame. Between two stamps
a value is interpolated linearly, that of a continuous joint the short way round.
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


@dataclass(frozen=True, slots=True)
class When:
    """A time at which a scene is queried, and how poses of that time follow from stamped poses.

    Args:
        stamp: the time [s].
        policy: between two stamps, as for ``SceneGraph.pose``.
        extrapolate: time after its newest stamped pose for which an edge may go on by its twist
            edge [s].
        acceleration_noise: power spectral densities of extrapolated edges, linear and angular
            [m^2/s^3, rad^2/s^3].

    Raises:
        SceneError: if ``extrapolate`` or ``acceleration_noise`` is negative or not finite.
    """

    stamp: float
    policy: str = "interpolated"
    extrapolate: float = 0.0
    acceleration_noise: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        if not all(
            math.isfinite(given) and given >= 0.0
            for given in (self.extrapolate, *self.acceleration_noise)
        ):
            given = f"{self.extrapolate} and {self.acceleration_noise}"
            raise SceneError(
                f"extrapolate and acceleration_noise are finite numbers of at least 0, not {given}"
            )


def at_stamp(
    scene: SceneGraph, stamp: float | When, *, frames: Iterable[str] | None = None
) -> SceneGraph:
    """Return the version in which stamped edges have their poses of a time. O(n), or O(log n + k) for each frame named.

    Args:
        scene: the scene.
        stamp: the time [s]; or :class:`When`, with how poses follow from stamped ones.
        frames: the frames whose edges are meant; by default all that have stamped poses.

    Raises:
        UnknownNameError: if a frame or the policy is unknown.
        StampError: the stamp lies outside of the history of an edge, or no twist edge leads over
            it.
    """
    when = _when(stamp)
    with scene.edit() as edit:
        for frame, parent, newest in _stamped_edges(scene, frames):
            dt = when.stamp - newest
            if not 0.0 < dt <= when.extrapolate:
                edit.set_pose(frame, _pose(scene, frame, parent, when.stamp, when.policy))
                continue
            twist, error = _twist(scene, frame, parent, dt)
            before = _pose(scene, frame, parent, newest, when.policy)
            pose, noise = moved_edge(before, scene.noise(frame), twist, error, dt, frame=frame)
            if any(when.acceleration_noise):
                noise = (
                    {}
                    if noise is None
                    else noise
                    if isinstance(noise, dict)
                    else summed((np.eye(6), noise))
                )
                densities = np.repeat(when.acceleration_noise, 3)
                noise[NoiseSource(6, f"acceleration of {frame}")] = np.diag(
                    np.sqrt(densities * dt**3 / 3.0)
                )
            edit.set_pose(frame, pose)
            edit.set_noise(frame, noise)
    return edit.finish()


def _when(stamp: float | When) -> When:
    return stamp if isinstance(stamp, When) else When(stamp)


def _stamped_edges(
    scene: SceneGraph, frames: Iterable[str] | None
) -> Iterator[tuple[str, str, float]]:
    """Yield the frames of edges with stamped poses, their parents and their newest stamps; -inf where there is none."""
    for frame in scene.frame_names if frames is None else frames:
        parent = scene.parent(frame)
        known = None if parent is None else common_stamps(scene, frame, parent)
        if known is not None and parent is not None and CLASS not in scene.classes(frame):
            yield frame, parent, known[1] if known[1] > -math.inf else math.inf


def _pose(scene: SceneGraph, frame: str, parent: str, stamp: float, policy: str) -> Pose:
    """Return the pose of a stamped edge at joint value 0, or raise StampError where none is known."""
    try:
        return scene.pose(frame, relative_to=parent, stamp=stamp, policy=policy)
    except ConfigurationError:  # it has a joint as well, which does not count here
        known = scene.stamped_poses(frame)
        assert known is not None, "it has stamped poses"
        return known.at(stamp, policy=policy)


def _twist(scene: Any, frame: str, parent: str, dt: float) -> tuple[Array, EdgeNoise | None]:
    """Return the twist of an edge by twist edges, or raise StampError where none leads over it."""
    found = None
    if _is_told(scene, frame):
        found = scene._uncertain_twist(frame, scene.body(frame), scene.body(parent), frame)
    if found is None:
        repair = "add one with set_twist, such as twist_from_stamps gives"
        reason = (
            f"no twist edge leads over frame '{frame}', so its pose {dt:g} s after the newest is"
            " not known"
        )
        raise StampError(f"{reason}; {repair}", frame=frame)
    return found  # type: ignore[no-any-return]


def _is_told(scene: SceneGraph, frame: str) -> bool:
    """Whether twist edges lead over the edge above a frame, and so say how it moves."""
    return bool(scene.twist_frames) and frame in twist_driven_edges(scene, frame)


def twists_between(scene: SceneGraph, start: str, end: str) -> list[tuple[str, str]]:
    """Return the twist edges on the way between two bodies: of each the frames before and behind it. O(t depth)."""
    told = all_twist_driven_edges(scene)

    def tops(body: str) -> set[str]:
        """Return the topmost frames of all that moves with a body by joints and fixed edges."""
        found = set()
        for at in scene.frames_of_body(body):
            while at not in told and (parent := scene.parent(at)) is not None:
                at = parent
            found.add(at)
        return found

    links: list[tuple[list[tuple[str, str]], set[str], set[str]]] = []
    for head in scene.twist_frames:
        edge = scene.twist_edge(head)
        assert edge is not None, "it is among the frames with twists"
        others = scene.frames_of_body(edge[0])
        other = next((frame for frame in others if scene.root(frame) == scene.root(head)), head)
        ends = tops(edge[0]), tops(scene.body(head))
        links += [([(other, head)], *ends), ([(head, other)], *ends[::-1])]
    if len(scene.root_names) > 1:  # a body with frames in several trees joins these
        links += [([], found, found) for name in scene.body_names if len(found := tops(name)) > 1]
    reached: dict[str, list[tuple[str, str]]] = {top: [] for top in tops(start)}
    waiting = [*reached]
    for at in waiting:
        for step, here, there in links:
            new = there.difference(reached) if at in here else ()
            reached |= dict.fromkeys(new, reached[at] + step)
            waiting += new
    return next((reached[top] for top in tops(end) if top in reached), [])


def moved_edge(
    pose: Pose,
    noise: EdgeNoise | None,
    twist: Array,
    error: EdgeNoise | None,
    dt: float,
    *,
    frame: str,
) -> tuple[Pose, EdgeNoise | Maps | None]:
    """Return the pose and the noise of an edge after a time of constant twist (6,), in its frame's axes and origin."""
    with np.errstate(over="ignore"):
        motion = twist * dt
    if not np.isfinite(motion).all():
        raise NumberOverflowError(
            f"the motion of '{frame}' in {dt:g} s is beyond the range of floating-point numbers"
        )
    after: EdgeNoise | Maps | None = noise
    if error is not None or (noise is not None and motion.any()):
        after = summed((adjoint(Pose.exp(-motion)), noise), (dt * right_jacobian(motion), error))
    return pose @ Pose.exp(motion), after


def summed(*parts: tuple[Array, EdgeNoise | Maps | None]) -> Maps:
    """Return the sum of errors, each multiplied by a matrix (6, 6), source by source."""
    maps: Maps = {}
    for matrix, noise in parts:
        if noise is None:
            continue
        for source in noise if isinstance(noise, dict) else noise.sources:
            own = noise[source] if isinstance(noise, dict) else noise.map(source)
            maps[source] = maps.get(source, np.zeros((6, source.dimension))) + matrix @ own
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
    """Return the version of a time as far as a query needs it, and the configuration and joint velocities of then.

    The query is of the frames named, or of the relative motion of two bodies. Where q or qd are
    omitted, the histories of the joints on the way give them. Errors are those of :func:`at_stamp`.
    """
    when = _when(stamp)
    first, *others = dict.fromkeys(names)
    if bodies is not None:
        others += [frame for body in bodies for frame in scene.frames_of_body(body)[:1]]
        others += (
            [frame for step in twists_between(scene, *bodies) for frame in step]
            if scene.twist_frames
            else []
        )
    edges: dict[str, None] = {}
    is_apart = False
    joints: set[str] = set()
    try:
        for other in dict.fromkeys(others):
            edges |= dict.fromkeys(edges_between(scene, first, other))
            joints |= driving_joints(scene, first, other)
    except DisconnectedError:  # twist edges join the trees, or the query explains it
        is_apart = bodies is not None
    at = at_stamp(scene, when, frames=None if is_apart else edges)
    has_histories = bool(joints and scene.frames_of_class(CLASS))
    if has_histories and q is None:
        q = configuration(
            scene, when.stamp, joints=joints, policy=when.policy, extrapolate=when.extrapolate
        )
    if bodies is None:
        return at, q, qd
    if has_histories and qd is None:
        qd = joint_velocities(scene, when.stamp, joints=joints, policy=when.policy)
    with at.edit() as edit:
        for frame, parent, _ in _stamped_edges(scene, None if is_apart else edges):
            if not _is_told(scene, frame):
                motion = _difference(scene, frame, at.local_pose(frame), when.stamp, when.policy)
                edit.set_twist(frame, motion, relative_to_body=scene.body(parent))
    return edit.finish(), q, qd


def _difference(scene: SceneGraph, frame: str, pose: Pose, stamp: float, policy: str) -> Array:
    """Return the twist (6,) of an edge by its stamped poses, in its frame's axes and origin, or raise StampError."""
    known = scene.stamped_poses(frame)
    stamps = np.zeros(0) if known is None else known.stamps
    if known is None or len(stamps) < 2:
        message = (
            f"frame '{frame}' has {len(stamps)} stamped poses and no twist edge: its motion"
            " needs two"
        )
        raise StampError(message, frame=frame, stamp=stamp)
    if not stamps[0] <= stamp <= stamps[-1]:  # clamped
        return np.zeros(6)
    first, second = segment(stamps, stamp)
    before, after = known.at(first), known.at(second)
    twist = np.array((before.inverse() @ after).log()) / (second - first)
    if policy != "screw":  # the origin goes along a straight line
        twist[:3] = pose.inverse().rotate(
            (after.translation - before.translation) / (second - first)
        )
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
        relative_to: the other; the root of its tree if omitted.
        stamp: as for :func:`at_stamp`.
        q: (n_joints,) configuration; if omitted, the histories of the joints give it.

    Raises:
        UnknownNameError, DisconnectedError, ConfigurationError: as ``SceneGraph.gaussian_pose``.
        StampError: as :func:`at_stamp`.
    """
    reference = scene.root(frame) if relative_to is None else relative_to
    at, q, _ = moment(scene, stamp, (frame, reference), q=q)
    return at.gaussian_pose(frame, relative_to=reference, q=q)


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
    """Return the pose of a frame at one time relative to another frame at another, as ``lookup_transform_full`` does.

    Args:
        scene: the scene.
        frame: the frame, ...
        stamp: ... where it was at this time, in seconds.
        relative_to: the other frame, ...
        relative_stamp: ... where it was at this time, in seconds.
        fixed: the frame that stays between the two times, such as the map.
        policy: between two stamps, as for ``SceneGraph.pose``.

    Raises:
        UnknownNameError, DisconnectedError, StampError: as ``SceneGraph.pose``, also of joints on
            the way.
    """

    def pose(of: str, other: str, time: float) -> Pose:
        at, q, _ = moment(scene, When(time, policy), (of, other))
        return at.pose(of, relative_to=other, q=q)

    return pose(fixed, relative_to, relative_stamp) @ pose(frame, fixed, stamp)


CLASS = "joint_history"
Vector = NDArray[np.float64]


def add_joint_values(
    scene: SceneGraph,
    values: Mapping[str, float],
    *,
    stamp: float,
    capacity: int | None = None,
    window: float | None = None,
) -> SceneGraph:
    """Return the version in which some joints have a further value of a time. O(log n + capacity) for each.

    Values may come in any order.

    Args:
        scene: the scene.
        values: radians or metres by joint name.
        stamp: seconds, on the clock of the other stamps.
        capacity: so many values of each of the joints are kept at most; as before if omitted, and
            at first 32.
        window: seconds that may lie between the oldest and the newest; as before if omitted, and at
            first without end.

    Raises:
        UnknownNameError: if a joint is unknown.
        ConfigurationError: a joint that mimics another, or a value that is not finite.
        StampError: a value of that stamp is there, or would be dropped at once; a stamp that is not
            finite.
    """
    scene.configuration(values)  # refuses names and numbers
    holders = {joint: name for name, _, joint, _ in _histories(scene)}
    with scene.edit() as edit:
        for joint, value in values.items():
            frame = scene.joint_frame(joint)
            holder = holders.get(joint)
            if holder is None:
                holder = free_name(scene, f"{frame} values")
                edit.add_frame(holder, frame, classes=[CLASS])
            is_round = scene.joint(frame).type == "continuous"
            pose = (
                Pose.from_rpy([0, 0, 0], [0, 0, value])
                if is_round
                else Pose(np.array([value, 0.0, 0.0]))
            )
            edit.add_stamped_pose(holder, pose, stamp=stamp, capacity=capacity, window=window)
    return edit.finish()


def joint_history(scene: SceneGraph, joint: str) -> tuple[Vector, Vector]:
    """Return the stamps (k,) and the values (k,) that are kept of a joint, ascending by stamp; of none, no numbers.

    Args:
        scene: the scene.
        joint: name of the joint; values of a continuous one are in [-pi, pi].

    Raises:
        UnknownNameError: if a joint is unknown.
    """
    frame = scene.joint_frame(joint)
    for holder, _, name, is_round in _histories(scene):
        known = (
            scene.stamped_poses(holder) if scene.parent(holder) == frame and name == joint else None
        )
        if known is not None:
            return known.stamps, np.array([_value(pose, is_round) for pose in known.poses])
    return np.zeros(0), np.zeros(0)


def configuration(
    scene: SceneGraph,
    stamp: float,
    *,
    joints: Iterable[str] | None = None,
    q: ArrayLike | None = None,
    policy: str = "interpolated",
    extrapolate: float = 0.0,
) -> Vector:
    """Return the configuration (n_joints,) at a time, by the histories of the joints. O(log n) for each.

    Radians and metres; of a continuous joint an angle in [-pi, pi].

    Args:
        scene: the scene.
        stamp: seconds.
        joints: the joints whose values are needed; all if omitted. Others are 0 where q is omitted.
        q: (n_joints,) the configuration that gives the values of joints without a history.
        policy: between two stamps, as for ``SceneGraph.pose``.
        extrapolate: so many seconds after the newest value of a joint it may go on at the speed
            between the last two.

    Raises:
        StampError: the stamp lies outside of the history of a joint; or a joint has none, and q is
            omitted.
        ConfigurationError: if q has the wrong length.
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
                message = (
                    str(error)
                    .replace(f"frame '{holder}'", f"joint '{joint}'")
                    .replace("pose", "value")
                )
                raise StampError(message, **error.data) from error
            rate = _rate(scene, holder, frame, joint, last) * (stamp - last)
            step = Pose.from_rpy([0, 0, 0], [0, 0, rate]) if is_round else Pose([rate, 0, 0])
            pose = scene.pose(holder, relative_to=frame, stamp=last) @ step
        values[joint] = _value(pose, is_round)
    missing = next((name for name in needed if name not in values), None) if q is None else None
    if missing is not None:
        message = (
            f"joint '{missing}' has no history: add its values with add_joint_values, or pass q"
        )
        raise StampError(message, joint=missing, stamp=stamp)
    return scene.configuration(values, base=q)


def joint_velocities(
    scene: SceneGraph,
    stamp: float,
    *,
    joints: Iterable[str] | None = None,
    policy: str = "interpolated",
) -> Vector:
    """Return the joint velocities (n_joints,) at a time: differences of the values around it, else 0.

    Args:
        scene: the scene.
        stamp: seconds; at that of a value, the velocity is that before it.
        joints: the joints whose velocities are needed; all that have a history if omitted.
        policy: ``clamped`` stands still outside of the history; else as between the nearest two
            values.

    Raises:
        StampError: a joint has one value only.
    """
    needed = scene.joint_names if joints is None else tuple(joints)
    histories = [found for found in _histories(scene) if found[2] in needed]
    return scene.configuration(
        {
            joint: _rate(scene, holder, frame, joint, stamp, policy)
            for holder, frame, joint, _ in histories
        }
    )


def driving_joints(scene: SceneGraph, a: str, b: str) -> set[str]:
    """Return the joints on which the pose of two frames of one tree depends, without those that mimic."""
    leaders = (leading_joint(scene, edge) for edge in edges_between(scene, a, b))
    return {joint for joint in leaders if joint is not None}


def segment(stamps: Vector, stamp: float) -> tuple[float, float]:
    """Return the two stamps around a time, of which the second may be that time; the nearest two outside of all."""
    at = min(max(int(stamps.searchsorted(stamp)), 1), len(stamps) - 1)
    return float(stamps[at - 1]), float(stamps[at])


def _rate(
    scene: SceneGraph, holder: str, frame: str, joint: str, stamp: float, policy: str = ""
) -> float:
    known = scene.stamped_poses(holder)
    stamps = np.zeros(0) if known is None else known.stamps
    if len(stamps) < 2:
        raise StampError(
            f"joint '{joint}' has {len(stamps)} stamped values: its velocity needs two", joint=joint
        )
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
