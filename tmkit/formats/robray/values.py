"""Values of the robray language: expressions, what each attribute accepts, and the shapes that attributes make.

An attribute is declared once, in a table, by a :class:`Rule` (its kind, its length, its range).
:func:`evaluate` turns what was written into a Python value of that kind or says, at the value, what
was expected. A value keeps its location, because a class may carry it far from where it was written
before it is found not to fit. Arithmetic is in 64-bit floats; whatever is not a finite real number
is refused where it arises.

The language puts the origin of a cylinder or cone at the centre of its *base*, where tmkit's shapes
are centred, so those are moved up by half their height. A cone runs from ``start_radius`` at the
base to ``end_radius`` (0 if omitted) at the top; two equal radii make a cylinder, two different
ones a frustum. Of a negative height, either points down from its base, towards -z. A ``grid`` is a
floor pattern for the eye: it becomes a thin box in the x-y plane that does not collide unless
``collision 1`` is written. ``scale`` multiplies the coordinates of a mesh, which is looked for
beside the file that names it and beside those that include that one. A shape uses the sizes that
concern it and ignores the others, since classes are combined freely; a shape takes precedence over
a mesh, as in the original.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tmkit._support.elementary import power
from tmkit._support.limits import is_file
from tmkit._support.source_location import SourceLocation, did_you_mean
from tmkit.formats.mesh.package_uris import PackageResolver
from tmkit.formats.robray.grammar import (
    Array,
    Binary,
    Expression,
    Name,
    Negation,
    Number,
    SourceText,
)
from tmkit.formats.spec.parts import PIECES, GeometrySpec, MeshSpec, PoseSpec, PrimitiveSpec

# Known without a definition; they cannot be redefined.
CONSTANTS: Mapping[str, float] = {"pi": math.pi, "π": math.pi, "deg": math.pi / 180.0}

_OPERATIONS: Mapping[str, Callable[[float, float], float | complex]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": power,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """What an attribute accepts."""

    kind: str  # number, array, name, text, choice or switch
    # the lengths an array may have; with a kind of number, an array of these lengths is accepted as
    # well
    lengths: tuple[int, ...] = ()
    choices: tuple[str, ...] = ()  # the words of a choice
    lowest: float = -math.inf  # every number is at least this
    highest: float = math.inf  # at most this
    positive: bool = False  # every number is above zero
    nonzero: bool = False  # no number is zero
    direction: bool = False  # the numbers are not all zero
    may_be_empty: bool = False  # a name may be the empty text


@dataclass(frozen=True, slots=True)
class Value:
    """An evaluated attribute and where it was written; ``folders`` are where a file of this name is looked for."""

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
    "parent": Rule("name", may_be_empty=True),
    "translation": Rule("array", (3,)),
    "quaternion": Rule("array", (4,), direction=True),
    "rpy": Rule("array", (3,)),
    "type": Rule("choice", choices=("fixed", "revolute", "prismatic")),
    "axis": Rule("array", (3,), direction=True),
    "offset": Rule("number"),
    "variable": Rule("name"),
    "lower": Rule("number"),
    "upper": Rule("number"),
    "mass": Rule("number", positive=True),
    "friction": Rule("number", lowest=0.0),
    "level": Rule("choice", choices=("box", "hull", "exact", PIECES)),
}

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


def evaluate(
    rule: Rule, written: Expression | Array, *, source: SourceText, constants: Mapping[str, float]
) -> Value:
    """Return the value of an attribute; one of the wrong kind, length or range is refused."""
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
        raise place.error(
            "expected"
            f" {f'an array of {wanted} numbers' if rule.lengths else 'a number, not an array'}"
        )
    else:
        content = number_of(written, source=source, constants=constants)
        _check_range(rule, content, place)
    return Value(content, place, (source.path.parent, *source.folders))


def _word(rule: Rule, written: Expression | Array, place: SourceLocation) -> str:
    """Return the name, text or choice that was written."""
    if not isinstance(written, Name):
        wanted = {"name": "a name", "text": "a quoted text"}.get(
            rule.kind
        ) or f"one of {', '.join(rule.choices)}"
        raise place.error(f"expected {wanted}")
    if rule.kind == "choice" and written.text not in rule.choices:
        near = did_you_mean(written.text, rule.choices)
        raise place.error(f"unknown word '{written.text}'{near} (known: {', '.join(rule.choices)})")
    if not written.text and not rule.may_be_empty:
        raise place.error("a name cannot be empty")
    return written.text


def _switch(
    written: Expression | Array, *, source: SourceText, constants: Mapping[str, float]
) -> bool:
    """Return a truth value, written as a number (0 is false) or as one of the words true and false."""
    if isinstance(written, Array):
        raise source.place(written.at).error("expected 0, 1, true or false")
    if isinstance(written, Name) and written.text not in constants:
        if written.text not in ("true", "false"):
            raise source.place(written.at).error(
                f"expected 0, 1, true or false, not '{written.text}'"
            )
        return written.text == "true"
    return number_of(written, source=source, constants=constants) != 0.0


def _array(
    rule: Rule, written: Array, *, source: SourceText, constants: Mapping[str, float]
) -> tuple[float, ...]:
    """Return the numbers of an array after checking its length and its range."""
    if len(written.items) not in rule.lengths:
        wanted = " or ".join(str(length) for length in rule.lengths)
        raise source.place(written.at).error(
            f"expected an array of {wanted} numbers, received {len(written.items)}"
        )
    numbers = tuple(number_of(item, source=source, constants=constants) for item in written.items)
    for item, number in zip(written.items, numbers, strict=True):
        _check_range(rule, number, source.place(item.at))
    if rule.direction and math.hypot(*numbers) < 1e-9:
        raise source.place(written.at).error("expected numbers that are not all zero")
    return numbers


def _check_range(rule: Rule, number: float, place: SourceLocation) -> None:
    if rule.positive and number <= 0.0:
        raise place.error(f"expected a number above 0, received {number:g}")
    if rule.nonzero and number == 0.0:
        raise place.error("expected a number other than 0")
    if not rule.lowest <= number <= rule.highest:
        bounds = (
            f"at least {rule.lowest:g}"
            if rule.highest == math.inf
            else f"from {rule.lowest:g} to {rule.highest:g}"
        )
        raise place.error(f"expected a number {bounds}, received {number:g}")


def number_of(
    expression: Expression, *, source: SourceText, constants: Mapping[str, float]
) -> float:
    """Evaluate an expression; unknown constants and results that are no finite real number are refused."""
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


GRID_THICKNESS = 0.001  # metres, when none is written
DEFAULT_GREY = (0.7, 0.7, 0.7)  # of a shape that has an alpha and no colour


def geometry_of(
    values: Mapping[str, Value], *, place: SourceLocation, packages: PackageResolver
) -> GeometrySpec:
    """Return the shape that a geometry block, completed by its classes, describes."""
    kind = _kind(values, place)
    pose = PoseSpec()
    shape: PrimitiveSpec | MeshSpec
    if kind == "mesh":
        shape = _mesh(values, packages)
    elif kind in ("cylinder", "cone"):
        shape, pose = _standing(kind, values, place)
    else:
        shape = _centred(kind, values, place)
    mass = values.get("mass")
    return GeometrySpec(
        shape=shape,
        place=place,
        pose=pose,
        color=_color(values),
        visual=_is_on(values, "visual", otherwise=True),
        collision=_is_on(values, "collision", otherwise=kind != "grid"),
        mass=mass.number if mass is not None else None,
    )


def _kind(values: Mapping[str, Value], place: SourceLocation) -> str:
    """Return the shape, ``"mesh"`` for a mesh; a shape beats a mesh."""
    if "shape" in values:
        return values["shape"].text
    if "mesh" not in values:
        raise place.error("a geometry needs a shape or a mesh, of its own or of a class")
    return "mesh"


def _plain_number(
    kind: str, name: str, values: Mapping[str, Value], place: SourceLocation
) -> float:
    """Return a size that the shape cannot do without."""
    if name not in values:
        raise place.error(f"a {kind} needs '{name}'")
    return values[name].number


def _centred(kind: str, values: Mapping[str, Value], place: SourceLocation) -> PrimitiveSpec:
    """Return a box, a sphere or a grid."""
    if kind == "sphere":
        return PrimitiveSpec("sphere", (_plain_number(kind, "radius", values, place),))
    if "dimension" not in values:
        raise place.error(f"a {kind} needs 'dimension'")
    size = values["dimension"].numbers
    wanted = 3 if kind == "box" else 2
    if len(size) != wanted:
        raise values["dimension"].place.error(
            f"a {kind} has {wanted} dimensions, received {len(size)}"
        )
    if kind == "grid":
        thickness = values["thickness"].number if "thickness" in values else GRID_THICKNESS
        size = (*size, thickness)
    return PrimitiveSpec("box", size)


def _standing(
    kind: str, values: Mapping[str, Value], place: SourceLocation
) -> tuple[PrimitiveSpec, PoseSpec]:
    """Return a cylinder or cone, and the pose that puts its base at the origin."""
    height = _plain_number(kind, "height", values, place)
    pose = PoseSpec((0.0, 0.0, 0.5 * height))
    if kind == "cylinder":
        return (
            PrimitiveSpec("cylinder", (_plain_number(kind, "radius", values, place), abs(height))),
            pose,
        )
    start = _plain_number(kind, "start_radius", values, place)
    end = values["end_radius"].number if "end_radius" in values else 0.0
    if start == end == 0.0:
        raise values["start_radius"].place.error("a cone needs a radius above 0 at one end")
    if height < 0.0:
        start, end, height = end, start, -height
    if start == end:
        return PrimitiveSpec("cylinder", (start, height)), pose
    if end == 0.0:
        return PrimitiveSpec("cone", (start, height)), pose
    if start == 0.0:
        upside_down = PoseSpec(pose.translation, quat_xyzw=(1.0, 0.0, 0.0, 0.0))
        return PrimitiveSpec("cone", (end, height)), upside_down
    return PrimitiveSpec("frustum", (start, end, height)), pose


def _mesh(values: Mapping[str, Value], packages: PackageResolver) -> MeshSpec:
    mesh = values["mesh"]
    beside = [folder for folder in mesh.folders if mesh.text and is_file(folder / mesh.text)]
    path = packages.resolve_mesh(mesh.text, folder=(beside or mesh.folders)[0], place=mesh.place)
    factors = values["scale"].numbers if "scale" in values else (1.0,)
    x, y, z = factors * 3 if len(factors) == 1 else factors
    return MeshSpec(path, (x, y, z))


def _color(values: Mapping[str, Value]) -> tuple[float, float, float, float] | None:
    """Return the colour with its alpha, ``None`` when neither is written."""
    if "color" not in values and "alpha" not in values:
        return None
    red, green, blue = values["color"].numbers if "color" in values else DEFAULT_GREY
    return red, green, blue, values["alpha"].number if "alpha" in values else 1.0


def _is_on(values: Mapping[str, Value], name: str, *, otherwise: bool) -> bool:
    """Return a truth value, ``otherwise`` when it is not written."""
    return bool(values[name].content) if name in values else otherwise
