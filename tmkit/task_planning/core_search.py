"""The search of a translated task in this process, by the core: what small tasks need, without starting a program.

Fast Downward's search takes some ten milliseconds to start; the core's (``tmkit._core.TaskSearch``)
has found the plan of a dozen steps by then. It is lazy A* with FF's heuristic, and gives up after a
certain work, not after a time.
"""

from __future__ import annotations

import logging
import time

from tmkit.errors import TaskPlannerError
from tmkit.pddl.validation import validate_task_plan
from tmkit.task_planning.protocol import TaskPlanResult, TaskPlanStatistics, TaskPlanStatus
from tmkit.task_planning.translated_task import TranslatedTask

_logger = logging.getLogger(__name__)
# looks for a better plan, where all steps cost the same or not
_IMPROVEMENT = {False: 200_000, True: 1_000_000}


def search_in_core(task: TranslatedTask, work: float) -> TaskPlanResult | None:
    """Return a plan of few steps or low cost, or that there is none; None when that takes more than some work.

    Args:
        task: the task, complete.
        work: how often effects and axioms may be looked at, about 1e8 in a second.

    Raises:
        TaskPlannerError: the plan does not reach the goal: an error of the search.
    """
    began = time.monotonic()
    if work < 100 * len(task.operators):  # the states of a plan could not be judged
        return None
    plan, is_unsolvable, expanded, evaluated = task.search.plan(
        task.init, task.goal, work=int(work), improvement_work=_IMPROVEMENT[task.is_cost_weighted]
    )
    statistics = TaskPlanStatistics(
        expanded=expanded,
        evaluated=evaluated,
        operators=len(task.operators),
        facts=task.fact_count,
        search_seconds=time.monotonic() - began,
        search="core",
    )
    _logger.debug(
        "%d states expanded, %s",
        expanded,
        "given up" if plan is None and not is_unsolvable else "ended",
    )
    if is_unsolvable:
        return TaskPlanResult(
            TaskPlanStatus.UNSOLVABLE, message="there is no plan", statistics=statistics
        )
    if plan is None:
        return None
    steps = tuple(task.action_of(task.operators[number].name) for number in plan)
    validation = validate_task_plan(task.problem, steps)
    if not validation.is_valid:
        message = f"the core's plan is not valid: {validation.message}"
        raise TaskPlannerError(message, command=(), output="")
    return TaskPlanResult(
        TaskPlanStatus.SOLVED, steps, validation.cost, "a plan was found", statistics
    )
