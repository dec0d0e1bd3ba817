"""Probabilities of Gaussians: each method against Monte Carlo, scipy, or another closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import ConfigurationError
from tmkit.tamp.uncertainty.probability import (
    Probability,
    ProbabilityMethod,
    angle_within,
    clearance_at_least,
    inside_box,
    inside_ellipsoid,
    inside_half_spaces,
    inside_slabs,
    sampled_probability,
)

SEEDS = st.integers(0, 2**32 - 1)
COUNT = 100_000


def covariance_of(random: np.random.Generator, size: int) -> np.ndarray:
    """Return a random covariance of full rank."""
    root = random.normal(size=(size, size))
    return np.asarray(root @ root.T + 0.05 * np.eye(size))


def share(
    random: np.random.Generator, mean: np.ndarray, covariance: np.ndarray, holds: object
) -> float:
    """Return the fraction of samples that satisfy a predicate; its standard error is <= 0.0016."""
    x = random.multivariate_normal(mean, covariance, size=COUNT, method="cholesky")
    return float(np.mean(holds(x)))  # type: ignore[operator]


@settings(max_examples=12, deadline=None)
@given(SEEDS, st.integers(1, 3), st.booleans())
def test_boxes_are_what_sampling_says(seed: int, size: int, independent: bool) -> None:
    """The probability of a box of one to three axes agrees with the fraction of samples."""
    random = np.random.default_rng(seed)
    covariance = covariance_of(random, size)
    covariance = np.diag(np.diag(covariance)) if independent else covariance
    mean, corners = random.normal(size=size), np.sort(2.0 * random.normal(size=(2, size)), axis=0)
    probability = inside_box(mean, covariance, lower=corners[0], upper=corners[1])
    methods = {
        1: ProbabilityMethod.CLOSED_FORM,
        2: ProbabilityMethod.QUADRATURE,
        3: ProbabilityMethod.SAMPLED,
    }
    if probability.value > 0.0:  # a box out of reach needs no quadrature
        assert probability.method is methods[1 if independent else size]
    expected = share(
        random, mean, covariance, lambda x: np.all((x >= corners[0]) & (x <= corners[1]), axis=1)
    )
    assert probability.value == pytest.approx(expected, abs=0.008 + 4 * probability.standard_error)


@settings(max_examples=scaled_examples(0.3), deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.3, -0.8, 0.99, -0.9999, 0.9999999]))
def test_two_correlated_numbers_agree_with_scipy(seed: int, rho: float) -> None:
    """The bivariate rectangle agrees with scipy to 1e-9, up to a correlation of 1 - 1e-7."""
    from scipy.stats import multivariate_normal

    random = np.random.default_rng(seed)
    corners = np.sort(1.5 * random.normal(size=(2, 2)), axis=0)
    covariance = np.array([[1.0, rho], [rho, 1.0]])
    mine = inside_box([0, 0], covariance, lower=corners[0], upper=corners[1])
    law = multivariate_normal([0, 0], covariance)
    theirs = float(law.cdf(corners[1], lower_limit=corners[0]))
    assert mine.value == pytest.approx(theirs, abs=1e-9)
    assert mine.standard_error < 1e-6


@settings(max_examples=12, deadline=None)
@given(SEEDS, st.integers(1, 3), st.sampled_from(["ball", "revolution", "any"]))
def test_ellipsoids_are_what_sampling_says(seed: int, size: int, kind: str) -> None:
    """The probability of an ellipsoid agrees with the fraction of samples, for each method."""
    random = np.random.default_rng(seed)
    turn = np.linalg.qr(random.normal(size=(size, size)))[0]
    lengths = {
        "ball": np.ones(size),
        "revolution": np.r_[2.0, np.ones(size - 1)],
        "any": 0.5 + np.arange(size),
    }[kind]
    axes = turn * lengths * (0.8 + random.random())
    spread = {
        "ball": np.eye(size),
        "revolution": turn @ np.diag(np.r_[0.3, np.full(size - 1, 1.2)]) @ turn.T,
    }
    covariance = spread.get(kind, covariance_of(random, size))
    mean, centre = 0.5 * random.normal(size=size), 0.2 * random.normal(size=size)
    probability = inside_ellipsoid(mean, covariance, centre=centre, axes=axes)
    to_ball = np.linalg.inv(axes)
    expected = share(
        random, mean, covariance, lambda x: np.sum(((x - centre) @ to_ball.T) ** 2, axis=1) <= 1.0
    )
    assert probability.value == pytest.approx(expected, abs=0.008 + 4 * probability.standard_error)
    if kind == "revolution" and size == 3:
        assert probability.method is ProbabilityMethod.QUADRATURE
        assert probability.standard_error < 1e-6
    if kind == "any" and size == 3:
        assert probability.method is ProbabilityMethod.SAMPLED


def test_a_centred_ball_is_rayleigh_in_the_plane() -> None:
    """In the plane the closed form is one minus exp(-r^2 / 2 s^2)."""
    probability = inside_ellipsoid([0, 0], 4e-6 * np.eye(2), centre=[0, 0], axes=0.003 * np.eye(2))
    assert probability.method is ProbabilityMethod.CLOSED_FORM
    assert probability.value == pytest.approx(
        1.0 - math.exp(-0.5 * (0.003 / 0.002) ** 2), abs=1e-12
    )


@settings(max_examples=12, deadline=None)
@given(SEEDS)
def test_half_spaces_factor_where_they_are_independent(seed: int) -> None:
    """The probability of a corner of three independent half spaces is a product of three."""
    random = np.random.default_rng(seed)
    covariance = covariance_of(random, 3)
    normals = np.linalg.inv(np.linalg.cholesky(covariance))
    offsets, mean = random.normal(size=3), random.normal(size=3)
    probability = inside_half_spaces(mean, covariance, normals=normals, offsets=offsets)
    expected = math.prod(
        0.5 * math.erfc(float(beyond) / math.sqrt(2)) for beyond in normals @ mean - offsets
    )
    assert probability.value == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_exact_directions_are_in_or_out() -> None:
    """A direction without error is certainly inside or outside; a line of error is 1-D."""
    flat = np.diag([1.0, 0.0])
    assert inside_box([0, 2], flat, lower=[-1, -1], upper=[1, 1]).value == 0.0
    assert inside_box([0, 0], flat, lower=[-1, -1], upper=[1, 1]).value == pytest.approx(
        math.erf(1 / math.sqrt(2))
    )
    line = inside_box([0, 0], np.ones((2, 2)), lower=[-1, -2], upper=[2, 1])
    assert line.value == pytest.approx(math.erf(1 / math.sqrt(2)), abs=1e-12)
    assert inside_box([0.5], [[0.0]], lower=[0], upper=[1]) == Probability(1.0)
    assert inside_ellipsoid([0, 0], np.zeros((2, 2)), centre=[2, 0], axes=np.eye(2)).value == 0.0
    assert inside_ellipsoid([0, 0.6], flat, centre=[0, 0], axes=np.eye(2)).value == pytest.approx(
        math.erf(0.8 / math.sqrt(2))
    )


def test_tails_keep_their_digits() -> None:
    """Far tails are not lost to one minus one: ten standard deviations out still has its value."""
    assert inside_box([0], [[1]], lower=[10], upper=[math.inf]).value == pytest.approx(
        7.6198530241605e-24, rel=1e-10
    )
    assert clearance_at_least(0.01, 1e-6, margin=0.02).value == pytest.approx(
        7.6198530241605e-24, rel=1e-9
    )


def test_angles_and_clearance() -> None:
    """An angle and a clearance have the probabilities of their numbers of deviations."""
    assert angle_within(0.01, 0.2).value == pytest.approx(math.erf(2 / math.sqrt(2)))
    assert angle_within(0.0, 0.1, mean=0.2).value == 0.0
    assert clearance_at_least(0.03, 1e-4, margin=0.02).value == pytest.approx(0.841344746068543)
    assert clearance_at_least(0.03, 0.0).value == 1.0


def test_samples_are_seeded_and_say_their_error() -> None:
    """Equal seeds give equal results; the standard error is that of a fraction, and positive."""

    def sample(seed: int) -> Probability:
        return sampled_probability([0.0], [[1.0]], lambda x: x[:, 0] > 0, seed=seed, count=4000)

    assert sample(1) == sample(1) != sample(2)
    assert sample(1).standard_error == pytest.approx(math.sqrt(0.25 / 4000), rel=0.01)
    sure = sampled_probability([0.0], [[1.0]], lambda x: x[:, 0] < 50, seed=0, count=1000)
    assert (sure.value, sure.standard_error, str(sure)) == (1.0, 0.001, "1 +- 0.001")
    assert sure.is_at_least(0.95)
    assert float(Probability(0.25)) == 0.25


def test_bad_numbers_are_refused() -> None:
    """An invalid covariance, box, ellipsoid or count is reported by name."""
    with pytest.raises(
        ConfigurationError, match="not symmetric positive semi-definite; eigenvalues"
    ):
        inside_box([0, 0], [[1, 2], [2, 1]], lower=[0, 0], upper=[1, 1])
    with pytest.raises(ConfigurationError, match="each lower bound must be at most its upper one"):
        inside_box([0], [[1]], lower=[1], upper=[0])
    with pytest.raises(ConfigurationError, match="half axes of an ellipsoid must be orthogonal"):
        inside_ellipsoid([0, 0], np.eye(2), centre=[0, 0], axes=[[1, 1], [0, 1]])
    with pytest.raises(
        ConfigurationError, match=r"a mean of shape \(2,\) has no covariance of shape \(3, 3\)"
    ):
        inside_slabs([0, 0], np.eye(3), directions=np.eye(2), lower=[0, 0], upper=[1, 1])
    with pytest.raises(ConfigurationError, match="must not be negative"):
        angle_within(-1.0, 0.1)
    with pytest.raises(ConfigurationError, match="count must be at least 1, not 0"):
        sampled_probability([0], [[1]], lambda x: x[:, 0] > 0, seed=0, count=0)
