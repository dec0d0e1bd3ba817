"""Refinement over the tree of scene versions: backjumping, shared prefixes and causes."""

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
from tmkit.manipulation.actions.basic_motions import ActionMotion
from tmkit.manipulation.actions.pick_place import arm_motion_planners
from tmkit.manipulation.actions.timing_breakdown import PlanningStage, StageClock
from tmkit.motion import CollisionRules
from tmkit.pddl import Fact, GroundAction, Problem, State, parse_domain
from tmkit.plans import FailureKind, MotionFailure
from tmkit.plans.class_changes import ClassEffect, apply_effects
from tmkit.tamp import DomainSemantics, load_planning_domain
from tmkit.tamp.domains.planning_domain import PlanningDomain
from tmkit.tamp.domains.semantics import facts_about
from tmkit.tamp.search.refinement import (
    RefinementBudget,
    RefinementMonitor,
    RefinementOutcome,
    refine_skeleton,
)
from tmkit.tamp.version_tree import FailureLog, RefinementTask, VersionTree

# --- A puzzle instead of motions: each action gives a thing one of three values, and some pairs of
# values exclude each other.

PUZZLE = """
(define (domain puzzle)
  (:types thing)
  (:predicates (valued ?x - thing))
  (:action give :parameters (?x - thing) :effect (valued ?x)))
"""
VALUES = ("p", "q", "r")
Exclusions = frozenset[tuple[str, str, str, str]]


@dataclass(frozen=True)
class GiveValue:
    """Candidate that gives a value to a thing, unless it excludes the value of another thing."""

    object: str
    value: str
    exclusions: Exclusions
    attempts: list[tuple[str, ...]]

    def refine(
        self, arm: ArmMotionPlanner, context: ActionContext, *, seed: int
    ) -> Iterator[ActionMotion | MotionFailure]:
        """Yield the version with the value, or the failure with a blocking thing."""
        del arm, seed
        scene, blockers = context.scene, []
        for other in scene.frames_of_class("thing"):
            conflicts = [
                (other, value, self.object, self.value) in self.exclusions
                for value in scene.classes(other)
            ]
            blockers.extend([(self.object, other)] * sum(conflicts))
        self.attempts.append((self.object, self.value))
        if blockers:
            cause = f"{self.value} is excluded by {blockers[0][1]}"
            yield MotionFailure("giving", cause, tuple(blockers[:1]), kind=FailureKind.COLLISION)
            return
        changes = (ClassEffect(self.object, added=(self.value,)),)
        yield ActionMotion((), apply_effects(scene, changes), context.q, self.value, changes)


class PuzzleSemantics(DomainSemantics):
    """Semantics with things of class ``thing``, whose value is another class."""

    def __init__(self, exclusions: Exclusions, attempts: list[tuple[str, ...]]) -> None:
        super().__init__(GANTRY)
        self.exclusions, self.attempts = exclusions, attempts

    def objects(self, scene: SceneGraph) -> Mapping[str, str]:
        """Return the things."""
        return dict.fromkeys(scene.frames_of_class("thing"), "thing")

    def state(self, scene: SceneGraph, objects: Mapping[str, str], q: np.ndarray) -> State:
        """Return the facts that things have a value."""
        del q
        return State(Fact.of("valued", name) for name in objects if len(scene.classes(name)) > 1)

    def candidates(self, action: GroundAction, context: ActionContext) -> Iterator[GiveValue]:
        """Yield the values in order."""
        del context
        for value in VALUES:
            yield GiveValue(action.arguments[0], value, self.exclusions, self.attempts)


def puzzle(
    names: list[str], exclusions: Exclusions
) -> tuple[VersionTree, list[GroundAction], list[tuple[str, ...]]]:
    """Return a tree, the task plan that gives each thing a value, and the list of attempts."""
    scene = gantry_scene()
    for name in names:
        scene = scene.add_frame(name, "world", classes=["thing"])
    attempts: list[tuple[str, ...]] = []
    semantics = PuzzleSemantics(exclusions, attempts)
    domain = PlanningDomain("puzzle", parse_domain(PUZZLE), PUZZLE, "0" * 64, semantics, (GANTRY,))
    goal = "(and " + " ".join(f"(valued {name})" for name in names) + ")"
    problem = domain.problem(scene, scene.zero_configuration(), goal)
    skeleton = [GroundAction("give", (name,)) for name in names]
    return make_tree(scene, domain, problem), skeleton, attempts


def make_tree(
    scene: SceneGraph, domain: PlanningDomain, problem: Problem, *, seed: int = 0
) -> VersionTree:
    """Return an empty tree for the gantry."""
    q = GANTRY.ready_configuration(scene)
    rules = CollisionRules.from_start(GANTRY, scene, q=q)
    arms = arm_motion_planners((GANTRY,), budget=MotionSettings(), rules=rules)
    task = RefinementTask(scene, q, problem, domain)
    return VersionTree(task, arms=arms, seed=seed, log=FailureLog(), clock=StageClock())


def refine(skeleton: list[GroundAction], tree: VersionTree, **bounds: object) -> RefinementOutcome:
    """Refine with large bounds and without a time limit."""
    budget = RefinementBudget(**{"attempts_per_node": 64, "attempts": 100_000, **bounds})  # type: ignore[arg-type]
    monitor = RefinementMonitor(is_over=lambda: False)
    return refine_skeleton(skeleton, tree, budget=budget, monitor=monitor)


NAMES = ["a", "b", "c", "d", "e"]
PAIRS = [(x, v, y, w) for x, y in itertools.combinations(NAMES, 2) for v in VALUES for w in VALUES]


@settings(max_examples=scaled_examples(1.5))
@given(st.frozensets(st.sampled_from(PAIRS), min_size=10, max_size=60), st.booleans())
def test_backjumping_is_complete(exclusions: Exclusions, is_chronological: bool) -> None:
    """The search finds values exactly if they exist, with backjumping and chronologically."""
    tree, skeleton, _ = puzzle(NAMES, exclusions)
    outcome = refine(skeleton, tree, is_chronological=is_chronological)
    possible = [
        values
        for values in itertools.product(VALUES, repeat=len(NAMES))
        if not any(
            (x, v, y, w) in exclusions
            for (x, v), (y, w) in itertools.combinations(zip(NAMES, values, strict=True), 2)
        )
    ]
    if outcome.steps is None:
        assert not possible
    else:
        assert tuple(step.choice for step in outcome.steps) in possible


def test_backjumping_skips_steps_outside_the_conflict() -> None:
    """If the last thing conflicts with the first, values of those between are not repeated."""
    exclusions = frozenset(("a", v, "e", w) for v in "pq" for w in VALUES)
    tree, skeleton, attempts = puzzle(NAMES, exclusions)
    outcome = refine(skeleton, tree)
    assert outcome.steps is not None
    assert outcome.steps[0].choice == "r"
    tree, skeleton, chronological_attempts = puzzle(NAMES, exclusions)
    assert refine(skeleton, tree, is_chronological=True).steps is not None
    assert len(chronological_attempts) > 3 * len(attempts)


# --- Blocks under the gantry.


def blocks_tree(scene: SceneGraph, goal: str, *, seed: int = 0) -> VersionTree:
    """Return an empty tree of a blocks task."""
    domain = load_planning_domain("blocks", robot=GANTRY)
    problem = domain.problem(scene, scene.zero_configuration(), goal)
    return make_tree(scene, domain, problem, seed=seed)


def action(text: str) -> GroundAction:
    """Return a ground action from its name and arguments."""
    name, *arguments = text.split()
    return GroundAction(name, tuple(arguments))


def test_skeletons_share_their_common_prefix() -> None:
    """A second task plan with the same first action reuses its motion without new attempts."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1), "c": (-1, 1)}, table=0.4)
    tree = blocks_tree(scene, "(on a b)")
    first = refine([action("pick-up a table__0__0"), action("stack a b")], tree)
    attempts = tree.expansion(tree.root, action("pick-up a table__0__0")).attempts
    second = refine([action("pick-up a table__0__0"), action("stack a c")], tree)
    assert first.steps is not None
    assert second.steps is not None
    assert first.steps[0] is second.steps[0]
    assert tree.expansion(tree.root, action("pick-up a table__0__0")).attempts == attempts


def test_motions_do_not_depend_on_earlier_refinements() -> None:
    """A task plan has the same motions in a new tree as in one that has refined other plans."""
    scene = blocks_scene({"a": (0, 0), "b": (1, 1), "c": (-1, 1)}, table=0.4)
    skeleton = [action("pick-up a table__0__0"), action("stack a c")]
    used_tree = blocks_tree(scene, "(on a b)", seed=7)
    new_tree = blocks_tree(scene, "(on a b)", seed=7)
    refine([action("pick-up b table__1__1"), action("stack b c")], used_tree)
    refine([action("pick-up a table__0__0"), action("stack a b")], used_tree)
    first_outcome, second_outcome = refine(skeleton, used_tree), refine(skeleton, new_tree)
    assert first_outcome.steps is not None
    assert second_outcome.steps is not None
    for first_step, second_step in zip(first_outcome.steps, second_outcome.steps, strict=True):
        assert first_step.scene == second_step.scene
        assert [s.path.tobytes() for s in first_step.segments] == [
            s.path.tobytes() for s in second_step.segments
        ]


def make_surrounded_scene() -> SceneGraph:
    """Return block b between four tall ones with gaps narrower than a finger."""
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


def test_a_cause_names_only_the_blocking_frames() -> None:
    """The neighbours of b block the hand; the pose of another block has no effect."""
    scene = with_block(make_surrounded_scene(), "other", [0.3, 0.3, BLOCK / 2])
    tree = blocks_tree(scene, "(on b other)")
    outcome = refine([action("pick-up b table__0__0")], tree, attempts_per_node=200)
    assert outcome.cause is not None
    assert outcome.cause.frames is not None
    assert {"north", "south", "east", "west"} & outcome.cause.frames
    assert "other" not in outcome.cause.frames
    assert not outcome.cause.is_proved


def test_facts_about_an_object_include_its_supports() -> None:
    """Relations precede properties, and the facts of a support are included."""
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


def test_few_constraints_suffice_for_blocking_neighbours() -> None:
    """A few task plans suffice to learn the blocking neighbours."""
    scene = make_surrounded_scene()
    for number in range(4):  # with which constraints on whole states would exclude little
        scene = with_block(scene, f"other{number}", [0.3, -0.3 + 0.2 * number, BLOCK / 2])
    result = tk.plan(scene, goal="(on b other0)", robot=GANTRY)
    assert result.plan is not None, result.explanation
    assert tk.validate_plan(result.plan).is_valid
    assert result.statistics.constraints <= 4  # one for each of the neighbours
    assert result.statistics.skeletons <= result.statistics.constraints + 1


def test_a_proved_failure_ends_planning_at_once() -> None:
    """A block beyond the rails needs no second iteration, and the explanation gives the reason."""
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
    """Each second belongs to one phase; bookkeeping is the remainder."""
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
