"""Values of the robray language: expressions, and what each attribute accepts.

The idea: an attribute is declared once, in a table, by a :class:`Rule` (its kind, its length, its range);
:func:`evaluate` turns what was written into a Python value of that kind or says, at the value, what was expected. A
value keeps its place, because a class may carry it far from where it was written before somebody finds that it does
not fit.

Arithmetic is in 64-bit floats; whatever is not a finite real number is refused where it arises.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tmkit._support.elementary import power
from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit.formats.robray.grammar import Array, Binary, Expression, Name, Negation, Number, SourceText
from tmkit.formats.spec.model import PIECES

# Known without a definition; they cannot be redefined.
CONSTANTS: Mapping[str, float] = {"pi": math.pi, "π": math.pi, "deg": math.pi / 180.0}

_OPERATIONS: Mapping[str, Callable[[float, float], float | complex]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": power,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """What an attribute accepts.

    Attributes:
        kind: number, array, name, text, choice or switch.
        lengths: the lengths an array may have; with a kind of number, an array of these lengths is accepted as well.
        choices: the words of a choice.
        lowest: every number is at least this; ``highest``: at most this.
        positive: every number is above zero.
        nonzero: no number is zero.
        direction: the numbers are not all zero.
        may_be_empty: a name may be the empty text.
    """

    kind: str
    lengths: tuple[int, ...] = ()
    choices: tuple[str, ...] = ()
    lowest: float = -math.inf
    highest: float = math.inf
    positive: bool = False
    nonzero: bool = False
    direction: bool = False
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """An evaluated attribute: a float, a tuple of floats, a text or a bool, and where it was written.

    Attributes:
        folders: where a file of this name is looked for, the folder of the file that names it first.
    """

    content: float | tuple[float, ...] | str | bool
    place: SourceLocation
    folders: tuple[Path, ...]

    @property
    def number(self) -> float:
        """The value of an attribute that is a number."""
        if isinstance(self.content, float):
            return self.content
        raise self.place.error("expected a number")

    @property
    def numbers(self) -> tuple[float, ...]:
        """The values of an attribute that is an array, or of a number as an array of one."""
        if isinstance(self.content, tuple):
            return self.content
        return (self.number,)

    @property
    def text(self) -> str:
        """The value of an attribute that is a name or a text."""
        if isinstance(self.content, str):
            return self.content
        raise self.place.error("expected a name")


FRAME_RULES: Mapping[str, Rule] = {
    "parent": Rule("name", may_be_empty=True), "translation": Rule("array", (3,)),
    "quaternion": Rule("array", (4,), direction=True), "rpy": Rule("array", (3,)),
    "type": Rule("choice", choices=("fixed", "revolute", "prismatic")), "axis": Rule("array", (3,), direction=True),
    "offset": Rule("number"), "variable": Rule("name"), "lower": Rule("number"), "upper": Rule("number"),
    "mass": Rule("number", positive=True), "friction": Rule("number", lowest=0.0),
    "level": Rule("choice", choices=("box", "hull", "exact", PIECES)),
}  # fmt: skip

POSE_WORDS = ("translation", "quaternion", "rpy")

GEOMETRY_RULES: Mapping[str, Rule] = {
    **{word: FRAME_RULES[word] for word in (*POSE_WORDS, "level")},
    "shape": Rule("choice", choices=("box", "sphere", "cylinder", "cone", "grid")),
    "mesh": Rule("text"),
    "color": Rule("array", (3,), lowest=0.0, highest=1.0),
    "alpha": Rule("number", lowest=0.0, highest=1.0),
    "specular": Rule("number", (3,)),
    "dimension": Rule("array", (2, 3), positive=True),
    "delta": Rule("array", (2,), positive=True),
    "thickness": Rule("number", positive=True),
    "radius": Rule("number", positive=True),
    "height": Rule("number", nonzero=True),
    "start_radius": Rule("number", lowest=0.0),
    "end_radius": Rule("number", lowest=0.0),
    "scale": Rule("number", (3,), positive=True),
    "visual": Rule("switch"),
    "collision": Rule("switch"),
    "no-shadow": Rule("switch"),
}

CLASS_RULES: Mapping[str, Rule] = {**FRAME_RULES, **GEOMETRY_RULES}


def evaluate(rule: Rule, written: Expression | Array, *, source: SourceText, constants: Mapping[str, float]) -> Value:
    """Return the value of an attribute.

    Args:
        source: the file, for messages and for paths relative to it.

    Raises:
        FileFormatError: it is of the wrong kind, length or range, or no finite number.
    """
    place = source.place(written.at)
    content: float | tuple[float, ...] | str | bool
    if rule.kind in ("name", "text", "choice"):
        content = _word(rule, written, place)
    elif rule.kind == "switch":
        content = _switch(written, source=source, constants=constants)
    elif isinstance(written, Array) and rule.lengths:
        content = _array(rule, written, source=source, constants=constants)
    elif rule.kind == "array" or isinstance(written, Array):
        wanted = " or ".join(str(length) for length in rule.lengths)
        raise place.error(f"expected {f'an array of {wanted} numbers' if rule.lengths else 'a number, not an array'}")
    else:
        content = number_of(written, source=source, constants=constants)
        _check_range(rule, content, place)
    return Value(content, place, (source.path.parent, *source.folders))


def _word(rule: Rule, written: Expression | Array, place: SourceLocation) -> str:
    """Return the name, text or choice that was written."""
    if not isinstance(written, Name):
        wanted = {"name": "a name", "text": "a quoted text"}.get(rule.kind) or f"one of {', '.join(rule.choices)}"
        raise place.error(f"expected {wanted}")
    if rule.kind == "choice" and written.text not in rule.choices:
        near = did_you_mean(written.text, rule.choices)
        raise place.error(f"unknown word '{written.text}'{near} (known: {', '.join(rule.choices)})")
    if not written.text and not rule.may_be_empty:
        raise place.error("a name cannot be empty")
    return written.text


def _switch(written: Expression | Array, *, source: SourceText, constants: Mapping[str, float]) -> bool:
    """Return a truth value, written as a number (0 is false) or as one of the words true and false."""
    if isinstance(written, Array):
        raise source.place(written.at).error("expected 0, 1, true or false")
    if isinstance(written, Name) and written.text not in constants:
        if written.text not in ("true", "false"):
            raise source.place(written.at).error(f"expected 0, 1, true or false, not '{written.text}'")
        return written.text == "true"
    return number_of(written, source=source, constants=constants) != 0.0


def _array(rule: Rule, written: Array, *, source: SourceText, constants: Mapping[str, float]) -> tuple[float, ...]:
    """Return the numbers of an array after checking its length and its range."""
    if len(written.items) not in rule.lengths:
        wanted = " or ".join(str(length) for length in rule.lengths)
        raise source.place(written.at).error(f"expected an array of {wanted} numbers, received {len(written.items)}")
    numbers = tuple(number_of(item, source=source, constants=constants) for item in written.items)
    for item, number in zip(written.items, numbers, strict=True):
        _check_range(rule, number, source.place(item.at))
    if rule.direction and math.hypot(*numbers) < 1e-9:
        raise source.place(written.at).error("expected numbers that are not all zero")
    return numbers


def _check_range(rule: Rule, number: float, place: SourceLocation) -> None:
    """Refuse a number outside the range of its attribute."""
    if rule.positive and number <= 0.0:
        raise place.error(f"expected a number above 0, received {number:g}")
    if rule.nonzero and number == 0.0:
        raise place.error("expected a number other than 0")
    if not rule.lowest <= number <= rule.highest:
        bounds = (
            f"at least {rule.lowest:g}" if rule.highest == math.inf else f"from {rule.lowest:g} to {rule.highest:g}"
        )
        raise place.error(f"expected a number {bounds}, received {number:g}")


def number_of(expression: Expression, *, source: SourceText, constants: Mapping[str, float]) -> float:
    """Evaluate an expression.

    Raises:
        FileFormatError: an unknown constant, a division by zero, or a result that is no finite real number.
    """
    try:
        return _number(expression, source, constants)
    except RecursionError:
        raise source.place(expression.at).error("the expression is nested too deeply") from None


def _number(expression: Expression, source: SourceText, constants: Mapping[str, float]) -> float:
    if isinstance(expression, Number):
        return _finite(expression.value, expression, source)
    if isinstance(expression, Name):
        return _constant(expression, source, constants)
    if isinstance(expression, Negation):
        return -_number(expression.operand, source, constants)
    return _binary(expression, source, constants)


def _constant(name: Name, source: SourceText, constants: Mapping[str, float]) -> float:
    """Return the number of a name."""
    if name.quoted:
        raise source.place(name.at).error("expected a number, not a quoted text")
    if name.text in constants:
        return constants[name.text]
    pieces = name.text.split("-")
    if len(pieces) > 1 and all(piece in constants or piece.isdigit() for piece in pieces):
        reason = f"unknown constant '{name.text}'; for a difference write '{' - '.join(pieces)}'"
    else:
        reason = f"unknown constant '{name.text}'{did_you_mean(name.text, constants)}"
    raise source.place(name.at).error(reason)


def _binary(expression: Binary, source: SourceText, constants: Mapping[str, float]) -> float:
    """Return the result of an operation on two values."""
    left = _number(expression.left, source, constants)
    right = _number(expression.right, source, constants)
    try:
        result = _OPERATIONS[expression.operator](left, right)
    except ZeroDivisionError:
        raise source.place(expression.at).error("division by zero") from None
    except OverflowError:
        result = math.inf
    if isinstance(result, complex):
        raise source.place(expression.at).error(f"{left:g} ^ {right:g} is not a real number")
    return _finite(result, expression, source)


def _finite(number: float, expression: Expression, source: SourceText) -> float:
    """Return the number unless it is infinite or none at all."""
    if not math.isfinite(number):
        raise source.place(expression.at).error("the number is too large: it is not finite")
    return number
