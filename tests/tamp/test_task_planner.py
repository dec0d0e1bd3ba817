"""Task-and-motion planning with a user's task planner."""

from __future__ import annotations

from support.blocks import blocks_scene
from support.gantry import GANTRY

import tmkit as tk
from tmkit.pddl import GroundAction, Problem
from tmkit.task_planning import FastDownward, TaskPlanner, TaskPlanResult, TaskPlanStatus
from tmkit.task_planning.translated_task import TranslatedTask


class ScriptedPlanner(TaskPlanner[TranslatedTask]):
    """Task planner that returns a scripted plan once, then no plan."""

    def __init__(self, *steps: GroundAction) -> None:
        self.steps = steps
        self.searched: list[TranslatedTask] = []

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> TranslatedTask:
        """Translate the problem."""
        return FastDownward().translate(problem, time_limit=time_limit)

    def search(self, task: TranslatedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Return the script."""
        del time_limit
        self.searched.append(task)
        if len(self.searched) > 1:
            return TaskPlanResult(TaskPlanStatus.UNSOLVABLE)
        return TaskPlanResult(TaskPlanStatus.SOLVED, self.steps, float(len(self.steps)))


def test_the_task_planner_can_be_chosen() -> None:
    """The plan has the useful actions of the user's task planner."""
    scene = blocks_scene({"b": (1, 1), "a": "b"}, table=0.4)
    words = ("unstack a b", "put-down a table__-1__1")
    steps = [GroundAction(name, tuple(arguments)) for name, *arguments in map(str.split, words)]
    planner = ScriptedPlanner(*steps)
    result = tk.plan(
        scene,
        goal="(and (clear b) (handempty))",
        robot=GANTRY,
        options=tk.PlanningOptions(task_planner=planner),
    )
    assert result.statistics.task_planner == type(planner).__name__
    assert result.statistics.task_search == ""
    assert result.plan is not None, result.explanation
    assert list(result.plan.actions) == steps
    assert tk.validate_plan(result.plan).is_valid
    assert len(planner.searched) == 1


def test_the_task_search_is_named() -> None:
    """The core's search finds small plans; otherwise Fast Downward's search does."""
    scene = blocks_scene({"b": (1, 1), "a": (0, 0)}, table=0.4)
    assert tk.plan(scene, goal="(on a b)", robot=GANTRY).statistics.task_search == "core"
    planner = FastDownward(core_work=0.0)
    result = tk.plan(
        scene, goal="(on a b)", robot=GANTRY, options=tk.PlanningOptions(task_planner=planner)
    )
    assert (result.statistics.task_planner, result.statistics.task_search) == (
        "FastDownward",
        "fast_downward",
    )
