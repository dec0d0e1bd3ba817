"""Conditions of actions on the contents of the hands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.blocks import blocks_scene
from support.effort import scaled_examples
from support.gantry import GANTRY

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    ActionMotion,
    ArmMotionPlanner,
    Candidate,
    Grasp,
    Handover,
    MotionSettings,
    OperateJoint,
    Pick,
    Place,
    Push,
    grasps_of,
)
from tmkit.manipulation.actions.hand_state import (
    empty_hand_failure,
    free_object_failure,
    held_object_failure,
)
from tmkit.manipulation.actions.pick_place import arm_motion_planners
from tmkit.plans import FailureKind, MotionFailure
from tmkit.robots import Manipulator

SCENE = blocks_scene({"a": (0, 0), "b": (1, 1)})
Q = np.array(GANTRY.ready_configuration(SCENE))
ARM = ArmMotionPlanner(GANTRY)
OTHER = Manipulator.from_dict({**GANTRY.to_dict(), "name": "other", "tip": "beam"})


def first_result(
    candidate: Candidate, scene: SceneGraph, q: np.ndarray
) -> ActionMotion | MotionFailure:
    """Return the first motion or failure of the gantry."""
    context = ActionContext(scene, q, np.random.default_rng(0), arms={"gantry": ARM})
    return next(candidate.refine(ARM, context, seed=0))


def pick(object: str) -> Pick:
    """Return the first pick of a block."""
    return Pick(object, grasps_of(SCENE, object, robot=GANTRY)[0])


def place(object: str) -> Place:
    """Return the place of a block on a free cell."""
    return Place(object, "table", tk.Pose([-0.1, 0.1, 0.075]))


def push(object: str) -> Push:
    """Return a push of a block."""
    return Push(object, (1.0, 0.0, 0.0), 0.05)


MAKERS = {"pick": pick, "place": place, "push": push}
MOTION = first_result(pick("a"), SCENE, Q)
assert isinstance(MOTION, ActionMotion)
HOLDING = {None: (SCENE, Q), "a": (MOTION.scene, MOTION.q)}


@settings(max_examples=scaled_examples(0.2))
@given(st.sampled_from([None, "a"]), st.sampled_from(sorted(MAKERS)), st.sampled_from(["a", "b"]))
def test_an_action_fails_exactly_where_the_hand_is_wrong(
    held: str | None, action: str, object: str
) -> None:
    """A place needs its object in the hand, and a pick or push an empty hand."""
    result = first_result(MAKERS[action](object), *HOLDING[held])
    is_right = held == object if action == "place" else held is None
    is_hand_failure = isinstance(result, MotionFailure) and result.kind is FailureKind.HAND
    assert is_hand_failure is not is_right


@pytest.mark.parametrize(
    ("held", "candidate", "message"),
    [
        (None, place("a"), "placing: 'a' is not in the hand of 'gantry', which holds nothing"),
        ("a", place("b"), "placing: 'b' is not in the hand of 'gantry', which holds 'a'"),
        ("a", pick("b"), "picking: 'b' needs an empty hand, but that of 'gantry' holds 'a'"),
        ("a", push("b"), "push: 'b' needs an empty hand, but that of 'gantry' holds 'a'"),
        (
            None,
            Pick("table", pick("a").grasp),
            "picking: 'table' is not a movable object, which has the class 'movable' or 'moveable'",
        ),
    ],
)
def test_the_failure_names_object_and_contents(
    held: str | None, candidate: Candidate, message: str
) -> None:
    """The only result is a failure that names the object and what the hand holds."""
    scene, q = HOLDING[held]
    context = ActionContext(scene, q, np.random.default_rng(0), arms={"gantry": ARM})
    (failure,) = candidate.refine(ARM, context, seed=0)
    assert str(failure) == message


def test_a_place_in_the_air_fails() -> None:
    """A built-in place of a user's pose yields no motion that the validator rejects."""
    high = Place("a", "table", tk.Pose([-0.1, 0.1, 0.08]))
    failure = first_result(high, *HOLDING["a"])
    assert str(failure) == "release: 'a' is released 5.0 mm off 'table'"


def test_an_object_in_another_hand_needs_a_handover() -> None:
    """A pick does not take an object out of another hand."""
    scene = SCENE.reparent("b", OTHER.tip, q=Q)
    failure = free_object_failure(scene, (GANTRY, OTHER), object="b", phase="picking")
    assert failure is not None
    assert failure.cause == "'b' is in the hand of 'other', from which only a handover takes it"
    assert free_object_failure(scene, (GANTRY, OTHER), object="a", phase="picking") is None


def test_a_handover_needs_a_full_and_an_empty_hand() -> None:
    """The giver holds the object, and the taker nothing."""
    arms = arm_motion_planners((GANTRY, OTHER), budget=MotionSettings())
    handover = Handover("a", "gantry", "other", Grasp(tk.Pose(), 0.05, "any"), tk.Pose())
    full = MOTION.scene.reparent("b", OTHER.tip, q=MOTION.q)
    for scene, message in (
        (SCENE, "handing over: 'a' is not in the hand of 'gantry', which holds nothing"),
        (full, "handing over: 'a' needs an empty hand, but that of 'other' holds 'b'"),
    ):
        context = ActionContext(scene, MOTION.q, np.random.default_rng(0), arms=arms)
        (failure,) = handover.refine(arms["gantry"], context, seed=0)
        assert str(failure) == message


def test_a_drawer_needs_an_empty_hand() -> None:
    """The hand that operates a drawer holds nothing."""
    scene, arm = tk.load_scene("panda_drawer"), tk.load_manipulator("panda")
    q = arm.ready_configuration(scene)
    grasp = grasps_of(scene, "drawer_handle", robot=arm)[0]
    scene = scene.reparent("a", arm.tip, q=q)
    planner = ArmMotionPlanner(arm)
    context = ActionContext(scene, q, np.random.default_rng(0), arms={"panda": planner})
    (failure,) = OperateJoint("drawer_handle", 0.1, grasp).refine(planner, context, seed=0)
    cause = "'drawer_handle' needs an empty hand, but that of 'panda' holds 'a'"
    assert str(failure) == f"moving 'drawer_slide': {cause}"


def test_the_right_contents_are_no_failure() -> None:
    """Each condition holds in the scene that its action needs."""
    assert empty_hand_failure(SCENE, GANTRY, frame="a", phase="") is None
    assert free_object_failure(SCENE, (GANTRY,), object="a", phase="") is None
    assert held_object_failure(MOTION.scene, GANTRY, object="a", phase="") is None
