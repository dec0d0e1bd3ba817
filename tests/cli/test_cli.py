"""Exit codes, messages, atomic outputs and interrupts of the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.processes import HANG, Process, run_process

import tmkit as tk
from tmkit import cli
from tmkit.cli import ExitCode, planning
from tmkit.simulation.report import SimulationNote

TMKIT = [sys.executable, "-m", "tmkit.cli"]


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["tmkit", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), captured.out, captured.err)

    return command


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a valid plan."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    result = tk.plan(tk.load_scene("panda_table", "blocks1"), goal="(ontable a table__0__0)")
    assert result.plan is not None
    tk.save_plan(result.plan, path)
    return path


def assert_rejected(outcome: Outcome, *words: str) -> None:
    """Check that a command rejects its input with a message that contains some words."""
    assert outcome.code == ExitCode.BAD_INPUT, outcome
    assert "Traceback" not in outcome.err + outcome.out
    assert outcome.out == ""
    for word in words:
        assert word in outcome.err, (word, outcome.err)


GOAL = ("--goal", "(on a b)")
PLAN = ("plan", "panda_table", "blocks2")


# --- actions


def test_version(run: Run) -> None:
    """``--version`` prints the version and no more."""
    assert run("--version") == Outcome(0, f"tmkit {tk.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments", [("--help",), ("plan", "--help"), ("scene", "--help"), ("check", "--help")]
)
def test_help(run: Run, arguments: tuple[str, ...]) -> None:
    """Help goes to the standard output."""
    outcome = run(*arguments)
    assert outcome.code == 0
    assert "Usage:" in outcome.out
    assert outcome.err == ""


def test_plan_writes_a_valid_plan(run: Run, tmp_path: Path) -> None:
    """The plan is written, its actions are listed, and its check succeeds."""
    outcome = run(*PLAN, *GOAL, "-o", "plan.json", "--seed", "1")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "Found 2 actions with their motions for (on a b), after 1 task plan.",
        "  1. (pick-up a table__-2__1)",
        "  2. (stack a b)",
        "Written to plan.json",
    ]
    assert tk.load_plan(tmp_path / "plan.json").seed == 1
    outcome = run("check", "plan.json")
    assert outcome.code == 0
    verdict, assumed = outcome.out.splitlines()
    assert verdict.startswith("plan.json: 2 actions, ")
    assert verdict.endswith(" configurations: the plan is valid")
    assert assumed.startswith("  note: the validity depends on the plan's own scene of 17 frames")


def test_a_plan_need_not_be_written(run: Run, tmp_path: Path) -> None:
    """Without ``-o`` nothing is written."""
    assert run(*PLAN, *GOAL).code == 0
    assert list(tmp_path.iterdir()) == []


def test_json_results_parse(run: Run, plan_file: Path) -> None:
    """With ``--json`` the standard output is one JSON document."""
    answer = json.loads(run(*PLAN, *GOAL, "--json").out)
    assert (answer["status"], answer["actions"]) == (
        "solved",
        ["(pick-up a table__-2__1)", "(stack a b)"],
    )
    answer = json.loads(run("check", plan_file, "--json").out)
    assert (answer["ok"], answer["problems"], answer["actions"]) == (True, [], 2)
    answer = json.loads(run("scene", "dump", "panda_table", "--json").out)
    assert answer["frames"][0]["name"] == "world"
    assert answer["frames"][0]["parent"] is None
    assert {"name", "parent", "body", "type", "translation", "quat_xyzw"} <= set(
        answer["frames"][-1]
    )


def test_a_scene_is_shown_as_a_tree(run: Run) -> None:
    """``scene dump`` lists the frames, indented below their parents."""
    lines = run("scene", "dump", "panda_table", "blocks1").out.splitlines()
    assert lines[0] == "world"
    assert any(line.startswith("  panda_link0: mesh") for line in lines)
    table = next(number for number, line in enumerate(lines) if line.startswith("  table "))
    assert lines[table].startswith("  table (surface, table): box")
    assert lines[table + 1].startswith("    a ")
    assert len(lines) == len(tk.load_scene("panda_table", "blocks1"))


def test_a_problem_file_and_a_start_file(run: Run, tmp_path: Path) -> None:
    """A PDDL problem may contain the goal, a JSON file or an option the start."""
    (tmp_path / "p.pddl").write_text(
        "(define (problem p) (:domain blocks) (:objects a b - block) (:init) (:goal (on a b)))",
        encoding="utf-8",
    )
    (tmp_path / "start.json").write_text(
        '{"panda_joint1": 0.5, "panda_finger_joint1": 0.01}', encoding="utf-8"
    )
    for start in ("start.json", "panda_joint1=0.5, panda_finger_joint1=0.01"):
        assert (
            run(*PLAN, "--problem", "p.pddl", "--start", start, "-o", f"{len(start)}.json").code
            == 0
        )
    first, second = sorted(path for path in tmp_path.glob("*.json") if path.stem.isdigit())
    assert first.read_bytes() == second.read_bytes()
    plan = tk.load_plan(first)
    start_of = dict(zip(plan.scene.joint_names, plan.q, strict=True))
    assert (
        start_of["panda_joint1"],
        start_of["panda_finger_joint1"],
        start_of["panda_joint4"],
    ) == (0.5, 0.01, -2.2)


def test_simulate_reports(run: Run, plan_file: Path, tmp_path: Path) -> None:
    """A valid plan is simulated, and the report contains the block."""
    outcome = run("simulate", plan_file, "--report", "report.json", "--grasp", "constraint")
    assert outcome.code == 0, outcome
    assert outcome.out.startswith("  a: ")
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert "a" in json.dumps(report)


# --- negative results


def test_no_plan_is_exit_code_1(run: Run, tmp_path: Path) -> None:
    """Without a plan the reason is printed, and nothing is written."""
    outcome = run(*PLAN, *GOAL, "--time-limit", "0.001", "-o", "plan.json")
    assert outcome.code == ExitCode.NO
    assert "found no sequence of actions for (on a b) within the limits" in outcome.out
    assert list(tmp_path.iterdir()) == []
    answer = json.loads(run(*PLAN, *GOAL, "--time-limit", "0.001", "--json").out)
    assert (answer["status"], answer["actions"]) == ("no plan within the limits", [])


def test_proved_unsolvable_is_exit_code_1(run: Run, tmp_path: Path) -> None:
    """A goal that contradicts itself is proved unsolvable."""
    (tmp_path / "small.robray").write_text(
        'include "package://pybullet_data/franka_panda/panda.urdf"\nframe pad { translation [0.5,'
        " 0, -0.02]; isa surface; geometry { shape box; dimension [0.2, 0.1, 0.04]; } }\nframe a {"
        " parent pad; isa movable; translation [-0.1, 0, 0.04];\n  geometry { shape box; dimension"
        " [0.04, 0.04, 0.04]; } }\nframe b { parent pad; isa movable; translation [0.1, 0, 0.04];\n"
        "  geometry { shape box; dimension [0.04, 0.04, 0.04]; } }\nclass surface { }\nclass"
        " movable { }\n",
        encoding="utf-8",
    )
    outcome = run("plan", "small.robray", "--goal", "(and (on a b) (on b a))")
    assert (outcome.code, outcome.err) == (ExitCode.NO, "")
    assert outcome.out.startswith(
        "No sequence of the domain's actions leads from the state of the scene"
    )


def test_a_picture_of_the_collision(run: Run, tmp_path: Path) -> None:
    """A picture shows where motions failed; without failed motions there is none."""
    (tmp_path / "far.robray").write_text(
        "frame shelf { translation [2, 0, 0]; isa surface; geometry { shape box; dimension [0.1,"
        " 0.1, 0.1]; } }\nframe far { parent shelf; isa movable; translation [0, 0, 0.07];\n "
        " geometry { shape box; dimension [0.04, 0.04, 0.04]; } }\n",
        encoding="utf-8",
    )
    outcome = run(
        *PLAN, "far.robray", "--goal", "(on far a)", "--picture", "far.png", "--max-iterations", "1"
    )
    assert (outcome.code, outcome.err) == (ExitCode.NO, "")
    assert "out of the arm's reach, by at least" in outcome.out
    assert outcome.out.endswith("What was in the way: far.png\n")
    assert (tmp_path / "far.png").read_bytes().startswith(b"\x89PNG")
    outcome = run(*PLAN, "--goal", "(on a a)", "--picture", "none.png")
    assert outcome.code == ExitCode.NO
    assert outcome.out.endswith("No picture: no motion was in anything's way.\n")
    assert not (tmp_path / "none.png").exists()
    assert_rejected(run(*PLAN, *GOAL, "--picture", "nowhere/far.png"), "nowhere")


def test_an_invalid_plan_is_exit_code_1(run: Run, plan_file: Path, tmp_path: Path) -> None:
    """A falsified plan fails its check; all problems are listed and counted."""
    document = json.loads(plan_file.read_text(encoding="utf-8"))
    document["goal"] = "(holding a)"
    document["steps"][0]["segments"][0]["path"][0][0] += 0.1
    (tmp_path / "wrong.json").write_text(json.dumps(document), encoding="utf-8")
    outcome = run("check", "wrong.json")
    assert outcome.code == ExitCode.NO
    assert "  by the domain: the goal is not reached: (holding a)" in outcome.out
    assert "transit: it does not start at the configuration of the arm" in outcome.out
    assert " problems\n  note: the validity depends on" in outcome.out
    answer = json.loads(run("check", "wrong.json", "--json").out)
    assert answer["ok"] is False
    assert len(answer["problems"]) >= 2


# --- bad usage


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fly",), ["No such command 'fly'"]),
        (("plan", *GOAL), ["Missing argument", "SCENE"]),
        (("check",), ["Missing argument", "PLAN.json"]),
        ((*PLAN, "--gaol", "x"), ["No such option", "--gaol"]),
        ((*PLAN,), ["--goal", "--problem", "give a goal, in one or several ways"]),
        ((*PLAN, "x.pddl", "--problem", "y.pddl"), ["x.pddl"]),
        ((*PLAN, *GOAL, "--seed", "-1"), ["--seed", "0"]),
        ((*PLAN, *GOAL, "--seed", "one"), ["--seed", "int"]),
        (
            (*PLAN, *GOAL, "--time-limit", "0"),
            ["--time-limit", "must be positive seconds, not 0.0"],
        ),
        ((*PLAN, *GOAL, "--time-limit", "nan"), ["time"]),
        ((*PLAN, *GOAL, "--time-limit", "soon"), ["--time-limit"]),
        (
            ("simulate", "x.json", "--grasp", "glue"),
            ["--grasp", "'glue' is none of contact, constraint"],
        ),
    ],
)
def test_invalid_usage_is_rejected(run: Run, arguments: tuple[str, ...], words: list[str]) -> None:
    """The message contains the option and the expected value."""
    assert_rejected(run(*arguments), *words)


@pytest.mark.parametrize("arguments", [(), ("scene",)])
def test_a_command_is_needed(run: Run, arguments: tuple[str, ...]) -> None:
    """Without a command the help is printed, and the exit code is an error."""
    outcome = run(*arguments)
    assert outcome.code == ExitCode.BAD_INPUT
    assert "Commands" in outcome.out


# --- bad scenes

JOINT = (
    '<joint name="j" type="{type}"><parent link="{parent}"/><child link="b"/><axis xyz="0 0'
    ' 1"/>{limit}</joint>'
)
LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


def urdf(body: str) -> str:
    """Return a robot with two links and the given rest, which begins on line 2."""
    return f'<robot name="r"><link name="a"/><link name="b"/>\n{body}\n</robot>\n'


def solid(geometry: str, origin: str = "") -> str:
    """Return a robot with one link of the given geometry, which is on line 2."""
    shape = f"<collision>{origin}<geometry>\n{geometry}</geometry></collision>"
    return f'<robot name="r"><link name="a">{shape}</link></robot>'


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.urdf", '<robot name="r"><link name="a"></robot>', ["x.urdf:1", "link"]),
        (
            "x.urdf",
            urdf(JOINT.format(type="screw", parent="a", limit=LIMIT)),
            ["x.urdf:2", "'j'", "'screw'"],
        ),
        (
            "x.urdf",
            urdf(JOINT.format(type="revolute", parent="zz", limit=LIMIT)),
            ["x.urdf:2", "'j'", "'zz'"],
        ),
        ("x.urdf", urdf('<link name="a"/>'), ["x.urdf:2", "'a'", "already declared", "x.urdf:1"]),
        (
            "x.urdf",
            urdf(
                JOINT.format(type="fixed", parent="a", limit="")
                + '\n<joint name="k" type="fixed"><parent link="b"/><child link="a"/></joint>'
            ),
            ["x.urdf:", "cycle", "a -> b -> a"],
        ),
        ("x.urdf", solid('<mesh filename="nothing.stl"/>'), ["x.urdf:2", "nothing.stl"]),
        ("x.urdf", solid('<mesh filename="bad.stl"/>'), ["x.urdf:2", "bad.stl", "mesh"]),
        ("x.urdf", solid('<box size="1 -1 1"/>'), ["x.urdf:2", "size", "1 -1 1"]),
        (
            "x.urdf",
            solid('<box size="1 1 1"/>', '<origin xyz="nan 0 0"/>'),
            ["x.urdf:1", "xyz", "'nan'"],
        ),
        (
            "x.robray",
            "frame x {\n geometry { shape box; dimension [1, -1, 1]; } }\n",
            ["x.robray:2:38", "-1"],
        ),
        ("x.robray", "frame x {\n quaternion [0, 0, 0, 0];\n}\n", ["x.robray:2:13", "zero"]),
        (
            "x.robray",
            "frame x {\n translation [0, 0, 0/0];\n}\n",
            ["x.robray:2:22", "division by zero"],
        ),
        ("x.robray", "frame x { parent y; }\nframe y { parent x; }\n", ["x.robray:", "cycle"]),
        (
            "x.robray",
            "frame x { }\nframe x { }\n",
            ["x.robray:2:7", "'x'", "already declared at x.robray:1:7"],
        ),
        ("x.robray", "frame x {\n translation [0, 0\n}\n", ["x.robray:3:1", "'}'", "']'"]),
        (
            "x.robray",
            'frame x {\n geometry { mesh "nothing.stl"; } }\n',
            ["x.robray:2:18", "nothing.stl"],
        ),
        ("x.robray", "\udcff", ["x.robray", "UTF-8"]),
        ("x.json", '{"format": "tmkit-scene",\n', ["x.json:2", "JSON"]),
        ("x.yaml", "", ["x.yaml", "'.yaml'", ".robray, .rsg, .urdf, .sdf, .world, .xml, .usd"]),
    ],
)
def test_an_invalid_scene_is_rejected(
    run: Run, tmp_path: Path, name: str, text: str, words: list[str]
) -> None:
    """Every command that reads scenes names file, line and object of an error."""
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "bad.stl").write_text("this is no mesh", encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    assert_rejected(run("scene", "dump", name), *words)
    assert_rejected(run("plan", name, *GOAL, "-o", "plan.json"), *words)
    assert sorted(tmp_path.iterdir()) == before


def test_a_missing_scene_is_rejected(run: Run, tmp_path: Path) -> None:
    """The message about a missing name or file suggests the nearest one."""
    (tmp_path / "kitchen.robray").write_text("frame x { }", encoding="utf-8")
    assert_rejected(
        run("scene", "dump", "kitchn.robray"),
        "there is no file 'kitchn.robray'; did you mean 'kitchen.robray'?",
    )
    assert_rejected(
        run("scene", "dump", "panda_tabel"),
        "tmkit has no 'panda_tabel' in scenes; did you mean 'panda_table'?",
    )
    assert_rejected(
        run("scene", "dump", "panda"),
        "no 'panda' in scenes, only in scenes/robots (all: tmkit list scenes)",
    )
    assert_rejected(
        run("scene", "dump", "."), "is a folder, but no configuration package of MoveIt"
    )
    assert_rejected(
        run("plan", "blocks2", *GOAL), "blocks2.robray:6:", "parent 'table', which no file declares"
    )
    assert_rejected(
        run("scene", "dump", "blocks1", "blocks1"), "blocks1.robray:5:7", "'a'", "already declared"
    )


# --- bad goals, problems and domains


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("(on a b", ["goal:1:1", "never closed"]),
        ("(on a)", ["goal:1:5", "'on' takes 2 arguments, but 1 was given"]),
        (
            "(on a table__0__0)",
            ["goal:1:7", "must be of type block", "'table__0__0' is of type location"],
        ),
        ("(on a zebra)", ["goal:1:7", "unknown object 'zebra'"]),
        ("(onn a b)", ["goal:1:2", "unknown predicate 'onn'; did you mean 'on'"]),
        ("", ["expected a goal such as (on a b)"]),
    ],
)
def test_an_invalid_goal_is_rejected(run: Run, goal: str, words: list[str]) -> None:
    """Messages about syntax, arity, types and names contain the place."""
    assert_rejected(run(*PLAN, "--goal", goal), *words)
    assert run(*PLAN, "--goal", goal, "--json").out == ""


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("(on a b", ["p.pddl:1:1", "never closed"]),
        ("(on a)", ["p.pddl:4:", "'on' takes 2 arguments"]),
        ("(on a l)", ["p.pddl:4:", "must be of type block"]),
        ("(on a zebra)", ["p.pddl:4:", "unknown object 'zebra'"]),
        ("(on a c)", ["p.pddl", "the scene has no such object: unknown object 'c'"]),
    ],
)
def test_an_invalid_problem_is_rejected(
    run: Run, tmp_path: Path, goal: str, words: list[str]
) -> None:
    """Messages about a problem file contain the place, as for objects that the scene lacks."""
    objects = "a b - block table__0__0 l - location" if " l)" in goal else "a b - block"
    objects += " c - block" if " c)" in goal else ""
    (tmp_path / "p.pddl").write_text(
        f"(define (problem p)\n(:domain blocks) (:objects {objects})\n(:init)\n(:goal {goal}))",
        encoding="utf-8",
    )
    assert_rejected(run(*PLAN, "--problem", "p.pddl"), *words)


def test_an_unreadable_problem_is_rejected(run: Run, tmp_path: Path) -> None:
    """The message names a missing problem or a folder."""
    (tmp_path / "folder").mkdir()
    assert_rejected(run(*PLAN, "--problem", "p.pddl"), "no file 'p.pddl'")
    assert_rejected(
        run(*PLAN, "--problem", "folder"), "folder: the file cannot be read: Is a directory"
    )


def test_an_invalid_domain_or_robot_is_rejected(run: Run, tmp_path: Path) -> None:
    """Names and files of domain and robot are checked."""
    (tmp_path / "own").mkdir()
    (tmp_path / "arm.toml").write_text('name = "arm"\nbase = \n', encoding="utf-8")
    assert_rejected(
        run(*PLAN, *GOAL, "--domain", "blok"),
        "tmkit has no 'blok' in domains; did you mean 'blocks'?",
    )
    assert_rejected(
        run(*PLAN, *GOAL, "--domain", "own/"), "needs the file domain.pddl, which is not in own"
    )
    (tmp_path / "own" / "domain.pddl").write_text(
        "(define (domain own)\n (:action))", encoding="utf-8"
    )
    (tmp_path / "own" / "semantics.py").write_text("1 / 0", encoding="utf-8")
    assert_rejected(run(*PLAN, *GOAL, "--domain", "own/"), "domain.pddl:2:")
    (tmp_path / "own" / "domain.pddl").write_text("(define (domain own))", encoding="utf-8")
    assert_rejected(run(*PLAN, *GOAL, "--domain", "own/"), "semantics.py:1: ZeroDivisionError")
    assert_rejected(
        run(*PLAN, *GOAL, "--robot", "pnda"),
        "tmkit has no 'pnda' in scenes/robots; did you mean 'panda'?",
    )
    assert_rejected(run(*PLAN, *GOAL, "--robot", "arm.toml"), "arm.toml:2:8: is not TOML")
    assert_rejected(
        run("plan", "blocks1", *GOAL),
        "'table', which no file declares; load a file that declares 'table', too",
    )


# --- bad starts


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (
            "panda_joint1=9",
            ["joint 'panda_joint1' starts at 9, outside its limits from -2.9671 to 2.9671"],
        ),
        (
            "panda_joint2=1.5",
            [
                "the start is in collision",
                "'panda_link5' and 'table' by ",
                " mm",
                "move them apart",
            ],
        ),
        ("panda_joint1=far", ["--start: 'panda_joint1=far' is not of the form joint=number"]),
        ("panda_joint1=nan", ["joint 'panda_joint1'", "nan"]),
        ("panda_joint1=0,panda_joint1=1", ["--start: joint 'panda_joint1' is given twice"]),
        ("panda_jiont1=0", ["--start: unknown joint 'panda_jiont1'; did you mean 'panda_joint1'"]),
        ("panda_joint1=0,", ["--start: '' is not of the form joint=number"]),
        ("none.json", ["there is no start file 'none.json'"]),
        ("panda_joint1", ["--start: 'panda_joint1' is not of the form joint=number"]),
        ("panda_joint1=90", ["joint values are in radians: 90 degrees are 1.571"]),
        ("folder", ["folder: cannot be read: Is a directory"]),
        ("list.json", ["list.json: must be an object of finite numbers by joint name"]),
        ("text.json", ["text.json: must be an object of finite numbers by joint name"]),
        ("nan.json", ["nan.json: must be an object of finite numbers by joint name"]),
        ("cut.json", ["cut.json:1:18: is not JSON"]),
    ],
)
def test_an_invalid_start_is_rejected(
    run: Run, tmp_path: Path, start: str, words: list[str]
) -> None:
    """Starts out of limits, in collision, of other joints or in invalid files are rejected."""
    (tmp_path / "folder").mkdir()
    for name, text in {
        "list.json": "[1]",
        "text.json": '{"panda_joint1": "far"}',
        "nan.json": '{"panda_joint1": NaN}',
        "cut.json": '{"panda_joint1": ',
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert_rejected(run(*PLAN, *GOAL, "--start", start, "-o", "plan.json"), *words)
    assert not (tmp_path / "plan.json").exists()


# --- bad plan files and outputs


@pytest.mark.parametrize("command", ["check", "simulate"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["there is no plan file 'broken.json'"]),
        (b"{}", ["broken.json: is not a plan"]),
        (b'{"format": "tmkit-plan", "version": 1', ["broken.json:1:38: is not JSON"]),
        (
            b'{"format": "tmkit-plan", "version": 7}',
            ["broken.json: has plan version 7, this tmkit reads 2"],
        ),
        (b"\xff", ["broken.json:1: is not JSON: not UTF-8"]),
    ],
)
def test_an_invalid_plan_file_is_rejected(
    run: Run, tmp_path: Path, command: str, content: bytes | None, words: list[str]
) -> None:
    """Both commands that read plans report the error."""
    if content is not None:
        (tmp_path / "broken.json").write_bytes(content)
    assert_rejected(run(command, "broken.json"), *words)


def test_an_edited_plan_file_is_rejected(run: Run, plan_file: Path, tmp_path: Path) -> None:
    """The message about a value of the wrong type contains its place in the file."""
    document = json.loads(plan_file.read_text(encoding="utf-8"))
    document["steps"][1]["segments"][0]["path"][0][3] = None
    (tmp_path / "edited.json").write_text(json.dumps(document), encoding="utf-8")
    assert_rejected(
        run("check", "edited.json"),
        "edited.json: steps[1].segments[0].path[0][3]: expected a finite number",
    )


@pytest.mark.parametrize(
    ("path", "reason"),
    [("nowhere/out.{}", "there is no folder 'nowhere'"), ("folder.{}", "it is a folder")],
)
def test_an_output_that_cannot_be_written_is_rejected_early(
    run: Run, plan_file: Path, tmp_path: Path, path: str, reason: str
) -> None:
    """The error comes before any work is done, and no file is left."""
    for suffix in ("json", "gif", "png"):
        (tmp_path / f"folder.{suffix}").mkdir()
    assert_rejected(
        run(*PLAN, *GOAL, "-o", path.format("json")),
        f"{path.format('json')}: cannot be written: {reason}",
    )
    for option, suffix in (("--report", "json"), ("--record", "gif"), ("--picture", "png")):
        output = path.format(suffix)
        assert_rejected(
            run("simulate", plan_file, option, output), f"{output}: cannot be written: {reason}"
        )
    assert len(list(tmp_path.rglob("*"))) == 3


def test_an_output_of_an_unknown_kind_is_rejected(
    run: Run, plan_file: Path, tmp_path: Path
) -> None:
    """Videos and pictures have a fixed set of formats."""
    assert_rejected(run("simulate", plan_file, "--record", "film.xyz"), "film.xyz", ".gif")
    assert_rejected(run("simulate", plan_file, "--picture", "picture.xyz"), "picture.xyz", ".png")
    assert list(tmp_path.iterdir()) == []


def test_a_demo_needs_a_folder(run: Run, tmp_path: Path) -> None:
    """The demo creates its folder, unless a file has its name."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert_rejected(run("demo", "--out", "file"), "file: cannot be made: File exists")
    assert_rejected(
        run("demo", "--out", "file/folder"), "file/folder: cannot be made: Not a directory"
    )


# --- processes


def test_exit_codes_of_the_process(tmp_path: Path, plan_file: Path) -> None:
    """A process ends with the exit code of its result."""
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}", encoding="utf-8")
    for code, arguments in (
        (0, ["check", str(plan_file)]),
        (2, ["check", str(wrong)]),
        (2, ["fly"]),
    ):
        done = run_process(
            [*TMKIT, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """If the reader closes the pipe, the command ends without a message."""
    command = (
        f"{' '.join(TMKIT)} scene dump panda_table --json | head -c 1; echo ${{PIPESTATUS[0]}}"
    )
    done = run_process(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "{0\n"
    assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == ["progress", "done"]


def test_an_internal_error_names_the_issue_tracker(
    run: Run, monkeypatch: pytest.MonkeyPatch, plan_file: Path
) -> None:
    """An unexpected exception gives a traceback and exit code 3."""

    def fail(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("unthinkable")

    monkeypatch.setattr("tmkit.plans.plan_file.json.loads", fail)
    outcome = run("check", plan_file)
    assert outcome.code == ExitCode.INTERNAL
    assert "ZeroDivisionError: unthinkable" in outcome.err
    assert "internal error of tmkit: please report it" in outcome.err


def children(process: int) -> list[int]:
    """Return the processes that a process has started and that still run."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


def is_library_loaded(process: int, library: str) -> bool:
    """Return whether a process has loaded a library, by a part of its path."""
    return library in Path(f"/proc/{process}/maps").read_text(encoding="utf-8")


@pytest.mark.parametrize("moment", ["begun", "child", "late"])
def test_an_interrupt_ends_the_command(tmp_path: Path, moment: str) -> None:
    """Ctrl-C ends a run with 130 at any time, without files or processes left behind."""
    goal = "(and (on a b) (on b c) (on c a))"  # the task planner searches for long
    process = Process(
        [
            *TMKIT,
            "plan",
            "panda_table",
            "blocks4",
            "--goal",
            goal,
            "--time-limit",
            "3600",
            "-o",
            "plan.json",
        ],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + HANG
    if moment == "begun":  # the command runs and loads its planner
        while not is_library_loaded(process.pid, "/tmkit/_core.") and time.monotonic() < deadline:
            time.sleep(0.01)
    else:
        while not (started := children(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.01)
        if moment == "late":  # the search has the translated task by now
            while (
                not list(tmp_path.glob("tmkit-search-*/task.sas")) and time.monotonic() < deadline
            ):
                time.sleep(0.01)
            while not (started := children(process.pid)) and time.monotonic() < deadline:
                time.sleep(0.01)
        assert started
    running = children(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == ExitCode.INTERRUPTED, err
    assert (out, err) == ("", "interrupted\n")
    assert list(tmp_path.iterdir()) == []
    assert not [child for child in running if Path(f"/proc/{child}").exists()]


def test_an_interrupt_of_motion_planning(tmp_path: Path) -> None:
    """Ctrl-C also ends the search for motions."""
    script = (
        "import numpy as np, tmkit as tk, sys\nfrom tmkit.graph import AttachedShape, Box\nscene ="
        " tk.load_scene('panda_table', 'blocks2')\nfor name, at in (('lid', [0.4, 0.1, 0.13]),):\n "
        "   scene = scene.add_frame(name, 'world', pose=tk.Pose(at),"
        " shapes=[AttachedShape(Box([0.3, 0.3, 0.02]))])\ndef tell(progress):\n    if"
        " progress.phase == 'motion': print('motion', flush=True)\nproblem ="
        " tk.PlanningProblem(scene, goal='(on a b)')\ntk.solve(problem,"
        " tk.PlanningOptions(time_limit=3600.0), on_progress=tell)\n"
    )
    process = Process(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "motion\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANG)
    assert "KeyboardInterrupt" in err
    assert process.returncode != 0
    assert list(tmp_path.iterdir()) == []


def test_the_demo_runs(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The demo plans, validates, simulates and draws; the video is made elsewhere."""
    played = planning._simulate

    def without_film(plan: tk.Plan, options: tk.SimulationOptions, **outputs: Any) -> Any:
        return played(plan, replace(options, grasp="constraint"), **{**outputs, "record": None})

    monkeypatch.setattr(planning, "_simulate", without_film)
    outcome = run("demo", "--out", "demo")
    assert outcome.code == 0, outcome
    assert "the plan is valid" in outcome.out
    assert "Simulated: SimulationReport(succeeded;" in outcome.out
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert written == {"plan.json", "plan.html", "report.json", "demo.png"}


def test_a_failed_demo_is_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notes of a failed simulation are printed."""

    class Missed:
        is_successful = False
        notes = (SimulationNote(1, "the block fell"),)

        def to_dict(self) -> dict[str, object]:
            return {}

    monkeypatch.setattr(planning, "_simulate", lambda *_, **__: Missed())
    outcome = run("demo", "--out", "demo")
    assert outcome.code == ExitCode.NO
    assert outcome.out.endswith("step 1: the block fell\n")


def test_an_output_of_a_long_name_is_rejected(run: Run, plan_file: Path) -> None:
    """A name that no file system accepts is rejected before or after the work."""
    for option in ("--report", "--picture", "--record"):
        outcome = run(
            "simulate",
            plan_file,
            option,
            f"{'a' * 300}.{'gif' if option == '--record' else 'json'}",
        )
        assert_rejected(outcome, "aaaa")
    assert_rejected(
        run("plan", "panda_table", "blocks1", "--goal", "(holding a)", "-o", "a" * 300), "aaaa"
    )


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupt_while_improving_gives_the_best_plan(tmp_path: Path, *, as_json: bool) -> None:
    """Ctrl-C ends the improvement with 130; the best plan so far is written and valid."""
    arguments = [
        "plan",
        "panda_table",
        "blocks2",
        *GOAL,
        "--improve",
        "all",
        "--time-limit",
        "3600",
        "-o",
        "plan.json",
    ]
    process = Process(
        [*TMKIT, *arguments, *(["--json"] if as_json else ["--log-file", "log"])],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if as_json:
        assert process.stderr is not None
        while '"improve"' not in process.stderr.readline():
            assert process.poll() is None
    else:
        deadline = time.monotonic() + HANG
        while not (
            (tmp_path / "log").exists()
            and "best plan" in (tmp_path / "log").read_text(encoding="utf-8")
        ):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=HANG)
    assert process.returncode == ExitCode.INTERRUPTED
    assert {path.name for path in tmp_path.iterdir()} == {"plan.json"} | (
        set() if as_json else {"log"}
    )
    assert tk.validate_plan(tk.load_plan(tmp_path / "plan.json")).is_valid
    if as_json:
        assert json.loads(out)["actions"] == ["(pick-up a table__-2__1)", "(stack a b)"]
    else:
        assert out.startswith("Interrupted; the best plan so far has 2 actions and ")
        assert out.endswith("  2. (stack a b)\nWritten to plan.json\n")


def test_seeds_and_processes(run: Run, tmp_path: Path) -> None:
    """Several seeds over several processes write the plan that the first seed writes alone."""
    goal = ("--goal", "(ontable a table__0__0)")
    assert (
        run(
            "plan",
            "panda_table",
            "blocks1",
            *goal,
            "-o",
            "alone.json",
            "--seed",
            "3",
            "--improve",
            "1",
        ).code
        == 0
    )
    outcome = run(
        "plan",
        "panda_table",
        "blocks1",
        *goal,
        "-o",
        "plan.json",
        "--seed",
        "3",
        "--workers",
        "2",
        "--improve",
        "1",
        "--max-iterations",
        "8",
        "--json",
    )
    assert outcome.code == 0, outcome
    assert (tmp_path / "plan.json").read_bytes() == (tmp_path / "alone.json").read_bytes()
    answer = json.loads(outcome.out)
    assert (answer["entry"], [entry["seed"] for entry in answer["entries"]]) == (0, [3])
    assert_rejected(
        run("plan", "panda_table", "blocks1", *goal, "--improve", "often"),
        "--improve",
        "neither a number nor",
    )


def test_packages_and_meshes_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """``--package`` sets the folder of a package, ``--meshes`` skips meshes; values are checked."""
    (tmp_path / "meshes").mkdir()
    shape = '<collision><geometry><mesh filename="package://arm/m.obj"/></geometry></collision>'
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(f'<robot name="r"><link name="base">{shape}</link></robot>')
    dump = ["scene", "dump", str(urdf)]
    options = ["--package", f"arm={tmp_path / 'meshes'}"]
    assert_rejected(run(*dump), "--package arm=DIR", "--meshes available")
    assert_rejected(run(*dump, *options), "m.obj")
    assert_rejected(run(*dump, "--meshes", "all"), "meshes='all': expected one of")
    for meshes in ("available", "skip"):
        result = run(*dump, "--meshes", meshes, "--json")
        assert result.code == 0
        assert "mesh" not in result.out
    (tmp_path / "meshes" / "m.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    for command in (
        dump,
        ["scene", "check", str(urdf)],
        ["scene", "convert", str(urdf), "-o", str(tmp_path / "o.json")],
    ):
        assert run(*command, *options).code == 0
    for wrong in ("arm", "=x", "arm=", "a/b=x"):
        assert run(*dump, "--package", wrong).code == 2
    assert run(*dump, *options, *options).code == 2
