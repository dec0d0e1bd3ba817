"""Conversion of quantities with units to numbers in SI units.

A quantity is an object with a ``magnitude`` and a method ``to(unit)``, as of pint, which is not
imported here. All entries for numbers use this conversion: the compiled core, to which
:func:`si_numbers` is registered, :mod:`tmkit.spatial.plain` and :mod:`tmkit.relations`.

numpy drops the unit of a quantity silently, so the conversion precedes that to an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_KINDS = {
    "": "plain numbers in SI units",
    "1": "a number without a unit",
    "m": "a length in m",
    "rad": "an angle in rad",
    "s": "a time in s",
    "1/s": "a rate in 1/s",
    "m/s": "a velocity in m/s",
    "rad/s": "an angular velocity in rad/s",
    "m/s^2": "an acceleration in m/s^2",
    "rad/s^2": "an angular acceleration in rad/s^2",
    "kg": "a mass in kg",
    "kg*m^2": "a moment of inertia in kg m^2",
    "N": "a force in N",
    "N*m": "a torque in N m",
    "m^2": "a squared length in m^2",
}
"""Descriptions of units in messages."""


class UnitError(ValueError):
    """Quantity of another dimension than that of its argument.

    Attributes:
        argument: name of the argument, or of the entry of it.
        expected: description of the expected dimension and unit.
        received: description of the quantity.
    """

    def __init__(self, what: str, expected: str, received: str) -> None:
        super().__init__(f"{what} must be {expected}, not {received}")
        self.argument, self.expected, self.received = what, expected, received


def si_numbers(values: Any, units: str, what: str) -> Any:
    """Return values, nested as given, with the SI numbers of quantities.

    Args:
        values: numbers, quantities, or nested sequences of them.
        units: unit of all numbers, as ``m``, or of each along the last axis, as ``m m rad``. It is
            ``1`` for numbers without a unit. If it is empty, only quantities without dimension are
            converted, since the unit depends on more than the argument.
        what: name of the argument, for the message.

    Raises:
        UnitError: if a quantity has another dimension.
    """
    if not _has_quantities(values):
        return values
    each = units.split() or [""]
    return _convert(values, each if len({*each}) > 1 else each[:1], what)


def magnitudes(values: Any) -> Any:
    """Return values, nested as given, with the magnitudes of quantities in their own units."""
    if not _has_quantities(values):
        return values
    if isinstance(values, (list, tuple)):
        return [magnitudes(value) for value in values]
    return values.magnitude


def _has_quantities(values: Any) -> bool:
    if not isinstance(values, (list, tuple)):
        return _is_quantity(values)
    return any(not isinstance(value, (float, int)) and _has_quantities(value) for value in values)


def _is_quantity(value: Any) -> bool:
    # Most values are numbers, or arrays of numpy, whose import takes long.
    is_plain = isinstance(value, (float, int)) or type(value).__module__ == "numpy"
    return not is_plain and hasattr(value, "magnitude") and hasattr(value, "to")


def _convert(values: Any, units: Sequence[str], what: str) -> Any:
    """Return converted values; several units belong to the entries of the innermost sequences."""
    if isinstance(values, (list, tuple)):
        return [
            _convert(
                value,
                units if len(units) == 1 or _is_sequence(value) else [units[i % len(units)]],
                what if len(units) == 1 or _is_sequence(value) else f"{what}[{i}]",
            )
            for i, value in enumerate(values)
        ]
    if not _is_quantity(values):
        return values
    if len(units) > 1 and _is_sequence(values):
        return _convert(list(values), units, what)
    try:
        return values.to("dimensionless" if units[0] in ("", "1") else units[0]).magnitude
    except Exception as error:  # the library of units determines the class
        hint = "" if units[0] else "; convert it first, as in quantity.m_as('m')"
        received = _describe(values) + hint
        raise UnitError(what, _KINDS.get(units[0], units[0]), received) from error


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0


def _describe(quantity: Any) -> str:
    """Return a description of the unit and dimension of a quantity."""
    units = str(getattr(quantity, "units", ""))
    dimension = str(getattr(quantity, "dimensionality", ""))
    if units in ("", "dimensionless"):
        return "a quantity without a unit"
    if dimension == "dimensionless":
        return f"a quantity in {units}, without dimension"
    return f"a quantity in {units}" + (f" of dimension {dimension}" if dimension else "")
