"""Abstract syntax of PDDL: facts, formulas, expressions, effects, actions and axioms.

All are trees of immutable values. A condition or effect keeps its written form and is never
flattened into sets of positive and negative atoms. The writer therefore reproduces the input.

Invariants: every value is hashable, compares by content and can be pickled. A *term* is a string: a
variable starts with ``?``, any other term is the name of an object. Names keep their case; the
parser makes them lower case. ``str`` of each value is PDDL. Actions and axioms are not checked on
construction; a :class:`~tmkit.pddl.model.Domain` checks its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeAlias, cast


def is_variable(term: str) -> bool:
    """Return whether ``term`` is a variable rather than the name of an object."""
    return term.startswith("?")


class Fact(NamedTuple):
    """Ground atom: a predicate and the names of its arguments.

    ``str(Fact("on", ("a", "b")))`` is ``(on a b)``.
    """

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
    """Typed variable or object: its name and its types, of which several mean ``either``."""

    name: str
    types: tuple[str, ...] = ("object",)


def format_typed_list(parameters: tuple[Parameter, ...]) -> str:
    """Return the PDDL typed list of parameters, as ``?x ?y - block ?z - place``.

    Neighbours of equal types share one type.
    """
    words: list[str] = []
    for position, parameter in enumerate(parameters):
        words.append(parameter.name)
        is_last = position + 1 == len(parameters)
        if is_last or parameters[position + 1].types != parameter.types:
            types = parameter.types
            words.append(f"- {types[0]}" if len(types) == 1 else f"- (either {' '.join(types)})")
    return " ".join(words)


class _List:
    """Base of values written as a list: the keyword of the class, if any, and the fields."""

    __slots__ = ()
    _word = ""

    def __str__(self) -> str:
        words = [self._word] if self._word else []
        for item in fields(cast(Any, self)):
            value = getattr(self, item.name)
            if item.name == "parameters":
                words.append(f"({format_typed_list(value)})")
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
    """Sum, difference, product or quotient of two expressions, or ``-`` of one."""

    operator: str
    parts: tuple[Expression, ...]


Expression: TypeAlias = Number | FunctionTerm | Arithmetic


@dataclass(frozen=True, slots=True)
class Atom(_List):
    """Predicate applied to terms. It holds if its ground fact is in the state."""

    predicate: str
    terms: tuple[str, ...] = ()

    def ground(self, binding: Mapping[str, str]) -> Fact:
        """Return the fact of the atom, with each variable replaced by its value in ``binding``."""
        return Fact(self.predicate, tuple([binding.get(term, term) for term in self.terms]))


@dataclass(frozen=True, slots=True)
class Equals(_List):
    """Equality of two terms, which holds if they name the same object."""

    _word = "="
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Comparison(_List):
    """Comparison of two numeric expressions by ``<``, ``<=``, ``=``, ``>=`` or ``>``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(_List):
    """Negation, which holds if the part does not."""

    _word = "not"
    part: Formula


@dataclass(frozen=True, slots=True)
class And(_List):
    """Conjunction, which holds if all parts hold. Without parts it always holds."""

    _word = "and"
    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Or(_List):
    """Disjunction, which holds if any part holds. Without parts it never holds."""

    _word = "or"
    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Imply(_List):
    """Implication, which holds if the conclusion holds or the premise does not."""

    _word = "imply"
    premise: Formula
    conclusion: Formula


@dataclass(frozen=True, slots=True)
class Exists(_List):
    """Existential quantifier: the body holds for some objects of the parameters' types."""

    _word = "exists"
    parameters: tuple[Parameter, ...]
    body: Formula


@dataclass(frozen=True, slots=True)
class Forall(_List):
    """Universal quantifier: the body holds for all objects of the parameters' types."""

    _word = "forall"
    parameters: tuple[Parameter, ...]
    body: Formula


ALWAYS = And()
"""Formula that always holds."""

Formula: TypeAlias = Atom | Equals | Comparison | Not | And | Or | Imply | Exists | Forall


@dataclass(frozen=True, slots=True)
class Add:
    """Effect that adds an atom."""

    atom: Atom

    def __str__(self) -> str:
        return str(self.atom)


@dataclass(frozen=True, slots=True)
class Delete(_List):
    """Effect that deletes an atom, unless the same action also adds it."""

    _word = "not"
    atom: Atom


@dataclass(frozen=True, slots=True)
class IncreaseCost(_List):
    """Effect that increases the total cost."""

    _word = "increase (total-cost)"
    amount: Expression


@dataclass(frozen=True, slots=True)
class ChangeNumber(_List):
    """Numeric effect: ``assign``, ``increase``, ``decrease``, ``scale-up`` or ``scale-down``."""

    operator: str
    term: FunctionTerm
    amount: Expression


@dataclass(frozen=True, slots=True)
class EffectAnd(_List):
    """Conjunction of effects."""

    _word = "and"
    parts: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class When(_List):
    """Conditional effect, applied if the condition holds before the action."""

    _word = "when"
    condition: Formula
    effect: Effect


@dataclass(frozen=True, slots=True)
class ForEach(_List):
    """Universal effect, applied for all objects of the parameters' types."""

    _word = "forall"
    parameters: tuple[Parameter, ...]
    effect: Effect


NO_EFFECT = EffectAnd()
"""Effect without changes."""

Effect: TypeAlias = Add | Delete | IncreaseCost | ChangeNumber | EffectAnd | When | ForEach


def simple_effects(effect: Effect) -> Iterator[Effect]:
    """Yield the single effects of an effect, regardless of conditions."""
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
    """Duration, conditions and effects of a durative action.

    Attributes:
        duration: duration of the action.
        at_start: condition before the start.
        over_all: condition between start and end.
        at_end: condition before the end.
        start: effect at the start.
        end: effect at the end.
    """

    duration: Expression
    at_start: Formula = ALWAYS
    over_all: Formula = ALWAYS
    at_end: Formula = ALWAYS
    start: Effect = NO_EFFECT
    end: Effect = NO_EFFECT


@dataclass(frozen=True, slots=True)
class Action:
    """Action schema: its parameters in order, its precondition and its effect.

    Attributes:
        outcome_of: name of the nondeterministic action of which this is one outcome, empty for a
            deterministic action.
        timing: timing of a durative action. Precondition and effect are then those of an action
            without concurrent ones.
        line: line in the file of the domain, 0 without a file.
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
    """Rule of a derived predicate, which holds for all parameters that satisfy the condition."""

    predicate: str
    parameters: tuple[Parameter, ...]
    condition: Formula


@dataclass(frozen=True, slots=True, order=True)
class GroundAction:
    """Step of a task plan: the name of an action and its arguments, as ``(stack a b)``."""

    name: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"({' '.join((self.name, *self.arguments))})"
