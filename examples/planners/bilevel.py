"""Bilevel planner: skeletons by a task planner, and motions by samplers of their actions.

An operator with its sampler is the neuro-symbolic relational transition model (NSRT) of
https://arxiv.org/abs/2105.14074; the samplers here are handwritten. A red can is in a niche behind
two blue cans, and has to be on a tray.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.manipulation import ActionContext, Candidate, Pick, Place
from tmkit.motion import lies_in_region
from tmkit.pddl import GroundAction, State, make_action, make_domain, make_predicate
from tmkit.plans import Plan
from tmkit.tamp import DomainSemantics, PlanningDomain, PythonDomain, load_planning_domain
from tmkit.task_planning import FastDownward

on = make_predicate("on", "?o - item ?r - region")
holding = make_predicate("holding", "?o - item")
handempty = make_predicate("handempty", "")

pick = make_action(
    "pick",
    "?o - item ?r - region",
    needs=[on("?o", "?r"), handempty()],
    adds=[holding("?o")],
    deletes=[on("?o", "?r"), handempty()],
)
place = make_action(
    "place",
    "?o - item ?r - region",
    needs=[holding("?o")],
    adds=[on("?o", "?r"), handempty()],
    deletes=[holding("?o")],
)


class Tidying(DomainSemantics):
    """Facts of a scene, and a sampler for each operator."""

    def objects(self, scene: tk.SceneGraph) -> Mapping[str, str]:
        """Return the items and the two regions."""
        items = dict.fromkeys(scene.frames_of_class("movable"), "item")
        return {**items, "tray": "region", "table": "region"}

    def state(
        self, scene: tk.SceneGraph, objects: Mapping[str, str], q: NDArray[np.float64]
    ) -> State:
        """Return the facts of a scene."""
        facts = []
        for item in (name for name, kind in objects.items() if kind == "item"):
            if scene.parent(item) == self.robot.tip:
                facts.append(holding.fact(item))
            else:
                is_on_tray = lies_in_region(scene, item, "tray", q=q)
                facts.append(on.fact(item, "tray" if is_on_tray else "table"))
        if not any(fact.predicate == "holding" for fact in facts):
            facts.append(handempty.fact())
        return State(facts)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Return candidates of an action, best first."""
        item, region = action.arguments
        if action.name == "pick":
            return (Pick(item, grasp) for grasp in context.grasps(item))
        return (Place.at(item, placement) for placement in context.placements(item, region))


DOMAIN = PythonDomain(
    make_domain(
        "tidying", types="item region", predicates=[on, holding, handempty], actions=[pick, place]
    ),
    Tidying,
)


def plan_in_two_levels(
    domain: PlanningDomain,
    scene: tk.SceneGraph,
    q: NDArray[np.float64],
    goal: str,
    *,
    budgets: Sequence[int] = (16, 64, 256),
) -> Plan | None:
    """Return a plan, with more attempts for each action in each round."""
    for attempts in budgets:
        # No constraint of the previous round is proved, so each round starts without them.
        options = tk.PlanningOptions(
            attempts_per_action=attempts, samples_per_skeleton=8 * attempts
        )
        skeletons = FastDownward().plans(domain.problem(scene, q, goal))
        for skeleton in skeletons:
            result = tk.refine(scene, q, skeleton, domain, seed=0, options=options)
            if result.cause is None:
                return domain.plan(scene, q, result.steps, goal)
            cause = result.cause
            print(len(skeleton), "actions:", cause.action, "fails while", *cause.facts)
            skeletons.forbid(cause.action, cause.facts)
    return None


def make_scene() -> tk.SceneGraph:
    """Return a table with three cans in a niche, and a tray."""
    scene = tk.load_scene("panda_table")
    side = tk.AttachedShape(tk.Box([0.02, 0.3, 0.3]))
    roof = tk.AttachedShape(tk.Box([0.2, 0.3, 0.02]), tk.Pose([-0.1, 0.0, 0.16]))
    scene = scene.add_frame("niche", "table", pose=tk.Pose([0.1, 0.2, 0.175]), shapes=[side, roof])
    tray = tk.AttachedShape(tk.Box([0.2, 0.2, 0.002]), collision=False)
    scene = scene.add_frame(
        "tray", "table", pose=tk.Pose([-0.2, -0.3, 0.026]), classes=["region"], shapes=[tray]
    )
    for name, x, y in (("red", 0.03, 0.2), ("blue1", -0.08, 0.15), ("blue2", -0.08, 0.24)):
        can = tk.AttachedShape(tk.Cylinder(0.03, 0.12))
        pose = tk.Pose([x, y, 0.085])
        scene = scene.add_frame(name, "table", pose=pose, classes=["movable"], shapes=[can])
    return scene


def main() -> None:
    """Fetch the red can."""
    scene = make_scene()
    domain = load_planning_domain(DOMAIN, robot="panda")
    q = tk.load_manipulator("panda").ready_configuration(scene)
    plan = plan_in_two_levels(domain, scene, q, "(on red tray)")
    assert plan is not None
    print(*plan.actions)
    print(tk.validate_plan(plan, domain=domain))


if __name__ == "__main__":
    main()
