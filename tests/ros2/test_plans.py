"""Plans of several robots and domains on ROS 2 controllers, to their end."""

from __future__ import annotations

import os
from typing import Any

import pytest
from rosbags.rosbag2 import Reader

from tmkit.plans import export_plan

from .conftest import HERE, PROBLEMS, Ros, stand_in_settings, write_controllers

CHEAP = ("xarm", "xarm7", "ur5", "drawer", "mobile base", "two arms")
"""Names of the plans that are executed by default."""

EXECUTED = tuple(PROBLEMS) if os.environ.get("TMKIT_ROS2_PLANS") == "all" else CHEAP
"""Names of the plans that are executed; all by the variable TMKIT_ROS2_PLANS."""


@pytest.mark.parametrize("name", EXECUTED)
def test_a_plan_is_executed_to_its_end(name: str, plans: Any, ros: Ros) -> None:
    """All goals of a plan succeed, and the hand closes on each object."""
    plan, file = plans(name)
    # Faster arms leave less time between their starts: the tolerance is in the time of the plan.
    settings = stand_in_settings(plan, factor=1.0 if plan.starts else 4.0)
    with ros.controllers(settings) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan))
    assert done.code == 0, (done, robot.events)
    assert done.report["status"] == "succeeded"
    assert done.report["complete_steps"] == len(plan.steps)
    hands = sum(s.kind in ("grasp", "release") for step in plan.steps for s in step.segments)
    assert sum(event.startswith(("hand", "switch")) for event in robot.events) >= hands
    assert not [event for event in robot.events if "rejected" in event or "abort" in event]


@pytest.mark.parametrize("name", EXECUTED)
def test_the_trajectories_of_a_bag_are_accepted(name: str, plans: Any, ros: Ros) -> None:
    """Each trajectory of an exported bag, published as it is, passes the checks of a controller."""
    plan, _ = plans(name)
    export_plan(plan, ros.folder / "bag", format="ros2")
    with Reader(ros.folder / "bag") as bag:
        messages = [
            f"{connection.topic} {connection.msgtype} {data.hex()}"
            for connection, _, data in bag.messages()
            if connection.topic.endswith("/joint_trajectory")
        ]
    assert messages
    with (
        ros.controllers(stand_in_settings(plan)) as robot,
        ros.start(HERE / "publish.py") as sender,
    ):
        assert sender.stdin is not None
        for message in messages:
            sender.stdin.write(f"{message}\n")
            sender.stdin.flush()
            robot.wait("trajectory")
            assert robot.events[-1] == f"trajectory {message.split('/')[1]}"
        sender.stdin.close()
        assert sender.wait() == 0
