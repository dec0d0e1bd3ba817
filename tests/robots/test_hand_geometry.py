"""Jaws, hands of levers and given tools: widths, depths and grasps against known geometry."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tmkit.errors import RobotError
from tmkit.formats.srdf.values import Chain, EndEffector, GroupState, RobotSemantics, SrdfGroup
from tmkit.graph import AttachedShape, Box, Mesh, Mimic, Prismatic, Revolute, SceneGraph, Shape
from tmkit.manipulation import grasps_of
from tmkit.motion import CollisionRules
from tmkit.robots import infer_arm, load_manipulator, manipulator_from_srdf
from tmkit.robots.hands import fingers_of, pair_distance
from tmkit.robots.robot_files import write_manipulator
from tmkit.simulation import simulate
from tmkit.spatial import Pose
from tmkit.tamp import validate_plan
from tmkit.tamp.trial_pick import TrialPickStatus, trial_pick

LENGTH = 0.08
"""Length of the fingers [m]."""

BOX_FACES = [
    *((0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)),
    *((2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)),
]
"""Triangles of a box whose corners are in the order of x, y and z."""

PALM = 0.02
"""Half of the height of the palm [m]."""


def arm() -> SceneGraph:
    """Return an arm of six joints that ends at ``wrist`` with a palm of 10 cm, z outwards."""
    scene = SceneGraph().add_frame("base", "world")
    above, height = "base", 0.2
    for number, axis in enumerate("zyyzyz"):
        joint = Revolute(
            {"y": (0, 1, 0), "z": (0, 0, 1)}[axis],
            lower=-2.8,
            upper=2.8,
            velocity=1,
            name=f"j{number}",
        )
        name = f"link{number}" if number < 5 else "wrist"
        scene = scene.add_frame(name, above, pose=Pose((0, 0, height)), joint=joint)
        above, height = name, (0.4, 0.4, 0.1, 0.1, 0.08, 0.0)[number]
    return scene.set_shapes("wrist", [AttachedShape(Box((0.04, 0.1, 2 * PALM)))])


def finger(offset: float = 0.0) -> AttachedShape:
    """Return a finger of 1 cm that ends at 8 cm, with its inner side at an offset along y."""
    return AttachedShape(Box((0.02, 0.01, LENGTH)), Pose((0, offset, LENGTH / 2)))


def box_mesh(x: float, y: float, z: float) -> Shape:
    """Return a box of side lengths as a mesh, which collides as its triangles if exact."""
    corners = np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * (x, y, z)
    return Mesh(corners, BOX_FACES)


def sliding_jaw(stroke: float) -> SceneGraph:
    """Return an arm with a fixed finger below y = 0, and one that slides away along y."""
    joint = Prismatic((0, 1, 0), lower=0.0, upper=stroke, velocity=1, name="jaw")
    scene = arm().add_frame("fixed", "wrist", pose=Pose((0, 0, PALM)), shapes=[finger(-0.005)])
    return scene.add_frame(
        "moving", "wrist", pose=Pose((0, 0, PALM)), joint=joint, shapes=[finger(0.005)]
    )


def turning_jaw(angle: float = 0.4) -> SceneGraph:
    """Return an arm with a fixed finger, and one that turns about x away from it.

    The closed fingers touch at their tips. At ``angle`` their inner sides are parallel.
    """
    joint = Revolute((-1, 0, 0), lower=0.0, upper=1.4, velocity=1, name="jaw")
    scene = arm().add_frame("fixed", "wrist", pose=Pose((0, 0, PALM)), shapes=[finger(-0.005)])
    hinge = Pose((0, LENGTH * math.sin(angle), PALM))
    tilted = Pose.from_rpy((0, 0, 0), (angle, 0, 0)) @ finger(0.005).pose
    shape = AttachedShape(finger().shape, tilted)
    scene = scene.add_frame("moving", "wrist", pose=hinge, joint=joint, shapes=[shape])
    return scene.allow_collision("wrist", "moving", reason="adjacent")


def levers(length: float) -> SceneGraph:
    """Return an arm whose pads move on parallel levers of a length, from 60 degrees to closed.

    The pads keep their direction, since a second joint turns each back.
    """
    scene = arm()
    for sign, side in ((1, "left"), (-1, "right")):
        knuckle = Revolute((-sign, 0, 0), lower=0.0, upper=math.pi / 3, velocity=1, name=side)
        back = Revolute((sign, 0, 0), name=f"{side}_pad", mimic=Mimic("left"))
        scene = scene.add_frame(
            f"{side}_knuckle",
            "wrist",
            pose=Pose((0, 0.01 * sign, PALM)),
            joint=knuckle,
            shapes=[AttachedShape(Box((0.01, 0.004, length)), Pose((0, 0, length / 2)))],
        )
        if sign < 0:
            scene = scene.set_joint(
                "right_knuckle",
                Revolute(
                    (1, 0, 0),
                    lower=0.0,
                    upper=math.pi / 3,
                    velocity=1,
                    name=side,
                    mimic=Mimic("left"),
                ),
            )
        pad = AttachedShape(Box((0.02, 0.01, 0.04)), Pose((0, -0.005 * sign, 0.02)))
        scene = scene.add_frame(
            f"{side}_finger", f"{side}_knuckle", pose=Pose((0, 0, length)), joint=back, shapes=[pad]
        )
        scene = scene.allow_collision("wrist", f"{side}_knuckle", reason="adjacent")
        scene = scene.allow_collision(f"{side}_knuckle", f"{side}_finger", reason="adjacent")
    return scene


@settings(max_examples=10)
@given(stroke=st.floats(0.03, 0.09))
def test_sliding_jaw(stroke: float) -> None:
    """Its width is linear, and its tool is on the fixed finger with y towards the moving one."""
    found = infer_arm(sliding_jaw(stroke))
    robot = found.robot
    assert (found.missing, robot.gripper_kind, robot.widths) == ("", "jaw", ())
    assert (robot.width_open, robot.width_closed) == pytest.approx((stroke, 0.0), abs=2e-4)
    tool = found.scene.pose(robot.tool, relative_to="wrist", q=found.scene.configuration({}))
    assert tool.translation == pytest.approx([0.0, 0.0, PALM + LENGTH - 0.01], abs=2e-4)
    np.testing.assert_allclose(tool.rotation[:, 1], [0, 1, 0], atol=1e-9)
    assert robot.finger_offset(0.04) == pytest.approx(0.02)
    assert robot.finger_lever("jaw") == pytest.approx(1.0, rel=0.01)


@settings(max_examples=10)
@given(angle=st.floats(0.25, 0.45), fraction=st.floats(0.0, 1.0))
def test_turning_jaw(angle: float, fraction: float) -> None:
    """The distance to the turned inner side at the end of the plate that it touches."""
    found = infer_arm(turning_jaw(angle))
    robot = found.robot
    assert (robot.gripper_kind, robot.gripper_joints) == ("jaw", ("jaw",))
    width = robot.width_closed + fraction * (robot.width_open - robot.width_closed)
    value = robot.finger_values(width)["jaw"]
    height = found.scene.local_pose(robot.tool).translation[2] - PALM
    ends = np.array([height - 0.005, height + 0.005])
    distance = max(0.0, LENGTH * math.sin(angle) + np.min(ends * math.tan(value - angle)))
    assert width == pytest.approx(distance, abs=5e-4)
    assert robot.finger_width({"jaw": value}) == pytest.approx(width, abs=1e-9)
    assert abs(robot.gripper_open["jaw"] - robot.gripper_closed["jaw"]) <= math.radians(61.0)


@settings(max_examples=10)
@given(length=st.floats(0.03, 0.05), fraction=st.floats(0.0, 1.0))
def test_levers(length: float, fraction: float) -> None:
    """The distance is that of the levers' ends, within 0.5 mm, where a line would be 2 mm off."""
    robot = infer_arm(levers(length)).robot
    assert robot.gripper_kind == "parallel"
    width = robot.width_closed + fraction * (robot.width_open - robot.width_closed)
    angle = robot.finger_values(width)["left"]
    assert width == pytest.approx(2 * length * math.sin(angle), abs=5e-4)
    assert len(robot.widths) == 17
    line = np.linspace(robot.width_closed, robot.width_open, 17)
    assert np.max(np.abs(np.subtract(robot.widths, line))) > 1e-3


def test_levers_of_an_srdf_file() -> None:
    """The widths of a hand of levers are measured at the tool of the file."""
    scene = levers(0.05).add_frame("tcp", "wrist", pose=Pose((0, 0, 0.1)))
    states = (
        GroupState("open", "hand", (("left", (math.pi / 3,)),)),
        GroupState("closed", "hand", (("left", (0.0,)),)),
    )
    semantics = RobotSemantics(
        "levers",
        groups=(
            SrdfGroup("arm", chains=(Chain("base", "wrist"),)),
            SrdfGroup("hand", joints=("left",)),
        ),
        states=states,
        end_effectors=(EndEffector("gripper", "wrist", "hand", "arm"),),
    )
    robot = manipulator_from_srdf(semantics, scene)
    angle = robot.finger_values(0.04)["left"]
    assert 2 * 0.05 * math.sin(angle) == pytest.approx(0.04, abs=5e-4)


@settings(max_examples=10)
@given(overlap=st.floats(0.0, 0.004))
def test_closed_fingers_that_overlap(overlap: float) -> None:
    """The width is 0 where the shapes of closed fingers overlap, as those of the Fetch do."""
    scene = arm()
    for sign, side in ((1, "left"), (-1, "right")):
        slide = Prismatic((0, sign, 0), lower=0.0, upper=0.04, velocity=1, name=side)
        pose = Pose((0, (0.007 - overlap / 2) * sign, PALM))
        mesh = AttachedShape(box_mesh(0.02, 0.014, LENGTH), Pose((0, 0, LENGTH / 2)))
        scene = scene.add_frame(f"{side}_finger", "wrist", pose=pose, joint=slide, shapes=[mesh])
    robot = infer_arm(scene).robot
    assert robot.width_closed == 0.0
    assert robot.width_open == pytest.approx(0.08 - overlap, abs=1e-4)
    assert robot.finger_width(robot.finger_values(0.04)) == pytest.approx(0.04, abs=1e-6)
    value = robot.finger_values(0.04)["left"]
    assert 2 * value - overlap == pytest.approx(0.04, abs=5e-4)


@settings(max_examples=10)
@given(length=st.floats(0.03, 0.05), fraction=st.floats(0.1, 1.0))
def test_depth_between_levers(length: float, fraction: float) -> None:
    """An object of the width and the depth has room in the hand, and no room 1 cm deeper."""
    found = infer_arm(levers(length))
    robot = found.robot
    width = fraction * robot.width_open
    depth = robot.depth(width)
    assert depth > 0.02
    is_free = []
    for extra in (-0.002, 0.012):
        height = depth + extra
        box = AttachedShape(Box((0.008, width - 0.004, height)), Pose((0, 0, -height / 2)))
        scene = found.scene.add_frame("object", robot.tool, shapes=[box], classes=["movable"])
        q = scene.configuration(robot.finger_values(width))
        links = (frame for frame in scene.subtree("wrist") if frame != "object")
        gaps = [pair_distance(scene, q, frame_a=link, frame_b="object") for link in links]
        is_free.append(min(gaps) > 0.0)
    assert is_free == [True, False] or depth == pytest.approx(0.098)


@pytest.mark.parametrize("hand", ["sliding", "turning"])
@pytest.mark.parametrize("size", [0.02, 0.03])
def test_grasps_of_a_jaw_touch_with_both_fingers(hand: str, size: float) -> None:
    """The object is beside the tool, and both fingers touch it within the tolerance."""
    found = infer_arm(sliding_jaw(0.06) if hand == "sliding" else turning_jaw())
    robot = found.robot
    scene = found.scene.add_frame("cube", "world", shapes=[Box((size,) * 3)], classes=["movable"])
    grasps = grasps_of(scene, "cube", robot=robot)
    assert len(grasps) >= 8
    for grasp in grasps[::5]:
        hand_scene = scene.reparent("cube", robot.tool, pose=grasp.object_from_tool.inverse())
        q = hand_scene.configuration(robot.finger_values(grasp.width))
        for links in fingers_of(hand_scene, robot.contact_links):
            gaps = [pair_distance(hand_scene, q, frame_a=link, frame_b="cube") for link in links]
            assert -1e-4 < min(gaps) <= robot.contact_tolerance
        y = grasp.object_from_tool.inverse().translation[1]
        assert y == pytest.approx(size / 2.0 + 0.0015, abs=1e-6)


@pytest.mark.parametrize("hand", ["sliding", "turning", "levers"])
def test_trial_pick(hand: str) -> None:
    """A cube is picked, the plan is valid, and the simulator holds the cube by friction."""
    make = {
        "sliding": lambda: sliding_jaw(0.07),
        "turning": lambda: turning_jaw(),
        "levers": lambda: levers(0.05),
    }
    found = infer_arm(make[hand]())
    trial = trial_pick(found.scene, found.robot)
    assert (trial.status, trial.reason) == (TrialPickStatus.PICKED, "")
    plan = trial.result.plan
    assert validate_plan(plan).is_valid
    assert simulate(plan).is_successful


def test_description_file(tmp_path: Path) -> None:
    """Kind, widths and depths survive a file."""
    robot = infer_arm(levers(0.05)).robot
    write_manipulator(robot, tmp_path / "arm.toml")
    assert load_manipulator(tmp_path / "arm.toml") == robot
    assert robot.with_prefix("left_").widths == robot.widths


@pytest.mark.parametrize(
    ("pose", "message"),
    [
        (
            Pose.from_rpy((0, 0, 0.09), (0, 0, math.pi / 2)),
            "y axis of the tool 'frame' must be the direction in which the fingers close, and is 90"
            " degrees away",
        ),
        (
            Pose.from_rpy((0, 0, 0.09), (0, math.pi / 2, 0)),
            "z axis of the tool 'frame' must point from the palm to the fingertips, and is 90",
        ),
        (Pose((0, 0.01, 0.09)), "is 10.0 mm beside the surface of the fixed finger"),
    ],
)
def test_given_tool_that_cannot_grasp(pose: Pose, message: str) -> None:
    """A tool across the fingers is refused with the difference, and what to do."""
    scene = sliding_jaw(0.06).add_frame("frame", "wrist", pose=pose)
    with pytest.raises(RobotError, match=f"{message}.*leave --tool out"):
        infer_arm(scene, tool="frame")


def test_given_tool_behind_the_fingertips() -> None:
    """Its place is told, and the depth is measured from there."""
    scene = sliding_jaw(0.06).add_frame("frame", "wrist", pose=Pose((0, 0, 0.06)))
    found = infer_arm(scene, tool="frame")
    assert (
        "tool: 'frame', as given: 30 mm behind the point between the fingertips"
        in found.inferred[2]
    )
    free = infer_arm(sliding_jaw(0.06)).robot
    assert found.robot.finger_depth == pytest.approx(free.finger_depth - 0.03, abs=1e-3)


@pytest.mark.parametrize("yaw", [0.0, math.pi])
def test_given_tool_of_levers(yaw: float) -> None:
    """Widths are equal for both closing directions, and the depth is measured from the tool."""
    pose = Pose.from_rpy((0, 0, 0.085), (0, 0, yaw))
    scene = levers(0.05).add_frame("frame", "wrist", pose=pose)
    robot, free = infer_arm(scene, tool="frame").robot, infer_arm(levers(0.05)).robot
    assert robot.tool == "frame"
    assert robot.width_open == pytest.approx(free.width_open, abs=5e-4)
    behind = free.depth(0.02) - robot.depth(0.02)
    assert behind == pytest.approx(0.015, abs=2e-3)


@settings(max_examples=20)
@given(gap=st.floats(1e-4, 9e-4))
def test_links_of_one_hand_keep_no_margin(gap: float) -> None:
    """A link that passes another of its hand within the planning margin forbids nothing."""
    scene = sliding_jaw(0.06)
    guard = AttachedShape(Box((0.02, 0.01, 0.02)), Pose((0, 0.01 + 0.005 + gap, 0.02)))
    scene = scene.add_frame("guard", "wrist", pose=Pose((0, 0, PALM)), shapes=[guard])
    robot = infer_arm(sliding_jaw(0.06)).robot
    named = scene.add_frame(robot.tool, "wrist", pose=Pose((0, 0, 0.09)))
    rules = CollisionRules(robot)
    world = rules.world(named, (), margin=0.001)
    q = named.configuration({**robot.ready, "jaw": 0.0})
    assert not world.contacts(q)
    assert rules.world(named, (), margin=0.001).contacts(named.configuration({"jaw": 0.005}))


def test_wrong_tables() -> None:
    """Errors state the numbers."""
    robot = infer_arm(levers(0.05)).robot
    values = robot.to_dict()
    for change, message in (
        ({"widths": [0.0, 0.05, 0.02]}, "widths must be at least two numbers that do not fall"),
        ({"widths": [0.0, 0.5]}, "widths go from 0 to 0.5 m, but width_closed is .* width_open"),
        ({"finger_depths": [0.01]}, "finger_depths must have 17 numbers, one for each width"),
        ({"finger_depths": [-0.01] * 17}, "finger_depths must not be negative, as -0.01 is"),
        ({"widths": "wide"}, "widths must be a list of finite numbers, not 'wide'"),
    ):
        with pytest.raises(RobotError, match=message):
            type(robot).from_dict({**values, **change})
