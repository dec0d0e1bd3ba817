"""Module ``tmsmtpy`` of scripts: operators, which are motions and changes of parents in sequence.

``op_motion`` and ``op_cartesian`` plan a motion at once, so that a script may compute the next pose
from its end. The goal is a single exact pose of the tip of a chain. As in the original, motions
need no margin: a held object may end 0.1 mm above its support.

Attributes of an operator are ``initial_scene``, ``initial_config``, ``final_scene`` and
``final_config``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from tmkit.errors import SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.pick_place import ArmMotionPlanner
from tmkit.motion.collision_rules import TOUCH_TOLERANCE
from tmkit.plans.failures import MotionFailure
from tmkit.plans.values import Segment
from tmkit.tamp.domains.tmsmt_scripts.aminopy import (
    Chain,
    FrameView,
    JointValues,
    SceneView,
    Transform,
    frame_isa,
    scene_tf_abs,
    scene_tf_rel,
)


class PlanningFailureError(Exception):
    """A refinement without a motion; scripts raise it as ``tmsmtpy.PlanningFailure(value)``.

    Args:
        value: reason.
        failures: failures of the attempts. Defaults to one with the reason.
    """

    def __init__(self, value: object = None, *, failures: Sequence[MotionFailure] = ()) -> None:
        super().__init__(value)
        cause = "the script reports a failure" + ("" if value is None else f": {value}")
        self.failures = tuple(failures) or (MotionFailure("refining", cause),)


@dataclass(frozen=True)
class Operator:
    """Motions and changes of parents in sequence; see the module."""

    initial_scene: SceneView
    initial_config: JointValues
    final_scene: SceneView
    final_config: JointValues
    segments: tuple[Segment, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    @property
    def end(self) -> ActionMotion:
        """Motion of the operator, with the scene and the configuration after it."""
        q = self.final_scene.configuration(self.final_config)
        return ActionMotion(self.segments, self.final_scene.graph, q, "")

    def append(self, motion: ActionMotion | MotionFailure) -> Operator:
        """Return this operator with a motion after it.

        Raises:
            PlanningFailureError: if the motion is a failure.
        """
        if isinstance(motion, MotionFailure):
            raise PlanningFailureError(failures=[motion])
        scene = replace(self.final_scene, graph=motion.scene)
        segments = (*self.segments, *motion.segments)
        values = scene.joint_values(motion.q)
        return replace(self, final_scene=scene, final_config=values, segments=segments)


@dataclass(frozen=True)
class _Refinement:
    """Arms that operators move, by the frame of the hand, and the seed of their searches."""

    arms_by_hand: Mapping[str, ArmMotionPlanner]
    seed: int


_refinement: ContextVar[_Refinement | None] = ContextVar("refinement", default=None)


@contextmanager
def refinement(arms: Mapping[str, ArmMotionPlanner], seed: int) -> Iterator[None]:
    """Let operators move arms until the block ends.

    Args:
        arms: motion planners by name of the arm.
        seed: seed of all searches.
    """
    arms_by_hand = {arm.robot.tip: _without_margin(arm) for arm in arms.values()}
    token = _refinement.set(_Refinement(arms_by_hand, seed))
    try:
        yield
    finally:
        _refinement.reset(token)


def _without_margin(arm: ArmMotionPlanner) -> ArmMotionPlanner:
    """Return a planner of an arm whose motions may touch all bodies."""
    primitives = arm.primitives
    return ArmMotionPlanner(
        arm.robot,
        budget=replace(primitives.budget, margin=-TOUCH_TOLERANCE),
        rules=primitives.rules,
        clock=primitives.clock,
        motion_planner=primitives.motion_planner,
    )


def _current_refinement() -> _Refinement:
    current = _refinement.get()
    if current is None:
        raise SceneError("an operator moves the arm only in a function of bind_refine_operator()")
    return current


def _arm_of(chain: Chain, scene: SceneGraph) -> ArmMotionPlanner:
    """Return the arm whose hand carries the tip of a chain.

    Raises:
        SceneError: if there is none.
    """
    arms = _current_refinement().arms_by_hand
    hand = next((name for name in (chain.tip, *scene.ancestors(chain.tip)) if name in arms), None)
    if hand is None:
        hands = ", ".join(map(repr, arms))
        raise SceneError(f"no hand moves the frame '{chain.tip}'; the hands are {hands}")
    return arms[hand]


def op_motion(previous: Operator, chain: Chain, goal: Transform) -> Operator:
    """Return an operator followed by a motion of the tip of a chain to a pose in the world.

    Raises:
        PlanningFailureError: if no motion is found.
    """
    seed, start = _current_refinement().seed, previous.end
    scene, tip = start.scene, chain.tip
    arm, failures = _arm_of(chain, scene), []
    for attempt in arm.move(scene, start.q, to=goal.pose, frame=tip, seed=seed, name=tip):
        if isinstance(attempt, ActionMotion):
            return previous.append(attempt)
        failures.append(attempt)
    raise PlanningFailureError(failures=failures)


def op_cartesian(previous: Operator, chain: Chain, goal: Transform) -> Operator:
    """Return an operator followed by a straight motion of the tip of a chain to a pose.

    Raises:
        PlanningFailureError: if the arm cannot follow the line.
    """
    start = previous.end
    arm = _arm_of(chain, start.scene)
    tip_from_tool = start.scene.pose(arm.robot.tool, relative_to=chain.tip, q=start.q)
    target = goal.pose @ tip_from_tool
    return previous.append(next(arm.move_straight(start.scene, start.q, to=target)))


def op_reparent(previous: Operator, parent: str, frame: str) -> Operator:
    """Return an operator after which a hand holds or releases an object, at its pose in the world.

    Raises:
        PlanningFailureError: if the hand is not empty, or the object does not rest on its parent.
        SceneError: if neither the new nor the old parent is a hand.
    """
    view, start = previous.final_scene, previous.end
    hands = _current_refinement().arms_by_hand
    object, old_parent, new_parent = view[frame].name, view[frame].parent, view[parent].name
    if new_parent in hands:
        attempts = hands[new_parent].close(start.scene, start.q, object=object)
    elif old_parent in hands:
        attempts = hands[old_parent].open(start.scene, start.q, parent=new_parent)
    else:
        raise SceneError(
            f"op_reparent: neither '{new_parent}' nor '{old_parent}', the parents of '{object}',"
            f" is a hand: {', '.join(map(repr, hands))}",
            frame=object,
        )
    return previous.append(next(attempts))


def op_nop(scene: SceneView, config: JointValues) -> Operator:
    """Return the operator that changes nothing."""
    return Operator(scene, config, scene, config)


def op_tf_abs(operator: Operator, frame: str) -> Transform:
    """Return the pose of a frame in the world after an operator."""
    return scene_tf_abs(operator.final_scene, operator.final_config, frame)


def op_tf_rel(operator: Operator, parent: str, child: str) -> Transform:
    """Return the pose of a frame relative to another after an operator."""
    return scene_tf_rel(operator.final_scene, operator.final_config, parent, child)


def plan(*operators: Any) -> Operator:
    """Return an operator that consists of others, or of sequences of others."""
    parts = [*_operators(operators)]
    first, last = parts[0], parts[-1]
    segments = tuple(segment for part in parts for segment in part.segments)
    return replace(
        last,
        initial_scene=first.initial_scene,
        initial_config=first.initial_config,
        segments=segments,
    )


def _operators(parts: Sequence[Any]) -> Iterator[Operator]:
    for part in parts:
        if isinstance(part, Operator):
            yield part
        else:
            yield from _operators(part)


def collect_frame_type(scene: SceneView, type: str) -> list[FrameView]:
    """Return the frames of a class, sorted by name."""
    return [scene[name] for name in scene.names if frame_isa(scene[name], type)]


def mangle(*parts: object) -> str:
    """Return the name of a list of names and numbers, joined by ``__``."""
    return "__".join(
        f"-LP-__{mangle(*part)}__-RP-" if isinstance(part, list | tuple) else str(part)
        for part in parts
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "PlanningFailure": PlanningFailureError,
    "collect_frame_type": collect_frame_type,
    "mangle": mangle,
    "op_cartesian": op_cartesian,
    "op_motion": op_motion,
    "op_nop": op_nop,
    "op_reparent": op_reparent,
    "op_tf_abs": op_tf_abs,
    "op_tf_rel": op_tf_rel,
    "plan": plan,
}
"""Contents of the module by name, beside its bindings."""
