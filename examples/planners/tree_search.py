"""Monte-Carlo tree search over scene versions, with the motions of all applicable actions.

The search is UCT (https://doi.org/10.1007/11871842_29). The reward is the fraction of the goal
facts that hold, in place of a simulation to the end of an episode. A version is a value, so a node
contains its scene, and a return to it costs nothing. Two blocks have to be on a mat.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.pddl import Fact
from tmkit.plans import Plan, PlanStep
from tmkit.tamp import PlanningDomain, load_planning_domain

EXPLORATION = 0.7
"""Weight of nodes with few visits."""


@dataclass(eq=False)
class Node:
    """Scene version in the tree, with the steps that lead to it."""

    domain: PlanningDomain
    scene: tk.SceneGraph
    q: NDArray[np.float64]
    steps: tuple[PlanStep, ...] = ()
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    visits: int = 0
    value: float = 0.0

    def __post_init__(self) -> None:
        # The iterator is lazy: no motion is computed yet.
        self.untried = tk.successors(self.scene, self.q, self.domain, seed=0)

    def score(self) -> float:
        """Return the upper confidence bound of the mean reward."""
        assert self.parent is not None
        exploration = math.sqrt(math.log(self.parent.visits) / self.visits)
        return self.value / self.visits + EXPLORATION * exploration


def select_leaf(root: Node) -> Node:
    """Return a new child of the best node, or a node without further successors."""
    node = root
    while (successor := next(node.untried, None)) is None and node.children:
        node = max(node.children, key=Node.score)
    if successor is None or not successor.steps:  # the action has no motion
        return node
    step = successor.steps[0]
    child = Node(node.domain, step.scene, step.q, (*node.steps, step), node)
    node.children.append(child)
    return child


def search_tree(
    domain: PlanningDomain,
    scene: tk.SceneGraph,
    q: NDArray[np.float64],
    goal: set[Fact],
    *,
    iterations: int,
) -> Plan | None:
    """Return a plan to all facts of a goal."""
    root = Node(domain, scene, q)
    for _ in range(iterations):
        leaf = select_leaf(root)
        facts = domain.state(leaf.scene, leaf.q).facts
        reward = len(goal & facts) / len(goal)
        if reward == 1.0:
            goal_text = f"(and {' '.join(sorted(map(str, goal)))})"
            return domain.plan(scene, q, leaf.steps, goal_text)
        node: Node | None = leaf
        while node is not None:
            node.visits += 1
            node.value += reward
            node = node.parent
    return None


def main() -> None:
    """Put two blocks on a mat."""
    scene = tk.load_scene("panda_table", "blocks3")
    mat = tk.AttachedShape(tk.Box([0.2, 0.2, 0.002]), collision=False)
    scene = scene.add_frame(
        "mat", "table", pose=tk.Pose([-0.1, 0.3, 0.026]), classes=["region"], shapes=[mat]
    )
    domain = load_planning_domain("kitchen", robot="panda")
    q = tk.load_manipulator("panda").ready_configuration(scene)
    goal = {Fact.of("on", "a", "mat"), Fact.of("on", "b", "mat")}
    plan = search_tree(domain, scene, q, goal, iterations=400)
    assert plan is not None
    print(*plan.actions)
    print(tk.validate_plan(plan))


if __name__ == "__main__":
    main()
