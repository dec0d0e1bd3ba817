"""Motions that are planned already: they are carried out where they start, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import tmkit as tk
from tmkit.errors import ArgumentError, ConfigurationError
from tmkit.manipulation import (
    ActionContext,
    ActionMotion,
    ApplyEffects,
    ArmMotionPlanner,
    Candidate,
    CloseHand,
    Follow,
    MoveTo,
    Pick,
    Place,
    Push,
    Samplers,
    SeededSamplers,
    Sequence,
)
from tmkit.plans import ClassEffect, MotionFailure

ARM = ArmMotionPlanner("panda")


def context_of(scene: tk.SceneGraph, q: object = None) -> ActionContext:
    """Return the context of the Panda in a scene, at its ready configuration by default."""
    start = ARM.robot.ready_configuration(scene) if q is None else np.asarray(q)
    sampling = SeededSamplers(Samplers(), ARM.robot)
    return ActionContext(scene, start, np.random.default_rng(0), sampling, {"panda": ARM})


def first_motion(candidate: Candidate, context: ActionContext) -> ActionMotion:
    """Return the first motion of a candidate."""
    attempts: Iterator[ActionMotion | MotionFailure] = candidate.refine(ARM, context, seed=0)
    return next(attempt for attempt in attempts if isinstance(attempt, ActionMotion))


def motions() -> Iterator[tuple[str, ActionContext, ActionMotion]]:
    """Yield motions of several kinds with the contexts before them."""
    context = context_of(tk.load_scene("panda_push"))
    push = first_motion(Push("box", (0.0, 1.0, 0.0), 0.1), context)
    yield "push", context, push
    context = context_of(tk.load_scene("panda_table", "blocks2"))
    move = MoveTo({"panda_joint1": 0.4}, "a turn")
    yield "move", context, first_motion(move, context)
    yield "hand", context, first_motion(CloseHand(), context)
    effects = ApplyEffects((ClassEffect("a", added=("seen",)),))
    yield "effects", context, first_motion(effects, context)
    pick = next(
        attempt
        for grasp in context.grasps("a")
        for attempt in Pick("a", grasp).refine(ARM, context, seed=0)
        if isinstance(attempt, ActionMotion)
    )
    yield "pick", context, pick
    after = replace(context, scene=pick.scene, q=pick.q)
    rest = context.scene.local_pose("a")
    yield "place", after, first_motion(Place("a", str(context.scene.parent("a")), rest), after)
    yield "sequence", context, first_motion(Sequence((Follow(pick), move)), context)


MOTIONS = list(motions())


@pytest.mark.parametrize(("kind", "context", "motion"), MOTIONS, ids=[row[0] for row in MOTIONS])
def test_a_motion_is_carried_out_as_planned(
    kind: str, context: ActionContext, motion: ActionMotion
) -> None:
    """The only attempt is the motion itself, for every kind of motion."""
    del kind
    assert list(Follow(motion).refine(ARM, context, seed=7)) == [motion]


def test_a_motion_from_another_configuration_is_rejected() -> None:
    """The message names the joint and the distance."""
    _, context, motion = next(row for row in MOTIONS if row[0] == "move")
    moved = replace(context, q=context.scene.configuration({"panda_joint2": 0.3}, base=context.q))
    with pytest.raises(ConfigurationError, match=r"motion 'to a turn' starts .* 'panda_joint2'"):
        list(Follow(motion).refine(ARM, moved, seed=0))


@pytest.mark.parametrize("kind", ["move", "pick", "effects"])
def test_a_motion_of_another_scene_is_rejected(kind: str) -> None:
    """A motion whose scene lacks a later change would undo it; the message has the change."""
    _, context, motion = next(row for row in MOTIONS if row[0] == kind)
    other = replace(context, scene=context.scene.set_classes("b", ["movable", "painted"]))
    with pytest.raises(ConfigurationError, match=r"planned in another scene: .*'b'"):
        list(Follow(motion).refine(ARM, other, seed=0))


def test_only_a_motion_can_be_followed() -> None:
    """A path or a candidate is an error when the candidate is made."""
    with pytest.raises(ArgumentError, match="motion"):
        Follow(np.zeros((2, 7)))  # type: ignore[arg-type]
