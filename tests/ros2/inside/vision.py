"""Objects that a detector publishes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from publishers import await_true
from vision_msgs.msg import Detection3D, Detection3DArray, ObjectHypothesisWithPose

import tmkit as tk
from tmkit.spatial import GaussianPose, Pose
from tmkit.spatial.converters import from_ros_pose
from tmkit.world import Buffer, RosSensorSettings, TransformException, VisionSensor
from tmkit.world.detections import associate_detections
from tmkit.world.messages import LookupException, TimeoutException

WORLD_FROM_CAMERA = Pose.from_rpy([0.5, 0.0, 1.0], [math.pi, 0.1, 0.2])
CAMERA_FROM_CUP = Pose.from_rpy([0.05, -0.1, 0.95], [0.0, 0.2, 0.3])
PATIENT = RosSensorSettings(timeout=12.0)
HASTY = RosSensorSettings(timeout=0.5)


def fill(message: Any, pose: Pose) -> None:
    """Set the fields of a pose."""
    x, y, z, *rotation = pose.as_array().tolist()
    message.position.x, message.position.y, message.position.z = x, y, z
    message.orientation.x, message.orientation.y = rotation[:2]
    message.orientation.z, message.orientation.w = rotation[2:]


def detection(
    label: str, pose: Pose = CAMERA_FROM_CUP, *, score: float = 0.9, identifier: str = ""
) -> Detection3D:
    """Return a detection of a class, whose covariance grows along the axes of the camera."""
    result = ObjectHypothesisWithPose()
    result.hypothesis.class_id, result.hypothesis.score = label, score
    fill(result.pose.pose, pose)
    result.pose.covariance = np.diag([1e-6, 2e-6, 9e-6, 1e-4, 2e-4, 3e-4]).ravel().tolist()
    return Detection3D(id=identifier, results=[result])


def publish(robot: Any, *detections: Detection3D, shift: float = 0.0, frame: str = "cam") -> None:
    """Publish detections, and the pose of their camera."""
    robot.publish_tf("world", "camera", WORLD_FROM_CAMERA, is_static=True)
    robot.publish_tf("camera", "cam", Pose(), shift=shift)
    message = Detection3DArray(detections=list(detections))
    message.header.frame_id, message.header.stamp = frame, robot.now(shift)
    robot.publish(message, "/detections")


def test_a_look_returns_poses_with_their_covariance(robot: Any, repeat: Any) -> None:
    """The covariance of ROS is in the axes of the camera, that of tmkit in those of the object."""
    cup = detection("mug", identifier="7")
    repeat(lambda _: publish(robot, cup, detection("mug", score=0.2)))
    with VisionSensor("/detections", {"cup": "7"}, min_score=0.5, settings=PATIENT) as sensor:
        (seen,) = sensor.look()
    expected = WORLD_FROM_CAMERA @ from_ros_pose(cup.results[0].pose)
    assert seen.frame == "cup"
    assert seen.pose.is_close(expected.mean)
    assert np.allclose(seen.covariance, expected.covariance)
    left = GaussianPose(seen.pose, seen.covariance).left_covariance
    assert not np.allclose(np.diag(left)[:3], np.diag(seen.covariance)[:3])


def test_the_best_hypothesis_and_the_box_count(robot: Any, repeat: Any) -> None:
    """A detector may set its box only; the size becomes a shape of an object that is new."""
    boxed = Detection3D(results=[ObjectHypothesisWithPose()])
    boxed.results[0].hypothesis.class_id = "box"
    fill(boxed.bbox.center, CAMERA_FROM_CUP)
    boxed.bbox.size.x, boxed.bbox.size.y, boxed.bbox.size.z = 0.1, 0.2, 0.3
    two = detection("mug", score=0.3)
    two.results += detection("bowl", Pose([0.0, 0.1, 0.5]), score=0.8).results
    repeat(lambda _: publish(robot, boxed, two))
    objects = {"new": "box", "cup": "mug", "dish": "bowl"}
    with VisionSensor("/detections", objects, settings=PATIENT) as sensor:
        box, dish = sensor.look()
    assert (box.frame, dish.frame) == ("new", "dish")
    assert box.pose.is_close(WORLD_FROM_CAMERA @ CAMERA_FROM_CUP)
    assert np.allclose(np.diag(box.covariance), [1e-6] * 3 + [1e-4] * 3)
    assert box.shapes[0].shape == tk.Box([0.1, 0.2, 0.3])
    assert box.shapes[0].pose.is_close(Pose())
    assert dish.pose.is_close(WORLD_FROM_CAMERA @ Pose([0.0, 0.1, 0.5]))


def test_detections_without_a_name_are_associated(robot: Any, repeat: Any) -> None:
    """The nearest object of the class is meant."""
    scene = tk.load_scene("panda_table", "blocks2")
    near_b = WORLD_FROM_CAMERA.inverse() @ scene.pose("b") @ Pose([0.002, 0, 0])
    repeat(lambda _: publish(robot, detection("block", near_b)))
    with VisionSensor("/detections", settings=PATIENT) as sensor:
        look = sensor.look()
    assert look[0].frame is None
    assert look[0].classes == ("block",)
    assert [*associate_detections(look, scene, scene.zero_configuration())] == ["b"]


def test_bad_detections_do_not_hide_the_others(robot: Any, repeat: Any) -> None:
    """Each has its reason."""
    zero, infinite, covariance = detection("zero"), detection("infinite"), detection("covariance")
    zero.results[0].pose.pose.orientation.w = 0.0
    for axis in "xyz":
        setattr(zero.results[0].pose.pose.orientation, axis, 0.0)
    infinite.results[0].pose.pose.position.x = math.inf
    covariance.results[0].pose.covariance = np.diag([-1.0] * 6).ravel().tolist()
    flat = detection("flat")
    flat.bbox.size.x = 0.1
    bad = [zero, infinite, covariance, flat]
    repeat(lambda _: publish(robot, *bad, detection("mug")))
    with VisionSensor("/detections", {"cup": "mug"}, settings=PATIENT) as sensor:
        assert [seen.frame for seen in sensor.look()] == ["cup"]
    reasons = sensor.rejections[-4:]
    assert [r.split("'")[1] for r in reasons] == ["zero", "infinite", "covariance", "flat"]
    assert "quaternion of norm 1" in reasons[0]


def test_a_detector_that_is_silent_is_an_error(robot: Any) -> None:
    """An empty array is a look at nothing, and no array is a fault."""
    settings = RosSensorSettings(timeout=0.2)
    with VisionSensor("/detections", settings=settings) as sensor:
        message = "'/detections' has no detections since the look: there was none, and 0 publish"
        with pytest.raises(TimeoutException, match=message):
            sensor.look()
        await_true(lambda: publish(robot, shift=-9.0) or sensor._messages)
        message = r"since the look: the newest is \d+\.\d s old, and 1 publisher"
        with pytest.raises(TimeoutException, match=message):
            sensor.look()


def test_an_empty_look_is_complete(robot: Any, repeat: Any) -> None:
    """The detector looked and found nothing."""
    repeat(lambda _: publish(robot))
    with VisionSensor("/detections", settings=PATIENT) as sensor:
        assert sensor.look() == []


def test_a_frame_without_a_transform_is_named(robot: Any, repeat: Any) -> None:
    """The frame of the header is that of the camera."""
    repeat(lambda _: publish(robot, detection("mug"), frame="cam_2"))
    with VisionSensor("/detections", settings=HASTY) as sensor:
        await_true(lambda: sensor._messages and "cam" in sensor._tf.scene)
        with pytest.raises(LookupException, match="unknown frame 'cam_2'; did you mean 'cam'"):
            sensor.look()
        assert issubclass(LookupException, TransformException)


def test_objects_move_in_a_live_world(robot: Any, repeat: Any) -> None:
    """Poses and covariances are those of the messages."""
    scene = tk.load_scene("panda_table", "blocks2")
    world, cup = Buffer(scene=scene), detection("red")
    with VisionSensor("/detections", {"a": "red"}, settings=PATIENT) as sensor:
        sensor.follow(world)
        repeat(lambda _: publish(robot, cup))
        expected = WORLD_FROM_CAMERA @ from_ros_pose(cup.results[0].pose)
        await_true(lambda: world.scene.pose("a").is_close(expected.mean))
    assert world.scene.parent("a") == "table"
    assert np.allclose(world.scene.gaussian_pose("a").covariance, expected.covariance)
    assert world.rejections == ()
