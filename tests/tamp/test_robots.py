"""Equal goals on different arms: only the scene and the robot differ."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from support.robots import require_robot

import tmkit as tk

GOAL = "(and (on a b) (on b c))"
PYBULLET_ROBOTS = ("iiwa", "xarm")
OTHER_ROBOTS = ("ur5", "baxter")


@pytest.mark.parametrize("robot", [*PYBULLET_ROBOTS, *OTHER_ROBOTS])
def test_the_demo_goal_is_planned_and_checked(robot: str) -> None:
    """Every arm stacks three blocks, and the plan is valid at a fine resolution."""
    require_robot(robot)
    scene = tk.load_scene(f"{robot}_table", "blocks3")
    plan = tk.plan(scene, domain="blocks", goal=GOAL, robot=robot, seed=3).plan
    assert plan is not None
    assert tk.validate_plan(plan).problems == ()


@pytest.mark.parametrize("robot", PYBULLET_ROBOTS)
def test_the_demo_goal_is_simulated(robot: str) -> None:
    """A suction cup and a hand with a linkage place blocks within 5 mm and 2 degrees."""
    scene = tk.load_scene(f"{robot}_table", "blocks3")
    plan = tk.plan(scene, domain="blocks", goal=GOAL, robot=robot, seed=4).plan
    assert plan is not None
    report = tk.simulate(plan)
    assert report.notes == ()
    assert report.worst_position < 0.005
    assert report.worst_rotation < math.radians(2.0)


@pytest.mark.parametrize("engine", ["pybullet", "mujoco"])
def test_a_jaw_stacks_cubes(engine: str) -> None:
    """An SO-101 stacks three cubes, which both simulators hold by friction, within 5 mm."""
    scene = tk.load_scene("so101_table")
    plan = tk.plan(scene, domain="blocks", goal="(and (on a b) (on c a))", robot="so101").plan
    assert plan is not None
    assert tk.validate_plan(plan).problems == ()
    report = tk.simulate(plan, options=tk.SimulationOptions(engine=engine))
    assert report.is_successful, report.notes
    assert report.worst_position < 0.005
    assert report.worst_rotation < math.radians(2.0)


def test_the_vacuum_loses_a_heavy_block() -> None:
    """A cup with a force of 30 N loses a block of 5 kg, and the notes have the cause."""
    scene = tk.load_scene("iiwa_table", "blocks1")
    plan = tk.plan(
        scene, domain="blocks", goal="(ontable a table__0__0)", robot="iiwa", seed=0
    ).plan
    assert plan is not None
    heavy = plan.scene.set_inertia("a", tk.Inertia(5.0, matrix=5.0 * 0.05**2 / 6.0 * np.eye(3)))
    report = tk.simulate(replace(plan, scene=heavy))
    assert not report.is_successful
    assert any("the cup lost 'a': it " in str(note) for note in report.notes)


def test_the_vacuum_does_not_hold_a_displaced_block() -> None:
    """At a block 3 cm off its planned pose, the rim of the cup is beyond the edge."""
    scene = tk.load_scene("iiwa_table", "blocks1")
    plan = tk.plan(
        scene, domain="blocks", goal="(ontable a table__0__0)", robot="iiwa", seed=0
    ).plan
    assert plan is not None
    moved = plan.scene.set_pose("a", tk.Pose([0.03, 0.0, 0.0]) @ plan.scene.local_pose("a"))
    report = tk.simulate(replace(plan, scene=moved))
    assert not report.is_successful
    assert any("the cup does not seal on 'a'" in str(note) for note in report.notes)
