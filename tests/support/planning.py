"""Planning with options as keywords: short for the tests, which vary a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import tmkit as tk
from tmkit.tamp import Goal, PlanResult

__all__ = ["solve_with"]

_OPTIONS = {field.name for field in fields(tk.PlanningOptions)}


def solve_with(
    scene: tk.SceneGraph, goal: Goal | Sequence[Goal], *, on_progress: Any = None, **values: Any
) -> PlanResult:
    """Solve a problem whose other fields and options are keywords; ``robot`` stands for ``robots``.

    Args:
        scene: the scene at the start.
        goal: the goal.
        on_progress: as for :func:`tmkit.solve`.
        values: fields of the problem and of the options, by name.
    """
    options = {name: value for name, value in values.items() if name in _OPTIONS}
    problem_values = {name: value for name, value in values.items() if name not in _OPTIONS}
    if "robot" in problem_values:
        problem_values["robots"] = problem_values.pop("robot")
    problem = tk.PlanningProblem(scene, goal=goal, **problem_values)
    return tk.solve(problem, tk.PlanningOptions(**options), on_progress=on_progress)
