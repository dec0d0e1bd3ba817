"""Exhaustive search over discretised grasps and places, an oracle for the planner.

Its nodes are assignments of objects to places, its edges transfers: pick an object with some grasp
and put it on some place. Breadth first, every grasp is tried with every way of coming and leaving;
nothing is estimated or learned. It is slow and exact: its result is a plan whose motions are
computed and validated.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

import tmkit as tk
from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    ActionMotion,
    ArmMotionPlanner,
    Grasp,
    MotionSettings,
    Pick,
    PickPlaceOptions,
    Place,
    grasps_of,
)
from tmkit.motion import CollisionRules
from tmkit.pddl import GroundAction
from tmkit.plans import ObjectAt, Plan, PlanStep
from tmkit.plans.continuous_goals import ContinuousGoal
from tmkit.plans.values import Configuration
from tmkit.robots import load_manipulator, movable_frames
from tmkit.spatial import Pose
from tmkit.tamp import load_planning_domain

__all__ = ["SmallProblem", "Spot", "exhaustive_plan"]

C = TypeVar("C", Pick, Place)

_ATTEMPTS = 2  # motions of one candidate


@dataclass(frozen=True)
class Spot:
    """A place for any object.

    Attributes:
        support: frame to stand on; a region of the kitchen.
        x, y: centre of an object, in the support's frame [m].
        turn: angle about z [rad].
    """

    support: str
    x: float
    y: float
    turn: float = 0.0


@dataclass(frozen=True, eq=False)
class SmallProblem:
    """A scene with a Panda and the kitchen's regions, in which one object is wanted at a place.

    Attributes:
        scene: the scene.
        target: the object.
        wanted: where it is to be.
        spots: temporary places for any object.
        transfers: by how many it is to be solved at most.
    """

    scene: SceneGraph
    target: str
    wanted: Spot
    spots: tuple[Spot, ...]
    transfers: int

    @property
    def goal(self) -> list[str | ContinuousGoal]:
        """The goal for the planner: on the region, or near the place on the table or board."""
        if self.wanted.support == "mat":
            return [f"(on {self.target} mat)"]
        pose = _pose(self.scene, self.target, self.wanted)
        return [ObjectAt(self.target, pose, relative_to=self.wanted.support, metres=0.01)]


@dataclass(frozen=True, eq=False)
class _Node:
    at: Mapping[str, Spot | None]  # None for where an object is at the start
    scene: SceneGraph
    q: Configuration
    steps: tuple[PlanStep, ...]


def exhaustive_plan(problem: SmallProblem, *, seed: int = 0) -> Plan | None:
    """Return a validated plan of a problem; None where there is none with these grasps and places.

    Args:
        problem: the problem.
        seed: of the path searches.
    """
    scene, target, wanted = problem.scene, problem.target, problem.wanted
    robot = load_manipulator("panda")
    q = robot.ready_configuration(scene)
    arm = ArmMotionPlanner(
        robot, budget=MotionSettings(4, 1000), rules=CollisionRules.from_start(robot, scene, q=q)
    )
    objects = movable_frames(scene)
    grasps = {name: grasps_of(scene, name, robot=robot) for name in objects}
    start = _Node(dict.fromkeys(objects), scene, q, ())
    seen, queue = {_key(start.at)}, deque([start])
    while queue:
        node = queue.popleft()
        ends = [*((target, spot) for spot in (wanted,)), *itertools.product(objects, problem.spots)]
        for name, spot in ends:
            assignment = {**node.at, name: spot}
            is_goal = name == target and spot is wanted
            if (
                spot in node.at.values()
                or _key(assignment) in seen
                or (len(node.steps) // 2 + 1 == problem.transfers and not is_goal)
            ):
                continue
            reached = _transfer(
                node, assignment, name, spot, arm=arm, grasps=grasps[name], seed=seed
            )
            if reached is None:
                continue
            if is_goal:
                return _plan(scene, q, reached.steps, robot, goal=f"(on {target} {spot.support})")
            seen.add(_key(assignment))
            queue.append(reached)
    return None


def _key(assignment: Mapping[str, Spot | None]) -> object:
    return tuple(assignment.items())


def _transfer(
    node: _Node,
    assignment: Mapping[str, Spot | None],
    name: str,
    spot: Spot,
    *,
    arm: ArmMotionPlanner,
    grasps: Sequence[Grasp],
    seed: int,
) -> _Node | None:
    """Return the node after a transfer, by the first grasp that can be carried out at both ends."""
    before, scene = node.scene.parent(name), node.scene
    assert before is not None
    pose = _pose(scene, name, spot)
    picks = [Pick(name, grasp, motion=motion) for grasp in grasps for motion in _motions(grasp)]
    for pick, picked in _execute(picks, node.scene, node.q, arm, seed):
        places = [Place(name, spot.support, pose, motion=motion) for motion in _motions(pick.grasp)]
        for _, placed in _execute(places, picked.scene, picked.q, arm, seed):
            steps = (
                picked.step(GroundAction("pick", (name, before))),
                placed.step(GroundAction("place", (name, spot.support))),
            )
            return _Node(assignment, placed.scene, placed.q, (*node.steps, *steps))
    return None


def _pose(scene: SceneGraph, name: str, spot: Spot) -> Pose:
    """Return support_from_object of an object at a place."""
    height = (
        scene.shapes(spot.support)[0].shape.bounds[1][2]
        - scene.shapes(name)[0].shape.bounds[0][2]
        + 1e-4
    )
    return Pose(
        [spot.x, spot.y, height], [0.0, 0.0, math.sin(spot.turn / 2), math.cos(spot.turn / 2)]
    )


def _motions(grasp: Grasp) -> Iterator[PickPlaceOptions]:
    """Yield approaches and retreats: usual, short, long, straight, or with a small opening."""
    yield PickPlaceOptions(min_fraction=0.2)
    yield PickPlaceOptions(
        approach_distance=0.2, lift_distance=0.02, post_grasp_retreat=0.2, min_fraction=0.5
    )
    yield PickPlaceOptions(gripper_opening=grasp.width + 0.002, min_fraction=0.2)


def _execute(
    candidates: Sequence[C], scene: SceneGraph, q: Configuration, arm: ArmMotionPlanner, seed: int
) -> Iterator[tuple[C, ActionMotion]]:
    for candidate in candidates:
        context = ActionContext(scene, q, np.random.default_rng(seed))
        for motion in itertools.islice(candidate.refine(arm, context, seed=seed), _ATTEMPTS):
            if isinstance(motion, ActionMotion):
                yield candidate, motion
                break


def _plan(
    scene: SceneGraph,
    q: Configuration,
    steps: tuple[PlanStep, ...],
    robot: tk.Manipulator,
    *,
    goal: str,
) -> Plan:
    domain = load_planning_domain("kitchen", robot=robot)
    plan = Plan(
        scene=scene,
        q=q,
        robots=(robot,),
        domain=domain.name,
        domain_pddl=domain.pddl,
        domain_digest=domain.digest,
        semantics=domain.semantics_name,
        goal=goal,
        seed=0,
        steps=steps,
    )
    report = tk.validate_plan(plan)
    assert report.is_valid, report.problems
    return plan
