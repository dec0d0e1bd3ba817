"""Encoding of a translated task as propositional clauses, with one block of variables per step.

A plan of h steps is an assignment to h + 1 copies of the facts and h copies of the operators. The
clauses between step t and step t + 1 differ between steps only in the numbers of the variables.
They are built once, as an array of integers, and shifted by the width of a block. The clauses are:

* Each variable of the task has exactly one value, and at most one value of a mutex group holds.
* Exactly one operator is applied; its preconditions hold before, its effects after the step.
* An operator with this effect caused each new value [explanatory frame axioms: Haas, The Case for
  Domain-Specific Frame Axioms, 1987].
* A derived variable differs from its initial value if and only if an axiom derives it. Variables
  with cyclic dependencies are computed in as many rounds as the cycle has members.
* A forbidden operator is not applied while the facts of the learned constraint hold: one clause at
  every step.
* An interchangeable object is used only after its predecessors in its group.

"At most one operator" arranges the operators in a square with at most one selected row and column
[Chen, A New SAT Encoding of the At-Most-One Constraint, 2010].

Guarantees: the shortest plan has h steps if and only if the clauses for h steps are satisfiable and
those for fewer steps are not. Numbers depend on the task alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tmkit._support.time_limits import check_time
from tmkit.errors import TaskPlannerError
from tmkit.pddl.strata import components
from tmkit.task_planning.sas import Pair, SasAxiom, SasOperator
from tmkit.task_planning.translated_task import TranslatedTask

_Clause = tuple[int, ...]

_NEXT_STEP = 1 << 40
"""Offset of the number of a variable at the next step, replaced when the width is known."""

_MAX_PAIRWISE = 8
"""Largest number of literals whose at-most-one clauses are pairwise."""


class StepClauses:
    """Clauses of a task for any number of steps; derived variables must have two values."""

    def __init__(
        self, task: TranslatedTask, *, interchangeable: Iterable[tuple[str, ...]] = ()
    ) -> None:
        self._task = task
        self._width = 0
        self._blocked = {number: context for context, number in task.blocked.items()}
        self._facts = self._number_facts()
        self._operators = [self._new() for _ in task.operators]
        state = [*self._values(), *self._mutexes(), *self._axioms()]
        one_operator = [tuple(self._operators), *self._at_most_one(self._operators)]
        moves = [*one_operator, *self._changes(), *self._usage_order(interchangeable)]
        self._state, self._move = (self._concatenate(clauses) for clauses in (state, moves))
        self._first = self._concatenate(
            (literal,) for literal in (*map(self._literal, self._initial()), *self._unused)
        )
        self._last = self._concatenate((self._literal(pair),) for pair in task.goal)

    @property
    def width(self) -> int:
        """Number of propositional variables of one step."""
        return self._width

    def text(self, steps: int) -> str:
        """Return the clauses for a plan of ``steps`` steps, in DIMACS format."""
        check_time()
        parts = [self._first, *(self._shift(self._state, step) for step in range(steps + 1))]
        parts += [self._shift(self._move, step) for step in range(steps)]
        parts.append(self._shift(self._last, steps))
        whole = np.concatenate(parts)
        count = int(np.count_nonzero(whole == 0))
        return (
            f"p cnf {(steps + 1) * self._width} {count}\n"
            + " ".join(map(str, whole.tolist()))
            + "\n"
        )

    def find_operators(self, true_variables: Iterable[int], *, steps: int) -> tuple[int, ...]:
        """Return the index of the operator of each step, given the true variables."""
        position = {number: index for index, number in enumerate(self._operators)}
        happens: dict[int, int] = {}
        for variable in true_variables:
            step, number = divmod(variable - 1, self._width)
            if number + 1 in position and step < steps:
                happens[step] = position[number + 1]
        return tuple(happens[step] for step in range(steps))

    def _new(self) -> int:
        self._width += 1
        return self._width

    def _shift(self, clauses: NDArray[np.int64], step: int) -> NDArray[np.int64]:
        shifted: NDArray[np.int64] = clauses + np.sign(clauses) * (step * self._width)
        return shifted

    def _at_next_step(self, literal: int) -> int:
        """Return the literal at the next step, with an offset until the width is known."""
        return literal + (_NEXT_STEP if literal > 0 else -_NEXT_STEP)

    def _concatenate(self, clauses: Iterable[_Clause]) -> NDArray[np.int64]:
        """Return concatenated clauses, each ended by 0, with the offsets replaced by numbers."""
        flat = np.array(
            [literal for clause in _check_time_between(clauses) for literal in (*clause, 0)],
            dtype=np.int64,
        )
        return np.where(
            np.abs(flat) > _NEXT_STEP, flat - np.sign(flat) * (_NEXT_STEP - self._width), flat
        )

    def _at_most_one(self, literals: Sequence[int]) -> Iterator[_Clause]:
        if len(literals) <= _MAX_PAIRWISE:
            yield from ((-first, -second) for first, second in itertools.combinations(literals, 2))
            return
        side = math.isqrt(len(literals) - 1) + 1
        rows, columns = (
            [self._new() for _ in range(size)] for size in (-(-len(literals) // side), side)
        )
        for position, literal in enumerate(literals):
            yield -literal, rows[position // side]
            yield -literal, columns[position % side]
        yield from self._at_most_one(rows)
        yield from self._at_most_one(columns)

    def _number_facts(self) -> dict[Pair, int]:
        """Return the literal of each value; a binary variable needs one propositional variable."""
        facts: dict[Pair, int] = {}
        for number, variable in enumerate(self._task.variables):
            size = len(variable.values)
            if variable.layer >= 0 and size != 2:
                message = f"derived variable {variable.name} has {size} values, expected 2"
                raise TaskPlannerError(message, command=(), output="")
            if number in self._blocked:
                continue
            if size == 2:
                facts[number, 0] = self._new()
                facts[number, 1] = -facts[number, 0]
            else:
                facts |= {(number, value): self._new() for value in range(size)}
        return facts

    def _literal(self, pair: Pair) -> int:
        return self._facts[pair]

    def _initial(self) -> Iterator[Pair]:
        for number, (variable, value) in enumerate(
            zip(self._task.variables, self._task.init, strict=True)
        ):
            if variable.layer < 0:
                yield number, value

    def _values(self) -> Iterator[_Clause]:
        for number, variable in enumerate(self._task.variables):
            if len(variable.values) != 2:
                literals = [self._literal((number, value)) for value in range(len(variable.values))]
                yield tuple(literals)
                yield from self._at_most_one(literals)

    def _mutexes(self) -> Iterator[_Clause]:
        for group in self._task.mutexes:
            variables = {variable for variable, _ in group}
            if len(variables) > 1 and not any(
                self._task.variables[number].layer >= 0 for number in variables
            ):
                yield from self._at_most_one([self._literal(pair) for pair in group])

    def _axioms(self) -> Iterator[_Clause]:
        """Yield the clauses that define derived variables by the axioms."""
        rules: dict[int, list[SasAxiom]] = {}
        for axiom in self._task.axioms:
            if axiom.variable not in self._blocked:
                rules.setdefault(axiom.variable, []).append(axiom)
        derived = [
            number for number, variable in enumerate(self._task.variables) if variable.layer >= 0
        ]
        free = {number: rules.get(number, []) for number in derived if number not in self._blocked}
        needs = {
            n: {pair[0] for axiom in axioms for pair in axiom.conditions} & free.keys()
            for n, axioms in free.items()
        }
        for members in components(
            {number: sorted(dependencies) for number, dependencies in needs.items()}
        ):
            yield from self._cycle_clauses(members, rules)

    def _cycle_clauses(
        self, members: Sequence[int], rules: dict[int, list[SasAxiom]]
    ) -> Iterator[_Clause]:
        """Yield the clauses of derived variables with cyclic dependencies, computed in rounds."""
        members_set = set(members)
        init = self._task.init
        rounds = len(members)
        previous_round: dict[int, int] = {}
        for round_index in range(1, rounds + 1):
            current_round = {
                n: self._literal((n, 1 - init[n])) if round_index == rounds else self._new()
                for n in members
            }
            for number in members:
                bodies = []
                for axiom in rules.get(number, []):
                    body = self._body(axiom, members_set, previous_round)
                    if body is not None:
                        reason = self._new()
                        bodies.append(reason)
                        yield from ((-reason, literal) for literal in body)
                        yield (reason, *(-literal for literal in body))
                yield (-current_round[number], *bodies)
                yield from ((current_round[number], -reason) for reason in bodies)
            previous_round = current_round

    def _body(
        self, axiom: SasAxiom, members_set: set[int], previous_round: dict[int, int]
    ) -> list[int] | None:
        """Return an axiom's conditions as literals, or None if one is false in the first round."""
        literals = []
        for variable, value in axiom.conditions:
            if variable not in members_set:
                literals.append(self._literal((variable, value)))
            elif variable in previous_round:
                literals.append(previous_round[variable])
            else:
                return None
        return literals

    def _changes(self) -> Iterator[_Clause]:
        reasons: dict[Pair, list[int]] = {}
        for number, operator in zip(self._operators, self._task.operators, strict=True):
            yield from self._operator(number, operator, reasons)
        for (variable, value), literal in self._facts.items():
            if self._task.variables[variable].layer < 0:
                yield (-self._at_next_step(literal), literal, *reasons.get((variable, value), ()))

    def _operator(
        self, number: int, operator: SasOperator, reasons: dict[Pair, list[int]]
    ) -> Iterator[_Clause]:
        for variable, value in operator.preconditions:
            if variable in self._blocked and value == 1:
                yield (-number, *(-self._literal(pair) for pair in sorted(self._blocked[variable])))
            else:
                yield -number, self._literal((variable, value))
        for effect in operator.effects:
            pair = (effect.variable, effect.after)
            happens = number
            if effect.conditions:
                happens = self._new()
                conditions = [self._literal(condition) for condition in effect.conditions]
                yield (happens, -number, *(-literal for literal in conditions))
                yield -happens, number
                yield from ((-happens, literal) for literal in conditions)
            yield -happens, self._at_next_step(self._literal(pair))
            reasons.setdefault(pair, []).append(happens)

    def _usage_order(self, groups: Iterable[tuple[str, ...]]) -> Iterator[_Clause]:
        """Yield the clauses that an object is used only after its predecessor in its group."""
        arguments = [
            set(self._task.action_of(operator.name).arguments) for operator in self._task.operators
        ]
        self._unused: list[int] = []
        for group in groups:
            used = {name: self._new() for name in group[:-1]}
            self._unused += [-literal for literal in used.values()]
            for name, literal in used.items():
                users = [self._operators[n] for n, names in enumerate(arguments) if name in names]
                yield (-self._at_next_step(literal), literal, *users)
            for first, second in itertools.pairwise(group):
                for position, names in enumerate(arguments):
                    if second in names and first not in names:
                        yield -self._operators[position], used[first]


def _check_time_between(clauses: Iterable[_Clause]) -> Iterator[_Clause]:
    """Yield clauses, and check the time limit before each."""
    for clause in clauses:
        check_time()
        yield clause
