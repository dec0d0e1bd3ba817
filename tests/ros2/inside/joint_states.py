"""Joint states of a topic in a buffer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from publishers import PATIENCE, await_true
from sensor_msgs.msg import JointState

import tmkit as tk
from tmkit.errors import UnknownNameError
from tmkit.world import Buffer, JointStates
from tmkit.world.messages import TimeoutException

ARM = {f"panda_joint{number}": 0.1 * number for number in range(1, 8)}


@pytest.fixture
def buffer() -> Buffer:
    """Buffer with a scene that has a Panda and its hand."""
    return Buffer(scene=tk.load_scene("panda_table", "blocks1"))


def test_values_arrive_with_their_stamps(buffer: Buffer, robot: Any, repeat: Any) -> None:
    """Arm and hand may have separate publishers, and further joints are skipped."""
    with JointStates(buffer) as states:
        repeat(lambda _: robot.publish_joints({**ARM, "wheel": 3.0}, who="arm"))
        repeat(lambda _: robot.publish_joints({"panda_finger_joint1": 0.02}, who="hand"))
        q = states.configuration(max_age=20.0, timeout=PATIENCE)
        assert states.fault(max_age=20.0) == ""
    expected = buffer.scene.configuration({**ARM, "panda_finger_joint1": 0.02})
    assert np.array_equal(q, expected)
    assert np.all(buffer.latest_configuration().stamps > 1e9)
    assert buffer.rejections == ()


def test_names_of_the_robot_are_those_of_the_scene(buffer: Buffer, robot: Any, repeat: Any) -> None:
    """A mapping renames joints; without it, the error has the nearest name."""
    names = {joint: joint.replace("panda", "fr3") for joint in ARM}
    repeat(lambda _: robot.publish_joints({names[joint]: value for joint, value in ARM.items()}))
    with JointStates(buffer, names=names) as states:
        q = states.configuration([*ARM], max_age=20.0, timeout=PATIENCE)
    assert np.array_equal(q, buffer.scene.configuration(ARM))
    with JointStates(Buffer(scene=tk.load_scene("panda_table", "blocks1"))) as states:
        message = r"no state of 'panda_joint1', .*; it has 'fr3_joint1', .*mean 'fr3_joint1'\?"
        await_true(lambda: "it has no messages" not in states.fault([*ARM]))
        with pytest.raises(TimeoutException, match=message):
            states.configuration([*ARM], timeout=0.2)


def test_a_silent_topic_is_named(buffer: Buffer) -> None:
    """The error has the topic and the joints."""
    message = "topic '/states' has no state of 'panda_joint1', .*: it has no messages"
    with (
        JointStates(buffer, topic="/states") as states,
        pytest.raises(TimeoutException, match=message),
    ):
        states.configuration([*ARM], timeout=0.1)


def test_frequent_messages_are_decimated(buffer: Buffer, robot: Any, repeat: Any) -> None:
    """Of many messages, one of each set of joints becomes a version."""
    versions: list[Any] = []
    sent: list[int] = []
    buffer.on_change(versions.append)

    def publish(number: int) -> None:
        robot.publish_joints(ARM)
        robot.publish_joints({"panda_finger_joint1": 0.02})
        sent.append(number)

    with JointStates(buffer, period=1000.0):
        repeat(publish)
        await_true(lambda: np.isfinite(buffer.latest_configuration().q).all())
        count = len(sent) + 20
        await_true(lambda: len(sent) > count)
    assert len(versions) == 2


def test_two_publishers_of_a_joint_are_named(buffer: Buffer, robot: Any, repeat: Any) -> None:
    """The values of both would alternate."""
    with JointStates(buffer) as states:
        repeat(lambda _: robot.publish_joints(ARM, who="one"))
        states.configuration([*ARM], max_age=20.0, timeout=PATIENCE)
        repeat(lambda _: robot.publish_joints({"panda_joint3": 0.5}, who="other"))
        message = "2 publishers send joint 'panda_joint3'"
        await_true(lambda: message in states.fault([*ARM], max_age=20.0))


@pytest.mark.parametrize(
    ("shift", "message"),
    [(-50.0, r"is \d+\.\d\d s old \(limit 2 s\)"), (50.0, r"has a stamp \d+\.\d\d s in the fu")],
)
def test_old_and_future_values_are_not_used(
    shift: float, message: str, buffer: Buffer, robot: Any, repeat: Any
) -> None:
    """The clocks of a robot and a program may differ."""
    with JointStates(buffer) as states:
        repeat(lambda _: robot.publish_joints(ARM, shift=shift))
        await_true(lambda: "no messages" not in states.fault([*ARM]))
        with pytest.raises(TimeoutException, match=message):
            states.configuration([*ARM], max_age=2.0, timeout=1.0)


def test_a_rejected_message_is_the_reason(buffer: Buffer, robot: Any, repeat: Any) -> None:
    """NaN marks a joint without a measurement; an infinite value rejects the message."""
    with JointStates(buffer) as states:
        repeat(lambda _: robot.publish_joints({**ARM, "panda_joint2": math.inf}))
        await_true(lambda: buffer.rejections)
        assert "/joint_states: " in buffer.rejections[0]
        assert buffer.rejections[-1] in states.fault([*ARM])


def test_lists_of_other_lengths_are_rejected(buffer: Buffer, robot: Any, repeat: Any) -> None:
    """Values without names have no meaning."""
    with JointStates(buffer):
        message = JointState(name=[*ARM], position=[0.0])
        repeat(lambda _: robot.publish(message, "/joint_states"))
        await_true(lambda: buffer.rejections)
    assert "7 joints have 1 positions" in buffer.rejections[0]


def test_unknown_joints_are_errors(buffer: Buffer) -> None:
    """The nearest name is in the message."""
    with pytest.raises(UnknownNameError, match="did you mean 'panda_joint1'"):
        JointStates(buffer, names={"panda_joint_1": "a"})
    with JointStates(buffer) as states, pytest.raises(UnknownNameError, match="panda_joint9"):
        states.fault(["panda_joint9"])
