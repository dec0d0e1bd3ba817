"""The configuration that ``--start`` gives: joint values in a JSON or .tmp file, or on the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tmkit._support.data import is_bare
from tmkit.cli.json_files import read_json_file
from tmkit.errors import ConfigurationError, FileFormatError, UnknownNameError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tmkit.graph import SceneGraph


def start_configuration(scene: SceneGraph, robots: Sequence[str], start: str | None) -> NDArray[np.float64] | None:
    """Return the configuration (n_joints,) of ``--start``; joints that it omits are at the arms' ready configuration.

    Args:
        scene: the scene.
        robots: names or files of the arms.
        start: ``joint=number,...``, or a file; None returns None.

    Raises:
        UnknownNameError: a joint that the scene does not have.
    """
    if start is None:
        return None
    from tmkit.robots import find_manipulators, home_configuration

    values = _tmp_values(start, scene) if "=" not in start and start.endswith(".tmp") else _start_values(start)
    for joint in values:
        if joint not in scene.joint_names:
            where = "--start" if "=" in start else f"--start {start}"
            raise UnknownNameError.of("joint", joint, scene.joint_names, where=where)
    return scene.configuration(values, base=home_configuration(find_manipulators(robots, scene), scene))


def _tmp_values(start: str, scene: SceneGraph) -> dict[str, float]:
    """Return where the first motion of a plan file of the original begins."""
    from tmkit._support.source_location import did_you_mean
    from tmkit.formats import first_configuration, read_tmp

    motion, values = first_configuration(read_tmp(start))
    for joint, place in zip(motion.joints, motion.joint_places, strict=True):
        if joint not in scene.joint_names:
            raise place.error(f"the scene has no joint '{joint}'{did_you_mean(joint, scene.joint_names)}")
    return values


def _start_values(start: str) -> dict[str, float]:
    as_text = "=" in start or (is_bare(start) and not Path(start).exists())
    return joint_values(start, option="--start") if as_text else _read_start_file(Path(start))


def joint_values(text: str, *, option: str) -> dict[str, float]:
    """Parse ``joint=number,...``, radians or metres by joint.

    Raises:
        ConfigurationError: the text has another form, or names a joint twice; the message begins with the option.
    """
    values: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (text.strip() for text in part.partition("="))
        if name in values:
            raise ConfigurationError(f"{option}: joint '{name}' is given twice", joint=name)
        try:
            values[name] = float(number)
        except ValueError:
            raise ConfigurationError(f"{option}: '{part}' is not of the form joint=number", joint=name) from None
    return values


def _read_start_file(path: Path) -> dict[str, float]:
    document = read_json_file(path, what="start")
    if not isinstance(document, dict) or not all(_is_number(value) for value in document.values()):
        raise FileFormatError.at(path, 'must be an object of finite numbers by joint name, as {"joint": 0.1}')
    return {name: float(value) for name, value in document.items()}


def _is_number(value: object) -> bool:
    # An integer of hundreds of digits is no joint value, and math.isfinite cannot say so.
    largest = sys.float_info.max
    return isinstance(value, int | float) and not isinstance(value, bool) and -largest <= value <= largest
