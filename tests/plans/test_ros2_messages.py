"""Exported trajectories pass the checks of ``joint_trajectory_controller``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.classic import problem_file
from support.command_bags import messages_of, nanoseconds_of, rejection
from support.gantry import GANTRY, stacking_plan

import tmkit as tk
from tmkit.cli import main
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.plans import Plan, execute, export_plan, plan_motions
from tmkit.plans.ros2_messages import CommandTopics
from tmkit.plans.timed_commands import RecordingExecutor

pytest.importorskip("rosbags.highlevel")

NOW = 1.8e9
"""Time of receipt since 1970 [s]."""

Run = Callable[..., tuple[int, str]]


def _solve(*scenes: str, domain: str, goal: str, robot: str | tuple[str, ...]) -> Plan:
    plan = tk.plan(
        tk.load_scene(*scenes),
        domain=domain,
        goal=goal,
        robot=robot,
        options=tk.PlanningOptions(max_iterations=8, suggest=False),
    ).plan
    assert plan is not None
    return plan


PLANS: dict[str, Callable[[], Plan]] = {
    "gantry": stacking_plan,
    "panda": lambda: _solve(
        "panda_table", "blocks3", domain="blocks", goal="(and (on a b) (on b c))", robot="panda"
    ),
    "ur5": lambda: _solve("ur5_table", "blocks3", domain="blocks", goal="(on a b)", robot="ur5"),
    "so101": lambda: _solve("so101_table", domain="blocks", goal="(on a b)", robot="so101"),
    "drawer": lambda: _solve(
        "panda_drawer", domain="drawer", goal=problem_file("drawer", "empty"), robot="panda"
    ),
    "two arms": lambda: _solve(
        "baxter_trays",
        domain="handover",
        goal=problem_file("handover", "across"),
        robot=("baxter", "baxter_left"),
    ),
    "mobile base": lambda: _solve(
        "mobile_panda",
        "three_tables",
        domain="mobile_manipulation",
        goal="(on b south)",
        robot=("panda", "panda_base"),
    ),
}


@pytest.mark.parametrize("rate", [17.0, 100.0])
@pytest.mark.parametrize("name", PLANS)
def test_controllers_accept_all_trajectories(name: str, rate: float, tmp_path: Path) -> None:
    """A controller of each arm accepts each trajectory at any time, and they form the plan.

    Each trajectory starts where the last one of its arm ended, within the limits of the arm, and
    the last ends at the end of the plan.
    """
    plan = PLANS[name]()
    export_plan(plan, tmp_path / "bag", format="ros2", rate=rate)
    arms = {f"/{arm.name}_controller/joint_trajectory": arm for arm in plan.robots}
    hands = {f"/{arm.tip}_controller/gripper_cmd" for arm in plan.robots if arm.gripper_joints}
    last_points: dict[str, Any] = {}
    trajectory_count = 0
    for topic, time, message in messages_of(tmp_path / "bag"):
        if topic not in arms:
            assert topic in hands
            continue
        arm = arms[topic]
        trajectory_count += 1
        for now in (0.0, time * 1e-9, NOW):
            assert rejection(message, arm.joints, now=now) is None
        first, last = message.points[0], message.points[-1]
        columns = [plan.scene.joint_names.index(joint) for joint in message.joint_names]
        start = last_points.get(topic)
        expected = plan.q[columns] if start is None else start.positions
        assert np.allclose(first.positions, expected, atol=1e-9)
        assert not np.any(first.velocities)
        assert not np.any(last.velocities)
        assert np.max(np.abs([point.velocities for point in message.points])) > 0.0
        limits = arm.velocity_limits(plan.scene)
        assert np.all(np.abs([point.velocities for point in message.points]) <= limits + 1e-9)
        assert nanoseconds_of(first.time_from_start) == 0
        last_points[topic] = last
    assert trajectory_count == sum(motion.blended.duration > 0.0 for motion in plan_motions(plan))
    for topic, last in last_points.items():
        columns = [plan.scene.joint_names.index(joint) for joint in arms[topic].joints]
        assert np.allclose(last.positions, plan.steps[-1].q[columns], atol=1e-9)


def test_the_checks_reject_changed_trajectories(tmp_path: Path) -> None:
    """Each check applies to a trajectory that was accepted; a stamp in the future is allowed."""
    export_plan(stacking_plan(), tmp_path / "bag", format="ros2")
    message = messages_of(tmp_path / "bag")[0][2]
    count = len(message.points)

    def change(**fields: Any) -> Any:
        """Return the trajectory with other fields of a point or of the message."""
        changed = deepcopy(message)
        for path, value in fields.items():
            place = changed.points[int(path[1:])] if path[0] == "p" else changed
            for name, field in value.items():
                setattr(place, name, field)
        return changed

    header = deepcopy(message.header)
    header.stamp.sec = 1
    late = deepcopy(header)
    late.stamp.sec = int(NOW) + 10
    four = np.zeros(4)
    cases = {
        "not those of the controller": change(m={"joint_names": [*GANTRY.joints[1:]]}),
        "empty trajectory": change(m={"points": []}),
        "an end in the past": change(m={"header": header}),
        "velocity of the last point": change(**{f"p{count - 1}": {"velocities": four + 1e-6}}),
        "between points 1 and 2": change(p2={"time_from_start": message.points[1].time_from_start}),
        "point 3 has 2 positions": change(p3={"positions": four[:2]}),
        "point 3 has 2 velocities": change(p3={"velocities": four[:2]}),
        "point 3 has effort": change(p3={"effort": four}),
    }
    for reason, changed in cases.items():
        assert reason in (rejection(changed, GANTRY.joints, now=NOW) or "")
    assert rejection(change(m={"header": late}), GANTRY.joints, now=NOW) is None
    assert rejection(message, GANTRY.joints[::-1], now=NOW) is None


def test_controllers_are_named_by_arm_and_by_tip_frame(tmp_path: Path) -> None:
    """Names may have namespaces; other characters of default names become underscores."""
    controllers = {"gantry": "/cell/arm_controller", "hand": "gripper"}
    export_plan(stacking_plan(), tmp_path / "a.json", format="ros2", controllers=controllers)
    topics = [message["topic"] for message in json.loads((tmp_path / "a.json").read_text())]
    assert {*topics} == {"/cell/arm_controller/joint_trajectory", "/gripper/gripper_cmd"}
    renamed = CommandTopics([replace(GANTRY, name="7 axes/ä", tip="left-hand")], {})
    assert renamed.arms == {"7 axes/ä": "/_7_axes___controller/joint_trajectory"}
    assert renamed.hands == {"7 axes/ä": "/left_hand_controller/gripper_cmd"}
    same = CommandTopics([replace(GANTRY, name="hand")], {"hand": "c"})
    assert (same.arms["hand"], same.hands["hand"]) == ("/c/joint_trajectory", "/c/gripper_cmd")


@pytest.mark.parametrize(
    ("error", "message", "controllers"),
    [
        (
            UnknownNameError,
            "controllers: unknown arm or hand 'gantri'; did you mean 'gantry'",
            {"gantri": "arm_controller"},
        ),
        (
            ConfigurationError,
            "'my arm' of 'gantry' is not the name of a controller: expected letters",
            {"gantry": "my arm"},
        ),
        (ConfigurationError, "'' of 'hand' is not the name of a controller", {"hand": ""}),
    ],
)
def test_wrong_controllers_are_rejected(
    error: type[Exception], message: str, controllers: dict[str, str], tmp_path: Path
) -> None:
    """Nothing is written."""
    for name in ("bag", "bag.json"):
        with pytest.raises(error, match=message):
            export_plan(stacking_plan(), tmp_path / name, format="ros2", controllers=controllers)
    assert [*tmp_path.iterdir()] == []


def test_two_arms_need_two_controllers() -> None:
    """Equal topics of two arms are an error, also by characters that ROS names lack."""
    arms = [replace(GANTRY, name="arm-1", tip="a"), replace(GANTRY, name="arm 1", tip="b")]
    with pytest.raises(
        ConfigurationError, match="2 arms or hands have the topic /arm_1_controller/joint_traj"
    ):
        CommandTopics(arms, {})
    topics = CommandTopics(arms, {"arm 1": "other"})
    assert topics.arms["arm 1"] == "/other/joint_trajectory"


def test_times_are_those_of_the_recorded_commands(tmp_path: Path) -> None:
    """A message is at the beginning of its first command, and no two overlap."""
    executor = RecordingExecutor()
    execute(stacking_plan(), executor, rate=50.0)
    export_plan(stacking_plan(), tmp_path / "bag", format="ros2")
    begins = [round(command.begin * 1e9) for command in executor.commands]
    end = 0
    for topic, time, message in messages_of(tmp_path / "bag"):
        assert time in begins
        assert time >= end - 1
        is_arm = topic.endswith("joint_trajectory")
        duration = nanoseconds_of(message.points[-1].time_from_start) if is_arm else 500_000_000
        end = time + duration
    assert end == pytest.approx(executor.duration * 1e9, abs=2)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``tmkit export`` on a plan file in this process; return exit code and errors."""
    tk.save_plan(stacking_plan(), tmp_path / "plan.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")

    def call(*arguments: str) -> tuple[int, str]:
        command = ["tmkit", "export", "plan.json", "--format", "ros2", *arguments]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr().err

    return call


def test_the_command_names_controllers(run: Run) -> None:
    """Wrong names are one line and exit code 2."""
    arguments = ("--controller", "gantry=rail_controller", "--controller", "hand=jaw")
    assert run("-o", "bag", *arguments) == (0, "")
    topics = {topic for topic, _, _ in messages_of(Path("bag"))}
    assert topics == {"/rail_controller/joint_trajectory", "/jaw/gripper_cmd"}
    for arguments, reason in {
        ("--controller", "rail_controller"): "'rail_controller' is not of the form ARM=NAME",
        ("--controller", "gantry="): "'gantry=' is not of the form ARM=NAME",
        ("--controller", "hand=a", "--controller", "hand=b"): "'hand' is given twice",
        ("--controller", "handy=a"): "unknown arm or hand 'handy'; did you mean 'hand'?",
        ("--controller", "hand=a b"): "'a b' of 'hand' is not the name of a controller",
    }.items():
        code, error = run("-o", "other", *arguments)
        assert code == 2
        assert reason in error
        assert not Path("other").exists()
