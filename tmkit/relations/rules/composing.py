"""The rules of inverses and compositions, of the parts of a pose, of integration, differentiation and power.

*Order of operands*: ``compose`` chains, whichever operand comes first. Where only one order fits, it is that one; where
both do (a pose and its way back), the order of the arguments counts. Forces of one body on another are added where they
act on the same body, not chained.
"""

from __future__ import annotations

from typing import Any, TypeVar

from tmkit.relations.rules.checking import (
    CHANGE_COORD,
    CHANGE_POINT,
    MATRIX_LIKE,
    Check,
    require_matrix,
    require_own_reference,
    unfit,
)
from tmkit.relations.semantics import (
    AngularVelocityCoord,
    Coord,
    ForceCoord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    Semantics,
    TorqueCoord,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.violations import Violation, checks_are_on

_Coord = TypeVar("_Coord", bound=Semantics)

_CHAINED = (PositionCoord, OrientationCoord, PoseCoord, LinearVelocityCoord, AngularVelocityCoord, TwistCoord)
_ADDED = (ForceCoord, TorqueCoord, WrenchCoord)


def inverse(x: _Coord, *, is_matrix: bool | None = None) -> _Coord:
    """Return the coordinates of the inverse, expressed in the same frame.

    A velocity's point keeps its name, since it is where the two bodies are compared; so does the point of a torque.
    What is a matrix, or by default may be, is refused: it would not be expressed in its reference orientation frame.
    """
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
    if isinstance(x, OrientationCoord):
        made: _Coord = c._of(c.ref_ori, c.ref_body, c.ori, c.body, c.ori)
    else:
        made = c._of(c.ref_point, c.ref_ori, c.ref_body, c.point, c.ori, c.body, c.ori)
    return made


def compose(x: _Coord, y: _Coord, *, is_settled: bool = False) -> tuple[_Coord, bool]:
    """Return the coordinates of a composition, and whether it reads ``y`` before ``x``.

    Where the two do not chain, all reasons are given for the order of the arguments; with ``is_settled`` they are
    refused where they chain in both orders.
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
    if isinstance(x, (PositionCoord, PoseCoord)):
        what = ("reference point of the first", "point of the second")
        check.same(x.ref_point, y.point, "the reference point of one is the point of the other", what)
    if isinstance(x, MATRIX_LIKE):
        what = ("reference orientation frame of the first", "orientation frame of the second")
        rule = "the reference orientation frame of one is the orientation frame of the other"
        check.same(x.ref_ori, y.ori, rule, what)
    if isinstance(x, (LinearVelocityCoord, TwistCoord)):
        what = ("point of the first", "point of the second")
        check.same(x.point, y.point, "velocities are composed at one point", what, CHANGE_POINT)
    what = ("reference body of the first", "body of the second")
    turned = "inverse2" if isinstance(x, MATRIX_LIKE) else "inverse"
    repair = f"compose with what lies between them first, or turn one round with {turned}"
    check.same(x.ref_body, y.body, "the reference body of one is the body of the other", what, repair)
    if isinstance(x, PoseCoord) or (isinstance(x, OrientationCoord) and x.coord != y.coord):
        require_own_reference(check, x, "the first operand")
        require_own_reference(check, y, "the second operand")
    elif not isinstance(x, OrientationCoord):
        what = ("coordinate frame of the first", "coordinate frame of the second")
        check.same(x.coord, y.coord, "both are expressed in one frame", what, CHANGE_COORD)
    return check


def _chained(x: Any, y: Any) -> Any:
    if isinstance(x, PositionCoord):
        return x._of(x.point, x.body, y.ref_point, y.ref_body, x.coord)
    if isinstance(x, OrientationCoord):
        return x._of(x.ori, x.body, y.ref_ori, y.ref_body, y.coord)
    if isinstance(x, PoseCoord):
        return x._of(x.point, x.ori, x.body, y.ref_point, y.ref_ori, y.ref_body, y.coord)
    if isinstance(x, AngularVelocityCoord):
        return x._of(x.body, y.ref_body, x.coord)
    return x._of(x.point, x.body, y.ref_body, x.coord)


def _added(x: Any, y: Any) -> Any:
    """Return the coordinates of the resultant of two forces, torques or wrenches on one body."""
    check = Check("compose", x, y)
    what = ("body of the first", "body of the second")
    check.same(x.body, y.body, "forces that are added act on one body", what)
    what = ("reference body of the first", "reference body of the second")
    check.same(x.ref_body, y.ref_body, "forces that are added are exerted by one body", what)
    if not isinstance(x, ForceCoord):
        what = ("point of the first", "point of the second")
        check.same(x.point, y.point, "moments are added about one point", what, CHANGE_POINT)
    what = ("coordinate frame of the first", "coordinate frame of the second")
    check.same(x.coord, y.coord, "both are expressed in one frame", what, CHANGE_COORD)
    check.done()
    return x


def position_of(x: PoseCoord) -> PositionCoord:
    """Return the coordinates of the position in a pose."""
    return PositionCoord._of(x.point, x.body, x.ref_point, x.ref_body, x.coord)


def orientation_of(x: PoseCoord) -> OrientationCoord:
    """Return the coordinates of the orientation in a pose."""
    return OrientationCoord._of(x.ori, x.body, x.ref_ori, x.ref_body, x.coord)


def pose_of(position: PositionCoord, orientation: OrientationCoord) -> PoseCoord:
    """Return the coordinates of the pose made of a position and an orientation of the same bodies in the same frame."""
    if not isinstance(position, PositionCoord) or not isinstance(orientation, OrientationCoord):
        unfit("pose", position, orientation)
    p, o = position, orientation
    check = Check("pose", p, o)
    check.same(p.body, o.body, "both are of one body", ("body of the position", "body of the orientation"))
    what = ("reference body of the position", "reference body of the orientation")
    check.same(p.ref_body, o.ref_body, "both are relative to one body", what)
    what = ("coordinate frame of the position", "coordinate frame of the orientation")
    check.same(p.coord, o.coord, "both are expressed in one frame", what, CHANGE_COORD)
    check.done()
    return PoseCoord._of(p.point, o.ori, p.body, p.ref_point, o.ref_ori, p.ref_body, p.coord)


def integrate(x: Coord) -> Coord:
    """Return the coordinates of the displacement that a constant velocity makes.

    A twist whose point and coordinate frame are of one frame g, as they must be, gives the pose of g after the motion,
    relative to where it was: ``({g}|C, {g}|D, [g])``. An angular velocity gives an orientation of its coordinate frame
    in the same way, a linear velocity the way of its point.
    """
    if isinstance(x, TwistCoord):
        if x.point != x.coord:
            check = Check("integrate", x)
            repair = "change the point with change_point, or the frame with change_coordinate_frame"
            rule = "point and coordinate frame of a twist that is integrated are of one frame"
            check.same(x.point, x.coord, rule, ("point", "coordinate frame"), repair)
            check.done()
        return PoseCoord._of(x.point, x.point, x.body, x.point, x.point, x.ref_body, x.coord)
    if isinstance(x, AngularVelocityCoord):
        return OrientationCoord._of(x.coord, x.body, x.coord, x.ref_body, x.coord)
    if not isinstance(x, LinearVelocityCoord):
        unfit("integrate", x)
    return PositionCoord._of(x.point, x.body, x.point, x.ref_body, x.coord)


def differentiate(x: Coord, y: Coord | None = None, *, screw: bool = False) -> Coord:
    """Return the coordinates of the velocity that leads from one relation to the same relation a little later.

    Args:
        x: the relation; a pose or orientation is expressed in its reference orientation frame.
        y: the same relation later; for the coordinates alone it may be omitted.
        screw: for a pose, whether the velocity is that of the point and in the axes of the reference frame, instead of
            the frame itself.
    """
    y = x if y is None else y
    if type(x) is not type(y) or not isinstance(x, (PositionCoord, OrientationCoord, PoseCoord)):
        unfit("differentiate", x, y)
    check = Check("differentiate", x, y)
    for name in x.fields:
        left, right = getattr(x, name), getattr(y, name)
        check.same(left, right, "both are the same relation", (f"{name} of the first", f"{name} of the second"))
    if isinstance(x, PoseCoord):
        what = ("point", "orientation frame")
        check.same(x.point, x.ori, "a pose that is differentiated is that of a frame", what)
        what = ("reference point", "reference orientation frame")
        check.same(x.ref_point, x.ref_ori, "a pose that is differentiated is relative to a frame", what)
    if not isinstance(x, PositionCoord):
        require_own_reference(check, x, "the relation")
    check.done()
    if isinstance(x, PositionCoord):
        return LinearVelocityCoord._of(x.point, x.body, x.ref_body, x.coord)
    if isinstance(x, OrientationCoord):
        return AngularVelocityCoord._of(x.body, x.ref_body, x.coord)
    frame = x.ref_ori if screw else x.ori
    return TwistCoord._of(frame, x.body, x.ref_body, frame)


def dot(wrench: WrenchCoord, twist: TwistCoord) -> None:
    """Check that a wrench and a twist, in either order, have a power: the same point, bodies and coordinate frame."""
    if isinstance(wrench, TwistCoord) and isinstance(twist, WrenchCoord):
        wrench, twist = twist, wrench
    if not isinstance(wrench, WrenchCoord) or not isinstance(twist, TwistCoord):
        unfit("dot", wrench, twist)
    check = Check("dot", wrench, twist)
    names, labels = ("point", "body", "ref_body", "coord"), ("point", "body", "reference body", "coordinate frame")
    for name, label, repair in zip(names, labels, (CHANGE_POINT, "", "", CHANGE_COORD), strict=True):
        what = (f"{label} of the wrench", f"{label} of the twist")
        check.same(getattr(wrench, name), getattr(twist, name), f"both have one {label}", what, repair)
    check.done()
