"""Refinement over the tree of scene versions: what is found and shared, and what a failure is said to depend on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings, strategies as st
from support.blocks import blocks_scene, with_box
from support.effort import scaled_examples
from support.gantry import BLOCK, GANTRY, gantry_scene, with_block

import tmkit as tk
from tmkit.graph import Box, SceneGraph
from tmkit.manipulation import ActionContext, ArmMotionPlanner, MotionSettings
from tmkit.manipulation.actions.pick_place import ActionMotion, arm_motion_planners
from tmkit.manipulation.actions.timing_breakdown import PlanningStage, StageClock
from tmkit.motion import CollisionRules
from tmkit.pddl import Fact, GroundAction, Problem, State, parse_domain
from tmkit.plans import FailureKind, MotionFailure
from tmkit.plans.class_changes import ClassEffect, with_class_changes
from tmkit.tamp import DomainSemantics, load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.problems import derive_problem
from tmkit.tamp.domains.semantics import facts_about
from tmkit.tamp.search.refinement import RefinementBudget, RefinementOutcome, refine_skeleton
from tmkit.tamp.version_tree import FailureLog, VersionTree

# --- a puzzle in place of motion: each action gives a thing one of three values, some pairs of
# which exclude each other

PUZZLE = """
(define (domain puzzle)
  (:types thing)
  (:predicates (valued ?x - thing))
  (:action give :parameters (?x - thing) :effect (valued ?x)))
"""
VALUES = ("p", "q", "r")
Exclusions = frozenset[tuple[str, str, str, str]]


@dataclass(frozen=True)
class Give:
    """Give a value to a thing, unless it excludes the value of another."""

    object: str
    value: str
    exclusions: Exclusions
    tried: list[tuple[str, ...]]

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield the version with the value, or which things are in the way."""
        del arm, seed
        scene, blockers = context.scene, []
        for other in scene.frames_of_class("thing"):
            excluded = [
                (other, value, self.object, self.value) in self.exclusions
                for value in scene.classes(other)
            ]
            blockers.extend([(self.object, other)] * sum(excluded))
        self.tried.append((self.object, self.value))
        if blockers:
            cause = f"{self.value} is excluded by {blockers[0][1]}"
            yield MotionFailure("giving", cause, tuple(blockers[:1]), kind=FailureKind.COLLISION)
            return
        changes = (ClassEffect(self.object, added=(self.value,)),)
        yield ActionMotion((), with_class_changes(scene, changes), context.q, self.value, changes)


class PuzzleSemantics(DomainSemantics):
    """Things are frames of class ``thing``; one that has a value has it as another class."""

    def __init__(self, exclusions: Exclusions, tried: list[tuple[str, ...]]) -> None:
        super().__init__(GANTRY)
        self.exclusions, self.tried = exclusions, tried

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the things."""
        return dict.fromkeys(scene.frames_of_class("thing"), "thing")

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: np.ndarray) -> State:
        """Return which things have a value."""
        del q
        return State(Fact.of("valued", name) for name in objects if len(scene.classes(name)) > 1)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[Give]:
        """Yield the values in order."""
        del context
        for value in VALUES:
            yield Give(action.arguments[0], value, self.exclusions, self.tried)


def puzzle(
    names: list[str], exclusions: Exclusions
) -> tuple[VersionTree, list[GroundAction], list[tuple[str, ...]]]:
    """Return a tree, the skeleton that gives each thing a value in order, and the list of what will be tried."""
    scene = gantry_scene()
    for name in names:
        scene = scene.add_frame(name, "world", classes=["thing"])
    tried: list[tuple[str, ...]] = []
    domain = PlanningDomain(
        "puzzle", parse_domain(PUZZLE), PUZZLE, "0" * 64, PuzzleSemantics(exclusions, tried)
    )
    goal = "(and " + " ".join(f"(valued {name})" for name in names) + ")"
    problem = derive_problem(scene, domain, goal=goal)
    return tree_of(scene, domain, problem), [GroundAction("give", (name,)) for name in names], tried


def tree_of(
    scene: SceneGraph, domain: PlanningDomain, problem: Problem, *, seed: int = 0
) -> VersionTree:
    """Return an empty tree for the gantry."""
    q = GANTRY.ready_configuration(scene)
    rules = CollisionRules.from_start(GANTRY, scene, q=q)
    arms = arm_motion_planners((GANTRY,), budget=MotionSettings(), rules=rules)
    return VersionTree(
        scene,
        q,
        problem=problem,
        domain=domain,
        arms=arms,
        seed=seed,
        log=FailureLog(),
        clock=StageClock(),
    )


def refined(skeleton: list[GroundAction], tree: VersionTree, **bounds: object) -> RefinementOutcome:
    """Refine with ample bounds and no clock."""
    budget = RefinementBudget(**{"attempts_per_node": 64, "attempts": 100_000, **bounds})  # type: ignore[arg-type]
    return refine_skeleton(skeleton, tree, budget=budget, is_over=lambda: False)


NAMES = ["a", "b", "c", "d", "e"]
PAIRS = [(x, v, y, w) for x, y in itertools.combinations(NAMES, 2) for v in VALUES for w in VALUES]


@settings(max_examples=scaled_examples(1.5))
@given(st.frozensets(st.sampled_from(PAIRS), min_size=10, max_size=60), st.booleans())
def test_backjumping_misses_nothing(exclusions: Exclusions, is_chronological: bool) -> None:
    """Values are found exactly when there are some, whichever way the search goes back."""
    tree, skeleton, _ = puzzle(NAMES, exclusions)
    found = refined(skeleton, tree, is_chronological=is_chronological)
    possible = [
        values
        for values in itertools.product(VALUES, repeat=len(NAMES))
        if not any(
            (x, v, y, w) in exclusions
            for (x, v), (y, w) in itertools.combinations(zip(NAMES, values, strict=True), 2)
        )
    ]
    if found.steps is None:
        assert not possible
    else:
        assert tuple(step.choice for step in found.steps) in possible


def test_backjumping_skips_what_has_no_part_in_the_conflict() -> None:
    """When the last thing is at odds with the first, other values of those between are not tried."""
    exclusions = frozenset(("a", v, "e", w) for v in "pq" for w in VALUES)
    tree, skeleton, tried = puzzle(NAMES, exclusions)
    found = refined(skeleton, tree)
    assert found.steps is not None
    assert found.steps[0].choice == "r"
    tree, skeleton, tried_in_order = puzzle(NAMES, exclusions)
    assert refined(skeleton, tree, is_chronological=True).steps is not None
    assert len(tried_in_order) > 3 * len(tried)


# --- blocks under the gantry
# ------------------------------------------------------------------------------------------


def blocks_tree(scene: SceneGraph, goal: str, *, seed: int = 0) -> VersionTree:
    """Return an empty tree of a blocks task."""
    domain = load_planning_domain("blocks", manipulator=GANTRY)
    return tree_of(scene, domain, derive_problem(scene, domain, goal=goal), seed=seed)


def action(text: str) -> GroundAction:
    """Return a ground action from its words."""
    name, *arguments = text.split()
    return GroundAction(name, tuple(arguments))


def test_skeletons_share_what_they_begin_with() -> None:
    """A second skeleton with the same first action takes over its motion; nothing of it is tried again."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1), "c": (-1, 1)}, table=0.4)
    tree = blocks_tree(scene, "(on a b)")
    first = refined([action("pick-up a table__0__0"), action("stack a b")], tree)
    attempts = tree.expansion(tree.root, action("pick-up a table__0__0")).attempts
    second = refined([action("pick-up a table__0__0"), action("stack a c")], tree)
    assert first.steps is not None
    assert second.steps is not None
    assert first.steps[0] is second.steps[0]
    assert tree.expansion(tree.root, action("pick-up a table__0__0")).attempts == attempts


def test_what_is_found_does_not_depend_on_what_was_asked_before() -> None:
    """A skeleton gets the same motions in a fresh tree as in one that has refined others."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1), "c": (-1, 1)}, table=0.4)
    skeleton = [action("pick-up a table__0__0"), action("stack a c")]
    used, fresh = blocks_tree(scene, "(on a b)", seed=7), blocks_tree(scene, "(on a b)", seed=7)
    refined([action("pick-up b table__1__1"), action("stack b c")], used)
    refined([action("pick-up a table__0__0"), action("stack a b")], used)
    one, other = refined(skeleton, used), refined(skeleton, fresh)
    assert one.steps is not None
    assert other.steps is not None
    for mine, yours in zip(one.steps, other.steps, strict=True):
        assert mine.scene == yours.scene
        assert [s.path.tobytes() for s in mine.segments] == [
            s.path.tobytes() for s in yours.segments
        ]


def hemmed_in() -> SceneGraph:
    """Return block b among four high ones, so near that no finger fits between."""
    scene = blocks_scene({"b": (0, 0)}, table=0.8)
    tall = Box([BLOCK, BLOCK, 0.15])
    for name, x, y in (
        ("north", 0.0, 1.0),
        ("south", 0.0, -1.0),
        ("east", 1.0, 0.0),
        ("west", -1.0, 0.0),
    ):
        scene = with_block(scene, name, [x * 0.0515, y * 0.0515, 0.075], shape=tall)
    return scene.add_frame("far", "world")


def test_a_cause_speaks_of_the_blocks_in_the_way_alone() -> None:
    """What keeps the hand from b are its neighbours; where another block stands has no part in it."""
    scene = with_block(hemmed_in(), "other", [0.3, 0.3, BLOCK / 2])
    tree = blocks_tree(scene, "(on b other)")
    failed = refined([action("pick-up b table__0__0")], tree, attempts_per_node=200)
    assert failed.cause is not None
    assert failed.cause.frames is not None
    assert {"north", "south", "east", "west"} & failed.cause.frames
    assert "other" not in failed.cause.frames
    assert not failed.cause.is_proved


def test_causes_are_facts_about_things_and_what_they_stand_on() -> None:
    """Relations come before properties, and what a thing stands on counts."""
    state = State(
        [
            Fact.of("on", "c", "b"),
            Fact.of("ontable", "b", "l1"),
            Fact.of("clear", "c"),
            Fact.of("ontable", "d", "l2"),
            Fact.of("holding", "e"),
        ]
    )
    assert facts_about(["c"], state) == (Fact.of("on", "c", "b"), Fact.of("ontable", "b", "l1"))
    assert facts_about(["e"], state) == (Fact.of("holding", "e"),)
    assert facts_about(["nothing"], state) == ()


def test_few_constraints_are_enough_where_neighbours_are_in_the_way() -> None:
    """The planner learns which neighbours to move aside from a few skeletons, not from one for every free place."""
    scene = hemmed_in()
    for number in range(4):  # so that a constraint on whole states would be of little use
        scene = with_block(scene, f"other{number}", [0.3, -0.3 + 0.2 * number, BLOCK / 2])
    result = tk.plan(scene, goal="(on b other0)", robot=GANTRY)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    assert result.statistics.constraints <= 4  # one for each of the neighbours
    assert result.statistics.skeletons <= result.statistics.constraints + 1


def test_what_is_proved_ends_planning_at_once() -> None:
    """A block farther away than the rails are long needs no second round, and the answer says so."""
    scene = blocks_scene({"a": (0, 0)}, table=0.4)
    scene = scene.add_frame(
        "island",
        "world",
        pose=tk.Pose([5.0, 0.0, -0.05]),
        classes=["surface"],
        shapes=[tk.graph.AttachedShape(Box([0.1, 0.1, 0.1]))],
    )
    scene = with_block(scene, "b", [5.0, 0.0, BLOCK / 2], parent="island")
    result = tk.plan(
        scene, goal="(on b a)", robot=GANTRY, options=tk.PlanningOptions(max_iterations=8)
    )
    assert result.plan is None
    assert "out of the arm's reach" in result.explanation
    assert result.statistics.skeletons <= 6


def test_times_of_all_phases_add_up() -> None:
    """Each second belongs to one phase; bookkeeping is what is left."""
    scene = with_box(
        blocks_scene({"a": (0, 0), "b": (1, 1)}, table=0.4),
        "wall",
        (-0.3, 0.045, 0.0),
        (0.3, 0.055, 0.1),
    )
    statistics = tk.plan(scene, goal="(on a b)", robot=GANTRY).statistics
    phases = statistics.phase_seconds
    assert set(phases) == {*(phase.value for phase in PlanningStage), "bookkeeping"}
    assert all(seconds >= 0.0 for seconds in phases.values())
    assert abs(sum(phases.values()) - statistics.total_seconds) < 1e-6
