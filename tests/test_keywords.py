"""Unknown keywords of the public functions: the error has the nearest name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import tmkit as tk
from tmkit._support.argument_errors import with_keyword_hints
from tmkit._support.options import CheckedOptions
from tmkit.errors import ArgumentError
from tmkit.manipulation import ArmMotionPlanner, grasps_of, placements_on_surface
from tmkit.motion import inverse_kinematics, search_path
from tmkit.tamp import load_planning_domain, plan_portfolio, repair_plan

CALLS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "plan": (tk.plan, "robots", "did you mean 'robot'"),
    "option of plan": (tk.plan, "max_iterations", r"options=PlanningOptions\(max_iterations=...\)"),
    "nearest option": (tk.plan, "sampler", r"write options=PlanningOptions\(samplers=...\)"),
    "solve": (tk.solve, "time_limit", r"write options=PlanningOptions\(time_limit=...\)"),
    "simulate": (tk.simulate, "engine", r"write options=SimulationOptions\(engine=...\)"),
    "refine": (tk.refine, "option", "did you mean 'options'"),
    "validate_plan": (tk.validate_plan, "robots", "did you mean 'robot'"),
    "repair_plan": (repair_plan, "robots", r"the signature is repair_plan\("),
    "plan_portfolio": (plan_portfolio, "worker", "did you mean 'workers'"),
    "load_scene": (tk.load_scene, "note", "did you mean 'on_note'"),
    "load_planning_domain": (load_planning_domain, "robots", "did you mean 'robot'"),
    "grasps_of": (grasps_of, "robots", "did you mean 'robot'"),
    "placements_on_surface": (placements_on_surface, "setting", "did you mean 'settings'"),
    "ArmMotionPlanner": (ArmMotionPlanner, "budgets", r"ArmMotionPlanner\(\).*mean 'budget'"),
    "PlanningProblem": (tk.PlanningProblem, "robot", "did you mean 'robots'"),
    "SimulationOptions": (tk.SimulationOptions, "engines", "did you mean 'engine'"),
    "PlanningOptions": (tk.PlanningOptions, "path_iteration", "did you mean 'path_iterations'"),
    "search_path": (search_path, "starts", "did you mean 'start'"),
    "inverse_kinematics": (inverse_kinematics, "joint", "did you mean 'joints'"),
}
"""Functions, an unknown keyword of each, and the hint."""


@pytest.mark.parametrize("call", CALLS)
def test_unknown_keyword(call: str) -> None:
    """The error names the keyword and the nearest parameter or option."""
    function, keyword, hint = CALLS[call]
    with pytest.raises(ArgumentError, match=rf"unknown option '{keyword}'|'{keyword}'") as caught:
        function(**{keyword: 1})
    caught.match(hint)


def test_every_function_of_tmkit_has_hints() -> None:
    """All Python functions and options that most programs need name the nearest keyword."""
    keyword = "a_keyword_of_no_function"
    without_keywords = {"data_path", "load_manipulator"}
    for name in tk.__all__:
        value = getattr(tk, name)
        is_options = inspect.isclass(value) and issubclass(value, CheckedOptions)
        if (inspect.isfunction(value) and name not in without_keywords) or is_options:
            with pytest.raises(ArgumentError, match=keyword):
                value(**{keyword: 1})


def test_errors_of_the_body_are_unchanged() -> None:
    """A TypeError of the function itself, or a missing argument, is not an unknown keyword."""

    @with_keyword_hints
    def half(number: int, *, digits: int = 2) -> float:
        return round(number / 2, digits)

    assert half(3) == 1.5
    with pytest.raises(TypeError, match="unsupported operand"):
        half("3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        half()  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match="'digit'; did you mean 'digits'"):
        half(3, digit=1)  # type: ignore[call-arg]
