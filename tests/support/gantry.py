"""Gantry robot for simulation tests, with inverse kinematics in closed form, and plans for it.

Three rails carry a hand that turns about the vertical; two fingers, of which one mimics the other,
close along y. The tool points down, and where the rails and the turn are, there the tool is. So a
plan is written down, not searched for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit.graph import (
    AttachedShape,
    Box,
    Free,
    Inertia,
    Mimic,
    Prismatic,
    Revolute,
    SceneGraph,
    Shape,
)
from tmkit.pddl import GroundAction
from tmkit.plans.values import Attachment, Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator
from tmkit.spatial import Pose

HEIGHT = 0.8  # of the rails over the table
REACH = 0.12  # from the hand down to the tool
BLOCK = 0.05
LIFT = 0.08
RED, GREEN, BLUE = (0.9, 0.1, 0.1, 1.0), (0.1, 0.7, 0.2, 1.0), (0.1, 0.3, 0.9, 1.0)

JOINTS = ("x", "y", "z", "turn")
GANTRY = Manipulator(
    name="gantry",
    base="rail",
    tip="hand",
    tool="tool",
    joints=JOINTS,
    ready={"x": 0.0, "y": -0.3, "z": 0.3, "turn": 0.0},
    velocity={"x": 0.6, "y": 0.6, "z": 0.4, "turn": 1.5},
    acceleration={"x": 1.5, "y": 1.5, "z": 1.0, "turn": 4.0},
    gripper_joints=("finger",),
    gripper_open={"finger": 0.04},
    gripper_closed={"finger": 0.0},
    width_open=0.08,
    width_closed=0.0,
    grip_force=30.0,
    contact_links=("left_finger", "right_finger"),
)
SUCKER = Manipulator.from_dict(
    {
        **GANTRY.to_dict(),
        "name": "sucker",
        "gripper_kind": "suction",
        "gripper_joints": [],
        "gripper_open": {},
        "gripper_closed": {},
        "contact_links": ["hand"],
    }
)


def gantry_scene() -> SceneGraph:
    """Return the gantry over a table whose top is at height 0."""
    scene = SceneGraph()
    finger = AttachedShape(Box([0.02, 0.01, 0.05]), color=(0.2, 0.2, 0.2, 1.0))
    with scene.edit() as edit:
        edit.add_frame(
            "table",
            "world",
            pose=Pose([0.0, 0.0, -0.05]),
            classes=["surface"],
            shapes=[AttachedShape(Box([1.0, 1.0, 0.1]), color=(0.7, 0.5, 0.3, 1.0))],
        )
        edit.add_frame("rail", "world", pose=Pose([0.0, 0.0, HEIGHT]))
        edit.add_frame(
            "beam",
            "rail",
            joint=Prismatic([1, 0, 0], lower=-0.5, upper=0.5, effort=500.0, name="x"),
        )
        edit.add_frame(
            "carriage",
            "beam",
            joint=Prismatic([0, 1, 0], lower=-0.5, upper=0.5, effort=500.0, name="y"),
        )
        edit.add_frame(
            "column",
            "carriage",
            joint=Prismatic([0, 0, -1], lower=0.0, upper=0.8, effort=500.0, name="z"),
        )
        edit.add_frame(
            "hand",
            "column",
            joint=Revolute([0, 0, 1], lower=-3.0, upper=3.0, effort=50.0, name="turn"),
            shapes=[AttachedShape(Box([0.06, 0.12, 0.06]), color=(0.9, 0.9, 0.9, 1.0))],
        )
        edit.add_frame("tool", "hand", pose=Pose.from_rpy([0.0, 0.0, -REACH], [math.pi, 0.0, 0.0]))
        edit.add_frame(
            "left_finger",
            "hand",
            pose=Pose([0.0, 0.005, -0.1]),
            joint=Prismatic([0, 1, 0], lower=0.0, upper=0.04, effort=40.0, name="finger"),
            shapes=[finger],
        )
        edit.add_frame(
            "right_finger",
            "hand",
            pose=Pose([0.0, -0.005, -0.1]),
            joint=Prismatic(
                [0, -1, 0], lower=0.0, upper=0.04, effort=40.0, name="other", mimic=Mimic("finger")
            ),
            shapes=[finger],
        )
        for frame, mass in (("beam", 4.0), ("carriage", 2.0), ("column", 2.0), ("hand", 1.0)):
            edit.set_inertia(frame, Inertia(mass, matrix=0.01 * mass * np.eye(3)))
        for frame in ("left_finger", "right_finger"):
            edit.set_inertia(frame, Inertia(0.1, matrix=1e-4 * np.eye(3)))
    return edit.finish()


def with_block(
    scene: SceneGraph,
    name: str,
    position: Sequence[float],
    *,
    turn: float = 0.0,
    color: tuple[float, float, float, float] = RED,
    shape: Shape | None = None,
    parent: str = "table",
) -> SceneGraph:
    """Return the scene with a movable block whose centre is at ``position`` in the world."""
    world_from_block = Pose.from_rpy(position, [0.0, 0.0, turn])
    return scene.add_frame(
        name,
        parent,
        pose=scene.pose(parent, relative_to="world").inverse() @ world_from_block,
        joint=Free(),
        classes=["movable"],
        shapes=[AttachedShape(shape or Box([BLOCK] * 3), color=color)],
    )


class PlanWriter:
    """Writes a plan for the gantry down, action by action."""

    def __init__(self, scene: SceneGraph, *, robot: Manipulator = GANTRY) -> None:
        self.robot = robot
        self.first = self.scene = scene
        self.start = self.q = robot.ready_configuration(scene)
        self.steps: list[PlanStep] = []

    def plan(self) -> Plan:
        """Return the written text."""
        return Plan(
            self.first,
            self.start,
            (self.robot,),
            "blocks",
            "",
            "0" * 64,
            "",
            "(and)",
            0,
            tuple(self.steps),
        )

    def move(
        self, name: str, position: Sequence[float], *, turn: float = 0.0, parent: str = "table"
    ) -> None:
        """Grasp a block from above and put its centre at ``position`` (world) on ``parent``."""
        here = self.scene.pose(name, relative_to="world", q=self.q)
        down, up = self._over(here), self._over(here, LIFT)
        target = Pose.from_rpy(position, [0.0, 0.0, turn])
        lowered, over = self._over(target), self._over(target, LIFT)
        opened, closed = dict(self.robot.gripper_open), self.robot.finger_values(BLOCK)
        segments = [
            self._segment("transit", [self._arm(), up], opened),
            self._segment("approach", [up, down], opened),
        ]
        held = self.scene.reparent(name, "hand", q=self._with(down, closed))
        grasp = Attachment(name, "hand", held.pose(name, relative_to="hand"))
        segments.append(self._segment("grasp", [down], closed, name, grasp))
        segments.append(self._segment("lift", [down, up], closed, name))
        segments.append(self._segment("transfer", [up, over], closed, name))
        segments.append(self._segment("lower", [over, lowered], closed, name))
        onto = self.scene.pose(parent, relative_to="world", q=self.q).inverse() @ target
        self.scene = held.reparent(name, parent, pose=onto)
        segments.append(
            self._segment("release", [lowered], opened, name, Attachment(name, parent, onto))
        )
        segments.append(self._segment("retreat", [lowered, over], opened))
        self.q = self._with(over, opened)
        self.steps.append(
            PlanStep(GroundAction("move", (name, parent)), tuple(segments), self.scene, self.q)
        )

    def _arm(self) -> NDArray[np.float64]:
        return self.q[self.robot.joint_indices(self.scene)]

    def _over(self, pose: Pose, lift: float = 0.0) -> NDArray[np.float64]:
        x, y, z = pose.translation
        turn = math.atan2(pose.rotation[1, 0], pose.rotation[0, 0])
        return np.array([x, y, HEIGHT - REACH - z - lift, turn])

    def _with(self, arm: NDArray[np.float64], fingers: dict[str, float]) -> NDArray[np.float64]:
        return self.scene.configuration(
            {**dict(zip(JOINTS, arm.tolist(), strict=True)), **fingers}, base=self.q
        )

    def _segment(
        self,
        kind: str,
        path: Sequence[NDArray[np.float64]],
        gripper: dict[str, float],
        held: str | None = None,
        reparenting: Attachment | None = None,
    ) -> Segment:
        return Segment(
            SegmentKind(kind),
            self.robot.name,
            JOINTS,
            np.array(path),
            gripper,
            held,
            (),
            reparenting,
        )


def two_blocks() -> SceneGraph:
    """Return the gantry with a red block and a green one, side by side."""
    scene = with_block(gantry_scene(), "red", [0.1, 0.1, BLOCK / 2], turn=0.3)
    return with_block(scene, "green", [-0.1, 0.15, BLOCK / 2], color=GREEN)


def stacking_plan() -> Plan:
    """Return the plan that puts red on green."""
    writer = PlanWriter(two_blocks())
    writer.move("red", [-0.1, 0.15, 1.5 * BLOCK], parent="green")
    return writer.plan()
