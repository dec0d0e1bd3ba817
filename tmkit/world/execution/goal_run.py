"""Run of a goal in a thread, which a signal cannot leave unfinished.

Signals interrupt the main thread only. The thread of a goal completes its messages to a robot, and
stops the arm after an interruption::

    main thread          thread of a goal
    complete(run) -----> send, monitor
    wait                 stop? --> stop the arm, wait for its rest
    Ctrl-C: stop = true
    result or error <--- ended
"""

from __future__ import annotations

import threading

from tmkit.plans.execution_report import ExecutionStatus
from tmkit.world.execution.goals import SegmentTime


class FailedGoalError(Exception):
    """A goal that failed, with its cause."""

    def __init__(self, fault: ExecutionStatus, reason: str) -> None:
        super().__init__(reason)
        self.fault = fault
        self.reason = reason


class GoalRun:
    """Execution of a goal, from its start check to its result.

    Attributes:
        fault: cause of a failure, or None.
        reason: description of the failure.
        error: error that is not a failure of the robot, or None.
        ended: event that is set at the end. An interrupted ``Thread.join`` counts the thread as
            ended while it runs, so the main thread waits for this event.
    """

    def __init__(self) -> None:
        self.fault: ExecutionStatus | None = None
        self.reason = ""
        self.error: Exception | None = None
        self.ended = threading.Event()

    def place(self) -> tuple[SegmentTime, float]:
        """Return the segment at the end, and the time since its start [s]."""
        raise NotImplementedError

    def first_open_step(self) -> int:
        """Return the number of the first step that is not complete, after a failure."""
        return self.place()[0].step

    def execute(self) -> None:
        """Execute the goal.

        Raises:
            FailedGoalError: if it fails. The arm was stopped.
        """
        raise NotImplementedError

    def perform(self) -> None:
        """Execute the goal; for a thread, so errors become attributes."""
        try:
            self.execute()
        except FailedGoalError as failure:
            self.fault, self.reason = failure.fault, failure.reason
        except Exception as error:
            self.error = error
        finally:
            self.ended.set()
