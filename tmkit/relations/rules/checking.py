"""How the rules of an operation are checked: every one that is broken is collected, then all are told at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tmkit.relations.semantics import OrientationCoord, PoseCoord
from tmkit.relations.violations import SemanticError, Violation, checks_are_on

MATRIX_LIKE = (OrientationCoord, PoseCoord)
CHANGE_COORD = "express both in one frame with change_coordinate_frame"
CHANGE_POINT = "change the point of one with change_point"


class Check:
    """Collects the broken rules of one operation.

    Args:
        operation: name of the operation, for the error message.
        operands: its operands.
    """

    def __init__(self, operation: str, *operands: Any) -> None:
        self.operation = operation
        self.operands = operands
        self.broken: list[Violation] = []

    def same(self, left: str, right: str, rule: str, what: tuple[str, str], repair: str = "") -> None:
        """Require two names to be equal.

        Args:
            left: the names.
            right: the names.
            rule: the rule, as a statement.
            what: what the names denote, for the message, e.g. ``("point of the first", "point of the second")``.
            repair: a suggestion; none by default.
        """
        if left != right:
            self.broken.append(Violation(rule, f"{what[0]} {left}", f"{what[1]} {right}", repair))

    def done(self) -> None:
        """Refuse when a rule was broken, where checks are on."""
        if self.broken and checks_are_on():
            raise SemanticError.of(_call(self.operation, self.operands), self.broken)


def _call(operation: str, operands: Sequence[object]) -> str:
    return f"{operation}({', '.join(map(repr, operands))})"


def unfit(operation: str, *operands: object) -> NoReturn:
    """Raise the error of an operation that is not defined for its operands.

    Args:
        operation: name of the operation.
        operands: its operands.
    """
    kinds = " and ".join(getattr(operand, "relation", type(operand).__name__) for operand in operands)
    raise SemanticError.of(
        _call(operation, operands), [Violation(f"there is no {operation} for these relations", kinds)]
    )


def require_matrix(check: Check, x: Any, coord: str, ref_ori: str) -> None:
    """Require the result of an operation on a rotation matrix to be expressed in its reference orientation frame.

    Args:
        check: the check of the operation, to which a violation is added.
        x: the operand; the rule applies if it is expressed in its reference orientation frame.
        coord: coordinate frame and reference orientation frame of the result.
        ref_ori: coordinate frame and reference orientation frame of the result.
    """
    if isinstance(x, MATRIX_LIKE) and x.coord == x.ref_ori:
        check.same(
            coord,
            ref_ori,
            "a rotation matrix, and with it a homogeneous matrix, is expressed in its reference orientation frame",
            ("coordinate frame", "reference orientation frame"),
            "use inverse2, change_reference_orientation_frame, or a representation that allows it (a rotation vector)",
        )


def require_own_reference(check: Check, x: Any, which: str) -> None:
    """Require an orientation or pose to be expressed in its reference orientation frame.

    Args:
        check: the check of the operation, to which a violation is added.
        x: coordinates with an orientation.
        which: name of the operand, for the message.
    """
    if x.coord != x.ref_ori:
        check.same(
            x.coord, x.ref_ori, f"{which} is expressed in its reference orientation frame",
            ("coordinate frame", "reference orientation frame"), "express it there with change_coordinate_frame",
        )  # fmt: skip
