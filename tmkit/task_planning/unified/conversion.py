"""Tasks of unified-planning (``unified_planning.model.Problem``) and of this package, turned into one another.

Names become lower case, objects that actions name become constants, ``>`` and ``>=`` become ``<``
and ``<=``, and the domain has the name of the problem. Durations are fixed, and only starts and
ends have a time. What the other side lacks is refused by its name, so what was turned there and
back means the same, and is equal when it is turned again.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

from tmkit._support.extras import importing
from tmkit.errors import TaskError
from tmkit.pddl.formulas import (
    Action,
    Add,
    And,
    Arithmetic,
    Atom,
    ChangeNumber,
    Comparison,
    Delete,
    Effect,
    EffectAnd,
    Equals,
    Exists,
    Expression,
    Fact,
    Forall,
    ForEach,
    Formula,
    FunctionTerm,
    Imply,
    IncreaseCost,
    Not,
    Number,
    Or,
    Parameter,
    Timing,
    When,
    format_typed_list,
)
from tmkit.pddl.model import Domain, Metric, Problem
from tmkit.pddl.parsing.actions import compress_timing, use_durations_as_costs
from tmkit.pddl.state import State
from tmkit.pddl.vocabulary import TOTAL_COST, Function, Predicate, Type
from tmkit.pddl.writer import is_writable

_FEATURES = frozenset(
    {
        "ACTION_BASED",
        "FLAT_TYPING",
        "HIERARCHICAL_TYPING",
        "NEGATIVE_CONDITIONS",
        "DISJUNCTIVE_CONDITIONS",
        "EQUALITIES",
        "EXISTENTIAL_CONDITIONS",
        "UNIVERSAL_CONDITIONS",
        "CONDITIONAL_EFFECTS",
        "FORALL_EFFECTS",
        "INT_FLUENTS",
        "REAL_FLUENTS",
        "SIMPLE_NUMERIC_PLANNING",
        "GENERAL_NUMERIC_PLANNING",
        "INCREASE_EFFECTS",
        "DECREASE_EFFECTS",
        "FLUENTS_IN_NUMERIC_ASSIGNMENTS",
        "PLAN_LENGTH",
        "ACTIONS_COST",
        "INT_NUMBERS_IN_ACTIONS_COST",
        "REAL_NUMBERS_IN_ACTIONS_COST",
        "STATIC_FLUENTS_IN_ACTIONS_COST",
        "CONTINUOUS_TIME",
        "INT_TYPE_DURATIONS",
        "REAL_TYPE_DURATIONS",
        "STATIC_FLUENTS_IN_DURATIONS",
        "MAKESPAN",
    }
)
_ARITHMETIC = {"+": "Plus", "-": "Minus", "*": "Times", "/": "Div"}
_COMPARISONS = {"<": "LT", "<=": "LE", ">": "GT", ">=": "GE", "=": "Equals"}


def _library() -> Any:
    with importing("unified_planning", "planners", "tasks of unified-planning need"):
        import unified_planning.shortcuts
    return unified_planning.shortcuts


def problem_from_unified(problem: object) -> Problem:
    """Return the task of a ``unified_planning.model.Problem``.

    Args:
        problem: the problem.

    Raises:
        TaskError: a feature that this package lacks, by the name that unified-planning has for it,
            or a name that PDDL lacks.
        MissingExtraError: unified-planning is not installed.

    Complexity: O(facts), including those that are false.
    """
    return _Import(_library(), problem).problem()


class _Import:
    def __init__(self, library: Any, problem: Any) -> None:
        self.up, self.given = library, problem
        self.where = f"unified-planning problem '{problem.name}'"
        if unknown := sorted(set(problem.kind.features) - _FEATURES):
            raise TaskError.at(self.where, f"tmkit has no {', '.join(unknown)}")
        self.constants: dict[str, None] = {}
        self.numeric = {fluent.name for fluent in problem.fluents if not fluent.type.is_bool_type()}

    def problem(self) -> Problem:
        given = self.given
        costs, metric = self.costs()
        actions = tuple(self.action(action, costs.get(action)) for action in given.actions)
        types = [
            Type(self.name(kind), self.types(kind.father))
            for kind in given.user_types
            if kind.father is not None
        ]
        types += [
            Type(self.name(kind))
            for kind in given.user_types
            if kind.father is None and kind.name != "object"
        ]
        if any(kind.name == "object" for kind in types):
            raise TaskError.at(self.where, "tmkit has no type 'object' below another")
        order = {self.name(kind): number for number, kind in enumerate(given.user_types)}
        signatures = [
            (self.name(f), self.parameters(f.signature), f.name in self.numeric)
            for f in given.fluents
        ]
        functions = [
            Function(name, parameters) for name, parameters, is_number in signatures if is_number
        ]
        objects = {self.name(thing): self.types(thing.type) for thing in given.all_objects}
        domain = Domain(
            self.word(given.name or "problem"),
            types=tuple(sorted(types, key=lambda kind: order[kind.name])),
            constants=tuple(Parameter(name, objects[name]) for name in self.constants),
            predicates=tuple(
                Predicate(name, those) for name, those, is_number in signatures if not is_number
            ),
            functions=(
                *functions,
                *([Function(TOTAL_COST)] if metric is Metric.TOTAL_COST else ()),
            ),
            actions=actions,
        )
        if any(metric.is_minimize_makespan() for metric in given.quality_metrics):
            domain = use_durations_as_costs(domain)
        goal = _all([self.formula(part) for part in given.goals])
        facts, values = [], {}
        for term, value in given.initial_values.items():
            fact = Fact(self.name(term.fluent()), tuple(self.term(arg) for arg in term.args))
            if term.fluent().name in self.numeric:
                values[fact] = float(value.constant_value())
            elif value.is_true():
                facts.append(fact)
        rest = {name: types for name, types in objects.items() if name not in self.constants}
        return Problem(
            self.word(given.name or "problem"),
            domain,
            objects=rest,
            init=State(facts),
            goal=goal,
            metric=metric,
            values=values,
        )

    def costs(self) -> tuple[Mapping[Any, Any], Metric]:
        metrics = self.given.quality_metrics
        if len(metrics) > 1:
            raise TaskError.at(self.where, "tmkit has one metric, not several")
        if metrics and metrics[0].is_minimize_makespan():
            return {}, Metric.TOTAL_COST
        if not metrics or not metrics[0].is_minimize_action_costs():
            return {}, Metric.PLAN_LENGTH
        costs = {action: metrics[0].get_action_cost(action) for action in self.given.actions}
        return {
            action: cost for action, cost in costs.items() if cost is not None
        }, Metric.TOTAL_COST

    def action(self, action: Any, cost: Any) -> Action:
        made = Action(self.name(action), self.parameters(action.parameters))
        costs: list[Effect] = [] if cost is None else [IncreaseCost(self.expression(cost))]
        if hasattr(action, "duration"):
            return self.durative(made, action, costs)
        needs = _all([self.formula(part, is_action=True) for part in action.preconditions])
        return replace(
            made, precondition=needs, effect=_does([*map(self.effect, action.effects), *costs])
        )

    def durative(self, made: Action, action: Any, costs: list[Effect]) -> Action:
        """Return an action with its timing; an interval that has its start or end needs its part then too."""
        if action.duration.lower != action.duration.upper:
            raise TaskError.at(
                self.where, f"tmkit has no ranges of durations: {made.name} takes {action.duration}"
            )
        needs: tuple[list[Formula], ...] = ([], [], [])
        for span, parts in action.conditions.items():
            is_long = span.lower != span.upper
            is_first = span.lower.is_from_start() and not (is_long and span.is_left_open())
            is_last = span.upper.is_from_end() and not (is_long and span.is_right_open())
            for found, is_then in zip(needs, (is_first, is_long, is_last), strict=True):
                found += [self.formula(part, is_action=True) for part in parts] if is_then else []
        does: tuple[list[Effect], list[Effect]] = ([], costs)
        for time, effects in action.effects.items():
            does[not time.is_from_start()][:0] = map(self.effect, effects)
        at_start, over_all, at_end = map(_all, needs)
        length, (begun, ended) = self.expression(action.duration.lower), map(_does, does)
        timing = Timing(length, at_start, over_all, at_end, begun, ended)

        def fault(reason: str) -> Exception:
            return TaskError.at(self.where, f"tmkit has no action such as '{made.name}': {reason}")

        precondition, effect = compress_timing(timing, frozenset(), fault)
        return replace(made, precondition=precondition, effect=effect, timing=timing)

    def effect(self, effect: Any) -> Effect:
        made: Effect
        if effect.fluent.fluent().name in self.numeric:
            term = self.expression(effect.fluent)
            assert isinstance(term, FunctionTerm), "a fluent"
            made = ChangeNumber(effect.kind.name.lower(), term, self.expression(effect.value))
        elif effect.value.is_bool_constant():
            made = (Add if effect.value.is_true() else Delete)(
                self.atom(effect.fluent, is_action=True)
            )
        else:
            raise TaskError.at(
                self.where, f"tmkit has no facts whose truth is that of a formula: {effect}"
            )
        if not effect.condition.is_true():
            made = When(self.formula(effect.condition, is_action=True), made)
        return ForEach(self.parameters(effect.forall), made) if effect.forall else made

    def word(self, name: str) -> str:
        """Return a name as PDDL has it."""
        if not is_writable(name):
            raise TaskError.at(self.where, f"'{name}' cannot be a name in PDDL")
        return name.lower()

    def name(self, named: Any) -> str:
        return self.word(named.name)

    def types(self, kind: Any) -> tuple[str, ...]:
        return (self.name(kind),)

    def parameters(self, parameters: Iterable[Any]) -> tuple[Parameter, ...]:
        return tuple(Parameter(f"?{self.name(one)}", self.types(one.type)) for one in parameters)

    def term(self, node: Any, *, is_action: bool = False) -> str:
        if node.is_parameter_exp():
            return f"?{self.name(node.parameter())}"
        if node.is_variable_exp():
            return f"?{self.name(node.variable())}"
        if not node.is_object_exp():
            raise TaskError.at(self.where, f"tmkit has no terms such as {node}")
        if is_action:
            self.constants[self.name(node.object())] = None
        return self.name(node.object())

    def atom(self, node: Any, *, is_action: bool) -> Atom:
        return Atom(
            self.name(node.fluent()),
            tuple(self.term(arg, is_action=is_action) for arg in node.args),
        )

    def formula(self, node: Any, *, is_action: bool = False) -> Formula:
        def inner(part: Any) -> Formula:
            return self.formula(part, is_action=is_action)

        if node.is_fluent_exp():
            return self.atom(node, is_action=is_action)
        if node.is_bool_constant():
            return And() if node.is_true() else Or()
        if node.is_not():
            return Not(inner(node.arg(0)))
        if node.is_and() or node.is_or():
            return (And if node.is_and() else Or)(tuple(map(inner, node.args)))
        if node.is_implies():
            return Imply(inner(node.arg(0)), inner(node.arg(1)))
        if node.is_iff():
            one, other = map(inner, node.args)
            return And((Imply(one, other), Imply(other, one)))
        if node.is_exists() or node.is_forall():
            return (Exists if node.is_exists() else Forall)(
                self.parameters(node.variables()), inner(node.arg(0))
            )
        if node.is_equals() and node.arg(0).type.is_user_type():
            left, right = (self.term(part, is_action=is_action) for part in node.args)
            return Equals(left, right)
        for sign, is_it in (("<", node.is_lt), ("<=", node.is_le), ("=", node.is_equals)):
            if is_it():
                return Comparison(
                    sign, *(self.expression(part, is_action=is_action) for part in node.args)
                )
        raise TaskError.at(self.where, f"tmkit has no formulas such as {node}")

    def expression(self, node: Any, *, is_action: bool = True) -> Expression:
        if node.is_int_constant() or node.is_real_constant():
            return Number(float(node.constant_value()))
        if node.is_fluent_exp():
            terms = tuple(self.term(arg, is_action=is_action) for arg in node.args)
            return FunctionTerm(self.name(node.fluent()), terms)
        for sign, is_it in (
            ("+", node.is_plus),
            ("-", node.is_minus),
            ("*", node.is_times),
            ("/", node.is_div),
        ):
            if is_it():
                parts = (self.expression(part, is_action=is_action) for part in node.args)
                return reduce(lambda left, right: Arithmetic(sign, (left, right)), parts)
        raise TaskError.at(self.where, f"tmkit has no numbers such as {node}")


def problem_to_unified(problem: Problem, environment: object = None) -> Any:
    """Return a task as a ``unified_planning.model.Problem``.

    Costs of a task whose metric is the length are omitted.

    Args:
        problem: the task.
        environment: the environment of unified-planning; its global one by default, which takes no
            predicate and action of one name unless its flag ``error_used_name`` is off.

    Raises:
        TaskError: what unified-planning lacks: derived predicates, objects of several types, costs
            with conditions, or one name for two kinds of things.
        MissingExtraError: unified-planning is not installed.
    """
    library = _library()
    try:
        made = _Export(library, problem, environment or library.get_environment()).made()
        assert made.kind is not None, "divides numbers that do not change"
        return made
    except (library.unified_planning.exceptions.UPException, ZeroDivisionError) as error:
        raise problem.error(f"unified-planning refuses it: {error}") from error


class _Export:
    def __init__(self, library: Any, problem: Problem, environment: Any) -> None:
        self.up, self.given, self.env = library, problem, environment
        self.make = environment.expression_manager
        self.fluents: dict[str, Any] = {}
        self.objects: dict[str, Any] = {}
        self.kinds: dict[str, Any] = {}

    def made(self) -> Any:
        given, domain, types = self.given, self.given.domain, self.env.type_manager
        if domain.axioms:
            raise given.error("unified-planning has no derived predicates")
        made = self.up.Problem(given.name, self.env)
        waiting = list(domain.types)
        if _names_root(given):
            self.kinds["object"] = types.UserType("object")
        while waiting:
            kind = waiting.pop(0)
            parent = self.only(kind.parents)
            if parent in self.kinds or parent == "object":
                self.kinds[kind.name] = types.UserType(kind.name, self.kinds.get(parent))
            else:
                waiting.append(kind)
        for user_type in self.kinds.values():
            made._add_user_type(user_type)  # also those without objects
        for name, kinds in given.all_objects.items():
            self.objects[name] = made.add_object(name, self.kinds[self.only(kinds)])
        for predicate in domain.predicates:
            fluent = self.up.Fluent(
                predicate.name, types.BoolType(), self.signature(predicate.parameters), self.env
            )
            self.fluents[predicate.name] = made.add_fluent(fluent, default_initial_value=False)
        whole = {
            name
            for action in domain.actions
            if action.timing
            for name in _functions(action.timing.duration)
        }
        whole -= {term.predicate for term, value in given.values.items() if not value.is_integer()}
        for function in domain.functions:
            if function.name != TOTAL_COST:
                # engines lack real durations
                kind = types.IntType() if function.name in whole else types.RealType()
                fluent = self.up.Fluent(
                    function.name, kind, self.signature(function.parameters), self.env
                )
                self.fluents[function.name] = made.add_fluent(fluent)
        costs = {}
        for action in domain.actions:
            action_made, cost = (
                self.action(action)
                if action.timing is None
                else self.durative(action, action.timing)
            )
            made.add_action(action_made)
            if cost is not None:
                costs[action_made] = cost
        for fact in given.init:
            made.set_initial_value(self.fluent(fact.predicate, fact.arguments, {}), True)
        for term, value in given.values.items():
            if term.predicate != TOTAL_COST:
                made.set_initial_value(
                    self.fluent(term.predicate, term.arguments, {}), self.number(value)
                )
        for part in _conjuncts(given.goal):
            made.add_goal(self.formula(part, {}))
        if given.metric is Metric.TOTAL_COST and domain.is_durative and not costs:
            made.add_quality_metric(self.up.MinimizeMakespan(environment=self.env))
        elif given.metric is Metric.TOTAL_COST:
            made.add_quality_metric(self.up.MinimizeActionCosts(costs, environment=self.env))
        return made

    def only(self, kinds: tuple[str, ...]) -> str:
        if len(kinds) != 1:
            raise self.given.error(
                f"unified-planning has no objects of several types: (either {' '.join(kinds)})"
            )
        return kinds[0]

    def signature(self, parameters: Iterable[Parameter]) -> OrderedDict[str, Any]:
        return OrderedDict(
            (one.name.removeprefix("?"), self.kinds[self.only(one.types)]) for one in parameters
        )

    def action(self, action: Action) -> tuple[Any, Any]:
        made = self.up.InstantaneousAction(action.name, self.signature(action.parameters), self.env)
        scope = {f"?{one.name}": self.make.ParameterExp(one) for one in made.parameters}
        for part in _conjuncts(action.precondition):
            made.add_precondition(self.formula(part, scope))
        costs: list[Any] = []
        self.effects(made, action.effect, scope, costs)
        return made, reduce(self.make.Plus, costs) if costs else None

    def durative(self, action: Action, timing: Timing) -> tuple[Any, Any]:
        made = self.up.DurativeAction(action.name, self.signature(action.parameters), self.env)
        scope = {f"?{one.name}": self.make.ParameterExp(one) for one in made.parameters}
        made.set_fixed_duration(self.expression(timing.duration, scope))
        start, end, costs = self.up.StartTiming(), self.up.EndTiming(), list[Any]()
        spans = (start, self.up.OpenTimeInterval(start, end), end)
        for span, needs in zip(
            spans, (timing.at_start, timing.over_all, timing.at_end), strict=True
        ):
            for part in _conjuncts(needs):
                made.add_condition(span, self.formula(part, scope))
        for time, effect in ((start, timing.start), (end, timing.end)):
            self.effects(made, effect, scope, costs, when=(time,))
        return made, reduce(self.make.Plus, costs) if costs else None

    def effects(
        self,
        made: Any,
        effect: Effect,
        scope: Mapping[str, Any],
        costs: list[Any],
        variables: tuple[Any, ...] = (),
        conditions: tuple[Any, ...] = (),
        when: tuple[Any, ...] = (),
    ) -> None:
        """Add the effects of which an effect is made; conditions, quantifiers and time are those around it."""
        match effect:
            case EffectAnd(parts):
                for part in parts:
                    self.effects(made, part, scope, costs, variables, conditions, when)
            case When(condition, inner):
                more = self.formula(condition, scope)
                self.effects(made, inner, scope, costs, variables, (*conditions, more), when)
            case ForEach(parameters, inner):
                found, scope = self.scope(parameters, scope)
                self.effects(made, inner, scope, costs, (*variables, *found), conditions, when)
            case IncreaseCost(amount):
                if variables or conditions:
                    raise self.given.error(
                        f"unified-planning has no costs with conditions or quantifiers: {effect}"
                    )
                costs.append(self.expression(amount, scope))
            case Add(atom) | Delete(atom):
                fluent = self.fluent(atom.predicate, atom.terms, scope)
                holds = self.make.And(*conditions) if conditions else True
                made.add_effect(*when, fluent, isinstance(effect, Add), holds, forall=variables)
            case ChangeNumber(sign, term, amount):
                fluent, value = self.expression(term, scope), self.expression(amount, scope)
                holds = self.make.And(*conditions) if conditions else True
                if sign in ("scale-up", "scale-down"):
                    value = (self.make.Times if sign == "scale-up" else self.make.Div)(
                        fluent, value
                    )
                kind = {"increase": made.add_increase_effect, "decrease": made.add_decrease_effect}
                kind.get(sign, made.add_effect)(*when, fluent, value, holds, forall=variables)

    def scope(
        self, parameters: Iterable[Parameter], outer: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        found = tuple(
            self.up.Variable(n, kind, self.env) for n, kind in self.signature(parameters).items()
        )
        return found, {**outer, **{f"?{one.name}": self.make.VariableExp(one) for one in found}}

    def term(self, term: str, scope: Mapping[str, Any]) -> Any:
        return scope[term] if term in scope else self.make.ObjectExp(self.objects[term])

    def fluent(self, name: str, terms: Iterable[str], scope: Mapping[str, Any]) -> Any:
        return self.fluents[name](*(self.term(term, scope) for term in terms))

    def number(self, value: float) -> Any:
        exact = Fraction(repr(value))
        return self.make.Int(int(exact)) if exact.denominator == 1 else self.make.Real(exact)

    def formula(self, formula: Formula, scope: Mapping[str, Any]) -> Any:
        make = self.make
        match formula:
            case Atom(name, terms):
                return self.fluent(name, terms, scope)
            case Equals(left, right):
                return make.Equals(self.term(left, scope), self.term(right, scope))
            case Not(part):
                return make.Not(self.formula(part, scope))
            case And(parts) | Or(parts):
                kind: Callable[..., Any] = make.And if isinstance(formula, And) else make.Or
                return kind(*(self.formula(part, scope) for part in parts))
            case Imply(premise, conclusion):
                return make.Implies(self.formula(premise, scope), self.formula(conclusion, scope))
            case Exists(parameters, body) | Forall(parameters, body):
                found, inner = self.scope(parameters, scope)
                kind = make.Exists if isinstance(formula, Exists) else make.Forall
                return kind(self.formula(body, inner), *found)
            case Comparison(sign, left, right):
                return getattr(make, _COMPARISONS[sign])(
                    self.expression(left, scope), self.expression(right, scope)
                )

    def expression(self, expression: Expression, scope: Mapping[str, Any]) -> Any:
        match expression:
            case Number(value):
                return self.number(value)
            case FunctionTerm(name, terms):
                return self.fluent(name, terms, scope)
            case Arithmetic(sign, parts):
                made = [self.expression(part, scope) for part in parts]
                if len(made) == 1:
                    made.insert(0, self.make.Int(0))
                return getattr(self.make, _ARITHMETIC[sign])(*made)


def _all(parts: Sequence[Formula]) -> Formula:
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], And) else And(tuple(parts))


def _functions(length: Expression) -> set[str]:
    parts = length.parts if isinstance(length, Arithmetic) else ()
    return (
        {length.name} if isinstance(length, FunctionTerm) else set().union(*map(_functions, parts))
    )


def _does(parts: Sequence[Effect]) -> Effect:
    return parts[0] if len(parts) == 1 else EffectAnd(tuple(parts))


def _conjuncts(formula: Formula) -> tuple[Formula, ...]:
    return formula.parts if isinstance(formula, And) else (formula,)


def _names_root(problem: Problem) -> bool:
    """Return whether anything is of the root type, which unified-planning has only if it is declared."""
    domain = problem.domain
    lists = [format_typed_list(predicate.parameters) for predicate in domain.predicates]
    lists += [format_typed_list(function.parameters) for function in domain.functions]
    lists += [format_typed_list(action.parameters) for action in domain.actions]
    formulas = [f"{action.precondition} {action.effect}" for action in domain.actions]
    text = "\n".join([*lists, format_typed_list(domain.constants), *formulas, str(problem.goal)])
    return (
        re.search(r"- object($|[ )])", text, re.M) is not None
        or ("object",) in problem.objects.values()
    )
