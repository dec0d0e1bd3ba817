"""Planning time by stage.

The planner marks a stage with :meth:`StageClock.phase`. Stages nest, and each second counts for the
innermost one. The rest is *bookkeeping*: the search itself.

Invariants: the times of all stages and of bookkeeping add up to the total. No decision of the
    planner depends on the clock.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, TypeVar, cast


class PlanningStage(StrEnum):
    """Stage of a planning run."""

    TASK = "task planning"
    INVERSE_KINEMATICS = "inverse kinematics"
    STRAIGHT_LINES = "straight lines"
    PATH_SEARCH = "path search"
    COLLISION = "collision worlds and checks"
    SEMANTICS = "domain semantics"


class StageClock:
    """Accumulator of planning time by stage."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PlanningStage, 0.0)
        # Seconds within nested stages, for each open stage.
        self._nested_seconds: list[float] = []

    @contextmanager
    def phase(self, stage: PlanningStage) -> Iterator[None]:
        """Count the time within the block for a stage, without the time of nested stages."""
        start = time.perf_counter()
        self._nested_seconds.append(0.0)
        try:
            yield
        finally:
            duration = time.perf_counter() - start
            self._seconds[stage] += duration - self._nested_seconds.pop()
            if self._nested_seconds:
                self._nested_seconds[-1] += duration

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by the stage's name, in the order of :class:`PlanningStage`."""
        return {stage.value: seconds for stage, seconds in self._seconds.items()}


_Method = TypeVar("_Method", bound=Callable[..., Any])


class StageTimer:
    """Decorator that counts the time of a method for a stage of the object's ``clock``.

    Args:
        stage: stage of the method.
    """

    def __init__(self, stage: PlanningStage) -> None:
        self._stage = stage

    def __call__(self, method: _Method) -> _Method:
        """Return the method, measured by the clock."""
        stage = self._stage

        @functools.wraps(method)
        def measure(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            with self.clock.phase(stage):
                return method(self, *args, **kwargs)

        return cast(_Method, measure)
