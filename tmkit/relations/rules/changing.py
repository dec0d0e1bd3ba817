"""The rules by which a relation comes to speak of another point, another frame, another body, or in other axes."""

from __future__ import annotations

from typing import Any, TypeVar

from tmkit.relations.rules.composing import (
    CHANGE_COORD,
    MATRIX_LIKE,
    Check,
    chain_check,
    require_matrix,
    require_own_reference,
    unfit,
)
from tmkit.relations.semantics import (
    BODY,
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
    """Return the coordinates with another point, of the same body or of one rigidly joined to it (not checked)."""
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
    check.step("ref_point", "point", "the change begins at the point", repair)
    check.step("ref_body", "body", "the old point is on the body")
    if keeps_body:
        repair = "use change_point_body for a body that is rigidly joined"
        check.step("body", "body", "the new point is on the same body", repair)
    _require_same_axes(check, by, c)
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
    """Return the coordinates relative to another point; ``by`` is the old reference point relative to it."""
    c: Any = x
    operation = "change_reference_point" if keeps_body else "change_reference_point_body"
    kinds = (PositionCoord, PoseCoord) if keeps_body else PositionCoord
    if not isinstance(x, kinds) or not isinstance(by, PositionCoord):
        unfit(operation, x, by)
    check = Check(operation, x, by)
    check.step("point", "ref_point", "the change ends at the reference point", "turn the change round with inverse")
    check.step("body", "ref_body", "the old reference point is on the reference body")
    if keeps_body:
        repair = "use change_reference_point_body for a body that is rigidly joined"
        check.step("ref_body", "ref_body", "the new reference point is on the same body", repair)
    _require_same_axes(check, by, c)
    check.done()
    made: _Coord = c._replaced(ref_point=by.ref_point, ref_body=c.ref_body if keeps_body else by.ref_body)
    return made


def change_ori(x: _Coord, by: OrientationCoord) -> _Coord:
    """Return the coordinates with another orientation frame; ``by`` is that relative to the old one."""
    c: Any = x
    if not isinstance(x, MATRIX_LIKE) or not isinstance(by, OrientationCoord):
        unfit("change_orientation_frame", x, by)
    check = Check("change_orientation_frame", x, by)
    repair = "give the orientation of the new frame relative to the old one"
    check.step("ref_ori", "ori", "the change begins at the orientation frame", repair)
    check.step("ref_body", "body", "the old orientation frame is on the body")
    check.step("body", "body", "the new orientation frame is on the same body")
    require_own_reference(check, by, "the change")
    require_own_reference(check, c, "the relation")
    check.done()
    made: _Coord = c._replaced(ori=by.ori)
    return made


def change_ref_ori(x: _Coord, by: OrientationCoord) -> _Coord:
    """Return the coordinates relative to, and in, another frame; ``by`` is the old one relative to it."""
    c: Any = x
    if not isinstance(x, MATRIX_LIKE) or not isinstance(by, OrientationCoord):
        unfit("change_reference_orientation_frame", x, by)
    check = Check("change_reference_orientation_frame", x, by)
    repair = "turn the change round with inverse2"
    check.step("ori", "ref_ori", "the change ends at the reference orientation frame", repair)
    check.step("body", "ref_body", "the old reference frame is on the reference body")
    check.step("ref_body", "ref_body", "the new reference frame is on the same body")
    require_own_reference(check, by, "the change")
    require_own_reference(check, c, "the relation")
    check.done()
    made: _Coord = c._replaced(ref_ori=by.ref_ori, coord=by.ref_ori)
    return made


def change_coord(x: _Coord, by: OrientationCoord, *, is_matrix: bool | None = None) -> _Coord:
    """Return the coordinates expressed in another frame; a matrix can be in its reference frame alone."""
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
    """Return the coordinates relative to another body, by a velocity of the old one or what joins the two."""
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
    """Return the coordinates as those of another body, rigidly joined by ``by`` to the old one."""
    c: Any = x
    if not isinstance(x, (PositionCoord, OrientationCoord, PoseCoord)):
        unfit("change_body", x, by)
    joined: _Coord = c._replaced(body=_joined_to("change_body", x, c.body, by, "body"))
    return joined


def _require_same_axes(check: Check, by: PositionCoord, c: Any) -> None:
    """Require a step to be expressed in the axes of the relation that it changes."""
    what = ("coordinate frame of the change", "coordinate frame")
    check.same(by.coord, c.coord, "the change is expressed in the frame of the relation", what, CHANGE_COORD)


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
