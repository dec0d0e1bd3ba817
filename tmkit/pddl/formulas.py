"""The words of PDDL: facts, formulas, expressions and effects, as trees of immutable values; actions and axioms.

A condition or effect is kept as it was written, never flattened into sets of positive and negative
atoms: what is written out again is what was read.

Invariants: every value is hashable, compares by content and survives pickling. A *term* is a
string: a variable starts with ``?``, anything else is the name of an object. Names are kept as
given (the parser makes them lower case). ``str`` of every value of these is PDDL. Actions and
axioms are values that nothing has checked; a :class:`~tmkit.pddl.model.Domain` checks those that it
is made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeAlias, cast


def is_variable(term: str) -> bool:
    """Return whether ``term`` is a variable rather than the name of an object."""
    return term.startswith("?")


class Fact(NamedTuple):
    """A ground atom: a predicate and the names of its arguments. ``str(Fact("on", ("a", "b")))`` is ``(on a b)``."""

    predicate: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"({' '.join((self.predicate, *self.arguments))})"

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


class _List:
    """What PDDL writes as a list: a word that all of a class share, if they do, and the fields in order."""

    __slots__ = ()
    _word = ""

    def __str__(self) -> str:
        words = [self._word] if self._word else []
        for item in fields(cast(Any, self)):
            value = getattr(self, item.name)
            if item.name == "parameters":
                words.append(f"({typed_list(value)})")
            else:
                words += map(str, value if isinstance(value, tuple) else (value,))
        return f"({' '.join(words)})"


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric constant."""

    value: float

    def __str__(self) -> str:
        return str(int(self.value)) if float(self.value).is_integer() else repr(self.value)


@dataclass(frozen=True, slots=True)
class FunctionTerm(_List):
    """A numeric function applied to terms, such as ``(distance ?from ?to)``."""

    name: str
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arithmetic(_List):
    """``+``, ``-``, ``*`` or ``/`` of two expressions, or ``-`` of one."""

    operator: str
    parts: tuple[Expression, ...]


Expression: TypeAlias = Number | FunctionTerm | Arithmetic


@dataclass(frozen=True, slots=True)
class Atom(_List):
    """A predicate applied to terms; it holds when the fact it becomes under a binding is in the state."""

    predicate: str
    terms: tuple[str, ...] = ()

    def ground(self, binding: Mapping[str, str]) -> Fact:
        """Return the fact that the atom becomes when each variable is replaced by its value in ``binding``."""
        return Fact(self.predicate, tuple([binding.get(term, term) for term in self.terms]))


@dataclass(frozen=True, slots=True)
class Equals(_List):
    """Two terms name the same object."""

    _word = "="
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Comparison(_List):
    """``<``, ``<=``, ``=``, ``>=`` or ``>`` between two numeric expressions."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(_List):
    """The part does not hold."""

    _word = "not"
    part: Formula


@dataclass(frozen=True, slots=True)
class And(_List):
    """All parts hold; with no part it always holds."""

    _word = "and"
    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Or(_List):
    """Some part holds; with no part it never holds."""

    _word = "or"
    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Imply(_List):
    """The conclusion holds, or the premise does not."""

    _word = "imply"
    premise: Formula
    conclusion: Formula


@dataclass(frozen=True, slots=True)
class Exists(_List):
    """The body holds for some objects of the parameters' types."""

    _word = "exists"
    parameters: tuple[Parameter, ...]
    body: Formula


@dataclass(frozen=True, slots=True)
class Forall(_List):
    """The body holds for all objects of the parameters' types."""

    _word = "forall"
    parameters: tuple[Parameter, ...]
    body: Formula


ALWAYS = And()  # the formula that always holds
Formula: TypeAlias = Atom | Equals | Comparison | Not | And | Or | Imply | Exists | Forall


@dataclass(frozen=True, slots=True)
class Add:
    """The atom holds afterwards."""

    atom: Atom

    def __str__(self) -> str:
        return str(self.atom)


@dataclass(frozen=True, slots=True)
class Delete(_List):
    """The atom does not hold afterwards, unless the same action also adds it."""

    _word = "not"
    atom: Atom


@dataclass(frozen=True, slots=True)
class IncreaseCost(_List):
    """The action costs so much more."""

    _word = "increase (total-cost)"
    amount: Expression


@dataclass(frozen=True, slots=True)
class ChangeNumber(_List):
    """A function gets a value: ``assign``, or ``increase``, ``decrease``, ``scale-up`` or ``scale-down`` by it."""

    operator: str
    term: FunctionTerm
    amount: Expression


@dataclass(frozen=True, slots=True)
class EffectAnd(_List):
    """All parts happen."""

    _word = "and"
    parts: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class When(_List):
    """The effect happens if the condition held before the action."""

    _word = "when"
    condition: Formula
    effect: Effect


@dataclass(frozen=True, slots=True)
class ForEach(_List):
    """The effect happens for all objects of the parameters' types."""

    _word = "forall"
    parameters: tuple[Parameter, ...]
    effect: Effect


NO_EFFECT = EffectAnd()  # the effect that changes nothing
Effect: TypeAlias = Add | Delete | IncreaseCost | ChangeNumber | EffectAnd | When | ForEach


def simple_effects(effect: Effect) -> Iterator[Effect]:
    """Yield the effects of which an effect is made, regardless of conditions."""
    match effect:
        case EffectAnd(parts):
            for part in parts:
                yield from simple_effects(part)
        case When(_, inner) | ForEach(_, inner):
            yield from simple_effects(inner)
        case _:
            yield effect


@dataclass(frozen=True, slots=True)
class Timing:
    """What a durative action needs and does, and when.

    Attributes:
        duration: how long it lasts.
        at_start: what has to hold before it; likewise ``over_all`` between start and end,
            ``at_end`` before the end.
        start: what happens at the start; likewise ``end``.
    """

    duration: Expression
    at_start: Formula = ALWAYS
    over_all: Formula = ALWAYS
    at_end: Formula = ALWAYS
    start: Effect = NO_EFFECT
    end: Effect = NO_EFFECT


@dataclass(frozen=True, slots=True)
class Action:
    """An action schema: ``parameters`` in order, the condition that must hold before it, and what it does.

    Attributes:
        outcome_of: for one outcome of an action whose effect is ``oneof`` several, the action's
            name.
        timing: of a durative action; condition and effect are those of the action done alone.
        line: in the file of the domain; 0 if there is none.
    """

    name: str
    parameters: tuple[Parameter, ...] = ()
    precondition: Formula = ALWAYS
    effect: Effect = NO_EFFECT
    outcome_of: str = ""
    timing: Timing | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Axiom:
    """A rule for a derived predicate: it holds of all ``parameters`` that satisfy the condition."""

    predicate: str
    parameters: tuple[Parameter, ...]
    condition: Formula


@dataclass(frozen=True, slots=True, order=True)
class GroundAction:
    """One step of a task plan: the name of an action and the objects it is done with. ``str`` is ``(stack a b)``."""

    name: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"({' '.join((self.name, *self.arguments))})"
