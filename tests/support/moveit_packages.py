"""Small MoveIt configuration packages of an arm of six joints with a gripper, in ROS 1 and 2."""

from __future__ import annotations

from pathlib import Path

NAMESPACE = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
JOINTS = tuple(f"j{number}" for number in range(1, 7))
READY = {"j1": 0.1, "j2": -0.5, "j3": 1.0, "j4": 0.2, "j5": 0.5, "j6": -0.3}


def _box(size: str) -> str:
    return f'<collision><geometry><box size="{size}"/></geometry></collision>'


def arm_urdf(*, attributes: str = "", gripper: bool = True, prefix: str = "") -> str:
    """Return an arm of six joints, with two fingers below ``flange`` or without."""
    text = f'<robot name="six" {attributes}><link name="{prefix}base">{_box("0.1 0.1 0.02")}</link>'
    parent = f"{prefix}base"
    for index, name in enumerate(JOINTS):
        axis = "0 0 1" if index in (0, 3, 5) else "0 1 0"
        text += (
            f'<link name="{prefix}link{index + 1}">{_box("0.03 0.03 0.05")}</link>'
            f'<joint name="{prefix}{name}" type="revolute"><parent link="{parent}"/>'
            f'<child link="{prefix}link{index + 1}"/><origin xyz="0 0 0.15"/><axis xyz="{axis}"/>'
            '<limit lower="-2.5" upper="2.5" effort="10" velocity="2"/></joint>'
        )
        parent = f"{prefix}link{index + 1}"
    text += (
        f'<link name="{prefix}flange"/><joint name="{prefix}flange_joint" type="fixed">'
        f'<parent link="{parent}"/><child link="{prefix}flange"/><origin xyz="0 0 0.03"/></joint>'
    )
    for side, sign in (("left", 1), ("right", -1)) if gripper else ():
        mimic = "" if side == "left" else f'<mimic joint="{prefix}left_finger_joint"/>'
        text += (
            f'<link name="{prefix}{side}_finger">{_box("0.02 0.01 0.05")}</link>'
            f'<joint name="{prefix}{side}_finger_joint" type="prismatic">'
            f'<parent link="{prefix}flange"/><child link="{prefix}{side}_finger"/>'
            f'<origin xyz="0 {sign * 0.006} 0.05"/><axis xyz="0 {sign} 0"/>'
            f'<limit lower="0" upper="0.04" effort="10" velocity="0.1"/>{mimic}</joint>'
        )
    return f"{text}</robot>"


def arm_srdf(*, attributes: str = "", more: str = "") -> str:
    """Return groups, states, the end effector and a disabled pair of the arm."""
    values = "".join(f'<joint name="{name}" value="{value}"/>' for name, value in READY.items())
    zeros = "".join(f'<joint name="{name}" value="0"/>' for name in JOINTS)
    return (
        f'<robot name="six" {attributes}>'
        '<group name="arm"><chain base_link="base" tip_link="flange"/></group>'
        '<group name="hand"><joint name="left_finger_joint"/></group>'
        f'<group_state name="up" group="arm">{zeros}</group_state>'
        f'<group_state name="home" group="arm">{values}</group_state>'
        '<end_effector name="gripper" parent_link="flange" group="hand" parent_group="arm"/>'
        '<disable_collisions link1="base" link2="link3" reason="Never"/>'
        f"{more}</robot>"
    )


LIMITS = """joint_limits:
  j1:
    has_velocity_limits: true
    max_velocity: 1.5
    has_acceleration_limits: true
    max_acceleration: 3
  $(arg prefix)j2: {has_position_limits: true, min_position: -1, max_position: 1.25}
  j3: {max_velocity: 9.0, has_acceleration_limits: false, max_acceleration: 0}
  j4: {has_velocity_limits: false, max_velocity: 0}
  elsewhere: {max_velocity: 1}
"""
KINEMATICS = "arm:\n  kinematics_solver: kdl_kinematics_plugin/KDLKinematicsPlugin\n"
CONTROLLERS_1 = """controller_list:
  - name: arm_controller
    joints: [j1, j2, j3, j4, j5, j6]
  - {name: gripper_controller, type: GripperCommand, joints: [left_finger_joint]}
"""
CONTROLLERS_2 = """moveit_simple_controller_manager:
  controller_names: [arm_controller, gripper_controller]
  arm_controller: {type: FollowJointTrajectory, joints: [j1, j2, j3, j4, j5, j6]}
  gripper_controller: {joints: [left_finger_joint]}
"""
SETUP = """moveit_setup_assistant_config:
  URDF: {package: six_description, relative_path: robots/six.%s, xacro_args: "gripper:=true"}
  SRDF: {relative_path: config/six.srdf}
"""


def write(path: Path, text: str) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_description(workspace: Path) -> Path:
    """Write a package with the robot as URDF and as xacro, in a folder of another name."""
    folder = workspace / "six_ros" / "description"
    write(folder / "package.xml", "<package><name>six_description</name></package>")
    write(folder / "robots" / "six.urdf", arm_urdf())
    macro = arm_urdf(attributes=NAMESPACE).replace(
        "<link", '<xacro:arg name="gripper" default="false"/><link', 1
    )
    write(folder / "robots" / "six.xacro", macro)
    return folder


def write_moveit_1(workspace: Path, *, robot: str = "urdf") -> Path:
    """Write a package of the setup assistant, and the description that it names.

    Args:
        workspace: folder of both.
        robot: suffix of the robot file, ``urdf`` or ``xacro``.
    """
    write_description(workspace)
    folder = workspace / "six_ros" / "six_moveit_config"
    write(folder / "package.xml", "<package><name>six_moveit_config</name></package>")
    write(folder / ".setup_assistant", SETUP % robot)
    write(folder / "config" / "six.srdf", arm_srdf())
    write(folder / "config" / "joint_limits.yaml", LIMITS)
    write(folder / "config" / "kinematics.yaml", KINEMATICS)
    write(folder / "config" / "controllers.yaml", CONTROLLERS_1)
    return folder


def write_moveit_2(workspace: Path) -> Path:
    """Write a package of MoveIt 2, whose robot and SRDF are xacro files beside each other."""
    folder = workspace / "six_moveit_config"
    write(folder / "package.xml", "<package><name>six_moveit_config</name></package>")
    write(folder / "config" / "six.urdf.xacro", arm_urdf(attributes=NAMESPACE))
    write(folder / "config" / "six_macro.srdf.xacro", "<robot/>")
    write(folder / "config" / "six.srdf.xacro", arm_srdf(attributes=NAMESPACE))
    write(folder / "config" / "joint_limits.yaml", LIMITS)
    write(folder / "config" / "kinematics.yaml", KINEMATICS)
    write(folder / "config" / "moveit_controllers.yaml", CONTROLLERS_2)
    return folder
