"""Motions for the actions of a given task plan, and for the applicable actions of a scene.

Both functions are for planners outside this package. :func:`refine` is the continuous level of a
bilevel planner: it computes the motions of a skeleton, or the action without motions. The function
:func:`successors` is the transition function of a tree search or a learned policy: it expands a
scene version by all applicable actions. :func:`tmkit.plan` refines and expands by the same code.

Invariants: equal arguments give equal results; the time limit only ends a refinement. The state
derived from each new scene equals the state that PDDL predicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from tmkit._support.argument_errors import check_argument, with_keyword_hints
from tmkit._support.results import Result
from tmkit.errors import ConfigurationError, TaskError
from tmkit.graph import SceneGraph
from tmkit.motion.start_tolerances import clamp_to_limits
from tmkit.pddl import Fact, GroundAction, Problem, validate_task_plan
from tmkit.plans.failures import MotionFailure
from tmkit.plans.values import PlanStep
from tmkit.spatial.plain import read_only
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.diagnosis.diagnosis import PlanStatus
from tmkit.tamp.domains.action_costs import with_costs
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.search.refinement import (
    Cause,
    RefinementBudget,
    RefinementMonitor,
    RefinementOutcome,
    refine_skeleton,
)
from tmkit.tamp.version_tree import VersionTree


@dataclass(frozen=True)
class FailedAction:
    """Action of a skeleton without motions, and the facts on which its failures depend.

    ``skeletons.forbid(cause.action, cause.facts)`` excludes it from further skeletons
    (:class:`tmkit.task_planning.protocol.TaskPlans`).

    Attributes:
        action: the action.
        index: index of the action in the skeleton.
        facts: facts before the action that describe the places of the bodies in its way. All facts
            if these bodies are unknown; none if the failures are proved for every state.
        failures: failures of its attempts, in their order.
        is_proved: whether no state allows the action. Otherwise the limits of the attempts may be
            the cause, and the facts are an assumption.
    """

    action: GroundAction
    index: int
    facts: tuple[Fact, ...]
    failures: tuple[MotionFailure, ...]
    is_proved: bool = False

    def __str__(self) -> str:
        counts = Counter(map(str, self.failures)).most_common(1)
        reasons = [f"{count} of {len(self.failures)} attempts: {text}" for text, count in counts]
        return f"{self.action}: {reasons[0] if reasons else 'no attempt was made'}"


@dataclass(frozen=True, eq=False)
class RefinementResult(Result):
    """Motions for the actions of a skeleton, or the action without motions.

    Attributes:
        status: ``SOLVED`` with motions for all actions; ``PROVED_UNSOLVABLE`` if an action is
            proved to have none; ``NO_PLAN_WITHIN_LIMITS`` otherwise.
        steps: actions with their motions; empty without motions for all of them.
        cause: deepest action without motions, or None if all have motions.
        attempts: number of attempted motions.
    """

    status: PlanStatus
    steps: tuple[PlanStep, ...]
    cause: FailedAction | None
    attempts: int

    @property
    def is_solved(self) -> bool:
        """True if all actions have motions."""
        return self.status is PlanStatus.SOLVED

    def __repr__(self) -> str:
        end = f"{len(self.steps)} steps" if self.cause is None else str(self.cause)
        return f"RefinementResult({self.status.value}, {end}, {self.attempts} attempts)"


@dataclass(frozen=True, eq=False)
class Successor:
    """Applicable action with its motions, each of which leads to a new version of the scene.

    Attributes:
        action: the action.
        steps: the action with each of its motions, in the order of the domain's candidates. A step
            has the ``scene``, the configuration ``q`` and the ``cost``. Empty without a motion.
        failures: failures of the attempts before the last motion.
        is_impossible: whether the action is proved to have no motion in any state.
    """

    action: GroundAction
    steps: tuple[PlanStep, ...]
    failures: tuple[MotionFailure, ...]
    is_impossible: bool = False

    def __repr__(self) -> str:
        return f"Successor({self.action}, {len(self.steps)} steps, {len(self.failures)} failures)"


@with_keyword_hints
def refine(
    scene: SceneGraph,
    q: ArrayLike,
    skeleton: Sequence[GroundAction],
    domain: PlanningDomain,
    *,
    seed: int | None = None,
    options: PlanningOptions | None = None,
) -> RefinementResult:
    """Return motions for all actions of a task plan, or the action without motions.

    The search goes back to the steps that placed the bodies in the way of a failed action
    (conflict-directed backjumping), until the budgets are spent:
    :attr:`PlanningOptions.attempts_per_action` in one scene version and
    :attr:`PlanningOptions.samples_per_skeleton` in total.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration at the start [rad or m].
        skeleton: actions of the task plan.
        domain: loaded domain.
        seed: seed of all random numbers, at least 0. Defaults to that of the options.
        options: budgets, time limit, motion planner and samplers.

    Raises:
        ArgumentError: if an argument has another type.
        ConfigurationError: if ``q`` has the wrong length, or a joint is past a limit by more than
            ``start_limit_tolerance``.
        TaskError: if an action of the skeleton is not applicable, by PDDL.
        SceneError: if the domain's predicates cannot describe the scene.
        SemanticsMismatchError: if the domain's semantics contradict its PDDL.
    """
    context = _context(scene, q, domain, options, seed, function="refine")
    problem, options, log = context.problem, context.options, context.new_log()
    actions = tuple(skeleton)
    for action in actions:
        hint = "the steps of a plan have an attribute 'action'"
        check_argument(action, GroundAction, "skeleton", function="refine", hint=hint)
    validation = validate_task_plan(problem, actions)
    if not validation.is_valid:
        raise TaskError.at("skeleton", validation.message)
    attempts = options.search.attempts_per_action_of_plan * len(actions)
    budget = RefinementBudget(
        attempts_per_node=options.attempts_per_action,
        attempts=max(options.samples_per_skeleton, attempts),
    )
    with domain.attribute_errors("refinement", if_traced=True):
        tree = context.tree(log, problem, domain, seed=options.seed)
        monitor = RefinementMonitor(is_over=log.is_over)
        outcome = refine_skeleton(actions, tree, budget=budget, monitor=monitor)
        cause = _failed_action(outcome, actions, tree)
    if outcome.steps is not None:
        steps = with_costs(problem, outcome.steps)
        return RefinementResult(PlanStatus.SOLVED, steps, None, outcome.attempts)
    is_proved = cause is not None and cause.is_proved
    status = PlanStatus.PROVED_UNSOLVABLE if is_proved else PlanStatus.NO_PLAN_WITHIN_LIMITS
    return RefinementResult(status, (), cause, outcome.attempts)


@with_keyword_hints
def successors(
    scene: SceneGraph,
    q: ArrayLike,
    domain: PlanningDomain,
    *,
    actions: Iterable[GroundAction] | None = None,
    motions: int = 1,
    seed: int | None = None,
    options: PlanningOptions | None = None,
) -> Iterator[Successor]:
    """Yield the applicable actions of a scene with their first motions, one after another.

    The motions of an action are computed when its value is requested, by at most
    :attr:`PlanningOptions.attempts_per_action` attempts. Each depends on the scene, the
    configuration, the action and the seed alone.

    Args:
        scene: scene version.
        q: (n_joints,) configuration [rad or m].
        domain: loaded domain.
        actions: actions to expand. Defaults to all applicable actions, in the order of
            :meth:`tmkit.pddl.Problem.applicable_actions`.
        motions: largest number of motions of each action, at least 1.
        seed: seed of all random numbers, at least 0. Defaults to that of the options.
        options: budgets, motion planner and samplers. Time limits have no effect.

    Raises:
        ArgumentError: if an argument has another type.
        ConfigurationError: if ``motions`` is less than 1, ``q`` has the wrong length, or a joint is
            past a limit by more than ``start_limit_tolerance``.
        TaskError: if a given action is not applicable, by PDDL.
        SceneError: if the domain's predicates cannot describe the scene.
        SemanticsMismatchError: if the domain's semantics contradict its PDDL.
    """
    if motions < 1:
        raise ConfigurationError(f"successors(): motions must be at least 1, not {motions}")
    context = _context(scene, q, domain, options, seed, function="successors")
    problem = context.problem
    given_actions = problem.applicable_actions(problem.init) if actions is None else actions
    return _expand(context, given_actions, motions)


def _expand(
    context: PlanningContext, actions: Iterable[GroundAction], motions: int
) -> Iterator[Successor]:
    """Yield the successors of the start of a context by actions."""
    domain, options = context.domain, context.options
    tree = context.tree(SearchLog(np.inf), context.problem, domain, seed=options.seed)
    for action in actions:
        with domain.attribute_errors("successors", if_traced=True):
            expansion = tree.expansion(tree.root, action)
            while (
                len(expansion.children) < motions
                and expansion.attempts < options.attempts_per_action
                and not expansion.is_exhausted
            ):
                expansion.advance()
        child_steps = [child.step for child in expansion.children if child.step is not None]
        yield Successor(
            action,
            tuple(
                step
                for child_step in child_steps
                for step in with_costs(context.problem, [child_step])
            ),
            tuple(record.failure for record in expansion.failures),
            expansion.is_impossible,
        )


def _context(
    scene: SceneGraph,
    q: ArrayLike,
    domain: PlanningDomain,
    options: PlanningOptions | None,
    seed: int | None,
    *,
    function: str,
) -> PlanningContext:
    """Return the context of a start without a goal.

    Args:
        scene: scene at the start.
        q: (n_joints,) configuration at the start.
        domain: loaded domain.
        options: options, or None for the default ones.
        seed: seed that replaces that of the options.
        function: name of the caller, for messages.
    """
    check_argument(scene, SceneGraph, "scene", function=function)
    hint = "load it first: tmkit.tamp.load_planning_domain(name, ...)"
    check_argument(domain, PlanningDomain, "domain", function=function, hint=hint)
    options = PlanningOptions() if options is None else options
    check_argument(options, PlanningOptions, "options", function=function)
    if seed is not None:
        options = replace(options, seed=seed)
    joints = {joint for arm in domain.robots for joint in (*arm.joints, *arm.gripper_joints)}
    tolerance = options.start_limit_tolerance
    start = read_only(clamp_to_limits(scene, q, joints=joints, tolerance=tolerance))
    problem: Problem = domain.problem(scene, start)
    return PlanningContext(
        scene,
        start,
        robots=domain.robots,
        domain=domain,
        problem=problem,
        options=options,
        goal=str(problem.goal),
        run_data=domain.run_data,
    )


def _failed_action(
    outcome: RefinementOutcome, skeleton: tuple[GroundAction, ...], tree: VersionTree
) -> FailedAction | None:
    """Return the action that ended a refinement, with the facts on which its failures depend."""
    if outcome.impossible is not None:
        action = outcome.impossible
        records = [entry for entries in tree.log.records.values() for entry in entries]
        failures = tuple(entry.failure for entry in records if entry.action == action)
        return FailedAction(action, skeleton.index(action), (), failures, is_proved=True)
    cause = outcome.cause
    if outcome.steps is not None or cause is None:
        return None
    facts = _conflict_facts(cause, tree.domain)
    failures = tuple(record.failure for record in outcome.records)
    return FailedAction(cause.action, len(outcome.path) - 1, facts, failures)


def _conflict_facts(cause: Cause, domain: PlanningDomain) -> tuple[Fact, ...]:
    """Return the facts on which the failures of an action depend, sorted."""
    state, excluded = cause.version.state, domain.probabilistic_predicates
    facts: Iterable[Fact] = state
    if cause.frames is not None:
        facts = domain.semantics.conflict_facts(cause.frames, state, cause.version.scene)
        excluded |= domain.stored_predicates
    return tuple(
        sorted({fact for fact in facts if fact in state and fact.predicate not in excluded})
    )
