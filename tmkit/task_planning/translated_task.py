"""The translated task: what Fast Downward searches, and how it is told never to do a thing again.

The task is translated once (:mod:`tmkit.task_planning.sas`), and each learned constraint patches
the result, or another initial state: :meth:`TranslatedTask.at_state`, or one more object:
:meth:`TranslatedTask.with_object`. :meth:`TranslatedTask.forbid` adds one two-valued derived
variable per context, with one axiom ``context -> blocked``, and the precondition *not blocked* to
the action's operators; the search must be one that takes axioms. For those that do not, such as
optimal search with landmarks, a task may have its operators taken apart instead. "Not while c1, c2
and c3 hold" means "while c1 does not hold, or c1 holds but c2 does not, or c1 and c2 hold but c3
does not". These cases exclude each other, so the operator is replaced by copies, one for each case
and each other value that the variable may have. What the operator needs anyway saves most: a value
that excludes one of its conditions makes no copy.

Proving that a goal contradicts itself, without a search. Two facts that can never hold together are
found by looking at pairs of facts instead of states. Beginning with the pairs of the initial state,
an action is taken as possible when all pairs of its preconditions are. It makes the pairs among its
effects possible, and each effect together with every fact that was possible beside its
preconditions and that it does not touch. What is not possible when nothing new comes up never is: a
proof; the other answer is none. This is the test that the heuristic h2 would fail at the initial
state [Haslum and Geffner, Admissible Heuristics for Optimal Planning, AIPS 2000]. All actions are
tried at once; a row of the table, "what is possible beside this fact", is bits.

Invariants: derived variables are taken to have any value, which makes more possible, never less.
O(rounds * (operators + facts) * facts) time over 64, O(facts squared + operators * facts) space.
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tmkit._support.time_limits import check_time
from tmkit.pddl.formulas import Fact, GroundAction
from tmkit.pddl.model import FrozenMapping
from tmkit.pddl.state import State
from tmkit.pddl.vocabulary import derived_predicate_fault
from tmkit.task_planning.encoding import copy_of
from tmkit.task_planning.sas import Pair, SasAxiom, SasOperator, SasTask, SasVariable
from tmkit.task_planning.spare_objects import ABSENT, ARRIVE, spare_names

Literal = tuple[Fact, bool]  # A ground fact, and whether it is to hold or not to hold


@dataclass(frozen=True, slots=True)
class _Rule:
    """Numbers of facts that an operator needs, adds, and touches: the first, and the one after the last."""

    needs: list[int]
    adds: list[int]
    touched: list[Pair]


def is_goal_impossible(task: SasTask) -> bool:
    """Return whether some two of the goal's facts can be proved never to hold together; False proves nothing."""
    facts = _Facts(task)
    goal = facts.numbers(task.goal)
    if not goal:
        return False
    wanted = np.ix_(goal, goal)
    possible, rules = facts.start(), facts.all_rules()
    while not possible[wanted].all():
        check_time()
        grown = rules.applied(possible)
        if (grown == possible).all():
            return True
        possible = grown
    return False


def find_conflict(task: SasTask, literals: Iterable[Literal]) -> tuple[Literal, ...]:
    """Return one literal that is proved never to hold, or else two that never hold together; none proves nothing.

    Args:
        task: the translated task, whatever its goal; one whose goal is empty has all facts that can
            come up.
        literals: what is wanted, in order: the first that is impossible is returned. Derived facts
            are passed over.
    """
    if not task.is_complete:
        return ()
    facts = _Facts(task)
    grown, rules = facts.start(), facts.all_rules()
    possible = np.zeros_like(grown)
    while not (grown == possible).all():
        check_time()
        possible, grown = grown, rules.applied(grown)
    alone = possible.diagonal()
    ways: list[tuple[Literal, list[int]]] = []
    for literal in literals:
        values = facts.ways(literal)
        if values is None:
            continue
        if not alone[values].any():
            return (literal,)
        ways.append((literal, values))
    for (first, ways_of_first), (second, ways_of_second) in itertools.combinations(ways, 2):
        if not possible[np.ix_(ways_of_first, ways_of_second)].any():
            return first, second
    return ()


_ALWAYS = 0  # a fact that holds in every state: every rule has a precondition


class _Facts:
    """Numbers the values of the variables that are not derived, from 1."""

    def __init__(self, task: SasTask) -> None:
        self._task = task
        self._first: list[int] = []
        self.count = 1
        for variable in task.variables:
            self._first.append(self.count if variable.layer < 0 else 0)
            self.count += len(variable.values) if variable.layer < 0 else 0
        self._sizes = [len(variable.values) for variable in task.variables]

    def start(self) -> NDArray[np.bool_]:
        """Return which pairs are possible at first: those of the initial state."""
        possible = np.zeros((self.count, self.count), dtype=np.bool_)
        held = [_ALWAYS, *self.numbers(enumerate(self._task.init))]
        possible[np.ix_(held, held)] = True
        return possible

    def all_rules(self) -> _Rules:
        """Return all operators as rules."""
        return _Rules(
            [rule for operator in self._task.operators for rule in self.rules(operator)], self.count
        )

    def ways(self, literal: Literal) -> list[int] | None:
        """Return the values that make a literal true; None when it is true always, or nothing is known of it."""
        fact, wanted = literal
        task = self._task
        if fact.predicate in task.problem.domain.derived_predicates:
            return None
        pair = task.value_of(fact)
        if pair is None:
            return None if (fact in task.problem.init) == wanted else []
        variable, value = pair
        if wanted:
            return self.numbers([pair])
        return self.numbers(
            (variable, other) for other in range(self._sizes[variable]) if other != value
        )

    def numbers(self, pairs: Iterable[Pair]) -> list[int]:
        """Return the numbers of values, without those of derived variables."""
        return sorted(
            {self._first[variable] + value for variable, value in pairs if self._first[variable]}
        )

    def rules(self, operator: SasOperator) -> Iterator[_Rule]:
        """Yield the operator as a rule, then each of its conditional effects as one."""
        always = [effect for effect in operator.effects if not effect.conditions]
        touched = [self._values(effect.variable) for effect in always]
        adds = [(effect.variable, effect.after) for effect in always]
        yield _Rule(self.numbers(operator.needs), self.numbers(adds), touched)
        for effect in operator.effects:
            if effect.conditions:
                more = self.numbers([*adds, (effect.variable, effect.after)])
                needed = self.numbers({*operator.needs, *effect.conditions})
                yield _Rule(needed, more, [*touched, self._values(effect.variable)])

    def _values(self, variable: int) -> Pair:
        first = self._first[variable]
        return (first, first + self._sizes[variable]) if first else (0, 0)


class _Rules:
    """All rules, in arrays: what each needs, what it leaves as it is, what it adds."""

    def __init__(self, rules: list[_Rule], count: int) -> None:
        self._count = count
        most = max((len(rule.needs) for rule in rules), default=0) or 1
        padded = [
            rule.needs + (rule.needs[:1] or [_ALWAYS]) * (most - len(rule.needs)) for rule in rules
        ]
        self._needs = np.array(padded, dtype=np.intp).reshape(len(rules), most)
        untouched = np.ones((len(rules), count), dtype=np.bool_)
        added = np.zeros((len(rules), count), dtype=np.bool_)
        touching: dict[Pair, list[int]] = {}
        for number, rule in enumerate(rules):
            for facts in rule.touched:
                touching.setdefault(facts, []).append(number)
        for (first, end), numbers in touching.items():
            untouched[numbers, first:end] = False
        adders = np.repeat(np.arange(len(rules)), [len(rule.adds) for rule in rules])
        facts_added = np.array([fact for rule in rules for fact in rule.adds], dtype=np.intp)
        added[adders, facts_added] = True
        self._untouched, self._added = _packed(untouched), _packed(added)
        order = np.lexsort((adders, facts_added))
        self._adder = adders[order]
        self._fact, self._begin = np.unique(facts_added[order], return_index=True)

    def applied(self, possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the pairs (count, count) that are possible after every rule whose needs are has been applied once."""
        if not len(self._adder):
            return possible
        rows = _packed(possible)
        beside = rows[self._needs[:, 0]]
        is_applied = np.ones(len(self._needs), dtype=np.bool_)
        for column in self._needs.T[1:]:
            beside &= rows[column]
        for index, column in enumerate(self._needs.T):
            for other in self._needs.T[index:]:
                is_applied &= possible[column, other]
        beside = (beside & self._untouched) | self._added
        beside[~is_applied] = 0
        rows[self._fact] |= np.bitwise_or.reduceat(beside[self._adder], self._begin, axis=0)
        grown = np.unpackbits(rows.view(np.uint8), axis=1, count=self._count).astype(np.bool_)
        together: NDArray[np.bool_] = grown | grown.T
        return together


def _packed(rows: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return rows of truth values as rows of bits."""
    width = -(-rows.shape[1] // 64) * 8
    packed = np.zeros((rows.shape[0], width), dtype=np.uint8)
    packed[:, : -(-rows.shape[1] // 8)] = np.packbits(rows, axis=1)
    return packed.view(np.uint64)


_NONE: frozenset[int] = frozenset()
_MOST_COPIES = 2000  # of operators that one constraint may make by taking some apart, at most


@dataclass(frozen=True)
class TranslatedTask(SasTask):
    """A task in finite-domain variables, with what has been learned about it.

    Attributes:
        blocked: for each context that some action is forbidden in, the variable that tells whether
            it holds.
        encoding: how it is told what is forbidden: by axioms, by taking operators apart
            (``split``), or by the latter as long as that makes few operators (``auto``), since
            heuristics see through operators, but not axioms.
        spares: the types of spare objects that are absent, by name.
        waiting: operators that name one of these.
        history: work that searches may do on it, by their names, as it was learned on the same task
            with fewer constraints; such tasks share it.
    """

    blocked: FrozenMapping[frozenset[Pair], int] = field(default_factory=FrozenMapping, repr=False)
    encoding: typing.Literal["auto", "axioms", "split"] = "auto"
    spares: FrozenMapping[str, str] = field(default_factory=FrozenMapping, repr=False)
    waiting: tuple[SasOperator, ...] = field(default=(), repr=False)
    history: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def is_goal_impossible(self) -> bool:
        """Return whether some two of the goal's facts can be proved never to hold together; False proves nothing."""
        return is_goal_impossible(self)

    def at_state(self, state: State) -> TranslatedTask | None:
        """Return the task, with what it has learned, that begins in another state; None if it must be translated anew.

        It need not be where each new fact has a variable and each fact without one is as before:
        what is out of reach from the old state is then so from the new one. Groups of facts that
        exclude each other still do, if no two of a group hold: no action can make them more.

        Args:
            state: the facts that hold; takes time linear in them and in the facts of the task.

        Raises:
            TaskError: a fact that the problem does not know, or a derived one.
        """
        problem = copy_of(self.problem, init=state)
        absent = (Fact(ABSENT, (name,)) for name in self.spares)
        true = {pair for fact in (*state, *absent) if (pair := self._values.get(fact))}
        old, new = (
            {fact for fact in facts if fact not in self._values}
            for facts in (self.problem.init, state)
        )
        if not self.is_complete or old != new or state.values != self.problem.init.values:
            return None
        if any(sum(pair in true for pair in group) > 1 for group in self.mutexes):
            return None
        init = []
        for number, (variable, value) in enumerate(zip(self.variables, self.init, strict=True)):
            values = range(len(variable.values))
            named = [v for v in values if variable.values[v].startswith("Atom ")]
            if variable.layer < 0:
                held = [v for v in named if (number, v) in true] or [
                    v for v in values if v not in named
                ]
                if len(held) != 1:
                    return None
                value = held[0]
            init.append(value)
        moved = replace(self, problem=problem, init=tuple(init), history={})
        if "search" in self.__dict__:  # its operators and axioms are the same
            moved.__dict__["search"] = self.search
        return moved

    def with_spares(self, spare: Mapping[str, int]) -> TranslatedTask:
        """Return the task translated from :func:`with_spare_objects`, in which these are absent.

        Args:
            spare: how many there are of each type.
        """
        spares = spare_names(spare)
        real = [operator for operator in self.operators if not operator.name.startswith(ARRIVE)]
        return replace(
            self, operators=(), waiting=tuple(real), spares=FrozenMapping(spares)
        )._present()

    def with_object(self, name: str, kind: str, state: State) -> TranslatedTask | None:
        """Return the task with one more object, in the place of a spare one, that begins in another state.

        Args:
            name: the object.
            kind: its type.
            state: the facts that hold, those about the object too; takes time linear in them and in
                the task.

        Returns:
            None where no spare object of the type is left, or :meth:`at_state` has none.

        Raises:
            TaskError: there is such an object, or a fact that the problem does not know, or a
                derived one.
        """
        if name in self.problem.all_objects:
            raise self.problem.error(f"object '{name}' is there already")
        spare = next((spare for spare, of in self.spares.items() if of == kind), None)
        if spare is None:
            return None
        problem = copy_of(self.problem, objects={**self.problem.objects, name: kind})
        left = FrozenMapping({other: of for other, of in self.spares.items() if other != spare})
        names = FrozenMapping({**self.names, spare: name})
        return replace(self, problem=problem, names=names, spares=left)._present().at_state(state)

    def _present(self) -> TranslatedTask:
        """Return the task with the operators that wait for no absent object any more."""
        waits = [
            not self.spares.keys().isdisjoint(operator.name.split()[1:])
            for operator in self.waiting
        ]
        ready = (operator for operator, wait in zip(self.waiting, waits, strict=True) if not wait)
        waiting = tuple(itertools.compress(self.waiting, waits))
        return replace(self, operators=(*self.operators, *ready), waiting=waiting)

    def forbid(self, action: GroundAction, context: Iterable[Fact]) -> TranslatedTask:
        """Return the task in which ``action`` is never done in a state where all facts of ``context`` hold.

        Args:
            action: the ground action. One that can never be done anyway may be forbidden, without
                effect.
            context: basic facts; with none the action is forbidden altogether.

        Raises:
            TaskError: an action or fact that the problem does not know, or a derived fact.
        """
        self.problem.binding_of(action)
        literals = self._literals(context)
        if literals is None:
            return self
        name = self._operator_name(action)
        chosen = [
            index for index, operator in enumerate(self.operators) if operator.name.rstrip() == name
        ]
        if not chosen:
            return self
        if not literals:
            kept = (op for index, op in enumerate(self.operators) if index not in chosen)
            return replace(self, operators=tuple(kept))
        copies = len(chosen) * sum(
            len(self.variables[variable].values) - 1 for variable, _ in literals
        )
        if self.encoding == "split" or (self.encoding == "auto" and copies <= _MOST_COPIES):
            return self._split(chosen, literals)
        task, variable = self._blocked_by(literals)
        operators = list(self.operators)
        for index in chosen:
            guard = (variable, 1)
            if guard not in operators[index].prevail:
                operators[index] = replace(
                    operators[index], prevail=(*operators[index].prevail, guard)
                )
        return replace(task, operators=tuple(operators))

    def _split(self, chosen: Iterable[int], context: frozenset[Pair]) -> TranslatedTask:
        """Return the task with the chosen operators split: none applies in the context."""
        members = set(chosen)
        operators = (
            (
                _split(operator, context, variables=self.variables, excluding=self._excluding)
                if index in members
                else (operator,)
            )
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
            fault = derived_predicate_fault(fact.predicate, derived) or words.atom_fault(
                fact.predicate, fact.arguments, {}
            )
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

    def _operator_name(self, action: GroundAction) -> str:
        """Return the operator name of an action; the translator writes a blank behind one without arguments."""
        spelling = {real: spelled for spelled, real in self.names.items()}
        return " ".join(
            (action.name, *(spelling.get(argument, argument) for argument in action.arguments))
        )


def _split(
    operator: SasOperator,
    context: Iterable[Pair],
    *,
    variables: Sequence[SasVariable],
    excluding: Mapping[Pair, frozenset[int]],
) -> tuple[SasOperator, ...]:
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
    operator: SasOperator,
    context: list[Pair],
    needs: dict[int, int],
    variables: Sequence[SasVariable],
    excluding: Mapping[Pair, frozenset[int]],
) -> Iterator[SasOperator]:
    for variable, value in context:
        check_time()
        for other in range(len(variables[variable].values)):
            if other != value and not _excluded((variable, other), needs, excluding):
                yield _with_need(operator, (variable, other))
        needs = {**needs, variable: value}
        operator = _with_need(operator, (variable, value))


def _excluded(
    pair: Pair, needs: Mapping[int, int], excluding: Mapping[Pair, frozenset[int]]
) -> bool:
    """Return whether a value cannot hold together with what is needed."""
    groups = excluding.get(pair, _NONE)
    return any(need != pair and groups & excluding.get(need, _NONE) for need in needs.items())


def _with_need(operator: SasOperator, pair: Pair) -> SasOperator:
    """Return the operator with one more condition, kept with the effect where it changes that variable anyway."""
    variable, value = pair
    changed = [
        n for n, e in enumerate(operator.effects) if e.variable == variable and not e.conditions
    ]
    if not changed:
        return replace(operator, prevail=(*operator.prevail, pair))
    effects = list(operator.effects)
    effects[changed[0]] = effects[changed[0]]._replace(before=value)
    return replace(operator, effects=tuple(effects))
