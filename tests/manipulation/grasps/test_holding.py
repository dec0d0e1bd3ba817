"""Holding capacity of a hand: known results, planner and validator."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.classic import checked, plan_problem
from support.effort import scaled_examples
from support.gantry import GANTRY, SUCKER

import tmkit as tk
from tmkit.graph import AttachedShape, Box, Inertia, SceneGraph
from tmkit.manipulation.grasps.holding import (
    DENSITY,
    DYNAMIC_LOAD_FRACTION,
    FINGER_FRICTION,
    GRAVITY,
    OBJECT_FRICTION,
    PAD_RADIUS,
    Load,
    torsion_arm,
    vacuum_overload,
)
from tmkit.manipulation.grasps.sampling import grasp_contact_faults
from tmkit.plans import Plan
from tmkit.robots.hands import reason_without_distance
from tmkit.robots.robot_files import find_manipulators
from tmkit.simulation import PhysicsSettings
from tmkit.spatial import Pose

DOWN = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: math.hypot(*v) > 0.1)


def one_box(friction: float | None = 1.0) -> SceneGraph:
    """Return a box of 1 kg whose centre of mass is at its frame."""
    shapes = [AttachedShape(Box([0.04, 0.04, 0.12]), friction=friction)]
    return (
        SceneGraph()
        .add_frame("block", "world", shapes=shapes)
        .set_inertia("block", Inertia(1.0, matrix=np.eye(3)))
    )


def load(offset: tuple[float, float, float], *, suction: bool = False, rim: float = 0.0) -> Load:
    """Return the box as the load of a hand with 30 N, at an offset from the tool point."""
    arm = SUCKER if suction else GANTRY
    return Load.of(one_box(), "block", robot=arm, tool_from_object=Pose(offset), rim=rim)


def test_the_simulator_has_the_numbers_of_the_model() -> None:
    """Friction, weight and pad size are stated once."""
    settings = PhysicsSettings()
    assert settings.finger_friction == FINGER_FRICTION
    assert settings.object_friction == OBJECT_FRICTION
    assert (settings.pad_radius, settings.gravity, settings.density) == (
        PAD_RADIUS,
        GRAVITY,
        DENSITY,
    )


def test_a_patch_bears_the_moment_of_its_rings() -> None:
    """The lever arm is two thirds of the radius, for even pressure on a disc."""
    radii = (np.arange(10_000) + 0.5) * 1e-6
    rings = 2.0 * math.pi * radii * 1e-6 / (math.pi * 0.01**2)
    assert float(np.sum(rings * radii)) == pytest.approx(torsion_arm(0.01), rel=1e-6)


def test_shares_of_a_pinch() -> None:
    """Two fingers bear 60 N across and 0.24 N m about their line."""
    weight = (1.0 + DYNAMIC_LOAD_FRACTION) * GRAVITY
    assert load((0.0, 0.0, 0.0)).load_fraction(np.array([0.0, 0.0, 1.0]))[0] == pytest.approx(
        weight / 60.0
    )
    assert load((0.0, 0.0, 0.0)).load_fraction(np.array([0.0, 1.0, 0.0]))[0] == pytest.approx(0.0)
    hung = load((0.0, 0.0, 0.05))
    assert hung.load_fraction(np.array([0.0, 0.0, 1.0]))[0] == pytest.approx(weight / 60.0)
    level = math.hypot(weight / 60.0, weight * 0.05 / (60.0 * torsion_arm(PAD_RADIUS)))
    assert hung.load_fraction(np.array([1.0, 0.0, 0.0]))[0] == pytest.approx(level)
    assert hung.max_load_fraction() == pytest.approx(level)


def test_what_the_scene_does_not_say_has_the_usual_friction() -> None:
    """An object without a friction attribute has the default friction of objects."""
    held_load = Load.of(
        one_box(friction=None), "block", robot=GANTRY, tool_from_object=Pose(), rim=0.0
    )
    assert held_load.friction == OBJECT_FRICTION * FINGER_FRICTION


@given(DOWN, st.tuples(*[st.floats(-0.1, 0.1)] * 3), st.booleans())
@settings(max_examples=scaled_examples(1), deadline=None)
def test_no_turn_of_the_hand_exceeds_the_largest_share(
    down: tuple[float, float, float], offset: tuple[float, float, float], suction: bool
) -> None:
    """The bound holds for fingers and cups, whichever way gravity goes."""
    held_load = load(offset, suction=suction, rim=0.02 if suction else 0.0)
    share, _ = held_load.load_fraction(np.array(down) / math.hypot(*down))
    assert share <= held_load.max_load_fraction() + 1e-12


@pytest.mark.parametrize(
    ("force", "moment", "share", "words"),
    [
        ((0.0, 0.0, 15.0), (0.0, 0.0, 9.0), 0.5, "pulls with 15 N"),
        ((0.0, 0.0, 31.0), (0.0, 0.0, 0.0), 31.0 / 30.0, "pulls with 31 N"),
        ((20.0, 0.0, -10.0), (0.0, 0.0, 0.0), 1.0, "shears with 20 N"),
        ((0.0, 0.0, 10.0), (0.0, 0.6, 0.0), 1.5, r"bends the cup with 0.60 N m"),
    ],
)
def test_shares_of_a_vacuum(
    force: tuple[float, float, float], moment: tuple[float, float, float], share: float, words: str
) -> None:
    """A pull reduces the rim's normal force, a push increases it; a twist has no effect."""
    axis = np.array([0.0, 0.0, 1.0])
    overload, text = vacuum_overload(
        np.array(force), np.array(moment), axis=axis, vacuum=30.0, friction=0.5, radius=0.02
    )
    assert overload == pytest.approx(share)
    assert words in text


def heavier(plan: Plan, object: str, mass: float) -> Plan:
    """Return the plan as if an object had another mass."""
    weight = Inertia(mass, matrix=1e-3 * mass * np.eye(3))
    steps = tuple(
        replace(step, scene=step.scene.set_inertia(object, weight)) for step in plan.steps
    )
    return replace(plan, scene=plan.scene.set_inertia(object, weight), steps=steps)


def test_what_is_too_heavy_is_held_otherwise_or_not_at_all() -> None:
    """A grasp that cannot bear the weight fails validation; the planner uses another or fails.

    In simulation the first plan fails with 2.5 kg, and the second succeeds.
    """
    scene = tk.load_scene("panda_table", "rearrange_behind")
    light = checked(tk.plan(scene, domain="rearrangement", goal="(at blue_one aside_left)"))
    assert light.steps[0].choice.startswith("grasp tilted")
    report = tk.validate_plan(heavier(light, "blue_one", 2.5))
    assert any("'blue_one' is too heavy for this grasp: " in problem for problem in report.problems)
    heavy = heavier(light, "blue_one", 2.5).scene
    plan = checked(tk.plan(heavy, domain="rearrangement", goal="(at blue_one aside_left)"))
    assert not plan.steps[0].choice.startswith("grasp tilted")


def test_light_things_are_taken_as_ever() -> None:
    """Grasps from above come first if every grasp bears the weight."""
    plan = checked(plan_problem("rearrangement", "swap", scene="rearrange_swap"))
    assert plan.steps[0].choice.startswith("grasp from +z")


# --- no grip at all


@pytest.mark.parametrize("suction", [False, True])
def test_without_friction_nothing_is_held_and_nothing_is_too_heavy(suction: bool) -> None:
    """The reason is the friction, for fingers and for cups, also for an object of a gram."""
    held_load = replace(
        load((0.0, 0.0, 0.0), suction=suction, rim=0.02 if suction else 0.0),
        friction=0.0,
        mass=1e-3,
    )
    assert held_load.payload_fault is None
    assert (
        held_load.grip_fault == f"its friction with {'the cup' if suction else 'the fingers'} is 0"
    )
    assert held_load.load_fraction(np.array([1.0, 0.0, 0.0]))[0] == math.inf
    assert held_load.max_load_fraction() == math.inf


def test_the_check_of_a_plan_names_the_friction() -> None:
    """A plan whose object has become smooth fails its check, and no message calls it heavy."""
    scene = tk.load_scene("panda_table", "blocks1")
    plan = checked(tk.plan(scene, goal="(holding a)"))

    def smooth(version: SceneGraph) -> SceneGraph:
        return version.set_shapes(
            "a", [AttachedShape(part.shape, part.pose, friction=0.0) for part in scene.shapes("a")]
        )

    steps = tuple(replace(step, scene=smooth(step.scene)) for step in plan.steps)
    problems = tk.validate_plan(replace(plan, scene=smooth(plan.scene), steps=steps)).problems
    assert any(
        "'a' slips out of the hand: its friction with the fingers is 0" in problem
        for problem in problems
    )
    assert not any("heavy" in problem for problem in problems)


# --- no distance


def test_a_distance_that_there_is_not_is_no_number_of_millimetres() -> None:
    """The reason names frames without collision shapes, and rigidly connected frames."""
    scene = tk.load_scene("panda_table", "blocks1")
    (panda,) = find_manipulators(("panda",), scene)
    q = panda.ready_configuration(scene)
    bare = scene.set_shapes("a", [])
    for fault in grasp_contact_faults(bare, q, panda, object="a"):
        assert fault == "'a' has no collision shape"
    link, *_ = panda.contact_links
    assert (
        reason_without_distance(bare.set_shapes(link, []), link, "a")
        == f"'{link}' and 'a' have no collision shape"
    )
    assert "move as one body" in reason_without_distance(scene, "table", "a")
    assert grasp_contact_faults(bare, q, panda, object="a")
    assert not any("inf" in fault for fault in grasp_contact_faults(scene, q, panda, object="a"))
