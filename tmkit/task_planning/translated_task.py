"""The translated task: what Fast Downward searches, and how it is told never to do a thing again.

The task is translated once (:mod:`tmkit.task_planning.sas`), and each learned constraint patches the result, or another
initial state: :meth:`TranslatedTask.at_state`.
:meth:`TranslatedTask.forbid` adds one two-valued derived variable per context, with one axiom ``context -> blocked``,
and the precondition *not blocked* to the action's operators; the search must be one that takes axioms. For those that
do not, such as optimal search with landmarks, a task may have its operators taken apart instead: "not while c1, c2 and
c3 hold" is the same as "while c1 does not hold, or c1 holds but c2 does not, or c1 and c2 hold but c3 does not". These
cases exclude each other, so the operator is replaced by copies, one for each case and each other value that the
variable may have. What the operator needs anyway saves most: a value that excludes one of its conditions makes no copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from tmkit._support.time_limits import check_time
from tmkit.pddl.formulas import Fact, GroundAction
from tmkit.pddl.model import FrozenMapping
from tmkit.pddl.state import State
from tmkit.pddl.vocabulary import derived_fault
from tmkit.task_planning.encoding import copy_of
from tmkit.task_planning.mutexes import is_goal_impossible
from tmkit.task_planning.sas import Pair, SasAxiom, SasOperator, SasTask, SasVariable

_NONE: frozenset[int] = frozenset()
_MOST_COPIES = 2000  # of operators that one constraint may make by taking some apart, at most


@dataclass(frozen=True)
class TranslatedTask(SasTask):
    """A task in finite-domain variables, with what has been learned about it.

    Attributes:
        blocked: for each context that some action is forbidden in, the variable that tells whether it holds.
        encoding: how it is told what is forbidden: by axioms, by taking operators apart (``split``), or by the latter
            as long as that makes few operators (``auto``), since heuristics see through operators, but not axioms.
        history: work that searches may do on it, by their names, as it was learned on the same task with fewer
            constraints; such tasks share it.
    """

    blocked: FrozenMapping[frozenset[Pair], int] = field(default_factory=FrozenMapping, repr=False)
    encoding: Literal["auto", "axioms", "split"] = "auto"
    history: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def is_goal_impossible(self) -> bool:
        """Return whether some two of the goal's facts can be proved never to hold together; False proves nothing."""
        return is_goal_impossible(self)

    # ----------------------------------------------------------------------------------------------- another beginning

    def at_state(self, state: State) -> TranslatedTask | None:
        """Return the task, with what it has learned, that begins in another state; None if it must be translated anew.

        It need not be where each new fact has a variable and each fact without one is as before: what is out of reach
        from the old state is then so from the new one. Groups of facts that exclude each other still do, if no two of a
        group hold: no action can make them more.

        Args:
            state: the facts that hold; takes time linear in them and in the facts of the task.

        Raises:
            TaskError: a fact that the problem does not know, or a derived one.
        """
        problem = copy_of(self.problem, init=state)
        true = {pair for fact in state if (pair := self._values.get(fact))}
        old, new = ({fact for fact in facts if fact not in self._values} for facts in (self.problem.init, state))
        if not self.is_complete or old != new or state.values != self.problem.init.values:
            return None
        if any(sum(pair in true for pair in group) > 1 for group in self.mutexes):
            return None
        init = []
        for number, (variable, value) in enumerate(zip(self.variables, self.init, strict=True)):
            values = range(len(variable.values))
            named = [v for v in values if variable.values[v].startswith("Atom ")]
            if variable.layer < 0:
                held = [v for v in named if (number, v) in true] or [v for v in values if v not in named]
                if len(held) != 1:
                    return None
                value = held[0]
            init.append(value)
        return replace(self, problem=problem, init=tuple(init), history={})

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
        """Return the task with the chosen operators split: none applies in the context."""
        members = set(chosen)
        operators = (
            _split(operator, context, variables=self.variables, excluding=self._excluding)
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
            self, variables=(*self.variables, variable), init=(*self.init, 1), axioms=(*self.axioms, axiom),
            blocked=FrozenMapping({**self.blocked, literals: number}),
        )  # fmt: skip
        return task, number

    def _operator_name(self, action: GroundAction) -> str:
        """Return the operator name of an action; the translator writes a blank behind one without arguments."""
        spelling = {real: spelled for spelled, real in self.names.items()}
        return " ".join((action.name, *(spelling.get(argument, argument) for argument in action.arguments)))


def _split(
    operator: SasOperator, context: Iterable[Pair], *, variables: Sequence[SasVariable],
    excluding: Mapping[Pair, frozenset[int]],
) -> tuple[SasOperator, ...]:  # fmt: skip
    """Return the copies of an operator that do what it does where not all of a context holds: itself, or none, too."""
    needs = dict(operator.needs)
    open_pairs = []
    for variable, value in sorted(context):
        if variable not in needs:
            open_pairs.append((variable, value))
        elif needs[variable] != value:
            return (operator,)
    if any(_excluded(pair, needs, excluding) for pair in open_pairs):
        return (operator,)
    return tuple(_cases(operator, open_pairs, needs, variables, excluding))


def _cases(
    operator: SasOperator, context: list[Pair], needs: dict[int, int], variables: Sequence[SasVariable],
    excluding: Mapping[Pair, frozenset[int]],
) -> Iterator[SasOperator]:  # fmt: skip
    for variable, value in context:
        check_time()
        for other in range(len(variables[variable].values)):
            if other != value and not _excluded((variable, other), needs, excluding):
                yield _with_need(operator, (variable, other))
        needs = {**needs, variable: value}
        operator = _with_need(operator, (variable, value))


def _excluded(pair: Pair, needs: Mapping[int, int], excluding: Mapping[Pair, frozenset[int]]) -> bool:
    """Return whether a value cannot hold together with what is needed."""
    groups = excluding.get(pair, _NONE)
    return any(need != pair and groups & excluding.get(need, _NONE) for need in needs.items())


def _with_need(operator: SasOperator, pair: Pair) -> SasOperator:
    """Return the operator with one more condition, kept with the effect where it changes that variable anyway."""
    variable, value = pair
    changed = [n for n, e in enumerate(operator.effects) if e.variable == variable and not e.conditions]
    if not changed:
        return replace(operator, prevail=(*operator.prevail, pair))
    effects = list(operator.effects)
    effects[changed[0]] = effects[changed[0]]._replace(before=value)
    return replace(operator, effects=tuple(effects))
