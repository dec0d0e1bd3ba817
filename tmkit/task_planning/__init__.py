"""Task planners: the :class:`TaskPlanner` protocol, Fast Downward and Z3 behind it.

:class:`FastDownward` runs Fast Downward as a separate program; :class:`Z3Planner` encodes a problem for an SMT solver;
:class:`UnifiedPlanner` runs engines of unified-planning.
:func:`execute_with_replanning` acts where actions have several outcomes; :func:`schedule` lays a plan out in time.
A :class:`TranslatedTask` is grounded once, then extended with :meth:`TranslatedTask.forbid` each time an action turns
out to be impossible in the presence of certain facts.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.task_planning.protocol import CheckedTaskPlanner as CheckedTaskPlanner
    from tmkit.task_planning.fast_downward import FastDownward as FastDownward
    from tmkit.task_planning.translated_task import (
        find_conflict as find_conflict,
        is_goal_impossible as is_goal_impossible,
    )
    from tmkit.task_planning.protocol import (
        GrowingTask as GrowingTask,
        MovableTask as MovableTask,
        PreparedTask as PreparedTask,
        ProvingTask as ProvingTask,
        TaskPlanner as TaskPlanner,
        TaskPlanResult as TaskPlanResult,
        TaskPlanStatistics as TaskPlanStatistics,
        TaskPlanStatus as TaskPlanStatus,
    )
    from tmkit.task_planning.fast_downward import (
        TaskExecution as TaskExecution,
        execute_with_replanning as execute_with_replanning,
        possible_states as possible_states,
    )
    from tmkit.task_planning.schedule import makespan as makespan, schedule as schedule
    from tmkit.task_planning.translated_task import TranslatedTask as TranslatedTask
    from tmkit.task_planning.unified_planner import UnifiedPlanner as UnifiedPlanner, UnifiedTask as UnifiedTask
    from tmkit.task_planning.z3_planner import SmtTask as SmtTask, Z3Planner as Z3Planner
else:
    __getattr__, __dir__ = lazy_names(__name__)
