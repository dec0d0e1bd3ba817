"""Validation of a plan, which recomputes all conditions at finer steps than the planner.

The checker trusts only the first scene, the arms and the goal. It derives the states from the scene
versions and validates the actions by the domain. The motions of each step are checked by
:mod:`step_check`, which the search also applies to the motions of candidates from outside the
package. :mod:`segment_rules` proves that contact is exempt only where it is part of handling an
object. Timed motions are checked if the plan stores them (:mod:`timing_check`).

A plan is valid *in its scene*. That scene is compared with the caller's only if the caller passes
one. Pairs that overlap because the scene allows it are listed as assumptions.

Invariants: :attr:`ValidationReport.is_valid` is true only if there is no problem; all problems are
listed, up to one after which further checks are impossible.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tmkit._support.argument_errors import check_argument, plan_hint, with_keyword_hints
from tmkit._support.results import Report, problem_count
from tmkit.errors import SceneError, TmkitError
from tmkit.graph import SceneGraph, task_facts
from tmkit.manipulation.concave_objects import with_shapes_of
from tmkit.motion import CollisionRules, CollisionWorld, StartTolerances
from tmkit.motion.collision_rules import TOUCH_TOLERANCE
from tmkit.motion.path_constraints import interpolate_path
from tmkit.pddl import Fact, Problem, validate_task_plan
from tmkit.pddl.model import Metric
from tmkit.plans.values import Configuration, Plan
from tmkit.robots import movable_frames
from tmkit.robots.manipulator import LIMIT_TOLERANCE
from tmkit.robots.robot_files import Robots, find_manipulators
from tmkit.tamp.domains.loading import DomainSource, load_plan_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.resting import accept_start, placement_fault
from tmkit.tamp.progress import ValidationProgress
from tmkit.tamp.validation.prune_observations import effect_faults
from tmkit.tamp.validation.schedule_check import schedule_faults
from tmkit.tamp.validation.step_check import LONGEST_PATH, StepCheck, path_length
from tmkit.tamp.validation.timing_check import timing_faults

_OVERLAP_STEP = 0.05
"""Largest step between the configurations at which overlaps are computed [rad or m]."""

_SHOWN_PAIRS = 3
"""Number of pairs of an arm's links in an assumption."""


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
            f"ValidationReport({problem_count(self)}, {self.actions} actions, {self.configurations}"
            " configurations)"
        )


@with_keyword_hints
def validate_plan(
    plan: Plan,
    *,
    domain: DomainSource | None = None,
    semantics: str | Path | None = None,
    scene: SceneGraph | None = None,
    robot: Robots | None = None,
    start_tolerances: StartTolerances | None = None,
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
        start_tolerances: accepted overlaps, and distances of objects from their supports, at the
            start. Defaults to :class:`~tmkit.motion.StartTolerances`, as for :func:`tmkit.plan`.
        on_progress: called before the check of each action, and at the end.

    Raises:
        MissingFileError: if the domain does not exist.
        TaskError: if the plan's goal is not valid in the domain, or values of functions are not.
        SceneError: if the domain's predicates cannot describe the plan's first scene.
    """
    check_argument(plan, Plan, "plan", function="validate_plan", hint=plan_hint(plan))
    differences = [*_scene_differences(plan, scene, robot)]
    plan_domain = load_plan_domain(plan, domain, semantics)
    check = _PlanCheck(plan, plan_domain, on_progress, start_tolerances, problems=differences)
    check.run()
    return ValidationReport(
        tuple(check.problems),
        len(plan.steps),
        check.steps.segments,
        check.steps.configurations + check.scheduled_configurations,
        (*_assumptions(plan, scene), *check.assumptions),
    )


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
        start_tolerances: as for :func:`validate_plan`.
        problems: descriptions of all problems so far.
        assumptions: notes on objects that do not rest at the start.
        scheduled_configurations: number of configurations of arms that move at once, checked for
            collisions.
    """

    plan: Plan
    domain: PlanningDomain
    on_progress: Callable[[ValidationProgress], None] | None = None
    start_tolerances: StartTolerances | None = None
    problems: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    scheduled_configurations: int = 0

    def __post_init__(self) -> None:
        first, *other_arms = self.plan.robots
        rules = CollisionRules.from_start(
            first,
            self.plan.scene,
            q=self.plan.q,
            other_arms=tuple(other_arms),
            tolerances=self.start_tolerances,
        )
        self.steps = StepCheck(rules)
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
        self._check_start_rest(scene)
        contacts = self.steps.rules.start_contacts
        self.problems += self.steps.rest_faults(
            scene, q, where="at the start", start_contacts=contacts
        )
        for number, step in enumerate(self.plan.steps, start=1):
            self._report_progress(number - 1, str(step.action))
            where = f"step {number} {step.action}"
            try:
                for message in self.steps.faults(step, scene, q, where=where):
                    self.problems.append(message)
                scene, q = step.end(scene, q)
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
            self.scheduled_configurations += checks
        if not self.problems:
            self.problems += timing_faults(self.plan, self.steps.rules)
        self._report_progress(len(self.plan.steps), "")

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
            if joint in joints and not lower - LIMIT_TOLERANCE <= value <= upper + LIMIT_TOLERANCE:
                self.problems.append(f"at the start: joint '{joint}' is outside its limits")

    def _check_start_rest(self, scene: SceneGraph) -> None:
        """Check that objects are near their supports, and note those that do not rest."""
        tolerances = self.start_tolerances or StartTolerances()
        try:
            notes = accept_start(self.domain.semantics, scene, tolerances)
            self.assumptions += [f"at the start, {note}" for note in notes]
        except SceneError as error:
            self.problems.append(f"at the start: {error}")

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
                fault = placement_fault(self.domain.semantics, step.segments, step.scene)
            except TmkitError as error:
                self.problems.append(f"after {step.action} the scene has no state: {error}")
                return
            if difference:
                self.problems.append(f"after {step.action} the derived state differs: {difference}")
            elif fault is not None:
                self.problems.append(f"after {step.action} a placed object does not rest: {fault}")

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
            # Longer paths are a problem already.
            is_short = path_length(segment.path) <= LONGEST_PATH
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
