"""Constraints learned from failed refinements: capacities, contexts and impossible actions."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.blocks import blocks_scene
from support.gantry import BLOCK, GANTRY, with_block
from support.kitchen import ROBOT, kitchen, stove_goal

from tmkit.graph import AttachedShape, Box, SceneGraph
from tmkit.manipulation.placements.sampling import Placement
from tmkit.pddl import GroundAction
from tmkit.plans import FailureKind, MotionFailure
from tmkit.robots import Manipulator, load_manipulator
from tmkit.spatial import Pose
from tmkit.tamp import PlanningOptions, load_planning_domain
from tmkit.tamp.context import PlanningContext
from tmkit.tamp.search.constraint_learning import ConstraintLearner
from tmkit.tamp.search.refinement import (
    Cause,
    RefinementBudget,
    RefinementMonitor,
    RefinementOutcome,
    refine_skeleton,
)
from tmkit.tamp.search.task_guide import TaskGuide
from tmkit.tamp.search.transfer_comparison import TransferComparison
from tmkit.tamp.version_tree import FailureRecord, SceneVersion
from tmkit.task_planning import FastDownward
from tmkit.task_planning.guide import OperatorConstraint


def action(text: str) -> GroundAction:
    """Return a ground action from its name and arguments."""
    name, *arguments = text.split()
    return GroundAction(name, tuple(arguments))


@dataclass(frozen=True, eq=False)
class PddlConstraint:
    """A learned constraint in PDDL.

    Attributes:
        original: the constraint on operators.
        facts: its facts.
        actions: the actions of its operators.
    """

    original: OperatorConstraint
    facts: set[str]
    actions: set[str]


class LearnerFixture:
    """Constraint learner of one task, with its versions."""

    def __init__(
        self, scene: SceneGraph, goal: str, *, domain: str, robot: Manipulator = GANTRY
    ) -> None:
        q = robot.ready_configuration(scene)
        loaded = load_planning_domain(domain, robot=robot)
        problem = loaded.problem(scene, q, goal)
        context = PlanningContext(scene, q, (robot,), loaded, problem, PlanningOptions(), goal)
        log = context.new_log()
        self.tree = context.tree(log, problem, loaded, seed=0)
        self.guide = TaskGuide(FastDownward().prepare(problem, time_limit=60.0))
        comparison = TransferComparison(context, log, self.tree, self.guide, seed=0)
        self.learner = ConstraintLearner(self.tree, self.guide, comparison)

    def refine(self, *texts: str, attempts: int = 64) -> RefinementOutcome:
        """Refine a task plan without a time limit."""
        budget = RefinementBudget(attempts_per_node=attempts, attempts=100_000)
        actions = [action(text) for text in texts]
        monitor = RefinementMonitor(is_over=lambda: False)
        return refine_skeleton(actions, self.tree, budget=budget, monitor=monitor)

    def after(self, *texts: str) -> SceneVersion:
        """Return the version after actions that have motions."""
        outcome = self.refine(*texts)
        assert outcome.steps is not None
        return outcome.path[-1]

    def learn(self, outcome: RefinementOutcome) -> PddlConstraint:
        """Return the constraint of an outcome that has one."""
        constraint = self.learner.learn(outcome)
        assert constraint is not None
        facts = {str(self.guide.task.fact_of(pair)) for pair in constraint.facts}
        return PddlConstraint(
            constraint, facts, {str(self.guide.actions[number]) for number in constraint.operators}
        )

    def make_failure(
        self, version: SceneVersion, text: str, kind: FailureKind, *frames: str
    ) -> RefinementOutcome:
        """Return the outcome of an action that fails in a version because of given frames."""
        failure = MotionFailure(
            "placing", "a failure", tuple((frames[0], other) for other in frames[1:]), kind=kind
        )
        record = FailureRecord(action(text), failure, frozenset(frames), version.scene, version.q)
        cause = Cause(action(text), version, frozenset(frames), is_proved=False)
        return RefinementOutcome(None, cause, records=(record,))


def make_surrounded_scene() -> SceneGraph:
    """Return block b between four tall ones with gaps of 1.5 mm, and another block far away."""
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
    """The context has the poses of the neighbours that block the hand, and no other pose."""
    fixture = LearnerFixture(make_surrounded_scene(), "(on b other)", domain="blocks")
    outcome = fixture.refine("pick-up b table__0__0", attempts=200)
    constraint = fixture.learn(outcome)
    assert constraint.actions == {"(pick-up b table__0__0)"}
    assert constraint.facts
    assert all(fact.split()[1] in {"north", "south", "east", "west"} for fact in constraint.facts)
    assert "(ontable b table__0__0)" in constraint.original.reason
    assert not constraint.original.is_proved
    assert constraint.original.limit == len(constraint.facts) - 1

    # The task planner now moves a neighbour before b.
    values = fixture.guide.values(fixture.tree.root.state)
    fixture.guide.forbid(constraint.original)
    plan = fixture.guide.plan(values)
    assert plan is not None
    picked_objects = [fixture.guide.actions[number].arguments[0] for number in plan]
    assert picked_objects[0] in {"north", "south", "east", "west"}


def make_mat_scene(on_mat: str, on_table: str) -> SceneGraph:
    """Return blocks on a full mat and blocks on the table."""
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


def goal_on_mat(names: str) -> str:
    """Return the goal that blocks are on the mat."""
    return "(and " + " ".join(f"(on {name} mat)" for name in names) + ")"


@pytest.mark.parametrize(
    ("on_mat", "goal_names", "limit"),
    [("ab", "cd", 2), ("abc", "de", 3), ("ab", "cde", 3), ("abc", "abcde", 5), ("abcde", "f", 5)],
)
def test_a_capacity_is_never_below_the_goal_or_the_present(
    on_mat: str, goal_names: str, limit: int
) -> None:
    """The capacity is the greater number of the blocks on the mat and in the goal."""
    on_table = "".join(sorted(set("abcdef") - set(on_mat)))
    fixture = LearnerFixture(
        make_mat_scene(on_mat, on_table), goal_on_mat(goal_names), domain="kitchen"
    )
    name = on_table[0]
    constraint = fixture.learn(
        fixture.refine(f"pick {name} table", f"place {name} mat", attempts=16)
    )
    assert constraint.actions == {f"(place {each} mat)" for each in "abcdef"}
    assert constraint.facts == {f"(on {each} mat)" for each in "abcdef"}
    assert constraint.original.limit == limit - 1  # before an action that adds one
    assert constraint.original.reason == f"'mat' holds {limit} of these"
    assert not constraint.original.is_proved


@pytest.mark.parametrize(
    ("on_mat", "on_table", "goal_names"), [("a", "bcd", "b"), ("abc", "d", "abcd")]
)
def test_a_capacity_without_effect_is_not_learned(
    on_mat: str, on_table: str, goal_names: str
) -> None:
    """A region for one block gives a context; a region for all blocks has no bound."""
    fixture = LearnerFixture(
        make_mat_scene(on_mat, on_table), goal_on_mat(goal_names), domain="kitchen"
    )
    name = on_table[0]
    outcome = fixture.refine(f"pick {name} table", f"place {name} mat", attempts=16)
    constraint = fixture.learner.learn(outcome)
    assert constraint is not None
    assert "holds" not in constraint.reason
    assert constraint.operators


def make_obstructed_scene(places: dict[str, tuple[float, float]], *, length: float) -> SceneGraph:
    """Return a block beside a mat of the width of a block, with small objects on the mat.

    Args:
        places: position of each small object on the mat [m].
        length: length of the mat [m].
    """
    scene = blocks_scene({"target": (0, -2)}, table=0.8)
    scene = scene.add_frame(
        "mat",
        "world",
        pose=Pose([0.0, 0.2, 0.005]),
        classes=["region"],
        shapes=[AttachedShape(Box([length, BLOCK + 0.004, 0.01]))],
    )
    for name, (x, y) in places.items():
        scene = with_block(
            scene, name, [x, 0.2 + y, 0.02], parent="mat", shape=Box([0.018, 0.018, 0.02])
        )
    return scene


def test_blockers_of_all_placements_leave_a_region() -> None:
    """A region that is as large as the object is left by both objects on it, by no third one."""
    scene = make_obstructed_scene({"a": (-0.016, 0.0), "b": (0.016, 0.0)}, length=BLOCK + 0.004)
    scene = with_block(scene, "far", [0.3, -0.3, BLOCK / 2])
    fixture = LearnerFixture(scene, "(on target mat)", domain="kitchen")
    constraint = fixture.learn(fixture.refine("pick target table", "place target mat"))
    assert constraint.facts == {"(on a mat)", "(on b mat)"}
    assert constraint.original.limit == 0
    assert constraint.original.reason == "(on a mat) or (on b mat)"
    assert not constraint.original.is_proved
    assert "(place target mat)" in constraint.actions
    assert "(place a mat)" not in constraint.actions
    fixture.guide.forbid(constraint.original)
    plan = fixture.guide.plan(fixture.guide.values(fixture.tree.root.state))
    assert plan is not None
    actions = [str(fixture.guide.actions[number]) for number in plan]
    last_pick = max(actions.index(f"(pick {name} mat)") for name in "ab")
    assert last_pick < actions.index("(place target mat)")
    assert len(actions) == 6


def test_fewest_blockers_leave_a_region() -> None:
    """Two objects obstruct either half of a region, and two of the four have to leave."""
    places = {"a": (-0.03, 0.012), "b": (-0.03, -0.012), "c": (0.03, 0.012), "d": (0.03, -0.012)}
    fixture = LearnerFixture(
        make_obstructed_scene(places, length=0.14), "(on target mat)", domain="kitchen"
    )
    outcome = fixture.refine("pick target table", "place target mat")
    capacity = fixture.learn(outcome)
    assert capacity.original.reason == "'mat' holds 4 of these"
    fixture.guide.forbid(capacity.original)
    constraint = fixture.learn(outcome)
    assert constraint.facts == {f"(on {name} mat)" for name in "abcd"}
    assert constraint.original.limit == 2
    assert constraint.original.reason.startswith("more than 2 of these hold: (on a mat)")


def test_blockers_beside_a_marked_area_give_no_context() -> None:
    """An object of the table that reaches into a marked area may stay on the table."""
    scene = blocks_scene({"target": (0, -2), "a": (0.6, 3)}, table=0.8)
    x, y, _ = scene.pose("a", relative_to="table").translation.tolist()
    top = scene.shapes("table")[0].shape.bounds[1][2]
    scene = scene.add_frame(
        "area",
        "table",
        pose=Pose([x + 0.02, y, top]),
        classes=["region"],
        shapes=[AttachedShape(Box([BLOCK + 0.004, BLOCK + 0.004, 0.001]), collision=False)],
    )
    fixture = LearnerFixture(scene, "(on target area)", domain="kitchen")
    constraint = fixture.learn(fixture.refine("pick target table", "place target area"))
    assert not constraint.facts


def test_a_constraint_on_a_held_object_applies_to_symmetric_objects() -> None:
    """A constraint on a placement includes equal blocks; one on a pick does not."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1), "c": (-1, 1)}, table=0.6)
    scene = with_block(scene, "tall", [0.1, -0.2, 0.06], shape=Box([BLOCK, BLOCK, 0.12]))
    fixture = LearnerFixture(scene, "(on a b)", domain="blocks")
    after_pick = fixture.after("pick-up a table__0__0")
    outcome = fixture.make_failure(
        after_pick, "stack a c", FailureKind.COLLISION, "hand", "c", "tall"
    )
    constraint = fixture.learn(outcome)
    assert constraint.actions == {"(stack a c)", "(stack b c)"}
    assert constraint.facts == {"(ontable c table__-1__1)", "(ontable tall table__1__-2)"}

    outcome = fixture.make_failure(
        fixture.tree.root, "pick-up a table__0__0", FailureKind.COLLISION, "hand", "c"
    )
    assert fixture.learn(outcome).actions == {"(pick-up a table__0__0)"}


def test_a_fact_that_several_objects_may_share_is_no_context() -> None:
    """A fact on a region for many objects gives no pose, so the constraint has no facts."""
    fixture = LearnerFixture(
        blocks_scene({"a": (0, 0), "b": (0.6, 0)}), "(holding a)", domain="kitchen"
    )
    outcome = fixture.make_failure(
        fixture.tree.root, "pick a table", FailureKind.COLLISION, "hand", "a", "b"
    )
    constraint = fixture.learn(outcome)
    assert not constraint.facts
    assert constraint.original.limit == -1
    assert not constraint.original.is_proved

    # The constraint leaves no plan, so the search removes it, and a plan exists again.
    values = fixture.guide.values(fixture.tree.root.state)
    fixture.guide.forbid(constraint.original)
    assert fixture.guide.plan(values) is None
    assert fixture.guide.plan_or_relax(values) is not None
    assert not fixture.guide.is_unsolvable(values)
    fixture.guide.remove(constraint.original)
    assert fixture.guide.plan(values) is not None


def test_an_impossible_action_is_proved_and_stays() -> None:
    """A block wider than the open hand cannot be picked in any state, even without assumptions."""
    scene = with_block(
        blocks_scene({"b": (1, 1)}, table=0.4), "a", [0.0, 0.0, 0.05], shape=Box([0.1] * 3)
    )
    fixture = LearnerFixture(scene, "(on b a)", domain="blocks")
    constraint = fixture.learn(fixture.refine("pick-up a table__0__0"))
    assert constraint.original.is_proved
    assert constraint.actions == {"(pick-up a table__0__0)"}
    assert (constraint.facts, constraint.original.limit) == (set(), -1)
    fixture.guide.forbid(constraint.original)
    assert not fixture.guide.lift()
    values = fixture.guide.values(fixture.tree.root.state)
    picks = {
        str(fixture.guide.actions[number])
        for number in fixture.guide.applicable_under_proofs(values)
    }
    assert "(pick-up a table__0__0)" not in picks
    assert "(pick-up b table__1__1)" in picks


def test_the_object_in_a_region_for_one_object_leaves_first() -> None:
    """The stove has room for the pot alone, so the plan removes the pot first."""
    scene = kitchen(1)
    height = scene.shapes("stove")[0].shape.bounds[1][2]
    shapes = [AttachedShape(Box([0.2, 0.2, 0.1]))]
    scene = scene.add_frame(
        "pot", "stove", pose=Pose([0.0, 0.0, height + 0.05]), classes=["movable"], shapes=shapes
    )
    fixture = LearnerFixture(scene, stove_goal(1), domain="kitchen", robot=load_manipulator(ROBOT))
    constraint = fixture.learn(fixture.refine("pick b0 floor", "place b0 stove", attempts=16))
    assert constraint.actions == {"(place b0 stove)"}
    assert "(on pot stove)" in constraint.facts
    fixture.guide.forbid(constraint.original)
    plan = fixture.guide.plan(fixture.guide.values(fixture.tree.root.state))
    assert plan is not None
    actions = [str(fixture.guide.actions[number]) for number in plan]
    assert actions.index("(pick pot stove)") < actions.index("(place b0 stove)")


def test_one_arranged_place_proves_nothing() -> None:
    """An arranged place replaces all others, so its failure is no proof."""
    fixture = LearnerFixture(
        kitchen(1), "(on b0 stove)", domain="kitchen", robot=load_manipulator(ROBOT)
    )
    after_pick, place = fixture.after("pick b0 floor"), action("place b0 stove")
    free = fixture.tree.expansion(after_pick, place)
    fixture.tree.arrange({("b0", "stove"): Placement("stove", Pose([0.0, 0.0, 5.0]), "far above")})
    outcome = fixture.refine("pick b0 floor", "place b0 stove")
    arranged = fixture.tree.expansion(after_pick, place)
    assert arranged is not free
    assert arranged.is_exhausted
    assert not arranged.is_impossible
    assert outcome.steps is None
    assert outcome.impossible is None
    assert outcome.cause is not None
    assert not outcome.cause.is_proved
    fixture.tree.arrange({})
    assert fixture.tree.expansion(after_pick, place) is free
    assert fixture.refine("pick b0 floor", "place b0 stove").steps is not None
