"""Plans executed in a simulation, one motion after the other: what a closed loop acts on where there is no robot.

In front of each grasp and release the arm stands still until the fingers do. A finger that holds
something is told to close all the way, with the robot's grip force. The plan's finger values while
holding say where the fingers meet the object, and so would press on it with no force at all. Of
several arms one moves at a time, and the others hold what they hold.

Sixty times a simulated second, how far a carried object is from where the plan has it in the hand,
and what the arm touches besides, become notes. Everything depends on simulated time alone, never on
a clock.
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
from tmkit.simulation.arm_player import ArmPlayer
from tmkit.simulation.engines.pybullet.world import Simulation
from tmkit.simulation.watching import Watch

if TYPE_CHECKING:
    from tmkit.graph import SceneGraph
    from tmkit.plans import PlanStep, Segment
    from tmkit.plans.execution import TimedMotion
    from tmkit.robots import Manipulator

_logger = logging.getLogger(__name__)

_WATCHES_PER_SECOND = 60.0
_FINGER_TIME_LIMIT = 3.0  # seconds after which fingers that still move are taken as they are
_FINGER_REST = 0.0005  # metres or radians a second below which fingers stand still
PAUSE = 0.1
"""Seconds for a hand and what it holds to settle."""
_AT_REST = 0.002  # metres a second below which an object lies still


class SimulatedExecutor(Executor):
    """Executes plans, one after the other, in one simulation.

    An :class:`~tmkit.plans.Executor`. The next plan goes on with the arms where they are and what
    they hold.

    Args:
        simulation: built with the arms of the plans (``robot=``), and with the joints of drawers
            and doors that plans move as ``passive=``.
        on_state: called with the scene as it is and its configuration (n_joints,), thirty times a
            simulated second.
    """

    _by_constraint = False  # whether objects are fixed to the hand

    def __init__(
        self,
        simulation: Simulation,
        *,
        on_state: Callable[[SceneGraph, NDArray[np.float64]], None] | None = None,
    ) -> None:
        self.simulation, self._on_state = simulation, on_state
        self._arms: dict[str, ArmPlayer] = {}
        self._begun: Watch | None = None
        self._watch_every = max(
            1, round(1.0 / (_WATCHES_PER_SECOND * simulation.settings.time_step))
        )
        self._ticks = 0  # since the plan began

    @property
    def q(self) -> NDArray[np.float64]:
        """(n_joints,) where the joints are, radians or metres."""
        return self.simulation.q

    @property
    def _watch(self) -> Watch:
        if self._begun is None:
            raise SimulationError("begin(plan) comes before the first step")
        return self._begun

    def _watch_over(self, plan: Plan) -> Watch:
        """Return the watch over a plan."""
        return Watch(
            self.simulation, plan, position_tolerance=math.inf, rotation_tolerance=math.inf
        )

    def _tell(self, phase: str, step: int, action: str = "") -> None:
        """Report a phase and a step as begun."""

    def _ticked(self) -> None:
        """Do what is to be done after each time step."""

    def begin(self, plan: Plan) -> None:
        """Take over what the arms hold, and let everything settle."""
        if not self._arms:  # else the hands hold what they hold, and go on from where they are
            self._q = np.array(plan.q, dtype=float)  # commanded
            self._arms = {
                robot.name: ArmPlayer(
                    self.simulation, plan.scene, robot, q=self._q, by_constraint=self._by_constraint
                )
                for robot in plan.robots
            }
        self._plan, self._begun, self._ticks = plan, self._watch_over(plan), 0
        for arm in self._arms.values():  # a hand that has lost what it held lets go of it
            if arm.holding is not None and plan.scene.parent(arm.holding) != arm.manipulator.tip:
                arm.let_go(arm.holding)
        self._take_over_held_objects()
        self._stand(PAUSE)
        self._watch.note_start()

    def begin_step(self, number: int, step: PlanStep) -> None:
        """Tell of the step, and let suction cups touch what they handle in it."""
        self._watch.enter_step(number, step)
        _logger.info("step %d of %d: %s", number, len(self._plan.steps), step.action)
        self._tell("simulate", number - 1, str(step.action))
        for arm in self._arms.values():
            own = [part for part in step.segments if part.arm == arm.manipulator.name]
            arm.touch_softly([part.held for part in own if part.held is not None])

    def follow(self, motion: TimedMotion) -> None:
        """Move an arm along a timed path."""
        self._watch.enter(motion.segment)
        arm, segment = self._arms[motion.arm.name], motion.segment
        positions = motion.timed.positions[:, : len(arm.entries)]
        self._approach_start(arm, positions[0])
        if arm.holding is None and any(
            arm.finger_goal[name] != value for name, value in segment.gripper.items()
        ):
            arm.aim_fingers(segment.gripper)  # the plan has them there all along the path
            self._wait_for_fingers(arm)
        for following in positions[1:]:
            self._tick((arm, following))
        if segment.kind not in ("grasp", "release"):
            arm.aim_fingers(segment.gripper if arm.holding is None else {})

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Close a hand on an object or a handle."""
        self._watch.enter(segment)
        player, name = self._arms[arm.name], segment.held
        self._approach_start(player, np.asarray(segment.path, dtype=float)[-1])
        player.aim_fingers(arm.gripper_closed)
        self._wait_for_fingers(player)
        if name is not None:
            fault = player.take(name)
            self._watch.grasped(
                name, segment, by_constraint=self._by_constraint or player.cup is not None
            )
            if fault is not None:
                self._watch.note(fault)
        self._stand(PAUSE)

    def release(self, arm: Manipulator, segment: Segment) -> None:
        """Open a hand."""
        self._watch.enter(segment)
        player = self._arms[arm.name]
        self._approach_start(player, np.asarray(segment.path, dtype=float)[-1])
        self._stand(PAUSE)
        name = segment.held or player.holding
        if name is not None:
            self._watch.released(name, arm)
            player.let_go(name)
        player.aim_fingers(segment.gripper or arm.gripper_open)
        self._wait_for_fingers(player)
        self._stand(PAUSE)

    def end_step(self, number: int, step: PlanStep) -> None:
        """Compare the world with the step's scene."""
        del number, step
        self._watch.leave_step()

    def finish(self) -> None:
        """Let everything settle."""
        self._watch.leave_plan()
        self._tell("settle", len(self._plan.steps))
        settings = self.simulation.settings
        self._stand(settings.settle_time)
        waited = settings.settle_time
        while waited < settings.settle_limit and any(
            self.simulation.speed(name) > _AT_REST for name in self.simulation.objects
        ):
            self._stand(PAUSE)
            waited += PAUSE

    def _take_over_held_objects(self) -> None:
        """Fix what the arms hold before the plan starts: nothing is known of how it was grasped."""
        scene = self._plan.scene
        for name in known_objects(self.simulation, scene):
            parent = scene.parent(name)
            for robot in self._plan.robots:
                is_held = parent is not None and robot.tip in (parent, *scene.ancestors(parent))
                if is_held and self._arms[robot.name].holding != name:
                    self.simulation.attach(name, robot.tip)

    def _approach_start(self, arm: ArmPlayer, start: NDArray[np.float64]) -> None:
        """Go to the first point of a path in a straight line, if a plan leaves a gap before it."""
        here = arm.position
        if np.max(np.abs(start - here), initial=0.0) < 1e-9:
            return
        rate = 1.0 / self.simulation.settings.time_step
        path = np.stack([here, start])
        timed = time_path(path, arm.speeds, acceleration_limits=arm.accelerations, rate=rate)
        for following in timed.positions[1:]:
            self._tick((arm, following))

    def _wait_for_fingers(self, arm: ArmPlayer) -> None:
        """Stand until the fingers have reached their goal or are stopped by something."""
        if not arm.manipulator.gripper_joints:
            return
        before = arm.fingers()
        for _ in range(round(_FINGER_TIME_LIMIT / PAUSE)):
            self._stand(PAUSE)
            now = arm.fingers()
            if np.max(np.abs(now - before)) < _FINGER_REST * PAUSE:
                return
            before = now

    def _stand(self, seconds: float) -> None:
        for _ in range(round(seconds / self.simulation.settings.time_step)):
            self._tick()

    def _tick(self, *moves: tuple[ArmPlayer, NDArray[np.float64]]) -> None:
        """Let one time step pass, in which arms move on to values (n_arm,) of their joints, and others stand."""
        simulation = self.simulation
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
        if self._ticks % self._watch_every == 0:
            self._observe()
        if self._on_state is not None and self._ticks % (2 * self._watch_every) == 0:
            self._on_state(simulation.current_scene(), simulation.q)
        self._ticked()

    def _observe(self) -> None:
        for player in self._arms.values():
            player.renew_grip()
        joints = self.simulation.q
        behind = [player.observe(joints) for player in self._arms.values()]
        self._watch.look(*max(behind, key=lambda joint: joint[1]))


def known_objects(simulation: Simulation, scene: SceneGraph) -> list[str]:
    """Return the simulated objects that a scene has; that of a closed loop may lack some that it does not know of."""
    return [name for name in simulation.objects if name in scene]
