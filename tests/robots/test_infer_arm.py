"""Arms and hands inferred from joints and shapes, with evidence and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tmkit.cli.commands import app
from tmkit.errors import RobotError, UnknownNameError
from tmkit.formats import load_scene
from tmkit.graph import AttachedShape, Box, Joint, Mimic, Prismatic, Revolute, SceneGraph
from tmkit.robots import infer_arm, load_manipulator
from tmkit.robots.hands import mount_hand
from tmkit.robots.infer_arm import InferredArmStatus
from tmkit.spatial import Pose
from tmkit.tamp import validate_plan
from tmkit.tamp.trial_pick import TrialPickStatus, trial_pick

FINGER = [AttachedShape(Box((0.02, 0.01, 0.06)))]


def pybullet_robot(name: str) -> Path:
    """Return a robot of pybullet_data."""
    return Path(pytest.importorskip("pybullet_data").getDataPath()) / name


def arm() -> SceneGraph:
    """Return an arm of four joints that ends at ``wrist`` with a palm of 10 cm."""
    scene = SceneGraph().add_frame("base", "world")
    above = "base"
    for number, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0))):
        name = f"link{number}" if number < 3 else "wrist"
        joint = Revolute(axis, lower=-2, upper=2, velocity=1, name=f"j{number}")
        scene = scene.add_frame(name, above, pose=Pose((0, 0, 0.2)), joint=joint)
        above = name
    return scene.set_shapes("wrist", [AttachedShape(Box((0.04, 0.1, 0.04)))])


def slide(name: str, sign: int, mimic: Mimic | None = None) -> Joint:
    """Return the joint of a finger that opens along ``sign`` y by 3 cm."""
    return Prismatic((0, sign, 0), lower=0.0, upper=0.03, velocity=1, name=name, mimic=mimic)


def with_fingers(
    scene: SceneGraph, *, mimic: bool, names: tuple[str, str] = ("a", "b")
) -> SceneGraph:
    """Return an arm with two fingers that slide apart, and touch when they are closed."""
    for sign, name in zip((1, -1), names, strict=True):
        rule = Mimic(names[0]) if mimic and sign < 0 else None
        pose = Pose((0, 0.005 * sign, 0.06))
        scene = scene.add_frame(
            f"{name}_link", "wrist", pose=pose, joint=slide(name, sign), shapes=FINGER
        )
        if rule is not None:
            scene = scene.set_joint(f"{name}_link", slide(name, sign, rule))
    return scene


@pytest.mark.parametrize("mimic", [False, True])
def test_two_fingers_that_slide(mimic: bool) -> None:
    """The open width is 6 cm, and the tool is 1 cm behind the fingertips."""
    found = infer_arm(with_fingers(arm(), mimic=mimic))
    robot = found.robot
    assert (found.missing, robot.tip, robot.joints) == ("", "wrist", ("j0", "j1", "j2", "j3"))
    assert robot.gripper_open == dict.fromkeys(("a",) if mimic else ("a", "b"), 0.03)
    assert (robot.width_open, robot.width_closed) == pytest.approx((0.06, 0.0), abs=1e-4)
    assert set(robot.contact_links) == {"a_link", "b_link"}
    assert robot.tool == found.added_tool == "wrist_tool"
    tool = found.scene.local_pose(robot.tool)
    assert tool.translation == pytest.approx([0.0, 0.0, 0.08], abs=2e-4)
    np.testing.assert_allclose(tool.rotation[:, 2], [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(np.abs(tool.rotation[:, 1]), [0, 1, 0], atol=1e-9)
    assert "points along +z of 'wrist'" in found.inferred[-1]
    robot.check(found.scene)


def test_base_and_tip_choose_the_chain() -> None:
    """Only the joints between the two are taken; what cannot be is refused."""
    scene = load_scene("panda_table")
    robot = infer_arm(scene, base="panda_link2", tip="panda_hand").robot
    assert (robot.base, robot.tip) == ("panda_link2", "panda_hand")
    assert robot.joints == tuple(f"panda_joint{number}" for number in range(3, 8))
    assert infer_arm(scene, base="panda_link2").robot.joints == robot.joints
    with pytest.raises(UnknownNameError, match="did you mean 'panda_hand'"):
        infer_arm(scene, tip="panda_hant")
    with pytest.raises(
        RobotError, match="the tip 'panda_link1' is not below the base 'panda_link3'"
    ):
        infer_arm(scene, base="panda_link3", tip="panda_link1")
    with pytest.raises(RobotError, match="no joint moves between 'panda_link7' and 'panda_hand'"):
        infer_arm(scene, base="panda_link7", tip="panda_hand")
    with pytest.raises(RobotError, match="no joint moves"):
        infer_arm(SceneGraph())


def test_a_tool_that_is_given_is_taken() -> None:
    """Its place in front of the fingers is told; one that is not fixed to the hand is rejected."""
    scene = with_fingers(arm(), mimic=True).add_frame("point", "wrist", pose=Pose((0, 0, 0.3)))
    found = infer_arm(scene, tool="point")
    assert (found.robot.tool, found.added_tool, found.scene) == ("point", "", scene)
    assert found.inferred[2] == (
        "tool: 'point', as given: 220 mm in front of the point between the fingertips"
    )
    with pytest.raises(UnknownNameError, match="did you mean 'point'"):
        infer_arm(scene, tool="pont")
    with pytest.raises(
        RobotError, match="the tool 'a_link' is not rigidly joined to the tip 'wrist'"
    ):
        infer_arm(scene, tool="a_link")


def test_ready_does_not_collide() -> None:
    """A free configuration near the middle of the limits is ready if the middle collides."""
    box = AttachedShape(Box((0.1, 0.1, 0.1)), Pose((0.3, 0.0, 0.0)))
    scene = SceneGraph().add_frame("base", "world", shapes=[box])
    scene = scene.add_frame("a", "base", joint=Revolute((0, 0, 1), lower=-1, upper=1, name="j"))
    scene = scene.add_frame(
        "b", "a", joint=Revolute((0, 0, 1), lower=-0.1, upper=0.1, name="k"), shapes=[box]
    )
    ready = infer_arm(scene).robot.ready
    assert 0.2 < abs(ready["j"] + ready["k"]) < 0.6


@pytest.mark.parametrize("hand", ["parallel_gripper", "suction_cup"])
@pytest.mark.parametrize("named", [False, True])
def test_a_hand_is_mounted_before_the_arm(hand: str, named: bool) -> None:
    """A hand is mounted on a tool frame, or in front of the shape of the last link."""
    scene = arm()
    if named:
        scene = scene.add_frame("tool0", "wrist", pose=Pose.from_rpy((0, 0, 0.05), (0, 0, 1.0)))
    bare = infer_arm(scene).robot
    mounted = mount_hand(scene, load_scene(hand), tip=bare.tip, joints=bare.joints)
    found = infer_arm(mounted)
    assert (found.missing, found.added_tool, found.robot.joints) == ("", "", bare.joints)
    tool = mounted.pose(found.robot.tool, relative_to="wrist")
    assert tool.rotation[:, 2] == pytest.approx([0, 0, 1], abs=1e-9)
    length = 0.1 if hand == "parallel_gripper" else 0.07
    assert tool.translation == pytest.approx([0, 0, length + (0.05 if named else 0.02)], abs=1e-4)
    twice = mount_hand(mounted, load_scene(hand), tip=bare.tip, joints=bare.joints)
    assert len(twice) > len(mounted)
    with pytest.raises(RobotError, match="hand: expected one frame below its root, received 0"):
        mount_hand(scene, SceneGraph(), tip=bare.tip, joints=bare.joints)


def test_names_raise_the_confidence() -> None:
    """Fingers that are called so are surer than fingers known by their motion alone."""
    plain, named = (
        infer_arm(with_fingers(arm(), mimic=False, names=names)).inferred[1]
        for names in (("a", "b"), ("finger_a", "finger_b"))
    )
    assert "confidence medium" in plain
    assert "confidence high" in named


def test_a_tool_frame_that_fits_is_taken_and_one_that_does_not_is_named() -> None:
    """A frame called a tool is the tool only between the fingertips with the right axes."""
    scene = with_fingers(arm(), mimic=True)
    good = infer_arm(scene.add_frame("tcp", "wrist", pose=Pose((0, 0, 0.085))))
    assert (good.robot.tool, good.added_tool) == ("tcp", "")
    for pose in (Pose((0, 0, 0.3)), Pose.from_rpy((0, 0, 0.08), (0, np.pi / 2, 0))):
        bad = infer_arm(scene.add_frame("tcp", "wrist", pose=pose))
        assert bad.robot.tool == bad.added_tool == "wrist_tool"
        assert "'tcp' has another place or other axes" in bad.inferred[2]


def test_a_jaw_without_a_fixed_finger() -> None:
    """A moving finger that closes on nothing is no hand, and no joint of the arm."""
    jaw = Revolute((1, 0, 0), lower=-0.1, upper=1.5, velocity=1, name="gripper")
    scene = arm().add_frame(
        "moving_jaw", "wrist", pose=Pose((0, 0.02, 0.03)), joint=jaw, shapes=FINGER
    )
    found = infer_arm(scene)
    assert found.robot.joints == ("j0", "j1", "j2", "j3")
    assert "close no two collision shapes on each other by at least 1 cm, nor" in found.missing


def test_a_wrist_that_turns_the_body_of_a_gripper_is_the_arms() -> None:
    """A joint that turns a link called a gripper is part of the arm, unless it is the last."""
    roll = Revolute((0, 0, 1), lower=-1.5, upper=1.2, velocity=1, name="roll")
    scene = arm().add_frame(
        "gripper_body", "wrist", pose=Pose((0, 0, 0.03)), joint=roll, shapes=FINGER
    )
    jaw = Revolute((1, 0, 0), lower=-1.7, upper=0.0, velocity=1, name="gripper_opening")
    found = infer_arm(
        scene.add_frame(
            "side", "gripper_body", pose=Pose((0, 0.02, 0.05)), joint=jaw, shapes=FINGER
        )
    )
    assert found.robot.joints[-1] == "roll"


def test_a_flange_is_no_cup_and_a_cup_is_one_by_its_name() -> None:
    """An arm that ends in a link without a hand lacks a gripper; a link called a cup is one."""
    bare = infer_arm(arm())
    assert bare.status is InferredArmStatus.HAND_MISSING
    assert bare.missing.startswith("no gripper found: below 'wrist' nothing opens and closes")
    cup = infer_arm(arm().add_frame("vacuum_cup", "wrist", pose=Pose((0, 0, 0.1)), shapes=FINGER))
    assert (cup.missing, cup.robot.gripper_kind, cup.robot.tool) == ("", "suction", "vacuum_cup")


def test_a_hand_of_many_joints_is_unsupported() -> None:
    """Five fingers of one joint each are not swept, and the sentence says why."""
    scene = arm()
    for number in range(5):
        joint = Revolute((1, 0, 0), lower=0, upper=1, velocity=1, name=f"finger{number}")
        scene = scene.add_frame(
            f"f{number}", "wrist", pose=Pose((0.03 * number, 0, 0.05)), joint=joint, shapes=FINGER
        )
    found = infer_arm(scene)
    assert found.robot.tip == "wrist"
    assert "the hand at 'wrist' has 5 joints" in found.missing


def test_a_torso_is_no_joint_of_one_of_two_arms() -> None:
    """A lift that carries two arms with hands is left out of either, and the other arm is named."""
    one = with_fingers(arm(), mimic=True)
    lift = SceneGraph().add_frame(
        "lift", "world", joint=Prismatic((0, 0, 1), lower=0, upper=0.5, velocity=1, name="l")
    )
    both = lift.mount(one, "lift", prefix="left_").mount(one, "lift", prefix="right_")
    found = infer_arm(both)
    assert found.robot.joints == tuple(f"left_j{number}" for number in range(4))
    assert "other arms end at 'right_wrist', choose by --tip" in found.inferred[0]


def test_a_linkage_of_mimic_joints() -> None:
    """The xArm's gripper of six joints, with five mimic joints, has one joint."""
    found = infer_arm(load_scene(pybullet_robot("xarm/xarm6_with_gripper.urdf")))
    assert found.missing == ""
    assert found.robot.gripper_joints == ("drive_joint",)
    assert set(found.robot.contact_links) == {"left_finger", "right_finger"}
    assert 0.08 < found.robot.width_open < 0.1
    np.testing.assert_allclose(
        found.scene.local_pose(found.added_tool).rotation[:, 2], [0, 0, 1], atol=1e-9
    )
    assert found.scene.local_pose(found.added_tool).translation[:2] == pytest.approx(
        [0, 0], abs=0.002
    )


def test_a_trial_pick_shows_a_tool_that_looks_the_wrong_way() -> None:
    """The Panda picks the cube, unless its tool is reversed or its fingers open too little."""
    scene, robot = load_scene("panda_alone"), load_manipulator("panda")
    picked = trial_pick(scene, robot)
    assert (picked.status, picked.reason) == (TrialPickStatus.PICKED, "")
    assert picked.result is not None
    assert picked.result.plan is not None
    assert validate_plan(picked.result.plan).is_valid
    values = robot.to_dict()
    backwards = scene.set_pose(
        robot.tool, scene.local_pose(robot.tool) @ Pose.from_rpy((0, 0, 0), (np.pi, 0, 0))
    )
    assert trial_pick(backwards, robot).status in (
        TrialPickStatus.NO_PLACE,
        TrialPickStatus.NO_PLAN,
    )
    tables = {"widths": [], "finger_depths": []}
    narrow = type(robot).from_dict({**values, **tables, "width_open": 0.02})
    small = trial_pick(scene, narrow)
    assert repr(small).startswith("TrialPick(hand too small, cube of 0.02 m, ")
    assert small.reason == "the hand opens to 20 mm, too little for a cube of 20 mm"


def test_the_command_ends_with_the_trial() -> None:
    """Exit code 0 for the xArm; 1 and one sentence for an arm without a hand."""
    urdf = pybullet_robot("xarm/xarm6_with_gripper.urdf")
    run = CliRunner().invoke(app, ["robot", "check", str(urdf), "--samples", "50"])
    assert run.exit_code == 0, run.output
    assert "  trial pick: 'xarm6_with_gripper' picks a cube of 4 cm, looking down" in run.stdout
    bare = CliRunner().invoke(
        app, ["robot", "check", str(pybullet_robot("kuka_iiwa/model.urdf")), "--samples", "50"]
    )
    assert bare.exit_code == 1
    assert "  missing: no gripper found: below 'lbr_iiwa_link_7'" in bare.stdout
    answer = json.loads(
        CliRunner().invoke(app, ["robot", "check", str(urdf), "--samples", "20", "--json"]).stdout
    )
    assert (answer["ok"], answer["missing"]) == (True, "")
