"""Refinement of given task plans, and successors of scene versions, for planners of users."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.blocks import SUSSMAN, blocks_scene, with_box
from support.effort import scaled_examples
from support.gantry import GANTRY

import tmkit as tk
from tmkit.errors import ArgumentError, ConfigurationError, TaskError
from tmkit.graph import SceneGraph
from tmkit.pddl import GroundAction
from tmkit.plans import PlanStep
from tmkit.tamp import PlanningDomain, PlanStatus, load_planning_domain
from tmkit.task_planning import FastDownward

CELLS = [(x, y) for x in (-2, -1, 0, 1, 2) for y in (-2, 0, 2)]


@pytest.fixture(scope="module")
def domain() -> PlanningDomain:
    """Return the blocks domain for the gantry."""
    return load_planning_domain("blocks", robot=GANTRY)


def start(scene: SceneGraph) -> np.ndarray:
    """Return the configuration at the start."""
    return GANTRY.ready_configuration(scene)


@st.composite
def worlds(draw: st.DrawFn) -> SceneGraph:
    """Return two or three blocks on the table or on each other."""
    names = ["a", "b", "c"][: draw(st.integers(2, 3))]
    cells = draw(st.permutations(CELLS))
    places: dict[str, tuple[float, float] | str] = {}
    for name, cell in zip(names, cells, strict=False):
        free = [other for other in places if other not in places.values()]
        places[name] = draw(st.sampled_from([cell, *free]))
    return blocks_scene(places)


@settings(max_examples=scaled_examples(0.08))
@given(scene=worlds(), seed=st.integers(0, 2**16), data=st.data())
def test_the_states_of_successors_are_those_of_pddl(
    domain: PlanningDomain, scene: SceneGraph, seed: int, data: st.DataObject
) -> None:
    """Along a random walk each derived state is the predicted one, and the walk is a valid plan."""
    q, first, steps = start(scene), scene, list[PlanStep]()
    for _ in range(2):
        problem = domain.problem(scene, q)
        choices = list(problem.applicable_actions(problem.init))
        action = data.draw(st.sampled_from(choices))
        (successor,) = tk.successors(scene, q, domain, actions=[action], seed=seed)
        assert successor.action == action
        assert successor.steps, "nothing is in the way of a gantry"
        step = successor.steps[0]
        assert domain.state(step.scene, step.q) == problem.apply(problem.init, action)
        assert domain.action_of((scene, q), (step.scene, step.q)) == action
        steps.append(step)
        scene, q = step.scene, step.q
    plan = domain.plan(first, start(first), steps, "(and)", seed=seed)
    assert tk.validate_plan(plan).is_valid


def test_successors_are_lazy_deterministic_and_independent(domain: PlanningDomain) -> None:
    """A motion depends on the scene, the action and the seed, not on the other actions."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1)})
    q = start(scene)
    everything = list(tk.successors(scene, q, domain, motions=3, seed=4))
    problem = domain.problem(scene, q)
    assert [each.action for each in everything] == list(problem.applicable_actions(problem.init))
    assert all(1 <= len(each.steps) <= 3 for each in everything)
    last = everything[-1]
    (again,) = tk.successors(scene, q, domain, actions=[last.action], motions=3, seed=4)
    assert again.steps == last.steps
    assert next(tk.successors(scene, q, domain, seed=4)).steps == everything[0].steps[:1]


def test_successors_without_motions_have_failures(domain: PlanningDomain) -> None:
    """A block under a roof cannot be picked; the failures name the roof."""
    scene = with_box(
        blocks_scene({"a": (1, 1), "b": (-2, -2)}), "roof", (0, 0, 0.06), (0.2, 0.2, 0.1)
    )
    q = start(scene)
    blocked, free = tk.successors(scene, q, domain)
    assert (blocked.action.arguments[0], blocked.steps) == ("a", ())
    assert any("roof" in pair for failure in blocked.failures for pair in failure.pairs)
    assert free.steps


@settings(max_examples=scaled_examples(0.03))
@given(scene=worlds(), seed=st.integers(0, 2**16))
def test_a_refined_skeleton_is_a_valid_plan(
    domain: PlanningDomain, scene: SceneGraph, seed: int
) -> None:
    """The skeleton of a plan of `plan` has motions again, which validation accepts."""
    goal = "(on b a)"
    found = tk.plan(scene, start(scene), goal=goal, robot=GANTRY, seed=seed)
    assert found.plan is not None
    result = tk.refine(scene, start(scene), found.plan.actions, domain, seed=seed)
    assert result.is_solved
    assert result.cause is None
    plan = domain.plan(scene, start(scene), result.steps, goal, seed=seed)
    assert tk.validate_plan(plan, domain=domain).is_valid
    assert result.steps == tk.refine(scene, start(scene), plan.actions, domain, seed=seed).steps


def test_a_failed_refinement_gives_the_cause(domain: PlanningDomain) -> None:
    """The cause is the blocked action; forbidding it gives another skeleton or none."""
    scene = with_box(
        blocks_scene({"a": (1, 1), "b": (-2, -2)}), "roof", (0, 0, 0.06), (0.2, 0.2, 0.1)
    )
    q = start(scene)
    skeletons = FastDownward().plans(domain.problem(scene, q, "(on a b)"))
    skeleton = next(skeletons)
    result = tk.refine(scene, q, skeleton, domain)
    assert result.status is PlanStatus.NO_PLAN_WITHIN_LIMITS
    assert (result.steps, result.cause.index) == ((), 0)
    assert result.cause.action == skeleton[0]
    assert str(result.cause).startswith(f"{skeleton[0]}: ")
    assert any("roof" in pair for failure in result.cause.failures for pair in failure.pairs)
    assert set(result.cause.facts) <= domain.state(scene, q).facts
    skeletons.forbid(result.cause.action, result.cause.facts)
    assert list(skeletons) == []


def test_a_cause_beyond_the_first_action(domain: PlanningDomain) -> None:
    """A full second place is the cause, with the index of its action."""
    scene = blocks_scene({"a": (1, 1), "b": (-2, -2)})
    scene = with_box(scene, "roof", (-0.3, -0.3, 0.12), (-0.1, -0.1, 0.14))
    q = start(scene)
    actions = next(FastDownward().plans(domain.problem(scene, q, "(on a b)")))
    result = tk.refine(scene, q, actions, domain)
    assert (result.cause.action, result.cause.index) == (actions[1], 1)


def test_a_skeleton_that_pddl_rejects(domain: PlanningDomain) -> None:
    """An action that is not applicable is an error that names it."""
    scene = blocks_scene({"a": (1, 1), "b": (-2, -2)})
    with pytest.raises(TaskError, match=r"skeleton.*stack a b"):
        tk.refine(scene, start(scene), [GroundAction("stack", ("a", "b"))], domain)


def test_messages_about_arguments(domain: PlanningDomain) -> None:
    """A wrong argument is an error that has the expected one."""
    scene = blocks_scene({"a": (1, 1)})
    q = start(scene)
    with pytest.raises(ArgumentError, match=r"successors\(\).*load_planning_domain"):
        tk.successors(scene, q, "blocks")
    with pytest.raises(ConfigurationError, match="motions must be at least 1, not 0"):
        tk.successors(scene, q, domain, motions=0)
    with pytest.raises(ArgumentError, match="attribute 'action'"):
        tk.refine(scene, q, ["(stack a b)"], domain)


def test_bilevel_planning_solves_the_sussman_anomaly(domain: PlanningDomain) -> None:
    """Skeletons, refinement and plan together give a plan like that of `plan`."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1), "c": "a"}, table=0.4)
    q = start(scene)
    skeletons = FastDownward().plans(domain.problem(scene, q, SUSSMAN))
    for skeleton in skeletons:
        result = tk.refine(scene, q, skeleton, domain)
        if result.is_solved:
            break
        skeletons.forbid(result.cause.action, result.cause.facts)
    plan = domain.plan(scene, q, result.steps, SUSSMAN)
    assert tk.validate_plan(plan).is_valid
    assert len(plan.steps) == 6
