r"""One best-first search over versions of the scene, guided by a task plan from each.

::

    root --pick b--> . --place b shelf--> . --...--> goal      refinement of a task plan, action by action
      \--pick c, place c aside--> . --...                       transfers, with grasps that are free at both ends

A node is a version with the task plan that is left from its state. Its entries in the queue are of
two kinds:

* *Refinement* carries out its task plan as the domain proposes the actions, depth first with
  conflict-directed backjumping (:mod:`tmkit.tamp.search.refinement`).
* *Transfers* make one attempt each (:mod:`tmkit.tamp.search.transfers`): transfers of the plan that
  may come first, blockers aside, regrasps, other actions, at last any action.

Order: the actions done, plus ``heuristic_weight`` times those expected (the task plan left, two for
each blocker), plus ``cost_per_try`` for each attempt already made there. After ``restart_after``
attempts at transfers the search begins anew at the root with other random numbers, then goes on
with all nodes, and so on in turns that grow.

Lessons (:mod:`tmkit.tamp.search.lessons`): where the refinement of a task plan failed, the task
planner gets a constraint, and the node another plan, which is refined next. A lesson that leaves no
task plan is dropped. When all of them together leave none, they are lifted, and a *round* ends:
budgets double.

Completeness: a node is dropped only where a bounded search finds no task plan from its state under
proved constraints, or where an equal version is known. Every other entry that is taken returns to
the queue with a priority that each attempt lowers. So each is taken again and again, and any
applicable action comes up at each node again and again, with places drawn anew.

Invariants: the same arguments give the same results; the time limit only stops.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from collections.abc import Iterator, Sequence
from enum import Enum

import numpy as np

from tmkit._support.elementary import norm
from tmkit.errors import SemanticsMismatchError
from tmkit.manipulation.actions.timing_breakdown import PlanningStage
from tmkit.pddl import GroundAction, Problem, State
from tmkit.pddl.validation import by_turns, shared
from tmkit.plans.values import PlanStep
from tmkit.robots import movable_frames
from tmkit.tamp.context import PlanningContext, SearchLog, budget_growth
from tmkit.tamp.diagnosis.diagnosis import LearnedConstraint
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.search.arrangements import Arrangements
from tmkit.tamp.search.detours import without_detours
from tmkit.tamp.search.hand_tables import digits
from tmkit.tamp.search.lessons import Lessons
from tmkit.tamp.search.refinement import RefinementBudget, RefinementOutcome, refine_skeleton
from tmkit.tamp.search.search_node import Attempt, Move, SearchNode
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.search.transfers import TransferAttempts
from tmkit.tamp.version_tree import SceneVersion
from tmkit.task_planning import FastDownward, TaskPlanResult, TaskPlanStatus
from tmkit.task_planning.guide import OperatorConstraint
from tmkit.task_planning.protocol import PreparedTask
from tmkit.task_planning.schedule import without_redundant_steps
from tmkit.task_planning.translated_task import TranslatedTask

_logger = logging.getLogger(__name__)

REFINEMENT = "refinement"
"""The kind of entries that refine the task plan of a node."""

TRANSFERS = "transfers"
"""The kind of entries that attempt transfers."""

_CHRONOLOGICAL_AFTER = 2
"""Rounds of backjumping, after which refinement backtracks step by step: a failure within bounds proves nothing."""


class SearchStatus(Enum):
    """State of a search."""

    RUNNING = "running"
    PROVED = "proved"
    """No task plan exists."""
    EXHAUSTED = "exhausted"
    """Every failure is proved for the poses that were tried."""
    LIMIT = "limit"
    """The task planner found no plan within its limits."""


class VersionSearch:
    """The search for a plan of one task.

    Args:
        context: the planning run.
        log: its counts.
        problem: the task, with all objects or the useful ones.
        task: the task as the task planner prepared it.

    Attributes:
        problem: the task.
        status: whether the search goes on.
        rounds: number of rounds that have ended.
    """

    def __init__(
        self, context: PlanningContext, log: SearchLog, problem: Problem, task: PreparedTask
    ) -> None:
        self.context, self.log, self.problem = context, log, problem
        self.status, self.rounds = SearchStatus.RUNNING, 0
        self._settings = context.options.search
        self._task_plans = 0  # of this round
        self._task = task
        translated = task
        if not isinstance(translated, TranslatedTask):
            translated = FastDownward().prepare(problem, time_limit=log.seconds_left())
        if not translated.is_complete:
            self.status = SearchStatus.LIMIT
            return
        seed = context.options.seed
        self._tree = context.tree(log, problem, context.domain, seed=seed)
        self._guide = TaskGuide(translated)
        self._transfers = TransferAttempts(context, log, self._tree, self._guide, seed=seed)
        self._arrangements = Arrangements(
            self._tree, self._guide, self._transfers.comparison, seed=seed
        )
        self._lessons = Lessons(self._tree, self._guide)
        # tables of grasps take poses to be exact
        is_exact = not context.domain.probabilistic_predicates
        self._has_transfers = is_exact and self._transfers.comparison.table(None).is_usable

        self._queue: list[tuple[float, int, SearchNode, str]] = []
        self._parked: list[tuple[float, int, SearchNode, str]] = []
        self._numbers = itertools.count()
        self._seen: set[object] = set()
        self._turn, self._left = 0, self._settings.restart_after
        self._attempts_of_plans = 0
        self._attempts_of_transfers = 0  # of this round
        # attempts so far, and after which the root's plan is refined again
        self._work, self._due = 0.0, math.inf
        self._is_repeated, self._all_proved = False, True
        self._dropped: set[OperatorConstraint] = set()  # in this round
        self._first_plans: dict[int, tuple[tuple[int, ...] | None, bool]] = {}
        self._root = SearchNode(self._tree.root, self._guide.values(self._tree.root.state))
        self._note(self._root)
        if self._give_root_a_plan():
            self._push(self._root, REFINEMENT)

    # ------------------------------------------------------------------------------------ the queue

    def advance(self) -> tuple[PlanStep, ...] | None:
        """Search until a round ends, the status changes or the time is up; return the steps of a plan, if found."""
        rounds = self.rounds
        while (
            self.status is SearchStatus.RUNNING and self.rounds == rounds and not self.log.is_over()
        ):
            if not self._queue and self._work < self._due and not self._refill():
                continue
            node, kind = (self._root, REFINEMENT) if self._work >= self._due else self._pop()
            if node.plan_number != self._guide.version and not self._update(node, kind):
                continue
            steps = self._refine(node) if kind == REFINEMENT else self._attempt(node)
            if steps is not None:
                self._count_round()
                return steps
        if self.rounds == rounds:
            self._count_round()
        return None

    def _push(self, node: SearchNode, kind: str) -> None:
        """Queue a node, once for each kind."""
        if kind in node.queued or (kind == TRANSFERS and not self._has_transfers):
            return
        node.enter_queue(kind)
        settings = self._settings
        tries = node.tries if kind == TRANSFERS else node.refinement_cost
        priority = (
            len(node.moves)
            + settings.heuristic_weight * node.estimate
            + settings.cost_per_try * tries
        )
        heapq.heappush(self._queue, (priority, next(self._numbers), node, kind))

    def _pop(self) -> tuple[SearchNode, str]:
        _, _, node, kind = heapq.heappop(self._queue)
        node.leave_queue(kind)
        return node, kind

    def _update(self, node: SearchNode, kind: str) -> bool:
        """Plan anew from a node after a lesson; return whether its turn is still now."""
        length = len(node.plan)
        if node is self._root:
            has_plan = self._give_root_a_plan()
        else:
            with self.log.clock.phase(PlanningStage.TASK):
                plan = self._guide.plan_anyway(node.values, hint=node.plan)
            has_plan = plan is not None
            if plan is not None:
                self._follow(node, plan)
        if has_plan and len(node.plan) > length:
            self._push(node, kind)
            return False
        return has_plan

    def _follow(self, node: SearchNode, plan: tuple[int, ...]) -> None:
        """Let a node follow a plan; another one is refined."""
        if node.follow(plan, self._guide.version):
            self._push(node, REFINEMENT)

    def _refill(self) -> bool:
        """Begin anew at the root when nothing is left; return whether it has a plan."""
        if not self._give_root_a_plan():
            return False
        self._is_repeated = True
        self._push(self._root, REFINEMENT)
        self._push(self._root, TRANSFERS)
        return True

    def _restart(self) -> None:
        """Begin anew at the root with other random numbers, or go on with all nodes, in turn."""
        self._turn += 1
        self._left = int(self._settings.restart_after * self._settings.restart_growth**self._turn)
        if self._turn % 2:
            self._queue = [*self._queue, *self._parked]
            heapq.heapify(self._queue)
            self._parked = []
            return
        self._parked, self._queue, self._seen = self._queue, [], set()
        self._transfers.restart()
        old = self._root
        self._root = SearchNode(
            old.version,
            old.values,
            plan=old.plan,
            plan_number=old.plan_number,
            refinements=old.refinements,
            refinement_cost=old.refinement_cost,
        )
        self._note(self._root)
        if REFINEMENT in old.queued:
            self._push(self._root, REFINEMENT)
        self._push(self._root, TRANSFERS)

    # ---------------------------------------------------------------------------------------- nodes

    def _node(self, parent: SearchNode, moves: tuple[Move, ...]) -> SearchNode | None:
        """Return the node of the version after moves; None where no task plan is left or the version is known."""
        version, guide = moves[-1].version, self._guide
        key = self._key(version)
        if key in self._seen:
            return None
        self._seen.add(key)
        with self.log.clock.phase(PlanningStage.TASK):
            values = guide.values(version.state)
            left = list(parent.plan)
            for move in moves[len(parent.moves) :]:
                if move.operator in left:
                    left.remove(move.operator)
            plan = guide.plan_anyway(values, hint=left)
        if plan is None:
            return None
        node = SearchNode(version, values, moves, plan, guide.version)
        self._note(node)
        return node

    def _key(self, version: SceneVersion) -> object:
        """Return a key that is the same for versions in which everything is at the same place."""
        poses = tuple(
            (name, digits(pose))
            for name, pose in self._transfers.comparison.poses(version.scene).items()
        )
        return poses, version.state, tuple(np.round(version.q, 6).tolist())

    def _note(self, node: SearchNode) -> None:
        """Record a node for the search tree."""
        if self.context.options.record_tree:
            self.log.record(node)

    # ------------------------------------------------------------------------------------ transfers

    def _attempt(self, node: SearchNode) -> tuple[PlanStep, ...] | None:
        """Make one attempt at a node; return the steps of a plan, if it led to the goal."""
        if node.transfers is None:
            with self.log.clock.phase(PlanningStage.SEMANTICS):
                self._transfers.compare(node)
            if node.penalty:
                self._push(node, TRANSFERS)
                return None
        attempt = next(node.attempts, node)
        if isinstance(attempt, SearchNode):
            return None  # nothing is left to try
        node.count_try()
        self._attempts_of_transfers += 1
        self._work += self._settings.refinement_attempts_per_try
        self._push(node, TRANSFERS)
        _logger.debug(
            "attempt %d after %d actions, %g expected: %s",
            node.tries,
            len(node.moves),
            node.estimate,
            (
                "fails"
                if attempt is None
                else " ".join(str(self._guide.actions[move.operator]) for move in attempt.moves)
            ),
        )
        steps = None if attempt is None else self._enter(node, attempt)
        self._left -= 1
        if self._left <= 0:
            self._restart()
        if (
            steps is None
            and self._attempts_of_transfers >= self._settings.transfers_per_round * self._growth
        ):
            self._end_round()
        return steps

    def _enter(self, node: SearchNode, attempt: Attempt) -> tuple[PlanStep, ...] | None:
        """Queue the node that an attempt led to; return the steps of a plan, if the goal holds there."""
        child = self._node(node, (*node.moves, *attempt.moves))
        if child is None:
            return None
        if self._guide.is_goal(child.values):
            return self._finished(child.moves)
        if attempt.is_confined and not self._transfers.finds_exit(child.version, attempt.arm):
            child.expect(self._settings.cost_without_exit)
        self._push(child, REFINEMENT)
        self._push(child, TRANSFERS)
        return None

    def _finished(self, moves: tuple[Move, ...]) -> tuple[PlanStep, ...] | None:
        """Return the steps of a plan without detours, with what is to be done after its last action."""
        self.log.note_end(moves[-1].version)
        iterations = self._settings.first_path_iterations << 2
        self._tree.use_arms(self.context.arms(self.log.clock, 0, path_iterations=iterations))
        try:
            settings, seed = self._settings, self.context.options.seed
            shorter = without_detours(
                moves, self._tree, self._guide, limit=settings.detour_actions, seed=seed
            )
        except SemanticsMismatchError:  # a place of another version
            shorter = moves
        finish = self.context.arm_goal_motion(self.log.clock)
        # the arm may reach its goal only from the end of the longer plan
        for made in (shorter, moves):
            steps = tuple(move.version.step for move in made if move.version.step is not None)
            if finish is None or not steps:
                return steps
            last = finish(made[-1].version)
            if last is not None:
                return (*steps[:-1], last)
        return None

    # ----------------------------------------------------------------------------------- refinement

    def _refine(self, node: SearchNode) -> tuple[PlanStep, ...] | None:
        """Refine the task plan of a node; return the steps of a plan, if all its actions have motions."""
        is_root = node is self._root
        if not is_root and not node.moves:
            return None  # a root of before a restart
        if is_root and self._is_new_round():
            return None
        log = self.log
        actions = [self._guide.actions[operator] for operator in node.plan]
        if is_root:
            log.count_task_plan()
            self._task_plans += 1
            _logger.info("task plan %d: %s", log.skeletons, " ".join(map(str, actions)))
        self._tree.use_arms(self.context.arms(log.clock, self.rounds))
        self._arrangements.use(is_root)
        outcome = refine_skeleton(
            actions,
            self._tree,
            budget=self._budget(node),
            is_over=log.is_over,
            on_step=lambda step: self.context.report(log, "motion", step, len(actions)),
            finish=self.context.arm_goal_motion(log.clock),
            start=node.version,
        )
        self._arrangements.use(False)
        self._attempts_of_plans += outcome.attempts
        self._work += outcome.attempts
        if is_root:
            self._due = math.inf
        moves = self._moves_along(node, outcome.path)
        if outcome.steps is not None:
            _logger.info("task plan %d has motions", log.skeletons)
            log.note_end(outcome.path[-1])
            is_direct = not node.moves and not self._guide.constraints
            return outcome.steps if is_direct else self._finished(moves)
        if not log.is_over():
            self._learn(node, outcome, moves)
        return None

    def _is_new_round(self) -> bool:
        """Begin a new round where the task plans of this one are tried; return whether it did."""
        if (
            not self._is_repeated
            and self._task_plans < self.context.options.skeletons_per_iteration
        ):
            return False
        self._end_round()
        self._due = self._work
        return True

    @property
    def _growth(self) -> int:
        """The number of times that the budgets of the first round those of this one are."""
        return budget_growth(self.rounds)

    def _count_round(self) -> None:
        """Count a round in which task plans were tried."""
        if self._task_plans:
            self.log.count_iteration()

    def _end_round(self) -> None:
        self.log.count_iteration()
        self.rounds += 1
        self._is_repeated, self._all_proved = False, True
        self._task_plans = self._attempts_of_transfers = 0
        self._dropped.clear()
        self._arrangements.begin_round()
        self._guide.lift()
        _logger.debug("round %d", self.rounds + 1)

    def _budget(self, node: SearchNode) -> RefinementBudget:
        """Return how many motions are tried for the plan of a node."""
        options, settings = self.context.options, self._settings
        if node is self._root:
            growth, length = self._growth, len(node.plan)
            least = settings.attempts_per_action_of_plan * length
            return RefinementBudget(
                attempts_per_node=options.attempts_per_action * growth,
                attempts=max(options.samples_per_skeleton, least) * growth,
                restarts=self.rounds,
                is_chronological=self.rounds >= _CHRONOLOGICAL_AFTER,
            )
        growth = budget_growth(node.refinements)
        return RefinementBudget(
            attempts_per_node=settings.attempts_per_action_of_repair * growth,
            attempts=settings.attempts_of_repair * growth,
            restarts=node.refinements,
            is_chronological=node.refinements > _CHRONOLOGICAL_AFTER,
        )

    def _moves_along(self, node: SearchNode, path: Sequence[SceneVersion]) -> tuple[Move, ...]:
        """Return the moves to the end of a path from a node along its plan."""
        made = zip(node.plan, path[1:], strict=False)
        return (
            *node.moves,
            *(Move(operator, version.candidate, version) for operator, version in made),
        )

    def _learn(self, node: SearchNode, outcome: RefinementOutcome, moves: tuple[Move, ...]) -> None:
        """Learn from a refinement that failed, and queue what is tried next."""
        is_blocked = outcome.cause is not None and bool(self._lessons.blockers(outcome.cause))
        plan, is_root = node.plan, node is self._root
        if outcome.cause is not None:
            _logger.debug(
                "task plan after %d actions fails after %d attempts at %s: %s",
                len(node.moves),
                outcome.attempts,
                outcome.cause.action,
                " ".join(sorted(outcome.cause.frames or ())),
            )
        arrangement = self._arrangements.number
        is_new = self._take_lesson(node, outcome)
        is_arranged = self._arrangements.number != arrangement
        is_other = is_new and self._plan_again(node) and (is_arranged or node.plan != plan)
        if self.status is not SearchStatus.RUNNING:
            return
        settings = self._settings
        cost = max(1.0, outcome.attempts / settings.refinement_attempts_per_try)
        if is_other and (
            is_arranged or (not is_blocked and self._attempts_of_plans < settings.patience)
        ):
            node.count_refinement(cost / 6.0)
            self._push(node, REFINEMENT)
            return
        node.count_refinement(cost if is_root else outcome.attempts + 1.0)
        if is_root and not is_other:
            self._is_repeated = True
            self._due = self._work + settings.work_beside * max(
                outcome.attempts, self.context.options.attempts_per_action
            )
        else:
            self._push(node, REFINEMENT)
        self._push(node, TRANSFERS)
        if self._has_transfers:
            for child in self._nodes_along(node, moves):
                self._push(child, TRANSFERS)

    def _plan_again(self, node: SearchNode) -> bool:
        """Plan anew from a node; return whether it has a plan."""
        if node is self._root:
            return self._give_root_a_plan()
        with self.log.clock.phase(PlanningStage.TASK):
            plan = self._guide.plan_anyway(node.values, hint=node.plan)
        if plan is not None:
            self._follow(node, plan)
        return plan is not None

    def _nodes_along(self, node: SearchNode, moves: tuple[Move, ...]) -> Iterator[SearchNode]:
        """Yield nodes of the versions on the way to a failure in which no arm holds an object."""
        hands = {arm.manipulator.tip for arm in self._tree.arms.values()}
        for end in range(len(node.moves) + 1, len(moves) + 1):
            scene = moves[end - 1].version.scene
            if not any(scene.parent(name) in hands for name in movable_frames(scene)):
                child = self._node(node, moves[:end])
                if child is not None:
                    yield child

    # -------------------------------------------------------------------------- lessons, task plans

    def _take_lesson(self, node: SearchNode, outcome: RefinementOutcome) -> bool:
        """Add the lesson of a failure to the task; return whether there is one that is new and of use."""
        guide, cause = self._guide, outcome.cause
        is_proved = outcome.impossible is not None or (cause is not None and cause.is_proved)
        if outcome.impossible is None and not self._is_tried(node, outcome):
            return False
        arrangement = self._arrangements.number
        with self.log.clock.phase(PlanningStage.SEMANTICS):
            lesson = self._lesson(node, outcome)
        is_arranged = self._arrangements.number != arrangement
        if is_arranged:
            self._first_plans.clear()
        if lesson is None or guide.implies(lesson):
            self._all_proved &= is_proved
            return is_arranged
        self._all_proved &= is_proved
        guide.forbid(lesson)
        if not lesson.is_proved and self._first_plan()[0] is None and not self._all_proved:
            guide.forget(lesson)
            if lesson not in self._dropped:
                self._dropped.add(lesson)
                self._record_lesson(lesson, outcome, is_proved=is_proved)
            return False
        self._record_lesson(lesson, outcome, is_proved=is_proved)
        return True

    def _lesson(self, node: SearchNode, outcome: RefinementOutcome) -> OperatorConstraint | None:
        """Return the lesson of a failure; objects that the plan of the root puts into one region are arranged anew."""
        cause, lessons, arrangements = outcome.cause, self._lessons, self._arrangements
        if node is self._root and cause is not None and outcome.impossible is None:
            region = lessons.region(cause)
            is_arranged = arrangements.reject(cause.action)
            arrangement = arrangements.arrange(node.plan, cause.action, region.facts)
            if arrangement is not None:
                return lessons.capacity(cause, region, arranged=arrangement.capacity)
            if is_arranged:
                return None  # the arrangement fails, not the region
        return lessons.of(outcome)

    def _is_tried(self, node: SearchNode, outcome: RefinementOutcome) -> bool:
        """Return whether the deepest action of a refinement was tried often enough to learn from it."""
        if node is self._root or outcome.cause is None:
            return True
        if outcome.cause.frames is None:
            return False  # the context would be the whole state, which is seldom met again
        tried = self._tree.expansion(outcome.cause.version, outcome.cause.action)
        return tried.is_exhausted or tried.attempts >= self._settings.attempts_per_action_of_repair

    def _record_lesson(
        self, lesson: OperatorConstraint, outcome: RefinementOutcome, *, is_proved: bool
    ) -> None:
        """Record a lesson for the explanation."""
        action = outcome.impossible or (outcome.cause.action if outcome.cause is not None else None)
        assert action is not None, "a lesson is about an action"
        stated = str(self.context.domain.original_action(action))
        context = tuple(lesson.reason.replace(") (", ")\n(").splitlines())  # facts, or one sentence
        self.log.note_constraint(LearnedConstraint(stated, context, is_proved))
        _logger.info("forbidden: %s while %s", action, lesson.reason or "anything")

    def _give_root_a_plan(self) -> bool:
        """Give the root a task plan, without the lessons where they leave none; return whether there is one."""
        guide, root = self._guide, self._root
        while not self.log.is_over():
            plan, is_unsolvable = self._first_plan()
            if plan is not None:
                self._follow(root, plan)
                return True
            if is_unsolvable and not guide.constraints:
                self.status = SearchStatus.PROVED
            elif is_unsolvable and self._all_proved:
                self.status = SearchStatus.EXHAUSTED
            elif guide.lift():
                self._is_repeated, self._all_proved = True, True
                continue
            else:
                self.status = SearchStatus.LIMIT
            return False
        return False

    def _first_plan(self) -> tuple[tuple[int, ...] | None, bool]:
        """Return a task plan from the root under all constraints, and whether it is proved that there is none."""
        version = self._guide.version
        if version not in self._first_plans:
            with self.log.clock.phase(PlanningStage.TASK):
                plan, is_unsolvable = self._search_first_plan()
                ordered = None if plan is None else self._arrangements.ordered(plan)
                self._first_plans = {version: (ordered, is_unsolvable)}
        return self._first_plans[version]

    def _search_first_plan(self) -> tuple[tuple[int, ...] | None, bool]:
        guide, root, context = self._guide, self._root, self.context
        if context.task_planner == FastDownward():
            context.report(self.log, "task", 0, 0)
            plan = guide.first_plan(root.values)
            if plan is not None:
                self.log.note_search("core")
                return self._ordered([guide.actions[operator] for operator in plan]), False
            if guide.is_unsolvable_now(root.values):
                return None, True
            if not all(lesson.is_proved for lesson in guide.constraints):
                return None, False  # without these there may be one, and sooner
        result = context.search(self.log, self._constrained())
        if not result.is_solved:
            return None, result.status is TaskPlanStatus.UNSOLVABLE
        return self._ordered(self._needed(result)), False

    def _constrained(self) -> PreparedTask:
        """Return the task of the task planner with the lessons that name a context."""
        task, guide = self._task, self._guide
        for lesson in guide.constraints:
            if lesson.limit == len(lesson.facts) - 1:
                facts = [
                    fact for pair in lesson.facts if (fact := guide.task.fact_of(pair)) is not None
                ]
                for action in dict.fromkeys(
                    guide.actions[operator] for operator in lesson.operators
                ):
                    task = task.forbid(action, facts)
        return task

    def _needed(self, result: TaskPlanResult) -> tuple[GroundAction, ...]:
        """Return the actions of a task plan without those that serve nothing."""
        is_allowed = self._is_allowed if self._guide.constraints else None
        return without_redundant_steps(self.problem, result.steps, is_allowed=is_allowed)

    def _is_allowed(self, action: GroundAction, state: State) -> bool:
        """Return whether the lessons allow an action in a state."""
        values = self._guide.values(state)
        return any(
            self._guide.is_applicable(operator, values)
            for operator in self._guide.by_action[action]
        )

    def _ordered(self, actions: Sequence[GroundAction]) -> tuple[int, ...]:
        """Return the operators of a task plan, in which arms take turns where they act at once."""
        guide, values = self._guide, self._root.values
        if self.context.options.arms_at_once:
            arms = [pddl_name(arm.name) for arm in self.context.manipulators]
            if self.rounds < 2:  # later, as the task planner has it
                actions = shared(
                    self.problem,
                    tuple(actions),
                    arms,
                    is_allowed=self._is_allowed,
                    effort=self._distance,
                )
            actions = by_turns(self.problem, tuple(actions), arms, is_allowed=self._is_allowed)
        operators: list[int] = []
        for action in actions:
            operator = next(n for n in guide.by_action[action] if guide.is_applicable(n, values))
            operators.append(operator)
            values = guide.apply(operator, values)
        return tuple(operators)

    def _distance(self, actions: Sequence[GroundAction], arm: str) -> float:
        """Return the sum of the distances from the base of an arm to the frames that actions name, at the start [m]."""
        scene, q = self.context.scene, self.context.q
        bases = {pddl_name(each.name): each.base for each in self.context.manipulators}
        named = {name for action in actions for name in action.arguments if name not in bases}
        frames = [frame for frame in scene.frame_names if pddl_name(frame) in named]
        return sum(
            round(norm(scene.pose(bases[arm], relative_to=frame, q=q).translation), 6)
            for frame in frames
        )
