"""The words of PDDL: facts, formulas, expressions and effects, as trees of immutable values.

The idea: a PDDL condition or effect is kept as it was written, as a tree of small frozen dataclasses, and never
flattened into sets of positive and negative atoms. So a negated goal stays negated, ``imply`` stays ``imply``, and
what is written out again is what was read. This module only says what the trees are. What follows from their shape
lives in :mod:`tmkit.pddl.substitution`, evaluation in :mod:`tmkit.pddl.evaluation`.

Invariants: every value is hashable, compares by content and survives pickling. A *term* is a string: a variable starts
with ``?``, anything else is the name of an object. Names are kept as given (the parser makes them lower case). ``str``
of every value is PDDL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


def is_variable(term: str) -> bool:
    """Return whether ``term`` is a variable rather than the name of an object."""
    return term.startswith("?")


def _call(name: str, terms: tuple[str, ...]) -> str:
    return f"({' '.join((name, *terms))})"


class Fact(NamedTuple):
    """A ground atom: a predicate and the names of its arguments. ``str(Fact("on", ("a", "b")))`` is ``(on a b)``."""

    predicate: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _call(self.predicate, self.arguments)

    @classmethod
    def of(cls, predicate: str, *arguments: str) -> Fact:
        """Return ``Fact(predicate, arguments)``, e.g. ``Fact.of("on", "a", "b")``.

        Args:
            predicate: name of the predicate.
            arguments: names of objects.
        """
        return cls(predicate, arguments)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A typed variable or a typed object: its name and the types of which it may have any (several mean ``either``)."""

    name: str
    types: tuple[str, ...] = ("object",)


def typed_list(parameters: tuple[Parameter, ...]) -> str:
    """Return ``parameters`` as a PDDL typed list, neighbours of one type joined: ``?x ?y - block ?z - place``."""
    pieces: list[str] = []
    for position, parameter in enumerate(parameters):
        pieces.append(parameter.name)
        last = position + 1 == len(parameters)
        if last or parameters[position + 1].types != parameter.types:
            types = parameter.types
            pieces.append(f"- {types[0]}" if len(types) == 1 else f"- (either {' '.join(types)})")
    return " ".join(pieces)


# --------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric constant."""

    value: float

    def __str__(self) -> str:
        return str(int(self.value)) if float(self.value).is_integer() else repr(self.value)


@dataclass(frozen=True, slots=True)
class FunctionTerm:
    """A numeric function applied to terms, such as ``(distance ?from ?to)``."""

    name: str
    terms: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _call(self.name, self.terms)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``+``, ``-``, ``*`` or ``/`` of two expressions, or ``-`` of one."""

    operator: str
    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return _call(self.operator, tuple(map(str, self.parts)))


Expression: TypeAlias = Number | FunctionTerm | Arithmetic


# ------------------------------------------------------------------------------------------------------ formulas


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to terms; it holds when the fact it becomes under a binding is in the state."""

    predicate: str
    terms: tuple[str, ...] = ()

    def ground(self, binding: Mapping[str, str]) -> Fact:
        """Return the fact that the atom becomes when each variable is replaced by its value in ``binding``."""
        return Fact(self.predicate, tuple([binding.get(term, term) for term in self.terms]))

    def __str__(self) -> str:
        return _call(self.predicate, self.terms)


@dataclass(frozen=True, slots=True)
class Equals:
    """Two terms name the same object."""

    left: str
    right: str

    def __str__(self) -> str:
        return f"(= {self.left} {self.right})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """``<``, ``<=``, ``=``, ``>=`` or ``>`` between two numeric expressions."""

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.operator} {self.left} {self.right})"


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Formula

    def __str__(self) -> str:
        return f"(not {self.part})"


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; with no part it always holds."""

    parts: tuple[Formula, ...] = ()

    def __str__(self) -> str:
        return _call("and", tuple(map(str, self.parts)))


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds; with no part it never holds."""

    parts: tuple[Formula, ...] = ()

    def __str__(self) -> str:
        return _call("or", tuple(map(str, self.parts)))


@dataclass(frozen=True, slots=True)
class Imply:
    """The conclusion holds, or the premise does not."""

    premise: Formula
    conclusion: Formula

    def __str__(self) -> str:
        return f"(imply {self.premise} {self.conclusion})"


@dataclass(frozen=True, slots=True)
class Exists:
    """The body holds for some objects of the parameters' types."""

    parameters: tuple[Parameter, ...]
    body: Formula

    def __str__(self) -> str:
        return f"(exists ({typed_list(self.parameters)}) {self.body})"


@dataclass(frozen=True, slots=True)
class Forall:
    """The body holds for all objects of the parameters' types."""

    parameters: tuple[Parameter, ...]
    body: Formula

    def __str__(self) -> str:
        return f"(forall ({typed_list(self.parameters)}) {self.body})"


ALWAYS = And()
"""The formula that always holds."""

Formula: TypeAlias = Atom | Equals | Comparison | Not | And | Or | Imply | Exists | Forall


# ------------------------------------------------------------------------------------------------------- effects


@dataclass(frozen=True, slots=True)
class Add:
    """The atom holds afterwards."""

    atom: Atom

    def __str__(self) -> str:
        return str(self.atom)


@dataclass(frozen=True, slots=True)
class Delete:
    """The atom does not hold afterwards, unless the same action also adds it."""

    atom: Atom

    def __str__(self) -> str:
        return f"(not {self.atom})"


@dataclass(frozen=True, slots=True)
class IncreaseCost:
    """The action costs so much more."""

    amount: Expression

    def __str__(self) -> str:
        return f"(increase (total-cost) {self.amount})"


@dataclass(frozen=True, slots=True)
class EffectAnd:
    """All parts happen."""

    parts: tuple[Effect, ...] = ()

    def __str__(self) -> str:
        return _call("and", tuple(map(str, self.parts)))


@dataclass(frozen=True, slots=True)
class When:
    """The effect happens if the condition held before the action."""

    condition: Formula
    effect: Effect

    def __str__(self) -> str:
        return f"(when {self.condition} {self.effect})"


@dataclass(frozen=True, slots=True)
class ForEach:
    """The effect happens for all objects of the parameters' types."""

    parameters: tuple[Parameter, ...]
    effect: Effect

    def __str__(self) -> str:
        return f"(forall ({typed_list(self.parameters)}) {self.effect})"


NO_EFFECT = EffectAnd()
"""The effect that changes nothing."""

Effect: TypeAlias = Add | Delete | IncreaseCost | EffectAnd | When | ForEach
