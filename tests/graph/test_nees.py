"""What a scene claims of its errors is true after looking, picking, carrying, placing, looking and grasping again."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.support.nees_runs import as_independent, keep_all, squared_distances
from tmkit.spatial import chi_square_quantile

RUNS = int(os.environ.get("TMKIT_NEES_RUNS", "200"))


@pytest.mark.parametrize("reference", ["world", "camera"])
def test_errors_are_as_large_as_claimed_at_every_stage(reference: str) -> None:
    """The mean squared distance of the truth lies in its chi-square band; without the correlations it leaves it."""
    low, high = (chi_square_quantile(p, 6 * RUNS) / RUNS for p in (0.0005, 0.9995))
    kept = squared_distances(RUNS, forget=keep_all, reference=reference).mean(axis=0)
    assert ((kept >= low) & (kept <= high)).all(), kept
    dropped = squared_distances(RUNS, forget=as_independent, reference=reference).mean(axis=0)
    assert (dropped < low).all(), dropped


def test_the_whole_distribution_is_right_in_the_end() -> None:
    """Not the mean alone: the squared distances of single runs are chi-square distributed (Kolmogorov and Smirnov)."""
    from scipy.stats import chi2, kstest

    squared = squared_distances(RUNS, forget=keep_all, reference="world")[:, -1]
    assert kstest(squared, chi2(6).cdf).pvalue > 1e-3
    assert np.isfinite(squared).all()
