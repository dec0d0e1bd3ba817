"""Checking a plan: everything is worked out again, at finer steps than the planner's.

The checker believes nothing but the first scene, the arm and the goal. It derives the symbolic states from the scene
versions again and validates the actions by the words of the domain; it follows every segment from the configuration
where the last one ended; it derives again what may touch; it checks limits and collisions without margin at 0.003 rad
and 1 mm of tool travel; and it asks whether a grasp is one: both fingers at the object, the object where the hand takes
it.

Invariants: :attr:`CheckReport.ok` is true only when no problem was found; all problems are listed, not just the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tmkit.graph import SceneGraph
from tmkit.motion import (
    CollisionRules,
    CollisionWorld,
    Exemption,
    RecheckStatus,
    movable_frames,
    recheck_path,
)
from tmkit.planner.motion_pieces import CHECK_RESOLUTION, CHECK_TRAVEL, Configuration
from tmkit.planner.search import derive_problem
from tmkit.planner.semantics import PlanningDomain, load_planning_domain
from tmkit.planner.values import Plan, PlanStep, Segment, SegmentKind
from tmkit.tasks import Problem, validate_plan

__all__ = ["CheckReport", "check_plan"]

_JOIN_TOLERANCE = 1e-9  # radians: consecutive segments share an end
_POSE_TOLERANCE = 1e-5  # metres and radians: what is reparented does not move
_CONTACT_TOLERANCE = 0.002  # metres between a finger and what it holds


@dataclass(frozen=True)
class CheckReport:
    """What a check found.

    Attributes:
        problems: every problem in words; none when the plan holds.
        actions: number of actions checked.
        segments: number of segments checked.
        configurations: number of configurations checked for collision.
    """

    problems: tuple[str, ...]
    actions: int
    segments: int
    configurations: int

    @property
    def ok(self) -> bool:
        """Whether the plan holds."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        found = "ok" if self.ok else f"{len(self.problems)} problems"
        return f"CheckReport({found}, {self.actions} actions, {self.configurations} configurations)"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "ok": self.ok,
            "problems": list(self.problems),
            "actions": self.actions,
            "segments": self.segments,
            "configurations": self.configurations,
        }


def check_plan(plan: Plan, *, domain: str | Path | None = None) -> CheckReport:
    """Recompute everything and say whether a plan holds.

    Args:
        plan: the plan.
        domain: name or folder of the domain, when it is not the one of ours that the plan names.

    Returns:
        The problems found, if any.

    Raises:
        MissingFileError: the domain is not there.
    """
    loaded = load_planning_domain(plan.domain if domain is None else domain, manipulator=plan.robot)
    check = _Check(plan, loaded)
    check.run()
    return CheckReport(tuple(check.problems), len(plan.steps), check.segments, check.configurations)


@dataclass
class _Check:
    plan: Plan
    domain: PlanningDomain
    problems: list[str] = field(default_factory=list)
    segments: int = 0
    configurations: int = 0

    def run(self) -> None:
        if self.domain.digest != self.plan.domain_digest:
            self.problems.append(f"domain '{self.plan.domain}' has changed since the plan was made")
        problem = derive_problem(self.plan.scene, self.domain, goal=self.plan.goal)
        self._check_task(problem)
        scene, q = self.plan.scene, np.array(self.plan.q)
        self._check_rest(scene, q, "at the start")
        for number, step in enumerate(self.plan.steps, start=1):
            where = f"step {number} {step.action}"
            supports = self._supports(step, scene)
            for segment in step.segments:
                exemptions = self._exemptions(segment, scene, supports)
                scene, q = self._check_segment(segment, scene, q, exemptions, f"{where}, {segment.kind.value}")
            self._check_rest(scene, q, f"after {where}")
            self._check_step_end(step, scene, q, where)

    def _check_task(self, problem: Problem) -> None:
        validation = validate_plan(problem, self.plan.actions)
        if not validation:
            self.problems.append(f"by the words of the domain: {validation.message}")
            return
        types = {name: kinds[0] for name, kinds in problem.objects.items()}
        for step, predicted in zip(self.plan.steps, validation.states[1:], strict=True):
            difference = predicted.difference(self.domain.semantics.state(step.scene, types))
            if difference:
                self.problems.append(f"after {step.action} the scene says otherwise: {difference}")

    def _check_segment(
        self,
        segment: Segment,
        scene: SceneGraph,
        q: Configuration,
        exemptions: tuple[Exemption, ...],
        where: str,
    ) -> tuple[SceneGraph, Configuration]:
        self.segments += 1
        if segment.joint_names != self.plan.robot.joints:
            self.problems.append(f"{where}: it moves joints that are not the arm's")
        path = self._full_path(segment, scene, q, where)
        if set(segment.exemptions) - set(exemptions):
            extra = sorted(set(segment.exemptions) - set(exemptions))[0]
            self.problems.append(f"{where}: it lets {extra}, which the rules do not")
        world = CollisionRules(self.plan.robot).world(scene, exemptions, margin=0.0)
        result = recheck_path(
            world, path, resolution=CHECK_RESOLUTION, tool_frame=self.plan.robot.tool, tool_travel=CHECK_TRAVEL
        )
        self.configurations += result.checks
        if result.status is RecheckStatus.COLLISION and result.pair is not None:
            self.problems.append(f"{where}: '{result.pair[0]}' and '{result.pair[1]}' collide")
        elif not result.ok:
            self.problems.append(f"{where}: joint '{result.joint}' is outside its limits")
        if segment.reparenting is not None:
            self._check_reparenting(segment, scene, path[-1], where)
        return segment.end(scene, q)

    def _full_path(self, segment: Segment, scene: SceneGraph, q: Configuration, where: str) -> Configuration:
        """Return the path as full configurations, the fingers moving while the arm stands still."""
        arm = self.plan.robot.joint_indices(scene)
        if np.max(np.abs(segment.path[0] - q[arm])) > _JOIN_TOLERANCE:
            self.problems.append(f"{where}: it does not begin where the arm is")
        moves_fingers = segment.kind in (SegmentKind.GRASP, SegmentKind.RELEASE)
        if moves_fingers and len(segment.path) > 1:
            self.problems.append(f"{where}: the arm moves while the hand does")
        start = np.array(q)
        start[arm] = segment.path[0]
        rows = [start]
        if not moves_fingers:
            rows.append(np.array(scene.configuration(dict(segment.gripper), base=start)))
            if np.max(np.abs(rows[1] - start), initial=0.0) > _JOIN_TOLERANCE and self._is_loaded(segment):
                self.problems.append(f"{where}: the fingers move while the hand holds '{segment.held}'")
        for waypoint in segment.path[1:]:
            row = rows[-1].copy()
            row[arm] = waypoint
            rows.append(row)
        if moves_fingers:
            rows.append(np.array(scene.configuration(dict(segment.gripper), base=rows[-1])))
        return np.array(rows)

    @staticmethod
    def _is_loaded(segment: Segment) -> bool:
        return segment.kind in (SegmentKind.LIFT, SegmentKind.TRANSFER, SegmentKind.LOWER)

    def _supports(self, step: PlanStep, before: SceneGraph) -> dict[str, str | None]:
        """Return, for each object that a step handles, what it is taken from or comes to rest on."""
        supports: dict[str, str | None] = {}
        for segment in step.segments:
            if segment.held is not None:
                is_picked = step.scene.parent(segment.held) == self.plan.robot.tip
                supports[segment.held] = (before if is_picked else step.scene).parent(segment.held)
        return supports

    def _exemptions(
        self, segment: Segment, scene: SceneGraph, supports: dict[str, str | None]
    ) -> tuple[Exemption, ...]:
        """Return what the rules let touch in a segment of this kind."""
        rules = CollisionRules(self.plan.robot)
        if segment.held is None or segment.kind is SegmentKind.TRANSIT:
            return rules.exemptions(scene)
        if segment.kind is SegmentKind.TRANSFER:
            return rules.exemptions(scene, touched=segment.held)
        return rules.exemptions(scene, touched=segment.held, support=supports[segment.held])

    def _check_reparenting(self, segment: Segment, scene: SceneGraph, q: Configuration, where: str) -> None:
        change = segment.reparenting
        assert change is not None
        root = scene.root(change.frame)
        before = scene.pose(change.frame, root, q=q)
        after = scene.reparent(change.frame, change.parent, pose=change.pose).pose(change.frame, root, q=q)
        metres, radians = before.distance(after)
        limit = _POSE_TOLERANCE if segment.kind is SegmentKind.GRASP else 1e-3
        if metres > limit or radians > limit:
            self.problems.append(f"{where}: '{change.frame}' jumps by {metres * 1000:.2f} mm when it changes hands")
        if segment.kind is SegmentKind.GRASP:
            self._check_grasp(change.frame, scene, q, where)

    def _check_grasp(self, item: str, scene: SceneGraph, q: Configuration, where: str) -> None:
        """Both fingers must be at the object when the hand has closed."""
        for link in self.plan.robot.contact_links:
            gap = _distance(scene, q, link, item)
            if gap > _CONTACT_TOLERANCE:
                reach = f"'{link}' is {gap * 1000:.1f} mm away from '{item}'"
                self.problems.append(f"{where}: {reach} when the hand has closed")

    def _check_rest(self, scene: SceneGraph, q: Configuration, where: str) -> None:
        """The whole scene, still objects included, is free of collision without margin."""
        rules = CollisionRules(self.plan.robot)
        held = next((item for item in movable_frames(scene) if scene.parent(item) == self.plan.robot.tip), None)
        world = rules.world(scene, rules.exemptions(scene, touched=held), margin=0.0)
        for contact in world.contacts(q):
            self.problems.append(f"{where}: '{contact.frame_a}' and '{contact.frame_b}' collide")

    def _check_step_end(self, step: PlanStep, scene: SceneGraph, q: Configuration, where: str) -> None:
        if step.scene != scene or np.max(np.abs(step.q - q), initial=0.0) > _JOIN_TOLERANCE:
            self.problems.append(f"{where}: its scene is not the one that its motion leads to")


def _distance(scene: SceneGraph, q: Configuration, a: str, b: str) -> float:
    """Return the metres between two frames' shapes; negative when they overlap."""
    movable = movable_frames(scene)
    others = {(i, j): -math.inf for i, j, _ in CollisionWorld(scene, movable=movable).pairs if {i, j} != {a, b}}
    return CollisionWorld(scene, movable=movable, pair_margins=others).distance(q)
