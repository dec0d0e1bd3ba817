"""Task plans from the root of a search, under all learned constraints.

The core's search comes first, then the task planner of the options. Redundant actions are removed,
and with several arms the actions are distributed between them.

Invariants: results depend only on the task, the constraints and the iteration; the time limit only
ends the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tmkit._support.elementary import norm
from tmkit.manipulation.actions.timing_breakdown import PlanningStage
from tmkit.pddl import GroundAction, Problem, State
from tmkit.pddl.validation import balance_loads, interleave_agents
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.search.arrangements import Arrangements
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.task_planning import FastDownward, TaskPlanResult, TaskPlanStatus
from tmkit.task_planning.protocol import PreparedTask
from tmkit.task_planning.sas import Values
from tmkit.task_planning.schedule import without_redundant_steps

_DISTRIBUTION_ITERATIONS = 2
"""Number of first iterations in which actions are distributed between arms by distance."""


@dataclass(frozen=True)
class RootPlan:
    """Result of a search for a task plan from the root.

    Attributes:
        operators: operators of the plan; None without a plan.
        is_unsolvable: whether it is proved that no plan satisfies all constraints.
    """

    operators: tuple[int, ...] | None
    is_unsolvable: bool = False


class RootPlanner:
    """Source of task plans from the root, which caches the plan of the current constraints.

    Args:
        context: settings of the run.
        log: log of the run.
        problem: PDDL problem, with all objects or the useful ones.
        task: the same problem, prepared by the task planner.
        guide: the same problem under learned constraints.
        values: state of the root.
        arrangements: arrangements of regions, which reorder the plans.
    """

    def __init__(
        self,
        context: PlanningContext,
        log: SearchLog,
        problem: Problem,
        task: PreparedTask,
        guide: TaskGuide,
        values: Values,
        arrangements: Arrangements,
    ) -> None:
        self._context, self._log, self._problem = context, log, problem
        self._task, self._guide, self._values = task, guide, values
        self._arrangements = arrangements
        self._plans: dict[int, RootPlan] = {}

    def plan(self, iteration: int) -> RootPlan:
        """Return a task plan under all constraints.

        Args:
            iteration: number of the iteration of the search, from 0.
        """
        version = self._guide.version
        if version not in self._plans:
            with self._log.clock.phase(PlanningStage.TASK):
                plan = self._search(iteration)
                if plan.operators is not None:
                    plan = RootPlan(self._arrangements.reorder(plan.operators))
                self._plans = {version: plan}
        return self._plans[version]

    def clear(self) -> None:
        """Clear the cache, after arrangements changed."""
        self._plans.clear()

    def _search(self, iteration: int) -> RootPlan:
        """Search with the core first, and then with the task planner of the options."""
        guide, context = self._guide, self._context
        if context.task_planner == FastDownward():
            context.report(self._log, "task", 0, 0)
            plan = guide.first_plan(self._values)
            if plan is not None:
                self._log.note_search("core")
                actions = [guide.actions[operator] for operator in plan]
                return RootPlan(self._find_operators(actions, iteration))
            if guide.is_unsolvable_under_constraints(self._values):
                return RootPlan(None, is_unsolvable=True)
            if not all(constraint.is_proved for constraint in guide.constraints):
                # Without the other constraints a plan may exist, and is found sooner.
                return RootPlan(None)
        result = context.search(self._log, self._constrain_task())
        if not result.is_solved:
            return RootPlan(None, is_unsolvable=result.status is TaskPlanStatus.UNSOLVABLE)
        return RootPlan(self._find_operators(self._remove_redundant(result), iteration))

    def _constrain_task(self) -> PreparedTask:
        """Return the task of the task planner with the constraints that have a context."""
        task, guide = self._task, self._guide
        for constraint in guide.constraints:
            if constraint.limit != len(constraint.facts) - 1:
                continue
            facts = [
                fact for pair in constraint.facts if (fact := guide.task.fact_of(pair)) is not None
            ]
            actions = dict.fromkeys(guide.actions[operator] for operator in constraint.operators)
            for action in actions:
                task = task.forbid(action, facts)
        return task

    def _remove_redundant(self, result: TaskPlanResult) -> tuple[GroundAction, ...]:
        """Return the actions of a task plan without redundant ones."""
        is_allowed = self._is_allowed if self._guide.constraints else None
        return without_redundant_steps(self._problem, result.steps, is_allowed=is_allowed)

    def _is_allowed(self, action: GroundAction, state: State) -> bool:
        """Return whether the constraints allow an action in a state."""
        values = self._guide.values(state)
        return any(
            self._guide.is_applicable(operator, values)
            for operator in self._guide.operators_by_action[action]
        )

    def _find_operators(self, actions: Sequence[GroundAction], iteration: int) -> tuple[int, ...]:
        """Return the operators of a task plan, with arms in turns if they act in parallel.

        Args:
            actions: actions of the plan.
            iteration: number of the iteration of the search. Late iterations keep the task
                planner's choice of arms.
        """
        guide, values, context = self._guide, self._values, self._context
        if context.options.arms_at_once:
            arms = [pddl_name(arm.name) for arm in context.robots]
            if iteration < _DISTRIBUTION_ITERATIONS:
                actions = balance_loads(
                    self._problem,
                    tuple(actions),
                    arms,
                    is_allowed=self._is_allowed,
                    effort=self._distance,
                )
            actions = interleave_agents(
                self._problem, tuple(actions), arms, is_allowed=self._is_allowed
            )
        operators: list[int] = []
        for action in actions:
            operator = next(
                n for n in guide.operators_by_action[action] if guide.is_applicable(n, values)
            )
            operators.append(operator)
            values = guide.apply(operator, values)
        return tuple(operators)

    def _distance(self, actions: Sequence[GroundAction], arm: str) -> float:
        """Return the sum of the distances from an arm's base to all frames of actions [m].

        Args:
            actions: actions whose arguments are frames.
            arm: PDDL name of the arm.
        """
        scene, q = self._context.scene, self._context.q
        bases = {pddl_name(robot.name): robot.base for robot in self._context.robots}
        names = {name for action in actions for name in action.arguments if name not in bases}
        frames = [frame for frame in scene.frame_names if pddl_name(frame) in names]
        return sum(
            round(norm(scene.pose(bases[arm], relative_to=frame, q=q).translation), 6)
            for frame in frames
        )
