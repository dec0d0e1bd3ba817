"""Task problems for the tests: own files, random blocks worlds, random formulas and states."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import strategies as st

from tmkit.pddl import (
    Action,
    And,
    Domain,
    Fact,
    GroundAction,
    Not,
    Predicate,
    Problem,
    State,
    load_domain,
    load_problem,
)
from tmkit.pddl.evaluation import Interpretation
from tmkit.pddl.formulas import (
    Add,
    Atom,
    Axiom,
    Delete,
    Effect,
    EffectAnd,
    Equals,
    Exists,
    Forall,
    Formula,
    Imply,
    Or,
    Parameter,
    When,
)

DATA = Path(__file__).parent.parent / "data" / "pddl"
NAMES = ("places", "gripper", "rooms", "lamps", "oddities")

FEATURES = {
    "costs-and-conditions": 18,
    "deep-effects": 5,
    "domain-constants": 3,
    "either-types": 2,
    "empty-conditions": 4,
    "equality": 2,
    "implications": 3,
    "mixed-case": 2,
    "negative-conditions": 6,
    "nested-effects": 3,
    "numbers-as-names": 9,
    "old-requirement": 3,
    "quantified-goal": 4,
    "recursive-axioms": 2,
    "repeated-value": 4,
    "shadowed-variables": 3,
    "twice-declared": 2,
    "twice-typed": 3,
    "types-as-predicates": 2,
    "undeclared-cost": 4,
    "undeclared-parent": 4,
    "untyped-objects": 3,
}
"""Cost of the best plan of each task in ``features``, with one feature of published domains."""

BEYOND_THE_TRANSLATOR = frozenset({"deep-effects"})
"""Those of the features that the translator does not read as they are written."""


def load(name: str) -> Problem:
    """Return one of our own problems."""
    return load_problem(DATA / name / "problem.pddl", load_domain(DATA / name / "domain.pddl"))


def samples() -> list[tuple[Path, Path]]:
    """Return the published domains and problems in the folder ``TMKIT_SAMPLES``, or skip."""
    folder = os.environ.get("TMKIT_SAMPLES")
    if not folder:
        pytest.skip("TMKIT_SAMPLES names no folder with PDDL samples")
    pairs = [
        (path, path.with_name("problem.pddl")) for path in sorted(Path(folder).rglob("domain.pddl"))
    ]
    extra = Path(folder) / "tm-blocks.pddl"
    return pairs + ([(extra, extra.with_name("tm-sussman.pddl"))] if extra.exists() else [])


def blocks_world(domain: Domain, *, blocks: int, places: int, seed: int) -> Problem:
    """Return a random problem of the domain ``places``: towers to be rebuilt as other towers."""
    random = Random(seed)
    names, sites = [f"b{i}" for i in range(blocks)], [f"p{i}" for i in range(places)]

    def towers() -> list[list[str]]:
        piles: list[list[str]] = []
        for block in random.sample(names, blocks):
            if piles and (random.random() < 0.5 or len(piles) == places):
                random.choice(piles).append(block)
            else:
                piles.append([block])
        return piles

    facts, taken = [Fact.of("empty")], random.sample(sites, places)
    for pile, site in zip(towers(), taken, strict=False):
        facts += [Fact.of("at", pile[0], site), Fact.of("clear", pile[-1])]
        facts += [Fact.of("on", upper, lower) for lower, upper in itertools.pairwise(pile)]
    occupied = {fact.arguments[1] for fact in facts if fact.predicate == "at"}
    facts += [Fact.of("clear", site) for site in sites if site not in occupied]
    goal = [
        Atom("on", (upper, lower)) for pile in towers() for lower, upper in itertools.pairwise(pile)
    ]
    objects = dict.fromkeys(names, "block") | dict.fromkeys(sites, "place")
    return Problem(
        f"random-{seed}", domain, objects=objects, init=State(facts), goal=And(tuple(goal))
    )


# ------------------------------------------------------------------------------------- plain models


def ground_actions(problem: Problem) -> Iterator[GroundAction]:
    """Yield every action with every well-typed choice of arguments."""
    for action in problem.domain.actions:
        for arguments in itertools.product(
            *(problem.objects_of(p.types) for p in action.parameters)
        ):
            yield GroundAction(action.name, arguments)


def shortest_plan(
    problem: Problem,
    *,
    allowed: Callable[[State, GroundAction], bool] = lambda _state, _action: True,
) -> int | None:
    """Return the length of a shortest plan by breadth-first search, or ``None``."""
    steps = shortest_steps(problem, allowed=allowed)
    return None if steps is None else len(steps)


def shortest_steps(
    problem: Problem,
    *,
    allowed: Callable[[State, GroundAction], bool] = lambda _state, _action: True,
) -> tuple[GroundAction, ...] | None:
    """Return a shortest plan by breadth-first search, ``None`` when there is no plan."""
    actions = [(action, *problem.binding_of(action)) for action in ground_actions(problem)]
    steps: dict[State, tuple[GroundAction, ...]] = {problem.init: ()}
    pending = deque([problem.init])
    while pending:
        state = pending.popleft()
        if problem.holds(state, problem.goal):
            return steps[state]
        interpretation = Interpretation(problem, state)
        for action, schema, binding in actions:
            if interpretation.holds(schema.precondition, binding) and allowed(state, action):
                change = interpretation.change(schema.effect, binding)
                successor = state.change(add=change.added, delete=change.deleted)
                if successor not in steps:
                    steps[successor] = (*steps[state], action)
                    pending.append(successor)
    return None


def all_facts(problem: Problem) -> list[Fact]:
    """Return every well-typed basic fact."""
    derived = problem.domain.derived_predicates
    return [
        Fact(predicate.name, arguments)
        for predicate in problem.domain.predicates
        if predicate.name not in derived
        for arguments in itertools.product(
            *(problem.objects_of(p.types) for p in predicate.parameters)
        )
    ]


def random_state(problem: Problem, random: Random) -> State:
    """Return a state in which each fact is true with a random density, mostly initial facts."""
    density = random.choice([0.0, 0.05, 0.3, 0.7])
    kept_fraction = random.choice([0.0, 0.9, 1.0])
    facts = {fact for fact in all_facts(problem) if random.random() < density}
    return State(facts | {fact for fact in problem.init if random.random() < kept_fraction})


def plain_value(
    formula: Formula, facts: frozenset[Fact], problem: Problem, binding: dict[str, str]
) -> bool:
    """Evaluate a formula on ``facts``; quantifiers run over all objects."""

    def instances(parameters: Iterable[Parameter]) -> Iterator[dict[str, str]]:
        listed = list(parameters)
        for values in itertools.product(
            *(problem.objects_of(parameter.types) for parameter in listed)
        ):
            yield {**binding, **{p.name: value for p, value in zip(listed, values, strict=True)}}

    match formula:
        case Atom():
            return formula.ground(binding) in facts
        case Equals(left, right):
            return binding.get(left, left) == binding.get(right, right)
        case Not(part):
            return not plain_value(part, facts, problem, binding)
        case And(parts):
            return all(plain_value(part, facts, problem, binding) for part in parts)
        case Or(parts):
            return any(plain_value(part, facts, problem, binding) for part in parts)
        case Imply(premise, conclusion):
            return plain_value(Or((Not(premise), conclusion)), facts, problem, binding)
        case Exists(parameters, body):
            return any(plain_value(body, facts, problem, inner) for inner in instances(parameters))
        case Forall(parameters, body):
            return all(plain_value(body, facts, problem, inner) for inner in instances(parameters))
        case _:
            raise AssertionError(f"no plain value of {formula}")


def plain_closure(problem: Problem, state: State) -> frozenset[Fact]:
    """Return all true facts: apply all axioms to all objects, group by group, to a fixpoint."""
    facts = set(state.facts)
    for stratum in problem.domain.axiom_strata:
        before = -1
        while before != len(facts):
            before = len(facts)
            for axiom in (axiom for name in stratum for axiom in problem.domain.axioms_for(name)):
                names = [parameter.name for parameter in axiom.parameters]
                for values in itertools.product(
                    *(problem.objects_of(p.types) for p in axiom.parameters)
                ):
                    binding = dict(zip(names, values, strict=True))
                    if plain_value(axiom.condition, frozenset(facts), problem, binding):
                        facts.add(Fact(axiom.predicate, values))
    return frozenset(facts)


# --------------------------------------------------------------------------------------- strategies


@st.composite
def formulas(draw: st.DrawFn, problem: Problem, *, depth: int = 3) -> Formula:
    """A random formula over the predicates and objects of a problem, without free variables."""
    return draw(_formulas(problem, depth, {}))


@st.composite
def _formulas(
    draw: st.DrawFn, problem: Problem, depth: int, scope: dict[str, tuple[str, ...]]
) -> Formula:
    kinds = (
        ["atom", "equals"]
        if depth == 0
        else ["atom", "not", "and", "or", "imply", "exists", "forall"]
    )
    inner = _formulas(problem, depth - 1, scope)
    match draw(st.sampled_from(kinds)):
        case "atom":
            predicate = draw(st.sampled_from(problem.domain.predicates))
            return Atom(
                predicate.name,
                tuple(draw(_terms(problem, p.types, scope)) for p in predicate.parameters),
            )
        case "equals":
            return Equals(*(draw(_terms(problem, ("object",), scope)) for _ in range(2)))
        case "not":
            return Not(draw(inner))
        case "and":
            return And(tuple(draw(st.lists(inner, max_size=3))))
        case "or":
            return Or(tuple(draw(st.lists(inner, max_size=3))))
        case "imply":
            return Imply(draw(inner), draw(inner))
        case kind:
            kinds_of_object = sorted(set(problem.all_objects.values()))
            names = draw(
                st.lists(st.sampled_from(["?x", "?y", "?z"]), min_size=1, max_size=2, unique=True)
            )
            parameters = tuple(
                Parameter(name, draw(st.sampled_from(kinds_of_object))) for name in names
            )
            extended = scope | {parameter.name: parameter.types for parameter in parameters}
            body = draw(_formulas(problem, depth - 1, extended))
            return Exists(parameters, body) if kind == "exists" else Forall(parameters, body)


@st.composite
def _terms(
    draw: st.DrawFn, problem: Problem, types: tuple[str, ...], scope: dict[str, tuple[str, ...]]
) -> str:
    fitting = [
        name
        for name, type_names in scope.items()
        if problem.vocabulary.is_allowed_as(type_names, types)
    ]
    objects = [
        name
        for name, type_names in problem.all_objects.items()
        if problem.vocabulary.is_allowed_as(type_names, types)
    ]
    return draw(st.sampled_from(fitting * 2 + objects))


@st.composite
def small_problems(draw: st.DrawFn) -> Problem:
    """A random problem of a few facts and actions, with conditional effects and derived facts."""
    names = [("p", 1), ("q", 1), ("r", 0), ("s", 0)]
    has_axioms = draw(st.booleans())
    predicates = [
        Predicate(name, (Parameter("?x"),)[:arity]) for name, arity in (*names, ("d", 1), ("e", 1))
    ]

    def atom(term: str, choices: list[tuple[str, int]]) -> Atom:
        name, arity = draw(st.sampled_from(choices))
        return Atom(name, (term,)[:arity])

    def literal(term: str, *, derived: bool = has_axioms) -> Formula:
        names_and_depths = [*names, ("d", 1), ("e", 1)] if derived else names
        positive = atom(term, names_and_depths)
        return positive if draw(st.integers(0, 3)) else Not(positive)

    def effect(term: str) -> Effect:
        changed = (Add if draw(st.booleans()) else Delete)(atom(term, names))
        return changed if draw(st.integers(0, 2)) else When(literal(term), changed)

    actions = []
    for number in range(draw(st.integers(1, 4))):
        term = draw(st.sampled_from(["?x", "one"]))
        needs = And(tuple(literal(term) for _ in range(draw(st.integers(0, 2)))))
        effects = EffectAnd(tuple(effect(term) for _ in range(draw(st.integers(1, 3)))))
        actions.append(
            Action(f"a{number}", (Parameter("?x"),) if term == "?x" else (), needs, effects)
        )
    axioms = [
        Axiom(
            "d",
            (Parameter("?x"),),
            Or((literal("?x", derived=False), atom("?x", [("e", 1), ("p", 1)]))),
        ),
        Axiom(
            "e",
            (Parameter("?x"),),
            And((literal("?x", derived=False), atom("?x", [("d", 1), ("q", 1)]))),
        ),
    ]
    domain = Domain(
        "small",
        constants=(Parameter("one"),),
        predicates=tuple(predicates),
        actions=tuple(actions),
        axioms=tuple(axioms) if has_axioms else (),
    )
    objects = ["two", "three"][: draw(st.integers(0, 2))]
    facts = [Fact(name, (item,)[:arity]) for name, arity in names for item in ("one", *objects)]
    init = draw(st.sets(st.sampled_from(facts), max_size=5))
    goal = And(tuple(literal(item) for item in ("one", *objects)))
    return Problem(
        "random", domain, objects=dict.fromkeys(objects, "object"), init=State(init), goal=goal
    )
