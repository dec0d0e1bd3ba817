"""Goals on the command line that PDDL cannot express."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import tmkit as tk
from tmkit import cli
from tmkit.cli.inputs import GoalOptions, name_goal_frames, read_goals
from tmkit.errors import ConfigurationError, FileFormatError, MissingFileError
from tmkit.plans import ArmAt, ObjectAt, ObjectIn
from tmkit.plans.continuous_goals import ContinuousGoal

Run = Callable[..., tuple[int, str, str]]
PLAN = ("plan", "panda_table", "blocks2")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in this process, in an empty folder; return exit code and outputs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tmkit", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return command


def goals_of(
    goal: str | None = None,
    *,
    at: str | None = None,
    inside: str | None = None,
    arm: str | None = None,
    file: Path | None = None,
) -> str | list[str | ContinuousGoal] | None:
    """Return the goals of options that occur once each."""
    options = GoalOptions(
        goal=goal,
        goal_at=[at] if at else None,
        goal_in=[inside] if inside else None,
        goal_arm=arm,
        goal_file=file,
    )
    return read_goals(options)


def test_options_become_goals() -> None:
    """Points, poses, regions and joints join a PDDL goal; PDDL alone stays text."""
    assert goals_of() is None
    assert goals_of("(on a b)") == "(on a b)"
    point = ObjectAt("a", tk.Pose([0.1, -0.2, 0.3]), relative_to="table", radians=None)
    assert goals_of(at="a@table=0.1,-0.2,0.3") == [point]
    pose = ObjectAt("a", tk.Pose.from_rpy([0.1, -0.2, 0.3], [0.0, 0.0, 0.4]), relative_to="table")
    assert goals_of("(on a b)", at="a @ table = 0.1, -0.2, 0.3, 0, 0, 0.4") == ["(on a b)", pose]
    centre = ObjectAt("a", "center", relative_to="tray")
    assert goals_of(at="a@tray=center") == [centre]
    assert goals_of(inside="a@tray", arm="j1=0.5,j2=-1") == [
        ObjectIn("a", "tray"),
        ArmAt({"j1": 0.5, "j2": -1.0}),
    ]


def test_a_goal_file_has_goals_of_all_kinds(tmp_path: Path) -> None:
    """PDDL and other goals in one list; omitted tolerances have the default values."""
    file = tmp_path / "goals.json"
    pose = [0.1, 0.2, 0.05, 0.0, 0.0, 0.0, 1.0]
    exact = ObjectAt(
        "b", tk.Pose([0.1, 0.2, 0.05]), relative_to="table", metres=0.002, radians=None
    )
    goals = [
        "(handempty)",
        {"object": "a", "at": "table", "pose": pose},
        exact.to_dict(),
        {"object": "a", "in": "tray"},
        {"joints": {"j1": 0.5}},
    ]
    file.write_text(json.dumps(goals))
    assert goals_of(file=file) == [
        "(handempty)",
        ObjectAt("a", tk.Pose([0.1, 0.2, 0.05]), relative_to="table"),
        exact,
        ObjectIn("a", "tray"),
        ArmAt({"j1": 0.5}),
    ]


@pytest.mark.parametrize(
    ("option", "text", "reason"),
    [
        ("at", "a=0,0,0", "--goal-at: 'a=0,0,0' is not of the form OBJECT@FRAME=X,Y,Z"),
        ("at", "a@table=0,0", "--goal-at"),
        ("at", "a@table=0,0,zero", "--goal-at"),
        ("at", "a@table", "--goal-at"),
        ("inside", "a", "--goal-in: 'a' is not of the form OBJECT@REGION"),
        ("inside", "@tray", "--goal-in"),
        ("arm", "j1", "--goal-arm: 'j1' is not of the form joint=number"),
        ("arm", "j1=1,j1=2", "--goal-arm: joint 'j1' is given twice"),
    ],
)
def test_options_of_another_form_are_rejected(option: str, text: str, reason: str) -> None:
    """The message contains the option, its value and the expected form."""
    with pytest.raises(ConfigurationError, match=reason):
        goals_of(**{option: text})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "at least one goal"),
        ('{"object": "a"}', "expected a list"),
        ('["(on a b)", {"object": "a"}]', r"\[1\]: needs the key 'at'"),
        ('[{"joints": {"j1": "x"}}]', r"\[0\].joints.j1: expected a finite number"),
        ('[{"joints": {"j1": 0}, "tolerance": 0}]', r"\[0\]: tolerance of a goal must be positive"),
        ("[", "is not JSON"),
        ("[" * 100000, "is nested too deeply"),
    ],
)
def test_invalid_goal_files_are_rejected(text: str, reason: str, tmp_path: Path) -> None:
    """The message names the file and the value."""
    file = tmp_path / "goals.json"
    file.write_text(text)
    with pytest.raises(FileFormatError, match=reason):
        goals_of(file=file)
    with pytest.raises(MissingFileError, match="there is no goal file"):
        goals_of(file=tmp_path / "none.json")


def test_the_command_plans_for_goals(run: Run) -> None:
    """The plan reaches its exact goals, which its file contains."""
    goals = (
        "--goal",
        "(handempty)",
        "--goal-at",
        "a@table=-0.12,0.11,0.05",
        "--goal-arm",
        "panda_joint1=0.5",
    )
    code, _, err = run(*PLAN, *goals, "-o", "plan.json")
    assert code == cli.ExitCode.DONE, err
    plan = tk.load_plan("plan.json")
    assert [type(goal) for goal in plan.continuous_goals] == [ObjectAt, ArmAt]
    assert tk.validate_plan(plan).is_valid
    code, output, _ = run("check", "plan.json")
    assert code == cli.ExitCode.DONE
    assert "the plan is valid" in output


def test_goals_name_links_by_joints_and_parts() -> None:
    """Names of joints that move and of parts of links are those of links; others are kept."""
    scene = tk.load_scene("panda_table", "blocks1")
    near = ObjectAt("a", tk.Pose([0.1, 0.0, 0.0]), relative_to="panda_joint7")
    assert name_goal_frames(near, scene) == replace(near, relative_to="panda_link7")
    inside = ObjectIn("a", "table-visual")
    assert name_goal_frames(inside, scene) == ObjectIn("a", "table")
    unknown = ObjectIn("a", "tabel-visual")
    assert name_goal_frames(unknown, scene) == unknown
    assert name_goal_frames("(holding a)", scene) == "(holding a)"


def test_unknown_names_are_rejected(run: Run) -> None:
    """The message about an object, frame or joint suggests the nearest name."""
    for options, words in (
        (("--goal-at", "a@tabel=0,0,0.05"), "table"),
        (("--goal-arm", "panda_joint11=0"), "panda_joint1"),
        (("--goal-at", "a@table=0,0"), "OBJECT@FRAME"),
        (("--goal-at", "a@table=0,0,0.05", "--problem", "x.pddl"), "no file 'x.pddl'"),
    ):
        code, output, err = run(*PLAN, *options)
        assert (code, output) == (cli.ExitCode.BAD_INPUT, ""), err
        assert words in err
        assert "Traceback" not in err


@pytest.mark.parametrize(
    ("goals", "message"),
    [
        (["(on a"], r"goals.json: goal:1:1: this parenthesis is never closed"),
        ([{"joints": {"nojoint": 0.1}}], r"goals.json: [0]: unknown joint 'nojoint'"),
        (["(on a b)", {"object": "zz", "in": "table"}], r"goals.json: [1]: unknown frame 'zz'"),
    ],
)
def test_errors_of_a_goal_file_name_it(
    run: Run, tmp_path: Path, goals: list[object], message: str
) -> None:
    """Also errors that need the domain and the scene."""
    (tmp_path / "goals.json").write_text(json.dumps(goals))
    code, _, err = run(*PLAN, "--goal-file", "goals.json")
    assert (code, message in " ".join(err.split())) == (2, True), err


def test_errors_of_start_and_robot_files_name_them(run: Run, tmp_path: Path) -> None:
    """A joint of ``--start FILE`` and a tip of ``--robot FILE`` that the scene lacks."""
    (tmp_path / "start.json").write_text('{"nojoint": 0.1}')
    code, _, err = run(*PLAN, "--goal", "(on a b)", "--start", "start.json")
    assert (code, "--start start.json: unknown joint 'nojoint'" in err) == (2, True), err
    arm = (Path(tk.__file__).parents[1] / "scenes" / "robots" / "panda.toml").read_text()
    (tmp_path / "arm.toml").write_text(re.sub(r"(?m)^tip = .*$", 'tip = "nowhere"', arm))
    code, _, err = run(*PLAN, "--goal", "(on a b)", "--robot", "arm.toml")
    assert (code, "arm.toml: tip names frame 'nowhere'" in err) == (2, True), err


def test_errors_of_a_plan_name_its_file(run: Run, tmp_path: Path) -> None:
    """A goal or domain of a plan that only the check rejects."""
    assert run(*PLAN, "--goal", "(on a b)", "-o", "plan.json")[0] == 0
    document = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "goal.json").write_text(json.dumps(document | {"goal": "(foo a)"}))
    (tmp_path / "domain.json").write_text(
        json.dumps(document | {"domain": document["domain"] | {"name": "nothing"}})
    )
    for file, message in (
        ("goal.json", "goal:1:2: unknown predicate 'foo'"),
        ("domain.json", "the plan's domain 'nothing'"),
    ):
        code, _, err = run("check", file)
        assert (code, f"{file}: {message}" in err) == (2, True), err
