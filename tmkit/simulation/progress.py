"""What a simulation tells while it runs; see :mod:`tmkit.progress`."""

from __future__ import annotations

from dataclasses import dataclass

from tmkit.progress import Progress

__all__ = ["SimulationProgress"]


@dataclass(frozen=True)
class SimulationProgress(Progress):
    """What is being played.

    Attributes:
        phase: ``simulate``.
        step: steps of the plan played so far.
        steps: steps of the plan.
        action: the action that is played next; empty while everything settles at the end.
        simulated_seconds: of the world that is simulated.
    """

    action: str = ""
    simulated_seconds: float = 0.0

    def __str__(self) -> str:
        if not self.action:
            return f"simulating, {self.seconds:.1f} s: waiting until everything has settled"
        return f"simulating, {self.seconds:.1f} s: step {self.step + 1} of {self.steps}: {self.action}"
