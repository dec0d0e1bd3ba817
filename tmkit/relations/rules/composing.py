"""The rules of inverses and compositions, of the parts of a pose, of integration, differentiation and power.

*Order of operands*: ``compose`` chains, whichever operand comes first. Where only one order fits, it is that one; where
both do (a pose and its way back), the order of the arguments counts. Forces on one body are added, not chained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

from tmkit.relations import semantics as sem
from tmkit.relations.violations import SemanticError, Violation, checks_are_on

MATRIX_LIKE = (sem.OrientationCoord, sem.PoseCoord)
CHANGE_COORD = "express both in one frame with change_coordinate_frame"
CHANGE_POINT = "change the point of one with change_point"


class Check:
    """Collects the broken rules of one operation."""

    def __init__(self, operation: str, *operands: Any) -> None:
        self.operation = operation
        self.operands = operands
        self.broken: list[Violation] = []

    def same(self, left: str, right: str, rule: str, what: tuple[str, str], repair: str = "") -> None:
        """Require two names to be equal; ``what`` they denote, as ``("point of the first", "point of the second")``."""
        if left != right:
            self.broken.append(Violation(rule, f"{what[0]} {left}", f"{what[1]} {right}", repair))

    def step(self, name: str, own: str, rule: str, repair: str = "") -> None:
        """Require a field of a change, the second operand, to be one of the first, which is changed."""
        x, by = self.operands[:2]
        verb = f"it {'begins' if name.startswith('ref_') else 'ends'} {'on' if name.endswith('body') else 'at'}"
        self.same(getattr(by, name), getattr(x, own), rule, (verb, f"the {sem.LABELS[own]} is"), repair)

    def alike(self, name: str, rule: str, repair: str = "", sides: tuple[str, str] = ("first", "second")) -> None:
        """Require a field to be the same in two operands, which ``sides`` names."""
        left, right = (getattr(operand, name) for operand in self.operands[:2])
        first, second = (f"{sem.LABELS[name]} of the {side}" for side in sides)
        self.same(left, right, rule, (first, second), repair)

    def done(self) -> None:
        """Refuse when a rule was broken, where checks are on."""
        if self.broken and checks_are_on():
            raise SemanticError.of(_call(self.operation, self.operands), self.broken)


def _call(operation: str, operands: Sequence[object]) -> str:
    return f"{operation}({', '.join(map(repr, operands))})"


def unfit(operation: str, *operands: object) -> NoReturn:
    """Raise the error of an operation that is not defined for its operands."""
    kinds = " and ".join(getattr(operand, "relation", type(operand).__name__) for operand in operands)
    violation = Violation(f"there is no {operation} for these relations", kinds)
    raise SemanticError.of(_call(operation, operands), [violation])


def require_matrix(check: Check, x: Any, coord: str, ref_ori: str) -> None:
    """Require what becomes of a rotation matrix to be expressed in its reference orientation frame, as matrices are."""
    if isinstance(x, MATRIX_LIKE) and x.coord == x.ref_ori:
        rule = "a rotation matrix, and with it a homogeneous matrix, is expressed in its reference orientation frame"
        free = "a representation that allows it (a rotation vector)"
        repair = f"use inverse2, change_reference_orientation_frame, or {free}"
        check.same(coord, ref_ori, rule, ("coordinate frame", "reference orientation frame"), repair)


def require_own_reference(check: Check, x: Any, which: str) -> None:
    """Require an orientation or pose to be expressed in its reference orientation frame; ``which`` operand it is."""
    what, repair = ("coordinate frame", "reference orientation frame"), "express it there with change_coordinate_frame"
    check.same(x.coord, x.ref_ori, f"{which} is expressed in its reference orientation frame", what, repair)


_Coord = TypeVar("_Coord", bound=sem.Semantics)

_CHAINED = (
    sem.PositionCoord, sem.OrientationCoord, sem.PoseCoord, sem.LinearVelocityCoord, sem.AngularVelocityCoord,
    sem.TwistCoord,
)  # fmt: skip
_ADDED = (sem.ForceCoord, sem.TorqueCoord, sem.WrenchCoord)


def inverse(x: _Coord, *, is_matrix: bool | None = None) -> _Coord:
    """Return the coordinates of the inverse, expressed in the same frame; velocities and torques keep their point."""
    c: Any = x
    if not isinstance(x, (*_CHAINED, *_ADDED)):
        unfit("inverse", x)
    result: Any = c._of(*(getattr(c, _other_side(name, c.fields)) for name in c.fields))
    if is_matrix is not False and isinstance(x, MATRIX_LIKE):
        check = Check("inverse", x)
        require_matrix(check, x, result.coord, result.ref_ori)
        check.done()
    made: _Coord = result
    return made


def _other_side(name: str, fields: tuple[str, ...]) -> str:
    """Return the field that the inverse has in place of another."""
    other = name.removeprefix("ref_") if name.startswith("ref_") else f"ref_{name}"
    return other if other in fields else name


def inverse2(x: _Coord) -> _Coord:
    """Return the coordinates of the inverse of an orientation or pose, expressed in its own reference frame."""
    c: Any = x
    if not isinstance(x, MATRIX_LIKE):
        unfit("inverse2", x)
    check = Check("inverse2", x)
    require_own_reference(check, c, "the operand")
    check.done()
    if isinstance(x, sem.OrientationCoord):
        made: _Coord = c._of(c.ref_ori, c.ref_body, c.ori, c.body, c.ori)
    else:
        made = c._of(c.ref_point, c.ref_ori, c.ref_body, c.point, c.ori, c.body, c.ori)
    return made


def compose(x: _Coord, y: _Coord, *, is_settled: bool = False) -> tuple[_Coord, bool]:
    """Return the coordinates of a composition, and whether it reads ``y`` before ``x``.

    Reasons are given for the order of the arguments; with ``is_settled``, two that chain in both orders are refused.
    """
    if type(x) is not type(y):
        unfit("compose", x, y)
    if isinstance(x, _ADDED):
        return _added(x, y), False
    if not isinstance(x, _CHAINED):
        unfit("compose", x, y)
    if not checks_are_on():
        return _chained(x, y), False
    forwards, backwards = chain_check(x, y), chain_check(y, x)
    if not forwards.broken:
        if is_settled and not backwards.broken:
            sides = f"{y!r} relative to its reference and back"
            repair = "compose takes the operands in the order of the arguments"
            forwards.broken.append(Violation("only one order of the operands chains", sides, repair=repair))
            forwards.done()
        return _chained(x, y), False
    if backwards.broken:
        forwards.done()
    return _chained(y, x), True


def chain_check(x: Any, y: Any) -> Check:
    """Return the check of the rules of a composition: the reference of the first is the target of the second."""
    check = Check("compose", x, y)
    if isinstance(x, (sem.PositionCoord, sem.PoseCoord)):
        what = ("reference point of the first", "point of the second")
        check.same(x.ref_point, y.point, "the reference point of one is the point of the other", what)
    if isinstance(x, MATRIX_LIKE):
        what = ("reference orientation frame of the first", "orientation frame of the second")
        rule = "the reference orientation frame of one is the orientation frame of the other"
        check.same(x.ref_ori, y.ori, rule, what)
    if isinstance(x, (sem.LinearVelocityCoord, sem.TwistCoord)):
        check.alike("point", "velocities are composed at one point", CHANGE_POINT)
    what = ("reference body of the first", "body of the second")
    turned = "inverse2" if isinstance(x, MATRIX_LIKE) else "inverse"
    repair = f"compose with what lies between them first, or turn one round with {turned}"
    check.same(x.ref_body, y.body, "the reference body of one is the body of the other", what, repair)
    if isinstance(x, sem.PoseCoord) or (isinstance(x, sem.OrientationCoord) and x.coord != y.coord):
        require_own_reference(check, x, "the first operand")
        require_own_reference(check, y, "the second operand")
    elif not isinstance(x, sem.OrientationCoord):
        check.alike("coord", "both are expressed in one frame", CHANGE_COORD)
    return check


def _chained(x: Any, y: Any) -> Any:
    if isinstance(x, sem.PositionCoord):
        return x._of(x.point, x.body, y.ref_point, y.ref_body, x.coord)
    if isinstance(x, sem.OrientationCoord):
        return x._of(x.ori, x.body, y.ref_ori, y.ref_body, y.coord)
    if isinstance(x, sem.PoseCoord):
        return x._of(x.point, x.ori, x.body, y.ref_point, y.ref_ori, y.ref_body, y.coord)
    if isinstance(x, sem.AngularVelocityCoord):
        return x._of(x.body, y.ref_body, x.coord)
    return x._of(x.point, x.body, y.ref_body, x.coord)


def _added(x: Any, y: Any) -> Any:
    """Return the coordinates of the resultant of two forces, torques or wrenches on one body."""
    check = Check("compose", x, y)
    check.alike("body", "forces that are added act on one body")
    check.alike("ref_body", "forces that are added are exerted by one body")
    if not isinstance(x, sem.ForceCoord):
        check.alike("point", "moments are added about one point", CHANGE_POINT)
    check.alike("coord", "both are expressed in one frame", CHANGE_COORD)
    check.done()
    return x


def position_of(x: sem.PoseCoord) -> sem.PositionCoord:
    """Return the coordinates of the position in a pose."""
    return sem.PositionCoord._of(x.point, x.body, x.ref_point, x.ref_body, x.coord)


def orientation_of(x: sem.PoseCoord) -> sem.OrientationCoord:
    """Return the coordinates of the orientation in a pose."""
    return sem.OrientationCoord._of(x.ori, x.body, x.ref_ori, x.ref_body, x.coord)


def pose_of(position: sem.PositionCoord, orientation: sem.OrientationCoord) -> sem.PoseCoord:
    """Return the coordinates of the pose made of a position and an orientation of the same bodies in the same frame."""
    if not isinstance(position, sem.PositionCoord) or not isinstance(orientation, sem.OrientationCoord):
        unfit("pose", position, orientation)
    p, o = position, orientation
    check, sides = Check("pose", p, o), ("position", "orientation")
    check.alike("body", "both are of one body", sides=sides)
    check.alike("ref_body", "both are relative to one body", sides=sides)
    check.alike("coord", "both are expressed in one frame", CHANGE_COORD, sides)
    check.done()
    return sem.PoseCoord._of(p.point, o.ori, p.body, p.ref_point, o.ref_ori, p.ref_body, p.coord)


def integrate(x: sem.Coord) -> sem.Coord:
    """Return the coordinates of the displacement that a constant velocity makes.

    A twist whose point and coordinate frame are of one frame g, as they must be, gives the pose of g after the motion,
    relative to where it was: ``({g}|C, {g}|D, [g])``. An angular velocity gives an orientation of its coordinate frame
    in the same way, a linear velocity the way of its point.
    """
    if isinstance(x, sem.TwistCoord):
        if x.point != x.coord:
            check = Check("integrate", x)
            repair = "change the point with change_point, or the frame with change_coordinate_frame"
            rule = "point and coordinate frame of a twist that is integrated are of one frame"
            check.same(x.point, x.coord, rule, ("point", "coordinate frame"), repair)
            check.done()
        return sem.PoseCoord._of(x.point, x.point, x.body, x.point, x.point, x.ref_body, x.coord)
    if isinstance(x, sem.AngularVelocityCoord):
        return sem.OrientationCoord._of(x.coord, x.body, x.coord, x.ref_body, x.coord)
    if not isinstance(x, sem.LinearVelocityCoord):
        unfit("integrate", x)
    return sem.PositionCoord._of(x.point, x.body, x.point, x.ref_body, x.coord)


def differentiate(x: sem.Coord, y: sem.Coord | None = None, *, screw: bool = False) -> sem.Coord:
    """Return the coordinates of the velocity that leads from one relation to the same relation a little later.

    Args:
        x: the relation; a pose or orientation is expressed in its reference orientation frame.
        y: the same relation later; for the coordinates alone it may be omitted.
        screw: for a pose, whether the velocity is that of the point and in the axes of the reference frame, instead of
            the frame itself.
    """
    y = x if y is None else y
    if type(x) is not type(y) or not isinstance(x, (sem.PositionCoord, sem.OrientationCoord, sem.PoseCoord)):
        unfit("differentiate", x, y)
    check = Check("differentiate", x, y)
    for name in x.fields:
        left, right = getattr(x, name), getattr(y, name)
        check.same(left, right, "both are the same relation", (f"{name} of the first", f"{name} of the second"))
    if isinstance(x, sem.PoseCoord):
        what = ("point", "orientation frame")
        check.same(x.point, x.ori, "a pose that is differentiated is that of a frame", what)
        what = ("reference point", "reference orientation frame")
        check.same(x.ref_point, x.ref_ori, "a pose that is differentiated is relative to a frame", what)
    if not isinstance(x, sem.PositionCoord):
        require_own_reference(check, x, "the relation")
    check.done()
    if isinstance(x, sem.PositionCoord):
        return sem.LinearVelocityCoord._of(x.point, x.body, x.ref_body, x.coord)
    if isinstance(x, sem.OrientationCoord):
        return sem.AngularVelocityCoord._of(x.body, x.ref_body, x.coord)
    frame = x.ref_ori if screw else x.ori
    return sem.TwistCoord._of(frame, x.body, x.ref_body, frame)


def dot(wrench: sem.WrenchCoord, twist: sem.TwistCoord) -> None:
    """Check that a wrench and a twist, in either order, have a power: the same point, bodies and coordinate frame."""
    if isinstance(wrench, sem.TwistCoord) and isinstance(twist, sem.WrenchCoord):
        wrench, twist = twist, wrench
    if not isinstance(wrench, sem.WrenchCoord) or not isinstance(twist, sem.TwistCoord):
        unfit("dot", wrench, twist)
    check = Check("dot", wrench, twist)
    for name, repair in {"point": CHANGE_POINT, "body": "", "ref_body": "", "coord": CHANGE_COORD}.items():
        check.alike(name, f"both have one {sem.LABELS[name]}", repair, ("wrench", "twist"))
    check.done()
