"""Tolerances of a start as it is measured: joint limits, overlaps, and objects that do not rest.

A measured joint value, or one of a file with fewer digits than its limits, may be slightly past a
limit. :func:`clamp_to_limits` moves such a value to the limit and logs it, as MoveIt's adapter
``FixStartStateBounds`` (``CheckStartStateBounds`` in MoveIt 2) does.
:func:`tmkit.plan` does so within
:attr:`PlanningOptions.start_limit_tolerance`, :func:`tmkit.motion.search_path` within its default.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.argument_errors import degrees_hint
from tmkit._support.start_tolerances import (
    START_LIMIT_TOLERANCE,
    StartTolerances as StartTolerances,
)
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.robots.manipulator import LIMIT_TOLERANCE
from tmkit.spatial.plain import configuration_numbers

_log = logging.getLogger(__name__)

_METRES_PER_RADIAN = 0.1
"""Tolerance of a prismatic joint [m] for a tolerance of 1 rad."""


def clamp_to_limits(
    scene: SceneGraph,
    q: ArrayLike,
    *,
    joints: Collection[str] | None = None,
    tolerance: float = START_LIMIT_TOLERANCE,
) -> NDArray[np.float64]:
    """Return a configuration with the values that are slightly past a limit at the limit.

    A limit is that of the joint and of all joints that mimic it. Each changed value of more than
    1e-6 is logged as a warning. O(joints log n).

    Args:
        scene: scene with the joints.
        q: (n_joints,) measured configuration [rad or m].
        joints: joints that are clamped and checked. Defaults to all.
        tolerance: largest distance past a limit [rad]; a tenth of it for prismatic joints [m].

    Returns:
        (n_joints,) configuration.

    Raises:
        ConfigurationError: if a joint is past a limit by more than the tolerance, or ``q`` has the
            wrong length.
        UnknownNameError: if a joint does not exist.
    """
    names = scene.joint_names
    for joint in joints or ():
        if joint not in names:
            raise UnknownNameError.of("joint", joint, names)
    clamped = np.array(configuration_numbers(scene, q))
    scene.at(clamped)  # raises for a wrong length and for numbers that are not finite
    for index, (joint, (lower, upper)) in enumerate(zip(names, scene.joint_limits, strict=True)):
        value = float(clamped[index])
        nearest = min(max(value, float(lower)), float(upper))
        if nearest == value or (joints is not None and joint not in joints):
            continue
        is_prismatic = scene.joint(scene.joint_frame(joint)).type == "prismatic"
        unit = "m" if is_prismatic else "rad"
        limit = tolerance * (_METRES_PER_RADIAN if is_prismatic else 1.0)
        excess = abs(value - nearest)
        message = (
            f"joint '{joint}' starts at {value:.6g}, outside its limits from {lower:.6g} to"
            f" {upper:.6g} by {excess:.2g} {unit}"
        )
        if excess > max(limit, LIMIT_TOLERANCE):
            raise ConfigurationError(
                f"{message}, more than the tolerance of {limit:g} {unit} (start_limit_tolerance ="
                f" {tolerance:g}){degrees_hint(value)}",
                joint=joint,
                value=value,
                lower=float(lower),
                upper=float(upper),
            )
        if excess > LIMIT_TOLERANCE:
            _log.warning("%s; it is moved to the limit", message)
        clamped[index] = nearest
    return clamped
