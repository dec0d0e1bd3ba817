"""In which order derived predicates can be computed.

The idea: an axiom makes its head depend on every derived predicate of its condition. Predicates that depend on each
other, in circles, form a component; components are found by Tarjan's algorithm (SIAM Journal on Computing 1, 1972),
those below first. A circle through a negation has no meaning, and is found as a negated predicate of the same
component. The level of a component counts the negations below it: a level depends negatively only on lower ones.

Complexity: linear in the axioms and their atoms; no recursion.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from tmkit.pddl.schemas import Axiom
from tmkit.pddl.substitution import atoms_of

_Node = TypeVar("_Node", bound=Hashable)

_Dependencies = Mapping[str, Mapping[str, bool]]


def negative_cycle(axioms: Iterable[Axiom]) -> Axiom | None:
    """Return the first axiom by which a derived predicate depends on its own negation, ``None`` when there is none."""
    listed = tuple(axioms)
    component = {name: number for number, members in enumerate(components(_dependencies(listed))) for name in members}
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
            (levels[other] + negated) for name in members for other, negated in below[name].items() if other in levels
        )
        levels |= dict.fromkeys(members, max(known, default=0))
    return dict(sorted(levels.items()))


def _dependencies(axioms: Iterable[Axiom]) -> _Dependencies:
    """Return for each derived predicate those that it depends on, each with whether it does so negatively."""
    listed = tuple(axioms)
    below: dict[str, dict[str, bool]] = {name: {} for name in sorted({axiom.predicate for axiom in listed})}
    for axiom in listed:
        mine = below[axiom.predicate]
        for atom, positive in atoms_of(axiom.condition):
            if atom.predicate in below:
                mine[atom.predicate] = mine.get(atom.predicate, False) or not positive
    return below


def components(below: Mapping[_Node, Iterable[_Node]]) -> Iterator[tuple[_Node, ...]]:
    """Yield the strongly connected components of a graph, each after those that it depends on.

    Args:
        below: for each node those that it depends on, which are nodes too.
    """
    order: dict[_Node, int] = {}
    lowest: dict[_Node, int] = {}
    pending: list[_Node] = []
    done: set[_Node] = set()
    for root in below:
        path = [] if root in order else [(root, iter(below[root]))]
        while path:
            name, rest = path[-1]
            if name not in order:
                order[name] = lowest[name] = len(order)
                pending.append(name)
            for other in rest:
                if other not in order:
                    path.append((other, iter(below[other])))
                    break
                if other not in done:
                    lowest[name] = min(lowest[name], lowest[other])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[name])
                if lowest[name] == order[name]:
                    members = tuple(_popped(pending, name))
                    done.update(members)
                    yield members


def _popped(pending: list[_Node], last: _Node) -> Iterator[_Node]:
    """Take nodes off the end of ``pending``, down to ``last``."""
    while True:
        name = pending.pop()
        yield name
        if name == last:
            return
