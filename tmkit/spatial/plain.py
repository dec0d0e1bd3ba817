"""Arrays of plain numbers: what carries a unit would lose it in numpy, and is refused."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.initialization import initialize
from tmkit.errors import SceneError


def plain_numbers(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return numbers as an array; pint's dimensionless quantities are converted, others are a SceneError."""
    try:
        return np.asarray(_plain(values, what), dtype=float)
    except SceneError:
        raise
    except (TypeError, ValueError):
        hint = "; scene.configuration(values) returns one" if isinstance(values, Mapping) else ""
        raise SceneError(
            f"{what} must be an array of numbers, not {reprlib.repr(values)}{hint}"
        ) from None


def plain_number(value: float, what: str) -> float:
    """Return one number in SI units, or raise SceneError; a quantity without dimension is converted."""
    made = plain_numbers(value, what)
    if made.ndim:
        raise SceneError(f"{what} must be one number, not an array of shape {made.shape}")
    return float(made)


def check_fields(owner: Any) -> None:
    """Convert or refuse the quantities in the fields of a dataclass, as :func:`plain_numbers` does."""
    for name in owner.__dataclass_fields__:
        value = getattr(owner, name)
        if hasattr(value, "magnitude") or (
            isinstance(value, tuple) and any(hasattr(v, "magnitude") for v in value)
        ):
            made = _plain(value, name)
            initialize(owner, **{name: tuple(made) if isinstance(value, tuple) else made})


def read_only(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an array that from now on cannot be changed."""
    values.flags.writeable = False
    return values


def _plain(values: Any, what: str) -> Any:
    if isinstance(values, (float, int, np.ndarray)):
        return values
    if isinstance(values, (list, tuple)):
        return [_plain(value, what) for value in values]
    if not hasattr(values, "magnitude") or not hasattr(values, "dimensionless"):
        return values
    if values.dimensionless:
        return values.to("dimensionless").magnitude
    raise SceneError(
        f"{what} must be plain numbers in SI units, not a quantity in {values.units}; convert it"
        " first, as in quantity.m_as('m')"
    )
