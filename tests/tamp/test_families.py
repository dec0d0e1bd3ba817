"""Families of random problems: properties of the generators, and one planned instance each."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from support.families import (
    FAMILIES,
    Draft,
    Family,
    FamilyInstance,
    Reach,
    RejectedError,
    count_cycles,
    count_displaced,
    count_drives,
)

import tmkit as tk
from tmkit.errors import ConfigurationError
from tmkit.motion import CollisionWorld
from tmkit.robots import Manipulator, load_manipulator, movable_frames
from tmkit.robots.robot_files import home_configuration
from tmkit.tamp import PlanStatus

NUMBERS = (0, 1)
"""Numbers of the instances on which the laws are checked."""

SMALL_FAMILIES = {
    family.draw: replace(family, size={"cook16": 3, "permute10": 3}.get(family.name, family.size))
    for family in reversed(FAMILIES.values())
}.values()
"""The smallest family of each generator, or a smaller one where that takes long."""

LARGEST_KNOWN_EXCESS = 2
"""Steps by which the plan of an easy instance may be longer than the fewest known."""


@functools.cache
def instance_of(name: str, number: int) -> FamilyInstance:
    """Return a cached instance."""
    return FAMILIES[name].instance(number)


def arms_of(robot: str | Manipulator | tuple[str | Manipulator, ...]) -> list[Manipulator]:
    """Return the arms of an instance."""
    arms = robot if isinstance(robot, tuple) else (robot,)
    return [load_manipulator(arm) if isinstance(arm, str) else arm for arm in arms]


@pytest.mark.parametrize("name", FAMILIES)
def test_same_number_gives_same_instance(name: str) -> None:
    """An instance depends only on its family and number, and differs from the next one."""
    first, second, other = instance_of(name, 0), FAMILIES[name].instance(0), instance_of(name, 1)
    assert first.scene == second.scene
    assert first.problem() == second.problem() or first.domain != second.domain
    assert (first.known_steps, first.objects, str(first.goal)) == (
        second.known_steps,
        second.objects,
        str(second.goal),
    )
    assert first.scene != other.scene


@pytest.mark.parametrize("name", FAMILIES)
def test_objects_are_apart_at_the_start(name: str) -> None:
    """Only objects and their supports are in contact at the start."""
    for number in NUMBERS:
        instance = instance_of(name, number)
        scene = instance.scene
        q = home_configuration(arms_of(instance.robot), scene)
        movable = movable_frames(scene)
        world = CollisionWorld(scene, movable=movable)
        for contact in world.contacts(q):
            pair = (contact.frame_a, contact.frame_b)
            assert set(pair) & set(movable), pair
            assert any(
                scene.parent(upper) == lower for upper, lower in itertools.permutations(pair)
            ), pair


@pytest.mark.parametrize("name", FAMILIES)
def test_start_is_accepted_and_goal_does_not_hold(name: str) -> None:
    """The planner derives a state of the start, and the goal needs at least one step."""
    instance = instance_of(name, 1)
    result = tk.solve(
        instance.problem(), tk.PlanningOptions(max_iterations=1, time_limit=0.2, suggest=False)
    )
    assert result.status is not PlanStatus.PROVED_UNSOLVABLE, result.explanation
    assert result.plan is None or result.plan.steps
    assert instance.known_steps >= 2
    assert instance.objects


@pytest.mark.parametrize("name", [name for name in FAMILIES if not name.startswith("mobile")])
def test_objects_that_move_are_in_reach(name: str) -> None:
    """Some arm reaches each object that must move, without the other objects."""
    instance = instance_of(name, 1)
    scene = instance.scene
    movable = movable_frames(scene)
    arms = arms_of(instance.robot)
    joints = {"drawer_slide": 0.2} if "drawer_slide" in scene.joint_names else {}
    for object in instance.objects:
        absent = [
            other for other in movable if other != object and other not in scene.ancestors(object)
        ]
        assert any(
            Reach(scene, arm, [other for other in arms if other is not arm], joints).is_reachable(
                object, absent=absent
            )
            for arm in arms
        ), object


@pytest.mark.parametrize("family", SMALL_FAMILIES, ids=lambda family: family.name)
def test_small_instance_is_solved(family: Family) -> None:
    """The plan is valid and has few more steps than the known one."""
    instance = family.instance(0)
    result = tk.solve(
        instance.problem(),
        tk.PlanningOptions(seed=0, time_limit=math.inf, max_iterations=4, suggest=False),
    )
    assert result.plan is not None, result.explanation
    domain = None if isinstance(instance.domain, str) else instance.domain
    report = tk.validate_plan(result.plan, domain=domain)
    assert report.is_valid, report.problems
    assert len(result.plan.steps) <= instance.known_steps + LARGEST_KNOWN_EXCESS


def draw_nothing(rng: np.random.Generator, size: int) -> Draft:
    """Reject every arrangement."""
    raise RejectedError


def test_family_without_feasible_arrangement_is_an_error() -> None:
    """The error of a generator that rejects everything has the family and the number."""
    with pytest.raises(
        ConfigurationError, match=r"family 'nothing' has no feasible arrangement for number 5"
    ):
        Family("nothing", 0, draw_nothing, 1).instance(5)


@pytest.mark.parametrize(
    ("order", "cycles"),
    [([0, 1, 2], 0), ([1, 0, 2], 1), ([1, 0, 3, 2], 2), ([1, 2, 3, 0], 1), ([], 0)],
)
def test_count_cycles(order: list[int], cycles: int) -> None:
    """Fixed points are not cycles."""
    assert count_cycles(order) == cycles


@pytest.mark.parametrize(
    ("wanted", "below", "displaced"),
    [
        ({"a": "b"}, {}, 1),
        ({"a": "b"}, {"a": "b"}, 0),
        ({"a": "b"}, {"c": "a"}, 2),
        ({"a": "b"}, {"c": "b"}, 2),
        ({"a": "b", "b": "c"}, {"a": "b"}, 2),
        ({"a": "b", "b": "c"}, {"c": "a"}, 3),
    ],
)
def test_count_displaced(wanted: dict[str, str], below: dict[str, str], displaced: int) -> None:
    """Blocks move for their own goal, for one above or below, or to free a place."""
    assert count_displaced(wanted, below) == displaced


@pytest.mark.parametrize(
    ("trips", "drives"),
    [
        ([("a", "b")], 2),
        ([("a", "b"), ("b", "c")], 3),
        ([("a", "b"), ("c", "b")], 4),
        ([("a", "b"), ("b", "a"), ("c", "d")], 5),
    ],
)
def test_count_drives(trips: list[tuple[str, str]], drives: int) -> None:
    """Consecutive trips need no drive between them."""
    assert count_drives(trips) == drives
    assert count_drives(trips) == fewest_drives(trips)


def fewest_drives(trips: list[tuple[str, str]]) -> int:
    """Return the smallest number of drives over all orders of the trips."""
    best = math.inf
    for order in itertools.permutations(trips):
        place, drives = "", 0
        for start, end in order:
            drives += (start != place) + 1
            place = end
        best = min(best, drives)
    return int(best)
