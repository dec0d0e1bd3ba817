"""The rules by which a relation comes to speak of another point, another frame, another body, or in other axes."""

from __future__ import annotations

from typing import Any, TypeVar

from tmkit.relations.notation import BODY
from tmkit.relations.rules.checking import (
    CHANGE_COORD,
    MATRIX_LIKE,
    Check,
    require_matrix,
    require_own_reference,
    unfit,
)
from tmkit.relations.rules.composing import chain_check
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
from tmkit.relations.violations import Violation

_Coord = TypeVar("_Coord", bound=Semantics)
_FREE_OF: dict[type, Any] = {LinearVelocityCoord: AngularVelocityCoord, TorqueCoord: ForceCoord}


def change_point(
    x: _Coord, by: PositionCoord, free: AngularVelocityCoord | ForceCoord | None = None, *, keeps_body: bool = True
) -> _Coord:
    """Return the coordinates with another point: of the same body, or of one rigidly joined to it.

    Args:
        x: a position, pose, linear velocity, twist, torque or wrench; with a point of another body a position or twist,
            since a wrench stays on its body, and the orientation frame of a pose on its own.
        by: the position of the new point relative to the old one, in the same frame.
        free: for a linear velocity the angular velocity, for a torque the force of the same bodies.
        keeps_body: whether the new point is on the same body; that another is joined to it is not checked.
    """
    c: Any = x
    operation = "change_point" if keeps_body else "change_point_body"
    movable = (PositionCoord, PoseCoord, LinearVelocityCoord, TwistCoord, TorqueCoord, WrenchCoord)
    if not isinstance(x, movable if keeps_body else (PositionCoord, TwistCoord)) or not isinstance(by, PositionCoord):
        unfit(operation, x, by)
    if free is not None and not isinstance(x, (LinearVelocityCoord, TorqueCoord)):
        unfit(operation, x, by, free)
    operands = (x, by) if free is None else (x, by, free)
    check = Check(operation, *operands)
    wants = _FREE_OF.get(type(x))
    if wants is not None and not isinstance(free, wants):
        rule = f"another point of a {c.relation} needs the {wants.relation} of the same bodies"
        check.broken.append(Violation(rule, repr(free) if free is not None else "none was given"))
    repair = "give the position of the new point relative to the old one"
    check.same(by.ref_point, c.point, "the change begins at the point", ("it begins at", "the point is"), repair)
    check.same(by.ref_body, c.body, "the old point is on the body", ("it begins on", "the body is"))
    if keeps_body:
        repair = "use change_point_body for a body that is rigidly joined"
        check.same(by.body, c.body, "the new point is on the same body", ("it ends on", "the body is"), repair)
    what = ("coordinate frame of the change", "coordinate frame")
    check.same(by.coord, c.coord, "the change is expressed in the frame of the relation", what, CHANGE_COORD)
    if wants is not None and isinstance(free, wants):
        name = wants.relation
        check.same(free.body, c.body, f"the {name} is that of the same body", (f"body of the {name}", "body"))
        what = (f"reference body of the {name}", "reference body")
        check.same(free.ref_body, c.ref_body, f"the {name} is relative to the same body", what)
        what = (f"coordinate frame of the {name}", "coordinate frame")
        check.same(free.coord, c.coord, f"the {name} is expressed in the same frame", what, CHANGE_COORD)
    check.done()
    made: _Coord = c._replaced(point=by.point, body=c.body if keeps_body else by.body)
    return made


def change_ref_point(x: _Coord, by: PositionCoord, *, keeps_body: bool = True) -> _Coord:
    """Return the coordinates relative to another point: of the same reference body, or of one rigidly joined to it.

    Args:
        x: a position, or with a point of the same body also a pose.
        by: the position of the old reference point relative to the new one, in the same frame.
        keeps_body: whether the new point is on the same body; that another is joined to it is not checked.
    """
    c: Any = x
    operation = "change_reference_point" if keeps_body else "change_reference_point_body"
    kinds = (PositionCoord, PoseCoord) if keeps_body else PositionCoord
    if not isinstance(x, kinds) or not isinstance(by, PositionCoord):
        unfit(operation, x, by)
    check = Check(operation, x, by)
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
    check.same(by.coord, c.coord, "the change is expressed in the frame of the relation", what, CHANGE_COORD)
    check.done()
    made: _Coord = c._replaced(ref_point=by.ref_point, ref_body=c.ref_body if keeps_body else by.ref_body)
    return made


def change_ori(x: _Coord, by: OrientationCoord) -> _Coord:
    """Return the coordinates of an orientation or pose with another orientation frame of the same body.

    ``by`` is the orientation of the new frame relative to the old one, expressed in the old one.
    """
    c: Any = x
    if not isinstance(x, MATRIX_LIKE) or not isinstance(by, OrientationCoord):
        unfit("change_orientation_frame", x, by)
    check = Check("change_orientation_frame", x, by)
    what = ("it begins at", "the orientation frame is")
    repair = "give the orientation of the new frame relative to the old one"
    check.same(by.ref_ori, c.ori, "the change begins at the orientation frame", what, repair)
    check.same(by.ref_body, c.body, "the old orientation frame is on the body", ("it begins on", "the body is"))
    check.same(by.body, c.body, "the new orientation frame is on the same body", ("it ends on", "the body is"))
    require_own_reference(check, by, "the change")
    require_own_reference(check, c, "the relation")
    check.done()
    made: _Coord = c._replaced(ori=by.ori)
    return made


def change_ref_ori(x: _Coord, by: OrientationCoord) -> _Coord:
    """Return the coordinates of an orientation or pose relative to, and in, another frame of the same reference body.

    ``by`` is the orientation of the old reference frame relative to the new one, expressed in the new one.
    """
    c: Any = x
    if not isinstance(x, MATRIX_LIKE) or not isinstance(by, OrientationCoord):
        unfit("change_reference_orientation_frame", x, by)
    check = Check("change_reference_orientation_frame", x, by)
    what = ("it ends at", "the reference orientation frame is")
    repair = "turn the change round with inverse2"
    check.same(by.ori, c.ref_ori, "the change ends at the reference orientation frame", what, repair)
    what = ("it ends on", "the reference body is")
    check.same(by.body, c.ref_body, "the old reference frame is on the reference body", what)
    what = ("it begins on", "the reference body is")
    check.same(by.ref_body, c.ref_body, "the new reference frame is on the same body", what)
    require_own_reference(check, by, "the change")
    require_own_reference(check, c, "the relation")
    check.done()
    made: _Coord = c._replaced(ref_ori=by.ref_ori, coord=by.ref_ori)
    return made


def change_coord(x: _Coord, by: OrientationCoord, *, is_matrix: bool | None = None) -> _Coord:
    """Return the coordinates expressed in another frame; a matrix can be expressed in its reference frame alone.

    Args:
        by: the orientation of the frame in which it is expressed, relative to the new one, expressed in the new one.
        is_matrix: whether its numbers are a matrix of orientation; by default whether they may be.
    """
    c: Any = x
    if not isinstance(by, OrientationCoord) or not hasattr(x, "coord"):
        unfit("change_coordinate_frame", x, by)
    check = Check("change_coordinate_frame", x, by)
    what = ("it refers to", "the coordinate frame is")
    repair = "give the orientation of the old coordinate frame relative to the new one"
    check.same(by.ori, c.coord, "the change begins at the coordinate frame", what, repair)
    require_own_reference(check, by, "the change")
    if is_matrix is not False and isinstance(x, MATRIX_LIKE):
        require_matrix(check, x, by.ref_ori, c.ref_ori)
    check.done()
    made: _Coord = c._replaced(coord=by.ref_ori)
    return made


def change_ref_body(x: _Coord, by: Coord | str) -> _Coord:
    """Return the coordinates relative to another reference body.

    Args:
        x: a velocity, composed with that of its reference body relative to the new one; or a velocity, position,
            orientation or pose, for which the new reference body is rigidly joined to the old one. A force is
            exerted by the body that it names, and by no other.
        by: for a velocity: the same kind of velocity, of the old reference body relative to the new one, at the same
            point. Otherwise what says that the two bodies are joined: a position, orientation or pose of one relative
            to the other that stays as it is, or only the name of the new body. That it stays so is not checked.
    """
    c: Any = x
    if isinstance(x, (ForceCoord, TorqueCoord, WrenchCoord)):
        unfit("change_reference_body", x, by)
    if isinstance(x, (LinearVelocityCoord, AngularVelocityCoord, TwistCoord)) and type(by) is type(x):
        check = chain_check(x, by)
        check.operation = "change_reference_body"
        check.done()
        made: _Coord = c._replaced(ref_body=by.ref_body)
        return made
    return x._replaced(ref_body=_joined_to("change_reference_body", x, c.ref_body, by, "reference body"))


def change_body(x: _Coord, by: Coord | str) -> _Coord:
    """Return the coordinates of a position, orientation or pose, its point and frame taken as those of another body.

    ``by`` says that the new body is rigidly joined to the old one, as for :func:`change_ref_body`.
    """
    c: Any = x
    if not isinstance(x, (PositionCoord, OrientationCoord, PoseCoord)):
        unfit("change_body", x, by)
    joined: _Coord = c._replaced(body=_joined_to("change_body", x, c.body, by, "body"))
    return joined


def _joined_to(operation: str, x: Any, body: str, by: Any, what: str) -> str:
    """Return the body that is joined to another, by name or by a relation between the two."""
    if isinstance(by, str):
        return BODY.read(by)[0]
    if not isinstance(by, (PositionCoord, OrientationCoord, PoseCoord)):
        unfit(operation, x, by)
    if by.body == body:
        return by.ref_body
    if by.ref_body != body:
        check = Check(operation, x, by)
        sides = f"it joins {by.body} and {by.ref_body}", f"the {what} is {body}"
        check.broken.append(Violation(f"the constant relation is one of the {what}", *sides))
        check.done()
    return by.body
