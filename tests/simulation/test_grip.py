"""Friction of the fingers: force and moment agree with the planner's model."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import trimesh
from support.classic import checked, plan_problem

import tmkit as tk
from tmkit.graph import AttachedShape, Box, Free, Mesh, SceneGraph
from tmkit.manipulation.grasps.holding import torsion_arm
from tmkit.robots import load_manipulator
from tmkit.simulation import PhysicsSettings, Simulation, simulate
from tmkit.spatial import Pose

PANDA = load_manipulator("panda")
OFF_THE_MIDDLE = 0.045  # offset of the bar from the tool point [m]


def bar_in_the_hand() -> SceneGraph:
    """Return a bar whose end is between the Panda's fingers."""
    scene = tk.load_scene("panda_table")
    q = PANDA.ready_configuration(scene)
    pose = scene.pose(PANDA.tool, relative_to="world", q=q) @ Pose([0.0, 0.0, OFF_THE_MIDDLE])
    shape = AttachedShape(Box([0.04, 0.04, 0.12]), friction=0.8)
    return scene.add_frame(
        "bar", "world", pose=pose, joint=Free(), classes=["movable"], shapes=[shape]
    )


def turn_of_bar(moment: float) -> float:
    """Return the turn of a held bar in 0.5 s of a moment [N m] about the closing axis [rad]."""
    scene = bar_in_the_hand()
    q = PANDA.ready_configuration(scene)
    finger = scene.joint_names.index("panda_finger_joint1")
    with Simulation.from_scene(
        scene, q, robot=PANDA, settings=PhysicsSettings(gravity=0.0)
    ) as simulation:
        (body,) = (body for body in simulation.bodies if body.base == "bar")
        axis = simulation.pose(PANDA.tool).rotate([0.0, 1.0, 0.0])
        wanted = np.array(q)
        for step in range(960):
            wanted[finger] = max(0.0, q[finger] - 0.1 * step / 960)
            simulation.command(q)
            simulation.command_fingers(wanted, force=PANDA.grip_force)
            if step == 480:
                before = simulation.pose("bar")
            if step >= 480:
                simulation.bullet.applyExternalTorque(
                    body.index,
                    -1,
                    list(axis * moment),
                    simulation.bullet.WORLD_FRAME,
                    physicsClientId=simulation.client,
                )
            if step % 40 == 0:
                simulation.renew_contacts("bar", PANDA.contact_links)
            simulation.step()
        return before.distance(simulation.pose("bar"))[1]


def test_every_link_has_the_friction_of_its_kind() -> None:
    """Fingers have finger friction, the arm has its own; only fingers bear a normal moment."""
    scene = tk.load_scene("panda_table", "blocks1")
    settings = PhysicsSettings(robot_friction=0.4, finger_friction=0.9, pad_radius=0.003)
    with Simulation.from_scene(scene, robot=PANDA, settings=settings) as simulation:
        (arm,) = (body for body in simulation.bodies if PANDA.tip in body.links)
        for frame, link in arm.links.items():
            dynamics = simulation.bullet.getDynamicsInfo(
                arm.index, link, physicsClientId=simulation.client
            )
            expected = (0.9, 0.002) if frame in PANDA.contact_links else (0.4, 0.0)
            assert (dynamics[1], dynamics[7]) == pytest.approx(expected), frame


def test_a_hand_bears_the_moment_that_the_model_says() -> None:
    """Pads bear the moment of two patches of their radius: less holds, more turns the object."""
    bound = 2.0 * PANDA.grip_force * 0.8 * torsion_arm(PhysicsSettings().pad_radius)
    assert turn_of_bar(0.85 * bound) < math.radians(1.0)
    assert turn_of_bar(1.3 * bound) > math.radians(10.0)


def test_what_is_in_many_pieces_does_not_creep() -> None:
    """An arc of uneven pieces, as of a mug's handle, stays in the fingers when pulled sideways."""
    scene, rng = tk.load_scene("panda_table"), np.random.default_rng(0)
    q = PANDA.ready_configuration(scene)
    pose = scene.pose(PANDA.tool, relative_to="world", q=q)
    pieces = []
    for begin in np.arange(-32.0, 32.0, 4.0):
        corners = [
            [radius * np.cos(angle) - 0.05, side, radius * np.sin(angle)]
            for angle in np.radians([begin, begin + 4.0])
            for radius in (0.046, 0.054)
            for side in (-0.006, 0.006)
        ]
        hull = trimesh.convex.convex_hull(np.array(corners) + rng.normal(0.0, 1e-4, (8, 3)))
        pieces.append(AttachedShape(Mesh(hull.vertices, hull.faces)))
    scene = scene.add_frame(
        "arc", "world", pose=pose, joint=Free(), classes=["movable"], shapes=pieces
    )
    closed = scene.configuration(PANDA.finger_values(0.0), base=q)
    with Simulation.from_scene(
        scene, q, robot=PANDA, settings=PhysicsSettings(gravity=0.0)
    ) as simulation:
        simulation.command_fingers(closed, force=PANDA.grip_force)
        simulation.step(480)
        before = simulation.pose("arc")
        simulation.bullet.setGravity(9.81, 0.0, 0.0, physicsClientId=simulation.client)
        simulation.step(960)
        metres, radians = before.distance(simulation.pose("arc"))
    assert metres < 2e-4
    assert radians < math.radians(0.2)


def test_what_is_held_by_an_upper_corner_does_not_turn() -> None:
    """Objects in a niche are taken by a tilted grasp, and end at their planned poses."""
    plan = checked(plan_problem("rearrangement", "behind", scene="rearrange_behind", seed=1))
    report = simulate(plan)
    assert report.is_successful
    assert report.notes == ()
    assert report.worst_position < 0.003
    assert max(slip.rotation for slip in report.slips) < math.radians(1.0)


def test_a_cup_gives_way_to_what_is_set_down_too_deep() -> None:
    """A disc held at its ring touches down 0.1 mm early, and is released."""
    hanoi = plan_problem(
        "hanoi", "hanoi3", scene="hanoi3", robot="iiwa", table="iiwa_nozzle", seed=1
    )
    plan = checked(hanoi)
    report = simulate(replace(plan, steps=plan.steps[:10]))
    assert report.is_successful
    assert report.notes == ()
