"""Executor whose failures have a report with the measured state of the arms."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from tmkit.errors import ExecutionError
from tmkit.plans.execution_report import ExecutionReport, ExecutionStatus
from tmkit.world.execution.controllers import ControllerTable
from tmkit.world.execution.goal_run import GoalRun
from tmkit.world.execution.goals import GoalExecutor, SegmentTime


class ReportingExecutor(GoalExecutor):
    """Executor of goals that reports failures.

    Args:
        settings: controllers of the robot.
        speed: speed relative to the plan, above 0 and at most 1.
        first: number of the first step of the plan, if it is a part of a longer one.
        first_segment: number of the first segment of this step.

    Attributes:
        failure: report of a failure or an interruption, or None.

    Raises:
        ConfigurationError: if the speed is outside of its range.
    """

    def __init__(
        self,
        settings: ControllerTable,
        *,
        speed: float = 1.0,
        first: int = 1,
        first_segment: int = 1,
    ) -> None:
        super().__init__(settings, speed=speed, first=first, first_segment=first_segment)
        self.failure: ExecutionReport | None = None
        self._stop = threading.Event()
        self._last_place: tuple[SegmentTime, float] | None = None

    def stop(self) -> None:
        """Stop the present motion, whose method then raises; callable from any thread."""
        self._stop.set()

    def _complete(self, run: GoalRun) -> None:
        """Run a goal to its end, also after a signal.

        Raises:
            ExecutionError: if it fails.
        """
        thread = threading.Thread(target=run.perform, name="tmkit_goal")
        try:
            thread.start()
            run.ended.wait()
        except BaseException:  # a signal, which must not leave the arm moving
            is_running = thread.is_alive()
            self._stop.set()  # a goal that was not sent yet is not sent any more
            if is_running:
                run.ended.wait()
            status = run.fault or ExecutionStatus.STOPPED
            self._report(status, run.reason or "stopped", *run.place(), run.first_open_step())
            raise
        if run.error is not None:
            raise run.error
        if run.fault is not None:
            raise self._error(run.fault, run.reason, *run.place(), run.first_open_step())
        self._last_place = run.place()

    def interruption(self) -> ExecutionReport | None:
        """Return the report of the failure, or of an interruption at rest between two motions.

        Returns:
            The report, or None before the first motion is complete.
        """
        if self.failure is None and self._last_place is not None:
            self._report(ExecutionStatus.STOPPED, "stopped", *self._last_place)
        return self.failure

    def _measure(self) -> tuple[Mapping[str, float], bool]:
        """Return the measured joint values of the arms by name, and whether they are at rest."""
        raise NotImplementedError

    def _report(
        self,
        status: ExecutionStatus,
        message: str,
        place: SegmentTime | None = None,
        seconds: float = 0.0,
        unfinished: int | None = None,
    ) -> ExecutionReport:
        """Return a report with the measured state of the arms, which is stored too.

        Args:
            status: cause of the failure.
            message: description of the failure.
            place: segment of the failure; None if nothing has moved.
            seconds: time since the start of the segment [s].
            unfinished: number of the first step that is not complete. Defaults to that of the
                segment.
        """
        positions, is_at_rest = self._measure()
        last = self._first + len(self._plan.steps) - 1
        if place is None:
            place = SegmentTime(0, 0, "", 0.0)
        self.failure = ExecutionReport(
            max(place.step if unfinished is None else unfinished, self._first) - 1,
            last,
            status,
            message,
            place.step,
            place.segment,
            place.kind,
            seconds * self.speed,
            positions,
            is_at_rest,
        )
        return self.failure

    def _error(
        self,
        status: ExecutionStatus,
        message: str,
        place: SegmentTime | None = None,
        seconds: float = 0.0,
        unfinished: int | None = None,
    ) -> ExecutionError:
        """Return the error of a failure with its report; arguments as of :meth:`_report`."""
        report = self._report(status, message, place, seconds, unfinished)
        text = message
        if place is not None:
            action = self._plan.steps[place.step - self._first].action
            rest = "is at rest" if report.is_at_rest else "may still move"
            text = (
                f"step {place.step} {action}, {place.kind} at {report.time:.2f} s: {message};"
                f" the arm {rest}"
            )
        return ExecutionError(text, report=report)
