"""From a cause to a constraint: of which facts a motion failure speaks.

A motion that was not found is a statement about bodies: this action failed while those frames stood where they stood.
The task planner knows no frames, only facts. :func:`context_of` says in facts where the frames stand, so that the
constraint speaks of them alone: "not ``(pick b)`` while ``(ontable c l3)``" holds in many more states than the one in
which ``b`` was found to be blocked by ``c``.

Which facts tell where a thing stands, the domain knows best and may say (:class:`PlacementSemantics`). Otherwise they
are the facts whose first argument is the thing: those of two or more arguments, or, where there are none, those of one;
and again for every other thing that such a fact names, since what stands on a moved block has moved.

Invariants: the context holds in the state in which the failure happened. Without knowledge of the frames it is the
whole state, which is always right and seldom useful again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from tmkit.pddl import Fact, GroundAction, State
from tmkit.tamp.domains.loading import PlanningDomain
from tmkit.tamp.domains.protocols import PlacementSemantics, SymmetricSemantics, pddl_name
from tmkit.tamp.refinement import Cause

__all__ = ["context_of", "facts_about", "with_alike"]

_MOST_ALIKE = 128  # constraints that follow from one


def context_of(cause: Cause, domain: PlanningDomain) -> tuple[Fact, ...]:
    """Return the facts on which a cause depends, sorted.

    Raises:
        SceneError: the domain's own method refuses the scene.
    """
    state, scene = cause.node.state, cause.node.scene
    if cause.frames is None:
        return tuple(state)
    semantics = domain.semantics
    names = {pddl_name(frame) for frame in cause.frames}
    if isinstance(semantics, PlacementSemantics):
        found = {fact for fact in semantics.placement_facts(cause.frames, state, scene) if fact in state}
    else:
        found = set(facts_about(names, state))
    names.update(fact.arguments[0] for fact in found if fact.arguments)
    return tuple(sorted(found.union(domain.places(names, state))))


def facts_about(names: Iterable[str], state: State) -> tuple[Fact, ...]:
    """Return the facts that tell where things are, by the rule of this module; sorted.

    Args:
        names: PDDL names of the things.
        state: the state.
    """
    by_thing: dict[str, list[Fact]] = {}
    for fact in state:
        if fact.arguments:
            by_thing.setdefault(fact.arguments[0], []).append(fact)
    wanted, seen, found = sorted(names), set(names), set[Fact]()
    while wanted:
        facts = by_thing.get(wanted.pop(), [])
        relations = [fact for fact in facts if len(fact.arguments) > 1]
        for fact in relations or facts:
            found.add(fact)
            for name in fact.arguments[1:]:
                if name not in seen:
                    seen.add(name)
                    wanted.append(name)
    return tuple(sorted(found))


def with_alike(
    action: GroundAction, context: Sequence[Fact], cause: Cause, domain: PlanningDomain
) -> tuple[tuple[GroundAction, tuple[Fact, ...]], ...]:
    """Return what follows from a constraint by exchanging things that are alike, itself not included, in a fixed order.

    Nothing follows in a domain that does not say which things are, or when it would be too much.
    """
    semantics = domain.semantics
    named = {*action.arguments, *(name for fact in context for name in fact.arguments)}
    if not isinstance(semantics, SymmetricSemantics) or domain.places(named, cause.node.state):
        return ()
    groups = [(sorted(named & set(group)), sorted(group)) for group in semantics.alike(cause.node.scene)]
    groups = [(own, group) for own, group in groups if own]
    if math.prod(math.perm(len(group), len(own)) for own, group in groups) > _MOST_ALIKE:
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
