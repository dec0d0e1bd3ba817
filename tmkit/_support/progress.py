"""Progress of long calls.

Functions that may run for seconds take ``on_progress``, a callback that receives a
:class:`Progress` or a subclass with more attributes at intervals. All have the same four
attributes, and ``str(progress)`` is one line of text, so one callback serves every function::

    tmkit.plan(scene, goal="(on a b)", on_progress=print)

Invariants: the callback runs in the thread of the call. An error of the callback ends the call and
reaches the caller, so a callback may stop the work. Otherwise, the callback does not change the
result. Only ``seconds`` depends on a clock.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Progress"]


@dataclass(frozen=True)
class Progress:
    """Progress of a call.

    Attributes:
        phase: name of the current phase, one word.
        step: number of completed steps.
        steps: number of all steps; 0 if unknown.
        seconds: time since the start of the call [s].
    """

    phase: str
    step: int
    steps: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.phase}: {self.step} of {self.steps}, {self.seconds:.1f} s"
