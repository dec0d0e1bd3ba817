"""Plans repaired from another version of the scene: which motions stay, and that all of it is valid."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tmkit as tk
from tmkit.errors import TaskError
from tmkit.spatial import Pose
from tmkit.tamp import repair_plan

OPTIONS = tk.PlanningOptions(seed=0, max_iterations=1)


@pytest.fixture(scope="module")
def planned() -> tuple[tk.PlanningProblem, tk.Plan]:
    """A problem of three blocks with its plan: b on c, then a on b."""
    scene = tk.load_scene("panda_table", "blocks3")
    q = tk.load_manipulator("panda").ready_configuration(scene)
    problem = tk.PlanningProblem(
        scene, q, domain="blocks", goal="(and (on a b) (on b c))", robots="panda"
    )
    plan = tk.solve(problem, OPTIONS).plan
    assert plan is not None
    assert [str(action) for action in plan.actions[1::2]] == ["(stack b c)", "(stack a b)"]
    return problem, plan


def kept(plan: tk.Plan, old: tk.Plan) -> list[list[bool]]:
    """Return for each step from the end which segments are those of the old plan."""
    pairs = zip(plan.steps[::-1], old.steps[::-1], strict=False)
    return [
        [a is b for a, b in zip(one.segments, other.segments, strict=True)] for one, other in pairs
    ][::-1]


def test_only_motions_to_what_was_moved_are_new(
    planned: tuple[tk.PlanningProblem, tk.Plan],
) -> None:
    """The pick of the moved block and the way on from there; the rest is the old motion, and all is valid."""
    problem, plan = planned
    moved = problem.scene.set_pose("a", Pose([0.02, 0.03, 0.0]) @ problem.scene.local_pose("a"))
    repaired = repair_plan(replace(problem, scene=moved), plan.steps, options=OPTIONS)
    assert repaired is not None
    assert tk.validate_plan(repaired).is_valid
    assert repaired.actions == plan.actions
    assert kept(repaired, plan) == [[True] * 4, [True] * 4, [False] * 4, [False, True, True, True]]


def test_steps_that_are_left_begin_where_the_world_is(
    planned: tuple[tk.PlanningProblem, tk.Plan],
) -> None:
    """After a step, with nothing changed, all stays; with the block below moved, it is put there."""
    problem, plan = planned
    after = replace(problem, scene=plan.steps[0].scene, q=plan.steps[0].q)
    same = repair_plan(after, plan.steps[1:], options=OPTIONS)
    assert same is not None
    assert kept(same, plan) == [[True] * 4] * 3
    moved = after.scene.set_pose("c", Pose([-0.03, 0.02, 0.0]) @ after.scene.local_pose("c"))
    other = repair_plan(replace(after, scene=moved), plan.steps[1:], options=OPTIONS)
    assert other is not None
    assert tk.validate_plan(other).is_valid
    assert kept(other, plan) == [[False] * 4, [False, True, True, True], [False] * 4]
    assert (
        repair_plan(replace(after, scene=moved), plan.steps[1:], options=OPTIONS).final_scene
        == other.final_scene
    )


def test_a_motion_that_would_collide_is_replaced(
    planned: tuple[tk.PlanningProblem, tk.Plan],
) -> None:
    """Something new stands in the way of the old path; the repaired plan goes round it."""
    problem, plan = planned
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
    assert not kept(repaired, plan)[1][0]


def test_actions_that_do_not_do_are_refused(planned: tuple[tk.PlanningProblem, tk.Plan]) -> None:
    """None where they do not lead to the goal; what is done already is omitted; a goal that is none is said."""
    problem, plan = planned
    assert repair_plan(problem, plan.steps[:2], options=OPTIONS) is None
    done = replace(problem, scene=plan.final_scene, q=plan.final_q)
    finished = repair_plan(done, plan.steps, options=OPTIONS)
    assert finished is not None
    assert finished.steps == ()
    half = replace(problem, scene=plan.steps[1].scene, q=plan.steps[1].q)
    rest = repair_plan(half, plan.steps, options=OPTIONS)
    assert rest is not None
    assert rest.actions == plan.actions[2:]
    with pytest.raises(TaskError, match="unknown object 'x'"):
        repair_plan(replace(problem, goal="(on x b)"), plan.steps)
