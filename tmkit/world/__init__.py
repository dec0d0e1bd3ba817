"""The live world: execution in a closed loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmkit._support.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tmkit.world.closed_loop import (
        ClosedLoopEvent as ClosedLoopEvent, ClosedLoopResult as ClosedLoopResult, ClosedLoopStatus as ClosedLoopStatus,
        RemainingActions as RemainingActions, Sensor as Sensor, execute_closed_loop as execute_closed_loop,
    )  # fmt: skip
else:
    __getattr__, __dir__ = lazy_names(__name__)
