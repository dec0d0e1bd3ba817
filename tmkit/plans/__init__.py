"""Plans: what the planner gives back, and what it gives in the place of a plan.

``values`` has the words of every answer: segments of motion, steps of actions, the plan, the result with its status.
A step may change what frames are (``class_changes``). Where motion was not found, a ``failures`` value says why for one
attempt, and a ``diagnosis`` for a whole run; both are data here, and are worked out elsewhere.

The rest uses finished plans: ``plan_file`` stores and reads them, ``executors`` play them on robots and simulators,
``swept_volume`` says which space they need.

This package is below all that plans; only the convenience methods of a plan (check it, save it in the original's
format) reach upwards, when they are called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.plans.class_changes import ClassChange, with_class_changes
    from tmkit.plans.continuous_goals import ArmAt, ContinuousGoal, ObjectAt, ObjectIn
    from tmkit.plans.execution import Executor, TimedMotion, execute
    from tmkit.plans.failures import FailureKind, MotionFailure
    from tmkit.plans.observations import CameraModel, PlannedObservation, covariance_rows
    from tmkit.plans.plan_file import load_plan, save_plan
    from tmkit.plans.values import Plan, PlanStep, Reparenting, Segment, SegmentKind
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ArmAt",
    "CameraModel",
    "ClassChange",
    "ContinuousGoal",
    "Executor",
    "FailureKind",
    "MotionFailure",
    "ObjectAt",
    "ObjectIn",
    "Plan",
    "PlanStep",
    "PlannedObservation",
    "Reparenting",
    "Segment",
    "SegmentKind",
    "TimedMotion",
    "covariance_rows",
    "execute",
    "load_plan",
    "save_plan",
    "with_class_changes",
]
