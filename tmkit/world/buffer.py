"""Buffer of transforms over time, with the interface of tf2, over versions of a scene.

Each transform makes the next version. Readers use the present version as a whole, and neither
readers nor writers wait for each other. A lookup with a timeout sleeps until a version has the
transform. As in tf2, ``lookup_transform(target, source, time)`` returns target_from_source, and
time 0 is the newest time at which the whole path is available.

``docs/howto/coming_from_tf2.md`` lists the differences. Transforms that tf2 ignores with a line in
its log are listed in :attr:`Buffer.rejections`.
"""

from __future__ import annotations

import copy
import logging
import math
import time as clock
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tmkit._core import Fixed, SceneGraph, StampedPoses, Unstated, common_stamps
from tmkit._support.source_location import first_repeated
from tmkit.errors import (
    ConfigurationError,
    DisconnectedError,
    SceneError,
    StampError,
    TmkitError,
    UnknownNameError,
)
from tmkit.graph.moments import (
    When,
    add_joint_values,
    configuration,
    driving_joints,
    gaussian_pose,
    joint_history,
    latest_values,
)
from tmkit.spatial import GaussianPose, Pose
from tmkit.spatial.converters import from_ros_pose
from tmkit.world.live_scene import LiveScene
from tmkit.world.messages import (
    ConnectivityException,
    ExtrapolationException,
    InvalidArgumentException,
    LookupException,
    Time,
    TimeoutException,
    TransformException,
    TransformStamped,
    pose_of,
    seconds_and_nanoseconds,
    seconds_of,
    transform_message,
)

_logger = logging.getLogger(__name__)
_MAX_REJECTIONS = 100
"""Number of rejections that a buffer stores."""

_Lookup = tuple[Pose, tuple[int, int]]
"""target_from_source, and its time in seconds and nanoseconds."""

_MessageT = TypeVar("_MessageT")

_FoundT = TypeVar("_FoundT")
"""Result of a lookup."""


class LatestConfiguration(NamedTuple):
    """Newest value of each joint.

    Attributes:
        joint_names: n joints of the scene.
        q: (n_joints,) values; NaN for a joint without one [rad or m].
        stamps: (n_joints,) times of the values; -inf for a joint without one [s].
    """

    joint_names: tuple[str, ...]
    q: NDArray[np.float64]
    stamps: NDArray[np.float64]

    def age(self, now: object, joints: Collection[str] | None = None) -> float:
        """Return the age of the oldest value [s], infinite if a joint has none.

        It is negative if all stamps are in the future.

        Args:
            now: time on the clock of the stamps [s], or a time message.
            joints: joints that count, such as those of an arm. Defaults to all.

        Raises:
            UnknownNameError: if a joint is unknown.
        """
        names = self.joint_names if joints is None else joints
        for name in names:
            if name not in self.joint_names:
                raise UnknownNameError.of("joint", name, self.joint_names)
        stamps = [self.stamps[self.joint_names.index(name)] for name in names]
        return seconds_of(now) - float(min(stamps, default=np.inf))


class Buffer(LiveScene):
    """Transforms of frames over time, with the interface of ``tf2_ros.Buffer``. Thread-safe.

    Times are messages with ``sec`` and ``nanosec``, ``rclpy`` times, or seconds. The same holds for
    durations.

    Args:
        cache_time: duration for which transforms are stored [s], or a duration message.
        scene: first version, such as a scene with a robot and its joints. Empty by default.
        capacity: largest number of stored transforms of one frame. The newest are stored.
    """

    def __init__(
        self, cache_time: object = 10.0, *, scene: SceneGraph | None = None, capacity: int = 1000
    ) -> None:
        self._window = seconds_of(cache_time)
        StampedPoses(capacity=capacity, window=self._window)  # check the limits
        self._capacity = capacity
        super().__init__(scene)
        self._rejections: deque[str] = deque(maxlen=_MAX_REJECTIONS)
        self._now: float | None = None

    @property
    def rejections(self) -> tuple[str, ...]:
        """Reasons of the last 100 rejections of transforms, each with its authority."""
        return tuple(self._rejections)

    def set_transform(self, transform: object, authority: str = "default_authority") -> bool:
        """Add the pose of a frame in its parent at a time, and return whether it was added.

        A transform that is too old, invalid or contradicts the present ones is listed in
        :attr:`rejections`. O(log n + k) with k stored transforms. As in tf2, a stamp far in the
        future makes the present ones too old, until :meth:`clear`; see :meth:`set_clock`.

        Args:
            transform: a ``TransformStamped``.
            authority: name of the sender for messages.
        """
        return self._apply_insertion(authority, lambda: self._insert(transform, is_static=False))

    def set_transform_static(self, transform: object, authority: str = "default_authority") -> bool:
        """Set the pose of a frame for all times, and return whether it was set.

        It replaces all earlier poses of the frame.

        Args:
            transform: a ``TransformStamped``. Its stamp is ignored.
            authority: name of the sender for messages.
        """
        return self._apply_insertion(authority, lambda: self._insert(transform, is_static=True))

    def set_pose(
        self,
        message: object,
        child_frame_id: str | None = None,
        authority: str = "default_authority",
    ) -> bool:
        """Add the pose of a frame with its covariance, and return whether it was added.

        The pose may be there already, as by :meth:`set_transform`. A transform without a covariance
        has that of the newest pose with one. A stamp of 0 is static.

        Args:
            message: a ``PoseWithCovarianceStamped`` or an ``Odometry``, whose twist is not used.
                The covariance is in the axes of the frame of its header.
            child_frame_id: frame of the pose. Defaults to that of the ``Odometry``.
            authority: name of the sender for messages.
        """
        return self._apply_insertion(authority, lambda: self._insert_pose(message, child_frame_id))

    def set_joint_states(self, message: object, authority: str = "default_authority") -> bool:
        """Add the values of the scene's joints at a time, and return whether they were added.

        Joints that are not in the scene, such as those of another robot, are skipped, as are values
        that are NaN, the mark of joints without a measurement. Joints that mimic others follow
        these. Messages may come in any order of their stamps.

        A message is rejected as a whole, with its reason in :attr:`rejections`, if it has no value
        of a joint of the scene or an infinite one. So are messages that name a joint twice, and
        those whose stamp is too old or already present.

        Args:
            message: a ``JointState``. Velocity and effort are not used.
            authority: name of the sender for messages.
        """
        return self._apply_insertion(authority, lambda: self._insert_joint_states(message))

    def latest_configuration(self) -> LatestConfiguration:
        """Return the newest value of each joint by :meth:`set_joint_states`, with its stamp.

        O(n_joints log capacity).
        """
        scene = self._scene
        return LatestConfiguration(scene.joint_names, *latest_values(scene))

    def clear(self) -> None:
        """Remove the stamped transforms. Frames and static transforms stay."""
        self.update(_clear_histories)

    def set_clock(self, now: object) -> None:
        """Set the present time of the clock of the stamps.

        A jump back clears the buffer, with a warning in the log, for instance at the restart of a
        simulation or a bag. A ``tf2_ros.Buffer`` reads the clock of its node and does the same.
        Call the method with each message of ``/clock``, or before transforms are added. From the
        first call on, stamps more than ``cache_time`` after the clock are rejected
        (:attr:`rejections`).

        Args:
            now: time, such as that of a header.
        """
        with self._lock:
            seconds = seconds_of(now)
            before, self._now = self._now, seconds
            if before is not None and seconds < before:
                _logger.warning(
                    "the clock jumped back from %.9g s to %.9g s; the buffer is cleared",
                    before,
                    seconds,
                )
                self.clear()

    def _stamp_of(self, message: Any) -> float:
        """Return the stamp of a message [s].

        Raises:
            InvalidArgumentException: if the stamp is more than the cache time after the clock.
        """
        stamp = seconds_of(message.header.stamp)
        if self._now is not None and stamp > self._now + self._window:
            reason = (
                f"the stamp {stamp:.9g} s is more than {self._window:g} s after the clock,"
                f" {self._now:.9g} s"
            )
            raise InvalidArgumentException(reason)
        return stamp

    def _apply_insertion(self, authority: str, insert: Callable[[], SceneGraph]) -> bool:
        """Publish the version of an insertion, or store its error; return whether it succeeded."""
        with self._lock:
            try:
                version = insert()
                self._record(version)
            except (TmkitError, AttributeError, TypeError) as error:
                self._rejections.append(f"{authority}: {error}")
                return False
            self._publish(version)
        return True

    def _insert_pose(self, message: Any, child_frame_id: str | None) -> SceneGraph:
        """Return the version with the pose of a ``PoseWithCovarianceStamped`` or ``Odometry``."""
        child = child_frame_id or getattr(message, "child_frame_id", None)
        if child is None:
            raise InvalidArgumentException(
                f"a {type(message).__name__} has no child_frame_id; pass child_frame_id="
            )
        stamp = seconds_and_nanoseconds(message.header.stamp)
        try:
            pose = from_ros_pose(message.pose)
        except SceneError as error:
            reason = f"the pose of '{child}' at {stamp[0] + stamp[1] / 1e9:.9g} s: {error}"
            raise InvalidArgumentException(reason) from error
        transform = transform_message(pose.mean, message.header.frame_id, child, stamp)
        return self._insert(transform, is_static=stamp == (0, 0), covariance=pose.covariance)

    def _insert_joint_states(self, message: Any) -> SceneGraph:
        """Return the version with the values of a ``JointState``."""
        if len(message.name) != len(message.position):
            raise InvalidArgumentException(
                f"{len(message.name)} joints have {len(message.position)} positions"
            )
        if (repeated := first_repeated(message.name)) is not None:
            raise InvalidArgumentException(f"the joint '{repeated}' is named twice")
        scene = self._scene
        values = {
            name: float(value)
            for name, value in zip(message.name, message.position, strict=True)
            if name in scene.joint_names and not math.isnan(value)
        }
        if not values:
            for name in message.name:
                scene.joint_frame(name)  # raises the error of an unknown joint
            names = [*message.name[:6]]
            raise InvalidArgumentException(f"no joint has a value of its own among {names}")
        stamp = self._stamp_of(message)
        return add_joint_values(
            scene, values, stamp=stamp, capacity=self._capacity, window=self._window
        )

    def _insert(
        self, transform: Any, *, is_static: bool, covariance: NDArray[np.float64] | None = None
    ) -> SceneGraph:
        """Return the version with the pose of a ``TransformStamped``, and its covariance (6, 6)."""
        header = transform.header
        child = transform.child_frame_id.removeprefix("/")
        parent = header.frame_id.removeprefix("/")
        if not child or not parent or child == parent:
            raise InvalidArgumentException(
                f"a transform needs two frames, got '{parent}' and '{child}'"
            )
        pose = pose_of(transform.transform.translation, transform.transform.rotation)
        stamp = seconds_of(header.stamp) if is_static else self._stamp_of(transform)
        scene = self._scene
        if child not in scene or scene.parent(child) != parent:
            scene = self._join_frames(scene, child, parent, pose, stamp, is_static)
        elif (joint := scene.joint(child)).type not in ("fixed", "free"):
            message = (
                f"frame '{child}' moves by joint '{joint.name}': its values come with"
                " set_joint_states"
            )
            raise InvalidArgumentException(message)
        if is_static:
            scene = scene.set_stamped_poses(child, None).set_pose(child, pose)
            scene = scene if scene.joint(child).is_stated else scene.set_joint(child, Fixed())
            return scene if covariance is None else scene.set_covariance(child, covariance)
        try:
            return scene.add_stamped_pose(
                child,
                pose,
                stamp=stamp,
                covariance=covariance,
                capacity=self._capacity,
                window=self._window,
            )
        except StampError:
            history = scene.stamped_poses(child)
            if history is None or stamp not in history.stamps:
                raise
            if not history.at(stamp).is_close(pose):
                raise
        if covariance is None:
            return scene
        if stamp == history.stamps[-1]:
            scene = scene.set_covariance(child, covariance)
        return scene.set_stamped_poses(child, history.with_covariance(stamp, covariance))

    @staticmethod
    def _join_frames(
        scene: SceneGraph, child: str, parent: str, pose: Pose, stamp: float, is_static: bool
    ) -> SceneGraph:
        """Return the scene with a frame below a parent, which is created if it is missing."""
        if parent not in scene:
            scene = scene.add_frame(parent, body=parent)
        # A transform that may change does not define the kind of motion.
        joint = Fixed() if is_static else Unstated()
        if child not in scene:
            return scene.add_frame(child, parent, pose=pose, joint=joint)
        if scene.parent(child) is None:
            return scene.attach(child, parent, pose=pose, joint=joint)
        history = scene.stamped_poses(child)
        if history is not None and len(history) and stamp < history.stamps[-1] and not is_static:
            message = (
                f"frame '{child}' has parent '{scene.parent(child)}' since before"
                f" {history.stamps[-1]:.9g} s"
            )
            raise StampError(
                f"{message}, so a pose in '{parent}' at {stamp:.9g} s is too old", frame=child
            )
        scene = scene.reparent(child, parent, pose=pose)
        return scene.set_joint(child, joint) if scene.joint(child).type == "fixed" else scene

    def lookup_transform(
        self, target_frame: str, source_frame: str, time: object = 0, timeout: object = 0
    ) -> TransformStamped:
        """Return the transform that maps points of the source frame to the target frame.

        Args:
            target_frame: frame to transform into.
            source_frame: frame to transform from.
            time: time of the transform. 0 is the newest time at which the whole path is available.
            timeout: longest time to wait for the transform.

        Raises:
            LookupException: if a frame is unknown.
            ConnectivityException: if the frames are in different trees.
            ExtrapolationException: if the time is outside of the history of a frame on the path.
            InvalidArgumentException: if a frame name or a time is invalid.
        """
        pose, stamp = self._await_lookup(
            lambda scene: _find(scene, target_frame, source_frame, time), timeout
        )
        return transform_message(pose, target_frame, source_frame, stamp)

    def lookup_gaussian_pose(
        self, target_frame: str, source_frame: str, time: object = 0, timeout: object = 0
    ) -> GaussianPose:
        """Return the pose of the source frame in the target frame with its covariance.

        The mean is that of :meth:`lookup_transform`, the covariance that of
        :func:`tmkit.graph.gaussian_pose`, in the axes of the source frame.

        Args:
            target_frame: as for :meth:`lookup_transform`.
            source_frame: as for :meth:`lookup_transform`.
            time: as for :meth:`lookup_transform`.
            timeout: as for :meth:`lookup_transform`.

        Raises:
            TransformException: if :meth:`lookup_transform` raises it.
        """
        return self._await_lookup(
            lambda scene: _find_gaussian(scene, target_frame, source_frame, time), timeout
        )

    def lookup_transform_full(
        self,
        target_frame: str,
        target_time: object,
        source_frame: str,
        source_time: object,
        fixed_frame: str,
        timeout: object = 0,
    ) -> TransformStamped:
        """Return the transform from the source frame at one time to the target frame at another.

        Args:
            target_frame: frame to transform into.
            target_time: time of the target frame.
            source_frame: frame to transform from.
            source_time: time of the source frame.
            fixed_frame: frame that does not move between the two times.
            timeout: longest time to wait for the transform.

        Raises:
            LookupException: if a frame is unknown.
            ConnectivityException: if the frames are in different trees.
            ExtrapolationException: if a time is outside of the history of a frame on the path.
            InvalidArgumentException: if a frame name or a time is invalid.
        """
        query = (target_frame, target_time, source_frame, source_time, fixed_frame)
        pose, stamp = self._await_lookup(lambda scene: _find_full(scene, *query), timeout)
        return transform_message(pose, target_frame, source_frame, stamp)

    def can_transform(
        self,
        target_frame: str,
        source_frame: str,
        time: object = 0,
        timeout: object = 0,
        return_debug_tuple: bool = False,
    ) -> bool | tuple[bool, str]:
        """Return whether a transform is available, after waiting for it.

        Args:
            target_frame: as for :meth:`lookup_transform`.
            source_frame: as for :meth:`lookup_transform`.
            time: as for :meth:`lookup_transform`.
            timeout: as for :meth:`lookup_transform`.
            return_debug_tuple: whether to return the reason too, as text.
        """
        reason = self._failure_reason(
            lambda scene: _find(scene, target_frame, source_frame, time), timeout
        )
        return (not reason, reason) if return_debug_tuple else not reason

    def can_transform_full(
        self,
        target_frame: str,
        target_time: object,
        source_frame: str,
        source_time: object,
        fixed_frame: str,
        timeout: object = 0,
        return_debug_tuple: bool = False,
    ) -> bool | tuple[bool, str]:
        """Return whether a transform between two times is available, after waiting for it.

        Args:
            target_frame: as for :meth:`lookup_transform_full`.
            target_time: as for :meth:`lookup_transform_full`.
            source_frame: as for :meth:`lookup_transform_full`.
            source_time: as for :meth:`lookup_transform_full`.
            fixed_frame: as for :meth:`lookup_transform_full`.
            timeout: as for :meth:`lookup_transform_full`.
            return_debug_tuple: whether to return the reason too, as text.
        """
        query = (target_frame, target_time, source_frame, source_time, fixed_frame)
        reason = self._failure_reason(lambda scene: _find_full(scene, *query), timeout)
        return (not reason, reason) if return_debug_tuple else not reason

    def wait_for_transform(
        self, target_frame: str, source_frame: str, time: object, timeout: object
    ) -> TransformStamped:
        """Return a transform as soon as it is available.

        Args:
            target_frame: as for :meth:`lookup_transform`.
            source_frame: as for :meth:`lookup_transform`.
            time: as for :meth:`lookup_transform`.
            timeout: as for :meth:`lookup_transform`.

        Raises:
            TimeoutException: if it is not available before the timeout.
        """
        try:
            return self.lookup_transform(target_frame, source_frame, time, timeout)
        except InvalidArgumentException:
            raise
        except TransformException as error:
            message = (
                f"no transform from '{source_frame}' to '{target_frame}' in {seconds_of(timeout):g}"
                f" s: {error}"
            )
            raise TimeoutException(message, **error.data) from error

    def get_latest_common_time(self, target_frame: str, source_frame: str) -> Time:
        """Return the newest time at which the whole path between two frames is available.

        0 if the whole path is static.

        Args:
            target_frame: first frame.
            source_frame: second frame.

        Raises:
            LookupException: if a frame is unknown.
            ConnectivityException: if the frames are in different trees.
            ExtrapolationException: if a frame on the path has no pose.
        """
        return Time(*_find(self._scene, target_frame, source_frame, 0)[1])

    def transform(self, message: _MessageT, target_frame: str, timeout: object = 0) -> _MessageT:
        """Return a copy of a stamped message in another frame, at the time of the message.

        Args:
            message: message with ``header``, and ``point``, ``vector``, ``transform`` or ``pose``.
                A ``pose`` may itself have ``pose`` and ``covariance`` (36 numbers), which is
                rotated into the axes of the target frame.
            target_frame: frame to transform into.
            timeout: longest time to wait for the transform.

        Raises:
            LookupException: if a frame is unknown.
            ConnectivityException: if the frames are in different trees.
            ExtrapolationException: if the time is outside of the history of a frame on the path.
            InvalidArgumentException: if a frame name or a time is invalid, or the message has none
                of these fields.
        """
        result: Any = copy.deepcopy(message)
        header = result.header
        frame, stamp = header.frame_id, header.stamp
        pose, _ = self._await_lookup(
            lambda scene: _find(scene, target_frame, frame, stamp), timeout
        )
        _fill(header, frame_id=target_frame)
        if hasattr(result, "point"):
            _fill_xyz(result.point, pose.apply(_xyz(result.point)).tolist())
        elif hasattr(result, "vector"):
            _fill_xyz(result.vector, pose.rotate(_xyz(result.vector)).tolist())
        elif hasattr(result, "transform"):
            _move(pose, result.transform.translation, result.transform.rotation)
        elif hasattr(getattr(result, "pose", None), "position"):
            _move(pose, result.pose.position, result.pose.orientation)
        elif hasattr(getattr(result, "pose", None), "covariance"):
            _move(pose, result.pose.pose.position, result.pose.pose.orientation)
            rotation = np.kron(np.eye(2), pose.rotation)
            covariance = np.reshape(result.pose.covariance, (6, 6))
            result.pose.covariance[:] = (rotation @ covariance @ rotation.T).ravel()
        else:
            name = type(message).__name__
            raise InvalidArgumentException(
                f"{name} has no point, vector, transform or pose to be transformed"
            )
        return cast("_MessageT", result)

    def all_frames_as_string(self) -> str:
        """Return a line for each frame with a parent, in the format of tf2."""
        scene = self._scene
        lines = [
            f"Frame {frame} exists with parent {scene.parent(frame)}.\n"
            for frame in scene.frame_names
        ]
        return "".join(line for line in lines if not line.endswith("parent None.\n"))

    def _await_lookup(self, find: Callable[[SceneGraph], _FoundT], timeout: object) -> _FoundT:
        """Return the lookup in the present version, or in a later one before the timeout.

        Raises:
            TransformException: if no version has the transform before the timeout.
        """
        end = None
        while True:
            scene = self._scene
            try:
                return find(scene)
            except InvalidArgumentException:
                raise
            except TransformException:
                end = clock.monotonic() + seconds_of(timeout) if end is None else end
                if (remaining := end - clock.monotonic()) <= 0.0:
                    raise
                self.wait(scene, remaining)

    def _failure_reason(self, find: Callable[[SceneGraph], _Lookup], timeout: object) -> str:
        """Return the reason why a lookup fails, empty if it succeeds before the timeout."""
        try:
            self._await_lookup(find, timeout)
        except TransformException as error:
            return str(error)
        return ""


def _clear_histories(scene: SceneGraph) -> SceneGraph:
    """Return the scene without stamped poses."""
    with scene.edit() as edit:
        for frame in scene.frame_names:
            history = scene.stamped_poses(frame)
            if history is not None:
                empty = StampedPoses(capacity=history.capacity, window=history.window)
                edit.set_stamped_poses(frame, empty)
    return edit.finish()


def _find(scene: SceneGraph, target: str, source: str, time: object) -> _Lookup:
    """Return the pose of the source in the target, and its time.

    Raises:
        TransformException: if the transform is not available.
    """
    requested = seconds_and_nanoseconds(time)
    if target == source:  # defined for all names, as in tf2
        return Pose(), requested
    is_latest = requested == (0, 0)
    stamp = None if is_latest else requested[0] + requested[1] / 1e9
    try:
        if stamp is None:
            common = common_stamps(scene, source, target)
            stamp = None if common is None else common[1]
        if stamp is None:
            return scene.pose(source, relative_to=target), requested
        pose = scene.pose(source, relative_to=target, stamp=stamp)
    except ConfigurationError:  # a joint is on the path
        return _find_by_joints(scene, target, source, stamp, is_latest=is_latest)
    except (SceneError, UnknownNameError) as error:
        raise _tf2_error(error, target, source) from error
    return pose, seconds_and_nanoseconds(stamp) if is_latest else requested


def _find_gaussian(scene: SceneGraph, target: str, source: str, time: object) -> GaussianPose:
    """Return the pose of the source in the target with its covariance.

    Raises:
        TransformException: if the transform is not available.
    """
    pose, stamp = _find(scene, target, source, time)
    if target == source:
        return GaussianPose(pose)
    # Seconds and nanoseconds may round a stamp beyond the ends of a history.
    when = When(stamp[0] + stamp[1] / 1e9, "clamped")
    return gaussian_pose(scene, source, relative_to=target, stamp=when)


def _find_by_joints(
    scene: SceneGraph, target: str, source: str, stamp: float | None, *, is_latest: bool
) -> _Lookup:
    """Return a lookup along a path with joints."""
    joints = driving_joints(scene, source, target)
    try:
        if is_latest or stamp is None:
            newest = np.concatenate([joint_history(scene, joint)[0][-1:] for joint in joints])
            stamps = newest.tolist() if stamp is None else [*newest.tolist(), stamp]
            stamp = min(stamps, default=0.0)
        q = configuration(scene, stamp, joints=joints)
        pose = scene.pose(source, relative_to=target, stamp=stamp, q=q)
        return pose, seconds_and_nanoseconds(stamp)
    except SceneError as error:
        raise _tf2_error(error, target, source) from error


def _find_full(
    scene: SceneGraph,
    target: str,
    target_time: object,
    source: str,
    source_time: object,
    fixed: str,
) -> _Lookup:
    """Return the pose of the source at one time in the target at another time."""
    fixed_from_source, _ = _find(scene, fixed, source, source_time)
    target_from_fixed, stamp = _find(scene, target, fixed, target_time)
    return target_from_fixed @ fixed_from_source, stamp


def _tf2_error(error: TmkitError, target: str, source: str) -> TransformException:
    """Return the error of a lookup as an exception of tf2."""
    frames = {"target_frame": target, "source_frame": source}
    context = f"when looking up the transform from frame [{source}] to frame [{target}]"
    for name in (target, source):
        if not name or name.startswith("/"):
            message = f"expected a frame id without a leading '/', got '{name}'"
            return InvalidArgumentException(message, **frames)
    if isinstance(error, UnknownNameError):
        return LookupException(str(error), **frames)
    if isinstance(error, DisconnectedError):
        return ConnectivityException(f"{error}, {context}", **frames)
    stamp, newest = error.data.get("stamp"), error.data.get("newest")
    direction = ""
    if stamp is not None and newest is not None:
        direction = f" into the {'future' if stamp > newest else 'past'}"
    message = f"this needs extrapolation{direction}: {error}, {context}"
    return ExtrapolationException(message, **frames)


def _xyz(vector: Any) -> list[float]:
    return [vector.x, vector.y, vector.z]


def _move(pose: Pose, position: Any, orientation: Any) -> None:
    """Transform a position and an orientation of a message in place."""
    values = (pose @ pose_of(position, orientation)).as_array().tolist()
    _fill_xyz(position, values[:3])
    _fill(orientation, **dict(zip("xyzw", values[3:], strict=True)))


def _fill_xyz(vector: Any, values: list[float]) -> None:
    """Set the coordinates of a vector of a message."""
    _fill(vector, **dict(zip("xyz", values, strict=True)))


def _fill(part: Any, **values: Any) -> None:
    """Set fields of the copy of a message, whose class is foreign and mutable."""
    for name, value in values.items():
        setattr(part, name, value)
