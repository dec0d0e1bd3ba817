"""A task state: the set of ground facts that hold; what is not in it does not (the closed world).

*Derived* facts are never stored: they follow from the stored ones by the axioms of the domain, so
two states are equal exactly when their basic facts are.

Invariants: iteration is sorted, hence the same in every process whatever its hash seed. A state has
no domain; the queries that need one are a problem's (:meth:`~tmkit.pddl.Problem.holds`,
:meth:`~tmkit.pddl.Problem.apply`). Membership is O(1); a successor O(n) in the number of facts, of
which a task has some hundreds.
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
    """How an observed state differs from the expected one.

    Attributes:
        missing: facts that were expected but do not hold, sorted.
        unexpected: facts that hold but were not expected, sorted.
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
    """An immutable set of ground facts, doubles being harmless, and the numbers that differ from the problem's.

    Args:
        facts: the facts.
        values: the values of functions that actions have changed, by ground term.
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
        raise AttributeError(f"a State cannot be changed; '{name}' was to be set")

    @property
    def facts(self) -> frozenset[Fact]:
        """The facts, for set algebra; iterate over the state itself for a fixed order."""
        return self._facts

    @cached_property
    def values(self) -> Mapping[Fact, float]:
        """The values of functions that actions have changed, by ground term; others are the problem's."""
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
        """Return the state without some facts and then with others.

        Args:
            add: facts to add.
            delete: facts to delete.
            values: values of functions that change.
        """
        numbers = {**self.values, **values} if values else self.values if self._values else None
        return State(self._facts.difference(delete).union(add), numbers)

    def difference(self, observed: State) -> StateDifference:
        """Return how ``observed`` differs from this state, taken as what is expected."""
        missing, unexpected = self._facts - observed._facts, observed._facts - self._facts
        return StateDifference(tuple(sorted(missing)), tuple(sorted(unexpected)))
