"""One planning run: the search for a plan, its improvement, and the explanation where there is none.

The search (:mod:`tmkit.tamp.search`) ends with a plan, a proof or at a limit. Part of the time is
kept for the explanation: causes, and changes that would help.

Invariants: equal arguments give equal results, unless the time limit ends the search; it only
    stops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace

from tmkit._support.argument_errors import callable_name
from tmkit._support.time_limits import time_limit
from tmkit.errors import TaskError, TimeLimitError
from tmkit.formats.visual_only import visual_only_frames, visual_only_warning
from tmkit.manipulation.actions.timing_breakdown import PlanningStage
from tmkit.manipulation.samplers import sample_grasps, sample_placements
from tmkit.pddl import Problem, State
from tmkit.pddl.model import FrozenMapping
from tmkit.plans.values import Plan, PlanStep
from tmkit.robots import movable_frames
from tmkit.robots.mechanisms import moved_frames
from tmkit.tamp.anytime import Improvement, with_costs
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.diagnosis.collect import diagnose_actions, find_goal_conflict, merged_constraints
from tmkit.tamp.diagnosis.diagnosis import Diagnosis, PlanStatus, SearchEnd
from tmkit.tamp.diagnosis.explanation import explain
from tmkit.tamp.domains.infeasibility import Infeasibility, necessary_facts
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.geometric_causes import find_causes
from tmkit.tamp.result import PlanResult, PlanStatistics
from tmkit.tamp.search.blocked_clutter import prove_blocked_clutter
from tmkit.tamp.search.stages import FoundPlan, find_plan
from tmkit.tamp.search_tree import SearchTree, build_search_trees
from tmkit.tamp.suggestions import find_suggestions
from tmkit.tamp.validation.prune_observations import prune_observations


def run_search(context: PlanningContext) -> PlanResult:
    """Plan, first with the useful objects of the scene, then, should these not do, with all.

    A result without a plan has suggestions, as far as the remaining time allows; of a goal that is
    proved infeasible the proof names what is too much.
    """
    log = context.new_log()
    try:
        with time_limit(context.options.seconds - log.seconds):
            status, steps = _found(context, log)
    except TimeLimitError:
        status, steps = PlanStatus.NO_PLAN_WITHIN_LIMITS, None
    result = _result(context, log, status, steps)
    options = context.options
    if result.is_solved or not options.suggest or log.infeasibilities:
        return result
    seconds = min(options.seconds_to_explain, options.seconds - log.seconds)
    suggestions, replans = find_suggestions(
        context, log, result.diagnosis, replan=run_search, seconds=seconds
    )
    diagnosis = replace(result.diagnosis, suggestions=suggestions, replans=replans)
    explanation = _explanation(context, result.status, diagnosis, plan=None)
    return replace(result, diagnosis=diagnosis, explanation=explanation)


def _found(
    context: PlanningContext, log: SearchLog
) -> tuple[PlanStatus, tuple[PlanStep, ...] | None]:
    with log.clock.phase(PlanningStage.SEMANTICS):
        is_proved = log.note_proofs(_infeasibilities(context))
        useful = context.domain.semantics.relevant_objects(context.scene, context.q)
        restricted = _restricted(
            context, context.domain.require_type("relevant_objects", useful, Collection)
        )
    if is_proved:
        return PlanStatus.PROVED_UNSOLVABLE, None
    with time_limit(log.seconds_to_search - log.seconds):
        status, found = find_plan(context, log, restricted)
    return status, None if found is None else _finished(context, log, found)


def _infeasibilities(context: PlanningContext) -> tuple[Infeasibility, ...]:
    """Return why the goal is impossible, where it does not hold already and the domain can prove that it is."""
    if context.problem.holds(context.problem.init, context.problem.goal):
        return ()
    domain = context.domain
    found = domain.semantics.infeasibilities(necessary_facts(context.problem), context.scene)
    found = [
        domain.require_type("infeasibilities", p, Infeasibility)
        for p in domain.require_type("infeasibilities", found, Iterable)
    ]
    proofs = tuple(proof for proof in found if not _may_be_otherwise(context, proof))
    return proofs or tuple(filter(None, [prove_blocked_clutter(context)]))


def _may_be_otherwise(context: PlanningContext, proof: Infeasibility) -> bool:
    """Return whether samplers of the user sample the grasps or placements that a proof is about, which it cannot."""
    scene, samplers = context.scene, context.sampling.samplers
    held = proof.ungraspable
    return (held is not None and samplers.grasp_sampler(scene, held) is not sample_grasps) or any(
        samplers.placement_sampler(scene, object, support) is not sample_placements
        for object in proof.upright
        for support in proof.frames
    )


def _restricted(context: PlanningContext, useful: Collection[str]) -> Problem | None:
    """Return the task without the objects that are of no use, unless its goal speaks of one."""
    if all(name in useful for name in context.problem.objects):
        return None
    objects = FrozenMapping(
        (name, types) for name, types in context.problem.objects.items() if name in useful
    )
    known = {*objects, *(constant.name for constant in context.problem.domain.constants)}
    init = State(fact for fact in context.problem.init if known.issuperset(fact.arguments))
    said = (
        (term, value)
        for term, value in context.problem.values.items()
        if set(term.arguments) <= known
    )
    try:
        return replace(context.problem, objects=objects, init=init, values=FrozenMapping(said))
    except TaskError:
        return None


def _finished(context: PlanningContext, log: SearchLog, found: FoundPlan) -> tuple[PlanStep, ...]:
    """Return the steps of the plan: improved, without redundant observations, and with the actions of the domain."""
    log.extend_search(context.options.seconds)
    problem, domain = found.problem, context.domain
    steps, iterations = with_costs(problem, found.steps), context.options.improve
    if iterations != 0:
        steps = Improvement(context, log, problem, domain, found.task, steps).improve(iterations)
    with suppress(TimeLimitError), log.clock.phase(PlanningStage.SEMANTICS):
        steps = prune_observations(steps, context.scene, context.q, problem=problem, domain=domain)
    return context.plan_of(steps, domain).steps


def _result(
    context: PlanningContext, log: SearchLog, status: PlanStatus, steps: tuple[PlanStep, ...] | None
) -> PlanResult:
    total = log.seconds
    phases = log.clock.seconds
    task_seconds = phases[PlanningStage.TASK.value]
    statistics = PlanStatistics(
        skeletons=log.skeletons,
        attempts=log.failures.attempts,
        failures=log.failures.most_common(),
        constraints=len(log.constraints),
        task_seconds=task_seconds,
        motion_seconds=total - task_seconds,
        total_seconds=total,
        phase_seconds={**phases, "bookkeeping": total - sum(phases.values())},
        task_planner=callable_name(getattr(context.task_planner, "planner", context.task_planner)),
        task_search=", ".join(log.searches),
    )
    made = None if steps is None else context.plan_of(steps)
    diagnosis = _diagnosis(context, log, status)
    explanation = _explanation(context, status, diagnosis, plan=made)
    trees: tuple[SearchTree, ...] = ()
    if context.options.record_tree:
        trees = build_search_trees(log.trees, log.nodes, end=log.end)
    return PlanResult(status, made, explanation, statistics, diagnosis, trees)


def _explanation(
    context: PlanningContext, status: PlanStatus, diagnosis: Diagnosis, *, plan: Plan | None
) -> str:
    """Return the answer in words, with the links of the arms that were not checked for collision."""
    explanation = explain(status, diagnosis, goal=context.goal_text, plan=plan)
    visual_only = visual_only_frames(
        context.scene, moved_frames(context.scene, *context.manipulators)
    )
    return (
        f"{explanation}\nNot checked: {visual_only_warning(visual_only)}."
        if visual_only
        else explanation
    )


def _diagnosis(context: PlanningContext, log: SearchLog, status: PlanStatus) -> Diagnosis:
    conflict = None
    ended_by, limit = _ending(context, log, status)
    if status is PlanStatus.PROVED_UNSOLVABLE and not log.infeasibilities:
        with suppress(TimeLimitError), time_limit(log.seconds_left()):
            conflict = find_goal_conflict(context.problem, time_limit=log.seconds_left())
    causes: tuple[str, ...] = ()
    if status is PlanStatus.NO_PLAN_WITHIN_LIMITS and context.finds_causes:
        roots = [tree.root for tree in log.trees]
        arms, sampling = context.arms(log.clock, 0), context.sampling
        named = {
            argument for fact in necessary_facts(context.problem) for argument in fact.arguments
        }
        goal_objects = [
            frame for frame in movable_frames(context.scene) if pddl_name(frame) in named
        ]

        def is_over() -> bool:
            return log.seconds > context.options.seconds

        causes = find_causes(
            roots,
            log=log.failures,
            arms=arms,
            sampling=sampling,
            seed=context.options.seed,
            is_over=is_over,
            goal_objects=goal_objects,
        )
    return Diagnosis(
        actions=diagnose_actions(log.failures, context.manipulators),
        constraints=merged_constraints(log.constraints),
        conflict=conflict,
        proofs=tuple(proof.cause for proof in log.infeasibilities),
        iterations=log.iterations,
        skeletons=log.skeletons,
        attempts=log.failures.attempts,
        causes=causes,
        ended_by=ended_by,
        limit=limit,
    )


def _ending(
    context: PlanningContext, log: SearchLog, status: PlanStatus
) -> tuple[SearchEnd | None, float | None]:
    """Return what ended a search without an answer, with the limit where it was one."""
    if status is not PlanStatus.NO_PLAN_WITHIN_LIMITS:
        return None, None
    if log.is_over():
        return SearchEnd.TIME_LIMIT, context.options.seconds
    if context.is_at_limit(log):
        return SearchEnd.ITERATION_LIMIT, context.options.max_iterations
    return SearchEnd.EXHAUSTED, None
