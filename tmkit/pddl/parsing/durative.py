"""Durative actions, read as actions that are done one after the other.

The idea: an action is *compressed* (D. Long, M. Fox, "Exploiting a graphplan framework in temporal planning", ICAPS
2003). Its condition is all that it ever needs, but what its own start brings about; its effect is that of the start,
then that of the end. A plan of such actions is laid out in time afterwards (:mod:`tmkit.task_planning.schedule`). That
there is none proves nothing: actions may have to overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from tmkit.pddl.formulas import (
    Add,
    And,
    Atom,
    Delete,
    Effect,
    EffectAnd,
    Formula,
    IncreaseCost,
    Not,
    Timing,
    When,
    simple_effects,
)  # fmt: skip
from tmkit.pddl.model import Domain
from tmkit.pddl.parsing.source import Group, Source, Token
from tmkit.pddl.substitution import conjuncts_of, subtrees

START, THROUGHOUT, END = ("at", "start"), ("over", "all"), ("at", "end")


class Timed(NamedTuple):
    """A part of a condition or effect, and when it holds or happens."""

    when: tuple[str, ...]
    group: Group


def timed_parts(source: Source, group: Group) -> Iterator[Timed]:
    """Yield the parts of a condition or effect, a ``forall`` of each; a change of the cost is at the end."""
    words = tuple(part.text for part in group.parts[:2] if isinstance(part, Token))
    if group.head == "and":
        for part in group.parts[1:]:
            if not isinstance(part, Group):
                raise source.error(part, f"unexpected '{part.text}'; expected '(' or ')'")
            yield from timed_parts(source, part)
    elif group.head == "forall" and len(group.parts) == 3 and isinstance(group.parts[2], Group):
        for when, inner in timed_parts(source, group.parts[2]):
            yield Timed(when, group._replace(parts=(*group.parts[:2], inner)))
    elif words in (START, THROUGHOUT, END) and len(group.parts) == 3 and isinstance(group.parts[2], Group):
        yield Timed(words, group.parts[2])
    elif group.head == "increase":
        yield Timed(END, group)
    elif group.parts:
        raise source.error(group.first, "expected (at start ...), (over all ...) or (at end ...)")


def duration_of(source: Source, group: Group) -> Token | Group:
    """Return the expression in ``(= ?duration EXPRESSION)``, or the least of a range."""
    if group.head == "and":
        bounds = [part for part in group.parts[1:] if isinstance(part, Group) and part.head == ">="]
        group = bounds[0] if len(bounds) == 1 else group
    if group.head not in ("=", ">=") or len(group.parts) != 3 or group.parts[1].first.text != "?duration":
        raise source.error(group.first, "expected (= ?duration EXPRESSION), or a range with (>= ?duration EXPRESSION)")
    return group.parts[2]


def compressed(timing: Timing, derived: frozenset[str], fault: Callable[[str], Exception]) -> tuple[Formula, Effect]:
    """Return condition and effect of an action that is done while no other is.

    Args:
        timing: its parts.
        derived: predicates that follow from others.
        fault: makes an error of a reason.
    """
    begun, ended = [*simple_effects(timing.start)], [*simple_effects(timing.end)]
    added, deleted = ({e.atom for e in begun if isinstance(e, kind)} for kind in (Add, Delete))
    changed = {atom.predicate for atom in added | deleted}
    if changed:
        changed |= derived
    kept: list[Formula] = [timing.at_start]
    for part in conjuncts_of([timing.over_all, timing.at_end]):
        if not _predicates(part) & changed:
            kept.append(part)
        elif part not in added and not (isinstance(part, Not) and part.part in deleted):
            raise fault(f"what is needed after the start, {part}, may depend on the effect at the start")
    for tree in subtrees(timing.end):
        if isinstance(tree, When) and _predicates(tree.condition) & changed:
            raise fault(f"the condition of an effect, {tree.condition}, may depend on the effect at the start")
    removed = {effect.atom for effect in ended if isinstance(effect, Delete)}
    passing = added & removed  # holds only while the action lasts
    for atom in added - passing:
        if any(other.predicate == atom.predicate for other in removed):
            raise fault(f"the start adds {atom}, which the end may delete")
    parts = timing.start.parts if isinstance(timing.start, EffectAnd) else (timing.start,)
    start = tuple(part for part in parts if not (isinstance(part, Add) and part.atom in passing))
    return And(tuple(kept)), EffectAnd((*start, timing.end))


def with_durations_as_costs(domain: Domain) -> Domain:
    """Return a domain in which an action costs its duration: the time of all, one after the other."""
    actions = tuple(
        replace(action, effect=EffectAnd((action.effect, IncreaseCost(action.timing.duration))))
        if action.timing is not None else action
        for action in domain.actions
    )  # fmt: skip
    return replace(domain, actions=actions)


def _predicates(formula: Formula) -> set[str]:
    return {part.predicate for part in subtrees(formula) if isinstance(part, Atom)}
