"""Plans on an arm with the interface of LeRobot, to their end and with faults."""

from __future__ import annotations

import math
import re
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st
from support.effort import scaled_examples
from support.lerobot_arm import Behaviour, Config, SimulatedClock, StandInArm, mount

import tmkit as tk
from tmkit.errors import ConfigurationError, ExecutionError, FileFormatError
from tmkit.plans import ExecutionStatus, Plan, execute
from tmkit.plans.timed_commands import RecordingExecutor
from tmkit.tamp import resume_plan
from tmkit.world import LeRobotExecutor, LeRobotSettings, load_lerobot
from tmkit.world.execution.goals import plan_part
from tmkit.world.lerobot.settings import LeRobotJoint

TOML = """
rate = 30

[joints]
shoulder_pan = { unit = "degrees", sign = -1, offset = 4.5 }
shoulder_lift = { unit = "degrees", offset = -2.0 }
elbow_flex = { unit = "degrees" }
wrist_flex = { unit = "degrees", sign = 1 }
wrist_roll = { unit = "degrees", sign = -1, offset = 30 }
gripper = { unit = "range_0_100", range = [-0.174533, 1.74533] }
"""

TICK = 2.0 * math.pi / 4096
"""Step of an encoder [rad]."""

GRASP = 0.2187702388814164
"""Joint value of the jaw at the blocks of the scene [rad]."""


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Plan of an SO-101 that stacks a block."""
    scene = tk.load_scene("so101_table")
    result = tk.plan(scene, domain="blocks", goal="(on a b)", robot="so101", seed=0)
    assert result.plan is not None
    return result.plan


@pytest.fixture(scope="module")
def joints(tmp_path_factory: pytest.TempPathFactory) -> LeRobotSettings:
    """Joints of the stand-in."""
    return _load(tmp_path_factory.mktemp("lerobot"), TOML)


def _load(folder: Path, text: str) -> LeRobotSettings:
    path = folder / "arm.toml"
    path.write_text(text, encoding="utf-8")
    return load_lerobot(path)


def _values(plan: Plan, q: Any) -> dict[str, float]:
    return dict(zip(plan.scene.joint_names, np.asarray(q).tolist(), strict=True))


def _arm(plan: Plan, joints: LeRobotSettings, **behaviour: Any) -> StandInArm:
    """Return an arm at the start of a plan, with objects at which the jaw stops."""
    return mount(
        joints, _values(plan, plan.q), behaviour=Behaviour(**{"objects": [GRASP], **behaviour})
    )


def _fail(plan: Plan, arm: StandInArm, joints: LeRobotSettings, **options: Any) -> ExecutionError:
    """Return the error of an execution, after which the arm keeps its position."""
    executor = LeRobotExecutor(arm, joints, clock=arm.clock, **options)
    with pytest.raises(ExecutionError) as caught:
        execute(plan, executor)
    assert caught.value.report is executor.failure
    return caught.value


def _drift(arm: StandInArm) -> float:
    """Return how far the joints of the arm move in the next two seconds [rad]."""
    before = arm.joints()
    arm.clock.sleep(2.0)
    after = arm.joints()
    return max(abs(after[joint] - before[joint]) for joint in before if joint != "gripper")


def test_a_block_is_where_the_plan_has_it(plan: Plan, joints: LeRobotSettings) -> None:
    """The block is moved by the true joint values at which the jaw closed and opened."""
    arm = _arm(plan, joints)
    execute(plan, LeRobotExecutor(arm, joints, clock=arm.clock))
    closed, opened = (plan.scene.configuration(values) for values in arm.grasps)
    held = plan.scene.reparent("a", plan.robot.tip, q=closed)
    put = held.reparent("a", "b", q=opened)
    expected = plan.final_scene.pose("a", q=plan.final_q)
    assert put.pose("a", q=opened).distance(expected)[0] < 3e-3
    final = _values(plan, plan.final_q)
    assert max(abs(value - final[joint]) for joint, value in arm.joints().items()) < 4 * TICK


@hypothesis_settings(max_examples=scaled_examples(0.2), deadline=None)
@given(
    speed=st.floats(0.2, 1.0),
    rate=st.floats(15.0, 60.0),
    latency=st.floats(0.0, 0.05),
    signs=st.lists(st.sampled_from([-1, 1]), min_size=5, max_size=5),
    offsets=st.lists(st.floats(-30.0, 30.0), min_size=5, max_size=5),
    unit=st.sampled_from(["degrees", "radians", "range_m100_100"]),
)
def test_no_joint_is_commanded_faster_than_planned(
    speed: float,
    rate: float,
    latency: float,
    signs: list[int],
    offsets: list[float],
    unit: str,
    plan: Plan,
) -> None:
    """At any rate and latency; a slow bus delays the motion. All positions are of the plan."""
    conversions = {}
    for joint, sign, offset in zip(plan.robot.joints, signs, offsets, strict=True):
        scale = {"degrees": math.degrees(1.0), "radians": 1.0, "range_m100_100": 30.0}[unit]
        bounds = {} if unit != "range_m100_100" else {"lower": -100.0, "upper": 100.0}
        shift = {"degrees": offset, "radians": offset / 60.0, "range_m100_100": 0.0}[unit]
        conversions[joint] = LeRobotJoint(f"m_{joint}.pos", sign * scale, shift, **bounds)
    gripper = LeRobotJoint("gripper.pos", 100.0 / 1.919863, 9.0909, 0.0, 100.0)
    settings = LeRobotSettings(
        {**conversions, "gripper": gripper}, rate=rate, lag=0.6, path_tolerance=0.2, state_age=0.5
    )
    arm = _CountingArm(settings, _values(plan, plan.q), latency)
    execute(plan, LeRobotExecutor(arm, settings, speed=speed, clock=arm.clock))
    times = np.array([time for time, _ in arm.log])
    commands = np.array([[values[joint] for joint in plan.robot.joints] for _, values in arm.log])
    assert np.all(np.diff(times) > (1.0 / rate - 1e-9))
    speeds = np.abs(np.diff(commands, axis=0)) / np.diff(times)[:, None]
    assert np.max(speeds / plan.robot.velocity_limits(plan.scene)) <= speed * (1.0 + 1e-6)
    recorder = RecordingExecutor()
    execute(plan, recorder, rate=50.0)
    motions = [entry.motion for entry in recorder.commands if entry.motion is not None]
    path = np.concatenate([motion.timed.positions for motion in motions])
    for command in commands:
        assert np.min(np.max(np.abs(path - command), axis=1)) < 0.03
    assert arm.clock.now - 100.0 >= sum(m.timed.duration for m in motions) / speed


class _CountingArm:
    """Ideal arm with its joint values in the log of actions, whatever its units."""

    def __init__(self, settings: LeRobotSettings, q: dict[str, float], latency: float) -> None:
        self.clock = SimulatedClock()
        self.is_connected = True
        self.log: list[tuple[float, dict[str, float]]] = []
        self._settings, self._q, self._latency = settings, dict(q), latency

    @property
    def action_features(self) -> dict[str, object]:
        return dict.fromkeys(self._settings.action(self._q), float)

    def get_observation(self) -> dict[str, object]:
        self.clock.sleep(self._latency)
        return dict(self._settings.action(self._q))

    def send_action(self, action: dict[str, float]) -> dict[str, object]:
        values = self._settings.positions(action)
        self.log.append((self.clock.now, values))
        self._q = {**values, "gripper": max(values["gripper"], GRASP)}
        self.clock.sleep(self._latency)
        return dict(action)


@given(data=st.data())
def test_conversions_are_inverse(data: st.DataObject, joints: LeRobotSettings) -> None:
    """Joint values become features and back; half a turn of a motor is half a turn."""
    q = {joint: data.draw(st.floats(-0.17, 1.7)) for joint in joints.joints}
    action = joints.action(q)
    assert joints.positions(action) == pytest.approx(q, abs=1e-9)
    assert action["shoulder_pan.pos"] == pytest.approx(4.5 - math.degrees(q["shoulder_pan"]))
    share = (q["gripper"] + 0.174533) / (1.74533 + 0.174533)
    assert action["gripper.pos"] == pytest.approx(100.0 * share)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate = 30", "needs the key 'joints'"),
        ("[joints]", "joints: expected at least one joint"),
        (TOML + "[robots]", "unknown key; did you mean 'robot'"),
        (TOML.replace("rate", "rates"), ":2: .*did you mean 'rate'"),
        (TOML.replace("30\n", "0\n", 1), "rate: expected a positive number"),
        (TOML.replace('"degrees", sign = -1', '"degree", sign = -1'), "did you mean 'degrees'"),
        (TOML.replace("sign = 1 ", "sign = 2 "), ":8: .*expected 1 or -1, received 2"),
        (TOML.replace("offset = 30", "ofset = 30"), ":9: .*did you mean 'offset'"),
        (TOML.replace("range = [-0.174533, 1.74533]", "offset = 1"), "unknown key"),
        (TOML.replace("1.74533]", "-0.174533]"), "two different joint values, received -0.17"),
        (TOML.replace("1.74533]", "]"), "gripper.range"),
        (
            TOML.replace("elbow_flex = {", 'elbow_flex = { feature = "wrist_flex.pos",'),
            "two joints have the feature 'wrist_flex.pos'",
        ),
        (TOML + "robot = 3", "robot"),
    ],
)
def test_a_wrong_file_is_rejected(text: str, message: str, tmp_path: Path) -> None:
    """Errors name the line, the key, the expected value and the nearest name."""
    with pytest.raises(FileFormatError, match=message):
        _load(tmp_path, text)


def _stall(joint: str) -> Callable[[StandInArm, int], None]:
    def fault(arm: StandInArm, number: int) -> None:
        arm.motors[joint].is_stalled |= number == 15

    return fault


def _bump(arm: StandInArm, number: int) -> None:
    if number == 15:
        arm.motors["shoulder_lift"].ticks += 0.5 / TICK


def _pause(arm: StandInArm, number: int) -> None:
    if number == 15:
        arm.clock.sleep(0.6)


def _overload(arm: StandInArm, number: int) -> None:
    del arm
    if number == 15:
        raise RuntimeError("[RxPacketError] Overload error!")


def _garble(arm: StandInArm, number: int) -> None:
    if number == 15:
        arm.motors["wrist_roll"].ticks = math.nan


@pytest.mark.parametrize(
    ("behaviour", "status", "message"),
    [
        (
            {"fault": _stall("shoulder_pan")},
            ExecutionStatus.DEVIATION,
            r"joint 'shoulder_pan' is 0\.1\d+ from its path \(tolerance 0\.1\)",
        ),
        (
            {"fault": _bump},
            ExecutionStatus.DEVIATION,
            r"joint 'shoulder_lift' is 0\.\d+ from its path",
        ),
        ({"lag": 1.0}, ExecutionStatus.DEVIATION, r"from its path \(tolerance 0\.1\)"),
        ({"speed": 0.1}, ExecutionStatus.DEVIATION, r"from its path \(tolerance 0\.1\)"),
        (
            {"fault": _pause},
            ExecutionStatus.STATE,
            r"no observation of the robot in 0\.6\d s, more than 0\.25 s",
        ),
        (
            {"fault": _overload},
            ExecutionStatus.ABORTED,
            r"send_action of the robot raised RuntimeError: .*Overload error!",
        ),
        (
            {"fault": _garble},
            ExecutionStatus.STATE,
            "joint 'wrist_roll': the observed 'wrist_roll.pos' is not a finite number",
        ),
    ],
)
def test_a_fault_of_the_arm_stops_it(
    behaviour: dict[str, Any],
    status: ExecutionStatus,
    message: str,
    plan: Plan,
    joints: LeRobotSettings,
) -> None:
    """The report has the place and cause; the arm holds its position, and nothing more is sent."""
    arm = _arm(plan, joints, **behaviour)
    error = _fail(plan, arm, joints)
    report = error.report
    assert report.status is status
    assert (report.complete_steps, report.steps, report.step) == (0, 2, 1)
    assert (report.segment, report.kind) == (1, "transit")
    assert 0.3 < report.time < 1.0
    assert re.search(message, str(error)), error
    if "finite" not in message:
        assert report.is_at_rest
        assert "the arm is at rest" in str(error)
        measured = {joint: arm.joints()[joint] for joint in plan.robot.joints}
        assert dict(report.positions) == pytest.approx(measured, abs=2 * TICK)
        assert _drift(arm) < 2 * TICK
    assert len(arm.log) < 40


def test_a_clipped_command_stops_the_arm(plan: Plan, joints: LeRobotSettings) -> None:
    """LeRobot clips without an error; the message names the feature, both values and the limit."""
    values = _values(plan, plan.q)
    arm = mount(joints, values, config=Config(max_relative_target=3.0))
    error = _fail(plan, arm, joints)
    assert error.report.status is ExecutionStatus.REJECTED
    message = (
        r"the robot clipped '\w+\.pos' from (-?\d+\.\d+) to (-?\d+\.\d+): its limit, such as max_"
    )
    found = re.search(message, str(error))
    assert found is not None
    assert abs(float(found[1]) - float(found[2])) > 0.05
    assert error.report.is_at_rest
    assert _drift(arm) < 2 * TICK
    slow = mount(
        joints, values, config=Config(max_relative_target=3.0), behaviour=Behaviour(objects=[GRASP])
    )
    execute(plan, LeRobotExecutor(slow, joints, speed=0.4, clock=slow.clock))


@pytest.mark.parametrize("count", [1, 3])
def test_lost_replies_are_repeated(count: int, plan: Plan, joints: LeRobotSettings) -> None:
    """A few errors of the bus do not end an execution, and no position is omitted."""

    def fault(arm: StandInArm, number: int) -> None:
        if number % 20 == 0:
            arm.unreachable = count

    arm, faultless = _arm(plan, joints, fault=fault), _arm(plan, joints)
    for each in (arm, faultless):
        execute(plan, LeRobotExecutor(each, joints, clock=each.clock))
    assert arm.clock.now > faultless.clock.now
    sent = {tuple(values.values()) for _, values in arm.log}
    lost = [v for _, v in faultless.log[:40] if tuple(v.values()) not in sent]
    assert not lost


def test_a_silent_arm_ends_the_execution(plan: Plan, joints: LeRobotSettings) -> None:
    """Without a connection the arm cannot be stopped, which the report says."""

    def fault(arm: StandInArm, number: int) -> None:
        if number == 15:
            arm.unreachable = -1

    error = _fail(plan, _arm(plan, joints, fault=fault), joints)
    assert error.report.status is ExecutionStatus.STATE
    assert not error.report.is_at_rest
    assert re.search(
        r"(no observation of the robot|no action was sent) in 0\.\d+ s, more than 0\.25 s: Failed"
        " to sync read .*robot did not take the command to hold its position; the arm may still",
        str(error),
    ), error


@pytest.mark.parametrize(
    ("objects", "joint", "message"),
    [
        ([], -0.1745, "the hand closed on nothing, not on 'a': finger joint 'gripper' is at -0.17"),
        ([0.5], 0.5, "the grasp of 'a' ended elsewhere and stalled: .* at 0.49.., expected 0.2188"),
    ],
)
def test_a_grasp_is_judged_by_the_jaw(
    objects: list[float], joint: float, message: str, plan: Plan, joints: LeRobotSettings
) -> None:
    """The observed position tells an empty grasp and another object."""
    arm = _arm(plan, joints, objects=objects)
    error = _fail(plan, arm, joints)
    assert re.search(message, str(error)), error
    report = error.report
    assert (report.status, report.step, report.kind) == (ExecutionStatus.GRASP, 1, "grasp")
    assert arm.joints()["gripper"] == pytest.approx(joint, abs=0.01)
    assert report.is_at_rest


def test_a_lost_object_ends_the_execution(plan: Plan, joints: LeRobotSettings) -> None:
    """The jaw closes further while the object is carried."""

    def fault(arm: StandInArm, number: int) -> None:
        if number == 100:
            arm.objects.clear()

    error = _fail(plan, _arm(plan, joints, fault=fault), joints)
    assert error.report.status is ExecutionStatus.GRASP
    assert "'a' was lost: joint 'gripper' is 0.1" in str(error)
    assert error.report.kind in ("lift", "transfer", "lower")


def test_a_jaw_that_does_not_come_to_rest_ends_the_execution(
    plan: Plan, joints: LeRobotSettings
) -> None:
    """The time limit of the hand is that of the settings."""

    def fault(arm: StandInArm, number: int) -> None:
        jaw = arm.motors["gripper"]
        jaw.is_stalled = True
        jaw.ticks += 60 * (-1) ** number

    error = _fail(
        plan, _arm(plan, joints, objects=[], fault=fault), replace(joints, grasp_tolerance=1.0)
    )
    assert error.report.status is ExecutionStatus.TIMEOUT
    assert "the hand did not come to rest within 3 s" in str(error)


def test_an_arm_that_is_pushed_while_its_hand_moves_is_stopped(
    plan: Plan, joints: LeRobotSettings
) -> None:
    """The arm keeps its position during a grasp."""

    def fault(arm: StandInArm, number: int) -> None:
        if arm.motors["gripper"].goal < arm.motors["gripper"].to_ticks(0.6):
            arm.motors["shoulder_pan"].ticks += 0.2 / TICK

    error = _fail(plan, _arm(plan, joints, fault=fault), joints)
    assert error.report.status is ExecutionStatus.DEVIATION
    assert error.report.kind == "grasp"
    assert "joint 'shoulder_pan' is " in str(error)


def test_an_arm_off_its_start_does_not_move(plan: Plan, joints: LeRobotSettings) -> None:
    """Nothing is sent; the message has the measured values for a plan from there."""
    values = {**_values(plan, plan.q), "elbow_flex": -0.4}
    arm = mount(joints, values)
    error = _fail(plan, arm, joints)
    assert error.report.status is ExecutionStatus.START
    assert (error.report.step, error.report.complete_steps) == (0, 0)
    assert re.search(
        r"start of the plan: joint 'elbow_flex' is 0\.4\d+ from 0\.0800 \(tolerance 0\.05\);"
        r" measured: shoulder_pan=-?0\.00\d\d,.*elbow_flex=-0\.(3999|400\d),.*gripper=0\.8\d+$",
        str(error),
    ), error
    assert arm.actions == 0
    assert dict(error.report.positions)["elbow_flex"] == pytest.approx(-0.4, abs=TICK)


def test_a_disconnected_arm_is_named(plan: Plan, joints: LeRobotSettings) -> None:
    """The executor neither connects nor disconnects the robot."""
    arm = _arm(plan, joints)
    arm.disconnect()
    error = _fail(plan, arm, joints)
    assert error.report.status is ExecutionStatus.STATE
    assert "the robot is not connected" in str(error)
    assert arm.actions == 0


@pytest.mark.parametrize("number", [1, 20, 70, 100, 140])
def test_a_stop_holds_the_position_and_the_object(
    number: int, plan: Plan, joints: LeRobotSettings
) -> None:
    """From any thread; the hand keeps its command, and no further goal is sent."""
    executors: list[LeRobotExecutor] = []

    def fault(arm: StandInArm, count: int) -> None:
        if count == number:
            executors[0].stop()

    arm = _arm(plan, joints, fault=fault)
    executors.append(LeRobotExecutor(arm, joints, clock=arm.clock))
    with pytest.raises(ExecutionError, match="stopped; the arm is at rest") as caught:
        execute(plan, executors[0])
    assert caught.value.report.status is ExecutionStatus.STOPPED
    commands = [values["gripper"] for _, values in arm.log]
    assert commands[-1] == commands[-2] if number > 1 else True
    assert arm.actions == number + 1
    assert _drift(arm) < 2 * TICK
    with pytest.raises(ExecutionError, match="stopped before the motion"):
        execute(plan_part(plan, 1, 1), _at(executors[0], arm, plan))


def _at(executor: LeRobotExecutor, arm: StandInArm, plan: Plan) -> LeRobotExecutor:
    """Move an arm by hand to the start of a plan."""
    for joint, value in _values(plan, plan.q).items():
        motor = arm.motors[joint]
        motor.ticks = motor.goal = motor.to_ticks(value)
    return executor


def test_an_interruption_holds_the_position(plan: Plan, joints: LeRobotSettings) -> None:
    """Ctrl-C comes through after the arm was commanded to its present position."""

    def fault(arm: StandInArm, number: int) -> None:
        del arm
        if number == 100:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            executor._stop.wait(60.0)  # until the main thread has received it

    arm = _arm(plan, joints, fault=fault)
    executor = LeRobotExecutor(arm, joints, clock=arm.clock)
    with pytest.raises(KeyboardInterrupt):
        execute(plan, executor)
    report = executor.failure
    assert report is not None
    assert report.status is ExecutionStatus.STOPPED
    assert report.kind in ("lift", "transfer", "lower")
    assert report.is_at_rest
    assert arm.log[-1][1]["gripper"] == pytest.approx(0.0)
    assert arm.actions == 101
    assert _drift(arm) < 2 * TICK


def test_a_part_of_a_plan_keeps_its_object(plan: Plan, joints: LeRobotSettings) -> None:
    """The hand stays closed from the first action on; the present position would open it."""
    first, second = plan_part(plan, 1, 1), plan_part(plan, 2, 2)
    arm = _arm(plan, joints)
    execute(first, LeRobotExecutor(arm, joints, clock=arm.clock))
    count = len(arm.log)
    execute(second, LeRobotExecutor(arm, joints, first=2, clock=arm.clock))
    assert arm.log[count][1]["gripper"] == pytest.approx(0.0)
    assert len(arm.grasps) == 2


def test_other_motors_keep_their_position(plan: Plan, joints: LeRobotSettings) -> None:
    """A second arm and the wheels of a base are commanded as well, since LeRobot requires it."""
    whole = replace(
        joints, joints={**joints.joints, "left": LeRobotJoint("left_pan.pos", 57.3, 10.0)}
    )
    values = {**_values(plan, plan.q), "left": 0.5}
    arm = mount(
        whole, values, behaviour=Behaviour(objects=[GRASP]), extra={"x.vel": 0.0, "theta.vel": 0.0}
    )
    execute(plan, LeRobotExecutor(arm, joints, clock=arm.clock))
    last = arm.log[-1][1]
    assert (last["x.vel"], last["theta.vel"]) == (0.0, 0.0)
    assert arm.motors["left_pan"].to_joint(arm.motors["left_pan"].ticks) == pytest.approx(
        0.5, abs=2 * TICK
    )
    arm.extra["gripper.torque"] = 1.0
    with pytest.raises(ConfigurationError, match=r"'gripper\.torque' of the robot is no"):
        LeRobotExecutor(arm, joints, clock=arm.clock)


def test_joints_without_features_are_named(plan: Plan, joints: LeRobotSettings) -> None:
    """In the robot, in the file, and for the hand, with the nearest name."""
    arm = _arm(plan, joints)

    def without(name: str, **other: LeRobotJoint) -> LeRobotSettings:
        kept = {joint: entry for joint, entry in joints.joints.items() if joint != name}
        return replace(joints, joints={**kept, **other})

    wrong = without("wrist_roll", wrist_roll=LeRobotJoint("wrist_rol.pos", 1.0))
    message = "no action feature 'wrist_rol.pos'; did you mean 'wrist_roll.pos'"
    with pytest.raises(ConfigurationError, match=message):
        LeRobotExecutor(arm, wrong, clock=arm.clock)
    other = without("wrist_roll", wristroll=joints.joints["wrist_roll"])
    message = "joint 'wrist_roll' of arm 'so101' has no feature; did you mean 'wristroll'"
    with pytest.raises(ConfigurationError, match=message):
        execute(plan, LeRobotExecutor(arm, other, clock=arm.clock))
    with pytest.raises(ConfigurationError, match="the hand of arm 'so101' needs the feature of"):
        execute(plan, LeRobotExecutor(arm, without("gripper"), clock=arm.clock))
    assert arm.actions == 0


def test_a_range_that_is_too_small_is_named(plan: Plan, joints: LeRobotSettings) -> None:
    """LeRobot would clamp the command without an error; nothing moves."""
    narrow = {**joints.joints, "gripper": LeRobotJoint("gripper.pos", 125.0, 12.5, 0.0, 100.0)}
    settings = replace(joints, joints=narrow)
    arm = _arm(plan, joints)
    message = (
        r"step 1, transit: joint 'gripper' at 0\.8254 is 'gripper\.pos' at 115\.7, outside of 0 to"
        r" 100; its range"
    )
    with pytest.raises(ConfigurationError, match=message):
        execute(plan, LeRobotExecutor(arm, settings, clock=arm.clock))
    assert arm.actions == 0


@pytest.mark.parametrize("speed", [0.0, 1.5, math.nan])
def test_a_speed_beyond_that_of_the_plan_is_rejected(
    speed: float, plan: Plan, joints: LeRobotSettings
) -> None:
    """Speeds are above 0 and at most 1."""
    arm = _arm(plan, joints)
    with pytest.raises(ConfigurationError, match="speed must be above 0 and at most 1"):
        LeRobotExecutor(arm, joints, speed=speed, clock=arm.clock)


@pytest.mark.parametrize("number", [20, 45, 85, 100, 115, 150])
def test_a_stopped_plan_goes_on(number: int, plan: Plan, joints: LeRobotSettings) -> None:
    """From the measured configuration to the goal, without or with the object in the hand."""
    executors: list[LeRobotExecutor] = []

    def fault(arm: StandInArm, count: int) -> None:
        if count == number:
            executors[0].stop()

    arm = _arm(plan, joints, fault=fault)
    executors.append(LeRobotExecutor(arm, joints, clock=arm.clock))
    with pytest.raises(ExecutionError, match="stopped") as caught:
        execute(plan, executors[0])
    report = caught.value.report
    positions = joints.positions(arm.get_observation())
    rest = resume_plan(plan, report, positions=positions)
    assert rest.remaining is not None, rest.explanation
    options: dict[str, Any] = {"first": rest.step, "first_segment": rest.segment}
    execute(rest.remaining, LeRobotExecutor(arm, joints, clock=arm.clock, **options))
    assert len(arm.grasps) == 2
    closed, opened = (plan.scene.configuration(values) for values in arm.grasps)
    put = plan.scene.reparent("a", plan.robot.tip, q=closed).reparent("a", "b", q=opened)
    expected = plan.final_scene.pose("a", q=plan.final_q)
    assert put.pose("a", q=opened).distance(expected)[0] < 3e-3
