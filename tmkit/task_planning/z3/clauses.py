"""A translated task as propositional clauses, one block of variables for each step.

The idea: a plan of h steps is an assignment to h + 1 copies of the facts and h copies of the
operators. The clauses that tie step t to step t + 1 are the same for every t but for the numbers of
the variables. So they are made once, as one array of integers, and moved along by adding a block's
width. What they say:

* each variable of the task has exactly one value, and groups that exclude each other do;
* exactly one operator happens; it needs its conditions before and brings about its effects after;
* a value that is new was brought about by an operator that can [explanatory frame axioms: Haas, The
  Case for Domain-Specific Frame Axioms, 1987];
* a derived variable differs from its initial value exactly if an axiom says so; those that depend
  on each other in circles are computed in as many rounds as there are of them;
* a forbidden operator does not happen while the facts of the learned constraint hold: one clause,
  at every step;
* of objects that are as good as each other, none is used before those that come first.

"At most one operator" arranges the operators in a square, of which at most one row and one column
is chosen [Chen, A New SAT Encoding of the At-Most-One Constraint, 2010].

Invariants: a shortest plan of h steps exists exactly if the clauses for h steps can be satisfied
and those for fewer cannot. Numbers depend on the task alone.
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

_NEXT = 1 << 40  # added to the number of a variable, means that of the next step
_FEW = 8  # so many exclude each other pair by pair


class StepClauses:
    """The clauses of a task, patched or not, for any number of steps; derived variables have two values at most."""

    def __init__(
        self, task: TranslatedTask, *, interchangeable: Iterable[tuple[str, ...]] = ()
    ) -> None:
        self._task = task
        self._width = 0
        self._blocked = {number: context for context, number in task.blocked.items()}
        self._facts = self._numbered_facts()
        self._operators = [self._new() for _ in task.operators]
        state = [*self._values(), *self._mutexes(), *self._axioms()]
        one_operator = [tuple(self._operators), *self._at_most_one(self._operators)]
        moves = [*one_operator, *self._changes(), *self._order_of_use(interchangeable)]
        self._state, self._move = (self._numbered(clauses) for clauses in (state, moves))
        self._first = self._numbered(
            (literal,) for literal in (*map(self._literal, self._initial()), *self._unused)
        )
        self._last = self._numbered((self._literal(pair),) for pair in task.goal)

    @property
    def width(self) -> int:
        """The number of propositional variables for one step."""
        return self._width

    def text(self, steps: int) -> str:
        """Return in DIMACS format that there is a plan of so many steps."""
        check_time()
        parts = [self._first, *(self._at(self._state, step) for step in range(steps + 1))]
        parts += [self._at(self._move, step) for step in range(steps)]
        parts.append(self._at(self._last, steps))
        whole = np.concatenate(parts)
        count = int(np.count_nonzero(whole == 0))
        return (
            f"p cnf {(steps + 1) * self._width} {count}\n"
            + " ".join(map(str, whole.tolist()))
            + "\n"
        )

    def chosen(self, true: Iterable[int], *, steps: int) -> tuple[int, ...]:
        """Return the index of the operator of each of some steps, by the variables that are true in an assignment."""
        position = {number: index for index, number in enumerate(self._operators)}
        happens: dict[int, int] = {}
        for variable in true:
            step, number = divmod(variable - 1, self._width)
            if number + 1 in position and step < steps:
                happens[step] = position[number + 1]
        return tuple(happens[step] for step in range(steps))

    def _new(self) -> int:
        self._width += 1
        return self._width

    def _at(self, clauses: NDArray[np.int64], step: int) -> NDArray[np.int64]:
        moved: NDArray[np.int64] = clauses + np.sign(clauses) * (step * self._width)
        return moved

    def _after(self, literal: int) -> int:
        """Return the literal of the next step, by a mark, since the width is known only in the end."""
        return literal + (_NEXT if literal > 0 else -_NEXT)

    def _numbered(self, clauses: Iterable[_Clause]) -> NDArray[np.int64]:
        """Return clauses one behind the other, each ended by 0, with numbers in the place of marks."""
        flat = np.array(
            [literal for clause in _timely(clauses) for literal in (*clause, 0)], dtype=np.int64
        )
        return np.where(np.abs(flat) > _NEXT, flat - np.sign(flat) * (_NEXT - self._width), flat)

    def _at_most_one(self, literals: Sequence[int]) -> Iterator[_Clause]:
        if len(literals) <= _FEW:
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

    def _numbered_facts(self) -> dict[Pair, int]:
        """Return the literal of each value; two values need only one variable."""
        facts: dict[Pair, int] = {}
        for number, variable in enumerate(self._task.variables):
            size = len(variable.values)
            if variable.layer >= 0 and size != 2:
                reason = f"the derived variable {variable.name} has {size} values"
                raise TaskPlannerError(f"clauses cannot say that {reason}", command=(), output="")
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
        """Yield that each derived variable has the value that the axioms give it."""
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
        for members in components({number: sorted(others) for number, others in needs.items()}):
            yield from self._circle(members, rules)

    def _circle(
        self, members: Sequence[int], rules: dict[int, list[SasAxiom]]
    ) -> Iterator[_Clause]:
        """Yield the values of variables that depend on each other, in rounds; before the first none is derived."""
        own = set(members)
        init = self._task.init
        rounds = len(members)
        before: dict[int, int] = {}
        for turn in range(1, rounds + 1):
            now = {
                n: self._literal((n, 1 - init[n])) if turn == rounds else self._new()
                for n in members
            }
            for number in members:
                bodies = []
                for axiom in rules.get(number, []):
                    body = self._body(axiom, own, before)
                    if body is not None:
                        reason = self._new()
                        bodies.append(reason)
                        yield from ((-reason, literal) for literal in body)
                        yield (reason, *(-literal for literal in body))
                yield (-now[number], *bodies)
                yield from ((now[number], -reason) for reason in bodies)
            before = now

    def _body(self, axiom: SasAxiom, own: set[int], before: dict[int, int]) -> list[int] | None:
        """Return an axiom's conditions as literals, ``None`` when one cannot hold in the first round."""
        literals = []
        for variable, value in axiom.conditions:
            if variable not in own:
                literals.append(self._literal((variable, value)))
            elif variable in before:
                literals.append(before[variable])
            else:
                return None
        return literals

    def _changes(self) -> Iterator[_Clause]:
        reasons: dict[Pair, list[int]] = {}
        for number, operator in zip(self._operators, self._task.operators, strict=True):
            yield from self._operator(number, operator, reasons)
        for (variable, value), literal in self._facts.items():
            if self._task.variables[variable].layer < 0:
                yield (-self._after(literal), literal, *reasons.get((variable, value), ()))

    def _operator(
        self, number: int, operator: SasOperator, reasons: dict[Pair, list[int]]
    ) -> Iterator[_Clause]:
        for variable, value in operator.needs:
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
            yield -happens, self._after(self._literal(pair))
            reasons.setdefault(pair, []).append(happens)

    def _order_of_use(self, groups: Iterable[tuple[str, ...]]) -> Iterator[_Clause]:
        """Yield that an object is used no earlier than the one before it in its group."""
        arguments = [
            set(self._task.action_of(operator.name).arguments) for operator in self._task.operators
        ]
        self._unused: list[int] = []
        for group in groups:
            used = {name: self._new() for name in group[:-1]}
            self._unused += [-literal for literal in used.values()]
            for name, literal in used.items():
                users = [self._operators[n] for n, names in enumerate(arguments) if name in names]
                yield (-self._after(literal), literal, *users)
            for first, second in itertools.pairwise(group):
                for position, names in enumerate(arguments):
                    if second in names and first not in names:
                        yield -self._operators[position], used[first]


def _timely(clauses: Iterable[_Clause]) -> Iterator[_Clause]:
    """Yield clauses while there is time."""
    for clause in clauses:
        check_time()
        yield clause
