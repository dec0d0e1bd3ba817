"""Trial pick of a cube of 2 to 4 cm, which checks the description of an arm.

The arm plans to pick the cube from above, off a small support within its reach. The trial detects
errors of a consistent description, such as a tool that points sideways or a hand that opens too
little.

The result depends on the scene, the arm and the seed. The time limit is far above the usual time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tmkit._core import CollisionWorld, IkSettings, InverseKinematicsStatus, inverse_kinematics
from tmkit._support.elementary import atan2, norm
from tmkit._support.results import Result
from tmkit.formats.urdf.always_colliding import random_configurations
from tmkit.graph import AttachedShape, Box, Inertia, SceneGraph
from tmkit.manipulation import grasps_of
from tmkit.motion.collision_rules import CollisionRules
from tmkit.robots import Manipulator
from tmkit.robots.ready_posture import point_down
from tmkit.spatial import Pose
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.planning import solve
from tmkit.tamp.problem import PlanningProblem
from tmkit.tamp.progress import PlanningProgress
from tmkit.tamp.result import PlanResult

CUBES = (0.04, 0.03, 0.02)
"""Sides of the cubes, of which the largest that fits the hand is picked [m]."""

SUPPORT = "trial_support"
"""Frame of the support."""

OBJECT = "trial_cube"
"""Frame of the cube."""

_N_SAMPLES = 4000
"""Configurations that are sampled to find reachable positions."""

_MIN_DOWNWARD = 0.5
"""Smallest downward component of the tool's z axis at a candidate position."""

_MAX_CANDIDATES = 40
"""Candidate positions at which inverse kinematics runs."""

_MAX_PLANS = 3
"""Positions of the cube for which planning runs."""

_ITERATIONS = 2
"""Search iterations of each plan; the first usually suffices."""

_APPROACH_HEIGHT = 0.06
"""Height of the tool above the cube before the pick [m]."""

_MIN_FINGER_CLEARANCE = 0.008
"""Smallest difference of the open gripper width and the cube [m]."""

_SUPPORT_SIZE = (0.1, 0.1, 0.02)
"""Sides of the support [m]."""


class TrialPickStatus(StrEnum):
    """Outcome of a trial pick."""

    PICKED = "picked"
    NO_PLAN = "no plan"
    NO_PLACE = "no place"
    HAND_TOO_SMALL = "hand too small"
    NO_GRIPPER = "no gripper"


@dataclass(frozen=True, slots=True)
class TrialPick(Result):
    """Result of a trial pick.

    Attributes:
        status: outcome.
        reason: cause of the failure, in one sentence; empty for a success.
        scene: scene with support and cube; None without a position for the cube.
        result: result of the planner; None without a position for the cube.
        size: side of the cube [m].
    """

    status: TrialPickStatus
    reason: str = ""
    scene: SceneGraph | None = None
    result: PlanResult | None = None
    size: float = CUBES[0]

    def __repr__(self) -> str:
        outcome = self.reason if self.result is None else repr(self.result)
        return f"TrialPick({self.status.value}, cube of {self.size:g} m, {outcome})"


def trial_pick(
    scene: SceneGraph,
    robot: Manipulator,
    *,
    seed: int = 0,
    on_progress: Callable[[PlanningProgress], None] | None = None,
) -> TrialPick:
    """Plan to pick the largest cube of 2 to 4 cm that fits the hand, within the reach of an arm.

    Args:
        scene: scene of the arm, preferably without other bodies.
        robot: arm and gripper.
        seed: seed of the sampled positions and of planning.
        on_progress: function that receives planning progress.
    """
    arm = robot
    if arm.gripper_kind == "none":
        reason = f"the arm '{arm.name}' has no gripper"
        return TrialPick(TrialPickStatus.NO_GRIPPER, reason)
    room = arm.width_open - _MIN_FINGER_CLEARANCE if arm.is_two_fingered else CUBES[0]
    sizes = [size for size in CUBES if size <= room]
    size = next((size for size in sizes if _has_grasps(scene, arm, size)), next(iter(sizes), None))
    if size is None:
        smallest = 1000 * CUBES[-1]
        reason = (
            f"the hand opens to {1000 * arm.width_open:.0f} mm, too little for a cube of"
            f" {smallest:.0f} mm"
        )
        return TrialPick(TrialPickStatus.HAND_TOO_SMALL, reason, size=CUBES[-1])
    reason = (
        f"no position was found where '{arm.tool}' points down at a cube without a collision of the"
        " arm: check that its z axis points away from the hand, and the joint limits"
    )
    trial = TrialPick(TrialPickStatus.NO_PLACE, reason, size=size)
    options = PlanningOptions(seed=seed, time_limit=60.0, max_iterations=_ITERATIONS, suggest=False)
    for scene_with_cube in itertools.islice(_cube_scenes(scene, arm, size, seed), _MAX_PLANS):
        problem = PlanningProblem(scene_with_cube, goal=f"(holding {OBJECT})", robots=arm)
        result = solve(problem, options, on_progress=on_progress)
        if result.is_solved:
            return TrialPick(TrialPickStatus.PICKED, "", scene_with_cube, result, size)
        reason = _failure_reason(result)
        trial = TrialPick(TrialPickStatus.NO_PLAN, reason, scene_with_cube, result, size)
    return trial


def _failure_reason(result: PlanResult) -> str:
    """Return the first causes of a failed plan."""
    diagnosis = result.diagnosis
    causes = diagnosis.causes or tuple(
        f"{cause.phase}: {cause.cause}" for action in diagnosis.actions for cause in action.causes
    )
    return "; ".join(causes[:2]) or result.explanation


def _has_grasps(scene: SceneGraph, arm: Manipulator, size: float) -> bool:
    """Return whether a hand has grasps of a cube of a size [m], wherever it is."""
    scene_with_cube = _add_cube(scene, Pose(), size)
    return len(grasps_of(scene_with_cube, OBJECT, robot=arm)) > 0


def _add_cube(scene: SceneGraph, root_from_cube: Pose, size: float) -> SceneGraph:
    """Return the scene with a cube on a small support.

    Args:
        scene: scene of the arm.
        root_from_cube: pose of the cube.
        size: side of the cube [m].
    """
    cube = AttachedShape(Box((size,) * 3), color=(0.86, 0.1, 0.1, 1.0))
    support = AttachedShape(Box(_SUPPORT_SIZE))
    support_from_cube = Pose((0.0, 0.0, (_SUPPORT_SIZE[2] + size) / 2))
    scene = scene.add_frame(
        SUPPORT,
        scene.root_names[0],
        pose=root_from_cube @ support_from_cube.inverse(),
        classes=["surface"],
        shapes=[support],
    )
    scene = scene.add_frame(
        OBJECT, SUPPORT, pose=support_from_cube, classes=["movable"], shapes=[cube]
    )
    moment = 0.05 * size**2 / 6.0
    return scene.set_inertia(OBJECT, Inertia(0.05, (0.0, 0.0, 0.0), matrix=np.eye(3) * moment))


def _cube_scenes(
    scene: SceneGraph, arm: Manipulator, size: float, seed: int
) -> Iterator[SceneGraph]:
    """Yield scenes with a cube within reach that does not touch the arm when it is ready.

    Args:
        scene: scene of the arm.
        arm: arm with a hand.
        size: side of the cube [m].
        seed: seed of the sampled positions.
    """
    ready = arm.ready_configuration(scene)
    for root_from_cube in _cube_poses(scene, arm, seed):
        scene_with_cube = _add_cube(scene, root_from_cube, size)
        contacts = CollisionWorld(scene_with_cube).contacts(ready)
        if not any({SUPPORT, OBJECT} & {pair.frame_a, pair.frame_b} for pair in contacts):
            yield scene_with_cube


def _cube_poses(scene: SceneGraph, arm: Manipulator, seed: int) -> Iterator[Pose]:
    """Yield root_from_cube at which the tool can point straight down, at the cube and above it.

    They are nearest to the tool of the ready configuration. The cubes are turned like the tool in
    sampled configurations: an arm of few joints reaches a position with one rotation of the tool.
    """
    root, columns = scene.root_names[0], arm.joint_indices(scene)
    ready = arm.ready_configuration(scene)
    samples = np.tile(ready, (_N_SAMPLES, 1))
    samples[:, columns] = random_configurations(scene, _N_SAMPLES, seed=seed)[:, columns]
    rules = CollisionRules.from_start(arm, scene, q=ready)
    world = rules.check_world(scene, rules.allowed_contacts(scene))
    free_samples = samples[~world.in_collision_batch(samples)]
    ready_position = scene.pose(arm.tool, relative_to=root, q=ready).translation
    steep: list[tuple[float, int]] = []
    for index, q in enumerate(free_samples):
        pose = scene.pose(arm.tool, relative_to=root, q=q)
        if -pose.rotation[2, 2] > _MIN_DOWNWARD:
            steep.append((norm(pose.translation - ready_position), index))
    steep.sort()
    for _, index in steep[:_MAX_CANDIDATES]:
        q = point_down(scene, free_samples[index], joints=arm.joints, tool=arm.tool)
        if q is None:
            continue
        root_from_tool = scene.pose(arm.tool, relative_to=root, q=q)
        above = inverse_kinematics(
            scene,
            arm.tool,
            target_pose=Pose((0.0, 0.0, _APPROACH_HEIGHT)) @ root_from_tool,
            joints=arm.joints,
            q=q,
            settings=IkSettings(seed=seed),
        )
        if above.status == InverseKinematicsStatus.SOLVED:
            x_axis = root_from_tool.rotation[:, 0]
            yaw = atan2(x_axis[1], x_axis[0])
            yield Pose.from_rpy(root_from_tool.translation, (0.0, 0.0, yaw))
