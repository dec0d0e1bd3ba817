"""Reader, writer and value type of the translator's output: variables, operators and axioms.

The values of finite-domain variables represent facts. Reading and writing preserve every byte.
:class:`~tmkit.task_planning.translated_task.TranslatedTask` extends the task by learned
constraints.

The translator omits facts that are the same in every reachable state. A fact without a variable
therefore always holds if it holds initially, and otherwise never. The translator must run with
``--keep-unimportant-variables``; without it, other facts are omitted too.

File format: https://www.fast-downward.org/latest/documentation/translator-output-format/, version
3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

from tmkit._core import TaskSearch
from tmkit._support.time_limits import check_time
from tmkit.errors import TaskPlannerError
from tmkit.pddl.formulas import Fact, GroundAction
from tmkit.pddl.model import FrozenMapping, Problem

Pair = tuple[int, int]
"""A variable and one of its values."""

Values = tuple[int, ...]
"""Value of each variable; -1 if a state has none."""

_VERSION = "3"
"""Version of the file format."""


@dataclass(frozen=True, slots=True)
class SasVariable:
    """A finite-domain variable.

    Attributes:
        name: name of the variable.
        layer: axiom layer; -1 if the variable is not derived.
        values: text of the fact that each value represents.
    """

    name: str
    layer: int
    values: tuple[str, ...]


class SasEffect(NamedTuple):
    """Change of a variable from ``before`` (-1: any) to ``after`` if the conditions hold."""

    conditions: tuple[Pair, ...]
    variable: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class SasOperator:
    """A ground action with its unchanged preconditions (``prevail``), effects and cost."""

    name: str
    prevail: tuple[Pair, ...]
    effects: tuple[SasEffect, ...]
    cost: int

    @property
    def preconditions(self) -> tuple[Pair, ...]:
        """All preconditions, each once."""
        before = ((effect.variable, effect.before) for effect in self.effects if effect.before >= 0)
        return tuple(dict.fromkeys((*self.prevail, *before)))


@dataclass(frozen=True, slots=True)
class SasAxiom:
    """Change of a derived variable from ``before`` to ``after`` if the conditions hold."""

    conditions: tuple[Pair, ...]
    variable: int
    before: int
    after: int


@dataclass(frozen=True)
class SasTask:
    """A task in finite-domain variables.

    Attributes:
        problem: the original problem.
        metric: 1 if costs count, otherwise 0.
        variables: the variables.
        mutexes: groups of values of which at most one holds in any reachable state.
        init: the initial value of each variable.
        goal: the values to reach.
        operators: the ground actions.
        axioms: the rules for derived variables.
        names: original name of each renamed object.
        uncontrollable: the ground actions of the world, which no plan contains.
        is_complete: whether the translator finished. An incomplete task is empty, and its search
            ends at once with the status ``LIMIT``.
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
    uncontrollable: tuple[SasOperator, ...] = field(default=(), repr=False)
    is_complete: bool = True

    @cached_property
    def _values(self) -> dict[Fact, Pair]:
        """Variable and value of each fact that has one."""
        return {
            self._fact(meaning): (number, value)
            for number, variable in enumerate(self.variables)
            if variable.layer < 0
            for value, meaning in enumerate(variable.values)
            if meaning.startswith("Atom ")
        }

    def value_of(self, fact: Fact) -> Pair | None:
        """Return the variable and value of a basic fact, or None if it is static."""
        return self._values.get(fact)

    def fact_of(self, pair: Pair) -> Fact | None:
        """Return the basic fact that a value represents, or None if it represents none."""
        variable, value = pair
        meaning = self.variables[variable].values[value] if value >= 0 else ""
        is_basic = self.variables[variable].layer < 0 and meaning.startswith("Atom ")
        return self._fact(meaning) if is_basic else None

    def _fact(self, meaning: str) -> Fact:
        """Return the fact with the text ``Atom on(a, b)``."""
        predicate, _, arguments = meaning.removeprefix("Atom ").removesuffix(")").partition("(")
        return Fact(
            predicate, tuple(self.names.get(name, name) for name in arguments.split(", ") if name)
        )

    def action_of(self, operator_name: str) -> GroundAction:
        """Return the ground action of an operator's name, such as ``stack a b``."""
        name, *arguments = operator_name.split()
        return GroundAction(
            name, tuple(self.names.get(argument, argument) for argument in arguments)
        )

    @cached_property
    def is_cost_weighted(self) -> bool:
        """Plans are compared by cost, and the costs of operators differ."""
        return bool(self.metric) and any(operator.cost != 1 for operator in self.operators)

    @cached_property
    def search(self) -> TaskSearch:
        """Compiled task for searches in the core, in which a step without cost has the cost 1."""
        operators = [
            (
                operator.preconditions,
                [
                    (effect.conditions, (effect.variable, effect.after))
                    for effect in operator.effects
                ],
                operator.cost + 1 if self.is_cost_weighted else 1,
            )
            for operator in self.operators
        ]
        return TaskSearch(
            domains=[len(variable.values) for variable in self.variables],
            layers=[variable.layer for variable in self.variables],
            defaults=self.init,
            mutexes=self.mutexes,
            operators=operators,
            axioms=[(axiom.conditions, (axiom.variable, axiom.after)) for axiom in self.axioms],
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the compiled task."""
        return {name: value for name, value in self.__dict__.items() if name != "search"}

    @property
    def fact_count(self) -> int:
        """Total number of values of all variables."""
        return sum(len(variable.values) for variable in self.variables)

    def to_text(self) -> str:
        """Return the task in the translator's output format."""
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield from (
            "begin_version",
            _VERSION,
            "end_version",
            "begin_metric",
            str(self.metric),
            "end_metric",
        )
        yield str(len(self.variables))
        for variable in self.variables:
            yield from (
                "begin_variable",
                variable.name,
                str(variable.layer),
                str(len(variable.values)),
            )
            yield from variable.values
            yield "end_variable"
        yield str(len(self.mutexes))
        for group in self.mutexes:
            yield "begin_mutex_group"
            yield from _pair_lines(group)
            yield "end_mutex_group"
        yield from (
            "begin_state",
            *map(str, self.init),
            "end_state",
            "begin_goal",
            *_pair_lines(self.goal),
            "end_goal",
        )
        yield str(len(self.operators))
        for operator in self.operators:
            check_time()
            yield from (
                "begin_operator",
                operator.name,
                *_pair_lines(operator.prevail),
                str(len(operator.effects)),
            )
            yield from map(_effect_line, operator.effects)
            yield from (str(operator.cost), "end_operator")
        yield str(len(self.axioms))
        for axiom in self.axioms:
            yield from ("begin_rule", *_pair_lines(axiom.conditions))
            yield from (f"{axiom.variable} {axiom.before} {axiom.after}", "end_rule")

    @classmethod
    def incomplete(cls, problem: Problem) -> Self:
        """Return the empty task that represents a translation at its limit of time or memory."""
        return cls(problem, 0, (), (), (), (), (), (), is_complete=False)

    @classmethod
    def from_text(
        cls, text: str, problem: Problem, *, names: Mapping[str, str] | None = None
    ) -> Self:
        """Read the translator's output.

        Args:
            text: the output file.
            problem: the problem that was translated, with the uncontrollable actions among the
                others.
            names: original name of each renamed object.

        Raises:
            TaskPlannerError: if the text has another format.
        """
        try:
            sections = _Reader(text).sections()
            controllable, uncontrollable = split_by_control(problem, sections.pop("operators"))
            return cls(
                problem,
                names=FrozenMapping(names or {}),
                operators=controllable,
                uncontrollable=uncontrollable,
                **sections,
            )
        except (ValueError, StopIteration) as error:
            reason = str(error) or "it ends too early"
            raise TaskPlannerError(
                f"the translator's output cannot be read: {reason}", command=(), output=""
            ) from None


def split_by_control(
    problem: Problem, operators: Iterable[SasOperator]
) -> tuple[tuple[SasOperator, ...], tuple[SasOperator, ...]]:
    """Return the operators that a plan may contain, and those of the world."""
    groups: dict[bool, list[SasOperator]] = {False: [], True: []}
    for operator in operators:
        groups[problem.domain.is_uncontrollable(operator.name.split()[0])].append(operator)
    return tuple(groups[False]), tuple(groups[True])


def _pair_lines(pairs: Iterable[Pair]) -> Iterator[str]:
    pair_list = tuple(pairs)
    yield str(len(pair_list))
    for variable, value in pair_list:
        yield f"{variable} {value}"


def _effect_line(effect: SasEffect) -> str:
    conditions = "".join(f"{variable} {value} " for variable, value in effect.conditions)
    return f"{len(effect.conditions)} {conditions}{effect.variable} {effect.before} {effect.after}"


_Part = TypeVar("_Part")


class _Reader:
    """Reader of the format, line by line."""

    def __init__(self, text: str) -> None:
        self._lines = iter(text.split("\n"))

    def _expect(self, expected: str) -> None:
        line = next(self._lines)
        if line != expected:
            raise ValueError(f"expected '{expected}', found '{line}'")

    def _number(self) -> int:
        return int(next(self._lines))

    def _numbers(self) -> list[int]:
        return [*map(int, next(self._lines).split())]

    def _pair(self) -> Pair:
        variable, value = self._numbers()
        return variable, value

    def _pairs(self) -> tuple[Pair, ...]:
        return tuple(self._pair() for _ in range(self._number()))

    def _block(self, name: str, read: Callable[[], _Part]) -> _Part:
        """Read a part between its begin and end lines."""
        self._expect(f"begin_{name}")
        part = read()
        self._expect(f"end_{name}")
        return part

    def _blocks(self, name: str, read: Callable[[], _Part]) -> tuple[_Part, ...]:
        return tuple(self._block(name, read) for _ in range(self._number()))

    def sections(self) -> dict[str, Any]:
        """Return the attributes of a task, by name."""
        self._block("version", lambda: self._expect(_VERSION))
        metric = self._block("metric", self._number)
        variables = self._blocks("variable", self._variable)
        return {
            "metric": metric,
            "variables": variables,
            "mutexes": self._blocks("mutex_group", self._pairs),
            "init": self._block("state", lambda: tuple(self._number() for _ in variables)),
            "goal": self._block("goal", self._pairs),
            "operators": self._blocks("operator", self._operator),
            "axioms": self._blocks("rule", self._axiom),
        }

    def _variable(self) -> SasVariable:
        name, layer = next(self._lines), self._number()
        return SasVariable(name, layer, tuple(next(self._lines) for _ in range(self._number())))

    def _operator(self) -> SasOperator:
        check_time()
        name, prevail = next(self._lines), self._pairs()
        effects = tuple(self._effect() for _ in range(self._number()))
        return SasOperator(name, prevail, effects, self._number())

    def _effect(self) -> SasEffect:
        count, *numbers = self._numbers()
        variable, before, after = numbers[2 * count :]
        conditions = (
            tuple(zip(numbers[: 2 * count : 2], numbers[1 : 2 * count : 2], strict=True))
            if count
            else ()
        )
        return SasEffect(conditions, variable, before, after)

    def _axiom(self) -> SasAxiom:
        conditions = self._pairs()
        variable, before, after = self._numbers()
        return SasAxiom(conditions, variable, before, after)
