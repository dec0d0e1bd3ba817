"""Stratification of derived predicates: the order in which they are computed.

The head of an axiom depends on every derived predicate of its condition. Predicates that depend on
each other form a strongly connected component. scipy computes the components, which are yielded in
topological order, dependencies first. A cycle through a negation has no meaning; it shows as a
negated predicate of the same component. The level of a component is the number of negations below
it. A level depends negatively only on lower levels.

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


def find_negative_cycle(axioms: Iterable[Axiom]) -> Axiom | None:
    """Return the first axiom in which a predicate depends on its own negation, ``None`` if none."""
    rules = tuple(axioms)
    component = {
        name: number
        for number, members in enumerate(components(_dependencies(rules)))
        for name in members
    }
    for axiom in rules:
        for atom, positive in atoms_of(axiom.condition):
            if not positive and component.get(atom.predicate) == component[axiom.predicate]:
                return axiom
    return None


def axiom_levels(axioms: Iterable[Axiom]) -> dict[str, int]:
    """Return the number of negations below each derived predicate, by name.

    Args:
        axioms: rules without a negative cycle.
    """
    dependencies = _dependencies(axioms)
    levels: dict[str, int] = {}
    for members in components(dependencies):
        lower_bounds = (
            (levels[dependency] + is_negative)
            for name in members
            for dependency, is_negative in dependencies[name].items()
            if dependency in levels
        )
        levels |= dict.fromkeys(members, max(lower_bounds, default=0))
    return dict(sorted(levels.items()))


def _dependencies(axioms: Iterable[Axiom]) -> _Dependencies:
    """Return the dependencies of each derived predicate; the value is true for a negative one."""
    rules = tuple(axioms)
    dependencies: dict[str, dict[str, bool]] = {
        name: {} for name in sorted({axiom.predicate for axiom in rules})
    }
    for axiom in rules:
        negative = dependencies[axiom.predicate]
        for atom, positive in atoms_of(axiom.condition):
            if atom.predicate in dependencies:
                negative[atom.predicate] = negative.get(atom.predicate, False) or not positive
    return dependencies


def components(dependencies: Mapping[_Node, Iterable[_Node]]) -> Iterator[tuple[_Node, ...]]:
    """Yield the strongly connected components of a graph, each after its dependencies.

    Args:
        dependencies: nodes on which each node depends.
    """
    if not dependencies:
        return  # nearly every domain has no axioms, and the import of scipy is slow
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    numbers = {node: number for number, node in enumerate(dependencies)}
    edges = [
        (number, numbers[dependency])
        for node, number in numbers.items()
        for dependency in dependencies[node]
    ]
    ends = np.array(edges, dtype=np.int32).reshape(-1, 2).T
    shape = (len(dependencies), len(dependencies))
    graph = coo_array((np.ones(len(edges)), (ends[0], ends[1])), shape=shape)
    labels: list[int] = connected_components(graph, connection="strong")[1].tolist()
    members: dict[int, list[_Node]] = {}
    predecessors: dict[int, dict[int, None]] = {}
    for node, label in zip(dependencies, labels, strict=True):
        members.setdefault(label, []).append(node)
        targets = (labels[numbers[dependency]] for dependency in dependencies[node])
        predecessors.setdefault(label, {}).update(
            (target, None) for target in targets if target != label
        )
    for label in TopologicalSorter(predecessors).static_order():
        yield tuple(members[label])
