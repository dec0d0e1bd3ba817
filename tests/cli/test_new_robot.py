"""``tmkit new robot``: foreign robots, questions on a terminal, and invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.robots import example_robot
from support.terminal import on_terminal
from typer.testing import CliRunner, Result

from tmkit.cli.commands import app
from tmkit.formats import load_scene, write_json_scene
from tmkit.graph import AttachedShape, Box, Prismatic, Revolute, SceneGraph
from tmkit.robots import load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp.trial_pick import TrialPickStatus, trial_pick


def new_robot(*arguments: str | Path) -> Result:
    """Run the command in this process, without a terminal as standard input."""
    return CliRunner().invoke(app, ["new", "robot", *map(str, arguments)])


@pytest.mark.parametrize(
    ("robot", "options", "hand"),
    [
        ("ur_description/urdf/ur10_robot.urdf", ["--hand", "parallel_gripper"], "parallel"),
        ("ur_description/urdf/ur10_robot.urdf", ["--hand", "suction_cup"], "suction"),
        ("kinova_description/robots/kinova.urdf", ["--hand", "parallel_gripper"], "parallel"),
        ("tiago_description/robots/tiago_no_hand.urdf", ["--hand", "parallel_gripper"], "parallel"),
        ("tiago_pro_description/robots/tiago_pro.urdf", [], "parallel"),
        ("pr2_description/urdf/pr2.urdf", ["--tip", "l_wrist_roll_link"], "parallel"),
        ("panda_description/urdf/panda.urdf", [], "parallel"),
        ("so_arm_description/urdf/so101.urdf", [], "jaw"),
    ],
)
def test_robots_that_do_not_ship_pick(
    robot: str, options: list[str], hand: str, tmp_path: Path
) -> None:
    """The written description suffices to pick a cube."""
    toml = tmp_path / "mine.toml"
    run = new_robot(example_robot(robot), "--out", toml, *options)
    assert run.exit_code == 0, run.output
    assert "trial pick: 'mine' picks a cube of 4 cm, looking down" in run.stdout
    arm = load_manipulator(toml)
    assert arm.gripper_kind == hand
    scene = load_scene(
        toml.with_suffix(".json") if toml.with_suffix(".json").exists() else example_robot(robot)
    )
    assert trial_pick(scene, arm).status is TrialPickStatus.PICKED


@pytest.mark.parametrize(
    ("robot", "options", "sentence"),
    [
        (
            "ur_description/urdf/ur10_robot.urdf",
            [],
            "no gripper found: below 'wrist_3_link' nothing opens and closes",
        ),
        ("kinova_description/robots/kinova.urdf", [], "no gripper found: below 'j2s6s200_link_6'"),
        ("tiago_description/robots/tiago.urdf", [], "the hand at 'arm_7_link' has 36 joints"),
    ],
)
def test_the_missing_part_is_one_sentence(
    robot: str, options: list[str], sentence: str, tmp_path: Path
) -> None:
    """The exit code is 1, and nothing is written."""
    run = new_robot(example_robot(robot), "--out", tmp_path / "mine.toml", *options)
    assert run.exit_code == 1
    assert run.stdout.splitlines()[-1].startswith(f"missing: {sentence}")
    assert list(tmp_path.iterdir()) == []


def arm(*, prefix: str = "", sideways: float = 0.0, hand: bool = True) -> SceneGraph:
    """Return an arm of six joints at one side, with two fingers or without a hand."""
    axes = ((0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1))
    heights = (0.1, 0.1, 0.25, 0.1, 0.15, 0.08)
    link, finger = (
        [AttachedShape(Box((0.03, 0.03, 0.03)))],
        [AttachedShape(Box((0.02, 0.01, 0.05)))],
    )
    scene = SceneGraph().add_frame(f"{prefix}base", "world", pose=Pose((0.0, sideways, 0.3)))
    above = f"{prefix}base"
    for number, (axis, height) in enumerate(zip(axes, heights, strict=True)):
        joint = Revolute(axis, lower=-2.8, upper=2.8, velocity=1, name=f"{prefix}j{number}")
        scene = scene.add_frame(
            f"{prefix}link{number}", above, pose=Pose((0, 0, height)), joint=joint, shapes=link
        )
        above = f"{prefix}link{number}"
    for sign, name in ((1, "left"), (-1, "right")) if hand else ():
        joint = Prismatic((0, sign, 0), lower=0.0, upper=0.03, velocity=1, name=f"{prefix}{name}")
        pose = Pose((0, 0.005 * sign, 0.07))
        scene = scene.add_frame(
            f"{prefix}{name}_side", above, pose=pose, joint=joint, shapes=finger
        )
    return scene


def write_robot(scene: SceneGraph, folder: Path) -> Path:
    """Write a robot to an empty folder of the test, and return the file."""
    (folder / "robots").mkdir()
    path = folder / "robots" / "r.json"
    write_json_scene(scene, path)
    return path


def test_a_terminal_prompts_for_uncertain_properties(tmp_path: Path) -> None:
    """Prompts for the arm, the hand and the ready configuration repeat after invalid input."""
    robot = write_robot(
        arm(prefix="l_", sideways=0.8).merge(arm(prefix="r_", sideways=-0.8)), tmp_path
    )
    answers = "x_link5\nr_link5\ny\nj0=0.1\nr_j0=0.1,r_j1=0.5\n"
    run = on_terminal("new", "robot", str(robot), folder=tmp_path, answers=answers, columns=200)
    assert run.code == 0, run.text
    assert "Which arm, by the frame of its hand? l_link5, r_link5 [l_link5]: " in run.text
    assert "Is this the hand? [Y/n]: " in run.text
    assert "Ready configuration: joint=value,... [as inferred]: " in run.text
    assert run.text.count("Error: ") == 2
    described = load_manipulator(tmp_path / "r.toml")
    assert (described.tip, described.ready["r_j0"], described.ready["r_j1"]) == (
        "r_link5",
        0.1,
        0.5,
    )
    described.check(load_scene(tmp_path / "r.json"))
    assert (
        (tmp_path / "r.toml")
        .read_text(encoding="utf-8")
        .startswith("# The arm of r.json, inferred by 'tmkit new")
    )


def test_a_terminal_prompts_for_a_hand(tmp_path: Path) -> None:
    """A missing file is rejected and the prompt repeated; a built-in hand is mounted."""
    robot = write_robot(arm(hand=False), tmp_path)
    run = on_terminal(
        "new", "robot", str(robot), folder=tmp_path, answers="./no.urdf\nparallel_gripper\n\n\n"
    )
    assert run.code == 0, run.text
    question = "A hand to mount: a file, parallel_gripper, suction_cup, or none for no gripper"
    assert f"{question} [none]: " in " ".join(run.text.split())
    assert load_manipulator(tmp_path / "r.toml").gripper_joints == ("gripper_opening",)


def test_an_arm_without_a_gripper_is_described(tmp_path: Path) -> None:
    """``--hand none``, or no hand at the prompt, writes the gripper kind ``none`` after a check."""
    robot, toml = write_robot(arm(hand=False), tmp_path), tmp_path / "mine.toml"
    run = new_robot(robot, "--hand", "none", "--out", toml)
    assert run.exit_code == 0, run.output
    assert "inferred: gripper: none, as given" in run.stdout
    assert "trial pick: none, since the arm 'mine' has no gripper" in run.stdout
    described = load_manipulator(toml)
    assert (described.gripper_kind, described.tool) == ("none", "link5")
    assert (
        'kind = "none"  # "parallel", "jaw" against a fixed finger, "suction", or "none" without'
        in toml.read_text("utf-8")
    )
    check = CliRunner().invoke(app, ["robot", "check", str(robot), "--robot", str(toml)])
    assert check.exit_code == 0, check.output
    assert "  arm of 6 joints from 'base' to 'link5', no gripper\n" in check.stdout
    assert "  trial pick: none, since the arm 'mine' has no gripper\n" in check.stdout
    prompted = on_terminal("new", "robot", str(robot), folder=tmp_path, answers="\n\n")
    assert prompted.code == 0, prompted.text
    assert load_manipulator(tmp_path / "r.toml").gripper_kind == "none"


def test_a_hand_is_not_ignored(tmp_path: Path) -> None:
    """``--hand none`` on a robot with a gripper is rejected, and nothing is written."""
    run = new_robot(write_robot(arm(), tmp_path), "--hand", "none", "--out", tmp_path / "a.toml")
    assert run.exit_code == 2
    text = " ".join(run.output.replace("│", " ").split())
    assert "'link5' has a parallel gripper; leave the option out" in text, text
    assert not (tmp_path / "a.toml").exists()


@pytest.mark.parametrize(
    ("options", "answers", "code"), [(["--yes"], "", 0), ([], "\nn\n", 1), ([], "\x04", 130)]
)
def test_prompts_can_be_skipped(
    options: list[str], answers: str, code: int, tmp_path: Path
) -> None:
    """``--yes`` prompts for nothing; a rejected hand and the end of the input write no file."""
    robot = write_robot(
        arm(prefix="l_", sideways=0.8).merge(arm(prefix="r_", sideways=-0.8)), tmp_path
    )
    run = on_terminal("new", "robot", str(robot), *options, folder=tmp_path, answers=answers)
    assert run.code == code, run.text
    assert ("?" in run.text) is not options
    assert (tmp_path / "r.toml").exists() is (code == 0)


def test_shapes_that_overlap_by_their_making_may_touch(tmp_path: Path) -> None:
    """A cover may touch its link, which is printed; without permission it blocks the arm."""
    cover = [AttachedShape(Box((0.06, 0.06, 0.06)))]
    robot = write_robot(
        arm().add_frame("cover", "base", pose=Pose((0, 0, 0.2)), shapes=cover), tmp_path
    )
    run = new_robot(robot, "--out", tmp_path / "mine.toml")
    assert run.exit_code == 0, run.output
    line = "collisions: 'link1' and 'cover' overlap in most configurations: allowed"
    assert f"inferred: {line}\n" in run.stdout
    assert f"# {line}\n" in (tmp_path / "mine.toml").read_text(encoding="utf-8")
    allowed = load_scene(tmp_path / "mine.json").allowed_pairs
    assert {frozenset(pair[:2]): pair[2] for pair in allowed}[
        frozenset(("cover", "link1"))
    ] == "always"
    refused = on_terminal(
        "new", "robot", str(robot), folder=tmp_path, answers="n\n\n\n", columns=300
    )
    assert refused.code == 1
    assert "missing: 'link1' and 'cover' collide in every configuration" in refused.text


def test_ready_is_a_flag(tmp_path: Path) -> None:
    """Omitted joints stay as inferred; unknown joints and values out of limits are rejected."""
    robot, toml = write_robot(arm(), tmp_path), tmp_path / "r.toml"
    for text, words in (
        ("j9=0", "unknown joint 'j9'"),
        ("j0=7", "outside its limits"),
        ("j0", "not of the form"),
    ):
        run = new_robot(robot, "--out", toml, "--ready", text)
        assert words in str(run.exception)
    assert new_robot(robot, "--out", toml, "--ready", "j0=1").exit_code == 0
    assert load_manipulator(toml).ready["j0"] == 1.0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not well-formed XML"),
        ("<robot name='r'><link", "is not well-formed XML"),
        ("<robot name='r'><link name='a'/></robot>", "no joint moves"),
        ("\x00\x01", "is not well-formed XML"),
        ("<sdf/>", "robot"),
    ],
)
def test_files_that_are_no_robots(content: str, words: str, tmp_path: Path) -> None:
    """Each file gives an error message and no output file."""
    path = tmp_path / "r.urdf"
    path.write_text(content, encoding="utf-8")
    run = new_robot(path, "--out", tmp_path / "r.toml")
    assert run.exit_code == 1  # of the runner; the command ends with 2
    assert words in str(run.exception)
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """An existing description or scene is an error before the work is done."""
    robot, toml = write_robot(arm(), tmp_path), tmp_path / "mine.toml"
    for existing in (toml, toml.with_suffix(".json")):
        existing.write_text("precious", encoding="utf-8")
        run = new_robot(robot, "--out", toml)
        assert f"{existing}: cannot be written: it exists; choose another name by --out" in str(
            run.exception
        )
        assert existing.read_text(encoding="utf-8") == "precious"
        existing.unlink()
    assert "does not end in .toml" in " ".join(new_robot(robot, "--out", "r.json").output.split())


def test_a_mounted_hand_is_the_hand(tmp_path: Path) -> None:
    """A hand that is mounted on a robot with fingers is described, not the fingers beside it."""
    robot, toml = write_robot(arm(), tmp_path), tmp_path / "mine.toml"
    run = new_robot(robot, "--hand", "suction_cup", "--out", toml)
    assert "beside the hand is 'left_side' (ends" in run.output
    described = load_manipulator(toml)
    assert (described.gripper_kind, described.tip) == ("suction", "suction_stem")
