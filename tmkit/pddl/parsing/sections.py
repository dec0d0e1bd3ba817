"""Readers of the sections of a PDDL file.

Each section has one method. It checks the syntax with pddlpy's grammar and then collects the
declarations, each checked against all earlier ones. The parser imports this module only for an
actual text, because the import of pddlpy takes 0.25 s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pddlpy.pddlParser import pddlParser  # type: ignore[import-untyped]  # has no stubs

from tmkit.pddl.formulas import ALWAYS, Action, Axiom, Fact, Formula, FunctionTerm, Parameter
from tmkit.pddl.model import Domain, Metric
from tmkit.pddl.parsing.actions import ActionReader, use_durations_as_costs
from tmkit.pddl.parsing.grammar import Rule, Spelling, is_name, is_number
from tmkit.pddl.parsing.source import (
    UNDEFINED,
    Group,
    Source,
    Token,
    is_call,
    make_value_atom,
    move_function_first,
)
from tmkit.pddl.parsing.trees import PreferenceReader, TreeBuilder, read_typed_items
from tmkit.pddl.state import State
from tmkit.pddl.strata import find_negative_cycle
from tmkit.pddl.substitution import substitute
from tmkit.pddl.vocabulary import (
    TOTAL_COST,
    Function,
    Predicate,
    Type,
    Types,
    Vocabulary,
    derived_predicate_fault,
)

_TYPED_LIST_KEYWORDS = frozenset({"either"})
_TOTAL_TIME = "total-time"
_INIT_KEYWORDS = frozenset({"not", "="})


class SectionReader:
    """Reader of the sections of one file.

    Args:
        source: PDDL text.
        domain: domain of a problem, ``None`` for the text of a domain.

    Attributes:
        declarations: types, constants, predicates and functions of a domain that have been read.
    """

    def __init__(self, source: Source, domain: Domain | None = None) -> None:
        self.source = source
        kinds = ("types", "constants", "predicates", "functions")
        self.declarations: dict[str, tuple[Any, ...]] = dict.fromkeys(kinds, ())
        self._domain = domain
        self._derived: frozenset[str] = frozenset() if domain is None else domain.derived_predicates

    def _vocabulary(self) -> Vocabulary:
        if self._domain is not None:
            return self._domain.vocabulary
        types, constants, predicates, functions = self.declarations.values()
        objects = {constant.name: constant.types for constant in constants}
        return Vocabulary(types, predicates=predicates, functions=functions, objects=objects)

    def _builder(self) -> TreeBuilder:
        return TreeBuilder(self.source, self._vocabulary())

    def _spelling(self, keywords: frozenset[str] = _TYPED_LIST_KEYWORDS) -> Spelling:
        return Spelling(self.source, keywords=keywords)

    def _read_typed_list(self, group: Group, rule: Rule) -> list[tuple[Token, tuple[Token, ...]]]:
        """Return the items of a keyword or name with a typed list, each item with its types."""
        spelling = self._spelling()
        spelling.add_verbatim("(", group.opening)
        spelling.word(group.first)
        spelling.add_typed_list(group.parts[1:])
        spelling.add_verbatim(")", group.closing)
        spelling.require(rule)
        items = read_typed_items(group.parts[1:])
        for name in (token for item, types in items for token in (item, *types)):
            if name.text.startswith("-"):  # a negative number
                raise self.source.error(
                    name, f"'{name.text}' is not a name; a type is written '- TYPE'"
                )
        return items

    def _unique(self, kind: str, names: Iterable[Token]) -> None:
        seen: set[str] = set()
        for token in names:
            if token.text in seen:
                raise self.source.error(token, f"{kind} '{token.text}' is declared twice")
            seen.add(token.text)

    def header(self, group: Group) -> str:
        """Return the name in ``(domain NAME)`` or ``(problem NAME)``."""
        return self._name(
            group, pddlParser.domainName if group.head == "domain" else pddlParser.problemDecl
        ).text

    def _name(self, group: Group, rule: Rule) -> Token:
        spelling = self._spelling(frozenset({"domain", "problem"}))
        spelling.group(group)
        spelling.require(rule)
        return group.parts[1].first

    def check_domain(self, group: Group) -> None:
        """Check that ``(:domain NAME)`` names the domain."""
        token = self._name(group, pddlParser.problemDomain)
        if self._domain is not None and token.text != self._domain.name:
            reason = (
                f"the problem is one of domain '{token.text}', but the domain given is"
                f" '{self._domain.name}'"
            )
            raise self.source.error(token, reason)

    def requirements(self, group: Group) -> tuple[str, ...]:
        """Return the keywords of ``(:requirements ...)``, without a check of their names."""
        return tuple(part.text for part in group.parts[1:] if isinstance(part, Token))

    def types(self, group: Group) -> tuple[Type, ...]:
        """Return the types of ``(:types ...)``, followed by their undeclared parents."""
        items = self._read_typed_list(group, pddlParser.typesDef)
        # a type declared twice, as in some published domains, is a subtype of both parents
        parents_by_type: dict[str, dict[str, None]] = {}
        for item, parents in items:
            parents_by_type.setdefault(item.text, {}).update(
                dict.fromkeys(parent.text for parent in parents)
            )
        for name in [parent for parents in parents_by_type.values() for parent in parents]:
            parents_by_type.setdefault(name, {})
        types = tuple(
            Type(name, tuple(parent for parent in parents if parent != "object") or ("object",))
            for name, parents in parents_by_type.items()
            if name != "object"
        )
        vocabulary = Vocabulary(types, predicates=(), functions=(), objects={})
        if type_fault := vocabulary.hierarchy_fault():
            name, fault = type_fault
            token = next(item for item, _ in items if item.text == name)
            raise self.source.error(token, fault.reason)
        return types

    def objects(self, group: Group) -> tuple[Parameter, ...]:
        """Return the objects of ``(:objects ...)`` or ``(:constants ...)``."""
        items = self._read_typed_list(
            group, pddlParser.constantsDef if group.head == ":constants" else pddlParser.objectDecl
        )
        builder = self._builder()
        self._unique("object", (item for item, _ in items))
        constants = self._vocabulary().objects
        for item, _ in items:
            if item.text in constants:
                raise self.source.error(
                    item, f"object '{item.text}' is already a constant of the domain"
                )
        return tuple(
            Parameter(item.text, tuple(map(builder.type_name, types)) or ("object",))
            for item, types in items
        )

    def _signatures(
        self, group: Group, *, section_rule: Rule, item_rule: Rule
    ) -> list[tuple[Token, tuple[Parameter, ...]]]:
        """Return the names and parameters of the lists of a section.

        Args:
            group: section of predicates or functions.
            section_rule: grammar rule of the section.
            item_rule: grammar rule of a list in it.
        """
        spelling, builder = self._spelling(), self._builder()
        spelling.add_verbatim("(", group.opening)
        previous: Token | Group = group.opening
        for part in group.parts:
            follows_dash = isinstance(previous, Token) and previous.text == "-"
            if follows_dash and isinstance(part, Token) and part.text == "number":
                spelling.add_verbatim("number", part)
            else:
                spelling.add_outline_parts([part])
            previous = part
        spelling.add_verbatim(")", group.closing)
        spelling.require(section_rule)
        signatures = []
        for part in group.parts[1:]:
            if isinstance(part, Group):
                items = part.parts[1:]
                self._read_typed_list(part, item_rule)
                signatures.append((part.first, builder.parameters(items, distinct=False)))
        return signatures

    def predicates(self, group: Group) -> tuple[Predicate, ...]:
        """Return the predicates of ``(:predicates ...)``."""
        predicates: dict[str, tuple[Parameter, ...]] = {}
        signatures = self._signatures(
            group, section_rule=pddlParser.predicatesDef, item_rule=pddlParser.atomicFormulaSkeleton
        )
        for token, parameters in signatures:
            types = [parameter.types for parameter in predicates.setdefault(token.text, parameters)]
            # an equal declaration is allowed
            if types != [parameter.types for parameter in parameters]:
                raise self.source.error(
                    token, f"predicate '{token.text}' is declared twice, with other parameters"
                )
        return tuple(Predicate(name, parameters) for name, parameters in predicates.items())

    def functions(self, group: Group) -> tuple[Function, ...]:
        """Return the functions of ``(:functions ...)``."""
        signatures = self._signatures(
            group, section_rule=pddlParser.functionsDef, item_rule=pddlParser.atomicFunctionSkeleton
        )
        self._unique("function", (token for token, _ in signatures))
        return tuple(Function(token.text, parameters) for token, parameters in signatures)

    def axiom(self, group: Group) -> Axiom:
        """Return the rule of ``(:derived (PREDICATE PARAMETERS) CONDITION)``."""
        parts = group.parts
        if len(parts) != 3 or not isinstance(parts[1], Group) or not isinstance(parts[2], Group):
            raise self.source.error(
                group.first, "expected (:derived (PREDICATE PARAMETERS) CONDITION)"
            )
        head, condition = parts[1], parts[2]
        if not head.head:
            raise self.source.error(head.first, "expected the name of a derived predicate")
        builder = self._builder()
        parameters, scope = self._axiom_head(head, builder)
        return Axiom(
            head.head, parameters, builder.formula(condition, scope) if condition.parts else ALWAYS
        )

    def _axiom_head(
        self, head: Group, builder: TreeBuilder
    ) -> tuple[tuple[Parameter, ...], dict[str, Types]]:
        vocabulary = self._vocabulary()
        parameters = builder.action_parameters(head.first, head._replace(parts=head.parts[1:]))
        predicate = vocabulary.predicates.get(head.head)
        if predicate is not None and len(predicate.parameters) == len(parameters):
            items = read_typed_items(head.parts[1:])
            parameters = tuple(
                parameter if types else replace(parameter, types=declaration.types)
                for parameter, declaration, (_, types) in zip(
                    parameters, predicate.parameters, items, strict=True
                )
            )
        scope = {parameter.name: parameter.types for parameter in parameters}
        if fault := vocabulary.atom_fault(head.head, tuple(scope), scope):
            raise self.source.error(head.first, fault.reason)
        return parameters, scope

    def check_axioms(self, axioms: tuple[Axiom, ...], groups: list[Group]) -> None:
        """Record the derived predicates, and reject the first axiom of a negative cycle.

        Args:
            axioms: all axioms of the domain.
            groups: section of each axiom.

        Raises:
            TaskError: if a derived predicate depends on its own negation.
        """
        self._derived = frozenset(axiom.predicate for axiom in axioms)
        if axiom_of_cycle := find_negative_cycle(axioms):
            head = next(
                group.parts[1]
                for group, axiom in zip(groups, axioms, strict=True)
                if axiom is axiom_of_cycle
            )
            raise self.source.error(
                head.first,
                f"derived predicate '{axiom_of_cycle.predicate}' depends on its own negation",
            )

    def actions(self, groups: Iterable[Group]) -> tuple[Action, ...]:
        """Return the actions of all ``(:action ...)`` and ``(:durative-action ...)`` sections."""
        return ActionReader(self.source, self._vocabulary(), derived=self._derived).actions(groups)

    def init(self, group: Group, vocabulary: Vocabulary) -> tuple[State, dict[Fact, float]]:
        """Return the facts and the numeric values of ``(:init ...)``."""
        actions = () if self._domain is None else self._domain.actions
        lengths = (action.timing.duration for action in actions if action.timing is not None)
        durations = frozenset(length.name for length in lengths if isinstance(length, FunctionTerm))
        reader = _InitReader(self.source, vocabulary, derived=self._derived, durations=durations)
        reader.read(group)
        return State(reader.facts), reader.values

    def apply_metric(self, group: Group, domain: Domain) -> Domain:
        """Return the domain for a metric, with durations as costs if the metric is the time."""
        del self
        is_time = group.parts[-1].first.text == _TOTAL_TIME
        return use_durations_as_costs(domain) if is_time else domain

    def preferences(
        self, goal: Group, metric: Group | None, vocabulary: Vocabulary
    ) -> PreferenceReader:
        """Return the reader of the preferences of a goal.

        Args:
            goal: formula with preferences.
            metric: section of the metric, if any.
            vocabulary: symbol table of the problem.
        """
        assert self._domain is not None
        return PreferenceReader(
            self.source, self._domain, TreeBuilder(self.source, vocabulary), goal, metric
        )

    def goal(self, group: Group, vocabulary: Vocabulary) -> Formula:
        """Return the formula of a goal; an empty list always holds."""
        return TreeBuilder(self.source, vocabulary).formula(group, {}) if group.parts else ALWAYS

    def metric(self, group: Group) -> Metric:
        """Return the metric of ``(:metric ...)``, either ``(total-cost)`` or ``(total-time)``."""
        spelling = self._spelling(frozenset("+-*/"))
        spelling.add_verbatim("(", group.opening)
        for part in group.parts:
            if isinstance(part, Group):
                spelling.group(part)
            elif part.text in (":metric", "minimize", "maximize", _TOTAL_TIME):
                spelling.add_verbatim(part.text, part)
            else:
                spelling.word(part)
        spelling.add_verbatim(")", group.closing)
        spelling.require(pddlParser.metricSpec)
        objective, quantity = group.parts[1:]
        is_minimized = objective.first.text == "minimize"
        if is_minimized and quantity.first.text == _TOTAL_TIME and self._domain is not None:
            if not self._domain.is_durative:
                raise self.source.error(quantity.first, "no action has a duration")
            return Metric.TOTAL_COST
        is_simple = isinstance(quantity, Token) or len(quantity.parts) == 1
        if not (is_simple and is_minimized and quantity.first.text == TOTAL_COST):
            raise self.source.error(
                group.first, "expected minimize (total-cost) or, with durations, (total-time)"
            )
        if fault := self._vocabulary().function_fault(TOTAL_COST, (), {}):
            raise self.source.error(quantity.first, fault.reason)
        return Metric.TOTAL_COST


def rename_objects(formula: Formula, spelling: Mapping[str, str]) -> Formula:
    """Return a formula with objects renamed.

    Args:
        formula: formula to change.
        spelling: new names of objects by old ones.
    """
    return substitute(formula, {old: new for old, new in spelling.items() if old != new})


class _InitReader:
    """Reader of the facts and values of ``(:init ...)``.

    Lists of plain names, often thousands, are read without the grammar.
    """

    def __init__(
        self,
        source: Source,
        vocabulary: Vocabulary,
        *,
        derived: frozenset[str],
        durations: frozenset[str],
    ) -> None:
        self._source = source
        self._vocabulary = vocabulary
        self._derived = derived
        self._durations = durations
        self._negated: dict[Fact, Group] = {}
        self.facts: set[Fact] = set()
        self.values: dict[Fact, float] = {}
        self._objects: dict[tuple[str, ...], str] = {}

    def read(self, group: Group) -> None:
        for part in group.parts[1:]:
            part = (
                move_function_first(part, self._vocabulary.predicates)
                if isinstance(part, Group)
                else part
            )
            if isinstance(part, Token):
                self._spelling(group).require(pddlParser.init)
            elif (
                part.head == "="
                and len(part.parts) == 3
                and is_call(part.parts[1], self._vocabulary.predicates)
            ):
                self._take_object(part)
            elif part.head == "=":
                self._take_value(part)
            else:
                self._take_fact(part)
        for fact, atom in self._negated.items():
            if fact in self.facts:
                raise self._source.error(atom.opening, f"{fact} is both stated and denied")

    def _spelling(self, group: Group) -> Spelling:
        functions, predicates = (
            {*self._vocabulary.functions, TOTAL_COST},
            self._vocabulary.predicates,
        )
        spelling = Spelling(
            self._source, keywords=_INIT_KEYWORDS, functions=functions, predicates=predicates
        )
        (spelling.add_outline if group.head == ":init" else spelling.group)(group)
        return spelling

    def _take_fact(self, group: Group) -> None:
        is_negated = group.head == "not"
        fact = None if is_negated else _plain_call(group)
        if fact is None:
            # (at 5 (p))
            if group.head == "at" and len(group.parts) == 3 and isinstance(group.parts[2], Group):
                raise self._source.error(group.first, "timed initial literals are not supported")
            self._spelling(group).require(pddlParser.initEl)
        atom = group.parts[1] if is_negated else group
        assert isinstance(atom, Group)  # required by the grammar
        fact = fact or Fact(atom.head, tuple(part.first.text for part in atom.parts[1:]))
        if fault := self._vocabulary.atom_fault(*fact, {}) or derived_predicate_fault(
            fact.predicate, self._derived
        ):
            raise self._source.error(_word_at(atom, fault.word), fault.reason)
        if is_negated:
            self._negated.setdefault(fact, atom)
        else:
            self.facts.add(fact)

    def _take_object(self, group: Group) -> None:
        """Add the value of a function with an object as its value."""
        call, value = group.parts[1:]
        if not isinstance(call, Group) or not isinstance(value, Token):
            raise self._source.error(value.first, "expected an object as the value")
        if value.text == UNDEFINED:
            return
        key = tuple(part.first.text for part in call.parts)
        if self._objects.setdefault(key, value.text) != value.text:
            raise self._source.error(call.opening, f"({' '.join(key)}) is given a second value")
        self._take_fact(make_value_atom(call, value))

    def _take_value(self, group: Group) -> None:
        call = None
        if (
            len(group.parts) == 3
            and isinstance(group.parts[1], Group)
            and isinstance(group.parts[2], Token)
        ):
            call = _plain_call(group.parts[1]) if is_number(group.parts[2].text) else None
        if call is None or not math.isfinite(float(group.parts[2].first.text)):
            self._spelling(group).require(pddlParser.initEl)
        term, number = group.parts[1], float(group.parts[2].first.text)
        call = call or Fact(term.first.text)
        if fault := self._vocabulary.function_fault(*call, {}):
            raise self._source.error(_word_at(term, fault.word), fault.reason)
        if number < 0.0 and call.predicate in self._durations:
            raise self._source.error(
                group.parts[2].first, f"the duration {call} is below zero: {number:g}"
            )
        if self.values.setdefault(call, number) != number:
            token = term.opening if isinstance(term, Group) else term
            raise self._source.error(token, f"{call} is given a second value")


def _plain_call(group: Group) -> Fact | None:
    """Return a list of names as a fact, ``None`` for any other list."""
    names = [part.text for part in group.parts if isinstance(part, Token) and is_name(part.text)]
    return Fact(names[0], tuple(names[1:])) if names and len(names) == len(group.parts) else None


def _word_at(part: Token | Group, index: int) -> Token:
    """Return the word at an index of a plain list, at most the last one."""
    return part.parts[min(index, len(part.parts) - 1)].first if isinstance(part, Group) else part
