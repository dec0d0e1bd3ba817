"""Lessons of failed refinements: capacities, contexts, alike objects and impossible actions, in real scenes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.blocks import blocks_scene
from support.gantry import BLOCK, GANTRY, with_block
from support.kitchen import ROBOT, kitchen, stove_goal

from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.manipulation import MotionSettings
from tmkit.manipulation.actions.pick_place import arm_motion_planners
from tmkit.manipulation.actions.timing_breakdown import StageClock
from tmkit.manipulation.placements.sampling import Placement
from tmkit.motion import CollisionRules
from tmkit.pddl import GroundAction
from tmkit.plans import FailureKind, MotionFailure
from tmkit.robots import Manipulator, load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp import load_planning_domain
from tmkit.tamp.domains.problems import derive_problem
from tmkit.tamp.search.lessons import Lessons
from tmkit.tamp.search.refinement import Cause, RefinementBudget, RefinementOutcome, refine_skeleton
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.version_tree import FailureLog, FailureRecord, SceneVersion, VersionTree
from tmkit.task_planning import FastDownward
from tmkit.task_planning.guide import OperatorConstraint


def action(text: str) -> GroundAction:
    """Return a ground action from its name and arguments."""
    name, *arguments = text.split()
    return GroundAction(name, tuple(arguments))


@dataclass(frozen=True, eq=False)
class Lesson:
    """A lesson in PDDL.

    Attributes:
        constraint: the lesson.
        facts: its facts.
        actions: the actions of its operators.
    """

    constraint: OperatorConstraint
    facts: set[str]
    actions: set[str]


class Learner:
    """The lessons of one task, with its versions."""

    def __init__(
        self, scene: SceneGraph, goal: str, *, domain: str, robot: Manipulator = GANTRY
    ) -> None:
        q = robot.ready_configuration(scene)
        loaded = load_planning_domain(domain, manipulator=robot)
        problem = derive_problem(scene, loaded, q=q, goal=goal)
        arms = arm_motion_planners(
            (robot,), budget=MotionSettings(), rules=CollisionRules.from_start(robot, scene, q=q)
        )
        log, clock = FailureLog(), StageClock()
        self.tree = VersionTree(
            scene, q, problem=problem, domain=loaded, arms=arms, seed=0, log=log, clock=clock
        )
        self.guide = TaskGuide(FastDownward().prepare(problem, time_limit=60.0))
        self.lessons = Lessons(self.tree, self.guide)

    def refine(self, *texts: str, attempts: int = 64) -> RefinementOutcome:
        """Refine a task plan without a time limit."""
        budget = RefinementBudget(attempts_per_node=attempts, attempts=100_000)
        return refine_skeleton(
            [action(text) for text in texts], self.tree, budget=budget, is_over=lambda: False
        )

    def after(self, *texts: str) -> SceneVersion:
        """Return the version after actions that have motions."""
        outcome = self.refine(*texts)
        assert outcome.steps is not None
        return outcome.path[-1]

    def lesson(self, outcome: RefinementOutcome) -> Lesson:
        """Return the lesson of an outcome, which has one."""
        constraint = self.lessons.of(outcome)
        assert constraint is not None
        facts = {str(self.guide.task.fact_of(pair)) for pair in constraint.facts}
        return Lesson(
            constraint, facts, {str(self.guide.actions[number]) for number in constraint.operators}
        )

    def failed(
        self, version: SceneVersion, text: str, kind: FailureKind, *frames: str
    ) -> RefinementOutcome:
        """Return the outcome of an action that failed at a version because of some frames."""
        failure = MotionFailure(
            "placing", "a failure", tuple((frames[0], other) for other in frames[1:]), kind=kind
        )
        record = FailureRecord(action(text), failure, frozenset(frames), version.scene, version.q)
        cause = Cause(action(text), version, frozenset(frames), is_proved=False)
        return RefinementOutcome(None, cause, records=(record,))


def surrounded_scene() -> SceneGraph:
    """Return block b among four high ones with gaps of 1.5 mm, and another block far away."""
    scene = blocks_scene({"b": (0, 0)}, table=0.8)
    tall = Box([BLOCK, BLOCK, 0.15])
    for name, x, y in (
        ("north", 0.0, 1.0),
        ("south", 0.0, -1.0),
        ("east", 1.0, 0.0),
        ("west", -1.0, 0.0),
    ):
        scene = with_block(scene, name, [x * 0.0515, y * 0.0515, 0.075], shape=tall)
    return with_block(scene, "other", [0.3, 0.3, BLOCK / 2])


def test_a_context_names_the_blockers_alone() -> None:
    """The neighbours keep the hand from b; the place of another block is no part of the lesson."""
    learner = Learner(surrounded_scene(), "(on b other)", domain="blocks")
    outcome = learner.refine("pick-up b table__0__0", attempts=200)
    lesson = learner.lesson(outcome)
    assert lesson.actions == {"(pick-up b table__0__0)"}
    assert lesson.facts
    assert all(fact.split()[1] in {"north", "south", "east", "west"} for fact in lesson.facts)
    assert "(ontable b table__0__0)" in lesson.constraint.reason
    assert not lesson.constraint.is_proved
    assert lesson.constraint.limit == len(lesson.facts) - 1

    # The task planner now moves a neighbour before b.
    values = learner.guide.values(learner.tree.root.state)
    learner.guide.forbid(lesson.constraint)
    plan = learner.guide.plan(values)
    assert plan is not None
    picked = [learner.guide.actions[number].arguments[0] for number in plan]
    assert picked[0] in {"north", "south", "east", "west"}


def mat_scene(on_mat: str, on_table: str) -> SceneGraph:
    """Return blocks on a mat that has no room for another, and blocks on the table."""
    scene = blocks_scene(
        {name: (number - 2.5, -2) for number, name in enumerate(on_table)}, table=0.8
    )
    length = 0.055 * len(on_mat)
    shape = AttachedShape(Box([length, 0.055, 0.01]))
    scene = scene.add_frame(
        "mat", "world", pose=Pose([0.0, 0.2, 0.005]), classes=["region"], shapes=[shape]
    )
    for number, name in enumerate(on_mat):
        x = 0.055 * (number + 0.5) - length / 2
        scene = with_block(scene, name, [x, 0.2, 0.01 + BLOCK / 2], parent="mat")
    return scene


def all_on_mat(names: str) -> str:
    """Return the goal that blocks are on the mat."""
    return "(and " + " ".join(f"(on {name} mat)" for name in names) + ")"


@pytest.mark.parametrize(
    ("on_mat", "wanted", "limit"),
    [("ab", "cd", 2), ("abc", "de", 3), ("ab", "cde", 3), ("abc", "abcde", 5), ("abcde", "f", 5)],
)
def test_a_capacity_is_never_below_the_goal_or_the_present(
    on_mat: str, wanted: str, limit: int
) -> None:
    """At most the greater number of the blocks on the mat and those wanted there is put there."""
    on_table = "".join(sorted(set("abcdef") - set(on_mat)))
    learner = Learner(mat_scene(on_mat, on_table), all_on_mat(wanted), domain="kitchen")
    name = on_table[0]
    lesson = learner.lesson(learner.refine(f"pick {name} table", f"place {name} mat", attempts=16))
    assert lesson.actions == {f"(place {each} mat)" for each in "abcdef"}
    assert lesson.facts == {f"(on {each} mat)" for each in "abcdef"}
    assert lesson.constraint.limit == limit - 1  # before an action that adds one
    assert lesson.constraint.reason == f"'mat' holds {limit} of these"
    assert not lesson.constraint.is_proved


@pytest.mark.parametrize(
    ("on_mat", "on_table", "wanted"), [("a", "bcd", "b"), ("abc", "d", "abcd")]
)
def test_no_capacity_is_learned_that_would_say_nothing(
    on_mat: str, on_table: str, wanted: str
) -> None:
    """A region for one block is told by its context; one that has to hold all blocks has no bound."""
    learner = Learner(mat_scene(on_mat, on_table), all_on_mat(wanted), domain="kitchen")
    name = on_table[0]
    outcome = learner.refine(f"pick {name} table", f"place {name} mat", attempts=16)
    constraint = learner.lessons.of(outcome)
    assert constraint is not None
    assert "holds" not in constraint.reason
    assert constraint.operators


def test_a_lesson_of_a_held_object_is_one_of_all_that_are_alike() -> None:
    """No place for a block in the hand is none for its like; a pick and a taller block have their own."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1), "c": (-1, 1)}, table=0.6)
    scene = with_block(scene, "tall", [0.1, -0.2, 0.06], shape=Box([BLOCK, BLOCK, 0.12]))
    learner = Learner(scene, "(on a b)", domain="blocks")
    held = learner.after("pick-up a table__0__0")
    outcome = learner.failed(held, "stack a c", FailureKind.COLLISION, "hand", "c", "tall")
    lesson = learner.lesson(outcome)
    assert lesson.actions == {"(stack a c)", "(stack b c)"}
    assert lesson.facts == {"(ontable c table__-1__1)", "(ontable tall table__1__-2)"}

    outcome = learner.failed(
        learner.tree.root, "pick-up a table__0__0", FailureKind.COLLISION, "hand", "c"
    )
    assert learner.lesson(outcome).actions == {"(pick-up a table__0__0)"}


def test_a_fact_that_several_objects_may_share_is_no_context() -> None:
    """On a region there is room for many: where the blocker is, is not said, so the lesson is of every state."""
    learner = Learner(blocks_scene({"a": (0, 0), "b": (0.6, 0)}), "(holding a)", domain="kitchen")
    outcome = learner.failed(
        learner.tree.root, "pick a table", FailureKind.COLLISION, "hand", "a", "b"
    )
    lesson = learner.lesson(outcome)
    assert not lesson.facts
    assert lesson.constraint.limit == -1
    assert not lesson.constraint.is_proved

    # No plan is left, so the search drops it; without it there is one.
    values = learner.guide.values(learner.tree.root.state)
    learner.guide.forbid(lesson.constraint)
    assert learner.guide.plan(values) is None
    assert learner.guide.plan_anyway(values) is not None
    assert not learner.guide.is_unsolvable(values)
    learner.guide.forget(lesson.constraint)
    assert learner.guide.plan(values) is not None


def test_an_impossible_action_is_proved_and_stays() -> None:
    """A block wider than the hand opens cannot be picked in any state; lifting assumptions leaves that."""
    scene = with_block(
        blocks_scene({"b": (1, 1)}, table=0.4), "a", [0.0, 0.0, 0.05], shape=Box([0.1] * 3)
    )
    learner = Learner(scene, "(on b a)", domain="blocks")
    lesson = learner.lesson(learner.refine("pick-up a table__0__0"))
    assert lesson.constraint.is_proved
    assert lesson.actions == {"(pick-up a table__0__0)"}
    assert (lesson.facts, lesson.constraint.limit) == (set(), -1)
    learner.guide.forbid(lesson.constraint)
    assert not learner.guide.lift()
    values = learner.guide.values(learner.tree.root.state)
    picks = {
        str(learner.guide.actions[number]) for number in learner.guide.applicable_anyway(values)
    }
    assert "(pick-up a table__0__0)" not in picks
    assert "(pick-up b table__1__1)" in picks


def test_a_region_for_one_object_has_to_be_left_by_the_one_that_is_there() -> None:
    """The stove has room for the pot alone: the block is put there only while the pot is elsewhere."""
    scene = kitchen(1)
    height = scene.shapes("stove")[0].shape.bounds[1][2]
    shapes = [AttachedShape(Box([0.2, 0.2, 0.1]))]
    scene = scene.add_frame(
        "pot", "stove", pose=Pose([0.0, 0.0, height + 0.05]), classes=["movable"], shapes=shapes
    )
    learner = Learner(scene, stove_goal(1), domain="kitchen", robot=load_manipulator(ROBOT))
    lesson = learner.lesson(learner.refine("pick b0 floor", "place b0 stove", attempts=16))
    assert lesson.actions == {"(place b0 stove)"}
    assert "(on pot stove)" in lesson.facts
    learner.guide.forbid(lesson.constraint)
    plan = learner.guide.plan(learner.guide.values(learner.tree.root.state))
    assert plan is not None
    actions = [str(learner.guide.actions[number]) for number in plan]
    assert actions.index("(pick pot stove)") < actions.index("(place b0 stove)")


def test_one_arranged_place_proves_nothing() -> None:
    """An arranged place replaces all others, so its failure is no proof; without it, the others come back."""
    learner = Learner(kitchen(1), "(on b0 stove)", domain="kitchen", robot=load_manipulator(ROBOT))
    held, place = learner.after("pick b0 floor"), action("place b0 stove")
    free = learner.tree.expansion(held, place)
    learner.tree.arrange({("b0", "stove"): Placement("stove", Pose([0.0, 0.0, 5.0]), "far above")})
    outcome = learner.refine("pick b0 floor", "place b0 stove")
    arranged = learner.tree.expansion(held, place)
    assert arranged is not free
    assert arranged.is_exhausted
    assert not arranged.is_impossible
    assert outcome.steps is None
    assert outcome.impossible is None
    assert outcome.cause is not None
    assert not outcome.cause.is_proved
    learner.tree.arrange({})
    assert learner.tree.expansion(held, place) is free
    assert learner.refine("pick b0 floor", "place b0 stove").steps is not None
