"""Arrangements of regions that have to hold several objects: order, capacity and places, in real kitchens."""

from __future__ import annotations

import pytest
from support.families import FAMILIES

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.plans import Plan

LIMITS = tk.PlanningOptions(seed=0, time_limit=600.0, max_iterations=4, suggest=False)


def placed_on(plan: Plan, region: str) -> list[str]:
    """Return the objects that a plan puts on a region, in this order."""
    return [
        step.action.arguments[0]
        for step in plan.steps
        if step.action.name == "place" and region in step.action.arguments
    ]


def height(scene: SceneGraph, name: str) -> float:
    """Return the height of a box [m]."""
    low, high = scene.shapes(name)[0].shape.bounds
    return float(high[2] - low[2])


@pytest.mark.parametrize("number", [1, 3])
def test_a_stove_holds_what_fits_in_the_right_order(number: int) -> None:
    """Sixteen things stay on the stove: none is taken away again, though the flange collides with taller neighbours."""
    instance = FAMILIES["cook16"].instance(number)
    result = tk.solve(instance.problem(), LIMITS)
    assert result.plan is not None
    assert len(result.plan.steps) == instance.known_steps
    assert tk.validate_plan(result.plan).is_valid
    assert sorted(placed_on(result.plan, "stove")) == sorted(instance.objects)


def test_the_last_place_is_used_in_turn() -> None:
    """Of 24 things at most 19 fit: the plan takes away the one that it placed last, and no other."""
    instance = FAMILIES["cook24"].instance(2)
    result = tk.solve(instance.problem(), LIMITS)
    assert result.plan is not None
    assert len(result.plan.steps) <= 1.05 * instance.known_steps
    assert tk.validate_plan(result.plan).is_valid
    order = placed_on(result.plan, "stove")
    assert sorted(order) == sorted(instance.objects)
    present: list[str] = []
    for step in result.plan.steps:
        match step.action.name, step.action.arguments:
            case "place", (name, "stove"):
                present.append(name)
            case "pick", (name, "stove"):
                assert present.pop() == name
