"""The operations on relations as rules: what an operation asks of its operands, and what its result speaks of.

Each function takes coordinates (what is related to what, and the frame of expression) and returns those of the result;
no numbers are needed. It collects every broken rule and raises one :class:`SemanticError`. With the checks off it
returns the result alone.

Source: De Laet et al., "Geometric relations between rigid bodies (part 1)", 2013, whose tables give the operations on
positions, orientations, poses and velocities. Forces, torques and wrenches stand to them as angular velocities, linear
velocities and twists do; what is different is said in their place: forces of one body on another are added where they
act on the same body, not chained.

*Order of operands*: ``compose`` chains, whichever operand comes first. Where only one order fits, it is that one; where
both do (a pose and its way back), the order of the arguments counts.

Invariants: functions of their arguments; a result has the class of the operand that it is made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

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
from tmkit.relations.violations import SemanticError, Violation, checks_are_on

__all__ = [
    "change_coord",
    "change_ori",
    "change_point",
    "change_point_body",
    "change_ref_body",
    "change_ref_ori",
    "change_ref_point",
    "change_ref_point_body",
    "compose",
    "differentiate",
    "dot",
    "integrate",
    "inverse",
    "inverse2",
    "orientation_of",
    "pose_of",
    "position_of",
]

_Coord = TypeVar("_Coord", bound=Semantics)

_CHAINED = (PositionCoord, OrientationCoord, PoseCoord, LinearVelocityCoord, AngularVelocityCoord, TwistCoord)
_ADDED = (ForceCoord, TorqueCoord, WrenchCoord)
_MATRIX_LIKE = (OrientationCoord, PoseCoord)

_CHANGE_COORD = "express both in one frame with change_coordinate_frame"
_CHANGE_POINT = "change the point of one with change_point"


class _Check:
    """Collects the broken rules of one operation."""

    def __init__(self, operation: str, *operands: Any) -> None:
        self.operation = operation
        self.operands = operands
        self.broken: list[Violation] = []

    def same(self, left: str, right: str, rule: str, what: tuple[str, str], repair: str = "") -> None:
        """Require two names to be one."""
        if left != right:
            self.broken.append(Violation(rule, f"{what[0]} {left}", f"{what[1]} {right}", repair))

    def require(self, holds: bool, rule: str, left: str, right: str = "", repair: str = "") -> None:
        """Require what cannot be said as two names."""
        if not holds:
            self.broken.append(Violation(rule, left, right, repair))

    def done(self) -> None:
        """Refuse when a rule was broken."""
        if self.broken:
            raise SemanticError.of(_call(self.operation, self.operands), self.broken)


def _call(operation: str, operands: Sequence[object]) -> str:
    return f"{operation}({', '.join(map(repr, operands))})"


def _unfit(operation: str, *operands: object) -> NoReturn:
    """Refuse operands of relations for which there is no such operation."""
    kinds = " and ".join(getattr(operand, "relation", type(operand).__name__) for operand in operands)
    raise SemanticError.of(
        _call(operation, operands), [Violation(f"there is no {operation} for these relations", kinds)]
    )


def _keeps_matrix(check: _Check, x: Any, coord: str, ref_ori: str) -> None:
    """What may be a matrix before an operation must be one after it: expressed in its reference orientation frame."""
    if isinstance(x, _MATRIX_LIKE) and x.coord == x.ref_ori:
        check.same(
            coord,
            ref_ori,
            "a rotation matrix, and with it a homogeneous matrix, is expressed in its reference orientation frame",
            ("coordinate frame", "reference orientation frame"),
            "use inverse2, change_reference_orientation_frame, or a representation that allows it (a rotation vector)",
        )


# ------------------------------------------------------------------------------------------------------------- inverse


def inverse(x: _Coord, *, is_matrix: bool | None = None) -> _Coord:
    """Return the coordinates of the inverse, expressed in the same frame.

    A velocity's point keeps its name, since it is where the two bodies are compared; so does the point of a torque.

    Args:
        x: the relation.
        is_matrix: whether its numbers are a matrix, which must stay one; when left out, whether they may be.

    Raises:
        SemanticError: the relation is a matrix, which would not be expressed in its reference orientation frame.
    """
    c: Any = x
    if isinstance(x, PositionCoord):
        result: Any = c._of(c.ref_point, c.ref_body, c.point, c.body, c.coord)
    elif isinstance(x, OrientationCoord):
        result = c._of(c.ref_ori, c.ref_body, c.ori, c.body, c.coord)
    elif isinstance(x, PoseCoord):
        result = c._of(c.ref_point, c.ref_ori, c.ref_body, c.point, c.ori, c.body, c.coord)
    elif isinstance(x, (LinearVelocityCoord, TwistCoord, TorqueCoord, WrenchCoord)):
        result = c._of(c.point, c.ref_body, c.body, c.coord)
    elif isinstance(x, (AngularVelocityCoord, ForceCoord)):
        result = c._of(c.ref_body, c.body, c.coord)
    else:
        _unfit("inverse", x)
    if checks_are_on() and is_matrix is not False and isinstance(x, _MATRIX_LIKE):
        check = _Check("inverse", x)
        _keeps_matrix(check, x, result.coord, result.ref_ori)
        check.done()
    made: _Coord = result
    return made


def inverse2(x: _Coord) -> _Coord:
    """Return the coordinates of the inverse of an orientation or pose, expressed in its own reference frame.

    Raises:
        SemanticError: the relation is not expressed in its reference orientation frame.
    """
    c: Any = x
    if not isinstance(x, _MATRIX_LIKE):
        _unfit("inverse2", x)
    if checks_are_on():
        check = _Check("inverse2", x)
        _in_own_reference(check, c, "the operand")
        check.done()
    if isinstance(x, OrientationCoord):
        made: _Coord = c._of(c.ref_ori, c.ref_body, c.ori, c.body, c.ori)
    else:
        made = c._of(c.ref_point, c.ref_ori, c.ref_body, c.point, c.ori, c.body, c.ori)
    return made


def _in_own_reference(check: _Check, x: Any, which: str) -> None:
    if x.coord != x.ref_ori:
        check.same(
            x.coord,
            x.ref_ori,
            f"{which} is expressed in its reference orientation frame",
            ("coordinate frame", "reference orientation frame"),
            "express it there with change_coordinate_frame",
        )


# ------------------------------------------------------------------------------------------------------------- compose


def compose(x: _Coord, y: _Coord) -> tuple[_Coord, bool]:
    """Return the coordinates of a composition, and whether it reads ``y`` before ``x``.

    Args:
        x: what is known of one body relative to a second.
        y: what is known of that second relative to a third; or the other way round.

    Raises:
        SemanticError: the two do not chain; all reasons are given for the order of the arguments.
    """
    if type(x) is not type(y):
        _unfit("compose", x, y)
    if isinstance(x, _ADDED):
        return _added(x, y), False
    if not isinstance(x, _CHAINED):
        _unfit("compose", x, y)
    if not checks_are_on():
        return _chained(x, y), False
    check = _chain_check(x, y)
    if not check.broken:
        return _chained(x, y), False
    if not _chain_check(y, x).broken:
        return _chained(y, x), True
    check.done()
    raise AssertionError("unreachable")  # pragma: no cover


def _chain_check(x: Any, y: Any) -> _Check:
    check = _Check("compose", x, y)
    if isinstance(x, (PositionCoord, PoseCoord)):
        what = ("reference point of the first", "point of the second")
        check.same(x.ref_point, y.point, "the reference point of one is the point of the other", what)
    if isinstance(x, _MATRIX_LIKE):
        what = ("reference orientation frame of the first", "orientation frame of the second")
        rule = "the reference orientation frame of one is the orientation frame of the other"
        check.same(x.ref_ori, y.ori, rule, what)
    if isinstance(x, (LinearVelocityCoord, TwistCoord)):
        what = ("point of the first", "point of the second")
        check.same(x.point, y.point, "velocities are composed at one point", what, _CHANGE_POINT)
    what = ("reference body of the first", "body of the second")
    check.same(x.ref_body, y.body, "the reference body of one is the body of the other", what)
    if isinstance(x, PoseCoord) or (isinstance(x, OrientationCoord) and x.coord != y.coord):
        _in_own_reference(check, x, "the first operand")
        _in_own_reference(check, y, "the second operand")
    elif not isinstance(x, OrientationCoord):
        what = ("coordinate frame of the first", "coordinate frame of the second")
        check.same(x.coord, y.coord, "both are expressed in one frame", what, _CHANGE_COORD)
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
    if checks_are_on():
        check = _Check("compose", x, y)
        what = ("body of the first", "body of the second")
        check.same(x.body, y.body, "forces that are added act on one body", what)
        what = ("reference body of the first", "reference body of the second")
        check.same(x.ref_body, y.ref_body, "forces that are added are exerted by one body", what)
        if not isinstance(x, ForceCoord):
            what = ("point of the first", "point of the second")
            check.same(x.point, y.point, "moments are added about one point", what, _CHANGE_POINT)
        what = ("coordinate frame of the first", "coordinate frame of the second")
        check.same(x.coord, y.coord, "both are expressed in one frame", what, _CHANGE_COORD)
        check.done()
    return x


# ----------------------------------------------------------------------------------------------------- changing points


def change_point(x: _Coord, by: PositionCoord, free: AngularVelocityCoord | ForceCoord | None = None) -> _Coord:
    """Return the coordinates with another point of the same body.

    Args:
        x: a position, pose, linear velocity, twist, torque or wrench.
        by: the position of the new point relative to the old one, in the same frame.
        free: for a linear velocity the angular velocity, for a torque the force of the same bodies.

    Raises:
        SemanticError: ``by`` does not lead from the point of ``x`` to another of its body, or is expressed elsewhere.
    """
    return _moved_point(x, by, free, operation="change_point", keeps_body=True)


def change_point_body(x: _Coord, by: PositionCoord) -> _Coord:
    """Return the coordinates with a point of another body, which is rigidly joined to the first; that is not checked.

    Raises:
        SemanticError: ``by`` does not lead from the point of ``x`` to another, or is expressed elsewhere.
    """
    return _moved_point(x, by, None, operation="change_point_body", keeps_body=False)


def _moved_point(x: _Coord, by: PositionCoord, free: Any, *, operation: str, keeps_body: bool) -> _Coord:
    c: Any = x
    movable = (PositionCoord, PoseCoord, LinearVelocityCoord, TwistCoord, TorqueCoord, WrenchCoord)
    if not isinstance(x, movable) or not isinstance(by, PositionCoord):
        _unfit(operation, x, by)
    if checks_are_on():
        operands = (x, by) if free is None else (x, by, free)
        check = _Check(operation, *operands)
        wants: Any = None
        if isinstance(x, LinearVelocityCoord):
            wants = AngularVelocityCoord
        elif isinstance(x, TorqueCoord):
            wants = ForceCoord
        if wants is not None and not isinstance(free, wants):
            rule = f"another point of a {c.relation} needs the {wants.relation} of the same bodies"
            check.require(False, rule, repr(free) if free is not None else "none was given")
        repair = "give the position of the new point relative to the old one"
        check.same(by.ref_point, c.point, "the change begins at the point", ("it begins at", "the point is"), repair)
        check.same(by.ref_body, c.body, "the old point is on the body", ("it begins on", "the body is"))
        if keeps_body:
            repair = "use change_point_body for a body that is rigidly joined"
            check.same(by.body, c.body, "the new point is on the same body", ("it ends on", "the body is"), repair)
        what = ("coordinate frame of the change", "coordinate frame")
        check.same(by.coord, c.coord, "the change is expressed in the frame of the relation", what, _CHANGE_COORD)
        if wants is not None and isinstance(free, wants):
            name = wants.relation
            check.same(free.body, c.body, f"the {name} is that of the same body", (f"body of the {name}", "body"))
            what = (f"reference body of the {name}", "reference body")
            check.same(free.ref_body, c.ref_body, f"the {name} is relative to the same body", what)
            what = (f"coordinate frame of the {name}", "coordinate frame")
            check.same(free.coord, c.coord, f"the {name} is expressed in the same frame", what, _CHANGE_COORD)
        check.done()
    body = c.body if keeps_body else by.body
    made: _Coord = c.replace(point=by.point, body=body)
    return made


def change_ref_point(x: _Coord, by: PositionCoord) -> _Coord:
    """Return the coordinates of a position or pose relative to another point of the same reference body.

    Args:
        x: the position or pose.
        by: the position of the old reference point relative to the new one, in the same frame.

    Raises:
        SemanticError: ``by`` does not lead to the reference point from another of its body, or is expressed elsewhere.
    """
    return _moved_ref_point(x, by, operation="change_reference_point", keeps_body=True)


def change_ref_point_body(x: _Coord, by: PositionCoord) -> _Coord:
    """Return the coordinates relative to a point of another reference body, rigidly joined; that is not checked.

    Raises:
        SemanticError: ``by`` does not lead to the reference point, or is expressed elsewhere.
    """
    return _moved_ref_point(x, by, operation="change_reference_point_body", keeps_body=False)


def _moved_ref_point(x: _Coord, by: PositionCoord, *, operation: str, keeps_body: bool) -> _Coord:
    c: Any = x
    if not isinstance(x, (PositionCoord, PoseCoord)) or not isinstance(by, PositionCoord):
        _unfit(operation, x, by)
    if checks_are_on():
        check = _Check(operation, x, by)
        repair = "turn the change round with inverse"
        what = ("it ends at", "the reference point is")
        check.same(by.point, c.ref_point, "the change ends at the reference point", what, repair)
        what = ("it ends on", "the reference body is")
        check.same(by.body, c.ref_body, "the old reference point is on the reference body", what)
        if keeps_body:
            repair = "use change_reference_point_body for a body that is rigidly joined"
            what = ("it begins on", "the reference body is")
            check.same(by.ref_body, c.ref_body, "the new reference point is on the same body", what, repair)
        what = ("coordinate frame of the change", "coordinate frame")
        check.same(by.coord, c.coord, "the change is expressed in the frame of the relation", what, _CHANGE_COORD)
        check.done()
    body = c.ref_body if keeps_body else by.ref_body
    made: _Coord = c.replace(ref_point=by.ref_point, ref_body=body)
    return made


# ------------------------------------------------------------------------------------------------ changing orientations


def change_ori(x: _Coord, by: OrientationCoord) -> _Coord:
    """Return the coordinates of an orientation or pose with another orientation frame of the same body.

    Args:
        x: the orientation or pose, expressed in its reference orientation frame.
        by: the orientation of the new frame relative to the old one, expressed in the old one.

    Raises:
        SemanticError: ``by`` does not lead from the orientation frame of ``x`` to another of its body.
    """
    c: Any = x
    if not isinstance(x, _MATRIX_LIKE) or not isinstance(by, OrientationCoord):
        _unfit("change_orientation_frame", x, by)
    if checks_are_on():
        check = _Check("change_orientation_frame", x, by)
        what = ("it begins at", "the orientation frame is")
        repair = "give the orientation of the new frame relative to the old one"
        check.same(by.ref_ori, c.ori, "the change begins at the orientation frame", what, repair)
        check.same(by.ref_body, c.body, "the old orientation frame is on the body", ("it begins on", "the body is"))
        check.same(by.body, c.body, "the new orientation frame is on the same body", ("it ends on", "the body is"))
        _in_own_reference(check, by, "the change")
        _in_own_reference(check, c, "the relation")
        check.done()
    made: _Coord = c.replace(ori=by.ori)
    return made


def change_ref_ori(x: _Coord, by: OrientationCoord) -> _Coord:
    """Return the coordinates of an orientation or pose relative to another frame of the same reference body.

    The result is expressed in the new reference orientation frame.

    Args:
        x: the orientation or pose, expressed in its reference orientation frame.
        by: the orientation of the old reference frame relative to the new one, expressed in the new one.

    Raises:
        SemanticError: ``by`` does not lead to the reference orientation frame of ``x`` from another of its body.
    """
    c: Any = x
    if not isinstance(x, _MATRIX_LIKE) or not isinstance(by, OrientationCoord):
        _unfit("change_reference_orientation_frame", x, by)
    if checks_are_on():
        check = _Check("change_reference_orientation_frame", x, by)
        what = ("it ends at", "the reference orientation frame is")
        repair = "turn the change round with inverse2"
        check.same(by.ori, c.ref_ori, "the change ends at the reference orientation frame", what, repair)
        what = ("it ends on", "the reference body is")
        check.same(by.body, c.ref_body, "the old reference frame is on the reference body", what)
        what = ("it begins on", "the reference body is")
        check.same(by.ref_body, c.ref_body, "the new reference frame is on the same body", what)
        _in_own_reference(check, by, "the change")
        _in_own_reference(check, c, "the relation")
        check.done()
    made: _Coord = c.replace(ref_ori=by.ref_ori, coord=by.ref_ori)
    return made


def change_coord(x: _Coord, by: OrientationCoord, *, is_matrix: bool | None = None) -> _Coord:
    """Return the coordinates expressed in another frame.

    Args:
        x: the relation.
        by: the orientation of the frame in which it is expressed, relative to the new one, expressed in the new one.
        is_matrix: whether its numbers are a matrix of orientation; when left out, whether they may be.

    Raises:
        SemanticError: ``by`` does not begin at the frame in which ``x`` is expressed; or ``x`` is a matrix, which can
            be expressed in its reference orientation frame alone.
    """
    c: Any = x
    if not isinstance(by, OrientationCoord) or not hasattr(x, "coord"):
        _unfit("change_coordinate_frame", x, by)
    if checks_are_on():
        check = _Check("change_coordinate_frame", x, by)
        what = ("it speaks of", "the coordinate frame is")
        repair = "give the orientation of the old coordinate frame relative to the new one"
        check.same(by.ori, c.coord, "the change begins at the coordinate frame", what, repair)
        _in_own_reference(check, by, "the change")
        if is_matrix is not False and isinstance(x, _MATRIX_LIKE):
            _keeps_matrix(check, x, by.ref_ori, c.ref_ori)
        check.done()
    made: _Coord = c.replace(coord=by.ref_ori)
    return made


# ------------------------------------------------------------------------------------------------------ changing bodies


def change_ref_body(x: _Coord, by: TwistCoord | None = None, *, body: str | None = None) -> _Coord:
    """Return the coordinates relative to another reference body.

    Args:
        x: a twist, composed with the twist of its reference body relative to the new one; or any other relation, for
            which the new reference body is rigidly joined to the old one.
        by: for a twist: the twist of the old reference body relative to the new one, at the same point.
        body: otherwise the new reference body; that it is rigidly joined is not checked.

    Raises:
        SemanticError: the twists do not chain, or the operands do not fit.
    """
    c: Any = x
    if isinstance(x, TwistCoord) and by is not None:
        if checks_are_on():
            check = _chain_check(x, by)
            check.operation = "change_reference_body"
            check.done()
        made: _Coord = c.replace(ref_body=by.ref_body)
        return made
    if body is None:
        _unfit("change_reference_body", x, by)
    joined: _Coord = c.replace(ref_body=body)
    return joined


# ------------------------------------------------------------------------------------------------------------ with time


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
            check = _Check("integrate", x)
            repair = "change the point with change_point, or the frame with change_coordinate_frame"
            rule = "point and coordinate frame of a twist that is integrated are of one frame"
            check.same(x.point, x.coord, rule, ("point", "coordinate frame"), repair)
            check.done()
        return PoseCoord._of(x.point, x.point, x.body, x.point, x.point, x.ref_body, x.coord)
    if isinstance(x, AngularVelocityCoord):
        return OrientationCoord._of(x.coord, x.body, x.coord, x.ref_body, x.coord)
    if isinstance(x, LinearVelocityCoord):
        return PositionCoord._of(x.point, x.body, x.point, x.ref_body, x.coord)
    _unfit("integrate", x)


def differentiate(x: Coord, y: Coord, *, screw: bool = False) -> Coord:
    """Return the coordinates of the velocity that leads from one relation to the same relation a little later.

    Args:
        x: the relation; a pose or orientation is expressed in its reference orientation frame.
        y: the same relation later.
        screw: for a pose, whether the velocity is that of the point and in the axes of the reference frame, instead of
            the frame itself.

    Raises:
        SemanticError: the two are not the same relation, or a pose is not one between two frames.
    """
    if type(x) is not type(y) or not isinstance(x, (PositionCoord, OrientationCoord, PoseCoord)):
        _unfit("differentiate", x, y)
    if checks_are_on():
        check = _Check("differentiate", x, y)
        for name in x.fields:
            left, right = getattr(x, name), getattr(y, name)
            check.same(left, right, "both are the same relation", (f"{name} of the first", f"{name} of the second"))
        if isinstance(x, PoseCoord):
            what = ("point", "orientation frame")
            check.same(x.point, x.ori, "a pose that is differentiated is that of a frame", what)
            what = ("reference point", "reference orientation frame")
            check.same(x.ref_point, x.ref_ori, "a pose that is differentiated is relative to a frame", what)
        if not isinstance(x, PositionCoord):
            _in_own_reference(check, x, "the relation")
        check.done()
    if isinstance(x, PositionCoord):
        return LinearVelocityCoord._of(x.point, x.body, x.ref_body, x.coord)
    if isinstance(x, OrientationCoord):
        return AngularVelocityCoord._of(x.body, x.ref_body, x.coord)
    frame = x.ref_ori if screw else x.ori
    return TwistCoord._of(frame, x.body, x.ref_body, frame)


def dot(wrench: WrenchCoord, twist: TwistCoord) -> None:
    """Check that a wrench and a twist may be multiplied to a power.

    Raises:
        SemanticError: they speak of different bodies or points, or are expressed in different frames.
    """
    if isinstance(wrench, TwistCoord) and isinstance(twist, WrenchCoord):
        wrench, twist = twist, wrench
    if not isinstance(wrench, WrenchCoord) or not isinstance(twist, TwistCoord):
        _unfit("dot", wrench, twist)
    if checks_are_on():
        check = _Check("dot", wrench, twist)
        for name, label, repair in (
            ("point", "point", _CHANGE_POINT),
            ("body", "body", ""),
            ("ref_body", "reference body", ""),
            ("coord", "coordinate frame", _CHANGE_COORD),
        ):
            what = (f"{label} of the wrench", f"{label} of the twist")
            check.same(getattr(wrench, name), getattr(twist, name), f"both have one {label}", what, repair)
        check.done()


# ------------------------------------------------------------------------------------------------------ parts of a pose


def position_of(x: PoseCoord) -> PositionCoord:
    """Return the coordinates of the position in a pose."""
    return PositionCoord._of(x.point, x.body, x.ref_point, x.ref_body, x.coord)


def orientation_of(x: PoseCoord) -> OrientationCoord:
    """Return the coordinates of the orientation in a pose."""
    return OrientationCoord._of(x.ori, x.body, x.ref_ori, x.ref_body, x.coord)


def pose_of(position: PositionCoord, orientation: OrientationCoord) -> PoseCoord:
    """Return the coordinates of the pose made of a position and an orientation.

    Raises:
        SemanticError: they speak of different bodies, or are expressed in different frames.
    """
    if not isinstance(position, PositionCoord) or not isinstance(orientation, OrientationCoord):
        _unfit("pose", position, orientation)
    p, o = position, orientation
    if checks_are_on():
        check = _Check("pose", p, o)
        check.same(p.body, o.body, "both are of one body", ("body of the position", "body of the orientation"))
        what = ("reference body of the position", "reference body of the orientation")
        check.same(p.ref_body, o.ref_body, "both are relative to one body", what)
        what = ("coordinate frame of the position", "coordinate frame of the orientation")
        check.same(p.coord, o.coord, "both are expressed in one frame", what, _CHANGE_COORD)
        check.done()
    return PoseCoord._of(p.point, o.ori, p.body, p.ref_point, o.ref_ori, p.ref_body, p.coord)
