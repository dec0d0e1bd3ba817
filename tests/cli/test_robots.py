"""``tmkit robot check``: output for a small robot, written files, and rejected options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tmkit.cli.commands import app
from tmkit.formats import load_scene
from tmkit.formats.srdf import read_srdf
from tmkit.robots import infer_arm

BOX = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
URDF = f"""<robot name="r"><link name="base">{BOX}</link><link name="a"/><link name="b">{BOX}</link>
<link name="c">{BOX}</link>
<joint name="turn" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1.5" effort="1" velocity="2"/></joint><joint name="slide" type="prismatic">
<parent link="a"/><child link="b"/><origin xyz="0 0 0.2"/><axis xyz="0 0 1"/>
<limit lower="0" upper="0.005" effort="1" velocity="0.5"/></joint>
<joint name="spin" type="continuous">
<parent link="b"/><child link="c"/><origin xyz="0 0 0.5"/><axis xyz="0 0 1"/></joint></robot>
"""
NO_GRIPPER = (
    "no gripper found: below 'c' nothing opens and closes, and no link is named after a suction cup"
)


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    """Return the file of a robot of three joints, one without limits, without a gripper."""
    path = tmp_path / "r.urdf"
    path.write_text(URDF, encoding="utf-8")
    return path


def check(*arguments: str | Path) -> Result:
    """Check a robot with few samples."""
    return CliRunner().invoke(app, ["robot", "check", *map(str, arguments), "--samples", "5"])


def test_the_report_of_a_robot_without_a_gripper(urdf: Path) -> None:
    """The report has joints with limits, chains, arm, pairs and the missing part."""
    run = check(urdf)
    assert run.exit_code == 1
    *lines, missing, report = run.stdout.splitlines()
    assert lines == [
        "  turn   revolute     -1.000 to    1.500 rad    2.000 rad/s",
        "  slide  prismatic     0.000 to    0.005 m      0.500 m/s",
        "* spin   continuous     none to     none rad  no speed limit",
        "  chain of 3 joints from 'base' to 'c'",
        "  arm of 3 joints from 'base' to 'c', no gripper",
        "  1 checked pairs never collided",
        "  note: the continuous joint 'spin' has no speed limit; 1 is taken",
        "  inferred: arm: 3 joints from 'base' to 'c'",
    ]
    assert missing.startswith(f"  missing: {NO_GRIPPER}")
    assert report == "incomplete: 0 of 5 configurations collide, 5 of 5 poses reached"
    assert "valid" not in run.stdout
    answer = json.loads(check(urdf, "--json").stdout)
    assert (answer["ok"], answer["status"], answer["robot"]["joints"]) == (
        False,
        "valid",
        ["turn", "slide", "spin"],
    )
    assert (answer["robot"]["name"], answer["samples"]) == ("r", 5)
    assert answer["inferred"] == ["arm: 3 joints from 'base' to 'c'"]
    assert answer["missing"].startswith(NO_GRIPPER)


def test_pairs_that_always_collide_are_printed(urdf: Path) -> None:
    """Such a pair is reported, and is not a pair that never collides."""
    urdf.write_text(URDF.replace("0 0 0.5", "0 0 -0.2"), encoding="utf-8")
    run = check(urdf)
    assert run.exit_code == 1
    assert "  always in collision: base and c\n  0 checked pairs never collided\n" in run.stdout
    assert "  arm of 3 joints from 'base' to 'c', no gripper\n" in run.stdout


def test_the_srdf_file_contains_the_arm(urdf: Path, tmp_path: Path) -> None:
    """Its groups, states and disabled pairs are read back with their reasons."""
    srdf = tmp_path / "r.srdf"
    check(urdf, "--write-srdf", srdf)
    arm = infer_arm(load_scene(urdf)).robot
    written = read_srdf(srdf)
    assert (written.group_names, written.end_effectors) == (("arm",), ())
    (ready,) = written.states
    assert (ready.name, ready.group) == ("ready", "arm")
    assert dict(ready.values) == {joint: (value,) for joint, value in arm.ready.items()}
    assert {frozenset((pair.link1, pair.link2)): pair.reason for pair in written.disabled} == {
        frozenset(("base", "b")): "Adjacent",
        frozenset(("b", "c")): "Adjacent",
        frozenset(("base", "c")): "Never",
    }


def test_an_arm_with_a_hand_is_valid_without_a_trial(tmp_path: Path) -> None:
    """Nothing is inferred; the hand becomes a group with two states and an end effector."""
    run = check(
        "panda_alone", "--robot", "panda", "--no-trial", "--write-srdf", tmp_path / "p.srdf"
    )
    assert run.exit_code == 0, run.output
    assert "  arm of 7 joints from 'panda_link0' to 'panda_hand', parallel gripper\n" in run.stdout
    assert not any(word in run.stdout for word in ("inferred", "trial", "missing", "problem"))
    written = read_srdf(tmp_path / "p.srdf")
    assert written.group_names == ("arm", "hand")
    assert [(state.name, state.group) for state in written.states] == [
        ("ready", "arm"),
        ("open", "hand"),
        ("closed", "hand"),
    ]
    assert dict(written.states[1].values) == {"panda_finger_joint1": (0.04,)}
    (effector,) = written.end_effectors
    assert (effector.name, effector.parent_link, effector.group, effector.parent_group) == (
        "gripper",
        "panda_hand",
        "hand",
        "arm",
    )
    answer = json.loads(check("panda_alone", "--robot", "panda", "--no-trial", "--json").stdout)
    assert (answer["ok"], answer["missing"], answer["inferred"]) == (True, "", [])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--robot", "panda", "--base", "base"], "these are for an inferred arm"),
        (["--robot", "panda", "--tip", "c"], "these are for an inferred arm"),
    ],
)
def test_conflicting_options_are_rejected(
    urdf: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str
) -> None:
    """Options of an inferred arm beside ``--robot`` and other files are rejected early."""
    monkeypatch.chdir(urdf.parent)
    run = check(urdf, *options)
    assert run.exit_code == 2
    assert words in " ".join(run.output.replace("│", " ").split())
    assert list(urdf.parent.iterdir()) == [urdf]


@pytest.mark.parametrize("option", ["--write-srdf", "--picture", "--trial-picture"])
def test_outputs_that_cannot_be_written_are_rejected_first(urdf: Path, option: str) -> None:
    """The missing folder is named before the missing scene."""
    pytest.importorskip("matplotlib")
    suffix = "srdf" if option == "--write-srdf" else "png"
    run = check(urdf.with_name("missing.urdf"), option, urdf.parent / "nowhere" / f"x.{suffix}")
    assert "there is no folder" in str(run.exception)
