"""Association: pairs of least cost, against all possible ones."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, strategies as st

from tmkit.errors import SceneError
from tmkit.estimation.policies import associate

_costs = st.integers(1, 4).flatmap(
    lambda columns: st.lists(
        st.lists(
            st.one_of(st.integers(0, 20).map(float), st.just(math.inf)),
            min_size=columns,
            max_size=columns,
        ),
        min_size=1,
        max_size=4,
    )
)


@given(_costs, st.sampled_from([5.0, 15.0, 1e6]))
def test_no_other_pairs_are_better(costs: list[list[float]], gate: float) -> None:
    """Pairs are as many as possible, of the least total cost, and within the gate."""
    pairs = associate(costs, gate=gate)
    assert len({r for r, _ in pairs}) == len({c for _, c in pairs}) == len(pairs)
    assert all(costs[r][c] <= gate for r, c in pairs)
    rows, columns = range(len(costs)), range(len(costs[0]))
    best = (0, 0.0)
    for size in range(1, min(len(rows), len(columns)) + 1):
        for some in itertools.combinations(rows, size):
            for permutation in itertools.permutations(columns, size):
                chosen = [costs[r][c] for r, c in zip(some, permutation, strict=True)]
                if max(chosen) <= gate:
                    best = min(best, (-size, sum(chosen)))
    assert (-len(pairs), sum(costs[r][c] for r, c in pairs)) == best


def test_costs_that_are_none() -> None:
    """Nothing to pair, and numbers below 0."""
    assert associate([]) == associate([[], []]) == []
    for wrong in ([[-1.0]], [[math.nan]], [1.0, 2.0]):
        with pytest.raises(SceneError, match="costs are a matrix of numbers of at least 0, not "):
            associate(wrong)
