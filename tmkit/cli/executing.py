"""Command that executes a plan on the controllers of a robot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tmkit as tk
from tmkit.cli.common import (
    AsJson,
    PlanFile,
    SceneFileOptions,
    errors_about,
    note,
    require_writable,
)
from tmkit.cli.execution_robots import RobotFiles, check_plan, open_executor
from tmkit.cli.inputs import TmpPlanOptions, load_plan_file
from tmkit.cli.reporting import fail, print_json, progress, say
from tmkit.cli.signals import ExitCode
from tmkit.errors import ExecutionError

if TYPE_CHECKING:
    from tmkit.cli.execution_record import ReportFile
    from tmkit.cli.execution_robots import RobotSettings
    from tmkit.plans import ExecutionReport, Plan
    from tmkit.world.execution.goals import Goal


@dataclass(frozen=True)
class MotionFlags:
    """Steps to execute, and their speed."""

    speed: Annotated[
        float, typer.Option(metavar="FRACTION", help="Speed relative to the plan, up to 1.")
    ] = 1.0
    rate: Annotated[float, typer.Option(metavar="HZ", help="Points of a trajectory a second.")] = (
        50.0
    )
    first: Annotated[
        int, typer.Option("--from", metavar="STEP", help="The first step to execute.", min=1)
    ] = 1
    last: Annotated[
        int | None, typer.Option("--until", metavar="STEP", help="The last step to execute.", min=1)
    ] = None
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on after a stop or a failure, from the measured configuration."
        ),
    ] = False
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the report, which --resume reads; by default PLAN.report.json.",
        ),
    ] = None
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Ask before each step; the arm rests in between.")
    ] = False
    in_turn: Annotated[
        bool, typer.Option("--in-turn", help="One step after the other, also of several arms.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the goals and send none; needs no robot.")
    ] = False


@dataclass(frozen=True)
class _Task:
    """Plan and the part of it to execute.

    Attributes:
        plan: whole plan, by whose numbers of steps and segments reports count.
        part: part to execute.
        first: number of the first step of the part.
        first_segment: number of the first segment of this step.
    """

    plan: Plan
    part: Plan
    first: int = 1
    first_segment: int = 1


def execute(
    path: PlanFile,
    robot: RobotFiles,
    *,
    flags: MotionFlags,
    plan_options: TmpPlanOptions,
    as_json: AsJson = False,
    files: SceneFileOptions,
) -> None:
    """Execute a plan on ROS 2 controllers or a LeRobot arm, after it is validated.

    Before anything moves, the joints, servers, limits and the measured start are checked. Ctrl-C
    cancels the motion, and --resume goes on from there. The exit code is 1 after a failure, and 2
    if nothing has moved.
    """
    from tmkit.cli.execution_record import ReportFile
    from tmkit.world.execution.goals import plan_part

    settings = robot.load()
    plan = load_plan_file(path, plan_options, files)
    record = flags.report or path.with_suffix(".report.json")
    if flags.resume:
        task = _resume(path, record, settings, flags, plan_options)
    else:
        _require_valid(path, plan, plan_options)
        if flags.in_turn:
            plan = replace(plan, starts=(), joined=())
        last = len(plan.steps) if flags.last is None else flags.last
        with errors_about(path):
            part = plan_part(plan, flags.first, last) if plan.steps else plan
            check_plan(settings, part)
        task = _Task(plan, part, flags.first)
    if not task.part.steps:
        say(f"{path}: no steps remain" if flags.resume else f"{path}: the plan has no steps")
        return
    with errors_about(path), progress("checking the motions"):
        goals = _list_goals(task, settings, flags)
    if not flags.dry_run:
        require_writable(record)
        file = ReportFile(record, path, task.plan)
        _execute(task, settings, flags, as_json=as_json, file=file)
    elif as_json:
        print_json([goal.to_dict() | times for goal, times in goals])
    else:
        for goal, times in goals:
            say("".join(f"{time:.2f} s: " for time in times.values()) + str(goal))


def _list_goals(
    task: _Task, settings: RobotSettings, flags: MotionFlags
) -> list[tuple[Goal, dict[str, float]]]:
    """Return the goals of a task, with the start of each if arms act at the same time.

    Raises:
        ConfigurationError: if an arm or hand has no controller, a sample exceeds a limit, or the
            arms would collide if one was late.
    """
    from tmkit.plans import Schedule
    from tmkit.world import LeRobotSettings
    from tmkit.world.execution.goals import GoalList, execute_with_pauses
    from tmkit.world.execution.parallel import place_goals, require_free_delays

    plan = task.part
    listed = GoalList(
        settings, speed=flags.speed, first=task.first, first_segment=task.first_segment
    )
    if not plan.starts or flags.confirm or isinstance(settings, LeRobotSettings):
        pause = (lambda _: True) if flags.confirm else None
        execute_with_pauses(plan, listed, rate=flags.rate, before_step=pause)
        return [(goal, {}) for goal in listed.goals]
    schedule = Schedule.of(plan)
    require_free_delays(schedule, settings.schedule_tolerance)
    listed.begin(plan)
    goals_of = partial(listed.make_goals, rate=flags.rate)
    entries = place_goals(schedule, goals_of, first=task.first)
    return [(entry.goal, {"begin": entry.begin / flags.speed}) for entry in entries]


def _require_valid(path: Path, plan: Plan, options: TmpPlanOptions) -> None:
    """Validate a plan; exit with the code of a negative result if it is invalid."""
    with errors_about(path), progress("checking") as show:
        report = tk.validate_plan(
            plan, domain=options.domain, semantics=options.semantics, on_progress=show
        )
    if not report.is_valid:
        problems = "".join(f"\n  {problem}" for problem in report.problems)
        fail(f"{path}: the plan is not valid, and was not executed:{problems}")


def _resume(
    path: Path, record: Path, settings: RobotSettings, flags: MotionFlags, options: TmpPlanOptions
) -> _Task:
    """Return the rest of a plan from the measured configuration.

    A dry run begins at the configuration of the report.

    Raises:
        typer.BadParameter: if the steps are given, too.
        typer.Exit: if there is no plan from there.
    """
    from tmkit.cli.execution_record import load_record
    from tmkit.tamp import resume_plan
    from tmkit.world import ControllerSettings, Ros2Executor

    if not isinstance(settings, ControllerSettings):
        raise typer.BadParameter(
            "a robot of LeRobot frees its motors when it is connected, so its arm falls; plan again"
            " from where it lies",
            param_hint="--resume",
        )
    if flags.first != 1 or flags.last is not None:
        raise typer.BadParameter(
            "a resumed plan goes on to its end, so --from and --until have no meaning",
            param_hint="--resume",
        )
    plan, report = load_record(record, path)
    positions = None
    if not flags.dry_run:
        with progress("reading the joint states"), Ros2Executor(settings) as robot:
            positions = robot.measure(plan)
    with errors_about(path), progress("resuming"):
        rest = resume_plan(
            plan, report, positions=positions, domain=options.domain, semantics=options.semantics
        )
    if rest.plan is None or rest.remaining is None:
        fail(f"{path}: {rest.explanation}")
    note(f"{path}: {rest.explanation}")
    return _Task(rest.plan, rest.remaining, rest.step, rest.segment)


def _execute(
    task: _Task, settings: RobotSettings, flags: MotionFlags, *, as_json: bool, file: ReportFile
) -> None:
    """Execute a part of a plan, and print and save the report.

    Raises:
        ExecutionError: if the execution failed before anything has moved.
        typer.Exit: if it failed later, or the user ended it.
    """
    from tmkit.plans.execution_report import ExecutionReport
    from tmkit.world.execution.goals import execute_with_pauses

    steps, first = task.part.steps, task.first

    def confirm(index: int) -> bool:
        return typer.confirm(f"{first + index - 1}. {steps[index - 1].action}: execute?", err=True)

    def finish(report: ExecutionReport, text: str) -> None:
        file.save(report)
        if as_json:
            print_json(report.to_dict())
        else:
            say(text)

    with open_executor(
        settings, speed=flags.speed, first=first, first_segment=task.first_segment
    ) as executor:
        try:
            executor.begin(task.part)
            file.remove()  # of an earlier execution, which is not resumed any more
            count = execute_with_pauses(
                task.part, executor, rate=flags.rate, before_step=confirm if flags.confirm else None
            )
        except ExecutionError as error:
            report: ExecutionReport = error.data["report"]
            if report.step == 0:
                raise
            finish(report, str(error))
            raise typer.Exit(ExitCode.NO) from None
        except KeyboardInterrupt:
            if (stop := executor.interruption()) is not None:
                rest = "is at rest" if stop.is_at_rest else "may still move"
                finish(stop, f"{stop.message} in step {stop.step}, {stop.kind}; the arm {rest}")
            raise
    report = ExecutionReport(first + count - 1, first + len(steps) - 1)
    finish(report, f"Executed {count} of {len(steps)} steps")
    if count < len(steps):
        raise typer.Exit(ExitCode.NO)
