"""Tables of a hand without its arm, against collision checks of the whole scene with the hand at each grasp."""

from __future__ import annotations

import numpy as np
import pytest
from support.tamp_problems import TampProblem, blocked, clutter, regrasp

from tmkit.formats import load_scene
from tmkit.graph import AttachedShape, Box
from tmkit.manipulation.grasps.floating import (
    FLOATING_JOINTS,
    FloatingBody,
    bodies_at_rest,
    hand_alone,
)
from tmkit.manipulation.grasps.hand import yaw_pitch_roll
from tmkit.manipulation.samplers import Samplers, SeededSamplers
from tmkit.motion import CollisionWorld
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp.search.hand_tables import HandTables

PANDA = load_manipulator("panda")


def tables(problem: TampProblem) -> HandTables:
    """Return the tables of a problem's scene."""
    scene = problem.scene
    q = scene.configuration(dict(PANDA.ready))
    return HandTables(scene, q, manipulator=PANDA, sampling=SeededSamplers(Samplers(), PANDA, 0))


def poses(problem: TampProblem, names: tuple[str, ...]) -> dict[str, Pose]:
    """Return root_from_object of objects."""
    return {name: problem.scene.pose(name, relative_to="world") for name in names}


@pytest.mark.parametrize("make", [blocked, lambda: clutter(3, gap=0.02), regrasp])
def test_options_are_free_just_when_the_hand_collides_with_nothing(make: object) -> None:
    """Options are free just when the hand collides with nothing."""
    problem: TampProblem = make()  # type: ignore[operator]
    found = tables(problem)
    name = found.objects[0] if "box" in found.objects else "target"
    at = poses(problem, found.objects)
    rest, blockers = found.at_rest(name, at[name]), found.blockers(name, at[name], at)
    scene = problem.scene
    hand, bodies = hand_alone(scene, PANDA), bodies_at_rest(scene, PANDA)
    assert hand is not None
    assert bodies is not None
    # an oracle of one world with everything in it but the object itself
    for other in found.objects:
        if other != name:
            bodies = bodies.set_shapes(other, scene.shapes(other))
    floating = FloatingBody(bodies, hand, root="world")
    tip_from_tool = hand.pose(PANDA.tool, relative_to=PANDA.tip, q=hand.zero_configuration())
    rng = np.random.default_rng(0)
    options = found.options(name)
    for index in rng.choice(len(options), 40, replace=False).tolist():
        option = options[index]
        opened = (
            PANDA.gripper_open if option.opening is None else PANDA.finger_values(option.opening)
        )
        collides = False
        for back, fingers in (
            (0.0, opened),
            (0.0, PANDA.finger_values(option.grasp.width)),
            (0.006, opened),
            (0.012, opened),
        ):
            tip = (
                at[name]
                @ option.grasp.object_from_tool
                @ Pose([0.0, 0.0, -back])
                @ tip_from_tool.inverse()
            )
            values = [*tip.translation, *yaw_pitch_roll(tip.rotation)]
            q = floating.scene.configuration(
                {**dict(zip(FLOATING_JOINTS, values, strict=True)), **dict(fingers)}
            )
            collides |= bool(floating.world.in_collision_batch(q[None])[0])
        assert (not rest.is_free[index] or bool(blockers[index])) == collides, option.grasp.name


def test_blockers_are_those_whose_removal_frees_the_hand() -> None:
    """Blockers are those whose removal frees the hand."""
    problem = blocked()
    found = tables(problem)
    at = poses(problem, found.objects)
    all_of = found.blockers("target", at["target"], at)
    for bits in set(all_of):
        index = all_of.index(bits)
        left = {name: pose for name, pose in at.items() if name not in found.names(bits)}
        assert found.blockers("target", at["target"], left)[index] == 0


def test_objects_overlap_as_the_collision_checker_says() -> None:
    """Objects overlap as the collision checker says."""
    problem = clutter(3, gap=0.02)
    found = tables(problem)
    at = poses(problem, found.objects)
    rng = np.random.default_rng(1)
    for _ in range(40):
        x, y = rng.uniform(-0.15, 0.15, 2).tolist()
        pose = at["target"] @ Pose([x, y, 0.0])
        moved = problem.scene.set_pose(
            "target", problem.scene.pose("world", relative_to="table") @ pose
        )
        world = CollisionWorld(moved, movable=found.objects, margin=PLANNING_MARGIN)
        q = moved.configuration(dict(PANDA.ready))
        expected = {
            name
            for contact in world.contacts(q)
            for name in (contact.frame_a, contact.frame_b)
            if "target" in (contact.frame_a, contact.frame_b) and name in at and name != "target"
        }
        bits = found.overlapping("target", pose, at, support="table")
        assert set(found.names(bits)) == expected


def test_a_roof_is_seen() -> None:
    """A roof is seen."""
    problem = regrasp()
    found = tables(problem)
    goal = problem.goal[0].pose  # type: ignore[union-attr]
    under, beside = found.at_rest("box", goal), found.at_rest("box", Pose([0.4, 0.3, 0.05]))
    assert under.has_roof[under.is_free].all()
    assert not beside.has_roof[beside.is_free].all()


def test_a_hand_without_shapes_has_no_tables() -> None:
    """Nothing is known of the grasps of such a hand, and the search over transfers is not used for it."""
    scene = regrasp().scene
    for frame in (PANDA.tip, *scene.subtree(PANDA.tip)):
        scene = scene.set_shapes(frame, ())
    q = scene.configuration(dict(PANDA.ready))
    assert not HandTables(
        scene, q, manipulator=PANDA, sampling=SeededSamplers(Samplers(), PANDA, 0)
    ).is_usable


def test_a_suction_hand_has_the_flange() -> None:
    """A taller neighbour blocks the flange behind a suction pad, which is wider than the pad; a lower one does not."""
    robot = load_manipulator("iiwa_flange")
    scene = load_scene("iiwa_kitchen")
    for name, x, tall in (("low", 0.0, 0.06), ("tall", 0.06, 0.09)):
        at = Pose([x, 0.6, 0.025 + tall / 2])
        scene = scene.add_frame(
            name, "floor", pose=at, shapes=[AttachedShape(Box([0.05, 0.05, tall]))]
        )
        scene = scene.set_classes(name, ("movable",))
    found = HandTables(
        scene,
        scene.configuration(robot.ready),
        manipulator=robot,
        sampling=SeededSamplers(Samplers(), robot, 0),
    )
    at = {
        name: scene.pose(name, relative_to="world", q=scene.zero_configuration())
        for name in ("low", "tall")
    }
    from_above = {
        name: [
            bits
            for option, bits in zip(
                found.options(name), found.blockers(name, at[name], at), strict=True
            )
            if option.grasp.object_from_tool.rotate([0.0, 0.0, 1.0])[2] < -0.9
        ]
        for name in at
    }
    assert set(from_above["low"]) == {found.bit("tall")}
    assert set(from_above["tall"]) == {0}
