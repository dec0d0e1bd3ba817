"""Uniform-cost search over beliefs: looks and motions until a goal holds with a probability.

In a scene with covariances, a version is a Gaussian over the poses of its frames. A look conditions
it on the expected measurement, and a grasp adds its own error. The goal is a chance constraint:
block a is on block b with a probability of 99 %. The domain blocks_uncertain requires 95 %.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.pddl import GroundAction
from tmkit.plans import Plan, PlanStep
from tmkit.tamp import PlanningDomain, load_planning_domain, stands_on

ACTION_COSTS = {"look": 1.0, "judge": 0.0}
"""Costs of actions without a motion of the arm."""

MOTION_COST = 3.0
"""Cost of an action with a motion of the arm."""

Configuration = NDArray[np.float64]


def position_deviation(belief: tk.SceneGraph, block: str, q: Configuration) -> float:
    """Return the largest standard deviation of a block's position in the base of the arm [mm]."""
    pose = belief.gaussian_pose(block, relative_to="panda_link0", q=q)
    variance = np.linalg.eigvalsh(pose.covariance[:3, :3])[-1]
    return float(1e3 * np.sqrt(variance))


def plan_in_beliefs(
    domain: PlanningDomain,
    scene: tk.SceneGraph,
    q: Configuration,
    upper: str,
    lower: str,
    *,
    probability: float,
) -> Plan | None:
    """Return a plan after which a block is on another with a probability."""
    ignored = {*scene.frames_of_class("movable")} - {upper, lower}

    def relevant_actions(belief: tk.SceneGraph, q: Configuration) -> Iterator[GroundAction]:
        problem = domain.problem(belief, q)
        for action in problem.applicable_actions(problem.init):
            if ignored.isdisjoint(action.arguments):
                yield action

    ties = count()
    start: tuple[PlanStep, ...] = ()
    queue = [(0.0, next(ties), scene, q, start)]
    visited: set[tk.SceneGraph] = set()
    while queue:
        cost, _, belief, configuration, steps = heapq.heappop(queue)
        if belief in visited:
            continue
        visited.add(belief)
        if belief.parent(upper) == lower:
            is_on = stands_on(belief, upper, lower, q=configuration)
            if is_on.is_at_least(probability):
                return domain.plan(scene, q, steps, f"(surely-on {upper} {lower})")
        actions = relevant_actions(belief, configuration)
        for successor in tk.successors(belief, configuration, domain, actions=actions, seed=0):
            for step in successor.steps:
                total = cost + ACTION_COSTS.get(step.action.name, MOTION_COST)
                heapq.heappush(queue, (total, next(ties), step.scene, step.q, (*steps, step)))
    return None


def main() -> None:
    """Stack two blocks whose positions are known to 2 cm, with a camera above them."""
    scene = tk.load_scene("panda_alone", "unsure_blocks")
    domain = load_planning_domain("blocks_uncertain", robot="panda")
    q = tk.load_manipulator("panda").ready_configuration(scene)
    plan = plan_in_beliefs(domain, scene, q, "a", "b", probability=0.99)
    assert plan is not None
    for step in plan.steps:
        deviations = (f"{x}: {position_deviation(step.scene, x, step.q):.1f} mm" for x in "ab")
        print(step.action, *deviations)
    print(tk.validate_plan(plan))


if __name__ == "__main__":
    main()
