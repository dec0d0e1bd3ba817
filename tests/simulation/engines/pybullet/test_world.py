"""A scene and the physical world built from it are the same world."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from support.gantry import BLOCK, GANTRY, gantry_scene, two_blocks, with_block
from support.processes import run_process

from tmkit.errors import ConfigurationError, SimulationError, UnknownNameError
from tmkit.graph import (
    AttachedShape,
    Box,
    Capsule,
    Cone,
    Cylinder,
    Fixed,
    Free,
    Inertia,
    Mesh,
    Mimic,
    Prismatic,
    Revolute,
    SceneGraph,
    Shape,
    Sphere,
)
from tmkit.simulation import PhysicsSettings, Simulation
from tmkit.spatial import Pose

TILT = Pose.from_rpy([0.1, -0.2, 0.3], [0.4, -0.5, 0.6])


def cube_mesh(size: float = BLOCK) -> Shape:
    """Return a cube as a mesh of triangles."""
    corners = np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], dtype=float) - 0.5
    faces = [[0, 2, 1], [1, 2, 3], [4, 5, 6], [5, 7, 6], [0, 1, 4], [1, 5, 4]]
    faces += [[2, 6, 3], [3, 6, 7], [0, 4, 2], [2, 4, 6], [1, 3, 5], [3, 7, 5]]
    return Mesh(size * corners, faces)


def branching_robot() -> SceneGraph:
    """Return a robot with tilted edges, off-centre masses, nested mimics, markers, fixed links."""
    scene = SceneGraph()
    with scene.edit() as edit:
        edit.add_frame("pedestal", "world", pose=TILT, shapes=[AttachedShape(Cylinder(0.1, 0.2))])
        edit.add_frame(
            "upper",
            "pedestal",
            pose=TILT,
            joint=Revolute([0, 0, 1], lower=-2.0, upper=2.0, name="j1"),
        )
        edit.add_frame("marker", "upper", pose=TILT)
        edit.add_frame(
            "lower",
            "marker",
            pose=TILT,
            joint=Revolute([0.6, 0.8, 0.0], lower=-1.0, upper=1.0, name="j2"),
        )
        edit.add_frame(
            "slide",
            "lower",
            pose=TILT,
            joint=Prismatic([0, 1, 0], lower=-0.2, upper=0.2, name="j3"),
        )
        mimic = Mimic("j2", -0.5, 0.1)
        edit.add_frame(
            "twin",
            "upper",
            pose=TILT,
            joint=Revolute([1, 0, 0], lower=-2, upper=2, name="j4", mimic=mimic),
        )
        mimic = Mimic("j4", 2.0, 0.05)
        edit.add_frame(
            "triplet", "twin", joint=Revolute([0, 1, 0], lower=-3, upper=3, name="j5", mimic=mimic)
        )
        edit.add_frame(
            "plate",
            "slide",
            pose=TILT,
            joint=Fixed(),
            shapes=[AttachedShape(Box([0.1, 0.1, 0.1]), TILT)],
        )
        edit.add_frame("label", "plate", pose=TILT, body="plate")
        edit.set_inertia(
            "upper",
            Inertia(2.0, [0.1, 0.2, -0.1], matrix=[[0.1, 0.02, 0], [0.02, 0.2, 0], [0, 0, 0.3]]),
        )
        edit.set_inertia("lower", Inertia(1.0, [0.0, 0.1, 0.1], matrix=0.05 * np.eye(3)))
    return edit.finish()


@pytest.mark.parametrize("scene", [branching_robot(), two_blocks()], ids=["branching", "gantry"])
def test_link_poses_equal_forward_kinematics(scene: SceneGraph) -> None:
    """At random configurations every frame is at its pose by forward kinematics, to 1e-6 m."""
    rng = np.random.default_rng(1)
    with Simulation.from_scene(scene) as simulation:
        for _ in range(10):
            lower, upper = scene.joint_limits.T
            q = rng.uniform(lower, upper)
            simulation.set_configuration(q)
            assert simulation.q == pytest.approx(q, abs=1e-9)
            kinematics = scene.at(q)
            for frame in scene.frame_names:
                assert simulation.pose(frame).is_close(
                    kinematics.pose(frame), translation_tolerance=1e-6, rotation_tolerance=1e-6
                ), frame


def test_pose_of_one_frame_relative_to_another() -> None:
    """A pose is available relative to any frame."""
    scene = two_blocks()
    with Simulation.from_scene(scene) as simulation:
        expected = scene.pose("red", relative_to="tool", q=scene.zero_configuration())
        assert simulation.pose("red", relative_to="tool").is_close(
            expected, translation_tolerance=1e-6, rotation_tolerance=1e-6
        )


@pytest.mark.parametrize(
    ("shape", "height"),
    [
        (Box([0.05, 0.06, 0.08]), 0.04),
        (Sphere(0.03), 0.03),
        (Cylinder(0.03, 0.07), 0.035),
        (Capsule(0.02, 0.0001), 0.02),
        (Cone(0.04, 0.06), 0.03),
        (cube_mesh(0.05), 0.025),
    ],
    ids=lambda value: value.kind if isinstance(value, Shape) else "",
)
def test_falling_object_rests_at_the_known_height(shape: Shape, height: float) -> None:
    """Each kind of shape, dropped from 5 mm, comes to rest with its underside on the table."""
    scene = with_block(gantry_scene(), "thing", [0.2, 0.1, height + 0.005], shape=shape)
    with Simulation.from_scene(scene) as simulation:
        simulation.step(600)
        assert simulation.pose("thing").translation[2] == pytest.approx(height, abs=2e-4)
        assert simulation.time == pytest.approx(600 * simulation.settings.time_step)


@pytest.mark.parametrize("shape", [cube_mesh(0.1), Cylinder(0.08, 0.1), Box([0.1, 0.1, 0.1])])
def test_an_object_rests_on_the_true_surface_of_a_mechanism(shape: Shape) -> None:
    """An object rests on a surface, without pybullet's margin for shapes from URDF files."""
    with SceneGraph().edit() as edit:
        edit.add_frame(
            "turntable", "world", joint=Revolute([0, 0, 1], lower=-1, upper=1, name="turn")
        )
        edit.set_shapes("turntable", [AttachedShape(shape)])
        edit.add_frame("block", "world", pose=Pose([0, 0, 0.051 + BLOCK / 2]), classes=["movable"])
        edit.set_shapes("block", [AttachedShape(Box([BLOCK] * 3))])
    with Simulation.from_scene(edit.finish()) as simulation:
        simulation.step(400)
        assert simulation.pose("block").translation[2] == pytest.approx(0.05 + BLOCK / 2, abs=2e-4)


def test_compound_object_with_offset_mass_rests_on_all_its_parts() -> None:
    """An object of several shapes and frames is one body with the pose of its frame."""
    legs = [AttachedShape(Box([0.02, 0.02, 0.04]), Pose([x, 0.0, 0.02])) for x in (-0.06, 0.06)]
    scene = gantry_scene().add_frame(
        "bridge",
        "table",
        pose=Pose([0.2, 0.0, 0.055]),
        joint=Free(),
        classes=["moveable"],
        shapes=legs,
    )
    top = AttachedShape(cube_mesh(0.04))
    scene = scene.add_frame("top", "bridge", pose=Pose([0.0, 0.0, 0.06]), shapes=[top])
    deck = AttachedShape(Box([0.14, 0.03, 0.01]), Pose([0.0, 0.0, -0.025]))
    scene = scene.add_frame("deck", "top", pose=Pose([0.0, 0.0, 0.0]), shapes=[deck])
    with Simulation.from_scene(scene) as simulation:
        simulation.step(700)
        assert simulation.objects == ("bridge",)
        assert simulation.pose("bridge").is_close(
            Pose([0.2, 0.0, 0.0]), translation_tolerance=3e-4, rotation_tolerance=1e-2
        )
        assert simulation.pose("top").is_close(
            Pose([0.2, 0.0, 0.06]), translation_tolerance=5e-4, rotation_tolerance=1e-2
        )


def test_objects_on_objects_are_bodies_of_their_own() -> None:
    """A tower of blocks that are children of each other is simulated as loose blocks."""
    scene = with_block(gantry_scene(), "b0", [0.2, 0.0, BLOCK / 2])
    for number in range(1, 5):
        height = (number + 0.5) * BLOCK
        scene = with_block(
            scene, f"b{number}", [0.2, 0.0, height], turn=0.1 * number, parent=f"b{number - 1}"
        )
    with Simulation.from_scene(scene) as simulation:
        simulation.step(960)
        assert simulation.objects == ("b0", "b1", "b2", "b3", "b4")
        top = simulation.pose("b4")
        expected = scene.pose("b4", relative_to="world", q=scene.zero_configuration())
        assert top.is_close(expected, translation_tolerance=1e-3, rotation_tolerance=5e-3)
        simulation.set_object_pose("b0", Pose([-0.3, 0.0, BLOCK / 2]))
        simulation.step(960)
        assert simulation.pose("b4").translation[2] == pytest.approx(3.5 * BLOCK, abs=2e-3)


def test_masses_come_from_the_scene_or_from_the_density() -> None:
    """The mass is the scene's, or volume times density; the moments are those of the box."""
    scene = two_blocks().set_inertia(
        "red", Inertia(0.3, [0.0, 0.0, 0.01], matrix=np.diag([1e-4, 2e-4, 3e-4]))
    )
    with Simulation.from_scene(scene, settings=PhysicsSettings(density=400.0)) as simulation:
        masses = {}
        for body in simulation.bodies:
            if body.kind == "object":
                masses[body.base] = simulation.bullet.getDynamicsInfo(
                    body.index, -1, physicsClientId=simulation.client
                )
        assert masses["red"][0] == pytest.approx(0.3)
        assert masses["red"][2] == pytest.approx([1e-4, 2e-4, 3e-4])
        assert masses["red"][3] == pytest.approx([0.0, 0.0, 0.01])
        mass = 400.0 * BLOCK**3
        assert masses["green"][0] == pytest.approx(mass)
        assert masses["green"][2] == pytest.approx([mass * BLOCK**2 / 6.0] * 3)


def test_marker_frames_add_no_weight_to_a_mechanism() -> None:
    """The links of a mechanism have the total mass of the scene."""
    scene = gantry_scene().add_frame("note", "hand", body="hand")
    with Simulation.from_scene(scene) as simulation:
        body = next(body for body in simulation.bodies if body.kind == "mechanism")
        masses = [
            simulation.bullet.getDynamicsInfo(body.index, link, physicsClientId=simulation.client)[
                0
            ]
            for link in body.links.values()
            if link >= 0
        ]
    assert sum(masses) == pytest.approx(9.2, abs=1e-3)


def test_a_box_with_a_lid_falls_as_a_whole() -> None:
    """An object with a joint is free at its base and keeps its joint."""
    wall = AttachedShape(Box([0.08, 0.08, 0.04]))
    scene = gantry_scene().add_frame(
        "box",
        "table",
        pose=Pose([0.2, 0.2, 0.08]),
        joint=Free(),
        classes=["movable"],
        shapes=[wall],
    )
    scene = scene.add_frame(
        "lid",
        "box",
        pose=Pose([-0.04, 0.0, 0.025]),
        joint=Revolute([0, 1, 0], lower=-2.0, upper=0.0, name="hinge"),
        shapes=[AttachedShape(Box([0.08, 0.08, 0.005]), Pose([0.04, 0.0, 0.0]))],
    )
    q = scene.configuration({"hinge": -0.5})
    with Simulation.from_scene(scene, q) as simulation:
        simulation.step(600)
        assert simulation.pose("box").translation[2] == pytest.approx(0.02, abs=1e-3)
        assert simulation.q[scene.joint_names.index("hinge")] == pytest.approx(-0.5, abs=1e-2)


def test_motors_hold_the_robot_against_gravity() -> None:
    """A robot without commands does not move."""
    scene = two_blocks()
    q = GANTRY.ready_configuration(scene)
    with Simulation.from_scene(scene, q, robot=GANTRY) as simulation:
        simulation.step(500)
        assert simulation.q == pytest.approx(q, abs=1e-4)


def test_fingers_are_geared_to_each_other() -> None:
    """A push on one finger moves both or none: the hand keeps its middle."""
    scene = gantry_scene()
    q = GANTRY.ready_configuration(scene)
    with Simulation.from_scene(scene, q, robot=GANTRY) as simulation:
        simulation.command_fingers(q, force=1.0)
        body = next(body for body in simulation.bodies if body.kind == "mechanism")
        for _ in range(300):
            simulation.bullet.applyExternalForce(
                body.index,
                body.links["left_finger"],
                [0, -6.0, 0],
                [0, 0, 0],
                1,
                physicsClientId=simulation.client,
            )
            simulation.step()
        left = simulation.pose("left_finger", relative_to="hand").translation[1]
        right = simulation.pose("right_finger", relative_to="hand").translation[1]
        assert left < 0.04
        assert left == pytest.approx(-right, abs=5e-4)


def test_closing_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the end there is no connection and no folder, whether it ended well or in an error."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    bullet = Simulation.from_scene(gantry_scene())
    open_before = bullet.bullet.isConnected(physicsClientId=bullet.client)
    client, module = bullet.client, bullet.bullet
    bullet.close()
    bullet.close()
    assert open_before == 1
    assert module.isConnected(physicsClientId=client) == 0
    shapeless = gantry_scene().add_frame("ghost", "table", joint=Free(), classes=["movable"])
    with pytest.raises(SimulationError, match="'ghost' has no collision shape"):
        Simulation.from_scene(shapeless)
    assert module.isConnected(physicsClientId=client) == 0
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SimulationError, match="is closed"):
        bullet.step()
    assert repr(bullet).endswith("closed)")


def test_two_simulations_do_not_disturb_each_other() -> None:
    """Two worlds stepped in turns are equal, bit for bit, to each alone."""
    high = with_block(gantry_scene(), "thing", [0.2, 0.1, 0.3], turn=0.4)
    low = with_block(gantry_scene(), "thing", [0.0, 0.1, 0.2], shape=Sphere(0.03))

    def alone(scene: SceneGraph) -> bytes:
        with Simulation.from_scene(scene) as simulation:
            simulation.step(400)
            return simulation.pose("thing").as_array().tobytes()

    expected = alone(high), alone(low)
    with Simulation.from_scene(high) as first, Simulation.from_scene(low) as second:
        for _ in range(400):
            first.step()
            second.step()
        poses = first.pose("thing").as_array().tobytes(), second.pose("thing").as_array().tobytes()
    assert poses == expected


def test_standard_output_stays_clean() -> None:
    """A simulating program prints its own output only, even on standard error."""
    program = (
        "from support.gantry import two_blocks\n"
        "from tmkit.simulation import Simulation\n"
        "print('before')\n"
        "with Simulation.from_scene(two_blocks()) as simulation:\n"
        "    simulation.step(10)\n"
        "print('after')\n"
    )
    tests = str(Path(__file__).resolve().parents[3])
    environment = {**os.environ, "PYTHONPATH": tests}
    result = run_process(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        timeout=600,
    )
    assert (result.stdout, result.stderr) == ("before\nafter\n", "")


def test_attached_object_follows_the_hand_until_it_is_let_go() -> None:
    """An object fixed to a frame keeps its pose there while the arm moves, and falls when freed."""
    scene = with_block(gantry_scene(), "thing", [0.0, -0.3, 0.38])
    q = GANTRY.ready_configuration(scene)
    with Simulation.from_scene(scene, q, robot=GANTRY) as simulation:
        simulation.attach("thing", "hand")
        held = simulation.pose("thing", relative_to="hand")
        assert simulation.attached == ("thing",)
        with pytest.raises(SimulationError, match="attached already"):
            simulation.attach("thing", "hand")
        velocity = np.zeros(len(q))
        velocity[1] = 0.3
        for _ in range(500):
            simulation.command(q, velocity)
            simulation.step()
            q = q + velocity * simulation.settings.time_step
        assert simulation.pose("thing", relative_to="hand").is_close(
            held, translation_tolerance=5e-4, rotation_tolerance=5e-3
        )
        simulation.detach("thing")
        simulation.step(500)
        assert simulation.pose("thing").translation[2] == pytest.approx(BLOCK / 2, abs=1e-3)


def test_touching_names_frames() -> None:
    """Contacts are reported by frame."""
    with Simulation.from_scene(two_blocks()) as simulation:
        simulation.step(50)
        assert simulation.touching("red") == ("table",)
        assert simulation.contacts_of(["green"]) == (("green", "table"),)


def test_overlaps_of_fixed_parts_with_a_robot_are_meant() -> None:
    """A robot whose first link stands inside its pedestal is not thrown out of it."""
    scene = gantry_scene().add_frame(
        "post", "table", pose=Pose([0.0, 0.0, 0.85]), shapes=[AttachedShape(Sphere(0.1))]
    )
    with Simulation.from_scene(scene) as simulation:
        simulation.step(300)
        assert simulation.q == pytest.approx(np.zeros(5), abs=1e-3)


def test_misuse_is_named() -> None:
    """Unknown frames and objects, bad numbers and a missing screen are errors with a suggestion."""
    scene = two_blocks()
    with pytest.raises(ConfigurationError):
        Simulation.from_scene(scene, [0.0])
    with pytest.raises(SimulationError, match="time_step must be positive"):
        PhysicsSettings(time_step=0.0)
    with pytest.raises(SimulationError, match="gravity must be a finite number"):
        PhysicsSettings(gravity=float("nan"))
    with Simulation.from_scene(scene) as simulation:
        with pytest.raises(UnknownNameError, match="unknown frame 'tabel'; did you mean 'table'"):
            simulation.pose("tabel")
        with pytest.raises(UnknownNameError, match="unknown movable object 'table'"):
            simulation.set_object_pose("table", Pose())
        with pytest.raises(SimulationError, match="'world' has no body"):
            simulation.touching("world")


def test_window_without_a_screen_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for a window where there is no screen is an error, not the end of the process."""
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(SimulationError, match="needs a screen"):
        Simulation.from_scene(gantry_scene(), gui=True)


def test_more_shapes_than_the_engine_takes_are_refused() -> None:
    """A frame of 17 colliding shapes is an error; 16 are accepted. pybullet would abort.

    Shapes that are only drawn are joined where they are more.
    """
    for count, collides in ((16, True), (17, False), (17, True)):
        shapes = [
            AttachedShape(Box([0.1] * 3), Pose([k, 0.0, 0.0]), collision=collides)
            for k in range(count)
        ]
        scene = SceneGraph().add_frame("row", "world", shapes=shapes)
        if count == 16 or not collides:
            Simulation.from_scene(scene).close()
        else:
            with pytest.raises(
                SimulationError, match=r"'row' has 17 shapes that are to collide.* takes at most 16"
            ):
                Simulation.from_scene(scene)
