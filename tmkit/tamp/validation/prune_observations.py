"""Removal of superfluous observations and other steps without motion from a plan.

The task planner uses only the effects of actions; probabilities follow from the scenes, once
motions exist. An expected observation does not change the mean of a pose, so its removal leaves
motions unchanged. Each step without a motion is removed on trial. Then the scenes are recomputed.
The step is superfluous if the preconditions and effects of all other actions, and the goal, still
hold. This is the action elimination of Nakhost and Mueller ("Action elimination and plan
neighborhood graph search", 2010) on scenes instead of facts.

Invariants: motions do not change; the result passes the same validation as the argument. An
observation with arm motion stays, because the next motion starts at its end. Quadratic in the
number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tmkit.graph import SceneGraph
from tmkit.pddl import Problem, State
from tmkit.plans.values import Configuration, PlanStep
from tmkit.tamp.domains.planning_domain import PlanningDomain


def prune_observations(
    steps: Sequence[PlanStep],
    scene: SceneGraph,
    q: Configuration,
    *,
    problem: Problem,
    domain: PlanningDomain,
) -> tuple[PlanStep, ...]:
    """Return the steps of a plan without superfluous steps that have no motion.

    Args:
        steps: steps of a valid plan.
        scene: scene before the first step.
        q: (n_joints,) configuration before the first step.
        problem: planning problem.
        domain: domain. Without probabilistic predicates, all steps stay.
    """
    pruned = tuple(steps)
    if not domain.probabilistic_predicates:
        return pruned
    index = 0
    while index < len(pruned):
        rest = None
        if not pruned[index].segments:
            start_scene, start_q = scene, q
            if index:
                start_scene, start_q = pruned[index - 1].scene, pruned[index - 1].q
            rest = _recompute(pruned[index + 1 :], start_scene, start_q, problem, domain)
        if rest is None:
            index += 1
        else:
            pruned = (*pruned[:index], *rest)
    return pruned


def effect_faults(
    before: State, step: PlanStep, after: State, *, problem: Problem, domain: PlanningDomain
) -> list[str]:
    """Return the differences between the derived state after a step and the effects of its action.

    Probabilistic facts may hold in addition, and may cease to hold unless the action adds them.
    """
    if failed := problem.why_not(before, step.action):
        return [f"{formula} does not hold" for formula in failed]
    difference = problem.apply(before, step.action).difference(after)
    probabilistic = domain.probabilistic_predicates
    missing = (
        fact
        for fact in difference.missing
        if fact.predicate not in probabilistic or fact not in before
    )
    excess = (fact for fact in difference.unexpected if fact.predicate not in probabilistic)
    return [*(f"missing {fact}" for fact in missing), *(f"unexpected {fact}" for fact in excess)]


def _recompute(
    steps: Sequence[PlanStep],
    scene: SceneGraph,
    q: Configuration,
    problem: Problem,
    domain: PlanningDomain,
) -> tuple[PlanStep, ...] | None:
    """Return steps with recomputed scenes, without inapplicable steps; None if the plan fails.

    Only inapplicable steps without motion may be dropped.
    """
    recomputed: list[PlanStep] = []
    types = {name: kinds[0] for name, kinds in problem.objects.items()}
    state = domain.state(scene, q, objects=types)
    for step in steps:
        if problem.why_not(state, step.action):
            if step.segments:
                return None
            continue
        after, _ = step.end(scene, q)
        new_step = replace(step, scene=after)
        new_state = domain.state(after, step.q, objects=types)
        if effect_faults(state, new_step, new_state, problem=problem, domain=domain):
            return None
        recomputed.append(new_step)
        scene, q, state = after, step.q, new_state
    return tuple(recomputed) if problem.holds(state, problem.goal) else None
