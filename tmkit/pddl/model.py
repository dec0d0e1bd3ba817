"""Domain and problem of a planning task.

Both are immutable values, checked on construction and therefore consistent. Every name is declared
and every argument has the type of its parameter. Derived predicates are neither stated nor changed,
and no predicate is derived from its own negation. A problem is read from a file
(:mod:`tmkit.pddl.parsing.parser`) or built: ``Problem("p", domain, objects={"a": "block"},
init=State([Fact.of("clear", "a")]), goal=Atom("holding", ("a",)))``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Generic, TypeVar

from tmkit._support.initialization import initialize
from tmkit.errors import TaskError, UnknownNameError
from tmkit.pddl.evaluation import Interpretation, describe_failure
from tmkit.pddl.formulas import Action, Axiom, Fact, Formula, GroundAction, Parameter
from tmkit.pddl.state import State
from tmkit.pddl.strata import axiom_levels, find_negative_cycle
from tmkit.pddl.vocabulary import (
    Fault,
    Function,
    Predicate,
    Signature,
    Type,
    Types,
    Vocabulary,
    derived_predicate_fault,
)

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class FrozenMapping(Mapping[Key, Value], Generic[Key, Value]):
    """Immutable mapping that keeps the order of its items, and can be hashed and pickled."""

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
    """Plan metric to minimise."""

    PLAN_LENGTH = "length"
    TOTAL_COST = "total-cost"


@dataclass(frozen=True)
class Domain:
    """Types, predicates, functions, actions and axioms of planning problems.

    Attributes:
        name: name of the domain.
        requirements: the ``:requirements`` keywords as written, for the writer.
        types: declared types, without the implicit root ``object``.
        constants: objects that every problem has.
        predicates: predicates, including the derived ones.
        functions: numeric functions.
        actions: action schemas, with unique names.
        axioms: rules for derived predicates.
        uncontrollable_actions: action schemas of the world. They may happen in any state in which
            their preconditions hold; a plan never contains them.
        source: name of the PDDL text, for messages.

    Raises:
        TaskError: if a name is unknown or declared twice, or arguments have a wrong number or type.
            Also if an action changes a derived predicate, or one depends on its own negation.
    """

    name: str
    requirements: tuple[str, ...] = ()
    types: tuple[Type, ...] = ()
    constants: tuple[Parameter, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    functions: tuple[Function, ...] = ()
    actions: tuple[Action, ...] = ()
    axioms: tuple[Axiom, ...] = ()
    uncontrollable_actions: tuple[Action, ...] = ()
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise TaskError.at(self.source or f"domain '{self.name}'", fault)

    def action(self, name: str) -> Action:
        """Return the action schema of a name, which may be uncontrollable.

        Raises:
            UnknownNameError: if the domain has no such action.
        """
        try:
            return self._actions[name]
        except KeyError:
            raise UnknownNameError.of(
                "action", name, self._actions, where=f"domain '{self.name}'"
            ) from None

    @property
    def is_durative(self) -> bool:
        """True if any action has a duration."""
        return any(action.timing is not None for action in self.actions)

    def outcomes(self, name: str) -> tuple[Action, ...]:
        """Return all outcomes of a nondeterministic action.

        Args:
            name: a nondeterministic action, as ``wash``, or one of its outcomes, as ``wash--1``.

        Returns:
            The outcomes, or only the action itself if it is deterministic.

        Raises:
            UnknownNameError: if the domain has no such action.
        """
        if name in self._outcomes:
            return self._outcomes[name]
        action = self.action(name)
        return self._outcomes.get(action.outcome_of) or (action,)

    @cached_property
    def _outcomes(self) -> dict[str, tuple[Action, ...]]:
        outcomes: dict[str, list[Action]] = {}
        for action in self.actions:
            if action.outcome_of:
                outcomes.setdefault(action.outcome_of, []).append(action)
        return {name: tuple(actions) for name, actions in outcomes.items()}

    def axioms_for(self, predicate: str) -> tuple[Axiom, ...]:
        """Return the axioms whose head is ``predicate``."""
        return self._axioms_by_head.get(predicate, ())

    @cached_property
    def _axioms_by_head(self) -> dict[str, tuple[Axiom, ...]]:
        axioms_by_head: dict[str, list[Axiom]] = {}
        for axiom in self.axioms:
            axioms_by_head.setdefault(axiom.predicate, []).append(axiom)
        return {predicate: tuple(axioms) for predicate, axioms in axioms_by_head.items()}

    def vocabulary_with(self, objects: Mapping[str, Types]) -> Vocabulary:
        """Return the symbol table of this domain with its constants and ``objects``."""
        constants = {constant.name: constant.types for constant in self.constants}
        return Vocabulary(
            self.types,
            predicates=self.predicates,
            functions=self.functions,
            objects=constants | dict(objects),
        )

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Symbol table of this domain with its constants as the only objects."""
        return self.vocabulary_with({})

    @cached_property
    def derived_predicates(self) -> frozenset[str]:
        """Names of the predicates that follow from axioms."""
        return frozenset(axiom.predicate for axiom in self.axioms)

    @cached_property
    def axiom_strata(self) -> tuple[tuple[str, ...], ...]:
        """Groups of derived predicates, each of which depends negatively only on earlier groups."""
        levels = axiom_levels(self.axioms)
        strata: dict[int, list[str]] = {}
        for name in sorted(levels):
            strata.setdefault(levels[name], []).append(name)
        return tuple(tuple(strata[level]) for level in sorted(strata))

    @cached_property
    def _actions(self) -> dict[str, Action]:
        return {action.name: action for action in (*self.actions, *self.uncontrollable_actions)}

    def is_uncontrollable(self, name: str) -> bool:
        """Return whether only the world performs an action."""
        return any(action.name == name for action in self.uncontrollable_actions)

    def _faults(self) -> Iterator[str]:
        """Yield the messages of all faults of the domain."""
        vocabulary = self.vocabulary
        for kind, items in (
            ("type", self.types),
            ("constant", self.constants),
            ("predicate", self.predicates),
            ("function", self.functions),
            ("action", (*self.actions, *self.uncontrollable_actions)),
        ):
            for name in _duplicates(item.name for item in items):
                yield f"{kind} '{name}' is declared twice"
            for name in (item.name for item in items if item.name != item.name.lower()):
                yield f"{kind} '{name}' is not in lower case, but PDDL does not distinguish case"
        if hierarchy_fault := vocabulary.hierarchy_fault():
            yield hierarchy_fault[1].reason
        for constant in self.constants:
            faults = [(constant.name, vocabulary.type_fault(name)) for name in constant.types]
            yield from _reasons("constant", faults)
        signatures: tuple[Signature, ...] = (*self.predicates, *self.functions)
        for signature in signatures:
            fault = vocabulary.parameters_fault(signature.parameters, distinct=False)
            yield from _reasons("parameters of", [(signature.name, fault)])
        for action in (*self.actions, *self.uncontrollable_actions):
            yield from _reasons("action", [(action.name, self.action_fault(action))])
        for axiom in self.axioms:
            yield from _reasons("axiom for", [(axiom.predicate, self.axiom_fault(axiom))])
        if cyclic := find_negative_cycle(self.axioms):
            yield f"derived predicate '{cyclic.predicate}' depends on its own negation"

    def action_fault(self, action: Action) -> Fault | None:
        """Return the first fault of an action schema in this domain, ``None`` if it is valid."""
        scope = {parameter.name: parameter.types for parameter in action.parameters}
        return (
            self.vocabulary.parameters_fault(action.parameters)
            or self.vocabulary.formula_fault(action.precondition, scope)
            or self.vocabulary.effect_fault(action.effect, scope, self.derived_predicates)
        )

    def axiom_fault(self, axiom: Axiom) -> Fault | None:
        """Return the first fault of an axiom in this domain, ``None`` if it is valid."""
        scope = {parameter.name: parameter.types for parameter in axiom.parameters}
        names = tuple(parameter.name for parameter in axiom.parameters)
        return (
            self.vocabulary.parameters_fault(axiom.parameters)
            or self.vocabulary.atom_fault(axiom.predicate, names, scope)
            or self.vocabulary.formula_fault(axiom.condition, scope)
        )


@dataclass(frozen=True, init=False)
class Problem:
    """Planning task: a domain with objects, an initial state and a goal.

    Args:
        name: name of the problem.
        domain: domain of the problem.
        objects: type, or tuple of types, of each object, without the constants of the domain.
        init: basic facts of the initial state.
        goal: goal formula, without free variables.
        metric: plan metric to minimise.
        values: values of numeric functions, by ground term.

    Attributes:
        source: name of the PDDL text, for messages; empty without one. See :meth:`with_source`.

    Raises:
        TaskError: if a name is unknown, arguments have a wrong number or type, or ``init`` has a
            derived fact.
    """

    name: str
    domain: Domain
    objects: FrozenMapping[str, Types]
    init: State
    goal: Formula
    metric: Metric
    values: FrozenMapping[Fact, float]
    source: str = field(init=False, compare=False)

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
    ) -> None:
        types_by_object = (
            (key, (types,) if isinstance(types, str) else tuple(types))
            for key, types in objects.items()
        )
        numbers: Mapping[Fact, float] = {} if values is None else values
        initialize(
            self,
            name=name,
            domain=domain,
            objects=FrozenMapping(types_by_object),
            init=init,
            goal=goal,
            metric=metric,
            values=FrozenMapping[Fact, float](numbers),
            source="",
        )
        for fault in self._faults():
            raise self.error(fault)

    def with_source(self, source: str) -> Problem:
        """Return an equal problem whose messages name a PDDL text, as its file.

        Args:
            source: name of the text.
        """
        problem = copy(self)
        initialize(problem, source=source)
        return problem

    def error(self, reason: str) -> TaskError:
        """Return an error at this problem.

        Args:
            reason: message of the error.
        """
        return TaskError.at(self.source or f"problem '{self.name}'", reason)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Symbol table of this problem."""
        return self.domain.vocabulary_with(self.objects)

    @property
    def all_objects(self) -> Mapping[str, Types]:
        """Types of the constants of the domain and of the objects of the problem, by name."""
        return self.vocabulary.objects

    def objects_of(self, types: str | Types) -> tuple[str, ...]:
        """Return the objects of a type, or of any of several, in the order of declaration.

        Args:
            types: one type or several. Their subtypes are included.
        """
        key = (types,) if isinstance(types, str) else types
        if key not in self._members:
            objects = self.vocabulary.objects_of(key)
            self._members[key] = (objects, frozenset(objects))
        return self._members[key][0]

    def members(self, types: Types) -> frozenset[str]:
        """Return the objects of :meth:`objects_of` as a set."""
        self.objects_of(types)
        return self._members[types][1]

    @cached_property
    def _members(self) -> dict[Types, tuple[tuple[str, ...], frozenset[str]]]:
        return {}

    def binding_of(self, action: GroundAction) -> tuple[Action, dict[str, str]]:
        """Return the schema of a ground action and the values of its parameters.

        Raises:
            TaskError: if the action or an object is unknown, or arguments have a wrong number or
                type.
        """
        actions = self.domain._actions
        schema = actions.get(action.name)
        if schema is None:
            raise self.error(UnknownNameError.of("action", action.name, actions).message)
        if fault := self.vocabulary.call_fault("action", schema, action.arguments, {}):
            raise self.error(f"{action}: {fault.reason}")
        names = (parameter.name for parameter in schema.parameters)
        return schema, dict(zip(names, action.arguments, strict=True))

    def holds(self, state: State, formula: Formula) -> bool:
        """Return whether a formula holds in a state.

        Args:
            state: state of this problem, to which derived facts are added.
            formula: formula without free variables.
        """
        return Interpretation(self, state).holds(formula)

    def derive_facts(self, state: State) -> State:
        """Return the facts that follow from a state by the axioms of the domain."""
        return State(Interpretation(self, state).derive_facts())

    def why_not(self, state: State, action: GroundAction) -> tuple[Formula, ...]:
        """Return the ground conjuncts of an action's precondition that do not hold in a state.

        Args:
            state: state before the action.
            action: ground action.

        Returns:
            The conjuncts, none if the action is applicable.

        Raises:
            TaskError: if the action is not one of the domain, or an argument is unknown or of a
                wrong type.
        """
        schema, binding = self.binding_of(action)
        return Interpretation(self, state).failures(schema.precondition, binding)

    def applicable_actions(
        self, state: State, *, schemas: Iterable[Action] | None = None
    ) -> Iterator[GroundAction]:
        """Yield the ground actions whose preconditions hold in a state.

        Each precondition is solved as a query over the facts, which yields the bindings directly
        instead of testing all combinations of objects.

        Args:
            state: state of this problem.
            schemas: action schemas of the domain, such as its ``uncontrollable_actions``. Defaults
                to its ``actions``.

        Yields:
            The actions by schema, in the order of the domain, and sorted by their arguments.
        """
        interpretation = Interpretation(self, state)
        for schema in self.domain.actions if schemas is None else schemas:
            names = [parameter.name for parameter in schema.parameters]
            solutions = interpretation.solutions(schema.precondition, schema.parameters)
            for arguments in sorted(
                {tuple(solution[name] for name in names) for solution in solutions}
            ):
                yield GroundAction(schema.name, arguments)

    def apply(self, state: State, action: GroundAction) -> State:
        """Return the state after an action.

        All conditions refer to the state before the action. Deletes are applied before adds.

        Args:
            state: state before the action.
            action: applicable ground action.

        Raises:
            TaskError: if the action is not applicable, or not one of the domain.
        """
        schema, binding = self.binding_of(action)
        interpretation = Interpretation(self, state)
        failures = interpretation.failures(schema.precondition, binding)
        if failures:
            raise self.error(
                f"{action} is not applicable: {'; '.join(map(describe_failure, failures))}"
            )
        change = interpretation.change(schema.effect, binding)
        if (term := change.find_undefined()) is not None:
            raise self.error(f"{action} gives {term} no value")
        return change.apply_to(state)

    def _faults(self) -> Iterator[str]:
        """Yield the messages of all faults of the problem."""
        vocabulary, derived = self.vocabulary, self.domain.derived_predicates
        constants = {constant.name for constant in self.domain.constants}
        for name in self.objects:
            if name in constants:
                yield f"object '{name}' is already a constant of the domain"
        for name, types in self.objects.items():
            yield from _reasons("object", [(name, vocabulary.type_fault(kind)) for kind in types])
        for fact in self.init:
            predicate, arguments = fact
            fault = derived_predicate_fault(predicate, derived)
            fault = fault or vocabulary.atom_fault(predicate, arguments, {})
            yield from _reasons("init", [(str(fact), fault)])
        for term in self.values:
            fault = vocabulary.function_fault(term.predicate, term.arguments, {})
            yield from _reasons("init", [(str(term), fault)])
        yield from _reasons("goal", [(str(self.goal), vocabulary.formula_fault(self.goal, {}))])


def _duplicates(names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)


def _reasons(kind: str, faults: Iterable[tuple[str, Fault | None]]) -> Iterator[str]:
    return (f"{kind} {name}: {fault.reason}" for name, fault in faults if fault is not None)
