"""Sensor of objects that a detector publishes as ``vision_msgs/Detection3DArray``."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tmkit._core import AttachedShape, Box
from tmkit.errors import TmkitError
from tmkit.simulation import Detection
from tmkit.spatial import GaussianPose, Pose
from tmkit.spatial.converters import from_ros_pose
from tmkit.world.messages import TimeoutException, TransformException, pose_of, seconds_of
from tmkit.world.ros2.node import Delivery
from tmkit.world.ros2.sensors import RosSensor, RosSensorSettings

_MAX_MESSAGES = 50
"""Number of messages that wait for their transforms."""


class VisionSensor(RosSensor):
    """Sensor that reads poses with covariance from ``vision_msgs/Detection3DArray``.

    Use it as a context manager, or call :meth:`close`, and pass it to
    :func:`tmkit.world.execute_closed_loop`. Of each detection, the hypothesis with the highest
    score counts. A covariance of zeros is that of the settings. Poses are measured in the frame of
    their header, which ``/tf`` relates to the reference frame at the stamp of the header.

    Args:
        topic: topic of the detections.
        objects: id or class id of detections by object of the scene. A detection of no such id is
            of an object whose classes include its class id, and is associated by its pose.
        relative_to: frame of ``/tf`` in which the poses are expressed. By default, the root of the
            scene.
        min_score: least score of a detection.
        settings: pose of that frame in the scene, covariance, time limit and view.

    Raises:
        MissingExtraError: if rclpy, tf2_msgs or vision_msgs of ROS 2 cannot be imported.
    """

    def __init__(
        self,
        topic: str,
        objects: Mapping[str, str] | None = None,
        *,
        relative_to: str = "world",
        min_score: float = 0.0,
        settings: RosSensorSettings | None = None,
    ) -> None:
        super().__init__("tmkit_vision", relative_to, settings or RosSensorSettings())
        self._topic, self._min_score = topic, min_score
        self._objects = {identifier: name for name, identifier in (objects or {}).items()}
        self._messages: deque[Any] = deque(maxlen=_MAX_MESSAGES)
        self._unfollowed: deque[Any] = deque(maxlen=_MAX_MESSAGES)
        self._newest = -np.inf
        self._ros.subscribe(
            "vision_msgs.msg.Detection3DArray",
            topic,
            self._receive_detections,
            delivery=Delivery.SENSOR,
        )
        self._ros.start()

    def _detects(self, name: str) -> bool:
        return not self._objects or name in self._objects.values()

    def _read(self, begin: float) -> tuple[Sequence[Detection], bool]:
        for message in [*self._messages]:
            if seconds_of(message.header.stamp) < begin:
                continue
            try:
                return self._detections(message), True
            except TransformException:
                continue  # its transforms may follow
        return (), False

    def _check(self, begin: float) -> None:
        if self._newest >= begin:
            self._detections(self._messages[-1])  # raises the error of its transform
        else:
            age = self._ros.now() - self._newest
            count = self._ros.node.count_publishers(self._topic)
            newest = f"the newest is {age:.1f} s old" if np.isfinite(age) else "there was none"
            raise TimeoutException(
                f"topic '{self._topic}' has no detections since the look: {newest}, and {count}"
                f" publisher{'s' * (count != 1)}"
            )

    def _detections(self, message: Any) -> list[Detection]:
        """Return the detections of a message, without those that are not valid.

        Raises:
            TransformException: if the pose of a frame of a header is not known at its stamp.
        """
        detections = []
        for entry in message.detections:
            results = [item for item in entry.results if item.hypothesis.score >= self._min_score]
            if not results:
                continue
            best = max(results, key=lambda item: item.hypothesis.score)
            header = entry.header if entry.header.frame_id else message.header
            root_from_frame = self._reference_pose(header)
            label = best.hypothesis.class_id
            name = self._objects.get(entry.id) or self._objects.get(label)
            try:
                pose = self._hypothesis_pose(entry, best)
                shapes = _box_shapes(entry.bbox, pose.mean)
            except TmkitError as error:
                self._faults.append(f"{self._topic}: detection '{entry.id or label}': {error}")
                continue
            in_root = root_from_frame @ pose
            classes = () if name is not None or not label else (label,)
            detections.append(Detection(name, in_root.mean, in_root.covariance, classes, shapes))
        return detections

    def _reference_pose(self, header: Any) -> Pose:
        """Return root_from_frame of a header."""
        frame = header.frame_id.removeprefix("/")
        if frame == self._relative_to:
            return self._settings.root_from_frame
        return self._frame_pose(frame, header.stamp)[0]

    def _hypothesis_pose(self, entry: Any, best: Any) -> GaussianPose:
        """Return the pose of a hypothesis, or of its box if only that is set.

        Raises:
            TmkitError: if it is not a pose with covariance.
        """
        pose_of(best.pose.pose.position, best.pose.pose.orientation)  # checks the numbers
        pose = from_ros_pose(best.pose)
        if pose.mean == Pose() and not np.any(pose.covariance):
            center = entry.bbox.center  # no object is at the origin of a camera
            pose = GaussianPose(pose_of(center.position, center.orientation))
        if np.any(pose.covariance):
            return pose
        return GaussianPose(pose.mean, self._covariance)

    def _receive_detections(self, message: Any) -> None:
        """Store a message, and add its poses to live worlds."""
        self._messages.append(message)
        self._newest = max(self._newest, seconds_of(message.header.stamp))
        if not self._followers:
            return
        self._unfollowed.append(message)
        for _ in range(len(self._unfollowed)):
            first = self._unfollowed.popleft()
            try:
                detections = self._detections(first)
            except TransformException as error:
                if self._ros.now() - seconds_of(first.header.stamp) < self._settings.timeout:
                    self._unfollowed.append(first)  # its transforms may follow
                else:
                    self._faults.append(f"{self._topic}: {error}")
                continue
            for detection in detections:
                if detection.frame is not None:
                    pose = GaussianPose(detection.pose, detection.covariance)
                    self._follow(detection.frame, pose, seconds_of(first.header.stamp))


def _box_shapes(box: Any, pose: Pose) -> tuple[AttachedShape, ...]:
    """Return the box of a detection in the axes of its pose, if it has a size.

    Raises:
        TmkitError: if the box has no pose or no valid size.
    """
    size = [box.size.x, box.size.y, box.size.z]
    if not any(size):
        return ()
    center = pose_of(box.center.position, box.center.orientation)
    return (AttachedShape(Box(size), pose.inverse() @ center),)
