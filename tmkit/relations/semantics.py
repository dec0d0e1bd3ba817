"""What is related to what: the semantics of the nine geometric relations, and the frame in which they are expressed.

``PoseSemantics`` says what is related to what, ``PoseCoord`` besides in which frame the numbers are expressed; so for
Position, Orientation, LinearVelocity, AngularVelocity, Twist, Force, Torque, Wrench. All are made from the papers'
notation, ``PoseCoord("{f1}|O1", "{o2}|O2", "[o2]")``, or from names, by ``named``; their ``repr`` is the notation
again.

The meaning of the fields, source: De Laet, Bellens, Smits, Aertbelien, Bruyninckx, De Schutter, "Geometric relations
between rigid bodies (part 1)", IEEE RAM 20(1), 2013; ``docs/concepts/relations.md`` lists it. Forces and torques are
those that act on ``body``, exerted by ``ref_body``; a torque and a wrench speak of the moment about ``point``.

Invariants: values are immutable, hashable and compared field by field.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from tmkit.relations.notation import BODY, COORD, ORIENTATION, POINT, read_name, read_pose, written

_Reader = Callable[[str], tuple[str, ...]]


class Semantics(tuple[str, ...]):
    """Base of what is related to what: names in fixed fields.

    Args:
        target, reference: what is related to what, in the papers' notation.

    Attributes:
        relation: name of the relation, as in the JSON form and in the name of the class.
        fields: names of the fields, in order.
    """

    __slots__ = ()  # a tuple of the name of the class and the names: compared and hashed without a line of Python
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
        """Make one from the values of its fields, which are known to be names."""
        return tuple.__new__(cls, (cls.__name__, *values))

    def __init_subclass__(cls) -> None:
        cls.relation = cls.__name__.removesuffix("Semantics").removesuffix("Coord")
        above = cls.__mro__[: cls.__mro__.index(Semantics)]
        cls.fields = tuple(name for base in reversed(above) for name in base.__annotations__)
        for place, name in enumerate(cls.fields, start=1):
            setattr(cls, name, property(itemgetter(place)))

    @classmethod
    def named(cls, **names: str) -> Self:  # the fields of the class, by name
        """Make one from names, e.g. ``TwistSemantics.named(point="e", body="C", ref_body="D")``.

        Raises:
            TypeError: a field is missing, or there is none of that name.
            SemanticError: a name that is none.
        """
        if names.keys() != set(cls.fields):
            wanted, got = ", ".join(cls.fields), ", ".join(names)
            raise TypeError(f"{cls.__name__} has the fields {wanted}; given were {got or 'none'}")
        return cls._of(*(read_name(names[name], name) for name in cls.fields))

    def notation(self) -> tuple[str, ...]:
        """Return the target, the reference and, of coordinates, the frame of expression in the papers' notation."""
        return self._of(*map(written, self[1:]))._notation()

    def _notation(self) -> tuple[str, ...]:
        raise NotImplementedError  # pragma: no cover - every relation has its own

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.notation()))})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; '{name}' was to be set")

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _restore, (type(self), self[1:])

    def replace(self, **names: str) -> Self:  # the fields of the class, by name
        """Return the same with other names in some fields.

        Raises:
            TypeError: there is no field of that name.
            SemanticError: a name that is none.
        """
        unknown = [name for name in names if name not in self.fields]
        if unknown:
            known = ", ".join(self.fields)
            raise TypeError(f"{type(self).__name__} has no field {', '.join(unknown)}; its fields are {known}")
        return self._replaced(**{name: read_name(value, name) for name, value in names.items()})

    def _replaced(self, **names: str) -> Self:
        """Return the same with other names in some fields, which are known to be fields and names."""
        return self._of(*(names.get(name, getattr(self, name)) for name in self.fields))


_Made = TypeVar("_Made", bound=Semantics)


def _restore(cls: type[_Made], values: tuple[str, ...]) -> _Made:
    return cls._of(*values)


class _Expressed(Semantics):
    """What is related to what, with the frame in which it is expressed."""

    __slots__ = ()
    coord: str

    def __new__(cls, target: str, reference: str, coord: str) -> Self:
        """Read the names in the notation of target, reference and frame of expression."""
        return cls._of(*cls._read(target, reference), *COORD.read(coord))

    def _notation(self) -> tuple[str, ...]:
        return (*super()._notation(), f"[{self.coord}]")


class _PositionLike(Semantics):
    __slots__ = ()
    _readers = (POINT.read, POINT.read)
    point: str
    body: str
    ref_point: str
    ref_body: str

    def _notation(self) -> tuple[str, ...]:
        return f"{self.point}|{self.body}", f"{self.ref_point}|{self.ref_body}"


class _OrientationLike(Semantics):
    __slots__ = ()
    _readers = (ORIENTATION.read, ORIENTATION.read)
    ori: str
    body: str
    ref_ori: str
    ref_body: str

    def _notation(self) -> tuple[str, ...]:
        return f"[{self.ori}]|{self.body}", f"[{self.ref_ori}]|{self.ref_body}"


class _PoseLike(Semantics):
    __slots__ = ()
    _readers = (read_pose, read_pose)
    point: str
    ori: str
    body: str
    ref_point: str
    ref_ori: str
    ref_body: str

    def _notation(self) -> tuple[str, ...]:
        sides = (self.point, self.ori, self.body), (self.ref_point, self.ref_ori, self.ref_body)
        return tuple(f"{{{p}}}|{body}" if p == ori else f"({p},[{ori}])|{body}" for p, ori, body in sides)


class _AtPoint(Semantics):
    __slots__ = ()
    _readers = (POINT.read, BODY.read)
    point: str
    body: str
    ref_body: str

    def _notation(self) -> tuple[str, ...]:
        return f"{self.point}|{self.body}", self.ref_body


class _Free(Semantics):
    __slots__ = ()
    _readers = (BODY.read, BODY.read)
    body: str
    ref_body: str

    def _notation(self) -> tuple[str, ...]:
        return self.body, self.ref_body


class PositionSemantics(_PositionLike):
    """The position of a point of a body relative to a point of another: ``("e|C", "f|D")``."""

    __slots__ = ()


class PositionCoord(_Expressed, _PositionLike):
    """A position with the frame in which it is expressed: ``("e|C", "f|D", "[r]")``."""

    __slots__ = ()


class OrientationSemantics(_OrientationLike):
    """The orientation of a frame of a body relative to a frame of another: ``("[a]|C", "[b]|D")``."""

    __slots__ = ()


class OrientationCoord(_Expressed, _OrientationLike):
    """An orientation with the frame in which it is expressed: ``("[a]|C", "[b]|D", "[r]")``."""

    __slots__ = ()


class PoseSemantics(_PoseLike):
    """The pose of a frame of a body relative to a frame of another: ``("{g}|C", "{h}|D")``."""

    __slots__ = ()


class PoseCoord(_Expressed, _PoseLike):
    """A pose with the frame in which it is expressed: ``("{g}|C", "{h}|D", "[h]")``."""

    __slots__ = ()


class LinearVelocitySemantics(_AtPoint):
    """The velocity of a point of a body relative to another body: ``("e|C", "D")``."""

    __slots__ = ()


class LinearVelocityCoord(_Expressed, _AtPoint):
    """A linear velocity with the frame in which it is expressed: ``("e|C", "D", "[r]")``."""

    __slots__ = ()


class AngularVelocitySemantics(_Free):
    """The angular velocity of a body relative to another: ``("C", "D")``. It has no point."""

    __slots__ = ()


class AngularVelocityCoord(_Expressed, _Free):
    """An angular velocity with the frame in which it is expressed: ``("C", "D", "[r]")``."""

    __slots__ = ()


class TwistSemantics(_AtPoint):
    """The velocity of a body relative to another, its linear part that of a point: ``("e|C", "D")``."""

    __slots__ = ()


class TwistCoord(_Expressed, _AtPoint):
    """A twist with the frame in which it is expressed: ``("e|C", "D", "[r]")``."""

    __slots__ = ()


class ForceSemantics(_Free):
    """The force on a body, exerted by another: ``("C", "D")``."""

    __slots__ = ()


class ForceCoord(_Expressed, _Free):
    """A force with the frame in which it is expressed: ``("C", "D", "[r]")``."""

    __slots__ = ()


class TorqueSemantics(_AtPoint):
    """The moment about a point on a body, exerted by another: ``("e|C", "D")``."""

    __slots__ = ()


class TorqueCoord(_Expressed, _AtPoint):
    """A torque with the frame in which it is expressed: ``("e|C", "D", "[r]")``."""

    __slots__ = ()


class WrenchSemantics(_AtPoint):
    """Force and moment about a point on a body, exerted by another: ``("e|C", "D")``."""

    __slots__ = ()


class WrenchCoord(_Expressed, _AtPoint):
    """A wrench with the frame in which it is expressed: ``("e|C", "D", "[r]")``."""

    __slots__ = ()


Coord = (
    PositionCoord | OrientationCoord | PoseCoord | LinearVelocityCoord | AngularVelocityCoord | TwistCoord
    | ForceCoord | TorqueCoord | WrenchCoord
)  # fmt: skip
"""What is related to what, and the frame in which the numbers are expressed."""
