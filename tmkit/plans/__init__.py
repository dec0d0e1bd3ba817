"""Plans: what the planner returns, as values, and their files and execution.

``values`` defines a plan: its steps, and the segments of motion of each step. A step may change the classes of frames
(``class_changes``) or measure poses (``observations``). ``continuous_goals`` are goals that facts cannot express.
``failures`` describes why a motion was not found. ``plan_file`` writes and reads plans as JSON, and writes
the format of the original TMKit, ``schedule`` has steps of several arms at once,
``execution`` executes a plan on a robot or simulator, ``export`` writes it in time for other programs.

:func:`tmkit.tamp.validate_plan` validates a plan.
"""

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.plans.class_changes import (
        ClassChange as ClassChange,
        FactChange as FactChange,
        with_class_changes as with_class_changes,
    )
    from tmkit.plans.continuous_goals import (
        ArmAt as ArmAt,
        ContinuousGoal as ContinuousGoal,
        ObjectAt as ObjectAt,
        ObjectIn as ObjectIn,
        goal_from_dict as goal_from_dict,
    )
    from tmkit.plans.execution import (
        Executor as Executor,
        ScheduleExecutor as ScheduleExecutor,
        TimedMotion as TimedMotion,
        execute as execute,
        execute_step as execute_step,
        step_duration as step_duration,
    )
    from tmkit.plans.export import (
        EXPORT_FORMATS as EXPORT_FORMATS,
        MotionTable as MotionTable,
        RecordingExecutor as RecordingExecutor,
        TimedCommand as TimedCommand,
        export_plan as export_plan,
        motion_table as motion_table,
    )
    from tmkit.plans.failures import FailureKind as FailureKind, MotionFailure as MotionFailure
    from tmkit.plans.motion_timing import plan_motions as plan_motions
    from tmkit.plans.observations import (
        CameraModel as CameraModel,
        PlannedObservation as PlannedObservation,
        covariance_rows as covariance_rows,
    )
    from tmkit.plans.plan_file import (
        load_plan as load_plan,
        plan_from_dict as plan_from_dict,
        plan_to_dict as plan_to_dict,
        save_plan as save_plan,
    )
    from tmkit.plans.schedule import Moment as Moment, Phase as Phase, Schedule as Schedule, Track as Track
    from tmkit.plans.values import (
        Plan as Plan,
        PlannedMotion as PlannedMotion,
        PlanStep as PlanStep,
        Reparenting as Reparenting,
        Segment as Segment,
        SegmentKind as SegmentKind,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
