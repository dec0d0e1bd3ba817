"""What a motion takes of its limits, from positions alone; shares nothing with what times motions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.plans import Plan, Segment, TimedMotion, execute
from tmkit.robots import Manipulator

Array = NDArray[np.float64]

JERK_TIME = 0.1  # seconds in which an arm may come to full acceleration


def limit_shares(
    positions: Array, rate: float, *, speeds: ArrayLike, accelerations: ArrayLike, jerks: ArrayLike
) -> tuple[float, float, float]:
    """Return the largest parts of speed, acceleration and jerk limits (n,) that are taken by positions (m, n).

    A difference of order k, over the k-th power of the period, is a mean of the k-th derivative: it exceeds a limit
    only if the derivative does. The motion is at rest before the first and after the last sample.
    """
    padded = np.concatenate([positions[:1]] * 3 + [positions] + [positions[-1:]] * 3)
    shares = [
        float(np.max(np.abs(np.diff(padded, n=order, axis=0)) * rate**order / np.asarray(limits)))
        for order, limits in enumerate((speeds, accelerations, jerks), start=1)
    ]
    return shares[0], shares[1], shares[2]


class MotionLog:
    """An executor that keeps the motions with the scene in which each begins, and where hands act."""

    def __init__(self) -> None:
        self.motions: list[TimedMotion] = []
        self.hands: list[int] = []  # number of motions before each grasp and release

    def follow(self, motion: TimedMotion) -> None:
        """Keep it."""
        self.motions.append(motion)

    def grasp(self, arm: Manipulator, segment: Segment) -> None:
        """Keep where."""
        del arm, segment
        self.hands.append(len(self.motions))

    release = grasp

    def _pass(self, *_: object) -> None:
        pass

    begin = begin_step = end_step = _pass
    finish = _pass

    def runs(self) -> list[list[TimedMotion]]:
        """Return motions from rest to rest."""
        runs: list[list[TimedMotion]] = [[]]
        for motion in self.motions:
            runs[-1].append(motion)
            if not motion.timed.velocities[-1].any():
                runs.append([])
        return runs[:-1]


def motions_of(plan: Plan, *, rate: float = 1000.0) -> MotionLog:
    """Return the motions of a plan."""
    log = MotionLog()
    execute(plan, log, rate=rate)
    return log


def run_shares(plan: Plan, run: list[TimedMotion]) -> tuple[float, float, float]:
    """Return the largest parts of the limits of an arm, and of a joint behind a handle, that a run takes."""
    arm, names = run[0].arm, run[0].joint_names
    moving = [motion.timed.positions for motion in run]
    positions = np.concatenate([moving[0], *(rows[1:] for rows in moving[1:])])
    count = len(arm.joints)
    accelerations = np.full(len(names), np.inf)
    accelerations[:count] = arm.acceleration_limits(plan.scene)
    speeds = np.full(len(names), 0.6)
    speeds[:count] = arm.velocity_limits(plan.scene)
    rate = 1.0 / run[0].timed.period
    return limit_shares(positions, rate, speeds=speeds, accelerations=accelerations, jerks=accelerations / JERK_TIME)
