"""What each section of a PDDL file declares.

The idea: one method per section. It respells the section, lets pddlpy's grammar parse it and pddlpy's walker show the
tree to a listener that collects the declarations, each checked against everything declared before. This module imports
pddlpy (a quarter of a second), so the parser imports it only when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pddlpy.pddlListener import pddlListener  # type: ignore[import-untyped]  # has no stubs
from pddlpy.pddlParser import pddlParser  # type: ignore[import-untyped]  # has no stubs

from tmkit.tasks import grammar
from tmkit.tasks.actions import ActionReader
from tmkit.tasks.formulas import ALWAYS, Fact, Formula, Parameter
from tmkit.tasks.grammar import Origins, Respelling
from tmkit.tasks.initial import InitListener, PlainInit
from tmkit.tasks.model import Action, Axiom, Domain, Metric
from tmkit.tasks.source import Group, Source, Token
from tmkit.tasks.state import State
from tmkit.tasks.strata import negative_cycle
from tmkit.tasks.substitution import substitute
from tmkit.tasks.trees import TreeBuilder, typed_items
from tmkit.tasks.vocabulary import TOTAL_COST, Function, Predicate, Type, Vocabulary

__all__ = ["Declared", "SectionReader", "renamed"]

_LISTS = frozenset({"either"})
_INIT = frozenset({"not", "="})


@dataclass(frozen=True)
class Declared:
    """The declarations of a domain that were read so far."""

    types: tuple[Type, ...] = ()
    constants: tuple[Parameter, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    functions: tuple[Function, ...] = ()


class SectionReader:
    """Reads the sections of one file.

    Args:
        source: the file.
        domain: for a problem, its domain; ``None`` while a domain is read.
    """

    def __init__(self, source: Source, domain: Domain | None = None) -> None:
        self.source = source
        self.declared = Declared()
        self._domain = domain
        self._derived: frozenset[str] = frozenset() if domain is None else domain.derived_predicates

    def declare(self, **sections: Any) -> None:
        """Take note of what a section declared, so that later sections may use it."""
        self.declared = replace(self.declared, **{name: tuple(items) for name, items in sections.items()})

    def _vocabulary(self) -> Vocabulary:
        if self._domain is not None:
            return self._domain.vocabulary
        declared = self.declared
        objects = {constant.name: constant.types for constant in declared.constants}
        return Vocabulary(declared.types, predicates=declared.predicates, functions=declared.functions, objects=objects)

    def _parse(self, group: Group, rule: Any, keywords: frozenset[str]) -> tuple[Any, Origins]:
        functions = frozenset(self._vocabulary().functions) | {TOTAL_COST}
        respelling = Respelling(self.source, keywords=keywords, functions=functions)
        respelling.group(group)
        return grammar.parse(respelling, rule)

    def _unique(self, kind: str, names: Iterable[Token]) -> None:
        seen: set[str] = set()
        for token in names:
            if token.text in seen:
                raise self.source.error(token, f"{kind} '{token.text}' is declared twice")
            seen.add(token.text)

    # ------------------------------------------------------------------------------------------------------ headers

    def header(self, group: Group) -> str:
        """Return the name in ``(domain NAME)`` or ``(problem NAME)``."""
        rule = pddlParser.domainName if group.head == "domain" else pddlParser.problemDecl
        tree, origins = self._parse(group, rule, frozenset({"domain", "problem"}))
        return origins.name(tree.name())

    def check_domain(self, group: Group) -> None:
        """Check that ``(:domain NAME)`` names the domain."""
        tree, origins = self._parse(group, pddlParser.problemDomain, frozenset())
        name = origins.name(tree.name())
        if self._domain is not None and name != self._domain.name:
            reason = f"the problem is one of domain '{name}', but the domain given is '{self._domain.name}'"
            raise self.source.error(origins.token(tree.name()), reason)

    def requirements(self, group: Group) -> tuple[str, ...]:
        """Return the keywords of ``(:requirements ...)``; whether they are known was checked before."""
        return tuple(part.text for part in group.parts[1:] if isinstance(part, Token))

    # ------------------------------------------------------------------------------------------------- declarations

    def types(self, group: Group) -> tuple[Type, ...]:
        """Return the types of ``(:types ...)``, and after them the parents that are named but not declared."""
        tree, origins = self._parse(group, pddlParser.typesDef, _LISTS)
        listener = _Collector(origins)
        grammar.walk(listener, tree)
        above: dict[str, dict[str, None]] = {}  # a type given twice, as in some published domains, is below both
        for item, parents in listener.items:
            above.setdefault(origins.name(item), {}).update(dict.fromkeys(map(origins.name, parents)))
        for name in [parent for parents in above.values() for parent in parents]:
            above.setdefault(name, {})
        types = tuple(
            Type(name, tuple(parent for parent in parents if parent != "object") or ("object",))
            for name, parents in above.items()
            if name != "object"
        )
        words = Vocabulary(types, predicates=(), functions=(), objects={})
        if wrong := words.hierarchy_fault():
            tokens = (origins.token(item) for item, _ in listener.items)
            raise self.source.error(next(token for token in tokens if token.text == wrong[0]), wrong[1].reason)
        return types

    def objects(self, group: Group) -> tuple[Parameter, ...]:
        """Return the objects of ``(:objects ...)`` or ``(:constants ...)``."""
        rule = pddlParser.constantsDef if group.head == ":constants" else pddlParser.objectDecl
        tree, origins = self._parse(group, rule, _LISTS)
        listener = _Collector(origins)
        grammar.walk(listener, tree)
        builder = TreeBuilder(self._vocabulary(), origins)
        self._unique("object", (origins.token(item) for item, _ in listener.items))
        constants = self._vocabulary().objects
        for item, _ in listener.items:
            if origins.name(item) in constants:
                raise builder.error(item, f"object '{origins.name(item)}' is already a constant of the domain")
        return tuple(
            Parameter(origins.name(item), tuple(map(builder.type_name, types)) or ("object",))
            for item, types in listener.items
        )

    def predicates(self, group: Group) -> tuple[Predicate, ...]:
        """Return the predicates of ``(:predicates ...)``."""
        tree, origins = self._parse(group, pddlParser.predicatesDef, _LISTS)
        listener = _Collector(origins, TreeBuilder(self._vocabulary(), origins))
        grammar.walk(listener, tree)
        found: dict[str, tuple[Parameter, ...]] = {}
        for token, parameters in listener.signatures:
            types = [parameter.types for parameter in found.setdefault(token.text, parameters)]
            if types != [parameter.types for parameter in parameters]:  # the same once more does no harm
                raise self.source.error(token, f"predicate '{token.text}' is declared twice, with other parameters")
        return tuple(Predicate(name, parameters) for name, parameters in found.items())

    def functions(self, group: Group) -> tuple[Function, ...]:
        """Return the functions of ``(:functions ...)``."""
        respelling = Respelling(self.source, keywords=_LISTS)
        respelling.verbatim("(", group.opening)
        before = ""
        for part in group.parts:
            if isinstance(part, Group):
                respelling.group(part)
            elif before == "-" and part.text == "number":
                respelling.verbatim("number", part)
            else:
                respelling.word(part)
            before = part.text if isinstance(part, Token) else ""
        respelling.verbatim(")", group.closing)
        tree, origins = grammar.parse(respelling, pddlParser.functionsDef)
        listener = _Collector(origins, TreeBuilder(self._vocabulary(), origins))
        grammar.walk(listener, tree)
        self._unique("function", (token for token, _ in listener.signatures))
        return tuple(Function(token.text, parameters) for token, parameters in listener.signatures)

    # --------------------------------------------------------------------------------------------- actions and axioms

    def axiom(self, group: Group) -> Axiom:
        """Return the rule of ``(:derived (PREDICATE PARAMETERS) CONDITION)``, read as an action's precondition."""
        parts = group.parts
        if len(parts) != 3 or not isinstance(parts[1], Group) or not isinstance(parts[2], Group):
            raise self.source.error(group.first, "expected (:derived (PREDICATE PARAMETERS) CONDITION)")
        head, condition = parts[1], parts[2]
        if not head.head:
            raise self.source.error(head.first, "expected the name of a derived predicate")
        respelling = Respelling(self.source, keywords=grammar.LOGIC)
        for spelling, origin in (("(", group.opening), (":action", group.first), ("name", head.first)):
            respelling.verbatim(spelling, origin)
        respelling.verbatim(":parameters", head.opening)
        respelling.verbatim("(", head.opening)
        respelling.parts(head, start=1)
        respelling.verbatim(")", head.closing)
        respelling.verbatim(":precondition", condition.opening)
        respelling.group(condition)
        respelling.verbatim(")", group.closing)
        tree, origins = grammar.parse(respelling, pddlParser.actionDef)
        return self._axiom_from(tree, origins, head.first)

    def _axiom_from(self, tree: Any, origins: Origins, name: Token) -> Axiom:
        words = self._vocabulary()
        builder = TreeBuilder(words, origins)
        parameters = builder.parameters(tree.typedVariableList())
        predicate = words.predicates.get(name.text)
        if predicate is not None and len(predicate.parameters) == len(parameters):
            untyped = [not types for _, types in typed_items(tree.typedVariableList())]
            parameters = tuple(
                replace(given, types=declared.types) if bare else given
                for given, declared, bare in zip(parameters, predicate.parameters, untyped, strict=True)
            )
        scope = {parameter.name: parameter.types for parameter in parameters}
        if fault := words.atom_fault(name.text, tuple(scope), scope):
            raise self.source.error(name, fault.reason)
        precondition = tree.actionDefBody().precondition()
        condition = ALWAYS if precondition is None else builder.formula(precondition.goalDesc(), scope)
        return Axiom(name.text, parameters, condition)

    def check_axioms(self, axioms: tuple[Axiom, ...], groups: list[Group]) -> None:
        """Take note of the derived predicates; the first axiom that is part of a negative cycle is refused."""
        self._derived = frozenset(axiom.predicate for axiom in axioms)
        if cyclic := negative_cycle(axioms):
            head = next(group.parts[1] for group, axiom in zip(groups, axioms, strict=True) if axiom is cyclic)
            where = head.first if isinstance(head, Group) else head
            raise self.source.error(where, f"derived predicate '{cyclic.predicate}' depends on its own negation")

    def actions(self, groups: Iterable[Group]) -> tuple[Action, ...]:
        """Return the actions of all ``(:action ...)`` sections."""
        return ActionReader(self.source, self._vocabulary(), derived=self._derived).actions(groups)

    # ------------------------------------------------------------------------------------------------------ problems

    def init(self, group: Group, words: Vocabulary) -> tuple[State, dict[Fact, float]]:
        """Return the facts and the numeric values of ``(:init ...)``."""
        for part in group.parts[1:]:
            if isinstance(part, Group) and part.head == "at" and len(part.parts) == 3 and _is_timed(part):
                raise self.source.error(part.first, "timed initial literals are not supported")
        plain = PlainInit(self.source, words, derived=self._derived)
        rest = tuple(part for part in group.parts if not (isinstance(part, Group) and plain.take(part)))
        tree, origins = self._parse(Group(group.opening, rest, group.closing), pddlParser.init, _INIT)
        listener = InitListener(TreeBuilder(words, origins, derived=self._derived), plain)
        grammar.walk(listener, tree)
        return State(plain.facts), plain.values

    def goal(self, group: Group, words: Vocabulary) -> Formula:
        """Return a formula; an empty list always holds."""
        if not group.parts:
            return ALWAYS
        tree, origins = self._parse(group, pddlParser.goalDesc, grammar.LOGIC)
        return TreeBuilder(words, origins).formula(tree, {})

    def metric(self, group: Group) -> Metric:
        """Return what ``(:metric ...)`` asks for: only ``minimize (total-cost)`` is supported."""
        respelling = Respelling(self.source, keywords=frozenset("+-*/"))
        for spelling, token in (("(", group.opening), (":metric", group.first)):
            respelling.verbatim(spelling, token)
        for part in group.parts[1:]:
            if isinstance(part, Group):
                respelling.group(part)
            elif part.text in ("minimize", "maximize", "total-time"):
                respelling.verbatim(part.text, part)
            else:
                respelling.word(part)
        respelling.verbatim(")", group.closing)
        tree, origins = grammar.parse(respelling, pddlParser.metricSpec)
        function = tree.metricFExp().functionSymbol()
        plain = function is not None and not tree.metricFExp().name() and origins.name(function) == TOTAL_COST
        if not plain or origins.name(tree.optimization()) != "minimize":
            raise self.source.error(group.first, "the only metric that is supported is (:metric minimize (total-cost))")
        if fault := self._vocabulary().function_fault(TOTAL_COST, (), {}):
            raise self.source.error(origins.token(function), fault.reason)
        return Metric.TOTAL_COST


class _Collector(pddlListener):  # type: ignore[misc]  # pddlpy has no type information
    """Collects typed names, and the signatures of predicates and functions."""

    def __init__(self, origins: Origins, builder: TreeBuilder | None = None) -> None:
        self._origins = origins
        self._builder = builder
        self.items: list[tuple[Any, tuple[Any, ...]]] = []
        self.signatures: list[tuple[Token, tuple[Parameter, ...]]] = []

    def enterTypedNameList(self, ctx: Any) -> None:  # noqa: N802  # named by the grammar
        self.items.extend(typed_items(ctx))

    def enterAtomicFormulaSkeleton(self, ctx: Any) -> None:  # noqa: N802  # named by the grammar
        self._signature(ctx.predicate(), ctx)

    def enterAtomicFunctionSkeleton(self, ctx: Any) -> None:  # noqa: N802  # named by the grammar
        self._signature(ctx.functionSymbol(), ctx)

    def _signature(self, name: Any, context: Any) -> None:
        if self._builder is not None:
            parameters = self._builder.parameters(context.typedVariableList(), distinct=False)
            self.signatures.append((self._origins.token(name), parameters))


def _is_timed(group: Group) -> bool:
    """Tell ``(at 5 (p))`` from ``(at a b)``."""
    return isinstance(group.parts[2], Group)


def renamed(formula: Formula, spelling: Mapping[str, str]) -> Formula:
    """Return the formula with objects renamed."""
    return substitute(formula, {old: new for old, new in spelling.items() if old != new})
