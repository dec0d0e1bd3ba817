"""Conversion of input to arrays of plain numbers in SI units.

Quantities with a unit, as of pint, are converted by :mod:`tmkit._support.units`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.initialization import initialize
from tmkit._support.units import UnitError, si_numbers
from tmkit.errors import SceneError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from tmkit._core import SceneGraph


def plain_numbers(values: ArrayLike, what: str, unit: str = "") -> NDArray[np.float64]:
    """Return numbers as an array of floats in SI units.

    Args:
        values: numbers or quantities, of any shape.
        what: name of the values in error messages.
        unit: SI unit of all numbers, as ``m``, or of each along the last axis, as ``m m rad``; see
            :func:`~tmkit._support.units.si_numbers`.

    Raises:
        SceneError: if a value is not a number, or is a quantity of another dimension.
    """
    try:
        return np.asarray(si_numbers(values, unit, what), dtype=float)
    except UnitError as error:
        raise SceneError(str(error)) from None
    except (TypeError, ValueError):
        hint = "; scene.configuration(values) returns one" if isinstance(values, Mapping) else ""
        raise SceneError(
            f"{what} must be an array of numbers, not {reprlib.repr(values)}{hint}"
        ) from None


def plain_number(value: float, what: str, unit: str = "") -> float:
    """Return one number in its SI unit.

    Args:
        value: number or quantity.
        what: name of the value in error messages.
        unit: SI unit, as ``m``.

    Raises:
        SceneError: if the value is not a single number, or is a quantity of another dimension.
    """
    number = plain_numbers(value, what, unit)
    if number.ndim:
        raise SceneError(f"{what} must be one number, not an array of shape {number.shape}")
    return float(number)


def configuration_numbers(scene: SceneGraph, q: ArrayLike, what: str = "q") -> NDArray[np.float64]:
    """Return joint values as an array of floats [rad or m]. O(joints).

    Args:
        scene: scene with the joints.
        q: (n_joints,) numbers or quantities, or (m, n_joints).
        what: name of the values in error messages.

    Raises:
        SceneError: if a value is not a number, or is a quantity of another dimension than its
            joint.
    """
    is_prismatic = [scene.joint(frame).type == "prismatic" for frame in scene.joint_frames]
    return plain_numbers(q, what, " ".join("m" if slides else "rad" for slides in is_prismatic))


def convert_fields(
    owner: DataclassInstance, units: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Convert the quantities in the fields of a dataclass to numbers in SI units, in place.

    Args:
        owner: instance, in its ``__post_init__``.
        units: SI units of the fields that have one, by name.

    Raises:
        SceneError: if a quantity has another dimension than its field.
    """
    for name in owner.__dataclass_fields__:
        value = getattr(owner, name)
        if hasattr(value, "magnitude") or (
            isinstance(value, (list, tuple)) and any(hasattr(v, "magnitude") for v in value)
        ):
            try:
                number = si_numbers(value, units.get(name, ""), name)
            except UnitError as error:
                raise SceneError(str(error)) from None
            initialize(owner, **{name: tuple(number) if isinstance(value, tuple) else number})


def read_only(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make an array read-only and return it."""
    values.flags.writeable = False
    return values
