"""Sine, cosine and their kind against wider numbers, and products and eigenvalues against numpy."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from tmkit._support.elementary import (
    acos,
    asin,
    atan2,
    circle,
    cos,
    dot,
    eigen,
    erf,
    erfc,
    exp,
    norm,
    norms,
    power,
    product,
    sin,
    standard_normals,
)
from tmkit.errors import ConfigurationError

WIDE = np.longdouble
wide_numbers = pytest.mark.skipif(
    np.finfo(WIDE).nmant < 63, reason="long doubles are no wider than doubles here"
)
finite = st.floats(allow_nan=False, allow_infinity=False)
angles = st.one_of(
    finite, st.floats(-10.0, 10.0), st.integers(-1000, 1000).map(lambda k: k * math.pi / 2)
)


def units_off(value: float, wide: np.longdouble) -> float:
    """Return the error of a number in units in the last place of the true one."""
    unit = max(math.ulp(float(wide)), sys.float_info.min * sys.float_info.epsilon)
    return abs(float((WIDE(value) - wide) / WIDE(unit)))


@wide_numbers
@given(angles)
def test_sine_and_cosine_of_every_angle_are_right_to_one_unit(angle: float) -> None:
    """Sines and cosines equal long doubles, for huge angles and near multiples of pi/2 too."""
    assert units_off(sin(angle), np.sin(WIDE(angle))) < 0.85
    assert units_off(cos(angle), np.cos(WIDE(angle))) < 0.85


@wide_numbers
def test_many_angles() -> None:
    """A hundred thousand angles of joints, and neighbours of multiples of pi/2, are exact."""
    rng = np.random.default_rng(1)
    neighbours = np.nextafter(
        rng.integers(-40, 40, 2000) * (math.pi / 2), rng.choice([-np.inf, np.inf], 2000)
    )
    given_angles = np.concatenate([rng.uniform(-7.0, 7.0, 100_000), neighbours])
    values, wide = circle(given_angles), given_angles.astype(WIDE)
    for column, truth in ((values[:, 0], np.cos(wide)), (values[:, 1], np.sin(wide))):
        assert np.max(np.abs((column - truth) / np.spacing(np.abs(truth.astype(float))))) < 0.85


@pytest.mark.parametrize(
    ("angle", "wanted"),
    [
        (
            6381956970095103.0 * 2.0**797,
            -4.68716592425462761112e-19,
        ),  # of all doubles the nearest to a multiple of pi/2
        (math.pi / 2, 6.123233995736766e-17),
        (1e22, 0.5232147853951389),
        (sys.float_info.max, -0.9999876894265599),
    ],
)
def test_known_cosines(angle: float, wanted: float) -> None:
    """The hardest double (Muller, Elementary Functions, 10.2) and others are exact to one ulp."""
    assert abs(cos(angle) - wanted) <= math.ulp(wanted)


def test_zeros_keep_their_signs_and_what_is_not_finite_has_no_sine() -> None:
    """The sine of a zero is that zero; infinities and NaN give NaN."""
    assert [math.copysign(1.0, sin(zero)) for zero in (0.0, -0.0)] == [1.0, -1.0]
    assert cos(0.0) == cos(-0.0) == 1.0
    assert all(
        math.isnan(function(x)) for function in (sin, cos) for x in (math.inf, -math.inf, math.nan)
    )


@wide_numbers
@given(finite, finite)
def test_the_angle_of_every_point_is_right_to_one_unit(y: float, x: float) -> None:
    """The angle is that of long doubles for all pairs of numbers."""
    assert units_off(atan2(y, x), np.arctan2(WIDE(y), WIDE(x))) < 0.6


@given(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
def test_the_angle_of_ordinary_points(y: float, x: float) -> None:
    """It is that of the C library to a unit."""
    assert abs(atan2(y, x) - math.atan2(y, x)) <= math.ulp(math.atan2(y, x))


def test_the_angles_of_zeros_and_infinities() -> None:
    """Each pair of special numbers has the angle and the sign of zero of the C standard."""
    special = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 5e-324, -1e300)
    for y in special:
        for x in special:
            assert repr(atan2(y, x)) == repr(math.atan2(y, x)), (y, x)
    assert math.isnan(atan2(math.nan, 1.0))
    assert math.isnan(atan2(1.0, math.nan))


@wide_numbers
@given(st.floats(-745.0, 709.7))
def test_powers_of_e_are_right_to_one_unit(x: float) -> None:
    """The exponential is that of long doubles, down to numbers that have lost their digits."""
    assert units_off(exp(x), np.exp(WIDE(x))) < 1.0


def test_powers_of_e_at_their_ends() -> None:
    """Too large gives infinity, too small zero, and zero one."""
    assert (exp(710.0), exp(math.inf), exp(-760.0), exp(-math.inf), exp(0.0)) == (
        math.inf,
        math.inf,
        0.0,
        0.0,
        1.0,
    )
    assert math.isnan(exp(math.nan))


@pytest.mark.parametrize(("function", "oracle"), [(erf, math.erf), (erfc, math.erfc)])
@given(x=st.floats(-27.0, 26.0))
def test_the_error_function(
    function: Callable[[float], float], oracle: Callable[[float], float], x: float
) -> None:
    """Both are those of the C library to 20 units in the last place, also far out in the tail."""
    assert abs(function(x) - oracle(x)) <= 20 * math.ulp(oracle(x))


@given(st.floats(-1.0, 1.0))
def test_arcs_are_those_of_the_c_library(x: float) -> None:
    """The angles of cosines and sines are right to two units."""
    assert abs(acos(x) - math.acos(x)) <= 2 * math.ulp(math.acos(x))
    assert abs(asin(x) - math.asin(x)) <= 2 * math.ulp(math.asin(x))


@pytest.mark.parametrize(
    "shapes",
    [
        ((3,), (3,)),
        ((4, 3), (3,)),
        ((3,), (3, 5)),
        ((2, 3), (3, 4)),
        ((2, 3), (3, 3), (3, 2)),
        ((0, 3), (3, 2)),
    ],
)
def test_products_are_what_numpy_says(shapes: tuple[tuple[int, ...], ...]) -> None:
    """Products of vectors and matrices, two and more, have the values and shapes of ``@``."""
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=shape) for shape in shapes]
    wanted = factors[0]
    for factor in factors[1:]:
        wanted = wanted @ factor
    assert product(*factors).shape == np.shape(wanted)
    assert np.allclose(product(*factors), wanted, rtol=1e-14, atol=1e-15)


def test_products_of_what_does_not_fit_are_refused() -> None:
    """Unlike lengths are an error, as for ``@``."""
    with pytest.raises(ValueError, match="operand"):
        product(np.eye(3), [1.0, 2.0])


def test_lengths_and_scalar_products() -> None:
    """They are numpy's."""
    vectors = np.random.default_rng(0).normal(size=(5, 4, 3))
    assert np.allclose(norms(vectors), np.linalg.norm(vectors, axis=2), rtol=1e-15)
    assert norm([3.0, 4.0]) == 5.0
    assert dot([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) == 32.0


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_eigenvalues_and_eigenvectors(size: int) -> None:
    """The values are numpy's, ascending; the vectors are orthonormal and make the matrix again."""
    root: NDArray[np.float64] = np.random.default_rng(size).normal(size=(size, size))
    matrix = root @ root.T
    values, vectors = eigen(matrix)
    assert np.allclose(values, np.linalg.eigvalsh(matrix), rtol=1e-12)
    assert np.allclose(vectors.T @ vectors, np.eye(size), atol=1e-14)
    assert np.allclose(
        vectors @ np.diag(values) @ vectors.T, matrix, atol=1e-13 * float(values[-1])
    )


def test_what_is_no_square_matrix_has_no_eigenvalues() -> None:
    """Another shape is rejected, and so are numbers that are not finite."""
    with pytest.raises(ConfigurationError, match=r"matrix must be square, not \(2, 3\)"):
        eigen(np.zeros((2, 3)))
    with pytest.raises(ConfigurationError, match="finite"):
        eigen([[math.nan]])


@given(st.floats(1e-6, 1e6), st.floats(-20.0, 20.0))
def test_powers_are_those_of_the_c_library(base: float, exponent: float) -> None:
    """Powers are the C library's to a unit."""
    assert abs(power(base, exponent) - base**exponent) <= math.ulp(base**exponent)


@pytest.mark.parametrize(
    ("base", "exponent", "wanted"),
    [
        (2.0, 9.0, 512.0),
        (0.5, 0.5, math.sqrt(0.5)),
        (-2.0, 3.0, -8.0),
        (0.0, 0.0, 1.0),
        (0.0, 2.0, 0.0),
        (9.0, -0.5, 1 / 3),
    ],
)
def test_known_powers(base: float, exponent: float, wanted: float) -> None:
    """Exact powers are exact, and roots rounded once."""
    assert power(base, exponent) == wanted


def test_powers_that_are_no_numbers() -> None:
    """Roots of negative numbers are complex; negative powers of zero and overflows are errors."""
    assert isinstance(power(-8.0, 0.5), complex)
    with pytest.raises(ZeroDivisionError, match="negative power"):
        power(0.0, -1.0)
    with pytest.raises(OverflowError, match="out of range"):
        power(10.0, 400.0)


def test_normal_numbers() -> None:
    """Equal seeds give equal numbers, others differ, and the distribution is correct."""
    numbers = standard_normals(3, 200_000)
    assert np.array_equal(standard_normals(3, 10), numbers[:10])
    assert not np.array_equal(standard_normals(4, 10), numbers[:10])
    below = [np.mean(numbers < z) for z in (-3.0, -1.0, 0.0, 0.5, 2.0)]
    wanted = [1.0 - 0.5 * math.erfc(z / math.sqrt(2.0)) for z in (-3.0, -1.0, 0.0, 0.5, 2.0)]
    assert np.allclose(below, wanted, atol=4.0 * 0.5 / math.sqrt(len(numbers)))
    assert abs(float(np.mean(numbers[:-1] * numbers[1:]))) < 4.0 / math.sqrt(len(numbers))
