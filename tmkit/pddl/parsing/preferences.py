"""Preferences: parts of a goal that need not hold, at a price.

The idea: ``(preference P F)`` in a goal is read as ``(or F (forgone--P))``, and the problem's domain gets an action
``forgo--P`` that makes it so and costs what the metric says of ``(is-violated P)``. The cheapest plan keeps what is
worth its price (E. Keyder, H. Geffner, "Soft goals can be compiled away", JAIR 2009). A preference that the metric does
not mention is worth nothing, and is left out. In ``forall``, each object's is forgone by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tmkit._support.source_location import did_you_mean
from tmkit.pddl.formulas import Action, Add, Atom, EffectAnd, IncreaseCost, Number, Parameter, simple_effects
from tmkit.pddl.model import Domain
from tmkit.pddl.parsing.grammar import is_number
from tmkit.pddl.parsing.source import Group, Source, Token
from tmkit.pddl.parsing.trees import TreeBuilder
from tmkit.pddl.vocabulary import TOTAL_COST, Predicate

_PREFERENCE, _VIOLATED = "preference", "is-violated"


class PreferenceReader:
    """Reads the preferences of a problem of a domain.

    Attributes:
        goal: the goal without preferences.
        metric: the metric without them, if there is one.
        domain: the domain in which they can be forgone.
    """

    def __init__(self, source: Source, domain: Domain, builder: TreeBuilder, goal: Group, metric: Group | None) -> None:
        self._source, self._builder, self._prices = source, builder, dict[str, float]()
        self._forgone: dict[str, tuple[tuple[Parameter, ...], float]] = {}
        self.metric = metric
        if metric is not None and any(word.text == _VIOLATED for word in _words(metric)):
            costs = (part for action in domain.actions for part in simple_effects(action.effect))
            has_costs = any(isinstance(part, IncreaseCost) for part in costs)
            self.metric = self._plain_metric(metric, dict.fromkeys(_names(goal)), has_costs)
        self.goal = self._plain_goal(goal, ())
        predicates = tuple(Predicate(f"forgone--{name}", given) for name, (given, _) in self._forgone.items())
        actions = tuple(self._action(name, *forgone) for name, forgone in self._forgone.items())
        self.domain = domain
        if actions:
            predicates, actions = (*domain.predicates, *predicates), (*domain.actions, *actions)
            self.domain = replace(domain, predicates=predicates, actions=actions)

    def _action(self, name: str, parameters: tuple[Parameter, ...], price: float) -> Action:
        atom = Atom(f"forgone--{name}", tuple(parameter.name for parameter in parameters))
        return Action(f"forgo--{name}", parameters, effect=EffectAnd((Add(atom), IncreaseCost(Number(price)))))

    def _plain_metric(self, metric: Group, names: dict[str, None], has_costs: bool) -> Group:
        """Read the prices; return the metric of costs."""
        wanted, measure = metric.parts[1].first, metric.parts[-1]
        if len(metric.parts) != 3 or wanted.text != "minimize" or not isinstance(measure, Group):
            raise self._source.error(wanted, "a metric of preferences is (:metric minimize (+ TERM...))")
        terms = measure.parts[1:] if measure.head == "+" else (measure,)
        costs = [
            term for term in terms if isinstance(term, Group) and [word.text for word in _words(term)] == [TOTAL_COST]
        ]
        for term in terms:
            if term not in costs:
                self._price(term, names)
        if has_costs and len(costs) != 1:
            raise self._source.error(wanted, "the domain has costs, so the metric has to add (total-cost)")
        return metric._replace(parts=(metric.parts[0], wanted, _list(measure, TOTAL_COST)))

    def _price(self, term: Token | Group, names: dict[str, None]) -> None:
        words = [word for word in _words(term) if word.text != "*"] if isinstance(term, Group) else [term]
        numbers = [float(word.text) for word in words if is_number(word.text)]
        rest = [word for word in words if not is_number(word.text)]
        if len(rest) != 2 or rest[0].text != _VIOLATED or len(numbers) > 1:
            reason = "expected (total-cost), (is-violated PREFERENCE) or (* NUMBER (is-violated PREFERENCE))"
            raise self._source.error(term.first, reason)
        name = rest[1].text
        if name not in names:
            raise self._source.error(rest[1], f"unknown preference '{name}'{did_you_mean(name, names)}")
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
            raise self._source.error(group.first, f"a preference inside '{group.head}' is not supported")
        parts = (self._plain_goal(part, variables) if isinstance(part, Group) else part for part in group.parts)
        return group._replace(parts=tuple(parts))

    def _plain_preference(self, group: Group, variables: tuple[Parameter, ...]) -> Group:
        named, inner = group.parts[1:-1], group.parts[-1]
        if len(named) > 1 or not isinstance(inner, Group) or any(isinstance(part, Group) for part in named):
            raise self._source.error(group.first, "expected (preference NAME FORMULA)")
        if _is_preference(inner) or _has_preference(inner):
            raise self._source.error(group.first, "a preference inside a preference is not supported")
        name = named[0].first.text if named else ""
        if not self._prices.get(name):
            return _list(group, "and")
        own = next(own for own in _numbered(name) if own not in self._forgone)
        self._forgone[own] = variables, self._prices[name]
        forgone = _list(group, f"forgone--{own}", *(variable.name for variable in variables))
        return group._replace(parts=(group.first._replace(text="or"), inner, forgone))


def _numbered(name: str) -> Iterator[str]:
    """Yield a name and then the name with numbers: preferences may share one."""
    yield name
    number = 2
    while True:
        yield f"{name}--{number}"
        number += 1


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


def _words(group: Group) -> Iterator[Token]:
    for part in group.parts:
        if isinstance(part, Group):
            yield from _words(part)
        else:
            yield part
