"""In which order derived predicates can be computed.

The idea: an axiom makes its head depend on every derived predicate of its condition. Predicates
that depend on each other, in circles, form a component; components are found by scipy, and ordered
those below first. A circle through a negation has no meaning, and is found as a negated predicate
of the same component. The level of a component counts the negations below it: a level depends
negatively only on lower ones.

Complexity: linear in the axioms and their atoms; no recursion.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from typing import TypeVar

import numpy as np

from tmkit.pddl.formulas import Axiom
from tmkit.pddl.substitution import atoms_of

_Node = TypeVar("_Node", bound=Hashable)

_Dependencies = Mapping[str, Mapping[str, bool]]


def negative_cycle(axioms: Iterable[Axiom]) -> Axiom | None:
    """Return the first axiom by which a derived predicate depends on its own negation, ``None`` when there is none."""
    listed = tuple(axioms)
    component = {
        name: number
        for number, members in enumerate(components(_dependencies(listed)))
        for name in members
    }
    for axiom in listed:
        for atom, positive in atoms_of(axiom.condition):
            if not positive and component.get(atom.predicate) == component[axiom.predicate]:
                return axiom
    return None


def axiom_levels(axioms: Iterable[Axiom]) -> dict[str, int]:
    """Return for each derived predicate, by name, the number of negations below it; there is no negative cycle."""
    below = _dependencies(axioms)
    levels: dict[str, int] = {}
    for members in components(below):
        known = (
            (levels[other] + negated)
            for name in members
            for other, negated in below[name].items()
            if other in levels
        )
        levels |= dict.fromkeys(members, max(known, default=0))
    return dict(sorted(levels.items()))


def _dependencies(axioms: Iterable[Axiom]) -> _Dependencies:
    """Return for each derived predicate those that it depends on, each with whether it does so negatively."""
    listed = tuple(axioms)
    below: dict[str, dict[str, bool]] = {
        name: {} for name in sorted({axiom.predicate for axiom in listed})
    }
    for axiom in listed:
        mine = below[axiom.predicate]
        for atom, positive in atoms_of(axiom.condition):
            if atom.predicate in below:
                mine[atom.predicate] = mine.get(atom.predicate, False) or not positive
    return below


def components(below: Mapping[_Node, Iterable[_Node]]) -> Iterator[tuple[_Node, ...]]:
    """Yield the strongly connected components of a graph, given by what nodes depend on, each after those it does."""
    if not below:
        return  # nearly every domain has no axioms, and importing scipy takes a while
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    numbers = {node: number for number, node in enumerate(below)}
    edges = [(number, numbers[other]) for node, number in numbers.items() for other in below[node]]
    ends = np.array(edges, dtype=np.int32).reshape(-1, 2).T
    graph = coo_array((np.ones(len(edges)), (ends[0], ends[1])), shape=(len(below), len(below)))
    labels: list[int] = connected_components(graph, connection="strong")[1].tolist()
    members: dict[int, list[_Node]] = {}
    needed: dict[int, dict[int, None]] = {}
    for node, label in zip(below, labels, strict=True):
        members.setdefault(label, []).append(node)
        others = (labels[numbers[other]] for other in below[node])
        needed.setdefault(label, {}).update((other, None) for other in others if other != label)
    for label in TopologicalSorter(needed).static_order():
        yield tuple(members[label])
