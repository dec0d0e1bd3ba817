"""The closed loop: execute a step, look, compare with what the plan says, and go on, repair, or plan again.

``docs/howto/closed_loop.md`` has the rules of what is compared and believed. What was learned is a new version of the
scene, in which an object lies on what is below it; from there the problem is planned anew, first with the actions that
are left (:class:`RemainingActions`): only if these do not apply any more, or have no motion, are others looked for.

Invariants: success is claimed for goals that hold in the version that is believed after the last look; what no sensor
has in view is believed to be as planned, and without sensors all is. The same executor, sensors and seed give the same
run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit._support.results import Result
from tmkit.errors import ArgumentError, CollisionError, SceneError, TaskError
from tmkit.estimation import associate
from tmkit.graph import Free, SceneGraph
from tmkit.motion.regions.surfaces import support_surfaces
from tmkit.pddl import GroundAction, Problem, validate_task_plan
from tmkit.plans import Executor, Plan, execute_step
from tmkit.robots import movable_frames
from tmkit.simulation import Detection
from tmkit.spatial import GaussianPose, Pose, chi_square_quantile, fuse, mahalanobis_distance
from tmkit.tamp import PlanningOptions, PlanningProblem, PlanResult, plan as plan_problem
from tmkit.tamp.domains.tabletop import shape_bounds
from tmkit.task_planning import FastDownward, TaskPlanner, TaskPlanResult, TaskPlanStatus

_GATE = 0.9999  # the probability with which a detection of what is where it should be agrees
_UPRIGHT = 0.2  # radians from a rest on a side up to which a tilt is taken for noise of the look
_RESTING = 0.02  # metres between an object's bottom and a surface within which it rests there
_NEAR = 0.004  # metres and, in radians, ten times that, by which an object may be off without new motions


class ClosedLoopStatus(StrEnum):
    """How an execution in a closed loop ended."""

    REACHED = "goal reached"
    PRECONDITION = "precondition failed"
    PLANNING = "planning failed"
    EXECUTION = "execution failed"
    POSTCONDITION = "postcondition failed"


@dataclass(frozen=True)
class ClosedLoopEvent:
    """What was noticed or decided.

    Attributes:
        plan: number of the plan, from 1.
        step: number of its step after which it was noticed; 0 before the first.
        text: what, in words.
        scene: the version of the scene as it is believed then.
    """

    plan: int
    step: int
    text: str
    scene: SceneGraph = field(repr=False)

    def __str__(self) -> str:
        return f"plan {self.plan}, after step {self.step}: {self.text}"


@dataclass(frozen=True, eq=False)
class ClosedLoopResult(Result):
    """The outcome of an execution in a closed loop.

    Attributes:
        status: how it ended.
        explanation: in words: the failure, and what led to it.
        events: what was noticed and decided, in order.
        plans: the plans that were begun, in order.
        scene: the version of the scene as it is believed at the end.
        q: (n_joints,) the configuration at the end.
    """

    status: ClosedLoopStatus
    explanation: str
    events: tuple[ClosedLoopEvent, ...]
    plans: tuple[Plan, ...]
    scene: SceneGraph
    q: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"ClosedLoopResult({self.status.value}, {len(self.plans)} plans, {len(self.events)} events)"

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


def execute_closed_loop(
    problem: PlanningProblem, executor: Executor, sensors: Sequence[Sensor], *, plan: Plan | None = None,
    options: PlanningOptions | None = None, max_plans: int = 8, looks: int = 3, rate: float | None = None,
    on_event: Callable[[ClosedLoopEvent], None] | None = None,
) -> ClosedLoopResult:  # fmt: skip
    """Execute a problem's plan, look after each step, and repair what has gone wrong.

    Args:
        problem: what is wanted, from the world as it is believed to be.
        executor: executes the steps; where it has an attribute ``q`` (n_joints,), fingers are read there.
        sensors: what looks. What none of them has in view is taken to be as planned; without any, all is.
        plan: the first plan; by default it is planned.
        options: of planning.
        max_plans: plans that are begun at most.
        looks: of each sensor, at most, where something is not as it should be; at least 2.
        rate: samples of each motion per second; by default that of the executor's simulation, else 100.
        on_event: told of each event.

    Raises:
        ArgumentError: no plan or fewer than two looks allowed.
    """
    if max_plans < 1 or looks < 2:
        raise ArgumentError(
            f"a closed loop needs max_plans of at least 1 and looks of at least 2, not {max_plans}, {looks}"
        )
    return _Loop(problem, executor, sensors, options or PlanningOptions(), max_plans, looks, rate, on_event).run(plan)


class _Loop:
    """One execution: what is believed, and what has happened."""

    def __init__(
        self, problem: PlanningProblem, executor: Executor, sensors: Sequence[Sensor], options: PlanningOptions,
        max_plans: int, looks: int, rate: float | None, on_event: Callable[[ClosedLoopEvent], None] | None,
    ) -> None:  # fmt: skip
        self._problem, self._executor, self._sensors, self._options = problem, executor, sensors, options
        self._max_plans, self._looks, self._on_event = max_plans, looks, on_event
        simulation = getattr(executor, "simulation", None)
        self._rate = rate or (100.0 if simulation is None else 1.0 / simulation.settings.time_step)
        self._events: list[ClosedLoopEvent] = []
        self._plans: list[Plan] = []
        self._scene = problem.scene
        self._q: NDArray[np.float64] | None = None if problem.q is None else np.array(problem.q, dtype=float)
        self._step = 0
        self._undone = False  # whether an effect of the last step did not come about

    def run(self, plan: Plan | None) -> ClosedLoopResult:
        """Plan and execute until the goal is seen to hold, or nothing helps."""
        remaining: tuple[GroundAction, ...] = ()
        while True:
            if plan is None:
                result = self._planned(remaining)
                if isinstance(result, ClosedLoopResult):
                    return result
                plan = result
            self._scene, self._q = plan.scene, plan.q
            if self._plans and not plan.steps:
                return self._end(ClosedLoopStatus.REACHED, f"the goal holds, as seen after {len(self._plans)} plan(s)")
            if len(self._plans) == self._max_plans:
                kind = ClosedLoopStatus.EXECUTION if self._undone else ClosedLoopStatus.POSTCONDITION
                return self._end(kind, f"the goal does not hold after {self._max_plans} plans")
            self._plans.append(plan)
            remaining, plan = self._executed(plan), None

    def _planned(self, remaining: tuple[GroundAction, ...]) -> Plan | ClosedLoopResult:
        """Return a plan from what is believed, by the actions that remain where they do; or the failure."""
        options = self._options
        if remaining and options.task_planner is None:
            options = replace(options, task_planner=RemainingActions(remaining))
        problem = replace(self._problem, scene=self._scene, q=self._q)
        if self._plans:  # a problem file has facts of the beginning, too
            first = self._plans[0]
            problem = replace(problem, goal=(first.goal, *first.continuous_goals))
        try:
            result: PlanResult = plan_problem(problem, options)
        except (SceneError, TaskError, CollisionError) as error:
            if not self._plans:
                raise
            # what is seen has no state in the domain, or objects of the goal are gone
            return self._end(ClosedLoopStatus.PRECONDITION, f"the world as seen cannot be planned in: {error}")
        if result.plan is None:
            return self._end(ClosedLoopStatus.PLANNING, f"no plan from the world as seen. {result.explanation}")
        return result.plan

    def _executed(self, plan: Plan) -> tuple[GroundAction, ...]:
        """Execute a plan as far as the world is as it says, and believe what is seen; return what was left of it."""
        executor = self._executor
        executor.begin(plan)
        self._step, self._undone = 0, False
        for number, step in enumerate(plan.steps, start=1):
            if self._looked(plan.scene if number == 1 else plan.steps[number - 2].scene, plan, number - 1):
                return plan.actions[number - 1 :]
            execute_step(plan, number, executor, rate=self._rate)
            self._step, self._scene, self._q = number, step.scene, step.q
        executor.finish()
        self._looked(plan.steps[-1].scene if plan.steps else plan.scene, plan, len(plan.steps))
        return ()

    # --- looking --------------------------------------------------------------------------------------------------

    def _looked(self, expected: SceneGraph, plan: Plan, step: int) -> bool:
        """Look at the world, and believe it; return whether it is not as expected."""
        assert self._q is not None, "a plan has one"
        self._step = step
        seen: dict[str, list[Detection]] = {}
        view = {name for sensor in self._sensors for name in sensor.in_view(expected, self._q)}
        at = expected.at(self._q)
        for _ in range(self._looks):
            for sensor in self._sensors:
                for name, detection in _associated(sensor.look(), expected, self._q).items():
                    seen.setdefault(name, []).append(detection)
            is_odd = any(name not in expected or not _agrees(at.pose(name), found[-1]) for name, found in seen.items())
            if not is_odd and view <= set(seen):
                return False
        return self._believed(expected, plan, seen, view)

    def _believed(
        self, expected: SceneGraph, plan: Plan, seen: dict[str, list[Detection]], view: Collection[str]
    ) -> bool:
        """Believe what several looks agree on; return whether it differs from what was expected."""
        assert self._q is not None
        at, scene, news = expected.at(self._q), expected, list[str]()
        tips = {robot.tip: robot for robot in plan.robots}
        for name, found in seen.items():
            is_known = name in expected
            if is_known and any(_agrees(at.pose(name), one) for one in found):
                continue
            pose = _agreed(found)
            if pose is None:
                continue  # looks that contradict each other say nothing
            if not is_known:
                one, root = found[0], scene.root(plan.robot.base)
                scene = scene.add_frame(name, root, pose=pose, joint=Free(), classes=one.classes, shapes=one.shapes)
                scene = _resting(scene, name, pose, self._q)
                news.append(f"'{name}' is there, which nobody knew of, on '{scene.parent(name)}'")
                continue
            metres, radians = at.pose(name).distance(pose)
            if metres <= _NEAR and radians <= 10.0 * _NEAR:
                continue
            held_by = tips.get(str(expected.parent(name)))
            scene = _resting(scene, name, pose, self._q)
            where = f"{1000 * metres:.0f} mm and {math.degrees(radians):.0f} degrees from where it should be"
            what = f"'{name}' is {where}, on '{scene.parent(name)}'"
            if held_by is not None:
                what, self._undone = f"{what}: the hand '{held_by.tip}' does not hold it", True
                self._q = self._with_fingers(expected, held_by.gripper_joints)
            elif step_places(plan, self._step, name):
                self._undone = True
            news.append(what)
        for name in sorted(set(view) - set(seen)):
            scene = scene.remove_frame(name, subtree=True)
            news.append(f"'{name}' is gone")
        for text in news:
            self._tell(text, scene)
        self._scene = scene
        return bool(news)

    def _with_fingers(self, scene: SceneGraph, joints: Sequence[str]) -> NDArray[np.float64]:
        """Return the configuration with the fingers where they are, if the executor says so."""
        assert self._q is not None
        actual = getattr(self._executor, "q", None)
        if actual is None:
            return self._q
        low, high = scene.joint_limits.T
        names = scene.joint_names
        values = {name: float(np.clip(actual[k], low[k], high[k])) for k, name in enumerate(names) if name in joints}
        return np.array(scene.configuration(values, base=self._q))

    # --- telling --------------------------------------------------------------------------------------------------

    def _tell(self, text: str, scene: SceneGraph) -> None:
        event = ClosedLoopEvent(max(1, len(self._plans)), self._step, text, scene)
        self._events.append(event)
        if self._on_event is not None:
            self._on_event(event)

    def _end(self, status: ClosedLoopStatus, explanation: str) -> ClosedLoopResult:
        q = self._scene.zero_configuration() if self._q is None else self._q
        return ClosedLoopResult(status, explanation, tuple(self._events), tuple(self._plans), self._scene, q)


def step_places(plan: Plan, step: int, name: str) -> bool:
    """Return whether a step of a plan, from 1, moves an object; step 0 moves none."""
    return step > 0 and any(part.held == name for part in plan.steps[step - 1].segments)


# ------------------------------------------------------------------------------------------------------- association


def _associated(found: Sequence[Detection], scene: SceneGraph, q: NDArray[np.float64]) -> dict[str, Detection]:
    """Return detections by object: by name, else the nearest of the kind, all of them together, by their errors."""
    objects = movable_frames(scene)
    named = {
        one.frame: one for one in found if one.frame in objects or (one.frame and one.frame not in scene and one.shapes)
    }
    rest = [one for one in found if one.frame is None]
    free = [name for name in objects if name not in named]
    if rest and free:
        at = scene.at(q)
        costs = [
            [_distance(at.pose(name), one) if {*one.classes} <= {*scene.classes(name)} else math.inf for name in free]
            for one in rest
        ]
        named |= {free[c]: rest[r] for r, c in associate(costs)}
    return named


def _distance(expected: Pose, detection: Detection) -> float:
    """Return the squared Mahalanobis distance of a detection, with the tolerance of execution."""
    tolerance = np.diag([_NEAR**2] * 3 + [(10.0 * _NEAR) ** 2] * 3)
    error = (expected.inverse() @ detection.pose).log()
    return mahalanobis_distance(error, detection.covariance + tolerance)[0]


def _agrees(expected: Pose, detection: Detection) -> bool:
    return _distance(expected, detection) <= chi_square_quantile(_GATE, 6)


def _agreed(found: Sequence[Detection]) -> Pose | None:
    """Return where most of several detections say that an object is; None where no two agree."""

    def agreeing(one: Detection) -> list[Detection]:
        return [
            other for other in found if _agrees(one.pose, replace(other, covariance=other.covariance + one.covariance))
        ]

    best = max((agreeing(one) for one in found), key=len)
    if len(best) < 2:
        return None
    return fuse([GaussianPose(one.pose, one.covariance) for one in best]).pose.mean


def _resting(scene: SceneGraph, name: str, pose: Pose, q: NDArray[np.float64]) -> SceneGraph:
    """Return the scene in which an object is at a pose: level on the surface below it, where it rests on one."""
    turn = pose.rotation
    side = int(np.argmax(np.abs(turn[2])))  # the object's axis that is most upright
    up = np.sign(turn[2, side]) * turn[:, side]
    tilt = float(np.arccos(np.clip(up[2], -1.0, 1.0)))
    if tilt <= _UPRIGHT:
        axis = np.cross(up, [0.0, 0.0, 1.0])
        length = float(np.linalg.norm(axis))
        if length > 0.0:
            pose = (
                Pose(pose.translation) @ Pose.exp([0, 0, 0, *(tilt * axis / length)]) @ Pose([0, 0, 0], pose.quat_xyzw)
            )
    corners = np.array(list(itertools.product(*zip(*shape_bounds(scene, name), strict=True))))
    low = float(np.min(pose.apply(corners)[:, 2]))
    best: tuple[float, str] | None = None
    inside = {name, *scene.subtree(name)}
    for support in scene.frame_names:
        if support in inside or not scene.shapes(support):
            continue
        for surface in support_surfaces(scene, support, q=q):
            root_from_surface = scene.pose(support, q=q) @ surface.support_from_surface
            height = float(root_from_surface.translation[2])
            x, y, _ = root_from_surface.inverse().apply(pose.translation)
            gap = abs(low - height)
            if gap <= _RESTING and surface.polygon.depth([[x, y]])[0] >= 0.0 and (best is None or gap < best[0]):
                best = gap, support
                pose_on = Pose([0.0, 0.0, height - low]) @ pose
    if best is None:  # on nothing that is known
        root = scene.root(name)
        return scene.reparent(name, root, pose=pose) if scene.parent(name) != root else scene.set_pose(name, pose)
    local = scene.pose(best[1], q=q).inverse() @ pose_on
    return scene.reparent(name, best[1], pose=local) if scene.parent(name) != best[1] else scene.set_pose(name, local)


# ------------------------------------------------------------------------------------------------- remaining actions


@dataclass(frozen=True, eq=False)
class _RemainingTask:
    """A problem with the actions that are tried first, until one of them is forbidden."""

    problem: Problem
    steps: tuple[GroundAction, ...]
    other: Any = None  # the problem prepared by the planner behind

    def forbid(self, action: GroundAction, context: Any) -> _RemainingTask:
        """Return the task in which an action is never done while facts hold."""
        facts = tuple(context)
        other = FastDownward().prepare(self.problem) if self.other is None else self.other
        return replace(self, steps=() if action in self.steps else self.steps, other=other.forbid(action, facts))


class RemainingActions(TaskPlanner[_RemainingTask]):
    """A task planner that proposes given actions first, where they still lead to the goal, and then those it finds.

    Args:
        actions: what was left of an earlier plan.
    """

    def __init__(self, actions: Sequence[GroundAction]) -> None:
        self._actions, self._behind = tuple(actions), FastDownward()

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> _RemainingTask:
        """Prepare a problem.

        Args:
            problem: the problem.
            time_limit: seconds.
        """
        for begin in range(len(self._actions)):  # what was done by chance need not be done again
            steps = self._actions[begin:]
            if validate_task_plan(problem, steps).is_valid:
                return _RemainingTask(problem, steps)
        return _RemainingTask(problem, (), self._behind.prepare(problem, time_limit=time_limit))

    def search(self, task: _RemainingTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Return the given actions, or what Fast Downward finds.

        Args:
            task: the task.
            time_limit: seconds.
        """
        if task.steps:
            return TaskPlanResult(TaskPlanStatus.SOLVED, task.steps, cost=float(len(task.steps)))
        return self._behind.search(task.other, time_limit=time_limit)
