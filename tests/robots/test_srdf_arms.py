"""Arms out of SRDF files: what is found, what may be chosen, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.panda_srdf import PANDA_SRDF, READY

import tmkit as tk
from tmkit.errors import RobotError, UnknownNameError
from tmkit.formats import load_scene
from tmkit.formats.srdf import read_srdf
from tmkit.formats.srdf.values import Chain, EndEffector, GroupState, RobotSemantics, SrdfGroup
from tmkit.graph import AttachedShape, Box, Prismatic, Revolute, SceneGraph
from tmkit.robots import Manipulator, load_manipulator, manipulator_from_srdf
from tmkit.robots.robot_files import find_manipulator
from tmkit.robots.srdf_arms import HandChoice, arm_groups
from tmkit.spatial import Pose


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
    """Joints, base, tool, hand and ready configuration equal those of the built-in Panda."""
    arm, ours = manipulator_from_srdf(srdf, scene, group="arm"), load_manipulator("panda")
    assert (arm.name, arm.base, arm.tip, arm.tool) == (
        "panda:arm",
        ours.base,
        "panda_link8",
        ours.tool,
    )
    assert arm.joints == ours.joints
    assert tuple(arm.ready.values()) == READY
    assert (arm.gripper_kind, arm.gripper_joints) == ("parallel", ours.gripper_joints)
    assert (dict(arm.gripper_open), dict(arm.gripper_closed)) == (
        dict(ours.gripper_open),
        dict(ours.gripper_closed),
    )
    assert arm.contact_links == ours.contact_links
    assert arm.width_open == pytest.approx(ours.width_open, abs=0.001)
    assert arm.width_closed == 0.0


def test_the_group_is_found_by_its_end_effector(srdf: Path, scene: SceneGraph) -> None:
    """Of several groups that may be arms, the one that carries the end effector is meant."""
    assert manipulator_from_srdf(srdf, scene) == manipulator_from_srdf(srdf, scene, group="arm")
    assert manipulator_from_srdf(
        srdf, scene, hand=HandChoice(end_effector="gripper")
    ) == manipulator_from_srdf(srdf, scene)


def test_a_robot_is_named_by_file_and_group(srdf: Path, scene: SceneGraph) -> None:
    """``FILE.srdf`` and ``FILE.srdf:GROUP`` name an arm wherever a robot is named."""
    expected = manipulator_from_srdf(srdf, scene, group="arm")
    assert find_manipulator(str(srdf), scene) == find_manipulator(f"{srdf}:arm", scene) == expected
    with pytest.raises(RobotError, match="only together with a scene"):
        load_manipulator(srdf)


def test_what_is_chosen(srdf: Path, scene: SceneGraph) -> None:
    """Tool, gripper and name are as given; a suction cup has no joints."""
    arm = manipulator_from_srdf(
        srdf, scene, group="arm", name="cup", hand=HandChoice(tool="panda_hand", gripper="suction")
    )
    assert (arm.name, arm.tool, arm.gripper_kind, arm.gripper_joints) == (
        "cup",
        "panda_hand",
        "suction",
        (),
    )
    bare = manipulator_from_srdf(srdf, scene, group="arm", hand=HandChoice(gripper="none"))
    assert (bare.gripper_kind, bare.gripper_joints, bare.contact_links) == ("none", (), ())


def test_another_state_is_ready_on_request(tmp_path: Path, scene: SceneGraph) -> None:
    """A state of any name is the ready configuration if the caller requests it."""
    changed(tmp_path, 'name="ready"', 'name="tucked"')
    tucked = manipulator_from_srdf(tmp_path / "panda.srdf", scene, group="arm", ready="tucked")
    assert tuple(tucked.ready.values()) == READY


def test_a_hand_without_states_opens_to_its_limits(tmp_path: Path, scene: SceneGraph) -> None:
    """A parallel gripper without states uses the joints' limits, or the file is rejected."""
    path = changed(tmp_path, 'name="open"', 'name="one"')
    arm = manipulator_from_srdf(path, scene, group="arm", hand=HandChoice(gripper="parallel"))
    assert dict(arm.gripper_open) == {"panda_finger_joint1": 0.04}
    assert dict(arm.gripper_closed) == {"panda_finger_joint1": 0.0}
    with pytest.raises(
        RobotError, match=r"'hand' needs states that open and close the hand; it has: one, close"
    ):
        manipulator_from_srdf(path, scene, group="arm")
    named = manipulator_from_srdf(
        path, scene, group="arm", hand=HandChoice(opened="one", closed="close")
    )
    assert named == manipulator_from_srdf(
        path, scene, group="arm", hand=HandChoice(gripper="parallel")
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "panda_link8",
            "panda_linc8",
            r"srdf:2: .*'panda_linc8', which the scene does not have; did you mean",
        ),
        (
            'value="-2.2"',
            'value="2.2"',
            "state 'ready' puts joint 'panda_joint4' at 2.2, outside its limits",
        ),
        (
            '"panda_joint3"',
            '"panda_jonit3"',
            "state 'ready' has no value for joint 'panda_joint3'; it names",
        ),
        ('group="hand" parent', 'group="hnad" parent', "unknown group 'hnad'; did you mean 'hand'"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, scene: SceneGraph, old: str, new: str, message: str
) -> None:
    """Links, states and groups that are used and wrong are refused by name."""
    with pytest.raises(RobotError, match=message):
        manipulator_from_srdf(changed(tmp_path, old, new), scene, group="arm", ready="ready")


def test_misspelt_joints_are_told_from_fixed_ones(tmp_path: Path, scene: SceneGraph) -> None:
    """An unknown joint is a misspelling if it is similar to a joint, or else a fixed joint."""
    joints = "".join(f'<joint name="panda_joint{i}"/>' for i in range(1, 8))
    path = changed(
        tmp_path,
        '<chain base_link="panda_link0" tip_link="panda_link8"/>',
        joints + '<joint name="jig"/>',
    )
    assert (
        manipulator_from_srdf(path, scene, group="arm").joints == load_manipulator("panda").joints
    )
    path.write_text(
        path.read_text().replace('<joint name="panda_joint7"/>', '<joint name="panda_jiont7"/>')
    )
    with pytest.raises(
        RobotError,
        match="'panda_jiont7', which the scene does not have; did you mean 'panda_joint7'",
    ):
        manipulator_from_srdf(path, scene, group="arm")


def test_unknown_choices_list_the_valid_ones(srdf: Path, scene: SceneGraph) -> None:
    """Unknown groups, end effectors, states and grippers are rejected with the valid names."""
    with pytest.raises(UnknownNameError, match=r"unknown group 'amr'.*known: all, arm, hand"):
        manipulator_from_srdf(srdf, scene, group="amr")
    with pytest.raises(UnknownNameError, match=r"unknown end effector 'x' \(known: gripper\)"):
        manipulator_from_srdf(srdf, scene, hand=HandChoice(end_effector="x"))
    with pytest.raises(
        RobotError, match=r"has no state 'redy'; did you mean 'ready'\? \(known: ready\)"
    ):
        manipulator_from_srdf(srdf, scene, group="arm", ready="redy")
    with pytest.raises(RobotError, match="gripper kind 'claw' is none of parallel, jaw"):
        manipulator_from_srdf(srdf, scene, group="arm", hand=HandChoice(gripper="claw"))


def test_a_hand_that_no_end_effector_names(tmp_path: Path, scene: SceneGraph) -> None:
    """The caller selects the hand's group if the end effector does not define it."""
    effector = (
        '<end_effector name="gripper" parent_link="panda_link8" group="hand" parent_group="arm"/>'
    )
    for new in (effector.replace('group="hand" parent_group="arm"', 'group="arm"'), ""):
        path = changed(tmp_path, effector, new)
        with pytest.raises(RobotError, match=r"FILE\.srdf:GROUP:HAND"):
            manipulator_from_srdf(path, scene, group="arm")
        arm = find_manipulator(f"{path}:arm:hand", scene)
        assert arm == manipulator_from_srdf(path, scene, group="arm", hand=HandChoice(group="hand"))
        assert dict(arm.gripper_open) == {"panda_finger_joint1": 0.04}
    path.write_text(PANDA_SRDF.replace(effector, "").replace('name="open"', 'name="wide"'))
    arm = find_manipulator(f"{path}:arm:hand", scene)
    assert (dict(arm.gripper_open), dict(arm.gripper_closed)) == (
        {"panda_finger_joint1": 0.04},
        {"panda_finger_joint1": 0.0},
    )
    with pytest.raises(UnknownNameError, match=r"unknown group 'hnad'; did you mean 'hand'"):
        find_manipulator(f"{path}:arm:hnad", scene)
    with pytest.raises(
        RobotError, match=r"the group 'arm' has no joints that could open and close a hand"
    ):
        find_manipulator(f"{path}:arm:arm", scene)


def two_arms(tool_frames: tuple[str, ...] = ("left_tcp",)) -> SceneGraph:
    """Return a torso with two arms of two joints, and frames fixed to the left wrist."""
    scene = SceneGraph().add_frame("torso", "world").add_frame("chest", "torso")
    for side in ("left", "right"):
        upper = Revolute((0, 0, 1), lower=-1.0, upper=3.0, velocity=1.0, name=f"{side}_1")
        scene = scene.add_frame(f"{side}_upper", "chest", joint=upper)
        turn = Revolute((0, 1, 0), lower=-math.inf, upper=math.inf, velocity=1.0, name=f"{side}_2")
        scene = scene.add_frame(f"{side}_wrist", f"{side}_upper", joint=turn)
    for frame in tool_frames:
        scene = scene.add_frame(frame, "left_wrist", pose=Pose((0, 0, 0.1)))
    return scene


LEFT = SrdfGroup("left", joints=("left_1", "left_2"))
RIGHT = SrdfGroup("right", joints=("right_1", "right_2"))
BOTH = SrdfGroup("both", subgroups=("left", "right"))
SHOULDER = SrdfGroup("shoulder", joints=("left_1",))


def suction(
    semantics: RobotSemantics, scene: SceneGraph | None = None, **options: Any
) -> Manipulator:
    """Return an arm with a suction cup of the robot with two arms."""
    of_arm = {name: options.pop(name) for name in ("group", "ready", "name") if name in options}
    hand = HandChoice(gripper="suction", **options)
    return manipulator_from_srdf(semantics, scene or two_arms(), **of_arm, hand=hand)


@pytest.mark.parametrize(
    ("semantics", "group"),
    [
        (RobotSemantics("r", groups=(RIGHT,)), "right"),
        (RobotSemantics("r", groups=(BOTH, SHOULDER, LEFT)), None),
        (RobotSemantics("r", groups=(SHOULDER, SrdfGroup("none"), RIGHT)), "right"),
        (
            RobotSemantics(
                "",
                groups=(LEFT, RIGHT),
                end_effectors=(EndEffector("e", "right_wrist", "x", "right"),),
            ),
            "-",
        ),
        (
            RobotSemantics(
                "r", groups=(LEFT, RIGHT), end_effectors=(EndEffector("e", "left_wrist", "left"),)
            ),
            "left",
        ),
    ],
)
def test_the_group_that_can_only_be_the_arm(semantics: RobotSemantics, group: str | None) -> None:
    """The only group with joints on one path is the arm, or the one with an end effector."""
    if group is None:
        broken = replace(
            semantics, groups=(*semantics.groups, SrdfGroup("lost", links=("nowhere",)))
        )
        assert arm_groups(broken, two_arms()) == ("left",)
        assert suction(broken).joints == ("left_1", "left_2")
    elif group == "-":
        semantics = replace(semantics, groups=(*semantics.groups, SrdfGroup("x")))
        arm = suction(semantics)
        assert (arm.joints, arm.tip) == (("right_1", "right_2"), "right_wrist")
    else:
        assert suction(semantics).joints == (f"{group}_1", f"{group}_2")


def test_an_end_effector_tells_the_arm_it_belongs_to() -> None:
    """An end effector selects its parent group, or its group if only that is an arm."""
    ends = (
        EndEffector("a", "left_wrist", "right", "shoulder"),
        EndEffector("b", "left_wrist", "x", "left"),
    )
    groups = (SHOULDER, LEFT, RIGHT, SrdfGroup("x"))
    semantics = RobotSemantics("r", groups=groups, end_effectors=ends)
    assert suction(semantics, end_effector="b").joints == ("left_1", "left_2")
    with pytest.raises(
        RobotError, match=r"end effector 'a' is on 'left_wrist', which .* last frame 'right_wrist'"
    ):
        suction(semantics, end_effector="a")


@pytest.mark.parametrize(
    ("groups", "options", "message"),
    [
        ((), {}, r"^srdf: there is no group, so the joints of the arm are not defined$"),
        ((LEFT, RIGHT), {}, r"say which group is the arm; groups that may be arms: left, right$"),
        ((SHOULDER, BOTH, LEFT, RIGHT), {}, r"groups that may be arms: left, right$"),
        (
            (SHOULDER, SrdfGroup("x")),
            {},
            r"the arm; none of its groups \(shoulder, x\) is an arm in this scene$",
        ),
        ((SrdfGroup("x"), LEFT), {"group": "x"}, "the group 'x' has no joint that moves$"),
        (
            (SrdfGroup("x", joints=("left_9", "bolt")), LEFT),
            {"group": "x"},
            (
                "'x' has no movable joint in this scene, which has no 'left_9'; did you mean"
                " 'left_[12]'"
            ),
        ),
        (
            (BOTH, LEFT, RIGHT),
            {"group": "both"},
            r"'both' is not an arm: joint '\w+_1' is not on the path from the base to the tip;"
            r" groups that may be arms: "
            "left, right$",
        ),
        (
            (SrdfGroup("spread", joints=("left_2", "right_1")), SHOULDER),
            {"group": "spread"},
            (
                "joint 'right_1' is not on the path from the base to the tip; groups that may be"
                " arms: none$"
            ),
        ),
    ],
)
def test_groups_that_are_no_arm_are_refused(
    groups: tuple[SrdfGroup, ...], options: Any, message: str
) -> None:
    """Groups that are no arm, and ambiguous groups, are rejected with the valid ones."""
    with pytest.raises(RobotError, match=message):
        suction(RobotSemantics("r", groups=groups), **options)


def test_a_chain_names_base_and_tip() -> None:
    """Base and tip are those of the chain; without a chain, the base is the joint's parent."""
    scene = two_arms()
    chain = SrdfGroup("left", chains=(Chain("torso", "left_tcp"),))
    arm = suction(RobotSemantics("r", groups=(chain,)), scene)
    assert (arm.name, arm.base, arm.tip, arm.tool) == ("r:left", "torso", "left_tcp", "left_tcp")
    assert (arm.gripper_joints, dict(arm.gripper_open), dict(arm.gripper_closed)) == ((), {}, {})
    assert (arm.width_open, arm.width_closed) == (0.0, 0.0)
    plain = suction(RobotSemantics("", groups=(LEFT,)), scene)
    assert (plain.name, plain.base, plain.tip) == ("robot:left", "chest", "left_wrist")


@pytest.mark.parametrize("word", ["TCP", "grasp", "tool"])
def test_the_tool_is_found_by_its_name(word: str) -> None:
    """The only frame with ``tcp``, ``grasp`` or ``tool`` in its name is the tool."""
    arm = suction(RobotSemantics("r", groups=(LEFT,)), two_arms(("cover", f"left_{word}_0")))
    assert (arm.tip, arm.tool) == ("left_wrist", f"left_{word}_0")


def test_without_one_tool_frame_the_cup_is_the_tip_and_a_hand_needs_a_choice() -> None:
    """An ambiguous tool is the tip for a suction cup, and an error for fingers."""
    semantics = RobotSemantics(
        "r",
        groups=(LEFT, SrdfGroup("hand", joints=("grip_a", "grip_b"))),
        states=tuple(
            GroupState(name, "hand", (("grip_a", (value,)), ("grip_b", (value,))))
            for name, value in (("open", 0.04), ("closed", 0.0))
        ),
        end_effectors=(EndEffector("e", "left_wrist", "hand", "left"),),
    )
    box = [AttachedShape(Box((0.01, 0.01, 0.01)))]
    for frames in (("cover",), ("left_tcp", "left_tool")):
        scene = two_arms(frames)
        for side, sign in (("a", 1), ("b", -1)):
            slide = Prismatic(
                (0, sign, 0), lower=0.0, upper=0.05, velocity=1.0, name=f"grip_{side}"
            )
            near = Pose((0, sign * 0.01, 0))
            scene = scene.add_frame(
                f"finger_{side}", "left_wrist", pose=near, joint=slide, shapes=box
            )
        assert suction(semantics, scene).tool == "left_wrist"
        with pytest.raises(
            RobotError, match="say which frame is the tool of the arm 'left'"
        ) as caught:
            manipulator_from_srdf(semantics, scene)
        listed = str(caught.value).split("rigidly joined to its tip are: ")[1].split(", ")
        assert set(listed) == {"left_wrist", *frames}
        hand = manipulator_from_srdf(semantics, scene, hand=HandChoice(tool=frames[0]))
        assert (hand.width_open, hand.width_closed) == (pytest.approx(0.09), pytest.approx(0.01))
        assert hand.contact_links == ("finger_a", "finger_b")


def ready_state(name: str, first: float) -> GroupState:
    """Return a state of the left arm."""
    return GroupState(name, "left", (("left_1", (first,)), ("left_2", (0.25,))))


@pytest.mark.parametrize("word", ["ready", "home", "default", "neutral", "rest", "start", "init"])
def test_the_ready_configuration_is_a_state_of_a_known_name(word: str) -> None:
    """The first state with such a name that fits is taken; ``ready`` comes before all others."""
    states = (ready_state("folded", 0.1), ready_state(f"{word}_0", 0.2))
    arm = suction(RobotSemantics("r", groups=(LEFT,), states=states))
    assert dict(arm.ready) == {"left_1": 0.2, "left_2": 0.25}
    states = (*states, ready_state("Ready!", 0.3))
    arm = suction(RobotSemantics("r", groups=(LEFT,), states=states))
    assert arm.ready["left_1"] == (0.2 if word == "ready" else 0.3)


def test_a_state_that_does_not_fit_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """A state beyond the limits is logged, and a posture within the limits is ready."""
    semantics = RobotSemantics("r", groups=(LEFT,), states=(ready_state("home", 3.5),))
    assert -1.0 <= suction(semantics).ready["left_1"] <= 3.0
    assert (
        "group 'left' is not made ready by it: the state 'home' puts joint 'left_1' at 3.5"
        in caplog.text
    )
    half = Revolute((0, 1, 0), lower=0.5, upper=math.inf, velocity=1.0, name="left_2")
    assert suction(semantics, two_arms().set_joint("left_wrist", half)).ready["left_2"] >= 0.5
    half = Revolute((0, 1, 0), lower=-math.inf, upper=-0.5, velocity=1.0, name="left_2")
    assert suction(semantics, two_arms().set_joint("left_wrist", half)).ready["left_2"] <= -0.5


# --- passive joints

FINGER = '<passive_joint name="panda_finger_joint2"/>'


def test_a_passive_joint_is_none_of_the_arms(
    tmp_path: Path, scene: SceneGraph, caplog: pytest.LogCaptureFixture
) -> None:
    """A passive joint is not a joint of the arm, and a plan does not move it; a warning has it."""
    path = changed(tmp_path, FINGER, f'{FINGER}<passive_joint name="panda_joint3"/>')
    arm = manipulator_from_srdf(path, scene, group="arm")
    assert [message.split(": ", 1)[1] for message in caplog.messages] == [
        "group 'arm': joint 'panda_joint3' is passive, so the arm does not move it: it keeps its"
        " value"
    ]
    assert arm.joints == tuple(f"panda_joint{number}" for number in (1, 2, 4, 5, 6, 7))
    assert set(arm.ready) == set(arm.joints)
    world = load_scene("panda_table", "blocks1")
    plan = tk.plan(
        world, goal="(holding a)", robot=manipulator_from_srdf(path, world, group="arm"), seed=0
    ).plan
    assert plan is not None
    passive = world.joint_names.index("panda_joint3")
    for step in plan.steps:
        assert step.q[passive] == plan.q[passive]
        assert all("panda_joint3" not in segment.joint_names for segment in step.segments)


def test_a_state_that_contradicts_a_mimic_rule_is_reported(
    tmp_path: Path, scene: SceneGraph, caplog: pytest.LogCaptureFixture
) -> None:
    """The warning has the state, the joint, its value and that of the rule."""
    second = '<joint name="panda_finger_joint2" value="{}"/>'
    close = '<group_state name="close" group="hand">'
    path = changed(tmp_path, close, close + second.format(0.01))
    text = path.read_text(encoding="utf-8")
    opened = '<group_state name="open" group="hand">'
    path.write_text(text.replace(opened, opened + second.format(0.04)), encoding="utf-8")
    manipulator_from_srdf(path, scene, group="arm")
    (message,) = caplog.messages
    assert (
        "the state 'close' of group 'hand' puts joint 'panda_finger_joint2' at 0.01, but it mimics"
        " 'panda_finger_joint1': it will be at 0"
    ) in message


def test_a_passive_joint_before_the_hand_is_refused(tmp_path: Path, scene: SceneGraph) -> None:
    """What no motor holds cannot carry a hand, and the message says which joint it is."""
    path = changed(tmp_path, FINGER, f'{FINGER}<passive_joint name="panda_joint7"/>')
    with pytest.raises(
        RobotError, match=r"is not rigidly joined to .*: the joint 'panda_joint7' is passive"
    ):
        manipulator_from_srdf(path, scene, group="arm")


def test_an_arm_of_passive_joints_is_none(tmp_path: Path, scene: SceneGraph) -> None:
    """Neither by name nor among the groups that may be arms."""
    passive = "".join(f'<passive_joint name="panda_joint{number}"/>' for number in range(1, 8))
    path = changed(tmp_path, FINGER, passive)
    with pytest.raises(
        RobotError, match="the group 'arm' has no joint that moves and is not passive"
    ):
        manipulator_from_srdf(path, scene, group="arm")
    assert "arm" not in arm_groups(read_srdf(path), scene)
