"""Reach of arms: poses at the border of the workspace and among obstacles are solved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from support.robots import require_robot

import tmkit as tk
from tmkit._core import InverseKinematicsSolutions
from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.motion import (
    CollisionWorld,
    IkSettings,
    InverseKinematicsStatus,
    inverse_kinematics_solutions,
)
from tmkit.motion.collision_rules import PLANNING_MARGIN, CollisionRules
from tmkit.robots import Manipulator, movable_frames
from tmkit.spatial import Pose

ARMS = {
    "panda": "panda_table",
    "iiwa": "iiwa_table",
    "xarm": "xarm_table",
    "ur5": "ur5_table",
    "baxter": "baxter_table",
}


@dataclass(frozen=True)
class Arm:
    """Arm in a scene without movable objects."""

    scene: SceneGraph
    robot: Manipulator
    rng: np.random.Generator

    @classmethod
    def of(cls, robot: str, *, seed: int) -> Arm:
        """Return an arm of tmkit with its own random numbers."""
        require_robot(robot)
        scene = tk.load_scene(ARMS[robot])
        for frame in movable_frames(scene):
            if frame in scene:
                scene = scene.remove_frame(frame, subtree=True)
        return cls(scene, tk.load_manipulator(robot), np.random.default_rng(seed))

    @property
    def ready(self) -> NDArray[np.float64]:
        """Configuration at rest (n_joints,)."""
        return self.robot.ready_configuration(self.scene)

    def world(self, scene: SceneGraph) -> CollisionWorld:
        """Return the planning world of the arm at rest, without obstacles."""
        rules = CollisionRules.from_start(self.robot, self.scene, q=self.ready)
        return rules.world(scene, rules.allowed_contacts(scene), margin=PLANNING_MARGIN)

    def random_configurations(self, count: int) -> NDArray[np.float64]:
        """Return configurations (count, n_joints) of the arm that are free of collision."""
        columns = [self.scene.joint_names.index(name) for name in self.robot.joints]
        limits = np.clip(self.scene.joint_limits[columns], -np.pi, np.pi)
        configurations, world = np.empty((0, len(self.ready))), self.world(self.scene)
        while len(configurations) < count:
            samples = np.repeat(self.ready[None], 4 * count, axis=0)
            samples[:, columns] = self.rng.uniform(
                limits[:, 0], limits[:, 1], (4 * count, len(columns))
            )
            configurations = np.concatenate(
                [configurations, samples[~world.in_collision_batch(samples)]]
            )
        return configurations[:count]

    def pose(self, frame: str, q: NDArray[np.float64]) -> Pose:
        """Return root_from_frame."""
        return self.scene.pose(frame, relative_to=self.scene.root(self.robot.tool), q=q)

    def add_boxes(self, q: NDArray[np.float64], boxes: int) -> tuple[SceneGraph, CollisionWorld]:
        """Return a scene with boxes near the links of a free configuration, and its world."""
        tool = self.robot.tool
        root, links = self.scene.root(tool), self.scene.ancestors(tool)[:7]
        scene = self.scene
        for number in range(boxes):
            position = self.pose(
                links[self.rng.integers(len(links))], q
            ).translation + self.rng.uniform(-0.2, 0.2, 3)
            pose = Pose.from_rpy(position, [0.0, 0.0, self.rng.uniform(0.0, 3.0)])
            box = AttachedShape(Box(self.rng.uniform(0.03, 0.25, 3)))
            scene = scene.add_frame(f"box{number}", root, pose=pose, shapes=[box])
        pairs = self.world(scene).contacts(q)
        for name in {
            name
            for pair in pairs
            for name in (pair.frame_a, pair.frame_b)
            if name.startswith("box")
        }:
            scene = scene.remove_frame(name)
        return scene, self.world(scene)

    def solve(
        self, target: Pose, world: CollisionWorld, *, seed: int
    ) -> InverseKinematicsSolutions:
        """Return a solution at a pose of the tool, with the default number of restarts."""
        return inverse_kinematics_solutions(
            world,
            self.robot.tool,
            target_pose=target,
            joints=self.robot.joints,
            q=self.ready,
            settings=IkSettings(max_solutions=1, seed=seed),
        )


@pytest.mark.parametrize("robot", list(ARMS))
def test_poses_of_stretched_arms_are_reached(robot: str) -> None:
    """Of the farthest poses of 3,000 free configurations, 99 of 100 are solved."""
    arm = Arm.of(robot, seed=1)
    first = arm.pose(arm.scene.joint_frame(arm.robot.joints[0]), arm.ready)
    qs = arm.random_configurations(3000)
    targets = [arm.pose(arm.robot.tool, q) for q in qs]
    distances = np.array(
        [np.linalg.norm(target.translation - first.translation) for target in targets]
    )
    world = arm.world(arm.scene)
    statuses = [
        arm.solve(targets[k], world, seed=k).status for k in np.argsort(-distances)[:100].tolist()
    ]
    assert statuses.count(InverseKinematicsStatus.SOLVED) >= 99


@pytest.mark.parametrize("robot", list(ARMS))
def test_poses_among_obstacles_are_reached(robot: str) -> None:
    """Among some boxes, 99 of 100 poses of free configurations have free solutions."""
    arm = Arm.of(robot, seed=2)
    solved_count = 0
    for seed, q in enumerate(arm.random_configurations(100)):
        _, world = arm.add_boxes(q, 12)
        target = arm.pose(arm.robot.tool, q)
        result = arm.solve(target, world, seed=seed)
        for solution in result.configurations:
            metres, radians = arm.pose(arm.robot.tool, solution).distance(target)
            assert metres <= 1.01e-5
            assert radians <= 1.1e-5
            assert not world.is_in_collision(solution)
            solved_count += 1
    assert solved_count >= 99


@pytest.mark.parametrize("robot", ["panda", "iiwa"])
def test_the_elbow_moves_between_many_obstacles(robot: str) -> None:
    """Among 140 boxes, most solutions collide. Free ones are on their self-motions."""
    arm = Arm.of(robot, seed=3)
    solved_count = 0
    for seed, q in enumerate(arm.random_configurations(100)):
        _, world = arm.add_boxes(q, 140)
        result = arm.solve(arm.pose(arm.robot.tool, q), world, seed=seed)
        solved_count += result.status is InverseKinematicsStatus.SOLVED
        again = arm.solve(arm.pose(arm.robot.tool, q), world, seed=seed)
        assert [q.tolist() for q in again.configurations] == [
            q.tolist() for q in result.configurations
        ]
    assert solved_count >= 90
