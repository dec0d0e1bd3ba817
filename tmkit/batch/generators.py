"""Generation of random problems by name, with checked parameters or a hardness from 0 to 1.

:mod:`tmkit.batch.generated_problems` defines the generators.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tmkit._support.source_location import did_you_mean
from tmkit.batch.generated_problems import GENERATORS, GeneratedProblem
from tmkit.errors import ConfigurationError, UnknownNameError
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem

_ARMS = ("panda", "iiwa", "baxter")
"""Values of the parameter ``robot``."""

_RANGES: Mapping[tuple[str, str], tuple[float, float]] = {
    ("clutter", "side"): (1, 5),
    ("cook", "blocks"): (1, 20),
    ("handover", "objects"): (1, 4),
    ("handover", "wall"): (0.01, 0.5),
    ("lying", "cylinders"): (1, 6),
    ("scattered", "objects"): (1, 24),
    ("scattered", "size"): (0.03, 0.07),
    ("shelf", "blocks"): (1, 6),
    ("swaps", "blocks"): (2, 16),
    ("towers", "blocks"): (2, 25),
}
"""Smallest and largest values of numeric parameters, by generator and parameter."""

_HARDNESS: Mapping[str, Callable[[float], dict[str, Any]]] = {
    "blocked": lambda h: {"gap": 0.03 - 0.02 * h},
    "clutter": lambda h: {"side": 3 + round(2 * h), "gap": 0.04 - 0.02 * h},
    "cook": lambda h: {"blocks": 1 + round(19 * h)},
    "handover": lambda h: {"objects": 1 + round(3 * h), "wall": 0.1 + 0.3 * h},
    "lying": lambda h: {"cylinders": 2 + round(4 * h)},
    "scattered": lambda h: {"objects": 3 + round(9 * h), "gap": 0.04 - 0.03 * h},
    "shelf": lambda h: {"blocks": 1 + round(5 * h)},
    "swaps": lambda h: {"blocks": 2 + round(14 * h)},
    "towers": lambda h: {"blocks": 2 + round(23 * h)},
}
"""Functions from a hardness in [0, 1] to parameters, by generator."""


def generate(
    name: str,
    *,
    seed: int = 0,
    hardness: float | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> GeneratedProblem:
    """Return a random problem.

    Args:
        name: name of the generator: ``blocked``, ``clutter``, ``cook``, ``handover``, ``lying``,
            ``mobile``, ``regrasp``, ``scattered``, ``shelf``, ``sussman4``, ``swaps``,
            ``tetromino`` or ``towers``.
        seed: seed of the problem, at least 0.
        hardness: difficulty in [0, 1], which determines the omitted parameters.
        parameters: values of the generator's parameters, by name.

    Raises:
        UnknownNameError: if the generator is unknown; the message has the nearest name.
        ConfigurationError: if a parameter is unknown, has another type or is out of range, or the
            objects do not fit on the table.
    """
    if name not in GENERATORS:
        raise UnknownNameError.of("generator", name, list(GENERATORS))
    if hardness is not None:
        if name not in _HARDNESS:
            raise ConfigurationError(
                f"the generator '{name}' has no hardness; generators with a hardness:"
                f" {', '.join(_HARDNESS)}"
            )
        if not 0.0 <= hardness <= 1.0:
            raise ConfigurationError(f"hardness must be 0 to 1, not {hardness!r}")
        parameters = {**_HARDNESS[name](hardness), **(parameters or {})}
    parameters = {} if parameters is None else parameters
    signature = dict(inspect.signature(GENERATORS[name]).parameters)
    del signature["seed"]
    for key, value in parameters.items():
        if key not in signature:
            hint = did_you_mean(key, list(signature))
            names = ", ".join(signature)
            raise ConfigurationError(
                f"the generator '{name}' has no parameter '{key}'{hint} (known: {names})"
            )
        _check_value(name, key, value, type(signature[key].default))
    if parameters.get("robot", "panda") not in _ARMS:
        raise UnknownNameError.of("robot", parameters["robot"], list(_ARMS))
    return GENERATORS[name](seed=seed, **parameters)


def _check_value(name: str, key: str, value: object, expected_type: type) -> None:
    """Check the type and range of a parameter.

    Args:
        name: name of the generator.
        key: name of the parameter.
        value: value of the parameter.
        expected_type: type of the default value. An integer is valid for a float.

    Raises:
        ConfigurationError: if the type or the range is wrong.
    """
    is_integer_for_float = expected_type is float and type(value) is int
    if type(value) is not expected_type and not is_integer_for_float:
        raise ConfigurationError(
            f"'{key}' of the generator '{name}' must be of type {expected_type.__name__}, not"
            f" {value!r}"
        )
    low, high = _RANGES.get((name, key), (1e-3, 1.0))
    if isinstance(value, int | float) and not isinstance(value, bool) and not low <= value <= high:
        raise ConfigurationError(
            f"'{key}' of the generator '{name}' must be {low:g} to {high:g}, not {value!r}"
        )


@dataclass(frozen=True, eq=False)
class GeneratorSource:
    """Source of the problems of a generator, with one problem for each seed.

    Args:
        name: name of the generator.
        parameters: parameters of the generator, which may include ``hardness``.
        options: planning options, whose seed is replaced by the seed of the problem.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    options: PlanningOptions = field(default_factory=PlanningOptions)

    def problem(self, seed: int) -> tuple[PlanningProblem, PlanningOptions]:
        """Return the problem of a seed, and the options with the seed."""
        generated = generate(self.name, seed=seed, parameters=self.parameters)
        problem = PlanningProblem(
            generated.scene, domain=generated.domain, goal=generated.goal, robots=generated.robot
        )
        return problem, replace(self.options, seed=seed)

    @property
    def is_stateless(self) -> bool:
        """True if only built-in code plans, so that a process may plan several problems in turn."""
        return self.options.task_planner is None

    @property
    def digest(self) -> str:
        """Text with the name, the parameters and the options."""
        return json.dumps([self.name, dict(self.parameters), repr(self.options)], sort_keys=True)
