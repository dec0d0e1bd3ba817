"""Arguments of a wrong type of public functions that take grasps, placements and poses."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.blocks import blocks_scene
from support.gantry import GANTRY
from support.public_names import public

import tmkit as tk
from tmkit.errors import ArgumentError, ConfigurationError, TmkitError
from tmkit.manipulation import (
    ActionContext,
    ArmMotionPlanner,
    Grasp,
    Handover,
    OperateJoint,
    Pick,
    Place,
    Placement,
    grasps_of,
    placements_in_region,
    placements_on_surface,
    sample_grasps,
    sample_placements,
    swept_volume,
)
from tmkit.plans import Attachment, ObjectAt
from tmkit.tamp import plan_cost
from tmkit.tamp.streams import SceneView

SCENE = blocks_scene({"a": (1, 1)})
Q = GANTRY.ready_configuration(SCENE)
GRASP = grasps_of(SCENE, "a", robot=GANTRY)[0]
RNG = np.random.default_rng(0)


def first(values: Iterator[Any]) -> Any:
    """Return the first value."""
    return next(iter(values))


def planner(**options: Any) -> ArmMotionPlanner:
    """Return the motion planner of the gantry."""
    return ArmMotionPlanner(GANTRY, **options)


def context() -> ActionContext:
    """Return the context of an action of the gantry."""
    return ActionContext(SCENE, Q, RNG, arms={GANTRY.name: planner()})


VALUES: dict[str, Callable[[Any], object]] = {
    "ArmMotionPlanner.pick.grasp": lambda value: first(
        planner().pick(SCENE, Q, object="a", grasp=value, seed=0)
    ),
    "ArmMotionPlanner.place.change": lambda value: first(
        planner().place(SCENE, Q, change=value, seed=0)
    ),
    "Grasp.__init__.object_from_tool": lambda value: Grasp(value, 0.05, "top"),
    "Placement.__init__.support_from_object": lambda value: Placement("table", value, "left"),
    "Attachment.__init__.pose": lambda value: Attachment("a", "table", value),
    "Pick.__init__.grasp": lambda value: Pick("a", value),
    "Place.__init__.pose": lambda value: Place("a", "table", value),
    "Place.at.placement": lambda value: Place.at("a", value),
    "OperateJoint.__init__.grasp": lambda value: OperateJoint("handle", 0.1, value),
    "Handover.__init__.grasp": lambda value: Handover("a", "left", "right", value, tk.Pose()),
    "Handover.__init__.exchange": lambda value: Handover("a", "left", "right", GRASP, value),
    "SceneView.inverse_kinematics.root_from_tool": lambda value: SceneView(
        context(), RNG
    ).inverse_kinematics(value),
    "ObjectAt.__init__.pose": lambda value: ObjectAt("a", value, relative_to="table"),
}
"""Calls of public functions and constructors that take a grasp, placement or pose."""

OTHERS: dict[str, tuple[Callable[[], object], str]] = {
    "pick in a name": (
        lambda: first(planner().pick("scene", Q, object="a", grasp=GRASP, seed=0)),
        "'scene' must be a SceneGraph, not a str",
    ),
    "pick with a distance": (
        lambda: first(planner().pick(SCENE, Q, object="a", grasp=GRASP, seed=0, motion=0.1)),
        "'motion' must be a PickPlaceOptions, not a float",
    ),
    "place at a placement": (
        lambda: first(planner().place(SCENE, Q, change=Placement("t", tk.Pose(), "x"), seed=0)),
        r"must be an Attachment, not a Placement.*Attachment\(object, support, support_from_object",
    ),
    "budget": (lambda: planner(budget=3), "'budget' must be a MotionSettings or None, not an int"),
    "rules": (lambda: planner(rules=3), "'rules' must be a CollisionRules or None, not an int"),
    "path planner": (
        lambda: planner(motion_planner="rrt"),
        r"motion_planner must have the method search, .*RrtConnect\(\), not 'rrt'",
    ),
    "refine by a name": (
        lambda: Pick("a", GRASP).refine("gantry", context(), seed=0),
        r"'arm' must be an ArmMotionPlanner, not a str.*ArmMotionPlanner\(robot\)",
    ),
    "refine in a scene": (
        lambda: Pick("a", GRASP).refine(planner(), SCENE, seed=0),
        "'context' must be an ActionContext, not a SceneGraph",
    ),
    "context with samplers": (
        lambda: ActionContext(SCENE, Q, RNG, tk.Samplers()),
        r"'sampling' must be a SeededSamplers or None, not a Samplers.*SeededSamplers\(samplers",
    ),
    "context with names of arms": (
        lambda: ActionContext(SCENE, Q, RNG, arms={"gantry": "gantry"}),
        r"'arms' must be an ArmMotionPlanner, not a str.*\{robot.name: ArmMotionPlanner\(robot\)\}",
    ),
    "grasps in a name": (
        lambda: grasps_of("scene", "a", robot=GANTRY),
        "'scene' must be a SceneGraph, not a str",
    ),
    "seed of placements": (
        lambda: first(placements_on_surface(SCENE, "a", "table", q=Q, rng=0)),
        r"'rng' must be a Generator, not an int.*np.random.default_rng\(seed\)",
    ),
    "settings of placements": (
        lambda: first(placements_in_region(SCENE, "a", "table", q=Q, rng=RNG, settings=3)),
        "'settings' must be a PlacementSettings or None, not an int",
    ),
    "grasp sampler": (lambda: sample_grasps(SCENE), "'request' must be a GraspRequest"),
    "placement sampler": (
        lambda: first(sample_placements(SCENE)),
        "'request' must be a PlacementRequest",
    ),
    "volume of a path": (lambda: swept_volume("plan.json"), "'plan' must be a Plan.*tk.load_plan"),
    "cost of a path": (lambda: plan_cost("plan.json"), "'plan' must be a Plan.*tk.load_plan"),
    "no configuration": (
        lambda: first(planner().pick(SCENE, None, object="a", grasp=GRASP, seed=0)),
        "'q' must be an array, not None",
    ),
}
"""Calls with another wrong argument, and the message."""

COLLECTIONS = re.compile(r"SeededSamplers\.|PlannedObservation\.|Regions\.filter_placements")
"""Parameters whose values samplers and planners make."""


def parameters() -> Iterator[str]:
    """Yield the parameters of public functions that are a grasp, placement, change or pose."""
    for package, _, value in public():
        if not re.fullmatch(r"tmkit\.(manipulation|plans|tamp[\w.]*)", package):
            continue
        functions = [value]
        if inspect.isclass(value):
            members = [getattr(member, "__func__", member) for member in vars(value).values()]
            functions = [value.__init__, *members]
        for function in filter(inspect.isfunction, functions):
            for name, annotation in function.__annotations__.items():
                kind = str(annotation).removesuffix(" | Literal['center']")
                is_value = re.fullmatch(r"Grasp|Placement|Attachment|Pose", kind)
                if is_value and name != "return":
                    yield f"{function.__qualname__}.{name}"


def test_every_value_is_in_the_table() -> None:
    """A public function with such an argument checks its type."""
    found = {
        name for name in parameters() if not re.search(rf"\._[a-z]|{COLLECTIONS.pattern}", name)
    }
    assert found == set(VALUES)


@pytest.mark.parametrize("call", VALUES)
@pytest.mark.parametrize("value", ["top", [0.0, 0.0, 0.0], None])
def test_wrong_value(call: str, value: object) -> None:
    """The error states the parameter, the expected type and its source."""
    name = call.rsplit(".", 1)[1]
    with pytest.raises(
        ArgumentError, match=rf"'{name}' must be an? (Grasp|Placement|Pose|Attachment), not .*; "
    ):
        VALUES[call](value)


@pytest.mark.parametrize("call", OTHERS)
def test_wrong_argument(call: str) -> None:
    """The error states the expected type, and how to make a value of it."""
    function, message = OTHERS[call]
    with pytest.raises((ArgumentError, ConfigurationError), match=message) as caught:
        function()
    assert isinstance(caught.value, TmkitError)
