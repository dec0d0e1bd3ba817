"""PDDL text of domains and problems.

The writer keeps each formula as it was read and only normalises the layout. Reading the text again
gives an equal value, with names in lower case. Outcomes and durative actions are written as the
plain actions that the reader makes of them.

Names are checked, because PDDL cannot quote a name. A name with a blank or a parenthesis is
rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tmkit.errors import TaskError
from tmkit.pddl.formulas import Action, Axiom, Number, Parameter, format_typed_list
from tmkit.pddl.model import Domain, Metric, Problem

_WRITABLE_NAME = re.compile(r"(?!(?:[=*/+-]|[<>]=?)\Z)(?!-[^\W\d_])[^\s();?:][^\s();?]*\Z")
"""A name that is not an operator, ``?variable``, ``:keyword`` or ``-type``."""


def is_writable(name: str) -> bool:
    """Return whether ``name`` can be written as a PDDL name."""
    return _WRITABLE_NAME.match(name) is not None


def domain_to_pddl(domain: Domain) -> str:
    """Return the PDDL text of a domain.

    Raises:
        TaskError: if a name cannot be written.
    """
    names = [domain.name]
    names += [kind.name for kind in domain.types]
    names += [constant.name for constant in domain.constants]
    names += [predicate.name for predicate in domain.predicates]
    names += [function.name for function in domain.functions]
    names += [action.name for action in (*domain.actions, *domain.uncontrollable_actions)]
    _check_names(names, f"domain '{domain.name}'")
    types = tuple(Parameter(kind.name, kind.parents) for kind in domain.types)
    sections = [
        _section(":requirements", domain.requirements),
        _section(":types", [format_typed_list(types)] if types else []),
        _section(":constants", [format_typed_list(domain.constants)] if domain.constants else []),
        _section(
            ":predicates", [_signature(item.name, item.parameters) for item in domain.predicates]
        ),
        _section(
            ":functions",
            [f"{_signature(item.name, item.parameters)} - number" for item in domain.functions],
        ),
        *map(_axiom, domain.axioms),
        *map(_action, domain.actions),
        *(_action(action, " :uncontrollable t") for action in domain.uncontrollable_actions),
    ]
    return _define(f"(domain {domain.name})", sections)


def problem_to_pddl(problem: Problem) -> str:
    """Return the PDDL text of a problem.

    Raises:
        TaskError: if a name cannot be written.
    """
    _check_names([problem.name, *problem.objects], f"problem '{problem.name}'")
    objects = tuple(Parameter(name, types) for name, types in problem.objects.items())
    values = [f"(= {term} {Number(value)})" for term, value in problem.values.items()]
    sections = [
        f"(:domain {problem.domain.name})",
        _section(":objects", [format_typed_list(objects)] if objects else []),
        "\n    ".join(["(:init", *map(str, problem.init), *values]) + ")",
        f"(:goal {problem.goal})",
        "(:metric minimize (total-cost))" if problem.metric is Metric.TOTAL_COST else "",
    ]
    return _define(f"(problem {problem.name})", sections)


def _define(header: str, sections: Iterable[str]) -> str:
    return "\n  ".join([f"(define {header}", *filter(None, sections)]) + ")\n"


def _section(keyword: str, items: Iterable[str]) -> str:
    content = " ".join(items)
    return f"({keyword} {content})" if content else ""


def _signature(name: str, parameters: tuple[Parameter, ...]) -> str:
    return f"({name} {format_typed_list(parameters)})" if parameters else f"({name})"


def _axiom(axiom: Axiom) -> str:
    return f"(:derived {_signature(axiom.predicate, axiom.parameters)}\n    {axiom.condition})"


def _action(action: Action, keywords: str = "") -> str:
    return (
        f"(:action {action.name}{keywords}"
        f"\n    :parameters ({format_typed_list(action.parameters)})"
        f"\n    :precondition {action.precondition}\n    :effect {action.effect})"
    )


def _check_names(names: Iterable[str], where: str) -> None:
    for name in names:
        if not is_writable(name):
            raise TaskError.at(where, f"'{name}' cannot be written as a PDDL name")
