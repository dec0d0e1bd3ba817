"""Reports of execution: progress, and the cause and state if it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tmkit._support.results import Result


class ExecutionStatus(StrEnum):
    """Outcome of an execution."""

    SUCCEEDED = "succeeded"
    """All commanded steps are complete."""
    SERVER = "server"
    """An action server is missing, does not reply, or its name is in use twice."""
    STATE = "state"
    """Joint states are missing, or older than allowed."""
    START = "start"
    """The arm is not at the start of its motion."""
    REJECTED = "rejected"
    """A controller rejected a goal."""
    ABORTED = "aborted"
    """A controller aborted a goal."""
    PREEMPTED = "preempted"
    """Another client cancelled or replaced a goal, and may move the arm."""
    DEVIATION = "deviation"
    """The arm is not at its path, by its joint states or the feedback of its controller."""
    TIMEOUT = "timeout"
    """A motion did not end within its time limit."""
    GRASP = "grasp"
    """The hand closed on nothing, or not as planned."""
    STOPPED = "stopped"
    """The execution was interrupted."""


@dataclass(frozen=True)
class ExecutionReport(Result):
    """Result of the execution of a plan.

    Attributes:
        complete_steps: number of complete steps, from the first step of the plan.
        steps: number of steps of the plan.
        status: success, or the cause of the failure.
        message: description of the failure, empty without one.
        step: number of the step that failed, from 1; 0 if nothing has moved.
        segment: index in the step of the segment that failed, from 1; 0 if nothing has moved.
        kind: kind of the segment that failed, or empty.
        time: time in the segment at the failure, in the time of the plan [s].
        positions: measured joint values at the end, by the names in the scene [rad or m].
        is_at_rest: whether the joint states at the end are constant.
    """

    complete_steps: int
    steps: int
    status: ExecutionStatus = ExecutionStatus.SUCCEEDED
    message: str = ""
    step: int = 0
    segment: int = 0
    kind: str = ""
    time: float = 0.0
    positions: Mapping[str, float] = field(default_factory=dict)
    is_at_rest: bool = True

    @property
    def is_successful(self) -> bool:
        """True if all commanded steps are complete."""
        return self.status is ExecutionStatus.SUCCEEDED
