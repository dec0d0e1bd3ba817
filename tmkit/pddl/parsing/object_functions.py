"""Functions whose values are objects, as ``(:functions (position ?x - block) - place)``.

They are read as predicates whose last argument is the value: ``(= (position a) table)`` is ``(position a table)``, and
``(assign (position a) table)`` deletes all other values. The value ``undefined`` is that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tmkit.pddl.formulas import Parameter
from tmkit.pddl.parsing.source import Group, Token
from tmkit.pddl.vocabulary import Predicate, Types

UNDEFINED = "undefined"


def split_functions(section: Group) -> tuple[Group, list[Group]]:
    """Return the section of functions without those of objects, and these as declarations of predicates."""
    kept: list[Token | Group] = [section.parts[0]]
    moved: list[Group] = []
    waiting: list[Token | Group] = []
    parts = iter(section.parts[1:])
    for part in parts:
        if not (isinstance(part, Token) and part.text == "-"):
            waiting.append(part)
            continue
        kind = next(parts, None)
        lists = all(isinstance(one, Group) and one.parts for one in waiting)
        if kind is None or (isinstance(kind, Token) and kind.text == "number") or not lists:
            kept += [*waiting, part, *([] if kind is None else [kind])]
        else:
            value = part._replace(text="?value")
            moved += [one._replace(parts=(*one.parts, value, part, kind)) for one in waiting if isinstance(one, Group)]
        waiting = []
    return section._replace(parts=(*kept, *waiting)), moved


def as_functions(predicates: tuple[Predicate, ...], names: frozenset[str]) -> tuple[Predicate, ...]:
    """Return predicates, of which those of these names are functions."""
    return tuple(replace(one, is_function=True) if one.name in names else one for one in predicates)


def is_call(part: Token | Group, predicates: Mapping[str, Predicate]) -> bool:
    """Return whether a part applies a function of objects."""
    return isinstance(part, Group) and part.head in predicates and predicates[part.head].is_function


def function_first(group: Group, predicates: Mapping[str, Predicate]) -> Group:
    """Return ``(= VALUE (FUNCTION TERM...))`` with the function before its value; other lists as they are.

    Args:
        group: a list.
        predicates: the predicates, functions of objects among them.
    """
    parts = group.parts
    if group.head == "=" and len(parts) == 3 and isinstance(parts[1], Token) and is_call(parts[2], predicates):
        return group._replace(parts=(parts[0], parts[2], parts[1]))
    return group


def with_value(call: Group, value: Token) -> Group:
    """Return the atom that a function has a value.

    Args:
        call: the function with its arguments.
        value: the value.
    """
    return call._replace(parts=(*call.parts, value))


def fresh(types: Types, scope: Mapping[str, Types]) -> Parameter:
    """Return a variable of some types that a scope lacks."""
    name = "?value"
    while name in scope:
        name += "-"
    return Parameter(name, types)
