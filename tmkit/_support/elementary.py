"""Sine, cosine and their kind, products and lengths, with the same bits on every CPU.

What :mod:`math` answers comes from the C library, and what ``@``, ``np.dot`` and ``np.linalg``
answer from BLAS and LAPACK. They have variants for kinds of CPUs, with fused products or without,
in this order or that, which differ in the last bit; and a plan depends on every bit of every pose.
So all parts of a plan are computed with these functions, by the core or by numpy's own sums and
products, which IEEE 754 rounds in one way.

Harmless, and so not here, are ``math.sqrt``, ``math.hypot`` and ``math.radians``; of numpy sums,
products element by element, ``np.cross``, ``np.sqrt`` and ``np.einsum``. Powers of floats are not:
``x**2`` calls the C library too.
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
    """Return the angle of a cosine from -1 to 1, in radians, right to two units in the last place."""
    return atan2(math.sqrt((1.0 - cosine) * (1.0 + cosine)), cosine)


def asin(sine: float) -> float:
    """Return the angle of a sine from -1 to 1, in radians, right to two units in the last place."""
    return atan2(sine, math.sqrt((1.0 - sine) * (1.0 + sine)))


def circle(angles: ArrayLike) -> Array:
    """Return cosines and sines (n, 2) of angles (n,) in radians: points of the unit circle."""
    return np.array(
        [[cos(angle), sin(angle)] for angle in np.asarray(angles, dtype=float).tolist()]
    ).reshape(-1, 2)


def dot(a: ArrayLike, b: ArrayLike) -> float:
    """Return the scalar product of two vectors (n,).

    Args:
        a: (n,) each.
        b: (n,) each.
    """
    return float(np.add.reduce(np.multiply(a, b)))


def norm(vector: ArrayLike) -> float:
    """Return the length of a vector (n,)."""
    return math.sqrt(dot(vector, vector))


def norms(vectors: ArrayLike) -> Array:
    """Return the lengths (...) of vectors (..., n)."""
    return np.asarray(np.sqrt(np.sum(np.square(vectors), axis=-1)))


def product(*factors: ArrayLike) -> Array:
    """Return the product of matrices, or of matrices and a vector, from the left to the right: what ``@`` stands for.

    Each is (m, n) or (n,); a vector counts as a row before a matrix and as a column behind one, as
    for ``@``. Two vectors give a number, as an array without axes; :func:`dot` gives it as a float.
    """
    result = np.asarray(factors[0], dtype=float)
    for factor in factors[1:]:
        right = np.asarray(factor, dtype=float)
        left_axes, right_axes = "ij"[2 - result.ndim :], "jk"[: right.ndim]
        free = (left_axes + right_axes).replace("j", "")
        result = np.asarray(np.einsum(f"{left_axes},{right_axes}->{free}", result, right))
    return result


def erf(x: float) -> float:
    """Return the error function, also where it is tiny."""
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
    """Return a power of finite numbers, rounded once, in some 20 us; complex where ``base**exponent`` is."""
    roughly: float | complex = base**exponent
    if isinstance(roughly, complex) or base == 0.0 or roughly == 0.0 or not math.isfinite(roughly):
        return roughly
    digits = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    return float(digits.power(Decimal(base), Decimal(exponent)))


def eigen(matrix: ArrayLike) -> tuple[Array, Array]:
    """Return eigenvalues (n,), ascending, and eigenvectors as columns (n, n) of a finite symmetric matrix (n, n)."""
    values, vectors = symmetric_eigen(matrix)
    return values, vectors.T
