"""Anytime improvement of a plan: cheaper actions and shorter paths for the same goal.

Three kinds of iterations alternate (docs/reference/planning.md):

* *paths*: the transit and transfer paths are planned again;
* *choices*: grasps, placements and configurations are sampled again;
* *skeletons*: the task planner finds another task plan, in which one action is forbidden, the most
  expensive and last first.

A plan is better if it costs less (:mod:`tmkit.tamp.costs`) or, at equal cost, if its paths are
shorter. Choices and skeletons are refined by branch and bound, with the best plan as the bound.

The plan never gets worse. For a fixed number of iterations the result depends only on the arguments
of the run. A time limit only ends the iterations.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from tmkit.errors import TimeLimitError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.pddl import GroundAction, Problem, validate_task_plan
from tmkit.pddl.validation import interleave_agents
from tmkit.plans.failures import PrimitiveFailedError
from tmkit.plans.schedule import Schedule
from tmkit.plans.values import Configuration, PlanStep, Segment, SegmentKind
from tmkit.spatial.plain import read_only
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.costs import CostBound, Objective, StepCosts, busiest_arm_objective
from tmkit.tamp.domains.action_costs import action_costs, with_costs
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.progress import ImprovementProgress
from tmkit.tamp.search.refinement import RefinementBudget, RefinementMonitor, refine_skeleton
from tmkit.task_planning import TaskPlanStatus
from tmkit.task_planning.protocol import PreparedTask

_logger = logging.getLogger(__name__)

_SEARCHED_KINDS = (SegmentKind.TRANSIT, SegmentKind.TRANSFER)
"""Kinds of segments with a path of the motion planner."""

_ATTEMPTS_PER_ACTION = 12
"""Motion attempts for each action of a skeleton; fewer than for the first plan."""

_MIN_GAIN = 1e-9
"""Smallest gain of cost or path length that is not a rounding error."""

_BRANCHING_WIDTH = 3
"""Motions of an action that are compared; the cheapest is extended first."""


def _is_better(candidate: Objective, best: Objective) -> bool:
    """Return whether a candidate is better than the best plan by more than a rounding error."""
    gain = best[0] - candidate[0]
    return gain > _MIN_GAIN or (gain >= 0.0 and candidate[1] < best[1] - _MIN_GAIN)


class Improvement:
    """Iterations after the first plan of a run.

    Args:
        context: inputs of the run.
        log: log of the run.
        problem: task of the first plan.
        domain: domain of the task.
        task: prepared task, without learned constraints.
        steps: steps of the first plan.
    """

    def __init__(
        self,
        context: PlanningContext,
        log: SearchLog,
        problem: Problem,
        domain: PlanningDomain,
        task: PreparedTask,
        steps: tuple[PlanStep, ...],
    ) -> None:
        self.context, self.log = context, log
        self.problem, self.domain = problem, domain
        self.first_task = self.task = task
        self.costs = StepCosts(
            context.options.cost,
            context.scene,
            context.robots,
            domain.original_action,
            self._makespan,
        )
        self.best, self.best_objective = steps, self.costs.total(steps)
        # latest result of the task planner; empty if it is the skeleton of the best plan
        self.latest_skeleton: tuple[GroundAction, ...] = ()
        self.number = 0

    def improve(self, iterations: int | None) -> tuple[PlanStep, ...]:
        """Run the iterations and return the steps of the best plan.

        Args:
            iterations: number of iterations; None to run until the time limit.
        """
        self._report(iterations)
        kinds = (self._improve_paths, self._resample_choices, self._try_other_skeleton)
        with suppress(TimeLimitError):
            while self.best and self.number != iterations and not self.log.is_over():
                self.costs.clear()
                steps = kinds[self.number % len(kinds)]()
                self.number += 1
                if steps is None:
                    continue
                objective = self.costs.total(steps)
                if _is_better(objective, self.best_objective):
                    self.best, self.best_objective = steps, objective
                    self._report(iterations)
        return self.best

    def _makespan(self, steps: Sequence[PlanStep]) -> float:
        """Return the end time of the last step [s]."""
        plan = self.context.plan_of(tuple(steps), self.domain)
        if not self.context.options.arms_at_once:
            return Schedule.of(plan).makespan
        from tmkit.tamp.scheduling import shortest_schedule  # few runs need a schedule

        return shortest_schedule(plan).makespan

    def _report(self, iterations: int | None) -> None:
        """Report and log the best plan; ``iterations`` is the total number, None if unlimited."""
        context, log = self.context, self.log
        cost, length = self.best_objective
        log.note_best(f"cost {cost:g}, paths {length:.2f} rad")
        if context.on_progress is not None:
            context.on_progress(
                ImprovementProgress(
                    "improve",
                    self.number,
                    iterations or 0,
                    log.seconds,
                    log.skeletons,
                    log.failures.attempts,
                    log.best,
                    cost,
                    length,
                    context.plan_of(self.best, self.domain),
                )
            )
        _logger.info(
            "best plan after %d iterations: cost %g, %.3f rad of paths", self.number, cost, length
        )

    def _seed(self, purpose: str) -> int:
        """Return the seed of this iteration for a purpose."""
        text = f"improvement {self.context.options.seed} {self.number} {purpose}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "little") >> 1

    # --- Paths ---

    def _improve_paths(self) -> tuple[PlanStep, ...] | None:
        """Plan all searched paths again; return the steps, or None at the time limit."""
        context, log = self.context, self.log
        arms = context.arms(log.clock, 0)
        steps: list[PlanStep] = []
        scene, q = context.scene, context.q
        for number, step in enumerate(self.best):
            if log.is_over():
                return None
            start = _State(scene, q)
            steps.append(self._improve_step_paths(step, start, arms, f"step {number}"))
            scene, q = step.scene, step.q
        return tuple(steps)

    def _improve_step_paths(
        self, step: PlanStep, start: _State, arms: dict[str, ArmMotionPlanner], seed_name: str
    ) -> PlanStep:
        """Return the step with each searched path replaced where a better one is found.

        Args:
            step: step of the best plan.
            start: state before the step.
            arms: motion planners by name of the arm.
            seed_name: name of the step in seeds.
        """
        best, scene, q = step, start.scene, start.q
        for number, segment in enumerate(step.segments):
            scene_after, q_after = segment.end(scene, q)
            if segment.kind in _SEARCHED_KINDS and len(segment.path) > 1:
                end, seed = _State(scene, q_after), self._seed(f"{seed_name} {number}")
                arm = arms[segment.arm]
                candidate = _replan_segment(step, number, arm, start=start, end=end, seed=seed)
                if candidate is not None:
                    segments = list(best.segments)
                    segments[number] = candidate
                    best = self._cheaper_step(best, replace(best, segments=tuple(segments)))
            scene, q = scene_after, q_after
        return best

    def _cheaper_step(self, best: PlanStep, candidate: PlanStep) -> PlanStep:
        """Return the candidate if it is better than the best step, else the best step."""
        is_better = _is_better(self.costs.objective(candidate), self.costs.objective(best))
        return candidate if is_better else best

    # --- Choices and skeletons ---

    def _resample_choices(self) -> tuple[PlanStep, ...] | None:
        """Refine the actions of the best plan again; return the steps, or None.

        Actions of arms that act at once are interleaved in another order.
        """
        return self._refine(self._interleave([step.action for step in self.best], is_shuffled=True))

    def _interleave(
        self, actions: Sequence[GroundAction], *, is_shuffled: bool
    ) -> tuple[GroundAction, ...]:
        """Return the actions in an order in which arms that act at once take turns."""
        if not self.context.options.arms_at_once:
            return tuple(actions)
        arms = [pddl_name(arm.name) for arm in self.context.robots]
        ranks = [*range(len(actions))]
        if is_shuffled:
            np.random.default_rng(self._seed("order")).shuffle(ranks)
        return interleave_agents(self.problem, actions, arms, ranks=ranks)

    def _try_other_skeleton(self) -> tuple[PlanStep, ...] | None:
        """Forbid an expensive action and refine another task plan; return the steps, or None."""
        context, log = self.context, self.log
        actions = self.latest_skeleton or tuple(step.action for step in self.best)
        states = validate_task_plan(self.problem, actions).states
        if self.latest_skeleton:
            costs = action_costs(self.problem, actions)
        else:
            costs = tuple(self.costs.objective(step)[0] for step in self.best)

        # Forbid an action in its state, the most expensive and last one first.
        order = sorted(range(len(actions)), key=lambda step: (-costs[step], -step))
        turn = (self.number // 3) % len(actions)
        index, previous_task = order[turn], self.task
        self.task = self.task.forbid(actions[index], tuple(states[index]))

        result = context.search(log, self.task)
        is_costlier = context.options.cost == "actions" and result.cost > self.best_objective[0]
        if result.status is not TaskPlanStatus.SOLVED or is_costlier:
            if turn:
                self.task = previous_task
            else:
                self.task, self.latest_skeleton = self.first_task, ()
            return None
        log.count_task_plan()
        self.latest_skeleton = result.steps
        return self._refine(self._interleave(result.steps, is_shuffled=False))

    def _refine(self, skeleton: tuple[GroundAction, ...]) -> tuple[PlanStep, ...] | None:
        """Return steps that carry out a skeleton and are better than the best plan, or None."""
        context, log = self.context, self.log
        costs = action_costs(self.problem, skeleton)

        def objective(index: int, step: PlanStep) -> Objective:
            cost, length = self.costs.objective(replace(step, cost=costs[index]))
            # action costs do not depend on motions, so the first step contributes all of them
            if context.options.cost == "actions":
                cost = step.value_cost + (0.0 if index else sum(costs))
            return cost, length

        limit, applies_per_arm = self.best_objective, context.options.cost == "makespan"
        # consecutive steps of an arm take less time than the sum of the single steps
        if applies_per_arm:
            objectives = [self.costs.objective(step) for step in self.best]
            limit = max(limit, busiest_arm_objective(self.best, objectives))
        attempts = _ATTEMPTS_PER_ACTION * len(skeleton)
        seed = self._seed("tree")
        outcome = refine_skeleton(
            skeleton,
            context.tree(replace(log, trees=[]), self.problem, self.domain, seed=seed),
            budget=RefinementBudget(attempts=attempts, width=_BRANCHING_WIDTH),
            monitor=RefinementMonitor(log.is_over),
            bound=CostBound(objective, limit, applies_per_arm),
            finish=context.arm_goal_motion(log.clock),
        )
        return None if outcome.steps is None else with_costs(self.problem, outcome.steps)


@dataclass(frozen=True, eq=False)
class _State:
    """Scene and configuration (n_joints,) between two motions."""

    scene: SceneGraph
    q: Configuration


def _replan_segment(
    step: PlanStep, number: int, arm: ArmMotionPlanner, *, start: _State, end: _State, seed: int
) -> Segment | None:
    """Return a segment with a newly planned path between the same configurations, or None.

    Args:
        step: step that contains the segment.
        number: index of the segment in the step.
        arm: motion planner of the arm.
        start: state before the step.
        end: scene during the segment, and configuration at its end.
        seed: seed of the path search.
    """
    segment, primitives = step.segments[number], arm.primitives
    near_pairs = primitives.near_pairs(start.scene, start.q)
    for release in step.segments:
        if release.kind is SegmentKind.RELEASE and release.reparenting is not None:
            pairs = primitives.reduced_margin_pairs_at_rest(
                start.scene, start.q, release.reparenting
            )
            near_pairs = (*near_pairs, *pairs)
    phase = primitives.phase(
        end.scene, near_pairs, contact_object=segment.held, constraints=segment.constraints
    )
    q_start = np.array(end.q)
    columns = arm.robot.joint_indices(end.scene)
    q_start[columns] = segment.path[0]
    try:
        path = primitives.plan_path(phase, q_start, end.q[None], seed=seed, label="improving")
    except PrimitiveFailedError:
        return None
    arm_path = np.array(path[:, columns])
    arm_path[0], arm_path[-1] = segment.path[0], segment.path[-1]
    return replace(segment, path=read_only(arm_path))
