"""Films of plans without physics: the scene is put where the plan has it, moment by moment.

The motions are timed as in an execution (:func:`tmkit.plans.execute`), so a film lasts as long as
that of :func:`tmkit.simulation.simulate`, and what the hand holds moves with it as in the plan. It
needs no physics engine when the renderer is ``filament``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tmkit.errors import SimulationError
from tmkit.plans import Plan, Schedule, Segment, SegmentKind, execute
from tmkit.simulation.camera import Camera, fit_camera
from tmkit.simulation.pictures.recording import FRAMES_PER_SECOND, SPEED, Film, captioned
from tmkit.simulation.rendering.studio import Renderer, StillScene, open_studio

if TYPE_CHECKING:
    from tmkit.plans import PlanStep
    from tmkit.plans.execution import TimedMotion
    from tmkit.robots import Manipulator

_MOMENTS = 6  # of a plan at which is looked what is hidden
_PAUSE = 3  # frames for a hand to close or open


def record_plan(
    plan: Plan,
    path: str | Path,
    *,
    camera: Camera | None = None,
    captions: bool = True,
    speed: float = SPEED,
    supersampling: float = 1.0,
    renderer: Renderer = "auto",
) -> Path:
    """Write a film of a plan as it is planned; return its path.

    Args:
        plan: the plan.
        path: a ``.gif`` or ``.webp``, or an ``.mp4`` with the extra ``pictures``.
        camera: the camera; by default one that shows all places the plan goes to, 640 by 480
            pixels.
        captions: whether each action is named while it is carried out.
        speed: planned seconds that the film shows in one second.
        supersampling: how many times larger frames are drawn before they are reduced.
        renderer: ``filament``, ``tiny``, or the better that is there.

    Raises:
        SimulationError: a speed that is not positive, or an argument of the renderer.
        OutputError: the film cannot be written; raised before anything is drawn.
        MissingExtraError: an MP4 is wanted without the extra ``pictures``, or the renderer is not
            there.
    """
    if not 0.0 < speed < float("inf"):
        raise SimulationError(f"speed must be a positive number, not {speed}")
    film, still = Film(path), StillScene(plan.scene, plan.q)
    view = fit_camera_to_plan(plan) if camera is None else camera
    with open_studio(still, view, supersampling=supersampling, renderer=renderer) as studio:
        rate = FRAMES_PER_SECOND * SPEED / speed
        execute(plan, _Player(plan, still, film, studio, captions=captions, rate=rate), rate=rate)
    return film.write()


def fit_camera_to_plan(plan: Plan, *, width: int = 640, height: int = 480) -> Camera:
    """Return a view for a film that shows all places a plan goes to, and hides as little as possible on the way.

    Args:
        plan: the plan.
        width: pixels.
        height: pixels.
    """
    steps = plan.steps[:: max(1, len(plan.steps) // _MOMENTS)]
    moments = [StillScene(step.scene, step.q) for step in steps]
    still = StillScene(plan.scene, plan.q)
    return fit_camera(still, include=_places(plan), later=moments, width=width, height=height)


class _Player:
    """Takes the frames: an executor."""

    def __init__(
        self, plan: Plan, still: StillScene, film: Film, studio: Any, *, captions: bool, rate: float
    ) -> None:
        self._rate = rate
        self._still, self._film, self._studio, self._captions = still, film, studio, captions
        self._scene, self._q, self._caption = plan.scene, np.array(plan.q, dtype=float), ""

    def begin(self, plan: Plan) -> None:
        """Show the start."""
        del plan
        self._frame()

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Name the action."""
        del number
        self._caption = str(step.action) if self._captions else ""

    def follow(self, motion: TimedMotion) -> None:
        """Show each sample of a motion."""
        scene, segment = self._scene, motion.segment
        # it moves with the hand meanwhile
        if segment.kind is SegmentKind.PUSH and segment.held is not None:
            scene = scene.reparent(segment.held, motion.arm.tip, q=self._q)
        entries = [scene.joint_names.index(name) for name in motion.joint_names]
        for sample in motion.timed.positions[1:]:
            self._q[entries] = sample
            self._still.move(scene, self._q)
            self._frame()
        if segment.kind not in (SegmentKind.GRASP, SegmentKind.RELEASE):
            self._end(segment)
            # which need not be at rest where the segment ends
            self._q[entries] = motion.timed.positions[-1]

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Close or open the hand."""
        del arm
        before = self._q
        after = segment.end(self._scene, before)[1]
        for share in np.arange(1, _PAUSE + 1) / _PAUSE:
            self._still.move(self._scene, before + share * (after - before))
            self._frame()
        self._end(segment)

    release = grasp

    def follow_schedule(self, schedule: Schedule) -> None:
        """Show all arms as a schedule moves them."""
        begins = sorted(
            (begin, str(step.action))
            for (begin, _), step in zip(schedule.step_times(), schedule.plan.steps, strict=True)
        )
        for moment in schedule.moments():
            first, last = (math.ceil(at * self._rate - 1e-9) for at in (moment.begin, moment.end))
            for q in schedule.q(np.arange(first, last) / self._rate):
                self._caption = [
                    action for begin, action in begins if begin <= moment.begin + 1e-9
                ][-1]
                self._scene, self._q = moment.scene, q
                self._still.move(moment.scene, q)
                self._frame()

    def end_step(self, number: int, step: PlanStep) -> None:
        """Go on from where the step ends."""
        del number
        self._scene = step.scene
        self._still.move(self._scene, self._q)

    def finish(self) -> None:
        """Show the end."""
        self._frame()

    def _end(self, segment: Segment) -> None:
        scene, q = segment.end(self._scene, self._q)
        self._scene, self._q = scene, np.array(q, dtype=float)

    def _frame(self) -> None:
        self._film.add(captioned(self._studio.picture(), self._caption))


def _places(plan: Plan) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the points (n, 3) to which a plan takes the arms' links and their tools, after each step."""
    frames = [plan.scene.joint_frame(joint) for robot in plan.robots for joint in robot.joints]
    frames += [robot.tool for robot in plan.robots]
    points = []
    for step in plan.steps:
        at = step.scene.at(step.q)
        points += [at.pose(frame).translation for frame in frames]
    return np.reshape(np.array(points, dtype=float), (-1, 3))
