"""Planning of tasks and motions with a task planner of one's own."""

from __future__ import annotations

from support.blocks import blocks_scene
from support.gantry import GANTRY

import tmkit as tk
from tmkit.pddl import GroundAction, Problem
from tmkit.task_planning import FastDownward, TaskPlanner, TaskPlanResult, TaskPlanStatus
from tmkit.task_planning.translated_task import TranslatedTask


class Scripted(TaskPlanner[TranslatedTask]):
    """Says what it was told to say, once, then that there is no plan."""

    def __init__(self, *steps: GroundAction) -> None:
        self.steps = steps
        self.searched: list[TranslatedTask] = []

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> TranslatedTask:
        """Translate."""
        return FastDownward().translate(problem, time_limit=time_limit)

    def search(self, task: TranslatedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Return the script."""
        del time_limit
        self.searched.append(task)
        if len(self.searched) > 1:
            return TaskPlanResult(TaskPlanStatus.UNSOLVABLE)
        return TaskPlanResult(TaskPlanStatus.SOLVED, self.steps, float(len(self.steps)))


def test_the_task_planner_can_be_chosen() -> None:
    """The actions of a plan are those that the task planner given has found, where each of them serves something."""
    scene = blocks_scene({"b": (1, 1), "a": "b"}, table=0.4)
    words = ("unstack a b", "put-down a table__-1__1")
    steps = [GroundAction(name, tuple(arguments)) for name, *arguments in map(str.split, words)]
    planner = Scripted(*steps)
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


def test_what_searched_is_named() -> None:
    """The core's search finds small plans; without it, it is Fast Downward's."""
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
