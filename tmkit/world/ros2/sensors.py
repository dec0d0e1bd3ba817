"""Sensor of objects whose poses are on ``/tf``, and the base of sensors that need ``/tf``.

A look waits for poses that are measured after its call.
::

    look() called          timeout
    ----|--------------------|---->  time of the stamps
      x |   x a    x b       |       transforms of objects a and b
                  ^ the look ends: all objects are newer than the call

An object below moving frames, such as a tag below a camera on an arm, has the newest time at which
its whole path is known. An object without a new transform is not detected. Frames that were never
received, trees that are not connected and clocks that differ are errors, since a closed loop would
else run without seeing anything.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tmkit._core import SceneGraph
from tmkit._support.closing import Closing
from tmkit.simulation import Camera, Detection
from tmkit.simulation.rendering.studio import StillScene
from tmkit.simulation.sensing import visible_fractions
from tmkit.spatial import GaussianPose, Pose
from tmkit.spatial.converters import to_ros_pose
from tmkit.spatial.covariances import check_covariance
from tmkit.world.buffer import Buffer
from tmkit.world.messages import (
    ExtrapolationException,
    Header,
    Time,
    TransformException,
    pose_of,
    seconds_and_nanoseconds,
    seconds_of,
)
from tmkit.world.ros2.node import Delivery, RosNode

_POLL_PERIOD = 0.01
"""Time between two comparisons with the newest transforms [s]."""

_FIRST_LOOK = 10.0
"""Longest wait of the first look relative to that of others, since nodes find each other then."""

_MAX_AGE = 60.0
"""Age of the newest transform of all objects from which on a look is an error [s]."""

_MAX_FUTURE = 1.0
"""Time after the clock from which on a stamp is an error [s]."""

_FOLLOW_PERIOD = 0.05
"""Least time between two poses of an object that are added to a buffer [s]."""

_IN_VIEW = 0.65
"""Visible fraction from which on a camera detects an object."""

_IDENTITY = Pose()
"""Pose of the reference frame by default."""


@dataclass(frozen=True, kw_only=True)
class RosSensorSettings:
    """Settings of a sensor that receives poses from ROS.

    Args:
        root_from_frame: pose of the reference frame of the sensor in the root of the scene.
        covariance: (6, 6) covariance of the error of a pose, ordered [rho, theta], in the axes of
            the object [m, rad]. Defaults to 1 mm and 10 mrad along and about each axis.
        timeout: longest wait of a look [s]. The first look waits up to ten times as long.
        camera: view of the sensor. An object that it should see, and does not, is gone. By default,
            objects that are not seen are assumed to be as planned.
        use_sim_time: whether stamps are compared with ``/clock``, as in a simulation.
    """

    root_from_frame: Pose = _IDENTITY
    covariance: ArrayLike | None = None
    timeout: float = 1.0
    camera: Camera | None = None
    use_sim_time: bool = False


class RosSensor(Closing):
    """Base of sensors of objects: a node, a buffer of ``/tf``, and poses in a live world.

    Args:
        name: name of the node.
        relative_to: frame of ``/tf`` in which poses are measured.
        settings: further settings.

    Raises:
        MissingExtraError: if rclpy or tf2_msgs of ROS 2 cannot be imported.
        SceneError: if the covariance of the settings is not valid.
    """

    def __init__(self, name: str, relative_to: str, settings: RosSensorSettings) -> None:
        self._relative_to, self._settings = relative_to, settings
        self._covariance = np.diag([1e-6] * 3 + [1e-4] * 3)
        if settings.covariance is not None:
            self._covariance = check_covariance(
                settings.covariance, 6, what="the covariance of a sensor"
            )
        self._tf = Buffer(scene=SceneGraph(root=None))
        self._faults: deque[str] = deque(maxlen=100)
        self._followers: tuple[Buffer, ...] = ()
        self._followed: dict[str, float] = {}
        self._has_looked = False
        self._ros = RosNode(name, use_sim_time=settings.use_sim_time)
        for topic, delivery in (("/tf", Delivery.RELIABLE), ("/tf_static", Delivery.LATCHED)):
            self._ros.subscribe(
                "tf2_msgs.msg.TFMessage",
                topic,
                self._receive_static if delivery is Delivery.LATCHED else self._receive,
                delivery=delivery,
            )

    @property
    def rejections(self) -> tuple[str, ...]:
        """Reasons of the last rejections of transforms and detections."""
        return (*self._tf.rejections, *self._faults)

    def close(self) -> None:
        """End the subscriptions."""
        self._ros.close()

    def follow(self, buffer: Buffer) -> None:
        """Add the poses of objects to a live world as they arrive, at most 20 times a second.

        An object keeps its parent, in which its pose gets the stamp and the covariance of the
        measurement. Objects that the world lacks are skipped. Poses that
        cannot be added are in :attr:`rejections` here or of the buffer.

        Args:
            buffer: live world. If the parent of an object moves, it needs the poses of that time.
        """
        self._followers = (*self._followers, buffer)

    def look(self) -> Sequence[Detection]:
        """Return the objects with a pose that is measured after the call.

        Raises:
            TransformException: if an object was never received, its frame is not connected to the
                reference frame, or nothing is received, or the stamps are not those of the clock.
        """
        begin, factor = self._ros.now(), 1.0 if self._has_looked else _FIRST_LOOK
        end = time.monotonic() + factor * self._settings.timeout
        while True:
            detections, is_complete = self._read(begin)
            if is_complete or time.monotonic() > end:
                break
            time.sleep(_POLL_PERIOD)
        if not is_complete:
            self._check(begin)
        self._has_looked = True
        return detections

    def in_view(self, scene: SceneGraph, q: ArrayLike) -> Collection[str]:
        """Return the objects that the camera of the settings would see; none without a camera.

        Args:
            scene: scene to look at.
            q: (n_joints,) configuration.
        """
        if self._settings.camera is None:
            return frozenset()
        fractions = visible_fractions(StillScene(scene, q), self._settings.camera)
        return frozenset(
            name
            for name, fraction in fractions.items()
            if fraction >= _IN_VIEW and self._detects(name)
        )

    @abstractmethod
    def _read(self, begin: float) -> tuple[Sequence[Detection], bool]:
        """Return the detections since a time, and whether no more are expected."""

    @abstractmethod
    def _check(self, begin: float) -> None:
        """Raise the error of an incomplete look, if it is one."""

    @abstractmethod
    def _detects(self, name: str) -> bool:
        """Return whether the sensor can detect an object."""

    def _frame_pose(self, frame: str, stamp: object) -> tuple[Pose, float]:
        """Return root_from_frame and its time; 0 if no transform on the path moves.

        Raises:
            TransformException: if it is not known.
        """
        message = self._tf.lookup_transform(self._relative_to, frame, stamp)
        pose = pose_of(message.transform.translation, message.transform.rotation)
        return self._settings.root_from_frame @ pose, seconds_of(message.header.stamp)

    def _follow(self, name: str, pose: GaussianPose, stamp: float) -> None:
        """Add the pose of an object in the root to the live worlds."""
        if stamp - self._followed.get(name, -np.inf) < _FOLLOW_PERIOD:
            return
        self._followed[name] = stamp
        for buffer in self._followers:
            scene = buffer.scene
            parent = scene.parent(name) if name in scene else None
            if parent is None:
                continue
            try:
                message = buffer.lookup_transform(parent, scene.root(name), stamp)
            except TransformException as error:
                self._faults.append(f"pose of '{name}' in '{parent}': {error}")
                continue
            parent_from_root = pose_of(message.transform.translation, message.transform.rotation)
            header = Header(Time(*seconds_and_nanoseconds(stamp)), parent)
            fields = to_ros_pose(parent_from_root @ pose)
            buffer.set_pose(
                SimpleNamespace(header=header, pose=fields), name, self._ros.node.get_name()
            )

    def _receive(self, message: Any) -> None:
        """Add the transforms of ``/tf``."""
        for transform in message.transforms:
            self._tf.set_transform(transform, _authority("/tf", transform))

    def _receive_static(self, message: Any) -> None:
        """Add the transforms of ``/tf_static``."""
        for transform in message.transforms:
            self._tf.set_transform_static(transform, _authority("/tf_static", transform))


class TfSensor(RosSensor):
    """Sensor that reads the poses of objects from ``/tf`` and ``/tf_static``.

    Use it as a context manager, or call :meth:`close`, and pass it to
    :func:`tmkit.world.execute_closed_loop`.

    Args:
        objects: frames of ``/tf`` by object of the scene, or objects with frames of their names.
        relative_to: frame of ``/tf`` in which the poses are measured, such as that of the base. By
            default, the root of the scene.
        settings: pose of that frame in the scene, covariance, time limit and view.

    Raises:
        MissingExtraError: if rclpy or tf2_msgs of ROS 2 cannot be imported.
    """

    def __init__(
        self,
        objects: Mapping[str, str] | Iterable[str],
        *,
        relative_to: str = "world",
        settings: RosSensorSettings | None = None,
    ) -> None:
        super().__init__("tmkit_tf", relative_to, settings or RosSensorSettings())
        names = objects if isinstance(objects, Mapping) else {name: name for name in objects}
        self._objects = {name: frame.removeprefix("/") for name, frame in names.items()}
        self._ros.start()

    def _detects(self, name: str) -> bool:
        return name in self._objects

    def _read(self, begin: float) -> tuple[Sequence[Detection], bool]:
        detections = []
        for name, frame in self._objects.items():
            try:
                pose, stamp = self._frame_pose(frame, 0)
            except TransformException:
                continue
            if stamp == 0.0 or begin <= stamp <= self._ros.now() + _MAX_FUTURE:
                detections.append(Detection(name, pose, self._covariance))
        return detections, len(detections) == len(self._objects)

    def _check(self, begin: float) -> None:
        newest = -np.inf
        for name, frame in self._objects.items():
            stamp = self._newest_stamp(name, frame)
            newest = max(newest, stamp)
            if stamp < begin <= self._own_stamp(frame):
                raise self._stale_path(name, frame)
            if self._ros.now() + _MAX_FUTURE < stamp < np.inf:
                raise ExtrapolationException(
                    f"object '{name}': the newest transform of frame '{frame}' is"
                    f" {stamp - self._ros.now():.1f} s in the future; {_CLOCKS}",
                    target_frame=self._relative_to,
                    source_frame=frame,
                )
        age = self._ros.now() - newest
        if newest < begin and (not self._has_looked or age > _MAX_AGE):
            frames = ", ".join(f"'{frame}'" for frame in self._objects.values())
            raise ExtrapolationException(
                f"no transform of {frames} is new: the newest is {age:.1f} s old; the publisher has"
                f" ended, or {_CLOCKS}",
                target_frame=self._relative_to,
            )

    def _newest_stamp(self, name: str, frame: str) -> float:
        """Return the newest time at which the path of an object is known; infinite if always.

        Raises:
            TransformException: if it is never known.
        """
        try:
            _, stamp = self._frame_pose(frame, 0)
        except ExtrapolationException:
            raise self._stale_path(name, frame) from None
        except TransformException as error:
            reasons = [line for line in self.rejections if f"'{frame}'" in line]
            received = "" if len(self._tf.scene) else "; nothing is received on /tf and /tf_static"
            reason = f"; {reasons[-1]}" if reasons else received
            raise type(error)(
                f"object '{name}': {error}{reason}",
                target_frame=self._relative_to,
                source_frame=frame,
            ) from error
        return np.inf if stamp == 0.0 else stamp

    def _own_stamp(self, frame: str) -> float:
        """Return the newest time of the pose of a frame in its parent; -inf without one."""
        history = self._tf.scene.stamped_poses(frame)
        return float(history.stamps[-1]) if history is not None and len(history) else -np.inf

    def _stale_path(self, name: str, frame: str) -> ExtrapolationException:
        """Return the error of an object below a frame whose transforms have ended."""
        path = self._tf.scene.path(frame, self._relative_to)
        stamps = {part: self._own_stamp(part) for part in path}
        moving = {part: stamp for part, stamp in stamps.items() if np.isfinite(stamp)}
        oldest = min(moving, key=lambda part: moving[part])
        age = self._ros.now() - moving[oldest]
        return ExtrapolationException(
            f"object '{name}': frame '{frame}' is measured, and frame '{oldest}' on its path to"
            f" '{self._relative_to}' has no transform since {age:.1f} s",
            target_frame=self._relative_to,
            source_frame=frame,
        )

    def _receive(self, message: Any) -> None:
        super()._receive(message)
        if not self._followers:
            return
        for name, frame in self._objects.items():
            try:
                pose, stamp = self._frame_pose(frame, 0)
            except TransformException:
                continue  # its transforms may follow
            self._follow(name, GaussianPose(pose, self._covariance), stamp)


_CLOCKS = "the clocks of the computers differ (or use_sim_time)"
"""Cause of stamps that are not those of the clock."""


def _authority(topic: str, transform: Any) -> str:
    """Return the origin of a transform for messages."""
    return f"{topic} '{transform.header.frame_id}' to '{transform.child_frame_id}'"
