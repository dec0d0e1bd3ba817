"""Pour domain: a filled cup is carried over a wall and poured into a bowl."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.classic import checked, classic_domain, facts_of, plan_problem

import tmkit as tk
from tmkit.errors import PlanFileError, SceneError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionContext, ArmMotionPlanner, MotionSettings, Pour
from tmkit.motion import PathConstraint, path_fault
from tmkit.motion.path_constraints import interpolate_path
from tmkit.plans import MotionFailure, Plan, Segment
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict
from tmkit.plans.values import SegmentKind

DOMAIN = classic_domain("pour")
COSINES, SINES = (
    function(np.linspace(0.0, math.tau, 721))[:, None] for function in (np.cos, np.sin)
)


@pytest.fixture(scope="module")
def plan() -> Plan:
    """The cup is taken, poured out and put back."""
    return checked(plan_problem("pour", "tea", scene="tea"))


def tea() -> SceneGraph:
    """Return the cup, the bowl and the wall."""
    return tk.load_scene("panda_table", "tea")


def pour_plan(plan: Plan) -> Segment:
    """Return the segment that pours."""
    return plan.steps[1].segments[1]


def rows_of(plan: Plan, step: int, index: int) -> tuple[SceneGraph, np.ndarray]:
    """Return the scene and the configurations of a segment."""
    scene, q = (
        (plan.steps[step - 1].scene, plan.steps[step - 1].q) if step else (plan.scene, plan.q)
    )
    for segment in plan.steps[step].segments[:index]:
        scene, q = segment.end(scene, q)
    part = plan.steps[step].segments[index]
    rows = [
        scene.configuration(dict(zip(part.joint_names, row, strict=True)), base=q)
        for row in part.path.tolist()
    ]
    return scene, np.array(rows)


def test_the_state_says_what_is_filled() -> None:
    """By the class of the vessel."""
    places = {"(on cup table)", "(on bowl table)", "(handempty)"}
    assert facts_of(tea(), DOMAIN) == {*places, "(filled cup)", "(empty bowl)"}


def test_a_cup_is_poured_into_a_bowl(plan: Plan) -> None:
    """The cup is level while carried; then the lowest rim point stays above the bowl."""
    assert [step.action.name for step in plan.steps] == ["take", "pour", "put"]
    assert [segment.kind.value for segment in plan.steps[1].segments] == ["transfer", "pour"]
    assert (pour_plan(plan).into, pour_plan(plan).held) == ("bowl", "cup")
    assert "filled" in plan.final_scene.classes("bowl")
    assert "filled" not in plan.final_scene.classes("cup")
    scene, rows = rows_of(plan, 1, 1)
    bowl = scene.pose("bowl", q=rows[0]).translation
    tilts = []
    for q in interpolate_path(rows, 0.01):
        cup = scene.pose("cup", q=q).as_matrix()
        x, y, z, origin = cup[:3].T
        rim = origin + 0.12 * z + 0.03 * (COSINES * x + SINES * y)
        lowest = rim[np.argmin(rim[:, 2])]
        tilts.append(math.degrees(math.acos(min(1.0, cup[2, 2]))))
        if tilts[-1] > 15.0:
            assert np.linalg.norm(lowest[:2] - bowl[:2]) < 0.007
            assert lowest[2] > bowl[2] + 0.06
    assert max(tilts) == pytest.approx(110.0, abs=0.1)
    assert tilts[-1] < 0.1
    for step, index in ((0, 3), (1, 0)):
        scene, rows = rows_of(plan, step, index)
        constraints = plan.steps[step].segments[index].constraints
        assert [constraint.kind for constraint in constraints] == ["orientation"]
        assert path_fault(scene, rows, constraints) is None
    assert not plan.steps[2].segments[0].constraints  # the cup is empty


def test_it_is_poured_in_simulation(plan: Plan) -> None:
    """The cup stays in the hand while it is tilted, and stands where it should at the end."""
    report = tk.simulate(plan)
    assert report.is_successful, report
    assert not [
        note for note in report.notes if note.step < 3
    ]  # it is put down 5 mm beside the bowl, which it may touch


def test_a_plan_file_says_what_is_poured_where(plan: Plan, tmp_path: Path) -> None:
    """The container is stored in files of plans that pour, and in no others."""
    document = plan_to_dict(plan)
    assert plan_to_dict(plan_from_dict(document)) == document
    assert [("into" in segment) for segment in document["steps"][1]["segments"]] == [False, True]
    document["steps"][1]["segments"][1]["into"] = "pot"
    with pytest.raises(
        PlanFileError, match=r"segments\[1\].into: 'pot' is not a frame of the scene"
    ):
        plan_from_dict(document)
    with pytest.raises(
        PlanFileError, match=r"step 2 \(pour cup bowl\) pours into 'bowl', which the format"
    ):
        tk.save_plan(plan, tmp_path / "plan.tmp")


def edit_plan(plan: Plan, **changes: Any) -> Plan:
    """Return the plan with another pour."""
    step = plan.steps[1]
    other = replace(step, segments=(step.segments[0], replace(pour_plan(plan), **changes)))
    return replace(plan, steps=(plan.steps[0], other, plan.steps[2]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"into": None}, "pour: it has no container"),
        ({"into": "wall"}, "pour: the rim of 'cup' is 250 mm aside"),
        ({"path": lambda path: path[:40]}, "pour: 'cup' is tilted by 110 degrees at its end"),
        (
            {"path": lambda path: path[[*range(20), *range(19, -1, -1)]]},
            "degrees only: it is not emptied",
        ),
        (
            {"kind": SegmentKind.TRANSFER, "into": None},
            "transfer: it lacks the required path constraint",
        ),
        ({"kind": SegmentKind.TRANSFER}, "transfer: it is not a pour into 'bowl'"),
        ({"held": "bowl"}, "pour: it carries 'bowl', but the hand holds 'cup'"),
        (
            {"constraints": (PathConstraint("line", "cup", tolerance=0.005),)},
            "mm off its line of 5 allowed",
        ),
    ],
)
def test_the_checker_refuses_what_is_no_pour(
    plan: Plan, change: dict[str, Any], message: str
) -> None:
    """Another container, a cup that is left tilted or not emptied, a transfer that tips it."""
    path = pour_plan(plan).path
    fields = {key: value(path) if callable(value) else value for key, value in change.items()}
    report = tk.validate_plan(edit_plan(plan, **fields))
    assert any(message in problem for problem in report.problems), report.problems


def test_what_is_poured_is_what_changes(plan: Plan) -> None:
    """A pour into the bowl fills nothing else."""
    step = plan.steps[1]
    changes = (step.changes[0], replace(step.changes[1], frame="wall"))
    report = tk.validate_plan(
        replace(plan, steps=(plan.steps[0], replace(step, changes=changes), plan.steps[2]))
    )
    assert any(
        "it pours nothing into 'wall', whose classes change" in problem
        for problem in report.problems
    )


def test_an_arm_pours_only_what_it_holds() -> None:
    """Only a frame with a rim can receive; the failure and the error name the frame."""
    arm = ArmMotionPlanner(tk.load_manipulator("panda"), budget=MotionSettings())
    scene = tea()
    q = arm.robot.ready_configuration(scene)
    context = ActionContext(scene, q, np.random.default_rng(0), arms={"panda": arm})
    (failure,) = Pour("cup", "bowl", 0.0, 0.0).refine(arm, context, seed=0)
    assert isinstance(failure, MotionFailure)
    assert failure.cause == "'cup' is not in the hand of 'panda', which holds nothing"
    with pytest.raises(SceneError, match="'world' has no collision shape, so it has no rim"):
        Pour("cup", "world", 0.0, 0.0).poses(scene, q)


def test_a_suction_cup_takes_no_full_vessel() -> None:
    """The hand would hold the cup by its rim, as explained. An xArm pours as the Panda does."""
    result = plan_problem("pour", "tea", scene="tea", robot="iiwa", time_limit=3.0)
    assert "no grasp of 'cup' is by its side, and others are over its rim" in result.explanation
    checked(plan_problem("pour", "tea", scene="tea", robot="xarm"))


def test_the_same_seed_pours_the_same(plan: Plan) -> None:
    """To the last bit."""
    assert plan_to_dict(checked(plan_problem("pour", "tea", scene="tea"))) == plan_to_dict(plan)
