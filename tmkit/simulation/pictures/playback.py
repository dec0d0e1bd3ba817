"""Films of plans without physics: the planned scene at each time.

The motions are timed as in an execution (:func:`tmkit.plans.execute`). A film therefore has the
same length as that of :func:`tmkit.simulation.simulate`. Held objects move with the hand as in the
plan. No physics engine is needed when the renderer is ``filament``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SimulationError
from tmkit.plans import Plan, Schedule, Segment, SegmentKind, execute
from tmkit.simulation.camera import Camera, fit_camera
from tmkit.simulation.pictures.recording import FRAMES_PER_SECOND, SPEED, Film, add_caption
from tmkit.simulation.rendering.studio import Renderer, StillScene, open_studio

if TYPE_CHECKING:
    from tmkit.plans import PlanStep
    from tmkit.plans.execution import TimedMotion
    from tmkit.robots import Manipulator

_VISIBILITY_SAMPLES = 6
"""Number of states of a plan for which hidden points are counted."""

_HAND_FRAMES = 3
"""Number of frames in which a hand closes or opens."""


class _Studio(Protocol):
    """Renderer of a scene from one view."""

    def picture(self) -> NDArray[np.uint8]:
        """Return a picture (height, width, 3) of the current state of the scene."""


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
    """Write a film of a plan without physics, and return its path.

    Args:
        plan: the plan.
        path: path of a ``.gif`` or ``.webp`` file, or an ``.mp4`` with the extra ``pictures``.
        camera: camera. Defaults to a view of 640 by 480 pixels that shows all poses of the arms.
        captions: whether the film shows the current action.
        speed: planned time that the film shows in one second [s].
        supersampling: ratio of the size of drawn frames to that of the film.
        renderer: ``filament``, ``tiny``, or ``auto`` for the better one that is installed.

    Raises:
        SimulationError: if ``speed`` is not positive, or an argument of the renderer is invalid.
        OutputError: if the film cannot be written. Raised before the first frame is drawn.
        MissingExtraError: if an MP4 film or the renderer needs an extra that is not installed.
    """
    if not 0.0 < speed < float("inf"):
        raise SimulationError(f"speed must be a positive number, got {speed}")
    film, still = Film(path), StillScene(plan.scene, plan.q)
    view = fit_camera_to_plan(plan) if camera is None else camera
    with open_studio(still, view, supersampling=supersampling, renderer=renderer) as studio:
        rate = FRAMES_PER_SECOND * SPEED / speed
        recorder = _FilmRecorder(plan, still, film, studio, captions=captions, rate=rate)
        execute(plan, recorder, rate=rate)
    return film.write()


def fit_camera_to_plan(plan: Plan, *, width: int = 640, height: int = 480) -> Camera:
    """Return a view for a film, with all poses of the arms in view and few points hidden.

    Args:
        plan: the plan.
        width: width of the picture [pixels].
        height: height of the picture [pixels].
    """
    steps = plan.steps[:: max(1, len(plan.steps) // _VISIBILITY_SAMPLES)]
    later = [StillScene(step.scene, step.q) for step in steps]
    still = StillScene(plan.scene, plan.q)
    return fit_camera(still, include=_arm_points(plan), later=later, width=width, height=height)


class _FilmRecorder:
    """Executor that draws the frames of a film."""

    def __init__(
        self,
        plan: Plan,
        still: StillScene,
        film: Film,
        studio: _Studio,
        *,
        captions: bool,
        rate: float,
    ) -> None:
        self._rate = rate
        self._still = still
        self._film = film
        self._studio = studio
        self._captions = captions
        self._scene, self._q, self._caption = plan.scene, np.array(plan.q, dtype=float), ""

    def begin(self, plan: Plan) -> None:
        """Draw the start."""
        del plan
        self._add_frame()

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Show the action in the caption."""
        del number
        self._caption = str(step.action) if self._captions else ""

    def follow(self, motion: TimedMotion) -> None:
        """Draw each sample of a motion."""
        scene, segment = self._scene, motion.segment
        # A pushed object moves with the hand.
        if segment.kind is SegmentKind.PUSH and segment.held is not None:
            scene = scene.reparent(segment.held, motion.arm.tip, q=self._q)
        entries = [scene.joint_names.index(name) for name in motion.joint_names]
        for sample in motion.timed.positions[1:]:
            self._q[entries] = sample
            self._still.move(scene, self._q)
            self._add_frame()
        if segment.kind not in (SegmentKind.GRASP, SegmentKind.RELEASE):
            self._finish_segment(segment)
            # An arm that does not stop at the end of a segment leaves the path before its last row.
            self._q[entries] = motion.timed.positions[-1]

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Draw the closing or opening of a hand."""
        del arm
        q_start = self._q
        q_end = segment.end(self._scene, q_start)[1]
        for fraction in np.arange(1, _HAND_FRAMES + 1) / _HAND_FRAMES:
            self._still.move(self._scene, q_start + fraction * (q_end - q_start))
            self._add_frame()
        self._finish_segment(segment)

    release = grasp

    def follow_schedule(self, schedule: Schedule, *, rate: float) -> None:  # noqa: ARG002
        """Draw all arms during a schedule."""
        begins = sorted(
            (begin, str(step.action))
            for (begin, _), step in zip(schedule.step_times(), schedule.plan.steps, strict=True)
        )
        for moment in schedule.moments():
            first = math.ceil(moment.begin * self._rate - 1e-9)
            last = math.ceil(moment.end * self._rate - 1e-9)
            actions = [action for begin, action in begins if begin <= moment.begin + 1e-9]
            for q in schedule.q(np.arange(first, last) / self._rate):
                self._caption = actions[-1]
                self._scene, self._q = moment.scene, q
                self._still.move(moment.scene, q)
                self._add_frame()

    def end_step(self, number: int, step: PlanStep) -> None:
        """Continue from the scene at the end of the step."""
        del number
        self._scene = step.scene
        self._still.move(self._scene, self._q)

    def finish(self) -> None:
        """Draw the end."""
        self._add_frame()

    def _finish_segment(self, segment: Segment) -> None:
        """Apply the changes at the end of a segment."""
        scene, q = segment.end(self._scene, self._q)
        self._scene, self._q = scene, np.array(q, dtype=float)

    def _add_frame(self) -> None:
        """Draw the current state."""
        self._film.add(add_caption(self._studio.picture(), self._caption))


def _arm_points(plan: Plan) -> NDArray[np.float64]:
    """Return positions (n, 3) of the arms' links and tools after each step [m]."""
    frames = [plan.scene.joint_frame(joint) for robot in plan.robots for joint in robot.joints]
    frames += [robot.tool for robot in plan.robots]
    points = []
    for step in plan.steps:
        state = step.scene.at(step.q)
        points += [state.pose(frame).translation for frame in frames]
    return np.reshape(np.array(points, dtype=float), (-1, 3))
