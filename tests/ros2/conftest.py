"""The environment of ROS 2, and plans and controllers for it."""

from __future__ import annotations

import json
import os
import signal
import site
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from support.classic import problem_file
from support.commands import tmkit
from support.processes import Process

import tmkit as tk
from tmkit.plans import Plan, SegmentKind

collect_ignore = ["inside"]  # its tests run in the environment of ROS 2, by test_sources.py

HERE = Path(__file__).parent
ENVIRONMENT = Path(os.environ.get("TMKIT_ROS2", HERE.parents[1] / "build" / "ros2"))
DOMAINS = range(1, 102)
"""Domain ids whose ports are below those that the system gives to programs."""

BUSY = {
    "schedule_tolerance": 3.0,
    "state_age": 20.0,
    "server_time": 60.0,
    "goal_margin": 5.0,
    "duration_scaling": 50.0,
    "gripper_time": 60.0,
    "discovery_time": 0.1,
}
"""Settings for a machine on which programs may wait for seconds."""


XARM7 = "package://example-robot-data/robots/xarm_description/urdf/xarm7.urdf"
"""URDF of an arm without a hand."""

Problem = tuple[tuple[str, ...], str, str | Path, str | tuple[str, ...]]
"""Scenes, domain, goal and robots of a plan."""

PROBLEMS: Mapping[str, Problem] = {
    "panda": (("panda_table", "blocks1"), "blocks", "(ontable a table__0__1)", "panda"),
    "panda_tower": (("panda_table", "blocks3"), "blocks", "(and (on a b) (on b c))", "panda"),
    "xarm": (("xarm_table", "blocks2"), "blocks", "(on a b)", "xarm"),
    "xarm7": (("xarm7.json", "table", "blocks2"), "blocks", "(on a b)", "xarm7.toml"),
    "so101": (("so101_table",), "blocks", "(on a b)", "so101"),
    "ur5": (("ur5_table", "blocks2"), "blocks", "(on a b)", "ur5"),
    "iiwa": (("iiwa_table", "blocks1"), "blocks", "(ontable a table__0__1)", "iiwa"),
    "drawer": (("panda_drawer",), "drawer", problem_file("drawer", "empty"), "panda"),
    "push": (("panda_push",), "push", problem_file("push", "rack"), "panda"),
    "pour": (("panda_table", "tea"), "pour", problem_file("pour", "tea"), "panda"),
    "hanoi": (("panda_table", "hanoi3"), "hanoi", problem_file("hanoi", "hanoi3"), "panda"),
    "mobile base": (
        ("mobile_panda", "three_tables"),
        "mobile_manipulation",
        "(on b south)",
        ("panda", "panda_base"),
    ),
    "handover": (
        ("baxter_trays",),
        "handover",
        problem_file("handover", "across"),
        ("baxter", "baxter_left"),
    ),
    "two arms": (  # at the same time
        ("baxter_trays",),
        "handover",
        "(and (at a right_inner) (at b left_inner))",
        ("baxter", "baxter_left"),
    ),
}
"""Problems by the name of their plan."""


@dataclass(frozen=True)
class Execution:
    """Result of ``tmkit execute``."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """Report of ``--json``."""
        return dict(json.loads(self.out))


class StandIn:
    """Running controllers; ``events`` are the lines that were read so far."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.events: list[str] = []

    def wait(self, event: str) -> None:
        """Read events up to one that begins with a text."""
        for line in self.process.stdout:
            self.events.append(line.rstrip("\n"))
            if self.events[-1].startswith(event):
                return
        pytest.fail(f"the controllers ended before the event {event!r}: {self.events}")

    def end(self) -> None:
        """End the controllers, and read their remaining events."""
        self.process.send_signal(signal.SIGTERM)
        self.events += self.process.stdout.read().splitlines()
        assert self.process.wait() == 0, self.events


@dataclass(frozen=True)
class Ros:
    """Programs in the environment of ROS 2, in a domain of this test process."""

    folder: Path
    variables: Mapping[str, str]

    def start(self, *arguments: str | Path, stderr: IO[str] | int | None = None) -> Process:
        """Start a program of Python."""
        return Process(
            [ENVIRONMENT / "bin" / "python", *arguments],
            cwd=self.folder,
            env=dict(self.variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    @contextmanager
    def controllers(self, settings: Mapping[str, Any]) -> Iterator[StandIn]:
        """Run controllers until the end of the block."""
        file = self.folder / "stand_in.json"
        file.write_text(json.dumps(settings), encoding="utf-8")
        with self.start(HERE / "controllers.py", file) as process:
            stand_in = StandIn(process)
            stand_in.wait("ready")
            yield stand_in
            stand_in.end()

    def test(self, file: str) -> None:
        """Run the tests of a file in the environment, where they import rclpy."""
        folders = ":".join(site.getsitepackages())
        options = ["-c", os.devnull, "--rootdir", HERE / "inside", "-p", "no:cacheprovider", "-q"]
        options += ["-o", f"pythonpath={HERE.parent}"]
        command = [HERE / "in_environment.py", folders, "pytest", HERE / "inside" / file, *options]
        with self.start(*command, stderr=subprocess.STDOUT) as process:
            out, _ = process.communicate()
        assert process.returncode == 0, out

    def execute(
        self,
        plan: Path,
        controllers: Path,
        *options: str,
        during: Callable[[Process], None] = lambda _: None,
        answers: str = "",
    ) -> Execution:
        """Run ``tmkit execute --json`` with answers to its questions, and a function meanwhile."""
        folders = ":".join(site.getsitepackages())
        command = ["tmkit", "execute", plan, "--controllers", controllers, "--json", *options]
        arguments = [HERE / "in_environment.py", folders, *command]
        with self.start(*arguments, stderr=subprocess.PIPE) as process:
            during(process)
            out, err = process.communicate(answers)
            assert "Traceback" not in err, err
            return Execution(process.returncode, out, err)


def _solve(name: str, folder: Path) -> Plan:
    """Return the plan of a name; a robot that is not built in is described in a folder."""
    scenes, domain, goal, arms = PROBLEMS[name]
    if name == "xarm7":
        description = ("--hand", "parallel_gripper", "--out", "xarm7.toml", "--yes")
        described = tmkit(folder, "new", "robot", XARM7, *description)
        assert described.code == 0, described
        scenes, arms = (str(folder / scenes[0]), *scenes[1:]), str(folder / "xarm7.toml")
    scene = tk.load_scene(*scenes)
    if name == "two arms":
        block = {"classes": ["movable"], "joint": tk.Free(), "shapes": scene.shapes("a")}
        scene = scene.add_frame("b", "left_tray", pose=scene.local_pose("a"), **block)
        x, _, z = scene.local_pose("left_tray").translation
        tray = {"classes": ["surface"], "shapes": scene.shapes("left_tray")}
        for place, y in (("right_inner", -0.4), ("left_inner", 0.4)):
            scene = scene.add_frame(place, "table", pose=tk.Pose([x, y, z]), **tray)
    options = tk.PlanningOptions(arms_at_once=name == "two arms")
    result = tk.plan(scene, domain=domain, goal=goal, robot=arms, seed=0, options=options)
    assert result.plan is not None, result.explanation
    return result.plan


@pytest.fixture(scope="session")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Plan, Path]]:
    """Function that returns a plan and its file by name."""
    folder = tmp_path_factory.mktemp("plans")
    found: dict[str, tuple[Plan, Path]] = {}

    def get(name: str) -> tuple[Plan, Path]:
        if name not in found:
            plan, file = _solve(name, folder), folder / f"{name}.json"
            tk.save_plan(plan, file)
            found[name] = plan, file
        return found[name]

    return get


@pytest.fixture(scope="session")
def _ros_variables() -> Iterator[Mapping[str, str]]:
    """Variables of the environment, with a domain id that no other process uses."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no ROS 2 in {ENVIRONMENT}: run tests/ros2/make_environment.sh")
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if not (ENVIRONMENT / "lib" / version / "site-packages" / "ur_msgs").exists():
        pytest.skip(f"ROS 2 in {ENVIRONMENT} is old or not of {version}: run make_environment.sh")
    for domain in DOMAINS:
        with socket.socket(socket.AF_UNIX) as lock:  # the abstract name is free when it closes
            try:
                lock.bind(f"\0tmkit_ros2_domain_{domain}")
            except OSError:
                continue
            names = ("PATH", "HOME", "LANG", "TMKIT_CACHE")
            yield {
                **{name: os.environ[name] for name in names if name in os.environ},
                "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
                "ROS_DOMAIN_ID": str(domain),
            }
            return
    pytest.fail("all domain ids are in use")


@pytest.fixture
def ros(_ros_variables: Mapping[str, str], tmp_path: Path) -> Ros:
    """Programs of ROS 2, in the folder of the test."""
    return Ros(tmp_path, {**_ros_variables, "ROS_HOME": str(tmp_path), "TMPDIR": str(tmp_path)})


def stand_in_settings(plan: Plan, *faults: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """Return controllers of a plan's arms at its start, whose hands hold its objects."""
    start = dict(zip(plan.scene.joint_names, plan.q.tolist(), strict=True))
    arms, hands, cups = [], [], []
    for arm in plan.robots:
        joints = {joint: start[joint] for joint in arm.joints}
        arms.append({"name": f"{arm.name}_controller", "joints": joints})
        if arm.gripper_kind == "suction":
            cup = {"name": f"/{arm.name}_vacuum", "sensor": f"/{arm.name}_vacuum_present"}
            cups.append({**cup, "type": "std_srvs/srv/SetBool", "objects": [True] * 20})
        if not arm.gripper_joints:
            continue
        joint = arm.gripper_joints[0]
        closed, value = arm.gripper_closed[joint], start[joint]
        widths: list[float | None] = []
        for segment in (segment for step in plan.steps for segment in step.segments):
            if segment.arm == arm.name:
                previous, value = value, segment.gripper[joint]
                if segment.kind is SegmentKind.GRASP:
                    widths.append(value)
                elif value == closed != previous:  # an empty hand closes on nothing
                    widths.append(None)
        hand = {"name": f"{arm.name}_hand", "type": "GripperCommand", "joint": joint}
        values = {"position": start[joint], "closed": closed, "objects": widths}
        hands.append({**hand, **values})
    return {"factor": 4.0, "arms": arms, "hands": hands, "cups": cups, "faults": faults, **settings}


def write_controllers(
    folder: Path, plan: Plan, *, gripper: str = "GripperCommand", **settings: object
) -> Path:
    """Write a TOML file of the controllers and suction grippers of a plan's arms."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in {**BUSY, **settings}.items()]
    for arm in plan.robots:
        entries: list[tuple[str, str, str, Sequence[str]]] = [
            ("controller", "follow_joint_trajectory", "FollowJointTrajectory", arm.joints)
        ]
        if arm.gripper_joints:
            entries.append(("hand", "gripper_cmd", gripper, arm.gripper_joints[:1]))
        for suffix, action, kind, joints in entries:
            lines += [f"[controllers.{arm.name}_{suffix}]", f'action_ns = "{action}"']
            lines += [f'type = "{kind}"', f"joints = {json.dumps(list(joints))}"]
        if arm.gripper_kind == "suction":
            lines += [f"[suction.{arm.name}]", f'service = "/{arm.name}_vacuum"']
            lines += [f'sensor = "/{arm.name}_vacuum_present"', "sensor_age = 20.0"]
    file = folder / "controllers.toml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
