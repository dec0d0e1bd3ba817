"""Task state: the set of ground facts that hold, under the closed-world assumption.

*Derived* facts are never stored, because they follow from the stored facts by the axioms of the
domain. Two states are equal exactly if their basic facts and numbers are equal.

Invariants: iteration is sorted, and therefore independent of the hash seed. A state has no domain.
Queries that need one are methods of a problem (:meth:`~tmkit.pddl.Problem.holds`,
:meth:`~tmkit.pddl.Problem.apply`). Membership is O(1). A successor is O(n) in the number of facts,
of which a task has some hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from tmkit._support.initialization import initialize
from tmkit.pddl.formulas import Fact

_NO_VALUES: frozenset[tuple[Fact, float]] = frozenset()


@dataclass(frozen=True, slots=True)
class StateDifference:
    """Difference between an expected and an observed state.

    Attributes:
        missing: expected facts that do not hold, sorted.
        unexpected: facts that hold unexpectedly, sorted.
    """

    missing: tuple[Fact, ...]
    unexpected: tuple[Fact, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)

    def __str__(self) -> str:
        parts = []
        if self.missing:
            parts.append("missing " + " ".join(map(str, self.missing)))
        if self.unexpected:
            parts.append("unexpected " + " ".join(map(str, self.unexpected)))
        return "; ".join(parts) or "no difference"


class State:
    """Immutable set of ground facts, with the numbers that differ from those of the problem.

    Args:
        facts: the facts; duplicates are ignored.
        values: values of functions that actions have changed, by ground term.
    """

    __slots__ = ("__dict__", "__weakref__", "_facts", "_values")

    _facts: frozenset[Fact]
    _values: frozenset[tuple[Fact, float]]

    def __init__(
        self, facts: Iterable[Fact] = (), values: Mapping[Fact, float] | None = None
    ) -> None:
        initialize(
            self,
            _facts=frozenset(facts),
            _values=frozenset(values.items()) if values else _NO_VALUES,
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a State is immutable; cannot set '{name}'")

    @property
    def facts(self) -> frozenset[Fact]:
        """The facts as a set, without an order; iteration over the state itself is sorted."""
        return self._facts

    @cached_property
    def values(self) -> Mapping[Fact, float]:
        """Values of functions that actions have changed, by ground term.

        All other values are those of the problem.
        """
        return MappingProxyType(dict(sorted(self._values)))

    @cached_property
    def _sorted(self) -> tuple[Fact, ...]:
        return tuple(sorted(self._facts))

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._sorted)

    def __contains__(self, fact: object) -> bool:
        return fact in self._facts

    def __len__(self) -> int:
        return len(self._facts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self._facts == other._facts and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._facts)

    def __repr__(self) -> str:
        numbers = (f"(= {term} {value:g})" for term, value in self.values.items())
        return f"State({' '.join([*map(str, self), *numbers])})"

    def __reduce__(self) -> tuple[type[State], tuple[object, ...]]:
        return State, (self._sorted, dict(self.values)) if self._values else (self._sorted,)

    def change(
        self,
        *,
        add: Iterable[Fact] = (),
        delete: Iterable[Fact] = (),
        values: Mapping[Fact, float] | None = None,
    ) -> State:
        """Return the state after facts are deleted and then others added.

        Args:
            add: facts to add.
            delete: facts to delete.
            values: new values of functions, by ground term.
        """
        numbers = self.values if self._values else None
        if values:
            numbers = {**self.values, **values}
        return State(self._facts.difference(delete).union(add), numbers)

    def difference(self, observed: State) -> StateDifference:
        """Return the difference between this state, as the expected one, and ``observed``."""
        missing = self._facts - observed._facts
        unexpected = observed._facts - self._facts
        return StateDifference(tuple(sorted(missing)), tuple(sorted(unexpected)))
