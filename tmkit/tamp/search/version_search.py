r"""Best-first search over versions of the scene, guided by a task plan from each version.

::

    root --pick b--> . --place b shelf--> . --...--> goal     refinement of a task plan
      \--pick c, place c aside--> . --...                     transfers with collision-free grasps

A node is a version with the remaining task plan. Its entries in the queue have two kinds:

* *Refinement* carries out the task plan with the domain's candidates, by depth-first search with
  conflict-directed backjumping (:mod:`tmkit.tamp.search.refinement`).
* *Transfers* make one attempt each (:mod:`tmkit.tamp.search.transfers`): possible first transfers
  of the plan, moves of blockers, regrasps, other actions and finally any action.

The cost of an entry is the number of its actions, plus ``heuristic_weight`` times the expected
number of further actions, plus ``cost_per_try`` for each attempt made there. The further actions
are the remaining task plan, and two actions for each blocker. The entry of lowest cost comes first.
After ``restart_after`` attempts at transfers, the search restarts at the root with other random
numbers, then continues with all nodes, and so on in growing turns.

If the refinement of a task plan fails, the task planner receives a learned constraint
(:mod:`tmkit.tamp.search.constraint_learning`), and the node another task plan, which is refined
next. A constraint that leaves no task plan is removed. When all constraints together leave none,
they are removed and an *iteration* ends: budgets double.

Completeness: a node is dropped only if a bounded search finds no task plan from its state under
proved constraints, or if an equal version exists. Every other entry returns to the queue, and each
attempt lowers its priority. All entries are therefore taken infinitely often, and each applicable
action is attempted infinitely often at each node, with new placements.

Invariants: the same arguments give the same results; the time limit only ends the search.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from collections.abc import Iterator, Sequence
from enum import Enum

import numpy as np

from tmkit.errors import SemanticsMismatchError
from tmkit.manipulation.actions.timing_breakdown import PlanningStage
from tmkit.pddl import Problem
from tmkit.plans.values import PlanStep
from tmkit.robots import movable_frames
from tmkit.tamp.context import PlanningContext, SearchLog, budget_growth
from tmkit.tamp.diagnosis.diagnosis import LearnedConstraint
from tmkit.tamp.search.arrangements import Arrangements
from tmkit.tamp.search.constraint_learning import ConstraintLearner
from tmkit.tamp.search.detours import remove_detours
from tmkit.tamp.search.hand_tables import pose_key
from tmkit.tamp.search.refinement import (
    RefinementBudget,
    RefinementMonitor,
    RefinementOutcome,
    refine_skeleton,
)
from tmkit.tamp.search.root_plans import RootPlanner
from tmkit.tamp.search.search_node import Attempt, Move, SearchNode
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.search.transfers import TransferAttempts
from tmkit.tamp.version_tree import SceneVersion
from tmkit.task_planning import FastDownward
from tmkit.task_planning.guide import OperatorConstraint
from tmkit.task_planning.protocol import PreparedTask
from tmkit.task_planning.translated_task import TranslatedTask

_logger = logging.getLogger(__name__)

REFINEMENT = "refinement"
"""Kind of the entries that refine the task plan of a node."""

TRANSFERS = "transfers"
"""Kind of the entries that attempt transfers."""

_BACKJUMPING_ITERATIONS = 2
"""Iterations before chronological backtracking, since bounded failures prove nothing."""

_ALTERNATIVE_PLAN_DISCOUNT = 6.0
"""Divisor of the cost of a refinement that is followed by another task plan at once."""


class SearchStatus(Enum):
    """State of a search."""

    RUNNING = "running"
    PROVED = "proved"
    """No task plan exists."""
    EXHAUSTED = "exhausted"
    """Every failure is proved for the attempted poses."""
    LIMIT = "limit"
    """The task planner found no plan within its limits."""


class VersionSearch:
    """Search for a plan of one task.

    Args:
        context: settings of the run.
        log: log of the run.
        problem: PDDL problem, with all objects or the useful ones.
        task: the same problem, prepared by the task planner.

    Attributes:
        problem: PDDL problem.
        status: state of the search.
        iterations: number of completed iterations.
    """

    def __init__(
        self, context: PlanningContext, log: SearchLog, problem: Problem, task: PreparedTask
    ) -> None:
        self.context, self.log, self.problem = context, log, problem
        self.status, self.iterations = SearchStatus.RUNNING, 0
        self._settings = context.options.search
        # Counts of this iteration, also of a search that ends at once.
        self._root_refinements = self._transfer_attempts = 0
        translated_task = task
        if not isinstance(translated_task, TranslatedTask):
            translated_task = FastDownward().prepare(problem, time_limit=log.seconds_left())
        if not translated_task.is_complete:
            self.status = SearchStatus.LIMIT
            return
        seed = context.options.seed
        tree = self._tree = context.tree(log, problem, context.domain, seed=seed)
        guide = self._guide = TaskGuide(translated_task)
        self._transfers = TransferAttempts(context, log, tree, guide, seed=seed)
        self._arrangements = Arrangements(tree, guide, self._transfers.comparison, seed=seed)
        self._learner = ConstraintLearner(tree, guide, self._transfers.comparison)
        # Tables of grasps require exact poses.
        is_exact = not context.domain.probabilistic_predicates
        self._has_transfers = is_exact and self._transfers.comparison.table(None).is_usable

        self._queue: list[tuple[float, int, SearchNode, str]] = []
        self._suspended_queue: list[tuple[float, int, SearchNode, str]] = []
        self._numbers = itertools.count()
        self._version_keys: set[object] = set()
        self._turn, self._attempts_until_restart = 0, self._settings.restart_after
        self._refinement_attempts = 0
        # Constraints removed in this iteration.
        self._removed_constraints: set[OperatorConstraint] = set()
        self._is_root_plan_repeated, self._are_failures_proved = False, True
        # Attempts so far, and number of attempts after which the root's plan is refined again.
        self._work, self._root_due = 0.0, math.inf
        self._root = SearchNode(tree.root, guide.values(tree.root.state))
        self._root_planner = RootPlanner(
            context, log, problem, task, guide, self._root.values, self._arrangements
        )
        self._record_node(self._root)
        if self._plan_root():
            self._push(self._root, REFINEMENT)

    # ------------------------------------------------------------------------------------ the queue

    def advance(self) -> tuple[PlanStep, ...] | None:
        """Search until an iteration ends, the status changes or the time limit passes.

        Returns:
            The steps of a plan, or None.
        """
        iterations = self.iterations
        while (
            self.status is SearchStatus.RUNNING
            and self.iterations == iterations
            and not self.log.is_over()
        ):
            if not self._queue and self._work < self._root_due and not self._refill_queue():
                continue
            is_root_due = self._work >= self._root_due
            node, kind = (self._root, REFINEMENT) if is_root_due else self._pop()
            if node.plan_number != self._guide.version and not self._update_plan(node, kind):
                continue
            steps = self._refine(node) if kind == REFINEMENT else self._attempt(node)
            if steps is not None:
                self._count_iteration()
                return steps
        if self.iterations == iterations:
            self._count_iteration()
        return None

    def _push(self, node: SearchNode, kind: str) -> None:
        """Queue a node, once for each kind."""
        if kind in node.queued_kinds or (kind == TRANSFERS and not self._has_transfers):
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

    def _update_plan(self, node: SearchNode, kind: str) -> bool:
        """Replan from a node after the constraints changed.

        Returns:
            Whether the entry keeps its turn; False without a plan or with a longer one.
        """
        length = len(node.plan)
        has_plan = self._replan(node)
        if has_plan and len(node.plan) > length:
            self._push(node, kind)
            return False
        return has_plan

    def _set_plan(self, node: SearchNode, plan: tuple[int, ...]) -> None:
        """Replace the plan of a node, and queue its refinement if it differs."""
        if node.set_plan(plan, self._guide.version):
            self._push(node, REFINEMENT)

    def _refill_queue(self) -> bool:
        """Queue the root again after the queue is empty; return whether it has a plan."""
        if not self._plan_root():
            return False
        self._is_root_plan_repeated = True
        self._push(self._root, REFINEMENT)
        self._push(self._root, TRANSFERS)
        return True

    def _restart(self) -> None:
        """Restart at the root with other random numbers, or continue with all nodes, in turn."""
        self._turn += 1
        settings = self._settings
        attempts = settings.restart_after * settings.restart_growth**self._turn
        self._attempts_until_restart = int(attempts)
        if self._turn % 2:
            self._queue = [*self._queue, *self._suspended_queue]
            heapq.heapify(self._queue)
            self._suspended_queue = []
            return
        self._suspended_queue, self._queue, self._version_keys = self._queue, [], set()
        self._transfers.restart()
        previous_root = self._root
        self._root = SearchNode(
            previous_root.version,
            previous_root.values,
            plan=previous_root.plan,
            plan_number=previous_root.plan_number,
            refinements=previous_root.refinements,
            refinement_cost=previous_root.refinement_cost,
        )
        self._record_node(self._root)
        if REFINEMENT in previous_root.queued_kinds:
            self._push(self._root, REFINEMENT)
        self._push(self._root, TRANSFERS)

    # ---------------------------------------------------------------------------------------- nodes

    def _make_node(self, parent: SearchNode, moves: tuple[Move, ...]) -> SearchNode | None:
        """Return the node of the version after moves.

        Returns:
            None if no task plan exists from there or an equal version exists.
        """
        version, guide = moves[-1].version, self._guide
        key = self._version_key(version)
        if key in self._version_keys:
            return None
        self._version_keys.add(key)
        with self.log.clock.phase(PlanningStage.TASK):
            values = guide.values(version.state)
            hint = list(parent.plan)
            for move in moves[len(parent.moves) :]:
                if move.operator in hint:
                    hint.remove(move.operator)
            plan = guide.plan_or_relax(values, hint=hint)
        if plan is None:
            return None
        node = SearchNode(version, values, moves, plan, guide.version)
        self._record_node(node)
        return node

    def _version_key(self, version: SceneVersion) -> object:
        """Return a key that is equal for versions with equal poses, state and configuration."""
        poses = tuple(
            (name, pose_key(pose))
            for name, pose in self._transfers.comparison.poses(version.scene).items()
        )
        return poses, version.state, tuple(np.round(version.q, 6).tolist())

    def _record_node(self, node: SearchNode) -> None:
        """Record a node for the search tree."""
        if self.context.options.record_tree:
            self.log.record(node)

    # ------------------------------------------------------------------------------------ transfers

    def _attempt(self, node: SearchNode) -> tuple[PlanStep, ...] | None:
        """Make one attempt at a node; return the steps of a plan, if it reaches the goal."""
        if node.transfers is None:
            with self.log.clock.phase(PlanningStage.SEMANTICS):
                self._transfers.compare(node)
            if node.penalty:
                self._push(node, TRANSFERS)
                return None
        attempt = next(node.attempts, node)
        if isinstance(attempt, SearchNode):
            # The node has no attempts left.
            return None
        node.count_try()
        self._transfer_attempts += 1
        self._work += self._settings.refinement_attempts_per_try
        self._push(node, TRANSFERS)
        self._log_attempt(node, attempt)
        steps = None if attempt is None else self._enter_child(node, attempt)
        self._attempts_until_restart -= 1
        if self._attempts_until_restart <= 0:
            self._restart()
        max_attempts = self._settings.transfers_per_round * self._budget_growth
        if steps is None and self._transfer_attempts >= max_attempts:
            self._end_iteration()
        return steps

    def _log_attempt(self, node: SearchNode, attempt: Attempt | None) -> None:
        """Log the actions of an attempt."""
        result = "fails"
        if attempt is not None:
            actions = self._guide.actions
            result = " ".join(str(actions[move.operator]) for move in attempt.moves)
        _logger.debug(
            "attempt %d after %d actions, %g expected: %s",
            node.tries,
            len(node.moves),
            node.estimate,
            result,
        )

    def _enter_child(self, node: SearchNode, attempt: Attempt) -> tuple[PlanStep, ...] | None:
        """Queue the node after an attempt; return the steps of a plan, if the goal holds there."""
        child = self._make_node(node, (*node.moves, *attempt.moves))
        if child is None:
            return None
        if self._guide.is_goal(child.values):
            return self._finish_plan(child.moves)
        if attempt.is_confined and not self._transfers.finds_exit(child.version, attempt.arm):
            child.set_penalty(self._settings.cost_without_exit)
        self._push(child, REFINEMENT)
        self._push(child, TRANSFERS)
        return None

    def _finish_plan(self, moves: tuple[Move, ...]) -> tuple[PlanStep, ...] | None:
        """Return the steps of a plan without detours, with the final motion of the arm's goals."""
        self.log.note_end(moves[-1].version)
        iterations = self._settings.first_path_iterations << 2
        self._tree.use_arms(self.context.arms(self.log.clock, 0, path_iterations=iterations))
        try:
            settings, seed = self._settings, self.context.options.seed
            shorter_moves = remove_detours(
                moves, self._tree, self._guide, limit=settings.detour_actions, seed=seed
            )
        except SemanticsMismatchError:
            # A placement of another version has another meaning in the shorter plan.
            shorter_moves = moves
        finish = self.context.arm_goal_motion(self.log.clock)
        # The arm may reach its goal only from the end of the longer plan.
        for plan in (shorter_moves, moves):
            steps = tuple(move.version.step for move in plan if move.version.step is not None)
            if finish is None or not steps:
                return steps
            last_step = finish(plan[-1].version)
            if last_step is not None:
                return (*steps[:-1], last_step)
        return None

    # ----------------------------------------------------------------------------------- refinement

    def _refine(self, node: SearchNode) -> tuple[PlanStep, ...] | None:
        """Refine the task plan of a node; return the steps of a plan, if all actions succeed."""
        is_root = node is self._root
        if not is_root and not node.moves:
            # The node is the root of an earlier restart.
            return None
        if is_root and self._is_iteration_complete():
            self._end_iteration()
            self._root_due = self._work
            return None
        log = self.log
        actions = [self._guide.actions[operator] for operator in node.plan]
        if is_root:
            log.count_task_plan()
            self._root_refinements += 1
            _logger.info("task plan %d: %s", log.skeletons, " ".join(map(str, actions)))
        self._tree.use_arms(self.context.arms(log.clock, self.iterations))
        self._arrangements.activate(is_root)
        outcome = refine_skeleton(
            actions,
            self._tree,
            budget=self._refinement_budget(node),
            monitor=RefinementMonitor(
                log.is_over, lambda step: self.context.report(log, "motion", step, len(actions))
            ),
            finish=self.context.arm_goal_motion(log.clock),
            start=node.version,
        )
        self._arrangements.activate(False)
        self._refinement_attempts += outcome.attempts
        self._work += outcome.attempts
        if is_root:
            self._root_due = math.inf
        moves = self._moves_along(node, outcome.path)
        if outcome.steps is not None:
            _logger.info("task plan %d has motions", log.skeletons)
            log.note_end(outcome.path[-1])
            is_direct = not node.moves and not self._guide.constraints
            return outcome.steps if is_direct else self._finish_plan(moves)
        if not log.is_over():
            self._learn(node, outcome, moves)
        return None

    def _is_iteration_complete(self) -> bool:
        """Return whether the root's task plans of this iteration have been refined."""
        max_plans = self.context.options.skeletons_per_iteration
        return self._is_root_plan_repeated or self._root_refinements >= max_plans

    @property
    def _budget_growth(self) -> int:
        """Factor of the budgets of this iteration relative to the first."""
        return budget_growth(self.iterations)

    def _count_iteration(self) -> None:
        """Count an iteration in which task plans were refined."""
        if self._root_refinements:
            self.log.count_iteration()

    def _end_iteration(self) -> None:
        """Remove all assumptions and double the budgets."""
        self.log.count_iteration()
        self.iterations += 1
        self._is_root_plan_repeated, self._are_failures_proved = False, True
        self._root_refinements = self._transfer_attempts = 0
        self._removed_constraints.clear()
        self._arrangements.begin_iteration()
        self._guide.lift()
        _logger.debug("iteration %d", self.iterations + 1)

    def _refinement_budget(self, node: SearchNode) -> RefinementBudget:
        """Return the number of attempts for the plan of a node."""
        options, settings = self.context.options, self._settings
        if node is self._root:
            growth, length = self._budget_growth, len(node.plan)
            min_attempts = settings.attempts_per_action_of_plan * length
            return RefinementBudget(
                attempts_per_node=options.attempts_per_action * growth,
                attempts=max(options.samples_per_skeleton, min_attempts) * growth,
                restarts=self.iterations,
                is_chronological=self.iterations >= _BACKJUMPING_ITERATIONS,
            )
        growth = budget_growth(node.refinements)
        return RefinementBudget(
            attempts_per_node=settings.attempts_per_action_of_repair * growth,
            attempts=settings.attempts_of_repair * growth,
            restarts=node.refinements,
            is_chronological=node.refinements > _BACKJUMPING_ITERATIONS,
        )

    def _moves_along(self, node: SearchNode, path: Sequence[SceneVersion]) -> tuple[Move, ...]:
        """Return the moves to the end of a path that follows a node's plan."""
        refined_actions = zip(node.plan, path[1:], strict=False)
        return (
            *node.moves,
            *(Move(operator, version.candidate, version) for operator, version in refined_actions),
        )

    def _replan(self, node: SearchNode) -> bool:
        """Compute a new plan from a node; return whether it has one."""
        if node is self._root:
            return self._plan_root()
        with self.log.clock.phase(PlanningStage.TASK):
            plan = self._guide.plan_or_relax(node.values, hint=node.plan)
        if plan is not None:
            self._set_plan(node, plan)
        return plan is not None

    def _plan_root(self) -> bool:
        """Compute a plan from the root, without assumptions if they leave none.

        Returns:
            Whether there is a plan. Otherwise the status gives the reason.
        """
        guide = self._guide
        while not self.log.is_over():
            plan = self._root_planner.plan(self.iterations)
            if plan.operators is not None:
                self._set_plan(self._root, plan.operators)
                return True
            if plan.is_unsolvable and not guide.constraints:
                self.status = SearchStatus.PROVED
            elif plan.is_unsolvable and self._are_failures_proved:
                self.status = SearchStatus.EXHAUSTED
            elif guide.lift():
                self._is_root_plan_repeated, self._are_failures_proved = True, True
                continue
            else:
                self.status = SearchStatus.LIMIT
            return False
        return False

    # ------------------------------------------------------------------------- learned constraints

    def _learn(self, node: SearchNode, outcome: RefinementOutcome, moves: tuple[Move, ...]) -> None:
        """Learn from a failed refinement, and queue the next entries.

        Args:
            node: node whose plan was refined.
            outcome: result of the refinement.
            moves: moves from the root to the failed action.
        """
        cause, settings = outcome.cause, self._settings
        has_blockers = cause is not None and bool(self._learner.blockers(cause))
        plan, is_root = node.plan, node is self._root
        if cause is not None:
            _logger.debug(
                "task plan after %d actions fails after %d attempts at %s: %s",
                len(node.moves),
                outcome.attempts,
                cause.action,
                " ".join(sorted(cause.frames or ())),
            )
        arrangement = self._arrangements.number
        is_new = self._add_constraint(node, outcome)
        is_rearranged = self._arrangements.number != arrangement
        has_other_plan = is_new and self._replan(node) and (is_rearranged or node.plan != plan)
        if self.status is not SearchStatus.RUNNING:
            return
        cost = max(1.0, outcome.attempts / settings.refinement_attempts_per_try)
        is_patient = not has_blockers and self._refinement_attempts < settings.patience
        if has_other_plan and (is_rearranged or is_patient):
            node.count_refinement(cost / _ALTERNATIVE_PLAN_DISCOUNT)
            self._push(node, REFINEMENT)
            return
        node.count_refinement(cost if is_root else outcome.attempts + 1.0)
        if is_root and not has_other_plan:
            self._is_root_plan_repeated = True
            min_attempts = self.context.options.attempts_per_action
            pause = settings.work_beside * max(outcome.attempts, min_attempts)
            self._root_due = self._work + pause
        else:
            self._push(node, REFINEMENT)
        self._push(node, TRANSFERS)
        if self._has_transfers:
            for child in self._nodes_along(node, moves):
                self._push(child, TRANSFERS)

    def _nodes_along(self, node: SearchNode, moves: tuple[Move, ...]) -> Iterator[SearchNode]:
        """Yield the nodes on the path to a failure in which no arm holds an object."""
        hands = {arm.robot.tip for arm in self._tree.arms.values()}
        for end in range(len(node.moves) + 1, len(moves) + 1):
            scene = moves[end - 1].version.scene
            if not any(scene.parent(name) in hands for name in movable_frames(scene)):
                child = self._make_node(node, moves[:end])
                if child is not None:
                    yield child

    def _add_constraint(self, node: SearchNode, outcome: RefinementOutcome) -> bool:
        """Add the constraint learned from a failure to the task.

        Returns:
            Whether the task or the arrangements changed.
        """
        guide, cause = self._guide, outcome.cause
        is_proved = outcome.impossible is not None or (cause is not None and cause.is_proved)
        if outcome.impossible is None and not self._has_enough_attempts(node, outcome):
            return False
        arrangement = self._arrangements.number
        with self.log.clock.phase(PlanningStage.SEMANTICS):
            constraint = self._learn_constraint(node, outcome)
        is_rearranged = self._arrangements.number != arrangement
        if is_rearranged:
            self._root_planner.clear()
        self._are_failures_proved &= is_proved
        if constraint is None or guide.implies(constraint):
            return is_rearranged
        guide.forbid(constraint)
        has_plan = (
            constraint.is_proved or self._root_planner.plan(self.iterations).operators is not None
        )
        if not has_plan and not self._are_failures_proved:
            guide.remove(constraint)
            if constraint not in self._removed_constraints:
                self._removed_constraints.add(constraint)
                self._record_constraint(constraint, outcome, is_proved=is_proved)
            return False
        self._record_constraint(constraint, outcome, is_proved=is_proved)
        return True

    def _learn_constraint(
        self, node: SearchNode, outcome: RefinementOutcome
    ) -> OperatorConstraint | None:
        """Return the constraint learned from a failure, and arrange objects anew at the root."""
        cause, learner, arrangements = outcome.cause, self._learner, self._arrangements
        if node is self._root and cause is not None and outcome.impossible is None:
            region = learner.region(cause)
            is_arranged = arrangements.reject(cause.action)
            arrangement = arrangements.arrange(node.plan, cause.action, region.facts)
            if arrangement is not None:
                return learner.capacity(cause, region, arranged_count=arrangement.capacity)
            if is_arranged:
                # The arrangement fails, not the region.
                return None
        return learner.learn(outcome)

    def _has_enough_attempts(self, node: SearchNode, outcome: RefinementOutcome) -> bool:
        """Return whether a constraint may be learned from the deepest action of a refinement."""
        if node is self._root or outcome.cause is None:
            return True
        if outcome.cause.frames is None:
            # The context would be the whole state, which seldom recurs.
            return False
        expansion = self._tree.expansion(outcome.cause.version, outcome.cause.action)
        min_attempts = self._settings.attempts_per_action_of_repair
        return expansion.is_exhausted or expansion.attempts >= min_attempts

    def _record_constraint(
        self, constraint: OperatorConstraint, outcome: RefinementOutcome, *, is_proved: bool
    ) -> None:
        """Record a constraint for the explanation."""
        action = outcome.impossible or (outcome.cause.action if outcome.cause is not None else None)
        assert action is not None, "a constraint has an action"
        text = str(self.context.domain.original_action(action))
        # The reason consists of facts or is a sentence.
        context = tuple(constraint.reason.replace(") (", ")\n(").splitlines())
        self.log.note_constraint(LearnedConstraint(text, context, is_proved))
        _logger.info("forbidden: %s while %s", action, constraint.reason or "anything")
