"""Stops, other clients of the controllers, and resumption, on a stand-in for ros2_control."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.effort import in_long

import tmkit as tk
from tmkit.plans import Plan, execute
from tmkit.world import load_controllers
from tmkit.world.execution.goals import GoalList, TrajectoryGoal

from .conftest import Ros, stand_in_settings, write_controllers

LOADED = ("lift", "transfer", "lower")
"""Kinds of segments in which the hand holds an object."""

HELD_FROM = 10
"""Number of the first random stop with an object in the hand."""

STOPS = (0, HELD_FROM, *in_long(*range(1, HELD_FROM), *range(HELD_FROM + 1, 2 * HELD_FROM)))
"""Numbers of random stops."""

OTHERS = {"interference": {"name": "panda_controller", "is_stopped": False}}
"""Setting of controllers beside which other programs run."""


def random_stop(plan: Plan, controllers: Path, number: int) -> tuple[int, float]:
    """Return a goal of the arm, from 1, and a time in it, of the stop with a number."""
    listed = GoalList(load_controllers(controllers))
    execute(plan, listed, rate=50.0)
    goals = [goal for goal in listed.goals if isinstance(goal, TrajectoryGoal)]
    intervals = []
    for index, goal in enumerate(goals, start=1):
        begin = 0.0
        for part in goal.segments:
            if (part.kind in LOADED) == (number >= HELD_FROM):
                intervals.append((index, begin, part.end))
            begin = part.end
    rng = np.random.default_rng(number)
    lengths = np.array([end - begin for _, begin, end in intervals])
    index, begin, end = intervals[rng.choice(len(intervals), p=lengths / lengths.sum())]
    return index, float(rng.uniform(begin, end))


@pytest.mark.parametrize("number", STOPS)
def test_a_plan_is_resumed_after_a_random_stop(number: int, plans: Any, ros: Ros) -> None:
    """The plan reaches its goal from each stop, twice, and the hand keeps what it holds."""
    plan, file = plans("panda_tower")
    controllers = write_controllers(ros.folder, plan, stop="/stop")
    goal, time = random_stop(plan, controllers, number)
    faults = [{"kind": "stop", "goal": goal, "time": time}]
    faults.append({"kind": "stop", "goal": goal + 1, "time": 0.2})  # in the resumed execution
    record = ros.folder / "stop.json"
    with ros.controllers(stand_in_settings(plan, *faults, **OTHERS)) as robot:
        options = ("--report", str(record))
        stopped = [ros.execute(file, controllers, *options)]
        resumed = ros.execute(file, controllers, *options, "--resume")
        if resumed.code:
            stopped.append(resumed)
            resumed = ros.execute(file, controllers, *options, "--resume")
    for execution in stopped:
        assert execution.code == 1, (execution, robot.events)
        assert execution.report["status"] == "stopped"
        assert execution.report["message"].startswith("topic '/stop' is true")
        assert execution.report["is_at_rest"]
    assert resumed.code == 0, (resumed, robot.events)
    assert resumed.report["complete_steps"] == resumed.report["steps"]
    if number >= HELD_FROM:
        assert stopped[0].report["kind"] in LOADED
        later = robot.events[robot.events.index("fault stop") :]
        hand = next(event for event in later if event.startswith("hand"))
        assert hand.endswith("to 0.0400"), robot.events  # it is the release
    assert not [event for event in robot.events if "rejected" in event or "abort" in event]
    assert json.loads(record.read_text())["report"]["status"] == "succeeded"


def test_a_dry_run_shows_how_a_plan_is_resumed(plans: Any, ros: Ros) -> None:
    """A resumed plan has the numbers of the whole plan; after success, no steps remain."""
    plan, file = plans("panda")
    controllers = write_controllers(ros.folder, plan)
    mark = {"kind": "mark", "goal": 2, "time": 0.5}
    with ros.controllers(stand_in_settings(plan, mark, factor=0.5)) as robot:

        def interrupt(process: Any) -> None:
            robot.wait("mark")
            process.send_signal(signal.SIGINT)

        stopped = ros.execute(file, controllers, during=interrupt)
        goals = ros.execute(file, controllers, "--resume", "--dry-run")
        resumed = ros.execute(file, controllers, "--resume")
        again = ros.execute(file, controllers, "--resume")
    assert stopped.code == 128 + signal.SIGINT, stopped
    first = json.loads(goals.out)[0]
    report = stopped.report
    assert (first["step"], first["segment"]) == (report["step"], report["segment"])
    start = [report["positions"][joint] for joint in first["joints"]]
    assert np.allclose(first["positions"][0], start, atol=0.005)
    assert resumed.code == 0, (resumed, robot.events)
    assert "the plan goes on in step" in resumed.err
    assert again.code == 0
    assert "no steps remain" in again.out


def test_a_hand_goes_on_closing(plans: Any, ros: Ros) -> None:
    """A grasp that was stopped is repeated."""
    plan, file = plans("panda")
    controllers = write_controllers(ros.folder, plan, gripper_time=1.0)
    settings = stand_in_settings(plan, {"kind": "slow", "goal": 1})
    settings["hands"][0]["objects"] *= 2
    with ros.controllers(settings) as robot:
        stopped = ros.execute(file, controllers)
        resumed = ros.execute(file, write_controllers(ros.folder, plan), "--resume")
    assert stopped.code == 1, stopped
    assert (stopped.report["status"], stopped.report["kind"]) == ("timeout", "grasp")
    assert resumed.code == 0, (resumed, robot.events)
    closings = [event for event in robot.events if event.endswith("panda_hand to 0.0000")]
    assert len(closings) == 2


def test_nothing_starts_while_the_topic_for_stops_is_true(plans: Any, ros: Ros) -> None:
    """The last message of a publisher that stores it is received."""
    plan, file = plans("panda")
    others = {"interference": {"name": "panda_controller", "is_stopped": True}}
    with ros.controllers(stand_in_settings(plan, **others)) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan, stop="/stop"))
        unaware = ros.execute(file, write_controllers(ros.folder, plan))
    assert done.code == 2, done
    assert "topic '/stop' is true" in done.err
    assert robot.events[:2] == ["ready", "goal 1 panda_controller"]
    assert unaware.code == 0, unaware


@pytest.mark.parametrize("kind", ["cancel", "replace"])
def test_another_client_ends_the_execution(kind: str, plans: Any, ros: Ros) -> None:
    """Nothing more is sent, and the report does not claim rest while the other client moves."""
    plan, file = plans("panda")
    fault = {"kind": kind, "goal": 1, "time": 0.5}
    with ros.controllers(stand_in_settings(plan, fault, factor=1.0, **OTHERS)) as robot:
        done = ros.execute(file, write_controllers(ros.folder, plan))
        resumed = ros.execute(file, write_controllers(ros.folder, plan), "--resume")
    assert done.code == 1, (done, robot.events)
    assert done.report["status"] == "preempted"
    message = "another client cancelled or replaced the goal of controller 'panda_controller'"
    assert done.report["message"].startswith(message)
    assert ("incoming action" in done.report["message"]) == (kind == "replace")
    assert (done.report["step"], done.report["kind"]) == (1, "transit")
    assert resumed.code == 0, (resumed, robot.events)
    sent = 2 if kind == "replace" else 1  # the second one is that of the other client
    before = robot.events[: robot.events.index(f"goal {sent + 1} panda_controller")]
    assert not [event for event in before if event.startswith("hand")]


@pytest.mark.parametrize("joint", ["panda_joint1", "panda_joint2"])
def test_a_continuous_joint_may_be_whole_turns_away(joint: str, plans: Any, ros: Ros) -> None:
    """Goals are shifted to where the robot is, which does not turn back; limits still hold."""
    _, file = plans("panda")
    plan = tk.load_plan(file)
    scene = plan.scene.set_joint(
        "panda_link1", tk.Continuous([0, 0, 1], velocity=2.1, name="panda_joint1")
    )
    result = tk.plan(scene, domain="blocks", goal=plan.goal, robot="panda", seed=0)
    assert result.plan is not None
    tk.save_plan(result.plan, ros.folder / "turning.json")
    settings = stand_in_settings(result.plan)
    settings["arms"][0]["joints"][joint] -= 4.0 * np.pi
    with ros.controllers(settings) as robot:
        controllers = write_controllers(ros.folder, result.plan)
        done = ros.execute(ros.folder / "turning.json", controllers)
    if joint == "panda_joint1":  # a motion of a turn within a sample would leave the path
        assert done.code == 0, (done, robot.events)
        assert done.report["complete_steps"] == len(plan.steps)
    else:
        assert done.code == 2, done
        assert "start of the plan: joint 'panda_joint2' is 12.5664 from" in done.err
        assert robot.events == ["ready"]
