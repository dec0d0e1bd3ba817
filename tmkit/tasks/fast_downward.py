"""Fast Downward as a task planner.

The idea: Fast Downward is two programs. The *translator* turns PDDL into a task of finite-domain variables; the
*search* finds a plan for that. Both are run as programs of their own, in a private folder that is gone afterwards,
and neither is ever imported; they are found through the import system without importing anything. Between the two
stands a value, the :class:`~tmkit.tasks.sas.TranslatedTask`, so that a task is translated once, then patched with
what is learned and searched again.

The search: the first plan comes from a greedy search with landmarks and the FF heuristic, which is the most robust of
those that accept axioms. Its plans can be twice too long, and each step costs a motion. So weighted A* searches with
the FF heuristic follow, each short, and the best plan counts. On random blocks worlds with up to 10 blocks and 49
places this brings plans from 22 % above the best known to 3 %, for 0.06 s more on average.

Determinism: the same task gives the same plan. The translator's hash seed is fixed. A follow-up search counts only if
it took few enough expansions (``improvement_work``), a number that no clock knows; its time limit merely stops it,
and leaves a factor of ten for slower machines.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tmkit.errors import MissingExtraError, TaskPlannerError
from tmkit.interrupts import temporary_folder
from tmkit.tasks import processes
from tmkit.tasks.encoding import encode
from tmkit.tasks.model import GroundAction, Problem
from tmkit.tasks.planning import TaskPlanner, TaskPlanResult, TaskPlanStatistics, TaskPlanStatus
from tmkit.tasks.processes import Finished
from tmkit.tasks.sas import TranslatedTask
from tmkit.tasks.validation import validate_plan

__all__ = ["FIRST_SEARCH", "FOLLOW_UP_SEARCHES", "OPTIMAL_SEARCH", "FastDownward"]

FIRST_SEARCH = (
    "let(hlm, eval_modify_costs("
    "landmark_sum(lm_factory=lm_reasonable_orders_hps(lm_rhw()), pref=false), cost_type=one),"
    " let(hff, eval_modify_costs(ff(), cost_type=one),"
    " lazy_greedy([hff, hlm], preferred=[hff, hlm], cost_type=one, reopen_closed=false)))"
)
"""Fast Downward's ``lama-first``: finds a plan soon, if not a short one."""

FOLLOW_UP_SEARCHES = (
    "let(h, ff(), lazy_wastar([h], preferred=[h], w=3, max_time={seconds}))",
    "let(h, ff(), lazy_wastar([h], preferred=[h], w=2, max_time={seconds}))",
)
"""Searches for a shorter plan; ``{seconds}`` is the processor time after which each gives up."""

OPTIMAL_SEARCH = "astar(lmcut())"
"""Finds the best plan, by the landmarks that every plan has; takes neither axioms nor conditional effects."""

_PROVING_SEARCH = "astar(blind())"

_FIRST_SECONDS = 2.0  # after which it is asked whether there is a plan at all
_FOLLOW_UP_SECONDS = 1.0
_GAVE_UP = 12
_LIMIT_CODES = frozenset({None, _GAVE_UP, 20, 21, 22, 23, 24, -9, -24})
_UNSOLVABLE_CODES = frozenset({10, 11})
_SOLVED_CODES = frozenset({0, 1, 2, 3})


@dataclass(frozen=True)
class FastDownward(TaskPlanner[TranslatedTask]):
    """Plans with Fast Downward.

    Args:
        first_search: the search that finds the first plan; it must accept axioms.
        follow_up_searches: searches for a better plan, each in a run of its own; none to be content with the first.
        improvement_work: how much a follow-up search may do for its plan to count: the number of states it expanded
            times the number of operators of the task. 2e6 is about a tenth of a second.
        general_search: the search in the place of the first one where a task has axioms or conditional effects, if
            that does not take them; empty when it does.
        encoding: how the search is told what is forbidden: by ``"axioms"``, or, for one that takes none, by operators
            that are ``"split"``.
    """

    first_search: str = FIRST_SEARCH
    follow_up_searches: tuple[str, ...] = FOLLOW_UP_SEARCHES
    improvement_work: float = 2e6
    general_search: str = ""
    encoding: Literal["axioms", "split"] = "axioms"

    @classmethod
    def optimal(cls) -> FastDownward:
        """Return a planner whose plans are as short as possible or, by the problem's metric, as cheap.

        It proves that, which takes long: it is for a dozen steps or so. With lessons too a plan is the best there is.
        """
        return cls(first_search=OPTIMAL_SEARCH, follow_up_searches=(), general_search=_PROVING_SEARCH, encoding="split")

    # -------------------------------------------------------------------------------------------------- translating

    def translate(self, problem: Problem, *, time_limit: float = 60.0) -> TranslatedTask:
        """Translate a problem for :meth:`search`.

        Args:
            problem: the task.
            time_limit: seconds after which to give up.

        Returns:
            The translated task; when the time was not enough, one that is not ``complete``, which no search can solve.

        Raises:
            TaskPlannerError: the translator could not be run or broke, or the problem is beyond Fast Downward.
        """
        encoding = encode(problem)
        with temporary_folder("translate") as folder:
            (folder / "domain.pddl").write_text(encoding.domain_text, encoding="utf-8")
            (folder / "problem.pddl").write_text(encoding.problem_text, encoding="utf-8")
            finished = processes.run(
                [sys.executable, "-S", "-m", "fast_downward.translate", *_TRANSLATOR_OPTIONS],
                folder=folder,
                environment=_environment(PYTHONPATH=str(_translator_folder()), PYTHONHASHSEED="0", PYTHONUTF8="1"),
                time_limit=time_limit,
            )
            if finished.code in _LIMIT_CODES:
                return TranslatedTask.unfinished(problem)
            if finished.code != 0:
                raise finished.error(f"Fast Downward's translator ended with exit code {finished.code}")
            text = (folder / "output.sas").read_text(encoding="utf-8")
        return replace(TranslatedTask.from_text(text, problem, names=encoding.names), encoding=self.encoding)

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> TranslatedTask:
        """Do the same as :meth:`translate`, under the name that every :class:`~tmkit.tasks.TaskPlanner` has for it."""
        return self.translate(problem, time_limit=time_limit)

    # ---------------------------------------------------------------------------------------------------- searching

    def search(self, task: TranslatedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Search for a plan of a translated task, which may have been patched.

        Args:
            task: the task, from :meth:`translate`.
            time_limit: seconds after which to give up.

        Returns:
            The plan, that there is none, or that none was found within the time.

        Raises:
            TaskPlannerError: the search could not be run or broke, or its plan does not reach the goal.
        """
        if not task.complete:
            return TaskPlanResult(TaskPlanStatus.LIMIT, message="the translation ran out of time or memory")
        deadline = time.monotonic() + time_limit
        with temporary_folder("search") as folder:
            run = _SearchRun(task, folder, deadline)
            run.prepare()
            first = self._first_search(task)
            is_proving = first.startswith("astar(")
            best, gave_up = run.search(first, seconds=math.inf if is_proving else _FIRST_SECONDS)
            if best.status is TaskPlanStatus.LIMIT and not is_proving:
                best = self._proved_or_found(run, best, gave_up=gave_up)
            return self._improved(run, best) if best.solved and best.steps else best

    def _first_search(self, task: TranslatedTask) -> str:
        has_conditions = any(effect.conditions for operator in task.operators for effect in operator.effects)
        return self.general_search if self.general_search and (task.axioms or has_conditions) else self.first_search

    def _proved_or_found(self, run: _SearchRun, first: TaskPlanResult, *, gave_up: bool) -> TaskPlanResult:
        """Return the proof that there is no plan, for which greedy searches are slow, or what a longer search finds.

        A plan of the proving search counts only when the first search gave up: whether that was merely slow is a matter
        of clocks, on which no plan may depend.
        """
        proof, _ = run.search(_PROVING_SEARCH, seconds=0.75 * (run.deadline - time.monotonic()))
        statistics = _together(first.statistics, proof.statistics)
        if proof.status is TaskPlanStatus.UNSOLVABLE or gave_up:
            return replace(proof, statistics=statistics)
        longer, _ = run.search(self.first_search)
        return replace(longer, statistics=_together(statistics, longer.statistics))

    def _improved(self, run: _SearchRun, best: TaskPlanResult) -> TaskPlanResult:
        """Return the best of the plan given and those of the follow-up searches that count."""
        statistics = best.statistics
        for search in self.follow_up_searches:
            if run.deadline <= time.monotonic():
                break
            found, _ = run.search(search.format(seconds=_FOLLOW_UP_SECONDS))
            statistics = _together(statistics, found.statistics)
            counts = found.statistics.expanded * len(run.task.operators) <= self.improvement_work
            if found.solved and counts and (found.cost, len(found.steps)) < (best.cost, len(best.steps)):
                best = found
        return replace(best, statistics=statistics)


@dataclass(frozen=True)
class _SearchRun:
    """Searches of one task in one folder until one deadline."""

    task: TranslatedTask
    folder: Path
    deadline: float

    def prepare(self) -> None:
        """Write the task to the folder."""
        (self.folder / "task.sas").write_text(self.task.to_text(), encoding="utf-8")

    def search(self, search: str, *, seconds: float = math.inf) -> tuple[TaskPlanResult, bool]:
        """Run one search for at most ``seconds``; return its result and whether it gave up without plan or proof."""
        plan_file = self.folder / "plan"
        plan_file.unlink(missing_ok=True)
        finished = processes.run(
            [str(_search_program()), "--search", search, "--internal-plan-file", str(plan_file)],
            folder=self.folder,
            environment=_environment(),
            time_limit=min(seconds, self.deadline - time.monotonic()),
            standard_input=self.folder / "task.sas",
        )
        statistics = TaskPlanStatistics(
            expanded=_counted(finished, "Expanded"),
            evaluated=_counted(finished, "Evaluated"),
            operators=len(self.task.operators),
            facts=self.task.fact_count,
            search_seconds=finished.seconds,
        )
        if finished.code in _SOLVED_CODES and plan_file.exists():
            lines = plan_file.read_text(encoding="utf-8").splitlines()
            steps = tuple(self.task.action_of(line.strip("()")) for line in lines if line.startswith("("))
            return _solved(self.task, steps, statistics, finished), False
        if finished.code in _UNSOLVABLE_CODES:
            return TaskPlanResult(TaskPlanStatus.UNSOLVABLE, message="there is no plan", statistics=statistics), False
        if finished.code in _LIMIT_CODES:
            message = "no plan was found within the time and memory given"
            return TaskPlanResult(
                TaskPlanStatus.LIMIT, message=message, statistics=statistics
            ), finished.code == _GAVE_UP
        raise finished.error(f"Fast Downward's search ended with exit code {finished.code}")


_TRANSLATOR_OPTIONS = ("--keep-unimportant-variables", "--sas-file", "output.sas", "domain.pddl", "problem.pddl")


def _solved(
    task: TranslatedTask, steps: tuple[GroundAction, ...], statistics: TaskPlanStatistics, finished: Finished
) -> TaskPlanResult:
    """Return the plan after executing it; a plan that fails then would be an error of a program, ours or theirs."""
    validation = validate_plan(task.problem, steps)
    if not validation:
        raise finished.error(f"Fast Downward's plan is not valid: {validation.message}")
    return TaskPlanResult(TaskPlanStatus.SOLVED, steps, validation.cost, "a plan was found", statistics)


def _together(first: TaskPlanStatistics, second: TaskPlanStatistics) -> TaskPlanStatistics:
    return replace(
        first,
        expanded=first.expanded + second.expanded,
        evaluated=first.evaluated + second.evaluated,
        search_seconds=first.search_seconds + second.search_seconds,
    )


def _counted(finished: Finished, what: str) -> int:
    """Return the last number that the search printed after ``what``."""
    found = re.findall(rf"{what} (\d+) state", finished.output)
    return int(found[-1]) if found else 0


# ---------------------------------------------------------------------------------------------- finding the programs


def _environment(**extra: str) -> dict[str, str]:
    """Return the environment of the programs: nothing of ours that could change what they do."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C", **extra}


def _package_folder(name: str) -> Path:
    """Return where a package lies, without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        message = f"Fast Downward is not installed: there is no package '{name}'; pip install up-fast-downward"
        raise MissingExtraError(message, extra="up-fast-downward", module=name)
    return Path(next(iter(spec.submodule_search_locations)))


def _translator_folder() -> Path:
    """Return the folder from which ``fast_downward.translate`` can be run."""
    return _package_folder("fast_downward").parent


def _search_program() -> Path:
    """Return the search program."""
    program = _package_folder("up_fast_downward") / "downward" / "builds" / "release" / "bin" / "downward"
    if not os.access(program, os.X_OK):
        raise TaskPlannerError(f"there is no program {program}", command=(str(program),), output="")
    return program
