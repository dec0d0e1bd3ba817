"""Execution of a plan under physics: docs/concepts/simulation.md.

:func:`simulate` builds the simulation, executes the plan in it (:mod:`tmkit.simulation.executor`),
draws film and picture, and compares the outcome with the plan. The schedule of a plan, if any,
determines the motions of the arms and the times for the hands.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tmkit._support.argument_errors import check_argument, plan_hint, with_keyword_hints
from tmkit.errors import SimulationError, UnknownNameError
from tmkit.manipulation.concave_objects import with_shapes_of
from tmkit.plans.execution import execute
from tmkit.plans.values import Plan
from tmkit.simulation.arm_controller import ArmController
from tmkit.simulation.engines.pybullet.registration import PYBULLET
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.engines.registry import ENGINES
from tmkit.simulation.executor import PAUSE, SimulatedExecutor, objects_in_scene
from tmkit.simulation.options import Recording, SimulationOptions
from tmkit.simulation.pictures.playback import fit_camera_to_plan
from tmkit.simulation.pictures.recording import (
    FRAMES_PER_SECOND,
    Film,
    add_caption,
    check_output,
    write_picture,
)
from tmkit.simulation.plan_monitor import PlanMonitor
from tmkit.simulation.rendering.studio import open_studio, render, select_renderer
from tmkit.simulation.report import JointError, ObjectError, SimulationProgress, SimulationReport

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.plans import Schedule, Segment
    from tmkit.plans.schedule import Phase

_FILM_SIZE = (640, 480)
"""Default width and height of a film [pixels]."""

_FILM_SUPERSAMPLING = {"filament": 1.0, "tiny": 1.5}
"""Supersampling of the frames of a film, by renderer. Filament smooths edges without it."""

_PROGRESS_PERIOD = 0.25
"""Simulated time between two reports of progress [s]."""


@with_keyword_hints
def simulate(
    plan: Plan,
    *,
    record: str | Path | None = None,
    picture: str | Path | None = None,
    recording: Recording | None = None,
    options: SimulationOptions | None = None,
    on_progress: Callable[[SimulationProgress], None] | None = None,
    on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None = None,
) -> SimulationReport:
    """Execute a plan in a physics simulation and compare the outcome with the plan.

    Args:
        plan: the plan.
        record: path of a film at twice the simulated speed (``.gif`` or ``.webp``; ``.mp4`` with
            the extra ``pictures``).
        picture: path of a picture of the end (``.png`` or ``.jpg``).
        recording: view, renderer and captions of film and picture.
        options: engine, physics, grasps, tolerances and the true world.
        on_progress: callback at the start of each phase and step, and 4 times a simulated second.
        on_state: callback with the current scene and its configuration (n_joints,), called 30 times
            a simulated second. :meth:`tmkit.visualization.LatestScene.put` shows it in a viewer.

    Returns:
        The report. The same plan and arguments give the same report, to the last bit.

    Raises:
        SimulationError: if the scene cannot be simulated or the engine is unknown.
        OutputError: if film or picture cannot be written. Raised before the simulation starts.
        MissingExtraError: if an MP4 film, the renderer or the engine needs an extra that is not
            installed.
    """
    check_argument(plan, Plan, "plan", function="simulate", hint=plan_hint(plan))
    recording, options = recording or Recording(), options or SimulationOptions()
    check_argument(recording, Recording, "recording", function="simulate")
    check_argument(options, SimulationOptions, "options", function="simulate")
    check_argument(
        options.engine,
        str,
        "engine",
        function="simulate",
        hint=f"give a name, as '{PYBULLET.name}'",
    )
    try:
        ENGINES.find(options.engine)
    except UnknownNameError as error:
        raise SimulationError(str(error)) from None
    if options.world is not None:
        options = replace(options, world=with_shapes_of(options.world, plan.scene))
    start_time = time.monotonic()

    def progress(phase: str, step: int, action: str = "", *, simulated: float = 0.0) -> None:
        if on_progress is not None:
            seconds = time.monotonic() - start_time
            on_progress(
                SimulationProgress(phase, step, len(plan.steps), seconds, action, simulated)
            )

    film = None if record is None else Film(record)
    if picture is not None:
        check_output(picture, film=False)
    renderer = recording.renderer
    if film is not None or picture is not None:
        renderer = "filament" if select_renderer(renderer) == "filament" else "tiny"
    progress("build", 0)
    with (
        ExitStack() as stack,
        ENGINES.make(
            options.engine,
            plan.scene if options.world is None else options.world,
            plan.q,
            keywords={
                "robot": plan.robots,
                "passive": _operated_joints(plan),
                "gui": options.gui,
                "settings": options.settings,
            },
        ) as simulation,
    ):
        view = recording.camera
        if view is None and (film is not None or picture is not None):
            view = fit_camera_to_plan(plan, width=1280, height=960)
        studio = None
        if film is not None and view is not None:
            frame_view = view if recording.camera is not None else view.with_size(*_FILM_SIZE)
            studio = stack.enter_context(
                open_studio(
                    simulation,
                    frame_view,
                    supersampling=_FILM_SUPERSAMPLING[renderer],
                    renderer=renderer,
                )
            )
        filming = _FilmCamera(film, studio, recording.captions)
        execution = _Execution(simulation, options, filming, progress=progress, on_state=on_state)
        execute(plan, execution, rate=1.0 / simulation.settings.time_step)
        if film is not None or picture is not None:
            progress("write", len(plan.steps), simulated=simulation.time)
        if film is not None:
            film.write()
        if picture is not None and view is not None:
            write_picture(picture, render(simulation, view, renderer=renderer))
        return execution.report()


class _Studio(Protocol):
    """Renderer of a simulation from one view."""

    def picture(self) -> NDArray[np.uint8]:
        """Return a picture (height, width, 3) of the current state of the simulation."""


@dataclass(frozen=True)
class _FilmCamera:
    """Adds pictures of a simulation to a film, if there is one."""

    film: Film | None
    studio: _Studio | None
    captions: bool

    def add_picture(self, action: str) -> None:
        """Add a picture of the current state of the simulation."""
        if self.film is not None and self.studio is not None:
            self.film.add(add_caption(self.studio.picture(), action if self.captions else ""))


@dataclass(frozen=True)
class _HandEvent:
    """Action of a hand at a time of a schedule.

    Attributes:
        time: simulated time since the start of the schedule [s].
        run: executes the action.
    """

    time: float
    run: Callable[[], None]


class _Execution(SimulatedExecutor):
    """Execution of one plan in one simulation, with film, progress and a report."""

    def __init__(
        self,
        simulation: Simulation,
        options: SimulationOptions,
        filming: _FilmCamera,
        *,
        progress: Callable[..., None],
        on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None,
    ) -> None:
        super().__init__(simulation, on_state=on_state)
        self._options, self._filming = options, filming
        self._by_constraint = options.grasp == "constraint"
        self._progress = progress
        self._phase_progress: tuple[str, int, str] = ("settle", 0, "")
        self._progress_period = max(1, round(_PROGRESS_PERIOD / simulation.settings.time_step))
        self._picture_count = 0

    def _make_monitor(self, plan: Plan) -> PlanMonitor:
        options = self._options
        return PlanMonitor(
            self.simulation,
            plan,
            position_tolerance=options.position_tolerance,
            rotation_tolerance=options.rotation_tolerance,
            world=options.world,
        )

    def _report_phase(self, phase: str, step: int, action: str = "") -> None:
        self._phase_progress = (phase, step, action)
        self._progress(*self._phase_progress, simulated=self.simulation.time)

    def _finish_time_step(self) -> None:
        if self._step_count % self._progress_period == 0:
            self._progress(*self._phase_progress, simulated=self.simulation.time)
        if self.simulation.time * FRAMES_PER_SECOND >= self._picture_count:
            self._picture_count += 1
            self._filming.add_picture(self._phase_progress[2])
        if self._options.gui and self._step_count % self._monitor_period == 0:
            time.sleep(self._monitor_period * self.simulation.settings.time_step)

    def follow_schedule(self, schedule: Schedule, *, rate: float) -> None:  # noqa: ARG002
        """Move all arms by a schedule, at each time step of the simulation."""
        period, arms = self.simulation.settings.time_step, self._arms
        objects = [
            part.held
            for step in self._plan.steps
            for part in step.segments
            if part.held is not None
        ]
        for controller in arms.values():
            controller.soften_contacts(list(dict.fromkeys(objects)))
        self._monitor.enter_schedule()
        events: list[_HandEvent] = []
        for (begin, _), step in zip(schedule.step_times(), self._plan.steps, strict=True):
            report = partial(self._report_phase, "simulate", 0, str(step.action))
            events.append(_HandEvent(begin, report))
        for start, track in schedule.tracks:
            for phase in track.phases:
                hand_events = self._hand_events(arms[phase.segment.arm], phase)
                events += [replace(event, time=start + event.time) for event in hand_events]
        events.sort(key=lambda event: event.time)
        count = math.ceil(schedule.makespan / period)
        rows = schedule.q(np.arange(1, count + 1, dtype=np.float64) * period)
        for number, row in enumerate(rows):
            while events and events[0].time <= number * period + 1e-9:
                events.pop(0).run()
            self._run_time_step(
                *((controller, row[controller.entries]) for controller in arms.values())
            )
        for event in events:
            event.run()

    def _hand_events(self, controller: ArmController, phase: Phase) -> list[_HandEvent]:
        """Return the actions of a hand in a segment, relative to the start of its track."""
        segment = phase.segment
        if segment.kind == "grasp":
            close = partial(controller.set_finger_goals, controller.robot.gripper_closed)
            take = partial(self._take_object, controller, segment)
            return [_HandEvent(phase.begin, close), _HandEvent(phase.end - PAUSE, take)]
        if segment.kind == "release":
            release = partial(self._release_object, controller, segment)
            return [_HandEvent(phase.begin + PAUSE, release)]
        return [_HandEvent(phase.begin, partial(self._move_free_fingers, controller, segment))]

    def _take_object(self, controller: ArmController, segment: Segment) -> None:
        """Hold the object of a segment in the closed hand, and record the grasp."""
        name = str(segment.held)
        fault = controller.take(name)
        self._monitor.record_grasp(
            name, segment, by_constraint=self._by_constraint or controller.cup is not None
        )
        if fault is not None:
            self._monitor.add_note(fault)

    def _release_object(self, controller: ArmController, segment: Segment) -> None:
        """Record the release of the object of a segment, and open the hand."""
        arm, name = controller.robot, str(segment.held)
        self._monitor.record_release(name, arm)
        controller.release(name)
        controller.set_finger_goals(segment.gripper or arm.gripper_open)

    def _move_free_fingers(self, controller: ArmController, segment: Segment) -> None:
        """Set the planned finger positions of a segment, unless the hand holds an object."""
        controller.set_finger_goals(segment.gripper if controller.holding is None else {})

    def report(self) -> SimulationReport:
        """Compare the current state of the simulation with the plan's final scene."""
        simulation, plan = self.simulation, self._plan
        last_scene = plan.steps[-1].scene if plan.steps else plan.scene
        last_q = plan.steps[-1].q if plan.steps else plan.q
        planned = last_scene.at(last_q)
        errors = {}
        for name in objects_in_scene(simulation, last_scene):
            distance, angle = planned.pose(name).distance(simulation.pose(name))
            errors[name] = ObjectError(float(distance), float(angle))
        report = SimulationReport(
            errors=errors,
            tracking={
                name: float(error)
                for controller in self._arms.values()
                for name, error in zip(controller.robot.joints, controller.tracking, strict=True)
            },
            joints=_joint_errors(plan, simulation.q),
            slips=self._monitor.slips,
            notes=(),
            steps=len(plan.steps),
            duration=simulation.time,
            position_tolerance=self._options.position_tolerance,
            rotation_tolerance=self._options.rotation_tolerance,
        )
        return replace(report, notes=self._monitor.notes(report))


def _operated_joints(plan: Plan) -> tuple[str, ...]:
    """Return the joints that the plan moves and that belong to no arm, such as those of drawers."""
    arm_joints = {joint for robot in plan.robots for joint in robot.joints}
    segments = [segment for step in plan.steps for segment in step.segments]
    return tuple(
        dict.fromkeys(
            joint for part in segments for joint in part.joint_names if joint not in arm_joints
        )
    )


def _joint_errors(plan: Plan, q: NDArray[np.float64]) -> dict[str, JointError]:
    """Return the errors of joints that the plan moves by their handles, relative to the plan."""
    names = plan.scene.joint_names
    errors = {}
    for joint in _operated_joints(plan):
        entry = names.index(joint)
        is_prismatic = plan.scene.joint(plan.scene.joint_frame(joint)).type == "prismatic"
        planned, reached = float(plan.final_q[entry]), float(q[entry])
        errors[joint] = JointError(planned, reached, is_prismatic=is_prismatic)
    return errors
