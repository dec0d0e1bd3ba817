"""What a coordinate representation is: numbers for a relation, and the constraint that they put on its meaning.

Each representation says what it requires (:meth:`Representation.broken_by`), and every operation checks its results
again. Behind all representations of a relation stand the same *numbers*: arrays from which each is made, and which each
gives: of a position, velocity or force its vector, of a twist ``(v, w)``, of a wrench ``(f, t)``, of a pose ``(p, Q)``,
of an orientation ``(Q,)``, the rotation that takes the reference axes to the axes, as a matrix in the coordinate frame:
expressed in the reference orientation frame it is the rotation matrix. SI units.

Invariants: a representation holds read-only arrays of finite numbers; one that cannot be (a matrix that is no rotation)
is refused with its defect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tmkit.relations.violations import SemanticError, Violation

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

Vector = NDArray[np.float64]
Numbers = tuple[Vector, ...]
"""The arrays behind a representation, as the table above says."""

ROTATION_TOLERANCE = 1e-6
"""How far ``R R^T`` may be from the identity, and a norm from 1, in what is given."""


@runtime_checkable
class Representation(Protocol):
    """Numbers for a relation, in one of several forms.

    Attributes:
        relation: name of the relation that it represents.
    """

    relation: ClassVar[str]

    @property
    def numbers(self) -> Numbers:
        """The arrays behind it."""
        ...

    @classmethod
    def of(cls, numbers: Numbers, *, like: Self | None = None) -> Self:
        """Make one from the arrays.

        Args:
            numbers: the arrays.
            like: one whose settings are taken over, such as the sequence of Euler angles.

        Raises:
            SemanticError: the numbers cannot be represented so.
        """
        ...

    def broken_by(self, coord: Any) -> Sequence[Violation]:
        """Return what keeps a relation with these coordinates from being represented so."""
        ...


def array_of(values: ArrayLike, shape: tuple[int, ...], what: str, *, unit: str = "", is_batch: bool = False) -> Vector:
    """Return a read-only copy of an array of finite numbers in SI units, or raise SemanticError.

    A quantity of :mod:`pint` is converted to ``unit``, dimensionless by default. With ``is_batch`` one more dimension
    in front is accepted; ``what`` they are is said in messages.
    """
    try:
        values = _converted(values, unit, what)
        if isinstance(values, str) or np.asarray(values).dtype.kind in "US":
            raise ValueError("text")
        array = np.array(values, dtype=float)
    except SemanticError:
        raise
    except (TypeError, ValueError):
        raise SemanticError.of(what, [Violation(f"it has numbers of shape {shape}", repr(values)[:80])]) from None
    if array.shape != shape and not (is_batch and array.shape[1:] == shape and array.ndim > len(shape)):
        raise SemanticError.of(what, [Violation(f"it has shape {shape}", f"shape {array.shape}")])
    if not np.isfinite(array).all():
        raise SemanticError.of(what, [Violation("its numbers are finite", np.array2string(array.ravel()))])
    array.flags.writeable = False
    return array


def seconds(dt: float) -> float:
    """Return a time in seconds, given so or as a quantity of :mod:`pint`; SemanticError where it is no finite time."""
    if type(dt) is float and math.isfinite(dt):
        return dt
    return float(array_of(dt, (), "time", unit="s"))


def elapsed(dt: float) -> float:
    """Return a time in seconds that may be divided by; SemanticError where it is zero or not finite."""
    made = seconds(dt)
    if made == 0.0:
        raise SemanticError.of("differentiate", [Violation("time goes by between the two", "0 s")])
    return made


def _converted(quantity: Any, unit: str, what: str) -> Any:
    """Return the numbers of a quantity in a unit, or of a list that may hold some; anything else as it is."""
    if isinstance(quantity, (list, tuple)):
        return [_converted(value, unit, what) for value in quantity]
    if not (hasattr(quantity, "magnitude") and hasattr(quantity, "to")):
        return quantity
    try:
        converted: ArrayLike = quantity.to(unit or "dimensionless").magnitude
    except Exception as error:  # whatever the library of units raises for a wrong dimension
        rule = f"it is given in {unit or 'plain numbers'}, or what converts to it"
        raise SemanticError.of(what, [Violation(rule, f"{type(error).__name__}: {error}")]) from error
    return converted


def rotations() -> type[Rotation]:
    """Return scipy's class of rotations, which is imported when it is first needed: it costs more than all of tmkit."""
    from scipy.spatial.transform import Rotation

    return Rotation


def rotation_of(values: ArrayLike, what: str) -> Vector:
    """Return a read-only rotation matrix (3, 3), or a batch (N, 3, 3); a SemanticError gives the defect."""
    matrix = array_of(values, (3, 3), what, is_batch=True)
    defect = float(np.abs(matrix @ matrix.swapaxes(-1, -2) - np.eye(3)).max(initial=0.0))
    determinant, text = float(np.linalg.det(matrix).min(initial=np.inf)), ""
    if defect > ROTATION_TOLERANCE:
        text = f"R R^T differs from the identity by {defect:.3g}"
    elif determinant < 0.0:
        text = f"it is left-handed: its determinant is {determinant:.6g}"
    if text:
        raise SemanticError.of(what, [Violation("a rotation matrix is orthonormal and right-handed", text)])
    return matrix


_Made = TypeVar("_Made")


def trusted(cls: type[_Made], **arrays: Vector) -> _Made:
    """Make a representation from read-only arrays that are known to be right, such as products of rotations."""
    made = object.__new__(cls)
    made.__dict__.update(arrays)
    return made


def frozen(array: Vector) -> Vector:
    """Return an array as read-only."""
    array.flags.writeable = False
    return array
