"""From nested lists to formulas and effects, checked word by word.

The idea: the grammar is asked whether a list is well formed (:mod:`tmkit.pddl.parsing.grammar`), except for an atom of
plain terms, of which there is nothing to ask. Then the list becomes a tree of :mod:`tmkit.pddl.formulas` of the same
shape, nothing flattened, and each name is checked at the moment it is read, because only then is it known where in the
file it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from pddlpy.pddlParser import pddlParser  # type: ignore[import-untyped]  # has no stubs

from tmkit.pddl.formulas import (
    And,
    Arithmetic,
    Atom,
    Comparison,
    Equals,
    Exists,
    Expression,
    Forall,
    Formula,
    FunctionTerm,
    Imply,
    Not,
    Number,
    Or,
    Parameter,
)
from tmkit.pddl.parsing.grammar import LOGIC, LONGEST_RUN, Rule, Spelling, is_number, is_term
from tmkit.pddl.parsing.object_functions import fresh, is_call, with_value
from tmkit.pddl.parsing.source import Group, Source, Token
from tmkit.pddl.vocabulary import TOTAL_COST, Fault, Types, Vocabulary

Scope = Mapping[str, Types]

_COMPARISONS = frozenset({"=", "<", ">", "<=", ">="})
_OPERATORS = frozenset("+-*/")


def typed_items(parts: Iterable[Token | Group]) -> list[tuple[Token, tuple[Token, ...]]]:
    """Return the items of a typed list, which is well formed, each with its types (none if untyped)."""
    items: list[tuple[Token, tuple[Token, ...]]] = []
    waiting: list[Token] = []
    remaining = iter(parts)
    for part in remaining:
        token = part.first
        if token.text == "-":
            kind = next(remaining)
            types = tuple(cast(Token, inner) for inner in kind.parts[1:]) if isinstance(kind, Group) else (kind,)
            items.extend((item, types) for item in waiting)
            waiting.clear()
        else:
            waiting.append(token)
    items.extend((item, ()) for item in waiting)
    return items


class TreeBuilder:
    """Turns lists into values.

    Args:
        keywords: the words that are keywords at the head of a list.
    """

    def __init__(self, source: Source, vocabulary: Vocabulary, *, keywords: frozenset[str] = LOGIC) -> None:
        self._source = source
        self._vocabulary = vocabulary
        self._keywords = keywords
        self._functions = frozenset({*vocabulary.functions, TOTAL_COST})
        self._accepted: set[tuple[str, int]] = set()  # a connective and how many lists: spares spelling it again

    def _check(self, fault: Fault | None, words: tuple[Token | Group, ...]) -> None:
        if fault is not None:
            raise self._source.error(words[min(fault.word, len(words) - 1)].first, fault.reason)

    def spelling(self) -> Spelling:
        """Return a spelling with nothing in it yet."""
        return Spelling(self._source, keywords=self._keywords, functions=self._functions)

    def require(self, group: Group, rule: Rule) -> None:
        """Check that a list follows a rule of the grammar."""
        spelling = self.spelling()
        spelling.group(group)
        spelling.require(rule)

    def _require_connective(self, group: Group) -> None:
        """Check that a list that begins with a connective is well formed, whatever is in the lists in it."""
        lists = sum([isinstance(part, Group) for part in group.parts])
        shape = (group.head, min(lists, LONGEST_RUN))
        if shape not in self._accepted or lists + 1 < len(group.parts):
            spelling = self.spelling()
            spelling.outline(group)
            spelling.require(pddlParser.goalDesc)
            self._accepted.add(shape)

    # ------------------------------------------------------------------------------------------------ declarations

    def type_name(self, token: Token) -> str:
        """Return a type's name, which must be declared."""
        self._check(self._vocabulary.type_fault(token.text), (token,))
        return token.text

    def parameters(self, parts: Iterable[Token | Group], *, distinct: bool = True) -> tuple[Parameter, ...]:
        """Return a list of typed variables, whose types are declared."""
        found: dict[int | str, Parameter] = {}
        for number, (token, types) in enumerate(typed_items(parts)):
            name = token.text
            if distinct and name in found:
                raise self._source.error(token, f"parameter '{name}' is declared twice")
            found[name if distinct else number] = Parameter(name, tuple(map(self.type_name, types)) or ("object",))
        return tuple(found.values())

    def action_parameters(self, key: Token, variables: Group) -> tuple[Parameter, ...]:
        """Return the parameters in a list behind a key word, read as those of an action."""
        spelling = self.spelling()
        for word in ("(", ":action", "name", ":parameters"):
            spelling.verbatim(word, key)
        spelling.verbatim("(", variables.opening)
        spelling.typed(variables.parts)
        for word in (")", ")"):
            spelling.verbatim(word, variables.closing)
        spelling.require(pddlParser.actionDef)
        return self.parameters(variables.parts)

    # ---------------------------------------------------------------------------------------------------- formulas

    def formula(self, group: Group, scope: Scope) -> Formula:
        """Return the formula of a list."""
        head, parts = group.head, group.parts
        if head in ("and", "or", "not", "imply"):
            self._require_connective(group)
            inner = tuple(self.formula(cast(Group, part), scope) for part in parts[1:])
            match head:
                case "and":
                    return And(inner)
                case "or":
                    return Or(inner)
                case "not":
                    return Not(*inner)
            return Imply(*inner)
        if head in ("exists", "forall"):
            return self._quantified(group, scope)
        if head in _COMPARISONS:
            return self._comparison(group, scope)
        return self.atom(group, scope, rule=pddlParser.goalDesc)

    def _quantified(self, group: Group, scope: Scope) -> Formula:
        spelling = self.spelling()
        spelling.verbatim("(", group.opening)
        spelling.verbatim(group.head, group.first)
        rest = group.parts[1:]
        if rest and isinstance(rest[0], Group):
            spelling.verbatim("(", rest[0].opening)
            spelling.typed(rest[0].parts)
            spelling.verbatim(")", rest[0].closing)
            rest = rest[1:]
        spelling.outlined(rest)
        spelling.verbatim(")", group.closing)
        spelling.require(pddlParser.goalDesc)
        variables, body = cast(tuple[Group, Group], group.parts[1:])
        parameters = self.parameters(variables.parts)
        formula = self.formula(body, extended(scope, parameters))
        return Exists(parameters, formula) if group.head == "exists" else Forall(parameters, formula)

    def _object_value(self, group: Group, scope: Scope) -> Formula | None:
        """Return the formula of ``(= (FUNCTION TERM...) TERM)`` where the value is an object, ``None`` for others."""
        predicates = self._vocabulary.predicates
        calls = [part for part in group.parts[1:] if isinstance(part, Group) and is_call(part, predicates)]
        values = [part for part in group.parts[1:] if isinstance(part, Token)]
        if group.head != "=" or not calls or len(group.parts) != 3 or len(calls) + len(values) != 2:
            return None
        if values:
            return self.atom(with_value(calls[0], values[0]), scope, rule=pddlParser.goalDesc)
        value = fresh(predicates[calls[0].head].parameters[-1].types, scope)
        token, inner = group.first._replace(text=value.name), extended(scope, (value,))
        atoms = (self.atom(with_value(call, token), inner, rule=pddlParser.goalDesc) for call in calls)
        return Exists((value,), And(tuple(atoms)))

    def _comparison(self, group: Group, scope: Scope) -> Formula:
        if (found := self._object_value(group, scope)) is not None:
            return found
        self.require(group, pddlParser.goalDesc)
        _, left, right = group.parts
        numeric = self.spelling().calculates(group)
        if group.head == "=" and not any(
            isinstance(part, Group) or (numeric and is_number(part.text)) for part in (left, right)
        ):
            return Equals(self._term(left.first, scope), self._term(right.first, scope))
        return Comparison(group.head, self.expression(left, scope), self.expression(right, scope))

    def atom(self, group: Group, scope: Scope, *, rule: Rule, whole: Group | None = None) -> Atom:
        """Return the atom of a list, which, if it is not simple, or the whole list around it, must follow a rule."""
        words = tuple([part.text for part in group.parts if isinstance(part, Token) and is_term(part.text)])
        if len(words) != len(group.parts) or not words or words[0][0] == "?" or words[0] in self._keywords:
            self.require(whole or group, rule)
        atom = Atom(words[0], words[1:])
        if fault := self._vocabulary.atom_fault(atom.predicate, atom.terms, scope):
            self._check(fault, group.parts)
        return atom

    def _term(self, token: Token, scope: Scope) -> str:
        self._check(self._vocabulary.term_fault(token.text, scope), (token,))
        return token.text

    # ------------------------------------------------------------------------------------------------- expressions

    def expression(self, part: Token | Group, scope: Scope) -> Expression:
        """Return the numeric expression of a part of a well-formed list."""
        if isinstance(part, Token) and is_number(part.text):
            return Number(float(part.text))
        if isinstance(part, Group) and part.head in _OPERATORS:
            return Arithmetic(part.head, tuple(self.expression(inner, scope) for inner in part.parts[1:]))
        return self._function_term(part, scope)

    def _function_term(self, part: Token | Group, scope: Scope) -> FunctionTerm:
        words = part.parts if isinstance(part, Group) else (part,)
        name, *terms = (word.first.text for word in words)
        self._check(self._vocabulary.function_fault(name, tuple(terms), scope), words)
        return FunctionTerm(name, tuple(terms))


def extended(scope: Scope, parameters: tuple[Parameter, ...]) -> Scope:
    """Return a scope with parameters, which hide variables of the same name."""
    return {**scope, **{parameter.name: parameter.types for parameter in parameters}}
