"""Fast Downward as a task planner: docs/reference/tasks.md describes and measures its searches.

The *translator* turns PDDL into a :class:`~tmkit.task_planning.translated_task.TranslatedTask`,
which is translated once, then patched with learned constraints and *searched* again. Both are
programs of their own in a private folder that is gone afterwards, found through the import system
without importing anything. Starting the translator takes longer than translating a small task, so
the last few translations are remembered: the same problem need not be translated for every seed.

The core searches first, in this process (:mod:`tmkit.task_planning.core_search`): most tasks of a
scene are solved, or proved to have no plan, in a millisecond, while starting Fast Downward's search
takes ten.

Determinism: the same task gives the same plan. The translator's hash seed is fixed. The search by
landmarks and follow-up searches count only if they took few enough expansions (``landmark_work``,
``improvement_work``), numbers independent of any clock. The former is stopped when it has taken
more; time limits of the processor only stop them, and leave factors of five and ten for slower
machines.

Actions with several outcomes: plan as if they could be chosen, act, and plan again when it came
otherwise. An action whose effect is ``oneof`` several is read as one action for each outcome
(*all-outcomes determinisation*), so a plan says which outcome it hopes for. After each action the
state is asked for; where it is not the one that was hoped for, the rest is planned anew from there
(S. Yoon, A. Fern, R. Givan, "FF-Replan", ICAPS 2007).

It does not look ahead: where a hoped-for outcome stays out, the goal may be out of reach. That
there is no plan is proved: not even with the best of luck.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tmkit._support import time_limits
from tmkit._support.results import Result
from tmkit._support.signals import temporary_folder
from tmkit.errors import TimeLimitError
from tmkit.pddl.formulas import GroundAction
from tmkit.pddl.model import Problem
from tmkit.pddl.state import State
from tmkit.task_planning.core_search import search_in_core
from tmkit.task_planning.encoding import copy_of, encode
from tmkit.task_planning.fast_downward_process import Outcome, RunningSearch, Searches, translated
from tmkit.task_planning.protocol import RerootableTask, TaskPlanner, TaskPlanResult, TaskPlanStatus
from tmkit.task_planning.spare_objects import with_spare_objects
from tmkit.task_planning.translated_task import TranslatedTask

LANDMARK_SEARCH = (
    "let(hlm, landmark_sum(lm_factory=lm_reasonable_orders_hps(lm_rhw()), pref=true),"
    " eager(single(sum([g(), weight(hlm, 2)])), reopen_closed=true, preferred=[hlm],"
    " max_time={seconds}, pruning=limited_pruning(null(), 1, {expansions})))"
)
"""Finds a plan that is short, mostly soon; ``{seconds}`` is the processor time after which it gives up.

Its pruning prunes nothing: after ``{expansions}`` it prints that, upon which the search is stopped.
"""

FIRST_SEARCH = (
    "let(hlm, eval_modify_costs("
    "landmark_sum(lm_factory=lm_reasonable_orders_hps(lm_rhw()), pref=false), cost_type=one),"
    " let(hff, eval_modify_costs(ff(), cost_type=one),"
    " lazy(alt([single(hff), single(hff, pref_only=true), single(hlm), single(hlm, pref_only=true),"
    " single(sum([g(), hff])), single(sum([g(), hff]), pref_only=true)], boost=1000),"
    " preferred=[hff, hlm], cost_type=one, reopen_closed=true)))"
)
"""Finds a plan soon, and seldom one with many steps too many: greedy searches and one by steps, in turns."""

FOLLOW_UP_SEARCHES = ("let(h, ff(), lazy_wastar([h], preferred=[h], w=2, max_time={seconds}))",)
"""Searches for a shorter plan; ``{seconds}`` is the processor time after which each gives up."""

OPTIMAL_SEARCH = "astar(lmcut())"
"""Finds the best plan, by the landmarks that every plan has; takes neither axioms nor conditional effects."""

_PROVING_SEARCH = "astar(blind())"

_FIRST_SECONDS = 2.0  # after which it is asked whether there is a plan at all
_FOLLOW_UP_SECONDS = 0.5
_LANDMARK_SECONDS, _LANDMARK_SHARE = 3.0, 0.15
_ALONE_SECONDS = 0.2  # for which the search by landmarks runs alone
# work for it on a task with learned constraints, and in terms of what it took before
_AGAIN, _AGAIN_GROWTH = 1e5, 2.0
_LANDMARKS = "landmarks"  # in the history of a task
# printed after the expansions that a search by landmarks may do
_TOO_MANY = "switching off pruning"
_REMEMBERED_PROBLEMS = 16  # problems that are not translated again
# translations by the texts of domain and problem, the last one last
_remembered: dict[tuple[str, str], str] = {}
# bytes, for the search that only tests, beside another, whether there is a plan
_PROVING_MEMORY = 2 << 30


@dataclass(frozen=True)
class FastDownward(TaskPlanner[TranslatedTask]):
    """Plans with Fast Downward's translator and, unless the core finds a plan soon, with Fast Downward's search.

    Args:
        core_work: how much the core's search (:mod:`tmkit.task_planning.core_search`) may do before
            Fast Downward's is started: how often it looks at an effect or an axiom, about 1e8 in a
            second; 0 to do without.
        landmark_search: a search for a short plan, before and beside the first one; empty for none.
        landmark_work: how much it may do for its plan to count, as ``improvement_work``.
        first_search: the search that finds the first plan; it must accept axioms.
        follow_up_searches: searches for a better plan, one after the other; none to be content with
            the first.
        improvement_work: how much a follow-up search may do for its plan to count: the number of
            states it expanded times the number of operators of the task. 1e6 is about a twentieth
            of a second.
        general_search: the search in the place of the first one where a task has axioms or
            conditional effects, if that does not take them; empty when it does.
        encoding: how the search is told what is forbidden: by ``"axioms"``, or by operators that
            are ``"split"``, as a search must be that takes no axioms; ``"auto"`` splits where that
            makes few operators. Learned constraints made the first search up to a hundred times
            slower as axioms, through which its heuristics do not see.
    """

    core_work: float = 1e6
    landmark_search: str = LANDMARK_SEARCH
    landmark_work: float = 2e7
    first_search: str = FIRST_SEARCH
    follow_up_searches: tuple[str, ...] = FOLLOW_UP_SEARCHES
    improvement_work: float = 1e6
    general_search: str = ""
    encoding: Literal["auto", "axioms", "split"] = "auto"

    @classmethod
    def optimal(cls) -> FastDownward:
        """Return a planner whose plans are as short as possible or, by the problem's metric, as cheap.

        It proves that, which takes long: it is for a dozen steps or so. With learned constraints
            too a plan is the best there is.
        """
        return cls(
            core_work=0.0,
            landmark_search="",
            first_search=OPTIMAL_SEARCH,
            follow_up_searches=(),
            general_search=_PROVING_SEARCH,
            encoding="split",
        )

    def translate(
        self, problem: Problem, *, time_limit: float = 60.0, spare: Mapping[str, int] | None = None
    ) -> TranslatedTask:
        """Translate a problem for :meth:`search`.

        Args:
            problem: the task.
            time_limit: seconds after which to give up.
            spare: how many objects of each type may come later, without translation
                (:meth:`~tmkit.task_planning.translated_task.TranslatedTask.with_object`). Until
                they come, plans and proofs are as without; the task is larger by what there is
                about them.

        Returns:
            The translated task; when the time was not enough, one whose ``is_complete`` is False,
            which no search can solve.

        Raises:
            TaskPlannerError: the translator could not be run or broke, or the problem is beyond
                Fast Downward.
            TaskError: an unknown type of spare objects, or a function of objects, which they have
                no values of.
        """
        try:
            with time_limits.time_limit(time_limit):
                encoding = encode(with_spare_objects(problem, spare) if spare else problem)
                key = (encoding.domain_text, encoding.problem_text)
                text = _remembered.get(key) or translated(encoding, time_limit)
                if text is None:
                    return TranslatedTask.unfinished(problem)
                remember_translations({key: text})
                task = TranslatedTask.from_text(text, problem, names=encoding.names)
                task = replace(task, encoding=self.encoding)
                return task.with_spares(spare) if spare else task
        except TimeLimitError:
            return TranslatedTask.unfinished(problem)

    def prepare(
        self, problem: Problem, *, time_limit: float = 60.0, spare: Mapping[str, int] | None = None
    ) -> TranslatedTask:
        """Translate a problem; :meth:`translate` under its name in :class:`~tmkit.task_planning.TaskPlanner`.

        Args:
            problem: the problem.
            time_limit: seconds.
            spare: how many objects of each type may come later.
        """
        return self.translate(problem, time_limit=time_limit, spare=spare)

    def search(self, task: TranslatedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Search for a plan of a translated task, which may have been patched, or that there is none, within the time.

        Args:
            task: the task, from :meth:`translate`.
            time_limit: seconds after which to give up.

        Raises:
            TaskPlannerError: the search could not be run or broke, or its plan does not reach the
                goal.
        """
        if not task.is_complete:
            return TaskPlanResult(
                TaskPlanStatus.LIMIT, message="the translation ran out of time or memory"
            )
        deadline = time.monotonic() + time_limit
        found = search_in_core(task, self.core_work) if time_limit > 0.0 else None
        if found is not None:
            return found
        try:
            with time_limits.time_limit(time_limit), temporary_folder("search") as folder:
                searches = Searches(task, folder, deadline)
                outcome = self._first(searches)
                if outcome.has_given_up:
                    outcome = searches.run([_PROVING_SEARCH])
                return self._improved(searches, outcome)
        except TimeLimitError:
            return TaskPlanResult(
                TaskPlanStatus.LIMIT, message="no plan was found within the time given"
            )

    def _first(self, searches: Searches) -> Outcome:
        """Return what came of the search by landmarks, if that counts, else of the first search.

        Learned constraints can make it slow: on the same task with more of them it may do little
        more than before, and once it does not count, it is not tried again.
        """
        history = searches.task.history
        work = min(self.landmark_work, history.get(_LANDMARKS, self.landmark_work))
        if not self.landmark_search or not work:
            return self._greedy(searches)
        # of a short time limit, little
        seconds = min(_LANDMARK_SECONDS, _LANDMARK_SHARE * searches.seconds_left)
        expansions = 1 + int(min(1e9, work // max(1, len(searches.task.operators))))
        search = self.landmark_search.format(seconds=round(seconds, 2), expansions=expansions)
        with searches.started([search, *self._follow_ups()], stop_at=_TOO_MANY) as running:
            is_short = running.ends_within(_ALONE_SECONDS) or running.has_plan
            outcome = None if is_short else self._greedy(searches, work=work, beside=running)
            found = running.outcome()
        if found.is_settled(work):
            took = found.phases[0].expanded if found.phases else 0
            history[_LANDMARKS] = max(_AGAIN, _AGAIN_GROWTH * took * len(searches.task.operators))
            return found
        history[_LANDMARKS] = 0.0
        return self._greedy(searches) if outcome is None else outcome

    def _greedy(
        self, searches: Searches, *, work: float = 0.0, beside: RunningSearch | None = None
    ) -> Outcome:
        """Return what came of the first search and, where there was a plan, of those that follow it.

        When the first search is slow, it is asked beside it whether there is a plan at all, for
        which greedy searches are no good. A plan found there does not count: that the first search
        was slow is a matter of clocks, on which no plan may depend.
        """
        first = self._first_search(searches.task)
        chain = [first, *self._follow_ups()]
        with searches.started(chain) as running:
            if beside is not None and running.ends_after(beside):
                found = beside.outcome()
                if found.is_settled(work):
                    return found
            if not first.startswith("astar(") and not running.ends_within(_FIRST_SECONDS):
                with searches.started([_PROVING_SEARCH], memory_limit=_PROVING_MEMORY) as proving:
                    if running.ends_after(proving):
                        proof = proving.outcome()
                        if proof.is_unsolvable:
                            return proof
            return running.outcome()

    def _first_search(self, task: TranslatedTask) -> str:
        has_conditions = any(
            effect.conditions for operator in task.operators for effect in operator.effects
        )
        return (
            self.general_search
            if self.general_search and (task.axioms or has_conditions)
            else self.first_search
        )

    def _follow_ups(self) -> tuple[str, ...]:
        return tuple(
            search.format(seconds=_FOLLOW_UP_SECONDS) for search in self.follow_up_searches
        )

    def _improved(self, searches: Searches, outcome: Outcome) -> TaskPlanResult:
        """Return the best plan of the first search and of the follow-up searches that count.

        A chain of searches ends with one that finds nothing; those that were to come after it are
        run now.
        """
        best, statistics = outcome.first_result(), outcome.statistics
        if not best.is_solved or not best.steps:
            return replace(best, statistics=statistics)
        with contextlib.suppress(TimeLimitError):  # then the plans so far are what there is
            for found in outcome.results(self.improvement_work, skipped=1):
                best = min(best, found, key=_by_cost)
            left = self._follow_ups()[max(0, len(outcome.phases) - 1) :]
            while left and outcome.has_ended and searches.deadline > time.monotonic():
                outcome = searches.run(left)
                more = outcome.statistics
                statistics = replace(
                    statistics,
                    expanded=statistics.expanded + more.expanded,
                    evaluated=statistics.evaluated + more.evaluated,
                    search_seconds=statistics.search_seconds + more.search_seconds,
                )
                for found in outcome.results(self.improvement_work):
                    best = min(best, found, key=_by_cost)
                left = left[max(1, len(outcome.phases)) :]
        return replace(best, statistics=statistics)


def forget_translations() -> None:
    """Forget the translations of the last problems, as a benchmark must in which each run is to be a first one."""
    _remembered.clear()


def remembered_translations() -> dict[tuple[str, str], str]:
    """Return the translations of the last problems by the texts of domain and problem, as for another process."""
    return dict(_remembered)


def remember_translations(translations: Mapping[tuple[str, str], str]) -> None:
    """Remember translations that another process has, as the last ones."""
    for key, text in translations.items():
        _remembered.pop(key, None)
        _remembered[key] = text
    for key in [*_remembered][:-_REMEMBERED_PROBLEMS]:
        _remembered.pop(key, None)


def _by_cost(result: TaskPlanResult) -> tuple[float, int]:
    return result.cost, len(result.steps)


@dataclass(frozen=True)
class TaskExecution(Result):
    """What was done, and where it led.

    Attributes:
        status: ``SOLVED`` when the goal holds; ``UNSOLVABLE`` when it is proved that it cannot be
            reached any more.
        actions: what was done, by the names that the domain states.
        states: the first state, and that after each action.
        plans: how often was planned.
        message: why it ended, in words.
    """

    status: TaskPlanStatus
    actions: tuple[GroundAction, ...]
    states: tuple[State, ...]
    plans: int
    message: str

    def __repr__(self) -> str:
        return (
            f"TaskExecution({self.status.value}, {len(self.actions)} actions, {self.plans} plans)"
        )


def possible_states(problem: Problem, state: State, action: GroundAction) -> tuple[State, ...]:
    """Return the states to which an action may lead, without repetition, in the order of its outcomes.

    Args:
        problem: the task.
        state: the state before.
        action: an applicable action, or one of its outcomes.

    Raises:
        TaskError: the action is not applicable, or not one of the domain.
    """
    outcomes = (
        GroundAction(outcome.name, action.arguments)
        for outcome in problem.domain.outcomes(action.name)
    )
    return tuple(dict.fromkeys(problem.apply(state, outcome) for outcome in outcomes))


def execute_with_replanning(
    problem: Problem,
    act: Callable[[State, GroundAction], State],
    *,
    planner: TaskPlanner[Any] | None = None,
    max_actions: int = 1000,
    time_limit: float = 60.0,
) -> TaskExecution:
    """Plan, act, and plan again when an outcome is not the one that was hoped for, until the goal holds.

    Args:
        problem: the task.
        act: does an action, by its stated name, in a state, and returns the state afterwards.
        planner: finds plans; :class:`FastDownward` by default.
        max_actions: after which to give up.
        time_limit: seconds for all plans together.

    Raises:
        TaskPlannerError: the planner broke.
        TaskError: a state has facts that the problem does not know.
    """
    deadline, domain = time.monotonic() + time_limit, problem.domain
    planner = planner or FastDownward()
    states, actions, plans = [problem.init], list[GroundAction](), 0

    def ended(status: TaskPlanStatus, message: str) -> TaskExecution:
        return TaskExecution(status, tuple(actions), tuple(states), plans, message)

    task: Any = None
    while True:
        moved = task.at_state(states[-1]) if isinstance(task, RerootableTask) else None
        task = moved or planner.prepare(
            copy_of(problem, init=states[-1]), time_limit=deadline - time.monotonic()
        )
        result = planner.search(task, time_limit=deadline - time.monotonic())
        plans += 1
        if not result.is_solved:
            return ended(result.status, result.message)
        for step in result.steps:
            if len(actions) >= max_actions:
                return ended(
                    TaskPlanStatus.LIMIT, f"the goal does not hold after {max_actions} actions"
                )
            hoped = problem.apply(states[-1], step)
            stated = GroundAction(
                domain.outcomes(step.name)[0].outcome_of or step.name, step.arguments
            )
            actions.append(stated)
            states.append(act(states[-1], stated))
            if states[-1] != hoped:
                break
        else:
            return ended(TaskPlanStatus.SOLVED, "the goal holds")
