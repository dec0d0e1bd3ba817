"""Planning options: one list, validated at construction, with equal meaning everywhere."""

from __future__ import annotations

import inspect
import math
import pickle
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.blocks import blocks_scene
from support.gantry import GANTRY

import tmkit as tk
from tmkit._support.options import option_kinds
from tmkit.errors import ArgumentError, ConfigurationError
from tmkit.pddl import parse_goal
from tmkit.plans.plan_file import plan_to_dict
from tmkit.tamp import PlanningOptions, PlanningProblem, PlanStatus, load_planning_domain


def two_blocks() -> tk.SceneGraph:
    """Return two blocks on a small table."""
    return blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"seed": "x"}, "seed must be a whole number, at least 0, not 'x'"),
        ({"seed": 1.5}, "seed must be a whole number, at least 0, not 1.5"),
        ({"seed": True}, "seed must be a whole number, at least 0, not True"),
        ({"seed": None}, "seed must be a whole number, at least 0, not None"),
        ({"seeds": 0}, "seeds must be at least 1, not 0"),
        ({"workers": 0}, "workers must be at least 1, not 0"),
        ({"time_limit": 0.0}, "time_limit must be positive seconds, not 0.0"),
        ({"time_limit": math.nan}, "time_limit must be positive seconds, not nan"),
        ({"time_limit": 10**400}, "time_limit must be a number, positive seconds, not 1000"),
        ({"max_iterations": 0}, "max_iterations must be at least 1, not 0"),
        ({"improve": -1}, "improve must be at least 0, not -1"),
        ({"suggest": 1}, "suggest must be True or False, not 1"),
        ({"explanation_share": 1.0}, "explanation_share must be at least 0 and below 1, not 1.0"),
        ({"path_iterations": 0}, "path_iterations must be at least 1, not 0"),
    ],
)
def test_values_outside_their_range_are_rejected(values: dict[str, Any], message: str) -> None:
    """The message has the option, its range and the value; option and value are attributes."""
    with pytest.raises(ConfigurationError) as caught:
        PlanningOptions(**values)
    assert caught.value.message.startswith(message)
    assert {caught.value.data["option"]: caught.value.data["value"]} == pytest.approx(
        values, nan_ok=True
    )


def test_unknown_options_are_rejected_with_the_nearest_name() -> None:
    """A function with options names the option that an unknown keyword resembles."""
    with pytest.raises(
        ArgumentError, match=r"\(\): unknown option 'time_limits'; did you mean 'time_limit'"
    ):
        PlanningOptions(time_limits=1.0)  # type: ignore[call-arg]  # the tested error
    with pytest.raises(
        TypeError,
        match=r"plan\(\): got an unexpected keyword argument 'timeout'; write .*\(time_limit=",
    ):
        tk.plan(two_blocks(), goal="(on a b)", timeout=1.0)  # type: ignore[call-arg]  # the tested error


def test_a_problem_and_a_scene_are_distinguished() -> None:
    """The message names the other function; options and progress have their types."""
    problem = PlanningProblem(two_blocks(), goal="(on a b)")
    with pytest.raises(
        ArgumentError, match=r"'scene' must be .* solve a problem with tk.solve\(problem, options\)"
    ):
        tk.plan(problem, goal="(on a b)")  # type: ignore[arg-type]  # the tested error
    with pytest.raises(
        ArgumentError, match=r"'problem' must be .* plan a scene with tk.plan\(scene, goal=...\)"
    ):
        tk.solve(two_blocks())  # type: ignore[arg-type]  # the tested error
    with pytest.raises(
        ArgumentError, match=r"plan\(\): 'options' must be a PlanningOptions, not a dict"
    ):
        tk.plan(two_blocks(), goal="(on a b)", options={"seed": 1})  # type: ignore[arg-type]  # the tested error
    with pytest.raises(ArgumentError, match=r"solve\(\): on_progress must be a function, not 3"):
        tk.solve(problem, on_progress=3)  # type: ignore[arg-type]  # the tested error


def test_a_seed_replaces_that_of_the_options() -> None:
    """A seed that is no whole number is rejected as in the options."""
    scene = two_blocks()
    wanted = tk.plan(
        scene, goal="(on a b)", robot=GANTRY, options=PlanningOptions(seed=2, max_iterations=8)
    )
    result = tk.plan(
        scene,
        goal="(on a b)",
        robot=GANTRY,
        seed=2,
        options=PlanningOptions(seed=5, max_iterations=8),
    )
    assert wanted.plan is not None
    assert result.plan is not None
    assert plan_to_dict(result.plan) == plan_to_dict(wanted.plan)
    with pytest.raises(ConfigurationError, match="seed must be at least 0, not -1"):
        tk.plan(scene, goal="(on a b)", robot=GANTRY, seed=-1)


def test_each_field_of_the_options_is_documented() -> None:
    """The docstring of the class has a line for each field."""
    for entry in fields(PlanningOptions):
        assert f"        {entry.name}: " in inspect.cleandoc(
            "\n" + str(PlanningOptions.__doc__)
        ).replace("    ", "        ")


@given(st.integers(0, 2**70), st.integers(1, 5), st.none() | st.integers(1, 5))
def test_options_of_several_seeds_are_split(seed: int, workers: int, seeds: int | None) -> None:
    """There is one set of options a seed, in order; a single seed is unchanged."""
    options = PlanningOptions(seed=seed, seeds=seeds, workers=workers, improve=None)
    singles = list(options.each_seed())
    assert [single.seed for single in singles] == list(range(seed, seed + (seeds or workers)))
    assert all(
        list(single.each_seed()) == [single] and single.improve is None for single in singles
    )
    assert pickle.loads(pickle.dumps(options)) == options == replace(options)


def test_the_representation_has_changed_options_only() -> None:
    """Defaults are omitted."""
    assert repr(PlanningOptions()) == "PlanningOptions()"
    assert repr(PlanningOptions(seed=3, improve=None)) == "PlanningOptions(seed=3, improve=None)"
    assert all(kind.help.endswith(".") for kind in option_kinds(PlanningOptions).values())


def test_plan_equals_solve_of_a_problem() -> None:
    """Both functions give equal plans, and a formula equals its text."""
    scene = two_blocks()
    short = tk.plan(
        scene, goal="(on a b)", robot=GANTRY, seed=2, options=PlanningOptions(max_iterations=8)
    )
    domain = load_planning_domain("blocks", robot=GANTRY)
    formula = parse_goal("(on a b)", domain.domain, objects=domain.semantics.objects(scene))
    problem = PlanningProblem(scene, goal=formula, robots=GANTRY)
    long = tk.solve(problem, PlanningOptions(seed=2, max_iterations=8))
    assert short.plan is not None
    assert long.plan is not None
    assert plan_to_dict(short.plan) == plan_to_dict(long.plan)
    assert repr(problem) == "PlanningProblem(12 frames, domain 'blocks', goal (on a b))"


def test_several_seeds_are_tried_in_order() -> None:
    """The first seed with a plan gives the result, for each number of workers."""
    problem = PlanningProblem(two_blocks(), goal="(on a b)", robots=GANTRY)
    alone = tk.solve(problem, PlanningOptions(seed=4, max_iterations=8))
    several = [
        tk.solve(problem, PlanningOptions(seed=4, seeds=2, workers=n, max_iterations=8))
        for n in (1, 2)
    ]
    for result in several:
        assert result.status is PlanStatus.SOLVED
        assert result.plan is not None
        assert alone.plan is not None
        assert plan_to_dict(result.plan) == plan_to_dict(alone.plan)


def test_an_explanation_share_of_zero_reserves_no_time() -> None:
    """This holds without a time limit too."""
    assert PlanningOptions(explanation_share=0.0, time_limit=math.inf).seconds_to_explain == 0.0
    assert PlanningOptions(time_limit=10.0).seconds_to_explain == pytest.approx(2.0)
    assert PlanningOptions(time_limit=10.0, suggest=False).seconds_to_explain == pytest.approx(0.5)
    result = tk.plan(
        two_blocks(),
        goal="(and (on a b) (on b a))",
        robot=GANTRY,
        options=PlanningOptions(explanation_share=0.0, max_iterations=1),
    )
    assert result.status is PlanStatus.PROVED_UNSOLVABLE


def test_a_problem_is_a_value() -> None:
    """The configuration is a read-only copy; invalid arguments are named."""
    q = [0.0, 0.0, 0.0]
    problem = PlanningProblem(two_blocks(), q, goal=["(on a b)"])
    assert problem.goals == ("(on a b)",)
    with pytest.raises(ValueError, match="read-only"):
        problem.q[0] = 1.0  # type: ignore[index,operator,call-overload]  # an array since construction
    with pytest.raises(ArgumentError, match=r"'goal' must be .* not an int"):
        PlanningProblem(two_blocks(), goal=3)  # type: ignore[arg-type]  # the tested error
    with pytest.raises(
        ArgumentError, match="'robots' must be a str or a Path or a Manipulator, not an int"
    ):
        PlanningProblem(two_blocks(), goal="(on a b)", robots=[3])  # type: ignore[list-item]  # the tested error
