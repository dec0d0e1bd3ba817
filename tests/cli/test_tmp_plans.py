"""Plan files of the original, ``.tmp``: written, validated, simulated, and used as a start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.commands import tmkit

from tmkit.cli import ExitCode

GOAL = "(ontable a table__0__1)"
FOR = ("--scene", "panda_table", "--scene", "blocks1", "--robot", "panda", "--domain", "blocks")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same plan in both formats."""
    folder = tmp_path_factory.mktemp("plans")
    for name in ("plan.tmp", "plan.json"):
        outcome = tmkit(folder, "plan", "panda_table", "blocks1", "--goal", GOAL, "-o", name)
        assert outcome.code == ExitCode.DONE, outcome
    return folder


def test_a_tmp_plan_is_checked_and_simulated(folder: Path) -> None:
    """A .tmp plan is valid for its scene, arm, domain and goal, and can be simulated."""
    checked = tmkit(folder, "check", "plan.tmp", *FOR, "--goal", GOAL, "--json")
    assert checked.code == ExitCode.DONE, checked
    assert json.loads(checked.out)["ok"] is True
    played = tmkit(folder, "simulate", "plan.tmp", *FOR, "--goal", GOAL, "--json")
    assert played.code == ExitCode.DONE, played
    assert list(json.loads(played.out)["errors"]) == ["a"]


def test_arm_and_domain_have_the_defaults_of_planning(folder: Path) -> None:
    """By default the arm is the Panda and the domain blocks, without a goal."""
    outcome = tmkit(folder, "check", "plan.tmp", "--scene", "panda_table", "--scene", "blocks1")
    assert (outcome.code, outcome.out.endswith("the plan is valid\n")) == (ExitCode.DONE, True), (
        outcome
    )


def test_a_goal_that_is_not_reached_is_a_problem(folder: Path) -> None:
    """The plan is checked against the goal of the option."""
    outcome = tmkit(folder, "check", "plan.tmp", *FOR, "--goal", "(holding a)")
    assert outcome.code == ExitCode.NO
    assert "(holding a)" in outcome.out


def test_start_sets_the_other_joints(folder: Path) -> None:
    """A .tmp plan without a first configuration starts at ``--start``."""
    text = (folder / "plan.tmp").read_text()
    lines = text[: text.index("a pick-up")].splitlines()
    (folder / "q0.tmp").write_text("\n".join(line for line in lines if line[0] in "mp") + "\n")
    (folder / "headless.tmp").write_text(text[text.index("a pick-up") :])
    start = ("--start", "q0.tmp")
    assert tmkit(folder, "check", "headless.tmp", *FOR, *start).code == ExitCode.DONE
    outcome = tmkit(folder, "check", "headless.tmp", *FOR, "--start", "panda_joint1=0.5")
    assert (outcome.code, "pick-up" in outcome.out) == (ExitCode.NO, True), outcome


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "plan.tmp"), ["--scene", "'plan.tmp' is a .tmp plan", "--scene panda_table"]),
        (("simulate", "plan.tmp", "--robot", "panda"), ["--scene", "'plan.tmp' is a .tmp plan"]),
        (("check", "plan.json", "--allow", "."), ["--allow", "'plan.json' contains this"]),
        (("check", "plan.json", "--goal", GOAL), ["--goal", "'plan.json' contains this"]),
        (("simulate", "plan.json", "--robot", "panda"), ["--robot", "'plan.json' contains this"]),
        (
            ("simulate", "plan.json", "--domain", "sorting"),
            ["plan.json: its domain 'blocks'", "is not the one"],
        ),
        (("check", "none.tmp", *FOR), ["none.tmp"]),
        (
            ("check", "plan.tmp", "--scene", "panda_table"),
            ["plan.tmp:", "the scene has no object 'a'"],
        ),
        (
            ("check", "plan.tmp", *FOR, "--goal", "(on a"),
            ["goal:1:1: this parenthesis is never closed"],
        ),
        (("check", "plan.tmp", *FOR, "--start", "panda_joint9=1"), ["--start", "panda_joint9"]),
    ],
)
def test_invalid_options_are_rejected(
    folder: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    """A missing scene, superfluous options and wrong files and names are clear errors."""
    outcome = tmkit(folder, *arguments)
    assert (outcome.code, outcome.out) == (ExitCode.BAD_INPUT, ""), outcome
    assert "Traceback" not in outcome.err
    text = " ".join(outcome.err.replace("│", " ").split())
    for word in words:
        assert word in text, (word, outcome.err)


def test_a_json_plan_is_compared_with_scene_and_arm(folder: Path) -> None:
    """Equal ones give no problem, others one for each frame and arm."""
    same = tmkit(folder, "check", "plan.json", *FOR[:-2])
    assert (same.code, same.out) == (ExitCode.DONE, same.out[same.out.index("plan.json") :]), same
    other = tmkit(
        folder,
        "check",
        "plan.json",
        "--scene",
        "panda_table",
        "--scene",
        "blocks2",
        "--robot",
        "panda",
    )
    assert other.code == ExitCode.NO
    assert "the plan's scene lacks your frame 'b'" in other.out
    alone = tmkit(folder, "check", "plan.json")
    assert alone.code == ExitCode.DONE
    assert "note: the validity depends on the plan's own scene of 16 frames" in alone.out


def test_the_goal_of_a_plan_that_tmkit_wrote_is_checked(folder: Path) -> None:
    """The goal of the header is the default, and is a problem if it is not reached."""
    text = (folder / "plan.tmp").read_text()
    assert f"# Goal: {GOAL}\n" in text
    (folder / "other.tmp").write_text(text.replace(GOAL, "(holding a)"))
    outcome = tmkit(folder, "check", "other.tmp", *FOR)
    assert outcome.code == ExitCode.NO
    assert "(holding a)" in outcome.out


@pytest.mark.parametrize("command", ["plan", "check", "simulate"])
def test_the_help_mentions_tmp_files(folder: Path, command: str) -> None:
    """The help lists .tmp files for plans and starts."""
    assert ".tmp" in tmkit(folder, command, "--help").out
