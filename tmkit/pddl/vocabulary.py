"""Symbol table of a domain or problem, and type checks of formulas and effects.

PDDL from a file and PDDL built in Python follow the same rules, but only the file has lines and
columns. Every check therefore returns ``None`` or a :class:`Fault`, which is a reason and a
position *within the list*. The parser converts the position to a line and column; the constructors
of the model raise an error without one.

Types form a hierarchy with the root ``object``; a type may have several parents (``either``). A
term is allowed for a type if *each* of its types is that type or a subtype of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, TypeAlias

from tmkit.errors import UnknownNameError
from tmkit.pddl import formulas
from tmkit.pddl.substitution import parts_of

TOTAL_COST = "total-cost"
"""Numeric function of the total cost of a plan."""

MAX_TYPE_DEPTH = 500
"""Largest depth of the type hierarchy; published domains stay below 10."""

Types = tuple[str, ...]
"""Types of an object, of which it has any; nearly always one."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type and its parents in the hierarchy; the root ``object`` is never declared."""

    name: str
    parents: Types = ("object",)


@dataclass(frozen=True, slots=True)
class Predicate:
    """Predicate: its name and typed parameters. A call with terms returns an atom.

    With ``is_function`` it stands for a function with an object as its value, the last argument.
    """

    name: str
    parameters: tuple[formulas.Parameter, ...] = ()
    is_function: bool = field(default=False, compare=False)

    def __call__(self, *terms: str) -> formulas.Atom:
        """Return the atom of this predicate with variables or objects as arguments."""
        return formulas.Atom(self.name, terms)

    def fact(self, *objects: str) -> formulas.Fact:
        """Return the fact of this predicate with objects as arguments."""
        return formulas.Fact(self.name, objects)


@dataclass(frozen=True, slots=True)
class Function:
    """Numeric function: its name and typed parameters."""

    name: str
    parameters: tuple[formulas.Parameter, ...] = ()


Signature: TypeAlias = Predicate | Function | formulas.Action
"""Declaration with a name and typed parameters."""


class Fault(NamedTuple):
    """Fault of a list.

    Attributes:
        reason: message.
        word: position of the fault: 0 for the first word of the list, ``i`` for its ``i``-th
            argument.
    """

    reason: str
    word: int = 0


Variables = Mapping[str, Types]


class Vocabulary:
    """Declared names by kind.

    Args:
        types: declared types, without ``object``.
        predicates: predicates, including the derived ones.
        functions: numeric functions.
        objects: types of objects and constants, by name.
    """

    def __init__(
        self,
        types: Iterable[Type],
        *,
        predicates: Iterable[Predicate],
        functions: Iterable[Function],
        objects: Mapping[str, Types],
    ) -> None:
        self.parents: dict[str, Types] = {"object": ()} | {
            kind.name: kind.parents for kind in types
        }
        self.predicates = {predicate.name: predicate for predicate in predicates}
        self.functions = {function.name: function for function in functions}
        self.objects = objects
        self._ancestors: dict[str, frozenset[str]] = {}
        self._allowed: dict[tuple[Types, Types], bool] = {}

    def ancestors(self, name: str) -> frozenset[str]:
        """Return a type and all its supertypes."""
        if name not in self._ancestors:
            pending, types = [name], {"object"}
            while pending:
                current = pending.pop()
                if current not in types:
                    types.add(current)
                    pending.extend(self.parents.get(current, ()))
            self._ancestors[name] = frozenset(types)
        return self._ancestors[name]

    def is_allowed_as(self, types: Types, required: Types) -> bool:
        """Return whether an object of ``types`` is allowed for a parameter of type ``required``."""
        if types == required or "object" in required:
            return True
        if (types, required) not in self._allowed:
            self._allowed[types, required] = all(
                not self.ancestors(kind).isdisjoint(required) for kind in types
            )
        return self._allowed[types, required]

    def objects_of(self, types: Types) -> tuple[str, ...]:
        """Return the objects of any of ``types``, in the order of declaration."""
        if "object" in types:
            return tuple(self.objects)
        return tuple(
            name
            for name, kinds in self.objects.items()
            if any(not self.ancestors(kind).isdisjoint(types) for kind in kinds)
        )

    def type_fault(self, name: str) -> Fault | None:
        """Return the fault of ``name`` as a type, ``None`` if it is declared."""
        return None if name in self.parents else Fault(_unknown_name("type", name, self.parents))

    def hierarchy_fault(self) -> tuple[str, Fault] | None:
        """Return the first faulty type and its fault, ``None`` if the hierarchy is valid.

        A type is faulty if it is its own supertype, has an unknown parent, or is too deep.
        """
        for name, parents in self.parents.items():
            if fault := _first_fault(map(self.type_fault, parents)):
                return name, fault
        levels = TopologicalSorter(self.parents)
        try:
            levels.prepare()
        except CycleError as error:
            first = next(name for name in self.parents if name in error.args[1])
            return first, Fault(f"type '{first}' is above itself in the hierarchy")
        for _ in range(MAX_TYPE_DEPTH + 1):
            levels.done(*levels.get_ready())
        for name in levels.get_ready():
            return name, Fault(
                f"type '{name}' has more than {MAX_TYPE_DEPTH} types above each other"
            )
        return None

    def atom_fault(self, name: str, terms: tuple[str, ...], variables: Variables) -> Fault | None:
        """Return the fault of the atom ``(name *terms)``, or None."""
        predicate = self.predicates.get(name)
        if predicate is None:
            return Fault(_unknown_name("predicate", name, self.predicates))
        return self.call_fault("predicate", predicate, terms, variables)

    def function_fault(
        self, name: str, terms: tuple[str, ...], variables: Variables
    ) -> Fault | None:
        """Return the fault of the function term ``(name *terms)``, or None."""
        function = self.functions.get(name)
        if function is None and name == TOTAL_COST:
            function = Function(TOTAL_COST)  # many published domains do not declare it
        if function is None:
            return Fault(_unknown_name("function", name, self.functions))
        return self.call_fault("function", function, terms, variables)

    def term_fault(self, term: str, variables: Variables) -> Fault | None:
        """Return the fault of a term, or None."""
        if formulas.is_variable(term):
            return None if term in variables else Fault(_unknown_name("variable", term, variables))
        return None if term in self.objects else Fault(_unknown_name("object", term, self.objects))

    def call_fault(
        self, kind: str, signature: Signature, terms: tuple[str, ...], variables: Variables
    ) -> Fault | None:
        """Return the fault of the arguments of a predicate, function or action, or None."""
        expected = len(signature.parameters)
        if len(terms) != expected:
            plural = "" if expected == 1 else "s"
            number = f"{len(terms)} {'was' if len(terms) == 1 else 'were'} given"
            reason = f"{kind} '{signature.name}' takes {expected} argument{plural}, but {number}"
            return Fault(reason, min(len(terms), expected + 1))
        for word, (term, parameter) in enumerate(
            zip(terms, signature.parameters, strict=True), start=1
        ):
            types = (variables if term[:1] == "?" else self.objects).get(term)
            if types is None:
                fault = self.term_fault(term, variables)
                return Fault(fault.reason, word) if fault else None
            if not self.is_allowed_as(types, parameter.types):
                place = f"argument {word} of {kind} '{signature.name}'"
                reason = (
                    f"{place} must be of type {' or '.join(parameter.types)}, but '{term}' is of"
                    f" type {' or '.join(types)}"
                )
                return Fault(reason, word)
        return None

    def formula_fault(
        self, formula: formulas.Formula | formulas.Expression, variables: Variables
    ) -> Fault | None:
        """Return the first fault of a formula, or None."""
        match formula:
            case formulas.Atom(predicate, terms):
                return self.atom_fault(predicate, terms, variables)
            case formulas.FunctionTerm(name, terms):
                return self.function_fault(name, terms, variables)
            case formulas.Equals(left, right):
                return self.term_fault(left, variables) or self.term_fault(right, variables)
            case formulas.Exists(parameters, body) | formulas.Forall(parameters, body):
                inner = {
                    **variables,
                    **{parameter.name: parameter.types for parameter in parameters},
                }
                return self.parameters_fault(parameters) or self.formula_fault(body, inner)
            case _:
                return _first_fault(
                    self.formula_fault(part, variables) for part in parts_of(formula)
                )

    def effect_fault(
        self, effect: formulas.Effect, variables: Variables, derived: frozenset[str]
    ) -> Fault | None:
        """Return the first fault of an effect, or None.

        Args:
            effect: effect to check.
            variables: types of the free variables.
            derived: predicates that must not be added or deleted.
        """
        match effect:
            case formulas.Add(atom) | formulas.Delete(atom):
                return derived_predicate_fault(atom.predicate, derived) or self.formula_fault(
                    atom, variables
                )
            case formulas.IncreaseCost(amount):
                return self.function_fault(TOTAL_COST, (), variables) or self.formula_fault(
                    amount, variables
                )
            case formulas.ChangeNumber(_, formulas.FunctionTerm(name, terms), amount):
                return self.function_fault(name, terms, variables) or self.formula_fault(
                    amount, variables
                )
            case formulas.EffectAnd(parts):
                return _first_fault(self.effect_fault(part, variables, derived) for part in parts)
            case formulas.When(condition, inner):
                return self.formula_fault(condition, variables) or self.effect_fault(
                    inner, variables, derived
                )
            case formulas.ForEach(parameters, inner):
                scope = {
                    **variables,
                    **{parameter.name: parameter.types for parameter in parameters},
                }
                return self.parameters_fault(parameters) or self.effect_fault(inner, scope, derived)

    def parameters_fault(
        self, parameters: tuple[formulas.Parameter, ...], *, distinct: bool = True
    ) -> Fault | None:
        """Return the first fault of a parameter list, or None.

        Args:
            parameters: typed variables.
            distinct: whether a repeated name is a fault. Declarations allow ``(in ?obj ?obj)``.
        """
        names: set[str] = set()
        for parameter in parameters:
            if not formulas.is_variable(parameter.name):
                return Fault(f"a parameter must start with '?', but '{parameter.name}' does not")
            if distinct and parameter.name in names:
                return Fault(f"parameter '{parameter.name}' is declared twice")
            names.add(parameter.name)
            if fault := _first_fault(map(self.type_fault, parameter.types)):
                return fault
        return None


def derived_predicate_fault(predicate: str, derived: frozenset[str]) -> Fault | None:
    """Return the fault of a predicate in ``:init`` or in an effect if it is derived, or None."""
    if predicate not in derived:
        return None
    return Fault(
        f"predicate '{predicate}' is derived; it follows from axioms and cannot be stated or"
        " changed"
    )


def _first_fault(faults: Iterable[Fault | None]) -> Fault | None:
    return next((fault for fault in faults if fault is not None), None)


def _unknown_name(kind: str, name: str, candidates: Iterable[str]) -> str:
    return UnknownNameError.of(kind, name, candidates).message
