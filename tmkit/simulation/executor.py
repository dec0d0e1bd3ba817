"""Executor of plans in a simulation, one motion after the other, for closed loops without a robot.

Before each grasp and release, the arm waits until the fingers are at rest. Fingers that hold an
object are commanded to close fully, with the robot's grip force. The plan's finger positions are
those of the first contact, which exerts no force. One of several arms moves at a time, and the
others keep their objects.

The monitor (:mod:`tmkit.simulation.plan_monitor`) runs 60 times a simulated second. It records
deviations of carried objects and unplanned contacts. All results depend on simulated time only.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tmkit.errors import SimulationError
from tmkit.motion.timing import time_path
from tmkit.plans.execution import Executor
from tmkit.plans.values import Plan
from tmkit.simulation.arm_controller import ArmController
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.plan_monitor import PlanMonitor

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.plans import PlanStep, Segment
    from tmkit.plans.execution import TimedMotion
    from tmkit.robots import Manipulator

_logger = logging.getLogger(__name__)

_MONITOR_FREQUENCY = 60.0
"""Frequency of the monitor in simulated time [Hz]."""

_FINGER_TIME_LIMIT = 3.0
"""Simulated time after which the executor continues although the fingers still move [s]."""

_FINGER_REST_SPEED = 0.0005
"""Speed below which fingers are at rest [m/s or rad/s]."""

PAUSE = 0.1
"""Time for a hand and its object to settle [s]."""

_OBJECT_REST_SPEED = 0.002
"""Speed below which an object is at rest [m/s]."""

_START_TOLERANCE = 1e-9
"""Largest joint difference between an arm and the start of its path [rad or m]."""


class SimulatedExecutor(Executor):
    """An :class:`~tmkit.plans.Executor` of plans in one simulation.

    The next plan starts with the current joint positions and held objects.

    Args:
        simulation: simulation with the arms of the plans (``robot=``), and with the joints of
            drawers and doors that plans move as ``passive=``.
        on_state: callback with the current scene and its configuration (n_joints,), called 30 times
            a simulated second.
    """

    _by_constraint = False
    """Whether objects are fixed to the hand instead of held by contact."""

    def __init__(
        self,
        simulation: Simulation,
        *,
        on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None = None,
    ) -> None:
        self.simulation, self._on_state = simulation, on_state
        self._arms: dict[str, ArmController] = {}
        self._active_monitor: PlanMonitor | None = None
        self._monitor_period = max(
            1, round(1.0 / (_MONITOR_FREQUENCY * simulation.settings.time_step))
        )
        self._step_count = 0  # since the start of the plan

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) simulated joint positions [rad or m]."""
        return self.simulation.q

    @property
    def _monitor(self) -> PlanMonitor:
        """Monitor of the current plan.

        Raises:
            SimulationError: if no plan has begun.
        """
        if self._active_monitor is None:
            raise SimulationError("begin(plan) comes before the first step")
        return self._active_monitor

    def _make_monitor(self, plan: Plan) -> PlanMonitor:
        """Return the monitor of a plan."""
        return PlanMonitor(
            self.simulation, plan, position_tolerance=math.inf, rotation_tolerance=math.inf
        )

    def _report_phase(self, phase: str, step: int, action: str = "") -> None:
        """Report the start of a phase or step."""

    def _finish_time_step(self) -> None:
        """Run after each time step. Overridden by executors with films or progress."""

    def begin(self, plan: Plan) -> None:
        """Attach the objects that the arms hold, and let all bodies settle."""
        if not self._arms:  # A later plan starts with the current commands.
            self._q = np.array(plan.q, dtype=float)  # commanded
            self._arms = {
                robot.name: ArmController(
                    self.simulation, plan.scene, robot, q=self._q, by_constraint=self._by_constraint
                )
                for robot in plan.robots
            }
        self._plan, self._active_monitor, self._step_count = plan, self._make_monitor(plan), 0
        for arm in self._arms.values():  # Release objects that the hand has lost.
            if arm.holding is not None and plan.scene.parent(arm.holding) != arm.robot.tip:
                arm.release(arm.holding)
        self._attach_held_objects()
        self._stand(PAUSE)
        self._monitor.check_start()

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Report the step, and disable contacts of suction cups with the objects of the step."""
        self._monitor.enter_step(number, step)
        _logger.info("step %d of %d: %s", number, len(self._plan.steps), step.action)
        self._report_phase("simulate", number - 1, str(step.action))
        for arm in self._arms.values():
            segments = [part for part in step.segments if part.arm == arm.robot.name]
            arm.soften_contacts([part.held for part in segments if part.held is not None])

    def follow(self, motion: TimedMotion) -> None:
        """Move an arm along a timed path."""
        self._monitor.enter_segment(motion.segment)
        arm, segment = self._arms[motion.arm.name], motion.segment
        positions = motion.timed.positions[:, : len(arm.entries)]
        self._approach_start(arm, positions[0])
        if arm.holding is None and any(
            arm.finger_goal[name] != value for name, value in segment.gripper.items()
        ):
            arm.set_finger_goals(segment.gripper)  # The plan has them along the whole path.
            self._wait_for_fingers(arm)
        for position in positions[1:]:
            self._run_time_step((arm, position))
        if segment.kind not in ("grasp", "release"):
            arm.set_finger_goals(segment.gripper if arm.holding is None else {})

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Close a hand on an object or a handle."""
        self._monitor.enter_segment(segment)
        controller, name = self._arms[arm.name], segment.held
        self._approach_start(controller, np.asarray(segment.path, dtype=float)[-1])
        controller.set_finger_goals(arm.gripper_closed)
        self._wait_for_fingers(controller)
        if name is not None:
            fault = controller.take(name)
            self._monitor.record_grasp(
                name, segment, by_constraint=self._by_constraint or controller.cup is not None
            )
            if fault is not None:
                self._monitor.add_note(fault)
        self._stand(PAUSE)

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Open a hand."""
        self._monitor.enter_segment(segment)
        controller = self._arms[arm.name]
        self._approach_start(controller, np.asarray(segment.path, dtype=float)[-1])
        self._stand(PAUSE)
        name = segment.held or controller.holding
        if name is not None:
            self._monitor.record_release(name, arm)
            controller.release(name)
        controller.set_finger_goals(segment.gripper or arm.gripper_open)
        self._wait_for_fingers(controller)
        self._stand(PAUSE)

    def end_step(self, number: int, step: PlanStep) -> None:
        """Compare the simulation with the step's scene."""
        del number, step
        self._monitor.leave_step()

    def finish(self) -> None:
        """Simulate until all bodies rest, for ``settle_time`` to ``settle_limit``."""
        self._monitor.leave_plan()
        self._report_phase("settle", len(self._plan.steps))
        settings = self.simulation.settings
        self._stand(settings.settle_time)
        elapsed = settings.settle_time
        while elapsed < settings.settle_limit and any(
            self.simulation.speed(name) > _OBJECT_REST_SPEED for name in self.simulation.objects
        ):
            self._stand(PAUSE)
            elapsed += PAUSE

    def _attach_held_objects(self) -> None:
        """Fix the objects that arms hold at the start of the plan, whose grasps are unknown."""
        scene = self._plan.scene
        for name in objects_in_scene(self.simulation, scene):
            parent = scene.parent(name)
            for robot in self._plan.robots:
                is_held = parent is not None and robot.tip in (parent, *scene.ancestors(parent))
                if is_held and self._arms[robot.name].holding != name:
                    self.simulation.attach(name, robot.tip)

    def _approach_start(self, arm: ArmController, start: NDArray[np.float64]) -> None:
        """Move in a straight line to the start (n_arm,) of a path, if the arm is elsewhere."""
        position = arm.position
        if np.max(np.abs(start - position), initial=0.0) < _START_TOLERANCE:
            return
        rate = 1.0 / self.simulation.settings.time_step
        path = np.stack([position, start])
        timed = time_path(path, arm.speeds, acceleration_limits=arm.accelerations, rate=rate)
        for position in timed.positions[1:]:
            self._run_time_step((arm, position))

    def _wait_for_fingers(self, arm: ArmController) -> None:
        """Stand until the fingers are at rest, at their goal or at an obstacle."""
        if not arm.robot.gripper_joints:
            return
        previous = arm.fingers()
        for _ in range(round(_FINGER_TIME_LIMIT / PAUSE)):
            self._stand(PAUSE)
            fingers = arm.fingers()
            if np.max(np.abs(fingers - previous)) < _FINGER_REST_SPEED * PAUSE:
                return
            previous = fingers

    def _stand(self, seconds: float) -> None:
        """Run time steps in which no arm moves."""
        for _ in range(round(seconds / self.simulation.settings.time_step)):
            self._run_time_step()

    def _run_time_step(self, *moves: tuple[ArmController, NDArray[np.float64]]) -> None:
        """Run one time step, in which some arms move to joint positions (n_arm,)."""
        simulation = self.simulation
        period = simulation.settings.time_step
        velocity = np.zeros_like(self._q)
        for arm, position in moves:
            velocity[arm.entries] = (position - self._q[arm.entries]) / period
        simulation.command(self._q, velocity)
        for controller in self._arms.values():
            controller.command_fingers()
        simulation.step()
        for controller in self._arms.values():
            fault = None if controller.cup is None else controller.cup.check_load()
            if fault is not None:
                self._monitor.add_note(fault)
        for arm, position in moves:
            self._q[arm.entries] = position
        self._step_count += 1
        if self._step_count % self._monitor_period == 0:
            self._update_monitor()
        if self._on_state is not None and self._step_count % (2 * self._monitor_period) == 0:
            self._on_state(simulation.current_scene(), simulation.q)
        self._finish_time_step()

    def _update_monitor(self) -> None:
        """Renew contacts, and check carried objects, contacts and tracking errors."""
        for controller in self._arms.values():
            controller.renew_contacts()
        joints = self.simulation.q
        errors = [controller.observe(joints) for controller in self._arms.values()]
        self._monitor.update(*max(errors, key=lambda error: error[1]))


def objects_in_scene(simulation: Simulation, scene: SceneGraph) -> list[str]:
    """Return the simulated objects in a scene. The scene of a closed loop may lack some."""
    return [name for name in simulation.objects if name in scene]
