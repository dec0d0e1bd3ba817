"""States, formulas, axioms and effects against plain models."""

from __future__ import annotations

import os
import pickle
import sys
from random import Random

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import scaled_examples
from support.processes import run_process
from support.task_problems import (
    DATA,
    formulas,
    ground_actions,
    load,
    plain_closure,
    plain_value,
    random_state,
)

from tmkit.errors import TaskError
from tmkit.pddl import And, Fact, GroundAction, Not, Problem, State, parse_domain, parse_goal
from tmkit.pddl.evaluation import Interpretation
from tmkit.pddl.formulas import (
    Add,
    Atom,
    Delete,
    Effect,
    EffectAnd,
    Exists,
    Forall,
    ForEach,
    Formula,
    Imply,
    Or,
    Parameter,
    When,
)

PROBLEMS = {name: load(name) for name in ("places", "rooms", "lamps", "oddities")}


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_formulas_are_worth_what_the_plain_model_says(name: str) -> None:
    """A random formula has the same value as by enumeration of all quantified objects."""
    problem = PROBLEMS[name]

    @settings(max_examples=scaled_examples(0.5))
    @given(formula=formulas(problem), seed=st.integers(0, 10**6))
    def check(formula: Formula, seed: int) -> None:
        state = random_state(problem, Random(seed))
        facts = plain_closure(problem, state)
        assert problem.holds(state, formula) == plain_value(formula, facts, problem, {})
        assert (not Interpretation(problem, state).failures(formula)) == problem.holds(
            state, formula
        )

    check()


@settings(max_examples=scaled_examples(0.3))
@given(seed=st.integers(0, 10**6))
def test_derived_facts_are_the_plain_fixpoint(seed: int) -> None:
    """The axioms derive the same facts as the enumeration of all objects."""
    problem = PROBLEMS["rooms"]
    state = random_state(problem, Random(seed))
    assert problem.derive_facts(state).facts == plain_closure(problem, state) - state.facts


def plain_successor(problem: Problem, state: State, step: GroundAction) -> State:
    """Apply a step by the plain definition: collect effects over all objects, delete, then add."""
    schema, binding = problem.binding_of(step)
    facts = plain_closure(problem, state)
    added: set[Fact] = set()
    deleted: set[Fact] = set()

    def collect(effect: Effect, values: dict[str, str]) -> None:
        match effect:
            case Add(atom):
                added.add(atom.ground(values))
            case Delete(atom):
                deleted.add(atom.ground(values))
            case EffectAnd(parts):
                for part in parts:
                    collect(part, values)
            case When(condition, inner):
                if plain_value(condition, facts, problem, values):
                    collect(inner, values)
            case ForEach((parameter,), inner):
                for name in problem.objects_of(parameter.types):
                    collect(inner, {**values, parameter.name: name})

    collect(schema.effect, binding)
    return State((state.facts - deleted) | added)


@pytest.mark.parametrize("name", list(PROBLEMS))
@settings(max_examples=scaled_examples(0.2))
@given(seed=st.integers(0, 10**6))
def test_actions_do_what_the_plain_model_does(name: str, seed: int) -> None:
    """Exactly the actions whose precondition holds apply, with the effects of the plain model."""
    problem, random = PROBLEMS[name], Random(seed)
    state = random_state(problem, random)
    facts = plain_closure(problem, state)
    steps = list(ground_actions(problem))
    for step in random.sample(steps, min(8, len(steps))):
        schema, binding = problem.binding_of(step)
        applicable = plain_value(schema.precondition, facts, problem, binding)
        assert (not problem.why_not(state, step)) == applicable
        if applicable:
            assert problem.apply(state, step) == plain_successor(problem, state, step)
        else:
            with pytest.raises(TaskError, match="is not applicable"):
                problem.apply(state, step)


def test_an_atom_added_and_deleted_is_added() -> None:
    """Deletes are applied before adds, in any written order."""
    domain = parse_domain(
        "(define (domain d) (:predicates (p) (q)) (:action one :effect (and (p) (not (p))))"
        " (:action two :effect (and (not (p)) (when (q) (p)))))"
    )
    problem = Problem("p", domain, objects={}, init=State([Fact("p"), Fact("q")]), goal=And())
    for name in ("one", "two"):
        assert problem.apply(problem.init, GroundAction(name)) == problem.init
    assert problem.apply(State([Fact("p")]), GroundAction("two")) == State()


def test_conditions_speak_of_the_state_before() -> None:
    """Pressing a switch puts out the lamp that is lit and lights the one that is not, at once."""
    problem = PROBLEMS["lamps"]
    after = problem.apply(
        problem.init.change(add=[Fact.of("lit", "l1")]), GroundAction("press", ("s1",))
    )
    assert Fact.of("lit", "l1") not in after
    assert Fact.of("lit", "l2") in after


def test_every_failing_literal_is_given() -> None:
    """All parts of a precondition that fail are named, ground, derived and negated ones too."""
    problem = PROBLEMS["rooms"]
    failures = problem.why_not(problem.init, GroundAction("drive", ("hall", "hall")))
    assert [str(part) for part in failures] == [
        "(robot-at hall)",
        "(passage hall hall)",
        "(not (= hall hall))",
    ]


def test_quantifiers_over_an_empty_type() -> None:
    """With no object of a type, ``forall`` holds and ``exists`` does not."""
    problem = PROBLEMS["places"]
    empty = Problem("empty", problem.domain, objects={}, init=State(), goal=And())
    block = (Parameter("?x", ("block",)),)
    assert empty.holds(empty.init, Forall(block, Or()))
    assert not empty.holds(empty.init, Exists(block, And()))


def test_quantified_variables_hide_outer_ones() -> None:
    """An inner quantifier over the same name binds its own variable."""
    problem = PROBLEMS["places"]
    block = (Parameter("?x", ("block",)),)
    formula = Exists(
        block, And((Atom("clear", ("?x",)), Exists(block, Not(Atom("clear", ("?x",))))))
    )
    assert problem.holds(problem.init, formula)
    assert not problem.holds(
        problem.init,
        Forall(block, Imply(Atom("clear", ("?x",)), Forall(block, Atom("clear", ("?x",))))),
    )


def test_numeric_comparisons_use_the_given_values() -> None:
    """Functions have the values of the problem; a comparison with an undefined one is false."""
    problem = PROBLEMS["rooms"]
    for text, expected in (
        ("(> (distance hall study) (distance hall dock))", True),
        ("(= (+ (distance hall dock) 2) (* 2 (/ (distance hall study) 2)))", True),
        ("(<= (- (distance hall study)) -4)", True),
        ("(>= (distance dock dock) 0)", False),
        ("(<= (distance dock dock) 0)", False),
        ("(= (/ 1 0) 1)", False),
    ):
        goal = parse_goal(text, problem.domain, objects=problem.objects)
        assert problem.holds(problem.init, goal) is expected, text


def test_states_are_values() -> None:
    """Equal facts make equal states with equal hashes; a state is immutable and can be pickled."""
    state = State([Fact.of("on", "a", "b"), Fact.of("clear", "a")])
    other = State([Fact.of("clear", "a"), Fact.of("on", "a", "b"), Fact.of("clear", "a")])
    assert state == other
    assert hash(state) == hash(other)
    assert [str(fact) for fact in state] == ["(clear a)", "(on a b)"]
    assert pickle.loads(pickle.dumps(state)) == state
    with pytest.raises(AttributeError, match="is immutable"):
        state.facts_ = ()


def test_difference_names_missing_and_unexpected_facts() -> None:
    """The difference of expected and observed states is sorted, and false for equal states."""
    expected = State([Fact.of("on", "a", "b"), Fact.of("clear", "a")])
    observed = State([Fact.of("clear", "a"), Fact.of("held", "b")])
    difference = expected.difference(observed)
    assert difference
    assert (difference.missing, difference.unexpected) == (
        (Fact.of("on", "a", "b"),),
        (Fact.of("held", "b"),),
    )
    assert str(difference) == "missing (on a b); unexpected (held b)"
    assert not expected.difference(expected)
    assert str(expected.difference(expected)) == "no difference"


def test_order_does_not_depend_on_the_hash_seed() -> None:
    """Iteration over a state, derived facts and objects is the same under different hash seeds."""
    code = (
        "from support.task_problems import load; p = load('rooms');"
        "print(p.init, p.derive_facts(p.init), list(p.objects_of('place')))"
    )
    outputs = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(DATA.parent.parent)}
        done = run_process(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_applicable_actions_are_those_of_the_enumeration(name: str) -> None:
    """In random states the actions are those whose preconditions hold, each once and in order."""
    problem = PROBLEMS[name]
    order = {action.name: index for index, action in enumerate(problem.domain.actions)}

    @settings(max_examples=scaled_examples(0.2))
    @given(seed=st.integers(0, 10**6))
    def check(seed: int) -> None:
        state = random_state(problem, Random(seed))
        actions = [
            action for action in ground_actions(problem) if not problem.why_not(state, action)
        ]
        actions.sort(key=lambda action: (order[action.name], action.arguments))
        assert list(problem.applicable_actions(state)) == actions

    check()
