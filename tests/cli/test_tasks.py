"""``tmkit task``, combined goals, and problems without the state of the scene."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.task_problems import DATA

import tmkit as tk
from tmkit import cli
from tmkit.errors import TaskError
from tmkit.pddl import (
    Fact,
    GroundAction,
    load_domain,
    load_problem,
    parse_problem,
    validate_task_plan,
)

Run = Callable[..., tuple[int, str, str]]
DOMAIN = DATA / "places" / "domain.pddl"
PROBLEM = DATA / "places" / "problem.pddl"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in this process, in an empty folder; return exit code and outputs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tmkit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return command


def steps_of(text: str) -> list[GroundAction]:
    """Return the actions of a plan in the format of the planning competitions."""
    lines = [line.strip("()").split() for line in text.splitlines() if line.startswith("(")]
    return [GroundAction(name, tuple(arguments)) for name, *arguments in lines]


@pytest.mark.parametrize("planner", ["fast-downward", "optimal", "smt"])
def test_a_plan_is_printed_and_written(run: Run, planner: str) -> None:
    """The same valid plan as text, as a file and as JSON, with its cost."""
    if planner == "smt":
        pytest.importorskip("z3", reason="the extra 'planners' is not installed")
    problem = load_problem(PROBLEM, load_domain(DOMAIN))
    code, output, _ = run("task", DOMAIN, PROBLEM, "--planner", planner)
    assert code == 0
    assert validate_task_plan(problem, steps_of(output)).is_valid
    assert output.splitlines()[-1] == f"; cost = {len(steps_of(output))} (unit cost)"
    assert run("task", DOMAIN, PROBLEM, "--planner", planner, "-o", "plan.txt")[0] == 0
    assert Path("plan.txt").read_text() == output
    code, text, _ = run("task", DOMAIN, PROBLEM, "--planner", planner, "--json")
    document = json.loads(text)
    assert (code, document["status"], document["cost"]) == (0, "solved", len(steps_of(output)))
    assert document["steps"] == output.splitlines()[:-1]


def test_unsolvable_and_unsolved_differ(run: Run, tmp_path: Path) -> None:
    """Both results are negative, with different messages; nothing is written."""
    impossible = tmp_path / "impossible.pddl"
    text = PROBLEM.read_text()
    start = text.index("(:goal")
    impossible.write_text(text[:start] + "(:goal (and (empty) (not (empty)))))")
    code, output, _ = run("task", DOMAIN, impossible, "-o", "plan.txt")
    assert (code, output) == (1, "There is no plan: that is proved.\n")
    code, output, _ = run("task", DOMAIN, PROBLEM, "--time-limit", "0.001", "-o", "plan.txt")
    assert code == 1
    assert output.startswith("No plan was found; there may be one: ")
    assert not Path("plan.txt").exists()
    code, output, _ = run("task", DOMAIN, impossible, "--json")
    assert (code, json.loads(output)["status"]) == (1, "unsolvable")


WORLD = """(define (domain cups) (:predicates (here ?c) (there ?c) (held ?c) (free) (glass ?c))
  (:action take :parameters (?c) :precondition (and (here ?c) (free))
    :effect (and (held ?c) (not (here ?c)) (not (free))))
  (:action put :parameters (?c) :precondition (held ?c)
    :effect (and (there ?c) (free) (not (held ?c))))
  (:action break :uncontrollable t :parameters (?c) :precondition (and (held ?c) (glass ?c))
    :effect (and (free) (not (held ?c)))))"""


def test_uncontrollable_actions_are_planned_against(run: Run) -> None:
    """A plan avoids them, or their names are the answer; Z3 refuses the domain."""
    Path("world.pddl").write_text(WORLD)
    header = "(define (problem p) (:domain cups) (:objects a b) (:init (here a) (here b) (glass b)"
    Path("any.pddl").write_text(f"{header} (free)) (:goal (or (there a) (there b))))")
    Path("glass.pddl").write_text(f"{header} (free)) (:goal (there b)))")
    code, output, _ = run("task", "world.pddl", "any.pddl")
    assert (code, output) == (0, "(take a)\n(put a)\n; cost = 2 (unit cost)\n")
    _, output, _ = run("task", "world.pddl", "any.pddl", "--json")
    first = {"state": ["(free)", "(glass b)", "(here a)", "(here b)"], "action": "(take a)"}
    assert first in json.loads(output)["actions"]
    code, output, _ = run("task", "world.pddl", "glass.pddl")
    assert code == 1
    assert output == (
        "There is no plan: that is proved.\nThe uncontrollable action 'break' defeats every plan;"
        " (break b) can happen after (take b), and there is no plan after it.\n"
    )
    _, output, _ = run("task", "world.pddl", "glass.pddl", "--json")
    assert json.loads(output)["defeating"] == ["break"]
    code, _, error = run("task", "world.pddl", "any.pddl", "--planner", "smt")
    assert code == 2
    assert "Z3 does not plan against uncontrollable actions, such as 'break'" in error


def test_invalid_input_is_rejected(run: Run, tmp_path: Path) -> None:
    """A missing file, another domain's problem, an unknown planner, a missing initial state."""
    (tmp_path / "broken.pddl").write_text("(define (problem p) (:domain places) (:goal (and)))")
    for arguments, words in (
        ((DOMAIN, "nowhere.pddl"), "no file 'nowhere.pddl'"),
        ((DATA / "rooms" / "domain.pddl", PROBLEM), "the problem is one of domain 'places'"),
        ((DOMAIN, PROBLEM, "--planner", "guess"), "'guess' is none of fast-downward, optimal, smt"),
        ((DOMAIN, "broken.pddl"), "the problem has no section (:init ...)"),
    ):
        code, output, error = run("task", *arguments)
        assert (code, output) == (2, "")
        assert words in error
        assert "Traceback" not in error


# --- problems and goals beside a scene


@pytest.mark.parametrize("objects", ["", "(:objects)", "(:objects a - block)"])
def test_a_problem_may_omit_the_state_of_the_scene(run: Run, tmp_path: Path, objects: str) -> None:
    """Neither an initial state nor all objects are needed beside a scene."""
    path = tmp_path / "p.pddl"
    path.write_text(f"(define (problem p) (:domain blocks) {objects} (:goal (and (on a b))))")
    code, output, error = run("plan", "panda_table", "blocks2", "--problem", path)
    assert code == 0, error
    assert "(stack a b)" in output


def test_a_partial_problem_must_agree_with_the_scene(run: Run, tmp_path: Path) -> None:
    """A partial problem that contradicts the scene is rejected like a complete one."""
    path = tmp_path / "p.pddl"
    path.write_text(
        "(define (problem p) (:domain blocks) (:init (holding a)) (:goal (and (on a b))))"
    )
    code, _, error = run("plan", "panda_table", "blocks2", "--problem", path)
    assert code == 2
    assert "its initial facts do not hold in the scene: (holding a)" in error


def test_objects_of_the_scene_need_no_declaration() -> None:
    """A problem may use objects of the scene; without a scene ``:init`` is required."""
    domain = load_domain(DOMAIN)
    text = "(define (problem p) (:domain places) (:objects b - block) (:goal (and (on a b))))"
    problem = parse_problem(text, domain, objects={"a": "block"})
    assert dict(problem.objects) == {"a": ("block",), "b": ("block",)}
    assert len(problem.init) == 0
    with_facts = text.replace("(:goal", "(:init (clear a)) (:goal")
    assert Fact("clear", ("a",)) in parse_problem(with_facts, domain, objects={"a": "block"}).init
    with pytest.raises(TaskError, match=r"the problem has no section \(:init \.\.\.\)"):
        parse_problem(text.replace("on a b", "on b b"), domain)


def test_a_goal_scene_and_a_goal_are_joined(run: Run) -> None:
    """Both must hold, on the command line and in the library."""
    scene = tk.load_scene("panda_table", "blocks2")
    shown = scene.reparent("b", "a", pose=tk.Pose([0.0, 0.0, 0.05]))
    alone = tk.plan(scene, goal=shown)
    both = tk.plan(
        scene,
        goal=[shown, "(and (holding b) (not (handempty)))"],
        options=tk.PlanningOptions(suggest=False, time_limit=10.0),
    )
    assert alone.plan is not None
    assert both.plan is None
    code, output, _ = run(
        "plan", "panda_table", "blocks2", "--goal-scene", "blocks2", "--goal", "(on a b)"
    )
    assert code == 1
    assert "(on a b)" in output
    with pytest.raises(TaskError, match=r"one problem file at most, .*'p\.pddl' and 'q\.pddl'"):
        tk.plan(scene, goal=[shown, "p.pddl", "q.pddl"])
