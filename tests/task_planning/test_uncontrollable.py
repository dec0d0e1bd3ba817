"""Policies against uncontrollable actions: known answers, and an explicit search as oracle."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples

from tmkit.errors import TaskError
from tmkit.pddl import (
    Domain,
    GroundAction,
    Problem,
    State,
    parse_domain,
    parse_problem,
    validate_task_plan,
)
from tmkit.pddl.writer import domain_to_pddl
from tmkit.task_planning import FastDownward, TaskPlanStatus
from tmkit.task_planning.policy import Policy

BLOCKS = """(define (domain blocks)
  (:predicates (on ?x ?y) (ontable ?x) (clear ?x) (handempty) (holding ?x) (broken ?x) (glass ?x))
  (:action grasp :parameters (?x) :precondition (and (clear ?x) (ontable ?x) (handempty))
    :effect (and (not (ontable ?x)) (not (clear ?x)) (not (handempty)) (holding ?x)))
  (:action release :parameters (?x) :precondition (holding ?x)
    :effect (and (not (holding ?x)) (clear ?x) (handempty) (ontable ?x)))
  (:action stack :parameters (?x ?y) :precondition (and (holding ?x) (clear ?y))
    :effect (and (not (holding ?x)) (not (clear ?y)) (clear ?x) (handempty) (on ?x ?y)))
  (:action take :parameters (?x ?y) :precondition (and (on ?x ?y) (clear ?x) (handempty))
    :effect (and (holding ?x) (clear ?y) (not (clear ?x)) (not (handempty)) (not (on ?x ?y))))
  %s)"""

SLIP = """(:action slip :uncontrollable t :parameters (?x) :precondition (holding ?x)
  :effect (and (not (holding ?x)) (clear ?x) (handempty) (ontable ?x)))"""

SHATTER = """(:action shatter :parameters (?x) :precondition (and (holding ?x) (glass ?x))
  :effect (and (not (holding ?x)) (handempty) (broken ?x)) :uncontrollable t)"""


def blocks_problem(events: str, init: str, goal: str) -> Problem:
    """Return a problem with the blocks a, b and c."""
    return parse_problem(
        f"(define (problem tower) (:domain blocks) (:objects a b c) (:init {init} (handempty))"
        f" (:goal {goal}))",
        parse_domain(BLOCKS % events),
    )


def successors(problem: Problem, state: State, *, by_world: bool) -> list[State]:
    """Return the states after each applicable action of the planner or of the world."""
    domain = problem.domain
    schemas = domain.uncontrollable_actions if by_world else domain.actions
    actions = problem.applicable_actions(state, schemas=schemas)
    return [problem.apply(state, action) for action in actions]


def reachable_states(problem: Problem) -> set[State]:
    """Return all states that the planner and the world can reach together."""
    found, pending = {problem.init}, [problem.init]
    while pending:
        state = pending.pop()
        for by_world in (False, True):
            for after in successors(problem, state, by_world=by_world):
                if after not in found:
                    found.add(after)
                    pending.append(after)
    return found


def has_policy(problem: Problem) -> bool:
    """Return whether there is a strong cyclic policy, by elimination of states.

    A state without a path of the planner to a goal within the remaining states is removed, and so
    is one from which the world can leave them, until nothing changes.
    """
    safe = reachable_states(problem)
    goals = {state for state in safe if problem.holds(state, problem.goal)}
    controlled = {state: successors(problem, state, by_world=False) for state in safe}
    by_world = {state: successors(problem, state, by_world=True) for state in safe}
    while True:
        reaching = set(goals)
        while True:
            more = {s for s in safe - reaching if not reaching.isdisjoint(controlled[s])}
            if not more:
                break
            reaching |= more
        remaining = {
            state
            for state in safe
            if state in goals or (state in reaching and safe.issuperset(by_world[state]))
        }
        if remaining == safe:
            return problem.init in safe
        safe = remaining


def assert_is_policy(policy: Policy, problem: Problem) -> None:
    """Assert that a policy has an action wherever it leads, and always a way to the goal."""
    edges: dict[State, list[State]] = {}
    chosen: dict[State, State] = {}
    pending = [problem.init]
    while pending:
        state = pending.pop()
        if state in edges or problem.holds(state, problem.goal):
            continue
        chosen[state] = problem.apply(state, policy.action(state))
        edges[state] = [chosen[state], *successors(problem, state, by_world=True)]
        pending += edges[state]
    for start in edges:
        state, n_steps = start, 0
        while state in chosen:
            state, n_steps = chosen[state], n_steps + 1
            assert n_steps <= len(chosen), f"the policy does not reach the goal from {start}"


def without_events(problem: Problem, kept: Iterable[str]) -> Problem:
    """Return a problem with some of the uncontrollable actions."""
    text = domain_to_pddl(problem.domain)
    domain = parse_domain(text)
    events = tuple(event for event in domain.uncontrollable_actions if event.name in kept)
    return Problem(
        problem.name,
        Domain(
            domain.name,
            predicates=domain.predicates,
            actions=domain.actions,
            axioms=domain.axioms,
            uncontrollable_actions=events,
        ),
        objects=problem.objects,
        init=problem.init,
        goal=problem.goal,
    )


def test_a_clumsy_hand_is_survived() -> None:
    """Each block may slip out of the hand, and is grasped again."""
    problem = blocks_problem(
        SLIP, "(on c a) (ontable a) (ontable b) (clear c) (clear b)", "(and (on a b) (on b c))"
    )
    policy = FastDownward().policy(problem)
    assert policy.is_solved
    assert len(policy.result.steps) == 6
    assert_is_policy(policy, problem)
    slipped = problem.apply(
        problem.apply(problem.init, policy.action(problem.init)), GroundAction("slip", ("c",))
    )
    assert policy.action(slipped) == GroundAction("grasp", ("b",))
    assert json.loads(json.dumps(policy.to_dict()))["status"] == "solved"


def test_the_action_that_defeats_every_plan_is_named() -> None:
    """A glass block breaks in the hand, and the goal requires it to be moved."""
    init = "(on c a) (ontable a) (ontable b) (clear c) (clear b) (glass a)"
    policy = FastDownward().policy(blocks_problem(SLIP + SHATTER, init, "(on a b)"))
    assert policy.status is TaskPlanStatus.UNSOLVABLE
    assert policy.defeating == ("shatter",)
    assert "'shatter' defeats every plan; (shatter a) can happen after" in policy.result.message
    result = FastDownward().solve(blocks_problem(SLIP + SHATTER, init, "(on a b)"))
    assert result.status is TaskPlanStatus.UNSOLVABLE


def test_a_plan_avoids_what_it_does_not_survive() -> None:
    """The shorter way takes the glass block into the hand, the longer one does not."""
    init = "(on a c) (ontable b) (ontable c) (clear a) (clear b) (glass a)"
    goal = "(exists (?x) (and (not (= ?x b)) (on b ?x)))"
    problem = blocks_problem(SHATTER, init, goal)
    policy = FastDownward().policy(problem)
    assert [str(step) for step in policy.result.steps] == ["(grasp b)", "(stack b a)"]
    assert FastDownward().solve(problem).steps == policy.result.steps


def test_several_actions_may_defeat_together() -> None:
    """Each way to the goal is closed by another event."""
    domain = parse_domain("""(define (domain ways)
      (:predicates (left) (right) (lost) (there) (chosen))
      (:action go-left :precondition (not (chosen)) :effect (and (left) (chosen)))
      (:action go-right :precondition (not (chosen)) :effect (and (right) (chosen)))
      (:action arrive :precondition (and (chosen) (not (lost))) :effect (there))
      (:action flood :precondition (left) :effect (lost) :uncontrollable t)
      (:action fire :precondition (right) :effect (lost) :uncontrollable t))""")
    problem = parse_problem("(define (problem p) (:domain ways) (:init) (:goal (there)))", domain)
    policy = FastDownward().policy(problem)
    assert set(policy.defeating) == {"flood", "fire"}
    assert "the uncontrollable actions '" in policy.result.message
    assert FastDownward().policy(without_events(problem, ["fire"])).is_solved


def test_what_happens_at_the_goal_does_not_count() -> None:
    """An execution ends when the goal holds."""
    problem = blocks_problem(SHATTER, "(ontable a) (clear a) (glass a)", "(holding a)")
    assert FastDownward().policy(problem).is_solved


def test_the_world_is_not_relied_upon() -> None:
    """A goal that only an uncontrollable action reaches has no plan."""
    problem = blocks_problem(SHATTER, "(ontable a) (clear a) (glass a)", "(broken a)")
    policy = FastDownward().policy(problem)
    assert policy.status is TaskPlanStatus.UNSOLVABLE
    assert policy.defeating == ()


def test_a_plan_with_an_uncontrollable_action_is_invalid() -> None:
    """Only the world performs it."""
    problem = blocks_problem(SLIP, "(ontable a) (clear a)", "(ontable a)")
    plan = [GroundAction("grasp", ("a",)), GroundAction("slip", ("a",))]
    validation = validate_task_plan(problem, plan)
    assert not validation.is_valid
    assert "only the world performs this action" in validation.message


def test_a_policy_has_no_action_elsewhere() -> None:
    """The message says whether the goal holds."""
    problem = blocks_problem(SLIP, "(ontable a) (clear a)", "(holding a)")
    policy = FastDownward().policy(problem)
    with pytest.raises(TaskError, match="the policy has no action: the goal holds"):
        policy.action(problem.apply(problem.init, GroundAction("grasp", ("a",))))
    with pytest.raises(TaskError, match="it does not lead to this state"):
        policy.action(State())


def test_the_keyword_is_read_and_written() -> None:
    """``nil`` is a controllable action; other values are refused at their place."""
    domain = parse_domain(BLOCKS % (SLIP + SHATTER))
    assert [action.name for action in domain.uncontrollable_actions] == ["slip", "shatter"]
    assert parse_domain(domain_to_pddl(domain)) == domain
    controllable = parse_domain(BLOCKS % SLIP.replace("e t", "e nil"))
    assert [action.name for action in controllable.actions][-1] == "slip"
    with pytest.raises(TaskError, match=r":11:17: expected t or nil after ':uncontrollable'"):
        parse_domain(BLOCKS % SLIP.replace("e t", "e yes"))
    with pytest.raises(TaskError, match="unexpected ':uncontrollable'; expected :parameters"):
        parse_domain(BLOCKS % SLIP.replace(":action", ":durative-action"))
    with pytest.raises(TaskError, match="action 'stack' is declared twice"):
        parse_domain(BLOCKS % SLIP.replace("slip", "stack"))


FACTS = ("p", "q", "r", "s", "v")


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Return a problem over five facts, with actions of the planner and of the world."""
    literals = st.lists(
        st.tuples(st.sampled_from(FACTS), st.booleans()), max_size=2, unique_by=lambda pair: pair[0]
    )

    def formula(pairs: list[tuple[str, bool]]) -> str:
        return "(and " + " ".join(f"({f})" if v else f"(not ({f}))" for f, v in pairs) + ")"

    def effect(pairs: list[tuple[str, bool]], condition: list[tuple[str, bool]]) -> str:
        return f"(when {formula(condition)} {formula(pairs)})" if condition else formula(pairs)

    condition = literals if draw(st.booleans()) else st.just([])
    uses_axiom = draw(st.booleans())
    actions = []
    for kind, count in (("act", draw(st.integers(2, 6))), ("event", draw(st.integers(1, 3)))):
        for k in range(count):
            needed = formula(draw(literals))
            if uses_axiom and draw(st.booleans()):
                needed = f"(and (both) {needed})"
            changed = effect(draw(literals), draw(condition))
            keyword = ":uncontrollable t" if kind == "event" else ""
            actions.append(
                f"(:action {kind}{k} :precondition {needed} :effect (and {changed}) {keyword})"
            )
    axiom = "(:derived (both) (and (p) (not (q))))" if uses_axiom else ""
    predicates = " ".join(f"({fact})" for fact in FACTS) + (" (both)" if uses_axiom else "")
    domain = parse_domain(
        f"(define (domain d) (:predicates {predicates}) {axiom} {' '.join(actions)})"
    )
    init = " ".join(f"({fact})" for fact in FACTS if draw(st.booleans()))
    goal = formula(draw(literals.filter(lambda pairs: len(pairs) > 0)))
    return parse_problem(f"(define (problem x) (:domain d) (:init {init}) (:goal {goal}))", domain)


@settings(max_examples=scaled_examples(2))
@given(problem=problems())
def test_policies_agree_with_an_explicit_search(problem: Problem) -> None:
    """There is a policy if and only if the elimination of states leaves the initial one."""
    policy = FastDownward().policy(problem)
    assert policy.status is not TaskPlanStatus.LIMIT
    assert policy.is_solved == has_policy(problem)
    if policy.is_solved:
        assert validate_task_plan(problem, policy.result.steps).is_valid
        assert_is_policy(policy, problem)
    elif policy.defeating:
        assert not has_policy(without_events(problem, policy.defeating))
        assert has_policy(without_events(problem, ()))
    else:
        assert not has_policy(without_events(problem, ()))
