"""Plan repair from another scene version: reused motions, and validity of the whole plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tmkit as tk
from tmkit.errors import TaskError
from tmkit.spatial import Pose
from tmkit.tamp import repair_plan

OPTIONS = tk.PlanningOptions(seed=0, max_iterations=1)


@pytest.fixture(scope="module")
def problem_and_plan() -> tuple[tk.PlanningProblem, tk.Plan]:
    """Return a problem of three blocks with its plan: b on c, then a on b."""
    scene = tk.load_scene("panda_table", "blocks3")
    q = tk.load_manipulator("panda").ready_configuration(scene)
    problem = tk.PlanningProblem(
        scene, q, domain="blocks", goal="(and (on a b) (on b c))", robots="panda"
    )
    plan = tk.solve(problem, OPTIONS).plan
    assert plan is not None
    assert [str(action) for action in plan.actions[1::2]] == ["(stack b c)", "(stack a b)"]
    return problem, plan


def count_reused(plan: tk.Plan, old: tk.Plan) -> list[list[bool]]:
    """Return which segments of each step, from the end, are those of the old plan."""
    pairs = zip(plan.steps[::-1], old.steps[::-1], strict=False)
    return [
        [a is b for a, b in zip(new_step.segments, old_step.segments, strict=True)]
        for new_step, old_step in pairs
    ][::-1]


def test_only_motions_to_the_moved_block_are_new(
    problem_and_plan: tuple[tk.PlanningProblem, tk.Plan],
) -> None:
    """The pick of the moved block and the following path are new; the plan is valid."""
    problem, plan = problem_and_plan
    moved = problem.scene.set_pose("a", Pose([0.02, 0.03, 0.0]) @ problem.scene.local_pose("a"))
    repaired = repair_plan(replace(problem, scene=moved), plan.steps, options=OPTIONS)
    assert repaired is not None
    assert tk.validate_plan(repaired).is_valid
    assert repaired.actions == plan.actions
    assert count_reused(repaired, plan) == [
        [True] * 4,
        [True] * 4,
        [False] * 4,
        [False, True, True, True],
    ]


def test_remaining_steps_start_at_the_present_scene(
    problem_and_plan: tuple[tk.PlanningProblem, tk.Plan],
) -> None:
    """Without a change all motions stay; a moved support changes the place."""
    problem, plan = problem_and_plan
    after = replace(problem, scene=plan.steps[0].scene, q=plan.steps[0].q)
    same = repair_plan(after, plan.steps[1:], options=OPTIONS)
    assert same is not None
    assert count_reused(same, plan) == [[True] * 4] * 3
    moved = after.scene.set_pose("c", Pose([-0.03, 0.02, 0.0]) @ after.scene.local_pose("c"))
    old_step = repair_plan(replace(after, scene=moved), plan.steps[1:], options=OPTIONS)
    assert old_step is not None
    assert tk.validate_plan(old_step).is_valid
    assert count_reused(old_step, plan) == [[False] * 4, [False, True, True, True], [False] * 4]
    assert (
        repair_plan(replace(after, scene=moved), plan.steps[1:], options=OPTIONS).final_scene
        == old_step.final_scene
    )


def test_a_motion_that_would_collide_is_replaced(
    problem_and_plan: tuple[tk.PlanningProblem, tk.Plan],
) -> None:
    """The repaired plan avoids a new obstacle on the old path."""
    problem, plan = problem_and_plan
    arm, path = plan.robot, plan.steps[1].segments[0].path
    held = plan.steps[0].scene
    assert len(path) == 2
    half = dict(zip(arm.joints, path.mean(axis=0).tolist(), strict=True))
    middle = held.configuration(half, base=plan.steps[0].q)
    place = held.pose("b", q=middle).translation
    ball = tk.AttachedShape(tk.Sphere(0.02))
    blocked = problem.scene.add_frame("lamp", "world", pose=Pose(place), shapes=[ball])
    repaired = repair_plan(replace(problem, scene=blocked), plan.steps, options=OPTIONS)
    assert repaired is not None
    assert tk.validate_plan(repaired).is_valid
    assert not count_reused(repaired, plan)[1][0]


def test_actions_that_miss_the_goal_give_no_plan(
    problem_and_plan: tuple[tk.PlanningProblem, tk.Plan],
) -> None:
    """Completed actions are omitted; an invalid goal raises an error."""
    problem, plan = problem_and_plan
    assert repair_plan(problem, plan.steps[:2], options=OPTIONS) is None
    done = replace(problem, scene=plan.final_scene, q=plan.final_q)
    completed_plan = repair_plan(done, plan.steps, options=OPTIONS)
    assert completed_plan is not None
    assert completed_plan.steps == ()
    half = replace(problem, scene=plan.steps[1].scene, q=plan.steps[1].q)
    rest = repair_plan(half, plan.steps, options=OPTIONS)
    assert rest is not None
    assert rest.actions == plan.actions[2:]
    with pytest.raises(TaskError, match="unknown object 'x'"):
        repair_plan(replace(problem, goal="(on x b)"), plan.steps)
