"""The names that `tmkit.task_planning` exports."""

from tmkit.task_planning.fast_downward import (
    FastDownward as FastDownward,
    execute_with_replanning as execute_with_replanning,
)
from tmkit.task_planning.protocol import (
    TaskPlanResult as TaskPlanResult,
    TaskPlanStatus as TaskPlanStatus,
    TaskPlanner as TaskPlanner,
)
from tmkit.task_planning.schedule import makespan as makespan, schedule as schedule
from tmkit.task_planning.unified.conversion import (
    problem_from_unified as problem_from_unified,
    problem_to_unified as problem_to_unified,
)
from tmkit.task_planning.unified.planner import UnifiedPlanner as UnifiedPlanner
from tmkit.task_planning.z3.planner import Z3Planner as Z3Planner
