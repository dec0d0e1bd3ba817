"""Plans in which two arms act at the same time, on ROS 2 controllers."""

from __future__ import annotations

import signal
from typing import Any

from .conftest import Ros, stand_in_settings, write_controllers


def test_both_arms_move_at_the_same_time(plans: Any, ros: Ros) -> None:
    """The second arm starts before the first one ends; in turn it starts afterwards."""
    plan, file = plans("two arms")
    controllers = write_controllers(ros.folder, plan)
    begins = []
    for options in ((), ("--in-turn",)):
        with ros.controllers(stand_in_settings(plan, factor=1.0)) as robot:
            done = ros.execute(file, controllers, *options)
        assert done.code == 0, (done, robot.events)
        assert done.report["complete_steps"] == len(plan.steps)
        first_end = next(i for i, event in enumerate(robot.events) if "succeeded" in event)
        arms = {event.split()[-1] for event in robot.events[:first_end] if "goal" in event}
        begins.append(arms)
        assert sum(event.startswith("switch") for event in robot.events) == 4
    assert begins == [{"baxter_controller", "baxter_left_controller"}, {"baxter_controller"}]


def test_the_failure_of_one_arm_stops_both(plans: Any, ros: Ros) -> None:
    """The report is of the arm that failed, and no step is complete."""
    plan, file = plans("two arms")
    stall = {"kind": "stall", "goal": 2, "time": 0.8}
    with ros.controllers(stand_in_settings(plan, stall, factor=0.2)) as robot:
        controllers = write_controllers(ros.folder, plan)
        done = ros.execute(file, controllers)
    assert done.code == 1, done
    assert done.report["status"] == "aborted"
    assert "PATH_TOLERANCE_VIOLATED" in done.report["message"]
    failed, other = "baxter_controller", "baxter_left_controller"
    if "goal 2 baxter_left_controller" in robot.events:
        failed, other = other, failed
    assert done.report["step"] == (1 if failed == "baxter_controller" else 3)
    assert done.report["complete_steps"] == 0
    assert done.report["is_at_rest"]
    assert set(done.report["positions"]) == {j for arm in plan.robots for j in arm.joints}
    assert f"cancelled {other}" in robot.events
    assert not any("goal 3" in event for event in robot.events)


def test_a_signal_stops_both_arms(plans: Any, ros: Ros) -> None:
    """Both goals are cancelled before the program ends."""
    plan, file = plans("two arms")
    mark = {"kind": "mark", "goal": 2, "time": 0.5}
    with ros.controllers(stand_in_settings(plan, mark, factor=0.2)) as robot:

        def interrupt(process: Any) -> None:
            robot.wait("mark")
            process.send_signal(signal.SIGINT)

        controllers = write_controllers(ros.folder, plan)
        done = ros.execute(file, controllers, during=interrupt)
    assert done.code == 130, done
    assert {"cancelled baxter_controller", "cancelled baxter_left_controller"} <= {*robot.events}
    assert done.report["status"] == "stopped"
    assert done.report["is_at_rest"]


def test_a_late_hand_stops_both_arms(plans: Any, ros: Ros) -> None:
    """An arm whose release does not end cannot keep up, and the other does not go on alone."""
    plan, file = plans("two arms")
    mute = {"kind": "mute", "goal": 4}
    with ros.controllers(stand_in_settings(plan, mute, factor=0.2)) as robot:
        controllers = write_controllers(ros.folder, plan, schedule_tolerance=0.15)
        done = ros.execute(file, controllers)
    assert done.code == 1, done
    assert done.report["status"] == "deviation", done
    assert "arm 'baxter_left' is 0." in done.report["message"]
    assert "s behind arm 'baxter' in the schedule (tolerance 0.15 s)" in done.report["message"]
    assert (done.report["step"], done.report["kind"]) == (4, "release")
    assert "cancelled baxter_controller" in robot.events
    assert done.report["is_at_rest"]
