"""Executing a plan under physics: docs/concepts/simulation.md.

:func:`simulate` builds the simulation, executes the plan in it (:mod:`tmkit.simulation.executor`), draws film and
picture, and compares the outcome with the plan. In a plan with a schedule the arms move as that says, and hands have
the time that it gives them.
"""

from __future__ import annotations

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
from tmkit.errors import SimulationError, UnknownNameError
from tmkit.manipulation.concave_objects import with_shapes_of
from tmkit.plans.execution import execute
from tmkit.plans.values import Plan
from tmkit.simulation.arm_player import ArmPlayer
from tmkit.simulation.camera import Camera
from tmkit.simulation.engines.pybullet.registration import PYBULLET
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.engines.registry import ENGINES
from tmkit.simulation.executor import PAUSE, SimulatedExecutor, known_objects
from tmkit.simulation.pictures.playback import fit_camera_to_plan
from tmkit.simulation.pictures.recording import FRAMES_PER_SECOND, Film, captioned, check_output, write_picture
from tmkit.simulation.rendering.studio import Renderer, chosen_renderer, open_studio, render
from tmkit.simulation.report import JointError, ObjectError, SimulationProgress, SimulationReport
from tmkit.simulation.settings import PhysicsSettings
from tmkit.simulation.watching import Watch

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.plans import Schedule
    from tmkit.plans.schedule import Phase

_GRASPS = ("contact", "constraint")
_FILM_SIZE = (480, 360)
_FILM_SUPERSAMPLING = 1.5
_TOLD_EVERY = 0.25  # seconds of simulated time between two reports of progress


def simulate(
    plan: Plan,
    *,
    gui: bool = False,
    record: str | Path | None = None,
    picture: str | Path | None = None,
    camera: Camera | None = None,
    grasp: Literal["contact", "constraint"] = "contact",
    position_tolerance: float = 0.015,
    rotation_tolerance: float = math.radians(5.0),
    settings: PhysicsSettings | None = None,
    world: SceneGraph | None = None,
    renderer: Renderer = "auto",
    captions: bool = False,
    on_progress: Callable[[SimulationProgress], None] | None = None,
    on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None = None,
    engine: str = PYBULLET.name,
) -> SimulationReport:
    """Execute a plan in a physics simulation and compare the outcome with the plan.

    Args:
        plan: the plan.
        gui: open pybullet's window and run in real time.
        record: where to write a film at twice the simulated speed (``.gif`` or ``.webp``; ``.mp4`` with the extra
            ``pictures``).
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
        engine: the physics: ``pybullet``, ``mujoco`` with the extra ``engines``, or that of a plug-in.

    Returns:
        The report. The same plan and arguments give the same report, to the last bit.

    Raises:
        SimulationError: the scene cannot be simulated, or an argument is none of those that are known.
        OutputError: film or picture cannot be written; raised before the simulation starts.
        MissingExtraError: an MP4 is wanted without the extra ``pictures``, or the renderer or the engine is not there.
    """
    check_argument(plan, Plan, "plan", function="simulate", hint=plan_hint(plan))
    if grasp not in _GRASPS:
        raise SimulationError(f"grasp must be 'contact' or 'constraint', not {grasp!r}")
    check_argument(engine, str, "engine", function="simulate", hint=f"give a name, as '{PYBULLET.name}'")
    try:
        ENGINES.find(engine)
    except UnknownNameError as error:
        raise SimulationError(str(error)) from None
    for name, value in (("position_tolerance", position_tolerance), ("rotation_tolerance", rotation_tolerance)):
        if not value >= 0.0:
            raise SimulationError(f"{name} must not be negative, but is {value}")
    world = None if world is None else with_shapes_of(world, plan.scene)
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
        ENGINES.make(
            engine,
            plan.scene if world is None else world,
            plan.q,
            keywords={"robot": plan.robots, "passive": _operated_joints(plan), "gui": gui, "settings": settings},
        ) as simulation,
    ):
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
            simulation,
            position_tolerance=position_tolerance,
            rotation_tolerance=rotation_tolerance,
            world=world,
            by_constraint=grasp == "constraint",
            film=film,
            studio=studio,
            real_time=gui,
            progress=progress,
            captions=captions,
            on_state=on_state,
        )
        execute(plan, execution, rate=1.0 / simulation.settings.time_step)
        if film is not None or picture is not None:
            progress("write", len(plan.steps), simulated=simulation.time)
        if film is not None:
            film.write()
        if picture is not None and view is not None:
            write_picture(picture, render(simulation, view, renderer=renderer))
        return execution.report()


class _Execution(SimulatedExecutor):
    """One plan being executed in one simulation, with film, progress and a report."""

    def __init__(
        self,
        simulation: Simulation,
        *,
        position_tolerance: float,
        rotation_tolerance: float,
        world: SceneGraph | None,
        by_constraint: bool,
        film: Film | None,
        studio: Any,
        real_time: bool,
        progress: Callable[..., None],
        captions: bool,
        on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None,
    ) -> None:
        super().__init__(simulation, on_state=on_state)
        self._tolerances = {"position_tolerance": position_tolerance, "rotation_tolerance": rotation_tolerance}
        self._world, self._by_constraint, self._real_time = world, by_constraint, real_time
        self._film, self._studio, self._captions = film, studio, captions
        self._progress = progress
        self._now: tuple[str, int, str] = ("settle", 0, "")
        self._tell_every = max(1, round(_TOLD_EVERY / simulation.settings.time_step))
        self._frames_taken = 0

    def _watch_over(self, plan: Plan) -> Watch:
        return Watch(self.simulation, plan, **self._tolerances, world=self._world)

    def _tell(self, phase: str, step: int, action: str = "") -> None:
        self._now = (phase, step, action)
        self._progress(*self._now, simulated=self.simulation.time)

    def _ticked(self) -> None:
        if self._ticks % self._tell_every == 0:
            self._progress(*self._now, simulated=self.simulation.time)
        is_due = self.simulation.time * FRAMES_PER_SECOND >= self._frames_taken
        if self._film is not None and self._studio is not None and is_due:
            self._frames_taken += 1
            self._film.add(captioned(self._studio.picture(), self._now[2] if self._captions else ""))
        if self._real_time and self._ticks % self._watch_every == 0:
            time.sleep(self._watch_every * self.simulation.settings.time_step)

    def follow_schedule(self, schedule: Schedule) -> None:
        """Move all arms as a schedule has them."""
        period, arms = self.simulation.settings.time_step, self._arms
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
            player.aim_fingers(arm.gripper_closed)

        def take() -> None:
            fault = player.take(str(name))
            self._watch.grasped(str(name), segment, by_constraint=self._by_constraint or player.cup is not None)
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
            **self._tolerances,
        )
        return replace(report, notes=self._watch.notes(report))


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
