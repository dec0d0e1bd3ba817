"""What the conversions share: making a relation of the numbers behind it, and refusing what cannot be converted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tmkit.relations import semantic
from tmkit.relations.representation import Vector
from tmkit.relations.representations import HomogeneousMatrix, RotationMatrix, VectorAndMatrix
from tmkit.relations.semantic import SemanticOrientation, SemanticPose, SemanticRelation
from tmkit.relations.semantics import Coord
from tmkit.relations.violations import SemanticError, Violation


def relation_of(coord: Coord, what: str) -> type[SemanticRelation]:
    """Return the class of the relation whose coordinates these are.

    Args:
        coord: coordinates, e.g. ``TwistCoord("e|C", "D", "[r]")``.
        what: name of the conversion, for the error message.

    Raises:
        SemanticError: they are no coordinates.
    """
    if not isinstance(coord, Coord):
        rule = "the coordinates say what the numbers mean, such as TwistCoord('e|C', 'D', '[r]')"
        raise refusal(what, rule, repr(coord)[:80])
    found: type[SemanticRelation] = getattr(semantic, f"Semantic{coord.relation}")
    return found


def made_of(coord: Coord, numbers: Sequence[ArrayLike], what: str) -> Any:
    """Return the relation of coordinates and numbers.

    Args:
        coord: coordinates of the relation.
        numbers: vectors (3,), a rotation matrix (3, 3), or a vector and a matrix; SI units, in the axes of
            ``coord.coord``.
        what: name of the conversion, for the error message.

    Raises:
        SemanticError: the numbers are not such, or the coordinates do not allow them.
    """
    relation = relation_of(coord, what)
    values = [np.array(part, dtype=float) for part in numbers]
    if relation is SemanticPose:
        return SemanticPose(coord, VectorAndMatrix(*values))
    if relation is SemanticOrientation:
        return SemanticOrientation(coord, RotationMatrix(values[0]))
    return relation(coord, np.concatenate(values))


def matrix_of(pose: SemanticPose) -> Vector:
    """Return a pose as a homogeneous matrix (4, 4), which others take every transform for.

    Raises:
        SemanticError: it is not the pose of a frame relative to a frame, expressed there.
    """
    return pose.in_representation(HomogeneousMatrix).matrix


def members(value: Any, names: Sequence[str], what: str) -> list[Any]:
    """Return the members of an object.

    Args:
        value: an object of another library, e.g. a ROS message.
        names: attributes to read.
        what: name of the conversion, for the error message.

    Raises:
        SemanticError: one is missing.
    """
    missing = [name for name in names if not hasattr(value, name)]
    if missing:
        raise refusal(what, f"it has {' and '.join(names)}", f"a {type(value).__name__} has no {', no '.join(missing)}")
    return [getattr(value, name) for name in names]


def refusal(operation: str, rule: str, left: str, right: str = "", repair: str = "") -> SemanticError:
    """Return the error of a conversion that breaks one rule.

    Args:
        operation: name of the conversion.
        rule: the rule, as a statement.
        left: the received values that break it.
        right: the received values that break it.
        repair: a suggestion; none by default.
    """
    return SemanticError.of(operation, [Violation(rule, left, right, repair)])
