"""Values of the robray language: expressions, rules of attributes, and shapes.

One table declares each attribute by a :class:`Rule` with kind, length and range. :func:`evaluate`
converts an expression into a Python value of that kind, or raises an error at its location. A value
stores its location, because a class may be used far from its definition. Arithmetic uses 64-bit
floats. A result that is not a finite real number is an error at its expression.

Conventions of the shapes:

- The origin of a cylinder or cone is the centre of its *base*. Shapes of tmkit are centred, so
  these are moved up by half their height.
- A cone extends from ``start_radius`` at the base to ``end_radius`` (default 0) at the top. Two
  equal radii give a cylinder, two different ones a frustum.
- A cylinder or cone of negative height extends from its base towards -z.
- A ``grid`` is a visual floor pattern. It becomes a thin box in the x-y plane, which collides only
  with ``collision 1``.
- ``scale`` multiplies the coordinates of a mesh. The mesh file is searched in the folder of the
  file that names it, then in those of the including files.
- A shape ignores sizes of other shapes, since classes combine freely. A shape has priority over a
  mesh, as in the original.
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
from tmkit.formats.robray.hints import choice_hint, standard_definition_hint, word_for_numbers_hint
from tmkit.formats.spec.parts import PIECES, GeometrySpec, MeshSpec, PoseSpec, PrimitiveSpec

CONSTANTS: Mapping[str, float] = {"pi": math.pi, "π": math.pi, "deg": math.pi / 180.0}
"""Predefined constants, which a file cannot redefine."""

_OPERATIONS: Mapping[str, Callable[[float, float], float | complex]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": power,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """Accepted values of an attribute.

    Attributes:
        kind: ``number``, ``array``, ``name``, ``text``, ``choice`` or ``switch``.
        lengths: accepted lengths of an array. A number also accepts arrays of these lengths.
        choices: accepted words of a choice.
        lowest: lower bound of every number, inclusive.
        highest: upper bound of every number, inclusive.
        positive: True if every number must be above zero.
        nonzero: True if no number may be zero.
        direction: True if the numbers may not all be zero.
        may_be_empty: True if a name may be empty.
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
    """Value of an attribute.

    Attributes:
        content: number, numbers, text or truth value.
        place: location of the value.
        folders: folders in which a file of this name is searched, in order.
    """

    content: float | tuple[float, ...] | str | bool
    place: SourceLocation
    folders: tuple[Path, ...]

    @property
    def number(self) -> float:
        """Number of the attribute, in its unit."""
        if isinstance(self.content, float):
            return self.content
        raise self.place.error("expected a number")

    @property
    def numbers(self) -> tuple[float, ...]:
        """Numbers of an array attribute, or one number as a tuple of length 1."""
        if isinstance(self.content, tuple):
            return self.content
        return (self.number,)

    @property
    def text(self) -> str:
        """Name or text of the attribute."""
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
    rule: Rule,
    expression: Expression | Array,
    *,
    source: SourceText,
    constants: Mapping[str, float],
) -> Value:
    """Return the value of an attribute.

    Raises:
        FileFormatError: if the value has the wrong kind, length or range.
    """
    place = source.place(expression.position)
    content: float | tuple[float, ...] | str | bool
    if rule.kind in ("name", "text", "choice"):
        content = _evaluate_text(rule, expression, place)
    elif rule.kind == "switch":
        content = _evaluate_switch(expression, source=source, constants=constants)
    elif isinstance(expression, Array) and rule.lengths:
        content = _evaluate_array(rule, expression, source=source, constants=constants)
    elif rule.kind == "array" or isinstance(expression, Array):
        expectation = " or ".join(str(length) for length in rule.lengths)
        if not rule.lengths:
            raise place.error("expected a number, not an array")
        hint = ""
        if isinstance(expression, Name) and not expression.is_quoted:
            hint = word_for_numbers_hint(expression.text)
        raise place.error(f"expected an array of {expectation} numbers{hint}")
    else:
        content = evaluate_number(expression, source=source, constants=constants)
        _check_range(rule, content, place)
    return Value(content, place, (source.path.parent, *source.folders))


def _evaluate_text(rule: Rule, expression: Expression | Array, place: SourceLocation) -> str:
    """Return the name, text or choice of an expression."""
    if not isinstance(expression, Name):
        expectation = {"name": "a name", "text": "a quoted text"}.get(
            rule.kind
        ) or f"one of {', '.join(rule.choices)}"
        raise place.error(f"expected {expectation}")
    if rule.kind == "choice" and expression.text not in rule.choices:
        hint = choice_hint(expression.text) or did_you_mean(expression.text, rule.choices)
        raise place.error(
            f"unknown word '{expression.text}'{hint} (known: {', '.join(rule.choices)})"
        )
    if not expression.text and not rule.may_be_empty:
        raise place.error("a name cannot be empty")
    return expression.text


def _evaluate_switch(
    expression: Expression | Array, *, source: SourceText, constants: Mapping[str, float]
) -> bool:
    """Return the truth value of a number (0 is false) or of the word ``true`` or ``false``."""
    if isinstance(expression, Array):
        raise source.place(expression.position).error("expected 0, 1, true or false")
    if isinstance(expression, Name) and expression.text not in constants:
        if expression.text not in ("true", "false"):
            raise source.place(expression.position).error(
                f"expected 0, 1, true or false, not '{expression.text}'"
            )
        return expression.text == "true"
    return evaluate_number(expression, source=source, constants=constants) != 0.0


def _evaluate_array(
    rule: Rule, expression: Array, *, source: SourceText, constants: Mapping[str, float]
) -> tuple[float, ...]:
    """Return the numbers of an array after checking its length and its range."""
    if len(expression.items) not in rule.lengths:
        expectation = " or ".join(str(length) for length in rule.lengths)
        is_rgba = len(expression.items) == 4 and rule.highest == 1.0
        hint = "; write the fourth as 'alpha ...;'" if is_rgba else ""
        raise source.place(expression.position).error(
            f"expected an array of {expectation} numbers, received {len(expression.items)}{hint}"
        )
    numbers = tuple(
        evaluate_number(item, source=source, constants=constants) for item in expression.items
    )
    for item, number in zip(expression.items, numbers, strict=True):
        _check_range(rule, number, source.place(item.position))
    if rule.direction and math.hypot(*numbers) < MIN_DIRECTION_NORM:
        raise source.place(expression.position).error("expected numbers that are not all zero")
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


def evaluate_number(
    expression: Expression, *, source: SourceText, constants: Mapping[str, float]
) -> float:
    """Return the number of an expression.

    Raises:
        FileFormatError: if a constant is unknown, or a result is not a finite real number.
    """
    try:
        return _number(expression, source, constants)
    except RecursionError:
        raise source.place(expression.position).error(
            "the expression is nested too deeply"
        ) from None


def _number(expression: Expression, source: SourceText, constants: Mapping[str, float]) -> float:
    if isinstance(expression, Number):
        return _require_finite(expression.value, expression, source)
    if isinstance(expression, Name):
        return _constant_value(expression, source, constants)
    if isinstance(expression, Negation):
        return -_number(expression.operand, source, constants)
    return _binary(expression, source, constants)


def _constant_value(name: Name, source: SourceText, constants: Mapping[str, float]) -> float:
    if name.is_quoted:
        raise source.place(name.position).error("expected a number, not a quoted text")
    if name.text in constants:
        return constants[name.text]
    pieces = name.text.split("-")
    if len(pieces) > 1 and all(piece in constants or piece.isdigit() for piece in pieces):
        reason = f"unknown constant '{name.text}'; for a difference write '{' - '.join(pieces)}'"
    else:
        hint = did_you_mean(name.text, constants)
        if not hint:
            standard = standard_definition_hint("def", name.text)
            hint = f"; define it first: def {name.text} NUMBER;{standard}"
        reason = f"unknown constant '{name.text}'{hint}"
    raise source.place(name.position).error(reason)


def _binary(expression: Binary, source: SourceText, constants: Mapping[str, float]) -> float:
    left = _number(expression.left, source, constants)
    right = _number(expression.right, source, constants)
    try:
        result = _OPERATIONS[expression.operator](left, right)
    except ZeroDivisionError:
        raise source.place(expression.position).error("division by zero") from None
    except OverflowError:
        result = math.inf
    if isinstance(result, complex):
        raise source.place(expression.position).error(f"{left:g} ^ {right:g} is not a real number")
    return _require_finite(result, expression, source)


def _require_finite(number: float, expression: Expression, source: SourceText) -> float:
    """Return the number, or raise an error if it is infinite or NaN."""
    if not math.isfinite(number):
        raise source.place(expression.position).error("the number is too large: it is not finite")
    return number


GRID_THICKNESS = 0.001
"""Default thickness of a grid [m]."""

DEFAULT_GREY = (0.7, 0.7, 0.7)
"""Red, green and blue, in [0, 1], of a shape with an alpha and without a colour."""

MIN_DIRECTION_NORM = 1e-9
"""Norm below which the numbers of a direction count as all zero."""


def geometry_of(
    values: Mapping[str, Value], *, place: SourceLocation, packages: PackageResolver
) -> GeometrySpec:
    """Return the shape of a geometry block with the attributes of its classes."""
    kind = _shape_kind(values, place)
    pose = PoseSpec()
    shape: PrimitiveSpec | MeshSpec
    if kind == "mesh":
        shape = _mesh_spec(values, packages)
    elif kind in ("cylinder", "cone"):
        shape, pose = _shape_on_base(kind, values, place)
    else:
        shape = _shape_at_centre(kind, values, place)
    mass = values.get("mass")
    return GeometrySpec(
        shape=shape,
        place=place,
        pose=pose,
        color=_color(values),
        visual=_flag(values, "visual", default=True),
        collision=_flag(values, "collision", default=kind != "grid"),
        mass=mass.number if mass is not None else None,
    )


def _shape_kind(values: Mapping[str, Value], place: SourceLocation) -> str:
    """Return the kind of shape, or ``"mesh"`` for a mesh without a shape."""
    if "shape" in values:
        return values["shape"].text
    if "mesh" not in values:
        raise place.error("a geometry needs a shape or a mesh, of its own or of a class")
    return "mesh"


def _require_size(
    kind: str, name: str, values: Mapping[str, Value], place: SourceLocation
) -> float:
    """Return a required size of the shape [m]."""
    if name not in values:
        raise place.error(f"a {kind} needs '{name}'")
    return values[name].number


def _shape_at_centre(
    kind: str, values: Mapping[str, Value], place: SourceLocation
) -> PrimitiveSpec:
    """Return a box, a sphere or a grid."""
    if kind == "sphere":
        return PrimitiveSpec("sphere", (_require_size(kind, "radius", values, place),))
    if "dimension" not in values:
        raise place.error(f"a {kind} needs 'dimension'")
    size = values["dimension"].numbers
    expectation = 3 if kind == "box" else 2
    if len(size) != expectation:
        raise values["dimension"].place.error(
            f"a {kind} has {expectation} dimensions, received {len(size)}"
        )
    if kind == "grid":
        thickness = values["thickness"].number if "thickness" in values else GRID_THICKNESS
        size = (*size, thickness)
    return PrimitiveSpec("box", size)


def _shape_on_base(
    kind: str, values: Mapping[str, Value], place: SourceLocation
) -> tuple[PrimitiveSpec, PoseSpec]:
    """Return a cylinder or cone, and the pose of its centre relative to its base."""
    height = _require_size(kind, "height", values, place)
    pose = PoseSpec((0.0, 0.0, 0.5 * height))
    if kind == "cylinder":
        return (
            PrimitiveSpec("cylinder", (_require_size(kind, "radius", values, place), abs(height))),
            pose,
        )
    start = _require_size(kind, "start_radius", values, place)
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


def _mesh_spec(values: Mapping[str, Value], packages: PackageResolver) -> MeshSpec:
    mesh = values["mesh"]
    matches = [folder for folder in mesh.folders if mesh.text and is_file(folder / mesh.text)]
    path = packages.resolve_mesh(mesh.text, folder=(matches or mesh.folders)[0], place=mesh.place)
    factors = values["scale"].numbers if "scale" in values else (1.0,)
    x, y, z = factors * 3 if len(factors) == 1 else factors
    return MeshSpec(path, (x, y, z))


def _color(values: Mapping[str, Value]) -> tuple[float, float, float, float] | None:
    """Return red, green, blue and alpha, or None without a colour and an alpha."""
    if "color" not in values and "alpha" not in values:
        return None
    red, green, blue = values["color"].numbers if "color" in values else DEFAULT_GREY
    return red, green, blue, values["alpha"].number if "alpha" in values else 1.0


def _flag(values: Mapping[str, Value], name: str, *, default: bool) -> bool:
    """Return the truth value of an attribute, or ``default`` if it is absent."""
    return bool(values[name].content) if name in values else default
