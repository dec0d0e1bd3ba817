"""Plans, steps, segments and problems are equal by content."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmkit as tk
from tmkit.plans import Plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Return a plan of two actions."""
    solution = tk.plan(tk.load_scene("panda_table", "blocks2"), goal="(on a b)", seed=0).plan
    assert solution is not None
    return solution


def bytes_of(plan: Plan, folder: Path) -> bytes:
    """Return the bytes of the file of a plan."""
    tk.save_plan(plan, folder / "plan.json")
    return (folder / "plan.json").read_bytes()


def with_segment(plan: Plan, **changes: Any) -> Plan:
    """Return a plan whose first segment has changed."""
    step = plan.steps[0]
    segments = (replace(step.segments[0], **changes), *step.segments[1:])
    return replace(plan, steps=(replace(step, segments=segments), *plan.steps[1:]))


def vary_fields(plan: Plan) -> dict[str, Plan]:
    """Return plans that differ from a plan in entry field each."""
    path = np.array(plan.steps[0].segments[0].path)
    path[1, 0] = np.nextafter(path[1, 0], 10.0)
    zero = np.array(plan.steps[0].segments[0].path)
    zero[1, 0] = 0.0
    step = plan.steps[0]
    return {
        "seed": replace(plan, seed=1),
        "goal": replace(plan, goal="(clear a)"),
        "domain": replace(plan, domain="other"),
        "values": replace(plan, values={("f", ()): 1.0}),
        "last bit of a path": with_segment(plan, path=path),
        "zero": with_segment(plan, path=zero),
        "negative zero": with_segment(plan, path=np.where(zero == 0.0, -0.0, zero)),
        "choice": replace(plan, steps=(replace(step, choice="another"), *plan.steps[1:])),
        "cost": replace(plan, steps=(replace(step, cost=2.0), *plan.steps[1:])),
        "steps": replace(plan, steps=plan.steps[:1]),
        "gripper": with_segment(
            plan, gripper=dict.fromkeys(plan.steps[0].segments[0].gripper, 0.01)
        ),
    }


def test_a_copy_of_a_plan_is_equal(plan: Plan, tmp_path: Path) -> None:
    """Equal plans have equal hashes and bytes, and so have their steps and segments."""
    tk.save_plan(plan, tmp_path / "plan.json")
    again = tk.plan(tk.load_scene("panda_table", "blocks2"), goal="(on a b)", seed=0).plan
    assert again is not None
    for other in (tk.load_plan(tmp_path / "plan.json"), pickle.loads(pickle.dumps(plan)), again):
        assert other is not plan
        assert other == plan
        assert hash(other) == hash(plan)
        assert len({plan, other, *plan.steps, *other.steps}) == 1 + len(plan.steps)
        assert bytes_of(other, tmp_path) == bytes_of(plan, tmp_path)
        for ours, theirs in zip(plan.steps, other.steps, strict=True):
            assert (ours, hash(ours)) == (theirs, hash(theirs))
            assert [(entry, hash(entry)) for entry in ours.segments] == [
                (entry, hash(entry)) for entry in theirs.segments
            ]


def test_plans_that_differ_are_unequal(plan: Plan) -> None:
    """Plans that differ in entry field are unequal, to the plan and to each other."""
    plans = {"plan": plan, **vary_fields(plan)}
    for name, entry in plans.items():
        for other_name, other in plans.items():
            assert (entry == other) == (name == other_name), (name, other_name)
    assert plan != "plan"
    assert plan != plan.steps[0]


def test_the_timing_is_no_content(plan: Plan, tmp_path: Path) -> None:
    """Saving a plan computes its timing, and equality and hash stay the same."""
    copy = pickle.loads(pickle.dumps(plan))
    before = hash(copy)
    bytes_of(copy, tmp_path)
    assert copy == plan
    assert hash(copy) == before


def test_problems_are_equal_by_content(plan: Plan) -> None:
    """The configuration is an array, as in plans."""
    problem = tk.PlanningProblem(plan.scene, plan.q, goal="(on a b)")
    same = tk.PlanningProblem(plan.scene, list(plan.q), goal="(on a b)")
    assert (problem, hash(problem)) == (same, hash(same))
    assert problem != tk.PlanningProblem(plan.scene, None, goal="(on a b)")
    assert problem != tk.PlanningProblem(plan.scene, plan.q + 1e-16 + 1e-9, goal="(on a b)")
    assert problem != tk.PlanningProblem(plan.scene, plan.q, goal="(on b a)")
