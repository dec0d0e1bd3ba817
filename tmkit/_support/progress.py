"""Progress of long calls, for people and programs.

Functions that may run for seconds take ``on_progress``, a callable that is handed one value now and
then: a :class:`Progress` or a child of it that says more. All have the same four attributes, and
``str(progress)`` is one line for people, so one callback serves every function::

    tmkit.plan(scene, goal="(on a b)", on_progress=print)

Invariants: the callback is called in the thread of the call. What it raises ends the call and
reaches the caller, so a callback may stop the work. What it does otherwise changes no result.
``seconds`` is the one thing here that a clock says.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Progress"]


@dataclass(frozen=True)
class Progress:
    """What is being done.

    Attributes:
        phase: what, in one word.
        step: how many steps are done.
        steps: how many there are; 0 while that is not known.
        seconds: since the call began.
    """

    phase: str
    step: int
    steps: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.phase}: {self.step} of {self.steps}, {self.seconds:.1f} s"
