"""The rules of integration, differentiation and power."""

from __future__ import annotations

from tmkit.relations.rules.checking import CHANGE_COORD, CHANGE_POINT, Check, require_own_reference, unfit
from tmkit.relations.semantics import (
    AngularVelocityCoord,
    Coord,
    LinearVelocityCoord,
    OrientationCoord,
    PoseCoord,
    PositionCoord,
    TwistCoord,
    WrenchCoord,
)
from tmkit.relations.violations import checks_are_on


def integrate(x: Coord) -> Coord:
    """Return the coordinates of the displacement that a constant velocity makes.

    A twist whose point and coordinate frame are of one frame g gives the pose of g after the motion, relative to where
    it was: ``({g}|C, {g}|D, [g])``. An angular velocity gives an orientation of its coordinate frame in the same way, a
    linear velocity the way of its point.

    Raises:
        SemanticError: the point of a twist and its coordinate frame are of different frames; or the relation is no
            velocity.
    """
    if isinstance(x, TwistCoord):
        if checks_are_on() and x.point != x.coord:
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

    Raises:
        SemanticError: the two are not the same relation, or a pose is not one between two frames.
    """
    y = x if y is None else y
    if type(x) is not type(y) or not isinstance(x, (PositionCoord, OrientationCoord, PoseCoord)):
        unfit("differentiate", x, y)
    is_own = isinstance(x, PositionCoord) or x.coord == x.ref_ori
    is_framed = not isinstance(x, PoseCoord) or (x.point == x.ori and x.ref_point == x.ref_ori)
    if checks_are_on() and not (is_own and is_framed and x == y):
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
    """Check that the power of a wrench and a twist is defined.

    Args:
        wrench: coordinates with the same point, bodies and coordinate frame; in either order.
        twist: coordinates with the same point, bodies and coordinate frame; in either order.

    Raises:
        SemanticError: they speak of different bodies or points, or are expressed in different frames.
    """
    if isinstance(wrench, TwistCoord) and isinstance(twist, WrenchCoord):
        wrench, twist = twist, wrench
    if not isinstance(wrench, WrenchCoord) or not isinstance(twist, TwistCoord):
        unfit("dot", wrench, twist)
    w, t = wrench, twist
    fits = w.point == t.point and w.body == t.body and w.ref_body == t.ref_body and w.coord == t.coord
    if checks_are_on() and not fits:
        check = Check("dot", wrench, twist)
        for name, label, repair in (
            ("point", "point", CHANGE_POINT),
            ("body", "body", ""),
            ("ref_body", "reference body", ""),
            ("coord", "coordinate frame", CHANGE_COORD),
        ):
            what = (f"{label} of the wrench", f"{label} of the twist")
            check.same(getattr(wrench, name), getattr(twist, name), f"both have one {label}", what, repair)
        check.done()
