"""Incoming transforms and their history: tf2's buffer over versions of a scene.

Each transform makes the next version; readers take the present version whole, and neither they nor
writers wait for each other. A lookup with a timeout sleeps until a version has the transform. As in
tf2, ``lookup_transform(target, source, time)`` returns target_from_source, and time 0 is the newest
time at which all of the way is known. ``docs/howto/coming_from_tf2.md`` has the differences. What
tf2 ignores with a line in its log is noted in :attr:`Buffer.refusals`.
"""

from __future__ import annotations

import copy
import logging
import time as clock
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

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
from tmkit.graph.moments import add_joint_values, configuration, driving_joints, joint_history
from tmkit.spatial import Pose
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
_REMEMBERED_REFUSALS = 100  # refusals
_Found = tuple[Pose, tuple[int, int]]  # target_from_source, and its time in seconds and nanoseconds


class Buffer(LiveScene):
    """Transforms of frames over time, with the interface of ``tf2_ros.Buffer``. Any thread may call any method.

    Times are messages with ``sec`` and ``nanosec``, ``rclpy`` times, or seconds; durations
    likewise.

    Args:
        cache_time: how long transforms are kept, in seconds or as a duration.
        scene: the scene to begin with, such as one with a robot and its joints; an empty one if
            omitted.
        capacity: so many transforms of one frame are kept at most, the newest.
    """

    def __init__(
        self, cache_time: Any = 10.0, *, scene: SceneGraph | None = None, capacity: int = 1000
    ) -> None:
        self._window = seconds_of(cache_time)
        StampedPoses(capacity=capacity, window=self._window)  # refuses limits
        self._capacity = capacity
        super().__init__(scene)
        self._refusals: deque[str] = deque(maxlen=_REMEMBERED_REFUSALS)
        self._now: float | None = None

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why transforms were ignored, of the last 100, with their authority."""
        return tuple(self._refusals)

    def set_transform(self, transform: object, authority: str = "default_authority") -> bool:
        """Take the pose of a frame in its parent at a time, and return whether it was taken.

        One that is too old, broken, or contradicts what is there is noted in :attr:`refusals`.
        O(log n + k), k kept. As in tf2, a stamp far in the future makes the present ones too old,
        until :meth:`clear`; see :meth:`set_clock`.

        Args:
            transform: a ``TransformStamped``.
            authority: the sender, for messages.
        """
        return self._taken(authority, lambda: self._insert(transform, is_static=False))

    def set_transform_static(self, transform: object, authority: str = "default_authority") -> bool:
        """Take a pose for all time, in place of all that was known of the frame, and return whether it was taken.

        Args:
            transform: a ``TransformStamped``; its stamp means nothing.
            authority: the sender, for messages.
        """
        return self._taken(authority, lambda: self._insert(transform, is_static=True))

    def set_pose(
        self, message: Any, child_frame_id: str, authority: str = "default_authority"
    ) -> bool:
        """Take the pose of a frame with its covariance, and return whether it was taken; a stamp of 0 is for all time.

        The covariance is that of the edge, also at its other stamps.

        Args:
            message: a ``PoseWithCovarianceStamped``; its covariance is in the axes of the frame of
                its header.
            child_frame_id: the frame whose pose it is.
            authority: the sender, for messages.
        """

        def insert() -> SceneGraph:
            pose, stamp = from_ros_pose(message.pose), seconds_and_nanoseconds(message.header.stamp)
            transform = transform_message(pose.mean, message.header.frame_id, child_frame_id, stamp)
            scene = self._insert(transform, is_static=stamp == (0, 0))
            return scene.set_covariance(child_frame_id.removeprefix("/"), pose.covariance)

        return self._taken(authority, insert)

    def set_joint_states(self, message: Any, authority: str = "default_authority") -> bool:
        """Take the values of joints at a time; return whether all were taken. Joints that mimic others follow these.

        Args:
            message: a ``JointState``; velocity and effort are not used.
            authority: the sender, for messages.
        """

        def insert() -> SceneGraph:
            if len(message.name) != len(message.position):
                raise InvalidArgumentException(
                    f"{len(message.name)} joints have {len(message.position)} positions"
                )
            if (repeated := first_repeated(message.name)) is not None:
                raise InvalidArgumentException(f"the joint '{repeated}' is named twice")
            scene = self._scene
            values = dict(zip(message.name, map(float, message.position), strict=True))
            values = {
                name: x
                for name, x in values.items()
                if scene.joint(scene.joint_frame(name)).mimic is None
            }
            stamp = self._stamp_of(message)
            return add_joint_values(
                scene, values, stamp=stamp, capacity=self._capacity, window=self._window
            )

        return self._taken(authority, insert)

    def clear(self) -> None:
        """Forget the transforms of all times; frames and static transforms stay."""

        def emptied(scene: SceneGraph) -> SceneGraph:
            with scene.edit() as edit:
                for frame in scene.frame_names:
                    known = scene.stamped_poses(frame)
                    if known is not None:
                        edit.set_stamped_poses(
                            frame, StampedPoses(capacity=known.capacity, window=known.window)
                        )
            return edit.finish()

        self.update(emptied)

    def set_clock(self, now: object) -> None:
        """Take the present time of the clock of the stamps; a jump back clears the buffer, with a warning in the log.

        A ``tf2_ros.Buffer`` reads its node's clock and clears itself likewise, as where a
        simulation or bag starts anew. Call this with each message of ``/clock``, or before
        transforms are taken. From the first call on, stamps more than ``cache_time`` after the
        clock are noted in :attr:`refusals` instead of taken.

        Args:
            now: a time, as that of a header.
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
        """Return the stamp of a message, which is not far in the future of the clock."""
        stamp = seconds_of(message.header.stamp)
        if self._now is not None and stamp > self._now + self._window:
            reason = (
                f"the stamp {stamp:.9g} s is more than {self._window:g} s after the clock,"
                f" {self._now:.9g} s"
            )
            raise InvalidArgumentException(reason)
        return stamp

    def _taken(self, authority: str, insert: Callable[[], SceneGraph]) -> bool:
        with self._lock:
            try:
                made = insert()
                self._record(made)
            except (TmkitError, AttributeError, TypeError) as error:
                self._refusals.append(f"{authority}: {error}")
                return False
            self._put(made)
        return True

    def _insert(self, transform: Any, *, is_static: bool) -> SceneGraph:
        header = transform.header
        child, parent = (
            transform.child_frame_id.removeprefix("/"),
            header.frame_id.removeprefix("/"),
        )
        if not child or not parent or child == parent:
            raise InvalidArgumentException(
                f"a transform needs two frames, not '{parent}' and '{child}'"
            )
        pose = pose_of(transform.transform.translation, transform.transform.rotation)
        stamp = seconds_of(header.stamp) if is_static else self._stamp_of(transform)
        scene = self._scene
        if child not in scene or scene.parent(child) != parent:
            scene = self._joined(scene, child, parent, pose, stamp, is_static)
        elif (joint := scene.joint(child)).type not in ("fixed", "free"):
            message = (
                f"frame '{child}' moves by joint '{joint.name}': its values come with"
                " set_joint_states"
            )
            raise InvalidArgumentException(message)
        if is_static:
            scene = scene.set_stamped_poses(child, None).set_pose(child, pose)
            scene = scene if scene.joint(child).is_stated else scene.set_joint(child, Fixed())
        else:
            try:
                scene = scene.add_stamped_pose(
                    child, pose, stamp=stamp, capacity=self._capacity, window=self._window
                )
            except StampError:
                known = scene.stamped_poses(child)
                if known is None or stamp not in known.stamps or not known.at(stamp).is_close(pose):
                    raise
        return scene

    @staticmethod
    def _joined(
        scene: SceneGraph, child: str, parent: str, pose: Pose, stamp: float, is_static: bool
    ) -> SceneGraph:
        if parent not in scene:
            scene = scene.add_frame(parent, body=parent)
        # a transform that may change does not state how
        joint = Fixed() if is_static else Unstated()
        if child not in scene:
            return scene.add_frame(child, parent, pose=pose, joint=joint)
        if scene.parent(child) is None:
            return scene.attach(child, parent, pose=pose, joint=joint)
        known = scene.stamped_poses(child)
        if known is not None and len(known) and stamp < known.stamps[-1] and not is_static:
            message = (
                f"frame '{child}' has parent '{scene.parent(child)}' since before"
                f" {known.stamps[-1]:.9g} s"
            )
            raise StampError(
                f"{message}, so a pose in '{parent}' at {stamp:.9g} s is too old", frame=child
            )
        made = scene.reparent(child, parent, pose=pose)
        return made.set_joint(child, joint) if made.joint(child).type == "fixed" else made

    def lookup_transform(
        self, target_frame: str, source_frame: str, time: object = 0, timeout: object = 0
    ) -> TransformStamped:
        """Return the transform that takes points of the source frame to the target frame.

        Args:
            target_frame: the frame to transform into.
            source_frame: the frame to transform from.
            time: when; 0 for the newest time at which all of the way is known.
            timeout: so long to wait for it.

        Raises:
            LookupException, ConnectivityException, ExtrapolationException,
                InvalidArgumentException: why it is not known, also after waiting.
        """
        pose, stamp = self._found(
            lambda scene: _find(scene, target_frame, source_frame, time), timeout
        )
        return transform_message(pose, target_frame, source_frame, stamp)

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
            target_frame: the frame to transform into, ...
            target_time: ... where it was at this time.
            source_frame: the frame to transform from, ...
            source_time: ... where it was at this time.
            fixed_frame: the frame that stays between the two times.
            timeout: so long to wait for it.

        Raises:
            LookupException, ConnectivityException, ExtrapolationException,
                InvalidArgumentException: as :meth:`lookup_transform`.
        """
        asked = (target_frame, target_time, source_frame, source_time, fixed_frame)
        pose, stamp = self._found(lambda scene: _find_full(scene, *asked), timeout)
        return transform_message(pose, target_frame, source_frame, stamp)

    def can_transform(
        self,
        target_frame: str,
        source_frame: str,
        time: object = 0,
        timeout: object = 0,
        return_debug_tuple: bool = False,
    ) -> bool | tuple[bool, str]:
        """Return whether a transform is known, after waiting for it.

        Args:
            target_frame, source_frame, time, timeout: as for :meth:`lookup_transform`.
            return_debug_tuple: whether to return the reason too, as text.
        """
        why = self._refusal(lambda scene: _find(scene, target_frame, source_frame, time), timeout)
        return (not why, why) if return_debug_tuple else not why

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
        """Return whether a transform between two times is known, after waiting for it.

        Args:
            target_frame, target_time, source_frame, source_time, fixed_frame: as for
                :meth:`lookup_transform_full`.
            timeout: likewise.
            return_debug_tuple: whether to return the reason too, as text.
        """
        asked = (target_frame, target_time, source_frame, source_time, fixed_frame)
        why = self._refusal(lambda scene: _find_full(scene, *asked), timeout)
        return (not why, why) if return_debug_tuple else not why

    def wait_for_transform(
        self, target_frame: str, source_frame: str, time: object, timeout: object
    ) -> TransformStamped:
        """Return a transform as soon as it is known.

        Args:
            target_frame, source_frame, time, timeout: as for :meth:`lookup_transform`.

        Raises:
            TimeoutException: it is not known in time.
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
        """Return the newest time at which all of the way between two frames is known; 0 if all of it is static.

        Args:
            target_frame: the one.
            source_frame: the other.

        Raises:
            LookupException, ConnectivityException, ExtrapolationException: as
                :meth:`lookup_transform`.
        """
        return Time(*_find(self._scene, target_frame, source_frame, 0)[1])

    def transform(self, message: Any, target_frame: str, timeout: Any = 0) -> Any:
        """Return a copy of a stamped message in another frame, at its time.

        Args:
            message: has ``header``, and ``point``, ``vector``, ``transform`` or ``pose``; a
                ``pose`` may itself have ``pose`` and ``covariance`` (36 numbers), which is turned
                into the axes of the target frame.
            target_frame: the frame to transform into.
            timeout: so long to wait for the transform.

        Raises:
            LookupException, ConnectivityException, ExtrapolationException,
                InvalidArgumentException: as :meth:`lookup_transform`; or a message with none of
                these fields.
        """
        header = message.header
        pose, _ = self._found(
            lambda scene: _find(scene, target_frame, header.frame_id, header.stamp), timeout
        )
        made = copy.deepcopy(message)
        _fill(made.header, frame_id=target_frame)
        if hasattr(message, "point"):
            _fill(
                made.point,
                **dict(zip("xyz", pose.apply(_xyz(message.point)).tolist(), strict=True)),
            )
        elif hasattr(message, "vector"):
            _fill(
                made.vector,
                **dict(zip("xyz", pose.rotate(_xyz(message.vector)).tolist(), strict=True)),
            )
        elif hasattr(message, "transform"):
            _move(pose, made.transform.translation, made.transform.rotation)
        elif hasattr(getattr(message, "pose", None), "position"):
            _move(pose, made.pose.position, made.pose.orientation)
        elif hasattr(getattr(message, "pose", None), "covariance"):
            _move(pose, made.pose.pose.position, made.pose.pose.orientation)
            turn = np.kron(np.eye(2), pose.rotation)
            made.pose.covariance[:] = (
                turn @ np.reshape(message.pose.covariance, (6, 6)) @ turn.T
            ).ravel()
        else:
            what = type(message).__name__
            raise InvalidArgumentException(
                f"{what} has no point, vector, transform or pose to be transformed"
            )
        return made

    def all_frames_as_string(self) -> str:
        """Return a line for each frame that has a parent, as tf2 writes them."""
        scene = self._scene
        lines = [
            f"Frame {frame} exists with parent {scene.parent(frame)}.\n"
            for frame in scene.frame_names
        ]
        return "".join(line for line in lines if not line.endswith("parent None.\n"))

    def _found(self, find: Callable[[SceneGraph], _Found], timeout: Any) -> _Found:
        """Return what is found in the present version, or in one that comes in time, or raise TransformException."""
        end = None
        while True:
            scene = self._scene
            try:
                return find(scene)
            except InvalidArgumentException:
                raise
            except TransformException:
                end = clock.monotonic() + seconds_of(timeout) if end is None else end
                if (left := end - clock.monotonic()) <= 0.0:
                    raise
                self.wait(scene, left)

    def _refusal(self, find: Callable[[SceneGraph], _Found], timeout: Any) -> str:
        """Return why something is not found in time, as text; nothing if it is."""
        try:
            self._found(find, timeout)
        except TransformException as error:
            return str(error)
        return ""


def _find(scene: SceneGraph, target: str, source: str, time: Any) -> _Found:
    """Return the pose of the source in the target, and its time, or raise TransformException."""
    when = seconds_and_nanoseconds(time)
    if target == source:  # known of all frames, as in tf2
        return Pose(), when
    stamp = None if when == (0, 0) else when[0] + when[1] / 1e9
    try:
        if stamp is None:
            common = common_stamps(scene, source, target)
            stamp = None if common is None else common[1]
        if stamp is None:
            return scene.pose(source, relative_to=target), when
        pose = scene.pose(source, relative_to=target, stamp=stamp)
    except ConfigurationError:  # a joint is on the way
        return _find_by_joints(scene, target, source, stamp, is_latest=when == (0, 0))
    except (SceneError, UnknownNameError) as error:
        raise _explained(error, target, source) from error
    return pose, when if when != (0, 0) else seconds_and_nanoseconds(stamp)


def _find_by_joints(
    scene: SceneGraph, target: str, source: str, stamp: float | None, *, is_latest: bool
) -> _Found:
    joints = driving_joints(scene, source, target)
    try:
        if is_latest or stamp is None:
            newest = [joint_history(scene, joint)[0][-1:] for joint in joints]
            stamp = min(
                np.concatenate(newest).tolist() + ([] if stamp is None else [stamp]), default=0.0
            )
        q = configuration(scene, stamp, joints=joints)
        return scene.pose(source, relative_to=target, stamp=stamp, q=q), seconds_and_nanoseconds(
            stamp
        )
    except SceneError as error:
        raise _explained(error, target, source) from error


def _find_full(
    scene: SceneGraph, target: str, target_time: Any, source: str, source_time: Any, fixed: str
) -> _Found:
    there, _ = _find(scene, fixed, source, source_time)
    back, stamp = _find(scene, target, fixed, target_time)
    return back @ there, stamp


def _explained(error: TmkitError, target: str, source: str) -> TransformException:
    """Return the error of a lookup in tf2's terms."""
    frames = {"target_frame": target, "source_frame": source}
    way = f"when looking up the transform from frame [{source}] to frame [{target}]"
    for name in (target, source):
        if not name or name.startswith("/"):
            message = f"a frame id is not empty and has no '/' in front, unlike '{name}'"
            return InvalidArgumentException(message, **frames)
    if isinstance(error, UnknownNameError):
        return LookupException(str(error), **frames)
    if isinstance(error, DisconnectedError):
        return ConnectivityException(f"{error}, {way}", **frames)
    stamp, newest = error.data.get("stamp"), error.data.get("newest")
    where = (
        ""
        if stamp is None or newest is None
        else f" into the {'future' if stamp > newest else 'past'}"
    )
    return ExtrapolationException(f"this needs extrapolation{where}: {error}, {way}", **frames)


def _xyz(vector: Any) -> list[float]:
    return [vector.x, vector.y, vector.z]


def _move(pose: Pose, position: Any, orientation: Any) -> None:
    """Change a position and an orientation of a message to those in another frame."""
    moved = (pose @ pose_of(position, orientation)).as_array().tolist()
    _fill(position, **dict(zip("xyz", moved[:3], strict=True)))
    _fill(orientation, **dict(zip("xyzw", moved[3:], strict=True)))


def _fill(part: Any, **values: Any) -> None:
    """Fill in fields of the copy of a message: classes of messages are foreign, and mutable."""
    for name, value in values.items():
        setattr(part, name, value)
