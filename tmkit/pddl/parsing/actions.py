"""Parser of the ``:action`` and ``:durative-action`` sections of a PDDL file.

The parts of an action may have any order, and effects any nesting: ``when`` inside ``when``,
``forall`` inside ``when``, ``and`` inside ``and``. The grammar of pddlpy accepts one order and one
level. This module therefore splits the lists, and the grammar checks parameters, conditions and
single effects. An ``and`` directly inside another one is flattened; all other effects keep their
structure.

The outcomes of an effect with ``oneof`` or ``probabilistic`` become one action each, ``wash--1``,
``wash--2``.

A durative action is *compressed* into an action without concurrent ones (D. Long, M. Fox,
"Exploiting a graphplan framework in temporal planning", ICAPS 2003). Its condition is the
conjunction of all its conditions, without those that its own start achieves. Its effect is the
effect at the start, then the effect at the end. :mod:`tmkit.task_planning.schedule` schedules a
plan of such actions afterwards. The absence of such a plan proves nothing, because actions may have
to overlap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple, cast

from pddlpy.pddlParser import pddlParser  # type: ignore[import-untyped]  # has no stubs

from tmkit.pddl.formulas import (
    ALWAYS,
    NO_EFFECT,
    Action,
    Add,
    And,
    Atom,
    ChangeNumber,
    Delete,
    Effect,
    EffectAnd,
    ForEach,
    Formula,
    IncreaseCost,
    Not,
    Number,
    Parameter,
    Timing,
    When,
    simple_effects,
)
from tmkit.pddl.model import Domain
from tmkit.pddl.parsing.grammar import ASSIGNMENTS, EFFECTS, is_number
from tmkit.pddl.parsing.source import (
    UNDEFINED,
    Group,
    Source,
    Token,
    fresh_variable,
    is_call,
    make_value_atom,
    move_function_first,
)
from tmkit.pddl.parsing.trees import Scope, TreeBuilder, extend_scope, to_binary, words_of
from tmkit.pddl.substitution import conjuncts_of, subtrees
from tmkit.pddl.vocabulary import TOTAL_COST, Vocabulary, derived_predicate_fault
from tmkit.pddl.writer import is_writable

START = ("at", "start")
"""First words of a condition or effect at the start of a durative action."""

OVER_ALL = ("over", "all")
"""First words of a condition between start and end of a durative action."""

END = ("at", "end")
"""First words of a condition or effect at the end of a durative action."""


class TimedPart(NamedTuple):
    """Part of a condition or effect, and its time: ``START``, ``OVER_ALL`` or ``END``."""

    when: tuple[str, ...]
    group: Group


def split_by_time(source: Source, group: Group) -> Iterator[TimedPart]:
    """Yield the timed parts of a condition or effect.

    A ``forall`` is distributed over its parts. An increase of the cost is at the end.
    """
    words = tuple(part.text for part in group.parts[:2] if isinstance(part, Token))
    if group.head == "and":
        for part in group.parts[1:]:
            if not isinstance(part, Group):
                raise source.error(part, f"unexpected '{part.text}'; expected '(' or ')'")
            yield from split_by_time(source, part)
    elif group.head == "forall" and len(group.parts) == 3 and isinstance(group.parts[2], Group):
        for when, inner in split_by_time(source, group.parts[2]):
            yield TimedPart(when, group._replace(parts=(*group.parts[:2], inner)))
    elif (
        words in (START, OVER_ALL, END)
        and len(group.parts) == 3
        and isinstance(group.parts[2], Group)
    ):
        yield TimedPart(words, group.parts[2])
    elif group.head in ("increase", "decrease") and any(
        word.text == "#t" for word in words_of(group)
    ):
        raise source.error(group.first, "continuous effects (#t) are not supported")
    elif group.head == "increase":
        yield TimedPart(END, group)
    elif group.head == "when":
        raise source.error(
            group.first,
            "expected (at start (when ...)) or (at end (when ...)), of one time for both",
        )
    elif group.parts:
        raise source.error(group.first, "expected (at start ...), (over all ...) or (at end ...)")


def find_duration(source: Source, group: Group) -> Token | Group:
    """Return the expression in ``(= ?duration EXPRESSION)``, or the lower bound of a range."""
    if group.head == "and":
        bounds = [part for part in group.parts[1:] if isinstance(part, Group) and part.head == ">="]
        group = bounds[0] if len(bounds) == 1 else group
    if (
        group.head not in ("=", ">=")
        or len(group.parts) != 3
        or group.parts[1].first.text != "?duration"
    ):
        raise source.error(
            group.first,
            "expected (= ?duration EXPRESSION), or a range with (>= ?duration EXPRESSION)",
        )
    return group.parts[2]


def compress_timing(
    timing: Timing, derived: frozenset[str], fault: Callable[[str], Exception]
) -> tuple[Formula, Effect]:
    """Return the condition and the effect of a durative action without concurrent actions.

    Args:
        timing: conditions and effects of the action by time.
        derived: derived predicates of the domain.
        fault: function that makes an error from a reason.
    """
    start_effects = [*simple_effects(timing.start)]
    end_effects = [*simple_effects(timing.end)]
    added = {effect.atom for effect in start_effects if isinstance(effect, Add)}
    deleted = {effect.atom for effect in start_effects if isinstance(effect, Delete)}
    changed = {atom.predicate for atom in added | deleted}
    if changed:
        changed |= derived
    conditions: list[Formula] = [timing.at_start]
    for part in conjuncts_of([timing.over_all, timing.at_end]):
        if not _predicates(part) & changed:
            conditions.append(part)
        elif part not in added and not (isinstance(part, Not) and part.part in deleted):
            raise fault(
                f"the condition after the start, {part}, may depend on the effect at the start"
            )
    for tree in subtrees(timing.end):
        if isinstance(tree, When) and _predicates(tree.condition) & changed:
            raise fault(
                f"the condition of an effect, {tree.condition}, may depend on the effect at the"
                " start"
            )
    deleted_at_end = {effect.atom for effect in end_effects if isinstance(effect, Delete)}
    transient = added & deleted_at_end  # atoms that hold only during the action
    for atom in added - transient:
        if any(other.predicate == atom.predicate for other in deleted_at_end):
            raise fault(f"the start adds {atom}, which the end may delete")
    parts = timing.start.parts if isinstance(timing.start, EffectAnd) else (timing.start,)
    start = tuple(part for part in parts if not (isinstance(part, Add) and part.atom in transient))
    return And(tuple(conditions)), EffectAnd((*start, timing.end))


def use_durations_as_costs(domain: Domain) -> Domain:
    """Return a domain whose durative actions also cost their durations.

    The total cost is then the total time of the actions in sequence.
    """
    actions = []
    for action in domain.actions:
        if action.timing is not None:
            cost = IncreaseCost(action.timing.duration)
            action = replace(action, effect=EffectAnd((action.effect, cost)))
        actions.append(action)
    return replace(domain, actions=tuple(actions))


def _predicates(formula: Formula) -> set[str]:
    return {part.predicate for part in subtrees(formula) if isinstance(part, Atom)}


_ACTION_KEYS = (":parameters", ":precondition", ":effect")
_DURATIVE_ACTION = ":durative-action"
_DURATIVE_ACTION_KEYS = (":parameters", ":duration", ":condition", ":effect")
_ONEOF_KEYWORD = "oneof"

_MAX_OUTCOMES = 64
"""Largest number of outcomes of an action."""

_CHANCE_TOLERANCE = 1e-9
"""Rounding error of a sum of chances that is 1."""


class ActionReader(TreeBuilder):
    """Reader of the actions of one domain.

    Args:
        source: PDDL text.
        words: symbol table of the domain.
        derived: derived predicates, which no action may change.
    """

    def __init__(self, source: Source, words: Vocabulary, *, derived: frozenset[str]) -> None:
        super().__init__(source, words, keywords=EFFECTS)
        self._derived = derived

    def actions(self, groups: Iterable[Group]) -> tuple[Action, ...]:
        """Return the actions of all ``(:action ...)`` and ``(:durative-action ...)`` sections."""
        actions: dict[str, Action] = {}
        for group in groups:
            token, outcomes = self._action(group)
            for action in outcomes:
                if action.name in actions:
                    raise self._source.error(token, f"action '{action.name}' is declared twice")
                actions[action.name] = action
        return tuple(actions.values())

    def _action(self, group: Group) -> tuple[Token, tuple[Action, ...]]:
        """Return the name and the action of a section, or one action for each of its outcomes."""
        name = group.parts[1] if len(group.parts) > 1 else group.closing
        if not isinstance(name, Token) or not is_writable(name.text):
            raise self._source.error(name.first, "expected the name of an action")
        is_durative = group.head == _DURATIVE_ACTION
        parts = self._parts(group, _DURATIVE_ACTION_KEYS if is_durative else _ACTION_KEYS)
        parameters: tuple[Parameter, ...] = ()
        if ":parameters" in parts:
            parameters = self.action_parameters(*parts[":parameters"])
        scope = {parameter.name: parameter.types for parameter in parameters}
        precondition: Formula = ALWAYS
        if ":precondition" in parts:
            precondition = self._condition(parts[":precondition"][1], scope)
        line = self._source.line_of(group.first)
        action = Action(name.text, parameters, precondition, NO_EFFECT, line=line)
        if is_durative:
            return name, (self._durative_action(action, name, parts, scope),)
        if ":effect" not in parts or not parts[":effect"][1].parts:
            return name, (action,)
        outcomes = self._outcomes(parts[":effect"][1])
        if len(outcomes) == 1:
            return name, (replace(action, effect=self._effect(outcomes[0], scope)),)
        action = replace(action, outcome_of=name.text)
        return name, tuple(
            replace(action, name=f"{name.text}--{number}", effect=self._effect(outcome, scope))
            for number, outcome in enumerate(outcomes, start=1)
        )

    def _durative_action(
        self, action: Action, name: Token, parts: dict[str, tuple[Token, Group]], scope: Scope
    ) -> Action:
        """Return a durative action with the condition and effect of its compression."""
        if ":duration" not in parts:
            raise self._source.error(name, f"action '{name.text}' has no duration")
        section = parts[":duration"][1]
        length = find_duration(self._source, section)
        sign = section.first._replace(text=">=")
        zero = section.first._replace(text="0")
        self.require(section._replace(parts=(sign, length, zero)), pddlParser.goalDesc)
        duration = self.expression(length, scope)
        if isinstance(duration, Number) and duration.value < 0.0:
            raise self._source.error(
                length.first, f"the duration of '{name.text}' is below zero: {duration}"
            )
        conditions: dict[tuple[str, ...], list[Formula]] = {START: [], OVER_ALL: [], END: []}
        effects: dict[tuple[str, ...], list[Effect]] = {START: [], END: []}
        if ":condition" in parts:
            for when, part in split_by_time(self._source, parts[":condition"][1]):
                conditions[when].append(self._condition(part, scope))
        if ":effect" in parts:
            for when, part in split_by_time(self._source, parts[":effect"][1]):
                if when not in effects:
                    raise self._source.error(
                        part.first, "an effect is (at start ...) or (at end ...)"
                    )
                effects[when].append(self._effect(part, scope))
        timing = Timing(
            duration,
            at_start=And(tuple(conditions[START])),
            over_all=And(tuple(conditions[OVER_ALL])),
            at_end=And(tuple(conditions[END])),
            start=EffectAnd(tuple(effects[START])),
            end=EffectAnd(tuple(effects[END])),
        )

        def fault(reason: str) -> Exception:
            return self._source.error(
                name, f"action '{name.text}': {reason}, which is not supported"
            )

        precondition, effect = compress_timing(timing, self._derived, fault)
        return replace(action, precondition=precondition, effect=effect, timing=timing)

    def _outcomes(self, group: Group) -> list[Group]:
        """Return the deterministic effects of a list, one for each combination of outcomes."""
        if group.head == "probabilistic":
            group = self._convert_probabilistic(group)
        inner: list[list[Token | Group]] = [
            [*self._outcomes(part)] if isinstance(part, Group) else [part] for part in group.parts
        ]
        if group.head == _ONEOF_KEYWORD:
            for part in group.parts[1:]:
                if not isinstance(part, Group):
                    raise self._source.error(
                        part, f"unexpected '{part.text}'; expected the effect of an outcome"
                    )
            if len(inner) < 2:
                raise self._source.error(group.closing, "expected the outcomes of 'oneof'")
            outcomes = cast(list[Group], [outcome for choices in inner[1:] for outcome in choices])
        else:
            count = math.prod(map(len, inner))
            if count > 1 and group.head == "forall":
                raise self._source.error(group.first, "outcomes inside 'forall' are not supported")
            outcomes = []
            if count <= _MAX_OUTCOMES:
                outcomes = [group._replace(parts=parts) for parts in product(*inner)]
        if not 0 < len(outcomes) <= _MAX_OUTCOMES:
            raise self._source.error(group.first, f"an action has at most {_MAX_OUTCOMES} outcomes")
        return outcomes

    def _convert_probabilistic(self, group: Group) -> Group:
        """Return ``(probabilistic CHANCE EFFECT...)`` as ``oneof``.

        If the chances add up to less than 1, an outcome without effects is added.
        """
        effects = group.parts[2::2]
        chances = [
            float(part.first.text) for part in group.parts[1::2] if is_number(part.first.text)
        ]
        if (
            not len(chances) == len(effects) == (len(group.parts) - 1) / 2
            or min(chances, default=-1.0) < 0.0
        ):
            raise self._source.error(group.first, "expected (probabilistic CHANCE EFFECT...)")
        if sum(chances) > 1.0 + _CHANCE_TOLERANCE:
            raise self._source.error(
                group.first, f"chances add up to {sum(chances):g}; expected at most 1"
            )
        possible = [effect for chance, effect in zip(chances, effects, strict=True) if chance > 0.0]
        if sum(chances) < 1.0 - _CHANCE_TOLERANCE:
            possible.append(group._replace(parts=(group.first._replace(text="and"),)))
        return group._replace(parts=(group.first._replace(text=_ONEOF_KEYWORD), *possible))

    def _parts(self, group: Group, keys: tuple[str, ...]) -> dict[str, tuple[Token, Group]]:
        parts: dict[str, tuple[Token, Group]] = {}
        remaining = iter(group.parts[2:])
        for key in remaining:
            if not isinstance(key, Token) or key.text not in keys:
                token = key.first if isinstance(key, Group) else key
                if token.text == ":observe":
                    raise self._source.error(token, "sensing actions (:observe) are not supported")
                raise self._source.error(
                    token, f"unexpected '{token.text}'; expected {', '.join(keys)} or ')'"
                )
            if key.text in parts:
                raise self._source.error(key, f"'{key.text}' is given twice")
            value = next(remaining, group.closing)
            if not isinstance(value, Group):
                raise self._source.error(value, f"expected '(' after '{key.text}'")
            parts[key.text] = (key, value)
        return parts

    def _condition(self, group: Group, scope: Scope) -> Formula:
        return self.formula(group, scope) if group.parts else ALWAYS

    def _effect(self, group: Group, scope: Scope) -> Effect:
        match group.head:
            case "and":
                return EffectAnd(
                    tuple(self._effect(part, scope) for part in self._iterate_conjuncts(group))
                )
            case "when":
                condition, inner = self._two_lists(group)
                return When(self._condition(condition, scope), self._effect(inner, scope))
            case "forall":
                variables, inner = self._two_lists(group)
                parameters = self.action_parameters(group.first, variables)
                return ForEach(parameters, self._effect(inner, extend_scope(scope, parameters)))
        return self._primitive_effect(group, scope)

    def _iterate_conjuncts(self, conjunction: Group) -> Iterator[Group]:
        for part in conjunction.parts[1:]:
            if not isinstance(part, Group):
                raise self._source.error(part, f"unexpected '{part.text}'; expected '(' or ')'")
            if part.head == "and":
                yield from self._iterate_conjuncts(part)
            else:
                yield part

    def _primitive_effect(self, group: Group, scope: Scope) -> Effect:
        """Return the effect of a list: an added or deleted atom, a number or a cost."""
        if (lift_call := self.lift_call(group, scope)) is not None:
            value, call, remaining = lift_call
            scope = extend_scope(scope, (value,))
            return ForEach(
                (value,), When(self.formula(call, scope), self._primitive_effect(remaining, scope))
            )
        predicates = self._vocabulary.predicates
        group = to_binary(move_function_first(group, predicates))
        if (
            group.head in ("assign", "=")
            and len(group.parts) == 3
            and is_call(group.parts[1], predicates)
        ):
            return self._object_effect(group, scope)
        if group.head in ASSIGNMENTS:
            self.require(group, pddlParser.pEffect)
            return self._cost_effect(group, scope)
        is_deleted = group.head == "not"
        inner = group.parts[-1] if is_deleted and len(group.parts) == 2 else group
        if not isinstance(inner, Group) or inner.head == "not":
            self.require(group, pddlParser.pEffect)
        inner = cast(Group, inner)
        atom = self.atom(inner, scope, rule=pddlParser.pEffect, whole=group)
        self._check(derived_predicate_fault(atom.predicate, self._derived), inner.parts)
        return Delete(atom) if is_deleted else Add(atom)

    def _object_effect(self, group: Group, scope: Scope) -> Effect:
        """Return the effect of ``(assign (FUNCTION TERM...) TERM)`` with an object as the value.

        It deletes all other values of the function.
        """
        call, value = cast(Group, group.parts[1]), group.parts[2]
        other = fresh_variable(self._vocabulary.predicates[call.head].parameters[-1].types, scope)
        token, inner = group.first._replace(text=other.name), extend_scope(scope, (other,))
        delete_others = Delete(
            self.atom(make_value_atom(call, token), inner, rule=pddlParser.pEffect)
        )
        if not isinstance(value, Token):
            raise self._source.error(value.opening, "expected an object or a variable as the value")
        if value.text == UNDEFINED:
            return ForEach((other,), delete_others)
        add = Add(self.atom(make_value_atom(call, value), scope, rule=pddlParser.pEffect))
        return EffectAnd((ForEach((other,), delete_others), add))

    def _cost_effect(self, group: Group, scope: Scope) -> Effect:
        function = self._function_term(group.parts[1], scope)
        amount = self.expression(group.parts[2], scope)
        if function.name != TOTAL_COST:
            return ChangeNumber(group.head, function, amount)
        if group.head != "increase":
            raise self._source.error(group.first, "(total-cost) may only be increased")
        return IncreaseCost(amount)

    def _two_lists(self, group: Group) -> tuple[Group, Group]:
        """Return the two lists after the first word of a list."""
        parts = group.parts[1:]
        for part in (*parts[:2], *[group.closing][len(parts) // 2 :]):
            if not isinstance(part, Group):
                raise self._source.error(part, f"unexpected '{part.text}'; expected '('")
        for part in parts[2:]:
            token = part.opening if isinstance(part, Group) else part
            raise self._source.error(token, f"unexpected '{token.text}'; expected ')'")
        first, second = (part for part in parts if isinstance(part, Group))
        return first, second
