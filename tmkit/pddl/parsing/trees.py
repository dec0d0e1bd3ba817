"""From nested lists to formulas and effects, checked word by word.

The idea: the grammar is asked whether a list is well formed (:mod:`tmkit.pddl.parsing.grammar`),
except for an atom of plain terms, of which there is nothing to ask. Then the list becomes a tree of
:mod:`tmkit.pddl.formulas` of the same shape, nothing flattened. Each name is checked at the moment
it is read, because only then is it known where in the file it stands.

Preferences: parts of a goal that need not hold, at a price. The idea: ``(preference P F)`` in a
goal is read as ``(or F (forgone--P))``, and the problem's domain gets an action ``forgo--P`` that
makes it so and costs what the metric says of ``(is-violated P)``. The cheapest plan keeps what is
worth its price (E. Keyder, H. Geffner, "Soft goals can be compiled away", JAIR 2009). A preference
that the metric does not mention is worth nothing, and is left out. In ``forall``, each object's is
forgone by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from pddlpy.pddlParser import pddlParser  # type: ignore[import-untyped]  # has no stubs

from tmkit._support.source_location import did_you_mean
from tmkit.pddl.formulas import (
    Action,
    Add,
    And,
    Arithmetic,
    Atom,
    Comparison,
    EffectAnd,
    Equals,
    Exists,
    Expression,
    Forall,
    Formula,
    FunctionTerm,
    Imply,
    IncreaseCost,
    Not,
    Number,
    Or,
    Parameter,
    simple_effects,
)
from tmkit.pddl.model import Domain
from tmkit.pddl.parsing.grammar import (
    ASSIGNMENTS,
    LOGIC,
    LONGEST_RUN,
    Rule,
    Spelling,
    is_number,
    is_term,
)
from tmkit.pddl.parsing.source import Group, Source, Token, fresh, is_call, with_value
from tmkit.pddl.vocabulary import TOTAL_COST, Fault, Predicate, Types, Vocabulary

Scope = Mapping[str, Types]

_COMPARISONS = frozenset({"=", "<", ">", "<=", ">="})
_OPERATORS = frozenset("+-*/")
# whose arguments are numbers
_NUMERIC = (_COMPARISONS | _OPERATORS | ASSIGNMENTS) - {"=", "assign"}
_CONNECTIVES = ("and", "or", "not", "imply", "exists", "forall")


def typed_items(parts: Iterable[Token | Group]) -> list[tuple[Token, tuple[Token, ...]]]:
    """Return the items of a typed list, which is well formed, each with its types (none if untyped)."""
    items: list[tuple[Token, tuple[Token, ...]]] = []
    waiting: list[Token] = []
    remaining = iter(parts)
    for part in remaining:
        token = part.first
        if token.text == "-":
            kind = next(remaining)
            types = (
                tuple(cast(Token, inner) for inner in kind.parts[1:])
                if isinstance(kind, Group)
                else (kind,)
            )
            items.extend((item, types) for item in waiting)
            waiting.clear()
        else:
            waiting.append(token)
    items.extend((item, ()) for item in waiting)
    return items


class TreeBuilder:
    """Turns lists into values; ``keywords`` are such at the head of a list."""

    def __init__(
        self, source: Source, vocabulary: Vocabulary, *, keywords: frozenset[str] = LOGIC
    ) -> None:
        self._source = source
        self._vocabulary = vocabulary
        self._keywords = keywords
        self._functions = frozenset({*vocabulary.functions, TOTAL_COST})
        self._calls = {name: one for name, one in vocabulary.predicates.items() if one.is_function}
        # a connective and how many lists: spares spelling it again
        self._accepted: set[tuple[str, int]] = set()

    def _check(self, fault: Fault | None, words: tuple[Token | Group, ...]) -> None:
        if fault is not None:
            raise self._source.error(words[min(fault.word, len(words) - 1)].first, fault.reason)

    def spelling(self) -> Spelling:
        """Return a spelling with nothing in it yet."""
        predicates = self._vocabulary.predicates
        return Spelling(
            self._source, keywords=self._keywords, functions=self._functions, predicates=predicates
        )

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

    def type_name(self, token: Token) -> str:
        """Return a type's name, which must be declared."""
        self._check(self._vocabulary.type_fault(token.text), (token,))
        return token.text

    def parameters(
        self, parts: Iterable[Token | Group], *, distinct: bool = True
    ) -> tuple[Parameter, ...]:
        """Return a list of typed variables, whose types are declared."""
        found: dict[int | str, Parameter] = {}
        for number, (token, types) in enumerate(typed_items(parts)):
            name = token.text
            if distinct and name in found:
                raise self._source.error(token, f"parameter '{name}' is declared twice")
            found[name if distinct else number] = Parameter(
                name, tuple(map(self.type_name, types)) or ("object",)
            )
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

    def formula(self, group: Group, scope: Scope) -> Formula:
        """Return the formula of a list."""
        head, parts = group.head, group.parts
        if head not in _CONNECTIVES and (lifted := self.lifted(group, scope)) is not None:
            value, call, rest = lifted
            scope = extended(scope, (value,))
            return Exists((value,), And((self.formula(call, scope), self.formula(rest, scope))))
        if head in _CONNECTIVES[:4]:
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
        if head in _CONNECTIVES:
            return self._quantified(group, scope)
        if head in _COMPARISONS:
            return self._comparison(group, scope)
        return self.atom(group, scope, rule=pddlParser.goalDesc)

    def lifted(self, group: Group, scope: Scope) -> tuple[Parameter, Group, Group] | None:
        """Return a variable, the atom that it is the value of a function of objects, and the list with it instead.

        The innermost function is lifted first, and none of which ``=`` or ``assign`` gives the
        value as a plain term.
        """
        if not self._calls:
            return None
        for position, part in enumerate(group.parts):
            if isinstance(part, Token):
                continue
            found = self.lifted(part, scope)
            is_side = group.head in ("=", "assign") and (
                position == 1 or isinstance(group.parts[1], Token)
            )
            if found is None and not is_side and group.head not in _NUMERIC and self._is_call(part):
                value = fresh(self._calls[part.head].parameters[-1].types, scope)
                token = part.first._replace(text=value.name)
                return value, with_value(part, token), _with(group, position, token)
            if found is not None:
                return *found[:2], _with(group, position, found[2])
        return None

    def _is_call(self, group: Group) -> bool:
        return group.head in self._calls and len(group.parts) == len(
            self._calls[group.head].parameters
        )

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
        return (
            Exists(parameters, formula) if group.head == "exists" else Forall(parameters, formula)
        )

    def _object_value(self, group: Group, scope: Scope) -> Formula | None:
        """Return the formula of ``(= (FUNCTION TERM...) TERM)`` where the value is an object, ``None`` for others."""
        predicates = self._vocabulary.predicates
        calls = [
            part
            for part in group.parts[1:]
            if isinstance(part, Group) and is_call(part, predicates)
        ]
        values = [part for part in group.parts[1:] if isinstance(part, Token)]
        if group.head != "=" or len(calls) != 1 or len(values) != 1 or len(group.parts) != 3:
            return None
        return self.atom(with_value(calls[0], values[0]), scope, rule=pddlParser.goalDesc)

    def _comparison(self, group: Group, scope: Scope) -> Formula:
        if (found := self._object_value(group, scope)) is not None:
            return found
        group = binary(group)
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
        words = tuple(
            [part.text for part in group.parts if isinstance(part, Token) and is_term(part.text)]
        )
        if (
            len(words) != len(group.parts)
            or not words
            or words[0][0] == "?"
            or words[0] in self._keywords
        ):
            self.require(whole or group, rule)
        atom = Atom(words[0], words[1:])
        if fault := self._vocabulary.atom_fault(atom.predicate, atom.terms, scope):
            self._check(fault, group.parts)
        return atom

    def _term(self, token: Token, scope: Scope) -> str:
        self._check(self._vocabulary.term_fault(token.text, scope), (token,))
        return token.text

    def expression(self, part: Token | Group, scope: Scope) -> Expression:
        """Return the numeric expression of a part of a well-formed list."""
        if isinstance(part, Token) and is_number(part.text):
            return Number(float(part.text))
        if isinstance(part, Group) and part.head in _OPERATORS:
            return Arithmetic(
                part.head, tuple(self.expression(inner, scope) for inner in part.parts[1:])
            )
        return self._function_term(part, scope)

    def _function_term(self, part: Token | Group, scope: Scope) -> FunctionTerm:
        words = part.parts if isinstance(part, Group) else (part,)
        name, *terms = (word.first.text for word in words)
        self._check(self._vocabulary.function_fault(name, tuple(terms), scope), words)
        return FunctionTerm(name, tuple(terms))


def binary(group: Group) -> Group:
    """Return a list in which sums and products have two terms, of which the first may be one again."""
    parts = [binary(part) if isinstance(part, Group) else part for part in group.parts]
    while group.head in ("+", "*") and len(parts) > 3:
        parts[1:3] = [group._replace(parts=tuple(parts[:3]))]
    return group._replace(parts=tuple(parts))


def _with(group: Group, position: int, part: Token | Group) -> Group:
    return group._replace(parts=(*group.parts[:position], part, *group.parts[position + 1 :]))


def extended(scope: Scope, parameters: tuple[Parameter, ...]) -> Scope:
    """Return a scope with parameters, which hide variables of the same name."""
    return {**scope, **{parameter.name: parameter.types for parameter in parameters}}


_PREFERENCE, _VIOLATED = "preference", "is-violated"


class PreferenceReader:
    """Reads preferences; goal, metric and domain are without them, or such that they can be forgone."""

    def __init__(
        self,
        source: Source,
        domain: Domain,
        builder: TreeBuilder,
        goal: Group,
        metric: Group | None,
    ) -> None:
        self._source, self._builder, self._prices = source, builder, dict[str, float]()
        self._forgone: dict[str, tuple[tuple[Parameter, ...], float]] = {}
        self.metric = metric
        if metric is not None and any(word.text == _VIOLATED for word in words_of(metric)):
            costs = (part for action in domain.actions for part in simple_effects(action.effect))
            has_costs = any(isinstance(part, IncreaseCost) for part in costs)
            self.metric = self._plain_metric(metric, dict.fromkeys(_names(goal)), has_costs)
        self.goal = self._plain_goal(goal, ())
        predicates = tuple(
            Predicate(f"forgone--{name}", given) for name, (given, _) in self._forgone.items()
        )
        actions = tuple(self._action(name, *forgone) for name, forgone in self._forgone.items())
        self.domain = domain
        if actions:
            predicates, actions = (*domain.predicates, *predicates), (*domain.actions, *actions)
            self.domain = replace(domain, predicates=predicates, actions=actions)

    def _action(self, name: str, parameters: tuple[Parameter, ...], price: float) -> Action:
        atom = Atom(f"forgone--{name}", tuple(parameter.name for parameter in parameters))
        return Action(
            f"forgo--{name}", parameters, effect=EffectAnd((Add(atom), IncreaseCost(Number(price))))
        )

    def _plain_metric(self, metric: Group, names: dict[str, None], has_costs: bool) -> Group:
        """Read the prices; return the metric of costs."""
        wanted, measure = metric.parts[1].first, metric.parts[-1]
        if len(metric.parts) != 3 or wanted.text != "minimize" or not isinstance(measure, Group):
            raise self._source.error(
                wanted, "a metric of preferences is (:metric minimize (+ TERM...))"
            )
        terms = measure.parts[1:] if measure.head == "+" else (measure,)
        costs = [
            term
            for term in terms
            if isinstance(term, Group) and [word.text for word in words_of(term)] == [TOTAL_COST]
        ]
        for term in terms:
            if term not in costs:
                self._price(term, names)
        if has_costs and len(costs) != 1:
            raise self._source.error(
                wanted, "the domain has costs, so the metric has to add (total-cost)"
            )
        return metric._replace(parts=(metric.parts[0], wanted, _list(measure, TOTAL_COST)))

    def _price(self, term: Token | Group, names: dict[str, None]) -> None:
        words = (
            [word for word in words_of(term) if word.text != "*"]
            if isinstance(term, Group)
            else [term]
        )
        numbers = [float(word.text) for word in words if is_number(word.text)]
        rest = [word for word in words if not is_number(word.text)]
        if len(rest) != 2 or rest[0].text != _VIOLATED or len(numbers) > 1:
            reason = (
                "expected (total-cost), (is-violated PREFERENCE) or (* NUMBER (is-violated"
                " PREFERENCE))"
            )
            raise self._source.error(term.first, reason)
        name = rest[1].text
        if name not in names:
            raise self._source.error(
                rest[1], f"unknown preference '{name}'{did_you_mean(name, names)}"
            )
        self._prices[name] = self._prices.get(name, 0.0) + sum(numbers or [1.0])
        if self._prices[name] < 0.0:
            raise self._source.error(term.first, f"the price of preference '{name}' is negative")

    def _plain_goal(self, group: Group, variables: tuple[Parameter, ...]) -> Group:
        if _is_preference(group):
            return self._plain_preference(group, variables)
        if not _has_preference(group):
            return group
        if group.head == "forall" and len(group.parts) == 3 and isinstance(group.parts[1], Group):
            variables = (*variables, *self._builder.action_parameters(group.first, group.parts[1]))
        elif group.head != "and":
            raise self._source.error(
                group.first, f"a preference inside '{group.head}' is not supported"
            )
        parts = (
            self._plain_goal(part, variables) if isinstance(part, Group) else part
            for part in group.parts
        )
        return group._replace(parts=tuple(parts))

    def _plain_preference(self, group: Group, variables: tuple[Parameter, ...]) -> Group:
        named, inner = group.parts[1:-1], group.parts[-1]
        if (
            len(named) > 1
            or not isinstance(inner, Group)
            or any(isinstance(part, Group) for part in named)
        ):
            raise self._source.error(group.first, "expected (preference NAME FORMULA)")
        if _is_preference(inner) or _has_preference(inner):
            raise self._source.error(
                group.first, "a preference inside a preference is not supported"
            )
        name = named[0].first.text if named else ""
        if not self._prices.get(name):
            return _list(group, "and")
        # preferences may share a name
        numbered = (f"{name}--{number}" for number in itertools.count(2))
        own = next(own for own in itertools.chain((name,), numbered) if own not in self._forgone)
        self._forgone[own] = variables, self._prices[name]
        forgone = _list(group, f"forgone--{own}", *(variable.name for variable in variables))
        return group._replace(parts=(group.first._replace(text="or"), inner, forgone))


def _list(group: Group, *words: str) -> Group:
    return group._replace(parts=tuple(group.first._replace(text=word) for word in words))


def _is_preference(group: Group) -> bool:
    """Whether a list is a preference, not an atom of a predicate of that name."""
    return group.head == _PREFERENCE and any(isinstance(part, Group) for part in group.parts)


def _has_preference(group: Group) -> bool:
    inner = (part for part in group.parts if isinstance(part, Group))
    return any(_is_preference(part) or _has_preference(part) for part in inner)


def _names(group: Group) -> Iterator[str]:
    """Yield the names of the preferences in a goal."""
    if _is_preference(group) and len(group.parts) == 3:
        yield group.parts[1].first.text
    for part in group.parts:
        if isinstance(part, Group):
            yield from _names(part)


def words_of(group: Group) -> Iterator[Token]:
    """Yield the words of a list and of those in it."""
    for part in group.parts:
        if isinstance(part, Group):
            yield from words_of(part)
        else:
            yield part
