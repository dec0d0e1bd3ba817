"""Executing a plan under physics: docs/concepts/simulation.md.

In front of each grasp and release the arm stands still until the fingers do. A finger that holds something is told to
close all the way, with the robot's grip force: the plan's finger values while holding say where the fingers meet the
object, and so would press on it with no force at all. Of several arms one moves at a time, and the others hold what
they hold; in a plan with a schedule they move as that says, and hands have the time that it gives them.

Sixty times a simulated second, how far a carried object is from where the plan has it in the hand, and what the arm
touches besides, become notes. Everything depends on simulated time alone, never on a clock.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument, plan_hint
from tmkit.errors import SimulationError
from tmkit.motion.timing import time_path
from tmkit.plans.execution import execute
from tmkit.plans.values import Plan
from tmkit.simulation.arm_player import ArmPlayer
from tmkit.simulation.camera import Camera
from tmkit.simulation.mujoco_world import MujocoSimulation
from tmkit.simulation.playback import fit_camera_to_plan
from tmkit.simulation.recording import FRAMES_PER_SECOND, Film, captioned, check_output, write_picture
from tmkit.simulation.rendering import Renderer, chosen_renderer, open_studio, render
from tmkit.simulation.report import JointError, ObjectError, SimulationProgress, SimulationReport
from tmkit.simulation.settings import PhysicsSettings
from tmkit.simulation.watching import Watch
from tmkit.simulation.world import Simulation

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.plans import PlanStep, Schedule, Segment, TimedMotion
    from tmkit.plans.schedule import Phase
    from tmkit.robots import Manipulator

_logger = logging.getLogger(__name__)

_GRASPS = ("contact", "constraint")
_ENGINES: dict[str, type[Simulation]] = {"pybullet": Simulation, "mujoco": MujocoSimulation}
_FILM_SIZE = (480, 360)
_FILM_SUPERSAMPLING = 1.5
_WATCHES_PER_SECOND = 60.0
_TOLD_EVERY = 0.25  # seconds of simulated time between two reports of progress
_FINGER_TIME_LIMIT = 3.0  # seconds after which fingers that still move are taken as they are
_FINGER_REST = 0.0005  # metres or radians a second below which fingers stand still
_PAUSE = 0.1  # seconds for a hand and what it holds to settle
_AT_REST = 0.002  # metres a second below which an object lies still


def simulate(
    plan: Plan, *, gui: bool = False, record: str | Path | None = None, picture: str | Path | None = None,
    camera: Camera | None = None, grasp: Literal["contact", "constraint"] = "contact",
    position_tolerance: float = 0.015, rotation_tolerance: float = math.radians(5.0),
    settings: PhysicsSettings | None = None, world: SceneGraph | None = None, renderer: Renderer = "auto",
    captions: bool = False, on_progress: Callable[[SimulationProgress], None] | None = None,
    on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None = None,
    engine: Literal["pybullet", "mujoco"] = "pybullet",
) -> SimulationReport:  # fmt: skip
    """Execute a plan in a physics simulation and compare the outcome with the plan.

    Args:
        plan: the plan.
        gui: open pybullet's window and run in real time.
        record: where to write a film at twice the simulated speed (``.gif`` or ``.webp``; ``.mp4`` with the extra
            ``video``).
        picture: where to write a picture of the end (``.png`` or ``.jpg``).
        camera: the view of film and picture; by default a good one is found.
        grasp: ``contact`` holds objects by friction between the fingers; ``constraint`` fixes them to the hand.
            What ``contact`` is for fingers, the vacuum is for a suction cup.
        position_tolerance: metres within which each object has to end.
        rotation_tolerance: radians within which each object has to end.
        settings: the numbers of the physics.
        world: the scene as it truly is at the start, with the same frames, such as one that was drawn from an uncertain
            scene; the plan's first scene by default. What is compared is still where the plan puts things.
        renderer: what draws film and picture: ``filament``, ``tiny``, or the better that is there.
        captions: whether the film names the action that is carried out.
        on_progress: called at the start of each phase and step, and every quarter of a simulated second.
        on_state: called with the scene as it is and its configuration (n_joints,), thirty times a simulated second;
            :meth:`tmkit.visualization.LatestScene.put` shows it in a viewer.
        engine: the physics: ``pybullet``, or ``mujoco`` with the extra of that name.

    Returns:
        The report. The same plan and arguments give the same report, to the last bit.

    Raises:
        SimulationError: the scene cannot be simulated, or an argument is none of those that are known.
        OutputError: film or picture cannot be written; raised before the simulation starts.
        MissingExtraError: an MP4 is wanted without the extra ``video``, or the renderer or the engine is not there.
    """
    check_argument(plan, Plan, "plan", function="simulate", hint=plan_hint(plan))
    if grasp not in _GRASPS:
        raise SimulationError(f"grasp must be 'contact' or 'constraint', not {grasp!r}")
    if engine not in _ENGINES:
        raise SimulationError(f"engine must be one of {', '.join(_ENGINES)}, not {engine!r}")
    for name, value in (("position_tolerance", position_tolerance), ("rotation_tolerance", rotation_tolerance)):
        if not value >= 0.0:
            raise SimulationError(f"{name} must not be negative, but is {value}")
    began = time.monotonic()

    def progress(phase: str, step: int, action: str = "", *, simulated: float = 0.0) -> None:
        if on_progress is not None:
            seconds = time.monotonic() - began
            on_progress(SimulationProgress(phase, step, len(plan.steps), seconds, action, simulated))

    film = None if record is None else Film(record)
    if picture is not None:
        check_output(picture, film=False)
    if film is not None or picture is not None:
        renderer = "filament" if chosen_renderer(renderer) == "filament" else "tiny"
    progress("build", 0)
    with (
        ExitStack() as stack,
        _ENGINES[engine].from_scene(
            plan.scene if world is None else world,
            plan.q,
            robot=plan.robots,
            passive=_operated_joints(plan),
            gui=gui,
            settings=settings,
        ) as simulation,
    ):
        by_constraint = grasp == "constraint"
        watch = Watch(
            simulation, plan, position_tolerance=position_tolerance, rotation_tolerance=rotation_tolerance, world=world
        )
        view = camera
        if view is None and (film is not None or picture is not None):
            view = fit_camera_to_plan(plan, width=1280, height=960)
        studio = None
        if film is not None and view is not None:
            frame_view = view if camera is not None else view.resized(*_FILM_SIZE)
            studio = stack.enter_context(
                open_studio(simulation, frame_view, supersampling=_FILM_SUPERSAMPLING, renderer=renderer)
            )
        execution = _Execution(
            simulation, plan, watch=watch, by_constraint=by_constraint, film=film, studio=studio, real_time=gui,
            progress=progress, captions=captions, on_state=on_state,
        )  # fmt: skip
        execute(plan, execution, rate=1.0 / simulation.settings.time_step)
        if film is not None or picture is not None:
            progress("write", len(plan.steps), simulated=simulation.time)
        if film is not None:
            film.write()
        if picture is not None and view is not None:
            write_picture(picture, render(simulation, view, renderer=renderer))
        return execution.report(position_tolerance, rotation_tolerance)


class _Execution:
    """One plan being executed in one simulation: an executor for :func:`tmkit.plans.execute`."""

    def __init__(
        self, simulation: Simulation, plan: Plan, *, watch: Watch, by_constraint: bool, film: Film | None,
        studio: Any, real_time: bool, progress: Callable[..., None], captions: bool,
        on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None, before: _Execution | None = None,
    ) -> None:  # fmt: skip
        self._simulation = simulation
        self._plan = plan
        self._by_constraint = by_constraint
        self._film = film
        self._real_time = real_time
        self._studio = studio
        self._progress = progress
        self._captions, self._on_state = captions, on_state
        self._now: tuple[str, int, str] = ("settle", 0, "")
        self._q = np.array(plan.q, dtype=float)  # commanded
        if before is None:
            self._arms = {
                robot.name: ArmPlayer(simulation, plan.scene, robot, q=self._q, by_constraint=by_constraint)
                for robot in plan.robots
            }
        else:  # the hands hold what they hold, and go on from where they are
            self._q, self._arms = before._q, before._arms
        self._watch = watch
        self._ticks = 0
        self._tell_every = max(1, round(_TOLD_EVERY / simulation.settings.time_step))
        self._watch_every = max(1, round(1.0 / (_WATCHES_PER_SECOND * simulation.settings.time_step)))
        self._frames_taken = 0

    # --- the plan -------------------------------------------------------------------------------------------------

    def begin(self, plan: Plan) -> None:
        """Take over what the arms hold, and let everything settle."""
        for arm in self._arms.values():  # a hand that has lost what it held lets go of it
            if arm.holding is not None and plan.scene.parent(arm.holding) != arm.manipulator.tip:
                arm.let_go(arm.holding)
        self._take_over_held_objects()
        self._stand(_PAUSE)
        self._watch.note_start()

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Tell of the step, and let suction cups touch what they handle in it."""
        _logger.info("step %d of %d: %s", number, len(self._plan.steps), step.action)
        self._tell("simulate", number - 1, str(step.action))
        self._watch.enter_step(number, step)
        for arm in self._arms.values():
            own = [part for part in step.segments if part.arm == arm.manipulator.name]
            arm.touch_softly([part.held for part in own if part.held is not None])

    def follow(self, motion: TimedMotion) -> None:
        """Move an arm along a timed path."""
        arm, segment = self._arms[motion.arm.name], motion.segment
        self._watch.enter(segment)
        positions = motion.timed.positions[:, : len(arm.entries)]
        self._approach_start(arm, positions[0])
        if arm.holding is None and any(arm.finger_goal[name] != value for name, value in segment.gripper.items()):
            arm.finger_goal.update(segment.gripper)  # the plan has them there all along the path
            self._wait_for_fingers(arm)
        for following in positions[1:]:
            self._tick((arm, following))
        if segment.kind not in ("grasp", "release"):
            arm.finger_goal.update(segment.gripper if arm.holding is None else {})

    def follow_schedule(self, schedule: Schedule) -> None:
        """Move all arms as a schedule has them."""
        period, arms = self._simulation.settings.time_step, self._arms
        handled = [part.held for step in self._plan.steps for part in step.segments if part.held is not None]
        for player in arms.values():
            player.touch_softly(list(dict.fromkeys(handled)))
        self._watch.enter_schedule()
        events: list[tuple[float, int, Callable[[], None]]] = []
        for (begin, _), step in zip(schedule.step_times(), self._plan.steps, strict=True):
            events.append((begin, len(events), partial(self._tell, "simulate", 0, str(step.action))))
        for start, track in schedule.tracks:
            for phase in track.phases:
                for at, act in self._hand_events(arms[phase.segment.arm], phase):
                    events.append((start + at, len(events), act))
        events.sort(key=lambda event: event[:2])
        count = math.ceil(schedule.makespan / period)
        rows = schedule.q(np.arange(1, count + 1, dtype=np.float64) * period)
        for number, row in enumerate(rows):
            while events and events[0][0] <= number * period + 1e-9:
                events.pop(0)[2]()
            self._tick(*((player, row[player.entries]) for player in arms.values()))
        for _, _, act in events:
            act()

    def _hand_events(self, player: ArmPlayer, phase: Phase) -> list[tuple[float, Callable[[], None]]]:
        """Return what a hand does in a segment of a schedule, and when."""
        segment, arm, name = phase.segment, player.manipulator, phase.segment.held

        def close() -> None:
            player.finger_goal.update(arm.gripper_closed)

        def take() -> None:
            fault = player.take(str(name))
            self._watch.grasped(str(name), segment, by_constraint=self._by_constraint or player.cup is not None)
            if fault is not None:
                self._watch.note(fault)

        def open_hand() -> None:
            self._watch.released(str(name), arm)
            player.let_go(str(name))
            player.finger_goal.update(segment.gripper or arm.gripper_open)

        def keep() -> None:
            player.finger_goal.update(segment.gripper if player.holding is None else {})

        if segment.kind == "grasp":
            return [(phase.begin, close), (phase.end - _PAUSE, take)]
        if segment.kind == "release":
            return [(phase.begin + _PAUSE, open_hand)]
        return [(phase.begin, keep)]

    def end_step(self, number: int, step: PlanStep) -> None:
        """Compare the world with the step's scene."""
        del number, step
        self._watch.leave_step()

    def finish(self) -> None:
        """Let everything settle."""
        self._tell("settle", len(self._plan.steps))
        self._settle()

    def _tell(self, phase: str, step: int, action: str = "") -> None:
        self._now = (phase, step, action)
        self._progress(*self._now, simulated=self._simulation.time)

    def _take_over_held_objects(self) -> None:
        """Fix what the arms hold before the plan starts: nothing is known of how it was grasped."""
        scene = self._plan.scene
        for name in _known_objects(self._simulation, scene):
            parent = scene.parent(name)
            for robot in self._plan.robots:
                is_held = parent is not None and robot.tip in (parent, *scene.ancestors(parent))
                if is_held and self._arms[robot.name].holding != name:
                    self._simulation.attach(name, robot.tip)

    def _approach_start(self, arm: ArmPlayer, start: NDArray[np.float64]) -> None:
        """Go to the first point of a path in a straight line, if a plan leaves a gap before it."""
        here = arm.position
        if np.max(np.abs(start - here), initial=0.0) < 1e-9:
            return
        rate = 1.0 / self._simulation.settings.time_step
        path = np.stack([here, start])
        timed = time_path(path, arm.speeds, acceleration_limits=arm.accelerations, rate=rate)
        for following in timed.positions[1:]:
            self._tick((arm, following))

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Close a hand on an object or a handle."""
        player, name = self._arms[arm.name], segment.held
        self._watch.enter(segment)
        self._approach_start(player, np.asarray(segment.path, dtype=float)[-1])
        player.finger_goal.update(arm.gripper_closed)
        self._wait_for_fingers(player)
        if name is not None:
            fault = player.take(name)
            self._watch.grasped(name, segment, by_constraint=self._by_constraint or player.cup is not None)
            if fault is not None:
                self._watch.note(fault)
        self._stand(_PAUSE)

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Open a hand."""
        player = self._arms[arm.name]
        self._watch.enter(segment)
        self._approach_start(player, np.asarray(segment.path, dtype=float)[-1])
        self._stand(_PAUSE)
        name = segment.held or player.holding
        if name is not None:
            self._watch.released(name, arm)
            player.let_go(name)
        player.finger_goal.update(segment.gripper or arm.gripper_open)
        self._wait_for_fingers(player)
        self._stand(_PAUSE)

    def _wait_for_fingers(self, arm: ArmPlayer) -> None:
        """Stand until the fingers have reached their goal or are stopped by something."""
        if not arm.manipulator.gripper_joints:
            return
        before = arm.fingers()
        for _ in range(round(_FINGER_TIME_LIMIT / _PAUSE)):
            self._stand(_PAUSE)
            now = arm.fingers()
            if np.max(np.abs(now - before)) < _FINGER_REST * _PAUSE:
                return
            before = now

    def _settle(self) -> None:
        """Let everything settle after the last step."""
        settings = self._simulation.settings
        self._watch.leave_plan()
        self._stand(settings.settle_time)
        waited = settings.settle_time
        while waited < settings.settle_limit and any(
            self._simulation.speed(name) > _AT_REST for name in self._simulation.objects
        ):
            self._stand(_PAUSE)
            waited += _PAUSE

    # --- one instant ----------------------------------------------------------------------------------------------

    def _stand(self, seconds: float) -> None:
        for _ in range(round(seconds / self._simulation.settings.time_step)):
            self._tick()

    def _tick(self, *moves: tuple[ArmPlayer, NDArray[np.float64]]) -> None:
        """Let one time step pass, in which arms move on to values (n_arm,) of their joints, and others stand."""
        simulation = self._simulation
        period = simulation.settings.time_step
        velocity = np.zeros_like(self._q)
        for arm, following in moves:
            velocity[arm.entries] = (following - self._q[arm.entries]) / period
        simulation.command(self._q, velocity)
        for player in self._arms.values():
            player.command_fingers()
        simulation.step()
        for player in self._arms.values():
            if player.cup is not None and (lost := player.cup.look()) is not None:
                self._watch.note(lost)
        for arm, following in moves:
            self._q[arm.entries] = following
        self._ticks += 1
        if self._ticks % self._tell_every == 0:
            self._progress(*self._now, simulated=self._simulation.time)
        if self._ticks % self._watch_every == 0:
            self._observe()
        if self._on_state is not None and self._ticks % (2 * self._watch_every) == 0:
            self._on_state(simulation.current_scene(), simulation.q)
        if self._film is not None and self._studio is not None and self._frame_is_due():
            self._film.add(captioned(self._studio.picture(), self._now[2] if self._captions else ""))
        if self._real_time and self._ticks % self._watch_every == 0:
            time.sleep(self._watch_every * period)

    def _frame_is_due(self) -> bool:
        if self._simulation.time * FRAMES_PER_SECOND < self._frames_taken:
            return False
        self._frames_taken += 1
        return True

    def _observe(self) -> None:
        for player in self._arms.values():
            player.renew_grip()
        joints = self._simulation.q
        behind = [player.observe(joints) for player in self._arms.values()]
        self._watch.look(*max(behind, key=lambda joint: joint[1]))

    # --- the outcome ----------------------------------------------------------------------------------------------

    def report(self, position_tolerance: float, rotation_tolerance: float) -> SimulationReport:
        """Compare the world as it is with the plan's final scene."""
        simulation, plan = self._simulation, self._plan
        last_scene = plan.steps[-1].scene if plan.steps else plan.scene
        last_q = plan.steps[-1].q if plan.steps else plan.q
        planned = last_scene.at(last_q)
        errors = {}
        for name in _known_objects(simulation, last_scene):
            metres, radians = planned.pose(name).distance(simulation.pose(name))
            errors[name] = ObjectError(float(metres), float(radians))
        report = SimulationReport(
            errors=errors,
            tracking={
                name: float(worst)
                for player in self._arms.values()
                for name, worst in zip(player.manipulator.joints, player.tracking, strict=True)
            },
            joints=_joint_errors(plan, simulation.q),
            slips=self._watch.slips,
            notes=(),
            steps=len(plan.steps),
            duration=simulation.time,
            position_tolerance=position_tolerance,
            rotation_tolerance=rotation_tolerance,
        )
        return replace(report, notes=self._watch.notes(report))


class SimulatedExecutor:
    """Executes plans, one after the other, in one simulation: what a closed loop acts on where there is no robot.

    An :class:`~tmkit.plans.Executor`. The next plan goes on with the arms where they are and what they hold.

    Args:
        simulation: built with the arms of the plans (``robot=``), and with the joints of drawers and doors that plans
            move as ``passive=``.
        on_state: called with the scene as it is and its configuration (n_joints,), thirty times a simulated second.
    """

    def __init__(
        self, simulation: Simulation, *, on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None = None
    ) -> None:
        self.simulation, self._on_state = simulation, on_state
        self._execution: _Execution | None = None

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) where the joints are, radians or metres."""
        return self.simulation.q

    def begin(self, plan: Plan) -> None:
        """Take over what the arms hold, and let everything settle."""
        watch = Watch(self.simulation, plan, position_tolerance=math.inf, rotation_tolerance=math.inf)
        self._execution = _Execution(
            self.simulation, plan, watch=watch, by_constraint=False, film=None, studio=None, real_time=False,
            progress=lambda *_, **__: None, captions=False, on_state=self._on_state, before=self._execution,
        )  # fmt: skip
        self._execution.begin(plan)

    @property
    def _begun(self) -> _Execution:
        if self._execution is None:
            raise SimulationError("begin(plan) comes before the first step")
        return self._execution

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Begin a step.

        Args:
            number: index of the step, from 1.
            step: the step.
        """
        self._begun.begin_step(number, step)

    def follow(self, motion: TimedMotion) -> None:
        """Move an arm along a timed path."""
        self._begun.follow(motion)

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Close a hand on an object or a handle.

        Args:
            arm: the arm.
            segment: the grasp.
        """
        self._begun.grasp(arm, segment)

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Open a hand.

        Args:
            arm: the arm.
            segment: the release.
        """
        self._begun.release(arm, segment)

    def end_step(self, number: int, step: PlanStep) -> None:
        """End a step.

        Args:
            number: index of the step, from 1.
            step: the step.
        """
        self._begun.end_step(number, step)

    def finish(self) -> None:
        """Let everything settle."""
        self._begun.finish()


def _known_objects(simulation: Simulation, scene: SceneGraph) -> list[str]:
    """Return the simulated objects that a scene has; that of a closed loop may lack some that it does not know of."""
    return [name for name in simulation.objects if name in scene]


def _operated_joints(plan: Plan) -> tuple[str, ...]:
    """Return the joints that the plan moves and that belong to no arm, such as those of drawers."""
    own = {joint for robot in plan.robots for joint in robot.joints}
    segments = [segment for step in plan.steps for segment in step.segments]
    return tuple(dict.fromkeys(joint for part in segments for joint in part.joint_names if joint not in own))


def _joint_errors(plan: Plan, q: NDArray[np.float64]) -> dict[str, JointError]:
    """Compare the joints that the plan moves by their handles with where it leaves them."""
    names = plan.scene.joint_names
    errors = {}
    for joint in _operated_joints(plan):
        entry = names.index(joint)
        slides = plan.scene.joint(plan.scene.joint_frame(joint)).type == "prismatic"
        errors[joint] = JointError(float(plan.final_q[entry]), float(q[entry]), is_prismatic=slides)
    return errors
