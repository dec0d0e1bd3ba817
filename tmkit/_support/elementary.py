"""Elementary functions, products and norms with bitwise reproducible results on every CPU.

:mod:`math` calls the C library; ``@``, ``np.dot`` and ``np.linalg`` call BLAS and LAPACK. These
libraries have variants for different CPUs, with or without fused products and in different orders.
Their results differ in the last bit, and a plan depends on every bit of every pose. All parts of a
plan are therefore computed with these functions, by the core, or by numpy's sums and products,
which IEEE 754 defines bit by bit.

The following functions are reproducible and have no replacement here: ``math.sqrt``,
``math.hypot`` and the conversion of degrees; of numpy sums, elementwise products, ``np.cross``,
``np.sqrt`` and ``np.einsum``. Powers of floats are not: ``x**2`` calls the C library too.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._core import (
    atan2 as atan2,
    cos as cos,
    erfc as erfc,
    exp as exp,
    sin as sin,
    standard_normals as standard_normals,
    symmetric_eigen,
)

Array = NDArray[np.float64]


def acos(cosine: float) -> float:
    """Return the angle [rad] of a cosine in [-1, 1], exact to two units in the last place."""
    return atan2(math.sqrt((1.0 - cosine) * (1.0 + cosine)), cosine)


def asin(sine: float) -> float:
    """Return the angle [rad] of a sine in [-1, 1], exact to two units in the last place."""
    return atan2(sine, math.sqrt((1.0 - sine) * (1.0 + sine)))


def circle(angles: ArrayLike) -> Array:
    """Return points on the unit circle: (n, 2) cosines and sines of (n,) angles [rad]."""
    return np.array(
        [[cos(angle), sin(angle)] for angle in np.asarray(angles, dtype=float).tolist()]
    ).reshape(-1, 2)


def dot(a: ArrayLike, b: ArrayLike) -> float:
    """Return the scalar product of two vectors.

    Args:
        a: (n,) vector.
        b: (n,) vector.
    """
    return float(np.add.reduce(np.multiply(a, b)))


def norm(vector: ArrayLike) -> float:
    """Return the length of an (n,) vector."""
    return math.sqrt(dot(vector, vector))


def norms(vectors: ArrayLike) -> Array:
    """Return the (...) lengths of (..., n) vectors."""
    return np.asarray(np.sqrt(np.sum(np.square(vectors), axis=-1)))


def product(*factors: ArrayLike) -> Array:
    """Return the product of matrices and vectors, evaluated from left to right, like ``@``.

    Args:
        *factors: (m, n) matrices or (n,) vectors. As for ``@``, a vector is a row before a matrix
            and a column behind one. The product of two vectors is an array without axes;
            :func:`dot` returns a float.
    """
    result = np.asarray(factors[0], dtype=float)
    for factor in factors[1:]:
        right = np.asarray(factor, dtype=float)
        left_axes, right_axes = "ij"[2 - result.ndim :], "jk"[: right.ndim]
        result_axes = (left_axes + right_axes).replace("j", "")
        result = np.asarray(np.einsum(f"{left_axes},{right_axes}->{result_axes}", result, right))
    return result


def erf(x: float) -> float:
    """Return the error function, with full relative accuracy near 0."""
    if abs(x) >= 0.75:
        return math.copysign(1.0 - erfc(abs(x)), x)
    term = total = x  # 2/sqrt(pi) e^(-x^2) sum of (2 x^2)^n x / (2n+1)!!
    n = 1
    while abs(term) > 1e-18 * abs(total):
        term *= 2.0 * x * x / (2 * n + 1)
        total += term
        n += 1
    return 2.0 / math.sqrt(math.pi) * exp(-x * x) * total


def power(base: float, exponent: float) -> float | complex:
    """Return the correctly rounded power of two finite numbers, in about 20 us.

    The result is complex if ``base**exponent`` is.
    """
    estimate: float | complex = base**exponent
    if isinstance(estimate, complex) or base == 0.0 or estimate == 0.0:
        return estimate
    if not math.isfinite(estimate):
        return estimate
    digits = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    return float(digits.power(Decimal(base), Decimal(exponent)))


def eigen(matrix: ArrayLike) -> tuple[Array, Array]:
    """Return the eigenvalues and eigenvectors of a symmetric matrix.

    Args:
        matrix: (n, n) finite symmetric matrix.

    Returns:
        (n,) ascending eigenvalues, and (n, n) eigenvectors as columns.
    """
    values, vectors = symmetric_eigen(matrix)
    return values, vectors.T
