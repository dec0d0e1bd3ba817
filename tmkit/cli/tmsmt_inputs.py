"""Inputs of ``tmkit plan`` by suffix, and options as on the command line of the original TMKit.

``tmkit plan robot.urdf scene.robray domain.pddl facts.pddl script.py -q q0.tmp -g goal.robray``
names a domain, a problem and its semantics by their suffixes. Without scenes it is task planning. A
``.tmp`` plan after the scenes is shown.

A script of the original describes no robot: the arms are the chains that it names, and what
collides at the start may collide in the plan (:mod:`tmkit.tamp.domains.tmsmt_scripts`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tmkit.cli.common import note, require_writable
from tmkit.cli.tasks import task

if TYPE_CHECKING:
    from tmkit.tamp import PlanningOptions, PlanningProblem, PlanResult

_DEFINITION = re.compile(r"\(\s*define\s*\(\s*(domain|problem)\b", re.IGNORECASE)
"""Start of a PDDL file, with its kind."""

_TIMES_HEADER = "# Total, Task, Motion, Integration"
"""Header of each entry of a file of times."""


@dataclass(frozen=True)
class TmsmtOptions:
    """Options of the original that other users need not see, except for the file of facts."""

    write_facts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.pddl", help="Write the PDDL problem that is derived from the scene."
        ),
    ] = None
    load_plan: Annotated[Path | None, typer.Option(hidden=True, metavar="PLAN.tmp")] = None
    times: Annotated[Path | None, typer.Option("-T", "--times", hidden=True)] = None
    motion_timeout: Annotated[float | None, typer.Option("-m", "--motion-timeout", hidden=True)] = (
        None
    )
    steps: Annotated[int | None, typer.Option("--steps", hidden=True)] = None
    resolution: Annotated[float | None, typer.Option("-r", hidden=True)] = None

    def __post_init__(self) -> None:
        for path in (self.write_facts, self.times):
            if path is not None:
                require_writable(path)
        for option, value, reason in (
            ("-m", self.motion_timeout, "path searches end after iterations; see --time-limit"),
            ("--steps", self.steps, "the number of actions of a plan has no limit"),
            ("-r", self.resolution, "the domain semantics have the resolution"),
        ):
            if value is not None:
                note(f"{option} has no effect: {reason}")

    def write_derived_facts(self, problem: PlanningProblem, options: PlanningOptions) -> None:
        """Write the PDDL problem of a planning problem to the file of ``--write-facts``."""
        if self.write_facts is None:
            return
        from tmkit._support.output import write_text
        from tmkit.pddl.writer import problem_to_pddl
        from tmkit.tamp.seed_run import planning_context

        write_text(self.write_facts, problem_to_pddl(planning_context(problem, options).problem))

    def append_times(self, result: PlanResult) -> None:
        """Append the times of a result to the file of ``-T``, if it is given [s]."""
        if self.times is None:
            return
        times = result.statistics
        rest = max(0.0, times.total_seconds - times.task_seconds - times.motion_seconds)
        row = (times.total_seconds, times.task_seconds, times.motion_seconds, rest)
        with self.times.open("a", encoding="utf-8") as file:
            file.write(f"{_TIMES_HEADER}\n{', '.join(f'{value:.9f}' for value in row)}\n")


@dataclass(frozen=True)
class PlanInputs:
    """Inputs of ``tmkit plan``.

    Attributes:
        scenes: scene files and built-in names, or a problem file.
        domain: PDDL domain, or None.
        semantics: domain semantics, or None.
        problem: PDDL problem, or None.
        plan: plan to show, or None.
    """

    scenes: list[str]
    domain: str | None = None
    semantics: str | None = None
    problem: Path | None = None
    plan: Path | None = None

    @property
    def is_task(self) -> bool:
        """True for task planning, without a scene."""
        return not self.scenes and self.plan is None


def sort_inputs(names: Sequence[str], options: PlanInputs) -> PlanInputs:
    """Return the inputs of arguments and options.

    Args:
        names: arguments, which are sorted by suffix.
        options: inputs of options, without scenes.

    Raises:
        typer.BadParameter: if an input is given twice.
    """
    inputs: dict[str, str] = {}
    scenes: list[str] = []
    for name in names:
        suffix = Path(name).suffix
        if suffix == ".pddl":
            role = _pddl_kind(Path(name))
        elif suffix == ".lisp":
            raise typer.BadParameter(f"'{name}' is a Lisp script; scripts are in Python")
        elif suffix in (".py", ".tmp"):
            role = "semantics" if suffix == ".py" else "plan"
        else:
            scenes.append(name)
            continue
        first_name = inputs.get(role) or getattr(options, role)
        if first_name is not None:
            raise typer.BadParameter(f"'{name}' is a second {role}, beside '{first_name}'")
        inputs[role] = name
    problem, plan = inputs.get("problem"), inputs.get("plan")
    return PlanInputs(
        scenes,
        inputs.get("domain") or options.domain,
        inputs.get("semantics") or options.semantics,
        options.problem if problem is None else Path(problem),
        options.plan if plan is None else Path(plan),
    )


def _pddl_kind(path: Path) -> str:
    """Return ``domain`` or ``problem``, by the content of a PDDL file.

    Raises:
        TaskError: if the file is neither.
        MissingFileError: if it does not exist.
    """
    from tmkit.errors import TaskError
    from tmkit.pddl.parsing.parser import read_pddl

    text = re.sub(r";[^\n]*", "", read_pddl(path))
    definition = _DEFINITION.search(text)
    if definition is None:
        raise TaskError.at(path, "expected '(define (domain ...' or '(define (problem ...'")
    return definition[1].lower()


def plan_task(inputs: PlanInputs, *, output: Path | None, as_json: bool) -> None:
    """Plan without a scene, as ``tmkit task``.

    Args:
        inputs: inputs without scenes.
        output: file of the plan, or None.
        as_json: whether to print the result as JSON.

    Raises:
        typer.BadParameter: if the domain or the problem is missing.
    """
    if inputs.domain is None or inputs.problem is None:
        raise typer.BadParameter(
            "give the files of a scene, or a PDDL domain and a PDDL problem", param_hint="SCENE"
        )
    task(Path(inputs.domain), inputs.problem, output=output, as_json=as_json)
