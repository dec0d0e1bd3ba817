"""Arrangements of several objects in a region: order, capacity and placements in kitchens."""

from __future__ import annotations

import pytest
from support.families import FAMILIES

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.plans import Plan

LIMITS = tk.PlanningOptions(seed=0, time_limit=600.0, max_iterations=4, suggest=False)


def find_placed_objects(plan: Plan, region: str) -> list[str]:
    """Return the objects that a plan places on a region, in order."""
    return [
        step.action.arguments[0]
        for step in plan.steps
        if step.action.name == "place" and region in step.action.arguments
    ]


def box_height(scene: SceneGraph, name: str) -> float:
    """Return the height of a box [m]."""
    low, high = scene.shapes(name)[0].shape.bounds
    return float(high[2] - low[2])


@pytest.mark.parametrize("number", [1, 3])
def test_the_arrangement_gives_an_order_in_which_all_objects_fit(number: int) -> None:
    """Sixteen objects are placed on the stove once each, although taller ones block the flange."""
    instance = FAMILIES["cook16"].instance(number)
    result = tk.solve(instance.problem(), LIMITS)
    assert result.plan is not None
    assert len(result.plan.steps) == instance.known_steps
    assert tk.validate_plan(result.plan).is_valid
    assert sorted(find_placed_objects(result.plan, "stove")) == sorted(instance.objects)


def test_the_last_placement_is_shared() -> None:
    """Of 24 objects at most 19 fit: the plan removes only the object that it placed last."""
    instance = FAMILIES["cook24"].instance(2)
    result = tk.solve(instance.problem(), LIMITS)
    assert result.plan is not None
    assert len(result.plan.steps) <= 1.05 * instance.known_steps
    assert tk.validate_plan(result.plan).is_valid
    order = find_placed_objects(result.plan, "stove")
    assert sorted(order) == sorted(instance.objects)
    present: list[str] = []
    for step in result.plan.steps:
        match step.action.name, step.action.arguments:
            case "place", (name, "stove"):
                present.append(name)
            case "pick", (name, "stove"):
                assert present.pop() == name
