"""Planning run: search for a plan, its improvement, and the explanation of a failure.

The search (:mod:`tmkit.tamp.search`) ends with a plan, with a proof of infeasibility, or at a
limit. Part of the time is reserved for the explanation, which has causes and suggestions.

Equal arguments give equal results unless the time limit ends the search.
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
from tmkit.tamp.anytime import Improvement
from tmkit.tamp.context import PlanningContext, SearchLog
from tmkit.tamp.diagnosis.collect import diagnose_actions, find_goal_conflict, merge_constraints
from tmkit.tamp.diagnosis.diagnosis import Diagnosis, PlanStatus, SearchEnd
from tmkit.tamp.diagnosis.explanation import explain
from tmkit.tamp.domains.action_costs import with_costs
from tmkit.tamp.domains.infeasibility import Infeasibility, necessary_facts
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.geometric_causes import find_causes
from tmkit.tamp.result import PlanResult, PlanStatistics
from tmkit.tamp.search.blocked_clutter import prove_blocked_clutter
from tmkit.tamp.search.stages import FoundPlan, find_plan
from tmkit.tamp.search_tree import SearchTree, build_search_trees
from tmkit.tamp.streams.records import sum_uses
from tmkit.tamp.streams.samples import SampleTable
from tmkit.tamp.suggestions import find_suggestions
from tmkit.tamp.validation.prune_observations import prune_observations
from tmkit.task_planning import FastDownward


def run_search(context: PlanningContext) -> PlanResult:
    """Plan with the relevant objects of the scene, and with all objects if these do not suffice.

    A result without a plan has suggestions, within the remaining time. A goal that the domain
    proves infeasible has a proof instead.
    """
    log = context.new_log()
    try:
        with time_limit(context.options.seconds - log.seconds):
            status, steps = _search(context, log)
    except TimeLimitError:
        status, steps = PlanStatus.NO_PLAN_WITHIN_LIMITS, None
    result = _build_result(context, log, status, steps)
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


def _search(
    context: PlanningContext, log: SearchLog
) -> tuple[PlanStatus, tuple[PlanStep, ...] | None]:
    """Search for a plan and improve it; return the outcome and the steps."""
    with log.clock.phase(PlanningStage.SEMANTICS):
        is_proved = log.note_proofs(_prove_infeasible(context))
        relevant = context.domain.semantics.relevant_objects(context.scene, context.q)
        restricted = _restrict_problem(
            context.problem, context.domain.require_type("relevant_objects", relevant, Collection)
        )
    if is_proved:
        return PlanStatus.PROVED_UNSOLVABLE, None
    with time_limit(log.seconds_to_search - log.seconds):
        status, first_plan = find_plan(context, log, restricted)
    return status, None if first_plan is None else _improve(context, log, first_plan)


def _prove_infeasible(context: PlanningContext) -> tuple[Infeasibility, ...]:
    """Return proofs that the goal is impossible; empty if it holds at the start."""
    if context.problem.holds(context.problem.init, context.problem.goal):
        return ()
    domain, method = context.domain, "infeasibilities"
    facts = necessary_facts(context.problem)
    claims = domain.require_type(
        method, domain.semantics.infeasibilities(facts, context.scene), Iterable
    )

    proofs = [domain.require_type(method, claim, Infeasibility) for claim in claims]
    valid_proofs = tuple(proof for proof in proofs if not _has_user_sampler(context, proof))
    if valid_proofs:
        return valid_proofs
    clutter_proof = prove_blocked_clutter(context)
    return () if clutter_proof is None else (clutter_proof,)


def _has_user_sampler(context: PlanningContext, proof: Infeasibility) -> bool:
    """Return whether a proof is about grasps or placements of a user's sampler.

    Such a proof is invalid, since it assumes the built-in samplers.
    """
    scene, samplers, object = context.scene, context.sampling.samplers, proof.ungraspable
    if object is not None and samplers.grasp_sampler(scene, object) is not sample_grasps:
        return True
    return any(
        samplers.placement_sampler(scene, object, support) is not sample_placements
        for object in proof.upright
        for support in proof.frames
    )


def _restrict_problem(problem: Problem, relevant: Collection[str]) -> Problem | None:
    """Return the problem with its relevant objects alone.

    The result is None if all objects are relevant, or the goal contains an irrelevant one.
    """
    if all(name in relevant for name in problem.objects):
        return None
    objects = FrozenMapping(
        (name, types) for name, types in problem.objects.items() if name in relevant
    )
    names = {*objects, *(constant.name for constant in problem.domain.constants)}
    init = State(fact for fact in problem.init if names.issuperset(fact.arguments))
    values = FrozenMapping(
        (term, value) for term, value in problem.values.items() if names.issuperset(term.arguments)
    )
    try:
        restricted = replace(problem, objects=objects, init=init, values=values)
    except TaskError:
        return None
    return restricted.with_source(problem.source)


def _improve(
    context: PlanningContext, log: SearchLog, first_plan: FoundPlan
) -> tuple[PlanStep, ...]:
    """Return the steps of the plan after improvement.

    Redundant observations are removed, and actions are converted to those of the domain.
    """
    log.extend_search(context.options.seconds)
    problem, domain = first_plan.problem, context.domain
    steps, iterations = with_costs(problem, first_plan.steps), context.options.improve
    if iterations != 0:
        improvement = Improvement(context, log, problem, domain, first_plan.task, steps)
        steps = improvement.improve(iterations)
    with suppress(TimeLimitError), log.clock.phase(PlanningStage.SEMANTICS):
        steps = prune_observations(steps, context.scene, context.q, problem=problem, domain=domain)
    return context.plan_of(steps, domain).steps


def _build_result(
    context: PlanningContext, log: SearchLog, status: PlanStatus, steps: tuple[PlanStep, ...] | None
) -> PlanResult:
    """Return the result of a run, without suggestions."""
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
    plan = None if steps is None else context.plan_of(steps)
    diagnosis = _diagnose(context, log, status)
    explanation = _explanation(context, status, diagnosis, plan=plan)
    trees: tuple[SearchTree, ...] = ()
    if context.options.record_tree:
        trees = build_search_trees(log.trees, log.nodes, end=log.end)
    trials = tuple(trial for table in _sample_tables(context) for trial in table.trials)
    return PlanResult(status, plan, explanation, statistics, diagnosis, trees, trials)


def _sample_tables(context: PlanningContext) -> list[SampleTable]:
    """Return the samples of the streams of a run, one table for each seed."""
    return [table for table in context.run_data.values() if isinstance(table, SampleTable)]


def _explanation(
    context: PlanningContext, status: PlanStatus, diagnosis: Diagnosis, *, plan: Plan | None
) -> str:
    """Return the explanation as text, with the links of the arms that have no collision shapes."""
    explanation = explain(status, diagnosis, goal=context.goal_text, plan=plan)
    arm_frames = moved_frames(context.scene, *context.robots)
    visual_only = visual_only_frames(context.scene, arm_frames)
    if visual_only:
        explanation += f"\nNot checked: {visual_only_warning(visual_only)}."
    return explanation


def _diagnose(context: PlanningContext, log: SearchLog, status: PlanStatus) -> Diagnosis:
    """Return the failures of a run, and their causes if there is no plan."""
    conflict = None
    proofs = tuple(proof.cause for proof in log.infeasibilities)
    search_end, limit = _search_end(context, log, status)
    if status is PlanStatus.PROVED_UNSOLVABLE and not proofs:
        proofs = _find_defeating_actions(context.problem, log.seconds_left())
    if status is PlanStatus.PROVED_UNSOLVABLE and not proofs:
        with suppress(TimeLimitError), time_limit(log.seconds_left()):
            conflict = find_goal_conflict(context.problem, time_limit=log.seconds_left())
    causes: tuple[str, ...] = ()
    if status is PlanStatus.NO_PLAN_WITHIN_LIMITS and context.finds_causes:
        roots = [tree.root for tree in log.trees]
        arms, sampling = context.arms(log.clock, 0), context.sampling
        facts = necessary_facts(context.problem)
        goal_names = {argument for fact in facts for argument in fact.arguments}
        goal_objects = [
            frame for frame in movable_frames(context.scene) if pddl_name(frame) in goal_names
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
        actions=diagnose_actions(log.failures, context.robots),
        constraints=merge_constraints(log.constraints),
        conflict=conflict,
        proofs=proofs,
        iterations=log.iterations,
        skeletons=log.skeletons,
        attempts=log.failures.attempts,
        causes=causes,
        ended_by=search_end,
        limit=limit,
        streams=sum_uses(use for table in _sample_tables(context) for use in table.uses()),
    )


def _find_defeating_actions(problem: Problem, time_limit: float) -> tuple[str, ...]:
    """Return the proof that uncontrollable actions defeat every plan, if it is found."""
    if not problem.domain.uncontrollable_actions:
        return ()
    policy = FastDownward().policy(problem, time_limit=time_limit)
    return (policy.result.message,) if policy.defeating else ()


def _search_end(
    context: PlanningContext, log: SearchLog, status: PlanStatus
) -> tuple[SearchEnd | None, float | None]:
    """Return the cause of the end of an inconclusive search, and the value of the limit, if any."""
    if status is not PlanStatus.NO_PLAN_WITHIN_LIMITS:
        return None, None
    if log.is_over():
        return SearchEnd.TIME_LIMIT, context.options.seconds
    if context.is_at_limit(log):
        return SearchEnd.ITERATION_LIMIT, context.options.max_iterations
    return SearchEnd.EXHAUSTED, None
