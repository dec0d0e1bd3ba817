"""Batches of planning problems, their entries with seeds, and the limits of an attempt.

Each entry has a :class:`ProblemSource`, which is sent to the processes that plan. One problem of an
entry is a *job*.

Invariants: jobs have different keys; equal batches have jobs of equal numbers, keys and digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from tmkit._support.data import is_bare
from tmkit._support.options import CheckedOptions, option
from tmkit.errors import ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.problem import PlanningProblem


@dataclass(frozen=True)
class BatchOptions(CheckedOptions):
    """Limits of an attempt at a problem, and checks of its plan.

    Attributes:
        tries: number of attempts at a problem whose process is killed, at least 1.
        seconds: positive time after which the process is killed [s].
        memory_mib: memory that the process may allocate, at least 1 [MiB].
        check: validate plans (:func:`tmkit.tamp.validate_plan`).
        simulate: execute plans in the simulator.
    """

    tries: int = option(3, "Attempts at a problem whose process is killed.", least=1)
    seconds: float = option(
        600.0,
        "Seconds after which a process is killed.",
        type=float,
        unit="seconds",
        includes_least=False,
    )
    memory_mib: int = option(4096, "Memory that a process may allocate, in MiB.", least=1)
    check: bool = option(False, "Validate the plans.", type=bool)
    simulate: bool = option(False, "Execute the plans in the simulator.", type=bool)


class ProblemSource(Protocol):
    """Source of the problems of an entry; it can be pickled."""

    def problem(self, seed: int) -> tuple[PlanningProblem, PlanningOptions]:
        """Return the problem of a seed and its options; deterministic in the seed."""

    @property
    def digest(self) -> str:
        """Text that differs between sources of different problems."""


@dataclass(frozen=True, eq=False)
class FixedProblem:
    """Source with a single problem, of which only the seed of the search varies.

    Args:
        task: problem.
        options: planning options, whose seed is replaced.
    """

    task: PlanningProblem
    options: PlanningOptions = field(default_factory=PlanningOptions)

    @property
    def is_stateless(self) -> bool:
        """True if only built-in code plans, so that a process may plan several problems in turn."""
        task = self.task
        return self.options.task_planner is None and all(
            isinstance(name, str) and is_bare(name)
            for name in (task.domain, task.semantics or "blocks")
        )

    def problem(self, seed: int) -> tuple[PlanningProblem, PlanningOptions]:
        """Return the problem, and the options with the seed."""
        return self.task, replace(self.options, seed=seed)

    @property
    def digest(self) -> str:
        """SHA-256 of the problem and the options, in hexadecimal digits."""
        task = self.task
        goals = [
            _scene_text(goal) if isinstance(goal, SceneGraph) else str(goal) for goal in task.goals
        ]
        q = None if task.q is None else np.asarray(task.q).tolist()
        content = [
            _scene_text(task.scene),
            q,
            str(task.domain),
            goals,
            str(task.robots),
            str(task.semantics),
            repr(self.options),
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _scene_text(scene: SceneGraph) -> str:
    return str(scene.fingerprint)


@dataclass(frozen=True, eq=False)
class BatchEntry:
    """Problems of one kind.

    Args:
        name: name of letters, digits and ``_.-``.
        source: source of the problems.
        seeds: seeds of at least 0, one a problem.
        parameters: values that distinguish entries of the same name in tables.
    """

    name: str
    source: ProblemSource
    seeds: Sequence[int] = (0,)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name with the parameters, unique in the batch."""
        text = ",".join(f"{key}={_format(value)}" for key, value in self.parameters.items())
        return f"{self.name}[{text}]" if text else self.name


def _format(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, default=str, separators=(",", ":"))


class Job(NamedTuple):
    """Problem of a batch, with its number from 0, key, entry and seed."""

    number: int
    key: str
    entry: BatchEntry
    seed: int


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems to solve.

    Args:
        entries: entries with different labels.
        options: limits and checks of each attempt.

    Raises:
        ConfigurationError: if there is no problem, two entries have the same label, or an entry
            has a seed twice.
    """

    entries: tuple[BatchEntry, ...]
    options: BatchOptions = field(default_factory=BatchOptions)

    def __post_init__(self) -> None:
        labels: set[str] = set()
        for entry in self.entries:
            if entry.label in labels:
                raise ConfigurationError(
                    f"two entries of the batch have the name '{entry.label}'; rename one of them"
                )
            if len({*entry.seeds}) < len(entry.seeds):
                raise ConfigurationError(f"the entry '{entry.label}' has a seed twice")
            labels.add(entry.label)
        if not len(self):
            raise ConfigurationError("the batch has no problem")

    def __len__(self) -> int:
        return sum(len(entry.seeds) for entry in self.entries)

    def jobs(self) -> Iterator[Job]:
        """Yield all problems in order."""
        number = 0
        for entry in self.entries:
            for seed in entry.seeds:
                yield Job(number, f"{entry.label}/{seed}", entry, seed)
                number += 1
