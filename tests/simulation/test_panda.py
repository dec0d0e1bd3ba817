"""The built-in Panda, with simple inertias and finger hulls, executes the plans."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.robots import Manipulator, load_manipulator
from tmkit.simulation import Simulation, simulate


@pytest.fixture(scope="module")
def scene() -> SceneGraph:
    """Return the Panda at its table with three blocks."""
    return tk.load_scene("panda_table", "blocks3")


@pytest.fixture(scope="module")
def robot() -> Manipulator:
    """Return the description of the Panda."""
    return load_manipulator("panda")


def test_panda_stands_where_forward_kinematics_says(scene: SceneGraph) -> None:
    """All links of the Panda are where the scene has them, at random configurations, to 1e-6."""
    rng = np.random.default_rng(2)
    with Simulation.from_scene(scene) as simulation:
        for _ in range(5):
            lower, upper = scene.joint_limits.T
            kinematics = scene.at(rng.uniform(lower, upper))
            simulation.set_configuration(kinematics.q)
            for frame in scene.frame_names:
                if frame not in simulation.objects:
                    expected = kinematics.pose(frame)
                    assert simulation.pose(frame).is_close(
                        expected, translation_tolerance=1e-6, rotation_tolerance=1e-6
                    ), frame


def test_panda_builds_a_tower_with_real_fingers(scene: SceneGraph, robot: Manipulator) -> None:
    """A planned tower of three stands within 3 mm and 1 degree; the arm follows to 1e-4 rad."""
    q = robot.ready_configuration(scene)
    result = tk.plan(
        scene, q, domain="blocks", goal="(and (on a b) (on b c))", robot="panda", seed=0
    )
    assert result.plan is not None
    report = simulate(result.plan)
    assert report.is_successful
    assert report.worst_position < 0.003
    assert report.worst_rotation < math.radians(1.0)
    assert max(report.tracking.values()) < 1e-4
    assert report.notes == ()


@pytest.mark.parametrize(("radius", "length"), [(0.025, 0.05), (0.03, 0.08)])
def test_panda_stacks_cylinders(radius: float, length: float) -> None:
    """Cylinders neither swing nor slip between the fingers, and stand as planned."""
    scene = tk.load_scene("panda_table")
    mass, across = 0.1, (3 * radius**2 + length**2) / 12
    inertia = tk.Inertia(mass, matrix=mass * np.diag([across, across, radius**2 / 2]))
    for name, y in (("a", 0.2), ("b", -0.1)):
        pose = tk.Pose([-0.2, y, 0.025 + length / 2])
        shape = tk.AttachedShape(tk.Cylinder(radius, length))
        scene = scene.add_frame(name, "table", pose=pose, classes=["movable"], shapes=[shape])
        scene = scene.set_inertia(name, inertia)
    result = tk.plan(scene, domain="blocks", goal="(on a b)", robot="panda", seed=0)
    assert result.plan is not None
    report = simulate(result.plan)
    assert report.is_successful
    assert report.worst_position < 0.003
    assert report.worst_rotation < math.radians(1.5)
    assert all(slip.rotation < math.radians(3.0) for slip in report.slips)


def test_a_limit_that_planning_ignores_holds_no_arm_back() -> None:
    """A joint whose gravity torque exceeds its limit at rest has springs, as the PR2's shoulder."""
    scene, arm = tk.load_scene("panda_table", "blocks1"), tk.load_manipulator("panda")
    arm = replace(arm, effort={"panda_joint2": 2.0})
    result = tk.plan(scene, goal="(holding a)", robot=arm, seed=0)
    assert result.plan is not None, result.explanation
    report = tk.simulate(result.plan)
    assert report.is_successful
    assert not report.notes
