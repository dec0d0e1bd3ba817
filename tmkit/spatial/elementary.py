"""Elementary functions with the same bits on every CPU, for domains, samplers and planners of your own.

A plan has the same bytes on every machine if everything it is made of has the same bits.
:mod:`math` and BLAS differ in the last bit between CPUs; these functions do not. They take and
return radians, and arrays of float64.

``math.sqrt``, ``math.hypot``, ``np.cross``, ``np.sqrt``, ``np.einsum``, and sums and products of
arrays element by element need no replacement. ``@``, ``np.dot``, ``np.linalg``, ``**``, and the
functions of angles of :mod:`math` and numpy do.
"""

from __future__ import annotations

from tmkit._support.elementary import acos, asin, atan2, cos, dot, exp, norm, norms, product, sin

__all__ = ["acos", "asin", "atan2", "cos", "dot", "exp", "norm", "norms", "product", "sin"]
