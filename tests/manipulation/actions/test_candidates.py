"""Actions without pick or place: moving to a configuration, and changing frames."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.blocks import blocks_scene, with_box
from support.gantry import BLOCK, GANTRY, HEIGHT, REACH, with_block

import tmkit as tk
from tmkit.errors import FileFormatError, SceneError, UnknownNameError
from tmkit.graph import SceneGraph
from tmkit.manipulation import ActionMotion, ArmMotionPlanner, MotionSettings, grasps_of
from tmkit.manipulation.actions.primitives import WIDE_MARGIN, MotionPrimitives
from tmkit.motion import CollisionRules
from tmkit.motion.collision_rules import PLANNING_MARGIN
from tmkit.plans import ClassEffect, MotionFailure, Plan, SegmentKind
from tmkit.plans.class_changes import apply_effects
from tmkit.plans.plan_file import plan_from_dict, plan_to_dict
from tmkit.tamp import ValidationReport, load_tmp_plan

PDDL = """
(define (domain wash)
  (:requirements :typing)
  (:types block - object)
  (:predicates (dirty ?b - block) (clean ?b - block) (holding ?b - block)
    (handempty) (athome) (away))
  (:action wash :parameters (?b - block) :precondition (dirty ?b)
    :effect (and (clean ?b) (not (dirty ?b))))
  (:action go-home :parameters () :precondition (away) :effect (and (athome) (not (away))))
  (:action pick :parameters (?b - block) :precondition (and (handempty) (athome))
    :effect (and (holding ?b) (not (handempty)) (not (athome)) (away))))
"""

SEMANTICS = """
import numpy as np
from tmkit.robots import movable_frames
from tmkit.manipulation import ApplyEffects, MoveTo, Pick, grasps_of
from tmkit.plans import ClassEffect
from tmkit.pddl import Fact, State
from tmkit.tamp import DomainSemantics


class Semantics(DomainSemantics):
    def objects(self, scene):
        return {frame: "block" for frame in movable_frames(scene)}

    def state(self, scene, objects, q):
        arm = self.robot
        held = [frame for frame in movable_frames(scene) if scene.parent(frame) == arm.tip]
        facts = [
            Fact.of("clean" if "clean" in scene.classes(frame) else "dirty", frame)
            for frame in objects
        ]
        facts += [Fact.of("holding", frame) for frame in held] or [Fact.of("handempty")]
        names = arm.joint_indices(scene)
        ready = [arm.ready[joint] for joint in arm.joints]
        is_away = not np.allclose(q[names], ready, atol=1e-6, rtol=0.0)
        return State([*facts, Fact.of("away" if is_away else "athome")])

    def candidates(self, action, context):
        if action.name == "wash":
            yield ApplyEffects((ClassEffect(action.arguments[0], added=("clean",)),), "with water")
        elif action.name == "go-home":
            yield MoveTo(self.robot.ready, "home")
        else:
            object = action.arguments[0]
            for grasp in grasps_of(context.scene, object, robot=self.robot):
                yield Pick(object, grasp)
"""

GOAL = "(and (clean a) (holding b) (athome))"


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A domain with an action that only moves and one that moves nothing."""
    folder = tmp_path_factory.mktemp("wash")
    (folder / "domain.pddl").write_text(PDDL)
    (folder / "semantics.py").write_text(SEMANTICS)
    return folder


@pytest.fixture(scope="module")
def plan(domain: Path) -> Plan:
    """Wash one block, take the other, and go home with it."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4)
    result = tk.plan(scene, domain=domain, goal=GOAL, robot=GANTRY)
    assert result.plan is not None, result.explanation
    return result.plan


def step_of(plan: Plan, name: str) -> Any:
    """Return the step of an action."""
    return next(step for step in plan.steps if step.action.name == name)


def check_edited(plan: Plan, domain: Path, *edits: Callable[[Any], None]) -> ValidationReport:
    """Check the plan whose file was edited."""
    document = copy.deepcopy(plan_to_dict(plan))
    for edit in edits:
        edit(document)
    return tk.validate_plan(plan_from_dict(document), domain=domain)


def wash_of(document: Any) -> Any:
    """Return the step in the file that changes classes."""
    return next(step for step in document["steps"] if "classes" in step)


def test_a_move_home_carries_what_the_hand_holds(plan: Plan) -> None:
    """A move has one segment: a transfer of the held object to the given values."""
    step = step_of(plan, "go-home")
    assert [(segment.kind, segment.held) for segment in step.segments] == [
        (SegmentKind.TRANSFER, "b")
    ]
    arm = GANTRY.joint_indices(plan.scene)
    np.testing.assert_array_equal(step.q[arm], [GANTRY.ready[joint] for joint in GANTRY.joints])
    assert step.choice == "to home"


def test_a_change_moves_nothing_and_shows_in_the_scene(plan: Plan) -> None:
    """An action without motion leads to a version that differs in classes alone."""
    step = step_of(plan, "wash")
    assert step.segments == ()
    assert step.changes == (ClassEffect("a", added=("clean",)),)
    assert "clean" in step.scene.classes("a")
    assert "clean" in plan.final_scene.classes("a")
    index = plan.steps.index(step)
    before = plan.scene if index == 0 else plan.steps[index - 1].scene
    assert step.scene.set_classes("a", before.classes("a")) == before


def test_the_checker_accepts_moves_and_changes(plan: Plan, domain: Path, tmp_path: Path) -> None:
    """The plan passes, from memory and from its file, and the file has the same bytes again."""
    report = tk.validate_plan(plan, domain=domain)
    assert report.is_valid, report.problems
    tk.save_plan(plan, tmp_path / "plan.json")
    loaded = tk.load_plan(tmp_path / "plan.json")
    assert tk.validate_plan(loaded, domain=domain).is_valid
    tk.save_plan(loaded, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "plan.json").read_bytes()


def test_the_simulator_plays_moves_and_changes(plan: Plan) -> None:
    """A step without segments takes no time, and a transfer home keeps the object in the hand."""
    report = tk.simulate(plan, options=tk.SimulationOptions(grasp="constraint"))
    assert report.is_successful, report.notes


def test_plans_of_the_original_keep_moves_and_changes(
    plan: Plan, domain: Path, tmp_path: Path
) -> None:
    """The format has no classes; the semantics restores the changes of an action."""
    tk.save_plan(plan, tmp_path / "plan.tmp")
    loaded = load_tmp_plan(
        tmp_path / "plan.tmp", plan.scene, domain=domain, robot=GANTRY, goal=GOAL
    )
    assert step_of(loaded, "wash").changes == step_of(plan, "wash").changes
    report = tk.validate_plan(loaded, domain=domain)
    assert report.is_valid, report.problems


def test_the_checker_refuses_other_changes(plan: Plan, domain: Path) -> None:
    """An omitted change, or one of another frame, contradicts the effects of the domain."""

    def forget(document: Any) -> None:
        del wash_of(document)["classes"]

    def other(document: Any) -> None:
        wash_of(document)["classes"][0]["frame"] = "b"

    for edit in (forget, other):
        report = check_edited(plan, domain, edit)
        assert any("the derived state differs" in problem for problem in report.problems)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frame": "c", "added": ["clean"], "removed": []}, "'c'"),
        ({"frame": "a", "added": [], "removed": ["movable"]}, "marks a movable object"),
        ({"frame": "a", "added": [], "removed": ["clena"]}, "no class 'clena' to lose"),
        ({"frame": "a", "added": [], "removed": []}, "names none"),
        ({"frame": "a", "added": ["clean", "clean"], "removed": []}, "one twice"),
        ({"frame": "a", "added": ["clean"]}, "needs the key 'removed'"),
        ({"frame": "a", "added": ["clean"], "removed": [], "why": ""}, "unknown key 'why'"),
        ({"frame": "a", "added": "clean", "removed": []}, "expected a list"),
    ],
)
def test_files_with_impossible_changes_are_refused(plan: Plan, change: Any, message: str) -> None:
    """A change that cannot be made names the place in the file."""
    document = copy.deepcopy(plan_to_dict(plan))
    wash_of(document)["classes"] = [change]
    with pytest.raises(FileFormatError, match=message):
        plan_from_dict(document)


def test_class_changes_change_something_or_are_refused() -> None:
    """Adding a present class and removing an absent one are errors; the order is kept."""
    scene = blocks_scene({"a": (0, 0)}).set_classes("a", ["movable", "dirty", "red"])
    washed = apply_effects(scene, [ClassEffect("a", added=("clean",), removed=("dirty",))])
    assert list(washed.classes("a")) == ["movable", "red", "clean"]
    assert list(scene.classes("a")) == ["movable", "dirty", "red"]
    assert apply_effects(washed, [ClassEffect("a", added=("dirty",), removed=("clean",))]) != scene
    assert str(ClassEffect("a", added=("clean",), removed=("dirty",))) == "a +clean -dirty"
    with pytest.raises(SceneError, match="has the class 'red' already"):
        apply_effects(scene, [ClassEffect("a", added=("red",))])
    with pytest.raises(SceneError, match="which no action changes"):
        apply_effects(scene, [ClassEffect("a", removed=("movable",))])


def _arm_in(scene: SceneGraph) -> ArmMotionPlanner:
    return ArmMotionPlanner(GANTRY, budget=MotionSettings(), rules=CollisionRules(GANTRY))


def test_moves_say_why_they_fail() -> None:
    """A goal in collision is a failure with its pair; an unknown joint is an error."""
    scene = blocks_scene({"a": (0, 0)})
    q = np.array(GANTRY.ready_configuration(scene))
    down = {"x": 0.0, "y": 0.0, "z": 0.7}
    (failed,) = _arm_in(scene).move(scene, q, to=down, name="the block", seed=0)
    assert isinstance(failed, MotionFailure)
    assert failed.phase == "to the block"
    assert "its end collides" in failed.cause
    assert failed.pairs
    with pytest.raises(UnknownNameError, match="elbow"):
        list(_arm_in(scene).move(scene, q, to={"elbow": 0.0}, name="nowhere", seed=0))


@pytest.mark.parametrize(
    ("room", "is_solved"), [(0.2, True), (0.025, True), (0.014, True), (0.004, False)]
)
def test_straight_ways_end_where_the_arm_cannot_follow_them(room: float, is_solved: bool) -> None:
    """Lines have full length if the joints allow it, or else at least a tenth of it."""
    # the column is at its upper end ``room`` above the grasp
    top = HEIGHT - REACH - BLOCK / 2 - room
    scene = with_box(blocks_scene({}), "pedestal", (-0.03, -0.03, 0.0), (0.03, 0.03, top))
    scene = with_block(scene, "a", [0.0, 0.0, top + BLOCK / 2], parent="pedestal")
    q = GANTRY.ready_configuration(scene)
    grasp = next(
        grasp
        for grasp in grasps_of(scene, "a", robot=GANTRY)
        if grasp.object_from_tool.translation == pytest.approx([0.0, 0.0, 0.0])
        and grasp.object_from_tool.rotate([0.0, 0.0, 1.0]) == pytest.approx([0.0, 0.0, -1.0])
    )
    refinement = next(iter(_arm_in(scene).pick(scene, q, object="a", grasp=grasp, seed=0)))
    if not is_solved:
        assert isinstance(refinement, MotionFailure)
        assert "the straight line meets the limit of joint 'z'" in refinement.cause
        return
    assert isinstance(refinement, ActionMotion), refinement
    budget, column = MotionSettings(), GANTRY.joints.index("z")
    for kind, whole in (
        (SegmentKind.APPROACH, budget.approach_distance),
        (SegmentKind.LIFT, budget.lift_distance),
    ):
        path = next(segment.path for segment in refinement.segments if segment.kind is kind)[
            :, column
        ]
        assert abs(path[-1] - path[0]) == pytest.approx(min(whole, room), abs=0.005)


def test_searched_paths_keep_room_to_spare() -> None:
    """A path keeps the wide margin if there is room, or else the planning margin."""
    for gap, margin in ((0.2, WIDE_MARGIN), (0.004, PLANNING_MARGIN)):
        scene = blocks_scene({}, table=0.8)
        for name, low, high in (("one", -1.0, -0.03 - gap), ("other", 0.03 + gap, 1.0)):
            scene = with_box(scene, name, (low, -0.01, 0.0), (high, 0.01, 0.9))
        primitives = MotionPrimitives(GANTRY, budget=MotionSettings())
        q = GANTRY.ready_configuration(scene)
        ends = [scene.configuration({"x": 0.0, "y": y, "z": 0.0}, base=q) for y in (-0.3, 0.3)]
        phase = primitives.phase(scene, ())
        path = primitives.plan_path(phase, ends[0], np.array(ends[1:]), seed=0, label="transit")
        rows = [
            a + (b - a) * share
            for a, b in itertools.pairwise(path)
            for share in np.linspace(0.0, 1.0, 100)
        ]
        distances = [
            phase.check_world.distance("hand", wall, row)
            for wall in ("one", "other")
            for row in rows
        ]
        nearest = min(contact.distance for contact in distances if contact is not None)
        assert margin - 1e-4 <= nearest <= gap + 1e-9
