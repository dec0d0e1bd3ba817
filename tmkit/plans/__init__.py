"""Plans: what the planner returns, as values, and their files and execution.

``values`` defines a plan: its steps, and the segments of motion of each step. A step may change the classes of frames
(``class_changes``) or measure poses (``observations``). ``continuous_goals`` are goals that facts cannot express.
``failures`` describes why a motion was not found. ``plan_file`` writes and reads plans as JSON, ``tmp_writer`` writes
the format of the original TMKit, ``execution`` executes a plan on a robot or simulator.

:func:`tmkit.tamp.validate_plan` validates a plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.plans.class_changes import ClassChange, with_class_changes
    from tmkit.plans.continuous_goals import ArmAt, ContinuousGoal, ObjectAt, ObjectIn, goal_from_dict
    from tmkit.plans.execution import Executor, TimedMotion, execute
    from tmkit.plans.failures import FailureKind, MotionFailure
    from tmkit.plans.observations import CameraModel, PlannedObservation, covariance_rows
    from tmkit.plans.plan_file import load_plan, plan_from_dict, plan_to_dict, save_plan
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
    "goal_from_dict",
    "load_plan",
    "plan_from_dict",
    "plan_to_dict",
    "save_plan",
    "with_class_changes",
]
