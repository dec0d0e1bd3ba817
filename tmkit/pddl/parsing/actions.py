"""Declarations of an ``:action`` section of a PDDL file.

The idea: the parts of an action may stand in any order, and effects may be nested at will: ``when``
inside ``when``, ``forall`` inside ``when``, ``and`` inside ``and``. The grammar of pddlpy accepts
one order and one level. So the lists are parsed here, and the grammar parses the rest: parameters,
conditions and single effects. An ``and`` directly inside another one is dissolved; otherwise an
effect keeps the shape that it was written in.

An effect that is ``oneof`` several, or ``probabilistic``, makes an action of each: ``wash--1``,
``wash--2``.

Durative actions, read as actions that are done one after the other.

The idea: an action is *compressed* (D. Long, M. Fox, "Exploiting a graphplan framework in temporal
planning", ICAPS 2003). Its condition is all that it ever needs, but what its own start brings
about; its effect is that of the start, then that of the end. A plan of such actions is laid out in
time afterwards (:mod:`tmkit.task_planning.schedule`). That there is none proves nothing: actions
may have to overlap.
"""

from __future__ import annotations

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
    fresh,
    function_first,
    is_call,
    with_value,
)
from tmkit.pddl.parsing.trees import Scope, TreeBuilder, binary, extended, words_of
from tmkit.pddl.substitution import conjuncts_of, subtrees
from tmkit.pddl.vocabulary import TOTAL_COST, Vocabulary, derived_fault
from tmkit.pddl.writer import is_writable

START, THROUGHOUT, END = ("at", "start"), ("over", "all"), ("at", "end")


class Timed(NamedTuple):
    """A part of a condition or effect, and when it holds or happens."""

    when: tuple[str, ...]
    group: Group


def timed_parts(source: Source, group: Group) -> Iterator[Timed]:
    """Yield the parts of a condition or effect, a ``forall`` of each; a change of the cost is at the end."""
    words = tuple(part.text for part in group.parts[:2] if isinstance(part, Token))
    if group.head == "and":
        for part in group.parts[1:]:
            if not isinstance(part, Group):
                raise source.error(part, f"unexpected '{part.text}'; expected '(' or ')'")
            yield from timed_parts(source, part)
    elif group.head == "forall" and len(group.parts) == 3 and isinstance(group.parts[2], Group):
        for when, inner in timed_parts(source, group.parts[2]):
            yield Timed(when, group._replace(parts=(*group.parts[:2], inner)))
    elif (
        words in (START, THROUGHOUT, END)
        and len(group.parts) == 3
        and isinstance(group.parts[2], Group)
    ):
        yield Timed(words, group.parts[2])
    elif group.head in ("increase", "decrease") and any(
        word.text == "#t" for word in words_of(group)
    ):
        raise source.error(group.first, "continuous effects (#t) are not supported")
    elif group.head == "increase":
        yield Timed(END, group)
    elif group.head == "when":
        raise source.error(
            group.first,
            "expected (at start (when ...)) or (at end (when ...)), of one time for both",
        )
    elif group.parts:
        raise source.error(group.first, "expected (at start ...), (over all ...) or (at end ...)")


def duration_of(source: Source, group: Group) -> Token | Group:
    """Return the expression in ``(= ?duration EXPRESSION)``, or the least of a range."""
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


def compressed(
    timing: Timing, derived: frozenset[str], fault: Callable[[str], Exception]
) -> tuple[Formula, Effect]:
    """Return condition and effect of an action done while no other is; ``fault`` makes an error of a reason."""
    begun, ended = [*simple_effects(timing.start)], [*simple_effects(timing.end)]
    added, deleted = ({e.atom for e in begun if isinstance(e, kind)} for kind in (Add, Delete))
    changed = {atom.predicate for atom in added | deleted}
    if changed:
        changed |= derived
    kept: list[Formula] = [timing.at_start]
    for part in conjuncts_of([timing.over_all, timing.at_end]):
        if not _predicates(part) & changed:
            kept.append(part)
        elif part not in added and not (isinstance(part, Not) and part.part in deleted):
            raise fault(
                f"what is needed after the start, {part}, may depend on the effect at the start"
            )
    for tree in subtrees(timing.end):
        if isinstance(tree, When) and _predicates(tree.condition) & changed:
            raise fault(
                f"the condition of an effect, {tree.condition}, may depend on the effect at the"
                " start"
            )
    removed = {effect.atom for effect in ended if isinstance(effect, Delete)}
    passing = added & removed  # holds only while the action lasts
    for atom in added - passing:
        if any(other.predicate == atom.predicate for other in removed):
            raise fault(f"the start adds {atom}, which the end may delete")
    parts = timing.start.parts if isinstance(timing.start, EffectAnd) else (timing.start,)
    start = tuple(part for part in parts if not (isinstance(part, Add) and part.atom in passing))
    return And(tuple(kept)), EffectAnd((*start, timing.end))


def with_durations_as_costs(domain: Domain) -> Domain:
    """Return a domain in which an action costs its duration: the time of all, one after the other."""
    actions = tuple(
        (
            replace(action, effect=EffectAnd((action.effect, IncreaseCost(action.timing.duration))))
            if action.timing is not None
            else action
        )
        for action in domain.actions
    )
    return replace(domain, actions=actions)


def _predicates(formula: Formula) -> set[str]:
    return {part.predicate for part in subtrees(formula) if isinstance(part, Atom)}


_KEYS = (":parameters", ":precondition", ":effect")
_DURATIVE, _DURATIVE_KEYS = (
    ":durative-action",
    (":parameters", ":duration", ":condition", ":effect"),
)
_ONE_OF = "oneof"
_MOST_OUTCOMES = 64
_CHANCE_ROUNDING = 1e-9  # of chances that add up to one


class ActionReader(TreeBuilder):
    """Reads the actions of one domain, which must not change ``derived`` predicates."""

    def __init__(self, source: Source, words: Vocabulary, *, derived: frozenset[str]) -> None:
        super().__init__(source, words, keywords=EFFECTS)
        self._derived = derived

    def actions(self, groups: Iterable[Group]) -> tuple[Action, ...]:
        """Return the actions of all ``(:action ...)`` sections."""
        found: dict[str, Action] = {}
        for group in groups:
            token, outcomes = self._action(group)
            for action in outcomes:
                if action.name in found:
                    raise self._source.error(token, f"action '{action.name}' is declared twice")
                found[action.name] = action
        return tuple(found.values())

    def _action(self, group: Group) -> tuple[Token, tuple[Action, ...]]:
        """Return an action, or one for each of its outcomes."""
        name = group.parts[1] if len(group.parts) > 1 else group.closing
        if not isinstance(name, Token) or not is_writable(name.text):
            raise self._source.error(
                name.first if isinstance(name, Group) else name, "expected the name of an action"
            )
        given = self._parts(group, _DURATIVE_KEYS if group.head == _DURATIVE else _KEYS)
        parameters: tuple[Parameter, ...] = ()
        if ":parameters" in given:
            parameters = self.action_parameters(*given[":parameters"])
        scope = {parameter.name: parameter.types for parameter in parameters}
        precondition: Formula = ALWAYS
        if ":precondition" in given:
            precondition = self._condition(given[":precondition"][1], scope)
        line = self._source.line_of(group.first)
        action = Action(name.text, parameters, precondition, NO_EFFECT, line=line)
        if group.head == _DURATIVE:
            return name, (self._durative(action, name, given, scope),)
        if ":effect" not in given or not given[":effect"][1].parts:
            return name, (action,)
        outcomes = self._outcomes(given[":effect"][1])
        if len(outcomes) == 1:
            return name, (replace(action, effect=self._effect(outcomes[0], scope)),)
        return name, tuple(
            replace(
                action,
                name=f"{name.text}--{n}",
                effect=self._effect(outcome, scope),
                outcome_of=name.text,
            )
            for n, outcome in enumerate(outcomes, start=1)
        )

    def _durative(
        self, action: Action, name: Token, given: dict[str, tuple[Token, Group]], scope: Scope
    ) -> Action:
        """Return a durative action as one that is done alone."""
        if ":duration" not in given:
            raise self._source.error(name, f"action '{name.text}' has no duration")
        said = given[":duration"][1]
        length = duration_of(self._source, said)
        bounds = (length, said.first._replace(text="0"))
        self.require(
            said._replace(parts=(said.first._replace(text=">="), *bounds)), pddlParser.goalDesc
        )
        duration = self.expression(length, scope)
        if isinstance(duration, Number) and duration.value < 0.0:
            raise self._source.error(
                length.first, f"the duration of '{name.text}' is below zero: {duration}"
            )
        needs: dict[tuple[str, ...], list[Formula]] = {START: [], THROUGHOUT: [], END: []}
        does: dict[tuple[str, ...], list[Effect]] = {START: [], END: []}
        if ":condition" in given:
            for when, part in timed_parts(self._source, given[":condition"][1]):
                needs[when].append(self._condition(part, scope))
        if ":effect" in given:
            for when, part in timed_parts(self._source, given[":effect"][1]):
                if when not in does:
                    raise self._source.error(
                        part.first, "an effect is (at start ...) or (at end ...)"
                    )
                does[when].append(self._effect(part, scope))
        conditions = [And(tuple(needs[when])) for when in (START, THROUGHOUT, END)]
        effects = [EffectAnd(tuple(does[when])) for when in (START, END)]
        timing = Timing(duration, *conditions, *effects)  # type: ignore[arg-type]  # mypy takes them for one kind

        def fault(reason: str) -> Exception:
            return self._source.error(
                name, f"action '{name.text}': {reason}, which is not supported"
            )

        precondition, effect = compressed(timing, self._derived, fault)
        return replace(action, precondition=precondition, effect=effect, timing=timing)

    def _outcomes(self, group: Group) -> list[Group]:
        """Return the effects that a list may mean: one for each choice where it says ``oneof``."""
        if group.head == "probabilistic":
            group = self._one_of(group)
        inner: list[list[Token | Group]] = [
            [*self._outcomes(part)] if isinstance(part, Group) else [part] for part in group.parts
        ]
        if group.head == _ONE_OF:
            for part in group.parts[1:]:
                if not isinstance(part, Group):
                    raise self._source.error(
                        part, f"unexpected '{part.text}'; expected the effect of an outcome"
                    )
            if len(inner) < 2:
                raise self._source.error(group.closing, "expected the outcomes of 'oneof'")
            found = cast(list[Group], [outcome for choices in inner[1:] for outcome in choices])
        else:
            count = 1
            for choices in inner:
                count *= len(choices)
            if count > 1 and group.head == "forall":
                raise self._source.error(group.first, "outcomes inside 'forall' are not supported")
            found = (
                [group._replace(parts=parts) for parts in product(*inner)]
                if count <= _MOST_OUTCOMES
                else []
            )
        if not 0 < len(found) <= _MOST_OUTCOMES:
            raise self._source.error(
                group.first, f"an action has at most {_MOST_OUTCOMES} outcomes"
            )
        return found

    def _one_of(self, group: Group) -> Group:
        """Return ``(probabilistic CHANCE EFFECT...)`` as ``oneof``; what is left to 1 is that nothing happens."""
        effects = group.parts[2::2]
        chances = [
            float(part.first.text) for part in group.parts[1::2] if is_number(part.first.text)
        ]
        if (
            not len(chances) == len(effects) == (len(group.parts) - 1) / 2
            or min(chances, default=-1.0) < 0.0
        ):
            raise self._source.error(group.first, "expected (probabilistic CHANCE EFFECT...)")
        if sum(chances) > 1.0 + _CHANCE_ROUNDING:
            raise self._source.error(
                group.first, f"chances add up to {sum(chances):g}; expected at most 1"
            )
        possible = [effect for chance, effect in zip(chances, effects, strict=True) if chance > 0.0]
        if sum(chances) < 1.0 - _CHANCE_ROUNDING:
            possible.append(group._replace(parts=(group.first._replace(text="and"),)))
        return group._replace(parts=(group.first._replace(text=_ONE_OF), *possible))

    def _parts(self, group: Group, keys: tuple[str, ...]) -> dict[str, tuple[Token, Group]]:
        given: dict[str, tuple[Token, Group]] = {}
        rest = iter(group.parts[2:])
        for key in rest:
            if not isinstance(key, Token) or key.text not in keys:
                token = key.first if isinstance(key, Group) else key
                if token.text == ":observe":
                    raise self._source.error(token, "sensing actions (:observe) are not supported")
                raise self._source.error(
                    token, f"unexpected '{token.text}'; expected {', '.join(keys)} or ')'"
                )
            if key.text in given:
                raise self._source.error(key, f"'{key.text}' is given twice")
            value = next(rest, group.closing)
            if not isinstance(value, Group):
                raise self._source.error(value, f"expected '(' after '{key.text}'")
            given[key.text] = (key, value)
        return given

    def _condition(self, group: Group, scope: Scope) -> Formula:
        return self.formula(group, scope) if group.parts else ALWAYS

    def _effect(self, group: Group, scope: Scope) -> Effect:
        match group.head:
            case "and":
                return EffectAnd(
                    tuple(self._effect(part, scope) for part in self._dissolved(group))
                )
            case "when":
                condition, inner = self._two_lists(group)
                return When(self._condition(condition, scope), self._effect(inner, scope))
            case "forall":
                variables, inner = self._two_lists(group)
                parameters = self.action_parameters(group.first, variables)
                return ForEach(parameters, self._effect(inner, extended(scope, parameters)))
        return self._primitive_effect(group, scope)

    def _dissolved(self, conjunction: Group) -> Iterator[Group]:
        for part in conjunction.parts[1:]:
            if not isinstance(part, Group):
                raise self._source.error(part, f"unexpected '{part.text}'; expected '(' or ')'")
            if part.head == "and":
                yield from self._dissolved(part)
            else:
                yield part

    def _primitive_effect(self, group: Group, scope: Scope) -> Effect:
        """Return the effect of a list: an atom that is added or deleted, or a cost."""
        if (lifted := self.lifted(group, scope)) is not None:
            value, call, rest = lifted
            scope = extended(scope, (value,))
            return ForEach(
                (value,), When(self.formula(call, scope), self._primitive_effect(rest, scope))
            )
        predicates = self._vocabulary.predicates
        group = binary(function_first(group, predicates))
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
        self._check(derived_fault(atom.predicate, self._derived), inner.parts)
        return Delete(atom) if is_deleted else Add(atom)

    def _object_effect(self, group: Group, scope: Scope) -> Effect:
        """Return the effect of ``(assign (FUNCTION TERM...) TERM)``: the function has no other value."""
        call, value = cast(Group, group.parts[1]), group.parts[2]
        other = fresh(self._vocabulary.predicates[call.head].parameters[-1].types, scope)
        token, inner = group.first._replace(text=other.name), extended(scope, (other,))
        lost = Delete(self.atom(with_value(call, token), inner, rule=pddlParser.pEffect))
        if not isinstance(value, Token):
            raise self._source.error(value.opening, "expected an object or a variable as the value")
        if value.text == UNDEFINED:
            return ForEach((other,), lost)
        gained = Add(self.atom(with_value(call, value), scope, rule=pddlParser.pEffect))
        return EffectAnd((ForEach((other,), lost), gained))

    def _cost_effect(self, group: Group, scope: Scope) -> Effect:
        function = self._function_term(group.parts[1], scope)
        amount = self.expression(group.parts[2], scope)
        if function.name != TOTAL_COST:
            return ChangeNumber(group.head, function, amount)
        if group.head != "increase":
            raise self._source.error(group.first, "(total-cost) may only be increased")
        return IncreaseCost(amount)

    def _two_lists(self, group: Group) -> tuple[Group, Group]:
        """Return the two lists that follow the first word of a list."""
        parts = group.parts[1:]
        for part in (*parts[:2], *[group.closing][len(parts) // 2 :]):
            if not isinstance(part, Group):
                raise self._source.error(part, f"unexpected '{part.text}'; expected '('")
        for part in parts[2:]:
            token = part.opening if isinstance(part, Group) else part
            raise self._source.error(token, f"unexpected '{token.text}'; expected ')'")
        first, second = (part for part in parts if isinstance(part, Group))
        return first, second
