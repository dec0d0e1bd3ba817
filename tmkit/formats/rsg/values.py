"""Values of RSG-DSL: quantities in SI units, time stamps, poses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tmkit._support.source_location import Note, SourceLocation, did_you_mean, locate_errors
from tmkit.errors import SceneError
from tmkit.formats.rsg.grammar import Name, Quantity, numbers_in
from tmkit.spatial import Pose
from tmkit.spatial.converters import nearest_rotation

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_ROTATION_ERROR = 0.01
"""Largest distance of a matrix to the nearest rotation."""

# Factor and divisor are separate, so 5 cm is exactly 0.05 m. The long names are from the original.
UNITS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "length": {
        "nm": (1, 1e9),
        "um": (1, 1e6),
        "mm": (1, 1e3),
        "cm": (1, 100),
        "dm": (1, 10),
        "m": (1, 1),
        "km": (1e3, 1),
        "NanoMeter": (1, 1e9),
        "MicroMeter": (1, 1e6),
        "MilliMeter": (1, 1e3),
        "CentiMeter": (1, 100),
        "DeciMeter": (1, 10),
        "Meter": (1, 1),
        "KiloMeter": (1e3, 1),
    },
    "time": {
        "ns": (1, 1e9),
        "us": (1, 1e6),
        "ms": (1, 1e3),
        "s": (1, 1),
        "min": (60, 1),
        "h": (3600, 1),
        "d": (86400, 1),
        "NanoSecond": (1, 1e9),
        "MicroSecond": (1, 1e6),
        "MilliSecond": (1, 1e3),
        "Second": (1, 1),
        "Minute": (60, 1),
        "Hour": (3600, 1),
        "Day": (86400, 1),
    },
    "frequency": {"Hz": (1, 1), "kHz": (1e3, 1), "Hertz": (1, 1), "KiloHertz": (1e3, 1)},
}


def convert_to_si(value: float, unit: str, dimension: str, place: SourceLocation) -> float:
    """Return a value in the SI unit of its dimension [m], [s] or [Hz].

    Args:
        value: value in ``unit``.
        unit: name of the unit.
        dimension: ``length``, ``time`` or ``frequency``.
        place: location for errors.

    Raises:
        FileFormatError: if the unit is unknown or of another dimension.
    """
    factors = UNITS[dimension]
    if unit not in factors:
        other_dimension = next((kind for kind, units in UNITS.items() if unit in units), None)
        fault = (
            f"'{unit}' is a unit of {other_dimension}"
            if other_dimension
            else f"unknown unit '{unit}'"
        )
        raise place.error(f"{fault}, expected one of {dimension}{did_you_mean(unit, factors)}")
    factor, divisor = factors[unit]
    return value * factor / divisor


def si_quantity(quantity: Quantity, dimension: str, place: SourceLocation) -> float:
    """Return a quantity in the SI unit of a dimension."""
    return convert_to_si(quantity.value, quantity.unit.text, dimension, place)


def stamp_in_seconds(value: Name, place: SourceLocation) -> float:
    """Return the time of ``TimeStamp ( number unit )`` [s]."""
    numbers = numbers_in(value.text)
    if len(numbers) != 1 or not value.text.startswith("TimeStamp"):
        raise place.error(f"expected 'TimeStamp ( number unit )', received '{value.text[:40]}'")
    ((number, unit),) = numbers
    return convert_to_si(number, unit or "s", "time", place)


def pose_from_value(value: Name, place: SourceLocation, *, note: Note) -> Pose:
    """Return the pose of a matrix or of ``Pose ( position, quaternion )``."""
    rows = [
        numbers_in(row) for row in re.findall(r"\[([^\]]*)\]", re.sub(r"//[^\n]*", "", value.text))
    ]
    if value.text.startswith("Pose"):
        if [len(row) for row in rows] != [3, 4]:
            raise place.error("expected 'Pose ( [x, y, z unit], [qx, qy, qz, qw] )'")
        unit = rows[0][2][1] or "m"
        with locate_errors(place):
            return Pose(
                [convert_to_si(number, unit, "length", place) for number, _ in rows[0]],
                [n for n, _ in rows[1]],
            )
    if not value.text.startswith("Homogeneous") or [len(row) for row in rows] != [4] * 4:
        shape = ", ".join(str(len(row)) for row in rows) or "none"
        raise place.error(
            f"expected a matrix of 4 rows with 4 numbers each, received rows of {shape}"
        )
    last = [number for number, _ in rows[3]]
    if last == [0.0] * 4:
        note(place, "the last row of the matrix is [0, 0, 0, 0], and is read as [0, 0, 0, 1]")
    elif last != [0.0, 0.0, 0.0, 1.0]:
        raise place.error(f"the last row of the matrix must be [0, 0, 0, 1], not {last}")
    translation = [convert_to_si(row[3][0], row[3][1] or "m", "length", place) for row in rows[:3]]
    rotation = [[number for number, _ in row[:3]] for row in rows[:3]]
    try:
        return Pose.from_rotation_matrix(translation, rotation)
    except SceneError:  # not a rotation within the rounding of six digits
        with locate_errors(place):
            nearest = nearest_rotation(rotation, tolerance=_MAX_ROTATION_ERROR)
            note(
                place,
                f"the matrix differs from a rotation by {nearest.distance:.2g}; the nearest is"
                " taken",
            )
            return Pose.from_rotation_matrix(translation, nearest.rotation)
