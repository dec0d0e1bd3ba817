"""Domains and problems: what the actions of a task mean, and one task.

Both are values that are checked when they are made, and therefore consistent. Every name is
declared, every argument fits its type, derived predicates are neither stated nor changed, and no
predicate is derived from its own negation. A problem can be read from a file
(:mod:`tmkit.pddl.parsing.parser`) or built: ``Problem("p", domain, objects={"a": "block"},
init=State([Fact.of("clear", "a")]), goal=Atom("holding", ("a",)))``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Generic, TypeVar

from tmkit._support.initialization import initialize
from tmkit.errors import TaskError, UnknownNameError
from tmkit.pddl.evaluation import Interpretation, in_words
from tmkit.pddl.formulas import Action, Axiom, Fact, Formula, GroundAction, Parameter
from tmkit.pddl.state import State
from tmkit.pddl.strata import axiom_levels, negative_cycle
from tmkit.pddl.vocabulary import (
    Fault,
    Function,
    Predicate,
    Signature,
    Type,
    Types,
    Vocabulary,
    derived_fault,
)

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class FrozenMapping(Mapping[Key, Value], Generic[Key, Value]):
    """A mapping that cannot be changed, remembers the order of its items, can be hashed and survives pickling."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[Key, Value] | Iterable[tuple[Key, Value]] = ()) -> None:
        self._items: dict[Key, Value] = dict(items)

    def __getitem__(self, key: Key) -> Value:
        return self._items[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"FrozenMapping({self._items!r})"


class Metric(Enum):
    """What a plan should have little of."""

    PLAN_LENGTH = "length"
    TOTAL_COST = "total-cost"


@dataclass(frozen=True)
class Domain:
    """The types, predicates, functions, actions and axioms that problems speak of.

    Attributes:
        name: the domain's name.
        requirements: the ``:requirements`` keywords as written, for writing them out again.
        types: declared types; the root ``object`` is there without being declared.
        constants: objects that every problem has.
        predicates: predicates, the derived ones too.
        functions: numeric functions.
        actions: action schemas, with unique names.
        axioms: the rules for derived predicates.

    Raises:
        TaskError: a double name, an unknown name, a wrong number or type of arguments, a derived
            predicate that is changed by an action or depends on its own negation.
    """

    name: str
    requirements: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()
    constants: tuple[Parameter, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    functions: tuple[Function, ...] = ()
    actions: tuple[Action, ...] = ()
    axioms: tuple[Axiom, ...] = ()
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise TaskError.at(self.source or f"domain '{self.name}'", fault)

    def action(self, name: str) -> Action:
        """Return the action schema of that name.

        Raises:
            UnknownNameError: there is none.
        """
        try:
            return self._actions[name]
        except KeyError:
            raise UnknownNameError.of(
                "action", name, self._actions, where=f"domain '{self.name}'"
            ) from None

    @property
    def is_durative(self) -> bool:
        """Whether some action has a duration."""
        return any(action.timing is not None for action in self.actions)

    def outcomes(self, name: str) -> tuple[Action, ...]:
        """Return the outcomes of an action whose effect is ``oneof`` several, or of which it is one; else itself.

        Args:
            name: the action, as ``wash``, or one of its outcomes, as ``wash--1``.

        Raises:
            UnknownNameError: there is no such action.
        """
        stated = name if (found := self._outcomes.get(name)) else self.action(name).outcome_of
        return found or self._outcomes.get(stated) or (self.action(name),)

    @cached_property
    def _outcomes(self) -> dict[str, tuple[Action, ...]]:
        found: dict[str, list[Action]] = {}
        for action in self.actions:
            if action.outcome_of:
                found.setdefault(action.outcome_of, []).append(action)
        return {name: tuple(actions) for name, actions in found.items()}

    def axioms_for(self, predicate: str) -> tuple[Axiom, ...]:
        """Return the axioms whose head is ``predicate``."""
        return self._axioms_by_head.get(predicate, ())

    @cached_property
    def _axioms_by_head(self) -> dict[str, tuple[Axiom, ...]]:
        found: dict[str, list[Axiom]] = {}
        for axiom in self.axioms:
            found.setdefault(axiom.predicate, []).append(axiom)
        return {predicate: tuple(axioms) for predicate, axioms in found.items()}

    def vocabulary_with(self, objects: Mapping[str, Types]) -> Vocabulary:
        """Return what may be said in this domain when there are ``objects`` besides the constants."""
        everything = {constant.name: constant.types for constant in self.constants} | dict(objects)
        return Vocabulary(
            self.types, predicates=self.predicates, functions=self.functions, objects=everything
        )

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What may be said in this domain when there are no objects but its constants."""
        return self.vocabulary_with({})

    @cached_property
    def derived_predicates(self) -> frozenset[str]:
        """The predicates that follow from axioms."""
        return frozenset(axiom.predicate for axiom in self.axioms)

    @cached_property
    def axiom_strata(self) -> tuple[tuple[str, ...], ...]:
        """The derived predicates in groups such that a group depends negatively only on earlier ones."""
        levels = axiom_levels(self.axioms)
        return tuple(
            tuple(sorted(name for name, level in levels.items() if level == wanted))
            for wanted in sorted(set(levels.values()))
        )

    @cached_property
    def _actions(self) -> dict[str, Action]:
        return {action.name: action for action in self.actions}

    def _faults(self) -> Iterator[str]:
        """Yield what is wrong with the domain, in words."""
        words = self.vocabulary
        for kind, named in (
            ("type", self.types),
            ("constant", self.constants),
            ("predicate", self.predicates),
            ("function", self.functions),
            ("action", self.actions),
        ):
            yield from (
                f"{kind} '{name}' is declared twice"
                for name in _doubles(item.name for item in named)
            )
            for name in (item.name for item in named if item.name != item.name.lower()):
                yield f"{kind} '{name}' is not in lower case, but PDDL does not distinguish case"
        if wrong := words.hierarchy_fault():
            yield wrong[1].reason
        yield from _reasons(
            "constant", ((c.name, words.type_fault(t)) for c in self.constants for t in c.types)
        )
        signatures: tuple[Signature, ...] = (*self.predicates, *self.functions)
        for declared in signatures:
            yield from _reasons(
                "parameters of",
                [(declared.name, words.parameters_fault(declared.parameters, distinct=False))],
            )
        for action in self.actions:
            yield from _reasons("action", [(action.name, self.action_fault(action))])
        for axiom in self.axioms:
            yield from _reasons("axiom for", [(axiom.predicate, self.axiom_fault(axiom))])
        if cyclic := negative_cycle(self.axioms):
            yield f"derived predicate '{cyclic.predicate}' depends on its own negation"

    def action_fault(self, action: Action) -> Fault | None:
        """Return what is wrong with an action schema in this domain."""
        scope = {parameter.name: parameter.types for parameter in action.parameters}
        return (
            self.vocabulary.parameters_fault(action.parameters)
            or self.vocabulary.formula_fault(action.precondition, scope)
            or self.vocabulary.effect_fault(action.effect, scope, self.derived_predicates)
        )

    def axiom_fault(self, axiom: Axiom) -> Fault | None:
        """Return what is wrong with an axiom in this domain."""
        scope = {parameter.name: parameter.types for parameter in axiom.parameters}
        names = tuple(parameter.name for parameter in axiom.parameters)
        return (
            self.vocabulary.parameters_fault(axiom.parameters)
            or self.vocabulary.atom_fault(axiom.predicate, names, scope)
            or self.vocabulary.formula_fault(axiom.condition, scope)
        )


@dataclass(frozen=True, init=False)
class Problem:
    """A task: a domain with objects, the initial state and the goal.

    Args:
        name: the problem's name.
        domain: what the actions mean.
        objects: each object with its type, or with several types of which it is all; constants are
            not repeated.
        init: the basic facts that hold at first.
        goal: the formula to bring about; it has no free variables.
        metric: what a plan should have little of.
        values: the values of numeric functions, by ground term.
        source: the PDDL text, for messages.

    Raises:
        TaskError: an unknown name, a wrong number or type of arguments, a derived fact in ``init``.
    """

    name: str
    domain: Domain
    objects: FrozenMapping[str, Types]
    init: State
    goal: Formula
    metric: Metric
    values: FrozenMapping[Fact, float]
    source: str = field(compare=False)

    def __init__(
        self,
        name: str,
        domain: Domain,
        *,
        objects: Mapping[str, str | Types],
        init: State,
        goal: Formula,
        metric: Metric = Metric.PLAN_LENGTH,
        values: Mapping[Fact, float] | None = None,
        source: str = "",
    ) -> None:
        as_types = (
            (key, (types,) if isinstance(types, str) else tuple(types))
            for key, types in objects.items()
        )
        numbers: Mapping[Fact, float] = {} if values is None else values
        initialize(
            self,
            name=name,
            domain=domain,
            objects=FrozenMapping(as_types),
            init=init,
            goal=goal,
            metric=metric,
            values=FrozenMapping[Fact, float](numbers),
            source=source,
        )
        for fault in self._faults():
            raise self.error(fault)

    def error(self, reason: str) -> TaskError:
        """Return the error that this problem has the fault ``reason``."""
        return TaskError.at(self.source or f"problem '{self.name}'", reason)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What may be said in this problem."""
        return self.domain.vocabulary_with(self.objects)

    @property
    def all_objects(self) -> Mapping[str, Types]:
        """Constants of the domain and objects of the problem, with their types."""
        return self.vocabulary.objects

    def objects_of(self, types: str | Types) -> tuple[str, ...]:
        """Return the objects of a type (or any of several) and of the types below, in order of declaration."""
        wanted = (types,) if isinstance(types, str) else types
        if wanted not in self._members:
            found = self.vocabulary.objects_of(wanted)
            self._members[wanted] = (found, frozenset(found))
        return self._members[wanted][0]

    def members(self, types: Types) -> frozenset[str]:
        """Return the same objects as :meth:`objects_of` as a set."""
        self.objects_of(types)
        return self._members[types][1]

    @cached_property
    def _members(self) -> dict[Types, tuple[tuple[str, ...], frozenset[str]]]:
        return {}

    def binding_of(self, action: GroundAction) -> tuple[Action, dict[str, str]]:
        """Return the schema of a ground action and the values of its parameters.

        Raises:
            TaskError: no such action, a wrong number of arguments, an unknown object, or one of a
                wrong type.
        """
        schema = self.domain._actions.get(action.name)
        if schema is None:
            raise self.error(
                UnknownNameError.of("action", action.name, self.domain._actions).message
            )
        if fault := self.vocabulary.call_fault("action", schema, action.arguments, {}):
            raise self.error(f"{action}: {fault.reason}")
        names = (parameter.name for parameter in schema.parameters)
        return schema, dict(zip(names, action.arguments, strict=True))

    def holds(self, state: State, formula: Formula) -> bool:
        """Return whether a formula without free variables holds in a state, derived predicates included.

        Args:
            state: the state.
            formula: the formula.
        """
        return Interpretation(self, state).holds(formula)

    def derived(self, state: State) -> State:
        """Return the facts that follow in a state by the axioms of the domain and are not stored."""
        return State(Interpretation(self, state).derived_facts())

    def why_not(self, state: State, action: GroundAction) -> tuple[Formula, ...]:
        """Return the ground conjuncts of an action's precondition that fail in a state; none if it is applicable.

        Args:
            state: the state.
            action: the action.

        Raises:
            TaskError: the action is not one of the domain, or an argument is unknown or of a wrong
                type.
        """
        schema, binding = self.binding_of(action)
        return Interpretation(self, state).failures(schema.precondition, binding)

    def apply(self, state: State, action: GroundAction) -> State:
        """Return the state after an action; conditions are evaluated before it, deletes are applied before adds.

        Args:
            state: the state.
            action: an applicable action.

        Raises:
            TaskError: the action is not applicable, or not one of the domain.
        """
        schema, binding = self.binding_of(action)
        interpretation = Interpretation(self, state)
        failures = interpretation.failures(schema.precondition, binding)
        if failures:
            raise self.error(f"{action} is not applicable: {'; '.join(map(in_words, failures))}")
        change = interpretation.change(schema.effect, binding)
        if (term := change.undefined()) is not None:
            raise self.error(f"{action} gives {term} no value")
        return change.applied(state)

    def _faults(self) -> Iterator[str]:
        """Yield what is wrong with the problem, in words."""
        words, derived = self.vocabulary, self.domain.derived_predicates
        constants = {constant.name for constant in self.domain.constants}
        yield from (
            f"object '{name}' is already a constant of the domain"
            for name in self.objects
            if name in constants
        )
        yield from _reasons(
            "object", ((n, words.type_fault(t)) for n, types in self.objects.items() for t in types)
        )
        for fact in self.init:
            fault = derived_fault(fact.predicate, derived) or words.atom_fault(
                fact.predicate, fact.arguments, {}
            )
            yield from _reasons("init", [(str(fact), fault)])
        for term in self.values:
            yield from _reasons(
                "init", [(str(term), words.function_fault(term.predicate, term.arguments, {}))]
            )
        yield from _reasons("goal", [(str(self.goal), words.formula_fault(self.goal, {}))])


def _doubles(names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)


def _reasons(kind: str, faults: Iterable[tuple[str, Fault | None]]) -> Iterator[str]:
    return (f"{kind} {name}: {fault.reason}" for name, fault in faults if fault is not None)
