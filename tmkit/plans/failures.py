"""Failures of motions as values.

A failure is either soft or proved. A soft failure means that a search ended within its budget,
which proves nothing. A proved failure holds for every configuration and any search time, by the
argument in its ``cause``.

Invariants: a failure is a value, and equal failures have equal text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class FailureKind(StrEnum):
    """Kinds of failures."""

    COLLISION = "collision"
    """A configuration, a straight line or a path is in collision."""
    OUT_OF_REACH = "out of reach"
    """The distance of the pose from the base exceeds the length of the arm, which is a proof."""
    NO_CONFIGURATION = "no configuration"
    """Inverse kinematics has no solution for the pose within its restarts."""
    JOINT_LIMIT = "joint limit"
    """A joint would exceed its limit."""
    STRAIGHT_LINE = "straight line"
    """The arm cannot follow the straight line of an approach, lift, lowering or retreat."""
    NO_PATH = "no path"
    """The path search failed without a specific obstacle."""
    GRIP = "grip"
    """The hand does not hold the object firmly, or its fingers cannot move."""
    HAND = "hand"
    """The hand holds something, or not the object, that the action presumes."""
    NO_CHOICE = "no choice"
    """There is no grasp or placement to try."""
    UNCERTAIN = "uncertain"
    """The probability of the effects is below the threshold of the action."""
    NO_ROOM = "no room"
    """The objects on a region leave no place for another, or the sampler failed."""
    INVALID_MOTION = "invalid motion"
    """A candidate from outside the package yields a motion that plan validation rejects."""
    OTHER = "other"
    """Another failure of a candidate of a domain."""


@dataclass(frozen=True)
class MotionFailure:
    """Failure of one attempt at an action.

    Attributes:
        phase: part of the motion that failed.
        cause: reason as text; equal causes have equal text.
        pairs: colliding frames, most frequent first.
        is_proved: whether the action is infeasible in every state and for any search time.
        kind: kind of the failure.
        excess: distance by which a pose is out of reach, or 0 if not computed [m].
        q: (n_joints,) configuration that collides or is nearest to a pose out of reach, or None.
        is_path_dependent: whether the failure depends on the start configuration of the arm.
        frames: frames on whose poses and data the failure depends. Defaults to None: the handled
            object and the frames of ``pairs`` if the kind depends on these alone, else any frame.
    """

    phase: str
    cause: str
    pairs: tuple[tuple[str, str], ...] = ()
    is_proved: bool = False
    kind: FailureKind = FailureKind.OTHER
    excess: float = 0.0
    q: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    is_path_dependent: bool = False
    frames: frozenset[str] | None = None

    def __str__(self) -> str:
        return f"{self.phase}: {self.cause}"


class PrimitiveFailedError(Exception):
    """Failure of a primitive motion; the planner catches it.

    Args:
        pairs: colliding frames.
        q: (n_joints,) configuration of the failure, or None.
        is_path_dependent: whether the failure depends on the start configuration of the arm.
    """

    def __init__(
        self,
        phase: str,
        cause: str,
        pairs: tuple[tuple[str, str], ...] = (),
        *,
        kind: FailureKind = FailureKind.OTHER,
        q: NDArray[np.float64] | None = None,
        is_path_dependent: bool = False,
    ) -> None:
        super().__init__(phase, cause)
        self.failure = MotionFailure(
            phase, cause, pairs, kind=kind, q=q, is_path_dependent=is_path_dependent
        )
