"""The command ``tmkit task``: task planning of PDDL problems without a scene."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tmkit._support.terminal import printable
from tmkit.cli.common import AsJson, built_in_names, require_plug_in, require_writable
from tmkit.cli.reporting import print_json, progress, say
from tmkit.cli.signals import ExitCode
from tmkit.task_planning.registry import FAST_DOWNWARD, TASK_PLANNERS, find_task_planner

if TYPE_CHECKING:
    from tmkit.pddl import Problem
    from tmkit.task_planning import TaskPlanner, TaskPlanResult
    from tmkit.task_planning.policy import Policy

_MESSAGES = {
    "unsolvable": "There is no plan: that is proved.",
    "limit": "No plan was found; there may be one",
}
"""Messages without a plan, by the status of the result."""

_SEQUENTIAL_MESSAGE = (
    "There is no plan whose actions follow one another: that is proved. Some may have to overlap."
)
"""Message of a planner without overlapping actions that proves a durative problem unsolvable."""


def task(
    domain: Annotated[Path, typer.Argument(metavar="DOMAIN.pddl", help="The PDDL domain.")],
    problem: Annotated[Path, typer.Argument(metavar="PROBLEM.pddl", help="The PDDL problem.")],
    planner: Annotated[
        str,
        typer.Option(
            metavar=built_in_names(TASK_PLANNERS, separator="|"),
            help=(
                "Satisficing, cost-optimal, with the fewest actions (Z3), or an engine of"
                " unified-planning."
            ),
        ),
    ] = FAST_DOWNWARD.name,
    time_limit: Annotated[
        float, typer.Option(metavar="S", help="Time limit in seconds.", min=0.001)
    ] = 60.0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PLAN", help="Write the plan, one action a line."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find actions that solve a PDDL problem, without a scene and without motions.

    The same files give the same plan. Every plan is validated before it is printed, in the format
    of the planning competitions.
    """
    from tmkit.pddl import load_domain, load_problem

    require_plug_in(TASK_PLANNERS, planner, option="--planner")
    if output is not None:
        require_writable(output)
    pddl_problem = load_problem(problem, load_domain(domain))
    with progress("planning"):
        result, policy = _solve(pddl_problem, find_task_planner(planner), time_limit)
    text = _format_valid_plan(pddl_problem, result) if result.is_solved else ""
    if output is not None and result.is_solved:
        _write_plan(output, text)
    if as_json:
        print_json(_result_document(result, policy))
    elif result.is_solved:
        typer.echo(
            printable(text) if output is None else f"Written to {output}", nl=output is not None
        )
    else:
        reason = f": {result.message}." if result.status.value == "limit" else ""
        # Plans of built-in planners are sequential. The name of UNIFIED contains an engine, so it
        # is not found here.
        is_sequential = TASK_PLANNERS.find_built_in(planner) is not None
        is_unsolvable = result.status.value == "unsolvable"
        if pddl_problem.domain.is_durative and is_unsolvable and is_sequential:
            say(_SEQUENTIAL_MESSAGE)
        else:
            say(f"{_MESSAGES[result.status.value]}{reason}")
        if policy is not None and policy.defeating:
            say(f"{result.message[0].upper()}{result.message[1:]}.")
    if not result.is_solved:
        raise typer.Exit(ExitCode.NO)


def _write_plan(path: Path, text: str) -> None:
    """Write a plan in the format of the competitions, or in that of the original TMKit."""
    if path.suffix != ".tmp":
        from tmkit._support.output import write_text

        write_text(path, text)
        return
    from tmkit.formats.tmp_file import TmpAction, write_tmp

    lines = [line.partition(";")[0].strip(" ()") for line in text.splitlines()]
    write_tmp((TmpAction(tuple(line.split())) for line in lines if line), path)


def _solve(
    problem: Problem, planner: TaskPlanner[Any], time_limit: float
) -> tuple[TaskPlanResult, Policy | None]:
    """Return the result of a planner, and its policy if the domain has uncontrollable actions."""
    from tmkit.task_planning import FastDownward

    if problem.domain.uncontrollable_actions and isinstance(planner, FastDownward):
        policy = planner.policy(problem, time_limit=time_limit)
        return policy.result, policy
    return planner.solve(problem, time_limit=time_limit), None


def _format_valid_plan(problem: Problem, result: TaskPlanResult) -> str:
    """Validate a plan, and return it in the format of the planning competitions.

    A plan with durations is scheduled.

    Raises:
        TaskPlannerError: if the plan or its schedule is invalid.
    """
    from tmkit.errors import TaskPlannerError
    from tmkit.pddl import schedule_fault, validate_task_plan
    from tmkit.pddl.model import Metric
    from tmkit.task_planning import makespan, schedule

    validation = validate_task_plan(problem, result.steps)
    if not validation.is_valid and not result.schedule:
        raise TaskPlannerError(
            f"the plan is not valid: {validation.message}", command=(), output=""
        )
    if problem.domain.is_durative:
        timed_actions = result.schedule or schedule(problem, result.steps)
        if fault := schedule_fault(problem, timed_actions):
            raise TaskPlannerError(f"the schedule is not valid: {fault}", command=(), output="")
        lines = "".join(f"{action}\n" for action in timed_actions)
        return f"{lines}; makespan = {makespan(timed_actions):.3f}\n"
    kind = "general cost" if problem.metric is Metric.TOTAL_COST else "unit cost"
    lines = "".join(f"{step}\n" for step in result.steps)
    return f"{lines}; cost = {validation.cost:g} ({kind})\n"


def _result_document(result: TaskPlanResult, policy: Policy | None) -> dict[str, Any]:
    """Return the JSON values of a result."""
    numbers = result.statistics
    details = {} if policy is None else policy.to_dict()
    return {
        "status": result.status.value,
        "steps": [str(step) for step in result.steps],
        "cost": result.cost if result.is_solved else None,
        "message": result.message,
        "expanded": numbers.expanded,
        "operators": numbers.operators,
        "translation_seconds": numbers.translation_seconds,
        "search_seconds": numbers.search_seconds,
        "search": numbers.search,
        **{name: details[name] for name in ("defeating", "actions") if name in details},
    }
