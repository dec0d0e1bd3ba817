"""Episodes of KinDER's environments: observe, plan, act, and again where an action is refused.

The environment's own ``terminated`` judges. An action is refused if the robot is not at its target
afterwards, or the hand does not hold, or still holds, an object after an event.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.kinder.families import FAMILIES
from benchmarks.kinder.robots import Robot
from benchmarks.kinder.worlds import Observation, Task
from numpy.typing import ArrayLike, NDArray

import tmkit as tk
from tmkit.errors import TmkitError
from tmkit.plans import BoundedAction, Plan, SegmentKind, bounded_actions

_ANY_CHANGE = 10.0
"""Largest change per action of joints that the environment lacks [rad or m]."""


@dataclass(frozen=True)
class Outcome:
    """Result of an episode.

    Attributes:
        environment: name of the environment.
        seed: seed of the episode.
        is_solved: whether the environment terminated.
        actions: number of actions.
        seconds: processor time of planning [s].
        plans: number of plans.
        cause: reason of a failure, or of further plans.
        planner: ``tmkit`` or ``bilevel``.
        version: commit of the planner.
        date: day of the episode.
    """

    environment: str
    seed: int
    is_solved: bool
    actions: int
    seconds: float
    plans: int
    cause: str
    planner: str = "tmkit"
    version: str = ""
    date: str = ""


class Episode:
    """One episode of an environment.

    Args:
        environment: name as ``Obstruction3D-o2``.
        seed: seed of the episode.
        robot: the robot.
        time_limit: time limit of one plan [s].
        max_plans: number of plans after which the episode fails.
    """

    def __init__(
        self,
        environment: str,
        seed: int,
        robot: Robot,
        *,
        time_limit: float = 120.0,
        max_plans: int = 4,
    ) -> None:
        import kinder

        # Backgrounds of 1 GB, which these environments do not show.
        os.environ.setdefault("DISABLE_AUTO_DYNAMIC3D_SCENES_DOWNLOAD", "1")
        self.environment, self.seed = environment, seed
        self.time_limit, self.max_plans = time_limit, max_plans
        self.family = FAMILIES[environment.split("-")[0]]
        self.env: Any = kinder.make(f"kinder/{environment}-v0")
        self.config = self.family.configuration(environment)
        vector, _ = self.env.reset(seed=seed)
        self.observation = self._observe(vector)
        self.robot = robot.at_home(self.observation)
        self.hand_values = self._open_hands()
        self.actions, self.seconds, self.plans = 0, 0.0, 0
        self.is_solved = False

    def run(self) -> Outcome:
        """Plan and act until the environment terminates or the plans are used up."""
        cause = ""
        while not self.is_solved and self.plans < self.max_plans:
            start = time.process_time()
            try:
                plan, reason = self._plan()
            except TmkitError as error:
                plan, reason = None, f"{type(error).__name__}: {error}"
            self.seconds += time.process_time() - start
            if plan is None:
                cause = f"{cause}; {reason}" if cause else reason
                break
            refused = self._execute(plan)
            if not self.is_solved:
                cause = "; ".join(filter(None, [cause, refused or "no termination at the end"]))
                if not refused and not plan.steps:
                    break
        self.env.close()
        return Outcome(
            self.environment,
            self.seed,
            self.is_solved,
            self.actions,
            self.seconds,
            self.plans,
            " ".join(cause.split()),
        )

    def task(self) -> Task:
        """Return the task of the last observation."""
        return self.family.make(self.observation, self.robot, self.config)

    def _plan(self) -> tuple[Plan | None, str]:
        """Return a plan from the last observation, or the reason why there is none."""
        self.plans += 1
        for arm, hand in self.robot.hands.items():
            if hand.is_sustained and not self.robot.is_holding(self.observation, arm):
                self.hand_values[hand.column] = hand.opening
        task = self.task()
        result = tk.plan(
            task.scene,
            task.q,
            domain=task.domain,
            goal=task.goal,
            robot=task.robots,
            options=tk.PlanningOptions(
                seed=self.plans - 1,
                time_limit=self.time_limit,
                start_floating=max(0.02, self.family.place_gap + 0.005),
            ),
        )
        return result.plan, f"{result.status}: {result.explanation}"

    def _execute(self, plan: Plan) -> str:
        """Send the actions of a plan, and return the refused one, if any."""
        high = np.asarray(self.env.action_space.high, dtype=float)
        parts = {
            name: part
            for name, part in self.robot.parts.items()
            if part.joints[0] in plan.scene.joint_names
        }
        groups = {name: part.joints for name, part in parts.items()}
        limits = {
            name: _ANY_CHANGE if part.columns is None else high[part.columns]
            for name, part in parts.items()
        }
        for action in bounded_actions(
            plan, groups=groups, limits=limits, place_gap=self.family.place_gap
        ):
            refusal = self._send(action)
            if self.is_solved or refusal:
                return refusal
        return ""

    def _send(self, action: BoundedAction) -> str:
        """Send one action, and return why it is refused, or an empty text."""
        values = np.zeros(self.env.action_space.shape, dtype=np.float32)
        if action.is_event:
            is_grasp = action.segment.kind is SegmentKind.GRASP
            hand = self.robot.hands[action.segment.arm]
            values[hand.column] = hand.closing if is_grasp else hand.opening
            if hand.is_sustained:
                # Two hands that both ask for an object pass it to and fro.
                self.hand_values = {**self._open_hands(), hand.column: values[hand.column]}
            for _ in range(self.family.repeats):
                self._step(values)
            if self.robot.is_holding(self.observation, action.segment.arm) != is_grasp:
                return f"step {action.step}: {action.segment.kind} of {action.segment.held} refused"
            return ""
        columns = {name: self.robot.parts[name].columns for name in action.targets}
        if not any(columns.values()):
            return ""
        for _ in range(self.family.repeats):
            for name, delta in action.delta_from(self._observed(action)).items():
                if columns[name]:
                    values[columns[name]] = delta
            self._step(values)
            if self.is_solved:
                return ""
            errors = action.delta_from(self._observed(action))
            error = max(float(np.abs(delta).max()) for delta in errors.values())
            if error <= self.family.tolerance:
                return ""
        return f"step {action.step}: {action.segment.kind} refused, error {error:.3f}"

    def _open_hands(self) -> dict[int, float]:
        """Return the values that keep hands open, by column."""
        hands = self.robot.hands.values()
        return {hand.column: hand.opening for hand in hands if hand.is_sustained}

    def _observed(self, action: BoundedAction) -> dict[str, ArrayLike]:
        """Return the joint values of each part of an action; those not observed as commanded."""
        values = self.robot.joint_values(self.observation)
        return {
            name: target
            if self.robot.parts[name].columns is None
            else [values[joint] for joint in self.robot.parts[name].joints]
            for name, target in action.targets.items()
        }

    def _step(self, values: NDArray[np.float32]) -> None:
        for column, value in self.hand_values.items():
            values[column] = value
        vector, _, terminated, _, _ = self.env.step(values)
        self.observation = self._observe(vector)
        self.actions += 1
        self.is_solved = bool(terminated)

    def _observe(self, vector: NDArray[np.float32]) -> Observation:
        return Observation(self.env.observation_space.devectorize(vector))
