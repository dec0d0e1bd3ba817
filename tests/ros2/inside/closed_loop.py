"""Closed loop on controllers and /tf: a pushed block is fetched, an empty grasp is repeated."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.processes import Process

import tmkit as tk
from tmkit.spatial import Pose
from tmkit.world import (
    Buffer,
    ControllerSettings,
    JointStates,
    Ros2Executor,
    RosSensorSettings,
    TfSensor,
    execute_closed_loop,
)
from tmkit.world.closed_loop import LoopOptions
from tmkit.world.execution.controllers import Controller

CONTROLLERS = Path(__file__).parents[1] / "controllers.py"
REACH = 0.05
"""Distance from the tool within which a closing hand takes an object [m]."""


class World:
    """Controllers, and blocks that move with the hand that closes on them, seen on /tf."""

    def __init__(self, robot: Any, folder: Path, faults: list[dict[str, Any]]) -> None:
        self.scene = tk.load_scene("panda_table", "blocks2")
        self.arm = tk.load_manipulator("panda")
        self.q = self.arm.ready_configuration(self.scene)
        self.pushes: dict[int, Pose] = {}
        """Pose of block 'a' after a goal of the hand, by its number."""
        values = dict(zip(self.scene.joint_names, self.q.tolist(), strict=True))
        finger = self.arm.gripper_joints[0]
        hand = {"name": "hand", "type": "GripperCommand", "joint": finger, "closed": 0.0}
        hand |= {"position": values[finger], "objects": [0.025] * 9, "allow_stalling": True}
        arm = {"name": "arm", "joints": {joint: values[joint] for joint in self.arm.joints}}
        self.settings = {"factor": 6.0, "arms": [arm], "hands": [hand], "faults": faults}
        self._file = folder / "controllers.json"
        self._robot, self._joints = robot, Buffer(scene=self.scene)
        self._is_over = threading.Event()

    def __enter__(self) -> World:
        self._file.write_text(json.dumps(self.settings), encoding="utf-8")
        self._process = Process(
            [sys.executable, CONTROLLERS, self._file], stdout=subprocess.PIPE, text=True
        )
        self._states = JointStates(self._joints, period=0.005)
        self._states.configuration(self.arm.joints, max_age=60.0, timeout=120.0)
        self._threads = [threading.Thread(target=run) for run in (self._publish, self._listen)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._process.terminate()
        for thread in self._threads:
            thread.join()
        assert self._process.wait() == 0
        self._states.close()

    def _measured(self) -> Any:
        """Return the present configuration."""
        names, q, _ = self._joints.latest_configuration()
        values = {joint: q[names.index(joint)] for joint in self.arm.joints}
        return self.scene.configuration(values, base=self.q)

    def _publish(self) -> None:
        """Publish the poses of the blocks."""
        while not self._is_over.wait(0.02):
            scene, q = self.scene, self._measured()
            for name in ("a", "b"):
                self._robot.publish_tf("world", name, scene.pose(name, q=q))

    def _listen(self) -> None:
        """Take and release blocks as the hand closes and opens."""
        for line in self._process.stdout:
            words = line.split()
            if words[0] != "hand":
                continue
            q, scene = self._measured(), self.scene
            tool = scene.pose(self.arm.tool, q=q)
            for name in ("a", "b"):
                distance = tool.distance(scene.pose(name, q=q))[0]
                if float(words[-1]) < 0.01 and distance < REACH:
                    scene = scene.reparent(name, self.arm.tip, q=q)
                elif float(words[-1]) > 0.01 and scene.parent(name) == self.arm.tip:
                    scene = scene.reparent(name, "table", q=q)
            if (pose := self.pushes.get(int(words[1]))) is not None:
                scene = scene.reparent("a", "table", pose=pose)
            self.scene = scene


def run(world: World, goal: str, **options: Any) -> Any:
    """Execute a goal in a closed loop on the controllers."""
    problem = tk.PlanningProblem(world.scene, world.q, domain="blocks", goal=goal, robots="panda")
    settings = ControllerSettings(
        (
            Controller(
                "arm",
                "FollowJointTrajectory",
                "/arm/follow_joint_trajectory",
                tuple(world.arm.joints),
            ),
            Controller("hand", "GripperCommand", "/hand/gripper_cmd", ("panda_finger_joint1",)),
        ),
        state_age=20.0,
        server_time=60.0,
        goal_margin=5.0,
        duration_scaling=50.0,
    )
    sensor_settings = RosSensorSettings(timeout=12.0)
    with (
        world,
        Ros2Executor(settings) as executor,
        TfSensor(["a", "b"], settings=sensor_settings) as sensor,
    ):
        return execute_closed_loop(
            problem,
            executor,
            [sensor],
            options=tk.PlanningOptions(seed=0),
            loop=LoopOptions(**options),
        )


@pytest.fixture
def world(robot: Any, tmp_path: Path) -> Iterator[World]:
    """World without faults."""
    return World(robot, tmp_path, [])


def test_a_block_that_is_pushed_away_is_fetched(world: World) -> None:
    """Block 'a' moves on the table when block 'b' is taken, and is stacked from there."""
    pushed = world.scene.local_pose("a")
    world.pushes[1] = Pose([0.0, 0.12, 0.0]) @ pushed
    result = run(world, "(and (on a b) (ontable b table__0__1))")
    assert result.status == "goal reached", str(result)
    assert any("'a' is 1" in event.text for event in result.events), str(result)
    assert result.scene.parent("a") == "b"
    top = world.scene.pose("a").translation - world.scene.pose("b").translation
    assert abs(top[0]) < 0.01
    assert abs(top[1]) < 0.01
    assert top[2] > 0.03


def test_an_empty_grasp_is_repeated(world: World) -> None:
    """The hand closes completely, and grasps the block the second time."""
    world.settings["hands"][0]["objects"] = [None] + [0.025] * 9
    world.pushes[1] = Pose([0.0, 0.12, 0.0]) @ world.scene.local_pose("a")  # it slips away
    result = run(world, "(on a b)")
    assert result.status == "goal reached", str(result)
    assert any("closed on nothing, not on 'a'" in event.text for event in result.events)
    assert len(result.plans) == 2


def test_an_aborted_arm_plans_again_from_its_measured_joints(robot: Any, tmp_path: Path) -> None:
    """The arm is bumped off its path, and goes on from there."""
    world = World(robot, tmp_path, [{"kind": "bump", "goal": 1, "time": 0.6}])
    world.settings |= {"factor": 2.0, "lag": 0.05}
    result = run(world, "(on a b)")
    assert result.status == "goal reached", str(result)
    assert "the executor failed" in result.events[0].text
    assert abs(result.plans[1].q - result.plans[0].q).max() > 0.1
