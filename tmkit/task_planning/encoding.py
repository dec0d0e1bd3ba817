"""Encoding of problems in the PDDL subset of Fast Downward.

Fast Downward's translator accepts less than this package. It rejects ``either`` in most places and
numeric comparisons. Costs must be integers, and names lower-case ASCII. An :class:`Encoding` is an
equivalent problem within these limits, and the map from its names to the original ones:

* names that PDDL does not allow become ``o--1``, ``o--2`` and so on;
* if ``either`` occurs, types become static predicates (``type--block``), which guard parameters;
* costs are multiplied by the smallest power of ten that makes them integers;
* an effect with a nested universal effect is split into single effects.

A problem that needs none of these changes is written unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from tmkit.errors import TaskPlannerError
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
    Exists,
    Fact,
    Forall,
    ForEach,
    Formula,
    FunctionTerm,
    Imply,
    IncreaseCost,
    Number,
    Or,
    Parameter,
    When,
    simple_effects,
)
from tmkit.pddl.model import Domain, Metric, Problem
from tmkit.pddl.state import State
from tmkit.pddl.substitution import map_parts, substitute, subtrees
from tmkit.pddl.vocabulary import Predicate, Types
from tmkit.pddl.writer import domain_to_pddl, is_writable, problem_to_pddl

_Tree = TypeVar("_Tree", bound=Formula | Effect)


@dataclass(frozen=True)
class Encoding:
    """Texts of a problem for Fast Downward, and original object names by their new names."""

    domain_text: str
    problem_text: str
    names: Mapping[str, str]


def encode(problem: Problem) -> Encoding:
    """Return an equivalent problem that Fast Downward accepts.

    Raises:
        TaskPlannerError: if there is none, for example because numbers are compared or changed.
    """
    for place, construct in _find_unsupported(problem):
        reason = f"{place}: Fast Downward's translator cannot handle {construct}"
        raise TaskPlannerError(
            f"{reason}; tmkit.task_planning.UnifiedPlanner may plan with it", command=(), output=""
        )
    names = {
        old: f"o--{count}"
        for count, old in enumerate(problem.objects, start=1)
        if not _is_plain(old)
    }
    renamed = _make_costs_whole(_rename_objects(problem, names))
    plain = _replace_types(renamed) if _uses_either(renamed) else renamed
    actions = tuple(
        replace(action, effect=_split_effect(action)) for action in plain.domain.actions
    )
    domain = replace(plain.domain, name="domain", requirements=(), actions=actions)
    goal = plain.goal if isinstance(plain.goal, And) else And((plain.goal,))
    written = copy_of(plain, name="problem", domain=domain, goal=goal)
    back = {new: old for old, new in names.items()}
    return Encoding(domain_to_pddl(domain), problem_to_pddl(written), back)


def with_uncontrollable_actions(problem: Problem) -> Problem:
    """Return a problem whose plans may also contain the uncontrollable actions."""
    domain = problem.domain
    if not domain.uncontrollable_actions:
        return problem
    actions = (*domain.actions, *domain.uncontrollable_actions)
    return copy_of(problem, domain=replace(domain, actions=actions, uncontrollable_actions=()))


def _is_plain(name: str) -> bool:
    return (
        is_writable(name) and name.isascii() and name == name.lower() and not name.startswith("o--")
    )


def copy_of(
    problem: Problem,
    *,
    name: str | None = None,
    domain: Domain | None = None,
    objects: Mapping[str, str | Types] | None = None,
    init: State | None = None,
    goal: Formula | None = None,
    values: Mapping[Fact, float] | None = None,
) -> Problem:
    """Return a copy of a problem with some parts replaced."""
    return Problem(
        problem.name if name is None else name,
        problem.domain if domain is None else domain,
        objects=problem.objects if objects is None else objects,
        init=problem.init if init is None else init,
        goal=problem.goal if goal is None else goal,
        metric=problem.metric,
        values=problem.values if values is None else values,
    )


def _rename_objects(problem: Problem, names: Mapping[str, str]) -> Problem:
    if not names:
        return problem

    def fact(old: Fact) -> Fact:
        return Fact(
            old.predicate, tuple(names.get(argument, argument) for argument in old.arguments)
        )

    return copy_of(
        problem,
        objects={names.get(name, name): types for name, types in problem.objects.items()},
        init=State(map(fact, problem.init)),
        goal=substitute(problem.goal, names),
        values={fact(term): value for term, value in problem.values.items()},
    )


def _make_costs_whole(problem: Problem) -> Problem:
    """Return the problem with integer costs, or without costs if the metric is the length."""
    domain = problem.domain
    if problem.metric is not Metric.TOTAL_COST:
        free = replace(
            domain,
            actions=tuple(replace(a, effect=_scale_costs(a.effect, None)) for a in domain.actions),
        )
        return copy_of(problem, domain=free, values={})
    amounts = [amount for action in domain.actions for amount in _cost_amounts(action.effect)]
    used = {amount.name for amount in amounts if isinstance(amount, FunctionTerm)}
    values = {term: value for term, value in problem.values.items() if term.predicate in used}
    constants = [amount.value for amount in amounts if isinstance(amount, Number)]
    factor = _common_factor([*values.values(), *constants])
    actions = tuple(
        replace(action, effect=_scale_costs(action.effect, factor)) for action in domain.actions
    )
    whole = {term: float(Fraction(str(value)) * factor) for term, value in values.items()}
    return copy_of(problem, domain=replace(domain, actions=actions), values=whole)


def _cost_amounts(effect: Effect) -> Iterator[Number | FunctionTerm]:
    match effect:
        case IncreaseCost(Number() | FunctionTerm() as amount):
            yield amount
        case EffectAnd(parts):
            for part in parts:
                yield from _cost_amounts(part)


def _common_factor(values: list[float]) -> int:
    factor = 1
    for value in values:
        while (Fraction(str(value)) * factor).denominator != 1:
            factor *= 10
    return factor


def _scale_costs(effect: Effect, factor: int | None) -> Effect:
    """Return the effect with its constant costs multiplied, or removed if ``factor`` is None."""
    match effect:
        case IncreaseCost() if factor is None:
            return EffectAnd()
        case IncreaseCost(Number(value)) if factor is not None:
            return IncreaseCost(Number(float(Fraction(str(value)) * factor)))
        case _:
            return map_parts(effect, lambda part: _scale_costs(part, factor))


def _uses_either(problem: Problem) -> bool:
    domain = problem.domain
    lists = [domain.constants, *(axiom.parameters for axiom in domain.axioms)]
    lists += [action.parameters for action in domain.actions]
    parameters = [parameter for group in lists for parameter in group]
    parameters += [
        part
        for tree in _list_trees(problem)
        for part in subtrees(tree)
        if isinstance(part, Parameter)
    ]
    types = [*problem.objects.values(), *(kind.parents for kind in domain.types)]
    return any(len(names) > 1 for names in (*types, *(parameter.types for parameter in parameters)))


def _type_guards(parameters: tuple[Parameter, ...]) -> tuple[Formula, ...]:
    """Return conditions on static predicates equivalent to the types of ``parameters``."""
    typed_parameters = [item for item in parameters if "object" not in item.types]
    choices = [
        [Atom(f"type--{kind}", (item.name,)) for kind in item.types] for item in typed_parameters
    ]
    return tuple(atoms[0] if len(atoms) == 1 else Or(tuple(atoms)) for atoms in choices)


def _strip_types(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    return tuple(Parameter(parameter.name) for parameter in parameters)


def _replace_types(problem: Problem) -> Problem:
    """Return the problem with a static predicate in place of each type."""
    domain, vocabulary = problem.domain, problem.vocabulary
    kinds = [Predicate(f"type--{kind.name}", (Parameter("?x"),)) for kind in domain.types]
    untyped = Domain(
        domain.name,
        constants=_strip_types(domain.constants),
        predicates=(
            *(Predicate(item.name, _strip_types(item.parameters)) for item in domain.predicates),
            *kinds,
        ),
        functions=tuple(
            replace(item, parameters=_strip_types(item.parameters)) for item in domain.functions
        ),
        actions=tuple(
            replace(
                action,
                parameters=_strip_types(action.parameters),
                precondition=And(
                    (*_type_guards(action.parameters), _guard_quantifiers(action.precondition))
                ),
                effect=_guard_quantifiers(action.effect),
            )
            for action in domain.actions
        ),
        axioms=tuple(
            replace(
                axiom,
                parameters=_strip_types(axiom.parameters),
                condition=And(
                    (*_type_guards(axiom.parameters), _guard_quantifiers(axiom.condition))
                ),
            )
            for axiom in domain.axioms
        ),
    )
    memberships = {
        Fact(f"type--{kind}", (name,))
        for name, types in problem.all_objects.items()
        for direct in types
        for kind in vocabulary.ancestors(direct) - {"object"}
    }
    return copy_of(
        problem,
        domain=untyped,
        objects=dict.fromkeys(problem.objects, "object"),
        init=problem.init.change(add=memberships),
        goal=_guard_quantifiers(problem.goal),
    )


def _guard_quantifiers(tree: _Tree) -> _Tree:
    """Return a formula or an effect with the types of its quantifiers turned into conditions."""
    match tree:
        case Exists(parameters, body):
            return type(tree)(
                _strip_types(parameters), And((*_type_guards(parameters), _guard_quantifiers(body)))
            )
        case Forall(parameters, body):
            return type(tree)(
                _strip_types(parameters),
                Imply(And(_type_guards(parameters)), _guard_quantifiers(body)),
            )
        case ForEach(parameters, inner):
            return type(tree)(
                _strip_types(parameters),
                When(And(_type_guards(parameters)), _guard_quantifiers(inner)),
            )
        case _:
            guarded: _Tree = map_parts(tree, _guard_quantifiers)
            return guarded


def _split_effect(action: Action) -> Effect:
    """Return the effect of an action, split into quantified conditional effects if nested."""
    if not _is_nested(action.effect):
        return action.effect
    taken = {parameter.name: parameter.name for parameter in action.parameters}
    return EffectAnd(tuple(_single_effects(action.effect, taken)))


def _is_nested(effect: Effect, *, inside: bool = False) -> bool:
    """Return whether there is a universal effect inside a conditional or universal one."""
    match effect:
        case EffectAnd(parts):
            return any(_is_nested(part, inside=inside) for part in parts)
        case When(_, inner):
            return _is_nested(inner, inside=True)
        case ForEach(_, inner):
            return inside or _is_nested(inner, inside=True)
        case _:
            return False


def _single_effects(
    effect: Effect,
    names: Mapping[str, str],
    parameters: tuple[Parameter, ...] = (),
    conditions: tuple[Formula, ...] = (),
) -> Iterator[Effect]:
    """Yield each atomic effect with its quantifiers and conditions.

    Args:
        effect: the effect to split.
        names: new name of each variable in scope, such that no variable hides another.
        parameters: parameters of the enclosing quantifiers.
        conditions: conditions of the enclosing effects.
    """
    match effect:
        case EffectAnd(parts):
            for part in parts:
                yield from _single_effects(part, names, parameters, conditions)
        case When(condition, inner):
            yield from _single_effects(
                inner, names, parameters, (*conditions, substitute(condition, names))
            )
        case ForEach(variables, inner):
            new = {item.name: _find_unused_name(item.name, names) for item in variables}
            fresh = tuple(Parameter(new[item.name], item.types) for item in variables)
            yield from _single_effects(inner, {**names, **new}, parameters + fresh, conditions)
        case Add(atom) | Delete(atom):
            single: Effect = type(effect)(
                Atom(atom.predicate, tuple(names.get(term, term) for term in atom.terms))
            )
            single = When(And(conditions), single) if conditions else single
            yield ForEach(parameters, single) if parameters else single
        case IncreaseCost() | ChangeNumber():
            yield effect


def _find_unused_name(name: str, names: Mapping[str, str]) -> str:
    used = {*names, *names.values()}
    return next(
        new
        for new in (name, *(f"{name}--{count}" for count in range(1, len(used) + 2)))
        if new not in used
    )


def _list_trees(problem: Problem) -> list[Formula | Effect]:
    """Return the goal, and all conditions and effects of the domain."""
    domain = problem.domain
    conditions: list[Formula] = [problem.goal, *(action.precondition for action in domain.actions)]
    conditions += [axiom.condition for axiom in domain.axioms]
    return [*conditions, *(action.effect for action in domain.actions)]


def _find_unsupported(problem: Problem) -> Iterator[tuple[str, str]]:
    """Yield the place and description of each construct that Fast Downward does not support."""
    domain, has_costs = problem.domain, problem.metric is Metric.TOTAL_COST
    file = domain.source or f"domain '{domain.name}'"
    for name in (
        item.name
        for declarations in (domain.types, domain.predicates, domain.actions)
        for item in declarations
    ):
        if not name.isascii():
            yield file, f"the name '{name}', which has letters beyond ASCII"
    for action in domain.actions:
        place = (
            f"{file}:{action.line}: action '{action.name}'"
            if action.line
            else f"{file}: action '{action.name}'"
        )
        for part in (*subtrees(action.precondition), *subtrees(action.effect)):
            match part:
                case ChangeNumber():
                    yield place, f"the change of a number {part}"
                case Comparison():
                    yield place, f"the numeric comparison {part}"
                case IncreaseCost(Arithmetic() as amount) if has_costs:
                    yield place, f"the computed cost {amount}"
                case IncreaseCost(Number(value)) if has_costs and (fault := _cost_fault(value)):
                    yield place, fault
                case When(_, inner) | ForEach(_, inner) if has_costs:
                    if any(isinstance(item, IncreaseCost) for item in simple_effects(inner)):
                        yield place, "a cost that depends on a condition"
    for tree in (problem.goal, *(axiom.condition for axiom in domain.axioms)):
        tree_place = problem.source or f"problem '{problem.name}'" if tree is problem.goal else file
        yield from (
            (tree_place, f"the numeric comparison {part}")
            for part in subtrees(tree)
            if isinstance(part, Comparison)
        )
    amounts = (
        amount for action in domain.actions for amount in _cost_amounts(action.effect) if has_costs
    )
    used = {amount.name for amount in amounts if isinstance(amount, FunctionTerm)}
    for term, value in problem.values.items():
        if term.predicate in used and (fault := _cost_fault(value)):
            yield problem.source or f"problem '{problem.name}'", f"{fault} of {term}"


def _cost_fault(value: float) -> str:
    if not 0 <= value < 1e9:
        return f"the cost {value:g}"
    return f"the cost {value}, which has more than six decimals" * (
        (Fraction(str(value)) * 10**6).denominator != 1
    )
