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
    """Collects the broken rules of one operation."""

    def __init__(self, operation: str, *operands: Any) -> None:
        self.operation = operation
        self.operands = operands
        self.broken: list[Violation] = []

    def same(self, left: str, right: str, rule: str, what: tuple[str, str], repair: str = "") -> None:
        """Require two names to be equal; ``what`` they denote, as ``("point of the first", "point of the second")``."""
        if left != right:
            self.broken.append(Violation(rule, f"{what[0]} {left}", f"{what[1]} {right}", repair))

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
    if x.coord != x.ref_ori:
        check.same(
            x.coord, x.ref_ori, f"{which} is expressed in its reference orientation frame",
            ("coordinate frame", "reference orientation frame"), "express it there with change_coordinate_frame",
        )  # fmt: skip
