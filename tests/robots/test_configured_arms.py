"""Arms of SRDF files and MoveIt packages: the group, the tip, the ready state, accelerations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.moveit_packages import JOINTS, READY, arm_srdf, arm_urdf, write, write_moveit_1
from typer.testing import CliRunner, Result

from tmkit.cli.commands import app
from tmkit.errors import RobotError, UnknownNameError
from tmkit.formats import load_scene
from tmkit.formats.moveit.configuration import MoveItConfiguration, read_moveit_configuration
from tmkit.formats.srdf import read_srdf
from tmkit.formats.srdf.values import EndEffector, SrdfGroup
from tmkit.graph import SceneGraph
from tmkit.robots import check_robot, infer_arm, load_manipulator
from tmkit.robots.configured_arms import find_srdf_arm, with_configuration

pytest.importorskip("yaml")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return the folder of a configuration package."""
    return write_moveit_1(tmp_path)


@pytest.fixture
def scene(package: Path) -> SceneGraph:
    """Return the robot of the package."""
    return load_scene(package)


@pytest.fixture
def configuration(package: Path) -> MoveItConfiguration:
    """Return the other content of the package."""
    return read_moveit_configuration(package)


def tmkit(*arguments: str | Path) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_the_arm_has_the_group_the_state_and_the_accelerations(
    scene: SceneGraph, configuration: MoveItConfiguration
) -> None:
    """The hand is inferred; what the package has is taken from it, and each line says so."""
    arm = find_srdf_arm(configuration.semantics, scene)
    assert (arm.group, arm.base, arm.tip, arm.joints) == ("arm", "base", "flange", JOINTS)
    inferred = infer_arm(scene, base=arm.base, tip=arm.tip)
    result = with_configuration(inferred, arm, configuration)
    assert result.robot.ready == READY
    assert result.robot.acceleration == {"j1": 3.0}
    assert result.robot.gripper_joints == ("left_finger_joint",)
    assert result.inferred[0] == "arm: 6 joints from 'base' to 'flange', group 'arm' of six.srdf"
    assert result.inferred[-4:] == (
        "ready: the state 'home' of six.srdf",
        "accelerations: those of 1 joint in joint_limits.yaml",
        "controller: 'arm_controller' of 6 joints",
        "controller: 'gripper_controller' of 1 joint",
    )


def test_a_state_in_collision_is_passed_over(
    scene: SceneGraph, configuration: MoveItConfiguration
) -> None:
    """The first free state is the ready one; without a free one, the first."""
    arm = find_srdf_arm(configuration.semantics, scene)
    inferred = infer_arm(scene, base=arm.base, tip=arm.tip)
    folded = dict.fromkeys(JOINTS, 0.0) | {"j2": -2.4, "j3": -1.6, "j5": 2.4}
    both = replace(arm, states={"ready": folded, "home": READY})
    assert with_configuration(inferred, both, configuration).robot.ready == READY
    only = replace(arm, states={"ready": folded})
    assert with_configuration(inferred, only, configuration).robot.ready == folded
    none = replace(arm, states={})
    robot = with_configuration(inferred, none, configuration).robot
    assert robot.ready == inferred.robot.ready


def test_of_nested_groups_the_arm_has_six_joints(scene: SceneGraph, tmp_path: Path) -> None:
    """As an arm with and without a torso; a wrist of the arm is none."""
    semantics = read_srdf(write(tmp_path / "six.srdf", arm_srdf()))
    wrist = SrdfGroup("wrist", joints=("j5", "j6"))
    nested = replace(semantics, groups=(wrist, *semantics.groups), end_effectors=())
    assert find_srdf_arm(nested, scene).group == "arm"
    small = replace(nested, groups=(wrist, SrdfGroup("forearm", joints=("j4", "j5", "j6"))))
    assert find_srdf_arm(small, scene).group == "forearm"
    apart = replace(nested, groups=(wrist, SrdfGroup("shoulder", joints=("j1", "j2"))))
    with pytest.raises(
        RobotError,
        match=r"say which group is the arm; groups that may be arms: wrist, shoulder; choose one by"
        r" --group GROUP or GROUP:END_EFFECTOR$",
    ):
        find_srdf_arm(apart, scene)
    assert find_srdf_arm(apart, scene, solved_groups=("shoulder",)).group == "shoulder"
    assert find_srdf_arm(apart, scene, group="wrist").joints == ("j5", "j6")


def test_several_end_effectors_are_named(scene: SceneGraph, tmp_path: Path) -> None:
    """The message has their names and the option."""
    semantics = read_srdf(write(tmp_path / "six.srdf", arm_srdf()))
    second = EndEffector("camera", "flange", "hand", "arm")
    both = replace(semantics, end_effectors=(*semantics.end_effectors, second))
    with pytest.raises(
        RobotError, match=r"several end effectors \(gripper, camera\); say which; .*:END"
    ):
        find_srdf_arm(both, scene)
    assert find_srdf_arm(both, scene, group="arm", end_effector="camera").tip == "flange"
    with pytest.raises(UnknownNameError, match="unknown end effector 'gripped'; did you mean"):
        find_srdf_arm(both, scene, group="arm", end_effector="gripped")


def test_a_tool_frame_beside_the_hand_is_not_the_tip(tmp_path: Path) -> None:
    """As in the packages of UFACTORY and Kinova, whose chains end at the tool centre point."""
    urdf = arm_urdf().replace(
        '<link name="flange"/>',
        '<link name="flange"/><link name="tcp"/><joint name="t" type="fixed"><parent link="link6"/>'
        '<child link="tcp"/><origin xyz="0 0 0.1"/></joint>',
    )
    scene = load_scene(write(tmp_path / "six.urdf", urdf))
    text = arm_srdf().replace('tip_link="flange"', 'tip_link="tcp"')
    text = text.replace('parent_link="flange"', 'parent_link="tcp"')
    semantics = read_srdf(write(tmp_path / "six.srdf", text))
    assert find_srdf_arm(semantics, scene).tip == "link6"


def test_a_fixed_joint_with_a_word_more_is_no_misspelling(tmp_path: Path) -> None:
    """As ``ee_gripper`` in the groups of Interbotix, where the next joint is ``gripper``."""
    scene = load_scene(write(tmp_path / "six.urdf", arm_urdf()))
    text = arm_srdf().replace(
        '<chain base_link="base" tip_link="flange"/>',
        "".join(f'<joint name="{name}"/>' for name in (*JOINTS, "ee_left_finger_joint")),
    )
    semantics = read_srdf(write(tmp_path / "six.srdf", text))
    assert find_srdf_arm(semantics, scene).joints == JOINTS


def test_the_commands_take_the_folder(package: Path, tmp_path: Path) -> None:
    """``new robot`` and ``robot check`` describe the arm of the package, which then fits it."""
    out = tmp_path / "six.toml"
    run = tmkit("new", "robot", package, "--hand", "none", "--out", out, "--yes")
    assert run.exit_code == 2  # it has a gripper
    urdf = package.parent / "description/robots/six.urdf"
    urdf.write_text(arm_urdf(gripper=False))
    srdf = package / "config/six.srdf"
    srdf.write_text(srdf.read_text().replace('<joint name="left_finger_joint"/>', "", 1))
    run = tmkit("new", "robot", package, "--hand", "none", "--out", out, "--yes")
    assert run.exit_code == 0, run.output
    assert "inferred: ready: the state 'home' of six.srdf" in run.output
    arm = load_manipulator(out)
    assert (arm.name, arm.ready, arm.acceleration) == ("six", READY, {"j1": 3.0})
    assert check_robot(load_scene(package), arm, samples=50).is_valid
    run = tmkit("robot", "check", package, "--samples", "50", "--group", "arm")
    assert run.exit_code == 1
    assert "group 'arm' of six.srdf" in run.output
    assert run.output.splitlines()[-1].startswith("incomplete: ")
    run = tmkit("robot", "check", urdf, "--group", "arm")
    assert run.exit_code == 2
    assert "no scene is an SRDF file" in run.output
    run = tmkit("robot", "check", urdf, srdf, "--samples", "50", "--group", "arms")
    assert "unknown group 'arms'; did you mean 'arm'?" in str(run.exception)


def test_the_name_of_the_description_is_that_of_the_folder(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of the folder of the shell, and of a folder without a separator."""
    from tmkit.cli.robots import name_of

    monkeypatch.chdir(package)
    assert name_of(".") == "six_moveit_config"
    monkeypatch.chdir(package.parent)
    assert name_of("six_moveit_config") == name_of("six_moveit_config/") == "six_moveit_config"
    assert name_of("urdf/arm.urdf.xacro") == name_of("arm.xacro") == "arm"
    assert name_of("arm_v1.2.urdf") == "arm_v1.2"
    assert "link6" in load_scene("six_moveit_config")
