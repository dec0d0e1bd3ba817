"""Closed loop: execute a plan, look during and after each step, and repair the plan or plan again.

``docs/howto/closed_loop.md`` has the rules of comparison and estimation. Each estimate is a new
version of the scene, in which each object is on its support. From there the remaining actions are
refined again, with the motions that are still valid (:func:`tmkit.tamp.repair_plan`). Only if that
fails, the problem is planned again.

Invariants:
    - Success means that the goals hold in the estimate after the last look.
    - Objects outside of the view of all sensors are assumed to be as planned; without sensors, all
      objects are.
    - The same executor, sensors and seed give the same run.
    - An arm that is elsewhere than planned before a step is an event, too.
    - An ``ExecutionError`` of the executor is an event, after which the problem is planned again
      from the measured configuration. It passes through after a stop by the user, or while an arm
      moves. So do other exceptions: they are bugs, or leave the arms in an unknown state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.results import Result
from tmkit.errors import ArgumentError, CollisionError, ExecutionError, SceneError, TaskError
from tmkit.graph import Free, SceneGraph
from tmkit.plans import Executor, Plan, PlanStep, SegmentKind
from tmkit.plans.execution import execute_step
from tmkit.plans.execution_report import ExecutionStatus
from tmkit.robots import movable_frames
from tmkit.robots.hands import pair_distance
from tmkit.robots.mechanisms import without_turns
from tmkit.simulation import Detection, draw_failure
from tmkit.simulation.pictures.failure import draw_marked
from tmkit.tamp import PlanningOptions, PlanningProblem, PlanResult, repair_plan, solve
from tmkit.world.detections import (
    TOLERANCE,
    associate_detections,
    fuse_detections,
    is_consistent,
    largest_agreement,
    rest_on_support,
)

_FREE_SEGMENTS = (SegmentKind.TRANSIT, SegmentKind.LIFT, SegmentKind.TRANSFER)
"""Segments after which the arm may move in any direction."""


class ClosedLoopStatus(StrEnum):
    """Outcome of an execution in a closed loop."""

    REACHED = "goal reached"
    PRECONDITION = "precondition failed"
    PLANNING = "planning failed"
    EXECUTION = "execution failed"
    POSTCONDITION = "postcondition failed"


@dataclass(frozen=True, eq=False)
class ClosedLoopEvent:
    """Deviation from the plan, or the reason of a failure.

    Attributes:
        plan: number of the plan, from 1.
        step: number of the last completed step of the plan, 0 before the first.
        segment: number of executed segments of the step after it.
        time: time of the executor's simulation [s], if it has one.
        text: description of the event.
        scene: estimated scene at that time.
        q: (n_joints,) configuration at that time.
        expected: version that the plan predicts for that time.
        objects: objects that differ.
        planning: result of the planner, if planning failed.
    """

    plan: int
    step: int
    segment: int
    time: float | None
    text: str
    scene: SceneGraph = field(repr=False)
    q: NDArray[np.float64] = field(repr=False)
    expected: SceneGraph = field(repr=False)
    objects: tuple[str, ...] = ()
    planning: PlanResult | None = field(default=None, repr=False)

    def __str__(self) -> str:
        within = (
            f" and {self.segment} motion{'s' * (self.segment > 1)} of the next"
            if self.segment
            else ""
        )
        return f"plan {self.plan}, after step {self.step}{within}: {self.text}"

    def draw(self, path: str | Path, *, width: int = 960, height: int = 640) -> Path:
        """Draw the event, and return the path of the file.

        Objects that differ are red at their estimated pose, with a blue outline at the expected
        pose. A failure of planning shows the obstacles, as :func:`tmkit.simulation.draw_failure`
        does.

        Args:
            path: file ending in ``.png`` or ``.jpg``.
            width: width [px].
            height: height of the picture above its caption [px].

        Raises:
            OutputError: if the file cannot be written.
        """
        if self.planning is not None and any(
            action.causes for action in self.planning.diagnosis.actions
        ):
            return draw_failure(self.planning, path, width=width, height=height)
        return draw_marked(
            self.scene,
            self.q,
            path,
            red=self.objects,
            expected=self.expected,
            caption=str(self),
            size=(width, height),
        )


@dataclass(frozen=True, eq=False)
class ClosedLoopResult(Result):
    """Result of an execution in a closed loop.

    Attributes:
        status: outcome.
        explanation: failure and its causes, as text.
        events: events in order. If the execution failed, the last one is the failure.
        plans: executed plans in order.
        scene: estimated scene at the end.
        q: (n_joints,) configuration at the end.
    """

    status: ClosedLoopStatus
    explanation: str
    events: tuple[ClosedLoopEvent, ...]
    plans: tuple[Plan, ...]
    scene: SceneGraph
    q: NDArray[np.float64]

    def __repr__(self) -> str:
        return (
            f"ClosedLoopResult({self.status.value}, {len(self.plans)} plans, {len(self.events)}"
            " events)"
        )

    def __str__(self) -> str:
        return "\n".join([self.explanation, *(f"    {event}" for event in self.events)])


@runtime_checkable
class Sensor(Protocol):
    """Sensor that detects objects, such as :class:`tmkit.simulation.SimulatedCamera`."""

    def look(self) -> Sequence[Detection]:
        """Return the present detections."""
        ...

    def in_view(self, scene: SceneGraph, q: ArrayLike) -> Collection[str]:
        """Return the objects in view if the world were equal to a scene, without random misses.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """Options of the execution in a closed loop.

    Args:
        max_plans: largest number of executed plans, at least 1.
        looks: number of looks of each sensor after a deviation, at least 2. Twice as many are made
            before an object counts as gone.
        rate: sample rate of each motion [1/s]. Defaults to that of the executor's simulation, else
            to 100.
        start_tolerance: largest difference of a measured joint from its planned value before a
            step and at the end [rad or m]. Beyond it, the arm has another place, and the plan is
            repaired from there. Defaults to 0.01, the ``allowed_start_tolerance`` of MoveIt.

    Raises:
        ArgumentError: if no plan or fewer than two looks are allowed, or the tolerance is not
            positive.
    """

    max_plans: int = 8
    looks: int = 3
    rate: float | None = None
    start_tolerance: float = 0.01

    def __post_init__(self) -> None:
        if not self.start_tolerance > 0.0:
            raise ArgumentError(
                f"a closed loop needs a positive start_tolerance, not {self.start_tolerance}"
            )
        if self.max_plans < 1 or self.looks < 2:
            raise ArgumentError(
                "a closed loop needs max_plans of at least 1 and looks of at least 2, not"
                f" {self.max_plans}, {self.looks}"
            )


def execute_closed_loop(
    problem: PlanningProblem,
    executor: Executor,
    sensors: Sequence[Sensor],
    *,
    plan: Plan | None = None,
    options: PlanningOptions | None = None,
    loop: LoopOptions | None = None,
    on_event: Callable[[ClosedLoopEvent], None] | None = None,
) -> ClosedLoopResult:
    """Execute a problem's plan, look during and after each step, and repair deviations.

    Within a step, sensors look where the arm may move in any direction: before an approach, and
    before an object is lowered.

    Args:
        problem: planning problem. Its scene is the estimate at the start.
        executor: executor of the steps. If it has an attribute ``q`` (n_joints,), the measured
            joints are read there, NaN where one is not measured.
        sensors: sensors. Objects outside of the view of all of them are assumed to be as planned.
        plan: first plan. If omitted, it is computed.
        options: planning options.
        loop: limits of the loop, looks and sample rate. Defaults to :class:`LoopOptions`.
        on_event: function that is called with each event.
    """
    loop = LoopOptions() if loop is None else loop
    return _Loop(problem, executor, sensors, options or PlanningOptions(), loop, on_event).run(plan)


class _Loop:
    """State of one execution: the estimated scene, the plans and the events."""

    def __init__(
        self,
        problem: PlanningProblem,
        executor: Executor,
        sensors: Sequence[Sensor],
        options: PlanningOptions,
        loop: LoopOptions,
        on_event: Callable[[ClosedLoopEvent], None] | None,
    ) -> None:
        self._problem = problem
        self._executor = executor
        self._sensors = sensors
        self._options = options
        self._max_plans, self._looks, self._on_event = loop.max_plans, loop.looks, on_event
        self._start_tolerance = loop.start_tolerance
        simulation = getattr(executor, "simulation", None)
        default_rate = 100.0 if simulation is None else 1.0 / simulation.settings.time_step
        self._rate = loop.rate or default_rate
        self._events: list[ClosedLoopEvent] = []
        self._plans: list[Plan] = []
        self._scene = self._expected = problem.scene
        self._q: NDArray[np.float64] | None = (
            None if problem.q is None else np.array(problem.q, dtype=float)
        )
        self._step_number = self._segment_number = 0
        self._is_effect_missing = False  # of the last step
        self._last_objects: tuple[str, ...] = ()  # objects of the last events

    def run(self, plan: Plan | None) -> ClosedLoopResult:
        """Plan and execute until the goal holds after a look, or planning or execution fails."""
        remaining: tuple[PlanStep, ...] = ()
        while True:
            if plan is None:
                result = self._find_plan(remaining)
                if isinstance(result, ClosedLoopResult):
                    return result
                plan = result
            self._scene, self._q = plan.scene, plan.q
            if self._plans and not plan.steps:
                return self._end(
                    ClosedLoopStatus.REACHED,
                    f"the goal holds, as seen after {len(self._plans)} plan(s)",
                )
            if len(self._plans) == self._max_plans:
                kind = (
                    ClosedLoopStatus.EXECUTION
                    if self._is_effect_missing
                    else ClosedLoopStatus.POSTCONDITION
                )
                return self._end(kind, f"the goal does not hold after {self._max_plans} plans")
            self._plans.append(plan)
            remaining, plan = self._execute_plan(plan), None

    def _find_plan(self, remaining: tuple[PlanStep, ...]) -> Plan | ClosedLoopResult:
        """Return a plan from the estimated scene, or the failure.

        The plan keeps the remaining actions if possible.
        """
        problem = replace(self._problem, scene=self._scene, q=self._q)
        if self._plans:  # a problem file also has initial facts
            first = self._plans[0]
            problem = replace(problem, goal=(first.goal, *first.continuous_goals))
        try:
            if self._plans:
                plan = repair_plan(problem, remaining, options=self._options)
                if plan is not None:
                    return plan
            result: PlanResult = solve(problem, self._options)
        except (SceneError, TaskError, CollisionError) as error:
            if not self._plans:
                raise
            # The observed scene has no state in the domain, or objects of the goal are gone.
            names = movable_frames(self._problem.scene)
            missing = ", ".join(f"'{name}'" for name in names if name not in self._scene)
            without = f", without {missing}," if missing else ""
            return self._end(
                ClosedLoopStatus.PRECONDITION,
                f"the world as seen{without} cannot be planned in: {error}",
            )
        if result.plan is None:
            text = f"no plan from the world as seen. {result.explanation}"
            return self._end(ClosedLoopStatus.PLANNING, text, result)
        return result.plan

    def _execute_plan(self, plan: Plan) -> tuple[PlanStep, ...]:
        """Execute a plan while the world is as expected; return the remaining steps.

        The estimate is updated.
        """
        self._step_number, self._segment_number, self._is_effect_missing = 0, 0, False
        self._scene, self._q = plan.scene, plan.q
        try:
            self._executor.begin(plan)
            for number in range(1, len(plan.steps) + 1):
                differs = self._find_displaced_arm(plan) | self._look(plan)
                if differs or not self._execute_step(plan, number):
                    return plan.steps[number - 1 :]
            self._executor.finish()
        except ExecutionError as error:
            report = getattr(error, "report", None)
            is_stopped = getattr(report, "status", None) == ExecutionStatus.STOPPED
            if is_stopped or not getattr(report, "is_at_rest", True):
                raise  # no new motion after a stop by the user, or while an arm moves
            self._record_failure(plan, error)
            return plan.steps[self._step_number :]
        self._find_displaced_arm(plan)
        self._look(plan)
        return ()

    def _execute_step(self, plan: Plan, number: int) -> bool:
        """Execute a step while the world is as expected; return whether it is complete."""
        step = plan.steps[number - 1]

        def on_segment(count: int) -> bool:
            assert self._q is not None
            segment = step.segments[count - 1]
            self._scene, self._q = segment.end(self._scene, self._q)
            self._segment_number = count
            is_free = count < len(step.segments) and segment.kind in _FREE_SEGMENTS
            return is_free and self._look(plan)

        is_complete = execute_step(
            plan,
            number,
            self._executor,
            rate=self._rate,
            on_segment=on_segment,
            rests=_FREE_SEGMENTS,
        )
        if is_complete:
            self._step_number, self._segment_number = number, 0
            self._scene, self._q = step.scene, step.q
        return is_complete

    def _find_displaced_arm(self, plan: Plan) -> bool:
        """Return whether an arm at rest is elsewhere than planned, and update the estimate."""
        assert self._q is not None
        joints = [name for arm in plan.robots for name in arm.joints]
        measured = self._read_joints(self._scene, joints, tolerance=self._start_tolerance)
        distances = np.abs(measured - self._q)
        worst = int(np.argmax(distances))
        if distances[worst] == 0.0:
            return False
        text = (
            f"joint '{self._scene.joint_names[worst]}' is at {measured[worst]:.4f}, planned"
            f" {self._q[worst]:.4f} (tolerance {self._start_tolerance:g})"
        )
        self._expected, self._q = self._scene, measured
        self._is_effect_missing, self._last_objects = True, ()
        self._add_event(text, ())
        return True

    def _record_failure(self, plan: Plan, error: ExecutionError) -> None:
        """Add the event of a failed command, and estimate the state in which the arm stopped.

        The objects in the hands are those after the last complete segment. All segments that blend
        with the failed one have the same objects.
        """
        self._is_effect_missing = True
        report = getattr(error, "report", error)
        if getattr(report, "step", None) == self._step_number + 1:
            self._segment_number = max(0, getattr(report, "segment", 1) - 1)
        self._expected = self._scene
        joints = [name for arm in plan.robots for name in (*arm.joints, *arm.gripper_joints)]
        self._q = self._read_joints(
            self._scene,
            joints,
            tolerance=self._start_tolerance,
            positions=getattr(report, "positions", None),
        )
        self._last_objects = ()
        self._add_event(f"the executor failed: {error}", ())
        self._look(plan)

    def _look(self, plan: Plan) -> bool:
        """Look at the world and update the estimate; return whether it differs from the plan."""
        assert self._q is not None, "a plan has a configuration"
        expected = self._expected = self._scene
        detections: dict[str, list[Detection]] = {}
        view: Collection[str] | None = None  # only computed if an object is not detected
        kinematics, objects = expected.at(self._q), movable_frames(expected)
        for number in range(2 * self._looks):
            for sensor in self._sensors:
                look = associate_detections(sensor.look(), expected, self._q)
                for name, detection in look.items():
                    detections.setdefault(name, []).append(detection)
            if view is None and not all(name in detections for name in objects):
                view = self._in_view(expected)
            is_complete = all(name in detections for name in view or ())
            differs = any(
                name not in expected or not is_consistent(kinematics.pose(name), candidates[-1])
                for name, candidates in detections.items()
            )
            if is_complete and (not differs or number >= self._looks - 1):
                break
        if is_complete and not differs:
            return False
        return self._update_estimate(plan, detections, view or ())

    def _in_view(self, scene: SceneGraph) -> set[str]:
        assert self._q is not None
        return {name for sensor in self._sensors for name in sensor.in_view(scene, self._q)}

    def _update_estimate(
        self, plan: Plan, detections: dict[str, list[Detection]], view: Collection[str]
    ) -> bool:
        """Set the estimate to the majority of looks; return whether it differs from the plan."""
        assert self._q is not None
        expected = self._expected
        kinematics, scene, texts = expected.at(self._q), expected, dict[str, str]()
        robots = {robot.tip: robot for robot in plan.robots}
        for name, candidates in detections.items():
            majority = largest_agreement(candidates)
            is_expected = name in expected
            unmoved = 0
            if is_expected:
                pose = kinematics.pose(name)
                unmoved = sum(is_consistent(pose, detection) for detection in candidates)
            # Looks that contradict each other, or a single one, are not evidence.
            if len(majority) <= max(1, unmoved):
                continue
            pose = fuse_detections(majority)
            if not is_expected:
                first, root = candidates[0], scene.root(plan.robot.base)
                scene = scene.add_frame(
                    name, root, pose=pose, joint=Free(), classes=first.classes, shapes=first.shapes
                )
                scene = rest_on_support(scene, name, pose, self._q)
                texts[name] = f"'{name}' is there, unexpected, on '{scene.parent(name)}'"
                continue
            distance, angle = kinematics.pose(name).distance(pose)
            if distance <= TOLERANCE and angle <= 10.0 * TOLERANCE:
                continue
            holder = robots.get(str(expected.parent(name)))
            scene = rest_on_support(scene, name, pose, self._q)
            texts[name] = (
                f"'{name}' is {1000 * distance:.0f} mm and {math.degrees(angle):.0f} degrees from"
                f" where it should be, on '{scene.parent(name)}'"
            )
            if holder is not None:
                texts[name] += f": the hand '{holder.tip}' does not hold it"
                self._is_effect_missing = True
                self._q = self._read_joints(expected, holder.gripper_joints)
            elif is_moved_in_step(plan, self._step_number, name):
                self._is_effect_missing = True
        missing = sorted({*view} - {*detections})
        if missing and texts:  # a moved object may hide a missing one, but not be at its place
            visible = self._in_view(scene)
            moved = [name for name in texts if name in scene]
            gap = partial(pair_distance, scene, self._q)
            missing = [
                name
                for name in missing
                if name in visible
                or any(gap(frame_a=name, frame_b=other) < -TOLERANCE for other in moved)
            ]
        for name in missing:
            scene = scene.remove_frame(name, subtree=True)
            texts[name] = f"'{name}' is gone"
        self._scene = scene
        self._last_objects = tuple(texts) or self._last_objects
        for name, text in texts.items():
            self._add_event(text, (name,))
        return bool(texts)

    def _read_joints(
        self,
        scene: SceneGraph,
        joints: Collection[str],
        *,
        tolerance: float = 0.0,
        positions: Mapping[str, float] | None = None,
    ) -> NDArray[np.float64]:
        """Return the configuration with joints as they are measured, if they are.

        Args:
            scene: scene of the configuration.
            joints: joints to read.
            tolerance: difference up to which a joint keeps its planned value [rad or m].
            positions: measured values by joint. Defaults to ``q`` of the executor.
        """
        assert self._q is not None
        measured = getattr(self._executor, "q", None)
        if positions is not None:
            measured = [positions.get(name, np.nan) for name in scene.joint_names]
        if measured is None:
            return self._q
        low, high = scene.joint_limits.T
        measured = without_turns(scene, measured, self._q)
        values = {
            name: float(np.clip(measured[index], low[index], high[index]))
            for index, name in enumerate(scene.joint_names)
            if name in joints and abs(measured[index] - self._q[index]) > tolerance
        }
        return np.array(scene.configuration(values, base=self._q))

    def _add_event(
        self, text: str, objects: tuple[str, ...], planning: PlanResult | None = None
    ) -> None:
        assert self._q is not None
        simulation = getattr(self._executor, "simulation", None)
        event = ClosedLoopEvent(
            max(1, len(self._plans)),
            self._step_number,
            self._segment_number,
            None if simulation is None else simulation.time,
            text,
            self._scene,
            self._q,
            self._expected,
            objects,
            planning,
        )
        self._events.append(event)
        if self._on_event is not None:
            self._on_event(event)

    def _end(
        self, status: ClosedLoopStatus, explanation: str, planning: PlanResult | None = None
    ) -> ClosedLoopResult:
        if self._q is None:  # no first plan from the ready configuration
            self._q = self._scene.zero_configuration()
        if status is not ClosedLoopStatus.REACHED:
            self._add_event(explanation, self._last_objects, planning)
        return ClosedLoopResult(
            status, explanation, tuple(self._events), tuple(self._plans), self._scene, self._q
        )


def is_moved_in_step(plan: Plan, step: int, name: str) -> bool:
    """Return whether a step of a plan, from 1, moves an object; step 0 moves none."""
    return step > 0 and any(part.held == name for part in plan.steps[step - 1].segments)
