"""Generators by name: a problem for each seed, of parameters in their ranges or of a hardness from 0 to 1.

What they generate, :mod:`tmkit.batch.generated_problems` defines.
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


def generate(
    name: str,
    *,
    seed: int = 0,
    hardness: float | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> GeneratedProblem:
    """Return a problem.

    Args:
        name: of the generator: ``blocked``, ``clutter``, ``cook``, ``handover``, ``lying``,
            ``mobile``, ``regrasp``, ``scattered``, ``shelf``, ``sussman4``, ``swaps``,
            ``tetromino`` or ``towers``.
        seed: at least 0.
        hardness: 0 to 1, for the parameters that are not given.
        parameters: values of the generator's parameters, by name.

    Raises:
        UnknownNameError: no such generator; the message names the nearest.
        ConfigurationError: a parameter that the generator does not have, or of another type, or
            nothing fits.
    """
    if name not in GENERATORS:
        raise UnknownNameError.of("generator", name, list(GENERATORS))
    if hardness is not None:
        if name not in _HARDNESS:
            raise ConfigurationError(
                f"the generator '{name}' has no hardness; those that have: {', '.join(_HARDNESS)}"
            )
        if not 0.0 <= hardness <= 1.0:
            raise ConfigurationError(f"hardness must be 0 to 1, not {hardness!r}")
        parameters = {**_HARDNESS[name](hardness), **(parameters or {})}
    parameters = {} if parameters is None else parameters
    known = {
        key: found
        for key, found in inspect.signature(GENERATORS[name]).parameters.items()
        if key != "seed"
    }
    for key, value in parameters.items():
        if key not in known:
            hint = did_you_mean(key, list(known))
            raise ConfigurationError(
                f"the generator '{name}' has no parameter '{key}'{hint} (known: {', '.join(known)})"
            )
        wanted = type(known[key].default)
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise ConfigurationError(
                f"'{key}' of the generator '{name}' must be of type {wanted.__name__}, not"
                f" {value!r}"
            )
        low, high = _RANGES.get((name, key), (1e-3, 1.0))
        if wanted in (int, float) and not low <= value <= high:
            raise ConfigurationError(
                f"'{key}' of the generator '{name}' must be {low:g} to {high:g}, not {value!r}"
            )
    if parameters.get("robot", "panda") not in _ARMS:
        raise UnknownNameError.of("robot", parameters["robot"], list(_ARMS))
    return GENERATORS[name](seed=seed, **parameters)


@dataclass(frozen=True, eq=False)
class GeneratorSource:
    """Problems of a generator, another one for each seed, which is that of the search too.

    Args:
        name: of the generator.
        parameters: of the generator, ``hardness`` among them.
        options: options of the search.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    options: PlanningOptions = field(default_factory=PlanningOptions)

    def problem(self, seed: int) -> tuple[PlanningProblem, PlanningOptions]:
        """Return the problem of a seed."""
        made = generate(self.name, seed=seed, parameters=self.parameters)
        problem = PlanningProblem(made.scene, domain=made.domain, goal=made.goal, robots=made.robot)
        return problem, replace(self.options, seed=seed)

    @property
    def is_stateless(self) -> bool:
        """Whether all code that plans is built in, so that processes may plan one problem after the other."""
        return self.options.task_planner is None

    @property
    def digest(self) -> str:
        """The name, the parameters and the options."""
        return json.dumps([self.name, dict(self.parameters), repr(self.options)], sort_keys=True)
