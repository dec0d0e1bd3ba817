"""Writing domains and problems as PDDL.

The idea: what is written is what was read, formula by formula; only the layout is ours. Reading the
text again gives an equal value (names in lower case). Outcomes and durative actions are written as
the actions that they are read as.

Names are checked, because PDDL has no way to quote one: a name with a blank or a parenthesis is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tmkit.errors import TaskError
from tmkit.pddl.formulas import Action, Axiom, Number, Parameter, typed_list
from tmkit.pddl.model import Domain, Metric, Problem

# no sign, ?x, :key, -type
_WRITABLE = re.compile(r"(?!(?:[=*/+-]|[<>]=?)\Z)(?!-[^\W\d_])[^\s();?:][^\s();?]*\Z")


def is_writable(name: str) -> bool:
    """Return whether ``name`` can be written as a PDDL name."""
    return _WRITABLE.match(name) is not None


def domain_to_pddl(domain: Domain) -> str:
    """Return the PDDL text of a domain.

    Raises:
        TaskError: a name that cannot be written.
    """
    names = [kind.name for kind in domain.types] + [constant.name for constant in domain.constants]
    names += [predicate.name for predicate in domain.predicates] + [
        function.name for function in domain.functions
    ]
    _check(
        [domain.name, *names, *(action.name for action in domain.actions)],
        f"domain '{domain.name}'",
    )
    types = tuple(Parameter(kind.name, kind.parents) for kind in domain.types)
    sections = [
        _section(":requirements", domain.requirements),
        _section(":types", [typed_list(types)] if types else []),
        _section(":constants", [typed_list(domain.constants)] if domain.constants else []),
        _section(
            ":predicates", [_signature(item.name, item.parameters) for item in domain.predicates]
        ),
        _section(
            ":functions",
            [f"{_signature(item.name, item.parameters)} - number" for item in domain.functions],
        ),
        *map(_axiom, domain.axioms),
        *map(_action, domain.actions),
    ]
    return _define(f"(domain {domain.name})", sections)


def problem_to_pddl(problem: Problem) -> str:
    """Return the PDDL text of a problem.

    Raises:
        TaskError: a name that cannot be written.
    """
    _check([problem.name, *problem.objects], f"problem '{problem.name}'")
    objects = tuple(Parameter(name, types) for name, types in problem.objects.items())
    values = [f"(= {term} {Number(value)})" for term, value in problem.values.items()]
    sections = [
        f"(:domain {problem.domain.name})",
        _section(":objects", [typed_list(objects)] if objects else []),
        "\n    ".join(["(:init", *map(str, problem.init), *values]) + ")",
        f"(:goal {problem.goal})",
        "(:metric minimize (total-cost))" if problem.metric is Metric.TOTAL_COST else "",
    ]
    return _define(f"(problem {problem.name})", sections)


def _define(header: str, sections: Iterable[str]) -> str:
    return "\n  ".join([f"(define {header}", *filter(None, sections)]) + ")\n"


def _section(keyword: str, items: Iterable[str]) -> str:
    listed = list(items)
    return f"({keyword} {' '.join(listed)})" if listed else ""


def _signature(name: str, parameters: tuple[Parameter, ...]) -> str:
    return f"({name} {typed_list(parameters)})" if parameters else f"({name})"


def _axiom(axiom: Axiom) -> str:
    return f"(:derived {_signature(axiom.predicate, axiom.parameters)}\n    {axiom.condition})"


def _action(action: Action) -> str:
    return (
        f"(:action {action.name}\n    :parameters ({typed_list(action.parameters)})"
        f"\n    :precondition {action.precondition}\n    :effect {action.effect})"
    )


def _check(names: Iterable[str], where: str) -> None:
    for name in names:
        if not is_writable(name):
            raise TaskError.at(where, f"'{name}' cannot be written as a PDDL name")
