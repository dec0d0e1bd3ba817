"""``tmkit execute --lerobot`` on a stand-in for LeRobot and its arm."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.commands import Outcome, tmkit
from support.lerobot_arm import Behaviour, Config, StandInArm, mount

import tmkit as tk
from tmkit.errors import ConfigurationError
from tmkit.plans import Plan
from tmkit.world import load_lerobot
from tmkit.world.lerobot.robots import connect_robot, make_robot

TOML = """
[joints]
shoulder_pan = { unit = "degrees", sign = -1, offset = 4.5 }
shoulder_lift = { unit = "degrees", offset = -2.0 }
elbow_flex = { unit = "degrees" }
wrist_flex = { unit = "degrees" }
wrist_roll = { unit = "degrees", sign = -1, offset = 30 }
gripper = { unit = "range_0_100", range = [-0.174533, 1.74533] }

[robot]
type = "so101_follower"
port = "/dev/ttyACM0"
"""

GRASP = 0.2187702388814164
"""Joint value of the jaw at the blocks of the scene [rad]."""


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Plan of an SO-101 that stacks a block."""
    scene = tk.load_scene("so101_table")
    result = tk.plan(scene, domain="blocks", goal="(on a b)", robot="so101", seed=0)
    assert result.plan is not None
    return result.plan


class Bench:
    """Folder with a plan and the file of an arm, which LeRobot constructs."""

    def __init__(self, folder: Path, plan: Plan, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.plan = folder, plan
        tk.save_plan(plan, folder / "plan.json")
        (folder / "arm.toml").write_text(TOML, encoding="utf-8")
        self.arm = self.mount()
        clock = self.arm.clock
        patch.setattr(time, "monotonic", clock.monotonic)
        patch.setattr(time, "sleep", clock.sleep)
        for name, module in _lerobot(self).items():
            patch.setitem(sys.modules, name, module)

    def mount(self, **q: float) -> StandInArm:
        """Return an arm that is not connected, at the start of the plan or elsewhere."""
        values = dict(zip(self.plan.scene.joint_names, self.plan.q.tolist(), strict=True))
        joints = load_lerobot(self.folder / "arm.toml")
        arm = mount(joints, {**values, **q}, behaviour=Behaviour(objects=[GRASP]))
        arm.disconnect()
        return arm

    def set_fault(self, fault: Callable[[StandInArm, int], None]) -> None:
        """Set the fault of the arm."""
        self.arm.behaviour.fault = fault

    def execute(self, *options: str) -> Outcome:
        """Execute the plan."""
        return tmkit(self.folder, "execute", "plan.json", "--lerobot", "arm.toml", *options)


def _lerobot(bench: Bench) -> dict[str, ModuleType]:
    """Return the modules of LeRobot that construct the arm of a bench."""

    def decode(config_class: Any, table: dict[str, Any]) -> Config:
        del config_class
        return Config(**{key: value for key, value in table.items() if key != "type"})

    def make_robot_from_config(config: Config) -> StandInArm:
        bench.arm.config = config
        return bench.arm

    class RobotConfig:
        """Register of types."""

        @staticmethod
        def get_known_choices() -> dict[str, type]:
            return {"so101_follower": Config}

        @staticmethod
        def get_choice_class(kind: str) -> type:
            return RobotConfig.get_known_choices()[kind]

    modules = {
        name: ModuleType(name)
        for name in ("draccus", "lerobot", "lerobot.robots", "lerobot.utils.import_utils")
    }
    vars(modules["draccus"])["decode"] = decode
    vars(modules["lerobot"]).update(robots=modules["lerobot.robots"])
    vars(modules["lerobot.robots"]).update(
        RobotConfig=RobotConfig, make_robot_from_config=make_robot_from_config, __path__=[]
    )
    vars(modules["lerobot.utils.import_utils"])["register_third_party_plugins"] = lambda: None
    return modules


@pytest.fixture
def bench(tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench with its own arm."""
    return Bench(tmp_path, plan, monkeypatch)


def _errors(done: Outcome) -> list[str]:
    assert "Traceback" not in done.err
    return [line for line in done.err.splitlines() if line.startswith("error:")]


def test_a_plan_is_executed(bench: Bench) -> None:
    """The arm is connected and disconnected, and keeps its torque and position."""
    done = bench.execute("--speed", "0.5", "--json")
    assert done.code == 0, done
    report = json.loads(done.out)
    assert (report["status"], report["complete_steps"]) == ("succeeded", 2)
    arm = bench.arm
    assert (arm.is_connected, arm.has_torque, len(arm.grasps)) == (False, True, 2)
    assert arm.config.port == "/dev/ttyACM0"


def test_a_file_may_free_the_motors_at_the_end(bench: Bench) -> None:
    """The configuration of the file has precedence."""
    path = bench.folder / "arm.toml"
    path.write_text(TOML + "disable_torque_on_disconnect = true\n", encoding="utf-8")
    assert bench.execute("--until", "1").code == 0
    assert not bench.arm.has_torque


def test_the_goals_are_printed(bench: Bench) -> None:
    """A dry run needs no LeRobot."""
    sys.modules["lerobot"] = None  # type: ignore[assignment]
    done = bench.execute("--dry-run")
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("so101: ")
    assert lines[1] == "so101 gripper: gripper to 0 (grasp a)"
    assert bench.arm.actions == 0


def test_a_failure_is_reported(bench: Bench) -> None:
    """The exit code is 1, and the report has the cause; the motors keep their torque."""

    def fault(arm: StandInArm, number: int) -> None:
        arm.motors["shoulder_pan"].is_stalled = number > 15

    bench.set_fault(fault)
    done = bench.execute()
    assert done.code == 1, done
    assert "step 1 (pick-up a table__0__1), approach at " in done.out
    assert "joint 'shoulder_pan' is 0.1" in done.out
    assert "the arm is at rest" in done.out
    assert (bench.arm.is_connected, bench.arm.has_torque) == (False, True)


def test_an_arm_off_its_start_has_exit_code_2(bench: Bench) -> None:
    """A plan from the measured values is executed."""
    bench.arm.motors = bench.mount(elbow_flex=-0.1).motors
    done = bench.execute()
    assert done.code == 2, done
    (line,) = _errors(done)
    assert "start of the plan: joint 'elbow_flex' is 0.1" in line
    assert bench.arm.actions == 0
    measured = line.rsplit("measured: ", 1)[1]
    again = tmkit(
        bench.folder,
        *("plan", "so101_table", "--domain", "blocks", "--goal", "(on a b)", "--robot", "so101"),
        *("--start", measured, "-o", "plan.json"),
    )
    assert again.code == 0, again
    assert bench.execute().code == 0


def test_an_interruption_is_reported(bench: Bench) -> None:
    """The exit code is 130, after the arm was stopped and disconnected."""

    def fault(arm: StandInArm, number: int) -> None:
        del arm
        if number == 20:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            threading.Event().wait(0.5)  # until the main thread has received it

    bench.set_fault(fault)
    done = bench.execute()
    assert done.code == 130, done
    assert "stopped in step " in done.out
    assert "; the arm is at rest" in done.out
    assert not bench.arm.is_connected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("so101_follower", "so102_follower"), "'so102_follower'; did you mean 'so101_foll"),
        (('port = "/dev/ttyACM0"', "prot = 3"), "LeRobot rejects the configuration: .*'prot'"),
        (('type = "so101_follower"', ""), r"no table \[robot\] with the type of the robot"),
    ],
)
def test_a_wrong_robot_is_rejected(change: tuple[str, str], message: str, bench: Bench) -> None:
    """The type and the configuration of the robot are those of LeRobot."""
    path = bench.folder / "arm.toml"
    path.write_text(TOML.replace(*change), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message):
        make_robot(load_lerobot(path))


def test_a_missing_lerobot_is_one_line(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says how to get it."""
    monkeypatch.setitem(sys.modules, "lerobot", None)
    done = bench.execute()
    assert done.code == 2
    (line,) = _errors(done)
    assert "pip install 'lerobot[feetech]'" in line


def test_an_arm_that_cannot_be_connected_is_one_line(bench: Bench) -> None:
    """As when another program has opened its port."""
    bench.arm.connect()
    (line,) = _errors(bench.execute())
    assert "robot: cannot be connected: StandInArm is already connected" in line


def test_an_arm_without_calibration_is_rejected(bench: Bench) -> None:
    """It is disconnected again."""
    bench.arm.is_calibrated = False
    message = "is not calibrated under this 'id'; run lerobot-calibrate"
    joints = load_lerobot(bench.folder / "arm.toml")
    with pytest.raises(ConfigurationError, match=message), connect_robot(joints):
        pytest.fail("it is used")
    assert not bench.arm.is_connected


def test_an_arm_that_falls_does_not_go_on(bench: Bench) -> None:
    """LeRobot frees the motors when it connects: neither a resumption nor a held object."""
    (line,) = _errors(bench.execute("--from", "2"))
    assert "the plan starts with an object in the hand" in line
    resumed = bench.execute("--resume")
    assert resumed.code == 2
    assert "frees its motors" in resumed.err
    assert bench.arm.actions == 0


def test_one_robot_is_expected(bench: Bench) -> None:
    """Controllers of ROS 2 or an arm of LeRobot."""
    both = bench.execute("--controllers", "controllers.yaml")
    none = tmkit(bench.folder, "execute", "plan.json")
    for done in (both, none):
        assert done.code == 2
        assert "one robot expected" in done.err
