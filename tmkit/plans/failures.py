"""Failures of motions as values.

A failure is **soft** unless it is final: nothing was found within a budget, which proves nothing. A
final failure rests on an argument that holds for every configuration and for any search time; its
``cause`` states the argument.

Invariants: a failure is a value; the same failure has the same words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class FailureKind(StrEnum):
    """What sort of obstacle an attempt met."""

    COLLISION = "collision"
    """Frames were in the way of a configuration, a straight line or a path."""
    OUT_OF_REACH = "out of reach"
    """The pose is farther from the arm's base than the links are long: proved for this pose."""
    NO_CONFIGURATION = "no configuration"
    """Inverse kinematics found none for the pose, within its restarts."""
    JOINT_LIMIT = "joint limit"
    """A joint would have to go beyond its limit."""
    STRAIGHT_LINE = "straight line"
    """The arm cannot follow the straight line of an approach, lift, lowering or retreat."""
    NO_PATH = "no path"
    """The path search found none, and nothing in particular was in its way."""
    GRIP = "grip"
    """The hand does not hold the object as it should, or its fingers cannot move."""
    NO_CHOICE = "no choice"
    """There is no grasp or placement to try."""
    UNCERTAIN = "uncertain"
    """What the action is to bring about would be less probable than is asked."""
    NO_ROOM = "no room"
    """What is on a region already leaves no place for another object, or none was found."""
    OTHER = "other"
    """Anything else that a candidate of a domain reports."""


@dataclass(frozen=True)
class MotionFailure:
    """Why one attempt at an action failed.

    Attributes:
        phase: what was being tried.
        cause: why it failed, in words; the same cause has the same words.
        pairs: frames that were in the way, most frequent first.
        is_proved: whether the action can never be carried out, in no state and however long one
            tries.
        kind: the sort of obstacle.
        excess: metres by which a pose is out of reach, where that was computed; else 0.
        q: (n_joints,) configuration that collides, or comes nearest to a pose out of reach, where
            there is one.
        is_path_dependent: whether it is the way that failed, from where the arm was: from elsewhere
            it may do.
    """

    phase: str
    cause: str
    pairs: tuple[tuple[str, str], ...] = ()
    is_proved: bool = False
    kind: FailureKind = FailureKind.OTHER
    excess: float = 0.0
    q: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    is_path_dependent: bool = False

    def __str__(self) -> str:
        return f"{self.phase}: {self.cause}"


class PrimitiveFailedError(Exception):
    """A piece of motion was not found: how a failure travels up within the planner, and no further.

    Args:
        pairs: colliding frames.
        q: (n_joints,) configuration of the failure; None if unknown.
        is_path_dependent: whether an obstacle on the way caused it.
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
