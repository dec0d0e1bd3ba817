"""The closed loop: execute, look during and after each step, and go on, repair the plan, or plan again.

``docs/howto/closed_loop.md`` has the rules of comparison and estimation. Each estimate is a new
version of the scene, in which an object lies on its support. From there the remaining actions are
refined anew, with the motions that are still valid (:func:`tmkit.tamp.repair_plan`); only if that
fails, the problem is planned anew.

Invariants: success means that the goals hold in the estimate after the last look; objects that no
sensor has in view are taken to be as planned, without sensors all of them. The same executor,
sensors and seed give the same run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.results import Result
from tmkit.errors import ArgumentError, CollisionError, SceneError, TaskError
from tmkit.graph import Free, SceneGraph
from tmkit.plans import Executor, Plan, PlanStep, SegmentKind
from tmkit.plans.execution import execute_step
from tmkit.robots import movable_frames
from tmkit.robots.hands import pair_distance
from tmkit.simulation import Detection, draw_failure
from tmkit.simulation.pictures.failure import draw_marked
from tmkit.tamp import PlanningOptions, PlanningProblem, PlanResult, repair_plan, solve
from tmkit.world.detections import TOLERANCE, agrees, associated, fused, largest_agreement, resting

# after which the arm may go anywhere
_FREE = (SegmentKind.TRANSIT, SegmentKind.LIFT, SegmentKind.TRANSFER)


class ClosedLoopStatus(StrEnum):
    """How an execution in a closed loop ended."""

    REACHED = "goal reached"
    PRECONDITION = "precondition failed"
    PLANNING = "planning failed"
    EXECUTION = "execution failed"
    POSTCONDITION = "postcondition failed"


@dataclass(frozen=True, eq=False)
class ClosedLoopEvent:
    """What was noticed or why the execution failed.

    Attributes:
        plan: number of the plan, from 1.
        step: number of its last step that was completed; 0 before the first.
        segment: number of segments of the step after it that were executed.
        time: seconds of the executor's simulation, if it has one.
        text: what, in words.
        scene: the estimated scene at that time.
        q: (n_joints,) its configuration.
        expected: the version that the plan has at this moment.
        objects: that differ.
        planning: the planner's result, if it is a failure of planning.
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
        """Draw the moment; return the path of the file.

        The objects that differ are red where they are, with a blue outline where they should be. A
        failure of planning shows what was in the way, as :func:`tmkit.simulation.draw_failure`
        does.

        Args:
            path: a ``.png`` or ``.jpg``.
            width: pixels.
            height: pixels of the picture above its caption.

        Raises:
            OutputError: the file cannot be written.
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
    """The outcome of an execution in a closed loop.

    Attributes:
        status: how it ended.
        explanation: in words: the failure, and what led to it.
        events: what was noticed, in order; of a failure the last one is the failure itself.
        plans: the plans that were begun, in order.
        scene: the estimated scene at the end.
        q: (n_joints,) the configuration at the end.
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
    """Detects objects; :class:`tmkit.simulation.SimulatedCamera` is one."""

    def look(self) -> Sequence[Detection]:
        """Return what it detects now."""
        ...

    def in_view(self, scene: SceneGraph, q: ArrayLike) -> Collection[str]:
        """Return the objects that it would detect for certain, but for chance, if the world were as a scene says.

        Args:
            scene: the scene.
            q: (n_joints,) configuration.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """Options of the execution in a closed loop.

    Args:
        max_plans: largest number of plans that are begun, at least 1.
        looks: looks of each sensor where something is not as expected, at least 2; twice as many
            before an object is taken to be gone.
        rate: samples of each motion [1/s]; by default that of the executor's simulation, else 100.

    Raises:
        ArgumentError: if no plan or fewer than two looks are allowed.
    """

    max_plans: int = 8
    looks: int = 3
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.max_plans < 1 or self.looks < 2:
            given = f"{self.max_plans}, {self.looks}"
            raise ArgumentError(
                f"a closed loop needs max_plans of at least 1 and looks of at least 2, not {given}"
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
    """Execute a problem's plan, look during and after each step, and repair what has gone wrong.

    Within a step it is looked where the arm may go anywhere: before it comes to an object, and
    before it puts one down.

    Args:
        problem: the task; its scene is the estimate at the start.
        executor: executes the steps; where it has an attribute ``q`` (n_joints,), fingers are read
            there.
        sensors: what looks. What none of them has in view is taken to be as planned; without any,
            all is.
        plan: the first plan; by default it is planned.
        options: of planning.
        loop: limits of the loop, looks and sample rate; the defaults if omitted.
        on_event: called with each event.
    """
    loop = LoopOptions() if loop is None else loop
    return _Loop(problem, executor, sensors, options or PlanningOptions(), loop, on_event).run(plan)


class _Loop:
    """One execution: the estimated scene, and what has happened."""

    def __init__(
        self,
        problem: PlanningProblem,
        executor: Executor,
        sensors: Sequence[Sensor],
        options: PlanningOptions,
        loop: LoopOptions,
        on_event: Callable[[ClosedLoopEvent], None] | None,
    ) -> None:
        self._problem, self._executor, self._sensors, self._options = (
            problem,
            executor,
            sensors,
            options,
        )
        self._max_plans, self._looks, self._on_event = loop.max_plans, loop.looks, on_event
        simulation = getattr(executor, "simulation", None)
        self._rate = loop.rate or (
            100.0 if simulation is None else 1.0 / simulation.settings.time_step
        )
        self._events: list[ClosedLoopEvent] = []
        self._plans: list[Plan] = []
        self._scene = self._expected = problem.scene
        self._q: NDArray[np.float64] | None = (
            None if problem.q is None else np.array(problem.q, dtype=float)
        )
        self._step = self._segment = 0
        self._undone = False  # whether an effect of the last step did not come about
        self._news: tuple[str, ...] = ()  # objects of the last events

    def run(self, plan: Plan | None) -> ClosedLoopResult:
        """Plan and execute until the goal is seen to hold, or nothing helps."""
        remaining: tuple[PlanStep, ...] = ()
        while True:
            if plan is None:
                result = self._planned(remaining)
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
                    ClosedLoopStatus.EXECUTION if self._undone else ClosedLoopStatus.POSTCONDITION
                )
                return self._end(kind, f"the goal does not hold after {self._max_plans} plans")
            self._plans.append(plan)
            remaining, plan = self._executed(plan), None

    def _planned(self, remaining: tuple[PlanStep, ...]) -> Plan | ClosedLoopResult:
        """Return a plan from the estimated scene, with the remaining actions where possible; or the failure."""
        problem = replace(self._problem, scene=self._scene, q=self._q)
        if self._plans:  # a problem file has facts of the beginning, too
            first = self._plans[0]
            problem = replace(problem, goal=(first.goal, *first.continuous_goals))
        try:
            if (
                self._plans
                and (repaired := repair_plan(problem, remaining, options=self._options)) is not None
            ):
                return repaired
            result: PlanResult = solve(problem, self._options)
        except (SceneError, TaskError, CollisionError) as error:
            if not self._plans:
                raise
            # what is seen has no state in the domain, or objects of the goal are gone
            gone = ", ".join(
                f"'{name}'"
                for name in movable_frames(self._problem.scene)
                if name not in self._scene
            )
            without = f", without {gone}," if gone else ""
            return self._end(
                ClosedLoopStatus.PRECONDITION,
                f"the world as seen{without} cannot be planned in: {error}",
            )
        if result.plan is None:
            text = f"no plan from the world as seen. {result.explanation}"
            return self._end(ClosedLoopStatus.PLANNING, text, result)
        return result.plan

    def _executed(self, plan: Plan) -> tuple[PlanStep, ...]:
        """Execute a plan as far as the world is as expected, and update the estimate; return the remaining steps."""
        executor = self._executor
        executor.begin(plan)
        self._step, self._segment, self._undone = 0, 0, False
        self._scene, self._q = plan.scene, plan.q
        for number, step in enumerate(plan.steps, start=1):
            if self._looked(plan):
                return plan.steps[number - 1 :]

            def on_segment(done: int, step: PlanStep = step) -> bool:
                assert self._q is not None
                segment = step.segments[done - 1]
                self._scene, self._q = segment.end(self._scene, self._q)
                self._segment = done
                return done < len(step.segments) and segment.kind in _FREE and self._looked(plan)

            if not execute_step(
                plan, number, executor, rate=self._rate, on_segment=on_segment, rests=_FREE
            ):
                return plan.steps[number - 1 :]
            self._step, self._segment, self._scene, self._q = number, 0, step.scene, step.q
        executor.finish()
        self._looked(plan)
        return ()

    def _looked(self, plan: Plan) -> bool:
        """Look at the world, and update the estimate; return whether it is not as expected."""
        assert self._q is not None, "a plan has one"
        expected = self._expected = self._scene
        seen: dict[str, list[Detection]] = {}
        # what should be seen; only needed where something is not
        view: Collection[str] | None = None
        at, objects = expected.at(self._q), movable_frames(expected)
        for number in range(2 * self._looks):
            for sensor in self._sensors:
                for name, detection in associated(sensor.look(), expected, self._q).items():
                    seen.setdefault(name, []).append(detection)
            if view is None and not all(name in seen for name in objects):
                view = self._in_view(expected)
            is_complete = all(name in seen for name in view or ())
            is_odd = any(
                name not in expected or not agrees(at.pose(name), found[-1])
                for name, found in seen.items()
            )
            if is_complete and (not is_odd or number >= self._looks - 1):
                break
        return (is_odd or not is_complete) and self._estimated(plan, seen, view or ())

    def _in_view(self, scene: SceneGraph) -> set[str]:
        assert self._q is not None
        return {name for sensor in self._sensors for name in sensor.in_view(scene, self._q)}

    def _estimated(
        self, plan: Plan, seen: dict[str, list[Detection]], view: Collection[str]
    ) -> bool:
        """Set the estimate to what most looks agree on; return whether it differs from what was expected."""
        assert self._q is not None
        expected = self._expected
        at, scene, news = expected.at(self._q), expected, dict[str, str]()
        tips = {robot.tip: robot for robot in plan.robots}
        for name, found in seen.items():
            agreeing = largest_agreement(found)
            is_known = name in expected
            unmoved = sum(agrees(at.pose(name), one) for one in found) if is_known else 0
            # looks that contradict each other, or one alone, say nothing
            if len(agreeing) <= max(1, unmoved):
                continue
            pose = fused(agreeing)
            if not is_known:
                one, root = found[0], scene.root(plan.robot.base)
                scene = scene.add_frame(
                    name, root, pose=pose, joint=Free(), classes=one.classes, shapes=one.shapes
                )
                scene = resting(scene, name, pose, self._q)
                news[name] = f"'{name}' is there, unexpected, on '{scene.parent(name)}'"
                continue
            metres, radians = at.pose(name).distance(pose)
            if metres <= TOLERANCE and radians <= 10.0 * TOLERANCE:
                continue
            held_by = tips.get(str(expected.parent(name)))
            scene = resting(scene, name, pose, self._q)
            where = (
                f"{1000 * metres:.0f} mm and {math.degrees(radians):.0f} degrees from where it"
                " should be"
            )
            news[name] = f"'{name}' is {where}, on '{scene.parent(name)}'"
            if held_by is not None:
                news[name] += f": the hand '{held_by.tip}' does not hold it"
                self._undone = True
                self._q = self._with_fingers(expected, held_by.gripper_joints)
            elif step_places(plan, self._step, name):
                self._undone = True
        unseen = sorted({*view} - {*seen})
        if unseen and news:  # what was moved may hide it, but not be where it is
            free = self._in_view(scene)
            others = [name for name in news if name in scene]
            gap = partial(pair_distance, scene, self._q)
            unseen = [
                n
                for n in unseen
                if n in free or any(gap(frame_a=n, frame_b=o) < -TOLERANCE for o in others)
            ]
        for name in unseen:
            scene = scene.remove_frame(name, subtree=True)
            news[name] = f"'{name}' is gone"
        self._scene = scene
        self._news = tuple(news) or self._news
        for name, text in news.items():
            self._tell(text, (name,))
        return bool(news)

    def _with_fingers(self, scene: SceneGraph, joints: Sequence[str]) -> NDArray[np.float64]:
        """Return the configuration with the fingers where they are, if the executor says so."""
        assert self._q is not None
        actual = getattr(self._executor, "q", None)
        if actual is None:
            return self._q
        low, high = scene.joint_limits.T
        names = scene.joint_names
        values = {
            name: float(np.clip(actual[k], low[k], high[k]))
            for k, name in enumerate(names)
            if name in joints
        }
        return np.array(scene.configuration(values, base=self._q))

    def _tell(
        self, text: str, objects: tuple[str, ...], planning: PlanResult | None = None
    ) -> None:
        assert self._q is not None
        simulation = getattr(self._executor, "simulation", None)
        event = ClosedLoopEvent(
            max(1, len(self._plans)),
            self._step,
            self._segment,
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
            self._tell(explanation, self._news, planning)
        return ClosedLoopResult(
            status, explanation, tuple(self._events), tuple(self._plans), self._scene, self._q
        )


def step_places(plan: Plan, step: int, name: str) -> bool:
    """Return whether a step of a plan, from 1, moves an object; step 0 moves none."""
    return step > 0 and any(part.held == name for part in plan.steps[step - 1].segments)
