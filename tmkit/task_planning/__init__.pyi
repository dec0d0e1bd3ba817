"""The names that `tmkit.task_planning` exports."""

from tmkit.task_planning.fast_downward import (
    FastDownward as FastDownward,
    execute_with_replanning as execute_with_replanning,
    possible_states as possible_states,
)
from tmkit.task_planning.protocol import (
    ExtensibleTask as ExtensibleTask,
    RerootableTask as RerootableTask,
    UnsolvabilityTask as UnsolvabilityTask,
    TaskPlanResult as TaskPlanResult,
    TaskPlanStatus as TaskPlanStatus,
    TaskPlanner as TaskPlanner,
)
from tmkit.task_planning.schedule import makespan as makespan, schedule as schedule
from tmkit.task_planning.translated_task import TranslatedTask as TranslatedTask
from tmkit.task_planning.unified_planner import UnifiedPlanner as UnifiedPlanner
from tmkit.task_planning.z3_planner import Z3Planner as Z3Planner
