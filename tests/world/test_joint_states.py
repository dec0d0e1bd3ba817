"""Joint states in a buffer: messages with other joints, gaps, repetitions and any order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tmkit.errors import UnknownNameError
from tmkit.graph import Continuous, Mimic, Prismatic, Revolute, SceneGraph
from tmkit.graph.moments import joint_history
from tmkit.world import Buffer, Header, JointState, Time

JOINTS = ("shoulder", "rail", "wheel")
WINDOW = 10.0


def robot() -> SceneGraph:
    """Return a robot with three joints, and a finger that mimics the rail."""
    scene = SceneGraph()
    limits: dict[str, Any] = {"lower": -3.0, "upper": 3.0}
    scene = scene.add_frame("a", "world", joint=Revolute([0, 0, 1], name="shoulder", **limits))
    scene = scene.add_frame("b", "a", joint=Prismatic([1, 0, 0], name="rail", **limits))
    scene = scene.add_frame("c", "b", joint=Continuous([0, 0, 1], name="wheel"))
    mimic = Prismatic([0, 1, 0], name="finger", mimic=Mimic("rail"), **limits)
    return scene.add_frame("d", "b", joint=mimic)


def state(seconds: int, values: dict[str, float]) -> JointState:
    """Return a message of joint values at a time."""
    return JointState(Header(Time(seconds)), [*values], [*values.values()])


VALUES = st.one_of(st.floats(-3.0, 3.0), st.sampled_from([math.nan, math.inf]))
NAMES = st.sampled_from([*JOINTS, "finger", "left_wheel", "panda_joint1"])
MESSAGES = st.lists(
    st.tuples(st.integers(1, 30), st.dictionaries(NAMES, VALUES, max_size=6)), max_size=12
)


@given(MESSAGES)
def test_a_buffer_agrees_with_a_table_of_values(
    messages: list[tuple[int, dict[str, float]]],
) -> None:
    """The model is a dict of values by stamp for each joint; a rejected message changes nothing."""
    buffer = Buffer(WINDOW, scene=robot())
    model: dict[str, dict[int, float]] = {joint: {} for joint in JOINTS}
    for seconds, values in messages:
        known = {name: x for name, x in values.items() if name in JOINTS and not math.isnan(x)}
        is_valid = bool(known) and all(math.isfinite(x) for x in known.values())
        for name in known:
            newest = max(model[name], default=seconds)
            is_valid &= seconds not in model[name] and seconds >= newest - WINDOW
        before, count = buffer.scene, len(buffer.rejections)
        assert buffer.set_joint_states(state(seconds, values)) == is_valid
        assert len(buffer.rejections) == count + (not is_valid)
        if not is_valid:
            assert buffer.scene is before
            continue
        for name, x in known.items():
            model[name][seconds] = x
            newest = max(model[name])
            model[name] = {t: y for t, y in model[name].items() if t >= newest - WINDOW}

    latest = buffer.latest_configuration()
    assert latest.joint_names == JOINTS
    for index, joint in enumerate(JOINTS):
        if not model[joint]:
            assert np.isnan(latest.q[index])
            assert latest.age(30.0, [joint]) == math.inf
            continue
        newest = max(model[joint])
        assert latest.stamps[index] == newest
        assert latest.q[index] == pytest.approx(model[joint][newest], abs=1e-9)
        assert latest.age(Time(31), [joint]) == 31.0 - newest
        stamps, values = joint_history(buffer.scene, joint)
        assert [*stamps] == sorted(model[joint])
        assert np.allclose(values, [model[joint][int(stamp)] for stamp in stamps], atol=1e-9)
    assert latest.age(31.0) == max(latest.age(31.0, [joint]) for joint in JOINTS)


@given(st.permutations([*JOINTS, "left_wheel", "finger"]))
def test_the_order_of_joints_in_a_message_is_arbitrary(names: list[str]) -> None:
    """Values go to joints by name."""
    values = {"shoulder": 0.5, "rail": -1.0, "wheel": 2.0, "left_wheel": 99.0, "finger": 9.0}
    buffer = Buffer(scene=robot())
    assert buffer.set_joint_states(state(5, {name: values[name] for name in names}))
    assert np.allclose(buffer.latest_configuration().q, [0.5, -1.0, 2.0])


def test_two_publishers_fill_one_configuration() -> None:
    """An arm and a base publish their joints at different times, with joints of another robot."""
    buffer = Buffer(WINDOW, scene=robot())
    assert buffer.latest_configuration().age(0.0) == math.inf
    assert buffer.set_joint_states(state(4, {"wheel": 0.1, "left_wheel": 7.0}), "base")
    assert buffer.set_joint_states(state(6, {"shoulder": 0.2, "rail": 0.3}), "arm")
    assert buffer.set_joint_states(state(5, {"shoulder": 0.1}), "arm")  # an older one comes later
    latest = buffer.latest_configuration()
    assert np.allclose(latest.q, [0.2, 0.3, 0.1])
    assert latest.stamps.tolist() == [6.0, 6.0, 4.0]
    assert (latest.age(7.0), latest.age(7.0, ["shoulder", "rail"])) == (3.0, 1.0)
    assert latest.age(5.0, ["shoulder"]) == -1.0
    buffer.clear()
    assert np.isnan(buffer.latest_configuration().q).all()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"left_wheel": 1.0, "shoulde": 0.0}, "driver: unknown joint 'left_wheel'"),
        ({"shoulde": 0.0}, "driver: unknown joint 'shoulde'; did you mean 'shoulder'"),
        ({"finger": 0.5}, "driver: no joint has a value of its own"),
        ({"shoulder": math.nan}, "driver: no joint has a value of its own"),
        ({}, "driver: no joint has a value of its own"),
        ({"rail": 0.0, "shoulder": math.inf}, "joint 'shoulder'"),
    ],
)
def test_messages_without_values_are_rejected(values: dict[str, float], reason: str) -> None:
    """The reason is in the rejections."""
    buffer = Buffer(scene=robot())
    before = buffer.scene
    assert not buffer.set_joint_states(state(1, values), "driver")
    assert reason in buffer.rejections[-1]
    assert buffer.scene is before


def test_unknown_joints_have_no_age() -> None:
    """The error names the nearest joint."""
    with pytest.raises(UnknownNameError, match="unknown joint 'whel'; did you mean 'wheel'"):
        Buffer(scene=robot()).latest_configuration().age(0.0, ["whel"])
