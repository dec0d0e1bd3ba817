"""Plans whose lines touch: the examples of actions of one's own, and edits that break them."""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.gantry import GANTRY, gantry_scene

import tmkit as tk
from tmkit.errors import PlanFileError
from tmkit.graph import SceneGraph
from tmkit.manipulation import (
    ActionContext,
    ApplyEffects,
    Candidate,
    CloseHand,
    MoveStraight,
    MoveTo,
    Sequence,
    Touch,
)
from tmkit.pddl import GroundAction
from tmkit.plans import ClassEffect, Plan
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict
from tmkit.tamp import PythonDomain

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
STORED = Path(__file__).resolve().parents[2] / "data" / "plans" / "press.json"


def load_example(name: str) -> ModuleType:
    """Return the module of an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # for its data classes
    spec.loader.exec_module(module)
    return module


PRESS, WIPE, PEG = map(load_example, ("press_button", "wipe_table", "peg_in_hole"))


def solve(example: ModuleType, scene: SceneGraph, goal: str) -> tk.PlanningResult:
    """Plan in the domain of an example, with few iterations."""
    options = tk.PlanningOptions(max_iterations=2)
    return tk.plan(scene, domain=example.DOMAIN, goal=goal, robot="panda", seed=0, options=options)


def plan_of(example: ModuleType, scene: SceneGraph, goal: str) -> Plan:
    """Return the plan in the domain of an example."""
    result = solve(example, scene, goal)
    assert result.plan is not None, result.explanation
    return result.plan


@pytest.fixture(scope="module")
def pressing() -> Plan:
    """A press of the button on the table."""
    return plan_of(PRESS, PRESS.button_scene(), "(pressed start)")


@pytest.fixture(scope="module")
def wiping() -> Plan:
    """A wipe with a sponge."""
    return plan_of(WIPE, WIPE.wiping_scene(), "(wiped stain)")


@pytest.fixture(scope="module")
def insertion() -> Plan:
    """A peg in a hole."""
    return plan_of(PEG, PEG.insertion_scene(), "(inserted peg hole)")


def problems_of(plan: Plan, example: ModuleType, edit: Callable[[Any], None]) -> str:
    """Return the problems of the plan whose last step was edited, as one text."""
    document = copy.deepcopy(plan_to_dict(plan, with_timing=False))
    edit(document["steps"][-1]["segments"])
    report = tk.validate_plan(plan_from_dict(document), domain=example.DOMAIN)
    return "\n".join(report.problems)


def test_the_examples_are_valid(pressing: Plan, wiping: Plan, insertion: Plan) -> None:
    """Each plan passes the validator; no parent changes but by grasp and release."""
    for plan, example in ((pressing, PRESS), (wiping, WIPE), (insertion, PEG)):
        report = tk.validate_plan(plan, domain=example.DOMAIN)
        assert report.is_valid, report.problems
    assert "pressed" in pressing.final_scene.classes("start")
    assert insertion.final_scene.parent("peg") == "hole"
    before, step = wiping.steps
    covered = WIPE.coverage(before.scene, before.q, step.segments, region="stain", sponge="sponge")
    assert covered > 0.995
    halves = step.segments[: len(step.segments) // 2]
    half = WIPE.coverage(before.scene, before.q, halves, region="stain", sponge="sponge")
    assert 0.2 < half < 0.9


def test_plan_files_keep_what_lines_touch(pressing: Plan, tmp_path: Path) -> None:
    """A plan read from its file equals the plan, and the format of TMKit rejects it."""
    tk.save_plan(pressing, tmp_path / "press.json")
    assert tk.load_plan(tmp_path / "press.json") == pressing
    assert pressing.steps[0].segments[-1].touching == ("start",)
    with pytest.raises(PlanFileError, match="touches 'start', which the format cannot express"):
        tk.save_plan(pressing, tmp_path / "press.tmp")


def test_a_stored_plan_with_a_line_is_read() -> None:
    """The first plan file with a line that touches is valid for ever."""
    plan = tk.load_plan(STORED)
    assert [segment.touching for segment in plan.steps[0].segments] == [
        (),
        (),
        ("start",),
        ("start",),
    ]
    report = tk.validate_plan(plan, domain=PRESS.DOMAIN)
    differences = [text for text in report.problems if "differs from the plan's domain" not in text]
    assert differences == []


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda s: s[2].pop("touching"), "and 'start' collide"),
        (lambda s: s[2].update(touching=["table"]), "mm from 'table', which the line should touch"),
        (
            lambda s: s[2].update(touching=["start", "panda_link3"]),
            "'panda_link3' is a frame of an arm",
        ),
        (lambda s: s[1].update(touching=["start"]), "it touches 'start', which only a line does"),
        (lambda s: s[2].update(held="start"), "it is to carry 'start', but in the hand is nothing"),
        (lambda s: s[2].update(kind="transit"), "which only a line does"),
        (
            lambda s: s[2].update(
                exemptions=[[*entry[:2], None, entry[3]] for entry in s[2]["exemptions"]]
            ),
            "panda_leftfinger and start: not checked",
        ),
        (
            lambda s: s[3]["gripper"].update(panda_finger_joint1=0.02),
            "the fingers move during a line",
        ),
        (
            lambda s: s[2].update(path=[s[2]["path"][0], s[1]["path"][0], s[2]["path"][-1]]),
            "the tool deviates from the straight line",
        ),
        (
            lambda s: s[2].update(
                reparent={"frame": "start", "parent": "world", "pose": [0, 0, 0, 0, 0, 0, 1]}
            ),
            "it reparents 'start', which a line does not",
        ),
    ],
)
def test_contact_that_is_not_declared_is_a_problem(
    pressing: Plan, edit: Callable[[Any], None], problem: str
) -> None:
    """Each edit of the press is found by the validator."""
    assert problem in problems_of(pressing, PRESS, edit)


def test_the_held_object_touches_only_what_is_declared(wiping: Plan, insertion: Plan) -> None:
    """A deeper wipe collides with the table, and an insertion without its touch is refused."""
    lines = [segment for segment in wiping.steps[-1].segments if segment.touching]
    assert {segment.touching for segment in lines} == {("table",)}
    assert {segment.held for segment in lines} == {"sponge"}
    assert "which the line should touch" in problems_of(
        insertion, PEG, lambda s: s[1].update(touching=["hole"])
    )
    assert insertion.steps[-1].segments[1].touching == ()


@pytest.mark.parametrize(
    ("example", "scene", "goal", "causes"),
    [
        (PRESS, PRESS.button_scene(), "(pressed start)", ["'obstacle'"]),
        (WIPE, WIPE.wiping_scene(), "(wiped stain)", ["'obstacle'"]),
        (PEG, PEG.insertion_scene(), "(inserted peg hole)", ["'obstacle'"]),
        (PEG, PEG.insertion_scene(0.0005), "(inserted peg hole)", ["(insert peg hole)", "'hole'"]),
    ],
    ids=["press", "wipe", "peg", "tight hole"],
)
def test_obstacles_are_causes(
    example: ModuleType, scene: SceneGraph, goal: str, causes: list[str]
) -> None:
    """An obstacle over the contact, or too little clearance, fails with the frames in the way."""
    if "'obstacle'" in causes:
        frame = {PRESS: "start", WIPE: "stain", PEG: "hole"}[example]
        pose = tk.Pose([0.0, 0.0, 0.1]) @ tk.Pose(scene.pose(frame).translation)
        shapes = [tk.AttachedShape(tk.Box([0.02, 0.1, 0.02]))]
        scene = scene.add_frame("obstacle", "world", pose=pose, shapes=shapes)
    result = solve(example, scene, goal)
    assert result.plan is None
    for cause in causes:
        assert cause in str(result.explanation)


class _Strokes(PRESS.ButtonSemantics):  # type: ignore[name-defined, misc]
    """A button is pressed by a touch of a random depth and strokes along its top."""

    depth = 0.0
    strokes: tuple[tuple[float, float], ...] = ()

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Candidate]:
        """Yield the touch, the strokes and the retreat."""
        (button,) = action.arguments
        above = context.scene.pose(button, q=context.q) @ tk.Pose.from_rpy(
            [0.0, 0.0, 0.1], [np.pi, 0.0, 0.0]
        )
        yield Sequence(
            (
                CloseHand(),
                MoveTo(above),
                Touch(button, by=[0.0, 0.0, -0.1], depth=self.depth),
                *(MoveStraight([x, y, 0.0], touching=(button,)) for x, y in self.strokes),
                MoveStraight([0.0, 0.0, 0.05], touching=(button,)),
                ApplyEffects((ClassEffect(button, added=("pressed",)),)),
            ),
            object=button,
        )


@settings(max_examples=scaled_examples(0.1), deadline=None)
@given(
    place=st.tuples(st.floats(-0.25, 0.25), st.floats(-0.25, 0.25), st.floats(0.05, 0.3)),
    depth=st.floats(0.0, 0.0019),
    strokes=st.lists(st.tuples(st.floats(-0.05, 0.05), st.floats(-0.05, 0.05)), max_size=2),
)
def test_the_validator_accepts_what_is_planned(
    place: tuple[float, float, float], depth: float, strokes: list[tuple[float, float]]
) -> None:
    """Any touch and strokes that the planner finds are valid, also when read from a file."""
    plate = [tk.AttachedShape(tk.Box([0.3, 0.3, 0.02]))]
    scene = gantry_scene().add_frame(
        "plate", "world", pose=tk.Pose(place), shapes=plate, classes=["button"]
    )
    semantics = type("Semantics", (_Strokes,), {"depth": depth, "strokes": tuple(strokes)})
    domain = PythonDomain(PRESS.DOMAIN.domain, semantics)
    options = tk.PlanningOptions(max_iterations=1)
    result = tk.plan(
        scene, domain=domain, goal="(pressed plate)", robot=GANTRY, seed=0, options=options
    )
    if result.plan is None:  # a stroke leaves the workspace or the plate
        assert strokes, result.explanation
        return
    assert tk.validate_plan(result.plan, domain=domain).problems == ()
    document = plan_to_dict(result.plan)
    assert tk.validate_plan(plan_from_dict(document), domain=domain).problems == ()


def test_the_simulator_notes_contact_that_is_not_declared(pressing: Plan) -> None:
    """Declared contact is no note; the same motion without the declaration is one."""
    report = tk.simulate(pressing)
    assert report.is_successful
    assert report.notes == ()
    document = plan_to_dict(pressing, with_timing=False)
    for segment in document["steps"][-1]["segments"]:
        segment.pop("touching", None)
    report = tk.simulate(plan_from_dict(document))
    assert any("touched 'start' during line" in str(note) for note in report.notes)
