"""Plans on ROS 2 controllers, with rclpy and a stand-in for ros2_control."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from .conftest import Ros, stand_in_settings, write_controllers


def test_a_part_of_a_plan_starts_and_ends_where_it_is_told(plans: Any, ros: Ros) -> None:
    """The parts of a plan follow each other; a part from elsewhere does not start."""
    plan, file = plans("panda_tower")
    controllers = write_controllers(ros.folder, plan)
    with ros.controllers(stand_in_settings(plan)) as robot:
        first = ros.execute(file, controllers, "--until", "1")
        rest = ros.execute(file, controllers, "--from", "2")
        again = ros.execute(file, controllers, "--from", "2")
    assert first.code == 0, first
    assert first.report["complete_steps"] == 1
    assert rest.code == 0, (rest, robot.events)
    assert rest.report["complete_steps"] == len(plan.steps)
    assert again.code == 2, again
    assert "start of the plan: joint" in again.err


def test_a_step_that_is_not_confirmed_is_not_executed(plans: Any, ros: Ros) -> None:
    """The arm rests before the question, and keeps what it holds."""
    plan, file = plans("panda")
    with ros.controllers(stand_in_settings(plan)) as robot:
        controllers = write_controllers(ros.folder, plan)
        done = ros.execute(file, controllers, "--confirm", answers="y\nn\n")
    assert done.code == 1, done
    assert "1. (pick-up a table__-1__0): execute?" in done.err
    assert "2. (put-down a table__0__1): execute?" in done.err
    assert done.report["complete_steps"] == 1
    assert [event for event in robot.events if event.startswith("hand")] == [
        "hand 1 panda_hand to 0.0000"
    ]


def test_a_stalled_arm_ends_the_execution(plans: Any, ros: Ros) -> None:
    """The report has the step, segment, time and cause, and no further goal is sent."""
    plan, file = plans("panda")
    stall = {"kind": "stall", "goal": 1, "time": 0.6}
    with ros.controllers(stand_in_settings(plan, stall)) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan))
    assert done.code == 1, done
    report = done.report
    assert report["status"] == "aborted"
    assert "PATH_TOLERANCE_VIOLATED" in report["message"]
    assert (report["step"], report["segment"], report["kind"]) == (1, 1, "transit")
    assert 0.5 < report["time"] < 1.1
    assert report["is_at_rest"]
    assert set(report["positions"]) == {*plan.robot.joints, "panda_finger_joint1"}
    assert robot.events.count("goal 1 panda_controller") == 1
    assert not any("goal 2" in event for event in robot.events)


@pytest.mark.parametrize("tolerances", [True, False])
def test_a_bump_ends_the_execution(tolerances: bool, plans: Any, ros: Ros) -> None:
    """Without tolerances in the controller, the monitor of tmkit finds it."""
    plan, file = plans("panda")
    bump = {"kind": "bump", "goal": 1, "time": 0.6}
    settings = stand_in_settings(plan, bump, tolerances=tolerances, lag=0.3)
    settings |= {"factor": 1.0} if not tolerances else {}
    with ros.controllers(settings) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan, path_tolerance=0.2))
    assert done.code == 1, done
    assert done.report["status"] in (("deviation", "aborted") if tolerances else ("deviation",))
    assert done.report["is_at_rest"]
    assert tolerances or "cancelled panda_controller" in robot.events


def test_a_lagging_arm_ends_the_execution(plans: Any, ros: Ros) -> None:
    """The monitor compares the feedback with the path."""
    plan, file = plans("panda")
    with ros.controllers(stand_in_settings(plan, lag=1.0, factor=1.0, tolerances=False)) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan))
    assert done.code == 1, done
    assert done.report["status"] == "deviation"
    assert "from its path (tolerance 0.1)" in done.report["message"]
    assert done.report["is_at_rest"]
    assert "cancelled panda_controller" in robot.events


def test_silent_joint_states_end_the_execution(plans: Any, ros: Ros) -> None:
    """The goal is cancelled, and the report does not claim that the arm is at rest."""
    plan, file = plans("panda")
    silence = {"kind": "silence", "goal": 1, "time": 0.3}
    settings = stand_in_settings(plan, silence, factor=0.1)
    with ros.controllers(settings) as robot:
        controllers = write_controllers(ros.folder, plan, state_age=3.0, server_time=10.0)
        done = ros.execute(file, controllers)
    assert done.code == 1, done
    assert done.report["status"] == "state"
    assert "topic '/joint_states' is" in done.report["message"]
    assert not done.report["is_at_rest"]  # nothing shows that it is
    assert "cancelled panda_controller" in robot.events


def test_joint_states_that_never_come_are_named(plans: Any, ros: Ros) -> None:
    """Nothing is sent without joint states."""
    plan, file = plans("panda")
    with ros.controllers(stand_in_settings(plan, silent=True)) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan, server_time=3.0))
    assert done.code == 2, done
    assert "topic '/joint_states' has no state of 'panda_joint1', 'panda_joint2'" in done.err
    assert robot.events == ["ready"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_arm(number: signal.Signals, plans: Any, ros: Ros) -> None:
    """The goal is cancelled before the program ends."""
    plan, file = plans("panda")
    mark = {"kind": "mark", "goal": 1, "time": 0.5}
    with ros.controllers(stand_in_settings(plan, mark, factor=0.2)) as robot:

        def interrupt(process: Any) -> None:
            robot.wait("mark")
            process.send_signal(number)

        done = ros.execute(file, write_controllers(ros.folder, plan), during=interrupt)
    assert done.code == 128 + number, done
    assert "cancelled panda_controller" in robot.events
    assert done.report["status"] == "stopped"
    assert done.report["is_at_rest"]
    assert (done.report["step"], done.report["kind"]) == (1, "transit")


def test_controllers_of_other_joints_are_rejected(plans: Any, ros: Ros) -> None:
    """The error lists the joints, and nothing is sent."""
    plan, file = plans("panda")
    controllers = write_controllers(ros.folder, plan)
    text = controllers.read_text(encoding="utf-8").replace("panda_joint1", "fr3_joint1")
    controllers.write_text(text, encoding="utf-8")
    with ros.controllers(stand_in_settings(plan)) as robot:
        done = ros.execute(file, controllers)
    assert done.code == 2, done
    assert "'panda_controller' lacks 'panda_joint1' and has 'fr3_joint1'" in done.err
    assert robot.events == ["ready"]


def test_two_servers_of_one_name_are_rejected(plans: Any, ros: Ros) -> None:
    """Both would execute a goal. The second one is discovered at any time after the first."""
    plan, file = plans("panda")
    settings = stand_in_settings(plan)
    with ros.controllers(settings) as robot, ros.controllers(settings) as other:
        done = ros.execute(file, write_controllers(ros.folder, plan, discovery_time=60.0))
    assert done.code == 2, done
    assert "2 action servers have the name '/panda_controller/follow_joint_trajectory'" in done.err
    assert robot.events == other.events == ["ready"]


def test_a_missing_server_is_named(plans: Any, ros: Ros) -> None:
    """The name of the action is in the error."""
    plan, file = plans("panda")
    settings = stand_in_settings(plan)
    settings["arms"][0]["name"] = "other_controller"
    with ros.controllers(settings) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan, server_time=3.0))
    assert done.code == 2, done
    assert "no action server '/panda_controller/follow_joint_trajectory' within 3 s" in done.err
    assert robot.events == ["ready"]


@pytest.mark.parametrize("joint", ["panda_joint4", "panda_finger_joint1"])
def test_an_arm_that_is_elsewhere_does_not_start(joint: str, plans: Any, ros: Ros) -> None:
    """The joints of arm and hand are compared with the plan."""
    plan, file = plans("panda")
    settings = stand_in_settings(plan)
    if joint in settings["arms"][0]["joints"]:
        settings["arms"][0]["joints"][joint] += 0.05
    else:
        settings["hands"][0]["position"] -= 0.02
    with ros.controllers(settings) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan))
    assert done.code == 2, done
    assert f"start of the plan: joint '{joint}' is 0.0" in done.err
    assert robot.events == ["ready"]


def test_a_rejected_goal_ends_the_execution(plans: Any, ros: Ros) -> None:
    """The report has the segment that would have moved."""
    plan, file = plans("panda")
    reject = {"kind": "reject", "goal": 2}
    with ros.controllers(stand_in_settings(plan, reject)):
        done = ros.execute(file, write_controllers(ros.folder, plan))
    assert done.code == 1, done
    assert done.report["status"] == "rejected"
    assert (done.report["step"], done.report["kind"], done.report["time"]) == (1, "lift", 0.0)
    assert done.report["complete_steps"] == 0


def test_a_slow_plan_is_accepted(plans: Any, ros: Ros) -> None:
    """The stand-in rejects what joint_trajectory_controller rejects."""
    plan, file = plans("panda")
    with ros.controllers(stand_in_settings(plan, factor=20.0)) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan), "--speed", "0.2")
    assert done.code == 0, (done, robot.events)
    assert done.report["complete_steps"] == len(plan.steps)
