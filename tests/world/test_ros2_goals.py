"""Files of controllers, and the goals of plans; without ROS."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.commands import tmkit
from support.effort import scaled_examples

import tmkit as tk
from tmkit.errors import ConfigurationError, FileFormatError, MissingExtraError
from tmkit.plans import execute
from tmkit.plans.timed_commands import RecordingExecutor
from tmkit.world import Ros2Executor, load_controllers
from tmkit.world.execution.goals import Goal, GoalList, GripperGoal, TrajectoryGoal, plan_part

JOINTS = [f"panda_joint{number}" for number in range(1, 8)]
MOVEIT = f"""
trajectory_execution:
  allowed_start_tolerance: 0.02
  allowed_goal_duration_margin: 1
moveit_controller_manager: moveit_simple_controller_manager/MoveItSimpleControllerManager
moveit_simple_controller_manager:
  controller_names: [arm, hand, base]
  arm:
    action_ns: follow_joint_trajectory
    type: FollowJointTrajectory
    default: true
    joints: {json.dumps(JOINTS)}
  hand:
    action_ns: gripper_cmd
    type: GripperCommand
    joints: [panda_finger_joint1]
  base:
    type: FollowMultiDofTrajectory
    joints: [wheel]
"""
LIST = f"""
controller_list:
  - {{name: arm, action_ns: follow_joint_trajectory, type: FollowJointTrajectory,
     joints: {json.dumps(JOINTS)}}}
  - {{name: hand, action_ns: gripper_cmd, type: GripperCommand, joints: [panda_finger_joint1]}}
"""
TOML = f"""
start_tolerance = 0.02
goal_margin = 1

[controllers.arm]
action_ns = "follow_joint_trajectory"
type = "FollowJointTrajectory"
default = true
joints = {json.dumps(JOINTS)}

[controllers.hand]
action_ns = "gripper_cmd"
type = "GripperCommand"
joints = ["panda_finger_joint1"]
"""


@pytest.fixture(scope="module")
def plan() -> Any:
    """Plan of a Panda that moves a block."""
    scene = tk.load_scene("panda_table", "blocks1")
    return tk.plan(scene, domain="blocks", goal="(ontable a table__0__1)", seed=0).plan


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_all_forms_of_files_have_the_same_controllers(tmp_path: Path) -> None:
    """Both forms of MoveIt's file, its form for launch files, and TOML give equal settings."""
    indented = "".join(f"    {line}\n" for line in MOVEIT.splitlines())
    parameters = f"/**:\n  ros__parameters:\n{indented}"
    files = {"moveit.yaml": MOVEIT, "parameters.yaml": parameters, "own.toml": TOML}
    loaded = [load_controllers(_write(tmp_path, *entry)) for entry in files.items()]
    assert loaded[0] == loaded[1] == loaded[2]
    assert (loaded[0].start_tolerance, loaded[0].goal_margin) == (0.02, 1.0)
    arm, hand = loaded[0].controllers
    assert (arm.action, arm.joints) == ("/arm/follow_joint_trajectory", tuple(JOINTS))
    assert (hand.action, hand.type) == ("/hand/gripper_cmd", "GripperCommand")
    listed = load_controllers(_write(tmp_path, "list.yaml", LIST)).controllers
    assert [entry.action for entry in listed] == [arm.action, hand.action]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "", "expected an object, received null"),
        ("a.yaml", "a: 1", "needs the key 'controller_names'"),
        ("a.yaml", "controller_names: [arm]\narms: {}", "needs the key 'arm'; did you mean 'arms'"),
        ("a.yaml", "controller_names: [b]\nb: {type: Base}", "no controller of type FollowJoint"),
        ("a.yaml", MOVEIT.replace("0.02", "-1"), "start_tolerance: expected a positive number"),
        ("a.yaml", MOVEIT.replace("[panda_finger_joint1]", "[]"), "expected at least one joint"),
        ("a.toml", "[controllers]", "no controller of type FollowJointTrajectory"),
        ("a.toml", TOML.replace("goal_margin", "goal_margins"), ":3: .*did you mean 'goal_margin'"),
        ("a.toml", TOML.replace("Gripper", "Griper"), ":13: .*did you mean 'GripperCommand'"),
        ("a.toml", TOML.replace("panda_joint2", "panda_joint1"), "'panda_joint1' is named twice"),
        ("a.toml", TOML + "scale = 0", "scale: expected a number other than 0"),
        ("a.toml", TOML + '[names]\na = "c"\nb = "c"', "two joints have the ROS name 'c'"),
        ("a.toml", "controllers = 1", "expected an object, received"),
        ("a.yaml", LIST.replace("name: hand", "name: arm"), "two controllers have the name 'arm'"),
        ("a.toml", TOML + "[suction.a]", ":15: suction.a: expected a service or a topic"),
        ("a.toml", TOML + "[suction.a]\ntopics = 1", "unknown key 'topics'; did you mean 'topic'"),
        ("a.toml", TOML + '[suction.a]\ntopic = "/a"\nreply = {}', "reply: a topic has no reply"),
        ("a.toml", TOML + '[suction.a]\ntopic = "a"\ntype = "os"', "such as 'std_msgs/msg/Bool'"),
        ("a.toml", TOML + '[suction.a]\nservice = "a"\ntype = "a/srv/B"', "needs the key 'on'"),
        (
            "a.toml",
            TOML + '[suction.a]\ntopic = "a"\nsettling_time = -1',
            ":17: suction.a.settling_time: expected at least 0, received -1",
        ),
        ("absent.toml", None, "absent.toml"),
    ],
)
def test_a_wrong_file_is_rejected(
    name: str, text: str | None, message: str, tmp_path: Path
) -> None:
    """Errors name the file, the key, the expected value and the nearest name."""
    path = tmp_path / name
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=message):
        load_controllers(path)


SUCTION = """
[suction.ur5]
service = "/io_and_status_controller/set_io"
type = "ur_msgs/srv/SetIO"
on = { fun = 1, pin = 0, state = 1.0 }
off = { fun = 1, pin = 0, state = 0.0 }
sensor = "/vacuum_present"
"""


def test_further_files_replace_values_of_earlier_ones(tmp_path: Path) -> None:
    """Controllers, names and settings of several files are combined."""
    moveit = _write(tmp_path, "moveit.yaml", MOVEIT)
    hand = TOML[TOML.index("[controllers.hand]") :] + "scale = 2.0\n"
    own = _write(tmp_path, "own.toml", "start_tolerance = 0.05\n" + hand + SUCTION)
    loaded, alone = load_controllers(moveit, own), load_controllers(moveit)
    assert (loaded.start_tolerance, loaded.goal_margin) == (0.05, 1.0)
    assert [entry.name for entry in loaded.controllers] == ["arm", "hand"]
    assert loaded.controllers[0] == alone.controllers[0]
    assert loaded.controllers[1].scale == 2.0
    (gripper,) = loaded.suction
    assert (gripper.arm, gripper.type, gripper.is_service) == ("ur5", "ur_msgs/srv/SetIO", True)
    assert gripper.on_fields == {"fun": 1, "pin": 0, "state": 1.0}
    with pytest.raises(FileFormatError, match="has no controller of type FollowJointTrajectory"):
        load_controllers(_write(tmp_path, "suction.toml", SUCTION))


def test_a_vacuum_is_switched_at_each_grasp_and_release(tmp_path: Path) -> None:
    """Suction grippers have goals where hands have theirs; a missing table is named."""
    scene = tk.load_scene("ur5_table", "blocks2")
    plan = tk.plan(scene, domain="blocks", goal="(on a b)", robot="ur5", seed=0).plan
    assert plan is not None
    joints = f"joints = {json.dumps(list(plan.robot.joints))}"
    arm = f'[controllers.arm]\ntype = "FollowJointTrajectory"\n{joints}\n'
    goals = _goals(plan, _write(tmp_path, "a.toml", arm + SUCTION))
    kinds = [type(goal).__name__ for goal in goals]
    arms, cup = "TrajectoryGoal", "SuctionGoal"
    assert kinds == [arms, cup, arms, cup, arms]
    assert str(goals[1]) == "/io_and_status_controller/set_io: on (grasp a)"
    assert json.loads(json.dumps(goals[3].to_dict())) == {
        "service": "/io_and_status_controller/set_io",
        "step": 2,
        "segment": 3,
        "fields": {"fun": 1, "pin": 0, "state": 0.0},
        "held": "a",
    }
    other = arm + SUCTION.replace("ur5", "ur5e")
    with pytest.raises(ConfigurationError, match=r"table \[suction.ur5\].*did you mean 'ur5e'"):
        _goals(plan, _write(tmp_path, "b.toml", other))


def test_an_arm_without_its_controller_is_named(tmp_path: Path, plan: Any) -> None:
    """The error lists how the joints of each controller differ."""
    other = TOML.replace("panda_joint7", "panda_joint8")
    message = "'arm' lacks 'panda_joint7' and has 'panda_joint8'; did you mean 'panda_joint7'"
    with pytest.raises(ConfigurationError, match=message):
        _goals(plan, _write(tmp_path, "a.toml", other))
    twice = TOML.replace("default = true", "") + TOML[TOML.index("[controllers.arm]") :].split(
        "[controllers.hand]"
    )[0].replace("controllers.arm", "controllers.other").replace("default = true", "")
    with pytest.raises(ConfigurationError, match="several have them: 'arm', 'other'; mark one"):
        _goals(plan, _write(tmp_path, "b.toml", twice))
    armless = TOML[: TOML.index("[controllers.hand]")]
    with pytest.raises(ConfigurationError, match="the hand of arm 'panda' needs a GripperCommand"):
        _goals(plan, _write(tmp_path, "c.toml", armless))


def _goals(plan: Any, path: Path, **options: Any) -> list[Goal]:
    goals = GoalList(load_controllers(path), **options)
    execute(plan, goals, rate=50.0)
    return goals.goals


@settings(max_examples=scaled_examples(0.2))
@given(speed=st.floats(0.05, 1.0), order=st.permutations(JOINTS))
def test_goals_follow_the_motions_of_the_plan(
    speed: float, order: list[str], plan: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Against the commands that are recorded, at any speed and in any order of the joints."""
    text = TOML.replace(json.dumps(JOINTS), json.dumps(order))
    path = _write(tmp_path_factory.getbasetemp(), "goals.toml", text)
    recorder = RecordingExecutor()
    execute(plan, recorder, rate=50.0)
    goals = _goals(plan, path, speed=speed)
    assert [type(goal).__name__ for goal in goals] == [
        "TrajectoryGoal",
        "GripperGoal",
        "TrajectoryGoal",
        "GripperGoal",
        "TrajectoryGoal",
    ]
    trajectories = [goal for goal in goals if isinstance(goal, TrajectoryGoal)]
    motions = [command.motion for command in recorder.commands if command.motion is not None]
    columns = [JOINTS.index(joint) for joint in order]
    total = sum(motion.timed.duration for motion in motions)
    assert sum(goal.duration for goal in trajectories) * speed == pytest.approx(total)
    assert np.array_equal(trajectories[0].positions[0], plan.q[:7][columns])
    assert np.array_equal(trajectories[-1].positions[-1], plan.final_q[:7][columns])
    samples = np.concatenate([motion.timed.velocities for motion in motions])
    rows = np.concatenate([goal.velocities for goal in trajectories])
    assert np.max(np.abs(rows)) == pytest.approx(speed * np.max(np.abs(samples)))
    for goal in trajectories:
        assert goal.joints == tuple(order)
        assert goal.times[0] == 0.0
        assert np.all(np.diff(goal.times) > 0.0)
        assert not np.any(goal.velocities[[0, -1]])
        steps = np.diff(goal.positions, axis=0) / np.diff(goal.times)[:, None]
        means = 0.5 * (goal.velocities[1:] + goal.velocities[:-1])
        assert np.max(np.abs(steps - means)) < 0.05 * speed
        assert np.max(goal.distance(goal.positions[len(goal.positions) // 2])) == 0.0
        places = [goal.locate(part.end) for part in goal.segments]
        assert [place for place, _ in places] == list(goal.segments)


def test_a_hand_closes_completely_and_opens_as_planned(tmp_path: Path, plan: Any) -> None:
    """A grasp is commanded to close, and the object stops the fingers."""
    path = _write(tmp_path, "a.toml", TOML + "scale = -2.0\noffset = 0.1")
    grasp, release = (goal for goal in _goals(plan, path) if isinstance(goal, GripperGoal))
    assert (grasp.held, grasp.values["panda_finger_joint1"]) == ("a", 0.0)
    assert grasp.planned["panda_finger_joint1"] == pytest.approx(0.025)
    assert (release.held, release.values["panda_finger_joint1"]) == (None, 0.04)
    assert grasp.command("panda_finger_joint1") == pytest.approx(0.1)
    assert release.command("panda_finger_joint1") == pytest.approx(0.02)


@pytest.mark.parametrize("speed", [0.0, -1.0, 1.01, np.nan])
def test_a_speed_beyond_that_of_the_plan_is_rejected(
    speed: float, tmp_path: Path, plan: Any
) -> None:
    """Speeds are above 0 and at most 1."""
    with pytest.raises(ConfigurationError, match="speed must be above 0 and at most 1"):
        _goals(plan, _write(tmp_path, "a.toml", TOML), speed=speed)


def test_parts_of_a_plan_make_the_whole(plan: Any) -> None:
    """A part starts in the state at the end of the previous step."""
    first, second = plan_part(plan, 1, 1), plan_part(plan, 2, 2)
    assert plan_part(plan, 1, 2) is plan
    assert (*first.steps, *second.steps) == plan.steps
    assert (second.scene, second.q.tolist()) == (first.final_scene, first.final_q.tolist())
    for steps in ((0, 1), (2, 1), (1, 3)):
        with pytest.raises(ConfigurationError, match="are not in a plan of 2 steps"):
            plan_part(plan, *steps)


def test_a_dry_run_prints_the_goals(tmp_path: Path, plan: Any) -> None:
    """A dry run works without ROS."""
    tk.save_plan(plan, tmp_path / "plan.json")
    _write(tmp_path, "moveit.yaml", MOVEIT)
    command = ("execute", "plan.json", "--controllers", "moveit.yaml", "--dry-run")
    text = tmkit(tmp_path, *command)
    assert text.code == 0, text.err
    lines = text.out.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("/arm/follow_joint_trajectory: ")
    assert lines[1] == "/hand/gripper_cmd: panda_finger_joint1 to 0 (grasp a)"
    listed = json.loads(tmkit(tmp_path, *command, "--json", "--from", "2").out)
    assert {goal["step"] for goal in listed} == {2}
    assert listed[-1]["positions"][-1] == plan.final_q[:7].tolist()
    beyond = tmkit(tmp_path, *command, "--until", "3")
    assert (beyond.code, "plan.json: steps 1 to 3 are not in a plan of 2" in beyond.err) == (
        2,
        True,
    )


def test_a_missing_rclpy_is_one_line(
    tmp_path: Path, plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line says how to get rclpy."""
    monkeypatch.setitem(sys.modules, "rclpy", None)
    path = _write(tmp_path, "own.toml", TOML)
    with pytest.raises(MissingExtraError, match=r"of ROS 2 cannot be imported .*: source "):
        Ros2Executor(load_controllers(path))
    tk.save_plan(plan, tmp_path / "plan.json")
    done = tmkit(tmp_path, "execute", "plan.json", "--controllers", "own.toml")
    assert done.code == 2
    errors = [line for line in done.err.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert "source /opt/ros/DISTRO/setup.bash" in errors[0]
