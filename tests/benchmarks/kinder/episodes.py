"""Episodes of KinDER's environments: observe, plan, act, and again where an action is refused.

The environment's own ``terminated`` judges. An action is refused if the robot is not at its target
afterwards, or the hand does not hold, or still holds, an object after an event.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.kinder.robots import ARM_JOINTS, TidyBot
from benchmarks.kinder.tasks import FAMILIES, Observation, Task
from numpy.typing import NDArray

import tmkit as tk
from tmkit.errors import TmkitError
from tmkit.plans import BoundedAction, Plan, SegmentKind, bounded_actions

_GROUPS = {"base": ("base/x", "base/y", "base/yaw"), "arm": ARM_JOINTS}
"""Joints of the parts of an action, by the name of the part."""

_COLUMNS = {"base": slice(0, 3), "arm": slice(3, 10)}
"""Columns of the parts in an action."""

_HAND = 10
"""Column of the hand in an action: below -0.5 it closes, above 0.5 it opens."""

_REACHED = 1e-3
"""Largest error of a joint after an action that was carried out [rad or m]."""


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
    """

    environment: str
    seed: int
    is_solved: bool
    actions: int
    seconds: float
    plans: int
    cause: str


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
        robot: TidyBot,
        *,
        time_limit: float = 120.0,
        max_plans: int = 4,
    ) -> None:
        import kinder

        self.environment, self.seed, self.robot = environment, seed, robot
        self.time_limit, self.max_plans = time_limit, max_plans
        self.family = FAMILIES[environment.split("-")[0]]
        self.env: Any = kinder.make(f"kinder/{environment}-v0")
        self.config = self.family.configuration()
        vector, _ = self.env.reset(seed=seed)
        self.observation = self._observe(vector)
        self.home = self.observation.arm
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
                if not refused:
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
        robot = TidyBot(self.robot.scene, self.robot.at_home(self.home), self.robot.chassis)
        return self.family.make(self.observation, robot, self.config)

    def _plan(self) -> tuple[Plan | None, str]:
        """Return a plan from the last observation, or the reason why there is none."""
        self.plans += 1
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
        names = plan.scene.joint_names
        groups = {name: joints for name, joints in _GROUPS.items() if joints[0] in names}
        limits = {name: high[_COLUMNS[name]] for name in groups}
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
            values[_HAND] = -1.0 if is_grasp else 1.0
            self._step(values)
            if self.observation.is_holding != is_grasp:
                return f"step {action.step}: {action.segment.kind} of {action.segment.held} refused"
            return ""
        for name, delta in action.delta_from(self._observed()).items():
            values[_COLUMNS[name]] = delta
        self._step(values)
        if self.is_solved:
            return ""
        errors = action.delta_from(self._observed())
        error = max(float(np.abs(delta).max()) for delta in errors.values())
        if error > _REACHED:
            return f"step {action.step}: {action.segment.kind} refused, error {error:.3f}"
        return ""

    def _observed(self) -> dict[str, list[float]]:
        return {"base": self.observation.base, "arm": self.observation.arm}

    def _step(self, values: NDArray[np.float32]) -> None:
        vector, _, terminated, _, _ = self.env.step(values)
        self.observation = self._observe(vector)
        self.actions += 1
        self.is_solved = bool(terminated)

    def _observe(self, vector: NDArray[np.float32]) -> Observation:
        return Observation(self.env.observation_space.devectorize(vector))
