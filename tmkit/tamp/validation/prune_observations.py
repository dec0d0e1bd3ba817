"""Leaving out what an uncertain scene does not need: looks, and what moves nothing.

The task planner sees only what actions promise; how probable things are the scenes say, once there
are motions. An expected look moves no mean, so motions stay what they are when it is omitted. So
each step without a motion is left out on trial, and the scenes are made anew. If every action finds
what it needs, brings about what it promises, and the goal holds at the end, the step was not
needed. This is the action elimination of Nakhost and Mueller ("Action elimination and plan
neighborhood graph search", 2010) on scenes instead of facts.

Invariants: motions do not change; what comes back passes the same check as what went in. A look for
which the arm moves is not omitted, because the motion after it begins where it ends. Quadratic in
the number of steps.
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
    """Return a plan's steps without those that move nothing and are not needed.

    Args:
        domain: the domain; where it has no probabilistic predicates, all steps stay.
    """
    kept = tuple(steps)
    if not domain.probabilistic_predicates:
        return kept
    index = 0
    while index < len(kept):
        shorter = None
        if not kept[index].segments:
            before = kept[index - 1] if index else None
            at = (scene, q) if before is None else (before.scene, before.q)
            shorter = _followed(kept[index + 1 :], *at, problem, domain)
        if shorter is None:
            index += 1
        else:
            kept = (*kept[:index], *shorter)
    return kept


def broken_promises(
    before: State, step: PlanStep, after: State, *, problem: Problem, domain: PlanningDomain
) -> list[str]:
    """Return what the scene after a step lacks of what the domain promises, or has beyond it.

    What is a matter of probability may be there beyond them, and may cease to hold unless the
    action promises it.
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
    beyond = (fact for fact in difference.unexpected if fact.predicate not in probabilistic)
    return [*(f"missing {fact}" for fact in missing), *(f"unexpected {fact}" for fact in beyond)]


def _followed(
    steps: Sequence[PlanStep],
    scene: SceneGraph,
    q: Configuration,
    problem: Problem,
    domain: PlanningDomain,
) -> tuple[PlanStep, ...] | None:
    """Return steps with the scenes they lead to now, without those that no longer can be done; None when that fails."""
    done: list[PlanStep] = []
    types = {name: kinds[0] for name, kinds in problem.objects.items()}
    state = domain.state(scene, types, q)
    for step in steps:
        if problem.why_not(state, step.action):
            if step.segments:
                return None
            continue
        after, _ = step.end(scene, q)
        again, reached = replace(step, scene=after), domain.state(after, types, step.q)
        if broken_promises(state, again, reached, problem=problem, domain=domain):
            return None
        done.append(again)
        scene, q, state = after, step.q, reached
    return tuple(done) if problem.holds(state, problem.goal) else None
