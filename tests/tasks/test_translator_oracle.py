"""Our reader against the parser of Fast Downward's translator: the same actions, axioms, facts, objects and meanings.

Both read the same files; then conditions and effects, which they keep in different shapes, are judged in random states.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.task_problems import DATA, random_state, samples

from tmkit.tasks import Fact, Interpretation, Problem, load_domain, load_problem

OWN = ("places", "gripper", "rooms", "lamps")


class Oracle:
    """A task as the translator's parser reads it, and the truth of its conditions."""

    def __init__(self, domain: str, problem: str) -> None:
        from fast_downward.translate import options, pddl
        from fast_downward.translate.pddl_parser import lisp_parser, parsing_functions

        options.set_options(["domain.pddl", "problem.pddl"])
        self.pddl = pddl
        lists = [lisp_parser.parse_nested_list(text.splitlines()) for text in (domain, problem)]
        self.task = parsing_functions.parse_task(*lists)
        self.parents = {kind.name: kind.basetype_name for kind in self.task.types}

    def objects_of(self, wanted: str) -> list[str]:
        """Return the objects of a type."""
        found = []
        for thing in self.task.objects:
            kind = thing.type_name
            while kind is not None and kind != wanted:
                kind = self.parents[kind]
            if kind == wanted:
                found.append(thing.name)
        return found

    def bindings(self, parameters: Any, binding: dict[str, str]) -> Iterator[dict[str, str]]:
        """Yield the binding extended by all objects for the parameters."""
        names = [parameter.name for parameter in parameters]
        for values in itertools.product(*(self.objects_of(parameter.type_name) for parameter in parameters)):
            yield binding | dict(zip(names, values, strict=True))

    def holds(self, condition: Any, facts: set[Fact], binding: dict[str, str]) -> bool:
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
        truth = (
            arguments[0] == arguments[1]
            if condition.predicate == "="
            else Fact(condition.predicate, arguments) in facts
        )
        return truth != condition.negated

    def change(self, effects: Any, facts: set[Fact], binding: dict[str, str]) -> tuple[set[Fact], set[Fact]]:
        """Return what the translator's effects add and delete."""
        added: set[Fact] = set()
        deleted: set[Fact] = set()
        for effect in effects:
            for values in self.bindings(effect.parameters, binding):
                if self.holds(effect.condition, facts, values):
                    arguments = tuple(values.get(argument, argument) for argument in effect.literal.args)
                    (deleted if effect.literal.negated else added).add(Fact(effect.literal.predicate, arguments))
        return added, deleted


def compare(domain_path: Path, problem_path: Path, *, states: int) -> None:
    """Compare one task read by both; the translator knows no fractions, so they are cut off for it."""
    problem = load_problem(problem_path, load_domain(domain_path))
    oracle = Oracle(*(re.sub(r"(\d)\.\d+", r"\1", path.read_text()) for path in (domain_path, problem_path)))
    task = oracle.task
    assert {thing.name for thing in task.objects} == set(problem.all_objects)
    assert [action.name for action in task.actions] == [action.name for action in problem.domain.actions]
    assert len(task.axioms) == len(problem.domain.axioms)
    atoms = {Fact(atom.predicate, tuple(atom.args)) for atom in task.init if isinstance(atom, oracle.pddl.Atom)}
    assert {atom for atom in atoms if atom.predicate != "="} == problem.init.facts
    for kind in problem.domain.types:
        assert set(oracle.objects_of(kind.name)) == set(problem.objects_of(kind.name))
    source = random.Random(str(problem_path.parent.name))
    for _ in range(states):
        _compare_meanings(problem, oracle, source)


def _compare_meanings(problem: Problem, oracle: Oracle, source: random.Random) -> None:
    state = random_state(problem, source)
    facts = set(state) | set(state.derived(problem))
    interpretation = Interpretation(problem, state.facts)
    assert interpretation.holds(problem.goal) == oracle.holds(oracle.task.goal, facts, {})
    for ours, theirs in zip(problem.domain.axioms, oracle.task.axioms, strict=True):
        choices = {parameter.name: problem.objects_of(parameter.types) for parameter in ours.parameters}
        binding = {name: source.choice(values) for name, values in choices.items()}
        assert interpretation.holds(ours.condition, binding) == oracle.holds(theirs.condition, facts, binding)
    for action, other in zip(problem.domain.actions, oracle.task.actions, strict=True):
        for _ in range(3):
            choices = {parameter.name: problem.objects_of(parameter.types) for parameter in action.parameters}
            assert all(set(oracle.objects_of(p.type_name)) == set(choices[p.name]) for p in other.parameters)
            binding = {name: source.choice(values) for name, values in choices.items()}
            assert interpretation.holds(action.precondition, binding) == oracle.holds(
                other.precondition, facts, binding
            )
            change = interpretation.change(action.effect, binding)
            added, deleted = oracle.change(other.effects, facts, binding)
            assert (change.added, change.deleted - change.added) == (added, deleted - added)


@pytest.mark.parametrize("name", OWN)
def test_own_files_mean_the_same_to_both(name: str) -> None:
    """Our own files are read alike, and every condition and effect means the same in random states."""
    compare(DATA / name / "domain.pddl", DATA / name / "problem.pddl", states=60)


def test_samples_mean_the_same_to_both() -> None:
    """The published samples are read alike, and every condition and effect means the same in random states."""
    for domain_path, problem_path in samples():
        compare(domain_path, problem_path, states=3)
