"""An arm from its file on a mobile base from its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tmkit as tk
from tmkit.errors import DuplicateNameError, RobotError
from tmkit.robots import mount_on_base

CHASSIS = """\
<robot name="platform">
  <link name="footprint"/>
  <link name="body">
    <inertial><mass value="40"/>
      <inertia ixx="2" ixy="0" ixz="0" iyy="2" iyz="0" izz="2"/></inertial>
    <collision><origin xyz="0 0 0.2"/><geometry><box size="0.6 0.5 0.36"/></geometry></collision>
  </link>
  <joint name="stand" type="fixed"><parent link="footprint"/><child link="body"/></joint>
</robot>
"""
AREA = [[-3.0, -2.0], [3.0, 4.0]]


@pytest.fixture(scope="module")
def chassis(tmp_path_factory: pytest.TempPathFactory) -> tk.SceneGraph:
    """Return a platform of a URDF with two links."""
    file = tmp_path_factory.mktemp("chassis") / "platform.urdf"
    file.write_text(CHASSIS)
    return tk.load_scene(file)


@given(
    x=st.floats(-3.0, 3.0),
    y=st.floats(-2.0, 4.0),
    yaw=st.floats(-9.0, 9.0),
    height=st.floats(0.1, 1.0),
    ahead=st.floats(-0.3, 0.3),
)
def test_the_base_carries_the_arm(
    chassis: tk.SceneGraph, x: float, y: float, yaw: float, height: float, ahead: float
) -> None:
    """At any base pose, the hand is where the arm alone has it, seen from that pose."""
    alone = tk.load_scene("panda_alone")
    chassis_from_arm = tk.Pose([ahead, 0.0, height])
    scene, base = mount_on_base(alone, "panda", chassis, pose=chassis_from_arm, area=AREA)
    values = {"panda_joint2": 0.4, "panda_joint4": -1.1, "panda_joint6": 2.0}
    q = scene.configuration({**values, **dict(zip(base.joints, (x, y, yaw), strict=True))})
    world_from_chassis = tk.Pose.from_rpy([x, y, 0.0], [0.0, 0.0, yaw])
    hand = alone.pose("panda_hand", q=alone.configuration(values))
    arm = alone.pose("panda_link0")
    expected = world_from_chassis @ chassis_from_arm @ arm.inverse() @ hand
    assert scene.pose("panda_hand", q=q).is_close(
        expected, translation_tolerance=1e-9, rotation_tolerance=1e-9
    )


def test_a_plan_drives_from_files(chassis: tk.SceneGraph) -> None:
    """The arm fetches an object from the floor, with the base that the call returns."""
    scene, base = mount_on_base(
        tk.load_scene("panda_alone"), "panda", chassis, pose=tk.Pose([0, 0, 0.38]), area=AREA
    )
    assert base.gripper_kind == "none"
    floor = [tk.AttachedShape(tk.Box([6.0, 6.0, 0.1]))]
    scene = scene.add_frame(
        "floor", "world", pose=tk.Pose([0, 0, -0.05]), classes=["surface"], shapes=floor
    )
    table = [tk.AttachedShape(tk.Box([0.4, 0.4, 0.3]))]
    scene = scene.add_frame(
        "table", "world", pose=tk.Pose([-1.5, 0, 0.15]), classes=["surface"], shapes=table
    )
    cube = [tk.AttachedShape(tk.Box([0.05, 0.05, 0.05]))]
    scene = scene.add_frame(
        "cube", "floor", pose=tk.Pose([1.5, 1.0, 0.075]), classes=["movable"], shapes=cube
    )
    q = tk.load_manipulator("panda").ready_configuration(scene)
    result = tk.plan(
        scene, q, domain="mobile_manipulation", goal="(on cube table)", robot=("panda", base)
    )
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid


def test_frames_of_the_chassis_have_a_prefix_and_are_merged(chassis: tk.SceneGraph) -> None:
    """The tip of the base has the shapes, the area bounds the slides, and the yaw is unlimited."""
    scene, base = mount_on_base(
        tk.load_scene("panda_alone"), "panda", chassis, pose=tk.Pose(), area=AREA, name="cart"
    )
    assert base.joints == ("cart/x", "cart/y", "cart/yaw")
    assert scene.parent("panda_link0") == base.tip
    assert len(scene.shapes(base.tip)) == 1
    indices = base.joint_indices(scene)
    assert np.array_equal(scene.joint_limits[indices[:2]], np.transpose(AREA))
    assert np.all(np.isinf(scene.joint_limits[indices[2]]))


def test_bad_bases_are_named(chassis: tk.SceneGraph, tmp_path: Path) -> None:
    """An empty area, a chassis without shapes and a second base of one name are errors."""
    alone = tk.load_scene("panda_alone")
    with pytest.raises(RobotError, match="area: the lower corner"):
        mount_on_base(alone, "panda", chassis, pose=tk.Pose(), area=[[1, 0], [1, 2]])
    with pytest.raises(RobotError, match="no collision shape that moves with 'world'"):
        mount_on_base(alone, "panda", tk.SceneGraph(), pose=tk.Pose(), area=AREA)
    scene, _ = mount_on_base(alone, "panda", chassis, pose=tk.Pose(), area=AREA)
    with pytest.raises(DuplicateNameError, match="'base/x'"):
        mount_on_base(scene, "panda", chassis, pose=tk.Pose(), area=AREA)
    file = tmp_path / "none.toml"
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        mount_on_base(alone, file, chassis, pose=tk.Pose(), area=AREA)
