"""Declarations of the sections of a PDDL file.

The idea: one method per section. It checks with pddlpy's grammar that the section is well formed,
and then collects the declarations, each checked against everything declared before. This module
imports pddlpy (a quarter of a second), so the parser imports it only when there is something to
read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pddlpy.pddlParser import pddlParser  # type: ignore[import-untyped]  # has no stubs

from tmkit.pddl.formulas import ALWAYS, Action, Axiom, Fact, Formula, FunctionTerm, Parameter
from tmkit.pddl.model import Domain, Metric
from tmkit.pddl.parsing.actions import ActionReader, with_durations_as_costs
from tmkit.pddl.parsing.grammar import Rule, Spelling, is_name, is_number
from tmkit.pddl.parsing.source import (
    UNDEFINED,
    Group,
    Source,
    Token,
    function_first,
    is_call,
    with_value,
)
from tmkit.pddl.parsing.trees import PreferenceReader, TreeBuilder, typed_items
from tmkit.pddl.state import State
from tmkit.pddl.strata import negative_cycle
from tmkit.pddl.substitution import substitute
from tmkit.pddl.vocabulary import (
    TOTAL_COST,
    Function,
    Predicate,
    Type,
    Types,
    Vocabulary,
    derived_fault,
)

_LISTS = frozenset({"either"})
_TIME = "total-time"
_INIT_WORDS = frozenset({"not", "="})


class SectionReader:
    """Reads the sections of one file.

    Args:
        domain: for a problem, its domain; ``None`` while a domain is read.

    Attributes:
        declared: types, constants, predicates and functions of a domain, as far as they were read.
    """

    def __init__(self, source: Source, domain: Domain | None = None) -> None:
        self.source = source
        kinds = ("types", "constants", "predicates", "functions")
        self.declared: dict[str, tuple[Any, ...]] = dict.fromkeys(kinds, ())
        self._domain = domain
        self._derived: frozenset[str] = frozenset() if domain is None else domain.derived_predicates

    def _vocabulary(self) -> Vocabulary:
        if self._domain is not None:
            return self._domain.vocabulary
        types, constants, predicates, functions = self.declared.values()
        objects = {constant.name: constant.types for constant in constants}
        return Vocabulary(types, predicates=predicates, functions=functions, objects=objects)

    def _builder(self) -> TreeBuilder:
        return TreeBuilder(self.source, self._vocabulary())

    def _spelling(self, keywords: frozenset[str] = _LISTS) -> Spelling:
        return Spelling(self.source, keywords=keywords)

    def _typed(self, group: Group, rule: Rule) -> list[tuple[Token, tuple[Token, ...]]]:
        """Return the items of a list that consists of a keyword or name and a typed list, each with its types."""
        spelling = self._spelling()
        spelling.verbatim("(", group.opening)
        spelling.word(group.first)
        spelling.typed(group.parts[1:])
        spelling.verbatim(")", group.closing)
        spelling.require(rule)
        items = typed_items(group.parts[1:])
        for name in (token for item, types in items for token in (item, *types)):
            if name.text.startswith("-"):  # a negative number
                raise self.source.error(
                    name, f"'{name.text}' is no name; a type is written '- TYPE'"
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
        """Return the keywords of ``(:requirements ...)``; whether they are known was checked before."""
        return tuple(part.text for part in group.parts[1:] if isinstance(part, Token))

    def types(self, group: Group) -> tuple[Type, ...]:
        """Return the types of ``(:types ...)``, and after them the parents that are named but not declared."""
        items = self._typed(group, pddlParser.typesDef)
        # a type given twice, as in some published domains, is below both
        above: dict[str, dict[str, None]] = {}
        for item, parents in items:
            above.setdefault(item.text, {}).update(dict.fromkeys(parent.text for parent in parents))
        for name in [parent for parents in above.values() for parent in parents]:
            above.setdefault(name, {})
        types = tuple(
            Type(name, tuple(parent for parent in parents if parent != "object") or ("object",))
            for name, parents in above.items()
            if name != "object"
        )
        words = Vocabulary(types, predicates=(), functions=(), objects={})
        if wrong := words.hierarchy_fault():
            raise self.source.error(
                next(item for item, _ in items if item.text == wrong[0]), wrong[1].reason
            )
        return types

    def objects(self, group: Group) -> tuple[Parameter, ...]:
        """Return the objects of ``(:objects ...)`` or ``(:constants ...)``."""
        items = self._typed(
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
        self, group: Group, *, whole: Rule, each: Rule
    ) -> list[tuple[Token, tuple[Parameter, ...]]]:
        """Return the names and parameters that a section declares in lists."""
        spelling, builder = self._spelling(), self._builder()
        spelling.verbatim("(", group.opening)
        before: Token | Group = group.opening
        for part in group.parts:
            if (
                isinstance(before, Token)
                and before.text == "-"
                and isinstance(part, Token)
                and part.text == "number"
            ):
                spelling.verbatim("number", part)
            else:
                spelling.outlined([part])
            before = part
        spelling.verbatim(")", group.closing)
        spelling.require(whole)
        found = []
        for part in group.parts[1:]:
            if isinstance(part, Group):
                items = part.parts[1:]
                self._typed(part, each)
                found.append((part.first, builder.parameters(items, distinct=False)))
        return found

    def predicates(self, group: Group) -> tuple[Predicate, ...]:
        """Return the predicates of ``(:predicates ...)``."""
        found: dict[str, tuple[Parameter, ...]] = {}
        rules = {"whole": pddlParser.predicatesDef, "each": pddlParser.atomicFormulaSkeleton}
        for token, parameters in self._signatures(group, **rules):
            types = [parameter.types for parameter in found.setdefault(token.text, parameters)]
            # the same once more does no harm
            if types != [parameter.types for parameter in parameters]:
                raise self.source.error(
                    token, f"predicate '{token.text}' is declared twice, with other parameters"
                )
        return tuple(Predicate(name, parameters) for name, parameters in found.items())

    def functions(self, group: Group) -> tuple[Function, ...]:
        """Return the functions of ``(:functions ...)``."""
        rules = {"whole": pddlParser.functionsDef, "each": pddlParser.atomicFunctionSkeleton}
        found = self._signatures(group, **rules)
        self._unique("function", (token for token, _ in found))
        return tuple(Function(token.text, parameters) for token, parameters in found)

    def axiom(self, group: Group) -> Axiom:
        """Return the rule of ``(:derived (PREDICATE PARAMETERS) CONDITION)``, read as an action's precondition."""
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
        words = self._vocabulary()
        parameters = builder.action_parameters(head.first, head._replace(parts=head.parts[1:]))
        predicate = words.predicates.get(head.head)
        if predicate is not None and len(predicate.parameters) == len(parameters):
            untyped = [not types for _, types in typed_items(head.parts[1:])]
            parameters = tuple(
                replace(given, types=declared.types) if bare else given
                for given, declared, bare in zip(
                    parameters, predicate.parameters, untyped, strict=True
                )
            )
        scope = {parameter.name: parameter.types for parameter in parameters}
        if fault := words.atom_fault(head.head, tuple(scope), scope):
            raise self.source.error(head.first, fault.reason)
        return parameters, scope

    def check_axioms(self, axioms: tuple[Axiom, ...], groups: list[Group]) -> None:
        """Record the derived predicates; the first axiom of a negative cycle is rejected, by its list."""
        self._derived = frozenset(axiom.predicate for axiom in axioms)
        if cyclic := negative_cycle(axioms):
            head = next(
                group.parts[1]
                for group, axiom in zip(groups, axioms, strict=True)
                if axiom is cyclic
            )
            where = head.first if isinstance(head, Group) else head
            raise self.source.error(
                where, f"derived predicate '{cyclic.predicate}' depends on its own negation"
            )

    def actions(self, groups: Iterable[Group]) -> tuple[Action, ...]:
        """Return the actions of all ``(:action ...)`` sections."""
        return ActionReader(self.source, self._vocabulary(), derived=self._derived).actions(groups)

    def init(self, group: Group, words: Vocabulary) -> tuple[State, dict[Fact, float]]:
        """Return the facts and the numeric values of ``(:init ...)``."""
        actions = () if self._domain is None else self._domain.actions
        lengths = (action.timing.duration for action in actions if action.timing is not None)
        durations = frozenset(length.name for length in lengths if isinstance(length, FunctionTerm))
        reader = _InitReader(self.source, words, derived=self._derived, durations=durations)
        reader.read(group)
        return State(reader.facts), reader.values

    def timed(self, group: Group, domain: Domain) -> Domain:
        """Return a domain with what a metric asks for: where that is the time, actions cost their durations."""
        del self
        return with_durations_as_costs(domain) if group.parts[-1].first.text == _TIME else domain

    def preferences(self, goal: Group, metric: Group | None, words: Vocabulary) -> PreferenceReader:
        """Return goal and metric without preferences, and the domain in which these can be forgone."""
        assert self._domain is not None
        return PreferenceReader(
            self.source, self._domain, TreeBuilder(self.source, words), goal, metric
        )

    def goal(self, group: Group, words: Vocabulary) -> Formula:
        """Return the formula of a goal; an empty list always holds."""
        return TreeBuilder(self.source, words).formula(group, {}) if group.parts else ALWAYS

    def metric(self, group: Group) -> Metric:
        """Return the objective of ``(:metric ...)``: to minimize ``(total-cost)`` or ``(total-time)``."""
        spelling = self._spelling(frozenset("+-*/"))
        spelling.verbatim("(", group.opening)
        for part in group.parts:
            if isinstance(part, Group):
                spelling.group(part)
            elif part.text in (":metric", "minimize", "maximize", _TIME):
                spelling.verbatim(part.text, part)
            else:
                spelling.word(part)
        spelling.verbatim(")", group.closing)
        spelling.require(pddlParser.metricSpec)
        wanted, measure = group.parts[1:]
        if (
            measure.first.text == _TIME
            and wanted.first.text == "minimize"
            and self._domain is not None
        ):
            if not self._domain.is_durative:
                raise self.source.error(measure.first, "no action has a duration")
            return Metric.TOTAL_COST
        plain = isinstance(measure, Token) or len(measure.parts) == 1
        if not plain or measure.first.text != TOTAL_COST or wanted.first.text != "minimize":
            raise self.source.error(
                group.first, "expected minimize (total-cost) or, with durations, (total-time)"
            )
        if fault := self._vocabulary().function_fault(TOTAL_COST, (), {}):
            raise self.source.error(measure.first, fault.reason)
        return Metric.TOTAL_COST


def renamed(formula: Formula, spelling: Mapping[str, str]) -> Formula:
    """Return a formula with objects renamed, by the new names of the old ones."""
    return substitute(formula, {old: new for old, new in spelling.items() if old != new})


class _InitReader:
    """Collects facts and values at first; lists of plain names, often thousands, are taken without the grammar."""

    def __init__(
        self,
        source: Source,
        words: Vocabulary,
        *,
        derived: frozenset[str],
        durations: frozenset[str],
    ) -> None:
        self._source = source
        self._words = words
        self._derived = derived
        self._durations = durations
        self._denied: dict[Fact, Group] = {}
        self.facts: set[Fact] = set()
        self.values: dict[Fact, float] = {}
        self._objects: dict[tuple[str, ...], str] = {}

    def read(self, group: Group) -> None:
        for part in group.parts[1:]:
            part = function_first(part, self._words.predicates) if isinstance(part, Group) else part
            if isinstance(part, Token):
                self._spelling(group).require(pddlParser.init)
            elif (
                part.head == "="
                and len(part.parts) == 3
                and is_call(part.parts[1], self._words.predicates)
            ):
                self._take_object(part)
            elif part.head == "=":
                self._take_value(part)
            else:
                self._take_fact(part)
        for fact, where in self._denied.items():
            if fact in self.facts:
                raise self._source.error(where.opening, f"{fact} is both stated and denied")

    def _spelling(self, group: Group) -> Spelling:
        functions, predicates = {*self._words.functions, TOTAL_COST}, self._words.predicates
        spelling = Spelling(
            self._source, keywords=_INIT_WORDS, functions=functions, predicates=predicates
        )
        (spelling.outline if group.head == ":init" else spelling.group)(group)
        return spelling

    def _take_fact(self, group: Group) -> None:
        is_denied = group.head == "not"
        fact = None if is_denied else _plain_call(group)
        if fact is None:
            # (at 5 (p))
            if group.head == "at" and len(group.parts) == 3 and isinstance(group.parts[2], Group):
                raise self._source.error(group.first, "timed initial literals are not supported")
            self._spelling(group).require(pddlParser.initEl)
        atom = group.parts[1] if is_denied else group
        assert isinstance(atom, Group)  # says the grammar
        fact = fact or Fact(atom.head, tuple(part.first.text for part in atom.parts[1:]))
        if fault := self._words.atom_fault(*fact, {}) or derived_fault(
            fact.predicate, self._derived
        ):
            raise self._source.error(_word(atom, fault.word), fault.reason)
        if is_denied:
            self._denied.setdefault(fact, atom)
        else:
            self.facts.add(fact)

    def _take_object(self, group: Group) -> None:
        """Take the value of a function whose values are objects."""
        call, value = group.parts[1:]
        if not isinstance(call, Group) or not isinstance(value, Token):
            raise self._source.error(value.first, "expected an object as the value")
        if value.text == UNDEFINED:
            return
        key = tuple(part.first.text for part in call.parts)
        if self._objects.setdefault(key, value.text) != value.text:
            raise self._source.error(call.opening, f"({' '.join(key)}) is given a second value")
        self._take_fact(with_value(call, value))

    def _take_value(self, group: Group) -> None:
        plain = None
        if (
            len(group.parts) == 3
            and isinstance(group.parts[1], Group)
            and isinstance(group.parts[2], Token)
        ):
            plain = _plain_call(group.parts[1]) if is_number(group.parts[2].text) else None
        if plain is None or not math.isfinite(float(group.parts[2].first.text)):
            self._spelling(group).require(pddlParser.initEl)
        term, number = group.parts[1], float(group.parts[2].first.text)
        call = plain or Fact(term.first.text)
        if fault := self._words.function_fault(*call, {}):
            raise self._source.error(_word(term, fault.word), fault.reason)
        if number < 0.0 and call.predicate in self._durations:
            raise self._source.error(
                group.parts[2].first, f"the duration {call} is below zero: {number:g}"
            )
        if self.values.setdefault(call, number) != number:
            where = term.opening if isinstance(term, Group) else term
            raise self._source.error(where, f"{call} is given a second value")


def _plain_call(group: Group) -> Fact | None:
    """Return the list as a name applied to names, ``None`` when it is anything else."""
    names = [part.text for part in group.parts if isinstance(part, Token) and is_name(part.text)]
    return Fact(names[0], tuple(names[1:])) if names and len(names) == len(group.parts) else None


def _word(part: Token | Group, index: int) -> Token:
    """Return the word of a plain list at which to complain, at most the last one."""
    return part.parts[min(index, len(part.parts) - 1)].first if isinstance(part, Group) else part
