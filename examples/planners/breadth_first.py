"""Task planner outside the package: a breadth-first search that excludes forbidden actions."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tmkit.pddl import Fact, GroundAction, Problem, State, parse_domain, parse_problem
from tmkit.task_planning import TaskPlanner, TaskPlanResult, TaskPlanStatus

DOMAIN = parse_domain("""
(define (domain door)
  (:predicates (at ?room) (open ?from ?to))
  (:action unlock :parameters (?a ?b)
    :precondition (at ?a)
    :effect (open ?a ?b))
  (:action go :parameters (?a ?b)
    :precondition (and (at ?a) (open ?a ?b))
    :effect (and (at ?b) (not (at ?a)))))
""")

PROBLEM = parse_problem(
    """
(define (problem laboratory) (:domain door)
  (:objects hall lab yard)
  (:init (at hall))
  (:goal (at lab)))
""",
    DOMAIN,
)


@dataclass(frozen=True)
class ConstrainedTask:
    """Problem with actions that are forbidden while facts hold."""

    problem: Problem
    forbidden: tuple[tuple[GroundAction, frozenset[Fact]], ...] = ()

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> ConstrainedTask:
        """Return the task in which an action is not done while all facts hold."""
        return replace(self, forbidden=(*self.forbidden, (action, frozenset(context))))

    def allows(self, state: State, action: GroundAction) -> bool:
        """Return whether an action may be done in a state."""
        return not any(action == other and facts <= state.facts for other, facts in self.forbidden)


class BreadthFirst(TaskPlanner[ConstrainedTask]):
    """Search for the fewest actions."""

    def prepare(self, problem: Problem, *, time_limit: float = 60.0) -> ConstrainedTask:
        """Return the task without constraints."""
        del time_limit  # nothing is translated
        return ConstrainedTask(problem)

    def search(self, task: ConstrainedTask, *, time_limit: float = 60.0) -> TaskPlanResult:
        """Return a plan, or a proof that there is none."""
        deadline = time.monotonic() + time_limit
        problem = task.problem
        plans: dict[State, tuple[GroundAction, ...]] = {problem.init: ()}
        queue = deque([problem.init])
        while queue:
            if time.monotonic() > deadline:
                return TaskPlanResult(TaskPlanStatus.LIMIT)
            state = queue.popleft()
            if problem.holds(state, problem.goal):
                steps = plans[state]
                return TaskPlanResult(TaskPlanStatus.SOLVED, steps, cost=float(len(steps)))
            for action in problem.applicable_actions(state):
                if not task.allows(state, action):
                    continue
                successor = problem.apply(state, action)
                if successor not in plans:
                    plans[successor] = (*plans[state], action)
                    queue.append(successor)
        return TaskPlanResult(TaskPlanStatus.UNSOLVABLE)


def main() -> None:
    """Print a plan, and the plan around a locked door."""
    planner = BreadthFirst()
    task = planner.prepare(PROBLEM)
    print(*planner.search(task).steps)
    locked = task.forbid(GroundAction("unlock", ("hall", "lab")), [])
    print(*planner.search(locked).steps)


if __name__ == "__main__":
    main()
