"""Conversion of nested lists to formulas, and compilation of preferences.

The grammar checks the syntax of each list (:mod:`tmkit.pddl.parsing.grammar`), except for an atom
of plain terms, which has no syntax to check. The list is then converted to a tree of
:mod:`tmkit.pddl.formulas` of the same structure. Each name is checked when it is read, because only
its token has a position in the file.

Preferences are parts of a goal that may be violated at a price (E. Keyder, H. Geffner, "Soft goals
can be compiled away", JAIR 2009). ``(preference P F)`` in a goal becomes ``(or F (forgone--P))``.
The domain gets an action ``forgo--P`` that adds ``(forgone--P)`` at the price of ``(is-violated
P)`` in the metric. A cheapest plan violates exactly those preferences that cost more to satisfy. A
preference that is not in the metric has no price, and is dropped. In ``forall``, the preference of
each object is violated separately.
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
    MAX_RUN,
    Rule,
    Spelling,
    is_number,
    is_term,
)
from tmkit.pddl.parsing.source import Group, Source, Token, fresh_variable, is_call, make_value_atom
from tmkit.pddl.vocabulary import TOTAL_COST, Fault, Predicate, Types, Vocabulary

Scope = Mapping[str, Types]

_COMPARISONS = frozenset({"=", "<", ">", "<=", ">="})
_OPERATORS = frozenset("+-*/")
_NUMERIC = (_COMPARISONS | _OPERATORS | ASSIGNMENTS) - {"=", "assign"}
"""First words of lists whose arguments are numbers."""

_CONNECTIVES = ("and", "or", "not", "imply", "exists", "forall")


def read_typed_items(parts: Iterable[Token | Group]) -> list[tuple[Token, tuple[Token, ...]]]:
    """Return the items of a well-formed typed list, each with its types (none if untyped)."""
    items: list[tuple[Token, tuple[Token, ...]]] = []
    untyped: list[Token] = []
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
            items.extend((item, types) for item in untyped)
            untyped.clear()
        else:
            untyped.append(token)
    items.extend((item, ()) for item in untyped)
    return items


class TreeBuilder:
    """Converter of lists to formulas and expressions.

    Args:
        source: PDDL text.
        vocabulary: declared names.
        keywords: reserved words at the head of a list.
    """

    def __init__(
        self, source: Source, vocabulary: Vocabulary, *, keywords: frozenset[str] = LOGIC
    ) -> None:
        self._source = source
        self._vocabulary = vocabulary
        self._keywords = keywords
        self._functions = frozenset({*vocabulary.functions, TOTAL_COST})
        self._object_functions = {
            name: predicate
            for name, predicate in vocabulary.predicates.items()
            if predicate.is_function
        }
        # accepted shapes: a connective and its number of lists
        self._accepted: set[tuple[str, int]] = set()

    def _check(self, fault: Fault | None, words: tuple[Token | Group, ...]) -> None:
        if fault is not None:
            raise self._source.error(words[min(fault.word, len(words) - 1)].first, fault.reason)

    def spelling(self) -> Spelling:
        """Return an empty spelling."""
        predicates = self._vocabulary.predicates
        return Spelling(
            self._source, keywords=self._keywords, functions=self._functions, predicates=predicates
        )

    def require(self, group: Group, rule: Rule) -> None:
        """Check that a list matches a rule of the grammar."""
        spelling = self.spelling()
        spelling.group(group)
        spelling.require(rule)

    def _require_connective(self, group: Group) -> None:
        """Check the syntax of a list with a connective, without that of its nested lists."""
        lists = sum([isinstance(part, Group) for part in group.parts])
        shape = (group.head, min(lists, MAX_RUN))
        if shape not in self._accepted or lists + 1 < len(group.parts):
            spelling = self.spelling()
            spelling.add_outline(group)
            spelling.require(pddlParser.goalDesc)
            self._accepted.add(shape)

    def type_name(self, token: Token) -> str:
        """Return the name of a type.

        Raises:
            TaskError: if the type is not declared.
        """
        self._check(self._vocabulary.type_fault(token.text), (token,))
        return token.text

    def parameters(
        self, parts: Iterable[Token | Group], *, distinct: bool = True
    ) -> tuple[Parameter, ...]:
        """Return the parameters of a typed list.

        Args:
            parts: parts of the list.
            distinct: whether a repeated name is an error.

        Raises:
            TaskError: if a type is not declared, or a name is repeated.
        """
        parameters: dict[int | str, Parameter] = {}
        for number, (token, types) in enumerate(read_typed_items(parts)):
            name = token.text
            if distinct and name in parameters:
                raise self._source.error(token, f"parameter '{name}' is declared twice")
            type_names = tuple(map(self.type_name, types)) or ("object",)
            parameters[name if distinct else number] = Parameter(name, type_names)
        return tuple(parameters.values())

    def action_parameters(self, key: Token, variables: Group) -> tuple[Parameter, ...]:
        """Return the parameters of a list after a keyword, with the syntax of an action's."""
        spelling = self.spelling()
        for word in ("(", ":action", "name", ":parameters"):
            spelling.add_verbatim(word, key)
        spelling.add_verbatim("(", variables.opening)
        spelling.add_typed_list(variables.parts)
        for word in (")", ")"):
            spelling.add_verbatim(word, variables.closing)
        spelling.require(pddlParser.actionDef)
        return self.parameters(variables.parts)

    def formula(self, group: Group, scope: Scope) -> Formula:
        """Return the formula of a list."""
        head, parts = group.head, group.parts
        if head not in _CONNECTIVES and (lift_call := self.lift_call(group, scope)) is not None:
            value, call, remaining = lift_call
            scope = extend_scope(scope, (value,))
            return Exists(
                (value,), And((self.formula(call, scope), self.formula(remaining, scope)))
            )
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
            return self._read_quantifier(group, scope)
        if head in _COMPARISONS:
            return self._comparison(group, scope)
        return self.atom(group, scope, rule=pddlParser.goalDesc)

    def lift_call(self, group: Group, scope: Scope) -> tuple[Parameter, Group, Group] | None:
        """Replace the first call of an object function in a list by a new variable.

        The innermost call is replaced first. A call whose value ``=`` or ``assign`` gives as a
        plain term is not replaced.

        Returns:
            The variable, the atom of the function with the variable as its value, and the list with
            the variable in place of the call. ``None`` if the list has no such call.
        """
        if not self._object_functions:
            return None
        for position, part in enumerate(group.parts):
            if isinstance(part, Token):
                continue
            result = self.lift_call(part, scope)
            if result is not None:
                value, atom, inner = result
                return value, atom, _replace_part(group, position, inner)
            is_side = group.head in ("=", "assign") and (
                position == 1 or isinstance(group.parts[1], Token)
            )
            if not is_side and group.head not in _NUMERIC and self._is_call(part):
                types = self._object_functions[part.head].parameters[-1].types
                value = fresh_variable(types, scope)
                token = part.first._replace(text=value.name)
                return value, make_value_atom(part, token), _replace_part(group, position, token)
        return None

    def _is_call(self, group: Group) -> bool:
        function = self._object_functions.get(group.head)
        return function is not None and len(group.parts) == len(function.parameters)

    def _read_quantifier(self, group: Group, scope: Scope) -> Formula:
        spelling = self.spelling()
        spelling.add_verbatim("(", group.opening)
        spelling.add_verbatim(group.head, group.first)
        remaining = group.parts[1:]
        if remaining and isinstance(remaining[0], Group):
            spelling.add_verbatim("(", remaining[0].opening)
            spelling.add_typed_list(remaining[0].parts)
            spelling.add_verbatim(")", remaining[0].closing)
            remaining = remaining[1:]
        spelling.add_outline_parts(remaining)
        spelling.add_verbatim(")", group.closing)
        spelling.require(pddlParser.goalDesc)
        variables, body = cast(tuple[Group, Group], group.parts[1:])
        parameters = self.parameters(variables.parts)
        formula = self.formula(body, extend_scope(scope, parameters))
        return (
            Exists(parameters, formula) if group.head == "exists" else Forall(parameters, formula)
        )

    def _object_value(self, group: Group, scope: Scope) -> Formula | None:
        """Return the formula of ``(= (FUNCTION TERM...) TERM)`` of an object function, if it is."""
        predicates = self._vocabulary.predicates
        calls = [
            part
            for part in group.parts[1:]
            if isinstance(part, Group) and is_call(part, predicates)
        ]
        values = [part for part in group.parts[1:] if isinstance(part, Token)]
        if group.head != "=" or len(calls) != 1 or len(values) != 1 or len(group.parts) != 3:
            return None
        return self.atom(make_value_atom(calls[0], values[0]), scope, rule=pddlParser.goalDesc)

    def _comparison(self, group: Group, scope: Scope) -> Formula:
        if (result := self._object_value(group, scope)) is not None:
            return result
        group = to_binary(group)
        self.require(group, pddlParser.goalDesc)
        _, left, right = group.parts
        numeric = self.spelling().calculates(group)
        if group.head == "=" and not any(
            isinstance(part, Group) or (numeric and is_number(part.text)) for part in (left, right)
        ):
            return Equals(self._term(left.first, scope), self._term(right.first, scope))
        return Comparison(group.head, self.expression(left, scope), self.expression(right, scope))

    def atom(self, group: Group, scope: Scope, *, rule: Rule, whole: Group | None = None) -> Atom:
        """Return the atom of a list.

        Args:
            group: list of the atom.
            scope: types of the variables.
            rule: grammar rule for an atom that is more than plain terms.
            whole: list for the grammar rule. Defaults to ``group``.
        """
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


def to_binary(group: Group) -> Group:
    """Return a list whose sums and products have two terms each, nested on the left."""
    parts = [to_binary(part) if isinstance(part, Group) else part for part in group.parts]
    while group.head in ("+", "*") and len(parts) > 3:
        parts[1:3] = [group._replace(parts=tuple(parts[:3]))]
    return group._replace(parts=tuple(parts))


def _replace_part(group: Group, position: int, part: Token | Group) -> Group:
    return group._replace(parts=(*group.parts[:position], part, *group.parts[position + 1 :]))


def extend_scope(scope: Scope, parameters: tuple[Parameter, ...]) -> Scope:
    """Return a scope with more parameters, which hide variables of the same name."""
    return {**scope, **{parameter.name: parameter.types for parameter in parameters}}


_PREFERENCE_KEYWORD = "preference"
_VIOLATION_KEYWORD = "is-violated"


class PreferenceReader:
    """Compiler of the preferences of a problem.

    Args:
        source: PDDL text.
        domain: domain of the problem.
        builder: converter with the names of the problem.
        goal: goal with preferences.
        metric: section of the metric, if any.

    Attributes:
        goal: goal without preferences.
        metric: metric without preferences, ``None`` without a metric.
        domain: domain with an action that violates each preference.
    """

    def __init__(
        self,
        source: Source,
        domain: Domain,
        builder: TreeBuilder,
        goal: Group,
        metric: Group | None,
    ) -> None:
        self._source = source
        self._builder = builder
        self._prices: dict[str, float] = {}
        self._violable: dict[str, tuple[tuple[Parameter, ...], float]] = {}
        self.metric = metric
        if metric is not None and any(word.text == _VIOLATION_KEYWORD for word in words_of(metric)):
            costs = (part for action in domain.actions for part in simple_effects(action.effect))
            has_costs = any(isinstance(part, IncreaseCost) for part in costs)
            self.metric = self._plain_metric(metric, dict.fromkeys(_names(goal)), has_costs)
        self.goal = self._plain_goal(goal, ())
        self.domain = domain
        if self._violable:
            predicates, actions = list(domain.predicates), list(domain.actions)
            for name, (parameters, price) in self._violable.items():
                predicates.append(Predicate(f"forgone--{name}", parameters))
                actions.append(self._violation_action(name, parameters, price))
            self.domain = replace(domain, predicates=tuple(predicates), actions=tuple(actions))

    def _violation_action(
        self, name: str, parameters: tuple[Parameter, ...], price: float
    ) -> Action:
        atom = Atom(f"forgone--{name}", tuple(parameter.name for parameter in parameters))
        return Action(
            f"forgo--{name}", parameters, effect=EffectAnd((Add(atom), IncreaseCost(Number(price))))
        )

    def _plain_metric(self, metric: Group, names: dict[str, None], has_costs: bool) -> Group:
        """Read the prices, and return the metric of the total cost alone."""
        objective, total = metric.parts[1].first, metric.parts[-1]
        if len(metric.parts) != 3 or objective.text != "minimize" or not isinstance(total, Group):
            raise self._source.error(
                objective, "a metric of preferences is (:metric minimize (+ TERM...))"
            )
        terms = total.parts[1:] if total.head == "+" else (total,)
        costs = [
            term
            for term in terms
            if isinstance(term, Group) and [word.text for word in words_of(term)] == [TOTAL_COST]
        ]
        for term in terms:
            if term not in costs:
                self._read_price(term, names)
        if has_costs and len(costs) != 1:
            raise self._source.error(
                objective, "the domain has costs, so the metric has to add (total-cost)"
            )
        return metric._replace(parts=(metric.parts[0], objective, _make_list(total, TOTAL_COST)))

    def _read_price(self, term: Token | Group, names: dict[str, None]) -> None:
        words = list(words_of(term)) if isinstance(term, Group) else [term]
        words = [word for word in words if word.text != "*"]
        numbers = [float(word.text) for word in words if is_number(word.text)]
        names_in_term = [word for word in words if not is_number(word.text)]
        keyword = names_in_term[0].text if names_in_term else ""
        if len(names_in_term) != 2 or keyword != _VIOLATION_KEYWORD or len(numbers) > 1:
            reason = (
                "expected (total-cost), (is-violated PREFERENCE) or (* NUMBER (is-violated"
                " PREFERENCE))"
            )
            raise self._source.error(term.first, reason)
        name = names_in_term[1].text
        if name not in names:
            raise self._source.error(
                names_in_term[1], f"unknown preference '{name}'{did_you_mean(name, names)}"
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
        names, inner = group.parts[1:-1], group.parts[-1]
        if (
            len(names) > 1
            or not isinstance(inner, Group)
            or any(isinstance(part, Group) for part in names)
        ):
            raise self._source.error(group.first, "expected (preference NAME FORMULA)")
        if _is_preference(inner) or _has_preference(inner):
            raise self._source.error(
                group.first, "a preference inside a preference is not supported"
            )
        name = names[0].first.text if names else ""
        if not self._prices.get(name):
            return _make_list(group, "and")
        # preferences may share a name
        alternatives = (f"{name}--{number}" for number in itertools.count(2))
        candidates = itertools.chain((name,), alternatives)
        unique_name = next(candidate for candidate in candidates if candidate not in self._violable)
        self._violable[unique_name] = variables, self._prices[name]
        violation = _make_list(
            group, f"forgone--{unique_name}", *(variable.name for variable in variables)
        )
        return group._replace(parts=(group.first._replace(text="or"), inner, violation))


def _make_list(group: Group, *words: str) -> Group:
    return group._replace(parts=tuple(group.first._replace(text=word) for word in words))


def _is_preference(group: Group) -> bool:
    """Return whether a list is a preference, and not an atom of a predicate of that name."""
    return group.head == _PREFERENCE_KEYWORD and any(
        isinstance(part, Group) for part in group.parts
    )


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
    """Yield the words of a list and of all nested lists."""
    for part in group.parts:
        if isinstance(part, Group):
            yield from words_of(part)
        else:
            yield part
