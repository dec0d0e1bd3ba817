"""Conversion between :class:`Problem` and ``unified_planning.model.Problem``.

Names become lower case, objects in actions become constants, ``>`` and ``>=`` become ``<`` and
``<=``, and the domain has the name of the problem. Durations are fixed, and conditions and effects
are at the start or end of an action. Unsupported features are rejected by their names. The result
of a round trip is therefore equivalent, and a second round trip returns an equal problem.
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
from tmkit.task_planning.uncontrollable import require_controllable

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


def _load_library() -> Any:
    with importing("unified_planning", "planners", "tasks of unified-planning need"):
        import unified_planning.shortcuts
    return unified_planning.shortcuts


def problem_from_unified(problem: object) -> Problem:
    """Return the task of a ``unified_planning.model.Problem``.

    Args:
        problem: the problem.

    Raises:
        TaskError: if tmkit does not support a feature, which the message names as
            unified-planning does, or if a name is invalid in PDDL.
        MissingExtraError: if unified-planning is not installed.

    Complexity: O(facts), including those that are false.
    """
    return _Import(_load_library(), problem).build()


class _Import:
    def __init__(self, library: Any, problem: Any) -> None:
        self.up, self.source = library, problem
        self.where = f"unified-planning problem '{problem.name}'"
        if unknown := sorted(set(problem.kind.features) - _FEATURES):
            raise TaskError.at(self.where, f"tmkit has no {', '.join(unknown)}")
        self.constants: dict[str, None] = {}
        self.numeric = {fluent.name for fluent in problem.fluents if not fluent.type.is_bool_type()}

    def build(self) -> Problem:
        source = self.source
        costs, metric = self.costs()
        actions = tuple(self.action(action, costs.get(action)) for action in source.actions)
        types = [
            Type(self.name(kind), self.types(kind.father))
            for kind in source.user_types
            if kind.father is not None
        ]
        types += [
            Type(self.name(kind))
            for kind in source.user_types
            if kind.father is None and kind.name != "object"
        ]
        if any(kind.name == "object" for kind in types):
            raise TaskError.at(self.where, "tmkit has no type 'object' below another")
        order = {self.name(kind): number for number, kind in enumerate(source.user_types)}
        signatures = [
            (self.name(f), self.parameters(f.signature), f.name in self.numeric)
            for f in source.fluents
        ]
        functions = [
            Function(name, parameters) for name, parameters, is_number in signatures if is_number
        ]
        objects = {self.name(item): self.types(item.type) for item in source.all_objects}
        domain = Domain(
            self.word(source.name or "problem"),
            types=tuple(sorted(types, key=lambda kind: order[kind.name])),
            constants=tuple(Parameter(name, objects[name]) for name in self.constants),
            predicates=tuple(
                Predicate(name, parameters)
                for name, parameters, is_number in signatures
                if not is_number
            ),
            functions=(
                *functions,
                *([Function(TOTAL_COST)] if metric is Metric.TOTAL_COST else ()),
            ),
            actions=actions,
        )
        if any(metric.is_minimize_makespan() for metric in source.quality_metrics):
            domain = use_durations_as_costs(domain)
        goal = _join_formulas([self.formula(part) for part in source.goals])
        facts, values = [], {}
        for term, value in source.initial_values.items():
            fact = Fact(self.name(term.fluent()), tuple(self.term(arg) for arg in term.args))
            if term.fluent().name in self.numeric:
                values[fact] = float(value.constant_value())
            elif value.is_true():
                facts.append(fact)
        objects_in_problem = {
            name: types for name, types in objects.items() if name not in self.constants
        }
        return Problem(
            self.word(source.name or "problem"),
            domain,
            objects=objects_in_problem,
            init=State(facts),
            goal=goal,
            metric=metric,
            values=values,
        )

    def costs(self) -> tuple[Mapping[Any, Any], Metric]:
        metrics = self.source.quality_metrics
        if len(metrics) > 1:
            raise TaskError.at(self.where, "tmkit has one metric, not several")
        if metrics and metrics[0].is_minimize_makespan():
            return {}, Metric.TOTAL_COST
        if not metrics or not metrics[0].is_minimize_action_costs():
            return {}, Metric.PLAN_LENGTH
        costs = {action: metrics[0].get_action_cost(action) for action in self.source.actions}
        return {
            action: cost for action, cost in costs.items() if cost is not None
        }, Metric.TOTAL_COST

    def action(self, action: Any, cost: Any) -> Action:
        result = Action(self.name(action), self.parameters(action.parameters))
        costs: list[Effect] = [] if cost is None else [IncreaseCost(self.expression(cost))]
        if hasattr(action, "duration"):
            return self.convert_durative(result, action, costs)
        needs = _join_formulas(
            [self.formula(part, is_action=True) for part in action.preconditions]
        )
        return replace(
            result,
            precondition=needs,
            effect=_join_effects([*map(self.effect, action.effects), *costs]),
        )

    def convert_durative(self, result: Action, action: Any, costs: list[Effect]) -> Action:
        """Convert a durative action. A closed end of an interval is a condition at that time."""
        if action.duration.lower != action.duration.upper:
            raise TaskError.at(
                self.where,
                f"tmkit has no ranges of durations: {result.name} takes {action.duration}",
            )
        needs: tuple[list[Formula], ...] = ([], [], [])
        for interval, parts in action.conditions.items():
            is_long = interval.lower != interval.upper
            is_first = interval.lower.is_from_start() and not (is_long and interval.is_left_open())
            is_last = interval.upper.is_from_end() and not (is_long and interval.is_right_open())
            for formulas, applies in zip(needs, (is_first, is_long, is_last), strict=True):
                formulas += (
                    [self.formula(part, is_action=True) for part in parts] if applies else []
                )
        effects_at: tuple[list[Effect], list[Effect]] = ([], costs)
        for time, effects in action.effects.items():
            effects_at[not time.is_from_start()][:0] = map(self.effect, effects)
        at_start, over_all, at_end = map(_join_formulas, needs)
        length, (start_effect, end_effect) = (
            self.expression(action.duration.lower),
            map(_join_effects, effects_at),
        )
        timing = Timing(length, at_start, over_all, at_end, start_effect, end_effect)

        def fault(reason: str) -> Exception:
            return TaskError.at(
                self.where, f"tmkit has no action such as '{result.name}': {reason}"
            )

        precondition, effect = compress_timing(timing, frozenset(), fault)
        return replace(result, precondition=precondition, effect=effect, timing=timing)

    def effect(self, effect: Any) -> Effect:
        result: Effect
        if effect.fluent.fluent().name in self.numeric:
            term = self.expression(effect.fluent)
            assert isinstance(term, FunctionTerm), "a fluent"
            result = ChangeNumber(effect.kind.name.lower(), term, self.expression(effect.value))
        elif effect.value.is_bool_constant():
            result = (Add if effect.value.is_true() else Delete)(
                self.atom(effect.fluent, is_action=True)
            )
        else:
            raise TaskError.at(
                self.where, f"tmkit has no facts whose truth is that of a formula: {effect}"
            )
        if not effect.condition.is_true():
            result = When(self.formula(effect.condition, is_action=True), result)
        return ForEach(self.parameters(effect.forall), result) if effect.forall else result

    def word(self, name: str) -> str:
        """Return a name in PDDL's spelling."""
        if not is_writable(name):
            raise TaskError.at(self.where, f"'{name}' cannot be a name in PDDL")
        return name.lower()

    def name(self, item: Any) -> str:
        return self.word(item.name)

    def types(self, kind: Any) -> tuple[str, ...]:
        return (self.name(kind),)

    def parameters(self, parameters: Iterable[Any]) -> tuple[Parameter, ...]:
        return tuple(Parameter(f"?{self.name(item)}", self.types(item.type)) for item in parameters)

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
            item, second = map(inner, node.args)
            return And((Imply(item, second), Imply(second, item)))
        if node.is_exists() or node.is_forall():
            return (Exists if node.is_exists() else Forall)(
                self.parameters(node.variables()), inner(node.arg(0))
            )
        if node.is_equals() and node.arg(0).type.is_user_type():
            left, right = (self.term(part, is_action=is_action) for part in node.args)
            return Equals(left, right)
        for sign, is_kind in (("<", node.is_lt), ("<=", node.is_le), ("=", node.is_equals)):
            if is_kind():
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
        for sign, is_kind in (
            ("+", node.is_plus),
            ("-", node.is_minus),
            ("*", node.is_times),
            ("/", node.is_div),
        ):
            if is_kind():
                parts = (self.expression(part, is_action=is_action) for part in node.args)
                return reduce(lambda left, right: Arithmetic(sign, (left, right)), parts)
        raise TaskError.at(self.where, f"tmkit has no numbers such as {node}")


def problem_to_unified(problem: Problem, environment: object = None) -> Any:
    """Return a task as a ``unified_planning.model.Problem``.

    Costs of a task whose metric is the length are omitted.

    Args:
        problem: the task.
        environment: environment of unified-planning. Defaults to the global one, which rejects a
            predicate and an action with the same name unless its flag ``error_used_name`` is off.

    Raises:
        TaskError: if unified-planning does not support the task: derived predicates, objects of
            several types, conditional costs, or the same name for an action and a predicate.
        TaskPlannerError: if the domain has uncontrollable actions.
        MissingExtraError: if unified-planning is not installed.
    """
    library = _load_library()
    require_controllable(problem, "unified-planning")
    try:
        result = _Export(library, problem, environment or library.get_environment()).build()
        assert result.kind is not None, "divides numbers that do not change"
        return result
    except (library.unified_planning.exceptions.UPException, ZeroDivisionError) as error:
        raise problem.error(f"unified-planning rejects it: {error}") from error


class _Export:
    def __init__(self, library: Any, problem: Problem, environment: Any) -> None:
        self.up, self.source, self.env = library, problem, environment
        self.make = environment.expression_manager
        self.fluents: dict[str, Any] = {}
        self.objects: dict[str, Any] = {}
        self.kinds: dict[str, Any] = {}

    def build(self) -> Any:
        source, domain, types = self.source, self.source.domain, self.env.type_manager
        if domain.axioms:
            raise source.error("unified-planning has no derived predicates")
        result = self.up.Problem(source.name, self.env)
        pending = list(domain.types)
        if _uses_root_type(source):
            self.kinds["object"] = types.UserType("object")
        while pending:
            kind = pending.pop(0)
            parent = self.single_type(kind.parents)
            if parent in self.kinds or parent == "object":
                self.kinds[kind.name] = types.UserType(kind.name, self.kinds.get(parent))
            else:
                pending.append(kind)
        for user_type in self.kinds.values():
            result._add_user_type(user_type)  # also those without objects
        for name, kinds in source.all_objects.items():
            self.objects[name] = result.add_object(name, self.kinds[self.single_type(kinds)])
        for predicate in domain.predicates:
            fluent = self.up.Fluent(
                predicate.name, types.BoolType(), self.signature(predicate.parameters), self.env
            )
            self.fluents[predicate.name] = result.add_fluent(fluent, default_initial_value=False)
        integer_functions = {
            name
            for action in domain.actions
            if action.timing
            for name in _functions(action.timing.duration)
        }
        integer_functions -= {
            term.predicate for term, value in source.values.items() if not value.is_integer()
        }
        for function in domain.functions:
            if function.name != TOTAL_COST:
                # engines lack real durations
                kind = types.IntType() if function.name in integer_functions else types.RealType()
                fluent = self.up.Fluent(
                    function.name, kind, self.signature(function.parameters), self.env
                )
                self.fluents[function.name] = result.add_fluent(fluent)
        costs = {}
        for action in domain.actions:
            unified_action, cost = (
                self.action(action)
                if action.timing is None
                else self.convert_durative(action, action.timing)
            )
            result.add_action(unified_action)
            if cost is not None:
                costs[unified_action] = cost
        for fact in source.init:
            result.set_initial_value(self.fluent(fact.predicate, fact.arguments, {}), True)
        for term, value in source.values.items():
            if term.predicate != TOTAL_COST:
                result.set_initial_value(
                    self.fluent(term.predicate, term.arguments, {}), self.number(value)
                )
        for part in _conjuncts(source.goal):
            result.add_goal(self.formula(part, {}))
        if source.metric is Metric.TOTAL_COST and domain.is_durative and not costs:
            result.add_quality_metric(self.up.MinimizeMakespan(environment=self.env))
        elif source.metric is Metric.TOTAL_COST:
            result.add_quality_metric(self.up.MinimizeActionCosts(costs, environment=self.env))
        return result

    def single_type(self, kinds: tuple[str, ...]) -> str:
        if len(kinds) != 1:
            raise self.source.error(
                f"unified-planning has no objects of several types: (either {' '.join(kinds)})"
            )
        return kinds[0]

    def signature(self, parameters: Iterable[Parameter]) -> OrderedDict[str, Any]:
        return OrderedDict(
            (item.name.removeprefix("?"), self.kinds[self.single_type(item.types)])
            for item in parameters
        )

    def action(self, action: Action) -> tuple[Any, Any]:
        result = self.up.InstantaneousAction(
            action.name, self.signature(action.parameters), self.env
        )
        scope = {f"?{item.name}": self.make.ParameterExp(item) for item in result.parameters}
        for part in _conjuncts(action.precondition):
            result.add_precondition(self.formula(part, scope))
        costs: list[Any] = []
        self.effects(result, action.effect, scope, costs)
        return result, reduce(self.make.Plus, costs) if costs else None

    def convert_durative(self, action: Action, timing: Timing) -> tuple[Any, Any]:
        result = self.up.DurativeAction(action.name, self.signature(action.parameters), self.env)
        scope = {f"?{item.name}": self.make.ParameterExp(item) for item in result.parameters}
        result.set_fixed_duration(self.expression(timing.duration, scope))
        start, end, costs = self.up.StartTiming(), self.up.EndTiming(), list[Any]()
        spans = (start, self.up.OpenTimeInterval(start, end), end)
        for interval, needs in zip(
            spans, (timing.at_start, timing.over_all, timing.at_end), strict=True
        ):
            for part in _conjuncts(needs):
                result.add_condition(interval, self.formula(part, scope))
        for time, effect in ((start, timing.start), (end, timing.end)):
            self.effects(result, effect, scope, costs, when=(time,))
        return result, reduce(self.make.Plus, costs) if costs else None

    def effects(
        self,
        result: Any,
        effect: Effect,
        scope: Mapping[str, Any],
        costs: list[Any],
        variables: tuple[Any, ...] = (),
        conditions: tuple[Any, ...] = (),
        when: tuple[Any, ...] = (),
    ) -> None:
        """Add the atomic effects of an effect, with its enclosing conditions and quantifiers."""
        match effect:
            case EffectAnd(parts):
                for part in parts:
                    self.effects(result, part, scope, costs, variables, conditions, when)
            case When(condition, inner):
                unified_condition = self.formula(condition, scope)
                self.effects(
                    result, inner, scope, costs, variables, (*conditions, unified_condition), when
                )
            case ForEach(parameters, inner):
                quantified, scope = self.scope(parameters, scope)
                self.effects(
                    result, inner, scope, costs, (*variables, *quantified), conditions, when
                )
            case IncreaseCost(amount):
                if variables or conditions:
                    raise self.source.error(
                        f"unified-planning has no costs with conditions or quantifiers: {effect}"
                    )
                costs.append(self.expression(amount, scope))
            case Add(atom) | Delete(atom):
                fluent = self.fluent(atom.predicate, atom.terms, scope)
                holds = self.make.And(*conditions) if conditions else True
                result.add_effect(*when, fluent, isinstance(effect, Add), holds, forall=variables)
            case ChangeNumber(sign, term, amount):
                fluent, value = self.expression(term, scope), self.expression(amount, scope)
                holds = self.make.And(*conditions) if conditions else True
                if sign in ("scale-up", "scale-down"):
                    value = (self.make.Times if sign == "scale-up" else self.make.Div)(
                        fluent, value
                    )
                kind = {
                    "increase": result.add_increase_effect,
                    "decrease": result.add_decrease_effect,
                }
                kind.get(sign, result.add_effect)(*when, fluent, value, holds, forall=variables)

    def scope(
        self, parameters: Iterable[Parameter], outer: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        quantified = tuple(
            self.up.Variable(n, kind, self.env) for n, kind in self.signature(parameters).items()
        )
        return quantified, {
            **outer,
            **{f"?{item.name}": self.make.VariableExp(item) for item in quantified},
        }

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
                quantified, inner = self.scope(parameters, scope)
                kind = make.Exists if isinstance(formula, Exists) else make.Forall
                return kind(self.formula(body, inner), *quantified)
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
                result = [self.expression(part, scope) for part in parts]
                if len(result) == 1:
                    result.insert(0, self.make.Int(0))
                return getattr(self.make, _ARITHMETIC[sign])(*result)


def _join_formulas(parts: Sequence[Formula]) -> Formula:
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], And) else And(tuple(parts))


def _functions(length: Expression) -> set[str]:
    parts = length.parts if isinstance(length, Arithmetic) else ()
    return (
        {length.name} if isinstance(length, FunctionTerm) else set().union(*map(_functions, parts))
    )


def _join_effects(parts: Sequence[Effect]) -> Effect:
    return parts[0] if len(parts) == 1 else EffectAnd(tuple(parts))


def _conjuncts(formula: Formula) -> tuple[Formula, ...]:
    return formula.parts if isinstance(formula, And) else (formula,)


def _uses_root_type(problem: Problem) -> bool:
    """Return whether the root type occurs; unified-planning requires its declaration then."""
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
