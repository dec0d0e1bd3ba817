"""Task planner Fast Downward; docs/reference/tasks.md describes and measures its searches.

The *translator* converts PDDL to a :class:`~tmkit.task_planning.translated_task.TranslatedTask`.
A task is translated once, patched with learned constraints and *searched* again. Translator and
search are separate programs in a temporary folder. They are located through the import system and
not imported. Starting the translator takes longer than translating a small task. The last
translations are therefore cached, and planning with another seed needs no translation.

The core searches first, in this process (:mod:`tmkit.task_planning.core_search`). It solves most
tasks of a scene, or proves that they have no plan, in a millisecond. Starting Fast Downward's
search takes ten milliseconds.

Determinism: the same task gives the same plan. The translator's hash seed is fixed. A plan of the
landmark search or of a follow-up search counts only if the search took few expansions
(``landmark_work``, ``improvement_work``), which no clock influences. The landmark search is stopped
when it exceeds its number. Processor time limits only end searches; they leave factors of five and
ten for slower machines.

Actions with several outcomes are planned by replanning. An action with the effect ``oneof`` is read
as one action for each outcome (*all-outcomes determinisation*), hence a plan contains the expected
outcomes. The state is compared with the expected one after each action. If they differ, the
remaining plan is computed from the new state (S. Yoon, A. Fern, R. Givan, "FF-Replan", ICAPS 2007).

Replanning does not consider other outcomes in advance. After an unexpected outcome, the goal may be
unreachable. A proof of unsolvability covers all outcomes.
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
from tmkit.task_planning.encoding import copy_of, encode, with_uncontrollable_actions
from tmkit.task_planning.fast_downward_process import (
    Outcome,
    RunningSearch,
    Searches,
    translate_text,
)
from tmkit.task_planning.policy import Policy, search_policy
from tmkit.task_planning.protocol import (
    RerootableTask,
    TaskPlanner,
    TaskPlanResult,
    TaskPlans,
    TaskPlanStatus,
)
from tmkit.task_planning.spare_objects import with_spare_objects
from tmkit.task_planning.translated_task import TranslatedTask

LANDMARK_SEARCH = (
    "let(hlm, landmark_sum(lm_factory=lm_reasonable_orders_hps(lm_rhw()), pref=true),"
    " eager(single(sum([g(), weight(hlm, 2)])), reopen_closed=true, preferred=[hlm],"
    " max_time={seconds}, pruning=limited_pruning(null(), 1, {expansions})))"
)
"""Search for a short plan; ``{seconds}`` is its limit of processor time [s].

The pruning has no effect on the search. It prints a message after ``{expansions}`` expansions, at
which the search is stopped.
"""

FIRST_SEARCH = (
    "let(hlm, eval_modify_costs("
    "landmark_sum(lm_factory=lm_reasonable_orders_hps(lm_rhw()), pref=false), cost_type=one),"
    " let(hff, eval_modify_costs(ff(), cost_type=one),"
    " lazy(alt([single(hff), single(hff, pref_only=true), single(hlm), single(hlm, pref_only=true),"
    " single(sum([g(), hff])), single(sum([g(), hff]), pref_only=true)], boost=1000),"
    " preferred=[hff, hlm], cost_type=one, reopen_closed=true)))"
)
"""Fast search, which alternates greedy queues with one ordered by the number of steps."""

FOLLOW_UP_SEARCHES = ("let(h, ff(), lazy_wastar([h], preferred=[h], w=2, max_time={seconds}))",)
"""Searches for a shorter plan; ``{seconds}`` is the limit of processor time of each [s]."""

OPTIMAL_SEARCH = "astar(lmcut())"
"""Optimal search by LM-cut, which supports neither axioms nor conditional effects."""

_PROVING_SEARCH = "astar(blind())"
"""Search that proves unsolvability."""

_FIRST_SECONDS = 2.0
"""Duration of the first search after which the proving search starts in parallel [s]."""

_FOLLOW_UP_SECONDS = 0.5
"""Limit of processor time of a follow-up search [s]."""

_LANDMARK_SECONDS = 3.0
"""Limit of processor time of the landmark search [s]."""

_LANDMARK_FRACTION = 0.15
"""Largest fraction of the remaining time for the landmark search."""

_LANDMARK_HEAD_START = 0.2
"""Duration for which the landmark search runs alone [s]."""

_MIN_REPEATED_WORK = 1e5
"""Smallest work limit of a landmark search on a task with more learned constraints."""

_REPEATED_WORK_GROWTH = 2.0
"""Factor of the work of the last landmark search that the next one may take."""

_LANDMARKS = "landmarks"
"""Key of the landmark search in the history of a task."""

_EXPANSION_LIMIT_TEXT = "switching off pruning"
"""Output of the landmark search at its limit of expansions."""

_MAX_CACHED_TRANSLATIONS = 16
"""Number of cached translations."""

_translation_cache: dict[tuple[str, str], str] = {}
"""Translations by the texts of domain and problem, the latest one last."""

_PROVING_MEMORY = 2 << 30
"""Memory limit of the proving search that runs beside another search [bytes]."""


@dataclass(frozen=True)
class FastDownward(TaskPlanner[TranslatedTask]):
    """Task planner that runs the core's search, then Fast Downward's.

    Args:
        core_work: largest number of evaluations of effects and axioms by the core's search
            (:mod:`tmkit.task_planning.core_search`), before Fast Downward starts. About 1e8 take a
            second. 0 disables the core's search.
        landmark_search: search for a short plan, before and beside the first search; disabled if
            empty.
        landmark_work: largest work for which its plan counts, in the unit of
            ``improvement_work``.
        first_search: search for the first plan; it must accept axioms.
        follow_up_searches: searches for a better plan, in this order; disabled if empty.
        improvement_work: largest work for which the plan of a follow-up search counts. Work is the
            number of expanded states times the number of operators; 1e6 take about 0.05 s.
        general_search: replacement of the first search for tasks with axioms or conditional
            effects; empty if the first search supports them.
        encoding: encoding of learned constraints: ``"axioms"``, or ``"split"`` operators, for
            searches without support for axioms. ``"auto"`` splits if the result has few operators.
            Heuristics ignore axioms: they made the first search up to a hundred times slower.
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
        """Return a planner of optimal plans, by length or by the problem's cost metric.

        The proof of optimality is slow; plans of about a dozen steps are practical. Plans are also
        optimal under learned constraints.
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
            time_limit: time limit [s].
            spare: number of objects of each type that can be added later without translation
                (:meth:`~tmkit.task_planning.translated_task.TranslatedTask.with_object`). Plans and
                proofs do not depend on them until then; their facts and operators enlarge the task.

        Returns:
            The translated task. If the time did not suffice, its ``is_complete`` is False and no
            search solves it.

        Raises:
            TaskPlannerError: if the translator cannot be run or fails, or Fast Downward does not
                support the problem.
            TaskError: if a type of spare objects is unknown, or if the domain has a function of
                objects, which has no values for spare objects.
        """
        try:
            with time_limits.time_limit(time_limit):
                # The facts that the world may change are not constant.
                whole = with_uncontrollable_actions(problem)
                encoding = encode(with_spare_objects(whole, spare) if spare else whole)
                key = (encoding.domain_text, encoding.problem_text)
                text = _translation_cache.get(key) or translate_text(encoding, time_limit)
                if text is None:
                    return TranslatedTask.incomplete(problem)
                extend_translation_cache({key: text})
                task = TranslatedTask.from_text(text, problem, names=encoding.names)
                task = replace(task, encoding=self.encoding)
                return task.with_spares(spare) if spare else task
        except TimeLimitError:
            return TranslatedTask.incomplete(problem)

    def prepare(
        self, problem: Problem, *, time_limit: float = 60.0, spare: Mapping[str, int] | None = None
    ) -> TranslatedTask:
        """Translate a problem; the same as :meth:`translate`.

        Args:
            problem: the problem.
            time_limit: time limit [s].
            spare: number of objects of each type that can be added later.
        """
        return self.translate(problem, time_limit=time_limit, spare=spare)

    def search(self, task: TranslatedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Search for a plan of a translated task, or a proof that there is none.

        Args:
            task: the task, from :meth:`translate`, with learned constraints or without.
            time_limit: time limit [s].

        Raises:
            TaskPlannerError: if the search cannot be run or fails, or its plan does not reach the
                goal.
        """
        if task.uncontrollable:
            return self._search_policy(task, time_limit).result
        if not task.is_complete:
            return TaskPlanResult(
                TaskPlanStatus.LIMIT, message="the translation ran out of time or memory"
            )
        deadline = time.monotonic() + time_limit
        core_result = search_in_core(task, self.core_work) if time_limit > 0.0 else None
        if core_result is not None:
            return core_result
        try:
            with time_limits.time_limit(time_limit), temporary_folder("search") as folder:
                searches = Searches(task, folder, deadline)
                outcome = self._run_first_searches(searches)
                if outcome.has_given_up:
                    outcome = searches.run([_PROVING_SEARCH])
                return self._improve_plan(searches, outcome)
        except TimeLimitError:
            return TaskPlanResult(
                TaskPlanStatus.LIMIT, message="no plan was found within the time given"
            )

    def policy(self, problem: Problem, *, time_limit: float = 60.0) -> Policy:
        """Return a policy that reaches the goal despite the uncontrollable actions.

        ::

            policy = FastDownward().policy(problem)
            while not problem.holds(state, problem.goal):
                state = execute(policy.action(state))

        Args:
            problem: the task; see :attr:`~tmkit.pddl.Domain.uncontrollable_actions`.
            time_limit: time limit of translation and search together [s].

        Raises:
            TaskPlannerError: if the planner cannot be run or fails.
        """
        start = time.monotonic()
        task = self.translate(problem, time_limit=time_limit)
        return self._search_policy(task, time_limit - (time.monotonic() - start))

    def _search_policy(self, task: TranslatedTask, time_limit: float) -> Policy:
        return search_policy(
            task, work=self.core_work, fallback=replace(self, core_work=0.0), time_limit=time_limit
        )

    def plans(self, problem: Problem, *, time_limit: float = 60.0) -> TaskPlans:
        """Return an iterator over different plans of a problem, from which actions are excluded.

        Args:
            problem: the task.
            time_limit: time limit of the translation, and of each search [s].

        Raises:
            TaskPlannerError: if the translator cannot be run or fails, or Fast Downward does not
                support the problem.
        """
        return TaskPlans(self, problem, time_limit=time_limit)

    def _run_first_searches(self, searches: Searches) -> Outcome:
        """Return the outcome of the landmark search if it counts, otherwise of the first search.

        Learned constraints can make the landmark search slow. On the same task with more of them,
        its work is limited by a multiple of the previous work. After a search that did not count,
        it is not repeated.
        """
        history = searches.task.history
        work = min(self.landmark_work, history.get(_LANDMARKS, self.landmark_work))
        if not self.landmark_search or not work:
            return self._run_greedy_search(searches)
        seconds = min(_LANDMARK_SECONDS, _LANDMARK_FRACTION * searches.seconds_left)
        expansions = 1 + int(min(1e9, work // max(1, len(searches.task.operators))))
        search = self.landmark_search.format(seconds=round(seconds, 2), expansions=expansions)
        with searches.start(
            [search, *self._follow_up_chain()], stop_at=_EXPANSION_LIMIT_TEXT
        ) as running:
            is_short = running.ends_within(_LANDMARK_HEAD_START) or running.has_plan
            outcome = (
                None
                if is_short
                else self._run_greedy_search(searches, work=work, landmark_run=running)
            )
            landmark_outcome = running.outcome()
        if landmark_outcome.is_conclusive(work):
            phases = landmark_outcome.phases
            expanded = phases[0].expanded if phases else 0
            history[_LANDMARKS] = max(
                _MIN_REPEATED_WORK, _REPEATED_WORK_GROWTH * expanded * len(searches.task.operators)
            )
            return landmark_outcome
        history[_LANDMARKS] = 0.0
        return self._run_greedy_search(searches) if outcome is None else outcome

    def _run_greedy_search(
        self, searches: Searches, *, work: float = 0.0, landmark_run: RunningSearch | None = None
    ) -> Outcome:
        """Return the outcome of the first search and, after a plan, of the follow-up searches.

        If the first search is slow, a second search tries to prove that there is no plan, since
        greedy searches rarely do. A plan of the second search does not count: whether it starts
        depends on a clock, and plans must not.
        """
        first = self._first_search(searches.task)
        chain = [first, *self._follow_up_chain()]
        with searches.start(chain) as running:
            if landmark_run is not None and running.ends_after(landmark_run):
                landmark_outcome = landmark_run.outcome()
                if landmark_outcome.is_conclusive(work):
                    return landmark_outcome
            if not first.startswith("astar(") and not running.ends_within(_FIRST_SECONDS):
                with searches.start([_PROVING_SEARCH], memory_limit=_PROVING_MEMORY) as proving:
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

    def _follow_up_chain(self) -> tuple[str, ...]:
        return tuple(
            search.format(seconds=_FOLLOW_UP_SECONDS) for search in self.follow_up_searches
        )

    def _improve_plan(self, searches: Searches, outcome: Outcome) -> TaskPlanResult:
        """Return the best plan of the first search and of the follow-up searches.

        A chain of searches ends with a search without a plan. The remaining searches of the chain
        are then run separately.
        """
        best, statistics = outcome.first_result(), outcome.statistics
        if not best.is_solved or not best.steps:
            return replace(best, statistics=statistics)
        # At the time limit, the best plan so far is returned.
        with contextlib.suppress(TimeLimitError):
            for candidate in outcome.results(self.improvement_work, skipped=1):
                best = min(best, candidate, key=_cost_key)
            remaining_searches = self._follow_up_chain()[max(0, len(outcome.phases) - 1) :]
            while remaining_searches and outcome.has_ended and searches.deadline > time.monotonic():
                outcome = searches.run(remaining_searches)
                more = outcome.statistics
                statistics = replace(
                    statistics,
                    expanded=statistics.expanded + more.expanded,
                    evaluated=statistics.evaluated + more.evaluated,
                    search_seconds=statistics.search_seconds + more.search_seconds,
                )
                for candidate in outcome.results(self.improvement_work):
                    best = min(best, candidate, key=_cost_key)
                remaining_searches = remaining_searches[max(1, len(outcome.phases)) :]
        return replace(best, statistics=statistics)


def clear_translation_cache() -> None:
    """Clear the cache of translations, for example before each run of a benchmark."""
    _translation_cache.clear()


def copy_translation_cache() -> dict[tuple[str, str], str]:
    """Return the cached translations by the texts of domain and problem."""
    return dict(_translation_cache)


def extend_translation_cache(translations: Mapping[tuple[str, str], str]) -> None:
    """Add translations of another process to the cache, as the latest ones."""
    for key, text in translations.items():
        _translation_cache.pop(key, None)
        _translation_cache[key] = text
    for key in [*_translation_cache][:-_MAX_CACHED_TRANSLATIONS]:
        _translation_cache.pop(key, None)


def _cost_key(result: TaskPlanResult) -> tuple[float, int]:
    return result.cost, len(result.steps)


@dataclass(frozen=True)
class TaskExecution(Result):
    """Record of an execution with replanning.

    Attributes:
        status: ``SOLVED`` if the goal holds; ``UNSOLVABLE`` if the goal is proved unreachable.
        actions: the executed actions, by their names in the domain.
        states: the initial state, and the state after each action.
        plans: number of plans that were computed.
        message: reason for the end.
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
    """Return the distinct states after the outcomes of an action, in their order.

    Args:
        problem: the task.
        state: the state before.
        action: an applicable action, or one of its outcomes.

    Raises:
        TaskError: if the action is not applicable or unknown to the domain.
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
    """Execute plans until the goal holds, and replan after each unexpected outcome.

    Args:
        problem: the task.
        act: executes an action, by its name in the domain, in a state; returns the state after it.
        planner: task planner. Defaults to :class:`FastDownward`.
        max_actions: largest number of actions.
        time_limit: time limit for all plans together [s].

    Raises:
        TaskPlannerError: if the planner fails.
        TaskError: if a state has facts unknown to the problem.
    """
    deadline, domain = time.monotonic() + time_limit, problem.domain
    planner = planner or FastDownward()
    states, actions, plans = [problem.init], list[GroundAction](), 0

    def make_execution(status: TaskPlanStatus, message: str) -> TaskExecution:
        return TaskExecution(status, tuple(actions), tuple(states), plans, message)

    task: Any = None
    while True:
        rerooted = task.at_state(states[-1]) if isinstance(task, RerootableTask) else None
        task = rerooted or planner.prepare(
            copy_of(problem, init=states[-1]), time_limit=deadline - time.monotonic()
        )
        result = planner.search(task, time_limit=deadline - time.monotonic())
        plans += 1
        if not result.is_solved:
            return make_execution(result.status, result.message)
        for step in result.steps:
            if len(actions) >= max_actions:
                return make_execution(
                    TaskPlanStatus.LIMIT, f"the goal does not hold after {max_actions} actions"
                )
            expected_state = problem.apply(states[-1], step)
            stated_action = GroundAction(
                domain.outcomes(step.name)[0].outcome_of or step.name, step.arguments
            )
            actions.append(stated_action)
            states.append(act(states[-1], stated_action))
            if states[-1] != expected_state:
                break
        else:
            return make_execution(TaskPlanStatus.SOLVED, "the goal holds")
