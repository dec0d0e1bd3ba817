"""The order in which derived predicates are computed."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from tmkit.pddl import And, Not
from tmkit.pddl.formulas import Atom, Axiom, Formula
from tmkit.pddl.strata import axiom_levels, find_negative_cycle


def axiom(head: str, *conditions: str) -> Axiom:
    """Return a rule for ``head``; a condition that begins with a minus is negated."""
    atoms: list[Formula] = [
        Not(Atom(name[1:])) if name[0] == "-" else Atom(name) for name in conditions
    ]
    return Axiom(head, (), And(tuple(atoms)))


def has_negative_circle(axioms: list[Axiom]) -> bool:
    """Return the same by enumeration of all paths: the plain model."""
    edges = {
        (
            rule.predicate,
            (part.part if isinstance(part, Not) else part).predicate,
            isinstance(part, Not),
        )
        for rule in axioms
        for part in rule.condition.parts
    }
    reached = {(start, end) for start, end, _ in edges}
    while (
        more := {(a, d) for (a, b), (c, d) in itertools.product(reached, reached) if b == c}
        - reached
    ):
        reached |= more
    return any(
        negated and (start == end or (end, start) in reached) for start, end, negated in edges
    )


@pytest.mark.parametrize("seed", range(200))
def test_negative_cycles_are_found_and_levels_respect_negation(seed: int) -> None:
    """Negative cycles and levels of random axioms equal those of the plain model."""
    random = Random(seed)
    names = "abcdef"[: random.randint(1, 6)]
    axioms = [
        axiom(
            random.choice(names),
            *(random.choice(["", "", "-"]) + random.choice(names + "z") for _ in range(2)),
        )
        for _ in range(random.randint(1, 7))
    ]
    assert (find_negative_cycle(axioms) is not None) == has_negative_circle(axioms)
    if find_negative_cycle(axioms) is None:
        levels = axiom_levels(axioms)
        for rule in axioms:
            for part in rule.condition.parts:
                below = part.part if isinstance(part, Not) else part
                assert levels[rule.predicate] >= levels.get(below.predicate, -1) + isinstance(
                    part, Not
                )


def test_a_long_chain_of_axioms_is_ordered_at_once() -> None:
    """A chain of 20,000 negations needs neither recursion nor many iterations."""
    count = 20_000
    axioms = [axiom(f"p{i}", f"-p{i + 1}") for i in range(count)]
    assert axiom_levels(axioms)["p0"] == count - 1
    assert find_negative_cycle([*axioms, axiom(f"p{count}", "p0")]) == axioms[0]
