"""What a task planner is asked and what it answers.

The idea: the search for motions needs *some* task planner and does not care which. :class:`TaskPlanner` is all it uses.
That there is no plan, or that none was found within the limits, is an answer; only a planner that breaks is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from tmkit.tasks.model import GroundAction, Problem

__all__ = ["TaskPlanResult", "TaskPlanStatistics", "TaskPlanStatus", "TaskPlanner"]


class TaskPlanStatus(Enum):
    """How a search for a task plan ended."""

    SOLVED = "solved"
    UNSOLVABLE = "unsolvable"
    """It is proved that there is no plan."""
    LIMIT = "limit"
    """No plan was found within the time or memory that was given, or the planner gave up; there may be one."""


@dataclass(frozen=True, slots=True)
class TaskPlanStatistics:
    """What a search took. Times are in seconds and no part of equality, since they differ from run to run.

    Attributes:
        expanded: states whose successors were looked at.
        evaluated: states that were judged.
        operators: ground actions that the search chose from.
        facts: ground facts that the search distinguished.
        translation_seconds: time for turning PDDL into the planner's own form; 0 when it was there already.
        search_seconds: time for searching.
    """

    expanded: int = 0
    evaluated: int = 0
    operators: int = 0
    facts: int = 0
    translation_seconds: float = field(default=0.0, compare=False)
    search_seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class TaskPlanResult:
    """The answer of a task planner.

    Attributes:
        status: how the search ended.
        steps: the plan; empty when there is none (and when the goal holds already, then ``status`` is ``SOLVED``).
        cost: the cost of the plan by the problem's metric.
        message: the end of the search in words.
        statistics: what it took.
    """

    status: TaskPlanStatus
    steps: tuple[GroundAction, ...] = ()
    cost: float = 0.0
    message: str = ""
    statistics: TaskPlanStatistics = TaskPlanStatistics()

    @property
    def solved(self) -> bool:
        """Whether there is a plan."""
        return self.status is TaskPlanStatus.SOLVED


class TaskPlanner(Protocol):
    """Finds a sequence of actions that leads from the initial state of a problem to its goal."""

    def solve(self, problem: Problem, *, time_limit: float) -> TaskPlanResult:
        """Search for a plan.

        Args:
            problem: the task.
            time_limit: seconds after which to give up.

        Raises:
            TaskPlannerError: the planner could not be run, or broke.
        """
        ...
