"""Batches: entries of planning problems, each for several seeds, and the limits of one attempt.

An entry names where its problems come from: a :class:`ProblemSource`, which is sent to the
processes that plan. One problem of an entry is a *job*.

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
    """What one attempt at a problem may take, and what is done with its plan.

    Attributes:
        tries: attempts at a problem whose process is killed, at least 1; 3 by default.
        seconds: positive seconds after which its process is killed; 600 by default.
        memory_mib: memory that it may allocate, in MiB, at least 1; 4096 by default.
        check: whether plans are validated (:func:`tmkit.tamp.validate_plan`); False by default.
        simulate: whether plans are executed in the simulator; False by default.
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
    """Where the problems of an entry come from; it can be pickled."""

    def problem(self, seed: int) -> tuple[PlanningProblem, PlanningOptions]:
        """Return the problem of a seed and its options; the same for the same seed."""

    @property
    def digest(self) -> str:
        """A text that differs where the problems do."""


@dataclass(frozen=True, eq=False)
class FixedProblem:
    """One problem; only the seed of the search changes.

    Args:
        task: the problem.
        options: the options, whose seed is replaced.
    """

    task: PlanningProblem
    options: PlanningOptions = field(default_factory=PlanningOptions)

    @property
    def is_stateless(self) -> bool:
        """Whether all code that plans is built in, so that processes may plan one problem after the other."""
        task = self.task
        named = (task.domain, task.semantics or "blocks")
        return self.options.task_planner is None and all(
            isinstance(name, str) and is_bare(name) for name in named
        )

    def problem(self, seed: int) -> tuple[PlanningProblem, PlanningOptions]:
        """Return the problem, and the options with the seed."""
        return self.task, replace(self.options, seed=seed)

    @property
    def digest(self) -> str:
        """SHA-256 of what the problem and the options say, in hexadecimal digits."""
        task = self.task
        goals = [
            _scene_text(goal) if isinstance(goal, SceneGraph) else str(goal) for goal in task.goals
        ]
        q = None if task.q is None else np.asarray(task.q).tolist()
        said = [
            _scene_text(task.scene),
            q,
            str(task.domain),
            goals,
            str(task.robots),
            str(task.semantics),
            repr(self.options),
        ]
        return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def _scene_text(scene: SceneGraph) -> str:
    return str(scene.fingerprint)


@dataclass(frozen=True, eq=False)
class BatchEntry:
    """Problems of one kind.

    Args:
        name: what they are called; letters, digits and ``_.-``.
        source: where they come from.
        seeds: numbers of at least 0, one a problem.
        parameters: values that tell this entry from others of the same name, for tables.
    """

    name: str
    source: ProblemSource
    seeds: Sequence[int] = (0,)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name with the parameters, which no other entry of the batch has."""
        said = ",".join(f"{key}={_short(value)}" for key, value in self.parameters.items())
        return f"{self.name}[{said}]" if said else self.name


def _short(value: object) -> str:
    return (
        value if isinstance(value, str) else json.dumps(value, default=str, separators=(",", ":"))
    )


class Job(NamedTuple):
    """One problem of a batch: its number from 0, its key, its entry, and its seed."""

    number: int
    key: str
    entry: BatchEntry
    seed: int


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems to solve.

    Args:
        entries: the entries, with different labels.
        options: of each attempt.

    Raises:
        ConfigurationError: no problem, two entries of one label, or a seed twice in an entry.
    """

    entries: tuple[BatchEntry, ...]
    options: BatchOptions = field(default_factory=BatchOptions)

    def __post_init__(self) -> None:
        labels: set[str] = set()
        for entry in self.entries:
            if entry.label in labels:
                raise ConfigurationError(
                    f"two entries of the batch are called '{entry.label}'; give them other names"
                )
            if len({*entry.seeds}) < len(entry.seeds):
                raise ConfigurationError(f"a seed stands twice in the entry '{entry.label}'")
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
