"""Improvement iterations: costs never increase, and equal iteration counts give equal plans."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.blocks import SUSSMAN, blocks_scene, with_box
from support.gantry import GANTRY
from support.planning import solve_with

import tmkit as tk
from tmkit.errors import ConfigurationError, PlanFileError
from tmkit.graph import SceneGraph
from tmkit.pddl import GroundAction, Problem
from tmkit.plans import Plan
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict
from tmkit.tamp import ImprovementProgress, PlanningProgress, context
from tmkit.task_planning import FastDownward, TaskPlanner, TaskPlanResult, TaskPlanStatus
from tmkit.task_planning.translated_task import TranslatedTask


def scene_with_wall() -> SceneGraph:
    """Return two blocks with a wall between them, with paths of many lengths over it."""
    return with_box(
        blocks_scene({"a": (0, -2), "b": (0, 2)}), "wall", (-0.3, -0.01, 0.0), (0.3, 0.01, 0.25)
    )


def solve_valid(scene: SceneGraph, goal: str = "(on a b)", **options: Any) -> Plan:
    """Return a valid plan."""
    result = solve_with(scene, goal, robot=GANTRY, **options)
    assert result.plan is not None, result.explanation
    report = tk.validate_plan(result.plan)
    assert report.is_valid, report.problems
    return result.plan


def bytes_of(plan: Plan, path: Path) -> bytes:
    """Return the bytes of a plan file."""
    tk.save_plan(plan, path)
    return path.read_bytes()


def test_length_and_cost_of_a_plan() -> None:
    """The length is Euclidean over the joints; without a metric each action costs one."""
    plan = solve_valid(blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4))
    assert plan.cost == 2.0
    lengths = [segment.path_length for step in plan.steps for segment in step.segments]
    assert plan.path_length == pytest.approx(sum(lengths))
    assert all(length >= 0.0 for length in lengths)
    approach = plan.steps[0].segments[1]
    assert approach.path_length == pytest.approx(0.08, abs=1e-3)


def test_paths_get_shorter_and_every_improvement_is_reported(tmp_path: Path) -> None:
    """Each reported plan is better than the previous one; the result is the last."""
    first = solve_valid(scene_with_wall(), seed=6)
    reports: list[PlanningProgress] = []
    better = solve_valid(scene_with_wall(), seed=6, improve=9, on_progress=reports.append)
    improvements = [progress for progress in reports if isinstance(progress, ImprovementProgress)]
    lengths = [progress.path_length for progress in improvements]
    assert lengths[0] == first.path_length
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) == len(lengths) > 1
    assert better.path_length == lengths[-1]
    assert (better.cost, improvements[-1].cost) == (first.cost, first.cost)
    assert improvements[-1].plan is not None
    assert bytes_of(improvements[-1].plan, tmp_path / "told.json") == bytes_of(
        better, tmp_path / "better.json"
    )
    assert str(improvements[0]).endswith(
        f"cost 2, paths {first.path_length:.2f} rad, after 0 iterations"
    )


def test_the_same_number_of_iterations_gives_the_same_plan(tmp_path: Path) -> None:
    """Plans are equal byte for byte, also if several kinds of iterations improve them."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"})
    first, second = (solve_valid(scene, SUSSMAN, improve=4) for _ in range(2))
    assert bytes_of(first, tmp_path / "first.json") == bytes_of(second, tmp_path / "second.json")
    assert first.path_length <= solve_valid(scene, SUSSMAN).path_length


class WastefulPlanner(TaskPlanner[TranslatedTask]):
    """Task planner that returns a scripted plan first."""

    def __init__(self, *steps: GroundAction) -> None:
        self.steps: tuple[GroundAction, ...] | None = steps

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> TranslatedTask:
        """Translate the problem."""
        return FastDownward().translate(problem, time_limit=time_limit)

    def search(self, task: TranslatedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Return the scripted actions, then the plan of Fast Downward."""
        steps, self.steps = self.steps, None
        if steps is None:
            return FastDownward().search(task, time_limit=time_limit)
        return TaskPlanResult(TaskPlanStatus.SOLVED, steps, float(len(steps)))


def test_an_empty_plan_cannot_be_improved() -> None:
    """If the goal holds at the start, planning ends at once, even without a limit."""
    scene = blocks_scene({"a": (0, 0)}, table=0.4)
    assert solve_valid(scene, "(handempty)", improve=None, time_limit=math.inf).steps == ()


def test_the_time_limit_ends_improvement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an iteration count the time limit ends the iterations."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    now = [0.0]
    monkeypatch.setattr(context, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def tell(progress: PlanningProgress) -> None:
        if isinstance(progress, ImprovementProgress):
            now[0] = max(now[0], 3.9)
        elif now[0] == 3.9:  # a search while improving
            now[0] = 4.1

    result = tk.solve(
        tk.PlanningProblem(scene, goal="(on a b)", robots=GANTRY),
        tk.PlanningOptions(time_limit=4.0, improve=None),
        on_progress=tell,
    )
    assert result.is_solved
    assert now == [4.1]


def test_a_negative_number_is_rejected() -> None:
    """The error has the name of the option."""
    with pytest.raises(ConfigurationError, match="improve must be at least 0, not -1"):
        solve_valid(scene_with_wall(), improve=-1)


# --- action costs ---


@pytest.fixture
def add_action_costs(tmp_path: Path) -> Path:
    """Return the blocks domain in which put-down costs 5 and the other actions 1."""
    text = (tk.data_path("domains/blocks") / "domain.pddl").read_text(encoding="utf-8")
    text = text.replace("(:requirements :typing)", "(:requirements :typing :action-costs)")
    text = text.replace(
        "(:action pick-up", "(:functions (total-cost) - number)\n  (:action pick-up", 1
    )
    parts = text.split(":effect (and ")
    add_action_costs = [
        ":effect (and (increase (total-cost) 1) ",
        ":effect (and (increase (total-cost) 5) ",
    ]
    path = tmp_path / "priced.pddl"
    path.write_text(
        parts[0]
        + "".join(add_action_costs[number == 1] + part for number, part in enumerate(parts[1:]))
    )
    return path


def test_cheaper_actions_replace_expensive_ones(add_action_costs: Path) -> None:
    """Expensive actions are replaced, even if the paths get longer."""
    steps = [GroundAction("unstack", ("a", "c")), GroundAction("put-down", ("a", "table__-1__-1"))]
    scene = blocks_scene({"c": (0, 0), "a": "c", "b": (1, 1)}, table=0.4)

    def cost(improve: int) -> float:
        result = tk.solve(
            tk.PlanningProblem(
                scene,
                goal="(and (clear c) (handempty))",
                robots=GANTRY,
                domain=add_action_costs,
                semantics="blocks",
            ),
            tk.PlanningOptions(task_planner=WastefulPlanner(*steps), improve=improve),
        )
        assert result.plan is not None
        assert tk.validate_plan(result.plan, domain=add_action_costs, semantics="blocks").is_valid
        return result.plan.cost

    assert cost(0) == 6.0
    assert cost(3) == 2.0


def test_costs_are_those_of_the_domain(add_action_costs: Path, tmp_path: Path) -> None:
    """The cost of a plan is that of its actions; the validator computes it again."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    goal = "(and (ontable a table__1__-1) (on b a))"
    result = tk.solve(
        tk.PlanningProblem(
            scene, domain=add_action_costs, semantics="blocks", goal=goal, robots=GANTRY
        )
    )
    assert result.plan is not None, result.explanation
    assert [step.cost for step in result.plan.steps] == [1.0, 5.0, 1.0, 1.0]
    assert result.plan.cost == 8.0
    document = plan_to_dict(result.plan)
    assert [step.get("cost") for step in document["steps"]] == [None, 5.0, None, None]
    loaded = plan_from_dict(document)
    assert loaded.cost == 8.0
    assert tk.validate_plan(loaded, domain=add_action_costs, semantics="blocks").is_valid
    document["steps"][0]["cost"] = 2.0
    report = tk.validate_plan(plan_from_dict(document), domain=add_action_costs, semantics="blocks")
    assert report.problems == ("(pick-up a table__0__0) costs 1, not 2",)


def test_a_problem_file_selects_the_metric(add_action_costs: Path, tmp_path: Path) -> None:
    """With a metric the domain gives the costs; without one each action costs one."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    text = (
        "(define (problem p) (:domain blocks) (:objects a - block table__1__-1 - location) (:init)"
        " (:goal {}){})"
    )
    for metric, cost in (("", 2.0), (" (:metric minimize (total-cost))", 6.0)):
        (tmp_path / "p.pddl").write_text(text.format("(ontable a table__1__-1)", metric))
        result = tk.solve(
            tk.PlanningProblem(
                scene,
                domain=add_action_costs,
                semantics="blocks",
                goal=tmp_path / "p.pddl",
                robots=GANTRY,
            )
        )
        assert result.plan is not None, result.explanation
        assert result.plan.cost == cost


def test_costs_that_a_problem_file_gives_are_checked(tmp_path: Path) -> None:
    """A plan file keeps the function values of the problem, and the validator uses them."""
    text = (tk.data_path("domains/blocks") / "domain.pddl").read_text(encoding="utf-8")
    text = text.replace("(:requirements :typing)", "(:requirements :typing :action-costs)")
    functions = "(:functions (total-cost) - number (weight ?x - block) - number)"
    text = text.replace("(:action pick-up", f"{functions}\n  (:action pick-up", 1)
    domain = tmp_path / "weights.pddl"
    domain.write_text(
        text.replace(":effect (and ", ":effect (and (increase (total-cost) (weight ?x)) ")
    )
    problem = tmp_path / "p.pddl"
    problem.write_text(
        "(define (problem p) (:domain blocks) (:objects a b - block) (:init (= (weight a) 3) (="
        " (weight b) 7)) (:goal (on a b)) (:metric minimize (total-cost)))"
    )
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    result = tk.solve(
        tk.PlanningProblem(scene, domain=domain, semantics="blocks", goal=problem, robots=GANTRY)
    )
    assert result.plan is not None, result.explanation
    assert [step.cost for step in result.plan.steps] == [3.0, 3.0]
    document = json.loads(json.dumps(plan_to_dict(result.plan)))
    assert document["values"] == [
        {"of": ["weight", "a"], "is": 3.0},
        {"of": ["weight", "b"], "is": 7.0},
    ]
    assert plan_to_dict(plan_from_dict(document)) == document
    assert tk.validate_plan(plan_from_dict(document), domain=domain, semantics="blocks").is_valid
    document["values"][0]["is"] = 4.0
    report = tk.validate_plan(plan_from_dict(document), domain=domain, semantics="blocks")
    assert report.problems == (
        "(pick-up a table__0__0) costs 4, not 3",
        "(stack a b) costs 4, not 3",
    )
    document["values"][0]["of"] = []
    with pytest.raises(PlanFileError, match="name of a function"):
        plan_from_dict(document)


def test_the_metric_of_the_problem_is_validated(add_action_costs: Path, tmp_path: Path) -> None:
    """If the problem minimises the action count, the validator ignores the domain's costs."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    text = (
        "(define (problem p) (:domain blocks) (:objects a - block table__1__-1 - location) (:init)"
        " (:goal {}))"
    )
    (tmp_path / "p.pddl").write_text(text.format("(ontable a table__1__-1)"))
    result = tk.solve(
        tk.PlanningProblem(
            scene,
            domain=add_action_costs,
            semantics="blocks",
            goal=tmp_path / "p.pddl",
            robots=GANTRY,
        )
    )
    assert result.plan is not None, result.explanation
    document = plan_to_dict(result.plan)
    assert document["metric"] == "length"
    assert tk.validate_plan(
        plan_from_dict(document), domain=add_action_costs, semantics="blocks"
    ).is_valid
