"""The translated task: what Fast Downward searches, and how it is told never to do a thing again.

The idea: translating PDDL costs more than searching, and what the motion planner learns ("this placement cannot be
reached while that block stands there") is about ground actions and facts. So the task is translated once, and each
lesson patches the result. A :class:`TranslatedTask` is the translator's output file as a value: finite-domain
variables whose values stand for facts, operators, and axioms. It is written back byte for byte as it was read.

:meth:`TranslatedTask.forbid` says that an action must not be done while certain facts hold. It adds one two-valued
derived variable per context, with one axiom ``context -> blocked``, and the precondition *not blocked* to the
action's operators. No operator is split and nothing else changes, so many lessons stay cheap; but the search must be
one that takes axioms. For those that do not, such as optimal search with landmarks, a task may have its operators taken
apart instead (:mod:`tmkit.task_planning.splitting`).

Facts without a variable: the translator drops facts that are the same in every reachable state. So such a fact holds
always, if it holds initially, and else never. (It must be run with ``--keep-unimportant-variables``, or it drops
others too.)

File format: https://www.fast-downward.org/latest/documentation/translator-output-format/, version 3.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from tmkit._support.time_limits import check_time
from tmkit.errors import TaskPlannerError
from tmkit.pddl.formulas import Fact
from tmkit.pddl.model import FrozenMapping, Problem
from tmkit.pddl.schemas import GroundAction
from tmkit.pddl.vocabulary import derived_fault
from tmkit.task_planning.splitting import split

__all__ = ["SasAxiom", "SasEffect", "SasOperator", "SasVariable", "TranslatedTask"]

Pair = tuple[int, int]
"""A variable and one of its values."""

_VERSION = "3"


_MOST_COPIES = 2000  # of operators that one constraint may make by taking some apart, at most


@dataclass(frozen=True, slots=True)
class SasVariable:
    """A finite-domain variable: its name, its axiom layer (-1 when it is not derived), and what each value means."""

    name: str
    layer: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SasEffect:
    """If the conditions hold, the variable goes from the value ``before`` (-1: any) to ``after``."""

    conditions: tuple[Pair, ...]
    variable: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class SasOperator:
    """A ground action: its name, the values it needs and keeps, its effects, its cost."""

    name: str
    prevail: tuple[Pair, ...]
    effects: tuple[SasEffect, ...]
    cost: int


@dataclass(frozen=True, slots=True)
class SasAxiom:
    """If the conditions hold, the derived variable goes from ``before`` to ``after``."""

    conditions: tuple[Pair, ...]
    variable: int
    before: int
    after: int


@dataclass(frozen=True)
class TranslatedTask:
    """A task in finite-domain variables.

    Attributes:
        problem: the problem it was translated from.
        metric: whether costs count.
        variables: the variables.
        mutexes: groups of values of which at most one holds in any reachable state.
        init: the initial value of each variable.
        goal: the values to reach.
        operators: the ground actions.
        axioms: the rules for derived variables.
        names: for each object renamed in translation, its real name.
        blocked: for each context that some action is forbidden in, the variable that tells whether it holds.
        encoding: how it is told what is forbidden: by axioms, by taking operators apart (``split``), or by the latter
            as long as that makes few operators (``auto``), since heuristics see through operators, but not axioms.
        complete: whether the translator came to its end. A task that is not complete is empty, and searching it ends at
            the limit at once.
    """

    problem: Problem = field(repr=False)
    metric: int
    variables: tuple[SasVariable, ...] = field(repr=False)
    mutexes: tuple[tuple[Pair, ...], ...] = field(repr=False)
    init: tuple[int, ...] = field(repr=False)
    goal: tuple[Pair, ...] = field(repr=False)
    operators: tuple[SasOperator, ...] = field(repr=False)
    axioms: tuple[SasAxiom, ...] = field(repr=False)
    names: FrozenMapping[str, str] = field(default_factory=FrozenMapping, repr=False)
    blocked: FrozenMapping[frozenset[Pair], int] = field(default_factory=FrozenMapping, repr=False)
    encoding: Literal["auto", "axioms", "split"] = "auto"
    complete: bool = True

    # ------------------------------------------------------------------------------------------------------ meaning

    @cached_property
    def _values(self) -> dict[Fact, Pair]:
        """The variable and value of each fact that has one."""
        return {
            self._fact(meaning): (number, value)
            for number, variable in enumerate(self.variables)
            if variable.layer < 0
            for value, meaning in enumerate(variable.values)
            if meaning.startswith("Atom ")
        }

    def value_of(self, fact: Fact) -> Pair | None:
        """Return the variable and value that stand for a basic fact; None when it is the same in every state."""
        return self._values.get(fact)

    def _fact(self, meaning: str) -> Fact:
        """Return the fact that ``Atom on(a, b)`` means."""
        predicate, _, arguments = meaning.removeprefix("Atom ").removesuffix(")").partition("(")
        return Fact(predicate, tuple(self.names.get(name, name) for name in arguments.split(", ") if name))

    def action_of(self, operator_name: str) -> GroundAction:
        """Return the ground action that an operator's name, ``stack a b``, stands for."""
        name, *arguments = operator_name.split()
        return GroundAction(name, tuple(self.names.get(argument, argument) for argument in arguments))

    def _operator_name(self, action: GroundAction) -> str:
        """Return the operator name of an action; the translator writes a blank behind one without arguments."""
        spelling = {real: spelled for spelled, real in self.names.items()}
        return " ".join((action.name, *(spelling.get(argument, argument) for argument in action.arguments)))

    @property
    def fact_count(self) -> int:
        """The number of values that all variables have together."""
        return sum(len(variable.values) for variable in self.variables)

    def goal_is_impossible(self) -> bool:
        """Tell whether some two of the goal's facts can be proved never to hold together; False proves nothing."""
        from tmkit.task_planning.mutexes import goal_is_impossible

        return goal_is_impossible(self)

    # --------------------------------------------------------------------------------------------------- forbidding

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> TranslatedTask:
        """Return the task in which ``action`` is never done in a state where all facts of ``context`` hold.

        Args:
            action: the ground action. One that can never be done anyway may be forbidden, without effect.
            context: basic facts; with none the action is forbidden altogether.

        Raises:
            TaskError: an action or fact that the problem does not know, or a derived fact.
        """
        self.problem.binding_of(action)
        literals = self._literals(context)
        if literals is None:
            return self
        name = self._operator_name(action)
        chosen = [index for index, operator in enumerate(self.operators) if operator.name.rstrip() == name]
        if not chosen:
            return self
        if not literals:
            kept = (op for index, op in enumerate(self.operators) if index not in chosen)
            return replace(self, operators=tuple(kept))
        copies = len(chosen) * sum(len(self.variables[variable].values) - 1 for variable, _ in literals)
        if self.encoding == "split" or (self.encoding == "auto" and copies <= _MOST_COPIES):
            return self._split(chosen, literals)
        task, variable = self._blocked_by(literals)
        operators = list(self.operators)
        for index in chosen:
            guard = (variable, 1)
            if guard not in operators[index].prevail:
                operators[index] = replace(operators[index], prevail=(*operators[index].prevail, guard))
        return replace(task, operators=tuple(operators))

    def _split(self, chosen: Iterable[int], context: frozenset[Pair]) -> TranslatedTask:
        """Return the task with the chosen operators taken apart, so that none is done in the context."""
        members = set(chosen)
        operators = (
            split(operator, context, variables=self.variables, excluding=self._excluding)
            if index in members
            else (operator,)
            for index, operator in enumerate(self.operators)
        )
        return replace(self, operators=tuple(itertools.chain.from_iterable(operators)))

    @cached_property
    def _excluding(self) -> dict[Pair, frozenset[int]]:
        """The groups of values that exclude each other, by their values."""
        found: dict[Pair, set[int]] = {}
        for number, group in enumerate(self.mutexes):
            for pair in group:
                found.setdefault(pair, set()).add(number)
        return {pair: frozenset(numbers) for pair, numbers in found.items()}

    def _literals(self, context: Iterable[Fact]) -> frozenset[Pair] | None:
        """Return the values that say that all facts hold, ``None`` when they never do."""
        literals: dict[int, int] = {}
        for fact in context:
            words, derived = self.problem.vocabulary, self.problem.domain.derived_predicates
            fault = derived_fault(fact.predicate, derived) or words.atom_fault(fact.predicate, fact.arguments, {})
            if fault is not None:
                raise self.problem.error(f"context {fact}: {fault.reason}")
            if fact in self._values:
                variable, value = self._values[fact]
                if literals.setdefault(variable, value) != value:
                    return None
            elif fact not in self.problem.init:
                return None
        return frozenset(literals.items())

    def _blocked_by(self, literals: frozenset[Pair]) -> tuple[TranslatedTask, int]:
        """Return the task with a derived variable that is 0 exactly when all ``literals`` hold, and the variable."""
        if literals in self.blocked:
            return self, self.blocked[literals]
        number = len(self.variables)
        label = f"blocked--{len(self.blocked) + 1}()"
        variable = SasVariable(f"var{number}", 0, (f"Atom {label}", f"NegatedAtom {label}"))
        axiom = SasAxiom(tuple(sorted(literals)), number, 1, 0)
        task = replace(
            self,
            variables=(*self.variables, variable),
            init=(*self.init, 1),
            axioms=(*self.axioms, axiom),
            blocked=FrozenMapping({**self.blocked, literals: number}),
        )
        return task, number

    # ------------------------------------------------------------------------------------------------------ writing

    def to_text(self) -> str:
        """Return the task in the translator's output format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from ("begin_version", _VERSION, "end_version", "begin_metric", str(self.metric), "end_metric")
        yield str(len(self.variables))
        for variable in self.variables:
            yield from ("begin_variable", variable.name, str(variable.layer), str(len(variable.values)))
            yield from variable.values
            yield "end_variable"
        yield str(len(self.mutexes))
        for group in self.mutexes:
            yield "begin_mutex_group"
            yield from _pair_lines(group)
            yield "end_mutex_group"
        yield from ("begin_state", *map(str, self.init), "end_state", "begin_goal", *_pair_lines(self.goal), "end_goal")
        yield str(len(self.operators))
        for operator in self.operators:
            check_time()
            yield from ("begin_operator", operator.name, *_pair_lines(operator.prevail), str(len(operator.effects)))
            yield from map(_effect_line, operator.effects)
            yield from (str(operator.cost), "end_operator")
        yield str(len(self.axioms))
        for axiom in self.axioms:
            yield from ("begin_rule", *_pair_lines(axiom.conditions))
            yield from (f"{axiom.variable} {axiom.before} {axiom.after}", "end_rule")

    # ------------------------------------------------------------------------------------------------------ reading

    @classmethod
    def unfinished(cls, problem: Problem) -> TranslatedTask:
        """Return what there is when the translator ran out of time or memory: nothing."""
        return cls(problem, 0, (), (), (), (), (), (), complete=False)

    @classmethod
    def from_text(cls, text: str, problem: Problem, *, names: Mapping[str, str] | None = None) -> TranslatedTask:
        """Read the translator's output.

        Args:
            text: the output file.
            problem: the problem that was translated.
            names: for each object renamed in translation, its real name.

        Raises:
            TaskPlannerError: the text is not in the format, version 3.
        """
        try:
            return _Reader(text).task(problem, names or {})
        except (ValueError, StopIteration) as error:
            reason = str(error) or "it ends too early"
            raise TaskPlannerError(f"the translator's output cannot be read: {reason}", command=(), output="") from None


def _pair_lines(pairs: Iterable[Pair]) -> Iterator[str]:
    listed = tuple(pairs)
    yield str(len(listed))
    for variable, value in listed:
        yield f"{variable} {value}"


def _effect_line(effect: SasEffect) -> str:
    numbers = [len(effect.conditions)]
    for pair in effect.conditions:
        numbers.extend(pair)
    return " ".join(map(str, [*numbers, effect.variable, effect.before, effect.after]))


class _Reader:
    """Reads the format line by line."""

    def __init__(self, text: str) -> None:
        self._lines = iter(text.split("\n"))

    def _expect(self, wanted: str) -> None:
        line = next(self._lines)
        if line != wanted:
            raise ValueError(f"expected '{wanted}', found '{line}'")

    def _number(self) -> int:
        return int(next(self._lines))

    def _pair(self) -> Pair:
        variable, value = map(int, next(self._lines).split())
        return variable, value

    def _pairs(self) -> tuple[Pair, ...]:
        return tuple(self._pair() for _ in range(self._number()))

    def task(self, problem: Problem, names: Mapping[str, str]) -> TranslatedTask:
        self._expect("begin_version")
        self._expect(_VERSION)
        self._expect("end_version")
        self._expect("begin_metric")
        metric = self._number()
        self._expect("end_metric")
        variables = tuple(self._variable() for _ in range(self._number()))
        mutexes = tuple(self._mutex() for _ in range(self._number()))
        self._expect("begin_state")
        init = tuple(self._number() for _ in variables)
        self._expect("end_state")
        self._expect("begin_goal")
        goal = self._pairs()
        self._expect("end_goal")
        operators = tuple(self._operator() for _ in range(self._number()))
        axioms = tuple(self._axiom() for _ in range(self._number()))
        return TranslatedTask(problem, metric, variables, mutexes, init, goal, operators, axioms, FrozenMapping(names))

    def _variable(self) -> SasVariable:
        self._expect("begin_variable")
        name, layer = next(self._lines), self._number()
        values = tuple(next(self._lines) for _ in range(self._number()))
        self._expect("end_variable")
        return SasVariable(name, layer, values)

    def _mutex(self) -> tuple[Pair, ...]:
        self._expect("begin_mutex_group")
        pairs = self._pairs()
        self._expect("end_mutex_group")
        return pairs

    def _operator(self) -> SasOperator:
        check_time()
        self._expect("begin_operator")
        name, prevail = next(self._lines), self._pairs()
        effects = tuple(self._effect() for _ in range(self._number()))
        cost = self._number()
        self._expect("end_operator")
        return SasOperator(name, prevail, effects, cost)

    def _effect(self) -> SasEffect:
        count, *numbers = map(int, next(self._lines).split())
        conditions = tuple((numbers[2 * i], numbers[2 * i + 1]) for i in range(count))
        variable, before, after = numbers[2 * count :]
        return SasEffect(conditions, variable, before, after)

    def _axiom(self) -> SasAxiom:
        self._expect("begin_rule")
        conditions = self._pairs()
        variable, before, after = map(int, next(self._lines).split())
        self._expect("end_rule")
        return SasAxiom(conditions, variable, before, after)
