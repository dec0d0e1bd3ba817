"""Conversion of input to arrays of plain numbers in SI units.

numpy drops the unit of a quantity silently. Quantities with a dimension are therefore rejected.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.initialization import initialize
from tmkit.errors import SceneError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def plain_numbers(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return numbers as an array of floats.

    Dimensionless quantities of pint are converted.

    Args:
        values: numbers in SI units, of any shape.
        what: name of the values in error messages.

    Raises:
        SceneError: if a value is not a number, or is a quantity with a dimension.
    """
    try:
        return np.asarray(_strip_units(values, what), dtype=float)
    except SceneError:
        raise
    except (TypeError, ValueError):
        hint = "; scene.configuration(values) returns one" if isinstance(values, Mapping) else ""
        raise SceneError(
            f"{what} must be an array of numbers, not {reprlib.repr(values)}{hint}"
        ) from None


def plain_number(value: float, what: str) -> float:
    """Return one number in SI units.

    Args:
        value: number or dimensionless quantity of pint.
        what: name of the value in error messages.

    Raises:
        SceneError: if the value is not a single number, or is a quantity with a dimension.
    """
    number = plain_numbers(value, what)
    if number.ndim:
        raise SceneError(f"{what} must be one number, not an array of shape {number.shape}")
    return float(number)


def convert_fields(owner: DataclassInstance) -> None:
    """Convert the quantities in the fields of a dataclass to plain numbers, in place.

    Raises:
        SceneError: if a field has a quantity with a dimension.
    """
    for name in owner.__dataclass_fields__:
        value = getattr(owner, name)
        if hasattr(value, "magnitude") or (
            isinstance(value, tuple) and any(hasattr(v, "magnitude") for v in value)
        ):
            number = _strip_units(value, name)
            initialize(owner, **{name: tuple(number) if isinstance(value, tuple) else number})


def read_only(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make an array read-only and return it."""
    values.flags.writeable = False
    return values


def _strip_units(values: Any, what: str) -> Any:
    """Return values, nested as given, with the numbers of dimensionless quantities."""
    if isinstance(values, (float, int, np.ndarray)):
        return values
    if isinstance(values, (list, tuple)):
        return [_strip_units(value, what) for value in values]
    if not hasattr(values, "magnitude") or not hasattr(values, "dimensionless"):
        return values
    if values.dimensionless:
        return values.to("dimensionless").magnitude
    raise SceneError(
        f"{what} must be plain numbers in SI units, not a quantity in {values.units}; convert it"
        " first, as in quantity.m_as('m')"
    )
