"""From a cause to a constraint: of which facts a motion failure speaks.

A motion that was not found is a statement about bodies: this action failed while those frames stood where they stood.
The task planner has no frames, only facts. :func:`context_of` says in facts where the frames stand, so that the
constraint speaks of them alone: "not ``(pick b)`` while ``(ontable c l3)``" holds in many more states than the one in
which ``b`` was found to be blocked by ``c``.

Which facts describe where an object is, the domain's semantics determines
(:meth:`~tmkit.tamp.DomainSemantics.placement_facts`).

Invariants: the context holds in the state in which the failure happened. Without knowledge of the frames it is the
whole state, which is always right and seldom useful again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from tmkit.pddl import Fact, GroundAction
from tmkit.tamp.domains.loading import PlanningDomain
from tmkit.tamp.domains.semantics import pddl_name
from tmkit.tamp.refinement import Cause

_MOST_EQUIVALENT = 128  # constraints that follow from one


def context_of(cause: Cause, domain: PlanningDomain) -> tuple[Fact, ...]:
    """Return the facts on which a cause depends, sorted.

    Args:
        cause: the cause of a failure.
        domain: the domain.

    Raises:
        SceneError: the domain's own method refuses the scene.
    """
    state, scene = cause.node.state, cause.node.scene
    if cause.frames is None:
        return tuple(state)
    names = {pddl_name(frame) for frame in cause.frames}
    found = {fact for fact in domain.semantics.placement_facts(cause.frames, state, scene) if fact in state}
    names.update(fact.arguments[0] for fact in found if fact.arguments)
    return tuple(sorted(found.union(domain.places(names, state))))


def with_equivalent(
    action: GroundAction, context: Sequence[Fact], cause: Cause, domain: PlanningDomain
) -> tuple[tuple[GroundAction, tuple[Fact, ...]], ...]:
    """Return the constraints that follow by exchanging symmetric objects, without the given one, in fixed order.

    None follow when no object of the constraint has an equivalent, or when there would be too many.

    Args:
        action: the action that is excluded.
        context: facts under which it is excluded.
        cause: cause of its failure.
        domain: the domain.
    """
    named = {*action.arguments, *(name for fact in context for name in fact.arguments)}
    if domain.places(named, cause.node.state):
        return ()
    groups = [
        (sorted(named & set(group)), sorted(group)) for group in domain.semantics.equivalence_classes(cause.node.scene)
    ]
    classes = domain.semantics.equivalence_classes(cause.node.scene)
    groups = [(own, sorted(group)) for group in map(set, classes) if (own := sorted(named & group))]
    if not groups or math.prod(math.perm(len(group), len(own)) for own, group in groups) > _MOST_EQUIVALENT:
        return ()
    found: dict[tuple[GroundAction, tuple[Fact, ...]], None] = {}
    for chosen in itertools.product(*(itertools.permutations(group, len(own)) for own, group in groups)):
        other: dict[str, str] = {}
        for (own, _), names in zip(groups, chosen, strict=True):
            other.update(zip(own, names, strict=True))
        changed = GroundAction(action.name, tuple(other.get(name, name) for name in action.arguments))
        facts = (Fact(fact.predicate, tuple(other.get(n, n) for n in fact.arguments)) for fact in context)
        found[changed, tuple(sorted(facts))] = None
    found.pop((action, tuple(sorted(context))), None)
    return tuple(found)
