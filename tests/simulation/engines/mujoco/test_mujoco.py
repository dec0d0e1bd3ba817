"""The second engine gives the same world and the same outcomes as the first."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulation.engines.pybullet.test_world import branching_robot, cube_mesh
from support.gantry import BLOCK, GANTRY, stacking_plan, two_blocks, with_block

import tmkit as tk
from tmkit.errors import SimulationError, UnknownNameError
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightField,
    Plane,
    PointCloud,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.simulation import Simulation, SimulationOptions, render, simulate
from tmkit.simulation.engines.mujoco.world import MujocoSimulation
from tmkit.spatial import Pose


@pytest.mark.parametrize(
    "scene",
    [
        branching_robot(),
        two_blocks(),
        branching_robot().rename_frame("world", "map").rename_frame("pedestal", "world"),
    ],
    ids=["branching", "gantry", "a frame called as MuJoCo's own"],
)
def test_link_poses_equal_forward_kinematics(scene: SceneGraph) -> None:
    """At random configurations every frame is at its pose by forward kinematics, and stays."""
    rng = np.random.default_rng(1)
    with MujocoSimulation.from_scene(scene) as simulation:
        for _ in range(5):
            q = rng.uniform(*scene.joint_limits.T)
            simulation.set_configuration(q)
            for _ in range(2):
                assert simulation.q == pytest.approx(q, abs=1e-4)
                kinematics = scene.at(simulation.q)
                for frame in scene.frame_names:
                    if frame not in simulation.objects:
                        assert kinematics.pose(frame).distance(
                            simulation.pose(frame)
                        ) == pytest.approx((0.0, 0.0), abs=1e-6)
                simulation.step(5)


@pytest.mark.parametrize(
    ("shape", "height"),
    [
        (Box([0.05, 0.06, 0.08]), 0.04),
        (Sphere(0.03), 0.03),
        (Cylinder(0.03, 0.07), 0.035),
        (Capsule(0.02, 0.05), 0.02),
        (Cone(0.04, 0.06), 0.03),
        (cube_mesh(0.05), 0.025),
    ],
    ids=lambda value: value.kind if isinstance(value, Shape) else "",
)
@pytest.mark.parametrize("ground", ["box", "field", "cloud", "plane"])
def test_falling_object_rests_at_the_known_height(shape: Shape, height: float, ground: str) -> None:
    """Each kind of shape comes to rest on each kind of ground, whose top is at 0."""
    points = (
        np.stack(np.meshgrid(np.arange(-10, 11), np.arange(-10, 11), [-1.0]), axis=-1).reshape(
            -1, 3
        )
        * 0.01
    )
    floor = {
        "box": AttachedShape(Box([1.0, 1.0, 0.2]), Pose([0.0, 0.0, -0.1])),
        "field": AttachedShape(HeightField(np.zeros((9, 9)), size=[0.4, 0.4], floor=-0.1)),
        "cloud": AttachedShape(PointCloud(points, radius=0.01)),
        "plane": AttachedShape(Plane()),
    }[ground]
    scene = SceneGraph().add_frame("table", "world", shapes=[floor])
    pose = Pose([0.005, 0.005, height + 0.002])
    if shape.kind == "capsule":
        pose = Pose.from_rpy([0.005, 0.005, height + 0.002], [0.0, math.pi / 2, 0.0])
    scene = with_block(scene, "thing", pose.translation, shape=shape).set_pose("thing", pose)
    with MujocoSimulation.from_scene(scene) as simulation:
        simulation.step(400)
        low = 4e-3 if ground == "cloud" and shape.kind in ("sphere", "capsule") else 2e-4
        assert -low < simulation.pose("thing").translation[2] - height < 3e-4
        assert simulation.time == pytest.approx(400 * simulation.settings.time_step)


def test_real_fingers_stack_a_block_as_in_pybullet() -> None:
    """The report has the same entries, the block ends within 1 mm, and two runs are equal."""
    report = simulate(stacking_plan(), options=SimulationOptions(engine="mujoco"))
    other = simulate(stacking_plan())
    assert report.is_successful
    assert report.worst_position < 0.001
    assert report.notes == ()
    assert report.to_dict().keys() == other.to_dict().keys()
    assert (list(report.errors), list(report.tracking)) == (
        list(other.errors),
        list(other.tracking),
    )
    assert [(slip.step, slip.object, slip.lost) for slip in report.slips] == [(1, "red", None)]
    assert max(report.tracking.values()) < 1e-4
    assert simulate(stacking_plan(), options=SimulationOptions(engine="mujoco")) == report


def test_a_block_without_friction_is_lost() -> None:
    """The friction of a shape is used: an object that slides out of the fingers is lost."""
    plan = stacking_plan()
    slippery = [
        AttachedShape(part.shape, part.pose, friction=0.001) for part in plan.scene.shapes("red")
    ]
    report = simulate(
        plan,
        options=SimulationOptions(world=plan.scene.set_shapes("red", slippery), engine="mujoco"),
    )
    assert report.missed == ("red",)
    assert report.slips[0].lost is not None


def test_contacts_are_told_by_frames() -> None:
    """Contacts are the same as in pybullet."""
    scene = two_blocks()
    pairs = []
    for engine in (Simulation, MujocoSimulation):
        with engine.from_scene(scene, robot=GANTRY) as simulation:
            simulation.step(200)
            pairs.append((simulation.touching("red"), simulation.contacts_of(["red"])))
            assert simulation.distance_to(
                "red", simulation.pose("red").translation, reach=1.0
            ) == pytest.approx(-BLOCK / 2, abs=1e-3)
            above = simulation.pose("red").apply([0.0, 0.0, BLOCK])
            assert simulation.distance_to("red", above, reach=1.0) == pytest.approx(
                BLOCK / 2, abs=1e-3
            )
            assert simulation.distance_to("red", above, reach=0.01) == math.inf
    assert pairs[0] == pairs[1]


def test_what_is_attached_moves_along_and_loads_what_holds_it() -> None:
    """A constraint holds an object; its load is its weight, and when detached it falls."""
    scene = two_blocks()
    with MujocoSimulation.from_scene(scene, robot=GANTRY) as simulation:
        simulation.set_object_pose("red", simulation.pose("red") @ Pose([0.0, 0.0, 0.1]))
        simulation.attach("red", "tool")
        before = simulation.pose("red", relative_to="tool")
        with pytest.raises(SimulationError, match="attached already"):
            simulation.attach("red", "tool")
        simulation.step(200)
        assert simulation.pose("red", relative_to="tool").distance(before)[0] < 1e-4
        weight = 9.81 * 500.0 * BLOCK**3
        load = simulation.load("red", on="tool", at="red")
        assert load == pytest.approx([0.0, 0.0, -weight, 0.0, 0.0, 0.0], abs=1e-2 * weight)
        simulation.detach("red")
        assert simulation.attached == ()
        simulation.step(100)
        assert simulation.speed("red") > 0.1


def test_a_cup_lifts_a_block() -> None:
    """Suction seals, lifts and lets go, without its cup pushing the block."""
    result = tk.plan(
        tk.load_scene("iiwa_table", "blocks2"), domain="blocks", goal="(on a b)", robot="iiwa"
    )
    assert result.plan is not None
    report = simulate(result.plan, options=SimulationOptions(engine="mujoco"))
    assert report.is_successful, report.notes
    assert report.worst_position < 0.001
    assert max(slip.position for slip in report.slips) < 1e-4


def test_pictures_show_either_engine() -> None:
    """The small renderer draws a world of MuJoCo as it stands."""
    pictures = []
    for engine in (Simulation, MujocoSimulation):
        with engine.from_scene(two_blocks()) as simulation:
            pictures.append(render(simulation, renderer="tiny", supersampling=1.0).astype(int))
    assert np.abs(pictures[0] - pictures[1]).mean() < 1.0


def test_errors_name_what_is_wrong() -> None:
    """Unknown engines, windows, shapes and frames are rejected."""
    scene = two_blocks()
    with pytest.raises(
        SimulationError, match=r"unknown physics engine 'bullet'; .*\(known: mujoco, pybullet\)"
    ):
        simulate(stacking_plan(), options=SimulationOptions(engine="bullet"))
    with pytest.raises(SimulationError, match="has no window"):
        MujocoSimulation.from_scene(scene, gui=True)
    with pytest.raises(SimulationError, match="plane"):
        MujocoSimulation.from_scene(with_block(scene, "flat", [0, 0, 1], shape=Plane()))
    with MujocoSimulation.from_scene(scene) as simulation:
        with pytest.raises(UnknownNameError, match="rod"):
            simulation.set_object_pose("rod", Pose())
        with pytest.raises(SimulationError, match="not attached"):
            simulation.load("red", on="tool", at="tool")
    with pytest.raises(SimulationError, match="closed"):
        simulation.step()


@pytest.mark.parametrize(("joint", "by"), [(0, 0.4), (1, 0.3), (3, 0.5), (5, 0.5)])
def test_arm_recovers_from_an_error_beyond_its_efforts(joint: int, by: float) -> None:
    """An arm far from its set point reaches it, although its efforts do not suffice at once."""
    scene, robot = tk.load_scene("panda_table"), tk.load_manipulator("panda")
    goal = np.array(robot.ready_configuration(scene))
    with MujocoSimulation.from_scene(scene, goal, robot=robot) as simulation:
        goal[joint] += by
        simulation.command(goal)
        simulation.step(2400)
        assert simulation.q[:7] == pytest.approx(goal[:7], abs=2e-3)


def test_a_hand_that_presses_leaves_the_arm_alone() -> None:
    """A hand of six joints that its stops keep from closing further: its arm does not move."""
    scene, robot = tk.load_scene("xarm_table"), tk.load_manipulator("xarm")
    ready = np.array(robot.ready_configuration(scene))
    closed = ready.copy()
    closed[scene.joint_names.index("drive_joint")] = 2.0  # its upper limit is 0.85
    with MujocoSimulation.from_scene(scene, ready, robot=robot) as simulation:
        simulation.command(ready)
        simulation.command_fingers(closed, force=robot.grip_force)
        simulation.step(500)
        assert simulation.q[-1] > 0.8
        assert simulation.q[:6] == pytest.approx(ready[:6], abs=1e-3)
