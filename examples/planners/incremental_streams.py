"""Incremental algorithm of PDDLStream (https://arxiv.org/abs/1802.08705) over scene versions.

Samples are objects of PDDL. Each level draws one more placement and grasp of each object,
certifies facts about all of them, and searches for a task plan. An object moves from one pose to
another with a grasp that fits both. A pose is taken while an object is so near that no grasp
reaches it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

import tmkit as tk
from tmkit.manipulation import (
    ActionMotion,
    ArmMotionPlanner,
    Grasp,
    Placement,
    grasps_of,
    placements_in_region,
)
from tmkit.pddl import GroundAction, parse_domain, parse_problem
from tmkit.plans import Attachment, Plan, PlanStep
from tmkit.tamp import PlanningDomain, load_planning_domain
from tmkit.task_planning import FastDownward

TASK = parse_domain("""
(define (domain moves)
  (:types obj pose grasp)
  (:predicates (at ?o - obj ?p - pose) (fits ?p - pose ?g - grasp) (apart ?p ?r - pose)
    (taken ?o - obj ?p - pose))
  (:derived (taken ?o - obj ?p - pose)
    (exists (?b - obj ?r - pose) (and (at ?b ?r) (not (= ?o ?b)) (not (apart ?p ?r)))))
  (:action move
    :parameters (?o - obj ?p ?r - pose ?g - grasp)
    :precondition (and (at ?o ?p) (fits ?p ?g) (fits ?r ?g) (not (taken ?o ?r)))
    :effect (and (at ?o ?r) (not (at ?o ?p)))))
""")

N_ATTEMPTS = 4
"""Number of attempts at a motion."""


def first_motion(attempts: Iterable[object]) -> ActionMotion | None:
    """Return the first motion among some attempts."""
    motions = (each for each in islice(attempts, N_ATTEMPTS) if isinstance(each, ActionMotion))
    return next(motions, None)


class IncrementalPlanner:
    """Samples of a problem: poses and grasps by name, and the facts about them."""

    def __init__(
        self,
        domain: PlanningDomain,
        scene: tk.SceneGraph,
        q: NDArray[np.float64],
        robot: tk.Manipulator,
        region: str,
    ) -> None:
        self.domain, self.scene, self.q = domain, scene, q
        self.robot, self.region = robot, region
        self.arm = ArmMotionPlanner(robot)
        self.items = scene.frames_of_class("movable")
        self.poses: dict[str, Attachment] = {}
        for item in self.items:
            support = scene.parent(item)
            assert support is not None
            self.poses[f"{item}-p0"] = Attachment(item, support, scene.local_pose(item))
        self.grasps: dict[str, tuple[str, Grasp]] = {}
        self.facts = {f"(at {item} {item}-p0)" for item in self.items}
        rng = np.random.default_rng(0)
        self.places: dict[str, Iterator[Placement]] = {
            item: placements_in_region(scene, item, region, q=q, rng=rng) for item in self.items
        }

    def draw_samples(self, level: int) -> None:
        """Add a placement and a grasp of each object, and the facts about all samples."""
        for item in self.items:
            place = next(self.places[item])
            self.poses[f"{item}-p{level}"] = Attachment(
                item, place.support, place.support_from_object
            )
            grasp = grasps_of(self.scene, item, robot=self.robot)[level - 1]
            self.grasps[f"{item}-g{level}"] = (item, grasp)
        for pose, attachment in self.poses.items():
            for name, (item, grasp) in self.grasps.items():
                if attachment.frame != item or not self.is_reached(grasp, pose):
                    continue
                self.facts.add(f"(fits {pose} {name})")
                for other in self.poses:
                    if self.poses[other].frame != item and self.is_reached(grasp, pose, other):
                        self.facts.add(f"(apart {pose} {other})")

    def is_reached(self, grasp: Grasp, pose: str, *others: str) -> bool:
        """Return whether a grasp is reached at a pose, beside objects at other poses alone."""
        placed = [self.poses[name] for name in (pose, *others)]
        version = self.scene
        for item in self.items:
            if all(attachment.frame != item for attachment in placed):
                version = version.remove_frame(item)
        for attachment in placed:
            version = attachment.apply(version, self.q)
        object = placed[0].frame
        picks = self.arm.pick(version, self.q, object=object, grasp=grasp, seed=0)
        return first_motion(picks) is not None

    def task_plan(self, level: int) -> tuple[GroundAction, ...]:
        """Return a task plan by the samples so far, empty without one."""
        goals = [
            f"(or {' '.join(f'(at {item} {item}-p{k})' for k in range(1, level + 1))})"
            for item in self.items
        ]
        text = f"""(define (problem samples) (:domain moves)
            (:objects {" ".join(self.items)} - obj {" ".join(self.poses)} - pose
                {" ".join(self.grasps)} - grasp)
            (:init {" ".join(sorted(self.facts))})
            (:goal (and {" ".join(goals)})))"""
        return next(FastDownward().plans(parse_problem(text, TASK)), ())

    def steps(self, task_plan: Iterable[GroundAction]) -> tuple[PlanStep, ...] | None:
        """Return the motions of a task plan in sequence, or None."""
        steps: list[PlanStep] = []
        version, q = self.scene, self.q
        for action in task_plan:
            item, _, pose, grasp_name = action.arguments
            _, grasp = self.grasps[grasp_name]
            pick = first_motion(self.arm.pick(version, q, object=item, grasp=grasp, seed=0))
            if pick is None:
                return None
            place = first_motion(
                self.arm.place(pick.scene, pick.q, change=self.poses[pose], seed=0)
            )
            if place is None:
                return None
            for motion in (pick, place):
                name = self.domain.action_of((version, q), (motion.scene, motion.q))
                steps.append(motion.step(name))
                version, q = motion.scene, motion.q
        return tuple(steps)

    def solve(self, *, levels: int = 8) -> Plan | None:
        """Return a plan that puts all objects on the region."""
        for level in range(1, levels):
            self.draw_samples(level)
            task_plan = self.task_plan(level)
            steps = self.steps(task_plan)
            if task_plan and steps is not None:
                goal = f"(and {' '.join(f'(on {item} {self.region})' for item in self.items)})"
                return self.domain.plan(self.scene, self.q, steps, goal)
        return None


def main() -> None:
    """Put three blocks on a mat; the names of the actions are those of the domain kitchen."""
    scene = tk.load_scene("panda_table", "blocks3")
    mat = tk.AttachedShape(tk.Box([0.16, 0.16, 0.002]), collision=False)
    scene = scene.add_frame(
        "mat", "table", pose=tk.Pose([-0.2, -0.3, 0.026]), classes=["region"], shapes=[mat]
    )
    robot = tk.load_manipulator("panda")
    domain = load_planning_domain("kitchen", robot="panda")
    planner = IncrementalPlanner(domain, scene, robot.ready_configuration(scene), robot, "mat")
    plan = planner.solve()
    assert plan is not None
    print(*plan.actions)
    print(tk.validate_plan(plan))


if __name__ == "__main__":
    main()
