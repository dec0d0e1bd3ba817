"""Command that executes a plan on the controllers of a robot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tmkit as tk
from tmkit.cli.common import AsJson, PlanFile, SceneFileOptions, errors_about
from tmkit.cli.inputs import TmpPlanOptions, load_plan_file
from tmkit.cli.reporting import fail, print_json, progress, say
from tmkit.cli.signals import ExitCode
from tmkit.errors import ExecutionError

if TYPE_CHECKING:
    from tmkit.plans import ExecutionReport, Plan
    from tmkit.world import ControllerSettings


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
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Ask before each step; the arm rests in between.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the goals and send none; needs no ROS.")
    ] = False


def execute(
    path: PlanFile,
    controllers: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="MoveIt's moveit_controllers.yaml, or a TOML file; again for further ones.",
        ),
    ],
    *,
    flags: MotionFlags,
    plan_options: TmpPlanOptions,
    as_json: AsJson = False,
    files: SceneFileOptions,
) -> None:
    """Execute a plan on the ROS 2 controllers of a robot, after it is validated.

    Before anything moves, the joints, servers, limits and the measured start are checked. Ctrl-C
    cancels the motion. The exit code is 1 after a failure, and 2 if nothing has moved.
    """
    from tmkit.world.execution.goals import GoalList, execute_with_pauses, plan_part
    from tmkit.world.ros2.controllers import load_controllers

    settings = load_controllers(*controllers)
    plan = load_plan_file(path, plan_options, files)
    _require_valid(path, plan, plan_options)
    if not plan.steps:
        say(f"{path}: the plan has no steps")
        return
    last = len(plan.steps) if flags.last is None else flags.last
    with errors_about(path):
        part = plan_part(plan, flags.first, last)
        listed = GoalList(settings, speed=flags.speed, first=flags.first)
        with progress("checking the motions"):
            pause = (lambda _: True) if flags.confirm else None
            execute_with_pauses(part, listed, rate=flags.rate, before_step=pause)
    if not flags.dry_run:
        _execute(part, settings, flags, as_json=as_json)
    elif as_json:
        print_json([goal.to_dict() for goal in listed.goals])
    else:
        for goal in listed.goals:
            say(str(goal))


def _require_valid(path: Path, plan: Plan, options: TmpPlanOptions) -> None:
    """Validate a plan; exit with the code of a negative result if it is invalid."""
    with errors_about(path), progress("checking") as show:
        report = tk.validate_plan(
            plan, domain=options.domain, semantics=options.semantics, on_progress=show
        )
    if not report.is_valid:
        problems = "".join(f"\n  {problem}" for problem in report.problems)
        fail(f"{path}: the plan is not valid, and was not executed:{problems}")


def _execute(
    plan: Plan, settings: ControllerSettings, flags: MotionFlags, *, as_json: bool
) -> None:
    """Execute a plan and print the report.

    Raises:
        ExecutionError: if the execution failed before anything has moved.
        typer.Exit: if it failed later, or the user ended it.
    """
    from tmkit.plans.execution_report import ExecutionReport
    from tmkit.world.execution.goals import execute_with_pauses
    from tmkit.world.ros2.executor import Ros2Executor

    def confirm(index: int) -> bool:
        step = plan.steps[index - 1]
        return typer.confirm(f"{flags.first + index - 1}. {step.action}: execute?", err=True)

    last = flags.first + len(plan.steps) - 1
    with Ros2Executor(settings, speed=flags.speed, first=flags.first) as executor:
        try:
            count = execute_with_pauses(
                plan, executor, rate=flags.rate, before_step=confirm if flags.confirm else None
            )
        except ExecutionError as error:
            report: ExecutionReport = error.data["report"]
            if report.step == 0:
                raise
            _print_report(report, str(error), as_json=as_json)
            raise typer.Exit(ExitCode.NO) from None
        except KeyboardInterrupt:
            if executor.failure is not None:
                report = executor.failure
                rest = "is at rest" if report.is_at_rest else "may still move"
                text = f"{report.message} in step {report.step}, {report.kind}; the arm {rest}"
                _print_report(report, text, as_json=as_json)
            raise
    report = ExecutionReport(flags.first + count - 1, last)
    _print_report(report, f"Executed {count} of {len(plan.steps)} steps", as_json=as_json)
    if count < len(plan.steps):
        raise typer.Exit(ExitCode.NO)


def _print_report(report: ExecutionReport, text: str, *, as_json: bool) -> None:
    """Print a report as JSON, or a text."""
    if as_json:
        print_json(report.to_dict())
    else:
        say(text)
