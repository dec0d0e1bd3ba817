"""Rules of operations on relations: preconditions, and semantics of the result.

Each function takes coordinates and returns those of the result, without numbers. It collects all
violated rules and raises one :class:`SemanticError`, unless checks are disabled.

Source: De Laet et al., "Geometric relations between rigid bodies (part 1)", 2013, whose tables give
the operations on positions, orientations, poses and velocities. Forces, torques and wrenches follow
the rules of angular velocities, linear velocities and twists. Comments describe the differences.

*Order of operands*: ``compose`` chains operands in either order. If only one order is valid, it is
used. If both are valid (a pose and its inverse), the order of the arguments counts. Forces on one
body are added, not chained.

Invariants: pure functions; a result has the class of the operand from which it is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tmkit.relations import semantics as sem
from tmkit.relations.violations import SemanticError, Violation, checks_are_on

_MATRIX_LIKE = (sem.OrientationCoord, sem.PoseCoord)
_ADDITIVE = (sem.ForceCoord, sem.TorqueCoord, sem.WrenchCoord)
_CHANGE_COORD = "express both in one frame with change_coordinate_frame"
_CHANGE_POINT = "change the point of one with change_point"
_FREE_VECTORS: dict[type, Any] = {
    sem.LinearVelocityCoord: sem.AngularVelocityCoord,
    sem.TorqueCoord: sem.ForceCoord,
}


class _Check:
    """Collector of the violated rules of one operation."""

    def __init__(self, operation: str, *operands: Any) -> None:
        self.operation = operation
        self.operands = operands
        self.violations: list[Violation] = []

    def require_equal(
        self, left: str, right: str, rule: str, what: tuple[str, str], repair: str = ""
    ) -> None:
        """Require two names to be equal.

        Args:
            left, right: names.
            rule: text of the rule.
            what: descriptions of the names, as ``("point of the first", "point of the second")``.
            repair: suggested repair.
        """
        if left != right:
            self.add(Violation(rule, f"{what[0]} {left}", f"{what[1]} {right}", repair))

    def add(self, violation: Violation) -> None:
        """Record a violation."""
        self.violations.append(violation)

    def require_step(self, name: str, own: str, rule: str, repair: str = "") -> None:
        """Require a field of the change (second operand) to equal a field of the first operand."""
        x, by = self.operands[:2]
        action = "begins" if name.startswith("ref_") else "ends"
        preposition = "on" if name.endswith("body") else "at"
        what = (f"it {action} {preposition}", f"the {sem.LABELS[own]} is")
        self.require_equal(getattr(by, name), getattr(x, own), rule, what, repair)

    def require_equal_field(
        self, name: str, rule: str, repair: str = "", sides: tuple[str, str] = ("first", "second")
    ) -> None:
        """Require a field to be equal in both operands, described by ``sides``."""
        left, right = (getattr(operand, name) for operand in self.operands[:2])
        first, second = (f"{sem.LABELS[name]} of the {side}" for side in sides)
        self.require_equal(left, right, rule, (first, second), repair)

    def raise_violations(self) -> None:
        """Raise SemanticError if a rule is violated and checks are enabled."""
        if self.violations and checks_are_on():
            raise SemanticError.of(_format_call(self.operation, self.operands), self.violations)


def _format_call(operation: str, operands: Sequence[object]) -> str:
    return f"{operation}({', '.join(map(repr, operands))})"


def _raise_undefined(operation: str, *operands: object) -> NoReturn:
    """Raise the error of an operation that is undefined for its operands."""
    kinds = " and ".join(
        getattr(operand, "relation", type(operand).__name__) for operand in operands
    )
    violation = Violation(f"there is no {operation} for these relations", kinds)
    raise SemanticError.of(_format_call(operation, operands), [violation])


def _require_matrix(check: _Check, x: Any, coord: str, ref_ori: str) -> None:
    """Require the result of a matrix to be expressed in its reference orientation frame."""
    if isinstance(x, _MATRIX_LIKE) and x.coord == x.ref_ori:
        rule = (
            "a rotation matrix, and with it a homogeneous matrix, is expressed in its reference"
            " orientation frame"
        )
        free = "a representation that allows it (a rotation vector)"
        repair = f"use inverse2, change_reference_orientation_frame, or {free}"
        check.require_equal(
            coord, ref_ori, rule, ("coordinate frame", "reference orientation frame"), repair
        )


def _require_own_reference(check: _Check, x: Any, operand: str) -> None:
    """Require an orientation or pose to be expressed in its reference orientation frame.

    Args:
        check: collector.
        x: coordinates.
        operand: description of the coordinates in the message.
    """
    check.require_equal(
        x.coord,
        x.ref_ori,
        f"{operand} is expressed in its reference orientation frame",
        ("coordinate frame", "reference orientation frame"),
        "express it there with change_coordinate_frame",
    )


def inverse(x: sem.Semantics, *, is_matrix: bool | None = None) -> Any:
    """Return the coordinates of the inverse, expressed in the same frame.

    Velocities and torques keep their point.
    """
    result: Any = x._of(*(getattr(x, _opposite_field(name, x.fields)) for name in x.fields))
    if is_matrix is not False and isinstance(x, _MATRIX_LIKE):
        check = _Check("inverse", x)
        _require_matrix(check, x, result.coord, result.ref_ori)
        check.raise_violations()
    return result


def _opposite_field(name: str, fields: tuple[str, ...]) -> str:
    """Return the field whose value a field of the inverse has."""
    opposite = name.removeprefix("ref_") if name.startswith("ref_") else f"ref_{name}"
    return opposite if opposite in fields else name


def inverse2(x: sem.Semantics) -> Any:
    """Return the coordinates of the inverse, expressed in its own reference frame."""
    if not isinstance(x, _MATRIX_LIKE):
        _raise_undefined("inverse2", x)
    check = _Check("inverse2", x)
    _require_own_reference(check, x, "the operand")
    check.raise_violations()
    if isinstance(x, sem.OrientationCoord):
        return x._of(x.ref_ori, x.ref_body, x.ori, x.body, x.ori)
    return x._of(x.ref_point, x.ref_ori, x.ref_body, x.point, x.ori, x.body, x.ori)


def compose(x: sem.Semantics, y: sem.Semantics, *, is_settled: bool = False) -> tuple[Any, bool]:
    """Return the coordinates of a composition, and whether its operands are swapped.

    An error describes the order of the arguments. With ``is_settled``, operands that chain in both
    orders are rejected.
    """
    if type(x) is not type(y):
        _raise_undefined("compose", x, y)
    if isinstance(x, _ADDITIVE):
        return _add(x, y), False
    if not checks_are_on():
        return _chain(x, y), False
    forwards, backwards = _chain_check(x, y), _chain_check(y, x)
    if not forwards.violations:
        if is_settled and not backwards.violations:
            sides = f"{y!r} relative to its reference and back"
            repair = "compose takes the operands in the order of the arguments"
            forwards.add(Violation("only one order of the operands chains", sides, repair=repair))
            forwards.raise_violations()
        return _chain(x, y), False
    if backwards.violations:
        forwards.raise_violations()
    return _chain(y, x), True


def _chain_check(x: Any, y: Any, *, operation: str = "compose") -> _Check:
    """Return the check that the reference of the first operand is the target of the second."""
    check = _Check(operation, x, y)
    if isinstance(x, (sem.PositionCoord, sem.PoseCoord)):
        what = ("reference point of the first", "point of the second")
        check.require_equal(
            x.ref_point, y.point, "the reference point of one is the point of the other", what
        )
    if isinstance(x, _MATRIX_LIKE):
        what = ("reference orientation frame of the first", "orientation frame of the second")
        rule = "the reference orientation frame of one is the orientation frame of the other"
        check.require_equal(x.ref_ori, y.ori, rule, what)
    if isinstance(x, (sem.LinearVelocityCoord, sem.TwistCoord)):
        check.require_equal_field("point", "velocities are composed at one point", _CHANGE_POINT)
    what = ("reference body of the first", "body of the second")
    inverse_name = "inverse2" if isinstance(x, _MATRIX_LIKE) else "inverse"
    repair = f"compose with the relation between them first, or invert one with {inverse_name}"
    check.require_equal(
        x.ref_body, y.body, "the reference body of one is the body of the other", what, repair
    )
    if isinstance(x, sem.PoseCoord) or (isinstance(x, sem.OrientationCoord) and x.coord != y.coord):
        _require_own_reference(check, x, "the first operand")
        _require_own_reference(check, y, "the second operand")
    elif not isinstance(x, sem.OrientationCoord):
        check.require_equal_field("coord", "both are expressed in one frame", _CHANGE_COORD)
    return check


def _chain(x: Any, y: Any) -> Any:
    if isinstance(x, sem.PositionCoord):
        return x._of(x.point, x.body, y.ref_point, y.ref_body, x.coord)
    if isinstance(x, sem.OrientationCoord):
        return x._of(x.ori, x.body, y.ref_ori, y.ref_body, y.coord)
    if isinstance(x, sem.PoseCoord):
        return x._of(x.point, x.ori, x.body, y.ref_point, y.ref_ori, y.ref_body, y.coord)
    if isinstance(x, sem.AngularVelocityCoord):
        return x._of(x.body, y.ref_body, x.coord)
    return x._of(x.point, x.body, y.ref_body, x.coord)


def _add(x: Any, y: Any) -> Any:
    """Return the coordinates of the resultant of two forces, torques or wrenches on one body."""
    check = _Check("compose", x, y)
    check.require_equal_field("body", "forces that are added act on one body")
    check.require_equal_field("ref_body", "forces that are added are exerted by one body")
    if not isinstance(x, sem.ForceCoord):
        check.require_equal_field("point", "moments are added about one point", _CHANGE_POINT)
    check.require_equal_field("coord", "both are expressed in one frame", _CHANGE_COORD)
    check.raise_violations()
    return x


def position_of(x: sem.PoseCoord) -> sem.PositionCoord:
    """Return the coordinates of the position in a pose."""
    return sem.PositionCoord._of(x.point, x.body, x.ref_point, x.ref_body, x.coord)


def orientation_of(x: sem.PoseCoord) -> sem.OrientationCoord:
    """Return the coordinates of the orientation in a pose."""
    return sem.OrientationCoord._of(x.ori, x.body, x.ref_ori, x.ref_body, x.coord)


def pose_of(position: sem.PositionCoord, orientation: sem.OrientationCoord) -> sem.PoseCoord:
    """Return the coordinates of the pose of a position and an orientation."""
    _check_parts("pose", position=position, orientation=orientation)
    p, o = position, orientation
    return sem.PoseCoord._of(p.point, o.ori, p.body, p.ref_point, o.ref_ori, p.ref_body, p.coord)


def twist_of(
    linear_velocity: sem.LinearVelocityCoord, angular_velocity: sem.AngularVelocityCoord
) -> sem.TwistCoord:
    """Return the coordinates of the twist of a linear and an angular velocity."""
    _check_parts("twist", linear_velocity=linear_velocity, angular_velocity=angular_velocity)
    return sem.TwistCoord._of(*linear_velocity[1:])


def wrench_of(force: sem.ForceCoord, torque: sem.TorqueCoord) -> sem.WrenchCoord:
    """Return the coordinates of the wrench of a force and a torque."""
    _check_parts("wrench", force=force, torque=torque)
    return sem.WrenchCoord._of(*torque[1:])


def _check_parts(operation: str, **parts: Any) -> None:
    """Require the two parts of a relation to be of the same bodies and in the same axes.

    Args:
        operation: name of the composed relation.
        parts: coordinates, by the names of their relations.
    """
    classes = [f"{name.title().replace('_', '')}Coord" for name in parts]
    if [type(part).__name__ for part in parts.values()] != classes:
        _raise_undefined(operation, *parts.values())
    first, second = (name.replace("_", " ") for name in parts)
    check, sides = _Check(operation, *parts.values()), (first, second)
    check.require_equal_field("body", "both are of one body", sides=sides)
    check.require_equal_field("ref_body", "both are relative to one body", sides=sides)
    check.require_equal_field("coord", "both are expressed in one frame", _CHANGE_COORD, sides)
    check.raise_violations()


def integrate(x: sem.Coord) -> sem.Coord:
    """Return the coordinates of the displacement by a constant velocity.

    A twist must have the origin of its coordinate frame g as its point. It gives the pose of g
    after the motion relative to before: ``({g}|C, {g}|D, [g])``. An angular velocity gives an
    orientation of its coordinate frame likewise, and a linear velocity the displacement of its
    point.
    """
    if isinstance(x, sem.TwistCoord):
        if x.point != x.coord:
            check = _Check("integrate", x)
            repair = "change the point with change_point, or the frame with change_coordinate_frame"
            rule = "point and coordinate frame of a twist that is integrated are of one frame"
            check.require_equal(x.point, x.coord, rule, ("point", "coordinate frame"), repair)
            check.raise_violations()
        return sem.PoseCoord._of(x.point, x.point, x.body, x.point, x.point, x.ref_body, x.coord)
    if isinstance(x, sem.AngularVelocityCoord):
        return sem.OrientationCoord._of(x.coord, x.body, x.coord, x.ref_body, x.coord)
    if not isinstance(x, sem.LinearVelocityCoord):
        _raise_undefined("integrate", x)
    return sem.PositionCoord._of(x.point, x.body, x.point, x.ref_body, x.coord)


def differentiate(x: sem.Coord, y: sem.Coord | None = None, *, screw: bool = False) -> sem.Coord:
    """Return the coordinates of the velocity between two samples of one relation.

    Args:
        x: relation; a pose or orientation is expressed in its reference orientation frame.
        y: same relation at a later time; may be omitted for coordinates without numbers.
        screw: True for a twist at the origin and in the axes of the reference frame of a pose;
            False for those of the frame itself.
    """
    y = x if y is None else y
    if type(x) is not type(y) or not isinstance(
        x, (sem.PositionCoord, sem.OrientationCoord, sem.PoseCoord)
    ):
        _raise_undefined("differentiate", x, y)
    check = _Check("differentiate", x, y)
    for name in x.fields:
        left, right = getattr(x, name), getattr(y, name)
        check.require_equal(
            left,
            right,
            "both are the same relation",
            (f"{name} of the first", f"{name} of the second"),
        )
    if isinstance(x, sem.PoseCoord):
        what = ("point", "orientation frame")
        check.require_equal(
            x.point, x.ori, "a pose that is differentiated is that of a frame", what
        )
        what = ("reference point", "reference orientation frame")
        check.require_equal(
            x.ref_point, x.ref_ori, "a pose that is differentiated is relative to a frame", what
        )
    if not isinstance(x, sem.PositionCoord):
        _require_own_reference(check, x, "the relation")
    check.raise_violations()
    if isinstance(x, sem.PositionCoord):
        return sem.LinearVelocityCoord._of(x.point, x.body, x.ref_body, x.coord)
    if isinstance(x, sem.OrientationCoord):
        return sem.AngularVelocityCoord._of(x.body, x.ref_body, x.coord)
    frame = x.ref_ori if screw else x.ori
    return sem.TwistCoord._of(frame, x.body, x.ref_body, frame)


def dot(wrench: sem.WrenchCoord, twist: sem.TwistCoord) -> None:
    """Check that a wrench and a twist have the same point, bodies and coordinate frame.

    The operands may be in either order.
    """
    if isinstance(wrench, sem.TwistCoord) and isinstance(twist, sem.WrenchCoord):
        wrench, twist = twist, wrench
    if not isinstance(wrench, sem.WrenchCoord) or not isinstance(twist, sem.TwistCoord):
        _raise_undefined("dot", wrench, twist)
    check = _Check("dot", wrench, twist)
    for name, repair in {
        "point": _CHANGE_POINT,
        "body": "",
        "ref_body": "",
        "coord": _CHANGE_COORD,
    }.items():
        check.require_equal_field(
            name, f"both have one {sem.LABELS[name]}", repair, ("wrench", "twist")
        )
    check.raise_violations()


def change_point(
    x: sem.Semantics,
    by: sem.PositionCoord,
    free: sem.AngularVelocityCoord | sem.ForceCoord | None = None,
    *,
    keeps_body: bool = True,
) -> Any:
    """Return the coordinates with another point.

    With ``keeps_body`` the point is on the same body. Otherwise it is on another body, whose rigid
    connection is not checked.
    """
    operation = "change_point" if keeps_body else "change_point_body"
    movable: tuple[Any, ...] = (sem.PositionCoord, sem.TwistCoord)
    if keeps_body:
        movable += (sem.PoseCoord, sem.LinearVelocityCoord, sem.TorqueCoord, sem.WrenchCoord)
    if not isinstance(x, movable) or not isinstance(by, sem.PositionCoord):
        _raise_undefined(operation, x, by)
    if free is not None and not isinstance(x, (sem.LinearVelocityCoord, sem.TorqueCoord)):
        _raise_undefined(operation, x, by, free)
    operands = (x, by) if free is None else (x, by, free)
    check = _Check(operation, *operands)
    free_class = _FREE_VECTORS.get(type(x))
    if free_class is not None and not isinstance(free, free_class):
        rule = f"another point of a {x.relation} needs the {free_class.relation} of the same bodies"
        check.add(Violation(rule, repr(free) if free is not None else "none was given"))
    repair = "give the position of the new point relative to the old one"
    check.require_step("ref_point", "point", "the change begins at the point", repair)
    check.require_step("ref_body", "body", "the old point is on the body")
    if keeps_body:
        repair = "use change_point_body for a body that is rigidly joined"
        check.require_step("body", "body", "the new point is on the same body", repair)
    _require_same_axes(check, by, x)
    if free_class is not None and isinstance(free, free_class):
        name = free_class.relation
        check.require_equal(
            free.body,
            x.body,
            f"the {name} is that of the same body",
            (f"body of the {name}", "body"),
        )
        what = (f"reference body of the {name}", "reference body")
        check.require_equal(
            free.ref_body, x.ref_body, f"the {name} is relative to the same body", what
        )
        what = (f"coordinate frame of the {name}", "coordinate frame")
        check.require_equal(
            free.coord, x.coord, f"the {name} is expressed in the same frame", what, _CHANGE_COORD
        )
    check.raise_violations()
    return x._replace(point=by.point, body=x.body if keeps_body else by.body)


def change_ref_point(x: sem.Semantics, by: sem.PositionCoord, *, keeps_body: bool = True) -> Any:
    """Return the coordinates relative to another point.

    ``by`` is the position of the old reference point relative to the new one.
    """
    operation = "change_reference_point" if keeps_body else "change_reference_point_body"
    kinds = (sem.PositionCoord, sem.PoseCoord) if keeps_body else sem.PositionCoord
    if not isinstance(x, kinds) or not isinstance(by, sem.PositionCoord):
        _raise_undefined(operation, x, by)
    check = _Check(operation, x, by)
    check.require_step(
        "point",
        "ref_point",
        "the change ends at the reference point",
        "invert the change with inverse",
    )
    check.require_step("body", "ref_body", "the old reference point is on the reference body")
    if keeps_body:
        repair = "use change_reference_point_body for a body that is rigidly joined"
        check.require_step(
            "ref_body", "ref_body", "the new reference point is on the same body", repair
        )
    _require_same_axes(check, by, x)
    check.raise_violations()
    return x._replace(ref_point=by.ref_point, ref_body=x.ref_body if keeps_body else by.ref_body)


def change_ori(x: sem.Semantics, by: sem.OrientationCoord) -> Any:
    """Return the coordinates with another orientation frame; ``by`` is relative to the old one."""
    if not isinstance(x, _MATRIX_LIKE) or not isinstance(by, sem.OrientationCoord):
        _raise_undefined("change_orientation_frame", x, by)
    check = _Check("change_orientation_frame", x, by)
    repair = "give the orientation of the new frame relative to the old one"
    check.require_step("ref_ori", "ori", "the change begins at the orientation frame", repair)
    check.require_step("ref_body", "body", "the old orientation frame is on the body")
    check.require_step("body", "body", "the new orientation frame is on the same body")
    _require_own_reference(check, by, "the change")
    _require_own_reference(check, x, "the relation")
    check.raise_violations()
    return x._replace(ori=by.ori)


def change_ref_ori(x: sem.Semantics, by: sem.OrientationCoord) -> Any:
    """Return the coordinates relative to another frame and expressed in it.

    ``by`` is the orientation of the old reference frame relative to the new one.
    """
    if not isinstance(x, _MATRIX_LIKE) or not isinstance(by, sem.OrientationCoord):
        _raise_undefined("change_reference_orientation_frame", x, by)
    check = _Check("change_reference_orientation_frame", x, by)
    repair = "invert the change with inverse2"
    check.require_step(
        "ori", "ref_ori", "the change ends at the reference orientation frame", repair
    )
    check.require_step("body", "ref_body", "the old reference frame is on the reference body")
    check.require_step("ref_body", "ref_body", "the new reference frame is on the same body")
    _require_own_reference(check, by, "the change")
    _require_own_reference(check, x, "the relation")
    check.raise_violations()
    return x._replace(ref_ori=by.ref_ori, coord=by.ref_ori)


def change_coord(
    x: sem.Semantics, by: sem.OrientationCoord, *, is_matrix: bool | None = None
) -> Any:
    """Return the coordinates in another frame; matrices allow only their reference frame."""
    if not isinstance(by, sem.OrientationCoord) or not hasattr(x, "coord"):
        _raise_undefined("change_coordinate_frame", x, by)
    check = _Check("change_coordinate_frame", x, by)
    what = ("it refers to", "the coordinate frame is")
    repair = "give the orientation of the old coordinate frame relative to the new one"
    check.require_equal(by.ori, x.coord, "the change begins at the coordinate frame", what, repair)
    _require_own_reference(check, by, "the change")
    if is_matrix is not False and isinstance(x, _MATRIX_LIKE):
        _require_matrix(check, x, by.ref_ori, x.ref_ori)
    check.raise_violations()
    return x._replace(coord=by.ref_ori)


def change_ref_body(x: sem.Coord, by: sem.Coord | str) -> Any:
    """Return the coordinates relative to another body.

    ``by`` is a velocity of the old body, or the constant relation or name of a rigidly joined one.
    """
    if isinstance(x, (sem.ForceCoord, sem.TorqueCoord, sem.WrenchCoord)):
        _raise_undefined("change_reference_body", x, by)
    if isinstance(x, (sem.LinearVelocityCoord, sem.AngularVelocityCoord, sem.TwistCoord)) and type(
        by
    ) is type(x):
        _chain_check(x, by, operation="change_reference_body").raise_violations()
        return x._replace(ref_body=by.ref_body)
    return x._replace(
        ref_body=_find_joined_body("change_reference_body", x, x.ref_body, by, "reference body")
    )


def change_body(x: sem.Semantics, by: sem.Coord | str) -> Any:
    """Return the coordinates of another body; ``by`` joins it rigidly to the old one."""
    if not isinstance(x, (sem.PositionCoord, sem.OrientationCoord, sem.PoseCoord)):
        _raise_undefined("change_body", x, by)
    return x._replace(body=_find_joined_body("change_body", x, x.body, by, "body"))


def _require_same_axes(check: _Check, by: sem.PositionCoord, x: Any) -> None:
    """Require a change of point to be expressed in the axes of the relation."""
    what = ("coordinate frame of the change", "coordinate frame")
    check.require_equal(
        by.coord,
        x.coord,
        "the change is expressed in the frame of the relation",
        what,
        _CHANGE_COORD,
    )


def _find_joined_body(operation: str, x: Any, body: str, by: Any, what: str) -> str:
    """Return the body that a name or a relation joins to another body."""
    if isinstance(by, str):
        return sem.BODY.read(by)[0]
    if not isinstance(by, (sem.PositionCoord, sem.OrientationCoord, sem.PoseCoord)):
        _raise_undefined(operation, x, by)
    if by.body == body:
        return by.ref_body
    if by.ref_body != body:
        check = _Check(operation, x, by)
        sides = f"it joins {by.body} and {by.ref_body}", f"the {what} is {body}"
        check.add(Violation(f"the constant relation is one of the {what}", *sides))
        check.raise_violations()
    return by.body
