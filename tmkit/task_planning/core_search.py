"""Search of a translated task by the C++ core, in this process.

Fast Downward's search takes about ten milliseconds to start. The core's search
(``tmkit._core.TaskSearch``) finds a plan of a dozen steps in that time. It is lazy A* with FF's
heuristic. It ends after a given amount of work, not after a time.
"""

from __future__ import annotations

import logging
import time

from tmkit.errors import TaskPlannerError
from tmkit.pddl.validation import validate_task_plan
from tmkit.task_planning.protocol import TaskPlanResult, TaskPlanStatistics, TaskPlanStatus
from tmkit.task_planning.translated_task import TranslatedTask

_logger = logging.getLogger(__name__)
_IMPROVEMENT_WORK = {False: 200_000, True: 1_000_000}
"""Number of rule evaluations in the search for a better plan, by whether steps differ in cost."""


def search_in_core(task: TranslatedTask, work: float) -> TaskPlanResult | None:
    """Return a plan or a proof that there is none, or None if the work does not suffice.

    Args:
        task: the task, complete.
        work: largest number of evaluations of effects and axioms; about 1e8 take a second.

    Raises:
        TaskPlannerError: if the plan does not reach the goal, which is an error of the search.
    """
    start_time = time.monotonic()
    # Less work does not suffice to evaluate the states of a plan.
    if work < 100 * len(task.operators):
        return None
    plan, is_unsolvable, expanded, evaluated = task.search.plan(
        task.init,
        task.goal,
        work=int(work),
        improvement_work=_IMPROVEMENT_WORK[task.is_cost_weighted],
    )
    statistics = TaskPlanStatistics(
        expanded=expanded,
        evaluated=evaluated,
        operators=len(task.operators),
        facts=task.fact_count,
        search_seconds=time.monotonic() - start_time,
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
