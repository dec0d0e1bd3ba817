"""Source of problems whose seed defines a fault in the planning process."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import tmkit as tk
from tmkit.batch.problems import FixedProblem


def tower_problem(goal: str = "(on a b)") -> FixedProblem:
    """Return a problem that takes a moment."""
    scene = tk.load_scene("panda_table", "blocks2")
    return FixedProblem(tk.PlanningProblem(scene, goal=goal), tk.PlanningOptions(max_iterations=2))


class Misbehaving:
    """Seed 1 is killed, 2 does not end, 3 takes all memory, 4 raises, others are planned."""

    digest = "misbehaving"

    def problem(self, seed: int) -> tuple[tk.PlanningProblem, tk.PlanningOptions]:
        """Return a problem, or misbehave."""
        if seed == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == 2 and (note := os.environ.get("TMKIT_TEST_NOTE")):
            Path(note).write_text(f"{os.getpid()}\n", encoding="utf-8")
        while seed == 2:
            threading.Event().wait(1.0)
        if seed == 3:
            bytearray(1 << 40)
        if seed == 4:
            raise RuntimeError("no such problem")
        return tower_problem().problem(seed)
