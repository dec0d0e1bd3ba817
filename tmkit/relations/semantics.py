"""Semantics of the nine geometric relations, and their frame of expression.

``PoseSemantics`` names the related points, frames and bodies. ``PoseCoord`` adds the frame in which
the numbers are expressed. Position, Orientation, LinearVelocity, AngularVelocity, Twist, Force,
Torque and Wrench have the same two classes. All are created from the papers' notation, which
``repr`` prints, ``PoseCoord("{f1}|O1", "{o2}|O2", "[o2]")``, or from names, by ``from_names``.

``docs/concepts/relations.md`` lists the fields and the notation. Their source is De Laet, Bellens,
Smits, Aertbelien, Bruyninckx, De Schutter, "Geometric relations between rigid bodies (part 1)",
IEEE RAM 20(1), 2013. Forces and torques act on ``body`` and are exerted by ``ref_body``. A torque
and a wrench have the moment about ``point``.

Invariants: values are immutable, hashable and compared field by field. Reading the notation of a
value gives the value; names are not empty. Names with spaces between their words are written
unchanged, ``{my frame}|my body``. Names with characters of the notation, or with spaces around
them, are written in double quotes, which are doubled within: ``{"a|b"}|C``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any, ClassVar, NoReturn, Self

from tmkit.relations.violations import rule_error

_WORDS = r"[^\s|{}\[\](),\"][^\s|{}\[\](),]*(?: +[^\s|{}\[\](),]+)*"  # with spaces between them
_NAME = rf'"(?:[^"]|"")+"|{_WORDS}'
_PLAIN = re.compile(_WORDS)
_POSE = re.compile(rf"\(({_NAME}),\s*\[({_NAME})\]\)\|({_NAME})")


class Notation:
    """Form of the notation of one operand.

    Args:
        pattern: regular expression with one group a name.
        what: denoted quantity, for messages.
        form: example.
        template: format string of the notation, with name ``{0}`` and body ``{1}``.
    """

    def __init__(self, pattern: str, *, what: str, form: str, template: str) -> None:
        self._pattern = re.compile(pattern)
        self._what, self._form, self._template = what, form, template

    def read(self, text: str) -> tuple[str, ...]:
        """Return the names in a text.

        Raises:
            SemanticError: if the text has another form.
        """
        match = self._pattern.fullmatch(text) if isinstance(text, str) else None
        return (
            tuple(map(_unquote, match.groups()))
            if match
            else _raise_notation_error(text, self._what, self._form, self._template)
        )


POINT = Notation(rf"({_NAME})\|({_NAME})", what="a point on a body", form="e|C", template="{0}|{1}")
_ON_BODY = "an orientation frame on a body"
ORIENTATION = Notation(
    rf"\[({_NAME})\]\|({_NAME})", what=_ON_BODY, form="[a]|C", template="[{0}]|{1}"
)
BODY = Notation(rf"({_NAME})", what="a body", form="C", template="{1}")
COORD = Notation(rf"\[({_NAME})\]", what="the frame of expression", form="[r]", template="[{0}]")
_FRAME = re.compile(rf"\{{({_NAME})\}}\|({_NAME})")


def read_pose(text: str) -> tuple[str, str, str]:
    """Return point, orientation frame and body of ``{g}|C`` or ``(e,[a])|C``.

    Raises:
        SemanticError: if the text has another form.
    """
    if isinstance(text, str):
        if match := _FRAME.fullmatch(text):
            return _unquote(match[1]), _unquote(match[1]), _unquote(match[2])
        if match := _POSE.fullmatch(text):
            return _unquote(match[1]), _unquote(match[2]), _unquote(match[3])
    what = "a frame, or a point and an orientation frame, on a body"
    return _raise_notation_error(text, what, "{g}|C or (e,[a])|C", "{{{0}}}|{1}")


def read_name(text: str, what: str) -> str:
    """Return the name in a text.

    Args:
        text: name, in double quotes if needed.
        what: name of the field, for the message.

    Raises:
        SemanticError: if the text is not a name.
    """
    if isinstance(text, str) and re.fullmatch(_NAME, text):
        return _unquote(text)
    rule = (
        f"{what} is a name, without spaces around it and without any of | {{ }} [ ] ( ) , unless in"
        " double quotes"
    )
    repair = (
        f"write {quote_name(text)!r} if that is its name" if isinstance(text, str) and text else ""
    )
    raise rule_error("notation", rule, repr(text), repair=repair)


def _unquote(name: str) -> str:
    """Return a name without quotes, if it has any."""
    return name[1:-1].replace('""', '"') if name[0] == '"' else name


def quote_name(name: str) -> str:
    """Return a name in the notation, in quotes if it needs them."""
    if _PLAIN.fullmatch(name):
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


_ANY = re.compile(rf"[{{\[(]*\s*({_NAME})\s*[}}\])]*\s*(?:\|\s*({_NAME}))?")


def _raise_notation_error(text: object, what: str, form: str, template: str) -> NoReturn:
    """Raise the error of a text, with its correct notation if it can be derived."""
    repair = ""
    if not isinstance(text, str):
        repair = "give it as text"
    elif match := _ANY.fullmatch(text.strip()):
        name, body = match[1], match[2]
        if body or "{1}" not in template:
            repair = f"write '{template.format(name, body)}'"
        elif "{0}" in template:
            repair = f"add the body to which it is fixed: '{template.format(name, 'Body')}'"
    raise rule_error("notation", f"{what} is written as {form}", repr(text), repair=repair)


LABELS = {
    "point": "point",
    "ori": "orientation frame",
    "body": "body",
    "ref_point": "reference point",
    "ref_ori": "reference orientation frame",
    "ref_body": "reference body",
    "coord": "coordinate frame",
}
"""Names of the fields in messages."""

_Reader = Callable[[str], tuple[str, ...]]


class _WithoutDictMeta(type):
    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> Any:
        return super().__new__(cls, name, bases, {"__slots__": (), **members})


_FIELDS = ("point", "ori", "body", "ref_point", "ref_ori", "ref_body", "coord")
"""Names of the fields that semantics and coordinates may have."""


class Semantics(tuple[str, ...], metaclass=_WithoutDictMeta):
    """Base class of semantics and coordinates: names in fixed fields.

    Args:
        target, reference: related points, frames and bodies, in the papers' notation.

    Attributes:
        relation: name of the relation, as in the JSON form and in the name of the class.
        fields: names of the fields, in order.
    """

    # A tuple of the name of the class and the names, so tuple's C code compares and hashes it.
    relation: ClassVar[str]
    fields: ClassVar[tuple[str, ...]] = ()
    _readers: ClassVar[tuple[_Reader, _Reader]]  # of target and reference

    def __new__(cls, target: str, reference: str) -> Self:
        """Read the names in the notation of the target and the reference."""
        return cls._of(*cls._read(target, reference))

    @classmethod
    def _read(cls, target: str, reference: str) -> tuple[str, ...]:
        read_target, read_reference = cls._readers
        return (*read_target(target), *read_reference(reference))

    @classmethod
    def _of(cls, *values: str) -> Self:
        """Create a value from valid names, without a check."""
        return tuple.__new__(cls, (cls.__name__, *values))

    def __init_subclass__(cls) -> None:
        cls.relation = cls.__name__.removesuffix("Semantics").removesuffix("Coord")
        above = cls.__mro__[: cls.__mro__.index(Semantics)]
        cls.fields = tuple(name for base in reversed(above) for name in base.__annotations__)
        for place, name in enumerate(cls.fields, start=1):
            setattr(cls, name, property(itemgetter(place)))

    @classmethod
    def from_names(
        cls,
        *,
        point: str | None = None,
        ori: str | None = None,
        body: str | None = None,
        ref_point: str | None = None,
        ref_ori: str | None = None,
        ref_body: str | None = None,
        coord: str | None = None,
    ) -> Self:
        """Create a value from names.

        An example is ``TwistSemantics.from_names(point="e", body="C", ref_body="D")``.

        Args:
            point: name of the point.
            ori: name of the orientation frame.
            body: name of the body.
            ref_point: name of the reference point.
            ref_ori: name of the reference orientation frame.
            ref_body: name of the reference body.
            coord: name of the frame of expression.

        Raises:
            TypeError: if a field is missing or unknown.
            SemanticError: if a name is invalid.
        """
        values = (point, ori, body, ref_point, ref_ori, ref_body, coord)
        names = {
            field: name for field, name in zip(_FIELDS, values, strict=True) if name is not None
        }
        if names.keys() != set(cls.fields):
            expected, actual = ", ".join(cls.fields), ", ".join(names)
            raise TypeError(
                f"{cls.__name__} has the fields {expected}; given were {actual or 'none'}"
            )
        return cls._of(*(read_name(names[name], name) for name in cls.fields))

    def notation(self) -> tuple[str, ...]:
        """Return target, reference and any frame of expression in the papers' notation."""
        return self._of(*map(quote_name, self[1:]))._notation()

    def _notation(self) -> tuple[str, ...]:
        raise NotImplementedError  # pragma: no cover - every relation has its own

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.notation()))})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} is immutable; '{name}' cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple.__new__, (type(self), (*self,))

    def replace(
        self,
        *,
        point: str | None = None,
        ori: str | None = None,
        body: str | None = None,
        ref_point: str | None = None,
        ref_ori: str | None = None,
        ref_body: str | None = None,
        coord: str | None = None,
    ) -> Self:
        """Return a copy with other names in some fields.

        Args:
            point: name of the point.
            ori: name of the orientation frame.
            body: name of the body.
            ref_point: name of the reference point.
            ref_ori: name of the reference orientation frame.
            ref_body: name of the reference body.
            coord: name of the frame of expression.

        Raises:
            TypeError: if a field is unknown.
            SemanticError: if a name is invalid.
        """
        values = (point, ori, body, ref_point, ref_ori, ref_body, coord)
        names = {
            field: name for field, name in zip(_FIELDS, values, strict=True) if name is not None
        }
        if unknown := [name for name in names if name not in self.fields]:
            fields = ", ".join(self.fields)
            raise TypeError(
                f"{type(self).__name__} has no field {', '.join(unknown)}; its fields are {fields}"
            )
        return self._replace(**{name: read_name(value, name) for name, value in names.items()})

    def _replace(self, **names: str) -> Self:
        """Return a copy with other valid names in existing fields, without a check."""
        return self._of(*(names.get(name, getattr(self, name)) for name in self.fields))


class _Expressed(Semantics):
    """Semantics with a frame of expression."""

    coord: str

    def __new__(cls, target: str, reference: str, coord: str) -> Self:
        """Read the names in the notation of target, reference and frame of expression."""
        return cls._of(*cls._read(target, reference), *COORD.read(coord))

    def _notation(self) -> tuple[str, ...]:
        return (*super()._notation(), f"[{self.coord}]")


class _PositionLike(Semantics):
    _readers = (POINT.read, POINT.read)
    point: str
    body: str
    ref_point: str
    ref_body: str

    def _notation(self) -> tuple[str, ...]:
        return f"{self.point}|{self.body}", f"{self.ref_point}|{self.ref_body}"


class _OrientationLike(Semantics):
    _readers = (ORIENTATION.read, ORIENTATION.read)
    ori: str
    body: str
    ref_ori: str
    ref_body: str

    def _notation(self) -> tuple[str, ...]:
        return f"[{self.ori}]|{self.body}", f"[{self.ref_ori}]|{self.ref_body}"


class _PoseLike(Semantics):
    _readers = (read_pose, read_pose)
    point: str
    ori: str
    body: str
    ref_point: str
    ref_ori: str
    ref_body: str

    def _notation(self) -> tuple[str, ...]:
        sides = (self.point, self.ori, self.body), (self.ref_point, self.ref_ori, self.ref_body)
        return tuple(
            f"{{{p}}}|{body}" if p == ori else f"({p},[{ori}])|{body}" for p, ori, body in sides
        )


class _AtPoint(Semantics):
    _readers = (POINT.read, BODY.read)
    point: str
    body: str
    ref_body: str

    def _notation(self) -> tuple[str, ...]:
        return f"{self.point}|{self.body}", self.ref_body


class _Free(Semantics):
    _readers = (BODY.read, BODY.read)
    body: str
    ref_body: str

    def _notation(self) -> tuple[str, ...]:
        return self.body, self.ref_body


class PositionSemantics(_PositionLike):
    """Position of a point of a body relative to a point of another: ``("e|C", "f|D")``."""


class PositionCoord(_Expressed, _PositionLike):
    """A position with the frame in which it is expressed: ``("e|C", "f|D", "[r]")``."""


class OrientationSemantics(_OrientationLike):
    """Orientation of a frame of a body relative to a frame of another: ``("[a]|C", "[b]|D")``."""


class OrientationCoord(_Expressed, _OrientationLike):
    """An orientation with the frame in which it is expressed: ``("[a]|C", "[b]|D", "[r]")``."""


class PoseSemantics(_PoseLike):
    """Pose of a frame of a body relative to a frame of another: ``("{g}|C", "{h}|D")``."""


class PoseCoord(_Expressed, _PoseLike):
    """A pose with the frame in which it is expressed: ``("{g}|C", "{h}|D", "[h]")``."""


class LinearVelocitySemantics(_AtPoint):
    """Velocity of a point of a body relative to another body: ``("e|C", "D")``."""


class LinearVelocityCoord(_Expressed, _AtPoint):
    """A linear velocity with the frame in which it is expressed: ``("e|C", "D", "[r]")``."""


class AngularVelocitySemantics(_Free):
    """Angular velocity of a body relative to another: ``("C", "D")``. It has no point."""


class AngularVelocityCoord(_Expressed, _Free):
    """An angular velocity with the frame in which it is expressed: ``("C", "D", "[r]")``."""


class TwistSemantics(_AtPoint):
    """Velocity of a body relative to another, linear part at a point: ``("e|C", "D")``."""


class TwistCoord(_Expressed, _AtPoint):
    """A twist with the frame in which it is expressed: ``("e|C", "D", "[r]")``."""


class ForceSemantics(_Free):
    """Force on a body, exerted by another: ``("C", "D")``."""


class ForceCoord(_Expressed, _Free):
    """A force with the frame in which it is expressed: ``("C", "D", "[r]")``."""


class TorqueSemantics(_AtPoint):
    """Moment about a point on a body, exerted by another: ``("e|C", "D")``."""


class TorqueCoord(_Expressed, _AtPoint):
    """A torque with the frame in which it is expressed: ``("e|C", "D", "[r]")``."""


class WrenchSemantics(_AtPoint):
    """Force and moment about a point on a body, exerted by another: ``("e|C", "D")``."""


class WrenchCoord(_Expressed, _AtPoint):
    """A wrench with the frame in which it is expressed: ``("e|C", "D", "[r]")``."""


Coord = (
    PositionCoord
    | OrientationCoord
    | PoseCoord
    | LinearVelocityCoord
    | AngularVelocityCoord
    | TwistCoord
    | ForceCoord
    | TorqueCoord
    | WrenchCoord
)
"""Coordinates of any relation: semantics with a frame of expression."""
