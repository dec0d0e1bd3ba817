"""Problems, contexts and plans of planning domains, for planners of users."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.blocks import SUSSMAN, blocks_scene
from support.effort import scaled_examples
from support.gantry import GANTRY

import tmkit as tk
from tmkit.errors import ArgumentError, ConfigurationError, RobotError, TaskError, UnknownNameError
from tmkit.manipulation import ActionMotion
from tmkit.pddl import GroundAction
from tmkit.plans import PlanStep
from tmkit.tamp import PlanningDomain, load_planning_domain
from tmkit.tamp.seed_run import planning_context
from tmkit.task_planning import FastDownward


@pytest.fixture(scope="module")
def domain() -> PlanningDomain:
    """Return the blocks domain for the gantry."""
    return load_planning_domain("blocks", robot=GANTRY)


@settings(max_examples=scaled_examples(0.1))
@given(
    st.permutations([(x, y) for x in (-2, 0, 2) for y in (-2, 0, 2)]),
    st.sampled_from(["(on a b)", SUSSMAN, "(and (clear c) (handempty))"]),
)
def test_the_problem_is_that_of_plan(
    domain: PlanningDomain, places: list[tuple[float, float]], goal: str
) -> None:
    """`domain.problem` is equal to the problem that `plan` solves, for the same scene and goal."""
    scene = blocks_scene(dict(zip("abc", places, strict=False)))
    q = GANTRY.ready_configuration(scene)
    problem = tk.PlanningProblem(scene, q, "blocks", goal, GANTRY)
    context = planning_context(problem, tk.PlanningOptions())
    assert domain.problem(scene, q, goal) == context.problem
    assert domain.objects(scene) == {
        name: types[0] for name, types in context.problem.objects.items()
    }
    assert domain.state(scene, q) == context.problem.init


def test_a_plan_of_steps_is_that_of_plan(domain: PlanningDomain) -> None:
    """The steps of a plan of `plan` give an equal plan, which a loaded domain validates."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1)})
    q = GANTRY.ready_configuration(scene)
    found = tk.plan(scene, q, goal="(on a b)", robot=GANTRY, seed=3).plan
    assert found is not None
    plan = domain.plan(scene, q.tolist(), found.steps, "(on a b)", seed=3)
    assert plan == found
    assert tk.validate_plan(plan, domain=domain).is_valid
    with pytest.raises(TaskError, match="unknown object 'z'"):
        domain.plan(scene, q, found.steps, "(on a z)")


def test_steps_cost_what_the_metric_states(tmp_path: Path) -> None:
    """The costs of steps are those of the domain, as validation requires."""
    text = (tk.data_path("domains/blocks") / "domain.pddl").read_text(encoding="utf-8")
    text = text.replace(":typing)", ":typing :action-costs)")
    text = text.replace("(:action pick-up", "(:functions (total-cost) - number)\n(:action pick-up")
    path = tmp_path / "priced.pddl"
    path.write_text(text.replace(":effect (and ", ":effect (and (increase (total-cost) 4) "))
    domain = load_planning_domain(path, semantics="blocks", robot=GANTRY)
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1)})
    q = GANTRY.ready_configuration(scene)
    steps: list[PlanStep] = []
    for action in next(FastDownward().plans(domain.problem(scene, q, "(on a b)"))):
        version = (steps[-1].scene, steps[-1].q) if steps else (scene, q)
        (successor,) = tk.successors(*version, domain, actions=[action])
        assert successor.steps[0].cost == 4.0
        steps.append(replace(successor.steps[0], cost=1.0))
    plan = domain.plan(scene, q, steps, "(on a b)")
    assert [step.cost for step in plan.steps] == [4.0, 4.0]
    assert tk.validate_plan(plan, domain=domain).is_valid


def test_plan_accepts_a_loaded_domain(domain: PlanningDomain) -> None:
    """A loaded domain gives the same plan as its name, for its arms and in one process only."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1)})
    plans = [
        tk.plan(scene, goal="(on a b)", robot=GANTRY, domain=each).plan
        for each in (domain, "blocks")
    ]
    assert plans[0] == plans[1]
    panda = tk.load_manipulator("panda")
    with pytest.raises(RobotError, match=f"loaded for {GANTRY.name}, not for panda; pass robot="):
        load_planning_domain(domain, robot=panda)
    with pytest.raises(ConfigurationError, match="'blocks' cannot be sent to another process"):
        tk.plan(
            scene,
            goal="(on a b)",
            robot=GANTRY,
            domain=domain,
            options=tk.PlanningOptions(workers=2),
        )


def test_candidates_in_a_context_of_the_domain(domain: PlanningDomain) -> None:
    """A context has what candidates need, and equal contexts give equal motions."""
    scene = blocks_scene({"a": (1, 1), "b": (-1, 1)})
    q = GANTRY.ready_configuration(scene)
    problem = domain.problem(scene, q)
    action = next(problem.applicable_actions(problem.init))

    def first_motion() -> ActionMotion:
        context = domain.context(scene, q, seed=5)
        candidate = next(domain.candidates(action, context))
        arm = context.arm(GANTRY.name)
        motion = next(candidate.refine(arm, context, seed=5))
        assert isinstance(motion, ActionMotion)
        return motion

    motion = first_motion()
    assert domain.action_of((scene, q), (motion.scene, motion.q)) == action
    assert motion.step(action) == first_motion().step(action)


def test_the_action_of_an_edit(domain: PlanningDomain) -> None:
    """A reparent into the hand is a pick; other edits are errors that name the facts."""
    scene = blocks_scene({"a": (1, 1), "b": "a"})
    q = GANTRY.ready_configuration(scene)
    held = scene.reparent("b", GANTRY.tip, q=q)
    assert domain.action_of((scene, q), (held, q)) == GroundAction("unstack", ("b", "a"))
    with pytest.raises(TaskError, match="no action turns a state into an equal one"):
        domain.action_of((scene, q), (scene, q))
    both = scene.set_pose("a", tk.Pose([-0.1, 0.1, 0.075]))
    with pytest.raises(TaskError, match="no applicable action has the effects"):
        domain.action_of((scene, q), (both, q))


def test_candidates_of_an_unknown_object(domain: PlanningDomain) -> None:
    """An unknown object is named, with the nearest one, instead of the line of the semantics."""
    scene = blocks_scene({"block_a": (1, 1)})
    context = domain.context(scene, GANTRY.ready_configuration(scene))
    action = GroundAction("pick-up", ("block_b", "table__0__0"))
    with pytest.raises(UnknownNameError, match=r"unknown object 'block_b'.*'block_a'"):
        next(domain.candidates(action, context))


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (
            GroundAction("pick-up", ("a",)),
            TaskError,
            r"action 'pick-up' takes 2 arguments, but 1 was given; expected \(pick-up \?x \?l\)",
        ),
        (
            GroundAction("stack", ("a", "table__0__0")),
            TaskError,
            "argument 2 of action 'stack' must be of type block, but 'table__0__0' is of type loc",
        ),
        (GroundAction("pick", ("a", "table__0__0")), UnknownNameError, "did you mean 'pick-up'"),
        ("(pick-up a)", ArgumentError, r"must be a GroundAction, not a str .*GroundAction\(name"),
    ],
)
def test_candidates_of_another_action(
    domain: PlanningDomain, action: GroundAction, error: type[Exception], message: str
) -> None:
    """The error states what does not fit the domain, instead of the line of the semantics."""
    scene = blocks_scene({"a": (1, 1)})
    context = domain.context(scene, GANTRY.ready_configuration(scene))
    with pytest.raises(error, match=message):
        next(domain.candidates(action, context))


def test_a_context_needs_a_configuration_of_the_scene(domain: PlanningDomain) -> None:
    """A configuration of another length is rejected."""
    scene = blocks_scene({"a": (1, 1)})
    with pytest.raises(ConfigurationError):
        domain.context(scene, np.zeros(3))
