"""The names that `tmkit.plans` exports."""

from tmkit.plans.bounded_actions import (
    BoundedAction as BoundedAction,
    bounded_actions as bounded_actions,
)
from tmkit.plans.class_changes import ClassEffect as ClassEffect
from tmkit.plans.continuous_goals import ArmAt as ArmAt, ObjectAt as ObjectAt, ObjectIn as ObjectIn
from tmkit.plans.execution import Executor as Executor, execute as execute
from tmkit.plans.execution_report import (
    ExecutionReport as ExecutionReport,
    ExecutionStatus as ExecutionStatus,
)
from tmkit.plans.export import export_plan as export_plan, motion_table as motion_table
from tmkit.plans.failures import FailureKind as FailureKind, MotionFailure as MotionFailure
from tmkit.plans.motion_timing import plan_motions as plan_motions
from tmkit.plans.observations import (
    CameraModel as CameraModel,
    PlannedObservation as PlannedObservation,
    covariance_rows as covariance_rows,
)
from tmkit.plans.plan_file import load_plan as load_plan, save_plan as save_plan
from tmkit.plans.schedule import Schedule as Schedule
from tmkit.plans.values import (
    Attachment as Attachment,
    Plan as Plan,
    PlanStep as PlanStep,
    Segment as Segment,
    SegmentKind as SegmentKind,
)
