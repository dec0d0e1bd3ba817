"""How the rules of an operation are checked: every one that is broken is collected, then all are told at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tmkit.relations.semantics import (
    OrientationCoord,
    PoseCoord,
)
from tmkit.relations.violations import SemanticError, Violation

__all__ = [
    "CHANGE_COORD",
    "CHANGE_POINT",
    "MATRIX_LIKE",
    "Check",
    "require_matrix",
    "require_own_reference",
    "unfit",
]

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


def unfit(operation: str, *operands: object) -> NoReturn:
    """Refuse operands of relations for which there is no such operation."""
    kinds = " and ".join(getattr(operand, "relation", type(operand).__name__) for operand in operands)
    raise SemanticError.of(
        _call(operation, operands), [Violation(f"there is no {operation} for these relations", kinds)]
    )


def require_matrix(check: Check, x: Any, coord: str, ref_ori: str) -> None:
    """What may be a matrix before an operation must be one after it: expressed in its reference orientation frame."""
    if isinstance(x, MATRIX_LIKE) and x.coord == x.ref_ori:
        check.same(
            coord,
            ref_ori,
            "a rotation matrix, and with it a homogeneous matrix, is expressed in its reference orientation frame",
            ("coordinate frame", "reference orientation frame"),
            "use inverse2, change_reference_orientation_frame, or a representation that allows it (a rotation vector)",
        )


def require_own_reference(check: Check, x: Any, which: str) -> None:
    """Require an orientation or pose to be expressed in its reference orientation frame."""
    if x.coord != x.ref_ori:
        check.same(
            x.coord,
            x.ref_ori,
            f"{which} is expressed in its reference orientation frame",
            ("coordinate frame", "reference orientation frame"),
            "express it there with change_coordinate_frame",
        )
