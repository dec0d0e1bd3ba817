"""Collision tables of a hand without its arm, compared with collision checks of the scene."""

from __future__ import annotations

import numpy as np
import pytest
from support.tamp_problems import TampProblem, blocked_problem, clutter_problem, regrasp_problem

from tmkit.formats import load_scene
from tmkit.graph import AttachedShape, Box
from tmkit.manipulation.grasps.floating import (
    FLOATING_JOINTS,
    FloatingBody,
    extract_hand,
    static_bodies,
)
from tmkit.manipulation.grasps.hand import yaw_pitch_roll
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.motion import CollisionWorld
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp.search.hand_tables import HandTables

PANDA = load_manipulator("panda")


def make_tables(problem: TampProblem) -> HandTables:
    """Return the tables of a problem's scene."""
    scene = problem.scene
    q = scene.configuration(dict(PANDA.ready))
    return HandTables(scene, q, robot=PANDA, sampling=SeededSamplers(Samplers(), PANDA, 0))


def find_poses(problem: TampProblem, names: tuple[str, ...]) -> dict[str, Pose]:
    """Return root_from_object of objects."""
    return {name: problem.scene.pose(name, relative_to="world") for name in names}


@pytest.mark.parametrize(
    "make", [blocked_problem, lambda: clutter_problem(3, gap=0.02), regrasp_problem]
)
def test_options_are_free_exactly_if_the_hand_is_free_of_collisions(make: object) -> None:
    """Clearance and blockers of 40 random options equal a collision check of the whole scene."""
    problem: TampProblem = make()  # type: ignore[operator]
    tables = make_tables(problem)
    name = tables.objects[0] if "box" in tables.objects else "target"
    poses = find_poses(problem, tables.objects)
    clearance, blockers = (
        tables.static_clearance(name, poses[name]),
        tables.blockers(name, poses[name], poses),
    )
    scene = problem.scene
    hand, bodies = extract_hand(scene, PANDA), static_bodies(scene, PANDA)
    assert hand is not None
    assert bodies is not None
    # The oracle is one world with everything except the object itself.
    for other in tables.objects:
        if other != name:
            bodies = bodies.set_shapes(other, scene.shapes(other))
    floating = FloatingBody(bodies, hand, root="world")
    tip_from_tool = hand.pose(PANDA.tool, relative_to=PANDA.tip, q=hand.zero_configuration())
    rng = np.random.default_rng(0)
    options = tables.options(name)
    for index in rng.choice(len(options), 40, replace=False).tolist():
        option = options[index]
        open_fingers = (
            PANDA.gripper_open if option.opening is None else PANDA.finger_values(option.opening)
        )
        collides = False
        for back, fingers in (
            (0.0, open_fingers),
            (0.0, PANDA.finger_values(option.grasp.width)),
            (0.006, open_fingers),
            (0.012, open_fingers),
        ):
            tip = (
                poses[name]
                @ option.grasp.object_from_tool
                @ Pose([0.0, 0.0, -back])
                @ tip_from_tool.inverse()
            )
            values = [*tip.translation, *yaw_pitch_roll(tip.rotation)]
            q = floating.scene.configuration(
                {**dict(zip(FLOATING_JOINTS, values, strict=True)), **dict(fingers)}
            )
            collides |= bool(floating.world.in_collision_batch(q[None])[0])
        assert (not clearance.is_free[index] or bool(blockers[index])) == collides, (
            option.grasp.name
        )


def test_removing_the_blockers_frees_the_hand() -> None:
    """An option has no blockers in the scene without its blockers."""
    problem = blocked_problem()
    tables = make_tables(problem)
    poses = find_poses(problem, tables.objects)
    all_blockers = tables.blockers("target", poses["target"], poses)
    for bits in set(all_blockers):
        index = all_blockers.index(bits)
        remaining = {name: pose for name, pose in poses.items() if name not in tables.names(bits)}
        assert tables.blockers("target", poses["target"], remaining)[index] == 0


def test_overlaps_equal_those_of_the_collision_checker() -> None:
    """At 40 random poses, the overlapping objects equal the contacts of the collision checker."""
    problem = clutter_problem(3, gap=0.02)
    tables = make_tables(problem)
    poses = find_poses(problem, tables.objects)
    rng = np.random.default_rng(1)
    for _ in range(40):
        x, y = rng.uniform(-0.15, 0.15, 2).tolist()
        pose = poses["target"] @ Pose([x, y, 0.0])
        scene = problem.scene.set_pose(
            "target", problem.scene.pose("world", relative_to="table") @ pose
        )
        world = CollisionWorld(scene, movable=tables.objects, margin=PLANNING_MARGIN)
        q = scene.configuration(dict(PANDA.ready))
        expected = {
            name
            for contact in world.contacts(q)
            for name in (contact.frame_a, contact.frame_b)
            if "target" in (contact.frame_a, contact.frame_b) and name in poses and name != "target"
        }
        bits = tables.overlapping_objects("target", pose, poses, support="table")
        assert set(tables.names(bits)) == expected


def test_a_roof_is_detected() -> None:
    """All free options under the roof have a roof, and those on the table have none."""
    problem = regrasp_problem()
    tables = make_tables(problem)
    goal = problem.goal[0].pose  # type: ignore[union-attr]
    roofed_clearance, table_clearance = (
        tables.static_clearance("box", goal),
        tables.static_clearance("box", Pose([0.4, 0.3, 0.05])),
    )
    assert roofed_clearance.has_roof[roofed_clearance.is_free].all()
    assert not table_clearance.has_roof[table_clearance.is_free].all()


def test_a_hand_without_shapes_has_no_tables() -> None:
    """The tables of a hand without collision shapes are not usable."""
    scene = regrasp_problem().scene
    for frame in (PANDA.tip, *scene.subtree(PANDA.tip)):
        scene = scene.set_shapes(frame, ())
    q = scene.configuration(dict(PANDA.ready))
    assert not HandTables(
        scene, q, robot=PANDA, sampling=SeededSamplers(Samplers(), PANDA, 0)
    ).is_usable


def test_the_flange_of_a_suction_hand_is_checked() -> None:
    """A taller neighbour blocks the flange, which is wider than the suction pad."""
    robot = load_manipulator("iiwa_flange")
    scene = load_scene("iiwa_kitchen")
    for name, x, height in (("low", 0.0, 0.06), ("tall", 0.06, 0.09)):
        pose = Pose([x, 0.6, 0.025 + height / 2])
        scene = scene.add_frame(
            name, "floor", pose=pose, shapes=[AttachedShape(Box([0.05, 0.05, height]))]
        )
        scene = scene.set_classes(name, ("movable",))
    tables = HandTables(
        scene,
        scene.configuration(robot.ready),
        robot=robot,
        sampling=SeededSamplers(Samplers(), robot, 0),
    )
    poses = {
        name: scene.pose(name, relative_to="world", q=scene.zero_configuration())
        for name in ("low", "tall")
    }
    from_above = {
        name: [
            bits
            for option, bits in zip(
                tables.options(name), tables.blockers(name, poses[name], poses), strict=True
            )
            if option.grasp.object_from_tool.rotate([0.0, 0.0, 1.0])[2] < -0.9
        ]
        for name in poses
    }
    assert set(from_above["low"]) == {tables.bit("tall")}
    assert set(from_above["tall"]) == {0}
