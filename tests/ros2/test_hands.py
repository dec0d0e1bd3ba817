"""Hands and suction grippers of ROS 2, with rclpy and a stand-in for their controllers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tmkit.plans import Plan

from .conftest import Ros, stand_in_settings, write_controllers


@pytest.mark.parametrize("allow_stalling", [False, True])
def test_a_parallel_gripper_may_abort_when_it_stalls(
    allow_stalling: bool, plans: Any, ros: Ros
) -> None:
    """A stall at the planned width is a grasp, with either setting of the controller."""
    plan, file = plans("panda")
    settings = stand_in_settings(plan)
    settings["hands"][0] |= {"type": "ParallelGripperCommand", "allow_stalling": allow_stalling}
    with ros.controllers(settings):
        controllers = write_controllers(ros.folder, plan, gripper="ParallelGripperCommand")
        done = ros.execute(file, controllers)
    assert done.code == 0, done


def test_a_slow_hand_is_cancelled(plans: Any, ros: Ros) -> None:
    """A hand has a time limit."""
    plan, file = plans("panda")
    slow = {"kind": "slow", "goal": 1}
    with ros.controllers(stand_in_settings(plan, slow)) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan, gripper_time=1.0))
    assert done.code == 1, done
    assert done.report["status"] == "timeout"
    assert (done.report["step"], done.report["kind"]) == (1, "grasp")
    assert "'panda_hand' did not end within 1.00 s" in done.report["message"]
    assert "cancelled panda_hand" in robot.events


def test_a_hand_that_closes_on_nothing_ends_the_execution(plans: Any, ros: Ros) -> None:
    """Fingers that close completely hold nothing."""
    plan, file = plans("panda")
    settings = stand_in_settings(plan)
    settings["hands"][0]["objects"] = [None]
    with ros.controllers(settings):
        done = ros.execute(file, write_controllers(ros.folder, plan))
    assert done.code == 1, done
    assert done.report["status"] == "grasp"
    assert "the hand closed on nothing, not on 'a'" in done.report["message"]


def test_an_object_of_another_size_ends_the_execution(plans: Any, ros: Ros) -> None:
    """Fingers that stall elsewhere hold something else."""
    plan, file = plans("panda")
    settings = stand_in_settings(plan)
    settings["hands"][0]["objects"] = [0.035]
    with ros.controllers(settings):
        done = ros.execute(file, write_controllers(ros.folder, plan))
    assert done.code == 1, done
    assert "the grasp of 'a' ended elsewhere and stalled" in done.report["message"]


def test_a_hand_that_jams_at_a_release_ends_the_execution(plans: Any, ros: Ros) -> None:
    """A stall is no success where the hand opens."""
    plan, file = plans("panda")
    settings = stand_in_settings(plan, {"kind": "jam", "goal": 2})
    with ros.controllers(settings):
        done = ros.execute(file, write_controllers(ros.folder, plan))
    assert done.code == 1, done
    assert (done.report["status"], done.report["kind"]) == ("grasp", "release")
    assert "the motion of the hand ended elsewhere and stalled" in done.report["message"]


@pytest.mark.parametrize(
    ("kind", "scale", "offset"),
    [("GripperCommand", 2.0, 0.0), ("ParallelGripperCommand", -20, 0.8)],
)
def test_a_hand_may_have_other_units(
    kind: str, scale: float, offset: float, plans: Any, ros: Ros
) -> None:
    """Commands are a gap, or an angle that grows as the hand closes; both with the grip force."""
    plan, file = plans("panda")
    settings = stand_in_settings(plan)
    settings["hands"][0] |= {"type": kind, "scale": scale, "offset": offset}
    controllers = write_controllers(ros.folder, plan, gripper=kind)
    with controllers.open("a", encoding="utf-8") as text:  # the table of the hand is the last one
        text.write(f"scale = {scale}\noffset = {offset}\n")
    with ros.controllers(settings) as robot:
        done = ros.execute(file, controllers)
    assert done.code == 0, (done, robot.events)
    closed, opened = (scale * value + offset for value in (0.0, 0.04))
    assert [event for event in robot.events if event.startswith(("hand", "effort"))] == [
        f"hand 1 panda_hand to {closed:.4f}",
        f"effort [{plan.robot.grip_force}]",
        f"hand 2 panda_hand to {opened:.4f}",
        f"effort [{plan.robot.grip_force}]",
    ]


def _suction(folder: Path, plan: Plan, text: str, **settings: object) -> Path:
    """Write the controllers of a plan, with another table of the suction gripper."""
    file = write_controllers(folder, plan, **settings)
    lines = file.read_text(encoding="utf-8").partition("[suction.ur5]")[0]
    file.write_text(f"{lines}[suction.ur5]\n{text}\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("std_msgs/msg/Bool", 'topic = "/ur5_vacuum"'),
        (
            "std_msgs/msg/Float32",
            'topic = "/ur5_vacuum"\ntype = "std_msgs/msg/Float32"\non = { data = 1 }'
            "\noff = { data = 0 }",
        ),
    ],
)
def test_a_topic_switches_a_vacuum(kind: str, table: str, plans: Any, ros: Ros) -> None:
    """The message has the fields of the table; a sensor is optional."""
    plan, file = plans("ur5")
    settings = stand_in_settings(plan)
    settings["cups"][0]["type"] = kind
    with ros.controllers(settings) as robot:
        done = ros.execute(file, _suction(ros.folder, plan, table))
    assert done.code == 0, done
    on, off = ("1.0", "0.0") if "Float" in kind else ("True", "False")
    switches = [event for event in robot.events if event.startswith("switch")]
    assert switches == [f"switch 1 /ur5_vacuum [{on}]", f"switch 2 /ur5_vacuum [{off}]"]


def test_a_service_of_another_type_switches_a_vacuum(plans: Any, ros: Ros) -> None:
    """The request has the fields of the table, such as a digital output of a UR."""
    plan, file = plans("ur5")
    settings = stand_in_settings(plan)
    settings["cups"][0] |= {"name": "/io_controller/set_io", "type": "ur_msgs/srv/SetIO"}
    table = [
        'service = "/io_controller/set_io"',
        'type = "ur_msgs/srv/SetIO"',
        "on = { fun = 1, pin = 4, state = 1 }",
        "off = { fun = 1, pin = 4, state = 0 }",
        'sensor = "/ur5_vacuum_present"',
        "sensor_age = 20.0",
    ]
    with ros.controllers(settings) as robot:
        done = ros.execute(file, _suction(ros.folder, plan, "\n".join(table)))
    assert done.code == 0, (done, robot.events)
    assert [event for event in robot.events if event.startswith("switch")] == [
        "switch 1 /io_controller/set_io [1, 4, 1.0]",
        "switch 2 /io_controller/set_io [1, 4, 0.0]",
    ]
    table[2] = "on = { fun = 1, pin = 400, state = 1 }"
    done = ros.execute(file, _suction(ros.folder, plan, "\n".join(table)))
    assert "suction.ur5: on.pin: expected int8, received 400" in done.err


@pytest.mark.parametrize(
    ("fault", "status", "message"),
    [
        ("refuse", "rejected", "service '/ur5_vacuum' replied success = False: the pump is off"),
        ("mute", "server", "service '/ur5_vacuum' did not reply in 3 s"),
    ],
)
def test_a_vacuum_that_is_not_switched_ends_the_execution(
    fault: str, status: str, message: str, plans: Any, ros: Ros
) -> None:
    """The reply of the service counts."""
    plan, file = plans("ur5")
    with ros.controllers(stand_in_settings(plan, {"kind": fault, "goal": 1})) as robot:
        server_time = 3.0 if fault == "mute" else 60.0
        done = ros.execute(file, write_controllers(ros.folder, plan, server_time=server_time))
    assert done.code == 1, done
    assert (done.report["status"], done.report["kind"]) == (status, "grasp")
    assert message in done.report["message"]
    assert sum(event.startswith("goal") for event in robot.events) == 1


def test_a_cup_without_an_object_ends_the_execution(plans: Any, ros: Ros) -> None:
    """Without a vacuum nothing is lifted."""
    plan, file = plans("ur5")
    settings = stand_in_settings(plan)
    settings["cups"][0]["objects"] = [False]
    with ros.controllers(settings) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan, gripper_time=1.0))
    assert done.code == 1, done
    assert done.report["status"] == "grasp"
    assert "closed on nothing, not on 'a': topic '/ur5_vacuum_present'" in done.report["message"]
    assert sum(event.startswith("goal") for event in robot.events) == 1


@pytest.mark.parametrize("fault", ["lose", "mute sensor"])
def test_a_lost_vacuum_stops_the_arm(fault: str, plans: Any, ros: Ros) -> None:
    """The arm does not carry on without its object, or without its sensor."""
    plan, file = plans("ur5")
    settings = stand_in_settings(plan, {"kind": fault, "goal": 2, "time": 0.3}, factor=0.2)
    with ros.controllers(settings) as robot:
        controllers = write_controllers(ros.folder, plan)
        text = controllers.read_text(encoding="utf-8").replace("sensor_age = 20.0", "sensor_age=3")
        controllers.write_text(text, encoding="utf-8")
        done = ros.execute(file, controllers)
    assert done.code == 1, done
    assert done.report["step"] in (1, 2)
    assert done.report["is_at_rest"]
    assert "cancelled ur5_controller" in robot.events
    lost = "arm 'ur5' lost 'a': topic '/ur5_vacuum_present' has no vacuum"
    message = lost if fault == "lose" else "topic '/ur5_vacuum_present' is 3."
    assert message in done.report["message"]
    assert done.report["status"] == ("grasp" if fault == "lose" else "state")


def test_a_held_object_is_compared_with_the_sensor_at_the_start(plans: Any, ros: Ros) -> None:
    """A plan that begins with an object in the hand needs a vacuum."""
    plan, file = plans("ur5")
    controllers = write_controllers(ros.folder, plan)
    with ros.controllers(stand_in_settings(plan)) as robot:
        first = ros.execute(file, controllers, "--until", "1")
        rest = ros.execute(file, controllers, "--from", "2")
    assert first.code == rest.code == 0, (first, rest, robot.events)
    settings = stand_in_settings(plan)
    settings["arms"][0]["joints"] |= first.report["positions"]
    with ros.controllers(settings):
        lost = ros.execute(file, controllers, "--from", "2")
    assert lost.code == 2
    assert "arm 'ur5' holds a, but topic '/ur5_vacuum_present' has no vacuum" in lost.err


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('service = "/v"\ntype = "no_srvs/srv/Set"\non = {}\noff = {}', "no package 'no_srvs'"),
        (
            'service = "/v"\ntype = "std_srvs/srv/SetBol"\non = {}\noff = {}',
            "package 'std_srvs' has no type 'std_srvs/srv/SetBol'; did you mean 'SetBool'",
        ),
        ('service = "/v"\non = { state = 1 }', "on: 'std_srvs/srv/SetBool' has no field 'state'"),
        ('service = "/v"\non = { data = 2.5 }', "on.data: expected boolean, received 2.5"),
        ('service = "/v"\nreply = { ok = 1 }', "reply: 'std_srvs/srv/SetBool' has no field 'ok'"),
        ('service = "/v"', "no servers have the service '/v'"),
        ('topic = "/v"', "topic '/v' has no subscriber"),
        ('topic = "/ur5_vacuum"\nsensor = "/none"', "topic '/none' has no message"),
    ],
)
def test_a_wrong_table_of_a_suction_gripper_is_named(
    table: str, message: str, plans: Any, ros: Ros
) -> None:
    """Nothing moves, and the error names the table, the key and what is expected."""
    plan, file = plans("ur5")
    settings = stand_in_settings(plan)
    settings["cups"][0]["type"] = "std_msgs/msg/Bool"
    with ros.controllers(settings) as robot:
        done = ros.execute(file, _suction(ros.folder, plan, table, server_time=2.0))
    assert done.code == 2, done
    assert message in done.err
    assert robot.events == ["ready"]
