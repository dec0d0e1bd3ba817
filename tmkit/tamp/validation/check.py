"""Validation of a plan, which recomputes all conditions at finer steps than the planner.

The checker trusts only the first scene, the arms and the goal. It derives the states from the scene
versions and validates the actions by the domain. It follows every segment from the end of the
previous one and derives the allowed contacts again. Limits, grasps and collisions are checked
without margin, at 0.003 rad and 1 mm of tool travel. :mod:`segment_rules` proves that contact is
exempt only where it is part of handling an object. Timed motions are checked if the plan stores
them (:mod:`timing_check`).

A plan is valid *in its scene*. That scene is compared with the caller's only if the caller passes
one. Pairs that overlap because the scene allows it are listed as assumptions.

Invariants: :attr:`ValidationReport.is_valid` is true only if there is no problem; all problems are
listed, up to one after which further checks are impossible.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tmkit._core import RecheckStatus
from tmkit._support.argument_errors import check_argument, plan_hint
from tmkit._support.results import Report
from tmkit.errors import ConfigurationError, TmkitError
from tmkit.graph import SceneGraph, task_facts
from tmkit.manipulation.actions.basic_motions import SUPPORT_TOLERANCE
from tmkit.manipulation.actions.pour import pour_faults
from tmkit.manipulation.actions.primitives import CHECK_RESOLUTION, CHECK_TRAVEL
from tmkit.manipulation.actions.push import push_faults, scene_during_push
from tmkit.manipulation.concave_objects import with_shapes_of
from tmkit.manipulation.grasps.sampling import grasp_contact_faults, payload_fault
from tmkit.motion import CollisionRules, CollisionWorld, path_fault, recheck_path
from tmkit.motion.collision_rules import TOUCH_TOLERANCE
from tmkit.motion.dynamics import torque_fault
from tmkit.motion.path_constraints import carrying_constraints, interpolate_path
from tmkit.pddl import Fact, Problem, validate_task_plan
from tmkit.pddl.model import Metric
from tmkit.plans.class_changes import ClassEffect, apply_effects
from tmkit.plans.observations import CameraModel, apply_observations
from tmkit.plans.values import Attachment, Configuration, Plan, PlanStep, Segment, SegmentKind
from tmkit.robots import Manipulator, movable_frames
from tmkit.robots.hands import pair_distance, reason_without_distance
from tmkit.robots.mechanisms import held_object
from tmkit.robots.robot_files import Robots, find_manipulators
from tmkit.tamp.domains.loading import DomainSource, load_plan_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.progress import ValidationProgress
from tmkit.tamp.validation.prune_observations import effect_faults
from tmkit.tamp.validation.schedule_check import schedule_faults
from tmkit.tamp.validation.segment_rules import (
    LOADED,
    handling_supports,
    is_at_handle,
    segment_allowed_contacts,
    segment_faults,
)
from tmkit.tamp.validation.timing_check import timing_faults

_JOIN_TOLERANCE = 1e-9
"""Largest difference between the ends of consecutive segments [rad or m]."""

_LONGEST_PATH = 1000.0
"""Largest length of a segment [rad or m]."""

_GRASP_TOLERANCE = 1e-5
"""Largest motion of an object at a grasp [m or rad]."""

_OVERLAP_STEP = 0.05
"""Largest step between the configurations at which overlaps are computed [rad or m]."""

_SHOWN_PAIRS = 3
"""Number of pairs of an arm's links in an assumption."""

_RELEASE_TOLERANCE = 1e-4
"""Largest motion of an object at a release, an error of inverse kinematics [m or rad]."""


@dataclass(frozen=True)
class ValidationReport(Report):
    """Result of the validation of a plan.

    Attributes:
        problems: descriptions of all problems; empty for a valid plan.
        actions: number of checked actions.
        segments: number of checked segments.
        configurations: number of configurations checked for collisions.
        assumptions: descriptions of unchecked assumptions. These are the plan's scene, unless it
            was compared with the caller's, and pairs of frames that overlap because the scene
            allows it. Timings of the file that do not fit the paths are ignored and listed.
    """

    problems: tuple[str, ...]
    actions: int
    segments: int
    configurations: int
    assumptions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"ValidationReport({self.summary}, {self.actions} actions, {self.configurations}"
            " configurations)"
        )


def validate_plan(
    plan: Plan,
    *,
    domain: DomainSource | None = None,
    semantics: str | Path | None = None,
    scene: SceneGraph | None = None,
    robot: Robots | None = None,
    on_progress: Callable[[ValidationProgress], None] | None = None,
) -> ValidationReport:
    """Validate a plan, and return all its problems.

    Args:
        plan: plan.
        domain: name, folder or PDDL file of the domain, a domain built in Python, or a loaded one.
            Required if the plan's domain is not built in.
        semantics: name, folder or file of the semantics. Required if they are not built in.
        scene: caller's scene at the start; each difference of the plan's scene is a problem.
        robot: caller's arms; each difference of the plan's arms is a problem.
        on_progress: called before the check of each action, and at the end.

    Raises:
        MissingFileError: if the domain does not exist.
        TaskError: if the plan's goal is not valid in the domain, or values of functions are not.
        SceneError: if the domain's predicates cannot describe the plan's first scene.
    """
    check_argument(plan, Plan, "plan", function="validate_plan", hint=plan_hint(plan))
    differences = [*_scene_differences(plan, scene, robot)]
    plan_domain = load_plan_domain(plan, domain, semantics)
    check = _PlanCheck(plan, plan_domain, on_progress, problems=differences)
    check.run()
    return ValidationReport(
        tuple(check.problems),
        len(plan.steps),
        check.segments,
        check.configurations,
        tuple(_assumptions(plan, scene)),
    )


class StepCheck:
    """Check of the motions of single steps.

    Args:
        plan: plan with the arms and the start, from which the allowed contacts follow.
        domain: domain.
        valid_segments: segments of a valid plan with the same objects, whose joint torques and
            payloads are not checked again.
    """

    def __init__(
        self, plan: Plan, domain: PlanningDomain, valid_segments: Collection[Segment] = ()
    ) -> None:
        self._check = _PlanCheck(plan, domain, valid_segments=frozenset(valid_segments))

    def faults(self, step: PlanStep, scene: SceneGraph, q: Configuration) -> tuple[str, ...]:
        """Return the faults of a step that starts in a scene and configuration (n_joints,)."""
        return self._check.step_faults(step, scene, q)


def _assumptions(plan: Plan, scene: SceneGraph | None) -> Iterator[str]:
    """Yield descriptions of the assumptions of a validation; ``scene`` is the caller's scene."""
    if scene is None:
        size = f"{len(plan.scene)} frames and {len(plan.scene.allowed_pairs)} allowed pairs"
        yield (
            f"the validity depends on the plan's own scene of {size}; compare it with yours"
            " (--scene, --robot)"
        )
    for misfit in plan._misfits:
        yield (
            "motions are timed again, because the timing in the file does not fit the plan:"
            f" {misfit}"
        )
    try:
        yield from _describe_overlaps(plan)
    except TmkitError:  # a missing frame or joint, which is a problem already
        return


@dataclass
class _PlanCheck:
    """A validation in progress.

    Attributes:
        plan: plan.
        domain: domain of the plan.
        on_progress: called before the check of each action, and at the end.
        problems: descriptions of all problems so far.
        segments: number of checked segments.
        configurations: number of configurations checked for collisions.
        valid_segments: segments whose joint torques and payloads are not checked.
    """

    plan: Plan
    domain: PlanningDomain
    on_progress: Callable[[ValidationProgress], None] | None = None
    problems: list[str] = field(default_factory=list)
    segments: int = 0
    configurations: int = 0
    valid_segments: frozenset[Segment] = frozenset()

    def __post_init__(self) -> None:
        first, *other_arms = self.plan.robots
        self.rules = CollisionRules.from_start(
            first, self.plan.scene, q=self.plan.q, other_arms=tuple(other_arms)
        )
        self.start_time = time.monotonic()

    def run(self) -> None:
        """Check the whole plan; append all problems to ``problems``."""
        is_same_text = self.domain.pddl == self.plan.domain_pddl
        if self.domain.digest != self.plan.domain_digest or not is_same_text:
            self.problems.append(f"domain '{self.plan.domain}' differs from the plan's domain")
        problem = self.domain.problem(
            self.plan.scene,
            self.plan.q,
            self.plan.goal,
            metric=self.plan.metric,
            values=self.plan.values,
        )
        self._check_task(problem)
        scene, q = self.plan.scene, np.array(self.plan.q)
        self._check_start_limits(scene, q)
        self._check_rest(scene, q, "at the start")
        for number, step in enumerate(self.plan.steps, start=1):
            self._report_progress(number - 1, str(step.action))
            where = f"step {number} {step.action}"
            try:
                scene, q = self._check_step(step, scene, q, where)
            except TmkitError as error:
                # A frame or joint is missing, so further checks are impossible.
                self.problems.append(f"{where}: {error}")
                return
        for goal in self.plan.continuous_goals:
            if (fault := goal.fault(scene, q)) is not None:
                self.problems.append(f"the goal is not reached: {fault}")
        if self.plan.starts and not self.problems:
            faults, checks = schedule_faults(self.plan, self.domain.domain)
            self.problems += [f"the schedule: {fault}" for fault in faults]
            self.configurations += checks
        if not self.problems:
            self.problems += timing_faults(self.plan, self.rules)
        self._report_progress(len(self.plan.steps), "")

    def step_faults(self, step: PlanStep, scene: SceneGraph, q: Configuration) -> tuple[str, ...]:
        """Return the faults of a step alone, from a scene and configuration (n_joints,)."""
        self.problems = []
        try:
            self._check_step(step, scene, q, str(step.action))
        except TmkitError as error:  # a frame or joint is missing
            return (str(error),)
        return tuple(self.problems)

    def _report_progress(self, step: int, action: str) -> None:
        if self.on_progress is not None:
            seconds = time.monotonic() - self.start_time
            self.on_progress(
                ValidationProgress("check", step, len(self.plan.steps), seconds, action)
            )

    def _check_start_limits(self, scene: SceneGraph, q: Configuration) -> None:
        """Check the limits of the joints of all arms and hands."""
        arms = self.plan.robots
        joints = {joint for arm in arms for joint in (*arm.joints, *arm.gripper_joints)}
        rows = zip(scene.joint_names, q, scene.joint_limits, strict=True)
        for joint, value, (lower, upper) in rows:
            if joint in joints and not lower - _JOIN_TOLERANCE <= value <= upper + _JOIN_TOLERANCE:
                self.problems.append(f"at the start: joint '{joint}' is outside its limits")

    def _check_task(self, problem: Problem) -> None:
        """Check actions and costs by the domain, and the states of the scenes."""
        if self.domain.probabilistic_predicates:
            self._check_probabilistic_task(problem)
            return
        validation = validate_task_plan(problem, self.plan.actions)
        if not validation.is_valid:
            self.problems.append(f"by the domain: {validation.message}")
            return
        if problem.metric is Metric.TOTAL_COST:
            for step, cost in zip(self.plan.steps, validation.costs, strict=True):
                if step.cost != cost:
                    self.problems.append(f"{step.action} costs {cost:g}, not {step.cost:g}")
        types = {name: kinds[0] for name, kinds in problem.objects.items()}
        for step, predicted in zip(self.plan.steps, validation.states[1:], strict=True):
            try:
                derived = self.domain.state(step.scene, step.q, objects=types)
                difference = predicted.difference(derived)
            except TmkitError as error:
                self.problems.append(f"after {step.action} the scene has no state: {error}")
                return
            if difference:
                self.problems.append(f"after {step.action} the derived state differs: {difference}")

    def _check_probabilistic_task(self, problem: Problem) -> None:
        """Check the actions by the domain, with the probabilistic facts of the scenes."""
        types = {name: kinds[0] for name, kinds in problem.objects.items()}
        state = problem.init
        for number, step in enumerate(self.plan.steps, start=1):
            where = f"by the domain: step {number} of {len(self.plan.steps)}, {step.action}"
            try:
                after = self.domain.state(step.scene, step.q, objects=types)
                faults = effect_faults(state, step, after, problem=problem, domain=self.domain)
            except TmkitError as error:
                self.problems.append(f"{where}: {error}")
                return
            self.problems.extend(f"{where}: {fault}" for fault in faults)
            state = after
        if not problem.holds(state, problem.goal):
            self.problems.append("by the domain: the goal is not reached")

    def _check_step(
        self, step: PlanStep, scene: SceneGraph, q: Configuration, where: str
    ) -> tuple[SceneGraph, Configuration]:
        """Check a step, and return the scene and configuration (n_joints,) at its end."""
        supports = handling_supports(step.segments, scene, [arm.tip for arm in self.plan.robots])
        before: Segment | None = None
        next_segments: list[Segment | None] = [*step.segments[1:], None] if step.segments else []
        for segment, after, support in zip(step.segments, next_segments, supports, strict=True):
            place = f"{where}, {segment.kind.value}"
            rules = self.rules.for_arm(segment.arm)
            _require_own_joints(segment, rules.robot)
            for fault in segment_faults(segment, scene, q, rules=rules, before=before, after=after):
                self.problems.append(f"{place}: {fault}")
            self._check_segment(segment, scene, q, rules=rules, support=support, where=place)
            scene, q = segment.end(scene, q)
            before = segment
        for observation in step.observations:
            camera = CameraModel.of(scene, observation.camera)
            if (visibility_fault := camera.fault(scene, observation.frame, q=q)) is not None:
                self.problems.append(f"{where}: {visibility_fault}")
        self._check_poured_frames(step, where)
        scene = apply_effects(apply_observations(scene, step.observations, q=q), step.changes)
        self._check_rest(scene, q, f"after {where}")
        if step.scene != scene or np.max(np.abs(step.q - q), initial=0.0) > _JOIN_TOLERANCE:
            self.problems.append(f"{where}: its scene differs from the result of its motion")
        return scene, q

    def _check_poured_frames(self, step: PlanStep, where: str) -> None:
        """Check that a pour changes only the classes of the two containers."""
        pours = [segment for segment in step.segments if segment.into is not None]
        containers = {frame for segment in pours for frame in (segment.held, segment.into)}
        for change in step.changes:
            if pours and isinstance(change, ClassEffect) and change.frame not in containers:
                self.problems.append(
                    f"{where}: it pours nothing into '{change.frame}', whose classes change"
                )

    def _check_segment(
        self,
        segment: Segment,
        scene: SceneGraph,
        q: Configuration,
        *,
        rules: CollisionRules,
        support: str | None,
        where: str,
    ) -> None:
        """Check the motion of a segment and the change at its end.

        Args:
            segment: segment.
            scene: scene before the segment.
            q: (n_joints,) configuration before the segment.
            rules: allowed contacts of the segment's arm.
            support: frame that the object may touch, if any.
            where: prefix of the descriptions of problems.
        """
        self.segments += 1
        path = self._full_path(segment, scene, q, where)
        if segment.kind is SegmentKind.PUSH and segment.held in movable_frames(scene):
            faults = push_faults(scene, path, rules.robot, object=segment.held)
            self.problems += [f"{where}: {fault}" for fault in faults]
            scene = scene_during_push(scene, path[0], rules.robot, object=segment.held)
        allowed_contacts = segment_allowed_contacts(segment, scene, rules=rules, support=support)
        for contact in sorted(set(segment.allowed_contacts) ^ set(allowed_contacts)):
            difference = "it lacks an allowed contact"
            if contact in segment.allowed_contacts:
                difference = "it allows a contact that the rules do not allow"
            self.problems.append(f"{where}: {difference}: {contact}")
        length = _length(path)
        # A file may contain any number, and the computation time grows with the length.
        if not length <= _LONGEST_PATH:
            self.problems.append(
                f"{where}: its path of {length:.3g} rad or m is too long to be checked"
            )
            return
        result = recheck_path(
            rules.check_world(scene, allowed_contacts),
            path,
            resolution=CHECK_RESOLUTION,
            tool_frame=rules.robot.tool,
            tool_travel=CHECK_TRAVEL,
        )
        self.configurations += result.checks
        if result.status is RecheckStatus.COLLISION and result.pair is not None:
            self.problems.append(f"{where}: '{result.pair[0]}' and '{result.pair[1]}' collide")
        elif not result.is_ok:
            self.problems.append(f"{where}: joint '{result.joint}' is outside its limits")
        self._check_constraints(segment, scene, path, rules, where)
        if segment not in self.valid_segments:
            self._check_forces(segment, scene, path, rules, where)
        if segment.kind is SegmentKind.GRASP and is_at_handle(segment, scene):
            for fault in grasp_contact_faults(
                scene, path[-1], rules.robot, object=str(segment.held)
            ):
                self.problems.append(f"{where}: {fault} after the grasp")
        if segment.reparenting is not None:
            self._check_reparenting(
                segment, segment.reparenting, scene, path[-1], rules.robot, where
            )

    def _check_forces(
        self,
        segment: Segment,
        scene: SceneGraph,
        path: Configuration,
        rules: CollisionRules,
        where: str,
    ) -> None:
        """Check joint torques, and the forces of the hand on a held object, along a path."""
        faults = [torque_fault(scene, path, rules.robot)]
        object, is_loaded = segment.held, segment.kind in (*LOADED, SegmentKind.LINE)
        if is_loaded and object is not None and object == rules.held_object(scene):
            faults.append(payload_fault(scene, path, rules.robot, object=object))
        self.problems += [f"{where}: {fault}" for fault in faults if fault is not None]

    def _check_constraints(
        self,
        segment: Segment,
        scene: SceneGraph,
        path: Configuration,
        rules: CollisionRules,
        where: str,
    ) -> None:
        """Check that a path satisfies its constraints, and that no required one is missing."""
        is_pour = segment.kind is SegmentKind.POUR
        if is_pour and segment.held is not None and segment.into is not None:
            faults = pour_faults(scene, path, object=segment.held, into=segment.into)
            self.problems += [f"{where}: {fault}" for fault in faults]
        for constraint in () if is_pour else carrying_constraints(scene, rules.held_object(scene)):
            if constraint not in segment.constraints:
                self.problems.append(
                    f"{where}: it lacks the required path constraint: {constraint}"
                )
        fault = path_fault(scene, path, segment.constraints, resolution=CHECK_RESOLUTION)
        if fault is not None:
            self.problems.append(f"{where}: joint path leaves the constraint: {fault}")

    def _full_path(
        self, segment: Segment, scene: SceneGraph, q: Configuration, where: str
    ) -> Configuration:
        """Return the path (k, n_joints), in which arm and fingers move in turn."""
        arm = np.array(
            [scene.joint_names.index(joint) for joint in segment.joint_names], dtype=np.intp
        )
        if np.max(np.abs(segment.path[0] - q[arm])) > _JOIN_TOLERANCE:
            self.problems.append(f"{where}: it does not start at the configuration of the arm")
        moves_fingers = segment.kind in (SegmentKind.GRASP, SegmentKind.RELEASE)
        if moves_fingers and len(segment.path) > 1:
            self.problems.append(f"{where}: the arm moves while the hand does")
        start = np.array(q)
        start[arm] = segment.path[0]
        rows = [start]
        if not moves_fingers:
            rows.append(np.array(scene.configuration(dict(segment.gripper), base=start)))
            has_object = segment.kind in (*LOADED, SegmentKind.OPERATE, SegmentKind.PUSH)
            is_finger_motion = np.max(np.abs(rows[1] - start), initial=0.0) > _JOIN_TOLERANCE
            if is_finger_motion and has_object:
                self.problems.append(
                    f"{where}: the fingers move while the hand holds '{segment.held}'"
                )
            elif is_finger_motion and segment.kind is SegmentKind.LINE:
                self.problems.append(f"{where}: the fingers move during a line")
        for waypoint in segment.path[1:]:
            row = rows[-1].copy()
            row[arm] = waypoint
            rows.append(row)
        if moves_fingers:
            rows.append(np.array(scene.configuration(dict(segment.gripper), base=rows[-1])))
        return np.array(rows)

    def _check_reparenting(
        self,
        segment: Segment,
        change: Attachment,
        scene: SceneGraph,
        q: Configuration,
        arm: Manipulator,
        where: str,
    ) -> None:
        """Check that an object keeps its pose, a grasp has contact, and a release has support."""
        root = scene.root(change.frame)
        after = scene.reparent(change.frame, change.parent, pose=change.pose)
        metres, radians = scene.pose(change.frame, relative_to=root, q=q).distance(
            after.pose(change.frame, relative_to=root, q=q)
        )
        limit = _GRASP_TOLERANCE if segment.kind is SegmentKind.GRASP else _RELEASE_TOLERANCE
        if metres > limit or radians > limit:
            motion = f"{metres * 1000:.2f} mm and {math.degrees(radians):.3f} degrees"
            self.problems.append(
                f"{where}: '{change.frame}' moves by {motion} when its parent changes"
            )
        if segment.kind is SegmentKind.GRASP:
            for fault in grasp_contact_faults(scene, q, arm, object=change.frame):
                self.problems.append(f"{where}: {fault} after the grasp")
            return
        gap = pair_distance(after, q, frame_a=change.frame, frame_b=change.parent)
        if gap > SUPPORT_TOLERANCE:
            place = f"{gap * 1000:.1f} mm off '{change.parent}'"
            if math.isinf(gap):
                reason = reason_without_distance(after, change.frame, change.parent)
                place = f"on '{change.parent}': {reason}"
            self.problems.append(f"{where}: '{change.frame}' is released {place}")

    def _check_rest(self, scene: SceneGraph, q: Configuration, where: str) -> None:
        """Check the whole scene for collisions without margin, and the grasps of held objects."""
        world = self.rules.check_world(
            scene, self.rules.allowed_contacts(scene, contact_object=self.rules.held_object(scene))
        )
        for contact in world.contacts(q):
            self.problems.append(f"{where}: '{contact.frame_a}' and '{contact.frame_b}' collide")
        for arm in self.plan.robots:
            object = held_object(scene, arm)
            if object is not None:
                for fault in grasp_contact_faults(scene, q, arm, object=object):
                    self.problems.append(f"{where}: {fault} while the hand holds it")


def _length(path: Configuration) -> float:
    """Return the sum of the largest joint motions between consecutive rows of a path [rad or m]."""
    return float(np.sum(np.max(np.abs(np.diff(path, axis=0)), axis=1, initial=0.0)))


def _require_own_joints(segment: Segment, arm: Manipulator) -> None:
    """Raise an error if a segment moves other joints than those of its arm and hand.

    An operation moves one more joint, which :mod:`segment_rules` checks.

    Raises:
        ConfigurationError: if a joint does not belong to the arm, or the path has another width.
    """
    names = segment.joint_names
    count = len(arm.joints) + (segment.kind is SegmentKind.OPERATE)
    is_own = names[: len(arm.joints)] == arm.joints and len(names) == count
    if not is_own or segment.path.shape[1:] != (len(names),):
        raise ConfigurationError(f"{segment.kind.value}: it moves other joints than the arm's")
    for joint in segment.gripper:
        if joint not in arm.gripper_joints:
            raise ConfigurationError(
                f"{segment.kind.value}: it moves '{joint}', which is no joint of the hand"
            )


# Assumptions
# ------------------------------------------------------------------------------------------------


def _scene_differences(plan: Plan, scene: SceneGraph | None, robot: Robots | None) -> Iterator[str]:
    """Yield the differences between a plan's scene and arms and the caller's, unless None."""
    if scene is not None:
        yield from _frame_differences(plan.scene, with_shapes_of(scene, plan.scene))
    if robot is None:
        return
    caller_arms = {
        arm.name: arm for arm in find_manipulators(robot, plan.scene if scene is None else scene)
    }
    for arm in plan.robots:
        caller_arm = caller_arms.pop(arm.name, None)
        if caller_arm is None:
            yield f"the plan's arm '{arm.name}' is not among yours"
            continue
        values, caller_values = arm.to_dict(), caller_arm.to_dict()
        all_keys = sorted({*values, *caller_values})
        if keys := [key for key in all_keys if values.get(key) != caller_values.get(key)]:
            yield f"the plan's arm '{arm.name}' differs from yours: {', '.join(keys)}"


def _frame_differences(plan: SceneGraph, caller: SceneGraph) -> Iterator[str]:
    """Yield the differences between the scene of a plan and the scene of the caller."""
    for name in caller.frame_names:
        if name not in plan:
            yield f"the plan's scene lacks your frame '{name}'"
    for name in plan.frame_names:
        if name not in caller:
            yield f"the plan's scene has a frame '{name}' that yours lacks"
        elif parts := _different_parts(name, plan, caller):
            yield f"the plan's frame '{name}' differs from yours: {parts}"
    for name, arguments in sorted(set(task_facts(plan)) ^ set(task_facts(caller))):
        yield (
            f"the task fact {Fact(name, arguments)} holds in only one of the plan's scene and yours"
        )
    plan_pairs = {frozenset(pair[:2]): pair for pair in plan.allowed_pairs}
    caller_pairs = {frozenset(pair[:2]): pair for pair in caller.allowed_pairs}
    for key, (first, second, reason) in plan_pairs.items():
        if key not in caller_pairs:
            yield (
                f"the plan's scene allows '{first}' and '{second}' to overlap (reason '{reason}'),"
                " yours does not"
            )
    for key, (first, second, reason) in caller_pairs.items():
        if key not in plan_pairs:
            yield (
                f"your scene allows '{first}' and '{second}' to overlap (reason '{reason}'), the"
                " plan's does not"
            )


def _different_parts(name: str, plan: SceneGraph, caller: SceneGraph) -> str:
    """Return the names of the parts in which a frame differs."""
    in_plan, in_caller = plan.specification(name), caller.specification(name)
    metres, radians = in_plan.pose.distance(in_caller.pose)
    pose = f"pose (by {metres * 1000:.4g} mm, {math.degrees(radians):.4g} degrees)"
    parts = {
        f"parent ('{in_plan.parent}', not '{in_caller.parent}')": (
            in_plan.parent != in_caller.parent
        ),
        pose: in_plan.pose != in_caller.pose,
        "joint or its limits": in_plan.joint != in_caller.joint,
        "shapes": in_plan.shapes != in_caller.shapes,
        "classes": tuple(in_plan.classes) != tuple(in_caller.classes),
        "mass": in_plan.inertia != in_caller.inertia,
    }
    return ", ".join(part for part, differs in parts.items() if differs)


def _describe_overlaps(plan: Plan) -> Iterator[str]:
    """Yield descriptions of the allowed pairs that overlap at the start or along the paths.

    Pairs of adjacent links are omitted. The paths are sampled every :data:`_OVERLAP_STEP`.
    """
    pairs = {
        (first, second): reason
        for first, second, reason in plan.scene.allowed_pairs
        if first not in plan.scene
        or second not in (plan.scene.parent(first), *plan.scene.children(first))
    }
    if not pairs:
        return
    deepest: dict[tuple[str, str], tuple[float, str]] = {}
    for where, scene, rows in _motions(plan):
        edit = scene.edit()
        for first, second in pairs:
            edit.forbid_collision(first, second)
        checked_scene = edit.finish()
        movable = movable_frames(checked_scene)
        world = CollisionWorld(checked_scene, movable=movable, margin=-TOUCH_TOLERANCE)
        for contacts in world.contacts_batch(rows):
            for contact in contacts:
                pair = (contact.frame_a, contact.frame_b)
                pair = pair if pair in pairs else pair[::-1]
                if pair in pairs and contact.distance < deepest.get(pair, (0.0, ""))[0]:
                    deepest[pair] = (contact.distance, where)
    link_pairs = [pair for pair in deepest if _are_of_one_arm(plan, *pair)]
    for first, second in (pair for pair in deepest if pair not in link_pairs):
        distance, where = deepest[first, second]
        reason = pairs[first, second]
        yield (
            f"'{first}' and '{second}' overlap by {-distance * 1000:.3g} mm {where}: allowed"
            f" (reason '{reason}')"
        )
    if link_pairs:
        examples = [f"'{first}' and '{second}'" for first, second in link_pairs[:_SHOWN_PAIRS]]
        if len(link_pairs) > _SHOWN_PAIRS:
            examples.append("...")
        names = ", ".join(examples)
        yield f"{len(link_pairs)} pairs of an arm's own links overlap, which is allowed: {names}"


def _motions(plan: Plan) -> Iterator[tuple[str, SceneGraph, Configuration]]:
    """Yield the description, scene version and (k, n_joints) configurations of all motions."""
    scene, q = plan.scene, plan.q
    yield "at the start", scene, q[None]
    for number, step in enumerate(plan.steps, start=1):
        for segment in step.segments:
            columns = [scene.joint_names.index(joint) for joint in segment.joint_names]
            is_short = _length(segment.path) <= _LONGEST_PATH  # longer paths are a problem already
            path = interpolate_path(segment.path, _OVERLAP_STEP) if is_short else segment.path[:1]
            rows = np.repeat(np.array(q)[None], len(path), axis=0)
            rows[:, columns] = path
            yield f"in step {number} {step.action}, {segment.kind.value}", scene, rows
            scene, q = segment.end(scene, q)
        scene, q = step.scene, step.q


def _are_of_one_arm(plan: Plan, first: str, second: str) -> bool:
    scene, movable = plan.scene, {*movable_frames(plan.scene)}
    return any(
        all(
            arm.base in (frame, *scene.ancestors(frame)) and frame not in movable
            for frame in (first, second)
        )
        for arm in plan.robots
    )
