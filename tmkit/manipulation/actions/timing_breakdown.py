"""Time of planning by phase: a clock for the phases of a run.

The planner says which phase it is in with :meth:`StageClock.phase`; phases nest, and each second
belongs to the innermost. What belongs to none is *bookkeeping*: the search itself.

Invariants: the times of all phases and of bookkeeping add up to the total; the clock is never read
    to decide anything.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, TypeVar, cast


class PlanningStage(StrEnum):
    """What a planning run spends its time on."""

    TASK = "task planning"
    INVERSE_KINEMATICS = "inverse kinematics"
    STRAIGHT_LINES = "straight lines"
    PATH_SEARCH = "path search"
    COLLISION = "collision worlds and checks"
    SEMANTICS = "domain semantics"


class StageClock:
    """Adds up seconds by phase."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PlanningStage, 0.0)
        # of the phases that are open: seconds that belong to phases within them
        self._inner: list[float] = []

    @contextmanager
    def phase(self, phase: PlanningStage) -> Iterator[None]:
        """Count the time within the block for a phase, without that of phases within it."""
        began = time.perf_counter()
        self._inner.append(0.0)
        try:
            yield
        finally:
            spent = time.perf_counter() - began
            self._seconds[phase] += spent - self._inner.pop()
            if self._inner:
                self._inner[-1] += spent

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by the phase's name, in the order of :class:`PlanningStage`."""
        return {phase.value: seconds for phase, seconds in self._seconds.items()}


_Method = TypeVar("_Method", bound=Callable[..., Any])


def timed(phase: PlanningStage) -> Callable[[_Method], _Method]:
    """Return a decorator that counts the time of a method of an object with a ``clock`` for a phase."""

    def decorate(method: _Method) -> _Method:
        @functools.wraps(method)
        def counted(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            with self.clock.phase(phase):
                return method(self, *args, **kwargs)

        return cast(_Method, counted)

    return decorate
