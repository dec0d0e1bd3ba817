"""What a simulation tells while it runs; see :mod:`tmkit._support.progress`."""

from __future__ import annotations

from dataclasses import dataclass

from tmkit._support.progress import Progress

_PHASES = {
    "build": "loading the scene",
    "settle": "waiting until everything has settled",
    "write": "writing film and picture",
}


@dataclass(frozen=True)
class SimulationProgress(Progress):
    """What is being simulated.

    Attributes:
        phase: ``build`` while the engine loads the scene, ``simulate``, ``settle`` after the last action, ``write``
            while film and picture are written.
        step: steps of the plan executed so far.
        steps: steps of the plan.
        action: the action that is being executed; empty in the other phases.
        simulated_seconds: of the world that is simulated.
    """

    action: str = ""
    simulated_seconds: float = 0.0

    def __str__(self) -> str:
        what = _PHASES.get(self.phase) or f"step {self.step + 1} of {self.steps}: {self.action}"
        return f"simulating, {self.seconds:.1f} s: {what}, {self.simulated_seconds:.1f} s simulated"
