"""Objects whose poses are on /tf."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import TransformStamped
from publishers import await_true
from rosgraph_msgs.msg import Clock
from tf2_msgs.msg import TFMessage

import tmkit as tk
from tmkit.simulation import Camera
from tmkit.spatial import Pose
from tmkit.world import Buffer, RosSensorSettings, TfSensor, TransformException
from tmkit.world.messages import ConnectivityException, ExtrapolationException, LookupException

WORLD_FROM_CAMERA = Pose.from_rpy([0.5, 0.0, 1.0], [math.pi, 0.1, 0.2])
CAMERA_FROM_TAG = Pose.from_rpy([0.05, -0.1, 0.95], [0.0, 0.2, 0.3])
PATIENT = RosSensorSettings(timeout=12.0)
"""The first look waits two minutes, and a later one 12 seconds."""

HASTY = RosSensorSettings(timeout=0.5)
"""A first look of five seconds, for publishers that are found before it."""


def publish_tag(robot: Any, pose: Pose = CAMERA_FROM_TAG, **options: Any) -> None:
    """Publish a tag below a static camera."""
    robot.publish_tf("world", "camera", WORLD_FROM_CAMERA, is_static=True)
    robot.publish_tf("camera", "tag_3", pose, **options)


def await_frames(sensor: TfSensor, *frames: str) -> None:
    """Wait until a sensor has received transforms of frames."""
    await_true(lambda: all(frame in sensor._tf.scene for frame in frames))


def test_a_look_returns_poses_that_are_measured_after_it(robot: Any, repeat: Any) -> None:
    """The pose is that in the root, through static and moving frames."""
    start = robot.now()

    def publish(number: int) -> None:
        publish_tag(robot, CAMERA_FROM_TAG @ Pose([0.0, 0.0, 1e-6 * number]))
        robot.publish_tf("world", "b", Pose([0.1, 0.2, 0.3]))

    repeat(publish)
    with TfSensor({"a": "tag_3", "b": "/b"}, settings=PATIENT) as sensor:
        first, second = sensor.look(), sensor.look()
    assert start.sec > 0
    assert [detection.frame for detection in first] == ["a", "b"]
    assert first[0].pose.is_close(WORLD_FROM_CAMERA @ CAMERA_FROM_TAG, translation_tolerance=0.01)
    assert first[1].pose.is_close(Pose([0.1, 0.2, 0.3]))
    assert first[0].pose.distance(second[0].pose)[0] > 5e-7  # a later message
    assert np.allclose(np.diag(first[0].covariance), [1e-6] * 3 + [1e-4] * 3)
    assert sensor.rejections == ()


def test_the_reference_frame_has_a_pose_in_the_scene(robot: Any, repeat: Any) -> None:
    """The frames of the robot need not begin at the root of the scene."""
    repeat(lambda _: robot.publish_tf("base_link", "a", Pose([0.4, 0.0, 0.1])))
    root_from_base, covariance = Pose.from_rpy([1.0, 2.0, 0.0], [0, 0, 0.5]), np.eye(6) * 1e-3
    settings = RosSensorSettings(
        root_from_frame=root_from_base, covariance=covariance, timeout=12.0
    )
    with TfSensor(["a"], relative_to="base_link", settings=settings) as sensor:
        (detection,) = sensor.look()
    assert detection.pose.is_close(root_from_base @ Pose([0.4, 0.0, 0.1]))
    assert np.array_equal(detection.covariance, covariance)


def test_static_objects_are_always_measured(robot: Any) -> None:
    """A fixture may be published once."""
    with TfSensor(["fixture"], settings=PATIENT) as sensor:
        robot.publish_tf("world", "fixture", Pose([0.3, 0, 0]), is_static=True, shift=-1e6)
        assert sensor.look()[0].pose == Pose([0.3, 0, 0])


def test_an_object_without_new_transforms_is_not_detected(robot: Any, repeat: Any) -> None:
    """A hand may hide it; it is in view only of a camera that should see it."""
    repeat(lambda _: robot.publish_tf("world", "b", Pose([0.1, 0.2, 0.3])))
    camera = Camera((0.45, 0.0, 1.2), (0.45, 0.01, 0.0))
    settings = RosSensorSettings(timeout=1.0, camera=camera)
    scene = tk.load_scene("panda_table", "blocks2")
    q = tk.load_manipulator("panda").ready_configuration(scene)
    q = scene.configuration({"panda_joint1": 2.0}, base=q)
    with TfSensor(["a", "b"], settings=settings) as sensor:
        await_true(lambda: robot.publish_tf("world", "a", Pose()) or "a" in sensor._tf.scene)
        assert [detection.frame for detection in sensor.look()] == ["b"]
        assert sensor.in_view(scene, q) == {"a", "b"}
    with TfSensor(["a"]) as sensor:
        assert sensor.in_view(scene, q) == frozenset()
    with TfSensor(["a"], settings=settings) as sensor:
        assert sensor.in_view(scene, q) == {"a"}


def test_frames_that_never_come_are_named(robot: Any, repeat: Any) -> None:
    """The nearest name is in the message."""
    with TfSensor({"a": "tag_3"}, settings=RosSensorSettings(timeout=0.02)) as sensor:
        message = "object 'a': .*'tag_3'.*nothing is received on /tf and /tf_static"
        with pytest.raises(LookupException, match=message):
            sensor.look()
    repeat(lambda _: publish_tag(robot))
    with TfSensor({"a": "tag_03"}, settings=HASTY) as sensor:
        await_frames(sensor, "tag_3", "world")
        message = "object 'a': unknown frame 'tag_03'; did you mean 'tag_3'"
        with pytest.raises(LookupException, match=message):
            sensor.look()
    with TfSensor({"a": "tag_3"}, relative_to="base", settings=HASTY) as sensor:
        await_frames(sensor, "tag_3", "world")
        with pytest.raises(LookupException, match="unknown frame 'base'"):
            sensor.look()


def test_trees_that_are_not_connected_are_named(robot: Any, repeat: Any) -> None:
    """A camera without a calibration has a tree of its own."""
    repeat(lambda _: robot.publish_tf("camera", "a", Pose()))
    repeat(lambda _: robot.publish_tf("world", "table", Pose()))
    with TfSensor(["a"], settings=HASTY) as sensor:
        await_frames(sensor, "a", "table")
        with pytest.raises(ConnectivityException, match="'a' and 'world' are in different trees"):
            sensor.look()


def test_loops_and_bad_numbers_are_reasons(robot: Any, repeat: Any) -> None:
    """The transforms that a buffer rejects are those that tf2 ignores."""

    def publish(_: int) -> None:
        robot.publish_tf("world", "table", Pose())
        robot.publish_tf("b", "a", Pose())
        robot.publish_tf("a", "b", Pose())
        message = TransformStamped(child_frame_id="c")
        message.header.frame_id, message.header.stamp = "world", robot.now()
        message.transform.rotation.w = 0.0
        robot.publish(TFMessage(transforms=[message]), "/tf")

    repeat(publish)
    with TfSensor(["a"], settings=HASTY) as sensor:
        await_true(lambda: {"a", "b", "table"} <= {*sensor._tf.scene.frame_names})
        with pytest.raises(TransformException, match=r"/tf .* cannot have parent .* descendant"):
            sensor.look()
    with TfSensor(["c"], settings=HASTY) as sensor:
        await_frames(sensor, "table")
        message = "object 'c': unknown frame 'c'.*/tf 'world' to 'c': .* quaternion of norm 1"
        with pytest.raises(LookupException, match=message):
            sensor.look()


def test_a_camera_on_an_arm_that_is_silent_is_named(robot: Any, repeat: Any) -> None:
    """The object is measured, and its path is not."""
    repeat(lambda _: robot.publish_tf("camera", "a", CAMERA_FROM_TAG))
    with TfSensor(["a"], settings=HASTY) as sensor:
        await_true(
            lambda: (
                robot.publish_tf("world", "camera", Pose(), shift=-5.0)
                or {"world", "a"} <= {*sensor._tf.scene.frame_names}
            )
        )
        message = "'a' is measured, and frame 'camera' on its path to 'world' has no transform"
        with pytest.raises(ExtrapolationException, match=message):
            sensor.look()


@pytest.mark.parametrize(
    ("shift", "message"),
    [
        (-50.0, r"no transform of 'a' is new: the newest is \d+\.\d s old; .*clocks"),
        (50.0, r"'a' is \d+\.\d s in the future; the clocks"),
    ],
)
def test_clocks_that_differ_are_named(shift: float, message: str, robot: Any, repeat: Any) -> None:
    """Else no look would detect anything, or each look something old."""
    repeat(lambda _: robot.publish_tf("world", "a", Pose(), shift=shift))
    with TfSensor(["a"], settings=HASTY) as sensor:
        await_frames(sensor, "a")
        with pytest.raises(ExtrapolationException, match=message):
            sensor.look()


def test_the_clock_of_a_simulation_is_used(robot: Any, repeat: Any) -> None:
    """Stamps and looks are in simulated time."""

    def publish(number: int) -> None:
        clock = Clock()
        clock.clock.sec, clock.clock.nanosec = number // 50, 20_000_000 * (number % 50)
        robot.publish(clock, "/clock")
        message = TransformStamped(child_frame_id="a")
        message.header.frame_id, message.header.stamp = "world", clock.clock
        robot.publish(TFMessage(transforms=[message]), "/tf")

    repeat(publish)
    settings = RosSensorSettings(timeout=12.0, use_sim_time=True)
    with TfSensor(["a"], settings=settings) as sensor:
        await_true(lambda: sensor._ros.now() > 0.0)
        assert sensor.look()[0].pose == Pose()


def test_objects_move_in_a_live_world(robot: Any, repeat: Any) -> None:
    """An object keeps its parent, and its pose has a stamp and a covariance."""
    scene = tk.load_scene("panda_table", "blocks2")
    world = Buffer(scene=scene)
    measured = scene.pose("table") @ Pose([0.1, 0.05, 0.2])
    with TfSensor({"a": "tag_3", "unknown": "tag_3"}) as sensor:
        sensor.follow(world)
        repeat(lambda _: robot.publish_tf("world", "tag_3", measured))
        await_true(lambda: world.scene.pose("a").is_close(measured))
        await_true(lambda: len(world.scene.stamped_poses("a")) > 2)
    assert world.scene.parent("a") == "table"
    assert np.allclose(world.scene.standard_deviation("a"), [1e-3] * 3 + [1e-2] * 3)
    assert np.all(np.diff(world.scene.stamped_poses("a").stamps) >= 0.05 - 1e-6)
    assert world.rejections == sensor.rejections == ()
    assert world.scene.pose("b") == scene.pose("b")
