"""Arms out of SRDF files: what is found, what may be chosen, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.panda_srdf import PANDA_SRDF, READY

from tmkit.errors import RobotError, UnknownNameError
from tmkit.formats import load_scene
from tmkit.graph import SceneGraph
from tmkit.robots import find_manipulator, load_manipulator, manipulator_from_srdf


@pytest.fixture(scope="module")
def scene() -> SceneGraph:
    """Return a Panda at a table."""
    return load_scene("panda_table")


@pytest.fixture
def srdf(tmp_path: Path) -> Path:
    """Return an SRDF file for it."""
    return changed(tmp_path)


def changed(folder: Path, old: str = "", new: str = "") -> Path:
    """Write the SRDF with one text changed."""
    assert old in PANDA_SRDF
    path = folder / "panda.srdf"
    path.write_text(PANDA_SRDF.replace(old, new) if old else PANDA_SRDF)
    return path


def test_the_arm_of_a_file_is_ours(srdf: Path, scene: SceneGraph) -> None:
    """Joints, base, tool, hand and ready configuration are those of our own description of the Panda."""
    arm, ours = manipulator_from_srdf(srdf, scene, group="arm"), load_manipulator("panda")
    assert (arm.name, arm.base, arm.tip, arm.tool) == ("panda:arm", ours.base, "panda_link8", ours.tool)
    assert arm.joints == ours.joints
    assert tuple(arm.ready.values()) == READY
    assert (arm.gripper_kind, arm.gripper_joints) == ("parallel", ours.gripper_joints)
    assert (dict(arm.gripper_open), dict(arm.gripper_closed)) == (dict(ours.gripper_open), dict(ours.gripper_closed))
    assert arm.contact_links == ours.contact_links
    assert arm.width_open == pytest.approx(ours.width_open, abs=0.001)
    assert arm.width_closed == 0.0


def test_the_group_is_found_by_its_end_effector(srdf: Path, scene: SceneGraph) -> None:
    """Of several groups that may be arms, the one that carries the end effector is meant."""
    assert manipulator_from_srdf(srdf, scene) == manipulator_from_srdf(srdf, scene, group="arm")
    assert manipulator_from_srdf(srdf, scene, end_effector="gripper") == manipulator_from_srdf(srdf, scene)


def test_a_robot_is_named_by_file_and_group(srdf: Path, scene: SceneGraph) -> None:
    """``FILE.srdf`` and ``FILE.srdf:GROUP`` name an arm wherever a robot is named."""
    expected = manipulator_from_srdf(srdf, scene, group="arm")
    assert find_manipulator(str(srdf), scene) == find_manipulator(f"{srdf}:arm", scene) == expected
    with pytest.raises(RobotError, match="only together with a scene"):
        load_manipulator(srdf)


def test_what_is_chosen(srdf: Path, scene: SceneGraph) -> None:
    """Tool, gripper and name are as given; a suction cup has no joints."""
    arm = manipulator_from_srdf(srdf, scene, group="arm", tool="panda_hand", gripper="suction", name="cup")
    assert (arm.name, arm.tool, arm.gripper_kind, arm.gripper_joints) == ("cup", "panda_hand", "suction", ())


def test_without_a_state_ready_is_the_middle(tmp_path: Path, scene: SceneGraph) -> None:
    """Without a state of a well-known name the arm is ready in the middle of its limits."""
    arm = manipulator_from_srdf(changed(tmp_path, 'name="ready"', 'name="tucked"'), scene, group="arm")
    limits = dict(zip(scene.joint_names, scene.joint_limits, strict=True))
    assert all(value == pytest.approx(limits[joint].mean()) for joint, value in arm.ready.items())
    tucked = manipulator_from_srdf(tmp_path / "panda.srdf", scene, group="arm", ready="tucked")
    assert tuple(tucked.ready.values()) == READY


def test_a_hand_without_states_opens_to_its_limits(tmp_path: Path, scene: SceneGraph) -> None:
    """Asked for a parallel gripper, the joints' limits stand for the states; else the file is refused."""
    path = changed(tmp_path, 'name="open"', 'name="one"')
    arm = manipulator_from_srdf(path, scene, group="arm", gripper="parallel")
    assert dict(arm.gripper_open) == {"panda_finger_joint1": 0.04}
    assert dict(arm.gripper_closed) == {"panda_finger_joint1": 0.0}
    with pytest.raises(RobotError, match=r"'hand' needs states that open and close the hand; it has: one, close"):
        manipulator_from_srdf(path, scene, group="arm")
    named = manipulator_from_srdf(path, scene, group="arm", opened="one", closed="close")
    assert named == manipulator_from_srdf(path, scene, group="arm", gripper="parallel")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("panda_link8", "panda_linc8", r"srdf:2: .*'panda_linc8', which the scene does not have; did you mean"),
        ('value="-2.2"', 'value="2.2"', "state 'ready' puts joint 'panda_joint4' at 2.2, outside its limits"),
        ('"panda_joint3"', '"panda_jonit3"', "state 'ready' has no value for joint 'panda_joint3'; it names"),
        ('group="hand" parent', 'group="hnad" parent', "unknown group 'hnad'; did you mean 'hand'"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, scene: SceneGraph, old: str, new: str, message: str) -> None:
    """Links, states and groups that are used and wrong are refused by name."""
    with pytest.raises(RobotError, match=message):
        manipulator_from_srdf(changed(tmp_path, old, new), scene, group="arm", ready="ready")


def test_misspelt_joints_are_told_from_fixed_ones(tmp_path: Path, scene: SceneGraph) -> None:
    """An unknown joint that is like one that the group lacks is a slip; any other is taken for a fixed joint."""
    joints = "".join(f'<joint name="panda_joint{i}"/>' for i in range(1, 8))
    path = changed(tmp_path, '<chain base_link="panda_link0" tip_link="panda_link8"/>', joints + '<joint name="jig"/>')
    assert manipulator_from_srdf(path, scene, group="arm").joints == load_manipulator("panda").joints
    path.write_text(path.read_text().replace('<joint name="panda_joint7"/>', '<joint name="panda_jiont7"/>'))
    with pytest.raises(RobotError, match="'panda_jiont7', which the scene does not have; did you mean 'panda_joint7'"):
        manipulator_from_srdf(path, scene, group="arm")


def test_unknown_choices_list_the_valid_ones(srdf: Path, scene: SceneGraph) -> None:
    """Groups, end effectors, states, grippers that are not there are refused with those that are."""
    with pytest.raises(UnknownNameError, match=r"unknown group 'amr'.*known: all, arm, hand"):
        manipulator_from_srdf(srdf, scene, group="amr")
    with pytest.raises(UnknownNameError, match=r"unknown end effector 'x' \(known: gripper\)"):
        manipulator_from_srdf(srdf, scene, end_effector="x")
    with pytest.raises(RobotError, match=r"has no state 'redy'; did you mean 'ready'\? \(known: ready\)"):
        manipulator_from_srdf(srdf, scene, group="arm", ready="redy")
    with pytest.raises(RobotError, match="gripper 'claw' is none of parallel, suction"):
        manipulator_from_srdf(srdf, scene, group="arm", gripper="claw")


def test_a_hand_that_no_end_effector_names(tmp_path: Path, scene: SceneGraph) -> None:
    """Where the end effector is made of the arm, or there is none, the hand's group can be named."""
    effector = '<end_effector name="gripper" parent_link="panda_link8" group="hand" parent_group="arm"/>'
    for new in (effector.replace('group="hand" parent_group="arm"', 'group="arm"'), ""):
        path = changed(tmp_path, effector, new)
        with pytest.raises(RobotError, match=r"FILE\.srdf:GROUP:HAND"):
            manipulator_from_srdf(path, scene, group="arm")
        arm = find_manipulator(f"{path}:arm:hand", scene)
        assert arm == manipulator_from_srdf(path, scene, group="arm", hand="hand")
        assert dict(arm.gripper_open) == {"panda_finger_joint1": 0.04}
    path.write_text(PANDA_SRDF.replace(effector, "").replace('name="open"', 'name="wide"'))
    arm = find_manipulator(f"{path}:arm:hand", scene)
    assert (dict(arm.gripper_open), dict(arm.gripper_closed)) == (
        {"panda_finger_joint1": 0.04}, {"panda_finger_joint1": 0.0},
    )  # fmt: skip
    with pytest.raises(UnknownNameError, match=r"unknown group 'hnad'; did you mean 'hand'"):
        find_manipulator(f"{path}:arm:hnad", scene)
    with pytest.raises(RobotError, match=r"the group 'arm' has no joints that could open and close a hand"):
        find_manipulator(f"{path}:arm:arm", scene)
