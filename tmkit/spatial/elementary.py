"""Elementary functions with bitwise equal results on every CPU, for custom domains and planners.

A plan has the same bytes on every machine only if all its computations have the same bits.
:mod:`math` and BLAS differ in the last bit between CPUs, and these functions do not. Angles are
in [rad]; arrays are of float64.

``math.sqrt``, ``math.hypot``, ``np.cross``, ``np.sqrt``, ``np.einsum``, and elementwise sums and
products of arrays need no replacement. ``@``, ``np.dot``, ``np.linalg``, ``**``, and the
functions of angles of :mod:`math` and numpy need one.
"""

from __future__ import annotations

from tmkit._support.elementary import acos, asin, atan2, cos, dot, exp, norm, norms, product, sin

__all__ = ["acos", "asin", "atan2", "cos", "dot", "exp", "norm", "norms", "product", "sin"]
