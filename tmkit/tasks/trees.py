"""From the parse trees of pddlpy's grammar to formulas and effects, checked word by word.

The idea: a grammar context becomes a tree of :mod:`tmkit.tasks.formulas` of the same shape, nothing flattened, and each
name is checked at the moment it is read, because only then is it known where in the file it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmkit.errors import TaskError
from tmkit.tasks.formulas import (
    Add,
    And,
    Arithmetic,
    Atom,
    Comparison,
    Delete,
    Effect,
    Equals,
    Exists,
    Expression,
    Fact,
    Forall,
    Formula,
    FunctionTerm,
    Imply,
    IncreaseCost,
    Not,
    Number,
    Or,
    Parameter,
)
from tmkit.tasks.grammar import Origins
from tmkit.tasks.vocabulary import TOTAL_COST, Fault, Types, Vocabulary, derived_fault

__all__ = ["Scope", "TreeBuilder", "extended", "typed_items"]

Scope = Mapping[str, Types]


def typed_items(context: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the items of a typedNameList or typedVariableList, each with its type contexts (none if untyped)."""
    variables = hasattr(context, "VARIABLE")
    groups = context.singleTypeVarList() if variables else context.singleTypeNameList()
    items: list[tuple[Any, tuple[Any, ...]]] = []
    for group in groups:
        types = tuple(group.r_type().primType())
        items.extend((item, types) for item in (group.VARIABLE() if variables else group.name()))
    items.extend((item, ()) for item in (context.VARIABLE() if variables else context.name()))
    return items


class TreeBuilder:
    """Turns contexts into values.

    Args:
        vocabulary: the names that may be used.
        origins: where each token stands.
        derived: predicates that must not be stated or changed.
    """

    def __init__(self, vocabulary: Vocabulary, origins: Origins, *, derived: frozenset[str] = frozenset()) -> None:
        self._vocabulary = vocabulary
        self._origins = origins
        self._derived = derived

    def error(self, context: Any, reason: str) -> TaskError:
        """Return the error that the first word of ``context`` is wrong for that reason."""
        return self._origins.source.error(self._origins.token(context), reason)

    def name(self, context: Any) -> str:
        """Return the name that stands at ``context``."""
        return self._origins.name(context)

    def _check(self, fault: Fault | None, words: list[Any]) -> None:
        if fault is not None:
            raise self.error(words[min(fault.word, len(words) - 1)], fault.reason)

    # ------------------------------------------------------------------------------------------------ declarations

    def type_name(self, context: Any) -> str:
        """Return a type's name, which must be declared."""
        name = self.name(context)
        self._check(self._vocabulary.type_fault(name), [context])
        return name

    def parameters(self, context: Any, *, distinct: bool = True) -> tuple[Parameter, ...]:
        """Return a typedVariableList; types are declared, and names are unique if they must be ``distinct``."""
        found: list[Parameter] = []
        for item, types in typed_items(context):
            name = self.name(item)
            if distinct and any(parameter.name == name for parameter in found):
                raise self.error(item, f"parameter '{name}' is declared twice")
            found.append(Parameter(name, tuple(map(self.type_name, types)) or ("object",)))
        return tuple(found)

    # ---------------------------------------------------------------------------------------------------- formulas

    def formula(self, context: Any, scope: Scope) -> Formula:
        """Return the formula of a goalDesc context, where the variables ``scope`` are declared."""
        if context.atomicTermFormula() is not None:
            return self.atom(context.atomicTermFormula(), scope)
        if context.fComp() is not None:
            comparison = context.fComp()
            left, right = (self.expression(part, scope) for part in comparison.fExp())
            return Comparison(comparison.binaryComp().getText(), left, right)
        parts = context.goalDesc()
        match context.getChild(1).getText():
            case "and":
                return And(tuple(self.formula(part, scope) for part in parts))
            case "or":
                return Or(tuple(self.formula(part, scope) for part in parts))
            case "not":
                return Not(self.formula(parts[0], scope))
            case "imply":
                return Imply(self.formula(parts[0], scope), self.formula(parts[1], scope))
            case "=":
                return Equals(*(self._term(term, scope) for term in context.term()))
            case quantifier:
                parameters = self.parameters(context.typedVariableList())
                body = self.formula(parts[0], extended(scope, parameters))
                return Exists(parameters, body) if quantifier == "exists" else Forall(parameters, body)

    def atom(self, context: Any, scope: Scope) -> Atom:
        """Return the atom of an atomicTermFormula context."""
        words = [context.predicate(), *context.term()]
        name, *terms = map(self.name, words)
        self._check(self._vocabulary.atom_fault(name, tuple(terms), scope), words)
        return Atom(name, tuple(terms))

    def fact(self, context: Any) -> Fact:
        """Return the fact of an atomicNameFormula context; it may be stated, so its predicate is not derived."""
        words = [context.predicate(), *context.name()]
        name, *arguments = map(self.name, words)
        fault = self._vocabulary.atom_fault(name, tuple(arguments), {}) or derived_fault(name, self._derived)
        self._check(fault, words)
        return Fact(name, tuple(arguments))

    def _term(self, context: Any, scope: Scope) -> str:
        name = self.name(context)
        self._check(self._vocabulary.term_fault(name, scope), [context])
        return name

    # ------------------------------------------------------------------------------------------------- expressions

    def expression(self, context: Any, scope: Scope) -> Expression:
        """Return the numeric expression of an fExp context."""
        if context.NUMBER() is not None:
            return Number(float(self.name(context.NUMBER())))
        if context.fHead() is not None:
            return self.function_term(context.fHead(), scope)
        inner = context.fExp()
        first = self.expression(inner[0] if isinstance(inner, list) else inner, scope)
        if context.binaryOp() is None:
            return Arithmetic("-", (first,))
        return Arithmetic(context.binaryOp().getText(), (first, self.expression(context.fExp2().fExp(), scope)))

    def function_term(self, context: Any, scope: Scope) -> FunctionTerm:
        """Return the function term of an fHead context."""
        words = [context.functionSymbol(), *context.term()]
        name, *terms = map(self.name, words)
        self._check(self._vocabulary.function_fault(name, tuple(terms), scope), words)
        return FunctionTerm(name, tuple(terms))

    # ----------------------------------------------------------------------------------------------------- effects

    def primitive_effect(self, context: Any, scope: Scope) -> Effect:
        """Return the effect of a pEffect context: an atom that is added or deleted, or a cost."""
        if context.assignOp() is not None:
            return self._cost_effect(context, scope)
        atom = self.atom(context.atomicTermFormula(), scope)
        self._check(derived_fault(atom.predicate, self._derived), [context.atomicTermFormula().predicate()])
        return Delete(atom) if _head(context) == "not" else Add(atom)

    def _cost_effect(self, context: Any, scope: Scope) -> Effect:
        operator, function = self.name(context.assignOp()), self.function_term(context.fHead(), scope)
        if operator != "increase" or function.name != TOTAL_COST:
            reason = "the only numeric effect that is supported is (increase (total-cost) AMOUNT)"
            raise self.error(context.assignOp(), reason)
        amount = context.fExp()
        return IncreaseCost(self.expression(amount[0] if isinstance(amount, list) else amount, scope))


def _head(context: Any) -> str:
    """Return the keyword that follows the parenthesis of a context, or what stands there instead."""
    return str(context.getChild(1).getText()) if context.getChildCount() > 1 else ""


def extended(scope: Scope, parameters: tuple[Parameter, ...]) -> Scope:
    """Return ``scope`` with the parameters, which hide variables of the same name."""
    return {**scope, **{parameter.name: parameter.types for parameter in parameters}}
