"""Ready postures: the tool down in front of the robot, free, within limits, never singular."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.panda_srdf import PANDA_SRDF

from tmkit.formats import load_scene
from tmkit.graph import AttachedShape, Box, Prismatic, Revolute, SceneGraph
from tmkit.motion import CollisionWorld
from tmkit.robots import Manipulator, load_manipulator, manipulator_from_srdf
from tmkit.robots.ready_posture import middle_posture, ready_posture
from tmkit.spatial import Pose

ROBOTS = ("panda", "iiwa", "ur5", "xarm", "baxter")


def posture(scene: SceneGraph, arm: Manipulator, seed: int = 0) -> dict[str, float]:
    """Return the ready posture of an arm."""
    return ready_posture(
        scene, joints=arm.joints, tool=arm.tool, other_values=arm.gripper_open, seed=seed
    )


def bare_scene(name: str) -> SceneGraph:
    """Return the scene of a built-in robot without its table."""
    scene = load_scene(f"{name}_table")
    return scene.remove_frame("table")


@pytest.mark.parametrize("name", ROBOTS)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_tool_points_down_in_front_of_the_robot(name: str, seed: int) -> None:
    """The laws of a ready posture hold for every built-in robot and seed."""
    scene, arm = bare_scene(name), load_manipulator(name)
    values = posture(scene, arm, seed)
    q = scene.configuration({**arm.gripper_open, **values})
    tool = scene.pose(arm.tool, q=q)
    assert tool.rotation[:, 2] == pytest.approx([0.0, 0.0, -1.0], abs=1e-4)
    assert tool.translation[0] > 0.2
    moved = {frame for joint in arm.joints for frame in scene.subtree(scene.joint_frame(joint))}
    contacts = CollisionWorld(scene).contacts(q)
    assert not any(moved & {contact.frame_a, contact.frame_b} for contact in contacts)

    # Distances from the limits and from singularities.
    limits = dict(zip(scene.joint_names, np.asarray(scene.joint_limits), strict=True))
    for joint, value in values.items():
        low, high = limits[joint]
        assert min(value - low, high - value) > 0.03 * (high - low)
    columns = [scene.joint_names.index(joint) for joint in arm.joints]
    jacobian = scene.at(q).jacobian(arm.tool)[:, columns]
    assert np.linalg.svd(jacobian)[1][min(6, len(columns)) - 1] > 0.05


def test_the_same_seed_gives_the_same_posture() -> None:
    """Postures are equal bit for bit, and values have six digits."""
    scene, arm = bare_scene("panda"), load_manipulator("panda")
    values = posture(scene, arm)
    assert values == posture(scene, arm)
    assert all(value == round(value, 6) for value in values.values())


def test_the_posture_turns_with_the_robot() -> None:
    """In front of a robot means along the x axis of its first link, wherever it stands."""
    scene, arm = bare_scene("panda"), load_manipulator("panda")
    turned = scene.set_pose("panda_link0", Pose.from_rpy((1.0, 2.0, 0.5), (0.0, 0.0, 2.0)))
    offset = {
        robot.fingerprint: robot.pose(
            arm.tool,
            relative_to="panda_link0",
            q=robot.configuration({**arm.gripper_open, **posture(robot, arm)}),
        ).translation
        for robot in (scene, turned)
    }
    first, second = offset.values()
    assert first == pytest.approx(second, abs=0.1)
    assert first[0] > 5 * abs(first[1])


def test_an_arm_hangs_from_the_ceiling() -> None:
    """The tool of an arm that is mounted upside down points down as well."""
    scene, arm = bare_scene("ur5"), load_manipulator("ur5")
    base = scene.children("world")[0]
    scene = scene.set_pose(base, Pose.from_rpy((0.0, 0.0, 2.0), (np.pi, 0.0, 0.0)))
    q = scene.configuration(posture(scene, arm))
    assert scene.pose(arm.tool, q=q).rotation[2, 2] == pytest.approx(-1.0, abs=1e-6)


def test_an_arm_of_four_joints_points_down() -> None:
    """An arm that turns its tool in one plane alone has a ready posture, in front of it."""
    scene, above = SceneGraph().add_frame("base", "world"), "base"
    for number, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0))):
        joint = Revolute(axis, lower=-2, upper=2, name=f"j{number}")
        scene = scene.add_frame(f"l{number}", above, pose=Pose((0, 0, 0.2)), joint=joint)
        above = f"l{number}"
    scene = scene.add_frame("tool", above, pose=Pose((0, 0, 0.1)))
    joints = ("j0", "j1", "j2", "j3")
    q = scene.configuration(ready_posture(scene, joints=joints, tool="tool", other_values={}))
    tool = scene.pose("tool", q=q)
    assert tool.rotation[2, 2] == pytest.approx(-1.0, abs=1e-6)
    assert tool.translation[0] > 0.15
    assert abs(tool.translation[1]) < 0.1


def test_the_front_is_where_the_middle_of_the_limits_points() -> None:
    """An arm whose middle of the limits looks away from the x axis is ready in that direction."""
    scene, above = SceneGraph().add_frame("base", "world"), "base"
    for number, axis in enumerate(((0, 0, 1), (1, 0, 0), (1, 0, 0), (1, 0, 0))):
        joint = Revolute(axis, lower=-2, upper=2, name=f"j{number}")
        pose = Pose((0, 0.2 if number > 1 else 0.0, 0.1))
        scene = scene.add_frame(f"l{number}", above, pose=pose, joint=joint)
        above = f"l{number}"
    pose = Pose.from_rpy((0, 0.1, 0), (-np.pi / 2, 0, 0))
    scene = scene.add_frame("tool", above, pose=pose)
    joints = ("j0", "j1", "j2", "j3")
    q = scene.configuration(ready_posture(scene, joints=joints, tool="tool", other_values={}))
    assert scene.pose("tool", q=q).translation[1] > 0.15


def slide(axis: tuple[int, int, int], lower: float, upper: float, name: str) -> Prismatic:
    """Return a prismatic joint."""
    return Prismatic(axis, lower=lower, upper=upper, name=name)


def planar_arm() -> SceneGraph:
    """Return two prismatic joints whose tool points along x."""
    scene = SceneGraph().add_frame("rail", "world", joint=slide((1, 0, 0), 0.0, 1.0, "x"))
    scene = scene.add_frame("cart", "rail", joint=slide((0, 1, 0), -1.0, 3.0, "y"))
    return scene.add_frame("tool", "cart", pose=Pose.from_rpy((0, 0, 0), (0.0, np.pi / 2, 0.0)))


def test_a_tool_that_cannot_point_down_is_ready_in_the_middle() -> None:
    """An arm that cannot turn its tool down gets the middle of its limits."""
    scene = planar_arm()
    values = ready_posture(scene, joints=("x", "y"), tool="tool", other_values={})
    assert values == {"x": 0.5, "y": 1.0}
    assert values == middle_posture(scene, joints=("x", "y"), other_values={})


def test_the_middle_avoids_collisions() -> None:
    """A free configuration near the middle is selected where the middle collides."""
    box = [AttachedShape(Box((0.2, 0.2, 0.2)))]
    scene = planar_arm().set_shapes("cart", box)
    scene = scene.add_frame("post", "world", pose=Pose((0.5, 1.0, 0.0)), shapes=box)
    values = middle_posture(scene, joints=("x", "y"), other_values={})
    distance = max(abs(values["x"] - 0.5), abs(values["y"] - 1.0))
    assert 0.2 < distance < 0.35


def test_links_that_always_overlap_are_ignored() -> None:
    """Overlapping bodies that the arm does not move leave its posture as it is."""
    scene, arm = bare_scene("panda"), load_manipulator("panda")
    box = [AttachedShape(Box((0.1, 0.1, 0.1)))]
    crowded = scene.add_frame("a", "world", pose=Pose((-2.0, 0.0, 0.0)), shapes=box)
    crowded = crowded.add_frame(
        "b", "a", joint=Revolute((0, 0, 1), lower=-1.0, upper=1.0, name="b"), shapes=box
    ).forbid_collision("a", "b")
    assert posture(crowded, arm) == posture(scene, arm)


def test_an_srdf_without_a_ready_state(tmp_path: Path) -> None:
    """Without a state of a well-known name, the tool of an arm out of an SRDF file points down."""
    scene, path = bare_scene("panda"), tmp_path / "panda.srdf"
    path.write_text(PANDA_SRDF.replace('name="ready"', 'name="tucked"'))
    arm = manipulator_from_srdf(path, scene, group="arm")
    q = scene.configuration(arm.ready)
    assert scene.pose(arm.tool, q=q).rotation[2, 2] == pytest.approx(-1.0, abs=1e-6)
