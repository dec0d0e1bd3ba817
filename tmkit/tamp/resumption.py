"""Resumption of a plan after a stop: the rest of the plan from the measured configuration.

If the arm is at its path, the rest of the interrupted segment is executed. An arm beside its path
returns first.
::

    executed        detour        rest
    o-----------o- - - -x- - - -o- - -> next waypoint     x: measured,  o: path
                 nearest point

The plan with this detour is checked. If it is not valid, the remaining actions are refined again
from the measured configuration, or the problem is planned again. Completed changes of parent are
kept, so a held object stays in the hand.

Invariants: the resumed plan is valid by :func:`validate_plan`. Objects are where the plan has them:
nothing here observes the world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument, with_keyword_hints
from tmkit._support.elementary import dot
from tmkit._support.results import Result
from tmkit.errors import ConfigurationError
from tmkit.graph import SceneGraph
from tmkit.plans import ExecutionReport, Plan, Segment, SegmentKind
from tmkit.plans.values import Configuration
from tmkit.robots.mechanisms import held_object, turning_joints, without_turns
from tmkit.spatial.plain import read_only
from tmkit.tamp.domains.loading import DomainSource, load_plan_domain
from tmkit.tamp.options import PlanningOptions
from tmkit.tamp.planning import solve
from tmkit.tamp.problem import PlanningProblem
from tmkit.tamp.repair import repair_plan
from tmkit.tamp.validation.check import validate_plan

ON_PATH = 0.005
"""Distance of a joint from its path at which the arm counts as on the path [rad or m]."""

_EQUAL_DISTANCE = 1e-3
"""Difference of the distances of two points of a path that count as equally near [rad or m]."""

_HAND_KINDS = (SegmentKind.GRASP, SegmentKind.RELEASE)
"""Kinds of segments in which the hand moves and the arm is at rest."""


class ResumptionStatus(StrEnum):
    """Outcome of :func:`resume_plan`."""

    REJOINED = "rejoined"
    """The interrupted segment goes on, or nothing remains."""
    REPLANNED = "replanned"
    """The remaining actions have new motions, or there are other actions."""
    NO_PLAN = "no plan"
    """No plan was found from the measured configuration."""


@dataclass(frozen=True, eq=False)
class Resumption(Result):
    """Result of :func:`resume_plan`.

    Attributes:
        status: outcome.
        explanation: description of the outcome.
        plan: valid plan whose remaining part is executed, or None if there is none. It is the
            interrupted plan with the detour of the arm, or a plan from the measured configuration.
        step: number of the first step to execute, from 1.
        segment: number of the first segment of this step to execute, from 1.
        remaining: plan to execute, which begins at the measured configuration in the middle of the
            step, or None. For checks and files, use ``plan``.
    """

    status: ResumptionStatus
    explanation: str
    plan: Plan | None = None
    step: int = 1
    segment: int = 1
    remaining: Plan | None = None


@with_keyword_hints
def resume_plan(
    plan: Plan,
    report: ExecutionReport,
    *,
    positions: Mapping[str, float] | None = None,
    domain: DomainSource | None = None,
    semantics: str | Path | None = None,
    options: PlanningOptions | None = None,
) -> Resumption:
    """Return the rest of a plan after an interrupted execution.

    Args:
        plan: interrupted plan, or :attr:`Resumption.plan` if it was resumed before.
        report: report of the execution, whose steps and segments are those of ``plan``.
        positions: present joint values by name [rad or m]. Joints without a value are as planned.
            Defaults to the positions of the report.
        domain: domain of the plan, if it is not built in; as for :func:`validate_plan`.
        semantics: semantics of the plan, if they are not built in.
        options: options of a new plan. Defaults to those with the seed of the plan.

    Raises:
        ConfigurationError: if arms move at the same time, the plan lacks the step or segment, the
            hand has lost its object, or the place of a pushed object is unknown.
        CollisionError: if a new plan would start in a collision.
        TaskError: if the domain of the plan has no such goal.
    """
    check_argument(plan, Plan, "plan", function="resume_plan")
    check_argument(report, ExecutionReport, "report", function="resume_plan")
    if plan.starts:
        raise ConfigurationError(
            "the arms of the plan move at the same time, so it cannot be resumed; plan again from"
            " the measured configuration"
        )
    step, segment = _stop_segment(plan, report)
    if step > len(plan.steps):
        rest = replace(plan, scene=plan.final_scene, q=plan.final_q, steps=())
        return Resumption(ResumptionStatus.REJOINED, "all steps were executed", plan, step, 1, rest)
    stop = _Stop.of(plan, step, segment, report.positions if positions is None else positions)
    rejoined = stop.rejoin()
    if rejoined is None:
        return stop.replan(domain, semantics, options)
    interrupted, remaining = rejoined
    if not validate_plan(interrupted, domain=domain, semantics=semantics).is_valid:
        return stop.replan(domain, semantics, options)
    return Resumption(
        ResumptionStatus.REJOINED,
        f"the plan goes on in step {step} {plan.steps[step - 1].action}",
        interrupted,
        step,
        segment,
        remaining,
    )


def _stop_segment(plan: Plan, report: ExecutionReport) -> tuple[int, int]:
    """Return the numbers of the first step and segment that are not complete.

    Raises:
        ConfigurationError: if the plan has no such step or segment.
    """
    count = len(plan.steps)
    if report.step == 0:  # the arm was at rest between two steps
        step, segment, last = report.complete_steps + 1, 1, count + 1
    else:
        step, segment, last = report.step, report.segment, count
    segments = len(plan.steps[step - 1].segments) if 1 <= step <= count else 0
    if not 1 <= step <= last or not 1 <= segment <= max(1, segments):
        raise ConfigurationError(
            f"the report is of step {step}, segment {segment}, which the plan of {count}"
            f" step{'s' * (count != 1)} does not have; it is the report of another plan"
        )
    return step, segment


@dataclass(frozen=True, eq=False)
class _Stop:
    """State of an interrupted plan.

    Attributes:
        plan: interrupted plan.
        step: number of the interrupted step, from 1.
        segment: number of the interrupted segment, from 1.
        scene: scene during the segment.
        planned: (n_joints,) configuration at the nearest point of the path of the segment.
        measured: (n_joints,) measured configuration, equal to ``planned`` where the difference is
            small.
        row: row of the path before the nearest point; -1 for a step without segments.
    """

    plan: Plan
    step: int
    segment: int
    scene: SceneGraph
    planned: Configuration
    measured: Configuration
    row: int

    @classmethod
    def of(cls, plan: Plan, step: int, segment: int, positions: Mapping[str, float]) -> _Stop:
        """Return the state with present joint values by name.

        Raises:
            ConfigurationError: if the hand has lost its object.
        """
        scene, q = plan.scene, plan.q
        if step > 1:
            scene, q = plan.steps[step - 2].scene, plan.steps[step - 2].q
        segments = plan.steps[step - 1].segments
        for complete in segments[: segment - 1]:
            scene, q = complete.end(scene, q)
        names, row = scene.joint_names, -1
        planned, part = np.array(q), None
        present = np.array([positions.get(name, np.nan) for name in names])
        present = without_turns(scene, present, q)
        if segments:
            part = segments[segment - 1]
            columns = [names.index(name) for name in part.joint_names]
            count = len(plan.arm(part.arm).joints)
            arm = present[columns[:count]]
            arm = np.where(np.isnan(arm), part.path[0, :count], arm)
            turning = turning_joints(scene)
            turns = np.array([2.0 * np.pi * (name in turning) for name in part.joint_names[:count]])
            row, planned[columns], present[columns[:count]] = _nearest_point(part.path, arm, turns)
            for joint, value in part.gripper.items():
                column = names.index(joint)
                if abs(present[column] - value) < abs(present[column] - planned[column]):
                    planned[column] = value
        is_equal = ~(np.abs(present - planned) > ON_PATH)  # also without a measured value
        measured = np.where(is_equal, planned, present)
        _require_held_objects(plan, part, scene, planned, measured)
        return cls(plan, step, segment, scene, read_only(planned), read_only(measured), row)

    def rejoin(self) -> tuple[Plan, Plan] | None:
        """Return the plan with the detour of the arm and the rest of it, if a detour can be made.

        A hand that moves needs no detour. No other arm or hand may be beside the plan.
        """
        steps, scene = self.plan.steps, self.scene
        step = steps[self.step - 1]
        is_beside = self.measured != self.planned
        if self.row < 0:
            return None if is_beside.any() else (self.plan, self._rest(step.segments, self.planned))
        part = step.segments[self.segment - 1]
        columns = [scene.joint_names.index(name) for name in part.joint_names]
        fingers = [scene.joint_names.index(name) for name in part.gripper]
        is_hand = part.kind in _HAND_KINDS
        excused = fingers if is_hand else columns
        if np.delete(is_beside, excused).any():
            return None
        point, present = self.planned[columns], self.measured[columns]
        detour = [point, present, point] if is_beside[columns].any() else [point]
        before, after = part.path[: self.row + 1], part.path[self.row + 1 :]
        rest = _without_repetitions([*detour[-2:], *after])
        segments = (replace(part, path=rest), *step.segments[self.segment :])
        remaining = self._rest(segments, self.measured)
        if len(detour) == 1:
            return self.plan, remaining
        whole = replace(part, path=_without_repetitions([*before, *detour, *after]))
        changed = (*step.segments[: self.segment - 1], whole, *step.segments[self.segment :])
        interrupted = (
            *steps[: self.step - 1],
            replace(step, segments=changed),
            *steps[self.step :],
        )
        return replace(self.plan, steps=interrupted), remaining

    def _rest(self, segments: tuple[Segment, ...], q: Configuration) -> Plan:
        """Return the plan of the remaining segments of the step, and of the later steps."""
        step, *later = self.plan.steps[self.step - 1 :]
        steps = (replace(step, segments=segments), *later)
        return replace(self.plan, scene=self.scene, q=q, steps=steps)

    def replan(
        self,
        domain: DomainSource | None,
        semantics: str | Path | None,
        options: PlanningOptions | None,
    ) -> Resumption:
        """Return a plan of the remaining actions, or another plan, from the measured configuration.

        Raises:
            ConfigurationError: if an object was pushed on a part of its path.
        """
        plan, steps = self.plan, self.plan.steps[self.step - 1 :]
        if self.row >= 0 and steps[0].segments[self.segment - 1].kind is SegmentKind.PUSH:
            name = steps[0].segments[self.segment - 1].held
            raise ConfigurationError(
                f"'{name}' was pushed on a part of its path and the arm has left the path, so the"
                f" pose of '{name}' is unknown; plan again from a scene with its pose"
            )
        problem = PlanningProblem(
            self.scene,
            self.measured,
            domain=load_plan_domain(plan, domain, semantics),
            goal=(plan.goal, *plan.continuous_goals),
            robots=plan.robots,
        )
        options = options or PlanningOptions(seed=plan.seed)
        new_plan, reason = repair_plan(problem, steps, options=options), ""
        if new_plan is None:
            result = solve(problem, options)
            new_plan, reason = result.plan, str(result.explanation)
        if new_plan is not None:
            report = validate_plan(new_plan, domain=domain, semantics=semantics)
            reason = "; ".join(report.problems)
        if new_plan is None or reason:
            return Resumption(
                ResumptionStatus.NO_PLAN, f"no plan from the measured configuration: {reason}"
            )
        actions = ", ".join(str(action) for action in new_plan.actions)
        return Resumption(
            ResumptionStatus.REPLANNED,
            f"new motions from the measured configuration: {actions or 'none, the goal holds'}",
            new_plan,
            remaining=new_plan,
        )


def _nearest_point(
    path: NDArray[np.float64], present: NDArray[np.float64], turns: NDArray[np.float64]
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """Return the row before the nearest point of a path, the point, and the joint values beside it.

    Of points at nearly the same distance, it is the first: a path may pass a configuration twice.

    Args:
        path: (k, n) path; a joint of a drawer or door comes after those of the arm.
        present: (n_arm,) joint values of the arm.
        turns: (n_arm,) changes of a joint value without a motion: a turn, or 0 [rad].
    """
    count, candidates = len(present), []
    for row, (begin, end) in enumerate(pairwise(path if len(path) > 1 else path[[0, 0]])):
        line, middle = end[:count] - begin[:count], (begin + end)[:count] / 2.0
        values = present - np.round((present - middle) / (2.0 * np.pi)) * turns
        length = float(dot(line, line))
        share = float(dot(values - begin[:count], line)) / length if length > 0.0 else 0.0
        point = begin + min(max(share, 0.0), 1.0) * (end - begin)
        candidates.append((row, point, values))
    distances = [np.max(np.abs(point[:count] - values)) for _, point, values in candidates]
    limit = min(distances) + _EQUAL_DISTANCE
    return next(
        candidate
        for candidate, distance in zip(candidates, distances, strict=True)
        if distance <= limit
    )


def _without_repetitions(rows: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return a path (k, n) without rows that are equal to the previous one."""
    path = np.array(rows)
    is_new = np.any(path[1:] != path[:-1], axis=1)
    return read_only(path[np.concatenate([[True], is_new])])


def _require_held_objects(
    plan: Plan,
    part: Segment | None,
    scene: SceneGraph,
    planned: Configuration,
    measured: Configuration,
) -> None:
    """Check that the fingers of each hand with an object are where they hold it.

    Args:
        plan: interrupted plan.
        part: interrupted segment, or None.
        scene: scene during the segment.
        planned: (n_joints,) planned configuration.
        measured: (n_joints,) measured configuration, equal to the planned one where it is near.

    Raises:
        ConfigurationError: if a finger is elsewhere.
    """
    for arm in plan.robots:
        object = held_object(scene, arm)
        is_released = part is not None and part.kind is SegmentKind.RELEASE and part.arm == arm.name
        if object is None or is_released:
            continue
        for joint in arm.gripper_joints:
            column = scene.joint_names.index(joint)
            if planned[column] != measured[column]:
                raise ConfigurationError(
                    f"the hand of arm '{arm.name}' does not hold '{object}' any more: finger joint"
                    f" '{joint}' is at {measured[column]:.4f}, expected {planned[column]:.4f};"
                    f" plan again from a scene with the pose of '{object}'"
                )
