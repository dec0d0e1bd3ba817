"""Improving a plan that was found: the same goal with cheaper actions and shorter paths, as long as one likes.

Three kinds of iterations take turns (docs/reference/planning.md): searched *paths* are searched
again; *choices* of grasps, placements and configurations are drawn anew. Other *skeletons* are
found by forbidding one action at a time, the dearest and last first. A plan is better if it costs
less (:mod:`tmkit.tamp.costs`) or, at equal cost, if its paths are shorter; branch and bound with
the best plan as the bound.

Invariants: what is kept is never worse than what was there before; for a fixed number of iterations
the result depends on the arguments of the run alone; a time limit only stops.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from tmkit.errors import TimeLimitError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.pddl import GroundAction, Problem, validate_task_plan
from tmkit.pddl.model import Metric
from tmkit.pddl.validation import by_turns
from tmkit.plans.failures import PrimitiveFailedError
from tmkit.plans.schedule import Schedule
from tmkit.plans.values import Configuration, PlanStep, Segment, SegmentKind
from tmkit.spatial.plain import read_only
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.costs import CostBound, StepCosts, Worth, busiest
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.progress import ImprovementProgress
from tmkit.tamp.search.refinement import RefinementBudget, refine_skeleton
from tmkit.task_planning import TaskPlanStatus
from tmkit.task_planning.protocol import PreparedTask

_logger = logging.getLogger(__name__)

_SEARCHED = (SegmentKind.TRANSIT, SegmentKind.TRANSFER)
_ATTEMPTS_PER_IMPROVED_ACTION = 12
"""Attempts for each action of a skeleton that may be better: fewer than for a first plan, which is needed."""

_LEAST_GAIN = 1e-9  # of cost or length; less is rounding
_WIDTH = 3  # motions of an action of which the cheapest is tried first


def with_costs(problem: Problem, steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """Return the steps with the costs of their actions in the problem's metric."""
    costs = _action_costs(problem, [step.action for step in steps])
    return tuple(replace(step, cost=cost) for step, cost in zip(steps, costs, strict=True))


def _action_costs(problem: Problem, actions: Sequence[GroundAction]) -> tuple[float, ...]:
    if problem.metric is not Metric.TOTAL_COST:
        return (1.0,) * len(actions)
    return validate_task_plan(problem, actions).costs


def _is_better(worth: Worth, other: Worth) -> bool:
    """Return whether a cost and length are less than others, by more than rounding."""
    gain = other[0] - worth[0]
    return gain > _LEAST_GAIN or (gain >= 0.0 and worth[1] < other[1] - _LEAST_GAIN)


class Improvement:
    """The iterations after the first plan of a run; ``task`` is prepared, without what was learned."""

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
        self.problem, self.domain, self.first_task, self.task = problem, domain, task, task
        self.costs = StepCosts(
            context.options.cost, context.scene, context.manipulators, domain.stated, self._makespan
        )
        self.best, self.worth = steps, self.costs.total(steps)
        # what the task planner found last, if not the actions of the best
        self.tried: tuple[GroundAction, ...] = ()
        self.number = 0

    def improve(self, iterations: int | None) -> tuple[PlanStep, ...]:
        """Go on for so many iterations, or until the time is up; return the best plan."""
        self._tell(iterations)
        kinds = (self._paths, self._choices, self._skeletons)
        with suppress(TimeLimitError):
            while (
                self.best
                and (iterations is None or self.number < iterations)
                and not self.log.is_over()
            ):
                self.costs.forget()
                found = kinds[self.number % len(kinds)]()
                self.number += 1
                if found is not None and _is_better(worth := self.costs.total(found), self.worth):
                    self.best, self.worth = found, worth
                    self._tell(iterations)
        return self.best

    def _makespan(self, steps: Sequence[PlanStep]) -> float:
        plan = self.context.plan_of(tuple(steps), self.domain)
        if not self.context.options.arms_at_once:
            return Schedule.of(plan).makespan
        from tmkit.tamp.scheduling import shortest_schedule  # most runs need none

        return shortest_schedule(plan).makespan

    def _tell(self, iterations: int | None) -> None:
        context, log = self.context, self.log
        cost, length = self.worth
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

    def _seed(self, what: str) -> int:
        """Return a seed of this iteration."""
        text = f"improvement {self.context.options.seed} {self.number} {what}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "little") >> 1

    # --- paths
    # ----------------------------------------------------------------------------------------------------

    def _paths(self) -> tuple[PlanStep, ...] | None:
        """Return the plan with better paths, where any were found."""
        context, log = self.context, self.log
        arms = context.arms(log.clock, 0)
        steps: list[PlanStep] = []
        scene, q = context.scene, context.q
        for number, step in enumerate(self.best):
            if log.is_over():
                return None
            steps.append(self._with_better_paths(step, scene, q, arms, f"step {number}"))
            scene, q = step.scene, step.q
        return tuple(steps)

    def _with_better_paths(
        self,
        step: PlanStep,
        scene: SceneGraph,
        q: Configuration,
        arms: dict[str, ArmMotionPlanner],
        where: str,
    ) -> PlanStep:
        best, at_scene, at_q = step, scene, q
        for number, segment in enumerate(step.segments):
            end_scene, end_q = segment.end(at_scene, at_q)
            arm = arms[segment.arm]
            if segment.kind in _SEARCHED and len(segment.path) > 1:
                other = self._searched_again(
                    arm, step, number, (scene, q), (at_scene, end_q), f"{where} {number}"
                )
                if other is not None:
                    segments = (*best.segments[:number], other, *best.segments[number + 1 :])
                    tried = replace(best, segments=segments)
                    best = (
                        tried
                        if _is_better(self.costs.worth(tried), self.costs.worth(best))
                        else best
                    )
            at_scene, at_q = end_scene, end_q
        return best

    def _searched_again(
        self,
        arm: ArmMotionPlanner,
        step: PlanStep,
        number: int,
        before: tuple[SceneGraph, Configuration],
        end: tuple[SceneGraph, Configuration],
        where: str,
    ) -> Segment | None:
        """Return a segment with another path, between the same configurations; None when none was found."""
        segment, primitives = step.segments[number], arm.primitives
        scene, q_end = end
        near = primitives.near_pairs(*before)
        for other in step.segments:
            if other.kind is SegmentKind.RELEASE and other.reparenting is not None:
                near = (*near, *primitives.reduced_margin_pairs_at_rest(*before, other.reparenting))
        phase = primitives.phase(
            scene, near, contact_object=segment.held, constraints=segment.constraints
        )
        start = np.array(q_end)
        entries = arm.manipulator.joint_indices(scene)
        start[entries] = segment.path[0]
        try:
            path = primitives.plan_path(
                phase, start, q_end[None], seed=self._seed(where), label="improving"
            )
        except PrimitiveFailedError:
            return None
        arm_path = np.array(path[:, entries])
        arm_path[0], arm_path[-1] = segment.path[0], segment.path[-1]
        return replace(segment, path=read_only(arm_path))

    # --- choices and skeletons
    # ------------------------------------------------------------------------------------

    def _choices(self) -> tuple[PlanStep, ...] | None:
        """Return the same actions with other choices, when that is better; arms at once in another order."""
        return self._refined(self._by_turns([step.action for step in self.best], is_shuffled=True))

    def _by_turns(
        self, actions: Sequence[GroundAction], *, is_shuffled: bool
    ) -> tuple[GroundAction, ...]:
        """Return actions in an order in which the arms take turns, where they act at once."""
        if not self.context.options.arms_at_once:
            return tuple(actions)
        arms = [pddl_name(arm.name) for arm in self.context.manipulators]
        ranks = [*range(len(actions))]
        if is_shuffled:
            np.random.default_rng(self._seed("order")).shuffle(ranks)
        return by_turns(self.problem, actions, arms, ranks=ranks)

    def _skeletons(self) -> tuple[PlanStep, ...] | None:
        """Return other actions, when they can be carried out and are better."""
        context, log = self.context, self.log
        actions = self.tried or tuple(step.action for step in self.best)
        states = validate_task_plan(self.problem, actions).states
        costs = _action_costs(self.problem, actions)
        if not self.tried:
            costs = tuple(self.costs.worth(step)[0] for step in self.best)
        dearest_last_first = sorted(range(len(actions)), key=lambda step: (-costs[step], -step))
        turn = (self.number // 3) % len(actions)
        index, before = dearest_last_first[turn], self.task
        self.task = self.task.forbid(actions[index], tuple(states[index]))
        found = context.search(log, self.task)
        is_dearer = context.options.cost == "actions" and found.cost > self.worth[0]
        if found.status is not TaskPlanStatus.SOLVED or is_dearer:
            self.task, self.tried = (before, self.tried) if turn else (self.first_task, ())
            return None
        log.count_task_plan()
        self.tried = found.steps
        return self._refined(self._by_turns(found.steps, is_shuffled=False))

    def _refined(self, skeleton: tuple[GroundAction, ...]) -> tuple[PlanStep, ...] | None:
        context, log = self.context, self.log
        costs = _action_costs(self.problem, skeleton)

        def worth(index: int, step: PlanStep) -> Worth:
            cost, length = self.costs.worth(replace(step, cost=costs[index]))
            # known beforehand, so the first step has them all
            if context.options.cost == "actions":
                cost = 0.0 if index else sum(costs)
            return cost, length

        limit, is_of_each_arm = self.worth, context.options.cost == "makespan"
        # the steps of an arm follow each other in less time than they take one by one
        if is_of_each_arm:
            limit = max(limit, busiest(self.best, [self.costs.worth(step) for step in self.best]))
        outcome = refine_skeleton(
            skeleton,
            context.tree(
                replace(log, trees=[]), self.problem, self.domain, seed=self._seed("tree")
            ),
            budget=RefinementBudget(
                attempts=_ATTEMPTS_PER_IMPROVED_ACTION * len(skeleton), width=_WIDTH
            ),
            is_over=log.is_over,
            bound=CostBound(worth, limit, is_of_each_arm),
            finish=context.finish(log.clock),
        )
        return None if outcome.steps is None else with_costs(self.problem, outcome.steps)
