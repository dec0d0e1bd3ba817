"""Plans of large tasks are close to the lower bound, and those of small tasks to the optimum."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.finite_domain_tasks import Model, compile_task
from support.large_tasks import LargeTask, ball_task, blocks_task, hanoi_task, swap_task

SEARCH_WORK = 1_000_000
IMPROVEMENT_WORK = 8_000_000
AGENDA_WORK = 5_000_000
MOVE = 2
"""Actions of one move of a block: it is taken and put down."""


def plan_length(
    large: LargeTask, *, work: int = 0, improvement_work: int = IMPROVEMENT_WORK
) -> int:
    """Return the number of actions of a plan, which is checked."""
    model = Model(large.task)
    goal = large.task["goal"]
    plan = compile_task(large.task).plan(model.start, goal, work, improvement_work, AGENDA_WORK)[0]
    assert plan is not None
    state = model.start
    for number in plan:
        assert model.holds(large.task["operators"][number][0], state)
        state = model.after(state, number)
    assert model.holds(goal, state)
    return len(plan)


@pytest.mark.parametrize(
    ("make", "surplus"),
    [
        *(
            (
                lambda seed=seed: blocks_task(seed, 40, sites=85, highest=3, towers=(5, 4, 5, 3)),
                0.05,
            )
            for seed in range(4)
        ),
        *(
            (lambda seed=seed: blocks_task(seed, 20, sites=60, highest=3, towers=(5, 4)), 0.05)
            for seed in range(4)
        ),
        *(
            (lambda seed=seed: blocks_task(seed, 30, sites=60, highest=6, towers=(7, 8)), 0.15)
            for seed in range(4)
        ),
        *((lambda seed=seed: swap_task(seed, 20), 0.0) for seed in range(2)),
        (lambda: ball_task(20), 0.07),
        (lambda: hanoi_task(6), 0.0),
    ],
)
def test_large_tasks_have_short_plans(make: Callable[[], LargeTask], surplus: float) -> None:
    """Plans with and without A* exceed the lower bound by one move and a few percent."""
    large = make()
    for work in (0, SEARCH_WORK):
        length = plan_length(large, work=work)
        assert (
            large.fewest
            <= length
            <= max(large.fewest + MOVE * (surplus > 0.0), large.fewest * (1.0 + surplus))
        )


@pytest.mark.parametrize("seed", range(12))
def test_towers_of_all_blocks_are_built(seed: int) -> None:
    """Each block has a goal, and many stand below blocks that are wanted below them."""
    large = blocks_task(seed, 20, sites=24, highest=7, towers=(7, 6, 7))
    assert large.fewest <= plan_length(large) <= 1.2 * large.fewest


@settings(max_examples=scaled_examples(0.3), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(0, 3))
def test_plans_of_few_blocks_are_at_most_a_move_longer_than_the_best(
    seed: int, size: int, room: int
) -> None:
    """Plans of the agenda are compared with Dijkstra's search; the lower bound is admissible."""
    towers = (size,) if size < 4 else (2, size - 2)
    large = blocks_task(seed, size, sites=size + room, highest=size, towers=towers)
    best = Model(large.task).least_cost()
    assert best is not None
    assert large.fewest <= best <= plan_length(large) <= best + MOVE


@settings(max_examples=scaled_examples(0.5), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(0, 100_000))
def test_improvement_makes_no_plan_longer(seed: int, size: int, work: int) -> None:
    """Whatever work it may do, and the same work makes the same plan."""
    large = blocks_task(seed, size, sites=size + 2, highest=4, towers=(size // 2, size - size // 2))
    length = plan_length(large, improvement_work=work)
    assert length <= plan_length(large, improvement_work=0)
    assert length == plan_length(large, improvement_work=work)
