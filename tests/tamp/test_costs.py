"""Plan costs: named costs, functions of the user, and improvement by each of them."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.blocks import blocks_scene, with_box
from support.gantry import GANTRY
from support.planning import solve_with

import tmkit as tk
from tmkit import cli
from tmkit.cli import ExitCode
from tmkit.errors import ConfigurationError, CostError, FileFormatError
from tmkit.plans import Plan, PlanStep, SegmentKind, execute
from tmkit.plans.execution import TimedMotion, execute_step
from tmkit.plans.plan_file import plan_to_dict
from tmkit.tamp import Cost, ImprovementProgress, PlanningOptions, PlanningProgress, plan_cost

TWO = {"a": (0, 0), "b": (1, 1)}


def solve_valid(
    cost: Cost = "actions", *, improve: int = 0, scene: tk.SceneGraph | None = None, **options: Any
) -> Plan:
    """Return a valid plan."""
    result = solve_with(
        scene or blocks_scene(TWO, table=0.4),
        "(on a b)",
        robot=GANTRY,
        cost=cost,
        improve=improve,
        **options,
    )
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    return result.plan


class MotionTimer:
    """Executor that sums the durations of its motions."""

    def __init__(self) -> None:
        self.total = 0.0

    def follow(self, motion: TimedMotion) -> None:
        """Add the duration of a motion."""
        self.total += motion.timed.duration

    def _pass(self, *_: object) -> None:
        pass

    begin = begin_step = grasp = release = end_step = _pass
    finish = _pass


def test_the_duration_is_that_of_execution() -> None:
    """The cost equals the execution time of single steps; the whole plan takes less."""
    plan = solve_valid()
    seconds, steps = MotionTimer(), MotionTimer()
    execute(plan, seconds)
    for number in range(1, len(plan.steps) + 1):
        execute_step(plan, number, steps, rate=1000.0)
    assert plan_cost(plan, "duration") == pytest.approx(steps.total, abs=0.02)
    assert 1.0 < seconds.total < steps.total
    assert plan_cost(plan) == plan.cost == 2.0
    assert plan_cost(plan, "path_length") == plan.path_length
    # with the seconds in which the hand moves
    assert seconds.total < plan_cost(plan, "makespan") < seconds.total + 4.0
    assert plan_cost(plan, lambda step: len(step.segments)) == sum(
        len(step.segments) for step in plan.steps
    )


def transfer_length(step: PlanStep) -> float:
    """Return the joint-space length of the motions with an object in the hand."""
    return sum(
        segment.path_length for segment in step.segments if segment.kind is SegmentKind.TRANSFER
    )


@pytest.mark.parametrize("cost", ["path_length", "duration", "makespan", transfer_length])
def test_improvement_reduces_the_cost(cost: Cost) -> None:
    """Each reported plan is cheaper, or equal in cost and shorter; the result is the last."""
    improvements: list[ImprovementProgress] = []

    def record(progress: PlanningProgress) -> None:
        if isinstance(progress, ImprovementProgress):
            improvements.append(progress)

    walled = with_box(
        blocks_scene({"a": (0, -2), "b": (0, 2)}), "wall", (-0.3, -0.01, 0.0), (0.3, 0.01, 0.25)
    )
    plan = solve_valid(cost, improve=9, on_progress=record, seed=6, scene=walled)
    worths = [(progress.cost, progress.path_length) for progress in improvements]
    assert len(worths) > 1
    assert worths == sorted(worths, reverse=True)
    assert improvements[0].cost == pytest.approx(
        plan_cost(solve_valid(cost, seed=6, scene=walled), cost)
    )
    assert improvements[-1].cost == pytest.approx(plan_cost(plan, cost))
    assert plan_to_dict(plan) == plan_to_dict(solve_valid(cost, improve=9, seed=6, scene=walled))


def test_an_expensive_placement_is_avoided() -> None:
    """A cost function of the placement changes the actions; the metric does not."""
    scene = blocks_scene({"b": (0, 0), "a": "b"}, table=0.4)

    def on_the_left(step: PlanStep) -> float:
        y = float(step.scene.pose("a", relative_to="table", q=step.q).translation[1])
        return 1.0 if y > 0.05 else 10.0

    costs = []
    for cost in (on_the_left, "actions"):
        result = tk.plan(
            scene,
            goal="(and (clear b) (handempty))",
            robot=GANTRY,
            options=tk.PlanningOptions(cost=cost, improve=24),
        )
        assert result.plan is not None
        costs.append((plan_cost(result.plan), plan_cost(result.plan, on_the_left)))
    # picked from the middle; put down where it costs less, and elsewhere
    assert costs == [(2.0, 11.0), (2.0, 20.0)]


def raise_error(step: PlanStep) -> float:
    """Raise an error."""
    raise ZeroDivisionError("oh")


class Negative:
    """Callable object as a cost function."""

    def __call__(self, _: PlanStep, /) -> float:
        """Return an invalid cost."""
        return -1.0


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (
            raise_error,
            r"cost function 'raise_error' fails for \(pick-up a .*\): ZeroDivisionError: oh",
        ),
        (
            Negative(),
            (
                r"cost function 'Negative' returns -1.0 for \(pick-up a .*, not a finite number"
                r" of at least 0"
            ),
        ),
        (lambda _: math.nan, r"<lambda>' returns nan for \(pick-up a "),
        (lambda _: math.inf, r"<lambda>' returns inf for "),
        (lambda _: "much", r"<lambda>' returns 'much' for "),
        (lambda _: None, r"<lambda>' returns None for "),
        (lambda _: True, r"<lambda>' returns True for "),
        (lambda _: np.ones(2), r"<lambda>' returns array\(\[1., 1.\]\) for "),
        (lambda: 1.0, r"<lambda>' fails for \(pick-up .*TypeError: .*takes 0 positional arguments"),
        (
            lambda step: step.scene.pose("nowhere"),
            r"<lambda>' fails for .*UnknownNameError: .*nowhere",
        ),
    ],
)
def test_an_invalid_cost_names_the_function_and_the_action(cost: Cost, message: str) -> None:
    """This holds in improvement and afterwards; numbers of numpy are valid."""
    with pytest.raises(CostError, match=message) as caught:
        solve_valid(cost, improve=3)
    assert caught.value.data["action"] == "(pick-up a table__0__0)"
    with pytest.raises(CostError, match=message):
        plan_cost(solve_valid(), cost)
    assert plan_cost(solve_valid(), lambda _: np.float32(0.5)) == 1.0


@pytest.mark.parametrize(
    ("cost", "hint"),
    [("durations", "; did you mean 'duration'"), (3, ""), (None, ""), (["actions"], "")],
)
def test_unknown_costs_are_rejected(cost: Any, hint: str) -> None:
    """The message lists the names and the nearest one."""
    message = (
        f"cost must be 'actions', 'path_length', 'duration', 'makespan' or a function, not .*{hint}"
    )
    with pytest.raises(ConfigurationError, match=message):
        PlanningOptions(cost=cost)
    with pytest.raises(ConfigurationError, match=message):
        plan_cost(solve_valid(), cost)


def test_named_costs_in_problem_files_and_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flag overrides the file; an invalid name is reported with its line or flag."""
    file = tmp_path / "p.toml"
    text = (
        'scene = ["panda_table", "blocks1"]\ngoal = "(holding a)"\n[options]\ncost = "duration"\n'
    )
    file.write_text(text)
    assert tk.load_planning_problem(file)[1] == PlanningOptions(cost="duration")
    monkeypatch.setenv("COLUMNS", "200")
    for name, code in (("path_length", ExitCode.DONE), ("length", ExitCode.BAD_INPUT)):
        monkeypatch.setattr(
            sys, "argv", ["tmkit", "plan", str(file), "--cost", name, "--improve", "2"]
        )
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == code
    message = (
        "Invalid value for --cost: cost must be 'actions', 'path_length', 'duration', 'makespan' or"
    )
    assert message in capsys.readouterr().err
    file.write_text(text.replace("duration", "time"))
    with pytest.raises(
        FileFormatError, match=r"p.toml:4: options.cost: cost must be 'actions', .*not 'time'"
    ):
        tk.load_planning_problem(file)
