"""Executing a plan under physics: docs/concepts/simulation.md.

:func:`simulate` builds the simulation, executes the plan in it (:mod:`tmkit.simulation.executor`),
draws film and picture, and compares the outcome with the plan. In a plan with a schedule the arms
move as that says, and hands have the time that it gives them.
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

from tmkit._support.argument_errors import check_argument, plan_hint
from tmkit.errors import SimulationError, UnknownNameError
from tmkit.manipulation.concave_objects import with_shapes_of
from tmkit.plans.execution import execute
from tmkit.plans.values import Plan
from tmkit.simulation.arm_player import ArmPlayer
from tmkit.simulation.engines.pybullet.registration import PYBULLET
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.engines.registry import ENGINES
from tmkit.simulation.executor import PAUSE, SimulatedExecutor, known_objects
from tmkit.simulation.options import Recording, SimulationOptions
from tmkit.simulation.pictures.playback import fit_camera_to_plan
from tmkit.simulation.pictures.recording import (
    FRAMES_PER_SECOND,
    Film,
    captioned,
    check_output,
    write_picture,
)
from tmkit.simulation.rendering.studio import chosen_renderer, open_studio, render
from tmkit.simulation.report import JointError, ObjectError, SimulationProgress, SimulationReport
from tmkit.simulation.watching import Watch

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.plans import Schedule
    from tmkit.plans.schedule import Phase

_FILM_SIZE = (480, 360)
_FILM_SUPERSAMPLING = 1.5
_TOLD_EVERY = 0.25  # seconds of simulated time between two reports of progress


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
        record: where to write a film at twice the simulated speed (``.gif`` or ``.webp``; ``.mp4``
            with the extra ``pictures``).
        picture: where to write a picture of the end (``.png`` or ``.jpg``).
        recording: view, renderer and captions of film and picture; the defaults if omitted.
        options: engine, physics, grasps, tolerances and the true world; the defaults if omitted.
        on_progress: called at the start of each phase and step, and every quarter of a simulated
            second.
        on_state: called with the scene as it is and its configuration (n_joints,), thirty times a
            simulated second; :meth:`tmkit.visualization.LatestScene.put` shows it in a viewer.

    Returns:
        The report. The same plan and arguments give the same report, to the last bit.

    Raises:
        SimulationError: the scene cannot be simulated, or an argument is none of those that are
            known.
        OutputError: film or picture cannot be written; raised before the simulation starts.
        MissingExtraError: an MP4 is wanted without the extra ``pictures``, or the renderer or the
            engine is not there.
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
    began = time.monotonic()

    def progress(phase: str, step: int, action: str = "", *, simulated: float = 0.0) -> None:
        if on_progress is not None:
            seconds = time.monotonic() - began
            on_progress(
                SimulationProgress(phase, step, len(plan.steps), seconds, action, simulated)
            )

    film = None if record is None else Film(record)
    if picture is not None:
        check_output(picture, film=False)
    renderer = recording.renderer
    if film is not None or picture is not None:
        renderer = "filament" if chosen_renderer(renderer) == "filament" else "tiny"
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
            frame_view = view if recording.camera is not None else view.resized(*_FILM_SIZE)
            studio = stack.enter_context(
                open_studio(
                    simulation, frame_view, supersampling=_FILM_SUPERSAMPLING, renderer=renderer
                )
            )
        filming = _Filming(film, studio, recording.captions)
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
    """Draws pictures of a simulation from one view."""

    def picture(self) -> NDArray[np.uint8]:
        """Return a picture (height, width, 3) of the simulation as it is."""


@dataclass(frozen=True)
class _Filming:
    """Takes the pictures of a film, if there is one."""

    film: Film | None
    studio: _Studio | None
    captions: bool

    def add_picture(self, action: str) -> None:
        """Add a picture of the simulation as it is."""
        if self.film is not None and self.studio is not None:
            self.film.add(captioned(self.studio.picture(), action if self.captions else ""))


class _Execution(SimulatedExecutor):
    """One plan being executed in one simulation, with film, progress and a report."""

    def __init__(
        self,
        simulation: Simulation,
        options: SimulationOptions,
        filming: _Filming,
        *,
        progress: Callable[..., None],
        on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None,
    ) -> None:
        super().__init__(simulation, on_state=on_state)
        self._options, self._filming = options, filming
        self._by_constraint = options.grasp == "constraint"
        self._progress = progress
        self._now: tuple[str, int, str] = ("settle", 0, "")
        self._tell_every = max(1, round(_TOLD_EVERY / simulation.settings.time_step))
        self._frames_taken = 0

    def _watch_over(self, plan: Plan) -> Watch:
        options = self._options
        return Watch(
            self.simulation,
            plan,
            position_tolerance=options.position_tolerance,
            rotation_tolerance=options.rotation_tolerance,
            world=options.world,
        )

    def _tell(self, phase: str, step: int, action: str = "") -> None:
        self._now = (phase, step, action)
        self._progress(*self._now, simulated=self.simulation.time)

    def _ticked(self) -> None:
        if self._ticks % self._tell_every == 0:
            self._progress(*self._now, simulated=self.simulation.time)
        if self.simulation.time * FRAMES_PER_SECOND >= self._frames_taken:
            self._frames_taken += 1
            self._filming.add_picture(self._now[2])
        if self._options.gui and self._ticks % self._watch_every == 0:
            time.sleep(self._watch_every * self.simulation.settings.time_step)

    def follow_schedule(self, schedule: Schedule) -> None:
        """Move all arms as a schedule has them."""
        period, arms = self.simulation.settings.time_step, self._arms
        handled = [
            part.held
            for step in self._plan.steps
            for part in step.segments
            if part.held is not None
        ]
        for player in arms.values():
            player.touch_softly(list(dict.fromkeys(handled)))
        self._watch.enter_schedule()
        events: list[tuple[float, int, Callable[[], None]]] = []
        for (begin, _), step in zip(schedule.step_times(), self._plan.steps, strict=True):
            events.append(
                (begin, len(events), partial(self._tell, "simulate", 0, str(step.action)))
            )
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

    def _hand_events(
        self, player: ArmPlayer, phase: Phase
    ) -> list[tuple[float, Callable[[], None]]]:
        """Return what a hand does in a segment of a schedule, and when."""
        segment, arm, name = phase.segment, player.manipulator, phase.segment.held

        def close() -> None:
            player.aim_fingers(arm.gripper_closed)

        def take() -> None:
            fault = player.take(str(name))
            self._watch.grasped(
                str(name), segment, by_constraint=self._by_constraint or player.cup is not None
            )
            if fault is not None:
                self._watch.note(fault)

        def open_hand() -> None:
            self._watch.released(str(name), arm)
            player.let_go(str(name))
            player.aim_fingers(segment.gripper or arm.gripper_open)

        def keep() -> None:
            player.aim_fingers(segment.gripper if player.holding is None else {})

        if segment.kind == "grasp":
            return [(phase.begin, close), (phase.end - PAUSE, take)]
        if segment.kind == "release":
            return [(phase.begin + PAUSE, open_hand)]
        return [(phase.begin, keep)]

    def report(self) -> SimulationReport:
        """Compare the world as it is with the plan's final scene."""
        simulation, plan = self.simulation, self._plan
        last_scene = plan.steps[-1].scene if plan.steps else plan.scene
        last_q = plan.steps[-1].q if plan.steps else plan.q
        planned = last_scene.at(last_q)
        errors = {}
        for name in known_objects(simulation, last_scene):
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
            position_tolerance=self._options.position_tolerance,
            rotation_tolerance=self._options.rotation_tolerance,
        )
        return replace(report, notes=self._watch.notes(report))


def _operated_joints(plan: Plan) -> tuple[str, ...]:
    """Return the joints that the plan moves and that belong to no arm, such as those of drawers."""
    own = {joint for robot in plan.robots for joint in robot.joints}
    segments = [segment for step in plan.steps for segment in step.segments]
    return tuple(
        dict.fromkeys(joint for part in segments for joint in part.joint_names if joint not in own)
    )


def _joint_errors(plan: Plan, q: NDArray[np.float64]) -> dict[str, JointError]:
    """Compare the joints that the plan moves by their handles with where it leaves them."""
    names = plan.scene.joint_names
    errors = {}
    for joint in _operated_joints(plan):
        entry = names.index(joint)
        slides = plan.scene.joint(plan.scene.joint_frame(joint)).type == "prismatic"
        errors[joint] = JointError(float(plan.final_q[entry]), float(q[entry]), is_prismatic=slides)
    return errors
