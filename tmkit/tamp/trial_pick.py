"""A trial pick: whether an arm can take a cube of 4 cm off a small support, looking down, where its tool comes.

It shows what makes a consistent description useless: a tool that points sideways, a hand that opens
too little, ...

Invariants: a function of scene, arm and seed; no clock decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tmkit._core import IkSettings, InverseKinematicsStatus, inverse_kinematics
from tmkit._support.elementary import atan2
from tmkit._support.results import Result
from tmkit.formats.urdf.always_colliding import random_configurations
from tmkit.graph import AttachedShape, Box, Inertia, SceneGraph
from tmkit.motion.collision_rules import CollisionRules
from tmkit.robots import Manipulator
from tmkit.spatial import Pose
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.planning import solve
from tmkit.tamp.problem import PlanningProblem
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.result import PlanResult

CUBE = 0.04
"""Metres: the side of the cube."""

SUPPORT, OBJECT = "trial_support", "trial_cube"

_SAMPLES = 4000
_STEEP = 0.5  # least downward part of the tool's z for a place to be tried
_PLACES = 40
_TASK_PLANS = 3
_ITERATIONS = 2  # of each plan: a cube that can be picked is picked in the first
_ABOVE = 0.06  # metres over the cube from which it is approached
_TABLE = (0.1, 0.1, 0.02)


class TrialPickStatus(StrEnum):
    """How a trial pick went."""

    PICKED = "picked"
    NO_PLAN = "no plan"
    NO_PLACE = "no place"
    HAND_TOO_SMALL = "hand too small"


@dataclass(frozen=True, slots=True)
class TrialPick(Result):
    """What came of a trial pick.

    Attributes:
        reason: why the cube cannot be picked, in one sentence; empty when it can.
        scene: the scene with support and cube, where a place was found.
        result: the planner's answer, where a place was found.
    """

    status: TrialPickStatus
    reason: str = ""
    scene: SceneGraph | None = None
    result: PlanResult | None = None

    def __repr__(self) -> str:
        found = self.reason if self.result is None else repr(self.result)
        return f"TrialPick({self.status.value}, cube of {CUBE:g} m, {found})"


def trial_pick(
    scene: SceneGraph,
    manipulator: Manipulator,
    *,
    seed: int = 0,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> TrialPick:
    """Plan to pick a cube of 4 cm from where the tool comes, in a scene that best has the robot alone."""
    arm = manipulator
    if arm.gripper_kind == "parallel" and arm.width_open < CUBE + 0.008:
        reason = f"the hand opens to {1000 * arm.width_open:.0f} mm, too little for a cube of 40 mm"
        return TrialPick(TrialPickStatus.HAND_TOO_SMALL, reason)
    last: TrialPick | None = None
    for number, place in enumerate(_places(scene, arm, seed)):
        tried = _with_cube(scene, place)
        goal = f"(holding {OBJECT})"
        options = PlanningOptions(
            seed=seed, time_limit=60.0, max_iterations=_ITERATIONS, suggest=False
        )
        result = solve(
            PlanningProblem(tried, goal=goal, robots=arm), options, on_progress=on_progress
        )
        if result.is_solved:
            return TrialPick(TrialPickStatus.PICKED, "", tried, result)
        found = result.diagnosis
        causes = found.causes or tuple(
            f"{one.phase}: {one.cause}" for action in found.actions for one in action.causes
        )
        last = TrialPick(
            TrialPickStatus.NO_PLAN, "; ".join(causes[:2]) or result.explanation, tried, result
        )
        if number + 1 == _TASK_PLANS:
            break
    nowhere = (
        f"no place was found where '{arm.tool}' looks down at a cube and the arm is free: see that"
        " its z points away from the hand, and the limits of the joints"
    )
    return TrialPick(TrialPickStatus.NO_PLACE, nowhere) if last is None else last


def _with_cube(scene: SceneGraph, place: NDArray[np.float64]) -> SceneGraph:
    """Return the scene with a cube whose centre is at ``place`` (3,) in the root's axes, on a small support."""
    x, y, z = (float(value) for value in place)
    cube, table = (
        AttachedShape(Box((CUBE,) * 3), color=(0.86, 0.1, 0.1, 1.0)),
        AttachedShape(Box(_TABLE)),
    )
    top = z - CUBE / 2
    scene = scene.add_frame(
        SUPPORT,
        scene.root_names[0],
        pose=Pose((x, y, top - _TABLE[2] / 2)),
        classes=["surface"],
        shapes=[table],
    )
    pose = Pose((0.0, 0.0, (_TABLE[2] + CUBE) / 2))
    scene = scene.add_frame(OBJECT, SUPPORT, pose=pose, classes=["movable"], shapes=[cube])
    moment = 0.05 * CUBE**2 / 6.0
    return scene.set_inertia(OBJECT, Inertia(0.05, (0.0, 0.0, 0.0), matrix=np.eye(3) * moment))


def _places(scene: SceneGraph, arm: Manipulator, seed: int) -> Iterator[NDArray[np.float64]]:
    """Yield centres of cubes (3,) over which the tool can look straight down, both at the cube and above it."""
    root, moving = scene.root_names[0], arm.joint_indices(scene)
    ready = arm.ready_configuration(scene)
    drawn = np.tile(ready, (_SAMPLES, 1))
    drawn[:, moving] = random_configurations(scene, _SAMPLES, seed=seed)[:, moving]
    rules = CollisionRules.from_start(arm, scene, q=ready)
    free = ~rules.check_world(scene, rules.allowed_contacts(scene)).in_collision_batch(drawn)
    poses = [(q, scene.pose(arm.tool, relative_to=root, q=q)) for q in drawn[free]]
    steep = [(float(-pose.rotation[2, 2]), number) for number, (_, pose) in enumerate(poses)]
    best = sorted((one for one in steep if one[0] > _STEEP), key=lambda one: -one[0])[:_PLACES]
    for _, number in best:
        q, pose = poses[number]
        place = np.asarray(np.round(pose.translation, 3), dtype=np.float64)
        x = pose.rotation[:, 0]
        yaw = atan2(x[1], x[0])
        targets = [
            Pose.from_rpy((*place[:2], place[2] + height), (np.pi, 0.0, yaw))
            for height in (_ABOVE, 0.0)
        ]
        found = (
            inverse_kinematics(
                scene,
                arm.tool,
                target_pose=target,
                joints=arm.joints,
                q=q,
                settings=IkSettings(seed=seed),
            )
            for target in targets
        )
        if all(reached.status == InverseKinematicsStatus.SOLVED for reached in found):
            yield place
