"""A task as the parser of Fast Downward's translator reads it: the oracle for our reader of PDDL.

Both read the same files; then the conditions and effects, which the two keep in different shapes,
are judged in random states. :func:`compare` raises :class:`DisagreementError` with the first
difference.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tmkit.pddl import And, Fact, Problem, State, load_domain, load_problem
from tmkit.pddl.evaluation import Interpretation

MOST_BINDINGS = 20_000
"""A quantifier or effect with more bindings than this is not judged: it would take too long."""

MOST_FACTS = 20_000
"""Of the facts that random states are made of, at most so many of each predicate are looked at."""


class DisagreementError(Exception):
    """The two readers differ."""


class OracleRefusalError(Exception):
    """The translator does not read the files."""


class TooManyBindingsError(Exception):
    """A quantifier ranges over too many combinations of objects to be judged plainly."""


class Oracle:
    """A task as the translator's parser reads it, and the truth of its conditions.

    Args:
        domain: the text of the domain.
        problem: the text of the problem.

    Raises:
        OracleRefusalError: if the translator rejects them.
    """

    def __init__(self, domain: str, problem: str) -> None:
        from fast_downward.translate import normalize, options, pddl
        from fast_downward.translate.pddl_parser import lisp_parser, parsing_functions

        options.set_options(["--keep-no-ops", "domain.pddl", "problem.pddl"])
        self.pddl = pddl
        self.warnings = io.StringIO()
        try:
            with (
                contextlib.redirect_stdout(self.warnings),
                contextlib.redirect_stderr(self.warnings),
            ):
                lists = [
                    lisp_parser.parse_nested_list(text.splitlines()) for text in (domain, problem)
                ]
                self.task = parsing_functions.parse_task(*lists)
                again = [
                    lisp_parser.parse_nested_list(text.splitlines()) for text in (domain, problem)
                ]
                normalize.normalize(parsing_functions.parse_task(*again))
        except (Exception, SystemExit) as error:
            raise OracleRefusalError(f"{type(error).__name__}: {str(error).strip()}") from error
        self._above = {kind.name: {kind.name, *kind.supertype_names} for kind in self.task.types}
        self._members: dict[str, list[str]] = {}

    def objects_of(self, wanted: str) -> list[str]:
        """Return the objects of a type."""
        if wanted not in self._members:
            things = self.task.objects
            self._members[wanted] = [
                o.name for o in things if wanted in self._above[o.type_name] | {"object"}
            ]
        return self._members[wanted]

    def bindings(self, parameters: Any, binding: Mapping[str, str]) -> Iterator[dict[str, str]]:
        """Yield the binding extended by all objects for the parameters."""
        names = [parameter.name for parameter in parameters]
        domains = [self.objects_of(parameter.type_name) for parameter in parameters]
        count = 1
        for domain in domains:
            count *= len(domain)
        if count > MOST_BINDINGS:
            raise TooManyBindingsError
        for values in itertools.product(*domains):
            yield {**binding, **dict(zip(names, values, strict=True))}

    def holds(self, condition: Any, facts: set[Fact], binding: Mapping[str, str]) -> bool:
        """Judge one of the translator's conditions."""
        match condition:
            case self.pddl.Truth():
                return True
            case self.pddl.Falsity():
                return False
            case self.pddl.Conjunction():
                return all(self.holds(part, facts, binding) for part in condition.parts)
            case self.pddl.Disjunction():
                return any(self.holds(part, facts, binding) for part in condition.parts)
            case self.pddl.UniversalCondition():
                inner = self.bindings(condition.parameters, binding)
                return all(self.holds(condition.parts[0], facts, values) for values in inner)
            case self.pddl.ExistentialCondition():
                inner = self.bindings(condition.parameters, binding)
                return any(self.holds(condition.parts[0], facts, values) for values in inner)
        arguments = tuple(binding.get(argument, argument) for argument in condition.args)
        if condition.predicate == "=":
            return (arguments[0] == arguments[1]) != condition.negated
        return (Fact(condition.predicate, arguments) in facts) != condition.negated

    def change(
        self, effects: Any, facts: set[Fact], binding: Mapping[str, str]
    ) -> tuple[set[Fact], set[Fact]]:
        """Return the facts that the translator's effects add and delete."""
        added: set[Fact] = set()
        deleted: set[Fact] = set()
        for effect in effects:
            for values in self.bindings(effect.parameters, binding):
                if self.holds(effect.condition, facts, values):
                    arguments = tuple(
                        values.get(argument, argument) for argument in effect.literal.args
                    )
                    (deleted if effect.literal.negated else added).add(
                        Fact(effect.literal.predicate, arguments)
                    )
        return added, deleted


def compare(domain_path: Path, problem_path: Path, *, states: int) -> Problem:
    """Compare one task read by both, and return tmkit's, with fractions cut off for the translator.

    Args:
        domain_path: the domain.
        problem_path: the problem.
        states: in how many random states conditions and effects are judged.

    Raises:
        OracleRefusalError: if the translator rejects the files; tmkit's reader is not run.
        TaskError: if only tmkit's reader rejects them.
        DisagreementError: if the results of both differ.
    """
    texts = (
        re.sub(r"(?<=\s)(\d+)\.\d+(?=[\s)])", r"\1", path.read_text())
        for path in (domain_path, problem_path)
    )
    oracle = Oracle(*texts)
    problem = load_problem(problem_path, load_domain(domain_path))
    _compare_names(problem, oracle)
    source = random.Random(f"{problem_path.parent.name}/{problem_path.name}")
    for _ in range(states):
        _compare_meanings(problem, oracle, source)
    return problem


def _agree(what: str, ours: object, theirs: object) -> None:
    if ours != theirs:
        raise DisagreementError(f"{what}: ours {ours!r}, theirs {theirs!r}")


def _compare_names(problem: Problem, oracle: Oracle) -> None:
    task = oracle.task
    _agree("objects", sorted(problem.all_objects), sorted(thing.name for thing in task.objects))
    _agree("actions", [a.name for a in problem.domain.actions], [a.name for a in task.actions])
    _agree("axioms", [a.predicate for a in problem.domain.axioms], [a.name for a in task.axioms])
    for name, parameters, wanted in (
        *(
            (a.name, b.parameters, a.parameters)
            for a, b in zip(problem.domain.actions, task.actions, strict=True)
        ),
        *(
            (a.predicate, b.parameters, a.parameters)
            for a, b in zip(problem.domain.axioms, task.axioms, strict=True)
        ),
    ):
        _agree(f"parameters of {name}", [p.name for p in wanted], [p.name for p in parameters])
    atoms = {
        Fact(atom.predicate, tuple(atom.args))
        for atom in task.init
        if isinstance(atom, oracle.pddl.Atom)
    }
    _agree(
        "initial facts",
        set(problem.init.facts) ^ {atom for atom in atoms if atom.predicate != "="},
        set(),
    )
    for kind in problem.domain.types:
        _agree(
            f"objects of {kind.name}",
            sorted(problem.objects_of(kind.name)),
            sorted(oracle.objects_of(kind.name)),
        )
    values = {
        Fact(value.fluent.symbol, tuple(value.fluent.args)): int(value.expression.value)
        for value in task.init
        if not isinstance(value, oracle.pddl.Atom)
    }
    _agree("initial values", {fact: int(value) for fact, value in problem.values.items()}, values)
    _agree("metric", problem.metric.value == "total-cost", task.use_min_cost_metric)


def random_state(problem: Problem, source: random.Random) -> State:
    """Return a state in which facts are true with a random density, mostly initial facts."""
    density = source.choice([0.0, 0.05, 0.3, 0.7])
    kept_fraction = source.choice([0.0, 0.9, 1.0])
    derived = problem.domain.derived_predicates
    facts = {fact for fact in problem.init if source.random() < kept_fraction}
    for predicate in problem.domain.predicates:
        if predicate.name not in derived and density:
            choices = [problem.objects_of(p.types) for p in predicate.parameters]
            everything = itertools.product(*choices)
            for arguments in itertools.islice(everything, MOST_FACTS):
                if source.random() < density:
                    facts.add(Fact(predicate.name, arguments))
    return State(facts)


def _compare_meanings(problem: Problem, oracle: Oracle, source: random.Random) -> None:
    state = random_state(problem, source)
    facts = set(state) | set(problem.derive_facts(state))
    interpretation = Interpretation(problem, state)

    def judge(what: str, ours: Any, theirs: Any, binding: dict[str, str]) -> None:
        with contextlib.suppress(TooManyBindingsError):
            expected = oracle.holds(theirs, facts, binding)
            _agree(f"{what} with {binding}", interpretation.holds(ours, binding), expected)

    judge("goal", problem.goal, oracle.task.goal, {})
    for axiom, rule in zip(problem.domain.axioms, oracle.task.axioms, strict=True):
        choices = [problem.objects_of(parameter.types) for parameter in axiom.parameters]
        if all(choices):
            names = [parameter.name for parameter in axiom.parameters]
            binding = {
                name: source.choice(values) for name, values in zip(names, choices, strict=True)
            }
            judge(f"axiom {axiom.predicate}", axiom.condition, rule.condition, binding)
    for action, other in zip(problem.domain.actions, oracle.task.actions, strict=True):
        choices = [problem.objects_of(parameter.types) for parameter in action.parameters]
        for parameter, values in zip(other.parameters, choices, strict=True):
            _agree(
                f"values of {parameter.name} of {action.name}",
                set(values),
                set(oracle.objects_of(parameter.type_name)),
            )
        solutions = interpretation.solutions(action.precondition, action.parameters)
        bindings = list(itertools.islice(solutions, 2)) if action.precondition != And() else []
        if all(choices):
            names = [parameter.name for parameter in action.parameters]
            bindings += [
                {n: source.choice(v) for n, v in zip(names, choices, strict=True)} for _ in range(3)
            ]
        for binding in bindings:
            judge(
                f"precondition of {action.name}", action.precondition, other.precondition, binding
            )
            with contextlib.suppress(TooManyBindingsError):
                added, deleted = oracle.change(other.effects, facts, binding)
                change = interpretation.change(action.effect, binding)
                ours = (change.added, change.deleted - change.added)
                _agree(f"effect of {action.name} with {binding}", ours, (added, deleted - added))
                _agree(
                    f"cost of {action.name}", *_costs(problem, oracle, other, change.cost, binding)
                )


def _costs(
    problem: Problem, oracle: Oracle, other: Any, ours: float | None, binding: Mapping[str, str]
) -> tuple[int | None, int | None]:
    """Return the cost by both readers as whole numbers; ``None`` for a missing value."""
    if other.cost is None or ours is None:
        return (0, 0) if other.cost is None and not ours else (None, None)
    expression = other.cost.expression
    if isinstance(expression, oracle.pddl.NumericConstant):
        return int(ours), int(expression.value)
    arguments = tuple(binding.get(argument, argument) for argument in expression.args)
    return int(ours), int(problem.values[Fact(expression.symbol, arguments)])
