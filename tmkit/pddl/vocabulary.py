"""Symbol table of a domain or problem, and the check that a sentence uses the names rightly.

The idea: PDDL that came from a file and PDDL that a program built must obey the same rules, but
only the file has lines and columns. So every check here returns a :class:`Fault`, a reason and the
place *within the sentence*, or ``None``. The parser turns the place into a line and column, the
constructors of the model into an error without one.

Types form a hierarchy with the root ``object``; a type may have several parents (``either``). A
term may stand where a type is asked for when *every* type it may have is that type or below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, TypeAlias

from tmkit.errors import UnknownNameError
from tmkit.pddl import formulas
from tmkit.pddl.substitution import parts_of

TOTAL_COST = "total-cost"  # the function that the effect increase counts in
DEEPEST_TYPES = 500  # how many types may stand above each other; published domains stay below 10
Types = tuple[str, ...]  # the types of which a thing may have any; nearly always one


@dataclass(frozen=True, slots=True)
class Type:
    """A type and its parents in the hierarchy; the root ``object`` is never declared."""

    name: str
    parents: Types = ("object",)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate: its name and typed parameters. Calling it with terms gives an atom.

    With ``is_function`` it was declared as a function whose value is an object, its last argument.
    """

    name: str
    parameters: tuple[formulas.Parameter, ...] = ()
    is_function: bool = field(default=False, compare=False)

    def __call__(self, *terms: str) -> formulas.Atom:
        """Return the atom that says this of some variables or objects."""
        return formulas.Atom(self.name, terms)

    def fact(self, *objects: str) -> formulas.Fact:
        """Return the fact that says this of some objects."""
        return formulas.Fact(self.name, objects)


@dataclass(frozen=True, slots=True)
class Function:
    """A numeric function: its name and typed parameters. The values of actions' effects are part of states."""

    name: str
    parameters: tuple[formulas.Parameter, ...] = ()


# anything with a name and typed parameters
Signature: TypeAlias = Predicate | Function | formulas.Action


class Fault(NamedTuple):
    """What is wrong with a sentence: the reason, and the word: 0 is its first word, ``i`` its ``i``-th argument."""

    reason: str
    word: int = 0


Variables = Mapping[str, Types]


class Vocabulary:
    """The names that may be used, by kind: types without ``object``, objects with the constants."""

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
        self._above: dict[str, frozenset[str]] = {}
        self._fits: dict[tuple[Types, Types], bool] = {}

    def above(self, name: str) -> frozenset[str]:
        """Return a type with all types above it."""
        if name not in self._above:
            pending, seen = [name], {"object"}
            while pending:
                current = pending.pop()
                if current not in seen:
                    seen.add(current)
                    pending.extend(self.parents.get(current, ()))
            self._above[name] = frozenset(seen)
        return self._above[name]

    def fits(self, given: Types, wanted: Types) -> bool:
        """Return whether an object of some types is allowed where any of others is required."""
        if given == wanted or "object" in wanted:
            return True
        if (given, wanted) not in self._fits:
            self._fits[given, wanted] = all(
                not self.above(kind).isdisjoint(wanted) for kind in given
            )
        return self._fits[given, wanted]

    def objects_of(self, types: Types) -> tuple[str, ...]:
        """Return the objects that belong to any of ``types``, in the order of their declaration."""
        if "object" in types:
            return tuple(self.objects)
        return tuple(
            name
            for name, kinds in self.objects.items()
            if any(not self.above(kind).isdisjoint(types) for kind in kinds)
        )

    def type_fault(self, name: str) -> Fault | None:
        """Return what is wrong with using ``name`` as a type."""
        return None if name in self.parents else Fault(_unknown("type", name, self.parents))

    def hierarchy_fault(self) -> tuple[str, Fault] | None:
        """Return a type and what is wrong with it: it is above itself, has an unknown parent, or stands too deep."""
        for name, parents in self.parents.items():
            if fault := _first(map(self.type_fault, parents)):
                return name, fault
        levels = TopologicalSorter(self.parents)
        try:
            levels.prepare()
        except CycleError as error:
            first = next(name for name in self.parents if name in error.args[1])
            return first, Fault(f"type '{first}' is above itself in the hierarchy")
        for _ in range(DEEPEST_TYPES + 1):
            levels.done(*levels.get_ready())
        for name in levels.get_ready():
            return name, Fault(
                f"type '{name}' has more than {DEEPEST_TYPES} types above each other"
            )
        return None

    def atom_fault(self, name: str, terms: tuple[str, ...], variables: Variables) -> Fault | None:
        """Return the fault of the atom ``(name *terms)``, or None."""
        predicate = self.predicates.get(name)
        if predicate is None:
            return Fault(_unknown("predicate", name, self.predicates))
        return self.call_fault("predicate", predicate, terms, variables)

    def function_fault(
        self, name: str, terms: tuple[str, ...], variables: Variables
    ) -> Fault | None:
        """Return the fault of the function term ``(name *terms)``, or None."""
        function = self.functions.get(name)
        if function is None and name == TOTAL_COST:
            function = Function(TOTAL_COST)  # many published domains use it without declaring it
        if function is None:
            return Fault(_unknown("function", name, self.functions))
        return self.call_fault("function", function, terms, variables)

    def term_fault(self, term: str, variables: Variables) -> Fault | None:
        """Return the fault of a term, or None."""
        if formulas.is_variable(term):
            return None if term in variables else Fault(_unknown("variable", term, variables))
        return None if term in self.objects else Fault(_unknown("object", term, self.objects))

    def call_fault(
        self, kind: str, declared: Signature, terms: tuple[str, ...], variables: Variables
    ) -> Fault | None:
        """Return the fault of the arguments of a predicate, function or action, or None."""
        expected = len(declared.parameters)
        if len(terms) != expected:
            plural = "" if expected == 1 else "s"
            given = f"{len(terms)} {'was' if len(terms) == 1 else 'were'} given"
            reason = f"{kind} '{declared.name}' takes {expected} argument{plural}, but {given}"
            return Fault(reason, min(len(terms), expected + 1))
        for word, (term, parameter) in enumerate(
            zip(terms, declared.parameters, strict=True), start=1
        ):
            types = (variables if term[:1] == "?" else self.objects).get(term)
            if types is None:
                fault = self.term_fault(term, variables)
                return Fault(fault.reason, word) if fault else None
            if not self.fits(types, parameter.types):
                wanted, found = " or ".join(parameter.types), " or ".join(types)
                place = f"argument {word} of {kind} '{declared.name}'"
                return Fault(
                    f"{place} must be of type {wanted}, but '{term}' is of type {found}", word
                )
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
                return _first(self.formula_fault(part, variables) for part in parts_of(formula))

    def effect_fault(
        self, effect: formulas.Effect, variables: Variables, derived: frozenset[str]
    ) -> Fault | None:
        """Return the first fault of an effect, or None; derived predicates must not be added or deleted."""
        match effect:
            case formulas.Add(atom) | formulas.Delete(atom):
                return derived_fault(atom.predicate, derived) or self.formula_fault(atom, variables)
            case formulas.IncreaseCost(amount):
                return self.function_fault(TOTAL_COST, (), variables) or self.formula_fault(
                    amount, variables
                )
            case formulas.ChangeNumber(_, formulas.FunctionTerm(name, terms), amount):
                return self.function_fault(name, terms, variables) or self.formula_fault(
                    amount, variables
                )
            case formulas.EffectAnd(parts):
                return _first(self.effect_fault(part, variables, derived) for part in parts)
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
        """Return the first fault of a parameter list, or None; ``(in ?obj ?obj)`` is no fault in declarations."""
        seen: set[str] = set()
        for parameter in parameters:
            if not formulas.is_variable(parameter.name):
                return Fault(f"a parameter must start with '?', but '{parameter.name}' does not")
            if distinct and parameter.name in seen:
                return Fault(f"parameter '{parameter.name}' is declared twice")
            seen.add(parameter.name)
            if fault := _first(map(self.type_fault, parameter.types)):
                return fault
        return None


def derived_fault(predicate: str, derived: frozenset[str]) -> Fault | None:
    """Return the fault of stating or changing a predicate directly, or None."""
    if predicate not in derived:
        return None
    return Fault(
        f"predicate '{predicate}' is derived; it follows from axioms and cannot be stated or"
        " changed"
    )


def _first(faults: Iterable[Fault | None]) -> Fault | None:
    return next((fault for fault in faults if fault is not None), None)


def _unknown(kind: str, name: str, candidates: Iterable[str]) -> str:
    return UnknownNameError.of(kind, name, candidates).message
